"""Runs that occur twice: under two seeds, two algorithms, two benchmarks, or two levels of a metafeature.

Copied rows look like agreement. Two seeds with one curve mean that the seed was not used (or that a file was read
twice); two algorithms with one curve mean that one of them was never run.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest._levels import in_order
from lmemtest._result import Result, result
from lmemtest.data.cells import sorted_rows
from lmemtest.data.copies import FEWEST, LONG, SHARE, SHARE_LONG, curves_of, said_of_algorithms, same_runs
from lmemtest.data.findings import Finding
from lmemtest.data.points import Points
from lmemtest.data.runs import require_runs
from lmemtest.data.score_kind import score_kind
from lmemtest.words import format_level

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

# On tables of precomputed scores honest runs with up to 5 different scores coincide now and then (1 % of the runs of
# the bundled data), with 6 or more none did: one such run is a copy.
_CERTAIN = 6
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
        Whether the runs are enough, or long enough, for a copy to be told from a tie.
    """

    table: pd.DataFrame
    findings: tuple[Finding, ...]
    n_runs: int
    judged: bool = True

    def sentences(self) -> tuple[str, ...]:
        """What was found."""
        if not self.judged:
            return (
                f"Copies cannot be told from ties: the {self.n_runs:,} runs have fewer than {LONG} different scores "
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
    coincide now and then, stay below them. Where scores are equal by nature (two values, ranks, counts), algorithms
    and benchmarks are copies only if all of their runs agree, and runs shuffled among those on which the others did
    about as well would hardly ever do so.

    Examples
    --------
    >>> from lmemtest.data.runs import Runs
    >>> from lmemtest.studies.checks.copies import copied_runs
    >>> table = {"tool": ["HB"] * 3 + ["RS"] * 3, "budget": [1, 2, 3] * 2, "seed": [0] * 6,
    ...          "loss": [0.5, 0.41, 0.3] * 2}
    >>> copies = copied_runs(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                           budget="budget"))
    >>> copies.sentences()[0]
    "'RS' has the same scores as 'HB' in 1 of 1 runs."
    """
    require_runs(runs)
    points = runs.study.points
    curves, kind = curves_of(points), score_kind(points)
    curves["metafeature"] = pd.Series(_levels_of_instances(points), dtype=object).to_numpy()[curves["instance"]]
    algorithms, benchmarks = same_runs(curves, "algorithm", kind), same_runs(curves, "benchmark", kind)
    rows = [*_same_seeds(curves), *algorithms, *benchmarks, *_same_levels(curves)]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    return CopiedRuns(
        table=table,
        findings=tuple(_finding(row, runs) for row in table.to_dict("records")),
        n_runs=len(curves),
        judged=_enough(curves),
    )


def _levels_of_instances(points: Points) -> list[Any]:
    """The combination of metafeatures of every instance, in words; instances are sorted by their columns."""
    runs = points.runs
    if not runs.metafeatures:
        return [None] * len(points.benchmark_of)
    frame = runs.study.distinct(runs.instance)
    frame = sorted_rows(frame, list(runs.instance))
    return [" / ".join(map(format_level, row)) for row in frame[list(runs.metafeatures)].itertuples(index=False)]


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
    rows = []
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
    if kind == "algorithm":
        return said_of_algorithms(left, right, n, equal)
    message = f"{names[0]} has the same scores as {names[1]} in {equal:,} of {n:,} runs."
    advice = "These are one benchmark under two names: keep only one: the other adds no evidence."
    return Finding(
        severity="warning", kind="copied_benchmarks", message=message, advice=advice, count=equal, benchmark=right
    )
