"""An analysis as a document: which blocks stand where."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import ResultTable
from lmemtest.report import methods, wording
from lmemtest.report.curves import curves_section
from lmemtest.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    FigureBlock,
    Fold,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    paragraph,
)
from lmemtest.report.figures import figure
from lmemtest.report.leaders import best_only, first_rows, leaders, left_out, readable_letters, telling
from lmemtest.studies.variation.model_components import components_frame
from lmemtest.words import counted, format_level, format_number, joined, sentence

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.report.analysis import Analysis
    from lmemtest.studies.benchmark.observed_advantages import ObservedAdvantages

MOST_PAIRS = 21  # rows of a table that are still read: 7 algorithms; beyond, the matrix comes first
MOST_ROWS = 24  # of a table per benchmark before it is folded
UNITS = (
    " Deviations are in units of the scatter of the scores on the benchmark (see the table of the benchmarks), because "
    "raw ones differ too much in size to share an axis; the tables below have the raw ones."
)
RANKS = (
    "Ranks: those that the decisions leave open, from one more than the number of algorithms that are significantly "
    "better to the number of all less those that are significantly worse."
)
MOST_NAMES = 12  # in a sentence about groups
SHOWN = 3  # findings of one kind


def build_document(analysis: Analysis, *, progress: Callable[[str], None]) -> Document:
    """Put an analysis into words, tables and figures.

    Parameters
    ----------
    analysis : Analysis
    progress : callable
        Called with the name of each step.

    Returns
    -------
    Document
    """
    steps: list[tuple[str, Callable[[Analysis], Section | None]]] = [
        ("describing the data", _data),
        ("describing the model", methods.model_section),
        ("drawing the means", _means),
        ("drawing the pairs", _pairs),
        ("drawing the critical-difference diagram", _ranking),
        ("drawing the benchmarks", _benchmarks),
        ("drawing the tuning curves", curves_section),
        ("describing the variation", _variation),
        ("writing it up", methods.diagnostics_section),
        ("writing it up", methods.methods_section),
        ("writing it up", methods.limitations_section),
        ("writing it up", methods.reproduction_section),
    ]
    sections = []
    for step, build in steps:
        progress(step)
        section = build(analysis)
        if section is not None:
            sections.append(section)
    runs = analysis.runs
    return Document(
        title=f"Comparison of {len(runs.algorithms)} algorithms by {runs.score}",
        subtitle=analysis.check.overview,
        lead=_lead(analysis),
        sections=tuple(sections),
        generator=f"lmemtest {analysis.versions['lmemtest']}",
    )


def _lead(analysis: Analysis) -> tuple[Block, ...]:
    first, *others = wording.headline(analysis)
    return (Paragraph(first), *((Paragraph(_spaced(others)),) if others else ()))


def _spaced(texts: list[Any]) -> tuple[Any, ...]:
    parts: list[Any] = []
    for text in texts:
        parts += [*([" "] if parts else []), *text]
    return tuple(parts)


def _better(analysis: Analysis) -> str:
    return f"{'lower' if analysis.runs.direction == 'minimize' else 'higher'} is better"


# ----------------------------------------------------------------------------------------------------- the data


def _data(analysis: Analysis) -> Section:
    runs = analysis.runs
    blocks: list[Block] = [
        paragraph("The score is ", Code(runs.score), f"; {_better(analysis)}."),
        TableBlock(_roles(analysis)),
        *_findings(analysis),
    ]
    table = TableBlock(_overview(analysis))
    blocks.append(table if len(table.table.frame) <= MOST_ROWS else Fold("Table of the benchmarks", (table,)))
    return Section("data", "Data and checks", tuple(blocks))


def _roles(analysis: Analysis) -> ResultTable:
    import pandas as pd

    runs = analysis.runs
    names = [("score", runs.score), ("algorithm", runs.algorithm), ("benchmark", runs.benchmark), ("seed", runs.seed)]
    names += [("budget", runs.budget), *(("metafeature", name) for name in runs.metafeatures)]
    names += [("left out on purpose", name) for name in runs.ignore]
    rows = [(role, name, _levels(analysis, role, name)) for role, name in names if name is not None]
    return ResultTable("Columns and their roles", pd.DataFrame(rows, columns=["role", "column", "values"]))


def _levels(analysis: Analysis, role: str, name: str) -> str:
    if role == "score":
        return f"to {analysis.runs.direction}"
    levels = [format_level(level) for level in analysis.runs.levels(name)]
    most = 24 if role == "algorithm" else 6
    shown = ", ".join(levels[:most]) + (", ..." if len(levels) > most else "")
    return f"{len(levels):,}: {shown}"


def _findings(analysis: Analysis) -> list[Block]:
    findings = analysis.check.findings
    if not findings:
        return [paragraph("The checks found no problems: no notable missing, duplicated, constant or tied scores.")]
    blocks: list[Block] = []
    for (severity, kind), group in groupby(findings, lambda f: (f.severity, f.kind)):
        found = list(group)
        items: list[Any] = [(finding.message,) for finding in found[:SHOWN]]
        if len(found) > SHOWN:
            items.append((f"... and {len(found) - SHOWN:,} more of this kind.",))
        advice = tuple(
            paragraph(Strong("What to do: "), text) for text in dict.fromkeys(f.advice for f in found[:SHOWN])
        )
        blocks.append(Callout(severity, kind.replace("_", " ").capitalize(), (Bullets(tuple(items)), *advice)))
    return blocks


def _overview(analysis: Analysis) -> ResultTable:
    """One row per benchmark, with columns that say something only."""
    runs, check = analysis.runs, analysis.check
    cells = check.cells.assign(benchmark=check.cells["benchmark"].map(_name))
    rows, more = first_rows(list(dict.fromkeys(cells["benchmark"])), "analysis.check.cells")
    cells = cells[cells["benchmark"].isin(rows)]
    groups = cells.groupby("benchmark", sort=False)
    scales = dict(zip(check.scales["benchmark"].map(_name), check.scales["residual_sd"], strict=True))
    table = groups.agg(rows=("n", "sum"), algorithms=("n", lambda n: int((n > 0).sum())))
    if runs.seed:
        table["seeds"] = groups["seeds"].agg(_span)
    if runs.budget:
        table["budgets"] = groups["budgets"].agg(_span)
    for name in ("missing", "duplicates", "non_finite"):
        if check.cells[name].sum():
            table[name.replace("_", " ")] = groups[name].sum()
    table["mean score"] = groups[["mean", "n"]].apply(lambda g: _weighted(g["mean"], g["n"]))
    table["scatter"] = [scales.get(name, float("nan")) for name in table.index]
    note = (
        "Mean score: over all rows. Scatter: standard deviation of the scores within algorithm"
        + (", instance" if runs.metafeatures else "")
        + (" and budget." if runs.budget and analysis.budgets.regular else ".")
        + (" It contains the course over the budget." if not analysis.budgets.regular else "")
    )
    formats: dict[str, Any] = dict.fromkeys(("mean score", "scatter"), _four)
    return ResultTable("Benchmarks", table.reset_index(names="benchmark"), (note, *more), formats)


def _name(benchmark: Any) -> str:
    return "all runs" if benchmark is None else format_level(benchmark)


def _span(values: pd.Series[Any]) -> str:
    low, high = int(values.min()), int(values.max())
    return str(high) if low == high else f"{low} to {high}"


def _weighted(mean: pd.Series[Any], n: pd.Series[Any]) -> float:
    known = mean.notna() & (n > 0)
    return float(np.average(mean[known], weights=n[known])) if known.any() else float("nan")


def _three(value: float) -> str:
    return format_number(float(value), 3)


def _four(value: float) -> str:
    return format_number(float(value), 4)


# ------------------------------------------------------------------------------------------------------ results


def _means(analysis: Analysis) -> Section:
    from lmemtest.plots import emmeans_plot

    shown, more = leaders(analysis), left_out(analysis)
    letters = readable_letters(shown)
    separation = shown.separation if letters else None
    frame = shown.to_frame()
    interval = f"{100 * analysis.means.level:.4g} % CI"
    worse = frame.pop("worse_than_best")
    frame.columns = [analysis.runs.algorithm, "mean", "SE", "df", f"{interval} low", f"{interval} high", "letters"]
    if not letters:
        frame = frame.drop(columns="letters")
    if more or not letters:
        ranks = analysis.separation.rank_ranges()
        frame.insert(1, "ranks", [_rank_text(*ranks[name]) for name in frame[analysis.runs.algorithm]])
        frame["worse than the best"] = np.where(worse, "yes", "no")
    decided = "the letters and the pairwise table" if letters else "the pairwise table"
    notes = (
        *(("Algorithms that share a letter do not differ significantly.",) if letters else ()),
        *((RANKS,) if more or not letters else ()),
        f"An interval shows where one mean may lie{_what_means_share(analysis)}; whether two means differ is a "
        f"question to {decided}, not to the overlap of two intervals.",
        *analysis.means.notes,
    )
    write = _estimates(frame["SE"])
    formats: dict[str, Any] = {"df": ".1f", **dict.fromkeys(("mean", "SE", *frame.columns[4:6]), write)}
    table = ResultTable(f"Estimated marginal means of {analysis.means.score}, best first", frame, notes, formats)
    alt = f"Marginal means with {interval}s, best first: " + ", ".join(
        f"{name} {_four(mean)}" for name, mean in _ranked(shown)
    )
    return Section(
        "means",
        "Marginal means",
        (
            *_no_verdict(analysis),
            paragraph(" ".join(filter(None, (wording.joint_sentence(analysis), more)))),
            TableBlock(table),
            figure(
                lambda: emmeans_plot(shown.means, separation=separation),
                alt=alt,
                caption=(f"Marginal means of {analysis.means.score} with {interval}s ({_better(analysis)}).",),
            ),
        ),
    )


def _without_test(analysis: Analysis) -> str:
    """How many pairs are undecided, where there are any."""
    count = int(np.triu(analysis.separation.undecided.to_numpy()).sum())
    if not count:
        return ""
    if count == len(analysis.means.apart()) // 2:
        met = "1 pair has no benchmark in common" if count == 1 else f"{count:,} pairs have no benchmark in common"
        return f" {met} and {'is' if count == 1 else 'are'} undecided."
    return (
        " 1 pair has no test and is undecided." if count == 1 else f" {count:,} pairs have no test and are undecided."
    )


def _what_means_share(analysis: Analysis) -> str:
    """The largest part of the error of a mean, where it is the same for all algorithms."""
    parts = {"benchmark": 0.0, "interaction": 0.0}
    for component in analysis.components:
        if component.kind in parts:
            parts[component.kind] += component.share
    if not parts["benchmark"] > parts["interaction"]:
        return ""
    return ", most of which is the difficulty of the benchmarks that all algorithms share"


def _rank_text(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def _ranked(analysis: Analysis) -> list[tuple[str, float]]:
    return list(zip(analysis.separation.levels, analysis.separation.means, strict=True))


def _pairs(analysis: Analysis) -> Section:
    from lmemtest.plots import pairs_matrix_plot, pairs_plot

    pairs, k, shown = analysis.pairs, len(analysis.separation.levels), leaders(analysis)
    table = TableBlock(_pairs_table(shown))
    count = int(np.triu(analysis.separation.significant.to_numpy()).sum())
    text = paragraph(
        f"{wording.pairs_sentence(analysis, count)}{_without_test(analysis)} A difference that is not significant may "
        "be zero, or may be anything else inside its interval: it is not evidence of equality." + best_only(analysis)
    )
    alt = f"{wording.pairs_sentence(analysis, count)} The table has the numbers."
    cautious = (*_cautious(analysis), *_other_score(analysis))
    if len(pairs.to_frame()) <= MOST_PAIRS:
        simultaneous = "simultaneous " if k > 2 else ""
        caption = (f"Pairwise differences with {simultaneous}{100 * pairs.level:.4g} % intervals.",)
        plot = figure(lambda: pairs_plot(pairs), alt=alt, caption=caption)
        return Section("pairs", "Pairwise differences", (*_no_verdict(analysis), text, table, *cautious, plot))
    caption = (
        "Each cell shows by how much the column is better than the row; coloured cells are significant. "
        "Algorithms are in the order of their means.",
    )
    plot = figure(lambda: pairs_matrix_plot(shown.pairs), alt=alt, caption=caption)
    title = (
        f"Table of all {len(pairs.to_frame())} differences of {k} algorithms"
        if shown is analysis
        else f"Table of the {len(shown.pairs.to_frame())} differences of the {len(shown.separation.levels)} best"
    )
    blocks = (*_no_verdict(analysis), text, plot, Fold(title, (table,)), *cautious)
    return Section("pairs", "Pairwise differences", blocks)


def _no_verdict(analysis: Analysis) -> list[Block]:
    """A warning over results that are means over unlike things."""
    if not wording.incomparable_budgets(analysis):
        return []
    why = wording.why_incomparable(analysis)
    return [Callout("warning", "No verdict follows from this", (paragraph(sentence(why.removesuffix("."))),))]


def _cautious(analysis: Analysis) -> list[Block]:
    """The tests over benchmark means, where those of the model rest on rows."""
    check = wording.cautious(analysis)
    if check is None:
        return []
    if wording.rests_on_rows(analysis):
        text = (
            f"The variation of advantages between the {wording.n_benchmarks(analysis)} benchmarks is estimated as "
            f"zero, so the tests above rest on the {wording.finer_units(analysis)}. The table below uses one number "
            "per benchmark instead: where the two disagree, claim no difference."
        )
    else:
        text = (
            "The tests above take the advantages of all algorithms to vary between benchmarks to the same degree. The "
            "table below does not, and uses one number per benchmark: where the two disagree, claim no difference."
        )
    return [paragraph(text), TableBlock(check.to_table())]


def _other_score(analysis: Analysis) -> list[Block]:
    """Of normalised scores: which pairs the raw score decides otherwise."""
    found = analysis.agreement
    if found is None:
        return []
    count = len(found.disagreements())
    first, *others = found.sentences()
    said, closing = others[:count], others[count:]
    more = f"... and {count - MOST_NAMES:,} more (see the table)." if count > MOST_NAMES else ""
    text = " ".join(filter(None, (first, *said[:MOST_NAMES], more, *closing)))
    return [paragraph(text), Fold("Both scores, pair by pair", (TableBlock(found.to_table()),))]


def _pairs_table(analysis: Analysis) -> ResultTable:
    pairs = analysis.pairs
    frame = pairs.to_frame()
    import pandas as pd

    decided = analysis.separation.decision
    values = [decided.loc[left, right] for left, right in zip(frame["left"], frame["right"], strict=True)]
    decision = [
        _untested(analysis, left, right) if pd.isna(value) else "yes" if value else "no"
        for left, right, value in zip(frame["left"], frame["right"], values, strict=True)
    ]
    interval = f"{100 * pairs.level:.4g} % CI"
    frame.columns = ["first", "second", "difference", "SE", "df", "t", "p", f"{interval} low", f"{interval} high"]
    if pairs.log_base is not None:
        ratios = pairs.ratios()
        columns = (ratios[name] for name in ("ratio", "ci_low", "ci_high"))
        frame["ratio"] = [
            f"{_three(ratio)} ({_three(low)} to {_three(high)})" if np.isfinite(ratio) else "–"
            for ratio, low, high in zip(*columns, strict=True)
        ]
    if not wording.incomparable_budgets(analysis):
        frame["significant"] = decision
    sign = "negative" if analysis.runs.direction == "minimize" else "positive"
    notes = (f"A {sign} difference means that the first of the two is better.", *pairs.notes)
    if pairs.log_base is not None:
        notes = (*notes, f"Ratio: geometric mean of {analysis.runs.score} of the first over that of the second.")
    title = f"Differences of the means of {analysis.means.score}: first − second"
    write = _estimates(frame["SE"])
    formats = dict.fromkeys(("difference", "SE", *frame.columns[7:9]), write)
    return ResultTable(title, frame, notes, {"df": ".1f", "t": ".2f", **formats})


def _untested(analysis: Analysis, left: str, right: str) -> str:
    return "no common benchmark" if (left, right) in analysis.means.apart() else "not tested"


def _estimates(se: pd.Series[Any]) -> Callable[[float], str]:
    """One way to write estimates, standard errors and intervals: three digits of the smallest standard error."""
    known = se[np.isfinite(se) & (se > 0)]
    return wording.writer(float(known.min()) / 10.0) if len(known) else _four


def _ranking(analysis: Analysis) -> Section | None:
    from lmemtest.plots import cd_diagram

    if wording.incomparable_budgets(analysis):
        return None  # a diagram of decisions would be a verdict
    shown = leaders(analysis)
    sep = shown.separation
    groups = [group for group in sep.groups if len(group) > 1]
    low, high = sep.critical_difference
    write = _four
    width = write(low) if np.isclose(low, high) else f"{write(low)} to {write(high)}, depending on the pair"
    silent = _without_test(analysis)
    text = f"Means further apart than the critical difference ({width}) differ significantly. "
    text += _groups_text(groups, shown) + (f"{silent} A group says nothing of them." if silent else "")
    alt = "Critical-difference diagram, best first: " + ", ".join(name for name, _ in _ranked(shown)) + ". " + text
    text += best_only(analysis)
    blocks: list[Block] = [paragraph(text)]
    drawn = _try_figure(
        lambda: cd_diagram(sep),
        alt=alt,
        caption=(
            "Critical-difference diagram on the scale of the marginal means. A bar joins algorithms that do not differ "
            "significantly; it carries a dot at each of its members."
            + (" Diamonds: a pair of the bar has no test." * bool(silent)),
        ),
    )
    return Section("ranking", "Critical-difference diagram", (*blocks, drawn))


def _groups_text(groups: list[tuple[str, ...]], shown: Analysis) -> str:
    """The groups by name where that can be read, and by number where it cannot."""
    if not groups:
        return "There is no group without significant differences: all algorithms differ from each other."
    if sum(map(len, groups)) > MOST_NAMES:
        where = "the letters of the means name them" if readable_letters(shown) else "the bars of the diagram show them"
        return f"There are {len(groups)} groups without significant differences; {where}."
    named = "; ".join(joined(group, most=MOST_NAMES) for group in groups)
    return f"Groups without significant differences: {named}."


def _try_figure(draw: Callable[[], Any], *, alt: str, caption: Any) -> FigureBlock | Paragraph:
    """A figure, or why it cannot be drawn: too many groups must not cost a reader the report."""
    from lmemtest.errors import ArgumentError

    try:
        return figure(draw, alt=alt, caption=caption)
    except ArgumentError as error:
        return paragraph(f"No figure: {error}")


def _benchmarks(analysis: Analysis) -> Section:
    from lmemtest.plots import benchmark_effects_plot

    effects = analysis.effects
    title, noun = "Effects by benchmark", wording.unit_noun(analysis)
    if effects is None:
        text = paragraph("The runs have no benchmark column, so there is nothing to compare between benchmarks.")
        return Section("benchmarks", title, (text,))
    interval = f"{100 * effects.level:.4g} %"
    shown = leaders(analysis)
    shown_effects = shown.effects or effects
    table = _plotted(shown, shown_effects)
    benchmarks, rule = telling(table)
    blocks: list[Block] = [
        paragraph(" ".join(filter(None, (wording.winners_sentence(analysis), wording.order_sentence(analysis))))),
        paragraph(_effects_method(analysis, effects)),
        _try_figure(
            lambda: benchmark_effects_plot(
                table[table["benchmark"].isin(benchmarks)], direction=analysis.runs.direction
            ),
            alt=f"Deviation of each algorithm from the mean of each {noun}. {wording.winners_sentence(analysis)}",
            caption=(
                f"Observed deviation of each algorithm from the mean of the algorithms on each {noun}"
                + (f", with {interval} intervals, one by one." if effects.replicates else ".")
                + (UNITS if _on_different_scales(analysis) else "")
                + rule
                + best_only(analysis),
            ),
        ),
    ]
    means = _wide_table(analysis, effects, shown.separation.levels)
    blocks += [Fold(f"Table of the means by {noun}", (TableBlock(means),))]
    all_effects = _effects_table(shown, shown_effects)
    of_whom = "all effects" if shown is analysis else f"the effects of the {len(shown.separation.levels)} best"
    blocks += [Fold(f"Table of {of_whom}, observed and shrunken", (TableBlock(all_effects),))]
    return Section("benchmarks", title, tuple(blocks))


def _effects_method(analysis: Analysis, effects: ObservedAdvantages) -> str:
    noun, level = wording.unit_noun(analysis), f"{100 * effects.level:.4g} %"
    if effects.replicates is None:
        return f"Nothing is repeated within one {noun}, so these are plain observed deviations without intervals."
    what = "Each run counts once (the mean of its scores)" if effects.replicates == "seed" else "Each row counts once"
    how = {effects.n_instances: ", differences are taken within seeds", 0: ""}.get(
        effects.paired, f", differences are taken within seeds on {effects.paired} of {effects.n_instances} {noun}s"
    )
    expected = (1 - effects.level) * effects.intervals
    mirror = " With two algorithms one deviation is the other with its sign changed, and counts once."
    mirror = mirror if len(analysis.runs.algorithms) == 2 else ""
    return (
        f"{what}{how}, and each {noun} is looked at by itself, so that a noisy one does not affect the others. These "
        f"intervals are not adjusted for their number: of {counted(effects.intervals, 'interval')} at {level} "
        f"{'about ' if expected >= 1 else 'less than '}{max(1, round(expected)):,} would exclude zero by chance alone; "
        f"{effects.clear:,} {'does' if effects.clear == 1 else 'do'}.{mirror}"
    )


def _on_different_scales(analysis: Analysis) -> bool:
    return analysis.check.scales_differ


def _plotted(analysis: Analysis, effects: ObservedAdvantages) -> pd.DataFrame:
    """What the figure shows: algorithms best first, in units of each benchmark's scatter where scales differ."""
    table = effects.to_frame()[["benchmark", "algorithm", "effect", "ci_low", "ci_high"]]
    if _on_different_scales(analysis):
        scales = analysis.check.scales
        sd = dict(zip(scales["benchmark"], scales["residual_sd"].where(scales["residual_sd"] > 0), strict=True))
        unit = table["benchmark"].map({label: sd.get(name) for label, name in effects.benchmark_of.items()})
        for name in ("effect", "ci_low", "ci_high"):
            table[name] = table[name] / unit.astype(float)
    order = {name: i for i, name in enumerate(analysis.separation.levels)}
    table["algorithm"] = table["algorithm"].map(format_level)
    rank = table["algorithm"].map(order)
    return table.assign(rank=rank).sort_values("rank", kind="stable").drop(columns="rank").reset_index(drop=True)


