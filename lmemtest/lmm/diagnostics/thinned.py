"""The model of a large table, fitted again to whole repetitions at equal steps, for what simulated tables judge.

A shape or a scale is known from 200,000 values far better than a decision needs. Observed and simulated tables are both
of the repetitions that are kept, so a p-value has its level as in any other table of that size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.codes import column_codes
from lmemtest.lmm.diagnostics.left_out import sliced

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit

MOST_CELLS = 200_000  # a hundred simulated tables of this size take about two seconds


def thinned(fit: LmmFit) -> tuple[LmmFit, str]:
    """The model at as many repetitions as make 200,000 cells, and a note that says so.

    The fit itself, and no note, where it has fewer cells, does not know what a repetition is, or would lose more than
    repetitions: a level of another factor, or a coefficient.
    """
    cells, repeat = fit.cells, None if fit.scope is None else fit.scope.repeat
    if len(cells.n) <= MOST_CELLS or repeat is None or repeat not in cells.names:
        return fit, ""
    codes, levels = column_codes(cells.frame[repeat])
    n_kept = len(levels) * MOST_CELLS // len(cells.n)
    if n_kept < 2:
        return fit, ""
    kept = np.zeros(len(levels), dtype=bool)
    kept[np.linspace(0, len(levels) - 1, n_kept).round().astype(int)] = True
    left = kept[codes]
    design = sliced(fit.design, left)
    for before, now, bar in zip(fit.design.random, design.random, fit.design.parsed.bars, strict=True):
        if repeat not in bar.groups and now.n_levels < before.n_levels:
            return fit, ""
    n = cells.n[left]
    part = replace(
        cells,
        columns=cells.frame[left].reset_index(drop=True),
        n=n,
        weight=cells.weight[left],
        mean=cells.mean[left],
        ss=cells.ss[left],
        n_rows=int(n.sum()),
    )
    few = replace(fit, design=design, cells=part).refit(cells=part)
    if few.rank < fit.rank:
        return fit, ""
    return few, (
        f"Shapes and scales are those of {n_kept:,} of {len(levels):,} values of {repeat!r} at equal steps, to which "
        f"the model was fitted again: {part.n_rows:,} of {fit.nobs:,} rows show them well enough."
    )
