# Writes cluster_robust.json: clubSandwich's CR0, CR1 and CR2 covariances, Satterthwaite df and HTZ Wald tests.
#
# clubSandwich's CR2 takes another root than the package (both are unbiased under the working model, and they agree
# where a cluster's working covariance is a multiple of the identity). The tests compare CR0, CR1 and the df of all
# fits with the package, CR2 of all fits with clubSandwich's root written out, and CR2 of least squares with both.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(nlme)
  library(clubSandwich)
})

control <- lmeControl(maxIter = 500, msMaxIter = 2000, tolerance = 1e-12, msTol = 1e-14, returnObject = TRUE)

describe <- function(fit, cluster, data, ...) {
  types <- lapply(c(CR0 = "CR0", CR1 = "CR1", CR2 = "CR2"), function(type) {
    V <- vcovCR(fit, cluster = cluster, type = type, ...)
    tests <- coef_test(fit, V, test = "Satterthwaite")
    out <- list(vcov = unname(as.matrix(V)), se = I(tests$SE), df = I(tests$df_Satt), p_value = I(tests$p_Satt))
    if (nrow(tests) > 2) {
      joint <- Wald_test(fit, constrain_zero(2:min(4, nrow(tests))), vcov = V, test = "HTZ")
      out$joint <- list(f = joint$Fstat, df_num = joint$df_num, df_den = joint$df_denom, p_value = joint$p_val)
    }
    out
  })
  c(list(estimate = I(unname(tests_estimates(fit)))), types)
}

tests_estimates <- function(fit) if (inherits(fit, "lm")) coef(fit) else fixef(fit)

by_lm <- function(name, formula, cluster, weights = NULL) {
  data <- read_input(name)
  data$.w <- if (is.null(weights)) 1 else data[[weights]]
  fit <- lm(as.formula(formula), data = data, weights = .w)
  if (is.null(weights)) fit <- lm(as.formula(formula), data = data)
  c(list(data = name, formula = formula, cluster = cluster, weights = weights, method = "lm"),
    describe(fit, data[[cluster]], data, inverse_var = !is.null(weights)))
}

by_lmer <- function(name, formula, cluster) {
  data <- read_input(name)
  fit <- fit_best(as.formula(formula), data, TRUE)
  c(list(data = name, formula = formula, cluster = cluster, method = "lmer"), describe(fit, data[[cluster]], data))
}

# Residual variances: `dispersion` has one per level, `weights` are precisions (clubSandwich refuses lmer's).
by_lme <- function(name, formula, fixed, random, cluster, dispersion = NULL, weights = NULL) {
  data <- read_input(name)
  if (!is.null(weights)) data$.v <- 1 / data[[weights]]
  variance <- if (is.null(weights)) varIdent(form = as.formula(paste("~ 1 |", dispersion))) else varFixed(~ .v)
  fit <- lme(fixed, data = data, random = random, method = "REML", control = control, weights = variance)
  c(list(data = name, formula = formula, cluster = cluster, dispersion = dispersion, weights = weights, method = "lme"),
    describe(fit, data[[cluster]], data))
}

results <- list(
  by_lm("bench_unbalanced", "y ~ algorithm", "benchmark"),
  by_lm("bench_prior_unbalanced", "y ~ algorithm * prior", "benchmark"),
  by_lm("sleepstudy_unbalanced", "Reaction ~ Days", "Subject"),
  by_lm("nested_slopes", "y ~ treatment + x", "a"),
  by_lm("bench_unbalanced", "y ~ algorithm + benchmark", "benchmark"),
  by_lm("sleepstudy_weights", "Reaction ~ Days", "Subject", "w"),
  by_lmer("bench_unbalanced", "y ~ algorithm + (1|benchmark)", "benchmark"),
  by_lmer("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)", "benchmark"),
  by_lmer("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)", "benchmark"),
  by_lmer("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)", "Subject"),
  by_lmer("nested_slopes", "y ~ treatment + x + (x|a)", "a"),
  by_lmer("Pastes", "strength ~ 1 + (1|batch) + (1|batch:cask)", "batch"),
  by_lmer("cake_unbalanced", "angle ~ recipe + temp + (1|replicate) + (1|replicate:recipe)", "replicate"),
  by_lme("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:seed)", y ~ algorithm, ~ 1 | benchmark/seed,
         "benchmark", "benchmark"),
  by_lme("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark)", y ~ algorithm * prior, ~ 1 | benchmark,
         "benchmark", "prior"),
  by_lme("sleepstudy_weights", "Reaction ~ Days + (Days|Subject)", Reaction ~ Days, ~ Days | Subject, "Subject",
         weights = "w")
)
write_reference("cluster_robust", clubSandwich = as.character(packageVersion("clubSandwich")), fits = results)
