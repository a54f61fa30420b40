"""Figures of `lmemtest.tuning`: ``tuning_x_plot`` draws the result of ``tuning.x``; some of them several by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.words import counted, span
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._given import checked_limits
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import (
    LOG_AXIS,
    Curve,
    Level,
    Lines,
    Panel,
    Span,
    axis_around,
    draw_lines,
    far_apart,
    looks,
    on_log,
    spans_much,
)
from lmemtest.tuning.band import CdfBand
from lmemtest.tuning.best_of import BestOf
from lmemtest.tuning.checks import name_of
from lmemtest.tuning.curve import TuningCurve
from lmemtest.tuning.curves import TuningCurves
from lmemtest.tuning.evidence import EVIDENCE

_MARKED, _FEW_MARKED = 12, 8  # budgets asked for, up to which they have markers: of one panel, of many
_CROWDED = 6  # curves, beyond which bands would be mud
_SHADE = {"weak": 0.3, "fair": 0.6, "strong": 1.0}
_LOOKS: tuple[dict[str, Any], ...] = ({"colour": _style.ACCENT}, {"colour": _style.WARM, "dash": (0, (4, 1.5))})
_AXES = {"trials": "Trials k", "cost": "Cost", "budget": "Budget"}
_BANDLESS = f" Bands are left out with more than {_CROWDED} curves; the table has them."
_GREY = " Grey: a limit is the end of the support, which is no information."
_BAND = ("band_low", "band_high")


# ------------------------------------------------------------------------------------ one result, or several by name


@_canvas.draws(source="tuning.curve(), or several by name")
def tuning_curve_plot(
    curves: TuningCurve | Mapping[str, TuningCurve],
    /,
    *,
    limits: tuple[float, float] | None = None,
    y_scale: str = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw a tuning curve with its band, or several by name.

    Parameters
    ----------
    curves : TuningCurve or mapping of name to TuningCurve
        From `lmemtest.tuning.curve`; several must be of one direction and statistic.
    limits : tuple of two floats, optional
        Scores from which to which the axis goes, so that figures can be compared; by default those of the curves.
    y_scale : {"auto", "linear", "log"}
        Of the scores; "auto" is logarithmic for losses above zero whose largest estimate is five times the smallest or
        more, and linear with `limits`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: curves and bands, of up to six curves, as the steps that they are;
        grey where a limit is the end of the support.

    Raises
    ------
    ArgumentError
        If `curves` is something else, several do not go together, `limits` are not two ascending numbers, or `ax` is
        too small.

    Examples
    --------
    >>> from lmemtest import tuning
    >>> ax = tuning.curve([0.5, 0.7, 0.6, 0.8], direction="maximize").plot()
    >>> ax.texts[-1].get_text()
    'Median of the largest of k scores'
    """
    named = _named(curves, "TuningCurve", "curves", "tuning.curve()")
    first = next(iter(named.values()))
    _same(named, lambda curve: (curve.direction, curve.statistic), "direction and statistic")
    lines, estimates = [], [(curve.k, curve.estimate) for curve in named.values()]
    crowded = len(named) > _CROWDED
    for look, (name, curve) in zip(looks(range(len(named)), dashed=True), named.items(), strict=True):
        lines.append(_stepped(curve.drawn(), "k", name, look, band=not crowded))
    best = "largest" if first.direction == "maximize" else "smallest"
    words = f"{name_of(first.statistic)} of the {best} of k scores".capitalize()
    note = f"{_facts(curve.cdf_band.describe(number=False) for curve in named.values())}, for all k at once."
    note += _BANDLESS if crowded else _GREY * any(curve.trivial.any() for curve in named.values())
    return _draw(
        ax,
        lines,
        ("Trials k", words, note),
        asked=estimates,
        limits=checked_limits(limits),
        whole=True,
        direction=first.direction,
        y_scale="linear" if limits is not None and y_scale == "auto" else y_scale,
    )


