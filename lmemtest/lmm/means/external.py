"""Means and decisions that another program made, checked: what `Decisions.of` takes.

Nothing is tested here. Labels become text, as everywhere; a matrix is brought into the order of the means.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array


_ROUNDING = 1e-9  # by which two numbers for one pair, or a p-value and 1, may differ
_PARTS = ("mean", "se", "ci_low", "ci_high")


def external_means(means: Any) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Levels and numbers of a mapping or Series, or of a frame with columns mean, se, ci_low, ci_high or one column.

    The numbers are "mean", "se" and, where there are intervals, their ends; NaN where something is not known.
    """
    import pandas as pd

    if isinstance(means, Mapping):
        means = pd.Series(dict(means), dtype=object)
    if isinstance(means, pd.Series):
        means = means.to_frame("mean")
    if not isinstance(means, pd.DataFrame):
        raise ArgumentError(
            "means must be a dict or pandas.Series of a mean by name, or a pandas.DataFrame with the names as index "
            f"and the columns mean, se, ci_low, ci_high (all but the first optional), got {type(means).__name__}."
        )
    if "mean" not in means.columns and means.shape[1] == 1:
        means = means.set_axis(["mean"], axis=1)
    if "mean" not in means.columns:
        raise ArgumentError(
            f"means has no column 'mean'. Columns: {listed(means.columns) or 'none'}. Rename the column of the means, "
            "or pass it alone: means['...']."
        )
    levels = _labels(means.index, "means")
    if len(levels) < 2:
        raise ArgumentError(f"means must have two or more names, got {len(levels)}.")
    of_parts = {part: _numbers(means[part], f"means[{part!r}]") for part in _PARTS if part in means.columns}
    mean, unknown = of_parts["mean"], np.full(len(levels), np.nan)
    if not np.isfinite(mean).any():
        raise DataError("means has no mean at all: every value is missing.")
    low, high = of_parts.get("ci_low"), of_parts.get("ci_high")
    if (low is None) != (high is None):
        raise ArgumentError("means has one end of the intervals only. Give both columns, ci_low and ci_high, or none.")
    if low is not None and high is not None:
        outside = np.flatnonzero((low > mean) | (mean > high))
        if len(outside):
            at = outside[0]
            raise DataError(
                f"means: the interval of {levels[at]}, {low[at]:g} to {high[at]:g}, does not hold its mean, "
                f"{mean[at]:g}."
            )
    if (of_parts.get("se", unknown) < 0).any():
        raise DataError("means['se'] must not be negative.")
    return levels, {"se": unknown, **of_parts}


def external_decisions(decisions: Any, levels: tuple[str, ...]) -> tuple[Array, bool]:
    """A symmetric matrix in the order of `levels`, NaN where nothing is known, and whether it holds p-values.

    Otherwise it holds decisions: 1 for significant, 0 for not significant.
    """
    inside = _arranged(decisions, levels, "decisions")
    apart = ~np.eye(len(levels), dtype=bool)
    values = inside.to_numpy(dtype=object)
    decided = apart & ~inside.isna().to_numpy()
    kinds = {_kind(value) for value in values[decided]}
    if not kinds <= {"boolean"} and not kinds <= {"number", "whole"}:
        odd = next(value for value in values[decided] if _kind(value) not in ("number", "whole"))
        raise ArgumentError(f"decisions must hold either p-values or booleans, got {odd!r} among them.")
    matrix = np.full(values.shape, np.nan)
    matrix[decided] = values[decided].astype(float)
    has_p = kinds != {"boolean"}
    if has_p:
        _check_p(matrix, kinds, levels)
    other = matrix.T
    off = np.argwhere(np.abs(matrix - other) > _ROUNDING)
    if len(off):
        i, j = off[0]
        first, second = (value if has_p else bool(value) for value in (matrix[i, j], matrix[j, i]))
        raise DataError(
            f"decisions must be symmetric: {levels[i]} against {levels[j]} has {first}, {levels[j]} against "
            f"{levels[i]} has {second}. Leave one triangle missing (NaN) if only the other one holds tests."
        )
    matrix = np.where(np.isnan(matrix), other, matrix)
    upper = np.triu(matrix, 1)  # what is left of rounding must not decide by the order of two names
    return np.where(apart, upper + upper.T, np.nan), has_p


