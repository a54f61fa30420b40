"""Two tuning curves compared: where which is better, on what evidence, and how often such evidence is false."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_positive_int, resolve_rng
from lmemtest.tuning._arguments import name_of
from lmemtest.tuning._setting import Setting, check_names, curve_options, make_setting, side_limits, simulated_rates
from lmemtest.tuning._words import PAIRED_ADVICE, cost_notes
from lmemtest.tuning.costs import MeanCost
from lmemtest.tuning.curves import TuningCurve, drawing_grid
from lmemtest.tuning.evidence import LEVELS, Reading, Segment, portions, segments, signed_levels, verdict
from lmemtest.tuning.false_labels import FalseLabelRates, Limits, check_portion, describe_portion, format_rate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

# Rank correlation, in standard deviations of that of independent scores, from which equal rows look like pairs.
_LOOKS_PAIRED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedCurve:
    """One of the curves on the common grid.

    Attributes
    ----------
    name : str
        What it is called.
    n : int
        Scores behind it.
    k : (m,) float
        Trials that each budget pays for on average.
    lower, estimate, upper : (m,) float
        Curve and band, in units of the score; the band includes the uncertainty of the mean cost.
    trivial : (m,) bool
        Whether a limit says nothing.
    cost : MeanCost or None
        Mean cost of a trial; None if budgets are trials.
    curve : TuningCurve
        What was read.
    """

    name: str
    n: int
    k: FloatArray
    lower: FloatArray
    estimate: FloatArray
    upper: FloatArray
    trivial: BoolArray
    cost: MeanCost | None
    curve: TuningCurve = field(repr=False)

    def drawn(self, first: float, last: float) -> tuple[FloatArray, ComparedCurve]:
        """Budgets from `first` to `last` and the curve at them, so close that a line shows what lies between."""
        grid = drawn_grid(self.curve, self.cost, first, last)
        return grid, on_grid(self.name, self.curve, side_limits(grid, self.cost), self.cost)


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class CurveComparison(Tabular):
    """Two tuning curves, and the evidence that one is better.

    Attributes
    ----------
    label : {"none", "weak", "fair", "strong"}
        Strongest evidence over the required portion of the budgets at which both bands say something.
    better : str or None
        The curve that the label favours; None for no evidence, or if both are favoured, each at other budgets.
    observed : float
        Portion of these budgets with at least that evidence.
    portion : float
        Portion that was required.
    segments : tuple of Segment
        Neighbouring budgets with the same evidence: level, better, start, stop.
    grid : (m,) float
        Budgets: trials, or costs if costs were given.
    unit : str
        "trials" or "cost".
    a, b : ComparedCurve
        The curves on the grid.
    signed : (m,) int
        Evidence at each budget: 1, 2, 3 for weak, fair, strong in favour of `a`, negative for `b`; 0 where there is
        none or a band is trivial.
    portions : (3, 2) float
        Portion of the usable budgets with at least weak, fair, strong evidence (rows) for a and b (columns).
    rates : FalseLabelRates or None
        How often such labels are false; None if they are not known.
    direction, statistic, method, confidence
        Of the curves. The confidence is that of each band by itself, over all budgets, cost included.
    paired : bool
        Whether both come from the same configurations.
    notes : tuple of str
        What a reader must know.
    """

    label: str
    better: str | None
    observed: float
    portion: float
    segments: tuple[Segment, ...]
    grid: FloatArray
    unit: str
    a: ComparedCurve
    b: ComparedCurve
    signed: NDArray[np.int8]
    portions: FloatArray
    rates: FalseLabelRates | None
    direction: str
    statistic: str | float
    method: str
    confidence: float
    paired: bool
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> BoolArray:
        """Budgets at which both bands say something, shape (m,)."""
        return ~(self.a.trivial | self.b.trivial)

    def to_frame(self) -> pd.DataFrame:
        """One row per budget: trials or cost, k_a, lower_a, estimate_a, upper_a, the same for b, evidence, better,
        trivial.
        """
        import pandas as pd

        columns: dict[str, Any] = {self.unit: self.grid}
        for letter, curve in (("a", self.a), ("b", self.b)):
            for name in ("k", "lower", "estimate", "upper"):
                columns[f"{name}_{letter}"] = getattr(curve, name)
        columns["evidence"] = [LEVELS[abs(value)] for value in self.signed]
        columns["better"] = [self.a.name if v > 0 else self.b.name if v < 0 else "" for v in self.signed]
        columns["trivial"] = ~self.usable
        return pd.DataFrame(columns)

    def evidence_frame(self) -> pd.DataFrame:
        """One row per level: evidence, portion_a, portion_b, false_rate (NaN if not known)."""
        import pandas as pd

        rate = np.full(3, np.nan) if self.rates is None else self.rates.rate
        return pd.DataFrame(
            {
                "evidence": LEVELS[1:],
                "portion_a": self.portions[:, 0],
                "portion_b": self.portions[:, 1],
                "false_rate": rate,
            }
        )

    def sentences(self) -> tuple[str, ...]:
        """The label in words, with the price of such a label."""
        return (self._label_sentence(), *self._rate_sentence())

    def to_table(self) -> ResultTable:
        """Portions of the budgets by level as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        what = f"{name_of(self.statistic)} of the best, {self.direction}"
        names = {"portion_a": f"for {self.a.name}", "portion_b": f"for {self.b.name}", "false_rate": "false labels"}
        frame = self.evidence_frame().rename(columns=names)
        share = {f"for {curve.name}": _percent for curve in (self.a, self.b)}
        return ResultTable(
            title=f"Evidence between {self.a.name} (n = {self.a.n}) and {self.b.name} (n = {self.b.n}): {what}",
            frame=frame,
            notes=(*self.sentences(), *self.notes),
            formats={**share, "false labels": format_rate},
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
        share = f"{_percent(self.observed)} {among}"
        return f"{self.label.capitalize()} evidence that {self.better} is better {self._where(self.better)} ({share})."

    def _where(self, better: str | None) -> str:
        """The budgets with at least the labelled evidence."""
        least = LEVELS.index(self.label)
        signs = [1 if better == self.a.name else -1] if better is not None else [1, -1]
        parts = []
        for sign in signs:
            runs = segments(
                np.where(sign * self.signed >= least, sign, 0).astype(np.int8), self.usable, self.grid, self._names()
            )
            spans = " and ".join(_span(run) for run in runs)
            spans = f"for {spans} trials" if self.unit == "trials" else f"at a cost of {spans}"
            parts.append(spans if better is not None else f"{runs[0].better} {spans}")
        return ", ".join(parts)

    def _names(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    def _rate_sentence(self) -> tuple[str, ...]:
        if self.rates is None:
            return ()
        weak, fair, strong = (format_rate(rate) for rate in self.rates.rate)
        return (
            f"If the curves were the same, {describe_portion(self.portion)} of these budgets would show at least weak "
            f"evidence in {weak}, fair in {fair} and strong in {strong} of the comparisons.",
        )


@one_blas_thread()
def compare_curves(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    names: tuple[str, str] = ("a", "b"),
    grid: ArrayLike | None = None,
    statistic: str | float = "median",
    confidence: float = 0.8,
    method: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    cost_a: ArrayLike | None = None,
    cost_b: ArrayLike | None = None,
    portion: float = 0.5,
    paired: bool = False,
    n_sim: int = 20_000,
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
    statistic, confidence, method, bounds, from_k
        Of the curves, as in `tuning_curve`; the confidence is that of each band by itself, in (0, 1).
    cost_a, cost_b : float or (n,) array of float, optional
        Cost of a trial in one unit (seconds, epochs, operations): its mean, taken as known, or that of each trial,
        whose mean is estimated. Give both or none.
    portion : float in [0, 1]
        Share of the non-trivial budgets that a label must hold for; 0 means one budget is enough.
    paired : bool
        Whether ``a[i]`` and ``b[i]`` come from the same configuration.
    n_sim : int
        Simulated comparisons for the false-label rates; 0 leaves them out.
    rng : int, numpy.random.Generator or None
        Source of the simulation.

    Returns
    -------
    CurveComparison
        ``label``, ``better``, ``rates``; ``to_frame()`` has one row per budget, ``evidence_frame()`` one per level.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or one cost is missing.
    DataError
        If scores or costs are missing.

    Notes
    -----
    At a budget the evidence is weak if one band excludes the other's estimate, fair if both do, strong if the bands
    are disjoint; the label is the strongest level over at least `portion` of the budgets where neither band is
    trivial. The labels are a heuristic, not a test, which is why their rates of error are simulated and printed.

    With costs a budget c pays for c / m trials on average, m being the mean cost. If m is estimated, 10 % of the error
    probability goes to its interval and the rest to the band; the pessimistic limit is read at the trials that the
    highest mean would allow, the optimistic limit at those of the lowest. Both hold together with at least the
    confidence asked for (Bonferroni), whatever the correlation of cost and score.

    References
    ----------
    Lourie, Cho & He (2024), Show your work with confidence, section 2, doi:10.18653/v1/2024.naacl-long.189;
    Minka (2002), Judging significance from error bars

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> better, worse = rng.normal(0.8, 0.05, 48), rng.normal(0.7, 0.05, 48)
    >>> found = compare_curves(better, worse, direction="maximize", names=("new", "old"), rng=1)
    >>> found.label, found.better, found.observed
    ('strong', 'new', 1.0)
    """
    portion, names, n_sim = check_portion(portion), check_names(names), check_positive_int(n_sim, "n_sim", 0)
    resolve_rng(rng)
    setting = make_setting(
        a, b, cost_a, cost_b, grid, paired, direction, bounds, curve_options(statistic, confidence, method, from_k)
    )
    budgets = setting.grid
    compared = [on_grid(*side) for side in zip(names, setting.curves, setting.sides, setting.costs, strict=True)]
    usable = ~(compared[0].trivial | compared[1].trivial)
    levels = signed_levels(_turned(compared[0], direction), _turned(compared[1], direction))
    signed = np.where(usable, levels, 0).astype(np.int8)
    shares = portions(signed[usable]) if usable.any() else np.zeros((3, 2))
    label, sign, observed = verdict(shares, portion)
    rates = simulated_rates(setting, usable, portion, n_sim, rng) if n_sim and usable.any() else None
    notes = _notes(setting, names)
    if n_sim and usable.any() and rates is None:
        notes = (*notes, "How often such a label is false is not known for paired searches and means in cost units.")
    return CurveComparison(
        label=label,
        better=names[0] if sign > 0 else names[1] if sign < 0 else None,
        observed=observed,
        portion=portion,
        segments=tuple(segments(signed, usable, budgets, names)),
        grid=budgets,
        unit="trials" if compared[0].cost is None else "cost",
        a=compared[0],
        b=compared[1],
        signed=signed,
        portions=shares,
        rates=rates,
        direction=direction,
        statistic=setting.curves[0].statistic,
        method=method,
        confidence=confidence,
        paired=setting.paired,
        notes=notes,
    )


def on_grid(name: str, curve: TuningCurve, at: Limits, cost: MeanCost | None) -> ComparedCurve:
    centre = curve.at(at.estimate)
    if cost is None or cost.known:
        low, high = centre, centre
    else:
        worse, better = curve.at(at.pessimistic), curve.at(at.optimistic)
        low, high = (worse, better) if curve.direction == "maximize" else (better, worse)
    return ComparedCurve(
        name=name,
        n=curve.n,
        k=at.estimate,
        lower=low.lower,
        estimate=centre.estimate,
        upper=high.upper,
        trivial=low.lower_trivial | high.upper_trivial,
        cost=cost,
        curve=curve,
    )


def drawn_grid(curve: TuningCurve, cost: MeanCost | None, first: float, last: float) -> FloatArray:
    """Budgets at which to draw a curve: its limits jump at other costs than its estimate."""
    return drawing_grid(curve, first, last, (1.0,) if cost is None else (cost.low, cost.mean, cost.high))


def _turned(curve: ComparedCurve, direction: str) -> Reading:
    if direction == "maximize":
        return Reading(curve.lower, curve.estimate, curve.upper)
    return Reading(-curve.upper, -curve.estimate, -curve.lower)


# ---------------------------------------------------------------------------------------------------- words


def _notes(setting: Setting, names: tuple[str, str]) -> tuple[str, ...]:
    notes = cost_notes(names, setting.costs)
    if setting.paired:
        return (*notes, PAIRED_ADVICE)
    if looks_paired(*setting.scores):
        notes = (
            *notes,
            "Equal rows go together as scores of the same configurations do. If they are, say paired=True.",
        )
    return notes


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


def _percent(share: float) -> str:
    return f"{written(100.0 * share, '.0f')} %"


def _span(run: Segment) -> str:
    return (
        written(run.start, ".4g")
        if run.start == run.stop
        else f"{written(run.start, '.4g')} to {written(run.stop, '.4g')}"
    )
