"""How much each benchmark, seed or run moves a fit: Cook's distances, with the levels that matter marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.inference.diagnostics.influence import SURPRISING, InfluenceResult
from lmemtest.plots import _canvas, _rows, _style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_LEVELS = 60  # rows; more would not fit a page, and the rest matters least

_KINDS = ("flips a verdict", "stands out", "neither")
_COLOURS = (_style.WARM, _style.INK, _style.ACCENT)
_SHAPES = ("D", "s", "o")


def influence_plot(result: InfluenceResult, *, ax: Axes | None = None) -> Axes:
    """Draw the Cook's distance of each level, the largest first.

    Parameters
    ----------
    result : InfluenceResult
        From `lmemtest.inference.diagnostics.influence.influence`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, which grows with
        the number of levels.

    Returns
    -------
    Axes
        A row per level, sorted; levels that cannot be left out come first. Beside each row the largest shift of a
        comparison, in standard errors. Colour and shape tell levels without which a verdict changes, and levels that
        stand out more than chance explains, from the others. Of more than 60 levels the first 60 are shown, and those
        that are marked.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `influence`, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.diagnostics.influence import influence
    >>> from lmemtest.plots.influence_plot import influence_plot
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 17], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> fit = lt.fit_lmm("loss ~ tool + (1 | task)", table)
    >>> ax = influence_plot(influence(fit, "task"))
    >>> ax.get_yticklabels()[0].get_text()
    'f'
    """
    _canvas.check_axes(ax)
    if not isinstance(result, InfluenceResult):
        raise ArgumentError(f"result must be the result of influence(), got {type(result).__name__}.")
    table, left_over = _shown(result.table)
    kind = _kinds(table)
    value = table["cooks_distance"].to_numpy(dtype=float)
    series = []
    for i, (name, colour, shape) in enumerate(zip(_KINDS, _COLOURS, _SHAPES, strict=True)):
        row = np.flatnonzero(kind == i)
        if len(row):
            series.append(
                _rows.Series(
                    name=name,
                    row=row,
                    centre=value[row],
                    low=np.zeros(len(row)),
                    high=value[row],
                    colour=colour,
                    marker=shape,
                )
            )
    labels = [(str(level),) for level in table["level"]]
    aside = _asides(table)
    headers: frozenset[int] = frozenset()
    if left_over:
        headers = frozenset([len(labels)])
        labels.append((f"and {left_over:,} with less",))
        aside.append("")
    content = _rows.Rows(
        labels=tuple(labels),
        series=tuple(series),
        headers=headers,
        aside=tuple(aside),
        aside_title="largest shift (SE)" if any(aside) else "",
        axis_label=f"Cook's distance without one {result.group}",
        reference=0.0,
        legend=len(series) > 1,
    )
    return _rows.draw_rows(content, ax)


def _shown(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The rows of the figure in order, and how many levels are left out."""
    order = table.sort_values("cooks_distance", ascending=False, na_position="first", kind="stable")
    keep = (np.arange(len(order)) < MOST_LEVELS) | (_kinds(order) < len(_KINDS) - 1)
    return order[keep].reset_index(drop=True), int(np.count_nonzero(~keep))


def _kinds(table: pd.DataFrame) -> np.ndarray:
    """Position in `_KINDS` of each row."""
    changes, outlying = table["n_changed"].to_numpy() > 0, table["chance_p"].to_numpy() < SURPRISING
    return np.select([changes, outlying], [0, 1], default=2)


def _asides(table: pd.DataFrame) -> list[str]:
    """The largest shift of a comparison per row, two decimals."""
    return ["" if np.isnan(value) else _style.fixed(abs(float(value)), 2) for value in table["largest_shift"]]