def _wide_table(analysis: Analysis, effects: ObservedAdvantages, shown: tuple[str, ...]) -> ResultTable:
    """Observed means of the algorithms shown, one row per benchmark; the best of all is named."""
    import pandas as pd

    table = effects.to_frame()
    table["algorithm"] = table["algorithm"].map(format_level)
    wide = table.pivot(index="benchmark", columns="algorithm", values="mean")
    rows, more = first_rows(list(dict.fromkeys(table["benchmark"])), "analysis.effects.to_frame()")
    wide = wide.loc[rows, list(analysis.separation.levels)]
    best = wide.min(axis=1) if analysis.runs.direction == "minimize" else wide.max(axis=1)
    winners = [
        joined([name for name in wide.columns if row[name] == top], most=3)
        for (_, row), top in zip(wide.iterrows(), best, strict=True)
    ]
    wide = wide[list(shown)]
    written = pd.DataFrame([_same_decimals(row) for row in wide.to_numpy(dtype=float)], columns=list(wide.columns))
    written.insert(0, wording.unit_noun(analysis), wide.index.to_numpy())
    written["best"] = winners
    notes = (f"Observed means of {effects.score}; algorithms in the order of their marginal means.", *more)
    return ResultTable(f"Means by {wording.unit_noun(analysis)}", written, notes)


