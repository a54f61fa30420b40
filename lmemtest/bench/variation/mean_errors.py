"""What one run, one benchmark and one family of benchmarks add to the error of an algorithm's mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.variation.run_layout import ALGORITHM, BENCHMARK, CONDITION, EVERYTHING, SEED, RunLayout
from lmemtest.lmm.intervals.balanced import Factors

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = (
    *("family_variance", "benchmark_variance", "run_variance"),
    *("shared_family_variance", "shared_benchmark_variance", "shared_seed_variance"),
)


def errors_of_a_mean(variances: Mapping[Factors, float], layout: RunLayout) -> dict[str, float]:
    """Variances of the error of an algorithm's mean over the conditions, which stay as they are, by `NAMES`.

    Where families are the sample, a family has finer families as often as those of the study; "shared" is what all
    algorithms have in common.
    """
    totals = dict.fromkeys(NAMES, 0.0)
    for factors, variance in variances.items():
        own = "" if ALGORITHM in factors else "shared_"
        if factors == EVERYTHING:
            name, count = "run_variance", 1.0
        elif SEED in factors:
            name, count = "shared_seed_variance", 1.0
        elif BENCHMARK in factors:
            name, count = f"{own}benchmark_variance", 1.0
        else:
            roles = [role for role in layout.families if role in factors]
            name, count = f"{own}family_variance", each_holds(layout, roles)
        totals[name] += variance / count / (layout.n_conditions if CONDITION in factors else 1)
    return totals


def each_holds(layout: RunLayout, roles: list[str]) -> float:
    """Groups by these roles in each of the coarsest families: the harmonic mean of their number."""
    groups = layout.frame[roles].drop_duplicates().groupby(roles[0], observed=True).size()
    if groups.min() == groups.max():  # exact, which a sum of reciprocals is not
        return float(groups.iloc[0])
    return float(len(groups) / (1.0 / groups).sum())
