"""All pairs: intervals of few differences, a matrix of many, each row against each column, and p-values in classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array
from lmemtest.core.options import ERROR_NAMES
from lmemtest.core.rounding import below, in_tie_order
from lmemtest.core.words import format_level, format_p
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _heat, _layout, _rows, _style
from lmemtest.plots._given import adjustment_name, decided_by, first_group, interval_words, omnibus_text, pair_matrix

UNTESTED = "no test"
MOST_PAIRS = 66  # 12 means; more rows do not fit a page


@_canvas.draws(Comparisons, source="pairs()")
def pairs_plot(pairs: Comparisons, /, *, ax: Axes | None = None) -> Axes:
    """Draw pairwise differences with their confidence intervals.

    Parameters
    ----------
    pairs : Comparisons
        From `Estimates.pairs`. More than 66 differences do not fit a page: those of one group are drawn by
        `pairs_matrix_plot`.

    Returns
    -------
    Axes
        The x axis is a difference on the scale of the model's response; row i is at y = i. Of means with a direction
        the better one comes first in its row, and rows are ordered by means, so that all differences have one sign. Of
        more than 66 differences that of `pairs_matrix_plot`.

    Raises
    ------
    ArgumentError
        If `pairs` are no pairs, more than 66 in several groups, or `ax` is too small.

    Notes
    -----
    A difference is significant, and drawn with a filled dot, if its adjusted p-value (beside the row) is below one
    minus the confidence level, which is where its interval excludes zero. Groups of `by` have a heading each.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> pairs = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm").pairs()
    >>> [label.get_text() for label in lt.plots.pairs_plot(pairs).get_yticklabels()]
    ['A − B', 'A − C', 'B − C']
    """
    _check_pairs(pairs)
    table = pairs.best_first().to_frame()
    if len(table) > MOST_PAIRS and not pairs.by:
        return pairs_matrix_plot(pairs, ax=ax)
    if len(table) > MOST_PAIRS:
        raise ArgumentError(
            f"pairs_plot draws at most {MOST_PAIRS} differences in groups, got {len(table)}. Select one group: "
            f"pairs.select({first_group(pairs)})."
        )
    labels: list[str | tuple[str, ...]] = []
    headers: list[int] = []
    row = np.zeros(len(table), dtype=np.intp)
    current = None
    for position, record in enumerate(table.to_dict("records")):
        group = tuple(record[name] for name in pairs.by)
        if pairs.by and group != current:
            current = group
            headers.append(len(labels))
            labels.append(", ".join(f"{n} = {format_level(v)}" for n, v in zip(pairs.by, group, strict=True)))
        row[position] = len(labels)
        labels.append((str(record["left"]), str(record["right"])))
    aside = [""] * len(labels)
    for at, value in zip(row, table["p_value"], strict=True):
        aside[at] = UNTESTED if np.isnan(value) else format_p(value, level=1.0 - pairs.level)
    intervals = interval_words(pairs.intervals, pairs.level, several=len(table) > 1)
    method = [] if pairs.adjust == "stepdown" else [adjustment_name(pairs.adjust)]  # which the intervals name
    method += [f"{ERROR_NAMES[pairs.errors]} standard errors"] if pairs.errors in ERROR_NAMES else []
    made = f" ({', '.join(method)})" if method else ""
    score = _style.one_line(pairs.estimates.score)
    better = {"minimize": " (negative: the first is better)", "maximize": " (positive: the first is better)"}
    reading = better.get(pairs.direction or "", "")
    content = _rows.Rows(
        labels=labels,
        series=_decisions(pairs, table, row),
        headers=frozenset(headers),
        aside=tuple(aside),
        aside_title="p-value",
        reference=0.0,
        legend=True,
        axis_label=f"Difference of marginal means of {score}{reading}\n{intervals}{made}",
    )
    return _rows.draw_rows(content, ax)


def _check_pairs(pairs: Comparisons) -> None:
    if pairs.kind != "pairs":
        raise ArgumentError(f"pairs must be the result of pairs(), got comparisons of the kind {pairs.kind!r}.")


def _significant(pairs: Comparisons, p: np.ndarray) -> np.ndarray:
    return below(p, 1.0 - pairs.level)


def _decisions(pairs: Comparisons, table: pd.DataFrame, row: np.ndarray) -> tuple[_rows.Series, ...]:
    significant = _significant(pairs, table["p_value"].to_numpy(dtype=float))
    alpha, tested = f"{1 - pairs.level:.3g}", table["p_value"].notna().to_numpy()
    undecided = UNTESTED if np.isfinite(table["estimate"][~tested]).any() else ""
    open_dot = {"colour": _style.NEUTRAL, "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (
        (f"p < {alpha}", significant, {}),
        (f"p ≥ {alpha}", ~significant & tested, open_dot),
        (undecided, ~tested, open_dot),
    )
    return _rows.Series.kinds(table, row, kinds)


@_canvas.draws(Comparisons, source="pairs()")
def pairs_matrix_plot(pairs: Comparisons, /, *, ax: Axes | None = None) -> Axes:
    """Draw pairwise differences as a triangular matrix, for any number of means.

    Parameters
    ----------
    pairs : Comparisons
        From `Estimates.pairs`, in one group.

    Returns
    -------
    Axes
        Means are ordered best first (ascending without a direction); cell (x, y) compares mean x with mean y + 1 of
        this order.

    Raises
    ------
    ArgumentError
        If `pairs` are no pairs or in several groups, or `ax` is too small.

    Notes
    -----
    Cells show by how much the column is better than the row, or lower if the direction is unknown. Only significant
    differences (adjusted p-value below one minus the confidence level) are coloured; a pair without a test is undecided
    and says so. Where the cells are large enough they hold the difference and the p-value below it, or the p-value
    alone.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> pairs = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm").pairs()
    >>> [label.get_text() for label in lt.plots.pairs_matrix_plot(pairs).get_yticklabels()]
    ['B', 'C']
    """
    _check_pairs(pairs)
    if pairs.by:
        raise ArgumentError(
            f"pairs_matrix_plot draws one group, but these pairs are in groups by {', '.join(pairs.by)}. "
            f"Select one first: pairs.select({first_group(pairs)})."
        )
    table = pairs.to_frame()
    means = dict(zip(pairs.levels, map(float, pairs.estimates.estimate), strict=True))
    sign = -1.0 if pairs.direction == "maximize" else 1.0
    # best first; without a direction ascending, and without a mean last
    order = in_tie_order(pairs.levels, lambda v: sign * means[v] if np.isfinite(means[v]) else np.nan)
    place = {level: position for position, level in enumerate(order)}
    left, right = (table[side].map(place).to_numpy() for side in ("left", "right"))
    estimate = table["estimate"].to_numpy(dtype=float)
    # the column comes first in the order, so its mean is the better one and differences have one sign
    advantage = sign * np.where(left < right, -estimate, estimate)
    values, p = (np.full((len(order), len(order)), np.nan) for _ in range(2))
    cells = np.maximum(left, right), np.minimum(left, right)
    values[cells] = advantage
    p[cells] = table["p_value"].to_numpy(dtype=float)
    alpha = _style.nobreak(f"p < {1 - pairs.level:.3g}")
    note = f"Coloured: significant difference ({adjustment_name(pairs.adjust)}, {alpha})."
    if untested := int(np.isnan(p[cells]).sum()):
        note += f" {untested} of {len(table)} pairs {'has' if untested == 1 else 'have'} no test: undecided."
    relation = "lower" if pairs.direction is None else "better"
    heat = _heat.Heat(
        of="pairs",
        rows=order[1:],
        columns=order[:-1],
        values=values[1:, :-1],
        shown=np.tri(len(order), k=-1, dtype=bool)[1:, :-1],
        coloured=_significant(pairs, p)[1:, :-1],
        layers=(tuple(tuple(map(_cell, line)) for line in p[1:, :-1]),),
        palette="from zero",
        scale_label=f"Column {relation} by ({_style.one_line(pairs.estimates.score)})",
        note=[note],
    )
    return _heat.draw_heat(heat, ax)[0]


def _cell(p: float) -> str:
    text = format_p(p)
    return UNTESTED if np.isnan(p) else f"p{text}" if text.startswith("<") else f"p={text}"


@_canvas.draws(source="rank(), pairs(), decisions(), or means beside decisions")
def comparison_matrix_plot(
    comparisons: Ranking | Comparisons | Decisions | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    wins: Any = None,
    ties: Any = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw all pairwise comparisons: in each cell the row against the column.

    Parameters
    ----------
    comparisons : Ranking, Comparisons, Decisions, or means
        From `rank`, `Estimates.pairs` or `decisions`; or means of any other analysis as `Decisions.of` takes them,
        beside their `decisions`.
    decisions : pandas.DataFrame or array, optional
        Where means are given: adjusted p-values, or booleans that are True where a difference is significant.
    wins, ties : pandas.DataFrame or array, optional
        Where means are given: on how many benchmarks the row was better than the column, and the same.
    **options
        Where means are given, those of `Decisions.of`: ``direction``, ``alpha``, ``score``, ``statistic``, ``test``.

    Returns
    -------
    Axes
        Algorithms are in the order of the ranking, best first; cell (x, y) is row y against column x.

    Raises
    ------
    ArgumentError
        If an argument is something else, or `ax` is too small for the numbers.

    Notes
    -----
    A cell holds the difference, row minus column; wins, ties and losses of the row; and the adjusted p-value, or the
    posterior probability that the row is better. Its colour is the difference, blue where the row is better. It is bold
    where the difference is significant, and this is read from the one matrix of decisions: the order of the algorithms
    and the direction of the score cannot change it. Where cells are small, the difference and the p-value remain.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> names = ["A", "B", "C"]
    >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], names, names)
    >>> ax = lt.plots.comparison_matrix_plot({"A": 0.91, "B": 0.84, "C": 0.82}, p, direction="maximize")
    >>> [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"][0]
    '0.0700\\n0.040'
    """
    decided, cells, (unit, what, direction) = pair_matrix(comparisons, decisions, wins, ties, options)
    heat = _heat.Heat(
        of="pairs",
        rows=decided.levels,
        columns=decided.levels,
        values=cells["difference"],
        shown=~np.eye(len(decided.levels), dtype=bool),
        bold=decided.significant.to_numpy(dtype=bool),
        layers=tuple(_layers(decided, cells)),
        all_numbers=True,
        head_share=_heat.LABEL_SHARE,
        palette="high is blue" if direction == "maximize" else "low is blue",
        scale_label=f"Row − column ({_style.one_line(unit)})",
        emphasis=f"{'decided' if decided.posterior else 'significant'} ({decided_by(decided)}).",
        note=[_note(decided, direction)],
        reading=_reading(cells, what),
    )
    return _heat.draw_heat(heat, ax)[0]


