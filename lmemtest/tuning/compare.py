"""Two tuning curves compared: where which is better, on what evidence, and how often such evidence is false."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_positive_int, resolve_rng
from lmemtest.core.words import percent, span
from lmemtest.tuning import evidence
from lmemtest.tuning.checks import check_k, name_of
from lmemtest.tuning.costs import PAIRED_ADVICE, BudgetCurve, Costs, check_searches, cost_facts, read_at, trials_at
from lmemtest.tuning.curve import TuningCurve, check_settings, curve_of
from lmemtest.tuning.evidence import EVIDENCE, describe_portion, rate_text

_COST_POINTS = 64  # of a default grid of costs
# Rank correlation, in standard deviations of that of independent scores, from which equal rows look like pairs.
_LOOKS_PAIRED = 5.0


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
) -> Answer:
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
        Of the curves, as in `lmemtest.tuning.curve`; the level is that of each band separately, in (0, 1).
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
    Answer
        ``to_frame()`` has one row per budget: trials or cost, k, estimate and band of both, evidence, better, trivial.
        ``to_frame("evidence")`` has one row per strength: the portions of the budgets with at least that evidence for
        a and for b, and the rate of false labels (NaN if not known). Its values are

        - `label`: "none", "weak", "fair" or "strong", the strongest evidence over the required `portion` of the
          budgets at which both bands are informative; `better`: the name of the curve that it favours, None for no
          evidence or if both are favoured, each at other budgets; `observed`: the portion of these budgets with at
          least that evidence;
        - `segments`: neighbouring budgets with the same evidence, each a tuple
          ``(evidence, better, start, stop)``;
        - `grid`, shape (m,), the budgets, and `axis`, "trials" or "cost", what they are; `a` and `b`, the curves there
          (``name, n_scores, k, band_low, estimate, band_high, trivial, cost``);
        - `signed`, shape (m,): the evidence at each budget, 1, 2, 3 for weak, fair, strong in favour of a, negative
          for b, 0 where there is none or a band is trivial; `usable`: where both bands are informative; `portions`,
          shape (3, 2): the portion of the usable budgets with at least weak, fair, strong evidence for a and for b;
        - `rates`: how often such labels are false, as of `lmemtest.tuning.false_label_rates`; None if not known;
        - `paired`, and direction, statistic, level, band and from_k of the curves; the level is that of each band by
          itself, over all budgets, cost included.

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
    names, scores, costs, levels = check_searches(a, b, names, cost_a, cost_b, paired, error=1.0 - settings.level)
    curves = [
        curve_of(each, replace(settings, level=level), bounds) for each, level in zip(scores, levels, strict=True)
    ]
    values = judged(names, curves, costs, grid, portion)
    first, second, budgets, usable = (values[name] for name in ("a", "b", "grid", "usable"))
    simulated = bool(n_draws) and bool(usable.any())
    rates = None
    if simulated:
        rates = _simulated_rates(scores, curves, costs, budgets[usable], portion, n_draws, rng, paired=paired)
    notes = [PAIRED_ADVICE] if paired else []
    if not paired and looks_paired(*scores):
        notes.append(
            "Equal rows are correlated as scores of the same configurations are. If they are pairs, set paired=True."
        )
    if simulated and rates is None:
        notes.append("How often such a label is false is not known for paired searches and means in cost units.")
    values |= {
        **asdict(settings),
        "segments": tuple(evidence.segments(values["signed"], usable, budgets, names)),
        "portion": portion,
        "rates": rates,
        "paired": bool(paired),
    }
    shares = dict(zip(("portion_a", "portion_b"), values["portions"].T, strict=True))
    false_rate = np.full(3, np.nan) if rates is None else rates.rate
    strengths = pd.DataFrame({"evidence": EVIDENCE[1:], **shares, "false_rate": false_rate})
    headings = [f"for {first.name}", f"for {second.name}", "false labels"]
    sizes = f"{first.name} (n = {first.n_scores}) and {second.name} (n = {second.n_scores})"
    return Answer(
        question="tuning.compare",
        title=f"Evidence between {sizes}: {name_of(settings.statistic)} of the best, {settings.direction}",
        tables={"budgets": _budgets(values), "evidence": strengths},
        values=values,
        facts=cost_facts(names, costs),
        findings=_findings(values),
        notes=tuple(notes),
        printed=strengths.set_axis(["evidence", *headings], axis=1),
        formats=dict(zip(headings, (percent, percent, rate_text), strict=True)),
        figure="tuning_compare_plot",
    )


def judged(
    names: tuple[str, str], curves: list[TuningCurve], costs: Costs, grid: Any, portion: float
) -> dict[str, Any]:
    """Two curves at budgets and the evidence between them: the values of a comparison of these names."""
    budgets = _default_grid(curves, costs) if grid is None else np.sort(check_k(grid, "grid"))
    first, second = (
        BudgetCurve(key=(name,), level=curve.level, **read_at(curve, cost, budgets))
        for name, curve, cost in zip(names, curves, costs, strict=True)
    )
    usable = ~(first.trivial | second.trivial)
    signed = np.where(usable, evidence.signed_levels(first.reading(), second.reading()), 0).astype(np.int8)
    portions = evidence.portions(signed[usable]) if usable.any() else np.zeros((3, 2))
    label, sign, observed = evidence.verdict(portions, portion)
    return {
        "label": label,
        "better": names[0] if sign > 0 else names[1] if sign < 0 else None,
        "observed": observed,
        "grid": budgets,
        "axis": "trials" if costs[0] is None else "cost",
        "a": first,
        "b": second,
        "usable": usable,
        "signed": signed,
        "portions": portions,
    }


def _budgets(values: dict[str, Any]) -> pd.DataFrame:
    """One row per budget: trials or cost, curve and band of both, evidence."""
    columns: dict[str, Any] = {values["axis"]: values["grid"]}
    for letter in "ab":
        for name in ("k", "estimate", "band_low", "band_high"):
            columns[f"{name}_{letter}"] = getattr(values[letter], name)
    columns["evidence"] = [EVIDENCE[abs(level)] for level in values["signed"]]
    better = {0: "", 1: values["a"].name, -1: values["b"].name}
    columns["better"] = [better[sign] for sign in np.sign(values["signed"]).tolist()]
    return pd.DataFrame({**columns, "trivial": ~values["usable"]})


def _findings(values: dict[str, Any]) -> tuple[str, ...]:
    """The label with the budgets at which it holds, and how often such a label is false."""
    label, better, rates, portion = (values[name] for name in ("label", "better", "rates", "portion"))
    count, names = int(values["usable"].sum()), (values["a"].name, values["b"].name)
    if not count:
        return ("At no budget are both bands informative, so there is no label. Use more trials.",)
    among = f"of the {count} budgets at which both bands are informative"
    where = []
    for sign, name in zip((1, -1), names, strict=True):
        if label != "none" and better in (name, None):
            enough = np.where(sign * values["signed"] >= EVIDENCE.index(label), sign, 0).astype(np.int8)
            runs = evidence.segments(enough, values["usable"], values["grid"], names)
            spans = " and ".join(span(start, stop) for _, _, start, stop in runs)
            at = f"for {spans} trials" if values["axis"] == "trials" else f"at a cost of {spans}"
            where.append(at if better is not None else f"{name} {at}")
    if label == "none":
        finding = f"No evidence over {describe_portion(portion)} {among}."
    elif better is None:
        finding = f"{label.capitalize()} evidence both ways: {', '.join(where)}."
    else:
        share = f"{percent(values['observed'])} {among}"
        finding = f"{label.capitalize()} evidence that {better} is better {where[0]} ({share})."
    if rates is None:
        return (finding,)
    weak, fair, strong = map(rate_text, rates.rate)
    return (
        finding,
        f"If the curves were the same, {describe_portion(portion)} of these budgets would show at least weak "
        f"evidence in {weak}, fair in {fair} and strong in {strong} of the comparisons.",
    )


def _simulated_rates(
    scores: tuple[Array, Array],
    curves: list[TuningCurve],
    costs: Costs,
    grid: Array,
    portion: float,
    n_draws: int,
    rng: Any,
    *,
    paired: bool,
) -> Answer | None:
    """Rates of false labels over the budgets that count; None where no null can be simulated."""
    mean, (first, second) = curves[0].statistic == "mean", costs
    if (paired or mean) and first is not None:
        return None
    at = [trials_at(grid, cost) for cost in costs]
    ranks = [
        evidence.ranks_at(evidence.rank_curve(curve.n_scores, curve.settings), side)
        for curve, side in zip(curves, at, strict=True)
        if not mean
    ]
    if not (paired or mean):
        null, width = evidence.INDEPENDENT if first is None else evidence.SAME_IN_COST, 6 * len(grid)
        draw = evidence.draw_ranks(
            curves, ranks, 1.0 if first is None or second is None else first.value / second.value
        )
    else:
        null, width = evidence.SWAPPED if paired else evidence.RELABELLED, 2 * sum(map(len, scores))
        read = [evidence.weight_reader(*side) for side in zip(curves, at, strict=True)] if mean else []
        read = read or [evidence.rank_reader(side) for side in ranks]
        a, b = (curves[0].settings.sign * each for each in scores)
        draw = evidence.draw_relabelled(a, b, read, paired=paired)
    return evidence.count_labels(draw, width, len(grid), portion, null, n_draws, rng)


def _default_grid(curves: list[TuningCurve], costs: Costs) -> Array:
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
