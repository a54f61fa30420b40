# Writes inputs/generated.csv.gz and generated.json: simulated models of many shapes, and the best log-likelihood
# that lme4 reaches over its optimisers, each at its default and at a tight tolerance, from lme4's own start.
#
# lme4 works on cross-products of the columns as given, so for x with a large offset its own log-likelihood carries
# rounding error. Every end point is therefore evaluated again with a dense covariance matrix and a QR
# decomposition of X; `llf` is the largest of these values and `lme4_rounding` how far lme4's own number is off.
# `multistart_llf` is the best from five more starts as well: a harder bar than what lme4 itself reaches.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
RNGversion("4.0.0")
set.seed(421)

# ---------------------------------------------------------------- data

label <- function(prefix, i) sprintf("%s%02d", prefix, i)

# Crossed g x h with `reps` rows per cell, f drawn at random, y with the given standard deviations. Slopes of x
# and effects of f vary over g; `keep` is the share of rows that survive.
simulate <- function(groups = 8, inner = 5, reps = 2, levels = 3, keep = 1, sd_g = 1, sd_h = 0.7, sd_gh = 0,
                     sd_x = 0, sd_f = 0, sd_e = 1, correlation = 0.3, nested = FALSE, rows = NULL) {
  data <- expand.grid(rep = seq_len(reps), h = label("h", seq_len(inner)), g = label("g", seq_len(groups)),
                      stringsAsFactors = FALSE)
  if (keep < 1) data <- data[sort(sample(nrow(data), ceiling(keep * nrow(data)))), ]
  if (!is.null(rows)) data <- data[sort(sample(nrow(data), min(rows, nrow(data)))), ]
  n <- nrow(data)
  data$f <- sample(rep_len(letters[15 + seq_len(levels)], n))
  data$x <- signif(rnorm(n), 4)
  by <- function(key, sd) { keys <- unique(key); setNames(rnorm(length(keys), 0, sd), keys)[key] }
  g_effect <- by(data$g, 1)
  h_key <- if (nested) paste(data$g, data$h) else data$h
  slope <- correlation * g_effect + sqrt(1 - correlation^2) * by(data$g, 1)
  data$y <- 3 + 0.5 * data$x + match(data$f, letters) / 10 + sd_g * g_effect + by(h_key, sd_h) +
    by(paste(data$g, data$h), sd_gh) + sd_x * slope * data$x + by(paste(data$g, data$f), sd_f) + rnorm(n, 0, sd_e)
  rownames(data) <- NULL
  data
}

models <- list()
add <- function(shape, formula, ..., x = identity, y = identity) {
  data <- simulate(...)
  # Rounding comes last, so that what is fitted is what the file says.
  data$x <- signif(x(data$x), 10)
  data$y <- signif(y(data$y), 7)
  models[[length(models) + 1]] <<- list(
    id = sprintf("m%03d", length(models) + 1), shape = shape, formula = formula, data = data[c("y", "x", "f", "g", "h")]
  )
}
times <- function(n, expression) {
  call <- substitute(expression)
  for (i in seq_len(n)) eval(call, list(i = i), parent.frame())
}

# ---------------------------------------------------------------- shapes

