"""Null distributions of likelihood ratios, exact and by the bootstrap: closed forms, cells, zeros and failures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from study import make_scores, table_of_scores

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.cells import CellMap, compress, regroup
from lmemtest.lmm.hypotheses.null_distributions import exact_null, share_as_large, simulator
from lmemtest.lmm.model import fit_lmm

# --------------------------------------------------------------------------------------------------------------- exact


def one_way(sizes, reml=True):
    sizes = np.asarray(sizes, dtype=float)
    k = len(sizes)
    return exact_null(np.ones((k, 1)), np.ones(k), np.arange(k), sizes, n_obs=int(sizes.sum()), reml=reml)


def test_balanced_six_by_five_matches_published_values():
    law = one_way([5] * 6)
    # simulations with 10,000 draws give 0.5605 and 2.35; these are the exact values
    assert law.probability_of_zero() == pytest.approx(stats.f.cdf(1.0, 5, 24), rel=1e-12)
    assert law.probability_of_zero() == pytest.approx(0.5605, abs=0.01)
    assert law.p_value(2.35, 0, np.random.default_rng(0))[0] == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("reml", [True, False])
def test_balanced_closed_form_matches_the_simulation_of_the_general_form(reml):
    law = one_way([5] * 6, reml)
    draws = law.simulate(100_000, np.random.default_rng(2))
    assert np.mean(draws < 1e-9) == pytest.approx(law.probability_of_zero(), abs=0.007)
    for statistic in (0.1, 0.5, 1.0, 2.0, 4.0):
        exact, error = law.p_value(statistic, 0, np.random.default_rng(0))
        assert error == 0.0
        assert np.mean(draws >= statistic) == pytest.approx(exact, abs=5 * np.sqrt(exact / 100_000))


def test_eigenvalues_match_dense_algebra():
    rng = np.random.default_rng(4)
    n, k = 40, 7
    codes, x, w = rng.integers(0, k, n), rng.normal(size=n), rng.uniform(0.5, 3, n)
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    law = exact_null(X, x, codes, w, n_obs=n, reml=True)
    Z = np.sqrt(w)[:, None] * x[:, None] * np.eye(k)[codes]
    Xw = np.sqrt(w)[:, None] * X
    P0 = np.eye(n) - Xw @ np.linalg.solve(Xw.T @ Xw, Xw.T)
    want = np.linalg.eigvalsh(Z.T @ P0 @ Z)
    np.testing.assert_allclose(np.repeat(law.mu, law.multiplicity), want[want > 1e-9], rtol=1e-8)
    assert law.residual_df == n - 2 - len(want[want > 1e-9])


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[5] * 6, [2, 3, 9, 4, 12]])
def test_p_values_of_real_fits_are_uniform_above_the_mass_at_zero(sizes):
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"g": np.repeat([f"g{i}" for i in range(len(sizes))], sizes)})
    law = one_way(sizes)
    draws = np.sort(law.simulate(200_000, rng))
    observed = []
    for _ in range(800):
        table["y"] = rng.normal(size=len(table))
        gap = fit_lmm("y ~ 1 + (1|g)", table).llf - fit_lmm("y ~ 1", table).llf
        observed.append(max(0.0, 2 * gap))
    for level in (0.05, 0.1, 0.2):
        cut = np.quantile(draws, 1 - level)
        rejected = int(np.sum(np.array(observed) > cut))
        low, high = stats.binom.ppf([0.001, 0.999], 800, level)
        assert low <= rejected <= high


# ----------------------------------------------------------------------------------------------------------- simulated


def blocks(levels=6, seed=0, treatments=3, sd=1.0):
    counts, start = {"block": levels, "tool": treatments}, 0.6 * np.arange(treatments)
    y = make_scores(np.random.default_rng(seed), counts, {"block": sd}, start=start)
    return table_of_scores(y, "block tool", "y", tool=[f"t{i}" for i in range(treatments)])


def test_a_single_variance_has_its_exact_null_distribution():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"g": np.repeat(np.arange(6), 5), "y": rng.normal(size=30) + np.repeat(rng.normal(size=6), 5)})
    null, alternative = lt.fit_lmm("y ~ 1", table), lt.fit_lmm("y ~ 1 + (1|g)", table)
    exact = lt.glrt(null, alternative, reference="exact")
    got = lt.glrt(null, alternative, reference="bootstrap", n_draws=999, rng=1)
    assert got.statistic == exact.statistic
    assert abs(got.p_value - exact.p_value) < 4 * got.p_value_error + 1e-3
    zeros = int((got.draws < 1e-6).sum())
    assert stats.binomtest(zeros, 999, 0.5611).pvalue > 1e-4  # see above


@pytest.mark.slow
def test_a_fixed_effect_in_balanced_blocks_has_about_the_p_value_of_the_f_test():
    table = blocks()
    null, alternative = (lt.fit_lmm(f"y ~ {fixed} + (1|block)", table) for fixed in ("1", "tool"))
    y = table.pivot(index="block", columns="tool", values="y").to_numpy()
    effects, means = y.mean(axis=0) - y.mean(), y.mean(axis=1, keepdims=True)
    residual = y - means - effects
    f = (6 * effects @ effects / 2) / ((residual**2).sum() / 10)
    want = stats.f.sf(f, 2, 10)
    got = lt.glrt(null, alternative, reference="bootstrap", n_draws=999, rng=1)
    assert abs(got.p_value - want) < 4 * got.p_value_error
    assert lt.glrt(null, alternative).p_value < 0.8 * want  # chi-squared is too sure of itself with six blocks


def test_the_result_keeps_all_draws_and_says_what_was_done():
    table = blocks()
    got = lt.glrt(*(lt.fit_lmm(f"y ~ tool{r}", table) for r in ("", " + (1|block)")), "bootstrap", n_draws=50, rng=1)
    assert (got.draws.shape, got.failed, got.components, got.method) == ((50,), 0, (), "REML")
    zeros = int((got.draws <= 1e-6).sum())
    assert zeros > 5
    assert f"50 tables were drawn from the null and both models fitted to each; {zeros} statistics are 0." in got.notes
    assert "parametric bootstrap (Monte-Carlo error" in got.summary()
    assert got.to_frame().loc[0, "reference"] == "bootstrap"


def test_a_statistic_of_zero_has_p_one():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": np.tile(np.arange(5), 4), "y": np.repeat(rng.normal(size=4), 5)})
    table["y"] += np.tile([0.01, -0.01, 0.0, 0.02, -0.02], 4) * np.repeat([1, -1, 1, -1], 5)
    got = lt.glrt(lt.fit_lmm("y ~ 1", table), lt.fit_lmm("y ~ 1 + (1|g)", table), "bootstrap", n_draws=19, rng=1)
    assert got.statistic == approx(0.0, abs=1e-8)
    assert got.p_value == 1.0


def test_failed_draws_count_as_larger_than_the_observed_statistic():
    assert share_as_large(np.array([0.0, 1.0, np.nan, 3.0]), 2.0, 1e-6)[0] == (1 + 2) / 5


def test_no_draws_is_an_error():
    table = blocks()
    fits = [lt.fit_lmm(f"y ~ {fixed} + (1|block)", table) for fixed in ("1", "tool")]
    with pytest.raises(ArgumentError, match=r"n_draws must be a whole number of at least 1, got 0\."):
        lt.glrt(*fits, "bootstrap", n_draws=0)


# ---------------------------------------------------------------------- cells


@pytest.fixture
def table():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"a": rng.choice(list("pqr"), 200), "b": rng.integers(4, size=200), "y": rng.normal(size=200)})
    return frame.assign(w=rng.choice([0.5, 2.0], 200), a=frame["a"].astype("category"))


@pytest.mark.parametrize("names", [["a"], ["b"], []])
@pytest.mark.parametrize("weights", [None, "w"])
def test_cells_become_coarser_without_their_rows(table, names, weights):
    fine = compress(table, ["a", "b"], score="y", weights=weights)
    want = compress(table, names, score="y", weights=weights)
    for got in (CellMap.of(fine, want).aggregate(fine), regroup(fine, names)):
        pd.testing.assert_frame_equal(got.frame, want.frame, check_column_type=bool(names))
        for part in ("n", "weight", "mean", "ss"):
            np.testing.assert_allclose(getattr(got, part), getattr(want, part), rtol=1e-10)


def test_a_model_is_drawn_on_finer_cells_with_its_own_mean_and_variance(table):
    fit = lt.fit_lmm("y ~ a + (1|b)", table)
    fine = compress(table, ["a", "b", "w"], score="y")
    draw = simulator(fit, fine)
    rng = np.random.default_rng(1)
    means = np.array([draw(rng).mean for _ in range(2000)])
    want_mean = fit.estimate(fit.design.rows(fine.frame))
    between, within = fit.covariances[0][0, 0], fit.scale / fine.n
    assert np.abs(means.mean(axis=0) - want_mean).max() < 5 * np.sqrt((between + within).max() / 2000)
    np.testing.assert_allclose(means.var(axis=0), between + within, rtol=5 * np.sqrt(2 / 2000))


def test_both_models_see_the_same_table_when_the_alternative_has_more_columns():
    table = blocks(levels=12)
    null, alternative = lt.fit_lmm("y ~ 1", table, reml=False), lt.fit_lmm("y ~ tool + (1|block)", table, reml=False)
    assert len(null.cells.n) == 1
    got = lt.glrt(null, alternative, "bootstrap", n_draws=199, rng=1)
    assert got.failed == 0
    # without blocks under the null: 2 fixed effects and half a variance
    assert stats.kstest(got.draws[got.draws > 0], stats.chi2(2.5).cdf).statistic < 0.15
