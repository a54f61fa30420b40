"""Does the verdict hold elsewhere: the same pairs by other scores, populations, policies for failed runs and tests."""

from __future__ import annotations

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


def ways(analysis: Analysis) -> pd.DataFrame:
    """Other analyses of the same runs: how many pairs each decides otherwise than the report, of how many.

    Columns ``way``, ``changed``, ``total``, ``significant`` (pairs) and ``worse`` (names, than the best of the report).
    """
    rows = []
    if len(analysis.comparable) > 1 and not analysis.incomparable:
        for variants in (analysis.agreement, analysis.populations, analysis.sensitivity, analysis.classical):
            rows += _rows_of(variants, analysis) if variants is not None else []
    return pd.DataFrame(rows, columns=["way", "changed", "total", "significant", "worse"])


def _rows_of(variants: Variants, analysis: Analysis) -> list[tuple[str, int, int, int, list[str]]]:
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
        rows.append((title, changed, int(tested.sum()), int((winners != 0).sum()), of_best))
    if variants.of == "failures":  # one of the policies is that of the report
        same = next((row for row in rows if not row[1]), None)
        rows = [row for row in rows if row is not same]
    return rows


def _winners(codes: Codes) -> Codes:
    return np.where(ahead_or_behind(codes), codes, Verdict.NOT_SIGNIFICANT).astype(np.int8)


def elsewhere_section(analysis: Analysis, details: list[Block]) -> Section | None:
    """One row for each other way, and what each says in full; None where no verdict follows."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        return None
    others, best = ways(analysis), analysis.comparable[0]
    unlike = others[others["changed"] > 0]
    (gist,) = texts(
        "verdict.elsewhere",
        n_ways=len(others),
        alike=others["way"][others["changed"] == 0].tolist(),
        unlike=list(zip(unlike["way"], unlike["changed"], unlike["total"], strict=True)),
    )
    frame = pd.DataFrame(
        {
            "analysis": others["way"],
            "decided otherwise": [f"{row.changed} of {row.total} pairs" for row in others.itertuples()],
            "significant pairs": others["significant"],
            f"worse than {best}": [joined(names, most=MOST_NAMED) if names else "none" for names in others["worse"]],
        }
    )
    table = [ResultTable("The same pairs in other analyses", frame)] if len(others) else []
    return Section("elsewhere", "Does it hold elsewhere?", (*table, *details), summary=gist)
