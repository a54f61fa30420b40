"""Any result as a file: document, table, numbers or figure, by the suffix."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.bench.evaluation.evaluated import Evaluation
from lmemtest.bench.outperforming.over_benchmarks import OutperformingOverBenchmarks
from lmemtest.bench.ranking.compare import Rankings
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.report import render
from lmemtest.report.document import Bullets, Document, Section, TableBlock, paragraph
from lmemtest.report.evaluation import evaluation_document
from lmemtest.report.figures import in_words
from lmemtest.report.files import check_report_path, json_text, png_of, records, write_atomically
from lmemtest.report.outperforming import outperforming_document
from lmemtest.report.ranking import ranking_document

if TYPE_CHECKING:
    from lmemtest.core.result import Result

WRITERS = {".md": render.Markdown, ".txt": render.PlainText, ".tex": render.Latex}


def save(found: Result, path: str | os.PathLike[str], *, escape: bool = True) -> Path:
    """Write it where the path says, as its suffix says."""
    target = check_report_path(path)
    write_atomically(target, content_of(found, target.suffix.lower(), escape=escape))
    return target


def content_of(found: Result, suffix: str, *, escape: bool = True) -> str | bytes:
    """What a file with this suffix holds."""
    if suffix == ".csv":
        return found.to_csv(escape=escape)
    if suffix == ".json":
        return json_of(found)
    if suffix == ".png":
        return png_of(found.plot)
    if suffix not in WRITERS:
        return render.render_html(document_of(found))
    with in_words():
        return str(WRITERS[suffix]().write(document_of(found)))


def document_of(found: Result) -> Document:
    """A ranking, evaluation or comparison of runs with all that belongs to it; else the table and the sentences."""
    if isinstance(found, (Ranking, Rankings)):
        return ranking_document(found)
    if isinstance(found, OutperformingOverBenchmarks):
        return outperforming_document(found)
    if isinstance(found, Evaluation):
        return evaluation_document(found)
    head, *rest = found.sentences() or (found.title,)
    return Document(
        title=found.title,
        subtitle="",
        lead=(paragraph(head), *([Bullets(tuple((text,) for text in rest))] if rest else [])),
        sections=(Section("table", "Table", (TableBlock(found.to_table()),)),),
        generator=f"lmemtest {_version()}",
    )


def json_of(found: Result) -> str:
    """Tables and sentences with all digits; what is not known is null."""
    content: dict[str, Any] = {"generator": f"lmemtest {_version()}", "sentences": list(found.sentences())}
    content |= {part: records(found.to_frame(part)) for part in found.parts}
    if isinstance(found, Rankings):
        content["rankings"] = {name: records(ranking.pairs) for name, ranking in found.rankings.items()}
    return json_text(content)


def _version() -> str:
    return str(importlib.import_module("lmemtest").__version__)
