# Writes fits.json: lme4's estimates on the classical data sets, at the best point of all its optimisers,
# polished by Newton steps so that the estimates are accurate to about 1e-8.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

models <- list(
  list("sleepstudy", "Reaction ~ Days + (1|Subject)"),
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy", "Reaction ~ Days + (Days||Subject)"),
  list("sleepstudy", "Reaction ~ Days + (0+Days|Subject)"),
  list("sleepstudy", "Reaction ~ 1 + (Days|Subject)"),
  list("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy_weights", "Reaction ~ Days + (Days|Subject)", weights = "w"),
  list("sleepstudy_weights", "Reaction ~ Days + (1|Subject)", weights = "w"),
  list("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  list("Pastes", "strength ~ 1 + (1|batch/cask)"),
  list("Pastes", "strength ~ 1 + (1|sample) + (1|batch)"),
  list("Pastes", "strength ~ 1 + (1|batch:cask) + (1|batch)"),
  list("Pastes", "strength ~ 1 + (1|sample)"),
  list("Dyestuff", "Yield ~ 1 + (1|Batch)"),
  list("Dyestuff2", "Yield ~ 1 + (1|Batch)"),
  list("cake", "angle ~ recipe * temperature + (1|recipe:replicate)"),
  list("cake", "angle ~ recipe + temperature + (1|recipe:replicate)"),
  list("cake", "angle ~ recipe * temp + (1|recipe:replicate)"),
  list("cake", "angle ~ recipe + temp + (temp|recipe:replicate)"),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)"),
  list("cake", "angle ~ recipe + temp + (recipe|replicate)"),
  list("cake", "angle ~ recipe + temp + (0+recipe|replicate)"),
  list("categorical_slopes", "y ~ f + x + (1|g)"),
  list("categorical_slopes", "y ~ f + x + (f|g)"),
  list("categorical_slopes", "y ~ f + x + (0+f|g)"),
  list("categorical_slopes", "y ~ f + x + (1+f||g)"),
  list("categorical_slopes", "y ~ f + x + (x+f||g)"),
  list("categorical_slopes", "y ~ f * x + (f+x|g)"),
  list("categorical_slopes", "y ~ f * x + (f*x|g)"),
  list("categorical_slopes", "y ~ f + x + (1|g) + (0+x|g) + (1|f:g)"),
  list("categorical_slopes", "y ~ 0 + f + x + (x|g)"),
  list("nested_slopes", "y ~ treatment + x + (x|a) + (1|a:b)"),
  list("nested_slopes", "y ~ treatment * x + (1+x|a/b)"),
  list("rank_deficient", "y ~ a * b + (1|g)"),
  list("rank_deficient", "y ~ a * b + x + (a|g)"),
  list("bench", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"),
  list("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"),
  list("bench_prior_unbalanced", "y ~ algorithm * prior + fidelity + (1|benchmark/algorithm) + (1|benchmark:seed)"),
  list("bench_prior", "y ~ algorithm * prior + (prior|benchmark) + (1|seed)")
)
large <- list(
  list("InstEval", "y ~ 1 + (1|s) + (1|d)"),
  list("InstEval", "y ~ service + (1|s) + (1|d) + (1|dept:service)")
)

fit_model <- function(model, settings = optimiser_settings, with_ranef = TRUE) {
  data <- read_input(model[[1]])
  methods <- lapply(c(ML = FALSE, REML = TRUE), function(reml) {
    started <- proc.time()[["elapsed"]]
    fit <- fit_best(as.formula(model[[2]]), data, reml, model$weights, settings)
    message(sprintf("%-24s %s %s: llf %.8f, %.1f s", model[[1]], model[[2]], reml, logLik(fit),
                    proc.time()[["elapsed"]] - started))
    describe_fit(fit, data, model[[2]], with_ranef)
  })
  c(list(data = model[[1]], formula = model[[2]], weights = if (is.null(model$weights)) NA else model$weights), methods)
}

small_fits <- lapply(models, fit_model)
one_optimiser <- optimiser_settings["nlminbwrap_tight"]
large_fits <- lapply(large, fit_model, settings = one_optimiser, with_ranef = FALSE)
write_reference("fits", fits = c(small_fits, large_fits), optimisers = names(optimiser_settings))
