# Writes glmm.json: generalised mixed models by lme4 (glmer, nAGQ = 1) and glmmTMB, and small ones by restricted
# pseudo-likelihood, here with dense matrices. Published tables: cbpp (Lesnoff & al. 2004), epil (Thall & Vail 1990),
# and those at the end; the others are drawn with a fixed seed. `llf` is the larger of the two log-likelihoods.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages({ library(glmmTMB); library(MASS) })
RNGversion("4.0.0")
set.seed(20261127)

inverse <- list(logit = plogis, probit = pnorm, cloglog = function(x) -expm1(-exp(x)), log = exp)

draw <- function(M, T, I, level, link = "logit", family = "binomial", task = 0.5, item = 1, between = 0.3, effect = 0.4,
                 trials = 1, keep = 1, slope = 0, size = 2) {
  data <- expand.grid(item = seq_len(I), task = seq_len(T), model = seq_len(M))
  data <- data[runif(nrow(data)) < keep, ]
  x <- round(runif(nrow(data), -1, 1), 2)
  code <- function(...) as.integer(factor(paste(...)))
  normal <- function(codes, sd) sd * rnorm(max(codes))[codes]
  eta <- level + effect * (data$model - 1) / max(M - 1, 1) + normal(data$task, task) + normal(code(data$task, data$item), item) +
    normal(code(data$task, data$model), between) + (0.5 + normal(data$task, slope)) * x * (slope > 0)
  mu <- inverse[[link]](eta)
  y <- switch(family, binomial = rbinom(nrow(data), trials, mu), poisson = rpois(nrow(data), mu),
              nbinom2 = rnbinom(nrow(data), size = size, mu = mu))
  out <- data.frame(y = y, n = trials, model = paste0("m", data$model), task = paste0("t", data$task),
                    item = paste0("t", data$task, "i", data$item), stringsAsFactors = TRUE)
  if (slope > 0) out$x <- x
  out
}

rspl <- function(data, bars, family, weight) {  # dense: z ~ model.matrix + intercepts of the groups in `bars`
  X <- model.matrix(~ model, data)
  Z <- lapply(bars, function(g) model.matrix(~ 0 + g, data.frame(g = interaction(data[g], drop = TRUE))))
  mu <- if (family$family == "binomial") (data$y + 0.5) / (weight + 1) else data$y + 0.5
  eta <- family$linkfun(mu)
  theta <- rep(0.5, length(bars))
  for (step in 1:300) {
    mu <- family$linkinv(eta)
    slope <- family$mu.eta(eta)
    w <- weight * slope^2 / family$variance(mu)
    z <- eta + (data$y / weight - mu) / slope
    covariance <- function(theta) diag(1 / w) + Reduce(`+`, Map(function(s, Z) s^2 * tcrossprod(Z), theta, Z))
    deviance <- function(theta) {
      V <- covariance(theta)
      inverse <- solve(V)
      A <- t(X) %*% inverse %*% X
      r <- z - X %*% solve(A, t(X) %*% inverse %*% z)
      as.numeric(determinant(V)$modulus + determinant(A)$modulus + t(r) %*% inverse %*% r)
    }
    found <- nlminb(theta, deviance, control = list(rel.tol = 1e-15, x.tol = 1e-12, abs.tol = 0))
    theta <- abs(found$par)
    inverse <- solve(covariance(theta))
    b <- solve(t(X) %*% inverse %*% X, t(X) %*% inverse %*% z)
    r <- inverse %*% (z - X %*% b)
    after <- as.numeric(X %*% b + Reduce(`+`, Map(function(s, Z) s^2 * Z %*% (t(Z) %*% r), theta, Z)))
    moved <- max(abs(after - eta))
    eta <- after
    if (moved < 1e-10) break
  }
  list(b = I(as.numeric(b)), sd = I(theta), se = I(sqrt(diag(solve(t(X) %*% inverse %*% X)))), moved = moved)
}

