"""Bradley-Terry ratings by maximum likelihood, of many tables of wins at once.

The model: i beats j with probability 1 / (1 + exp(theta_j - theta_i)), ties count half a win for each. With W the wins
of row over column, N = W + W', P the probabilities and theta of mean zero, the log-likelihood sum W log P has

    gradient  g = W 1 - (N P) 1,    curvature  H = diag(N P P' 1) - N P P'  (products by element).

So who beat whom does not matter beyond the games of each pair, and the wins and losses of each algorithm.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from lmemtest.core.arrays import Array, Mask
from lmemtest.errors import EstimationError

ELO = 400.0 / np.log(10.0)  # rating points of a logit: 400 points are odds of 10 to 1
_CONVERGED = 1e-24  # of what the last step gains, per game: ratings are then exact to 1e-10 in all but extreme tables
_FEW = 100  # algorithms: equations of as many are solved faster than they are iterated
_IN_CACHE = 100_000  # numbers of the tables that are fitted at a time: a few such arrays fit a processor's cache
_INEXACT = 1e-4  # of a step by conjugate gradients: as good as an exact one but for the last
_MOST_PRODUCTS = 30  # three are usual; a table that needs more is not like the others, and solved
_NO_OVERFLOW = 600.0  # range of logits whose exponentials are neither infinite nor zero
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
    A Newton step d of range R = max(d) - min(d) > 1 is shortened by log(1 + R) / R, with which the likelihood of a
    logistic model rises always (its third derivative is at most R times the second), as it does with the whole step up
    to R = 1, so there is no search along the step. This holds of steps by conjugate gradients too, along which slope
    and curvature are equal as well.

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
    identified = estimable(tables)
    if not identified.all():
        tables = np.where(identified[:, None, None], tables, with_virtual_ties(tables))
    theta = likeliest(tables.sum(axis=2), tables.sum(axis=1), tables + tables.swapaxes(1, 2), np.zeros(k))
    return np.asarray(theta.reshape(wins.shape[:-1]))


def likeliest(won: Array, lost: Array, games: Array, start: Array) -> Array:
    """Logits of mean zero that maximise the likelihood, of n tables whose wins are known to be `estimable`.

    Parameters
    ----------
    won, lost : (n, k) float
        Games won and lost by each algorithm, ties one half.
    games : (n, k, k) or (n, 1, 1) float
        Of each pair; one number where it is the same for all pairs.
    start : (k,) float
        Where to begin. Of many algorithms the curvature here is inverted once, and serves all tables.

    Returns
    -------
    (n, k) float
    """
    k = won.shape[1]
    theta, inverse = np.tile(start, (len(won), 1)), None
    if k > _FEW and len(won) > 1:
        mean, none = games.mean(axis=0, keepdims=True), np.zeros((1, k))
        of_none, B = _slopes(none, none, mean, start[None])
        inverse = np.linalg.inv(_curvature(B)[0])
        if games.shape[1] == 1:  # but for a factor the curvature at the start is that of all tables
            factor = games[:, 0] / mean[0]
            theta += _shortened((won + factor * of_none) @ inverse / factor)
    most = max(_IN_CACHE // k**2, 1)
    parts = [slice(i, i + most) for i in range(0, len(won), most)]
    return np.concatenate([_fitted(won[at], lost[at], games[at], theta[at], inverse) for at in parts])


def _fitted(won: Array, lost: Array, games: Array, theta: Array, inverse: Array | None) -> Array:
    """Ratings of some tables by Newton's method; where a curvature like theirs was inverted, nothing is solved."""
    moving = np.arange(len(won))
    for _ in range(_MOST_STEPS):
        g, B = _slopes(won[moving], lost[moving], games[moving], theta[moving])
        step, inexact = _newton(g, B, inverse)
        reach = np.ptp(step, axis=1)
        theta[moving] += _shortened(step)
        # the third derivative bounds also what the next step would gain
        gain = (g * step).sum(axis=1) * np.minimum(reach + inexact, 1.0) ** 2
        moving = moving[gain > _CONVERGED * won[moving].sum(axis=1)]
        if not len(moving):
            return np.asarray(theta - theta.mean(axis=1, keepdims=True))
    raise EstimationError(f"{len(moving)} of {len(won)} Bradley-Terry fits did not converge.")


