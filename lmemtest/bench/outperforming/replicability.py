"""Replicability: on how many benchmarks A is better, by partial conjunction of the benchmarks' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.rounding import at_most

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lmemtest.core.arrays import Array


def sign_test(win: ArrayLike, loss: ArrayLike) -> Array:
    """Exact one-sided p-values of "A is more often better": at least as many wins of the pairs that are not tied.

    Examples
    --------
    >>> sign_test([5, 4], [0, 1])
    array([0.03125, 0.1875 ])
    """
    w, decided = np.asarray(win, dtype=float), np.asarray(win, dtype=float) + np.asarray(loss, dtype=float)
    return np.where(w > 0, special.betainc(np.maximum(w, 1.0), decided - w + 1.0, 0.5), 1.0)


def partial_conjunction(p: ArrayLike, combine: str) -> Array:
    """p-values of "A is better on at least u of N benchmarks", u = 1..N, from one p-value per benchmark.

    "bonferroni" holds whatever the dependence between benchmarks, ``(N - u + 1) p_(u)``; "fisher" where benchmarks are
    independent, the chi-squared test of ``-2 sum log p_(i)`` over i = u..N. Being better on u benchmarks includes being
    so on fewer: the values are made not to decrease. Benchmarks are in the last axis; NaN is none, and comes last.

    References
    ----------
    Benjamini & Heller (2008), Biometrics 64, 1215-1222;
    Dror et al. (2017), Trans. Assoc. Comput. Linguist. 5, 471-486, doi:10.1162/tacl_a_00074

    Examples
    --------
    >>> partial_conjunction([0.01, 0.02, 0.4], "bonferroni").round(3)
    array([0.03, 0.04, 0.4 ])
    """
    ordered = np.sort(np.asarray(p, dtype=float))
    tests = np.isfinite(ordered)
    left = tests.sum(axis=-1, keepdims=True) - np.arange(ordered.shape[-1])  # tests from the u-th smallest on
    if combine == "bonferroni":
        out = np.minimum(left * ordered, 1.0)
    else:
        logs = np.log(np.maximum(np.where(tests, ordered, 1.0), 1e-300))
        statistic = -2.0 * np.cumsum(logs[..., ::-1], axis=-1)[..., ::-1]
        out = np.where(tests, special.chdtrc(2.0 * np.maximum(left, 1), statistic), np.nan)
    return np.maximum.accumulate(out, axis=-1)


def better_on(p: ArrayLike, combine: str, alpha: float) -> NDArray[np.intp]:
    """The largest u for which "better on at least u benchmarks" is significant: with 1 - alpha no overstatement."""
    return np.asarray(np.sum(at_most(partial_conjunction(p, combine), alpha), axis=-1))
