# Writes bradley_terry.json: Bradley-Terry ratings as the logistic regression that they are, by R's glm.
#
# A pair is one binomial row, wins of the first out of the games of both, whose predictor is the difference of two
# ratings; the last rating is zero. Ties are half a win for each, which glm takes with a warning.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

# `scores`: blocks x algorithms, more is better, NA where an algorithm is missing
wins_of <- function(scores) {
  k <- ncol(scores)
  wins <- matrix(0, k, k)
  for (i in 1:k) for (j in (1:k)[-i]) {
    d <- scores[, i] - scores[, j]
    wins[i, j] <- sum((d > 0) + (d == 0) / 2, na.rm = TRUE)
  }
  wins
}

fitted_ratings <- function(wins) {
  k <- nrow(wins)
  pairs <- t(combn(k, 2))
  x <- matrix(0, nrow(pairs), k)
  x[cbind(seq_len(nrow(pairs)), pairs[, 1])] <- 1
  x[cbind(seq_len(nrow(pairs)), pairs[, 2])] <- -1
  won <- wins[pairs]
  lost <- wins[pairs[, 2:1]]
  played <- won + lost > 0
  fit <- suppressWarnings(glm(cbind(won, lost)[played, ] ~ 0 + x[played, -k], family = binomial,
    control = glm.control(epsilon = 1e-15, maxit = 100)))
  c(unname(coef(fit)), 0)
}

described <- function(name, scores) {
  wins <- wins_of(scores)
  list(name = name, scores = scores, wins = wins, theta = I(fitted_ratings(wins)))
}

set.seed(1)
plain <- sweep(matrix(rnorm(12 * 5), 12), 2, c(0, 0.2, 0.5, 0.7, 1), "+")
tied <- round(sweep(matrix(rnorm(15 * 6), 15), 2, seq(0, 1, length.out = 6), "+"))
missing <- sweep(matrix(rnorm(20 * 4), 20), 2, c(0, 0.3, 0.6, 0.9), "+")
missing[cbind(1:20, rep(1:4, 5))] <- NA
large <- sweep(matrix(rnorm(40 * 25), 40), 2, seq(0, 2, length.out = 25), "+")

write_reference("bradley_terry", tables = list(
  described("plain", plain), described("ties", tied), described("missing", missing), described("large", large)))
