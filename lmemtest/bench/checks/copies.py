"""Runs that occur twice: under two seeds, two algorithms, two benchmarks, or two levels of a metafeature.

Copied rows look like agreement. Two seeds with one curve mean that the seed was not used (or that a file was read
twice); two algorithms with one curve mean that one of them was never run.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import gammaln

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.bench.checks.subject import Subject, outcome
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.scales import ScoreKind
from lmemtest.bench.data.study import Study, labels
from lmemtest.core.codes import in_order
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Index, Mask

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
_PAIRS_AT_ONCE = 2_000_000
_COLUMNS = ["kind", "left", "right", "algorithm", "runs", "equal", "share"]


@guided
def copied_runs(runs: Runs) -> Answer:
    """Find runs whose scores are those of another run; with budgets a run is its whole curve.

    Compared are: seeds of one algorithm on one instance; algorithms on one instance; benchmarks at one combination of
    metafeatures, by algorithm; and levels of metafeatures on one benchmark, by algorithm. The last is no error where
    the algorithm ignores the metafeature, but its rows are then one set of runs, used twice. Nothing is tested: the
    rules are such that continuous scores never agree, and honest runs on tables of precomputed scores, which do
    coincide now and then, stay below them. Where scores are equal by nature (two values, ranks, counts), algorithms
    and benchmarks are copies only if all of their runs agree, and runs shuffled among those on which the others did
    about as well would hardly ever do so.

    Returns
    -------
    Answer
        ``table``, one row per finding: ``kind`` ("seed", "algorithm", "benchmark", "metafeature"), ``left``, ``right``
        (what has the same runs; for "seed" the benchmark and None), ``algorithm`` (None for all), ``runs`` (compared),
        ``equal``, ``share``. ``n_runs``; ``judged``, whether the runs are enough, or long enough, for a copy to be
        distinguished from a tie.

    Examples
    --------
    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["HB"] * 3 + ["RS"] * 3, "budget": [1, 2, 3] * 2, "seed": [0] * 6,
    ...          "loss": [0.5, 0.41, 0.3] * 2}
    >>> copied_runs(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                  budget="budget")).sentences()
    ("'RS' has the same scores as 'HB' in 1 of 1 runs.",)
    """
    require_runs(runs)
    return copies_of(runs)


def copies_of(runs: Runs) -> Answer:
    """`copied_runs` of what is known to be runs."""
    study = runs.study.detailed
    curves, kind = curves_of(study), study.kind
    if conditions := _conditions(runs):
        levels = labels(runs.study.distinct(runs.instance), conditions)
        curves["metafeature"] = levels[curves["instance"].to_numpy()]
    else:
        curves["metafeature"] = None
    algorithms, benchmarks = same_runs(curves, "algorithm", kind), same_runs(curves, "benchmark", kind)
    rows = [*_same_seeds(curves), *algorithms, *benchmarks, *_same_levels(curves)]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    judged, n_runs = _enough(curves), len(curves)
    if judged:
        found = tuple(finding.message for finding in copy_findings(table, runs))
        found = found or (f"None of {n_runs:,} runs is a copy of another.",)
    else:
        found = (
            f"Copies cannot be distinguished from ties: the {n_runs:,} runs have fewer than {LONG} different scores "
            f"each, and no two algorithms or benchmarks have {FEWEST} to compare.",
        )
    return Answer(
        question="copied_runs",
        title="Copied runs",
        tables={"table": table},
        values={"n_runs": n_runs, "judged": judged},
        facts=(
            f"A run is copied if its scores at all budgets are equal to another's: seeds with {_CERTAIN} or more "
            f"different scores; else, and for algorithms and benchmarks, {LONG} or more if {100 * SHARE_LONG:g} % of "
            f"the runs agree, fewer if {100 * SHARE:g} % of those with the same seed do. Where scores are equal by "
            "nature (two values, ranks, counts), algorithms and benchmarks must agree in all runs, beyond chance.",
        ),
        findings=found,
    )


def _conditions(runs: Runs) -> tuple[str, ...]:
    """What tells the instances of a benchmark apart: families that it is in several of, and metafeatures."""
    return tuple(name for name in runs.instance if name != runs.benchmark)


def curves_of(study: Study) -> pd.DataFrame:
    """One row per run with finite scores: roles, the code of its curve, how many different scores, and their total."""
    points = study.points
    starts, size = study.run_starts
    level, values = pd.factorize(points.mean, sort=True)  # equal curves have equal codes; NaN is -1
    keys = level.astype(np.int64) * len(study.names("budget")) + study.code("budget")
    if len(starts) < len(keys):
        steps, ends = keys.tobytes(), (8 * (starts + size)).tolist()
        keys = np.empty(len(starts), dtype=object)
        keys[:] = [steps[start:end] for start, end in zip((8 * starts).tolist(), ends, strict=True)]
    which = np.repeat(np.arange(len(starts)), size)
    different = pd.unique(which * np.int64(len(values) + 1) + level + 1) // (len(values) + 1)
    instance = study.code("instance")[starts]
    frame = pd.DataFrame(
        {
            "instance": instance,
            "benchmark": _taken(study.names("benchmark"), study.benchmark_of[instance]),
            "seed": study.code("seed")[starts],
            "algorithm": _taken(study.names("algorithm"), study.code("algorithm")[starts]),
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
    if len(levels) < 2:
        return []
    level = pd.Index(levels, dtype=object).get_indexer(curves[role])
    slot = curves.groupby([*place, "seed"], dropna=False, sort=False).ngroup().to_numpy()
    curve, total = curves["curve"].to_numpy(), curves["total"].to_numpy()
    if kind.equal_by_nature:
        pairs = _same_by_nature(level, slot, curve, np.zeros_like(total) if kind.kind == "ranks" else total)
    else:
        pairs = {(i, j): (n, equal) for i, j, n, equal in _same_by_seed(level, slot, curve, SHARE)}
        where = curves.groupby([*place, "curve"], dropna=False, sort=False).ngroup().to_numpy()
        pairs |= _same_whatever_the_seed(level, where, (curves["distinct"] >= LONG).to_numpy())
    return [[role, levels[i], levels[j], None, *pairs[i, j], pairs[i, j][1] / pairs[i, j][0]] for i, j in sorted(pairs)]


def _same_by_seed(
    level: Index, slot: NDArray[np.int64], curve: NDArray[np.int64], share: float
) -> Iterator[tuple[int, int, int, int]]:
    """Pairs of levels with one curve in at least `share` of the slots of both, but not always the same: n and equal."""
    key = pd.factorize(slot * np.int64(curve.max(initial=0) + 1) + curve)[0]
    several = (np.bincount(key, minlength=1) > 1)[key]
    different = pd.unique(level[several] * np.int64(curve.max(initial=0) + 1) + curve[several])
    rich = np.bincount(different // (curve.max(initial=0) + 1), minlength=level.max(initial=0) + 1) >= FEWEST
    several &= rich[level]  # two values cannot show a copy, however often they tie
    equal_of, slots_of = _incidence(level[several], key[several], len(rich)), _incidence(level, slot, len(rich))
    curve_of = np.zeros(equal_of.shape[1], dtype=np.int64)
    curve_of[key[several]] = curve[several]
    for left, right, equal in _sharing(equal_of, FEWEST):
        n = np.bincount(_common(slots_of, left, right)[0], minlength=len(left))
        kept = np.flatnonzero(equal >= share * n)
        pair, keys = _common(equal_of, left[kept], right[kept])
        values = pd.unique(pair * np.int64(curve.max() + 1) + curve_of[keys]) // (curve.max() + 1)
        for k in kept[np.bincount(values, minlength=len(kept)) >= FEWEST].tolist():
            yield int(left[k]), int(right[k]), int(n[k]), int(equal[k])


def _same_whatever_the_seed(
    level: Index, where: NDArray[np.int64], long: Mask
) -> dict[tuple[int, int], tuple[int, int]]:
    """Pairs of levels of which the one with fewer long curves has half of them in common with the other."""
    which = pd.DataFrame({"level": level, "where": where}).groupby(["level", "where"], sort=False).cumcount()
    key = pd.factorize(where * np.int64(which.max() + 1) + which.to_numpy())[0]  # a second copy needs a second partner
    n_levels = int(level.max()) + 1
    total, total_long = np.bincount(level, minlength=n_levels), np.bincount(level[long], minlength=n_levels)
    # Numbered among the long ones as among all: the length is that of the curve.
    every = _incidence(level, key, n_levels)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for left, right, overlap in _sharing(_incidence(level[long], key[long], n_levels), 1):
        kept = overlap >= SHARE_LONG * np.minimum(total_long[left], total_long[right])
        left, right = left[kept], right[kept]
        equal = np.bincount(_common(every, left, right)[0], minlength=len(left)).tolist()
        n = np.minimum(total[left], total[right]).tolist()
        found.update(zip(zip(left.tolist(), right.tolist(), strict=True), zip(n, equal, strict=True), strict=True))
    return found


def _same_by_nature(
    level: Index, slot: NDArray[np.int64], curve: NDArray[np.int64], total: NDArray[np.int64]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Pairs of levels that agree in all slots of both, beyond chance."""
    n_levels = int(level.max()) + 1
    n_pairs = n_levels * (n_levels - 1) / 2
    everything = np.bincount(slot, weights=total)
    # No chance is below that of one class, the number of all arrangements of a level's own runs; of most levels it is
    # too large already.
    at, times = np.unique(level * np.int64(curve.max() + 1) + curve, return_counts=True)
    arrangements = gammaln(np.bincount(level, minlength=n_levels) + 1.0) - np.bincount(
        at // (curve.max() + 1), weights=gammaln(times + 1.0), minlength=n_levels
    )
    used = (arrangements > np.log(n_pairs / _CHANCE) - 1e-9)[level]
    used &= (np.bincount(slot[used], minlength=len(everything)) > 1)[slot]
    names, row = np.unique(level[used], return_inverse=True)
    slots, column = np.unique(slot[used], return_inverse=True)
    curve_of = np.full((len(names), len(slots)), -1)
    curve_of[row, column] = curve[used]
    total_of = np.zeros(curve_of.shape)
    total_of[row, column] = total[used]
    found = {}
    for i, j in _agreeing(curve_of):
        both = (curve_of[i] >= 0) & (curve_of[j] >= 0)
        n, others = int(both.sum()), everything[slots] - total_of[i] - total_of[j]
        if n and n_pairs * _chance(curve_of[i][both], others[both]) < _CHANCE:
            found[int(names[i]), int(names[j])] = (n, n)
    return found


