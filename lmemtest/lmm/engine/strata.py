"""One residual variance per stratum: cross-products are kept per stratum and reweighted.

Rows of stratum ``g`` have the residual variance ``s2 / tau_g``. All cross-products are linear in the precisions,
``A(tau) = sum_g tau_g A_g``, so a change of ``tau`` costs no pass over the data, and the sweep's gradient in the
cross-products gives the gradient in ``delta_g = log tau_g``:

    d / d delta_g = tau_g <dA, A_g> + (m / r2) tau_g ss_g - n_g.

``delta`` of the first stratum is 0: the overall level is ``s2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.blocks import CrossProducts, System
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.information import Products, multiply
from lmemtest.lmm.engine.sweep import Adjoint, conditional_modes


@dataclass(frozen=True)
class Strata:
    """The systems of all strata: same structure, the weights of other rows zero."""

    systems: tuple[System, ...]
    n_rows: Array  # (G,)
    precision: Array  # (G,) precisions that the systems already hold, relative to the first

    @property
    def n_delta(self) -> int:
        return len(self.systems) - 1

    def combined(self, delta: Array) -> System:
        """The system at log precision ratios ``delta``, ``(G - 1,)``."""
        tau = np.exp(np.append(0.0, delta))
        first = self.systems[0]
        chain = []
        for i, stage in enumerate(first.chain):
            parts = [s.chain[i] for s in self.systems]
            V = parts[0].V.scaled(tau[0])
            for part, t in zip(parts[1:], tau[1:], strict=True):
                V = V + part.V.scaled(t)
            chain.append(
                replace(
                    stage,
                    A=_sum([p.A for p in parts], tau),
                    E={j: _sum([p.E[j] for p in parts], tau) for j in stage.E},
                    V=V,
                )
            )
        return replace(
            first,
            source=CrossProducts(tuple(chain), first.tail, _sum([s.B for s in self.systems], tau)),
            ss_within=float(tau @ [s.ss_within for s in self.systems]),
            sum_log_w=first.sum_log_w + float(self.n_rows[1:] @ delta),
        )

    def gradient(self, delta: Array, bar: Adjoint, residual_weight: float) -> Array:
        """Gradient in ``delta`` from the gradient in the cross-products; ``residual_weight`` is ``m / r2``."""
        out = np.empty(self.n_delta)
        for g, (system, log_tau, rows) in enumerate(zip(self.systems[1:], delta, self.n_rows[1:], strict=True)):
            inner = float(np.vdot(bar.B, system.B)) + residual_weight * system.ss_within
            for i, stage in enumerate(system.chain):
                inner += float(np.vdot(bar.A[i], stage.A)) + 2.0 * bar.V[i].inner(stage.V)
                inner += 2.0 * sum(float(np.vdot(bar.E[i, j], e)) for j, e in stage.E.items())
            out[g] = np.exp(log_tau) * inner - rows
        return out

    def directions(self, delta: Array, at: Criterion) -> tuple[list[Products], Array]:
        """Cross-products of ``w_g = dV_g P y`` with the model's columns per stratum, and ``d r2 / d delta_g``.

        ``w_g`` is minus the residual of the rows of stratum ``g``; those of two strata are orthogonal.
        """
        modes = conditional_modes(at.system, at.sweep, at.v)
        coefficients = [-u[:, :, None] for u in modes]
        products, d_r2 = [], np.empty(self.n_delta)
        for g, (part, tau) in enumerate(zip(self.systems[1:], np.exp(delta), strict=True)):
            found = multiply(part, coefficients, at.v[:, None])
            d_r2[g] = tau * (float(found.gram[0, 0]) + part.ss_within)
            products.append(
                Products(
                    chain=[-tau * c for c in found.chain],
                    remainder=-tau * found.remainder,
                    gram=np.array([[d_r2[g]]]),
                )
            )
        return products, d_r2


def _sum(arrays: Sequence[Array], tau: Array) -> Array:
    out = tau[0] * arrays[0]
    for a, t in zip(arrays[1:], tau[1:], strict=True):
        out = out + t * a
    return out
