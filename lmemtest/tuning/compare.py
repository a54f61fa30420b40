"""Two tuning curves compared: where which is better, on what evidence, and how often such evidence is false."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmemtest._result import result
from lmemtest._table import ResultTable
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.tuning._checks import check_k, check_paired, check_scores, check_two_names, name_of
from lmemtest.tuning._settings import CurveResult, Settings, check_settings
from lmemtest.tuning._words import PAIRED_ADVICE, cost_facts, span
from lmemtest.tuning.costs import COST_SHARE, MeanCost, mean_cost
from lmemtest.tuning.curve import TuningCurve, curve_of, drawing_grid
from lmemtest.tuning.evidence import (
    EVIDENCE,
    INDEPENDENT,
    RELABELLED,
    SAME_IN_COST,
    SWAPPED,
    FalseLabelRates,
    Limits,
    Reading,
    Segment,
    check_portion,
    count_labels,
    default_grid,
    describe_portion,
    draw_ranks,
    draw_relabelled,
    portions,
    rank_curve,
    rank_reader,
    ranks_at,
    rate_text,
    reach_of,
    segments,
    signed_levels,
    verdict,
    weight_reader,
)
from lmemtest.words import percent

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

_COST_POINTS = 64  # of a default grid of costs
# Rank correlation, in standard deviations of that of independent scores, from which equal rows look like pairs.
_LOOKS_PAIRED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedCurve:
    """One of the curves on the common grid.

    Attributes
    ----------
    name : str
        What it is called.
    n_scores : int
        Scores behind it.
    k : (m,) float
        Trials that each budget pays for on average.
    band_low, estimate, band_high : (m,) float
        Curve and band, in units of the score; the band includes the uncertainty of the mean cost.
    trivial : (m,) bool
        Whether a limit says nothing.
    cost : MeanCost or None
        Mean cost of a trial; None if budgets are trials.
    curve : TuningCurve
        What was read.
    """

    name: str
    n_scores: int
    k: FloatArray
    band_low: FloatArray
    estimate: FloatArray
    band_high: FloatArray
    trivial: BoolArray
    cost: MeanCost | None
    curve: TuningCurve = field(repr=False)

    def drawn(self, first: float, last: float) -> tuple[FloatArray, ComparedCurve]:
        """Budgets from `first` to `last` and the curve at them, so close that a line shows what lies between."""
        grid = drawn_grid(self.curve, self.cost, first, last)
        return grid, on_grid(self.name, self.curve, side_limits(grid, self.cost), self.cost)

    def reading(self) -> Reading:
        """The curve turned so that larger is better."""
        if self.curve.direction == "maximize":
            return Reading(self.band_low, self.estimate, self.band_high)
        return Reading(-self.band_high, -self.estimate, -self.band_low)


@result
class CurveComparison(CurveResult):
    """Two tuning curves, and the evidence that one is better.

    Attributes
    ----------
    settings : Settings
        Direction, statistic, level, band and from_k of the curves; each is an attribute of the comparison too. The
        level is that of each band by itself, over all budgets, cost included.
    label : {"none", "weak", "fair", "strong"}
        Strongest evidence over the required portion of the budgets at which both bands say something.
    better : str or None
        The curve that the label favours; None for no evidence, or if both are favoured, each at other budgets.
    observed : float
        Portion of these budgets with at least that evidence.
    portion : float
        Portion that was required.
    segments : tuple of Segment
        Neighbouring budgets with the same evidence: evidence, better, start, stop.
    grid : (m,) float
        Budgets: trials, or costs if costs were given.
    axis : {"trials", "cost"}
        What the budgets are.
    a, b : ComparedCurve
        The curves on the grid.
    signed : (m,) int
        Evidence at each budget: 1, 2, 3 for weak, fair, strong in favour of `a`, negative for `b`; 0 where there is
        none or a band is trivial.
    portions : (3, 2) float
        Portion of the usable budgets with at least weak, fair, strong evidence (rows) for a and b (columns).
    rates : FalseLabelRates or None
        How often such labels are false; None if they are not known.
    paired : bool
        Whether both come from the same configurations.
    notes : tuple of str
        What a reader must know.
    """

    settings: Settings
    label: str
    better: str | None
    observed: float
    portion: float
    segments: tuple[Segment, ...]
    grid: FloatArray
    axis: str
    a: ComparedCurve
    b: ComparedCurve
    signed: NDArray[np.int8]
    portions: FloatArray
    rates: FalseLabelRates | None
    paired: bool
    notes: tuple[str, ...] = ()

    parts = {"budgets": "_budgets", "evidence": "_evidence"}
    figure = "evidence_plot"

    @property
    def title(self) -> str:
        """What was compared."""
        a, b = self.a, self.b
        what = f"{name_of(self.statistic)} of the best, {self.direction}"
        return f"Evidence between {a.name} (n = {a.n_scores}) and {b.name} (n = {b.n_scores}): {what}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What a trial costs."""
        return cost_facts((self.a.name, self.b.name), (self.a.cost, self.b.cost))

    @property
    def usable(self) -> BoolArray:
        """Budgets at which both bands say something, shape (m,)."""
        return ~(self.a.trivial | self.b.trivial)

    def _budgets(self) -> pd.DataFrame:
        """One row per budget: trials or cost, k_a, estimate_a, band_low_a, band_high_a, the same for b, evidence,
        better, trivial.
        """
        import pandas as pd

        columns: dict[str, Any] = {self.axis: self.grid}
        for letter, curve in (("a", self.a), ("b", self.b)):
            for name in ("k", "estimate", "band_low", "band_high"):
                columns[f"{name}_{letter}"] = getattr(curve, name)
        columns["evidence"] = [EVIDENCE[abs(value)] for value in self.signed]
        columns["better"] = [self.a.name if v > 0 else self.b.name if v < 0 else "" for v in self.signed]
        columns["trivial"] = ~self.usable
        return pd.DataFrame(columns)

    def _evidence(self) -> pd.DataFrame:
        """One row per strength: evidence, portion_a, portion_b, false_rate (NaN if not known)."""
        import pandas as pd

        rate = np.full(3, np.nan) if self.rates is None else self.rates.rate
        columns = {"portion_a": self.portions[:, 0], "portion_b": self.portions[:, 1], "false_rate": rate}
        return pd.DataFrame({"evidence": EVIDENCE[1:], **columns})

    def to_table(self) -> ResultTable:
        """Portions of the budgets by strength of the evidence."""
        a, b = f"for {self.a.name}", f"for {self.b.name}"
        frame = self._evidence().set_axis(["evidence", a, b, "false labels"], axis=1)
        formats = {a: percent, b: percent, "false labels": rate_text}
        return ResultTable(self.title, frame, (*self.facts, *self.notes), formats)

    def sentences(self) -> tuple[str, ...]:
        """The label in words, with the price of such a label."""
        if self.rates is None:
            return (self._label_sentence(),)
        weak, fair, strong = (rate_text(rate) for rate in self.rates.rate)
        return (
            self._label_sentence(),
            f"If the curves were the same, {describe_portion(self.portion)} of these budgets would show at least weak "
            f"evidence in {weak}, fair in {fair} and strong in {strong} of the comparisons.",
        )

    def _label_sentence(self) -> str:
        count = int(self.usable.sum())
        if not count:
            return "At no budget do both bands say something, so there is no label. Use more trials."
        among = f"of the {count} budgets at which both bands say something"
        if self.label == "none":
            return f"No evidence over {describe_portion(self.portion)} {among}."
        if self.better is None:
            return f"{self.label.capitalize()} evidence both ways: {self._where(None)}."
        share = f"{percent(self.observed)} {among}"
        return f"{self.label.capitalize()} evidence that {self.better} is better {self._where(self.better)} ({share})."

    def _where(self, better: str | None) -> str:
        """The budgets with at least the labelled evidence."""
        least, names = EVIDENCE.index(self.label), (self.a.name, self.b.name)
        signs = [1 if better == self.a.name else -1] if better is not None else [1, -1]
        parts = []
        for sign in signs:
            enough = np.where(sign * self.signed >= least, sign, 0).astype(np.int8)
            runs = segments(enough, self.usable, self.grid, names)
            spans = " and ".join(span(run.start, run.stop) for run in runs)
            spans = f"for {spans} trials" if self.axis == "trials" else f"at a cost of {spans}"
            parts.append(spans if better is not None else f"{runs[0].better} {spans}")
        return ", ".join(parts)


