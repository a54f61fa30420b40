"""Any result as a file: document, table, numbers or figure, by the suffix."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.bench.evaluation.evaluated import Evaluation
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.result import Answer
from lmemtest.report import render
from lmemtest.report.document import Document, Section, answered, bullets
from lmemtest.report.evaluation import evaluation_document
from lmemtest.report.figures import in_words
from lmemtest.report.files import check_report_path, json_text, png_of, records, write_atomically
from lmemtest.report.outperforming import outperforming_document
from lmemtest.report.ranking import ranking_document

if TYPE_CHECKING:
    from lmemtest.core.result import Result

WRITERS = {".md": render.Markdown, ".txt": render.PlainText, ".tex": render.Latex}


def save(
    found: Result,
    path: str | os.PathLike[str],
    *,
    escape: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Write it where the path says, as its suffix says."""
    target = check_report_path(path)
    write_atomically(target, content_of(found, target.suffix.lower(), escape=escape, progress=progress))
    return target


def content_of(
    found: Result, suffix: str, *, escape: bool = True, progress: Callable[[str], None] | None = None
) -> str | bytes:
    """What a file with this suffix holds; `progress` is called with the name of each step of a report."""
    if suffix == ".csv":
        return found.to_csv(escape=escape)
    if suffix == ".json":
        return json_of(found)
    if suffix == ".png":
        return png_of(found.plot)
    if suffix not in WRITERS:
        return render.render_html(document_of(found, progress))
    with in_words():
        return str(WRITERS[suffix]().write(document_of(found, progress)))


def document_of(found: Result, progress: Callable[[str], None] | None = None) -> Document:
    """A report, or a ranking, evaluation or comparison of runs; else the table and the sentences."""
    if hasattr(type(found), "document"):
        return found.document(progress=progress)  # type: ignore[attr-defined, no-any-return]
    if isinstance(found, Ranking) or found.question == "rank":
        return ranking_document(found)  # type: ignore[arg-type]
    if isinstance(found, Answer) and found.question == "outperforming":
        return outperforming_document(found)
    if isinstance(found, Evaluation):
        return evaluation_document(found)
    head, *rest = said = found.sentences() or (found.title,)
    tables = tuple(  # what the sentences say is not said again
        replace(table, notes=tuple(note for note in table.notes if note not in said)) for table in found.to_tables()
    )
    return answered(found.title, head, *([bullets(rest)] if rest else []), sections=[Section("table", "Table", tables)])


def json_of(found: Result) -> str:
    """Tables and sentences with all digits; what is not known is null."""
    version = importlib.import_module("lmemtest").__version__
    return json_text({"generator": f"lmemtest {version}", **_with_records(found.contents())})


def _with_records(content: Any) -> Any:
    """Tables as json knows them."""
    if isinstance(content, dict):
        return {name: _with_records(value) for name, value in content.items()}
    return records(content) if hasattr(content, "to_dict") else content
