# Writes random_effects.json: conditional standard deviations of the random effects (lme4's condVar), each on a REML
# fit at lme4's best point (see common.R).

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

models <- list(
  list("sleepstudy", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy_unbalanced", "Reaction ~ Days + (Days|Subject)"),
  list("sleepstudy_weights", "Reaction ~ Days + (Days|Subject)", "w"),
  list("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)"),
  list("bench_unbalanced", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"),
  list("nested_slopes", "y ~ treatment + x + (x|a) + (1|a:b)")
)

rows <- lapply(models, function(m) {
  data <- read_input(m[[1]])
  weights <- if (length(m) > 2) m[[3]]
  fit <- fit_best(as.formula(m[[2]]), data, TRUE, weights)
  modes <- ranef(fit, condVar = TRUE)
  groups <- lapply(names(modes), function(group) {
    table <- modes[[group]]
    variance <- attr(table, "postVar")
    order <- order(rownames(table), method = "radix")
    sds <- t(apply(variance, 3, function(v) sqrt(diag(as.matrix(v)))))
    if (ncol(table) == 1) sds <- matrix(sds, ncol = 1)
    list(
      group = group, names = I(python_names(colnames(table), data)), levels = I(rownames(table)[order]),
      modes = as.matrix(table)[order, , drop = FALSE], sds = sds[order, , drop = FALSE]
    )
  })
  list(data = m[[1]], formula = m[[2]], weights = if (is.null(weights)) NA else weights, groups = groups)
})
write_reference("random_effects", fits = rows)
