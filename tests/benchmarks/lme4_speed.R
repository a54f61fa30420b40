# Times lme4 on the models of the PriorBand table (ML) and on InstEval (REML and ML), default settings.
#
#   Rscript lme4_speed.R PRIORBAND.csv INSTEVAL.csv.gz > timings.json
#
# Either path may be "-" to leave that part out. Elapsed seconds of one call of lmer() each; reading the data and
# turning text into factors are not counted.

suppressPackageStartupMessages({
  library(lme4)
  library(jsonlite)
})

paths <- commandArgs(trailingOnly = TRUE)
if (length(paths) != 2) stop("usage: Rscript lme4_speed.R PRIORBAND.csv INSTEVAL.csv.gz")

priorband <- c(
  "value ~ algorithm + (1|benchmark)",
  "value ~ algorithm + (1|benchmark) + used_fidelity",
  "value ~ algorithm + algorithm:used_fidelity + (1|benchmark)",
  "value ~ algorithm + (1|benchmark) + (1|used_fidelity)",
  "value ~ algorithm + (1|benchmark) + (1|seed) + prior",
  "value ~ algorithm + (0+algorithm|seed)",
  "value ~ algorithm + (algorithm|benchmark) + (1|seed)",
  "value ~ algorithm*prior + (1+algorithm|benchmark) + (1|benchmark:seed) + (1|used_fidelity)"
)
insteval <- "y ~ service + (1|s) + (1|d) + (1|dept:service)"

time_one <- function(dataset, formula, data, reml) {
  parsed <- as.formula(formula)
  gc()
  seconds <- system.time(
    fit <- suppressMessages(suppressWarnings(lmer(parsed, data, REML = reml)))
  )[["elapsed"]]
  message(sprintf("lme4 %7.2f s  %s", seconds, formula))
  list(dataset = dataset, formula = formula, reml = reml, seconds = seconds, llf = as.numeric(logLik(fit)))
}

# The first call pays for loading methods; it must not be charged to a model.
invisible(lmer(Reaction ~ Days + (Days | Subject), sleepstudy))

timings <- list()
if (paths[1] != "-") {
  data <- read.csv(paths[1], stringsAsFactors = TRUE)
  timings <- lapply(priorband, time_one, dataset = "priorband", data = data, reml = FALSE)
}
if (paths[2] != "-") {
  data <- read.csv(paths[2], colClasses = "character")
  data$y <- as.numeric(data$y)
  data[-1] <- lapply(data[-1], factor)
  timings <- c(timings, lapply(c(TRUE, FALSE), time_one, dataset = "insteval", formula = insteval, data = data))
}

cat(toJSON(list(
  R = R.version.string, lme4 = as.character(packageVersion("lme4")), blas = extSoftVersion()[["BLAS"]],
  timings = timings
), auto_unbox = TRUE, digits = NA))