@_canvas.draws(source="tuning.band(), or several by name")
def tuning_band_plot(bands: CdfBand | Mapping[str, CdfBand], /, *, ax: Axes | None = None) -> Axes:
    """Draw the band of a distribution function, or several by name.

    Parameters
    ----------
    bands : CdfBand or mapping of name to CdfBand
        From `EmpiricalDistribution.band`, drawn over the scores, or from `lmemtest.tuning.band`, drawn over the share
        of scores at or below.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: band and empirical distribution function as the steps that they are.

    Raises
    ------
    ArgumentError
        If `bands` is something else, both kinds are mixed, or `ax` is too small.

    Examples
    --------
    >>> from lmemtest import tuning
    >>> ax = tuning.EmpiricalDistribution([0.5, 0.7, 0.6, 0.8], bounds=(0, 1)).band().plot()
    >>> [text.get_text() for text in ax.texts[-2:]]
    ['Score', 'Distribution function']
    """
    named = _named(bands, "CdfBand", "bands", "tuning.band() or EmpiricalDistribution.band()")
    _same(named, lambda band: band.distribution is None, "kind")
    lines = []
    for look, (name, band) in zip(looks(range(len(named)), dashed=True), named.items(), strict=True):
        if band.distribution is None:
            points = estimate = np.arange(band.n_scores + 1) / band.n_scores
            low, high = band.band_low, band.band_high
        else:
            score = np.unique(band.distribution.scores[np.isfinite(band.distribution.scores)])
            first, last = band.distribution.bounds
            pad = 0.03 * (score[-1] - score[0] or 1.0)
            points = np.unique([max(score[0] - pad, first), *score, min(score[-1] + pad, last)])
            low, high = band.cdf_bounds(points)
            estimate = np.asarray(band.distribution.cdf(points))
        corners = np.repeat(points, 2)[1:]  # each value holds up to the next point
        y, low, high = (np.repeat(values, 2)[:-1] for values in (estimate, low, high))
        lines.append(Curve(name=name, x=corners, y=y, low=low, high=high, **look, label="_estimate"))
    x_label = "Share of scores at or below" if next(iter(named.values())).distribution is None else "Score"
    words = (x_label, "Distribution function", f"{_facts(band.describe(number=False) for band in named.values())}.")
    return _draw(ax, lines, words, limits=(0.0, 1.0), log=False)


@_canvas.draws(source="tuning.expected_best(), or several by name")
def tuning_expected_best_plot(results: Answer | Mapping[str, Answer], /, *, ax: Axes | None = None) -> Axes:
    """Draw point estimates of the expected best of k scores, or several by name.

    Parameters
    ----------
    results : Answer or mapping of name to Answer
        From `lmemtest.tuning.expected_best`, of one direction.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: lines without any band, which the note below the axis says.

    Raises
    ------
    ArgumentError
        If `results` is something else, several do not go together, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> scores = [0.61, 0.70, 0.58, 0.74]
    >>> found = {e.upper(): lt.tuning.expected_best(scores, direction="maximize", estimator=e) for e in "uv"}
    >>> [text.get_text() for text in lt.plots.tuning_expected_best_plot(found).get_legend().get_texts()]
    ['U', 'V']
    """
    named = _named(results, "tuning.expected_best", "results", "expected_best()")
    _same(named, lambda estimate: estimate.direction, "direction")
    lines = []
    for look, (name, estimate) in zip(looks(range(len(named)), dashed=True), named.items(), strict=True):
        order = np.argsort(estimate.k, kind="stable")
        lines.append(Curve(name=name, x=estimate.k[order], y=estimate.estimate[order], **look, label="_estimate"))
    best = "largest" if next(iter(named.values())).direction == "maximize" else "smallest"
    note = "Point estimates: how much another sample would change them is not shown."
    estimates = [(line.x, line.y) for line in lines]
    return _draw(ax, lines, ("Trials k", f"Expected {best} of k scores", note), asked=estimates, whole=True)


