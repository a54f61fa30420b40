"""Bradley-Terry ratings by maximum likelihood, of many tables of wins at once.

The model: i beats j with probability 1 / (1 + exp(theta_j - theta_i)), ties count half a win for each. With W the wins
of row over column, N = W + W', P the probabilities and theta of mean zero, the log-likelihood sum W log P has

    gradient  g = (W P' - W' P) 1,    curvature  H = diag(N P P' 1) - N P P'  (products by element).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from lmemtest.errors import EstimationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

ELO = 400.0 / np.log(10.0)  # rating points of a logit: 400 points are odds of 10 to 1
_CONVERGED = 1e-24  # of what the last step gains, per game: ratings are then exact to 1e-10 in all but extreme tables
_MOST_STEPS = 200  # a dozen are usual; far ends of nearly separated tables take a few dozen


def ratings(wins: Array) -> Array:
    """Logits of mean zero that maximise the likelihood; where no finite ones do, those of `with_virtual_ties`.

    Parameters
    ----------
    wins : (..., k, k) float >= 0
        Wins of row over column, ties one half; the diagonal counts for nothing.

    Returns
    -------
    (..., k) float

    Notes
    -----
    A Newton step d of range R = max(d) - min(d) is shortened by log(1 + R) / R, with which the likelihood of a logistic
    model rises always (its third derivative is at most R times the second), so there is no search along the step.

    References
    ----------
    Bradley & Terry (1952), doi:10.1093/biomet/39.3-4.324; Bach (2010), doi:10.1214/09-EJS521 (length of the step)

    Examples
    --------
    >>> bool(np.isclose(np.diff(ratings(np.array([[0.0, 1.0], [3.0, 0.0]])))[0], np.log(3.0)))
    True
    """
    k = wins.shape[-1]
    tables = wins.reshape(-1, k, k) * ~np.eye(k, dtype=bool)
    tables = np.where(estimable(tables)[:, None, None], tables, with_virtual_ties(tables))
    theta = np.zeros(tables.shape[:2])
    moving = np.arange(len(tables))
    for _ in range(_MOST_STEPS):
        W, lost = tables[moving], tables[moving].swapaxes(1, 2)
        P = expit(theta[moving, :, None] - theta[moving, None, :])
        P_lost = P.swapaxes(1, 2)
        g = (W * P_lost - lost * P).sum(axis=2)  # not W - N P, which cancels where P is almost 1
        H = -(W + lost) * P * P_lost
        H[:, range(k), range(k)] -= H.sum(axis=2)
        # the mean is free: a matrix of ones, of the size of H, holds it at zero
        H += np.trace(H, axis1=1, axis2=2)[:, None, None] / k**2
        step = np.linalg.solve(H, g[:, :, None])[:, :, 0]
        reach = np.ptp(step, axis=1)
        theta[moving] += step * (np.log1p(reach) / np.where(reach > 0, reach, 1.0))[:, None]
        moving = moving[(g * step).sum(axis=1) > _CONVERGED * W.sum(axis=(1, 2))]
        if not len(moving):
            break
    else:
        raise EstimationError(f"{len(moving)} of {len(tables)} Bradley-Terry fits did not converge.")
    return np.asarray(theta - theta.mean(axis=1, keepdims=True)).reshape(wins.shape[:-1])


def estimable(wins: Array) -> Mask:
    """Whether finite ratings maximise the likelihood of each table, ``(...)``: no group won, or lost, all its games.

    That is, everybody is above everybody else by a chain of wins (Ford 1957).
    """
    return np.asarray(_reached(wins > 0).all(axis=(-2, -1)))


def linked(games: Array) -> Mask:
    """Who was compared with whom, directly or through others, ``(k, k)``."""
    return _reached(games > 0)


def _reached(edges: Mask) -> Mask:
    """Which of the nodes lead to which others, along any path."""
    k = edges.shape[-1]
    paths = (edges | np.eye(k, dtype=bool)).astype(np.float32)
    for _ in range(max(k - 1, 1).bit_length()):  # each product doubles the length of the paths
        paths = (paths @ paths > 0).astype(np.float32)
    return paths > 0


def with_virtual_ties(wins: Array) -> Array:
    """Tables with one tie more for every pair: as if all had tied on one more benchmark."""
    return wins + 0.5 * ~np.eye(wins.shape[-1], dtype=bool)
