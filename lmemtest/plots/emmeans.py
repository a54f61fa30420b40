"""Marginal means with intervals to compare them, or with their confidence intervals, one row per mean."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.options import ADJUSTMENTS, ERROR_NAMES
from lmemtest.core.rounding import in_tie_order
from lmemtest.core.validate import check_choice, check_number
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._given import READINGS, adjustment_name, aside, decided_by

INTERVALS = ("comparison", "mean")


@_canvas.draws(Estimates, source="emmeans()")
def emmeans_plot(
    em: Estimates,
    /,
    *,
    decisions: Decisions | None = None,
    intervals: str = "comparison",
    pairs: Comparisons | None = None,
    reference: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw marginal means as dots, with intervals to compare them by.

    Parameters
    ----------
    em : Estimates
        From `LmmFit.emmeans`.
    decisions : Decisions, optional
        Of the pairs of `em`; its letters are written beside the means, and its order of the levels is used.
    intervals : {"comparison", "mean"}
        "comparison": those of `Comparisons.comparison_intervals`; where two do not overlap, the means differ
        significantly, and the words below count the pairs for which that cannot be drawn. "mean": the confidence
        interval of each mean, which contains the difficulty of the benchmarks and does not tell which means differ.
    pairs : Comparisons, optional
        Of "comparison": the pairs of `em` that decide; default: `em.pairs()`, adjusted as `decisions` are.
    reference : float, optional
        Where a vertical line is: 0 for scores relative to a baseline, chance for accuracies.

    Returns
    -------
    Axes
        The x axis is on the scale of the model's response; row i, from the top, is at y = i.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, `decisions` belongs to other means, `reference` is no number, or `ax` is too
        small.

    Notes
    -----
    Rows are sorted best first where the direction is known (over the average of the groups), in level order where it is
    not. The groups of `by` share a row and differ in colour, shape and height; their comparison intervals are for means
    of one group. A mean alone has nothing to be compared with, and its confidence interval is drawn.

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
    check_choice(intervals, "intervals", INTERVALS)
    if reference is not None:
        reference = check_number(reference, "reference")
    labels, groups = em.labels(), em.groups()
    if decisions is None:
        order = _order(em, labels)
    else:
        _check_decisions(em, decisions)
        order = list(decisions.levels)
    place = {label: row for row, label in enumerate(order)}
    low, high = em.ci_low, em.ci_high
    words, reading, decided = "", f"\n{_rows.intervals(em.level, simultaneous=False)}.", ""
    if intervals == "comparison" and len(labels) > len(groups):
        pairs = _pairs_of(em, decisions) if pairs is None else pairs
        if not isinstance(pairs, Comparisons) or pairs.kind != "pairs" or pairs.estimates.labels() != labels:
            raise ArgumentError("pairs must be the result of em.pairs(), of the same means.")
        compared = pairs.comparison_intervals()
        low, high = np.full((2, len(labels)), np.nan)
        rows = np.concatenate([members for _, members in groups])
        low[rows], high[rows] = compared.intervals["ci_low"], compared.intervals["ci_high"]
        words = ", intervals for comparison"
        where = " of one group" if em.by else ""
        odd = len(compared.exceptions)
        but = f", but for {odd} of {compared.n_pairs} pairs" if odd else ""
        decided = _decided(pairs)
        reading = f"\nNo overlap{where}: significant difference{but} ({decided})."
    series = tuple(
        _rows.Series(
            name=", ".join(f"{name} = {format_level(value)}" for name, value in values.items()),
            row=np.array([place[labels[member]] for member in members], dtype=np.intp),
            centre=em.estimate[members],
            low=low[members],
            high=high[members],
            colour=_style.colour(index),
            marker=_style.marker(index),
            offset=index,
        )
        for index, (values, members) in enumerate(groups)
    )
    response = _style.one_line(em.score)
    what = f"Marginal {response}" if em.subject else f"Marginal mean of {response}"  # of slopes the response is one
    label = f"{what}{words}{READINGS.get(em.direction or '', '')}{reading}"
    if decisions is not None:
        texts, letters = aside(decisions, order, "Means")
        by = decided_by(decisions)
        label += f"\n{letters}." if by == decided else f"\n{letters} ({by})."  # what decided is said once
    content = _rows.Rows(
        labels=order,
        series=series,
        lanes=len(groups),
        legend=bool(em.by),
        axis_label=label,
        reference=reference,
        aside=() if decisions is None else texts,
    )
    return _rows.draw_rows(content, ax)


def _pairs_of(em: Estimates, decisions: Decisions | None) -> Comparisons:
    """All pairs of the means, adjusted as decisions are."""
    if decisions is None or decisions.adjust not in ADJUSTMENTS:
        return em.pairs()
    return em.pairs(adjust=decisions.adjust, alpha=decisions.alpha)


def _decided(pairs: Comparisons) -> str:
    errors = ERROR_NAMES.get(pairs.errors)
    parts = [adjustment_name(pairs.adjust), f"{errors} standard errors" if errors else ""]
    return ", ".join([*filter(None, parts), _style.nobreak(f"α = {1.0 - pairs.level:.3g}")])


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
