"""The table of modules in the docstring of a folder is that of its files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lmemtest

PACKAGE = Path(lmemtest.__file__).parent


FOLDERS = ("lmm/engine", "lmm/diagnostics", "bench/power", "lmm/model")


def test_tables_of_modules_are_those_of_the_files() -> None:
    for folder in FOLDERS:
        text = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text())) or ""
        table = re.search(r"^=+  =+$(.*)^=+  =+$", text, flags=re.MULTILINE | re.DOTALL)
        assert table is not None, folder
        listed = re.findall(r"^(\w+)  ", table[1], flags=re.MULTILINE)
        assert sorted(listed) == sorted(module.stem for module in (PACKAGE / folder).glob("[a-z]*.py")), folder
