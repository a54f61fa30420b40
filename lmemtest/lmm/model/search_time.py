"""How long the search for the optimum of a large model will take, from the work that is counted before it begins."""

from __future__ import annotations

from lmemtest.core.replicates import LONG, in_words, is_part, say
from lmemtest.lmm.engine.optimize import evaluation_cost
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.structure import PER_LEVEL

# Counted flops in a second, with gradient and curvature: 2.5e10 with 600 crossed columns, 6e10 with 4,500, on one core.
_RATE = 4e10
# Evaluations of a search beside one for each covariance parameter: 4 with 2 of them, 9 with 6.
_EVALUATIONS = 3


def search_seconds(problem: Problem, restarts: int | None = None) -> float:
    """Rough seconds of a search; none where the mean squares of a balanced table have the optimum or its criterion."""
    if problem.anova is not None or not problem.n_free:
        return 0.0
    evaluations = (_EVALUATIONS + problem.n_theta) * (1 + (restarts or 0))
    system = problem.searched.system
    led = [s.block.q * (len(system.B) + sum(e.shape[2] for e in s.E.values())) ** 2 for s in system.chain if s.E]
    return evaluations * (evaluation_cost(problem.searched) + PER_LEVEL * sum(led)) / _RATE


def tell_long_search(problem: Problem, formula: str, restarts: int | None = None) -> None:
    """Say so where a search will take more than half a minute, unless it is one of many."""
    if is_part() or (seconds := search_seconds(problem, restarts)) <= LONG:
        return
    columns = sum(k * n for k, n in zip(problem.sizes, problem.n_levels, strict=True))
    say(
        f"The search for '{formula}' may take {in_words(seconds)}: "
        f"it is for {columns:,} columns of random effects, {problem.searched.system.t:,} of them crossed. Less with "
        "fewer levels, or with intercepts in place of slopes, such as (1 | g) for (x | g)."
    )
