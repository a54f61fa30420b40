"""Profiles of the likelihood, one small panel per parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.inference.intervals.profile import ProfileResult
from lmemtest.plots import _canvas, _style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SCALES = ("zeta", "deviance")
PANEL_WIDTH, PANEL_HEIGHT = 165.0, 118.0  # points, in a new figure
ASPECT = 1.3  # width over height of a panel that reads well
# In units of the font size.
TITLE, X_LABELS, GAP, LINE, Y_TITLE = 1.8, 1.9, 1.4, 1.35, 1.7
SMALLEST_PANEL = (8.0, 4.0)
MEAN_GLYPH = 0.58  # generous
BREAKS = (" :…", "[](_.-/", "")  # of a title, after one of these: the best first, anywhere last
LEAST_WHOLE = 6.5  # points: below it larger titles without their middle are the lesser evil
CUT = 0.7  # what cut titles cost, beside the logarithm of a bad aspect and twice the share that is cut
MARGIN = 0.05  # of the range, on both ends of the x axis
SMALL = 0.85

_Y_TITLES = {
    "zeta": ("ζ, signed root of the deviance", "root of deviance", "ζ"),
    "deviance": ("deviance above its minimum", "deviance"),
}


@dataclass(frozen=True)
class _Grid:
    """Places of the panels, in points from the lower left corner."""

    columns: int
    rows: int
    font: float
    titles: tuple[str, ...]
    head: float  # height of the titles, in font sizes
    left: float
    bottom: float
    width: float  # of a panel
    height: float
    gap: float

    def box(self, index: int, size: tuple[float, float]) -> tuple[float, float, float, float]:
        """Place of a panel as shares of the rectangle."""
        row, column = divmod(index, self.columns)
        x = self.left + column * (self.width + self.gap)
        from_top = row * (self.height + (self.head + X_LABELS) * self.font) + self.head * self.font + _canvas.PAD
        y = size[1] - from_top - self.height
        return x / size[0], y / size[1], self.width / size[0], self.height / size[1]


def profile_plot(result: ProfileResult, *, scale: str = "zeta", ax: Axes | None = None) -> Axes:
    """Draw the profile of every parameter.

    Parameters
    ----------
    result : ProfileResult
        From `lmemtest.inference.intervals.profile.profile`.
    scale : {"zeta", "deviance"}
        The signed root of the deviance, which is a straight line where a symmetric interval is right; or the deviance
        above its minimum.
    ax : Axes, optional
        Where to draw; the panels fill its rectangle, labels included. With None a new figure is made, which grows
        with the number of parameters.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per row of ``result.table`` and in its order. Each shows the
        profile, the cut (dashed), the interval with its estimate, and in grey the straight line (or parabola) on which
        a symmetric interval rests. The profile goes through the exact points of ``result.curves``, with their slopes.
        A parameter without a profile has an empty panel that says so. Long names take two lines; where these do not
        hold them either, their middle is left out.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `profile`, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.intervals.profile import profile
    >>> from lmemtest.plots.profile_plot import profile_plot
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 7], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> ax = profile_plot(profile(lt.fit_lmm("loss ~ tool + (1 | task)", table), "sd"))
    >>> [panel.get_title() for panel in ax.child_axes]
    ['sd Intercept | task']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, ProfileResult):
        raise ArgumentError(f"result must be the result of profile(), got {type(result).__name__}.")
    check_choice(scale, "scale", SCALES)
    n = len(result.table)
    if ax is None:
        ax = _new_axes(result.labels)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    grid, words = _layout(ax, result, scale, n, size)
    for index, title in enumerate(grid.titles):
        panel = ax.inset_axes(grid.box(index, size))
        _draw_panel(panel, result, index, scale, grid)
        panel.set_title(title, pad=0.45 * grid.font, **_style.text_style(grid.font, **_style.font_for([title])))
        _style.literal(panel.title)
        if index % grid.columns:
            panel.tick_params(axis="y", labelleft=False)
    _draw_words(ax, grid, words, scale, size)
    return ax


