"""Executors: the same numbers wherever they are computed, and an error that says what was lost."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import lmemtest as lt
from lmemtest.core.replicates import Failure, replicate
from lmemtest.errors import ArgumentError, ConvergenceWarning, EstimationError, WorkerError

HOME = int(os.environ.setdefault("LMEMTEST_HOME_OF_TESTS", str(os.getpid())))  # fresh processes import this file, too


class Plain:
    """The least that is asked of an executor."""

    def map(self, function, values):
        return map(function, values)


class Late:
    """One whose map gives the results out of a call of its own, each on demand."""

    def __init__(self):
        self.asked = 0

    def map(self, function, values):
        for value in values:
            self.asked += 1
            yield function(value)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def draw(rng):
    return float(rng.normal())


def moody(rng):
    if (value := rng.normal()) > 0:
        raise EstimationError("too high")
    return float(value)


def dies(_):
    if os.getpid() != HOME:
        os.kill(os.getpid(), signal.SIGKILL)


def warns(_):
    warnings.warn("not there yet", ConvergenceWarning, stacklevel=1)
    time.sleep(0.001)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_the_executor_changes_nothing(n):
    want = replicate(draw, n, rng=1)
    with ThreadPoolExecutor(3) as threads:
        for executor in (Plain(), Late(), threads):
            assert replicate(draw, n, rng=1, executor=executor) == want


def test_threads_leave_the_filters_of_warnings_as_they_were():
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        replicate(warns, 100, rng=1, executor=threads)
    assert warnings.filters == before


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_mistakes_of_the_caller_and_interrupts_end_the_work_at_once(error):
    def stop(_):
        raise error("nothing")

    executor = Late()
    refuses(error, "nothing", replicate, stop, 100, rng=1, executor=executor)
    assert executor.asked == 1


@pytest.mark.parametrize("executor", [4, "processes", ThreadPoolExecutor])
def test_an_executor_has_a_map(executor):
    if isinstance(executor, type):
        executor = object()
    refuses(ArgumentError, "executor must be something that has a map", replicate, draw, 2, rng=1, executor=executor)


def test_processes_of_ours_and_an_executor_are_two_answers():
    with pytest.raises(ArgumentError, match="n_jobs=2 asks for processes on this machine, and executor brings its own"):
        replicate(draw, 2, rng=1, n_jobs=2, executor=Plain())


# ------------------------------------------------------------------ processes


@pytest.mark.level(2)
def test_fresh_processes_give_the_same_numbers_and_failures(processes):
    assert replicate(draw, 40, rng=1, executor=processes) == replicate(draw, 40, rng=1)
    assert replicate(warns, 4, rng=1, executor=processes) == [None] * 4
    got = replicate(moody, 30, rng=1, executor=processes)
    assert {g.reason for g in got if isinstance(g, Failure)} == {"EstimationError: too high"}


@pytest.mark.level(2)
def test_what_cannot_be_sent_is_named(processes):
    with pytest.raises(ArgumentError, match=r"has to be sent to other processes, and cannot be .*pickle"):
        replicate(lambda _: 1.0, 4, rng=1, executor=processes)


@pytest.mark.level(2)
@pytest.mark.parametrize("own", [True, False])
def test_a_dead_worker_ends_in_an_error(own):
    message = r"a worker was lost after 0 of 40 replicates \(Bootstrap\): BrokenProcessPool: .* Nothing is returned"
    if own:
        refuses(WorkerError, message, replicate, dies, 40, rng=1, n_jobs=2, label="Bootstrap")
        return
    with ProcessPoolExecutor(2) as pool, pytest.raises(WorkerError, match=message):
        replicate(dies, 40, rng=1, executor=pool, label="Bootstrap")


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = pd.MultiIndex.from_product([list("ABC"), range(6), range(3)], names=["tool", "task", "seed"])
    frame = rows.to_frame(index=False)
    return frame.assign(task="t" + frame["task"].astype(str), loss=rng.normal(size=len(frame)) + (frame["tool"] == "B"))


def statistic(fit):
    return fit.scale


def questions():
    """Every public question that draws replicates, with few of them."""
    runs = lt.Runs(table(), score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed")
    null, fit = (lt.fit_lmm(f"loss ~ tool + (1 | task){more}", runs, reml=False) for more in ("", " + (1 | task:tool)"))
    law = lt.tuning.QuadraticDistribution(a=0.0, b=1.0, c=2)
    parts = lt.VarianceComponents(interaction_sd=0.1, residual_sd=0.2)
    searched = {"candidates": ["(1 | benchmark:seed)"], "rng": 1}
    return {
        "bootstrap": lambda **how: fit.bootstrap(statistic, n_draws=39, rng=1, **how),
        "permutation": lambda **how: lt.permutation_test(runs, "loss ~ tool + (1 | task)", n_draws=9, rng=1, **how),
        "glrt": lambda **how: lt.glrt(null, fit, reference="bootstrap", n_draws=9, rng=1, **how),
        "influence": lambda **how: fit.influence("task", **how),
        "diagnose": lambda **how: fit.diagnose(n_draws=99, rng=1, **how),
        "power": lambda **how: lt.power(
            parts, effect=0.1, n_benchmarks=4, n_seeds=2, n_algorithms=3, n_draws=19, rng=1, **how
        ),
        "audit": lambda **how: lt.audit(runs, n_draws=9, unit="benchmark", rng=1, **how),
        "best model": lambda **how: lt.select_model(runs, method="best", depth=2, **searched, **how),
        "terms upwards": lambda **how: lt.select_model(runs, max_steps=1, **searched, **how),
        "tuning.bootstrap_fit": lambda **how: lt.tuning.bootstrap_fit(
            lt.tuning.fit(law.sample(12, rng=1), direction="minimize"), n_draws=99, rng=1, **how
        ),
    }


@pytest.mark.level(2)
@pytest.mark.parametrize("name", questions())
def test_every_question_gives_the_same_answer_in_other_processes(name, processes):
    ask = questions()[name]
    want = ask()
    for answer in (ask(n_jobs=2), ask(executor=processes)):
        assert answer.to_frame().equals(want.to_frame())
        assert str(answer) == str(want)
