"""HPO-B-like json, {space: {task: {seed: [curve]}}} for each algorithm, as runs over the length of the curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.recognised import ENDS, Recognised, nesting
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import imported
from lmemtest.bench.importers.sources import json_of, parts_of
from lmemtest.core.caller import advice
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import listed
from lmemtest.errors import DataError

SHAPE = "{space: {task: {seed: [scores]}}} for each algorithm, or {algorithm: {space: ...}}"
LEVELS = ("algorithm", "search_space", "dataset", "seed")


def hpob(
    curves: Any,
    *,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    first: int = 1,
) -> Runs:
    """Runs of curves in nested json, as HPO-B publishes them: {space: {task: {seed: [score after each trial]}}}.

    Parameters
    ----------
    curves : path, mapping or list
        One file per algorithm, which is called as the file: a list, a folder, or a pattern such as
        ``results/*.json``; or ``{"GP": file, ...}``. Or the nested mappings themselves, with the algorithms outside. A
        file may be packed (``.json.gz``) and may hold the algorithms outside.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good; the files do not say it. Required.
    first : int, default 1
        The budget of the first score of each curve; 0 if it is that before any trial.

    Returns
    -------
    Runs
        One row per score. The benchmark ``task`` is the data set within its search space, ``search_space/dataset``:
        one data set in two search spaces is two tasks. Search spaces are families of tasks. ``trial`` is the budget.

    Raises
    ------
    ArgumentError
        If the direction is not given.
    DataError
        If the nesting is another one, or a curve holds something other than numbers.

    Examples
    --------
    >>> gp = {"5860": {"14951": {"test0": [0.5, 0.7], "test1": [0.6, 0.6]}}}
    >>> random = {"5860": {"14951": {"test0": [0.4, 0.6], "test1": [0.3, 0.5]}}}
    >>> runs = hpob({"GP": gp, "Random": random}, direction="maximize")
    >>> runs.algorithms, runs.levels("task"), runs.levels("trial")
    (('GP', 'Random'), ('5860/14951',), (1, 2))
    """
    direction = required_direction(direction)
    first = check_positive_int(first, "first", minimum=0)
    found: list[tuple[tuple[str, ...], list[Any]]] = []
    said = set()
    for part in parts_of(curves, argument="curves", keys=("algorithm",), files="*.json*", is_content=_is_nested):
        content = part.content if part.path is None else json_of(part.path)
        if not isinstance(content, Mapping):
            raise DataError(f"{part.origin} must be {SHAPE}, got {type(content).__name__}.")
        depth = _depth(content)
        outside = [] if depth == len(LEVELS) else [*part.labels.values()]
        if depth == len(LEVELS) - 1 and not outside:
            if part.path is None:
                raise DataError(
                    f"Nothing says the algorithm of {part.origin}: give {{'GP': {{space: ...}}, ...}}. {_name_them()}"
                )
            outside = [part.path.name.partition(".")[0]]
        if depth + len(outside) != len(LEVELS):
            raise DataError(f"{part.origin} must be {SHAPE}, but its lists are {depth} names deep.")
        said.add("the name that was given" if depth == len(LEVELS) or part.labels else "the name of its file")
        found += [((*map(str, outside), *names), curve) for names, curve in _leaves(content, (), part.origin)]
    lengths = [len(curve) for _, curve in found]
    rows = pd.DataFrame([names for names, _ in found], columns=list(LEVELS))
    table = rows.loc[np.repeat(rows.index, lengths)].reset_index(drop=True)
    table = table.assign(
        trial=np.concatenate([np.arange(first, first + n) for n in lengths]),
        score=np.concatenate([_numbers(curve, names) for names, curve in found]),
        task=table["search_space"] + "/" + table["dataset"],
    )
    return imported(
        table,
        source=f"{len(found):,} curves in the form of HPO-B",
        score="score",
        direction=direction,
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="trial",
        family="search_space",
        ignore=("dataset",),
        said={
            "algorithm": " or ".join(sorted(said)),
            "benchmark": "task, the data set within its search space",
            "budget": f"the place in the curve, from {first}",
        },
        notes=_notes(table, direction, lengths),
        repeated=f"Two files hold the same algorithm. {_name_them()}",
        alone=_name_them(),
    )


def _name_them() -> str:
    return f"Give one file per algorithm, which is called as the file: {advice('hpob_files')}."


def _is_nested(thing: Any) -> bool:
    """Whether a mapping holds no files."""
    if not isinstance(thing, Mapping) or not thing:
        return False
    inner = next(iter(thing.values()))
    return _depth(thing) == len(LEVELS) or (isinstance(inner, Mapping) and _depth(thing) == len(LEVELS) - 1)


def _depth(thing: Any) -> int:
    """How many names lead to the first thing that is no mapping."""
    depth = 0
    while isinstance(thing, Mapping) and thing:
        thing, depth = next(iter(thing.values())), depth + 1
    return depth


def _leaves(thing: Any, names: tuple[str, ...], origin: str) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    if isinstance(thing, Mapping):
        for name, inner in thing.items():
            yield from _leaves(inner, (*names, str(name)), origin)
    elif isinstance(thing, (list, tuple, np.ndarray)) and len(thing):
        yield names, list(thing)
    else:
        raise DataError(f"{origin}: {' / '.join(names)} must be a list of scores, got {thing!r}. It must be {SHAPE}.")


def _numbers(curve: list[Any], names: tuple[str, ...]) -> np.ndarray:
    try:
        values = np.array([np.nan if value is None else value for value in curve], dtype=float)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise DataError(f"The curve of {' / '.join(names)} must be a list of numbers, got {listed(curve, most=3)}.")
    return values


def _notes(table: pd.DataFrame, direction: str, lengths: list[int]) -> list[str]:
    notes = []
    keys = ["algorithm", "task", "seed"]
    steps = table.groupby(keys, sort=False, observed=True)["score"].diff().to_numpy()
    worse = steps > 0 if direction == "minimize" else steps < 0
    if worse.any():
        notes.append(
            f"{int(worse.sum()):,} scores are worse than the one before them, so curves hold single trials and not the "
            f"best so far: {advice('best_so_far')}."
        )
    spaces = table.groupby("dataset", observed=True)["search_space"].nunique()
    if (spaces > 1).any():
        notes.append(
            f"{int((spaces > 1).sum()):,} of {len(spaces):,} data sets are in several search spaces; in each they are "
            "a task of its own."
        )
    if len(set(lengths)) > 1:
        notes.append(f"Curves have {min(lengths):,} to {max(lengths):,} scores.")
    return notes


# ---------------------------------------------------------------------------------------- what is recognised


def of_names(content: Mapping[str, Any]) -> Recognised | None:
    """Curves by search space, data set and seed, perhaps below the algorithm."""
    names, lists = nesting(content)
    if len(names) not in (3, 4) or lists != 1:
        return None
    alone = "A file is of one algorithm, which is called as the file: give the files of several."
    return Recognised(
        code="hpob", what="curves in the form of HPO-B", columns=names, tool="hpob", lacking=ENDS,
        advice=alone if len(names) == 3 else "",
    )  # fmt: skip
