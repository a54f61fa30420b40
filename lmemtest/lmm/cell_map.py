"""From finer to coarser cells of one table, without its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.lmm.cells import Cells, group_codes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class CellMap:
    """Which cell of a coarser table each cell of a finer one belongs to."""

    codes: NDArray[np.intp]
    coarse: Cells

    @classmethod
    def of(cls, fine: Cells, coarse: Cells) -> CellMap:
        """Match the cells by the columns, and the weights, of the coarser table."""
        import pandas as pd

        columns: list[pd.Series] = [
            pd.concat([coarse.frame[name], fine.frame[name]], ignore_index=True) for name in coarse.frame.columns
        ]
        columns.append(pd.Series(np.concatenate([coarse.weight, fine.weight])))
        n_coarse = len(coarse.n)
        index, keys = group_codes(columns, n_coarse + len(fine.n))
        position = np.full(keys.size, -1, dtype=np.intp)
        position[index[:n_coarse]] = np.arange(n_coarse)
        return cls(codes=position[index[n_coarse:]], coarse=coarse)

    def aggregate(self, fine: Cells) -> Cells:
        """The finer table's means and sums of squares at the coarser cells."""
        k = len(self.coarse.n)
        mean = np.bincount(self.codes, weights=fine.n * fine.mean, minlength=k) / self.coarse.n
        apart = fine.mean - mean[self.codes]
        ss = np.bincount(self.codes, weights=fine.ss + fine.n * apart * apart, minlength=k)
        return replace(self.coarse, mean=mean, ss=ss)


def regroup(cells: Cells, names: Sequence[str]) -> Cells:
    """Cells of some of the columns of `cells`, in sorted order as `compress` has them."""
    import pandas as pd

    columns: list[pd.Series] = [cells.frame[name] for name in names]
    columns.append(pd.Series(cells.weight))
    index, keys = group_codes(columns, len(cells.n))
    n = np.bincount(index, weights=cells.n, minlength=keys.size)
    weight = np.empty(keys.size)
    weight[index] = cells.weight
    first = np.empty(keys.size, dtype=np.intp)
    first[index] = np.arange(len(index))
    frame = cells.frame[list(names)].iloc[first].reset_index(drop=True)
    coarse = Cells(columns=frame, n=n, weight=weight, mean=n, ss=n, n_rows=cells.n_rows)
    return CellMap(codes=index, coarse=coarse).aggregate(cells)
