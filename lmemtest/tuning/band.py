"""Simultaneous confidence bands for a distribution function, for any distribution, calibrated without simulation."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.result import Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning.checks import check_k, plain
from lmemtest.tuning.order_statistics import BANDS, calibrate, check_size, crossing_probability, limits

if TYPE_CHECKING:
    from lmemtest.tuning.distribution import EmpiricalDistribution

BAND_NAMES = {
    "ld_highest_density": "LD band of highest-density intervals",
    "ld_equal_tailed": "LD band of equal-tailed intervals",
    "ks": "Kolmogorov-Smirnov band",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz band",
}


@result
class CdfBand(Result):
    """A simultaneous confidence band for the distribution function F of n scores, as a function of the count.

    The band at a score y is ``band_low[j] <= F(y) <= band_high[j]`` with j the number of scores at or below y, ties
    included. It does not depend on the scores themselves.

    Attributes
    ----------
    n_scores : int
        Number of scores.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band.
    level : float
        Probability that the band holds everywhere at once: exactly for a continuous F (at least, for "dkw"), at least
        for any other F.
    critical_value : float
        What the band was calibrated to. LD bands: alpha', the share of the law of each order statistic that lies
        outside of its interval. "ks" and "dkw": the half-width.
    band_low, band_high : ndarray of float64, shape (n_scores + 1,)
        The band at the counts j = 0, ..., n_scores; not to be written to.
    from_k : float or None
        If given, the band holds for the part of F that tuning curves read for k >= from_k.
    quantile : float
        The quantile that `from_k` refers to, of the largest of k.
    distribution : EmpiricalDistribution or None
        The scores that the band is around; None where only their number was given.
    """

    n_scores: int
    band: str
    level: float
    critical_value: float
    band_low: Array
    band_high: Array
    from_k: float | None = None
    quantile: float = 0.5
    distribution: EmpiricalDistribution | None = None

    parts = {"band": "_frame"}
    figure = "tuning_band_plot"

    @property
    def title(self) -> str:
        return "Band for a distribution function" if self.distribution is None else "Distribution function of one score"

    @property
    def facts(self) -> tuple[str, ...]:
        return (f"{self.describe()}.",)

    def coverage(self) -> float:
        """Exact probability that the band holds for a continuous F; the level up to rounding, except "dkw"
        (conservative) and levels that no band of the shape has.

        Examples
        --------
        >>> dkw = band(48, band="dkw")
        >>> dkw.level, round(dkw.coverage(), 4)
        (0.8, 0.8201)
        """
        return crossing_probability(self.band_low[1:], self.band_high[:-1])

    def cdf_bounds(self, y: ArrayLike) -> tuple[Any, Any]:
        """Lower and upper limit of F(y), read at the full count of scores at or below `y`.

        Raises
        ------
        ArgumentError
            If the band is around no scores.

        Examples
        --------
        >>> from lmemtest.tuning import EmpiricalDistribution
        >>> EmpiricalDistribution([0.5, 0.75, 1.0], bounds=(0, 1)).band().cdf_bounds(0.8)
        (0.117..., 1.0)
        """
        if self.distribution is None:
            raise ArgumentError(
                "this band is for a number of scores, and has limits by their count alone, in to_frame(). For limits "
                "at a score use EmpiricalDistribution(scores).band()."
            )
        counts = self.distribution.counts(y)
        low, high = self.distribution.bounds
        lower = np.where(np.asarray(y) >= high, 1.0, self.band_low[counts])
        upper = np.where(np.asarray(y) < low, 0.0, self.band_high[counts])
        return plain(lower), plain(upper)

    def _frame(self) -> pd.DataFrame:
        """One row per count of scores at or below, or per distinct score: it, estimate of F, band_low, band_high."""
        if self.distribution is None:
            count = np.arange(self.n_scores + 1)
            columns, limits = {"count": count, "estimate": count / self.n_scores}, (self.band_low, self.band_high)
        else:
            score = np.unique(self.distribution.scores)
            columns, limits = {"score": score, "estimate": self.distribution.cdf(score)}, self.cdf_bounds(score)
        return pd.DataFrame({**columns, "band_low": limits[0], "band_high": limits[1]})

    def describe(self, *, number: bool = True) -> str:
        """What the band is, as the beginning of a sentence; with the number that makes it, or for a reader's eye."""
        what = f"{percent(self.level)} {BAND_NAMES[self.band]} for n = {self.n_scores:,}"
        if not number:
            return what if self.from_k is None else f"{what}, calibrated for k >= {self.from_k:g}"
        name = "half-width" if self.band in ("ks", "dkw") else "alpha' ="
        where = (
            "" if self.from_k is None else f", calibrated for k >= {self.from_k:g} at the {self.quantile:g} quantile"
        )
        return f"{what} ({name} {self.critical_value:.6g}{where})"


