"""What a reader must know about the scope of a recommended model: of benchmarks, seeds and kinds of algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.modelling.relative import has_baseline, of_baseline
from lmemtest.core.caller import advice
from lmemtest.core.words import plural, spoken
from lmemtest.lmm.formula.tokens import quote_name

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.modelling.population import Population
    from lmemtest.bench.modelling.shared_seeds import SharedSeeds
    from lmemtest.lmm.formula import Bar


def scope(
    runs: Runs, blocks: tuple[str, ...], kept: list[Bar], population: Population, of_seeds: SharedSeeds | None
) -> list[str]:
    """What a reader must know: of benchmarks, then of seeds, then of kinds of algorithms."""
    notes = [*population.notes, *_of_benchmarks(runs, blocks)]
    pair = {str(runs.seed), runs.algorithm}
    if of_seeds is not None and any(set(bar.groups) == pair for bar in kept):
        own = advice("seed_own")
        if of_seeds.verdict == "shown":
            notes.append(
                f"Runs of an algorithm with the same seed deviate together on all benchmarks ({of_seeds.test}), so the "
                f"{of_seeds.n_seeds} seeds are a sample, too: more benchmarks alone do not make the answer more "
                f"certain, more seeds do. If seeds only number the repetitions on a benchmark, say so: {own}."
            )
        else:
            notes.append(
                "Runs of an algorithm with the same seed may deviate together on all benchmarks. That is not shown "
                f"({of_seeds.test}), and the model allows for it as a precaution, because a weak effect would be "
                f"missed too often. If seeds only number the repetitions on a benchmark, say so: {own}."
            )
        if of_seeds.n_seeds == 2:
            notes.append(
                "With two seeds this is estimated from very little: in simulations a nominal 5 % was up to 12 %."
            )
    if runs.study.properties:
        notes.append(
            f"Each algorithm has one value of {' and '.join(runs.study.properties)}, which tells kinds of algorithms "
            "apart and not circumstances of their runs, so it is not in the model."
        )
    return notes


def _of_benchmarks(runs: Runs, blocks: tuple[str, ...]) -> list[str]:
    if runs.benchmark is None or not runs.study.several_benchmarks:
        here = "There is one benchmark" if runs.benchmark is not None else "No benchmark column was named"
        return [
            f"{here}, so the answer holds for what was measured and says nothing about other benchmarks. "
            "More seeds do not change that; more benchmarks do."
        ]
    notes = []
    if blocks and has_baseline(runs):
        notes += of_baseline(runs)
    elif blocks:
        notes.append(
            "Scores are relative to the benchmark (ranks, for instance): what one algorithm gains there others lose, "
            "so algorithms are compared within benchmarks."
        )
    benchmarks = len(runs.levels(runs.benchmark))
    if benchmarks < 6:
        notes.append(
            f"There are only {benchmarks} benchmarks: differences between benchmarks are estimated poorly, and only "
            "large and consistent advantages can be detected."
        )
    kinds = [name for name in runs.study.kinds if 2 * runs.study.count(name) <= benchmarks]
    if kinds and not blocks:
        question = f"{quote_name(runs.algorithm)!r}, {quote_name(kinds[0])!r}"
        notes.append(
            f"Each benchmark has one level of {' and '.join(kinds)}, which tells kinds of benchmarks apart and is not "
            "in the model. To ask whether kinds differ in who is better: "
            f"lmemtest.ModelBuilder(runs).recommended().interaction({question})."
        )
    conditions, crossed = runs.study.conditions, runs.study.crossed
    if conditions:
        notes.append(
            f"Benchmarks count as the sample. The instances of one benchmark ({' x '.join(runs.study.instance)}) share "
            f"it, so more levels of {' and '.join(conditions)} do not make the answer surer for new benchmarks."
        )
    if crossed:
        notes.append(
            f"The same {spoken(str(runs.benchmark))} occurs in several {' and '.join(map(plural, crossed))}: what an "
            "algorithm gains on it is shared there, so it does not count as a new one each time."
        )
    return notes
