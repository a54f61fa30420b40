# Writes emm.json: marginal means, pairwise comparisons and degrees of freedom from emmeans, lmerTest and
# pbkrtest, each on a REML fit at lme4's best point (see common.R).

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(lmerTest)
  library(pbkrtest)
})

adjustments <- c("tukey", "none", "holm", "bonferroni", "sidak")
df_methods <- c("satterthwaite", "kenward-roger", "asymptotic")
grid <- function(specs, by = NULL, at = NULL, weights = "equal") {
  list(specs = specs, by = by, at = at, weights = weights)
}
crossed <- "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"

models <- list(
  list("sleepstudy", "Reaction ~ Days + (1|Subject)", list(grid("Days"), grid("Days", at = list(Days = 0)))),
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)",
       list(grid("Days"), grid("Days", at = list(Days = 0)), grid("Days", at = list(Days = c(0, 3, 9))))),
  list("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)", list(grid("Days"), grid("Days", at = list(Days = 0)))),
  list("sleepstudy_weights", "Reaction ~ Days + (Days|Subject)", list(grid("Days"), grid("Days", at = list(Days = 0))),
       weights = "w"),
  list("cake", "angle ~ recipe * temperature + (1|recipe:replicate)",
       list(grid("recipe"), grid("temperature"), grid("recipe", by = "temperature"), grid("temperature", by = "recipe"))),
  list("cake", "angle ~ recipe + temperature + (1|recipe:replicate)", list(grid("recipe"), grid("temperature"))),
  list("cake", "angle ~ recipe * temp + (1|recipe:replicate)", list(grid("recipe"), grid("recipe", at = list(temp = 175)))),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)",
       list(grid("recipe"), grid("recipe", weights = "proportional"), grid("recipe", weights = "cells"),
            grid("temperature"), grid("recipe", by = "temperature"))),
  list("bench", paste("y ~ algorithm +", crossed), list(grid("algorithm"))),
  list("bench", paste("y ~ algorithm + fidelity +", crossed), list(grid("algorithm"))),
  list("bench_unbalanced", paste("y ~ algorithm +", crossed), list(grid("algorithm"))),
  list("bench_unbalanced", paste("y ~ algorithm * fidelity +", crossed),
       list(grid("algorithm"), grid("algorithm", at = list(fidelity = 10)))),
  list("bench_prior", paste("y ~ algorithm * prior +", crossed),
       list(grid("algorithm"), grid("algorithm", by = "prior"), grid("prior", by = "algorithm"),
            grid(c("algorithm", "prior")))),
  list("bench_prior_unbalanced", paste("y ~ algorithm * prior +", crossed),
       list(grid("algorithm"), grid("algorithm", weights = "proportional"), grid("algorithm", weights = "cells"),
            grid("algorithm", by = "prior"), grid("prior"), grid(c("algorithm", "prior")))),
  list("bench_prior_unbalanced", paste("y ~ algorithm * prior + fidelity +", crossed),
       list(grid("algorithm"), grid("algorithm", weights = "proportional"), grid("algorithm", weights = "cells"),
            grid("algorithm", by = "prior"), grid("algorithm", by = "prior", at = list(fidelity = 40)))),
  list("bench_prior_unbalanced", "y ~ algorithm + prior + (1 + prior|benchmark)",
       list(grid("algorithm"), grid("algorithm", weights = "proportional"), grid("prior"))),
  list("nested_slopes", "y ~ treatment + x + (x|a) + (1|a:b)",
       list(grid("treatment"), grid("treatment", at = list(x = 0)))),
  list("nested_slopes", "y ~ treatment * x + (x|a) + (1|a:b)",
       list(grid("treatment"), grid("treatment", weights = "proportional"), grid("treatment", at = list(x = 0)))),
  list("categorical_slopes", "y ~ f + x + (0+f|g)", list(grid("f"), grid("f", at = list(x = 1)))),
  list("categorical_slopes", "y ~ f * x + (x|g) + (1|f:g)", list(grid("f"), grid("f", at = list(x = 1)))),
  list("rank_deficient", "y ~ a * b + (1|g)", list(grid("a"), grid("b"), grid("a", by = "b"))),
  list("rank_deficient", "y ~ a * b + x + (1|g)", list(grid("a"), grid("a", weights = "cells"), grid("a", by = "b")))
)

# ---------------------------------------------------------------- tables with stable names

plain <- function(columns) lapply(columns, function(x) if (is.factor(x)) as.character(x) else x)