@one_blas_thread()
def band(
    n_scores: int,
    *,
    band: str = "ld_highest_density",
    level: float = 0.8,
    from_k: float | None = None,
    quantile: float = 0.5,
) -> CdfBand:
    """Make a simultaneous confidence band for the distribution function of n independent scores.

    Parameters
    ----------
    n_scores : int >= 1
        Number of scores: at most 100,000, and ten million for "dkw". 10,000 take a few seconds the first time.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band: intervals of the order statistics with equal probability, the shortest ("ld_highest_density",
        the narrowest where tuning curves read it) or with equal tails; or a constant width, exact ("ks") or from an
        inequality ("dkw").
    level : float in (0, 1)
        Probability that the band holds everywhere.
    from_k : float > 0, optional
        Calibrate for quantile tuning curves at k >= from_k only, which read F at probabilities of at least
        quantile^(1/from_k). Exact too, and narrower there; not for "dkw".
    quantile : float in (0, 1), default 0.5
        The quantile of the curve that `from_k` refers to, of the largest of k scores. The q-quantile of the smallest is
        minus the (1 - q)-quantile of the largest of -y: give 1 - q for it.

    Returns
    -------
    CdfBand
        ``to_frame()`` has count, estimate, band_low, band_high.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.

    Notes
    -----
    For independent scores Y = Q(V) with V uniform, #{Y <= y} = #{V <= F(y)} = j, hence V_(j) <= F(y) < V_(j+1) for
    *every* distribution. If l_i <= V_(i) <= u_i for all i, then l_j <= F(y) < u_(j+1): the band at count j is
    band_low[j] = l_j and band_high[j] = u_(j+1), with l_0 = 0 and u_(n+1) = 1. For a continuous F its level is the
    probability of these intervals, and for any other F at least that.

    With `from_k`, lower limits below p = quantile^(1/from_k) are left out (the curve never reads them) and upper limits
    below p are replaced by p.

    References
    ----------
    Lourie, Cho & He (2024), NAACL, doi:10.18653/v1/2024.naacl-long.189;
    Learned-Miller & DeStefano (2008), IEEE Trans. Inf. Theory 54, 5223-5230

    Examples
    --------
    >>> four = band(4, level=0.8)
    >>> four.band_low.round(3), four.band_high.round(3)
    (array([0.   , 0.   , 0.05 , 0.246, 0.5  ]), array([0.5  , 0.754, 0.95 , 1.   , 1.   ]))
    """
    check_choice(band, "band", BANDS)
    n_scores, level = check_size(n_scores, band), check_fraction(level, "level")
    quantile = check_fraction(quantile, "quantile")
    return _band(n_scores, band, level, None if from_k is None else check_from_k(from_k, band), quantile)


def check_from_k(from_k: Any, band: str) -> float:
    """The smallest k that a band is calibrated for."""
    checked = check_k(from_k, "from_k")
    if len(checked) != 1:
        raise ArgumentError(f"from_k must be one number, the smallest k that the band is for, got {from_k!r}.")
    if band == "dkw":
        calibrated = ", ".join(repr(name) for name in BANDS if name != "dkw")
        raise ArgumentError(
            f"from_k changes the calibration, and 'dkw' comes from an inequality that has none. Use {calibrated}."
        )
    return float(checked[0])


@lru_cache(maxsize=256)
def _band(n: int, band: str, level: float, from_k: float | None, quantile: float) -> CdfBand:
    floor = 0.0 if from_k is None else quantile ** (1.0 / from_k)
    value, left_out = calibrate(n, band, level, floor)
    low, high = limits(n, band, value, floor, left_out)
    band_low, band_high = np.concatenate([[0.0], low]), np.concatenate([high, [1.0]])
    band_low.flags.writeable = band_high.flags.writeable = False  # one array serves all who ask for this band
    arrays: dict[str, Any] = {"band_low": band_low, "band_high": band_high}
    return CdfBand(n_scores=n, band=band, level=level, critical_value=value, from_k=from_k, quantile=quantile, **arrays)
