"""Studentized range and adjustments: closed forms, published quadratures, R, scipy, and duality."""

import numpy as np
import pytest
from pytest import approx
from refusals import refuses
from scipy import special, stats

from lmemtest.core.options import ADJUSTMENTS
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey
from lmemtest.lmm.means.adjust import adjust, critical_values, fitting_adjustment, raw_levels

DFS = [0.5, 1.0, 1.5, 2.0, 3.3, 7.0, 10.0, 20.0, 55.5, 300.0, 1e4, 1e7, np.inf]


@pytest.mark.parametrize("df", DFS)
def test_two_means_are_a_t_test_with_relative_accuracy_far_into_the_tail(df):
    q = np.array([1e-3, 0.1, 0.5, 1, 2, 4, 8, 12, 20, 40])
    tail = two_sided_p(q / np.sqrt(2), df)
    shown = tail > 1e-290
    # scipy's own t tail is good to about 1e-12 at df of millions
    np.testing.assert_allclose(ptukey(q, 2, df, upper=True)[shown], tail[shown], rtol=5e-11)
    np.testing.assert_allclose(ptukey(q, 2, df), 1 - tail, atol=1e-13)


@pytest.mark.parametrize("q", [0.3, 1.0, 2.5, 4.0])
def test_the_range_of_three_normals_matches_adaptive_quadrature(q):
    from scipy.integrate import quad

    def density(z):
        return 3 * stats.norm.pdf(z) * (special.ndtr(z) - special.ndtr(z - q)) ** 2

    assert ptukey(q, 3, np.inf) == pytest.approx(quad(density, -9, 9 + q, epsabs=1e-14)[0], abs=1e-13)


def test_probabilities_match_the_reference_quadrature(reference):
    rows = reference("ptukey")["probabilities"]
    q, k, df = (np.array([float(r[name]) for r in rows]) for name in ("q", "k", "df"))
    np.testing.assert_allclose(ptukey(q, k, df), [r["p"] for r in rows], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ptukey(q, k, df, upper=True), [r["p_upper"] for r in rows], rtol=0, atol=1e-10)


def test_probabilities_match_r_to_the_error_that_r_has(reference):
    rows = [r for r in reference("ptukey")["probabilities"] if r["r_ptukey"] is not None]
    q, k, df, p, r_p = (np.array([float(r[n]) for r in rows]) for n in ("q", "k", "df", "p", "r_ptukey"))
    assert np.all(np.abs(ptukey(q, k, df) - r_p) <= np.abs(p - r_p) + 1e-10)
    accurate = np.abs(p - r_p) < 1e-9
    assert accurate.sum() > 100
    np.testing.assert_allclose(ptukey(q, k, df)[accurate], r_p[accurate], rtol=0, atol=1e-8)


def test_quantiles_match_the_reference_quadrature(reference):
    rows = reference("ptukey")["quantiles"]
    p, k, df, q = (np.array([float(r[name]) for r in rows]) for name in ("p", "k", "df", "q"))
    np.testing.assert_allclose(qtukey(p, k, df), q, rtol=1e-8)


@pytest.mark.parametrize(("q", "k", "df"), [(15, 60, 2.0), (3.5, 10, 3.3), (8, 24, 12.5), (6, 40, 150.0)])
def test_survival_matches_scipy(q, k, df):
    assert ptukey(q, k, df, upper=True) == pytest.approx(stats.studentized_range.sf(q, k, df), rel=1e-9)


def test_quantile_inverts_the_upper_tail_over_the_whole_domain():
    p, k, df = (
        a.ravel()
        for a in np.meshgrid([1e-12, 1e-6, 1e-3, 0.01, 0.05, 0.3, 0.9, 0.999], [2, 3, 10, 60, 300], DFS, indexing="ij")
    )
    q = qtukey(p, k, df, upper=True)
    np.testing.assert_allclose(ptukey(q, k, df, upper=True), p, rtol=1e-10)


