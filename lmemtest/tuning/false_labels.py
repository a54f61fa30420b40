r"""How often two searches of the same kind would be labelled different: the price of a label.

For quantile curves of continuous scores everything is a matter of ranks: limits and estimates are order statistics
whose ranks depend on n, the band and the budget alone, so the rates hold for every law of the scores, and only those
order statistics have to be drawn (as partial sums of gamma variables). In cost units, curves that agree have
F_B = F_A^(m_B / m_A) with mean costs m, and the rates still hold for every F_A.

Mean curves and paired searches have no such luck. There the scores at hand are relabelled: pooled and dealt out anew,
or swapped within pairs, which leaves the joint law as it is if the labels mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._validate import check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_k, check_statistic, direction_of
from lmemtest.tuning.curves import TuningCurve, tuning_curve
from lmemtest.tuning.evidence import LEVELS, Reading, portions, reaches, signed_levels

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

_CHUNK = 1_000_000  # drawn numbers held at once
_MOST_POINTS = 200  # of a default grid

Draw = Callable[[int, np.random.Generator], tuple[Reading, Reading]]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class FalseLabelRates(Tabular):
    """How often a label, or a stronger one, appears where the curves are the same.

    Attributes
    ----------
    rate : (3,) float
        Share of comparisons labelled weak or more, fair or more, strong, in either direction.
    error : (3,) float
        Monte-Carlo standard error of `rate`.
    n_sim : int
        Simulated comparisons.
    portion : float
        Of the budgets, that a level must hold for.
    points : int
        Budgets that count.
    null : str
        What was simulated.
    """

    rate: FloatArray
    error: FloatArray
    n_sim: int
    portion: float
    points: int
    null: str

    def to_frame(self) -> pd.DataFrame:
        """One row per level (weak, fair, strong): evidence, false_rate, error."""
        import pandas as pd

        return pd.DataFrame({"evidence": LEVELS[1:], "false_rate": self.rate, "error": self.error})

    def to_table(self) -> ResultTable:
        """The rates as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        where = f"over {describe_portion(self.portion)} of {self.points} budgets"
        return ResultTable(
            title="False labels where the curves are the same",
            frame=self.to_frame(),
            notes=(f"A level or a stronger one, {where}, in either direction.", f"{self.null} {self.n_sim:,} draws."),
            formats={"false_rate": format_rate, "error": ".4f"},
        )


class Limits(NamedTuple):
    """Budgets, (m,) each, at which a curve's pessimistic limit, estimate and optimistic limit are read."""

    pessimistic: FloatArray
    estimate: FloatArray
    optimistic: FloatArray


def false_label_rates(
    n_a: int,
    n_b: int | None = None,
    *,
    confidence: float = 0.8,
    method: str = "ld_highest_density",
    statistic: str | float = "median",
    direction: str | None = None,
    k: ArrayLike | None = None,
    portion: float = 0.5,
    from_k: float | None = None,
    n_sim: int = 50_000,
    rng: int | np.random.Generator | None = None,
) -> FalseLabelRates:
    """Simulate how often two independent random searches of the same law are labelled different.

    Parameters
    ----------
    n_a, n_b : int, >= 1
        Numbers of scores; `n_b` is `n_a` by default.
    confidence, method, statistic, from_k
        Of the curves, as in `tuning_curve`; a quantile, not the mean.
    direction : {"maximize", "minimize"}, optional
        Which end of the score is better; needed for a quantile other than the median.
    k : (m,) array of float, > 0, optional
        Budgets. Default: the whole numbers at which both bands are non-trivial.
    portion : float in [0, 1]
        Share of the budgets that a level must hold for; 0 means one budget is enough.
    n_sim : int, >= 100
        Simulated comparisons.
    rng : int, numpy.random.Generator or None
        Source of the draws.

    Returns
    -------
    FalseLabelRates
        ``to_frame()`` has evidence, false_rate, error.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, the statistic is the mean, or no budget is non-trivial.

    Examples
    --------
    >>> rates = false_label_rates(48, rng=1, n_sim=20_000)
    >>> bool(0.10 < rates.rate[0] < 0.12), rates.points
    (True, 8)
    """
    n_a = check_positive_int(n_a, "n_a")
    n_b = n_a if n_b is None else check_positive_int(n_b, "n_b")
    if check_statistic(statistic) == "mean":
        raise ArgumentError(
            "false_label_rates needs a quantile: the rates of mean curves depend on the law of the scores. "
            "compare_curves simulates them from the scores at hand."
        )
    options: dict[str, Any] = {
        "direction": direction_of(direction, statistic),
        "statistic": statistic,
        "confidence": confidence,
        "method": method,
        "from_k": from_k,
    }
    a, b = rank_curve(n_a, options), rank_curve(n_b, options)
    grid = default_grid(a, b) if k is None else check_k(k)
    at = Limits(grid, grid, grid)
    usable = ~(a.at(grid).trivial | b.at(grid).trivial)
    if not usable.any():
        raise ArgumentError(
            f"no k has two non-trivial bands with n_a = {n_a} and n_b = {n_b}, so nothing can be labelled. "
            "Use more scores, a lower confidence, or smaller k."
        )
    draw = draw_ranks(ranks_at(a, at)[:, usable], ranks_at(b, at)[:, usable], n_a, n_b, 1.0)
    return count_labels(draw, 6 * int(usable.sum()), int(usable.sum()), portion, INDEPENDENT, n_sim, rng)


