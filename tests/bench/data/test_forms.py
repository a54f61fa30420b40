"""Tables in the forms in which people have them are read as the table that they were made of; others are left alone."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from levels import first
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.data.column import number_in
from lmemtest.bench.data.forms import Remark, Tidy, is_summary, read_as, tidied
from lmemtest.bench.data.readers import open_table
from lmemtest.core.caller import on_command_line
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

METHODS = ["Ours", "XGBoost", "kNN", "Mean"]  # one is called like a summary
DATA_SETS = ["adult", "bank", "car-2", "01", "eeg"]
ROWS = ["data sets", "methods"]
CELLS = ["plain", "±", "+-", "()", "tex", "bold", "percent", "pairs"]
AROUND = ["", "title", "notes", "title, empty, notes"]
SUMMARIES = ["", "average", "average, rank"]


def truth(seed: int = 3) -> pd.DataFrame:
    """Scores of three digits, a row per data set."""
    scores = np.random.default_rng(seed).uniform(60.0, 99.0, (len(DATA_SETS), len(METHODS))).round(1)
    return pd.DataFrame(scores, index=pd.Index(DATA_SETS, name="dataset"), columns=METHODS)


def as_people_have_it(table: pd.DataFrame, *, cells: str, rows: str, around: str, summaries: str) -> list[list[Any]]:
    """The sheet of a table: how cells are printed, what is in its rows, what is around it, what sums it up."""
    label = "Data set" if rows == "data sets" else "Method"
    table = table if rows == "data sets" else table.T
    best = table.eq(table.max(axis=1), axis=0)

    def printed(row: int, column: int) -> Any:
        x, sd = table.iloc[row, column], 0.1 + 0.1 * ((row + column) % 4)
        forms = {
            "plain": x,
            "±": f"{x:.1f} ± {sd:.1f}",
            "+-": f"{x:.1f}+-{sd:.1f}",
            "()": f"{x:.1f} ({sd:.1f})",
            "tex": f"$\\mathbf{{{x:.1f}}}_{{\\pm {sd:.1f}}}$" if best.iloc[row, column] else f"${x:.1f}\\pm{sd:.1f}$",
            "bold": f"**{x:.1f}**" if best.iloc[row, column] else f"{x:.1f}" if column else f"{x:.1f}*",
            "percent": f"{x:.1f}%",
        }
        return forms[cells]

    names: list[Any] = list(table.columns)
    if cells == "pairs":
        header = [label, *(f"{name}_{part}" for name in names for part in ("mean", "std"))]
        body = [[name, *(v for x in table.loc[name] for v in (x, 0.4))] for name in table.index]
    else:
        header = [label, *names]
        body = [[name, *(printed(i, j) for j in range(len(names)))] for i, name in enumerate(table.index)]
    if "average" in summaries:
        header, body = _with_averages(table, header, body, rows, cells)
    if "rank" in summaries and rows == "methods":
        ranks = table.rank(ascending=False).mean(axis=1).round(2)
        header = [*header, "Avg. Rank"]
        body = [[*row, rank] for row, rank in zip(body, ranks, strict=True)]
    width = len(header)
    above = [["Table 2: accuracy (%), tuned", *[None] * (width - 1)], [None] * width] if "title" in around else []
    below = [["Note: mean and standard deviation of 5 runs", *[None] * (width - 1)]] if "notes" in around else []
    if "empty" in around:
        body = [*body[:2], [None] * width, *body[2:]]
    return [*above, header, *body, *below]


def _with_averages(
    table: pd.DataFrame, header: list[Any], body: list[list[Any]], rows: str, cells: str
) -> tuple[list[Any], list[list[Any]]]:
    """Averages over data sets, rounded, in a column or a row."""
    if rows == "methods":
        means = table.mean(axis=1).round(1)
        return [*header, "Avg."], [[*row, mean] for row, mean in zip(body, means, strict=True)]
    means = [f"{mean:.1f}%" if cells == "percent" else mean for mean in table.mean(axis=0).round(1)]
    parts = [v for mean in means for v in (mean, 0.4)] if cells == "pairs" else means
    return header, [*body, ["Average", *parts]]


def written(sheet: list[list[Any]], path: Path) -> Path:
    """The sheet as a file."""
    if path.suffix == ".xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in sheet:
            book.active.append(row)
        book.save(path)
        return path
    texts = [["" if cell is None else str(cell) for cell in row] for row in sheet]
    if path.suffix == ".csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(texts)
        path.write_text(out.getvalue())
        return path
    head = next(place for place, row in enumerate(texts) if len([c for c in row if c]) > 1)
    lines = [" ".join(row).strip() for row in texts[:head]]
    rows = [row for row in texts[head:] if any(row)]
    table = [row for row in rows if len([c for c in row if c]) > 1]
    lines += [" | ".join(table[0]), "|".join(["---"] * len(table[0])), *(f"| {' | '.join(row)} |" for row in table[1:])]
    lines += ["", *(row[0] for row in rows if row not in table)]
    path.write_text("\n".join(lines))
    return path


def of_file(path: Path) -> tuple[pd.DataFrame, Tidy]:
    """The table that is read, a row per data set, and how."""
    tidy = open_table(path).tidy(wide=True)
    runs = lt.Runs.from_wide(tidy, direction="maximize")
    wide = runs.to_frame().pivot(index=runs.benchmark, columns=runs.algorithm, values="score")
    wide.index = wide.index.map(lambda name: str(name).rjust(2, "0"))  # 01 is the number 1 where no role is known
    return wide.loc[DATA_SETS, METHODS], tidy


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("suffix", "rows", "start"),
    [(suffix, rows, 2 * i + j) for i, suffix in enumerate([".csv", ".xlsx", ".md"]) for j, rows in enumerate(ROWS)],
)
@pytest.mark.parametrize("step", first([25, 5]))  # coprime to the number of cells, surroundings and summaries
def test_every_form_is_read_as_the_table_that_it_was_made_of(tmp_path, suffix, rows, start, step):
    table = truth()
    for cells, around, summaries in list(itertools.product(CELLS, AROUND, SUMMARIES))[start::step]:
        sheet = as_people_have_it(table, cells=cells, rows=rows, around=around, summaries=summaries)
        found, tidy = of_file(written(sheet, tmp_path / f"table{suffix}"))
        form = f"{cells}, {rows} in rows, {around}, {summaries}: {read_as(tidy.remarks)}"
        np.testing.assert_array_equal(found.to_numpy(), table.to_numpy(), err_msg=form)
        codes = {remark.code for remark in tidy.remarks}
        said = {"plain": set(), "bold": {"markup"}, "percent": {"percent"}, "pairs": {"mean_columns"}}
        wanted = said.get(cells, {"spread"}) | ({"methods_in_rows"} if rows == "methods" else set())
        wanted |= {"summary_columns" if rows == "methods" else "summary_rows"} if summaries else set()
        if suffix != ".md":
            wanted |= {"title"} & set(around.split(", ")) | ({"footer"} if "notes" in around else set())
        assert wanted <= codes, form
        assert codes <= wanted | {"empty", "not_summaries", "markup"}, form


def test_numbers_are_read_as_they_are_printed_or_not_at_all() -> None:
    right = {
        "85.3 ± 0.4": (85.3, 0.4),
        "$85.3_{\\pm 0.4}$": (85.3, 0.4),
        "\\textbf{85.3} $\\pm$ 0.4": (85.3, 0.4),
        "\\underline{\\textbf{85.3}}": (85.3, np.nan),
        "85.3\\,$\\pm$\\,0.4": (85.3, 0.4),
        "85.3 (±0.4)": (85.3, 0.4),
        "0.91 [0.85, 0.97]": (0.91, 0.06),
        "−0.4 ± 0.1": (-0.4, 0.1),
        "1e-3 ± 1e-4": (0.001, 0.0001),
        "85.3^{*}": (85.3, np.nan),
        "85.3†": (85.3, np.nan),
        "<b>0.9</b>": (0.9, np.nan),
        "91.3 %": (91.3, np.nan),
        "91.3% ± 0.2%": (91.3, 0.2),
        "-": (np.nan, np.nan),
        "inf": (np.inf, np.nan),
    }
    for text, wanted in right.items():
        found = number_in(text)
        assert found is not None, text
        np.testing.assert_allclose(found[1:], wanted, rtol=1e-12, err_msg=text)
    for text in (
        "85.3 2", "85.3*2", "85.3^{2}", "85{4}", "85.3<sup>1</sup>", "1_0", "1,234", "±0.3", "0.4 - 0.5", "x1",
    ):  # fmt: skip
        assert number_in(text) is None, text


def test_summaries_are_told_by_their_values() -> None:
    x = np.random.default_rng(1).uniform(0.5, 1.0, (5, 8)).round(3)
    table = pd.DataFrame(x)
    ranks = table.rank(ascending=False)
    summaries = {
        "mean": x.mean(axis=1).round(3),
        "median": np.median(x, axis=1).round(2),
        "sum": x.sum(axis=1).round(1),
        "geometric": np.exp(np.log(x).mean(axis=1)),
        "sd": x.std(axis=1, ddof=1).round(3),
        "mean rank": ranks.mean(axis=1).round(1).to_numpy(),
        "rank of means": table.mean(axis=1).rank(ascending=False).to_numpy(),
        "rank of means, high last": table.mean(axis=1).rank().to_numpy(),
        "wins": (ranks == 1).sum(axis=1).to_numpy(dtype=float),
    }
    for name, values in summaries.items():
        assert is_summary(values, x), name
        worse = values.copy()
        worse[2] += 1.5
        assert not is_summary(worse, x), name
    assert not is_summary(x[:, 0], x[:, 1:])
    assert not is_summary(np.array([0.9, 0.6, 0.1]), np.array([[0.3, 0.5], [0.3, 0.5], [0.2, 0.5]]))  # ties
    assert not is_summary(x[:, 0], x[:, :1])


@pytest.mark.level(2)
def test_a_method_is_hardly_ever_taken_for_a_summary_and_a_mean_hardly_ever_for_a_method() -> None:
    rng, wrong, right = np.random.default_rng(8), [], []
    for rows, columns, decimals in [(2, 3, 2), (5, 2, 1), (12, 4, 3), (30, 3, 0)] * 75:
        x = rng.uniform(0.0, 1.0, (rows, columns + 1)).round(decimals)
        wrong.append(is_summary(x[:, 0], x[:, 1:]))
        right.append(is_summary(x[:, 1:].mean(axis=1).round(decimals + 1), x[:, 1:]))
    assert np.mean(wrong) <= 0.02
    assert np.mean(right) >= 0.93


# -------------------------------------------------------------------------------------------------- left as they are


def ordinary() -> dict[str, pd.DataFrame]:
    """Tables in which nothing is to be read as something else, though names look like it."""
    long = pd.DataFrame(list(itertools.product("AB", ["d1", "d2", "d3"], [1, 2])), columns=["model", "task", "seed"])
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=len(long))
    wide = pd.DataFrame({"dataset": ["a", "b", "c"], "Mu": [0.1, 0.5, 0.3], "SGD": [0.2, 0.3, 0.4]})
    return {
        "long": long.assign(acc=scores),
        "index": long.assign(acc=scores).rename_axis("run"),
        "settings in percent": long.assign(noise=["10%", "20%"] * 6, acc=scores),
        "brackets in names": long.assign(task=["2017 (3)", "2018 (1)", "1*"] * 4, acc=scores),
        "several metrics": long.assign(mean_time=scores, min_loss=scores, f1=scores),
        "a spread alone": long.assign(score_std=scores, acc=scores),
        "no spread": long.assign(x=scores, x_mean=scores, x_sd=-scores - 0.1),
        "metrics of methods": pd.DataFrame({"Method": list("abc"), "acc": [0.1, 0.2, 0.3], "f1": [0.4, 0.6, 0.5]}),
        "data sets": wide,
        "one is called se": wide.assign(SGD_se=[0.1, 0.2, 0.3], Adam=[0.4, 0.5, 0.6]),
        "means alone": pd.DataFrame({"dataset": list("ab"), "A_mean": [0.1, 0.3], "B_mean": [0.2, 0.5]}),
        "names of answers": pd.DataFrame({"gpt (function)": [0, 1, 1], "llama-task": [1, 0, 1]}),
    }


@pytest.mark.parametrize("name", list(ordinary()))
def test_ordinary_tables_are_left_alone(name: str) -> None:
    table = ordinary()[name]
    before = table.copy()
    tidy = tidied(table)
    assert tidy.remarks == (), read_as(tidy.remarks)
    pd.testing.assert_frame_equal(tidy.frame, table.reset_index() if name == "index" else table)
    pd.testing.assert_frame_equal(table, before)


def test_a_table_that_is_read_is_not_changed() -> None:
    table = pd.DataFrame({"Method": ["RF", "NN"], "iris": ["0.9 ± 0.1", "0.8 ± 0.1"], "wine": ["0.7", "-"]})
    before = table.copy()
    runs = lt.Runs.from_wide(table, direction="maximize")
    pd.testing.assert_frame_equal(table, before)
    assert (runs.algorithm, runs.benchmark, runs.algorithms) == ("Method", "benchmark", ("NN", "RF"))
    assert runs.notes == (
        "Read as: means in 2 cells such as '0.9 ± 0.1', without what stands behind them; "
        "methods in rows ('Method') and data sets in columns (iris and wine).",
    )
    assert runs.to_frame()["score"].isna().sum() == 1


def test_a_method_that_is_called_like_a_summary_stays_and_is_named() -> None:
    table = truth().reset_index()
    tidy = tidied(table, wide=True)
    assert [(remark.code, remark.names) for remark in tidy.remarks] == [("not_summaries", ("Mean",))]
    assert "Mean" in tidy.frame.columns
    forecasts = pd.DataFrame({"dataset": list("abc"), "mean": [0.9, 0.6, 0.1], "VAR": [0.3, 0.3, 0.2], "ETS": 0.5})
    assert lt.Runs.from_wide(forecasts, direction="minimize").algorithms == ("ETS", "VAR", "mean")
    both = tidied(table.assign(Average=table[METHODS].mean(axis=1).round(2)), wide=True)
    assert "Average" not in both.frame
    assert "Mean" in both.frame


def test_averages_among_the_rows_of_a_long_table_are_left_out(tmp_path: Path) -> None:
    long = truth().reset_index().melt("dataset", var_name="method", value_name="acc")
    means = long.groupby("method")["acc"].mean().round(1).reset_index().assign(dataset="Average")
    path = tmp_path / "a.csv"
    pd.concat([long, means]).to_csv(path, index=False)
    runs = lt.read_runs(path, score="acc", direction="maximize", algorithm="method", benchmark="dataset")
    assert set(runs.levels("dataset")) == set(DATA_SETS)
    assert "Mean" in runs.algorithms
    assert runs.notes == ("Read as: the row 'Average' left out, which sums up other rows.",)
    pd.concat([long, means.assign(acc=5.0)]).to_csv(path, index=False)
    runs = lt.read_runs(path, score="acc", direction="maximize", algorithm="method", benchmark="dataset")
    assert "Average" in runs.levels("dataset")


# ------------------------------------------------------------------------------------------------ methods in rows


@pytest.mark.parametrize("label", ["Method", "model", "algorithm", "Agent", "systems", "Unnamed: 0", "", "x"])
def test_data_sets_are_never_compared(label: str) -> None:
    table = truth().T.rename_axis(label).reset_index()
    for methods in (None, "rows"):
        runs = lt.Runs.from_wide(table, direction="maximize", methods=methods)
        assert set(runs.algorithms) == set(METHODS), label
        assert len(runs.levels(runs.benchmark)) == len(DATA_SETS)
        assert "methods in rows" in runs.notes[0]
    indexed = lt.Runs.from_wide(table.set_index(label), direction="maximize")
    assert set(indexed.algorithms) == set(METHODS)


def test_methods_in_rows_are_ranked() -> None:
    assert lt.rank(truth().T.rename_axis("x").reset_index(), direction="maximize").blocks.algorithms[0] in METHODS


def test_the_caller_decides_where_the_methods_are() -> None:
    table = pd.DataFrame({"x": ["p", "q", "r"], "u": [0.1, 0.2, 0.4], "v": [0.3, 0.1, 0.2]})
    unsure = tidied(table, wide=True)
    assert (unsure.methods, unsure.certain) == ("columns", False)
    assert read_as(unsure.remarks) == "Read as: methods in columns (u and v) and data sets in rows ('x')."
    turned = unsure.laid_out("rows")
    assert read_as(turned.remarks) == "Read as: methods in rows ('x') and data sets in columns (u and v)."
    assert turned.roles == {"algorithm": "x"}
    assert lt.Runs.from_wide(turned, direction="maximize").algorithms == ("p", "q", "r")
    assert lt.Runs.from_wide(table, direction="maximize", algorithm="x").algorithms == ("p", "q", "r")
    assert lt.Runs.from_wide(table, direction="maximize", benchmark="x").notes == ()
    paper = table.rename(columns={"x": "Method"})
    assert lt.Runs.from_wide(paper, direction="maximize", methods="columns").algorithms == ("u", "v")
    with pytest.raises(
        ArgumentError, match=r"benchmark names the column 'x', but with methods in rows .* algorithm='x'"
    ):
        lt.Runs.from_wide(table, direction="maximize", methods="rows", benchmark="x")
    with pytest.raises(ArgumentError, match="methods must be 'columns' or 'rows', got 'row'"):
        lt.Runs.from_wide(table, direction="maximize", methods="row")
    lazy = pytest.importorskip("polars").from_pandas(table).lazy()
    found = lt.Runs.from_wide(lazy, direction="maximize", algorithm="x", methods="rows")
    assert (found.is_lazy, found.algorithms) == (True, ("p", "q", "r"))


@pytest.mark.parametrize("label", ["model", "algorithm", "task"])
def test_the_rows_of_a_lazy_wide_table_are_told_as_those_of_one_in_memory(label):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({label: ["p", "q", "r"], "d1": [0.1, 0.2, 0.3], "d2": [0.2, 0.3, 0.1]})
    lazy, eager = (lt.Runs.from_wide(t, direction="maximize") for t in (table.lazy(), table))
    assert lazy.is_lazy
    assert lazy.roles() == eager.roles()
    assert lazy.algorithms == eager.algorithms == (("d1", "d2") if label == "task" else ("p", "q", "r"))
    assert lazy.notes == eager.notes


def test_a_lazy_wide_table_with_cells_as_in_papers_is_not_taken_for_one_with_fewer_algorithms():
    lazy = pytest.importorskip("polars").LazyFrame(
        {"p": [0.1, 0.2], "q": [0.2, 0.3], "r": ["0.81 ± 0.02", "0.75 ± 0.03"]}
    )
    with pytest.raises(DataError, match="this one must be read first") as caught:
        lt.Runs.from_wide(lazy, direction="maximize")
    assert "Read as: means in 2 cells" in str(caught.value)
    assert "df.collect()" in str(caught.value)


def test_a_table_of_polars_with_cells_as_in_papers_is_recognised_as_wide_as_one_of_pandas_is():
    table = pd.DataFrame({"task": list("abcd"), "p": ["0.81 ± 0.02", "0.7 ± 0.1", "0.66 ± 0.1", "0.7 ± 0.2"]})
    table["q"] = ["0.71 ± 0.02", "0.69 ± 0.1", "0.6 ± 0.1", "0.65 ± 0.2"]
    polars = pytest.importorskip("polars").from_pandas(table)
    ours, theirs = (lt.analyze(t, direction="maximize").summary() for t in (polars, table))
    assert ours == theirs


def test_methods_in_rows_may_have_seeds() -> None:
    table = pd.concat([truth(seed).T.rename_axis("Method").reset_index().assign(seed=seed) for seed in (1, 2)])
    runs = lt.Runs.from_wide(table, direction="maximize", seed="seed")
    assert runs.n_rows == 2 * len(METHODS) * len(DATA_SETS)
    assert runs.check().cells["duplicates"].sum() == 0
    with pytest.raises(DataError, match=r"must name each method once, but 'Ours'.* \(seed\)"):
        lt.Runs.from_wide(table.drop(columns="seed"), direction="maximize")


def test_two_rows_of_a_header_are_one(tmp_path: Path) -> None:
    table = truth()
    above = ["dataset", *(part for name in METHODS for part in (name, None))]
    below = [None, *("mean", "std") * len(METHODS)]
    body = [[name, *(v for x in table.loc[name] for v in (x, 0.1))] for name in DATA_SETS]
    for suffix in (".xlsx", ".csv"):
        found, tidy = of_file(written([above, below, *body], tmp_path / f"a{suffix}"))
        np.testing.assert_array_equal(found.to_numpy(), table.to_numpy())
        assert [remark.code for remark in tidy.remarks][:2] == ["header", "mean_columns"]
    levels = pd.MultiIndex.from_product([METHODS, ["mean", "std"]])
    frame = pd.DataFrame([row[1:] for row in body], index=table.index, columns=levels)
    assert set(lt.Runs.from_wide(frame, direction="maximize").algorithms) == set(METHODS)


# ---------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"d": ["a", "b"], "A": ["91%", "0.9"], "B": ["90%", "80%"]},
         r"'A' mixes percent signs \(1 cell, such as '91%'"),
        ({"d": ["a", "b"], "A": ["91%", "93%"], "B": [0.9, 0.8]}, "'A' have percent signs and 'B' have none"),
        ({"d": ["a", "b"], "A": [0.5, 0.4], "B": ["0.4", "OOM"]},
         r"'B' must hold numbers, but 1 cell of 2 holds words \('OOM' 1\)\. .*: failed='OOM'"),
        ({"Method": ["a", "b"], "Venue": ["x", "y"], "d1": [1, 2], "d2": [2, 3]}, r"'Method', 'Venue' hold no numbers"),
        ({"Method": ["a", "b"], "Avg.": [0.5, 0.7], "Rank": [2, 1]},
         "called like summaries, and no others hold scores"),
        ({"Method": ["a", "b", "a"], "d1": [1, 2, 3], "d2": [2, 3, 4]}, "must name each method once, but 'a' stands"),
        ({"d": ["a", "b"], "A_mean": [1.0, 2.0], "A_std": [0.1, 0.1]}, "but there is one: A")
    ]
)  # fmt: skip
def test_what_is_unclear_is_refused(table: dict[str, Any], message: str) -> None:
    refuses(DataError, message, lt.Runs.from_wide, pd.DataFrame(table), direction="maximize")


def test_half_of_the_cells_with_a_spread_are_means_all_the_same() -> None:
    table = pd.DataFrame({"data": ["a", "b"], "A": ["0.5 ± 0.1", "0.4"], "B": [0.3, 0.2]})
    tidy = tidied(table, wide=True)
    assert tidy.frame["A"].tolist() == [0.5, 0.4]
    assert tidy.remarks[0] == Remark("spread", ("A",), 1, "0.5 ± 0.1")


# --------------------------------------------------------------------------------------------------- words for failures


def test_words_stand_for_failed_runs(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool,task,time\nA,x,1.5\nA,y,TIMEOUT\nB,x,oom\nB,y,2\nC,x,3\nC,y,\n")
    roles: dict[str, Any] = {"score": "time", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    with pytest.raises(
        DataError, match=r"2 cells of 5 hold words \('TIMEOUT' 1, 'oom' 1\).*failed=\['TIMEOUT', 'oom'\]"
    ):
        lt.read_runs(path, **roles)
    runs = lt.read_runs(path, **roles, failed=["timeout", "OOM"])
    assert runs.failed == "missing"
    assert runs.notes == ("Read as: failed runs in 3 cells ('TIMEOUT' 1, 'oom' 1, empty 1).",)
    assert runs.score_failures("worst").to_frame()["time"].tolist() == [1.5, 2.0, 3.0, 2.0, 3.0, 2.0]
    with pytest.raises(UnknownColumnError, match=r"names 'TIMEOT', .* nor a word in a cell of scores"):
        lt.read_runs(path, **roles, failed=["TIMEOUT", "oom", "TIMEOT"])
    refuses(ArgumentError, "must be one column, or words", lt.read_runs, path, **roles, failed=["task", "oom"])
    wide = pd.DataFrame({"task": ["x", "y"], "A": [1.5, None], "B": ["oom", 2]})
    assert lt.Runs.from_wide(wide, direction="minimize", failed="oom").notes[0].endswith("('oom' 1, empty 1).")


# ---------------------------------------------------------------------------------------------------------- files


def test_the_sheet_with_the_table_is_taken_or_asked_for(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "README"
    book.active.append(["do not read"])
    for name in ("runs", "old"):
        sheet = book.create_sheet(name)
        for row in [["tool", "task", "loss"], ["A", "x", 1 + (name == "old")], ["B", "x", 2]]:
            sheet.append(row)
    path = tmp_path / "a.xlsx"
    book.save(path)
    roles: dict[str, Any] = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    with pytest.raises(DataError, match=r"3 sheets \(1 'README', 2 'runs', 3 'old'\).*'runs', 'old'.*sheet='runs'"):
        lt.read_runs(path, **roles)
    assert lt.read_runs(path, **roles, sheet="old").to_frame()["loss"].tolist() == [2, 2]
    assert lt.read_runs(path, **roles, sheet=2).to_frame()["loss"].tolist() == [1, 2]
    refuses(ArgumentError, "has no sheet 9", lt.read_runs, path, **roles, sheet=9)
    del book["old"]
    book.save(path)
    assert lt.read_runs(path, **roles).notes == ("Read as: the sheet 'runs', one of 2.",)
    (tmp_path / "a.csv").write_text("tool,task,loss\nA,x,1\nB,x,2\n")
    with pytest.raises(ArgumentError, match=r"sheet is for \.xlsx, \.md and \.tex"):
        lt.read_runs(tmp_path / "a.csv", **roles, sheet=1)


TEX = r"""
\begin{table} % of the paper
\begin{tabular*}{\textwidth}{@{\extracolsep{\fill}}lcc}
\toprule
Method & \multicolumn{2}{c}{skipped} \\
Method & CIFAR-10 (\%) & SVHN \\ \cmidrule(lr){2-3}
ERM~\cite[p.~2]{x} & 91.2 $\pm$ 0.3 & 95.1 \\[2pt]
\rowcolor{gray!10} \textbf{Our \emph{best}} & \textbf{93.1}$_{\pm 0.2}$ & $\mathbf{96.0}$ \\
A \& B & 90.0 & -- \\
\bottomrule
\end{tabular*}
\end{table}
"""


def test_a_latex_table_is_read_as_it_is_pasted(tmp_path: Path) -> None:
    path = tmp_path / "t.tex"
    path.write_text(TEX.replace(r"Method & \multicolumn{2}{c}{skipped} \\" + "\n", ""))
    runs = lt.Runs.from_wide(open_table(path).read(), direction="maximize", failed="missing")
    scores = runs.to_frame().set_index(["Method", "benchmark"])["score"]
    assert runs.algorithms == ("A & B", "ERM", "Our best")
    assert scores["Our best"].to_dict() == {"CIFAR-10 (%)": 93.1, "SVHN": 96.0}
    assert (scores["ERM", "CIFAR-10 (%)"], scores["ERM", "SVHN"]) == (91.2, 95.1)
    assert np.isnan(scores["A & B", "SVHN"])
    two = (
        r"\begin{tabular}{lrrrr} & \multicolumn{2}{c}{RF} & \multicolumn{2}{c}{NN} \\ data & mean & std & mean & std \\"
    )
    rows = "".join(rf"\hline {name} & 0.{i} & 0.01 & 0.{i + 1} & 0.02 \\" for i, name in enumerate("abc"))
    path.write_text(two + rows + r"\end{tabular}")
    assert lt.Runs.from_wide(open_table(path).read(), direction="maximize").algorithms == ("NN", "RF")
    path.write_text(r"\begin{tabular}{l} a & b \\ " * 3)  # without an end
    with pytest.raises(DataError, match="has no LaTeX table"):
        open_table(path).read()
    path.write_text(r"\begin{tabular}{lr} tool & y \\ a & 1 & 2 \\ b & 1 \\ \end{tabular}")
    with pytest.raises(
        DataError, match=r"has a row of 3 cells below a header of 2: 'a \| 1 \| 2'\. Write & within a cell"
    ):
        open_table(path).read()


def test_names_in_markdown_are_without_the_marks_that_make_them_bold(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("**tool** | loss\n--|--\n**Ours** | **0.5**\n_A_B | 1\n")
    assert open_table(path).read().iloc[:, 0].tolist() == ["Ours", "_A_B"]


def test_two_rows_of_names_of_which_the_upper_ones_are_scores_are_said(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["data", "accuracy", None, "f1", None],
        [None, "A", "B", "A", "B"],
        ["x", 1, 2, 3, 4],
        ["y", 1, 2, 3, 4],
    ):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="two rows of names, 'accuracy', 'f1' above A, B, A, B") as error:
        open_table(tmp_path / "a.xlsx").read()
    assert "keep the columns below 'accuracy'" in str(error.value)


def test_markdown_has_bars_or_none_at_its_ends_and_may_hold_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Results\n\ntool | loss\n:-- | --:\nA\\|B | **0.5**\nC | 1\n\ntext\n")
    runs = lt.read_runs(path, score="loss", direction="minimize", algorithm="tool")
    assert dict(zip(runs.to_frame()["tool"], runs.to_frame()["loss"], strict=True)) == {"A|B": 0.5, "C": 1.0}
    path.write_text(path.read_text() + "\n|x|y|\n|-|-|\n|a|3|\n")
    with pytest.raises(DataError, match=r"2 tables \(1 'tool, loss', 2 'x, y'\).*several hold a table"):
        lt.read_runs(path, score="loss", direction="minimize", algorithm="tool")
    assert open_table(path, sheet="2").read().columns.tolist() == ["x", "y"]
    path.write_text("no table | here")
    refuses(DataError, "has no Markdown table", open_table(path).read)
    path.write_text("|a|b|\n|-|-|\n|1|2|3|\n")
    refuses(DataError, "row of 3 cells below a header of 2", open_table(path).read)


def test_data_rows_at_the_end_are_no_notes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("dataset,A,B\nx,1,2\ny,2,3\nz,,\n")
    assert open_table(path).tidy(wide=True).frame["dataset"].tolist() == ["x", "y", "z"]
    path.write_text("dataset,A,B\nx,1,2\ny,2,3\n\n* not tuned,,\n")
    tidy = open_table(path).tidy(wide=True)
    assert tidy.frame["dataset"].tolist() == ["x", "y"]
    assert [remark.code for remark in tidy.remarks] == ["footer"]


def test_values_within_values_become_columns_or_are_named(tmp_path: Path) -> None:
    records = [
        {
            "model": m,
            "task": t,
            "info": {"reward": 0.1 * i, "deep": {"x": 1}},
            "traj": [{"role": "user"}],
            "acc": 0.5 + i,
        }
        for i, (m, t) in enumerate(itertools.product("ab", "uv"))
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    tidy = open_table(path).tidy()
    assert tidy.frame.columns.tolist() == ["model", "task", "info.reward", "acc"]
    assert [(remark.code, remark.names) for remark in tidy.remarks] == [
        ("nested", ("info",)),
        ("lists", ("info.deep", "traj")),
    ]
    mixed = tidied(pd.DataFrame({"m": ["a", "b"], "x": [{"y": 1}, 2], "acc": [0.1, 0.2]}))
    assert mixed.remarks == (Remark("lists", ("x",)),)
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [{"id": 0}]}))
    refuses(DataError, r"lists or objects in the column 'samples', and no score for each run", open_table(path).tidy)
    table = truth().reset_index()
    for orient in ("columns", "records"):
        path.write_text(table.to_json(orient=orient, indent=1))
        pd.testing.assert_frame_equal(open_table(path).read(), table, check_dtype=False)
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [{"id": 0}]}, indent=1))
    refuses(DataError, "lists or objects in the column 'samples'", open_table(path).tidy)
    kept = tidied(pd.DataFrame({"m": ["a", "b"], "x": [[1], [2]], "acc": [0.1, 0.2]}), kept=["x"]).frame
    with pytest.raises(DataError, match="The column 'x' holds a list in each row"):
        lt.Runs(kept, score="acc", direction="maximize", algorithm="m", seed="x")


# ------------------------------------------------------------------------------------------------------ duplicates


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_duplicates_are_counted_and_dropped(backend: str) -> None:
    table = pd.DataFrame(
        [("A", "x", 1, 0.5), ("A", "x", 1, 0.5), ("B", "x", 1, 0.2), ("A", "x", 2, 0.1), ("B", "x", 1, 0.4)],
        columns=["tool", "task", "seed", "loss"],
    )
    if backend == "polars":
        frame = pytest.importorskip("polars").from_pandas(table)
    elif backend == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(table)
    else:
        frame = table
    runs = lt.Runs(frame, score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed")
    for keep, last in (("first", 0.2), ("last", 0.4), ("mean", 0.3)):
        found = runs.drop_duplicates(keep)
        scores = found.to_frame().set_index(["tool", "seed"])["loss"].round(12)
        assert scores.to_dict() == {("A", 1): 0.5, ("B", 1): last, ("A", 2): 0.1}
        assert "2 of 5 rows repeat a run (the same tool, task and seed): 1 exact copies and 1 with" in found.notes[0]
    assert runs.drop_duplicates("first").drop_duplicates("last").n_rows == 3
    refuses(ArgumentError, "drop_duplicates must be 'first' or 'last' or 'mean'", runs.drop_duplicates, "any")


def test_no_mean_of_a_failed_run() -> None:
    table = {"tool": ["A", "A", "B"], "task": ["x"] * 3, "loss": [0.5, None, 0.1]}
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task", failed="missing")
    assert runs.drop_duplicates("first").score_failures("worst").n_rows == 2
    refuses(DataError, "needs the scores of all rows of a run", runs.drop_duplicates, "mean")
    polars = pytest.importorskip("polars")
    lazy = lt.Runs(polars.DataFrame(table).lazy(), **runs.roles())
    refuses(ArgumentError, "needs a table in memory", lazy.drop_duplicates, "first")


def test_rows_that_share_a_label_of_the_index_are_left_out_one_by_one() -> None:
    """`concat` gives a row of averages the label of the first row, which stays."""
    scores = pd.DataFrame({"dataset": ["a", "b", "c"], "RF": [0.71, 0.84, 0.93], "NN": [0.65, 0.87, 0.9]})
    means = {"dataset": "Average", **scores[["RF", "NN"]].mean()}
    both = pd.concat([scores, pd.DataFrame([means])])
    assert both.index.tolist() == [0, 1, 2, 0]
    assert tidied(both).frame["dataset"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(("names", "what"), [("dataset", "algorithms"), ("model", "data sets")])
def test_columns_of_measures_are_not_averaged(names: str, what: str) -> None:
    table = pd.DataFrame({names: list("abcd"), "accuracy": [0.8, 0.7, 0.9, 0.8], "f1": 0.7, "auc": 0.9})
    with pytest.raises(DataError, match=f"^accuracy, f1, auc have the names of measures, not of {what}, "):
        lt.analyze(table, direction="maximize")
    with on_command_line(), pytest.raises(DataError, match=rf"if they are {what}, give them other names"):
        lt.Runs.from_wide(table, direction="maximize")


def test_columns_called_like_measures_are_methods_where_one_says_so() -> None:
    table = pd.DataFrame({"task": list("abcd"), "log_loss": [1.0, 2, 3, 4], "focal loss": 1.1, "RF": 1.5, "NN": 2.0})
    assert len(lt.Runs.from_wide(table, direction="minimize").levels("algorithm")) == 4  # as many others
    named = lt.Runs.from_wide(table, direction="minimize", algorithms=["log_loss", "focal loss"])
    assert [*named.levels("algorithm")] == ["focal loss", "log_loss"]


# ---------------------------------------------------------------------- true and false; names of rows beside algorithms

RIGHT = pd.DataFrame({"task": ["a", "b", "c"], "A": [True, False, True], "B": [False, False, True]})


def as_given(table: pd.DataFrame, library: str) -> Any:
    if library == "pandas":
        return table
    frame = pytest.importorskip("polars").from_pandas(table)
    return frame.lazy() if library == "lazy" else frame


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy"])
def test_wide_answers_that_are_true_or_false_are_ones_and_zeros(library):
    runs = lt.Runs.from_wide(as_given(RIGHT, library), direction="maximize")
    of_numbers = lt.Runs.from_wide(RIGHT.astype({"A": int, "B": int}), direction="maximize")
    keys = ["task", "algorithm"]
    got, want = (r.to_frame().sort_values(keys).reset_index(drop=True) for r in (runs, of_numbers))
    pd.testing.assert_frame_equal(got, want, check_dtype=False)
    assert runs.is_lazy == (library == "lazy")
    assert runs.notes == ("Read as: true and false as 1 and 0 in 'A' and 'B'.",)


def test_a_missing_answer_beside_true_and_false_is_a_missing_score():
    table = RIGHT.astype(object)
    table.loc[1, "B"] = None
    scores = lt.Runs.from_wide(table, direction="maximize").to_frame()["score"]
    np.testing.assert_array_equal(scores, [1, 0, 1, 0, np.nan, 1])


def test_true_and_false_beside_other_scores_is_no_algorithm_unless_it_is_named():
    table = RIGHT.assign(C=[0.1, 0.2, 0.3])
    with pytest.raises(
        DataError, match="True and false in 'A', 'B' and other numbers in 'C' are no scores of one kind"
    ):
        lt.Runs.from_wide(table, direction="maximize")
    runs = lt.Runs.from_wide(table, direction="maximize", algorithms=["A", "C"])
    assert runs.to_frame()["score"].tolist() == [1.0, 0.0, 1.0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy"])
@pytest.mark.parametrize("names", [["a", "b", "c"], [10, 20, 30]])
def test_beside_named_algorithms_the_one_column_that_names_every_row_is_taken_and_said(names, library):
    table = as_given(RIGHT.assign(task=names, A=[0.1, 0.2, 0.3], B=[0.2, 0.3, 0.5]), library)
    runs = lt.Runs.from_wide(table, direction="maximize", algorithms=["A", "B"])
    assert (runs.benchmark, list(runs.study.names("benchmark"))) == ("task", names)
    assert runs.notes == ("Read as: rows by their names in 'task'.",)


@pytest.mark.parametrize(
    "change",
    [{"task": ["a", "a", "b"]}, {"more": ["x", "y", "z"]}, {"task": [0.5, 1.5, 2.5]}],
    ids=["twice", "two columns", "numbers"],
)
def test_rows_are_numbered_where_no_column_plainly_names_them(change):
    table = RIGHT.assign(A=[0.1, 0.2, 0.3], B=[0.2, 0.3, 0.5], **change)
    assert lt.Runs.from_wide(table, direction="maximize", algorithms=["A", "B"]).benchmark == "row"


def test_named_algorithms_stay_in_columns_where_the_names_of_rows_are_those_of_methods():
    table = pd.DataFrame({"model": ["a", "b", "c"], "iris": [0.1, 0.2, 0.3], "wine": [0.2, 0.3, 0.5]})
    runs = lt.Runs.from_wide(table, direction="maximize", algorithms=["iris", "wine"])
    assert (runs.algorithms, runs.benchmark) == (("iris", "wine"), "row")


@pytest.mark.parametrize("roles", [{"benchmark": "task"}, {}, {"algorithms": ["A", "B"], "benchmark": "task"}])
def test_a_lazy_table_of_cells_as_in_papers_says_how_it_is_read(roles):
    cells = {"task": ["a", "b"], "A": ["0.81 ± 0.02", "0.7 ± 0.1"], "B": ["0.8 ± 0.02", "0.72 ± 0.1"]}
    with pytest.raises(DataError, match=r"Bring it to memory, as by df\.collect\(\)"):
        lt.Runs.from_wide(as_given(pd.DataFrame(cells), "lazy"), direction="maximize", **roles)
