"""The largest of joint t statistics, and the noncentrality of one: closed forms, tables, mvtnorm, R, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import largest_t, loadings
from lmemtest.lmm.distributions.student import t_noncentrality_interval, t_quantile, two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey

C = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])


def pair_correlation(variances):
    k = len(variances)
    i, j = np.triu_indices(k, k=1)
    L = np.eye(k)[i] - np.eye(k)[j]
    V = L @ np.diag(variances) @ L.T
    sd = np.sqrt(np.diag(V))
    return V / np.outer(sd, sd)


def factor_correlation(b):
    R = np.outer(b, b)
    np.fill_diagonal(R, 1.0)
    return R


UNBALANCED = factor_correlation([0.3, 0.5, 0.7, 0.8, 0.2])


# ---------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("df", [1.0, 4.5, 60.0, np.inf])
def test_one_statistic_is_a_t_test(df):
    for R in ([[1.0]], [[1.0, -1.0], [-1.0, 1.0]]):
        two = largest_t(R)
        np.testing.assert_allclose(two.sf(C, df), two_sided_p(C, df), rtol=1e-12)
        assert two.method == "exact"
    signed = np.r_[-C, C]
    one = np.where(signed > 0, two_sided_p(signed, df) / 2, 1 - two_sided_p(signed, df) / 2)
    np.testing.assert_allclose(largest_t([[1.0]], alternative="greater").sf(signed, df), one, rtol=1e-12)
    opposite = largest_t([[1.0, -1.0], [-1.0, 1.0]], alternative="greater")  # the larger of T and -T is |T|
    np.testing.assert_allclose(opposite.sf(C, df), two_sided_p(C, df), rtol=1e-12)


@pytest.mark.parametrize("m", [2, 3, 7])
def test_independent_normals_have_sidak_probabilities(m):
    single = two_sided_p(C, np.inf)
    np.testing.assert_allclose(largest_t(np.eye(m)).sf(C, np.inf), -np.expm1(m * np.log1p(-single)), rtol=1e-10)
    c = np.r_[-C, 0.0, C]
    below = 1 - np.where(c > 0, two_sided_p(c, np.inf) / 2, 1 - two_sided_p(c, np.inf) / 2)
    got = largest_t(np.eye(m), alternative="greater").sf(c, np.inf)
    # one-sided in two dimensions the integrand is smooth but not analytic where the cosine is zero
    np.testing.assert_allclose(got, 1 - below**m, rtol=0, atol=2e-9)


def test_equal_statistics_count_once():
    R = np.kron(pair_correlation([1.0, 2.0, 5.0]), np.ones((2, 2)))
    once = largest_t(pair_correlation([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(largest_t(R).sf(C, 9.0), once.sf(C, 9.0), rtol=1e-10)


@pytest.mark.parametrize("df", [3.3, 20.0, np.inf])
def test_three_equally_precise_means_match_the_studentized_range_exactly(df):
    joint = largest_t(pair_correlation(np.ones(3)))
    assert joint.method == "exact"
    np.testing.assert_allclose(joint.sf(C, df), ptukey(np.sqrt(2) * C, 3, df, upper=True), rtol=1e-11)


@pytest.mark.daily(1)
@pytest.mark.parametrize("k", [4, 8, 24])
def test_sampled_directions_match_tukey_to_the_error_they_report(k):
    R = pair_correlation(np.ones(k))
    c = np.array([1.5, 2.0, 3.0, 4.0, 6.0])
    joint, auto = largest_t(R, method="quasi-monte-carlo", rng=11), largest_t(R)
    assert (auto.method, auto.rank, auto.n_tests) == ("quadrature", k - 1, k * (k - 1) // 2)
    for df in (5.0, 40.0, np.inf):
        exact, error = ptukey(np.sqrt(2) * c, k, df, upper=True), joint.error(c, df)
        assert np.all(np.abs(joint.sf(c, df) - exact) <= 1.5 * error + 1e-9 * exact)
        assert np.all(error <= 0.01 * exact)  # relative, at 1e-8 as at 0.5
        np.testing.assert_allclose(auto.sf(c, df), exact, rtol=1e-12)


@pytest.mark.slow
def test_reported_errors_hold_in_most_repetitions():
    exact = ptukey(np.sqrt(2) * 2.4, 5, 15.0, upper=True)
    R = pair_correlation(np.ones(5))
    joints = [largest_t(R, method="quasi-monte-carlo", rng=seed) for seed in range(25)]
    inside = [abs(j.sf(2.4, 15.0) - exact) <= j.error(2.4, 15.0) for j in joints]
    assert sum(inside) >= 22  # 99 % each: fewer has probability 1e-4


# ---------------------------------------------------------------------- published tables

# Dunnett (1955, 1964), 5 %, number of comparisons 1 to 5
TWO_SIDED = {
    10: [2.23, 2.57, 2.76, 2.89, 2.99],
    20: [2.09, 2.38, 2.54, 2.65, 2.73],
    np.inf: [1.96, 2.21, 2.35, 2.44, 2.51],
}
ONE_SIDED = {
    10: [1.81, 2.15, 2.34, 2.47, 2.56],
    20: [1.72, 2.03, 2.19, 2.30, 2.39],
    np.inf: [1.64, 1.92, 2.06, 2.16, 2.23],
}


@pytest.mark.parametrize(("table", "alternative"), [(TWO_SIDED, "two-sided"), (ONE_SIDED, "greater")])
def test_critical_values_are_those_of_dunnett(table, alternative):
    for df, row in table.items():
        for m, want in enumerate(row, start=1):
            R = 0.5 + 0.5 * np.eye(m)
            assert largest_t(R, alternative=alternative).isf(0.05, df) == pytest.approx(want, abs=0.0051)


# ---------------------------------------------------------------------- R


def families(reference):
    for family in reference("simultaneous")["families"]:
        yield family["name"], np.array(family["correlation"]), family["probabilities"]


@pytest.mark.parametrize("method", ["auto", "quasi-monte-carlo"])
def test_probabilities_match_mvtnorm(reference, method):
    seen = 0
    for name, R, rows in families(reference):
        for alternative in ("two-sided", "greater"):
            joint = largest_t(R, alternative=alternative, method=method, rng=5)
            part = [r for r in rows if r["alternative"] == alternative]
            c, df, want, error = (np.array([float(r[key]) for r in part]) for key in ("c", "df", "p_upper", "error"))
            # in the far tail mvtnorm is off by more than it reports: 7.7e-6 for 1.01e-5, which is below three times
            # a single tail of 3.4e-6 by 1e-7
            tolerance = 2 * error + 1.5 * joint.error(c, df) + 4e-6
            assert np.all(np.abs(joint.sf(c, df) - want) <= tolerance), name
            seen += len(part)
    assert seen > 150


# ---------------------------------------------------------------------- structure


def test_one_factor_quadrature_and_sampled_directions_agree_far_into_the_tail():
    for alternative in ("two-sided", "greater"):
        exact = largest_t(UNBALANCED, alternative=alternative)
        sampled = largest_t(UNBALANCED, alternative=alternative, method="quasi-monte-carlo", rng=2)
        assert (exact.method, sampled.method) == ("quadrature", "quasi-Monte-Carlo")
        for df in (4.0, 30.0, np.inf):
            np.testing.assert_allclose(sampled.sf(C[1:], df), exact.sf(C[1:], df), rtol=4e-3)
            np.testing.assert_allclose(sampled.sf(-C, df), exact.sf(-C, df), atol=2e-3)


def test_loadings_are_found_with_their_signs_or_refused():
    b = np.array([0.3, -0.5, 0.7, 0.2])
    np.testing.assert_allclose(
        np.outer(loadings(factor_correlation(b)), loadings(factor_correlation(b))), np.outer(b, b)
    )
    np.testing.assert_array_equal(loadings(np.eye(4)), np.zeros(4))
    assert loadings(pair_correlation([1.0, 2.0, 3.0, 4.0])) is None
    assert loadings(factor_correlation([0.9999, 0.9, 0.5])) is None  # left to sampled directions


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("R", [UNBALANCED, pair_correlation([1.0, 2.0, 0.5, 1.5]), pair_correlation([1.0, 2.0, 5.0])])
def test_critical_values_invert_probabilities(R, alternative):
    joint = largest_t(R, alternative=alternative, rng=3)
    df = np.array([2.5, 10.0, 300.0, np.inf])
    for alpha in (0.3, 0.05, 1e-6):
        critical = joint.isf(alpha, df)
        np.testing.assert_allclose(joint.sf(critical, df), alpha, rtol=1e-9)
        sides = 2 if alternative == "two-sided" else 1
        assert np.all(critical > t_quantile(alpha / sides, df))
        assert np.all(critical < t_quantile(alpha / sides / len(R), df))


def test_order_and_signs_do_not_matter():
    R = pair_correlation([1.0, 2.0, 0.5, 1.5])
    order = np.random.default_rng(1).permutation(len(R))
    flip = np.where(np.arange(len(R)) % 2, -1.0, 1.0)
    base = largest_t(R, rng=1)
    for other in (R[np.ix_(order, order)], R * np.outer(flip, flip)):
        joint = largest_t(other, rng=2)
        tolerance = 1.5 * (base.error(C, 8.0) + joint.error(C, 8.0))
        assert np.all(np.abs(joint.sf(C, 8.0) - base.sf(C, 8.0)) <= tolerance + 1e-12)


def test_probabilities_stay_between_one_test_and_sidak():
    R = pair_correlation(np.linspace(1, 3, 7))
    joint = largest_t(R, rng=4)
    c = np.linspace(0, 40, 200)
    for df in (1.5, 30.0, np.inf):
        p = joint.sf(c, df)
        single = two_sided_p(c, df)
        with np.errstate(divide="ignore"):
            assert np.all((p >= single) & (p <= -np.expm1(len(R) * np.log1p(-single)) + 1e-15))
        assert np.all(np.diff(p) <= 1e-15)


def test_the_seed_decides_and_only_where_something_is_sampled():
    R = pair_correlation([1.0, 2.0, 0.5, 1.5])
    assert largest_t(R, rng=1).sf(2.0, 9.0) == largest_t(R, rng=1).sf(2.0, 9.0)
    assert largest_t(R, rng=1).sf(2.0, 9.0) != largest_t(R, rng=2).sf(2.0, 9.0)
    assert largest_t(UNBALANCED, rng=1).sf(2.0, 9.0) == largest_t(UNBALANCED, rng=2).sf(2.0, 9.0)
    assert "quasi-Monte-Carlo with 98,304 points" in largest_t(R, rng=1).note([2.0], 9.0)
    assert "error below 1e-8" in largest_t(UNBALANCED).note([2.0], 9.0)


def test_missing_values_pass_through():
    joint = largest_t(UNBALANCED)
    assert np.isnan(joint.sf([np.nan, 1.0], [3.0, np.nan])).all()
    assert np.isnan(joint.isf(0.05, [np.nan])).all()
    assert joint.sf(0.0, 5.0) == 1.0


def test_simulated_maxima_exceed_the_critical_value_as_often_as_they_should():
    rng = np.random.default_rng(8)
    R = pair_correlation([1.0, 4.0, 0.5, 2.0, 2.0])
    values, vectors = np.linalg.eigh(R)
    z = rng.normal(size=(40_000, len(R))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    t = np.abs(z).max(axis=1) / np.sqrt(rng.chisquare(7, 40_000) / 7)
    rate = np.mean(t > largest_t(R, rng=1).isf(0.05, 7.0))
    assert abs(rate - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 40_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: largest_t(np.ones((2, 3))), r"correlation must be a square matrix, got an array of shape \(2, 3\)\."),
        (lambda: largest_t([[1, 0.5], [0.4, 1]]), "correlation must be finite and symmetric with ones on its diagonal"),
        (lambda: largest_t([[1, 2.0], [2.0, 1]]), "correlation must not have negative eigenvalues, got -1"),
        (lambda: largest_t(np.eye(2), alternative="less"), "alternative must be 'two-sided' or 'greater', got 'less'"),
        (lambda: largest_t(np.eye(2)).isf(1.0, 3), "alpha must be a number between 0 and 1"),
        (lambda: largest_t(np.eye(2), alternative="greater").isf(0.5, 3), "alpha must be below 0.5 for one-sided"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


# ---------------------------------------------------------------------- the interval of the noncentrality of a t ratio


def test_limits_are_those_of_adaptive_quadrature_in_r(reference):
    rows = reference("effect_sizes")["noncentralities"]
    for level in (0.95, 0.8):
        t, df, low, high = np.array(
            [[row[name] for name in ("t", "df", "ci_low", "ci_high")] for row in rows if row["level"] == level]
        ).T
        found = t_noncentrality_interval(t, df, level)
        np.testing.assert_allclose(found, [low, high], rtol=1e-10, atol=1e-11)
    by_pt = [(row["t"], row["df"], row["level"], row["r_low"]) for row in rows if row["r_low"] is not None]
    for t, df, level, low in by_pt:
        assert t_noncentrality_interval(t, df, level)[0] == pytest.approx(low, abs=1e-9)  # uniroot of pt(ncp = )


def test_a_large_ratio_is_a_chi_square_and_a_large_df_a_normal():
    """T = (Z + nc) / S: nc / T is S where T is large, and nc - T is -Z where S is one."""
    for df in (1.0, 2.0, 9.0):
        low, high = t_noncentrality_interval([1e9, -1e9], df)
        root = np.sqrt(special.chdtri(df, [0.975, 0.025]) / df)
        np.testing.assert_allclose(low / 1e9, [root[0], -root[1]], rtol=1e-8)
        np.testing.assert_allclose(high / 1e9, [root[1], -root[0]], rtol=1e-8)
    np.testing.assert_allclose(t_noncentrality_interval(1.5, 1e6), [1.5 - 1.959963985, 1.5 + 1.959963985], atol=3e-6)


def test_the_interval_of_the_negative_ratio_is_the_negative_interval():
    t = np.array([0.0, 1e-9, 0.3, 2.0, 17.0, 1e6])
    low, high = t_noncentrality_interval(t, 5)
    turned = t_noncentrality_interval(-t, 5)
    assert np.array_equal(turned, [-high, -low])
    assert low[0] == -high[0]


def test_what_is_not_finite_has_no_interval():
    low, high = t_noncentrality_interval([np.nan, np.inf, 1.0, 1.0], [3, 3, 3, np.inf])
    assert np.isnan(low).tolist() == [True, True, False, True]
    assert np.isnan(high).tolist() == [True, True, False, True]
