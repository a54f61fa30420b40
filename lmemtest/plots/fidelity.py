"""Mean scores over the budget, one curve per algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import ConnectionPatch

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _style
from lmemtest.plots._spacing import spread_downwards
from lmemtest.studies.budget.budget_effect import BudgetEffect
from lmemtest.studies.budget.budget_words import short_fit
from lmemtest.studies.budget.curve_model import LOG_RANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.0  # inches of a new figure with few curves
_LINE = 1.25  # font sizes from one label to the next
_TALL_LINE = 1.5  # where another font stands in, whose characters may be taller
_SMALLEST = 11.0  # lines of text that axes must be high
_MOST_BANDS = 5  # more bands over each other are mud
_DENSE = 15  # markers on a curve; more of them are smaller
_LEAD = 1.0  # font sizes from the axes to the names
_PAD = 0.04  # of the range of the scores
_WIDEST_NAME = 0.3  # of the width of the axes


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    seen_x: FloatArray
    seen: FloatArray
    colour: str
    marker: str


def fidelity_plot(result: BudgetEffect, *, ax: Axes | None = None) -> Axes:
    """Draw the mean score of each algorithm over the budget.

    Parameters
    ----------
    result : BudgetEffect
        From `lmemtest.studies.budget.budget_effect.budget_effect`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        Lines: fitted means (where every budget has a mean of its own, these joined); shaded, up to five algorithms:
        their 95 % intervals. Points: observed means, at every budget. A line over the logarithm of the budget has a
        logarithmic axis, a line over the budget a linear one; for other forms the axis is logarithmic where the largest
        budget is at least eight times the smallest. Below the axis stand the verdict, what lines and points are, and
        whether the observed means contradict the form.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `budget_effect`, or `ax` is too small for readable text.

    Notes
    -----
    The intervals are of means over benchmarks, which differ in difficulty. Two bands that overlap do not show that two
    algorithms are equal, because the difficulty of the benchmarks cancels in a comparison; the verdict is in `result`.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.fidelity import fidelity_plot
    >>> from lmemtest.studies.budget.budget_effect import budget_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = fidelity_plot(budget_effect(runs))
    >>> sorted(text.get_text() for text in ax.texts)
    ['HB', 'RS']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BudgetEffect):
        raise ArgumentError(f"result must be the result of budget_effect(), got {type(result).__name__}.")
    curves, places = _curves(result)
    if ax is None:
        rows = _LINE * len(curves) + 5.0
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, max(_HEIGHT, rows * _style.base_font() / 72))
    width, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(ax, height, len(curves))
    _canvas.frame(ax, size)
    _set_limits(ax, curves, places is None and _logarithmic(result, curves))
    for curve in curves:
        _draw(ax, curve, size, bands=len(curves) <= _MOST_BANDS)
    names = _style.shorten([c.name for c in curves], _WIDEST_NAME * width, _style.Ruler(ax, size))
    whole = _canvas.all_whole(np.concatenate([curve.seen_x for curve in curves]))
    for _ in range(3):  # ticks and labels depend on the size of the axes, which depends on them
        _set_ticks(ax, places, size, whole=whole)
        _label_axes(ax, result, size)
        _name_curves(ax, curves, names, size)
        _fitting.fit_inside(ax, slot)
    return ax


def _curves(result: BudgetEffect) -> tuple[list[_Curve], tuple[str, ...] | None]:
    """The curves, and the names of budgets that are no numbers."""
    table, seen = result.curves, result.observed
    budgets = list(dict.fromkeys(table["budget"]))
    numeric = all(isinstance(b, int | float | np.number) and not isinstance(b, bool | np.bool_) for b in budgets)
    position = {b: float(b) if numeric else float(i) for i, b in enumerate(budgets)}
    algorithms = list(dict.fromkeys(table["algorithm"]))
    names = [_style.one_line(a) for a in algorithms]
    out = []
    for i, (algorithm, name) in enumerate(zip(algorithms, names, strict=True)):
        rows = table[table["algorithm"] == algorithm]
        own = seen[seen["algorithm"] == algorithm]
        out.append(
            _Curve(
                name=name,
                x=np.array([position[b] for b in rows["budget"]]),
                mean=rows["mean"].to_numpy(dtype=float),
                low=rows["ci_low"].to_numpy(dtype=float),
                high=rows["ci_high"].to_numpy(dtype=float),
                seen_x=np.array([float(b) if numeric else position[b] for b in own["budget"]]),
                seen=own["mean"].to_numpy(dtype=float),
                colour=_style.colour(i),
                marker=_style.marker(i),
            )
        )
    return out, None if numeric else tuple(_style.one_line(b) for b in budgets)


