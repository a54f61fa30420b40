"""The critical-difference diagram of Demšar (2006) on the axis of marginal means, mean ranks, or any other mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_choice, check_flag
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots._cd_draw import draw_plan
from lmemtest.plots._cd_plan import (
    Board,
    Plan,
    axis_range,
    board_of,
    figure_height,
    figure_width,
    fonts_for,
    label_zones,
    plan_of,
)
from lmemtest.plots._given import as_decisions, checked_limits, decided_by


@_canvas.draws(source="decisions(), rank(), or means beside decisions")
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
        Above the diagram; wrapped where it is longer than the figure is wide.
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
    too long for the figure are wrapped; what does not fit then has a number and stands below.

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
    diagram = as_decisions(result, decisions, options)
    board = board_of(diagram, values=values, whiskers=whiskers, highlight=highlight, left_only=left_only)
    frame: dict[str, Any] = {"limits": checked_limits(limits), "title": checked_title(title)}
    fonts = list(_layout.fonts())
    if ax is None:
        width = figure_width([board])
        fonts = fonts_for([board], width)
        ax = _canvas.new_axes(width, figure_height(board, width, fonts[0], **frame))
    width, height = _canvas.size_in_points(ax)
    for font in fonts:
        plan = plan_of(ax, board, width, font, **frame)
        if plan.height + 2 * _canvas.PAD <= height + 0.5:
            draw_plan(ax, plan, width, height)
            return ax
    raise _canvas.too_small(ax, f"a diagram of {len(board.names)} algorithms", plan.height + 2 * _canvas.PAD)


def axes_of_width(decisions: Decisions, width: float) -> Axes:
    """New axes of some inches, as high as the diagram needs there."""
    return _canvas.new_axes(width, figure_height(board_of(decisions), width, _style.base_font()))


def checked_title(title: object) -> str:
    """A title on one line, or none."""
    if not isinstance(title, str):
        raise ArgumentError(f"title must be a text, got {title!r}.")
    return _style.one_line(title) if title else ""


LAYOUTS = ("stacked", "beside")
# Means that move between diagrams by more than this many times their range in one would all be squeezed together.
_MOST_MOVEMENT = 3.0
_GAP = 0.8  # between stacked diagrams, in font sizes
_BESIDE = 5.0  # inches of a diagram beside others: the text width would make a figure of 28 inches of four


@_canvas.draws(source="several of decisions() or rank(), by title")
def cd_diagrams(
    panels: Mapping[Any, Decisions | Ranking],
    /,
    *,
    share_axis: bool = True,
    layout: str = "stacked",
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw several diagrams in one figure: data sets, budgets, or the same runs by several tests.

    Parameters
    ----------
    panels : mapping of str to Decisions or Ranking
        The diagrams by their titles, in this order.
    share_axis : bool
        Whether a length is the same difference in all diagrams. Means of different scores cannot share an axis.
    layout : {"stacked", "beside"}
        Diagrams one below the other, or side by side.
    values, whiskers, highlight, left_only
        As in `cd_diagram`; a name to highlight must be in one diagram at least.

    Returns
    -------
    Axes
        It holds the diagrams, ``ax.child_axes``, each as that of `cd_diagram`.

    Raises
    ------
    ArgumentError
        If `panels` is something else, scores that share an axis differ, or `ax` is too small.

    Notes
    -----
    Axes that are shared also start at the same score, so that a mean can be followed from one to the next, unless means
    move so far between diagrams that those of one would be squeezed together; then each has its own start, and the
    first title says so.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> p = pd.DataFrame([[1, 0.04], [0.04, 1]], ["A", "B"], ["A", "B"])
    >>> from lmemtest.lmm.means.decisions import Decisions
    >>> found = {name: Decisions.of({"A": a, "B": 2.0}, p) for name, a in {"small": 1.0, "large": 1.4}.items()}
    >>> len(lt.plots.cd_diagrams(found).child_axes)
    2
    """
    check_flag(share_axis, "share_axis")
    if not isinstance(panels, Mapping) or not panels:
        raise ArgumentError(
            "panels must be a dict with decisions or ranking for each title, got "
            f"{'an empty one' if isinstance(panels, Mapping) else type(panels).__name__}."
        )
    diagrams = {
        _style.one_line(title): as_decisions(one, None, {}, name=f"panels[{title!r}]") for title, one in panels.items()
    }
    names = (highlight,) if isinstance(highlight, str) else tuple(highlight)
    levels = {level for one in diagrams.values() for level in one.levels}
    boards = [
        board_of(
            one,
            values=values,
            whiskers=whiskers,
            highlight=[name for name in names if name in one.levels or name not in levels],
            left_only=left_only,
        )
        for one in diagrams.values()
    ]
    scales = {(one.score, one.statistic) for one in diagrams.values()}
    if share_axis and len(scales) > 1:
        several = ", ".join(f"{statistic} of {score}" for score, statistic in sorted(scales))
        raise ArgumentError(f"Diagrams of different means cannot share an axis: {several}. Pass share_axis=False.")
    return draw_boards(boards, list(diagrams), layout, ax, share_axis=share_axis)


