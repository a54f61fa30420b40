# Writes profile.json: profile-likelihood intervals (95 %, by maximum likelihood) of standard deviations,
# correlations, the residual standard deviation and fixed effects.
#
# `lme4_low`, `lme4_high` are confint(profile(fit)): points on the profile, interpolated by splines. `low`, `high` solve
# the same equation without interpolation: the deviance (lme4's own function) is minimised over all other
# parameters by nlminb and Newton steps with eighth-order differences, inside uniroot.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

LEVEL <- 0.95
CUT <- qnorm(0.5 + LEVEL / 2)
BIG <- 1e10

# ---------------------------------------------------------------- minimum over the other parameters

# From the start, and again with the standard deviations that are about zero there moved off it: the deviance is even in
# each, so its gradient says nothing at zero.
tight_minimum <- function(f, start, lower = -Inf, upper = Inf) {
  if (!length(start)) return(list(par = start, value = f(start)))
  zero <- is.finite(lower) & lower == 0 & start < 0.05 * max(abs(start), 0.5)
  found <- one_minimum(f, start, lower, upper)
  if (!any(zero)) return(found)
  moved <- one_minimum(f, replace(start, zero, 0.3 * max(abs(start), 0.5)), lower, upper)
  if (moved$value < found$value) moved else found
}

one_minimum <- function(f, start, lower, upper) {
  size <- pmax(abs(start), 0.05)
  g <- function(x) {
    value <- tryCatch(f(x * size), error = function(e) BIG)
    if (is.finite(value)) value else BIG
  }
  found <- nlminb(start / size, g, lower = lower / size, upper = upper / size,
                  control = list(rel.tol = 1e-14, x.tol = 1e-12, eval.max = 5000, iter.max = 2000))
  x <- found$par
  # below 1e-4 of its size a standard deviation is at its bound, where there is nothing to polish
  inside <- abs(x * size - lower) > 1e-3 & abs(x * size - upper) > 1e-3
  if (any(inside)) {
    part <- function(y) g(replace(x, inside, y))
    polished <- polish(part, x[inside], pmax(abs(x[inside]), 0.05))
    if (part(polished$theta) <= found$objective) x[inside] <- polished$theta
  }
  list(par = x * size, value = g(x))
}

# Roots of zeta(value) = -+ CUT, from the fit outwards; `profile` maps (value, start) to a minimum.
solve_ends <- function(profile, estimate, best, start, step, lower, upper) {
  vapply(c(-1, 1), function(sign) {
    bound <- if (sign < 0) lower else upper
    memory <- start
    zeta <- function(value) {
      found <- profile(value, memory)
      memory <<- found$par
      sqrt(max(found$value - best, 0)) - CUT
    }
    if (is.finite(bound) && zeta(bound) <= 0) return(bound)
    memory <- start
    inner <- estimate
    outer <- estimate + sign * step
    repeat {
      if (sign * (outer - bound) >= 0) {
        outer <- bound
        break
      }
      if (zeta(outer) > 0) break
      inner <- outer
      outer <- outer + sign * step
    }
    # R's own root of the bracket; the profile is smooth, so 1e-12 costs a few more evaluations only
    uniroot(zeta, sort(c(inner, outer)), tol = 1e-12 * max(abs(outer), abs(estimate)), maxiter = 200)$root
  }, 0)
}

# ---------------------------------------------------------------- one model

variance_ends <- function(fit) {
  devfun <- lme4:::devfun2(fit, useSc = TRUE)
  optimum <- attr(devfun, "optimum")
  n <- length(getME(fit, "theta")) + 1
  x <- optimum[seq_len(n)]
  is_cor <- grepl("^cor", lme4:::profnames(fit, signames = FALSE)[seq_len(n)])
  lower <- ifelse(is_cor, -1, 0)
  upper <- ifelse(is_cor, 1, Inf)
  inside_lower <- ifelse(is_cor, -1 + 1e-9, 0)
  inside_lower[n] <- 1e-6
  inside_upper <- ifelse(is_cor, 1 - 1e-9, Inf)
  best <- tight_minimum(devfun, x, inside_lower, inside_upper)
  t(vapply(seq_len(n), function(i) {
    profile <- function(value, start) {
      f <- function(other) devfun(append(other, value, after = i - 1))
      tight_minimum(f, start, inside_lower[-i], inside_upper[-i])
    }
    step <- if (is_cor[i]) 0.25 else max(0.3 * x[i], 0.1 * x[n])
    # a correlation of exactly one and a residual of zero are outside of what lme4's function takes
    ends <- solve_ends(profile, x[i], best$value, best$par[-i], step,
                       if (is_cor[i]) -1 + 1e-9 else if (i == n) -Inf else lower[i],
                       if (is_cor[i]) 1 - 1e-9 else upper[i])
    c(estimate = unname(best$par[i]), low = ends[1], high = ends[2])
  }, numeric(3)))
}

