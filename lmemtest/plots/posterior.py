"""Posterior probabilities of all pairs as maps, the draws of one pair, and the figures of Autorank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgb
from numpy.typing import NDArray

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array, Mask
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import Verdict, turned
from lmemtest.core.words import MISSING, listed, span
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _layout, _style
from lmemtest.plots._rows import Rows, Series, draw_rows

SHOWN = ("all", "better", "equivalent", "worse", "decision")
COLUMNS = ("left", "right", "rope", "p_left", "p_equal", "p_right", "verdict")
# in the cells of the decisions
BETTER, EQUIVALENT, WORSE, UNDECIDED = (
    Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE, Verdict.NOT_SIGNIFICANT
)  # fmt: skip
WORDS = {BETTER: "better", EQUIVALENT: "equivalent", WORSE: "worse", UNDECIDED: "undecided"}
SIGNS = {BETTER: "+", EQUIVALENT: "=", WORSE: "−", UNDECIDED: "?"}
COLOURS = {BETTER: _style.ACCENT, EQUIVALENT: _style.PALETTE[4], WORSE: _style.WARM, UNDECIDED: _heat.PALE}
INKS = {code: str(_style.ink_on(to_rgb(ground))) for code, ground in COLOURS.items()}
KEY_GAP, KEY, KEY_LINE = 1.0, 1.2, 1.9  # font sizes: of what the signs mean, beside the map
WIDEST = 6.5  # inches of one of several maps
SIDE_BY_SIDE = 5.0  # inches from which two maps are beside each other, ...
MOST_BESIDE = 12  # ... of so many algorithms at most


@_canvas.draws(Ranking, pd.DataFrame, source="rank(method='bayesian') or a table of its pairs")
def posterior_maps_plot(
    pairs: Ranking | pd.DataFrame,
    /,
    *,
    show: str = "all",
    order: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior probabilities of all pairs of algorithms, and what they decide.

    Parameters
    ----------
    pairs : Ranking or pandas.DataFrame
        A Bayesian ranking; or its pairs, with the columns ``left``, ``right``, ``rope``, ``p_left``, ``p_equal``,
        ``p_right`` and ``verdict`` (1: left is better, 2: equivalent, -1: right is better, 0: undecided).
    show : {"all", "better", "equivalent", "worse", "decision"}
        Which map: the probability that the row is practically better than the column, equivalent to it or worse, the
        decisions; or all of them, of which those of "equivalent" and "worse" are left out where there is no region of
        practical equivalence and they have nothing to add.
    order : sequence of str, optional
        The algorithms of rows and columns; by default best first as in the ranking, or as they occur in the table.

    Returns
    -------
    Axes
        Row i, from the top, and column i, from the left, are the same algorithm. Of several maps each has axes of its
        own, those that follow in ``ax.figure.axes``.

    Notes
    -----
    Bold numbers belong to decided pairs, or dots where the cells are too small for numbers. A pair without
    probabilities has a dash.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> pairs = pd.DataFrame({"left": ["A", "A", "B"], "right": ["B", "C", "C"], "rope": 0.1,
    ...                       "p_left": [0.97, 0.6, 0.0], "p_equal": [0.02, 0.3, 0.99], "p_right": [0.01, 0.1, 0.01],
    ...                       "verdict": [1, 0, 2]})
    >>> [label.get_text() for label in lt.plots.posterior_maps_plot(pairs, show="better").get_yticklabels()]
    ['A', 'B', 'C']
    """
    check_choice(show, "show", SHOWN)
    names, better, equivalent, decision, rope = _matrices(pairs, order)
    has_rope = bool((rope > 0).any())
    maps = (show,) if show != "all" else SHOWN[1:] if has_rope else ("better", "decision")
    exists = ~np.eye(len(names), dtype=bool)
    heats = {
        name: _heat.Heat(
            of="pairs",
            rows=names,
            columns=names,
            values=values,
            shown=exists,
            bold=(decision == code) & np.isfinite(values),
            emphasis="decided.",
            palette="from zero",
            most=1.0,
            decimals=2,
            scale_label=label,
            note=[_rope(rope)] if name == "equivalent" else [],
        )
        for name, values, code, label in (
            ("better", better, BETTER, "P(row better)"),
            ("equivalent", equivalent, EQUIVALENT, "P(equivalent)"),
            ("worse", better.T, WORSE, "P(row worse)"),
        )
    }
    width, height = _heat.figure_size(heats["better"])
    width += 2.0 * _style.base_font() / 72.0  # the key of the decisions is wider than a colour scale
    if len(maps) == 1:
        if show == "decision":
            axes = _canvas.new_axes(_canvas.figure_width(width), height) if ax is None else ax
            return _draw_decisions(names, decision, exists, exists & np.isfinite(better), axes)
        return _heat.draw_heat(heats[show], ax)[0]
    width, height = min(width, WIDEST), min(height, WIDEST)
    inches = _canvas.figure_width(2.0 * width)
    few = len(names) <= MOST_BESIDE
    across = 1 if ax is None and (inches < SIDE_BY_SIDE or not few) else 2
    rows = len(maps) // across
    if ax is None:
        ax = _canvas.new_axes(inches, rows * height)
    _canvas.size_in_points(ax)  # lets a layout engine run before the rectangle is read
    _canvas.bare(ax)
    (x0, y0), (x1, y1) = ax.figure.transSubfigure.inverted().transform(ax.get_window_extent().corners()[[0, 3]])
    width, height = (x1 - x0) / across, (y1 - y0) / rows
    for i, name in enumerate(maps):
        corner = x0 + (i % across) * width, max(y1 - (1 + i // across) * height, 0.0)
        box = ax.figure.add_axes((*corner, width, height))
        if name == "decision":
            _draw_decisions(names, decision, exists, exists & np.isfinite(better), box)
        else:
            _heat.draw_heat(heats[name], box)
    return ax


def _matrices(
    pairs: Ranking | pd.DataFrame, order: Sequence[str] | None
) -> tuple[list[str], Array, Array, NDArray[np.int8], Array]:
    """Algorithms; of the row against the column the probabilities better and equivalent (NaN where there are none) and
    the decision; and the rope of each pair."""
    table = pairs.pairs.assign(verdict=pairs.codes) if isinstance(pairs, Ranking) else pairs
    if "p_left" not in table.columns and isinstance(pairs, Ranking):
        raise ArgumentError(
            f"pairs must be a ranking by posterior probabilities, got one by {pairs.method!r}: "
            "rank(..., method='bayesian')."
        )
    if lacking := [name for name in COLUMNS if name not in table.columns]:
        raise ArgumentError(f"pairs must have the columns {listed(COLUMNS)}; it lacks {listed(lacking)}.")
    if table.empty:
        raise ArgumentError("pairs must have at least one pair, got an empty table.")
    present = list(dict.fromkeys([*table["left"], *table["right"]]))
    if order is None:
        order = [name for name in pairs.levels if name in present] if isinstance(pairs, Ranking) else present
    order = [str(name) for name in order] if not isinstance(order, str) else [order]
    if sorted(order) != sorted(present):
        raise ArgumentError(
            f"order must have each algorithm of the pairs once, {listed(present)}; got {listed(order)}."
        )
    left, right = (pd.Index(order).get_indexer(pd.Index(table[side])) for side in ("left", "right"))
    better, equivalent = np.full((2, len(order), len(order)), np.nan)
    better[left, right], better[right, left] = table["p_left"].to_numpy(float), table["p_right"].to_numpy(float)
    equivalent[left, right] = equivalent[right, left] = table["p_equal"].to_numpy(float)
    code = table["verdict"].to_numpy(dtype=np.int8)
    code = np.where(code == Verdict.NOT_TESTED, np.int8(UNDECIDED), code)
    decision = np.full((len(order), len(order)), UNDECIDED, dtype=np.int8)
    decision[left, right], decision[right, left] = code, turned(code)
    return order, better, equivalent, decision, table["rope"].to_numpy(dtype=float)


def _rope(rope: Array) -> str:
    """What counts as equivalent."""
    finite = rope[np.isfinite(rope)]
    low, high = float(finite.min(initial=np.inf)), float(finite.max(initial=0.0))
    by_pair = ", by pair" if low < high else ""
    return f"Equivalent: a difference of at most {span(min(low, high), high, '.3g')}{by_pair}."


def _draw_decisions(names: Sequence[str], decision: NDArray[np.int8], exists: Mask, compared: Mask, ax: Axes) -> Axes:
    """Signs on colours, and what they say beside them."""
    present = [code for code in WORDS if (decision[compared] == code).any()]
    ruler = _style.Ruler(ax, 10.0)
    wide = [KEY + 0.5 + ruler.width(WORDS[code]) / 10.0 for code in present]  # per font size
    narrow = _canvas.size_in_points(ax)[0] < _heat.NARROW  # the key is above the map
    what, above = f"a map of {len(names)} x {len(names)} cells", 0.5 + KEY_LINE * narrow
    beside = (0.0, 0.5 if narrow else KEY_GAP + max(wide, default=0.0))
    note = ["The row against the column."]
    font, _, cell, _ = _heat.grid(ax, names, names, what, beside=beside, note=note, above=above)
    edges = np.arange(len(names) + 1) - 0.5
    colours = ListedColormap([COLOURS[code] for code in sorted(COLOURS)])
    values = np.ma.masked_where(~exists, decision)
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8, "vmin": min(COLOURS), "vmax": max(COLOURS)}
    ax.pcolormesh(edges, edges, values, cmap=colours, label="_cells", **look)
    size = min(font, *(0.8 * side for side in cell))
    for row, column in np.argwhere(exists):
        code = Verdict(decision[row, column])
        sign = SIGNS[code] if compared[row, column] else MISSING
        ax.text(column, row, sign, ha="center", va="center", **_style.text_style(size, color=INKS[code]))
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
    ends = np.cumsum([width + KEY_GAP for width in wide]) - (sum(wide) + KEY_GAP * len(wide)) - 0.5
    for line, code in enumerate(present):
        at, down = KEY_GAP * font, -(line + 0.5) * KEY_LINE * font
        if narrow:
            at, down = (ends[line] - wide[line]) * font, 0.5 * KEY_LINE * font
        box = {"boxstyle": "square,pad=0.2", "facecolor": COLOURS[code], "edgecolor": "none"}
        style = _style.text_style(font, color=INKS[code])
        ax.annotate(SIGNS[code], (1.0, 1.0), (at + KEY / 2.0 * font, down), ha="center", bbox=box, **place, **style)
        start = (at + (KEY + 0.5) * font, down)
        ax.annotate(WORDS[code], (1.0, 1.0), start, ha="left", **place, **_style.text_style(font))
    return ax


SIDE = 5.0  # inches of the triangle
HEIGHT = 3.2  # inches of the histogram
LEAST_EQUIVALENT = 0.1  # a draw with more makes it a triangle, as in baycomp
BINS = 50
CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(0.75)], [1.0, 0.0]])  # left larger, equivalent, right larger


