"""A ledger: a file with a line for what is planned and one for each look, to which lines are added and nothing else.

Each line has the digest of the lines before it, so that a line that was changed or taken out is found, unless it is at
the end. A new line is written into a copy that then takes the name of the ledger: whoever is killed on the way leaves
the ledger as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from lmemtest.core.caller import named
from lmemtest.core.words import counted, listed
from lmemtest.errors import ArgumentError, DataError, NestingError

PLAN, LOOK, EXTENSION = "schedule", "look", "extension"  # what a line may hold
Record = dict[str, Any]


def ledger_path(ledger: Any, called: str = "ledger") -> Path:
    """The path of a ledger, checked."""
    if not isinstance(ledger, str | os.PathLike) or Path(ledger).suffix not in (".json", ".jsonl"):
        number = "a number of looks, or " if called == "looked" else ""
        raise ArgumentError(
            f"{named(called)} must be {number}the path of a file .jsonl or .json, got {_shown(ledger)}."
        )
    try:
        there = Path(ledger).exists() or Path(ledger).resolve().parent.is_dir()
    except (OSError, ValueError) as error:  # too long, or a zero byte
        raise ArgumentError(
            f"{named(called)} must be a path that the system takes, got {_shown(ledger)}: {error}."
        ) from None
    if not there:
        raise ArgumentError(f"{named(called)}: there is no folder {str(Path(ledger).parent)!r}.")
    return Path(ledger)


def read_ledger(path: Path, wanted: str) -> tuple[Record | None, list[Record], Record | None]:
    """The plan, the looks, and the extension; `wanted` is what a plan of this kind has. None where there is no file."""
    if not path.exists():
        return None, [], None
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        plan, *records = map(json.loads, lines)
        for i, record in enumerate((plan, *records)):
            if record.pop("before") != _digest("".join(lines[:i])):
                raise DataError(
                    f"{path.name}: the lines before line {i + 1} are not those that it was added to. A ledger is not "
                    "rewritten: restore the file, or begin another study with new runs."
                )
        looks = [record[LOOK] for record in records if EXTENSION not in record]
        plan[PLAN][wanted], looks[0]  # of another question it has none; a look is written with the plan
        return plan[PLAN], looks, records[-1].get(EXTENSION) if records else None
    except (OSError, UnicodeDecodeError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise not_a_ledger(path, error) from None


def not_a_ledger(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path.name} is not a ledger of such looks ({type(error).__name__}); it stays as it is. Restore it, or name a "
        "file that does not exist yet."
    )


def add_to_ledger(path: Path, plan: Mapping[str, Any], record: Record) -> None:
    """Add a line, after that of the plan if it is the first."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    text += "\n" * bool(text and not text.endswith("\n"))  # an editor took it away
    for line in (record,) if text else ({PLAN: plan}, record):
        text += json.dumps({**line, "before": _digest(text)}) + "\n"
    handle, name = tempfile.mkstemp(dir=path.resolve().parent, prefix=".lmemtest-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path.resolve())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def require_kept(last: Iterable[str], now: Collection[str], unit: str, of: str) -> None:
    """Refuse runs that lost units of the last look; `of` names them in the error: "these runs"."""
    if lost := [name for name in last if name not in now]:
        raise NestingError(
            f"{counted(len(lost), unit)} of the last look {'is' if len(lost) == 1 else 'are'} not in {of}: "
            f"{listed(lost)}. Looks go forward: give all runs of the last look and the new ones."
        )


def _shown(ledger: Any) -> str:
    path = os.fspath(ledger) if isinstance(ledger, os.PathLike) else ledger
    return repr(f"{path[:60]}..." if len(path) > 60 else path) if isinstance(path, str) else f"{path!r:.60}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
