"""Notebooks, made of the pages: `make notebooks` runs them and writes them into build/notebooks.

The site has each page as a notebook that was not run, to be downloaded (`site_pages.py`).

    python docs/notebooks.py [PAGE ...]        of these pages; by default of all
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext

DOCS = Path(__file__).parent
BUILD = DOCS.parent / "build" / "notebooks"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^<!-- output -->\n```text\n.*?^```\n+|^!\[[^\]]*\]\(figures/[^)]+\)\n+", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!-- .*? -->\n+", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:)[^)\s]+\)|<a href=[^>]+>(.*?)</a>")
LAST_PRINT, SHOWN_LAST = re.compile(r"^print\((\w+)\)\n\Z", re.MULTILINE), r"\1\n"


def pages() -> list[Path]:
    """The pages with code that runs."""
    return [page for page in sorted(DOCS.glob("*.md")) if "\n```python\n" in page.read_text(encoding="utf-8")]


def notebook(page: Path) -> Any:
    """A page as a notebook: its outputs and figures are left to the kernel, its links to other pages become text.

    A result that is printed last is shown as notebooks show it. Blocks that a page does not run are text here, too; one
    that needs data outside of the repository is left out of a run where `LMEMTEST_DATA` names no folder.
    """
    text, at, parts = SHOWN.sub("", page.read_text(encoding="utf-8")), 0, list[str]()
    for block in FENCE.finditer(text):
        parts += [_prose(text[at : block.start()]), _code(block["info"].strip(), block["body"])]
        at = block.end()
    return jupytext.reads("".join([*parts, _prose(text[at:])]), fmt="md")


def _prose(text: str) -> str:
    return LINK.sub(lambda link: link[1] or link[2], COMMENT.sub("", text))


def _code(info: str, body: str) -> str:
    if info == "python data":
        info = "python" if os.environ.get("LMEMTEST_DATA") else 'python tags=["skip-execution"]'
    elif info.endswith(" no-run"):
        info = info.replace(" no-run", " .noeval")
    return f"```{info}\n{LAST_PRINT.sub(SHOWN_LAST, body) if info.startswith('python') else body}```"


def executed(page: Path, folder: Path) -> Any:
    """The notebook of a page after a kernel ran it in this folder; the first error of a cell is raised."""
    from nbclient import NotebookClient

    return NotebookClient(
        notebook(page),
        timeout=600,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()


def write(folder: Path) -> None:
    """All notebooks, not run."""
    folder.mkdir(parents=True)
    for page in pages():
        jupytext.write(notebook(page), folder / f"{page.stem}.ipynb")


if __name__ == "__main__":
    BUILD.mkdir(parents=True, exist_ok=True)
    for page in [DOCS / name for name in sys.argv[1:]] or pages():
        with tempfile.TemporaryDirectory() as folder:
            jupytext.write(executed(page, Path(folder)), BUILD / f"{page.stem}.ipynb")
        print(BUILD / f"{page.stem}.ipynb")
