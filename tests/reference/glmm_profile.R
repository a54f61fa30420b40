# Writes glmm_profile.json: profile-likelihood intervals (95 %) of standard deviations of generalised mixed models, from
# the data of glmm.json. `lme4_low` and `lme4_high` are confint(): points on lme4's profile, interpolated by splines.
# `low` and `high` solve the same equation without interpolation: lme4's deviance (Laplace's approximation) is minimised
# over all other parameters by nlminb, inside uniroot; 0 where it does not reach the cut above zero.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(lme4))
CUT <- qchisq(0.95, 1)
known <- jsonlite::fromJSON(here("glmm.json"), simplifyDataFrame = FALSE)$cases
names(known) <- vapply(known, function(case) case$name, "")

one <- function(name) {
  case <- known[[name]]
  data <- as.data.frame(case$data, stringsAsFactors = TRUE)
  for (column in intersect(names(data), c("task", "item", "herd", "subject", "model"))) data[[column]] <- factor(data[[column]])
  formula <- case$formula
  if (length(case$trials) && nzchar(case$trials)) formula <- sub("^y", paste0("cbind(y, ", case$trials, " - y)"), formula)
  control <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e5, rhoend = 1e-9))
  fit <- glmer(as.formula(formula), data, case$family, control = control)
  deviance_at <- update(fit, devFunOnly = TRUE)
  point <- c(getME(fit, "theta"), fixef(fit))
  n <- length(getME(fit, "theta"))
  scale <- c(rep(0.3, n), sqrt(diag(as.matrix(vcov(fit)))))
  least <- function(k, value, start) {
    of <- function(x) {
      full <- append(x * scale[-k], value, after = k - 1)
      out <- tryCatch(deviance_at(full), error = function(e) 1e10)
      if (is.finite(out)) out else 1e10
    }
    lower <- c(rep(0, n), rep(-Inf, length(point) - n))[-k]
    nlminb(start[-k] / scale[-k], of, lower = lower, control = list(rel.tol = 1e-12, eval.max = 5000, iter.max = 2000))$objective
  }
  best <- nlminb(point / scale, function(x) deviance_at(x * scale), lower = c(rep(0, n), rep(-Inf, length(point) - n)),
                 control = list(rel.tol = 1e-13, eval.max = 5000, iter.max = 2000))
  point <- best$par * scale
  sds <- lapply(seq_len(n), function(k) {
    rise <- function(value) least(k, value, point) - best$objective - CUT
    low <- if (point[k] < 1e-3 || rise(0) <= 0) 0 else uniroot(rise, c(0, point[k]), tol = 1e-6)$root
    list(group = sub("\\..*", "", names(getME(fit, "theta"))[k]), estimate = unname(point[k]), low = low,
         high = uniroot(rise, c(point[k], point[k] + 1), extendInt = "upX", tol = 1e-6)$root)
  })
  ends <- tryCatch(unname(confint(fit, parm = "theta_", quiet = TRUE)), error = function(e) matrix(NA_real_, n, 2))
  list(name = name, sds = sds, lme4_low = ends[, 1], lme4_high = ends[, 2])
}

write_reference("glmm_profile", cases = lapply(c("cbpp", "epil", "crossed 2", "attempts 1"), one))
