"""CARP-S: logs of trials as runs over the number of trials."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lmemtest.bench.data.recognised import Recognised
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import best_of_trials, imported, is_nested, numbers_in
from lmemtest.bench.importers.sources import several_files, table_of
from lmemtest.core.validate import check_column, check_flag
from lmemtest.core.words import listed
from lmemtest.errors import DataError

COLUMNS = ("benchmark_id", "task_id", "optimizer_id", "seed", "n_trials")
GATHER = "Gather the logs of the runs first: python -m carps.analysis.gather_data <rundir>, which writes logs.parquet."


def carps(logs: Any, *, metric: str = "trial_value__cost", best_so_far: bool = True) -> Runs:
    """Runs of CARP-S logs: a row per trial, costs are minimised.

    Parameters
    ----------
    logs : dataframe, path or list
        The gathered logs (``logs.parquet``), in memory or in one or several files or folders.
    metric : str, default "trial_value__cost"
        The column of the cost.
    best_so_far : bool, default True
        Whether the score is the lowest cost up to each number of trials (`Runs.best_so_far`), or that of the trial.

    Returns
    -------
    Runs
        Benchmarks are tasks (``task_id``), families suites (``benchmark_id``), algorithms optimizers
        (``optimizer_id``), the budget is ``n_trials``.

    Raises
    ------
    UnknownColumnError
        If `metric` is not a column.
    DataError
        If columns of CARP-S are missing, or costs are vectors (several objectives).

    Examples
    --------
    >>> logs = {"benchmark_id": ["YAHPO"] * 4, "task_id": ["t"] * 4, "optimizer_id": ["SMAC", "SMAC", "RS", "RS"],
    ...         "seed": [1] * 4, "n_trials": [1, 2, 1, 2], "trial_value__cost": [0.5, 0.6, 0.7, 0.4]}
    >>> carps(logs).to_frame()["trial_value__cost_best_so_far"].tolist()
    [0.5, 0.5, 0.7, 0.4]
    """
    best_so_far = check_flag(best_so_far, "best_so_far")
    table = table_of(
        logs,
        argument="logs",
        files="logs.parquet",
        mark="task_id",
        needs=COLUMNS,
        what="a table of CARP-S logs",
        advice=GATHER,
        labels=COLUMNS[:3],
        seeds=["seed"],
    )
    check_column(metric, table.columns, argument="metric")
    costs = table[metric] if not pd.api.types.is_numeric_dtype(table[metric]) else table[metric][:0]
    vectors = costs.astype(object).map(lambda cost: is_nested(cost) or str(cost).lstrip().startswith(("[", "{", "(")))
    if vectors.any():
        tasks = table.loc[vectors[vectors].index, "task_id"].unique()
        raise DataError(
            f"{metric!r} holds costs of several objectives on {len(tasks):,} tasks ({listed(tasks, most=3)}). Leave "
            "these tasks out, or make one number of the objectives (a hypervolume) in a column and name it: metric=..."
        )
    table[metric] = numbers_in(table[metric], name=metric, advice="Name the column of the cost: metric=...")
    notes = []
    kinds = table["task_type"].dropna().unique().tolist() if "task_type" in table else []
    if len(kinds) > 1:
        notes.append(
            f"Tasks are of {len(kinds)} types ({listed(kinds)}), whose numbers of trials do not compare: a trial of "
            "multi-fidelity may cost less than one."
        )
    runs = imported(
        table,
        source="CARP-S logs",
        score=metric,
        direction="minimize",
        algorithm="optimizer_id",
        benchmark="task_id",
        seed="seed",
        budget="n_trials",
        family="benchmark_id",
        trials=True,
        repeated="Are logs given twice, or did a run start again with its seed? Keep one row of each trial.",
        notes=[*notes, "Costs are minimised, as always in CARP-S."],
        alone=f"Give the logs of several optimizers: {several_files('carps', 'a.parquet', 'b.parquet')}.",
    )
    return best_of_trials(runs) if best_so_far else runs


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    if not set(COLUMNS) <= set(table):
        return None
    return Recognised(code="carps", what="logs of CARP-S", columns=COLUMNS, tool="carps")
