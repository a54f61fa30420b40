"""How many scores a tuning curve needs, and how far it reaches with those at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_k, check_statistic, direction_of, name_of, turned_quantile
from lmemtest.tuning.bands import METHOD_NAMES, cdf_band
from lmemtest.tuning.curves import trivial_beyond
from lmemtest.tuning.order_statistics import METHODS, check_size

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

MOST_SCORES = 10_000  # calibrating for more takes minutes


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class TuningPlan(Tabular):
    """Numbers of scores with the reach of their tuning curves.

    Attributes
    ----------
    given : {"n", "k"}
        What was asked for.
    n : ndarray of int, shape (m,)
        Numbers of scores: as given, or the smallest that reach k.
    k : ndarray of float64, shape (m,)
        As given, or the largest whole number of configurations that n scores reach.
    k_max : ndarray of float64, shape (m,)
        The k beyond which the optimistic limit of the band is trivial with n scores.
    level : ndarray of float64, shape (m,)
        What the band is calibrated to, see `CdfBand`.
    statistic : "median" or float
        The quantile of the curve.
    direction : {"maximize", "minimize"}
        Of the curve; the median has the same plan for both.
    confidence : float
        Of the band.
    method : str
        Shape of the band.
    from_k : float or None
        Smallest k that the band is calibrated for.
    """

    given: str
    n: NDArray[np.intp]
    k: FloatArray
    k_max: FloatArray
    level: FloatArray
    statistic: str | float
    direction: str
    confidence: float
    method: str
    from_k: float | None

    def to_frame(self) -> pd.DataFrame:
        """One row per question: n, k, k_max, level."""
        import pandas as pd

        return pd.DataFrame({"n": self.n, "k": self.k, "k_max": self.k_max, "level": self.level})

    def describe(self) -> str:
        """The curve and its band in a few words."""
        start = "" if self.from_k is None else f", for k >= {self.from_k:g}"
        way = "" if self.statistic in ("median", 0.5) else f" to {self.direction}"
        return f"{100 * self.confidence:g} % {METHOD_NAMES[self.method]}, {name_of(self.statistic)}{way}{start}"

    def to_table(self) -> ResultTable:
        """The plan as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        answer = (
            "k is the largest whole number of configurations up to which the band says how good tuning may get."
            if self.given == "n"
            else "n is the smallest number of scores with which the band says how good the best of k may be."
        )
        return ResultTable(
            title="Scores for a tuning curve",
            frame=self.to_frame(),
            notes=(f"{self.describe()}.", answer, "Beyond k_max the optimistic limit is the end of the support."),
            formats={"k": "g"},
        )


