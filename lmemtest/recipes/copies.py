"""Runs that occur twice: under two seeds, two algorithms, two benchmarks, or two levels of a metafeature.

Copied rows look like agreement. Two seeds with one curve mean that the seed was not used (or that a file was read
twice); two algorithms with one curve mean that one of them was never run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._levels import in_order
from lmemtest._table import Tabular
from lmemtest.data.cells import sorted_rows
from lmemtest.data.findings import Finding
from lmemtest.data.points import Points, collect_points
from lmemtest.data.runs import require_runs
from lmemtest.inference.reference import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.data.runs import Runs

# On tables of precomputed scores honest runs with up to 5 different scores coincide now and then (1 % of the runs of
# the bundled data), with 6 or more none did: one such run is a copy.
_CERTAIN = 6
# Curves with fewer different scores are copies where half of them agree.
_LONG = 3
# Single scores may tie: they count as copies only if nearly all do, and not all at one value.
_SHARE, _FEWEST = 0.9, 5
_SHARE_LONG = 0.5
_COLUMNS = ["kind", "left", "right", "algorithm", "runs", "equal", "share"]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class CopiedRuns(Tabular):
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
        Whether the runs are enough, or long enough, for a copy to be told from a tie.
    """

    table: pd.DataFrame
    findings: tuple[Finding, ...]
    n_runs: int
    judged: bool = True

    def to_frame(self) -> pd.DataFrame:
        """The table, as a copy."""
        return self.table.copy()

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        if not self.judged:
            return (
                f"Copies cannot be told from ties: the {self.n_runs:,} runs have fewer than {_LONG} different scores "
                f"each, and no two algorithms or benchmarks have {_FEWEST} to compare."
            )
        if not self.findings:
            return f"None of {self.n_runs:,} runs is a copy of another."
        return " ".join(finding.message for finding in self.findings)

    def result_table(self) -> ResultTable:
        """The copies as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        rule = (
            f"A run is copied if its scores at all budgets are equal to another's: seeds with {_CERTAIN} or more "
            f"different scores; else, and for algorithms and benchmarks, {_LONG} or more if {100 * _SHARE_LONG:g} % of "
            f"the runs agree, fewer if {100 * _SHARE:g} % of those with the same seed do."
        )
        return ResultTable(title="Copied runs", frame=self.table, notes=(rule, self.sentence))


def copied_runs(runs: Runs) -> CopiedRuns:
    """Find runs whose scores are those of another run.

    Parameters
    ----------
    runs : Runs
        Any table of runs; with budgets a run is its whole curve.

    Returns
    -------
    CopiedRuns

    Notes
    -----
    Compared are: seeds of one algorithm on one instance; algorithms on one instance; benchmarks at one combination of
    metafeatures, by algorithm; and levels of metafeatures on one benchmark, by algorithm. The last is no error where
    the algorithm ignores the metafeature, but its rows are then one set of runs, used twice. Nothing is tested: the
    rules are such that continuous scores never agree, and honest runs on tables of precomputed scores, which do
    coincide now and then, stay below them.

    Examples
    --------
    >>> from lmemtest.data.runs import Runs
    >>> from lmemtest.recipes.copies import copied_runs
    >>> table = {"tool": ["HB"] * 3 + ["RS"] * 3, "budget": [1, 2, 3] * 2, "seed": [0] * 6,
    ...          "loss": [0.5, 0.41, 0.3] * 2}
    >>> copies = copied_runs(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                           budget="budget"))
    >>> copies.sentence
    "'RS' has the same scores as 'HB' in 1 of 1 runs."
    """
    require_runs(runs)
    points = collect_points(runs)
    curves = _curves(points)
    rows = [*_same_seeds(curves), *_same(curves, "algorithm"), *_same(curves, "benchmark"), *_same_levels(curves)]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return CopiedRuns(
        table=table,
        findings=tuple(_finding(row, runs) for row in table.to_dict("records")),
        n_runs=len(curves),
        judged=_enough(curves),
    )


def _curves(points: Points) -> pd.DataFrame:
    """One row per run with finite scores: its roles, the code of its curve, and how many different scores it has."""
    good = points.valid == points.n
    starts = np.flatnonzero(np.diff(points.run, prepend=-1))
    ends = np.append(starts[1:], len(points.run))
    keys, distinct, complete = [], [], []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        scores = points.mean[start:end]
        keys.append(points.budget[start:end].tobytes() + scores.tobytes())
        distinct.append(len(np.unique(scores)))
        complete.append(bool(good[start:end].all()))
    metafeatures = _levels_of_instances(points)
    instance = points.instance[starts]
    frame = pd.DataFrame(
        {
            "instance": instance,
            "benchmark": pd.Series(points.benchmarks, dtype=object).iloc[points.benchmark_of[instance]].to_numpy(),
            "metafeature": pd.Series(metafeatures, dtype=object).iloc[instance].to_numpy(),
            "seed": points.seed[starts],
            "algorithm": pd.Series(points.algorithms, dtype=object).iloc[points.algorithm[starts]].to_numpy(),
            "curve": pd.factorize(pd.Series(keys, dtype=object))[0],
            "distinct": distinct,
        }
    )
    return frame[np.array(complete, dtype=bool)]


def _levels_of_instances(points: Points) -> list[Any]:
    """The combination of metafeatures of every instance, in words; instances are sorted by their columns."""
    runs = points.runs
    if not runs.metafeatures:
        return [None] * len(points.benchmark_of)
    frame = runs.frame.lazy().select(list(runs.instance)).unique().collect().to_pandas()
    frame = sorted_rows(frame, list(runs.instance))
    return [" / ".join(map(format_level, row)) for row in frame[list(runs.metafeatures)].itertuples(index=False)]


def _same_seeds(curves: pd.DataFrame) -> list[list[Any]]:
    rows = []
    for (benchmark, algorithm), part in curves.groupby(["benchmark", "algorithm"], dropna=False, sort=False):
        repeated = part.duplicated(["instance", "curve"])
        equal = int((repeated & (part["distinct"] >= _LONG)).sum())
        if equal < _SHARE_LONG * len(part):
            equal = int((repeated & (part["distinct"] >= _CERTAIN)).sum())
        if equal:
            rows.append(["seed", benchmark, None, algorithm, len(part), equal, equal / len(part)])
    return rows


def _same(curves: pd.DataFrame, kind: str) -> list[list[Any]]:
    """Pairs of algorithms on the same instance, or pairs of benchmarks for the same algorithm, with the same runs."""
    place = ["instance"] if kind == "algorithm" else ["metafeature", "algorithm"]
    levels = in_order(curves[kind].unique())
    rows: list[list[Any]] = []
    if len(levels) < 2:
        return rows
    long = _counts(curves[curves["distinct"] >= _LONG], place, kind)
    every = _counts(curves, place, kind)
    paired = curves.set_index([*place, "seed", kind])["curve"].unstack(kind)
    curve_of = {level: paired[level].to_numpy() for level in levels}  # NaN where a run is missing
    for left, right in combinations(levels, 2):
        n, equal = _overlap(long, left, right)
        if n and equal >= _SHARE_LONG * n:
            n, equal = _overlap(every, left, right)
            rows.append([kind, left, right, None, n, equal, equal / n])
            continue
        same = curve_of[left] == curve_of[right]
        n = int((pd.notna(curve_of[left]) & pd.notna(curve_of[right])).sum())
        equal, different = int(same.sum()), len(np.unique(curve_of[left][same]))
        if different >= _FEWEST and equal >= _SHARE * n:
            rows.append([kind, left, right, None, n, equal, equal / n])
    return rows


def _enough(curves: pd.DataFrame) -> bool:
    """Whether the rules could find a copy."""
    if (curves["distinct"] >= _LONG).any():
        return True
    places = {"algorithm": ["instance", "seed"], "benchmark": ["metafeature", "algorithm", "seed"]}
    return any(
        curves[kind].nunique(dropna=False) > 1 and len(curves[place].drop_duplicates()) >= _FEWEST
        for kind, place in places.items()
    )


def _counts(curves: pd.DataFrame, place: list[str], kind: str) -> dict[Any, NDArray[np.intp]]:
    """By level, how often each curve occurs at each place; whatever the seed."""
    if curves.empty:
        return {}
    counts = curves.groupby([*place, "curve", kind], dropna=False, sort=False).size().unstack(kind, fill_value=0)
    return {level: counts[level].to_numpy() for level in counts}


def _overlap(counts: dict[Any, NDArray[np.intp]], left: Any, right: Any) -> tuple[int, int]:
    """Runs that could have a partner, and those that have one."""
    if left not in counts or right not in counts:
        return 0, 0
    n = int(min(counts[left].sum(), counts[right].sum()))
    return n, int(np.minimum(counts[left], counts[right]).sum())


def _same_levels(curves: pd.DataFrame) -> list[list[Any]]:
    """Levels of the metafeatures at which an algorithm has the same runs."""
    rows = []
    for algorithm, part in curves.groupby("algorithm", sort=False):
        wide = part.set_index(["benchmark", "seed", "metafeature"])["curve"].unstack("metafeature")
        for left, right in combinations(in_order(wide.columns), 2):
            both = wide[[left, right]].dropna()
            same = both[left] == both[right]
            if both[left][same].nunique() >= _FEWEST and same.mean() >= _SHARE_LONG:
                rows.append(["metafeature", left, right, algorithm, len(both), int(same.sum()), float(same.mean())])
    return rows


def _finding(row: dict[Any, Any], runs: Runs) -> Finding:
    kind, equal, n = row["kind"], int(row["equal"]), int(row["runs"])
    left, right, algorithm = row["left"], row["right"], row["algorithm"]
    if kind == "seed":
        where = "" if left is None else f" on {format_level(left)!r}"
        message = f"{equal:,} of {n:,} runs of {str(algorithm)!r}{where} are copies of a run with another seed."
        advice = "Check that the seed is used and that no file was read twice; drop the copies."
        return Finding(
            severity="warning", kind="copied_seeds", message=message, advice=advice, count=equal, benchmark=left,
            algorithm=algorithm,
        )  # fmt: skip
    names = f"{format_level(right)!r}", f"{format_level(left)!r}"
    if kind == "metafeature":
        message = (
            f"{str(algorithm)!r} has the same runs at {names[1]} and {names[0]} of {' x '.join(runs.metafeatures)} "
            f"({equal:,} of {n:,})."
        )
        advice = "Fine if it ignores that setting; its rows are then one set of runs, used twice, and add no evidence."
        return Finding(
            severity="note", kind="copied_levels", message=message, advice=advice, count=equal, algorithm=algorithm
        )
    message = f"{names[0]} has the same scores as {names[1]} in {equal:,} of {n:,} runs."
    if kind == "algorithm":
        advice = "Check that each was run with its own code and that no file was read twice; keep one of them."
        return Finding(severity="warning", kind="copied_algorithms", message=message, advice=advice, count=equal)
    advice = "These are one benchmark under two names: keep one, for the other counts as new evidence and is none."
    return Finding(
        severity="warning", kind="copied_benchmarks", message=message, advice=advice, count=equal, benchmark=right
    )
