"""All pairwise differences: as intervals for a few means, as a matrix for many."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.core.options import ERROR_NAMES
from lmemtest.core.rounding import below, in_tie_order
from lmemtest.core.words import format_level, format_p
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.plots.emmeans import adjustment_name

UNTESTED = "no test"
MOST_PAIRS = 66  # 12 means; more rows do not fit a page


@_canvas.draws(Comparisons, source="pairs()")
def pairs_plot(pairs: Comparisons, /, *, ax: Axes | None = None) -> Axes:
    """Draw pairwise differences with their confidence intervals.

    Parameters
    ----------
    pairs : Comparisons
        From `Estimates.pairs`; at most 66 differences.

    Returns
    -------
    Axes
        The x axis is the difference left - right on the scale of the model's response; row i is at y = i.

    Raises
    ------
    ArgumentError
        If `pairs` are no pairs or more than 66, or `ax` is too small.

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
    table = pairs.to_frame()
    if len(table) > MOST_PAIRS:
        raise ArgumentError(
            f"pairs_plot draws at most {MOST_PAIRS} differences, got {len(table)}. Use pairs_matrix_plot"
            + (", or pairs.select() to keep one group." if pairs.by else ".")
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
        aside[at] = UNTESTED if np.isnan(value) else format_p(value)
    method = adjustment_name(pairs.adjust)
    if pairs.errors in ERROR_NAMES:
        method += f", {ERROR_NAMES[pairs.errors]} standard errors"
    interval = "simultaneous " if pairs.intervals == "simultaneous" else ""
    interval += _style.nobreak(f"{100 * pairs.level:g} % CI")
    score = _style.one_line(pairs.estimates.score)
    content = _rows.Rows(
        labels=labels,
        series=_decisions(pairs, table, row),
        headers=frozenset(headers),
        aside=tuple(aside),
        aside_title="p-value",
        reference=0.0,
        legend=True,
        axis_label=f"Difference of marginal means of {score}, {interval} ({method})",
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
        group = ", ".join(f"{name}={format_level(v)!r}" for name, v in pairs.estimates.groups()[0][0].items())
        raise ArgumentError(
            f"pairs_matrix_plot draws one group, but these pairs are in groups by {', '.join(pairs.by)}. "
            f"Select one first: pairs.select({group})."
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
        rows=order[1:],
        columns=order[:-1],
        values=values[1:, :-1],
        shown=np.tri(len(order), k=-1, dtype=bool)[1:, :-1],
        coloured=_significant(pairs, p)[1:, :-1],
        layers=(tuple(tuple(map(_cell, line)) for line in p[1:, :-1]),),
        palette="from zero",
        scale_label=f"Column {relation} by ({_style.one_line(pairs.estimates.score)})",
        note=note,
    )
    return _heat.draw_heat(heat, ax)[0]


def _cell(p: float) -> str:
    text = format_p(p)
    return UNTESTED if np.isnan(p) else f"p{text}" if text.startswith("<") else f"p={text}"
