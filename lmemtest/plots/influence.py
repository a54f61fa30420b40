"""How much each benchmark, seed or run moves a fit: Cook's distances, with the levels that matter marked."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.lmm.diagnostics.influence import SURPRISING
from lmemtest.plots import _canvas, _rows, _style

_LOOKS = (
    ("changes a decision", {"colour": _style.WARM, "marker": "D"}),
    ("stands out", {"colour": _style.INK, "marker": "s"}),
    ("neither", {"colour": _style.ACCENT, "marker": "o"}),
)


@_canvas.draws("influence", source="influence()")
def influence_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the Cook's distance of each level, the largest first.

    Parameters
    ----------
    result : Answer
        From `LmmFit.influence`.

    Returns
    -------
    Axes
        A row per level, sorted; levels that cannot be left out come first. Beside each row the largest shift of a
        comparison, in standard errors. Colour and shape tell levels without which a verdict changes, and levels that
        stand out more than chance explains, from the others. Of more than 60 levels the first 60 are shown, and those
        that are marked.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 17], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> ax = lt.fit_lmm("loss ~ tool + (1 | task)", table).influence("task").plot()
    >>> ax.get_yticklabels()[0].get_text()
    'f'
    """
    table = result.table.sort_values("cooks_distance", ascending=False, na_position="first", kind="stable")
    changes, outlying = table["n_changed"].to_numpy() > 0, table["chance_p"].to_numpy() < SURPRISING
    marked = changes | outlying
    keep = (np.arange(len(table)) < _rows.MOST_ROWS) | marked
    left_over = int(np.count_nonzero(~keep))
    table, changes, marked = table[keep].assign(none=0.0), changes[keep], marked[keep]
    masks = (changes, marked & ~changes, ~marked)
    kinds = [(name, mask, look) for (name, look), mask in zip(_LOOKS, masks, strict=True)]
    columns = {"centre": "cooks_distance", "ends": ("none", "cooks_distance")}
    series = _rows.Series.kinds(table, np.arange(len(table)), kinds, **columns)
    labels = [str(level) for level in table["level"]]
    aside = ["" if np.isnan(shift) else _style.fixed(abs(float(shift)), 2) for shift in table["largest_shift"]]
    if left_over:
        labels.append(f"and {left_over:,} with less")
    content = _rows.Rows(
        labels=labels,
        series=series,
        headers=frozenset([len(table)] * bool(left_over)),
        aside=tuple(aside),
        aside_title="largest shift (SE)" if any(aside) else "",
        axis_label=f"Cook's distance without one {result.group}",
        reference=0.0,
        legend=len(series) > 1,
    )
    return _rows.draw_rows(content, ax)
