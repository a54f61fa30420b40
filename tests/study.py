"""Tables of runs for tests: `from study import make_study`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd


def make_study(
    rng: np.random.Generator,
    counts: Mapping[str, int],
    sds: Mapping[str, float] | None = None,
    *,
    noise: float = 1.0,
    score: str = "loss",
) -> pd.DataFrame:
    """One row per combination of the factors in `counts`, first factor slowest; levels are integers.

    The score is the sum of one normal effect per level of each group in `sds` ("benchmark:algorithm"), drawn in their
    order, and of normal noise per row.
    """
    rows = itertools.product(*map(range, counts.values()))
    table = pd.DataFrame(list(rows), columns=list(counts))
    total = np.zeros(len(table))
    for group, sd in (sds or {}).items():
        factors = group.split(":")
        effects = sd * rng.normal(size=[counts[factor] for factor in factors])
        total = total + effects[tuple(table[factor].to_numpy() for factor in factors)]
    return table.assign(**{score: total + noise * rng.normal(size=len(table))})