@one_blas_thread()
def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    names: tuple[str, str] = ("a", "b"),
    grid: ArrayLike | None = None,
    statistic: str | float = "median",
    level: float = 0.8,
    band: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    cost_a: ArrayLike | None = None,
    cost_b: ArrayLike | None = None,
    portion: float = 0.5,
    paired: bool = False,
    n_draws: int = 20_000,
    rng: int | np.random.Generator | None = None,
) -> CurveComparison:
    """Compare the tuning curves of two random searches, and label the evidence.

    Parameters
    ----------
    a, b : (n,) array of float
        Scores of independent configurations; a failed run is a worst score.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    names : (str, str)
        What to call them.
    grid : (m,) array of float, > 0, optional
        Budgets: numbers of trials, or costs if costs are given. Default: every whole number of trials, or 64 costs,
        from one trial (of the dearer) to where a band becomes trivial.
    statistic, level, band, bounds, from_k
        Of the curves, as in `lmemtest.tuning.curve`; the level is that of each band by itself, in (0, 1).
    cost_a, cost_b : float or (n,) array of float, optional
        Cost of a trial in one unit (seconds, epochs, operations): its mean, taken as known, or that of each trial,
        whose mean is estimated. Give both or none.
    portion : float in [0, 1]
        Share of the non-trivial budgets over which a label must hold; 0 means one budget is enough.
    paired : bool
        Whether ``a[i]`` and ``b[i]`` come from the same configuration.
    n_draws : int
        Simulated comparisons for the false-label rates; 0 leaves them out.
    rng : int, numpy.random.Generator or None
        Source of the simulation.

    Returns
    -------
    CurveComparison
        ``label``, ``better``, ``rates``; ``to_frame()`` has one row per budget, ``to_frame("evidence")`` one per
        strength.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or one cost is missing.
    DataError
        If scores or costs are missing.

    Notes
    -----
    At a budget the evidence is weak if one band excludes the other's estimate, fair if both do, strong if the bands
    are disjoint; the label is the strongest evidence over at least `portion` of the budgets where neither band is
    trivial. The labels are a heuristic, not a test, which is why their rates of error are simulated and printed.

    With costs a budget c pays for c / m trials on average, m being the mean cost. If m is estimated, 10 % of the error
    probability goes to its interval and the rest to the band; the pessimistic limit is read at the trials that the
    highest mean would allow, the optimistic limit at those of the lowest. The two are simultaneous, at least at the
    level asked for (Bonferroni), whatever the correlation of cost and score.

    References
    ----------
    Lourie, Cho & He (2024), Show your work with confidence, section 2, doi:10.18653/v1/2024.naacl-long.189;
    Minka (2002), Judging significance from error bars

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> better, worse = rng.normal(0.8, 0.05, 48), rng.normal(0.7, 0.05, 48)
    >>> found = compare(better, worse, direction="maximize", names=("new", "old"), rng=1)
    >>> found.label, found.better, found.observed
    ('strong', 'new', 1.0)
    """
    portion, names, n_draws = check_portion(portion), check_two_names(names), check_positive_int(n_draws, "n_draws", 0)
    resolve_rng(rng)
    settings = check_settings(direction, statistic, level, band, from_k)
    searches = make_searches(a, b, cost_a, cost_b, grid, paired, settings, bounds)
    first, second = searches.compared(names)
    usable = ~(first.trivial | second.trivial)
    signed = np.where(usable, signed_levels(first.reading(), second.reading()), 0).astype(np.int8)
    shares = portions(signed[usable]) if usable.any() else np.zeros((3, 2))
    label, sign, observed = verdict(shares, portion)
    asked = bool(n_draws) and bool(usable.any())
    rates = searches.simulated_rates(usable, portion, n_draws, rng) if asked else None
    notes = []
    if searches.paired:
        notes.append(PAIRED_ADVICE)
    elif looks_paired(*searches.scores):
        notes.append("Equal rows go together as scores of the same configurations do. If they are, say paired=True.")
    if asked and rates is None:
        notes.append("How often such a label is false is not known for paired searches and means in cost units.")
    return CurveComparison(
        settings=settings,
        label=label,
        better=names[0] if sign > 0 else names[1] if sign < 0 else None,
        observed=observed,
        portion=portion,
        segments=tuple(segments(signed, usable, searches.grid, names)),
        grid=searches.grid,
        axis="trials" if first.cost is None else "cost",
        a=first,
        b=second,
        signed=signed,
        portions=shares,
        rates=rates,
        paired=searches.paired,
        notes=tuple(notes),
    )


