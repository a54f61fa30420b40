"""Mean scores, and mean ranks, over the budget: one curve per algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.budget.budget_effect import short_fit
from lmemtest.bench.budget.curves import natural_scale
from lmemtest.core.result import Answer
from lmemtest.core.validate import is_number
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _layout, _rows, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import MOST_BANDS, Curve, Lines, Panel, axis_around, draw_lines, looks, mean_of, on_log

_DENSE = 15  # observed means of a curve; the markers of more of them are smaller


@_canvas.draws("budget_effect", source="budget_effect()")
def budget_effect_plot(result: Answer, /, *, y_scale: str = "auto", ax: Axes | None = None) -> Axes:
    """Draw the mean score of each algorithm over the budget.

    Parameters
    ----------
    result : Answer
        From `lmemtest.budget_effect`.
    y_scale : {"auto", "linear", "log"}
        Of the scores: "auto" is logarithmic for losses above zero whose largest mean is five times the smallest or
        more.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. Lines: fitted means (where every budget has a mean of its own, these
        joined); shaded, up to five algorithms: their 95 % intervals. Points: observed means, at every budget. A line
        over the logarithm of the budget has a logarithmic axis, a line over the budget a linear one; for other forms
        the axis is logarithmic where the largest budget is at least eight times the smallest. Below the axis stand the
        decision, what lines and points are, and whether the observed means contradict the form.

    Notes
    -----
    The intervals are of means over benchmarks, which differ in difficulty. Two bands that overlap do not show that two
    algorithms are equal, because the difficulty of the benchmarks cancels in a comparison; the decision is in `result`.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> sorted(text.get_text() for text in lt.budget_effect(runs).plot().child_axes[0].texts)
    ['HB', 'RS']
    """
    table, seen = result.curves, result.observed
    axis, position = _axis_of(list(dict.fromkeys(table["budget"])), seen["budget"], result.form)
    algorithms = list(dict.fromkeys(table["algorithm"]))
    curves = []
    places = _style.places(algorithms, result.roster)
    for (name, place), look in zip(places.items(), looks(places.values()), strict=True):
        rows, points = table[table["algorithm"] == name], seen[seen["algorithm"] == name]
        x = np.array([position[b] for b in rows["budget"]])
        ends = ("ci_low", "ci_high") if len(algorithms) <= MOST_BANDS else None
        fitted: dict[str, Any] = {"opacity": 0.15, "label": "_mean", "band_label": "_interval"}
        curves.append(Curve.of(rows, x, "mean", ends, name=str(name), **look, **fitted))
        x = np.array([position[b] if b in position else float(b) for b in points["budget"]])
        size = 0.45 * min(1.0, float(np.sqrt(_DENSE / max(len(points), 1))))
        dots: dict[str, Any] = {
            "marker": _style.marker(place),
            "size": size,
            "width": 0.0,
            "front": 4,
            "whose": str(name),
        }
        curves.append(Curve.of(points, x, "mean", None, **look, label="_observed", **dots))
    log = on_log(curves, result.direction, y_scale)
    lines = Lines(
        what=f"a plot of {counted(len(algorithms), 'curve')}",
        panels=(Panel(x=axis, y=axis_around(curves, log=log), curves=tuple(curves)),),
        beside=True,
        x_label=result.budget,
        y_label=mean_of(result.score, result.direction, log=log),
        foot=_caption(result),
    )
    return draw_lines(lines, ax)


def _axis_of(budgets: Sequence[Any], counted: Any, form: str = "") -> tuple[Axis, dict[Any, float]]:
    """The axis on which a line is straight (for curves the one on which they would be tested as a line), and places.

    Budgets that are no numbers are named. A few that are `counted` are the ticks; of more, ticks are whole if they are.
    """
    if not all(map(is_number, budgets)):
        axis, places = Axis.of_names(budgets)
        return axis, dict(zip(budgets, places.tolist(), strict=True))
    x = np.array(budgets, dtype=float)
    log = form == "log" or (form != "linear" and natural_scale(x) == "log")
    seen = np.unique(np.asarray(counted, dtype=float))
    ticks = seen if 0 < len(seen) <= _layout.MOST_LABELLED else None
    axis = Axis.around(x, log=log, ticks=ticks, whole=_layout.all_whole(counted))
    return axis, dict(zip(budgets, x.tolist(), strict=True))


def _caption(result: Answer) -> str:
    """The decision, and what is drawn."""
    parts = [f"Decision: {result.decision}", *(() if result.drawn == "categorical" else ("lines: fitted",))]
    if len(result.observed):
        parts.append("points: observed means")
    if len(result.slopes) <= MOST_BANDS:
        parts.append("shaded: pointwise 95 % intervals")
    return "; ".join([*parts, *filter(None, [short_fit(result)])]) + "."


_MOST_BANDS = 6  # more bands over each other are mud
_HEIGHT = 150.0  # points of a panel in a new figure
TITLE = "Mean rank (1 = best)"


@_canvas.draws("relative_ranks", source="anytime().ranks()")
def relative_ranks_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the mean ranks of the algorithms over the budget.

    Parameters
    ----------
    result : Answer
        From `lmemtest.anytime`, its ``.ranks()``.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``: all instances, then the levels of ``by``. Bands are the intervals of
        the result, left out with more than six algorithms; the foot says what they mean. Lines of the same colour
        differ in their dashes. Names are beside the last budget. The x axis is logarithmic where the largest budget is
        at least eight times the smallest. With a single budget, or none, the intervals are drawn as rows in `ax`
        itself.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"])
    >>> [panel.get_title(loc="left") for panel in lt.anytime(runs).ranks(by="prior").plot().child_axes]
    ['All instances', 'prior: bad', 'prior: good']
    """
    if len(result.budgets) == 1:
        return _rows.draw_rows(_as_rows(result), ax)
    axis, places = _axis_of(result.budgets, result.budgets)
    x = np.array(list(places.values()))
    content = {name: _curves(result, name, x) for name in result.panels}
    limits = axis_around([curve for curves in content.values() for curve in curves]).limits
    y = Axis(limits=limits[::-1])
    panels = tuple(
        Panel(x=axis, y=y, curves=curves, title=(_title(result, name),) if result.by is not None else ())
        for name, curves in content.items()
    )
    foot = f"Bands: {result.band}"
    if len(result.algorithms) > _MOST_BANDS:
        foot = f"{result.band} Bands are left out with more than {_MOST_BANDS} algorithms; the table has them."
    lines = Lines(
        what=f"a plot of {counted(len(result.algorithms), 'algorithm')} in {counted(len(panels), 'panel')}",
        panels=panels,
        beside=True,
        wide_first=True,
        x_label=str(result.budget),
        y_label=(TITLE, "Rank"),
        foot=foot,
    )
    return draw_lines(lines, ax, height=_HEIGHT if len(panels) > 1 else None)


