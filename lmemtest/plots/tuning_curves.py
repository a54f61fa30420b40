"""Tuning curves of many algorithms with their bands, one small panel per benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Look, Panel, axis_around, draw_lines, looks, spans_much
from lmemtest.tuning._checks import name_of
from lmemtest.tuning.curves import GroupCurve, TuningCurves
from lmemtest.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND, _CROWDED_BAND = 0.2, 0.1  # opacity
_CROWDED = 6  # algorithms, from which bands are paler
_MARKED = 8  # budgets, up to which they have markers
_AXES = {"trials": "Trials k", "cost": "Cost", "budget": "Budget"}


def tuning_curves_plot(curves: TuningCurves, *, ax: Axes | None = None) -> Axes:
    """Draw the tuning curves of all algorithms, one panel per benchmark.

    Parameters
    ----------
    curves : TuningCurves
        From `lmemtest.tuning.curves`.
    ax : Axes, optional
        Where to draw; the panels fill its rectangle, labels included. With None a new figure is made, which grows with
        the number of benchmarks.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per benchmark in their order. An algorithm has the same colour and
        dashes in all of them; bands are grey where a limit is trivial. Curves and bands are drawn as the steps that
        they are, between the budgets asked for too (curves over seeds stay at a budget's values up to the next). The x
        axis is logarithmic if the budgets of a panel span more than a factor of 25; each panel has its own scale of
        scores.

    Raises
    ------
    ArgumentError
        If `curves` is not the result of `tuning_curves`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.data.datasets import load_hpo_trials
    >>> from lmemtest.plots.tuning_curves import tuning_curves_plot
    >>> from lmemtest import tuning
    >>> curves = tuning.curves(load_hpo_trials(), score="valid_loss", direction="minimize", by=["dataset", "model"])
    >>> ax = tuning_curves_plot(curves)
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['cancer', 'diabetes', 'digits', 'vote']
    """
    _canvas.check_axes(ax)
    if not isinstance(curves, TuningCurves):
        raise ArgumentError(
            f"curves must be the result of tuning.curves(), got {type(curves).__name__}. "
            "Two searches are drawn by evidence_plot(tuning.compare(...))."
        )
    asked = {curve.key: curve for curve in curves.curves}
    curves = replace(curves, curves=tuple(curve.drawn() for curve in curves.curves))
    every = dict(zip(curves.algorithms, looks(len(curves.algorithms), dashed=True), strict=True))
    opacity = _CROWDED_BAND if len(every) > _CROWDED else _BAND
    panels = []
    for benchmark, group in zip(curves.benchmarks, curves.panels(), strict=True):
        lines = [_curve(curve, every[curve.algorithm], opacity, step=curves.unit == "seed") for curve in group]
        dots = [_dots(asked[curve.key], every[curve.algorithm]) for curve in group]
        shared = curves.curves if curves.axis == "trials" else group  # trials mean the same everywhere
        x = np.concatenate([curve.grid for curve in shared])
        panels.append(
            Panel(
                x=Axis.around(x, log=spans_much(x), pad=0.03, whole=curves.axis == "trials"),
                y=axis_around(lines),
                curves=(*lines, *(one for one in dots if len(one.x) <= _MARKED)),
                title=(_style.one_line(benchmark),) if any(curves.benchmarks) else (),
            )
        )
    foot = curves.describe()
    if any(curve.trivial.any() for curve in curves.curves):
        foot += " Grey: a limit is the end of the support and says nothing."
    what = f"best {curves.roles.score}"
    seeds = "over seeds of the" if curves.unit == "seed" else "of the"
    return draw_lines(
        Lines(
            what=counted(len(panels), "panel"),
            panels=tuple(panels),
            x_label=_AXES[curves.axis],
            y_label=(f"{name_of(curves.statistic).capitalize()} {seeds} {what}", what),
            foot=foot,
        ),
        ax,
    )


def _curve(curve: GroupCurve, look: Look, opacity: float, *, step: bool) -> Curve:
    order = np.argsort(curve.grid, kind="stable")
    values: dict[str, Any] = {
        "y": curve.estimate,
        "low": curve.band_low,
        "high": curve.band_high,
        "known": ~curve.trivial,
    }
    return Curve(
        name=_style.one_line(curve.algorithm),
        x=curve.grid[order],
        **{name: value[order] for name, value in values.items()},
        look=look,
        opacity=opacity,
        step=step,
        label="_estimate",
    )


def _dots(asked: GroupCurve, look: Look) -> Curve:
    return Curve(x=asked.grid, y=asked.estimate, look=look, marker="o", size=0.3, width=0.0, label="_asked")
