# Writes influence.json: models refitted by lme4 without one level of a group at a time, each at lme4's best point;
# Cook's distances and DFBETAS by their formulas from these refits; and lme4's own influence.merMod beside them.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(lmerTest)
})
emm_options(lmerTest.limit = Inf, pbkrtest.limit = Inf)

few <- optimiser_settings[c("bobyqa", "nlminbwrap_tight")]
crossed <- "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"

# data, formula, group, factor whose means are compared (or NULL), weights, REML
models <- list(
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)", "Subject", NULL, NULL, TRUE),
  list("sleepstudy_weights", "Reaction ~ Days + (1|Subject)", "Subject", NULL, "w", FALSE),
  list("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:seed)", "benchmark", "algorithm", NULL, TRUE),
  list("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:seed)", "seed", "algorithm", NULL, TRUE),
  list("bench_unbalanced", "y ~ algorithm + benchmark + (1|benchmark:seed)", "benchmark", "algorithm", NULL, TRUE),
  list("bench_prior_unbalanced", paste("y ~ algorithm * prior + fidelity +", crossed), "benchmark", "algorithm", NULL, TRUE),
  list("nested_slopes", "y ~ treatment + x + (1|a) + (1|a:b)", "a", "treatment", NULL, TRUE)
)

comparisons <- function(fit, specs) {
  if (is.null(specs)) return(NULL)
  means <- suppressMessages(emmeans(fit, specs, lmer.df = "satterthwaite", data = model.frame(fit)))
  table <- suppressMessages(summary(pairs(means, adjust = "tukey")))
  names <- strsplit(as.character(table$contrast), " - ", fixed = TRUE)
  data.frame(
    left = vapply(names, `[`, "", 1), right = vapply(names, `[`, "", 2), estimate = table$estimate,
    se = table$SE, df = table$df, p_value = table$p.value
  )
}

fit_without <- function(data, formula, weights, reml) fit_best(as.formula(formula), data, reml, weights, few)

describe <- function(fit, data, formula, specs) {
  list(
    llf = as.numeric(logLik(fit)), residual_variance = sigma(fit)^2, fixef = describe_fixef(fit, data),
    varcorr = describe_varcorr(fit, data, formula), pairs = comparisons(fit, specs)
  )
}

# The influence object of lme4, from its default optimiser. Its Cook's distances carry the factor
# (levels - p) / levels where the textbook form has 1.
witness <- function(data, formula, group, weights, reml) {
  args <- list(formula = as.formula(formula), data = data, REML = reml)
  if (!is.null(weights)) args$weights <- as.name(weights)
  # called by name, so that update() finds formula and data again
  fit <- suppressMessages(eval(as.call(c(quote(lme4::lmer), args)), list(), globalenv()))
  found <- suppressMessages(influence(fit, groups = group, data = data))
  list(levels = I(as.character(found$deleted)), cooks_distance = I(unname(cooks.distance(found))),
       dfbetas = unname(dfbetas(found)))
}

one_model <- function(name, formula, group, specs, weights, reml) {
  data <- read_input(name)
  whole <- fit_without(data, formula, weights, reml)
  V <- as.matrix(vcov(whole))
  b <- fixef(whole)
  levels <- levels(data[[group]])
  without <- lapply(levels, function(level) {
    rest <- droplevels(data[data[[group]] != level, ])
    fit <- fit_without(rest, formula, weights, reml)
    out <- c(list(level = level, n_rows = sum(data[[group]] == level)), describe(fit, rest, formula, specs))
    if (identical(names(fixef(fit)), names(b))) {
      change <- fixef(fit) - b
      se <- sqrt(diag(as.matrix(vcov(fit))))
      out$cooks_distance <- as.numeric(change %*% solve(V, change)) / length(b)
      out$dfbetas <- I(unname(change / se))
      out$covratio <- det(as.matrix(vcov(fit))) / det(V)
    }
    out
  })
  cat(name, formula, group, "\n")
  fixed_group <- group %in% all.vars(nobars(as.formula(formula)))
  c(list(data = name, formula = formula, group = group, specs = specs, weights = weights, reml = reml,
         whole = describe(whole, data, formula, specs), without = without),
    if (!fixed_group) list(lme4 = witness(data, formula, group, weights, reml)))
}

results <- lapply(models, function(m) do.call(one_model, m))
write_reference("influence", models = results, optimisers = names(few))
