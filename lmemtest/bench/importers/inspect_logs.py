"""Logs of inspect_ai, ``.json`` and ``.eval``, as the table of samples that its ``samples_df`` returns."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lmemtest.bench.data.content import refuse_large_archive
from lmemtest.bench.data.readers import not_found
from lmemtest.bench.importers.sources import json_of
from lmemtest.errors import DataError

__all__ = ["is_log", "log_of", "logs_in"]

AS_JSON = "Convert it: inspect log convert --to json --output-dir FOLDER FILE."
COMPLETE = "success"


def is_log(path: Path) -> bool:
    """Whether this is a log, by its suffix or its first keys; other json files are tables."""
    if path.suffix.lower() == ".eval":
        return True
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as handle:
        start = handle.read(4096)
    return b'"eval"' in start and b'"status"' in start


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder and below it."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_log(path))


def log_of(path: Path) -> tuple[pd.DataFrame, str]:
    """The samples of a log - model, task_name, id, epoch, a column per score, error - and its status."""
    if not path.is_file():
        raise not_found(path)
    header: Any
    samples: Any
    if path.suffix.lower() == ".eval":
        header, samples = _unpacked(path)
    else:
        header = json_of(path)
        samples = header.get("samples") if isinstance(header, Mapping) else None
    about = header.get("eval") if isinstance(header, Mapping) else None
    if not isinstance(about, Mapping) or not {"model", "task"} <= set(about):
        raise DataError(f"The file {str(path)!r} is no log of inspect_ai: it has no 'eval' with a model and a task.")
    if not samples:
        raise DataError(f"The log {str(path)!r} holds no samples: its status is {header.get('status', 'unknown')!r}.")
    rows = [_row(sample) for sample in samples]
    table = pd.DataFrame(rows).assign(model=str(about["model"]), task_name=str(about["task"]))
    return table, str(header.get("status", COMPLETE))


def _row(sample: Mapping[str, Any]) -> dict[str, Any]:
    scores = sample.get("scores") or {}
    if sample.get("score") is not None and not scores:  # of version 1
        scores = {"score": sample["score"]}
    found = {f"score_{name}": value for given, score in scores.items() for name, value in _values(given, score)}
    return {"id": sample.get("id"), "epoch": sample.get("epoch", 1), **found, "error": _error(sample.get("error"))}


def _values(name: str, score: Any) -> Iterator[tuple[str, Any]]:
    """The value of a scorer, or those of its parts."""
    value = score.get("value") if isinstance(score, Mapping) else score
    if isinstance(value, Mapping):
        yield from ((f"{name}_{part}", single) for part, single in value.items())
    else:
        yield name, value


def _error(error: Any) -> str | None:
    return str(error.get("message", "error")) if isinstance(error, Mapping) else None if not error else str(error)


def _unpacked(path: Path) -> tuple[Any, list[Any]]:
    """The header of a packed log, and its samples as they are summed up there, else one by one."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_large_archive(archive, repr(str(path)))
            names = archive.namelist()
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            if header is None:
                raise DataError(f"The file {str(path)!r} is no log of inspect_ai: it has no header. Is it complete?")
            if "summaries.json" in names:
                samples = json.loads(archive.read("summaries.json"))
            else:  # of a run that was stopped
                inner = sorted(name for name in names if name.startswith("samples/"))
                samples = [json.loads(archive.read(name)) for name in inner]
            return json.loads(archive.read(header)), samples
    except DataError:
        raise
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise DataError(f"The log {str(path)!r} cannot be read ({error}). Is it complete?") from None
    except (NotImplementedError, RuntimeError):  # a packing that this version of Python does not know
        raise DataError(f"The log {str(path)!r} is packed in a way that Python cannot read here. {AS_JSON}") from None
