"""Does the verdict hold elsewhere: the same pairs by other scores, populations, policies for failed runs and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.core.table import ResultTable
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import joined
from lmemtest.report.document import Block, Section
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.core.arrays import Codes
    from lmemtest.report.analysis import Analysis

MOST_NAMED = 6  # algorithms in a cell


@dataclass(frozen=True, slots=True)
class Way:
    """The pairs in another way: how many are decided otherwise, of how many, and who is worse than the best."""

    name: str
    changed: int
    total: int
    significant: int
    worse: tuple[str, ...]


def ways(analysis: Analysis) -> tuple[Way, ...]:
    """Other analyses of the same runs, each beside the decisions of the report."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        return ()
    found = []
    for variants in (analysis.agreement, analysis.populations, analysis.sensitivity, analysis.classical):
        found += _ways_of(variants, analysis) if variants is not None else []
    return tuple(found)


def _ways_of(variants: Variants, analysis: Analysis) -> list[Way]:
    """Every way but the one of the report, which the other ones stand beside."""
    ours = {"score": analysis.means.score, "population": analysis.recommendation.population, "test": "lmem"}
    left, right = variants.pairs["left"], variants.pairs["right"]
    decided = _winners(analysis.decisions.pairs(left, right))
    best = analysis.comparable[0]
    rows = []
    for name, phrase, codes in zip(variants.phrases, variants.phrases.values(), variants.codes, strict=True):
        if name == ours.get(variants.of):
            continue
        winners, tested = _winners(codes), codes != Verdict.NOT_TESTED
        of_best = [
            (second if first == best else first)
            for first, second, winner in zip(left, right, winners, strict=True)
            if (first == best and winner == Verdict.BETTER) or (second == best and winner == Verdict.WORSE)
        ]
        ranked = analysis.on_ranks is not None and variants.of == "score"
        title = "by ranks" if ranked else f"by {TEST_NAMES[name]}" if variants.of == "test" else phrase
        changed = int(((winners != decided) & tested).sum())
        rows.append(Way(title, changed, int(tested.sum()), int((winners != 0).sum()), tuple(of_best)))
    if variants.of == "failures":  # one of the policies is that of the report
        same = next((row for row in rows if not row.changed), None)
        rows = [row for row in rows if row is not same]
    return rows


def _winners(codes: Codes) -> Codes:
    return np.where(ahead_or_behind(codes), codes, Verdict.NOT_SIGNIFICANT).astype(np.int8)


def elsewhere_section(analysis: Analysis, details: list[Block]) -> Section | None:
    """One row for each other way, and what each says in full; None where no verdict follows."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        return None
    others = ways(analysis)
    gist = texts(
        "verdict.elsewhere",
        rows=others,
        alike=[way.name for way in others if not way.changed],
        unlike=[(way.name, way.changed, way.total) for way in others if way.changed],
    )
    best = analysis.comparable[0]
    frame = pd.DataFrame(
        {
            "analysis": [way.name for way in others],
            "decided otherwise": [f"{way.changed} of {way.total} pairs" for way in others],
            "significant pairs": [way.significant for way in others],
            f"worse than {best}": [joined(list(way.worse), most=MOST_NAMED) if way.worse else "none" for way in others],
        }
    )
    table = [ResultTable("The same pairs in other analyses", frame)] if others else []
    return Section("elsewhere", "Does it hold elsewhere?", (*table, *details), summary=gist[0])
