"""An analysis as a document: which blocks stand where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.observed_advantages import leaders as first_at
from lmemtest.bench.benchmark.observed_advantages import turns
from lmemtest.bench.failures.failure_rates import failure_rates
from lmemtest.bench.power.draw import StudyDesign
from lmemtest.bench.power.power import power
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.core.caller import advice
from lmemtest.core.rounding import at_most, same_rounding, tie_order
from lmemtest.core.table import ResultTable
from lmemtest.core.verdicts import Verdict
from lmemtest.core.words import (
    MISSING,
    capitalised,
    confidence,
    counted,
    format_level,
    format_number,
    format_p,
    joined,
    listed,
    p_text,
    percent,
    plural,
    rank_span,
)
from lmemtest.errors import ArgumentError
from lmemtest.report import methods, wording
from lmemtest.report.curves import curves_section
from lmemtest.report.document import (
    Block,
    Document,
    Section,
    Text,
    bullets,
    callout,
    closed_if_long,
    code,
    figure,
    figure_or_reason,
    folded,
    paragraph,
    settled,
    strong,
)
from lmemtest.report.documents import classical_blocks, outperforming_section
from lmemtest.report.elsewhere import elsewhere_section
from lmemtest.report.first_screen import badges, fix_section, front, ranking_table, verdict
from lmemtest.report.leaders import best_only, first_rows, leaders, left_out, pictured, telling
from lmemtest.report.prose import sentence_of, sentences_of, texts

if TYPE_CHECKING:
    from lmemtest.core.result import Answer
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.report.analysis import Analysis

MOST_PAIRS = 21  # rows of a table that are still read: 7 algorithms; beyond, the matrix comes first
MOST_ROWS = 24  # of a table per benchmark before it is folded
MOST_RATES = 30  # algorithms in the figure and in the sentences of failures
MOST_NAMES = 12  # in a sentence about groups
_NOT_EQUAL = (
    " A difference that is not significant may be zero, or may be anything else inside its interval: it is not "
    "evidence of equality."
)
SHOWN = 3  # findings of one kind
POWER = 0.8
UNITS = (
    " Deviations are in units of the scatter of the scores on the benchmark (see the table of the benchmarks), because "
    "raw ones differ too much in size to share an axis; the tables below have the raw ones."
)


def build_document(analysis: Analysis, *, progress: Callable[[str], None]) -> Document:
    """Put an analysis into words, tables and figures; `progress` is called with the name of each step."""
    steps: list[tuple[str, Callable[[Analysis], Section | None]]] = [
        ("looking for what to fix", lambda given: fix_section(given, _findings(given, ("error", "warning")))),
        ("drawing the means", _means),
        ("drawing the pairs", _pairs),
        ("drawing the critical-difference diagram", _ranking),
        ("comparing with other analyses", _elsewhere),
        ("comparing policies for failed runs", _failures),
        ("drawing the tuning curves", curves_section),
        ("comparing the metafeatures", _metafeatures),
        ("drawing the benchmarks", _benchmarks),
        ("describing the variation", _variation),
        ("comparing single runs", outperforming_section),
        ("describing the size of the study", study_size_section),
        ("describing the data", _data),
        ("describing the model", methods.model_section),
        ("checking the fit", methods.diagnostics_section),
        ("writing it up", methods.methods_section),
        ("writing it up", methods.limitations_section),
        ("writing it up", methods.reproduction_section),
    ]
    progress("drawing the answer")
    screen = front(analysis)
    sections: dict[int, Section | None] = {}
    for i in (*range(1, len(steps)), 0):  # what to fix is asked of the diagnosis, which another process may be making
        step, build = steps[i]
        progress(step)
        sections[i] = build(analysis)
    progress("drawing the figures")
    return Document(
        title=f"Comparison of {len(analysis.runs.algorithms)} algorithms by {wording.measured(analysis)}",
        subtitle=f"{analysis.check.overview} {capitalised(wording.better(analysis))} is better.",
        lead=verdict(analysis),
        badges=badges(analysis),
        front=tuple(map(settled, screen)),
        sections=tuple(settled(section) for _, section in sorted(sections.items()) if section is not None),
        generator=f"lmemtest {analysis.versions['lmemtest']}",
        names=analysis.decisions.levels,
    )


# ----------------------------------------------------------------------------------------------------- the data


def _data(analysis: Analysis) -> Section:
    table = closed_if_long("Table of the benchmarks", _overview(analysis), MOST_ROWS)
    score = paragraph("The score is ", code(analysis.table.score), f"; {wording.better(analysis)} is better.")
    done = analysis.runs.failures  # in a section of its own
    notes = dict.fromkeys((*analysis.table.notes, *analysis.runs.notes))
    made = [note for note in notes if done is None or note != done.note]
    how = (bullets(made),) if made else ()
    blocks = (score, *how, _roles(analysis), *_findings(analysis, ("note",)), table)
    return Section("data", "The table", blocks, summary=(analysis.check.overview,))


def _roles(analysis: Analysis) -> ResultTable:
    runs = analysis.table
    names = [("algorithm", runs.algorithm), ("benchmark", runs.benchmark)]
    names += [("family", name) for name in runs.family]
    names += [("seed", runs.seed), ("budget", runs.budget)]
    names += [("metafeature", name) for name in runs.metafeatures]
    names += [("left out on purpose", name) for name in runs.ignore]
    rows = [("score", runs.score, f"to {runs.direction}")]
    for role, name in names:
        if name is not None:
            levels, most = [format_level(level) for level in runs.levels(name)], 24 if role == "algorithm" else 6
            more = ", ..." if len(levels) > most else ""
            rows.append((role, name, f"{len(levels):,}: {', '.join(levels[:most])}{more}"))
    unused = listed(map(repr, runs.unused), most=24)
    notes = (f"Not used, as they have no role: {unused}.",) if unused else ()
    return ResultTable("Columns and their roles", pd.DataFrame(rows, columns=["role", "column", "values"]), notes)


def _findings(analysis: Analysis, severities: tuple[str, ...]) -> list[Block]:
    """What the checks of the table found, with what to do."""
    blocks: list[Block] = []
    for (severity, kind), group in groupby(analysis.check.findings, lambda f: (f.severity, f.kind)):
        if severity not in severities:
            continue
        findings = list(group)
        items = [finding.message for finding in findings[:SHOWN]]
        items += [f"... and {len(findings) - SHOWN:,} more of this kind."] if len(findings) > SHOWN else []
        advice = dict.fromkeys(finding.advice for finding in findings[:SHOWN])
        todo = [paragraph(strong("What to do:"), f" {text}") for text in advice]
        blocks.append(callout(severity, kind.replace("_", " ").capitalize(), bullets(items), *todo))
    return blocks


def _overview(analysis: Analysis) -> ResultTable:
    """One row per benchmark, with columns that say something only."""
    runs, check, regular = analysis.table, analysis.check, analysis.budgets.regular

    def name(benchmark: Any) -> str:
        return "all runs" if benchmark is None else format_level(benchmark)

    def span(values: pd.Series[Any]) -> str:
        low, high = int(values.min()), int(values.max())
        return str(high) if low == high else f"{low} to {high}"

    cells = check.cells.assign(benchmark=check.cells["benchmark"].map(name))
    rows, more = first_rows(cells["benchmark"].unique().tolist(), "analysis.check.cells")
    cells = cells[cells["benchmark"].isin(rows)]
    groups = cells.groupby("benchmark", sort=False)
    scales = dict(zip(check.scales["benchmark"].map(name), check.scales["residual_sd"], strict=True))
    table = groups.agg(rows=("n", "sum"), algorithms=("n", lambda n: int((n > 0).sum())))
    for column, role in (("seeds", runs.seed), ("budgets", runs.budget)):
        if role:
            table[column] = groups[column].agg(span)
    for column in ("missing", "duplicates", "non_finite"):
        if check.cells[column].sum():
            table[column.replace("_", " ")] = groups[column].sum()
    weight = cells["n"].where(cells["mean"].notna(), 0)
    total, size = (
        x.groupby(cells["benchmark"], sort=False).sum() for x in (weight * cells["mean"].fillna(0.0), weight)
    )
    table["mean score"] = total / size.where(size > 0)
    table["scatter"] = [scales.get(name, float("nan")) for name in table.index]
    at = runs.budget and regular and analysis.runs.curve is None
    within = f"algorithm{', instance' * bool(runs.metafeatures)}{' and budget' * bool(at)}."
    what = "scores of the runs" if analysis.runs.curve is not None else "scores"
    note = f"Mean score: over all rows. Scatter: standard deviation of the {what} within {within}"
    note += "" if regular else " It includes how scores change over the budget."
    formats: dict[str, Any] = dict.fromkeys(("mean score", "scatter"), format_number)
    return ResultTable("Benchmarks", table.reset_index(names="benchmark"), (note, *more), formats)


# ------------------------------------------------------------------------------------------------------ results


def _means(analysis: Analysis) -> Section:
    leading, more, score = leaders(analysis), left_out(analysis), wording.measured(analysis)
    letters = leading.decisions.lettered
    frame = leading.to_frame()
    interval = f"{100 * analysis.means.level:.4g} % CI"
    worse = frame.pop("worse_than_best")
    ranks = [rank_span(*ends) for ends in zip(frame.pop("rank_low"), frame.pop("rank_high"), strict=True)]
    names = [analysis.runs.algorithm, "mean", "SE", "df", f"{interval} low", f"{interval} high"]
    frame.columns = [*names, "letters"] if letters else names
    frame.insert(1, "ranks", ranks)
    if not letters:
        frame["worse than the best"] = np.where(worse, "yes", "no")
    rows = analysis.components.to_dict("records")
    parts = {kind: sum(c["share"] for c in rows if c["kind"] == kind) for kind in ("benchmark", "interaction")}
    notes = sentences_of(
        "sections.means",
        letters=letters,
        simultaneous=leading.decisions.simultaneous and not analysis.incomparable,
        level=f"{100 * (1 - analysis.alpha):g} %",
        mostly_difficulty=parts["benchmark"] > parts["interaction"],
    )
    formats: dict[str, Any] = dict.fromkeys(("mean", "SE", *names[4:6]), _estimates(frame["SE"]))
    table = ResultTable(
        f"Estimated marginal means of {score}, best first",
        frame,
        (*notes, *analysis.means.notes),
        {"df": ".1f", **formats},
    )
    ranked = zip(leading.decisions.levels, leading.decisions.means, strict=True)
    means = ", ".join(f"{name} {format_number(float(mean))}" for name, mean in ranked)
    means_shown, pairs_shown, decided = pictured(leading)
    drawn = figure(
        partial(means_shown.plot, decisions=decided if letters else None, pairs=pairs_shown),
        alt=f"Marginal means with intervals for comparison, best first: {means}",
        caption=(f"Marginal means of {score} with intervals for comparison ({wording.better(analysis)} is better).",),
    )
    text = paragraph(" ".join(filter(None, (wording.joint_sentence(analysis), more))))
    finite = [
        (name, mean)
        for name, mean in zip(analysis.decisions.levels, analysis.decisions.means, strict=True)
        if mean == mean
    ]
    ends = [(name, format_number(float(mean))) for name, mean in (finite[:1] + finite[-1:])]
    gist = texts(
        "verdict.means",
        named=bool(ends),
        first=ends[0][0] if ends else "",
        low=ends[0][1] if ends else "",
        last=ends[-1][0] if ends else "",
        high=ends[-1][1] if ends else "",
    )
    whole = []
    if leading is not analysis:
        whole.append(folded(f"Ranking of all {len(analysis.decisions.levels):,} algorithms", ranking_table(analysis)))
    return Section("means", "Means", (text, table, *whole, drawn), summary=gist[0])


def _untested(analysis: Analysis) -> str:
    """How many pairs are undecided; empty where none are."""
    untested = int(np.triu(analysis.decisions.undecided.to_numpy()).sum())
    return sentence_of("sections.untested", untested=untested, apart=untested == len(analysis.means.apart()) // 2)


def _pairs(analysis: Analysis) -> Section:
    pairs, k, names = analysis.pairs, len(analysis.decisions.levels), leaders(analysis)
    content: list[Block] = []
    sentence, untested, n = wording.pairs_sentence(analysis), _untested(analysis), len(pairs.to_frame())
    undecided = len(pairs.to_frame()) > analysis.decisions.n_significant
    text = paragraph(f"{sentence}{' ' * bool(untested)}{untested}{_NOT_EQUAL * bool(undecided)}{best_only(analysis)}")
    check = wording.cautious(analysis)
    if check is not None:  # one number per benchmark, where the tests rest on rows or on a common variance
        rests_on = wording.rests_on(analysis)
        why = texts("sections.cautious", rests_on=rests_on, n_benchmarks=analysis.n_benchmarks)
        content += [*why, closed_if_long("The cautious check", check.to_table(), MOST_PAIRS)]
    table, alt = _pairs_table(names), f"{sentence} The table has the numbers."
    if n <= MOST_PAIRS:
        caption = "Pairwise differences and their adjusted p-values." if n > 1 else "The difference and its p-value."
        drawn = figure(pictured(analysis)[1].plot, alt=alt, caption=(caption,))
        return Section("pairs", "All pairs", (text, table, *content, drawn), summary=_pairs_gist(analysis))
    caption = (
        "Each cell shows by how much the column is better than the row; coloured cells are significant. "
        "Algorithms are in the order of their means."
    )
    drawn = figure(partial(_matrix, pictured(names)[1]), alt=alt, caption=(caption,))
    title = f"Table of all {n} differences of {k} algorithms"
    if names is not analysis:
        title = f"Table of the {len(names.pairs.to_frame())} differences of the {len(names.decisions.levels)} best"
    some = names.decisions.n_significant > 0  # else nothing in the matrix has a colour
    blocks = (text, *([drawn] if some else []), folded(title, table), *content)
    return Section("pairs", "All pairs", blocks, summary=_pairs_gist(analysis))


def _matrix(pairs: Comparisons) -> Any:
    from lmemtest.plots import pairs_matrix_plot

    return pairs_matrix_plot(pairs)


def _pairs_gist(analysis: Analysis) -> Text:
    """How many pairs differ, and the closest of the others."""
    table, codes = analysis.pairs.to_frame(), analysis.decisions
    open_ones = table[(codes.pairs(table["left"], table["right"]) == Verdict.NOT_SIGNIFICANT)]
    closest = None
    if len(open_ones):
        row = open_ones.iloc[tie_order(open_ones["p_value"])[0]]
        closest = (row["left"], row["right"], p_text(float(row["p_value"]), level=analysis.alpha))
    (gist,) = texts(
        "verdict.pairs",
        incomparable=analysis.incomparable,
        significant=codes.n_significant,
        n_pairs=len(table),
        n_open=len(open_ones),
        alpha=wording.alpha_text(analysis),
        closest=closest,
    )
    return gist


def _elsewhere(analysis: Analysis) -> Section | None:
    """The same pairs by another score, for another population and by classical tests."""
    details: list[Block] = []
    if analysis.agreement is not None:  # which pairs another scale of the score decides otherwise
        beside = analysis.agreement
        changes = list(beside.changes[:MOST_NAMES])
        if len(beside.changes) > MOST_NAMES:
            changes.append(f"... and {len(beside.changes) - MOST_NAMES:,} more (see the table).")
        details += wording.by_ranks(analysis) or (paragraph(beside.overview),)
        told: list[Block] = [bullets(changes)] if changes else []
        details.append(folded("Both scores, pair by pair", *told, beside.to_table()))
    details += [*_both_populations(analysis), *classical_blocks(analysis)]
    return elsewhere_section(analysis, details)


def _both_populations(analysis: Analysis) -> list[Block]:
    """The decisions for new families and for new benchmarks of these, and the pairs on which they differ."""
    populations = analysis.populations
    if populations is None or analysis.incomparable:
        return []
    changed = populations.changed()
    if changed.empty:
        return [paragraph(f"{populations.overview} {populations.counts}")]
    columns = ("first", "second", *(f"better {phrase}" for phrase in populations.phrases.values()))
    frame = changed[["left", "right", *populations.phrases]].set_axis(list(columns), axis=1)
    p_values = {
        f"p {populations.phrases[name]}": populations.p_value[i, changed.index]
        for i, name in enumerate(populations.phrases)
    }
    table = ResultTable(
        "Pairs with another decision for the other population",
        frame.assign(**p_values),
        tuple(f"{capitalised(meaning)}." for meaning in populations.meanings.values()),
        dict.fromkeys(p_values, partial(format_p, level=analysis.alpha)),
    )
    families = plural(analysis.runs.study.families[-1][-1])
    first, second = populations.phrases.values()
    text = (
        f"{populations.overview} {populations.counts} Claims {first} are limited by the number of {families}; "
        f"claims {second} are more precise, and say nothing about other {families}."
    )
    return [paragraph(text), closed_if_long(table.title, table, MOST_PAIRS)]


def _pairs_table(analysis: Analysis) -> ResultTable:
    pairs = analysis.pairs.best_first()
    frame = pairs.to_frame()
    apart, decided = analysis.means.apart(), analysis.decisions.decision
    decision = []
    for pair in zip(frame["left"], frame["right"], strict=True):
        untested = "no common benchmark" if pair in apart else "not tested"
        row_of_pair = decided.loc[pair]
        decision.append(untested if pd.isna(row_of_pair) else "yes" if row_of_pair else "no")
    interval = f"{confidence(pairs.level)} CI"
    frame.columns = ["first", "second", "difference", "SE", "df", "t", "p", f"{interval} low", f"{interval} high"]
    sign = "negative" if analysis.runs.direction == "minimize" else "positive"
    said = set(analysis.means.notes)  # below the table of means
    notes = [f"A {sign} difference means that the first of the two is better."]
    notes += [note for note in pairs.notes if note not in said]
    if pairs.log_base is not None:
        ratios = pairs.ratios()[["ratio", "ci_low", "ci_high"]].to_numpy(dtype=float)
        written = [[format_number(value, 3) for value in row] for row in ratios]
        frame["ratio"] = [MISSING if ratio == MISSING else f"{ratio} ({low} to {high})" for ratio, low, high in written]
        notes.append(f"Ratio: geometric mean of {analysis.runs.score} of the first over that of the second.")
    if not analysis.incomparable:
        frame["significant"] = decision
    formats: dict[str, Any] = dict.fromkeys(("difference", "SE", *frame.columns[7:9]), _estimates(frame["SE"]))
    title = f"Differences of the means of {wording.measured(analysis)}: first − second"
    return ResultTable(
        title, frame, tuple(notes), {"df": ".1f", "t": ".2f", "p": partial(format_p, level=analysis.alpha), **formats}
    )


def _estimates(se: pd.Series[Any]) -> Callable[[float], str]:
    """One way to write estimates, standard errors and intervals: three digits of the smallest standard error."""
    positive = se[np.isfinite(se) & (se > 0)]
    return wording.writer(float(positive.min()) / 10.0) if len(positive) else format_number


def _ranking(analysis: Analysis) -> Section | None:
    if analysis.incomparable:
        return None  # a diagram of decisions would be a verdict
    names = leaders(analysis)
    sep = names.decisions
    low, high = map(format_number, sep.critical_difference)
    width = low if np.isclose(*sep.critical_difference) else f"{low} to {high}, depending on the pair"
    groups = [group for group in sep.groups if len(group) > 1]
    one_group = len(groups) == 1 and len(groups[0]) == len(sep.levels)
    untested = _untested(analysis)
    text = sentence_of(
        "sections.ranking",
        width=width,
        out_of_reach=sep.out_of_reach,
        groups=groups,
        one_group=one_group,
        many=sum(map(len, groups)) > MOST_NAMES,
        letters=sep.lettered,
        most_named=MOST_NAMES,
        untested=untested,
    )
    drawn = figure_or_reason(
        sep.plot,
        alt=f"Critical-difference diagram, best first: {', '.join(sep.levels)}. {text}",
        caption=(sentence_of("sections.diagram", untested=untested),),
    )
    among = "" if names is analysis else f" among the {len(sep.levels)} best"
    together = f"{counted(len(groups), 'group')} of algorithms{among} that are not distinguishable."
    together = f"No two algorithms{among} differ significantly." if one_group else together
    gist = (together if groups else f"All algorithms{among} differ.",)
    blocks = (paragraph(text + best_only(analysis)), drawn)
    return Section("ranking", "Critical-difference diagram", blocks, summary=gist)


def _failures(analysis: Analysis) -> Section | None:
    """What was done with failed runs; None where none failed."""
    policy, variants = analysis.runs.failures, analysis.sensitivity
    if policy is None or not policy.n_failed:
        return None
    own_model = " The policies are compared by the recommended model, not by that of the report." * analysis.own_formula
    blocks: list[Block] = [paragraph(strong("Policy."), f" {policy.note}{own_model}")]
    if variants is not None:
        first, *others = variants.sentences()
        blocks += [paragraph(first), bullets(others), variants.to_table()]
    else:
        blocks.append(paragraph("No other policy could be applied, so how far the verdict depends on it is not known."))
    rates = failure_rates(analysis.runs, alpha=analysis.alpha, rng=0)
    sentences = rates.sentences()
    blocks.append(paragraph(" ".join(sentences[:2])))
    table = rates.to_table()
    of_kinds = {"Failed runs by kind": rates.kinds, "Runs to be run again": rates.to_repeat}
    blocks += [folded(title, ResultTable(title, rows)) for title, rows in of_kinds.items() if len(rows)]
    if rates.table["algorithm"].nunique() > MOST_RATES:
        blocks.append(folded("How often each algorithm fails", table))
        return Section("failures", "Failed runs", tuple(blocks), summary=(sentences[0],))
    drawn = figure(
        rates.plot,
        alt=sentences[0],
        caption=("Share of runs that failed, with intervals for further runs and for further benchmarks.",),
    )
    blocks += [drawn, folded("How often each algorithm fails", table)]
    return Section("failures", "Failed runs", tuple(blocks), summary=(sentences[0],))


# -------------------------------------------------------------------------------------------------- benchmarks


def _benchmarks(analysis: Analysis) -> Section:
    effects, title, noun = analysis.effects, "By benchmark", analysis.unit
    if effects is None:
        text = paragraph("The runs have no benchmark column, so there is nothing to compare between benchmarks.")
        return Section("benchmarks", title, (), summary=text)
    names = leaders(analysis)
    shown_effects = names.effects or effects
    table, winners = _plotted(names, shown_effects), wording.winners_sentence(analysis)
    benchmarks, rule = telling(table)
    intervals = f", with {100 * effects.level:.4g} % intervals, not simultaneous." if effects.replicates else "."
    drawn = figure_or_reason(
        partial(_deviations, table[table["benchmark"].isin(benchmarks)], analysis.runs.direction),
        alt=f"Deviation of each algorithm from the mean of each {noun}. {winners}",
        caption=(
            f"Observed deviation of each algorithm from the mean of the algorithms on each {noun}{intervals}"
            f"{UNITS * analysis.check.scales_differ}{rule}{best_only(analysis)}",
        ),
    )
    of_whom = "all effects" if names is analysis else f"the effects of the {len(names.decisions.levels)} best"
    blocks = (
        paragraph(" ".join(filter(None, (winners, wording.order_sentence(analysis))))),
        paragraph(_effects_method(analysis, effects)),
        drawn,
        folded(f"Table of the means by {noun}", _wide_table(analysis, effects, names.decisions.levels)),
        folded(f"Table of {of_whom}, observed and shrunken", _effects_table(names, shown_effects)),
    )
    return Section("benchmarks", title, blocks, summary=(wording.winners_gist(analysis),))


def _deviations(table: pd.DataFrame, direction: str) -> Any:
    from lmemtest.plots import benchmark_effects_plot

    return benchmark_effects_plot(table, direction=direction)


def _metafeatures(analysis: Analysis) -> Section | None:
    """Who is first at each level of each metafeature, with the test that the comparison depends on it; None without."""
    effects = analysis.effects
    if effects is None or not effects.wins_by:
        return None
    rows, gists = [], []
    for column, by_level in effects.wins_by.items():
        test = analysis.interactions.get(column)
        for level, wins in by_level.items():
            rows.append((column, level, joined(first_at(wins), most=MOST_NAMES), max(wins.values())))
        if test is not None and test.significant(analysis.alpha):
            gists.append(f"The comparison depends on {column} ({test.result}).")
        elif test is not None:
            gists.append(f"Dependence on {column} is not shown ({test.result}).")
        elif turns(by_level):
            gists.append(
                f"Levels of {column} have different leaders; whether the comparison depends on it is not tested."
            )
        else:
            gists.append(f"The same algorithm is most often first at all levels of {column}.")
    columns = ["metafeature", "level", "most often first", f"{analysis.unit}s"]
    note = (
        "Observed, not tested: the best mean on each. An interaction is tested where the levels have different leaders."
    )
    notes = [note]
    for column, *_ in wording.turning(analysis):
        by = advice("at_levels", of=analysis.runs.algorithm, by=column, first=column)
        notes.append(f"Compare at each level of {column}: {by}.")
    table = ResultTable("Leaders by metafeature", pd.DataFrame(rows, columns=columns), tuple(notes))
    return Section("metafeatures", "Metafeatures", (table,), summary=(" ".join(gists),))


def _effects_method(analysis: Analysis, effects: Answer) -> str:
    expected = (1 - effects.level) * effects.intervals
    return sentence_of(
        "sections.effects",
        effects=effects,
        unit=analysis.unit,
        level=f"{100 * effects.level:.4g}",
        expected=expected,
        by_chance=max(1, round(expected)),
        two=len(analysis.runs.algorithms) == 2,
    )


def _plotted(analysis: Analysis, effects: Answer) -> pd.DataFrame:
    """What the figure shows: algorithms best first, in units of each benchmark's scatter where scales differ."""
    values = ["effect", "ci_low", "ci_high"]
    table = effects.to_frame()[["benchmark", "algorithm", *values]]
    if analysis.check.scales_differ:
        scales = analysis.check.scales
        sd = dict(zip(scales["benchmark"], scales["residual_sd"].where(scales["residual_sd"] > 0), strict=True))
        unit = table["benchmark"].map({label: sd.get(name) for label, name in effects.benchmark_of.items()})
        table[values] = table[values].div(unit.astype(float), axis=0)
    table["algorithm"] = table["algorithm"].map(format_level)
    order = table["algorithm"].map({name: i for i, name in enumerate(analysis.decisions.levels)})
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def _wide_table(analysis: Analysis, effects: Answer, names: tuple[str, ...]) -> ResultTable:
    """Observed means of the algorithms shown, one row per benchmark; the best of all is named."""
    table = effects.to_frame()
    table["algorithm"] = table["algorithm"].map(format_level)
    rows, more = first_rows(table["benchmark"].unique().tolist(), "analysis.effects.to_frame()")
    wide = table.pivot(index="benchmark", columns="algorithm", values="mean").loc[rows, list(analysis.decisions.levels)]
    best = wide.min(axis=1) if analysis.runs.direction == "minimize" else wide.max(axis=1)
    winners = [joined(wide.columns[row], most=3) for row in wide.eq(best, axis=0).to_numpy()]
    wide = wide[list(names)]
    written = pd.DataFrame([_same_decimals(row) for row in wide.to_numpy(dtype=float)], columns=list(wide.columns))
    written.insert(0, analysis.unit, wide.index.to_numpy())
    written["best"] = winners
    notes = (f"Observed means of {wording.measured(analysis)}; algorithms in the order of their marginal means.", *more)
    return ResultTable(f"Means by {analysis.unit}", written, notes)


