"""Relative ranks over the budget: one line with a band per algorithm, rank 1 on top."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.budget.curves import natural_scale
from lmemtest.core.result import Answer
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _layout, _rows, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Panel, axis_around, draw_lines, looks

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
    axis, x = _budgets(result)
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


def _budgets(result: Answer) -> tuple[Axis, np.ndarray]:
    """The axis of the budgets, logarithmic as in the other figures over them; names where they are no numbers."""
    values = result.budgets
    if not all(isinstance(value, (int, float, np.number)) for value in values):
        return Axis.of_names(values)
    x = np.array(values, dtype=float)
    return Axis.around(x, log=natural_scale(x) == "log", whole=_layout.all_whole(x)), x


def _curves(result: Answer, panel: str, x: np.ndarray) -> tuple[Curve, ...]:
    k, table = len(result.algorithms), result.table
    if result.by is not None:
        table = table[table[result.by] == panel]
    ends = ("ci_low", "ci_high") if k <= _MOST_BANDS else None
    style: dict[str, Any] = {"label": "_rank", "band_label": "_interval"}
    return tuple(
        Curve.of(
            table[i * len(x) : (i + 1) * len(x)],
            x,
            "rank",
            ends,
            name=name,
            look=look,
            marker=_style.marker(i),
            **style,
        )
        for i, (name, look) in enumerate(zip(result.algorithms, looks(k), strict=True))
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