# ---------------------------------------------------------------------------------------------------- two searches


class Searches(NamedTuple):
    """Two searches as they are compared; pairs belong to a and b."""

    scores: tuple[FloatArray, FloatArray]
    curves: list[TuningCurve]  # each at its own level: a band leaves room for the error of a mean cost
    costs: tuple[MeanCost | None, MeanCost | None]
    grid: FloatArray
    sides: list[Limits]
    paired: bool

    def compared(self, names: tuple[str, str]) -> list[ComparedCurve]:
        """Both curves on the common grid."""
        return [on_grid(*side) for side in zip(names, self.curves, self.sides, self.costs, strict=True)]

    def simulated_rates(
        self, usable: BoolArray, portion: float, n_draws: int, rng: int | np.random.Generator | None
    ) -> FalseLabelRates | None:
        """Simulated rates of false labels; None where no null can be simulated."""
        points, mean = int(usable.sum()), self.curves[0].statistic == "mean"
        first, second = self.costs
        if (self.paired or mean) and first is not None:
            return None
        if not (self.paired or mean):
            ratio = 1.0 if first is None or second is None else first.mean / second.mean
            null, width = INDEPENDENT if first is None else SAME_IN_COST, 6 * points
            ranks = self._ranks(usable)
            draw = draw_ranks(ranks[0], ranks[1], self.curves[0].n_scores, self.curves[1].n_scores, ratio)
        else:
            null, width = SWAPPED if self.paired else RELABELLED, 2 * sum(map(len, self.scores))
            read = self._weights(usable) if mean else [rank_reader(ranks) for ranks in self._ranks(usable)]
            sign = self.curves[0].settings.sign
            draw = draw_relabelled(sign * self.scores[0], sign * self.scores[1], read, paired=self.paired)
        return count_labels(draw, width, points, portion, null, n_draws, rng)

    def _ranks(self, usable: BoolArray) -> list[NDArray[np.intp]]:
        return [
            ranks_at(rank_curve(curve.n_scores, curve.settings), side)[:, usable]
            for curve, side in zip(self.curves, self.sides, strict=True)
        ]

    def _weights(self, usable: BoolArray) -> list[Any]:
        readers = []
        for curve, side in zip(self.curves, self.sides, strict=True):
            low, high = curve.bounds
            ends = (low, high) if curve.direction == "maximize" else (-high, -low)
            readers.append(weight_reader(curve.n_scores, side, usable, ends, curve.settings))
        return readers


