# Writes effect_sizes.json: noncentralities of t ratios, and effect sizes of samples by their definitions in base R.
#
# Limits of noncentralities solve P(T > t) = tail, where P is an integral over the standard deviation (adaptive
# quadrature); beside them those of R's pt(ncp = ), which is documented to be inaccurate for large t. Dominance is by
# outer(), ranks by wilcox.test, medians by mad(). Intervals of means of signs are roots of their equation.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

below <- function(t, df, ncp) {
  inner <- function(s) pnorm(t * s - ncp) * 2 * df * s * dchisq(df * s^2, df)
  cuts <- sort(unique(c(0, sqrt(qchisq(c(1e-12, 0.01, 0.5, 0.99), df) / df), max(0, (ncp + c(-9, 0, 9)) / t))))
  cuts <- c(cuts[is.finite(cuts)], Inf)
  part <- function(a, b) integrate(inner, a, b, rel.tol = 1e-12, abs.tol = 1e-16, subdivisions = 2000)$value
  sum(mapply(part, head(cuts, -1), tail(cuts, -1)))
}

limit <- function(t, df, tail) {
  f <- function(ncp) qnorm(min(max(below(t, df, ncp), 1e-15), 1 - 1e-15)) + qnorm(tail)
  uniroot(f, t * sqrt(qchisq(0.5, df) / df) + c(-1, 1) * (4 + abs(t) / sqrt(df) * 4), extendInt = "downX",
          tol = 1e-13 * (1 + abs(t)))$root
}

r_limit <- function(t, df, tail) {
  suppressWarnings(uniroot(function(ncp) pt(t, df, ncp) - (1 - tail), c(-37, 37), tol = 1e-12)$root)
}

limits <- expand.grid(t = c(0, 0.3, 1, 2.5, 6, 20), df = c(1, 2, 3.5, 5, 11, 29, 99), level = c(0.95, 0.8))
limits$ci_low <- with(limits, mapply(function(t, df, level) limit(t, df, (1 - level) / 2), t, df, level))
limits$ci_high <- with(limits, mapply(function(t, df, level) limit(t, df, (1 + level) / 2), t, df, level))
small <- limits$t <= 6 & limits$df >= 5
limits$r_low <- NA
limits$r_low[small] <- with(limits[small, ], mapply(function(t, df, level) r_limit(t, df, (1 - level) / 2), t, df, level))

# ---------------------------------------------------------------- samples

unbiased <- function(f) if (f > 1 + 1e-9) gamma(f / 2) / (sqrt(f / 2) * gamma((f - 1) / 2)) else NA

score_limits <- function(mean, bound) {
  f <- function(x) (mean - x)^2 - bound * (1 - x^2)
  inside <- 1e-12 # a mean of 1 or -1 is itself a root
  low <- if (mean <= -1) -1 else uniroot(f, c(-1, min(mean, 1 - inside)), tol = 1e-14)$root
  high <- if (mean >= 1) 1 else uniroot(f, c(max(mean, -1 + inside), 1), tol = 1e-14)$root
  c(low, high)
}

effects <- function(name, x, y, paired) {
  n <- length(x)
  m <- length(y)
  pooled <- sqrt(((n - 1) * var(x) + (m - 1) * var(y)) / (n + m - 2))
  d <- (mean(x) - mean(y)) / pooled
  if (paired) {
    D <- x - y
    test <- t.test(x, y, paired = TRUE)
    S <- cov(cbind(x, y))
    f <- (n - 1) * sum(diag(S))^2 / sum(S^2)
    nc <- sapply(c(0.025, 0.975), function(p) limit(test$statistic, n - 1, p))
    d_limits <- nc * sd(D) / pooled / sqrt(n)
    dz <- mean(D) / sd(D)
    dz_limits <- nc / sqrt(n)
    nonzero <- D[D != 0]
    W <- suppressWarnings(wilcox.test(nonzero, exact = FALSE))$statistic
    ranks <- rank(abs(nonzero))
    total <- sum(ranks)
    rb <- 2 * unname(W) / total - 1
    bound <- qnorm(0.975)^2 * sum(ranks^2) / total^2
    rb_limits <- c(score_limits(max(rb - 1 / total, -1), bound)[1], score_limits(min(rb + 1 / total, 1), bound)[2])
  } else {
    test <- t.test(x, y, var.equal = TRUE)
    f <- n + m - 2
    d_limits <- sapply(c(0.025, 0.975), function(p) limit(test$statistic, f, p)) * sqrt(1 / n + 1 / m)
    dz <- rb <- NA
    dz_limits <- rb_limits <- c(NA, NA)
  }
  signs <- sign(outer(x, y, "-"))
  delta <- mean(signs)
  of_x <- rowMeans(signs)
  of_y <- colMeans(signs)
  if (paired) {
    variance <- var(of_x + of_y) / n
    df <- n - 1
  } else {
    parts <- c(var(of_x) / n, var(of_y) / m)
    variance <- sum(parts)
    df <- variance^2 / (parts[1]^2 / (n - 1) + parts[2]^2 / (m - 1))
  }
  size <- if (variance > 0 && abs(delta) < 1) (1 - delta^2) / variance else 3 * n * m / (n + m + 1)
  if (!is.finite(df)) df <- n + m - 2
  delta_limits <- score_limits(delta, qt(0.975, df)^2 / size)
  normal <- 1 / qnorm(0.75)
  scale <- sqrt(((n - 1) * mad(x, constant = normal)^2 + (m - 1) * mad(y, constant = normal)^2) / (n + m - 2))
  row <- function(kind, estimate, limits) {
    list(kind = kind, estimate = unname(estimate), ci_low = unname(limits[1]), ci_high = unname(limits[2]))
  }
  found <- list(
    row("cohen_d", d, d_limits), row("hedges_g", d * unbiased(f), d_limits), row("cohen_dz", dz, dz_limits),
    row("cliff_delta", delta, delta_limits), row("rank_biserial", rb, rb_limits),
    row("akinshin_gamma", (median(x) - median(y)) / scale, c(NA, NA))
  )
  keep <- vapply(found, function(r) is.finite(r$estimate), TRUE)
  list(name = name, paired = paired, a = I(x), b = I(y), effects = found[keep])
}

set.seed(1)
samples <- list(
  effects("normal", round(rnorm(12, 1), 3), round(rnorm(12), 3), TRUE),
  effects("normal", round(rnorm(9, 0.5, 2), 3), round(rnorm(14), 3), FALSE),
  effects("ties", c(3, 1, 4, 1, 5, 9, 2, 6, 5, 3), c(2, 1, 3, 3, 5, 8, 4, 4, 5, 1), TRUE),
  effects("ties", c(3, 1, 4, 1, 5, 9, 2), c(2, 1, 3, 3, 5, 8, 4, 4, 5, 1), FALSE),
  effects("skewed", round(exp(rnorm(30)), 4), round(exp(rnorm(30, 0.5)), 4), TRUE),
  effects("apart", c(7, 8, 9.5, 10, 12), c(1, 2, 2.5, 4, 6), TRUE),
  effects("apart", c(7, 8, 9.5, 10, 12), c(1, 2, 2.5, 4, 6, 6.5), FALSE),
  effects("two", c(1, 2), c(3, 5), TRUE),
  effects("two", c(1, 4), c(3, 5), FALSE)
)

write_reference("effect_sizes", noncentralities = limits, samples = samples)
