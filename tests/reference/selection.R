# Writes selection.json: log-likelihood, AIC, BIC and number of parameters of models by maximum likelihood, which a
# selection of terms compares. Log-likelihoods at lme4's best point.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

start <- "y ~ algorithm + (1|benchmark)"
models <- c(
  start,
  paste(start, "+ (1|benchmark:algorithm)"),
  paste(start, "+ (1|benchmark:prior)"),
  paste(start, "+ prior"),
  paste(start, "+ prior + algorithm:prior"),
  paste(start, "+ (1|benchmark:algorithm) + (1|benchmark:prior) + (1|benchmark:prior:algorithm)"),
  "y ~ algorithm + prior + (1 + prior|benchmark)",
  "y ~ algorithm + prior + (1 + prior|benchmark) + (1|benchmark:algorithm) + (1|benchmark:prior:seed)"
)
of_model <- function(name, text) {
  message(name, ": ", text)
  fit <- fit_best(as.formula(text), read_input(name), FALSE)
  fit <- as(fit, "lmerMod")
  list(data = name, formula = text, llf = as.numeric(logLik(fit)), n_params = attr(logLik(fit), "df"), aic = AIC(fit),
       bic = BIC(fit), n_obs = nobs(fit), singular = isSingular(fit))
}
names <- c("bench_prior", "bench_prior_unbalanced")
results <- unlist(lapply(names, function(name) lapply(models, of_model, name = name)), recursive = FALSE)
write_reference("selection", models = results, optimisers = names(optimiser_settings))
