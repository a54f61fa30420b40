"""Bayesian comparisons of pairs: probabilities against closed forms, brute force, baycomp and the t-test."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import integrate, special, stats
from study import blocks_of_scores

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking.bayesian import (
    PRIOR,
    _gamma_weights,
    above,
    bayesian_pairs,
    differences,
    directions_of,
    has_direction,
    interval,
    most_probable,
    outcomes_of,
    posterior,
    signed_rank,
)
from lmemtest.core.verdicts import Verdict
from lmemtest.errors import ArgumentError

TIED = np.array([2.0, 1.0, 1.0, 0.0, -1.0, 3.0, -2.0])
P = ["p_left", "p_equal", "p_right"]


def with_halves(sums, limit):
    return (sums > limit) + 0.5 * (sums == limit)


# ------------------------------------------------------------------------------------------------- signed rank


@pytest.mark.parametrize("rope", [0.0, 0.5, 0.75])
def test_outcomes_of_a_draw_are_the_double_sums(rope):
    weights = next(_gamma_weights(len(TIED), 50, np.random.default_rng(1)))
    z = np.r_[0.0, TIED]
    w = weights / weights.sum(axis=0)
    sums = z[:, None] + z
    left, right = (np.einsum("id,ij,jd->d", w, with_halves(sign * sums, 2 * rope), w) for sign in (1, -1))
    np.testing.assert_allclose(outcomes_of(TIED, rope, 1e-9)(weights), [left, 1.0 - left - right, right], atol=1e-13)


def test_mean_outcomes_are_those_of_dirichlet_weights():
    z = np.r_[0.0, TIED]
    a = np.r_[PRIOR, np.ones(len(TIED))]
    moments = (np.outer(a, a) + np.diag(a)) / (a.sum() * (a.sum() + 1.0))  # E w_i w_j
    want = [(moments * with_halves(sign * (z[:, None] + z), 1.0)).sum() for sign in (1, -1)]
    rng = np.random.default_rng(2)
    draws = np.concatenate([outcomes_of(TIED, 0.5, 1e-9)(w) for w in _gamma_weights(len(TIED), 20_000, rng)], 1)
    error = draws.std(axis=1) / np.sqrt(draws.shape[1])
    assert np.abs(draws.mean(axis=1)[[0, 2]] - want) == approx(0.0, abs=4 * error.max())


def test_one_and_two_blocks_by_hand():
    z = np.array([[1.0, np.nan], [2.0, -1.0]])
    n = 100_000
    found = signed_rank(z, np.array([0.75, 0.0]), n_draws=n, rng=np.random.default_rng(3))
    # one block: only its sum with itself is above 1.5, and w_1 ~ Beta(1, 1/2)
    by_one = stats.beta(1.0, PRIOR).sf(np.sqrt(0.5))
    # two blocks: right is better if w_2^2 + 2 w_0 w_2 + w_0^2 / 2 > 1/2, with w_2 uniform on (0, 1 - w_0)
    least = lambda u: (np.sqrt((1.0 + u * u) / 2.0) - u) / (1.0 - u)  # noqa: E731
    by_two = integrate.quad(lambda u: (1.0 - least(u)) * stats.beta(PRIOR, 2.0).pdf(u), 0.0, 1.0)[0]
    assert found[0] == approx([by_one, 1.0 - by_one, 0.0], abs=4 * 0.5 / np.sqrt(n))
    assert found[1] == approx([1.0 - by_two, 0.0, by_two], abs=4 * 0.5 / np.sqrt(n))


def test_probabilities_are_those_of_baycomp(reference):
    n = 50_000
    for case in reference("baycomp_signed_rank")["cases"]:
        z = np.array(case["x"]) - np.array(case["y"])
        found = signed_rank(z[None], np.array([case["rope"]]), n_draws=n, rng=np.random.default_rng(4), tie=1e-12)[0]
        error = np.sqrt(0.25 * (1.0 / n + 1.0 / 200_000))
        assert found == approx(case["p"], abs=4 * error), case["name"]


@pytest.mark.parametrize("pairs", [3, 400])  # few by their own masses, many by those of all sets of blocks
def test_directions_are_those_of_the_double_sums(pairs):
    rng = np.random.default_rng(7)
    z = rng.integers(-3, 4, (pairs, 7)) / 10.0
    z[rng.random(z.shape) < 0.2] = np.nan
    z[0] = 0.0
    weights = next(_gamma_weights(7, 200, rng))
    assert has_direction(z, 1e-9).all()
    outcomes = np.stack([outcomes_of(row, 0.0, 1e-9)(weights) for row in z])
    difference = outcomes[:, 0] - outcomes[:, 2]
    want = np.where(np.abs(difference) <= 1e-12, 0.5, difference > 0.0).sum(axis=1)
    assert directions_of(z, 1e-9)(weights, 1e-12).tolist() == want.tolist()


def test_directions_that_single_precision_does_not_tell():
    z = np.array([[1.0, -2.0, 3.0]])
    masses = np.array([0.0, 0.25, 0.5])  # of the prior and the smaller two; 1 - 2 * 0.75^2 + 2 * 0.25^2 = 0 here
    weights = np.append(masses, np.sqrt(2.0 * 0.75**2 - 2.0 * 0.25**2) - 0.75)[:, None] + [0.0, 1e-10, -1e-10, 1e-14]
    weights[:3] = masses[:, None]
    assert [float(directions_of(z, 0.0)(w[:, None], 1e-12)[0]) for w in weights.T] == [0.5, 1.0, 0.0, 0.5]


def test_advantages_that_are_nearly_equal_have_no_direction():
    z = np.array([[0.0, 0.8, 1.6, 5.0], [0.7, 3.0, 4.0, 5.0], [0.0, 2.0, 4.0, np.nan]])
    assert has_direction(z, 1.0).tolist() == [False, False, True]


def test_two_algorithms_that_never_differ():
    assert signed_rank(np.zeros((1, 5)), np.zeros(1), n_draws=100, rng=np.random.default_rng(0)).tolist() == [
        [0.5, 0.0, 0.5]
    ]
    assert signed_rank(np.zeros((1, 5)), np.ones(1), n_draws=100, rng=np.random.default_rng(0)).tolist() == [
        [0.0, 1.0, 0.0]
    ]


# ------------------------------------------------------------------------------------------------- both models


@pytest.mark.parametrize("model", ["signed_rank", "hierarchical"])
def test_order_direction_and_units_do_not_matter(model):
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(9, 4, 3)) + 0.4 * np.arange(4)[:, None]
    options = {"model": model, "n_draws": 2000, "rng": 6}
    found = bayesian_pairs(blocks_of_scores(scores), rope=0.1, **options).set_index(["left", "right"])
    order = [2, 0, 3, 1]
    turned = bayesian_pairs(blocks_of_scores(scores).of([list("ABCD")[i] for i in order]), rope=0.1, **options)
    for row in turned.to_dict("records"):
        straight = (row["left"], row["right"]) in found.index
        mirror = found.loc[(row["left"], row["right"]) if straight else (row["right"], row["left"])]
        want = mirror[P if straight else P[::-1]].astype(float)
        assert [row[name] for name in P] == approx(list(want), abs=1e-12)
    flipped = bayesian_pairs(blocks_of_scores(-1000.0 * scores, direction="minimize"), rope=100.0, **options)
    np.testing.assert_allclose(flipped[P], found[P], atol=1e-9)
    assert flipped["verdict"].tolist() == found["verdict"].tolist()


def test_rope_in_units_of_the_spread():
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(15, 2)) * [1.0, 3.0]
    of = {
        unit: bayesian_pairs(blocks_of_scores(scores), rope=0.1, rope_unit=unit, rng=1)["rope"][0]
        for unit in ("effect", "mad")
    }
    mad = 1.482602218505602 * np.median(np.abs(scores - np.median(scores, axis=0)), axis=0)
    assert of["effect"] == approx(0.1 * np.sqrt((scores.var(axis=0, ddof=1)).mean()))
    assert of["mad"] == approx(0.1 * np.sqrt((mad**2).mean()))


def test_a_pair_is_compared_on_the_blocks_of_both():
    scores = np.random.default_rng(8).normal([0.0, 0.5, 1.0], size=(12, 3))
    scores[:4, 2] = np.nan
    scores[:, 0][4:11] = np.nan
    found = bayesian_pairs(blocks_of_scores(scores), rng=9).set_index(["left", "right"])
    assert found["n_blocks"].tolist() == [5, 1, 8]
    assert found.loc[("A", "C"), P].isna().all()
    assert found.loc[("A", "C"), "verdict"] == Verdict.NOT_SIGNIFICANT
    alone = bayesian_pairs(blocks_of_scores(scores[4:, 1:]), rng=10)
    assert found.loc[("B", "C"), "p_right"] == approx(alone["p_right"][0], abs=4 * np.sqrt(2 * 0.25 / 50_000))
    by_model = bayesian_pairs(blocks_of_scores(scores), model="hierarchical").set_index(["left", "right"])
    alone = bayesian_pairs(blocks_of_scores(scores[4:, 1:]), model="hierarchical")
    assert by_model.loc[("B", "C"), P].tolist() == approx(alone.loc[0, P].tolist())
    assert by_model.loc[("A", "C"), ["p_mean_left", "advantage_low", "p_new_left"]].isna().all()


def test_draws_obey_rng():
    blocks = blocks_of_scores(np.random.default_rng(10).normal(size=(8, 3)))
    one, same, other = (bayesian_pairs(blocks, n_draws=500, rng=seed)["p_left"] for seed in (1, 1, 2))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rope": -0.1}, "rope must be a finite number of at least 0"),
        ({"rope": True}, "rope must be a finite number"),
        ({"rope_unit": "sd"}, "rope_unit must be 'score' or 'effect' or 'mad'"),
        ({"model": "bayes"}, "model must be 'signed_rank' or 'hierarchical'"),
        ({"alpha": 5}, "alpha must be a number between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(option, message):
    with pytest.raises(ArgumentError, match=message):
        bayesian_pairs(blocks_of_scores(np.ones((4, 2))), **option)


# ------------------------------------------------------------------------------------------------- hierarchical


def test_without_noise_the_mean_is_that_of_the_t_test():
    d = np.random.default_rng(11).normal(0.4, 1.0, size=7)
    weight, tau, mean, sd = posterior(d, np.zeros(7))
    student = stats.t(6, d.mean(), d.std(ddof=1) / np.sqrt(7))
    points = [-1.0, 0.0, 0.3, 2.0]
    assert [above(x, weight, mean, sd) for x in points] == approx(student.sf(points), abs=1e-13)
    assert interval(0.9, weight, mean, sd) == approx(student.interval(0.9), rel=1e-10)
    wide = stats.t(6, d.mean(), d.std(ddof=1) * np.sqrt(1.0 + 1.0 / 7))  # of one more benchmark
    assert above(0.3, weight, mean, np.hypot(sd, tau)) == approx(wide.sf(0.3), abs=1e-13)


def test_balanced_noise_cuts_the_variance_of_a_mean_square():
    """v + tau^2 is inverse gamma, truncated at v: the one-way model with the usual flat prior of logarithms."""
    d, v = np.random.default_rng(12).normal(0.4, 1.0, size=8), 0.6
    weight, tau, *_ = posterior(d, np.full(8, v))
    a, b = 7 / 2, 8 * d.var() / 2
    want = a / b * special.gammainc(a + 1.0, b / v) / special.gammainc(a, b / v)
    assert weight @ (1.0 / (v + tau**2)) == approx(want, rel=1e-12)


def test_probabilities_are_those_of_a_grid_over_mean_and_spread():
    rng = np.random.default_rng(13)
    d, v, rope = rng.normal(0.3, 0.8, size=6), rng.uniform(0.05, 0.4, size=6), 0.25
    step = 0.025  # the limits of the ROPE lie between two points
    mu, log_tau = np.meshgrid(np.arange(-5.0, 5.5, step) + step / 2, np.linspace(-6.0, 3.0, 151), indexing="ij")
    total = v + np.exp(2 * log_tau)[..., None]
    density = -0.5 * ((d - mu[..., None]) ** 2 / total + np.log(total)).sum(axis=-1) + 2 * log_tau
    density = np.exp(density) * np.sqrt((1.0 / total**2).sum(axis=-1))
    density /= density.sum()
    better, worse = (special.ndtr((sign * mu - rope) / np.exp(log_tau)) for sign in (1, -1))
    outcomes = np.stack([better, 1.0 - better - worse, worse])
    most = [density[outcomes.argmax(axis=0) == i].sum() for i in range(3)]
    weight, tau, mean, sd = posterior(d, v, rope=rope)
    assert above(rope, weight, mean, np.hypot(sd, tau)) == approx((density * better).sum(), abs=1e-4)
    assert above(rope, weight, mean, sd) == approx(density[mu > rope].sum(), abs=1e-4)
    assert most_probable(rope, weight, tau, mean, sd) == approx(most, abs=1e-3)


def test_certain_differences():
    found = bayesian_pairs(blocks_of_scores([[1.0, 1.0, 2.0]] * 4), model="hierarchical", rope=0.5)
    assert found[P].to_numpy().tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    found = bayesian_pairs(blocks_of_scores([[1.0, 1.0]] * 4), model="hierarchical")
    assert found[[*P, "p_mean_left"]].to_numpy().tolist() == [[0.5, 0.0, 0.5, 0.5]]


def test_two_tables_of_a_kind_on_new_benchmarks():
    """Known mean 1 and spread 2 of many benchmarks: left is better on most of them for certain, and on 69 %."""
    d = stats.norm(1.0, 2.0).ppf((np.arange(4000) + 0.5) / 4000)
    found = bayesian_pairs(blocks_of_scores(np.stack([d, np.zeros(4000)], axis=1)), model="hierarchical").iloc[0]
    assert found["p_mean_left"] == approx(1.0)
    assert found["p_left"] == approx(1.0)
    assert found["p_new_left"] == approx(stats.norm.cdf(0.5), abs=0.001)


def test_runs_with_the_same_seeds_are_pairs():
    rng = np.random.default_rng(14)
    rows = [
        (tool, task, seed, luck + 0.1 * rng.normal())
        for task, seed in itertools.product("uvwxyz", range(5))
        for luck in [3.0 * rng.normal()]
        for tool in "AB"
    ]
    table = pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"])
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    d, v = differences(blocks_of(lt.Runs(table, **roles)), 0, 1)
    wide = table.pivot_table(index=["task", "seed"], columns="tool", values="loss")
    own = (wide["B"] - wide["A"]).groupby("task").agg(["mean", "var"])
    assert d == approx(own["mean"].to_numpy())
    assert own["var"].min() / 5 <= v.min() <= v.mean() <= v.max() <= own["var"].max() / 5
    table.loc[table["tool"] == "A", "seed"] += 100
    d, v = differences(blocks_of(lt.Runs(table, **roles)), 0, 1)
    apart = table.groupby(["task", "tool"])["loss"].var().unstack().sum(axis=1) / 5
    assert apart.min() <= v.min() <= v.max() <= apart.max()


def test_variances_without_runs_or_spread_do_no_harm():
    runs = np.random.default_rng(15).normal(size=(6, 2, 3))
    runs[0] = 1.0  # no spread
    runs[1, :, 1:] = np.nan  # one run
    runs[2, 1] = np.nan  # nothing
    d, v = differences(blocks_of_scores(runs), 0, 1)
    assert np.isfinite(d).tolist() == [True, True, False, True, True, True]
    assert (v[[0, 1, 3, 4, 5]] > 0).all()
    assert np.isfinite(bayesian_pairs(blocks_of_scores(runs), model="hierarchical")[P].to_numpy()).all()
