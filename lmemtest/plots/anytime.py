"""Mean curves over the budget with bands that hold for all algorithms and budgets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _panels, _style
from lmemtest.plots._curves import (
    LEAD,
    MOST_MARKERS,
    BudgetAxis,
    Look,
    last_point,
    looks,
    name_ends,
    padded,
    room_for_numbers,
    set_budget_axis,
    write_below,
    write_upwards,
)
from lmemtest.plots._panels import LINE, SMALL, Cell
from lmemtest.studies.budget.anytime import Anytime
from lmemtest.words import listed, suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.0  # inches of a new figure with few curves
_MOST_BANDS = 5  # more bands over each other are mud
_WIDEST_NAME = 0.3  # of the width
_SMALLEST = (9.0, 5.0)  # of the panel, in font sizes
TICKS, WORDS = 1.8, 1.5  # room for tick labels and the name of an axis, in font sizes
ALONE = "Means are at the observed budgets (small ticks); nothing is said between them."


@dataclass(frozen=True, slots=True)
class _Plan:
    """The largest font that fits, and the places that follow."""

    font: float
    place: Cell
    names: list[str]
    foot: list[str]


def anytime_plot(result: Anytime, *, algorithms: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the mean curves of the algorithms over the budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.studies.budget.anytime.anytime`.
    algorithms : sequence of str, optional
        These are drawn with their bands, the others as thin grey lines. With None all are drawn alike, with bands if
        there are no more than five.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. Bands hold for all algorithms and budgets at once. Small ticks are at
        the observed budgets. Where every budget has means of its own, markers are at these and lines only join them.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `anytime`, `algorithms` names others, or `ax` is too small for readable text.

    Notes
    -----
    Two bands that overlap do not show that two algorithms are equal: benchmarks that are hard for one are hard for the
    other, which cancels in their difference. `anytime_differences_plot` shows differences.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.anytime import anytime_plot
    >>> from lmemtest.studies.budget.anytime import anytime
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = anytime_plot(anytime(runs))
    >>> sorted(text.get_text() for text in ax.child_axes[0].texts)
    ['HB', 'RS']
    """
    _canvas.check_axes(ax)
    require_anytime(result)
    chosen = _chosen(result, algorithms)
    if ax is None:
        rows = LINE * SMALL * len(result.algorithms) + 7.0
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, max(_HEIGHT, rows * _style.base_font() / 72))
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    limits = _limits(result, chosen)
    plan = _plan(ax, result, algorithms, limits, size)
    box = plan.place.inset(ax, size)
    _panels.open_panel(box, SMALL * plan.font)
    axis = budget_axis(result)
    set_budget_axis(box, axis, plan.place.width, SMALL * plan.font)
    _panels.set_ticks_upwards(box, limits, plan.place.height, SMALL * plan.font)
    style = _looks(result, algorithms)
    for i, name in enumerate(result.algorithms):
        front = algorithms is None or name in algorithms
        _draw(box, result, i, axis, style[i], plan.font, band=name in chosen, front=front)
    ends = [last_point(axis.points, course(result, i, "mean")) for i in range(len(result.algorithms))]
    colours = [look.colour for look in style]
    name_ends(box, axis, ends, plan.names, colours, plan.place, limits, SMALL * plan.font)
    _write_words(ax, result, plan, size)
    return ax


def require_anytime(result: object) -> None:
    """Raise unless `result` is that of `anytime`."""
    if not isinstance(result, Anytime):
        raise ArgumentError(f"result must be the result of anytime(), got {type(result).__name__}.")


def budget_axis(result: Anytime) -> BudgetAxis:
    """The x axis of all figures of the result."""
    return BudgetAxis(result.budgets, result.observed, result.scale == "log", result.columns is not None)


def course(result: Anytime, index: int, column: str) -> FloatArray:
    """One column of the curve of an algorithm."""
    n = len(result.budgets)
    return result.curves[column].to_numpy(dtype=float)[index * n : (index + 1) * n]


def check_names(names: Sequence[str], result: Anytime, argument: str) -> None:
    """Raise unless all names are algorithms of the result."""
    for name in names:
        if name not in result.algorithms:
            raise ArgumentError(
                f"{argument} must name algorithms of the result, got {name!r}.{suggest(str(name), result.algorithms)} "
                f"It has {listed(result.algorithms)}."
            )


def sure_words(result: Anytime, family: str | None) -> str:
    """What the bands hold for."""
    every = "all budgets" if family is None else f"all {family} and budgets"
    return f"{_style.nobreak(f'{100 * result.level:g} %')} confidence for {every} at once ({_sample_words(result)})"


def _sample_words(result: Anytime) -> str:
    """How much the bands rest on."""
    return f"{result.n_sample} {'benchmarks' if result.sample == 'benchmarks' else 'runs'}"


