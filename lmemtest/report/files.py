"""Where results are written: paths that are checked before any work, and files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from lmemtest._caller import in_words_of
from lmemtest.errors import ArgumentError
from lmemtest.words import listed

__all__ = ["SUFFIXES", "check_folder", "check_report_path", "write_atomically"]

SUFFIXES = (".html", ".htm", ".md", ".txt", ".tex", ".csv", ".json", ".png")


def check_report_path(path: Any) -> Path:
    """The absolute path of a report that can be written there.

    Examples
    --------
    >>> check_report_path("report.pdf")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: path must end in one of .html, .htm, .md, .txt, .tex, .csv, .json, .png, got
    'report.pdf'. Write 'report.html'.
    """
    argument = in_words_of(python="path", command_line="-o")
    target = _as_path(path, argument)
    if target.suffix.lower() not in SUFFIXES:
        example = str(target.with_suffix(".html")) if target.name else "report.html"
        raise ArgumentError(
            f"{argument} must end in one of {listed(SUFFIXES)}, got {_short(path)}. Write {_short(example)}."
        )
    if _exists(target, argument) and target.is_dir():
        raise ArgumentError(f"{argument} must be a file, but {str(path)!r} is a folder. Add a file name.")
    if not _exists(target.parent, argument) or not target.parent.is_dir():
        raise ArgumentError(
            f"{argument} must be in a folder that exists, but {_short(target.parent)} does not. Create it first."
        )
    _check_writable(target.resolve().parent, argument)
    return Path(os.path.abspath(target))


def check_folder(path: Any) -> Path:
    """The absolute path of a folder that exists or can be made.

    Examples
    --------
    >>> check_folder("no/such")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: output must be a folder in one that exists, but 'no' does not. Create it first.
    """
    argument = in_words_of(python="output", command_line="-o")
    target = _as_path(path, argument)
    there = _exists(target, argument)
    if there and not target.is_dir():
        raise ArgumentError(
            f"{argument} must be a folder, but {str(path)!r} is a file. Name a folder for several files."
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
    return Path(path).expanduser()


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
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = target.resolve()  # through a link, not over it
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".lmemtest-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
