"""Single runs and aggregate scores where benchmarks come in families: families are the sample."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt
from lmemtest.bench.outperforming.intervals import counts_of
from lmemtest.bench.outperforming.pairs import benchmarks_of, mean_over_benchmarks, mean_over_families
from lmemtest.bench.ranking.aggregates import aggregate_scores
from lmemtest.bench.variation.run_design import run_design, run_variances

ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed",
    "family": "space",
}  # fmt: skip
WITHOUT = {**ROLES, "family": None}
NEW_SPACES = "The 6 spaces are the sample: conclusions apply to new spaces."


def table(sizes: tuple[int, ...], tools: str = "AB", *, seeds: int = 3, copies: int = 1, rng: int = 1) -> pd.DataFrame:
    """Scores that differ by space, by task and by run; or `copies` of the same task."""
    draw, rows = np.random.default_rng(rng), []
    for space, size in enumerate(sizes):
        of_space = draw.normal(size=len(tools))
        for task in range(size):
            scores = of_space[:, None] + draw.normal(size=(len(tools), 1)) + draw.normal(size=(len(tools), seeds))
            for copy, tool, seed in product(range(copies), range(len(tools)), range(seeds)):
                rows.append((f"s{space}", f"s{space}-t{task}-{copy}", tools[tool], seed, scores[tool, seed]))
    return pd.DataFrame(rows, columns=["space", "task", "tool", "seed", "loss"])


FRAME = table((1, 2, 3, 2, 4, 1), "ABC")
RUNS = lt.Runs(FRAME, **ROLES)
THREE_SPACES = table((2, 3, 2))


def probabilities(frame: pd.DataFrame, left: str = "A", right: str = "B") -> pd.Series[Any]:
    """The share of the seeds with which left has the lower loss, by space and task."""
    wide = frame.pivot(index=["space", "task", "seed"], columns="tool", values="loss")
    return (wide[left] < wide[right]).groupby(["space", "task"]).mean()


COUNTS = ["n_families", "n_benchmarks", "n_pairs", "better_on", "better_on_most"]


def numbers(result: Any) -> pd.DataFrame:
    return result.to_frame().drop(columns=COUNTS, errors="ignore")


# ---------------------------------------------------------------------- probability of outperforming


def test_the_probability_is_that_of_a_mixed_model_of_families():
    frame = table((3,) * 6, seeds=5, rng=5)
    found = lt.outperforming(lt.Runs(frame, **ROLES), algorithms=("A", "B")).table.iloc[0]
    each = probabilities(frame).rename("p").reset_index()
    fit = lt.fit_lmm("p ~ 1 + (1 | space)", each)
    assert float(fit.theta[0]) > 0.0
    assert found["estimate"] == pytest.approx(fit.estimate(np.eye(1))[0])
    middle, quantile = found["estimate"], stats.t.ppf(0.975, 5)
    for end in found[["ci_low", "ci_high"]]:  # the score equation, with the model's variance at that probability
        at_end = fit.cov(np.eye(1))[0, 0] * end * (1 - end) / (middle * (1 - middle))
        assert abs(middle - end) / np.sqrt(at_end) == pytest.approx(quantile, rel=1e-5)


def test_families_of_unequal_size_count_the_same():
    found = lt.outperforming(RUNS, control="A").table.set_index("right")
    for right in "BC":
        assert found.loc[right, "estimate"] == pytest.approx(
            probabilities(FRAME, "A", right).groupby("space").mean().mean()
        )
    assert found[["n_families", "n_benchmarks"]].to_numpy().tolist() == [[6, 13]] * 2


@pytest.mark.parametrize("paired", [True, False])
def test_families_of_copies_are_benchmarks(paired):
    frame = table((1,) * 6, seeds=8, rng=3)
    found, copied = (
        lt.outperforming(lt.Runs(f, **ROLES), paired=paired) for f in (frame, table((1,) * 6, seeds=8, copies=2, rng=3))
    )
    assert (found.family, copied.family) == (None, "space")  # families of one benchmark are the benchmarks
    pd.testing.assert_frame_equal(numbers(copied), numbers(found))


def over_families(signs, families) -> list[float]:
    """Of two algorithms with the signs of their differences, by benchmark."""
    counts, family = counts_of(signs)[:, None], np.unique(list(families), return_inverse=True)[1]
    return [float(x[0]) for x in mean_over_families(counts, family, mean_over_benchmarks(counts, None)[1])]


def test_what_varies_within_families_is_never_less_than_all():
    wins = np.array([[1, -1], [1, 1], [1, 1], [1, -1], [1, 1]], dtype=float)
    within = 2 * 0.125 / 2  # squares about the means .75 and .75 over two degrees of freedom
    assert over_families(wins, "xxyyz") == pytest.approx(
        ((0.75 + 0.75 + 1.0) / 3, max(np.var([0.75, 0.75, 1.0], ddof=1), within * (0.5 + 0.5 + 1) / 3) / 3, 2.0)
    )
    assert over_families([wins[0]] * 4, "xxyy")[1] == pytest.approx(
        np.var([1.0, 0.0] * 4, ddof=1) / 8
    )  # of single runs


def test_families_are_drawn_with_all_of_their_benchmarks():
    chosen, weight = benchmarks_of(np.array([0, 0, 1, 0]), np.random.default_rng(1).integers(2, size=(50, 2)))
    of_each = np.stack([np.where(chosen == i, weight, 0.0).sum(axis=1) for i in range(4)])
    np.testing.assert_allclose(of_each.sum(axis=0), 1.0)
    np.testing.assert_allclose(of_each[[0, 0]], of_each[[1, 3]])
    assert set((of_each[2] * 2).round(9)) == {0.0, 1.0, 2.0}  # of two families


def test_percentiles_are_those_of_means_of_families():
    frame = table((2, 1, 3, 1, 2, 4, 1, 2, 3, 1, 2, 1), seeds=6, rng=2)
    found = lt.outperforming(lt.Runs(frame, **ROLES), method="percentile", n_draws=4000, rng=2)
    p = probabilities(frame, *found.table.loc[0, ["left", "right"]])
    means = p.groupby("space").mean()
    of_runs = (p * (1 - p) / 6).groupby("space").agg(lambda v: v.sum() / len(v) ** 2)
    sd = np.sqrt((means.var(ddof=0) + of_runs.mean()) / 12)
    low, high = means.mean() + stats.norm.ppf([0.025, 0.975]) * sd
    assert tuple(found.table.loc[0, ["ci_low", "ci_high"]]) == pytest.approx((low, high), abs=0.02)
    assert "families drawn again" in found.facts[0]


def test_what_is_said_of_single_runs_is_said_of_new_families():
    found = lt.outperforming(RUNS, algorithms=("A", "B"))
    assert "on the same benchmark of spaces like these with probability" in found.sentences()[0]
    assert found.notes[0].startswith(NEW_SPACES)
    assert "the variance of the mean of the families' means" in found.facts[0]
    assert found.benchmarks["family"].tolist() == FRAME.drop_duplicates("task")["space"].tolist()
    few = lt.outperforming(lt.Runs(THREE_SPACES, **ROLES))
    assert few.notes[0].startswith("There are too few spaces to be a sample (3;")
    pd.testing.assert_frame_equal(few.to_frame(), lt.outperforming(lt.Runs(THREE_SPACES, **WITHOUT)).to_frame())


def test_a_pair_that_met_in_one_family_says_nothing_about_others():
    frame = FRAME[(FRAME["tool"] != "C") | (FRAME["space"] == "s4")]
    found = lt.outperforming(lt.Runs(frame, **ROLES), control="C")
    alone = lt.outperforming(lt.Runs(frame[frame["space"] == "s4"], **WITHOUT), control="C")
    assert found.table["n_families"].tolist() == [1, 1]
    pd.testing.assert_frame_equal(numbers(found), numbers(alone))
    assert "1 of 6 families only, and the interval is of this family by itself" in " ".join(found.notes)


def test_a_data_set_in_several_families_is_one_benchmark_in_each():
    frame = FRAME.assign(task=FRAME["task"].str[-4:])
    found = lt.outperforming(lt.Runs(frame, **ROLES), control="A")
    pd.testing.assert_frame_equal(found.table, lt.outperforming(RUNS, control="A").table, check_exact=False)
    assert found.benchmarks.drop_duplicates(["left", "right", "family", "benchmark"]).shape[0] == 26


# ---------------------------------------------------------------------- aggregate scores


def of_spaces(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs to tasks to spaces, each with equal weights."""
    return frame.groupby(["space", "task", "tool"])["loss"].mean().groupby(["space", "tool"]).mean().unstack("tool")


