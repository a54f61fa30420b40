"""Failed runs: which rows failed, and how many of whom. What to score them is in `failure_policies`.

A row fails by a column of its own or by its score ("missing", "nonfinite"). The score of a failed row is no score: it
is masked when the table gets its roles, so that every count of scores that are not there counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from lmemtest.core.caller import advice, named
from lmemtest.core.codes import missing_values_error
from lmemtest.core.frames import collected
from lmemtest.core.numeric import check_numeric, example_value
from lmemtest.core.words import counted, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

__all__ = ["WORDS", "Failures", "check_failed", "count_failures", "failed_rows", "failure_indicator", "masked"]

WORDS = ("missing", "nonfinite")
INDICATOR = "failed"  # the score of an indicator of failures, or this name with an underscore


class Failures(NamedTuple):
    """What was done with failed runs: the policy, on how many of how many rows, and of which algorithms.

    `source` are the runs as they were, with their failures; `then` what was done with the runs after that, so that it
    can be done again under another policy.
    """

    policy: Any
    reference: Any
    n_failed: int
    n_rows: int
    algorithms: tuple[Any, ...]
    note: str
    source: Runs
    then: tuple[Callable[[Runs], Runs], ...] = ()

    def under(self, policy: Any, reference: Any = None) -> Runs:
        """The runs under another policy, with all that was done with them after that."""
        runs = self.source.score_failures(policy, reference=reference)
        for step in self.then:
            runs = step(runs)
        return runs


def check_failed(runs: Runs) -> None:
    """The role names a column of true and false, or one of the words."""
    failed, columns, argument = runs.failed, runs.columns, named("failed")
    if failed is None:
        return
    if not isinstance(failed, str):
        raise ArgumentError(f"{argument} must be a column or one of {', '.join(map(repr, WORDS))}, got {failed!r}.")
    if failed in WORDS:
        if failed in columns:
            raise ArgumentError(
                f"{argument}={failed!r} may mean the column {failed!r} or scores that are {failed}. Rename the column."
            )
        return
    if failed not in columns:
        raise UnknownColumnError(
            f"{argument} names {failed!r}, which is neither a column nor one of {', '.join(map(repr, WORDS))}. "
            f"Columns: {listed(columns)}.{suggest(failed, (*columns, *WORDS))}"
        )
    check_numeric(runs.frame, runs.score, argument="score")
    _check_flags(runs.frame, failed, argument)


def _check_flags(frame: Any, column: str, argument: str) -> None:
    """Only true and false, or 1 and 0."""
    dtype = frame.collect_schema()[column]
    if not (dtype == nw.Boolean or dtype.is_numeric()):
        shown = example_value(frame, column)
        raise DataError(
            f"{argument} must be a column of true and false or of 1 and 0, but {column!r} has type {dtype} (for "
            f"example {shown!r}). Make it one, for pandas with df[{column!r}] == {shown!r}."
        )
    flag = nw.col(column).cast(nw.Float64)
    gap = flag.is_null() | flag.is_nan().fill_null(True)
    odd = ~((flag == 0.0) | (flag == 1.0)).fill_null(True) & ~gap
    gaps, others = collected(
        frame.select(gap.cast(nw.Int64).sum().alias("gaps"), odd.cast(nw.Int64).sum().alias("others"))
    ).rows()[0]
    if gaps:
        raise missing_values_error(column, int(gaps))
    if others:
        found = collected(frame.filter(odd).select(column).head(1)).rows()[0][0]
        raise DataError(
            f"{argument} must be a column of true and false or of 1 and 0, but {column!r} holds {found!r} "
            f"({counted(int(others), 'row')} in all are neither). If it counts failures, 1 must mean that the run has "
            "no score."
        )


def masked(runs: Runs) -> Any:
    """The table without the scores of rows that failed by a column."""
    if runs.failed is None or runs.failed in WORDS:
        return runs.frame
    return runs.frame.with_columns(nw.when(~failed_rows(runs)).then(nw.col(runs.score)).alias(runs.score))


def failed_rows(runs: Runs) -> nw.Expr:
    """Whether a row failed, as an expression that is never missing; False for all without the role."""
    x = nw.col(runs.score).cast(nw.Float64)
    if runs.failed is None:
        return x.is_null() & ~x.is_null()
    if runs.failed == "missing" and runs.failed not in runs.columns:
        return x.is_null() | x.is_nan().fill_null(True)
    if runs.failed == "nonfinite" and runs.failed not in runs.columns:
        return ~x.is_finite().fill_null(False)
    return nw.col(runs.failed).cast(nw.Float64) == 1.0


def failure_indicator(runs: Runs) -> Runs:
    """The runs with 1 as the score of those that failed and 0 as that of the others, to minimize."""
    name = INDICATOR
    while name in runs.columns:
        name += "_"
    columns = (*runs.ignore, runs.score, *((runs.failed,) if runs.failed in runs.columns else ()))
    frame = runs.frame.with_columns(failed_rows(runs).cast(nw.Float64).alias(name))
    roles: dict[str, Any] = {"score": name, "direction": "minimize", "failed": None}
    roles["ignore"] = tuple(dict.fromkeys(columns))
    return runs.restricted(frame, (), **roles)


def count_failures(runs: Runs, by: Sequence[str] = ()) -> tuple[Any, np.ndarray, np.ndarray]:
    """For each combination of some columns with a role: their values, failed rows and rows."""
    groups = runs.study.failures.study.groups(by)
    return groups.keys.frame(), np.rint(groups.mean * groups.n).astype(int), groups.n.astype(int)


def refuse_failures(runs: Runs) -> None:
    """Refuse runs that hold failures, by algorithm and with the policies; nothing where there are none."""
    if runs.failed is None:
        return
    names, failed, rows = count_failures(runs, [runs.algorithm])
    if not failed.any():
        return
    own = [f"{name} {count:,}" for name, count in zip(names[runs.algorithm], failed, strict=True) if count]
    what = rows_or_runs(runs)
    raise DataError(
        f"{failed.sum():,} of {rows.sum():,} {what} failed ({listed(own)}) and have no score, and what a failure "
        "counts decides the comparison. Say it: " + advice("policies_in_full")
    )


def rows_or_runs(runs: Runs) -> str:
    """What failed: a run has several rows where it was scored at several budgets."""
    return "runs" if runs.budget is None or runs.study.count(runs.budget) == 1 else "scores"


def refuse_without_failures(runs: Runs) -> None:
    """Refuse runs that do not say which of them failed."""
    if runs.failed is None and runs.failures is None:
        raise ArgumentError(
            "runs do not say which of them failed: Runs(..., failed='missing') for scores that are missing, "
            "'nonfinite' for infinite ones too, or a column of true and false."
        )
