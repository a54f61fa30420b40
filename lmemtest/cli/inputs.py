"""The files that a command reads, none of which it may write over."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = "FILE"  # the metavar of options that name a file, -o among them
OUTPUT = "output"
UNASKED = {"report": Path("lmemtest-report.html"), "demo": Path("lmemtest-demo.html")}  # written without -o


def refuse_inputs(context: Any) -> None:
    """Refuse an output that is an input under whatever name, or no file, before any work.

    An input is every positional argument and every option that names a file; a folder that is read holds inputs.
    """
    from lmemtest.errors import ArgumentError

    given = context.params.get(OUTPUT) or UNASKED.get(context.command.name)
    outputs = [(path, found) for path in _outputs(given) if (found := _stat(path)) is not None]
    for path, found in outputs:
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise ArgumentError(f"-o must be a file, but {str(path)!r} is a pipe or a device. Choose another name.")
    if not outputs:
        return
    for shown, input_stat, folder in _inputs(context):
        for path, found in outputs:
            if stat.S_ISDIR(found.st_mode):  # its files are outputs of their own
                continue
            inside = folder is not None and folder in path.resolve().parents
            if inside or os.path.samestat(found, input_stat):
                where = f"is in the folder {shown}, which is read" if inside else f"is an input, {shown}"
                raise ArgumentError(
                    f"-o must not be a file that the command reads, but {str(path)!r} {where}. Choose another name."
                )


def _outputs(given: Any) -> Iterator[Path]:
    """What would be written, the files of a folder included."""
    from lmemtest.report.files import CURVE_FILES

    for text in given if isinstance(given, (list, tuple)) else [given]:
        if text is not None:
            path = _expanded(text)
            yield path
            yield from (path / name for name in CURVE_FILES if os.path.isdir(path))


def _inputs(context: Any) -> Iterator[tuple[str, os.stat_result, Path | None]]:
    """Each input as what it is called, what it is, and its true path if it is a folder."""
    for parameter in context.command.params:
        given = context.params.get(parameter.name)
        names_file = parameter.param_type_name == "argument" or parameter.metavar == FILE
        if given is None or parameter.name == OUTPUT or not names_file:
            continue
        for text in given if isinstance(given, (list, tuple)) else [given]:
            if str(text) == "-":
                yield from _standard_input()
                continue
            for name in dict.fromkeys([str(text), str(text).partition("=")[2]]):  # NAME=FILE of `convert`
                path = _expanded(name)
                for found in [path, *map(Path, glob.glob(str(path), recursive=True))] if name else []:
                    known = _stat(found)
                    if known is not None:
                        yield repr(str(found)), known, found.resolve() if stat.S_ISDIR(known.st_mode) else None


def _standard_input() -> Iterator[tuple[str, os.stat_result, None]]:
    try:
        yield "standard input", os.fstat(_descriptor()), None
    except (OSError, ValueError, AttributeError):  # closed, or no file of the system
        return


def _descriptor() -> int:
    """Of standard input."""
    return sys.stdin.fileno()


def _expanded(text: Any) -> Path:
    return Path(os.path.expanduser(text))  # leaves the ~ of a user that nobody knows


def _stat(path: Path) -> os.stat_result | None:
    """What a path leads to, through links; None if that is nothing or no name of a file."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