def draw_boards(
    boards: Sequence[Board], titles: Sequence[str], layout: str, ax: Axes | None, *, share_axis: bool = True
) -> Axes:
    """Draw diagrams below or beside each other, with one font."""
    check_choice(layout, "layout", LAYOUTS)
    stacked = layout == "stacked"
    count, fonts = len(boards), list(_layout.fonts())
    if ax is None:
        inches = figure_width(boards) if stacked else _canvas.figure_width(_BESIDE * count) / count
        fonts = fonts_for(boards, inches)
        font = fonts[0]
        needs = _needs(_plans(_canvas.scratch_axes(inches), boards, titles, 72 * inches, font, share_axis))
        high = sum(needs) + _GAP * font * (count - 1) if stacked else max(needs)
        ax = _canvas.new_axes(inches if stacked else inches * count, high / 72)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    width = size[0] if stacked else size[0] / count
    for font in fonts:
        plans = _plans(ax, boards, titles, width, font, share_axis)
        needs = _needs(plans)
        spare = size[1] - (sum(needs) + _GAP * font * (count - 1) if stacked else max(needs))
        if spare >= -0.5:
            break
    else:
        what = f"{count} diagrams of {max(len(board.names) for board in boards)} algorithms"
        raise _canvas.too_small(ax, what, size[1] - spare)
    top = size[1]
    for i, (plan, need) in enumerate(zip(plans, needs, strict=True)):
        if stacked:
            height = need + spare / count
            cell = _layout.Cell(0.0, top - height, width, height)
            top -= height + _GAP * font
        else:  # a diagram is centred in its axes, so equal heights align the upper edges
            cell = _layout.Cell(i * width, 0.0, width, size[1])
            plan = replace(plan, height=max(needs) - 2 * _canvas.PAD)
        draw_plan(cell.inset(ax, size), plan, cell.width, cell.height)
    return ax


def _needs(plans: Sequence[Plan]) -> list[float]:
    return [plan.height + 2 * _canvas.PAD for plan in plans]


