"""Power over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest._rounding import written
from lmemtest.inference.power.power import USUAL_POWER, PowerResult
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, draw_lines, looks
from lmemtest.words import counted


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
        It holds the panel, ``ax.child_axes[0]``. The x axis has the number of benchmarks, the y axis power in percent
        with a line at 80 %; each number of seeds has a line, named at its right end.

    Examples
    --------
    >>> import lmemtest as lt
    >>> plan = {"interaction_sd": 0.02, "residual_sd": 0.03}
    >>> ax = lt.power(plan, effect=0.02, n_benchmarks=[10, 20, 40], n_seeds=[1, 5], method="closed_form").plot()
    >>> [text.get_text() for text in ax.child_axes[0].texts]
    ['80 %', '1 seed', '5 seeds']
    """
    table = result.to_frame().sort_values("n_benchmarks", kind="stable")
    planned = np.unique(table["n_benchmarks"].to_numpy(dtype=float))
    seeds = list(dict.fromkeys(result.to_frame()["n_seeds"]))
    style: dict[str, Any] = {"bars": True, "opacity": 1.0, "width": 0.12, "label": "_power", "band_label": "_interval"}
    curves = []
    for i, (n, look) in enumerate(zip(seeds, looks(len(seeds)), strict=True)):
        rows = table[table["n_seeds"] == n]
        x, name = rows["n_benchmarks"].to_numpy(dtype=float), counted(int(n), "seed")
        shape: dict[str, Any] = {"look": look, "marker": _style.marker(i)}
        curves.append(Curve.of(rows, x, "power", scale=100.0, name=name, **shape, **style))
    x_axis = Axis.around(planned, pad=0.06, ticks=planned, labels=tuple(written(n, ".0f") for n in planned))
    usual = Level(at=100.0 * USUAL_POWER, words=f"{written(100.0 * USUAL_POWER, '.0f')} %")
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(Panel(x=x_axis, y=Axis(limits=(0.0, 100.0)), curves=tuple(curves), levels=(usual,)),),
        beside=True,
        dodge=True,
        x_label="Benchmarks",
        y_label=(f"Power to find a difference of {result.effect:g}, %", "Power, %"),
    )
    return draw_lines(lines, ax)
