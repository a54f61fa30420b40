"""Luck that a seed gives an algorithm on all benchmarks: found, put into the model, and told."""

from __future__ import annotations

import inspect
import itertools
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.bench.modelling import shared_seeds as module
from lmemtest.bench.modelling.shared_seeds import shared_seeds
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.errors import ArgumentError, DesignError, LmemtestWarning

NAMES = {"algorithm": "tool", "benchmark": "task", "seed": "rep"}
TERMS = " + (1 | rep) + (1 | rep:tool)"


def table_of(benchmarks=6, algorithms=3, seeds=5, luck=0.5, rng=0):
    sds = {"benchmark": 1.0, "benchmark:algorithm": 0.5, "benchmark:seed": 0.3, "algorithm:seed": luck}
    names = [f"a{i}" for i in range(algorithms)]
    return make_table(names, range(benchmarks), seeds, sds=sds, noise=0.5, rng=rng, **NAMES)


def f_of_nested_models(table, small, large):
    """The F-test of two linear models with fixed effects, by least squares."""

    def squares(names):
        columns = [pd.get_dummies(table[list(n)].astype(str).agg("/".join, axis=1)).to_numpy(float) for n in names]
        X = np.hstack(columns)
        beta, _, rank, _ = np.linalg.lstsq(X, table["loss"].to_numpy(), rcond=None)
        return float(np.sum((table["loss"].to_numpy() - X @ beta) ** 2)), int(rank)

    (few, p), (many, q) = squares(small), squares([*small, large])
    f = (few - many) / (q - p) / (many / (len(table) - q))
    return f, q - p, len(table) - q, stats.f.sf(f, q - p, len(table) - q)


@pytest.mark.parametrize(
    ("keep", "blocks"),
    [
        (lambda t: t["loss"].notna(), [("task", "tool"), ("task", "rep")]),
        # algorithms that are missing on whole benchmarks, seeds that are missing on others: pairs are whole
        (lambda t: ~((t["task"] == 1) & (t["tool"] == "a0")) & ~((t["task"] == 2) & (t["rep"] == 3)),
         [("task", "tool"), ("task", "rep")]),
        # single runs are missing: what all algorithms share with a seed counts as luck, too
        (lambda t: t.index % 7 != 0, [("task", "tool")]),
    ],
    ids=["balanced", "whole parts missing", "single runs missing"],
)  # fmt: skip
def test_the_test_is_that_of_two_nested_linear_models(keep, blocks):
    table = table_of().loc[keep]
    f, df_num, df_den, p = f_of_nested_models(table, blocks, ("tool", "rep"))
    got = shared_seeds(as_runs(table))
    assert (got.df_num, got.df_den) == (df_num, df_den)
    assert (got.statistic, got.p_value) == approx((f, p), rel=1e-9)


@pytest.mark.parametrize(
    ("keep", "blocks"),
    [
        (lambda t: t["loss"].notna(), [("task", "tool"), ("task", "rep")]),
        (lambda t: ~((t["task"] == 1) & (t["tool"] == "a0")), [("task", "tool"), ("task", "rep")]),
        (lambda t: t.index % 7 != 0, [("task", "tool"), ("rep",)]),  # what a seed does to all is not taken for luck
    ],
    ids=["balanced", "whole parts missing", "single runs missing"],
)
def test_the_variance_of_the_luck_is_that_of_hendersons_moments(keep, blocks):
    table = table_of().loc[keep]
    y = table["loss"].to_numpy()

    def design(*groups):
        return np.hstack([pd.get_dummies(table.groupby(list(group)).ngroup(), dtype=float) for group in groups])

    def off(X):
        return np.eye(len(X)) - X @ np.linalg.pinv(X, rcond=1e-9)

    small, Z = off(design(*blocks)), design(("tool", "rep"))
    whole = off(np.hstack([design(*blocks), Z]))
    among = [("task", "tool"), ("tool", "rep")] if ("rep",) in blocks else [*blocks, ("tool", "rep")]
    rest = off(design(*among))  # of the test's own model
    of_rest = y @ rest @ y / round(np.trace(rest))
    between, df = y @ (small - whole) @ y, round(np.trace(small - whole))
    variance = (between - df * of_rest) / np.trace(Z.T @ small @ Z)
    ratio = between / df / of_rest
    got = shared_seeds(as_runs(table))
    assert got.variance == approx(variance, rel=1e-8)
    assert got.variance_df == approx((ratio - 1.0) ** 2 / (ratio**2 / df + 1.0 / round(np.trace(rest))), rel=1e-8)
    assert got.df_den == round(np.trace(rest))


