"""What the fit says of single groups: conditional modes, and the error of predictions that use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.engine import prediction
from lmemtest.engine.sweep import conditional_modes
from lmemtest.errors import ArgumentError
from lmemtest.model.arrays import strata, to_pandas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.model.fit import LmmFit

    Array = NDArray[np.float64]

PREDICTION_TARGETS = ("mean", "score")
# Columns of one batch of targets: 600 levels x 256 targets are 1.2 MB.
_BATCH = 256


def terms_of(fit: LmmFit, group: str) -> list[int]:
    """Positions of the random-effects terms of a grouping factor."""
    found = [i for i, term in enumerate(fit.design.random) if term.group == group]
    if not found:
        known = ", ".join(dict.fromkeys(t.group for t in fit.design.random)) or "none"
        raise ArgumentError(f"group='{group}' is not a group of this model. Groups: {known}.")
    return found


def modes(fit: LmmFit) -> tuple[Array, ...]:
    """Conditional modes per term on the user's scale, ``(levels, k)``."""
    problem, at = fit.problem, fit.optim.criterion
    by_block = conditional_modes(at.system, at.sweep, np.append(-at.b, 1.0))
    out: list[Array] = [np.empty(0)] * len(problem.sizes)
    for block, u in zip(problem.system.blocks, by_block, strict=True):
        start = 0
        for i in block.members:
            stop = start + problem.sizes[i]
            out[i] = np.linalg.solve(problem.R[i], u[:, start:stop].T).T * problem.y_scale
            start = stop
    return tuple(out)


def by_level(fit: LmmFit, group: str) -> pd.DataFrame:
    """Conditional modes of one grouping factor; see `LmmFit.random_effects`."""
    terms = fit.design.random
    parts = [
        pd.DataFrame(fit.modes[i], index=list(terms[i].levels), columns=list(terms[i].names))
        for i in terms_of(fit, group)
    ]
    return pd.concat(parts, axis=1)


def shapes(fit: LmmFit) -> list[tuple[int, int]]:
    """Levels and effects of every term."""
    return [(len(term.levels), len(term.names)) for term in fit.design.random]


def predict(fit: LmmFit, frame: Any = None, *, random: bool = True) -> Array:
    """Predicted scores; see `LmmFit.predict`."""
    rows, terms = _design_of(fit, frame, random=random)
    values = rows[:, fit.problem.kept] @ fit.kept_params
    for (basis, codes), u in zip(terms, fit.modes if random else (), strict=True):
        known = codes >= 0
        values[known] += np.einsum("nk,nk->n", basis[known], u[codes[known]])
    return values


def _design_of(fit: LmmFit, frame: Any, *, random: bool) -> tuple[Array, list[tuple[Array, NDArray[np.intp]]]]:
    """Rows of the fixed part, and basis and codes of every term (none without ``random``)."""
    design = fit.design
    if frame is None:
        return design.X, [(t.basis, t.codes) for t in design.random] if random else []
    table = to_pandas(frame)
    n_terms = len(design.random) if random else 0
    return design.rows(table), [design.random_rows(i, table) for i in range(n_terms)]


def prediction_intervals(
    fit: LmmFit,
    frame: Any = None,
    *,
    random: bool = True,
    target: Literal["mean", "score"] = "mean",
    level: float = 0.95,
) -> pd.DataFrame:
    """Predictions with their intervals; see `LmmFit.prediction_intervals`."""
    from scipy.special import stdtrit

    check_choice(target, "target", PREDICTION_TARGETS)
    check_fraction(level, "level")
    rows, terms = _design_of(fit, frame, random=random)
    table = fit.cells.frame if frame is None else to_pandas(frame)
    value = predict(fit, frame, random=random)
    value = np.where(fit.estimable(rows), value, np.nan)
    error, df = _errors(fit, rows[:, fit.problem.kept], terms)
    variance = error + _unseen(fit, terms)
    if target == "score":
        variance = variance + _residual_variance(fit, table)
    se = np.sqrt(variance)
    half = stdtrit(df, 0.5 + level / 2.0) * se
    return pd.DataFrame(
        {"prediction": value, "se": se + 0.0 * value, "df": df, "ci_low": value - half, "ci_high": value + half}
    )


def _errors(fit: LmmFit, rows: Array, terms: Sequence[tuple[Array, NDArray[np.intp]]]) -> tuple[Array, Array]:
    """Variance of the error from fixed effects and known groups, with its degrees of freedom, ``(n,)`` each."""
    variance, df = np.empty(len(rows)), np.empty(len(rows))
    with one_blas_thread():
        for start in range(0, len(rows), _BATCH):
            part = slice(start, start + _BATCH)
            targets = prediction.Targets(
                fixed=rows[part],
                random=tuple(
                    _coefficients(q, basis[part], codes[part])
                    for (q, _), (basis, codes) in zip(shapes(fit), terms, strict=True)
                )
                if terms
                else tuple(np.zeros((q, k, len(rows[part]))) for q, k in shapes(fit)),
            )
            at = fit.optim.criterion
            variance[part] = prediction.covariance(fit.problem, fit.optim.theta, at, targets).diagonal()
            df[part] = prediction.degrees_of_freedom(fit.problem, fit.optim, fit.curvature, targets)
    return variance, df


def _coefficients(levels: int, basis: Array, codes: NDArray[np.intp]) -> Array:
    """``(levels, k, n)``: the basis of every row at its level; zero where the level is new."""
    out = np.zeros((levels, basis.shape[1], len(codes)))
    known = np.flatnonzero(codes >= 0)
    out[codes[known], :, known] = basis[known]
    return out


def _unseen(fit: LmmFit, terms: Sequence[tuple[Array, NDArray[np.intp]]]) -> Array | float:
    """Variance of the groups that the fit has not seen, ``(n,)``."""
    total: Array | float = 0.0
    for (basis, codes), S in zip(terms, fit.covariances, strict=False):
        total = total + np.where(codes < 0, np.einsum("na,ab,nb->n", basis, S, basis), 0.0)
    return total


def _residual_variance(fit: LmmFit, table: pd.DataFrame) -> Array | float:
    """Variance of one run about its expectation, ``(n,)``; of weight one."""
    if fit.dispersion is None:
        return fit.scale
    variances = fit.residual_variances
    if fit.dispersion not in table.columns:
        raise ArgumentError(
            f"target='score' needs the column '{fit.dispersion}', whose levels have residual variances of their own. "
            "Add it to the frame, or use target='mean'."
        )
    if table is fit.cells.frame:
        return variances.to_numpy()[strata(fit.cells, fit.dispersion)[0]]
    found = table[fit.dispersion].map(variances)
    if found.isna().any():
        new = table[fit.dispersion][found.isna()].iloc[0]
        raise ArgumentError(
            f"target='score': the residual variance of {fit.dispersion}={new!r} is not known, since the fit has not "
            "seen it. Use target='mean', or levels of the fit."
        )
    return found.to_numpy(dtype=np.float64)
