"""Coverage in simulation, where the truth is known: of bands at once, and of the bootstrap at each budget.

A law to simulate from has ``sample(size, rng=)``, ``cdf`` and the true curves ``quantile_curve(k, q=, direction=)`` and
``mean_curve(k, direction=)``, as `KernelDensity` and the parametric laws of this package have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lmemtest.core.executors import Executor
from lmemtest.core.replicates import replicate
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.tuning._checks import FloatArray, check_direction, check_k, check_statistic, name_of
from lmemtest.tuning._settings import Settings, check_settings
from lmemtest.tuning.band import BAND_NAMES, CdfBand
from lmemtest.tuning.band import band as cdf_band
from lmemtest.tuning.curve import curve_of
from lmemtest.tuning.estimators import ESTIMATORS, bootstrap_ends, order_weights

_LEVEL = 0.99  # of the intervals for simulated rates, as in the paper
# Budgets just after a jump of the curve: a relative step of p that is far above rounding and moves no true curve.
_NUDGE = 1e-9
_MEAN_POINTS = 64


class Law(Protocol):
    """A law of scores with known curves."""

    def sample(self, size: Any, *, rng: Any = None) -> Any:
        """Independent scores."""

    def cdf(self, y: Any) -> Any:
        """Probability of a score of at most `y`."""

    def quantile_curve(self, k: Any, *, q: float = 0.5, direction: Any = None) -> Any:
        """Quantile of the best of `k`."""

    def mean_curve(self, k: Any, *, direction: Any = None) -> Any:
        """Expected best of `k`."""


@result
class Coverage(Result):
    """How often bands held in simulation.

    Attributes
    ----------
    target : str
        What the bands are for.
    at : (m,) float
        What the rows differ in: the nominal level, or the budget k.
    by : {"nominal", "k"}
        Which of the two.
    nominal : (m,) float
        Level that the bands claim.
    covered : (m,) int
        Simulations in which the band held.
    n_draws : int
        Simulations.
    n_scores : int
        Scores in each.
    method : str
        How the bands were made.
    notes : tuple of str
        What a reader must know.
    """

    target: str
    at: FloatArray
    by: str
    nominal: FloatArray
    covered: NDArray[np.intp]
    n_draws: int
    n_scores: int
    method: str
    notes: tuple[str, ...] = ()

    parts = {"coverage": "_frame"}
    formats = {**dict.fromkeys(("nominal", "coverage", "ci_low", "ci_high"), ".3f"), "k": "g"}
    figure = "tuning_coverage_plot"

    @property
    def title(self) -> str:
        return f"Coverage: {self.target}"

    @property
    def facts(self) -> tuple[str, ...]:
        what = f"{self.method}, n = {self.n_scores:,}"
        return (f"{what}; {self.n_draws:,} simulations; 99 % Clopper-Pearson intervals.",)

    @property
    def rate(self) -> FloatArray:
        """Share of the simulations in which the band held, shape (m,)."""
        return self.covered / self.n_draws

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Exact (Clopper-Pearson) 99 % intervals of the coverage."""
        from scipy import special

        x, n, tail = self.covered, self.n_draws, 0.5 * (1.0 - _LEVEL)
        low = np.where(x > 0, special.betaincinv(np.maximum(x, 1), n - x + 1.0, tail), 0.0)
        high = np.where(x < n, special.betaincinv(x + 1.0, np.maximum(n - x, 1), 1.0 - tail), 1.0)
        return low, high

    def _frame(self) -> pd.DataFrame:
        """One row per nominal level or per k: k (if by k), nominal, coverage, ci_low, ci_high."""
        low, high = self.interval()
        columns = {"nominal": self.nominal, "coverage": self.rate, "ci_low": low, "ci_high": high}
        return pd.DataFrame({"k": self.at, **columns} if self.by == "k" else columns)


