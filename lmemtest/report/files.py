"""Any result as a file: document, table, numbers or figure by the suffix.

Paths are checked before any work, and nothing slow is imported for that; files are whole.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.core.caller import advice
from lmemtest.core.words import counted, listed
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from lmemtest.core.result import Result
    from lmemtest.report.document import Document

KINDS: dict[str, Any] = {".md": "markdown", ".txt": "text", ".tex": "latex"}
FIGURES_BESIDE: dict[str, Any] = {".md": "svg", ".tex": "pdf"}
SUFFIXES = (".html", ".htm", ".md", ".txt", ".tex", ".csv", ".json", ".png")
MOST_SAID = 6  # sentences before the figure and table of a result
CURVES, LABELS = "tuning-curves", "tuning-labels"  # names of the files of tuning curves in a folder
PAPER_FILES = (
    *("figure.pdf", "differences.pdf", "ranking.tex", "pairs.tex", "sentence.tex", "sentence.txt", "methods.tex"),
    *("references.bib", "article.tex", "supplement.tex"),
)
PAPER_SUMS = "files.sha256"
CURVE_FILES = (f"{CURVES}.csv", f"{LABELS}.csv", f"{CURVES}.png", f"{CURVES}.svg")


def check_report_path(path: Any, suffixes: Sequence[str] = SUFFIXES) -> Path:
    """The absolute path of a report, or of a file with other suffixes, that can be written there.

    Examples
    --------
    >>> check_report_path("report.pdf")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: path must end in one of .html, .htm, .md, .txt, .tex, .csv, .json, .png, got
    'report.pdf'. Write 'report.html'.
    """
    argument = advice("typed", call="path", command="-o")
    target = _as_path(path, argument)
    if target.suffix.lower() not in suffixes:
        example = str(target.with_suffix(suffixes[0])) if target.name else f"report{suffixes[0]}"
        raise ArgumentError(
            f"{argument} must end in one of {listed(suffixes)}, got {_short(path)}. Write {_short(example)}."
        )
    if _exists(target, argument) and target.is_dir():
        raise ArgumentError(f"{argument} must be a file, but {str(path)!r} is a folder. Add a file name.")
    if not _exists(target.parent, argument) or not target.parent.is_dir():
        raise ArgumentError(
            f"{argument} must be in a folder that exists, but {_short(target.parent)} does not. Create it first."
        )
    _check_writable(target.resolve().parent, argument)
    return Path(os.path.abspath(target))


def check_paper_folder(path: Any, *, overwrite: bool) -> Path:
    """The absolute path of a folder for the pieces of a paper, without files that would be lost."""
    folder = check_folder(path, "folder")
    sums = folder / PAPER_SUMS
    lines = sums.read_text(encoding="utf-8", errors="replace").splitlines() if sums.is_file() else []
    written = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}

    def is_kept(file: Path) -> bool:
        return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == written.get(file.name)

    foreign = [name for name in PAPER_FILES if (folder / name).exists() and not is_kept(folder / name)]
    foreign += [PAPER_SUMS] if sums.exists() and set(written) != set(PAPER_FILES) else []
    if foreign and not overwrite:
        raise ArgumentError(
            f"{advice('typed', call='folder', command='-o')} must be a folder without files of others: "
            f"{listed(foreign)} of {str(folder)!r} {'was' if len(foreign) == 1 else 'were'} not written here, or "
            f"changed since. Choose another folder, or replace them with {advice('overwrite')}."
        )
    return folder


def check_folder(path: Any, name: str = "output") -> Path:
    """The absolute path of a folder that exists or can be made.

    Examples
    --------
    >>> check_folder("no/such")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: output must be a folder in one that exists, but 'no' does not. Create it first.
    """
    argument = advice("typed", call=name, command="-o")
    target = _as_path(path, argument)
    there = _exists(target, argument)
    if there and not target.is_dir():
        raise ArgumentError(
            f"{argument} must be a folder, but {str(path)!r} is a file. Name a folder for several files."
        )
    if not there and target.suffix.lower() in (*SUFFIXES, ".pdf", ".svg"):
        raise ArgumentError(
            f"{argument} must be a folder, which holds several files, got {str(path)!r}, the name of a file. Leave out "
            f"{target.suffix!r}."
        )
    if not there and not target.parent.is_dir():
        raise ArgumentError(
            f"{argument} must be a folder in one that exists, but {_short(target.parent)} does not. Create it first."
        )
    _check_writable(target if there else target.parent, argument)
    return Path(os.path.abspath(target))


def _as_path(path: Any, argument: str) -> Path:
    if isinstance(path, bytes) or not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{argument} must be a path such as 'report.html', got {path!r}.")
    return Path(os.path.expanduser(path))  # leaves the ~ of a user that nobody knows


def _short(path: Any) -> str:
    text = str(path)
    return repr(text if len(text) <= 100 else f"{text[:60]}...{text[-20:]}")


def _exists(path: Path, argument: str) -> bool:
    """Whether something is there; a name that no file can have is refused."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArgumentError(f"{argument} cannot be {_short(path)}: {reason}. Choose another name or folder.") from None
    return True


def _check_writable(folder: Path, argument: str) -> None:
    """A file of no content is made and removed: the only way to know."""
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".lmemtest-", suffix=".tmp")
    except OSError as error:
        raise ArgumentError(
            f"{argument} must be in a folder that can be written to, but {_short(folder)} cannot "
            f"({error.strerror or error}). Choose another one."
        ) from None
    os.close(handle)
    os.unlink(name)


