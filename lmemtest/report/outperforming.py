"""The probability of outperforming as a document of its own, and as a section of a report."""

from __future__ import annotations

import functools
import importlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.outperforming.over_benchmarks import over_benchmarks
from lmemtest.bench.outperforming.verdict import CONCLUSIONS, NOT_SIGNIFICANT
from lmemtest.core.caller import advice
from lmemtest.core.rounding import below, tie_order, written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import MISSING, joined, percent, plural
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.report.document import Block, Bullets, Document, Fold, Section, TableBlock, paragraph
from lmemtest.report.figures import figure
from lmemtest.report.leaders import MOST_TABLE_ROWS, first_rows

if TYPE_CHECKING:
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis

TITLE = "Probability of outperforming"
GAMMA = 0.75  # Bouthillier et al. (2021)
MOST_SAID = 6  # sentences in front of everything
MOST_PAIRS = 40  # rows of a figure that are still read
OTHERS = 12  # algorithms compared with the best one: those that come next
NAMES = 12  # in a sentence
WHY = (
    "Both can be true: a mean weighs each difference by its size, this probability counts each comparison of two runs "
    "once; and a difference that one of the tests detects can be too small for the other."
)


def outperforming_document(found: Answer) -> Document:
    """The answer, the pairs with their figure, each benchmark, and on how many benchmarks it holds."""
    head, *rest = found.sentences()
    several = len(found.benchmarks) > len(found.table)
    whole, count = found.to_table(), len(found.table)
    kept = sorted(tie_order(found.table["ci_low"], descending=True)[:MOST_TABLE_ROWS])
    frame = whole.frame.drop(columns=["n_families", "n_benchmarks", "mean"], errors="ignore")  # too wide for a page
    left_out = (
        f"The {len(kept)} of {count:,} pairs with the highest lower ends; {advice('to_frame', part='table')} has all."
    )
    notes = (*whole.notes, *([left_out] if len(kept) < count else []))
    pairs = replace(whole, frame=frame.iloc[kept], notes=notes)
    sections = [Section("pairs", "Pairs", (TableBlock(pairs), *_figure(found, head)))]
    if several:
        parts = {"benchmarks": "Each benchmark by itself", "replicability": "Better on at least u benchmarks"}
        folds = (Fold(title, (TableBlock(_first_rows(found, part, title)),)) for part, title in parts.items())
        sections.append(Section("benchmarks", "By benchmark", tuple(folds)))
    said = [rest[place] for place in kept] if len(rest) == count else rest
    return Document(
        title=found.title,
        subtitle=found.facts[0],
        lead=(paragraph(head), *_listed(said, count)),
        sections=tuple(sections),
        generator=f"lmemtest {importlib.import_module('lmemtest').__version__}",
    )


def _first_rows(found: Answer, part: str, title: str) -> ResultTable:
    frame = found.to_frame(part)
    rows, notes = first_rows(list(frame.index), advice("to_frame", part=part))
    return ResultTable(title, frame.loc[rows], notes, _FORMATS if part == "benchmarks" else None)


def _listed(texts: list[str], count: int) -> tuple[Block, ...]:
    """A list, folded where it is long, of what is said of some of the pairs."""
    bullets = Bullets(tuple((text,) for text in texts))
    title = f"All {count} pairs in words" if len(texts) >= count else f"{len(texts)} of {count:,} pairs in words"
    return (Fold(title, (bullets,)) if len(texts) > MOST_SAID else bullets,) if texts else ()


_FORMATS = dict.fromkeys(["estimate", "ci_low", "ci_high"], ".3f")


def _figure(found: Answer, said: str) -> tuple[Block, ...]:
    if len(found.table) > MOST_PAIRS:
        return ()
    caption = f"{found.title}; the dashed line is gamma = {found.gamma_adjusted:.3g}."
    return (figure(found.plot, alt=f"{found.title}. {said}", caption=(caption,)),)


