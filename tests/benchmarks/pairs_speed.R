# Times lmerTest and the pairs of emmeans with Satterthwaite's degrees of freedom on a table of runs.
#
#   Rscript pairs_speed.R TABLE.csv "score ~ ..." REPEATS
#
# Prints seconds on the clock and of the processor of every call, as JSON. Reading is not counted.
suppressPackageStartupMessages({library(lmerTest); library(emmeans)})
given <- commandArgs(trailingOnly = TRUE)
table <- read.csv(given[1], stringsAsFactors = TRUE)
emm_options(lmerTest.limit = 1e6)
times <- replicate(as.integer(given[3]), {
  used <- system.time(suppressMessages({
    fit <- lmer(as.formula(given[2]), table)
    as.data.frame(pairs(emmeans(fit, "algorithm", lmer.df = "satterthwaite")))
  }))
  c(used[["elapsed"]], used[["user.self"]] + used[["sys.self"]])
})
cat("[", paste(apply(times, 2, function(t) sprintf("[%f, %f]", t[1], t[2])), collapse = ", "), "]", sep = "")
