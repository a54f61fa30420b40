"""Sanity checks: the peer's answers on the same tables, and where ours differ, the truth of the table."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pytest import approx
from refusals import refuses

import lmemtest as lt
from lmemtest.compat.significance_analysis import (
    benchmark_information_check,
    dataframe_validator,
    fidelity_check,
    seed_dependency_check,
)
from lmemtest.compat.significance_analysis.tables import as_runs
from lmemtest.errors import DataError, DataWarning, DesignError, UnknownColumnError

# ---------------------------------------------------------------- seeds


def test_a_seed_effect_of_one_algorithm_is_found(peer, table, capsys):
    """Peer: compares models that are not nested, so the means of the algorithms hide the seeds."""
    found, printed = peer["checks"]["seed"]["seeded"]
    assert found == []
    assert "value~algorithm (77.8524) == value~(0+algorithm|seed) (76.0391)" in printed
    assert seed_dependency_check(table("seeded")) == ["PB"]
    out = capsys.readouterr().out
    assert out.endswith("=> Seed is a significant effect, likely influenced algorithms: ['PB']\n")


@pytest.mark.parametrize("name", ["real", "null"])
def test_without_a_seed_effect_none_is_found(table, capsys, name):
    assert seed_dependency_check(table(name), verbose=False) == []
    assert capsys.readouterr().out == ""


def test_budgets_of_a_run_are_not_repetitions_whatever_their_name(table):
    """Other names than the package's are recognised, so that a run with eight budgets is one run."""
    frame = table("null").rename(columns={"used_fidelity": "epochs", "prior": "quality"})
    with pytest.warns(DataWarning, match="takes 'epochs' for the budget, 'quality' for the metafeature"):
        runs = as_runs(frame, "check", algorithm="algorithm", loss="value")
    assert (runs.budget, runs.metafeatures) == ("epochs", ("quality",))
    with pytest.warns(DataWarning, match="'quality' for the metafeature"):
        assert seed_dependency_check(frame, fidelity_var="epochs", verbose=False) == []


def test_seeds_that_never_come_back_are_refused(table):
    frame = table("seeded").assign(seed=range(120))
    refuses(DesignError, "seed", seed_dependency_check, frame)
    text = "data names the column 'throw', which is not in the data. Columns: benchmark, algorithm, seed, value."
    refuses(UnknownColumnError, f"^{re.escape(text)}$", seed_dependency_check, frame, seed_var="throw")


# ---------------------------------------------------------------- benchmarks


def test_rows_of_a_run_are_not_independent(peer, table, capsys):
    """Peer: eight budgets of one run are eight observations, so chance differences of runs are information."""
    found = peer["checks"]["benchmark"]["null"][0]
    assert sum(found.values()) == 4
    ours = benchmark_information_check(table("null"))
    assert list(ours) == list(found)
    assert ours == dict.fromkeys(found, False)
    assert capsys.readouterr().out.splitlines()[1] == "=> Benchmark mlp-1 is uninformative."


def test_a_difference_that_depends_on_a_metafeature_is_information(peer, table):
    """Peer: averages over the prior, where the differences on gbt-3 cancel."""
    found = peer["checks"]["benchmark"]["real"][0]
    assert found["gbt-3"] is False
    frame = table("real")
    assert benchmark_information_check(frame, verbose=False) == dict.fromkeys(found, True)
    one = frame[frame["benchmark"] == "gbt-3"]
    means = one.pivot_table(index="prior", columns="algorithm", values="value")
    assert means.loc["good", "PB"] < means.loc["good", "HB"]
    assert means.loc["bad", "PB"] > means.loc["bad", "HB"]


