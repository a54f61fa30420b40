"""An evaluation as a document: the models with their figure, either question by itself, and the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lmemtest.bench.evaluation.tables import groups_column
from lmemtest.bench.evaluation.words import MOST_PAIRS
from lmemtest.core.rounding import written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import MISSING, capitalised, counted, percent
from lmemtest.report.document import Block, Document, Section, answered, bullets, folded
from lmemtest.report.figures import figure

if TYPE_CHECKING:
    from lmemtest.bench.evaluation.evaluated import Evaluation


def evaluation_document(found: Evaluation) -> Document:
    """The answers to all questions, and what they rest on."""
    head, *rest = found.sentences()
    sections = [
        Section("models", "Models", (figure(found.plot, alt=f"{found.title}. {head}", caption=(f"{found.title}.",)),)),
        *(
            Section(suffix, f"{'For' if suffix == 'like' else 'On'} {tasks}", tuple(_question(found, suffix)))
            for suffix, tasks in found.populations.items()
        ),
    ]
    further = [
        ("noise", "Identical runs", "Standard deviations between runs of one model"),
        ("detectable", "Differences that are found", f"Found with {percent(found.power)} power"),
        ("sources", "Sources of variation", "Standard deviations by source"),
        ("judges", "Judges", "Mean scores by judge"),
    ]
    tables = [(part, title, ResultTable(caption, found.to_frame(part))) for part, title, caption in further]
    sections += [Section(part, title, (table,)) for part, title, table in tables if len(table.frame)]
    if found.notes:
        sections.append(Section("notes", "What to know", (bullets(found.notes),)))
    return answered(found.title, head, *([bullets(rest)] if rest else []), sections=sections)


def _question(found: Evaluation, suffix: str) -> list[Block]:
    """Mean scores with their intervals, best first; then all pairs."""
    models = pd.DataFrame(
        {
            "model": found.models["model"],
            "items": found.models["n_items"],
            found.noun: found.models[f"accuracy_{suffix}"],
            "interval": _intervals(found.models, suffix),
            "groups" if found.lettered else "ranks": groups_column(found.models, suffix),
        }
    )
    pairs = pd.DataFrame(
        {
            "left": found.pairs["left"],
            "right": found.pairs["right"],
            "difference": found.pairs[f"estimate_{suffix}"],
            "interval": _intervals(found.pairs, suffix),
            "p_value": found.pairs[f"p_value_{suffix}"],
        }
    )
    level = percent(1.0 - found.alpha)
    reading = (
        "Models that share a letter cannot be distinguished."
        if found.lettered
        else f"Ranks: those that the decisions leave open, for all models at once ({level})."
    )
    alone = f"{level} intervals, not simultaneous. {reading}"
    count = counted(len(pairs), "pair")
    table = ResultTable(
        f"Differences, {count}",
        pairs,
        (capitalised(found.samples[suffix]), found.facts[len(found.samples)]),
        {"difference": ".3f"},
    )
    return [
        ResultTable(f"{found.noun.capitalize()} of the models", models, (alone,), {found.noun: ".3f"}),
        folded(f"All {count}", table) if len(pairs) > MOST_PAIRS else table,
    ]


def _intervals(table: pd.DataFrame, suffix: str) -> list[str]:
    ends = zip(table[f"ci_low_{suffix}"], table[f"ci_high_{suffix}"], strict=True)
    return [MISSING if pd.isna(low) else f"{written(low, '.3f')} to {written(high, '.3f')}" for low, high in ends]
