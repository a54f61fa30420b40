"""Coverage in simulation, where the truth is known: of bands at once, and of the bootstrap at each budget.

A law to simulate from has ``sample(size, rng=)``, ``cdf`` and the true curves ``quantile_curve(k, q=, direction=)`` and
``mean_curve(k, direction=)``, as `KernelDensity` and the parametric laws of this package have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lmemtest._replicates import replicate
from lmemtest._table import Tabular
from lmemtest._validate import check_choice, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import (
    check_direction,
    check_k,
    check_statistic,
    name_of,
    quantile_of,
    turned_quantile,
)
from lmemtest.tuning.bands import METHOD_NAMES, CdfBand, cdf_band
from lmemtest.tuning.curves import tuning_curve
from lmemtest.tuning.estimators import ESTIMATORS, bootstrap_ends, order_weights

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

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


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class Coverage(Tabular):
    """How often bands held in simulation.

    Attributes
    ----------
    target : str
        What the bands are for.
    at : (m,) float
        What the rows differ in: the nominal confidence, or the budget k.
    by : {"nominal", "k"}
        Which of the two.
    nominal : (m,) float
        Confidence that the bands claim.
    covered : (m,) int
        Simulations in which the band held.
    n_sim : int
        Simulations.
    n : int
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
    n_sim: int
    n: int
    method: str
    notes: tuple[str, ...] = ()

    @property
    def rate(self) -> FloatArray:
        """Share of the simulations in which the band held, shape (m,)."""
        return self.covered / self.n_sim

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Exact (Clopper-Pearson) 99 % intervals of the coverage."""
        from scipy import special

        x, n, tail = self.covered, self.n_sim, 0.5 * (1.0 - _LEVEL)
        low = np.where(x > 0, special.betaincinv(np.maximum(x, 1), n - x + 1.0, tail), 0.0)
        high = np.where(x < n, special.betaincinv(x + 1.0, np.maximum(n - x, 1), 1.0 - tail), 1.0)
        return low, high

    def to_frame(self) -> pd.DataFrame:
        """One row per nominal confidence or per k: k (if by k), nominal, coverage, ci_low, ci_high."""
        import pandas as pd

        low, high = self.interval()
        columns = {"nominal": self.nominal, "coverage": self.rate, "ci_low": low, "ci_high": high}
        return pd.DataFrame({"k": self.at, **columns} if self.by == "k" else columns)

    def to_table(self) -> ResultTable:
        """The coverage as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        facts = f"{self.method}, n = {self.n:,}; {self.n_sim:,} simulations; 99 % Clopper-Pearson intervals."
        formats = {"nominal": ".3f", "coverage": ".3f", "ci_low": ".3f", "ci_high": ".3f", "k": "g"}
        return ResultTable(
            title=f"Coverage: {self.target}", frame=self.to_frame(), notes=(facts, *self.notes), formats=formats
        )


