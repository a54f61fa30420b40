"""All pairwise differences: as intervals for a few means, as a matrix for many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._rounding import below, in_tie_order
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

UNTESTED = "no test"
MOST_PAIRS = 66  # 12 means; more rows do not fit a page
ADJUSTMENTS = {
    "tukey": "Tukey",
    "stepdown": "step-down",
    "shaffer": "Shaffer",
    "holm": "Holm",
    "sidak": "Šidák",
    "bonferroni": "Bonferroni",
    "fdr": "FDR",
    "mvt": "multivariate t",
    "none": "unadjusted",
}


def pairs_plot(pairs: Comparisons, *, ax: Axes | None = None) -> Axes:
    """Draw pairwise differences with their simultaneous confidence intervals.

    Parameters
    ----------
    pairs : Comparisons
        From `Estimates.pairs`; at most 66 differences.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, whose
        height grows with the number of pairs.

    Returns
    -------
    Axes
        The x axis is the difference left - right on the scale of the model's response; row i is at y = i.

    Raises
    ------
    ArgumentError
        If `pairs` is not a `Comparisons`, has more than 66 rows, or `ax` is too small for readable text.

    Notes
    -----
    A difference is significant, and drawn with a filled dot, if its adjusted p-value (beside the row) is
    below one minus the confidence level. With the Holm and FDR adjustments, which have no intervals of their
    own, an interval may disagree with the p-value; the axis label then names both. Groups of `by` have a
    heading each.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> ax = lt.plots.pairs_plot(em.pairs())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['A − B', 'A − C', 'B − C']
    """
    _canvas.check_axes(ax)
    _check_pairs(pairs)
    table = pairs.to_frame()
    if len(table) > MOST_PAIRS:
        message = f"pairs_plot draws at most {MOST_PAIRS} differences, got {len(table)}. Use pairs_matrix_plot" + (
            ", or pairs.select() to keep one group." if pairs.by else "."
        )
        raise ArgumentError(message)
    return _rows.draw_rows(_content(pairs, table), ax)


def pairs_matrix_plot(pairs: Comparisons, *, ax: Axes | None = None) -> Axes:
    """Draw pairwise differences as a triangular matrix, for any number of means.

    Parameters
    ----------
    pairs : Comparisons
        From `Estimates.pairs`, in one group.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels and colour scale included. With None a new figure
        is made, whose size grows with the number of means.

    Returns
    -------
    Axes
        Means are ordered best first (ascending without a direction); cell (x, y) compares mean x with mean
        y + 1 of this order.

    Raises
    ------
    ArgumentError
        If `pairs` is not a `Comparisons`, is in several groups, or `ax` is too small for readable text.

    Notes
    -----
    Cells show by how much the column is better than the row, or lower if the direction is unknown. Only
    significant differences (adjusted p-value below one minus the confidence level) are coloured; a pair without a test
    is undecided and says so. Where the cells are large enough they hold the difference and the p-value below it, or
    the p-value alone.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> ax = lt.plots.pairs_matrix_plot(em.pairs())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['B', 'C']
    """
    _canvas.check_axes(ax)
    _check_pairs(pairs)
    if pairs.by:
        values = ", ".join(f"{name}={format_level(v)!r}" for name, v in pairs.estimates.groups()[0][0].items())
        message = (
            f"pairs_matrix_plot draws one group, but these pairs are in groups by {', '.join(pairs.by)}. "
            f"Select one first: pairs.select({values})."
        )
        raise ArgumentError(message)
    return _heat.draw_heat(_matrix(pairs), ax)


def _check_pairs(pairs: object) -> None:
    if not (isinstance(pairs, Comparisons) and pairs.kind == "pairs"):
        raise ArgumentError(f"pairs must be the result of pairs(), got {type(pairs).__name__}.")


def _method(pairs: Comparisons) -> str:
    if pairs.interval_adjust != pairs.adjust:
        return f"{_adjustment(pairs.interval_adjust)} intervals, {_adjustment(pairs.adjust)} p-values"
    return _adjustment(pairs.adjust)


def _adjustment(name: str) -> str:
    return ADJUSTMENTS.get(name, name)


def _significant(pairs: Comparisons, table: pd.DataFrame) -> np.ndarray:
    return below(table["p_value"].to_numpy(dtype=float), 1.0 - pairs.level)


# ------------------------------------------------------------ intervals


def _content(pairs: Comparisons, table: pd.DataFrame) -> _rows.Rows:
    labels: list[tuple[str, ...]] = []
    headers: list[int] = []
    row = np.zeros(len(table), dtype=np.intp)
    current = None
    for position, record in enumerate(table.to_dict("records")):
        group = tuple(record[name] for name in pairs.by)
        if pairs.by and group != current:
            current = group
            headers.append(len(labels))
            heading = ", ".join(f"{n} = {format_level(v)}" for n, v in zip(pairs.by, group, strict=True))
            labels.append((_style.one_line(heading),))
        row[position] = len(labels)
        labels.append((_style.one_line(record["left"]), _style.one_line(record["right"])))
    p = table["p_value"].to_numpy(dtype=float)
    aside = [""] * len(labels)
    for at, value in zip(row, p, strict=True):
        aside[at] = UNTESTED if np.isnan(value) else _style.p_value(float(value))
    response = _style.one_line(pairs.estimates.score)
    interval = ("" if pairs.interval_adjust == "none" else "simultaneous ") + _style.nobreak(
        f"{100 * pairs.level:g} % CI"
    )
    return _rows.Rows(
        labels=tuple(labels),
        series=_decisions(pairs, table, row),
        headers=frozenset(headers),
        aside=tuple(aside),
        aside_title="p-value",
        reference=0.0,
        legend=True,
        axis_label=f"Difference of marginal means of {response}, {interval} ({_method(pairs)})",
    )


def _decisions(pairs: Comparisons, table: pd.DataFrame, row: np.ndarray) -> tuple[_rows.Series, ...]:
    significant = _significant(pairs, table)
    alpha = f"{1 - pairs.level:.3g}"
    tested = table["p_value"].notna().to_numpy()
    looks = (
        (significant, f"p < {alpha}", _style.ACCENT, False),
        (~significant & tested, f"p ≥ {alpha}", _style.NEUTRAL, True),
        (~tested, UNTESTED if np.isfinite(table["estimate"][~tested]).any() else "", _style.NEUTRAL, True),
    )
    columns = {name: table[name].to_numpy(dtype=float) for name in ("estimate", "ci_low", "ci_high")}
    return tuple(
        _rows.Series(
            name=name,
            row=row[chosen],
            centre=columns["estimate"][chosen],
            low=columns["ci_low"][chosen],
            high=columns["ci_high"][chosen],
            colour=colour,
            hollow=hollow,
        )
        for chosen, name, colour, hollow in looks
        if chosen.any()
    )


# ------------------------------------------------------------ matrix


def _matrix(pairs: Comparisons) -> _heat.Heat:
    table = pairs.to_frame()
    order = _order(pairs)
    place = {level: position for position, level in enumerate(order)}
    left, right = (table[side].map(place).to_numpy() for side in ("left", "right"))
    estimate = table["estimate"].to_numpy(dtype=float)
    # the column comes first in the order, so its mean is the better one and differences have one sign
    lower = np.where(left < right, -estimate, estimate)
    advantage = lower if pairs.direction != "maximize" else -lower
    count = len(order)
    values, p = np.full((count, count), np.nan), np.full((count, count), np.nan)
    cells = np.maximum(left, right), np.minimum(left, right)
    values[cells] = advantage
    p[cells] = table["p_value"].to_numpy(dtype=float)
    names = tuple(_style.one_line(level) for level in order)
    alpha = _style.nobreak(f"p < {1 - pairs.level:.3g}")
    note = f"Coloured: significant difference ({_adjustment(pairs.adjust)}, {alpha})."
    if untested := int(np.isnan(p[cells]).sum()):
        note += f" {untested} of {len(table)} pairs {'has' if untested == 1 else 'have'} no test: undecided."
    relation = "lower" if pairs.direction is None else "better"
    response = _style.one_line(pairs.estimates.score)
    return _heat.Heat(
        rows=names[1:],
        columns=names[:-1],
        values=values[1:, :-1],
        shown=np.tri(count, k=-1, dtype=bool)[1:, :-1],
        coloured=below(p, 1.0 - pairs.level)[1:, :-1],
        details=tuple(tuple(_p_text(float(value)) for value in line) for line in p[1:, :-1]),
        palette="from zero",
        scale_label=f"Column {relation} by ({response})",
        note=note,
    )


def _p_text(value: float) -> str:
    if np.isnan(value):
        return UNTESTED
    text = _style.p_value(value)
    return f"p{text}" if text.startswith("<") else f"p={text}"


def _order(pairs: Comparisons) -> list[str]:
    """Return the levels best first; without a direction ascending, and without a mean last."""
    means = dict(zip(pairs.levels, map(float, pairs.estimates.estimate), strict=True))
    sign = -1.0 if pairs.direction == "maximize" else 1.0
    return in_tie_order(pairs.levels, lambda v: sign * means[v] if np.isfinite(means[v]) else np.nan)