def _new_axes(labels: tuple[str, ...]) -> Axes:
    n = len(labels)
    columns = min(n, int(_canvas.FIGURE_WIDTH * 72 // PANEL_WIDTH))
    font = _style.base_font()
    long = max(map(len, labels)) * MEAN_GLYPH * font > PANEL_WIDTH
    head = TITLE + LINE * long
    height = math.ceil(n / columns) * (PANEL_HEIGHT + (head + X_LABELS - 2.5) * font) + 3 * LINE * font
    width = _canvas.FIGURE_WIDTH if columns > 2 else max(columns * PANEL_WIDTH + 60, 300) / 72
    return _canvas.new_axes(width, height / 72)


# ---------------------------------------------------------------------- layout


def _words(result: ProfileResult) -> str:
    level = _style.nobreak(f"{100 * result.level:g} % cut")
    what = "restricted likelihood" if result.likelihood.startswith("restricted") else "likelihood"
    return (
        f"Profiles of the {what}. Dashed: {level}. Bar: interval and estimate. "
        "Grey: what a symmetric interval takes the profile for."
    )


def _layout(ax: Axes, result: ProfileResult, scale: str, n: int, size: tuple[float, float]) -> tuple[_Grid, list[str]]:
    """The grid with the largest font that leaves titles whole, else the largest, and the lines of the caption."""
    font = _style.base_font()
    with_cuts: tuple[_Grid, list[str]] | None = None
    while font >= _style.SMALLEST_FONT:
        ruler = _style.Ruler(ax, font)
        words = _style.wrap(_words(result), size[0] - 2 * _canvas.PAD, _style.Ruler(ax, SMALL * font))
        labels = ruler.widest(_style.tick_labels(_y_ticks(result, scale)))
        left = _canvas.PAD + Y_TITLE * font + labels + 0.7 * font
        bottom = _canvas.PAD + LINE * SMALL * font * len(words)
        names = _Titles(ax, result.labels, font)
        fitting = []
        for columns, most in product(range(1, n + 1), (1, 2)):
            rows = math.ceil(n / columns)
            gap = GAP * font
            head = TITLE + LINE * (most - 1)
            width = (size[0] - left - _canvas.PAD - gap * (columns - 0.5)) / columns
            height = (size[1] - bottom - _canvas.PAD - rows * (head + X_LABELS) * font) / rows
            if width >= SMALLEST_PANEL[0] * font and height >= SMALLEST_PANEL[1] * font:
                titles = names.within(width + 0.5 * gap, most)
                lost = names.lost(titles)
                cost = abs(math.log(width / height / ASPECT)) + (CUT + 2.0 * lost if lost else 0.0)
                found = _Grid(columns, rows, font, titles, head, left, bottom, width, height, gap)
                fitting.append((cost, lost, found))
        if fitting:
            _, lost, found = min(fitting, key=lambda candidate: candidate[0])
            if not lost:
                return found, words
            with_cuts = with_cuts or (found, words)
        font -= 0.5
        if with_cuts is not None and font < LEAST_WHOLE:
            return with_cuts
    raise _canvas.too_small(ax, f"{n} panels", None)


class _Titles:
    """Names of the parameters, measured, on one line or two."""

    def __init__(self, ax: Axes, labels: tuple[str, ...], font: float) -> None:
        self.names = [_style.one_line(label) for label in labels]
        self.ruler = _style.Ruler(ax, font, **_style.font_for(self.names))

    def lost(self, titles: tuple[str, ...]) -> float:
        """Share of the characters that are left out."""
        shown = sum(len(title.replace("…", "")) for title in titles)
        cut = any("…" in title and "…" not in name for title, name in zip(titles, self.names, strict=True))
        return max(1.0 - shown / sum(map(len, self.names)), 1e-9) if cut else 0.0

    def within(self, room: float, lines: int) -> tuple[str, ...]:
        """Titles of at most `lines` lines of `room` points."""
        short = tuple(_style.shorten(self.names, room, self.ruler))
        if lines == 1 or self.ruler.widest(self.names) <= room:
            return short
        whole = self._broken(self.names, room)
        return whole or self._broken(_style.shorten(self.names, 1.8 * room, self.ruler), room) or short

    def _broken(self, names: list[str], room: float) -> tuple[str, ...] | None:
        """The names on one line or two; None if one of them does not fit."""
        titles = []
        for name in names:
            if self.ruler.width(name) <= room:
                titles.append(name)
                continue
            if self.ruler.width(name.replace(" ", "")) > 2.1 * room:  # two lines cannot hold it, wherever it breaks
                return None
            widths = [{parts: self.ruler.widest(parts) for parts in _breaks(name, after)} for after in BREAKS]
            fitting = [tier for tier in widths if tier and min(tier.values()) <= room]
            if not fitting:
                return None
            best = min(fitting[0].items(), key=lambda item: item[1])[0]
            titles.append("\n".join(best))
        return tuple(titles)


def _breaks(name: str, after: str) -> list[tuple[str, str]]:
    """A name in two parts, the first of which ends with one of the characters `after`; with none, with any."""
    places = [i for i, char in enumerate(name[:-1], 1) if not after or char in after]
    return [(name[:i].rstrip(), name[i:].lstrip()) for i in places]


def _draw_words(ax: Axes, grid: _Grid, words: list[str], scale: str, size: tuple[float, float]) -> None:
    style = _style.text_style(SMALL * grid.font, color=_style.MUTED)
    for i, line in enumerate(words):
        y = grid.bottom - (i + 1) * LINE * SMALL * grid.font
        ax.text(_canvas.PAD / size[0], y / size[1], line, transform=ax.transAxes, va="bottom", **style)
    height = size[1] - grid.bottom
    ruler = _style.Ruler(ax, grid.font)
    title = next((t for t in _Y_TITLES[scale] if ruler.width(t) <= height), _Y_TITLES[scale][-1])
    ax.text(
        (_canvas.PAD + 0.6 * grid.font) / size[0],
        (grid.bottom + height / 2) / size[1],
        title,
        transform=ax.transAxes,
        rotation=90,
        ha="center",
        va="center",
        **_style.text_style(grid.font),
    )


# ---------------------------------------------------------------------- one panel


def _top(result: ProfileResult) -> float:
    return 1.3 * result.cut


def _y_ticks(result: ProfileResult, scale: str) -> list[float]:
    """Whole numbers where they say something, else the cut itself."""
    top = _top(result)
    if scale == "deviance":
        return [0.0, round(result.cut**2, 2)]
    step = max(1.0, float(np.floor(top / 2)))
    inside = np.arange(-np.floor(top / step), np.floor(top / step) + 1) * step
    return [float(v) for v in inside] if len(inside) > 1 else [0.0]


def _draw_panel(panel: Axes, result: ProfileResult, index: int, scale: str, grid: _Grid) -> None:
    row = result.table.iloc[index]
    curve = _curve(result, row)
    _frame(panel, result, scale, grid)
    if curve.empty:
        panel.set_xticks([])
        panel.text(
            0.5,
            0.5,
            "no profile",
            transform=panel.transAxes,
            ha="center",
            va="center",
            **_style.text_style(SMALL * grid.font, color=_style.MUTED),
        )
        return
    points, zeta = curve["value"].to_numpy(), curve["zeta"].to_numpy()
    ends = np.array([row["ci_low"], row["ci_high"]], dtype=float)
    low, high = _range(points[np.abs(zeta) <= _top(result)], ends)
    _draw_straight(panel, curve, scale, (low, high))
    x, y = _smooth(points, zeta, curve["slope"].to_numpy())
    y = y if scale == "zeta" else y**2
    panel.plot(x, y, color=_style.ACCENT, linewidth=1.4, label="_profile", clip_on=True)
    panel.plot(ends, [0, 0], color=_style.INK, linewidth=2.2, solid_capstyle="butt", label="_interval", clip_on=False)
    estimate = [float(row["estimate"])]
    panel.plot(estimate, [0], "o", color=_style.INK, markersize=0.5 * grid.font, label="_estimate", clip_on=False)
    panel.set_xlim(low, high)
    _number_ticks(panel, low, high, grid)


def _smooth(x: np.ndarray, zeta: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curve through exact points with exact slopes, fine enough for the eye."""
    from scipy.interpolate import CubicHermiteSpline

    distinct = np.concatenate([[True], np.diff(x) > 1e-9 * (x[-1] - x[0])])
    x, zeta, slope = x[distinct], zeta[distinct], slope[distinct].copy()
    if len(x) < 2:
        return x, zeta
    steepness = np.diff(zeta) / np.diff(x)
    # at a bound: the slope of the last piece, which keeps the curve from overshooting; steeper ones likewise
    slope = np.where(np.isfinite(slope), slope, np.append(steepness, steepness[-1]))
    limit = 3.0 * np.minimum(np.append(steepness, np.inf), np.append(np.inf, steepness))
    slope = np.clip(slope, 0.0, np.maximum(limit, 0.0))
    fine = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in pairwise(x)]))
    return fine, CubicHermiteSpline(x, zeta, slope)(fine)


def _curve(result: ProfileResult, row: pd.Series[Any]) -> pd.DataFrame:
    keys = ["kind", "group", "name1", "name2"]
    same = np.logical_and.reduce([result.curves[key].to_numpy() == row[key] for key in keys])
    return result.curves[same]


def _range(x: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    shown = np.concatenate([x, ends[np.isfinite(ends)]])
    low, high = float(shown.min()), float(shown.max())
    pad = MARGIN * (high - low) or 0.5 * max(abs(low), 1.0)
    return low - pad, high + pad


def _draw_straight(panel: Axes, curve: pd.DataFrame, scale: str, span: tuple[float, float]) -> None:
    """The profile that a standard error implies."""
    centre = curve[curve["zeta"] == 0].head(1)
    slope = float(centre["slope"].iloc[0]) if len(centre) else float("nan")
    if not (np.isfinite(slope) and slope > 0):
        return
    x = np.linspace(*span, 2 if scale == "zeta" else 41)
    y = slope * (x - float(centre["value"].iloc[0]))
    panel.plot(x, y if scale == "zeta" else y**2, color=_style.FAINT, linewidth=1.4, label="_symmetric", zorder=1)


def _frame(panel: Axes, result: ProfileResult, scale: str, grid: _Grid) -> None:
    _canvas.frame(panel, SMALL * grid.font)
    panel.spines["left"].set_visible(True)
    panel.tick_params(axis="y", left=True, length=3.5, width=0.8, color=_style.MUTED)
    top = _top(result)
    low, high = (-top, top) if scale == "zeta" else (-0.06 * top**2, top**2)
    panel.set_ylim(low, high)
    ticks = _y_ticks(result, scale)
    panel.set_yticks(ticks, _style.tick_labels(ticks), **_style.text_style(SMALL * grid.font))
    cuts = (-result.cut, result.cut) if scale == "zeta" else (result.cut**2,)
    for cut in cuts:
        panel.axhline(cut, color=_style.WARM, linewidth=0.9, linestyle=(0, (4, 3)), label="_cut", zorder=1)


def _number_ticks(panel: Axes, low: float, high: float, grid: _Grid) -> None:
    """Round numbers whose labels neither touch nor reach into the next panel."""
    ruler = _style.Ruler(panel, SMALL * grid.font)
    ticks = _canvas.choose_ticks(low, high, grid.width, ruler, cover=False)
    kept = []
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        centre = (value - low) / (high - low) * grid.width
        over = max(ruler.width(label) / 2 - centre, centre + ruler.width(label) / 2 - grid.width)
        if over < 0.4 * grid.gap:
            kept.append((value, label))
    if kept:
        values, labels = zip(*kept, strict=True)
        panel.set_xticks(values, labels, **_style.text_style(SMALL * grid.font))
    else:
        panel.set_xticks([])
