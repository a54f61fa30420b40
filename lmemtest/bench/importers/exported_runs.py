"""Tables of runs that experiment trackers export: Weights & Biases and MLflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import pandas as pd

from lmemtest.bench.data.recognised import Recognised, metrics_among, name_runs, score_arguments, tracked_arguments
from lmemtest.bench.data.requirements import REQUIRED
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import one_of
from lmemtest.bench.importers.sources import (
    KEYS,
    by_pattern,
    checked_pattern,
    frame_of,
    has_column,
    names_of,
    needs_columns,
    one_type,
    parts_of,
)
from lmemtest.bench.importers.tracked_runs import ALL_ROLES, NAME, STATE, NamedRoles, flat, of_table
from lmemtest.core.caller import named, setting
from lmemtest.core.validate import check_names
from lmemtest.core.words import counted, listed
from lmemtest.errors import ArgumentError, DataError


def wandb(
    table: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    algorithm: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    names: str | None = None,
) -> Runs:
    """Runs of Weights & Biases: of its Api, of the exported table of runs, or of the lines of a chart.

    Parameters
    ----------
    table : runs, dataframe, path or list
        ``wandb.Api().runs("team/project")``, or dataframes of its ``name``, ``config`` and ``summary``; the export of
        the table of runs (columns ``Name``, ``State``, configuration, summary), or of a line chart (``Step``, then
        ``<run> - <metric>`` with ``__MIN`` and ``__MAX``). Nested settings are columns as ``optimizer.lr``.
    score : str, optional
        The column of the score; of a chart the metric, if it shows several.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good; an export does not say it. Required.
    algorithm, benchmark, seed, budget : str, optional
        Columns of the table with these roles. What no column holds, `names` must say.
    metafeatures : sequence of str
        Further columns that describe the circumstances of a run.
    names : str, optional
        What the names of the runs are made of: ``"{algorithm}_{benchmark}_{seed}"``.

    Returns
    -------
    Runs
        One row per run, or per run and step of a chart. A run that crashed, failed or was killed has no score, and
        its state is its kind of failure; runs that have not ended are left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If the direction, the score or the algorithm is not given, or a column does not exist.
    DataError
        If the table is no such export, or runs are repeated.

    Examples
    --------
    >>> table = {"Name": ["run-1", "run-2", "run-3", "run-4"], "State": ["finished"] * 3 + ["crashed"],
    ...          "model": ["A", "B", "A", "B"], "seed": [1, 1, 2, 2], "val_acc": [0.8, 0.7, 0.9, 0.6]}
    >>> runs = wandb(table, score="val_acc", direction="maximize", algorithm="model", seed="seed")
    >>> runs.to_frame()["val_acc"].tolist()
    [0.8, 0.7, 0.9, nan]
    """
    columns = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget}
    roles = NamedRoles(score, direction, columns, metafeatures, names)
    frame = _read(table, "Name", roles)
    lines = [name for name in names_of(frame) if " - " in name and not name.endswith(("__MIN", "__MAX"))]
    if "Name" not in frame and "State" not in frame and lines:
        return _of_chart(frame, lines, roles)
    needs_columns(frame, ["Name"], origin="table", what="an export of Weights & Biases", advice=_EXPORT)
    return of_table(frame, roles, source=_WANDB, name=NAME, state=STATE)


_EXPORT = "Give wandb.Api().runs('team/project'), or export the table of runs or a line chart as csv."
_WANDB = "Runs of Weights & Biases"
_SHOWN = ("name", "config", "summary")  # of a run of the Api, or the columns of a dataframe of them


def mlflow(
    table: Any,
    *,
    score: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    algorithm: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    names: str | None = None,
) -> Runs:
    """Runs of MLflow: what ``mlflow.search_runs()`` returns, or a csv of it.

    Parameters
    ----------
    table : dataframe, path or list
        ``mlflow.search_runs(...)``, ``mlflow experiments csv``, or the csv that its page of runs exports.
    score : str
        The metric: "val_acc" for the column ``metrics.val_acc``.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good; MLflow does not say it. Required.
    algorithm, benchmark, seed, budget : str, optional
        Parameters, tags or columns with these roles: "model" for ``params.model`` or ``tags.model``. What none holds,
        `names` must say.
    metafeatures : sequence of str
        Further parameters that describe the circumstances of a run.
    names : str, optional
        What the names of the runs are made of: ``"{algorithm}_{benchmark}_{seed}"``.

    Returns
    -------
    Runs
        One row per run. A run that failed or was killed has no score, and its status is its kind of failure; runs that
        have not ended are left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If the direction, the score or the algorithm is not given, or a column does not exist.
    DataError
        If the table is no such export, or runs are repeated.

    Examples
    --------
    >>> table = {"run_id": ["1", "2", "3", "4"], "status": ["FINISHED"] * 3 + ["FAILED"],
    ...          "params.model": ["A", "B"] * 2, "params.seed": ["1", "1", "2", "2"],
    ...          "metrics.acc": [0.8, 0.7, 0.9, None]}
    >>> runs = mlflow(table, score="acc", direction="maximize", algorithm="model", seed="seed")
    >>> runs.score, runs.seed, runs.to_frame()["metrics.acc"].tolist()
    ('metrics.acc', 'params.seed', [0.8, 0.7, 0.9, nan])
    """
    columns = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget}
    roles = NamedRoles(score, direction, columns, metafeatures, names)
    frame = _read(table, "run_id", roles)
    page = "run_id" not in frame and "Run ID" in frame
    if not page:
        advice = "Give mlflow.search_runs(...), or its csv."
        needs_columns(frame, ["run_id", "status"], origin="table", what="a table of MLflow's runs", advice=advice)
    name, state = ("Name", "Status") if page else ("tags.mlflow.runName", "status")
    return of_table(frame, _prefixed(roles, frame), source="Runs of MLflow", name=name, state=state)


# ------------------------------------------------------------------------------------------------- how they are read


def _prefixed(roles: NamedRoles, frame: pd.DataFrame) -> NamedRoles:
    """The columns that MLflow gives names to: ``params.model`` for the parameter "model"."""

    def column(name: str | None, *prefixes: str) -> Any:
        if name is None or name in frame:
            return name
        return next((f"{prefix}.{name}" for prefix in prefixes if f"{prefix}.{name}" in frame), name)

    return replace(
        roles,
        score=column(roles.score, "metrics"),
        columns={role: column(name, "params", "tags", "metrics") for role, name in roles.columns.items()},
        metafeatures=[column(name, "params", "tags") for name in check_names(roles.metafeatures, "metafeatures")],
    )


def _read(table: Any, mark: str, roles: NamedRoles) -> pd.DataFrame:
    """One or several tables under each other; labels remain texts, and seeds that are no numbers."""
    known = {role: [name] if isinstance(name, str) else [] for role, name in roles.columns.items()}
    plain = [*known["algorithm"], *known["benchmark"]]
    labels = [*plain, *(f"{kind}.{name}" for name in plain for kind in ("params", "tags"))]
    given = list(table) if _is_lazy_list(table) else table
    parts = parts_of(given, argument="table", keys=(), files="*.csv", is_content=has_column(mark))
    rows = [_row(_shown(part.content)) for part in parts if _is_run(part.content)]
    tables = [
        _unfolded(frame_of(part, argument="table", labels=labels, seeds=known["seed"]))
        for part in parts
        if not _is_run(part.content)
    ]
    return pd.concat([*([pd.DataFrame(rows)] if rows else []), *tables], ignore_index=True)


def _is_lazy_list(thing: Any) -> bool:
    """Whether this is a list that is fetched as it is read, such as the runs of an Api."""
    is_table = any(hasattr(thing, name) for name in ("columns", "__arrow_c_stream__", "__array__"))
    return isinstance(thing, Iterable) and not is_table and not isinstance(thing, (str, bytes, PathLike, Mapping))


def _is_run(thing: Any) -> bool:
    """Whether this shows the name, the settings and the metrics of a run of Weights & Biases."""
    return not hasattr(thing, "columns") and all(hasattr(thing, name) for name in _SHOWN)


def _shown(run: Any) -> dict[str, Any]:
    return {name: getattr(run, name) for name in (*_SHOWN, "state") if hasattr(run, name)}


def _unfolded(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose cells are the dictionaries of runs, as a table of their values."""
    if "Name" in frame or not set(_SHOWN) <= set(frame.columns):
        return frame
    return pd.DataFrame([_row(row) for row in frame.to_dict("records")])


