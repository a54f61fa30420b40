"""Does the verdict hold elsewhere: the same pairs by other scores, populations, policies for failed runs and tests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.robustness.variant import refitted
from lmemtest.core.caller import advice
from lmemtest.core.options import VCOV
from lmemtest.core.rounding import written
from lmemtest.core.table import ResultTable
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.words import MISSING, format_level
from lmemtest.errors import LmemtestError
from lmemtest.lmm.means.decisions import MOST_LETTERED
from lmemtest.report.document import Block, Section
from lmemtest.report.page import TESTS, options_in_words, query_of, reanalysed, shown
from lmemtest.report.prose import texts
from lmemtest.report.ways import COLUMNS, MARKS, row_of, row_of_decisions, ways

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis

MOST_CHANGES = 3  # pairs in a cell
LEVELS, LEVELS_KIND = (0.01, 0.05, 0.1), "at another level"  # of the same tests
FEWEST_LEFT, FEW_LEVELS, MOST_LEVELS = 3, 25, 100  # of a role, each of which is left out in turn
FEW_COST = 300_000  # random terms times rows and pairs, of all variants together: about a second


@one_blas_thread()
def variants(analysis: Analysis) -> pd.DataFrame:
    """The same pairs without a part of the runs, on other scales and at other levels: what becomes of them.

    Columns ``analysis``, ``changed`` (pairs decided otherwise than in the report) and ``reversed`` (those that have the
    other winner) of ``total`` (pairs with a test), ``significant`` (pairs), ``marks`` (of the best against each other
    algorithm), ``changes`` (in words), ``refit`` (whether it is of other runs or scores, and not the same tests at
    another level), ``kind`` (what is varied) and ``page`` (its state as an address and what a page shows of it; None
    where it identifies no model, and has no pairs).
    """
    rows = []
    for kind, phrase, state in _states(analysis):
        told: dict[str, Any] = {"refit": kind != LEVELS_KIND, "kind": kind, "page": None}
        try:
            other, changes = _varied(analysis, state)
        except LmemtestError:
            rows.append({**row_of(f"{phrase}: no model", [], [], np.zeros(0, dtype=np.int8), analysis), **told})
            continue
        if len(other.comparable) > 1 and not other.incomparable:
            told["page"] = {"query": query_of(state), "changes": changes, **_packed(shown(other))}
        rows.append({**row_of_decisions(phrase, other.decisions, analysis), **told})
    return pd.DataFrame(rows, columns=[*COLUMNS, "refit", "kind", "page"]).astype({"refit": bool})


def _packed(page: dict[str, Any]) -> dict[str, Any]:
    """With the digits of places that can be seen on an axis that has zero, so that no others depend on the machine."""
    rows = [
        {**row, "ends": [None if x is None else float(written(x, ".4g")) for x in row["ends"]]}
        for row in page["forest"]["rows"]
    ]
    return {**page, "forest": {**page["forest"], "rows": rows}}


def _varied(analysis: Analysis, state: dict[str, Any]) -> tuple[Analysis, list[str]]:
    """The analysis of a state, and what is not as in the report in it."""
    alpha = state.get("alpha")
    if alpha is None:
        options = {**_options(analysis), **state}
        refit = refitted(analysis.table, **{name: value for name, value in options.items() if name not in TESTS})
        fields, changes = reanalysed(refit, options, state)
        return replace(analysis, **fields), changes
    options = {name: value for name, value in _options(analysis).items() if name in ("adjust", "vcov")}
    pairs = replace(analysis.means.pairs(alpha=alpha, **options), direction=analysis.runs.direction)
    decisions = analysis.pairs.decisions(alpha=alpha, direction=analysis.runs.direction)
    return replace(analysis, pairs=pairs, decisions=decisions), options_in_words(state)


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


def _states(analysis: Analysis) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kind, name and state of the variants that are wanted: a few where each takes milliseconds, or all."""
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
                yield f"without one {role}", f"without {format_level(level)}", {"without": {column: [level]}}
    if not few and runs.budget is not None and runs.study.count(runs.budget) > 1:
        for level in runs.levels(runs.budget)[-MOST_LEVELS:]:
            yield "at one budget", f"at {runs.budget} {format_level(level)}", {"only": {runs.budget: [level]}}
    for scale in () if few or analysis.own_formula else ("minmax", "rank"):
        yield "on another scale", f"by {scale} scores", {"scale": scale}
    for alpha in (alpha for alpha in LEVELS if alpha != analysis.alpha):
        yield LEVELS_KIND, f"at {100 * alpha:g} %", {"alpha": alpha}


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
        unlike=list(unlike[["analysis", "changed", "reversed", "total"]].itertuples(index=False, name=None)),
        n_variants=int(beside["refit"].sum()),
        n_changed=int((beside["refit"] & (beside["changed"] > 0)).sum()),
    )
    rows = pd.concat([others, beside[COLUMNS]], ignore_index=True)
    table = [_verdicts(rows, analysis)] if len(rows) else []
    if analysis.variants == "few" and not beside["refit"].any():
        more = f"{advice('all_variants')} leaves out each benchmark, algorithm and family, which takes longer here."
        table = [replace(one, notes=(*one.notes, more)) for one in table]
    first = 1 + len(others)  # row of the picture, below those of the report and of other ways
    pages = tuple(
        {"row": first + place, "kind": kind, "name": name, **page}
        for place, (kind, name, page) in enumerate(zip(beside["kind"], beside["analysis"], beside["page"], strict=True))
        if page is not None
    )
    return Section("elsewhere", "Does it hold elsewhere?", (*table, *details), summary=gist, pages=pages)


def _verdicts(rows: pd.DataFrame, analysis: Analysis) -> ResultTable:
    """A picture of the verdicts: an analysis in each row, the best against each other algorithm in a column."""
    report = row_of_decisions("this report", analysis.decisions, analysis)
    rows = pd.concat([pd.DataFrame([report], columns=COLUMNS), rows], ignore_index=True)
    best = analysis.comparable[0]
    others = [name for name in analysis.decisions.levels if name != best]
    notes = ["The level holds for each analysis on its own; the verdict is that of the planned one."]
    frame = pd.DataFrame({"analysis": rows["analysis"]})
    if len(others) < MOST_LETTERED:
        for name in others:
            frame[name] = [marks.get(name, MISSING) for marks in rows["marks"]]
        notes.insert(
            0, f"{MARKS[1]} worse than {best}, {MARKS[0]} not distinguishable from it, {MARKS[-1]} better, – no test."
        )
    frame["changed"] = [f"{row.changed:,} of {row.total:,} pairs" for row in rows.itertuples()]
    frame["which"] = [
        "; ".join(words[:MOST_CHANGES]) + (f"; {len(words) - MOST_CHANGES:,} more" if words[MOST_CHANGES:] else "")
        for words in rows["changes"]
    ]
    return ResultTable("The same pairs in other analyses", frame, tuple(notes))