def _chosen(result: Anytime, algorithms: Sequence[str] | None) -> tuple[str, ...]:
    """Algorithms that get a band."""
    if algorithms is None:
        return result.algorithms if len(result.algorithms) <= _MOST_BANDS else ()
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence):
        raise ArgumentError(
            f"algorithms must be a list of names or None, got {algorithms!r}. For one: algorithms=[{algorithms!r}]."
        )
    check_names(algorithms, result, "algorithms")
    return tuple(algorithms)


def _looks(result: Anytime, algorithms: Sequence[str] | None) -> list[Look]:
    """Colours by position among all, so that an algorithm looks the same in every figure of the result."""
    grey = Look(_style.NEUTRAL, "-")
    every = looks(len(result.algorithms))
    return [
        look if algorithms is None or name in algorithms else grey
        for name, look in zip(result.algorithms, every, strict=True)
    ]


# ------------------------------------------------------------------------------------------------- layout


def _limits(result: Anytime, chosen: Sequence[str]) -> tuple[float, float]:
    banded = result.curves["algorithm"].isin(chosen)
    parts = [result.curves["mean"], *(result.curves.loc[banded, column] for column in ("band_low", "band_high"))]
    return padded(np.concatenate([part.to_numpy(dtype=float) for part in parts]))


def _plan(
    ax: Axes,
    result: Anytime,
    algorithms: Sequence[str] | None,
    limits: tuple[float, float],
    size: tuple[float, float],
) -> _Plan:
    names = [_style.one_line(name) for name in result.algorithms]
    for font in _panels.fonts():
        small = _style.Ruler(ax, SMALL * font)
        foot = _style.wrap(_foot(result, algorithms), size[0] - 2 * _canvas.PAD, small)
        below = 2 * _canvas.PAD + LINE * SMALL * font * len(foot) + (WORDS + TICKS) * font
        height = size[1] - below - _canvas.PAD - 0.5 * font
        if height < max(_SMALLEST[1], LINE * SMALL * len(names)) * font:
            continue
        left = _canvas.PAD + WORDS * font + room_for_numbers(limits, height, small)
        ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(names))
        short = _style.shorten(names, _WIDEST_NAME * size[0], ruler)
        width = size[0] - left - LEAD * font - ruler.widest(short) - _canvas.PAD
        if width >= _SMALLEST[0] * font:
            return _Plan(font, Cell(left, below, width, height), short, foot)
    raise _canvas.too_small(ax, f"a plot of {len(names)} curves")


def _foot(result: Anytime, algorithms: Sequence[str] | None) -> str:
    banded = algorithms is not None or len(result.algorithms) <= _MOST_BANDS
    if banded:
        words = [
            f"Bands: {sure_words(result, 'algorithms')}. Whether two curves differ is seen in their difference, not in "
            "these bands."
        ]
    else:
        words = [f"Bands are left out with more than {_MOST_BANDS} algorithms; algorithms=[...] draws those of a few."]
    if result.columns is None:
        words.append(ALONE)
    return " ".join(words)


# ------------------------------------------------------------------------------------------------- drawing


def _draw(
    box: Axes, result: Anytime, index: int, axis: BudgetAxis, look: Look, font: float, *, band: bool, front: bool
) -> None:
    if band:
        low, high = course(result, index, "band_low"), course(result, index, "band_high")
        area = box.fill_between(axis.points, low, high, color=look.colour, alpha=0.16, linewidth=0.0)
        area.set_label("_band")
    marked = not axis.joined and len(axis.points) <= MOST_MARKERS
    box.plot(
        axis.points,
        course(result, index, "mean"),
        color=look.colour,
        linewidth=(0.16 if front else 0.08) * font * (1.0 if axis.joined else 0.6),
        linestyle=look.dash,
        marker=_style.marker(index) if marked else "none",
        markersize=(0.42 if front else 0.25) * font,
        markeredgewidth=0.0,
        label="_mean",
        zorder=3 if front else 2,
        clip_on=False,
    )


def _write_words(ax: Axes, result: Anytime, plan: _Plan, size: tuple[float, float]) -> None:
    _panels.write_foot(ax, plan.foot, size, plan.font)
    place = plan.place
    name = _style.one_line(result.budget)
    bottom = place.y - (TICKS + WORDS) * plan.font + 0.2 * plan.font
    write_below(ax, name, place.x + place.width / 2.0, bottom, size, plan.font)
    score, better = _style.one_line(result.score), "lower" if result.direction == "minimize" else "higher"
    texts = (f"Mean {score} ({better} is better)", f"{score} ({better} is better)", f"{better} is better")
    span = (_canvas.PAD, size[1] - _canvas.PAD) if place.height < 14 * plan.font else (place.y, place.y + place.height)
    write_upwards(ax, texts, _canvas.PAD + 0.6 * plan.font, span, size, plan.font)
