"""What each source of variation of a table of runs is, in words."""

from __future__ import annotations

from lmemtest.bench.variation.run_layout import (
    ALGORITHM,
    BENCHMARK,
    CONDITION,
    EVERYTHING,
    FAMILIES,
    SEED,
    RunLayout,
)
from lmemtest.core.words import GROUPS, plural, spoken
from lmemtest.lmm.intervals.balanced import Factors


def source_words(layout: RunLayout, factors: Factors) -> tuple[str, str]:
    """Kind and meaning of a source of the means of the runs."""
    if factors == EVERYTHING:
        alone = not any({ALGORITHM, BENCHMARK} <= term for term in layout.terms[:-1])
        more = ", and advantages that change between benchmarks" if alone else ""
        return "run", GROUPS["run"][1].format(noun=layout.unit) + more
    if SEED in factors:
        return "seed", GROUPS["seed"][1].format(where=f" on one {layout.unit}")
    condition = layout.label(factors & {CONDITION})
    if BENCHMARK not in factors and factors & {*layout.families}:
        return _family_words(layout, factors)
    if BENCHMARK not in factors:
        if CONDITION not in factors:
            return "algorithm", "means of the algorithms"
        advantages = f"advantages of algorithms that change with {condition}"
        return "condition", advantages if ALGORITHM in factors else f"means at the levels of {condition}"
    kind = "interaction" if ALGORITHM in factors else "benchmark"
    if layout.crosses_families and factors & {*layout.families}:
        condition = layout.label(factors & {CONDITION, *layout.families}).replace(":", " and ")
    elif CONDITION not in factors:
        within = f" of one {spoken(_finest(layout))}" if layout.families and not layout.crosses_families else ""
        return kind, GROUPS[kind][1].format(noun="benchmark", within=within)
    if kind == "interaction":
        return kind, f"advantages of algorithms that change with {condition} on a benchmark"
    return kind, f"levels that change with {condition} on a benchmark (the same for all algorithms)"


def _finest(layout: RunLayout, factors: Factors | None = None) -> str:
    """The column of the finest families, of those among some factors."""
    roles = [role for role in layout.families if factors is None or role in factors]
    return layout.columns[roles[-1]][-1]


def _family_words(layout: RunLayout, factors: Factors) -> tuple[str, str]:
    kind, families = "family_interaction" if ALGORITHM in factors else "family", plural(_finest(layout, factors))
    if CONDITION not in factors:
        return kind, GROUPS[kind][1].format(noun=families)
    condition = layout.label(factors & {CONDITION})
    if ALGORITHM in factors:
        return kind, f"advantages of algorithms that change with {condition} and between {families}"
    return kind, f"levels that change with {condition} and between {families} (the same for all algorithms)"


def curve_words(layout: RunLayout, factors: Factors) -> str:
    """Meaning of a source of the curves of the runs over the budget."""
    if not factors:
        return "the curve over the budget that all runs share"
    if factors == EVERYTHING:
        return "a run's own curve"
    if SEED in factors:
        return "curves that all runs with one seed share"
    who = "advantages of algorithms" if ALGORITHM in factors else "levels"
    of_families = factors & {*FAMILIES} and BENCHMARK not in factors
    where = f" and between {plural(_finest(layout, factors))}" if of_families else ""
    if CONDITION in factors:
        on = " on a benchmark" if BENCHMARK in factors else where
        where = f" and with {layout.label(factors & {CONDITION})}{on}"
    elif BENCHMARK in factors:
        where = " and between benchmarks"
    return f"{who} that change over the budget{where}"
