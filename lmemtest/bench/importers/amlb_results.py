"""The AutoML benchmark (AMLB): results.csv as runs, a row per fold of a task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.column import direction_of
from lmemtest.bench.data.recognised import Recognised
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import check_labels, imported, numbers_in
from lmemtest.bench.importers.sources import several_files, table_of
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.validate import check_choice
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError

COLUMNS = ("task", "framework", "fold", "result", "metric")
ALL = "all"


def amlb(results: Any, *, metric: str | None = None, duplicates: str | None = None) -> Runs:
    """Runs of the AutoML benchmark's ``results.csv``: frameworks on the folds of tasks.

    Parameters
    ----------
    results : dataframe, path or list
        One or several results files, in memory or on disk.
    metric : str, optional
        The metric to keep, such as "auc" or "neg_logloss", where the file has several; "all" keeps each task in its own
        metric, as the benchmark does: normalise before comparing, ``runs.normalize("rank")``.
    duplicates : {"last"}, optional
        Of several rows for one framework, task and fold keep the last one (by ``utc`` where there is one), as after
        repeated attempts. By default they are refused.

    Returns
    -------
    Runs
        Algorithms are frameworks, benchmarks tasks, seeds folds; several time constraints are a metafeature. ``result``
        is better the higher it is: AMLB negates losses and calls them ``neg_...``. Where a file of an old version has
        a loss under its own name, that is minimised, and negated with ``metric="all"``. A failed run has a missing
        score.

    Raises
    ------
    ArgumentError
        If there are several metrics and `metric` is not given, or none is called so.
    DataError
        If columns are missing, a task changes its metric, or runs are repeated.

    Examples
    --------
    >>> table = {"framework": ["RF", "TPOT"] * 2, "task": ["kc2"] * 4, "fold": [0, 0, 1, 1], "metric": ["auc"] * 4,
    ...          "result": [0.84, 0.85, 0.81, None]}
    >>> print(amlb(table).notes[-1])
    1 of 4 rows has no finite score (TPOT 1): failed. Say what they count: runs.score_failures(...).
    """
    if duplicates is not None:
        check_choice(duplicates, "duplicates", ("last",))
    if metric is not None and not isinstance(metric, str):
        raise ArgumentError(f"{named('metric')} must be the name of a metric, or 'all', got {metric!r}.")
    table = table_of(
        results,
        argument="results",
        files="results*.csv",
        mark="framework",
        needs=COLUMNS,
        what="a results file of AMLB",
        advice="Give results.csv of the benchmark's results folder as it is.",
        labels=["framework", "task", "constraint"],
    )
    table["result"] = numbers_in(table["result"], name="result", advice="A failed run has an empty one.")
    check_labels(table, ["task", "framework", "fold"])
    table["metric"] = table["metric"].map(str, na_action="ignore")
    failed = table["result"].isna()
    table = _in_metric(table, metric)
    notes, score = [], "result"
    used = table["metric"].dropna().unique().tolist()
    losses = [name for name in used if not name.startswith("neg_") and direction_of(name) == "minimize"]
    direction = "minimize" if len(losses) == len(used) else "maximize"
    if losses and direction == "maximize":
        table[score] = np.where(table["metric"].isin(losses), -table[score], table[score])
        notes.append(f"{listed(losses)}: losses, negated here so that high scores are good on every task.")
    elif not losses:
        notes.append("High results are good: AMLB negates losses and calls them neg_...")
    if len(used) > 1:
        ranks = advice("normalize", method="rank")
        notes.append(
            f"Tasks have {len(used)} metrics ({listed(used)}), which do not compare: normalise within tasks, {ranks}."
        )
    keys = ["framework", "task", "fold", *(["constraint"] if "constraint" in table else [])]
    again = table.duplicated(keys, keep="last")
    if duplicates == "last" and again.any():
        table = table.sort_values("utc", kind="stable") if "utc" in table else table
        again = table.duplicated(keys, keep="last")
        table = table[~again].sort_index()
        notes.append(f"{int(again.sum()):,} rows were followed by another one of the same run and are left out.")
    reasons = None
    if failed.any() and "info" in table:  # such as "NoResultError: no model"
        told, error = table["info"].astype(object), r"^\s*([A-Za-z_][\w.]*)\s*(?::|$)"
        reasons = told.astype(str).str.extract(error)[0].astype(object).fillna("error").where(told.notna())
    several = "constraint" in table and table["constraint"].nunique() > 1
    return imported(
        table,
        source="AMLB results",
        score=score,
        direction=direction,
        algorithm="framework",
        benchmark="task",
        seed="fold",
        metafeatures=("constraint",) if several else (),
        ignore=("metric",),
        kinds=reasons,
        seed_shared=False,
        notes=notes,
        repeated=f"If runs were tried again, keep the last attempts: {setting('duplicates', 'last')}.",
        alone=f"Give the results of several frameworks: {several_files('amlb', 'a/results.csv', 'b/results.csv')}.",
    )


def _in_metric(table: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    """The rows in one metric, or each task in its own; a failed run without a metric has that of its task."""
    by_task = (
        table.dropna(subset="metric")
        .groupby("task", sort=False, observed=True)["metric"]
        .agg(lambda names: names.unique().tolist())
    )
    used = list(dict.fromkeys(name for names in by_task for name in names))
    if metric not in (None, ALL, *used):
        raise ArgumentError(
            f"{named('metric')} must be 'all' or one of {listed(map(repr, used))}, got {metric!r}."
            f"{suggest(str(metric), used)}"
        )
    if metric is None and len(used) > 1:
        raise ArgumentError(
            f"results has {len(used)} metrics: {listed(used)}. Say which, or keep each task in its own and normalise: "
            f"{setting('metric', used[0])}, or {setting('metric', ALL)}."
        )
    odd = by_task[by_task.map(len) > 1]
    if metric == ALL and len(odd):
        raise DataError(
            f"The task {odd.index[0]!r} has the metrics {listed(odd.iloc[0])}; a task must have one. "
            f"Give {setting('metric', odd.iloc[0][0])}."
        )
    if metric in (None, ALL):
        return table
    tasks = by_task[by_task.map(lambda names: metric in names)].index
    return table[(table["metric"] == metric) | (table["metric"].isna() & table["task"].isin(tasks))]


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    if not {"task", "framework", "fold", "result", "metric"} <= set(table):
        return None
    metrics = [str(name) for name in table["metric"].dropna().unique()]
    several = len(metrics) > 1
    return Recognised(
        code="amlb", what="results of the AutoML benchmark (AMLB)", columns=("framework", "task", "fold", "result"),
        tool="amlb", options={"metric": "all"} if several else {},
        others={"metric": tuple(metrics)} if several else {},
    )  # fmt: skip
