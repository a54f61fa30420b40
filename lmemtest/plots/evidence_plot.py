"""Two tuning curves with their bands and the evidence between them, and the probability of winning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, Row, Span, axis_around, draw_lines, spans_much
from lmemtest.tuning._checks import name_of
from lmemtest.tuning.best_of import BestOf
from lmemtest.tuning.compare import CurveComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_SHADE = {"weak": 0.3, "fair": 0.6, "strong": 1.0}
_MARKED = 12  # budgets, up to which they have markers
_LOOKS = (Look(_style.ACCENT), Look(_style.WARM, (0, (4, 1.5))))


def evidence_plot(comparison: CurveComparison, *, ax: Axes | None = None) -> Axes:
    """Draw two tuning curves with their bands, and below them which is better on what evidence.

    Parameters
    ----------
    comparison : CurveComparison
        From `lmemtest.tuning.compare`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel and a strip, ``ax.child_axes``. The x axis has the budgets, logarithmic if they span more
        than a factor of 25; bands are grey where a limit is trivial. Curves and bands are drawn as the steps that they
        are, between the budgets too. The strip below has the colour of the better curve, darker for more evidence.

    Raises
    ------
    ArgumentError
        If `comparison` is not the result of `compare_curves`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import evidence_plot
    >>> from lmemtest import tuning
    >>> from lmemtest.data.datasets import load_hpo_trials
    >>> loss = load_hpo_trials().pivot(index="trial", columns="benchmark", values="valid_loss")
    >>> found = tuning.compare(loss["mlp-digits"][:64], loss["svm-digits"][:64], direction="minimize",
    ...                        names=("MLP", "SVM"), n_draws=0)
    >>> ax = evidence_plot(found)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['MLP', 'SVM']
    """
    _canvas.check_axes(ax)
    if not isinstance(comparison, CurveComparison):
        raise ArgumentError(
            f"comparison must be the result of tuning.compare(), got {type(comparison).__name__}. "
            "A BestOf is drawn by winning_plot()."
        )
    asked, curves = comparison.grid, []
    for curve, look in zip((comparison.a, comparison.b), _LOOKS, strict=True):
        shown = curve.drawn()
        curves.append(
            Curve(
                name=_style.one_line(curve.name),
                x=shown.grid,
                y=shown.estimate,
                low=shown.band_low,
                high=shown.band_high,
                known=~shown.trivial,
                look=look,
                label="_estimate",
            )
        )
    dots = [dots_at(asked, c.estimate, look) for c, look in zip((comparison.a, comparison.b), _LOOKS, strict=True)]
    x = budget_axis(asked, comparison.axis)
    lines = Lines(
        what="a plot of curves",
        panels=(Panel(x=x, y=axis_around(curves), curves=(*curves, *(one for one in dots if len(asked) <= _MARKED))),),
        strip=(Row(spans=_evidence(comparison, x), empty="none"),),
        x_label=_x_label(comparison.axis),
        y_label=(f"{name_of(comparison.statistic)} of the best score".capitalize(), "Best score"),
        foot=comparison.sentences()[0],
    )
    return draw_lines(lines, ax)


def winning_plot(result: BestOf, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that the best of one search beats the best of another, with its band.

    Parameters
    ----------
    result : BestOf
        From `lmemtest.best_of`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the budgets, the y axis the probability in percent with
        a line at 50 %.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `best_of`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import winning_plot
    >>> from lmemtest.tuning import best_of
    >>> ax = winning_plot(best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize", names=("new", "old")))
    >>> ax.texts[-1].get_text()
    'P(best of new beats best of old), %'
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BestOf):
        raise ArgumentError(f"result must be the result of best_of(), got {type(result).__name__}.")
    shown = result.drawn()
    curve = Curve(
        name=f"estimate with {100 * result.level:.4g} % band",
        x=shown.grid,
        y=100.0 * shown.estimate,
        low=100.0 * shown.band_low,
        high=100.0 * shown.band_high,
        label="_estimate",
    )
    dots = dots_at(result.grid, 100.0 * result.estimate, curve.look)
    first, second = (_style.one_line(name) for name in result.names)
    panel = Panel(
        x=budget_axis(result.grid, result.axis),
        y=Axis(limits=(0.0, 100.0)),
        curves=(curve, dots) if len(result.grid) <= _MARKED else (curve,),
        levels=(Level(at=50.0),),
    )
    lines = Lines(
        what="a plot of curves",
        panels=(panel,),
        x_label=_x_label(result.axis),
        y_label=(f"P(best of {first} beats best of {second}), %", f"P({first} beats {second}), %"),
        foot=result.sentences()[0],
    )
    return draw_lines(lines, ax)


def budget_axis(grid: FloatArray, unit: str) -> Axis:
    """Of trials or costs."""
    return Axis.around(grid, log=spans_much(grid), pad=0.03, whole=unit == "trials")


def dots_at(x: FloatArray, y: FloatArray, look: Look) -> Curve:
    """Estimates at the budgets that were asked for."""
    return Curve(x=x, y=y, look=look, marker="o", size=0.35, width=0.0, label="_asked")


def _x_label(unit: str) -> str:
    return "Trials" if unit == "trials" else "Cost"


def _evidence(comparison: CurveComparison, axis: Axis) -> tuple[Span, ...]:
    """Runs of evidence, each from half way to the budget before it to half way to the one after it."""
    grid = np.log(comparison.grid) if axis.log else comparison.grid
    step = np.diff(grid) if len(grid) > 1 else np.ones(1)
    edges = np.concatenate(
        [[grid[0] - 0.5 * step[0]], grid[: len(grid) - 1] + 0.5 * step[: len(grid) - 1], [grid[-1] + 0.5 * step[-1]]]
    )
    edges = np.clip(np.exp(edges) if axis.log else edges, *axis.limits)
    colours = dict(zip((comparison.a.name, comparison.b.name), (look.colour for look in _LOOKS), strict=True))
    spans = []
    for run in comparison.segments:
        inside = np.flatnonzero((comparison.grid >= run.start) & (comparison.grid <= run.stop))
        fill = {"facecolor": colours[run.better], "alpha": _SHADE[run.evidence], "label": f"_{run.evidence}"}
        spans.append(
            Span(start=float(edges[inside[0]]), end=float(edges[inside[-1] + 1]), fill=fill, word=run.evidence)
        )
    return tuple(spans)
