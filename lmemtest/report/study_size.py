"""Which differences a study of this size could find, and what more benchmarks or runs would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._rounding import at_most
from lmemtest._table import ResultTable
from lmemtest.errors import ArgumentError
from lmemtest.inference.power.components import components_of
from lmemtest.inference.power.power import power
from lmemtest.report.document import Code, Section, TableBlock, paragraph
from lmemtest.words import MISSING, counted, format_number, percent

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

TITLE = "What this study could find"
POWER = 0.8


def study_size_section(analysis: Analysis) -> Section | None:
    """The smallest difference that is found with 80 % power; None where all is decided or the model tells nothing."""
    k, n_benchmarks = len(analysis.separation.levels), analysis.n_benchmarks
    n_open = k * (k - 1) // 2 - int(np.triu(analysis.separation.significant.to_numpy(dtype=bool), 1).sum())
    if analysis.incomparable or n_benchmarks < 2 or n_open == 0:
        return None
    try:
        components = components_of(analysis.fit)
    except ArgumentError:  # no study of benchmarks and runs alone, as with budgets in the model
        return None
    if components.pilot is not None and components.pilot.n_families:  # its benchmarks share families
        return None
    given = components.pilot.n_seeds if components.pilot else 1.0
    runs = max(1, round(given))
    planned = power(
        components,
        effect=0.0,
        n_benchmarks=(n_benchmarks, 2 * n_benchmarks),
        n_seeds=(runs, 2 * runs),
        n_algorithms=k,
        alpha=analysis.alpha,
        method="closed_form",
    ).detectable(POWER)
    smallest = planned.table.set_index(["n_benchmarks", "n_seeds"])
    sizes = [(n_benchmarks, runs), (2 * n_benchmarks, runs), (n_benchmarks, 2 * runs)]
    now, wider, deeper = (format_number(float(smallest.loc[size, "effect"])) for size in sizes)
    about = "" if abs(given - runs) < 1e-6 else "about "
    size = f"{counted(n_benchmarks, 'benchmark')} with {about}{counted(runs, 'run')} of each algorithm"
    what = f"{n_open} of the {k * (k - 1) // 2} differences between algorithms {'is' if n_open == 1 else 'are'}"
    what = "The difference between the algorithms is" if k == 2 else what
    text = (
        f"{what} not significant. If the variances are as estimated, a study of this size "
        f"({size}) finds a true difference of {now} in {percent(POWER)} of the cases, and smaller ones less often. "
        f"With twice as many benchmarks that would be {wider}, with twice as many runs {deeper}. What was observed is "
        "not the true difference: decide which difference matters, and plan for that. "
    )
    how = (Code("lmemtest.power"), " has the power of any other study, ", Code("lmemtest.plan"), " the cheapest one.")
    return Section("size", TITLE, (paragraph(text, *how), TableBlock(_table(sizes, components, smallest))))


def _table(sizes: list[tuple[int, int]], components: Any, smallest: pd.DataFrame) -> ResultTable:
    rows, ends = [], smallest[["effect", "ci_low", "ci_high"]]
    for what, size in zip(("this study", "twice the benchmarks", "twice the runs"), sizes, strict=True):
        effect, low, high = ends.loc[[size]].to_numpy(dtype=float)[0]
        interval = MISSING if np.isnan(low) else f"{format_number(low)} to {format_number(high)}"
        rows.append((what, *size, (components.of_difference(size[1]) / size[0]) ** 0.5, effect, interval))
    names = ["study", "benchmarks", "runs", "SE of a difference", "smallest difference", "95 % CI"]
    notes = [
        f"Smallest difference: what is found with {percent(POWER)} power by Tukey's test for all pairs, each algorithm "
        "on each benchmark with the same seeds; its interval is due to the variances, which are estimates."
    ]
    if at_most(components.advantage_sd, 0.0):
        notes.append(
            "Advantages are estimated not to change between benchmarks, as they often are with few benchmarks where "
            "they do: then all differences here are too small, and more runs help less than more benchmarks."
        )
    notes += components.notes
    return ResultTable(
        "Differences of two means",
        pd.DataFrame(rows, columns=names),
        tuple(notes),
        dict.fromkeys(names[3:5], format_number),
    )