times(6, add("crossed", "y ~ x + (1|g) + (1|h)", groups = 6 + i, inner = 3 + i))
times(5, add("crossed", "y ~ f * x + (1|g) + (1|h) + (1|g:h)", groups = 6, inner = 4 + i, reps = 3, sd_gh = i / 4))
times(3, add("crossed", "y ~ f + (1|g) + (1|h) + (1|f)", groups = 10, inner = 6, levels = 5, sd_h = i / 3))
times(5, add("nested", "y ~ x + (1|g/h)", groups = 6 + i, inner = 4, nested = TRUE, sd_h = i / 3))
times(4, add("nested", "y ~ f + (1|g) + (1|g:h)", groups = 9, inner = 3, reps = 3, nested = TRUE, keep = 0.7))
times(3, add("nested", "y ~ x + (x|g/h)", groups = 8, inner = 3, reps = 5, nested = TRUE, sd_x = 0.5))
times(5, add("slopes", "y ~ x + (x|g)", groups = 8 + 2 * i, sd_x = i / 5, correlation = 0.3 * (i - 3)))
times(3, add("slopes", "y ~ x + (x||g)", groups = 12, sd_x = i / 4, correlation = 0))
times(2, add("slopes", "y ~ f + (0+x|g)", groups = 12, sd_g = 0, sd_x = i / 2))
times(3, add("slopes", "y ~ x + (x|g) + (1|h)", groups = 10, inner = 6, sd_x = 0.6))
times(2, add("slopes", "y ~ x + (x|g) + (x|h)", groups = 9, inner = 8, sd_x = 0.5))
times(2, add("slopes", "y ~ x + I(x^2) + (x + I(x^2)|g)", groups = 12, inner = 5, reps = 3, sd_x = 0.5))
times(4, add("categorical slopes", "y ~ f + (f|g)", groups = 10, inner = 6, sd_f = i / 3))
times(4, add("categorical slopes", "y ~ f + (0+f|g)", groups = 10, inner = 6, sd_f = i / 3, keep = 0.8))
times(3, add("categorical slopes", "y ~ f + (1+f||g)", groups = 12, inner = 5, sd_f = i / 3))
times(3, add("categorical slopes", "y ~ f + x + (f|g) + (1|h)", groups = 9, inner = 7, sd_f = 0.8))
times(2, add("categorical slopes", "y ~ f + x + (f + x|g)", groups = 10, inner = 6, reps = 3, sd_f = 0.8, sd_x = 0.5))
times(1, add("categorical slopes", "y ~ f * x + (f * x|g)", groups = 10, inner = 6, reps = 3, levels = 2, sd_f = 1, sd_x = 0.7))
times(2, add("categorical slopes", "y ~ f + (f|g)", groups = 12, inner = 6, reps = 3, levels = 5, sd_f = 0.9))
times(5, add("unbalanced", "y ~ x + (1|g) + (1|h)", groups = 12, inner = 8, keep = 0.1 + 0.1 * i))
times(4, add("unbalanced", "y ~ f * x + (x|g) + (1|h)", groups = 11, inner = 7, keep = 0.4 + 0.1 * i, sd_x = 0.5))
times(4, add("unbalanced", "y ~ f + (1|g) + (1|h) + (1|g:h)", groups = 9, inner = 7, keep = 0.5, sd_gh = 0.6, reps = 4))
times(2, add("unbalanced", "y ~ f + (1|g) + (f|h)", groups = 10, inner = 8, keep = 0.6, reps = 3, sd_f = 0.5))
times(4, add("singular", "y ~ x + (1|g)", sd_g = 0, sd_h = 0))
times(4, add("singular", "y ~ x + (x|g)", sd_x = 0.3, correlation = c(1, -1, 1, -1)[i], groups = 6 + i))
times(4, add("singular", "y ~ f + (f|g)", sd_f = 0, groups = 7))
times(4, add("singular", "y ~ x + (1|g) + (1|h) + (1|g:h)", sd_h = c(0, 0.6, 0, 0.02)[i], sd_g = c(0.6, 0, 0, 0.6)[i], groups = 7))
times(2, add("singular", "y ~ x + (x|g) + (x|h)", sd_x = 0, groups = 7, inner = 6))
times(2, add("singular", "y ~ f + (f|g) + (1|h)", sd_f = 0.1, sd_h = 0, levels = 4, groups = 6, inner = 6))
times(5, add("tiny", "y ~ 1 + (1|g)", groups = 4, inner = 2, reps = 2, rows = 7 + i))
times(5, add("tiny", "y ~ x + (1|g)", groups = 4, inner = 2, reps = 2, rows = 9 + i, levels = 2))
times(3, add("tiny", "y ~ x + (x|g)", groups = 3, inner = 5, reps = 1, rows = 12 + i, levels = 2, sd_x = 0.5))
times(3, add("tiny", "y ~ f + (1|g) + (1|h)", groups = 4, inner = 4, reps = 1, rows = 12 + i, levels = 2))
times(3, add("wide scale", "y ~ x + (x|g)", sd_x = 0.5, groups = 12, y = function(y) y * 10^(c(-6, 3, 6)[i])))
times(5, add("wide scale", "y ~ x + (x|g)", sd_x = 0.5, groups = 12, x = function(x) x * 10^(c(-6, -3, 2, 4, 6)[i])))
times(4, add("wide scale", "y ~ x + (1|g)", groups = 12, x = function(x) x + 10^(i + 1)))
times(3, add("wide scale", "y ~ x + (x|g)", sd_x = 0.5, groups = 12, x = function(x) x + 10^i))
times(3, add("wide scale", "y ~ x + (x|g) + (1|h)", sd_x = 0.5, groups = 12, inner = 6,
             x = function(x) x * 10^(6 - 3 * i), y = function(y) y * 10^(3 * i - 6)))
