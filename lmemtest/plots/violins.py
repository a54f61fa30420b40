"""Violins: the distribution of the scores of each group, upright where the names fit, else lying."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _panels, _style
from lmemtest.plots._panels import LINE, SMALL, Cell
from lmemtest.plots._rows import legend_columns
from lmemtest.studies.scores.score_distributions import FEW, ScoreDistributions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT, _ROW = 2.6, 0.3  # inches of a panel of upright violins, and of a lying one per group
_WIDEST_SLOT, _FILLED = 0.86, 0.92  # of the distance of two groups; of a slot
_APART = 0.035  # half of the gap between two halves, of the distance of two groups
_PAD = 0.05  # of the range of the scores
_WIDEST_NAME = 0.4  # of the width of a panel
_MOST_UPRIGHT = 12  # groups side by side
# In font sizes: the least size of a panel, room for tick labels, a title, the words of an axis and a line of legend.
_SMALLEST, _TICKS, _TITLE, _WORDS, _LEGEND = (7.0, 5.0), 1.8, 2.0, 1.5, 1.6
_LEAST_SLOT = (1.1, 0.55)  # font sizes of a group, and of each violin in it


@dataclass(frozen=True, slots=True)
class _Content:
    """What is drawn, without sizes."""

    result: ScoreDistributions
    groups: tuple[Any, ...]
    hues: tuple[Any, ...]
    panels: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        return [_style.one_line(group) for group in self.groups]

    @property
    def halves(self) -> bool:
        return len(self.hues) == 2

    def rows(self, panel: Any) -> pd.DataFrame:
        table = self.result.table
        return table if panel is None else table[table[self.result.by[2]] == panel]

    def limits(self, panel: Any) -> tuple[float, float]:
        rows = self.rows(panel)
        low, high = float(rows["min"].min()), float(rows["max"].max())
        spread = high - low or 0.1 * abs(high) or 1.0
        return low - _PAD * spread, high + _PAD * spread


@dataclass(frozen=True, slots=True)
class _Plan:
    font: float
    upright: bool
    cells: list[Cell]
    names: list[str]
    left: float  # margin of a panel
    foot: list[str]
    legend: int  # columns, 0 for none


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws in (position, score) coordinates, whichever of the two is upwards."""

    box: Axes
    upright: bool

    def line(self, position: Any, score: Any, **style: Any) -> None:
        xy = (position, score) if self.upright else (score, position)
        given: dict[str, Any] = {"linestyle": "-", "marker": "none", "clip_on": False}
        self.box.plot(*xy, **(given | style))

    def fill(self, left: FloatArray, right: FloatArray, score: FloatArray, **style: Any) -> None:
        between = self.box.fill_betweenx if self.upright else self.box.fill_between
        between(score, left, right, **style)