def _same_decimals(values: np.ndarray) -> list[str]:
    """Numbers of one benchmark with as many decimals as their differences need."""
    spread = float(np.nanmax(values) - np.nanmin(values)) if np.isfinite(values).any() else 0.0
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 0.0
    write = wording.writer(max(spread / 10.0, 1e-6 * largest))
    return [write(value) if np.isfinite(value) else "–" for value in values]


def _effects_table(analysis: Analysis, effects: ObservedAdvantages) -> ResultTable:
    frame = effects.to_frame().drop(columns="df")
    rows, more = first_rows(list(dict.fromkeys(frame["benchmark"])), "analysis.effects.to_frame()")
    frame = frame[frame["benchmark"].isin(rows)]
    interval = f"{100 * effects.level:.4g} % CI"
    columns = [wording.unit_noun(analysis), analysis.runs.algorithm, "runs", "mean", "deviation", "SE"]
    frame.columns = [*columns, f"{interval} low", f"{interval} high", "shrunken"]
    if frame["shrunken"].isna().all() or effects.n_instances < 2:
        frame = frame.drop(columns="shrunken")
    notes = [
        "Deviation: observed mean less the mean of the algorithms there. Shrunken: the same as the model expects it, "
        "shrunk towards the algorithm's average deviation according to the noise in the data (fixed effect plus BLUP); "
        "use it to predict, and the observed one to describe.",
        *more,
        *effects.notes,
    ]
    number: dict[str, Any] = dict.fromkeys(frame.columns[3:], _four)
    return ResultTable("Effects", frame, tuple(notes), number)


