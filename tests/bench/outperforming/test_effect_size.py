"""Effect sizes: definitions, R, the tests that they agree with, invariance, and data without spread."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from growth import calls
from scipy import special, stats

import lmemtest as lt
from lmemtest.bench.outperforming.effect_size import KINDS, PAIRED_ONLY, effect_sizes, magnitude, standardised
from lmemtest.errors import ArgumentError, DataError, DesignError

WAYS = [(kind, paired) for kind in KINDS for paired in (True, False) if paired or kind not in PAIRED_ONLY]
ANALYTIC = [way for way in WAYS if way[0] != "akinshin_gamma"]


def samples(p=6, n=12, m=12, seed=1, step=None):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.6, size=(p, n)), rng.normal(size=(p, m))
    return (x, y) if step is None else (np.round(x / step), np.round(y / step))


def effect_size(a, b, kind="cohen_d", **options):
    return lt.outperforming(a, b, kind, **options)


def test_values_are_those_of_r(reference):
    for case in reference("effect_sizes")["samples"]:
        for want in case["effects"]:
            got = effect_size(case["a"], case["b"], want["kind"], paired=case["paired"], rng=0, n_draws=99)
            assert got.estimate == pytest.approx(want["estimate"], rel=1e-12, abs=1e-14)
            if want["ci_low"] is not None:
                # limits of R are roots of adaptive quadrature
                assert (got.ci_low, got.ci_high) == pytest.approx((want["ci_low"], want["ci_high"]), abs=1e-10)


@pytest.mark.parametrize("step", [None, 0.5])
def test_cliff_is_the_mean_sign_of_all_differences_and_u_of_mann_and_whitney(step):
    x, y = samples(5, 9, 13, step=step)
    found = effect_sizes(x, y, "cliff_delta", paired=False)[0]
    np.testing.assert_allclose(found, np.sign(x[:, :, None] - y[:, None, :]).mean(axis=(1, 2)), rtol=1e-13)
    np.testing.assert_allclose(found, 2.0 * stats.mannwhitneyu(x, y, axis=1).statistic / (9 * 13) - 1.0, rtol=1e-13)


def test_the_variance_and_the_df_of_cliff_are_those_of_brunner_and_munzel():
    """At the level at which their test just rejects, t^2 v = delta^2: the limits need no variance and no quantile."""
    for x, y in zip(*samples(5, 9, 13), strict=True):
        p = stats.brunnermunzel(x, y, distribution="t").pvalue
        found = effect_size(x, y, "cliff_delta", paired=False, alpha=p)
        delta = found.estimate
        for limit in (found.ci_low, found.ci_high):
            want = delta**2 * (1.0 - limit**2) / (1.0 - delta**2)
            assert (delta - limit) ** 2 == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("step", [None, 0.5])
def test_rank_biserial_is_that_of_the_signed_ranks_and_agrees_with_their_test(step):
    x, y = samples(40, 9, 9, step=step)
    found = effect_sizes(x, y, "rank_biserial")
    for row, (a, b) in enumerate(zip(x, y, strict=True)):
        d = (a - b)[a != b]
        test = stats.wilcoxon(d, correction=True, method="asymptotic")
        total = len(d) * (len(d) + 1) / 2
        assert abs(found[0][row]) == pytest.approx(1.0 - 2.0 * test.statistic / total)
        assert (found[1][row] > 0) | (found[2][row] < 0) == (test.pvalue < 0.05)
    assert len(set(np.sign(found[1]))) == 2


def test_intervals_of_paired_means_exclude_zero_exactly_where_the_t_test_rejects():
    x, y = samples(200, 7, 7)
    p = stats.ttest_rel(x, y, axis=1).pvalue
    for kind in ("cohen_d", "hedges_g", "cohen_dz"):
        found = effect_sizes(x, y, kind)
        assert (((found[1] > 0) | (found[2] < 0)) == (p < 0.05)).all()
    p = stats.ttest_ind(x, y, axis=1).pvalue
    found = effect_sizes(x, y, "cohen_d", paired=False)
    assert (((found[1] > 0) | (found[2] < 0)) == (p < 0.05)).all()
    assert 20 < (p < 0.05).sum() < 180


def test_limits_are_at_their_probability_of_the_noncentral_t():
    x, y = samples(5, 8, 11)
    found = effect_sizes(x, y, "cohen_d", paired=False, alpha=0.1)
    root = np.sqrt(8 * 11 / 19)
    t = root * found[0]
    np.testing.assert_allclose(special.nctdtr(17, root * found[1], t), 0.95, rtol=1e-9)
    np.testing.assert_allclose(special.nctdtr(17, root * found[2], t), 0.05, rtol=1e-9)


def test_the_factor_of_hedges_removes_the_bias_of_d():
    rng = np.random.default_rng(2)
    x, y = rng.normal(1.0, size=(1500, 3)), rng.normal(size=(1500, 4))
    d, g = (effect_sizes(x, y, kind, paired=False)[0] for kind in ("cohen_d", "hedges_g"))
    error = g.std() / np.sqrt(len(g))
    assert abs(g.mean() - 1.0) < 4.0 * error
    assert d.mean() - 1.0 > 4.0 * error


def test_resampled_medians_have_the_quantiles_of_all_resamples():
    x, y = np.array([1.0, 2.5, 4.0, 4.5, 9.0]), np.array([0.0, 2.0, 2.2, 5.0, 3.0])
    every = np.array(list(itertools.product(range(5), repeat=5)))
    spread = [np.median(np.abs(z - np.median(z, axis=1, keepdims=True)), axis=1) for z in (x[every], y[every])]
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma = (np.median(x[every], axis=1) - np.median(y[every], axis=1)) / np.hypot(*spread) * np.sqrt(2.0) / 1.4826
    gamma = np.sort(np.where(np.isnan(gamma), 0.0, gamma))
    for alpha in (0.5, 0.2):
        got = effect_size(x, y, "akinshin_gamma", alpha=alpha, n_draws=20_000, rng=3)
        # within the quantiles at twice the standard error of their probability
        tail, error = alpha / 2, 2.0 * np.sqrt(0.25 * 0.75 / 20_000)
        for limit, p in ((got.ci_low, tail), (got.ci_high, 1 - tail)):
            least, most = (gamma[int(3125 * (p + side * error))] for side in (-1, 1))
            assert least * 0.9999 <= limit <= most * 1.0001


def test_resamples_obey_rng_and_no_pair_depends_on_the_others():
    x, y = samples(5, 15, 15)
    first = effect_sizes(x, y, "akinshin_gamma", rng=7, n_draws=199)
    assert np.array_equal(np.array(first), np.array(effect_sizes(x, y, "akinshin_gamma", rng=7, n_draws=199)))
    assert not np.array_equal(np.array(first), np.array(effect_sizes(x, y, "akinshin_gamma", rng=8, n_draws=199)))
    alone = effect_sizes(x[2:3], y[2:3], "akinshin_gamma", rng=7, n_draws=199)
    assert np.array_equal(np.array(alone)[:, 0], np.array(first)[:, 2])
    moving = np.random.default_rng(7)
    assert np.array_equal(np.array(effect_sizes(x, y, "akinshin_gamma", rng=moving, n_draws=199)), np.array(first))
    assert not np.array_equal(np.array(effect_sizes(x, y, "akinshin_gamma", rng=moving, n_draws=199)), np.array(first))


# ---------------------------------------------------------------------- invariance


@pytest.mark.parametrize(("kind", "paired"), WAYS)
def test_exchanging_the_samples_changes_the_sign_and_nothing_else(kind, paired):
    for m in (9, 12) if not paired else (12,):
        x, y = samples(8, 12, m)
        there = effect_sizes(x, y, kind, paired=paired, rng=1, n_draws=100)
        back = effect_sizes(y, x, kind, paired=paired, rng=1, n_draws=100)
        assert np.array_equal(np.array(back), [-there[0], -there[2], -there[1]])


@pytest.mark.parametrize(("kind", "paired"), WAYS)
def test_units_offsets_and_the_order_of_pairs_do_not_matter(kind, paired):
    x, y = samples(8)
    want = np.array(effect_sizes(x, y, kind, paired=paired, rng=1, n_draws=100))
    moved = np.array(effect_sizes(1e6 + 1e-3 * x, 1e6 + 1e-3 * y, kind, paired=paired, rng=1, n_draws=100))
    np.testing.assert_allclose(moved, want, rtol=1e-5, atol=1e-6)  # what is left of 1e-3 after 1e6 in a double
    if kind != "akinshin_gamma":  # resamples are by position
        order = np.random.default_rng(3).permutation(12)
        np.testing.assert_allclose(
            np.array(effect_sizes(x[:, order], y[:, order], kind, paired=paired)), want, rtol=1e-9
        )


def test_scores_that_differ_by_rounding_are_tied():
    a, b = [0.1 + 0.2, 1.0, 3.0, 4.0], [0.3, 2.0, 2.0, 1.0]
    assert a[0] != b[0]
    exact = [0.3, *a[1:]]
    for kind in ("cliff_delta", "rank_biserial"):
        assert effect_size(a, b, kind).estimate == effect_size(exact, b, kind).estimate
    assert effect_size([0.1 + 0.2, 0.7], [0.3, 0.7], "cohen_dz").estimate == 0.0


def test_many_pairs_take_as_many_calls_as_few():
    few, many = samples(3, 20, 20), samples(300, 20, 20)
    for kind, paired in ANALYTIC:
        effect_sizes(*few, kind, paired=paired)
        work = [calls(lambda at=at, k=kind, p=paired: effect_sizes(*at, k, paired=p), in_c=False) for at in (few, many)]
        assert work[1] <= 1.5 * work[0]  # a few more steps of the search for the limits


# ---------------------------------------------------------------------- without spread


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("cliff_delta", "rank_biserial")])
def test_without_spread_a_difference_has_no_size_and_none_is_zero(kind):
    apart = effect_size([2.1] * 5, [0.3] * 5, kind, rng=0)
    assert np.isnan([apart.estimate, apart.ci_low, apart.ci_high]).all()
    assert apart.magnitude == ""
    assert "measure='cliff_delta' needs no spread" in apart.notes[0]
    assert apart.sentences()[0].endswith("has no value.")
    same = effect_size([0.3] * 5, [0.3] * 5, kind, rng=0)
    assert (same.estimate, same.magnitude) == (0.0, "negligible")
    assert np.isnan([same.ci_low, same.ci_high]).all()


def test_signs_need_no_spread():
    for kind in ("cliff_delta", "rank_biserial"):
        apart = effect_size([2.1] * 8, [0.3] * 8, kind)
        assert (apart.estimate, apart.ci_high, apart.magnitude) == (1.0, 1.0, "large")
        assert 0.0 < apart.ci_low < 0.8
    same = effect_size([0.3] * 8, [0.3] * 8, "cliff_delta")
    assert same.estimate == 0.0
    assert same.ci_low == -same.ci_high < -0.3
    assert effect_size([0.3] * 8, [0.3] * 8, "rank_biserial").estimate == 0.0


def test_few_values_leave_gamma_without_a_limit_and_say_so():
    found = effect_size([1.0, 2.0, 4.0, 7.0, 5.5, 3.0], [0.0, 1.5, 2.0, 3.0, 5.0, 1.0], "akinshin_gamma", rng=0)
    assert np.isinf(found.ci_high)
    assert "measure='cliff_delta' has finite limits" in found.notes[0]
    assert "fewer than 10 values" in found.notes[1]
    flat = effect_size([0, 0, 0, 0, 9], [1, 1, 1, 1, 5], "akinshin_gamma", rng=0)  # median absolute deviations of 0
    assert np.isnan(flat.estimate)
    assert flat.magnitude == ""


def test_two_pairs_have_every_kind_but_the_unbiased():
    found = {kind: effect_size([1, 2], [3, 5], kind, rng=0) for kind in KINDS}
    assert {kind for kind in KINDS if np.isnan(found[kind].estimate)} == {"hedges_g"}
    assert found["hedges_g"].notes == (
        "Two pairs do not tell the bias that Hedges' factor corrects; measure='cohen_d' has a value.",
    )
    assert found["cohen_dz"].estimate == pytest.approx(-2.5 / np.sqrt(0.5))


# ---------------------------------------------------------------------- words and refusals


def test_the_words_for_a_size_are_those_of_the_thresholds():
    for kind, limits in (("cohen_d", (0.2, 0.5, 0.8)), ("rank_biserial", (0.147, 0.33, 0.474))):
        for limit, word in zip(limits, ("small", "medium", "large"), strict=True):
            assert magnitude(limit, kind) == magnitude(-limit, kind) == word
            assert magnitude(np.nextafter(limit, 0.0), kind) == word  # at the threshold within rounding
            assert magnitude(limit - 1e-6, kind) != word
    assert magnitude(float("nan"), "cohen_d") == ""


def test_an_effect_is_said_in_words():
    a, b = [3.0, 4.0, 6.0, 5.0, 7.0], [2.0, 4.5, 3.0, 3.5, 4.0]
    found = effect_size(a, b, "cliff_delta")
    assert found.sentences()[0] == (
        "A value of a is above a value of b with probability 80 %, ties counted half (Cliff's delta 0.6000, large by "
        "convention)."
    )
    assert "contains zero: the direction of the effect is not shown" in found.sentences()[1]
    assert effect_size(b, a, "cohen_dz").sentences()[0] == (
        "On average, a is 1.085 standard deviations of the paired differences below b (Cohen's d_z -1.085, large by "
        "convention)."
    )
    assert found.title == "Cliff's delta of a against b, 5 pairs"
    assert found.to_frame().iloc[0].tolist()[:2] == ["cliff_delta", pytest.approx(0.6)]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"b": [1.0, 2.0]}, ArgumentError, "a and b must have the same length where they are paired, got 3 and 2"),
        ({"a": [1.0, np.nan, 2.0]}, DataError, "a must be finite, got 1 missing or infinite of 3 values"),
        ({"b": [1.0]}, DataError, "b must have at least two values, got 1"),
        ({"a": "abc"}, ArgumentError, "a must be a list or a one-dimensional array of numbers, got 'abc'"),
        ({"a": [[1.0, 2.0]]}, ArgumentError, "got 2 dimensions"),
        ({"a": [1.0, 2.0, 1e101]}, DesignError, "another unit"),
        ({"measure": "cohens_d"}, ArgumentError, "Did you mean 'cohen_d'"),
        ({"measure": "cohen_dz", "paired": False}, ArgumentError, "got paired=False. Use measure='cohen_d'"),
        ({"measure": "rank_biserial", "paired": False}, ArgumentError, "Use measure='cliff_delta'"),
        ({"measure": "akinshin_gamma", "n_draws": 20}, ArgumentError, "Take n_draws=40 at least"),
        ({"alpha": 95}, ArgumentError, r"Write 0\.95\?"),
        ({"gamma": 0.8}, ArgumentError,
         "gamma is an option of measure='probability', got gamma=0.8 with measure='cohen_d'"),
        ({"direction": "minimize"}, ArgumentError,
         "direction is an option of measure='probability' or 'stochastic_order'"),
        ({"b": None}, ArgumentError, "b must be given"),
        ({"a": pd.Series([1.0, 2.0, 3.0], index=list("xyz"))}, ArgumentError, "must have the same index"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(arguments, error, words):
    good = {"a": [1.0, 2.0, 3.0], "b": pd.Series([1.0, 0.0, 2.0]), "measure": "cohen_d"}
    with pytest.raises(error, match=words):
        lt.outperforming(**{**good, **arguments})


# ---------------------------------------------------------------------- of a mixed model


def test_standardised_differences_add_what_is_not_known_of_the_standard_deviation():
    plain = standardised([0.5, -0.5], [0.1, -0.9], [0.9, -0.1], 0.5)
    np.testing.assert_allclose(np.array(plain), [[1.0, -1.0], [0.2, -1.8], [1.8, -0.2]])
    # a difference without error leaves the interval of sigma, by the chi-square
    only = standardised(2.0, 2.0, 2.0, 1.0, 15)
    root = np.sqrt(stats.chi2.ppf([0.025, 0.975], 15) / 15)
    np.testing.assert_allclose(np.array(only), [2.0, *(2.0 * root)])
    turned = standardised(-2.0, -2.5, -1.6, 1.0, 15)
    there = standardised(2.0, 1.6, 2.5, 1.0, 15)
    assert np.array_equal(np.array(turned), [-there[0], -there[2], -there[1]])
    assert np.isnan(np.array(standardised(1.0, 0.5, 1.5, 0.0))).all()
    assert standardised(0.0, 0.0, 0.0, 0.0)[0] == 0.0