means_table <- function(em, keys) {
  rows <- as.data.frame(confint(em, level = 0.95, adjust = "none"))
  bounds <- grep("^(lower|upper|asymp)\\.", names(rows), value = TRUE)
  statistics <- c(emmean = "emmean", se = "SE", df = "df", ci_low = bounds[1], ci_high = bounds[2])
  data.frame(plain(rows[keys]), setNames(rows[statistics], names(statistics)), check.names = FALSE)
}

# The pairs in emmeans' order, (1, 2), (1, 3), ..., (2, 3), ...; its own labels change with the package version.
# Levels of several factors are joined by a space.
pairs_table <- function(em, means, specs, by, adjust) {
  tests <- as.data.frame(summary(pairs(em, adjust = adjust), infer = c(TRUE, TRUE), level = 0.95, adjust = adjust))
  bounds <- grep("^(lower|upper|asymp)\\.", names(tests), value = TRUE)
  ratio <- grep("\\.ratio$", names(tests), value = TRUE)
  groups <- if (length(by)) interaction(tests[by]) else factor(rep("all", nrow(tests)))
  labels <- unique(do.call(paste, plain(means[specs])))
  both <- combn(labels, 2)
  stopifnot(nrow(tests) == ncol(both) * nlevels(droplevels(groups)))
  data.frame(c(plain(tests[by]), list(
    left = rep(both[1, ], length.out = nrow(tests)), right = rep(both[2, ], length.out = nrow(tests)),
    estimate = tests$estimate, se = tests$SE, df = tests$df, t_ratio = tests[[ratio]], p_value = tests$p.value,
    ci_low = tests[[bounds[1]]], ci_high = tests[[bounds[2]]]
  )), check.names = FALSE)
}

describe_grid <- function(fit, data, request) {
  by_method <- lapply(setNames(df_methods, df_methods), function(method) {
    em <- suppressMessages(emmeans(
      fit, request$specs, by = request$by, at = request$at, weights = request$weights, data = data, lmer.df = method
    ))
    means <- means_table(em, c(request$by, request$specs))
    if (nrow(means) / max(1, nrow(unique(means[request$by]))) < 2) return(list(means = means))
    used <- if (method == "satterthwaite") adjustments else "tukey"
    list(means = means, pairs = lapply(setNames(used, used), function(adjust) {
      pairs_table(em, means, request$specs, request$by, adjust)
    }))
  })
  names(by_method) <- sub("-", "_", names(by_method))
  at <- if (is.null(request$at)) setNames(list(), character()) else lapply(request$at, I)
  c(list(specs = I(request$specs), by = I(as.character(request$by)), at = at, weights = request$weights), by_method)
}

anova_table <- function(fit, ddf) {
  table <- tryCatch(anova(fit, type = 3, ddf = ddf), error = function(e) NULL)
  if (is.null(table)) return(NULL)
  data.frame(
    term = rownames(table), sum_sq = table[["Sum Sq"]], num_df = table[["NumDF"]], den_df = table[["DenDF"]],
    f = table[["F value"]], p_value = table[["Pr(>F)"]]
  )
}

coefficient_table <- function(fit, data, ddf) {
  table <- coef(summary(fit, ddf = ddf))
  data.frame(
    name = python_names(rownames(table), data), estimate = table[, "Estimate"], se = table[, "Std. Error"],
    df = table[, "df"], t_ratio = table[, "t value"], p_value = table[, "Pr(>|t|)"]
  )
}

describe_model <- function(model) {
  message(model[[1]], ": ", model[[2]])
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE, model$weights)
  adjusted <- as.matrix(vcovAdj(fit))
  list(
    data = model[[1]], formula = model[[2]], weights = if (is.null(model$weights)) NA else model$weights,
    reml = TRUE, llf = as.numeric(logLik(fit)), is_singular = isSingular(fit),
    coefficients = list(
      satterthwaite = coefficient_table(fit, data, "Satterthwaite"),
      kenward_roger = coefficient_table(fit, data, "Kenward-Roger")
    ),
    kenward_roger_vcov = adjusted,
    anova = list(satterthwaite = anova_table(fit, "Satterthwaite"), kenward_roger = anova_table(fit, "Kenward-Roger")),
    grids = lapply(model[[3]], function(request) describe_grid(fit, data, request))
  )
}

results <- lapply(models, describe_model)
write_reference("emm", level = 0.95, models = results, optimisers = names(optimiser_settings))