@one_blas_thread()
def plan_tuning(
    *,
    n: ArrayLike | None = None,
    k: ArrayLike | None = None,
    statistic: str | float = "median",
    direction: str | None = None,
    confidence: float = 0.8,
    method: str = "ld_highest_density",
    from_k: float | None = None,
) -> TuningPlan:
    """Plan the size of a random search: scores for a curve up to k, or the reach of n scores.

    Parameters
    ----------
    n : int >= 1 or array-like of such, optional
        Numbers of scores, at most 100,000 (ten million for "dkw"); the answer is up to which k their curve has two
        limits.
    k : float > 0 or array-like of such, optional
        Numbers of configurations; the answer is the smallest number of scores for which the curve has two limits at k.
        Give either `n` or `k`.
    statistic : "median" or float in (0, 1), default "median"
        The quantile of the curve, see `tuning_curve`. A mean has limits for every k with bounds, for none without.
    direction : {"maximize", "minimize"}, optional
        Which end of the score is better. Needed for a quantile other than the median: a 0.9-quantile to minimise
        reaches as far as a 0.1-quantile to maximise.
    confidence : float in (0, 1), default 0.8
        Of the band.
    method : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band.
    from_k : float > 0, optional
        Plan for a band that is calibrated for k >= from_k.

    Returns
    -------
    TuningPlan
        ``to_frame()`` has n, k, k_max, level.

    Raises
    ------
    ArgumentError
        If not exactly one of `n` and `k` is given, one is out of its range, or k needs more than 10,000 scores.

    Notes
    -----
    The optimistic limit at k exists if q^(1/k) is at most the band's lower end at the largest score, l_n. So
    k_max = ln q / ln l_n, which for highest-density intervals is n ln(1/q) / ln(1/alpha'). This is to maximise; to
    minimise, 1 - q takes the place of q. The numbers are exact, and
    do not depend on the distribution of the scores. A limit that exists is not yet a narrow one.

    References
    ----------
    Lourie, Cho & He (2024), section 5.5, NAACL, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> plan_tuning(k=[2, 8]).to_frame().round(3)
        n    k  k_max  level
    0  10  2.0  2.087  0.036
    1  47  8.0  8.002  0.017
    >>> plan_tuning(n=48, from_k=1).k_max.round(2)
    array([9.65])
    """
    if (n is None) == (k is None):
        raise ArgumentError(
            "give either n (how many scores there are) or k (how many configurations the curve must reach)."
        )
    statistic = check_statistic(statistic)
    if statistic == "mean":
        raise ArgumentError(
            "statistic='mean' has no such k: with bounds its limits are never trivial, without bounds always. "
            "Use 'median' or a quantile."
        )
    direction = direction_of(direction, statistic)
    check_choice(method, "method", METHODS)
    confidence = check_fraction(confidence, "confidence")
    shape = _Shape(confidence, method, from_k, turned_quantile(statistic, direction))
    if n is not None:
        given, sizes = "n", _check_sizes(n, method)
        reach = np.array([shape.reach(size) for size in sizes.tolist()])
        wanted = np.floor(reach)
    else:
        given, wanted = "k", check_k(k)
        sizes = np.array([shape.smallest(target) for target in wanted.tolist()], dtype=np.intp)
        reach = np.array([shape.reach(size) for size in sizes.tolist()])
    return TuningPlan(
        given=given,
        n=sizes,
        k=wanted,
        k_max=reach,
        level=np.array([shape.level(size) for size in sizes.tolist()]),
        statistic=statistic,
        direction=direction,
        confidence=shape.confidence,
        method=method,
        from_k=from_k,
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """A band without its n."""

    confidence: float
    method: str
    from_k: float | None
    quantile: float

    def _band(self, n: int) -> Any:
        return cdf_band(n, method=self.method, confidence=self.confidence, from_k=self.from_k, quantile=self.quantile)

    def level(self, n: int) -> float:
        return float(self._band(n).level)

    def reach(self, n: int) -> float:
        return trivial_beyond(self._band(n), self.quantile)

    def smallest(self, k: float) -> int:
        """The smallest n that reaches k."""
        if self.from_k is not None and k < self.from_k:
            raise ArgumentError(f"k must be at least from_k = {self.from_k:g}, got {k:g}.")
        low, high = self._bracket(k)
        while high - low > 1:  # the reach is close to a straight line in n
            at_low, at_high = self.reach(low) if low else 0.0, self.reach(high)
            share = (k - at_low) / (at_high - at_low)
            middle = min(max(int(np.ceil(low + (high - low) * share)), low + 1), high - 1)
            low, high = (low, middle) if self.reach(middle) >= k else (middle, high)
        return self._before_dips(high, k)

    def _bracket(self, k: float) -> tuple[int, int]:
        """An n that does not reach k (or 0), and a larger one that does.

        The largest order statistic alone keeps to its limit with probability 1 - l_n^n, at least the confidence, so
        no band with fewer than k ln(1 - confidence) / ln q scores reaches k.
        """
        least = k * np.log1p(-self.confidence) / np.log(self.quantile)
        high = max(int(np.ceil(min(least, MOST_SCORES))), 1)
        low = high - 1
        while (reach := self.reach(high)) < k:
            if high == MOST_SCORES:
                raise ArgumentError(
                    f"k = {k:g} needs more than {MOST_SCORES:,} scores, which reach {written(reach, '.4g')} with "
                    f"this method, "
                    "quantile and confidence. Plan for a smaller k or a lower confidence."
                )
            further = 1.02 * high * k / reach if reach > 0.0 else 2.0 * high
            low, high = high, int(min(max(further, high + 1), 2.0 * high, MOST_SCORES))
        return low, high

    def _before_dips(self, n: int, k: float) -> int:
        """The first n that reaches k where the reach is no increasing function of n.

        Near `from_k` few lower limits are left; when one more comes in, about every 2 / (1 - p) scores, the others get
        looser and the reach falls back by less than one such period.
        """
        if self.from_k is None or k > 8.0 * self.from_k:
            return n
        period = 2.0 / (1.0 - self.quantile ** (1.0 / self.from_k))
        window = range(max(1, n - 2 * int(np.ceil(period))), n)
        return next((fewer for fewer in window if self.reach(fewer) >= k), n)


def _check_sizes(n: Any, method: str) -> NDArray[np.intp]:
    sizes = np.array(n, ndmin=1, dtype=object)
    if sizes.ndim != 1 or not len(sizes):
        raise ArgumentError(f"n must be a whole number of at least 1 or a list of such, got {n!r}.")
    return np.array([check_size(size, method) for size in sizes], dtype=np.intp)
