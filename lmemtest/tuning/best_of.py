"""Which of two searches ends up with the better best score: its probability for each budget, with a band."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.result import Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction
from lmemtest.core.words import percent, span
from lmemtest.tuning.band import BAND_NAMES, CdfBand
from lmemtest.tuning.band import band as cdf_band
from lmemtest.tuning.checks import check_direction, check_k, thinned, whole_budgets
from lmemtest.tuning.costs import PAIRED_ADVICE, Costs, check_searches, cost_facts, trials_at

_MOST_POINTS = 64  # of a default grid
_SMOOTH = 100  # budgets of a line


@result
class BestOf(Result):
    """Probability that the best score of A is better than the best score of B, for each budget.

    Attributes
    ----------
    grid : (m,) float
        Budgets: trials, or costs if costs were given.
    k_a, k_b : (m,) float
        Trials of each that a budget pays for on average.
    band_low, estimate, band_high : (m,) float
        The probability, ties counting one half, with its band over all budgets at once.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    level : float
        Probability that the whole band holds, at least.
    band : str
        Shape of the bands of the two distribution functions.
    names : (str, str)
        What A and B are called.
    scores : tuple of (n,) array of float
        Scores of A and of B, in the order given.
    costs : tuple of Estimate, or of None
        Mean cost of a trial of each; None where budgets are trials.
    paired : bool
        Whether both tried the same configurations.
    cdf_bands : (CdfBand, CdfBand)
        The bands for their distribution functions.
    """

    grid: Array
    k_a: Array
    k_b: Array
    band_low: Array
    estimate: Array
    band_high: Array
    direction: str
    level: float
    band: str
    names: tuple[str, str]
    scores: tuple[Array, Array] = field(repr=False)
    costs: Costs
    paired: bool
    cdf_bands: tuple[CdfBand, CdfBand] = field(repr=False)

    parts = {"budgets": "_frame"}
    formats = {"trials": "g"}
    figure = "tuning_best_of_plot"

    @property
    def title(self) -> str:
        (first, second), (n, m) = self.names, self.n_scores
        return f"P(best of {first} beats best of {second}), {self.direction}, n = {n} and {m}"

    @property
    def facts(self) -> tuple[str, ...]:
        bands = f"{BAND_NAMES[self.band]} for each distribution function; ties count one half."
        return (*thinned(self._frame())[1], bands, *cost_facts(self.names, self.costs))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        return (PAIRED_ADVICE,) if self.paired else ()

    @property
    def n_scores(self) -> tuple[int, int]:
        """Scores of A and of B."""
        return len(self.scores[0]), len(self.scores[1])

    @property
    def axis(self) -> str:
        """What the budgets are: "trials" or "cost"."""
        return "trials" if self.costs[0] is None else "cost"

    def at(self, grid: ArrayLike) -> BestOf:
        """The same probability and band at other budgets: they hold for all at once, so this costs nothing.

        Examples
        --------
        >>> best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize").at(1.5).k_a
        array([1.5])
        """
        budgets = np.sort(check_k(grid, "grid"))
        return replace(self, **_won(self.scores, self.costs, self.cdf_bands, self.direction, budgets))

    def drawn(self) -> BestOf:
        """The same at so many budgets that a line shows what lies between: the probability has no jumps."""
        first, last = float(self.grid[0]), float(self.grid[-1])
        return self.at(np.union1d(np.geomspace(first, last, _SMOOTH), self.grid)) if last > first else self

    def _frame(self) -> pd.DataFrame:
        """One row per budget: trials or cost, k_a, k_b, estimate, band_low, band_high."""
        columns = {name: getattr(self, name) for name in ("k_a", "k_b", "estimate", "band_low", "band_high")}
        return pd.DataFrame({self.axis: self.grid, **columns})

    def shown(self) -> pd.DataFrame:
        frame, _ = thinned(self._frame())
        return frame.drop(columns=["k_a", "k_b"]) if self.axis == "trials" else frame

    def sentences(self) -> tuple[str, ...]:
        winners = []
        for name, wins in zip(self.names, (self.band_low > 0.5, self.band_high < 0.5), strict=True):
            if wins.any():
                budgets = span(self.grid[wins].min(), self.grid[wins].max())
                where = f"for {budgets} trials" if self.axis == "trials" else f"at a cost of {budgets}"
                winners.append(f"{name} {where}")
        band = f"simultaneous {percent(self.level)} band"
        return (f"More likely to win by the {band}: {', '.join(winners) or 'neither at any budget'}.",)


@one_blas_thread()
def best_of(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    names: tuple[str, str] = ("a", "b"),
    grid: ArrayLike | None = None,
    level: float = 0.8,
    band: str = "ld_highest_density",
    cost_a: ArrayLike | None = None,
    cost_b: ArrayLike | None = None,
    paired: bool = False,
) -> BestOf:
    """Estimate the probability that the best of k trials of A beats the best of k trials of B.

    Parameters
    ----------
    a, b : (n,) array of float
        Scores of independent configurations; a failed run is a worst score.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    names : (str, str)
        What to call them.
    grid : (m,) array of float, > 0, optional
        Budgets: numbers of trials, or costs if costs are given. Default: up to the smaller number of trials, or to the
        smaller total cost.
    level : float in (0, 1)
        Probability that the band holds at all budgets at once, at least.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the bands of the distribution functions, see `lmemtest.tuning.band`.
    cost_a, cost_b, paired
        As in `lmemtest.tuning.compare`.

    Returns
    -------
    BestOf
        ``to_frame()`` has the budget, k_a, k_b, estimate, band_low, band_high.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or one cost is missing.
    DataError
        If scores or costs are missing.

    Notes
    -----
    For two searches that are run independently, P = E[F_B(T_A-) + F_B(T_A)] / 2 with the laws F^k of the best of k.
    P grows if A's law is moved towards better scores or B's towards worse ones, so the ends of the two bands for the
    distribution functions bound it, for all budgets at once and for every law, ties included. The two bands are
    simultaneous at the level asked for: each has its square root for independent searches, and half of the error
    (Bonferroni) for paired ones. Mass that a band cannot place is put at the worst or the best score there can be.

    The estimate puts the laws of the samples in. For large budgets it goes to 0 or 1, whichever sample has the best
    score, which says little: the band widens to [0, 1].

    References
    ----------
    Lehmann (1955), Ordered families of distributions, Ann. Math. Stat. 26, 399-419;
    Lourie, Cho & He (2024), NAACL, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> won = best_of(rng.normal(0.8, 0.05, 48), rng.normal(0.7, 0.05, 48), direction="maximize", grid=[1, 4])
    >>> won.estimate.round(2), bool((won.band_low > 0.5).all())
    (array([0.95, 1.  ]), True)
    """
    direction = check_direction(direction)
    level = check_fraction(level, "level")
    error, if_paired = float(1.0 - np.sqrt(level)), 0.5 * (1.0 - level)
    names, scores, costs, levels = check_searches(a, b, names, cost_a, cost_b, paired, error=error, if_paired=if_paired)
    budgets = _default_grid(scores, costs) if grid is None else np.sort(check_k(grid, "grid"))
    first, second = (cdf_band(len(y), band=band, level=each) for y, each in zip(scores, levels, strict=True))
    return BestOf(
        direction=direction,
        level=level,
        band=band,
        names=names,
        scores=scores,
        costs=costs,
        paired=bool(paired),
        cdf_bands=(first, second),
        **_won(scores, costs, (first, second), direction, budgets),
    )


def _default_grid(scores: tuple[Array, Array], costs: Costs) -> Array:
    (first, second), sizes = costs, [len(y) for y in scores]
    if first is None or second is None:
        return whole_budgets(min(sizes), _MOST_POINTS)
    start = max(first.value, second.value)
    return np.linspace(start, max(start, min(first.value * sizes[0], second.value * sizes[1])), _MOST_POINTS)


def _won(
    scores: tuple[Array, Array], costs: Costs, bands: tuple[CdfBand, CdfBand], direction: str, budgets: Array
) -> dict[str, Any]:
    """What a `BestOf` says at budgets."""
    sign = 1.0 if direction == "maximize" else -1.0
    turned = [sign * y for y in scores]
    support = np.unique(np.concatenate(turned))
    laws = []  # pessimistic, as estimated, optimistic
    for y, band in zip(turned, bands, strict=True):
        count = np.searchsorted(np.sort(y), support, side="right")
        # before the first score the upper end has mass already; after the last one the lower end still misses some
        worst = np.concatenate([[band.band_high[0]], band.band_high[count], [1.0]])
        middle = np.concatenate([[0.0], count / len(y), [1.0]])
        best = np.concatenate([[0.0], band.band_low[count], [1.0]])
        laws.append((worst, middle, best))
    (a, b), (k_a, k_b) = laws, (trials_at(budgets, cost) for cost in costs)
    return {
        "grid": budgets,
        "k_a": k_a[1],
        "k_b": k_b[1],
        "band_low": _win(a[0], k_a[0], b[2], k_b[2]),
        "estimate": _win(a[1], k_a[1], b[1], k_b[1]),
        "band_high": _win(a[2], k_a[2], b[0], k_b[0]),
    }


def _win(a: Array, k_a: Array, b: Array, k_b: Array) -> Array:
    """P(T_A > T_B) + P(T_A = T_B) / 2 of two distribution functions on one support."""
    won = np.empty(len(k_a))
    for place in range(len(won)):
        mass = np.diff(a ** k_a[place], prepend=0.0)
        other = b ** k_b[place]
        won[place] = mass @ (0.5 * (np.concatenate([[0.0], other[:-1]]) + other))
    return np.clip(won, 0.0, 1.0)
