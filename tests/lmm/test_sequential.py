"""Tests at several looks: against rpact, integrals, closed forms and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from references import values
from scipy import integrate, special, stats

from lmemtest.lmm.sequential.brownian import Between, critical_scores, drift_limits, estimate_at_end, upper_p
from lmemtest.lmm.sequential.evalues import critical_one_sided, critical_t, log_evalue
from lmemtest.lmm.sequential.spending import SPENDING
from lmemtest.lmm.sequential.successive_t import boundaries, crossing, repeated_p

RPACT = values("sequential")


@pytest.mark.parametrize("case", RPACT["boundaries"], ids=lambda case: f"{case['spending']}-{len(case['shares'])}")
def test_boundaries_of_normal_scores_are_those_of_rpact(case: dict) -> None:
    found = critical_scores(case["shares"], case["alpha"], case["spending"])
    # rpact leaves 1e-8 of the level unspent, and stops its own search at 1e-10
    np.testing.assert_allclose(found, case["critical"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", RPACT["ends"], ids=lambda case: f"{case['spending']}-{len(case['shares'])}")
def test_p_values_and_estimates_at_the_end_are_those_of_rpact(case: dict) -> None:
    critical = case["critical"][:-1]
    sign = np.sign(case["z"])
    assert 2.0 * upper_p(sign * case["z"], case["shares"], critical) == pytest.approx(case["p_value"], abs=1e-8)
    drifts = np.array(drift_limits(case["z"], case["shares"], critical, 0.05)) / np.sqrt(case["n"])
    np.testing.assert_allclose(drifts, [case["estimate"], *case["limits"]], rtol=0, atol=2e-6)


def test_spending_begins_at_nothing_and_ends_at_the_level() -> None:
    for spend in SPENDING.values():
        spent = spend(np.array([1e-6, 0.2, 0.5, 1.0]), np.array([[0.01], [0.05]]))
        assert (np.diff(spent, axis=1) > 0.0).all()
        assert (spent[0, 1:] < spent[1, 1:]).all()
        np.testing.assert_allclose(spent[:, -1], [0.01, 0.05], rtol=1e-12)


def test_without_looks_the_end_is_the_t_test() -> None:
    x = np.random.default_rng(3).normal(0.4, 1.0, 9)
    se = float(x.std(ddof=1) / 3.0)
    estimate, low, high = estimate_at_end(float(x.mean()), se, 8.0, [1.0], [], 0.05)
    limits = stats.ttest_1samp(x, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose([estimate, low, high], [x.mean(), *limits], rtol=1e-9)
    turned = estimate_at_end(-float(x.mean()), se, 8.0, [0.4, 1.0], [2.9], 0.05)
    np.testing.assert_allclose(
        turned, -np.array(estimate_at_end(float(x.mean()), se, 8.0, [0.4, 1.0], [2.9], 0.05))[[0, 2, 1]]
    )


def test_with_infinitely_many_degrees_of_freedom_the_end_is_that_of_brownian_motion() -> None:
    shares, critical = [0.25, 0.5, 0.75, 1.0], critical_scores([0.25, 0.5, 0.75], 0.05, "pocock").tolist()
    for z in (2.1, -1.3):
        found = estimate_at_end(0.2 * z, 0.2, np.inf, shares, critical, 0.05)
        np.testing.assert_allclose(found, 0.2 * np.array(drift_limits(z, shares, critical, 0.05)), atol=1e-8)
        assert abs(found[0]) < abs(0.2 * z)  # who went on was not far from zero before


def test_nothing_is_lost_on_the_way() -> None:
    process = Between([0.3, 0.7, 1.0], drift=1.5)
    left = 0.0
    for bound in (2.5, 2.2):
        left += process.above(bound) + process.below(-bound)
        process.cut(bound)
    assert left + process.above(0.0) + process.below(0.0) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------------- successive t-tests


def t_ratios(x: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(x[:, :n].mean(axis=1) / x[:, :n].std(axis=1, ddof=1) * np.sqrt(n))


@pytest.mark.level(2)
@pytest.mark.parametrize("spending", SPENDING)
@pytest.mark.parametrize("sizes", [(3, 5), (3, 6, 9, 12), (5, 10, 20, 40), tuple(range(4, 13))], ids=str)
def test_successive_t_tests_have_their_level(sizes: tuple[int, ...], spending: str) -> None:
    """Brownian boundaries let 1.05 to 1.2 times the level pass with these sizes."""
    draws, levels = 200_000, np.array([0.05, 0.01])
    critical = stats.t.isf(special.ndtr(-boundaries(sizes, sizes[-1], levels, spending)), np.array(sizes) - 1)
    rejected = np.zeros(2)
    rng = np.random.default_rng(32)
    for _ in range(10):
        x = rng.standard_normal((draws // 10, sizes[-1]))
        ratios = np.abs([t_ratios(x, n) for n in sizes])
        rejected += (ratios[None] > critical[:, :, None]).any(axis=1).sum(axis=1)
    for count, level in zip(rejected, levels, strict=True):
        assert stats.binomtest(int(count), draws, 1.01 * level).pvalue > 1e-4


def test_one_look_is_one_test() -> None:
    np.testing.assert_allclose(special.ndtr(-boundaries([12], 12, [0.05, 0.001]))[:, 0], [0.025, 0.0005], rtol=2e-6)
    np.testing.assert_allclose(repeated_p([0.3, 0.03, np.nan], [12], 12), [0.3, 0.03, np.nan], rtol=4e-4)


def test_many_values_are_brownian() -> None:
    sizes = [400, 700, 1000]
    np.testing.assert_allclose(
        boundaries(sizes, 1000, 0.05)[0], critical_scores(np.array(sizes) / 1000, 0.05), rtol=2e-3
    )


def test_a_repeated_p_value_is_the_level_whose_boundary_is_reached() -> None:
    sizes, levels = [5, 9, 14], np.array([0.004, 0.05, 0.3])
    reached = 2.0 * special.ndtr(-boundaries(sizes, 20, levels, "pocock")[:, -1])
    np.testing.assert_allclose(repeated_p(reached, sizes, 20, "pocock"), levels, rtol=5e-3)
    p = repeated_p(np.geomspace(1e-13, 1.0, 60), sizes, 20)
    assert (np.diff(p) >= 0.0).all()
    assert p[-1] == 1.0


def test_what_cannot_be_spent_is_no_boundary() -> None:
    assert np.isinf(boundaries([3, 40], 400, 0.001)[0, 0])
    assert repeated_p([1e-12], [2], 400)[0] == 1.0


def test_conditional_errors_average_to_what_is_left() -> None:
    """Over the scores of the first look that go on, the conditional error is what the second look spends."""
    sizes = [8, 16]
    bounds = boundaries(sizes, 16, 0.05, "pocock")[0]
    z = (np.arange(400) + 0.5) / 400 * bounds[0]
    mean = np.mean([crossing(at, sizes, bounds[1:]) * 2.0 * stats.norm.pdf(at) for at in z]) * bounds[0]
    spent = SPENDING["pocock"](np.array([0.5, 1.0]), 0.05)
    assert mean == pytest.approx(spent[1] - spent[0], rel=5e-3)


# ---------------------------------------------------------------------- e-values


@pytest.mark.parametrize(("t", "n"), [(0.0, 3), (2.3, 8), (-4.0, 25)])
def test_an_e_value_is_a_mixture_of_noncentral_t_densities(t: float, n: int) -> None:
    g = 0.7

    def mixed(low: float) -> float:
        density = lambda d: stats.nct.pdf(t, n - 1, d * np.sqrt(n)) * stats.norm.pdf(d, scale=np.sqrt(g))  # noqa: E731
        return float(integrate.quad(density, low, 6.0, limit=200)[0] / stats.t.pdf(t, n - 1))

    assert np.exp(log_evalue(t, n, g)) == pytest.approx(mixed(-6.0), rel=1e-6)
    assert np.exp(log_evalue(t, n, g, one_sided=True)) == pytest.approx(2.0 * mixed(0.0), rel=1e-6)


def test_the_critical_ratio_has_the_e_value_one_over_alpha() -> None:
    alpha = np.array([0.05, 0.001])
    np.testing.assert_allclose(np.exp(log_evalue(critical_t(alpha, 20, 1.0), 20, 1.0)), 1.0 / alpha, rtol=1e-9)
    assert np.isinf(critical_t(0.001, 4, 1.0))
    assert np.exp(log_evalue(np.inf, 4, 1.0)) < 1000.0
    assert log_evalue(critical_one_sided(0.05, 20, 1.0), 20, 1.0, one_sided=True) == pytest.approx(np.log(20.0))
    assert np.isinf(critical_one_sided(0.001, 3, 1.0))
    largest = log_evalue([1e9, np.inf], 4, 1.0, one_sided=True)
    assert largest[0] == pytest.approx(largest[1], rel=1e-12)


def test_e_values_have_mean_one_without_a_difference() -> None:
    mean, _ = integrate.quad(lambda t: np.exp(log_evalue(t, 6, 1.0)) * stats.t.pdf(t, 5), -np.inf, np.inf)
    assert mean == pytest.approx(1.0, abs=1e-7)


@pytest.mark.level(2)
def test_e_values_keep_their_level_at_every_look() -> None:
    draws, alpha = 20_000, 0.05
    x = np.random.default_rng(5).standard_normal((draws, 60))
    ever = np.zeros(draws, dtype=bool)
    for n in range(2, 61):
        ever |= log_evalue(t_ratios(x, n), n, 1.0) >= -np.log(alpha)
    assert 0.005 < ever.mean() < alpha


@pytest.mark.level(2)
@pytest.mark.parametrize("mean", [0.0, -0.1])
def test_one_sided_e_values_keep_their_level_at_every_look(mean: float) -> None:
    draws, alpha = 20_000, 0.05
    x = np.random.default_rng(6).standard_normal((draws, 60)) + mean
    ever = np.zeros(draws, dtype=bool)
    for n in range(2, 61):
        ever |= log_evalue(t_ratios(x, n), n, 1.0, one_sided=True) >= -np.log(alpha)
    assert 0.001 < ever.mean() < alpha
