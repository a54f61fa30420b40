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
from lmemtest.core.words import MISSING, format_number
from lmemtest.errors import ArgumentError
from lmemtest.report.document import Section
from lmemtest.report.prose import sentences_of, texts

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
    text = texts(
        "sections.size",
        k=k,
        n_open=n_open,
        n_pairs=k * (k - 1) // 2,
        size=size,
        about={name for name, number in given.items() if abs(number - size[name]) >= 1e-6},  # numbers that differ
        effects=[format_number(effect) for effect in effects],
        power=POWER,
        nouns=_nouns(size),
        needed=_families_for(0.5 * effects[0], components, size, k, analysis.alpha) if families else None,
    )
    return Section("size", TITLE, (*text, _table(sizes, components, smallest)))


def _nouns(size: Iterable[str]) -> list[str]:
    """The words for numbers of a design."""
    of_each = "benchmarks of each" if "n_families" in size else "benchmarks"
    return [{"n_families": "families", "n_benchmarks": of_each, "n_seeds": "runs"}[name] for name in size]


def _families_for(effect: float, components: VarianceComponents, size: dict[str, Any], k: int, alpha: float) -> int:
    """How many families a difference takes."""
    study = power(components, effect=effect, **size, n_algorithms=k, alpha=alpha, method="closed_form")
    return int(study.needed(POWER).table["n_families"].iloc[0])


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
    by_family = "n_families" in sizes[0]
    sd = components.family_interaction_sd or 0.0 if by_family else components.advantage_sd
    notes = sentences_of("sections.size_notes", power=POWER, by_family=by_family, zero=at_most(sd, 0.0))
    return ResultTable(
        "Differences of two means",
        pd.DataFrame(rows, columns=["study", *counts, *measures, "95 % CI"]),
        (*notes, *components.notes),
        dict.fromkeys(measures, format_number),
    )
