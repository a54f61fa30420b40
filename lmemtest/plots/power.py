"""How many: power over the number of benchmarks, and the least standard error over the budget."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.power.plan import BEST, CURRENT, IDEAL, Plan
from lmemtest.bench.power.power import USUAL_POWER, PowerResult
from lmemtest.core.rounding import written
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, axis_around, draw_lines, looks

_SEEN = 0.005  # of a standard error: differences that are less than the width of a line


@_canvas.draws(PowerResult, source="power()")
def power_plot(result: PowerResult, /, *, ax: Axes | None = None) -> Axes:
    """Draw the power of planned studies with the simulation's intervals.

    Parameters
    ----------
    result : PowerResult
        From `lmemtest.power`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the number of benchmarks (families, where these are
        planned), the y axis power in percent with a line at 80 %; each number of seeds (and of benchmarks of a family)
        has a line, named at its right end.

    Examples
    --------
    >>> import lmemtest as lt
    >>> plan = {"interaction_sd": 0.02, "residual_sd": 0.03}
    >>> ax = lt.power(plan, effect=0.02, n_benchmarks=[10, 20, 40], n_seeds=[1, 5], method="closed_form").plot()
    >>> [text.get_text() for text in ax.child_axes[0].texts]
    ['80 %', '1 seed', '5 seeds']
    """
    unit, each = ("n_families", ["n_benchmarks", "n_seeds"]) if result.of_families else ("n_benchmarks", ["n_seeds"])
    table = result.to_frame().sort_values(unit, kind="stable")
    planned = np.unique(table[unit].to_numpy(dtype=float))
    lines_of = result.to_frame()[each].drop_duplicates().to_dict("records")
    style: dict[str, Any] = {"bars": True, "opacity": 1.0, "width": 0.12, "label": "_power", "band_label": "_interval"}
    curves = []
    for i, (of, look) in enumerate(zip(lines_of, looks(range(len(lines_of))), strict=True)):
        rows = table[(table[each] == pd.Series(of)).all(axis=1)]
        parts = [counted(int(n), str(name).removeprefix("n_").removesuffix("s")) for name, n in of.items()]
        x, name = rows[unit].to_numpy(dtype=float), " x ".join(parts)
        shape: dict[str, Any] = {**look, "marker": _style.marker(i)}
        curves.append(Curve.of(rows, x, "power", scale=100.0, name=name, **shape, **style))
    x_axis = Axis.around(planned, pad=0.06, ticks=planned, labels=tuple(written(n, ".0f") for n in planned))
    usual = Level(at=100.0 * USUAL_POWER, words=f"{written(100.0 * USUAL_POWER, '.0f')} %")
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(Panel(x=x_axis, y=Axis(limits=(0.0, 100.0)), curves=tuple(curves), levels=(usual,)),),
        beside=True,
        dodge=True,
        x_label="Families" if result.of_families else "Benchmarks",
        y_label=(f"Power to find a difference of {result.effect:g}, %", "Power, %"),
    )
    return draw_lines(lines, ax)


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
    for name, look in zip(names, looks(range(len(names)), dashed=True), strict=True):
        part = table[(table["curve"] == name) & (table["standard_error"] > 0.0)]
        x = part["cost"].to_numpy(dtype=float)
        curves.append(
            Curve.of(
                part,
                x,
                "standard_error",
                None,
                name=_NAMES.get(name, name),
                **look,
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
                    colour=_style.INK,
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
        foot=" ".join(["Where a curve is flat, more units do not reduce the standard error.", *_coinciding(curves)]),
    )
    return draw_lines(lines, ax)


def _coinciding(curves: Sequence[Curve]) -> list[str]:
    """Which curves lie on each other, so that only the last of them is seen."""
    lines = [curve for curve in curves if curve.width > 0.0]
    return [
        f"{one.name.capitalize()} and {other.name} coincide."
        for one, other in combinations(lines, 2)
        if one.x.shape == other.x.shape and np.allclose(one.x, other.x) and np.allclose(one.y, other.y, rtol=_SEEN)
    ]
