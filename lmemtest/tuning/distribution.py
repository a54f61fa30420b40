r"""The distribution of a sample of scores: its functions, draws from it, a band around it, and the expected best of k.

With scores ``y_(1) <= ... <= y_(n)`` and larger better, every estimator of ``E[max of k]`` is a weighted mean of the
order statistics whose cumulative weights ``C_i`` estimate the chance that the best of k is at most ``y_(i)``:

    U   C_i = binom(i, k) / binom(n, k)                   k scores drawn without replacement: unbiased
    V   C_i = (i / n)^k                                   with replacement: the sample's law for the true one
    W   C_i = binom(i + k - 1, k) / binom(n + k - 1, k)   multisets: the average over Dirichlet weights (Rubin 1981)

so W <= V <= U for k >= 1. Differences ``w_i = C_i - C_(i-1)`` of such quotients cancel or overflow; consecutive
weights have rational ratios, so they are multiplied up from ``w_n``, every factor being known to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer, Result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_number, check_positive_int, real, resolve_rng
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.band import CdfBand
from lmemtest.tuning.band import band as cdf_band
from lmemtest.tuning.checks import (
    check_bounds,
    check_direction,
    check_k,
    check_probabilities,
    check_scores,
    plain,
    thinned,
    whole_budgets,
)

SLACK = 1e-9  # of a rank: n p of a rank's own p may come out above it by rounding
ESTIMATORS = ("u", "v", "w")
_NAMES = {"u": "U (unbiased)", "v": "V (plug-in)", "w": "W (multisets)"}
_MOST_BUDGETS = 200  # of a default grid


@dataclass(repr=False, frozen=True, slots=True, eq=False)
class EmpiricalDistribution(Result):
    """The distribution that gives each score its weight.

    Parameters
    ----------
    scores : array-like of float, shape (n,)
        The scores, in any order; infinite ones (failed runs) are allowed. Kept sorted.
    weights : array-like of float >= 0, shape (n,), optional
        Weight of each score; scaled to sum to one. Default: equal weights. Kept in the order of the sorted scores.
    bounds : (low, high), default (-inf, inf)
        Smallest and largest score that can occur.

    Attributes
    ----------
    scores, weights, cumulative : ndarray of float64, shape (n,)
        Sorted scores, their weights, and the weight at or below each.
    bounds : tuple of float
        As given.

    Notes
    -----
    Distributions are equal if they have the same scores, weights and bounds.

    Raises
    ------
    ArgumentError
        If the weights or the bounds are not what they should be.
    DataError
        If scores are missing, or lie outside of the bounds.

    Examples
    --------
    >>> accuracy = EmpiricalDistribution([0.75, 0.5, 0.75, 1.0], bounds=(0, 1))
    >>> accuracy.cdf([0.6, 0.75]), accuracy.ppf(0.5), accuracy.mean()
    (array([0.25, 0.75]), 0.75, 0.75)
    """

    scores: Array
    weights: Array | None = field(default=None, kw_only=True)
    bounds: tuple[float, float] = field(default=(-np.inf, np.inf), kw_only=True)
    cumulative: Array = field(init=False)
    equal: bool = field(init=False)

    parts = {"distribution": "_frame"}

    @property
    def title(self) -> str:
        return "Empirical distribution"

    @property
    def facts(self) -> tuple[str, ...]:
        low, high = self.bounds
        return (f"{self.n_scores:,} scores between {low:g} and {high:g}; mean {written(self.mean(), '.6g')}.",)

    def __post_init__(self) -> None:
        scores, equal = check_scores(self.scores), self.weights is None
        order, n = np.argsort(scores, kind="stable"), len(scores)
        bounds = check_bounds(self.bounds, scores)
        weights = np.full(n, 1.0 / n) if self.weights is None else _weights(self.weights, scores)
        cumulative = np.arange(1, n + 1) / n if equal else np.cumsum(weights[order])
        cumulative[-1] = 1.0
        arrays = {"scores": scores[order], "weights": weights[order], "cumulative": cumulative}
        for name, value in {**arrays, "bounds": bounds, "equal": equal}.items():
            object.__setattr__(self, name, value)
        for array in arrays.values():
            array.flags.writeable = False

    @property
    def n_scores(self) -> int:
        """Number of scores."""
        return len(self.scores)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmpiricalDistribution):
            return NotImplemented
        same = np.array_equal(self.scores, other.scores) and np.array_equal(self._mass(), other._mass())
        return same and self.bounds == other.bounds

    def __hash__(self) -> int:
        return hash((self.scores.tobytes(), self._mass().tobytes(), self.bounds))

    def _mass(self) -> Array:
        """The weight of each score with all of its ties, so that the order in which ties came does not matter."""
        return np.diff(np.concatenate([[0.0], self.cdf(self.scores)]), append=1.0)

    def pmf(self, y: ArrayLike) -> Any:
        """Share of the weight at `y` itself.

        Examples
        --------
        >>> EmpiricalDistribution([0.75, 0.5, 0.75, 1.0]).pmf([0.75, 0.8])
        array([0.5, 0. ])
        """
        values = np.asarray(y, dtype=np.float64)
        through = np.concatenate([[0.0], self.cumulative])
        below = np.searchsorted(self.scores, values, side="left")
        return plain(through[self.counts(values)] - through[below])

    def cdf(self, y: ArrayLike) -> Any:
        """Share of the weight at or below `y`; a float for a float, an array for an array."""
        counts = self.counts(y)
        return plain(np.concatenate([[0.0], self.cumulative])[counts])

    def counts(self, y: ArrayLike) -> Any:
        """Number of scores at or below `y`, ties included."""
        values = np.asarray(y, dtype=np.float64)
        if np.isnan(values).any():
            raise ArgumentError("y must not be NaN.")
        return np.searchsorted(self.scores, values, side="right")

    def ppf(self, p: ArrayLike) -> Any:
        """Smallest score with at least the share `p` of the weight at or below it; the lower bound for p = 0.

        With equal weights it is the score number ceil(n p): the median of 48 scores is the 24th.
        """
        values = check_probabilities(p, "p")
        rank = np.searchsorted(self.n_scores * self.cumulative, self.n_scores * values - SLACK, side="left")
        quantiles = self.scores[np.minimum(rank, self.n_scores - 1)]
        return plain(np.where(values == 0.0, self.bounds[0], quantiles))

    def sample(self, size: int | tuple[int, ...] | None = None, *, rng: int | np.random.Generator | None = None) -> Any:
        """Draw scores with replacement.

        Examples
        --------
        >>> EmpiricalDistribution([0.5, 0.75]).sample(4, rng=1)
        array([0.75, 0.75, 0.5 , 0.75])
        """
        draws = resolve_rng(rng).random(size)
        rank = np.searchsorted(self.cumulative, draws, side="right")  # draws lie in [0, 1)
        return plain(self.scores[np.minimum(rank, self.n_scores - 1)])

    def mean(self) -> float:
        """Mean; infinite if a score with weight is, NaN if scores at both ends are."""
        return _weighted(self.scores, self.weights)

    def variance(self) -> float:
        """Variance of the distribution (weights as probabilities, not n - 1); NaN if the mean is not finite."""
        mean = self.mean()
        return _weighted((self.scores - mean) ** 2, self.weights) if np.isfinite(mean) else np.nan

    def quantile_curve(self, k: ArrayLike, *, direction: str, q: float = 0.5) -> Array:
        """Quantile of the best of `k` scores: the smallest score with P(best of k <= score) >= q, in both directions.

        Parameters
        ----------
        k : positive float or array of them
            Trials of the search; need not be whole.
        direction : {"maximize", "minimize"}
            Which end of the score is better.
        q : float in [0, 1]
            Which quantile; 0.5 is the median tuning curve. 0 is the smallest score that can occur.

        Returns
        -------
        (m,) float array
            One score per `k`. Without weights it is the estimate of `lmemtest.tuning.curve`, which has a band too.

        Examples
        --------
        >>> law = EmpiricalDistribution([0.5, 0.7, 0.8], weights=[2, 1, 1])
        >>> law.quantile_curve([1, 4], direction="maximize"), law.quantile_curve([1, 4], direction="minimize")
        (array([0.5, 0.8]), array([0.5, 0.5]))
        """
        budgets, q = check_k(k), check_number(q, "q", low=0, high=1)
        if check_direction(direction) == "maximize" or q == 0.0:
            return np.asarray(self.ppf(q ** (1.0 / budgets) if q > 0.0 else np.zeros(len(budgets))))
        # the first score with at most (1 - q)^(1/k) above it: the weights above keep the digits of small shares
        room = self.n_scores * (1.0 - q) ** (1.0 / budgets)
        above = self.n_scores * self._above()
        rank = self.n_scores - 1 - (np.searchsorted(above[::-1], room + SLACK, side="right") - 1)
        return self.scores[np.clip(rank, 0, self.n_scores - 1)]

    def mean_curve(self, k: ArrayLike, *, direction: str) -> Array:
        """Expected best of `k` scores; infinite if an infinite score may be the best.

        Parameters
        ----------
        k : positive float or array of them
            Trials of the search; need not be whole.
        direction : {"maximize", "minimize"}
            Which end of the score is better.

        Returns
        -------
        (m,) float array
            One value per `k`: the mean of the law F^k, or 1 - (1 - F)^k to minimise. Without weights it is the
            V-statistic of `expected_best`.

        Examples
        --------
        >>> EmpiricalDistribution([0.0, 1.0], weights=[1, 3]).mean_curve([1, 2], direction="maximize")
        array([0.75  , 0.9375])
        """
        budgets = check_k(k)
        if check_direction(direction) == "maximize":
            through = np.concatenate([[0.0], self.cumulative])
            mass = np.array([np.diff(through**power) for power in budgets])
        else:
            above = np.concatenate([[1.0], self._above()])
            mass = np.array([-np.diff(above**power) for power in budgets])
        return np.array([_weighted(self.scores, row) for row in mass])

    def _above(self) -> Array:
        """The weight above each score, its later ties included, as a sum of its own; exactly 0 at the last."""
        weights = np.asarray(self.weights)
        if self.equal:
            return np.arange(self.n_scores - 1, -1, -1) / self.n_scores
        return np.concatenate([np.cumsum(weights[:0:-1])[::-1], [0.0]])

    def band(
        self,
        *,
        band: str = "ld_highest_density",
        level: float = 0.8,
        from_k: float | None = None,
        quantile: float = 0.5,
    ) -> CdfBand:
        """Put a simultaneous confidence band around the distribution function; the arguments are those of
        `lmemtest.tuning.band`.

        Raises
        ------
        ArgumentError
            If the scores have weights: the band needs independent scores of one distribution.

        Examples
        --------
        >>> EmpiricalDistribution([0.5, 0.75, 1.0], bounds=(0, 1)).band().to_frame().round(3)
           score  estimate  band_low  band_high
        0   0.50     0.333     0.000      0.883
        1   0.75     0.667     0.117      1.000
        2   1.00     1.000     1.000      1.000
        """
        if not self.equal:
            raise ArgumentError(
                "a band needs independent scores of one distribution, all of the same weight, but the scores have "
                "weights. Make the distribution without weights=."
            )
        made = cdf_band(self.n_scores, band=band, level=level, from_k=from_k, quantile=quantile)
        return replace(made, distribution=self)

    def _frame(self) -> pd.DataFrame:
        """One row per distinct score: score, weight, cdf."""
        score, first = np.unique(self.scores, return_index=True)
        weight = np.add.reduceat(np.asarray(self.weights), first)
        return pd.DataFrame({"score": score, "weight": weight, "cdf": self.cdf(score)})


def _weights(weights: Any, scores: Array) -> Array:
    try:
        values = real(weights)
    except (TypeError, ValueError):
        values = np.full(0, np.nan)
    if values.shape != scores.shape:
        raise ArgumentError(f"weights must hold one number for each of the {len(scores):,} scores, got {values.shape}.")
    total = float(values.sum()) if np.all(np.isfinite(values)) else np.nan
    if not (np.all(values >= 0.0) and 0.0 < total < np.inf):
        raise ArgumentError("weights must be finite, at least 0, and not all 0.")
    return values / total


def _weighted(values: Array, weights: Array | None) -> float:
    used = np.asarray(weights) > 0.0  # no weight times an infinite score is nothing
    kept = values[used]
    if np.isposinf(kept).any() and np.isneginf(kept).any():
        return np.nan
    return float(np.dot(kept, np.asarray(weights)[used]))


# ---------------------------------------------------------------------- the expected best of k


def order_weights(n_scores: int, k: float, *, estimator: str = "v") -> Array:
    """Weights (n_scores,), the first of the smallest score, in an estimate of the expected maximum of k scores.

    Each weight is a product of ratios, w_(i-1) / w_i = (i - k) / (i - 1) for U and (i - 1) / (i + k - 2) for W, and
    V's are written with expm1, so a million scores cost no accuracy: the relative error stays below 1e-10. U needs a
    whole k, and beyond n has all the weight at the best score.

    Dodge, Gururangan, Card, Schwartz & Smith (2021), equations 2, 3 and 5, doi:10.18653/v1/2021.findings-emnlp.342.

    >>> order_weights(4, 2, estimator="u")  # 6 pairs, of which 3 have the largest score as their best
    array([0.        , 0.16666667, 0.33333333, 0.5       ])
    """
    n, k = check_positive_int(n_scores, "n_scores"), float(check_k(k)[0])
    check_choice(estimator, "estimator", ESTIMATORS)
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


@one_blas_thread()
def expected_best(scores: ArrayLike, *, direction: str, k: ArrayLike | None = None, estimator: str = "v") -> Answer:
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
    Answer
        `k` and `estimate` (the estimated expected best score, in units of the score), which ``to_frame()`` has too;
        `estimator`, `direction`, `n_scores`. Nothing says how uncertain the estimates are.

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
    sign = 1.0 if check_direction(direction) == "maximize" else -1.0
    values = np.sort(sign * check_scores(scores))
    n, infinite = len(values), int(np.isinf(values).sum())
    if infinite:
        raise DataError(
            f"scores must be finite for a mean: {infinite:,} of {n:,} are infinite. Give a failed run the worst score "
            "that can occur, or use tuning.curve, whose medians allow infinite scores."
        )
    budgets = whole_budgets(n, _MOST_BUDGETS) if k is None else check_k(k)
    estimate = sign * np.array([order_weights(n, budget, estimator=estimator) @ values for budget in budgets])
    notes = ["Point estimates: how much another sample would change them is not shown; tuning.curve has bands."]
    if estimator == "u" and n in budgets:
        notes.append(f"U at k = n = {n} is the best score itself.")
    if budgets.max(initial=0.0) > n:
        does = "is" if estimator == "u" else "can only approach"
        notes.append(
            f"Beyond k = n = {n} the estimate {does} the best score seen, whatever a longer search would find."
        )
    frame = pd.DataFrame({"k": budgets, "estimate": estimate})
    printed, facts = thinned(frame)
    return Answer(
        question="tuning.expected_best",
        title=f"Expected best of k scores, {_NAMES[estimator]}, n = {n}, {direction}",
        tables={"estimates": frame},
        values={"k": budgets, "estimate": estimate, "estimator": estimator, "direction": direction, "n_scores": n},
        facts=facts,
        notes=tuple(notes),
        printed=printed,
        formats={"k": "g"},
        figure="tuning_expected_best_plot",
    )
