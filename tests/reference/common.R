# Shared by the scripts that write the reference values: reading inputs, writing JSON with 17 digits,
# and fitting with lme4 to the accuracy of double precision rather than to an optimiser's default tolerance.

suppressPackageStartupMessages({
  library(lme4)
  library(jsonlite)
})
invisible(Sys.setlocale("LC_COLLATE", "C"))
options(warn = 1, contrasts = c("contr.treatment", "contr.treatment"))

here <- function(...) {
  file_arg <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  file.path(if (length(file_arg)) dirname(normalizePath(file_arg[1])) else ".", ...)
}

# ---------------------------------------------------------------- inputs

input_columns <- function() fromJSON(here("inputs", "columns.json"), simplifyVector = FALSE)

# Text columns become factors whose levels are in byte order, so that R and Python code the same columns.
read_input <- function(name) {
  types <- input_columns()[[name]]
  path <- here("inputs", paste0(name, ".csv"))
  if (!file.exists(path)) path <- paste0(path, ".gz")
  data <- read.csv(path, colClasses = "character", check.names = FALSE)
  for (column in names(types)) {
    data[[column]] <- if (types[[column]] == "str") as_factor(data[[column]]) else as.numeric(data[[column]])
  }
  data
}

as_factor <- function(x) factor(x, levels = sort(unique(as.character(x)), method = "radix"))

# ---------------------------------------------------------------- JSON

json_number <- function(x) {
  out <- sprintf("%.17g", x)
  short <- sprintf("%.15g", x)
  same <- is.finite(x) & suppressWarnings(as.numeric(short)) == x
  out[same] <- short[same]
  out[is.na(x)] <- "null"
  out[is.infinite(x)] <- ifelse(x[is.infinite(x)] > 0, "\"Inf\"", "\"-Inf\"")
  out
}

json_scalars <- function(x) {
  if (is.factor(x)) x <- as.character(x)
  if (is.logical(x)) return(ifelse(is.na(x), "null", ifelse(x, "true", "false")))
  if (is.numeric(x)) return(json_number(x))
  ifelse(is.na(x), "null", vapply(x, function(s) as.character(toJSON(s, auto_unbox = TRUE)), ""))
}

# A named list is an object, a data frame an array of row objects, I(x) always an array, other vectors of
# length one a scalar. Not finite numbers: "Inf", "-Inf" and null (NA, NaN).
json <- function(x, indent = "") {
  deeper <- paste0(indent, " ")
  join <- function(parts, open, close) {
    if (!length(parts)) return(paste0(open, close))
    if (sum(nchar(parts)) < 140) return(paste0(open, paste(parts, collapse = ", "), close))
    paste0(open, "\n", paste0(deeper, parts, collapse = ",\n"), "\n", indent, close)
  }
  if (is.null(x)) return("null")
  if (is.data.frame(x)) {
    columns <- lapply(x, json_scalars)
    keys <- paste0("\"", names(x), "\": ")
    rows <- vapply(seq_len(nrow(x)), function(i) {
      paste0("{", paste0(keys, vapply(columns, `[`, "", i), collapse = ", "), "}")
    }, "")
    return(join(rows, "[", "]"))
  }
  if (is.matrix(x)) {
    return(join(vapply(seq_len(nrow(x)), function(i) json(I(unname(x[i, ])), deeper), ""), "[", "]"))
  }
  if (is.list(x) && !is.null(names(x))) {
    parts <- vapply(names(x), function(key) {
      paste0(as.character(toJSON(key, auto_unbox = TRUE)), ": ", json(x[[key]], deeper))
    }, "")
    return(join(parts, "{", "}"))
  }
  if (is.list(x)) return(join(vapply(x, json, "", indent = deeper), "[", "]"))
  scalars <- unname(json_scalars(x))
  if (length(scalars) == 1 && !inherits(x, "AsIs")) return(scalars)
  paste0("[", paste(scalars, collapse = ", "), "]")
}

