"""rliable: score dicts, {algorithm: array of runs x games (x frames)}, as runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest.data.importers.imported import imported
from lmemtest.data.runs import Runs
from lmemtest.data.trace import check_budgets
from lmemtest.errors import ArgumentError, DataError
from lmemtest.words import listed

__all__ = ["rliable"]


def rliable(
    scores: Mapping[str, Any],
    *,
    games: Iterable[str] | None = None,
    frames: Iterable[float] | None = None,
    direction: Literal["minimize", "maximize"] = "maximize",
) -> Runs:
    """Runs of rliable's score dicts: an array of runs x games for each algorithm.

    Parameters
    ----------
    scores : mapping
        ``{algorithm: array}``, arrays of shape (runs, games), or (runs, games, frames) for curves. Algorithms may
        differ in runs, not in games.
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
    if not isinstance(scores, Mapping) or not scores:
        raise ArgumentError(f"scores must be a dict {{algorithm: array of runs x games}}, got {scores!r}.")
    arrays = {name: _array(name, values) for name, values in scores.items()}
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
        raise ArgumentError("frames are for arrays of runs x games x frames, but scores have no frames. Leave it out.")
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


def _array(name: Any, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"scores[{name!r}] must be an array of numbers, runs x games. Its rows must have one length."
        ) from None
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise DataError(
            f"scores[{name!r}] must be an array of runs x games, or runs x games x frames, got the shape {array.shape}."
        )
    return array


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _names(games: Any, count: int) -> list[str]:
    if games is None:
        return [f"game {k}" for k in range(1, count + 1)]
    names = list(games) if isinstance(games, Iterable) and not isinstance(games, (str, bytes)) else []
    if len(names) != count or not all(isinstance(name, str) for name in names) or len(set(names)) < count:
        raise ArgumentError(
            f"games must be {count} different names, one per column of scores, got {listed(names) or games!r}."
        )
    return names


def _budgets(frames: Any, count: int) -> np.ndarray:
    if frames is None:
        return np.arange(1, count + 1)
    values = check_budgets(frames, "frames")
    if len(values) != count:
        raise ArgumentError(
            f"frames must be {count} different numbers, one per place of the third axis, got {len(values)}."
        )
    return values