case <- function(name, data, formula, family, link, trials = NULL, pseudo = NULL, search = list(), nodes = NULL) {
  cat(name, "")
  R <- sub("^y ~", if (is.null(trials)) "y ~" else paste0("cbind(y, ", trials, " - y) ~"), formula)
  of_lme4 <- NULL
  if (family != "nbinom2") {
    distribution <- if (family == "binomial") binomial(link) else poisson(link)
    fits <- lapply(c("bobyqa", "Nelder_Mead"), function(optimizer) suppressMessages(suppressWarnings(glmer(
      as.formula(R), data, family = distribution, control = glmerControl(optimizer = optimizer, calc.derivs = FALSE,
      check.conv.singular = "ignore", optCtrl = list(maxfun = 20000))))))
    of_lme4 <- fits[[which.max(vapply(fits, function(fit) as.numeric(logLik(fit)), 0))]]
  }
  of_tmb <- suppressWarnings(glmmTMB(as.formula(R), data, family = switch(family, binomial = binomial(link), poisson = poisson(link),
                                                                          nbinom2 = nbinom2(link)),
                                     control = glmmTMBControl(optCtrl = c(list(iter.max = 300, eval.max = 400), search))))
  llf <- c(lme4 = if (is.null(of_lme4)) NA else as.numeric(logLik(of_lme4)), glmmTMB = as.numeric(logLik(of_tmb)))
  out <- list(name = name, formula = formula, family = family, link = link, trials = if (is.null(trials)) "" else trials,
              data = lapply(data[intersect(names(data), all.vars(as.formula(R)))], I), llf_lme4 = llf[["lme4"]], llf_glmmTMB = llf[["glmmTMB"]],
              fixef = I(unname(fixef(of_tmb)$cond)), se = I(unname(sqrt(diag(vcov(of_tmb)$cond)))),
              sd = I(unlist(lapply(VarCorr(of_tmb)$cond, function(S) unname(attr(S, "stddev"))), use.names = FALSE)),
              converged = of_tmb$fit$convergence == 0 && isTRUE(of_tmb$sdr$pdHess))
  if (family == "nbinom2") out$size <- sigma(of_tmb)
  if (!is.null(nodes)) {  # adaptive Gauss-Hermite quadrature
    found <- glmer(as.formula(R), data, family = binomial(link), nAGQ = nodes,
                   control = glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e5, rhoend = 1e-9)))
    out$quadrature <- list(llf = as.numeric(logLik(found)), fixef = I(unname(fixef(found))), sd = attr(VarCorr(found)[[1]], "stddev")[[1]],
                           se = I(unname(sqrt(diag(as.matrix(vcov(found)))))))
  }
  if (!is.null(pseudo)) {
    weight <- if (is.null(trials)) rep(1, nrow(data)) else data[[trials]]
    out$pseudo <- rspl(data, pseudo, if (family == "binomial") binomial(link) else poisson(), weight)
  }
  out
}

nested <- "y ~ model + (1 | task) + (1 | item) + (1 | task:model)"
herd <- data.frame(y = cbpp$incidence, n = cbpp$size, model = factor(paste0("p", cbpp$period)), herd = factor(paste0("h", cbpp$herd)))
seizures <- data.frame(y = epil$y, model = epil$trt, base = round(log(epil$base / 4), 6), age = round(log(epil$age), 6),
                       visit = as.numeric(epil$period), subject = factor(paste0("s", epil$subject)))
cases <- list(
  case("cbpp", herd, "y ~ model + (1 | herd)", "binomial", "logit", "n", list("herd")),
  case("cbpp probit", herd, "y ~ model + (1 | herd)", "binomial", "probit", "n"),
  case("cbpp cloglog", herd, "y ~ model + (1 | herd)", "binomial", "cloglog", "n"),
  case("epil", seizures, "y ~ model * base + age + visit + (1 | subject)", "poisson", "log"),
  case("epil slope", seizures, "y ~ model * base + age + visit + (1 + visit | subject)", "poisson", "log"),
  case("epil nbinom2", seizures, "y ~ model * base + age + visit + (1 | subject)", "nbinom2", "log")
)
add <- function(...) cases[[length(cases) + 1]] <<- case(...)
for (i in 1:4) add(paste("answers", i), draw(3, 5, 8, 0.8), nested, "binomial", "logit", NULL, if (i < 3) list("task", "item", c("task", "model")))
for (i in 1:3) add(paste("near the top", i), draw(3, 5, 20, 2.5, between = 0.5), nested, "binomial", "logit")
for (i in 1:3) add(paste("gaps", i), draw(4, 6, 10, 0.3, keep = 0.6), nested, "binomial", "logit")
for (i in 1:3) add(paste("attempts", i), draw(3, 6, 5, 0.5, trials = 6), nested, "binomial", "logit", "n")
for (i in 1:2) add(paste("probit", i), draw(3, 6, 8, 0.4, "probit"), nested, "binomial", "probit")
for (i in 1:2) add(paste("cloglog", i), draw(3, 6, 8, -0.2, "cloglog"), nested, "binomial", "cloglog")
for (i in 1:3) add(paste("slopes", i), draw(2, 10, 12, 0.5, slope = 0.8), "y ~ model + x + (1 + x | task) + (1 | item)", "binomial", "logit")
for (i in 1:3) add(paste("counts", i), draw(3, 6, 6, 0.7, "log", "poisson"), nested, "poisson", "log", NULL, if (i == 1) list("task", "item", c("task", "model")))
for (i in 1:2) add(paste("scattered counts", i), draw(3, 8, 8, 1.0, "log", "nbinom2"), "y ~ model + (1 | task) + (1 | item)", "nbinom2", "log")
for (i in 1:2) add(paste("crossed", i), transform(draw(3, 8, 6, 0.2), item = factor(sub("^t[0-9]+", "", item))),
                   "y ~ model + (1 | task) + (1 | item)", "binomial", "logit")

# published tables that come with lme4, glmmTMB, MASS, mlmRev and geepack
data(Contraception, guImmun, package = "mlmRev")
data(ohio, package = "geepack")
aggression <- with(VerbAgg, data.frame(y = as.integer(r2 == "Y"), anger = Anger, model = paste(btype, situ), gender = Gender,
                                       id = as.integer(id), item = as.integer(item)))[VerbAgg$id %in% seq(1, 316, 4), ]  # 79 persons
