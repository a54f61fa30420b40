"""Tables of runs that experiment trackers export: Weights & Biases and MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest._validate import check_columns, check_names
from lmemtest.data.delimited import exact_numbers
from lmemtest.data.importers.imported import imported, needs_columns, numbers_in
from lmemtest.data.importers.sources import by_pattern, checked_pattern, frame_of, has_column, names_of, parts_of
from lmemtest.data.runs import REQUIRED, Runs, check_direction
from lmemtest.errors import ArgumentError, DataError
from lmemtest.words import counted, listed

__all__ = ["mlflow", "wandb"]

OPEN = ("running", "pending", "scheduled", "preempting")
DONE = ("finished", "")
REPEATED = "Name the column that tells these runs apart: seed=..., or metafeatures=[...]."


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
    """Runs of a csv export of Weights & Biases: the table of runs, or the lines of a chart.

    Parameters
    ----------
    table : dataframe, path or list
        The export of the table of runs (columns ``Name``, ``State``, configuration, summary), or of a line chart
        (``Step``, then ``<run> - <metric>`` with ``__MIN`` and ``__MAX``).
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
        One row per run, or per run and step of a chart. A run that crashed, failed or was killed has no score; runs
        that have not ended are left out.

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
    check_direction(direction)
    frame = _read(table, "Name", [algorithm, benchmark], [seed])
    pattern = checked_pattern(names)
    lines = [name for name in names_of(frame) if " - " in name and not name.endswith(("__MIN", "__MAX"))]
    notes = list[str]()
    if "State" not in frame and lines and "Name" not in frame:
        frame, score, notes = _of_chart(frame, lines, score, pattern)
        budget, algorithm = "step", "algorithm"
        benchmark, seed = (role if role in frame else None for role in ("benchmark", "seed"))
        pattern = None
    else:
        needs_columns(frame, ["Name"], shown="table", what="an export of Weights & Biases", advice=_EXPORT)
    return _of_table(
        frame,
        tool="Weights & Biases export",
        columns={"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget},
        score=score,
        direction=direction,
        metafeatures=metafeatures,
        pattern=pattern,
        name="Name",
        state="State",
        notes=notes,
    )


_EXPORT = (
    "Export the table of runs or a line chart as csv; dictionaries of wandb.Api() go through pandas.json_normalize."
)


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
        One row per run. A run that failed or was killed has no score; runs that have not ended are left out.

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
    check_direction(direction)
    columns = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget}
    prefixed = [f"{kind}.{name}" for name in columns.values() if isinstance(name, str) for kind in ("params", "tags")]
    frame = _read(table, "run_id", [algorithm, benchmark, *prefixed], [seed])
    page = "run_id" not in frame and "Run ID" in frame
    if not page:
        advice = "Give mlflow.search_runs(...), or its csv."
        needs_columns(frame, ["run_id", "status"], shown="table", what="a table of MLflow's runs", advice=advice)
    return _of_table(
        frame,
        tool="MLflow runs",
        columns={role: _prefixed(frame, name, ("params", "tags", "metrics")) for role, name in columns.items()},
        score=_prefixed(frame, score, ("metrics",)),
        direction=direction,
        metafeatures=[_prefixed(frame, name, ("params", "tags")) for name in check_names(metafeatures, "metafeatures")],
        pattern=checked_pattern(names),
        name="Name" if page else "tags.mlflow.runName",
        state="Status" if page else "status",
        notes=[],
    )


def _prefixed(frame: pd.DataFrame, name: Any, prefixes: Sequence[str]) -> Any:
    """The column that MLflow gives a name to: ``params.model`` for the parameter "model"."""
    if name in frame or not isinstance(name, str):
        return name
    return next((f"{prefix}.{name}" for prefix in prefixes if f"{prefix}.{name}" in frame), name)


def _read(table: Any, mark: str, labels: Sequence[Any], seeds: Sequence[Any]) -> pd.DataFrame:
    """One or several tables under each other."""
    known, numbered = ([name for name in names if isinstance(name, str)] for names in (labels, seeds))
    parts = parts_of(table, argument="table", keys=(), files="*.csv", is_content=has_column(mark))
    frames = [frame_of(part, argument="table", labels=known, seeds=numbered) for part in parts]
    return pd.concat(frames, ignore_index=True)


