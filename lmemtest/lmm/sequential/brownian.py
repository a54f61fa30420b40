r"""Brownian motion between two boundaries: tests of many values at several looks, and estimates at their end.

Normal scores z_k at shares t_k of the information, with a drift theta, have means theta sqrt(t_k) and correlations
sqrt(t_j / t_k). What has not left (-u_1, u_1), ..., (-u_k, u_k) has a density that is integrated from look to look

    f_k(z) = integral over |y| < u_{k-1} of f_{k-1}(y) phi((z - r y - theta (t_k - t_{k-1}) / sqrt(t_k)) / s) / s dy,
    r = sqrt(t_{k-1} / t_k),    s = sqrt(1 - r^2),

by Gauss rules (Armitage, McPherson & Rowe 1969). Outcomes are ordered by stages: leaving earlier on the upper side is
more extreme than leaving later, and among outcomes of one look the higher z (Tsiatis, Rosner & Mehta 1984).

References
----------
Armitage, McPherson & Rowe (1969), doi:10.2307/2343787; Tsiatis, Rosner & Mehta (1984), doi:10.2307/2531153;
Jennison & Turnbull (2000), Group Sequential Methods with Applications to Clinical Trials, chapters 8 and 19
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.quadrature import gauss_rule
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.sequential.spending import SPENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmemtest.core.arrays import Array

_REACH = 9.0  # standard deviations beyond which nothing is left
_MOST_DRIFT = 12.0  # of what an estimate is looked for, beyond what was seen


class Between:
    """What has not yet left the boundaries, look by look.

    Parameters
    ----------
    shares : sequence of float in (0, 1], ascending
        Of the information, at each look.
    drift : float
        Mean of the normal score at the whole information.
    """

    def __init__(self, shares: Sequence[float], drift: float = 0.0) -> None:
        self.shares, self.drift, self.look = tuple(shares), drift, -1
        self.nodes, self.mass = np.zeros(1), np.ones(1)
        self._step()

    def _step(self) -> None:
        """How the score moves to the next look."""
        self.look += 1
        if self.look == len(self.shares):
            return
        before, now = (0.0, *self.shares)[self.look : self.look + 2]
        self.centre = np.sqrt(before / now) * self.nodes + self.drift * (now - before) / np.sqrt(now)
        self.sd = np.sqrt(1.0 - before / now)

    def above(self, z: float) -> float:
        """The probability to be above z at this look."""
        return float(self.mass @ special.ndtr((self.centre - z) / self.sd))

    def below(self, z: float) -> float:
        """The probability to be below z at this look."""
        return float(self.mass @ special.ndtr((z - self.centre) / self.sd))

    def cut(self, z: float) -> None:
        """Go on to the next look with what lies within (-z, z)."""
        mean = self.drift * np.sqrt(self.shares[self.look])
        low, high = max(-z, mean - _REACH), min(z, mean + _REACH)
        width = max(high - low, 0.0)
        node, weight = gauss_rule(30 + int(2.0 * width / self.sd))
        nodes = low + width * node
        density = np.exp(-0.5 * ((nodes[:, None] - self.centre) / self.sd) ** 2) @ self.mass
        self.nodes, self.mass = nodes, width * weight * density / (self.sd * np.sqrt(2.0 * np.pi))
        self._step()


def critical_scores(shares: Sequence[float], alpha: float, spending: str = "obrien_fleming") -> Array:
    """Critical normal scores of two-sided tests at several looks that together have a level.

    Parameters
    ----------
    shares : sequence of float in (0, 1], ascending
        Of the information of the last look that is planned.
    alpha : float in (0, 1)
    spending : {"obrien_fleming", "pocock"}

    Returns
    -------
    (looks,) float

    Examples
    --------
    >>> critical_scores([0.25, 0.5, 1.0], 0.05).round(4)
    array([4.3326, 2.9631, 1.9686])
    """
    from scipy.optimize import brentq

    spent = np.diff(SPENDING[spending](np.asarray(shares), alpha), prepend=0.0)
    process, out = Between(shares), []
    for at_look in spent:

        def surplus(z: float, level: float = at_look) -> float:
            return process.above(z) + process.below(-z) - level

        out.append(float(brentq(surplus, 0.0, 40.0, xtol=1e-12)) if surplus(40.0) < 0.0 else np.inf)
        process.cut(out[-1])
    return np.array(out)


def upper_p(z: float, shares: Sequence[float], critical: Sequence[float], drift: float = 0.0) -> float:
    """The probability of an outcome at least as far up, in the order of stages.

    Parameters
    ----------
    z : float
        Normal score at the last of `shares`.
    shares : sequence of float
        Of the information, at the looks until the end.
    critical : sequence of float
        Critical scores of all these looks but the last.
    drift : float

    Returns
    -------
    float
        Half of the stage-wise p-value where z is positive and `drift` is 0.
    """
    process, p = Between(shares, drift), 0.0
    for bound in critical:
        p += process.above(bound)
        process.cut(bound)
    return p + process.above(z)


def drift_limits(
    z: float, shares: Sequence[float], critical: Sequence[float], alpha: float
) -> tuple[float, float, float]:
    """The median-unbiased drift at the end of a study, and both limits of its interval at 1 - alpha.

    Parameters are those of `upper_p`. The drifts at which an outcome at least as far up has the probabilities 1/2,
    alpha/2 and 1 - alpha/2.

    Examples
    --------
    >>> tuple(round(x, 3) for x in drift_limits(2.85, [0.5, 1.0], [2.963], 0.05))
    (2.813, 0.802, 4.788)
    """
    from scipy.optimize import brentq

    seen = z / np.sqrt(shares[-1])
    reach = _MOST_DRIFT / np.sqrt(shares[0])

    def drift_at(p: float) -> float:
        found = brentq(lambda drift: upper_p(z, shares, critical, drift) - p, seen - reach, seen + reach, xtol=1e-10)
        return float(found)

    return drift_at(0.5), drift_at(0.5 * alpha), drift_at(1.0 - 0.5 * alpha)


def estimate_at_end(
    estimate: float, se: float, df: float, shares: Sequence[float], critical: Sequence[float], alpha: float
) -> tuple[float, float, float]:
    """Median-unbiased estimate and its interval at the end of a study, of a t-distributed statistic.

    Parameters
    ----------
    estimate, se, df : float
        Of the last look. Without earlier looks the interval is that of the t-test.
    shares, critical, alpha
        As in `drift_limits`: boundaries of `critical_scores`, also where tests had those of `successive_t`.

    Returns
    -------
    (float, float, float)
        Estimate, lower and upper limit.

    Notes
    -----
    The value that is tested in the place of zero is ``estimate - se t``, where t has the p-value of ``z - drift``.
    """
    tail = max(float(upper_tail(abs(estimate) / se, df)), 1e-300)
    z = float(np.copysign(special.ndtri(tail), estimate))
    drifts = np.array(drift_limits(z, shares, critical, alpha)) * np.sqrt(shares[-1])
    middle, low, high = estimate - se * t_quantile(special.ndtr(drifts - z), df)
    return float(middle), float(low), float(high)
