"""The rows behind the cells of a fit, in the order of its table: what is computed on cells is asked for by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.codes import group_codes
from lmemtest.core.frames import as_float, as_pandas
from lmemtest.core.validate import as_frame
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.model.fit import LmmFit


_CELLS = "Give the rows, fit.predict(frame), or take the cells: fit.cell_predictions() and fit.cell_residuals()."
# Difference of a cell's mean from that of its rows that is rounding, relative to the largest score.
_ROUNDING = 1e-9


class Rows(NamedTuple):
    """Of each row: its cell, its score as the model sees it, and its label."""

    cell: NDArray[np.intp]
    score: Array
    labels: pd.Index


def rows_of(fit: LmmFit) -> Rows:
    """The rows of the table that a fit was given; refused where they have no order, or are not those of its cells."""
    parsed, cells = fit.design.parsed, fit.cells
    keys = list(dict.fromkeys([*cells.frame.columns, *([fit.weights] if fit.weights is not None else [])]))
    other = f"The table of this fit is not the one that its cells come from: it has changed since. {_CELLS}"
    if fit.data is None:
        raise ArgumentError(f"This fit is one of cells and holds no table whose rows could be listed. {_CELLS}")
    table = as_frame(fit.data)
    if isinstance(table, nw.LazyFrame):
        raise ArgumentError(f"The table of this fit is a query, and its rows have no order of their own. {_CELLS}")
    try:
        native = as_pandas(table.select(*dict.fromkeys([*keys, parsed.response])))
        score = as_float(native[parsed.response])
        cell, _ = group_codes([native[name] for name in keys], len(native))
    except (LmemtestError, KeyError, ValueError, TypeError):
        raise ArgumentError(other) from None
    if not np.array_equal(np.bincount(cell, minlength=len(cells.n)), cells.n):
        raise ArgumentError(other)
    score = score if parsed.response_transform is None else parsed.response_transform(score)
    original = table.to_native()
    return Rows(cell, score, original.index if isinstance(original, pd.DataFrame) else native.index)


def residuals(fit: LmmFit) -> pd.Series:
    """Scores minus predictions by row; refused where the scores of the cells are not those of the rows."""
    rows, cells = rows_of(fit), fit.cells
    means = np.bincount(rows.cell, rows.score) / cells.n
    if not np.all(np.abs(means - cells.mean) <= _ROUNDING * np.abs(rows.score).max(initial=0.0)):
        raise ArgumentError(
            "The scores of this fit are not those of its table: they were simulated, or the table has changed since. "
            "Its residuals are those of cells: fit.cell_residuals()."
        )
    return pd.Series(rows.score - fit.cell_predictions()[rows.cell], index=rows.labels, name="residual")
