"""Tuning curves: a quantile or the mean of the best of k scores, with a simultaneous confidence band.

The best of k independent scores is their largest, with the distribution function F^k, or to minimise their smallest,
with 1 - (1 - F)^k. Its q-quantile is the smallest y at which that function is at least q:

    maximize:  Q(q^(1/k)),    minimize:  Q(1 - (1 - q)^(1/k)),    Q(p) = inf {y : F(y) >= p},

so bounds on F are bounds on the curve, for all k > 0 at once, and the best of one is a score, whatever the direction.
The smallest of y is minus the largest of -y, whose (1 - q)-quantile is read with the band of the turned scores: one
calibration serves both directions, and no digits are lost where 1 - (1 - q)^(1/k) is tiny.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.band import CdfBand, check_from_k
from lmemtest.tuning.band import band as make_band
from lmemtest.tuning.checks import (
    check_bounds,
    check_direction,
    check_k,
    check_scores,
    check_statistic,
    name_of,
    whole_budgets,
)
from lmemtest.tuning.distribution import SLACK
from lmemtest.tuning.order_statistics import BANDS

_SMOOTH = 200  # points of a mean curve that is drawn
_MOST_JUMPS = 5000
_BESIDE = 1e-7  # of k: the distance from a jump, well above the rounding of ranks and far below a pixel
MOST_POINTS = 64  # of a curve whose k were not asked for: every k up to there, then evenly on the log scale


# A pessimistic limit, an estimate and an optimistic limit at (..., m) budgets; or the trials to read them at.
Reading = tuple[Array, Array, Array]


def yes(trivial: bool) -> str:
    """How tables write whether a limit is trivial."""
    return "yes" if trivial else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a curve: what `CurveResult` describes."""

    direction: str
    statistic: str | float
    level: float
    band: str
    from_k: float | None

    @property
    def sign(self) -> float:
        """What turns scores so that larger is better."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def q(self) -> float:
        """The quantile of the curve; 0.5 for the mean, which has none."""
        return 0.5 if isinstance(self.statistic, str) else self.statistic

    @property
    def quantile(self) -> float:
        """`q` when scores are turned so that larger is better.

        The best of k scores y is at most its q-quantile with probability q; that of -y is at most its own with 1 - q.
        """
        return self.q if self.direction == "maximize" else 1.0 - self.q

    @property
    def name(self) -> str:
        """What the curve shows, in words."""
        best = "largest" if self.direction == "maximize" else "smallest"
        return f"{name_of(self.statistic)} of the {best} of k scores"

    def band_for(self, n_scores: int) -> CdfBand:
        """The band of so many scores."""
        return make_band(n_scores, band=self.band, level=self.level, from_k=self.from_k, quantile=self.quantile)


def check_settings(direction: Any, statistic: Any, level: Any, band: Any, from_k: Any) -> Settings:
    """The settings, or an error that says what is wrong with them."""
    direction, statistic = check_direction(direction), check_statistic(statistic)
    level, band = check_fraction(level, "level"), check_choice(band, "band", BANDS)
    if from_k is not None and statistic == "mean":
        raise ArgumentError(
            "from_k is for quantile curves: the mean of the best of k reads the whole distribution function. "
            "Use statistic='median', or from_k=None."
        )
    from_k = None if from_k is None else check_from_k(from_k, band)
    return Settings(direction=direction, statistic=statistic, level=level, band=band, from_k=from_k)


def check_rank_settings(
    direction: Any, statistic: Any, level: Any, band: Any, from_k: Any, *, no_mean: str
) -> Settings:
    """The settings of a quantile curve whose scores are not needed; the median is the same story for both directions.

    `no_mean` says why there is no answer for the mean.
    """
    statistic = check_statistic(statistic)
    if statistic == "mean":
        raise ArgumentError(no_mean)
    if direction is None and statistic not in ("median", 0.5):
        raise ArgumentError(
            f"direction must be given for the {name_of(statistic)}: 'maximize' or 'minimize'. The best score is the "
            "largest or the smallest one, and only for medians both have limits for the same k."
        )
    return check_settings("maximize" if direction is None else direction, statistic, level, band, from_k)


class CurveResult(Result):
    """A result that has `settings`, and lets them be read as its own attributes."""

    __slots__ = ()
    settings: Settings

    @property
    def direction(self) -> str:
        """Which end of the score is better: "maximize" or "minimize"."""
        return self.settings.direction

    @property
    def statistic(self) -> str | float:
        """What of the distribution of the best of k is shown: "median", "mean" or a quantile q, in both directions."""
        return self.settings.statistic

    @property
    def level(self) -> float:
        """Probability that a band holds, as asked for."""
        return self.settings.level

    @property
    def band(self) -> str:
        """Shape of the band."""
        return self.settings.band

    @property
    def from_k(self) -> float | None:
        """Smallest k that the band is calibrated for."""
        return self.settings.from_k


@result
class TuningCurve(CurveResult):
    """The best of k scores as a function of k, with a simultaneous confidence band.

    Attributes
    ----------
    settings : Settings
        Direction, statistic, level, band and from_k; each is an attribute of the curve too.
    k : ndarray of float64, shape (m,)
        Numbers of configurations tried, in the order asked for.
    band_low, estimate, band_high : ndarray of float64, shape (m,)
        The curve and its band, on the scale of the scores: band_low <= band_high, whatever the direction.
    low_trivial, high_trivial : ndarray of bool, shape (m,)
        Whether a limit is the end of the support (`bounds`), and so says nothing.
    bounds : tuple of float
        Smallest and largest score that can occur.
    cdf_band : CdfBand
        The band behind the limits, of the scores sorted from worst to best.
    scores : ndarray of float64, shape (n_scores,)
        The scores sorted from worst to best; not to be written to.
    """

    settings: Settings
    k: Array
    band_low: Array
    estimate: Array
    band_high: Array
    low_trivial: Mask
    high_trivial: Mask
    bounds: tuple[float, float]
    cdf_band: CdfBand
    scores: Array

    parts = {"curve": "_frame"}
    formats = {"k": "g", "trivial": yes}
    figure = "tuning_curve_plot"

    @property
    def title(self) -> str:
        return f"Tuning curve: {self.settings.name}"

    @property
    def facts(self) -> tuple[str, ...]:
        facts = [f"{self.cdf_band.describe()}, for all k at once."]
        if self.statistic == "mean":
            facts.append("The estimate is the V-statistic; the band of a mean is conservative.")
        elif self.k_max < np.inf:
            limit = "upper" if self.direction == "maximize" else "lower"
            facts.append(f"The {limit} limit is trivial for k > {written(self.k_max, '.3g')}.")
        return tuple(facts)

    @property
    def n_scores(self) -> int:
        """Number of scores."""
        return self.cdf_band.n_scores

    @property
    def trivial(self) -> Mask:
        """Whether at least one limit is the end of the support, shape (m,)."""
        return self.low_trivial | self.high_trivial

    @property
    def k_max(self) -> float:
        """The k beyond which the optimistic limit of a quantile curve is trivial for these n and this band.

        It does not depend on the scores. A mean curve has none: NaN.
        """
        if self.statistic == "mean":
            return np.nan
        return trivial_beyond(self.cdf_band, self.settings.quantile)

    def at(self, k: ArrayLike) -> TuningCurve:
        """The same curve and band at other `k`: they hold for all k at once, so this costs nothing.

        Parameters
        ----------
        k : float > 0 or array-like of such
            Numbers of configurations; real numbers are allowed.

        Returns
        -------
        TuningCurve
            With one row per k.

        Raises
        ------
        ArgumentError
            If a k is not positive and finite, or below `from_k` of the band.

        Examples
        --------
        >>> few = curve([0.5, 0.7, 0.6, 0.8], direction="maximize", k=[1])
        >>> few.at(2.5).estimate
        array([0.8])
        """
        return _curve(self.scores, self.cdf_band, check_k(k), self.settings, self.bounds)

    def drawn(self, first: float | None = None, last: float | None = None) -> TuningCurve:
        """The same curve and band at so many k that a line through them shows what lies between.

        Quantile curves and their limits are steps: they are read just before and just after every jump. Mean curves
        are smooth and are read at 200 k.

        Parameters
        ----------
        first, last : float > 0, optional
            From where to where; by default the smallest and the largest k of the curve.

        Returns
        -------
        TuningCurve
            With rising k.

        Examples
        --------
        >>> import numpy as np
        >>> few = curve([0.5, 0.7, 0.6, 0.8], direction="maximize", k=[1, 3])
        >>> np.unique(few.drawn().estimate)
        array([0.6, 0.7, 0.8])
        """
        ends = (float(self.k.min()) if first is None else first, float(self.k.max()) if last is None else last)
        return self.at(drawing_grid(self, *ends))

    def _frame(self) -> pd.DataFrame:
        """One row per k: k, estimate, band_low, band_high, trivial."""
        return pd.DataFrame(
            {name: getattr(self, name) for name in ("k", "estimate", "band_low", "band_high", "trivial")}
        )


@one_blas_thread()
def curve(
    scores: ArrayLike,
    *,
    direction: str,
    k: ArrayLike | None = None,
    statistic: str | float = "median",
    level: float = 0.8,
    band: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
) -> TuningCurve:
    """Estimate how good the best of k configurations is, with a simultaneous confidence band.

    Parameters
    ----------
    scores : array-like of float, shape (n,)
        Scores of independent configurations: random search, not an adaptive one. A failed run is a worst score: the
        worst value that can occur, or an infinite one (-inf to maximise), which makes the mean infinite too.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    k : array-like of float > 0, optional
        Numbers of configurations, real numbers allowed. Default: 1 to n, all of them up to 64 points.
    statistic : "median", "mean" or float in (0, 1), default "median"
        Statistic of the distribution of the best of k. A float q is its q-quantile in both directions: the best of
        k is at most the curve with probability q. So 0.9 is an optimistic curve to maximise and a pessimistic one to
        minimise, and at k = 1 both are the 0.9-quantile of the scores.
    level : float in (0, 1), default 0.8
        Simultaneous coverage of the band for all k > 0: exact for quantiles of a continuous distribution, at least this
        for the mean and for scores with ties.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band, see `lmemtest.tuning.band`.
    bounds : (low, high), optional
        Smallest and largest possible score. The mean needs them: without them it has no limits.
    from_k : float > 0, optional
        Calibrate the band for k >= from_k only, which makes it narrower there. Quantile curves only.

    Returns
    -------
    TuningCurve
        ``to_frame()`` has k, estimate, band_low, band_high, trivial.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.
    DataError
        If scores are missing, infinitely good, or outside of the bounds.

    Notes
    -----
    A quantile is the smallest score y with P(best of k <= y) >= q, as in the paper, in both directions. To maximise,
    with p = q^(1/k), the estimate is the order statistic number ceil(n p), the upper limit the first one whose lower
    band is at least p, the lower limit the first one whose upper band is above p; where there is none, the limit is an
    end of the support and `trivial`. The band is read at the full count of scores at or below a value, so it is right
    for ties and discrete scores too (conservative). The mean is high - integral of F^k: its estimate is the
    V-statistic, and its band integrates the band of F.

    To minimise, limits and means are minus those of -y with 1 - q for q, bit for bit, and so is the estimate, unless
    n p is whole. Then each value from one score to the next is a quantile of the sample, and the smaller of the two is
    the estimate, whatever the direction: at k = 1 the curve is a quantile of the scores, which has no direction.

    References
    ----------
    Lourie, Cho & He (2024), NAACL, section 3.2, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> accuracy = [0.71, 0.62, 0.75, 0.66, 0.73, 0.58, 0.74, 0.70, 0.69, 0.72]
    >>> curve(accuracy, direction="maximize", k=[1, 2, 4], bounds=(0, 1))
    Tuning curve: median of the largest of k scores
    k  estimate  band_low  band_high  trivial
    -  --------  --------  ---------  -------
    1      0.70      0.62       0.74
    2      0.73      0.69       0.75
    4      0.74      0.71       1.00  yes
    80 % LD band of highest-density intervals for n = 10 (alpha' = 0.0360968), for all k at once.
    The upper limit is trivial for k > 2.09.
    """
    return curve_of(scores, check_settings(direction, statistic, level, band, from_k), bounds, k)


def curve_of(
    scores: Any, settings: Settings, bounds: tuple[float, float] | None, k: ArrayLike | None = None
) -> TuningCurve:
    """The curve of scores with checked settings."""
    values = check_scores(scores)
    if bounds is None and settings.statistic == "mean":
        raise ArgumentError(
            "statistic='mean' needs bounds=(low, high), the smallest and the largest score that can occur: without "
            "them a rare score could move the mean anywhere. Pass bounds, or use statistic='median'."
        )
    limits = check_bounds(bounds, values)
    too_good = int(np.sum(values == settings.sign * np.inf))
    if too_good:
        raise DataError(
            f"scores hold {too_good:,} of {len(values):,} that are {settings.sign * np.inf}, the best value there is "
            f"when direction is {settings.direction!r}. A failed run is a worst score: write "
            f"{-settings.sign * np.inf} for it."
        )
    ordered = settings.sign * np.sort(settings.sign * values)  # from worst to best
    ordered.flags.writeable = False
    points = _default_k(len(values), settings.from_k) if k is None else check_k(k)
    return _curve(ordered, settings.band_for(len(values)), points, settings, limits)


def drawing_grid(curve: TuningCurve, first: float, last: float, scales: tuple[float, ...] = (1.0,)) -> Array:
    """Budgets from `first` to `last` between which lines may be drawn: at the ends and on both sides of every jump.

    With `scales`, budgets are costs: a curve or limit is read at the cost over one of them.

    >>> drawing_grid(curve([0.5, 0.7], direction="maximize", k=[1, 3]), 1.0, 3.0).round(6)
    array([1.      , 1.      , 1.823446, 1.823446, 3.      ])
    """
    if not last > first:
        return np.array([first])
    if curve.statistic == "mean":
        return np.geomspace(first, last, _SMOOTH)
    levels = np.concatenate(
        [curve.cdf_band.band_low, curve.cdf_band.band_high, np.arange(1, curve.n_scores) / curve.n_scores]
    )
    levels = levels[(levels > 0.0) & (levels < 1.0)]
    jumps = np.log(curve.settings.quantile) / np.log(levels)
    at = np.unique(np.outer(scales, jumps))
    at = at[(at >= first) & (at <= last)]
    if len(at) > _MOST_JUMPS:  # steps that are finer than any figure
        at = at[np.unique(np.linspace(0, len(at) - 1, _MOST_JUMPS).astype(int))]
    sides = np.concatenate([at * (1.0 - _BESIDE), at * (1.0 + _BESIDE)])
    return np.unique(np.concatenate([[first], sides[(sides > first) & (sides < last)], [last]]))


def trivial_beyond(cdf_band: CdfBand, quantile: float) -> float:
    """The k beyond which a quantile curve has no better limit than the end of the support, when maximising.

    The limit exists as long as quantile^(1/k) is at most the lower band at the largest score.
    """
    top = float(cdf_band.band_low[-1])
    if top in (0.0, 1.0):
        return 0.0 if top == 0.0 else np.inf
    return float(np.log(quantile) / np.log(top))


def _default_k(n: int, from_k: float | None) -> Array:
    first = 1.0 if from_k is None else max(float(from_k), 1.0)
    whole = whole_budgets(n, MOST_POINTS, first) if first <= n else np.empty(0)
    return whole if len(whole) and whole[0] == first else np.concatenate([[first], whole])


def _curve(ordered: Array, cdf_band: CdfBand, k: Array, settings: Settings, bounds: tuple[float, float]) -> TuningCurve:
    from_k = settings.from_k
    if from_k is not None and np.any(k < from_k):
        raise ArgumentError(
            f"k must be at least from_k = {from_k:g}, which the band is calibrated for, got {k.min():g}. "
            "Choose a smaller from_k."
        )
    maximize = settings.direction == "maximize"
    low, high = bounds if maximize else (-bounds[1], -bounds[0])
    rising = ordered if maximize else -ordered
    if settings.statistic == "mean":
        values = _means(rising, cdf_band, k, low, high)
    else:
        values = _quantiles(rising, cdf_band, k, settings.quantile, low, high, turned=not maximize)
    lower, estimate, upper = values if maximize else (-values[2], -values[1], -values[0])
    return TuningCurve(
        settings=settings,
        k=k,
        band_low=lower,
        estimate=estimate,
        band_high=upper,
        low_trivial=lower <= bounds[0],
        high_trivial=upper >= bounds[1],
        bounds=bounds,
        cdf_band=cdf_band,
        scores=ordered,
    )


def _quantiles(y: Array, cdf_band: CdfBand, k: Array, q: float, low: float, high: float, *, turned: bool) -> Reading:
    """Quantiles of the largest of k; of scores that were turned the larger one where there are two."""
    # q^(1/k) underflows for tiny k; any positive number does for a probability below all limits of a band
    with np.errstate(over="ignore"):
        p = np.maximum(q ** (1.0 / k), np.finfo(float).tiny)
    n = len(y)
    extended = np.concatenate([[low], y, [high]])
    rank = np.clip(np.floor(n * p + SLACK) + 1.0 if turned else np.ceil(n * p - SLACK), 1, n).astype(np.intp)
    # F(y) < upper strictly, so F can reach p only where the upper band is above p; F >= lower may be an equality.
    # Rounding must not separate limits and estimate, which coincide in bands of no width.
    worse = np.minimum(np.searchsorted(cdf_band.band_high, p, side="right"), rank)
    better = np.maximum(np.searchsorted(cdf_band.band_low, p, side="left"), rank)
    return extended[worse], extended[rank], extended[better]


def _means(y: Array, cdf_band: CdfBand, k: Array, low: float, high: float) -> Reading:
    """high - integral of F^k over the support, for the band's ends and the estimate; sums of non-negative terms.

    The upper band is 1 from the largest score on, so the lower limit needs no upper bound of the support; the upper
    limit needs no lower bound, because the lower band is 0 below the smallest score.
    """
    n, failed = len(y), int(np.isneginf(y).sum())
    gaps = np.diff(y[failed:])
    share = np.arange(failed + 1, n) / n
    first, top, room = float(cdf_band.band_high[0]), cdf_band.band_low[-1], high - y[-1]
    band_high, band_low = cdf_band.band_high[failed + 1 : -1], cdf_band.band_low[failed + 1 : -1]
    lower, estimate, upper = (np.empty(len(k)) for _ in range(3))
    for place, power in enumerate(k):  # one k at a time: all at once would take n times the memory
        below = 0.0 if first == 0.0 else first**power * (y[0] - low) if np.isfinite(low) else np.inf
        if failed and cdf_band.band_low[failed] > 0.0:  # an infinitely bad best score has a probability for certain
            lower[place] = estimate[place] = upper[place] = -np.inf
            continue
        lower[place] = -np.inf if failed else y[-1] - below - gaps @ band_high**power
        estimate[place] = -np.inf if failed else y[-1] - gaps @ share**power
        beyond = 1.0 - top**power  # the probability that lies above the largest score
        more = beyond * room if np.isfinite(room) else np.inf  # not 0 times infinity for tiny powers
        upper[place] = y[-1] - gaps @ band_low**power + (0.0 if top == 1.0 else more)
    # rounding must not carry a limit beyond the support, where it would no longer count as trivial
    return np.clip(lower, low, high), np.clip(estimate, low, high), np.clip(upper, low, high)
