"""Profiled deviance -2 log L(theta) by maximum likelihood or REML, with its exact gradient.

From ``F = [X y]' V^-1 [X y]``: ``b = F_XX^-1 F_Xy``, ``r2 = F_yy - b'F_Xy`` (+ the within-cell sum of squares),

    ML:    log|V| + n (1 + log(2 pi r2 / n)) - sum log w
    REML:  log|V| + log|F_XX| + (n - p) (1 + log(2 pi r2 / (n - p))) - sum log w

or, where the residual variance ``s2`` is held, ``m log(2 pi s2) + r2 / s2`` in place of ``m (1 + log(2 pi r2 / m))``
(Bates, Mächler, Bolker & Walker 2015, doi:10.18637/jss.v067.i01, eq. 34 and 42). The envelope theorem gives
``d r2 = v' dF v`` with ``v = (-b, 1)``, and the derivative of the criterion in ``r2`` is ``1 / s2`` in both cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.products import System
from lmemtest.lmm.engine.sweep import Adjoint, Sweep, conditional_modes, gradient, multiply, sweep
from lmemtest.lmm.engine.theta import block_factors, solve_lower, solve_spd


@dataclass(frozen=True)
class Criterion:
    """The criterion at one theta; ``solution`` holds what its gradient and the estimates need."""

    system: System  # at the residual variances of this point
    value: float
    b: Array  # (p,)
    r2: float
    m: int  # rows, of REML less the fixed effects
    RX: Array  # (p, p) lower Cholesky factor of F_XX
    factors: Sequence[Array]  # L per term
    reml: bool
    held: float | None = None  # residual variance, where it is not estimated
    swept: Sweep | None = None  # the elimination, where the criterion is from one

    @cached_property
    def sweep(self) -> Sweep:
        """The elimination at this theta."""
        return sweep(self.system, block_factors(self.factors, self.system.blocks)) if self.swept is None else self.swept

    @property
    def sigma2(self) -> float:
        return self.r2 / self.m if self.held is None else self.held

    @property
    def total(self) -> float:
        """Sum of squares of the scores."""
        return float(self.system.B[-1, -1]) + self.system.ss_within

    @property
    def weight(self) -> float:
        """Derivative of the criterion in ``r2``."""
        return 1.0 / self.sigma2

    @property
    def d_weight(self) -> float:
        """Second derivative of the criterion in ``r2``."""
        return -self.m / self.r2**2 if self.held is None else 0.0

    @property
    def v(self) -> Array:
        """Coefficients of ``[X y]`` in the residual, ``(p + 1,)``."""
        return np.append(-self.b, 1.0)

    @property
    def F_bar(self) -> Array:
        """Gradient in ``F``."""
        p = self.system.p
        out = self.weight * np.outer(self.v, self.v)
        if self.reml and p:
            out[:p, :p] += solve_spd(self.RX, np.eye(p))
        return out

    def adjoint(self, *, inputs: bool = False) -> Adjoint:
        """Gradient in each block's ``Sigma`` and, with ``inputs``, in the cross-products."""
        return gradient(self.system, self.sweep, self.F_bar, inputs=inputs)

    def scores(self) -> list[Array]:
        """``Z'P y`` per block of the system, ``(q, K)`` each."""
        system = self.system
        modes = conditional_modes(system, self.sweep, self.v)
        chain, remainder, _ = multiply(system, [-u[:, :, None] for u in modes], self.v[:, None])
        return [c[:, :, 0] for c in [*chain, *system.by_tail_block(remainder)]]


def evaluate(
    system: System, factors: Sequence[Array], *, reml: bool, residual_variance: float | None = None
) -> Criterion:
    """Criterion at the Cholesky factors ``factors`` of the terms; `LinAlgError` if it fails.

    ``residual_variance`` holds ``s2``, which is estimated by default.
    """
    done = sweep(system, block_factors(factors, system.blocks))
    p, n = system.p, system.n_rows
    RX = sla.cholesky(done.F[:p, :p], lower=True, check_finite=False) if p else np.empty((0, 0))
    cb = solve_lower(RX, done.F[:p, p])
    b = solve_lower(RX, cb, transpose=True)
    r2 = float(done.F[p, p] - cb @ cb) + system.ss_within
    if not r2 > 0:
        raise np.linalg.LinAlgError("the residual sum of squares is not positive")
    m = n - p if reml else n
    s2 = r2 / m if residual_variance is None else residual_variance
    value = done.logdet + m * np.log(2.0 * np.pi * s2) + r2 / s2 - system.sum_log_w
    if reml:
        value += 2.0 * float(np.log(RX.diagonal()).sum())
    return Criterion(
        system=system,
        value=float(value),
        b=b,
        r2=r2,
        m=m,
        RX=RX,
        factors=factors,
        reml=reml,
        held=residual_variance,
        swept=done,
    )
