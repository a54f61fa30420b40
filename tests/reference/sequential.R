# Group-sequential tests of normal scores: boundaries, p-values and estimates at the end (rpact).

source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])), "common.R"))
suppressPackageStartupMessages(library(rpact))

designs <- list(
  list(kind = "obrien_fleming", alpha = 0.05, shares = c(0.3, 0.6, 1)),
  list(kind = "obrien_fleming", alpha = 0.05, shares = c(0.5, 1)),
  list(kind = "obrien_fleming", alpha = 0.01, shares = c(0.4, 0.6, 0.8, 1)),
  list(kind = "obrien_fleming", alpha = 0.05, shares = c(0.25, 0.35, 0.9, 1)),
  list(kind = "pocock", alpha = 0.05, shares = c(1, 2, 3) / 3),
  list(kind = "pocock", alpha = 0.05, shares = c(0.125, 0.25, 0.5, 1)),
  list(kind = "pocock", alpha = 0.002, shares = seq(0.1, 1, 0.1))
)
of_design <- function(d) {
  getDesignGroupSequential(
    sided = 2, alpha = d$alpha, informationRates = d$shares, tolerance = 1e-10,
    typeOfDesign = if (d$kind == "pocock") "asP" else "asOF"
  )
}
boundaries <- lapply(designs, function(d) {
  list(spending = d$kind, alpha = d$alpha, shares = I(d$shares), critical = I(of_design(d)$criticalValues))
})

# Two or three stages of 20 normal values each; the last look is the end. Estimates are divided by the standard
# deviation of all values, which rpact takes as known. Its final p-values let a study leave on the upper side only, so
# the studies are ones whose way over the lower side counts next to nothing.
studies <- list(
  list(kind = "obrien_fleming", means = c(0.3, 0.6)),
  list(kind = "obrien_fleming", means = c(0.1, 0.2, 0.3)),
  list(kind = "pocock", means = c(0.3, 0.3, 0.4)),
  list(kind = "pocock", means = c(0.3, 0.4))
)
ends <- lapply(studies, function(s) {
  k <- length(s$means)
  design <- of_design(list(kind = s$kind, alpha = 0.05, shares = seq_len(k) / k))
  data <- getDataset(n = rep(20, k), means = s$means, stDevs = rep(1, k))
  stages <- getStageResults(design, data, normalApproximation = TRUE, stage = k)
  final <- getFinalConfidenceInterval(design, data, normalApproximation = TRUE, stage = k)
  sd <- data$overallStDevs[k]
  list(
    spending = s$kind, shares = I(seq_len(k) / k), n = 20 * k, z = stages$overallTestStatistics[k],
    critical = I(design$criticalValues), p_value = getFinalPValue(stages)$pFinal,
    estimate = final$medianUnbiased / sd, limits = I(final$finalConfidenceInterval / sd)
  )
})

write_reference("sequential", rpact = as.character(packageVersion("rpact")), boundaries = boundaries, ends = ends)
