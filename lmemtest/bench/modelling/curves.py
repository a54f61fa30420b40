"""What a curve over the budget counts in a model of runs, where nobody said so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.checks.budget_mix import are_single_trials
from lmemtest.bench.data.per_run import Course
from lmemtest.core.caller import named
from lmemtest.core.options import CURVE_CHOICES
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

__all__ = ["curve_of", "reduced"]


def curve_of(runs: Runs) -> str | None:
    """What a curve counts by default; None where each run has one score, or runs share no range of budgets.

    Single trials of a search count with their best: their mean says little about what was found. Everything else counts
    with its mean over the budgets that all runs have, and where they have few in common with the area under the curve,
    which is the mean over the budget whatever the steps.

    Examples
    --------
    >>> import lmemtest as lt
    >>> curve_of(lt.datasets.load_hpo_runs()), curve_of(lt.datasets.load_hpo_runs().filter(budget=8))
    ('mean', None)
    """
    if runs.budget is None or runs.study.count(runs.budget) < 2:
        return None
    course = Course.of(runs)
    if not course.several:
        return None
    if are_single_trials(runs.study.detailed):
        return "best"
    if course.on_a_grid:
        return "mean"
    return "area" if course.overlap else None


def reduced(runs: Runs, curves: str | None = None) -> Runs:
    """The runs with one score each; as they are where `curves` is "model", or nothing is to be reduced."""
    if curves is not None:
        check_choice(curves, "curves", CURVE_CHOICES)
    if curves == "model":
        return runs
    if curves is None:
        how = curve_of(runs)
        return runs if how is None else runs.per_run(how)  # type: ignore[arg-type]
    if runs.budget is None:
        if runs.curve is not None and runs.curve.how == curves:
            return runs
        done = f"they were reduced already ({runs.curve.how})" if runs.curve else "these have none"
        raise ArgumentError(
            f"{named('curves')} says what the scores of a run over its budget count, so it needs runs with a budget, "
            f"and {done}. Name the column of the budget, or leave {named('curves')} out."
        )
    return runs.per_run(curves)  # type: ignore[arg-type]
