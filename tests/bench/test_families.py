"""Studies of runs whose benchmarks come in families: what is the sample, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refusal, refuses
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.data.requirements import sampled
from lmemtest.bench.robustness.variants import name_groups
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.lmm.hypotheses.mean_vectors import between_groups

runs_of = partial(as_runs, seed_shared=False)


def table(sizes: tuple[int, ...], tools: str = "ABC", *, crossed: bool = False, rng: int = 1) -> pd.DataFrame:
    """Advantages that belong to the spaces, others to their tasks, and two runs of each."""
    draw, rows = np.random.default_rng(rng), []
    for space, size in enumerate(sizes):
        of_space = draw.normal(size=len(tools))
        for task in range(size):
            own = of_space + draw.normal(size=len(tools))
            for tool, seed in product(range(len(tools)), range(2)):
                name = f"t{task}" if crossed else f"s{space}-t{task}"
                rows.append((f"s{space}", name, tools[tool], seed, own[tool] + draw.normal()))
    return pd.DataFrame(rows, columns=["space", "task", "tool", "seed", "loss"])


def family_means(frame: pd.DataFrame) -> pd.DataFrame:
    """The witness: runs to tasks to spaces, each level with equal weights."""
    of_tasks = frame.groupby(["space", "task", "tool"])["loss"].mean()
    return of_tasks.groupby(["space", "tool"]).mean().unstack("tool")


SIZES = (1, 2, 3, 2, 4, 1)
FRAME = table(SIZES)
RUNS = runs_of(FRAME)


def test_families_are_the_sample_where_there_are_enough_of_them() -> None:
    found = sampled(RUNS)
    assert (found.noun, found.column) == ("family", "space")
    assert found.notes == (
        "The 6 spaces are the sample: conclusions apply to new spaces. For new tasks of these spaces: Runs(..., "
        "family=None).",
    )
    assert found.weights == ("Each space counts the same, with the mean over its 1 to 4 tasks.",)
    few = runs_of(table((2, 3, 2))).study.sampled
    assert (few.noun, few.column) == ("benchmark", "task")
    assert few.notes == (
        "There are too few spaces to be a sample (3; 5 or more are taken for one), so conclusions apply to new tasks "
        "of these spaces, not to new spaces.",
    )
    one_each = runs_of(table((1, 1, 1, 1, 1, 1))).study.sampled
    assert (one_each.noun, one_each.notes) == ("benchmark", ())


def test_the_coarsest_families_that_are_enough_are_the_sample() -> None:
    frame = FRAME.assign(suite=FRAME["space"].isin(["s0", "s1", "s2"]).map({True: "old", False: "new"}))
    found = runs_of(frame, family=["suite", "space"]).study.sampled
    assert found.column == "space"
    assert "conclusions apply to new spaces of these 2 suites" in found.notes[0]


def test_a_benchmark_in_several_families_is_one_observation_in_each_of_them() -> None:
    frame = table(SIZES, crossed=True)
    found = runs_of(frame)
    blocks = blocks_of(found)
    assert blocks.unit == "family"
    np.testing.assert_allclose(blocks.scores, family_means(frame))
    assert "Some tasks are in several spaces, which count as independent all the same" in found.study.sampled.notes[1]


def test_ranks_are_those_of_the_means_of_families() -> None:
    found = lt.rank(RUNS, "frequentist", test="nemenyi", n_draws=100, rng=1)
    ranks = family_means(FRAME).rank(axis=1).mean()
    assert found.table.set_index("algorithm")["mean_rank"].to_dict() == pytest.approx(ranks.to_dict())
    assert found.blocks.said() == "6 families"
    assert any("conclusions apply to new spaces" in note for note in found.notes)
    assert blocks_of(replace(RUNS, family=())).said() == "13 benchmarks"


def test_two_algorithms_are_compared_by_the_paired_t_test_over_families() -> None:
    frame = FRAME[FRAME["tool"] != "C"]
    means = family_means(frame)
    found = lt.rank(runs_of(frame), "frequentist", test="t").pairs.iloc[0]
    assert found["p_value"] == pytest.approx(stats.ttest_rel(means["A"], means["B"]).pvalue)


def test_tasks_without_an_algorithm_are_left_out_of_their_family() -> None:
    frame = FRAME[(FRAME["task"] != "s2-t1") | (FRAME["tool"] != "B")]
    blocks = blocks_of(runs_of(frame))
    np.testing.assert_allclose(blocks.scores, family_means(FRAME[FRAME["task"] != "s2-t1"]))
    assert blocks.notes[-1] == "1 benchmark lacks an algorithm and is left out of the means of the families."


def test_signs_are_those_of_whole_families() -> None:
    means = family_means(FRAME)
    found = lt.permutation_test(RUNS, exchange="signs")
    assert found.table["estimate"].tolist() == pytest.approx(
        [(means[a] - means[b]).mean() for a, b in ("AB", "AC", "BC")]
    )
    assert (found.n_benchmarks, found.unit, found.smallest) == (6, "family", 1 / 32)
    assert found.hypothesis.startswith("over families like these no algorithm is better")


@pytest.mark.level(2)
def test_whole_families_exchange_their_names() -> None:
    runs = runs_of(table((2, 1, 1, 3, 1), "AB"))
    found = lt.permutation_test(runs, "loss ~ tool + (1 | space:tool)", n_draws=19, rng=1)
    assert (found.unit, found.n_strata) == ("family", 5)
    assert "There are only 32 distinct relabellings, so the p-value cannot be smaller than 0.063" in found.notes[1]
    # one of the 16 different patterns is the table as it is; the mean over families is what the model estimates
    many = lt.permutation_test(
        runs, "loss ~ tool + (1 | space)", lambda fit: abs(fit.params.iloc[1]), unit="family", n_draws=199, rng=1
    )
    assert len(np.unique(many.draws.round(8))) == 16


def notes_of(runs: lt.Runs) -> list[str]:
    return [found.message for found in lt.check(runs, checks=["roles"]).findings]


def test_check_says_what_families_are_not() -> None:
    assert notes_of(runs_of(table((2, 2, 2, 2, 2)))) == []
    frame = table((1, 1, 1, 1, 7))
    assert notes_of(runs_of(frame)) == ["The 5 spaces hold 1 to 7 tasks."]
    assert notes_of(runs_of(frame[frame["space"] == "s4"])) == [
        "The family 'space' has one level, so it groups nothing and says nothing about other spaces."
    ]
    assert notes_of(runs_of(frame[frame["space"] != "s4"])) == [
        "Each of the 4 levels of the family 'space' holds one benchmark: the tasks are the families."
    ]
    assert notes_of(runs_of(table((2, 3, 2))))[0].startswith("There are too few spaces to be a sample (3;")


def test_check_asks_whether_numbers_of_tasks_mean_something() -> None:
    frame = table((2, 2, 2, 2, 2), crossed=True)
    (finding,) = lt.check(runs_of(frame), checks=["roles"]).findings
    assert (finding.severity, finding.count) == ("note", 2)
    assert finding.message.startswith("2 of 2 tasks are in several spaces (such as 't0')")
    numbered = frame.assign(task=frame["task"].str[1:].astype(int))
    (finding,) = lt.check(runs_of(numbered), checks=["roles"]).findings
    assert finding.severity == "warning"
    assert finding.advice.endswith(
        "give them unique names: df['task'] = df['space'].astype(str) + '-' + df['task'].astype(str)."
    )


def test_check_finds_algorithms_without_whole_families_and_columns_that_may_be_families() -> None:
    frame = table((2, 2, 2, 2, 2))
    lacking = frame[(frame["tool"] != "B") | ~frame["space"].isin(["s1", "s3"])]
    found = lt.check(runs_of(lacking), checks=["roles"]).findings
    assert [(f.kind, f.severity, f.algorithm) for f in found] == [("missing_families", "warning", "B")]
    assert found[0].message == "'B' has no runs on any task of 2 spaces (s1, s3), where other algorithms have."
    for roles in ({"family": ()}, {"family": (), "metafeatures": ["space"]}):
        (note,) = lt.check(runs_of(frame, **roles), checks=["roles"]).findings
        assert note.message.startswith("The 5 values of 'space' group the 10 tasks.")
        assert note.advice.endswith("give it the role: Runs(..., family='space').")
    assert notes_of(runs_of(frame, family=(), ignore=["space"])) == []
    assert "10 benchmarks, 5 families, 2 seeds" in lt.check(runs_of(frame), checks=["roles"]).overview


def curves(sizes: tuple[int, ...] = SIZES, rng: int = 3) -> pd.DataFrame:
    """Straight curves over four budgets that differ by space, by task and by run."""
    frame = table(sizes, rng=rng)
    slope = table(sizes, rng=rng + 1)["loss"]
    steps = [frame.assign(step=step, loss=frame["loss"] + 0.3 * step * slope) for step in range(1, 5)]
    found = pd.concat(steps, ignore_index=True)
    return found.assign(loss=found["loss"] + 0.1 * np.random.default_rng(rng).normal(size=len(found)))


def family_curves(frame: pd.DataFrame) -> pd.DataFrame:
    """The witness: each space has one curve per algorithm, the mean over its tasks of the means over runs."""
    of_tasks = frame.groupby(["space", "task", "tool", "step"])["loss"].mean()
    return of_tasks.groupby(["space", "tool", "step"]).mean().reset_index()


CURVES = curves()
AS_BENCHMARKS = {"benchmark": "space", "family": None}


def test_curves_are_those_of_families() -> None:
    found = lt.anytime(runs_of(CURVES), n_draws=1000, rng=1)
    witness = lt.anytime(as_runs(family_curves(CURVES), **AS_BENCHMARKS), n_draws=1000, rng=1)
    pd.testing.assert_frame_equal(found.differences, witness.differences)
    assert (found.n_sample, found.sample) == (6, "families")
    assert found.notes[0].startswith("The 6 spaces are the sample: conclusions apply to new spaces.")


@pytest.mark.level(2)
def test_incomplete_curves_have_random_curves_of_families() -> None:
    lacking = CURVES[(CURVES["task"] != "s2-t1") | (CURVES["tool"] != "B")]
    found = lt.anytime(runs_of(lacking), columns=1, n_draws=1000, rng=1)
    groups = {bar.groups for bar in found.fit.design.parsed.bars}
    assert groups == {("space",), ("space", "tool"), ("task",), ("task", "tool")}
    assert (found.n_sample, set(found.df_differences.ravel())) == (6, {10.0})


def test_effects_of_the_budget_are_those_of_families() -> None:
    found = lt.budget_effect(runs_of(CURVES), form="linear")
    witness = lt.budget_effect(as_runs(family_curves(CURVES), **AS_BENCHMARKS), form="linear")
    columns = ["f_ratio", "df_num", "df_den", "mean_p", "n", "p_value"]
    pd.testing.assert_frame_equal(found.to_frame()[columns], witness.to_frame()[columns])
    assert found.sample == "families"


def test_relative_ranks_are_means_over_families() -> None:
    frame = CURVES[CURVES["step"] == 4]
    ranks = frame.assign(rank=frame.groupby(["task", "seed"])["loss"].rank())
    of_tasks = ranks.groupby(["space", "task", "tool"])["rank"].mean()
    of_spaces = of_tasks.groupby(["space", "tool"]).mean().unstack("tool")
    found = lt.anytime(runs_of(frame)).ranks()
    assert found.unit == "families"
    assert found.table["rank"].tolist() == pytest.approx(of_spaces.mean().tolist())
    assert found.table["se"].tolist() == pytest.approx(of_spaces.sem().tolist())
    each = lt.anytime(runs_of(frame)).ranks(by="space")  # a space by itself is no sample of spaces
    assert each.unit != "families"


@pytest.mark.level(2)
def test_horizons_keep_the_families() -> None:
    found = lt.anytime(runs_of(CURVES)).at([1, (2, 4)], windows="random")
    assert "(1 | space:tool:step)" in found.horizons["2-4"].formula
    assert found.horizons["1"].fit.data.family == ("space",)


def test_notes_say_what_is_to_be_added_and_why_an_interval_is_approximate() -> None:
    frame = table(SIZES)
    lacking = frame[(frame["tool"] != "B") | (frame["space"] != "s2")]
    notes = lt.rank(runs_of(lacking), "frequentist", test="wilcoxon", n_draws=100, rng=1).notes
    assert any(note.endswith("method='lmem', or add families.") for note in notes)
    balanced = runs_of(table((3,) * 6, crossed=True))
    (note,) = (note for note in lt.ranking_reliability(balanced).notes if "approximate" in note)
    assert note.startswith("Benchmarks are in several families: the interval")


def test_no_clear_interval_is_none_against_the_overall_difference() -> None:
    found = lt.benchmark_effects(runs_of(table((2,) * 5, rng=3)), by="family")
    assert found.sentences()[0] == "0 of 15 intervals (simultaneous for each algorithm separately) exclude zero."


def test_what_is_to_be_added_to_distributions_over_families_is_families() -> None:
    few = lt.outperforming(
        runs_of(table((2,) * 5)), measure="stochastic_order", sample="benchmarks", n_draws=200, rng=1
    )
    assert any(note.endswith("Add families, or compare fewer algorithms.") for note in few.notes)


def test_a_search_of_terms_says_when_it_knows_no_families() -> None:
    runs = runs_of(table((2,) * 5))
    found = lt.select_model(runs, candidates=["(1 | task:tool)"])
    assert found.notes[-2].startswith("Families are not in it: tasks count as independent")
    known = lt.select_model(runs, candidates=["(1 | space)", "(1 | task:tool)"])
    assert not any(note.startswith("Families are not") for note in known.notes)


# ---------------------------------------------------------------------- undeclared families


FAMILIES, TASKS = 5, 4


def runs_of_undeclared(share: float, *, named: bool = True, seed: int = 3, roles: dict | None = None) -> lt.Runs:
    """Three equal algorithms; `share` of the variance of their advantages lies between families."""
    rng = np.random.default_rng(seed)
    of_families = np.repeat(rng.normal(size=(FAMILIES, 3)), TASKS, axis=0)
    y = np.sqrt(share) * of_families + np.sqrt(1.0 - share) * rng.normal(size=(FAMILIES * TASKS, 3))
    b, a = np.indices(y.shape).reshape(2, -1)
    table = pd.DataFrame({"tool": [f"a{i}" for i in a], "score": y.ravel()})
    table["task"] = [f"space{i // TASKS}-t{i % TASKS}" if named else f"t{i}" for i in b]
    if not named:
        table["suite"] = [f"s{i // TASKS}" for i in b]
    return as_runs(table, "maximize", **(roles or {}))


def test_one_column_is_the_analysis_of_variance():
    x = np.random.default_rng(1).normal(size=23)
    group = np.array([0] * 4 + [1] * 9 + [2] * 10)
    want = stats.f_oneway(*(x[group == g] for g in range(3)))
    got = between_groups(x[:, None], group)
    assert (got.f_ratio, got.p_value) == pytest.approx((want.statistic, want.pvalue), rel=1e-10)


def test_the_test_of_groups_keeps_its_level_with_an_erratic_algorithm():
    rng, n, group = np.random.default_rng(2), 2000, np.repeat(np.arange(FAMILIES), TASKS)
    for sds in (np.ones(4), np.array([5.0, 1.0, 1.0, 1.0])):
        y = rng.normal(size=(n, FAMILIES * TASKS, 4)) * sds
        y -= y.mean(axis=2, keepdims=True)
        rate = np.mean([between_groups(table, group).p_value < 0.05 for table in y])
        assert rate <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


@pytest.mark.parametrize(
    "named", [pytest.param(True, id="by names"), pytest.param(False, id="by a column", marks=pytest.mark.level(2))]
)
def test_shared_advantages_are_said_beside_the_answer(named):
    runs = runs_of_undeclared(0.8, named=named)
    analysis = lt.analyze(runs)
    found = analysis.undeclared
    assert (found.column, found.n_families, found.shows) == (None if named else "suite", 5, True)
    table = runs.frame.to_native()
    families = table["task"].map(found.families.set_index("benchmark")["family"])
    table = table.assign(f=families).drop(columns="suite", errors="ignore")
    declared = lt.analyze(lt.Runs(table, **{**runs.roles(), "family": "f"}))
    assert found.significant == int(np.triu(declared.decisions.significant.to_numpy()).sum())
    assert "Related benchmarks: the " in analysis.headline()
    assert f"With these groups as the sample {found.significant} of 3 pairs differ" in analysis.headline()
    assert declared.undeclared is None


def test_groups_that_share_nothing_are_not_spoken_of():
    analysis = lt.analyze(runs_of_undeclared(0.0))
    assert not analysis.undeclared.shows
    assert "families" not in analysis.headline()
    assert lt.analyze(
        runs_of_undeclared(0.8, named=False, roles={"ignore": "suite"})
    ).undeclared.shows  # left out, but not unseen


def test_names_that_make_no_groups():
    assert name_groups(["LC-126026", "LC-167190", "LC-168910", "LC-189906"]) is None  # one group
    assert name_groups(["ant-v4", "hopper-v4", "walker-v4", "cheetah-v2"]) is None
    parts = ["mnist_train", "mnist_test", "cifar_train", "cifar_test"]
    assert name_groups(parts) == ["mnist", "mnist", "cifar", "cifar"]
    assert name_groups(["adult", "bank-marketing", "car", "jungle-chess"]) is None


# ---------------------------------------------------------------------- the role


ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"
}  # fmt: skip


def small_table(*, crossed: bool) -> pd.DataFrame:
    """Three spaces in two suites, two tasks each, with the same names in every space or with names of their own."""
    spaces = (("small", "svm"), ("small", "tree"), ("large", "net"))
    rows = [
        (suite, space, f"t{task}" if crossed else f"{space}-{task}", tool, seed)
        for (suite, space), task, tool, seed in product(spaces, range(2), "AB", range(2))
    ]
    frame = pd.DataFrame(rows, columns=["suite", "space", "task", "tool", "seed"])
    return frame.assign(loss=range(len(frame)))


def test_nested_families_leave_benchmarks_as_the_instances() -> None:
    runs = lt.Runs(small_table(crossed=False), family="space", **ROLES)
    assert runs.family == ("space",)
    assert runs.instance == ("task",)
    assert runs.study.crossed == ()
    assert runs.study.families == (("space",),)
    assert lt.Runs(runs.frame, **runs.roles()).family == ("space",)
    assert runs.filter(family=["svm", "net"]).levels("task") == ("net-0", "net-1", "svm-0", "svm-1")


def test_a_benchmark_in_several_families_is_an_instance_in_each() -> None:
    runs = lt.Runs(small_table(crossed=True), family="space", **ROLES)
    assert runs.instance == ("task", "space")
    assert runs.study.count(*runs.instance) == 6
    assert not [finding for finding in runs.check(rules_only=True).findings if finding.kind == "copied_runs"]
    lazy = pytest.importorskip("polars").from_pandas(small_table(crossed=True)).lazy()
    assert lt.Runs(lazy, family="space", **ROLES).study.crossed == ("space",)


def test_levels_of_families_are_those_that_say_something() -> None:
    frame = small_table(crossed=False).assign(everything="all", own=lambda t: "x" + t["task"])
    runs = lt.Runs(frame, family=["everything", "suite", "space", "own"], **ROLES)
    assert runs.study.families == (("everything", "suite"), ("everything", "suite", "space"))
    assert lt.Runs(frame, family="everything", **ROLES).study.families == ()
    assert lt.Runs(frame, family="own", **ROLES).study.families == ()


def test_wide_tables_have_families() -> None:
    wide = {"task": ["a", "b"], "space": ["x", "y"], "HB": [0.1, 0.3], "RS": [0.2, 0.5]}
    runs = lt.Runs.from_wide(wide, direction="minimize", benchmark="task", family="space")
    assert runs.family == ("space",)
    assert runs.algorithms == ("HB", "RS")


def test_wrong_families_are_refused() -> None:
    frame = small_table(crossed=False)
    refuses(UnknownColumnError, "family names the column 'sapce'", lt.Runs, frame, family="sapce", **ROLES)
    refuses(ArgumentError, "family and benchmark both name the column 'task'", lt.Runs, frame, family="task", **ROLES)
    with pytest.raises(DataError, match=r"spaces are parts of suites: .* round, family=\['suite', 'space'\]\.$"):
        lt.Runs(frame, family=["space", "suite"], **ROLES)
    frame["size"] = frame["task"].str[-1]
    assert refusal(lambda: lt.Runs(frame, family=["size", "space"], **ROLES), DataError) == (
        "family must go from coarse to fine, and 3 of 3 spaces are in several sizes, such as 'net'. If only their "
        "names are the same, give them unique names: df['space'] = df['size'].astype(str) + '-' + "
        "df['space'].astype(str). If they do lie across the sizes, name one of the two columns as the family."
    )
    with pytest.raises(ArgumentError, match="no column of benchmarks is named"):
        lt.Runs(frame, family="space", **{**ROLES, "benchmark": None})


def test_the_builder_reads_the_role() -> None:
    runs = lt.Runs(small_table(crossed=False), family="space", **ROLES)
    assert lt.ModelBuilder(runs).random("family").formula() == "loss ~ tool + (1 | space)"
    runs = lt.Runs(small_table(crossed=False), family=["suite", "space"], **ROLES)
    refuses(ArgumentError, "these runs have several: suite, space", lt.ModelBuilder(runs).random, "family")


def test_ranks_are_made_within_each_family_of_a_benchmark() -> None:
    crossed = lt.Runs(small_table(crossed=True), family="space", **ROLES).normalize("rank")
    assert crossed.scale is not None
    assert crossed.scale.by == ("task", "space")
    assert crossed.frame.to_native()["loss_rank"].max() == 4
    nested = lt.Runs(small_table(crossed=False), family="space", **ROLES).normalize("rank")
    assert nested.scale is not None
    assert nested.scale.by == ("task",)


def test_a_lazy_table_has_the_note_on_columns_that_group_benchmarks() -> None:
    frame = table((4, 4, 4)).assign(run=lambda t: t["task"] + t["seed"].astype(str), dirty=lambda t: t["space"])
    frame.loc[0, "dirty"] = None
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}

    def found(data: Any) -> list[str]:
        findings = lt.Runs(data, **roles).check(rules_only=True).findings
        return [finding.message for finding in findings if finding.kind == "families"]

    assert found(pl.from_pandas(frame).lazy()) == found(frame)
    assert [message.split(" group")[0] for message in found(frame)] == ["The 3 values of 'space'"]
