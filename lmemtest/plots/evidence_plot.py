"""Two tuning curves with their bands and the evidence between them, and the probability of winning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._lines import STRIP, Line, begin, finish, panel
from lmemtest.tuning._arguments import name_of
from lmemtest.tuning.compare import ComparedCurve, CurveComparison
from lmemtest.tuning.evidence import Segment
from lmemtest.tuning.winning import BestOf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_SHADE = {"weak": 0.3, "fair": 0.6, "strong": 1.0}


def evidence_plot(comparison: CurveComparison, *, ax: Axes | None = None) -> Axes:
    """Draw two tuning curves with their bands, and below them which is better on what evidence.

    Parameters
    ----------
    comparison : CurveComparison
        From `lmemtest.tuning.compare.compare_curves`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the budgets, logarithmic if they span more than a factor of 25; bands are pale where a limit is
        trivial. Curves and bands are drawn as the steps that they are, between the budgets too. The strip at the bottom
        has the colour of the better curve, darker for more evidence.

    Raises
    ------
    ArgumentError
        If `comparison` is not the result of `compare_curves`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import evidence_plot
    >>> from lmemtest.tuning.compare import compare_curves
    >>> from lmemtest.data.datasets import load_hpo_trials
    >>> loss = load_hpo_trials().pivot(index="trial", columns="benchmark", values="valid_loss")
    >>> found = compare_curves(loss["mlp-digits"][:64], loss["svm-digits"][:64], direction="minimize",
    ...                        names=("MLP", "SVM"), n_sim=0)
    >>> ax = evidence_plot(found)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['MLP', 'SVM']
    """
    _canvas.check_axes(ax)
    if not isinstance(comparison, CurveComparison):
        raise ArgumentError(
            f"comparison must be the result of compare_curves(), got {type(comparison).__name__}. "
            "A BestOf is drawn by winning_plot()."
        )
    lines = [
        _of_curve(curve, comparison.grid, colour, style)
        for curve, colour, style in zip(
            (comparison.a, comparison.b), (_style.ACCENT, _style.WARM), ("-", (0, (4, 1.5))), strict=True
        )
    ]
    words = f"{name_of(comparison.statistic)} of the best score".capitalize()
    note = comparison.sentences()[0]
    ax, size, slot = begin(ax)
    panel(ax, comparison.grid, lines, size, strip=True)
    _draw_strip(ax, comparison, size)
    finish(ax, (_x_label(comparison.unit), words, note), lines, size, slot, whole=comparison.unit == "trials")
    return ax


def winning_plot(result: BestOf, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that the best of one search beats the best of another, with its band.

    Parameters
    ----------
    result : BestOf
        From `lmemtest.tuning.winning.best_of`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the budgets, the y axis the probability in percent with a line at 50 %.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `best_of`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import winning_plot
    >>> from lmemtest.tuning.winning import best_of
    >>> ax = winning_plot(best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize", names=("new", "old")))
    >>> ax.get_ylabel()
    'P(best of new beats best of old), %'
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BestOf):
        raise ArgumentError(f"result must be the result of best_of(), got {type(result).__name__}.")
    shown = result.drawn()
    line = Line(
        name=f"estimate with {100 * result.confidence:.4g} % band",
        grid=shown.grid,
        lower=100.0 * shown.lower,
        estimate=100.0 * shown.estimate,
        upper=100.0 * shown.upper,
        known=np.ones(len(shown.grid), dtype=bool),
        colour=_style.ACCENT,
        marked=(result.grid, 100.0 * result.estimate),
    )
    ax, size, slot = begin(ax)
    panel(ax, result.grid, [line], size, limits=(0.0, 100.0))
    ax.axhline(50.0, color=_style.INK, linewidth=0.8, linestyle="--", zorder=1, label="_reference")
    first, second = (_style.one_line(name) for name in result.names)
    words = f"P(best of {first} beats best of {second}), %"
    finish(ax, (_x_label(result.unit), words, result.sentence()), [line], size, slot, whole=result.unit == "trials")
    return ax


def _of_curve(curve: ComparedCurve, asked: FloatArray, colour: str, style: Any) -> Line:
    grid, shown = curve.drawn(float(asked[0]), float(asked[-1]))
    return Line(
        name=curve.name,
        grid=grid,
        lower=shown.lower,
        estimate=shown.estimate,
        upper=shown.upper,
        known=~shown.trivial,
        colour=colour,
        style=style,
        marked=(asked, curve.estimate),
    )


def _x_label(unit: str) -> str:
    return "Trials" if unit == "trials" else "Cost"


# ---------------------------------------------------------------------------------------------------- evidence


def _draw_strip(ax: Axes, comparison: CurveComparison, size: float) -> None:
    """One cell per budget at the foot of the axes, and the word where it fits."""
    names = (comparison.a.name, comparison.b.name)
    colours = dict(zip(names, (_style.ACCENT, _style.WARM), strict=True))
    left, right = _cells(ax, comparison.grid)
    transform = ax.get_xaxis_transform()
    ax.axhline(
        ax.get_ylim()[0] + STRIP * (ax.get_ylim()[1] - ax.get_ylim()[0]),
        color=_style.FAINT,
        linewidth=0.6,
        zorder=1,
        label="_guide",
    )
    if not comparison.segments:
        middle: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center_baseline", "zorder": 4}
        ax.text(0.5, 0.5 * STRIP, "none", **middle, **_style.text_style(0.8 * size, color=_style.MUTED))
    for run in comparison.segments:
        inside = (comparison.grid >= run.start) & (comparison.grid <= run.stop)
        begin, end = float(left[inside].min()), float(right[inside].max())
        ax.axvspan(
            begin,
            end,
            ymin=0.0,
            ymax=STRIP,
            facecolor=colours[run.better],
            alpha=_SHADE[run.level],
            linewidth=0,
            label=f"_{run.level}",
            zorder=2.5,
        )
        _write_level(ax, run, begin, end, transform, size)


def _write_level(ax: Axes, run: Segment, begin: float, end: float, transform: Any, size: float) -> None:
    box = ax.transData.transform([(begin, 0.0), (end, 0.0)])
    room = (box[1, 0] - box[0, 0]) * 72 / ax.figure.figure.dpi
    small = 0.8 * size
    if _style.Ruler(ax, small).width(run.level) > 0.65 * room:  # the axes will shrink for their labels
        return
    middle = float(np.sqrt(begin * end)) if ax.get_xscale() == "log" else 0.5 * (begin + end)
    ax.text(
        middle,
        0.5 * STRIP,
        run.level,
        transform=transform,
        ha="center",
        va="center_baseline",
        zorder=4,
        **_style.text_style(small, color="white" if run.level != "weak" else _style.INK),
    )


def _cells(ax: Axes, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the cells around the budgets: half way to their neighbours on the scale of the axis."""
    log = ax.get_xscale() == "log"
    x = np.log(grid) if log else grid
    step = np.diff(x)
    first, last = (step[0], step[-1]) if len(step) else (0.5, 0.5)
    edges = np.concatenate([[x[0] - 0.5 * first], x[:-1] + 0.5 * step, [x[-1] + 0.5 * last]])
    edges = np.clip(np.exp(edges) if log else edges, *ax.get_xlim())
    return edges[:-1], edges[1:]
