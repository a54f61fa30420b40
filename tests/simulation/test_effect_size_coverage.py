"""Intervals of effect sizes hold the true value as often as the page says, where its assumptions hold and elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from effect_size_coverage import LEVEL, POPULATIONS, SHIFTS, SIZES, coverage
from scipy.stats import binomtest, t

from lmemtest.studies.ranking.effect_sizes import standardised

pytestmark = pytest.mark.slow

CELLS = [(n, shift) for n in SIZES for shift in SHIFTS]
TABLES = 2000


def p_value(held: float, n: int, share: float, side: str = "two-sided") -> float:
    return float(binomtest(round(held * n), n, share, alternative=side).pvalue)


@pytest.mark.parametrize(("kind", "paired"), [("cohen_dz", True), ("cohen_d", False), ("hedges_g", False)])
def test_intervals_of_standardised_means_are_exact_for_normal_scores(kind, paired):
    for n, shift in CELLS:
        assert p_value(*coverage(kind, "normal", n, shift, paired, TABLES, seed=2), LEVEL) > 1e-4


@pytest.mark.parametrize("population", ["normal", "discrete", "unequal"])
def test_those_of_pairs_in_pooled_units_hold_their_level_whatever_the_variances(population):
    for n, shift in CELLS:
        held = coverage("cohen_d", population, n, shift, True, TABLES, seed=2)
        assert p_value(*held, 0.945, "less") > 1e-4
        assert held[0] < 0.98


def test_standardised_means_of_skewed_scores_do_not_and_more_of_them_do_not_help():
    for n in (30, 100):
        assert p_value(*coverage("cohen_d", "skewed", n, 1.0, True, TABLES, seed=2), 0.80, "greater") > 0.5
        assert p_value(*coverage("cohen_d", "skewed", n, 0.0, True, TABLES, seed=2), 0.945, "less") > 1e-4


@pytest.mark.parametrize("population", list(POPULATIONS))
@pytest.mark.parametrize("paired", [True, False])
def test_those_of_cliff_hold_their_level_everywhere(population, paired):
    for n, shift in CELLS:
        assert p_value(*coverage("cliff_delta", population, n, shift, paired, TABLES, seed=2), 0.945, "less") > 1e-4


@pytest.mark.parametrize("population", list(POPULATIONS))
def test_those_of_rank_biserial_correlations_nearly_do(population):
    for n, shift in CELLS:
        assert p_value(*coverage("rank_biserial", population, n, shift, True, TABLES, seed=2), 0.935, "less") > 1e-4


@pytest.mark.parametrize("population", list(POPULATIONS))
@pytest.mark.parametrize("paired", [True, False])
def test_those_of_medians_need_ten_values(population, paired):
    for n, shift in CELLS:
        share = 0.93 if n >= 10 else 0.82
        assert p_value(*coverage("akinshin_gamma", population, n, shift, paired, 500, seed=2), share, "less") > 1e-4


@pytest.mark.parametrize("effect", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("df", [5, 15, 60])
def test_standardised_differences_hold_their_level_and_need_the_df(effect, df):
    """Standard error 0.2, its variance that of the residual; measured 95 % to 98 %, without `sd_df` 39 % to 95 %."""
    n = 4000
    rng = np.random.default_rng(3)
    sd = np.sqrt(rng.chisquare(df, n) / df)
    difference = effect + 0.2 * rng.normal(size=n)
    half = 0.2 * sd * t.isf(0.025, df)
    shares = []
    for known in (df, np.inf):
        found = standardised(difference, difference - half, difference + half, sd, known)
        shares.append(float(((found.ci_low <= effect) & (effect <= found.ci_high)).mean()))
    assert p_value(shares[0], n, 0.95, "less") > 1e-4
    assert effect < 1.0 or p_value(shares[1], n, 0.95, "less") < 1e-4
