"""ClearML: the scalars of tasks, from the sessions that its offline mode writes or from the tasks of a server."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from lmemtest.bench.data.readers import not_found
from lmemtest.bench.data.requirements import REQUIRED
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.sheets import expanded, refuse_large_archive
from lmemtest.bench.importers.sources import parts_of
from lmemtest.bench.importers.tracked_runs import NAME, STATE, Logged, NamedRoles, of_logged
from lmemtest.errors import ArgumentError, DataError, LmemtestError

TASK, METRICS = "task.json", "metrics.jsonl"  # of a session
SCALAR = "training_stats_scalar"  # how its events call them
SINGLE = "Summary", -(2**31)  # where report_single_value puts them
KINDS = {"int": int, "integer": int, "float": float}  # of a parameter; others remain texts
_WRITTEN = "Give what Task.set_offline(True) wrote, or tasks of Task.get_tasks(...)."


def clearml(
    tasks: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    algorithm: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    metafeatures: Any = (),
    names: str | None = None,
) -> Runs:
    """Runs of ClearML: a row per task, or per task and iteration.

    Parameters
    ----------
    tasks : path, list of paths, or list of Task
        The folder of sessions that were logged offline (``offline-<id>.zip``, or folders with ``task.json``), or some
        of them; or ``Task.get_tasks(project_name=...)``, whose scalars are fetched from its server. Only that needs
        the package clearml.
    score : str, optional
        The scalar, as "title/series" or the title alone, or the name of a single value; required where there are
        several.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good. Required.
    algorithm, benchmark, seed : str, optional
        Hyperparameters with these roles, as "General/model" or "model"; also "Name" and "project". What none of them
        holds, `names` must say.
    metafeatures : sequence of str
        Further hyperparameters that describe the circumstances of a run.
    names : str, optional
        What the names of the tasks are made of: ``"{algorithm}_{benchmark}_{seed}"``.

    Returns
    -------
    Runs
        Scores at the iterations at which they were logged, which are the budget; without one if each task has a single
        value. A task that failed or was stopped has no score; tasks that have not ended are left out. A session does
        not say how its task ended.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If the direction or the algorithm is not given, or there is no such scalar or hyperparameter, or several.
    DataError
        If a file is no session of ClearML, or nothing was logged.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i, model in enumerate("ABAB"):
    ...         session = pathlib.Path(folder) / f"offline-{i}"
    ...         session.mkdir()
    ...         settings = {"model": {"type": "str", "value": model}, "seed": {"type": "int", "value": str(i // 2)}}
    ...         _ = (session / "task.json").write_text(
    ...             json.dumps({"id": session.name, "name": f"run {i}", "hyperparams": {"General": settings}}))
    ...         event = {"type": "training_stats_scalar", "metric": "acc", "variant": "test", "iter": 0}
    ...         _ = (session / "metrics.jsonl").write_text(json.dumps([event | {"value": i / 10}]))
    ...     runs = clearml(folder, direction="maximize", algorithm="model", seed="seed")
    >>> runs.score, runs.algorithm, runs.to_frame()["acc/test"].tolist()
    ('acc/test', 'General/model', [0.0, 0.1, 0.2, 0.3])
    """
    columns = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed}
    roles = NamedRoles(score, direction, columns, metafeatures, names)
    logged = dict[str, Logged]()  # by id: the folder of a session and its archive are one
    for part in parts_of(_sessions_below(tasks), argument="tasks", keys=()):
        task, one = _session(part.path) if part.path is not None else _of_server(part.content)
        logged[task] = one
    return of_logged([*logged.values()], roles, source="Tasks of ClearML", step="iteration")


def _sessions_below(given: Any) -> Any:
    """The sessions of a folder; anything else as it is."""
    if not isinstance(given, (str, os.PathLike)) or not str(given) or not (path := expanded(given)).is_dir():
        return given
    found = [*sorted(file.parent for file in path.rglob(TASK)), *sorted(path.rglob("offline-*.zip"))]
    if not found:
        raise DataError(
            f"tasks: there is no {TASK} and no offline-*.zip in the folder {str(path)!r} or below. {_WRITTEN}"
        )
    return found


def _session(path: Path) -> tuple[str, Logged]:
    """The id of a task that was logged offline, its settings and its scalars."""
    try:
        texts = dict(_texts(path))
        task = json.loads(texts[TASK])
        events = [event for line in texts.get(METRICS, "").splitlines() if line.strip() for event in json.loads(line)]
        settings = {
            f"{section}/{name}": _typed(parameter)
            for section, parameters in (task.get("hyperparams") or {}).items()
            for name, parameter in parameters.items()
        }
        first = {NAME: str(task.get("name") or ""), "project": str(task.get("project_name") or "")}
        scalars = dict[str, list[tuple[Any, Any]]]()
        for event in events:
            if event["type"] == SCALAR:
                single = (event["metric"], event["iter"]) == SINGLE
                name = event["variant"] if single else f"{event['metric']}/{event['variant']}"
                scalars.setdefault(str(name), []).append((int(event["iter"]), float(event["value"])))
        return str(task["id"]), (first | settings, scalars)
    except FileNotFoundError:
        raise not_found(path) from None
    except LmemtestError:  # too large
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile):
        raise DataError(f"{str(path)!r} is no session of ClearML that can be read. {_WRITTEN}") from None


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The two files of a session that say what was logged, in a folder or an archive."""
    if path.is_dir():
        yield from (
            (name, (path / name).read_text(encoding="utf-8")) for name in (TASK, METRICS) if (path / name).exists()
        )
        return
    with zipfile.ZipFile(path) as archive:
        refuse_large_archive(archive, repr(str(path)))
        yield from (
            (name, archive.read(name).decode("utf-8")) for name in (TASK, METRICS) if name in archive.namelist()
        )


def _typed(parameter: dict[str, Any]) -> Any:
    kind = KINDS.get(str(parameter.get("type")), str)
    try:
        return kind(parameter["value"])
    except ValueError:  # such as None of an optional number
        return str(parameter["value"])


def _of_server(task: Any) -> tuple[str, Logged]:
    """The same of a task of the package."""
    if not all(hasattr(task, name) for name in ("get_all_reported_scalars", "get_parameters", "get_status")):
        raise ArgumentError(f"tasks must be sessions of ClearML or tasks of its server, got {task!r:.60}. {_WRITTEN}")
    first = {NAME: task.name, "project": task.get_project_name(), STATE: task.get_status()}
    scalars = {
        f"{title}/{series}": list(zip(points["x"], points["y"], strict=True))
        for title, all_series in task.get_all_reported_scalars().items()
        for series, points in all_series.items()
    }
    singles = {name: [(0, value)] for name, value in (task.get_reported_single_values() or {}).items()}
    return str(task.id), (first | dict(task.get_parameters() or {}), scalars | singles)
