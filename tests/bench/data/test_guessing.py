"""Roles of tables as people have them: guessed by names and structure, the same in Python and at the command line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ordinary_tables import (
    NAMES,
    TABLES,
    Table,
    copied,
    cross_validation,
    families,
    long,
    printed,
    ranks,
    two_metrics,
    wide,
    with_words,
)
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.data.guessing import guess
from lmemtest.bench.data.roles import answer_roles
from lmemtest.bench.data.runs import as_runs
from lmemtest.bench.evaluation.evaluation_result import Evaluation
from lmemtest.core.caller import on_command_line
from lmemtest.errors import ArgumentError, DataError


@pytest.mark.daily(11)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_reading_that_is_right_or_shows_all_that_may_be(name: str) -> None:
    table = TABLES[name]()
    found = guess(table.frame)
    assert found.readings, found
    first = found.readings[0]
    assert first.wide == table.wide
    known = {role: value for role, value in table.roles.items() if role not in table.open}
    assert {role: first.roles.get(role) for role in known} == known
    assert found.sure == (not table.open)
    for role in table.open:
        assert len({reading.roles[role] for reading in found.readings}) == 2
    assert {text.split("'")[1] for text in found.left_out} == set(table.left_out)


def first_step(table: Any, **roles: Any) -> lt.Runs:
    """What `analyze` makes of its arguments."""
    return as_runs(table, roles, "analyze")


@pytest.mark.daily(8)
@pytest.mark.parametrize("name", TABLES)
def test_every_call_that_an_error_shows_runs(name: str) -> None:
    """`lt.analyze(df)` answers with whole calls, in the names of the table."""
    table = TABLES[name]()
    with pytest.raises(ArgumentError) as error:
        lt.analyze(table.frame)
    calls = re.findall(r"^  (lmemtest\..*)$", str(error.value), flags=re.MULTILINE)
    assert sum("analyze" in call for call in calls) == len(guess(table.frame).readings)
    for call in calls:
        functions = SimpleNamespace(analyze=first_step, Runs=lt.Runs, evaluate=lt.evaluate)
        found = eval(call, {"lmemtest": functions, "df": table.frame, "table": table.frame})
        assert isinstance(found, (lt.Runs, Evaluation))


def test_other_functions_show_the_call_with_their_own_name() -> None:
    table = long("others").frame
    roles = "df, score='f1', direction='maximize', algorithm='clf', benchmark='data', seed='run'"
    for function, call in (
        (lt.check, f"lmemtest.check(lmemtest.Runs({roles}))"),
        (lt.rank, f"lmemtest.rank({roles})"),
        (lt.recommend, f"lmemtest.Runs({roles})"),
    ):
        with pytest.raises(ArgumentError) as error:
            function(table)
        assert f"By names and structure:\n  {call}" in str(error.value)
    refuses(ArgumentError, r"lmemtest\.rank\(df, direction='maximize'\)", lt.rank, wide().frame)
    battles = pd.DataFrame(
        {"model_a": list("ABAB") * 5, "model_b": list("BACC") * 5, "winner": ["model_a", "tie"] * 10}
    )
    with pytest.raises(
        ArgumentError, match=r"It looks like battles(.|\n)*lmemtest\.rate_votes\(table, model_a='model_a'"
    ):
        lt.analyze(battles)


def test_given_roles_are_kept_and_the_others_guessed() -> None:
    table = families("suite").frame
    found = guess(table, {"family": ("suite",)}).readings[0]
    assert (found.roles["benchmark"], found.roles["seed"], found.roles["family"]) == ("task", "seed", ("suite",))
    with pytest.raises(ArgumentError, match="needs direction=: is a low or a high score good"):
        lt.analyze(two_metrics().frame, score="test_error", algorithm="optimizer")
    with pytest.raises(ArgumentError) as error:
        lt.analyze(two_metrics().frame, algorithm="optimizer", ignore=["seed"])
    assert "seed=" not in str(error.value)
    assert str(error.value).count("budget='epochs', ignore=['seed'])") == 2


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("names", NAMES)
def test_missing_and_shuffled_rows_change_no_reading(names: str, share: float) -> None:
    table = long(names)
    rng = np.random.default_rng(8)
    frame = table.frame[rng.random(len(table.frame)) >= share].iloc[:, rng.permutation(4)]
    frame = frame.sample(frac=1.0, random_state=np.random.RandomState(1))
    assert table.roles.items() <= guess(frame).readings[0].roles.items()


def test_a_grouping_column_is_noticed_whatever_its_name() -> None:
    """With families D is not distinguishable from its neighbours as it is without: the check and the guess say so."""
    for name in ("suite", "subject", "zz"):
        table = families(name)
        runs = lt.Runs(table.frame, **{**table.roles, "family": None})
        (note,) = [f for f in runs.check(rules_only=True).findings if f.kind == "families"]
        assert note.message.startswith(f"The 5 values of '{name}' group the 20 tasks.")
        assert guess(table.frame).readings[0].roles["family"] == (name,)


def test_a_measured_time_is_no_budget_and_logged_ones_are() -> None:
    table = cross_validation().frame
    runs = lt.Runs(table, score="accuracy", direction="maximize", algorithm="clf", benchmark="data")
    assert lt.Runs(table, **lt.Runs(table, **guess(table).readings[0].roles).roles()).budget is None
    assert "fit_time" not in runs.check(rules_only=True).findings[0].message
    rng = np.random.default_rng(9)
    log = pd.DataFrame([(a, t, s) for a in "AB" for t in "uvw" for s in range(3)], columns=["method", "task", "seed"])
    log = log.merge(pd.DataFrame({"k": range(8)}), how="cross")
    log = log.assign(time=rng.uniform(size=len(log)), loss=rng.uniform(size=len(log)))
    log["time"] = log.groupby(["method", "task", "seed"])["time"].cumsum().round(2)  # every run at times of its own
    assert log["time"].nunique() > 0.75 * len(log)
    assert guess(log.drop(columns="k")).readings[0].roles["budget"] == "time"


def test_ranks_are_recognised_long_and_wide() -> None:
    frame = ranks().frame
    assert guess(frame).reasons == ("The cells of every row are ranks from 1 on, of which low ones are good.",)
    tall = frame.melt("dataset", var_name="method", value_name="value")
    found = guess(tall)
    assert (found.sure, found.readings[0].roles["direction"]) == (True, "minimize")
    assert "The values of 'value' are ranks" in found.reasons[0]


def test_nested_cells_lists_and_odd_columns_are_passed_over() -> None:
    table = long()
    frame = table.frame.assign(tags=[["x"]] * len(table.frame), info=[{"a": 1}] * len(table.frame), empty=np.nan)
    found = guess(frame)
    assert table.roles.items() <= found.readings[0].roles.items()
    assert found.left_out == ("'tags'", "'info'", "'empty'")
    assert guess(frame[["tags", "info"]]).readings == ()
    assert guess(pd.DataFrame({"x": [1.0, 2.0]})).lacking


def test_an_answer_begins_with_the_number_of_copies() -> None:
    table = copied()
    headline = lt.analyze(table.frame, **table.roles).headline()
    assert headline.startswith(
        "60 of 240 rows are copies of others. Copies make the result look more certain than it is: drop "
    )
    reruns = table.frame.assign(test_acc=table.frame["test_acc"] + np.arange(len(table.frame)) * 1e-6)
    headline = lt.analyze(reruns, **table.roles).headline()
    assert headline.startswith("60 of 240 rows repeat another run with a different score.")


def test_check_prints_sixty_lines_at_most() -> None:
    rng = np.random.default_rng(10)
    rows = [(m, f"q{i}", int(rng.random() < 0.5)) for m in ("A", "B", "C") for i in range(400) if rng.random() < 0.9]
    runs = lt.Runs(pd.DataFrame(rows, columns=["model", "item", "correct"]), score="correct", direction="max",
                   algorithm="model", benchmark="item")  # fmt: skip
    text = runs.check().summary()
    assert len(text.splitlines()) <= 60
    assert max(map(len, text.splitlines())) <= 600
    assert "of 400 benchmarks (q0, q1, ... (" in text
    whole = runs.check(rules_only=True).summary(whole=True)
    assert len(whole.splitlines()) > 60
    assert "... and " not in whole


def test_a_wider_standard_error_explains_who_cannot_be_distinguished() -> None:
    """The third is farther behind than the second, and not distinguishable from the first."""
    rng = np.random.default_rng(0)
    rows = []
    for task in range(8):
        rows += [("A", task, 0.0), ("B", task, 1.0 + rng.normal(0.0, 0.1)), ("C", task, 1.5 + rng.normal(0.0, 4.0))]
    runs = lt.Runs(pd.DataFrame(rows, columns=["tool", "task", "loss"]), score="loss", direction="minimize",
                   algorithm="tool", benchmark="task")  # fmt: skip
    analysis = lt.analyze(runs)
    table = analysis.pairs.to_frame().set_index(["left", "right"])["se"]
    text = analysis.headline()
    assert "not distinguishable from C" in text
    sizes = re.search(
        r"Over C the lead is larger, [\d.]+, but so is its standard error \(([\d.]+), over B ([\d.]+)\)", text
    )
    assert sizes is not None
    assert [float(size) for size in sizes.groups()] == pytest.approx([table["A", "C"], table["A", "B"]], rel=0.1)


def roles_in(call: str) -> dict[str, Any]:
    """The arguments of a call of `Runs`."""
    found: dict[str, Any] = eval(f"dict({call.partition('df, ')[2].rstrip(')')})")
    return found


@pytest.mark.parametrize("make", [long, cross_validation, families])
def test_python_and_the_command_line_show_the_same_roles(make: Callable[[], Table]) -> None:

    found = guess(make().frame)
    python = found.told({}, "lmemtest.Runs(df, {})").splitlines()[1]
    with on_command_line(["lmemtest", "report", "f.csv"]):
        line = found.told({}, "").splitlines()[1]
    options = line.split()[3:]
    said: dict[str, list[str]] = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        said.setdefault(option[2:], []).append(value)
    flat = {name: value if isinstance(value, list) else [value] for name, value in roles_in(python).items()}
    assert said == flat


def test_a_table_as_papers_print_it_is_read_with_the_direction_alone() -> None:
    frame = printed().frame
    refuses(ArgumentError, r"\n  lmemtest\.analyze\(df, direction='maximize'\)\n", lt.analyze, frame)
    runs = first_step(frame, direction="maximize")
    numbers = frame.set_index("dataset").map(lambda cell: float(cell.split()[0]))
    wanted = lt.Runs.from_wide(numbers.reset_index(), direction="maximize")
    pd.testing.assert_frame_equal(runs.to_frame(), wanted.to_frame(), check_dtype=False)


def test_levels_of_columns_that_were_pivoted_are_not_lost() -> None:
    """Seeds in the columns are no algorithms; a level with the name of the score alone is left out."""
    frame = long().frame
    pivot = frame.pivot_table(index="dataset", columns=["method", "seed"], values="test_acc")
    message = r"The columns have 2 levels \(method, seed\).* to the rows: df\.stack\('seed'\)\.reset_index\(\)\."
    for call in (lt.analyze, lt.Runs.from_wide):
        refuses(DataError, message, call, pivot, direction="maximize")
    back = pivot.stack("seed").reset_index()
    assert set(first_step(back, direction="maximize", seed="seed").algorithms) == set(frame["method"])
    scores = frame.assign(f1=frame["test_acc"] / 2.0)
    several = scores.pivot_table(index="dataset", columns="method", values=["f1", "test_acc"])
    refuses(DataError, r"several scores, 'f1', 'test_acc'.*: df\.xs\('f1', axis=1, level=0\)\.", lt.analyze, several)
    assert first_step(several.xs("f1", axis=1, level=0), direction="maximize").n_rows == 60
    alone = frame.pivot_table(index=["dataset", "seed"], columns="method", values=["test_acc"])
    assert len(lt.Runs.from_wide(alone, seed="seed", direction="maximize").algorithms) == frame["method"].nunique()


def test_a_spread_beside_its_mean_is_no_score() -> None:
    """What `groupby` makes of runs, whose levels of the index are columns."""
    table = long().frame.groupby(["method", "dataset"])["test_acc"].agg(["mean", "std", "count"])
    found = guess(table)
    assert {reading.roles["score"] for reading in found.readings} == {"mean"}
    assert found.left_out == ("'std'", "'count'")
    roles = found.readings[0].roles
    assert (roles["algorithm"], roles["benchmark"]) == ("method", "dataset")
    assert first_step(table, **roles).n_rows == 60


def test_rows_of_several_scores_are_read_one_score_at_a_time() -> None:
    rows = long().frame.rename(columns={"test_acc": "value"})
    frame = pd.concat([rows.assign(metric="accuracy"), rows.assign(metric="log_loss", value=1.0 - rows["value"])])
    found = guess(frame)
    assert [(reading.where, reading.roles["direction"]) for reading in found.readings] == [
        (("metric", "accuracy"), "maximize"),
        (("metric", "log_loss"), "minimize"),
    ]
    assert found.readings[1].options({})[:4] == ["--where", "metric=log_loss", "--score", "value"]
    with pytest.raises(ArgumentError, match="2 readings are equally plausible") as error:
        lt.analyze(frame)
    calls = re.findall(r"^  lmemtest\.analyze\((.*)\)$", str(error.value), flags=re.MULTILINE)
    runs = [eval(f"first_step({call})", {"first_step": first_step, "df": frame}) for call in calls]
    assert [(each.n_rows, each.metafeatures) for each in runs] == [(180, ()), (180, ())]


def test_words_among_scores_are_shown_as_failed_runs() -> None:
    tall, broad = with_words().frame, wide().frame.astype({"SVM": object})
    broad.loc[3, "SVM"] = "crash"
    for frame, n in ((tall, 3), (broad, 1)):
        with pytest.raises(ArgumentError, match="Among the scores stands 'crash': taken as failed runs") as error:
            lt.analyze(frame)
        call = re.findall(r"^  lmemtest\.analyze\((.*)\)$", str(error.value), flags=re.MULTILINE)[0]
        runs = eval(f"first_step({call})", {"first_step": first_step, "df": frame})
        assert int(runs.to_frame()[runs.score].isna().sum()) == n
        assert runs.failed == "missing"


def test_a_column_of_kinds_of_failures_is_pointed_out_when_it_is_left_out() -> None:
    frame = long().frame.assign(status="ok", host="x")
    assert guess(frame).left_out == ("'status'", "'host'")
    frame.loc[4, "status"] = "timeout"
    found = guess(frame)
    assert found.left_out == ("'status' (seems to say which runs failed: failed='status')", "'host'")
    assert first_step(frame, **found.readings[0].roles, failed="status").to_frame()["test_acc"].isna().sum() == 1


def numbered(layout: str) -> pd.DataFrame:
    """Runs whose number stands in names."""
    frame = long().frame
    if layout == "seeds in columns":
        return frame.pivot(index=["method", "dataset"], columns="seed", values="test_acc").add_prefix("seed_")
    if layout == "epochs in columns":
        return frame.pivot(index=["method", "dataset"], columns="seed", values="test_acc").reset_index()
    named = frame.assign(run=frame["method"] + "_s" + frame["seed"].astype(str)).drop(columns=["method", "seed"])
    return named if layout == "in rows" else named.pivot(index="dataset", columns="run", values="test_acc")


def test_scores_at_several_cutoffs_are_no_runs() -> None:
    frame = long().frame.rename(columns={"test_acc": "recall@1"})
    found = guess(frame.assign(**{"recall@3": frame["recall@1"] + 0.1, "recall@10": frame["recall@1"] + 0.2}))
    assert [reading.roles["score"] for reading in found.readings] == ["recall@1", "recall@3", "recall@10"]


@pytest.mark.parametrize("layout", ["seeds in columns", "epochs in columns", "in rows", "runs in columns"])
def test_numbers_of_runs_in_names_are_taken_apart_by_what_the_error_says(layout: str) -> None:
    """No seed is compared as an algorithm, and no column of one seed as the score."""
    frame = numbered(layout)
    known: dict[str, Any] = {"df": frame}
    with pytest.raises(ArgumentError, match="then call again") as error:
        lt.analyze(frame)
    for line in re.findall(r"^  (df.*)$", str(error.value), flags=re.MULTILINE):
        exec(line, known)
    (roles, *_) = (reading.roles for reading in guess(known["df"]).readings)
    runs = first_step(known["df"], **roles)
    assert set(runs.algorithms) == set(long().frame["method"])
    assert runs.n_rows == 180
    assert (runs.budget if layout == "epochs in columns" else runs.seed) is not None
    if layout == "runs in columns":
        refuses(DataError, "which is not what is compared", lt.Runs.from_wide, frame, direction="maximize")


@pytest.mark.parametrize(("table", "step"), [("runs.csv", "lmemtest.read_runs"), (np.eye(3), "pandas.DataFrame")])
def test_what_is_no_table_is_told_how_to_become_one(table: Any, step: str) -> None:
    refuses(ArgumentError, step, lt.analyze, table)


@pytest.mark.parametrize(
    "index", [None, pd.Index(["a", "b"], name="task"), pd.MultiIndex.from_product([["a"], [1, 2]])]
)
def test_a_series_with_a_direction_is_no_table(index: Any) -> None:
    with pytest.raises(ArgumentError, match=r"frame must be a dataframe .* got pandas\..*Series"):
        lt.analyze(pd.Series([1.0, 2.0], index=index), direction="minimize")


def test_a_wide_table_with_a_column_twice_says_which() -> None:
    wide = pd.DataFrame([[1.0, 2.0, 3.0]] * 4, columns=["HB", "RS", "HB"])
    refuses(DataError, r"frame has more than one column named 'HB'", lt.analyze, wide, direction="minimize")


def test_a_dict_with_a_row_for_each_score_is_read_as_its_dataframe() -> None:
    table = pd.DataFrame({"algo": list("AB") * 4, "task": list("ppqqrrss"), "loss": np.arange(8.0)})
    for given in (table, table.to_dict("list")):
        with pytest.raises(ArgumentError, match=r"lmemtest\.analyze\(df, score='loss', .*algorithm='algo'"):
            lt.analyze(given, direction="minimize")


def test_columns_of_runs_whose_rows_have_no_names_are_not_read_as_algorithms() -> None:
    frame = pd.DataFrame({"step": range(6), "ppo-s0": np.arange(6.0), "sac-s0": np.arange(6.0)})
    refuses(ArgumentError, "No column has the names of the benchmarks", lt.analyze, frame)
    with pytest.raises(ArgumentError, match="Each algorithm has one curve over 'step' and no second run"):
        lt.rank(frame.rename(columns=lambda name: name.partition("-")[0]))


def test_counts_of_successes_are_scores_where_all_had_as_many_trials() -> None:
    rows = [(model, f"task/{i}", i % 3 + k, 20) for i in range(6) for k, model in enumerate(["gpt", "llama", "qwen"])]
    df = pd.DataFrame(rows, columns=["model", "task_id", "num_correct", "num_samples"])
    refuses(ArgumentError, "score='num_correct', direction='maximize'", lt.analyze, df)
    df.loc[0, "num_samples"] = 10
    with pytest.raises(ArgumentError, match="differs between rows") as said:
        lt.analyze(df)
    step = str(said.value).rpartition("df = ")[2]
    shares = eval(step, {"df": df})  # what the message proposes
    refuses(ArgumentError, "If a high 'share' is good", lt.analyze, shares)
    with on_command_line(["lmemtest", "analyze", "df.csv"]), pytest.raises(ArgumentError) as said:
        lt.analyze(df)
    assert "write num_correct / num_samples into the file, as a column share instead of both" in str(said.value)
    assert "df = " not in str(said.value)


def test_a_leaderboard_is_read_without_its_ranking_and_with_benchmarks_that_are_called_like_roles() -> None:
    rng = np.random.default_rng(11)
    board = pd.DataFrame({"Rank": ["1", "2", "2", "4"], "Model": ["GPT-X", "Claudia", "Gemmah", "Phee"]})
    names = ["MMLU", "GSM8K", "HumanEval", "MT-Bench", "IFEval", "BBH"]
    for name in names:
        board[name] = [f"{x:.1f} ± 0.4" for x in 85 - 3 * np.arange(4) + rng.normal(0, 2, 4)]
    refuses(ArgumentError, r"  lmemtest\.analyze\(df, direction='maximize'\)\n", lt.analyze, board)
    runs = first_step(board, direction="maximize")
    assert (runs.algorithms, runs.benchmarks) == (tuple(sorted(board["Model"])), tuple(sorted(names)))
    assert "'Rank' left out, which ranks the rows" in runs.notes[0]


def test_a_ranking_is_no_score_in_the_average_beside_it() -> None:
    scores = pd.DataFrame({"iris": [0.85, 0.86, 0.70], "wine": [0.97, 0.94, 0.80]}, index=["RF", "NN", "kNN"])
    paper = scores.assign(**{"Avg.": scores.mean(axis=1), "Rank": [1, 2, 3]}).rename_axis("Method").reset_index()
    (note,) = lt.Runs.from_wide(paper, direction="maximize").notes
    assert "'Avg.' left out, which sums up other columns; 'Rank' left out, which ranks the rows;" in note


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", ["Mittelwert", "Moyenne", "Promedio", "Media", "Średnia", "Среднее", "平均", "평균"])
def test_a_row_of_means_in_another_language_is_no_benchmark(name: str) -> None:
    frame = long().frame.pivot_table(index="dataset", columns="method", values="test_acc").round(3).reset_index()
    mean = pd.DataFrame([{"dataset": name, **frame.drop(columns="dataset").mean().round(3)}])
    runs = first_step(pd.concat([frame, mean], ignore_index=True), direction="maximize")
    assert len(runs.benchmarks) == len(frame)
    mean.loc[0, "kNN"] += 0.1  # then it sums up nothing, and is what it may be: a data set
    assert len(first_step(pd.concat([frame, mean], ignore_index=True), direction="maximize").benchmarks) == 13


def test_two_experiments_in_one_file_are_read_one_at_a_time() -> None:
    table = long().frame
    main = table[table["method"].isin(["Ours", "XGBoost", "SVM"])].assign(experiment="main")
    other = table[table["method"].isin(["Ours", "RandomForest", "kNN"])].assign(experiment="ablation")
    found = guess(pd.concat([main, other], ignore_index=True))
    assert [reading.where for reading in found.readings] == [("experiment", "main"), ("experiment", "ablation")]
    assert found.readings[0].when == "if the comparison is within 'main' of 'experiment'"
    shared = guess(pd.concat([main, main.assign(experiment="again")], ignore_index=True))  # a setting: all ran in both
    assert shared.readings[0].roles["metafeatures"] == ("experiment",)


def test_questions_that_every_task_numbers_anew_are_no_benchmarks() -> None:
    rng = np.random.default_rng(14)
    answers = pd.DataFrame(itertools.product("abcd", ["law", "bio", "art"], range(20)))
    answers.columns = ["model", "task", "item"]
    answers["correct"] = (rng.random(len(answers)) < 0.6).astype(int)
    roles = guess(answers).readings[0].roles
    assert (roles["benchmark"], roles["seed"], roles["metafeatures"]) == ("task", "item", ())
    several = pd.concat([answers.assign(seed=seed) for seed in range(3)])
    assert guess(several).readings[0].roles["seed"] == ("item", "seed")
    timed = answers.assign(correct=rng.random(len(answers)))  # of any score, not of answers alone
    assert guess(timed).readings[0].roles["seed"] == "item"
    named = timed.assign(item="q" + timed["item"].astype(str))  # the same in all tasks, by their names
    assert guess(named).readings[0].roles["benchmark"] == "item"
    unique = timed.assign(item=timed.groupby("model").cumcount())
    assert guess(unique).readings[0].roles["benchmark"] == "item"


def test_times_are_not_compared_in_the_place_of_answers() -> None:
    rng = np.random.default_rng(12)
    items = pd.DataFrame([(m, t, q) for m in "abc" for t in ("law", "bio") for q in range(20)])
    items.columns = ["model", "subject", "question"]
    items = items.assign(correct=rng.random(len(items)) < 0.6, latency_ms=rng.integers(100, 900, len(items)))
    with pytest.raises(ArgumentError, match=r"lmemtest\.evaluate\(table, model='model'") as error:
        lt.analyze(items)
    assert "latency_ms'" not in str(error.value)
    assert guess(items).passes_over("correct")


def test_time_outs_are_no_right_answers() -> None:
    rng = np.random.default_rng(13)
    runs = pd.DataFrame([(s, i) for s in ("cbc", "glpk", "scip") for i in range(20)], columns=["solver", "instance"])
    runs = runs.assign(time=rng.exponential(10.0, 60).round(2), timeout=rng.integers(0, 2, 60))
    assert answer_roles(runs) is None
    solved = runs.rename(columns={"timeout": "solved"})
    assert answer_roles(solved) == {"model": "solver", "item": "instance", "score": "solved"}


NEEDS_RUNS = ("audit", "benchmark_clusters", "benchmark_effects", "check", "failure_rates", "ranking_reliability",
              "recommend", "robustness", "score_distributions", "seed_effect", "select_model", "variant",
              "ModelBuilder", "anytime", "budget_effect", "benchmark_information")  # fmt: skip


@pytest.mark.parametrize("name", NEEDS_RUNS)
def test_every_function_of_runs_answers_a_dataframe_with_the_roles_of_its_columns(name: str) -> None:
    roles = "score='test_acc', direction='maximize', algorithm='method', benchmark='dataset', seed='seed'"
    refuses(ArgumentError, rf"(?s)^runs must be Runs.*lmemtest\.Runs\(df, {roles}\)", getattr(lt, name), long().frame)


def test_evaluate_shows_how_a_table_without_answers_is_compared() -> None:
    with pytest.raises(ArgumentError, match="If these are runs of algorithms on benchmarks") as error:
        lt.evaluate(long("others").frame)
    assert "\n  lmemtest.analyze(df, score='f1', direction='maximize', algorithm='clf'" in str(error.value)


def test_where_items_belong_to_tasks_the_tasks_are_the_benchmarks() -> None:
    rng = np.random.default_rng(14)
    items = pd.DataFrame([(m, t, q) for m in "abc" for t in ("law", "bio", "art") for q in range(20)])
    items.columns = ["model", "task", "item"]
    for named in (items, items.assign(item=items["task"] + items["item"].astype(str))):
        answers = named.assign(correct=(rng.random(len(items)) < 0.6).astype(int))
        (reading,) = guess(answers).readings
        roles = {name: value for name, value in reading.roles.items() if value not in (None, ())}
        assert roles == {"score": "correct", "direction": "maximize", "algorithm": "model", "benchmark": "task",
                         "seed": "item"}  # fmt: skip
        assert "'item' names the items of each 'task'" in guess(answers).reasons[0]
        pairs = lt.rank(answers, **roles).to_frame("pairs")
        same = lt.evaluate(answers, model="model", task="task", item="item", score="correct").to_table().frame
        assert pairs["p_value"].sort_values().to_numpy() == pytest.approx(same["p_value_like"].sort_values().to_numpy())
    assert guess(answers, {"benchmark": "item"}).readings[0].roles["benchmark"] == "item"
    measured = named.assign(accuracy=rng.random(len(items)))
    assert guess(measured).readings[0].roles["benchmark"] == "item"


def test_settings_beside_answers_are_neither_algorithms_nor_the_score() -> None:
    """A learning rate beside columns of true and false: of another kind than these."""
    rng = np.random.default_rng(3)
    answers = pd.DataFrame({name: rng.random(24) < 0.6 for name in ("adam", "sgd", "lion")})
    named = answers.assign(task=np.repeat(list("abcdef"), 4), seed=[0, 1, 2, 3] * 6, lr=[0.1, 0.01] * 12)
    assert {reading.roles["metafeatures"] for reading in guess(named).readings} == {("lr",)}
    assert all(reading.wide for reading in guess(named).readings)
    unnamed = guess(answers.assign(lr=[0.1, 0.01] * 12))
    assert (unnamed.readings, unnamed.known) == ((), {})


def test_a_budget_with_its_unit_is_told_to_be_text_and_a_file_in_one_column_to_be_split() -> None:
    rows = itertools.product("AB", "uvw", range(3), ("10 epochs", "100 epochs"))
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "epochs"]).assign(loss=np.arange(36.0) % 7)
    assert any("'epochs' holds texts such as '10 epochs'" in reason for reason in guess(table).reasons)
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    alone = r"Take its numbers alone, df\['epochs'\]\.str\.extract"
    refuses(DataError, alone, lambda: lt.rank(table, budget="epochs", **roles))
    numbers = table["epochs"].str.extract(r"([\d.]+)")[0].astype(float)  # as it says
    assert lt.rank(table.assign(epochs=numbers), budget="epochs", **roles).levels
    lines = pd.DataFrame({"tool;task;loss": ["A;x;0,5"]})
    refuses(ArgumentError, r"pandas\.read_csv\(path, sep=';'\)", lt.rank, lines)