def violin_plot(distributions: ScoreDistributions, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the scores of each group.

    Parameters
    ----------
    distributions : ScoreDistributions
        From `lmemtest.score_distributions`. The first column of its ``by`` gives the positions,
        the second the colours, the third the panels.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, which grows with
        the number of groups.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, each with its own scale of scores. A violin is the kernel density,
        scaled to the same width for all groups; two colours share a violin as halves. Thick: the middle half of the
        scores; line: the median. Groups of fewer than 8 scores are points. A star marks groups with more than one
        cluster.

    Raises
    ------
    ArgumentError
        If `distributions` is not that of `score_distributions`, or `ax` is too small for readable text.

    References
    ----------
    Hintze & Nelson (1998), doi:10.1080/00031305.1998.10480559

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.violins import violin_plot
    >>> from lmemtest.studies.scores.score_distributions import score_distributions
    >>> runs = lt.datasets.load_hpo_runs().filter(model="svm", algorithm=["RS", "HB"])
    >>> ax = violin_plot(score_distributions(runs, by=["algorithm", "prior", "benchmark"], budget=2))
    >>> [panel.get_title(loc="left") for panel in ax.child_axes][:2]
    ['benchmark: svm-cancer', 'benchmark: svm-diabetes']
    """
    _canvas.check_axes(ax)
    if not isinstance(distributions, ScoreDistributions):
        raise ArgumentError(
            f"distributions must be the result of score_distributions(), got {type(distributions).__name__}."
        )
    content = _content(distributions)
    if ax is None:
        ax = _new_axes(content)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    plan = _plan(ax, content, size)
    for panel, cell in zip(content.panels, plan.cells, strict=True):
        top = _TITLE if panel is not None else 0.5
        place = cell.inside(plan.left, _TICKS * plan.font, 0.5 * plan.font, top * plan.font)
        box = place.inset(ax, size)
        _panels.open_panel(box, SMALL * plan.font)
        _set_axes(box, content, panel, plan, place)
        _draw_panel(_Pen(box, plan.upright), content, panel, place, plan.font)
        if panel is not None:
            level = _style.one_line(panel)
            title = f"{_style.one_line(distributions.by[2])}: {level}"
            _panels.write_title(box, title, place.width, plan.font, shorter=level)
    _write_words(ax, content, plan, size)
    if plan.legend:
        _draw_legend(ax, content, plan, size)
    return ax


# ------------------------------------------------------------------------------------------------- layout


def _content(result: ScoreDistributions) -> _Content:
    levels = [tuple(result.table[name].drop_duplicates().sort_values(kind="stable")) for name in result.by]
    groups, hues, panels = (*levels, (None,), (None,))[:3] if len(levels) < 3 else levels
    return _Content(result, groups, hues, panels)


def _lines_per_group(content: _Content) -> float:
    """Font sizes that a group needs across."""
    violins = 1 if content.halves else len(content.hues)
    return max(_LEAST_SLOT[0], _LEAST_SLOT[1] * violins + 0.3)


def _new_axes(content: _Content) -> Axes:
    """A figure that holds the violins upright if the names are short, else lying."""
    font, n = _style.base_font(), len(content.groups)
    width = _canvas.FIGURE_WIDTH * 72
    longest = max(len(name) for name in content.names) * 0.62 * SMALL * font
    across = next((c for c in (3, 2, 1) if n * max(longest + font, 3.5 * font) < width / c - 5 * font), 0)
    violins = 1 if content.halves else len(content.hues)
    if across and n <= _MOST_UPRIGHT:
        panel = _HEIGHT if min(across, len(content.panels)) < 3 else 0.7 * _HEIGHT
    else:
        across = 2 if len(content.panels) > 1 else 1
        panel = max(1.2, n * max(_ROW, 0.17 * violins)) + (_TICKS + _TITLE) * font / 72
    rows = math.ceil(len(content.panels) / min(across, len(content.panels)))
    words = (LINE * SMALL * 4 + 2 * _WORDS + _LEGEND * (1 + len(content.hues) // 6)) * font / 72
    return _canvas.new_axes(_canvas.FIGURE_WIDTH, rows * panel + words)


def _plan(ax: Axes, content: _Content, size: tuple[float, float]) -> _Plan:
    for font in _panels.fonts():
        foot = _style.wrap(_foot(content), size[0] - 2 * _canvas.PAD, _style.Ruler(ax, SMALL * font))
        columns, lines = _legend_shape(ax, content, size[0], font)
        below = 2 * _canvas.PAD + LINE * SMALL * font * len(foot) + _WORDS * font
        area = Cell(0.0, 0.0, *size).inside(
            _canvas.PAD + _WORDS * font, below, _canvas.PAD, _canvas.PAD + _LEGEND * font * lines
        )
        for upright in (True, False) if len(content.groups) <= _MOST_UPRIGHT else (False,):
            found = _placed(ax, content, area, font, upright=upright)
            if found is not None:
                return _Plan(font, upright, *found, foot, columns)
    what = f"a plot of {len(content.groups)} groups in {len(content.panels)} panel(s)"
    raise _canvas.too_small(ax, what)


def _placed(
    ax: Axes, content: _Content, area: Cell, font: float, *, upright: bool
) -> tuple[list[Cell], list[str], float] | None:
    """Cells, names that fit, and the left margin of a panel; None where something does not fit."""
    size, names = SMALL * font, content.names
    ruler = _style.Ruler(ax, size, **_style.font_for(names))
    least = _lines_per_group(content) * font * len(names)
    top = (_TITLE if content.panels[0] is not None else 0.5) + _TICKS
    if upright:
        left = _widest_number(ax, content, size) + 0.9 * font
        wide = max(least, len(names) * (ruler.widest(names) + 0.6 * size), _SMALLEST[0] * font) + left + 0.5 * font
        tall = (_SMALLEST[1] + top) * font
        cells = _panels.arrange(
            len(content.panels), area, lambda cell: bool(cell.width >= wide and cell.height >= tall)
        )
        return None if cells is None else (cells, names, left)
    widest = min(ruler.widest(names), 9.0 * size)  # of names that may be cut
    wide = _SMALLEST[0] * font + max(widest / _WIDEST_NAME, widest + 1.4 * font)
    tall = max(least, 2.0 * font) + top * font
    cells = _panels.arrange(len(content.panels), area, lambda cell: bool(cell.width >= wide and cell.height >= tall))
    if cells is None:
        return None
    short = _style.shorten(names, _WIDEST_NAME * min(cell.width for cell in cells), ruler)
    return cells, short, ruler.widest(short) + 0.9 * font


def _widest_number(ax: Axes, content: _Content, size: float) -> float:
    """Room for the numbers of upright axes, as wide as they may get."""
    labels: list[str] = []
    for panel in content.panels:
        for lines in (4, 8, 16, 32):
            ticks = _canvas.choose_ticks(*content.limits(panel), lines * size, _panels.Upright(size), cover=False)
            labels += ticks.labels
    return _style.Ruler(ax, size).widest(labels)


def _hue_names(ax: Axes, content: _Content, width: float, font: float) -> list[str]:
    names = [_style.one_line(hue) for hue in content.hues]
    return _style.shorten(names, max(0.4 * width, 8 * font), _style.Ruler(ax, font, **_style.font_for(names)))


def _legend_shape(ax: Axes, content: _Content, width: float, font: float) -> tuple[int, int]:
    """Columns and lines of the legend."""
    if len(content.hues) < 2:
        return 0, 0
    names = _hue_names(ax, content, width, font)
    ruler = _style.Ruler(ax, font, **_style.font_for(names))
    columns = legend_columns([ruler.width(name) for name in names], width - 2 * _canvas.PAD, font)
    return columns, -(-len(names) // columns)


def _foot(content: _Content) -> str:
    table = content.result.table
    words = []
    if table["modes"].notna().any():
        words.append("Violins: kernel densities, all of one width, cut at the lowest and highest score.")
    if (table["n"] >= FEW).any():
        words.append("Thick: middle half; line: median.")
    if (table["n"] < FEW).any():
        words.append(f"Points: groups of fewer than {FEW} scores.")
    if (table["p_adjusted"] <= content.result.alpha).any():
        words.append(f"Star: more than one cluster (dip test, Holm, level {content.result.alpha:g}).")
    return " ".join(words)


# ------------------------------------------------------------------------------------------------- drawing


def _set_axes(box: Axes, content: _Content, panel: Any, plan: _Plan, place: Cell) -> None:
    size, limits, n = SMALL * plan.font, content.limits(panel), len(plan.names)
    style = _style.text_style(size, **_style.font_for(plan.names))
    if plan.upright:
        box.set_xlim(-0.5, n - 0.5)
        box.set_xticks(range(n), plan.names, **style)
        box.tick_params(axis="x", length=0)
        _panels.set_ticks_upwards(box, limits, place.height, size)
    else:
        box.set_ylim(n - 0.5, -0.5)
        box.set_yticks(range(n), plan.names, **style)
        box.tick_params(axis="y", length=0)
        for label in box.get_yticklabels():
            label.set_verticalalignment("center")
        for edge in np.arange(n - 1) + 0.5:
            box.axhline(edge, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
        _panels.set_ticks_along(box, limits, place.width, size)
    for label in (*box.get_xticklabels(), *box.get_yticklabels()):
        _style.literal(label)


def _slots(content: _Content) -> Iterator[tuple[int, float, float, float]]:
    """Per colour: its number, the offset of its centre line, and how far it reaches to the left and to the right."""
    if content.halves:
        half = 0.5 * _WIDEST_SLOT * _FILLED
        yield 0, -_APART, half, 0.0
        yield 1, _APART, 0.0, half
        return
    n = len(content.hues)
    width = _WIDEST_SLOT / n
    for i in range(n):
        yield i, (i - (n - 1) / 2) * width, 0.5 * width * _FILLED, 0.5 * width * _FILLED


def _draw_panel(pen: _Pen, content: _Content, panel: Any, place: Cell, font: float) -> None:
    result = content.result
    columns = list(result.by)
    rows = content.rows(panel)
    curves = dict(list(result.densities.groupby(columns, observed=True, sort=False))) if len(result.densities) else {}
    slots = dict(zip(content.hues, _slots(content), strict=True))
    position = {group: i for i, group in enumerate(content.groups)}
    step = (place.width if pen.upright else place.height) / len(content.groups)
    bar = min(0.4 * font, 2.0 * _APART * step) if content.halves else 0.4 * font
    for row in rows.to_dict("records"):
        key = tuple(row[name] for name in columns)
        index, offset, left, right = slots[key[1] if len(key) > 1 else None]
        at = position[key[0]] + offset
        colour = _style.colour(index)
        curve = curves.get(key)
        if curve is not None:
            _draw_density(pen, at, curve, left, right, colour, font)
        if row["n"] < FEW:
            _draw_points(pen, at + 0.25 * (right - left), _scores_of(result, key), colour, font)
        else:
            _draw_box(pen, at, row, (left, right), colour, bar, font)
        if row["p_adjusted"] <= result.alpha:
            spread = np.subtract(*content.limits(panel)[::-1])
            score = row["max"] + 0.6 * _PAD * spread
            pen.line([at], [score], marker="*", markersize=0.8 * font, color=colour, markeredgewidth=0, label="_star")


def _scores_of(result: ScoreDistributions, key: tuple[Any, ...]) -> FloatArray:
    mask = np.ones(len(result.scores), dtype=bool)
    for name, value in zip(result.by, key, strict=True):
        mask &= (result.scores[name] == value).to_numpy(dtype=bool)
    return result.scores.loc[mask, "score"].to_numpy(dtype=float)


def _draw_density(
    pen: _Pen, at: float, curve: pd.DataFrame, left: float, right: float, colour: str, font: float
) -> None:
    score, height = curve["score"].to_numpy(dtype=float), curve["density"].to_numpy(dtype=float)
    share = height / height.max()
    pen.fill(
        at - left * share,
        at + right * share,
        score,
        facecolor=colour,
        alpha=0.35,
        edgecolor=colour,
        linewidth=0.06 * font,
        label="_density",
        zorder=2,
    )


def _draw_box(
    pen: _Pen, at: float, row: dict[Any, Any], reach: tuple[float, float], colour: str, bar: float, font: float
) -> None:
    """The middle half as a bar on the centre line, the median as a line across."""
    pen.line(
        [at, at],
        [row["q1"], row["q3"]],
        color=colour,
        linewidth=bar,
        solid_capstyle="butt",
        label="_quartiles",
        zorder=3,
    )
    pen.line(
        [at - 0.5 * reach[0], at + 0.5 * reach[1]],
        [row["median"]] * 2,
        color=_style.INK if row["max"] > row["min"] else colour,  # one score: there is no outline to show the colour
        linewidth=0.16 * font,
        label="_median",
        zorder=4,
    )


def _draw_points(pen: _Pen, at: float, scores: FloatArray, colour: str, font: float) -> None:
    pen.line(
        np.full(len(scores), at),
        scores,
        linestyle="none",
        marker="o",
        markersize=0.45 * font,
        color=colour,
        markerfacecolor="white",
        markeredgewidth=0.1 * font,
        label="_points",
        zorder=3,
    )


def _write_words(ax: Axes, content: _Content, plan: _Plan, size: tuple[float, float]) -> None:
    result = content.result
    _panels.write_foot(ax, plan.foot, size, plan.font)
    bottom = 2 * _canvas.PAD + LINE * SMALL * plan.font * len(plan.foot)
    better = "lower is better" if result.direction == "minimize" else "higher is better"
    score = f"{_style.one_line(result.score)}{f' at {_style.one_line(result.at)}' if result.at else ''}"
    groups = _style.one_line(result.by[0])
    along, upwards = (groups, score) if plan.upright else (score, groups)
    legend = _LEGEND * plan.font * _legend_shape(ax, content, size[0], plan.font)[1]
    height = size[1] - bottom - _WORDS * plan.font - legend
    start = _canvas.PAD + _WORDS * plan.font + plan.left
    for text, room, place in ((along, size[0] - start, "below"), (upwards, height, "beside")):
        longer = f"{text} ({better})" if text == score else text
        font = _style.font_for([longer])
        ruler = _style.Ruler(ax, plan.font, **font)
        shown = longer if ruler.width(longer) <= room else _style.shorten([text], room, ruler)[0]
        if place == "below":
            style = _style.text_style(plan.font, ha="center", va="bottom", **font)
            _panels.write(ax, start + 0.5 * room, bottom - 0.2 * plan.font, shown, size, style)
        else:
            style = _style.text_style(plan.font, ha="center", va="center", rotation=90, **font)
            middle = bottom + _WORDS * plan.font + 0.5 * height
            _panels.write(ax, _canvas.PAD + 0.6 * plan.font, middle, shown, size, style)


def _draw_legend(ax: Axes, content: _Content, plan: _Plan, size: tuple[float, float]) -> None:
    names = _hue_names(ax, content, size[0], plan.font)
    legend = ax.legend(
        handles=[Patch(facecolor=_style.colour(i), alpha=0.5, edgecolor=_style.colour(i)) for i in range(len(names))],
        labels=[str(i) for i in range(len(names))],
        loc="upper left",
        bbox_to_anchor=(_canvas.PAD / size[0], 1.0 - 0.5 * _canvas.PAD / size[1]),
        ncols=plan.legend,
        frameon=False,
        fontsize=plan.font,
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=1.2,
        handletextpad=0.5,
        columnspacing=1.5,
        labelspacing=0.3,
    )
    for entry, name in zip(legend.get_texts(), names, strict=True):
        # set afterwards, because a label that starts with an underscore would be dropped
        _style.literal(entry).set(text=name, color=_style.INK, **_style.font_for(names))