ticks <- with(grouseticks, data.frame(y = TICKS, model = paste0("y", YEAR), height = round((HEIGHT - mean(HEIGHT)) / 50, 4),
                                      chick = as.integer(INDEX), brood = as.integer(BROOD), location = as.integer(LOCATION)))
women <- with(Contraception, data.frame(y = as.integer(use == "Y"), model = paste0("c", livch), age = round(age / 10, 3), urban = as.integer(urban == "Y"),
                                        district = as.integer(district)))
cultures <- with(bacteria, data.frame(y = as.integer(y == "y"), model = as.character(trt), week = week, child = as.integer(ID)))
nestlings <- with(Owls, data.frame(y = SiblingNegotiation, model = as.character(FoodTreatment), parent = as.character(SexParent), size = BroodSize, nest = as.integer(Nest)))
streams <- with(Salamanders, data.frame(y = count, model = as.character(spp), mined = as.character(mined), site = as.integer(site)))
calls <- "y ~ model * parent + offset(log(size)) + (1 | nest)"
add("VerbAgg", aggression, "y ~ model + anger + gender + (1 | id) + (1 | item)", "binomial", "logit")
add("grouseticks", ticks, "y ~ model + height + (1 | location) + (1 | brood) + (1 | chick)", "poisson", "log",
    search = list(rel.tol = 1e-14, x.tol = 1e-12))
add("Contraception", women, "y ~ model + age + urban + (1 + urban | district)", "binomial", "logit")
add("bacteria", cultures, "y ~ model + week + (1 | child)", "binomial", "logit")
add("Owls", nestlings, calls, "poisson", "log")
add("Owls nbinom2", nestlings, calls, "nbinom2", "log")
add("Salamanders", streams, "y ~ model + mined + (1 | site)", "nbinom2", "log")
children <- with(guImmun, data.frame(y = as.integer(immun == "Y"), model = as.character(kid2p), mother = as.character(momEd), rural = as.character(rural),
                                     mom = as.integer(mom), community = as.integer(comm)))
wheezing <- with(ohio, data.frame(y = resp, model = paste0("smoke", smoke), age = age, child = id))
add("guImmun", children, "y ~ model + mother + rural + (1 | community) + (1 | mom)", "binomial", "logit")
add("ohio", wheezing, "y ~ model * age + (1 | child)", "binomial", "logit")

# Toenail fungus (De Backer & al. 1998): one intercept with a variance of 16 (20 by Laplace's approximation)
patients <- with(mice::toenail, data.frame(y = outcome, model = paste0("t", treatment), time = round(month, 3), id = ID))
add("toenail", patients, "y ~ model * time + (1 | id)", "binomial", "logit", nodes = 25)

# Matings of salamanders of two populations, summer of 1986 (McCullagh & Nelder 1989, section 14.5): the partners of the 20
# females on six days, and whether they mated
partner <- scan(quiet = TRUE, what = "", sep = " ", text = c(
  "rb1 rb5 rb2 rb4 rb3 ws9 ws8 ws6 ws10 ws7 rb9 rb7 rb8 rb10 rb6 ws5 ws4 ws1 ws3 ws2",
  "ws4 ws5 ws1 ws2 ws3 rb9 rb8 rb6 rb7 rb10 ws9 ws6 ws7 ws10 ws8 rb2 rb1 rb4 rb3 rb5",
  "rb5 rb3 rb1 rb2 rb4 ws10 ws9 ws7 ws8 ws6 rb7 rb9 rb6 rb8 rb10 ws3 ws5 ws2 ws1 ws4",
  "ws1 ws3 ws4 ws5 ws2 rb7 rb9 rb10 rb6 rb8 ws10 ws7 ws9 ws8 ws6 rb4 rb2 rb5 rb1 rb3",
  "rb4 rb1 rb3 rb5 rb2 ws6 ws7 ws10 ws9 ws8 rb10 rb6 rb7 rb9 rb8 ws2 ws1 ws5 ws4 ws3",
  "ws5 ws2 ws3 ws4 ws1 rb8 rb6 rb9 rb10 rb7 ws8 ws10 ws6 ws9 ws7 rb1 rb5 rb3 rb4 rb2"))
mated <- paste0("11111100000000001111", "11011101001001101010", "11111100111001011110", "01101010101101000011",
                "11111101110000001111", "11111101101011001000")
matings <- data.frame(y = as.integer(strsplit(mated, "")[[1]]), model = rep(rep(c("rb", "ws"), each = 10), 6), male = substr(partner, 1, 2),
                      female = rep(paste0(rep(c("rb", "ws"), each = 10), 1:10), 6), partner = partner)
add("salamander", matings, "y ~ model * male + (1 | female) + (1 | partner)", "binomial", "logit")
cat("\n")
write_reference("glmm", cases = cases, glmmTMB = as.character(packageVersion("glmmTMB")), MASS = as.character(packageVersion("MASS")))