def _variation(analysis: Analysis) -> Section:
    frame = components_frame(analysis.components)
    formats: dict[str, Any] = {"share": "{:.1%}".format, "variance": _four, "sd": _four}
    note = "Variance: what a term adds to the variance of one row, in squared units of the score" + (
        ", averaged over the rows where a term has slopes." if _has_slopes(analysis) else "."
    )
    table = ResultTable("Variance components (REML)", frame, (note,), formats)
    text = paragraph(" ".join(wording.variation_sentences(analysis)))
    apart = _residuals_table(analysis)
    return Section("variation", "Where the variation comes from", (text, TableBlock(table), *apart))


def _residuals_table(analysis: Analysis) -> list[Block]:
    """Residual standard deviations by level, where the model has several."""
    import pandas as pd

    column = analysis.fit.dispersion
    if column is None:
        return []
    variances = analysis.fit.residual_variances
    rows = [(format_level(level), float(v), float(np.sqrt(v))) for level, v in variances.items()]
    frame = pd.DataFrame(rows, columns=[column, "residual variance", "sd"])
    formats: dict[str, Any] = dict.fromkeys(("residual variance", "sd"), _four)
    note = "The residual of the table above is their mean over the rows."
    return [TableBlock(ResultTable(f"Residual variance by {column}", frame, (note,), formats))]


def _has_slopes(analysis: Analysis) -> bool:
    return any(len(term.names) > 1 or term.names != ("Intercept",) for term in analysis.fit.design.random)
