"""Reliability of a ranking over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _style
from lmemtest.plots._spacing import spread_downwards
from lmemtest.studies.variation.ranking_reliability import TARGETS, RankingReliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 4.0  # inches of a new figure
_SMALLEST = 9.0  # lines of text that axes must be high
_LINE = 1.25  # of a label, in font sizes
_POINTS = 200


def reliability_plot(result: RankingReliability, *, ax: Axes | None = None) -> Axes:
    """Draw how the reliability of the ranking grows with benchmarks and seeds.

    Parameters
    ----------
    result : RankingReliability
        From `lmemtest.ranking_reliability`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        A line for each number of seeds of the table, named at its right end; the study itself as a dot with its
        interval; dashed lines at 0.8 and 0.9.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `ranking_reliability`, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.reliability import reliability_plot
    >>> from lmemtest.studies.variation.ranking_reliability import ranking_reliability
    >>> found = ranking_reliability(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [text.get_text() for text in reliability_plot(found).texts]
    ['0.8', '0.9', '25 seeds', '1 seed']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, RankingReliability):
        raise ArgumentError(f"result must be the result of ranking_reliability(), got {type(result).__name__}.")
    seeds = [float(n) for n in dict.fromkeys(result.table["n_seeds"])]
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(ax, height, len(seeds))
    most = float(max(result.table["n_benchmarks"].max(), result.n_benchmarks))
    _frame(ax, size)
    for i, n in enumerate(seeds):
        _draw_curve(ax, result, n, most, _style.colour(i), size)
    own = seeds.index(result.n_seeds) if result.n_seeds in seeds else None
    _draw_study(ax, result, _style.INK if own is None else _style.colour(own), size)
    _label_axes(ax, result, size)
    _canvas.set_number_ticks(ax, 0.0, 1.02 * most, size, whole=True)
    _fitting.fit_inside(ax, slot)
    _label_curves(ax, result, seeds, most, size)
    _fitting.fit_inside(ax, slot)
    _canvas.set_number_ticks(ax, 0.0, 1.02 * most, size, whole=True)
    _fitting.fit_inside(ax, slot)
    return ax


def _font(ax: Axes, height: float, n_curves: int) -> float:
    lines = max(_SMALLEST, _LINE * n_curves + 4.5)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / lines)
    if size < _style.SMALLEST_FONT:
        needed = lines * _style.SMALLEST_FONT + 2 * _canvas.PAD
        raise _canvas.too_small(ax, f"a plot of {n_curves} line{'s' * (n_curves > 1)}", needed)
    return size


def _frame(ax: Axes, size: float) -> None:
    _canvas.frame(ax, size)
    ax.set_ylim(0.0, 1.0)
    ticks = np.arange(0.0, 1.01, 0.2)
    ax.set_yticks(ticks, [written(tick, ".1f") for tick in ticks], **_style.text_style(size))
    for tick in ticks[1:]:
        ax.axhline(tick, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
    for target in TARGETS:
        ax.axhline(target, color=_style.INK, linewidth=0.8, linestyle="--", zorder=1, label="_reference")
        ax.annotate(
            f"{target:g}",
            (0.0, target),
            xycoords=ax.get_yaxis_transform(),
            xytext=(0.3 * size, 0.1 * size),
            textcoords="offset points",
            ha="left",
            va="bottom",
            **_style.text_style(0.85 * size, color=_style.MUTED),
        )


def _draw_curve(ax: Axes, result: RankingReliability, n: float, most: float, colour: str, size: float) -> None:
    benchmarks = np.linspace(1.0, most, _POINTS)
    values = [result.at(b, n) for b in benchmarks]
    style: dict[str, Any] = {"linewidth": 0.14 * size, "linestyle": "-", "marker": "none", "clip_on": False}
    ax.plot(benchmarks, values, color=colour, label="_curve", zorder=3, **style)


def _draw_study(ax: Axes, result: RankingReliability, colour: str, size: float) -> None:
    x = float(result.n_benchmarks)
    style: dict[str, Any] = {"linewidth": 0.16 * size, "linestyle": "-", "marker": "none", "solid_capstyle": "butt"}
    ax.plot([x, x], [result.ci_low, result.ci_high], color=colour, label="_interval", zorder=2, **style)
    ax.plot(
        [x],
        [result.reliability],
        linestyle="none",
        marker="o",
        markersize=0.6 * size,
        color=colour,
        label="_study",
        clip_on=False,
        zorder=4,
    )


def _label_axes(ax: Axes, result: RankingReliability, size: float) -> None:
    level = _style.nobreak(f"{100 * result.level:g} %")
    ruler = _style.Ruler(ax, size)
    width, height = (s * 72 / ax.figure.figure.dpi for s in ax.get_window_extent().size)
    label = f"Benchmarks (dot: this study with its {level} interval)"
    ax.set_xlabel(
        "\n".join(_style.wrap(label, width - 10 * size, ruler)), **_style.text_style(size), labelpad=0.4 * size
    )
    lines = _style.wrap("Reliability of the ranking", height - 3 * size, ruler)
    ax.set_ylabel("\n".join(lines), **_style.text_style(size), labelpad=0.4 * size)


def _label_curves(ax: Axes, result: RankingReliability, seeds: list[float], most: float, size: float) -> None:
    """Name the lines beside their right ends, from the highest down, without overlap."""
    height = ax.get_window_extent().height * 72 / ax.figure.figure.dpi
    order = sorted(range(len(seeds)), key=lambda i: -seeds[i])
    places = spread_downwards([100.0 * result.at(most, seeds[i]) for i in order], 100.0 * _LINE * size / height, 100.0)
    for i, place in zip(order, places, strict=True):
        name = f"{written(seeds[i], '.4g')} seed{'s' * (seeds[i] != 1)}"
        ax.annotate(
            name,
            (1.0, place / 100.0),
            xycoords=ax.get_yaxis_transform(),
            xytext=(0.5 * size, 0.0),
            textcoords="offset points",
            ha="left",
            va="center",
            annotation_clip=False,
            **_style.text_style(size, color=_style.colour(i)),
        )
