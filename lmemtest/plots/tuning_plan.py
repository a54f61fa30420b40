"""The reach of tuning curves over the number of scores, one line per plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Panel, draw_lines, looks
from lmemtest.tuning.plan import TuningPlan
from lmemtest.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAD = 0.05  # of the range, beyond the largest value


def tuning_plan_plot(plans: TuningPlan | Iterable[TuningPlan], *, ax: Axes | None = None) -> Axes:
    """Draw up to which k tuning curves have two limits, over the number of scores.

    Parameters
    ----------
    plans : TuningPlan or iterable of TuningPlan
        From `lmemtest.tuning.plan`: one line each, for instance for several confidences or methods.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis has the number of scores, the y axis `k_max`; the points
        are those of the plans.

    Raises
    ------
    ArgumentError
        If `plans` are not results of `plan_tuning`, a reach is infinite, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.tuning_plan import tuning_plan_plot
    >>> from lmemtest import tuning
    >>> ax = tuning_plan_plot([tuning.plan(n_scores=range(5, 100, 5), level=c) for c in (0.8, 0.95)])
    >>> [text.get_text() for text in ax.get_legend().get_texts()][1]
    '95 % LD band of highest-density intervals, median'
    """
    _canvas.check_axes(ax)
    given = [plans] if isinstance(plans, TuningPlan) or not isinstance(plans, Iterable) else list(plans)
    for plan in given:
        if not isinstance(plan, TuningPlan):
            raise ArgumentError(f"plans must be results of tuning.plan(), got {type(plan).__name__}.")
    if not given:
        raise ArgumentError("plans must hold at least one result of tuning.plan(), got none.")
    curves = []
    for i, (plan, look) in enumerate(zip(given, looks(len(given)), strict=True)):
        order = np.argsort(plan.n_scores, kind="stable")
        name = plan.describe() if len(given) > 1 else ""
        x, y = plan.n_scores[order].astype(float), plan.k_max[order].astype(float)
        curves.append(Curve(name=name, x=x, y=y, look=look, marker=_style.marker(i), size=0.5, label="_plan"))
    farthest = (1.0 + _PAD) * max(curve.x.max() for curve in curves)
    highest = (1.0 + _PAD) * max(1.0, *(curve.y.max() for curve in curves))
    x_axis, y_axis = (Axis(limits=(0.0, float(end)), whole=True) for end in (farthest, highest))
    lines = Lines(
        what=f"a plot of {counted(len(given), 'plan')}",
        panels=(Panel(x=x_axis, y=y_axis, curves=tuple(curves)),),
        x_label="Scores of a random search",
        y_label=("Largest k with two limits", "Largest k"),
        foot=given[0].describe() if len(given) == 1 else "",
    )
    return draw_lines(lines, ax)