INDEPENDENT = "Two independent searches of one continuous law of scores, whatever the law."
SAME_IN_COST = (
    "Two independent searches with one curve in cost units, for every continuous law; mean costs as estimated."
)
RELABELLED = "The pooled scores, dealt out at random."
SWAPPED = "The scores, swapped at random within each configuration."


def count_labels(
    draw: Draw,
    width: int,
    points: int,
    portion: float,
    null: str,
    n_sim: int,
    rng: int | np.random.Generator | None,
) -> FalseLabelRates:
    """Label simulated comparisons; `width` numbers are drawn for each."""
    portion = check_portion(portion)
    n_sim = check_positive_int(n_sim, "n_sim", 100)
    generator = resolve_rng(rng)
    found, size = np.zeros(3), max(1, _CHUNK // width)
    for start in range(0, n_sim, size):
        a, b = draw(min(size, n_sim - start), generator)
        found += reaches(portions(signed_levels(a, b)), portion).any(axis=-1).sum(axis=0)
    rate = found / n_sim
    error = np.sqrt(rate * (1.0 - rate) / n_sim)
    return FalseLabelRates(rate=rate, error=error, n_sim=n_sim, portion=portion, points=points, null=null)


def check_portion(portion: Any) -> float:
    """Check that a portion lies in [0, 1], both ends included."""
    number = isinstance(portion, (int, float, np.number)) and not isinstance(portion, bool)
    if number and 0.0 <= float(portion) <= 1.0:
        return float(portion)
    raise ArgumentError(f"portion must be a number between 0 (one budget is enough) and 1 (all), got {portion!r}.")


def describe_portion(portion: float) -> str:
    """A portion in words."""
    return "at least half" if portion == 0.5 else "any" if portion == 0.0 else f"at least {100.0 * portion:g} %"


def format_rate(rate: float) -> str:
    """A rate in percent, with one decimal below ten.

    >>> format_rate(0.3712), format_rate(0.0123), format_rate(0.0001)
    ('37 %', '1.2 %', '<0.1 %')
    """
    percent = 100.0 * float(rate)
    return (
        "<0.1 %"
        if percent < 0.1
        else f"{written(percent, '.1f')} %"
        if percent < 9.95
        else f"{written(percent, '.0f')} %"
    )


# ---------------------------------------------------------------------------------------------------- budgets


def default_grid(a: TuningCurve, b: TuningCurve) -> FloatArray:
    """The whole budgets that both curves reach, thinned out evenly if there are many."""
    first = np.ceil(max(1.0, a.band.from_k or 1.0))
    last = max(np.floor(min(reach_of(a), reach_of(b))), first)
    return np.unique(np.round(np.linspace(first, last, int(min(last - first + 1, _MOST_POINTS)))))


def reach_of(curve: TuningCurve) -> float:
    """The last k that says something: of a quantile curve where its band becomes trivial; n at most."""
    return float(curve.n if np.isnan(curve.k_max) else min(curve.k_max, curve.n))


# ---------------------------------------------------------------------------------------------------- draws


def rank_curve(n: int, options: dict[str, Any]) -> TuningCurve:
    """The curve of the scores 1, ..., n between 0 and n + 1: its values are the ranks that any curve reads."""
    return tuning_curve(np.arange(1.0, n + 1.0), bounds=(0.0, n + 1.0), **options)


def ranks_at(curve: TuningCurve, at: Limits) -> NDArray[np.intp]:
    """Ranks (3, m), from the worst score on, of pessimistic limit, estimate and optimistic limit of a `rank_curve`."""
    maximize = curve.direction == "maximize"
    worse, better = curve.at(at.pessimistic), curve.at(at.optimistic)
    rows = [
        worse.lower if maximize else worse.upper,
        curve.at(at.estimate).estimate,
        better.upper if maximize else better.lower,
    ]
    ranks = np.array(rows).astype(np.intp)
    return ranks if maximize else curve.n + 1 - ranks


def draw_ranks(a: NDArray[np.intp], b: NDArray[np.intp], n_a: int, n_b: int, power: float) -> Draw:
    """Draws of order statistics of uniforms, those of b raised to a power."""
    (used_a, back_a), (used_b, back_b) = (np.unique(r, return_inverse=True) for r in (a, b))
    back_a, back_b = back_a.reshape(a.shape), back_b.reshape(b.shape)

    def draw(size: int, rng: np.random.Generator) -> tuple[Reading, Reading]:
        first = _uniform_order_statistics(n_a, used_a, size, rng)
        second = _uniform_order_statistics(n_b, used_b, size, rng) ** power
        return Reading(*(first[:, row] for row in back_a)), Reading(*(second[:, row] for row in back_b))

    return draw


def _uniform_order_statistics(n: int, ranks: NDArray[np.intp], size: int, rng: np.random.Generator) -> FloatArray:
    """(size, r) order statistics of n uniforms: partial sums of n + 1 exponentials over the whole sum."""
    steps = np.diff(np.concatenate([[0], ranks, [n + 1]])).astype(float)
    sums = np.cumsum(rng.standard_gamma(steps, size=(size, len(steps))), axis=1)
    drawn: FloatArray = sums[:, :-1] / sums[:, -1:]
    return drawn


def draw_relabelled(a: FloatArray, b: FloatArray, read: Any, *, paired: bool) -> Draw:
    """Draws of relabelled scores; `read` turns sorted rows of each into readings."""
    pooled = np.concatenate([a, b])

    def draw(size: int, rng: np.random.Generator) -> tuple[Reading, Reading]:
        if paired:
            swap = rng.random((size, len(a))) < 0.5
            rows = np.where(swap, b, a), np.where(swap, a, b)
        else:
            dealt = rng.permuted(np.broadcast_to(pooled, (size, len(pooled))), axis=1)
            rows = dealt[:, : len(a)], dealt[:, len(a) :]
        return read[0](np.sort(rows[0], axis=1)), read[1](np.sort(rows[1], axis=1))

    return draw


def rank_reader(ranks: NDArray[np.intp]) -> Callable[[FloatArray], Reading]:
    """Read order statistics off sorted rows."""
    return lambda rows: Reading(*(rows[:, row - 1] for row in ranks))


def weight_reader(
    n: int, at: Limits, usable: BoolArray, bounds: tuple[float, float], options: dict[str, Any]
) -> Callable[[FloatArray], Reading]:
    """Read mean curves, which are weighted means of bounds and order statistics, off sorted rows.

    The curve of scores that jump from 0 to 1 at one place gives the weight above that place.
    """
    turned = {**options, "direction": "maximize"}
    steps = np.tri(n + 1, n, -1)[:, ::-1]  # from no score to all scores at the upper bound
    above = np.empty((3, n + 1, int(usable.sum())))
    for place, scores in enumerate(steps):
        curve = tuning_curve(scores, bounds=(0.0, 1.0), k=[1.0], **turned)
        above[0, place] = curve.at(at.pessimistic[usable]).lower
        above[1, place] = curve.at(at.estimate[usable]).estimate
        above[2, place] = curve.at(at.optimistic[usable]).upper
    cumulative = np.concatenate([above, np.ones((3, 1, above.shape[2]))], axis=1)
    weights = np.diff(cumulative, axis=1, prepend=0.0)[:, ::-1]  # of the lower bound, the scores, the upper bound

    def read(rows: FloatArray) -> Reading:
        ends = [np.full((len(rows), 1), end) for end in bounds]
        extended = np.concatenate([ends[0], rows, ends[1]], axis=1)
        return Reading(*(extended @ w for w in weights))

    return read
