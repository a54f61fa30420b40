"""Standard error over the budget: the best allocations, one tuning run, the ideal estimator, and the current habit."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.power.plan import BEST, CURRENT, IDEAL, Plan
from lmemtest.core.rounding import written
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, axis_around, draw_lines, looks

_NAMES = {BEST: "best", IDEAL: "ideal estimator"}
_POINTS = {BEST: ("plan", "o"), CURRENT: ("current", "s")}


@_canvas.draws(Plan, source="plan()")
def plan_plot(plan: Plan, /, *, ax: Axes | None = None) -> Axes:
    """Draw the least standard error over the budget, on logarithmic axes.

    Parameters
    ----------
    plan : Plan
        From `lmemtest.plan`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: what is spent on the x axis, the standard error on the y axis. A
        legend names the curves and the two points, the plan and the current design. A dashed line is the target.

    Raises
    ------
    ArgumentError
        If nothing varies.

    Examples
    --------
    >>> import lmemtest as lt
    >>> ax = lt.plan({"tuning": 0.4, "data": 0.9, "seed": 0.3}, trials=50, current={"seed": 3}).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()][-2:]
    ['plan', 'current']
    """
    table, rows = plan.to_frame("curves"), plan.to_frame().set_index("allocation")
    if not (table["standard_error"] > 0.0).any():
        raise ArgumentError("nothing varies, so every design has a standard error of 0 and there is no curve to draw.")
    names = list(dict.fromkeys(table["curve"]))
    curves = []
    for name, look in zip(names, looks(len(names), dashed=True), strict=True):
        part = table[(table["curve"] == name) & (table["standard_error"] > 0.0)]
        x = part["cost"].to_numpy(dtype=float)
        curves.append(
            Curve.of(
                part,
                x,
                "standard_error",
                None,
                name=_NAMES.get(name, name),
                look=look,
                step=True,
                label="_standard_error",
            )
        )
    for name, (words, marker) in _POINTS.items():
        if name in rows.index and rows.loc[name, "standard_error"] > 0.0:
            point = {axis: np.array([float(rows.loc[name, axis])]) for axis in ("cost", "standard_error")}
            curves.append(
                Curve(
                    x=point["cost"],
                    y=point["standard_error"],
                    name=words,
                    look=Look(_style.INK),
                    marker=marker,
                    size=0.6,
                    width=0.0,
                    label="_point",
                    front=5,
                )
            )
    levels = () if plan.target is None else (Level(at=plan.target, words=f"target {written(plan.target, '.4g')}"),)
    spent = np.concatenate([curve.x for curve in curves])
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'curve')}",
        panels=(
            Panel(
                x=Axis.around(spent, log=True, pad=0.03),
                y=axis_around(curves, log=True, pad=0.06),
                curves=tuple(curves),
                levels=levels,
            ),
        ),
        x_label="Cost of all trainings",
        y_label=(f"Standard error of the {'mean' if plan.n_algorithms == 1 else 'difference'}", "Standard error"),
        foot="Where a curve is flat, more units add nothing.",
    )
    return draw_lines(lines, ax)