def external_counts(counts: Any, levels: tuple[str, ...], name: str) -> Array:
    """Counts of the row against the column in the order of `levels`; the diagonal is ignored."""
    inside = _arranged(counts, levels, name)
    apart = ~np.eye(len(levels), dtype=bool)
    values = inside.to_numpy(dtype=object)
    if any(_kind(value) not in ("number", "whole") for value in values[apart]):
        raise ArgumentError(f"{name} must hold a count for every pair.")
    out = np.full(values.shape, np.nan)
    out[apart] = values[apart].astype(float)
    if not (np.isfinite(out[apart]) & (out[apart] >= 0)).all():
        raise DataError(f"{name} must hold counts of at least 0.")
    return out


def check_critical_difference(value: Any) -> tuple[float, float]:
    """The smallest and the largest critical difference from one number, two, or None: then both are NaN."""
    if value is None:
        return math.nan, math.nan
    both = (value, value) if _kind(value) in ("number", "whole") else value
    try:
        low, high = map(float, both)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0.0 < low <= high < math.inf:
        raise ArgumentError(
            "critical_difference must be a positive number, the smallest and the largest of several as (min, max), or "
            f"None, got {value!r}."
        )
    return low, high


def check_omnibus(p: Any, alpha: float) -> float | None:
    """A p-value of all levels together, which needs a level to be judged by."""
    if p is None:
        return None
    if _kind(p) not in ("number", "whole") or not 0.0 <= float(p) <= 1.0:
        raise ArgumentError(f"omnibus_p must be a p-value between 0 and 1, or None, got {p!r}.")
    if math.isnan(alpha):
        raise ArgumentError("omnibus_p is judged by the level of the decisions: give alpha, too.")
    return float(p)


def _arranged(matrix: Any, levels: tuple[str, ...], name: str) -> pd.DataFrame:
    """A square frame or array in the order of `levels`."""
    import pandas as pd

    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:
        if matrix.shape != (len(levels),) * 2:
            raise ArgumentError(
                f"{name} must have a row and a column for each of the {len(levels)} means, got {matrix.shape}."
            )
        matrix = pd.DataFrame(matrix, index=list(levels), columns=list(levels))
    if not isinstance(matrix, pd.DataFrame):
        raise ArgumentError(
            f"{name} must be a square pandas.DataFrame with the names of the means as index and columns, got "
            f"{type(matrix).__name__}."
        )
    places = []
    for side, axis in (("index", matrix.index), ("columns", matrix.columns)):
        labels = _labels(axis, f"{name}.{side}")
        lacking = [repr(label) for label in levels if label not in labels]
        unknown = [repr(label) for label in labels if label not in levels]
        if lacking or unknown:
            mismatches = {"it lacks": lacking, "the means lack": unknown}
            mismatch = "; ".join(f"{what} {listed(names, 5)}" for what, names in mismatches.items() if names)
            raise ArgumentError(f"{name}.{side} must hold the names of the means: {mismatch}.")
        places.append([labels.index(level) for level in levels])
    return matrix.iloc[places[0], places[1]]


def _labels(index: pd.Index, name: str) -> tuple[str, ...]:
    labels = tuple(format_level(value) for value in index)
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise DataError(
            f"{name} has more than one {listed(map(repr, twice))}; every name must occur once. Rename them."
        )
    return labels


def _numbers(column: Any, name: str) -> Array:
    kinds = {_kind(value) for value in column.to_numpy(dtype=object)[column.notna().to_numpy()]}
    if not kinds <= {"number", "whole"}:
        raise DataError(f"{name} must hold numbers, got {column.dtype}.")
    values = column.astype(object).where(column.notna(), np.nan).to_numpy(dtype=float)
    if np.isinf(values).any():
        raise DataError(f"{name} must be finite or missing, got infinity.")
    return np.asarray(values)


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, numbers.Integral):
        return "whole"
    return "number" if isinstance(value, numbers.Real) else "other"


def _check_p(p: Array, kinds: set[str], levels: tuple[str, ...]) -> None:
    """Refuse what is no p-value, and flags that are written as 0 and 1, whose sense is unknown."""
    outside = np.argwhere((p < -_ROUNDING) | (p > 1.0 + _ROUNDING))
    if len(outside):
        i, j = outside[0]
        raise DataError(
            f"decisions must hold p-values between 0 and 1, got {p[i, j]:g} for {levels[i]} against {levels[j]}."
        )
    finite = p[~np.isnan(p)]
    if len(finite) and (kinds == {"whole"} or set(finite.tolist()) == {0.0, 1.0}):
        raise ArgumentError(
            "decisions holds only 0 and 1, which may be p-values or flags. Write flags as booleans, True where a "
            "difference is significant: decisions == 1."
        )
