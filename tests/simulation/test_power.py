"""Simulated studies against the closed form, within Monte-Carlo error, and where they differ by how much."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from scipy import stats

from lmemtest.bench.power.draw import StudyDesign, compare, compare_by_engine, study_draw
from lmemtest.bench.power.power import power
from lmemtest.bench.power.variance_components import VarianceComponents

# Two-sided probability of a miss per design; 60 designs or so are compared here.
LEVEL = 1e-5


def assert_within_error(found, n_draws):
    for row in found.to_frame().itertuples():
        assert row.n_failed == 0
        count = round(row.power * n_draws)
        assert stats.binomtest(count, n_draws, row.exact).pvalue > LEVEL, row
        if row.effect == 0 or count < 30:
            continue
        assert stats.binomtest(round(row.type_s * count), count, row.exact_type_s).pvalue > LEVEL, row
        # significant estimates scatter by less than all of them, whose sd over the effect is this
        sd = np.sqrt(found.components.of_difference(row.n_seeds) / row.n_benchmarks) / row.effect
        assert row.type_m == approx(row.exact_type_m, abs=4.5 * sd / np.sqrt(count)), row


@pytest.mark.parametrize("effect", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("k", "adjust"), [(2, "tukey"), (4, "tukey"), (3, "sidak"), (3, "bonferroni"), (3, "none")])
def test_the_test_on_means_has_the_power_of_the_closed_form(k, adjust, effect):
    plan = VarianceComponents(interaction_sd=0.5, residual_sd=1.0, seed_sd=0.7)
    found = power(
        plan,
        effect=effect,
        n_benchmarks=[3, 12],
        n_seeds=[1, 4],
        n_algorithms=k,
        adjust=adjust,
        test="means",
        n_draws=4000,
        rng=11,
    )
    assert_within_error(found, 4000)


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
def test_the_mixed_model_has_it_where_benchmarks_differ(ddf):
    plan = VarianceComponents(interaction_sd=1.0, residual_sd=1.0, seed_sd=0.7)
    found = power(plan, effect=0.8, n_benchmarks=[12, 25], n_seeds=[4, 10], ddf=ddf, n_draws=4000, rng=12)
    assert found.to_frame()["no_interaction"].max() < 0.01
    assert_within_error(found, 4000)


def pooled_power(b: int, n: int, effect: float, interaction: float, *, more_df: bool) -> float:
    """Power of the test of two algorithms that pools the interaction with the residual where it is the smaller.

    A sum over the quantiles of the two independent mean squares, residual_sd = 1; a large seed variance is not pooled.
    """
    q = (np.arange(1500) + 0.5) / 1500
    own, rest = b - 1, b * (n - 1)
    true = 1.0 + n * interaction**2
    A, E = np.meshgrid(true * stats.chi2.ppf(q, own) / own, stats.chi2.ppf(q, rest) / rest)
    pool = A < E
    variance = np.where(pool, (own * A + rest * E) / (own + rest), A)
    critical = np.where(pool & more_df, stats.t.isf(0.025, own + rest), stats.t.isf(0.025, own))
    h, d = critical * np.sqrt(variance / true), effect / np.sqrt(2.0 * true / (b * n))
    return float(np.mean(stats.norm.cdf(d - h) + stats.norm.cdf(-d - h)))


@pytest.mark.parametrize("effect", [0.0, 0.5])
@pytest.mark.parametrize("interaction", [0.0, 0.3])
@pytest.mark.parametrize(("b", "n"), [(6, 3), (12, 5)])
@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
def test_little_interaction_costs_the_mixed_model_what_pooling_costs(b, n, interaction, effect, ddf):
    plan = VarianceComponents(interaction_sd=interaction, residual_sd=1.0, seed_sd=10.0)
    found = power(plan, effect=effect, n_benchmarks=b, n_seeds=n, ddf=ddf, n_draws=5000, rng=13)
    row = found.to_frame().iloc[0]
    want = pooled_power(b, n, effect, interaction, more_df=ddf == "satterthwaite")
    assert stats.binomtest(round(row["power"] * 5000), 5000, want).pvalue > LEVEL
    assert want < row["exact"]
    assert row["no_interaction"] > 0.2


def test_very_few_benchmarks_give_slightly_too_many_false_positives():
    want = pooled_power(4, 5, 0.0, 1.0, more_df=True)
    assert want == approx(0.054, abs=0.001)
    plan = VarianceComponents(interaction_sd=1.0, residual_sd=1.0, seed_sd=10.0)
    row = power(plan, effect=0, n_benchmarks=4, n_seeds=5, n_draws=5000, rng=15).to_frame().iloc[0]
    assert stats.binomtest(round(row["power"] * 5000), 5000, want).pvalue > LEVEL


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
def test_the_short_cut_decides_as_the_engine(ddf):
    plan = VarianceComponents(interaction_sd=0.3, residual_sd=1.0, seed_sd=0.2)
    rng = np.random.default_rng(14)
    for k, b, n in [(2, 8, 4), (3, 6, 3), (2, 20, 2)]:
        design = StudyDesign(n_algorithms=k, n_benchmarks=b, n_seeds=n)
        draw = study_draw(design, plan, effect=0.6)
        for _ in range(40):
            y = draw(rng)
            short, long = compare(y, test="mixed", ddf=ddf), compare_by_engine(y, ddf=ddf)
            assert short[1] == approx(long[1], rel=1e-5)
            assert short[2] == approx(long[2], rel=5e-3)
            significant = [abs(d) > se * design.critical(0.05, "tukey", df) for d, se, df, _ in (short, long)]
            assert significant[0] == significant[1]
