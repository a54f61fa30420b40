"""The empirical distribution agrees with counting, and its band with the band of the count."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from pytest import approx
from refusals import refusal, refuses
from scipy import integrate, optimize, stats

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.band import TESTS, goodness_of_fit
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.order_statistics import equal_tailed_intervals, highest_density_intervals, shares_outside

TIED = [0.2, 0.5, 0.5, 0.9, 0.2, 0.5]


def test_cdf_counts_ties_in_full():
    law = EmpiricalDistribution(TIED)
    np.testing.assert_allclose(law.cdf([0.1, 0.2, 0.3, 0.5, 0.9, 2.0]), np.array([0, 2, 2, 5, 6, 6]) / 6)
    assert law.cdf(0.5) == approx(5 / 6)
    assert isinstance(law.cdf(0.5), float)
    assert law.cdf([[0.1, 0.9]]).shape == (1, 2)


def test_ppf_is_the_smallest_score_with_the_share_at_or_below():
    law = EmpiricalDistribution(TIED, bounds=(0, 1))
    assert law.ppf([0.0, 0.01, 2 / 6, 0.34, 5 / 6, 0.84, 1.0]).tolist() == [0.0, 0.2, 0.2, 0.5, 0.5, 0.9, 0.9]


def test_ppf_returns_the_rank_of_its_own_share():
    """Cumulative floats would miss some: 1 / 49 taken 49 times is not 1."""
    for n in [1, 2, 7, 48, 399, 1000]:
        law = EmpiricalDistribution(np.arange(1.0, n + 1))
        ranks = np.arange(1, n + 1)
        np.testing.assert_array_equal(law.ppf(ranks / n), ranks)
        np.testing.assert_array_equal(law.ppf(law.cdf(ranks)), ranks)
        weighted = EmpiricalDistribution(np.arange(1.0, n + 1), weights=np.full(n, 0.1))
        np.testing.assert_array_equal(weighted.ppf(ranks / n), ranks)


def test_weights_count_like_repeated_scores():
    law = EmpiricalDistribution([0.9, 0.2, 0.5], weights=[1, 2, 3])
    same = EmpiricalDistribution(TIED)
    assert (same.mean(), same.variance()) == (approx(np.mean(TIED)), approx(np.var(TIED)))
    p = np.linspace(0.01, 1, 50)
    np.testing.assert_allclose(law.cdf([0.1, 0.2, 0.5, 0.9]), same.cdf([0.1, 0.2, 0.5, 0.9]))
    np.testing.assert_array_equal(law.ppf(p), same.ppf(p))
    assert (law.mean(), law.variance()) == (approx(same.mean()), approx(same.variance()))
    assert law.weights.tolist() == approx([2 / 6, 3 / 6, 1 / 6])


def test_infinite_scores_are_kept():
    law = EmpiricalDistribution([-np.inf, 1.0, 2.0])
    assert (law.mean(), law.ppf(0.2), law.ppf(0.5), law.cdf(-np.inf)) == (-np.inf, -np.inf, 1.0, approx(1 / 3))
    assert np.isnan(law.variance())
    assert np.isnan(EmpiricalDistribution([-np.inf, np.inf]).mean())
    assert EmpiricalDistribution([-np.inf, 1.0], weights=[0, 1]).mean() == 1.0


def test_draws_have_the_weights_as_frequencies():
    law = EmpiricalDistribution([1.0, 2.0, 3.0], weights=[0.2, 0.0, 0.8])
    draws = law.sample(20_000, rng=4)
    assert set(draws) == {1.0, 3.0}
    assert np.mean(draws == 1.0) == approx(0.2, abs=0.012)
    assert law.sample((2, 3), rng=1).shape == (2, 3)
    assert isinstance(law.sample(rng=1), float)
    np.testing.assert_array_equal(law.sample(9, rng=3), law.sample(9, rng=3))


def test_the_scores_of_the_caller_are_not_touched():
    scores = np.array([0.5, 0.2])
    law = EmpiricalDistribution(scores)
    scores[0] = 9.0
    assert law.scores.tolist() == [0.2, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        law.scores[0] = 1.0


def test_the_band_is_read_at_the_full_count():
    law = EmpiricalDistribution(TIED, bounds=(0, 1))
    band = law.band(band="ks", level=0.9)
    by_count = tuning.band(6, band="ks", level=0.9)
    lower, upper = band.cdf_bounds([0.0, 0.2, 0.5, 0.9])
    np.testing.assert_array_equal(lower, by_count.band_low[[0, 2, 5, 6]])
    np.testing.assert_array_equal(upper, by_count.band_high[[0, 2, 5, 6]])
    assert band.cdf_bounds(-0.5) == (0.0, 0.0)
    assert band.cdf_bounds(1.0) == (1.0, 1.0)
    frame = band.to_frame()
    assert list(frame.columns) == ["score", "estimate", "band_low", "band_high"]
    assert frame["score"].tolist() == [0.2, 0.5, 0.9]
    assert "90 % Kolmogorov-Smirnov band for n = 6" in band.summary()


def test_the_table_has_a_row_per_distinct_score():
    frame = EmpiricalDistribution(TIED).to_frame()
    assert list(frame.columns) == ["score", "weight", "cdf"]
    np.testing.assert_allclose(frame.to_numpy(), [[0.2, 2 / 6, 2 / 6], [0.5, 3 / 6, 5 / 6], [0.9, 1 / 6, 1.0]])
    assert "6 scores between -inf and inf; mean 0.466667." in repr(EmpiricalDistribution(TIED))


def test_what_cannot_be_a_distribution_is_named():
    for arguments, error, message in [
        ({"scores": []}, DataError, "scores must hold at least 1 score, got none."),
        ({"scores": [0.1, np.nan, 0.3, np.nan]}, DataError,
         "scores must not be missing: 2 of 4 are NaN (position 1, 3). Score a failed run as the worst value: "
         "dropping it would make the search look better than it was."),
        ({"scores": ["a"]}, ArgumentError,
         "scores must be a one-dimensional list of numbers, one per configuration, got list."),
        ({"scores": [0.1 + 1j]}, ArgumentError,
         "scores must be a one-dimensional list of numbers, one per configuration, got complex ones."),
        ({"scores": [[0.1, 0.2]]}, ArgumentError,
         "scores must be a one-dimensional list of numbers, one per configuration, got several dimensions."),
        ({"weights": [1, 2]}, ArgumentError, "weights must hold one number for each of the 3 scores, got (2,)."),
        ({"weights": [1, -2, 3]}, ArgumentError, "weights must be finite, at least 0, and not all 0."),
        ({"weights": [0, 0, 0]}, ArgumentError, "weights must be finite, at least 0, and not all 0."),
        ({"bounds": (1, 0)}, ArgumentError,
         "bounds must be (low, high) with low < high, the smallest and the largest score that can occur, got "
         "(1, 0). Write float('-inf') or float('inf') for an end that is not known."),
        ({"bounds": (0.25, 1)}, DataError,
         "bounds must enclose all scores, but 1 of 3 lie outside of 0.25 to 1 (the scores go from 0.2 to 0.5). "
         "Widen the bounds, or give a failed run the worst score that can occur."),
    ]:  # fmt: skip
        with pytest.raises(error) as caught:
            EmpiricalDistribution(**({"scores": [0.2, 0.5, 0.3]} | arguments))
        assert str(caught.value) == message


def test_calls_out_of_range_are_named():
    law = EmpiricalDistribution([0.2, 0.5], weights=[1, 2])
    assert refusal(lambda: law.ppf([0.5, 1.5])) == "p must lie between 0 and 1, got 1.5."
    assert refusal(lambda: law.ppf(np.nan)) == "p must lie between 0 and 1, got nan."
    assert refusal(lambda: law.cdf(np.nan)) == "y must not be NaN."
    assert refusal(lambda: law.band()) == (
        "a band needs independent scores of one distribution, all of the same weight, but the scores have weights. "
        "Make the distribution without weights=."
    )


# ---------------------------------------------------------------------- kernel density


POINTS = np.random.default_rng(8).beta(5, 2, 40)
INF = math.inf
SETTINGS = [((0.0, 1.0), 0.05), ((0.0, 1.0), 0.6), ((-INF, 1.0), 0.05), ((0.0, INF), 0.1), ((-INF, INF), 0.05)]


def test_density_distribution_and_quantiles_agree():
    for bounds, bandwidth in SETTINGS:
        law = kernel_density(POINTS, bandwidth=bandwidth, bounds=bounds)
        low, high = max(bounds[0], -1.5), min(bounds[1], 2.5)
        for y in (0.2, 0.7, 0.97):
            area = integrate.quad(lambda x, law=law: float(law.pdf(x)), low, y, limit=400, points=[0.5 * (low + y)])[0]
            assert float(law.cdf(y)) == approx(area, abs=1e-9)
        assert law.cdf([low, high]) == approx([0.0, 1.0], abs=1e-12)
        assert law.pdf([bounds[0] - 1.0, bounds[1] + 1.0]) == approx([0.0, 0.0])
        p = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-9])
        assert law.cdf(law.ppf(p)) == approx(p, abs=1e-14)
        assert law.sf(law.isf(p)) == approx(p, abs=1e-14)
        assert law.ppf([0.0, 1.0]).tolist() == list(bounds)
        assert law.isf([0.0, 1.0]).tolist() == list(bounds[::-1])


def test_draws_have_the_distribution():
    for bounds, bandwidth in SETTINGS:
        law = kernel_density(POINTS, bandwidth=bandwidth, bounds=bounds)
        drawn = law.sample((5000, 4), rng=3)
        assert drawn.shape == (5000, 4)
        assert bounds[0] <= drawn.min() <= drawn.max() <= bounds[1]
        assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 0.001
        for direction, best in (("maximize", drawn.max(axis=1)), ("minimize", drawn.min(axis=1))):
            error = 4 * best.std() / math.sqrt(len(best))
            assert law.mean_curve(4, direction=direction)[0] == approx(best.mean(), abs=error)
            below = np.mean(best <= law.quantile_curve(4, direction=direction, q=0.3)[0])
            assert below == approx(0.3, abs=4 * math.sqrt(0.21 / len(best)))


def test_one_kernel_is_the_normal_law():
    law = kernel_density([0.0], bandwidth=1.0)
    assert law.ppf([0.1, 0.975]) == approx(stats.norm.ppf([0.1, 0.975]), rel=1e-12)
    # expected largest of 1, 2, 3 normal scores in closed form
    assert law.mean_curve([1, 2, 3], direction="maximize") == approx(
        [0.0, 1 / math.sqrt(math.pi), 1.5 / math.sqrt(math.pi)], abs=1e-13
    )
    assert law.quantile_curve(1e12, direction="maximize") == approx(
        stats.norm.isf(-math.expm1(math.log(0.5) / 1e12)), rel=1e-10
    )


def test_reflection_keeps_the_mass_at_the_bound():
    half = kernel_density([0.0], bandwidth=1.0, bounds=(0.0, INF))
    assert half.pdf(0.5) == approx(stats.halfnorm.pdf(0.5), rel=1e-13)
    flat = kernel_density([0.3], bandwidth=5.0, bounds=(0.0, 1.0))  # wide kernels fold into the uniform law
    assert flat.pdf([0.1, 0.9]) == approx([1.0, 1.0], abs=1e-12)


def test_a_density_says_what_it_is_and_refuses_what_it_cannot_use():
    assert repr(kernel_density([0.2, 0.4], bandwidth=0.1, bounds=(0, 1))) == (
        "KernelDensity(2 points, bandwidth 0.1, bounds 0 to 1)"
    )
    assert refusal(lambda: kernel_density([0.2], bandwidth=0)) == (
        "bandwidth must be a finite number above 0, got 0: a width in units of the score."
    )
    assert refusal(lambda: kernel_density([0.0, 1.0], bandwidth=1e-6)) == (
        "bandwidth must be at least a 20,000th of the range of the scores, 5e-05, got 1e-06. "
        "A smaller one is the sample itself: resample the scores instead."
    )
    assert refusal(lambda: kernel_density([0.0, -INF], bandwidth=1)) == (
        "scores must be finite for a kernel density. Give a failed run the worst score that can occur."
    )
    assert "bounds must enclose all scores" in refusal(lambda: kernel_density([2.0], bandwidth=1, bounds=(0, 1)))
    assert refusal(lambda: kernel_density([0.2], bandwidth=1).ppf(1.5)) == "p must lie between 0 and 1, got 1.5."


# ---------------------------------------------------------------------- goodness


LD = TESTS[:2]
UNIFORM = stats.uniform(0, 1)


def test_the_coverage_function_inverts_the_intervals():
    for n, level in itertools.product([2, 3, 8, 48, 1000], [0.9, 0.2, 1e-5]):
        rank = np.arange(1, n + 1)
        for method, make in zip(LD, (highest_density_intervals, equal_tailed_intervals), strict=True):
            low, high = make(n, level)
            assert shares_outside(low[1:], rank[1:], n, method) == approx(np.full(n - 1, level), rel=1e-9)
            assert shares_outside(high[:-1], rank[:-1], n, method) == approx(np.full(n - 1, level), rel=1e-9)


def test_the_coverage_of_highest_density_is_that_of_equal_densities():
    """Appendix C.2 by a root finder of its own; and opda 0.8.0's beta_highest_density_coverage(2, 4, [0.1, 0.6])."""
    n, i = 5, 2
    law = stats.beta(i, n + 1 - i)
    for p in (0.02, 0.1, 0.6, 0.9):
        mode = (i - 1) / (n - 1)
        side = (mode, 1.0) if p < mode else (0.0, mode)
        other = optimize.brentq(lambda x, p=p: law.pdf(x) - law.pdf(p), *side, xtol=1e-15)
        inside = abs(law.cdf(p) - law.cdf(other))
        assert 1 - shares_outside([p], [i], n, LD[0])[0] == approx(inside, abs=1e-12)
    assert 1 - shares_outside([0.1, 0.6], [i, i], n, LD[0]) == approx([0.67428211, 0.89529281], abs=1e-8)
    assert shares_outside([0.3], [1], 1, LD[0])[0] == approx(0.6)  # one score: central intervals, as in the bands


