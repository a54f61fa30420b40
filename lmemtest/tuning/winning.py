"""Which of two searches ends up with the better best score: its probability for each budget, with a band."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_fraction
from lmemtest.tuning._arguments import check_direction, check_k, check_scores
from lmemtest.tuning._setting import check_costs, check_names, check_paired, side_limits
from lmemtest.tuning._words import PAIRED_ADVICE, cost_notes, curve_table
from lmemtest.tuning.bands import METHOD_NAMES, CdfBand, cdf_band
from lmemtest.tuning.costs import MeanCost
from lmemtest.tuning.false_labels import Limits

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

_MOST_POINTS = 64  # of a default grid
_SMOOTH = 100  # budgets of a line


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class BestOf(Tabular):
    """Probability that the best score of A is better than the best score of B, for each budget.

    Attributes
    ----------
    grid : (m,) float
        Budgets: trials, or costs if costs were given.
    unit : str
        "trials" or "cost".
    k_a, k_b : (m,) float
        Trials of each that a budget pays for on average.
    lower, estimate, upper : (m,) float
        The probability, ties counting one half, with its band over all budgets at once.
    names : (str, str)
        What A and B are called.
    n : (int, int)
        Scores of A and of B.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    confidence : float
        Probability that the whole band holds, at least.
    method : str
        Shape of the bands of the two distribution functions.
    paired : bool
        Whether both come from the same configurations.
    notes : tuple of str
        What a reader must know.
    scores, bands, costs : pair
        Scores of A and of B, the bands for their distribution functions, and their mean costs.
    """

    grid: FloatArray
    unit: str
    k_a: FloatArray
    k_b: FloatArray
    lower: FloatArray
    estimate: FloatArray
    upper: FloatArray
    names: tuple[str, str]
    n: tuple[int, int]
    direction: str
    confidence: float
    method: str
    paired: bool
    notes: tuple[str, ...] = ()
    scores: tuple[FloatArray, FloatArray] = field(repr=False)
    bands: tuple[CdfBand, CdfBand] = field(repr=False)
    costs: tuple[MeanCost | None, MeanCost | None] = field(repr=False)

    def at(self, grid: ArrayLike) -> BestOf:
        """The same probability and band at other budgets: they hold for all at once, so this costs no confidence.

        Examples
        --------
        >>> best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize").at(1.5).k_a
        array([1.5])
        """
        budgets = np.sort(check_k(grid, "grid"))
        at = [side_limits(budgets, cost) for cost in self.costs]
        a, b = self.scores if self.direction == "maximize" else (-self.scores[0], -self.scores[1])
        lower, estimate, upper = _probabilities(a, b, self.bands, at)
        values: dict[str, Any] = {
            "k_a": at[0].estimate,
            "k_b": at[1].estimate,
            "lower": lower,
            "estimate": estimate,
            "upper": upper,
        }
        return replace(self, grid=budgets, **values)

    def drawn(self) -> BestOf:
        """The same at so many budgets that a line shows what lies between: the probability has no jumps."""
        first, last = float(self.grid[0]), float(self.grid[-1])
        return self.at(np.union1d(np.geomspace(first, last, _SMOOTH), self.grid)) if last > first else self

    def to_frame(self) -> pd.DataFrame:
        """One row per budget: trials or cost, k_a, k_b, lower, estimate, upper."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("k_a", "k_b", "lower", "estimate", "upper")}
        return pd.DataFrame({self.unit: self.grid, **columns})

    def to_table(self) -> ResultTable:
        """A selection of budgets as a table for text, markdown, html and latex."""
        frame = self.to_frame()
        if self.unit == "trials" and np.array_equal(self.k_a, self.k_b):
            frame = frame.drop(columns=["k_a", "k_b"])
        first, second = self.names
        title = f"P(best of {first} beats best of {second}), {self.direction}, n = {self.n[0]} and {self.n[1]}"
        return curve_table(title, frame, (self.sentence(), *self.notes))

    def sentence(self) -> str:
        """For which budgets the band decides."""
        found = []
        for name, wins in ((self.names[0], self.lower > 0.5), (self.names[1], self.upper < 0.5)):
            if wins.any():
                low, high = self.grid[wins].min(), self.grid[wins].max()
                span = written(low, ".4g") if low == high else f"{written(low, '.4g')} to {written(high, '.4g')}"
                found.append(f"{name} for {span} trials" if self.unit == "trials" else f"{name} at a cost of {span}")
        band = f"simultaneous {100 * self.confidence:.4g} % band"
        return f"More likely to win by the {band}: {', '.join(found) if found else 'nobody at any budget'}."


