"""Runs accepts any table, keeps its hands off it, and refuses what cannot be compared with a next step."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError, LmemtestError, UnknownColumnError

DUCK = duckdb.connect()  # a relation lives no longer than its connection
ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed",
    "budget": "epochs", "metafeatures": ["prior"],
}  # fmt: skip


@pytest.fixture
def frame() -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [["HB", "RS"], ["t1", "t2"], [0, 1, 2], [1, 10], ["bad", "good"]],
        names=["tool", "task", "seed", "epochs", "prior"],
    )
    frame = index.to_frame(index=False)
    frame["loss"] = np.random.default_rng(1).random(len(frame))
    frame["unused"] = "x"
    return frame


def backends(frame: pd.DataFrame) -> dict[str, Any]:
    polars = pl.from_pandas(frame)
    return {
        "pandas": frame,
        "polars": polars,
        "lazy": polars.lazy(),
        "pyarrow": polars.to_arrow(),
        "duckdb": DUCK.from_arrow(polars.to_arrow()),
        "dict": {name: frame[name].tolist() for name in frame},
        "narwhals": nw.from_native(polars),
    }


BACKENDS = ["pandas", "polars", "lazy", "pyarrow", "duckdb", "dict", "narwhals"]


def refused_runs(frame: Any, error: type[Exception] = DataError, **roles: Any) -> str:
    assert issubclass(error, LmemtestError)
    return refusal(lambda: Runs(frame, **{**ROLES, **roles}), error)


@pytest.mark.daily(3)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_same_runs(frame: pd.DataFrame, backend: str) -> None:
    runs = Runs(backends(frame)[backend], **ROLES)
    assert runs.n_rows == 48
    assert runs.algorithms == runs.levels("tool") == ("HB", "RS")
    assert runs.levels("epochs") == (1, 10)
    assert runs.instance == ("task", "prior")
    assert runs.columns == tuple(frame.columns)
    assert runs.roles() == {**ROLES, "family": (), "metafeatures": ("prior",), "ignore": (), "seed_shared": True,
                            "failed": None}  # fmt: skip
    assert runs.is_lazy == (backend in ("lazy", "duckdb"))
    back = runs.to_frame().sort_values(list(frame.columns[:5]), ignore_index=True)
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)
    assert runs.drop_missing().n_rows == 48
    assert runs.filter(tool=["HB", "RS"], task="t1", epochs=10).n_rows == 12
    assert runs.check(rules_only=True).ok
    for text in (repr(runs), runs.summary(), runs._repr_html_()):
        assert "48 rows" in text
        assert "HB, RS" in text


def test_optional_roles_may_be_left_out(frame: pd.DataFrame) -> None:
    runs = Runs(frame, score="loss", direction="maximize", algorithm="tool")
    assert (runs.benchmark, runs.seed, runs.budget, runs.metafeatures) == (None, None, None, ())
    assert runs.instance == ()
    assert Runs(frame, **{**ROLES, "metafeatures": "prior"}).metafeatures == ("prior",)
    assert Runs(frame, **{**ROLES, "metafeatures": None}).metafeatures == ()
    assert Runs(frame, **runs.roles()).roles() == runs.roles()


def test_runs_are_frozen_and_own_their_columns(frame: pd.DataFrame) -> None:
    before = frame.copy()
    runs = Runs(frame, **ROLES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        runs.score = "x"  # type: ignore[misc]
    mine = runs.to_frame()
    mine["loss"] = 0.0
    pd.testing.assert_frame_equal(frame, before)
    frame["loss"] = 0.0
    del frame["tool"]
    pd.testing.assert_frame_equal(runs.to_frame(), before)


def test_column_names_may_be_anything(frame: pd.DataFrame) -> None:
    odd = {"loss": "validation loss [%]", "tool": "Verfahren ü", "task": "`a` \"b\" 'c'", "seed": "--seed"}
    renamed = frame.rename(columns=odd)
    roles = {key: odd.get(value, value) if isinstance(value, str) else value for key, value in ROLES.items()}
    for backend, data in backends(renamed).items():
        if backend == "duckdb" and int(duckdb.__version__.split(".")[0]) < 2:  # misreads quotes in a name
            text = refused_runs(data, **roles)
            assert text.startswith(f"{odd['task']!r} is a column of the table, but this version of its backend")
            assert text.endswith("Rename the column without them, or update the backend (duckdb 2 can).")
            continue
        runs = Runs(data, **roles)
        assert runs.levels("Verfahren ü") == ("HB", "RS")
        assert runs.filter(**{"`a` \"b\" 'c'": "t1"}).n_rows == 24
        assert runs.check(rules_only=True).ok


@pytest.mark.parametrize(
    ("words", "direction"),
    [("min lower MINIMISE lower_is_better lower-is-better minimum", "minimize"),
     ("max higher Maximise higher_is_better maximum", "maximize")],
)  # fmt: skip
def test_a_direction_is_required_and_other_words_for_it_are_taken(frame, words: str, direction: str) -> None:
    wide = pd.DataFrame({"A": [1.0, 2.0], "B": [2.0, 4.0]})
    for word in [*words.split(), *(w.replace("_", " ") for w in words.split())]:
        assert Runs(frame, **{**ROLES, "direction": word}).direction == direction
        assert Runs.from_wide(wide, direction=word).direction == direction  # type: ignore[arg-type]
    without = refusal(lambda: Runs(frame, score="loss", algorithm="tool"), ArgumentError)
    assert without.startswith("direction is required: direction='minimize' if a low score is good (")
    assert "direction='maximize' if a high one is (" in without
    with pytest.raises(TypeError):
        Runs(frame, "loss", "minimize", "tool")  # type: ignore[misc,call-arg]
    for wrong in ("minim", "best", None, "", True):
        text = refused_runs(frame, ArgumentError, direction=wrong)
        assert text.startswith("direction must be 'minimize' or 'maximize', got ")


@pytest.mark.daily(3)
@pytest.mark.parametrize("backend", BACKENDS)
def test_several_columns_make_one_seed(frame: pd.DataFrame, backend: str) -> None:
    """Every combination is a seed, and the runs that follow from these have the same roles."""
    frame = frame.assign(seed=frame["seed"] // 2, fold=frame["seed"] % 2)
    data = backends(frame)[backend]
    runs = Runs(data, **{**ROLES, "seed": ["seed", "fold"]})
    assert (runs.seed, runs.seeds) == ("seed / fold", ("seed", "fold"))
    assert runs.levels("seed / fold") == ("0 / 0", "0 / 1", "1 / 0")
    both = frame.assign(both=frame["seed"].astype(str) + "-" + frame["fold"].astype(str))
    by_hand = Runs(both, **{**ROLES, "seed": "both"})
    pd.testing.assert_frame_equal(runs.check(rules_only=True).cells, by_hand.check(rules_only=True).cells)
    again = Runs(data, **runs.roles()).filter(**{"seed / fold": "1 / 0"})
    assert again.n_rows == ((frame["seed"] == 1) & (frame["fold"] == 0)).sum()
    assert "seed / fold" not in frame.columns
    refuses(UnknownColumnError, "seed names the column 'split'", Runs, data, **{**ROLES, "seed": ["seed", "split"]})


def test_one_algorithm_can_be_looked_at_and_not_compared(frame: pd.DataFrame) -> None:
    runs = Runs(frame, **ROLES).filter(algorithm="HB")
    assert (runs.algorithms, runs.n_rows, runs.filter(task="t1").n_rows) == (("HB",), 24, 12)
    assert runs.check(rules_only=True).overview.startswith("24 rows: 1 algorithm")
    for compare in (lt.analyze, lt.rank, lt.recommend):
        refuses(DataError, r"holds one algorithm only, 'HB'; comparing needs two or more\. Were the", compare, runs)
    refuses(DataError, "holds one algorithm only", Runs, frame[frame["tool"] == "HB"], **ROLES)


@pytest.mark.parametrize("role", ["score", "algorithm", "benchmark", "seed", "budget"])
def test_a_misspelt_column_is_found(frame: pd.DataFrame, role: str) -> None:
    name = ROLES[role]
    text = refused_runs(frame, UnknownColumnError, **{role: name + "x"})
    assert text == (
        f"{role} names the column '{name}x', which is not in the data. "
        f"Columns: tool, task, seed, epochs, prior, loss, unused. Did you mean '{name}'?"
    )
    assert isinstance(UnknownColumnError(text), KeyError)
    assert "metafeatures names the column 'prio'" in refused_runs(frame, UnknownColumnError, metafeatures=["prio"])


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"seed": "task"}, "seed and benchmark both name the column 'task'; every role needs its own column."),
        ({"metafeatures": ["tool"]}, "metafeatures and algorithm both name"),
        ({"metafeatures": ["prior", "prior"]}, "metafeatures and metafeatures both"),
        ({"algorithm": 0}, "by strings, got 0 of type int"),
        ({"score": None}, "score must name columns by strings, got None"),
        ({"metafeatures": [None]}, "metafeatures must name columns by strings"),
    ],
)
def test_other_bad_roles(frame: pd.DataFrame, roles: dict[str, Any], words: str) -> None:
    assert words in refused_runs(frame, ArgumentError, **roles)


def test_levels_of_the_index_that_have_a_role_are_columns(frame: pd.DataFrame) -> None:
    runs = Runs(frame.set_index(["tool", "task"]), **ROLES)
    pd.testing.assert_frame_equal(runs.to_frame()[frame.columns], Runs(frame, **ROLES).to_frame())
    assert "tool" in Runs(frame.rename_axis("tool"), **ROLES).columns  # a column of that name is meant


def test_tables_that_cannot_be_compared(frame: pd.DataFrame) -> None:
    for data in backends(frame[:0]).values():
        if isinstance(data, dict):
            continue  # no rows, no types
        assert refused_runs(data) == "The table has no rows; a comparison needs runs of at least two algorithms."
    for data in backends(frame[frame["tool"] == "HB"]).values():
        assert refused_runs(data).startswith("The column 'tool' holds one algorithm only, 'HB'; comparing needs two")
    repeated = pd.concat([frame, frame["loss"]], axis=1)
    assert "more than one column named 'loss'" in refused_runs(repeated)
    assert "frame must be a dataframe" in refused_runs([1, 2, 3], ArgumentError)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("column", ["tool", "task", "seed", "epochs", "prior"])
def test_missing_values_outside_the_score_are_refused(frame: pd.DataFrame, backend: str, column: str) -> None:
    broken = frame.astype({column: object})
    broken.loc[[1, 3], column] = None
    if column in ("seed", "epochs"):
        broken[column] = broken[column].astype(float)
    text = refused_runs(backends(broken)[backend])
    assert text.startswith(f"The column '{column}' has 2 missing values. Every run needs one: ")


SCORES = {
    "thousands or decimals": (["1,234", "2,345"] * 24, "(for example '1,234'). Its commas may be for decimals or for"),
    "text": (["good", "bad"] * 24, "(for example 'good'). Choose a numeric column."),
    "bool": ([True, False] * 24, "(for example True). Right and wrong answers are compared by lmemtest.evaluate"),
}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "dict"])
@pytest.mark.parametrize("kind", SCORES)
def test_a_score_must_be_numeric(frame: pd.DataFrame, backend: str, kind: str) -> None:
    values, want = SCORES[kind]
    text = refused_runs(backends(frame.assign(loss=values))[backend])
    assert text.startswith("score must be a numeric column, but 'loss' has type ")
    assert want in text


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "dict"])
def test_scores_in_texts_are_read_as_the_command_line_reads_them(frame: pd.DataFrame, backend: str) -> None:
    texts = frame["loss"].map(lambda x: f"{100 * x:.2f}".replace(".", ",") + " %")
    runs = Runs(backends(frame.assign(loss=texts))[backend], **ROLES)
    assert runs.to_frame()["loss"].tolist() == [float(f"{100 * x:.2f}") for x in frame["loss"]]
    assert runs.notes == (f"Read as: percent without the sign ({texts[0]!r}) in 48 cells.",)
    digits = Runs(backends(frame.assign(loss=frame["loss"].map(repr)))[backend], **ROLES)
    assert digits.to_frame()["loss"].tolist() == frame["loss"].tolist()
    assert digits.notes == ()


def test_scores_of_odd_types(frame: pd.DataFrame) -> None:
    text = refused_runs(frame.assign(loss=frame["loss"] + 1j))
    assert "has type complex128" in text
    assert "Choose its real part or its absolute value." in text
    assert Runs(frame.assign(loss=frame["loss"].astype(object)), **ROLES).to_frame()["loss"].equals(frame["loss"])
    assert "has type datetime64" in refused_runs(frame.assign(loss=pd.Timestamp("2024-01-01")))
    assert "has type object (for example [1])" in refused_runs(frame.assign(loss=[[1]] * 48))
    text = refused_runs(frame.assign(loss=pd.Series([None] * 48, dtype=object)))
    assert "has type object (for example None). All its values are missing" in text


def test_words_among_scores_are_failed_runs_if_the_caller_says_so(frame: pd.DataFrame) -> None:
    values: list[Any] = frame["loss"].tolist()
    values[5] = values[20] = "crash"
    crashed = frame.assign(loss=pd.Series(values, dtype=object))
    assert refused_runs(crashed) == (
        "The column 'loss' must hold numbers, but 2 cells of 48 hold words ('crash' 2). If they stand for runs that "
        "failed: failed='crash'. If 'loss' is no score, give it another role or leave it out."
    )
    runs = Runs(crashed, **ROLES, failed="crash")
    assert runs.failed == "missing"
    assert np.flatnonzero(runs.to_frame()["loss"].isna()).tolist() == [5, 20]
    assert runs.notes == ("Read as: failed runs in 2 cells ('crash' 2).",)
    values[20] = [1]
    assert "'crash', [1] are not (2 rows)" in refused_runs(frame.assign(loss=pd.Series(values, dtype=object)))


def test_a_name_that_the_backend_cannot_look_up(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: Any, **__: Any) -> None:
        raise nw.exceptions.ColumnNotFoundError("raw")

    monkeypatch.setattr(nw.LazyFrame, "select", lose)
    data = pl.from_pandas(frame.rename(columns={"task": 'a "b"'})).lazy()
    assert refused_runs(data, benchmark='a "b"').startswith(
        "'a \"b\"' is a column of the table, but this version of its"
    )


def test_mixed_types_are_refused(frame: pd.DataFrame) -> None:
    mixed = frame.astype({"seed": object})
    mixed.loc[0, "seed"] = "0"
    assert refused_runs(mixed) == (
        "The column 'seed' mixes types: '0' (str) and 0 (number). Equal levels may count as different. "
        "Give all values one type, for example with df['seed'].astype(str)."
    )
    lists = frame.assign(prior=[["a"]] * 48)
    assert "The column 'prior' holds a list in each row" in refused_runs(lists)
    whole = frame.astype({"seed": object})
    whole.loc[0, "seed"] = np.int64(0)  # a numpy integer beside Python's is one type to a reader
    assert Runs(whole, **ROLES).levels("seed") == (0, 1, 2)


def test_budgets_must_have_an_order(frame: pd.DataFrame) -> None:
    text = refused_runs(frame.astype({"epochs": str}))
    assert text.startswith("budget must be a column of numbers, dates or ordered categories, but 'epochs'")
    assert "so that 10 may come before 2" in text
    ordered = frame.assign(epochs=pd.Categorical(frame["epochs"].map({1: "low", 10: "high"}), ["low", "high"]))
    assert Runs(ordered, **ROLES).levels("epochs") == ("low", "high")
    dates = frame.assign(epochs=pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["epochs"], "D"))
    assert Runs(dates, **ROLES).check(rules_only=True).ok


def test_scores_may_be_missing_until_a_fit(frame: pd.DataFrame) -> None:
    broken = frame.copy()
    broken.loc[[0, 1, 2], "loss"] = [np.nan, np.inf, -np.inf]
    for backend, data in backends(broken).items():
        runs = Runs(data, **ROLES)
        assert runs.n_rows == 48, backend
        assert runs.drop_missing().n_rows == 45, backend
        assert {finding.kind for finding in runs.check(rules_only=True).problems} == {"non_finite"}, backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_filter_says_what_does_not_occur(frame: pd.DataFrame, backend: str) -> None:
    runs = Runs(backends(frame)[backend], **ROLES)
    assert refusal(lambda: runs.filter(tool="hB"), DataError) == (
        "filter: 'hB' does not occur in the column 'tool'. Its values: 'HB', 'RS'. Did you mean 'HB'?"
    )
    refuses(UnknownColumnError, r"filter names the column 'taks'.* Did you mean 'task'", runs.filter, taks="t1")
    assert runs.filter(tool="HB").algorithms == ("HB",)
    assert runs.filter(seed=np.array([0, 2])).n_rows == 32
    assert runs.filter(seed=range(2)).n_rows == 32
    assert runs.filter(seed={1}).n_rows == 16
    assert runs.filter().n_rows == 48
    declared = Runs(frame.astype({"task": "category"}), **ROLES).filter(task="t1")
    assert (declared.n_rows, declared.levels("task")) == (24, ("t1",))


def test_levels_follow_declared_categories(frame: pd.DataFrame) -> None:
    frame["tool"] = pd.Categorical(frame["tool"], ["RS", "unused", "HB"])
    assert Runs(frame, **ROLES).algorithms == ("RS", "HB")
    refuses(UnknownColumnError, "column names the column 'nope'", Runs(frame, **ROLES).levels, "nope")


def test_a_lazy_table_is_never_collected_whole(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([frame] * 50, ignore_index=True)
    heights = []
    collect = pl.LazyFrame.collect

    def spy(self: pl.LazyFrame, *args: Any, **kwargs: Any) -> Any:
        out = collect(self, *args, **kwargs)
        heights.append(out.height)
        return out

    monkeypatch.setattr(pl.LazyFrame, "collect", spy)
    runs = Runs(pl.from_pandas(frame).lazy(), **ROLES)
    runs.filter(task="t1").drop_missing().check(rules_only=True)
    runs.check(rules_only=True)
    repr(runs)
    assert max(heights) <= 48


def test_html_escapes_what_comes_from_data(frame: pd.DataFrame) -> None:
    frame["tool"] = frame["tool"].map({"HB": "<script>alert(1)</script>", "RS": "b"})
    runs = Runs(frame, **ROLES)
    for html in (runs._repr_html_(), runs.check(rules_only=True)._repr_html_()):
        assert not re.search(r"<script", html)
