"""The gate against t-tests, by what must not change it, and what it says where it cannot say anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import integrate, stats

import lmemtest as lt
from lmemtest.bench.gate.metric import units_needed
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

TASKS = [f"t{i}" for i in range(8)]
ROLES: dict[str, Any] = {"score": "accuracy", "benchmark": "task", "seed": "seed"}


def versions(loss: float = 0.0, *, n_seeds: int = 1, seed: int = 1, spread: float = 0.01) -> list[pd.DataFrame]:
    """The new and the old version; the new one is worse by `loss`."""
    rng = np.random.default_rng(seed)
    keys = pd.MultiIndex.from_product([TASKS, range(n_seeds)], names=["task", "seed"]).to_frame(index=False)
    level = np.repeat(rng.uniform(0.5, 0.9, len(TASKS)), n_seeds)
    return [keys.assign(accuracy=level - shift + rng.normal(0.0, spread, len(keys))) for shift in (loss, 0.0)]


def gate(new: pd.DataFrame, old: pd.DataFrame, **options: Any) -> Any:
    return lt.gate(new, old, **{"margin": 0.01, **ROLES, **options})


# --------------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("n_seeds", [1, 4])
def test_with_complete_tables_it_is_the_paired_t_test_over_tasks(n_seeds: int) -> None:
    new, old = versions(0.004, n_seeds=n_seeds, spread=0.003)
    rng = np.random.default_rng(8)  # advantages on tasks, far above the noise
    new["accuracy"] += np.repeat(rng.normal(0.0, 0.01, len(TASKS)), n_seeds)
    row = gate(new, old).metrics.iloc[0]
    means = [t.groupby("task")["accuracy"].mean().to_numpy() for t in (new, old)]
    passes, fails = (stats.ttest_rel(means[0] + 0.01, means[1], alternative=side) for side in ("greater", "less"))
    assert row["difference"] == pytest.approx(np.mean(means[0] - means[1]), rel=1e-8)
    assert [row["p_not_worse"], row["p_worse"]] == pytest.approx([passes.pvalue, fails.pvalue], rel=1e-5)
    interval = stats.ttest_rel(*means).confidence_interval(0.9)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(list(interval), rel=1e-5)


def test_on_one_of_these_tasks_it_is_the_t_test_of_its_runs() -> None:
    new, old = (t[t["task"] == "t1"] for t in versions(0.02, n_seeds=6))
    paired = gate(new, old, tasks="these").metrics.iloc[0]
    want = stats.ttest_rel(new["accuracy"] + 0.01, old["accuracy"], alternative="greater")
    assert [paired["p_not_worse"], paired["df"]] == pytest.approx([want.pvalue, 5], rel=1e-9)
    alone = gate(new, old.iloc[:4], tasks="these", seed=None, ignore="seed").metrics.iloc[0]
    want = stats.ttest_ind(new["accuracy"] + 0.01, old["accuracy"][:4], equal_var=False, alternative="greater")
    assert [alone["p_not_worse"], alone["df"]] == pytest.approx([want.pvalue, want.df], rel=1e-9)


def test_a_relative_margin_is_tested_with_its_own_error() -> None:
    new, old = versions(0.004)
    row = gate(new, old, margin="2%").metrics.iloc[0]
    want = stats.ttest_rel(new["accuracy"], 0.98 * old["accuracy"], alternative="greater")
    assert row["margin"] == pytest.approx(0.02 * old["accuracy"].mean(), rel=1e-12)
    assert row["p_not_worse"] == pytest.approx(want.pvalue, rel=1e-6)
    at = float(want.pvalue)
    for alpha in (at * 1.01, at * 0.99):  # the bound is beyond the margin where the test decides
        found = gate(new, old, margin="2%", alpha=alpha).metrics.iloc[0]
        assert (found["ci_low"] > -found["margin"]) == (found["decision"] == "not worse") == (alpha > at)


def test_runs_of_two_algorithms_and_long_tables_give_the_same() -> None:
    new, old = versions(0.004, n_seeds=2)
    want = gate(new, old).metrics.drop(columns=["metric"])
    both = pd.concat([new.assign(tool="v2"), old.assign(tool="v1")])
    runs = lt.Runs(both, score="accuracy", direction="maximize", algorithm="tool", benchmark="task", seed="seed")
    found = lt.gate(runs, "v1", margin=0.01)
    pd.testing.assert_frame_equal(found.metrics.drop(columns=["metric"]), want, rtol=1e-6)
    assert found.sentences()[0].startswith("Cannot say whether v2 is worse than v1 for tasks like these 8")
    assert lt.gate(runs, "v1", margin=0.1).sentences()[0].startswith("v2 is not worse than v1 by the margin or more")
    long = [t.rename(columns={"accuracy": "value"}).assign(name="accuracy") for t in (new, old)]
    found = lt.gate(*long, margin=0.01, score="value", metric="name", benchmark="task", seed="seed")
    pd.testing.assert_frame_equal(found.metrics.drop(columns=["metric"]), want)


@pytest.mark.parametrize("n_suites", [6, 2])
def test_families_are_the_sample_where_there_are_enough_of_them(n_suites: int) -> None:
    rng = np.random.default_rng(4)
    keys = pd.MultiIndex.from_product([range(n_suites), range(12 // n_suites)], names=["suite", "task"])
    keys = keys.to_frame(index=False).assign(task=range(12))
    shift = [rng.normal(0.0, 0.01, n_suites)[keys["suite"]] + rng.normal(0.0, 0.002, 12) for _ in range(2)]
    new, old = (keys.assign(accuracy=0.5 + 0.03 * keys["suite"] + 0.001 * keys["task"] + own) for own in shift)
    found = gate(new, old, seed=None, family="suite")
    row = found.metrics.iloc[0]
    d = (new["accuracy"] - old["accuracy"]).groupby(keys["suite"]).mean()
    if n_suites == 6:
        assert [row["se"], row["df"]] == pytest.approx([d.std() / np.sqrt(6), 5], rel=1e-4)
        assert (row["unit"], row["n"], found.title) == ("suite", 6, f"Gate: {found.decision}, for new suites")
        assert row["broken_high"] == pytest.approx(1 - 0.05 ** (1 / 6))
        found = gate(new, old, seed=None, family="suite", margin=0.008)
        row = found.metrics.iloc[0]
        assert row["n_needed"] > 6
        assert found.sentences()[-1].startswith(f"To settle it: {row['n_needed'] - 6:.0f} further suites, if")
    else:
        assert (row["unit"], row["n"]) == ("task", 12)
        assert found.title.endswith("for new tasks of these 2 suites")


# -------------------------------------------------------------------------------- what a sample cannot show


def broken(n_tasks: int, n_broken: int) -> Any:
    """Two versions that differ by noise on most tasks and by a loss of 0.5 on some."""
    d = np.random.default_rng(1).normal(0.0, 0.001, n_tasks) - 0.5 * (np.arange(n_tasks) < n_broken)
    table = pd.DataFrame({"task": range(n_tasks), "accuracy": 0.9})
    return table.assign(accuracy=0.9 + d), table


@pytest.mark.parametrize(("n_broken", "needed"), [(0, 29), (1, 46), (2, 61)])
def test_a_share_of_broken_tasks_takes_as_many_tasks_as_the_binomial_distribution_says(n_broken, needed):
    assert stats.binom.cdf(n_broken, needed, 0.1) <= 0.05 < stats.binom.cdf(n_broken, needed - 1, 0.1)
    for n_tasks in (needed - 1, needed):
        found = gate(*broken(n_tasks, n_broken), seed=None, margin=0.045, max_broken=0.1)
        row = found.metrics.iloc[0]
        assert [row["broken_loss"], row["n_broken"]] == pytest.approx([0.45, n_broken])
        assert row["broken_high"] == pytest.approx(stats.beta.isf(0.05, n_broken + 1, n_tasks - n_broken))
        enough = row["broken_high"] <= 0.1
        assert enough == (n_tasks == needed)
        if not n_broken:
            assert found.exit_code == (0 if enough else 2)
        said = [text for text in found.sentences() if "of tasks like these may" in text]
        assert len(said) == 1
        assert enough or said[0].endswith(
            f"It takes {needed} tasks without {'another' if n_broken else 'such a'} loss: 1 more."
        )


def test_beside_a_version_that_passes_stands_what_so_many_tasks_leave_open() -> None:
    found = gate(*broken(12, 0), seed=None)
    row = found.metrics.iloc[0]
    assert found.exit_code == 0
    assert row["broken_high"] == pytest.approx(1 - 0.05 ** (1 / 12))
    assert row["broken_loss"] * row["broken_high"] == pytest.approx(0.01)
    assert found.sentences()[2:] == (
        "accuracy: none of 12 tasks lost more than 0.04526 (means of runs); up to 22 % of tasks like these may (95 %), "
        "and so many such losses add up to the margin.",
        "If none of the 12 runs of the new version failed, and runs fail independently, up to 22 % may (95 %).",
    )


def test_losses_that_are_skewed_and_few_pass_only_far_from_the_margin() -> None:
    q = (np.arange(20) + 0.5) / 20
    old = pd.DataFrame({"task": range(20), "accuracy": 0.9})
    new = old.assign(accuracy=0.9 - 0.01 * stats.lognorm.ppf(q, 1.0))
    d = (new["accuracy"] - old["accuracy"]).to_numpy()
    half = stats.t.isf(0.05, 19) * d.std(ddof=1) / np.sqrt(20)
    for times, code in ((0.9, 2), (1.1, 2), (1.9, 2), (2.1, 0)):
        found = gate(new, old, seed=None, margin=times * half - d.mean())
        assert found.exit_code == code
        assert found.metrics["doubt"].iloc[0] == ("skewed losses" if 1 < times < 2 else "")
        if found.metrics["doubt"].iloc[0]:
            assert "accuracy: losses are skewed (the largest is that of 19)" in found.notes[-1]
            assert np.isnan(found.metrics["p_not_worse"].iloc[0])
    gains = old.assign(accuracy=old["accuracy"] + 2 * d.mean() - d)  # skewed gains let too little through, not too much
    assert gate(gains, old, seed=None, margin=1.1 * half - d.mean()).exit_code == 0
    many = pd.DataFrame({"task": range(200), "accuracy": 0.9})
    d = 0.001 * stats.expon.ppf((np.arange(200) + 0.5) / 200)  # 25 g^2 are about 90
    half = stats.t.isf(0.05, 199) * d.std(ddof=1) / np.sqrt(200)
    assert gate(many.assign(accuracy=0.9 - d), many, seed=None, margin=d.mean() + 1.1 * half).exit_code == 0


def test_failed_runs_that_are_known_are_counted_and_their_share_is_limited() -> None:
    new, old = versions(n_seeds=5, seed=2)
    both = pd.concat([new.assign(tool="v2"), old.assign(tool="v1")], ignore_index=True).assign(crashed=False)
    roles = {"direction": "maximize", "algorithm": "tool", **ROLES, "failed": "crashed"}
    none = lt.gate(lt.Runs(both, **roles), "v1", margin=0.02).sentences()[-1]
    assert none == "None of the 40 runs of v2 failed; up to 7.2 % may (95 %), if runs fail independently."
    assert pytest.approx(0.0722, abs=5e-5) == 1 - 0.05 ** (1 / 40)
    both.loc[[3, 47], "crashed"] = True  # one of each version
    left = lt.gate(lt.Runs(both, **roles).score_failures("drop"), "v1", margin=0.02, allow="missing")
    assert (left.n_failed, left.n_runs) == (1, 40)
    assert left.sentences()[-2].startswith(
        f"1 of the 40 runs of v2 failed; up to {100 * stats.beta.isf(0.05, 2, 39):.0f} %"
    )


# -------------------------------------------------------------------------------------------- three answers


def test_the_answer_is_about_the_margin_and_says_what_it_leaves_open() -> None:
    fine, worse, unclear = gate(*versions(0.001, spread=0.003)), gate(*versions(0.03)), gate(*versions(0.011))
    assert [found.decision for found in (fine, worse, unclear)] == ["not worse", "worse", "cannot say"]
    assert [found.exit_code for found in (fine, worse, unclear)] == [0, 1, 2]
    assert worse.sentences()[0] == (
        "The new version is worse than the old version by more than the margin for tasks like these 8: accuracy."
    )
    assert "significantly worse (p = 0.0" in unclear.sentences()[1]
    assert unclear.sentences()[1].endswith("and whether by more than the margin is open.")
    small = gate(*versions(0.004, spread=0.001))
    assert small.decision == "not worse"
    assert small.sentences()[1].endswith("though significantly worse by less than that (p < 0.001).")


def test_all_metrics_must_pass_and_any_can_fail_after_holm() -> None:
    (new, old), (other, base) = versions(0.0, spread=0.003), versions(0.02, seed=3)
    new, old = new.assign(f1=other["accuracy"]), old.assign(f1=base["accuracy"])
    alone = gate(new, old, score="f1").metrics.iloc[0]
    found = gate(new, old, score=["accuracy", "f1"])
    assert alone["p_worse"] < 0.05 < 2 * alone["p_worse"]
    assert found.metrics["p_worse"].tolist()[1] == pytest.approx(2 * alone["p_worse"], rel=1e-12)
    assert found.metrics["decision"].tolist() == ["not worse", "cannot say"]
    assert found.decision == "cannot say"
    assert gate(new, old, score=["accuracy", "f1"], alpha=0.2).decision == "worse"
    assert gate(new, old, margin={"accuracy": 0.01, "*": 0.06}, score=["accuracy", "f1"]).decision == "not worse"


def assurance(n: int, away: float, df: float) -> float:
    """Power of a t-test on n tasks, over what variances may be where one was estimated on `df` degrees of freedom."""

    def chance(s: float) -> float:
        return stats.chi.pdf(s, df, scale=df**-0.5) * stats.nct.sf(stats.t.isf(0.05, n - 1), n - 1, away * s)

    return float(integrate.quad(chance, 0.01, 3.0)[0])


def test_the_number_of_tasks_gives_the_power_by_the_noncentral_t_over_the_variances_that_may_be() -> None:
    for tasks in ("like these", "these"):
        needed = units_needed(0.01, 9.0, 10, 0.02, tasks=tasks, alpha=0.05, power=0.8)
        few, enough = (assurance(n, 0.02 / (0.01 * np.sqrt(10 / n)), 9.0) for n in (needed - 1, needed))
        assert few < 0.8 <= enough
    assert units_needed(0.01, 9.0, 10, 1e-7, tasks="these", alpha=0.05, power=0.8) is None
    assert gate(*versions(0.006, seed=3)).sentences()[-1] == (
        "To settle it: 18 further tasks, if the versions are equal and scores vary as here (power 80 %, with the error "
        "of their variance)."
    )
    assert gate(*versions(0.006)).sentences()[-1].startswith("So many tasks let equal versions pass with power 80 %")


# --------------------------------------------------------------------------------------- no number, no answer


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.assign(accuracy=t["accuracy"] - 0.001), "the differences do not vary at all"),
        (lambda t: t.copy(), "all 16 scores of the two versions are identical. Was one table copied?"),
        (lambda t: t.assign(accuracy=t["accuracy"].where(t.index != 3)), "missing or infinite scores, 1 of the new"),
        (lambda t: t.assign(task="other"), "no task has scores of both versions"),
    ],
)
def test_what_is_not_identified_gets_no_number(change: Any, reason: str) -> None:
    _, old = versions(n_seeds=2)
    assert gate(old, old, allow="identical").decision == "not worse"  # a copy passes where that is allowed
    found = gate(change(old).drop_duplicates(["task", "seed"]), old)
    assert (found.decision, found.exit_code) == ("cannot say", 2)
    assert found.metrics[["difference", "se", "p_not_worse", "p_worse"]].isna().all(axis=None)
    assert f"accuracy: cannot say; {reason}" in found.summary()


def test_one_task_is_no_sample_and_single_runs_show_no_scatter() -> None:
    new, old = versions(n_seeds=3)
    one = gate(new[new["task"] == "t1"], old[old["task"] == "t1"])
    assert one.sentences()[1].endswith("Run more tasks, or ask about this one: tasks='these'.")
    single = gate(*versions(), tasks="these")
    assert "a version has a single run, which shows no scatter: t0, t1, t2, t3 and 4 others" in single.sentences()[1]
    assert single.sentences()[1].endswith("twice or more, or ask about tasks like these: tasks='like these'.")


def test_failed_runs_count_what_a_policy_says_and_never_what_stands_in_the_table() -> None:
    new, old = versions(n_seeds=2)
    both = pd.concat([new.assign(tool="v2"), old.assign(tool="v1")], ignore_index=True).assign(crashed=False)
    both.loc[3, ["accuracy", "crashed"]] = 0.99, True
    roles = {"direction": "maximize", "algorithm": "tool", **ROLES, "benchmark": "task", "failed": "crashed"}
    runs = lt.Runs(both, **roles)
    for tasks in ("like these", "these"):
        found = lt.gate(runs, "v1", margin=0.01, tasks=tasks)
        assert found.decision == "cannot say"
        assert (
            "1 of v2 (t1). A failed run needs a score, which a policy gives it: runs.score_failures('worst')"
            in (found.metrics["reason"].iloc[0])
        )
    found = lt.gate(runs.score_failures(0.2), "v1", margin=0.01)
    assert found.tasks.set_index("task").loc["t1", "new"] == pytest.approx((both["accuracy"][2] + 0.2) / 2)
    assert found.notes[0] == "1 failed run of 1 algorithm was given the score 0.2."
    assert "losses by few failed runs make most of the variation between tasks" in found.notes[-1]
    wide = lt.gate(runs.score_failures(0.2), "v1", margin=10.0)
    assert wide.decision == "cannot say"
    assert wide.sentences()[1].endswith("a few failed runs decide, so no test excludes a loss of more than the margin.")
    mild = lt.gate(runs.score_failures("baseline", reference="v1"), "v1", margin=0.01)
    assert mild.metrics["p_not_worse"].notna().all()


def test_what_the_new_version_did_not_run_holds_it_back() -> None:
    new, old = versions(n_seeds=3, spread=0.003, seed=2)
    assert gate(new, old).decision == "not worse"
    lacking = new[(new["task"] != "t3") & ~((new["task"] == "t5") & (new["seed"] == 1))]
    found = gate(lacking, old)
    assert (found.decision, found.missing) == ("cannot say", ("task t3", "task t5 with seed 1"))
    assert found.sentences()[-1] == (
        "No scores of the new version where the old version has some: task t3 and task t5 with seed 1. Run them, or "
        "decide without them: allow='missing'."
    )
    open_too = gate(lacking, old, margin=1e-6, allow="missing")
    assert any(text.endswith("task t5 with seed 1. Run them.") for text in open_too.sentences())
    allowed = gate(lacking, old, allow="missing")
    assert (allowed.decision, allowed.n_tasks) == ("not worse", 7)
    fewer = gate(new[new["seed"] < 2], old)  # fewer seeds everywhere: a smaller study, nothing is hidden
    assert (fewer.decision, fewer.missing) == ("not worse", ())
    numbered = [t.assign(task=t["task"].str[1:].astype(kind)) for t, kind in ((new, int), (old, str))]
    found = gate(*numbered)  # names of tasks are the same as numbers and as text
    assert (found.n_tasks, found.missing) == (8, ())
    more = gate(new, old[old["task"] != "t3"])
    assert more.decision == "not worse"
    assert "Left out, without scores of the old version: task t3." in more.notes


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"benchmark": None}, ArgumentError, "benchmark must name the column of the tasks. .* By its name: task."),
        ({"score": None}, ArgumentError, "Columns of numbers: accuracy, value. By their names: accuracy."),
        ({"score": "value"}, ArgumentError, "Say so: direction={'value': 'maximize'}"),
        ({"score": "acuracy"}, UnknownColumnError, "score .new. names the column 'acuracy'.* Did you mean 'accuracy'?"),
        ({"margin": 0.0}, ArgumentError, "margin must be a positive number .*, got 0.0"),
        ({"margin": {"f1": 0.1, "*": 0.2}}, ArgumentError, "margin names 'f1', which is no metric"),
        ({"margin": {}}, ArgumentError, "no margin for 'accuracy'"),
        ({"seed": None}, ArgumentError, "'seed' .3 values, by its name the seed. has no role.*ignore=\\['seed'\\]"),
        ({"tasks": "all"}, ArgumentError, "tasks must be 'like these' or 'these'"),
        ({"allow": "copies"}, ArgumentError, "allow must be 'missing' or 'identical'"),
        ({"alpha": 0.5}, ArgumentError, "alpha must be below 0.5"),
        ({"max_broken": 10}, ArgumentError, "max_broken must be"),
        ({"max_broken": 0.1, "tasks": "these"}, ArgumentError, "needs tasks = 'like these', got 'these'"),
        ({"metric": "task"}, ArgumentError, "the column 'task' has two roles"),
    ],
)
def test_wrong_arguments_are_told_what_to_write(change: dict[str, Any], error: type, message: str) -> None:
    new, old = (t.assign(value=t["accuracy"]) for t in versions(n_seeds=3))
    refuses(error, message, gate, new, old, **change)


def test_repeated_rows_and_third_algorithms_are_refused() -> None:
    new, old = versions(n_seeds=2)
    words = new["accuracy"].astype(str).where(new.index != 3, "crash").astype(object)
    with pytest.raises(DataError, match=r"that of the new version holds other values, for example 'crash'\. A failed"):
        gate(new.assign(accuracy=words), old)
    refuses(DataError, "1 row has no 'task'", gate, new.assign(task=new["task"].where(new.index != 3)), old)
    refuses(DataError, r"1 row repeats a run .* task = t0, seed = 0", gate, pd.concat([new, new.iloc[:1]]), old)
    three = pd.concat([t.assign(tool=name) for t, name in ((new, "a"), (old, "b"), (old, "c"))])
    roles = {"score": "accuracy", "direction": "maximize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    with pytest.raises(ArgumentError, match=r"new must hold two algorithms.* got 3: a, b, c"):
        lt.gate(lt.Runs(three, **roles), "a", margin=0.01)
    runs = lt.Runs(three[three["tool"] != "c"], **roles)
    with pytest.raises(ArgumentError, match="old must be the algorithm that is the old version, 'a' or 'b', got 'd'"):
        lt.gate(runs, "d", margin=0.01)
    refuses(ArgumentError, "seed must be left out where new is a Runs", lt.gate, runs, "a", margin=0.01, seed="seed")
