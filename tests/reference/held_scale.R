# Writes held_scale.json: the best fit at given residual standard deviations (maximum likelihood), from lme4's profile over
# sigma. `drop` is the deviance above that of the fit (the square of the profile's zeta), `sd` the standard deviation of
# the random effects there, `b` the fixed effects.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

profiled <- function(input, formula) {
  fit <- lmer(as.formula(formula), read_input(input), REML = FALSE,
              control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e5)))
  table <- as.data.frame(profile(fit, which = ".sigma", devtol = 1e-8, delta = 0.8))
  table <- table[table$.par == ".sigma" & is.finite(table$.zeta), ]
  fixed <- setdiff(names(table), c(".zeta", ".par", ".focal", grep("^\\.sig", names(table), value = TRUE)))
  list(input = input, formula = formula,
       rows = lapply(seq_len(nrow(table)), function(i) list(
         sigma = table$.sigma[i], drop = table$.zeta[i]^2, sd = I(as.numeric(table[i, grep("^\\.sig[0-9]", names(table))])),
         b = I(as.numeric(table[i, fixed])))))
}

write_reference("held_scale", cases = list(
  profiled("Dyestuff", "Yield ~ 1 + (1 | Batch)"),
  profiled("Penicillin", "diameter ~ 1 + (1 | plate) + (1 | sample)")
))
