"""Covariance of the fixed effects that trusts the clusters to be independent, and nothing else of the model.

The model's standard errors are right if its variances are: the same in every benchmark, with the right random effects.
Where they are not, the estimates still stand, and the scatter of the clusters' contributions shows how precise they
are (Liang & Zeger 1986). With few clusters the plain sandwich is too small and its t-tests too liberal; CR2 corrects
the bias under the fitted model, and each estimate gets degrees of freedom of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.result import Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_choice, check_columns
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.robust import Sandwich, balanced_leverage, cluster_leverage, sandwich, whitening_root
from lmemtest.lmm.means.f_tests import FTest
from lmemtest.lmm.means.reference_grid import name_tuple
from lmemtest.lmm.model.given import check_fit, check_working

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array, Index, Mask


KINDS = ("CR0", "CR1", "CR2")
# Degrees of freedom below which the t approximation is poor (Tipton 2015, Pustejovsky & Tipton 2018).
FEW_DF = 4.0
# From here on the correction rarely matters; below it the df are what a reader must look at.
FEW_CLUSTERS = 10
# Share of the working variance of an estimate that one cluster alone determines, above rounding.
_ALONE = 1e-6
# Robust variance over the working one, below which the clusters agree up to rounding.
NO_SCATTER = 1e-20
# Numbers in a row of the design, relative to its largest, that are rounding.
_ROUNDING = 1e-13


@result
class ClusterRobust(Result):
    """Cluster-robust covariance of the fixed effects of a fit.

    Attributes
    ----------
    fit : LmmFit
        The fit; its estimates do not change.
    cluster : tuple of str
        Columns whose combinations are the clusters.
    kind : {"CR0", "CR1", "CR2"}
        Correction for few clusters.
    n_clusters : int
        Clusters in the data.
    engine : Sandwich
        Scores of the clusters.
    root : (rank, rank) float
        Takes the engine's coordinates to the kept fixed effects, on the user's scale.
    notes : tuple of str
        What a reader must know.
    """

    fit: Any
    cluster: tuple[str, ...]
    kind: str
    n_clusters: int
    engine: Sandwich
    root: Array

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know; its degrees of freedom cost more than those of a few comparisons."""
        return _notes(self)

    @property
    def label(self) -> str:
        """The clusters in words, for instance "benchmark:prior"."""
        return ":".join(self.cluster)

    @property
    def bse(self) -> pd.Series:
        """Robust standard errors by name; NaN for dropped columns and where `has_variance` is False."""
        import pandas as pd

        rows = np.eye(len(self.fit.params))
        return pd.Series(np.sqrt(self.cov(rows).diagonal()), index=list(self.fit.design.x_names), name="se")

    def cov_params(self) -> pd.DataFrame:
        """Robust covariance of the identified fixed effects, by name."""
        import pandas as pd

        names = [self.fit.design.x_names[j] for j in self.fit.problem.kept]
        t = self._scores(self.root)
        return pd.DataFrame(t.T @ t, index=names, columns=names)

    def cov(self, L: Array) -> Array:
        """Robust covariance of ``L b``, L over all columns of the design; NaN where `has_variance` is False."""
        t = self.contributions(L)
        out = t.T @ t
        hidden = ~self.has_variance(L)
        out[hidden, :] = out[:, hidden] = np.nan
        return out

    def df(self, L: Array | Functions) -> Array:
        """Satterthwaite's degrees of freedom of the robust variances of ``L b``, ``(rows,)``; NaN where `cov` is."""
        rows = self._kept(L)
        return np.where(self.has_variance(L), self.engine.df(rows, self.root), np.nan)

    def variances(self, L: Array | Functions) -> tuple[Array, Array]:
        """Robust variance of every row of ``L b`` and its degrees of freedom: the diagonal of `cov`, and `df`."""
        rows = self._kept(L)
        total = np.sum(self._contributions(rows) ** 2, axis=0)
        identified = self._shown(L, rows, total)
        df = np.full(len(identified), np.nan)
        df[identified] = self.engine.df(rows if identified.all() else rows[identified], self.root)
        return np.where(identified, total, np.nan), df

    def contributions(self, L: Array | Functions) -> Array:
        """What each cluster adds to ``L b``, ``(n_clusters, rows)``; the products sum to their robust covariance."""
        return self._contributions(self._kept(L))

    def _contributions(self, rows: Functions) -> Array:
        return rows.times(self._scores(self.root).T).T

    def has_variance(self, L: Array | Functions) -> Mask:
        """Rows of L whose variance the scatter of the clusters shows.

        Not where ``L b`` is not estimable or identically zero, where one cluster alone determines a part of it, and
        where all clusters give the same value.
        """
        rows = self._kept(L)
        return self._shown(L, rows, np.sum(self._contributions(rows) ** 2, axis=0))

    def _shown(self, L: Array | Functions, rows: Functions, total: Array) -> Mask:
        """`has_variance`, with the squares of the contributions."""
        return np.asarray(self.fit.estimable(L)) & ~self._is_alone(rows) & ~self._is_constant(rows, total)

    def f_test(self, L: Array) -> FTest:
        """Test that several linear functions of the fixed effects are all zero.

        Parameters
        ----------
        L : (rows, p) float
            Over all columns of the design; rows that depend on others count once.

        Returns
        -------
        FTest
            `df_den` and `p_value` are NaN where there are too few clusters for so many functions at once.

        Raises
        ------
        ArgumentError
            If `has_variance` is False for a row.

        Notes
        -----
        Hotelling's T-squared approximation (HTZ): with the Wald statistic Q and eta from `Sandwich.wishart_df`,
        (eta - q + 1) / (eta q) Q is compared with F(q, eta - q + 1). For one row it is the t-test of `df`
        (Pustejovsky & Tipton 2018, doi:10.1080/07350015.2016.1247004).
        """
        L = np.atleast_2d(np.asarray(L, dtype=float))
        moving = L[np.any(L != 0.0, axis=1)]
        if not np.all(self.has_variance(moving)):
            raise ArgumentError(
                f"L must hold functions whose robust variance the clusters of {self.label} show; "
                "has_variance(L) tells which rows have none."
            )
        H = self._inward(moving)
        _, values, directions = np.linalg.svd(H / np.linalg.norm(H, axis=1)[:, None], full_matrices=False)
        H = directions[values > 1e-8 * values.max(initial=0.0)]  # orthonormal rows with the same span
        q = len(H)
        if not q:
            return FTest.of(np.nan, 0, np.nan, "cluster-robust")
        eta = self.engine.wishart_df(H)
        df_den = eta - q + 1.0
        t = self._scores(H)
        # the scatter of the clusters must span all q dimensions
        spans = len(t) >= q and np.linalg.svd(t, compute_uv=False)[-1] ** 2 > NO_SCATTER * self.fit.scale
        if not (spans and df_den > 0):
            return FTest.of(np.nan, q, np.nan, "cluster-robust", np.nan)
        d = H @ np.linalg.solve(self.root, self.fit.params.to_numpy()[self.fit.problem.kept])
        wald = float(d @ np.linalg.solve(t.T @ t, d))
        scale = df_den / eta
        return FTest.of(scale * wald / q, q, df_den, "cluster-robust", scale)

    def table(self) -> pd.DataFrame:
        """Fixed effects: ``term``, ``estimate``, ``se``, ``df``, ``t_ratio``, ``p_value``."""
        import pandas as pd

        estimate, se = self.fit.params.to_numpy(), self.bse.to_numpy()
        df = self.df(np.eye(len(estimate)))
        with np.errstate(invalid="ignore", divide="ignore"):
            t = estimate / se
        columns = {"estimate": estimate, "se": se, "df": df, "t_ratio": t, "p_value": two_sided_p(t, df)}
        return pd.DataFrame({"term": list(self.fit.design.x_names), **columns})

    @property
    def title(self) -> str:
        """Of the fixed effects."""
        return f"Fixed effects, standard errors robust to clusters ({self.label})"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the standard errors were obtained."""
        return (f"{self.fit.label}; {self.described()}; n = {self.fit.nobs:,} rows.",)

    def described(self) -> str:
        """What was done, in one line."""
        return (
            f"{self.kind} covariance from {self.n_clusters} clusters ({self.label}), Satterthwaite degrees of freedom"
        )

    def _scores(self, H: Array) -> Array:
        """What each cluster adds to the functions `H`, ``(n_clusters, rows)``; products sum to their covariance."""
        factor = self.n_clusters / (self.n_clusters - 1.0) if self.kind == "CR1" else 1.0
        return np.asarray(np.sqrt(factor) * self.fit.problem.y_scale * (self.engine.w @ H.T))

    def _is_alone(self, rows: Functions) -> Mask:
        """Functions with a part that one cluster alone determines; identically zero ones, too."""
        return np.asarray(~(self.engine.share_alone(rows, self.root) < _ALONE))

    def _is_constant(self, rows: Functions, total: Array) -> Mask:
        """Functions with the same value in all clusters, up to rounding; with the squares of the contributions."""
        working = rows.quadratic_forms((self.root @ self.root.T)[None])[0]
        return np.asarray(total <= NO_SCATTER * self.fit.scale * working)

    def _kept(self, L: Array | Functions) -> Functions:
        """Rows of L over the columns of the fit."""
        rows = L if isinstance(L, Functions) else np.atleast_2d(np.asarray(L, dtype=float))
        return Functions.of(rows).only(self.fit.problem.kept)

    def _inward(self, L: Array) -> Array:
        """Rows of L in the engine's coordinates, ``(rows, rank)``."""
        return np.asarray(self._kept(L).L @ self.root)


