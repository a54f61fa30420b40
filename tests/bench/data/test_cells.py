"""Cells hold exactly what a Gaussian model needs, whatever the backend, the order of rows and the scale."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusal, refuses

from lmemtest.bench.data.runs import Runs
from lmemtest.core import codes, frames
from lmemtest.core.codes import natural_key
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError
from lmemtest.lmm.cells import Cells, compress

DUCK = duckdb.connect()  # a relation lives no longer than its connection
BACKENDS = ["pandas", "pandas object", "pandas arrow", "polars", "lazy", "pyarrow", "duckdb"]


def as_backend(frame: pd.DataFrame, backend: str) -> Any:
    if backend == "pandas":
        return frame
    if backend == "pandas object":
        text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
        return frame.astype(dict.fromkeys(text, object))
    if backend == "pandas arrow":
        return pa.Table.from_pandas(frame, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype)
    if backend == "polars":
        return pl.from_pandas(frame)
    if backend == "lazy":
        return pl.from_pandas(frame).lazy()
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    return arrow if backend == "pyarrow" else DUCK.from_arrow(arrow)


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(20)
    n = 400
    return pd.DataFrame(
        {
            "algorithm": rng.choice(["b", "a", "C", "ä"], n),
            "bench mark [x]": rng.choice(["t10", "t2", 'quo"te', "`tick`"], n),
            "seed": rng.integers(-2, 3, n).astype("int32"),
            "budget": rng.choice([0.5, 10.0, 2.0], n),
            "good": rng.choice([True, False], n),
            "weight": rng.choice([0.5, 2.0], n),
            "n": rng.choice(["clash", "ing"], n),
            "value": rng.normal(size=n) * 3 + 100,
        }
    )


def assert_same(got: Cells, want: Cells, rtol: float = 1e-12) -> None:
    assert got.frame.columns.tolist() == want.frame.columns.tolist()
    for column in want.frame:
        assert got.frame[column].tolist() == want.frame[column].tolist()
    np.testing.assert_array_equal(got.n, want.n)
    np.testing.assert_array_equal(got.weight, want.weight)
    np.testing.assert_allclose(got.mean, want.mean, rtol=1e-14)
    np.testing.assert_allclose(got.ss, want.ss, rtol=rtol, atol=1e-13 * want.ss.max(initial=0))
    assert (got.n_rows, got.n_dropped) == (want.n_rows, want.n_dropped)


@pytest.mark.daily(13)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "by", [[], ["algorithm"], ["bench mark [x]", "algorithm", "seed"], ["budget", "good"], ["n", "weight"], ["value"]],
    ids=lambda by: "+".join(by) or "nothing"
)  # fmt: skip
def test_cells_agree_between_backends(frame: pd.DataFrame, backend: str, by: list[str]) -> None:
    want, before = compress(frame, by, score="value"), frame.copy()
    assert_same(compress(as_backend(frame, backend), by, score="value"), want)
    assert_same(compress(as_backend(frame.sample(frac=1, random_state=3), backend), by, score="value"), want)
    assert want.frame.dtypes.tolist() == frame[by].dtypes.tolist()
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_cells_agree_with_weights_and_transform(frame: pd.DataFrame, backend: str) -> None:
    kwargs: dict[str, Any] = {"score": "value", "transform": np.log, "weights": "weight"}
    want = compress(frame, ["algorithm"], **kwargs)
    assert_same(compress(as_backend(frame, backend), ["algorithm"], **kwargs), want)
    assert set(want.weight) == {0.5, 2.0}
    assert want.frame.columns.tolist() == ["algorithm"]
    of_cells = compress(as_backend(frame, backend), ["weight"], score="value", weights="weight")
    assert of_cells.weight.tolist() == of_cells.frame["weight"].tolist() == [0.5, 2.0]


def test_cells_equal_pandas_group_by(frame: pd.DataFrame) -> None:
    by = ["algorithm", "bench mark [x]", "seed"]
    got = compress(frame, by, score="value")
    want = frame.groupby(by)["value"].agg(["size", "mean", lambda y: ((y - y.mean()) ** 2).sum()])
    want = want.reindex(sorted(want.index, key=lambda key: (key[0], natural_key(key[1]), key[2])))
    assert list(got.frame.itertuples(index=False, name=None)) == want.index.tolist()
    np.testing.assert_array_equal(got.n, want.iloc[:, 0])
    np.testing.assert_allclose(got.mean, want.iloc[:, 1], rtol=1e-14)
    np.testing.assert_allclose(got.ss, want.iloc[:, 2], rtol=1e-12, atol=1e-12)
    assert got.n.dtype == got.mean.dtype == got.ss.dtype == got.weight.dtype == np.float64


def exact(values: np.ndarray) -> tuple[float, float]:
    fractions = [Fraction(float(value)) for value in values]
    mean = sum(fractions) / len(fractions)
    return float(mean), float(sum((value - mean) ** 2 for value in fractions))


@pytest.mark.daily(9)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e8, -1e12])
def test_tiny_noise_on_large_scores_survives(backend: str, offset: float) -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(["a", "b", "c"], 300)
    score = offset + np.repeat([0.0, 1e3, -1e5], 300) + 1e-3 * rng.normal(size=900)
    data = as_backend(pd.DataFrame({"g": groups, "y": score}), backend)
    got = compress(data, ["g"], score="y")
    for i, group in enumerate("abc"):
        mean, ss = exact(score[groups == group])
        assert got.mean[i] == pytest.approx(mean, rel=4e-16)
        assert got.ss[i] == pytest.approx(ss, rel=1e-12)
        assert got.mean[i] == pytest.approx(math.fsum(score[groups == group]) / 300, rel=4e-16)


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_scores_have_no_spread_at_all(backend: str) -> None:
    data = pd.DataFrame({"g": list("aaabbbc"), "y": [0.1] * 3 + [1e99] * 3 + [7.0]})
    got = compress(as_backend(data, backend), ["g"], score="y")
    assert got.ss.tolist() == [0.0, 0.0, 0.0]
    assert got.mean.tolist() == [0.1, 1e99, 7.0]


finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), finite), min_size=1, max_size=60))
def test_cells_reproduce_the_sum_of_squares_about_any_prediction(rows: list[tuple[int, str, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "y"])
    got = compress(frame, ["a", "b"], score="y")
    prediction = {(a, b): a - 2.0 * ord(b) for a, b in zip(got.frame["a"], got.frame["b"], strict=True)}
    from_rows = math.fsum((y - prediction[a, b]) ** 2 for a, b, y in rows)
    from_cells = math.fsum(
        got.ss + got.n * (got.mean - [prediction[key] for key in got.frame.itertuples(index=False, name=None)]) ** 2
    )
    assert from_cells == pytest.approx(from_rows, rel=1e-12)
    assert got.n.sum() == got.n_rows == len(rows)


def test_levels_follow_categories_and_drop_unused_ones() -> None:
    values = ["mid", "low", "high", "low"]
    kind = pd.CategoricalDtype(["low", "unused", "mid", "high"], ordered=True)
    data = pd.DataFrame({"size": pd.Categorical(values, dtype=kind), "y": [1.0, 2, 3, 4]})
    for frame in (data, data.astype({"size": pd.CategoricalDtype(kind.categories)})):
        got = compress(frame, ["size"], score="y").frame["size"]
        assert got.tolist() == ["low", "mid", "high"]
        assert got.cat.categories.tolist() == ["low", "mid", "high"]
        assert got.cat.ordered == frame["size"].cat.ordered
    enum = pl.DataFrame({"size": values, "y": [1.0, 2, 3, 4]}, schema_overrides={"size": pl.Enum(kind.categories)})
    for polars in (enum, enum.lazy()):
        assert compress(polars, ["size"], score="y").frame["size"].tolist() == ["low", "mid", "high"]
    con = duckdb.connect()
    con.sql("create type size as enum ('low', 'unused', 'mid', 'high')")
    con.sql("create table t (size size, y double)")
    con.sql("insert into t values ('mid', 1), ('low', 2), ('high', 3), ('low', 4)")
    got = compress(con.table("t"), ["size"], score="y").frame["size"]
    assert got.tolist() == ["low", "mid", "high"]


def test_dictionary_encoding_is_no_declared_order() -> None:
    values = ["b", "a", "c", "a"]
    encoded = pa.table({"g": pa.array(values).dictionary_encode(), "y": [1.0, 2, 3, 4]})
    polars = pl.DataFrame({"g": values, "y": [1.0, 2, 3, 4]}, schema_overrides={"g": pl.Categorical})
    for data in (encoded, polars, polars.lazy()):
        assert compress(data, ["g"], score="y").frame["g"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_scores_are_counted_and_shown(backend: str) -> None:
    data = pd.DataFrame({"g": list("aabb"), "y": [1.0, np.nan, np.inf, -np.inf]})
    with pytest.raises(DataError) as error:
        compress(as_backend(data, backend), ["g"], score="y")
    text = str(error.value)
    assert text.startswith("3 of 4 rows have a score that is missing or infinite ('y'; ")
    assert "score it as the worst value that is possible" in text
    assert "runs.drop_missing()" in text
    if backend == "pandas":
        assert "first at row 1 (nan), 2 (inf), 3 (-inf), counted from 0" in text


@pytest.mark.parametrize("backend", BACKENDS)
def test_missing_keys_are_refused(backend: str) -> None:
    data = pd.DataFrame({"g": ["a", None, "b", "b"], "x": [1.0, 2, np.nan, 3], "y": [1.0, 2, 3, 4]})
    for column in "gx":
        with pytest.raises(DataError, match=f"The column '{column}' has 1 missing value"):
            compress(as_backend(data, backend), [column], score="y")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_empty_table_is_refused(backend: str) -> None:
    empty = pd.DataFrame({"g": pd.Series([], dtype="str"), "y": pd.Series([], dtype=float)})
    for by in ([], ["g"]):
        refuses(DataError, "The table has no rows", compress, as_backend(empty, backend), by, score="y")


def test_weights_must_be_positive() -> None:
    for bad in (0.0, -1.0, np.inf):
        data = {"g": list("aab"), "y": [1.0, 2, 3], "w": [1.0, bad, bad]}
        with pytest.raises(DataError, match="weights must be positive and finite, but 'w' is not in 2 rows"):
            compress(data, ["g"], score="y", weights="w")
    data = {"g": list("aab"), "y": [1.0, 2, 3], "w": list("xyz")}
    with pytest.raises(DataError, match=r"weights must be a numeric column, but 'w' has type (str|object)"):
        compress(data, ["g"], score="y", weights="w")


def test_a_transformation_that_is_not_defined_is_named() -> None:
    table = {"g": list("aab"), "y": [1.0, 0.0, -2.0]}
    assert refusal(lambda: compress(table, ["g"], score="y", transform=np.log), DataError) == (
        "log of the score is not finite in 2 of 3 rows (for example for the scores 0, -2.000). Choose a "
        "transformation that is defined for all scores, or shift the scores first."
    )
    with pytest.raises(DataError, match="transform must return 2 values, one per row"):
        compress({"g": list("ab"), "y": [1.0, 0.0]}, ["g"], score="y", transform=np.sum)


def test_a_transformation_cannot_write_to_the_data() -> None:
    def spoil(y: np.ndarray) -> np.ndarray:
        y += 1
        return y

    data = pd.DataFrame({"g": list("ab"), "y": [1.0, 2.0]})
    assert compress(data, ["g"], score="y", transform=spoil).mean.tolist() == [2.0, 3.0]
    assert data["y"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("by", "options", "words"),
    [
        (["algoritm"], {}, r"by names the column 'algoritm'.* Did you mean 'algorithm'"),
        (["algorithm"], {"score": "loss"}, "score names the column 'loss'"),
        (["algorithm"], {"weights": "w"}, "weights names the column 'w'"),
    ],
)
def test_columns_that_do_not_exist_are_refused(frame: pd.DataFrame, by: Any, options: Any, words: str) -> None:
    refuses(UnknownColumnError, words, compress, frame, by, **{"score": "value", **options})
    refuses(ArgumentError, "frame must be a dataframe", compress, [1, 2], ["algorithm"], score="value")


def test_columns_that_cannot_be_sorted_are_refused() -> None:
    mixed = pd.DataFrame({"g": pd.Series(["a", 1], dtype=object), "y": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"The column 'g' mixes values of type int and str.*astype\(str\)"):
        compress(mixed, ["g"], score="y")
    lists = pd.DataFrame({"g": [[1], [2]], "y": [1.0, 2.0]})
    refuses(DataError, r"The column 'g' holds values such as \[1\]", compress, lists, ["g"], score="y")


def test_keys_beyond_64_bits_are_renumbered(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"k{i}": rng.integers(0, 50, 500) for i in range(12)} | {"y": rng.normal(size=500)})
    by = [f"k{i}" for i in range(12)]  # 50**12 > 2**62
    got = compress(frame, by, score="y")
    want = frame.groupby(by)["y"].mean()
    assert list(got.frame.itertuples(index=False, name=None)) == want.index.tolist()
    np.testing.assert_array_equal(got.mean, want)
    monkeypatch.setattr(codes, "MAX_KEY", 2000)
    assert_same(compress(frame, by, score="y"), got)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "Int64", "Float64", "int64[pyarrow]"])
def test_scores_of_any_numeric_type(dtype: str) -> None:
    frame = pd.DataFrame({"g": list("aab"), "y": pd.array([1, 2, 3], dtype=dtype)})
    got = compress(frame, ["g"], score="y")
    assert got.mean.tolist() == [1.5, 3.0]
    if dtype[0].isupper():
        frame["y"] = pd.array([1, None, 3], dtype=dtype)
        refuses(DataError, "1 of 3 rows has a score", compress, frame, ["g"], score="y")


def test_runs_and_narwhals_frames_are_accepted(frame: pd.DataFrame) -> None:
    runs = Runs(frame, score="value", direction="minimize", algorithm="algorithm")
    want = compress(frame, ["algorithm"], score="value")
    assert_same(compress(runs, ["algorithm"], score="value"), want)
    assert_same(compress(nw.from_native(frame), ["algorithm"], score="value"), want)
    assert "4 cells of algorithm; 400 rows" in repr(want)
    assert want.to_frame().columns.tolist() == ["algorithm", "n", "weight", "mean", "ss"]


def test_a_lazy_table_is_only_asked_for_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = pl.LazyFrame({"g": ["a", "b"] * 500, "y": np.arange(1000.0)})
    sizes = []
    collected = frames.collected

    def spy(frame: Any) -> Any:
        out = collected(frame)
        sizes.append(len(out))
        return out

    monkeypatch.setattr(frames, "collected", spy)
    compress(lazy, ["g"], score="y")
    assert sizes == [2]


@pytest.fixture(scope="module")
def priorband(data_dir: Path) -> pd.DataFrame:
    return pd.read_parquet(data_dir / "priorband.parquet")


@pytest.mark.parametrize("backend", BACKENDS)
def test_priorband_has_the_same_cells_on_every_backend(priorband: pd.DataFrame, backend: str) -> None:
    by = ["algorithm", "benchmark", "prior"]
    want = compress(priorband, by, score="value")
    assert len(want.n) == 72
    assert set(want.n) == {1200.0}
    assert_same(compress(as_backend(priorband, backend), by, score="value"), want)


@pytest.mark.parametrize("largest", [1e160, 1e300])
def test_scores_whose_squares_no_double_holds_are_refused_before_any_square(largest: float) -> None:
    table = pd.DataFrame({"tool": ["A", "B"] * 4, "loss": np.arange(1.0, 9.0) / 8 * largest})
    for frame in (table, pl.from_pandas(table).lazy()):
        with pytest.raises(DesignError, match=r"^the largest score is .* Give the score in another unit\.$"):
            compress(frame, by="tool", score="loss")
