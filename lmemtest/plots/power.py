"""Power over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.power.power import USUAL_POWER, PowerResult
from lmemtest.core.rounding import written
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, draw_lines, looks


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
    for i, (of, look) in enumerate(zip(lines_of, looks(len(lines_of)), strict=True)):
        rows = table[(table[each] == pd.Series(of)).all(axis=1)]
        parts = [counted(int(n), str(name).removeprefix("n_").removesuffix("s")) for name, n in of.items()]
        x, name = rows[unit].to_numpy(dtype=float), " x ".join(parts)
        shape: dict[str, Any] = {"look": look, "marker": _style.marker(i)}
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
