"""Families of benchmarks in the recommended model, in marginal means and in the comparisons of algorithms."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal, refuses
from scipy import stats
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.modelling.adequacy import sample_of
from lmemtest.bench.robustness.variants import populations_compared
from lmemtest.bench.variation.run_design import run_design, run_variances
from lmemtest.bench.variation.variance_shares import variance_shares
from lmemtest.errors import ArgumentError, DesignError


def table(sizes: tuple[int, ...] = (2, 3, 4, 2, 5, 3), algorithms: str = "ABC", seeds: int = 1, **more: Any) -> Any:
    """Families f0, f1, ... of some tasks each; every algorithm on every task, advantages by family and by task."""
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(len(sizes)), sizes)
    k, n = len(algorithms), len(family)
    y = 2 * rng.normal(size=(len(sizes), k))[family] + rng.normal(size=(n, 1)) + rng.normal(size=(n, k))
    y = y[:, :, None] + 0.3 * rng.normal(size=(n, k, seeds))
    names = {"task": [f"t{task}" for task in range(n)], "tool": list(algorithms)}
    frame = table_of_scores(
        y, "task tool seed", "loss", **names, space=np.array([f"f{i}" for i in family])[:, None, None]
    )
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
    assert got.terms["meaning"].iloc[2].endswith("so the number of spaces limits the precision of a comparison")
    assert got.terms["meaning"].iloc[4].endswith("all algorithms to the same degree, beyond what the family explains")
    assert "the answer holds for new spaces" in got.notes[0]


def test_families_have_means_of_their_own_where_benchmarks_are_the_sample() -> None:
    runs = runs_of(table(seeds=2))
    got = lt.recommend(runs, population="benchmark")
    assert got.formula == ("loss ~ tool + space + tool:space + (1 | task) + (1 | task:tool) + (1 | task:seed)")
    assert (got.population, got.claim) == ("benchmark", "new tasks of these 6 spaces")
    assert lt.ModelBuilder(runs).recommended(population="benchmark").spec == got.spec


def test_families_with_single_benchmarks_stay_out_of_the_fixed_part() -> None:
    assert "so the benchmarks themselves are" in lt.recommend(runs_of(table((1,) * 6))).notes[0]
    got = lt.recommend(runs_of(table((1, 3, 4, 2, 5, 3), seeds=2)), population="benchmark")
    assert got.formula == "loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)"
    assert "because some have too few tasks for means of their own: tasks count as drawn from all" in got.notes[0]
    frame = table((3, 3, 4, 2, 5, 3))
    lacking = frame[(frame["tool"] != "B") | (frame["space"] != "f2")]  # enough tasks in each, not of each algorithm
    got = lt.recommend(runs_of(lacking), population="benchmark")
    assert got.formula == "loss ~ tool + (1 | task)"
    assert "because some algorithm has no runs in some of them: tasks count as drawn from all" in got.notes[0]
    assert "conservative" not in got.notes[0]


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


def test_on_these_benchmarks_runs_are_the_sample() -> None:
    """Estimates are plain means, and their variances those of the differences between runs, benchmark by benchmark."""
    frame = table((3, 4), algorithms="AB", seeds=4)
    runs = runs_of(frame)
    got = lt.recommend(runs, population="run")
    assert got.formula == "loss ~ tool * task + (1 | task:seed)"
    assert (got.population, got.claim, got.spec.dispersion) == ("run", "these 7 tasks", "task")
    assert got.notes[0].startswith("Runs count as the sample, and each task has its own means and residual variance")
    pair = lt.ModelBuilder(runs).recommended(population="run").fit().emmeans("tool").pairs().to_frame().iloc[0]
    wide = frame.pivot_table(index=["task", "seed"], columns="tool", values="loss")
    difference = (wide["A"] - wide["B"]).groupby("task")
    assert pair["estimate"] == approx(difference.mean().mean(), rel=1e-9)
    assert pair["se"] == approx(np.sqrt(difference.var().sum() / 4) / 7, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "population", "words"),
    [
        (lambda: runs_of(table(), family=()), "family", "no column is named as their family. Name it: Runs(..., fami"),
        (lambda: runs_of(table((5,))), "family", "family 'space' has one level"),
        (lambda: runs_of(table((1,) * 6)), "family", "one benchmark in each of its 6 levels, so the benchmarks themse"),
        (lambda: runs_of(table((3, 3))), "family", "needs 3 families or more, and there are 2"),
        (lambda: runs_of(table()), "run", "runs has no seed column, so runs cannot be a sample"),
        (lambda: runs_of(table(seeds=2).drop(index=1)), "run", "how much runs differ, and A has one on t0. Add"),
        (lambda: runs_of(table(seeds=2).query("task != 't0' or tool != 'B'")), "run", "B has none on t0. Add"),
    ],
)
def test_populations_that_are_not_possible_are_refused(make: Any, population: Any, words: str) -> None:
    assert words in refusal(lambda: lt.recommend(make(), population=population), (ArgumentError, DesignError))


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
    refuses(ArgumentError, "weights='benchmark' needs a fit of Runs", plain.emmeans, "tool", weights="benchmark")
    refuses(ArgumentError, "weights='family' needs a fit of Runs, which", plain.emmeans, "tool", weights="family")


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
    fixed = lt.recommend(runs, population="benchmark").spec.fit(runs).emmeans("tool")
    assert fixed.moderate.robust.cluster == ("task",)


def test_the_sample_of_a_fit_is_that_of_its_coarsest_advantages() -> None:
    runs = runs_of(table(seeds=2))
    families, benchmarks = (
        sample_of(lt.recommend(runs, population=name).spec.fit(runs), runs) for name in ("family", "benchmark")
    )
    assert (families.nouns, families.size, families.families) == ("spaces", 6, ("space",))
    assert (benchmarks.nouns, benchmarks.size, benchmarks.families) == ("benchmarks", 19, ())


def test_the_components_name_what_families_share() -> None:
    runs = runs_of(table(seeds=2))
    found = variance_shares(lt.recommend(runs).spec.fit(runs), runs)
    assert found["kind"].tolist()[:4] == ["family", "family_interaction", "benchmark", "interaction"]
    assert found["meaning"][1] == "advantages of algorithms that change between spaces"


def test_both_populations_are_decided_by_their_own_models() -> None:
    runs = runs_of(table())
    models = {name: lt.recommend(runs, population=name) for name in ("family", "benchmark")}
    pairs = {name: model.spec.fit(runs).emmeans("tool").pairs() for name, model in models.items()}
    found = populations_compared(runs, models["family"], pairs["family"], {"alpha": 0.05})
    assert found is not None
    for i, (name, of_role) in enumerate(pairs.items()):
        assert list(found.phrases)[i] == name
        assert found.p_value[i].tolist() == approx(of_role.to_frame()["p_value"].tolist())
        assert found.significant(name) == (of_role.to_frame()["p_value"] < 0.05).sum()
    assert found.alike.tolist() == [False, False, True]
    overview, counts, *_, last = found.sentences()
    among = "for new spaces and for new tasks of these 6 spaces"
    assert overview == f"1 of 3 pairs of algorithms gets the same decision {among}."
    assert counts == "Significant differences: 0 for new spaces and 2 for new tasks of these 6 spaces."
    assert last.startswith("C is better than A for new tasks of these 6 spaces (p = 0.020)")
    pd.testing.assert_frame_equal(found.table, lt.robustness(runs, of="population").table)


def test_families_that_are_too_few_to_be_a_sample_are_not_set_beside_their_benchmarks() -> None:
    runs = runs_of(table((4, 3, 5, 2)))
    model = lt.recommend(runs)
    assert model.population == "benchmark"
    pairs = model.spec.fit(runs).emmeans("tool").pairs()
    assert populations_compared(runs, model, pairs, {"alpha": 0.05}) is None


# ---------------------------------------------------------------------- family variances


F, B, K, N = 6, 4, 3, 2


def study(rng: int = 1, families: int = F) -> pd.DataFrame:
    """Six spaces of four tasks, three tools and two seeds: each space has advantages, and each task."""
    draw = np.random.default_rng(rng)
    space, task, tool, seed = (
        1.0 * draw.normal(size=(families, 1, 1, 1)) + draw.normal(size=(families, 1, K, 1)),
        0.8 * draw.normal(size=(families, B, 1, 1)),
        0.5 * draw.normal(size=(families, B, K, 1)),
        0.4 * draw.normal(size=(families, B, 1, N)),
    )
    loss = (space + task + tool + seed + 0.3 * draw.normal(size=(families, B, K, N))).ravel()
    keys = product(range(families), range(B), "ABC", range(N))
    rows = [(f"s{f}", f"s{f}-{b}", k, n) for f, b, k, n in keys]
    return pd.DataFrame(rows, columns=["space", "task", "tool", "seed"]).assign(loss=loss)


FRAME = study()


@cache
def sources():
    return lt.variance_sources(as_runs(FRAME))


def test_families_have_the_variances_of_analysis_of_variance() -> None:
    got = sources().to_frame().set_index("source")["variance"]
    y = FRAME["loss"].to_numpy().reshape(F, B, K, N)
    of_tool, cell, task, seed = y.mean((1, 3)), y.mean(3), y.mean((2, 3)), y.mean(2)
    space, tool = y.mean((1, 2, 3)), y.mean((0, 1, 3))
    ms_space = B * K * N * space.var(ddof=1)
    ms_task = K * N * ((task - space[:, None]) ** 2).sum() / F / (B - 1)
    ms_space_tool = B * N * ((of_tool - space[:, None] - tool + y.mean()) ** 2).sum() / (F - 1) / (K - 1)
    inner = cell - task[:, :, None] - of_tool[:, None] + space[:, None, None]
    ms_task_tool = N * (inner**2).sum() / F / (B - 1) / (K - 1)
    ms_seed = K * ((seed - task[:, :, None]) ** 2).sum() / F / B / (N - 1)
    rest = y - cell[..., None] - seed[:, :, None] + task[:, :, None, None]
    ms_run = (rest**2).sum() / F / B / (K - 1) / (N - 1)
    assert sources().balanced
    assert got["run"] == approx(ms_run, rel=1e-6)
    assert got["task:seed"] == approx((ms_seed - ms_run) / K, rel=1e-6)
    assert got["task:tool"] == approx((ms_task_tool - ms_run) / N, rel=1e-6)
    assert got["space:tool"] == approx((ms_space_tool - ms_task_tool) / B / N, rel=1e-6)
    assert got["task"] == approx((ms_task - ms_task_tool - ms_seed + ms_run) / K / N, rel=1e-6)
    assert got["space"] == approx((ms_space - ms_space_tool - ms_task + ms_task_tool) / B / K / N, rel=1e-6)
    # the error of a tool's mean is that of families, however many tasks each has
    assert got["tool"] == approx(max(B * F * N * tool.var(ddof=1) - ms_space_tool, 0.0) / B / F / N, rel=1e-6)


@pytest.mark.parametrize("way", ["nested", "crossed"])
def test_unequal_families_have_the_variances_of_lme4(way: str, reference, reference_input) -> None:
    frame = reference_input("nested_slopes")
    a, b, t = (pd.factorize(frame[name], sort=True)[0] + 1 for name in ("a", "b", "treatment"))
    frame["y"] += 2 * np.sin(3 * a * t) + 2 * np.sin(5 * b * t) + 3 * np.sin(7 * a * b * t)
    frame["task"] = frame["a"] + frame["b"] if way == "nested" else frame["b"]
    names = {"score": "y", "algorithm": "treatment", "benchmark": "task", "family": "a"}
    design, scores = run_design(lt.Runs(frame, direction="minimize", **names), task="", families=True)
    variances = run_variances(design, scores)[0]
    got = {":".join(sorted(design.label(factors).split(":"))): variance for factors, variance in variances.items()}
    label = "task" if way == "nested" else "a:task"
    ours = {"a:b": label, "a:b:treatment": f"{label}:treatment", "b": "task", "b:treatment": "task:treatment"}
    want = reference("families")[way]
    for group, variance in zip(want["groups"], want["variances"], strict=True):
        name = "run" if group == "Residual" else ours.get(group, group)
        assert got[name] == approx(variance, rel=2e-4, abs=1e-6), group


def test_a_plan_adds_what_a_benchmark_has_in_all_its_families_and_in_one(reference, reference_input) -> None:
    frame = reference_input("nested_slopes")
    a, b, t = (pd.factorize(frame[name], sort=True)[0] + 1 for name in ("a", "b", "treatment"))
    frame["y"] += 2 * np.sin(3 * a * t) + 2 * np.sin(5 * b * t) + 3 * np.sin(7 * a * b * t)
    runs = lt.Runs(frame, score="y", direction="minimize", algorithm="treatment", benchmark="b", family="a")
    want = reference("families")["crossed"]
    found = lt.VarianceComponents.of(lt.fit_lmm(want["formula"], runs))
    variance = dict(zip(want["groups"], want["variances"], strict=True))
    assert found.interaction_sd**2 == approx(variance["b:treatment"] + variance["a:b:treatment"], rel=1e-4)
    assert found.benchmark_sd**2 == approx(variance["b"] + variance["a:b"], rel=1e-4)
    assert found.family_interaction_sd**2 == approx(variance["a:treatment"], rel=1e-4)
    assert (found.pilot.n_benchmarks, found.pilot.n_families) == (len(frame.groupby(["a", "b"])), 9)
    assert any("no benchmark of the planned study is in several families" in note for note in found.notes)


def test_words_of_families_say_who_the_numbers_are_for() -> None:
    found = sources()
    variance = found.sources.groupby("kind")["variance"].sum()
    assert found.n_families == F
    assert found.components().family_interaction_sd == approx(variance["family_interaction"] ** 0.5)
    assert (found.components().pilot.n_benchmarks, found.components().pilot.n_families) == (F * B, F)
    assert found.notes[0].startswith("The 6 spaces are the sample: conclusions apply to new spaces.")
    meaning = found.to_frame().set_index("source")["meaning"]
    assert meaning["space:tool"] == "advantages of algorithms that change between spaces"
    assert meaning["task:tool"] == "advantages of algorithms that change from benchmark to benchmark of one space"
    share = variance["family_interaction"] / (variance["family_interaction"] + variance["interaction"])
    assert found.sentences()[-1] == (
        f"Of the variance of the advantages, an estimated {100 * share:.0f} % lies between families (space:tool)."
    )


def test_too_few_families_leave_the_sources_as_they_are_without() -> None:
    frame = study(families=4)
    (few, scores), (none, same) = (
        run_design(as_runs(frame, family=family), task="", families=True) for family in ("space", None)
    )
    assert few.terms == none.terms
    pd.testing.assert_frame_equal(scores, same)
    assert "too few spaces to be a sample (4;" in few.notes[0]
    assert few.sizes["n_families"] is None


# ---------------------------------------------------------------------- differences by family


@cache
def effects():
    return lt.benchmark_effects(as_runs(FRAME, seed_shared=False), by="family", contrast="pairs", rng=1)


def test_differences_of_families_are_shrunken_by_the_balanced_formula() -> None:
    """As noise counts what benchmarks of one family do not share: k = v / (v + (i + w / n) / b)."""
    table, fit = effects().to_frame(), effects().fit
    sd = fit.varcorr.set_index("group")["variance"]
    k = sd["space:tool"] / (sd["space:tool"] + (sd["task:tool"] + sd["Residual"] / N) / B)
    assert table["estimate"].to_numpy() == approx(
        (table["overall"] + k * (table["observed"] - table["overall"])).to_numpy(), abs=1e-5
    )
    means = FRAME.groupby(["space", "tool"])["loss"].mean().unstack()
    assert table["observed"].to_numpy()[:F] == approx((means["A"] - means["B"]).to_numpy())
    assert effects().between_sd["A", "B"] == approx(np.sqrt(2 * sd["space:tool"]), rel=1e-6)
    # known variances: k times the noise, and what the overall difference is known worse
    noise = 2 * (sd["task:tool"] + sd["Residual"] / N) / B
    v = k * noise + (1 - k) ** 2 * (2 * sd["space:tool"] + noise) / F
    # estimated ones, of so many differences between two of three tools: twice what k adds (Prasad & Rao 1990)
    k_adds = 2 * (1 - k) * noise * (1 - 1 / F) * (1 / (2 * (F - 1)) + 1 / (2 * F * (B - 1)))
    assert table["se"].to_numpy() == approx(np.sqrt(v + 2 * k_adds), rel=1e-4)
    assert next(iter(table.columns)) == "family"
    assert "what the model expects of further benchmarks of this family" in effects().facts[0]


def test_heterogeneity_is_that_of_the_model_without_families() -> None:
    test = effects().heterogeneity
    runs = effects().fit.data
    less = lt.fit_lmm(effects().fit.formula.replace(" + (1 | space:tool)", ""), runs)
    want = lt.glrt(less, effects().fit)
    assert (test.statistic, test.p_value, test.reference) == (approx(want.statistic), approx(want.p_value), "mixture")
    assert effects().sentences()[-1].startswith("Advantages change between families, beyond what")
    draw = np.random.default_rng(2)
    alike = FRAME.assign(loss=draw.normal(size=len(FRAME)) + pd.factorize(FRAME["task"])[0])
    none = lt.benchmark_effects(as_runs(alike), by="family", formula=effects().fit.formula)
    assert none.sentences()[-1].startswith("That advantages change between families, beyond what")


def test_a_difference_on_a_benchmark_has_its_familys_part() -> None:
    found = lt.benchmark_effects(effects().fit.data, contrast="pairs", simultaneous=False)
    fit, first = found.fit, found.to_frame().iloc[0]
    modes = {term.group: dict(zip(term.levels, mode[:, 0], strict=True))
             for term, mode in zip(fit.design.random, fit.modes, strict=True)}  # fmt: skip
    parts = [modes["space:tool"][f"s0:{tool}"] + modes["task:tool"][f"s0-0:{tool}"] for tool in "AB"]
    assert first["estimate"] == approx(first["overall"] + parts[0] - parts[1], abs=1e-9)
    sd = fit.varcorr.set_index("group")["variance"]
    assert found.between_sd["A", "B"] == approx(np.sqrt(2 * (sd["space:tool"] + sd["task:tool"])), rel=1e-6)


def test_families_without_runs_of_an_algorithm_are_extrapolated_and_gaps_within_are_not() -> None:
    gone = ((FRAME["space"] == "s0") & (FRAME["tool"] == "A")) | ((FRAME["task"] == "s1-0") & (FRAME["tool"] == "A"))
    found = lt.benchmark_effects(
        as_runs(FRAME[~gone], seed_shared=False), by="family", contrast="pairs", simultaneous=False
    )
    table = found.to_frame().set_index(["algorithm", "versus", "family"])
    assert table.loc[("A", "B"), "extrapolated"].tolist() == [True, *[False] * 5]
    assert table.loc[("A", "B"), "se"].idxmax() == "s0"
    left = FRAME[(FRAME["space"] == "s1") & (FRAME["task"] != "s1-0")].groupby("tool")["loss"].mean()
    assert table.loc[("A", "B", "s1"), "observed"] == approx(left["A"] - left["B"])
    assert any("On 1 of 6 families some algorithm was not run (s0: A)" in note for note in found.notes)


def test_ranks_within_benchmarks_are_compared_by_family_too() -> None:
    """Their model has a fixed mean for each benchmark, which cancels; columns to be ignored do not disturb."""
    runs = as_runs(FRAME.assign(extra=1), seed_shared=False, ignore=["extra"]).normalize("rank")
    found = lt.benchmark_effects(runs, by="family", contrast="pairs", simultaneous=False)
    assert "+ task" in found.fit.formula
    table = found.to_frame()
    k = (table["estimate"] - table["overall"]) / (table["observed"] - table["overall"])
    assert k.to_numpy() == approx(k[0], rel=1e-6)
    assert 0.0 < k[0] < 1.0


def test_too_few_families_have_no_shrunken_differences() -> None:
    refuses(DesignError, "needs 5 families or more", lt.benchmark_effects, as_runs(study(families=4)), by="family")
    refuses(DesignError, "the runs name none", lt.benchmark_effects, as_runs(FRAME, family=None), by="family")
    for family, why in (("task", r"each of the \d+ groups holds one\."), (None, r"there is 1 group\.")):
        frame = FRAME.assign(group=FRAME[family] if family else "all")
        refuses(DesignError, why, lt.benchmark_effects, as_runs(frame, family="group"), by="family")
    means = "loss ~ tool * space + (1 | task) + (1 | task:tool)"  # families have means of their own
    fixed = lt.benchmark_effects(as_runs(study(families=4)), contrast="pairs", simultaneous=False, formula=means)
    assert fixed.to_frame()["overall"].round(9).nunique() == 4 * 3