write_reference <- function(name, ..., optimisers = NULL) {
  packages <- c("lme4", "lmerTest", "emmeans", "pbkrtest", "Matrix", "minqa", "nloptr")
  versions <- lapply(setNames(packages, packages), function(p) as.character(packageVersion(p)))
  head <- list(
    generated_by = paste0("tests/reference/", name, ".R"),
    versions = c(list(R = paste(R.version$major, R.version$minor, sep = ".")), versions)
  )
  if (!is.null(optimisers)) head$optimisers <- I(optimisers)
  writeLines(json(c(head, list(...))), here(paste0(name, ".json")), useBytes = TRUE)
}

# ---------------------------------------------------------------- fitting

optimiser_settings <- list(
  bobyqa = list(optimizer = "bobyqa", control = list()),
  Nelder_Mead = list(optimizer = "Nelder_Mead", control = list()),
  nloptwrap = list(optimizer = "nloptwrap", control = list()),
  nlminbwrap = list(optimizer = "nlminbwrap", control = list()),
  bobyqa_tight = list(optimizer = "bobyqa", control = list(rhoend = 1e-10, maxfun = 100000)),
  Nelder_Mead_tight = list(optimizer = "Nelder_Mead", control = list(
    FtolAbs = 1e-12, FtolRel = 1e-15, XtolRel = 1e-12, maxfun = 20000)),
  nloptwrap_tight = list(optimizer = "nloptwrap", control = list(
    xtol_abs = 1e-12, ftol_abs = 1e-12, xtol_rel = 0, ftol_rel = 0, maxeval = 100000)),
  nlminbwrap_tight = list(optimizer = "nlminbwrap", control = list(
    rel.tol = 1e-14, x.tol = 1e-12, eval.max = 10000, iter.max = 5000))
)

lenient <- function(...) lmerControl(
  ..., check.rankX = "silent.drop.cols", check.scaleX = "ignore", check.conv.singular = "ignore",
  check.conv.grad = "ignore", check.conv.hess = "ignore", check.nobs.vs.nRE = "ignore",
  check.nobs.vs.nlev = "ignore", check.nobs.vs.rankZ = "ignore", check.nlev.gtr.1 = "ignore", calc.derivs = FALSE
)

deviance_function <- function(formula, data, reml, weights = NULL) {
  args <- list(formula = formula, data = data, REML = reml, control = lenient())
  if (!is.null(weights)) args$weights <- weights
  parts <- suppressMessages(do.call(lFormula, args))
  devfun <- suppressMessages(do.call(mkLmerDevfun, parts))
  list(
    devfun = devfun, start = environment(devfun)$pp$theta + 0, lower = environment(devfun)$lower,
    sizes = lengths(parts$reTrms$cnms), scale = theta_scale(parts$reTrms), X = parts$X, Zt = parts$reTrms$Zt
  )
}

# theta[row, column] of a Lambda block multiplies basis column `row`, so 1 / rms(basis column) is its natural size.
theta_scale <- function(terms) {
  unlist(lapply(seq_along(terms$cnms), function(i) {
    k <- length(terms$cnms[[i]])
    Zt <- terms$Ztlist[[i]]
    rms <- vapply(seq_len(k), function(j) sqrt(sum(Zt[seq(j, nrow(Zt), by = k), ]^2) / ncol(Zt)), 0)
    1 / rms[row(diag(k))[lower.tri(diag(k), diag = TRUE)]]
  }))
}

# One run exactly as lmer() does it (restart at the edge, boundary check), from the given start.
run_optimiser <- function(problem, setting, start = problem$start) {
  tryCatch(
    suppressMessages(suppressWarnings(optimizeLmer(
      problem$devfun, optimizer = setting$optimizer, start = start, control = setting$control,
      calc.derivs = FALSE, restart_edge = TRUE, boundary.tol = 1e-5
    ))),
    error = function(e) list(par = problem$start, fval = Inf, message = conditionMessage(e))
  )
}

# Eighth-order central differences: with h = 0.02 the truncation is near 1e-14 relative, and rounding in the
# deviance (1e-12) is divided by 0.02 rather than by 1e-6.
fine_gradient <- function(f, theta) {
  coefficient <- c(4 / 5, -1 / 5, 4 / 105, -1 / 280)
  vapply(seq_along(theta), function(i) {
    h <- 0.02 * max(abs(theta[i]), 0.05)
    at <- function(k) f(replace(theta, i, theta[i] + k * h))
    sum(coefficient * vapply(1:4, function(k) at(k) - at(-k), 0)) / h
  }, 0)
}

