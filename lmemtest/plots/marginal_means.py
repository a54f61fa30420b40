"""Marginal means with their confidence intervals, one row per mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._rounding import in_tie_order
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.estimates import Estimates
from lmemtest.inference.means.separation import Separation
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots.pairwise import ADJUSTMENTS
from lmemtest.words import format_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIRECTIONS = {"minimize": " (lower is better)", "maximize": " (higher is better)"}


def emmeans_plot(em: Estimates, *, separation: Separation | None = None, ax: Axes | None = None) -> Axes:
    """Draw marginal means as dots with their confidence intervals.

    Parameters
    ----------
    em : Estimates
        From `LmmFit.emmeans`.
    separation : Separation, optional
        From `Estimates.separation` on the pairs of `em`; its letters are written beside the means, and its
        order of the levels is used.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, whose
        height grows with the number of means.

    Returns
    -------
    Axes
        The x axis is on the scale of the model's response; row i, from the top, is at y = i.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, `separation` belongs to other means, or `ax` is too small for
        readable text.

    Notes
    -----
    Rows are sorted best first where the direction is known (over the average of the groups), in level order
    where it is not. The groups of `by` share a row and differ in colour, shape and height. Overlap of two
    intervals does not tell whether the means differ: the letters do, and `pairs_plot` and `cd_diagram`.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> ax = lt.plots.emmeans_plot(em, separation=em.pairs().separation())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['A', 'B', 'C']
    """
    _canvas.check_axes(ax)
    if not isinstance(em, Estimates):
        raise ArgumentError(f"em must be the result of emmeans(), got {type(em).__name__}.")
    if separation is not None:
        _check_separation(em, separation)
    return _rows.draw_rows(_content(em, separation), ax)


def _check_separation(em: Estimates, separation: Separation) -> None:
    if not isinstance(separation, Separation):
        raise ArgumentError(f"separation must be the result of separation(), got {type(separation).__name__}.")
    if em.by:
        by = ", ".join(em.by)
        message = f"separation is for one group of means, but em has groups by {by}. Pass separation=None."
        raise ArgumentError(message)
    if sorted(separation.levels) != sorted(em.labels()):
        ours, theirs = ", ".join(em.labels()[:6]), ", ".join(separation.levels[:6])
        message = (
            f"separation must come from the pairs of em, but em has {ours} and separation {theirs}. "
            "Pass separation(pairs(em))."
        )
        raise ArgumentError(message)


def _content(em: Estimates, separation: Separation | None) -> _rows.Rows:
    labels, groups = em.labels(), em.groups()
    order = _order(em, labels) if separation is None else list(separation.levels)
    place = {label: row for row, label in enumerate(order)}
    series = tuple(
        _rows.Series(
            name=_style.one_line(", ".join(f"{name} = {format_level(value)}" for name, value in values.items())),
            row=np.array([place[labels[member]] for member in members], dtype=np.intp),
            centre=em.estimate[members],
            low=em.ci_low[members],
            high=em.ci_high[members],
            colour=_style.colour(index),
            marker=_style.marker(index),
            offset=index,
        )
        for index, (values, members) in enumerate(groups)
    )
    return _rows.Rows(
        labels=tuple((_style.one_line(label),) for label in order),
        series=series,
        lanes=len(groups),
        legend=bool(em.by),
        axis_label=_axis_label(em, separation),
        aside=() if separation is None else tuple(separation.letters[label] for label in order),
    )


def _axis_label(em: Estimates, separation: Separation | None) -> str:
    reading = DIRECTIONS.get(em.direction or "", "")
    ci = _style.nobreak(f"{100 * em.level:g} % CI")
    response = _style.one_line(em.score)
    what = f"Marginal {response}" if em.subject else f"Marginal mean of {response}"  # of slopes the response is one
    label = f"{what}, {ci}{reading}"
    if separation is None:
        return label
    test = _style.nobreak(f"{ADJUSTMENTS.get(separation.adjust, separation.adjust)}, α = {separation.alpha:g}")
    return f"{label}\nMeans that share a letter do not differ significantly ({test})."


def _order(em: Estimates, labels: tuple[str, ...]) -> list[str]:
    """Return the distinct labels, best first where the direction is known, and without a mean last."""
    distinct = list(dict.fromkeys(labels))
    if em.direction is None:
        return distinct
    sign = -1.0 if em.direction == "maximize" else 1.0
    known: dict[str, list[float]] = {label: [] for label in distinct}
    for label, mean in zip(labels, em.estimate, strict=True):
        if np.isfinite(mean):
            known[label].append(float(mean))
    return in_tie_order(distinct, lambda label: sign * float(np.mean(known[label])) if known[label] else np.nan)