def test_the_ranking_of_benchmarks_exists(peer, table, capsys):
    """Peer: a formula without "~", so R stops."""
    assert peer["checks"]["benchmark_rank"]["error"] == "RRuntimeError"
    frame = table("real")
    decisions, ranking = benchmark_information_check(frame, rank_benchmarks=True)
    assert list(ranking.columns) == ["Name", "Var", "Std"]
    assert ranking["Name"].tolist() == list(decisions)
    assert list(ranking.index) == ["algorithm"] * 4
    assert ranking["Std"].tolist() == approx(np.sqrt(ranking["Var"]).tolist())
    assert "Benchmarks without algorithm variation: []" in capsys.readouterr().out
    runs = frame.groupby(["benchmark", "prior", "algorithm", "seed"])["value"].mean()
    for name, variance in zip(ranking["Name"], ranking["Var"], strict=True):
        parts = []
        for prior in ("good", "bad"):
            scores = runs[name, prior].unstack("seed")  # algorithms x 5 seeds
            parts.append(scores.mean(axis=1).var(ddof=1) - scores.var(axis=1, ddof=1).mean() / 5)
        assert variance == approx(max(np.mean(parts), 0.0))


def test_keys_are_the_benchmarks_as_they_are(table):
    frame = table("real").assign(benchmark=lambda t: t["benchmark"].str[-1].astype(int))
    decisions, ranking = benchmark_information_check(frame, rank_benchmarks=True, verbose=False)
    assert list(decisions) == [0, 1, 2, 3]
    assert ranking["Name"].tolist() == ["0", "1", "2", "3"]


def test_a_variance_is_not_negative(table):
    _, ranking = benchmark_information_check(table("null"), rank_benchmarks=True, verbose=False)
    assert (ranking["Var"] >= 0).all()


def test_the_lines_of_the_seed_check_are_those_of_the_package(table, capsys):
    assert seed_dependency_check(table("null")) == []
    first, second, third = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Simple model \(-?[\d.]+\) (==|<<) Model with Seed-effect \(-?[\d.]+\)", first)
    assert re.fullmatch(r"Chi-Square: [\d.]+, P-Value: [\d.e-]+", second)
    assert third == "=> Seed is not a significant effect"


# ---------------------------------------------------------------- budget


def test_an_effect_that_varies_around_zero_is_not_found(peer, table, capsys):
    """Peer: slopes that differ between six benchmarks, with a mean of zero, are an effect."""
    assert peer["checks"]["fidelity"]["null"][0] == "simple_effect"
    assert fidelity_check(table("null"), verbose=False) == "none"
    assert capsys.readouterr().out == ""


def test_a_real_effect_of_the_budget_is_found_by_both(peer, table, capsys):
    assert peer["checks"]["fidelity"]["real"][0] == "simple_effect"
    assert fidelity_check(table("real")) == "simple_effect"
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[2]] == [
        "Simple model << Model with budget effect",
        "Model with budget effect == Model with interaction",
    ]
    assert re.fullmatch(r"mean: F\(1, 3\) = .*, p = 0.001; direction: .*, adjusted p .*", lines[1])
    assert lines[4].startswith("=> used_fidelity changes value")


def test_an_interaction_has_the_peers_word(table):
    frame = table("real").query("prior == 'good'").reset_index(drop=True)
    frame["value"] += np.where(frame["algorithm"] == "RS", 0.3, 0.0) * frame["used_fidelity"]
    given = dataframe_validator(frame.rename(columns={"used_fidelity": "epochs"}), verbose=False)
    assert fidelity_check(given, fidelity_var="epochs", verbose=False) == "interaction_effect"


def test_one_budget_is_refused(table):
    frame = table("real")
    with pytest.raises(DataError):
        fidelity_check(frame[frame["used_fidelity"] == 1.0])
    refuses(UnknownColumnError, "data names the column 'epochs'", fidelity_check, frame, fidelity_var="epochs")


def test_checks_are_those_of_the_package(table):
    frame = table("real")
    runs = as_runs(frame, "check", algorithm="algorithm", loss="value")
    assert runs.metafeatures == ("prior",)
    found = lt.benchmark_information(runs).to_frame()
    ours = benchmark_information_check(frame, verbose=False)
    for name, informative in ours.items():
        assert informative == found.loc[found["benchmark"].str.startswith(name), "informative"].any()
