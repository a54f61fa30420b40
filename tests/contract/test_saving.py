"""Every result of a public call is the same after pickle, in another process, and after copies."""

from __future__ import annotations

import copy
import pickle
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lmemtest as lt
from lmemtest.core.result import Result

MOST_BYTES = 1_000_000  # of a result of the small tables here
READ = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    results = pickle.load(file)
for name, result in results.items():
    print(name, result)
"""


def texts(results: dict[str, Any]) -> str:
    return "".join(f"{name} {result}\n" for name, result in results.items())


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    good = runpy.run_path(str(Path(__file__).with_name("test_bad_arguments.py")))
    calls = {**good["calls"](), **good["methods"]()}
    found = {name: function(**arguments) for name, (function, arguments) in calls.items()}
    means = found["LmmFit.emmeans"]
    found |= {"joint": means.joint(), "alone": means.alone().pairs(), "model": means.pairs(vcov="model")}
    found["robust"] = found["LmmFit.cluster_robust"].fit.emmeans("tool", vcov=found["LmmFit.cluster_robust"])
    return found


@pytest.mark.level(2)
def test_results_read_the_same_in_another_process(results: dict[str, Any], tmp_path: Path) -> None:
    saved = tmp_path / "results.pickle"
    with saved.open("wb") as file:
        pickle.dump(results, file)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(saved)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout == texts(results)


@pytest.mark.level(2)
def test_results_take_no_more_than_they_hold(results: dict[str, Any]) -> None:
    sizes = {name: len(pickle.dumps(result)) for name, result in results.items()}
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}


def test_results_print_their_summary_and_are_tables_in_a_notebook(results: dict[str, Any]) -> None:
    shown = {name: result for name, result in results.items() if isinstance(result, Result)}
    assert len(shown) > 60
    for name, result in shown.items():
        assert repr(result) == result.summary(), name
        assert "<table" in result._repr_html_(), name


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_results_read_the_same(results: dict[str, Any], copied: Any) -> None:
    copies = {name: copied(result) for name, result in results.items()}
    assert texts(copies) == texts(results)
    again = copies["Estimates.pairs"].decisions().sentences()
    assert again == results["Estimates.pairs"].decisions().sentences()


ROWS = {"tool": ["A", "B"] * 4, "task": ["a", "a", "b", "b"] * 2, "loss": [0.1, 0.2, 0.3, 0.5, 0.2, 0.2, 0.4, 0.7]}
ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}


def test_a_query_of_polars_is_saved_with_its_runs() -> None:
    again = pickle.loads(pickle.dumps(lt.Runs(pl.DataFrame(ROWS).lazy(), **ROLES)))
    assert again.is_lazy
    assert again.to_frame().to_dict("list") == ROWS


def test_runs_with_a_connection_are_not_saved_but_copied() -> None:
    rows = pl.DataFrame(ROWS)  # noqa: F841 (DuckDB finds it by its name)
    connection = pytest.importorskip("duckdb").connect()  # a relation of DuckDB 1.3 does not keep it open
    runs = lt.Runs(connection.sql("select * from rows"), **ROLES)
    message = (
        "runs of a duckdb table cannot be saved or sent to another process, as they hold a connection; nor can a fit "
        "to them. Bring them to memory first: Runs(runs.to_frame(), **runs.roles())."
    )
    fit = lt.fit_lmm("loss ~ tool + (1 | task)", runs)
    for found in (runs, fit):
        with pytest.raises(lt.errors.DataError, match=f"^{re.escape(message)}$"):
            pickle.dumps(found)
    assert str(copy.deepcopy(fit)) == str(fit)
