"""The site is built without a warning, and has what the start page promises."""

from __future__ import annotations

import importlib.util
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
    public = {f"lmemtest.{name}" for name in lt.__all__ if callable(getattr(lt, name))}
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