def _same_decimals(values: np.ndarray) -> list[str]:
    """Numbers of one benchmark with as many decimals as their differences need."""
    finite = values[np.isfinite(values)]
    step = max(np.ptp(finite) / 10.0, 1e-6 * np.abs(finite).max()) if len(finite) else 0.0
    if same_rounding(finite, 0):  # counts, or right and wrong: no decimals
        step = 10.0
    write = wording.writer(float(step))
    return [write(value) if np.isfinite(value) else MISSING for value in values]


def _effects_table(analysis: Analysis, effects: Answer) -> ResultTable:
    frame = effects.to_frame().drop(columns="df")
    rows, more = first_rows(frame["benchmark"].unique().tolist(), "analysis.effects.to_frame()")
    frame = frame[frame["benchmark"].isin(rows)]
    interval = f"{100 * effects.level:.4g} % CI"
    columns = [analysis.unit, analysis.runs.algorithm, "runs", "mean", "deviation", "SE"]
    frame.columns = [*columns, f"{interval} low", f"{interval} high", "shrunken"]
    if frame["shrunken"].isna().all() or effects.n_instances < 2:
        frame = frame.drop(columns="shrunken")
    note = (
        "Deviation: observed mean minus the mean of the algorithms there. Shrunken: the same as the model expects it, "
        "shrunk towards the algorithm's average deviation according to the noise in the data (fixed effect plus BLUP); "
        "use it to predict, and the observed one to describe."
    )
    formats: dict[str, Any] = dict.fromkeys(frame.columns[3:], format_number)
    return ResultTable("Effects", frame, (note, *more, *effects.notes), formats)