def _plans(
    ax: Axes, boards: Sequence[Board], titles: Sequence[str], width: float, font: float, share_axis: bool
) -> list[Plan]:
    """Lay out all boards with one font, labels as wide in each, and ticks of one scale if they share it."""
    rulers = [_style.Ruler(ax, font, **_style.font_for(board.names)) for board in boards]
    zones = [label_zones(board, width, ruler)[-1] for board, ruler in zip(boards, rulers, strict=True)]
    left, right = (max(zone[side] for zone in zones) for side in (0, 1))
    frames: list[dict[str, Any]] = [{"zones": (left, right), "title": title} for title in titles]
    if share_axis:
        low, high = zip(*map(axis_range, boards), strict=True)
        span = max(b - a for a, b in zip(low, high, strict=True))
        if max(high) - min(low) > _MOST_MOVEMENT * span:
            frames[0]["title"] += " – same scale, different origins"
            middles = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
            room = width - left - right - 2 * _canvas.PAD
            starts = _own_starts(middles, span, room, _style.Ruler(ax, font))
            frames = [frame | {"ticks": ticks} for frame, ticks in zip(frames, starts, strict=True)]
        else:
            frames = [frame | {"limits": (min(low), max(high))} for frame in frames]
    # a name has the same number everywhere, so that the key below the last diagram is that of all
    every = dict.fromkeys(name for board in reversed(boards) for name in board.names)
    numbers = {name: number for number, name in enumerate(every, 1)}
    plans: list[Plan] = []
    below: set[str] = set()  # sentences of a later diagram, which an earlier one need not repeat
    for board, frame in zip(reversed(boards), reversed(frames), strict=True):
        plans.append(plan_of(ax, board, width, font, without=frozenset(below), numbers=numbers, **frame))
        below.update(plans[-1].sentences)
    return plans[::-1]


def _own_starts(
    middles: Sequence[float], span: float, room: float, ruler: _style.Ruler
) -> list[tuple[tuple[float, ...], list[str]]]:
    """Ticks of the same step and number around each middle, and their labels, which do not touch."""
    (first, second, *_), _ = _layout.choose_ticks(0.0, span, max(room, ruler.size), ruler, cover=True)
    step = second - first
    while True:
        count = math.ceil(span / step * (1 - 1e-9)) + 1
        starts = [round((middle - count * step / 2) / step) for middle in middles]
        every = [tuple(float((start + i) * step) for i in range(count + 1)) for start in starts]
        ticks = [(values, _style.tick_labels(values)) for values in every]
        widest = ruler.widest([label for _, labels in ticks for label in labels])
        if count == 2 or widest + ruler.size / 2 <= room / count:
            return ticks
        step *= 2


@_canvas.draws("horizons", source="anytime().at()")
def horizons_plot(result: Answer, /, *, layout: str = "stacked", ax: Axes | None = None) -> Axes:
    """Draw which algorithms differ at each horizon, all diagrams on one scale.

    Parameters
    ----------
    result : Answer
        From `lmemtest.anytime`, its ``.at()``.
    layout : {"stacked", "beside"}
        Diagrams one below the other, or side by side.

    Returns
    -------
    Axes
        It holds the diagrams, ``ax.child_axes``, one per horizon, as those of `cd_diagram`.

    Notes
    -----
    A length is the same difference of scores in all diagrams. The axes also start at the same score, so that a mean can
    be followed from one to the next, unless means move so far between horizons that those at one would be squeezed
    together; then each has its own start, and the first diagram's title says so.

    Rulers are critical differences at the level of the horizon, its share of that of the whole, which is in its title
    where horizons share the level; the line below the last diagram says how.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> ax = lt.anytime(runs).at([8, 32]).plot()
    >>> [diagram.texts[0].get_text() for diagram in ax.child_axes]
    ['0.164', '0.164']
    """
    titles, boards = [], []
    shared = result.across == "holm" and len(result.horizons) > 1
    for horizon in result.horizons.values():
        title, board = (
            f"{result.budget} {horizon.label}{' (mean)' * horizon.place.is_window}",
            board_of(horizon.decisions),
        )
        if shared:
            title += f", α = {horizon.decisions.alpha:.3g}"
            every = f"{result.alpha:g} over the {len(result.horizons)} diagrams"
            remark = f"α in the titles: shares of {every}, by Holm's method."
            board = replace(board, test=decided_by(horizon.decisions, level=False), remark=remark)
        titles.append(_style.one_line(title))
        boards.append(board)
    return draw_boards(boards, titles, layout, ax)
