"""Stable-Baselines3: the returns of episodes in the files of its Monitor, a run for each folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from lmemtest.bench.data.readers import not_found
from lmemtest.bench.data.recognised import Recognised
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import imported, numbers_in, one_of
from lmemtest.bench.importers.sources import by_pattern, checked_pattern, one_type, parts_of
from lmemtest.core.caller import named, setting
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError, DataError

ROLES = "{algorithm}/{benchmark}/{seed}"
FILES = "*monitor.csv"
_WRITTEN = "Give files that the Monitor of Stable-Baselines3 wrote."


def sb3(
    logs: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = "maximize",
    names: str = ROLES,
) -> Runs:
    """Runs of Stable-Baselines3: a row per episode that its Monitor logged.

    Parameters
    ----------
    logs : path or list of paths
        A folder with files ``monitor.csv`` or ``0.monitor.csv``, ..., or single ones. Files in one folder are the
        parallel environments of one run.
    score : str, optional
        The column of the score: "r", the return of an episode, by default; or one that ``info_keywords`` added, such as
        "is_success".
    direction : {"minimize", "maximize"}, default "maximize"
        Whether a high score is good, as a return is.
    names : str, default "{algorithm}/{benchmark}/{seed}"
        What the folders of a run are, the last ones of its path: "ppo/CartPole-v1/3", or with ``"{algorithm}_{seed}"``
        the last folder alone, "ppo_3". Without a benchmark in it, the environment in the files is the benchmark.

    Returns
    -------
    Runs
        Scores over the budget ``steps``: those that a run had made at the end of each episode, in all environments.
        Episodes of parallel environments are ordered by time, as ``load_results`` does.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there is no such column, or `logs` are not paths.
    DataError
        If a file is not the Monitor's, a folder does not fit `names`, or no episode ended.
    """
    pattern = checked_pattern(names)
    if pattern is None:
        raise ArgumentError(f"{named('names')} must say what the folders are: {setting('names', ROLES)}.")
    runs: dict[Path, list[pd.DataFrame]] = {}
    for part in parts_of(logs, argument="logs", keys=(), files=FILES):
        if part.path is None:
            raise ArgumentError(f"logs must be a folder of monitor.csv or paths of them, got {part.content!r:.60}.")
        runs.setdefault(part.path.resolve().parent, []).append(_episodes(part.path))
    depth, tables, parallel = pattern.count("/") + 1, [], 0
    for folder, environments in runs.items():
        parallel += len(environments) > 1
        table = pd.concat(environments, ignore_index=True).sort_values("t", kind="stable")
        run = by_pattern(pattern, "/".join(folder.parts[-depth:]))
        tables.append(table.assign(steps=table["l"].cumsum(), **{"benchmark": table["env_id"], **run}))
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise DataError("logs hold no episode: none ended. Train longer, or name other files.")
    roles = [role for role in ("algorithm", "benchmark", "seed") if role in table]
    measured = [name for name in table if name not in {*roles, "l", "t", "env_id", "steps"}]
    score = "r" if score is None else one_of(measured, score, argument="score", what="scores", origin="logs")
    table[score] = numbers_in(table[score], name=score, advice="Name a column of numbers.")
    if "seed" in table:
        table["seed"] = one_type(table["seed"].tolist())
    said = dict.fromkeys((role for role in roles if f"{{{role}}}" in pattern), "in the names of folders")
    return imported(
        table,
        source="Episodes of Stable-Baselines3",
        score=score,
        direction=direction,
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed" if "seed" in table else None,
        budget="steps",
        said={"benchmark": "env_id in the files"} | said | {"budget": "the steps of a run at the end of an episode"},
        notes=[f"{counted(parallel, 'run')} of several environments: episodes in the order of time."]
        if parallel
        else [],
        alone="Give the folder above the algorithms.",
    )


def _episodes(path: Path) -> pd.DataFrame:
    """The episodes of one environment, at the time of their end."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
            header = json.loads(first.removeprefix("#"))
            table = pd.read_csv(file)
            start, environment = float(header["t_start"]), str(header["env_id"])
    except FileNotFoundError:
        raise not_found(path) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f'{str(path)!r} does not begin with the line of a Monitor, #{{"t_start": ...}}. {_WRITTEN}'
        ) from None
    if missing := [name for name in ("r", "l", "t") if name not in table]:
        raise DataError(f"{str(path)!r} has no column {missing[0]!r}. {_WRITTEN}")
    for name in ("l", "t"):
        table[name] = numbers_in(table[name], name=name, advice=_WRITTEN)
    return table.assign(t=table["t"] + start, env_id=environment)


def of_name(file: str) -> Recognised | None:
    """What a file is by its name, and all runs are in the folder above those that names hold."""
    path = Path(file)
    if not path.name.lower().endswith("monitor.csv"):
        return None
    return Recognised(
        code="sb3", what="episodes of Stable-Baselines3", columns=("the name monitor.csv",), tool="sb3",
        files=(str(path.parents[min(3, len(path.parents) - 1)]),),
    )  # fmt: skip
