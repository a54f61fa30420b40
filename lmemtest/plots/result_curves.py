"""Figures of single results of `lmemtest.tuning`: a curve, a band, estimates, coverage; one or several by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Look, Panel, axis_around, draw_lines, looks, spans_much
from lmemtest.plots.evidence_plot import dots_at
from lmemtest.tuning._checks import name_of
from lmemtest.tuning.band import CdfBand
from lmemtest.tuning.curve import TuningCurve
from lmemtest.tuning.distribution import DistributionBand
from lmemtest.tuning.estimators import ExpectedBest
from lmemtest.tuning.simulate import Coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_MARKED = 12  # points asked for, up to which they have markers


def tuning_curve_plot(curves: TuningCurve | Mapping[str, TuningCurve], *, ax: Axes | None = None) -> Axes:
    """Draw a tuning curve with its band, or several by name.

    Parameters
    ----------
    curves : TuningCurve or mapping of name to TuningCurve
        From `lmemtest.tuning.curve`; several must be of one direction and statistic.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: curves and bands as the steps that they are; grey where a limit is the
        end of the support.

    Raises
    ------
    ArgumentError
        If `curves` is something else, several do not go together, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.result_curves import tuning_curve_plot
    >>> from lmemtest import tuning
    >>> ax = tuning_curve_plot(tuning.curve([0.5, 0.7, 0.6, 0.8], direction="maximize"))
    >>> ax.texts[-1].get_text()
    'Median of the largest of k scores'
    """
    named = _named(curves, (TuningCurve,), "curves", "tuning.curve()", ax)
    first = next(iter(named.values()))
    _same(named, lambda curve: (curve.direction, curve.statistic), "direction and statistic")
    lines, asked = [], [(curve.k, curve.estimate) for curve in named.values()]
    for look, (name, curve) in zip(looks(len(named), dashed=True), named.items(), strict=True):
        shown = curve.drawn()
        lines.append(_line(look, name, shown.k, shown.band_low, shown.estimate, shown.band_high, known=~shown.trivial))
    best = "largest" if first.direction == "maximize" else "smallest"
    words = f"{name_of(first.statistic)} of the {best} of k scores".capitalize()
    note = f"{_facts({curve.cdf_band.describe(): None for curve in named.values()})}, for all k at once."
    return _draw(ax, lines, ("Trials k", words, note), asked=asked, whole=True)


def cdf_band_plot(
    bands: DistributionBand | CdfBand | Mapping[str, DistributionBand | CdfBand], *, ax: Axes | None = None
) -> Axes:
    """Draw the band of a distribution function, or several by name.

    Parameters
    ----------
    bands : DistributionBand, CdfBand, or mapping of name to one of these
        From `EmpiricalDistribution.band`, drawn over the scores, or from `cdf_band`, drawn over the share of scores at
        or below.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: band and empirical distribution function as the steps that they are.

    Raises
    ------
    ArgumentError
        If `bands` is something else, both kinds are mixed, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.result_curves import cdf_band_plot
    >>> from lmemtest.tuning.distribution import EmpiricalDistribution
    >>> ax = cdf_band_plot(EmpiricalDistribution([0.5, 0.7, 0.6, 0.8], bounds=(0, 1)).band())
    >>> [text.get_text() for text in ax.texts[-2:]]
    ['Score', 'Distribution function']
    """
    named = _named(bands, (DistributionBand, CdfBand), "bands", "tuning.band() or EmpiricalDistribution.band()", ax)
    _same(named, type, "kind")
    lines = []
    for look, (name, band) in zip(looks(len(named), dashed=True), named.items(), strict=True):
        if isinstance(band, CdfBand):
            share = np.arange(band.n_scores + 1) / band.n_scores
            at, values = _steps(share, band.band_low, share, band.band_high)
        else:
            score = np.unique(band.distribution.scores[np.isfinite(band.distribution.scores)])
            low, high = band.distribution.bounds
            pad = 0.03 * (score[-1] - score[0] or 1.0)
            points = np.unique([max(score[0] - pad, low), *score, min(score[-1] + pad, high)])
            lower, upper = band.cdf_bounds(points)
            at, values = _steps(points, lower, np.asarray(band.distribution.cdf(points)), upper)
        lines.append(_line(look, name, at, *values))
    of_scores = isinstance(next(iter(named.values())), DistributionBand)
    plain = [band.cdf_band if isinstance(band, DistributionBand) else band for band in named.values()]
    facts = {band.describe(): None for band in plain}
    words = ("Score" if of_scores else "Share of scores at or below", "Distribution function", f"{_facts(facts)}.")
    return _draw(ax, lines, words, limits=(0.0, 1.0), log=False)


def expected_best_plot(results: ExpectedBest | Mapping[str, ExpectedBest], *, ax: Axes | None = None) -> Axes:
    """Draw point estimates of the expected best of k scores, or several by name.

    Parameters
    ----------
    results : ExpectedBest or mapping of name to ExpectedBest
        From `lmemtest.tuning.estimators.expected_best`, of one direction.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: lines without any band, which the note below the axis says.

    Raises
    ------
    ArgumentError
        If `results` is something else, several do not go together, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.result_curves import expected_best_plot
    >>> from lmemtest.tuning.estimators import expected_best
    >>> scores = [0.61, 0.70, 0.58, 0.74]
    >>> found = {e.upper(): expected_best(scores, direction="maximize", estimator=e) for e in "uv"}
    >>> [text.get_text() for text in expected_best_plot(found).get_legend().get_texts()]
    ['U', 'V']
    """
    named = _named(results, (ExpectedBest,), "results", "expected_best()", ax)
    _same(named, lambda found: found.direction, "direction")
    lines = []
    for look, (name, found) in zip(looks(len(named), dashed=True), named.items(), strict=True):
        order = np.argsort(found.k, kind="stable")
        y = found.estimate[order]
        lines.append(_line(look, name, found.k[order], None, y, None))
    best = "largest" if next(iter(named.values())).direction == "maximize" else "smallest"
    note = "Point estimates: how much another sample would change them is not shown."
    asked = [(line.x, line.y) for line in lines]
    return _draw(ax, lines, ("Trials k", f"Expected {best} of k scores", note), asked=asked, whole=True)


def coverage_plot(results: Coverage | Mapping[str, Coverage], *, ax: Axes | None = None) -> Axes:
    """Draw how often bands held in simulation against what they claim, or several by name.

    Parameters
    ----------
    results : Coverage or mapping of name to Coverage
        From `simulate_coverage`, over the nominal confidence, or `simulate_bootstrap_coverage`, over the budget.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: coverage in percent with exact 99 % intervals of the simulation; the
        dashed line is what was claimed.

    Raises
    ------
    ArgumentError
        If `results` is something else, both kinds are mixed, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.result_curves import coverage_plot
    >>> from lmemtest.tuning.laws.quadratic import QuadraticDistribution
    >>> from lmemtest.tuning.simulate import simulate_coverage
    >>> found = simulate_coverage(QuadraticDistribution(0, 1, 2), 5, n_draws=50, rng=1)
    >>> coverage_plot(found).texts[-1].get_text()
    'Coverage, %'
    """
    named = _named(results, (Coverage,), "results", "simulate_coverage() or simulate_bootstrap_coverage()", ax)
    _same(named, lambda found: found.by, "kind")
    lines = []
    by_k = next(iter(named.values())).by == "k"
    claims = []
    for look, (name, found) in zip(looks(len(named), dashed=True), named.items(), strict=True):
        order = np.argsort(found.at, kind="stable")
        x = found.at[order] * (1.0 if by_k else 100.0)
        low, high = (100.0 * end[order] for end in found.interval())
        lines.append(_line(look, name, x, low, 100.0 * found.rate[order], high))
        claim: dict[str, Any] = {"look": Look(_style.INK, "--"), "width": 0.09, "label": "_reference", "front": 1}
        claims.append(Curve(x=x, y=100.0 * found.nominal[order], **claim))
    facts = [f"{f.target}: {f.method}, n = {f.n_scores:,}, {f.n_draws:,} simulations" for f in named.values()]
    words = ("Trials k" if by_k else "Nominal, %", "Coverage, %", f"{_facts(dict.fromkeys(facts))}.")
    asked = [(line.x, line.y) for line in lines]
    return _draw(ax, lines, words, asked=asked, limits=(0.0, 100.0), log=by_k, levels=claims)


# ---------------------------------------------------------------------------------------------------- parts


def _named(given: Any, kinds: tuple[type, ...], argument: str, source: str, ax: Axes | None) -> dict[str, Any]:
    """Results by name; one alone has no name."""
    _canvas.check_axes(ax)
    named = {str(key): value for key, value in given.items()} if isinstance(given, Mapping) else {"": given}
    if not named:
        raise ArgumentError(f"{argument} must hold at least one result of {source}, got none.")
    for value in named.values():
        if not isinstance(value, kinds):
            raise ArgumentError(
                f"{argument} must be a result of {source}, or several by name, got {type(value).__name__}."
            )
    return named


def _same(named: dict[str, Any], what: Callable[[Any], Any], words: str) -> None:
    if len({what(value) for value in named.values()}) > 1:
        raise ArgumentError(f"results in one figure must have the same {words}. Draw the others in their own figure.")


def _line(
    look: Look, name: str, x: FloatArray, low: FloatArray | None, y: FloatArray, high: FloatArray | None, **more: Any
) -> Curve:
    name = _style.one_line(name) if name else ""
    return Curve(name=name, x=x, y=y, low=low, high=high, look=look, label="_estimate", **more)


def _steps(points: FloatArray, *values: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Corners of functions that keep each value up to the next point."""
    return np.repeat(points, 2)[1:], [np.repeat(value, 2)[:-1] for value in values]


def _facts(facts: dict[str, None]) -> str:
    """A few different facts, each once."""
    return "; ".join(facts)


def _draw(
    ax: Axes | None,
    curves: list[Curve],
    words: tuple[str, str, str],
    *,
    asked: Sequence[tuple[FloatArray, FloatArray]] = (),
    limits: tuple[float, float] | None = None,
    log: bool = True,
    whole: bool = False,
    levels: Sequence[Curve] = (),
) -> Axes:
    """One panel with the curves, and dots at what was asked for where that is not much."""
    grid = np.concatenate([curve.x for curve in curves])
    curves = [replace(curve, outlined=len(curves) > 1) for curve in curves]
    dots = [dots_at(*at, curve.look) for at, curve in zip(asked, curves, strict=bool(asked)) if len(at[0]) <= _MARKED]
    panel = Panel(
        x=Axis.around(grid, log=log and spans_much(grid), pad=0.03, whole=whole),
        y=axis_around(curves) if limits is None else Axis(limits=limits),
        curves=(*levels, *curves, *dots),
    )
    x_label, y_label, foot = words
    return draw_lines(
        Lines(what="a plot of curves", panels=(panel,), x_label=x_label, y_label=(y_label,), foot=foot), ax
    )