def test_aggregates_of_families_are_those_of_their_means():
    found = aggregate_scores(RUNS, ["mean", "median"], resample="benchmarks", n_draws=100, rng=1)
    means = of_spaces(FRAME)
    for name, witness in (("mean", means.mean()), ("median", means.median())):
        got = found.of(name).set_index("algorithm")["estimate"]
        assert got.to_dict() == pytest.approx(witness.to_dict())
        assert found.estimates(name).df[0] == 5.0
    assert found.notes[0].startswith(NEW_SPACES)
    assert "6 families with their benchmarks" in found.band
    assert all(", for families like these" in sentence for sentence in found.sentences())
    shares = found.profiles([0.0], of="benchmarks")
    assert shares.of == "families"
    assert shares.shares[:, 0].tolist() == pytest.approx((means < 0).mean().tolist())


def test_drawn_means_vary_as_means_of_families_do():
    frame = table((2, 1, 3, 1, 2, 4, 1, 2), seeds=1)
    runs = lt.Runs(frame.drop(columns="seed"), **{**ROLES, "seed": None})
    found = aggregate_scores(runs, "mean", resample="benchmarks", n_draws=4000, rng=1).of("mean")
    want = of_spaces(frame).sem()[found["algorithm"]]  # seven of eight are drawn, so the variance is unbiased
    assert found["se"].tolist() == pytest.approx(want.tolist(), rel=0.05)


