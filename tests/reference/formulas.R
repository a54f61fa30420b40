# Parts of formulas: natural splines by splines::ns, and known parts by offset(), fitted by lme4 with emmeans.
# Writes formulas.json.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(splines)
})
emm_options(lmerTest.limit = 1e5, pbkrtest.limit = 1e5)

x <- rep(c(1, 2.5, 3, 4.7, 8, 9.1, 12), c(1, 2, 3, 1, 4, 2, 3))
new <- c(-3, 0, 1, 2.5, 3, 4.7, 5, 8, 9.1, 12, 15, 40)

bases <- lapply(list(
  list("ns(x, df=1)", ns(x, df = 1)),
  list("ns(x, df=2)", ns(x, df = 2)),
  list("ns(x, df=4)", ns(x, df = 4)),
  list("ns(x, knots=[2, 8])", ns(x, knots = c(2, 8))),
  list("ns(x, knots=4, lower_bound=2, upper_bound=9)", ns(x, knots = 4, Boundary.knots = c(2, 9))),
  list("ns(x)", ns(x))
), function(case) list(term = case[[1]], x = I(new), values = unclass(predict(case[[2]], new))[, , drop = FALSE]))

fits <- list(
  list("nested_slopes", "y ~ treatment + ns(x, df=4) + (1|a)", "y ~ treatment + ns(x, df = 4) + (1 | a)"),
  list("sleepstudy", "Reaction ~ offset(10 * Days) + Days + (Days | Subject)", "Reaction ~ offset(10 * Days) + Days + (Days | Subject)"),
  list("nested_slopes", "y ~ treatment + offset(x) + (1|a) + (1|a:b)", "y ~ treatment + offset(x) + (1 | a) + (1 | a:b)"),
  list("bench_unbalanced", "y ~ algorithm + offset(log(fidelity)) + offset(-1 * fidelity / 50) + (1|benchmark)",
       "y ~ algorithm + offset(log(fidelity)) + offset(-1 * fidelity / 50) + (1 | benchmark)")
)

describe <- function(case) {
  message(case[[2]])
  data <- read_input(case[[1]])
  methods <- lapply(c(ML = FALSE, REML = TRUE), function(reml) {
    fit <- suppressWarnings(fit_best(as.formula(case[[3]]), data, reml))
    specs <- intersect(c("treatment", "algorithm"), names(data))
    out <- list(
      llf = as.numeric(logLik(fit)), sigma = sigma(fit), fixef = I(unname(fixef(fit))),
      se = I(unname(sqrt(diag(as.matrix(vcov(fit)))))), fitted = I(unname(head(fitted(fit), 20))),
      population = I(unname(head(predict(fit, re.form = NA), 20)))
    )
    if (reml && length(specs)) {
      em <- suppressMessages(emmeans(fit, specs, data = data, lmer.df = "satterthwaite"))
      table <- as.data.frame(em)
      out$means <- data.frame(level = as.character(table[[specs]]), emmean = table$emmean, se = table$SE, df = table$df)
    }
    out
  })
  c(list(data = case[[1]], formula = case[[2]]), methods)
}

write_reference("formulas", bases = bases, fits = lapply(fits, describe))