def _layers(decisions: Decisions, cells: Mapping[str, Array]) -> list[_heat.Texts]:
    """Texts below the differences: outcomes, then p-values or probabilities."""
    layers: list[_heat.Texts] = []
    if "wins" in cells:
        outcomes = zip(cells["wins"], cells["ties"], cells["wins"].T, strict=True)
        layers.append([list(map(_outcome, *lines)) for lines in outcomes])
    undecided = decisions.undecided.to_numpy(dtype=bool)
    # draws are no proof of a probability of 1
    chance: Callable[[float], str] = lambda p: ">0.999" if below(1.0 - p, 0.001) else format_p(p)  # noqa: E731
    name, write = ("p", format_p) if "p" in cells else ("chance", chance)
    if name in cells or undecided.any():
        values = cells.get(name)
        layers.append(
            [
                [
                    UNTESTED if untested else "" if values is None else write(values[i, j])
                    for j, untested in enumerate(line)
                ]
                for i, line in enumerate(undecided)
            ]
        )
    return layers


def _outcome(wins: float, ties: float, losses: float) -> str:
    return "" if np.isnan(wins) else f"{wins:.0f}/{ties:.0f}/{losses:.0f}"


def _reading(cells: Mapping[str, Array], what: str) -> str:
    """What a cell holds."""
    parts = [f"{what}, {_style.nobreak('row − column')}"]
    if "wins" in cells:
        parts.append(_style.nobreak("wins/ties/losses") + " of the row")
    if "p" in cells:
        parts.append(_style.nobreak("p-value"))
    elif "chance" in cells:
        parts.append("probability that the row is better")
    return f"Cells: {'; '.join(parts)}."


