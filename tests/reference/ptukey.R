# Writes ptukey.json: the studentized range from R, beside an independent quadrature.
#
# R's ptukey refuses df < 2 and its qtukey stops at a step of about 1e-4 in q, so ptukey(qtukey(p)) misses p;
# the misses are recorded. `p` and `q` of the quadrature are the values to test against, R's the witnesses.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

k <- c(2, 3, 5, 10, 24, 50)
df <- c(1.5, 2, 3, 5.7, 10, 30, 120, 1000, Inf)
q <- c(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10, 12)
levels <- c(0.5, 0.9, 0.95, 0.99)

# P(range of k normals <= w) = k int phi(z) (Phi(z) - Phi(z - w))^(k - 1) dz. The trapezoidal rule on the whole
# line converges faster than any power of the step for such analytic, decaying integrands.
range_below <- function(w, k) {
  step <- 1 / 14
  z <- seq(-9, 9, by = step)
  strip <- outer(w, z, function(w, z) {
    # Differences of upper tails where z > 0, so that no digits cancel.
    difference <- ifelse(z > 0, pnorm(w - z) - pnorm(-z), pnorm(z) - pnorm(z - w))
    pmax(difference, 0)^(k - 1)
  })
  k * step * as.vector(strip %*% dnorm(z))
}

# Mixes over s = chi_df / sqrt(df) = exp(t), again by the trapezoidal rule in t.
studentized_range <- function(q, k, df) {
  if (is.infinite(df)) return(c(below = range_below(q, k), above = 1 - range_below(q, k)))
  spread <- 1 / sqrt(df)
  t <- seq(-max(40 / df, 12 * spread), min(3.5, 12 * spread), length.out = 600)
  log_density <- df * t - df * exp(2 * t) / 2 + df / 2 * log(df) - (df / 2 - 1) * log(2) - lgamma(df / 2)
  weight <- exp(log_density) * (t[2] - t[1])
  below <- range_below(q * exp(t), k)
  c(below = sum(weight * below), above = sum(weight * (1 - below)))
}

exact_quantile <- function(p, k, df) {
  f <- function(x) studentized_range(x, k, df)[["below"]] - p
  uniroot(f, c(0.5, 20), extendInt = "upX", tol = 1e-12, maxiter = 200)$root
}

quietly <- suppressWarnings

probabilities <- expand.grid(q = q, k = k, df = df)
exact <- with(probabilities, mapply(studentized_range, q, k, df))
probabilities$p <- exact["below", ]
probabilities$p_upper <- exact["above", ]
probabilities$r_ptukey <- quietly(with(probabilities, ptukey(q, k, df)))
probabilities$r_ptukey_upper <- quietly(with(probabilities, ptukey(q, k, df, lower.tail = FALSE)))

quantiles <- expand.grid(p = levels, k = k, df = df)
quantiles$q <- with(quantiles, mapply(exact_quantile, p, k, df))
quantiles$r_qtukey <- quietly(with(quantiles, mapply(qtukey, p, k, df)))
quantiles$r_residual <- quietly(with(quantiles, ptukey(r_qtukey, k, df) - p))

# k = 2 has a closed form: P(Q > q) = 2 P(T > q / sqrt 2), with no integral at all.
two <- probabilities[probabilities$k == 2, ]
closed_form <- 2 * pt(two$q / sqrt(2), two$df, lower.tail = FALSE)
worst <- function(x) max(abs(x), na.rm = TRUE)
by_df <- function(df) {
  p <- probabilities[probabilities$df == df, ]
  q <- quantiles[quantiles$df == df, ]
  data.frame(
    df = df, ptukey = if (df < 2) NA else worst(p$r_ptukey - p$p),
    qtukey = if (all(is.na(q$r_qtukey))) NA else worst(q$r_qtukey - q$q),
    qtukey_residual = if (all(is.na(q$r_qtukey))) NA else worst(q$r_residual)
  )
}

write_reference(
  "ptukey",
  accuracy = list(
    quadrature_against_closed_form_k_2 = worst(two$p_upper - closed_form),
    r_ptukey_against_closed_form_k_2 = worst(two$r_ptukey_upper - closed_form),
    max_abs_error_of_r = do.call(rbind, lapply(df, by_df))
  ),
  probabilities = probabilities, quantiles = quantiles
)