def simulate_coverage(
    law: Law,
    n_scores: int,
    *,
    target: str | float = "median",
    direction: str = "maximize",
    level: float | Sequence[float] = (0.5, 0.8, 0.95),
    band: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Coverage:
    """Simulate how often a simultaneous band holds everywhere, for any law.

    Parameters
    ----------
    law : Law
        The true law of the scores, such as a `kernel_density`.
    n_scores : int, >= 1
        Scores in each simulated search.
    target : "cdf", "median", "mean" or float in (0, 1)
        What the band is for: the distribution function, or the tuning curve of a summary of the best of k.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    level : float or sequence of float in (0, 1)
        Nominal levels; the same simulated scores serve all.
    band, from_k : str, float
        Of the band, see `lmemtest.tuning.band`.
    bounds : (float, float), optional
        For the mean.
    n_draws : int, >= 1
        Simulations.
    rng, n_jobs, executor, progress
        Source of the draws, processes and progress bar.

    Returns
    -------
    Coverage
        ``to_frame()`` has nominal, coverage, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.

    Notes
    -----
    A quantile curve and its limits jump at finitely many k. Both are monotone in between, so they are compared there
    only, on both sides of each jump: this decides about all k > 0 (or k >= from_k). A mean curve is compared at 64 k
    from 0.25 to 4 n, which can only flatter it.

    References
    ----------
    Lourie, Cho & He (2024), section 5.2, appendix D, figures 6 and 12, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> from lmemtest.tuning.laws.kernel_density import kernel_density
    >>> law = kernel_density([0.55, 0.62, 0.71, 0.74, 0.98], bandwidth=0.05, bounds=(0, 1))
    >>> found = simulate_coverage(law, 8, level=0.8, n_draws=400, rng=1)
    >>> bool(0.74 < found.rate[0] < 0.86)
    True
    """
    n_scores, n_draws = check_positive_int(n_scores, "n_scores"), check_positive_int(n_draws, "n_draws")
    try:
        statistic = None if target == "cdf" else check_statistic(target)
    except ArgumentError:
        raise ArgumentError(
            f"target must be 'cdf', 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got {target!r}."
        ) from None
    if statistic is None and from_k is not None:
        raise ArgumentError("from_k is for tuning curves: leave it out for target='cdf'.")
    if statistic == "mean" and bounds is None:
        raise ArgumentError("target='mean' needs bounds=(low, high), the smallest and the largest score of the law.")
    levels = np.atleast_1d(np.asarray(level, dtype=float)).tolist()
    settings = [check_settings(direction, statistic or "median", c, band, from_k) for c in levels]
    if statistic is None:
        bands = [cdf_band(n_scores, band=band, level=c) for c in levels]
        holds: list[Any] = [partial(_cdf_holds, law, b) for b in bands]
    else:
        holds = [_curve_check(law, each, n_scores, bounds) for each in settings]
    task = partial(_searched, law, n_scores, holds)
    held = _all(
        replicate(task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Searches")
    )
    what = "distribution function" if statistic is None else f"{name_of(statistic)} tuning curve, {direction}"
    return Coverage(
        target=f"{what}, everywhere at once",
        at=np.array(levels),
        by="nominal",
        nominal=np.array(levels),
        covered=held.sum(axis=0),
        n_draws=n_draws,
        n_scores=n_scores,
        method=BAND_NAMES[band],
        notes=() if from_k is None else (f"For k >= {from_k:g}.",),
    )


def simulate_bootstrap_coverage(
    law: Law,
    n_scores: int,
    *,
    k: ArrayLike,
    direction: str = "maximize",
    estimator: str = "v",
    level: float = 0.95,
    n_resamples: int = 1000,
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Coverage:
    """Simulate how often percentile-bootstrap intervals cover the mean curve at each k.

    Parameters
    ----------
    law, n_scores, direction, n_draws, rng, n_jobs, executor, progress
        As in `simulate_coverage`.
    k : (m,) array of float, > 0
        Budgets.
    estimator, level
        As in `bootstrap_band`.
    n_resamples : int, >= 100
        Resamples behind each interval.

    Returns
    -------
    Coverage
        ``to_frame()`` has k, nominal, coverage, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.

    References
    ----------
    Tang, Lee, Xin, Liu, Yu & Lin (2020), doi:10.18653/v1/2020.acl-main.246;
    Lourie, Cho & He (2024), section 5.1 and figure 5, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> from lmemtest.tuning.laws.kernel_density import kernel_density
    >>> law = kernel_density([0.0], bandwidth=1.0)
    >>> found = simulate_bootstrap_coverage(law, 20, k=[1, 20], n_draws=200, n_resamples=200, rng=1)
    >>> bool(found.rate[0] > 0.85), bool(found.rate[1] < 0.65)
    (True, True)
    """
    n_scores, n_draws = check_positive_int(n_scores, "n_scores"), check_positive_int(n_draws, "n_draws")
    check_choice(estimator, "estimator", ESTIMATORS)
    level, n_resamples = check_fraction(level, "level"), check_positive_int(n_resamples, "n_resamples", 100)
    sign = 1.0 if check_direction(direction) == "maximize" else -1.0
    budgets = check_k(k)
    weights = np.array([order_weights(n_scores, budget, estimator=estimator) for budget in budgets.tolist()])
    truth = sign * np.asarray(law.mean_curve(budgets, direction=direction))
    task = partial(_resampled, law, sign, weights, level, n_resamples, truth)
    held = _all(
        replicate(task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Searches")
    )
    return Coverage(
        target=f"mean tuning curve, {direction}, at each k",
        at=budgets,
        by="k",
        nominal=np.full(len(budgets), level),
        covered=held.sum(axis=0),
        n_draws=n_draws,
        n_scores=n_scores,
        method=f"Percentile bootstrap of {estimator.upper()} with {n_resamples:,} resamples",
    )


# ---------------------------------------------------------------------------------------------------- what holds


def _searched(law: Law, n_scores: int, holds: Sequence[Any], generator: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each band holds the truth, for the scores of one search."""
    scores = np.asarray(law.sample(n_scores, rng=generator))
    return np.array([hold(scores) for hold in holds])


def _resampled(
    law: Law,
    sign: float,
    weights: FloatArray,
    level: float,
    n_resamples: int,
    truth: FloatArray,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    """Whether each bootstrap interval holds the truth, for the scores of one search."""
    scores = np.sort(sign * np.asarray(law.sample(weights.shape[1], rng=generator)))
    low, high = bootstrap_ends(scores, weights, level, n_resamples, generator)
    return (low <= truth) & (truth <= high)


def _cdf_holds(law: Law, band: CdfBand, scores: FloatArray) -> bool:
    """The band is constant between scores: the true function is compared with it at each score and just before."""
    y = np.unique(scores)
    count = np.searchsorted(np.sort(scores), y, side="right")
    before = np.concatenate([[0], count[:-1]])
    at, just_before = np.asarray(law.cdf(y)), np.asarray(law.cdf(np.nextafter(y, -np.inf)))
    return bool(np.all(at >= band.band_low[count]) and np.all(just_before <= band.band_high[before]))


def _curve_check(law: Law, settings: Settings, n_scores: int, bounds: tuple[float, float] | None) -> Any:
    """Whether the curve of scores holds the true one at all budgets that matter."""
    if settings.statistic == "mean":
        k = np.geomspace(0.25, 4.0 * n_scores, _MEAN_POINTS)
        truth = np.asarray(law.mean_curve(k, direction=settings.direction))
    else:
        k = _jumps(settings.band_for(n_scores), settings.quantile)
        truth = np.asarray(law.quantile_curve(k, q=settings.q, direction=settings.direction))
    return partial(_curve_holds, settings, bounds, k, truth)


def _curve_holds(settings: Settings, bounds: Any, k: FloatArray, truth: FloatArray, scores: FloatArray) -> bool:
    found = curve_of(scores, settings, bounds, k)
    return bool(np.all((found.band_low <= truth) & (truth <= found.band_high)))


def _jumps(band: CdfBand, quantile: float) -> FloatArray:
    """Budgets on both sides of every k at which a limit of the curve jumps."""
    limits = np.concatenate([band.band_low, band.band_high])
    limits = np.unique(limits[(limits > 0.0) & (limits < 1.0)])
    p = np.unique(np.concatenate([limits * (1.0 - _NUDGE), limits * (1.0 + _NUDGE)]))
    k = np.log(quantile) / np.log(p[(p > 0.0) & (p < 1.0)])
    return k if band.from_k is None else np.concatenate([[band.from_k], k[k > band.from_k]])


def _all(results: list[Any]) -> NDArray[np.bool_]:
    """All results as one table; a simulation that failed is an error, not a coverage."""
    failed = [result for result in results if not isinstance(result, np.ndarray)]
    if failed:
        raise ArgumentError(
            f"{len(failed):,} of {len(results):,} simulations failed, the first with {failed[0].reason}"
        )
    return np.array(results)
