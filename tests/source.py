"""The source of the package, parsed once for all the tests that read it, and its commands."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

import lmemtest
from lmemtest.cli import app

PACKAGE = Path(lmemtest.__file__).parent


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def trees() -> dict[Path, ast.Module]:
    return _read()[0]


def nodes(*kinds: type[ast.AST]) -> list[tuple[Path, Any]]:
    """The nodes of these types, each with its file."""
    return [place for kind in kinds for place in _read()[1][kind]]


@cache
def _read() -> tuple[dict[Path, ast.Module], dict[type[ast.AST], list[tuple[Path, Any]]]]:
    """Trees by file, and nodes by type; all of them stay, so the garbage collector need not look through them."""
    gc.disable()
    trees = {path: ast.parse(text) for path, text in texts().items()}
    kinds = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            kinds[type(node)].append((path, node))
    gc.freeze()
    gc.enable()
    return trees, kinds


@cache
def module_of(path: Path) -> str:
    """``core.table`` of ``lmemtest/core/table.py``."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands of the command line by their words, those of groups too: found, not listed."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]
