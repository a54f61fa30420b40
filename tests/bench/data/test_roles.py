"""Roles are guessed from names and structure, and columns that structure the rows are not overlooked."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.data.column import direction_of, role_of
from lmemtest.bench.data.guessing import guess
from lmemtest.bench.data.roles import unnamed_columns
from lmemtest.core.caller import on_command_line
from lmemtest.errors import ArgumentError


def crossed(rng: Any = 0, **levels: int) -> pd.DataFrame:
    """One row per combination, with a score of noise."""
    rows = itertools.product(*([f"{name}{i}" for i in range(n)] for name, n in levels.items()))
    table = pd.DataFrame(rows, columns=list(levels))
    return table.assign(score=np.random.default_rng(rng).normal(size=len(table)))


def found(table: Any, **roles: Any) -> list[tuple[str, str | None]]:
    given = {"score": "score", "direction": "minimize", "algorithm": "algorithm", **roles}
    return [(column.name, column.role) for column in unnamed_columns(lt.Runs(table, **given))]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *((name, "algorithm") for name in ("algorithm", "Algo", "model_name", "classifier", "optimizers", "method")),
        *((name, "benchmark") for name in ("dataset", "task_id", "openmlTaskId", "env", "problem name", "datasetname")),
        *((name, "seed")
         for name in ("seed", "random_state", "cv_fold", "rep", "runId", "trial number", "benchmark_seed")),
        *((name, "budget") for name in ("used_fidelity", "n_epochs", "step", "wall-clock time", "max_iter")),
        *((name, None) for name in ("loss", "model_size", "fold_change", "prior", "x1", "taskiness", ""))
    ]
)  # fmt: skip
def test_names_say_roles(name: str, role: str | None) -> None:
    assert role_of(name) == role


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        *((name, "maximize") for name in ("accuracy", "val_acc", "F1-macro", "test_auc", "episode_return", "reward")),
        *((name, "minimize") for name in ("loss", "valLoss", "error_rate", "regret", "runtime_s", "RMSE")),
        *((name, None) for name in ("value", "score", "neg_log_loss", "time_to_accuracy", "y")),
    ],
)
def test_names_say_directions(name: str, direction: str | None) -> None:
    assert direction_of(name) == direction


def test_every_column_of_a_design_is_found_with_its_role() -> None:
    table = crossed(algorithm=3, dataset=5, fold=4)
    assert found(table) == [("dataset", "benchmark"), ("fold", "seed")]
    assert found(table, benchmark="dataset") == [("fold", "seed")]
    assert found(table, seed="fold") == [("dataset", "benchmark")]
    assert found(table, benchmark="dataset", seed="fold") == []
    assert found(table, ignore=["dataset", "fold"]) == []
    assert found(table, ignore=["fold"]) == [("dataset", "benchmark")]
    assert found(crossed(algorithm=3, x=5, z=2)) == [("x", "benchmark"), ("z", "metafeatures")]  # without names
    trials = crossed(sampler=2, study_seed=5, number=12)
    trials["number"] = trials["number"].str.removeprefix("number").astype(int)
    assert found(trials, algorithm="sampler") == [("study_seed", "seed"), ("number", "budget")]
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    data = polars.from_pandas(table.assign(x=table["score"] ** 2))
    for other in (data, data.lazy(), data.to_arrow(), duckdb.from_arrow(data.to_arrow())):
        assert found(other) == [("dataset", "benchmark"), ("fold", "seed")]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_missing_rows_do_not_hide_a_design(share: float) -> None:
    table = crossed(algorithm=4, x=12, w=5)
    table = table[np.random.default_rng(1).random(len(table)) >= share]
    assert [name for name, _ in found(table)] == ["x", "w"]


def test_what_follows_from_the_named_columns_is_no_structure() -> None:
    table = crossed(algorithm=3, dataset=6, fold=4)
    table = table.assign(
        suite=table["dataset"].isin(["dataset0", "dataset1"]),
        size=table["algorithm"].str[-1].astype(int),
        copy=table["fold"].str.upper(),
        constant=1,
        row=range(len(table)),
    )
    assert found(table, benchmark="dataset", seed="fold") == []
    assert found(table, benchmark="dataset") == [("fold", "seed")]
    assert found(table) == [("dataset", "benchmark"), ("fold", "seed")]  # suite follows from dataset


def test_seeds_that_number_the_runs_hide_nothing() -> None:
    table = crossed(algorithm=3, dataset=6, fold=4)
    table["seed"] = table.groupby(["dataset", "fold"]).ngroup()  # a seed belongs to one data set
    assert found(table.drop(columns="fold"), seed="seed") == [("dataset", "benchmark")]
    assert found(table.drop(columns="fold"), seed="seed", benchmark="dataset") == []


def test_measurements_are_no_structure() -> None:
    """In 100 columns of chance at most a few look laid out, and none that is continuous."""
    table = crossed(algorithm=4, dataset=10, fold=5)
    rng = np.random.default_rng(2)
    n = len(table)
    continuous = {f"c{i}": rng.normal(size=n) for i in range(20)}
    discrete = {f"d{i}": rng.integers(0, 2 + i % 12, size=n) for i in range(100)}
    outcome = {
        f"o{i}": (rng.random(n) < 0.3 + 0.1 * table["algorithm"].str[-1].astype(int)).astype(int) for i in range(10)
    }
    table = pd.concat([table.drop(columns="fold"), pd.DataFrame({**continuous, **discrete, **outcome})], axis=1)
    names = [name for name, _ in found(table, benchmark="dataset")]
    assert not [name for name in names if name[0] in "co"]
    assert len(names) <= 3


def test_a_second_repetition_is_a_part_of_the_seed() -> None:
    table = crossed(algorithm=3, dataset=4, rep=3, fold=5)
    assert found(table, benchmark="dataset", seed="rep") == [("fold", "seed")]
    assert found(table, benchmark="dataset", seed=["rep", "fold"]) == []
    runs = lt.Runs(table, score="score", direction="minimize", algorithm="algorithm", benchmark="dataset", seed="rep")
    finding = runs.check(rules_only=True).findings[0]
    assert "'fold' (5 values, by its name a part of the seed)" in finding.message
    assert "benchmark='dataset', seed=['rep', 'fold'])." in finding.advice
    with on_command_line(["lmemtest", "check", "f.csv", "--seed", "rep"]):
        assert "lmemtest check f.csv --seed rep --seed fold " in runs.check(rules_only=True).findings[0].advice
    table = crossed(algorithm=3, dataset=4, metric=2)
    runs = lt.Runs(table, score="score", direction="minimize", algorithm="algorithm", benchmark="dataset")
    finding = runs.check(rules_only=True).findings[0]
    assert "'metric' (2 values, by its name several scores in one column)" in finding.message
    assert "runs.filter(metric=...)" in finding.advice


def test_missing_values_and_lists_are_no_structure() -> None:
    table = crossed(algorithm=3, dataset=5)
    table["host"] = ["a", None, "b"] * 5
    table["path"] = [[1, 2]] * 15
    assert found(table, benchmark="dataset") == []


# --------------------------------------------------------------------------------------------- what is said and refused


def test_no_winner_is_named_while_columns_lack_roles() -> None:
    table = crossed(algorithm=3, dataset=5, fold=4)
    runs = lt.Runs(table, score="score", direction="minimize", algorithm="algorithm")
    check = runs.check(rules_only=True)
    assert not check.ok
    assert [outcome.check for outcome in check.to_fix] == ["roles"]
    with pytest.raises(ArgumentError) as error:
        lt.analyze(runs)
    call = "Runs(table, score='score', direction='minimize', algorithm='algorithm', benchmark='dataset', seed='fold')"
    for part in ("'dataset' (5 values, by its name the benchmark)", "'fold' (4 values, by its name the seed)", call):
        assert part in str(error.value)
    assert "ignore=['dataset', 'fold']" in str(error.value)
    with on_command_line(["lmemtest", "check", "a b.csv", "--algorithm", "algorithm"]):
        advice = runs.check(rules_only=True).findings[0].advice
    assert "lmemtest check 'a b.csv' --algorithm algorithm --benchmark dataset --seed fold" in advice
    assert "--ignore dataset --ignore fold" in advice
    assert lt.analyze(eval_call(call, table)).check.ok


def eval_call(call: str, table: pd.DataFrame) -> lt.Runs:
    """The advised call as it would be typed."""
    return eval(call, {"Runs": lt.Runs, "table": table})


def test_what_was_left_out_on_purpose_is_told() -> None:
    table = crossed(algorithm=2, dataset=6, fold=4)
    roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "dataset"}
    analysis = lt.analyze(lt.Runs(table, **roles, ignore=["fold"]))
    told = "The column 'fold' (4 values) was left out on purpose: rows that share a value there count as independent."
    assert told in analysis.headline()
    assert told in " ".join(analysis.to_text().split())
    assert "ignore=('fold',)" in analysis.call


def test_a_formula_of_ones_own_may_use_the_column() -> None:
    table = crossed(algorithm=2, dataset=6, fold=4)
    runs = lt.Runs(table, score="score", direction="minimize", algorithm="algorithm", benchmark="dataset")
    refuses(ArgumentError, "'fold'", lt.analyze, runs, formula="score ~ algorithm + (1 | dataset)")
    assert lt.analyze(runs, formula="score ~ algorithm + (1 | dataset) + (1 | fold)").own_formula


@pytest.mark.parametrize(
    ("ignore", "message"),
    [("nothing", "ignore names the column"), ("algorithm", "names too"), (3, "must name columns by strings")],
)
def test_ignored_columns_exist_and_have_no_role(ignore: Any, message: str) -> None:
    table = crossed(algorithm=2, dataset=3)
    with pytest.raises(Exception, match=message):
        lt.Runs(table, score="score", direction="minimize", algorithm="algorithm", ignore=ignore)


def test_a_direction_against_the_name_is_a_note() -> None:
    table = crossed(algorithm=2, dataset=3).rename(columns={"score": "test_accuracy"})
    roles = {"score": "test_accuracy", "algorithm": "algorithm", "benchmark": "dataset"}
    finding = lt.Runs(table, direction="minimize", **roles).check(rules_only=True).findings[0]
    assert (finding.severity, finding.kind) == ("note", "direction")
    assert "give direction='maximize'" in finding.advice
    assert not lt.Runs(table, direction="maximize", **roles).check(rules_only=True).findings


# ---------------------------------------------------------------------------------------------------- guessing all


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"algorithm": "optimizer", "dataset": "task_name", "fold": "random_seed", "score": "val_loss"},
         {"score": "val_loss", "direction": "minimize", "algorithm": "optimizer", "benchmark": "task_name",
         "seed": "random_seed"}),
        ({"algorithm": "who", "dataset": "benchmark", "fold": "run", "score": "value"},
         {"score": "value", "direction": "maximize", "algorithm": "who", "benchmark": "benchmark", "seed": "run"})
    ]
)  # fmt: skip
def test_roles_are_guessed(columns: dict[str, str], wanted: dict[str, str]) -> None:
    table = crossed(algorithm=3, dataset=5, fold=4)
    table["fold"] = table["fold"].str[-1].astype(int)
    roles = guess(table.rename(columns=columns)).readings[0].roles
    assert {name: roles[name] for name in wanted} == wanted


def test_what_is_ambiguous_is_not_guessed() -> None:
    table = crossed(algorithm=3, dataset=5).assign(accuracy=lambda t: t["score"], f1=lambda t: t["score"])
    readings = guess(table.drop(columns="score")).readings
    assert [reading.roles["score"] for reading in readings] == ["accuracy", "f1"]
    assert {(r.roles["algorithm"], r.roles["benchmark"]) for r in readings} == {("algorithm", "dataset")}
    both = guess(crossed(method=2, model=3), {"direction": "maximize"}).readings
    pairs = [("method", ("model",)), ("model", ("method",))]
    assert [(r.roles["algorithm"], r.roles["metafeatures"]) for r in both] == pairs
    assert {r.roles["algorithm"] for r in guess(crossed(algorithm=2, model=3)).readings} == {"algorithm"}


# ------------------------------------------------------------------------------------------- frames with roles, filters


def test_analyze_takes_a_frame_with_roles() -> None:
    table = crossed(algorithm=3, dataset=5, fold=4)
    roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "dataset"}
    roles["seed"] = "fold"
    pd.testing.assert_frame_equal(lt.analyze(table, **roles).to_frame(), lt.analyze(lt.Runs(table, **roles)).to_frame())
    with pytest.raises(ArgumentError, match="score is for a dataframe; Runs have their roles"):
        lt.analyze(lt.Runs(table, **roles), score="score")
    with pytest.raises(ArgumentError, match=r"needs algorithm=: which column is it\? Columns: algorithm, dataset"):
        lt.analyze(table, score="score", direction="minimize")
    refuses(ArgumentError, "or a dataframe and the roles of its columns; got DataFrame alone", lt.analyze, table)


def test_filter_takes_roles() -> None:
    table = crossed(tool=3, task=5)
    runs = lt.Runs(table, score="score", direction="minimize", algorithm="tool", benchmark="task")
    assert runs.filter(algorithm=["tool0", "tool2"], benchmark="task1").n_rows == 2
    named = table.assign(benchmark="x")
    runs = lt.Runs(named, score="score", direction="minimize", algorithm="tool", benchmark="task")
    assert runs.filter(benchmark="x").n_rows == 15  # a column of that name comes first
    refuses(KeyError, "seed", runs.filter, seed=1)


def test_a_column_whose_name_is_no_text_has_no_role_and_is_in_nobodys_way() -> None:
    table = crossed(tool=3, task=4, seed=2)
    roles = {"score": "score", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    numbered = table.assign(x=np.tile([1, 2], len(table) // 2)).rename(columns={"x": 7})
    plain, other = lt.Runs(table, **roles), lt.Runs(numbered, **roles)
    assert other.columns == plain.columns
    assert other.check().to_frame().equals(plain.check().to_frame())
    assert lt.analyze(other).summary() == lt.analyze(plain).summary()


def test_runs_of_a_part_remember_the_algorithms_of_the_whole_table_in_its_order() -> None:
    table = crossed(tool=3, task=4, seed=2).assign(size=lambda frame: frame["task"].map(len))
    table["tool"] = pd.Categorical(table["tool"], ["tool2", "tool0", "tool1"])
    roles = {"score": "score", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    runs = lt.Runs(table, metafeatures=["size"], **roles)
    roster = ("tool2", "tool0", "tool1")
    two = runs.filter(algorithm=["tool0", "tool1"])
    assert (runs.roster, two.algorithms) == (roster, ("tool0", "tool1"))
    made = (
        two, two.filter(task="task1"), two.normalize("rank"), two.drop_missing(), two.drop_duplicates("mean"),
        two.with_metafeatures(), two.normalize("minmax").filter(seed="seed0"), lt.Runs(table, **roles),
        two.study.average("seed"),
    )  # fmt: skip
    assert {one.roster for one in made} == {roster}
    pairs = lt.fit_lmm("score ~ tool + (1 | task)", two).emmeans("tool").pairs()
    assert pairs.estimates.roster == roster
    assert lt.Runs(two.to_frame(), **roles).roster[:2] == ("tool0", "tool1")  # a new table


# ------------------------------------------------------------------------------------------------------- wide tables


def wide() -> pd.DataFrame:
    return pd.DataFrame({"dataset": ["d2", "d10"], "RF": [0.9, 0.8], "SVM": [0.7, np.nan], "kNN": [1, 0]})


def test_wide_tables_become_long() -> None:
    runs = lt.Runs.from_wide(wide(), direction="maximize")
    assert (runs.score, runs.algorithm, runs.benchmark, runs.n_rows) == ("score", "algorithm", "dataset", 6)
    frame = runs.to_frame()
    assert frame.set_index(["dataset", "algorithm"])["score"]["d2", "RF"] == 0.9
    assert runs.check(rules_only=True).findings[0].kind == "non_finite"
    indexed = lt.Runs.from_wide(wide().set_index("dataset"), direction="maximize")
    pd.testing.assert_frame_equal(indexed.to_frame()[list(frame.columns)], frame, check_dtype=False)
    assert lt.Runs.from_wide(wide().drop(columns="dataset"), direction="maximize").benchmark == "row"
    chosen = lt.Runs.from_wide(wide(), direction="maximize", algorithms=["RF", "kNN"])
    assert chosen.algorithms == ("RF", "kNN")


def test_wide_tables_keep_other_columns_by_role() -> None:
    table = wide().assign(fold=[0, 1], kind="x")
    options: Any = {"direction": "maximize", "benchmark": "dataset", "seed": "fold", "metafeatures": "kind"}
    runs = lt.Runs.from_wide(table, **options, score="acc")
    assert (runs.seed, runs.metafeatures, runs.score, len(runs.algorithms)) == ("fold", ("kind",), "acc", 3)
    lazy = lt.Runs.from_wide(pytest.importorskip("polars").from_pandas(table).lazy(), **options)
    assert (lazy.is_lazy, lazy.n_rows) == (True, 6)
    refuses(ArgumentError, "direction is required", lt.Runs.from_wide, wide())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (wide().assign(fold=[0, 1]),
         r"'fold' looks like the seed, not like the scores of an algorithm. Say what it is \(seed='fold'\)"),
        (wide().rename(columns={"kNN": "Unnamed: 0"}), "looks like row numbers"),
        (wide().assign(kind="x"), "Say which names the rows: benchmark="),
        (wide()[["dataset", "RF"]], "but there is one: RF"),
        (wide().rename(columns={"RF": "score"}).assign(algorithm="x"), "Say which names the rows")
    ]
)  # fmt: skip
def test_what_is_no_algorithm_is_said(table: pd.DataFrame, message: str) -> None:
    refuses(ValueError, message, lt.Runs.from_wide, table, direction="maximize")


# -------------------------------------------------------------------------------------------------------- odd text


def test_half_a_character_is_named() -> None:
    names = pd.Series(["a", "b\ud800"] * 2, dtype=object)
    table = pd.DataFrame({"tool": names, "loss": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(lt.errors.DataError, match=r"The column 'tool' holds 'b\\ud800', which is no valid text"):
        lt.Runs(table, score="loss", direction="minimize", algorithm="tool")
    refuses(lt.errors.DataError, r"The column 'tool' holds 'b\\ud800'", lt.fit_lmm, "loss ~ tool", table)


def test_a_column_that_a_model_of_ones_own_uses_is_no_warning_and_another_one_still_is() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame([(a, b, f, k) for a in "AB" for b in "uvwxyz" for f in range(3) for k in range(2)])
    table = table.set_axis(["tool", "task", "fold", "rep"], axis=1).assign(loss=rng.normal(size=len(table)))
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", ignore=["rep"])
    refuses(ArgumentError, "'fold'", lt.analyze, runs)
    analysis = lt.analyze(runs, formula="loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:fold)")
    assert "unnamed_columns" not in [finding.kind for finding in analysis.check.findings]
    refuses(ArgumentError, "'fold'", lt.analyze, runs, formula="loss ~ tool + (1 | task) + (1 | task:tool)")
