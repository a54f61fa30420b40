# Writes rank_sets.json: simultaneous two-sided confidence sets of ranks by the step-down procedure of Mogstad, Romano,
# Shaikh and Wilhelm (2024, doi:10.1093/restud/rdad006), as the R package csranks 1.2 carries it out with
# `csranks(x, Sigma, simul = TRUE, stepdown = TRUE)`: the hypotheses "not above" of all ordered pairs, quantiles of the
# largest difference by simulation, those that are rejected leave. More is better.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

n_draws <- 200000

rank_sets <- function(x, covariance, coverage = 0.95) {
  k <- length(x)
  difference <- outer(x, x, "-")
  se <- sqrt(outer(diag(covariance), diag(covariance), "+") - 2 * covariance)
  above <- matrix(FALSE, k, k)
  repeat {
    open <- which(!above & !diag(k), arr.ind = TRUE)
    draws <- matrix(rnorm(n_draws * k), n_draws) %*% chol(covariance)
    largest <- rep(-Inf, n_draws)
    for (r in seq_len(nrow(open))) {
      i <- open[r, 1]
      j <- open[r, 2]
      largest <- pmax(largest, (draws[, i] - draws[, j]) / se[i, j])
    }
    more <- above | (difference - quantile(largest, coverage) * se > 0 & !diag(k))
    if (all(more == above)) break
    above <- more
  }
  list(low = 1 + colSums(above), high = k - rowSums(above))
}

set.seed(1)
countries <- c(493, 499, 508, 512, 417, 391, 499, 509, 523, 507, 495, 500, 451, 481, 495, 500, 463, 487, 527, 526, 496,
  483, 472, 409, 519, 494, 501, 516, 492, 486)
errors <- c(1.9, 3, 2.3, 2.4, 2.4, 3, 2.5, 1.7, 1.7, 2, 2.3, 2.6, 3.1, 2.3, 2, 2.2, 3.5, 2.8, 2.5, 3.1, 2, 1.1, 3.7,
  2.5, 2.6, 2.2, 2.9, 2.6, 2.7, 2.6)
factors <- matrix(round(rnorm(144), 3), 12)
cases <- list(
  countries = list(x = countries, covariance = diag(errors^2)),
  equal = list(x = seq(1, 3, length.out = 10), covariance = 0.04 * diag(10)),
  correlated = list(x = 1.5 * sort(round(rnorm(12), 3)),
    covariance = 0.0125 * tcrossprod(factors) + diag(round(runif(12, 0.02, 0.3), 3)))
)
for (name in names(cases)) cases[[name]] <- c(cases[[name]], rank_sets(cases[[name]]$x, cases[[name]]$covariance))
write_reference("rank_sets", cases = cases)