def make_searches(
    a: Any,
    b: Any,
    cost_a: Any,
    cost_b: Any,
    grid: Any,
    paired: bool,
    settings: Settings,
    bounds: tuple[float, float] | None,
) -> Searches:
    """Two searches from the arguments of a comparison."""
    scores = check_scores(a, "a"), check_scores(b, "b")
    paired = check_paired(paired, scores)
    costs, errors = check_costs(cost_a, cost_b, scores, 1.0 - settings.level)
    curves = [curve_of(y, replace(settings, level=1.0 - left), bounds) for y, left in zip(scores, errors, strict=True)]
    budgets = _grid(grid, curves, costs)
    return Searches(scores, curves, costs, budgets, [side_limits(budgets, cost) for cost in costs], paired)


def check_costs(
    cost_a: Any, cost_b: Any, scores: tuple[FloatArray, FloatArray], error: float
) -> tuple[tuple[MeanCost | None, MeanCost | None], tuple[float, float]]:
    """Mean costs, and the error probability that is left to each band."""
    if (cost_a is None) != (cost_b is None):
        missing = "cost_a" if cost_a is None else "cost_b"
        raise ArgumentError(f"{missing} is missing: a common budget needs the cost of both, in the same unit.")
    if cost_a is None:
        return (None, None), (error, error)
    costs = tuple(
        mean_cost(cost, len(y), level=1.0 - COST_SHARE * error, name=name)
        for cost, y, name in ((cost_a, scores[0], "cost_a"), (cost_b, scores[1], "cost_b"))
    )
    left = tuple(error if cost.known else (1.0 - COST_SHARE) * error for cost in costs)
    return (costs[0], costs[1]), (left[0], left[1])