def _named(results: Any, question: str, argument: str, source: str) -> dict[str, Any]:
    """Results of one question by name; one alone has no name."""
    named = {str(name): one for name, one in results.items()} if isinstance(results, Mapping) else {"": results}
    if not named:
        raise ArgumentError(f"{argument} must hold at least one result of {source}, got none.")
    for one in named.values():
        got = getattr(one, "question", type(one).__name__)
        if got != question:
            raise ArgumentError(f"{argument} must be a result of {source}, or several by name, got {got}.")
    return named


def _same(named: dict[str, Any], what: Callable[[Any], Any], words: str) -> None:
    if len({what(value) for value in named.values()}) > 1:
        raise ArgumentError(f"results in one figure must have the same {words}. Draw the others in their own figure.")


def _facts(facts: Iterable[str]) -> str:
    """A few different facts, each once."""
    return "; ".join(dict.fromkeys(facts))


def _stepped(steps: Any, x: str, name: str, look: dict[str, Any], *, band: bool = True, **style: Any) -> Curve:
    """The curve of something with an estimate and a band that may say nothing."""
    at = getattr(steps, x)
    order = np.argsort(at, kind="stable")
    columns = {"y": "estimate"} | ({"low": _BAND[0], "high": _BAND[1]} if band else {})
    values = {key: getattr(steps, column)[order] for key, column in columns.items()}
    inside = ~steps.trivial[order]
    return Curve(name=name, x=at[order], known=inside, **look, label="_estimate", **values, **style)


def _look(curve: Curve) -> dict[str, Any]:
    return {"colour": curve.colour, "dash": curve.dash}


def _dots(x: Array, y: Array, look: dict[str, Any], size: float = 0.35) -> Curve:
    """Estimates at the budgets that were asked for."""
    return Curve(x=x, y=y, **look, marker="o", size=size, width=0.0, label="_asked")


def _draw(
    ax: Axes | None,
    curves: list[Curve],
    words: tuple[str, str, str],
    *,
    asked: Sequence[tuple[Array, Array]] = (),
    limits: tuple[float, float] | None = None,
    log: bool = True,
    whole: bool = False,
    direction: str = "",
    y_scale: str = "auto",
) -> Axes:
    """One panel with the curves, and dots at what was asked for where that is not much."""
    grid = np.concatenate([curve.x for curve in curves])
    curves = [replace(curve, outlined=len(curves) > 1) for curve in curves]
    dots = [_dots(*at, _look(curve)) for at, curve in zip(asked, curves, strict=bool(asked)) if len(at[0]) <= _MARKED]
    logarithmic = on_log(curves, direction, y_scale)
    panel = Panel(
        x=Axis.around(grid, log=log and spans_much(grid), pad=0.03, whole=whole),
        y=axis_around(curves, log=logarithmic) if limits is None else Axis(limits=limits, log=logarithmic),
        curves=(*curves, *dots),
    )
    x_label, y_label, foot = words
    y_words = (y_label + LOG_AXIS * logarithmic, y_label)
    lines = Lines(what="a plot of curves", panels=(panel,), x_label=x_label, y_label=y_words, foot=foot)
    return draw_lines(lines, ax)


# ------------------------------------------------------------------------------------ many curves