def test_budgets_and_levels_of_a_metafeature_are_averaged_first():
    table = table_of()
    rng = np.random.default_rng(1)
    long = pd.concat(
        [table.assign(prior=p, step=s, loss=table["loss"] + rng.normal(size=len(table)))
         for p in ("good", "bad") for s in (1, 2)]
    )  # fmt: skip
    means = long.groupby(["task", "tool", "rep"], as_index=False)["loss"].mean()
    want = shared_seeds(as_runs(means))
    got = shared_seeds(as_runs(long))
    assert (got.statistic, got.df_num, got.df_den) == approx((want.statistic, want.df_num, want.df_den), rel=1e-9)


def test_runs_without_a_budget_in_common_are_tested_by_their_means():
    table = table_of().assign(step=lambda t: np.arange(len(t)))
    assert shared_seeds(as_runs(table)).values == shared_seeds(as_runs(table)).values


def test_luck_that_shows_is_in_the_model_with_a_note():
    got = lt.recommend(as_runs(table_of()))
    assert got.formula == "loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:rep)" + TERMS
    assert "limited by the number of seeds" in got.terms["meaning"].iloc[-1]
    assert got.seeds.verdict == "shown"
    assert any("the 5 seeds are a sample, too" in note and "seed_shared=False" in note for note in got.notes)
    assert not any("two seeds" in note for note in got.notes)
    assert any("two seeds" in note for note in lt.recommend(as_runs(table_of(seeds=2, luck=2.0))).notes)


def test_what_is_not_identified_what_was_tested_and_what_is_a_precaution_are_said_apart():
    left_out = lt.recommend(as_runs(table_of(luck=0.0, rng=2)))
    assert "(1 | rep" not in left_out.formula
    assert left_out.seeds.verdict == "not shown"
    assert left_out.tested[0].startswith("(1 | rep:tool): ")
    assert "(F(8, 40) = " in left_out.tested[0]
    assert left_out.tested[0].endswith("The term is kept where p < 0.2.")
    assert not any("rep:tool" in text for text in left_out.left_out)

    seed = next(k for k in range(50) if shared_seeds(as_runs(table_of(luck=0.0, rng=k))).verdict == "precaution")
    held = lt.recommend(as_runs(table_of(luck=0.0, rng=seed)))
    assert 0.05 <= held.seeds.p_value < 0.2
    assert "(1 | rep:tool)" in held.formula
    assert held.tested == ()
    assert any("as a precaution" in note and "That is not shown (F(8, 40)" in note for note in held.notes)
    assert not any("are a sample, too" in note for note in held.notes)

    alone = lt.recommend(as_runs(table_of(seeds=1)))
    assert (alone.seeds, alone.tested) == (None, ())


def test_few_seeds_are_given_more_benefit_of_the_doubt():
    assert [shared_seeds(as_runs(table_of(seeds=n))).level for n in (2, 4, 5)] == [0.3, 0.3, 0.2]


@pytest.mark.parametrize(
    ("change", "roles"),
    [
        (lambda t: t, {"seed_shared": False}),
        (lambda t: t.assign(rep=t["task"] * 100 + t["rep"]), {}),  # labels of their own
        (lambda t: t[t["task"] == 0], {}),
        (lambda t: t, {"seed": None, "ignore": "rep"}),
    ],
    ids=["said to be its own", "labels", "one benchmark", "no seeds"],
)
def test_seeds_that_mean_nothing_across_benchmarks_are_not_asked_about(change, roles):
    runs = as_runs(change(table_of()), **roles)
    got = lt.recommend(runs)
    assert not runs.study.seeds_cross
    assert "rep:tool" not in got.summary().replace("task:tool:rep", "")