def side_limits(grid: FloatArray, cost: MeanCost | None) -> Limits:
    """Trials at which the limits of a curve are read for each budget."""
    if cost is None:
        return Limits(grid, grid, grid)
    return Limits(grid / cost.ci_high, grid / cost.mean, grid / cost.ci_low)


def _grid(grid: Any, curves: list[TuningCurve], costs: tuple[MeanCost | None, MeanCost | None]) -> FloatArray:
    if grid is not None:
        return np.sort(check_k(grid, "grid"))
    first, second = costs
    if first is None or second is None:
        return default_grid(*curves)
    start = max(cost.ci_high * max(1.0, curve.from_k or 1.0) for cost, curve in zip(costs, curves, strict=True) if cost)
    reach = min(cost.ci_low * reach_of(curve) for cost, curve in zip((first, second), curves, strict=True))
    reach *= 1.0 - 1e-9  # the division by the cost must not round to beyond the last k
    return np.linspace(start, reach, _COST_POINTS) if reach > start else np.array([start])


def on_grid(name: str, curve: TuningCurve, at: Limits, cost: MeanCost | None) -> ComparedCurve:
    """A curve read at budgets."""
    centre = curve.at(at.estimate)
    if cost is None or cost.known:
        low, high = centre, centre
    else:
        worse, better = curve.at(at.pessimistic), curve.at(at.optimistic)
        low, high = (worse, better) if curve.direction == "maximize" else (better, worse)
    return ComparedCurve(
        name=name,
        n_scores=curve.n_scores,
        k=at.estimate,
        band_low=low.band_low,
        estimate=centre.estimate,
        band_high=high.band_high,
        trivial=low.low_trivial | high.high_trivial,
        cost=cost,
        curve=curve,
    )


def drawn_grid(curve: TuningCurve, cost: MeanCost | None, first: float, last: float) -> FloatArray:
    """Budgets at which to draw a curve: its limits jump at other costs than its estimate."""
    return drawing_grid(curve, first, last, (1.0,) if cost is None else (cost.ci_low, cost.mean, cost.ci_high))


def looks_paired(a: FloatArray, b: FloatArray) -> bool:
    """Whether equal rows are correlated more than independent searches can be: ranks, five standard deviations."""
    if len(a) != len(b) or len(a) < 10:
        return False
    first, second = _ranks_of(a), _ranks_of(b)
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return False
    return float(np.corrcoef(first, second)[0, 1] * np.sqrt(len(a) - 1)) > _LOOKS_PAIRED


def _ranks_of(y: FloatArray) -> FloatArray:
    """Ranks, the same for equal scores: those in the order of the rows would make ties look like pairs."""
    _, place, count = np.unique(y, return_inverse=True, return_counts=True)
    mid: FloatArray = np.cumsum(count) - 0.5 * count
    return mid[place]
