"""Two tuning curves compared: where which is better, on what evidence, and how often such evidence is false."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.result import result
from lmemtest.core.table import ResultTable
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_positive_int, resolve_rng
from lmemtest.core.words import percent, span
from lmemtest.tuning import evidence
from lmemtest.tuning._checks import check_k, name_of
from lmemtest.tuning._settings import CurveResult, Settings, check_settings
from lmemtest.tuning.costs import BudgetCurve, MeanCost, Searches, check_searches, read_at, trials_at
from lmemtest.tuning.curve import TuningCurve, curve_of
from lmemtest.tuning.evidence import EVIDENCE, FalseLabelRates, Segment, describe_portion, rate_text

_COST_POINTS = 64  # of a default grid of costs
# Rank correlation, in standard deviations of that of independent scores, from which equal rows look like pairs.
_LOOKS_PAIRED = 5.0


@result
class CurveComparison(CurveResult):
    """Two tuning curves, and the evidence that one is better.

    Attributes
    ----------
    settings : Settings
        Direction, statistic, level, band and from_k of the curves; each is an attribute of the comparison too. The
        level is that of each band by itself, over all budgets, cost included.
    label : {"none", "weak", "fair", "strong"}
        Strongest evidence over the required portion of the budgets at which both bands are informative.
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
    a, b : BudgetCurve
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
    grid: Array
    axis: str
    a: BudgetCurve
    b: BudgetCurve
    signed: NDArray[np.int8]
    portions: Array
    rates: FalseLabelRates | None
    paired: bool
    notes: tuple[str, ...] = ()

    parts = {"budgets": "_budgets", "evidence": "_evidence"}
    figure = "tuning_compare_plot"

    @property
    def title(self) -> str:
        a, b = self.a, self.b
        what = f"{name_of(self.statistic)} of the best, {self.direction}"
        return f"Evidence between {a.name} (n = {a.n_scores}) and {b.name} (n = {b.n_scores}): {what}"

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(side.cost.fact(side.name) for side in (self.a, self.b) if side.cost is not None)

    @property
    def usable(self) -> Mask:
        """Budgets at which both bands are informative, shape (m,)."""
        return ~(self.a.trivial | self.b.trivial)

    def _budgets(self) -> pd.DataFrame:
        """One row per budget: trials or cost, k_a, estimate_a, band_low_a, band_high_a, the same for b, evidence,
        better, trivial.
        """
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
            return "At no budget are both bands informative, so there is no label. Use more trials."
        among = f"of the {count} budgets at which both bands are informative"
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
            runs = evidence.segments(enough, self.usable, self.grid, names)
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
    portion, n_draws = evidence.check_portion(portion), check_positive_int(n_draws, "n_draws", 0)
    resolve_rng(rng)
    settings = check_settings(direction, statistic, level, band, from_k)
    error = 1.0 - settings.level
    searches = check_searches(a, b, names, cost_a, cost_b, paired, error=error)
    return compared(searches, settings, bounds, grid, portion, n_draws, rng)


def compared(
    searches: Searches, settings: Settings, bounds: Any, grid: Any, portion: float, n_draws: int = 0, rng: Any = None
) -> CurveComparison:
    """The comparison of two checked searches with curves of checked settings."""
    curves = [
        curve_of(scores, replace(settings, level=level), bounds)  # a band leaves room for the error of a mean cost
        for scores, level in zip(searches.scores, searches.levels, strict=True)
    ]
    budgets = _default_grid(curves, searches.costs) if grid is None else np.sort(check_k(grid, "grid"))
    first, second = (
        BudgetCurve(name=name, **read_at(curve, cost, budgets))
        for name, curve, cost in zip(searches.names, curves, searches.costs, strict=True)
    )
    usable = ~(first.trivial | second.trivial)
    signed = np.where(usable, evidence.signed_levels(first.reading(), second.reading()), 0).astype(np.int8)
    shares = evidence.portions(signed[usable]) if usable.any() else np.zeros((3, 2))
    label, sign, observed = evidence.verdict(shares, portion)
    asked = bool(n_draws) and bool(usable.any())
    rates = _simulated_rates(searches, curves, budgets[usable], portion, n_draws, rng) if asked else None
    notes = [*searches.notes]
    if not searches.paired and looks_paired(*searches.scores):
        notes.append(
            "Equal rows are correlated as scores of the same configurations are. If they are pairs, set paired=True."
        )
    if asked and rates is None:
        notes.append("How often such a label is false is not known for paired searches and means in cost units.")
    return CurveComparison(
        settings=settings,
        label=label,
        better=searches.names[0] if sign > 0 else searches.names[1] if sign < 0 else None,
        observed=observed,
        portion=portion,
        segments=tuple(evidence.segments(signed, usable, budgets, searches.names)),
        grid=budgets,
        axis=searches.axis,
        a=first,
        b=second,
        signed=signed,
        portions=shares,
        rates=rates,
        paired=searches.paired,
        notes=tuple(notes),
    )


def _simulated_rates(
    searches: Searches, curves: list[TuningCurve], grid: Array, portion: float, n_draws: int, rng: Any
) -> FalseLabelRates | None:
    """Rates of false labels over the budgets that count; None where no null can be simulated."""
    mean, (first, second) = curves[0].statistic == "mean", searches.costs
    if (searches.paired or mean) and first is not None:
        return None
    at = [trials_at(grid, cost) for cost in searches.costs]
    ranks = [
        evidence.ranks_at(evidence.rank_curve(curve.n_scores, curve.settings), side)
        for curve, side in zip(curves, at, strict=True)
        if not mean
    ]
    if not (searches.paired or mean):
        null, width = evidence.INDEPENDENT if first is None else evidence.SAME_IN_COST, 6 * len(grid)
        draw = evidence.draw_ranks(curves, ranks, 1.0 if first is None or second is None else first.mean / second.mean)
    else:
        null, width = evidence.SWAPPED if searches.paired else evidence.RELABELLED, 2 * sum(map(len, searches.scores))
        read = [evidence.weight_reader(*side) for side in zip(curves, at, strict=True)] if mean else []
        read = read or [evidence.rank_reader(side) for side in ranks]
        a, b = (curves[0].settings.sign * scores for scores in searches.scores)
        draw = evidence.draw_relabelled(a, b, read, paired=searches.paired)
    return evidence.count_labels(draw, width, len(grid), portion, null, n_draws, rng)


def _default_grid(curves: list[TuningCurve], costs: tuple[MeanCost, MeanCost] | tuple[None, None]) -> Array:
    first, second = costs
    if first is None or second is None:
        return evidence.default_grid(*curves)
    sides = list(zip((first, second), curves, strict=True))
    start = max(cost.ci_high * max(1.0, curve.from_k or 1.0) for cost, curve in sides)
    # the division by the cost must not round to beyond the last k
    reach = min(cost.ci_low * evidence.reach_of(curve) for cost, curve in sides) * (1.0 - 1e-9)
    return np.linspace(start, reach, _COST_POINTS) if reach > start else np.array([start])


def looks_paired(a: Array, b: Array) -> bool:
    """Whether equal rows are correlated more than independent searches can be: ranks, five standard deviations."""
    if len(a) != len(b) or len(a) < 10:
        return False
    # equal scores have equal ranks: those in the order of the rows would make ties look like pairs
    first, second = pd.Series(a).rank(), pd.Series(b).rank()
    if first.nunique() == 1 or second.nunique() == 1:
        return False
    return float(np.corrcoef(first, second)[0, 1] * np.sqrt(len(a) - 1)) > _LOOKS_PAIRED
