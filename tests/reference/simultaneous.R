# Writes simultaneous.json: multivariate-t probabilities and quantiles from mvtnorm at tight tolerances, comparisons of
# emmeans with adjust = "mvt" (pairs, and against a control), and Hsu's comparisons with the best from mvtnorm's
# one-sided quantiles.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({
  library(emmeans)
  library(mvtnorm)
})
set.seed(20240601)
# mvtnorm 1.1 reports an error estimate with 99 % confidence: ask for 1e-6 and record what it says
tight <- GenzBretz(maxpts = 5e6, abseps = 1e-6, releps = 0)

# ---------------------------------------------------------------- probabilities of given correlations

one_factor <- function(b) {
  R <- outer(b, b)
  diag(R) <- 1
  R
}
pair_correlation <- function(variances) {
  k <- length(variances)
  index <- combn(k, 2)
  L <- matrix(0, ncol(index), k)
  L[cbind(seq_len(ncol(index)), index[1, ])] <- 1
  L[cbind(seq_len(ncol(index)), index[2, ])] <- -1
  cov2cor(L %*% diag(variances) %*% t(L))
}
toeplitz_correlation <- toeplitz(c(1, 0.6, 0.3, 0.1, -0.1))

families <- list(
  dunnett_balanced_3 = one_factor(rep(sqrt(0.5), 3)),
  dunnett_unbalanced_5 = one_factor(c(0.3, 0.5, 0.7, 0.8, 0.2)),
  pairs_unequal_3 = pair_correlation(c(1, 2, 5)),
  pairs_unequal_4 = pair_correlation(c(1, 2, 0.5, 1.5)),
  toeplitz_5 = toeplitz_correlation
)

describe_family <- function(name) {
  R <- families[[name]]
  m <- nrow(R)
  rows <- expand.grid(c = c(-0.5, 0.7, 1.5, 2.2, 3, 4.5), df = c(3, 20, 0), alternative = c("two-sided", "greater"),
                      stringsAsFactors = FALSE)
  rows <- rows[rows$alternative == "greater" | rows$c > 0, ]
  values <- lapply(seq_len(nrow(rows)), function(i) {
    at <- rows$c[i]
    lower <- if (rows$alternative[i] == "greater") rep(-Inf, m) else rep(-at, m)
    pmvt(lower, rep(at, m), df = rows$df[i], corr = R, algorithm = tight)
  })
  rows$p_upper <- 1 - vapply(values, as.numeric, 0)
  rows$error <- vapply(values, function(v) attr(v, "error"), 0)
  rows$df[rows$df == 0] <- Inf # 0 is mvtnorm's word for the normal distribution
  list(name = name, correlation = R, probabilities = rows)
}

# ---------------------------------------------------------------- emmeans

crossed <- "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
models <- list(
  list("cake", "angle ~ recipe + temperature + (1|recipe:replicate)", "temperature"),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)", "recipe"),
  list("bench_unbalanced", paste("y ~ algorithm +", crossed), "algorithm"),
  list("bench_prior_unbalanced", paste("y ~ algorithm * prior +", crossed), "algorithm")
)

# emmeans hands mvtnorm whole degrees of freedom, so these are taken at df = Inf and at one whole number
comparisons <- function(em, df) {
  em@dffun <- function(k, dfargs) dfargs$df
  em@dfargs <- list(df = df)
  both <- list(pairs = contrast(em, "pairwise"), control = contrast(em, "trt.vs.ctrl", ref = 1))
  lapply(both, function(object) {
    tests <- as.data.frame(summary(object, infer = c(TRUE, TRUE), level = 0.95, adjust = "mvt"))
    bounds <- grep("^(lower|upper|asymp)\\.", names(tests), value = TRUE)
    ratio <- grep("\\.ratio$", names(tests), value = TRUE)
    data.frame(
      contrast = as.character(tests$contrast), estimate = tests$estimate, se = tests$SE, t_ratio = tests[[ratio]],
      p_value = tests$p.value, ci_low = tests[[bounds[1]]], ci_high = tests[[bounds[2]]]
    )
  })
}

describe_model <- function(model) {
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE)
  em <- suppressMessages(emmeans(fit, model[[3]], data = data, lmer.df = "asymptotic"))
  list(
    data = model[[1]], formula = model[[2]], specs = model[[3]],
    asymptotic = comparisons(em, Inf), df_12 = comparisons(em, 12)
  )
}

# ---------------------------------------------------------------- the best

# Hsu (1996), section 4.1, larger is better: means, variances of independent means, df
best_table <- function(mean, variance, df, alpha) {
  k <- length(mean)
  critical <- vapply(seq_len(k), function(i) {
    b <- sqrt(variance[i] / (variance[i] + variance[-i]))
    qmvt(1 - alpha, tail = "lower.tail", df = df, corr = one_factor(b), algorithm = tight, abseps = 1e-6)$quantile
  }, 0)
  se <- sqrt(outer(variance, variance, "+"))
  difference <- outer(mean, mean, "-")
  upper <- vapply(seq_len(k), function(i) max(0, min(difference[i, -i] + critical[i] * se[i, -i])), 0)
  candidates <- which(upper > 0)
  lower <- vapply(seq_len(k), function(i) {
    others <- setdiff(candidates, i)
    if (!length(others)) 0 else min(vapply(others, function(j) min(0, difference[i, j] - critical[j] * se[i, j]), 0))
  }, 0)
  data.frame(mean = mean, variance = variance, critical = critical, ci_low = lower, ci_high = upper)
}

best <- list(
  list(df = 20, alpha = 0.05, table = best_table(c(1.0, 1.3, 2.2, 2.0, 0.2), c(0.1, 0.2, 0.15, 0.05, 0.3), 20, 0.05)),
  list(df = 8, alpha = 0.1, table = best_table(c(4.0, 1.3, 2.2, 2.0), rep(0.1, 4), 8, 0.1)),
  list(df = 15, alpha = 0.05, table = best_table(c(3.0, 3.0, 2.5, 1.0), c(0.3, 0.1, 0.1, 0.2), 15, 0.05))
)

write_reference(
  "simultaneous",
  mvtnorm = as.character(packageVersion("mvtnorm")),
  families = lapply(names(families), describe_family),
  models = lapply(models, describe_model),
  best = best
)