@_canvas.draws(TuningCurves, source="tuning.curves()", hint="Two searches are drawn by tuning.compare(...).plot().")
def tuning_curves_plot(curves: TuningCurves, /, *, y_scale: str = "auto", ax: Axes | None = None) -> Axes:
    """Draw the tuning curves of all algorithms, one panel per benchmark.

    Parameters
    ----------
    curves : TuningCurves
        From `lmemtest.tuning.curves`.
    y_scale : {"auto", "linear", "log"}
        Of the scores of all panels; "auto" is logarithmic where the curves of one panel ask for it (losses above zero
        whose largest estimate is five times the smallest or more) and those of all others have logarithms.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per benchmark in their order. An algorithm has the same colour and
        dashes in all of them; bands, of up to six algorithms, are grey where a limit is trivial. Curves and bands are
        drawn as the steps that they are, between the budgets asked for too (curves over seeds stay at a budget's values
        up to the next). The x axis is logarithmic if the budgets of a panel span more than a factor of 25; each panel
        has its own scale of scores.

    Examples
    --------
    >>> import lmemtest as lt
    >>> trials = lt.datasets.load_hpo_trials()
    >>> curves = lt.tuning.curves(trials, score="valid_loss", direction="minimize", by=["dataset", "model"])
    >>> [panel.get_title(loc="left") for panel in curves.plot().child_axes]
    ['cancer', 'diabetes', 'digits', 'vote']
    """
    by_key = {curve.key: curve for curve in curves.curves}
    curves = replace(curves, curves=tuple(curve.drawn() for curve in curves.curves))
    every = dict(zip(curves.algorithms, looks(range(len(curves.algorithms)), dashed=True), strict=True))
    crowded = len(every) > _CROWDED
    content = []
    for group in curves.panels():
        lines, dots = [], []
        for curve in group:
            name, look, curve_of_key = curve.name, every[curve.name], by_key[curve.key]
            lines.append(_stepped(curve, "grid", name, look, band=not crowded, opacity=0.2, step=curves.unit == "seed"))
            dots += [_dots(curve_of_key.grid, curve_of_key.estimate, look, 0.3)] * (
                len(curve_of_key.grid) <= _FEW_MARKED
            )
        shared = curves.curves if curves.axis == "trials" else group  # trials mean the same everywhere
        content.append((_budgets(np.concatenate([curve.grid for curve in shared]), curves.axis), lines, dots))
    asked = [on_log(lines, curves.direction, y_scale) for _, lines, _ in content]
    log = any(asked) and all(far_apart(lines, 1.0) for _, lines, _ in content)
    panels = [
        Panel(
            x=x,
            y=axis_around(lines, log=log),
            curves=(*lines, *dots),
            title=(str(benchmark),) if any(curves.benchmarks) else (),
        )
        for benchmark, (x, lines, dots) in zip(curves.benchmarks, content, strict=True)
    ]
    foot = curves.describe()
    foot += _BANDLESS if crowded else _GREY * any(curve.trivial.any() for curve in curves.curves)
    what = f"best {curves.score}"
    seeds = "over seeds of the" if curves.unit == "seed" else "of the"
    lines_of_all = Lines(
        what=counted(len(panels), "panel"),
        panels=tuple(panels),
        x_label=_AXES[curves.axis],
        y_label=(f"{name_of(curves.statistic).capitalize()} {seeds} {what}{LOG_AXIS * log}", what),
        foot=foot,
    )
    return draw_lines(lines_of_all, ax)


def _budgets(grid: Array, unit: str) -> Axis:
    return Axis.around(grid, log=spans_much(grid), pad=0.03, whole=unit == "trials")


# ------------------------------------------------------------------------------------ two searches


