"""Finite-sample null of the likelihood ratio for one variance: closed forms against simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lmemtest.lmm.hypotheses.null_distributions import exact_null
from lmemtest.lmm.model import fit_lmm


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
