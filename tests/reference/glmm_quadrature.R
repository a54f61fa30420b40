# Writes glmm_quadrature.json: generalised mixed models with intercepts of one factor by lme4 (glmer) with 25 nodes of
# adaptive Gauss-Hermite quadrature. cbpp is published (Lesnoff & al. 2004); women of districts who use contraception or
# not, and counts, are drawn with a fixed seed.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(lme4))
RNGversion("4.0.0")
set.seed(20261128)

women <- data.frame(district = factor(rep(1:60, sample(2:50, 60, replace = TRUE))))
women$urban <- rbinom(nrow(women), 1, 0.3)
women$age <- round(runif(nrow(women), -1, 1), 2)
women$y <- rbinom(nrow(women), 1, plogis(-0.8 + 0.7 * women$urban - 0.4 * women$age^2 + 0.9 * rnorm(60)[women$district]))

few <- expand.grid(visit = 1:3, patient = factor(1:40), stringsAsFactors = FALSE)
few$y <- rpois(nrow(few), exp(-0.3 - 0.2 * few$visit + 0.9 * rnorm(40)[few$patient]))

cbpp <- data.frame(y = lme4::cbpp$incidence, n = lme4::cbpp$size, model = lme4::cbpp$period, herd = lme4::cbpp$herd)

one <- function(name, formula, of_lme4, data, family, trials = NULL) {
  fit <- glmer(of_lme4, data, family, nAGQ = 25, control = glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e5, rhoend = 1e-9)))
  # glmer's log-likelihood of several nodes lacks the constant of the counts, which logLik of one node has
  list(name = name, formula = formula, data = as.list(data), family = family$family, trials = trials,
       fixef = unname(fixef(fit)), se = unname(sqrt(diag(as.matrix(vcov(fit))))), sd = unname(attr(VarCorr(fit)[[1]], "stddev")),
       deviance = deviance(fit), llf = as.numeric(logLik(fit)), profile = unname(confint(fit, parm = "beta_", quiet = TRUE)))
}

cases <- list(
  one("women", "y ~ urban + age + (1 | district)", y ~ urban + age + (1 | district), women, binomial()),
  one("cbpp", "y ~ model + (1 | herd)", cbind(y, n - y) ~ model + (1 | herd), cbpp, binomial(), "n"),
  one("few counts", "y ~ visit + (1 | patient)", y ~ visit + (1 | patient), few, poisson())
)
write_reference("glmm_quadrature", cases = cases)
