"""Intervals of the noncentrality of a t ratio: R's quadrature, the ends of the range, and the sign."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from lmemtest.lmm.distributions.student import t_noncentrality_interval


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