fixed_ends <- function(formula, data, fit, weights) {
  args <- list(formula = formula, data = data, REML = FALSE, control = lenient())
  if (!is.null(weights)) args$weights <- data[[weights]]
  parts <- suppressMessages(do.call(lFormula, args))
  theta <- getME(fit, "theta")
  bounds <- environment(do.call(mkLmerDevfun, parts))$lower
  whole <- tight_minimum(do.call(mkLmerDevfun, parts), theta, bounds)
  y <- parts$fr[[1]]
  t(vapply(seq_len(ncol(parts$X)), function(j) {
    profile <- function(value, start) {
      changed <- parts
      changed$X <- parts$X[, -j, drop = FALSE]
      changed$fr[[1]] <- as.numeric(y - value * parts$X[, j])
      tight_minimum(suppressMessages(do.call(mkLmerDevfun, changed)), start, bounds)
    }
    estimate <- unname(fixef(fit)[j])
    se <- sqrt(diag(as.matrix(vcov(fit))))[j]
    ends <- solve_ends(profile, estimate, whole$value, whole$par, 1.5 * se, -Inf, Inf)
    c(estimate = estimate, low = ends[1], high = ends[2])
  }, numeric(3)))
}

# Rows in lme4's order: per term sds and correlations, the residual, fixed effects.
describe_profile <- function(name, formula_text, weights = NULL) {
  message(name, ": ", formula_text)
  data <- read_input(name)
  formula <- as.formula(formula_text)
  fit <- fit_best(formula, data, FALSE, weights, optimiser_settings[c(1, 3)])
  exact <- rbind(variance_ends(fit), fixed_ends(formula, data, fit, weights))
  args <- list(formula = formula, data = data, REML = FALSE)
  if (!is.null(weights)) args$weights <- data[[weights]]
  standard <- suppressMessages(do.call(lme4::lmer, args))  # profile() repeats the call, so as a user writes it
  interpolated <- suppressMessages(suppressWarnings(confint(profile(standard, signames = FALSE), level = LEVEL)))
  vc <- as.data.frame(VarCorr(fit), order = "lower.tri")
  groups <- vapply(vc$grp, function(g) python_group(g, formula_text)$label, "")
  names1 <- ifelse(is.na(vc$var1), "", python_names(ifelse(is.na(vc$var1), "x", vc$var1), data))
  names2 <- ifelse(is.na(vc$var2), "", python_names(ifelse(is.na(vc$var2), "x", vc$var2), data))
  n_fixed <- length(fixef(fit))
  rows <- data.frame(
    kind = c(ifelse(groups == "Residual", "residual sd", ifelse(names2 == "", "sd", "corr")), rep("fixed", n_fixed)),
    group = c(unname(groups), rep("", n_fixed)),
    name1 = c(names1, python_names(names(fixef(fit)), data)),
    name2 = c(names2, rep("", n_fixed)),
    estimate = exact[, "estimate"], low = exact[, "low"], high = exact[, "high"],
    lme4_low = unname(interpolated[, 1]), lme4_high = unname(interpolated[, 2])
  )
  list(data = name, formula = formula_text, weights = if (is.null(weights)) NA else weights,
       deviance = -2 * as.numeric(logLik(fit)), parameters = rows)
}

models <- list(
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy_weights", "Reaction ~ Days + (Days|Subject)", "w"),
  list("Dyestuff", "Yield ~ 1 + (1|Batch)"),
  list("Dyestuff2", "Yield ~ 1 + (1|Batch)"),
  list("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  list("Pastes", "strength ~ 1 + (1|batch/cask)"),
  list("cake", "angle ~ recipe + temp + (1|recipe:replicate)"),
  list("cake_unbalanced", "angle ~ recipe + temp + (1|recipe:replicate)"),
  list("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|seed)")
)
results <- lapply(models, function(m) describe_profile(m[[1]], m[[2]], if (length(m) > 2) m[[3]]))
write_reference("profile", level = LEVEL, models = results, optimisers = names(optimiser_settings[c(1, 3)]))
