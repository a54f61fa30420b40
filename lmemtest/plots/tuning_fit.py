"""Fitted tuning curves over the scores they were fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import PAD, Axis, Cell
from lmemtest.plots._lines import Curve, Level, Lines, Panel, draw_lines
from lmemtest.tuning.fit.fit import ParametricFit

_POINTS = 60  # of a line
# Between neighbouring k of a band: closer than a factor, and a share of the range, the band bends too little for
# straight pieces to be seen (within 0.6 % of its height for up to ten hyperparameters and a million k).
_NEAR, _PIECES = 1.2, 16
_UNTRUSTED = "Not to be trusted: see the sentence of the fit."
_SCORES = (
    "Intervals are of the curve, not of scores: each score is drawn at the k whose best of k has it as its quantile, "
    "and neighbours leave the curve together."
)
_BEST = "Bar at the right edge: interval of the asymptotic best."
_AIR = 0.03  # of the range of k, beside bars, so that the last is not taken for that of the asymptotic best


@_canvas.draws("ParametricFit.curve", source="ParametricFit.curve()")
def tuning_fit_plot(curve: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw a fitted tuning curve with its intervals, beside the scores.

    Parameters
    ----------
    curve : Answer
        From `ParametricFit.curve`, at two or more k; the figure covers their range. Of a fit without noise the
        intervals between these k are computed as well, in a second or two; with noise each takes a search of its
        own, so they are drawn at the k of `curve` only, as bars. Ask for 13 k per decade,
        ``fit.curve(np.geomspace(1, 1000, 40))``, and they are a band too.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The x axis is logarithmic in k. The curve is dashed beyond the number
        of scores, where it is an extrapolation, and grey if the fit is not to be trusted. Points: the scores, each at
        the k whose best has it as its quantile. Intervals are a band, or bars with nothing between them.

    Raises
    ------
    ArgumentError
        If `curve` is something else, has fewer than two k, or `ax` is too small.

    Examples
    --------
    >>> from lmemtest import tuning
    >>> fit = tuning.fit(tuning.QuadraticDistribution(0.5, 0.9, 2).sample(60, rng=1), direction="maximize")
    >>> ax = fit.curve([1, 3, 10, 30, 100, 300]).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:2]
    ['fitted curve', 'beyond the scores']
    """
    k, fit, q, table = np.unique(curve.k), curve.fit, curve.q, curve.to_frame()
    if len(k) < 2:
        raise ArgumentError(f"curve must have two or more k, got {len(k)}.")
    pieces = _pieces(k)
    if not (pieces == 1).all() and not fit.settings.noisy:  # further k between them, so that a line looks smooth
        steps = zip(k[:-1], k[1:], pieces, strict=True)
        more = fit.curve(np.concatenate([np.geomspace(a, b, n + 1)[1:-1] for a, b, n in steps]), q=q).to_frame()
        table = pd.concat([table.drop_duplicates("k"), more]).sort_values("k", kind="stable")
    close = bool((pieces == 1).all()) or not fit.settings.noisy
    colour = _style.ACCENT if fit.trusted else _style.NEUTRAL
    x, y = _k_axis(k, close), _score_axis(table)
    best, level = fit.best, f"{100 * fit.settings.level:.4g} % interval"
    name = "asymptotic best" if best.fixed else f"asymptotic best, {level}"

    def draw_best(box: Axes, place: Cell, font: float) -> None:  # noqa: ARG001
        """The interval of the asymptotic best score, at the right edge."""
        ends = np.clip([best.ci_low, best.ci_high], *y.limits)
        style: dict[str, Any] = {"color": colour, "linewidth": 0.5 * font, "linestyle": "-", "clip_on": False}
        box.plot([x.limits[1]] * 2, ends, solid_capstyle="butt", marker="none", label="_interval", **style)

    panel = Panel(
        x=x,
        y=y,
        curves=(*_fitted(fit, q, x, colour), _intervals(table, close, colour, level), _scores(fit, q, x)),
        levels=(Level(at=best.value, colour=_style.MUTED, dash=":", label="_best"),),
        draw=draw_best,
    )
    what = "Median" if q == 0.5 else f"{written(100 * q, '.4g')} % quantile"
    better = "highest" if fit.settings.direction == "maximize" else "lowest"
    lines = Lines(
        what="a tuning curve with its legend",
        panels=(panel,),
        key=((name, lambda font: Line2D([], [], color=_style.MUTED, linestyle=":", linewidth=0.1 * font)),),
        x_label="Configurations tried, k",
        y_label=(f"{what} of the {better} of k scores", what),
        foot=" ".join([*([] if fit.trusted else [_UNTRUSTED]), _SCORES, *([] if best.fixed else [_BEST])]),
    )
    return draw_lines(lines, ax)


