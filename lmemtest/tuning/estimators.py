r"""Point estimates of the expected best of k random-search scores, and the bootstrap band that should not be used.

With scores ``y_(1) <= ... <= y_(n)`` and larger better, every estimator of ``E[max of k]`` is a weighted mean of the
order statistics whose cumulative weights ``C_i`` estimate the chance that the best of k is at most ``y_(i)``:

    U   C_i = binom(i, k) / binom(n, k)                   k scores drawn without replacement: unbiased
    V   C_i = (i / n)^k                                   with replacement: the sample's law for the true one
    W   C_i = binom(i + k - 1, k) / binom(n + k - 1, k)   multisets: the average over Dirichlet weights (Rubin 1981)

so W <= V <= U for k >= 1. Differences ``w_i = C_i - C_(i-1)`` of such quotients cancel or overflow; consecutive
weights have rational ratios, so they are multiplied up from ``w_n``, every factor being known to rounding.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.result import result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import percent, span
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning._checks import FloatArray, check_direction, check_k, check_scores
from lmemtest.tuning._settings import ThinnedResult

ESTIMATORS = ("u", "v", "w")
_NAMES = {"u": "U (unbiased)", "v": "V (plug-in)", "w": "W (multisets)"}
_MOST_BUDGETS = 200  # of a default grid
_CHUNK = 2_000_000  # resampled scores held at once: 16 MB

# Pointwise coverage in % of nominal 95 % bootstrap bands from 50 scores at k = 1, 5, 10, 25, 50: the least and the
# most over uniform, normal and exponential scores. tests/simulation/test_evidence_rates.py measures them again.
MEASURED_N, MEASURED_LEVEL, MEASURED_K = 50, 0.95, (1, 5, 10, 25, 50)
MEASURED_COVERAGE: dict[str, tuple[tuple[float, float], ...]] = {
    "u": ((92.9, 94.5), (87.4, 93.3), (81.0, 91.4), (64.0, 82.4), (43.4, 61.3)),
    "v": ((92.9, 94.5), (85.8, 92.5), (78.1, 89.6), (60.6, 78.3), (42.2, 60.8)),
    "w": ((92.9, 94.5), (84.3, 90.8), (75.0, 86.0), (56.7, 72.7), (39.4, 55.2)),
}


class _Estimated(ThinnedResult):
    """Estimates at budgets."""

    __slots__ = ()
    k: FloatArray
    columns: ClassVar[tuple[str, ...]]
    parts = {"estimates": "_frame"}
    formats = {"k": "g"}

    def _frame(self) -> pd.DataFrame:
        return pd.DataFrame({name: getattr(self, name) for name in self.columns})


@result
class ExpectedBest(_Estimated):
    """Estimates of the expected best of k scores, without any statement of their uncertainty.

    Attributes
    ----------
    k : (m,) float
        Budgets: numbers of random-search trials.
    estimate : (m,) float
        Estimated expected best score, in units of the score.
    estimator : {"u", "v", "w"}
        Which estimator.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    n_scores : int
        Scores behind the estimates.
    notes : tuple of str
        What a reader must know.
    """

    k: FloatArray
    estimate: FloatArray
    estimator: str
    direction: str
    n_scores: int
    notes: tuple[str, ...] = ()

    columns = ("k", "estimate")
    figure = "tuning_expected_best_plot"

    @property
    def title(self) -> str:
        return f"Expected best of k scores, {_NAMES[self.estimator]}, n = {self.n_scores}, {self.direction}"


@result
class BootstrapBand(_Estimated):
    """Percentile-bootstrap intervals of the expected best of k scores: a baseline that does not cover.

    Attributes
    ----------
    k, estimate, ci_low, ci_high : (m,) float
        Budgets; the estimate and the ends of its intervals, in units of the score.
    estimator, direction : str
        As in `ExpectedBest`.
    level : float
        What the intervals claim, at each budget by itself. They do not keep it.
    n_scores : int
        Scores behind the estimates.
    n_draws : int
        Resamples.
    notes : tuple of str
        The coverage that was measured.
    """

    k: FloatArray
    estimate: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    estimator: str
    direction: str
    level: float
    n_scores: int
    n_draws: int
    notes: tuple[str, ...]

    columns = ("k", "estimate", "ci_low", "ci_high")

    @property
    def title(self) -> str:
        return (
            f"Bootstrap intervals that do not cover: {_NAMES[self.estimator]}, nominal {percent(self.level)} at each "
            f"k, n = {self.n_scores}, {self.n_draws:,} resamples"
        )


def order_weights(n_scores: int, k: float, *, estimator: str = "v") -> FloatArray:
    """Weights (n_scores,), the first of the smallest score, in an estimate of the expected maximum of k scores.

    Each weight is a product of ratios, w_(i-1) / w_i = (i - k) / (i - 1) for U and (i - 1) / (i + k - 2) for W, and
    V's are written with expm1, so a million scores cost no accuracy: the relative error stays below 1e-10. U needs a
    whole k, and beyond n has all the weight at the best score.

    Dodge, Gururangan, Card, Schwartz & Smith (2021), equations 2, 3 and 5, doi:10.18653/v1/2021.findings-emnlp.342.

    >>> order_weights(4, 2, estimator="u")  # 6 pairs, of which 3 have the largest score as their best
    array([0.        , 0.16666667, 0.33333333, 0.5       ])
    """
    n = check_positive_int(n_scores, "n_scores")
    check_choice(estimator, "estimator", ESTIMATORS)
    return _weights(n, float(check_k(k)[0]), estimator)


@one_blas_thread()
def expected_best(
    scores: ArrayLike, *, direction: str, k: ArrayLike | None = None, estimator: str = "v"
) -> ExpectedBest:
    """Estimate the expected best of k random-search scores.

    Parameters
    ----------
    scores : (n,) array of float, finite
        Independent scores, as random search gives them.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    k : float or (m,) array of float, > 0, optional
        Budgets. "u" needs whole numbers; beyond n it is the best score seen. Default: 1 to n, thinned out if n > 200.
    estimator : {"u", "v", "w"}
        "u" is unbiased and has the largest variance, "w" the smallest variance and the largest bias; "v" lies between
        and has the smallest mean squared error in the study of Dodge et al.

    Returns
    -------
    ExpectedBest
        ``to_frame()`` has the columns k, estimate.

    Raises
    ------
    ArgumentError
        If a budget is not positive, or not possible for U.
    DataError
        If a score is missing or infinite.

    Notes
    -----
    There is no unbiased estimator of F(y)^k for a k that is not whole or is above n (a mean over n scores is a
    polynomial of degree n in F). U is not defined between whole k; beyond n it is the best score seen, as in opda,
    and biased. V and W are defined for every k > 0.
    A point estimate does not tell how much another sample would change it: `lmemtest.tuning.curve` has bands that do.

    References
    ----------
    Dodge, Gururangan, Card, Schwartz & Smith (2019), Show your work, doi:10.18653/v1/D19-1224 (V);
    Tang, Lee, Xin, Liu, Yu & Lin (2020), Showing your work doesn't always work, doi:10.18653/v1/2020.acl-main.246 (U);
    Dodge, Gururangan, Card, Schwartz & Smith (2021), doi:10.18653/v1/2021.findings-emnlp.342 (W).

    Examples
    --------
    >>> scores = [0.61, 0.70, 0.58, 0.74]
    >>> [float(expected_best(scores, direction="maximize", k=2, estimator=e).estimate[0].round(4)) for e in "uvw"]
    [0.705, 0.6931, 0.686]
    """
    check_choice(estimator, "estimator", ESTIMATORS)
    values, sign = _sorted_scores(scores, direction)
    n = len(values)
    budgets = _budgets(k, n)
    estimate = sign * np.array([_weights(n, budget, estimator) @ values for budget in budgets])
    notes = ["Point estimates: how much another sample would change them is not shown; tuning.curve has bands."]
    if estimator == "u" and n in budgets:
        notes.append(f"U at k = n = {n} is the best score itself.")
    if budgets.max(initial=0.0) > n:
        does = "is" if estimator == "u" else "can only approach"
        notes.append(
            f"Beyond k = n = {n} the estimate {does} the best score seen, whatever a longer search would find."
        )
    return ExpectedBest(
        k=budgets,
        estimate=estimate,
        estimator=estimator,
        direction=direction,
        n_scores=n,
        notes=tuple(notes),
    )


def bootstrap_band(
    scores: ArrayLike,
    *,
    direction: str,
    k: ArrayLike | None = None,
    estimator: str = "v",
    level: float = 0.95,
    n_draws: int = 4000,
    rng: int | np.random.Generator | None = None,
) -> BootstrapBand:
    """Percentile-bootstrap intervals of the expected best of k scores: the baseline that does not cover.

    Parameters
    ----------
    scores, direction, k, estimator
        As in `expected_best`.
    level : float in (0, 1)
        Nominal pointwise level.
    n_draws : int, >= 100
        Resamples.
    rng : int, numpy.random.Generator or None
        Source of the resamples.

    Returns
    -------
    BootstrapBand
        ``to_frame()`` has the columns k, estimate, ci_low, ci_high; ``notes`` say what such bands cover in truth.

    Raises
    ------
    ArgumentError, DataError
        As in `expected_best`.

    Notes
    -----
    Here to be compared with, not to be reported. No resample has a score above the best of the sample, so as k grows
    the upper end sticks to it while the true curve goes on. If scores have an exponential tail, the true mean of the
    best of n lies above the best score of the sample with probability exp(-exp(-0.577)) = 57 %: there no interval
    below the best score can cover more than 43 %.

    References
    ----------
    Tang, Lee, Xin, Liu, Yu & Lin (2020), doi:10.18653/v1/2020.acl-main.246;
    Lourie, Cho & He (2024), Show your work with confidence, figure 5, doi:10.18653/v1/2024.naacl-long.189.

    Examples
    --------
    >>> band = bootstrap_band([0.61, 0.70, 0.58, 0.74, 0.69], direction="maximize", k=[1, 5], n_draws=200, rng=1)
    >>> float(band.ci_high[1].round(3))  # 0.74 is the best score that was seen, whatever the true curve does
    0.74
    """
    check_choice(estimator, "estimator", ESTIMATORS)
    level = check_fraction(level, "level")
    n_draws = check_positive_int(n_draws, "n_draws", 100)
    generator = resolve_rng(rng)
    values, sign = _sorted_scores(scores, direction)
    n = len(values)
    budgets = _budgets(k, n)
    weights = np.array([_weights(n, budget, estimator) for budget in budgets])
    ends = bootstrap_ends(values, weights, level, n_draws, generator)
    low, high = ends if sign > 0 else -ends[::-1]
    rates = [
        f"{span(round(least), round(most), '.0f')} % at k = {at}"
        for at, (least, most) in zip(MEASURED_K, MEASURED_COVERAGE[estimator], strict=True)
    ]
    warning = (
        f"Warning: bootstrap intervals do not keep their level. Measured for {percent(MEASURED_LEVEL)} "
        f"intervals from {MEASURED_N} uniform, normal or exponential scores: {', '.join(rates)}. "
        "Report tuning.curve instead."
    )
    return BootstrapBand(
        k=budgets,
        estimate=sign * (weights @ values),
        ci_low=low,
        ci_high=high,
        estimator=estimator,
        direction=direction,
        level=level,
        n_scores=n,
        n_draws=n_draws,
        notes=(warning,),
    )


def bootstrap_ends(
    values: FloatArray, weights: FloatArray, level: float, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Percentile ends (2, m) of ``weights @ sorted resample``; the workhorse without any checks."""
    n = len(values)
    size = max(1, _CHUNK // n)
    draws = []
    for start in range(0, n_draws, size):
        index = rng.integers(n, size=(min(size, n_draws - start), n))
        draws.append(np.sort(values[index], axis=1) @ weights.T)
    tail = (1.0 - level) / 2.0
    ends: FloatArray = np.quantile(np.concatenate(draws), [tail, 1.0 - tail], axis=0)
    return ends


# ---------------------------------------------------------------------------------------------------- weights


def _weights(n: int, k: float, estimator: str) -> FloatArray:
    if estimator == "v":
        i = np.arange(1, n + 1, dtype=float)
        # i = 1: the logarithm of zero, whose exponential is zero; as it is of k times any other logarithm for a large k
        with np.errstate(divide="ignore", under="ignore", over="ignore"):
            return np.exp(k * np.log(i / n)) * -np.expm1(k * np.log1p(-1.0 / i))
    i = np.arange(n, 1, -1, dtype=float)
    if estimator == "w":
        last, ratios = k / (n + k - 1.0), (i - 1.0) / (i + k - 2.0)
    else:
        if k != np.floor(k):
            raise ArgumentError(f"estimator 'u' needs whole budgets k, got {k:g}. Use 'v' or 'w' for k in between.")
        k = min(k, float(n))  # beyond n there is no unbiased estimator; the best score seen is the U of all scores
        last, ratios = k / n, np.maximum(i - k, 0.0) / (i - 1.0)
    return last * np.concatenate([[1.0], np.cumprod(ratios)])[::-1]


# ---------------------------------------------------------------------------------------------------- arguments


def _sorted_scores(scores: ArrayLike, direction: str) -> tuple[FloatArray, float]:
    """Scores in rising order of goodness, and the sign that turns them back."""
    sign = 1.0 if check_direction(direction) == "maximize" else -1.0
    values = check_scores(scores)
    infinite = int(np.sum(np.isinf(values)))
    if infinite:
        raise DataError(
            f"scores must be finite for a mean: {infinite:,} of {len(values):,} are infinite. Give a failed run the "
            "worst score that can occur, or use tuning.curve, whose medians allow infinite scores."
        )
    return np.sort(sign * values), sign


def _budgets(k: ArrayLike | None, n: int) -> FloatArray:
    if k is not None:
        return check_k(k)
    if n <= _MOST_BUDGETS:
        return np.arange(1.0, n + 1.0)
    return np.unique(np.round(np.geomspace(1.0, n, _MOST_BUDGETS)))
