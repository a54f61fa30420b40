"""What an importer is given - objects, files, several of them, by name - as parts with the labels of their names."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.sheets import expanded, json_value
from lmemtest.core.caller import advice, setting
from lmemtest.core.frames import collected
from lmemtest.core.validate import as_frame
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("algorithm", "benchmark", "seed")  # what the names of a mapping may say


@dataclass(frozen=True, slots=True)
class Part:
    """An object or a file, what the names above it say, and how messages call it."""

    content: Any
    labels: dict[str, Any] = field(default_factory=dict)
    origin: str = ""

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        return self.content if isinstance(self.content, Path) else None


def check_keys(keys: Any) -> tuple[str, ...]:
    """What the names of a mapping are, from outside to inside."""
    names = (keys,) if isinstance(keys, str) else keys
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"keys must name what the names of a mapping are, some of {listed(KEYS)}, got {keys!r}.")
    wrong = [name for name in names if name not in KEYS]
    if wrong or len(set(names)) < len(names):
        raise ArgumentError(f"keys must be different ones of {listed(KEYS)}, got {keys!r}.")
    return tuple(names)


def parts_of(
    given: Any,
    *,
    argument: str,
    keys: Sequence[str],
    files: str | None = None,
    is_content: Callable[[Any], bool] = lambda _: False,
) -> list[Part]:
    """The objects and files that are given: alone, as a list, or in a mapping by name.

    A text is a file, a folder (of `files`, a pattern) or a pattern such as ``runs/*.csv``; `is_content` tells a mapping
    that is an object of the tool from one of names.
    """
    found = list(_parts(given, argument, tuple(keys), files, is_content, {}))
    if not found:
        raise ArgumentError(f"{argument} must not be empty: give an object or a file of the tool, or several of them.")
    return found


def _parts(
    given: Any,
    argument: str,
    keys: tuple[str, ...],
    files: str | None,
    is_content: Callable[[Any], bool],
    labels: dict[str, Any],
) -> list[Part]:
    origin = f"{argument}[{', '.join(repr(label) for label in labels.values())}]" if labels else argument
    if isinstance(given, (str, os.PathLike)) and not isinstance(given, bytes):
        return [Part(path, labels, repr(str(path))) for path in _files(given, argument, files)]
    if is_content(given):
        return [Part(given, labels, origin)]
    if isinstance(given, Mapping):
        found = []
        for key, value in given.items():
            names = key if isinstance(key, tuple) else (key,)
            if len(names) > len(keys):
                what = f"are ({', '.join(keys)})" if keys else "are already complete"
                raise ArgumentError(f"{origin} has the name {key!r}, but its names {what}. {advice('fewer_names')}")
            said = {**labels, **dict(zip(keys, names, strict=False))}
            found += _parts(value, argument, keys[len(names) :], files, is_content, said)
        return found
    if isinstance(given, (list, tuple)):
        found = []
        for place, value in enumerate(given):
            inner = _parts(value, argument, keys, files, is_content, labels)
            found += [
                part if part.path else Part(part.content, part.labels, f"{origin}[{place}]" if not labels else origin)
                for part in inner
            ]
        return found
    return [Part(given, labels, origin)]


def _files(given: str | os.PathLike[str], argument: str, files: str | None) -> list[Path]:
    if str(given) == "":
        raise ArgumentError(f"{argument} must be a file, a folder or a pattern, got an empty text.")
    path = expanded(given)
    text = str(path)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError):  # too long, or with a NUL: the reader says so
        return [path]
    if is_folder and files is not None:
        found = sorted(found for found in path.rglob(files) if found.is_file())
        if not found:
            raise DataError(f"{argument}: there is no file {files} in the folder {text!r} or below it.")
        return found
    if not is_file and re.search(r"[*?\[]", text):
        found = sorted(Path(name) for name in glob(text, recursive=True) if Path(name).is_file())
        if not found:
            raise DataError(f"{argument}: no file matches {text!r}. Is it relative to another folder than this one?")
        return found
    return [path]


def has_column(name: str) -> Callable[[Any], bool]:
    """Tells a table given as a mapping of columns, by one of them."""
    return lambda thing: isinstance(thing, Mapping) and name in thing


def names_of(table: pd.DataFrame) -> list[str]:
    """The columns, which are texts."""
    return [str(name) for name in table.columns]


def needs_columns(table: pd.DataFrame, names: Sequence[str], *, origin: str, what: str, advice: str) -> None:
    """Refuse a table without the columns that its tool writes."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"{origin} is not {what}: it has no column {listed(map(repr, missing))}. Columns: {listed(table.columns)}. "
            f"{advice}"
        )


def frame_of(part: Part, *, argument: str, labels: Sequence[str] = (), seeds: Sequence[str] = ()) -> pd.DataFrame:
    """A table, in memory or in a file, as a pandas frame; `labels` and `seeds` as in `read_table`."""
    if part.path is not None:
        from lmemtest.bench.data.readers import read_table

        return read_table(part.path, labels=labels, seeds=seeds)
    frame: pd.DataFrame = collected(as_frame(part.content, argument=argument)).to_pandas().reset_index(drop=True)
    return frame


def table_of(
    given: Any,
    *,
    argument: str,
    files: str,
    mark: str,
    needs: Sequence[str],
    what: str,
    advice: str,
    labels: Sequence[str] = (),
    seeds: Sequence[str] = (),
) -> pd.DataFrame:
    """One or several tables with the columns that a tool writes, under each other; `mark` is one of these."""
    import pandas as pd

    tables = []
    for part in parts_of(given, argument=argument, keys=(), files=files, is_content=has_column(mark)):
        tables.append(frame_of(part, argument=argument, labels=labels, seeds=seeds))
        needs_columns(tables[-1], needs, origin=part.origin, what=what, advice=advice)
    return pd.concat(tables, ignore_index=True)


def several_files(importer: str, *files: str) -> str:
    """A call of an importer with several files, as the caller can type it."""
    return advice("typed", call=f"{importer}({list(files)})", command=" ".join(files))


def json_of(path: Path) -> Any:
    """The one value that a json file holds, packed or not."""
    from lmemtest.bench.data.readers import open_table

    source = open_table(path)
    try:
        return json_value(source.data.decode("utf-8-sig"), source.origin)
    except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "it is nested too deeply or no UTF-8 text"
        raise DataError(
            f"The file {source.origin} is not valid JSON ({reason}). Is it complete, and its suffix right?"
        ) from None


# ------------------------------------------------------------------------------------- names that hold several labels


def checked_pattern(names: Any) -> str | None:
    """A pattern such as ``{algorithm}_{benchmark}_{seed}``."""
    if names is None:
        return None
    fields = re.findall(r"\{(\w*)\}", names) if isinstance(names, str) else []
    if not fields or len(set(fields)) < len(fields) or not set(fields) <= set(KEYS):
        raise ArgumentError(
            f"names must be a pattern with some of {listed('{' + key + '}' for key in KEYS)}, each once, such as "
            f"'{{algorithm}}_{{benchmark}}_{{seed}}', got {names!r}."
        )
    return str(names)


def one_type(seeds: Sequence[Any]) -> list[Any]:
    """Seeds as texts if some of them are texts and others numbers: 1 beside x.

    >>> one_type([1, "x"]), one_type([1, 2])
    (['1', 'x'], [1, 2])
    """
    kinds = {isinstance(seed, str) for seed in seeds}
    return list(map(str, seeds)) if len(kinds) > 1 else list(seeds)


def by_pattern(pattern: str, name: str) -> dict[str, Any]:
    """What a name says by a pattern; every field but the last is as short as possible, seeds are whole numbers if so.

    >>> by_pattern("{algorithm}_{benchmark}_s{seed}", "TPE_iris_s3")
    {'algorithm': 'TPE', 'benchmark': 'iris', 'seed': 3}
    """
    pieces = re.split(r"\{(\w*)\}", pattern)
    regex = "".join(f"(?P<{piece}>.+?)" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
    match = re.fullmatch(regex, str(name))
    if match is None:
        raise DataError(
            f"{setting('names', pattern)} does not fit the name {name!r}. Change the pattern, or {advice('by_name')}."
        )
    found: dict[str, Any] = match.groupdict()
    if str(found.get("seed", "")).isdecimal():
        found["seed"] = int(found["seed"])
    return found


# ----------------------------------------------------------------------------------------------------- labels by role


NUMBERED = "their number in the order given"

Named = dict[str, tuple[Any, str]]  # by role: the label (or column) and where it is from


def labelled(
    found: Sequence[Named], parts: Sequence[Part], *, advice: str
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The labels of every object, and where each role is from; every one has an algorithm and a seed."""
    for role in KEYS:
        without = [part.origin for part, named in zip(parts, found, strict=True) if role not in named]
        if role == "algorithm" and without:
            raise DataError(f"Nothing says the algorithm of {listed(without, most=3)}. {advice}")
        if without and len(without) < len(parts):
            raise DataError(
                f"Nothing says the {role} of {listed(without, most=3)}, but that of others is known. {advice}"
            )
    labels = [{role: label for role, (label, _) in named.items()} for named in found]
    if all(isinstance(label.get("seed"), (int, str)) for label in labels):
        for label, seed in zip(labels, one_type([label["seed"] for label in labels]), strict=True):
            label["seed"] = seed
    said = {role: " or ".join(dict.fromkeys(named[role][1] for named in found)) for role in KEYS if role in found[0]}
    if "seed" not in said:
        said["seed"], seen = NUMBERED, Counter[str]()
        for label in labels:
            run = repr([str(label.get(role)) for role in KEYS[:2]])
            label["seed"] = seen[run]
            seen[run] += 1
    return labels, said
