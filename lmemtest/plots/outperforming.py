"""Probability of outperforming: pairs over benchmarks, pairs of runs that are needed, error rates of decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.outperforming.decision_rules import ESTIMATORS, DecisionRules
from lmemtest.bench.outperforming.over_benchmarks import OutperformingOverBenchmarks
from lmemtest.bench.outperforming.rule_curves import RuleCurves
from lmemtest.bench.outperforming.sample_size import SampleSize
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import percent, plural
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._layout import SMALL, Axis, Cell
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, draw_lines, looks

if TYPE_CHECKING:
    import pandas as pd

RECOMMENDED = 0.75  # the gamma of the paper
RULE_NAMES = {
    "single": "single comparison",
    "average": "average",
    "t_test": "t-test",
    "outperforming": "P(A > B)",
    "oracle": "oracle",
}


@_canvas.draws(OutperformingOverBenchmarks, source="probability_of_outperforming() of a Runs")
def outperforming_plot(
    result: OutperformingOverBenchmarks, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None
) -> Axes:
    """Draw the probabilities of all pairs; of a single pair those of the benchmarks, too.

    Parameters
    ----------
    result : OutperformingOverBenchmarks
        From `lmemtest.probability_of_outperforming`.
    max_rows : int, >= 2
        The most pairs, or benchmarks of a single one, to draw; of more, those farthest from one half.

    Returns
    -------
    Axes
        Dots with intervals, a line at one half and a dashed one at gamma. Intervals of benchmarks are each by itself.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> axes = lt.probability_of_outperforming(runs, algorithms=("HB", "RS")).plot()
    >>> axes.get_yticklabels()[0].get_text()
    'All 20 benchmarks'
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    ends = list(zip(result.table["left"], result.table["right"], strict=True))
    pairs = [f"{left} over {right}" for left, right in ends]
    alone = len(pairs) == 1
    count = int(result.table["n_benchmarks"].iloc[0])
    families = "" if result.family is None else f" of {int(result.table['n_families'].iloc[0])} {plural(result.family)}"
    single = ""
    shown = _from_half(result.table, max_rows)
    labels = [f"All {count} benchmarks{families}"] if alone else shown.labels(pairs)
    left_out = shown.sentence("pairs, those nearest to one half,")
    series = [_rows.Series.of(result.table.iloc[shown.kept], shown.place, centre="estimate")]
    if alone and count > 1:
        shown = _from_half(result.benchmarks, max_rows)
        kept = result.benchmarks.iloc[shown.kept]
        series.append(_rows.Series.of(kept, shown.place + 1, centre="estimate", colour=_style.MUTED))
        names = result.benchmarks["benchmark"].astype(str)
        if names.duplicated().any():  # the same data set in several families
            names = names + " in " + result.benchmarks["family"]
        labels = [*labels, *shown.labels(names)]
        left_out = shown.sentence("benchmarks, those nearest to one half,")
        single = "; below it score intervals of each benchmark by itself"
    of = "a run of {} is better than one of {}".format(*ends[0]) if alone else "a run of the first is better"
    return _rows.draw_rows(
        _rows.Rows(
            labels=labels,
            series=tuple(series),
            axis_label=f"Probability that {of}\n{result.band}{single}; dashed: gamma{left_out}",
            reference=0.5,
            threshold=result.gamma_adjusted,
        ),
        ax,
    )


def _from_half(table: pd.DataFrame, most: int) -> _rows.Shown:
    return _rows.Shown.largest(np.abs(table["estimate"].to_numpy(dtype=float) - 0.5), most)


@_canvas.draws(SampleSize, source="sample_size()")
def sample_size_plot(result: SampleSize, /, *, ax: Axes | None = None) -> Axes:
    """Draw the numbers of runs over gamma: figure C.1 of Bouthillier et al., with what pairs need.

    Parameters
    ----------
    result : SampleSize
        From `sample_size`, of two gammas or more.

    Returns
    -------
    Axes
        A line for pairs, and one for Noether's number, which is the paper's, over a logarithmic axis of runs; a star at
        the gamma that the paper recommends, 0.75, if it is among those of the result.

    Examples
    --------
    >>> from lmemtest.bench.outperforming.sample_size import sample_size
    >>> len(sample_size([0.8, 0.9]).plot().child_axes)
    1
    """
    x = result.table["gamma"].to_numpy()
    names = {"pairs": f"pairs, {result.method} interval", "noether": "Noether, not paired (the paper's line)"}
    curves = tuple(
        Curve.of(result.table, x, column, None, name=name, look=look, marker="o", label=f"_{column}")
        for (column, name), look in zip(names.items(), looks(2), strict=True)
    )
    star = result.table[np.isclose(x, RECOMMENDED)]
    if len(star):
        runs = float(star["noether"].iloc[0])
        named: dict[str, Any] = {
            "name": f"the paper's recommendation: {runs:.0f} runs",
            "look": Look(_style.PALETTE[2]),
        }
        point: dict[str, Any] = {"x": np.array([RECOMMENDED]), "y": np.array([runs]), "marker": "*", "size": 1.2}
        curves += (Curve(label="_recommended", width=0.0, front=4, **point, **named),)
    values = np.concatenate([curve.y for curve in curves])
    lines = Lines(
        what="a plot of sample sizes",
        panels=(Panel(x=Axis.around(x), y=Axis.around(values, log=True, whole=True), curves=curves),),
        x_label="Probability that a run of A is better (gamma)",
        y_label=(f"Runs of each for power {percent(1.0 - result.beta)}", "Runs"),
    )
    return draw_lines(lines, ax)


