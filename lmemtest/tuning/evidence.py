"""Evidence that one tuning curve is above another: what their bands say at each budget, and over a range of budgets.

At a budget, with larger better and both bands non-trivial, the evidence that A is better than B is

    weak    the band of A lies above the estimate of B, or the band of B below the estimate of A
    fair    both
    strong  the band of A lies above the band of B

and the label of a comparison is the strongest of these that holds over a stated portion of the budgets.

The label is a heuristic, so its price is simulated: how often two searches of the same kind would get it. For quantile
curves of continuous scores everything is a matter of ranks: limits and estimates are order statistics whose ranks
depend on n, the band and the budget alone, so the rates hold for every law of the scores, and only those order
statistics have to be drawn (as partial sums of gamma variables). In cost units, curves that agree have
F_B = F_A^(m_B / m_A) with mean costs m, and the rates still hold for every F_A.

Mean curves and paired searches have no such luck. There the scores at hand are relabelled: pooled and dealt out anew,
or swapped within pairs, which leaves the joint law as it is if the labels mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.resampling import dealt, random_signs
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_number, check_positive_int, resolve_rng
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning.checks import check_k
from lmemtest.tuning.costs import trials_at
from lmemtest.tuning.curve import Reading, Settings, TuningCurve, check_rank_settings, curve_of

_CHUNK = 1_000_000  # drawn numbers held at once
_MOST_POINTS = 200  # of a default grid
EVIDENCE = ("none", "weak", "fair", "strong")
_SLACK = 1e-12  # of a portion: half of the budgets is half whatever the rounding

Segment = tuple[str, str, float, float]  # evidence, which is better, the first and the last of neighbouring budgets


def signed_levels(a: Reading, b: Reading) -> NDArray[np.int8]:
    """Evidence at each budget: 1, 2, 3 (weak, fair, strong) for a, the same below zero for b, else 0.

    Both signs at once are impossible: the band of A above the estimate of B puts A's estimate above B's.

    >>> high = np.array([0.6]), np.array([0.7]), np.array([0.8])
    >>> low = np.array([0.4]), np.array([0.5]), np.array([0.65])
    >>> signed_levels(high, low), signed_levels(low, high)
    (array([2], dtype=int8), array([-2], dtype=int8))
    """

    def level(x: Reading, y: Reading) -> NDArray[np.int8]:
        (pessimistic, estimate, _), (_, other, others_optimistic) = x, y
        signs = (pessimistic > other, others_optimistic < estimate, pessimistic > others_optimistic)
        return np.sum(signs, axis=0, dtype=np.int8)

    return level(a, b) - level(b, a)


def portions(signed: NDArray[np.int8]) -> Array:
    """Share of the budgets (last axis) with at least each level, (..., 3, 2): weak, fair, strong; for a, for b."""
    rows = [[(sign * signed >= level).mean(axis=-1) for sign in (1, -1)] for level in (1, 2, 3)]
    return np.moveaxis(np.array(rows, dtype=float), (0, 1), (-2, -1))


def reaches(shares: Any, portion: float) -> Any:
    """Whether shares of the budgets are enough: at least `portion`, and more than none."""
    return (np.asarray(shares) >= portion - _SLACK) & (np.asarray(shares) > 0.0)


def verdict(shares: Array, portion: float) -> tuple[str, int, float]:
    """The strongest level that one of the curves has over enough of the budgets: its name, the sign of that curve (0 if
    both or none), and the portion of the budgets.

    >>> verdict(np.array([[0.75, 0.0], [0.5, 0.0], [0.25, 0.0]]), 0.5)
    ('fair', 1, 0.5)
    """
    for level in (3, 2, 1):
        share = shares[level - 1]
        enough = reaches(share, portion)
        if enough.any():
            sign = 0 if enough.all() else 1 if enough[0] else -1
            return EVIDENCE[level], sign, float(share.max() if sign else share.min())
    return EVIDENCE[0], 0, 0.0


def segments(signed: NDArray[np.int8], usable: Mask, grid: Array, names: tuple[str, str]) -> list[Segment]:
    """Runs of neighbouring budgets with the same evidence; those without evidence, or trivial, are left out.

    >>> segments(np.array([1, 1, 0], np.int8), np.ones(3, bool), np.array([1.0, 2, 3]), ("A", "B"))
    [('weak', 'A', 1.0, 2.0)]
    """
    same = []
    for value, run in groupby(range(len(grid)), key=lambda i: int(signed[i]) if usable[i] else 0):
        places = list(run)
        if value:
            better = names[0] if value > 0 else names[1]
            same.append((EVIDENCE[abs(value)], better, float(grid[places[0]]), float(grid[places[-1]])))
    return same


# ------------------------------------------------------------------------------------------ how often labels are false

Draw = Callable[[int, np.random.Generator], tuple[Reading, Reading]]


def rate_text(rate: float) -> str:
    """A simulated rate in percent, which is small rather than 0."""
    return percent(float(rate)) if rate >= 0.001 else "<0.1 %"


def false_label_rates(
    n_a: int,
    n_b: int | None = None,
    *,
    level: float = 0.8,
    band: str = "ld_highest_density",
    statistic: str | float = "median",
    direction: str | None = None,
    k: ArrayLike | None = None,
    portion: float = 0.5,
    from_k: float | None = None,
    n_draws: int = 50_000,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Simulate how often two independent random searches of the same law are labelled different.

    Parameters
    ----------
    n_a, n_b : int, >= 1
        Numbers of scores; `n_b` is `n_a` by default.
    level, band, statistic, from_k
        Of the curves, as in `lmemtest.tuning.curve`; a quantile, not the mean.
    direction : {"maximize", "minimize"}, optional
        Which end of the score is better; needed for a quantile other than the median.
    k : (m,) array of float, > 0, optional
        Budgets. Default: the whole numbers at which both bands are non-trivial.
    portion : float in [0, 1]
        Share of the budgets over which a label must hold; 0 means one budget is enough.
    n_draws : int, >= 100
        Simulated comparisons.
    rng : int, numpy.random.Generator or None
        Source of the draws.

    Returns
    -------
    Answer
        `rate`, shape (3,): the share of comparisons labelled weak or more, fair or more, strong, in either direction;
        `error`, its Monte-Carlo standard error; ``to_frame()`` has both. `n_draws`; `portion`; `points`, the budgets
        that count; `null`, what was simulated.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, the statistic is the mean, or no budget is non-trivial.

    Examples
    --------
    >>> rates = false_label_rates(48, rng=1, n_draws=20_000)
    >>> bool(0.10 < rates.rate[0] < 0.12), rates.points
    (True, 8)
    """
    n_a = check_positive_int(n_a, "n_a")
    n_b = n_a if n_b is None else check_positive_int(n_b, "n_b")
    no_mean = (
        "false_label_rates needs a quantile: the rates of mean curves depend on the law of the scores. "
        "tuning.compare simulates them from the scores at hand."
    )
    settings = check_rank_settings(direction, statistic, level, band, from_k, no_mean=no_mean)
    rates = rank_rates(n_a, n_b, settings, None if k is None else check_k(k), portion, n_draws, rng)
    if rates is None:
        raise ArgumentError(
            f"no k has two non-trivial bands with n_a = {n_a} and n_b = {n_b}, so nothing can be labelled. "
            "Use more scores, a lower level, or smaller k."
        )
    return rates