def _shortened(step: Array) -> Array:
    """Newton steps at the length with which the likelihood rises."""
    reach = np.ptp(step, axis=1, keepdims=True)
    return np.asarray(step * np.where(reach > 1.0, np.log1p(reach) / np.maximum(reach, 1.0), 1.0))


def _slopes(won: Array, lost: Array, games: Array, theta: Array) -> tuple[Array, Array]:
    """The gradient, and N P P', of which the curvature is made."""
    if np.ptp(theta, axis=1).max() < _NO_OVERFLOW:
        e = np.exp(theta - 0.5 * (theta.max(axis=1) + theta.min(axis=1))[:, None])
        P = e[:, :, None] / (e[:, :, None] + e[:, None, :])
    else:
        P = expit(theta[:, :, None] - theta[:, None, :])
    places = range(theta.shape[1])
    P[:, places, places] = 0.0
    expected = games * P
    # of wins and losses the fewer, since the more cancel where P is almost 1
    g = np.where(won <= lost, won - expected.sum(axis=2), expected.sum(axis=1) - lost)
    expected *= P.swapaxes(1, 2)
    return np.asarray(g), expected


def _curvature(B: Array) -> Array:
    """H from N P P'; the mean is free, and a matrix of ones of the size of H holds it at zero."""
    k = B.shape[-1]
    H = -B
    H[:, range(k), range(k)] = B.sum(axis=2)
    H += np.trace(H, axis1=1, axis2=2)[:, None, None] / k**2
    return H


def _newton(g: Array, B: Array, inverse: Array | None) -> tuple[Array, float]:
    """Steps H^-1 g and how inexact they are: conjugate gradients after an inverse of a matrix like H."""
    if inverse is None:
        return np.asarray(np.linalg.solve(_curvature(B), g[:, :, None])[:, :, 0]), 0.0
    out = np.zeros(g.shape)
    for d, b, slope in zip(out, B, g, strict=True):
        diagonal = b.sum(axis=0)
        left = slope - slope.mean()  # zero but for rounding
        z = inverse @ left
        direction, size = z, left @ z
        enough = _INEXACT**2 * size
        for _ in range(_MOST_PRODUCTS):
            if size <= enough:
                break
            image = diagonal * direction - b @ direction
            length = size / (direction @ image)
            d += length * direction
            left -= length * image
            z = inverse @ left
            before, size = size, left @ z
            direction = z + size / before * direction
        else:
            d[:] = np.linalg.solve(_curvature(b[None])[0], slope)
    return out, _INEXACT


def estimable(wins: Array) -> Mask:
    """Whether finite ratings maximise the likelihood of each table, ``(...)``: no group won, or lost, all its games.

    That is, everybody is above everybody else by a chain of wins (Ford 1957): the first above all, and all above it.
    """
    edges = wins > 0
    return np.asarray(_from_first(edges).all(axis=-1) & _from_first(edges.swapaxes(-1, -2)).all(axis=-1))


def linked(games: Array) -> Mask:
    """Who was compared with the first, directly or through others, ``(k,)``."""
    return _from_first(games > 0)


def _from_first(edges: Mask) -> Mask:
    """Which nodes the first leads to, along any path, ``(..., k)``."""
    reached = edges[..., 0, :].copy()
    reached[..., 0] = True
    for _ in range(edges.shape[-1]):
        more = reached | (edges & reached[..., :, None]).any(axis=-2)
        if (more == reached).all():
            break
        reached = more
    return reached


def with_virtual_ties(wins: Array) -> Array:
    """Tables with one tie more for every pair: as if all had tied on one more benchmark."""
    return wins + 0.5 * ~np.eye(wins.shape[-1], dtype=bool)
