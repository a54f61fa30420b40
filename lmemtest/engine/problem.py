"""One model ready to be searched: whitened columns, orthonormal fixed effects, scaled scores.

``y`` is replaced by its least-squares residual on ``X`` over its root mean square and ``X`` by the orthonormal
``Q`` of its QR decomposition: neither the likelihood nor the estimates change (up to known constants), and the
residual sum of squares does not cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from lmemtest.engine import theta as th
from lmemtest.engine.blocks import System, Term, build_system
from lmemtest.engine.criterion import Criterion, evaluate, sigma_gradients
from lmemtest.engine.cross import Array, Index
from lmemtest.engine.triangular import solve_lower
from lmemtest.errors import DesignError

# As in lme4 and R's qr(): a column counts as dependent below this share of its own length.
_RANK_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Problem:
    """Cross-products and the maps back to the user's scale."""

    system: System
    reml: bool
    sizes: tuple[int, ...]  # columns per term
    R: tuple[Array, ...]  # whitening factor per term
    kept: Index  # (rank,) columns of X that are not aliased
    RX: Array  # (rank, rank): X[:, kept] = Q RX
    offset: Array  # (rank,) least-squares coefficients that were taken out of y
    y_scale: float

    @property
    def n_theta(self) -> int:
        return sum(k * (k + 1) // 2 for k in self.sizes)

    @property
    def deviance_shift(self) -> float:
        """What the criterion on the user's scale has on top of the internal one."""
        m = self.system.n_rows - (self.system.p if self.reml else 0)
        shift = 2.0 * m * np.log(self.y_scale)
        if self.reml:
            shift += 2.0 * np.log(np.abs(self.RX.diagonal())).sum()
        return float(shift)

    def factors(self, theta: Array) -> tuple[Array, ...]:
        """Block factors at a whitened theta."""
        return th.block_factors(th.unpack(theta, self.sizes), self.system.blocks)

    def evaluate(self, theta: Array) -> Criterion:
        """Criterion at a whitened theta, on the internal scale."""
        return evaluate(self.system, self.factors(theta), reml=self.reml)

    def sigma_gradients(self, at: Criterion) -> list[Array]:
        """Gradient in each term's whitened ``Sigma``."""
        blocks = sigma_gradients(self.system, at, reml=self.reml)
        return th.term_blocks(blocks, self.system.blocks, self.sizes)

    def gradient(self, theta: Array, at: Criterion) -> Array:
        """Gradient in the whitened theta: ``2 G L`` for every term."""
        factors = th.unpack(theta, self.sizes)
        return th.pack([2.0 * G @ L for G, L in zip(self.sigma_gradients(at), factors, strict=True)])

    def fixed_effects(self, at: Criterion) -> tuple[Array, Array]:
        """Estimates of the kept columns on the user's scale, and ``U`` with covariance ``sigma2 U U'``."""
        b = sla.solve_triangular(self.RX, at.b) * self.y_scale + self.offset
        root = solve_lower(at.RX, np.eye(len(b))).T  # F_XX^-1 = root root'
        return b, sla.solve_triangular(self.RX, root)

    def to_white(self, theta: Array) -> Array:
        """Whitened theta of a theta on the user's scale."""
        return th.pack(th.to_white(th.unpack(theta, self.sizes), self.R))

    def to_user(self, theta: Array) -> Array:
        """Theta on the user's scale of a whitened theta."""
        return th.pack(th.to_user(th.unpack(theta, self.sizes), self.R))


def independent_columns(X: Array, omega: Array) -> Index:
    """Columns that do not depend on earlier ones; the latest dependent column is the one to go, as in lme4."""
    weighted = X * np.sqrt(omega)[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    kept: list[int] = []
    basis = np.empty((len(X), 0))
    for j in range(X.shape[1]):
        if norms[j] == 0:
            continue
        column = weighted[:, j] / norms[j]
        for _ in range(2):  # twice is enough (Kahan; Giraud et al. 2005)
            column = column - basis @ (basis.T @ column)
        length = np.linalg.norm(column)
        if length > _RANK_TOLERANCE:
            basis = np.column_stack([basis, column / length])
            kept.append(j)
    return np.array(kept, dtype=np.intp)


def _check_size(y: Array) -> None:
    largest = float(np.abs(y).max(initial=0.0))
    if largest > 0 and not 1e-100 < largest < 1e100:
        raise DesignError(
            f"the largest score is {largest:.3g} in absolute value, and the square of such a number cannot be "
            "computed to full precision. Give the score in another unit."
        )


def build_problem(
    terms: Sequence[Term],
    X: Array,
    y: Array,
    *,
    n: Array,
    weight: Array,
    ss: Array,
    reml: bool,
) -> Problem:
    """Prepare a model for the search.

    Parameters
    ----------
    terms
        Random-effects terms over the cells.
    X, y
        ``(n_cells, p)`` fixed-effects columns and ``(n_cells,)`` cell means.
    n, weight, ss
        ``(n_cells,)`` rows, precision weight of each row, and sum of squares about the mean, per cell.
    reml
        Restricted maximum likelihood instead of maximum likelihood.

    Raises
    ------
    DesignError
        If there are no more rows than fixed effects, or nothing is left to explain.
    """
    _check_size(y)
    omega = n * weight
    n_rows = int(n.sum())
    kept = independent_columns(X, omega)
    if n_rows <= len(kept):
        raise DesignError(
            f"the table has {n_rows} rows and the fixed part {len(kept)} independent columns, so nothing is left "
            "to estimate the residual variance from. Use fewer fixed effects or more runs."
        )
    Xk = X[:, kept]
    root = np.sqrt(omega)[:, None]
    Q, RX = np.linalg.qr(Xk * root)
    qty = Q.T @ (y * root[:, 0])
    offset = sla.solve_triangular(RX, qty)
    rest = y - Xk @ offset
    ss_within = float(weight @ ss)
    total = float(omega @ rest**2) + ss_within
    if not total > 1e-20 * float(omega @ y**2 + ss_within):
        raise DesignError(
            "the fixed part explains the score exactly (its residuals are zero), so there is no variation to model. "
            "Check for a constant score, or for a column that is a copy of the score."
        )
    y_scale = float(np.sqrt(total / n_rows))
    white = [th.whiten(term, omega) for term in terms]
    Xq = Q / root * np.sqrt(n_rows)  # columns of unit mean square, like the whitened random columns
    system = build_system(
        [w for w, _ in white],
        Xq,
        rest / y_scale,
        omega,
        n_rows=n_rows,
        ss_within=ss_within / y_scale**2,
        sum_log_w=float(n @ np.log(weight)),
    )
    return Problem(
        system=system,
        reml=reml,
        sizes=tuple(t.k for t in terms),
        R=tuple(R for _, R in white),
        kept=kept,
        RX=RX / np.sqrt(n_rows),
        offset=offset,
        y_scale=y_scale,
    )
