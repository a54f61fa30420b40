"""The critical-difference diagram of Demšar (2006) on the axis of marginal means, mean ranks, or any other mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots._cd_board import board_of
from lmemtest.plots._cd_draw import draw_plan
from lmemtest.plots._cd_plan import Frame, figure_height, figure_width, plan_of
from lmemtest.plots._given import as_decisions, checked_limits


def cd_diagram(
    result: Decisions | Ranking | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
    limits: tuple[float, float] | None = None,
    title: str = "",
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw which algorithms differ, on the axis of their means.

    Parameters
    ----------
    result : Decisions, Ranking, or means
        Levels, means, groups and critical difference, from `Estimates.decisions` or `Decisions.of`. Or the means
        alone, beside `decisions` from anywhere: a mapping, Series or frame as `Decisions.of` takes them.
    decisions : pandas.DataFrame or array, optional
        Where means are given: adjusted p-values, or booleans that are True where a difference is significant.
    values : bool
        Write the means beside the names.
    whiskers : bool
        Draw the intervals of the means, where there are any.
    highlight : str or iterable of str
        Names to emphasise.
    left_only : bool
        Put all names on the left.
    limits : tuple of two floats, optional
        Scores that the axis reaches at least, so that diagrams can be compared; by default the means and the ruler.
    title : str
        A line above the diagram; cut if it is longer than the figure is wide.
    ax : Axes, optional
        Where to draw, labels included; by default a new figure, as large as its content.
    **options
        Where means are given, those of `Decisions.of`: ``direction``, ``alpha``, ``critical_difference``, ``score``,
        ``statistic``, ``test``, ``interval_alpha``, ``omnibus_p``.

    Returns
    -------
    Axes
        The x axis is in units of the score; the y axis in points below the upper edge.

    Raises
    ------
    ArgumentError
        If `result` is something else, has no mean or more than 60 groups, `limits` are not two ascending numbers,
        whiskers are asked for where there are no intervals, a name to highlight is unknown, or `ax` is too small.

    Notes
    -----
    The better half of the algorithms is listed on the better end of the axis. Algorithms joined by dots on one bar do
    not differ significantly; a hollow circle marks one that the bar passes without joining it. Dots are at the means;
    where some would hide who is on a bar, they stand apart and a line below says so. Where at least one
    pair of a bar has no test and is undecided, the bar is dashed and has diamonds; algorithms on no common bar differ
    significantly. The ruler shows the smallest critical difference (thick) and the largest (thin); there is none where
    no critical difference decides. If a test of all algorithms together is not significant, a line below says so. Names
    too long for the figure are cut in the middle.

    References
    ----------
    Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
    Learning Research 7, 1-30.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> ax = em.pairs().decisions(direction="minimize").plot()
    >>> [text.get_text() for text in ax.texts if text.get_text() in "ABC"]
    ['A', 'B', 'C']

    Ranks and p-values of another test:

    >>> names = ["A", "B", "C"]
    >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], names, names)
    >>> ranks = {"A": 1.2, "B": 2.1, "C": 2.7}
    >>> ax = lt.plots.cd_diagram(ranks, p, direction="minimize", statistic="mean rank", test="Conover", values=True)
    """
    _canvas.check_axes(ax)
    found = as_decisions(result, decisions, options)
    board = board_of(found, values=values, whiskers=whiskers, highlight=highlight, left_only=left_only)
    frame = Frame(limits=checked_limits(limits), title=checked_title(title))
    if ax is None:
        width = figure_width([board])
        ax = _canvas.new_axes(width, figure_height(board, width, frame))
    width, height = _canvas.size_in_points(ax)
    for font in _layout.fonts():
        plan = plan_of(ax, board, width, font, frame)
        if plan.height + 2 * _canvas.PAD <= height + 0.5:
            draw_plan(ax, plan, width, height)
            return ax
    raise _canvas.too_small(ax, f"a diagram of {len(board.names)} algorithms", plan.height + 2 * _canvas.PAD)


def axes_of_width(decisions: Decisions, width: float) -> Axes:
    """New axes of some inches, as high as the diagram needs there."""
    return _canvas.new_axes(width, figure_height(board_of(decisions), width, Frame()))


def checked_title(title: object) -> str:
    """A title on one line, or none."""
    if not isinstance(title, str):
        raise ArgumentError(f"title must be a text, got {title!r}.")
    return _style.one_line(title) if title else ""