def _font(ax: Axes, height: float, n_curves: int) -> float:
    """The largest font with which axis labels and one label per curve fit."""
    lines = max(_SMALLEST, _LINE * n_curves + 4.5)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / lines)
    if size < _style.SMALLEST_FONT:
        needed = lines * _style.SMALLEST_FONT + 2 * _canvas.PAD
        raise _canvas.too_small(ax, f"a plot of {n_curves} curve{'s' * (n_curves > 1)}", needed)
    return size


def _logarithmic(result: BudgetEffect, curves: list[_Curve]) -> bool:
    """The axis on which a line is straight; for curves the one on which they would be tested as a line."""
    x = np.concatenate([curve.x for curve in curves])
    return result.form == "log" or bool(result.form != "linear" and x.min() > 0 and x.max() >= LOG_RANGE * x.min())


def _set_limits(ax: Axes, curves: list[_Curve], logarithmic: bool) -> None:
    x = np.concatenate([curve.x for curve in curves])
    if logarithmic:
        ax.set_xscale("log")
        factor = (x.max() / x.min()) ** _PAD
        ax.set_xlim(x.min() / factor, x.max() * factor)
    else:
        pad = _PAD * (x.max() - x.min())
        ax.set_xlim(x.min() - pad, x.max() + pad)
    parts = [v for c in curves for v in ((c.low, c.high) if len(curves) <= _MOST_BANDS else (c.mean,))]
    y = np.concatenate([*parts, *(c.mean for c in curves), *(c.seen for c in curves)])
    y = y[np.isfinite(y)]
    low, high = (float(y.min()), float(y.max())) if len(y) else (0.0, 1.0)
    pad = _PAD * ((high - low) or abs(high) or 1.0)
    ax.set_ylim(low - pad, high + pad)


def _draw(ax: Axes, curve: _Curve, size: float, *, bands: bool) -> None:
    if bands:
        area = ax.fill_between(curve.x, curve.low, curve.high, color=curve.colour, alpha=0.15, linewidth=0.0)
        area.set_label("_interval")
    ax.plot(
        curve.x,
        curve.mean,
        color=curve.colour,
        linewidth=0.16 * size,
        linestyle="-",
        marker="none",
        label="_mean",
        zorder=3,
    )
    ax.plot(
        curve.seen_x,
        curve.seen,
        color=curve.colour,
        linestyle="none",
        marker=curve.marker,
        markersize=0.45 * size * min(1.0, float(np.sqrt(_DENSE / max(len(curve.seen), 1)))),
        markeredgewidth=0.0,
        label="_observed",
        clip_on=False,
        zorder=4,
    )


