"""A ranking as a document of its own, and as a section of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmemtest.bench.ranking.compare import beside
from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.robustness.variants import Variants
from lmemtest.core.caller import advice
from lmemtest.core.table import ResultTable
from lmemtest.core.words import joined
from lmemtest.errors import LmemtestError
from lmemtest.report.document import Block, Document, Section, answered, bullets, closed_if_long, folded, paragraph
from lmemtest.report.figures import figure
from lmemtest.report.leaders import leaders

if TYPE_CHECKING:
    from lmemtest.bench.ranking.ranking import Ranking
    from lmemtest.report.analysis import Analysis

TITLE = "Classical rankings"
MOST_PAIRS = 45  # rows of a table that are still read; more are folded
MOST_ALGORITHMS = 30  # a figure of more is unreadable


def ranking_document(found: Ranking | Variants) -> Document:
    """A ranking, or several side by side: the answer, tables, figure, and the paragraph for a paper."""
    rankings = found.rankings if isinstance(found, Variants) else {"ranking": found}
    first = next(iter(rankings.values()))
    head, *rest = found.sentences()
    sections = [Section(name, _title(ranking), _blocks(ranking)) for name, ranking in rankings.items()]
    if isinstance(found, Variants):
        sections.insert(0, Section("tests", "The tests side by side", _side_by_side(found)))
    return answered(
        f"Ranking of {len(first.levels)} algorithms by {first.score}",
        head,
        *_listed(rest),
        sections=sections,
        subtitle=f"{len(first.levels)} algorithms on {first.blocks.said()}",
    )


def _title(ranking: Ranking) -> str:
    name = TEST_NAMES[ranking.test]
    return f"{name[:1].upper()}{name[1:]}"


def _listed(texts: list[str]) -> list[Block]:
    """One sentence as a paragraph, several as a list."""
    if len(texts) < 2:
        return [paragraph(text) for text in texts]
    return [bullets(texts)]


def _blocks(ranking: Ranking) -> tuple[Block, ...]:
    pairs = closed_if_long(f"Table of all {len(ranking.pairs)} pairs", pairs_table(ranking), MOST_PAIRS)
    blocks: list[Block] = [ranking.to_table(), pairs]
    if len(ranking.levels) <= MOST_ALGORITHMS:
        best_first = ", ".join(ranking.levels)
        blocks.append(
            figure(
                ranking.plot,
                alt=f"{ranking.title}; best first: {best_first}. {ranking.sentences()[0]}",
                caption=(f"{ranking.title}.",),
            )
        )
    return (*blocks, paragraph(ranking.paragraph()))


def pairs_table(ranking: Ranking) -> ResultTable:
    """The pairs as printed: who, by how much, how sure, in how many blocks."""
    shown = [
        name
        for name in ("left", "right", "estimate", "ci_low", "ci_high", "p_value", "p_left", "p_equal", "p_right")
        if name in ranking.pairs
    ]
    counts = zip(*(ranking.pairs[name] for name in ("wins", "ties", "losses")), strict=True)
    frame = ranking.pairs[[*shown, "effect_size", "magnitude"]].assign(
        **{"w/t/l": ["/".join(map(str, row)) for row in counts], "decision": ranking.pairs["decision"]}
    )
    note = (
        f"Effect sizes ({ranking.effect}) and wins, ties and losses are of the left over the right, on "
        f"{ranking.blocks.said()}."
    )
    return ResultTable("Pairs", frame, (note,), {"effect_size": ".2f"})


def _side_by_side(found: Variants) -> tuple[Block, ...]:
    return (closed_if_long(f"Table of all {len(found.table)} pairs", found.to_table(), MOST_PAIRS),)


# ---------------------------------------------------------------------- in a report


def rankings_section(analysis: Analysis) -> Section | None:
    """What classical tests of one score per benchmark say beside the model; None where they do not apply."""
    if analysis.incomparable or analysis.fit.design.parsed.response_function is not None:
        return None
    try:
        found = beside(analysis.pairs, analysis.decisions.levels, analysis.runs, analysis.alpha)
    except LmemtestError:  # too few blocks for them; the report stands without
        return None
    unit = found.blocks.unit
    head, *rest = found.sentences()
    tests = joined([TEST_NAMES[name] for name in found.tests if name != "lmem"], most=len(found.tests))
    text = (
        f"Classical tests give each algorithm one score per {unit}; {tests} stand here beside the model. {head} The "
        "test has to be chosen before the scores are seen: these are for readers who ask what another one says."
    )
    if leaders(analysis) is not analysis:  # a report on many algorithms names the best of them
        call = advice("all_pairs")
        return Section("classical", TITLE, (paragraph(" ".join([text, *found.trap, call]).rstrip()),))
    table = folded(f"All pairs, by the model and by {len(found.tests) - 1} classical tests", *_side_by_side(found))
    return Section("classical", TITLE, (paragraph(text), *_listed(rest), table))
