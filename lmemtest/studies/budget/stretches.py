"""From differences at every budget to stretches: where one algorithm is better, who can be the best, who is not."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._rounding import tie_order
from lmemtest.inference.means.separation import maximal_cliques

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Decisions = NDArray[np.int8]


def decide(t_ratio: Array, critical: Array, direction: str) -> Decisions:
    """Who is better where, from the t ratios of all ordered pairs."""
    sign = -1 if direction == "minimize" else 1
    with np.errstate(invalid="ignore"):
        return (sign * np.sign(t_ratio) * (np.abs(t_ratio) > critical)).astype(np.int8)


def better_stretches(
    decisions: Decisions,
    differences: Array,
    half_width: Array,
    axis: Array,
    names: list[str],
    *,
    smooth: bool,
) -> pd.DataFrame:
    """Stretches where one algorithm of a pair is better: one row per stretch."""
    rows = []
    for i, better in enumerate(names):
        for j, worse in enumerate(names):
            known = np.flatnonzero(np.isfinite(differences[i, j]))
            # Above 0 where the band excludes 0.
            inside = np.abs(differences[i, j]) - half_width[i, j] if smooth else np.full(len(axis), np.nan)
            for first, last in _stretches(decisions[i, j] == 1):
                peak = first + int(np.argmax(np.abs(differences[i, j, first : last + 1])))
                rows.append(
                    {
                        "better": better,
                        "worse": worse,
                        "start": _crossing(inside, axis, first, -1),
                        "end": _crossing(inside, axis, last, 1),
                        "whole": bool(first == known[0] and last == known[-1]),
                        "largest": float(differences[i, j, peak]),
                        "at": peak,
                    }
                )
    return pd.DataFrame(rows, columns=["better", "worse", "start", "end", "whole", "largest", "at"])


def best_stretches(decisions: Decisions, present: NDArray[np.bool_], names: list[str]) -> pd.DataFrame:
    """Who can be the best from which point to which: one row per stretch with the same answer."""
    candidate = candidates(decisions, present)
    keys: list[tuple[tuple[str, ...], tuple[str, ...], str | None]] = []
    for x in range(decisions.shape[2]):
        here = tuple(name for name, one in zip(names, present[:, x], strict=True) if one)
        who = tuple(name for name, one in zip(names, candidate[:, x], strict=True) if one)
        others = present[:, x].sum() - 1
        beats_all = present[:, x] & ((decisions[:, :, x] == 1).sum(axis=1) == others) & (others > 0)
        keys.append((here, who, names[int(np.argmax(beats_all))] if beats_all.any() else None))
    rows = []
    for (here, who, best), group in groupby(range(len(keys)), key=keys.__getitem__):
        members = list(group)
        rows.append({"first": members[0], "last": members[-1], "compared": here, "candidates": who, "best": best})
    return pd.DataFrame(rows, columns=["first", "last", "compared", "candidates", "best"])


def candidates(decisions: Decisions, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``(k, points)``: algorithms that no other is shown to be better than."""
    return np.asarray(present & ~(decisions == -1).any(axis=1))


def groups_at(decisions: Decisions, present: NDArray[np.bool_], point: int) -> tuple[tuple[int, ...], ...]:
    """Maximal groups of algorithms without a difference at one point."""
    here = np.flatnonzero(present[:, point])
    alike = decisions[:, :, point][np.ix_(here, here)] == 0
    return tuple(tuple(int(here[i]) for i in group) for group in maximal_cliques(alike))


def _stretches(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(first), int(last) - 1) for first, last in pairwise(edges.tolist()) if mask[first]]


def _crossing(inside: Array, axis: Array, at: int, step: int) -> float:
    """The place where the band reaches 0 beyond the last point of a stretch, by linear interpolation."""
    beyond = at + step
    if not 0 <= beyond < len(axis) or not np.isfinite(inside[beyond]):
        return float(axis[at])
    share = inside[at] / (inside[at] - min(inside[beyond], 0.0))
    return float(axis[at] + share * (axis[beyond] - axis[at]))


def ordered(means: Array, direction: str) -> list[int]:
    """Positions best first, missing ones last."""
    return tie_order(np.where(np.isfinite(means), means, np.nan), descending=direction == "maximize")
