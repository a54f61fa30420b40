"""Runs with the scores of another run, and algorithms that are one under two names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lmemtest._levels import in_order
from lmemtest.data.findings import Finding
from lmemtest.data.score_kind import ScoreKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.points import Points

__all__ = ["FEWEST", "LONG", "SHARE", "SHARE_LONG", "copied_algorithms", "curves_of", "said_of_algorithms", "same_runs"]

# Curves with fewer different scores are copies where half of them agree.
LONG = 3
# Single scores may tie: they count as copies only if nearly all do, and not all at one value.
SHARE, FEWEST = 0.9, 5
SHARE_LONG = 0.5
# Scores that are equal by nature: algorithms are copies if all runs agree, and runs shuffled among those on which the
# other algorithms did about as well would do so with less than this probability, for all pairs together.
_CHANCE, _CLASSES = 1e-4, 10


def copied_algorithms(points: Points, kind: ScoreKind) -> list[Finding]:
    """Pairs of algorithms with the same runs, as findings."""
    if pd.Index(points.mean[np.flatnonzero(np.diff(points.run, prepend=-1))]).is_unique:
        return []  # no two runs begin with one score
    return [said_of_algorithms(*row[1:3], *row[4:6]) for row in same_runs(curves_of(points), "algorithm", kind)]


def said_of_algorithms(left: Any, right: Any, n: int, equal: int) -> Finding:
    """The finding that two algorithms have the same runs."""
    return Finding(
        severity="warning",
        kind="copied_algorithms",
        message=f"{str(right)!r} has the same scores as {str(left)!r} in {equal:,} of {n:,} runs.",
        advice="Check that each was run with its own code and that no file was read twice; keep one of them.",
        count=equal,
    )


def curves_of(points: Points) -> pd.DataFrame:
    """One row per run with finite scores: roles, the code of its curve, how many different scores, and their total."""
    starts = np.flatnonzero(np.diff(points.run, prepend=-1))
    size = np.diff(starts, append=len(points.run))
    level, values = pd.factorize(points.mean, sort=True)  # equal curves have equal codes; NaN is -1
    steps = (level.astype(np.int64) * len(points.budgets) + points.budget).tobytes()
    ends = (8 * (starts + size)).tolist()
    keys = np.empty(len(starts), dtype=object)
    keys[:] = [steps[start:end] for start, end in zip((8 * starts).tolist(), ends, strict=True)]
    which = np.repeat(np.arange(len(starts)), size)
    different = pd.unique(which * np.int64(len(values) + 1) + level + 1) // (len(values) + 1)
    instance = points.instance[starts]
    frame = pd.DataFrame(
        {
            "instance": instance,
            "benchmark": _taken(points.benchmarks, points.benchmark_of[instance]),
            "seed": points.seed[starts],
            "algorithm": _taken(points.algorithms, points.algorithm[starts]),
            "curve": pd.factorize(keys)[0],
            "distinct": np.bincount(different, minlength=len(starts)),
            "total": np.add.reduceat(level, starts),
        }
    )
    return frame[np.logical_and.reduceat(points.valid == points.n, starts)]


def _taken(levels: Any, codes: NDArray[np.int64]) -> Any:
    return pd.Series(levels, dtype=object).to_numpy()[codes]


def same_runs(curves: pd.DataFrame, role: str, kind: ScoreKind) -> list[list[Any]]:
    """Pairs of algorithms on the same instance, or pairs of benchmarks for the same algorithm, with the same runs.

    Parameters
    ----------
    curves : pandas.DataFrame
        Of `curves_of`.
    role : {"algorithm", "benchmark"}
    kind : ScoreKind

    Returns
    -------
    list
        By pair: the role, the two levels, None, the runs that could agree, those that do, and their share.
    """
    place = ["instance"] if role == "algorithm" else ["metafeature", "algorithm"]
    levels = in_order(curves[role].unique())
    rows: list[list[Any]] = []
    if len(levels) < 2:
        return rows
    key = curves.groupby([*place, "curve"], dropna=False, sort=False).ngroup().to_numpy()
    of_level = pd.Index(levels, dtype=object).get_indexer(curves[role])
    occurs = pd.unique(key * np.int64(len(levels)) + of_level) // len(levels)
    shared = (np.bincount(occurs, minlength=len(key)) > 1)[key]
    if not shared.any():  # as with all continuous scores
        return rows
    long = (curves["distinct"] >= LONG).to_numpy()
    counts, counts_long = (_counts(key, of_level, used, len(levels)) for used in (shared, shared & long))
    total, total_long = (np.bincount(at, minlength=len(levels)) for at in (of_level, of_level[long]))
    slot = curves.groupby([*place, "seed"], dropna=False, sort=False).ngroup().to_numpy()
    curve_of = np.full((len(levels), slot.max() + 1), -1)
    curve_of[of_level, slot] = curves["curve"]
    sums = np.zeros_like(curve_of)
    sums[of_level, slot] = curves["total"]
    everything = sums.sum(axis=0)
    n_pairs = len(levels) * (len(levels) - 1) / 2
    fewest = np.log(n_pairs / _CHANCE)  # of the logarithm of all arrangements of the runs, at best
    for i in range(len(levels) - 1):
        both = (curve_of[i] >= 0) & (curve_of[i + 1 :] >= 0)
        same = both & (curve_of[i] == curve_of[i + 1 :])
        ns, equals = both.sum(axis=1), same.sum(axis=1)
        most = np.minimum(total_long[i], total_long[i + 1 :])
        alike = (most > 0) & (_overlap(counts_long[i], counts_long[i + 1 :]) >= SHARE_LONG * most)
        for k in np.flatnonzero((equals > 0) & (equals >= SHARE * ns) | alike).tolist():
            j, n, equal = i + 1 + k, int(ns[k]), int(equals[k])
            if kind.equal_by_nature:
                if equal < n or gammaln(n + 1.0) <= fewest:
                    continue
                others = everything - sums[i] - sums[j] if kind.kind != "ranks" else np.zeros_like(everything)
                copied = n_pairs * _chance(curve_of[i][both[k]], others[both[k]]) < _CHANCE
            elif alike[k]:
                n, equal = int(min(total[i], total[j])), int(_overlap(counts[i], counts[j]))
                copied = True
            else:
                copied = len(np.unique(curve_of[i][same[k]])) >= FEWEST
            if copied:
                rows.append([role, levels[i], levels[j], None, n, equal, equal / n])
    return rows


def _counts(
    key: NDArray[np.int64], level: NDArray[np.intp], used: NDArray[np.bool_], n_levels: int
) -> NDArray[np.int64]:
    """By level, how often each curve occurs at each place; whatever the seed."""
    codes, keys = pd.factorize(key[used])
    out = np.zeros((n_levels, len(keys)), dtype=np.int64)
    np.add.at(out, (level[used], codes), 1)
    return out


def _overlap(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Runs of one that have a partner among those of the other, by their counts."""
    return np.asarray(np.minimum(left, right).sum(axis=-1))


def _chance(curve: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """The probability that runs agree everywhere if shuffled among places where the others did about as well."""
    values, where = np.unique(others, return_inverse=True)
    where = where * _CLASSES // len(values) if len(values) > _CLASSES else where
    _, cells = np.unique(np.stack([where, curve]), axis=1, return_counts=True)
    return float(np.exp(gammaln(cells + 1.0).sum() - gammaln(np.bincount(where) + 1.0).sum()))