def test_one_seed_is_a_part_of_the_mean():
    got = lt.recommend(as_runs(table_of(seeds=1)))
    assert got.left_out[-1] == (
        "(1 | rep:tool): there is one seed only, so what it does to an algorithm everywhere is part of its mean."
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (table_of(benchmarks=2, algorithms=2, seeds=3).iloc[[0, 1, 4, 6, 8, 11]], "too few to distinguish"),
        (table_of().assign(loss=lambda t: t["task"] * 1.0), "do not vary over the seeds"),
        (table_of().assign(loss=lambda t: t["task"] + t["rep"] * t["tool"].str[1:].astype(int)), "no residual"),
    ],
)
def test_what_leaves_nothing_to_test_is_told(table, words):
    refuses(DesignError, words, shared_seeds, as_runs(table))


def test_seeds_of_one_algorithm_each_need_one_term():
    table = table_of().assign(rep=lambda t: t["tool"] + "/" + t["rep"].astype(str))
    got = lt.recommend(as_runs(table))
    assert "(1 | rep)" in got.formula
    assert "(1 | rep:tool)" not in got.formula
    assert any("its groups are those of (1 | rep)" in text for text in got.left_out)


def test_too_many_groups_to_test_are_held(monkeypatch):
    monkeypatch.setattr(module, "_MOST_GROUPS", 10)
    table = table_of(luck=0.0).iloc[1:]
    found = shared_seeds(as_runs(table))
    assert np.isnan(found.p_value)
    assert lt.recommend(as_runs(table)).formula.endswith(TERMS)


# ---------------------------------------------------------------------- the role


def test_the_role_survives_everything_that_makes_runs_of_runs():
    runs = as_runs(table_of().assign(step=1), seed_shared=False)
    others = [runs.filter(task=[0, 1]), runs.normalize("rank"), runs.drop_missing(), runs.best_so_far(),
              runs.at_budgets([1]), lt.Runs(runs.frame, **runs.roles())]  # fmt: skip
    assert [other.seed_shared for other in others] == [False] * len(others)
    assert "its own on each benchmark" in repr(runs)
    assert "its own on each benchmark" not in repr(as_runs(table_of()))
    wide = table_of().pivot_table("loss", ["task", "rep"], "tool").reset_index()
    roles = {"direction": "minimize", "benchmark": "task", "seed": "rep"}
    assert not lt.Runs.from_wide(wide, **roles, seed_shared=False).seed_shared


def test_the_builder_and_the_seed_check_heed_the_role():
    shared, own = (as_runs(table_of(), seed_shared=value) for value in (True, False))
    assert lt.ModelBuilder(shared).recommended().formula().endswith(TERMS)
    assert lt.ModelBuilder(own).recommended().formula().endswith("(1 | task:rep)")
    assert seed_effect(shared).affected
    refuses(DesignError, "each benchmark has its own seeds", seed_effect, own)
    twice = pd.concat([table_of(), table_of(rng=1)])
    assert "Each benchmark has its own seeds" in seed_effect(as_runs(twice, seed_shared=False)).notes[0]


def test_a_plan_has_new_seeds_on_every_benchmark():
    fit = lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:rep)" + TERMS, as_runs(table_of()))
    plan = VarianceComponents.of(fit)
    luck = float(fit.covariances[-1][0, 0])
    assert luck > 0
    assert plan.residual_sd == approx(np.sqrt(fit.scale + luck))
    assert any("(1 | rep:tool) is a part of residual_sd" in note for note in plan.notes)


# ---------------------------------------------------------------------- the report


def test_the_report_tells_luck_that_the_model_counts():
    analysis = lt.analyze(as_runs(table_of(benchmarks=12, luck=0.8)))
    finding = next(f for f in analysis.check.findings if f.kind == "shared_seeds")
    assert finding.severity == "note"
    text = analysis.to_text()
    assert "The seed decides part of the score of" in text
    assert "The checks found no problems" not in text
    assert "the 5 seeds are a second sample" in " ".join(text.split())
    assert "effect of a seed on one algorithm, the same on all benchmarks" in set(analysis.components["meaning"])


