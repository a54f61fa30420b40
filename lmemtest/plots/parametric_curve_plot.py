"""Fitted tuning curves over the scores they were fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator
from matplotlib.transforms import blended_transform_factory

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _panels, _style
from lmemtest.tuning.parametric_fit import FittedCurve, ParametricFit
from lmemtest.tuning.quadratic import QuadraticDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.2  # inches of a new figure
_LINES = 13.0  # of text that axes must be high
_POINTS = 60  # of a line
_PAD = 0.05  # of the range of the scores
_AIR = 0.03  # of the range of k, beside bars, so that the last is not taken for that of the asymptotic best
# Between neighbouring k of the band: closer than a factor, and a share of the axis, the band bends too little for
# straight pieces to be seen (within 0.6 % of its height for up to ten hyperparameters and a million k).
_NEAR, _PIECES = 1.2, 16


def parametric_curve_plot(curve: FittedCurve, *, ax: Axes | None = None) -> Axes:
    """Draw a fitted tuning curve with its intervals, beside the scores.

    Parameters
    ----------
    curve : FittedCurve
        From `ParametricFit.curve`, at two or more k; the figure covers their range. Of a fit without noise the
        intervals between these k are computed as well, in a second or two; with noise each takes a search of its
        own, so they are drawn at the k of `curve` only, as bars. Ask for 13 k per decade,
        ``fit.curve(np.geomspace(1, 1000, 40))``, and they are a band too.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis is logarithmic in k. The curve is dashed beyond the number of scores, where it is an extrapolation,
        and grey if the fit is not to be trusted. Points: the scores, each at the k whose best has it as its quantile.
        Intervals are a band, or bars with nothing between them.

    Raises
    ------
    ArgumentError
        If `curve` is no fitted curve, has fewer than two k, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.parametric_curve_plot import parametric_curve_plot
    >>> from lmemtest.tuning.parametric_fit import fit_quadratic
    >>> from lmemtest.tuning.quadratic import QuadraticDistribution
    >>> fit = fit_quadratic(QuadraticDistribution(0.5, 0.9, 2).sample(60, rng=1), direction="maximize")
    >>> ax = parametric_curve_plot(fit.curve([1, 3, 10, 30, 100, 300]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:2]
    ['fitted curve', 'beyond the scores']
    """
    _canvas.check_axes(ax)
    if not isinstance(curve, FittedCurve):
        raise ArgumentError(f"curve must be the result of ParametricFit.curve(), got {type(curve).__name__}.")
    if len(np.unique(curve.k)) < 2:
        raise ArgumentError(f"curve must have two or more k, got {len(np.unique(curve.k))}.")
    if isinstance(curve.fit.distribution, QuadraticDistribution):
        curve = _refined(curve)
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / _LINES)
    if size < _style.SMALLEST_FONT:
        needed = _LINES * _style.SMALLEST_FONT + 2 * _canvas.PAD
        raise _canvas.too_small(ax, "a tuning curve with its legend", needed)
    _canvas.frame(ax, size)
    _set_limits(ax, curve)
    colour = _style.ACCENT if curve.fit.trusted else _style.NEUTRAL
    handles = [
        *_draw_curve(ax, curve, colour, size),
        _draw_intervals(ax, curve, colour, size),
        _draw_best(ax, curve.fit, colour, size),
        _draw_scores(ax, curve, size),
    ]
    ends = curve.k[[curve.k.argmin(), curve.k.argmax()]]
    _set_ticks(ax, ends, size)
    _label(ax, curve, size)
    _draw_legend(ax, handles, slot, size)
    _fitting.fit_inside(ax, slot)
    _set_ticks(ax, ends, size)  # the axes are smaller now
    _label(ax, curve, size)
    _fitting.fit_inside(ax, slot)
    return ax


def _gaps(k: FloatArray) -> NDArray[np.intp]:
    """Pieces into which the steps between ascending k must be cut, so that a line through their ends looks smooth."""
    place = np.log(k)
    longest = min(np.log(_NEAR), (place[-1] - place[0]) / _PIECES)
    return np.ceil(np.diff(place) / longest - 1e-9).astype(np.intp)


def _refined(curve: FittedCurve) -> FittedCurve:
    """The curve at its own k, and at enough k between them."""
    k, first = np.unique(curve.k, return_index=True)
    between = [
        np.geomspace(low, high, pieces + 1)[1:-1] for low, high, pieces in zip(k[:-1], k[1:], _gaps(k), strict=True)
    ]
    if not sum(map(len, between)):
        return curve
    more = curve.fit.curve(np.concatenate(between), q=curve.q)
    at = np.concatenate([k, more.k])
    order = np.argsort(at, kind="stable")
    estimate, low, high = (
        np.concatenate([getattr(curve, name)[first], getattr(more, name)])[order]
        for name in ("estimate", "ci_low", "ci_high")
    )
    return FittedCurve(fit=curve.fit, q=curve.q, k=at[order], estimate=estimate, ci_low=low, ci_high=high)


def _is_band(curve: FittedCurve) -> bool:
    return bool((_gaps(np.unique(curve.k)) == 1).all())


def _set_limits(ax: Axes, curve: FittedCurve) -> None:
    """The curve with its intervals, as far as they leave the curve visible."""
    span = float(np.ptp(curve.estimate)) or 1.0
    values = np.concatenate([curve.estimate, curve.ci_low, curve.ci_high])
    near = values[np.abs(values - curve.estimate.mean()) <= 2.0 * span]
    low, high = float(near.min(initial=curve.estimate.min())), float(near.max(initial=curve.estimate.max()))
    ax.set_xscale("log")
    first, last = float(curve.k.min()), float(curve.k.max())
    air = 1.0 if _is_band(curve) else (last / first) ** _AIR
    ax.set_xlim(first / air, last * air)
    ax.set_ylim(low - _PAD * (high - low), high + _PAD * (high - low))


def _draw_curve(ax: Axes, curve: FittedCurve, colour: str, size: float) -> list[Line2D]:
    """Solid up to the number of scores, dashed beyond."""
    handles = []
    start, end = ax.get_xlim()
    known = min(max(float(curve.fit.n), start), end)
    parts: list[tuple[str, float, float, Literal["-", "--"]]] = [
        ("fitted curve", start, known, "-"),
        ("beyond the scores", known, end, "--"),
    ]
    for name, first, last, style in parts:
        if last > first:
            k = np.geomspace(first, last, _POINTS)
            y = np.asarray(curve.fit.quantile_curve(k, q=curve.q))
            ax.plot(k, y, color=colour, linewidth=0.18 * size, linestyle=style, label="_curve", zorder=2.5)
            handles.append(Line2D([], [], color=colour, linewidth=0.18 * size, linestyle=style, label=name))
    return handles


def _draw_intervals(ax: Axes, curve: FittedCurve, colour: str, size: float) -> Line2D:
    """A band where the k are close; else a bar at each, for nothing is known between them."""
    k, order = np.unique(curve.k, return_index=True)
    bottom, top = ax.get_ylim()
    low, high = (np.clip(end[order], 2 * bottom - top, 2 * top - bottom) for end in (curve.ci_low, curve.ci_high))
    level = f"{100 * curve.fit.setting.confidence:.4g} % intervals"
    if _is_band(curve):
        area = ax.fill_between(k, low, high, color=colour, alpha=0.2, linewidth=0.0)
        area.set_label("_intervals")
        ax.set_ylim(bottom, top)
        return Line2D([], [], color=colour, alpha=0.2, linewidth=6.0, label=f"{level}, each k by itself")
    bars: dict[str, Any] = {"color": colour, "alpha": 0.4, "linewidth": 0.35 * size, "solid_capstyle": "butt"}
    for x, ends in zip(k, np.column_stack([low, high]), strict=True):
        ax.plot([x, x], ends, label="_bar", zorder=2.2, **bars)
    ax.set_ylim(bottom, top)
    style: dict[str, Any] = {
        "linestyle": "none",
        "marker": "|",
        "markersize": size,
        "markeredgewidth": 0.35 * size,
        "alpha": 0.4,
    }
    return Line2D([], [], color=colour, label=f"{level} at {len(k)} k, none between", **style)


def _draw_best(ax: Axes, fit: ParametricFit, colour: str, size: float) -> Line2D:
    """The asymptotic best score with its interval at the right edge."""
    best = fit.best
    bottom, top = ax.get_ylim()
    right = ax.get_xlim()[1]
    ax.axhline(best.value, color=_style.MUTED, linewidth=0.08 * size, linestyle=":", label="_best")
    ends = np.clip([best.low, best.high], bottom, top)
    ax.plot(
        [right, right],
        ends,
        color=colour,
        linewidth=0.5 * size,
        solid_capstyle="butt",
        clip_on=False,
        label="_interval",
    )
    name = "asymptotic best" if best.fixed else f"asymptotic best, {100 * fit.setting.confidence:.4g} % interval"
    return Line2D([], [], color=_style.MUTED, linewidth=0.08 * size, linestyle=":", label=name)


def _draw_scores(ax: Axes, curve: FittedCurve, size: float) -> Line2D:
    """At each score the k whose best score has this score as its quantile."""
    fit, q = curve.fit, curve.q
    n = fit.n
    ranks = np.arange(1, n + 1) / (n + 1)  # the share of F below each score, from the worst, as the fit takes it
    maximize = fit.setting.direction == "maximize"
    worse = fit.n_below if maximize else fit.n_above  # scores that are only counted have no place in the figure
    ordered = fit.scores if maximize else fit.scores[::-1]
    ranks = ranks[worse : worse + len(ordered)]
    k = np.log(q if maximize else 1.0 - q) / np.log(ranks)
    rows = (k >= ax.get_xlim()[0]) & (k <= ax.get_xlim()[1])
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 0.3 * size, "color": _style.INK}
    ax.plot(k[rows], ordered[rows], label="_scores", zorder=3, **style)
    return Line2D([], [], label="scores", **style)


def _set_ticks(ax: Axes, given: FloatArray, size: float) -> None:
    """Powers of ten, or the first and last of the `given` k where there are fewer than two; and round scores."""
    start, end = np.log10(ax.get_xlim())
    decades = 10.0 ** np.arange(np.ceil(start - 1e-9), np.floor(end + 1e-9) + 1)
    if len(decades) < 2:
        decades = np.unique(given)
    labels = [written(k, ",.6g") if k < 1e6 else f"{k:.0e}" for k in decades]
    ruler = _style.Ruler(ax, size)
    across = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    places = (np.log10(decades) - start) / (end - start) * across
    kept = _panels.apart(places, [ruler.width(label) for label in labels], size)
    ax.set_xticks(decades[kept], [labels[i] for i in kept], **_style.text_style(size))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    low, high = ax.get_ylim()
    room = ax.get_window_extent().height * 72 / ax.figure.figure.dpi
    ticks = _canvas.choose_ticks(low, high, room, ruler, cover=False)
    keep = slice(None, None, -(-len(ticks.values) // max(int(room / (2.5 * size)), 2)))
    ax.set_yticks(ticks.values[keep], ticks.labels[keep], **_style.text_style(size))
    ax.set_ylim(low, high)


def _label(ax: Axes, curve: FittedCurve, size: float) -> None:
    fit, q = curve.fit, curve.q
    ruler = _style.Ruler(ax, size)
    box, dpi = ax.get_window_extent(), ax.figure.figure.dpi
    room = box.width * 72 / dpi - 5.0 * size
    across = ["Configurations tried, k"]
    if not fit.trusted:
        across.append("Not to be trusted: see the sentence of the fit.")
    lines = [part for text in across for part in _style.wrap(text, room, ruler)]
    ax.set_xlabel("\n".join(lines), **_style.text_style(size), labelpad=0.4 * size)
    what = "Median" if q == 0.5 else f"{written(100 * q, '.4g')} % quantile"
    better = "highest" if fit.setting.direction == "maximize" else "lowest"
    upright = _style.wrap(f"{what} of the {better} of k scores", box.height * 72 / dpi - 2.0 * size, ruler)
    ax.set_ylabel("\n".join(upright), **_style.text_style(size), labelpad=0.4 * size)


def _draw_legend(ax: Axes, handles: list[Line2D], slot: Bbox, size: float) -> None:
    """Two columns in the middle of the rectangle, in a smaller font where it is narrow."""
    room = slot.width * 72 / ax.figure.figure.dpi - 2 * _canvas.PAD
    widths = [_style.Ruler(ax, size).width(str(handle.get_label())) / size for handle in handles]
    half = -(-len(widths) // 2)
    needed = max(widths[:half]) + max(widths[half:]) + 2 * 2.8 + 2.0  # with two handles and the gap, in font sizes
    middle = ax.figure.transSubfigure.inverted().transform((0.5 * (slot.x0 + slot.x1), slot.y1))[0]
    legend = ax.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(middle, 1.0),
        bbox_transform=blended_transform_factory(ax.figure.transSubfigure, ax.transAxes),
        ncols=2,
        fontsize=max(min(0.9 * size, room / needed), _style.SMALLEST_FONT),
        frameon=False,
        borderpad=0.2,
        labelspacing=0.3,
    )
    for text in legend.get_texts():
        _style.literal(text)
        text.set_color(_style.INK)
