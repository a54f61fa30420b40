"""Runs that occur twice: under two seeds, two algorithms, two benchmarks, or two levels of a metafeature.

Copied rows look like agreement. Two seeds with one curve mean that the seed was not used (or that a file was read
twice); two algorithms with one curve mean that one of them was never run.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lmemtest._levels import in_order
from lmemtest._result import Result, result
from lmemtest.data.points import Points, starts_of
from lmemtest.data.runs import require_runs
from lmemtest.data.score_kind import ScoreKind, score_kind
from lmemtest.data.study import labels
from lmemtest.studies.checks.findings import Finding
from lmemtest.words import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

# On tables of precomputed scores honest runs with up to 5 different scores coincide now and then (1 % of the runs of
# the bundled data), with 6 or more none did: one such run is a copy.
_CERTAIN = 6
# Curves with fewer different scores are copies where half of them agree.
LONG = 3
# Single scores may tie: they count as copies only if nearly all do, and not all at one value.
SHARE, FEWEST = 0.9, 5
SHARE_LONG = 0.5
# Scores that are equal by nature: algorithms are copies if all runs agree, and runs shuffled among those on which the
# other algorithms did about as well would do so with less than this probability, for all pairs together.
_CHANCE, _CLASSES = 1e-4, 10
_COLUMNS = ["kind", "left", "right", "algorithm", "runs", "equal", "share"]


@result
class CopiedRuns(Result):
    """Runs with equal scores at all budgets.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per finding: ``kind`` ("seed", "algorithm", "benchmark", "metafeature"), ``left``, ``right`` (what has
        the same runs; for "seed" the benchmark and None), ``algorithm`` (None for all), ``runs`` (compared),
        ``equal``, ``share``.
    findings : tuple of Finding
        The same in words, with advice.
    n_runs : int
    judged : bool
        Whether the runs are enough, or long enough, for a copy to be distinguished from a tie.
    """

    table: pd.DataFrame
    findings: tuple[Finding, ...]
    n_runs: int
    judged: bool = True

    def sentences(self) -> tuple[str, ...]:
        """What was found."""
        if not self.judged:
            return (
                f"Copies cannot be distinguished from ties: the {self.n_runs:,} runs have fewer than {LONG} "
                "different scores "
                f"each, and no two algorithms or benchmarks have {FEWEST} to compare.",
            )
        found = tuple(finding.message for finding in self.findings)
        return found or (f"None of {self.n_runs:,} runs is a copy of another.",)

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Copied runs"

    @property
    def facts(self) -> tuple[str, ...]:
        """When a run is a copy."""
        return (
            f"A run is copied if its scores at all budgets are equal to another's: seeds with {_CERTAIN} or more "
            f"different scores; else, and for algorithms and benchmarks, {LONG} or more if {100 * SHARE_LONG:g} % of "
            f"the runs agree, fewer if {100 * SHARE:g} % of those with the same seed do. Where scores are equal by "
            "nature (two values, ranks, counts), algorithms and benchmarks must agree in all runs, beyond chance.",
        )


def copied_runs(runs: Runs) -> CopiedRuns:
    """Find runs whose scores are those of another run; with budgets a run is its whole curve.

    Compared are: seeds of one algorithm on one instance; algorithms on one instance; benchmarks at one combination of
    metafeatures, by algorithm; and levels of metafeatures on one benchmark, by algorithm. The last is no error where
    the algorithm ignores the metafeature, but its rows are then one set of runs, used twice. Nothing is tested: the
    rules are such that continuous scores never agree, and honest runs on tables of precomputed scores, which do
    coincide now and then, stay below them. Where scores are equal by nature (two values, ranks, counts), algorithms
    and benchmarks are copies only if all of their runs agree, and runs shuffled among those on which the others did
    about as well would hardly ever do so.

    Examples
    --------
    >>> from lmemtest.data.runs import Runs
    >>> table = {"tool": ["HB"] * 3 + ["RS"] * 3, "budget": [1, 2, 3] * 2, "seed": [0] * 6,
    ...          "loss": [0.5, 0.41, 0.3] * 2}
    >>> copied_runs(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                  budget="budget")).sentences()
    ("'RS' has the same scores as 'HB' in 1 of 1 runs.",)
    """
    require_runs(runs)
    points = runs.study.points
    curves, kind = curves_of(points), score_kind(points)
    if conditions := _conditions(runs):
        levels = labels(runs.study.distinct(runs.instance), conditions)
        curves["metafeature"] = levels[curves["instance"].to_numpy()]
    else:
        curves["metafeature"] = None
    algorithms, benchmarks = same_runs(curves, "algorithm", kind), same_runs(curves, "benchmark", kind)
    rows = [*_same_seeds(curves), *algorithms, *benchmarks, *_same_levels(curves)]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return CopiedRuns(
        table=table,
        findings=tuple(_finding(row, runs) for row in table.to_dict("records")),
        n_runs=len(curves),
        judged=_enough(curves),
    )


def _conditions(runs: Runs) -> tuple[str, ...]:
    """What tells the instances of a benchmark apart: families that it is in several of, and metafeatures."""
    return tuple(name for name in runs.instance if name != runs.benchmark)


def curves_of(points: Points) -> pd.DataFrame:
    """One row per run with finite scores: roles, the code of its curve, how many different scores, and their total."""
    starts, size = starts_of(points.run)
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


def _same_seeds(curves: pd.DataFrame) -> list[list[Any]]:
    rows = []
    curves = curves.assign(repeated=curves.duplicated(["instance", "algorithm", "curve"]))
    groups = curves.groupby(["benchmark", "algorithm"], dropna=False, sort=False)
    for (benchmark, algorithm), part in curves[groups["repeated"].transform("any")].groupby(
        ["benchmark", "algorithm"], dropna=False, sort=False
    ):
        repeated = part["repeated"]
        equal = int((repeated & (part["distinct"] >= LONG)).sum())
        if equal < SHARE_LONG * len(part):
            equal = int((repeated & (part["distinct"] >= _CERTAIN)).sum())
        if equal:
            rows.append(["seed", benchmark, None, algorithm, len(part), equal, equal / len(part)])
    return rows


def _enough(curves: pd.DataFrame) -> bool:
    """Whether the rules could find a copy."""
    if (curves["distinct"] >= LONG).any():
        return True
    places = {"algorithm": ["instance", "seed"], "benchmark": ["metafeature", "algorithm", "seed"]}
    return any(
        curves[kind].nunique(dropna=False) > 1 and len(curves[place].drop_duplicates()) >= FEWEST
        for kind, place in places.items()
    )


def _same_levels(curves: pd.DataFrame) -> list[list[Any]]:
    """Levels of the metafeatures at which an algorithm has the same runs."""
    rows: list[list[Any]] = []
    if curves["metafeature"].isna().all():
        return rows
    for algorithm, part in curves.groupby("algorithm", sort=False):
        wide = part.set_index(["benchmark", "seed", "metafeature"])["curve"].unstack("metafeature")
        for left, right in combinations(in_order(wide.columns), 2):
            both = wide[[left, right]].dropna()
            same = both[left] == both[right]
            if both[left][same].nunique() >= FEWEST and same.mean() >= SHARE_LONG:
                rows.append(["metafeature", left, right, algorithm, len(both), int(same.sum()), float(same.mean())])
    return rows


def _finding(row: dict[Any, Any], runs: Runs) -> Finding:
    kind, equal, n = row["kind"], int(row["equal"]), int(row["runs"])
    algorithm, place, severity = row["algorithm"], {}, "warning"
    left, right = (f"{format_level(row[end])!r}" for end in ("left", "right"))
    if kind == "seed":
        where = "" if row["left"] is None else f" on {left}"
        message = f"{equal:,} of {n:,} runs of {str(algorithm)!r}{where} are copies of a run with another seed."
        advice = "Check that the seed is used and that no file was read twice; drop the copies."
        place = {"benchmark": row["left"], "algorithm": algorithm}
    elif kind == "metafeature":
        message = (
            f"{str(algorithm)!r} has the same runs at {left} and {right} of {' x '.join(_conditions(runs))} "
            f"({equal:,} of {n:,})."
        )
        advice = "Fine if it ignores that setting; its rows are then one set of runs, used twice, and add no evidence."
        place, severity = {"algorithm": algorithm}, "note"
    elif kind == "algorithm":
        message = f"{str(row['right'])!r} has the same scores as {str(row['left'])!r} in {equal:,} of {n:,} runs."
        advice = "Check that each was run with its own code and that no file was read twice; keep one of them."
    else:
        message = f"{right} has the same scores as {left} in {equal:,} of {n:,} runs."
        advice = "These are one benchmark under two names. Keep only one: the other adds no evidence."
        place = {"benchmark": row["right"]}
    name = {"metafeature": "copied_levels"}.get(kind, f"copied_{kind}s")
    return Finding(severity=severity, kind=name, message=message, advice=advice, count=equal, **place)