def _of_chart(
    frame: pd.DataFrame, lines: list[str], score: str | None, pattern: str | None
) -> tuple[pd.DataFrame, str, list[str]]:
    """The lines of a chart as rows, with what the names of the runs say."""
    metrics = list(dict.fromkeys(name.rpartition(" - ")[2] for name in lines))
    if score is None and len(metrics) > 1:
        raise ArgumentError(f"table shows {len(metrics)} metrics: {listed(metrics)}. Say which: score={metrics[0]!r}.")
    metric = check_columns(metrics[0] if score is None else score, metrics, argument="score")[0]
    if pattern is None:
        shown = lines[0].rpartition(" - ")[0]
        raise ArgumentError(
            f"names must say what the names of the lines are made of, such as {shown!r}: names='{{algorithm}}', or "
            "names='{algorithm}_{benchmark}_{seed}'."
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
    return pd.concat(rows, ignore_index=True), metric, notes


def _of_table(
    frame: pd.DataFrame,
    *,
    tool: str,
    columns: dict[str, str | None],
    score: str | None,
    direction: Any,
    metafeatures: Sequence[str],
    pattern: str | None,
    name: str,
    state: str,
    notes: list[str],
) -> Runs:
    """Runs of a table with a row per run, its state and its name."""
    said, available = dict[str, str](), list(frame.columns)
    if pattern is not None:
        needs_columns(frame, [name], shown="table", what="a table with names of runs", advice="Leave out names=.")
        parsed = pd.DataFrame([by_pattern(pattern, text) for text in frame[name]], index=frame.index)
        for role in parsed:
            if columns.get(role) is None:
                column = role if role not in frame else f"{role} in {name}"
                columns, said[role] = {**columns, role: column}, f"in {name}"
                frame = frame.assign(**{column: parsed[role]})
    for role, given in {"score": score, **columns}.items():
        if given is None and role in ("score", "algorithm"):
            other = ", or names='{algorithm}_{seed}' if it is in the names of the runs" if role == "algorithm" else ""
            raise ArgumentError(f"{role} must name a column{other}. Columns: {listed(available)}.")
        if given is not None:
            check_columns(given, frame.columns, argument=role)
    features = check_columns(check_names(metafeatures, "metafeatures"), available, argument="metafeatures")
    if state in frame:
        states = frame[state].fillna("").astype(str).str.strip().str.lower()
        open_ = states.isin(OPEN)
        bad = ~states.isin(DONE) & ~open_
        if open_.any():
            notes = [*notes, f"Left out: {counted(int(open_.sum()), 'run')} that had not ended."]
        if bad.any():
            why = states[bad].value_counts(sort=False)
            notes = [
                *notes,
                f"Runs that did not finish ({listed(f'{k} {n:,}' for k, n in why.items())}) have no score.",
            ]
        values = numbers_in(frame[score], name=str(score), advice="Name the column of the score: score=...")
        frame = frame.assign(**{str(score): np.where(bad, np.nan, values)})[~open_]
    for role in ("seed", "budget"):
        column = columns[role]
        if column is not None and not pd.api.types.is_numeric_dtype(frame[column].dtype):
            frame = frame.assign(**{column: exact_numbers(frame[column].astype(object))})
    keys = [*(column for column in columns.values() if column), *features]
    empty = [column for column in keys if frame[column].isna().any()]
    if empty:
        count = int(frame[empty[0]].isna().sum())
        raise DataError(
            f"{counted(count, 'run')} {'have' if count > 1 else 'has'} no value of {empty[0]!r}. Log it for all runs, "
            "or leave out the others before: table = table.dropna(subset=[...])."
        )
    return imported(
        frame,
        source=tool,
        score=str(score),
        direction=direction,
        algorithm=str(columns["algorithm"]),
        benchmark=columns["benchmark"],
        seed=columns["seed"],
        budget=columns["budget"],
        metafeatures=features,
        said=said,
        notes=notes,
        repeated=REPEATED,
        alone="Is another column the algorithm?",
    )
