# Writes diagonal.json: models with a variance for each level of a factor, diag(f | g), fitted by lme4 with one 0/1
# column per level, (0 + d1 | g) + (0 + d2 | g) + ..., and by nlme with pdDiag; pairs by emmeans with Satterthwaite's
# and Kenward and Roger's degrees of freedom.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(lmerTest)
  library(nlme)
  library(pbkrtest)
})

control <- lmeControl(maxIter = 500, msMaxIter = 2000, tolerance = 1e-12, msTol = 1e-14, returnObject = TRUE)

with_columns <- function(data, factor) {
  levels <- levels(data[[factor]])
  for (i in seq_along(levels)) data[[paste0("d", i)]] <- as.numeric(data[[factor]] == levels[i])
  data
}

variances <- function(fit, group, k) {
  table <- as.data.frame(VarCorr(fit))
  vapply(seq_len(k), function(i) table$vcov[table$var1 %in% paste0("d", i)], 0)
}

fit_one <- function(name, formula, fixed, random, group, nlme_random = NULL) {
  message(name, ": ", formula)
  data <- with_columns(read_input(name), "algorithm")
  k <- nlevels(data$algorithm)
  terms <- paste0("(0 + d", seq_len(k), " | ", group, ")", collapse = " + ")
  long <- as.formula(paste(fixed, "+", random, "+", terms))
  methods <- lapply(c(ML = FALSE, REML = TRUE), function(reml) {
    fit <- fit_best(long, data, reml)
    out <- list(llf = as.numeric(logLik(fit)), n_params = attr(logLik(fit), "df"),
                variances = I(variances(fit, group, k)), scale = sigma(fit)^2,
                fixef = I(unname(fixef(fit))), se = I(unname(sqrt(diag(as.matrix(vcov(fit)))))))
    if (reml) {
      out$pairs <- lapply(c(satterthwaite = "satterthwaite", kenward_roger = "kenward-roger"), function(method) {
        table <- as.data.frame(pairs(emmeans(fit, "algorithm", lmer.df = method, data = data)))
        data.frame(estimate = table$estimate, se = table$SE, df = table$df)
      })
    }
    if (!is.null(nlme_random)) {
      other <- lme(as.formula(fixed), data = data, random = nlme_random, method = if (reml) "REML" else "ML",
                   control = control)
      out$nlme_llf <- as.numeric(logLik(other))
    }
    out
  })
  c(list(data = name, formula = formula), methods)
}

blocked <- list(benchmark = pdBlocked(list(pdIdent(~ 1), pdDiag(~ algorithm - 1))))
results <- list(
  fit_one("bench", "y ~ algorithm + (1|benchmark) + diag(algorithm|benchmark)", "y ~ algorithm", "(1|benchmark)",
          "benchmark", blocked),
  fit_one("bench_unbalanced", "y ~ algorithm + (1|benchmark) + diag(algorithm|benchmark)", "y ~ algorithm",
          "(1|benchmark)", "benchmark", blocked),
  fit_one("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:seed) + diag(algorithm|benchmark)",
          "y ~ algorithm", "(1|benchmark) + (1|benchmark:seed)", "benchmark"),
  fit_one("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark) + diag(algorithm|benchmark)",
          "y ~ algorithm * prior", "(1|benchmark)", "benchmark", blocked),
  fit_one("bench_prior_unbalanced", "y ~ algorithm + (1|benchmark:algorithm) + diag(algorithm|benchmark:seed)",
          "y ~ algorithm", "(1|benchmark:algorithm)", "benchmark:seed")
)
write_reference("diagonal", fits = results)