@_canvas.draws("tuning.compare", source="tuning.compare()", hint="A BestOf is drawn by tuning_best_of_plot().")
def tuning_compare_plot(comparison: Answer, /, *, y_scale: str = "auto", ax: Axes | None = None) -> Axes:
    """Draw two tuning curves with their bands, and below them which is better on what evidence.

    Parameters
    ----------
    comparison : Answer
        From `lmemtest.tuning.compare`.
    y_scale : {"auto", "linear", "log"}
        Of the scores; "auto" is logarithmic for losses above zero whose largest estimate is five times the smallest or
        more.

    Returns
    -------
    Axes
        It holds the panel and a strip, ``ax.child_axes``. The x axis has the budgets, logarithmic if they span more
        than a factor of 25; bands are grey where a limit is trivial. Curves and bands are drawn as the steps that they
        are, between the budgets too. The strip below has the colour of the better curve, darker for more evidence.

    Examples
    --------
    >>> import lmemtest as lt
    >>> loss = lt.datasets.load_hpo_trials().pivot(index="trial", columns="benchmark", values="valid_loss")
    >>> found = lt.tuning.compare(loss["mlp-digits"][:64], loss["svm-digits"][:64], direction="minimize",
    ...                           names=("MLP", "SVM"), n_draws=0)
    >>> [text.get_text() for text in found.plot().get_legend().get_texts()]
    ['MLP', 'SVM']
    """
    grid, curves, dots = comparison.grid, [], []
    for curve, look in zip((comparison.a, comparison.b), _LOOKS, strict=True):
        curves.append(_stepped(curve.drawn(), "grid", curve.name, look))
        dots += [_dots(grid, curve.estimate, look)] * (len(grid) <= _MARKED)
    x, log = _budgets(grid, comparison.axis), on_log(curves, comparison.direction, y_scale)
    lines = Lines(
        what="a plot of curves",
        panels=(Panel(x=x, y=axis_around(curves, log=log), curves=(*curves, *dots)),),
        strip=(("", _style.INK, _evidence(comparison, x)),),
        empty="none",
        x_label="Trials" if comparison.axis == "trials" else "Cost",
        y_label=(f"{name_of(comparison.statistic)} of the best score{LOG_AXIS * log}".capitalize(), "Best score"),
        foot=f"{comparison.sentences()[0]}{_other_evidence(comparison)}",
    )
    return draw_lines(lines, ax)


def _other_evidence(comparison: Answer) -> str:
    """The evidence in the strip that the sentence of the label does not name: weaker, or for the other side."""
    label = EVIDENCE.index(comparison.label)
    where: dict[tuple[str, str], list[str]] = {}
    for evidence, better, start, stop in comparison.segments:
        named = 0 < label <= EVIDENCE.index(evidence) and comparison.better in (better, None)
        if not named:
            where.setdefault((evidence, better), []).append(span(start, stop))
    remarks = []
    for (evidence, better), spans in where.items():
        trials = "trial" if spans == ["1"] else "trials"
        at = f"at {', '.join(spans)} {trials}" if comparison.axis == "trials" else f"at a cost of {', '.join(spans)}"
        remarks.append(f"{evidence} evidence that {better} is better {at}")
    return f" {'Elsewhere' if label else 'At some'}: {'; '.join(remarks)}." if remarks else ""


def _evidence(comparison: Answer, axis: Axis) -> tuple[Span, ...]:
    """Runs of evidence, each from half way to the budget before it to half way to the one after it."""
    grid = np.log(comparison.grid) if axis.log else comparison.grid
    step = np.diff(grid) if len(grid) > 1 else np.ones(1)
    edges = np.concatenate(
        [[grid[0] - 0.5 * step[0]], grid[: len(grid) - 1] + 0.5 * step[: len(grid) - 1], [grid[-1] + 0.5 * step[-1]]]
    )
    edges = np.clip(np.exp(edges) if axis.log else edges, *axis.limits)
    colours = dict(zip((comparison.a.name, comparison.b.name), (look["colour"] for look in _LOOKS), strict=True))
    spans: list[Span] = []
    for evidence, better, first, last in comparison.segments:
        inside = np.flatnonzero((comparison.grid >= first) & (comparison.grid <= last))
        fill = {"facecolor": colours[better], "alpha": _SHADE[evidence], "label": f"_{evidence}"}
        start, end = float(edges[inside[0]]), float(edges[inside[-1] + 1])
        spans.append((start, end, fill, evidence))
    return tuple(spans)