def _variation(analysis: Analysis) -> Section:
    fit, column = analysis.fit, analysis.fit.dispersion
    slopes = any(term.names != ("Intercept",) for term in fit.design.random)
    note = "Variance: what a term adds to the variance of one row, in squared units of the score"
    note += ", averaged over the rows where a term has slopes." if slopes else "."
    note += " Share: of the variance that the fixed effects leave."
    formats: dict[str, Any] = {"share": percent, "variance": format_number, "sd": format_number}
    frame = analysis.components.drop(columns="kind")
    blocks: list[Block] = [ResultTable("Variance components (REML)", frame, (note,), formats)]
    if column is not None:
        variances = fit.residual_variances.astype(float)
        names = [format_level(level) for level in variances.index]
        variances_of_levels = pd.DataFrame(
            {column: names, "residual variance": variances.array, "sd": np.sqrt(variances.array)}
        )
        note = "The residual of the table above is their mean over the rows."
        formats = dict.fromkeys(("residual variance", "sd"), format_number)
        blocks.append(ResultTable(f"Residual variance by {column}", variances_of_levels, (note,), formats))
    (gist,) = texts("verdict.variation", parts=wording.variation_parts(analysis)[:3])
    return Section("variation", "Where variation comes from", tuple(blocks), summary=gist)


