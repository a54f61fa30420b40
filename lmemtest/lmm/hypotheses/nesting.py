"""Is one fitted model contained in another, and what does the larger one add?

Everything is compared on the combinations of columns that occur: column spaces of the fixed part, and for
each random term of the smaller model a term of the larger one with the same groups whose basis spans it. A variance
for each level, `diag(f | g)`, also contains the one variance of all levels, `(1 | g:f)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.rounding import written
from lmemtest.errors import NestingError
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.formula.design import one_variance, same_partition

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import RandomDesign


_SPAN_TOLERANCE = 1e-7  # that of the rank decisions of the fit, relative to the length of a column
_SAME = 1e-8  # relative; sums over the same rows in another order differ by about 1e-13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nesting:
    """What an alternative adds to a null model that it contains.

    ``fixed_df`` is the rank added to the fixed part; with ``same_fixed_columns`` the restricted likelihoods are
    comparable. For each random term of the null ``home`` is the term of the alternative that contains it and ``maps``
    its basis in terms of the alternative's, B0 = B A; where a variance for each level takes the place of one for all, A
    is a column of ones. ``grown`` has, of each random term that the alternative adds or extends, its columns and how
    many of them the null has in one term (0: a new term; -1: the null has them in several terms, without their
    covariance; one variance for all levels counts as all of them, since it is not on a boundary). ``dispersion``: the
    alternative adds residual variances.
    """

    fixed_df: int
    same_fixed_columns: bool
    home: tuple[int, ...]
    maps: tuple[Array, ...]
    grown: tuple[tuple[int, int], ...]
    dispersion: bool

    def theta_of_null(self, null: Any, alternative: Any) -> Array:
        """The theta of the alternative at which it is the null model."""
        factors = th.unpack(np.asarray(null.theta, dtype=float), null.problem.shapes)
        parts = []
        for j, shape in enumerate(alternative.problem.shapes):
            inside = [A @ L for A, L, h in zip(self.maps, factors, self.home, strict=True) if h == j]
            root = np.hstack([*inside, np.zeros((shape.k, shape.k))])
            parts.append(th.root_of(root, diagonal=shape.diagonal))
        return th.pack(parts, alternative.problem.shapes)


def check_nesting(null: Any, alternative: Any) -> Nesting:
    """Check that two fits use the same data and that the null is contained in the alternative.

    Raises
    ------
    NestingError
        If the data differ, the models are the same, in the wrong order, or not nested.
    """
    _check_same_data(null, alternative)
    problem, nesting = _contained(null, alternative)
    if nesting is None:
        if _contained(alternative, null)[1] is not None:
            raise NestingError(
                f"The models are in the wrong order: the null ({null.label}) contains the alternative "
                f"({alternative.label}). Swap them: the smaller model comes first."
            )
        raise NestingError(
            f"The null model ({null.label}) is not nested in the alternative ({alternative.label}): "
            f"{problem}. A likelihood-ratio test needs nested models; compare others by aic or bic."
        )
    if alternative.n_params <= null.n_params:
        raise NestingError(
            f"The alternative ({alternative.label}) has no parameter that the null ({null.label}) lacks: "
            f"both have {null.n_params}. They are the same model, so there is nothing to test."
        )
    return nesting


# ---------------------------------------------------------------------- same data


def _check_same_data(null: Any, alternative: Any) -> None:
    responses = [fit.design.parsed.score for fit in (null, alternative)]
    if responses[0] != responses[1]:
        raise NestingError(
            f"The models have different responses: {responses[0]} in the null, {responses[1]} in the "
            "alternative. Likelihoods of different responses cannot be compared; fit both to the same one."
        )
    if null.nobs != alternative.nobs:
        raise NestingError(
            f"The models were fitted to different data: {null.nobs} rows in the null, {alternative.nobs} in "
            "the alternative. Fit both to the same rows."
        )
    moments = []  # sums that do not depend on how rows were grouped into cells
    for fit in (null, alternative):
        cells, weight = fit.cells, np.asarray(fit.cells.weight, dtype=float)
        squares = weight * (np.asarray(cells.ss) + np.asarray(cells.n) * np.asarray(cells.mean) ** 2)
        moments.append((float(np.sum(weight * cells.n)), float(np.sum(squares))))
    for what, first, second in zip(("sum of the weights", "sum of squares of the response"), *moments, strict=True):
        if not np.isclose(first, second, rtol=_SAME, atol=0.0):
            raise NestingError(
                f"The models were fitted to different data: the {what} is {written(first, '.10g')} in the null and "
                f"{written(second, '.10g')} in the alternative. Fit both to the same rows, with the same weights."
            )


# ---------------------------------------------------------------------- containment


def _contained(null: Any, alternative: Any) -> tuple[str, Nesting | None]:
    """The reason why not, or what the alternative adds."""
    frame = _joint_frame(null, alternative)
    if not np.allclose(null.design.known(frame), alternative.design.known(frame), rtol=_SAME, atol=0.0):
        return "their offsets differ", None
    if null.dispersion is not None and null.dispersion != alternative.dispersion:
        return f"the alternative has no residual variances by {null.dispersion!r}", None
    X0, X = _fixed_rows(null, alternative, frame)
    same = X.shape == X0.shape and bool(np.allclose(X, X0, rtol=1e-12, atol=0.0))
    U = np.empty((len(X), 0)) if same else _orthonormal(X)
    if not (same or _within(U, X0)):
        return "the fixed part of the alternative does not contain that of the null", None
    home, maps = [], []
    for i, term in enumerate(null.design.random):
        found = _home_of(null, i, alternative, frame)
        if found is None:
            return f"no random term of the alternative contains {term.label}", None
        home.append(found[0])
        maps.append(found[1])
    added = [_added(j, term, null, home, maps) for j, term in enumerate(alternative.design.random)]
    return "", Nesting(
        fixed_df=0 if same else U.shape[1] - _orthonormal(X0).shape[1],
        same_fixed_columns=same,
        home=tuple(home),
        maps=tuple(maps),
        grown=tuple((k, r) for k, r in added if k != r),
        dispersion=null.dispersion != alternative.dispersion,
    )


def _joint_frame(null: Any, alternative: Any) -> pd.DataFrame:
    """Combinations of all columns of both models: the alternative's cells, or a new pass over its data.

    The null may use columns that the alternative does not, for instance the number behind one of its factors.
    """
    names = dict.fromkeys((*alternative.design.parsed.columns, *null.design.parsed.columns))
    if all(name in alternative.cells.frame.columns for name in names):
        return alternative.cells.frame
    from lmemtest.lmm.cells import compress

    return compress(alternative.data, by=list(names), score=alternative.design.parsed.response).frame


def _fixed_rows(null: Any, alternative: Any, frame: pd.DataFrame) -> tuple[Array, Array]:
    """Rows of both fixed parts for every distinct combination of their columns."""
    names = list(
        dict.fromkeys(name for fit in (null, alternative) for name in (*fit.design.factors, *fit.design.numeric))
    )
    distinct = frame[names].drop_duplicates() if names else frame.iloc[:1]
    return np.asarray(null.design.rows(distinct)), np.asarray(alternative.design.rows(distinct))


def _home_of(null: Any, index: int, alternative: Any, frame: pd.DataFrame) -> tuple[int, Array] | None:
    """The first term of the alternative with the same groups whose basis spans that of a null term."""
    basis, codes = null.design.random_rows(index, frame)
    term = null.design.random[index]
    for j, other in enumerate(alternative.design.random):
        larger, larger_codes = alternative.design.random_rows(j, frame)
        if same_partition(codes, larger_codes) and _spans(larger, basis):
            A = np.linalg.lstsq(larger, basis, rcond=None)[0]
            # independent effects of the alternative leave a null term as it is: one of them for each of its own
            alone = ((np.abs(A) > _SPAN_TOLERANCE * np.abs(A).max(axis=0)).sum(axis=0) == 1).all()
            if not other.diagonal or (alone and (term.diagonal or A.shape[1] == 1)):
                return j, A
        if one_variance(term.names, codes, other, larger, larger_codes):
            return j, np.ones((larger.shape[1], 1))
    return None


def _added(j: int, term: RandomDesign, null: Any, home: Sequence[int], maps: Sequence[Array]) -> tuple[int, int]:
    k, inside = len(term.names), [i for i in range(len(home)) if home[i] == j]
    if not inside:
        return k, 0
    if term.diagonal:  # nothing but variances: of single levels, or one for all of them
        return k, min(k, sum(k if np.all(maps[i] == 1.0) else maps[i].shape[1] for i in inside))
    if len(inside) > 1 or null.design.random[inside[0]].diagonal:
        return k, -1
    return k, maps[inside[0]].shape[1]


def _orthonormal(X: Array) -> Array:
    """Orthonormal basis of the column space of X, columns scaled to length one first."""
    length = np.linalg.norm(X, axis=0)
    scaled = X[:, length > 0] / length[length > 0]
    if scaled.shape[1] == 0:
        return np.zeros((len(X), 0))
    U, d, _ = np.linalg.svd(scaled, full_matrices=False)
    return U[:, d > _SPAN_TOLERANCE * d[0]]


def _spans(X: Array, inner: Array) -> bool:
    """Is every column of `inner` a linear combination of the columns of X?"""
    return _within(_orthonormal(X), inner)


def _within(U: Array, inner: Array) -> bool:
    """The same of the columns of an orthonormal basis."""
    residual = inner - U @ (U.T @ inner)
    return bool(np.all(np.linalg.norm(residual, axis=0) <= _SPAN_TOLERANCE * np.linalg.norm(inner, axis=0)))
