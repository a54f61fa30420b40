# Times what bench_inference.py times, in R and on the same rows.
#
#   Rscript inference_speed.R ALL.csv ONE_BUDGET.csv "score ~ recommended formula" CAP_SECONDS > timings.json
#
# Seconds on the clock and of the processor (R and its children); reading data, fitting the model that is asked about and
# loading packages are not counted. What takes longer than the cap is stopped, and has a note in place of a time.

suppressPackageStartupMessages({
  library(lme4)
  library(jsonlite)
})

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 4) stop("usage: Rscript inference_speed.R ALL.csv ONE_BUDGET.csv FORMULA CAP_SECONDS")
cap <- as.numeric(arguments[4])
recommended <- as.formula(arguments[3])

read_rows <- function(path) {
  data <- read.csv(path, stringsAsFactors = TRUE)
  data$seed <- factor(data$seed)
  data[order(data$benchmark, data$algorithm, data$seed, data$prior), ]
}
quiet <- function(x) suppressMessages(suppressWarnings(x))

timings <- list()
note <- function(key, text) {
  message(sprintf("R        -    %s: %s", key, text))
  timings[[length(timings) + 1]] <<- list(key = key, wall = NA, work = NA, note = text)
}

# The time of `f()` times `scale`: the fastest of up to three calls that together stay below five seconds.
time_one <- function(key, needs, f, scale = 1) {
  for (package in needs) {
    if (!quiet(requireNamespace(package, quietly = TRUE))) return(note(key, paste(package, "is not installed")))
  }
  wall <- work <- Inf
  spent <- 0
  for (i in 1:3) {
    gc()
    setTimeLimit(elapsed = cap, transient = TRUE)
    took <- tryCatch(system.time(quiet(f())), error = function(e) conditionMessage(e))
    setTimeLimit()
    if (is.character(took)) {
      return(note(key, if (grepl("time limit", took)) sprintf("over %g s", cap) else gsub("\n", " ", took)))
    }
    wall <- min(wall, took[["elapsed"]])
    work <- min(work, sum(took[c("user.self", "sys.self", "user.child", "sys.child")], na.rm = TRUE))
    spent <- spent + took[["elapsed"]]
    if (spent > 5) break
  }
  message(sprintf("R %8.3f s  %s", work * scale, key))
  timings[[length(timings) + 1]] <<- list(key = key, wall = wall * scale, work = work * scale, note = NA)
}

model <- score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)
nested <- score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)
if (requireNamespace("emmeans", quietly = TRUE)) {
  suppressPackageStartupMessages(library(emmeans))
  emm_options(lmerTest.limit = Inf, pbkrtest.limit = Inf)
}
# with the table by its name, because influence() and PBmodcomp() repeat the call
fit_of <- function(formula, table, reml = TRUE) {
  quiet(eval(bquote(lme4::lmer(.(formula), .(as.name(table)), REML = .(reml))), globalenv()))
}
compare <- function(fit) summary(pairs(emmeans(fit, "algorithm", lmer.df = "satterthwaite")))
# the covariance, and the df of every coefficient
kenward_roger <- function(fit) {
  adjusted <- pbkrtest::vcovAdj(fit)
  lapply(seq_along(fixef(fit)), function(j) {
    pbkrtest::Lb_ddf(replace(numeric(length(fixef(fit))), j, 1), vcov(fit), adjusted)
  })
}

# ---------------------------------------------------------------- all rows: where R comes to an end

everything <- read_rows(arguments[1])
large <- fit_of(model, "everything")
rows <- max(table(everything$benchmark))
note("kenward-roger all", sprintf("not tried: a dense matrix of %d x %d per benchmark", rows, rows))
time_one("pairs all", c("emmeans", "lmerTest"), function() compare(large))
large <- NULL

# ---------------------------------------------------------------- one budget

d <- read_rows(arguments[2])
fit <- fit_of(model, "d")
time_one("kenward-roger one", "pbkrtest", function() kenward_roger(fit))
time_one("pairs one", c("emmeans", "lmerTest"), function() compare(fit))
time_one("influence benchmark one", character(), function() influence(fit, groups = "benchmark"))
time_one("influence seed one", character(), function() influence(fit, groups = "seed"))
by_nested <- fit_of(nested, "d")
time_one("cr2 one", "clubSandwich", function() {
  clubSandwich::coef_test(by_nested, clubSandwich::vcovCR(by_nested, cluster = d$benchmark, type = "CR2"))
})

alternative <- fit_of(model, "d", reml = FALSE)
null <- fit_of(update(model, . ~ . - algorithm), "d", reml = FALSE)
time_one("bootstrap", "pbkrtest", function() pbkrtest::PBmodcomp(alternative, null, nsim = 10, cl = 1), scale = 99.9)
time_one("profile one", character(), function() confint(profile(alternative, signames = FALSE)))

# An exchange by hand: the scores of the algorithms change places on each benchmark, and the model is refitted to them.
# The rows are sorted, so this is exact where every algorithm has the same runs.
exchanged <- function() {
  out <- d$score
  for (rows in split(seq_len(nrow(d)), d$benchmark)) {
    parts <- split(rows, d$algorithm[rows])
    out[rows] <- d$score[unlist(parts[sample(length(parts))], use.names = FALSE)]
  }
  out
}
set.seed(1)
balanced <- length(unique(c(table(d$benchmark, d$algorithm)))) == 1
if (balanced) {
  time_one("permutation", character(), function() {
    again <- refit(alternative, exchanged())
    fixef(again) / sqrt(diag(as.matrix(vcov(again))))
  })
  time_one("audit", c("emmeans", "lmerTest"), function() {
    other <<- transform(d, score = exchanged())
    compare(fit_of(score ~ algorithm + (1 | benchmark), "other"))
    compare(fit_of(recommended, "other"))
  })
}

# ---------------------------------------------------------------- without data

q <- runif(276, 0.5, 8)
df <- runif(276, 3, 500)
time_one("tukey", character(), function() for (i in 1:10) ptukey(q, 24, df, lower.tail = FALSE), scale = 0.1)

packages <- Filter(
  function(p) requireNamespace(p, quietly = TRUE), c("lme4", "lmerTest", "pbkrtest", "emmeans", "clubSandwich")
)
versions <- lapply(setNames(packages, packages), function(p) as.character(packageVersion(p)))
cat(toJSON(list(R = R.version.string, packages = versions, timings = timings), auto_unbox = TRUE, digits = NA, na = "null"))
