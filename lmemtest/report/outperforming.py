"""The probability of outperforming as a document of its own, and as a section of a report."""

from __future__ import annotations

import functools
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
from lmemtest.report.document import Block, Document, Section, answered, bullets, folded, paragraph
from lmemtest.report.figures import figure
from lmemtest.report.leaders import MOST_TABLE_ROWS, first_rows
from lmemtest.report.prose import texts

if TYPE_CHECKING:
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis

TITLE = "Probability of outperforming"
GAMMA = 0.75  # Bouthillier et al. (2021)
MOST_SAID = 6  # sentences in front of everything
MOST_PAIRS = 40  # rows of a figure that are still read
OTHERS = 12  # algorithms compared with the best one: those that come next
NAMES = 12  # in a sentence


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
    sections = [Section("pairs", "Pairs", (pairs, *_figure(found, head)))]
    if several:
        parts = {"benchmarks": "Each benchmark by itself", "replicability": "Better on at least u benchmarks"}
        folds = (folded(title, _first_rows(found, part, title)) for part, title in parts.items())
        sections.append(Section("benchmarks", "By benchmark", tuple(folds)))
    said = [rest[place] for place in kept] if len(rest) == count else rest
    return answered(found.title, head, *_listed(said, count), sections=sections, subtitle=found.facts[0])


def _first_rows(found: Answer, part: str, title: str) -> ResultTable:
    frame = found.to_frame(part)
    rows, notes = first_rows(list(frame.index), advice("to_frame", part=part))
    return ResultTable(title, frame.loc[rows], notes, _FORMATS if part == "benchmarks" else None)


def _listed(texts: list[str], count: int) -> tuple[Block, ...]:
    """A list, folded where it is long, of what is said of some of the pairs."""
    title = f"All {count} pairs in words" if len(texts) >= count else f"{len(texts)} of {count:,} pairs in words"
    return (folded(title, bullets(texts)) if len(texts) > MOST_SAID else bullets(texts),) if texts else ()


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
        found = _compared(analysis, best, others)
    except LmemtestError as error:
        return Section("outperforming", TITLE, (paragraph(f"Single runs are not compared: {error}"),))
    compared = found.table.set_index("right")
    means = analysis.decisions.significant.loc[best].loc[list(compared.index)].to_numpy(dtype=bool)
    runs = (compared["conclusion"] != NOT_SIGNIFICANT).to_numpy()
    turned = below(compared["ci_high"].to_numpy(), 0.5)
    text = texts(
        "sections.outperforming",
        best=best,
        k=len(analysis.decisions.levels),
        n_others=len(compared),
        families=plural(found.family) if found.family is not None else "",
        means_of_these=analysis.recommendation.population != "family",
        paired=found.paired,
        conclusions=_conclusions(best, compared),
        slower=list(compared.index[turned]),
        unseen=list(compared.index[means & ~runs & ~turned]),
        not_by_mean=list(compared.index[runs & ~means]),
        most_named=NAMES,
    )
    drawn = _figure(found, _conclusions(best, compared))
    return Section("outperforming", TITLE, (*text, _table(found, best, compared), *drawn))


def _compared(analysis: Analysis, best: str, others: list[str]) -> Answer:
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


def _conclusions(best: str, shown: pd.DataFrame) -> str:
    """For whom each of the conclusions holds."""
    parts = []
    for conclusion in CONCLUSIONS:
        names = shown.index[shown["conclusion"] == conclusion]
        if len(names):
            parts.append(f"{conclusion} against {joined(list(names), most=NAMES)}")
    return f"The advantage of {best} is {'; '.join(parts)}."


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
