"""Each algorithm against the best: by how much it is behind, and which groups are not distinguishable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import ahead_or_behind
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._given import interval_words

MOST_GROUPS = 8  # bars above the rows; of more, a critical-difference diagram has them
TOGETHER = "not distinguishable"


@_canvas.draws(Comparisons, source="pairs()")
def forest_plot(
    pairs: Comparisons,
    /,
    *,
    decisions: Decisions | None = None,
    reference: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw by how much each mean is behind the best one, with the intervals of these differences.

    Parameters
    ----------
    pairs : Comparisons
        All pairs, from `Estimates.pairs`, of means with a direction.
    decisions : Decisions, optional
        Of these pairs; by default at the level of the intervals.
    reference : str, optional
        The mean that the others are compared with; by default the best.

    Returns
    -------
    Axes
        The x axis is the difference to the best mean, positive for what is worse. From the top: a bar for each group of
        means that cannot be distinguished, over the differences of its members; then a row for each mean, best first.

    Raises
    ------
    ArgumentError
        If `pairs` have no direction, several groups, or no two means that can be compared, or `ax` is too small.

    Notes
    -----
    A filled dot differs significantly from the best mean, where its interval excludes zero; a hollow one may be as
    good. Overlap of two intervals says nothing about these two: the bars do.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> pairs = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm").pairs()
    >>> ax = lt.plots.forest_plot(pairs, decisions=pairs.decisions(direction="minimize"))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['not distinguishable', 'A', 'B', 'C']
    """
    decisions = pairs.decisions(alpha=1.0 - pairs.level) if decisions is None else decisions
    if pairs.by or decisions.direction is None:
        raise ArgumentError(
            "pairs must be of one group of means with a direction: which is the best one? Pass decisions="
            "pairs.decisions(direction='minimize')."
        )
    best = decisions.levels[0] if reference is None else check_choice(reference, "reference", decisions.levels)
    others = [name for name in decisions.levels if name != best]
    table = pairs.behind(best, decisions.direction)
    nothing = (0.0, np.nan, np.nan)  # the best is not behind itself
    behind = {best: nothing} | dict(zip(table.index, table.iloc[:, :3].itertuples(index=False, name=None), strict=True))
    groups = [group for group in decisions.groups if len(group) > 1]
    groups = groups if len(groups) <= MOST_GROUPS else []
    places = {name: len(groups) + row for row, name in enumerate(decisions.levels)}
    differs = ahead_or_behind(decisions.pairs([best] * len(others), others))
    filled = {best: True, **dict(zip(others, differs, strict=True))}
    looks = _style.places(pairs.estimates.labels(), pairs.estimates.roster)
    series = tuple(
        _rows.Series(
            row=np.array([places[name]], dtype=np.intp),
            centre=np.array([behind[name][0]]),
            low=np.array([behind[name][1]]),
            high=np.array([behind[name][2]]),
            colour=_style.colour(looks[name]),
            marker=_style.marker(looks[name]),
            hollow=not filled[name],
            name=name,
        )
        for name in decisions.levels
    )
    intervals = interval_words(pairs.intervals, pairs.level, several=len(pairs.table) > 1)
    what = _style.one_line(f"Mean {pairs.estimates.score}")
    content = _rows.Rows(
        labels=[TOGETHER, *[""] * len(groups)][: len(groups)] + list(decisions.levels),
        series=series,
        headers=frozenset(range(len(groups))),
        reference=0.0,
        axis_label=f"{what}: behind {_style.one_line(best)}\n{intervals}",
    )
    ax = _rows.draw_rows(content, ax)
    for row, group in enumerate(groups):
        _draw_group(ax, row, group, behind, looks)
    return ax


def _draw_group(
    ax: Axes,
    row: int,
    group: tuple[str, ...],
    behind: Mapping[str, tuple[float, float, float]],
    looks: Mapping[str, int],
) -> None:
    """A bar from the best to the worst of a group, with a dot at each member."""
    places = [behind[name][0] for name in group if np.isfinite(behind[name][0])]
    if len(places) < 2:
        return
    size = float(ax.get_yticklabels()[0].get_fontsize())
    ax.plot(
        [min(places), max(places)],
        [row, row],
        color=_style.NEUTRAL,
        linewidth=0.35 * size,
        solid_capstyle="round",
        zorder=2,
        label="_group",
    )
    for name in group:
        look: dict[str, Any] = {"color": _style.colour(looks[name]), "marker": _style.marker(looks[name])}
        size_of: dict[str, Any] = {"markersize": 0.55 * size, "linestyle": "none", "clip_on": False}
        place = ([behind[name][0]], [row])
        ax.plot(*place, label="_member", gid=_style.part(name), zorder=3, **look, **size_of)