@one_blas_thread()
def cluster_robust(fit: Any, cluster: str | Sequence[str], *, kind: str = "CR2") -> ClusterRobust:
    """Cluster-robust covariance of the fixed effects, with Satterthwaite degrees of freedom.

    Parameters
    ----------
    fit : LmmFit
        A fitted model (a `GlmmFit` by pseudo-likelihood, on the scale of the link), with or without random effects,
        `weights` and `dispersion`. Its covariance is the working model: it weighs the data and corrects for few
        clusters, but the standard errors do not rest on it.
    cluster : str or sequence of str
        Column whose levels are independent of each other, as a rule the benchmark; of several columns, every
        combination is a cluster. Every random effect of the fit must belong to one cluster.
    kind : {"CR2", "CR1", "CR0"}
        "CR2" is unbiased if the fitted model is right, with the correction of Bell and McCaffrey. "CR0" is the plain
        sandwich, "CR1" is CR0 times clusters / (clusters - 1); both are too small with few clusters.

    Returns
    -------
    ClusterRobust
        ``to_frame()`` has term, estimate, se, df, t_ratio, p_value. ``emmeans(fit, ..., vcov=result)`` uses it for
        marginal means and all that is made from them.

    Raises
    ------
    UnknownColumnError
        If `cluster` is not a column of the data.
    DesignError
        If there are fewer than two clusters, or a random effect reaches over several clusters.

    Notes
    -----
    With V_c the fitted covariance of cluster c, M = (sum X_c'V_c^-1 X_c)^-1 and H_c = X_c M X_c'V_c^-1,
    Cov = M (sum_c X_c'V_c^-1 A_c e_c e_c'A_c'V_c^-1 X_c) M, where A_c = (I - H_c)^-1/2 for CR2 and I otherwise. Only
    (p, p) matrices per cluster are needed, so the number of rows does not matter.

    R's clubSandwich takes A_c = D_c'(D_c (I - H_c) V_c D_c')^-1/2 D_c with D_c'D_c = V_c for CR2. Both make the
    estimator unbiased under the working model and agree where V_c is a multiple of the identity (least squares); for
    mixed models the standard errors differ slightly (ten models compared: up to 0.6 %, another table: 1.05 %; no bound
    is known). The root used here does not change when the
    rows of a cluster are replaced by any invertible linear combinations of them (clubSandwich's: by rotations).

    References
    ----------
    Bell & McCaffrey (2002), Survey Methodology 28, 169-181; Pustejovsky & Tipton (2018),
    doi:10.1080/07350015.2016.1247004; Liang & Zeger (1986), doi:10.1093/biomet/73.1.13

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> from lmemtest.lmm.intervals.cluster_robust import cluster_robust
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 3, 7, 3, 4, 8, 6, 5, 9]})
    >>> fit = lt.fit_lmm("score ~ algorithm + (1|task)", runs)
    >>> cluster_robust(fit, "task").to_frame().round(3)[["term", "estimate", "se", "df"]]
                 term  estimate     se   df
    0       Intercept      3.25  1.031  3.0
    1  algorithm[T.B]      0.25  0.479  3.0
    2  algorithm[T.C]      4.00  0.408  3.0
    """
    check_fit(fit, "fit")
    check_choice(kind, "kind", KINDS)
    names = name_tuple(cluster, "cluster")
    check_working(fit, "cluster_robust()", names)
    if not names:
        raise ArgumentError("cluster must name at least one column, for instance cluster='benchmark'.")
    if not {*names} <= {*fit.cells.names}:
        check_columns(names, as_frame(fit.data).collect_schema().names(), argument="cluster")
    return sandwiched(fit, names, kind)