def rank_rates(
    n_a: int, n_b: int, settings: Settings, k: Array | None, portion: float, n_draws: int, rng: Any
) -> Answer | None:
    """Rates of false labels of so many scores; None if no budget has two non-trivial bands."""
    curves = rank_curve(n_a, settings), rank_curve(n_b, settings)
    grid = default_grid(*curves) if k is None else k
    usable = ~(curves[0].at(grid).trivial | curves[1].at(grid).trivial)
    if not usable.any():
        return None
    draw = draw_ranks(curves, [ranks_at(curve, trials_at(grid[usable], None)) for curve in curves])
    return count_labels(draw, 6 * int(usable.sum()), int(usable.sum()), portion, INDEPENDENT, n_draws, rng)


INDEPENDENT = "Two independent searches of one continuous law of scores, whatever the law."
SAME_IN_COST = (
    "Two independent searches with one curve in cost units, for every continuous law; mean costs as estimated."
)
RELABELLED = "The pooled scores, dealt out at random."
SWAPPED = "The scores, swapped at random within each configuration."


def count_labels(draw: Draw, width: int, points: int, portion: float, null: str, n_draws: int, rng: Any) -> Answer:
    """Label simulated comparisons; `width` numbers are drawn for each."""
    portion = check_portion(portion)
    n_draws = check_positive_int(n_draws, "n_draws", 100)
    generator = resolve_rng(rng)
    labelled, size = np.zeros(3), max(1, _CHUNK // width)
    for start in range(0, n_draws, size):
        a, b = draw(min(size, n_draws - start), generator)
        labelled += reaches(portions(signed_levels(a, b)), portion).any(axis=-1).sum(axis=0)
    rate = labelled / n_draws
    error = np.sqrt(rate * (1.0 - rate) / n_draws)
    facts = (
        f"Evidence of that strength or stronger, over {describe_portion(portion)} of {points} budgets, in either "
        "direction.",
        f"{null} {n_draws:,} draws.",
    )
    return Answer(
        question="tuning.false_label_rates",
        title="False labels where the curves are the same",
        tables={"rates": pd.DataFrame({"evidence": EVIDENCE[1:], "false_rate": rate, "error": error})},
        values={"rate": rate, "error": error, "n_draws": n_draws, "portion": portion, "points": points, "null": null},
        facts=facts,
        formats={"false_rate": rate_text, "error": ".4f"},
    )


def check_portion(portion: Any) -> float:
    """A portion in [0, 1], both ends included."""
    return check_number(portion, "portion", low=0, high=1, meaning="0 asks for one budget, 1 for all")


def describe_portion(portion: float) -> str:
    """A portion in words."""
    return "at least half" if portion == 0.5 else "any" if portion == 0.0 else f"at least {100.0 * portion:g} %"


# ---------------------------------------------------------------------------------------------------- budgets


def default_grid(a: TuningCurve, b: TuningCurve) -> Array:
    """The whole budgets that both curves reach, thinned out evenly if there are many."""
    first = np.ceil(max(1.0, a.from_k or 1.0))
    last = max(np.floor(min(reach_of(a), reach_of(b))), first)
    return np.unique(np.round(np.linspace(first, last, int(min(last - first + 1, _MOST_POINTS)))))


def reach_of(curve: TuningCurve) -> float:
    """The last k that says something: of a quantile curve where its band becomes trivial; n at most."""
    return float(curve.n_scores if np.isnan(curve.k_max) else min(curve.k_max, curve.n_scores))


# ---------------------------------------------------------------------------------------------------- draws


def rank_curve(n: int, settings: Settings) -> TuningCurve:
    """The curve of the scores 1, ..., n between 0 and n + 1: its values are the ranks that any curve reads."""
    return curve_of(np.arange(1.0, n + 1.0), settings, (0.0, n + 1.0))


def ranks_at(curve: TuningCurve, at: Reading) -> Index:
    """Ranks (3, m), from the worst score on, of pessimistic limit, estimate and optimistic limit of a `rank_curve`."""
    maximize = curve.direction == "maximize"
    worse, middle, better = map(curve.at, at)
    rows = [
        worse.band_low if maximize else worse.band_high,
        middle.estimate,
        better.band_high if maximize else better.band_low,
    ]
    ranks = np.array(rows).astype(np.intp)
    return ranks if maximize else curve.n_scores + 1 - ranks


def draw_ranks(curves: Sequence[TuningCurve], ranks: Sequence[Index], power: float = 1.0) -> Draw:
    """Draws of order statistics of uniforms, those of the second curve raised to a power."""
    sides = []
    for curve, wanted in zip(curves, ranks, strict=True):
        used, back = np.unique(wanted, return_inverse=True)
        # between the ranks, the order statistics are partial sums of n + 1 exponentials over the whole sum
        steps = np.diff(np.concatenate([[0], used, [curve.n_scores + 1]])).astype(float)
        sides.append((steps, back.reshape(wanted.shape)))

    def draw(size: int, rng: np.random.Generator) -> tuple[Reading, Reading]:
        readings = []
        for (steps, back), exponent in zip(sides, (1.0, power), strict=True):
            sums = np.cumsum(rng.standard_gamma(steps, size=(size, len(steps))), axis=1)
            drawn = (sums[:, :-1] / sums[:, -1:]) ** exponent
            readings.append((drawn[:, back[0]], drawn[:, back[1]], drawn[:, back[2]]))
        return readings[0], readings[1]

    return draw


def draw_relabelled(a: Array, b: Array, read: Any, *, paired: bool) -> Draw:
    """Draws of relabelled scores; `read` turns sorted rows of each into readings."""
    pooled = np.concatenate([a, b])

    def draw(size: int, rng: np.random.Generator) -> tuple[Reading, Reading]:
        if paired:
            turned = random_signs(len(a), size, rng) < 0.0
            rows = np.where(turned, b, a), np.where(turned, a, b)
        else:
            rows = tuple(np.split(dealt(pooled, size, rng), [len(a)], axis=1))
        return read[0](np.sort(rows[0], axis=1)), read[1](np.sort(rows[1], axis=1))

    return draw


def rank_reader(ranks: Index) -> Callable[[Array], Reading]:
    """Read order statistics off sorted rows."""
    return lambda rows: (rows[:, ranks[0] - 1], rows[:, ranks[1] - 1], rows[:, ranks[2] - 1])


def weight_reader(curve: TuningCurve, at: Reading) -> Callable[[Array], Reading]:
    """Read mean curves, which are weighted means of bounds and order statistics, off rows sorted from worst to best.

    The curve of scores that jump from 0 to 1 at one place gives the weight above that place.
    """
    n, (low, high) = curve.n_scores, curve.bounds
    bounds = (low, high) if curve.direction == "maximize" else (-high, -low)
    turned = replace(curve.settings, direction="maximize")
    steps = np.tri(n + 1, n, -1)[:, ::-1]  # from no score to all scores at the upper bound
    pessimistic, estimate, optimistic = at
    above = np.empty((3, n + 1, len(estimate)))
    for place, scores in enumerate(steps):
        step = curve_of(scores, turned, (0.0, 1.0), [1.0])
        above[0, place] = step.at(pessimistic).band_low
        above[1, place] = step.at(estimate).estimate
        above[2, place] = step.at(optimistic).band_high
    cumulative = np.concatenate([above, np.ones((3, 1, above.shape[2]))], axis=1)
    weights = np.diff(cumulative, axis=1, prepend=0.0)[:, ::-1]  # of the lower bound, the scores, the upper bound

    def read(rows: Array) -> Reading:
        ends = [np.full((len(rows), 1), end) for end in bounds]
        extended = np.concatenate([ends[0], rows, ends[1]], axis=1)
        return extended @ weights[0], extended @ weights[1], extended @ weights[2]

    return read
