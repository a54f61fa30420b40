"""A long search is foreseen from the work of an evaluation, before it begins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.core import replicates
from lmemtest.core.replicates import replicate
from lmemtest.lmm.model import fitting

FORMULA = "y ~ x + (1 | g) + (1 | h)"


@pytest.fixture(scope="module")
def crossed() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"g": rng.integers(30, size=200), "h": rng.integers(25, size=200), "x": rng.normal(size=200)})
    y = rng.normal(size=30)[frame["g"]] + rng.normal(size=25)[frame["h"]] + rng.normal(size=200)
    return frame.assign(y=y, g="g" + frame["g"].astype(str), h="h" + frame["h"].astype(str))


@pytest.fixture(scope="module")
def problem(crossed):
    return lt.fit_lmm(FORMULA, crossed).problem


def test_the_time_is_that_of_the_evaluations_and_their_work(problem, monkeypatch):
    monkeypatch.setattr(fitting, "evaluation_cost", lambda _: 1e10)
    monkeypatch.setattr(fitting, "_RATE", 2e10)
    assert fitting.search_seconds(problem) == 5 * 0.5  # 3 evaluations and one for each of two variances
    assert fitting.search_seconds(problem, restarts=3) == 4 * 5 * 0.5


def test_levels_that_are_eliminated_one_by_one_cost_what_they_leave(crossed, monkeypatch):
    """A level of h within g leaves the columns of its g and of the remainder; memory bounds what is done with them."""
    nested = crossed.assign(h=crossed["g"] + crossed["h"])
    problem = lt.fit_lmm(FORMULA, nested).problem
    first, second = problem.system.chain
    assert first.E
    monkeypatch.setattr(fitting, "evaluation_cost", lambda _: 0.0)
    monkeypatch.setattr(fitting, "_RATE", 1.0)
    width = len(problem.system.B) + second.block.K
    assert fitting.search_seconds(problem) == 5 * 50.0 * first.block.q * width**2


def test_a_search_of_mean_squares_takes_no_time(crossed):
    balanced = crossed.drop_duplicates(["g"]).head(4)
    table = balanced[["g"]].merge(pd.DataFrame({"h": ["p", "q", "r"]}), how="cross")
    table["y"] = np.random.default_rng(1).normal(size=len(table))
    assert fitting.search_seconds(lt.fit_lmm("y ~ 1 + (1 | g) + (1 | h)", table).problem) == 0.0


def test_a_long_search_is_said_before_it_begins(crossed, monkeypatch, caplog):
    monkeypatch.setattr(fitting, "search_seconds", lambda *_: 120.0)
    monkeypatch.setattr("lmemtest.lmm.model.fitting.optimise", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lt.fit_lmm(FORMULA, crossed)
    assert caplog.messages == [
        f"The search for '{FORMULA}' may take about 2 minutes: it is for 55 columns of random effects, 25 of them "
        "crossed. Less with fewer levels, or with intercepts in place of slopes, such as (1 | g) for (x | g)."
    ]


def test_a_short_search_and_one_of_many_say_nothing(crossed, monkeypatch, caplog):
    lt.fit_lmm(FORMULA, crossed)
    monkeypatch.setattr(fitting, "search_seconds", lambda *_: 120.0)
    replicate(lambda _: lt.fit_lmm(FORMULA, crossed), 2, rng=1)
    with replicates.part():
        lt.fit_lmm(FORMULA, crossed)
    assert caplog.messages == []
