"""Power over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.transforms import ScaledTranslation

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.inference.power.result import USUAL_POWER, PowerResult
from lmemtest.plots import _canvas, _fitting, _style
from lmemtest.plots._spacing import spread_downwards

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.0  # inches of a new figure
_SMALLEST = 9.0  # lines of text that axes must be high
_DODGE = 0.4  # between the lines of two numbers of seeds, in font sizes, so that their intervals stay apart ...
_MOST_DODGE = 0.15  # ... and of all of them together, as a share of the distance between numbers of benchmarks
_MOST_MARKERS = 15  # designs of a line; more of them are a curve
_LINE = 1.25  # of a label, in font sizes
_GRID = 0.2  # of power


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Power for one number of seeds."""

    name: str
    benchmarks: FloatArray
    power: FloatArray
    low: FloatArray
    high: FloatArray
    colour: str
    marker: str


def power_plot(result: PowerResult, *, ax: Axes | None = None) -> Axes:
    """Draw the power of planned studies with the simulation's intervals.

    Parameters
    ----------
    result : PowerResult
        From `lmemtest.inference.power.power.power`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the number of benchmarks, the y axis power in percent with a line at 80 %; each number of seeds
        has a line, named at its right end.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `power`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.inference.power.power import power
    >>> from lmemtest.plots.power_plot import power_plot
    >>> plan = {"interaction_sd": 0.02, "residual_sd": 0.03}
    >>> curves = power(plan, effect=0.02, n_benchmarks=[10, 20, 40], n_seeds=[1, 5], method="closed_form")
    >>> ax = power_plot(curves)
    >>> [text.get_text() for text in ax.texts]
    ['80 %', '5 seeds', '1 seed']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, PowerResult):
        raise ArgumentError(f"result must be the result of power(), got {type(result).__name__}.")
    curves = _curves(result)
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(ax, height, len(curves))
    _frame(ax, curves, size)
    step = _dodge(ax, curves, size)
    for i, curve in enumerate(curves):
        _draw_curve(ax, curve, (i - 0.5 * (len(curves) - 1)) * step, size)
    _label_axes(ax, result, size)
    _fitting.fit_inside(ax, slot)
    _set_ticks(ax, curves, size)
    _fitting.fit_inside(ax, slot)
    _label_curves(ax, curves, size)
    _fitting.fit_inside(ax, slot)
    _set_ticks(ax, curves, size)
    return ax


def _curves(result: PowerResult) -> list[_Curve]:
    table = result.to_frame()
    curves = []
    for i, n in enumerate(dict.fromkeys(table["n_seeds"])):
        rows = table[table["n_seeds"] == n].sort_values("n_benchmarks", kind="stable")
        power, low, high = (100.0 * rows[name].to_numpy(dtype=float) for name in ("power", "ci_low", "ci_high"))
        curves.append(
            _Curve(
                name=f"{int(n):,} seed{'s' * (int(n) > 1)}",
                benchmarks=rows["n_benchmarks"].to_numpy(dtype=float),
                power=power,
                low=low,
                high=high,
                colour=_style.colour(i),
                marker=_style.marker(i),
            )
        )
    return curves


def _font(ax: Axes, height: float, n_curves: int) -> float:
    """The largest font with which axis labels and one label per line fit."""
    lines = max(_SMALLEST, _LINE * n_curves + 4.5)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / lines)
    if size < _style.SMALLEST_FONT:
        needed = lines * _style.SMALLEST_FONT + 2 * _canvas.PAD
        raise _canvas.too_small(ax, f"a plot of {n_curves} line{'s' * (n_curves > 1)}", needed)
    return size


def _frame(ax: Axes, curves: list[_Curve], size: float) -> None:
    _canvas.frame(ax, size)
    ax.set_ylim(0.0, 100.0)
    ticks = np.arange(0.0, 100.1, 100.0 * _GRID)
    ax.set_yticks(ticks, [written(tick, ".0f") for tick in ticks], **_style.text_style(size))
    for tick in ticks[1:]:
        ax.axhline(tick, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
    usual = 100.0 * USUAL_POWER
    ax.axhline(usual, color=_style.INK, linewidth=0.8, linestyle="--", zorder=1, label="_reference")
    ax.annotate(
        f"{written(usual, '.0f')} %",
        (0.0, usual),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0.3 * size, 0.2 * size),
        textcoords="offset points",
        ha="left",
        va="bottom",
        **_style.text_style(0.85 * size, color=_style.MUTED),
    )
    ax.set_xlim(*_limits(curves))


def _limits(curves: list[_Curve]) -> tuple[float, float]:
    values = np.concatenate([curve.benchmarks for curve in curves])
    low, high = float(values.min()), float(values.max())
    pad = 0.06 * (high - low) if high > low else 0.5 * max(low, 1.0)
    return low - pad, high + pad


def _dodge(ax: Axes, curves: list[_Curve], size: float) -> float:
    """Points between the lines of two numbers of seeds at one number of benchmarks."""
    values = np.unique(np.concatenate([curve.benchmarks for curve in curves]))
    if len(curves) == 1 or len(values) == 1:
        return _DODGE * size
    low, high = _limits(curves)
    width = 0.7 * ax.get_window_extent().width * 72 / ax.figure.figure.dpi  # the rest is for labels
    gap = float(np.diff(values).min()) / (high - low) * width
    return min(_DODGE * size, _MOST_DODGE * gap / (len(curves) - 1))


def _draw_curve(ax: Axes, curve: _Curve, shift: float, size: float) -> None:
    figure = ax.figure
    moved = ax.transData + ScaledTranslation(shift / 72, 0.0, figure.dpi_scale_trans)
    for x, low, high in zip(curve.benchmarks, curve.low, curve.high, strict=True):
        if np.isfinite(low) and np.isfinite(high):
            ax.plot(
                [x, x],
                [low, high],
                color=curve.colour,
                linewidth=0.16 * size,
                linestyle="-",
                marker="none",
                solid_capstyle="butt",
                transform=moved,
                label="_interval",
                zorder=2,
            )
    ax.plot(
        curve.benchmarks,
        curve.power,
        color=curve.colour,
        linewidth=0.12 * size,
        linestyle="-",
        marker=curve.marker if len(curve.power) <= _MOST_MARKERS else "none",
        markersize=0.45 * size,
        transform=moved,
        label="_power",
        clip_on=False,
        zorder=3,
    )


def _label_axes(ax: Axes, result: PowerResult, size: float) -> None:
    ax.set_xlabel("Benchmarks", **_style.text_style(size), labelpad=0.4 * size)
    ax.set_ylabel(
        f"Power to find a difference of {result.effect:g}, %",
        **_style.text_style(size),
        labelpad=0.4 * size,
    )
    ruler = _style.Ruler(ax, size)
    room = ax.get_window_extent().height * 72 / ax.figure.figure.dpi - 3.0 * size
    lines = _style.wrap(ax.get_ylabel(), room, ruler)
    ax.set_ylabel("\n".join(lines), **_style.text_style(size))


def _set_ticks(ax: Axes, curves: list[_Curve], size: float) -> None:
    """Ticks at the numbers of benchmarks that were planned; every second, third, ... where they do not fit."""
    low, high = _limits(curves)
    values = np.unique(np.concatenate([curve.benchmarks for curve in curves]))
    room = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    places = (values - low) / (high - low) * room
    ruler = _style.Ruler(ax, size)
    widths = np.array([ruler.width(written(value, ".0f")) for value in values])
    for stride in range(1, len(values) + 1):
        kept = np.arange(len(values) - 1, -1, -stride)[::-1]  # the largest study always has its tick
        gaps = np.diff(places[kept]) - 0.5 * (widths[kept][1:] + widths[kept][:-1])
        if (gaps >= 0.5 * size).all():
            break
    ax.set_xlim(low, high)
    ax.set_xticks(values[kept], [written(value, ".0f") for value in values[kept]], **_style.text_style(size))


def _label_curves(ax: Axes, curves: list[_Curve], size: float) -> None:
    """Name the lines beside their right ends, from the highest down, without overlap."""
    height = ax.get_window_extent().height * 72 / ax.figure.figure.dpi
    step = 100.0 * _LINE * size / height
    order = sorted(range(len(curves)), key=lambda i: -curves[i].power[-1])
    places = spread_downwards([float(curves[i].power[-1]) for i in order], step, 100.0)
    for i, place in zip(order, places, strict=True):
        ax.annotate(
            curves[i].name,
            (1.0, place),
            xycoords=ax.get_yaxis_transform(),
            xytext=(0.5 * size, 0.0),
            textcoords="offset points",
            ha="left",
            va="center",
            annotation_clip=False,
            **_style.text_style(size, color=curves[i].colour),
        )
