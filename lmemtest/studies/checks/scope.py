"""How far a table of runs can be checked: rules that have nothing to look at, and the data that are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmemtest.data.checks import RunsCheck
    from lmemtest.data.runs import Runs

_BENCHMARKS = 3  # with fewer, nothing sets a benchmark apart from the others


def nothing_to_check(check: str, runs: Runs, table: RunsCheck) -> str:
    """Why a rule for the table says nothing if it finds nothing; empty where it does.

    Parameters
    ----------
    check : str
        Name of the check.
    runs : Runs
    table : RunsCheck
        Of `runs`.
    """
    if table.kind.equal_by_nature and check in ("constant", "ties"):
        return f"equal scores are no fault here. {table.kind.evidence}"
    if table.kind.kind in ("two-valued", "ranks") and check == "scales":
        return f"such scores have one scale by nature. {table.kind.evidence}"
    if check == "coverage" and not (runs.instance or runs.seed or runs.budget):
        return "the table has no benchmark, seed or budget column, so there is nothing that an algorithm could lack."
    if check == "duplicates" and runs.seed is None:
        return (
            "the runs have no seed column, so a row that stands twice looks like a repeated run. Name it: "
            "Runs(..., seed=...)."
        )
    if check == "constant" and not (table.cells["n"] > 1).any():
        return "no algorithm has two scores on a benchmark, so nothing says whether they vary."
    if check == "scales" and len(table.scales) < 2:
        return "there are no two benchmarks, so there are no scales to compare."
    return ""


def needed_data(runs: Runs, table: RunsCheck) -> tuple[str, ...]:
    """What the table lacks for the statistical checks, the most useful first."""
    needs = []
    if runs.seed is None and runs.budget is not None:
        needs.append("a column that tells the runs apart, Runs(..., seed=...)")
    elif not (table.cells["seeds"] > 1 if runs.seed else table.scales["df"] > 0).any():
        needs.append("repeated runs of each algorithm on each benchmark, Runs(..., seed=...)")
    if len(table.scales) < _BENCHMARKS:
        needs.append("three benchmarks or more, Runs(..., benchmark=...)")
    if runs.budget is None:
        needs.append("scores at several budgets if the budget matters, Runs(..., budget=...)")
    return tuple(needs)