def test_the_report_warns_where_the_model_lacks_the_luck():
    formula = "loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:rep)"
    analysis = lt.analyze(as_runs(table_of(benchmarks=12, luck=0.8)), formula=formula)
    finding = next(f for f in analysis.check.findings if f.kind == "shared_seeds")
    assert finding.severity == "warning"
    assert "Put (1 | rep:tool) into the model" in finding.advice
    assert tuple(map(str, analysis.missing)) == ("(1 | rep:tool)",)
    assert "the model has no term for this" in " ".join(analysis.to_text().split())


def test_the_report_of_seeds_of_their_own_states_the_assumption():
    analysis = lt.analyze(as_runs(table_of(benchmarks=12, luck=0.8), seed_shared=False))
    assert not any(f.kind == "shared_seeds" for f in analysis.check.findings)
    assert "Seeds count as new on each benchmark" in analysis.to_text()
    assert "seed_shared=False" in analysis.call


# ---------------------------------------------------------------------- ignored columns


FURTHER: dict[str, dict[str, Any]] = {
    "monitor": {"maximum": 8},
    "metafeature_effect": {"algorithms": ["A", "B"], "metafeature": "prior"},
    "permutation_test": {"model": "loss ~ tool + (1 | task)", "n_draws": 19, "rng": 0},
}
OF_NO_RUNS = {
    "evaluate",
    "fit_glmm",
    "fit_lmm",
    "glrt",
    "mcnemar",
    "plan",
    "power",
    "rate_votes",
    "read_runs",
    "repeated_attempts",
    "trajectories",
}
OF_NO_RUNS |= {"gate"}  # gate makes runs of its own, which its tests cover
OF_NO_RUNS |= {"audit"}  # slow, and of the rows that `check` and `recommend` take


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = list(itertools.product("ABC", [f"t{i}" for i in range(4)], range(4), [1, 2, 4]))
    found = pd.DataFrame(rows, columns=["tool", "task", "seed", "epoch"])
    noise = 0.1 * rng.normal(size=len(found)) + found["tool"].map({"A": 0.0, "B": 0.1, "C": 0.2})
    return found.assign(
        loss=noise + found["task"].str[1].astype(int) / found["epoch"] ** 0.5,
        prior=np.where(found["seed"] % 2, "good", "bad"),
        crashed=[i % 17 == 0 for i in range(len(found))],
        valid_error=rng.normal(size=len(found)),
        note=[f"n{i % 3}" for i in range(len(found))],
    )


OTHERS = ["prior", "valid_error", "note", "crashed"]
FUNCTIONS = [name for name in lt.__all__ if inspect.isfunction(getattr(lt, name)) and name not in OF_NO_RUNS]


