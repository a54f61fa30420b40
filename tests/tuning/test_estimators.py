"""U, V and W against exact fractions, enumeration, published code and published numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.tuning.distribution import ESTIMATORS, EmpiricalDistribution, expected_best, order_weights
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

SCORES = [0.61, 0.70, 0.58, 0.74, 0.66, 0.70]


def cumulative(estimator: str, i: int, n: int, k: int) -> Fraction:
    """The formulas of Dodge et al. (2021), equations 2, 3 and 5."""
    if i == 0:
        return Fraction(0)
    if estimator == "u":
        return Fraction(math.comb(i, k), math.comb(n, k))
    if estimator == "v":
        return Fraction(i**k, n**k)
    return Fraction(math.comb(i + k - 1, k), math.comb(n + k - 1, k))


def allennlp(scores: list[float], k: int) -> float:
    """The expected maximum as in the code published with Dodge et al. (2019): differences of powers of the ECDF."""
    ordered, n = sorted(scores), len(scores)
    cdf = [sum(y <= x for y in ordered) / n for x in ordered]
    best = [p**k for p in cdf]
    return sum(x * (p - q) for x, p, q in zip(ordered, best, [0.0, *best[:-1]], strict=True))


def hedwig(data_dir, model: str) -> np.ndarray:
    frame = pd.read_csv(data_dir / "hedwig.csv")
    return frame.loc[frame["model_name"] == model, "f1"].to_numpy()


# ------------------------------------------------------------------------------------------------------ weights


SIZES = (1, 2, 7, 48)
DEFINED = [(e, n, k) for e in ESTIMATORS for n in SIZES for k in SIZES if e != "u" or k <= n]


def test_weights_are_the_exact_fractions():
    for estimator, n, k in DEFINED:
        exact = [float(cumulative(estimator, i, n, k) - cumulative(estimator, i - 1, n, k)) for i in range(1, n + 1)]
        assert order_weights(n, k, estimator=estimator) == approx(exact, rel=2e-14, abs=1e-300)


def test_a_million_scores_cost_no_accuracy():
    for estimator, k in itertools.product(ESTIMATORS, [1, 1000, 500_000]):
        n = 1_000_000
        weights = order_weights(n, k, estimator=estimator)
        assert np.all(np.isfinite(weights))
        assert np.all(weights >= 0)
        assert weights.sum() == approx(1.0, abs=1e-10)
        i = n - n // (2 * k)  # within the share of scores that carries the weight
        if k == 1000:  # larger binomials have hundreds of thousands of digits
            exact = float(cumulative(estimator, i, n, k) - cumulative(estimator, i - 1, n, k))
            assert weights[i - 1] == approx(exact, rel=1e-10)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_estimates_are_means_over_subsets_strings_and_multisets(k):
    drawn = {
        "u": itertools.combinations(SCORES, k),
        "v": itertools.product(SCORES, repeat=k),
        "w": itertools.combinations_with_replacement(SCORES, k),
    }
    for estimator, sets in drawn.items():
        best = [(max(s), min(s)) for s in sets]
        for column, direction in enumerate(("maximize", "minimize")):
            got = expected_best(SCORES, direction=direction, k=k, estimator=estimator).estimate[0]
            assert got == approx(np.mean([pair[column] for pair in best]), rel=1e-13)


def test_v_is_the_published_code():
    for k in range(1, 30):
        got = expected_best(SCORES, direction="maximize", k=k).estimate[0]
        assert got == approx(allennlp(SCORES, k), rel=1e-13)


def test_w_is_the_average_over_dirichlet_weights():
    rng = np.random.default_rng(3)
    ordered, k = np.sort(SCORES), 2.5  # real k: no multisets, but the average exists
    below = np.cumsum(rng.dirichlet(np.ones(len(SCORES)), size=200_000), axis=1) ** k
    best = np.diff(below, axis=1, prepend=0.0) @ ordered
    got = expected_best(SCORES, direction="maximize", k=k, estimator="w").estimate[0]
    assert got == approx(best.mean(), abs=4 * best.std() / math.sqrt(len(best)))


@pytest.mark.parametrize(
    ("model", "k", "want"),
    [("reg_lstm", 16, (0.771390, 0.764939, 0.758875)), ("mlp", 64, (0.801343, 0.800930, 0.800614))],
)
def test_published_data_give_the_known_numbers(data_dir, model, k, want):
    scores = hedwig(data_dir, model)
    got = [expected_best(scores, direction="maximize", k=k, estimator=e).estimate[0] for e in ESTIMATORS]
    assert got == approx(want, abs=5e-7)


# ------------------------------------------------------------------------------------------------------ properties

finite = st.floats(-1e3, 1e3, allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(scores=st.lists(finite, min_size=1, max_size=12), k=st.integers(1, 12))
def test_w_is_below_v_is_below_u(scores, k):
    k = min(k, len(scores))
    u, v, w = (expected_best(scores, direction="maximize", k=k, estimator=e).estimate[0] for e in ESTIMATORS)
    assert w <= v + 1e-9
    assert v <= u + 1e-9
    assert u <= max(scores) + 1e-9


@settings(deadline=None, max_examples=60)
@given(scores=st.lists(finite, min_size=1, max_size=12), k=st.floats(0.1, 40.0), estimator=st.sampled_from("vw"))
def test_minimising_is_maximising_the_negative(scores, k, estimator):
    up = expected_best([-y for y in scores], direction="maximize", k=k, estimator=estimator).estimate
    down = expected_best(scores, direction="minimize", k=k, estimator=estimator).estimate
    assert np.array_equal(down, -up)


def test_u_at_all_scores_is_the_best_and_says_so():
    result = expected_best(SCORES, direction="maximize", estimator="u")
    assert result.estimate[-1] == 0.74
    assert result.k.tolist() == [1, 2, 3, 4, 5, 6]
    assert "U at k = n = 6 is the best score itself." in result.notes


def test_budgets_beyond_the_sample_are_named():
    result = expected_best(SCORES, direction="minimize", k=[3, 1000])
    assert result.estimate[1] == approx(0.58, abs=1e-12)
    assert result.notes[-1] == (
        "Beyond k = n = 6 the estimate can only approach the best score seen, whatever a longer search would find."
    )
    beyond = expected_best(SCORES, direction="minimize", k=[6, 7, 1000], estimator="u")
    assert beyond.estimate.tolist() == [min(SCORES)] * 3
    assert "the estimate is the best score seen" in beyond.notes[-1]
    assert order_weights(3, 7, estimator="u").tolist() == [0.0, 0.0, 1.0]


def test_u_is_unbiased_and_its_rivals_are_low():
    rng = np.random.default_rng(11)
    sample = np.sort(rng.random((40_000, 10)), axis=1)
    for estimator in ESTIMATORS:
        estimates = sample @ order_weights(10, 5, estimator=estimator)
        error = estimates.mean() - 5 / 6
        margin = 4 * estimates.std() / math.sqrt(len(estimates))
        assert abs(error) < margin if estimator == "u" else error < -margin


def test_a_long_curve_is_shown_in_part():
    result = expected_best(np.arange(1000.0), direction="maximize")
    frame = result.to_frame()
    assert list(frame.columns) == ["k", "estimate"]
    assert (frame["k"].iloc[0], frame["k"].iloc[-1]) == (1.0, 1000.0)
    assert np.all(np.diff(frame["estimate"]) > 0)
    assert f" of {len(frame)} budgets; to_frame() has all." in repr(result)
    assert "<table" in result._repr_html_()


# ------------------------------------------------------------------------------------------------------ bad input


def test_what_cannot_be_estimated_is_refused_with_advice():
    assert refusal(lambda: expected_best(SCORES, direction="maximize", k=1.5, estimator="u")) == (
        "estimator 'u' needs whole budgets k, got 1.5. Use 'v' or 'w' for k in between."
    )
    assert refusal(lambda: expected_best(SCORES, direction="maximize", estimator="U")) == (
        "estimator must be 'u' or 'v' or 'w', got 'U'. Did you mean 'u'?"
    )
    assert refusal(lambda: expected_best([0.5, -np.inf], direction="maximize")) == (
        "scores must be finite for a mean: 1 of 2 are infinite. Give a failed run the "
        "worst score that can occur, or use tuning.curve, whose medians allow infinite scores."
    )
    assert refusal(lambda: order_weights(0, 1)) == "n_scores must be a whole number of at least 1, got 0."


def test_missing_scores_bad_budgets_and_directions_are_refused():
    assert "1 of 2 are NaN" in refusal(lambda: expected_best([0.5, np.nan], direction="maximize"))
    assert "must hold at least 1 score" in refusal(lambda: expected_best([], direction="maximize"))
    assert "k must be positive and finite" in refusal(lambda: expected_best(SCORES, direction="maximize", k=[1, 0]))


# ---------------------------------------------------------------------- quantile convention


fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

DIRECTIONS = ("maximize", "minimize")
QUANTILES = (0.1, 0.25, 0.5, 0.9)
K = np.array([0.3, 1.0, 2.0, 4.5, 20.0])
SCORES_OF_QUANTILE_CONVENTION = np.random.default_rng(5).beta(4, 2, 48)
WEIGHTS = np.random.default_rng(6).integers(0, 5, 48)


def best_at_most(below, above, k, direction):
    """P(best of k <= y) from P(Y <= y) and P(Y > y)."""
    return below**k if direction == "maximize" else 1.0 - above**k


SMOOTH = {
    "quadratic, convex": QuadraticDistribution(0.1, 0.7, 3, convex=True),
    "quadratic, concave": QuadraticDistribution(0.1, 0.7, 3, convex=False),
    "noisy, convex": NoisyQuadraticDistribution(0.1, 0.7, 2, 0.05, convex=True),
    "noisy, concave": NoisyQuadraticDistribution(0.1, 0.7, 2, 0.05, convex=False),
    "kernel density": kernel_density(SCORES_OF_QUANTILE_CONVENTION, bandwidth=0.05, bounds=(0, 1)),
}


@cache
def fits():
    at = (np.arange(60) + 0.5) / 60
    return {
        "fit": fit_quiet(QuadraticDistribution(0.1, 0.7, 2).ppf(at), direction="maximize"),
        "noisy fit": fit_noisy(
            NoisyQuadraticDistribution(0.1, 0.6, 1, 0.03, convex=True).ppf(at), direction="minimize"
        ),
    }


@pytest.mark.level(2)
def test_smooth_laws_have_the_quantile_of_the_best():
    for q, (name, law) in itertools.product(QUANTILES, (SMOOTH | fits()).items()):
        ways = (law.settings.direction,) if "fit" in name else DIRECTIONS
        one = law.distribution if "fit" in name else law
        for direction in ways:
            y = np.asarray(
                law.quantile_curve(K, q=q) if "fit" in name else law.quantile_curve(K, q=q, direction=direction)
            )
            assert best_at_most(one.cdf(y), one.sf(y), K, direction) == approx(q, abs=1e-9)
            if "fit" in name:
                # asked for the same budgets: the last digit of a root depends on what is solved beside it
                assert law.curve(K[:1], q=q).estimate[0] == np.asarray(law.quantile_curve(K[:1], q=q))[0]


def sampled(law, k, q, direction):
    """The definition, by search: the smallest score with P(best of k <= score) >= q."""
    y = np.unique(law.scores)
    share = best_at_most(law.cdf(y), 1.0 - law.cdf(y), k, direction)
    return y[np.flatnonzero(share >= q - 1e-12)[0]]


def test_samples_have_the_quantile_of_the_best():
    for q, direction, n in itertools.product(QUANTILES, DIRECTIONS, [1, 2, 5, 6, 47, 48]):
        scores = SCORES_OF_QUANTILE_CONVENTION[:n]
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
    law = EmpiricalDistribution(SCORES_OF_QUANTILE_CONVENTION, weights=WEIGHTS)
    repeated = np.repeat(SCORES_OF_QUANTILE_CONVENTION, WEIGHTS)
    for q in QUANTILES:
        want = tuning.curve(repeated, direction=direction, k=K, statistic=q).estimate
        np.testing.assert_array_equal(law.quantile_curve(K, direction=direction, q=q), want)
    mean = tuning.curve(repeated, direction=direction, k=K, statistic="mean", bounds=(0, 1)).estimate
    assert law.mean_curve(K, direction=direction) == approx(mean, rel=1e-12)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_draws_are_at_most_the_curve_that_often(direction):
    """Brute force, with no formula at all."""
    law = kernel_density(SCORES_OF_QUANTILE_CONVENTION, bandwidth=0.05, bounds=(0, 1))
    draws = law.sample((20_000, 3), rng=2)
    best = draws.max(axis=1) if direction == "maximize" else draws.min(axis=1)
    many = tuning.curve(draws.ravel(), direction=direction, k=3, statistic=0.8, band="dkw").estimate[0]
    for curve in (law.quantile_curve(3, direction=direction, q=0.8)[0], many):
        assert np.mean(best <= curve) == approx(0.8, abs=4 * np.sqrt(0.16 / 20_000))


def test_the_best_of_one_has_no_direction():
    for statistic, n in itertools.product(["median", *QUANTILES], [1, 2, 6, 10, 47, 48]):
        up, down = (
            tuning.curve(SCORES_OF_QUANTILE_CONVENTION[:n], direction=way, k=1, statistic=statistic)
            for way in DIRECTIONS
        )
        q = 0.5 if statistic == "median" else statistic
        assert (
            up.estimate[0]
            == down.estimate[0]
            == np.quantile(SCORES_OF_QUANTILE_CONVENTION[:n], q, method="inverted_cdf")
        )
        assert EmpiricalDistribution(SCORES_OF_QUANTILE_CONVENTION[:n]).ppf(q) == up.estimate[0]


def test_the_best_of_one_of_a_law_is_its_quantile_in_both_directions():
    for law, q in itertools.product(SMOOTH.values(), (0.0, *QUANTILES, 1.0)):
        both = [float(np.ravel(law.quantile_curve(1, q=q, direction=way))[0]) for way in DIRECTIONS]
        assert both == approx([float(law.ppf(q))] * 2, rel=1e-9)
    law = EmpiricalDistribution(SCORES_OF_QUANTILE_CONVENTION, bounds=(0, 1))
    for way in DIRECTIONS:
        assert law.quantile_curve([1, 5], q=0, direction=way).tolist() == [0.0, 0.0]
        assert law.quantile_curve([1, 5], q=1, direction=way).tolist() == [SCORES_OF_QUANTILE_CONVENTION.max()] * 2


@pytest.mark.parametrize("q", QUANTILES)
def test_turned_scores_have_the_turned_curve(q):
    """-y to maximise at 1 - q is y to minimise at q; where two scores are both quantiles, the smaller is meant."""
    k = K * 1.0001
    down = tuning.curve(SCORES_OF_QUANTILE_CONVENTION, direction="minimize", k=k, statistic=q)
    up = tuning.curve(-SCORES_OF_QUANTILE_CONVENTION, direction="maximize", k=k, statistic=1 - q)
    for name, other in (("band_low", "band_high"), ("estimate", "estimate"), ("band_high", "band_low")):
        np.testing.assert_array_equal(getattr(down, name), -getattr(up, other))
    assert down.k_max == up.k_max
    law = (
        EmpiricalDistribution(SCORES_OF_QUANTILE_CONVENTION, weights=WEIGHTS),
        EmpiricalDistribution(-SCORES_OF_QUANTILE_CONVENTION, weights=WEIGHTS),
    )
    np.testing.assert_array_equal(
        law[0].quantile_curve(k, q=q, direction="minimize"), -law[1].quantile_curve(k, q=1 - q, direction="maximize")
    )
    density = (
        kernel_density(SCORES_OF_QUANTILE_CONVENTION, bandwidth=0.1),
        kernel_density(-SCORES_OF_QUANTILE_CONVENTION, bandwidth=0.1),
    )
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
    table = {"benchmark": ["b"] * 48, "algorithm": ["a"] * 48, "loss": SCORES_OF_QUANTILE_CONVENTION}
    want = tuning.curve(SCORES_OF_QUANTILE_CONVENTION, direction=direction, k=[2, 3], statistic=0.9)
    curves = tuning.curves(table, score="loss", direction=direction, k=[2, 3], statistic=0.9)
    assert curves.curves[0].estimate.tolist() == want.estimate.tolist()
    found = tuning.compare(
        SCORES_OF_QUANTILE_CONVENTION,
        SCORES_OF_QUANTILE_CONVENTION,
        direction=direction,
        grid=[2, 3],
        statistic=0.9,
        names=("x", "y"),
        n_draws=0,
    )
    assert found.a.estimate.tolist() == want.estimate.tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_seeds_mean_the_same(direction):
    table = {
        "benchmark": "b",
        "algorithm": "a",
        "seed": np.arange(48),
        "budget": 1.0,
        "loss": SCORES_OF_QUANTILE_CONVENTION,
    }
    frame = {name: np.broadcast_to(value, 48) for name, value in table.items()}
    curves = tuning.curves(
        frame, score="loss", direction=direction, unit="seed", seed="seed", budget="budget", statistic=0.9
    )
    assert curves.curves[0].estimate[0] == np.quantile(SCORES_OF_QUANTILE_CONVENTION, 0.9, method="inverted_cdf")


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
