"""The ledger: a file with a line for the schedule and one for each look, to which lines are added and nothing else.

Each line has the digest of the lines before it, so that a line that was changed or taken out is found. A new line is
written into a copy that then takes the name of the ledger: whoever is killed on the way leaves the ledger as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lmemtest.bench.looks.schedule import Look, Schedule
from lmemtest.core.caller import named
from lmemtest.errors import ArgumentError, DataError

_SCHEDULE, _LOOK = "schedule", "look"


def read_ledger(path: Path) -> tuple[Schedule | None, tuple[Look, ...]]:
    """The schedule and the looks so far; none where there is no file yet."""
    if not path.exists():
        if not path.resolve().parent.is_dir():
            raise ArgumentError(f"{named('ledger')}: there is no folder {str(path.parent)!r}.")
        return None, ()
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        records = []
        for i, line in enumerate(lines):
            record = json.loads(line)
            if record.pop("before") != _digest("".join(lines[:i])):
                raise DataError(
                    f"{path.name}: the lines before line {i + 1} are not those that it was added to. A ledger is not "
                    "rewritten: restore the file, or begin another study with new runs."
                )
            records.append(record)
        (schedule,) = (_schedule(record[_SCHEDULE]) for record in records[:1])
        return schedule, tuple(_look(record[_LOOK]) for record in records[1:])
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path.name} is not a ledger of looks ({type(error).__name__}); it stays as it is. Restore it, or name a "
            "file that does not exist yet."
        ) from None


def append_look(path: Path, schedule: Schedule, look: Look) -> None:
    """Add a look, after the schedule if it is the first."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    records: list[dict[str, Any]] = [{_LOOK: asdict(look)}]
    if not text:
        records.insert(0, {_SCHEDULE: asdict(schedule)})
    for record in records:
        text += json.dumps({**record, "before": _digest(text)}) + "\n"
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _schedule(record: dict[str, Any]) -> Schedule:
    lists = ("algorithms", "planned", "benchmarks")
    return Schedule(**{**record, **{name: tuple(record[name]) for name in lists}})


def _look(record: dict[str, Any]) -> Look:
    return Look(**{**record, "units": tuple(record["units"]), "pairs": tuple(map(tuple, record["pairs"]))})
