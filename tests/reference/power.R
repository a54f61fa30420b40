# Writes power.json: power of paired t-tests by R's power.t.test, and type-S and type-M errors by R's integrate.
#
# power.t.test(strict = TRUE) counts significant results of both signs, by the noncentral t distribution. `sd` is that
# of the differences of pairs. type_s is a ratio of noncentral t probabilities; type_m has no distribution in R, so the
# mean absolute estimate of significant results is integrated over the estimated standard deviation.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

errors <- function(n, delta, sd, alpha) {
  df <- n - 1
  se <- sd / sqrt(n)
  d <- delta / se
  critical <- qt(1 - alpha / 2, df)
  wrong <- pt(-critical, df, ncp = d)
  right <- pt(critical, df, ncp = d, lower.tail = FALSE)
  # The estimate over se is N(d, 1), the estimated se over se is s = sqrt(chi2 / df).
  size <- function(s) {
    h <- critical * s
    mean_abs <- d * (pnorm(d - h) - pnorm(-d - h)) + dnorm(d - h) + dnorm(d + h)
    mean_abs * dchisq(df * s^2, df) * 2 * df * s
  }
  limits <- sqrt(c(qchisq(1e-18, df), qchisq(1e-18, df, lower.tail = FALSE)) / df)
  middle <- sqrt(qchisq(0.5, df) / df)
  part <- function(a, b) integrate(size, a, b, rel.tol = 1e-12, abs.tol = 0, subdivisions = 1000)$value
  mass <- part(limits[1], middle) + part(middle, limits[2])
  c(type_s = wrong / (wrong + right), type_m = mass / (wrong + right) / d)
}

designs <- expand.grid(n = c(2, 3, 5, 12, 20, 50, 200), delta = c(0.1, 0.3, 0.5, 1), alpha = c(0.05, 0.01))
designs$sd <- 1
designs$power <- with(designs, mapply(function(n, delta, alpha) {
  power.t.test(n = n, delta = delta, sd = 1, sig.level = alpha, type = "paired", strict = TRUE)$power
}, n, delta, alpha))
found <- with(designs, mapply(errors, n, delta, sd, alpha))
designs$type_s <- found["type_s", ]
designs$type_m <- found["type_m", ]

# The number of pairs that power.t.test solves for is not whole; the smallest whole one is its ceiling.
needed <- expand.grid(delta = c(0.2, 0.35, 0.5, 0.8, 1.2), power = c(0.5, 0.8, 0.9))
needed$n <- with(needed, mapply(function(delta, power) {
  power.t.test(delta = delta, sd = 1, power = power, type = "paired", strict = TRUE, tol = 1e-10)$n
}, delta, power))

detectable <- expand.grid(n = c(5, 12, 20, 50), power = c(0.5, 0.8, 0.95))
detectable$delta <- with(detectable, mapply(function(n, power) {
  power.t.test(n = n, sd = 1, power = power, type = "paired", strict = TRUE, tol = 1e-12)$delta
}, n, power))

write_reference("power", designs = designs, needed = needed, detectable = detectable)
