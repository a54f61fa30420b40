"""Mean scores over the budget, one curve per algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import MOST_BANDS, Curve, Lines, Panel, axis_around, draw_lines, looks
from lmemtest.studies.budget.budget_effect import BudgetEffect, short_fit
from lmemtest.studies.budget.curves import natural_scale
from lmemtest.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DENSE = 15  # observed means of a curve; the markers of more of them are smaller


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
        It holds the panel, ``ax.child_axes[0]``. Lines: fitted means (where every budget has a mean of its own, these
        joined); shaded, up to five algorithms: their 95 % intervals. Points: observed means, at every budget. A line
        over the logarithm of the budget has a logarithmic axis, a line over the budget a linear one; for other forms
        the axis is logarithmic where the largest budget is at least eight times the smallest. Below the axis stand the
        decision, what lines and points are, and whether the observed means contradict the form.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `budget_effect`, or `ax` is too small for readable text.

    Notes
    -----
    The intervals are of means over benchmarks, which differ in difficulty. Two bands that overlap do not show that two
    algorithms are equal, because the difficulty of the benchmarks cancels in a comparison; the decision is in `result`.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.fidelity import fidelity_plot
    >>> from lmemtest.studies.budget.budget_effect import budget_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = fidelity_plot(budget_effect(runs))
    >>> sorted(text.get_text() for text in ax.child_axes[0].texts)
    ['HB', 'RS']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BudgetEffect):
        raise ArgumentError(f"result must be the result of budget_effect(), got {type(result).__name__}.")
    table, seen = result.curves, result.observed
    axis, position = _budgets(result)
    algorithms = list(dict.fromkeys(table["algorithm"]))
    banded = len(algorithms) <= MOST_BANDS
    fitted, observed = [], []
    for i, (algorithm, look) in enumerate(zip(algorithms, looks(len(algorithms)), strict=True)):
        rows, own = table[table["algorithm"] == algorithm], seen[seen["algorithm"] == algorithm]
        mean, low, high = (rows[name].to_numpy(dtype=float) for name in ("mean", "ci_low", "ci_high"))
        fitted.append(
            Curve(
                name=_style.one_line(algorithm),
                x=np.array([position[b] for b in rows["budget"]]),
                y=mean,
                low=low if banded else None,
                high=high if banded else None,
                opacity=0.15,
                look=look,
                label="_mean",
                band_label="_interval",
            )
        )
        observed.append(
            Curve(
                x=np.array([position[b] if b in position else float(b) for b in own["budget"]]),
                y=own["mean"].to_numpy(dtype=float),
                look=look,
                marker=_style.marker(i),
                size=0.45 * min(1.0, float(np.sqrt(_DENSE / max(len(own), 1)))),
                width=0.0,
                label="_observed",
                front=4,
            )
        )
    curves = (*fitted, *observed)
    better = "lower" if result.direction == "minimize" else "higher"
    lines = Lines(
        what=f"a plot of {counted(len(algorithms), 'curve')}",
        panels=(Panel(x=axis, y=axis_around(curves), curves=curves),),
        beside=True,
        x_label=result.budget,
        y_label=(
            f"Mean {result.score} ({better} is better)",
            f"{result.score} ({better} is better)",
            f"{better} is better",
        ),
        foot=_caption(result),
    )
    return draw_lines(lines, ax)


def _budgets(result: BudgetEffect) -> tuple[Axis, dict[object, float]]:
    """The axis on which a line is straight (for curves the one on which they would be tested as a line), and places."""
    budgets = list(dict.fromkeys(result.curves["budget"]))
    if not all(isinstance(b, int | float | np.number) and not isinstance(b, bool | np.bool_) for b in budgets):
        names = tuple(_style.one_line(b) for b in budgets)
        places = np.arange(len(budgets), dtype=float)
        return Axis.around(places, ticks=places, labels=names), dict(zip(budgets, places.tolist(), strict=True))
    x = np.array(budgets, dtype=float)
    log = result.form == "log" or (result.form != "linear" and natural_scale(x) == "log")
    whole = _canvas.all_whole(result.observed["budget"].to_numpy(dtype=float))
    return Axis.around(x, log=log, whole=whole), {b: float(b) for b in budgets}


def _caption(result: BudgetEffect) -> str:
    """The decision, and what is drawn."""
    parts = [f"Decision: {result.decision}", *(() if result.drawn == "categorical" else ("lines: fitted",))]
    if len(result.observed):
        parts.append("points: observed means")
    if len(result.slopes) <= MOST_BANDS:
        parts.append("shaded: 95 % intervals")
    return "; ".join([*parts, *filter(None, [short_fit(result)])]) + "."
