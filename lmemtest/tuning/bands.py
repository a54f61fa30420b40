"""Simultaneous confidence bands for a distribution function, for any distribution, calibrated without simulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_k
from lmemtest.tuning.order_statistics import METHODS, calibrate, check_size, crossing_probability, limits

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

METHOD_NAMES = {
    "ld_highest_density": "LD band of highest-density intervals",
    "ld_equal_tailed": "LD band of equal-tailed intervals",
    "ks": "Kolmogorov-Smirnov band",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz band",
}


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class CdfBand(Tabular):
    """A simultaneous confidence band for the distribution function F of n scores, as a function of the count.

    The band at a score y is ``lower[j] <= F(y) <= upper[j]`` with j the number of scores at or below y, ties included.
    It does not depend on the scores themselves.

    Attributes
    ----------
    n : int
        Number of scores.
    method : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band.
    confidence : float
        Probability that the band holds everywhere at once: exactly for a continuous F (at least, for "dkw"), at least
        for any other F.
    level : float
        What the band was calibrated to. LD methods: alpha', the share of the law of each order statistic that lies
        outside of its interval. "ks" and "dkw": the half-width.
    lower, upper : ndarray of float64, shape (n + 1,)
        The band at the counts j = 0, ..., n; not to be written to.
    from_k : float or None
        If given, the band holds for the part of F that tuning curves read for k >= from_k.
    quantile : float
        The quantile that `from_k` refers to, of the largest of k.
    """

    n: int
    method: str
    confidence: float
    level: float
    lower: FloatArray
    upper: FloatArray
    from_k: float | None = None
    quantile: float = 0.5

    def coverage(self) -> float:
        """Exact probability that the band holds for a continuous F; the confidence up to rounding, except "dkw"
        (conservative) and confidences that no band of the method has.

        Examples
        --------
        >>> band = cdf_band(48, method="dkw")
        >>> band.confidence, round(band.coverage(), 4)
        (0.8, 0.8201)
        """
        return crossing_probability(self.lower[1:], self.upper[:-1])

    def to_frame(self) -> pd.DataFrame:
        """One row per count of scores at or below: count, lower, estimate (count / n), upper."""
        import pandas as pd

        count = np.arange(self.n + 1)
        return pd.DataFrame({"count": count, "lower": self.lower, "estimate": count / self.n, "upper": self.upper})

    def to_table(self) -> ResultTable:
        """The band as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        return ResultTable(
            title="Band for a distribution function", frame=self.to_frame(), notes=(self.describe() + ".",)
        )

    def describe(self) -> str:
        """What the band is, as the beginning of a sentence."""
        what = f"{100.0 * self.confidence:g} % {METHOD_NAMES[self.method]} for n = {self.n:,}"
        calibrated = f"half-width {self.level:.6g}" if self.method in ("ks", "dkw") else f"alpha' = {self.level:.6g}"
        where = (
            "" if self.from_k is None else f", calibrated for k >= {self.from_k:g} at the {self.quantile:g} quantile"
        )
        return f"{what} ({calibrated}{where})"


@one_blas_thread()
def cdf_band(
    n: int,
    *,
    method: str = "ld_highest_density",
    confidence: float = 0.8,
    from_k: float | None = None,
    quantile: float = 0.5,
) -> CdfBand:
    """Make a simultaneous confidence band for the distribution function of n independent scores.

    Parameters
    ----------
    n : int >= 1
        Number of scores: at most 100,000, and ten million for "dkw". 10,000 take a few seconds the first time.
    method : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band: intervals of the order statistics with equal probability, the shortest ("ld_highest_density",
        the narrowest where tuning curves read it) or with equal tails; or a constant width, exact ("ks") or from an
        inequality ("dkw").
    confidence : float in (0, 1)
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
        ``to_frame()`` has count, lower, estimate, upper.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.

    Notes
    -----
    For independent scores Y = Q(V) with V uniform, #{Y <= y} = #{V <= F(y)} = j, hence V_(j) <= F(y) < V_(j+1) for
    *every* distribution. If l_i <= V_(i) <= u_i for all i, then l_j <= F(y) < u_(j+1): the band at count j is
    lower[j] = l_j and upper[j] = u_(j+1), with l_0 = 0 and u_(n+1) = 1. For a continuous F its confidence is the
    probability of these intervals, and for any other F at least that.

    With `from_k`, lower limits below p = quantile^(1/from_k) are left out (the curve never reads them) and upper limits
    below p are replaced by p.

    References
    ----------
    Lourie, Cho & He (2024), NAACL, doi:10.18653/v1/2024.naacl-long.189;
    Learned-Miller & DeStefano (2008), IEEE Trans. Inf. Theory 54, 5223-5230

    Examples
    --------
    >>> band = cdf_band(4, confidence=0.8)
    >>> band.lower.round(3), band.upper.round(3)
    (array([0.   , 0.   , 0.05 , 0.246, 0.5  ]), array([0.5  , 0.754, 0.95 , 1.   , 1.   ]))
    """
    check_choice(method, "method", METHODS)
    n = check_size(n, method)
    confidence = check_fraction(confidence, "confidence")
    quantile = check_fraction(quantile, "quantile")
    if from_k is not None:
        from_k = _check_from_k(from_k, method)
    return _band(n, method, confidence, from_k, quantile)


def _check_from_k(from_k: Any, method: str) -> float:
    checked = check_k(from_k, "from_k")
    if len(checked) != 1:
        raise ArgumentError(f"from_k must be one number, the smallest k that the band is for, got {from_k!r}.")
    if method == "dkw":
        calibrated = ", ".join(repr(name) for name in METHODS if name != "dkw")
        raise ArgumentError(
            f"from_k changes the calibration, and 'dkw' comes from an inequality that has none. Use {calibrated}."
        )
    return float(checked[0])


@lru_cache(maxsize=256)
def _band(n: int, method: str, confidence: float, from_k: float | None, quantile: float) -> CdfBand:
    floor = 0.0 if from_k is None else quantile ** (1.0 / from_k)
    value, left_out = calibrate(n, method, confidence, floor)
    low, high = limits(n, method, value, floor, left_out)
    lower, upper = np.concatenate([[0.0], low]), np.concatenate([high, [1.0]])
    lower.flags.writeable = upper.flags.writeable = False  # one array serves all who ask for this band
    return CdfBand(
        n=n,
        method=method,
        confidence=confidence,
        level=value,
        lower=lower,
        upper=upper,
        from_k=from_k,
        quantile=quantile,
    )
