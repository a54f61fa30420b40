"""Does the verdict hold elsewhere: the same pairs by other scores, populations, policies for failed runs and tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.robustness.variant import variant
from lmemtest.core.caller import advice
from lmemtest.core.options import VCOV
from lmemtest.core.table import ResultTable
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import MISSING, format_level
from lmemtest.errors import LmemtestError
from lmemtest.lmm.means.decisions import MOST_LETTERED
from lmemtest.report.document import Block, Section
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.core.arrays import Codes
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.report.analysis import Analysis

COLUMNS = ["analysis", "changed", "total", "significant", "marks", "changes"]
MARKS = {1: "\N{BLACK CIRCLE}", 0: "\N{WHITE CIRCLE}", -1: "\N{BLACK UP-POINTING TRIANGLE}"}
MOST_CHANGES = 3  # pairs in a cell
LEVELS = (0.01, 0.05, 0.1)  # other levels of the same tests
FEWEST_LEFT, FEW_LEVELS, MOST_LEVELS = 3, 25, 100  # of a role, each of which is left out in turn
FEW_COST = 300_000  # random terms times rows and pairs, of all variants together: about a second


def ways(analysis: Analysis) -> pd.DataFrame:
    """By other scores, populations, policies for failed runs and tests: a row for each, as in `variants`."""
    rows = []
    if len(analysis.comparable) > 1 and not analysis.incomparable:
        for beside in (analysis.agreement, analysis.populations, analysis.sensitivity, analysis.classical):
            rows += _rows_of(beside, analysis) if beside is not None else []
    return pd.DataFrame(rows, columns=COLUMNS)


def _rows_of(beside: Variants, analysis: Analysis) -> list[dict[str, Any]]:
    """Every way but the one of the report, which the other ones stand beside."""
    ours = {"score": analysis.means.score, "population": analysis.recommendation.population, "test": "lmem"}
    left, right = beside.pairs["left"].tolist(), beside.pairs["right"].tolist()
    rows = []
    for name, phrase, codes in zip(beside.phrases, beside.phrases.values(), beside.codes, strict=True):
        if name != ours.get(beside.of):
            ranked = analysis.on_ranks is not None and beside.of == "score"
            title = "by ranks" if ranked else f"by {TEST_NAMES[name]}" if beside.of == "test" else phrase
            rows.append(_row(title, left, right, codes, analysis))
    if beside.of == "failures":  # one of the policies is that of the report
        same = next((row for row in rows if not row["changed"]), None)
        rows = [row for row in rows if row is not same]
    return rows


def variants(analysis: Analysis) -> pd.DataFrame:
    """The same pairs without a part of the runs, on other scales and at other levels: what becomes of them.

    Columns ``analysis``, ``changed`` (pairs decided otherwise than in the report) of ``total`` (pairs with a test),
    ``significant`` (pairs), ``marks`` (of the best against each other algorithm), ``changes`` (in words) and ``refit``
    (whether it is of other runs or scores, and not the same tests at another level). A variant that identifies no model
    has no pairs.
    """
    rows, direction = [], analysis.runs.direction
    for phrase, options in _parts(analysis):
        try:
            pairs = variant(analysis.table, **{**_options(analysis), **options})
        except LmemtestError:
            rows.append(_row(f"{phrase}: no model", [], [], np.zeros(0, dtype=np.int8), analysis))
            continue
        rows.append(_of_decisions(phrase, pairs.decisions(alpha=analysis.alpha, direction=direction), analysis))
    n_refitted = len(rows)
    if analysis.variants != "none":
        for alpha in (alpha for alpha in LEVELS if alpha != analysis.alpha):
            decisions = analysis.pairs.decisions(alpha=alpha, direction=direction)
            rows.append(_of_decisions(f"at {100 * alpha:g} %", decisions, analysis))
    return pd.DataFrame(rows, columns=COLUMNS).assign(refit=np.arange(len(rows)) < n_refitted)


def _of_decisions(phrase: str, decisions: Decisions, analysis: Analysis) -> dict[str, Any]:
    """A row of the pairs that an analysis and the report both have."""
    levels = [name for name in analysis.decisions.levels if name in set(decisions.levels)]
    left, right = map(list, zip(*combinations(levels, 2), strict=True)) if len(levels) > 1 else ([], [])
    return _row(phrase, left, right, decisions.pairs(left, right), analysis)


def _row(phrase: str, left: list[str], right: list[str], codes: Codes, analysis: Analysis) -> dict[str, Any]:
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
    counts = (len(changes), int(tested.sum()), int((theirs != 0).sum()))
    return dict(zip(COLUMNS, (phrase, *counts, marks, changes), strict=True))


def _options(analysis: Analysis) -> dict[str, Any]:
    """What every variant shares with the analysis."""
    pairs, curve, own = analysis.pairs, analysis.runs.curve, analysis.own_formula
    chosen = analysis.fit.dispersion if own or analysis.recommendation.spec.dispersion is None else None
    return {
        "formula": analysis.formula if own else None,
        "dispersion": chosen,
        "population": analysis.recommendation.population if analysis.n_benchmarks > 1 and not own else None,
        "curves": None if own else curve.how if curve is not None else "model" if analysis.runs.budget else None,
        "alpha": analysis.alpha,
        "adjust": pairs.adjust,
        "vcov": pairs.errors if pairs.errors in VCOV else None,
        "ddf": pairs.ddf,
    }


def _parts(analysis: Analysis) -> Iterator[tuple[str, dict[str, Any]]]:
    """The variants that are wanted: a few where each takes milliseconds, or all."""
    if analysis.variants == "none":
        return
    few, runs = analysis.variants == "few", analysis.table
    cost = len(analysis.fit.design.random) * (analysis.fit.nobs + len(analysis.decisions.levels) ** 2)
    slopes = any(len(term.names) > 1 for term in analysis.fit.design.random)  # each variant searches for correlations
    room = (0.0 if slopes else FEW_COST) if few else math.inf
    roles = {"benchmark": runs.benchmark, "algorithm": runs.algorithm, "family": (*runs.family, None)[0]}
    for role, column in roles.items():
        levels = runs.levels(column) if column is not None else ()
        if FEWEST_LEFT <= len(levels) <= (FEW_LEVELS if few else MOST_LEVELS) and cost * len(levels) <= room:
            room -= cost * len(levels)
            for level in levels:
                yield f"without {format_level(level)}", {"without": {role: level}}
    if few:
        return
    for level in runs.levels(runs.budget)[-MOST_LEVELS:] if runs.budget and runs.study.count(runs.budget) > 1 else ():
        yield f"at {runs.budget} {format_level(level)}", {"only": {"budget": level}}
    for scale in () if analysis.own_formula else ("minmax", "rank"):
        yield f"by {scale} scores", {"scale": scale}


def _winners(codes: Codes) -> Codes:
    return np.where(ahead_or_behind(codes), codes, Verdict.NOT_SIGNIFICANT).astype(np.int8)


def elsewhere_section(analysis: Analysis, details: list[Block]) -> Section | None:
    """One row for each other way, and what each says in full; None where no verdict follows."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        return None
    others, beside = ways(analysis), variants(analysis)
    unlike = others[others["changed"] > 0]
    (gist,) = texts(
        "verdict.elsewhere",
        n_ways=len(others),
        alike=others["analysis"][others["changed"] == 0].tolist(),
        unlike=list(zip(unlike["analysis"], unlike["changed"], unlike["total"], strict=True)),
        n_variants=int(beside["refit"].sum()),
        n_changed=int((beside["refit"] & (beside["changed"] > 0)).sum()),
    )
    rows = pd.concat([others, beside[COLUMNS]], ignore_index=True)
    table = [_verdicts(rows, analysis)] if len(rows) else []
    if analysis.variants == "few" and not beside["refit"].any():
        more = f"{advice('all_variants')} leaves out each benchmark, algorithm and family, which takes longer here."
        table = [replace(one, notes=(*one.notes, more)) for one in table]
    return Section("elsewhere", "Does it hold elsewhere?", (*table, *details), summary=gist)


