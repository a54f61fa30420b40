"""A lazy table that changes, or vanishes, between queries is noticed and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.core import frames

duckdb = pytest.importorskip("duckdb")

ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed",
    "budget": "budget",
}  # fmt: skip
ADVICE = "Answers from before and after would mix two tables. Make new runs of it, or of a copy in memory."


def rows() -> pd.DataFrame:
    product = [list("ABC"), list("pqrs"), range(2), [1, 2]]
    table = pd.MultiIndex.from_product(product, names=["tool", "task", "seed", "budget"]).to_frame(index=False)
    return table.assign(loss=np.sin(np.arange(len(table)) ** 2), host="x")


@pytest.fixture
def connection() -> Any:
    connection = duckdb.connect()
    connection.register("given", rows())
    connection.sql("create table runs as select * from given")
    return connection


def runs_of(connection: Any) -> lt.Runs:
    return lt.Runs(connection.sql("select * from runs"), **ROLES)


QUESTIONS = {
    "rank": lambda runs: lt.rank(runs.at_budgets([2]), n_draws=100, rng=1),
    "fit": lambda runs: lt.fit_lmm("loss ~ tool + budget + (1 | task)", runs),
    "fit of another column": lambda runs: lt.fit_lmm("loss ~ tool + (1 | task) + (1 | host:seed)", runs),
    "table": lambda runs: runs.to_frame(),
    "column": lambda runs: runs["tool"],
}


CHANGES = {
    "delete from runs where task = 'p' and tool = 'A' and seed = 1": "it had 48 rows and has 46 now",
    "update runs set tool = 'D' where tool = 'C'": "'tool' had no D",
}
ASKED = [(change, name) for change in CHANGES for name in QUESTIONS if ("update" in change, name) != (True, "rank")]


@pytest.mark.daily(4)
@pytest.mark.parametrize(("change", "question"), ASKED)
def test_other_rows_or_levels_are_noticed_at_the_next_query(connection: Any, change: str, question: str) -> None:
    runs = runs_of(connection)
    connection.sql(change)
    assert refusal(lambda: QUESTIONS[question](runs), lt.errors.DataError) == (
        f"The duckdb table has changed since these runs were made: {CHANGES[change]}. {ADVICE}"
    )


def test_a_table_that_stays_answers_as_in_memory(connection: Any) -> None:
    runs, memory = runs_of(connection), lt.Runs(rows(), **ROLES)
    for question in QUESTIONS.values():
        assert str(question(runs)).splitlines()[2:4] == str(question(memory)).splitlines()[2:4]


def test_a_file_that_vanished_is_said_when_runs_are_made(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    rows().to_parquet(path)
    table = pl.scan_parquet(path)
    path.unlink()
    with pytest.raises(lt.errors.DataError, match=r"^The query of the polars table failed with FileNotFoundError: .*"):
        lt.Runs(table, **ROLES)


@pytest.mark.parametrize(
    ("vanish", "words"),
    [
        (lambda connection: connection.sql("drop table runs"), "CatalogException: .* Was it dropped or renamed after"),
        (lambda connection: connection.close(), "ConnectionException: .* Open the connection again, and make "),
    ],
)
def test_what_was_dropped_or_closed_is_said_when_runs_are_made(connection: Any, vanish: Any, words: str) -> None:
    table = connection.sql("select * from runs")
    vanish(connection)
    refuses(lt.errors.DataError, f"^The query of the duckdb table failed with {words}", lt.Runs, table, **ROLES)


@pytest.mark.parametrize(
    "ask", [lambda t: frames.cell_sums(t, ["task"], "loss"), lambda t: frames.distinct_rows(t, ["task"])]
)
def test_what_a_backend_raises_before_it_is_asked_is_said_too(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB 1.3 looks a table up when columns of it are chosen."""

    class CatalogException(Exception):
        pass

    def select(*_: Any, **__: Any) -> None:
        raise CatalogException("Catalog Error: Table with name runs does not exist!")

    table = nw.from_native(pl.from_pandas(rows()).lazy())
    monkeypatch.setattr(nw.LazyFrame, "select", select)
    message = r"^The query of the polars table failed with CatalogException: .* Was it dropped or renamed after it was "
    refuses(lt.errors.DataError, message, ask, table)