@_canvas.draws(DecisionRules, source="decision_rules()")
def decision_rules_plot(result: DecisionRules, /, *, ax: Axes | None = None) -> Axes:
    """Draw how often each rule finds A better, over the true probability: figure 6 of Bouthillier et al.

    Parameters
    ----------
    result : DecisionRules
        From `decision_rules`.

    Returns
    -------
    Axes
        It holds a panel per rule, ``ax.child_axes``: the ideal estimator is a full line, the biased one dashed, the
        oracle grey. Where A is not better (H0) detections are errors; on grey A is better, but less often than gamma
        (significant, not meaningful); beyond gamma (H1) what is missing to 100 % is an error.

    Examples
    --------
    >>> from lmemtest.bench.outperforming.decision_rules import decision_rules
    >>> [panel.get_title(loc="left") for panel in decision_rules(n_draws=100, rng=1).plot().child_axes]
    ['Single comparison', 'Average', 'T-test', 'P(A > B)']
    """
    table = result.table

    def curve(rule: str, estimator: str, name: str, look: Look, **style: Any) -> Curve:
        part = table[(table["rule"] == rule) & (table["estimator"] == estimator)]
        x, label = part["probability"].to_numpy(), f"_{rule}_{estimator}"
        return Curve.of(part, x, "rate", None, scale=100.0, name=name, look=look, label=label, **style)

    x = Axis.around(np.unique(table["probability"].to_numpy()))

    def regions(box: Axes, _: Cell, font: float) -> None:
        box.axvspan(0.5, result.gamma, color=_style.FAINT, alpha=0.5, linewidth=0.0, zorder=0, label="_not_meaningful")
        ends = (x.limits[0], 0.5, result.gamma, x.limits[1])
        for low, high, name in zip(ends, ends[1:], ("H0", "not meaningful", "H1"), strict=False):
            style = _style.text_style(0.9 * SMALL * font, color=_style.MUTED, ha="center", va="top")
            box.text((low + high) / 2.0, 0.99, name, transform=box.get_xaxis_transform(), **style)

    looks_of = {"ideal": Look(_style.ACCENT), "biased": Look(_style.WARM, (0, (5, 1.5)))}
    panels = tuple(
        Panel(
            x=x,
            y=Axis(limits=(-3.0, 103.0)),
            title=(f"{name[:1].upper()}{name[1:]}",),
            lanes=(0.0, 1.0),
            curves=(
                curve("oracle", "ideal", "oracle", Look(_style.NEUTRAL), width=0.34, front=2),
                *(curve(rule, estimator, f"{estimator} estimator", looks_of[estimator]) for estimator in ESTIMATORS),
            ),
            levels=(Level(at=100.0 * result.alpha),),
            draw=regions,
        )
        for rule, name in RULE_NAMES.items()
        if rule != "oracle"
    )
    lines = Lines(
        what="a plot of error rates",
        panels=panels,
        shared=True,
        x_label="True probability that a run of A is better",
        y_label=("A found better, % of studies", "Found, %"),
        foot=f"H0: detections are errors (dashed line: {percent(result.alpha)}). Grey: A is better, but less often "
        f"than gamma = {result.gamma:g}: significant, not meaningful. H1: what is missing to 100 % is an error.",
    )
    return draw_lines(lines, ax)


@_canvas.draws(RuleCurves, source="rule_curves()")
def rule_curves_plot(result: RuleCurves, /, *, ax: Axes | None = None) -> Axes:
    """Draw the decisions over the number of runs or over gamma: a row of figure I.6 of Bouthillier et al.

    Parameters
    ----------
    result : RuleCurves
        From `rule_curves`.

    Returns
    -------
    Axes
        A panel per true probability, ``ax.child_axes``; ideal estimators are full lines, biased ones dashed.

    Examples
    --------
    >>> from lmemtest.bench.outperforming.rule_curves import rule_curves
    >>> found = rule_curves(n_runs=[5, 20], probabilities=[0.5, 0.75], n_draws=50, rng=1)
    >>> len(found.plot().child_axes)
    2
    """
    values = np.unique(result.table[result.over].to_numpy(dtype=float))
    panels = []
    for truth, at_truth in result.table.groupby("probability"):
        curves = []
        for number, (rule, name) in enumerate(RULE_NAMES.items()):
            for estimator in ESTIMATORS:
                part = at_truth[(at_truth["rule"] == rule) & (at_truth["estimator"] == estimator)]
                ideal = estimator == "ideal"
                look = Look(_style.colour(number), "-" if ideal else (0, (5, 1.5)))
                label = f"_{rule}_{estimator}"
                x = part[result.over].to_numpy(dtype=float)
                shown = name if ideal else f"{name}, biased"
                curves.append(Curve.of(part, x, "rate", None, scale=100.0, name=shown, look=look, label=label))
        panels.append(
            Panel(
                x=Axis.around(values, whole=result.over == "n_runs"),
                y=Axis(limits=(-3.0, 103.0)),
                curves=tuple(curves),
                title=(f"P(A > B) = {truth:g}",),
            )
        )
    lines = Lines(
        what="a plot of decisions",
        panels=tuple(panels),
        x_label="Pairs of runs" if result.over == "n_runs" else "gamma",
        y_label=("A found better, % of studies", "Found, %"),
        shared=True,
    )
    return draw_lines(lines, ax)
