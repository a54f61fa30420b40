r"""Whether scores follow a given law: the statistic behind the bands, with its exact p-value.

With B_i(p) the share of Beta(i, n + 1 - i) in the smallest interval that holds p, the bands of Learned-Miller and
DeStefano are those laws F for which

    L_n = max_i B_i(F(Y_(i)))

is not too large. Turned round, L_n tests one law, and the probability that n scores of it give a larger one is that of
an order statistic leaving its interval, which is known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_scores
from lmemtest.tuning.order_statistics import METHODS, levels_outside, outside_probability

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from lmemtest._table import ResultTable

    FloatArray = NDArray[np.float64]

TESTS = METHODS[:3]
STATISTICS = {
    "ld_highest_density": "L_n with highest-density intervals",
    "ld_equal_tailed": "L_n with equal-tailed intervals",
    "ks": "D_n of Kolmogorov and Smirnov",
}


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class GoodnessOfFit(Tabular):
    """A test of the hypothesis that scores are independent draws of a law.

    Attributes
    ----------
    statistic : float
        L_n, the largest share of the law of an order statistic that its smallest interval needs to hold it, or D_n,
        the largest distance of the distribution functions.
    p_value : float
        Probability of a statistic at least as large under the law: exact for a continuous law, and at most that for
        any other.
    at : float
        The score at which the statistic is that large.
    n : int
        Scores.
    method : {"ld_highest_density", "ld_equal_tailed", "ks"}
        Which statistic.
    """

    statistic: float
    p_value: float
    at: float
    n: int
    method: str

    def to_frame(self) -> pd.DataFrame:
        """One row: statistic, p_value, at, n."""
        import pandas as pd

        return pd.DataFrame([{"statistic": self.statistic, "p_value": self.p_value, "at": self.at, "n": self.n}])

    @property
    def sentence(self) -> str:
        """What the test says, in plain words."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {written(self.p_value, '.3f')}"
        if self.p_value < 0.05:
            return (
                f"The scores are no draws of this law ({p}); they leave it most clearly at {written(self.at, '.4g')}."
            )
        return f"Nothing in these scores speaks against this law ({p}), which does not confirm it."

    def to_table(self) -> ResultTable:
        """The test as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        notes = (self.sentence, f"{STATISTICS[self.method]}; exact for a law that was given, not fitted, beforehand.")
        return ResultTable(title="Goodness of fit", frame=self.to_frame(), notes=notes, formats={"p_value": ".4f"})


@one_blas_thread()
def goodness_of_fit(scores: ArrayLike, law: Any, *, method: str = "ld_highest_density") -> GoodnessOfFit:
    """Test exactly whether scores are independent draws of a given law.

    Parameters
    ----------
    scores : (n,) array of float
        Independent scores.
    law : distribution with ``cdf``
        The law, known before the scores: a `kernel_density`, a quadratic law, an `EmpiricalDistribution`, or one of
        scipy's frozen distributions.
    method : {"ld_highest_density", "ld_equal_tailed", "ks"}
        The statistic: that of the bands of the same name. L_n looks as closely at the ends of the law, which decide
        about tuning, as at its middle; D_n ("ks") mostly at the middle.

    Returns
    -------
    GoodnessOfFit
        ``statistic``, ``p_value``, ``sentence``; ``to_frame()`` has one row.

    Raises
    ------
    ArgumentError
        If `law` has no ``cdf`` or it is no distribution function, or the method is unknown.
    DataError
        If scores are missing.

    Notes
    -----
    L_n = max_i B_i(F(Y_(i))), with B_i(p) the coverage under Beta(i, n + 1 - i) of the smallest interval that holds p.
    The law lies in the band of confidence c around the scores if and only if p_value > 1 - c. The p-value comes from
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
    >>> goodness_of_fit(scores + 1.5, stats.norm).sentence
    'The scores are no draws of this law (p = 0.003); they leave it most clearly at 0.8255.'
    """
    check_choice(method, "method", TESTS)
    y, counts = np.unique(check_scores(scores), return_counts=True)
    n, at_most = int(counts.sum()), np.cumsum(counts)
    below = at_most - counts
    at, before = _probabilities(law, y), _probabilities(law, np.nextafter(y, -np.inf))
    if method == "ks":
        # D_n is the largest of at_most / n - F(y) and F(y-) - below / n, the latter being 0 or more at the first score
        distance = np.maximum(at_most / n - at, before - below / n)
        worst = int(np.argmax(distance))
        statistic = level = float(distance[worst])
    else:
        # as in the bands: the last of tied scores must not come too early, the first not too late
        early = levels_outside(np.minimum(at, _centre(at_most, n, method)), at_most, n, method)
        late = levels_outside(np.maximum(before, _centre(below + 1, n, method)), below + 1, n, method)
        outside = np.minimum(early, late)
        worst = int(np.argmin(outside))
        level = float(min(outside[worst], 1.0))
        statistic = 1.0 - level
    return GoodnessOfFit(
        statistic=statistic,
        p_value=min(1.0, outside_probability(n, method, level)),
        at=float(y[worst]),
        n=n,
        method=method,
    )


def _centre(rank: NDArray[np.intp], n: int, method: str) -> FloatArray:
    """Where the intervals of order statistics shrink to: the mode, or the median."""
    from scipy import special

    if method == "ld_equal_tailed" or n == 1:
        return np.asarray(special.betaincinv(rank, n + 1.0 - rank, 0.5))
    return np.asarray((rank - 1.0) / (n - 1.0), dtype=np.float64)


def _probabilities(law: Any, y: FloatArray) -> FloatArray:
    cdf = getattr(law, "cdf", None)
    if not callable(cdf):
        raise ArgumentError(
            f"law must have a cdf, such as kernel_density(...) or scipy.stats.norm(0, 1), got {type(law).__name__}."
        )
    values = np.asarray(cdf(y), dtype=np.float64)
    if values.shape != y.shape or not np.all((values >= 0.0) & (values <= 1.0)) or np.any(np.diff(values) < -1e-9):
        raise ArgumentError("law.cdf must give a rising probability between 0 and 1 for each score.")
    return values