# ---------------------------------------------------------------------- in a report


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
        found, why = _compared(analysis, best, others)
    except LmemtestError as error:
        return Section("outperforming", TITLE, (paragraph(f"Single runs are not compared: {error}"),))
    shown = found.table.set_index("right")
    count = len(analysis.decisions.levels)
    all_others = len(shown) == count - 1
    among = "each other algorithm" if all_others else f"each of the next {len(shown)} of {count} algorithms"
    text = (
        f"How often is a single run of {best}, which has the best mean, better than a run of {among} on the same "
        f"benchmark{_families(found)}{' with the same seed' if found.paired else ''}? {_conclusions(best, shown)} {why}"
    )
    if found.family is not None and analysis.recommendation.population != "family":
        text = f"{text.rstrip()} This is about new {plural(found.family)}, and the means are about those studied here."
    drawn = _figure(found, _conclusions(best, shown))
    table = TableBlock(_table(found, best, shown))
    blocks = (paragraph(text.rstrip()), _beside_means(analysis, best, shown), table, *drawn)
    return Section("outperforming", TITLE, blocks)


def _families(found: Answer) -> str:
    return "" if found.family is None else f" of {plural(found.family)} like these"


def _compared(analysis: Analysis, best: str, others: list[str]) -> tuple[Answer, str]:
    """Pairs of runs of the same seed, or all runs where there are none, and why; in the order of the others.

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
        return compare((best, *others[:OTHERS]), paired=True), ""
    except DesignError:
        why = "No seeds pair the runs of different algorithms, so all runs are compared with all."
        return compare((best, *others[:OTHERS]), paired=False), why


def _conclusions(best: str, shown: pd.DataFrame) -> str:
    """For whom each of the conclusions holds."""
    parts = []
    for conclusion in CONCLUSIONS:
        names = shown.index[shown["conclusion"] == conclusion]
        if len(names):
            parts.append(f"{conclusion} against {joined(list(names), most=NAMES)}")
    return f"The advantage of {best} is {'; '.join(parts)}."


def _beside_means(analysis: Analysis, best: str, shown: pd.DataFrame) -> Block:
    """Where the decision on the means is another one, and why it can be."""
    means = analysis.decisions.significant.loc[best].loc[list(shown.index)].to_numpy(dtype=bool)
    runs = (shown["conclusion"] != NOT_SIGNIFICANT).to_numpy()
    turned = below(shown["ci_high"].to_numpy(), 0.5)
    more_often = "significantly more often better"
    differing = (
        (turned, f"single runs of {{names}} are {more_often}, although {{best}} has the better mean"),
        (
            means & ~runs & ~turned,
            "the mean of {best} is significantly better than that of {names}, but its runs are not shown to be more "
            "often better",
        ),
        (runs & ~means, f"runs of {{best}} are {more_often} than those of {{names}}, but its mean is not shown to be"),
    )
    said = [
        words.format(best=best, names=joined(list(shown.index[these]), most=NAMES))
        for these, words in differing
        if these.any()
    ]
    if not said:
        return paragraph("The decisions on the means are the same.")
    return paragraph(f"The decisions on the means are not the same: {'; '.join(said)}. {WHY}")


def _table(found: Answer, best: str, shown: pd.DataFrame) -> ResultTable:
    interval = f"{percent(1.0 - found.alpha_adjusted)} CI"
    ends = zip(shown["ci_low"], shown["ci_high"], strict=True)
    frame = pd.DataFrame(
        {
            f"{best} over": shown.index,
            "pairs" if found.paired else "comparisons": shown["n_pairs"].to_numpy(),
            "probability": shown["estimate"].to_numpy(),
            interval: [
                MISSING if np.isnan(low) else f"{written(low, '.3f')} to {written(high, '.3f')}" for low, high in ends
            ],
        }
    )
    if "risk_difference" in shown:
        frame["difference of the shares"] = shown["risk_difference"].to_numpy()
    frame["conclusion"] = shown["conclusion"].to_numpy()
    if shown["n_benchmarks"].max() > 1:
        counts = zip(shown["better_on"], shown["n_benchmarks"], shown["better_on_most"], strict=True)
        frame["better on"] = [f"{u} of {n}" if most else MISSING for u, n, most in counts]
    formats = dict.fromkeys(["probability", "difference of the shares"], ".3f")
    replicated = "Better on: at least so many benchmarks, by partial conjunction of their own tests."
    notes = (*found.facts, *([replicated] if "better on" in frame else []), *found.notes)
    return ResultTable(f"Probability that a run of {best} is better", frame, notes, formats)
