# Writes lrt.json: likelihood-ratio tests of nested pairs (ML, chi-squared reference), and REML tests of random
# effects where the fixed parts are equal. Log-likelihoods at lme4's best point; the mixtures are
# 1/2 chi2(q) + 1/2 chi2(q + 1) for one variance (q = 0) or a slope added to q effects of a term.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

pair <- function(data, null, alternative, kind, mixture = NULL, weights = NULL) {
  list(data = data, null = null, alternative = alternative, kind = kind, mixture = mixture, weights = weights)
}
bench_random <- "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"

tests <- list(
  pair("sleepstudy", "Reaction ~ 1 + (1|Subject)", "Reaction ~ Days + (1|Subject)", "fixed"),
  pair("sleepstudy", "Reaction ~ 1 + (Days|Subject)", "Reaction ~ Days + (Days|Subject)", "fixed"),
  pair("sleepstudy", "Reaction ~ Days + (1|Subject)", "Reaction ~ Days + (Days|Subject)", "random", mixture = 1),
  pair("sleepstudy", "Reaction ~ Days + (1|Subject)", "Reaction ~ Days + (Days||Subject)", "random", mixture = 0),
  pair("sleepstudy", "Reaction ~ Days + (Days||Subject)", "Reaction ~ Days + (Days|Subject)", "random"),
  pair("sleepstudy", "Reaction ~ 1 + (1|Subject)", "Reaction ~ Days + (Days|Subject)", "both"),
  pair("sleepstudy_weights", "Reaction ~ Days + (1|Subject)", "Reaction ~ Days + (Days|Subject)", "random", 1, "w"),
  pair("Penicillin", "diameter ~ 1 + (1|plate)", "diameter ~ 1 + (1|plate) + (1|sample)", "random", mixture = 0),
  pair("Pastes", "strength ~ 1 + (1|sample)", "strength ~ 1 + (1|sample) + (1|batch)", "random", mixture = 0),
  pair("cake", "angle ~ recipe + temperature + (1|recipe:replicate)",
       "angle ~ recipe * temperature + (1|recipe:replicate)", "fixed"),
  pair("cake", "angle ~ temp + (1|recipe:replicate)", "angle ~ recipe + temp + (1|recipe:replicate)", "fixed"),
  pair("cake", "angle ~ recipe + temp + (1|recipe:replicate)",
       "angle ~ recipe + temperature + (1|recipe:replicate)", "fixed"),
  pair("bench", paste("y ~ 1 +", bench_random), paste("y ~ algorithm +", bench_random), "fixed"),
  pair("bench_unbalanced", paste("y ~ 1 +", bench_random), paste("y ~ algorithm +", bench_random), "fixed"),
  pair("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:seed)", paste("y ~ algorithm +", bench_random),
       "random", mixture = 0),
  pair("bench_prior_unbalanced", paste("y ~ algorithm + prior +", bench_random),
       paste("y ~ algorithm * prior +", bench_random), "fixed"),
  pair("bench_prior_unbalanced", "y ~ algorithm + prior + (1|benchmark)", "y ~ algorithm + prior + (prior|benchmark)",
       "random", mixture = 1),
  pair("nested_slopes", "y ~ treatment + x + (1|a) + (1|a:b)", "y ~ treatment + x + (x|a) + (1|a:b)", "random",
       mixture = 1),
  pair("categorical_slopes", "y ~ f + x + (1|g)", "y ~ f + x + (f|g)", "random"),
  pair("rank_deficient", "y ~ a + b + (1|g)", "y ~ a * b + (1|g)", "fixed")
)

mixture_p <- function(chisq, q) {
  upper <- function(df) if (df == 0) as.numeric(chisq <= 0) else pchisq(chisq, df, lower.tail = FALSE)
  (upper(q) + upper(q + 1)) / 2
}

# anova(m0, m1) itself supplies statistic, df and p, so that its conventions are what is recorded.
compare <- function(test, reml) {
  data <- read_input(test$data)
  fits <- lapply(test[c("null", "alternative")], function(f) fit_best(as.formula(f), data, reml, test$weights))
  plain_fits <- lapply(fits, function(fit) as(fit, "lmerMod"))
  table <- suppressMessages(anova(plain_fits$null, plain_fits$alternative, refit = FALSE))
  statistic <- table[["Chisq"]][2]
  list(
    null_llf = as.numeric(logLik(fits$null)), alternative_llf = as.numeric(logLik(fits$alternative)),
    null_params = table[["npar"]][1], alternative_params = table[["npar"]][2], statistic = statistic,
    df = table[["Df"]][2], p_value = table[["Pr(>Chisq)"]][2],
    p_value_mixture = if (is.null(test$mixture)) NA else mixture_p(statistic, test$mixture),
    alternative_is_singular = isSingular(fits$alternative)
  )
}

results <- lapply(tests, function(test) {
  message(test$null, "  <  ", test$alternative)
  out <- c(test[c("data", "null", "alternative", "kind")], list(
    weights = if (is.null(test$weights)) NA else test$weights,
    mixture = if (is.null(test$mixture)) NA else I(test$mixture + 0:1), ML = compare(test, FALSE)
  ))
  if (test$kind == "random") out$REML <- compare(test, TRUE)
  out
})
write_reference("lrt", tests = results, optimisers = names(optimiser_settings))