fine_hessian <- function(f, theta) {
  columns <- vapply(seq_along(theta), function(i) {
    h <- 0.01 * max(abs(theta[i]), 0.05)
    shifted <- function(k) fine_gradient(f, replace(theta, i, theta[i] + k * h))
    (shifted(1) - shifted(-1)) / (2 * h)
  }, numeric(length(theta)))
  columns <- matrix(columns, length(theta))
  (columns + t(columns)) / 2
}

# Newton steps on the deviance, which is symmetric in the sign of a column of Lambda and so needs no bounds.
# Flat directions (a rotation within a singular block, two terms that share a variance) are counted and left
# alone by the pseudo-inverse. Works on theta / scale.
polish <- function(devfun, theta, scale, steps = 6) {
  f <- function(x) devfun(x * scale)
  x <- theta / scale
  best <- f(x)
  eig <- eigen(fine_hessian(f, x), symmetric = TRUE)
  keep <- eig$values > 1e-6 * max(abs(eig$values))
  size <- NA
  for (step in seq_len(steps)) {
    along <- crossprod(eig$vectors[, keep, drop = FALSE], fine_gradient(f, x)) / eig$values[keep]
    move <- -as.vector(eig$vectors[, keep, drop = FALSE] %*% along)
    value <- f(x + move)
    if (!is.finite(value) || value > best + 1e-11 * abs(best)) break
    x <- x + move
    best <- min(best, value)
    size <- max(abs(move))
    if (size < 1e-10) break
  }
  list(theta = x * scale, last_step = size, flat_directions = sum(!keep))
}

# Each column of each Lambda block gets a diagonal >= 0; diagonals that only rounding keeps from zero become zero.
canonical_theta <- function(f, theta, sizes, scale) {
  offset <- 0
  for (k in sizes) {
    for (j in seq_len(k)) {
      index <- offset + seq_len(k - j + 1)
      if (theta[index[1]] < 0) theta[index] <- -theta[index]
      small <- theta[index[1]] < 1e-4 * scale[index[1]]
      if (small && f(replace(theta, index[1], 0)) <= f(theta) + 1e-9) theta[index[1]] <- 0
      offset <- offset + k - j + 1
    }
  }
  theta
}

# The best point of every optimiser, polished. Returns theta, -2 log-likelihood per optimiser, and how far the
# last Newton step went (the accuracy of theta / scale).
best_theta <- function(formula, data, reml, weights = NULL, settings = optimiser_settings) {
  problem <- deviance_function(formula, data, reml, weights)
  runs <- lapply(settings, function(setting) run_optimiser(problem, setting))
  values <- vapply(runs, function(run) as.numeric(run$fval), 0)
  theta <- runs[[which.min(values)]]$par
  polished <- polish(problem$devfun, theta, problem$scale)
  list(
    theta = canonical_theta(problem$devfun, polished$theta, problem$sizes, problem$scale),
    values = values, last_step = polished$last_step, flat_directions = polished$flat_directions
  )
}

# A fitted lmerModLmerTest at a given theta, with the call that emmeans and lmerTest need. Weights are the name
# of a column.
fit_at <- function(formula, data, reml, theta, weights = NULL) {
  args <- list(
    formula = formula, data = data, REML = reml, start = theta,
    control = lenient(optimizer = NULL)
  )
  if (!is.null(weights)) args$weights <- data[[weights]]
  suppressMessages(do.call(lmerTest::lmer, args))
}

fit_best <- function(formula, data, reml, weights = NULL, settings = optimiser_settings) {
  found <- best_theta(formula, data, reml, if (!is.null(weights)) data[[weights]], settings)
  fit <- fit_at(formula, data, reml, found$theta, weights)
  attr(fit, "search") <- found
  fit
}

# ---------------------------------------------------------------- names

