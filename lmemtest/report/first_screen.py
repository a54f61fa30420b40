"""The first screen of a report: the verdict, what qualifies it, and the figure and table that show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.scales import fold
from lmemtest.core.options import ADJUSTMENT_NAMES, ERROR_NAMES
from lmemtest.core.table import ResultTable
from lmemtest.core.words import MISSING, confidence, counted, format_number, format_p, joined, rank_span
from lmemtest.report import wording
from lmemtest.report.document import HALF_PAGE, Badge, Block, Section, Text, callout, figure, paragraph
from lmemtest.report.leaders import MOST_ALGORITHMS, best_only, leaders, pictured
from lmemtest.report.prose import texts
from lmemtest.report.ways import ways

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.report.analysis import Analysis

MOST_ROWS = 500  # of the ranking of all algorithms, which is folded or scrolls


# ---------------------------------------------------------------------------------------------------- the verdict


def verdict(analysis: Analysis) -> tuple[Text, ...]:
    """The answer in at most three sentences: who leads, by how much and for whom, and what may change it."""
    return (*bare_verdict(analysis), *_but(analysis))


def bare_verdict(analysis: Analysis) -> tuple[Text, ...]:
    """Who leads, by how much and for whom: what needs no check of the table."""
    compared = len(analysis.comparable) > 1
    best, worse, level, untested = wording.against_the_best(analysis) if compared else ("", [], [], [])
    answer = texts(
        "verdict.answer",
        best=best,
        worse=worse,
        level=level,
        untested=untested,
        unidentified=[name for name in analysis.decisions.levels if compared and name not in analysis.comparable],
        incomparable=wording.why_incomparable(analysis) if analysis.incomparable else "",
        some_differ=analysis.decisions.n_significant > 0,
    )
    if not compared or analysis.incomparable:
        return answer
    over = worse[0] if worse else wording.runner_up(analysis)
    lead = texts(
        "verdict.lead",
        best=best,
        over=wording.lead(analysis, best, over),
        simultaneous=analysis.pairs.intervals == "simultaneous",
        score=analysis.runs.score,
        n_benchmarks=analysis.n_benchmarks,
        these_only=analysis.these_only,
        sample=analysis.sample,
        claim=analysis.claim,
    )
    return (*answer, *lead)


def _but(analysis: Analysis) -> tuple[Text, ...]:
    """What may change the verdict; nothing where none follows."""
    if len(analysis.comparable) < 2 or analysis.incomparable:
        return ()
    best = analysis.comparable[0]
    ranks = analysis.on_ranks
    by_ranks = None
    if ranks is not None and wording.few_decide(analysis):
        first, *rest = ranks.levels
        by_ranks = {"best": first, "worse": [name for name in rest if ranks.significant.loc[first, name]]}
    return texts(
        "verdict.but",
        lacking=analysis.missing,
        errors=[kind for severity, kind in _kinds(analysis) if severity == "error"],
        unconfirmed=wording.unconfirmed(analysis),
        best=best,
        by_ranks=by_ranks,
        nouns=analysis.sample.nouns,
    )


def _kinds(analysis: Analysis) -> list[tuple[str, str]]:
    """Severity and name of each kind of problem of the table, the worst first."""
    return list(
        dict.fromkeys((finding.severity, finding.kind.replace("_", " ")) for finding in analysis.check.problems)
    )


def badges(analysis: Analysis) -> tuple[Badge, ...]:
    """What qualifies the verdict, in a few words each, the worst first."""
    return tuple(
        sorted(_badges(analysis), key=lambda badge: ("error", "warning", "note", "fine").index(badge.severity))
    )


def _badges(analysis: Analysis) -> Iterator[Badge]:
    problems = _kinds(analysis)
    for severity, kind in problems:
        text = kind
        if kind == "score scale":
            text = f"scatter of scores: {fold(analysis.check.scale_ratio)} between benchmarks"
        yield Badge(text, "fix", severity)  # type: ignore[arg-type]
    if not any(severity == "error" for severity, _ in problems):
        yield Badge("no errors in the table", "fix")
    if wording.unconfirmed(analysis):
        yield Badge("a cautious check disagrees", "fix", "warning")
    elif wording.rests_on(analysis):
        yield Badge("few benchmarks: tests may be optimistic", "fix", "warning")
    if wording.few_decide(analysis):
        yield Badge(f"few {analysis.sample.nouns} decide the means", "fix", "warning")
    for column, *_ in wording.turning(analysis):
        yield Badge(f"comparison depends on {column}", "metafeatures", "warning")
    others = ways(analysis)
    unlike = others[others["changed"] > 0]
    if len(unlike):
        most = unlike.loc[unlike["changed"].idxmax()]
        where = f"on{' at most' * (len(unlike) > 1)} {most['changed']:,} of {counted(most['total'], 'pair')}"
        analyses = f"{len(unlike)} of {len(others)} other analyses" if len(others) > 1 else "the other analysis"
        decide = "decides" if len(unlike) == 1 else "decide"
        yield Badge(f"{analyses} {decide} differently, {where} ({most['analysis']})", "elsewhere", "note")
    if analysis.undeclared is not None and analysis.undeclared.shows:
        yield Badge("undeclared families", "fix", "warning")
    if wording.ignored_columns(analysis):
        yield Badge("columns left out may make rows dependent", "fix", "warning")
    if analysis.means.apart():
        yield Badge("pairs without a common benchmark", "fix", "warning")
    if analysis.diagnosis is not None and (warnings := wording.fit_warnings(analysis)):
        yield Badge(f"{counted(len(warnings), 'warning')} about the fit", "diagnostics", "warning")
    if analysis.incomparable:
        return
    if analysis.runs.curve is not None:
        yield Badge(f"curves: {analysis.runs.curve.how} over {analysis.table.budget}", "data")
    if analysis.n_benchmarks < 2:
        claim = "for this benchmark only"
    elif analysis.these_only or not analysis.sample.varies:
        claim = "for exactly these benchmarks"
    else:
        claim = f"for {analysis.claim or f'{analysis.sample.nouns} like these'}"
    yield Badge(claim, "limitations")
    controlled = not analysis.missing and not wording.few_decide(analysis)
    several = len(analysis.decisions.levels) > 2
    rate = {"none": "error rate of each pair", "fdr": "false discovery rate"}.get(
        analysis.pairs.adjust, "family-wise error rate" if several else "error rate"
    )
    alpha = wording.alpha_text(analysis)
    if controlled:
        yield Badge(f"{rate}: nominally {alpha}", "limitations")
    else:
        yield Badge(f"false differences not controlled at {alpha}", "limitations", "warning")
    errors = ERROR_NAMES.get(analysis.pairs.errors)
    yield Badge(f"mixed model{f', {errors} standard errors' if errors else ''}", "model")


# ------------------------------------------------------------------------------------------ the figure and the table


def front(analysis: Analysis) -> tuple[Block, ...]:
    """A figure and a table that carry the same decisions; the table alone where no decision follows."""
    if len(analysis.comparable) < 2 or analysis.incomparable:
        return ()
    table, names = ranking_table(analysis), leaders(analysis)
    if names is not analysis:
        best = table.frame.head(len(names.decisions.levels))
        table = replace(table, frame=best, notes=(f"The {len(best)} best of {len(table.frame):,}; Means has all.",))
    columns = table.rendered()[1:]
    tips = {
        name: f"{name}: {', '.join(f'{head} {cells[place]}' for head, cells, _ in columns)}"
        for place, name in enumerate(table.frame.iloc[:, 0])
    }
    drawn = figure(
        partial(_forest, *pictured(names)[1:], names.comparable[0]),
        alt=f"Differences to {names.comparable[0]} with their intervals, best first: "
        f"{joined(list(names.decisions.levels), most=MOST_ALGORITHMS)}.",
        caption=(
            f"Filled: the best, and what differs from it. Hollow: may be as good.{_adjusted(analysis)}"
            f"{best_only(analysis)}",
        ),
        tips=tips,
        as_files=True,
    )
    return (drawn, table)


def _adjusted(analysis: Analysis) -> str:
    """How the p-values of the table were adjusted, with a blank before it; empty where one pair is tested."""
    pairs = analysis.pairs
    if len(pairs.table) < 2:
        return ""
    if pairs.adjust == "none":
        return " P-values are not adjusted."
    return f" P-values have {ADJUSTMENT_NAMES[pairs.adjust]} adjustment for all {len(pairs.table):,} pairs."


def _forest(pairs: Comparisons, decisions: Decisions, reference: str) -> Any:
    from lmemtest.plots import forest_plot

    return forest_plot(pairs, decisions=decisions, reference=reference, width=HALF_PAGE)


def ranking_table(analysis: Analysis, reference: str | None = None) -> ResultTable:
    """Algorithms, best first: ranks left open, means, and differences to the best, or to another, with intervals."""
    decisions, direction = analysis.decisions, analysis.runs.direction
    levels = [*analysis.comparable, *(level for level in decisions.levels if level not in analysis.comparable)]
    ranked, means = decisions.columns(levels), dict(zip(decisions.levels, decisions.means, strict=True))
    behind = analysis.pairs.leads(reference or analysis.comparable[0], direction)
    gap, low, high, se, p = np.transpose([behind.get(level, (np.nan,) * 5) for level in levels])
    positive = se[np.isfinite(se) & (se > 0)]
    write = wording.writer(float(np.median(positive))) if len(positive) else format_number
    gaps = [
        f"{write(middle)} ({write(left)} to {write(right)})" if np.isfinite(middle) else MISSING
        for middle, left, right in zip(gap, low, high, strict=True)
    ]
    gap_name = f"behind {reference or 'the best'} ({confidence(analysis.pairs.level)} CI)"
    frame = pd.DataFrame(
        {
            analysis.runs.algorithm: levels,
            "rank": [rank_span(*ends) for ends in zip(ranked["rank_low"], ranked["rank_high"], strict=True)],
            "mean": [means[level] for level in levels],
            gap_name: gaps,
            "p": p,
            **({"groups": ranked["letters"]} if decisions.lettered else {}),
        }
    )
    few = frame if len(frame) <= MOST_ROWS else frame.iloc[:MOST_ROWS]
    notes = (f"The first {MOST_ROWS} of {len(frame):,}; the csv has all.",) if len(few) < len(frame) else ()
    formats: dict[str, Any] = {"mean": write, "p": partial(format_p, level=analysis.alpha)}
    return ResultTable(f"Ranking by mean {wording.measured(analysis)}", few, notes, formats)


# -------------------------------------------------------------------------------------------------- what to fix first


def fix_section(analysis: Analysis, findings: list[Block]) -> Section:
    """Errors and warnings of the table, and reservations about the claim, each with what to do."""
    problems, cautions = _kinds(analysis), wording.cautions(analysis)
    count = {severity: sum(s == severity for s, _ in problems) for severity in ("error", "warning")}
    gist = texts(
        "verdict.fix",
        errors=count["error"],
        warnings=count["warning"],
        kinds=[kind for _, kind in problems],
        cautions=len(cautions),
        of_fit=len(wording.fit_warnings(analysis)),
    )
    blocks: list[Block] = [*findings, *cautions]
    if analysis.incomparable:
        blocks.insert(0, callout("warning", "No verdict follows", paragraph(wording.why_incomparable(analysis))))
    return Section("fix", "What to fix first", tuple(blocks), summary=gist[0])
