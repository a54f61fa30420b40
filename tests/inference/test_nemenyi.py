"""Mean ranks with Nemenyi's critical difference: published values, scipy's Friedman test, the level."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError
from lmemtest.inference.means.nemenyi import blocks, nemenyi


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_critical_values_are_those_of_demsar(k, q):
    """Table 5 of Demšar (2006): quantiles of the studentised range over the root of two, alpha = 0.05."""
    n = 14
    scores = pd.DataFrame(np.random.default_rng(1).normal(size=(n, k)))
    low, high = nemenyi(scores, direction="minimize").critical_difference
    assert low == high == approx(q * np.sqrt(k * (k + 1) / (6 * n)), rel=3e-4)


def test_ranks_p_values_and_friedman():
    rng = np.random.default_rng(2)
    scores = pd.DataFrame(rng.integers(0, 6, size=(30, 4)) + np.arange(4) * 0.8, columns=list("ABCD")).round()
    found = nemenyi(scores, direction="maximize")
    ranks = (-scores).rank(axis=1).mean()
    assert dict(zip(found.levels, found.means, strict=True)) == approx(ranks.to_dict())
    assert list(found.means) == sorted(found.means)
    statistic, p = stats.friedmanchisquare(*scores.to_numpy().T)
    text = next(note for note in found.notes if note.startswith("Friedman"))
    assert float(re.search(r"= ([\d.]+), p", text)[1]) == approx(statistic, rel=1e-3)
    assert float(text.rsplit("= ", 1)[1].rstrip(".")) == approx(p, rel=1e-2)
    for a in "ABCD":
        for b in "ABCD":
            q = abs(ranks[a] - ranks[b]) / np.sqrt(4 * 5 / (6 * 30)) * np.sqrt(2)
            assert found.significant.loc[a, b] == (a != b and stats.studentized_range.sf(q, 4, np.inf) < 0.05)
    assert "Response the score, best first" in found.summary()


def test_the_level_is_held_where_a_model_of_the_ranks_does_not():
    """A fit of rank ~ algorithm finds false differences in 13 % of tables: ranks of a block sum to a constant."""
    rng = np.random.default_rng(3)
    n, blocks_, k = 2000, 60, 3
    ranks = np.argsort(np.argsort(rng.normal(size=(n, blocks_, k)), axis=2), axis=2) + 1.0
    spread = np.ptp(ranks.mean(axis=1), axis=1)
    cd = nemenyi(pd.DataFrame(ranks[0]), direction="minimize").critical_difference[0]
    rate = float((spread > cd).mean())
    assert stats.binomtest(int(rate * n), n, 0.05).pvalue > 0.01
    naive = stats.studentized_range.ppf(0.95, k, np.inf) * np.sqrt((k**2 - 1) / 12 / blocks_)
    assert float((spread > naive).mean()) > 0.1
    assert cd == approx(naive * np.sqrt(k / (k - 1)), rel=1e-6)


def test_blocks_come_from_runs_and_incomplete_ones_are_named():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, algorithm=["HB", "RS", "TPE"])
    table = blocks(runs, ["benchmark", "prior"])
    assert list(table.columns) == ["HB", "RS", "TPE"]
    frame = runs.to_frame()
    own = frame.groupby(["benchmark", "prior", "algorithm"], observed=True)["loss"].mean().unstack()
    np.testing.assert_allclose(table.to_numpy(), own.to_numpy(), rtol=1e-12)
    table.iloc[0, 1] = np.nan
    assert f"1 of {len(table)} blocks lack a score and were left out." in nemenyi(table, direction="minimize").notes


def test_bad_input():
    scores = pd.DataFrame({"A": [1.0, 2.0], "B": [2.0, np.nan]})
    with pytest.raises(DataError, match="at least two blocks with a score of every algorithm, got 1"):
        nemenyi(scores, direction="minimize")
    with pytest.raises(ArgumentError, match="direction"):
        nemenyi(scores, direction="down")
    for wrong in (scores[["A"]], scores.to_numpy(), None):
        with pytest.raises(ArgumentError, match="a column for each of two or more algorithms"):
            nemenyi(wrong, direction="minimize")