@_canvas.draws(BestOf, source="best_of()")
def tuning_best_of_plot(result: BestOf, /, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that the best of one search beats the best of another, with its band.

    Parameters
    ----------
    result : BestOf
        From `lmemtest.tuning.best_of`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the budgets, the y axis the probability in percent with
        a line at 50 %.

    Examples
    --------
    >>> from lmemtest.tuning import best_of
    >>> ax = best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize", names=("new", "old")).plot()
    >>> ax.texts[-1].get_text()
    'P(best of new beats best of old), %'
    """
    drawn = result.drawn()
    low, estimate, high = (100.0 * values for values in (drawn.band_low, drawn.estimate, drawn.band_high))
    name = f"estimate with {100 * result.level:.4g} % band"
    curves = [Curve(name=name, x=drawn.grid, y=estimate, low=low, high=high, label="_estimate")]
    if len(result.grid) <= _MARKED:
        curves.append(_dots(result.grid, 100.0 * result.estimate, _look(curves[0])))
    first, second = (_style.one_line(name) for name in result.names)
    axes: dict[str, Any] = {"x": _budgets(result.grid, result.axis), "y": Axis(limits=(0.0, 100.0))}
    lines = Lines(
        what="a plot of curves",
        panels=(Panel(curves=tuple(curves), levels=(Level(at=50.0),), **axes),),
        x_label="Trials" if result.axis == "trials" else "Cost",
        y_label=(f"P(best of {first} beats best of {second}), %", f"P({first} beats {second}), %"),
        foot=result.sentences()[0],
    )
    return draw_lines(lines, ax)


# ------------------------------------------------------------------------------------ plans


@_canvas.draws(source="tuning.plan(), or several")
def tuning_plan_plot(plans: Answer | Iterable[Answer], /, *, ax: Axes | None = None) -> Axes:
    """Draw up to which k tuning curves have two limits, over the number of scores.

    Parameters
    ----------
    plans : Answer or iterable of Answer
        From `lmemtest.tuning.plan`: one line each, for instance for several levels or methods.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the number of scores, the y axis `k_max`; the points
        are those of the plans.

    Raises
    ------
    ArgumentError
        If `plans` are something else, a reach is infinite, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> plans = [lt.tuning.plan(n_scores=range(5, 100, 5), level=level) for level in (0.8, 0.95)]
    >>> [text.get_text() for text in lt.plots.tuning_plan_plot(plans).get_legend().get_texts()][1]
    '95 % LD band of highest-density intervals, median'
    """
    one = not isinstance(plans, Iterable) or getattr(plans, "ndim", None) == 0
    several: list[Any] = [plans] if one else [*cast("Iterable[Answer]", plans)]
    for plan in several:
        got = getattr(plan, "question", type(plan).__name__)
        if got != "tuning.plan":
            raise ArgumentError(f"plans must be results of tuning.plan(), got {got}.")
    if not several:
        raise ArgumentError("plans must hold at least one result of tuning.plan(), got none.")
    curves = []
    for i, (plan, look) in enumerate(zip(several, looks(range(len(several))), strict=True)):
        order = np.argsort(plan.n_scores, kind="stable")
        name = plan.curve if len(several) > 1 else ""
        x, y = plan.n_scores[order].astype(float), plan.k_max[order].astype(float)
        curves.append(Curve(name=name, x=x, y=y, **look, marker=_style.marker(i), size=0.5, label="_plan"))
    ends = max(curve.x.max() for curve in curves), max(1.0, *(curve.y.max() for curve in curves))
    x_axis, y_axis = (Axis(limits=(0.0, 1.05 * float(end)), whole=True) for end in ends)
    lines = Lines(
        what=f"a plot of {counted(len(several), 'plan')}",
        panels=(Panel(x=x_axis, y=y_axis, curves=tuple(curves)),),
        x_label="Scores of a random search",
        y_label=("Largest k with two limits", "Largest k"),
        foot=several[0].curve if len(several) == 1 else "",
    )
    return draw_lines(lines, ax)
