"""Sentences and tables that the results of this package share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest.words import percent

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.tuning.costs import MeanCost

_ROWS = 12  # of a printed curve; to_frame() has all

PAIRED_ADVICE = (
    "Paired design: both searches tried the same configurations. Each band is valid by itself; for how much the two "
    "differ on one configuration, fit the mixed model score ~ algorithm + (1 | configuration), which uses the pairs."
)


def thinned(frame: pd.DataFrame) -> pd.DataFrame:
    """At most a dozen rows of a curve, evenly on the log scale."""
    if len(frame) <= _ROWS:
        return frame
    return frame.iloc[np.unique(np.round(np.geomspace(1, len(frame), _ROWS)).astype(int)) - 1]


def thinned_fact(count: int) -> tuple[str, ...]:
    """How many of the budgets are shown, unless all are."""
    if count <= _ROWS:
        return ()
    rows = len(np.unique(np.round(np.geomspace(1, count, _ROWS)).astype(int)))
    return (f"{rows} of {count} budgets{in_words_of(python='; to_frame() has all', command_line='')}.",)


def span(low: float, high: float, spec: str = ".4g") -> str:
    """A range of numbers, or the one number that it is."""
    return written(low, spec) if low == high else f"{written(low, spec)} to {written(high, spec)}"


def cost_facts(names: tuple[str, str], costs: tuple[MeanCost | None, MeanCost | None]) -> tuple[str, ...]:
    """What a trial costs, and how well that is known."""
    facts = []
    for name, cost in zip(names, costs, strict=True):
        if cost is not None:
            known = f"{percent(cost.level)} interval {span(cost.ci_low, cost.ci_high)}, part of the band"
            facts.append(
                f"Mean cost of a trial of {name}: {written(cost.mean, '.4g')} ({'as given' if cost.known else known})."
            )
    return tuple(facts)
