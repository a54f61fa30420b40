"""Rows in several columns: names once at the left, and beside them an axis of its own for each kind of estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from lmemtest.plots import _canvas, _layout, _rows, _style
from lmemtest.plots._layout import LINE, SMALL, TICK_PAD, TICKS, TITLE, Cell

_NARROWEST = 6.0  # font sizes of a column
_GAP = 1.2  # font sizes between columns
_SLACK = 1.1  # of the width of names, which hinting makes wider at low resolutions


@dataclass(frozen=True, slots=True)
class _Plan:
    """The texts at a font size, and the places that follow."""

    font: float
    labels: list[str]
    titles: list[str]
    foot: list[str]
    left: float  # points up to the first column
    width: float  # of a column
    bottom: float
    top: float

    @property
    def fits(self) -> bool:
        return self.width >= _NARROWEST * self.font


def draw_columns(columns: Sequence[_rows.Rows], foot: str, ax: Axes | None) -> Axes:
    """Draw columns with the same labels, a title above each, and a foot below all; they are ``ax.child_axes``."""
    if ax is None:
        width = 72.0 * _canvas.FIGURE_WIDTH
        plan = _plan(_canvas.scratch_axes(), columns, foot, width, _style.base_font())
        room = 72.0 * _canvas.PAGE_HEIGHT - plan.bottom - plan.top
        pitch = max(min((_rows.ROW + _rows.SERIES) * plan.font, room / len(plan.labels)), _least(_canvas.READABLE))
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, (pitch * len(plan.labels) + plan.bottom + plan.top) / 72)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    for font in _layout.fonts():
        plan = _plan(ax, columns, foot, size[0], font)
        need = _least(font) * len(plan.labels) + plan.bottom + plan.top
        if plan.fits and need <= size[1] + 1e-6:
            break
    else:
        what = f"a plot of {len(plan.labels)} rows in {len(columns)} columns"
        raise _canvas.too_small(ax, what, need if plan.fits else None)
    font, step = plan.font, plan.width + _GAP * plan.font
    for i, rows in enumerate(columns):
        place = Cell(plan.left + i * step, plan.bottom, plan.width, size[1] - plan.bottom - plan.top)
        box = place.inset(ax, size)
        _layout.open_panel(box, SMALL * font, edges=("bottom",))
        spill = (0.5 * _GAP * font, 0.5 * _GAP * font)
        _layout.set_along(box, rows.axis(), plan.width, SMALL * font, spill=spill)
        box.set_ylim(len(plan.labels) - 0.5, -0.5)
        box.set_yticks(range(len(plan.labels)), plan.labels if i == 0 else [""] * len(plan.labels))
        for tick in box.get_yticklabels():
            _style.literal(tick).set(fontsize=font, color=_style.INK, va="center", **_style.font_for(plan.labels))
        _rows.draw_guides(box, rows)
        for series in rows.series:
            _rows.draw_series(box, rows, series, font)
        _style.literal(box.set_title(plan.titles[i], loc="left", pad=0.5 * font, **_style.text_style(font)))
    words = _style.text_style(SMALL * font, color=_style.MUTED, ha="left", va="bottom", **_style.font_for(plan.foot))
    for row, line in enumerate(reversed(plan.foot)):
        y = (_canvas.PAD + row * LINE * SMALL * font) / size[1]
        ax.text(_canvas.PAD / size[0], y, line, transform=ax.transAxes, **words)
    return ax


def _least(font: float) -> float:
    """Points that a row takes at least."""
    return _rows.TIGHT_ROW * font


def _plan(ax: Axes, columns: Sequence[_rows.Rows], foot: str, width: float, font: float) -> _Plan:
    names = [_style.one_line(label) for label in columns[0].labels]
    ruler = _style.Ruler(ax, font, **_style.font_for(names))
    labels = _style.shorten(names, _rows.LABEL_SHARE * width, ruler)
    left = _canvas.PAD + _SLACK * ruler.widest(labels) + TICK_PAD
    inner = width - left - _canvas.PAD - 0.5 * font
    each = max((inner - (len(columns) - 1) * _GAP * font) / len(columns), 0.0)
    plain = _style.Ruler(ax, font)
    titles = _layout.titles_within([(rows.title,) for rows in columns], each + 0.5 * _GAP * font, 2, plain)
    small = _style.Ruler(ax, SMALL * font)
    lines = _style.wrap(foot, 0.95 * (width - 2 * _canvas.PAD), small)
    top = _canvas.PAD + (TITLE + LINE * (1 + any("\n" in title for title in titles))) * font
    bottom = _canvas.PAD + LINE * SMALL * font * len(lines) + TICKS * font
    return _Plan(font, labels, titles, lines, left, each, bottom, top)
