# Writes dispersion.json: models with one residual variance per group, fitted by nlme's lme with varIdent.
#
# nlme estimates ratios of standard deviations and keeps random effects nested, so the models here have one grouping
# factor or a chain of nested ones.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(nlme))

control <- lmeControl(maxIter = 500, msMaxIter = 2000, tolerance = 1e-12, msTol = 1e-14, returnObject = TRUE)

fit_one <- function(name, formula, fixed, random, group) {
  data <- read_input(name)
  data[[group]] <- factor(data[[group]])
  methods <- lapply(c(ML = "ML", REML = "REML"), function(method) {
    fit <- lme(fixed, data = data, random = random, method = method, control = control,
               weights = varIdent(form = as.formula(paste("~ 1 |", group))))
    ratios <- coef(fit$modelStruct$varStruct, unconstrained = FALSE, allCoef = TRUE)
    table <- summary(fit)$tTable
    list(llf = as.numeric(logLik(fit)), n_params = attr(logLik(fit), "df"),
         fixef = lapply(seq_len(nrow(table)), function(i) list(estimate = table[i, "Value"], se = table[i, "Std.Error"])),
         residual_variances = I(unname((sigma(fit) * ratios[levels(data[[group]])])^2)))
  })
  c(list(data = name, formula = formula, dispersion = group), methods)
}

results <- list(
  fit_one("bench", "y ~ algorithm + (1|benchmark)", y ~ algorithm, ~ 1 | benchmark, "benchmark"),
  fit_one("bench_unbalanced", "y ~ algorithm + (1|benchmark)", y ~ algorithm, ~ 1 | benchmark, "algorithm"),
  fit_one("bench_unbalanced", "y ~ algorithm + (1|benchmark/seed)", y ~ algorithm, ~ 1 | benchmark/seed, "benchmark"),
  fit_one("sleepstudy", "Reaction ~ Days + (Days|Subject)", Reaction ~ Days, ~ Days | Subject, "Subject"),
  fit_one("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark)", y ~ algorithm * prior, ~ 1 | benchmark, "prior"),
  fit_one("nested_slopes", "y ~ treatment + x + (x|a)", y ~ treatment + x, ~ x | a, "treatment")
)
write_reference("dispersion", fits = results)
