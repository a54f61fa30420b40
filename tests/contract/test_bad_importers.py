"""Every importer with bad values and bad files: an error of ours that names the argument or the file and what to do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_values import judged, outcome

import lmemtest as lt
from lmemtest.errors import LmemtestError

HUGE = [10**400] if int(pd.__version__.partition(".")[0]) > 2 else []  # pandas 2 cannot map, group or fill it

Content = Callable[..., Any]  # of algorithms and scores, in the form of a tool


def table(**columns: Any) -> Content:
    """A row per algorithm, place and seed, with the columns of a tool: names of these, or a constant."""

    def content(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> pd.DataFrame:
        rows = [(a, t, s) for a in algorithms for t in ("t1", "t2") for s in (1, 2)]
        base = pd.DataFrame(rows, columns=["algorithm", "task", "seed"])
        base = base.assign(score=score, row=range(len(base)), score_x=score)
        return pd.DataFrame(
            {name: base[role] if isinstance(role, str) and role in base else role for name, role in columns.items()},
            index=base.index,
        )

    return content


def of_optuna(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return {a: pd.DataFrame({"number": [0, 1], "value": score, "state": "COMPLETE"}) for a in algorithms}


def of_sklearn(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return {a: {"iris": {"test_score": [score, score]}} for a in algorithms}


def of_papers(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return pd.DataFrame({"data": ["d1", "d2"], **dict.fromkeys(algorithms, score)})


def of_hpob(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return {a: {"space": {"data": {"s0": [score, score]}}} for a in algorithms}


def of_lm_eval(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return {a: {"arc": [{"doc_id": i, "metrics": ["acc"], "acc": score} for i in range(2)]} for a in algorithms}


def of_rliable(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    return {a: [[score, score]] for a in algorithms}


def of_promptfoo(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    rows = [{"provider": {"id": a}, "vars": {"q": q}, "score": score} for a in algorithms for q in (1, 2)]
    return {"evalId": "e", "results": {"results": rows}}


def of_deepeval(algorithms: tuple[str, ...] = ("A", "B"), score: Any = 0.5) -> Any:
    cases = [{"input": q, "metricsData": [{"name": "Exact", "score": score}]} for q in ("1+1", "1+2")]
    return [{"hyperparameters": {"model": a}, "testCases": cases} for a in algorithms]


CARPS = {"benchmark_id": "task", "task_id": "task", "optimizer_id": "algorithm", "seed": "seed", "n_trials": "row"}
AMLB = {"task": "task", "framework": "algorithm", "fold": "seed", "result": "score", "metric": "auc"}
INSPECT = {"model": "algorithm", "task_name": "task", "id": "seed", "score_x": "score"}
TRACKED = {"model": "algorithm", "data": "task", "seed": "seed", "acc": "score"}
MLFLOW = {"run_id": "row", "status": "FINISHED", **{f"params.{k}": v for k, v in TRACKED.items() if k != "acc"}}
MLFLOW |= {"metrics.acc": "score"}
ROLES = {"score": "acc", "direction": "maximize", "algorithm": "model", "benchmark": "data", "seed": "seed"}

GOOD: dict[str, tuple[Content, dict[str, Any]]] = {
    "optuna": (of_optuna, {"direction": "minimize"}),
    "sklearn": (of_sklearn, {}),
    "wide": (of_papers, {"direction": "maximize"}),
    "hpob": (of_hpob, {"direction": "maximize"}),
    "carps": (table(**CARPS, trial_value__cost="score"), {}),
    "amlb": (table(**AMLB), {}),
    "inspect_ai": (table(**INSPECT), {"direction": "maximize"}),
    "lm_eval": (of_lm_eval, {"direction": "maximize"}),
    "promptfoo": (of_promptfoo, {}),
    "deepeval": (of_deepeval, {"direction": "maximize"}),
    "rliable": (of_rliable, {}),
    "wandb": (table(Name="row", State="finished", **TRACKED), ROLES),
    "mlflow": (table(**MLFLOW), ROLES),
}
NEEDED = {
    "carps": [*CARPS, "trial_value__cost"],
    "amlb": list(AMLB),
    "inspect_ai": list(INSPECT),
    "wandb": ["Name", *TRACKED],
    "mlflow": list(MLFLOW),
}


def test_every_importer_is_here() -> None:
    """But those that take files alone: tests/bench/data/test_importers.py."""
    assert set(GOOD) | {"sb3", "tensorboard", "clearml", "aim"} == set(lt.importers.__all__)


def refused(tool: str, content: Any) -> str:
    """The words of the error, which must be one of ours."""
    try:
        getattr(lt.importers, tool)(content, **GOOD[tool][1])
    except LmemtestError as error:
        return str(error)
    return "accepted"


@pytest.mark.parametrize("tool", GOOD)
def test_bad_arguments_are_refused_in_words(tool: str) -> None:
    importer, (content, options) = getattr(lt.importers, tool), GOOD[tool]
    first = next(iter(inspect.signature(importer).parameters))
    good = {first: content(), **options}
    assert outcome(functools.partial(importer, **good)) == "accepted"
    assert list(judged(tool, importer, good)) == []


@pytest.mark.parametrize("tool", GOOD)
def test_contents_that_say_nothing_are_refused_in_words(tool: str) -> None:
    content = GOOD[tool][0]
    alone = refused(tool, content(("A",)))
    assert "one algorithm only, 'A'" in alone or "two or more algorithms, but there is one: A" in alone
    assert "no finite score" in refused(tool, content(score=np.nan))
    assert "number" in refused(tool, content(score="high"))
    if tool not in ("optuna", "wide"):  # the first has names for repeated runs, the other no several tables
        assert "repeat" in refused(tool, [content(), content()])


@pytest.mark.parametrize(("tool", "column"), [(tool, column) for tool, names in NEEDED.items() for column in names])
def test_columns_that_are_missing_are_named(tool: str, column: str) -> None:
    words = refused(tool, GOOD[tool][0]().drop(columns=column))
    assert column.removeprefix("params.").removeprefix("metrics.").removesuffix("x") in words
    assert "Columns: " in words or "Read it by samples_df" in words


@pytest.mark.parametrize("tool", NEEDED)
def test_columns_of_other_values_are_no_errors_of_pandas(tool: str) -> None:
    good = GOOD[tool][0]()
    strange = [[1], None, b"x", *HUGE]
    found = {
        (column, str(value)[:9]): outcome(functools.partial(getattr(lt.importers, tool), table, **GOOD[tool][1]))
        for column in good
        for value in strange
        for table in [good.assign(**{column: pd.Series([value] * len(good), dtype=object)})]
    }
    assert {case: words for case, words in found.items() if words not in ("refused", "accepted")} == {}
    texts = good.astype(str).astype("category")
    assert outcome(functools.partial(getattr(lt.importers, tool), texts, **GOOD[tool][1])) == "accepted"


@pytest.mark.parametrize("tool", GOOD)
def test_files_that_hold_nothing_are_refused_in_words(tool: str, tmp_path: Path) -> None:
    assert "There is no file 'runs.json' in the folder" in refused(tool, str(tmp_path / "runs.json"))
    assert "no file matches" in refused(tool, str(tmp_path / "*.json"))
    assert "there is no file " in refused(tool, tmp_path) or "must be a file, but " in refused(tool, tmp_path)
    for name, data in (
        ("a.json", b""),
        ("b.json", b'{"A": '),
        ("c.csv", b"\x00\x01"),
        ("d.parquet", b"PAR1"),
        ("e.json", b"3"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert name in refused(tool, path)
