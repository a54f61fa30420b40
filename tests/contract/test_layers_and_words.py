"""Doors: what the pages and examples use is at the top, on the API page, and nothing deeper; words are made at the rim.

Who may import whom is in `test_imports`, what is written once in `test_one_of_each`, advice in `test_advice`.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from functools import cache, reduce
from pathlib import Path

from source import PACKAGE, nodes

import lmemtest as lt
import lmemtest.compat.autorank
import lmemtest.compat.significance_analysis  # whose users import them

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/developers").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
BLOCK = re.compile(r"^```python[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

FAMILIES = (
    "tuning",
    "plots",
    "lmm",
    "errors",
    "importers",
    "datasets",
    "compat.autorank",
    "compat.significance_analysis",
)
DOORS = {"lmemtest", "lmemtest.compat", *(f"lmemtest.{family}" for family in FAMILIES)}
# What only the figures of papers need: parts of functions that are at the top.
OF_PAPERS = {
    "lmemtest.bench.variation.variance_sources.VarianceSources",
    "lmemtest.core.words.small_p",
    "lmemtest.lmm.distributions.modes.density",
    "lmemtest.lmm.distributions.modes.drawn_bandwidth",
    "lmemtest.lmm.distributions.modes.rule_of_thumb",
    "lmemtest.tuning.distribution.ESTIMATORS",
    "lmemtest.tuning.distribution.order_weights",
}

# Who knows what was typed, and how a shell reads a word. Everybody else asks for advice by a key of the one table.
SPEAKS = {"on_command_line", "command_with", "shell_line", "quoted"}


@cache
def code() -> list[ast.AST]:
    """The nodes of the code of pages and examples, as far as it can be read as Python."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in EXAMPLES]
    for path in PAGES:
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            with suppress(SyntaxError):  # a block that is not run, with "..." for what is left out
                trees.append(ast.parse(block["body"]))
    return [node for tree in trees for node in ast.walk(tree)]


def imported() -> set[str]:
    """The full names that pages and examples import from the package."""
    names = {
        f"{node.module}.{alias.name}" for node in code() if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    names |= {alias.name for node in code() if isinstance(node, ast.Import) for alias in node.names}
    return {name for name in names if name.split(".")[0] == "lmemtest"}


def used() -> set[str]:
    """Functions and classes of the package that the code of pages names: ``rank``, ``tuning.curve``."""
    chains = {ast.unparse(node) for node in code() if isinstance(node, ast.Attribute)}
    names = {chain.removeprefix("lt.") for chain in chains if re.fullmatch(r"lt(\.\w+)+", chain)}
    names |= {name.removeprefix("lmemtest.") for name in imported() - OF_PAPERS if name != "lmemtest"}
    found = set()
    for name in names:
        family = next((family for family in FAMILIES if name.startswith(f"{family}.")), "")
        rest = name.removeprefix(f"{family}.").split(".")[0]
        found.add(f"{family}.{rest}" if family else rest)
    return found - {"__version__", "compat", *FAMILIES}


def test_pages_and_examples_import_from_the_doors_only() -> None:
    deeper = {name for name in imported() - DOORS - OF_PAPERS if name.rpartition(".")[0] not in DOORS}
    assert sorted(deeper) == []


def test_what_only_papers_need_is_still_needed() -> None:
    assert sorted(OF_PAPERS - imported()) == []


def test_what_the_pages_name_can_be_reached_and_is_on_the_api_page() -> None:
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = sorted(used())
    assert len(names) > 80
    assert [
        name for name in names if reduce(lambda thing, part: getattr(thing, part, None), name.split("."), lt) is None
    ] == []
    ways = {name: (name, name.rpartition(".")[2], f"{name.rpartition('.')[2]}()") for name in names}
    assert [name for name in names if not any(f"`{way}`" in api for way in ways[name])] == []


def test_what_was_typed_is_known_at_the_rim_only() -> None:
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path, node in nodes(ast.ImportFrom)
        if node.module == "lmemtest.core.caller" and SPEAKS & {alias.name for alias in node.names}
    }
    assert sorted(place for place in asking if not place.startswith("cli/")) == []
