# Writes kenward_roger.json: pbkrtest's adjusted covariance, df and F-tests of several df on singular fits, on models
# whose terms share a group and on a weighted model, and emmeans' joint tests; REML at lme4's best point (see common.R).

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(lmerTest)
  library(pbkrtest)
})

models <- list(
  c("Dyestuff2", "Yield ~ 1 + (1|Batch)"),
  c("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  c("Pastes", "strength ~ 1 + (1|batch/cask)"),
  c("sleepstudy", "Reaction ~ Days + (Days||Subject)"),
  c("sleepstudy", "Reaction ~ Days + (0+Days|Subject)"),
  c("cake", "angle ~ recipe + temp + (temp|recipe:replicate)"),
  c("cake", "angle ~ recipe + temp + (recipe|replicate)"),
  c("categorical_slopes", "y ~ f + x + (f|g)"),
  c("categorical_slopes", "y ~ f + x + (1+f||g)"),
  c("categorical_slopes", "y ~ f + x + (x+f||g)"),
  c("categorical_slopes", "y ~ f * x + (f+x|g)"),
  c("categorical_slopes", "y ~ f + x + (1|g) + (0+x|g) + (1|f:g)"),
  c("categorical_slopes", "y ~ 0 + f + x + (x|g)"),
  c("nested_slopes", "y ~ treatment * x + (1+x|a/b)"),
  c("rank_deficient", "y ~ a * b + x + (a|g)"),
  c("bench_prior_unbalanced", "y ~ algorithm * prior + fidelity + (1|benchmark/algorithm) + (1|benchmark:seed)"),
  c("bench_prior", "y ~ algorithm * prior + (prior|benchmark) + (1|seed)")
)

# pbkrtest takes the inverse of the information if its smallest eigenvalue exceeds 1e-10, else a generalised inverse
# that drops directions below 1.5e-8 of the largest. In units of the residual standard deviation that is what is meant.
in_residual_units <- function(formula, data) {
  response <- all.vars(formula)[1]
  sigma <- sigma(fit_best(formula, data, TRUE))
  data[[response]] <- data[[response]] / sigma
  list(data = data, unit = sigma)
}

f_test <- function(fit) {
  keep <- which(names(fixef(fit)) != "(Intercept)")
  if (!length(keep)) return(NULL)
  L <- diag(length(fixef(fit)))[keep, , drop = FALSE]
  tests <- KRmodcomp(fit, L)$test
  list(num_df = tests["Ftest", "ndf"], den_df = tests["Ftest", "ddf"], f = tests["Ftest", "stat"],
       f_scale = tests["Ftest", "F.scaling"], p_value = tests["Ftest", "p.value"])
}

describe <- function(fit, unit, names) {
  adjusted <- vcovAdj(fit)
  p <- length(fixef(fit))
  list(
    unit = unit, is_singular = isSingular(fit), condition = attr(adjusted, "condi"),
    coefficients = data.frame(
      name = names, estimate = unname(fixef(fit)) * unit, se = sqrt(diag(as.matrix(adjusted))) * unit,
      df = vapply(seq_len(p), function(i) Lb_ddf(as.numeric(seq_len(p) == i), vcov(fit), adjusted), 0)
    ),
    vcov = unname(as.matrix(adjusted)) * unit^2, f_test = f_test(fit)
  )
}

describe_model <- function(model) {
  message(model[1], ": ", model[2])
  formula <- as.formula(model[2])
  data <- read_input(model[1])
  scaled <- in_residual_units(formula, data)
  fit <- fit_best(formula, scaled$data, TRUE)
  c(list(data = model[1], formula = model[2]), describe(fit, scaled$unit, python_names(names(fixef(fit)), data)))
}

# pbkrtest takes the residual covariance to be a multiple of the identity whatever the weights are. Multiplying every
# row by the root of its weight gives the same model without weights, where it is right.
weighted <- function() {
  data <- read_input("sleepstudy_weights")
  data <- transform(data, r = sqrt(w) * Reaction, one = sqrt(w), days = sqrt(w) * Days)
  formula <- r ~ 0 + one + days + (0 + one + days | Subject)
  sigma <- sigma(fit_best(formula, data, TRUE))
  fit <- fit_best(formula, transform(data, r = r / sigma), TRUE)
  c(list(data = "sleepstudy_weights", formula = "Reaction ~ Days + (Days|Subject)", weights = "w"),
    describe(fit, sigma, c("Intercept", "Days")))
}

joint <- list(
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)"),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)", by = "recipe"),
  list("cake", "angle ~ recipe * temp + (1|recipe:replicate)"),
  list("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"),
  list("bench_prior_unbalanced", "y ~ algorithm * prior + fidelity + (1|benchmark) + (1|benchmark:algorithm)"),
  list("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)", by = "prior"),
  list("nested_slopes", "y ~ treatment * x + (x|a) + (1|a:b)"),
  list("rank_deficient", "y ~ a * b + x + (1|g)"),
  list("rank_deficient", "y ~ a * b + (1|g)", by = "a")
)

# emmeans rounds F to three decimals and takes the smallest df of the rows: compare F and the numerator df.
describe_joint <- function(model) {
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE)
  tests <- lapply(c(satterthwaite = "satterthwaite", kenward_roger = "kenward-roger"), function(method) {
    table <- suppressMessages(joint_tests(fit, by = model$by, data = data, lmer.df = method, showconf = FALSE))
    out <- data.frame(term = table[["model term"]], num_df = table$df1, den_df = table$df2, f = table$F.ratio)
    if (!is.null(model$by)) out <- cbind(setNames(list(as.character(table[[model$by]])), model$by), out)
    out
  })
  c(list(data = model[[1]], formula = model[[2]], by = model$by), tests)
}

results <- lapply(models, describe_model)
write_reference("kenward_roger", models = results, weighted = weighted(), joint_tests = lapply(joint, describe_joint))
