"""From differences at every budget to stretches: where one algorithm is better, and who can be the best."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.studies.budget.curves import MeanCurves

    Array = NDArray[np.float64]
    Decisions = NDArray[np.int8]


def better_stretches(mean: MeanCurves, decisions: Decisions, differences: Array, half_width: Array) -> pd.DataFrame:
    """Stretches where one algorithm of a pair is better: one row per stretch."""
    names, axis = mean.model.algorithms, mean.axis
    smooth = mean.model.columns is not None
    rows = []
    for i, j in np.argwhere((decisions == 1).any(axis=2)):
        known = np.flatnonzero(np.isfinite(differences[i, j]))
        # Above 0 where the band excludes 0.
        inside = np.abs(differences[i, j]) - half_width[i, j] if smooth else np.full(len(axis), np.nan)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], decisions[i, j] == 1, [0]])))
        for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
            peak = first + int(np.argmax(np.abs(differences[i, j, first : last + 1])))
            start, end = _crossing(inside, axis, first, -1), _crossing(inside, axis, last, 1)
            whole = bool(first == known[0] and last == known[-1])
            rows.append((names[i], names[j], start, end, whole, differences[i, j, peak], mean.budgets[peak]))
    columns = ["better", "worse", "budget_from", "budget_to", "whole_range", "largest", "at"]
    table = pd.DataFrame(rows, columns=columns)
    kinds = dict.fromkeys(("budget_from", "budget_to", "largest", "at"), float) | {"whole_range": bool}
    table = table.astype(kinds)
    return table.assign(**{end: mean.budgets_at(table[end].to_numpy()) for end in ("budget_from", "budget_to")})


def best_stretches(mean: MeanCurves, decisions: Decisions, present: NDArray[np.bool_]) -> pd.DataFrame:
    """Who can be the best from which budget to which: one row per stretch with the same answer."""
    names = np.array(mean.model.algorithms, dtype=object)
    candidate = candidates(decisions, present)
    n = present.sum(axis=0)
    beats_all = present & ((decisions == 1).sum(axis=1) == n - 1) & (n > 1)
    keys = [
        (
            tuple(names[present[:, x]]),
            tuple(names[candidate[:, x]]),
            names[beats_all[:, x]][0] if beats_all[:, x].any() else None,
        )
        for x in range(len(mean.budgets))
    ]
    rows = []
    for key, group in groupby(range(len(keys)), key=keys.__getitem__):
        members = list(group)
        rows.append((mean.budgets[members[0]], mean.budgets[members[-1]], *key))
    return pd.DataFrame(rows, columns=["budget_from", "budget_to", "compared", "candidates", "best"])


def candidates(decisions: Decisions, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``(k, points)``: algorithms that no other is shown to be better than."""
    return np.asarray(present & ~(decisions == -1).any(axis=1))


def _crossing(inside: Array, axis: Array, at: int, step: int) -> float:
    """The place where the band reaches 0 beyond the last point of a stretch, by linear interpolation."""
    beyond = at + step
    if not 0 <= beyond < len(axis) or not np.isfinite(inside[beyond]):
        return float(axis[at])
    share = inside[at] / (inside[at] - min(inside[beyond], 0.0))
    return float(axis[at] + share * (axis[beyond] - axis[at]))
