"""Published results over time, with the improvements that noise alone makes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.outperforming.published import BEYOND, FIRST, WITHIN, WORSE, PublishedImprovements
from lmemtest.core.words import percent
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Look, Panel, axis_around, draw_lines

_MARKS = {  # of a conclusion: its name in the legend, shape and colour
    BEYOND: ("significant", "^", _style.colour(2)),
    WITHIN: ("not significant", "X", _style.colour(1)),
    WORSE: ("no improvement", "o", _style.MUTED),
    FIRST: ("first", "s", _style.INK),
}


@_canvas.draws(PublishedImprovements, source="published_improvements()")
def published_improvements_plot(result: PublishedImprovements, /, *, ax: Axes | None = None) -> Axes:
    """Draw published results over time, with a band of what noise can add to the best result so far.

    Parameters
    ----------
    result : PublishedImprovements
        From `lmemtest.bench.outperforming.published.published_improvements`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: a stepped line for the best result so far, a dark band of one standard
        deviation of a score beyond it and a light one up to the threshold, and a mark per result by its conclusion.

    Examples
    --------
    >>> from lmemtest.bench.outperforming.published import published_improvements
    >>> results = {"year": [2015, 2016, 2017, 2018], "accuracy": [0.92, 0.95, 0.955, 0.94]}
    >>> ax = published_improvements(results, score="accuracy", time="year", sd=0.01).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()][-1]
    'first'
    """
    table, side = result.table, 1.0 if result.direction == "maximize" else -1.0
    x, y = table["time"].to_numpy(), table["score"].to_numpy()
    best = side * np.maximum.accumulate(side * y)

    def band(reach: float, name: str, opacity: float) -> Curve:
        ends = np.sort([best, best + side * reach], axis=0)
        look = Look(_style.colour(3))
        return Curve(
            x=x, y=best, low=ends[0], high=ends[1], look=look, opacity=opacity, step=True, name=name, label="",
            band_label="_noise",
        )  # fmt: skip

    curves = [
        band(result.threshold, f"threshold, {percent(result.alpha)}", 0.15),
        band(result.sd, "1 SD", 0.3),
        Curve(x=x, y=best, step=True, look=Look(_style.INK), name="best so far", label="_best", width=0.1),
    ]
    for conclusion, (name, marker, colour) in _MARKS.items():
        chosen = (table["conclusion"] == conclusion).to_numpy()
        if chosen.any():
            curves.append(
                Curve(
                    x=x[chosen], y=y[chosen], look=Look(colour), name=name, marker=marker, size=0.75, width=0.0,
                    label=f"_{conclusion}", front=4,
                )
            )  # fmt: skip
    better = "lower" if result.direction == "minimize" else "higher"
    lines = Lines(
        what=f"a plot of {len(table)} results",
        panels=(Panel(x=Axis.around(x, pad=0.03), y=axis_around(curves), curves=tuple(curves)),),
        x_label=result.time,
        y_label=(f"{result.score} ({better} is better)", result.score),
        foot="Each result is tested by itself against the best of an earlier time.",
    )
    return draw_lines(lines, ax)