# R's "recipeB:temp" as formulaic writes it: "recipe[T.B]:temp"; "(Intercept)" as "Intercept". Columns of a
# term without intercept are indicators: "recipe[B]".
python_name <- function(name, data, mark = "T.") {
  if (name == "(Intercept)") return("Intercept")
  factors <- names(data)[vapply(data, is.factor, NA)]
  pieces <- vapply(strsplit(name, ":", fixed = TRUE)[[1]], function(piece) {
    for (f in factors) {
      level <- substring(piece, nchar(f) + 1)
      if (startsWith(piece, f) && level %in% levels(data[[f]])) return(paste0(f, "[", mark, level, "]"))
    }
    piece
  }, "")
  paste(pieces, collapse = ":")
}

python_names <- function(names, data) {
  mark <- if ("(Intercept)" %in% names) "T." else ""
  vapply(names, python_name, "", data = data, mark = mark, USE.NAMES = FALSE)
}

# lme4 labels the inner group of a/b "b:a"; the package writes "a:b". Returns c(package label, flip levels?).
python_group <- function(group, formula_text) {
  parts <- strsplit(group, ":", fixed = TRUE)[[1]]
  nested <- length(parts) == 2 && grepl(paste0(parts[2], "/", parts[1]), gsub(" ", "", formula_text), fixed = TRUE)
  list(label = if (nested) paste(rev(parts), collapse = ":") else group, flip = nested)
}

# ---------------------------------------------------------------- what a fit is compared on

describe_fixef <- function(fit, data) {
  full <- fixef(fit, add.dropped = TRUE)
  se <- setNames(rep(NA_real_, length(full)), names(full))
  se[names(fixef(fit))] <- sqrt(diag(as.matrix(vcov(fit))))
  data.frame(name = python_names(names(full), data), r_name = names(full), estimate = unname(full), se = unname(se))
}

describe_varcorr <- function(fit, data, formula_text) {
  blocks <- VarCorr(fit)
  terms <- getME(fit, "cnms")
  rows <- lapply(seq_along(terms), function(i) {
    block <- as.matrix(blocks[[i]])
    k <- nrow(block)
    sds <- sqrt(diag(block))
    labels <- python_names(rownames(block), data)
    at <- which(lower.tri(block, diag = TRUE), arr.ind = TRUE)
    data.frame(
      term = i - 1, group = python_group(names(terms)[i], formula_text)$label,
      name1 = labels[at[, 2]], name2 = labels[at[, 1]], vcov = block[at],
      sdcor = ifelse(at[, 1] == at[, 2], sds[at[, 1]], cov2cor_safe(block)[at]),
      stringsAsFactors = FALSE
    )
  })
  do.call(rbind, rows)
}

cov2cor_safe <- function(block) {
  sds <- sqrt(diag(block))
  out <- block / outer(sds, sds)
  out[!is.finite(out)] <- NA
  out
}

describe_ranef <- function(fit, data, formula_text) {
  terms <- getME(fit, "cnms")
  tables <- ranef(fit, condVar = FALSE)
  lapply(unique(names(terms)), function(group) {
    name <- python_group(group, formula_text)
    table <- tables[[group]]
    levels <- rownames(table)
    if (name$flip) levels <- vapply(strsplit(levels, ":"), function(p) paste(rev(p), collapse = ":"), "")
    order <- order(levels, method = "radix")
    list(
      group = name$label, names = I(python_names(colnames(table), data)),
      levels = I(levels[order]), values = as.matrix(table)[order, , drop = FALSE]
    )
  })
}

# Everything a fit is compared on. `search` reports how far lme4's optimisers stopped from the best point.
describe_fit <- function(fit, data, formula_text, with_ranef = TRUE) {
  search <- attr(fit, "search")
  out <- list(
    llf = as.numeric(logLik(fit)), n_params = attr(logLik(fit), "df"), nobs = nobs(fit),
    aic = AIC(fit), bic = BIC(fit), sigma = sigma(fit), is_singular = isSingular(fit),
    theta = I(unname(getME(fit, "theta"))), theta_last_step = search$last_step,
    flat_directions = search$flat_directions,
    fixef = describe_fixef(fit, data), varcorr = describe_varcorr(fit, data, formula_text)
  )
  if (with_ranef) out$ranef <- describe_ranef(fit, data, formula_text)
  if (!is.null(search)) out$optimiser_llf <- as.list(-search$values / 2)
  out
}
