# Writes inputs/*.csv: the classical data sets from lme4, and small simulated ones with a fixed seed.
# Run once; the CSV files are committed and every other script reads them.

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
RNGversion("4.0.0")
set.seed(20240611)

columns <- list()
save_input <- function(name, data, compress = FALSE) {
  columns[[name]] <<- lapply(data, function(x) if (is.numeric(x)) "float" else "str")
  path <- here("inputs", paste0(name, ".csv", if (compress) ".gz"))
  connection <- if (compress) gzfile(path, "wb", compression = 9) else file(path, "wb")
  data[] <- lapply(data, function(x) if (is.numeric(x)) json_number(x) else as.character(x))
  write.csv(data, connection, row.names = FALSE, quote = FALSE)
  close(connection)
}
drop_rows <- function(data, n) data[sort(sample(nrow(data), nrow(data) - n)), ]
label <- function(prefix, i) sprintf("%s%d", prefix, i)

# ---- from lme4
save_input("sleepstudy", sleepstudy)
save_input("Penicillin", Penicillin)
save_input("Pastes", Pastes)
save_input("Dyestuff", Dyestuff)
save_input("Dyestuff2", Dyestuff2)
save_input("cake", cake)
save_input("InstEval", InstEval[c("y", "s", "d", "service", "dept")], compress = TRUE)

# ---- variations of them
save_input("sleepstudy_weights", transform(sleepstudy, w = round(runif(180, 0.25, 4), 3)))
save_input("sleepstudy_unbalanced", drop_rows(sleepstudy, 45))
save_input("cake_unbalanced", drop_rows(cake, 60))

# ---- algorithm x benchmark x seed, as benchmark runs come
bench <- expand.grid(
  seed = label("s", 1:5), benchmark = label("b", 1:6), algorithm = c("BO", "HB", "PB", "RS"),
  prior = c("bad", "good"), stringsAsFactors = FALSE
)[c("algorithm", "benchmark", "seed", "prior")]
effect <- function(key, sd) { levels <- unique(key); setNames(rnorm(length(levels), 0, sd), levels)[key] }
bench$fidelity <- round(runif(nrow(bench), 1, 81), 2)
bench$y <- round(
  c(BO = 0.6, HB = 0.2, PB = 0.9, RS = 0)[bench$algorithm] +
    ifelse(bench$prior == "good", c(BO = 0, HB = 0, PB = 0.8, RS = 0)[bench$algorithm], 0) +
    0.02 * bench$fidelity + effect(bench$benchmark, 1.5) + effect(paste(bench$benchmark, bench$algorithm), 0.5) +
    effect(paste(bench$benchmark, bench$seed), 0.4) + rnorm(nrow(bench), 0, 0.6), 4)
one_prior <- bench[bench$prior == "good", names(bench) != "prior"]
save_input("bench", one_prior)
save_input("bench_unbalanced", drop_rows(one_prior, 27))
save_input("bench_prior", bench)
save_input("bench_prior_unbalanced", drop_rows(bench, 60))

# ---- nested groups with random slopes, unbalanced
nested <- expand.grid(row = 1:6, b = label("b", 1:4), a = label("a", 1:9), stringsAsFactors = FALSE)[c("a", "b")]
nested$treatment <- sample(c("t1", "t2", "t3"), nrow(nested), replace = TRUE, prob = c(0.5, 0.3, 0.2))
nested$x <- round(rnorm(nrow(nested), 3, 1.5), 3)
pair <- paste(nested$a, nested$b)
nested$y <- round(
  10 + c(t1 = 0, t2 = 0.7, t3 = 1.1)[nested$treatment] + 0.5 * nested$x + effect(nested$a, 1.2) +
    effect(nested$a, 0.5) * nested$x + effect(pair, 0.8) + rnorm(nrow(nested)), 4)
save_input("nested_slopes", drop_rows(nested, 60))

# ---- categorical slopes, unbalanced
slopes <- expand.grid(row = 1:4, f = c("p", "q", "r"), g = label("g", 1:14), stringsAsFactors = FALSE)[c("f", "g")]
slopes$x <- round(rnorm(nrow(slopes)), 3)
slopes$y <- round(
  2 + c(p = 0, q = 0.5, r = 1)[slopes$f] + 0.3 * slopes$x + effect(slopes$g, 1) +
    effect(paste(slopes$g, slopes$f), 0.7) + effect(slopes$g, 0.4) * slopes$x + rnorm(nrow(slopes), 0, 0.8), 4)
save_input("categorical_slopes", drop_rows(slopes, 40))

# ---- an empty cell (a3, b3) makes the interaction rank deficient
deficient <- expand.grid(
  row = 1:2, g = label("g", 1:8), a = label("a", 1:3), b = label("b", 1:3), stringsAsFactors = FALSE
)[c("a", "b", "g")]
deficient <- drop_rows(deficient[!(deficient$a == "a3" & deficient$b == "b3"), ], 37)
deficient$x <- round(runif(nrow(deficient), 0, 10), 2)
deficient$y <- round(
  5 + c(a1 = 0, a2 = 1, a3 = 2)[deficient$a] + c(b1 = 0, b2 = -1, b3 = 0.5)[deficient$b] + 0.1 * deficient$x +
    effect(deficient$g, 1) + rnorm(nrow(deficient), 0, 0.7), 4)
save_input("rank_deficient", deficient)

# Written by generated.R; only its column types are recorded here.
columns$generated <- list(id = "str", y = "float", x = "float", f = "str", g = "str", h = "str")
writeLines(json(columns), here("inputs", "columns.json"))
