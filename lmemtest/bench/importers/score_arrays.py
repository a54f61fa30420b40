"""rliable: score dicts, {algorithm: array of runs x games (x frames)}, as runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from lmemtest.bench.data.readers import not_found
from lmemtest.bench.data.recognised import Recognised, nesting
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.selection import check_budgets
from lmemtest.bench.data.sheets import refuse_large_archive
from lmemtest.bench.importers.imported import imported
from lmemtest.bench.importers.sources import json_of, parts_of
from lmemtest.core.caller import named
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError


def rliable(
    scores: Any,
    *,
    games: Iterable[str] | None = None,
    frames: Iterable[float] | None = None,
    direction: Literal["minimize", "maximize"] = "maximize",
) -> Runs:
    """Runs of rliable's score dicts: an array of runs x games for each algorithm.

    Parameters
    ----------
    scores : mapping, path or list of paths
        ``{algorithm: array}``, arrays of shape (runs, games), or (runs, games, frames) for curves. Algorithms may
        differ in runs, not in games. A file is json of nested lists, or what ``numpy.savez(file, **scores)`` writes.
    games : iterable of str, optional
        The names of the games, in the order of the columns. By default they are numbered from 1.
    frames : iterable of float, optional
        The budgets of curves. By default numbered from 1.
    direction : {"minimize", "maximize"}, default "maximize"
        Whether a high score is good, as it is for rliable.

    Returns
    -------
    Runs
        One row per score: ``algorithm``, ``game``, ``run``, and ``frame`` for curves.

    Raises
    ------
    ArgumentError
        If names do not fit the arrays.
    DataError
        If arrays have other shapes, or hold something other than numbers.

    Examples
    --------
    >>> runs = rliable({"DQN": [[0.5, 1.2], [0.4, 1.1]], "C51": [[0.9, 1.3], [0.8, 1.0]]}, games=["Pong", "Breakout"])
    >>> runs.filter(game="Pong").to_frame()["score"].tolist()
    [0.5, 0.4, 0.9, 0.8]
    """
    arrays: dict[Any, np.ndarray] = {}
    parts = parts_of(scores, argument="scores", keys=(), files="*.json", is_content=lambda x: isinstance(x, Mapping))
    for part in parts:
        content = part.content if part.path is None else _of_file(part.path)
        if not isinstance(content, Mapping) or not content:
            raise ArgumentError(
                f"{part.origin} must be a dict {{algorithm: array of runs x games}}, got {content!r:.60}. Give one "
                "array per algorithm."
            )
        twice = [name for name in content if name in arrays]
        if twice:
            raise DataError(f"{part.origin} repeats {twice[0]!r}. Join the runs of an algorithm in one array.")
        arrays |= {name: _array(name, values, part.origin) for name, values in content.items()}
    first, shape = next((name, array.shape[1:]) for name, array in arrays.items())
    for name, array in arrays.items():
        if array.shape[1:] != shape:
            raise DataError(
                f"scores must have the same games{' and frames' if len(shape) > 1 else ''} for all algorithms, but "
                f"{first!r} has {_size(shape)} and {name!r} {_size(array.shape[1:])}."
            )
    columns = _names(games, shape[0])
    budgets = None if len(shape) == 1 else _budgets(frames, shape[1])
    if budgets is None and frames is not None:
        raise ArgumentError(
            f"{named('frames')} are for arrays of runs x games x frames, but scores have no frames. Leave it out."
        )
    tables = []
    for name, array in arrays.items():
        place = np.indices(array.shape).reshape(array.ndim, -1)
        table = {"algorithm": name, "game": np.array(columns, dtype=object)[place[1]], "run": place[0] + 1}
        if budgets is not None:
            table["frame"] = budgets[place[2]]
        tables.append(pd.DataFrame({**table, "score": array.ravel()}))
    return imported(
        pd.concat(tables, ignore_index=True),
        source="rliable scores",
        score="score",
        direction=direction,
        algorithm="algorithm",
        benchmark="game",
        seed="run",
        budget=None if budgets is None else "frame",
        seed_shared=False,
        said={"benchmark": "the second axis", "seed": "the first axis", "budget": "the third axis"},
        notes=["Runs only number the repetitions of an algorithm on a game."],
        alone="Give the scores of several algorithms.",
    )


def _of_file(path: Path) -> Any:
    """What a file holds by algorithm."""
    if path.suffix.lower() != ".npz":
        return json_of(path)
    if not path.is_file():
        raise not_found(path)
    try:
        with np.load(path) as archive:
            refuse_large_archive(archive.zip, repr(str(path)))
            return dict(archive)
    except DataError:
        raise
    except (ValueError, EOFError, BadZipFile):
        raise DataError(f"The file {str(path)!r} is no archive of numbers. Write it with numpy.savez.") from None


def _array(name: Any, values: Any, origin: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"{origin}[{name!r}] must be an array of numbers, runs x games. Its rows must have one length."
        ) from None
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise DataError(
            f"{origin}[{name!r}] must be an array of runs x games, or runs x games x frames, got the shape "
            f"{array.shape}."
        )
    return array


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _names(games: Any, count: int) -> list[str]:
    if games is None:
        return [f"game {k}" for k in range(1, count + 1)]
    several = isinstance(games, Iterable) and not isinstance(games, (str, bytes)) and getattr(games, "ndim", None) != 0
    names = list(games) if several else []
    if len(names) != count or not all(isinstance(name, str) for name in names) or len(set(names)) < count:
        raise ArgumentError(
            f"{named('games')} must be {count} different names, one per column of scores, got "
            f"{listed(names) or games!r}."
        )
    return names


def _budgets(frames: Any, count: int) -> np.ndarray:
    if frames is None:
        return np.arange(1, count + 1)
    values = check_budgets(frames, "frames")
    if len(values) != count:
        raise ArgumentError(
            f"{named('frames')} must be {count} different numbers, one per place of the third axis, got {len(values)}."
        )
    return values


# ---------------------------------------------------------------------------------------- what is recognised


def of_names(content: Mapping[str, Any]) -> Recognised | None:
    """Arrays of scores by algorithm."""
    names, lists = nesting(content)
    if len(names) != 1 or lists not in (2, 3):
        return None
    return Recognised(
        code="rliable", what="scores as rliable takes them", columns=tuple(map(str, content)), tool="rliable",
        options={"direction": "maximize"},
    )  # fmt: skip