def draw_posterior(sample: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    """Draw ``(n, 3)`` draws of the probabilities of left larger, equivalent, right larger, and their `chances`."""
    if sample[:, 1].max() < LEAST_EQUIVALENT:
        return _histogram(sample[:, 2], chances, names)
    return _triangle(sample, chances, names)


def _with_chance(name: str, chance: float) -> str:
    return f"{_style.one_line(name)}: {written(float(chance), '.3f')}"


def _histogram(right: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    font = _style.base_font()
    ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, HEIGHT)
    _canvas.leave_margins(ax, 2 * font, 4 * font, 2 * font, 2.5 * font)
    _layout.open_panel(ax, font, edges=("bottom",))
    ax.hist(right, BINS, range=(0.0, 1.0), color=_style.ACCENT)
    ax.axvline(0.5, color=_style.INK, linewidth=0.8)
    ax.set_xlim(0.0, 1.0)
    ax.set_yticks([])
    ax.set_xlabel(f"Probability that {_style.one_line(names[1])} is larger, by draw", **_style.text_style(font))
    for x, side, name, chance in ((0.0, "left", names[0], chances[0]), (1.0, "right", names[1], chances[2])):
        place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom", "ha": side}
        text = _with_chance(f"P({name} larger)", chance)
        ax.annotate(text, (x, 1.0), (0.0, 0.6 * font), **place, **_style.text_style(font))
    return ax


def _triangle(sample: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    font = _style.base_font()
    ax = _canvas.new_axes(SIDE, SIDE)
    _canvas.bare(ax)
    ax.set_aspect("equal")
    ax.set_xlim(-0.25, 1.25)
    ax.set_ylim(-0.3, 1.2)
    outline = CORNERS[[0, 1, 2, 0]]
    places = sample @ CORNERS
    ax.hexbin(*places.T, gridsize=50, mincnt=1, cmap=_style.SEQUENTIAL, extent=(0.0, 1.0, 0.0, 1.0), linewidths=0.1)
    ax.plot(*outline.T, color=_style.INK, linewidth=0.9)
    middle = CORNERS.mean(axis=0)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        edge = (CORNERS[one] + CORNERS[other]) / 2.0
        ax.plot(*np.stack([middle, edge]).T, color=_style.MUTED, linewidth=0.7)
    texts = (f"P({names[0]} larger)", "P(equivalent)", f"P({names[1]} larger)")
    for (x, y), text, chance in zip(CORNERS, texts, chances, strict=True):
        ax.text(x, y + (0.03 if y else -0.04), _with_chance(text, chance), ha="center", va="bottom" if y else "top",
                **_style.text_style(font))  # fmt: skip
    return ax


PALE, DARK = 0.1, 0.85  # the part of a colour map that is used by default: a cell is seen to be one
CMAPS = ("Oranges", "Greys", "Greens", ListedColormap(["#f0f0f0", "#f9a35c", "#b8b8b8", "#5cb88a"]))
INK = (("black", "white"),) * 4  # on light cells, and on dark ones
SIGNS_OF_A = ("?", "<", "≈", ">")  # inconclusive, A smaller, practically equivalent, A larger
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
    """Draw ``(3, k, k)`` probabilities of A < B, A ≈ B, A > B and ``(k, k)`` decisions, positions in `SIGNS_OF_A`.

    Above the diagonal; rows are A. `cmaps` and `annot_colors` are those of the four maps, numbers on light and on dark.
    """
    places = _new_places(width) if axes is None else list(axes)
    for ax in places:
        _canvas.check_axes(ax)
    above = np.triu(np.ones(decisions.shape, dtype=bool), 1)[:-1, 1:]
    maps = [*probabilities[:, :-1, 1:], decisions[:-1, 1:].astype(float)]
    for which, (ax, values) in enumerate(zip(places, maps, strict=True)):
        signs = SIGNS_OF_A if which == len(maps) - 1 else ()
        colours = _default(CMAPS[which]) if cmaps is None else _resolved(cmaps[which], len(signs))
        norm = Normalize(-0.5, len(signs) - 0.5) if signs else Normalize(0.0, 1.0)
        cells = ScalarMappable(norm, colours)
        what, note = f"a map of {len(names)} populations", ["A in rows, B in columns"]
        font, _, cell, _ = _heat.grid(ax, names[:-1], names[1:], what, beside=(0.4, 0.6), note=note, above=ABOVE)
        edges = np.arange(len(names)) - 0.5
        painted = np.ma.masked_where(~above | np.isnan(values), values)
        ax.pcolormesh(edges, edges, painted, cmap=cells.cmap, norm=norm, edgecolors="white", linewidth=0.8)
        ax.set_title(TITLES[which], loc="left", pad=0.5 * font, **_style.text_style(font))
        ink = (INK if annot_colors is None else annot_colors)[which]
        per_point = _style.Ruler(ax, font).width("?" if signs else "0.00") / font
        size = min(0.9 * font, cell[0] / (per_point + 0.5), cell[1] / 1.4)
        for row, column in np.argwhere(~np.ma.getmaskarray(painted)) if size >= _heat.LEAST_NUMBER else ():
            value = float(painted[row, column])
            text = signs[int(value)] if signs else written(value, ".2f")
            colour = ink[int(_style.light(cells.to_rgba(np.array([value]))[0, :3]) <= _style.DARK)]
            ax.text(column, row, text, ha="center", va="center", **_style.text_style(size, color=colour))
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
    colormap = cmap if isinstance(cmap, Colormap) else mpl.colormaps[cmap]
    return colormap if count in (0, colormap.N) else colormap.resampled(count)
