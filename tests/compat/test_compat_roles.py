"""Which column is what: the arguments, then names, then what tells rows apart; and messages that fit the functions."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from study import table_of_scores

import lmemtest as lt
from lmemtest.bench.data.roles import with_roles
from lmemtest.compat import significance_analysis as sa
from lmemtest.compat.significance_analysis.tables import guessed
from lmemtest.errors import ArgumentError, DataError, DataWarning, DesignError


def make_table(benchmarks=4, priors=("bad", "good"), seeds=4, budgets=(1, 2, 4, 8)):
    """Runs of three algorithms of which the last is worse; runs differ by chance, and so do their budgets."""
    rng = np.random.default_rng(5)
    run = rng.normal(size=(3, benchmarks, len(priors), seeds)) + np.array([0.0, 0.0, 2.0])[:, None, None, None]
    scores = run[..., None] + 0.1 * rng.normal(size=(*run.shape, len(budgets))) - 0.2 * np.log(budgets)
    names = {"benchmark": [f"b{i}" for i in range(benchmarks)], "prior": priors, "used_fidelity": budgets}
    return table_of_scores(scores, "algorithm benchmark prior seed used_fidelity", "value", **names)


def make_runs():
    """One row per run: algorithm, benchmark, seed, value."""
    return make_table(priors=["bad"], budgets=[8]).drop(columns=["prior", "used_fidelity"])


def roles_of(frame, **given):
    runs, columns = guessed(frame, algorithm="algorithm", loss="value", **given)
    return SimpleNamespace(**with_roles(runs, columns), guessed={column.name: column.role for column in columns})


def message(function, taken, arguments):
    text = (
        f"no argument says what some columns are, so {function} takes {taken}. If that is wrong, name the columns, "
        f"{function}(..., {arguments}), or leave those out of the table that play no part."
    )
    return f"^{re.escape(text)}$"


INFORMATION = "benchmark_information_check"
OPEN = "fidelity_var=..., seed_var=..."


# ---------------------------------------------------------------- seeds under other names


@pytest.mark.parametrize("name", ["rep", "Random Seed", "run_id", "nr"])
def test_a_seed_of_any_name_is_no_budget(name):
    """The budget of one run was seen in it, and no benchmark could be tested."""
    frame = make_runs()
    with pytest.warns(DataWarning, match=message(INFORMATION, f"{name!r} for the seed", OPEN)):
        found = sa.benchmark_information_check(frame.rename(columns={"seed": name}), verbose=False)
    assert found == sa.benchmark_information_check(frame, verbose=False)
    assert found == sa.benchmark_information_check(frame.drop(columns="seed"), verbose=False)


def test_two_algorithms_are_compared_by_welchs_test_of_their_runs():
    frame = make_runs().query("algorithm != 'B'").rename(columns={"seed": "rep"})
    p = np.array(
        [
            stats.ttest_ind(*(scores["value"] for _, scores in part.groupby("algorithm")), equal_var=False).pvalue
            for _, part in frame.groupby("benchmark")
        ]
    )
    order = np.argsort(p)
    holm = np.empty(4)
    holm[order] = np.maximum.accumulate(p[order] * [4, 3, 2, 1])
    assert 0 < (holm <= 0.05).sum() < 4
    found = sa.benchmark_information_check(frame, verbose=False, seed_var="rep")
    assert list(found.values()) == (holm <= 0.05).tolist()


@pytest.mark.parametrize("name", ["rep", pytest.param("nr", marks=pytest.mark.slow)])
def test_every_check_finds_the_seeds(name):
    frame = make_table()
    renamed = frame.rename(columns={"seed": name})
    call = {"algorithms": ("A", "C"), "metafeature_var": "prior", "verbose": False}
    with pytest.warns(DataWarning, match=message("metafeature_analysis", f"{name!r} for the seed", "seed_var=...")):
        guessed = sa.metafeature_analysis(renamed, **call)
    named, plain = sa.metafeature_analysis(renamed, seed_var=name, **call), sa.metafeature_analysis(frame, **call)
    for found in (guessed, named):
        pd.testing.assert_frame_equal(found[0], plain[0])
        pd.testing.assert_frame_equal(found[1], plain[1])
    with pytest.warns(DataWarning, match=message(INFORMATION, f"{name!r} for the seed", OPEN)):
        assert sa.benchmark_information_check(renamed, verbose=False) == sa.benchmark_information_check(
            frame, verbose=False
        )
    with pytest.warns(DataWarning, match=message("fidelity_check", f"{name!r} for the seed", "seed_var=...")):
        assert sa.fidelity_check(renamed, verbose=False) == "simple_effect"
    assert sa.fidelity_check(renamed, seed_var=name, verbose=False) == "simple_effect"


def test_what_the_validator_made_an_object_is_still_a_number():
    frame = make_runs().rename(columns={"seed": "nr"})
    data = sa.dataframe_validator(frame, seed_var="nr", verbose=False)
    assert data[0]["nr"].dtype == object
    assert roles_of(data[0]).seed == "nr"


def test_numbers_of_runs_have_to_be_named():
    """They differ between the algorithms, so that nothing tells them from measurements."""
    frame = make_runs()
    numbered = frame.assign(nr=frame.groupby(["algorithm", "benchmark", "seed"]).ngroup()).drop(columns="seed")
    assert roles_of(numbered).seed is None
    assert roles_of(numbered, seed="nr").seed == "nr"


def test_a_seed_comes_back_at_the_budgets_of_its_run():
    """Numbers of rows make all rows different too, but with them each run would have one budget."""
    frame = make_table().drop(columns="seed").reset_index(names="run")
    roles = roles_of(frame)
    assert (roles.benchmark, roles.budget, roles.seed) == ("benchmark", "used_fidelity", None)


def test_the_first_name_that_varies_is_taken():
    frame = make_runs()
    assert roles_of(frame.assign(rep=frame["seed"])).seed == "seed"
    assert roles_of(frame.assign(rep=frame["seed"], seed=42)).seed == "rep"


def test_two_columns_that_could_be_the_seed():
    frame = make_table().rename(columns={"seed": "nr", "used_fidelity": "resource"})
    text = (
        "no column has the name of a seed, and 'nr', 'resource' could each be it. Name the columns: "
        f"{INFORMATION}(..., benchmark_var=..., fidelity_var=..., seed_var=...)."
    )
    for table in (frame, frame.reset_index(names="Unnamed: 0")):
        refuses(DataError, f"^{re.escape(text)}$", sa.benchmark_information_check, table)
    named = sa.benchmark_information_check(frame, seed_var="nr", fidelity_var="resource", verbose=False)
    assert named == sa.benchmark_information_check(make_table(), verbose=False)


# ---------------------------------------------------------------- benchmarks, budgets, metafeatures


def test_the_benchmark_of_the_seed_check():
    """It has no argument for the benchmark, so five tasks were one benchmark with a metafeature."""
    frame = make_table()
    expected = sa.seed_dependency_check(frame, verbose=False)
    for name in ("task", "Dataset ID", "thing"):
        found = message("seed_dependency_check", f"{name!r} for the benchmark", "benchmark_var=..., fidelity_var=...")
        renamed = frame.rename(columns={"benchmark": name})
        with pytest.warns(DataWarning, match=found):
            assert sa.seed_dependency_check(renamed, verbose=False) == expected
        assert sa.seed_dependency_check(renamed, benchmark_var=name, verbose=False) == expected


def test_two_columns_that_could_be_the_benchmark():
    frame = make_table().rename(columns={"benchmark": "thing", "prior": "quality"})
    text = (
        "no column has the name of a benchmark, and 'thing', 'quality' could each be it. Name the columns: "
        "seed_dependency_check(..., benchmark_var=..., fidelity_var=..., seed_var=...)."
    )
    refuses(DataError, f"^{re.escape(text)}$", sa.seed_dependency_check, frame)


def test_a_name_that_holds_another_is_no_second_benchmark():
    frame = make_table(priors=["bad"]).rename(columns={"benchmark": "thing"})
    frame.insert(0, "suite", frame["thing"].map({"b0": "x", "b1": "x", "b2": "y", "b3": "y"}))
    assert roles_of(frame, seed="seed").benchmark == "thing"


def test_only_names_make_a_budget():
    frame = make_table()
    assert roles_of(frame.rename(columns={"used_fidelity": "Epochs"})).guessed == {"Epochs": "budget"}
    unknown = roles_of(frame.rename(columns={"used_fidelity": "resource"}))
    assert (unknown.budget, unknown.metafeatures) == (None, ("prior", "resource"))
    assert unknown.guessed == {"resource": "metafeatures"}
    text = frame.assign(used_fidelity=1.0, budget=frame["used_fidelity"].map({1: "s", 2: "m", 4: "l", 8: "x"}))
    assert (roles_of(text).budget, roles_of(text).metafeatures) == ("used_fidelity", ("prior", "budget"))


def test_yes_and_no_are_labels():
    frame = make_table().assign(warm=lambda t: t["prior"] == "good").drop(columns="prior")
    roles = roles_of(frame)
    assert (roles.budget, roles.metafeatures) == ("used_fidelity", ("warm",))
    pairs = make_runs().query("seed < 2").assign(warm=lambda t: t["seed"] == 1).drop(columns="seed")
    assert (roles_of(pairs).seed, roles_of(pairs).metafeatures) == (None, ("warm",))


def test_names_of_runs_and_measurements_play_no_part():
    frame = make_runs().drop(columns="seed")
    frame = frame.assign(uid=[f"x{i}" for i in range(len(frame))], runtime=np.linspace(0.1, 7.3, len(frame)))
    roles = roles_of(frame)
    assert (roles.benchmark, roles.budget, roles.seed, roles.metafeatures) == ("benchmark", None, None, ())
    table = make_table().assign(config=lambda t: [[i] for i in range(len(t))])
    assert roles_of(table).guessed == {}


def test_rows_that_a_run_has_too_many_are_said():
    """Budgets of a name that says nothing, different for every run, count one by one."""
    frame = make_table(priors=["bad"]).rename(columns={"used_fidelity": "resource"})
    frame["resource"] += 100 * np.arange(len(frame))
    text = (
        "rows of one run (seed) differ in 'resource', and each of them counts as a run of its own. If they are one run "
        f"at several budgets, name that column: {INFORMATION}(..., fidelity_var=...)."
    )
    with pytest.warns(DataWarning, match=f"^{re.escape(text)}$"):
        sa.benchmark_information_check(frame.drop(columns="prior"), verbose=False)


def test_a_further_metafeature_is_averaged_aloud():
    frame = make_table()
    both = pd.concat([frame.assign(noise="low"), frame.assign(noise="high")], ignore_index=True)
    text = (
        "'noise' varies within runs too. metafeature_analysis takes the mean of each run over it; to keep its levels "
        "apart, call it on the rows of one level."
    )
    with pytest.warns(DataWarning, match=f"^{re.escape(text)}$"):
        found = sa.metafeature_analysis(both, ("A", "C"), "prior", verbose=False)
    pd.testing.assert_frame_equal(found[1], sa.metafeature_analysis(frame, ("A", "C"), "prior", verbose=False)[1])


def test_a_table_with_the_packages_names_needs_no_guess(table):
    for name in ("real", "null", "seeded"):
        assert roles_of(table(name)).guessed == {}


def test_the_bundled_runs():
    frame = lt.datasets.load_hpo_runs().to_frame().rename(columns={"loss": "value"})
    roles = roles_of(frame)
    assert (roles.benchmark, roles.budget, roles.seed) == ("benchmark", "budget", "seed")
    assert (roles.metafeatures, roles.guessed) == (("prior",), {"budget": "budget"})


# ---------------------------------------------------------------- benchmarks that cannot be tested


def test_what_was_not_tested_is_not_called_uninformative(capsys):
    frame = make_runs()
    frame = frame[(frame["benchmark"] != "b1") | (frame["seed"] == 0)]
    decisions, ranking = sa.benchmark_information_check(frame, rank_benchmarks=True)
    assert decisions["b1"] is None
    assert all(isinstance(decisions[name], bool) for name in ("b0", "b2", "b3"))
    assert np.isnan(ranking["Var"].iloc[1])
    out = capsys.readouterr().out
    assert (
        "=> Benchmark b1 could not be tested: fewer than two algorithms ran there more than once, so chance cannot be "
        "judged.\n"
    ) in out
    nothing = [name for name, decision in decisions.items() if decision is False]
    assert f"Benchmarks without algorithm variation: {nothing}\n" in out


def test_benchmarks_that_were_not_tested_for_one_reason_each_say_it(capsys):
    """The study has one note for all of them, which names none of them alone."""
    frame = make_runs()
    frame = frame[frame["benchmark"].isin(["b0", "b3"]) | (frame["seed"] == 0)]
    sa.benchmark_information_check(frame)
    lines = capsys.readouterr().out.splitlines()
    reason = "fewer than two algorithms ran there more than once, so chance cannot be judged."
    assert lines[1:3] == [f"=> Benchmark {name} could not be tested: {reason}" for name in ("b1", "b2")]


def test_one_tested_level_is_enough():
    frame = make_table(budgets=[8])
    kept = (frame["benchmark"] != "b1") | (frame["seed"] == 0) | (frame["prior"] == "good")
    assert isinstance(sa.benchmark_information_check(frame[kept], verbose=False)["b1"], bool)


def test_no_column_tells_runs_apart():
    text = (
        "Rows that differ in used_fidelity alone count as one run. No column was found that identifies runs; name it: "
        f"{INFORMATION}(..., seed_var=...)."
    )
    with pytest.raises(DesignError, match=f"^no benchmark can be tested: .* {re.escape(text)}$"):
        sa.benchmark_information_check(make_table().drop(columns="seed"))


# ---------------------------------------------------------------- signatures and messages


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("seed_dependency_check", ["benchmark_var", "fidelity_var"]),
        ("benchmark_information_check", ["seed_var", "fidelity_var"]),
        ("fidelity_check", ["seed_var"]),
        ("metafeature_analysis", ["seed_var"]),
    ],
)
def test_further_arguments_come_by_name_alone(name, more):
    parameters = inspect.signature(getattr(sa, name)).parameters.values()
    further = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    assert [p.name for p in further] == more
    assert all(p.default is None for p in further)
    assert list(parameters)[-len(more) - 1].name == "verbose"


def test_errors_name_arguments_that_the_function_has():
    frame = make_table()
    no_seed = frame.drop(columns="seed")
    text = "runs has no seed column, so runs cannot be distinguished. Name it: metafeature_analysis(..., seed_var=...)."
    refuses(ArgumentError, f"^{re.escape(text)}", sa.metafeature_analysis, no_seed, ("A", "B"), "prior")
    with pytest.raises(DataError, match=re.escape("Name the seed column: fidelity_check(..., seed_var=...).")):
        sa.fidelity_check(no_seed[no_seed["benchmark"] == "b0"])
    with pytest.raises(DataError, match=r"^loss_var must be a numeric column"):
        sa.benchmark_information_check(frame.assign(value="good"))
    with pytest.raises(DataError, match=r"^fidelity_var must be a column of numbers"):
        sa.fidelity_check(frame.astype({"used_fidelity": str}))
    text = "metafeature_var and benchmark_var both name the column 'benchmark'"
    refuses(ArgumentError, f"^{text}", sa.metafeature_analysis, frame, ("A", "B"), "benchmark")
    apart = frame.assign(used_fidelity=frame["used_fidelity"] + 10 * (frame["algorithm"] == "A"))
    with pytest.raises(DataError, match=re.escape("reached: data[data['used_fidelity'].isin([...])].")):
        sa.benchmark_information_check(apart)
    with pytest.raises(DataError, match=r"Take the runs at budgets that all of them reached\.$"):
        sa.metafeature_analysis(apart, ("A", "B"), "prior")
    with pytest.raises(DataError, match=r"data\.dropna\(subset=\[\.\.\.\]\) compares at the budgets"):
        sa.benchmark_information_check(frame.assign(value=frame["value"].where(frame.index != 3)))
