"""The exact interval of a share: what a simulation of n cases knows of a probability."""

from __future__ import annotations

from scipy import special


def binomial_interval(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact interval of a share.

    Parameters
    ----------
    count, n : int
        Successes and trials, ``n >= 1``.
    level : float in (0, 1)

    Returns
    -------
    low, high : float

    References
    ----------
    Clopper & Pearson (1934), doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> tuple(round(x, 4) for x in binomial_interval(0, 10))
    (0.0, 0.3085)
    """
    tail = 0.5 * (1.0 - level)
    low = float(special.betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(special.betaincinv(count + 1, n - count, 1.0 - tail)) if count < n else 1.0
    return low, high