def _set_ticks(ax: Axes, places: tuple[str, ...] | None, size: float, *, whole: bool) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    ruler = _style.Ruler(ax, size)
    dpi = ax.figure.figure.dpi
    box = ax.get_window_extent()
    low, high = ax.get_xlim()
    room = box.width * 72 / dpi
    if places is not None:
        values, labels = np.arange(len(places), dtype=float), list(places)
        kept = _apart(values, labels, (values - low) / (high - low) * room, ruler)
        ax.set_xticks(values[kept], [labels[i] for i in kept], **_style.text_style(size))
    elif ax.get_xscale() == "log":
        values = _log_values(low, high)
        labels = [f"{value:g}" for value in values]
        where = np.log(values / low) / np.log(high / low) * room
        kept = _apart(np.array(values), labels, where, ruler)
        ax.set_xticks(np.array(values)[kept], [labels[i] for i in kept], **_style.text_style(size))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        _canvas.set_number_ticks(ax, low, high, size, whole=whole)
    bottom, top = ax.get_ylim()
    ticks = _canvas.choose_ticks(bottom, top, box.height * 72 / dpi, _Lines(size), cover=False)
    ax.set_yticks(ticks.values, ticks.labels, **_style.text_style(size))
    ax.set_ylim(bottom, top)
    for line in [line for line in ax.lines if line.get_label() == "_guide"]:
        line.remove()
    for value in ticks.values:
        ax.axhline(value, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")


class _Lines(_style.Ruler):
    """Measures tick labels along the y axis, where each takes one line and air around it."""

    def __init__(self, size: float) -> None:
        self.size = size

    def width(self, text: str) -> float:  # noqa: ARG002 - every label is as high as a line
        return 2.0 * self.size


def _log_values(low: float, high: float) -> np.ndarray:
    """Powers of ten, with 2 and 5 between them where the range is short."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    steps = (1.0, 2.0, 5.0) if np.log10(high / low) < 3.0 else (1.0,)
    values = np.array([step * 10.0**decade for decade in decades for step in steps])
    return values[(values >= low) & (values <= high)]


def _apart(values: np.ndarray, labels: list[str], where: np.ndarray, ruler: _style.Ruler) -> np.ndarray:
    """Every, every second, ... tick, so that the labels do not touch."""
    widths = np.array([ruler.width(label) for label in labels])
    kept = np.arange(len(values))
    for stride in range(1, len(values) + 1):
        kept = np.arange(0, len(values), stride)
        gaps = np.diff(where[kept]) - 0.5 * (widths[kept][1:] + widths[kept][:-1])
        if (gaps >= 0.5 * ruler.size).all():
            break
    return kept


def _label_axes(ax: Axes, result: BudgetEffect, size: float) -> None:
    dpi = ax.figure.figure.dpi
    box = ax.get_window_extent()
    ruler = _style.Ruler(ax, size)
    lines = _style.wrap(_caption(result), box.width * 72 / dpi - size, ruler)
    ax.set_xlabel("\n".join(lines), **_style.text_style(size, **_style.font_for(lines)), labelpad=0.4 * size)
    words = (
        f"Mean {_style.one_line(result.score)} ({'lower' if result.direction == 'minimize' else 'higher'} is better)"
    )
    lines = _style.wrap(words, box.height * 72 / dpi - size, ruler)
    ax.set_ylabel("\n".join(lines), **_style.text_style(size, **_style.font_for(lines)), labelpad=0.4 * size)
    for label in (ax.xaxis.label, ax.yaxis.label):
        _style.literal(label)


def _caption(result: BudgetEffect) -> str:
    """The budget, the verdict, and what is drawn."""
    means = result.drawn == "categorical"
    parts = [f"verdict: {result.verdict}", *(() if means else ("lines: fitted",))]
    if len(result.observed):
        parts.append("points: observed means")
    if len(result.slopes) <= _MOST_BANDS:
        parts.append("shaded: 95 % intervals")
    parts += [text for text in (short_fit(result),) if text]
    return f"{_style.one_line(result.budget)} ({'; '.join(parts)})"


def _name_curves(ax: Axes, curves: list[_Curve], names: list[str], size: float) -> None:
    """Name the curves beside their right ends, from the highest down, without overlap."""
    for artist in [*ax.texts, *(patch for patch in ax.patches if patch.get_label() == "_lead")]:
        artist.remove()
    box = ax.get_window_extent()
    width, height = box.width * 72 / ax.figure.figure.dpi, box.height * 72 / ax.figure.figure.dpi
    bottom, top = ax.get_ylim()
    last = [c.mean[np.isfinite(c.mean)][-1] if np.isfinite(c.mean).any() else bottom for c in curves]
    wanted = [float((value - bottom) / (top - bottom)) * height for value in last]
    order = sorted(range(len(curves)), key=lambda i: -wanted[i])
    font = _style.font_for(names)
    line = _TALL_LINE if font else _LINE
    places = spread_downwards([wanted[i] for i in order], line * size, height)
    for i, place in zip(order, places, strict=True):
        end = 1.0 + _LEAD * size / width
        ax.text(
            end + 0.2 * size / width,
            place / height,
            names[i],
            transform=ax.transAxes,
            ha="left",
            va="center",
            **_style.text_style(size, color=curves[i].colour, **font),
        )
        lead = ConnectionPatch(
            (curves[i].x[-1], last[i]),
            (end, place / height),
            coordsA=ax.transData,
            coordsB=ax.transAxes,
            color=curves[i].colour,
            linewidth=0.06 * size,
        )
        lead.set_label("_lead")
        ax.add_artist(lead)
