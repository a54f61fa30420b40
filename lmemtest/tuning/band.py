r"""Simultaneous confidence bands for a distribution function, for any distribution, calibrated without simulation.

What a band holds for unknown laws, a test asks of a given one (`goodness_of_fit`), with an exact p-value.

With B_i(p) the share of Beta(i, n + 1 - i) in the smallest interval that holds p, the bands of Learned-Miller and
DeStefano are those laws F for which

    L_n = max_i B_i(F(Y_(i)))

is not too large. Turned round, L_n tests one law, and the probability that n scores of it give a larger one is that of
an order statistic leaving its interval, which is known exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array, Index
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import p_text, percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning.checks import check_k, check_scores, plain
from lmemtest.tuning.order_statistics import (
    BANDS,
    calibrate,
    check_size,
    crossing_probability,
    limits,
    outside_probability,
    shares_outside,
)

if TYPE_CHECKING:
    from lmemtest.tuning.distribution import EmpiricalDistribution

BAND_NAMES = {
    "ld_highest_density": "LD band of highest-density intervals",
    "ld_equal_tailed": "LD band of equal-tailed intervals",
    "ks": "Kolmogorov-Smirnov band",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz band",
}
TESTS = BANDS[:3]
STATISTICS = {
    "ld_highest_density": "L_n with highest-density intervals",
    "ld_equal_tailed": "L_n with equal-tailed intervals",
    "ks": "D_n of Kolmogorov and Smirnov",
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


# ---------------------------------------------------------------------- the test behind a band


@one_blas_thread()
def goodness_of_fit(scores: ArrayLike, law: Any, *, band: str = "ld_highest_density") -> Answer:
    """Test exactly whether scores are independent draws of a given law.

    Parameters
    ----------
    scores : (n,) array of float
        Independent scores.
    law : distribution with ``cdf``
        The law, known before the scores: a `kernel_density`, a quadratic law, an `EmpiricalDistribution`, or one of
        scipy's frozen distributions.
    band : {"ld_highest_density", "ld_equal_tailed", "ks"}
        The statistic: that of the bands of the same name. L_n looks as closely at the ends of the law, which decide
        about tuning, as at its middle; D_n ("ks") mostly at the middle.

    Returns
    -------
    Answer
        `statistic`: L_n, the largest share of the law of an order statistic that its smallest interval needs to hold
        it, or D_n, the largest distance of the distribution functions. `p_value`: probability of a statistic at least
        as large under the law, exact for a continuous law, and at most that for any other. `at`: the score at which
        the statistic is that large. `n_scores`, and `band`, the statistic. ``to_frame()`` has one row of these.

    Raises
    ------
    ArgumentError
        If `law` has no ``cdf`` or it is no distribution function, or the band is unknown.
    DataError
        If scores are missing.

    Notes
    -----
    L_n = max_i B_i(F(Y_(i))), with B_i(p) the coverage under Beta(i, n + 1 - i) of the smallest interval that holds p.
    The law lies in the band of level c around the scores if and only if p_value > 1 - c. The p-value comes from
    the exact crossing probability, not from simulation. Tied scores are read as the bands read them, at the full
    count, so a discrete law is not rejected more often than the p-value says.

    A law that was fitted to the same scores follows them too closely, and its p-value is too large: `bootstrap_fit` is
    for that.

    References
    ----------
    Lourie, Cho & He (2024), NAACL, equation 10 and appendix C.2, doi:10.18653/v1/2024.naacl-long.189;
    Learned-Miller & DeStefano (2008), IEEE Trans. Inf. Theory 54, 5223-5230, doi:10.1109/TIT.2008.929937

    Examples
    --------
    >>> from scipy import stats
    >>> scores = stats.norm.ppf([0.06, 0.25, 0.33, 0.52, 0.71, 0.83, 0.96])
    >>> test = goodness_of_fit(scores, stats.norm)
    >>> round(test.p_value, 3)
    0.997
    >>> goodness_of_fit(scores + 1.5, stats.norm).sentences()[0]
    'The scores are not draws from this law (p = 0.003); they depart from it most clearly at 0.8255.'
    """
    check_choice(band, "band", TESTS)
    y, counts = np.unique(check_scores(scores), return_counts=True)
    n, at_most = int(counts.sum()), np.cumsum(counts)
    fewer = at_most - counts
    at, before = _probabilities(law, y), _probabilities(law, np.nextafter(y, -np.inf))
    if band == "ks":
        # D_n is the largest of at_most / n - F(y) and F(y-) - fewer / n, the latter being 0 or more at the first score
        distance = np.maximum(at_most / n - at, before - fewer / n)
        worst = int(np.argmax(distance))
        statistic = value = float(distance[worst])
    else:
        # as in the bands: the last of tied scores must not come too early, the first not too late
        early = shares_outside(np.minimum(at, _centre(at_most, n, band)), at_most, n, band)
        late = shares_outside(np.maximum(before, _centre(fewer + 1, n, band)), fewer + 1, n, band)
        outside = np.minimum(early, late)
        worst = int(np.argmin(outside))
        value = float(min(outside[worst], 1.0))
        statistic = 1.0 - value
    p_value = min(1.0, outside_probability(n, band, value))
    row = {"statistic": statistic, "p_value": p_value, "at": float(y[worst]), "n_scores": n}
    p = p_text(p_value)
    if below(p_value, 0.05):
        where = written(y[worst], ".4g")
        finding = f"The scores are not draws from this law ({p}); they depart from it most clearly at {where}."
    else:
        finding = f"Nothing in these scores speaks against this law ({p}), which does not confirm it."
    return Answer(
        question="tuning.goodness_of_fit",
        title="Goodness of fit",
        tables={"test": pd.DataFrame([row])},
        values={**row, "band": band},
        facts=(f"{STATISTICS[band]}; exact for a law that was given, not fitted, beforehand.",),
        findings=(finding,),
    )


def _centre(rank: Index, n: int, band: str) -> Array:
    """Where the intervals of order statistics shrink to: the mode, or the median."""
    from scipy import special

    if band == "ld_equal_tailed" or n == 1:
        return np.asarray(special.betaincinv(rank, n + 1.0 - rank, 0.5))
    return np.asarray((rank - 1.0) / (n - 1.0), dtype=np.float64)


def _probabilities(law: Any, y: Array) -> Array:
    cdf = getattr(law, "cdf", None)
    if not callable(cdf):
        raise ArgumentError(
            f"law must have a cdf, such as kernel_density(...) or scipy.stats.norm(0, 1), got {type(law).__name__}."
        )
    values = np.asarray(cdf(y), dtype=np.float64)
    if values.shape != y.shape or not np.all((values >= 0.0) & (values <= 1.0)) or np.any(np.diff(values) < -1e-9):
        raise ArgumentError("law.cdf must give a rising probability between 0 and 1 for each score.")
    return values
