"""Tuning curves of random-search scores with exact confidence bands; nothing of the mixed-model side.

================  =========================================================================================
order_statistics  exact probability that all order statistics keep to their intervals; the intervals
band              simultaneous bands for a distribution function, calibrated without simulation; whether scores
                  follow a given law, by the statistic behind the bands
distribution      an empirical distribution with bounds, weights, curves and a band; U, V and W estimators of the
                  expected best of k
curve             quantile and mean tuning curve with its band, for any real k > 0, and its settings
curves            the curves of many algorithms on many benchmarks, over trials or over seeds
compare           two curves: where which is better, by labels with their false rates, in trials or cost units
evidence          labels from two bands and how often they are wrong; curve_labels: counted over benchmarks
best_of           the chance that the best of k of one beats the best of k of another
risk              hyperparameters by what fixing them costs
plan              how many scores for a curve up to k, and up to which k with n scores
laws              quadratic and noisy quadratic laws, kernel densities: density, quantiles, curves
fit               fits of the quadratic laws with intervals, and a bootstrap that checks their shape
================  =========================================================================================

The notation is one of maximising, as in the papers: T_k is the best of k scores, F its law for one score, and F^k for
k. The q-quantile of T_k is the smallest y with P(T_k <= y) >= q, in both directions and for every law of this package:
so the curve at k = 1 is the q-quantile of one score, and minimising y at q is maximising -y at 1 - q.
"""

# A module and its function share a name. The module is loaded first, so the name of this package is the function's.
from lmemtest.tuning.band import band as band
from lmemtest.tuning.band import goodness_of_fit as goodness_of_fit
from lmemtest.tuning.best_of import best_of as best_of
from lmemtest.tuning.compare import compare as compare
from lmemtest.tuning.curve import curve as curve
from lmemtest.tuning.curves import curves as curves
from lmemtest.tuning.distribution import EmpiricalDistribution as EmpiricalDistribution
from lmemtest.tuning.distribution import expected_best as expected_best
from lmemtest.tuning.evidence import false_label_rates as false_label_rates
from lmemtest.tuning.fit.fit import bootstrap_fit as bootstrap_fit
from lmemtest.tuning.fit.fit import fit as fit
from lmemtest.tuning.laws.kernel_density import kernel_density as kernel_density
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution as NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution as QuadraticDistribution
from lmemtest.tuning.plan import plan as plan
from lmemtest.tuning.risk import risk as risk

__all__ = [
    "EmpiricalDistribution",
    "NoisyQuadraticDistribution",
    "QuadraticDistribution",
    "band",
    "best_of",
    "bootstrap_fit",
    "compare",
    "curve",
    "curves",
    "expected_best",
    "false_label_rates",
    "fit",
    "goodness_of_fit",
    "kernel_density",
    "plan",
    "risk",
]
