r"""Whether scores follow a given law: the statistic behind the bands, with its exact p-value.

With B_i(p) the share of Beta(i, n + 1 - i) in the smallest interval that holds p, the bands of Learned-Miller and
DeStefano are those laws F for which

    L_n = max_i B_i(F(Y_(i)))

is not too large. Turned round, L_n tests one law, and the probability that n scores of it give a larger one is that of
an order statistic leaving its interval, which is known exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.core.words import p_text
from lmemtest.errors import ArgumentError
from lmemtest.tuning.checks import check_scores
from lmemtest.tuning.order_statistics import BANDS, outside_probability, shares_outside

TESTS = BANDS[:3]
STATISTICS = {
    "ld_highest_density": "L_n with highest-density intervals",
    "ld_equal_tailed": "L_n with equal-tailed intervals",
    "ks": "D_n of Kolmogorov and Smirnov",
}


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


def _centre(rank: NDArray[np.intp], n: int, band: str) -> Array:
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
