# Writes votes.json: ratings from votes on pairs, by other programs.
#
# citations: statistics journals (Stigler 1994), by BradleyTerry2. logit: votes without ties as a logistic regression, with
# the sandwich by voters, by prompts and by both (Cameron, Gelbach & Miller) of package sandwich. davidson: ties and the
# first place, as the log-linear model of counts whose sums by ordered pair are fixed (Critchlow & Fligner 1991). choice:
# ties, the first place and a style, as a conditional logit of survival in which each vote chooses one of three outcomes,
# with the sandwich (without a factor) by voters.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressMessages({library(BradleyTerry2); library(sandwich); library(survival)})

data(citations, package = "BradleyTerry2")
journals <- countsToBinomial(citations)
bt <- BTm(cbind(win1, win2), player1, player2, data = journals, refcat = "Biometrika")
first <- as.character(journals$player1)

set.seed(4)
n <- 400
k <- 4
a <- sample(k, n, TRUE)
b <- (a + sample(k - 1, n, TRUE) - 1) %% k + 1
voter <- sample(15, n, TRUE)
prompt <- sample(30, n, TRUE)
length <- round(rnorm(n), 3)
theta <- c(0.8, 0.3, 0, -0.4)
x <- theta[a] - theta[b] + 0.3 + 0.4 * length + rnorm(15, 0, 0.6)[voter]
won <- as.integer(runif(n) < plogis(x))
X <- matrix(0, n, k)
X[cbind(1:n, a)] <- 1
X[cbind(1:n, b)] <- -1
fit <- glm(won ~ X[, -k] + length, family = binomial, control = glm.control(epsilon = 1e-15, maxit = 100))
cl <- function(cluster) I(unname(vcovCL(fit, cluster = cluster, type = "HC1")))

tied <- runif(n) < 0.25
y <- ifelse(tied, 0, 2 * won - 1)
cells <- expand.grid(a = 1:k, b = 1:k, y = c(1, -1, 0))
cells <- cells[cells$a != cells$b, ]
cells$count <- mapply(function(i, j, v) sum(a == i & b == j & y == v), cells$a, cells$b, cells$y)
half <- cells$y / 2
T <- matrix(0, nrow(cells), k)
T[cbind(seq_len(nrow(cells)), cells$a)] <- half
T[cbind(seq_len(nrow(cells)), cells$b)] <- -half
ties <- as.integer(cells$y == 0)
pair <- factor(paste(cells$a, cells$b))
davidson <- glm(count ~ 0 + pair + T[, -k] + half + ties, family = poisson, data = cells,
  control = glm.control(epsilon = 1e-15, maxit = 100))
at <- seq(nlevels(pair) + 1, length.out = k + 1)

rows <- data.frame(vote = rep(1:n, each = 3), side = rep(c(1, -1, 0), n))
rows$chosen <- as.integer(rows$side == y[rows$vote])
rows[c("m1", "m2", "m3", "first", "style")] <- cbind(X[, -k], 1, length)[rows$vote, ] * rows$side / 2
rows$tie <- as.integer(rows$side == 0)
rows$voter <- voter[rows$vote]
choice <- clogit(chosen ~ m1 + m2 + m3 + first + style + tie + strata(vote) + cluster(voter), data = rows,
  method = "efron", control = coxph.control(eps = 1e-14, iter.max = 100))

write_reference("votes",
  citations = list(first = first, second = as.character(journals$player2), wins = journals$win1, losses = journals$win2,
    names = sub("^..", "", names(coef(bt))), theta = I(unname(coef(bt))), se = I(unname(sqrt(diag(vcov(bt)))))),
  votes = lapply(list(a = a, b = b, voter = voter, prompt = prompt, length = length, won = won, y = y), paste, collapse = " "),
  logit = list(coefficients = I(unname(coef(fit))), voter = cl(voter), prompt = cl(prompt),
    both = cl(data.frame(voter, prompt))),
  davidson = list(coefficients = I(unname(coef(davidson)[at])), V = I(unname(vcov(davidson)[at, at]))),
  choice = list(coefficients = I(unname(coef(choice))), V = I(unname(choice$naive.var)), voter = I(unname(choice$var))))