def _title(result: Answer, name: str) -> str:
    return "All instances" if name == result.panels[0] else f"{result.by}: {name}"


def _curves(result: Answer, panel: str, x: np.ndarray) -> tuple[Curve, ...]:
    k, table = len(result.algorithms), result.table
    if result.by is not None:
        table = table[table[result.by] == panel]
    ends = ("ci_low", "ci_high") if k <= _MOST_BANDS else None
    style: dict[str, Any] = {"label": "_rank", "band_label": "_interval"}
    places = _style.places(result.algorithms, result.roster)
    return tuple(
        Curve.of(
            table[i * len(x) : (i + 1) * len(x)],
            x,
            "rank",
            ends,
            name=name,
            **look,
            marker=_style.marker(places[name]),
            **style,
        )
        for i, (name, look) in enumerate(zip(result.algorithms, looks(places.values()), strict=True))
    )


def _as_rows(result: Answer) -> _rows.Rows:
    """One budget: intervals side by side."""
    labels: list[str] = []
    headers: list[int] = []
    where: list[int] = []
    for name in result.panels:
        if result.by is not None:
            headers.append(len(labels))
            labels.append(_title(result, name))
        for algorithm in result.algorithms:
            where.append(len(labels))
            labels.append(algorithm)
    series = _rows.Series.of(result.table, np.array(where, dtype=np.intp), centre="rank")
    return _rows.Rows(labels=labels, series=(series,), headers=frozenset(headers), axis_label=f"{TITLE}\n{result.band}")
