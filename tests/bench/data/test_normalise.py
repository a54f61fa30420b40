"""Scores made comparable: definitions by hand, directions, invariances, lazy tables, refusals."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from study import as_runs

import lmemtest as lt
from lmemtest.bench.data.normalise import METHODS, OF_ALL
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError
from tests.bench.data.test_backends import KINDS

FAST = ("polars", "lazy polars", "pyarrow", "duckdb")


def table(seed=0, n=240):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "tool": rng.choice(list("ABC"), n),
            "task": rng.choice(list("wxyz"), n),
            "epoch": rng.integers(1, 4, n),
            "loss": np.round(rng.random(n), 1) + 0.1,  # rounding makes ties
            "id": np.arange(n),
        }
    )


def make(frame, direction="minimize", **roles):
    roles = {"benchmark": "task", "budget": "epoch", **roles}
    return Runs(frame, score="loss", direction=direction, algorithm="tool", **roles)


def scores(runs):
    return runs.to_frame().sort_values("id")[runs.score].to_numpy()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_definitions(direction):
    frame = table()
    runs, groups = make(frame, direction), frame.groupby(["task", "epoch"])["loss"]
    lower = direction == "minimize"
    x = frame["loss"]
    width = groups.transform("max") - groups.transform("min")
    regret = x - groups.transform("min") if lower else groups.transform("max") - x
    want = {
        "minmax": (x - groups.transform("min")) / width,
        "normalized_regret": regret / width,
        "rank": groups.rank(method="average", ascending=lower),
        "zscore": (x - groups.transform("mean")) / groups.transform("std"),
        "log": np.log(x),
        "regret": regret,
    }
    assert tuple(want) == METHODS
    for method, values in want.items():
        got = runs.normalize(method)
        np.testing.assert_allclose(scores(got), values, rtol=1e-12, atol=1e-12)
        assert got.score == f"loss_{method}"
        assert got.direction == ("minimize" if "regret" in method or method == "rank" else direction)
        assert {**got.roles(), "score": 0, "direction": 0} == {**runs.roles(), "score": 0, "direction": 0}


def test_nothing_is_overwritten():
    frame = table()
    before = frame.copy()
    runs = make(frame)
    out = runs.normalize("zscore")
    pd.testing.assert_frame_equal(frame, before)
    assert runs.score == "loss"
    np.testing.assert_array_equal(out.to_frame()["loss"], frame["loss"])
    refuses(ArgumentError, "has a column 'id' already, and nothing is overwritten", runs.normalize, "rank", name="id")
    twice = out.normalize("rank", name="again")
    assert (twice.score, twice.direction) == ("again", "minimize")
    again = Runs(out.frame, **{**out.roles(), "score": "loss"}).normalize("zscore")
    assert again.score == "loss_zscore_"
    assert "loss_zscore" in again.columns


def test_the_best_has_regret_zero_and_rank_one_in_both_directions():
    frame = pd.DataFrame({"tool": list("ABC"), "task": "t", "loss": [0.1, 0.5, 0.9], "id": range(3)})
    low, high = (make(frame, d, budget=None) for d in ("minimize", "maximize"))
    np.testing.assert_allclose(scores(low.normalize("regret")), [0, 0.4, 0.8])
    np.testing.assert_allclose(scores(high.normalize("regret")), [0.8, 0.4, 0])
    np.testing.assert_allclose(scores(low.normalize("normalized_regret")), [0, 0.5, 1])
    np.testing.assert_allclose(scores(high.normalize("normalized_regret")), [1, 0.5, 0])
    assert scores(low.normalize("rank")).tolist() == [1, 2, 3]
    assert scores(high.normalize("rank")).tolist() == [3, 2, 1]


@pytest.mark.level(2)
def test_invariances():
    frame = table(1)
    moved = frame.assign(loss=3 * frame["loss"] + frame["task"].map(dict(zip("wxyz", range(4), strict=True))))
    for method in OF_ALL:
        np.testing.assert_allclose(
            scores(make(moved).normalize(method)), scores(make(frame).normalize(method)), atol=1e-12
        )
    unit = frame["task"].map({"w": 1.0, "x": 1e2, "y": 1e4, "z": 1e6})  # the default takes it out
    assert make(frame).normalize().score == "loss_minmax"
    large = make(frame.assign(loss=unit * frame["loss"]))
    np.testing.assert_allclose(scores(large.normalize()), scores(make(frame).normalize()), atol=1e-12)
    whole = frame.assign(loss=(10 * frame["loss"]).round().astype(int))
    assert scores(make(whole).normalize("zscore")).dtype == np.float64
    regrets = (scores(make(f).normalize("regret")) for f in (moved, frame))
    np.testing.assert_allclose(next(regrets), 3 * next(regrets), atol=1e-12)


def test_times_that_no_two_runs_share_make_no_groups():
    frame = table(7).assign(epoch=lambda t: t["id"] + 0.5)
    with pytest.warns(DataWarning, match="Few runs share a value of 'epoch', so scores are normalised within 'task'"):
        got = scores(make(frame).normalize("rank"))
    np.testing.assert_array_equal(got, frame.groupby("task")["loss"].rank())
    shared = make(frame.assign(epoch=lambda t: t["id"] % 3))
    assert (scores(shared.normalize("rank")) != got).any()  # and no warning, which would be an error here


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", FAST)
def test_every_kind_of_table_gives_the_same(kind):
    frame = table(2)
    runs, want = make(KINDS[kind](frame), "maximize"), make(frame, "maximize")
    for method in METHODS:
        got = runs.normalize(method)
        assert got.is_lazy == runs.is_lazy
        np.testing.assert_allclose(scores(got), scores(want.normalize(method)), rtol=1e-10, atol=1e-10)


def test_groups_are_roles_or_columns():
    frame = table(3).assign(task=lambda t: t["task"])
    runs = make(frame)
    by_task = frame["loss"] - frame.groupby("task")["loss"].transform("min")
    np.testing.assert_allclose(scores(runs.normalize("regret", by="benchmark")), by_task)
    np.testing.assert_allclose(scores(runs.normalize("regret", by=["task"])), by_task)
    np.testing.assert_allclose(scores(make(frame, budget=None).normalize("regret")), by_task)  # no budget to group by
    with pytest.raises(UnknownColumnError, match=r"by names 'tsak', which is neither a role .* Did you mean 'task'\?"):
        runs.normalize(by="tsak")
    with pytest.raises(ArgumentError, match="the runs have none of 'benchmark', 'budget'"):
        make(frame, benchmark=None, budget=None).normalize()
    refuses(ArgumentError, "by must not name the score, got 'loss'", runs.normalize, by="loss")


@pytest.mark.parametrize(
    ("method", "value"), [("regret", 0.0), ("normalized_regret", 0.0), ("rank", 2.0), ("zscore", 0.0), ("minmax", 0.5)]
)
def test_groups_of_equal_scores_get_a_neutral_value_and_a_warning(method, value):
    frame = pd.DataFrame(
        {"tool": list("ABC") * 2, "task": list("tttuuu"), "loss": [0.3, 0.3, 0.3, 1.0, 2.0, 3.0], "id": range(6)}
    )
    with pytest.warns(DataWarning, match="All scores are equal in 1 of 2 groups of task: they get"):
        got = scores(make(frame, budget=None).normalize(method))
    assert got[:3].tolist() == [value] * 3
    assert np.isfinite(got).all()


def test_missing_and_infinite_scores_are_refused_but_failed_runs_can_be_ranked_last():
    frame = table(5)
    frame.loc[[3, 4], "loss"] = [np.nan, np.inf]
    for method in ("regret", "normalized_regret", "zscore", "minmax", "log"):
        with pytest.raises(DataError, match=f"2 scores in 'loss' are missing or infinite, so '{method}' has no value"):
            make(frame).normalize(method)
    refuses(DataError, "1 scores in 'loss' are missing, so 'rank' has no value", make(frame).normalize, "rank")
    frame.loc[3, "loss"] = 0.5
    ranks = make(frame).normalize("rank").to_frame()
    same = (ranks["task"] == ranks["task"][4]) & (ranks["epoch"] == ranks["epoch"][4])
    assert ranks["loss_rank"][4] == same.sum()


def test_log_refuses_scores_that_are_not_positive_with_advice():
    frame = table(6)
    frame.loc[0, "loss"] = -0.25
    with pytest.raises(DataError, match=r"needs positive scores, but the lowest of 'loss' is -0\.25\. Use 'rank' or"):
        make(frame).normalize("log")


def test_unknown_methods_list_the_options():
    with pytest.raises(ArgumentError, match=r"method must be 'minmax' or .*, got 'ranks'\. Did you mean 'rank'\?"):
        make(table()).normalize("ranks")
    refuses(ArgumentError, "name must be the name of a new column, got ''", make(table()).normalize, "rank", name="")


# ---------------------------------------------------------------------- baseline


TASKS = ["w", "x", "y", "z"]


def baseline_table(sigma=0.05, seeds=4):
    """3 tools x 4 tasks x seeds; losses of different scale, and columns of references."""
    rng = np.random.default_rng(3)
    frame = pd.MultiIndex.from_product([TASKS, ["forest", "net", "tree"], range(seeds)], names=["task", "tool", "rep"])
    frame = frame.to_frame(index=False)
    unit = frame["task"].map(dict(zip(TASKS, [1.0, 10.0, 100.0, 1000.0], strict=True)))
    loss = unit * (2 + (frame["tool"] == "tree")) * np.exp(rng.normal(0, sigma, len(frame)))
    return frame.assign(loss=loss, human=0.5 * unit, id=np.arange(len(frame)))


def made(frame, direction="minimize", **roles):
    return lt.Runs(frame, score="loss", direction=direction, algorithm="tool", benchmark="task", seed="rep", **roles)


def means(frame, tool):
    """The mean of a tool on the task of each row."""
    return frame["task"].map(frame[frame["tool"] == tool].groupby("task")["loss"].mean()).to_numpy()


def test_shares_of_a_baseline_are_their_definitions():
    frame = baseline_table()
    runs, x, r, h = made(frame), frame["loss"].to_numpy(), means(frame, "tree"), frame["human"].to_numpy()
    other = made(frame, "maximize")
    low = dict(frame.groupby("task")["loss"].min())
    b = frame["task"].map(low).to_numpy()
    high = frame["task"].map(frame.groupby("task")["loss"].max() * 2).to_numpy()
    cases = [
        (runs.normalize("baseline", reference="tree"), 1 - x / r, "maximize"),
        (other.normalize("baseline", reference="forest"), x / means(frame, "forest") - 1, "maximize"),
        (runs.normalize("baseline", reference="tree", target="human"), (x - r) / (h - r), "maximize"),
        (runs.normalize("baseline", reference="tree", target="net"), (x - r) / (means(frame, "net") - r), "maximize"),
        (runs.normalize("baseline", reference=1e4, target=0), 1 - x / 1e4, "maximize"),
        (runs.normalize("gap", best_known=low), x / b - 1, "minimize"),
        (other.normalize("gap", best_known=dict(zip(frame["task"], high, strict=True))), 1 - x / high, "minimize"),
        (runs.normalize("improvability", best_known=low), 1 - b / x, "minimize"),
    ]
    for got, want, direction in cases:
        np.testing.assert_allclose(scores(got), want, rtol=1e-12, atol=1e-12)
        assert got.direction == direction
        assert got.columns == (*frame.columns, got.score)


def test_the_unit_of_a_benchmark_does_not_matter_and_no_other_algorithm_does():
    frame = baseline_table()
    unit = frame["task"].map(dict(zip(TASKS, [7.0, 0.1, 3.0, 1e-6], strict=True)))
    want = scores(made(frame).normalize("baseline", reference="tree"))
    moved = frame.assign(loss=unit * frame["loss"])
    np.testing.assert_allclose(scores(made(moved).normalize("baseline", reference="tree")), want, atol=1e-12)
    two = frame[frame["tool"] != "net"]
    kept = (frame["tool"] != "net").to_numpy()
    np.testing.assert_allclose(scores(made(two).normalize("baseline", reference="tree")), want[kept], atol=1e-12)
    shifted = made(frame.assign(loss=5 - 3 * frame["loss"]), "maximize")  # a target takes shifts out, too
    np.testing.assert_allclose(
        scores(shifted.normalize("baseline", reference="tree", target="net")),
        scores(made(frame).normalize("baseline", reference="tree", target="net")),
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", [k if k in FAST else pytest.param(k, marks=pytest.mark.level(2)) for k in KINDS])
def test_every_kind_of_table_gives_the_same_and_lazy_ones_stay_lazy(kind):
    frame = baseline_table()
    known = dict(frame.groupby("task")["loss"].min())
    runs, want = made(KINDS[kind](frame)), made(frame)
    for method, given in (
        ("baseline", {"reference": "tree"}),
        ("baseline", {"reference": "tree", "target": "human"}),
        ("gap", {"best_known": known}),
    ):
        got = runs.normalize(method, **given)
        assert got.is_lazy == runs.is_lazy
        np.testing.assert_allclose(scores(got), scores(want.normalize(method, **given)), rtol=1e-10, atol=1e-10)


def test_groups_are_benchmark_and_budget_unless_asked_otherwise():
    frame = pd.concat([baseline_table().assign(epoch=epoch, loss=lambda t: t["loss"] / t["epoch"]) for epoch in (1, 3)])
    frame["id"] = np.arange(len(frame))
    runs = made(frame, budget="epoch")
    at_each = runs.normalize("baseline", reference="tree")
    own = frame[frame["tool"] == "tree"].groupby(["task", "epoch"])["loss"].mean()
    r = own.loc[list(zip(frame["task"], frame["epoch"], strict=True))].to_numpy()
    np.testing.assert_allclose(scores(at_each), 1 - frame["loss"] / r, atol=1e-12)
    over_all = runs.normalize("baseline", by="benchmark", reference="tree", name="all")
    np.testing.assert_allclose(scores(over_all), 1 - frame["loss"] / means(frame, "tree"), atol=1e-12)
    assert over_all.scale.noise is None  # budgets are no repetitions


def test_noise_is_the_relative_error_of_the_baselines_means():
    frame = baseline_table()
    noise = made(frame).normalize("baseline", reference="tree").scale.noise
    own = frame[frame["tool"] == "tree"].groupby("task")["loss"]
    error = own.std() / 2 / own.mean()
    assert noise.error == approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert (noise.runs, noise.where, noise.borrowed) == (4, error.idxmax(), False)
    assert noise.largest == approx(error.max(), rel=1e-9)
    once = frame[(frame["tool"] != "tree") | (frame["rep"] == 0)]
    alone = made(once).normalize("baseline", reference="tree").scale.noise
    others = once[once["tool"] != "tree"].groupby(["task", "tool"])["loss"]
    assert (alone.runs, alone.borrowed) == (1, True)
    assert alone.error == approx(np.sqrt(((others.std() / others.mean()) ** 2).mean()), rel=1e-9)
    assert made(frame).normalize("baseline", reference=1e4).scale.noise is None


def test_a_baseline_so_noisy_that_shares_are_biased_is_a_warning_with_the_bias():
    frame = baseline_table(sigma=1.2, seeds=2)
    with pytest.warns(DataWarning, match=r"The means of tree are noisy: .* lowers the mean improvement of every other"):
        got = made(frame).normalize("baseline", reference="tree")
    noise = got.scale.noise
    with pytest.warns(DataWarning, match=f"by about {100 * noise.error**2:.2g} percentage points"):
        made(frame).normalize("baseline", reference="tree")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(baseline_table()).normalize("baseline", reference="tree")


def test_references_that_are_unclear_are_refused_by_name():
    frame = baseline_table()
    runs = made(frame[(frame["tool"] != "tree") | (frame["task"] != "x")])
    with pytest.raises(
        DataError, match=r"tree has no score in 1 of 4 groups of task: x, so .*reference=\{benchmark: v"
    ):
        runs.normalize("baseline", reference="tree")
    with pytest.raises(DataError, match=r"Improvability is a share of an error, which is to be minimised"):
        made(frame, "maximize").normalize("improvability", best_known=1e6)
    numbered = made(frame.assign(tool=pd.factorize(frame["tool"])[0]))
    with pytest.raises(ArgumentError, match=r"reference=1 is a number, and the name of an algorithm.* write '1', for"):
        numbered.normalize("baseline", reference=1)
    assert numbered.normalize("baseline", reference="1").scale.noise is not None


@pytest.mark.parametrize(
    ("change", "method", "options", "words"),
    [
        (lambda t: {"loss": -t["loss"]}, "baseline", {"reference": "tree"},
         r"must be positive, but the mean of tree is -.* Say what counts as 1 with target="),
        (lambda t: {"loss": t["loss"].where(t["task"] != "y", 0.0)}, "baseline", {"reference": "tree"},
         r"must be positive, but the mean of tree is 0 on y"),
        (None, "baseline", {"reference": 0}, "must be positive, but it is 0 on w"),
        (lambda t: {"loss": t["loss"].where(t["id"] != 0, -1.0)}, "baseline", {"reference": "tree"},
         r"scores from 0 on only, but the lowest of 'loss' on w is -1"),
        (None, "baseline", {"reference": "forest", "target": "tree"},
         r"target .* must be better than reference .* it is not on w, x, y, z"),
        (None, "gap", {"best_known": {"w": 0.1, "x": 0.1, "y": 0.1, "z": 1e6}},
         r"best_known must be at least as good .* 1 group of task has better ones: z \("),
        (None, "gap", {"best_known": 0}, r"which is 0 on w\. Use method='improvability'"),
        (None, "gap", {"best_known": {"w": 0.1}}, r"has no value in 3 of 4 groups of task: x, y, z"),
        (None, "baseline", {"reference": "rep"},
         r"one value in each group of task, but the column 'rep' has 4 on w"),
        (None, "baseline", {"reference": "task"}, "'task', which holds no numbers"),
        ({"tree": 1.0}, "baseline", {"reference": "tree"},
         "names 'tree', which is both an algorithm and a column"),
        (None, "baseline", {"reference": "treee"},
         r"got 'treee'\. Algorithms: forest, .* Did you mean 'tree'\?"),
        (None, "baseline", {}, r"method='baseline' needs reference: an algorithm, a column, a number or"),
        (None, "rank", {"reference": "tree"},
         r"reference is not an argument of method='rank'\. Leave it out\."),
        (None, "baseline", {"reference": float("nan")},
         r"reference must be finite and below 1e\+100, got nan"),
        (None, "gap", {"best_known": {**dict.fromkeys("wxy", 0.1), "z": "low"}},
         "best_known must hold finite numbers, got 'low'"),
    ],
)  # fmt: skip
def test_references_that_shares_have_no_meaning_for_are_refused(change, method, options, words):
    runs = made(baseline_table().assign(**(change(baseline_table()) if callable(change) else change or {})))
    refuses((ArgumentError, DataError, UnknownColumnError), words, runs.normalize, method, **options)


def test_scores_that_depend_on_all_algorithms_say_so():
    runs = made(baseline_table())
    for method in ("minmax", "rank", "zscore", "normalized_regret"):
        (note,) = runs.normalize(method).notes
        assert "depend on which algorithms take part" in note
        assert "robustness(runs, of='algorithms')" in note
    assert runs.normalize("baseline", reference="tree").notes == runs.normalize("log").notes == ()


# ---------------------------------------------------------------------- baseline scores


runs_of = partial(as_runs, seed_shared=False)


def runs(tools="RXYZ", tasks=8, seeds=3, sigma=0.1):
    rng = np.random.default_rng(1)
    names = [[f"t{i}" for i in range(tasks)], list(tools), range(seeds)]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep"]).to_frame(index=False)
    level = np.repeat(rng.normal(0, 1, tasks), len(tools) * seeds)
    own = np.repeat(rng.normal(0, 0.1, tasks * len(tools)), seeds)
    loss = np.exp(level + own + rng.normal(0, sigma, len(frame)))
    return runs_of(frame.assign(loss=loss), seed="rep")


def test_a_mean_improvement_has_the_standard_error_of_the_difference_from_the_baseline():
    scaled = runs().normalize("baseline", reference="R")
    for fit in (
        lt.fit_lmm(lt.recommend(scaled).formula, scaled),
        lt.fit_lmm("loss_baseline ~ tool + (1 | task) + (1 | task:tool)", scaled),
    ):
        for vcov in ("model", "moderated"):
            means = fit.emmeans("tool", vcov=vcov)
            table = means.to_frame().set_index("tool")
            gaps = means.pairs(adjust="none").to_frame().set_index(["right", "left"])
            assert table.loc["R", ["emmean", "se", "ci_low", "ci_high"]].tolist() == [0.0, 0.0, 0.0, 0.0]
            for tool in "XYZ":
                gap = gaps.loc[(tool, "R")]
                assert table.loc[tool, "se"] == approx(gap["se"], rel=1e-6)
                assert table.loc[tool, "ci_low"] == approx(-gap["ci_high"], rel=1e-6)


def unequal(runs_of_baseline=2, seed_sd=0.0, **roles):
    """Eight tasks, X and Y with five seeds each, R with fewer of them."""
    rng = np.random.default_rng(5)
    names = [[f"t{i}" for i in range(8)], list("RXY"), range(5)]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep"]).to_frame(index=False)
    own = np.repeat(rng.normal(0, 0.1, 24), 5) + rng.normal(0, seed_sd, 5)[frame["rep"]]
    frame["loss"] = np.exp(own + rng.normal(0, 0.1, len(frame)))
    kept = (frame["tool"] != "R") | (frame["rep"] < runs_of_baseline)
    return runs_of(frame[kept], seed="rep", **roles).normalize("baseline", reference="R")


def test_the_noise_of_a_mean_improvement_has_a_closed_form():
    r"""(2 tau^2 + sigma^2 (1/r + 1/m)) / B; with equal runs 2 MS / B, seeds that benchmarks share or not."""
    scaled = unequal(2)
    fit = lt.fit_lmm("loss_baseline ~ tool + C(task) + (1 | task:tool)", scaled)
    tau2, sigma2 = fit.varcorr["variance"]
    table = fit.emmeans("tool", vcov="model").to_frame().set_index("tool")
    assert table.loc["X", "se"] == approx(np.sqrt((2 * tau2 + sigma2 * (1 / 2 + 1 / 5)) / 8), rel=1e-6)
    for seed_shared, seeds in ((True, " + (1 | rep)"), (False, " + (1 | task:rep)")):
        scaled = unequal(5, 0.05, seed_shared=seed_shared)
        y = scaled.to_frame().groupby(["task", "tool"])["loss_baseline"].mean().unstack().to_numpy()
        rest = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
        fit = lt.fit_lmm(f"loss_baseline ~ tool + C(task) + (1 | task:tool){seeds}", scaled)
        row = fit.emmeans("tool", vcov="model").to_frame().set_index("tool").loc["X"]
        assert row["se"] == approx(np.sqrt(2 * (rest**2).sum() / 14 / 8), rel=1e-5)
        assert row["df"] == approx(14, rel=1e-3)


def test_the_noise_is_carried_where_random_effects_of_seeds_pull_the_baseline_off_zero():
    scaled = unequal(2, 0.1, seed_shared=True)
    fit = lt.fit_lmm("loss_baseline ~ tool + C(task) + (1 | task:tool) + (1 | rep)", scaled)
    means = fit.emmeans("tool")
    table, gaps = means.to_frame().set_index("tool"), means.pairs(adjust="none").to_frame().set_index("left").loc["R"]
    raw = fit.params.iloc[0] + fit.params.iloc[3:].sum() / 8  # of R over the tasks
    assert abs(raw) > 0.01
    for tool in "XY":
        gap = gaps[gaps["right"] == tool].iloc[0]
        assert (table.loc[tool, "emmean"], table.loc[tool, "se"]) == approx((-gap["estimate"], gap["se"]), rel=1e-6)
    assert table.loc["R", "se"] == 0.0


def test_the_baseline_is_zero_where_it_was_subtracted_and_nowhere_else():
    """Within benchmarks alone it is 0 over all epochs, and something else at each."""
    rng = np.random.default_rng(2)
    names = [["t0", "t1", "t2", "t3"], list("RX"), range(2), [1, 4]]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep", "epoch"]).to_frame(index=False)
    frame["loss"] = np.exp(np.repeat(rng.normal(0, 0.1, 8), 4) + rng.normal(0, 0.1, len(frame))) / frame["epoch"] ** 0.5
    measured = runs_of(frame, seed="rep", budget="epoch")
    for by, at_each in ((None, True), ("benchmark", False)):
        scaled = measured.normalize("baseline", by, reference="R")
        fit = lt.fit_lmm("loss_baseline ~ tool * C(epoch) + C(task) + (1 | task:tool)", scaled)
        for specs, zero in (("tool", True), (["tool", "epoch"], at_each)):
            means = fit.emmeans(specs, vcov="model").to_frame()
            assert ((means.loc[means["tool"] == "R", ["emmean", "se"]] == 0.0).all(axis=None)) == zero


def test_two_algorithms_are_compared_by_the_paired_t_test_of_means_of_benchmarks():
    from scipy import stats

    scaled = runs("RX").normalize("baseline", reference="R")
    means = scaled.to_frame().groupby(["task", "tool"])["loss_baseline"].mean().unstack()
    want = stats.ttest_rel(means["X"], means["R"])
    got = lt.fit_lmm(lt.recommend(scaled).formula, scaled).emmeans("tool").pairs().to_frame().iloc[0]
    assert (-got["t_ratio"], got["p_value"]) == approx((want.statistic, want.pvalue), rel=1e-6)


def test_algorithms_are_compared_within_benchmarks_while_the_baseline_takes_part():
    scaled = runs().normalize("baseline", reference="R")
    found = lt.recommend(scaled)
    assert found.formula == "loss_baseline ~ tool + task + (1 | task:tool) + (1 | task:rep)"
    first, second = found.notes
    assert first.startswith("Scores are relative to the mean of R, whose chance deviations all scores of a benchmark")
    error = 100 * scaled.scale.noise.error
    assert second == (
        f"The mean of R on a benchmark rests on 3 runs or more; its standard error is {error:.1f} % of it (root mean "
        "square over benchmarks)."
    )
    others = lt.recommend(scaled.filter(tool=["X", "Y", "Z"]))  # what they share is a variance of benchmarks then
    assert "(1 | task)" in others.formula
    assert "(1 | task)" in lt.recommend(runs().normalize("baseline", reference=0.9)).formula


def test_the_comparison_does_not_know_the_unit_of_a_benchmark():
    raw = runs()
    frame = raw.to_frame()
    unit = frame["task"].map({f"t{i}": 10.0 ** (i - 4) for i in range(8)})
    moved = lt.Runs(frame.assign(loss=unit * frame["loss"]), **raw.roles())
    tables = [
        lt.fit_lmm(lt.recommend(r).formula, r).emmeans("tool").pairs().to_frame()
        for r in (x.normalize("baseline", reference="R") for x in (raw, moved))
    ]
    for name in ("estimate", "se", "p_value"):
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=1e-6)


@pytest.mark.level(2)
def test_a_report_says_what_scores_are_relative_to():
    text = " ".join(lt.analyze(runs().normalize("baseline", reference="R")).to_text().split())
    assert "mean scores are equal, each within task as a share of the mean of R there" in text
    assert "Means are improvements on R, whose own mean is 0 by definition" in text
    assert "its standard error is" in text
    assert "is reversed" not in text
    text = " ".join(lt.analyze(runs().normalize("minmax")).to_text().split())
    assert "depend on which algorithms take part" in text


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("method", ["minmax", "normalized_regret", "regret", "rank"])
def test_rows_in_memory_get_the_scores_that_a_query_gives(method: str, direction: str) -> None:
    rng = np.random.default_rng(21)
    table = pd.DataFrame({"tool": list("ABCD") * 30, "task": np.repeat(list("uvwxyz"), 20)})
    table["loss"] = rng.integers(0, 7, len(table)) / 3.0  # ties
    table.loc[table["task"] == "w", "loss"] = 2.0
    roles = {"score": "loss", "direction": direction, "algorithm": "tool", "benchmark": "task"}
    polars = pytest.importorskip("polars")
    shuffled = table.sample(frac=1.0, random_state=3)  # the labels of its index count for nothing
    found = []
    for frame in (shuffled, polars.from_pandas(shuffled), polars.from_pandas(shuffled).lazy()):
        with pytest.warns(DataWarning, match="All scores are equal in 1 of 6 groups"):
            found.append(lt.Runs(frame, **roles).normalize(method).to_frame()[f"loss_{method}"].to_numpy())
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[2])
