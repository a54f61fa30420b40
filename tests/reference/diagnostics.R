# Writes diagnostics.json: R2 and ICC by performance (Nakagawa, Johnson & Schielzeth), and generalised variance
# inflation factors by car, on fits of lme4 at the best point of two optimisers, polished.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(performance)
  library(car)
})

models <- list(
  c("sleepstudy", "Reaction ~ Days + (1|Subject)"),
  c("sleepstudy", "Reaction ~ Days + (Days|Subject)"),
  c("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)"),
  c("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  c("Pastes", "strength ~ 1 + (1|batch/cask)"),
  c("cake", "angle ~ recipe + temperature + (1|recipe:replicate)"),
  c("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)"),
  c("categorical_slopes", "y ~ f + x + (1|g)"),
  c("categorical_slopes", "y ~ f + x + (f|g)"),
  c("nested_slopes", "y ~ treatment + x + (x|a) + (1|a:b)"),
  c("nested_slopes", "y ~ treatment * x + (1+x|a/b)"),
  c("bench", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"),
  c("bench_prior_unbalanced", "y ~ algorithm * prior + fidelity + (1|benchmark/algorithm) + (1|benchmark:seed)"),
  c("bench_prior_unbalanced", "y ~ algorithm + prior + fidelity + (1|benchmark) + (1|benchmark:seed)")
)

shares <- function(fit) {
  r2 <- r2_nakagawa(fit, tolerance = 0)
  icc <- icc(fit, tolerance = 0)
  out <- list(
    r2_marginal = unname(r2$R2_marginal), r2_conditional = unname(r2$R2_conditional),
    icc_adjusted = icc$ICC_adjusted, icc_unadjusted = icc$ICC_unadjusted
  )
  if (all(lengths(lme4::ranef(fit)) == 1)) {
    by_group <- icc(fit, by_group = TRUE, tolerance = 0)
    out$by_group <- data.frame(group = by_group$Group, icc = by_group$ICC)
  }
  out
}

inflation <- function(fit) {
  terms <- attr(terms(fit), "term.labels")
  if (length(terms) < 2) return(NULL)
  factors <- suppressMessages(vif(fit))
  if (is.null(dim(factors))) factors <- cbind(GVIF = factors, Df = 1)
  data.frame(term = rownames(factors), gvif = unname(factors[, "GVIF"]), df = unname(factors[, "Df"]))
}

describe <- function(model) {
  message(model[1], " ", model[2])
  data <- read_input(model[1])
  fits <- lapply(c(ML = FALSE, REML = TRUE), function(reml) {
    fit <- fit_best(as.formula(model[2]), data, reml, NULL, optimiser_settings[c("bobyqa_tight", "nlminbwrap_tight")])
    c(shares(fit), list(vif = inflation(fit)))
  })
  c(list(data = model[1], formula = model[2]), fits)
}

write_reference("diagnostics",
  packages = list(
    performance = as.character(packageVersion("performance")), insight = as.character(packageVersion("insight")),
    car = as.character(packageVersion("car"))
  ),
  models = lapply(models, describe)
)