def _pieces(k: Array) -> Any:
    """Pieces into which the steps between ascending k must be cut, so that a line through their ends looks smooth."""
    place = np.log(k)
    longest = min(np.log(_NEAR), (place[-1] - place[0]) / _PIECES)
    return np.ceil(np.diff(place) / longest - 1e-9).astype(np.intp)


def _k_axis(k: Array, close: bool) -> Axis:
    """Powers of ten, or the first and last k that were asked for where there are fewer than two."""
    first, last = float(k[0]), float(k[-1])
    air = 1.0 if close else (last / first) ** _AIR
    start, end = np.log10([first / air, last * air])
    decades = 10.0 ** np.arange(np.ceil(start - 1e-9), np.floor(end + 1e-9) + 1)
    ticks = decades if len(decades) > 1 else np.array([first, last])
    labels = tuple(written(k, ",.6g") if k < 1e6 else f"{k:.0e}" for k in ticks)
    return Axis(limits=(first / air, last * air), log=True, ticks=ticks, labels=labels)


def _score_axis(table: pd.DataFrame) -> Axis:
    """The curve with its intervals, as far as they leave the curve visible."""
    estimate = table["estimate"].to_numpy()
    span = float(np.ptp(estimate)) or 1.0
    values = np.concatenate([estimate, table["ci_low"], table["ci_high"]])
    near = values[np.abs(values - estimate.mean()) <= 2.0 * span]
    return Axis.around(np.concatenate([near, estimate]), pad=PAD)


def _fitted(fit: ParametricFit, q: float, x: Axis, colour: str) -> list[Curve]:
    """Solid up to the number of scores, dashed beyond."""
    start, end = x.limits
    last_k = min(max(float(fit.n_scores), start), end)
    curves = []
    for name, first, last, dash in (("fitted curve", start, last_k, "-"), ("beyond the scores", last_k, end, "--")):
        if last > first:
            k = np.geomspace(first, last, _POINTS)
            y = np.asarray(fit.quantile_curve(k, q=q))
            curves.append(Curve(name=name, x=k, y=y, colour=colour, dash=dash, width=0.18, clip=True))
    return curves


def _intervals(table: pd.DataFrame, close: bool, colour: str, level: str) -> Curve:
    """A band where the k are close; else a bar at each, for nothing is known between them."""
    rows = table.drop_duplicates("k").sort_values("k", kind="stable")
    k, estimate, low, high = (rows[name].to_numpy() for name in ("k", "estimate", "ci_low", "ci_high"))
    return Curve(
        name=f"{level}s, pointwise" if close else f"{level}s at {len(k)} k, none between",
        x=k,
        y=estimate,
        low=low,
        high=high,
        colour=colour,
        bars=not close,
        opacity=0.2 if close else 0.4,
        width=0.35,
        label="",
        band_label="_intervals" if close else "_bar",
    )


def _scores(fit: ParametricFit, q: float, x: Axis) -> Curve:
    """At each score the k whose best score has this score as its quantile."""
    k, scores = fit.places_of_scores(q)
    rows = (k >= x.limits[0]) & (k <= x.limits[1])
    dots: dict[str, Any] = {"x": k[rows], "y": scores[rows], "label": "_scores", "clip": True}
    return Curve(name="scores", colour=_style.INK, marker="o", size=0.3, width=0.0, **dots)
