"""Ratings from votes on pairs: Davidson's model of wins, losses and ties, and errors that allow for clusters of votes.

Of two models, a shown first,

    P(a wins) = e^(x/2) / D,   P(b wins) = e^(-x/2) / D,   P(tie) = nu / D,   D = e^(x/2) + e^(-x/2) + nu,

with x = theta_a - theta_b + z'beta: z is 1 for the first place, and differences of style. A row of X has 1 at a, -1 at
b, and z. Without ties it is the model of Bradley and Terry. Parameters are (theta, beta, log nu), the last one only
where there are ties, and the mean of theta is zero. Outcomes are an exponential family: the likelihood has one maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from lmemtest.core.arrays import Array, Index
from lmemtest.errors import EstimationError

_CONVERGED = 1e-8  # length of a last Newton step, whose error is about its square
_MOST_STEPS = 50  # a dozen are usual; where there is no maximum, each step adds about one to some x
_SINGULAR = 1e-10  # smallest eigenvalue of the information, scaled to a diagonal of ones


def fit_votes(X: Any, outcome: Array, weight: Array, k: int) -> tuple[Array, Array, Array]:
    """The parameters that maximise the likelihood, of models each of which is above every other by a chain of votes.

    Parameters
    ----------
    X : (n, k + q) sparse float
        Of each vote, or of votes that are alike.
    outcome : (n,) float
        1 where the first one won, -1 the other one, 0 for ties.
    weight : (n,) float
        How many votes are alike.
    k : int
        Number of models.

    Returns
    -------
    (p,), (p, p), (n, 2) float
        Parameters; the inverse of their information; derivatives of the log-likelihood of a vote by x and by log nu.

    Raises
    ------
    EstimationError
        If the search does not end: a covariate decides all votes.

    Notes ----- Newton's method. A step that changes log odds of outcomes by R > 1 at most is shortened by log(1 + R) /
    R, with which the likelihood rises always.

    References ---------- Davidson (1970), doi:10.1080/01621459.1970.10481082; Davidson & Beaver (1977),
    doi:10.2307/2529467 (the first place); Bach (2010), doi:10.1214/09-EJS521 (length of the step)
    """
    p, ties = X.shape[1], float(weight[outcome == 0.0].sum())
    estimate = np.append(np.zeros(p), [np.log(2.0 * ties / (weight.sum() - ties))] if ties else [])
    for _ in range(_MOST_STEPS):
        gradient, information, residual = _slopes(estimate, X, outcome, weight)
        hold = np.trace(information[:k, :k]) / k**2  # of the mean of theta, at zero
        information[:k, :k] += hold
        try:
            step = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError:
            break
        change = float(np.abs(X @ step[:p]).max())
        reach = max(change, change / 2.0 + abs(float(step[-1]))) if ties else change
        estimate += step * (np.log1p(reach) / reach if reach > 1.0 else 1.0)
        if reach < _CONVERGED:
            inverse = np.asarray(np.linalg.inv(information))
            inverse[:k, :k] -= 1.0 / (hold * k**2)
            return np.asarray(estimate), inverse, residual
    raise EstimationError(
        "A covariate, the first place or a style, decides votes alone, so no finite parameters maximise the "
        "likelihood. Leave it out."
    )


def _slopes(estimate: Array, X: Any, outcome: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Gradient, information, and the derivatives of each vote by x and log nu."""
    p, with_ties = X.shape[1], len(estimate) > X.shape[1]
    x, log_nu = X @ estimate[:p], estimate[p] if with_ties else -np.inf
    P = softmax(np.stack([x / 2.0, -x / 2.0, np.full(len(x), log_nu)]), axis=0)
    lead, tie = P[0] - P[1], P[2]
    residual = np.column_stack([(outcome - lead) / 2.0, (outcome == 0.0) - tie])
    information = np.zeros((len(estimate), len(estimate)))
    information[:p, :p] = (X.T @ (sp.diags_array(weight * (1.0 - tie - lead**2) / 4.0) @ X)).toarray()
    if with_ties:
        information[p, :p] = information[:p, p] = X.T @ (-weight * lead * tie / 2.0)
        information[p, p] = weight @ (tie * (1.0 - tie))
    gradient = np.append(X.T @ (weight * residual[:, 0]), weight @ residual[:, 1])
    return gradient[: len(estimate)], information, residual


def confounded(X: Any, weight: Array, k: int) -> Index:
    """Which covariates cannot be told apart from the ratings and from each other, of models that votes connect."""
    information = _slopes(np.zeros(X.shape[1]), X, np.ones(len(weight)), weight)[1]
    information[:k, :k] += np.trace(information) / k**2
    scale = np.sqrt(np.diag(information))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    return np.flatnonzero((np.abs(vectors[k:, values < _SINGULAR]) > 1e-3).any(axis=1))


def cluster_covariance(X: Any, residual: Array, inverse: Array, clusters: Sequence[Index]) -> Array:
    """Covariance of the parameters where votes of a cluster are dependent: the sandwich, by one or two kinds of them.

    `X` and `residual` have a row per vote, `inverse` is that of `fit_votes`, and `clusters` are one or two codes,
    ``(n,)``. With s_g the sum of the derivatives of cluster g, of G, it is ``inverse (sum s_g s_g') inverse`` times ``G
    / (G - 1) (n - 1) / (n - p)``, p the free parameters. With two kinds it is the sum of both less that of their
    intersections, without the negative eigenvalues that this may have.

    Liang & Zeger (1986), doi:10.1093/biomet/73.1.13; Cameron, Gelbach & Miller (2011), doi:10.1198/jbes.2010.07136
    """
    n, p = len(residual), len(inverse)
    scores = sp.hstack([sp.diags_array(residual[:, 0]) @ X, sp.csr_array(residual[:, 1:])], format="csr")[:, :p]
    kinds = [(codes, 1.0) for codes in clusters]
    if len(clusters) == 2:
        both = clusters[0] * (int(clusters[1].max()) + 1) + clusters[1]
        kinds.append((np.unique(both, return_inverse=True)[1], -1.0))
    V = np.zeros((p, p))
    for codes, sign in kinds:
        of_cluster = _members(codes) @ scores
        G = of_cluster.shape[0]
        bread = sign * G / (G - 1) * (n - 1) / (n - p + 1) * inverse
        V += bread @ (of_cluster.T @ of_cluster).toarray() @ inverse
    if len(clusters) == 1:
        return V
    size, vectors = np.linalg.eigh((V + V.T) / 2.0)
    return np.asarray((vectors * np.maximum(size, 0.0)) @ vectors.T)


def effective_clusters(X: Any, codes: Index, k: int) -> Array:
    """How many clusters of equal size the votes on each model are worth, ``(k + 1,)``; the last one: all votes.

    That is ``(sum n)^2 / sum n^2`` over the numbers n of its votes in each cluster.
    """
    n = _members(codes) @ abs(X[:, :k])
    whole = np.asarray(n.sum(axis=1))
    return np.append(n.sum(axis=0) ** 2 / n.power(2).sum(axis=0), whole.sum() ** 2 / (whole**2).sum())


def _members(codes: Index) -> Any:
    """Which votes are in each cluster, ``(G, n)``."""
    return sp.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
