"""The critical-difference diagram along the budget: how far behind the best everybody is, and who can be the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lmemtest._rounding import tie_order
from lmemtest.plots import _canvas, _panels, _style
from lmemtest.plots._curves import (
    LEAD,
    MOST_MARKERS,
    PAD,
    BudgetAxis,
    last_point,
    looks,
    name_ends,
    room_for_numbers,
    set_budget_axis,
    write_below,
    write_upwards,
)
from lmemtest.plots._panels import LINE, SMALL, Cell
from lmemtest.plots._rows import legend_columns
from lmemtest.plots.anytime import ALONE, TICKS, WORDS, budget_axis, require_anytime, sure_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lmemtest.studies.budget.anytime import Anytime

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

ABSENT, BEATEN, CANDIDATE, BEST = -1, 0, 1, 2
_HEIGHT = 2.8  # inches of the curves in a new figure with few algorithms
_MOST_NAMED = 8  # curves; of more only those have a name that can be the best somewhere
_LOW = 13.0  # curves below this height in font sizes have no room for words of their own along their axis
_WIDEST_NAME = 0.28  # of the width
_SMALLEST = (9.0, 5.0)  # of the curves, in font sizes
_LEAST_SHARE = 0.4  # of the height of the strip
_ROW = 1.4  # of the strip, in small font sizes
_FILLED = 0.62  # of the height of a row
_GAP, _KEY = 0.9, 1.5  # between curves and strip, in font sizes; a line of the key, in small ones
_PALE = 0.3  # opacity of a candidate
_RIBBON, _RIBBON_RANGE = 0.75, 0.35  # opacity up to the smallest critical difference, and from there to the largest
_EQUAL = 1e-6  # relative difference of critical differences that is rounding
_HATCH = "////"


@dataclass(frozen=True, slots=True)
class _Picture:
    """What is drawn, in the order of the algorithms of the result."""

    axis: BudgetAxis
    behind: FloatArray  # (k, points) distance from the best mean
    state: NDArray[np.int8]  # (k, points)
    order: list[int]  # rows of the strip from the top
    low: FloatArray  # critical differences
    high: FloatArray
    named: list[int]  # curves with a name and a colour

    @property
    def unequal(self) -> bool:
        return bool((self.high > self.low * (1.0 + _EQUAL)).any())

    @property
    def limits(self) -> tuple[float, float]:
        """From the lower edge to the upper one: the best is on top."""
        largest = max(float(np.nanmax(self.behind)), float(np.nanmax(self.high))) or 1.0
        return (1.0 + PAD) * largest, -PAD * largest


@dataclass(frozen=True, slots=True)
class _Plan:
    """The largest font that fits, and the places that follow."""

    font: float
    curves: Cell
    strip: Cell
    names: list[str]
    foot: list[str]
    key: int  # columns


def cd_ribbon(result: Anytime, *, ax: Axes | None = None) -> Axes:
    """Draw who can be the best at which budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.studies.budget.anytime.anytime`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, which grows with
        the number of algorithms.

    Returns
    -------
    Axes
        It holds two panels, ``ax.child_axes``. The upper one has the distance of each mean curve from the best mean at
        the same budget, the best on top, and a ribbon as wide as the critical difference. The strip below has a row per
        algorithm, in the order of their means over the range of budgets: filled where it is shown to be better than all
        others, pale where nobody is shown to be better, empty where somebody is, hatched where it has no scores.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `anytime`, or `ax` is too small for readable text.

    Notes
    -----
    In a complete table all differences at a budget have the same standard error. Then a curve is inside the ribbon
    exactly where the row of its algorithm is not empty. Else the ribbon has a pale part, between the smallest and the
    largest critical difference of two algorithms, and the rows say who can be the best.

    With more than eight algorithms those that can be the best nowhere are grey and have their names in the strip only.

    References
    ----------
    Demšar (2006), Journal of Machine Learning Research 7, 1-30, on the critical difference

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.anytime_ribbon import cd_ribbon
    >>> from lmemtest.studies.budget.anytime import anytime
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = cd_ribbon(anytime(runs))
    >>> curves, strip = ax.child_axes
    >>> [text.get_text() for text in strip.texts]
    ['HB', 'RS']
    """
    _canvas.check_axes(ax)
    require_anytime(result)
    picture = _picture(result)
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _new_height(picture))
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    plan = _plan(ax, result, picture, size)
    _draw_curves(ax, picture, plan, size)
    _draw_strip(ax, picture, plan, size)
    _draw_key(ax, picture, plan, size)
    _write_words(ax, result, plan, size)
    return ax


# ------------------------------------------------------------------------------------------------- content


def _picture(result: Anytime) -> _Picture:
    means = result.means()
    worse = means if result.direction == "minimize" else -means
    # with one algorithm left there is nothing to compare
    low, high = (np.where(np.isfinite(means).sum(axis=0) > 1, x, np.nan) for x in result.critical_difference())
    state = _states(result)
    k = len(result.algorithms)
    named = list(range(k)) if k <= _MOST_NAMED else np.flatnonzero((state >= CANDIDATE).any(axis=1)).tolist()
    return _Picture(
        axis=budget_axis(result),
        behind=worse - np.nanmin(worse, axis=0),
        state=state,
        order=_order(result),
        low=low,
        high=high,
        named=named,
    )


def _states(result: Anytime) -> NDArray[np.int8]:
    """What is known of each algorithm at each point, from the stretches of `result.best`."""
    candidate = result.candidates()
    state = np.where(candidate, CANDIDATE, np.where(np.isfinite(result.means()), BEATEN, ABSENT)).astype(np.int8)
    for row in result.best[result.best["best"].notna()].to_dict("records"):
        inside = (result.budgets >= row["budget_from"]) & (result.budgets <= row["budget_to"])
        state[result.algorithms.index(row["best"]), inside] = BEST
    return state


def _order(result: Anytime) -> list[int]:
    """Best mean over the range first: by the sum of the differences from all others."""
    table = result.overall
    estimate = table["estimate"].fillna(0.0)
    total = [
        float(estimate[table["left"] == name].sum() - estimate[table["right"] == name].sum())
        for name in result.algorithms
    ]
    return tie_order(total, descending=result.direction != "minimize")


# ------------------------------------------------------------------------------------------------- layout


def _new_height(picture: _Picture) -> float:
    font = _style.base_font()
    curves = max(_HEIGHT * 72, LINE * SMALL * font * (len(picture.named) + 1))
    return (curves + SMALL * font * _ROW * len(picture.order) + 12.0 * font) / 72


def _plan(ax: Axes, result: Anytime, picture: _Picture, size: tuple[float, float]) -> _Plan:
    names = [_style.one_line(name) for name in result.algorithms]
    for font in _panels.fonts():
        small = _style.Ruler(ax, SMALL * font)
        foot = _style.wrap(_foot(result, picture), size[0] - 2 * _canvas.PAD, small)
        entries = [small.width(text) for text, _ in _key(picture)]
        columns = legend_columns(entries, size[0] - 2 * _canvas.PAD, SMALL * font)
        keys = -(-len(entries) // columns)
        bottom = 2 * _canvas.PAD + SMALL * font * (LINE * len(foot) + _KEY * keys) + (WORDS + TICKS) * font
        rows = _ROW * SMALL * font * len(names)
        height = size[1] - bottom - rows - _GAP * font - _canvas.PAD - 0.4 * font
        if height < max(max(_SMALLEST[1], LINE * SMALL * len(picture.named)) * font, _LEAST_SHARE * rows):
            continue
        left = _canvas.PAD + WORDS * font + room_for_numbers(picture.limits, height, small)
        ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(names))
        short = _style.shorten(names, _WIDEST_NAME * size[0], ruler)
        width = size[0] - left - (LEAD + 0.2) * font - ruler.widest(short) - _canvas.PAD
        if width >= _SMALLEST[0] * font:
            strip = Cell(left, bottom, width, rows)
            return _Plan(font, Cell(left, bottom + rows + _GAP * font, width, height), strip, short, foot, columns)
    raise _canvas.too_small(ax, f"a plot of {len(names)} curves and rows")


def _foot(result: Anytime, picture: _Picture) -> str:
    words = [f"{sure_words(result, 'pairs')}."]
    if picture.unequal:
        words.append(
            "Standard errors differ between pairs: the pale part of the ribbon lies between the smallest and the "
            "largest critical difference, and the rows say who can be the best."
        )
    if len(picture.named) < len(picture.order):
        words.append("Grey: can be the best nowhere.")
    if result.columns is None:
        words.append(ALONE)
    return " ".join(words)


def _key(picture: _Picture) -> list[tuple[str, Artist]]:
    ink = _style.MUTED
    entries: list[tuple[str, Artist]] = [
        ("up to the critical difference", Patch(facecolor=_style.FAINT, alpha=_RIBBON, linewidth=0.0)),
        ("better than all others", Patch(facecolor=ink, linewidth=0.0)),
        ("can be the best", Patch(facecolor=ink, alpha=_PALE, linewidth=0.0)),
        ("somebody is better", Line2D([], [], color=_style.FAINT, linewidth=1.0)),
    ]
    if (picture.state == ABSENT).any():
        hatched = Patch(facecolor="none", edgecolor=_style.FAINT, hatch=_HATCH, linewidth=0.0)
        entries.append(("no scores", hatched))
    return entries


# ------------------------------------------------------------------------------------------------- drawing


def _draw_curves(ax: Axes, picture: _Picture, plan: _Plan, size: tuple[float, float]) -> None:
    axis, font, place = picture.axis, plan.font, plan.curves
    box = place.inset(ax, size)
    _panels.open_panel(box, SMALL * font)
    set_budget_axis(box, axis, place.width, SMALL * font, labels=False)
    _panels.set_ticks_upwards(box, picture.limits, place.height, SMALL * font)
    _draw_ribbon(box, picture)
    every = looks(len(picture.order))
    marked = not axis.joined and len(axis.points) <= MOST_MARKERS
    for i, look in enumerate(every):
        front = i in picture.named
        box.plot(
            axis.points,
            picture.behind[i],
            color=look.colour if front else _style.NEUTRAL,
            linestyle=look.dash if front else "-",
            linewidth=(0.16 if front else 0.08) * font * (1.0 if axis.joined else 0.6),
            marker=_style.marker(i) if marked else "none",
            markersize=(0.42 if front else 0.25) * font,
            markeredgewidth=0.0,
            label="_behind",
            zorder=3 if front else 2,
        )
    ends = [last_point(axis.points, picture.behind[i]) for i in picture.named]
    names, colours = [plan.names[i] for i in picture.named], [every[i].colour for i in picture.named]
    name_ends(box, axis, ends, names, colours, place, picture.limits, SMALL * font)


def _draw_ribbon(box: Axes, picture: _Picture) -> None:
    """From the best on top: an area where curves go on between budgets, else a bar at each."""
    axis = picture.axis
    nothing = np.zeros_like(picture.low)
    parts = [("_ribbon", nothing, picture.low, _RIBBON)]
    if picture.unequal:
        parts.append(("_ribbon_range", picture.low, picture.high, _RIBBON_RANGE))
    style: dict[str, Any] = {"color": _style.FAINT, "linewidth": 0.0, "zorder": 0.7}
    for label, start, end, alpha in parts:
        if axis.joined:
            box.fill_between(axis.points, start, end, alpha=alpha, label=label, **style)
            continue
        for (left, right), low, high in zip(axis.cells(), start, end, strict=True):
            box.fill_between([left, right], low, high, alpha=alpha, label=label, **style)


def _draw_strip(ax: Axes, picture: _Picture, plan: _Plan, size: tuple[float, float]) -> None:
    axis, font, place = picture.axis, plan.font, plan.strip
    box = place.inset(ax, size)
    _canvas.frame(box, SMALL * font)
    box.set_yticks([])
    set_budget_axis(box, axis, place.width, SMALL * font)
    box.set_ylim(len(picture.order), 0.0)
    every = looks(len(picture.order))
    style = _style.font_for(plan.names)
    for row, i in enumerate(picture.order):
        colour = every[i].colour if i in picture.named else _style.NEUTRAL
        box.axhline(row + 0.5, color=_style.FAINT, linewidth=0.06 * font, zorder=0.5, label="_guide")
        _fill_row(box, axis, picture.state[i], row, colour)
        x = 1.0 + (0.8 * LEAD * SMALL * font + 0.2 * SMALL * font) / place.width
        words = _style.text_style(SMALL * font, color=colour, ha="left", va="center", **style)
        box.text(x, 1.0 - (row + 0.5) / len(picture.order), plan.names[i], transform=box.transAxes, **words)


def _fill_row(box: Axes, axis: BudgetAxis, states: NDArray[np.int8], row: int, colour: str) -> None:
    top, bottom = row + 0.5 - _FILLED / 2.0, row + 0.5 + _FILLED / 2.0
    fills: dict[int, tuple[str, dict[str, Any]]] = {
        BEST: ("_best", {"facecolor": colour, "linewidth": 0.0}),
        CANDIDATE: ("_candidate", {"facecolor": colour, "alpha": _PALE, "linewidth": 0.0}),
        ABSENT: ("_absent", {"facecolor": "white", "edgecolor": _style.FAINT, "hatch": _HATCH, "linewidth": 0.0}),
    }
    for state, (label, fill) in fills.items():
        for start, end in axis.spans(states == state):
            box.fill_between([start, end], top, bottom, label=label, zorder=2, **fill)


def _draw_key(ax: Axes, picture: _Picture, plan: _Plan, size: tuple[float, float]) -> None:
    font = SMALL * plan.font
    texts, handles = zip(*_key(picture), strict=True)
    bottom = 1.5 * _canvas.PAD + LINE * font * len(plan.foot)
    legend = ax.legend(
        handles=handles,
        labels=texts,
        loc="lower left",
        bbox_to_anchor=(_canvas.PAD / size[0], bottom / size[1]),
        ncols=plan.key,
        frameon=False,
        fontsize=font,
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=1.6,
        handleheight=0.7,
        handletextpad=0.5,
        columnspacing=1.5,
        labelspacing=0.3,
    )
    for entry in legend.get_texts():
        _style.literal(entry).set_color(_style.MUTED)


def _write_words(ax: Axes, result: Anytime, plan: _Plan, size: tuple[float, float]) -> None:
    _panels.write_foot(ax, plan.foot, size, plan.font)
    place = plan.strip
    bottom = place.y - (TICKS + WORDS) * plan.font + 0.2 * plan.font
    write_below(ax, _style.one_line(result.budget), place.x + place.width / 2.0, bottom, size, plan.font)
    score = _style.one_line(result.score)
    texts = (f"Mean {score}, behind the best", f"{score}, behind the best", "Behind the best")
    top = plan.curves.y + plan.curves.height
    span = (plan.curves.y if plan.curves.height > _LOW * plan.font else plan.strip.y, top)
    write_upwards(ax, texts, _canvas.PAD + 0.6 * plan.font, span, size, plan.font)
