"""How often the drop-in for Autorank, and what Autorank does in its place, find a difference where there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, rate_of
from pytest import approx
from scipy import stats

from lmemtest.compat.autorank import RankResult
from lmemtest.compat.autorank._util import rank_multiple_nonparametric, rank_multiple_normal_homoscedastic, rank_two
from lmemtest.compat.autorank.decisions import differ
from lmemtest.lmm.distributions.studentized_range import ptukey

TABLES = 2000
ERROR = 4 * np.sqrt(ALPHA * (1 - ALPHA) / TABLES)  # four standard errors


def false_differences(found):
    """Whether any pair differs, if the test of all populations rejects; and whether any does."""
    result = RankResult(*found[:5], True, [], True, 1.0, "bartlett", ALPHA, ALPHA, 20)
    return bool(found.pvalue < ALPHA), bool(differ(result).any())


def draw_blocks(rng, shape, k):
    """20 rows that differ, and populations that do not."""
    if shape == "discrete":
        return rng.integers(0, 4, (20, k)).astype(float)
    noise = rng.exponential(size=(20, k)) if shape == "skewed" else rng.standard_normal((20, k))
    spread = rng.permutation(np.geomspace(0.5, 2, k)) if shape == "heteroscedastic" else 1.0
    return rng.standard_normal((20, 1)) + spread * noise


SAMPLES = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "skewed": lambda rng, size: rng.exponential(size=size),
    "discrete": lambda rng, size: rng.poisson(6.0, size).astype(float),
}


@pytest.mark.parametrize("shape", list(SAMPLES))
@pytest.mark.parametrize("n", [8, 20])
def test_wilcoxon_keeps_its_level_and_the_one_sided_test_does_not(shape, n):
    def study(rng):
        x = SAMPLES[shape](rng, (n, 2))
        two = rank_two(pd.DataFrame(x), ALPHA, False, False, "descending", None, None).pvalue < ALPHA
        larger = int(np.argmax(np.median(x, axis=0)))
        differ = (x[:, 0] != x[:, 1]).any()
        return two, differ and stats.wilcoxon(x[:, larger], x[:, 1 - larger], alternative="greater").pvalue < ALPHA

    two, one = rate_of(study, TABLES, 1)
    assert 0.5 * ALPHA < two < ALPHA + ERROR  # ranks of few samples take few values
    if n == 20:
        assert abs(one - 0.097) < np.sqrt(2) * ERROR  # twice the level of the test of either direction


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("shape", ["normal", "skewed", "discrete", "heteroscedastic"])
def test_ranks_have_no_more_false_differences_than_alpha(k, shape):
    def study(rng):
        x = pd.DataFrame(draw_blocks(rng, shape, k))
        return false_differences(rank_multiple_nonparametric(x, ALPHA, False, False, "descending", None, None))

    omnibus, any_pair = rate_of(study, TABLES, 2)
    assert omnibus < ALPHA + ERROR
    assert any_pair < ALPHA + ERROR


@pytest.mark.parametrize("k", [3, 10])
def test_tukey_has_no_more_false_differences_than_alpha_and_one_half_width_has_many(k):
    """Rows differ: for independent samples the error is too large, half of the distance is too small."""
    q = stats.studentized_range.ppf(1 - ALPHA, k, 20 * k - k)

    def study(rng):
        x = rng.standard_normal((20, k))
        found = rank_multiple_normal_homoscedastic(pd.DataFrame(x), ALPHA, False, "descending", None, None)
        half = q * np.sqrt(x.var(axis=0, ddof=1).mean() / 20) / 2
        return false_differences(found)[1], np.ptp(x.mean(axis=0)) > half

    ours, theirs = rate_of(study, TABLES, 3)
    assert abs(ours - ALPHA) < ERROR
    expected = float(ptukey(q / 2, k, 20 * k - k, upper=True))
    assert expected == approx({3: 0.456, 10: 0.846}[k], abs=1e-3)
    assert abs(theirs - expected) < 4 * np.sqrt(expected * (1 - expected) / TABLES)


@pytest.mark.parametrize("n", [10, 15, 50])
def test_median_intervals_cover_the_median(n):
    """All together; theirs cover more, as the width of the interval has the factor sqrt(2) too much."""
    z = stats.norm.ppf(1 - ALPHA / 4)
    ranks = n / 2 + np.array([-z, z]) * np.sqrt(n / 2) + [0, 1]

    def study(rng):
        x = rng.exponential(size=(n, 2))
        table = rank_two(pd.DataFrame(x), ALPHA, False, False, "descending", None, None).rankdf
        ends = np.sort(x, axis=0)[np.clip(np.round(ranks), 0, n - 1).astype(int)]
        ours = (table["ci_lower"] <= np.log(2)) & (np.log(2) <= table["ci_upper"])
        return ours.all(), ((ends[0] <= np.log(2)) & (np.log(2) <= ends[1])).all()

    ours, theirs = rate_of(study, TABLES, 4)
    assert ours > 1 - ALPHA - ERROR
    assert theirs > (0.99 if n > 10 else 0.985)