def test_upper_tail_is_positive_and_falls_at_twenty_standard_errors():
    tail = ptukey(np.linspace(1.5, 50, 400), 24, 1000.0, upper=True)
    assert np.all(tail > 0)
    assert np.all(np.diff(tail) < 0)


def test_arguments_broadcast_and_edges_are_exact():
    assert ptukey([-1.0, 0.0, np.inf, np.nan], 3, 10)[:3].tolist() == [0.0, 0.0, 1.0]
    assert np.isnan(ptukey(np.nan, 3, 10))
    assert qtukey([0.0, 1.0], 3, 10).tolist() == [0.0, np.inf]
    assert qtukey([0.0, 1.0], 3, 10, upper=True).tolist() == [np.inf, 0.0]
    assert ptukey(np.ones((2, 1)), [[3, 4, 5]], 7).shape == (2, 3)
    assert np.isnan(qtukey(0.95, 3, np.nan))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ptukey(1, 1, 10), r"k, the number of means compared, must be at least 2, got 1\."),
        (lambda: ptukey(1, 3, 0), r"df must be positive, got 0\."),
        (lambda: qtukey(1.5, 3, 9), r"p must be a probability in \[0, 1\], got 1\.5\."),
    ],
)
def test_bad_arguments_are_named(call, message):
    refuses(ArgumentError, message, call)


# ---------------------------------------------------------------------- adjustments


def test_adjusted_p_values_match_r_p_adjust():
    t = t_quantile(np.array([0.01, 0.02, 0.03, 0.04, 0.5]) / 2, 30.0)
    assert adjust(t, 30.0, method="none")[0] == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.5])
    assert adjust(t, 30.0, method="holm")[0] == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.5])
    assert adjust(t, 30.0, method="bonferroni")[0] == pytest.approx([0.05, 0.1, 0.15, 0.2, 1.0])
    assert adjust(t, 30.0, method="fdr")[0] == pytest.approx([0.05, 0.05, 0.05, 0.05, 0.5])
    assert adjust(t, 30.0, method="sidak")[0] == pytest.approx(1 - (1 - np.array([0.01, 0.02, 0.03, 0.04, 0.5])) ** 5)


@pytest.mark.parametrize("method", ["tukey", "sidak", "bonferroni", "none"])
@pytest.mark.parametrize("df", [3.7, 40.0, np.inf])
def test_intervals_exclude_zero_exactly_when_p_is_below_alpha(method, df):
    critical = critical_values(np.array([df]), method=method, n_tests=6, n_means=4, alpha=0.1)
    for factor, p_side in ((1 + 1e-9, -1), (1 - 1e-9, 1)):
        t = np.append(critical * factor, np.zeros(5))
        p = adjust(t, df, method=method, n_means=4)[0][0]
        assert np.sign(p - 0.1) == p_side


def test_untestable_rows_stay_nan_and_count_in_the_family():
    p, _ = adjust([2.0, np.nan, 3.0], [20.0, np.nan, 20.0], method="bonferroni")
    assert np.isnan(p[1])
    assert p[0] == pytest.approx(3 * float(two_sided_p(2.0, 20.0)))


@pytest.mark.parametrize("method", [m for m in ADJUSTMENTS if m != "mvt"])
def test_intervals_and_p_values_are_one_test_in_every_family(method):
    rng = np.random.default_rng(3)
    for _ in range(60):
        df = np.exp(rng.normal(2.5, 0.5, 10))
        t = rng.normal(scale=rng.choice([1.0, 2.0, 4.0]), size=10)
        t[rng.random(10) < 0.1] = np.nan
        t[7] = t[2] if rng.random() < 0.3 else t[7]  # two copies of an algorithm
        for alpha in (0.2, 0.05):
            p, critical = adjust(t, df, method=method, n_means=5, alpha=alpha)
            assert ((np.abs(t) > critical) == (p < alpha))[~np.isnan(t)].all()


