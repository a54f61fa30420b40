# F-tests of types I and II by lmerTest, of type II by car, and likelihood-ratio tests of random terms by ranova.
# Writes anova.json.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(lmerTest)
  library(car)
})

models <- list(
  list("cake", "angle ~ recipe * temp + (1|recipe:replicate)"),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)"),
  list("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark) + (1|benchmark:algorithm)"),
  list("bench_prior_unbalanced", "y ~ algorithm * prior + fidelity + (1|benchmark) + (1|benchmark:algorithm)"),
  list("bench_prior_unbalanced", "y ~ fidelity + prior / algorithm + (1|benchmark)"),
  list("bench_prior", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)"),
  list("nested_slopes", "y ~ x * treatment + (x|a) + (1|a:b)"),
  list("rank_deficient", "y ~ a * b + x + (1|g)"),
  list("sleepstudy_weights", "Reaction ~ Days + I(Days^2) + (Days|Subject)", weights = "w")
)

anova_table <- function(fit, type, ddf) {
  table <- anova(fit, type = type, ddf = ddf)
  data.frame(
    term = sub("I(Days^2)", "I(Days ** 2)", rownames(table), fixed = TRUE), num_df = table[["NumDF"]],
    den_df = table[["DenDF"]], f = table[["F value"]], p_value = table[["Pr(>F)"]]
  )
}

car_table <- function(fit) {
  table <- tryCatch(suppressWarnings(Anova(fit, type = 2, test.statistic = "F")), error = function(e) NULL)
  if (is.null(table)) return(NULL)
  data.frame(term = rownames(table), num_df = table[["Df"]], den_df = table[["Df.res"]], f = table[["F"]],
             p_value = table[["Pr(>F)"]])
}

describe <- function(model) {
  message(model[[1]], ": ", model[[2]])
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE, model$weights)
  weighted <- !is.null(model$weights)
  out <- list(
    data = model[[1]], formula = gsub("^", "**", model[[2]], fixed = TRUE),
    weights = if (weighted) model$weights else NA,
    type_1 = list(satterthwaite = anova_table(fit, 1, "Satterthwaite")),
    type_2 = list(satterthwaite = anova_table(fit, 2, "Satterthwaite"))
  )
  if (!weighted) {  # pbkrtest ignores weights
    out$type_1$kenward_roger <- anova_table(fit, 1, "Kenward-Roger")
    out$type_2$kenward_roger <- anova_table(fit, 2, "Kenward-Roger")
    if (model[[1]] == "bench_prior") out$car <- car_table(fit)
  }
  out
}

random <- list(
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy", "Reaction ~ Days + (Days||Subject)"),
  list("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  list("nested_slopes", "y ~ treatment * x + (x|a) + (1|a:b)"),
  list("cake", "angle ~ recipe * temp + (1|recipe:replicate)"),
  list("bench", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)")
)

describe_random <- function(model) {
  message(model[[1]], ": ", model[[2]])
  data <- read_input(model[[1]])
  rows <- lapply(c(ML = FALSE, REML = TRUE), function(reml) {
    tight <- lenient(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 100000))
    fit <- do.call(lmerTest::lmer, list(formula = as.formula(model[[2]]), data = data, REML = reml, control = tight))
    table <- suppressMessages(ranova(fit, reduce.terms = FALSE))
    reduced <- suppressMessages(ranova(fit))
    part <- function(t) data.frame(
      term = rownames(t)[-1], n_params = t$npar[-1], llf = t$logLik[-1], statistic = t$LRT[-1], df = t$Df[-1],
      p_value = t[["Pr(>Chisq)"]][-1]
    )
    list(dropped = part(table), reduced = part(reduced))
  })
  c(list(data = model[[1]], formula = model[[2]]), rows)
}

write_reference("anova", models = lapply(models, describe), random = lapply(random, describe_random))
