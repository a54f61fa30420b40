"""Errors of all effects from Henderson's equations, densely: `from mixed_model_equations import henderson`."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

import lmemtest as lt
from lmemtest.lmm.engine.theta import unpack
from lmemtest.lmm.model.predictions import shapes


def henderson(fit: lt.LmmFit, *, conditional: bool = False) -> np.ndarray:
    """Covariance of the errors of every effect: the mixed-model equations in u = Lambda v, singular or not."""
    X, omega = fit.design.X, fit.cells.n * fit.row_precision()
    Z = [
        np.einsum("nk,nq->nqk", t.basis, np.eye(len(t.levels))[t.codes]).reshape(len(X), -1) for t in fit.design.random
    ]
    factors = [
        np.kron(np.eye(q), L) for L, (q, _) in zip(unpack(fit.theta, fit.problem.shapes), shapes(fit), strict=True)
    ]
    p = 0 if conditional else X.shape[1]
    to_user = block_diag(np.eye(p), *factors)
    W = np.hstack([X[:, :p], *Z]) @ to_user
    C = W.T @ (W * omega[:, None])
    C[p:, p:] += np.eye(len(C) - p)
    return fit.scale * to_user @ np.linalg.inv(C) @ to_user.T
