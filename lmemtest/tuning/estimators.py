r"""Point estimates of the expected best of k random-search scores.

With scores ``y_(1) <= ... <= y_(n)`` and larger better, every estimator of ``E[max of k]`` is a weighted mean of the
order statistics whose cumulative weights ``C_i`` estimate the chance that the best of k is at most ``y_(i)``:

    U   C_i = binom(i, k) / binom(n, k)                   k scores drawn without replacement: unbiased
    V   C_i = (i / n)^k                                   with replacement: the sample's law for the true one
    W   C_i = binom(i + k - 1, k) / binom(n + k - 1, k)   multisets: the average over Dirichlet weights (Rubin 1981)

so W <= V <= U for k >= 1. Differences ``w_i = C_i - C_(i-1)`` of such quotients cancel or overflow; consecutive
weights have rational ratios, so they are multiplied up from ``w_n``, every factor being known to rounding.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.checks import check_direction, check_k, check_scores, whole_budgets
from lmemtest.tuning.settings import thinned

ESTIMATORS = ("u", "v", "w")
_NAMES = {"u": "U (unbiased)", "v": "V (plug-in)", "w": "W (multisets)"}
_MOST_BUDGETS = 200  # of a default grid


def order_weights(n_scores: int, k: float, *, estimator: str = "v") -> Array:
    """Weights (n_scores,), the first of the smallest score, in an estimate of the expected maximum of k scores.

    Each weight is a product of ratios, w_(i-1) / w_i = (i - k) / (i - 1) for U and (i - 1) / (i + k - 2) for W, and
    V's are written with expm1, so a million scores cost no accuracy: the relative error stays below 1e-10. U needs a
    whole k, and beyond n has all the weight at the best score.

    Dodge, Gururangan, Card, Schwartz & Smith (2021), equations 2, 3 and 5, doi:10.18653/v1/2021.findings-emnlp.342.

    >>> order_weights(4, 2, estimator="u")  # 6 pairs, of which 3 have the largest score as their best
    array([0.        , 0.16666667, 0.33333333, 0.5       ])
    """
    n, k = check_positive_int(n_scores, "n_scores"), float(check_k(k)[0])
    check_choice(estimator, "estimator", ESTIMATORS)
    if estimator == "v":
        i = np.arange(1, n + 1, dtype=float)
        # i = 1: the logarithm of zero, whose exponential is zero; as it is of k times any other logarithm for a large k
        with np.errstate(divide="ignore", under="ignore", over="ignore"):
            return np.exp(k * np.log(i / n)) * -np.expm1(k * np.log1p(-1.0 / i))
    i = np.arange(n, 1, -1, dtype=float)
    if estimator == "w":
        last, ratios = k / (n + k - 1.0), (i - 1.0) / (i + k - 2.0)
    else:
        if k != np.floor(k):
            raise ArgumentError(f"estimator 'u' needs whole budgets k, got {k:g}. Use 'v' or 'w' for k in between.")
        k = min(k, float(n))  # beyond n there is no unbiased estimator; the best score seen is the U of all scores
        last, ratios = k / n, np.maximum(i - k, 0.0) / (i - 1.0)
    return last * np.concatenate([[1.0], np.cumprod(ratios)])[::-1]


@one_blas_thread()
def expected_best(scores: ArrayLike, *, direction: str, k: ArrayLike | None = None, estimator: str = "v") -> Answer:
    """Estimate the expected best of k random-search scores.

    Parameters
    ----------
    scores : (n,) array of float, finite
        Independent scores, as random search gives them.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    k : float or (m,) array of float, > 0, optional
        Budgets. "u" needs whole numbers; beyond n it is the best score seen. Default: 1 to n, thinned out if n > 200.
    estimator : {"u", "v", "w"}
        "u" is unbiased and has the largest variance, "w" the smallest variance and the largest bias; "v" lies between
        and has the smallest mean squared error in the study of Dodge et al.

    Returns
    -------
    Answer
        `k` and `estimate` (the estimated expected best score, in units of the score), which ``to_frame()`` has too;
        `estimator`, `direction`, `n_scores`. Nothing says how uncertain the estimates are.

    Raises
    ------
    ArgumentError
        If a budget is not positive, or not possible for U.
    DataError
        If a score is missing or infinite.

    Notes
    -----
    There is no unbiased estimator of F(y)^k for a k that is not whole or is above n (a mean over n scores is a
    polynomial of degree n in F). U is not defined between whole k; beyond n it is the best score seen, as in opda,
    and biased. V and W are defined for every k > 0.
    A point estimate does not tell how much another sample would change it: `lmemtest.tuning.curve` has bands that do.

    References
    ----------
    Dodge, Gururangan, Card, Schwartz & Smith (2019), Show your work, doi:10.18653/v1/D19-1224 (V);
    Tang, Lee, Xin, Liu, Yu & Lin (2020), Showing your work doesn't always work, doi:10.18653/v1/2020.acl-main.246 (U);
    Dodge, Gururangan, Card, Schwartz & Smith (2021), doi:10.18653/v1/2021.findings-emnlp.342 (W).

    Examples
    --------
    >>> scores = [0.61, 0.70, 0.58, 0.74]
    >>> [float(expected_best(scores, direction="maximize", k=2, estimator=e).estimate[0].round(4)) for e in "uvw"]
    [0.705, 0.6931, 0.686]
    """
    check_choice(estimator, "estimator", ESTIMATORS)
    sign = 1.0 if check_direction(direction) == "maximize" else -1.0
    values = np.sort(sign * check_scores(scores))
    n, infinite = len(values), int(np.isinf(values).sum())
    if infinite:
        raise DataError(
            f"scores must be finite for a mean: {infinite:,} of {n:,} are infinite. Give a failed run the worst score "
            "that can occur, or use tuning.curve, whose medians allow infinite scores."
        )
    budgets = whole_budgets(n, _MOST_BUDGETS) if k is None else check_k(k)
    estimate = sign * np.array([order_weights(n, budget, estimator=estimator) @ values for budget in budgets])
    notes = ["Point estimates: how much another sample would change them is not shown; tuning.curve has bands."]
    if estimator == "u" and n in budgets:
        notes.append(f"U at k = n = {n} is the best score itself.")
    if budgets.max(initial=0.0) > n:
        does = "is" if estimator == "u" else "can only approach"
        notes.append(
            f"Beyond k = n = {n} the estimate {does} the best score seen, whatever a longer search would find."
        )
    frame = pd.DataFrame({"k": budgets, "estimate": estimate})
    printed, facts = thinned(frame)
    return Answer(
        question="tuning.expected_best",
        title=f"Expected best of k scores, {_NAMES[estimator]}, n = {n}, {direction}",
        tables={"estimates": frame},
        values={"k": budgets, "estimate": estimate, "estimator": estimator, "direction": direction, "n_scores": n},
        facts=facts,
        notes=tuple(notes),
        printed=printed,
        formats={"k": "g"},
        figure="tuning_expected_best_plot",
    )
