"""Gauss's rules: the integral of a smooth function between two ends, also of one with a root there, and its mean over a
normal distribution. With n nodes they are exact for polynomials of a degree below 2n.

Golub & Welsch (1969), Math. Comput. 23, 221-230, doi:10.1090/S0025-5718-69-99647-1
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array


@cache
def gauss_rule(n: int) -> tuple[Array, Array]:
    """Nodes in (0, 1) and weights that add up to 1: the integral from a to b is ``(b - a) f(a + (b - a) x) @ w``.

    Examples
    --------
    >>> x, w = gauss_rule(3)
    >>> print(f"{x**5 @ w:.6f} {1 / 6:.6f}")
    0.166667 0.166667
    """
    x, w = np.polynomial.legendre.leggauss(n)
    return _shared(0.5 * (x + 1.0), 0.5 * w)


@lru_cache(maxsize=64)
def power_rule(n: int, power: float) -> tuple[Array, Array]:
    """Nodes in (0, 1) and weights that add up to ``1 / (power + 1)``: the integral of x^power f(x) is ``f(x) @ w``.

    Examples
    --------
    >>> x, w = power_rule(3, -0.5)
    >>> print(f"{x**2 @ w:.6f} {1 / 2.5:.6f}")
    0.400000 0.400000
    """
    x, w = special.roots_jacobi(n, 0.0, power)
    return _shared(0.5 * (x + 1.0), w / w.sum() / (power + 1.0))


@cache
def normal_rule(n: int) -> tuple[Array, Array]:
    """Nodes and weights that add up to 1: the mean of f over a standard normal variable is ``f(x) @ w``.

    Examples
    --------
    >>> x, w = normal_rule(3)
    >>> print(f"{x**2 @ w:.6f} {x**4 @ w:.6f}")
    1.000000 3.000000
    """
    x, w = np.polynomial.hermite_e.hermegauss(n)
    return _shared(x, w / w.sum())


def _shared(x: Array, w: Array) -> tuple[Array, Array]:
    """Nodes and weights that all callers have, and none can change."""
    x.flags.writeable = w.flags.writeable = False
    return x, w