# ------------------------------------------------------------------------------------------- size of the study


def study_size_section(analysis: Analysis) -> Section | None:
    """The smallest difference that is found with 80 % power; None where all is decided or the model tells nothing."""
    k, n_benchmarks = len(analysis.decisions.levels), analysis.n_benchmarks
    n_open = k * (k - 1) // 2 - analysis.decisions.n_significant
    if analysis.incomparable or n_benchmarks < 2 or n_open == 0:
        return None
    if analysis.runs.study.crossed:  # its benchmarks are in several families, those of a planned study in one
        return None
    try:
        components = VarianceComponents.of(analysis.fit)
    except ArgumentError:  # no study of benchmarks and runs alone, as with budgets in the model
        return None
    families = components.pilot.n_families if components.pilot else None
    unrounded = {"n_seeds": components.pilot.n_seeds if components.pilot else 1.0}
    if families:
        unrounded = {"n_benchmarks": n_benchmarks / families, **unrounded}
    size: dict[str, Any] = {"n_families": families} if families else {"n_benchmarks": n_benchmarks}
    size |= {name: max(1, round(number)) for name, number in unrounded.items()}
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
        about={name for name, number in unrounded.items() if abs(number - size[name]) >= 1e-6},  # numbers that differ
        effects=[format_number(effect) for effect in effects],
        power=POWER,
        nouns=_nouns(size),
        needed=_families_for(0.5 * effects[0], components, size, k, analysis.alpha) if families else None,
        planned=advice("power"),
    )
    (gist,) = texts(
        "verdict.size", effects=[format_number(effect) for effect in effects], power=POWER, noun=_nouns(size)[0]
    )
    blocks: tuple[Block, ...] = (*text, _sizes_table(sizes, components, smallest))
    return Section("size", "Could this study find more?", blocks, summary=gist)


def _nouns(size: Iterable[str]) -> list[str]:
    """The words for numbers of a design."""
    of_each = "benchmarks of each" if "n_families" in size else "benchmarks"
    return [{"n_families": "families", "n_benchmarks": of_each, "n_seeds": "runs"}[name] for name in size]


def _families_for(effect: float, components: VarianceComponents, size: dict[str, Any], k: int, alpha: float) -> int:
    """How many families a difference takes."""
    study = power(components, effect=effect, **size, n_algorithms=k, alpha=alpha, method="closed_form")
    return int(study.needed(POWER).table["n_families"].iloc[0])


def _sizes_table(sizes: list[dict[str, int]], components: VarianceComponents, smallest: pd.DataFrame) -> ResultTable:
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
