"""Figures of Autorank, in the caller's axes: intervals, and four maps of a Bayesian comparison of all pairs.

The maps have probabilities and decisions, in the caller's colours. Rows are A, columns are B; the first of them is the
best, so B starts with the second and A ends before the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from numpy.typing import NDArray

from lmemtest.core.rounding import written
from lmemtest.plots import _canvas, _heat, _style
from lmemtest.plots._rows import Rows, Series, draw_rows

if TYPE_CHECKING:
    import pandas as pd

PALE, DARK = 0.1, 0.85  # the part of a colour map that is used by default: a cell is seen to be one
CMAPS = ("Oranges", "Greys", "Greens", ListedColormap(["#f0f0f0", "#f9a35c", "#b8b8b8", "#5cb88a"]))
INK = (("black", "white"),) * 4
LIGHT = 0.35  # light of a cell from which on it takes the ink for light cells
SIGNS = ("?", "<", "≈", ">")  # inconclusive, A smaller, practically equivalent, A larger
TITLES = ("(a) P(A < B)", "(b) P(A ≈ B)", "(c) P(A > B)", "(d) A is <, ≈ or > B; ? inconclusive")
ABOVE = 2.2  # font sizes, for the title
SQUARE = 0.97  # of the figure that the maps take


def draw_posterior_maps(
    names: Sequence[str],
    probabilities: NDArray[np.float64],
    decisions: NDArray[np.intp],
    *,
    width: float,
    cmaps: Sequence[Any] | None,
    annot_colors: Sequence[Sequence[str]] | None,
    axes: Sequence[Axes] | None,
) -> list[Axes]:
    """Draw ``(3, k, k)`` probabilities of A < B, A ≈ B, A > B and ``(k, k)`` decisions, positions in `SIGNS`.

    Above the diagonal; rows are A. `cmaps` and `annot_colors` are those of the four maps, numbers on light and on dark.
    """
    places = _new_places(width) if axes is None else list(axes)
    for ax in places:
        _canvas.check_axes(ax)
    above = np.triu(np.ones(decisions.shape, dtype=bool), 1)[:-1, 1:]
    maps = [*probabilities[:, :-1, 1:], decisions[:-1, 1:].astype(float)]
    for which, (ax, values) in enumerate(zip(places, maps, strict=True)):
        signs = SIGNS if which == len(maps) - 1 else ()
        colours = _default(CMAPS[which]) if cmaps is None else _resolved(cmaps[which], len(signs))
        norm = Normalize(-0.5, len(signs) - 0.5) if signs else Normalize(0.0, 1.0)
        cells = ScalarMappable(norm, colours)
        plan = _heat.grid(ax, names[:-1], names[1:], f"a map of {len(names)} populations", beside=(0.4, 0.6, 0.6),
                          note="A in rows, B in columns", above=ABOVE)  # fmt: skip
        edges = np.arange(len(names)) - 0.5
        shown = np.ma.masked_where(~above | np.isnan(values), values)
        ax.pcolormesh(edges, edges, shown, cmap=cells.cmap, norm=norm, edgecolors="white", linewidth=0.8)
        ax.set_title(TITLES[which], loc="left", pad=0.5 * plan.font, **_style.text_style(plan.font))
        _write(ax, shown, plan, cells, (INK if annot_colors is None else annot_colors)[which], signs)
    return places


def draw_intervals(
    table: pd.DataFrame,
    names: Sequence[str],
    *,
    label: str,
    letters: Sequence[str],
    ax: Axes | None,
    width: float | None,
) -> Axes:
    """Draw estimates with their intervals, ``ci_low`` to ``ci_high``, from the top, letters beside them."""
    series = Series.of(table, np.arange(len(table), dtype=np.intp))
    rows = Rows(labels=list(names), series=(series,), axis_label=label, aside=tuple(letters))
    return draw_rows(rows, ax, width=width)


def _new_places(width: float) -> list[Axes]:
    """Two by two axes in a square figure."""
    first = _canvas.new_axes(width, width)
    half = SQUARE / 2.0
    corners = [(0.0, 0.5), (0.5, 0.5), (0.0, 0.0), (0.5, 0.0)]
    first.set_position((*corners[0], half, half))
    return [first, *(first.figure.figure.add_axes((*corner, half, half)) for corner in corners[1:])]


def _default(cmap: str | Colormap) -> Colormap:
    """A colour map whose ends can be told from paper and from ink."""
    if isinstance(cmap, Colormap):
        return cmap
    return ListedColormap(mpl.colormaps[cmap](np.linspace(PALE, DARK, 255)))


def _resolved(cmap: Any, count: int) -> Colormap:
    """A colour map by its name, with `count` colours if that is given."""
    found = cmap if isinstance(cmap, Colormap) else mpl.colormaps[cmap]
    return found if count in (0, found.N) else found.resampled(count)


def _write(
    ax: Axes,
    values: np.ma.MaskedArray,
    plan: _heat.Grid,
    cells: ScalarMappable,
    ink: Sequence[str],
    signs: Sequence[str],
) -> None:
    """Numbers or signs in the cells, as far as they can be read."""
    per_point = _style.Ruler(ax, plan.font).width("?" if signs else "0.00") / plan.font
    font = min(0.9 * plan.font, plan.cell[0] / (per_point + 0.5), plan.cell[1] / 1.4)
    if font < _heat.LEAST_NUMBER:
        return
    for row, column in np.argwhere(~np.ma.getmaskarray(values)):
        value = float(values[row, column])
        text = signs[int(value)] if signs else written(value, ".2f")
        colour = ink[int(_heat.luminance(cells.to_rgba(np.array([value]))[0, :3]) < LIGHT)]
        ax.text(column, row, text, ha="center", va="center", **_style.text_style(font, color=colour))
