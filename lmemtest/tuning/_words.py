"""Sentences and tables that the comparisons of this package share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import written

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest._table import ResultTable
    from lmemtest.tuning.costs import MeanCost

_ROWS = 12  # of a printed curve; to_frame() has all

PAIRED_ADVICE = (
    "Paired design: both searches tried the same configurations. Each band is valid by itself; for how much the two "
    "differ on one configuration, fit the mixed model score ~ algorithm + (1 | configuration), which uses the pairs."
)


def curve_table(title: str, frame: pd.DataFrame, notes: tuple[str, ...]) -> ResultTable:
    """A table of a curve: a dozen of its budgets, evenly on the log scale."""
    from lmemtest._table import ResultTable

    if len(frame) > _ROWS:
        rows = np.unique(np.round(np.geomspace(1, len(frame), _ROWS)).astype(int)) - 1
        everything = in_words_of(python="; to_frame() has all", command_line="")
        notes = (f"{len(rows)} of {len(frame)} budgets{everything}.", *notes)
        frame = frame.iloc[rows]
    formats: dict[str, Any] = {"k": "g", "trials": "g"}
    return ResultTable(title=title, frame=frame, notes=notes, formats=formats)


def cost_notes(names: tuple[str, str], costs: tuple[MeanCost | None, MeanCost | None]) -> tuple[str, ...]:
    """What a trial costs, and how well that is known."""
    notes = []
    for name, cost in zip(names, costs, strict=True):
        if cost is not None:
            low, high = written(cost.low, ".4g"), written(cost.high, ".4g")
            known = f"{100 * cost.level:.4g} % interval {low} to {high}, part of the band"
            notes.append(
                f"Mean cost of a trial of {name}: {written(cost.mean, '.4g')} ({'as given' if cost.known else known})."
            )
    return tuple(notes)
