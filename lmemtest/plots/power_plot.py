"""Power over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.inference.power.power import USUAL_POWER, PowerResult
from lmemtest.plots import _canvas
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, draw_lines, looks
from lmemtest.plots._style import marker
from lmemtest.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def power_plot(result: PowerResult, *, ax: Axes | None = None) -> Axes:
    """Draw the power of planned studies with the simulation's intervals.

    Parameters
    ----------
    result : PowerResult
        From `lmemtest.inference.power.power.power`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the number of benchmarks, the y axis power in percent
        with a line at 80 %; each number of seeds has a line, named at its right end.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `power`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.inference.power.power import power
    >>> from lmemtest.plots.power_plot import power_plot
    >>> plan = {"interaction_sd": 0.02, "residual_sd": 0.03}
    >>> curves = power(plan, effect=0.02, n_benchmarks=[10, 20, 40], n_seeds=[1, 5], method="closed_form")
    >>> ax = power_plot(curves)
    >>> [text.get_text() for text in ax.child_axes[0].texts]
    ['80 %', '1 seed', '5 seeds']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, PowerResult):
        raise ArgumentError(f"result must be the result of power(), got {type(result).__name__}.")
    table = result.to_frame()
    planned = np.unique(table["n_benchmarks"].to_numpy(dtype=float))
    seeds = list(dict.fromkeys(table["n_seeds"]))
    curves = []
    for i, (n, look) in enumerate(zip(seeds, looks(len(seeds)), strict=True)):
        rows = table[table["n_seeds"] == n].sort_values("n_benchmarks", kind="stable")
        power, low, high = (100.0 * rows[name].to_numpy(dtype=float) for name in ("power", "ci_low", "ci_high"))
        curves.append(
            Curve(
                name=counted(int(n), "seed"),
                x=rows["n_benchmarks"].to_numpy(dtype=float),
                y=power,
                low=low,
                high=high,
                bars=True,
                opacity=1.0,
                look=look,
                marker=marker(i),
                width=0.12,
                label="_power",
                band_label="_interval",
            )
        )
    x = Axis.around(planned, pad=0.06, ticks=planned, labels=tuple(written(n, ".0f") for n in planned))
    usual = Level(at=100.0 * USUAL_POWER, words=f"{written(100.0 * USUAL_POWER, '.0f')} %")
    panel = Panel(x=x, y=Axis(limits=(0.0, 100.0)), curves=tuple(curves), levels=(usual,))
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(panel,),
        beside=True,
        dodge=True,
        x_label="Benchmarks",
        y_label=(f"Power to find a difference of {result.effect:g}, %", "Power, %"),
    )
    return draw_lines(lines, ax)
