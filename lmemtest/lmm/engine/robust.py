"""Sandwich covariance of the fixed effects for independent clusters, and its degrees of freedom.

For cluster ``c`` let ``V_c`` be the working covariance of its rows (that of the fit, relative to the residual
variance), ``e_c`` their residuals, ``M = (sum_c X_c'V_c^-1 X_c)^-1 = R R'`` and, in the coordinates of ``R``,

    K_c = R'X_c'V_c^-1 X_c R,    z_c = R'X_c'V_c^-1 e_c,    sum_c K_c = I,    sum_c z_c = 0.

The estimator multiplies the residuals by ``A_c = (I - H_c)^-1/2``, the principal root, with the leverage
``H_c = X_c M X_c'V_c^-1``. ``V_c^-1/2 A_c V_c^1/2`` is a function of a symmetric matrix whose part beyond the identity
lies in the span of ``V_c^-1/2 X_c R``, so that

    X_c'V_c^-1 A_c e_c = R'^-1 (I - K_c)^-1/2 z_c,    Cov = R (sum_c w_c w_c') R',    w_c = (I - K_c)^-1/2 z_c,

which is ``(p, p)`` algebra whatever the size of a cluster. As ``A_c (V_c - X_c M X_c') A_c' = V_c``, ``Cov`` is
unbiased if the working covariance is right (Bell & McCaffrey 2002; McCaffrey, Bell & Botts 2001).

With ``F_c = (I - K_c)^-1/2`` and ``B_c = F_c K_c``, the working covariance of the scores is

    E w_c w_d' = [c = d] F_c K_c F_c - B_c B_d,

from which the mean and variance of ``Cov`` and its degrees of freedom follow (Pustejovsky & Tipton 2018,
doi:10.1080/07350015.2016.1247004). ``F_c = I`` is the sandwich without adjustment.

Where the ``n`` clusters are alike, as in complete tables, ``K_c = I / n``: every function has ``n - 1`` degrees of
freedom. Where functions are rows of a few coefficients, as all pairs of many means are, ``h = R'l``, their products
``h'B_c B_d h = l'(R B_c B_d R')l`` are sums of a few entries of matrices that all functions share.

The rows of a cluster may have few different ``X``: the algorithms of one family, among all families with fixed means
of their own. With ``E_c`` the indicators of these rows, ``D_c``, ``K_c = (D_c R)' (E_c'V_c^-1 E_c) (D_c R)`` has as low
a rank, and its eigenvectors and eigenvalues are all that is kept of it.

``A_c`` is a function of ``H_c`` alone: if the rows of a cluster are replaced by ``T`` times the rows, ``T`` invertible,
``H_c`` becomes ``T H_c T^-1`` and ``A_c`` becomes ``T A_c T^-1``, so ``K_c`` and ``w_c`` do not change. Rows that share
a cell have the same ``X`` and ``Z``. Let ``T`` take them to their mean and to contrasts: the contrasts have ``X = 0``
and are uncorrelated with all else, so they drop out of ``K_c`` and ``z_c``, and cells are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.held import Held
from lmemtest.lmm.engine.theta import solve_lower

# 1 - eigenvalue of K_c below which cluster c alone determines a direction of the fixed effects.
_ALONE = 1e-9
_ALIKE = 1e-8  # largest difference of n K_c from the identity that is rounding
# Share of the fixed effects from which the rank of a cluster's rows counts as full.
_FULL_FROM = 1.0
_CHUNK = 1e6  # numbers held at once: few enough for a processor's cache


# ``K_c = Q_c S_c Q_c'`` and ``z_c = Q_c v_c`` of the clusters, in the coordinates of ``R``: Q ``(n_clusters, p, r)``
# with orthonormal columns (None: the identity), S ``(n_clusters, r, r)`` (None: ``K_c = I / n_clusters``), and
# v ``(n_clusters, r)``.
Leverage = tuple[Array | None, Array | None, Array]


@dataclass(frozen=True)
class Sandwich:
    """Scores of the clusters and what their working distribution needs, in the coordinates of ``R``."""

    w: Array  # ``(n_clusters, p)`` adjusted scores; their squares sum to the covariance
    U: Array  # ``(n_clusters, p, r)`` eigenvectors of ``K_c``
    of_B: Array  # ``(n_clusters, r)`` eigenvalues of the adjusted leverages ``B_c = F_c K_c``
    of_own: Array  # ``(n_clusters, r)`` those of ``F_c K_c F_c``
    alone: Array  # ``(p, p)`` sum over the clusters of the projections on directions that a single cluster determines
    alike: bool  # whether every cluster has the same share of the information, ``K_c = I / n_clusters``

    def share_alone(self, functions: Functions, root: Array) -> Array:
        """Share of the working variance of ``l'R b`` that one cluster alone determines."""
        if not self.alone.any():
            return np.where(np.any(functions.values != 0.0, axis=0), 0.0, np.nan)
        part, whole = functions.quadratic_forms(np.stack([root @ self.alone @ root.T, root @ root.T]))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(part / whole)

    def df(self, functions: Functions, root: Array) -> Array:
        """Satterthwaite's degrees of freedom ``2 E^2 / Var`` of ``h' meat h``, ``h = R'l``."""
        n, p, rows = len(self.w), root.shape[1], len(functions)
        if self.alike:
            return np.full(rows, n - 1.0)
        most = functions.most
        by_rows = rows * n * p * (2 * self.U.shape[2] + min(n, p))
        shared = n * (n + 1) // 2 * (len(root) ** 2 * p + rows * most**2) + n * len(root) * p * (p + len(root))
        return self._df_shared(functions, root) if shared < by_rows else self._df_by_rows(functions.L @ root)

    def _df_shared(self, functions: Functions, root: Array) -> Array:
        """From the products of all pairs of clusters, which functions of a few coefficients share."""
        inward = self.U.transpose(0, 2, 1) @ root.T  # (n, r, m)
        V = self.U @ (self.of_B[:, :, None] * inward)  # B_c R', (n, p, m)
        n = len(V)
        rows = len(functions)
        squares, total = np.empty((n, rows)), np.zeros(rows)
        for c in range(n):
            for start in range(c, n, chunk := max(1, int(_CHUNK // len(root) ** 2))):
                products = V[c].T @ V[start : start + chunk]
                forms = functions.quadratic_forms((products + products.transpose(0, 2, 1)) / 2.0)
                total += 2.0 * np.sum(forms**2, axis=0)
                if start == c:
                    squares[c] = forms[0]
        total -= np.sum(squares**2, axis=0)
        of_clusters = inward.transpose(0, 2, 1) @ (self.of_own[:, :, None] * inward)
        varies = functions.quadratic_forms(of_clusters) - squares
        return _satterthwaite(varies, total - np.sum(squares**2, axis=0))

    def _df_by_rows(self, H: Array) -> Array:
        out = np.empty(len(H))
        numbers = max(
            len(rows_of_cluster) * len(columns) + min(len(rows_of_cluster), len(columns)) ** 2
            for rows_of_cluster, columns in self._parts
        )
        chunk = max(1, int(_CHUNK // (numbers + len(self.U))))
        for start in range(0, len(H), chunk):
            h = H[start : start + chunk]
            varies, between = np.empty((len(self.U), len(h))), np.zeros(len(h))
            for clusters, columns in self._parts:
                varies[clusters], of_part = self._of_part(h[:, columns], clusters, columns)
                between += of_part
            out[start : start + chunk] = _satterthwaite(varies, between)
        return out

    @cached_property
    def _parts(self) -> list[tuple[Index, Index]]:
        """Clusters and coordinates that have nothing to do with others: families with fixed means of their own."""
        from scipy.sparse.csgraph import connected_components

        seen = sp.csr_matrix(self.U.any(axis=2))
        n, part = connected_components(sp.block_array([[None, seen], [seen.T, None]]), directed=False)
        of_cluster, of_column = part[: len(self.U)], part[len(self.U) :]
        return [(np.flatnonzero(of_cluster == i), np.flatnonzero(of_column == i)) for i in range(n)]

    def _of_part(self, h: Array, clusters: Index, columns: Index) -> tuple[Array, Array]:
        """Each cluster's variance, ``(clusters, rows)``, and the squares of the covariances, ``(rows,)``."""
        U, of_B, of_own = self.U[np.ix_(clusters, columns)], self.of_B[clusters], self.of_own[clusters]
        seen = h @ U  # (clusters, rows, r)
        leverage = of_B[:, None] * seen
        v = (leverage @ U.transpose(0, 2, 1)).transpose(1, 0, 2)  # B_c h, (rows, clusters, columns)
        squares = np.einsum("cri,cri->cr", leverage, leverage)
        varies = np.einsum("cri,ci,cri->cr", seen, of_own, seen) - squares
        # the products of all pairs of clusters, by the smaller of two Gram matrices
        gram = v @ v.transpose(0, 2, 1) if len(clusters) <= len(columns) else v.transpose(0, 2, 1) @ v
        return varies, np.einsum("rij,rij->r", gram, gram) - np.sum(squares**2, axis=0)

    def wishart_df(self, H: Array) -> float:
        """``eta`` of the Wishart distribution nearest to the working distribution of ``H meat H'``.

        ``eta = q (q + 1) / sum_st Var(D_st)`` with ``D`` the matrix scaled to mean identity (Pustejovsky & Tipton 2018,
        section 3.2).
        """
        q = len(H)
        seen = H @ self.U
        V = (self.of_B[:, None] * seen) @ self.U.transpose(0, 2, 1)  # V_c' of (q, p): B is symmetric
        of_clusters = (self.of_own[:, None] * seen) @ seen.transpose(0, 2, 1) - V @ V.transpose(0, 2, 1)
        unit = np.linalg.inv(np.linalg.cholesky(of_clusters.sum(axis=0)))
        V, of_clusters = unit @ V, unit @ of_clusters @ unit.T
        # sum over pairs of clusters of tr(T)^2 + tr(T^2), T_cd = -V_c V_d'; then its diagonal is put right
        flat = V.reshape(len(V), -1)
        N = flat.T @ flat
        by_index = N.reshape(q, -1, q, V.shape[2])
        total = np.sum(N * N) + np.einsum("satb,tasb->", by_index, by_index, optimize=True)
        gram = V @ V.transpose(0, 2, 1)
        total += float(_traces(of_clusters) - _traces(gram))
        return float(q * (q + 1) / total)


def _satterthwaite(varies: Array, between: Array) -> Array:
    """``2 E^2 / Var`` from each cluster's variance, ``(n_clusters, rows)``, and the squares of all covariances."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(varies.sum(axis=0) ** 2 / (np.sum(varies**2, axis=0) + between))


def _traces(T: Array) -> float:
    """``sum_c tr(T_c)^2 + tr(T_c^2)`` for symmetric ``T_c``."""
    return float(np.sum(np.trace(T, axis1=1, axis2=2) ** 2) + np.sum(T * T))


def whitening_root(at: Criterion) -> Array:
    """``R`` with ``R R' = F_XX^-1``, on the internal scale."""
    return solve_lower(at.RX, np.eye(at.system.p)).T


def _places(cluster: Index, row: Index, n_rows: int) -> tuple[Index, Index, int]:
    """The rows of ``X`` that occur in each cluster, one cluster after the other; the place of each cell among those of
    its cluster; and how many a cluster has at most."""
    pairs, pair = np.unique(cluster * n_rows + row, return_inverse=True)
    of_cluster = pairs // n_rows
    place = np.arange(len(pairs)) - np.searchsorted(of_cluster, of_cluster)
    return pairs % n_rows, place[pair], int(place.max(initial=0)) + 1


def cluster_leverage(
    at: Criterion,
    held: Held,
    X: Array,
    y: Array,
    omega: Array,
    *,
    row: Index,
    cells: Index,
    cluster: Index,
    n_clusters: int,
) -> Leverage:
    """``K_c`` and ``z_c`` of every cluster.

    ``row`` says which row of ``X`` a cell has. ``row``, ``y`` and ``omega`` (rows times precision) are of cells on the
    internal scale, at least as fine as those of the fit, to which ``cells`` assigns them; every random effect belongs
    to one ``cluster``.
    """
    root, p = whitening_root(at), at.system.p
    of_row, place, r = _places(cluster, row, len(X))
    few = r < _FULL_FROM * p
    columns = np.empty((len(y), (r if few else p) + 1))
    columns[:, :-1] = place[:, None] == np.arange(r) if few else (X @ root)[row]
    columns[:, -1] = y - (X @ at.b)[row]
    if np.array_equal(cells, np.arange(len(held.omega))):
        residual = held.take(columns)[1]
    else:
        mean = sp.csr_matrix((omega, (cells, np.arange(len(cells)))), shape=(len(held.omega), len(cells)))
        of_fit = (mean @ columns) / held.omega[:, None]
        residual = columns - (of_fit - held.take(of_fit)[1])[cells]
    solved = omega[:, None] * residual  # V^-1 D = Omega (D - Z U), U the modes that D has as data
    if few:
        at_place = cluster * r + place
        sums = [np.bincount(at_place, column, n_clusters * r).reshape(n_clusters, r) for column in solved.T]
        D = np.zeros((n_clusters, r, p))
        occurs = np.zeros((n_clusters, r), dtype=bool)
        occurs[cluster, place] = True
        D[occurs] = (X @ root)[of_row]  # in the order of clusters, too
        Q, T = np.linalg.qr(D.transpose(0, 2, 1))
        Q *= np.any(D, axis=1, keepdims=True).transpose(
            0, 2, 1
        )  # zero where the rows of a cluster are: no rounding beside them
        inner = T @ np.stack(sums[:-1], axis=2) @ T.transpose(0, 2, 1)
        return Q, 0.5 * (inner + inner.transpose(0, 2, 1)), np.einsum("cij,cj->ci", T, sums[-1])
    order = np.argsort(cluster, kind="stable")
    ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
    products = np.empty((n_clusters, p, p + 1))
    for c, members in enumerate(np.split(order, ends[:-1])):
        products[c] = columns[members, :-1].T @ solved[members]
    K = products[:, :, :-1]
    return None, 0.5 * (K + K.transpose(0, 2, 1)), products[:, :, -1]


def balanced_leverage(at: Criterion, X: Array, n: Array, total: Array) -> Leverage:
    """`cluster_leverage` of a balanced design (see `criterion`), from sums over rows with the same ``X``.

    There ``V^-1 X = X Q``: with ``X'V^-1X = Q'X'X = RX RX'`` and ``R = RX'^-1``, ``K_c = RX'(X'X)^-1 X_c'X_c R`` and
    ``z_c = RX'(X'X)^-1 X_c'e_c``. ``X`` (patterns, p) are the distinct rows, ``n`` and ``total`` (n_clusters, patterns)
    the precision of a cluster's rows with each and the sum of their scores.
    """
    back = X @ np.linalg.solve(X.T @ (n.sum(axis=0)[:, None] * X), at.RX)
    z = (total - n * (X @ at.b)) @ back
    if np.abs(n - n[0]).max() <= _ALIKE * n[0].max():
        return None, None, z
    root, p = X @ whitening_root(at), X.shape[1]
    r = int(np.count_nonzero(n, axis=1).max())
    if r < _FULL_FROM * p:
        rows = np.argsort(n == 0, axis=1, kind="stable")[:, :r]  # those that occur first
        Q = np.linalg.qr(root[rows].transpose(0, 2, 1))[0]
        weight = np.take_along_axis(n, rows, axis=1)[:, :, None]
        inner = (back[rows] @ Q).transpose(0, 2, 1) @ (weight * (root[rows] @ Q))
        return Q, 0.5 * (inner + inner.transpose(0, 2, 1)), np.einsum("cpi,cp->ci", Q, z)
    K = back.T @ (n[:, :, None] * root)
    return None, 0.5 * (K + K.transpose(0, 2, 1)), z


def sandwich(leverage: Leverage, *, adjusted: bool) -> Sandwich:
    """The estimator from the leverages of the clusters.

    ``adjusted`` takes ``F_c = (I - K_c)^-1/2``, a pseudo-inverse where cluster ``c`` alone determines a direction.
    """
    Q, S, v = leverage
    n, p = len(v), v.shape[1] if Q is None else Q.shape[1]
    whole = Q is None and S is not None and n > 1
    if S is None or (whole and np.abs(n * S - np.eye(p)).max(initial=0.0) < _ALIKE):
        scale_of_all = 1.0 / np.sqrt(1.0 - 1.0 / n) if adjusted else 1.0
        ones = np.ones((n, p))
        unit = np.broadcast_to(np.eye(p), (n, p, p))
        return Sandwich(
            scale_of_all * v, unit, scale_of_all / n * ones, scale_of_all**2 / n * ones, np.zeros((p, p)), alike=True
        )
    values, U = np.linalg.eigh(S)
    v = np.einsum("cij,ci->cj", U, v)
    if Q is not None:
        U = Q @ U
    values = np.clip(values, 0.0, 1.0)
    is_alone = 1.0 - values < _ALONE
    scale = np.ones_like(values)
    if adjusted:
        scale = np.where(is_alone, 0.0, 1.0 / np.sqrt(np.where(is_alone, 1.0, 1.0 - values)))
    alone = U.transpose(0, 2, 1)[is_alone]
    return Sandwich(
        w=np.einsum("cpi,ci->cp", U, scale * v),
        U=U,
        of_B=scale * values,
        of_own=scale**2 * values,
        alone=alone.T @ alone,
        alike=False,
    )
