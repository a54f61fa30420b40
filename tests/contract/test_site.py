"""The site is built without a warning, and has what the start page promises."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lmemtest as lt

ROOT = Path(__file__).parents[2]
TOOLS = ("sphinx", "myst_parser", "pydata_sphinx_theme", "numpydoc", "sphinx_design", "sphinx_copybutton", "jupytext")
MISSING = [tool for tool in TOOLS if importlib.util.find_spec(tool) is None]


@pytest.mark.level(2)
@pytest.mark.skipif(bool(MISSING), reason=f"the site needs {', '.join(MISSING)}: pip install 'lmemtest[docs]'")
def test_the_site_is_built_strictly_and_complete(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run([*command, str(ROOT / "docs"), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    start = (tmp_path / "index.html").read_text(encoding="utf-8")
    for link in re.findall(r'href="([^"#:]+\.html)', start):
        assert (tmp_path / link).is_file(), link
    pages = {path.stem for path in (tmp_path / "generated" / "api").glob("*.html")}
    public = {f"lmemtest.{name}" for name in lt.__all__ if not inspect.ismodule(getattr(lt, name))}
    public |= {
        f"lmemtest.{family}.{name}" for family in ("tuning", "lmm", "plots") for name in getattr(lt, family).__all__
    }
    assert public - pages == set()
    assert "searchindex.js" in {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "sample-report.html").stat().st_size > 100_000
    listed = re.findall(
        r"^- \[[^\]\n]+\]\((\w[\w-]*)\.html\): \S", (tmp_path / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - set(listed) == set()


def links_of(path: Path) -> set[str]:
    """What a page links to, as files of the repository with their anchors."""
    found = re.findall(r"\]\(([^)\s:]+)\)", path.read_text(encoding="utf-8"))
    places = [link.partition("#") for link in found]
    return {f"{(path.parent / file).resolve() if file else path}{hash_}{anchor}" for file, hash_, anchor in places}


def test_ten_questions_are_found_within_two_clicks() -> None:
    page = ROOT / "docs" / "developers" / "finding.md"
    rows = re.findall(r"^\| (?!Question)[^|]+ \| ([^|]+) \| ([^|]*)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 10
    for row in rows:
        at = ROOT / "docs" / "index.md"
        for step in (re.search(r"\]\(([^)#]+)(#[^)]+)?\)", cell) for cell in row if cell.strip()):
            there = (page.parent / step[1]).resolve()
            assert f"{there}{step[2] or ''}" in links_of(at), f"{at.name} has no link to {step[0]}"
            at = there


def test_pages_for_users_are_few_and_short() -> None:
    words = [len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").glob("*.md")]
    assert len(words) <= 31, "30 and the start page"
    assert sum(words) <= 80_000