def _row(shown: Mapping[Any, Any]) -> dict[str, Any]:
    """The settings and metrics of a run; a metric that is called as a setting is ``summary.<name>``."""
    if not all(hasattr(type(shown[name]), "items") for name in _SHOWN[1:]):
        raise DataError(
            f"The {listed(_SHOWN[1:])} of each run must be dictionaries, which a csv file of them does not hold. "
            f"{_EXPORT}"
        )
    settings, metrics = flat(shown["config"]), flat(shown["summary"])
    found = {"Name": shown["name"], **({"State": shown["state"]} if "state" in shown else {}), **settings}
    return found | {f"summary.{name}" if name in found else name: value for name, value in metrics.items()}


def _of_chart(frame: pd.DataFrame, lines: list[str], roles: NamedRoles) -> Runs:
    """The lines of a chart, with what the names of the runs say."""
    given = next((role for role, column in roles.columns.items() if column is not None), None)
    if given is not None:
        raise ArgumentError(
            f"{named(given)} must be left out, because a line chart has no column for it: the names of its lines say "
            f"it, {setting('names', ALL_ROLES)}, and the budget is the step."
        )
    metrics = list(dict.fromkeys(name.rpartition(" - ")[2] for name in lines))
    metric = one_of(metrics, roles.score, argument="score", what="metrics", origin="table")
    pattern = checked_pattern(roles.names)
    if pattern is None:
        raise ArgumentError(
            f"{named('names')} must say what the names of the lines are made of, such as "
            f"{lines[0].rpartition(' - ')[0]!r}: {setting('names', '{algorithm}')}, or {setting('names', ALL_ROLES)}."
        )
    step = str(frame.columns[0])
    rows, averaged = [], 0
    for line in lines:
        run, _, shown = line.rpartition(" - ")
        if shown != metric:
            continue
        values = frame[[step, line]].dropna().set_axis(["step", metric], axis=1)
        rows.append(values.assign(**by_pattern(pattern, run)))
        low, high = (frame.get(f"{line}__{end}") for end in ("MIN", "MAX"))
        averaged += int(low is not None and high is not None and bool((high > low).any()))
    notes = [f"The lines of a chart are runs, at the steps where they have a value ({step})."]
    if averaged:
        notes.append(
            f"{counted(averaged, 'line')} of {len(rows):,} are means of several runs, or of several steps: their "
            "lowest and highest values differ. What varies between these runs is lost; ungroup the chart to keep them."
        )
    columns = {role: role if f"{{{role}}}" in pattern else None for role in KEYS}
    roles = replace(roles, score=metric, columns={**columns, "budget": "step"}, names=None)
    table = pd.concat(rows, ignore_index=True)
    if "seed" in table:
        table["seed"] = one_type(table["seed"].tolist())
    return of_table(table, roles, source=_WANDB, name=NAME, state=STATE, notes=tuple(notes))


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    """What a table is: runs of MLflow or of Weights & Biases, or a line chart of these."""
    return _of_mlflow(table) or _of_wandb_chart(table) or _of_wandb(table)


