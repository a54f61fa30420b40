"""Which differences a study of this size could find, and what more benchmarks or runs would change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.power.components import VarianceComponents
from lmemtest.bench.power.draw import StudyDesign
from lmemtest.bench.power.power import power
from lmemtest.core.rounding import at_most
from lmemtest.core.table import ResultTable
from lmemtest.core.words import MISSING, counted, format_number, percent
from lmemtest.errors import ArgumentError
from lmemtest.report.document import Code, Section, TableBlock, paragraph

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

TITLE = "What this study could find"
POWER = 0.8


def study_size_section(analysis: Analysis) -> Section | None:
    """The smallest difference that is found with 80 % power; None where all is decided or the model tells nothing."""
    k, n_benchmarks = len(analysis.decisions.levels), analysis.n_benchmarks
    n_open = k * (k - 1) // 2 - int(np.triu(analysis.decisions.significant.to_numpy(dtype=bool), 1).sum())
    if analysis.incomparable or n_benchmarks < 2 or n_open == 0:
        return None
    if analysis.runs.study.crossed:  # its benchmarks are in several families, those of a planned study in one
        return None
    try:
        components = VarianceComponents.of(analysis.fit)
    except ArgumentError:  # no study of benchmarks and runs alone, as with budgets in the model
        return None
    families = components.pilot.n_families if components.pilot else None
    given = {"n_seeds": components.pilot.n_seeds if components.pilot else 1.0}
    if families:
        given = {"n_benchmarks": n_benchmarks / families, **given}
    size: dict[str, Any] = {"n_families": families} if families else {"n_benchmarks": n_benchmarks}
    size |= {name: max(1, round(number)) for name, number in given.items()}
    both: dict[str, Any] = {name: (number, 2 * number) for name, number in size.items()}
    planned = power(
        components,
        effect=0.0,
        **both,
        n_algorithms=k,
        alpha=analysis.alpha,
        method="closed_form",
    ).detectable(POWER)
    smallest = planned.table.set_index(list(size))
    sizes = [size, *({**size, name: 2 * number} for name, number in size.items())]
    effects = [float(smallest.loc[tuple(of.values()), "effect"]) for of in sizes]
    now, *larger = map(format_number, effects)
    what = f"{n_open} of the {k * (k - 1) // 2} differences between algorithms {'is' if n_open == 1 else 'are'}"
    what = "The difference between the algorithms is" if k == 2 else what
    twice = [f"with twice as many {noun}" for noun in _nouns(size)]
    wider = f"{twice[0].capitalize()} that would be {larger[0]}"
    deeper = [f"{words} {effect}" for words, effect in zip(twice[1:], larger[1:], strict=True)]
    text = (
        f"{what} not significant. If the variances are as estimated, a study of this size "
        f"({_said(size, given)}) finds a true difference of {now} in {percent(POWER)} of the cases, and smaller ones "
        f"less often. {wider}, {', '.join(deeper)}. {_more_families(components, size, effects[0], k, analysis.alpha)}"
        "What was observed is not the true difference: decide which difference matters, and plan for that. "
    )
    how = (Code("lmemtest.power"), " has the power of any other study, ", Code("lmemtest.plan"), " the cheapest one.")
    return Section("size", TITLE, (paragraph(text, *how), TableBlock(_table(sizes, components, smallest))))


def _nouns(size: Iterable[str]) -> list[str]:
    """The words for numbers of a design."""
    of_each = "benchmarks of each" if "n_families" in size else "benchmarks"
    return [{"n_families": "families", "n_benchmarks": of_each, "n_seeds": "runs"}[name] for name in size]


def _said(size: dict[str, int], given: dict[str, float]) -> str:
    """The size of a study; numbers that differ are rounded."""
    about = {name: "" if abs(number - size[name]) < 1e-6 else "about " for name, number in given.items()}
    runs = f"{about['n_seeds']}{counted(size['n_seeds'], 'run')} of each algorithm"
    if "n_families" not in size:
        return f"{counted(size['n_benchmarks'], 'benchmark')} with {runs}"
    benchmarks = f"{about['n_benchmarks']}{counted(size['n_benchmarks'], 'benchmark')}"
    return f"{counted(size['n_families'], 'family')} of {benchmarks} with {runs}"


def _more_families(components: VarianceComponents, size: dict[str, Any], effect: float, k: int, alpha: float) -> str:
    """How many families half of a difference takes."""
    if "n_families" not in size:
        return ""
    half = power(components, effect=0.5 * effect, **size, n_algorithms=k, alpha=alpha, method="closed_form")
    needed = half.needed(POWER).table["n_families"].iloc[0]
    return f"Half of {format_number(effect)} takes {needed:,} families like these. "


def _table(sizes: list[dict[str, int]], components: VarianceComponents, smallest: pd.DataFrame) -> ResultTable:
    rows, ends = [], smallest[["effect", "ci_low", "ci_high"]]
    studies = ["this study", *(f"twice the {noun}" for noun in _nouns(sizes[0]))]
    for what, size in zip(studies, sizes, strict=True):
        effect, low, high = ends.loc[[tuple(size.values())]].to_numpy(dtype=float)[0]
        interval = MISSING if np.isnan(low) else f"{format_number(low)} to {format_number(high)}"
        design = StudyDesign(n_algorithms=2, **size)
        rows.append((what, *size.values(), design.se(components), effect, interval))
    counts = _nouns(sizes[0])
    measures = ["SE of a difference", "smallest difference"]
    of_each = ", each family with as many benchmarks as families have on average" if "n_families" in sizes[0] else ""
    notes = [
        f"Smallest difference: what is found with {percent(POWER)} power by Tukey's test for all pairs, each algorithm "
        f"on each benchmark with the same seeds{of_each}; its interval is due to the variances, which are estimates."
    ]
    of_families = "n_families" in sizes[0]
    top = components.family_interaction_sd or 0.0 if of_families else components.advantage_sd
    if at_most(top, 0.0):
        units = "families" if of_families else "benchmarks"
        notes.append(
            f"Advantages are estimated not to change between {units}, as they often are with few {units} where "
            f"they do: then all differences here are too small, and more runs help less than more {units}."
        )
    notes += components.notes
    return ResultTable(
        "Differences of two means",
        pd.DataFrame(rows, columns=["study", *counts, *measures, "95 % CI"]),
        tuple(notes),
        dict.fromkeys(measures, format_number),
    )