def test_levels_of_the_steps():
    p = np.array([0.30, 0.001, 0.02, 0.011])  # after 0.001 < .05/4 and 0.011 < .05/3: 0.02 < .05/2, 0.30 at .05
    assert raw_levels(p, method="holm", n_tests=4, alpha=0.05) == approx([0.05, 0.0125, 0.025, 0.05 / 3])
    assert raw_levels(p, method="holm", n_tests=5, alpha=0.05)[[0, 2]] == approx([0.05 / 3, 0.05 / 3])  # 0.02 ends it
    assert raw_levels(p, method="fdr", n_tests=4, alpha=0.05) == approx([0.0375] * 4)  # three of four are selected
    assert raw_levels(np.array([0.9, 0.4]), method="fdr", n_tests=2, alpha=0.05) == approx([0.025] * 2)
    assert raw_levels(None, method="holm", n_tests=4, alpha=0.05) == approx(0.0125)
    range_of = 2 * stats.norm.sf(float(qtukey(0.95, 4, np.inf)) / np.sqrt(2))
    found = raw_levels(np.array([1e-9, 1e-8, 0.9, 0.8, 0.7, 0.6]), method="stepdown", n_tests=6, n_means=4, alpha=0.05)
    assert found == approx([range_of, *[0.05 / 3] * 5])


def test_copies_are_tested_at_one_level_whatever_rounding_does_to_them():
    p = np.array([0.001, 0.001 * (1 + 1e-12), 0.5])
    first = raw_levels(p, method="holm", n_tests=3, alpha=0.05)
    assert first[0] == first[1] == approx(0.05 / 3)
    assert np.array_equal(first, raw_levels(p[[1, 0, 2]], method="holm", n_tests=3, alpha=0.05))


def test_tukey_without_a_set_of_means_becomes_sidak_with_a_note():
    method, notes = fitting_adjustment("tukey", None)
    assert method == "sidak"
    assert "Šidák adjustment was used instead" in notes[0]
    by_tukey, by_sidak = (adjust([1.0, 2.0], 10.0, method=name) for name in ("tukey", "sidak"))
    assert np.array_equal(by_tukey, by_sidak)


def test_unknown_adjustment_lists_the_options():
    refuses(ArgumentError, "adjust must be 'tukey' or 'stepdown' or 'singlestep'", adjust, [1.0], 10.0, method="tuckey")
    assert "dunnett" not in ADJUSTMENTS  # for comparisons with a control only


@pytest.mark.parametrize("k", [3, 60, 200])
@pytest.mark.parametrize(("low", "high"), [(1.5, 1e9), (40.0, 45.0), (1e3, 1e3 * (1 + 1e-13))])
def test_quantiles_at_many_degrees_of_freedom_are_those_of_each(k: int, low: float, high: float) -> None:
    df = np.random.default_rng(k).permutation(np.geomspace(low, high, 300))
    got = critical_values(df.reshape(20, 15), method="tukey", n_tests=k, n_means=k, alpha=0.05)
    few = np.arange(0, 300, 23)
    want = qtukey(0.05, k, df[few], upper=True) / np.sqrt(2.0)
    assert got.ravel()[few] == approx(want, rel=2e-12)


def test_many_degrees_of_freedom_cost_few_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmemtest.lmm.means import adjust as module

    asked = []

    def counted(p: float, k: int, df: np.ndarray, **how: bool) -> np.ndarray:
        asked.append(np.size(df))
        return qtukey(p, k, df, **how)

    monkeypatch.setattr(module, "qtukey", counted)
    df = np.linspace(30.0, 300.0, 19_900)
    df[::7] = np.nan
    got = critical_values(df, method="tukey", n_tests=19_900, n_means=200, alpha=0.05)
    assert sum(asked) < 200
    assert np.array_equal(np.isnan(got), np.isnan(df))
    assert (np.diff(got[~np.isnan(got)]) < 0).all()
