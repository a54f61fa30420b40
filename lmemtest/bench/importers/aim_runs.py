"""Aim: the metrics of its runs, read by its own package."""

from __future__ import annotations

import os
from typing import Any, Literal

from lmemtest.bench.data.requirements import REQUIRED
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.sheets import expanded
from lmemtest.bench.importers.sources import parts_of
from lmemtest.bench.importers.tracked_runs import NAME, STATE, Logged, NamedRoles, flat, of_logged
from lmemtest.core.environment import extra_package
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError, DataError


def aim(
    runs: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    algorithm: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    metafeatures: Any = (),
    names: str | None = None,
) -> Runs:
    """Runs of Aim: a row per run, or per run and step.

    Parameters
    ----------
    runs : path or list of aim.Run
        The folder with the repository (``.aim``), which the package aim reads; or runs, such as those of
        ``aim.Repo("folder").iter_runs()``.
    score : str, optional
        The metric, with its context where it has several: "acc" or "acc subset=val"; required where there are several.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good. Required.
    algorithm, benchmark, seed : str, optional
        Parameters with these roles, as "hparams.model" or "model"; also "Name" and "experiment". What none of them
        holds, `names` must say.
    metafeatures : sequence of str
        Further parameters that describe the circumstances of a run.
    names : str, optional
        What the names of the runs are made of: ``"{algorithm}_{benchmark}_{seed}"``.

    Returns
    -------
    Runs
        Scores at the steps at which they were tracked, which are the budget; without one if each run has a single
        value. Runs that have not ended are left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If aim is not installed, the direction or the algorithm is not given, or there is no such metric or parameter.
    DataError
        If Aim has not indexed all runs of the repository, without which it finds no parameters; or nothing was tracked.
    """
    columns = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed}
    roles = NamedRoles(score, direction, columns, metafeatures, names)
    given = _of_repository(runs) if isinstance(runs, (str, os.PathLike)) else runs
    if not isinstance(given, (list, tuple)) and hasattr(given, "__next__"):
        given = list(given)
    logged = [_logged(part.content) for part in parts_of(given, argument="runs", keys=())]
    return of_logged(logged, roles, source="Runs of Aim", step="step")


def _of_repository(folder: Any) -> list[Any]:
    """All runs of a repository."""
    path = expanded(folder)
    if not str(folder) or not (path / ".aim").is_dir():
        raise DataError(f"runs: there is no repository of Aim (.aim) in {str(folder)!r}. Give the folder that has it.")
    package = extra_package("aim", extra="aim", purpose="read its runs", otherwise="It has wheels up to Python 3.12.")
    repository = package.Repo(str(path))
    found, there = list(repository.iter_runs()), len(repository.list_all_runs())
    if len(found) < there:
        raise DataError(
            f"Aim has indexed {len(found):,} of {counted(there, 'run')} in {str(path)!r}, and finds only these. Its "
            f"command does it: aim storage --repo {str(path)!r} reindex"
        )
    return found


def _logged(run: Any) -> Logged:
    """The settings of a run, and its metrics by name and context."""
    if not all(hasattr(run, name) for name in ("metrics", "active", "experiment")):
        raise ArgumentError(f"runs must be the folder of Aim's repository or runs of it, got {run!r:.60}.")
    scalars = dict[str, list[tuple[Any, Any]]]()
    for metric in run.metrics():
        context = "".join(f" {name}={value}" for name, value in sorted(flat(metric.context.to_dict()).items()))
        steps, (values, *_) = metric.data.numpy()
        scalars[f"{metric.name}{context}"] = list(zip(steps.tolist(), values.tolist(), strict=True))
    state = "running" if run.active else "finished"
    settings = run.get(..., {})
    return {NAME: run.name, "experiment": run.experiment, STATE: state, **flat(settings)}, scalars