def test_a_law_is_rejected_where_the_band_leaves_it_out():
    for method, level in itertools.product(TESTS, [0.5, 0.8, 0.95]):
        rng, band = np.random.default_rng(3), tuning.band(12, band=method, level=level)
        outcomes = set()
        for _ in range(60):
            y = np.sort(rng.random(12) ** rng.choice([1.0, 1.6]))
            inside = bool(np.all((band.band_low[1:] <= y) & (y <= band.band_high[:-1])))
            outcomes.add(inside)
            assert (goodness_of_fit(y, UNIFORM, band=method).p_value > 1 - level) == inside
        assert outcomes == {True, False}


def test_the_statistic_is_equation_10_and_kolmogorov_and_smirnov_are_those_of_scipy():
    y = np.sort(np.random.default_rng(4).random(9))
    found, outside = goodness_of_fit(y, UNIFORM), shares_outside(y, np.arange(1, 10), 9, LD[0])
    assert (found.statistic, found.at) == (approx(1 - outside.min()), y[np.argmin(outside)])
    for seed in range(6):
        y = np.random.default_rng(seed).normal(0.2, 1.0, 15)
        found, want = goodness_of_fit(y, stats.norm, band="ks"), stats.kstest(y, "norm", method="exact")
        assert (found.statistic, found.p_value) == (approx(want.statistic), approx(want.pvalue, rel=1e-6))
        assert found.at == want.statistic_location


