# Named families of contrasts by emmeans, and slopes of numeric columns by its emtrends.
# Writes contrasts.json.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(emmeans))
emm_options(lmerTest.limit = 1e5, pbkrtest.limit = 1e5)

family_names <- c("poly", "consec", "eff", "del.eff")

coefficients_of <- function(name, k) {
  method <- get(paste0(name, ".emmc"), asNamespace("emmeans"))
  table <- method(letters[seq_len(k)])
  list(family = name, k = k, names = I(names(table)), adjust = attr(table, "adjust"), rows = t(as.matrix(table)))
}

coefficients <- do.call(c, lapply(family_names, function(name) lapply(2:12, function(k) coefficients_of(name, k))))

# Helmert's contrasts as differences of means: the last coefficient is 1.
helmert <- lapply(2:8, function(k) {
  table <- stats::contr.helmert(k)
  list(k = k, rows = t(table) / seq_len(k - 1))
})

grids <- list(
  list("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)", "algorithm", "prior"),
  list("cake_unbalanced", "angle ~ recipe * temperature + (1|recipe:replicate)", "temperature", NULL)
)

tests_table <- function(found, by) {
  table <- as.data.frame(summary(found, infer = c(TRUE, TRUE)))
  out <- data.frame(
    contrast = as.character(table$contrast), estimate = table$estimate, se = table$SE, df = table$df,
    p_value = table$p.value, ci_low = table$lower.CL, ci_high = table$upper.CL
  )
  if (!is.null(by)) out <- cbind(setNames(list(as.character(table[[by]])), by), out)
  out
}

describe_grid <- function(model) {
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE)
  em <- suppressMessages(emmeans(fit, model[[3]], by = model[[4]], data = data, lmer.df = "satterthwaite"))
  families <- lapply(setNames(family_names, family_names), function(name) {
    list(none = tests_table(contrast(em, name, adjust = "none"), model[[4]]))
  })
  families$eff$fdr <- tests_table(contrast(em, "eff"), model[[4]])
  list(data = model[[1]], formula = model[[2]], specs = model[[3]], by = if (is.null(model[[4]])) NA else model[[4]],
       families = families)
}

# Slopes: emtrends takes a forward difference over a thousandth of the range, which is too far for curves: a smaller step.
trends <- list(
  list("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark) + (1|benchmark:algorithm)", "algorithm", "fidelity"),
  list("nested_slopes", "y ~ treatment * x + (x|a) + (1|a:b)", "treatment", "x"),
  list("bench_unbalanced", "y ~ algorithm * poly(fidelity, 2) + (1|benchmark)", "algorithm", "fidelity", list(fidelity = 2)),
  list("bench_unbalanced", "y ~ algorithm * log(fidelity) + (1|benchmark)", "algorithm", "fidelity", list(fidelity = c(1, 3))),
  list("nested_slopes", "y ~ treatment * splines::bs(x, df = 4) + (1|a)", "treatment", "x", list(x = c(0.2, 1.5))),
  list("nested_slopes", "y ~ treatment * (x + I(x^2)) + (1|a)", "treatment", "x", list(x = c(-1, 0.5)))
)

describe_trend <- function(model) {
  message(model[[1]], ": ", model[[2]])
  data <- read_input(model[[1]])
  fit <- fit_best(as.formula(model[[2]]), data, TRUE)
  at <- if (length(model) > 4) model[[5]] else NULL
  width <- diff(range(data[[model[[4]]]]))
  slopes <- function(method) {
    found <- suppressMessages(emtrends(
      fit, c(model[[3]], names(at)), var = model[[4]], at = at, data = data, lmer.df = method, delta.var = 1e-7 * width
    ))
    table <- as.data.frame(summary(found, infer = c(TRUE, FALSE)))
    out <- data.frame(slope = table[[paste0(model[[4]], ".trend")]], se = table$SE, df = table$df)
    cbind(setNames(data.frame(as.character(table[[model[[3]]]])), model[[3]]), table[as.character(names(at))], out)
  }
  list(
    data = model[[1]], formula = gsub("splines::", "", model[[2]]), specs = model[[3]], var = model[[4]],
    at = if (is.null(at)) NA else lapply(at, I),
    satterthwaite = slopes("satterthwaite"), kenward_roger = slopes("kenward-roger")
  )
}

write_reference(
  "contrasts", coefficients = coefficients, helmert = helmert, grids = lapply(grids, describe_grid),
  trends = lapply(trends, describe_trend)
)
