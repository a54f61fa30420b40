# Writes horizons.json: pairs of algorithms at one budget, over a window of budgets by three models of the budget, and
# the changes between two budgets, on a table that is written along; REML at lme4's best point (see common.R).

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(lmerTest)
})

set.seed(2, kind = "Mersenne-Twister", normal.kind = "Inversion")
rows <- expand.grid(
  budget = c(1, 2, 4), seed = paste0("s", 1:4), algorithm = c("BO", "HB", "RS"), benchmark = paste0("b", 1:8),
  stringsAsFactors = FALSE
)
effect <- function(sd, ...) {
  key <- interaction(..., drop = TRUE)
  rnorm(nlevels(key), sd = sd)[key]
}
rows$y <- with(rows, round(
  2 + 0.5 * (algorithm == "RS") - 0.4 * log(budget) * (algorithm == "BO") - 0.3 * log(budget) +
    effect(1, benchmark) + effect(0.4, benchmark, algorithm) + effect(0.3, benchmark, seed) +
    effect(0.5, benchmark, algorithm, seed) + effect(0.3, benchmark, budget) +
    effect(0.25, benchmark, algorithm, budget) + effect(0.3, benchmark, seed, budget) + rnorm(nrow(rows), sd = 0.4), 4))

for (column in c("seed", "algorithm", "benchmark")) rows[[column]] <- as_factor(rows[[column]])
rows$step <- factor(rows$budget)
run_means <- aggregate(y ~ seed + algorithm + benchmark, rows, mean)
at <- function(budget) {
  part <- rows[rows$budget == budget, ]
  part[order(part$benchmark, part$algorithm, part$seed), ]
}
change <- at(4)
change$y <- at(4)$y - at(1)$y

base <- "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
course <- "(1|benchmark:step) + (1|benchmark:algorithm:step)"
run <- "(1|benchmark:algorithm:seed)"
cases <- list(
  list("single", base, at(2)),
  list("averaged", base, run_means),
  list("fixed", paste(base, run, "step", course, sep = " + "), rows),
  list("random", paste(base, run, "(1|step)", course, sep = " + "), rows),
  list("paper", "y ~ algorithm + (1|step) + (1|benchmark)", rows),
  list("change", base, change)
)

compared <- function(case) {
  fit <- fit_best(as.formula(case[[2]]), case[[3]], TRUE)
  means <- suppressMessages(emmeans(fit, "algorithm", lmer.df = "satterthwaite", data = case[[3]]))
  table <- as.data.frame(summary(pairs(means, adjust = "tukey"), infer = c(FALSE, TRUE)))
  alone <- as.data.frame(summary(pairs(means, adjust = "none"), infer = c(FALSE, TRUE)))
  ends <- do.call(rbind, strsplit(as.character(table$contrast), " - "))
  list(
    formula = case[[2]], is_singular = isSingular(fit), llf = as.numeric(logLik(fit)),
    pairs = data.frame(
      left = ends[, 1], right = ends[, 2], estimate = table$estimate, se = table$SE, df = table$df,
      p_value = alone$p.value, p_tukey = table$p.value
    )
  )
}

results <- lapply(cases, compared)
names(results) <- vapply(cases, `[[`, "", 1)
write_reference("horizons", scores = matrix(rows$y, nrow = 24, byrow = TRUE), cases = results)