def write_atomically(target: Path, content: str | bytes) -> None:
    """Write beside the target, then take its name, so that a reader never meets half a file."""
    write_together({target: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write all files beside their targets and only then give them their names: a full disk leaves what was there."""
    staged: list[tuple[str, Path]] = []
    target = Path()
    try:
        for path, content in contents.items():
            target = path.resolve()  # through a link, not over it
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".lmemtest-", suffix=".tmp")
            staged.append((name, target))
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
            os.chmod(name, _mode_of(target))
        for name, target in staged:
            os.replace(name, target)
    except BaseException as error:
        for name, _ in staged:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # of a file that the caller knows
            raise OSError(error.errno, f"{error.strerror}; nothing was written", str(target)) from None
        raise


def _mode_of(target: Path) -> int:
    """The permissions of a file that is there, or of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it
    os.umask(mask)
    return 0o666 & ~mask


# ------------------------------------------------------------------------------------------------ any result


def save(
    result: Result,
    path: str | os.PathLike[str],
    *,
    escape: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Write it where the path says, as its suffix says."""
    target = check_report_path(path)
    suffix = target.suffix.lower()
    if suffix in FIGURES_BESIDE:
        return _save_with_figures(result, target, progress)
    write_atomically(target, content_of(result, suffix, escape=escape, progress=progress))
    return target


def _save_with_figures(result: Result, target: Path, progress: Callable[[str], None] | None) -> Path:
    """A document, and its figures as files in a folder beside it."""
    from lmemtest.report import render
    from lmemtest.report.document import figures_as

    suffix = target.suffix.lower()
    stem = re.sub("[^A-Za-z0-9]+", "-", target.stem).strip("-")  # nothing that LaTeX or a link would read otherwise
    folder = target.parent / f"{stem or 'report'}_files"
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(
            f"{advice('typed', call='path', command='-o')} needs the folder {folder.name!r} for figures beside it, but "
            "that is a file. Choose another name."
        )
    with figures_as(FIGURES_BESIDE[suffix]):
        document = document_of(result, progress)
    images = render.image_files(document, folder.name)
    text = render.render_text(document, KINDS[suffix], images)
    if images:
        folder.mkdir(exist_ok=True)
    write_together({**{target.parent / file: block.files[0][1] for block, file in images.items()}, target: text})
    return target


def content_of(
    result: Result, suffix: str, *, escape: bool = True, progress: Callable[[str], None] | None = None
) -> str | bytes:
    """What a file with this suffix holds; `progress` is called with the name of each step of a report."""
    if suffix == ".csv":
        return result.to_csv(escape=escape)
    if suffix == ".json":
        return json_of(result)
    if suffix == ".png":
        return png_of(result.plot)
    from lmemtest.report import render
    from lmemtest.report.document import figures_as

    if suffix not in KINDS:
        return render.render_html(document_of(result, progress))
    with figures_as("words"):
        return render.render_text(document_of(result, progress), KINDS[suffix])


def document_of(result: Result, progress: Callable[[str], None] | None = None) -> Document:
    """A report, or a ranking, evaluation or comparison of runs; else the table and the sentences."""
    if hasattr(type(result), "document"):
        return result.document(progress=progress)  # type: ignore[attr-defined, no-any-return]
    from lmemtest.bench.evaluation.evaluation_result import Evaluation
    from lmemtest.bench.ranking.ranking import Ranking
    from lmemtest.report import documents
    from lmemtest.report.document import Section, answered, bullets, figure_or_reason, paragraph

    if isinstance(result, Ranking) or result.question == "rank":
        return documents.ranking_document(result)  # type: ignore[arg-type]
    if result.question == "outperforming":
        return documents.outperforming_document(result)  # type: ignore[arg-type]
    if isinstance(result, Evaluation):
        return documents.evaluation_document(result)
    head, *rest = sentences = result.sentences() or (result.title,)
    tables = tuple(  # what the sentences say is not said again
        replace(table, notes=tuple(note for note in table.notes if note not in sentences))
        for table in result.to_tables()
    )
    more = [paragraph(rest[0])] if len(rest) == 1 else [bullets(rest[:MOST_SAID])] if rest else []
    sections = []
    if rest[MOST_SAID:]:
        gist = (f"{len(rest) - MOST_SAID} more sentences.",)
        sections.append(Section("words", "In words", (bullets(rest[MOST_SAID:]),), summary=gist))
    sections += [
        Section(f"table-{number}", table.title or "Table", (table,), summary=(counted(len(table.frame), "row"),))
        for number, table in enumerate(tables[1:], 1)
    ]
    alt = f"{result.title}. {head}"
    drawn = [figure_or_reason(result.plot, alt=alt, caption=(), as_files=True)] if result.figure else []
    return answered(result.title, head, *more, sections=sections, front=(*drawn, *tables[:1]))


def json_of(result: Result) -> str:
    """Tables and sentences with all digits; what is not known is null."""
    version = importlib.import_module("lmemtest").__version__
    return json_text({"generator": f"lmemtest {version}", **_with_records(result.contents())})


def _with_records(content: Any) -> Any:
    """Tables as json knows them."""
    if isinstance(content, dict):
        return {name: _with_records(value) for name, value in content.items()}
    return records(content) if hasattr(content, "to_dict") else content


# -------------------------------------------------------------------------------------------------------- content


def json_text(content: Any) -> str:
    """Content as json, in which characters that cannot be seen stand by their number.

    Examples
    --------
    >>> print(json_text({"a": "\\x9b31m\\u202eé"}), end="")
    {
      "a": "\\u009b31m\\u202eé"
    }
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)  # strings hold no line breaks any more
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text) + "\n"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as json knows them."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    """A value as json knows it."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def png_of(draw: Callable[[], Axes]) -> bytes:
    """A figure as an image."""
    from lmemtest.plots import detached_figures

    with detached_figures():
        figure: Any = draw().figure
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()
