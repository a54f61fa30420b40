"""Marginal means with their confidence intervals, one row per mean."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.rounding import in_tie_order
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._given import READINGS, aside, decided_by


@_canvas.draws(Estimates, source="emmeans()")
def emmeans_plot(em: Estimates, /, *, decisions: Decisions | None = None, ax: Axes | None = None) -> Axes:
    """Draw marginal means as dots with their confidence intervals.

    Parameters
    ----------
    em : Estimates
        From `LmmFit.emmeans`.
    decisions : Decisions, optional
        Of the pairs of `em`; its letters are written beside the means, and its order of the levels is used.

    Returns
    -------
    Axes
        The x axis is on the scale of the model's response; row i, from the top, is at y = i.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, `decisions` belongs to other means, or `ax` is too small.

    Notes
    -----
    Rows are sorted best first where the direction is known (over the average of the groups), in level order where it is
    not. The groups of `by` share a row and differ in colour, shape and height. Overlap of two intervals does not tell
    whether the means differ: the letters do, and `pairs_plot` and `cd_diagram`.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> ax = lt.plots.emmeans_plot(em, decisions=em.pairs().decisions())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['A', 'B', 'C']
    """
    labels, groups = em.labels(), em.groups()
    if decisions is None:
        order = _order(em, labels)
    else:
        _check_decisions(em, decisions)
        order = list(decisions.levels)
    place = {label: row for row, label in enumerate(order)}
    series = tuple(
        _rows.Series(
            name=", ".join(f"{name} = {format_level(value)}" for name, value in values.items()),
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
    response = _style.one_line(em.score)
    what = f"Marginal {response}" if em.subject else f"Marginal mean of {response}"  # of slopes the response is one
    label = f"{what}, {_style.nobreak(f'{100 * em.level:g} % CI')}{READINGS.get(em.direction or '', '')}"
    if decisions is not None:
        texts, reading = aside(decisions, order, "Means")
        label += f"\n{reading} ({decided_by(decisions)})."
    content = _rows.Rows(
        labels=order,
        series=series,
        lanes=len(groups),
        legend=bool(em.by),
        axis_label=label,
        aside=() if decisions is None else texts,
    )
    return _rows.draw_rows(content, ax)


def _check_decisions(em: Estimates, decisions: Decisions) -> None:
    if not isinstance(decisions, Decisions):
        raise ArgumentError(f"decisions must be the result of decisions(), got {type(decisions).__name__}.")
    if em.by:
        raise ArgumentError(
            f"decisions is for one group of means, but em has groups by {', '.join(em.by)}. Pass decisions=None."
        )
    if sorted(decisions.levels) != sorted(em.labels()):
        ours, theirs = ", ".join(em.labels()[:6]), ", ".join(decisions.levels[:6])
        raise ArgumentError(
            f"decisions must come from the pairs of em, but em has {ours} and decisions {theirs}. "
            "Pass em.pairs().decisions()."
        )


def _order(em: Estimates, labels: tuple[str, ...]) -> list[str]:
    """Return the distinct labels, best first where the direction is known, and without a mean last."""
    distinct = list(dict.fromkeys(labels))
    if em.direction is None:
        return distinct
    sign = -1.0 if em.direction == "maximize" else 1.0
    values: dict[str, list[float]] = {label: [] for label in distinct}
    for label, mean in zip(labels, em.estimate, strict=True):
        if np.isfinite(mean):
            values[label].append(float(mean))
    return in_tie_order(distinct, lambda label: sign * float(np.mean(values[label])) if values[label] else np.nan)
