"""Families of benchmarks in the recommended model, in marginal means and in the comparisons of algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.bench.modelling.adequacy import sample_of
from lmemtest.bench.robustness.variants import populations_compared
from lmemtest.bench.variation.model_components import variance_components
from lmemtest.errors import ArgumentError, DesignError


def table(sizes: tuple[int, ...] = (2, 3, 4, 2, 5, 3), algorithms: str = "ABC", seeds: int = 1, **more: Any) -> Any:
    """Families f0, f1, ... of some tasks each; every algorithm on every task, advantages by family and by task."""
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(len(sizes)), sizes)
    k, n = len(algorithms), len(family)
    y = 2 * rng.normal(size=(len(sizes), k))[family] + rng.normal(size=(n, 1)) + rng.normal(size=(n, k))
    y = y[:, :, None] + 0.3 * rng.normal(size=(n, k, seeds))
    index = pd.MultiIndex.from_product([range(n), list(algorithms), range(seeds)], names=["task", "tool", "seed"])
    frame = pd.DataFrame({"loss": y.ravel()}, index=index).reset_index()
    frame["space"] = [f"f{family[task]}" for task in frame["task"]]
    frame["task"] = [f"t{task}" for task in frame["task"]]
    return frame.assign(**more) if seeds > 1 else frame.drop(columns="seed").assign(**more)


def runs_of(frame: pd.DataFrame, **roles: Any) -> lt.Runs:
    seed = "seed" if "seed" in frame else None
    given = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "family": "space"}
    return lt.Runs(frame, **{**given, "seed": seed, **({"seed_shared": False} if seed else {}), **roles})


def test_families_are_the_sample_beside_their_benchmarks() -> None:
    got = lt.recommend(runs_of(table(seeds=2)))
    assert got.formula == (
        "loss ~ tool + (1 | space) + (1 | space:tool) + (1 | task) + (1 | task:tool) + (1 | task:seed)"
    )
    assert (got.population, got.claim) == ("family", "new spaces")
    assert got.terms["meaning"].iloc[2].endswith("so a comparison is as sure as the number of spaces allows")
    assert got.terms["meaning"].iloc[4].endswith("all algorithms to the same degree, beyond what the family explains")
    assert "the answer holds for new spaces" in got.notes[0]


def test_families_have_means_of_their_own_where_benchmarks_are_the_sample() -> None:
    runs = runs_of(table(seeds=2))
    got = lt.recommend(runs, population="benchmark")
    assert got.formula == ("loss ~ tool + space + tool:space + (1 | task) + (1 | task:tool) + (1 | task:seed)")
    assert (got.population, got.claim) == ("benchmark", "new tasks of these 6 spaces")
    assert lt.ModelBuilder(runs).recommended(population="benchmark").spec == got.spec


def test_families_with_single_benchmarks_stay_out_of_the_fixed_part() -> None:
    got = lt.recommend(runs_of(table((1, 3, 4, 2, 5, 3), seeds=2)), population="benchmark")
    assert got.formula == "loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)"
    assert "because some have too few tasks for means of their own: tasks count as drawn from all" in got.notes[0]
    frame = table((3, 3, 4, 2, 5, 3))
    lacking = frame[(frame["tool"] != "B") | (frame["space"] != "f2")]  # enough tasks in each, not of each algorithm
    got = lt.recommend(runs_of(lacking), population="benchmark")
    assert got.formula == "loss ~ tool + (1 | task)"
    assert "because some algorithm has no runs in some of them: tasks count as drawn from all" in got.notes[0]
    assert "on the safe side" not in got.notes[0]


def test_few_families_are_no_sample_by_default() -> None:
    runs = runs_of(table((2, 3, 4, 2), seeds=2))
    got = lt.recommend(runs)
    assert (got.population, got.claim) == ("benchmark", "new tasks of these 4 spaces")
    assert "too few spaces to be a sample (4; 5 or more are taken for one)" in got.notes[0]
    asked = lt.recommend(runs, population="family")
    assert "(1 | space:tool)" in asked.formula
    assert any("With 4 spaces the variance between them" in note for note in asked.notes)


def test_the_coarse_families_that_are_too_few_are_left_out() -> None:
    frame = table(seeds=2)
    frame["suite"] = np.where(frame["space"] < "f3", "small", "large")
    got = lt.recommend(runs_of(frame, family=["suite", "space"]))
    assert "(1 | suite:space:tool)" in got.formula
    assert "(1 | suite)" not in got.formula
    assert got.claim == "new spaces of these 2 suites"
    assert "there are 2 levels of suite, too few" in got.left_out[0]


def test_a_benchmark_in_several_families_has_effects_of_its_own_and_in_each() -> None:
    frame = table((4, 4, 4, 4, 4), seeds=2)
    frame["task"] = [f"d{int(task[1:]) % 4}" for task in frame["task"]]
    got = lt.recommend(runs_of(frame))
    assert [str(bar) for bar in got.spec.bars] == [
        f"(1 | {groups})"
        for groups in ("space", "space:tool", "task", "task:tool", "task:space", "task:space:tool", "task:space:seed")
    ]
    assert any("The same task occurs in several spaces" in note for note in got.notes)


def test_ranks_keep_the_families_advantages_and_lose_their_levels() -> None:
    got = lt.recommend(runs_of(table(seeds=2)).normalize("rank"))
    assert got.formula.endswith("~ tool + task + (1 | space:tool) + (1 | task:tool) + (1 | task:seed)")


def test_populations_that_are_not_possible_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"no column is named as their family. Name it: Runs\(..., family"):
        lt.recommend(runs_of(table(), family=()), population="family")
    with pytest.raises(DesignError, match="family 'space' has one level"):
        lt.recommend(runs_of(table((5,))), population="family")
    with pytest.raises(DesignError, match="one benchmark in each of its 6 levels, so the benchmarks themselves are"):
        lt.recommend(runs_of(table((1,) * 6)), population="family")
    with pytest.raises(DesignError, match="needs 3 families or more, and there are 2"):
        lt.recommend(runs_of(table((3, 3))), population="family")
    with pytest.raises(ArgumentError, match=r"population must be .family. or .benchmark., got .tasks."):
        lt.recommend(runs_of(table()), population="tasks")
    assert "so the benchmarks themselves are" in lt.recommend(runs_of(table((1,) * 6))).notes[0]


def test_means_are_weighted_by_benchmark_or_by_family() -> None:
    frame = table()
    fit = lt.recommend(runs_of(frame), population="benchmark").spec.fit(runs_of(frame))
    by_task = frame.groupby("tool")["loss"].mean()
    by_family = frame.groupby(["tool", "space"])["loss"].mean().groupby("tool").mean()
    means = fit.emmeans("tool")
    assert means.estimate == approx(by_task.to_numpy(), abs=1e-8)
    assert "(weights='benchmark')" in means.notes[0]
    assert fit.emmeans("tool", weights="family").estimate == approx(by_family.to_numpy(), abs=1e-8)
    assert fit.emmeans("tool", weights="equal").estimate == approx(by_family.to_numpy(), abs=1e-8)
    plain = lt.fit_lmm("loss ~ tool + (1 | task)", frame)
    with pytest.raises(ArgumentError, match="weights='benchmark' needs a fit of Runs"):
        plain.emmeans("tool", weights="benchmark")
    with pytest.raises(ArgumentError, match="weights='family' needs a fit of Runs, which"):
        plain.emmeans("tool", weights="family")


def test_the_default_comparison_is_the_paired_t_test_of_family_means() -> None:
    """Balanced families and two algorithms: as sure as the families are many, however many tasks each holds."""
    frame = table((4,) * 7, "AB")
    runs = runs_of(frame)
    means = lt.recommend(runs).spec.fit(runs).emmeans("tool")
    wide = frame.pivot_table("loss", "space", "tool")
    want = stats.ttest_rel(wide["A"], wide["B"])
    got = means.pairs().to_frame().iloc[0]
    assert (got["t_ratio"], got["df"], got["p_value"]) == approx((want.statistic, 6, want.pvalue), rel=1e-5)
    assert means.moderate.robust.cluster == ("space",)


def test_benchmarks_are_the_clusters_where_families_are_fixed() -> None:
    runs = runs_of(table())
    means = lt.recommend(runs, population="benchmark").spec.fit(runs).emmeans("tool")
    assert means.moderate.robust.cluster == ("task",)


def test_the_sample_of_a_fit_is_that_of_its_coarsest_advantages() -> None:
    runs = runs_of(table(seeds=2))
    families, benchmarks = (
        sample_of(lt.recommend(runs, population=name).spec.fit(runs), runs) for name in ("family", "benchmark")
    )
    assert (families.nouns, families.size, families.families) == ("spaces", 6, ("space",))
    assert (benchmarks.nouns, benchmarks.size, benchmarks.families) == ("benchmarks", 19, ())


def test_the_components_name_what_families_share() -> None:
    runs = runs_of(table(seeds=2))
    found = variance_components(lt.recommend(runs).spec.fit(runs), runs)
    assert [source.kind for source in found[:4]] == ["family", "family_interaction", "benchmark", "interaction"]
    assert found[1].meaning == "advantages of algorithms that change between spaces"


def test_both_populations_are_decided_by_their_own_models() -> None:
    runs = runs_of(table())
    models = {name: lt.recommend(runs, population=name) for name in ("family", "benchmark")}
    pairs = {name: model.spec.fit(runs).emmeans("tool").pairs() for name, model in models.items()}
    found = populations_compared(runs, models["family"], pairs["family"], alpha=0.05, adjust=None, ddf="satterthwaite")
    assert found is not None
    for i, (name, of_role) in enumerate(pairs.items()):
        assert list(found.phrases)[i] == name
        assert found.p_value[i].tolist() == approx(of_role.to_frame()["p_value"].tolist())
        assert found.significant(name) == (of_role.to_frame()["p_value"] < 0.05).sum()
    assert found.alike.tolist() == [False, False, True]
    overview, counts, *_, last = found.sentences()
    among = "for new spaces and for new tasks of these 6 spaces"
    assert overview == f"1 of 3 pairs of algorithms is decided alike {among}."
    assert counts == "Significant differences: 0 for new spaces and 2 for new tasks of these 6 spaces."
    assert last.startswith("C is better than A for new tasks of these 6 spaces (p = 0.020)")
    pd.testing.assert_frame_equal(found.table, lt.robustness(runs, of="population").table)


def test_families_that_are_too_few_to_be_a_sample_are_not_set_beside_their_benchmarks() -> None:
    runs = runs_of(table((4, 3, 5, 2)))
    model = lt.recommend(runs)
    assert model.population == "benchmark"
    pairs = model.spec.fit(runs).emmeans("tool").pairs()
    assert populations_compared(runs, model, pairs, alpha=0.05, adjust=None, ddf="satterthwaite") is None
