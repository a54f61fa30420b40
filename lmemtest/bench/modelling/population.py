"""For which population a comparison is made: new families of benchmarks, new benchmarks of these, or new runs.

The sample decides what the error of a comparison is made of. Where benchmarks come in families (search spaces, suites)
an algorithm's advantage is shared by the benchmarks of a family, so that a claim about further families is as sure as
the number of families allows; a claim about further benchmarks of these families is surer, and says less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.core.caller import advice, named
from lmemtest.core.validate import check_choice
from lmemtest.core.words import plural, spoken
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

    Level = tuple[str, ...]

POPULATIONS = ("family", "benchmark")
# A variance between two families has one degree of freedom, which no comparison survives.
_FEWEST_ASKED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What is the sample, and what that makes of the claims.

    Attributes
    ----------
    role : {"family", "benchmark", "run"}
        What counts as the sample.
    families : tuple of tuple of str
        Levels of families with random effects, from coarse to fine, each by its columns; empty unless they are the
        sample.
    fixed : str or None
        Column of the families that have means of their own, where benchmarks are the sample within them.
    claim : str
        What a claim is about, such as "new tasks of these 16 search spaces".
    left_out : tuple of str
        Levels of families that are too few to be a sample.
    notes : tuple of str
    """

    role: Literal["family", "benchmark", "run"]
    families: tuple[Level, ...] = ()
    fixed: str | None = None
    claim: str
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: Runs, wanted: str | None = None) -> Population:
        """The population that was asked for; by default families where there are enough of them."""
        if wanted is not None:
            check_choice(wanted, "population", POPULATIONS)
            _require(runs, wanted)
        if not runs.study.several_benchmarks:
            return cls(role="run", claim="these benchmarks" if runs.benchmark is None else _these(runs, runs.benchmark))
        enough, few = _by_number(runs, _FEWEST_ASKED if wanted == "family" else FEWEST_FAMILIES)
        if wanted == "benchmark" or not enough:
            return _of_benchmarks(runs, few if wanted is None else ())
        over = f" of {_these(runs, few[-1][-1])}" if few else ""
        claim = f"new {plural(enough[0][-1])}{over}"
        n, name = runs.study.count(*enough[0]), plural(enough[0][-1])
        notes = [
            f"{name[0].upper()}{name[1:]} count as the sample ({n} of them), so the answer holds for {claim}. More "
            f"{plural(str(runs.benchmark))} of the same {name} make it little surer; more {name} do. "
            f"{advice('value', name='population', value='benchmark')} asks about new {plural(str(runs.benchmark))} of "
            f"these {name}."
        ]
        if n < FEWEST_FAMILIES:
            notes.append(
                f"With {n} {name} the variance between them is estimated from very little: only large and consistent "
                "advantages can be detected."
            )
        return cls(
            role="family",
            families=enough,
            claim=claim,
            left_out=tuple(_too_few(runs, level) for level in few),
            notes=tuple(notes),
        )


def _by_number(runs: Runs, fewest: int) -> tuple[tuple[Level, ...], tuple[Level, ...]]:
    """Levels of families that are enough for a sample, and those that are too few."""
    levels = runs.study.families
    enough = tuple(level for level in levels if runs.study.count(*level) >= fewest)
    return enough, tuple(level for level in levels if level not in enough)


def _of_benchmarks(runs: Runs, few: tuple[Level, ...]) -> Population:
    """Benchmarks are the sample, within the finest families that can have means of their own."""
    tasks = plural(str(runs.benchmark))
    levels = runs.study.families
    if not levels:
        return Population(role="benchmark", claim=f"new {tasks}", notes=_of_no_families(runs))
    finest = levels[-1][-1]
    claim = f"new {tasks} of {_these(runs, finest)}"
    fixed = next((level[-1] for level in reversed(levels) if _why_no_means(runs, level) is None), None)
    spaces = plural(finest)
    if few:
        start = (
            f"There are too few {spaces} to be a sample ({runs.study.count(*few[-1])}; {FEWEST_FAMILIES} or more are "
            f"taken for one), so the answer holds for {claim} and says nothing about other {spaces}."
        )
    else:
        start = f"The answer holds for {claim}, and says nothing about other {spaces}."
    if fixed is not None:
        how = (
            f" Each level of {fixed} has means of its own, and the mean of an algorithm is over them, each weighted by "
            f"its number of {tasks}."
        )
    else:
        how = f" {spaces[0].upper()}{spaces[1:]} are not in the model, because {_why_no_means(runs, levels[-1])}."
    return Population(role="benchmark", fixed=fixed, claim=claim, notes=(start + how,))


def _why_no_means(runs: Runs, level: Level) -> str | None:
    """Why these families have no means of their own, and what that makes of the claim; None where they have."""
    study, column, tasks = runs.study, level[-1], plural(str(runs.benchmark))
    alike = f"{tasks} count as drawn from all {plural(column)} alike"
    cells = study.distinct([column, runs.algorithm, str(runs.benchmark)])
    sizes = cells.groupby([column, runs.algorithm], observed=True).size()
    if len(sizes) != study.count(column) * study.count(runs.algorithm):
        return (
            f"some algorithm has no runs in some of them: {alike}, so a comparison with it is fair only if its "
            f"advantage in the {plural(column)} without its runs is no other than in the rest"
        )
    if sizes.min() > 1:
        return None
    return f"some have too few {tasks} for means of their own: {alike}, which is on the safe side"


def _require(runs: Runs, wanted: str) -> None:
    """Refuse a population that these runs cannot be a sample of."""
    study = runs.study
    study.require("benchmark", f"{plural(wanted)} cannot be a sample")
    if not study.several_benchmarks:
        raise DesignError(
            f"population={wanted!r} needs several benchmarks, and the runs have one level of {runs.benchmark!r}: the "
            "answer holds for it alone. Leave population out, or bring more benchmarks."
        )
    if wanted != "family":
        return
    if not runs.family:
        raise ArgumentError(
            "population='family' needs runs with families of benchmarks, and no column is named as their family. "
            f"Name it: {advice('role', role='family')}. Columns: {', '.join(runs.columns)}."
        )
    if not study.families:
        raise DesignError(
            f"population='family' is not possible: {' '.join(_of_no_families(runs))} Leave {named('population')} out: "
            f"the answer then holds for new {plural(str(runs.benchmark))}."
        )
    if not _by_number(runs, _FEWEST_ASKED)[0]:
        level = study.families[-1]
        raise DesignError(
            f"population='family' needs {_FEWEST_ASKED} families or more, and there are {study.count(*level)} levels "
            f"of {':'.join(level)}. Take {advice('value', name='population', value='benchmark')} for claims about "
            "these, or bring benchmarks of others."
        )


def _of_no_families(runs: Runs) -> tuple[str, ...]:
    """Why the families that were named are none."""
    reasons = []
    for name in runs.family:
        n = runs.study.count(name)
        why = (
            "has one level, so it says nothing about other families"
            if n == 1
            else f"holds one benchmark in each of its {n} levels, so the benchmarks themselves are the families"
        )
        reasons.append(f"The family {name!r} {why}: it is not in the model.")
    return tuple(reasons)


def _too_few(runs: Runs, level: Level) -> str:
    name = ":".join(level)
    return (
        f"(1 | {name}) and (1 | {name}:{runs.algorithm}): there are {runs.study.count(*level)} levels of {name}, too "
        f"few for a variance between them, so the answer says nothing about other {plural(level[-1])}."
    )


def _these(runs: Runs, column: str) -> str:
    n = runs.study.count(column)
    return f"these {n} {plural(column)}" if n > 1 else f"this {spoken(column)}"