@pytest.mark.parametrize("method", TESTS)
def test_p_values_of_a_true_law_are_uniform_and_of_a_discrete_one_larger(method):
    rng = np.random.default_rng(5)
    law = kernel_density([0.2, 0.5, 0.6], bandwidth=0.1)
    p = [goodness_of_fit(law.sample(20, rng=rng), law, band=method).p_value for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    dice = EmpiricalDistribution(np.arange(1.0, 7.0))
    p = np.array([goodness_of_fit(dice.sample(20, rng=rng), dice, band=method).p_value for _ in range(300)])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() <= level


def test_other_laws_are_seen_at_their_ends():
    """A thousandth of runs that fail: L_n sees them, D_n does not."""
    y = np.append(stats.norm.ppf((np.arange(300) + 0.5) / 300), [-5.0, -4.9])
    found = goodness_of_fit(y, stats.norm)
    assert found.p_value < 0.01
    assert found.at in (-5.0, -4.9)
    assert goodness_of_fit(y, stats.norm, band="ks").p_value > 0.5
    assert found.sentences()[0].startswith("The scores are not draws from this law (p = 0.006)")
    assert "Nothing in these scores speaks against this law" in goodness_of_fit([0.2, 0.7], UNIFORM).summary()
    assert goodness_of_fit([5.0, 6.0], UNIFORM).p_value == 0.0
    assert list(found.to_frame().columns) == ["statistic", "p_value", "at", "n_scores"]


def test_what_is_no_law_is_refused():
    refuses(ArgumentError, r"^law must have a cdf, such as kernel_density\(...\)", goodness_of_fit, [0.2], "normal")

    class Wrong:
        def cdf(self, y):
            return -y

    with pytest.raises(ArgumentError, match=r"^law.cdf must give a rising probability between 0 and 1"):
        goodness_of_fit([0.2, 0.4], Wrong())
    with pytest.raises(ArgumentError, match=r"^band must be 'ld_highest_density' or 'ld_equal_tailed' or 'ks'"):
        goodness_of_fit([0.2], UNIFORM, band="dkw")
    refuses(DataError, r"^scores must not be missing", goodness_of_fit, [0.2, np.nan], UNIFORM)
