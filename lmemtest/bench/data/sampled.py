"""What a table of runs is a sample of: families of benchmarks where there are enough of them, else benchmarks.

A question about benchmarks "like these" treats whatever shares a benchmark as one observation. Where benchmarks come
in families the same question is one about families, with the benchmarks as what varies within them; so the runs with
the families in the place of the benchmarks answer it, and nothing else about a study has to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmemtest.core.caller import advice
from lmemtest.core.words import plural, span, spoken

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

__all__ = ["FEWEST_FAMILIES", "Sampled", "of_these_families", "sampled"]

# With fewer, variances between families are those of three differences at most: no sample unless it is asked for. The
# sizes behind it are in docs/families.md.
FEWEST_FAMILIES = 5


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Runs whose benchmarks are the sample.

    Attributes
    ----------
    runs : Runs
        As given; or with the families as the benchmarks, and the benchmarks among the metafeatures.
    noun : {"family", "benchmark"}
        What the sample is one of.
    notes : tuple of str
        For which population claims hold, where the runs have families.
    weights : tuple of str
        How much each family counts in a mean over them.
    families : tuple of tuple of str
        The levels of families that are the sample, from coarse to fine, each by its columns; none where benchmarks are.
    """

    runs: Runs
    noun: str
    notes: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    families: tuple[tuple[str, ...], ...] = ()

    @property
    def column(self) -> str | None:
        """What tells the sample apart; None without benchmarks."""
        return self.runs.benchmark

    @property
    def nouns(self) -> str:
        """The plural."""
        return plural(self.noun)


def sampled(runs: Runs) -> Sampled:
    """The runs as a sample: of the coarsest families of which there are `FEWEST_FAMILIES`, else of benchmarks.

    >>> from lmemtest.bench.data.runs import Runs
    >>> table = {"tool": ["A", "B"] * 10, "task": [t for t in "abcdefghij" for _ in "AB"], "loss": range(20),
    ...          "space": [s for s in "uvwxy" for _ in range(4)]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", family="space")
    >>> found = sampled(runs)
    >>> found.noun, found.runs.benchmark, found.runs.metafeatures
    ('family', 'space', ('task',))
    """
    study = runs.study
    if not study.families:
        return Sampled(runs=runs, noun="benchmark")
    enough = enough_families(runs)
    if not enough:
        return Sampled(runs=runs, noun="benchmark", notes=(_too_few(runs, study.families[-1][-1]),))
    name, benchmark = enough[0][-1], str(runs.benchmark)
    within = (*(other for other in study.crossed if other != name), benchmark, *runs.metafeatures)
    found = runs.restricted(runs.frame, study.seen((*study.columns,)), benchmark=name, family=(), metafeatures=within)
    return Sampled(
        runs=found,
        noun="family",
        notes=_notes(runs, name, [level[-1] for level in study.families if level not in enough]),
        weights=(_weights(runs, name),),
        families=enough,
    )


def enough_families(runs: Runs, fewest: int = FEWEST_FAMILIES) -> tuple[tuple[str, ...], ...]:
    """The levels of families of which there are so many, from coarse to fine, each by its columns."""
    return tuple(level for level in runs.study.families if runs.study.count(*level) >= fewest)


def of_these_families(runs: Runs) -> tuple[str, ...]:
    """Where runs have families: for whom a study holds that takes their benchmarks as independent."""
    if not runs.study.families:
        return ()
    benchmarks, families = plural(str(runs.benchmark)), plural(runs.study.families[-1][-1])
    rank = advice("rank")
    return (
        f"Families are not in it: {benchmarks} count as independent, whatever they share, so conclusions apply to "
        f"new {benchmarks} of these {families}, not to new {families}. {rank} takes families as the sample where "
        "there are enough of them.",
    )


def _too_few(runs: Runs, name: str) -> str:
    families, benchmarks = plural(name), plural(str(runs.benchmark))
    return (
        f"There are too few {families} to be a sample ({runs.study.count(name)}; {FEWEST_FAMILIES} or more are taken "
        f"for one), so conclusions apply to new {benchmarks} of these {families}, not to new {families}."
    )


def _weights(runs: Runs, name: str) -> str:
    seen = runs.study.distinct([name, *runs.study.instance[: 1 + len(runs.study.crossed)]])
    sizes = seen.groupby(name, observed=True).size()
    number, benchmark = span(float(sizes.min()), float(sizes.max())), str(runs.benchmark)
    of_one = spoken(benchmark) if sizes.max() == 1 else plural(benchmark)
    return f"Each {spoken(name)} counts the same, with the mean over its {number} {of_one}."


def _notes(runs: Runs, name: str, coarser: list[str]) -> tuple[str, ...]:
    study, families, benchmarks = runs.study, plural(name), plural(str(runs.benchmark))
    of_these = "".join(f" of these {study.count(other)} {plural(other)}" for other in coarser[-1:])
    notes = [
        f"The {study.count(name)} {families} are the sample: conclusions apply to new {families}{of_these}. For new "
        f"{benchmarks} of these {families}: {advice('no_family')}."
    ]
    if name in study.crossed:
        notes.append(
            f"Some {benchmarks} are in several {families}, which count as independent all the same: an advantage that "
            f"goes with such a {spoken(str(runs.benchmark))} in all of its {families} is not counted as chance."
        )
    return tuple(notes)
