"""Runs that failed, or have no score: what failed where, and whether that depends on the algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from lmemtest.bench.checks.findings import per_cell
from lmemtest.bench.data.failures import rows_or_runs
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.study import Study
from lmemtest.bench.failures.counts import alike_p_values, failure_counts, recovered_runs
from lmemtest.core.caller import advice
from lmemtest.core.rounding import below
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import counted, format_level, joined, p_text

_TESTED = {"run": "within benchmarks", "benchmark": "over benchmarks", "family": "over families"}


def failed_findings(study: Study) -> list[Finding]:
    """An error for every algorithm and benchmark with failures that no policy has scored; a note on those that are."""
    points = study.points
    runs = study.runs
    if runs.failures is not None:
        return [_scored(runs)] if runs.failures.n_failed else []
    what = rows_or_runs(runs)
    bad = np.bincount(study.code("cell"), weights=points.n - points.valid, minlength=study.n_cells)
    rows = np.bincount(study.code("cell"), weights=points.n, minlength=study.n_cells)
    policies = f"Say what a failure counts: {advice('policies_in_short')}{_where(runs)}"

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        return f"{count:,} of {int(rows[cell]):,} {what} of {algorithm}{where} failed.", policies

    return per_cell(study.places, bad, "error", "failed_runs", say)


def failures_by_algorithm(runs: Runs, alpha: float) -> list[Finding]:
    """A warning where the algorithms do not fail alike, so that failed runs are not missing by chance."""
    done, subject = runs.failures, "Runs without a score"
    left_out = None if done is None else done.left_out
    if done is not None and left_out is not None:
        runs, subject = left_out, "Runs that were left out" if left_out is not done.source else subject
    elif runs.failed is None and done is None:  # nobody has said that missing scores are failures
        runs = runs.restricted(runs.frame, (), failed="nonfinite", ignore=runs.ignore)
    failed, ran, _, family = failure_counts(runs)
    shown = [(population, p) for population, p in alike_p_values(failed, ran, family).items() if below(p, alpha)]
    if not shown:
        return []
    population, p = shown[-1]  # the widest
    spread = f"not spread over the algorithms by chance ({p_text(p)}, exact test {_TESTED[population]})"
    if population == "run":
        claim = f"If runs fail independently, {subject.replace('Runs', 'those')} are {spread}"
    else:
        claim = f"{subject} are {spread}"
    failed, ran = failed.sum(axis=0), ran.sum(axis=0)
    order = np.argsort(-failed / np.maximum(ran, 1), kind="stable")
    named = [f"{format_level(runs.algorithms[i])} {failed[i]:,} of {ran[i]:,}" for i in order]
    return [
        Finding(
            severity="note" if done is not None and left_out is None else "warning",
            kind="failures_depend_on_algorithm",
            count=int(failed.sum()),
            message=f"{claim}: {joined(named)} runs.",
            advice="Leaving them out makes algorithms that fail where scores are bad look better than they are. Report "
            f"how often each fails{advice('failure_rates')}",
        )
    ]


def _scored(runs: Runs) -> Finding:
    done: Any = runs.failures
    return Finding(
        "note",
        "failed_runs",
        f"{done.note} There were {done.n_rows:,} {rows_or_runs(done.source)} in all.",
        advice("robustness of failures"),
        count=done.n_failed,
    )


def _where(runs: Runs) -> str:
    """At which budgets most runs failed, where that differs."""
    if runs.budget is None or runs.study.count(runs.budget) < 2 or runs.failed is None:
        return ""
    groups = runs.study.failures.study.groups([runs.budget])
    failed = np.rint(groups.mean * groups.n).astype(int)
    levels = groups.keys.frame()[runs.budget].tolist()
    order = [int(i) for i in np.argsort(-failed, kind="stable") if failed[i]]
    named = [f"{format_level(levels[i])} ({failed[i]:,})" for i in order]
    found = f" By {runs.budget}, {counted(int(failed.sum()), 'score')} failed: {joined(named)}." if named else ""
    stopped, again = recovered_runs(runs)
    return found + f" Of {stopped:,} failed runs {again:,} have a score again at a later {runs.budget}." * (again > 0)
