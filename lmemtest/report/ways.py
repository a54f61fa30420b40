"""The same pairs in another analysis: what it decides otherwise than the report, as rows of one table."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.methods import TEST_LABELS
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import MISSING

if TYPE_CHECKING:
    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.core.arrays import Codes
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.report.analysis import Analysis

COLUMNS = ["analysis", "changed", "reversed", "total", "significant", "marks", "changes"]
MARKS = {1: "\N{BLACK CIRCLE}", 0: "\N{WHITE CIRCLE}", -1: "\N{BLACK UP-POINTING TRIANGLE}"}


def ways(analysis: Analysis) -> pd.DataFrame:
    """By other scores, populations, policies for failed runs and tests: a row for each, as in `variants`."""
    rows = []
    if len(analysis.comparable) > 1 and not analysis.incomparable:
        for beside in (analysis.agreement, analysis.populations, analysis.sensitivity, analysis.classical):
            rows += _rows_of(beside, analysis) if beside is not None else []
    return pd.DataFrame(rows, columns=COLUMNS)


def _rows_of(beside: Variants, analysis: Analysis) -> list[dict[str, Any]]:
    """Every way but the one of the report, which the other ones stand beside."""
    ours = {"score": analysis.runs.score, "population": analysis.recommendation.population, "test": "lmem"}
    left, right = beside.pairs["left"].tolist(), beside.pairs["right"].tolist()
    rows = []
    for name, phrase, codes in zip(beside.phrases, beside.phrases.values(), beside.codes, strict=True):
        if name != ours.get(beside.of):
            ranked = analysis.on_ranks is not None and beside.of == "score"
            titles = {"test": f"by {TEST_LABELS.get(name)}", "failures": f"under failure policy {name}"}
            rows.append(row_of("by ranks" if ranked else titles.get(beside.of, phrase), left, right, codes, analysis))
    if beside.of == "failures":  # one of the policies is that of the report
        same = next((row for row in rows if not row["changed"]), None)
        rows = [row for row in rows if row is not same]
    return rows


def row_of_decisions(phrase: str, decisions: Decisions, analysis: Analysis) -> dict[str, Any]:
    """A row of the pairs that an analysis and the report both have."""
    levels = [name for name in analysis.decisions.levels if name in set(decisions.levels)]
    left, right = map(list, zip(*combinations(levels, 2), strict=True)) if len(levels) > 1 else ([], [])
    return row_of(phrase, left, right, decisions.pairs(left, right), analysis)


def row_of(phrase: str, left: list[str], right: list[str], codes: Codes, analysis: Analysis) -> dict[str, Any]:
    """What an analysis decides otherwise, and how the best of the report fares in it."""
    ours, theirs = (_winners(given) for given in (analysis.decisions.pairs(left, right), codes))
    tested = ~np.isin(codes, (Verdict.NOT_TESTED, Verdict.ABSENT))
    pairs = list(zip(left, right, ours, theirs, tested, strict=True))
    best = analysis.comparable[0]
    marks = {}
    for first, second, _, winner, has_test in pairs:
        if best in (first, second):
            ahead = winner if first == best else -winner
            marks[second if first == best else first] = MARKS[int(ahead)] if has_test else MISSING
    changes = [
        f"{first} and {second} {'no longer differ' if new == 0 else 'differ' if old == 0 else 'change places'}"
        for first, second, old, new, has_test in pairs
        if old != new and has_test
    ]
    counts = (len(changes), int((ours * theirs < 0).sum()), int(tested.sum()), int((theirs != 0).sum()))
    return dict(zip(COLUMNS, (phrase, *counts, marks, changes), strict=True))


def _winners(codes: Codes) -> Codes:
    return np.where(ahead_or_behind(codes), codes, Verdict.NOT_SIGNIFICANT).astype(np.int8)
