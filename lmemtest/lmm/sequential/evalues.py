r"""E-values of t-tests: valid whenever one looks, without a plan.

Of n normal values with mean delta sigma, the likelihood of everything that does not depend on the scale, with delta
drawn from N(0, g), over that with delta = 0 is a martingale in n with mean 1 (right Haar prior on sigma):

    E_n = (1 + n g)^(-1/2) ((1 + x) / (1 + x / (1 + n g)))^(n/2),    x = t^2 / (n - 1).

So P(E_n >= 1 / alpha at any n) <= alpha (Ville), and the smallest 1 / E_n so far is a p-value at every look. The values
theta of the mean whose t-test has an E_n below 1 / alpha are a confidence sequence. For many pairs these p-values are
adjusted by Holm's method, which needs nothing of how pairs depend.

References
----------
Lai (1976), On confidence sequences, doi:10.1214/aos/1176343405; Wang & Ramdas (2025), Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance, arXiv:2310.03722
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


def log_evalue(t_ratio: ArrayLike, n: int, g: float) -> Array:
    """Logarithm of the e-value of t-tests of n values against a mean of zero.

    Parameters
    ----------
    t_ratio : array of float
    n : int >= 2
        Values: one more than the degrees of freedom.
    g : float > 0
        Variance of the standardised means that are expected.

    Returns
    -------
    array of float
        NaN where a ratio is.

    Examples
    --------
    >>> log_evalue([0.0, 2.0, 5.0], 20, 0.5).round(3)
    array([-1.199,  0.522,  6.069])
    """
    x = np.asarray(t_ratio, dtype=float) ** 2 / (n - 1.0)
    with np.errstate(invalid="ignore"):
        gain = np.where(np.isinf(x), np.log1p(n * g), np.log1p(x) - np.log1p(x / (1.0 + n * g)))
    return np.asarray(0.5 * (n * gain - np.log1p(n * g)))


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
