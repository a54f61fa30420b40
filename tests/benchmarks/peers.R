# A process that times R's packages for suite.py.
#
# Reads lines "task<TAB>table.csv<TAB>formula" and answers each by a line of JSON: [seconds on the clock, seconds of the
# processor], or a sentence why there is no time. Reading, what a task prepares and loading packages are not counted.
suppressPackageStartupMessages(library(lme4))
quiet <- function(x) suppressMessages(suppressWarnings(x))
known <- c("lme4", "lmerTest", "emmeans", "pbkrtest", "clubSandwich", "glmmTMB")
installed <- Filter(function(p) quiet(requireNamespace(p, quietly = TRUE)), known)
if ("emmeans" %in% installed) quiet(emmeans::emm_options(lmerTest.limit = Inf, pbkrtest.limit = Inf))

# by the name of the table, because influence() and PBmodcomp() repeat the call
fit_of <- function(formula, table, reml = TRUE, lmer = lme4::lmer) {
  quiet(eval(bquote(.(lmer)(.(formula), .(as.name(table)), REML = .(reml))), globalenv()))
}
compare <- function(fit) as.data.frame(quiet(pairs(emmeans::emmeans(fit, "algorithm", lmer.df = "satterthwaite"))))
# the covariance, and the df of every coefficient
kenward_roger <- function(fit) {
  adjusted <- pbkrtest::vcovAdj(fit)
  k <- length(fixef(fit))
  lapply(seq_len(k), function(j) pbkrtest::Lb_ddf(replace(numeric(k), j, 1), vcov(fit), adjusted))
}
# An exchange by hand: the scores of the algorithms change places on each benchmark; exact where all have the same runs.
exchanged <- function(d) {
  d <- d[order(d$benchmark, d$algorithm, d$seed), ]
  for (rows in split(seq_len(nrow(d)), d$benchmark)) {
    parts <- split(rows, d$algorithm[rows])
    d$score[rows] <- d$score[unlist(parts[sample(length(parts))], use.names = FALSE)]
  }
  d$score
}

answers_of <- function(formula, table, fit, ...) {
  quiet(eval(bquote(.(fit)(.(formula), .(as.name(table)), family = binomial, ..(list(...))), splice = TRUE), globalenv()))
}

# Every task prepares what is not counted and returns the call that is.
tasks <- list(
  "lme4: fit" = function(table, formula) function() fit_of(formula, table),
  "lme4: fits by ML" = function(table, formula) function() for (f in formula) fit_of(f, table, reml = FALSE),
  "lme4: answers, nAGQ = 0" = function(table, formula) function() answers_of(formula, table, lme4::glmer, nAGQ = 0),
  "lme4 by Laplace: answers" = function(table, formula) function() answers_of(formula, table, lme4::glmer, nAGQ = 1),
  "glmmTMB: answers" = function(table, formula) function() answers_of(formula, table, glmmTMB::glmmTMB),
  "lmerTest and emmeans: fit and pairs" = function(table, formula) {
    function() compare(fit_of(formula, table, lmer = lmerTest::lmer))
  },
  "pbkrtest: Kenward-Roger" = function(table, formula) {
    fit <- fit_of(formula, table)
    function() kenward_roger(fit)
  },
  "pbkrtest: bootstrap" = function(table, formula) {
    alternative <- fit_of(formula, table, reml = FALSE)
    null <- fit_of(update(formula, . ~ . - algorithm), table, reml = FALSE)
    function() pbkrtest::PBmodcomp(alternative, null, nsim = 10, cl = 1)
  },
  "lme4: profile" = function(table, formula) {
    fit <- fit_of(formula, table, reml = FALSE)
    function() confint(profile(fit, signames = FALSE))
  },
  "lme4: influence" = function(table, formula) {
    fit <- fit_of(formula, table)
    function() influence(fit, groups = "benchmark")
  },
  "lme4: refit" = function(table, formula) {
    fit <- fit_of(formula, table, reml = FALSE)
    function() refit(fit, exchanged(get(table, globalenv())))
  },
  "clubSandwich: CR2" = function(table, formula) {
    fit <- fit_of(formula, table)
    cluster <- get(table, globalenv())$benchmark
    function() clubSandwich::coef_test(fit, clubSandwich::vcovCR(fit, cluster = cluster, type = "CR2"))
  },
  "R: ptukey" = function(table, formula) {
    q <- runif(276, 0.5, 8)
    df <- runif(276, 3, 500)
    function() ptukey(q, 24, df, lower.tail = FALSE)
  }
)
needs <- list(
  "lmerTest and emmeans: fit and pairs" = c("lmerTest", "emmeans"), "pbkrtest: Kenward-Roger" = "pbkrtest",
  "pbkrtest: bootstrap" = "pbkrtest", "clubSandwich: CR2" = "clubSandwich",
  "glmmTMB: answers" = "glmmTMB"
)

# the table under a name of its own, once; every column but the numbers is a factor
table_of <- function(path) {
  if (path == "") return("")
  name <- make.names(basename(path))
  if (!exists(name, globalenv())) {
    data <- read.csv(path, stringsAsFactors = TRUE)
    for (column in intersect(names(data), c("seed", "s", "d", "dept", "service"))) data[[column]] <- factor(data[[column]])
    assign(name, data, globalenv())
  }
  name
}
say <- function(text) {
  cat(text, "\n", sep = "")
  flush(stdout())
}
quoted <- function(text) paste0('"', gsub('["\\\\\n]', " ", text), '"')

versions <- sapply(installed, function(p) as.character(packageVersion(p)))
about <- c(R = paste(R.version$major, R.version$minor, sep = "."), versions, BLAS = basename(extSoftVersion()[["BLAS"]]))
say(paste0("{", paste(quoted(names(about)), quoted(about), sep = ": ", collapse = ", "), "}"))
prepared <- list()
lines <- file("stdin", "r")
while (length(line <- readLines(lines, 1))) {
  asked <- strsplit(line, "\t", fixed = TRUE)[[1]]
  length(asked) <- 3
  asked[is.na(asked)] <- ""
  absent <- setdiff(needs[[asked[1]]], installed)
  if (length(absent)) {
    say(quoted(paste(absent[1], "is not installed")))
    next
  }
  said <- tryCatch({
    if (is.null(prepared[[line]])) {
      formula <- lapply(strsplit(asked[3], ";", fixed = TRUE)[[1]], as.formula)
      if (length(formula) == 1 && asked[1] != "lme4: fits by ML") formula <- formula[[1]]
      prepared[[line]] <- tasks[[asked[1]]](table_of(asked[2]), formula)
    }
    gc()
    start <- proc.time()
    calls <- 0
    repeat {
      quiet(prepared[[line]]())
      calls <- calls + 1
      used <- (proc.time() - start)
      if (used[["elapsed"]] >= 0.1) break # as WARM in suite.py
    }
    work <- sum(used[c("user.self", "sys.self", "user.child", "sys.child")], na.rm = TRUE)
    sprintf("[%f, %f]", used[["elapsed"]] / calls, work / calls)
  }, error = function(e) quoted(conditionMessage(e)))
  say(said)
}
