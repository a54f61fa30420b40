"""Names and frames -> the arrays that the engine sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lmemtest._validate import as_frame
from lmemtest.data.cells import Cells, column_codes
from lmemtest.engine.blocks import RandomTerm
from lmemtest.formula.design import Design


def strata(cells: Cells, dispersion: str) -> tuple[NDArray[np.intp], pd.Index]:
    """Level of the dispersion column per cell, and the levels in their order."""
    column = cells.frame[dispersion]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        return column.cat.codes.to_numpy(dtype=np.intp), column.cat.categories
    codes, levels = column_codes(column)
    return codes.astype(np.intp), pd.Index(levels)


def engine_terms(design: Design) -> list[RandomTerm]:
    """The random-effects terms as basis and codes."""
    return [
        RandomTerm(basis=t.basis, codes=t.codes, n_levels=len(t.levels), diagonal=t.diagonal) for t in design.random
    ]


def to_pandas(data: Any) -> pd.DataFrame:
    """A dataframe of any library as a pandas one."""
    frame = as_frame(data, argument="frame").lazy().collect()
    return frame.to_pandas()