times(2, add("wide scale", "y ~ f + x + (1|g) + (1|h)", y = function(y) 10^(2 * i) + y))
times(4, add("variance ratio", "y ~ x + (1|g)", sd_g = 10^(i - 1), sd_h = 0, sd_e = 0.3))
times(3, add("variance ratio", "y ~ x + (1|g) + (1|h)", sd_g = 10^i, sd_h = 10^(1 - i)))
times(3, add("variance ratio", "y ~ x + (x|g)", sd_g = 10^(i - 1), sd_x = 10^(2 - i), groups = 12))
times(2, add("variance ratio", "y ~ f + (1|g/h)", sd_g = 100, sd_h = 10^(-i), sd_e = 1, nested = TRUE, reps = 4))
times(2, add("variance ratio", "y ~ f + (f|g)", sd_g = 20, sd_f = 10^(2 - 2 * i), reps = 3))
# Few rows make likelihoods with two optima, one of them at zero (m105 has one): more of them.
times(12, add("tiny", "y ~ x + (1|g)", groups = 4, inner = 2, reps = 2, rows = 9 + i %% 6, levels = 2, sd_h = 0))
times(8, add("tiny", "y ~ x + f + (1|g)", groups = 5, inner = 3, reps = 1, rows = 10 + i %% 5, levels = 2, sd_g = 0.6))
times(6, add("tiny", "y ~ x + (1|g) + (1|h)", groups = 4, inner = 4, reps = 1, rows = 10 + i %% 5, levels = 2))
times(4, add("tiny", "y ~ 1 + (x|g)", groups = 3, inner = 5, reps = 1, rows = 11 + i, levels = 2, sd_x = 0.7))

# ---------------------------------------------------------------- log-likelihood without cross-products

dense_llf <- function(problem, theta, y, reml) {
  rho <- environment(problem$devfun)
  problem$devfun(theta)
  half <- as.matrix(crossprod(problem$Zt, t(rho$pp$Lambdat)))
  V <- diag(length(y)) + tcrossprod(half)
  R <- chol(V)
  qr_x <- qr(problem$X, LAPACK = FALSE, tol = 0)
  Q <- qr.Q(qr_x)
  white_q <- backsolve(R, Q, transpose = TRUE)
  white_y <- backsolve(R, y - mean(y), transpose = TRUE)
  qr_white <- qr(white_q, LAPACK = FALSE, tol = 0)
  r2 <- sum(qr.resid(qr_white, white_y)^2)
  log_det <- 2 * sum(log(diag(R)))
  m <- length(y)
  if (reml) {
    m <- m - ncol(Q)
    log_det <- log_det + 2 * sum(log(abs(diag(qr.R(qr_white))))) + 2 * sum(log(abs(diag(qr.R(qr_x)))))
  }
  -(log_det + m * (1 + log(2 * pi * r2 / m))) / 2
}

compare_optimisers <- function(formula, data, reml) {
  problem <- deviance_function(as.formula(formula), data, reml)
  runs <- lapply(optimiser_settings, function(setting) run_optimiser(problem, setting))
  reported <- vapply(runs, function(run) -as.numeric(run$fval) / 2, 0)
  exact <- vapply(runs, function(run) {
    if (!is.finite(run$fval)) return(-Inf)
    dense_llf(problem, run$par, data$y, reml)
  }, 0)
  best <- which.max(exact)
  scaled_start <- function(factor) replace(problem$start * problem$scale, problem$start == 0, 0) * factor
  elsewhere <- unlist(lapply(c(0.03, 0.3, 1, 3, 30), function(factor) {
    vapply(optimiser_settings[c("bobyqa_tight", "nlminbwrap_tight")], function(setting) {
      run <- run_optimiser(problem, setting, scaled_start(factor))
      if (is.finite(run$fval)) dense_llf(problem, run$par, data$y, reml) else -Inf
    }, 0)
  }))
  list(
    llf = max(exact), multistart_llf = max(exact, elsewhere), best_optimiser = names(runs)[best], default_llf = reported[["nloptwrap"]],
    lme4_rounding = max(abs(reported - exact)[is.finite(reported)]), theta = I(runs[[best]]$par),
    optimiser_llf = as.list(reported)
  )
}

stacked <- do.call(rbind, lapply(models, function(model) cbind(id = model$id, model$data)))
stacked[] <- lapply(stacked, function(x) if (is.numeric(x)) json_number(x) else as.character(x))
connection <- gzfile(here("inputs", "generated.csv.gz"), "wb", compression = 9)
write.csv(stacked, connection, row.names = FALSE, quote = FALSE)
close(connection)

results <- lapply(models, function(model) {
  data <- model$data
  data[c("f", "g", "h")] <- lapply(data[c("f", "g", "h")], as_factor)
  started <- proc.time()[["elapsed"]]
  out <- c(
    model[c("id", "shape", "formula")], list(n = nrow(data)),
    lapply(c(ML = FALSE, REML = TRUE), function(reml) compare_optimisers(model$formula, data, reml))
  )
  message(sprintf("%s %-20s %-40s n=%d default short by %.1e / %.1e, rounding %.0e, %.1f s", model$id, model$shape,
                  model$formula, nrow(data), out$ML$llf - out$ML$default_llf, out$REML$llf - out$REML$default_llf,
                  max(out$ML$lme4_rounding, out$REML$lme4_rounding), proc.time()[["elapsed"]] - started))
  out
})
write_reference("generated", models = results, optimisers = names(optimiser_settings))
