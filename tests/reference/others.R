# Marginal means of linear and generalised linear models by emmeans: what the package makes of statsmodels' results.
# Writes others.json.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(emmeans))

data <- read_input("bench_prior_unbalanced")
data$above <- as.numeric(data$y > -1)
data$count <- floor(exp(data$y + 3))
data$logn <- log(1 + data$fidelity)

numbers <- function(found, value) {
  table <- summary(found, infer = c(TRUE, TRUE))
  low <- grep("lower|asymp.LCL", names(table))
  data.frame(
    estimate = table[[value]], se = table$SE, df = table$df, p_value = table$p.value,
    ci_low = table[[low]], ci_high = table[[low + 1]], row.names = NULL
  )
}

both_scales <- function(fit) {
  link <- emmeans(fit, ~ algorithm | prior)
  overall <- emmeans(fit, ~ algorithm)
  response <- regrid(overall)
  joint <- if (is.null(fit$offset)) joint_tests(fit)  # with an offset emmeans 1.8.4 stops
  out <- list(
    means = numbers(link, "emmean"), pairs = numbers(pairs(link), "estimate"),
    proportional = numbers(emmeans(fit, ~ algorithm, weights = "proportional"), "emmean"),
    joint = if (!is.null(joint)) data.frame(term = joint[["model term"]], df_num = joint$df1, df_den = joint$df2,  # F has three digits there, p all
                       p_value = joint$p.value, row.names = NULL)
  )
  if (inherits(fit, "glm")) {
    transformed <- summary(overall, type = "response")
    low <- grep("lower|asymp.LCL", names(transformed))
    out$response <- data.frame(mean = transformed[[2]], se = transformed$SE, ci_low = transformed[[low]],
                               ci_high = transformed[[low + 1]], row.names = NULL)
    out$differences <- numbers(pairs(response), "estimate")
  }
  out
}

tight <- glm.control(epsilon = 1e-14, maxit = 100)
write_reference(
  "others",
  ols = both_scales(lm(y ~ algorithm * prior + log(fidelity), data)),
  binomial = both_scales(glm(above ~ algorithm * prior + fidelity, binomial, data, control = tight)),
  probit = both_scales(glm(above ~ algorithm + prior + fidelity, binomial("probit"), data, control = tight)),
  poisson = both_scales(glm(count ~ algorithm * prior, poisson, data, offset = logn, control = tight))
)
