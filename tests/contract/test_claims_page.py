"""The page of claims names functions and simulations that exist, and misses no result that speaks in sentences."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "claims.md").read_text()
MODULES = {path: path.read_text() for path in sorted((ROOT / "lmemtest").rglob("*.py"))}
# What is said there is in the rows of these functions; without one, modules that describe and claim nothing.
SAID_BY = {
    "adequacy": "headline",
    "algorithms": "robustness",
    "curve_labels": "labels",
    "effect_size": "outperforming",
    "over_benchmarks": "outperforming",
    "samples": "outperforming",
    "sign_flips": "permutation_test",
    "words": "evaluate",
    **dict.fromkeys(("_rows", "check", "copies", "fit", "traces")),
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
    speaking = {
        path: text
        for path, text in MODULES.items()
        if SPEAKS.search(text) and "core" not in path.parts  # which says nothing of its own
    }
    assert len(speaking) > 20
    for path, text in speaking.items():
        names = re.findall(r"^(?:def|class) ([A-Za-z]\w*)", text, flags=re.MULTILINE)
        names = [SAID_BY[path.stem]] if path.stem in SAID_BY else names
        assert names == [None] or any(re.search(rf"\b{name}\b", PAGE) for name in names), (path.name, names)
