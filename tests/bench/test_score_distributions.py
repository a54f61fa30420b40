"""Distributions of scores: quantiles, bandwidth, density, and Hartigan's dip against other ways to the same number."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal
from scipy import integrate, optimize, stats
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.scores.score_distributions import score_distributions
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.lmm.distributions.modes import (
    count_modes,
    density,
    dip,
    dip_p_value,
    drawn_bandwidth,
    rule_of_thumb,
    sheather_jones,
)

# 22 meteorites, per cent of silica (Ahrens 1965): the sample of Good & Gaskins (1980) and Silverman (1981)
SILICA = np.array(
    [20.77, 22.56, 22.71, 22.99, 26.39, 27.08, 27.32, 27.33, 27.57, 27.81, 28.69, 29.36, 30.25, 31.89, 32.88, 33.23,
     33.28, 33.40, 33.52, 33.83, 33.95, 34.82]
)  # fmt: skip


def normal_scores(n):
    """R's qnorm(ppoints(n)) for n > 10."""
    return stats.norm.ppf((np.arange(n) + 0.5) / n)


def make_table(n=30, seed=0) -> pd.DataFrame:
    """Algorithm b has two clusters under a bad prior."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(2, 2, n))
    scores[1, 0] += 12.0 * (np.arange(n) % 2)
    return table_of_scores(scores, "algorithm prior seed", "loss", algorithm=["a", "b"], prior=["bad", "good"])


# ---------------------------------------------------------------------- statistics


def test_the_table_is_that_of_pandas():
    table = make_table()
    result = score_distributions(as_runs(table), by=["algorithm", "prior"])
    want = table.groupby(["algorithm", "prior"])["loss"].describe()
    got = result.to_frame().set_index(["algorithm", "prior"])
    for ours, theirs in (("n", "count"), ("mean", "mean"), ("min", "min"), ("q1", "25%"), ("median", "50%"),
                         ("q3", "75%"), ("max", "max")):  # fmt: skip
        assert got[ours].to_numpy() == approx(want[theirs].to_numpy())
    assert result.by == ("algorithm", "prior")
    assert len(result.scores) == len(table)


def test_two_clusters_are_found_and_named():
    result = score_distributions(as_runs(make_table()), by=["algorithm", "prior"])
    assert result.several_modes.to_numpy().tolist() == [["b", "bad"]]
    assert result.sentences() == (
        "Scores have more than one cluster in b / bad (dip test, Holm over 4 groups, alpha = 0.05).",
    )
    table = result.to_frame().set_index(["algorithm", "prior"])
    assert table.loc[("b", "bad"), "modes"] == 2
    assert table["p_value"].to_numpy() == approx(np.minimum(1, table["p_raw"] * [3, 2, 4, 1]), rel=1)
    alone = score_distributions(as_runs(make_table()[lambda t: t["prior"] == "good"]))
    assert " ".join(alone.sentences()) == (
        "No group is shown to have more than one cluster (dip test, Holm over 2 groups, alpha = 0.05). The test is "
        "conservative, so this does not show that each has one only."
    )


def test_the_density_is_scipys_and_ends_with_the_data():
    result = score_distributions(as_runs(make_table()), by=["algorithm", "prior"])
    for (name, prior), curve in result.densities.groupby(["algorithm", "prior"]):
        x, table = result.scores, result.to_frame()
        x = x.loc[(x["algorithm"] == name) & (x["prior"] == prior), "score"].to_numpy()
        h = table.loc[(table["algorithm"] == name) & (table["prior"] == prior), "bandwidth"].item()
        want = stats.gaussian_kde(x, bw_method=h / np.std(x, ddof=1))(curve["score"])
        assert curve["density"].to_numpy() == approx(want)
        assert (curve["score"].iloc[0], curve["score"].iloc[-1]) == approx((x.min(), x.max()))
        assert 0.85 < integrate.trapezoid(curve["density"], curve["score"]) < 1.0


def test_a_density_of_many_scores_is_binned_without_harm():
    x = np.random.default_rng(1).gamma(2.0, size=4000)
    grid, h = np.linspace(0.1, 8, 50), drawn_bandwidth(x)
    assert density(x, grid, h) == approx(stats.gaussian_kde(x, bw_method=h / np.std(x, ddof=1))(grid), rel=2e-3)


# bw.SJ(x, nb = 8000, method = "ste", tol = 1e-10), R 4.2.2; ours has 1,024 bins, which moves it by up to 0.3 %
@pytest.mark.parametrize(
    ("x", "want"), [(normal_scores(200), 0.4037944143),
                    (np.concatenate([normal_scores(60), 8 + 0.5 * normal_scores(40)]), 0.4787596796),
                    (np.exp(normal_scores(100)), 0.2461982967), (SILICA, 1.015923315)]
)  # fmt: skip
def test_the_bandwidth_is_that_of_r(x, want):
    assert sheather_jones(x) == approx(want, rel=3e-3)
    assert drawn_bandwidth(1e6 + 1e-3 * x) == approx(1e-3 * drawn_bandwidth(x), rel=1e-4)
    assert drawn_bandwidth(x) == max(sheather_jones(x), np.ptp(x) / 50)


def test_the_bandwidth_keeps_two_clusters_apart_that_a_rule_of_thumb_merges():
    x = np.concatenate([normal_scores(25), 4.5 + normal_scores(25)])
    grid = np.linspace(x.min(), x.max(), 200)
    assert rule_of_thumb(x) > 1.3 * sheather_jones(x)
    assert count_modes(density(x, grid, drawn_bandwidth(x))) == 2
    assert count_modes(density(x, grid, 2.0 * rule_of_thumb(x))) == 1


def test_equal_scores_get_a_bandwidth_that_can_be_seen():
    x = np.r_[np.zeros(40), np.linspace(0.5, 1, 10)]
    assert drawn_bandwidth(x) >= 0.02
    assert np.isfinite(density(x, np.linspace(0, 1, 9), drawn_bandwidth(x))).all()


# ---------------------------------------------------------------------- dip


def dip_by_linear_programs(x) -> float:
    """The definition: over all positions of the mode, the closest function convex before and concave behind it."""
    values, counts = np.unique(x, return_counts=True)
    upper = np.cumsum(counts) / len(x)
    lower, m = upper - counts / len(x), len(values)
    best = 1.0
    for mode in range(m):  # variables: G at the values (at the mode from the left), G at the mode from the right, D
        rows, limits = [], []

        def no_more_than(limit, rows=rows, limits=limits, size=m + 2, **terms):
            row = np.zeros(size)
            for name, factor in terms.items():
                row[int(name[1:])] += factor
            rows.append(row)
            limits.append(limit)

        for i in range(m):
            high, low = (lower[i], upper[i]) if i != mode else (lower[i], lower[i])
            no_more_than(high, **{f"v{i}": 1.0, f"v{m + 1}": -1.0})
            no_more_than(-low, **{f"v{i}": -1.0, f"v{m + 1}": -1.0})
        no_more_than(upper[mode], **{f"v{m}": 1.0, f"v{m + 1}": -1.0})
        no_more_than(-upper[mode], **{f"v{m}": -1.0, f"v{m + 1}": -1.0})
        no_more_than(0.0, **{f"v{mode}": 1.0, f"v{m}": -1.0})
        left, right = list(range(mode + 1)), [m, *range(mode + 1, m)]
        for path, sign in ((left, 1.0), (right, -1.0)):
            where = [values[mode] if i == m else values[i] for i in path]
            for i, j in pairwise(path):
                no_more_than(0.0, **{f"v{i}": 1.0, f"v{j}": -1.0})
            for k in range(len(path) - 2):
                first, second = 1.0 / (where[k + 1] - where[k]), 1.0 / (where[k + 2] - where[k + 1])
                terms = {f"v{path[k]}": -first, f"v{path[k + 1]}": first + second, f"v{path[k + 2]}": -second}
                no_more_than(0.0, **{name: sign * value for name, value in terms.items()})
        cost = np.r_[np.zeros(m + 1), 1.0]
        found = optimize.linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0, 1)] * (m + 2), method="highs")
        best = min(best, found.fun) if found.status == 0 else best
    return best


@pytest.mark.parametrize("case", range(13))
def test_the_dip_is_its_definition(case):
    rng = np.random.default_rng(case)
    n = int(rng.integers(3, 14))
    x = [rng.normal(size=n), rng.lognormal(size=n), rng.normal(size=n) + 6 * (np.arange(n) % 2)][case % 3]
    x = SILICA if case == 12 else x
    assert dip(x) == approx(dip_by_linear_programs(x), abs=1e-9)


def test_the_dip_keeps_to_its_limits_and_ignores_units_and_sides():
    x = np.random.default_rng(2).normal(size=40)
    assert dip(3.0 * x - 7.0) == approx(dip(x)) == approx(dip(-x)) == approx(dip(x[::-1]))
    assert dip(np.arange(50.0)) == approx(1 / 100)
    assert dip(np.full(9, 4.0)) == approx(1 / 18)
    assert dip(np.r_[np.linspace(0, 1e-9, 500), np.linspace(1, 1 + 1e-9, 500)]) == approx(0.25, abs=1e-3)


def test_p_values_fall_with_the_dip_and_meet_the_simulated_quantiles():
    for n in (20, 30, 50, 77, 200, 5000):
        p = np.array([dip_p_value(value, n) for value in np.linspace(0, 1, 400) / np.sqrt(n)])
        assert (np.diff(p) < 0).all()
        assert p[0] == 1.0
        assert p[-1] < 1e-4
    assert dip_p_value(0.47007 / np.sqrt(20), 20) == approx(0.05)
    assert dip_p_value(0.57152 / np.sqrt(50), 50) == approx(0.01)
    assert dip_p_value(0.49618 / np.sqrt(51), 51) == approx(0.05, abs=0.001)


def test_p_values_of_uniform_scores_are_uniform():
    rng = np.random.default_rng(3)
    p = np.array([dip_p_value(dip(rng.random(35)), 35) for _ in range(1000)])
    assert abs((p <= 0.05).mean() - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 1000)
    assert abs((p <= 0.2).mean() - 0.2) < 3.5 * np.sqrt(0.2 * 0.8 / 1000)


# ---------------------------------------------------------------------- groups and budgets


def with_budgets() -> pd.DataFrame:
    return pd.concat([make_table().assign(epochs=budget, loss=lambda t: t["loss"] + 1) for budget in (1.0, 4.0)])


def test_scores_are_those_of_one_budget():
    table = with_budgets()
    table.loc[(table["epochs"] == 4.0) & (table["algorithm"] == "b"), "epochs"] = 5.0
    runs = as_runs(table, budget="epochs")
    default = score_distributions(runs)
    assert default.at == "epochs 1"
    assert default.notes[0] == ("Scores are those at epochs 1; budget= takes another, and the budget can be one of by.")
    assert score_distributions(runs, budget=4.0).to_frame()["algorithm"].tolist() == ["a"]
    grouped = score_distributions(runs, by=["budget", "algorithm"])
    assert grouped.by == ("epochs", "algorithm")
    assert grouped.at == ""
    assert len(grouped.to_frame()) == 4
    assert refusal(lambda: score_distributions(runs, budget=2), ArgumentError) == (
        "budget must be a value of 'epochs', got 2. Values: 1.0, 4.0, 5.0."
    )
    apart = as_runs(make_table().assign(epochs=lambda t: t["algorithm"].map({"a": 1, "b": 2})), budget="epochs")
    assert refusal(lambda: score_distributions(apart), DataError) == (
        "the groups have no value of 'epochs' in common, so their scores would be of different budgets. Name one, "
        "budget=..., or put the budget into by."
    )
    named = as_runs(make_table().rename(columns={"prior": "modes"}), metafeatures=())
    assert refusal(lambda: score_distributions(named, by="modes"), ArgumentError) == (
        "by names 'modes', which is a column of the result. Rename the column of the data."
    )
    assert refusal(lambda: score_distributions(runs, by="budget", budget=1), ArgumentError) == (
        "budget=1 has no meaning here, because the budget is one of the columns of the groups. Leave it out."
    )


def test_small_constant_and_tied_groups_are_described_but_not_tested():
    table = make_table()
    table.loc[(table["algorithm"] == "a") & (table["prior"] == "bad"), "loss"] = 0.5
    tied = (table["algorithm"] == "a") & (table["prior"] == "good") & (table["seed"] < 3)
    table.loc[tied, "loss"] = 0.25
    table = table[(table["algorithm"] == "a") | (table["seed"] < 7)]
    result = score_distributions(as_runs(table), by=["algorithm", "prior"])
    frame = result.to_frame()
    assert frame["p_raw"].isna().all()
    assert frame["bandwidth"].isna().tolist() == [True, False, True, True]
    assert set(result.densities["prior"]) == {"good"}
    assert " ".join(result.sentences()) == "No group could be tested for several clusters."
    assert result.notes == (
        "2 of 4 groups have fewer than 20 scores and were not tested.",
        "2 of 4 groups were not tested, because one value makes up more than 4 % of their scores.",
    )


def test_pooled_benchmarks_are_noted():
    table = make_table().assign(task=lambda t: "t" + (t["seed"] % 2).astype(str))
    note = (
        "A group pools the scores of several levels of task: its clusters may be benchmarks. Put the benchmark into "
        "by, or normalise the scores (runs.normalize)."
    )
    assert note in score_distributions(as_runs(table, benchmark="task")).notes
    assert note not in score_distributions(as_runs(table, benchmark="task"), by=["algorithm", "task"]).notes


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"by": []}, ArgumentError, "by must name one to 3 columns, got 0."),
        ({"by": "priors"}, UnknownColumnError, "by names 'priors', which is neither a role of the runs nor a column. "
         "Columns: algorithm, prior, seed, loss. Did you mean 'prior'?"),
        ({"by": ["prior", "prior"]}, ArgumentError, "by must name different columns other than the score, got 'prior', "
         "'prior'."),
        ({"by": "loss"}, ArgumentError, "by must name different columns other than the score, got 'loss'."),
        ({"budget": 3}, ArgumentError, "budget=3 has no meaning here, because the runs have no budget. Leave it out."),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments, error, message):
    assert refusal(lambda: score_distributions(as_runs(make_table()), **arguments), error) == message


def test_missing_scores_are_refused():
    missing = as_runs(make_table().assign(loss=lambda t: t["loss"].where(t.index != 3)))
    with pytest.raises(DataError, match=r"^1 of 120 rows has a score that is missing or infinite"):
        score_distributions(missing)


def test_only_one_priorband_benchmark_has_two_clusters_of_random_scores(data_dir):
    table = pd.read_parquet(data_dir / "priorband.parquet")
    runs = lt.Runs(
        table[table["prior"] == "bad"], score="value", direction="minimize", algorithm="algorithm",
        benchmark="benchmark", seed="seed", budget="used_fidelity",
    )  # fmt: skip
    found = score_distributions(runs, by=["benchmark", "algorithm"], budget=1)
    assert found.several_modes.to_numpy().tolist() == [["LC-168910", "RS"]]