@one_blas_thread()
def best_of(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    names: tuple[str, str] = ("a", "b"),
    grid: ArrayLike | None = None,
    confidence: float = 0.8,
    method: str = "ld_highest_density",
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
    confidence : float in (0, 1)
        Probability that the band holds at all budgets at once, at least.
    method : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the bands of the distribution functions, see `cdf_band`.
    cost_a, cost_b, paired
        As in `compare_curves`.

    Returns
    -------
    BestOf
        ``to_frame()`` has the budget, k_a, k_b, lower, estimate, upper.

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
    distribution functions bound it, for all budgets at once and for every law, ties included. Both bands hold
    together with the confidence asked for: each has its square root for independent searches, and half of the error
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
    >>> won.estimate.round(2), bool((won.lower > 0.5).all())
    (array([0.95, 1.  ]), True)
    """
    check_direction(direction)
    names = check_names(names)
    confidence = check_fraction(confidence, "confidence")
    scores = check_scores(a, "a"), check_scores(b, "b")
    check_paired(paired, scores)
    error = 0.5 * (1.0 - confidence) if paired else 1.0 - np.sqrt(confidence)
    costs, errors = check_costs(cost_a, cost_b, scores, float(error))
    budgets = _default(scores, costs) if grid is None else np.sort(check_k(grid, "grid"))
    first, second = (cdf_band(len(y), method=method, confidence=1.0 - e) for y, e in zip(scores, errors, strict=True))
    nothing = np.empty(0)
    return BestOf(
        grid=nothing,
        unit="trials" if costs[0] is None else "cost",
        k_a=nothing,
        k_b=nothing,
        lower=nothing,
        estimate=nothing,
        upper=nothing,
        names=names,
        n=(len(scores[0]), len(scores[1])),
        direction=direction,
        confidence=confidence,
        method=method,
        paired=bool(paired),
        notes=(
            f"{METHOD_NAMES[method]} for each distribution function; ties count one half.",
            *cost_notes(names, costs),
            *((PAIRED_ADVICE,) if paired else ()),
        ),
        scores=scores,
        bands=(first, second),
        costs=costs,
    ).at(budgets)


def _default(scores: tuple[FloatArray, FloatArray], costs: tuple[MeanCost | None, MeanCost | None]) -> FloatArray:
    first, second = costs
    if first is None or second is None:
        last = min(map(len, scores))
        if last <= _MOST_POINTS:
            return np.arange(1.0, last + 1.0)
        return np.unique(np.round(np.geomspace(1.0, last, _MOST_POINTS)))
    start = max(first.mean, second.mean)
    return np.linspace(start, max(start, min(first.mean * len(scores[0]), second.mean * len(scores[1]))), _MOST_POINTS)


def _probabilities(
    a: FloatArray, b: FloatArray, bands: tuple[CdfBand, CdfBand], at: list[Limits]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, estimate and upper end for scores of which larger ones are better."""
    support = np.unique(np.concatenate([a, b]))
    worst, middle, best = [], [], []
    for y, band in zip((a, b), bands, strict=True):
        count = np.searchsorted(np.sort(y), support, side="right")
        # before the first score the upper end has mass already; after the last one the lower end still misses some
        worst.append(np.concatenate([[band.upper[0]], band.upper[count], [1.0]]))
        middle.append(np.concatenate([[0.0], count / len(y), [1.0]]))
        best.append(np.concatenate([[0.0], band.lower[count], [1.0]]))
    return (
        _win(worst[0], at[0].pessimistic, best[1], at[1].optimistic),
        _win(middle[0], at[0].estimate, middle[1], at[1].estimate),
        _win(best[0], at[0].optimistic, worst[1], at[1].pessimistic),
    )


def _win(a: FloatArray, k_a: FloatArray, b: FloatArray, k_b: FloatArray) -> FloatArray:
    """P(T_A > T_B) + P(T_A = T_B) / 2 of two distribution functions on one support."""
    won = np.empty(len(k_a))
    for place in range(len(won)):
        mass = np.diff(a ** k_a[place], prepend=0.0)
        other = b ** k_b[place]
        won[place] = mass @ (0.5 * (np.concatenate([[0.0], other[:-1]]) + other))
    return np.clip(won, 0.0, 1.0)
