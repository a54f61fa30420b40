"""One answer from every kind of table, and what a query that fails says."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from levels import first
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.checks.subject import Subject, overview
from lmemtest.bench.data import study
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.core import frames
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.cells import compress

DUCK = duckdb.connect()  # a relation lives no longer than its connection
ROLES = {
    "score": "loss",
    "direction": "minimize",
    "algorithm": "tool",
    "benchmark": "task",
    "seed": "rep",
    "budget": "epoch",
}
FORMULA = "loss ~ tool + (1 | task) + (1 | task:rep)"


def of_dask(frame: pd.DataFrame) -> Any:
    dask, dataframe = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    dask.config.set(scheduler="synchronous")
    return dataframe.from_pandas(frame, npartitions=3, sort=False)


def of_ibis(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("ibis").memtable(pa.Table.from_pandas(frame, preserve_index=False))


def of_spark(frame: pd.DataFrame) -> Any:
    sql = pytest.importorskip("pyspark.sql")
    build = sql.SparkSession.builder.master(os.environ["SPARK_MASTER"])
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "4", "executor.memory": "1g"}
    for name, value in settings.items():
        build = build.config(f"spark.{name}", value)
    return build.getOrCreate().createDataFrame(frame)


def lazy_polars(frame: pd.DataFrame) -> Any:
    return pl.from_pandas(frame).lazy()


KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "lazy polars": lazy_polars,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "duckdb": lambda frame: DUCK.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
    "dask": of_dask,
    "ibis": of_ibis,
}
if os.environ.get("SPARK_MASTER"):  # make test-spark
    KINDS = {"spark": of_spark}
kinds = pytest.mark.parametrize("kind", KINDS)


def table(offset: float = 0.0, noise: float = 1.0) -> pd.DataFrame:
    """3 tools x 4 tasks x 3 seeds x 4 budgets, shuffled."""
    rng = np.random.default_rng(3)
    axes = pd.MultiIndex.from_product(
        [["b", "a", "c"], [f"t{i}" for i in (10, 9, 1, 2)], range(3), [1, 3, 9, 27]],
        names=["tool", "task", "rep", "epoch"],
    )
    frame = axes.to_frame(index=False)
    task = frame["task"].str[1:].astype(float)
    seed = rng.normal(size=12)[frame.groupby(["task", "rep"]).ngroup()]
    effect = frame["tool"].map({"a": 0.0, "b": 0.4, "c": 1.0}) + 0.1 * task + seed + 1 / frame["epoch"]
    frame["loss"] = offset + noise * (effect + rng.normal(size=len(frame)))
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


@pytest.mark.daily(3)
@kinds
@pytest.mark.parametrize(("offset", "noise"), first([(1e6, 1e-3), (0.0, 1.0), (-0.97, 1e-5)]))
def test_cells_are_exact_whatever_the_scores_have_in_common(kind, offset, noise):
    frame = table(offset, noise)
    found = compress(KINDS[kind](frame), ["task", "tool"], score="loss")
    assert found.frame["task"].tolist() == [t for t in ("t1", "t2", "t9", "t10") for _ in range(3)]
    for (task, tool), n, mean, ss in zip(
        found.frame.itertuples(index=False), found.n, found.mean, found.ss, strict=True
    ):
        y = [Fraction(v) for v in frame.loc[(frame["task"] == task) & (frame["tool"] == tool), "loss"]]
        exact = sum(y) / len(y)
        assert n == len(y)
        assert mean == pytest.approx(float(exact), rel=1e-13)
        assert ss == pytest.approx(float(sum((v - exact) ** 2 for v in y)), rel=1e-10)


@pytest.mark.daily(2)
@kinds
def test_runs_and_their_fit_are_those_of_pandas(kind):
    frame = table()
    want, found = (lt.Runs(data, **ROLES) for data in (frame, KINDS[kind](frame)))
    assert (found.n_rows, found.algorithms) == (want.n_rows, want.algorithms)
    for column in ("task", "rep", "epoch"):
        assert found.levels(column) == want.levels(column)
    fits = [lt.fit_lmm(FORMULA, runs) for runs in (want, found)]
    pairs = [fit.emmeans("tool").pairs().to_frame() for fit in fits]
    pd.testing.assert_frame_equal(*pairs, rtol=1e-10, check_dtype=False)
    assert fits[1].llf == pytest.approx(fits[0].llf, rel=1e-10)


@pytest.mark.daily(2)
@kinds
def test_filtered_runs_are_those_of_pandas(kind):
    chosen = {"task": ["t1", "t9"], "epoch": [3, 27]}
    frames = [lt.Runs(data, **ROLES).filter(**chosen) for data in (table(), KINDS[kind](table()))]
    tables = [compress(runs, ["tool", "epoch"], score="loss").to_frame() for runs in frames]
    pd.testing.assert_frame_equal(*tables, rtol=1e-12, check_dtype=False)
    assert frames[1].n_rows == frames[0].n_rows == 3 * 2 * 3 * 2


@pytest.mark.level(2)
@kinds
def test_an_analysis_says_the_same(kind):
    want, found = (lt.analyze(lt.Runs(data, **ROLES)) for data in (table(), KINDS[kind](table())))
    assert found.summary() == want.summary()


@pytest.mark.daily(2)
@kinds
def test_a_missing_name_and_a_bad_score_are_counted_in_rows(kind):
    lacking = table().assign(task=lambda d: d["task"].where(d["task"] != "t2"))
    refuses(DataError, r"The column 'task' has 36 missing values", lt.Runs, KINDS[kind](lacking), **ROLES)
    bad = table()
    bad.loc[bad["task"] == "t2", "loss"] = np.inf
    with pytest.raises(DataError, match=r"36 of 144 rows have a score that is missing or infinite"):
        lt.fit_lmm(FORMULA, KINDS[kind](bad))


# ------------------------------------------------------------------ what cannot be done


@pytest.mark.skipif("dask" not in KINDS, reason="the other backends have running minima")
def test_an_order_within_groups_that_dask_lacks_has_another_way():
    runs = lt.Runs(of_dask(table()), **ROLES)
    for ask in (runs.best_so_far, lambda: runs.normalize("rank")):
        refuses(DataError, r"dask tables do not offer\. Do it before, .* polars, duckdb, pyspark, or", ask)


def test_columns_of_algorithms_are_read_from_duckdb_by_whatever_connection():
    rows = np.random.default_rng(2).integers(2, size=(20, 2))
    wide = pd.DataFrame(rows, columns=["A", "B"]).assign(task=[f"t{i}" for i in range(20)])
    theirs = DUCK.from_arrow(pa.Table.from_pandas(wide, preserve_index=False))
    means = [lt.fit_lmm("score ~ algorithm + (1 | task)", lt.Runs.from_wide(frame, direction="maximize")).params
             for frame in (wide, theirs)]  # fmt: skip
    pd.testing.assert_series_equal(*means)
    found = [lt.evaluate(frame, model=["A", "B"], item="task").to_frame() for frame in (wide, theirs)]
    pd.testing.assert_frame_equal(*found)


def test_more_cells_than_memory_holds_are_refused_with_a_way_to_fewer(monkeypatch):
    monkeypatch.setattr(frames, "MOST_CELLS", 100)
    monkeypatch.setattr(study, "MOST_CELLS", 100)
    runs = lt.Runs(pl.from_pandas(table()).lazy(), **ROLES)  # 36 runs, 144 scores
    assert lt.fit_lmm(FORMULA, runs).nobs == 144
    with pytest.raises(DataError, match=r"'task', 'rep', 'tool', 'epoch' have more than 100 combinations.*filter"):
        runs.study.groups(runs.study.columns)
    assert len(runs.study.groups(("tool", "epoch")).n) == 12


def test_a_function_of_the_scores_of_a_large_lazy_table_has_another_way(monkeypatch):
    frame = table(offset=10.0)
    lazy = pl.from_pandas(frame).lazy()
    formula = FORMULA.replace("loss", "log(loss)", 1)
    logged = lt.Runs(lazy, **ROLES).normalize("log")
    want = lt.fit_lmm(formula, frame)
    assert lt.fit_lmm(formula, lazy).llf == pytest.approx(want.llf, rel=1e-10)
    assert lt.fit_lmm(FORMULA.replace("loss", "loss_log"), logged).llf == pytest.approx(want.llf, rel=1e-10)
    monkeypatch.setattr(frames, "MOST_CELLS", 100)
    with pytest.raises(DataError, match=r"every single 'loss', and the 144 rows .* runs\.normalize\('log'\)\.$"):
        lt.fit_lmm(formula, lazy)


class Stopped(Exception):
    """What a backend raises."""


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("INTERRUPT Error: Interrupted!", "It was interrupted and nothing of it was kept; ask again."),
        ("IO Error: No space left on device", "The disk for intermediate results is full"),
        ("Attempted to run task on 4 different workers, all of which were killed", "Give the backend more memory"),
        ("", "Does the table itself answer"),
    ],
)
def test_a_query_that_stops_says_what_to_do(text, advice, monkeypatch):
    def stop(*_: Any, **__: Any) -> None:
        raise Stopped(text)

    monkeypatch.setattr(nw.LazyFrame, "collect", stop)
    with pytest.raises(DataError, match=rf"^The query of the polars table failed with Stopped: .*{advice}") as error:
        lt.Runs(pl.from_pandas(table()).lazy(), **ROLES)
    assert isinstance(error.value.__cause__, Stopped)


def test_files_that_went_away_and_a_full_disk_are_told(tmp_path):
    path = tmp_path / "runs.parquet"
    table().to_parquet(path)
    runs = lt.Runs(pl.scan_parquet(path), **ROLES)
    path.unlink()
    refuses(DataError, r"Are the files still where they were when the table was opened\?", lt.recommend, runs)
    narrow = duckdb.connect()
    narrow.execute("set memory_limit='48MB'; set threads=1; set max_temp_directory_size='0KB'")
    many = narrow.sql("select i % 3 as tool, i as task, random() as loss from range(3_000_000) t(i)")
    with pytest.raises(
        DataError, match=r"^The query of the duckdb table failed with OutOfMemoryException: .* free some"
    ):
        lt.Runs(many, score="loss", direction="minimize", algorithm="tool", benchmark="task")


def test_cells_of_several_keys_are_exact_on_a_dask_table_of_many_files():
    dask, dataframe = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    frames = [pd.DataFrame({"tool": list("ABAB"), "task": list("xxyy"), "loss": 1e6 + 1e-3 * np.arange(i, i + 4)})
              for i in range(3)]  # fmt: skip
    want = lt.Runs(pd.concat(frames), score="loss", direction="minimize", algorithm="tool", benchmark="task")
    table = dataframe.from_map(lambda i: frames[i], range(3), meta=frames[0].head(0))
    with dask.config.set(scheduler="synchronous"):
        got = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
        found = got.study.cells(["tool", "task"]).to_frame()
    expected = want.study.cells(["tool", "task"]).to_frame()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-10)


@pytest.mark.parametrize("kind", ["lazy polars", "pandas"])
def test_what_needs_single_scores_of_a_large_table_sees_a_few_budgets_and_says_so(kind, monkeypatch):
    monkeypatch.setattr(study, "MOST_CELLS", 100)
    monkeypatch.setattr(study, "MOST_POINTS", 72)
    frame = table()
    of_kind = KINDS.get(kind, lambda frame: frame)
    runs = lt.Runs(of_kind(frame), **ROLES)  # 36 runs, 144 scores
    few = runs.study.detailed
    assert (few.names("budget"), int(few.points.n.sum())) == ((1, 27), 72)
    note = (
        "All scores of these 144 rows are too many to hold, so what looks at single scores saw those at 2 of 4 values "
        "of 'epoch': 1, 27."
    )
    size = "72 rows: 3 algorithms, 4 benchmarks, 3 seeds, 2 budgets; complete and balanced."
    assert overview(Subject(runs=runs, alpha=0.05, form="auto", rng=None, modelled=None)) == f"{size} {note}"
    scores, notes = runs.study.one_score_per_run()
    ends = frame[frame["epoch"].isin([1, 27])].groupby(["task", "tool", "rep"])["loss"].mean()
    np.testing.assert_allclose(np.sort(scores["score"]), np.sort(ends), rtol=1e-13)
    assert notes == ("Each run counts once, with its mean over 2 values of epoch.", note)
    assert runs.study.scored_alike
    lacking = frame[(frame["epoch"] != 3) | (frame["tool"] != "a")]  # not seen at 1 and 27, but in the number of rows
    assert not lt.Runs(of_kind(lacking), **ROLES).study.scored_alike


def test_the_check_of_the_budget_sees_the_same_few_budgets(monkeypatch):
    frame = table()
    few = lt.Runs(frame[frame["epoch"].isin([1, 27])], **ROLES)
    want = lt.check(few, checks=["budget"])["budget"]
    monkeypatch.setattr(study, "MOST_POINTS", 72)
    for module in (study, frames):
        monkeypatch.setattr(module, "MOST_CELLS", 100)
    found = lt.check(lt.Runs(lazy_polars(frame), **ROLES), checks=["budget"])["budget"]
    assert not found.skipped
    assert (found.text, found.findings) == (want.text, want.findings)


def test_what_tells_the_rows_of_a_run_apart_is_seen_at_a_few_budgets_too(monkeypatch):
    formula = "loss ~ tool + (1 | task) + (1 | task:rep:tool)"

    def refused_lazily() -> str:
        runs = lt.Runs(lazy_polars(table()), **ROLES)
        with pytest.raises(ArgumentError, match=r"The rows of a run differ in epoch") as error:
            VarianceComponents.of(lt.fit_lmm(formula, runs))
        return str(error.value)

    want = refused_lazily()
    monkeypatch.setattr(study, "MOST_POINTS", 72)
    for module in (study, frames):
        monkeypatch.setattr(module, "MOST_CELLS", 100)
    assert refused_lazily() == want