def _verdicts(rows: pd.DataFrame, analysis: Analysis) -> ResultTable:
    """A picture of the verdicts: an analysis in each row, the best against each other algorithm in a column."""
    report = _of_decisions("this report", analysis.decisions, analysis)
    rows = pd.concat([pd.DataFrame([report], columns=COLUMNS), rows], ignore_index=True)
    best = analysis.comparable[0]
    others = [name for name in analysis.decisions.levels if name != best]
    notes = ["Each analysis keeps its level by itself: the verdict is that of the one that was planned."]
    frame = pd.DataFrame({"analysis": rows["analysis"]})
    if len(others) < MOST_LETTERED:
        for name in others:
            frame[name] = [marks.get(name, MISSING) for marks in rows["marks"]]
        notes.insert(
            0, f"{MARKS[1]} worse than {best}, {MARKS[0]} not distinguishable from it, {MARKS[-1]} better, – no test."
        )
    frame["decided otherwise"] = [f"{row.changed:,} of {row.total:,} pairs" for row in rows.itertuples()]
    frame["which"] = [
        "; ".join(words[:MOST_CHANGES]) + (f"; {len(words) - MOST_CHANGES:,} more" if words[MOST_CHANGES:] else "")
        for words in rows["changes"]
    ]
    return ResultTable("The same pairs in other analyses", frame, tuple(notes))
