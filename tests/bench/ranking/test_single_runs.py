"""Decisions about a complete table of single runs are those of the fitted model, which is not needed for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from growth import calls
from levels import first
from pytest import approx

import lmemtest as lt
from lmemtest.bench.ranking.methods import by_model, codes_on
from lmemtest.bench.ranking.stability import closed_form, codes_by_table, t_ratios

KINDS = ["difficulties", "relative", "copies", "rounded", "erratic"]


def ranked(kind: str, k: int = 6, n: int = 9, sd: float = 1.0) -> lt.Ranking:
    rng = np.random.default_rng(k * n)
    y = sd * rng.normal(size=(n, 1)) + 0.3 * np.arange(k) + 0.4 * rng.normal(size=(n, k))
    if kind == "relative":
        y = (y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)
    if kind == "copies":
        y[:, 1] = y[:, 0]
    if kind == "rounded":
        y = y.round(1)
    if kind == "erratic":
        y[:, 2] += 5.0 * rng.normal(size=n)
    return lt.rank(pd.DataFrame(y, columns=list("ABCDEFGHIJ"[:k])), direction="minimize")


@pytest.mark.parametrize("kind", KINDS)
def test_t_ratios_are_those_of_the_fitted_model(kind):
    ranking = ranked(kind)
    y = ranking.blocks.scores
    n, k = y.shape
    verdict = by_model(ranking.runs, replace(ranking.options, rng=0))
    at = {name: i for i, name in enumerate(ranking.blocks.algorithms)}
    left, right = (verdict.tests[side].map(at).to_numpy() for side in ("left", "right"))
    residuals = y - y.mean(axis=0) - y.mean(axis=1, keepdims=True) + y.mean()
    t, df = t_ratios(y, (residuals**2).sum() / ((n - 1) * (k - 1)), left, right)
    assert t == approx(verdict.tests["statistic"].to_numpy(), rel=1e-9, abs=1e-12)
    assert df == approx(verdict.tests["df"].to_numpy(), rel=1e-9)


@pytest.mark.daily(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "n"), first([(3, 4), (6, 9), (10, 15)]))
def test_decisions_are_those_of_a_refit(kind, k, n):
    ranking = ranked(kind, k, n, sd=4.0)
    blocks = ranking.blocks
    assert closed_form(ranking.runs, blocks, ranking.options)
    for i in range(len(blocks.names)):
        part = blocks.where(np.arange(len(blocks.names)) != i)
        at_once = codes_by_table(part, 0.05)
        refit = codes_on(part, ranking.runs, "lmem", replace(ranking.options, rng=0))
        assert at_once is not None
        assert (at_once == refit).all()


def test_a_variance_of_benchmarks_that_can_be_zero_is_left_to_the_fit():
    ranking = ranked("difficulties", sd=0.0)
    y = ranking.blocks.scores
    residuals = y - y.mean(axis=0) - y.mean(axis=1, keepdims=True) + y.mean()
    ratio = y.shape[1] * y.mean(axis=1).var(ddof=1) / ((residuals**2).sum() / 40)
    assert 0.4 < ratio < 1.0  # below, but not by more than chance
    assert codes_by_table(ranking.blocks, 0.05) is None


def test_other_tables_and_options_are_left_to_the_fit():
    ranking = ranked("difficulties")
    runs, blocks, options = ranking.runs, ranking.blocks, ranking.options
    for change in ({"vcov": "model"}, {"adjust": "holm"}, {"control": "A"}):
        assert not closed_form(runs, blocks, replace(options, **change))
    repeated = lt.rank(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    assert not closed_form(repeated.runs, repeated.blocks, repeated.options)
    assert codes_by_table(blocks.where(np.arange(9) < 2), 0.05) is None
    constant = replace(blocks, runs=np.round(blocks.runs * 1e-9, 9) + 1.0)
    assert codes_by_table(constant, 0.05) is None


def test_pairs_are_decided_together():
    small, large = (ranked("difficulties", k=k, n=9).blocks for k in (5, 10))
    assert calls(lambda: codes_by_table(large, 0.05)) < 1.5 * calls(lambda: codes_by_table(small, 0.05))
