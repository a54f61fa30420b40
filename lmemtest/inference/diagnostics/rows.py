"""The rows behind the cells of a fit, where they can still be read.

A cell of several rows keeps their mean and sum of squares, which is all that the likelihood needs; whether the rows
themselves are normal it cannot tell. So a check of the residuals goes back to the table of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import as_frame
from lmemtest.data.cells import group_codes
from lmemtest.data.runs import Runs
from lmemtest.errors import LmemtestError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

# 200 simulated tables of this size take about a second.
MOST_ROWS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a check of single scores sees.

    Attributes
    ----------
    cell : (m,) int
        The cell of each value.
    deviation : (m,) float
        Score minus the mean of its cell; zero where the cell itself is the value.
    count : (m,) float
        Rows that a value stands for: 1, or those of its cell.
    hidden : int
        Rows of the table that are only seen through the mean of their cell.
    """

    cell: NDArray[np.intp]
    deviation: Array
    count: Array
    hidden: int

    @property
    def single(self) -> bool:
        """Whether every value is a row."""
        return self.hidden == 0


def sum_by(codes: NDArray[np.intp], values: Array, k: int) -> Array:
    """Sum of the values of each of ``k`` codes."""
    return np.bincount(codes, values, k).astype(np.float64, copy=False)


def rows_of(fit: LmmFit) -> Rows:
    """The rows of a fit, or its cells where the rows are out of reach.

    Rows are out of reach if the fit does not hold its table (draws of a bootstrap), if the table has changed since, or
    if it has more than 200,000 rows.
    """
    n = fit.cells.n
    if (n > 1).any() and fit.data is not None and fit.nobs <= MOST_ROWS:
        found = _from_table(fit)
        if found is not None:
            return found
    several = n > 1
    return Rows(cell=np.arange(len(n)), deviation=np.zeros(len(n)), count=n, hidden=int(n[several].sum()))


def role_of(data: Any, column: str) -> str | None:
    """What a column is in the `Runs` of the fit; None where that is not known."""
    roles = getattr(data, "roles", None)
    if roles is None:
        return None
    for role, value in roles().items():
        if value == column:
            return str(role)
    return "other"


def _from_table(fit: LmmFit) -> Rows | None:
    parsed, cells = fit.design.parsed, fit.cells
    keys = list(cells.frame.columns)
    if fit.weights is not None and fit.weights not in keys:
        keys.append(fit.weights)
    try:
        table = _collected(fit.data, list(dict.fromkeys([*keys, parsed.response])))
        score = table[parsed.response].to_numpy(dtype=float)
        if parsed.response_transform is not None:
            score = parsed.response_transform(score)
        cell, _ = group_codes([table[key] for key in keys], len(table))
    except (LmemtestError, KeyError, ValueError, TypeError, OSError):  # the table is not what it was
        return None
    if len(score) != fit.nobs or not np.array_equal(np.bincount(cell, minlength=len(cells.n)), cells.n):
        return None
    deviation = score - cells.mean[cell]
    again = sum_by(cell, deviation**2, len(cells.n))
    spread = cells.ss.sum() + 1e-12 * float(cells.n @ cells.mean**2)
    if not np.allclose(again, cells.ss, rtol=1e-6, atol=1e-9 * spread):
        return None
    return Rows(cell=cell, deviation=deviation, count=np.ones(len(cell)), hidden=0)


def _collected(data: Any, columns: list[str]) -> pd.DataFrame:
    if isinstance(data, Runs) and set(columns) <= {*data.study.columns, data.score}:
        return data.study.rows([name for name in columns if name != data.score])
    return as_frame(data).lazy().select(*columns).collect().to_pandas()