def test_aggregates_of_families_of_copies_are_those_of_benchmarks():
    one, copied = (table((1,) * 8, seeds=1, copies=copies, rng=3).drop(columns="seed") for copies in (1, 2))
    roles = {**ROLES, "seed": None}
    found, again = (
        aggregate_scores(lt.Runs(frame, **roles), resample="benchmarks", method="bca", n_draws=500, rng=1)
        for frame in (one, copied)
    )
    pd.testing.assert_frame_equal(found.to_frame(), again.to_frame())
    pd.testing.assert_frame_equal(found.improvement().to_frame(), again.improvement().to_frame())
    pd.testing.assert_frame_equal(found.profiles([0.0, 0.5]).to_frame(), again.profiles([0.0, 0.5]).to_frame())


def test_improvement_is_the_mean_over_families():
    found = aggregate_scores(RUNS, "mean", resample="benchmarks", n_draws=100, rng=1).improvement()
    unpaired = FRAME.merge(FRAME, on=["space", "task"])
    won = (unpaired["loss_x"] < unpaired["loss_y"]).groupby(
        [unpaired[c] for c in ("tool_x", "tool_y", "space", "task")]
    )
    witness = won.mean().groupby(["tool_x", "tool_y", "space"]).mean().groupby(["tool_x", "tool_y"]).mean()
    for row in found.table.itertuples():
        assert row.probability == pytest.approx(witness[row.left, row.right])
    assert "on the same benchmark of families like these" in found.sentences()[0]


def test_these_benchmarks_and_too_few_families_are_benchmarks():
    for runs, resample in ((RUNS, "runs"), (lt.Runs(THREE_SPACES, **ROLES), "benchmarks")):
        found = aggregate_scores(runs, "mean", resample=resample, n_draws=100, rng=1)
        alone = lt.Runs(runs.frame.to_native(), **WITHOUT)
        without = aggregate_scores(alone, "mean", resample=resample, n_draws=100, rng=1)
        pd.testing.assert_frame_equal(found.to_frame(), without.to_frame())
        assert ("too few spaces" in " ".join(found.notes)) == (resample == "benchmarks")


def test_distributions_over_families_are_ordered():
    means = of_spaces(FRAME)
    found = lt.outperforming(RUNS, measure="stochastic_order", sample="benchmarks", n_draws=500, rng=1)
    wide = lt.outperforming(
        means, measure="stochastic_order", sample="benchmarks", direction="minimize", n_draws=500, rng=1
    )
    pd.testing.assert_frame_equal(found.to_frame(), wide.to_frame())
    assert found.notes[0].startswith(NEW_SPACES)


# ---------------------------------------------------------------------- reliability of the ranking

NESTED = "loss ~ tool + (1 | space) + (1 | space:tool) + (1 | task) + (1 | task:tool) + (1 | task:seed)"


def advantages(sizes: tuple[int, ...] = (3,) * 6, seeds: int = 2, rng: int = 1) -> pd.DataFrame:
    """Four tools of different means, whose advantages differ by space and by task."""
    frame, draw = table(sizes, "ABCD", seeds=seeds, rng=rng), np.random.default_rng(rng)
    codes = [pd.factorize(frame["space"])[0], pd.factorize(frame["task"])[0]]
    tool = pd.factorize(frame["tool"])[0]
    own = sum(draw.normal(size=(code.max() + 1, 4))[code, tool] for code in codes)
    levels = sum(2.0 * draw.normal(size=code.max() + 1)[code] for code in codes)  # of all tools
    return frame.assign(loss=frame["loss"] + own + levels + 1.5 * tool)


