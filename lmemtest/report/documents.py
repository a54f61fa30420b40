"""A ranking, a comparison of single runs and an evaluation as documents; the first two as sections of a report, too."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.outperforming.over_benchmarks import over_benchmarks
from lmemtest.bench.outperforming.verdict import CONCLUSIONS, NOT_SIGNIFICANT
from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.robustness.variants import Variants
from lmemtest.core.caller import advice
from lmemtest.core.rounding import below, tie_order, written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import (
    MISSING,
    capitalised,
    confidence,
    counted,
    format_number,
    joined,
    percent,
    plural,
    rank_span,
)
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.report.document import (
    HALF_PAGE,
    Block,
    Document,
    Section,
    answered,
    bullets,
    closed_if_long,
    figure,
    folded,
    paragraph,
)
from lmemtest.report.leaders import MOST_TABLE_ROWS, first_rows, leaders
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmemtest.bench.evaluation.evaluation_result import Evaluation
    from lmemtest.bench.ranking.ranking import Ranking
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis

MOST_RANKED_PAIRS = 45  # rows of a table that are still read; more are folded
MOST_ALGORITHMS = 30  # a figure of more is unreadable
GAMMA = 0.75  # Bouthillier et al. (2021)
MOST_SAID = 6  # sentences in front of everything
MOST_DRAWN_PAIRS = 40  # rows of a figure that are still read
LEADING = 1  # sentences of an evaluation after the first, before its figure and table
OTHERS = 12  # algorithms compared with the best one: those that come next
NAMES = 12  # in a sentence


# ---------------------------------------------------------------------- rankings


def ranking_document(ranked: Ranking | Variants) -> Document:
    """A ranking, or several side by side: the answer, tables, figure, and the paragraph for a paper."""
    rankings = ranked.rankings if isinstance(ranked, Variants) else {"ranking": ranked}
    first = next(iter(rankings.values()))
    head, *rest = ranked.sentences()
    sections = [_ranking_section(name, ranking) for name, ranking in rankings.items()]
    if isinstance(ranked, Variants):
        n_alike = int(ranked.alike.sum())
        gets = "gets" if n_alike == 1 else "get"
        alike = f"{n_alike} of {counted(len(ranked.table), 'pair')} {gets} the same decision."
        sections.insert(0, Section("tests", "The tests side by side", _side_by_side(ranked), summary=(alike,)))
    if rest[1:]:
        sections.insert(0, Section("words", "In words", (bullets(rest[1:]),), summary=(rest[1],)))
    return answered(
        f"Ranking of {len(first.levels)} algorithms by {first.score}",
        head,
        *(paragraph(sentence) for sentence in rest[:1]),
        sections=sections,
        subtitle=f"{len(first.levels)} algorithms on {first.blocks.said()}",
        front=(*_ranking_figure(first), _leading_columns(first)),
        names=first.levels,
    )


def _ranking_figure(ranking: Ranking) -> tuple[Block, ...]:
    if len(ranking.levels) > MOST_ALGORITHMS:
        return ()
    alt = f"{ranking.title}; best first: {', '.join(ranking.levels)}. {ranking.sentences()[0]}"
    return (figure(functools.partial(ranking.plot, width=HALF_PAGE), alt=alt, caption=(), as_files=True),)


def _leading_columns(ranking: Ranking) -> ResultTable:
    """The columns of a ranking that answer who is first; its section has all of them."""
    whole = ranking.to_table()
    cells = {name: texts for name, texts, _ in whole.rendered()}
    names = {"mean": "mean", "mean_rank": "mean rank", "median": "median"}
    level = f"{100 * (1 - ranking.alpha):g} % CI"
    columns: dict[str, Any] = {whole.frame.columns[0]: whole.frame.iloc[:, 0]}
    if {"rank_low", "rank_high"} <= set(cells):
        columns["rank"] = [*map(rank_span, cells["rank_low"], cells["rank_high"])]
    columns |= {said: whole.frame[name] for name, said in names.items() if name in cells}
    if {"ci_low", "ci_high"} <= set(cells):
        columns[level] = [f"{low} to {high}" for low, high in zip(cells["ci_low"], cells["ci_high"], strict=True)]
    columns |= {"groups": whole.frame["letters"]} if "letters" in cells else {}
    formats = {names.get(name, name): form for name, form in (whole.formats or {}).items()}
    return replace(whole, frame=pd.DataFrame(columns), formats=formats, notes=())


def _ranking_section(name: str, ranking: Ranking) -> Section:
    pairs = closed_if_long(f"Table of all {len(ranking.pairs)} pairs", pairs_table(ranking), MOST_RANKED_PAIRS)
    blocks = (pairs, ranking.to_table(), paragraph(ranking.paragraph()))
    return Section(name, _test_title(ranking), blocks, summary=(ranking.sentences()[0],))


def _test_title(ranking: Ranking) -> str:
    name = TEST_NAMES[ranking.test]
    return f"{name[:1].upper()}{name[1:]}"


def _one_or_list(texts: list[str]) -> list[Block]:
    """One sentence as a paragraph, several as a list."""
    if len(texts) < 2:
        return [paragraph(text) for text in texts]
    return [bullets(texts)]


def pairs_table(ranking: Ranking) -> ResultTable:
    """The pairs as printed: who, by how much, how sure, in how many blocks."""
    columns = [
        name
        for name in ("left", "right", "estimate", "ci_low", "ci_high", "p_value", "p_left", "p_equal", "p_right")
        if name in ranking.pairs
    ]
    counts = zip(*(ranking.pairs[name] for name in ("wins", "ties", "losses")), strict=True)
    frame = ranking.pairs[[*columns, "effect_size", "magnitude"]].assign(
        **{"w/t/l": ["/".join(map(str, row)) for row in counts], "decision": ranking.pairs["decision"]}
    )
    note = (
        f"Effect sizes ({ranking.effect}) and wins, ties and losses are of the left over the right, on "
        f"{ranking.blocks.said()}."
    )
    return ResultTable("Pairs", frame, (note,), {"effect_size": ".2f"})


def _side_by_side(variants: Variants) -> tuple[Block, ...]:
    return (closed_if_long(f"Table of all {len(variants.table)} pairs", variants.to_table(), MOST_RANKED_PAIRS),)


def classical_blocks(analysis: Analysis) -> list[Block]:
    """What classical tests of one score per benchmark say beside the model; nothing where they do not apply."""
    variants = analysis.classical
    if variants is None:
        return []
    unit = variants.blocks.unit
    head, *rest = variants.sentences()
    names = [TEST_NAMES[name] for name in variants.tests if name != "lmem"]
    text = (
        f"Beside the model, with one score of each algorithm per {unit}: {joined(names, most=len(names))}. "
        f"{' '.join((head, *variants.notes))} The test has to be chosen before the scores are seen: these are for "
        "readers who ask about another one."
    )
    if leaders(analysis) is not analysis:  # a report on many algorithms names the best of them
        return [paragraph(" ".join([text, *variants.trap, advice("all_pairs")]).rstrip())]
    title = f"All pairs, by the model and by {counted(len(names), 'classical test')}"
    return [paragraph(text), *_one_or_list(rest), folded(title, *_side_by_side(variants))]


# ---------------------------------------------------------------------- single runs


def outperforming_document(answer: Answer) -> Document:
    """The answer, the pairs with their figure, each benchmark, and on how many benchmarks it holds."""
    head, *rest = answer.sentences()
    several = len(answer.benchmarks) > len(answer.table)
    whole, count = answer.to_table(), len(answer.table)
    kept = sorted(tie_order(answer.table["ci_low"], descending=True)[:MOST_TABLE_ROWS])
    frame = whole.frame.drop(columns=["n_families", "n_benchmarks", "mean"], errors="ignore")  # too wide for a page
    left_out = (
        f"The {len(kept)} of {count:,} pairs with the highest lower ends; {advice('to_frame', part='table')} has all."
    )
    notes = (*whole.notes, *([left_out] if len(kept) < count else []))
    pairs = replace(whole, frame=frame.iloc[kept], notes=notes)
    sections = [Section("pairs", "Pairs", (pairs, *_pairs_figure(answer, head)))]
    if several:
        parts = {"benchmarks": "Each benchmark separately", "replicability": "Better on at least u benchmarks"}
        folds = (folded(title, _first_pairs(answer, part, title)) for part, title in parts.items())
        sections.append(Section("benchmarks", "By benchmark", tuple(folds)))
    sentences = [rest[place] for place in kept] if len(rest) == count else rest
    return answered(answer.title, head, *_folded_list(sentences, count), sections=sections, subtitle=answer.facts[0])


def _first_pairs(answer: Answer, part: str, title: str) -> ResultTable:
    frame = answer.to_frame(part)
    rows, notes = first_rows(list(frame.index), advice("to_frame", part=part))
    return ResultTable(
        title,
        frame.loc[rows],
        notes,
        dict.fromkeys(["estimate", "ci_low", "ci_high"], ".3f") if part == "benchmarks" else None,
    )


def _folded_list(texts: list[str], count: int) -> tuple[Block, ...]:
    """A list, folded where it is long, of what is said of some of the pairs."""
    title = f"All {count} pairs in words" if len(texts) >= count else f"{len(texts)} of {count:,} pairs in words"
    return (folded(title, bullets(texts)) if len(texts) > MOST_SAID else bullets(texts),) if texts else ()


def _pairs_figure(answer: Answer, sentence: str) -> tuple[Block, ...]:
    if len(answer.table) > MOST_DRAWN_PAIRS:
        return ()
    caption = f"{answer.title}; the dashed line is gamma = {answer.gamma_adjusted:.3g}."
    return (figure(answer.plot, alt=f"{answer.title}. {sentence}", caption=(caption,)),)


def outperforming_section(analysis: Analysis) -> Section | None:
    """How often a run of the best algorithm is better than one of the next, or why runs cannot be compared.

    None where the means are not compared either.
    """
    if analysis.incomparable or len(analysis.comparable) < 2:
        return None
    best, *rest = analysis.comparable
    apart = analysis.means.apart()
    others = [name for name in rest if (best, name) not in apart]
    try:
        answer = _runs_compared(analysis, best, others)
    except LmemtestError as error:
        return Section("outperforming", "Single runs", (), summary=paragraph(f"Single runs are not compared: {error}"))
    compared = answer.table.set_index("right")
    means = analysis.decisions.significant.loc[best].loc[list(compared.index)].to_numpy(dtype=bool)
    runs = (compared["conclusion"] != NOT_SIGNIFICANT).to_numpy()
    turned = below(compared["ci_high"].to_numpy(), 0.5)
    text = texts(
        "sections.outperforming",
        best=best,
        k=len(analysis.decisions.levels),
        n_others=len(compared),
        families=plural(answer.family) if answer.family is not None else "",
        means_of_these=analysis.recommendation.population != "family",
        paired=answer.paired,
        noun=answer.noun,
        conclusions=_conclusions(best, compared),
        slower=list(compared.index[turned]),
        unseen=list(compared.index[means & ~runs & ~turned]),
        not_by_mean=list(compared.index[runs & ~means]),
        most_named=NAMES,
    )
    drawn = _pairs_figure(answer, _conclusions(best, compared))
    first = compared.iloc[0]
    chance, low, high = (written(first[name], ".2f") for name in ("estimate", "ci_low", "ci_high"))
    ends = f" ({confidence(1.0 - answer.alpha_adjusted)} CI {low} to {high})" if np.isfinite(first["ci_low"]) else ""
    gist = f"A {answer.noun} of {best} is better than one of {compared.index[0]} with probability {chance}{ends}."
    blocks = (*text, _advantage_table(answer, best, compared), *drawn)
    return Section("outperforming", f"Single {plural(answer.noun)}", blocks, summary=(gist,))


def _runs_compared(analysis: Analysis, best: str, others: list[str]) -> Answer:
    """Pairs of runs of the same seed, or all runs where there are none; in the order of the others.

    The best one was found with the same scores, so that the family is all pairs of algorithms.
    """
    count = len(analysis.decisions.levels)
    compare = functools.partial(
        over_benchmarks,
        analysis.runs,
        gamma=GAMMA,
        alpha=analysis.alpha,
        control=best,
        comparisons=count * (count - 1) // 2,
    )
    try:
        return compare((best, *others[:OTHERS]), paired=True)
    except DesignError:
        return compare((best, *others[:OTHERS]), paired=False)


def _conclusions(best: str, rows: pd.DataFrame) -> str:
    """For whom each of the conclusions holds."""
    parts = []
    for conclusion in CONCLUSIONS:
        names = rows.index[rows["conclusion"] == conclusion]
        if len(names):
            parts.append(f"{conclusion} against {joined(list(names), most=NAMES)}")
    return f"The advantage of {best} is {'; '.join(parts)}."


def _advantage_table(answer: Answer, best: str, rows: pd.DataFrame) -> ResultTable:
    interval = f"{confidence(1.0 - answer.alpha_adjusted)} CI"
    ends = zip(rows["ci_low"], rows["ci_high"], strict=True)
    frame = pd.DataFrame(
        {
            f"{best} over": rows.index,
            "pairs" if answer.paired else "comparisons": rows["n_pairs"].to_numpy(),
            "probability": rows["estimate"].to_numpy(),
            interval: [
                MISSING if np.isnan(low) else f"{written(low, '.3f')} to {written(high, '.3f')}" for low, high in ends
            ],
        }
    )
    if "risk_difference" in rows:
        frame["difference of the shares"] = rows["risk_difference"].to_numpy()
    frame["conclusion"] = rows["conclusion"].to_numpy()
    if rows["n_benchmarks"].max() > 1:
        counts = zip(rows["better_on"], rows["n_benchmarks"], rows["better_on_most"], strict=True)
        frame["better on"] = [f"{u} of {n}" if most else MISSING for u, n, most in counts]
    formats = dict.fromkeys(["probability", "difference of the shares"], ".3f")
    replicated = "Better on: at least this many benchmarks, by partial conjunction of their own tests."
    notes = (*answer.facts, *([replicated] if "better on" in frame else []), *answer.notes)
    return ResultTable(f"Probability that a {answer.noun} of {best} is better", frame, notes, formats)


# ---------------------------------------------------------------------- evaluations


# What stands above the columns of further tables.
_HEADS = {
    "question": "population",
    "se": "SE of a difference",
    "critical": "critical t",
    "smallest": "smallest found",
    "n_epochs": "epochs",
    "sd_run": "sd of a run",
    "sd_difference": "sd of two runs",
    "largest_usual": "95 % below",
    "sd_here": "sd of two means here",
    "n_failed": "failed",
    "n_answers": "answers",
    "count": "counted as",
}


def evaluation_document(evaluation: Evaluation) -> Document:
    """The answers to both questions, and what they rest on."""
    head, *rest = evaluation.sentences()
    first, *others = evaluation.populations
    drawn = figure(
        functools.partial(evaluation.plot, width=HALF_PAGE),
        alt=f"{evaluation.title}. {head}",
        caption=(),
        as_files=True,
    )
    tables = {suffix: _question(evaluation, suffix) for suffix in evaluation.populations}
    sections = (
        [Section("words", "In words", _further_sentences(rest[LEADING + 1 :]), summary=(rest[LEADING],))]
        if rest[LEADING:]
        else []
    )
    for suffix, tasks in evaluation.populations.items():
        models, pairs = tables[suffix]
        significant = int(below(evaluation.pairs[f"p_value_{suffix}"], evaluation.alpha).sum())
        verb = "differs" if significant == 1 else "differ"
        gist = f"{significant:,} of {counted(len(evaluation.pairs), 'pair')} {verb} significantly."
        title = f"{'For' if suffix == 'like' else 'On'} {tasks}"
        sections.append(Section(suffix, title, (*([models] if suffix in others else []), pairs), summary=(gist,)))
    gists = {"detectable": _found(evaluation), "sources": _largest(evaluation)}
    further = [
        ("noise", "Identical runs", "Standard deviations between runs of one model"),
        ("detectable", "Differences that are found", f"Found with {percent(evaluation.power)} power"),
        ("sources", "Sources of variation", "Standard deviations by source"),
        ("judges", "Judges", "Mean scores by judge"),
        ("failures", "Failed answers", "Failed answers by kind and model, and what they count"),
        ("to_repeat", "Answers to be run again", "Left out until then"),
    ]
    for part, title, caption in further:
        table = ResultTable(caption, evaluation.to_frame(part).rename(columns=_HEADS))
        if len(table.frame):
            sections.append(Section(part, title, (table,), summary=(gists.get(part, f"{caption}."),)))
    if evaluation.notes:
        said, *more = evaluation.notes
        sections.append(Section("notes", "What to know", _further_sentences(more), summary=(said,)))
    return answered(
        evaluation.title,
        head,
        *(paragraph(sentence) for sentence in rest[:LEADING]),
        sections=sections,
        front=(drawn, tables[first][0]),
        names=evaluation.models["model"],
    )


def _further_sentences(sentences: Sequence[str]) -> tuple[Block, ...]:
    return (bullets(sentences),) if sentences else ()


def _found(evaluation: Evaluation) -> str:
    """The smallest differences, of each population."""
    from lmemtest.bench.evaluation.words import points

    table = evaluation.detectable.dropna(subset=["smallest"])
    odds = evaluation.scale == "odds"
    sizes = [
        f"{format_number(float(size), 3) if odds else points(size)} ({name})"
        for name, size in zip(table["question"], table["smallest"], strict=True)
    ]
    return f"{'An odds ratio' if odds else 'A difference'} of {' or '.join(sizes)}." if sizes else "None."


def _largest(evaluation: Evaluation) -> str:
    """The source that adds most."""
    sources = evaluation.to_frame("sources")
    if sources.empty:
        return ""
    row = sources.iloc[tie_order(sources["sd"], descending=True)[0]]
    return f"Most from {row['meaning']} (standard deviation {written(row['sd'], '.3g')})."


def _question(evaluation: Evaluation, suffix: str) -> tuple[ResultTable, Block]:
    """Mean scores with their intervals, best first; and all pairs."""
    from lmemtest.bench.evaluation.tables import best_first, groups_column
    from lmemtest.bench.evaluation.words import MOST_PAIRS as MOST_EVALUATED_PAIRS

    models = pd.DataFrame(
        {
            "model": evaluation.models["model"],
            "items": evaluation.models["n_items"],
            evaluation.noun: evaluation.models[f"accuracy_{suffix}"],
            "interval": _intervals(evaluation.models, suffix),
            "groups" if evaluation.lettered else "ranks": groups_column(evaluation.models, suffix),
        }
    )
    effect = {"estimate": "difference", "odds_ratio": "odds ratio"}[evaluation.effect]
    compared = best_first(evaluation.pairs, evaluation.models["model"])
    pairs = pd.DataFrame(
        {
            "left": compared["left"],
            "right": compared["right"],
            effect: compared[f"{evaluation.effect}_{suffix}"],
            "interval": _intervals(compared, suffix),
            "p": compared[f"p_value_{suffix}"],
        }
    )
    level = percent(1.0 - evaluation.alpha)
    reading = (
        "Models that share a letter cannot be distinguished."
        if evaluation.lettered
        else f"Ranks: those that the tests leave possible, simultaneously for all models ({level})."
    )
    alone = f"{level} intervals, not simultaneous. {reading}"
    count = counted(len(pairs), "pair")
    table = ResultTable(
        f"{effect.capitalize()}s, {count}",
        pairs,
        (capitalised(evaluation.samples[suffix]), evaluation.intervals),
        {effect: ".3f"},
    )
    title = f"{evaluation.noun.capitalize()} {'for' if suffix == 'like' else 'on'} {evaluation.populations[suffix]}"
    means = ResultTable(title, models, (alone,), {evaluation.noun: ".3f"})
    return means, folded(f"All {count}", table) if len(pairs) > MOST_EVALUATED_PAIRS else table


def _intervals(table: pd.DataFrame, suffix: str) -> list[str]:
    ends = zip(table[f"ci_low_{suffix}"], table[f"ci_high_{suffix}"], strict=True)
    return [MISSING if pd.isna(low) else f"{written(low, '.3f')} to {written(high, '.3f')}" for low, high in ends]