def sandwiched(fit: Any, names: tuple[str, ...], kind: str = "CR2") -> ClusterRobust:
    """`cluster_robust` by columns that the table of the fit has."""
    cells, to_fit = fit.cells_by(names)
    codes = cells.groups(names)
    n_clusters = int(codes.max()) + 1
    _check_clusters(fit, codes, n_clusters, to_fit, names)
    problem, at = fit.problem, fit.optim.criterion
    design, row = fit.design, fit.design.row[to_fit]
    distinct = design.distinct[:, problem.kept]
    X = np.linalg.solve(problem.RX.T, distinct.T).T
    X[np.abs(X) < _ROUNDING * np.abs(X).max(axis=1, initial=0.0, keepdims=True)] = 0.0  # means that do not meet
    y = (cells.mean - (distinct @ problem.offset)[row] - design.offset[to_fit]) / problem.y_scale
    precision = fit.row_precision()
    omega = cells.n * precision[to_fit]
    with one_blas_thread():
        if problem.anova is not None and np.all(precision == precision[0]):
            place, size = codes * len(X) + row, n_clusters * len(X)
            n: Array = np.bincount(place, omega, minlength=size).reshape(n_clusters, len(X)).astype(float)
            total: Array = np.bincount(place, omega * y, minlength=size).reshape(n.shape).astype(float)
            leverage = balanced_leverage(at, X, n, total)
        else:
            where = {"row": row, "cells": to_fit, "cluster": codes}
            leverage = cluster_leverage(at, fit.held, X, y, omega, n_clusters=n_clusters, **where)
        engine = sandwich(leverage, adjusted=kind == "CR2")
    root = np.linalg.solve(problem.RX, whitening_root(at))
    return ClusterRobust(fit=fit, cluster=names, kind=kind, n_clusters=n_clusters, engine=engine, root=root)