def simulate_coverage(
    law: Law,
    n: int,
    *,
    target: str | float = "median",
    direction: str = "maximize",
    confidence: float | Sequence[float] = (0.5, 0.8, 0.95),
    method: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    n_sim: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Coverage:
    """Simulate how often a simultaneous band holds everywhere, for any law.

    Parameters
    ----------
    law : Law
        The true law of the scores, such as a `kernel_density`.
    n : int, >= 1
        Scores in each simulated search.
    target : "cdf", "median", "mean" or float in (0, 1)
        What the band is for: the distribution function, or the tuning curve of a summary of the best of k.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    confidence : float or sequence of float in (0, 1)
        Nominal confidences; the same simulated scores serve all.
    method, from_k : str, float
        Of the band, see `cdf_band`.
    bounds : (float, float), optional
        For the mean.
    n_sim : int, >= 1
        Simulations.
    rng, n_jobs, progress
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
    >>> from lmemtest.tuning.kernel_density import kernel_density
    >>> law = kernel_density([0.55, 0.62, 0.71, 0.74, 0.98], bandwidth=0.05, bounds=(0, 1))
    >>> found = simulate_coverage(law, 8, confidence=0.8, n_sim=400, rng=1)
    >>> bool(0.74 < found.rate[0] < 0.86)
    True
    """
    n, n_sim = check_positive_int(n, "n"), check_positive_int(n_sim, "n_sim")
    check_direction(direction)
    levels = np.array([check_fraction(c, "confidence") for c in np.atleast_1d(np.asarray(confidence, dtype=float))])
    options: dict[str, Any] = {"method": method, "from_k": from_k}
    statistic = None if target == "cdf" else _curve_target(target)
    quantile = 0.5 if statistic in (None, "mean") else turned_quantile(statistic or "median", direction)
    bands = [cdf_band(n, confidence=c, quantile=quantile, **options) for c in levels.tolist()]
    if statistic is None:
        if from_k is not None:
            raise ArgumentError("from_k is for tuning curves: leave it out for target='cdf'.")
        holds: list[Any] = [lambda y, band=band: _cdf_holds(law, band, y) for band in bands]
    elif statistic == "mean" and bounds is None:
        raise ArgumentError("target='mean' needs bounds=(low, high), the smallest and the largest score of the law.")
    else:
        curve = {"direction": direction, "statistic": statistic, "bounds": bounds, **options}
        grids = [_mean_grid(n) if statistic == "mean" else _jumps(band, quantile) for band in bands]
        truth = [_truth(law, k, statistic, direction) for k in grids]
        holds = [
            lambda y, k=k, t=t, c=c: _curve_holds(tuning_curve(y, k=k, confidence=c, **curve), t)
            for k, t, c in zip(grids, truth, levels.tolist(), strict=True)
        ]

    def task(generator: np.random.Generator) -> NDArray[np.bool_]:
        scores = np.asarray(law.sample(n, rng=generator))
        return np.array([hold(scores) for hold in holds])

    held = _all(replicate(task, n_sim, rng=rng, n_jobs=n_jobs, progress=progress, label="Searches"))
    what = "distribution function" if statistic is None else f"{name_of(statistic)} tuning curve, {direction}"
    return Coverage(
        target=f"{what}, everywhere at once",
        at=levels,
        by="nominal",
        nominal=levels,
        covered=held.sum(axis=0),
        n_sim=n_sim,
        n=n,
        method=METHOD_NAMES[method],
        notes=() if from_k is None else (f"For k >= {from_k:g}.",),
    )


def simulate_bootstrap_coverage(
    law: Law,
    n: int,
    *,
    k: ArrayLike,
    direction: str = "maximize",
    estimator: str = "v",
    confidence: float = 0.95,
    n_boot: int = 1000,
    n_sim: int = 1000,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Coverage:
    """Simulate how often percentile-bootstrap intervals cover the mean curve at each k.

    Parameters
    ----------
    law, n, direction, n_sim, rng, n_jobs, progress
        As in `simulate_coverage`.
    k : (m,) array of float, > 0
        Budgets.
    estimator, confidence, n_boot
        As in `bootstrap_band`.

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
    >>> from lmemtest.tuning.kernel_density import kernel_density
    >>> law = kernel_density([0.0], bandwidth=1.0)
    >>> found = simulate_bootstrap_coverage(law, 20, k=[1, 20], n_sim=200, n_boot=200, rng=1)
    >>> bool(found.rate[0] > 0.85), bool(found.rate[1] < 0.65)
    (True, True)
    """
    n, n_sim = check_positive_int(n, "n"), check_positive_int(n_sim, "n_sim")
    check_choice(estimator, "estimator", ESTIMATORS)
    confidence, n_boot = check_fraction(confidence, "confidence"), check_positive_int(n_boot, "n_boot", 100)
    sign = 1.0 if check_direction(direction) == "maximize" else -1.0
    budgets = check_k(k)
    weights = np.array([order_weights(n, budget, estimator=estimator) for budget in budgets.tolist()])
    truth = sign * np.asarray(law.mean_curve(budgets, direction=direction))

    def task(generator: np.random.Generator) -> NDArray[np.bool_]:
        scores = np.sort(sign * np.asarray(law.sample(n, rng=generator)))
        low, high = bootstrap_ends(scores, weights, confidence, n_boot, generator)
        return (low <= truth) & (truth <= high)

    held = _all(replicate(task, n_sim, rng=rng, n_jobs=n_jobs, progress=progress, label="Searches"))
    return Coverage(
        target=f"mean tuning curve, {direction}, at each k",
        at=budgets,
        by="k",
        nominal=np.full(len(budgets), confidence),
        covered=held.sum(axis=0),
        n_sim=n_sim,
        n=n,
        method=f"Percentile bootstrap of {estimator.upper()} with {n_boot:,} resamples",
    )


# ---------------------------------------------------------------------------------------------------- what holds


def _curve_target(target: Any) -> str | float:
    try:
        return check_statistic(target)
    except ArgumentError:
        raise ArgumentError(
            f"target must be 'cdf', 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got {target!r}."
        ) from None


def _cdf_holds(law: Law, band: CdfBand, scores: FloatArray) -> bool:
    """The band is constant between scores: the true function is compared with it at each score and just before."""
    y = np.unique(scores)
    count = np.searchsorted(np.sort(scores), y, side="right")
    before = np.concatenate([[0], count[:-1]])
    at, just_before = np.asarray(law.cdf(y)), np.asarray(law.cdf(np.nextafter(y, -np.inf)))
    return bool(np.all(at >= band.lower[count]) and np.all(just_before <= band.upper[before]))


def _jumps(band: CdfBand, quantile: float) -> FloatArray:
    """Budgets on both sides of every k at which a limit of the curve jumps."""
    limits = np.concatenate([band.lower, band.upper])
    limits = np.unique(limits[(limits > 0.0) & (limits < 1.0)])
    p = np.unique(np.concatenate([limits * (1.0 - _NUDGE), limits * (1.0 + _NUDGE)]))
    k = np.log(quantile) / np.log(p[(p > 0.0) & (p < 1.0)])
    return k if band.from_k is None else np.concatenate([[band.from_k], k[k > band.from_k]])


def _mean_grid(n: int) -> FloatArray:
    return np.geomspace(0.25, 4.0 * n, _MEAN_POINTS)


def _truth(law: Law, k: FloatArray, statistic: str | float, direction: str) -> FloatArray:
    if statistic == "mean":
        return np.asarray(law.mean_curve(k, direction=direction))
    return np.asarray(law.quantile_curve(k, q=quantile_of(statistic), direction=direction))


def _curve_holds(curve: Any, truth: FloatArray) -> bool:
    return bool(np.all((curve.lower <= truth) & (truth <= curve.upper)))


def _all(results: list[Any]) -> NDArray[np.bool_]:
    """All results as one table; a simulation that failed is an error, not a coverage."""
    failed = [result for result in results if not isinstance(result, np.ndarray)]
    if failed:
        raise ArgumentError(
            f"{len(failed):,} of {len(results):,} simulations failed, the first with {failed[0].reason}"
        )
    return np.array(results)
