"""Posterior probabilities of all pairs of algorithms, as maps: better, equivalent, worse, and what is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import Verdict, turned
from lmemtest.core.words import MISSING, listed, span
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _style

SHOWN = ("all", "better", "equivalent", "worse", "decision")
COLUMNS = ("left", "right", "rope", "p_left", "p_equal", "p_right", "verdict")
# in the cells of the decisions
BETTER, EQUIVALENT, WORSE, UNDECIDED = (
    Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE, Verdict.NOT_SIGNIFICANT
)  # fmt: skip
WORDS = {BETTER: "better", EQUIVALENT: "equivalent", WORSE: "worse", UNDECIDED: "undecided"}
SIGNS = {BETTER: "+", EQUIVALENT: "=", WORSE: "−", UNDECIDED: "?"}
COLOURS = {BETTER: _style.ACCENT, EQUIVALENT: _style.PALETTE[4], WORSE: _style.WARM, UNDECIDED: _heat.PALE}
INKS = {BETTER: "white", EQUIVALENT: _style.INK, WORSE: "white", UNDECIDED: _style.MUTED}
KEY_GAP, KEY, KEY_LINE = 1.0, 1.2, 1.9  # font sizes: of what the signs mean, beside the map
WIDEST = 6.5  # inches of one of several maps


@dataclass(frozen=True, slots=True, eq=False)
class _Maps:
    """Matrices of algorithms x algorithms, rows and columns in one order; NaN where a pair has no probabilities."""

    algorithms: tuple[str, ...]
    better: NDArray[np.float64]
    equivalent: NDArray[np.float64]
    decision: NDArray[np.int8]
    rope: NDArray[np.float64]

    @classmethod
    def of(cls, pairs: pd.DataFrame, algorithms: Sequence[str]) -> _Maps:
        k = len(algorithms)
        left, right = (pd.Index(algorithms).get_indexer(pd.Index(pairs[side])) for side in ("left", "right"))
        p_left, p_equal, p_right = (pairs[name].to_numpy(dtype=float) for name in ("p_left", "p_equal", "p_right"))
        better, equivalent = np.full((k, k), np.nan), np.full((k, k), np.nan)
        better[left, right], better[right, left] = p_left, p_right
        equivalent[left, right] = equivalent[right, left] = p_equal
        code = pairs["verdict"].to_numpy(dtype=np.int8)
        code = np.where(code == Verdict.NOT_TESTED, np.int8(UNDECIDED), code)
        decision = np.full((k, k), UNDECIDED, dtype=np.int8)
        decision[left, right], decision[right, left] = code, turned(code)
        return cls(tuple(algorithms), better, equivalent, decision, pairs["rope"].to_numpy(dtype=float))


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
    maps = _maps(pairs, order)
    if show != "all":
        return _draw(maps, show, ax)
    shown = SHOWN[1:] if (maps.rope > 0).any() else ("better", "decision")
    rows = len(shown) // 2
    width, height = (min(x, WIDEST) for x in _size(maps))
    if ax is None:
        ax = _canvas.new_axes(2.0 * width, rows * height)
    _canvas.size_in_points(ax)  # lets a layout engine run before the rectangle is read
    _canvas.bare(ax)
    (x0, y0), (x1, y1) = ax.figure.transSubfigure.inverted().transform(ax.get_window_extent().corners()[[0, 3]])
    width, height = (x1 - x0) / 2.0, (y1 - y0) / rows
    for i, name in enumerate(shown):
        box = (x0 + (i % 2) * width, max(y1 - (1 + i // 2) * height, 0.0), width, height)
        _draw(maps, name, ax.figure.add_axes(box))
    return ax


def _maps(pairs: Ranking | pd.DataFrame, order: Sequence[str] | None) -> _Maps:
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
    return _Maps.of(table, order)


def _draw(maps: _Maps, show: str, ax: Axes | None) -> Axes:
    if show == "decision":
        return _draw_decisions(maps, ax)
    return _heat.draw_heat(_heat_of(maps, show), ax)[0]


def _heat_of(maps: _Maps, show: str) -> _heat.Heat:
    """The map of one of the three probabilities."""
    values, code, label = {
        "better": (maps.better, BETTER, "P(row better)"),
        "equivalent": (maps.equivalent, EQUIVALENT, "P(equivalent)"),
        "worse": (maps.better.T, WORSE, "P(row worse)"),
    }[show]
    bold = (maps.decision == code) & np.isfinite(values)
    return _heat.Heat(
        rows=maps.algorithms,
        columns=maps.algorithms,
        values=values,
        shown=~np.eye(len(maps.algorithms), dtype=bool),
        bold=bold,
        emphasis="decided.",
        palette="from zero",
        most=1.0,
        scale_label=label,
        note=_rope(maps) if show == "equivalent" else "",
    )


def _rope(maps: _Maps) -> str:
    """What counts as equivalent."""
    known = maps.rope[np.isfinite(maps.rope)]
    low, high = float(known.min(initial=np.inf)), float(known.max(initial=0.0))
    by_pair = ", by pair" if low < high else ""
    return f"Equivalent: a difference of at most {span(min(low, high), high, '.3g')}{by_pair}."


def _size(maps: _Maps) -> tuple[float, float]:
    """Inches of a new figure of one map: the key of the decisions is wider than a colour scale."""
    width, height = _heat.figure_size(_heat_of(maps, "better"))
    return width + 2.0 * _style.base_font() / 72.0, height


def _draw_decisions(maps: _Maps, ax: Axes | None) -> Axes:
    """Signs on colours, and what they say beside them."""
    names = maps.algorithms
    if ax is None:
        ax = _canvas.new_axes(*_size(maps))
    exists = ~np.eye(len(names), dtype=bool)
    compared = exists & np.isfinite(maps.better)
    said = {code: word for code, word in WORDS.items() if (maps.decision[compared] == code).any()}
    words = _style.Ruler(ax, 10.0).widest(list(WORDS.values())) / 10.0  # per font size
    plan = _heat.grid(
        ax,
        names,
        names,
        f"a map of {len(names)} x {len(names)} cells",
        beside=(0.0, KEY_GAP + KEY + 0.5 + words, 0.0),
        note="The row against the column.",
        above=0.5,
    )
    edges = np.arange(len(names) + 1) - 0.5
    colours = ListedColormap([COLOURS[code] for code in sorted(COLOURS)])
    values = np.ma.masked_where(~exists, maps.decision)
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8, "vmin": min(COLOURS), "vmax": max(COLOURS)}
    ax.pcolormesh(edges, edges, values, cmap=colours, label="_cells", **look)
    size = min(plan.font, *(0.8 * side for side in plan.cell))
    for row, column in np.argwhere(exists):
        code = Verdict(maps.decision[row, column])
        sign = SIGNS[code] if compared[row, column] else MISSING
        ax.text(column, row, sign, ha="center", va="center", **_style.text_style(size, color=INKS[code]))
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
    for line, (code, word) in enumerate(said.items()):
        at, down = KEY_GAP * plan.font, -(line + 0.5) * KEY_LINE * plan.font
        box = {"boxstyle": "square,pad=0.2", "facecolor": COLOURS[code], "edgecolor": "none"}
        style = _style.text_style(plan.font, color=INKS[code])
        ax.annotate(
            SIGNS[code], (1.0, 1.0), (at + KEY / 2.0 * plan.font, down), ha="center", bbox=box, **place, **style
        )
        start = (at + (KEY + 0.5) * plan.font, down)
        ax.annotate(word, (1.0, 1.0), start, ha="left", **place, **_style.text_style(plan.font))
    return ax