def test_the_reliability_is_that_of_the_means_of_families():
    frame = advantages()
    found = lt.ranking_reliability(lt.Runs(frame, **ROLES))
    means = of_spaces(frame).stack().rename("loss").reset_index()
    witness = lt.ranking_reliability(lt.Runs(means, **{**WITHOUT, "benchmark": "space", "seed": None}))
    for name in ("reliability", "ci_low", "ci_high", "algorithm_variance"):
        assert getattr(found, name) == pytest.approx(getattr(witness, name), rel=1e-6)
    assert found.at(3, 2) == pytest.approx(found.reliability, rel=1e-6)
    assert found.needed(0.9).table["n_families"].iloc[-1] == witness.needed(0.9).table["n_benchmarks"].iloc[0]
    assert "their means on 6 other spaces like these, with other seeds" in found.sentences()[0]
    assert found.notes[0].startswith(NEW_SPACES)


def test_the_error_is_that_of_the_nested_model():
    found = lt.ranking_reliability(lt.Runs(advantages(), **ROLES), n_families=[4, 30], n_benchmarks=[1, 9], n_seeds=7)
    sd = lt.fit_lmm(NESTED, lt.Runs(advantages(), **ROLES)).varcorr.set_index("group")["sd"]
    table = found.table
    error = sd["task:tool"] ** 2 + sd["Residual"] ** 2 / table["n_seeds"]
    error = (sd["space:tool"] ** 2 + error / table["n_benchmarks"]) / table["n_families"]
    want = found.algorithm_variance / (found.algorithm_variance + error)
    assert table["reliability"].tolist() == pytest.approx(want.tolist(), rel=1e-4)
    assert table["n_families"].tolist() == [4, 30, 4, 30]
    assert (table["dependability"] < table["reliability"]).all()


def test_families_of_unequal_size_are_fitted():
    frame = advantages((1, 2, 3, 2, 4, 1), rng=3)
    found = lt.ranking_reliability(lt.Runs(frame, **ROLES))
    means = lt.fit_lmm(NESTED, lt.Runs(frame, **ROLES)).emmeans("tool", vcov="model")
    centred = np.eye(4) - 0.25
    noise = np.trace(centred @ means.L @ means.V @ means.L.T) / 3
    assert found.reliability == pytest.approx(1.0 - noise / np.var(means.estimate, ddof=1), rel=1e-4)
    assert found.n_benchmarks_each == pytest.approx(6 / (1 + 1 / 2 + 1 / 3 + 1 / 2 + 1 / 4 + 1))
    assert found.family_variance > 0.0


def test_finer_families_are_part_of_the_coarser_ones():
    frame = advantages((2,) * 10)
    frame["suite"] = "u" + (frame["space"].str[1:].astype(int) // 2).astype(str)
    found = lt.ranking_reliability(lt.Runs(frame, **{**ROLES, "family": ["suite", "space"]}))
    design, scores = run_design(lt.Runs(frame, **{**ROLES, "family": ["suite", "space"]}), task="", families=True)
    variance = {design.label(term): v for term, v in run_variances(design, scores)[0].items()}
    assert found.family_variance == pytest.approx(variance["suite:tool"] + variance["suite:space:tool"] / 2)
    assert (found.n_families, found.n_benchmarks_each) == (5, 4.0)
    assert "Planned suites hold as many spaces as those of this study." in found.notes


def test_too_few_families_are_no_sample_of_the_reliability():
    few, without = (lt.ranking_reliability(lt.Runs(THREE_SPACES, **roles)) for roles in (ROLES, WITHOUT))
    pd.testing.assert_frame_equal(few.table, without.table)
    assert few.notes[0].startswith("There are too few spaces to be a sample (3;")
    with pytest.raises(lt.errors.ArgumentError, match="n_families needs runs with 5 families of benchmarks or more"):
        lt.ranking_reliability(lt.Runs(THREE_SPACES, **ROLES), n_families=10)
    once = lt.Runs(advantages(seeds=1), **ROLES)  # the finest advantages and runs are one term
    assert "Runs are not repeated" in lt.ranking_reliability(once).notes[-1]
