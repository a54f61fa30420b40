"""Densities of the scores of each source beside normal ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.variation.source_normality import FEW, SourceNormality
from lmemtest.core.rounding import at_most
from lmemtest.core.words import counted, format_level
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis, Cell
from lmemtest.plots._lines import Lines, Panel, draw_lines

_TALL, _BASE = 0.8, 0.4  # height of a density, and place of its foot below the middle of the row
_ROW = 34.0  # points of a row in a new figure


@_canvas.draws(SourceNormality, source="VarianceStudy.normality()")
def source_normality_plot(normality: SourceNormality, /, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the scores of each source, one panel per algorithm and benchmark.

    Parameters
    ----------
    normality : SourceNormality
        From `VarianceStudy.normality`.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``: a row per source with its kernel density and, as a line, the normal
        density with the same mean and standard deviation, both at the scale of the row. A star marks sources for which
        a normal shape is rejected.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure G.3

    Examples
    --------
    >>> import numpy as np, lmemtest as lt
    >>> rng = np.random.default_rng(1)
    >>> table = {"data": [*range(30), *[0] * 29], "init": [*[0] * 30, *range(1, 30)], "accuracy": rng.normal(size=59)}
    >>> ax = lt.variance_study(table, score="accuracy", sources=["data", "init"]).normality().plot()
    >>> [label.get_text() for label in ax.child_axes[0].get_yticklabels()]
    ['data', 'init']
    """
    sources = list(dict.fromkeys(normality.table["source"]))
    rows = Axis(
        limits=(len(sources) - 0.5, -0.5),
        ticks=np.arange(len(sources), dtype=float),
        labels=tuple(map(_style.one_line, sources)),
        every=True,
    )
    keys = normality.table[[*normality.by]].drop_duplicates().to_dict("records") if normality.by else [{}]
    panels = []
    for key in keys:
        table, curves = (_rows(frame, key) for frame in (normality.table, normality.densities))
        title = (" on ".join(map(format_level, key.values())),) if key else ()
        draw = partial(_draw, table=table, curves=curves, sources=sources, alpha=normality.alpha)
        panels.append(Panel(x=Axis.around(curves["score"].to_numpy(dtype=float)), y=rows, title=title, draw=draw))
    few = f" Rows without a curve: fewer than {FEW} scores." if (normality.table["n"] < FEW).any() else ""
    star = at_most(normality.table["p_value"].to_numpy(dtype=float), normality.alpha).any()
    lines = Lines(
        what=f"a plot of {counted(len(sources), 'source')} in {counted(len(panels), 'panel')}",
        panels=tuple(panels),
        x_label=normality.score,
        y_label=("Source that varies", "Source"),
        foot=(
            "Filled: kernel density; line: normal density with the same mean and standard deviation."
            + (f" Star: not normal (Shapiro-Wilk, Holm, level {normality.alpha:g})." if star else "")
            + few
        ),
        guides=False,
        smallest=(8.0, 1.3 * len(sources)),
    )
    return draw_lines(lines, ax, height=max(_ROW * len(sources), 72.0))


def _rows(table: pd.DataFrame, key: dict[Any, Any]) -> pd.DataFrame:
    for role, level in key.items():
        table = table[table[role] == level]
    return table


def _draw(
    box: Axes, place: Cell, font: float, *, table: pd.DataFrame, curves: pd.DataFrame, sources: list[str], alpha: float
) -> None:
    del place
    box.tick_params(axis="y", length=0)
    for row in table.to_dict("records"):
        at = sources.index(row["source"]) + _BASE
        curve = curves[curves["source"] == row["source"]]
        box.axhline(at, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
        if curve.empty:
            continue
        x, heights, normal = (curve[name].to_numpy(dtype=float) for name in ("score", "density", "normal"))
        scale = _TALL / max(heights.max(), normal.max())
        area = box.fill_between(x, at, at - scale * heights, color=_style.ACCENT, alpha=0.4, linewidth=0.0, zorder=2)
        area.set_label("_density")
        line: dict[str, Any] = {"linewidth": 0.1 * font, "linestyle": "-", "marker": "none", "zorder": 3}
        box.plot(x, at - scale * normal, color=_style.INK, label="_normal", **line)
        if at_most(row["p_value"], alpha):
            star: dict[str, Any] = {"marker": "*", "markersize": 0.8 * font, "markeredgewidth": 0, "linestyle": "none"}
            top = float(x[heights.argmax()])
            box.plot([top], [at - _TALL - 0.05], color=_style.WARM, label="_star", clip_on=False, **star)
