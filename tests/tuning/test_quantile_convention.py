"""One meaning of a quantile for every law: the best of k is at most the curve with probability q, in both directions.

The witness is the law's own distribution function, which no curve uses: P(best <= y) is F(y)^k for the largest of k
and 1 - (1 - F(y))^k for the smallest.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from pytest import approx

from lmemtest import tuning
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

DIRECTIONS = ("maximize", "minimize")
QUANTILES = (0.1, 0.25, 0.5, 0.9)
K = np.array([0.3, 1.0, 2.0, 4.5, 20.0])
SCORES = np.random.default_rng(5).beta(4, 2, 48)
WEIGHTS = np.random.default_rng(6).integers(0, 5, 48)


def best_at_most(below, above, k, direction):
    """P(best of k <= y) from P(Y <= y) and P(Y > y)."""
    return below**k if direction == "maximize" else 1.0 - above**k


SMOOTH = {
    "quadratic, convex": QuadraticDistribution(0.1, 0.7, 3, convex=True),
    "quadratic, concave": QuadraticDistribution(0.1, 0.7, 3, convex=False),
    "noisy, convex": NoisyQuadraticDistribution(0.1, 0.7, 2, 0.05, convex=True),
    "noisy, concave": NoisyQuadraticDistribution(0.1, 0.7, 2, 0.05, convex=False),
    "kernel density": kernel_density(SCORES, bandwidth=0.05, bounds=(0, 1)),
    "fit": fit_quiet(QuadraticDistribution(0.1, 0.7, 2).ppf((np.arange(60) + 0.5) / 60), direction="maximize"),
    "noisy fit": fit_noisy(
        NoisyQuadraticDistribution(0.1, 0.6, 1, 0.03, convex=True).ppf((np.arange(60) + 0.5) / 60), direction="minimize"
    ),
}


def test_smooth_laws_have_the_quantile_of_the_best():
    for q, name in itertools.product(QUANTILES, SMOOTH):
        law = SMOOTH[name]
        ways = (law.settings.direction,) if "fit" in name else DIRECTIONS
        one = law.distribution if "fit" in name else law
        for direction in ways:
            y = np.asarray(
                law.quantile_curve(K, q=q) if "fit" in name else law.quantile_curve(K, q=q, direction=direction)
            )
            assert best_at_most(one.cdf(y), one.sf(y), K, direction) == approx(q, abs=1e-9)
            if "fit" in name:
                assert law.curve(K[:1], q=q).estimate[0] == y[0]


def sampled(law, k, q, direction):
    """The definition, by search: the smallest score with P(best of k <= score) >= q."""
    y = np.unique(law.scores)
    share = best_at_most(law.cdf(y), 1.0 - law.cdf(y), k, direction)
    return y[np.flatnonzero(share >= q - 1e-12)[0]]


def test_samples_have_the_quantile_of_the_best():
    for q, direction, n in itertools.product(QUANTILES, DIRECTIONS, [1, 2, 5, 6, 47, 48]):
        scores = SCORES[:n]
        law = EmpiricalDistribution(scores)
        want = [sampled(law, k, q, direction) for k in K]
        assert tuning.curve(scores, direction=direction, k=K, statistic=q).estimate.tolist() == want
        assert law.quantile_curve(K, direction=direction, q=q).tolist() == want
        weighted = EmpiricalDistribution(scores, weights=WEIGHTS[:n] + 0.5)
        assert weighted.quantile_curve(K, direction=direction, q=q).tolist() == [
            sampled(weighted, k, q, direction) for k in K
        ]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_weights_are_repetitions(direction):
    law = EmpiricalDistribution(SCORES, weights=WEIGHTS)
    repeated = np.repeat(SCORES, WEIGHTS)
    for q in QUANTILES:
        want = tuning.curve(repeated, direction=direction, k=K, statistic=q).estimate
        np.testing.assert_array_equal(law.quantile_curve(K, direction=direction, q=q), want)
    mean = tuning.curve(repeated, direction=direction, k=K, statistic="mean", bounds=(0, 1)).estimate
    assert law.mean_curve(K, direction=direction) == approx(mean, rel=1e-12)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_draws_are_at_most_the_curve_that_often(direction):
    """Brute force, with no formula at all."""
    law = kernel_density(SCORES, bandwidth=0.05, bounds=(0, 1))
    draws = law.sample((20_000, 3), rng=2)
    best = draws.max(axis=1) if direction == "maximize" else draws.min(axis=1)
    many = tuning.curve(draws.ravel(), direction=direction, k=3, statistic=0.8, band="dkw").estimate[0]
    for curve in (law.quantile_curve(3, direction=direction, q=0.8)[0], many):
        assert np.mean(best <= curve) == approx(0.8, abs=4 * np.sqrt(0.16 / 20_000))


def test_the_best_of_one_has_no_direction():
    for statistic, n in itertools.product(["median", *QUANTILES], [1, 2, 6, 10, 47, 48]):
        up, down = (tuning.curve(SCORES[:n], direction=way, k=1, statistic=statistic) for way in DIRECTIONS)
        q = 0.5 if statistic == "median" else statistic
        assert up.estimate[0] == down.estimate[0] == np.quantile(SCORES[:n], q, method="inverted_cdf")
        assert EmpiricalDistribution(SCORES[:n]).ppf(q) == up.estimate[0]


def test_the_best_of_one_of_a_law_is_its_quantile_in_both_directions():
    for name, law in SMOOTH.items():
        if "fit" not in name:
            for q in (0.0, *QUANTILES, 1.0):
                both = [float(np.ravel(law.quantile_curve(1, q=q, direction=way))[0]) for way in DIRECTIONS]
                assert both == approx([float(law.ppf(q))] * 2, rel=1e-9)
    law = EmpiricalDistribution(SCORES, bounds=(0, 1))
    for way in DIRECTIONS:
        assert law.quantile_curve([1, 5], q=0, direction=way).tolist() == [0.0, 0.0]
        assert law.quantile_curve([1, 5], q=1, direction=way).tolist() == [SCORES.max()] * 2


@pytest.mark.parametrize("q", QUANTILES)
def test_turned_scores_have_the_turned_curve(q):
    """-y to maximise at 1 - q is y to minimise at q; where two scores are both quantiles, the smaller is meant."""
    k = K * 1.0001
    down = tuning.curve(SCORES, direction="minimize", k=k, statistic=q)
    up = tuning.curve(-SCORES, direction="maximize", k=k, statistic=1 - q)
    for name, other in (("band_low", "band_high"), ("estimate", "estimate"), ("band_high", "band_low")):
        np.testing.assert_array_equal(getattr(down, name), -getattr(up, other))
    assert down.k_max == up.k_max
    law = EmpiricalDistribution(SCORES, weights=WEIGHTS), EmpiricalDistribution(-SCORES, weights=WEIGHTS)
    np.testing.assert_array_equal(
        law[0].quantile_curve(k, q=q, direction="minimize"), -law[1].quantile_curve(k, q=1 - q, direction="maximize")
    )
    density = kernel_density(SCORES, bandwidth=0.1), kernel_density(-SCORES, bandwidth=0.1)
    assert density[0].quantile_curve(k, q=q, direction="minimize") == approx(
        -density[1].quantile_curve(k, q=1 - q, direction="maximize"), rel=1e-9
    )


def test_at_a_jump_limits_turn_and_the_estimate_is_the_smaller_score():
    even = np.array([0.3, 0.6, 0.1, 0.9])
    down = tuning.curve(even, direction="minimize", k=1)
    up = tuning.curve(-even, direction="maximize", k=1)
    assert (down.band_low[0], down.band_high[0]) == (-up.band_high[0], -up.band_low[0])
    assert (down.estimate[0], up.estimate[0]) == (0.3, -0.6)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_tables_and_comparisons_mean_the_same(direction):
    table = {"benchmark": ["b"] * 48, "algorithm": ["a"] * 48, "loss": SCORES}
    want = tuning.curve(SCORES, direction=direction, k=[2, 3], statistic=0.9)
    curves = tuning.curves(table, score="loss", direction=direction, k=[2, 3], statistic=0.9)
    assert curves.curves[0].estimate.tolist() == want.estimate.tolist()
    found = tuning.compare(SCORES, SCORES, direction=direction, grid=[2, 3], statistic=0.9, names=("x", "y"), n_draws=0)
    assert found.a.estimate.tolist() == want.estimate.tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_seeds_mean_the_same(direction):
    table = {"benchmark": "b", "algorithm": "a", "seed": np.arange(48), "budget": 1.0, "loss": SCORES}
    frame = {name: np.broadcast_to(value, 48) for name, value in table.items()}
    curves = tuning.curves(
        frame, score="loss", direction=direction, unit="seed", seed="seed", budget="budget", statistic=0.9
    )
    assert curves.curves[0].estimate[0] == np.quantile(SCORES, 0.9, method="inverted_cdf")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("q", [0.2, 0.9])
def test_labels_are_false_as_often_for_losses_as_for_scores(direction, q):
    """The rates are those of the curve that is drawn: q to minimise has the ranks of 1 - q to maximise."""
    from lmemtest.tuning.evidence import false_label_rates

    k = [0.66, 0.83, 1.13]
    turned = q if direction == "maximize" else 1 - q
    one = false_label_rates(48, statistic=q, direction=direction, k=k, n_draws=500, rng=1).rate
    two = false_label_rates(48, statistic=turned, direction="maximize", k=k, n_draws=500, rng=1).rate
    assert one.tolist() == two.tolist()