def _agreeing(codes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Pairs of rows that are equal wherever neither is -1."""
    present = codes >= 0
    if present.all():
        groups = pd.Series(range(len(codes))).groupby([row.tobytes() for row in codes], sort=False)
        for same in groups.indices.values():
            yield from combinations(map(int, same), 2)
        return
    # The sum of squared differences where both are there, from products of whole numbers: it is exact.
    codes = np.where(present, codes - codes.min(axis=0, where=present, initial=np.iinfo(np.int64).max), 0)
    precise = np.float32 if codes.shape[1] * int(codes.max(initial=0)) ** 2 < 2**22 else np.float64
    there, x = present.astype(precise), codes.astype(precise)
    left, right = np.hstack([x * x, there, -2 * x]), np.hstack([there, x * x, x])
    step = max(1, 2**22 // max(1, len(codes)))
    for start in range(0, len(codes), step):
        distance = left[start : start + step] @ right[start:].T
        for i, j in zip(*np.nonzero(np.triu(distance == 0, 1)), strict=True):
            yield start + int(i), start + int(j)


def _incidence(level: Index, key: NDArray[np.int64], n_levels: int) -> csr_array:
    """Which levels (rows) have which keys (columns)."""
    shape = (n_levels, int(key.max(initial=-1)) + 1)
    return csr_array((np.ones(len(key), dtype=np.int32), (level, key)), shape=shape)


def _sharing(incidence: csr_array, least: int) -> Iterator[tuple[Index, Index, NDArray[np.int32]]]:
    """Pairs of rows with at least `least` keys in common, and how many; what one row has alone costs nothing."""
    times = np.bincount(incidence.indices, minlength=incidence.shape[1])
    work = np.concatenate([[0], np.cumsum(times[incidence.indices])])[incidence.indptr]
    chunk = np.unique(work[:-1] // _PAIRS_AT_ONCE, return_index=True)[1].tolist()
    other = incidence.T.tocsr()
    for start, stop in pairwise([*chunk, incidence.shape[0]]):
        if work[stop] - work[start] > incidence.indptr[stop] - incidence.indptr[start]:
            shared = (incidence[start:stop] @ other).tocoo()
            kept = (shared.data >= least) & (shared.col > shared.row + start)
            yield shared.row[kept] + start, shared.col[kept], shared.data[kept]


def _common(incidence: csr_array, left: Index, right: Index) -> tuple[Index, Index]:
    """What both rows of each pair have: numbers of pairs and keys."""
    both = incidence[left].multiply(incidence[right]).tocoo()
    return both.row, both.col


def _chance(curve: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """The probability that runs agree everywhere if shuffled among places where the others did about as well."""
    values, where = np.unique(others, return_inverse=True)
    where = where * _CLASSES // len(values) if len(values) > _CLASSES else where
    _, cells = np.unique(np.stack([where, curve]), axis=1, return_counts=True)
    return float(np.exp(gammaln(cells + 1.0).sum() - gammaln(np.bincount(where) + 1.0).sum()))


def _same_seeds(curves: pd.DataFrame) -> list[list[Any]]:
    """Algorithms some of whose runs on a benchmark have the curve of an earlier run there."""
    repeated = curves.duplicated(["instance", "algorithm", "curve"]).to_numpy()
    place = curves.groupby(["benchmark", "algorithm"], dropna=False, sort=False).ngroup().to_numpy()
    n = np.bincount(place)
    long, certain = (
        np.bincount(place[repeated & (curves["distinct"] >= fewest).to_numpy()], minlength=len(n))
        for fewest in (LONG, _CERTAIN)
    )
    equal = np.where(long >= SHARE_LONG * n, long, certain)
    first = curves.iloc[np.unique(place, return_index=True)[1]]
    columns = (first["benchmark"].tolist(), first["algorithm"].tolist(), n.tolist(), equal.tolist())
    return [
        ["seed", place, None, algorithm, n, equal, equal / n]
        for place, algorithm, n, equal in zip(*columns, strict=True)
        if equal
    ]


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
    curves = curves[curves["metafeature"].notna() & curves["algorithm"].notna()]
    if curves.empty:
        return []
    algorithm, algorithms = pd.factorize(curves["algorithm"])
    levels = in_order(curves["metafeature"].unique())
    level = algorithm * len(levels) + pd.Index(levels, dtype=object).get_indexer(curves["metafeature"])
    slot = curves.groupby(["algorithm", "benchmark", "seed"], dropna=False, sort=False).ngroup().to_numpy()
    return [
        [
            "metafeature",
            levels[i % len(levels)],
            levels[j % len(levels)],
            algorithms[i // len(levels)],
            n,
            same,
            same / n,
        ]
        for i, j, n, same in sorted(_same_by_seed(level, slot, curves["curve"].to_numpy(), SHARE_LONG))
    ]


def copy_findings(table: pd.DataFrame, runs: Runs) -> list[Finding]:
    """The rows of the table of copied runs in words, with advice."""
    return [_finding(row, runs) for row in table.to_dict("records")]


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


def judge_copies(subject: Subject) -> CheckOutcome:
    found = copies_of(subject.runs)
    return outcome(copy_findings(found.table, subject.runs), found.findings[0], skipped=not found.judged, result=found)
