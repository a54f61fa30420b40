"""Does the verdict hold elsewhere: the same pairs by other scores, populations, policies for failed runs and tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.robustness.variant import variant
from lmemtest.core.options import VCOV
from lmemtest.core.table import ResultTable
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import format_level, joined
from lmemtest.errors import LmemtestError
from lmemtest.report.document import Block, Section
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.core.arrays import Codes
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.report.analysis import Analysis

MOST_NAMED = 6  # algorithms in a cell
MOST_CHANGES = 3  # pairs in a cell
LEVELS = (0.01, 0.05, 0.1)  # other levels of the same tests
FEWEST_LEFT, FEW_LEVELS, MOST_LEVELS = 3, 25, 100  # of a role, each of which is left out in turn
FEW_COST = 300_000  # random terms times rows and pairs, of all variants together: about a second


def ways(analysis: Analysis) -> pd.DataFrame:
    """Other analyses of the same runs: how many pairs each decides otherwise than the report, of all.

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


def variants(analysis: Analysis) -> pd.DataFrame:
    """The same pairs without a part of the runs, on other scales and at other levels: what becomes of them.

    Columns ``analysis``, ``decided otherwise``, ``significant pairs``, ``leads``, ``changes``; no rows where they are
    not wanted or take long, or the model is the user's own.
    """
    rows = []
    for phrase, options in _parts(analysis):
        try:
            pairs = variant(analysis.table, **{**_options(analysis), **options})
        except LmemtestError:  # what is left identifies no model
            continue
        rows.append(
            _compared(phrase, pairs.decisions(alpha=analysis.alpha, direction=analysis.runs.direction), analysis)
        )
    if analysis.variants != "none":
        for alpha in (alpha for alpha in LEVELS if alpha != analysis.alpha):
            decisions = analysis.pairs.decisions(alpha=alpha, direction=analysis.runs.direction)
            rows.append(_compared(f"at {100 * alpha:g} %", decisions, analysis))
    return pd.DataFrame(rows, columns=["analysis", "decided otherwise", "significant pairs", "leads", "changes"])


def _options(analysis: Analysis) -> dict[str, Any]:
    """What every variant shares with the analysis."""
    pairs, curve = analysis.pairs, analysis.runs.curve
    return {
        "population": analysis.recommendation.population if analysis.n_benchmarks > 1 else None,
        "curves": curve.how if curve is not None else "model" if analysis.runs.budget else None,
        "alpha": analysis.alpha,
        "adjust": pairs.adjust,
        "vcov": pairs.errors if pairs.errors in VCOV else None,
        "ddf": pairs.ddf,
    }


def _parts(analysis: Analysis) -> Iterator[tuple[str, dict[str, Any]]]:
    """The variants that are wanted: a few where each takes milliseconds, or all."""
    if analysis.variants == "none" or analysis.own_formula:
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
    for scale in ("minmax", "rank"):
        yield f"by {scale} scores", {"scale": scale}


def _compared(phrase: str, decisions: Decisions, analysis: Analysis) -> tuple[str, str, int, str, str]:
    """The pairs that a variant has, and what becomes of those that it decides otherwise than the report."""
    levels = [name for name in analysis.decisions.levels if name in set(decisions.levels)]
    left, right = zip(*combinations(levels, 2), strict=True) if len(levels) > 1 else ((), ())
    ours, theirs = (_winners(given.pairs(left, right)) for given in (analysis.decisions, decisions))
    changes = [
        f"{first} and {second} {'no longer differ' if new == 0 else 'differ' if old == 0 else 'change places'}"
        for first, second, old, new in zip(left, right, ours, theirs, strict=True)
        if old != new
    ]
    told = "; ".join(changes[:MOST_CHANGES]) + (
        f"; {len(changes) - MOST_CHANGES} more" if changes[MOST_CHANGES:] else ""
    )
    significant = int((theirs != 0).sum())
    return (phrase, f"{len(changes):,} of {len(left):,} pairs", significant, decisions.levels[0], told or "none")


def _winners(codes: Codes) -> Codes:
    return np.where(ahead_or_behind(codes), codes, Verdict.NOT_SIGNIFICANT).astype(np.int8)


def elsewhere_section(analysis: Analysis, details: list[Block]) -> Section | None:
    """One row for each other way, and what each says in full; None where no verdict follows."""
    if analysis.incomparable or len(analysis.comparable) < 2:
        return None
    others, best, beside = ways(analysis), analysis.comparable[0], variants(analysis)
    unlike = others[others["changed"] > 0]
    (gist,) = texts(
        "verdict.elsewhere",
        n_ways=len(others),
        alike=others["way"][others["changed"] == 0].tolist(),
        unlike=list(zip(unlike["way"], unlike["changed"], unlike["total"], strict=True)),
        n_variants=len(beside),
        n_changed=int((beside["changes"] != "none").sum()),
    )
    frame = pd.DataFrame(
        {
            "analysis": others["way"],
            "decided otherwise": [f"{row.changed:,} of {row.total:,} pairs" for row in others.itertuples()],
            "significant pairs": others["significant"],
            f"worse than {best}": [joined(names, most=MOST_NAMED) if names else "none" for names in others["worse"]],
        }
    )
    table = [ResultTable("The same pairs in other analyses", frame)] if len(others) else []
    if len(beside):
        note = (
            "Each variant keeps its level by itself. Who looks at many and reports the one that pleases does not: "
            "these are exploratory."
        )
        table.append(ResultTable("Without a part, and at other levels", beside, (note,)))
    return Section("elsewhere", "Does it hold elsewhere?", (*table, *details), summary=gist)
