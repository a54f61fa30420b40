"""Best-so-far curves that get worse: where most runs never do, those that do are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.bench.checks.subject import Subject, outcome
from lmemtest.bench.data.budget_mix import are_single_trials, trials_advice
from lmemtest.bench.data.runs import require_runs
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_number

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.study import Study

# A run of independent scores at k budgets never gets worse with probability 1/k!: 1/6 at three. If half of the runs
# never do, they are meant as best-so-far curves. Smooth learning curves do not get worse either, but never stand still,
# and where they do get worse it is by little: half of the curves in order have to keep a score from one budget to the
# next, or half of the others to get worse by so much of their range.
_SHARE, _BREAK, _FEWEST_BUDGETS = 0.5, 0.1, 3
_ROUNDING = 1e-12  # of the largest score: no step


@guided
def broken_traces(runs: Runs) -> Answer:
    """Look for best-so-far curves that get worse at a higher budget; the runs need a budget and a seed column.

    A rule, not a test: if at least half of the curves with three or more budgets never get worse (independent scores at
    k budgets are in order with probability 1/k!), the score is taken as the best so far, and every step to the worse is
    an error of recording, sorting or joining. It is not where curves look like smooth learning curves: most of those in
    order keep no score from one budget to the next, and most of the others get worse by less than a tenth of their
    range.

    Returns
    -------
    Answer
        ``best_so_far``: whether the score is taken as the best so far; None where there are too few budgets to tell.
        ``n_broken``: how many of such curves get worse all the same. ``table``, per ``benchmark``
        and ``algorithm``: ``runs`` (with three or more budgets), ``worse`` (runs that get worse), ``largest_step`` (the
        largest step to the worse, 0 for none). ``examples``: broken runs in words, the worst first.

    Examples
    --------
    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["HB"] * 6 + ["RS"] * 3, "seed": [0] * 3 + [1] * 3 + [0] * 3, "budget": [1, 2, 3] * 3,
    ...          "loss": [3, 2, 1, 3, 3, 2, 3, 1, 2]}
    >>> found = broken_traces(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed",
    ...                            budget="budget"))
    >>> found.best_so_far, found.n_broken, found.examples
    (True, 1, ('RS, seed 0: worse by 1.000 at budget 3',))
    """
    require_runs(runs)
    return traces_of(runs)


def traces_of(runs: Runs) -> Answer:
    """`broken_traces` of what is known to be runs."""
    for role in ("budget", "seed"):
        runs.study.require(role, "there are no curves")
    study = runs.study.detailed
    table, examples, sharp = _steps(study)
    n, worse = int(table["runs"].sum()), int(table["worse"].sum())
    best_so_far = None if n == 0 else worse == 0 or (n - worse >= _SHARE * n and sharp)
    n_broken = worse if best_so_far else 0
    examples = examples if n_broken else ()
    if best_so_far is None:
        sentence = (
            f"Runs have fewer than {_FEWEST_BUDGETS} budgets, too few to tell whether they are best-so-far curves."
        )
    elif not best_so_far:
        sentence = f"{worse:,} of {n:,} curves get worse at some budget: the score is not the best so far."
    elif n_broken:
        sentence = (
            f"{n - worse:,} of {n:,} curves never get worse, so they are best-so-far curves; the other {worse:,} are "
            f"broken (such as {'; '.join(examples)})."
        )
    else:
        sentence = f"None of {n:,} curves gets worse at a higher budget."
    return Answer(
        question="broken_traces",
        title="Curves that get worse",
        tables={"table": table},
        values={"best_so_far": best_so_far, "n_broken": n_broken, "examples": examples},
        findings=(sentence,),
    )


def _steps(study: Study) -> tuple[pd.DataFrame, tuple[str, ...], bool]:
    """Per cell the runs that get worse; the worst of them in words; and whether steps and breaks are no noise."""
    good = study.points.valid > 0
    run, budget, mean = study.code("run")[good], study.code("budget")[good], study.points.mean[good]
    cell, seed = study.code("cell")[good], study.code("seed")[good]
    code, first, length = np.unique(run, return_index=True, return_counts=True)
    worse = np.diff(mean) if study.runs.direction == "minimize" else -np.diff(mean)
    limit = _ROUNDING * float(np.abs(mean).max(initial=0.0))
    step = np.where((run[1:] == run[:-1]) & (worse > limit), worse, 0.0)  # sorted by run, then by budget
    index = np.searchsorted(code, run[1:])
    largest = np.zeros(len(code))
    np.maximum.at(largest, index, step)
    judged = length >= _FEWEST_BUDGETS
    still = np.zeros(len(code), dtype=bool)
    still[index[(run[1:] == run[:-1]) & (np.abs(worse) <= limit)]] = True
    size = study.n_cells
    step_of_cell = np.zeros(size)
    np.maximum.at(step_of_cell, cell[first][judged], largest[judged])
    named = study.places
    table = pd.DataFrame(
        {
            "benchmark": pd.Series([b for b, _ in named], dtype=object),
            "algorithm": [a for _, a in named],
            "runs": np.bincount(cell[first][judged], minlength=size),
            "worse": np.bincount(cell[first][judged & (largest > 0)], minlength=size),
            "largest_step": step_of_cell,
        }
    )
    examples = []
    for i in np.argsort(-largest, kind="stable")[:3]:
        if judged[i] and largest[i] > 0:
            at = int(np.flatnonzero((index == i) & (step == largest[i]))[0]) + 1
            benchmark, algorithm = study.places[cell[at]]
            place = (
                f"{algorithm}{'' if benchmark is None else f' on {benchmark}'}, seed {study.names('seed')[seed[at]]}"
            )
            worst = format_number(float(largest[i]))
            examples.append(f"{place}: worse by {worst} at {study.runs.budget} {study.names('budget')[budget[at]]}")
    in_order, broken = judged & (largest == 0), judged & (largest > 0)
    span = np.maximum.reduceat(mean, first) - np.minimum.reduceat(mean, first)
    sharp = still[in_order].sum() >= _SHARE * in_order.sum()
    sharp |= (largest > _BREAK * span)[broken].sum() >= _SHARE * broken.sum()
    return table[table["runs"] > 0].reset_index(drop=True), tuple(examples), bool(sharp)


def trace_findings(found: Answer, study: Study) -> list[Finding]:
    """What to know of curves that get worse; nothing where none does, or too few budgets tell."""
    if found.best_so_far is None or (found.best_so_far and not found.n_broken):
        return []
    n, worse, message = int(found.table["runs"].sum()), int(found.table["worse"].sum()), found.findings[0]
    best = "minimum" if study.runs.direction == "minimize" else "maximum"
    if found.n_broken:
        severity, kind = "warning", "broken_trace"
        advice = (
            f"Look at these runs: a wrong order, two runs joined, a restart. If all is right, take the running {best}."
        )
    elif are_single_trials(study):
        severity, kind, advice = "warning", "single_trials", trials_advice()
        message = (
            f"In {worse:,} of {n:,} runs the score goes up and down with {study.runs.budget!r}, as that of single "
            "trials does, so a mean over rows is one over trials and not over the best that was found."
        )
    else:
        severity, kind = "note", "not_best_so_far"
        advice = f"Fine if scores of budgets are separate; if the best so far is meant, take the running {best}."
    return [Finding(severity, kind, message, advice, count=worse)]


def judge_curves(subject: Subject) -> CheckOutcome:
    found = traces_of(subject.runs)
    return outcome(
        trace_findings(found, subject.study), found.findings[0], skipped=found.best_so_far is None, result=found
    )
