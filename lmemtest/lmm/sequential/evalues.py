r"""E-values of t-tests: valid whenever one looks, without a plan.

Of n normal values with mean delta sigma, the likelihood of everything that does not depend on the scale, with delta
drawn from N(0, g), over that with delta = 0 is a martingale in n with mean 1 (right Haar prior on sigma):

    E_n = (1 + n g)^(-1/2) ((1 + x) / (1 + x / (1 + n g)))^(n/2),    x = t^2 / (n - 1).

So P(E_n >= 1 / alpha at any n) <= alpha (Ville), and the smallest 1 / E_n so far is a p-value at every look. The values
theta of the mean whose t-test has an E_n below 1 / alpha are a confidence sequence. For many pairs these p-values are
adjusted by Holm's method, which needs nothing of how pairs depend.

Against a mean of at most zero, delta is drawn from the positive half of N(0, g): twice E_n, times the probability of
delta > 0 after the n values. Given them, 1 / sigma^2 is a gamma variate, so that this is one of Student's t,

    E_n^+ = 2 E_n F_n(n t sqrt(g / (1 + n g)) / sqrt(n - 1 + t^2 / (1 + n g))),    F_n with n degrees of freedom.

It grows with t, and values with a smaller mean have smaller t at every n: so it holds for all means below zero as well.

References
----------
Lai (1976), On confidence sequences, doi:10.1214/aos/1176343405; Wang & Ramdas (2025), Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance, arXiv:2310.03722
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.lmm.distributions.student import upper_tail

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


_MOST = 1e6  # a t ratio that no table has


def log_evalue(t_ratio: ArrayLike, n: float, g: float, *, one_sided: bool = False) -> Array:
    """Logarithm of the e-value of t-tests of n values against a mean of zero.

    Parameters
    ----------
    t_ratio : array of float
    n : float >= 2
        Values: one more than the degrees of freedom.
    g : float > 0
        Variance of the standardised means that are expected.
    one_sided : bool
        Against a mean of zero or less.

    Returns
    -------
    array of float
        NaN where a ratio is.

    Examples
    --------
    >>> log_evalue([0.0, 2.0, 5.0], 20, 0.5).round(3)
    array([-1.199,  0.522,  6.069])
    """
    t = np.asarray(t_ratio, dtype=float)
    x = t**2 / (n - 1.0)
    with np.errstate(invalid="ignore"):
        gain = np.where(np.isinf(x), np.log1p(n * g), np.log1p(x) - np.log1p(x / (1.0 + n * g)))
    both = np.asarray(0.5 * (n * gain - np.log1p(n * g)))
    if not one_sided:
        return both
    with np.errstate(divide="ignore"):
        towards = np.sign(t) * np.sqrt(n * n * g / (1.0 + n * g) / (1.0 / x + 1.0 / (1.0 + n * g)))
        return np.asarray(both + np.log(2.0) + np.log(upper_tail(-towards, n)))


def critical_t(alpha: ArrayLike, n: int, g: float) -> Array:
    """The t ratio whose e-value is 1 / alpha; infinite where no ratio of n values has so large a one.

    Examples
    --------
    >>> critical_t([0.05, 0.01], 20, 0.5).round(3)
    array([3.39 , 4.225])
    """
    root = np.exp((np.log1p(n * g) - 2.0 * np.log(np.asarray(alpha, dtype=float))) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (root - 1.0) / (1.0 - root / (1.0 + n * g))
    return np.where(root < 1.0 + n * g, np.sqrt((n - 1.0) * np.abs(x)), np.inf)


def critical_one_sided(alpha: float, n: float, g: float) -> float:
    """The t ratio whose one-sided e-value is 1 / alpha; infinite where no ratio of n values has so large a one.

    Examples
    --------
    >>> round(critical_one_sided(0.05, 20, 0.5), 3)
    3.027
    """
    from scipy.optimize import brentq

    def short(t: float) -> float:
        return float(log_evalue(t, n, g, one_sided=True)) + np.log(alpha)

    return float(brentq(short, 0.0, _MOST, xtol=1e-12)) if short(_MOST) > 0.0 else np.inf
