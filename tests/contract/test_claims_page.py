"""The page of claims names functions and simulations that exist, and misses no result that speaks in sentences."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "claims.md").read_text()
MODULES = {path: path.read_text() for path in sorted((ROOT / "lmemtest").rglob("*.py"))}
# Parts of results whose function is on the page, and descriptions.
SILENT = {
    "words",
    "over_benchmarks",
    "samples",
    "algorithms",
    "curve_labels",
    "holdout",
    "report",
    "check",
    "traces",
    "copies",
    "result",
    "_rows",
    "groups",
}
SPEAKS = re.compile(r"def sentences?\(self|\bfindings=")


def test_functions_and_simulations_exist():
    files = set(re.findall(r"`((?:tests/\w+/)?test_\w+\.py)`", PAGE))
    assert len(files) > 15
    for name in files:
        assert (ROOT / (name if "/" in name else f"tests/simulation/{name}")).is_file(), name
    code = "\n".join(MODULES.values())
    for name in re.findall(r"\(`(\w+)`", PAGE):
        assert f"def {name}(" in code, name


def test_every_module_that_makes_sentences_is_on_the_page():
    speaking = {path.stem: text for path, text in MODULES.items() if SPEAKS.search(text) and path.stem not in SILENT}
    assert len(speaking) > 20
    for stem, text in speaking.items():
        names = re.findall(r"^(?:def|class) ([A-Za-z]\w*)", text, flags=re.MULTILINE)
        missing = [] if any(name in PAGE for name in names) else [stem]
        assert not missing, names
