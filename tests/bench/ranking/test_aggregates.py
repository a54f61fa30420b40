"""Aggregate scores: rliable's measures, drawn again as SciPy does, and what is refused."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy import stats

import lmemtest as lt
from lmemtest.bench.ranking.aggregates import MEASURES, aggregate_scores, measures_of, middle
from lmemtest.bench.ranking.resampling import Resampling, complete_blocks
from lmemtest.errors import ArgumentError, DesignError


def runs_of(scores, direction="maximize", **roles):
    """Runs of (runs, tasks) scores by algorithm; NaN where there is no run."""
    rows = [
        (name, f"t{task}", seed, values[seed, task])
        for name, values in scores.items()
        for task in range(values.shape[1])
        for seed in range(values.shape[0])
        if np.isfinite(values[seed, task])
    ]
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "score"])
    given = {"score": "score", "direction": direction, "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    return lt.Runs(table, **(given | roles))


def ragged():
    """Two algorithms on 4 tasks with different numbers of runs."""
    rng = np.random.default_rng(8)
    scores = {name: rng.gamma(2.0, 1.0, (6, 4)) for name in "AB"}
    scores["A"][4:, 1] = scores["A"][2:, 3] = scores["B"][3:, 0] = np.nan
    return scores


@pytest.fixture(scope="module")
def rliable(reference):
    found = reference("rliable_aggregates")
    return found | {"scores": {name: np.array(values) for name, values in found["scores"].items()}}


def estimates(found):
    return found.to_frame().set_index(["measure", "algorithm"])["estimate"]


def test_estimates_profiles_and_improvement_are_rliables(rliable):
    found = aggregate_scores(runs_of(rliable["scores"]), rng=1, n_draws=39)
    for measure, by_name in rliable["estimates"].items():
        for name, want in by_name.items():
            assert estimates(found)[measure, name] == approx(want, rel=1e-12), (measure, name)
    for of, key in {"runs": "run_profiles", "benchmarks": "mean_profiles"}.items():
        profiles = found.profiles(rliable["taus"], of=of)
        assert profiles.shares == approx(np.array([rliable[key][name] for name in "ABC"]), abs=1e-12), of
    matrix = found.improvement().matrix
    for pair, want in rliable["improvement"].items():
        assert matrix.loc[tuple(pair.split(","))] == approx(want, rel=1e-12), pair


@pytest.mark.parametrize(("unit", "key"), [("runs", "run_intervals"), ("benchmarks", "task_intervals")])
def test_intervals_with_as_many_drawn_are_rliables(rliable, unit, key):
    """The ends of 2,000 and 20,000 draws differ by about 4 % of the width."""
    found = aggregate_scores(runs_of(rliable["scores"]), rng=2, resample=unit, drawn="n")
    table = found.to_frame().set_index(["measure", "algorithm"])
    for measure in MEASURES:
        for name in "ABC":
            low, high = rliable[key][measure][name]
            got = table.loc[(measure, name), ["ci_low", "ci_high"]].to_numpy(dtype=float)
            assert got == approx([low, high], abs=0.12 * (high - low)), (measure, name)


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_intervals_of_one_benchmark_are_scipys(method):
    x = np.random.default_rng(4).gamma(2.0, 1.0, 25)
    found = aggregate_scores(
        runs_of({"A": x[:, None], "B": x[:, None] + 1.0}), "mean", method=method, drawn="n", n_draws=9999, rng=1
    )
    want = stats.bootstrap((x,), np.mean, method=method, n_resamples=9999, rng=np.random.default_rng(2))
    low, high = want.confidence_interval
    got = found.of("mean").set_index("algorithm").loc["A", ["ci_low", "ci_high"]].to_numpy(dtype=float)
    assert got == approx([low, high], abs=0.05 * (high - low))
    assert found.notes[-1].startswith("One benchmark only: what follows says nothing about others.")


def test_the_interquartile_mean_is_the_trimmed_mean_of_repeated_runs():
    scores = ragged()
    found = aggregate_scores(runs_of(scores), "iqm", rng=1, n_draws=39)
    for name, values in scores.items():
        columns = [column[np.isfinite(column)] for column in values.T]
        repeated = np.concatenate([np.repeat(column, 60 // len(column)) for column in columns])
        assert estimates(found)["iqm", name] == approx(stats.trim_mean(repeated, 0.25), rel=1e-12)


def test_benchmarks_count_equally_and_instances_share_the_weight_of_theirs():
    rows = [("x", "good", s, 1.0) for s in range(5)] + [("x", "bad", 0, 4.0), ("y", "good", 0, 7.0), ("z", "bad", 0, 9)]
    table = pd.DataFrame([(tool, *row) for tool in "AB" for row in rows], columns=["a", "b", "prior", "s", "score"])
    roles = {"score": "score", "direction": "maximize", "algorithm": "a", "benchmark": "b", "seed": "s"}
    runs = lt.Runs(table, **roles, metafeatures=["prior"])
    found = aggregate_scores(runs, ["mean", "median", "optimality_gap"], threshold=8.0, rng=1, n_draws=39)
    assert estimates(found)["mean", "A"] == approx((2.5 + 7.0 + 9.0) / 3)
    assert estimates(found)["median", "A"] == 7.0
    assert estimates(found)["optimality_gap", "A"] == approx((7.0 / 2 + 4.0 / 2 + 1.0) / 3)


@pytest.mark.parametrize("unit", ["runs", "benchmarks"])
def test_measures_of_a_draw_are_those_of_the_table_that_was_drawn(unit):
    blocks, _ = complete_blocks(runs_of(ragged()), {}, "aggregate_scores")
    resampling = Resampling(blocks, unit, "n", 50, 3)
    measured = partial(measures_of, names=list(MEASURES), threshold=1.0, direction="maximize")
    for a in range(2):
        got = np.concatenate([measured(*part, cut=middle(blocks, a)) for part in resampling.draws(a)])
        chosen, run, weight = next(resampling.picks(a))
        for d in range(50):
            columns = [
                blocks.runs[i, a, run[d, j, 0][weight[d, j, 0] > 0]] for j, i in enumerate(chosen[d, :, 0].tolist())
            ]
            repeated = np.concatenate([np.repeat(column, 60 // len(column)) for column in columns])
            means = [column.mean() for column in columns]
            want = stats.trim_mean(repeated, 0.25), np.median(means), np.mean(means), 1 - np.minimum(repeated, 1).mean()
            assert got[d] == approx(want, rel=1e-11)


@pytest.mark.parametrize("unit", ["runs", "benchmarks"])
def test_what_is_left_is_the_table_without_a_unit(unit):
    scores = ragged()
    blocks, _ = complete_blocks(runs_of(scores), {}, "aggregate_scores")
    parts = [part for _, part in Resampling(blocks, unit, "n", 2, 3).left_out(0)]
    measured = partial(measures_of, cut=0.25, names=["median", "mean"], threshold=1.0, direction="maximize")
    got = np.concatenate([measured(*part) for part in parts])
    want = []
    if unit == "benchmarks":
        tables = [np.delete(scores["A"], task, axis=1) for task in range(4)]
    else:
        tables = []
        for seed, task in np.argwhere(np.isfinite(scores["A"])):
            tables.append(scores["A"].copy())
            tables[-1][seed, task] = np.nan
    want = [(np.median(np.nanmean(t, axis=0)), np.nanmean(np.nanmean(t, axis=0))) for t in tables]
    assert np.sort(got, axis=0) == approx(np.sort(want, axis=0), rel=1e-12)


@pytest.mark.parametrize(("drawn", "factor"), [("n-1", 1.0), ("n", 3 / 4)])
def test_one_fewer_makes_the_variance_of_a_mean_unbiased(drawn, factor):
    values = np.random.default_rng(1).normal(size=(4, 6))
    runs = runs_of({"A": values, "B": values})
    found = aggregate_scores(runs, "mean", drawn=drawn, n_draws=20_000, rng=1)
    assert found.draws.var(axis=0).ravel() == approx(factor * (values.var(axis=0, ddof=1) / 4).sum() / 36, rel=0.04)
    drawn_too = aggregate_scores(runs, "mean", resample="benchmarks", drawn=drawn, n_draws=20_000, rng=1)
    means, runs_too = values.mean(axis=0), (values.var(axis=0) / 4).mean()
    want = (means.var() + runs_too) / (5 if drawn == "n-1" else 6)
    assert drawn_too.draws.var(axis=0).ravel() == approx(want, rel=0.04)


def test_probabilities_of_draws_and_of_what_is_left_are_those_of_the_table():
    scores = ragged()
    found = aggregate_scores(runs_of(scores), "mean", rng=1, method="bca", drawn="n", n_draws=9999)
    row = found.improvement().to_frame().iloc[0]

    def probability(*samples, axis=-1):
        """Of four tasks, each with two samples, along the last axis."""
        assert axis == -1
        pairs = zip(samples[:4], samples[4:], strict=True)
        return np.mean([(x[..., :, None] > y[..., None, :]).mean(axis=(-2, -1)) for x, y in pairs], axis=0)

    columns = [v[np.isfinite(v)] for name in "AB" for v in scores[name].T]
    assert row["probability"] == approx(probability(*columns), rel=1e-12)
    want = stats.bootstrap(columns, probability, method="BCa", n_resamples=4999, rng=np.random.default_rng(2))
    low, high = want.confidence_interval
    assert [row["ci_low"], row["ci_high"]] == approx([low, high], abs=0.06 * (high - low))


def test_scores_to_minimize_are_the_mirror_image():
    scores = ragged()
    up = aggregate_scores(runs_of(scores), threshold=2.0, rng=1)
    down = aggregate_scores(
        runs_of({name: -values for name, values in scores.items()}, "minimize"), threshold=-2.0, rng=1
    )
    columns = ["estimate", "ci_low", "ci_high"]
    for measure in MEASURES:
        a, b = up.of(measure), down.of(measure)
        assert a["algorithm"].tolist() == b["algorithm"].tolist()
        if measure == "optimality_gap":
            assert b[columns].to_numpy() == approx(a[columns].to_numpy(), rel=1e-12)
        else:
            assert b["estimate"].to_numpy() == approx(-a["estimate"].to_numpy(), rel=1e-12)
            width = (a["ci_high"] - a["ci_low"]).to_numpy()
            assert -b["ci_low"].to_numpy() == approx(a["ci_high"].to_numpy(), abs=0.15 * width.max())
    taus = [0.5, 2.0, 3.0]
    assert down.profiles(np.negative(taus)).shares[:, ::-1] == approx(up.profiles(taus).shares, abs=1e-12)
    assert down.improvement().to_frame()["probability"][0] == approx(up.improvement().to_frame()["probability"][0])


def test_draws_obey_the_seed_and_profiles_draw_the_same():
    runs = runs_of(ragged())
    first, again, other = (aggregate_scores(runs, "mean", rng=seed, n_draws=99) for seed in (1, 1, 2))
    assert (first.draws == again.draws).all()
    assert not (first.draws == other.draws).any()
    assert first.profiles().table.equals(again.profiles().table)
    assert first.improvement().table.equals(first.improvement().table)


def test_estimates_compare_algorithms_by_the_covariance_of_the_draws():
    runs = runs_of(ragged())
    apart = aggregate_scores(runs, "mean", rng=1).estimates("mean")
    assert apart.V[0, 1] == 0.0
    assert apart.df.tolist() == [14.0, 14.0]  # 18 runs on 4 tasks
    found = aggregate_scores(runs, "mean", rng=1, resample="benchmarks")
    together = found.estimates("mean")
    np.testing.assert_allclose(together.V, np.cov(found.draws[:, :, 0].T))
    assert together.df.tolist() == [3.0, 3.0]
    assert found.sentences()[0].startswith(f"{found.of('mean')['algorithm'][0]} has the highest mean (")


def test_notes_say_what_decides_and_what_is_ignored():
    rng = np.random.default_rng(1)
    scale, level = np.array([1.0, 1.0, 1.0, 50.0]), np.array([0.0, 0.0, 0.0, 900.0])
    scores = {name: level + scale * rng.normal(size=(5, 4)) for name in "AB"}
    notes = " ".join(aggregate_scores(runs_of(scores), ["iqm", "optimality_gap"], rng=1, n_draws=39).notes)
    assert "and over" in notes
    assert "aggregate_scores(runs.normalize('minmax'))" in notes
    assert "The interquartile mean ignores 1 benchmark: no run on t3 is in the middle half" in notes
    normalised = aggregate_scores(runs_of(scores).normalize("minmax"), ["iqm", "optimality_gap"], rng=1, n_draws=39)
    assert "normalize" not in " ".join(normalised.notes)
    assert "No score is better than the threshold 1" in normalised.notes[-1]


WIDE = pd.DataFrame({"HB": [0.3, 0.4, 0.8], "RS": [0.2, 0.5, 0.6]})


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (lambda: runs_of(ragged() | {"B": np.where(np.arange(4) == 2, np.nan, ragged()["B"])}), {},
         "there is no run of B on t2. Filter the runs"),
        (lambda: WIDE, {"direction": "maximize"}, "Use resample='benchmarks'"),
        (lambda: WIDE, {}, "aggregate_scores takes Runs, or a dataframe and the roles of its columns"),
        (lambda: WIDE, {"measures": "best", "direction": "maximize"}, "measures must be 'iqm' or 'median'"),
        (lambda: runs_of({name: values[:, :1] for name, values in ragged().items()}), {"resample": "benchmarks"},
         "there is one benchmark"),
        (lambda: runs_of(ragged()), {"n_draws": 20}, "n_draws must be a whole number of at least 39, got 20."),
        (lambda: runs_of(ragged()), {"direction": "minimize"},
         "contradicts the runs, which say 'maximize'"),
        (lambda: runs_of(ragged()), {"threshold": np.inf}, "threshold must be a finite number, got inf: a score, or "),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(make, options, words):
    refuses((ArgumentError, DesignError), re.escape(words), aggregate_scores, make(), **options)


def test_small_tables_are_drawn_with_a_note():
    found = aggregate_scores(WIDE, "mean", direction="maximize", resample="benchmarks", rng=1)
    assert estimates(found)["mean", "HB"] == approx(0.5)
    assert "3 benchmarks say little about others" in found.notes[-1]
    scores = ragged()
    scores["A"][1:, 0] = np.nan
    found = aggregate_scores(runs_of(scores), "mean", rng=1)
    assert "1 of 8 pairs of algorithm and instance have one run" in found.notes[-1]
    refuses(ArgumentError, "taus must be finite scores", found.profiles, [np.nan])