@pytest.mark.daily(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_runs_takes_ignored_columns(name: str) -> None:
    roles = {"metafeature_effect": {"metafeatures": ["prior"]}, "failure_rates": {"failed": "crashed"}}.get(name, {})
    ignored = [column for column in OTHERS if [column] != roles.get("metafeatures") and column != roles.get("failed")]
    runs = as_runs(table(), budget="epoch", ignore=ignored, **roles)
    function = getattr(lt, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LmemtestWarning)
        found = function(runs, **FURTHER.get(name, {}))
    assert found is not None


def test_comparisons_over_the_budget_are_those_of_a_table_without_the_ignored_columns() -> None:
    ignoring = lt.anytime(as_runs(table(), ignore=OTHERS, budget="epoch"), rng=0)
    without = lt.anytime(as_runs(table().drop(columns=OTHERS), budget="epoch"), rng=0)
    pd.testing.assert_frame_equal(ignoring.to_frame(), without.to_frame())
    pd.testing.assert_frame_equal(ignoring.at([1, 4]).to_frame(), without.at([1, 4]).to_frame())
    pd.testing.assert_frame_equal(ignoring.ranks().to_frame(), without.ranks().to_frame())


# ---------------------------------------------------------------------- without algorithms


without_each = partial(lt.robustness, of="algorithms")


def irrelevant(noise=0.0):
    """Z is between X and Y where X wins, and last where Y does: with Z the mean rank of X is ahead, without it Y's."""
    rng = np.random.default_rng(1)
    rows = [(0.1, 0.3, 0.2)] * 4 + [(0.2, 0.1, 0.3)] * 6
    tasks = np.repeat([f"t{i}" for i in range(len(rows))], 3)
    frame = pd.DataFrame({"task": tasks, "tool": list("XYZ") * len(rows), "loss": np.concatenate(rows)})
    return as_runs(frame.assign(loss=frame["loss"] + noise * rng.random(len(frame))))


def test_a_rank_reversal_is_found_and_told_and_other_scores_keep_their_order():
    runs = irrelevant(noise=0.01)
    found = without_each(runs, reference="Y")
    ranks = runs.to_frame().assign(rank=runs.to_frame().groupby("task")["loss"].rank())
    mean = ranks.groupby("tool")["rank"].mean()
    assert mean["X"] < mean["Y"]  # 1.6 and 1.8
    frame = found.to_frame().set_index(["score", "left_out"])
    assert frame.loc[("loss_rank", "Z"), ["order_changed", "leader", "leader_before"]].tolist() == [1, "Y", "X"]
    assert frame.loc["loss", "order_changed"].sum() == frame.loc["loss_baseline", "order_changed"].sum() == 0
    assert "Y" not in frame.loc["loss_baseline"].index
    assert "Without Y there is no loss_baseline, so it was not left out." in found.notes
    *overviews, last = found.sentences()
    assert overviews[0].startswith("By mean loss_rank, leaving out one other algorithm changes the order of 1 pair and")
    assert overviews[1].startswith("By mean loss, leaving out one other algorithm changes neither the order of a pair")
    change = found.to_frame("changes").iloc[0]
    two = runs.filter(tool=["X", "Y"]).normalize("rank")
    pairs = lt.fit_lmm("loss_rank ~ tool + C(task)", two).emmeans("tool").pairs(adjust="none").to_frame()
    assert change["p_after"] == approx(pairs["p_value"][0], rel=1e-6)
    assert last.startswith("Without Z, Y is ahead of X by mean loss_rank (p = ")


@pytest.mark.level(2)
def test_runs_that_are_normalised_keep_their_method_and_name():
    scaled = irrelevant(0.01).normalize("minmax", name="unit")
    assert without_each(scaled).scores == ("unit", "loss")
    relative = irrelevant(0.01).normalize("baseline", reference="Z")
    found = without_each(relative)
    assert found.scores == ("loss_baseline", "loss")
    assert set(found.table.loc[found.table["score"] == "loss_baseline", "left_out"]) == {"X", "Y"}


@pytest.mark.level(2)
def test_processes_and_lazy_tables_change_nothing():
    import polars as pl

    runs = irrelevant(0.01)
    want = without_each(runs, reference="Y")
    lazy = as_runs(pl.from_pandas(runs.to_frame()).lazy())
    for found in (without_each(runs, reference="Y", n_jobs=2), without_each(lazy, reference="Y")):
        pd.testing.assert_frame_equal(found.table, want.table)
        pd.testing.assert_frame_equal(found.changes, want.changes)


def test_refusals():
    with pytest.raises(DesignError, match=r"three algorithms or more, as one is left out and two are compared, got 2"):
        without_each(irrelevant().filter(tool=["X", "Y"]))
    with pytest.raises(ArgumentError, match=r"variants='gap' needs the best known values: give runs that have them"):
        without_each(irrelevant(), variants="gap")
    refuses(ArgumentError, r"method='baseline' needs reference", without_each, irrelevant(), variants="baseline")
    with pytest.raises(ArgumentError, match=r"reference must be finite and below 1e\+100, got 1e\+308"):
        without_each(irrelevant(), reference=1e308)
