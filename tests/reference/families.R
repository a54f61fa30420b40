# Writes families.json: variances (REML, lme4) of advantages between families of benchmarks and between benchmarks, on
# the input nested_slopes: treatments as algorithms, a as families, b as benchmarks of a (nested) or of several (crossed).
# Its scores get advantages of each kind, because none is seen in them as they are.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))

data <- read_input("nested_slopes")
number <- lapply(data[c("a", "b", "treatment")], as.integer)
data$y <- data$y + with(number, 2 * sin(3 * a * treatment) + 2 * sin(5 * b * treatment) + 3 * sin(7 * a * b * treatment))
fixed <- "y ~ treatment + (1 | a) + (1 | a:treatment) + (1 | a:b) + (1 | a:b:treatment)"
models <- list(nested = fixed, crossed = paste(fixed, "+ (1 | b) + (1 | b:treatment)"))
results <- lapply(models, function(formula) {
  fit <- fit_best(as.formula(formula), data, TRUE)
  table <- as.data.frame(VarCorr(fit))
  list(formula = formula, llf = as.numeric(logLik(fit)), groups = I(table$grp), variances = I(table$vcov))
})
do.call(write_reference, c(list("families"), results))
