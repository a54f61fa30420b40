"""Profiles of the likelihood, one small panel per parameter."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, draw_lines

SCALES = ("zeta", "deviance")
_MARGIN = 0.05  # of the range, on both ends of the x axis
_HEIGHT = 95.0  # points of a panel in a new figure
_TOP = 1.3  # of the vertical axis, in cuts
_Y_LABELS = {
    "zeta": ("ζ, signed root of the deviance", "root of deviance", "ζ"),
    "deviance": ("deviance above its minimum", "deviance"),
}


@_canvas.draws("profile", source="profile()")
def profile_plot(result: Answer, /, *, scale: str = "zeta", ax: Axes | None = None) -> Axes:
    """Draw the profile of every parameter.

    Parameters
    ----------
    result : Answer
        From `LmmFit.profile`.
    scale : {"zeta", "deviance"}
        The signed root of the deviance, which is a straight line where a symmetric interval is right; or the deviance
        above its minimum.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per row of ``result.table`` and in its order. Each shows the
        profile, the cut (dashed), the interval with its estimate, and in grey the straight line (or parabola) on which
        a symmetric interval rests. The profile goes through the exact points of ``result.curves``, with their slopes.
        A parameter without a profile has an empty panel that says so. Long names take two lines; where these do not
        hold them either, their middle is left out.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 7], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> ax = lt.fit_lmm("loss ~ tool + (1 | task)", table).profile("sd").plot()
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['sd Intercept | task']
    """
    check_choice(scale, "scale", SCALES)
    level = _style.nobreak(f"{100 * result.level:g} % cut")
    what = "restricted likelihood" if result.likelihood.startswith("restricted") else "likelihood"
    y = _y_axis(result, scale)
    rows = zip(result.labels, (row for _, row in result.table.iterrows()), strict=True)
    lines = Lines(
        what=counted(len(result.table), "panel"),
        panels=tuple(_panel(result, name, row, y, scale) for name, row in rows),
        shared=True,
        guides=False,
        smallest=(8.0, 3.8),
        x_label="",
        y_label=_Y_LABELS[scale],
        foot=(
            f"Profiles of the {what}. Dashed: {level}. Bar: interval and estimate. "
            "Grey: what a symmetric interval takes the profile for."
        ),
    )
    return draw_lines(lines, ax, height=_HEIGHT)


def _y_axis(result: Answer, scale: str) -> Axis:
    """Ticks at whole numbers where they say something, else at the cut itself."""
    top = _TOP * result.cut
    if scale == "deviance":
        ticks = np.array([0.0, round(result.cut**2, 2)])
        return Axis(limits=(-0.06 * top**2, top**2), ticks=ticks, labels=tuple(_style.tick_labels(ticks.tolist())))
    step = max(1.0, float(np.floor(top / 2)))
    ticks = np.arange(-np.floor(top / step), np.floor(top / step) + 1) * step
    return Axis(limits=(-top, top), ticks=ticks, labels=tuple(_style.tick_labels(ticks.tolist())))


def _panel(result: Answer, name: str, row: pd.Series[Any], y: Axis, scale: str) -> Panel:
    keys = ["kind", "group", "name1", "name2"]
    curve = result.curves[np.logical_and.reduce([result.curves[key].to_numpy() == row[key] for key in keys])]
    cuts = (-result.cut, result.cut) if scale == "zeta" else (result.cut**2,)
    levels = tuple(Level(at=cut, colour=_style.WARM, dash=(0, (4, 3)), label="_cut") for cut in cuts)
    title = (name,)
    if curve.empty:
        return Panel(x=Axis(limits=(0.0, 1.0)), y=y, levels=levels, title=title, missing="no profile")
    points, zeta = curve["value"].to_numpy(), curve["zeta"].to_numpy()
    ends = np.array([row["ci_low"], row["ci_high"]], dtype=float)
    inside = points[np.abs(zeta) <= _TOP * result.cut]
    x = Axis.around(np.concatenate([inside, ends]), pad=_MARGIN)
    power = 1 if scale == "zeta" else 2
    fine, smooth = _smooth(points, zeta, curve["slope"].to_numpy())
    curves = [Curve(x=fine, y=smooth**power, label="_profile", clip=True)]
    centre = curve[curve["zeta"] == 0].head(1)
    slope = float(centre["slope"].iloc[0]) if len(centre) else float("nan")
    if np.isfinite(slope) and slope > 0:  # the profile that a standard error implies
        at = np.linspace(*x.limits, 2 if scale == "zeta" else 41)
        straight = (slope * (at - float(centre["value"].iloc[0]))) ** power
        grey = Look(_style.FAINT)
        curves.append(Curve(x=at, y=straight, look=grey, label="_symmetric", clip=True, front=1))
    ink: dict[str, Any] = {"look": Look(_style.INK), "front": 4}
    curves.append(Curve(x=ends, y=np.zeros(2), width=0.25, label="_interval", **ink))
    estimate = np.array([float(row["estimate"])])
    curves.append(Curve(x=estimate, y=np.zeros(1), marker="o", size=0.5, width=0.0, label="_estimate", **ink))
    return Panel(x=x, y=y, curves=tuple(curves), levels=levels, title=title)


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