def _of_mlflow(table: Any) -> Recognised | None:
    metrics = [name for name in table if name.startswith("metrics.")]
    if {"run_id", "status"} <= set(table) and (metrics or any(name.startswith("params.") for name in table)):
        plain = {name.partition(".")[2]: name for name in table if name.startswith("params.")}
        reason, scores = ("run_id", "status", *metrics), [name.partition(".")[2] for name in metrics]
    elif {"Run ID", "Status", "Start Time"} <= set(table):
        plain = {name: name for name in table if name not in _OF_PAGE}
        reason, scores = ("Run ID", "Status", "Start Time"), metrics_among(table, list(plain))
    else:
        return None
    runs = "Name" if "Name" in table else "tags.mlflow.runName"
    return Recognised(
        code="mlflow", what="an export of MLflow", columns=reason, tool="mlflow",
        **tracked_arguments(table, plain, scores, runs),
    )  # fmt: skip


_OF_PAGE = ("Start Time", "Duration", "Run ID", "Name", "Source Type", "Source Name", "User", "Status")
_OF_WANDB = ("State", "Notes", "User", "Tags", "Created", "Runtime", "Sweep")


def _of_wandb(table: Any) -> Recognised | None:
    own = [name for name in _OF_WANDB if name in table]
    if "Name" not in table or len(own) < 3:
        return None
    plain = {n: n for n in table if n not in (*_OF_WANDB, "Name", "ID", "Group", "Job Type") and not n.startswith("_")}
    return Recognised(
        code="wandb", what="a table of runs exported from Weights & Biases", columns=("Name", *own), tool="wandb",
        **tracked_arguments(table, plain, metrics_among(table, list(plain)), "Name"),
    )  # fmt: skip


def _of_wandb_chart(table: Any) -> Recognised | None:
    lines = [name for name in table if " - " in name and f"{name}__MIN" in table and f"{name}__MAX" in table]
    if not lines:
        return None
    metrics = list(dict.fromkeys(name.rpartition(" - ")[2] for name in lines))
    arguments = score_arguments(metrics)
    score = arguments["options"].get("score", metrics[0])
    if len(metrics) == 1:  # the importer knows which one
        arguments["options"].pop("score", None)
    name_runs(arguments, [name.rpartition(" - ")[0] for name in lines if name.endswith(f" - {score}")])
    return Recognised(
        code="wandb_chart", what="a line chart exported from Weights & Biases",
        columns=(lines[0], f"{lines[0]}__MIN", f"{lines[0]}__MAX"), tool="wandb", **arguments,
    )  # fmt: skip
