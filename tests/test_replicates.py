"""Replicates: reproducible, complete, and quiet unless asked."""

from __future__ import annotations

import io
import sys
import time
import warnings

import numpy as np
import pytest

import lmemtest._replicates as module
from lmemtest._replicates import Failure, check_jobs, replicate
from lmemtest.errors import ConvergenceWarning, EstimationError


def draw(rng):
    return float(rng.normal())


def moody(rng):
    value = rng.normal()
    if value > 0:
        raise EstimationError("too high")
    return float(value)


def test_the_number_of_processes_changes_nothing():
    assert replicate(draw, 40, rng=1) == replicate(draw, 40, rng=1, n_jobs=2) == replicate(draw, 40, rng=1, n_jobs=3)


def test_one_replicate_is_independent_of_how_many_follow():
    assert replicate(draw, 5, rng=1) == replicate(draw, 50, rng=1)[:5]


def test_failures_keep_their_place():
    got = replicate(moody, 30, rng=1, n_jobs=2)
    values = replicate(draw, 30, rng=1)
    assert [isinstance(g, Failure) for g in got] == [v > 0 for v in values]
    assert {g.reason for g in got if isinstance(g, Failure)} == {"EstimationError: too high"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_mistakes_of_the_caller_are_not_failures(jobs):
    with pytest.raises(KeyError, match="nothing"):
        replicate(lambda _: {}["nothing"], 4, rng=1, n_jobs=jobs)


def test_a_function_of_a_notebook_works_in_processes():
    if module._context().get_start_method() != "fork":
        pytest.skip("processes start afresh here, so the function must be importable")
    assert len(replicate(lambda rng: rng.integers(10), 4, rng=1, n_jobs=2)) == 4


def test_convergence_is_left_to_the_owner():
    def warn(_):
        warnings.warn("not there yet", ConvergenceWarning, stacklevel=1)

    assert replicate(warn, 2, rng=1) == [None, None]


def test_minus_one_is_all_processors():
    assert check_jobs(-1) >= 1
    assert check_jobs(3) == 3


@pytest.mark.parametrize("progress", [True, False])
def test_the_bar_is_on_standard_error_after_some_patience(progress, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    replicate(lambda _: time.sleep(0.04), 5, rng=1, progress=progress, label="Bootstrap")
    assert ("Bootstrap" in err.getvalue()) == progress
    assert out.getvalue() == ""


def test_short_work_shows_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    replicate(draw, 5, rng=np.random.default_rng(1), progress=True)
    assert err.getvalue() == ""