# ---------------------------------------------------------------------- clusters


def _check_clusters(fit: Any, codes: Index, n_clusters: int, to_fit: Index, names: tuple[str, ...]) -> None:
    label = ":".join(names)
    if n_clusters < 2:
        raise DesignError(
            f"cluster={label!r} has one level, and the scatter of a single cluster shows no variance. Choose a column "
            "with at least two levels, better ten or more."
        )
    for term in fit.design.random:
        level = term.codes[to_fit]
        home = np.zeros(term.n_levels, dtype=np.intp)
        home[level] = codes
        outside = np.flatnonzero(home[level] != codes)
        if len(outside):
            nested = ":".join(dict.fromkeys([*names, *term.group.split(":")]))
            raise DesignError(
                f"clusters must be independent of each other, but the random effect {term.label} ties clusters of "
                f"{label!r} together: its level {term.levels[level[outside[0]]]!r} occurs in several. Choose a coarser "
                f"cluster= that contains every level of {term.group!r}, or fit the effect within clusters, {nested}, "
                "if its levels are not the same thing in different clusters."
            )


# ---------------------------------------------------------------------- notes


def _notes(result: ClusterRobust) -> tuple[str, ...]:
    notes = []
    n, label = result.n_clusters, result.label
    if n < FEW_CLUSTERS:
        notes.append(
            f"Only {n} clusters ({label}): the standard errors are themselves uncertain, which the degrees of freedom "
            "show. Differences that are not very large will not be found."
        )
    rows = np.eye(len(result.fit.params))
    estimable = np.asarray(result.fit.estimable(rows))
    functions = result._kept(rows)
    alone = estimable & result._is_alone(functions)
    constant = estimable & ~alone & result._is_constant(functions, np.sum(result.contributions(rows) ** 2, axis=0))

    def named(which: Mask) -> str:
        return listed([name for name, chosen in zip(result.fit.design.x_names, which, strict=True) if chosen], 5)

    if alone.any():
        notes.append(
            f"A single cluster determines {named(alone)} (a part of it, at least), so the scatter between clusters "
            "does not show the precision: no standard error. Effects of the clusters belong in the random part."
        )
    if constant.any():
        notes.append(
            f"All clusters agree on {named(constant)} to rounding, so there is no standard error and no test. Are some "
            "rows copies of others?"
        )
    df = result.df(rows)
    few = np.nan_to_num(df, nan=np.inf) < FEW_DF
    if few.any():
        notes.append(
            f"Fewer than {FEW_DF:g} degrees of freedom for {named(few)}: p-values near the level are not reliable."
        )
    if result.kind != "CR2":
        notes.append(f"{result.kind} standard errors are too small with few clusters; CR2 corrects that.")
    return tuple(notes)