def _note(decisions: Decisions, direction: str | None) -> str:
    """Which side is better, and what was not decided."""
    sentences = []
    if not decisions.n_significant:
        sentences.append(f"No pair is {'decided' if decisions.posterior else 'significant'} ({decided_by(decisions)}).")
    if direction is not None:
        sentences.append("Blue: the row is better.")
    count, missing = len(decisions.levels), int(decisions.undecided.to_numpy().sum()) // 2
    if missing:
        verb = "has" if missing == 1 else "have"
        sentences.append(f"{missing} of {count * (count - 1) // 2} pairs {verb} no test: undecided.")
    return " ".join([*sentences, omnibus_text(decisions)]).strip()


LEVELS = (0.001, 0.01, 0.05)
_SHADES = ("#08519c", "#4292c6", "#9ecae1", "#eeeeee", "#ffffff")
_NAMES = (*(f"p < {level:g}" for level in LEVELS), "p ≥ 0.05", "undecided")
_FLAGS = ("significant", "not significant", "undecided")
_CELL = 1.9  # font sizes of a cell in a new figure
_GAP = 1.2  # between the map and its legend


@_canvas.draws(source="rank(), pairs(), decisions(), or means beside decisions")
def p_value_plot(
    comparisons: Ranking | Comparisons | Decisions | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the p-values of all pairs as a map of classes, for many algorithms.

    Parameters
    ----------
    comparisons : Ranking, Comparisons, Decisions, or means
        As in `comparison_matrix_plot`; of decisions, which has no p-values, the decisions are drawn.
    decisions : pandas.DataFrame or array, optional
        Where means are given: adjusted p-values, or booleans that are True where a difference is significant.
    **options
        Where means are given, those of `Decisions.of`.

    Returns
    -------
    Axes
        Algorithms are in the order of the ranking, best first, on both axes.

    Raises
    ------
    ArgumentError
        If an argument is something else, there are posterior probabilities in place of p-values, or `ax` is too small.

    Notes
    -----
    The classes are those of papers, p < 0.001, 0.01, 0.05. The decisions are made at the level of the analysis, and a
    dot marks the pairs that are significant by it: with alpha = 0.01 a p-value of 0.03 has a colour and no dot.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> names = ["A", "B", "C"]
    >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], names, names)
    >>> ax = lt.plots.p_value_plot({"A": 0.91, "B": 0.84, "C": 0.82}, p, direction="maximize")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['p < 0.01', 'p < 0.05', 'p ≥ 0.05']
    """
    result, numbers, _ = pair_matrix(comparisons, decisions, None, None, options)
    if "p" not in numbers and "chance" in numbers:
        raise ArgumentError(
            "comparisons has posterior probabilities and no p-values. Use comparison_matrix_plot, which writes them."
        )
    levels, k = result.levels, len(result.levels)
    decided, undecided = (matrix.to_numpy(dtype=bool) for matrix in (result.significant, result.undecided))
    if "p" in numbers:
        reached = sum(below(numbers["p"], level).astype(np.intp) for level in LEVELS)
        code, names = np.where(undecided, len(LEVELS) + 1, len(LEVELS) - reached), list(_NAMES)
    else:
        code, names = np.where(undecided, 2, np.where(decided, 0, 1)), list(_FLAGS)
    shades = _SHADES if "p" in numbers else (_SHADES[1], *_SHADES[-2:])
    dotted = bool((decided != (code < len(names) - 2)).any())  # the last two classes: not significant, undecided
    present = sorted(set(code[~np.eye(k, dtype=bool)].tolist()))
    font = _style.base_font()
    ruler = _style.Ruler(_canvas.scratch_axes(), font)
    key = _GAP + 2.6 + ruler.widest(names) / font  # a gap, the patches, the words
    if ax is None:
        labels = min(max(map(len, levels)) * 0.62 * font, _heat.LABEL_SHARE * _heat.WIDEST * 72)
        side = k * min(max(_CELL, 12.0 / k), 3.0 * _CELL) * font
        width, height = labels + side + (key + 2.0) * font, side + labels + 4.0 * font
        inches = _canvas.figure_width(min(max(width / 72, 4.0), _heat.WIDEST))
        ax = _canvas.new_axes(inches, min(max(height / 72, 2.0), _heat.HIGHEST))
    mark = f"{'Dots' if dotted else 'Blue'}: significant difference" if decided.any() else "No pair is significant"
    note = [f"{mark} ({decided_by(result)})."]
    if undecided.any():
        note.append("Crosses: no test, undecided.")
    shown = [names[i] for i in present]
    narrow = _canvas.size_in_points(ax)[0] < _heat.NARROW  # the legend is above the map
    columns = _layout.legend_columns([ruler.width(name) for name in shown], 0.7 * _heat.NARROW, font) if narrow else 1
    rows = -(-len(shown) // columns)
    room: dict[str, Any] = {"beside": (0.0, key), "above": 0.5, "head_share": _heat.LABEL_SHARE}
    if narrow:
        room |= {"beside": (0.0, 0.5), "above": _layout.KEY_LINE * rows + 0.3}
    words = " ".join([*note, omnibus_text(result)]).strip()
    font, place, cell, _ = _heat.grid(ax, levels, levels, f"a map of {k} x {k} cells", note=[words], **room)
    edges = np.arange(k + 1) - 0.5
    cells = np.ma.masked_where(np.eye(k, dtype=bool), code)
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8, "label": "_cells"}
    ax.pcolormesh(edges, edges, cells, cmap=ListedColormap(shades), vmin=-0.5, vmax=len(shades) - 0.5, **look)
    across = 0.18 * min(cell)
    marks: dict[str, Any] = {"linestyle": "none", "marker": "o", "clip_on": False}
    if dotted:
        row, column = np.nonzero(decided)
        ax.plot(column, row, color="white", markeredgecolor=_style.INK, markersize=2 * across, label="_dots", **marks)
    row, column = np.nonzero(undecided)
    marks["marker"] = "x"
    ax.plot(column, row, color=_style.NEUTRAL, markersize=1.6 * across, label="_undecided", **marks)
    handles = [Patch(facecolor=shades[i], edgecolor=_style.FAINT, linewidth=0.6) for i in present]
    corner = (1.0, 1.0 + 0.4 * font / place.height) if narrow else (1.0 + _GAP * font / place.width, 1.0)
    loc = "lower right" if narrow else "upper left"
    where: dict[str, Any] = {"loc": loc, "bbox_to_anchor": corner, "borderaxespad": 0.0}
    _layout.draw_legend(ax, handles, shown, columns, font, **where)
    return ax
