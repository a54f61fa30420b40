"""The random effects that the roles of a table call for, from coarse to fine, and those that its rows can show."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from lmemtest.bench.modelling import identify
from lmemtest.bench.modelling.reading import factor_term
from lmemtest.bench.modelling.shared_seeds import SharedSeeds, seeds_cross, shared_seeds
from lmemtest.errors import DesignError
from lmemtest.lmm.formula import Bar
from lmemtest.lmm.formula.tokens import quote_name

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.modelling.population import Population

# Beyond this the covariances of the effects at the levels of a metafeature (10 for four) eat the benchmarks.
_MOST_CONDITIONS, _FEWEST_BENCHMARKS = 4, 6


def candidates(runs: Runs, population: Population) -> list[Bar]:
    """Random effects from coarse to fine; each is nested in none that follows."""
    study, algorithm, seed = runs.study, runs.algorithm, runs.seed
    instance = study.instance
    out: list[Bar] = []
    for families in population.families:
        out += [Bar.of(families), Bar.of((*families, algorithm))]
    shown = condition(runs)
    if shown is not None:
        effects = (factor_term(shown, runs),)
        out += [Bar.of(instance[:1], effects), Bar.of((*instance[:1], algorithm), effects)]
    elif study.several_benchmarks:
        in_families = instance[: 1 + len(study.crossed)]
        for places in dict.fromkeys([instance[:1], in_families, instance]):
            out += [Bar.of(places), Bar.of((*places, algorithm))]
    if seed is not None:
        out.append(Bar.of((*instance, seed)))
        if runs.budget is not None:
            out.append(Bar.of((*instance, algorithm, seed)))
    several_budgets = runs.budget is not None and study.count(runs.budget) > 1
    if several_budgets and study.several_benchmarks and study.scored_alike:
        out += [Bar.of((*instance, str(runs.budget))), Bar.of((*instance, algorithm, str(runs.budget)))]
    return out


def crossed_seeds(runs: Runs) -> tuple[list[Bar], SharedSeeds | None, list[str]]:
    """The terms of what runs with the same seed share on all benchmarks and its test; or why it is not identified."""
    if not runs.study.several_benchmarks or not seeds_cross(runs):
        return [], None, []
    seed = str(runs.seed)
    pair = Bar.of((seed, runs.algorithm))
    try:
        found = shared_seeds(runs)
    except DesignError as error:
        return [], None, [f"{pair}: {str(error).removesuffix('.')}."]
    return [Bar.of((seed,)), pair] if found.verdict != "not shown" else [], found, []


def left_out_by_test(runs: Runs, seeds: SharedSeeds | None) -> tuple[str, ...]:
    """The term of an effect of seeds that was tested and is not in the model."""
    if seeds is None or seeds.verdict != "not shown":
        return ()
    pair = Bar.of((str(runs.seed), runs.algorithm))
    return (
        f"{pair}: runs of an algorithm with the same seed show no common deviation across benchmarks ({seeds.test}). "
        f"That is not evidence that there is none: a weak one may be missed. The term is held where p < "
        f"{seeds.level:g}.",
    )


def condition(runs: Runs) -> str | None:
    """The one metafeature whose levels are conditions that benchmarks go through, if its effects are identified."""
    study, instance = runs.study, runs.study.instance
    if not study.several_benchmarks or len(instance) != 2 or study.crossed:
        return None
    benchmark, metafeature = instance
    levels, benchmarks = len(runs.levels(metafeature)), len(runs.levels(benchmark))
    cells = study.count(benchmark, metafeature, runs.algorithm)
    most = 2 * study.count(*instance) > (1 + levels) * benchmarks  # most benchmarks have most levels
    identified = levels <= _MOST_CONDITIONS and benchmarks >= _FEWEST_BENCHMARKS and cells < runs.n_rows
    return metafeature if most and identified else None


def identified(runs: Runs, candidates: list[Bar], blocks: tuple[str, ...]) -> tuple[list[Bar], list[str]]:
    """The candidates that the numbers of their groups allow; the groups of `blocks` have fixed effects."""
    kept: dict[Bar, int] = {}
    left_out = []
    n_blocks = runs.study.count(*blocks) if blocks else 0
    for bar in candidates:
        groups = set(bar.groups)
        of_benchmarks = groups <= {*blocks, *runs.family}
        if blocks and of_benchmarks and runs.study.count(*blocks, *bar.groups) == n_blocks:
            continue
        levels = runs.study.count(*bar.groups)
        width = prod(len(runs.levels(column)) for effect in bar.slopes for column in effect.columns)
        same = next((k for k, n in kept.items() if set(k.groups) < groups and n == levels), None)
        if reason := identify.of_groups(bar, levels, width, runs.n_rows):
            left_out.append(f"{reason[0].upper()}{reason[1:]}")
        elif set(blocks) < groups and levels == n_blocks:
            left_out.append(
                f"{bar}: its groups are those of {':'.join(map(quote_name, blocks))}, whose effects are fixed."
            )
        elif same is not None:
            left_out.append(f"{bar}: its groups are those of {same}, which takes its place.")
        else:
            kept[bar] = levels
    return list(kept), left_out
