"""Replicates: reproducible, complete, and quiet unless asked."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import lmemtest.core.replicates as module
from lmemtest.core.caller import on_command_line
from lmemtest.core.replicates import Failure, check_jobs, replicate
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
    if module.process_context().get_start_method() != "fork":
        pytest.skip("processes start afresh here, so the function must be importable")
    assert len(replicate(lambda rng: rng.integers(10), 4, rng=1, n_jobs=2)) == 4


def test_convergence_is_left_to_the_owner():
    def warn(_):
        warnings.warn("not there yet", ConvergenceWarning, stacklevel=1)

    assert replicate(warn, 2, rng=1) == [None, None]


def test_minus_one_is_all_processors():
    assert check_jobs(-1) >= 1
    assert check_jobs(3) == 3


# ------------------------------------------------------------------ how long it will take


class Clock:
    """Seconds that pass only when a step says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def takes(self, *seconds: float):
        """A step that takes one of these times after another, the last of them from then on."""
        left = list(seconds)

        def step(_: object = None) -> float:
            self.now += left.pop(0) if len(left) > 1 else left[0]
            return self.now

        return step


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "clock", clock)
    monkeypatch.setattr(module, "check_jobs", lambda n: 4 if n == -1 else n)
    return clock


@pytest.mark.parametrize("progress", [True, False])
def test_the_bar_is_on_standard_error_after_some_patience(progress, clock, capsys):
    replicate(clock.takes(0.6), 5, rng=1, progress=progress, label="Bootstrap")
    out, err = capsys.readouterr()
    assert ("Bootstrap" in err) == progress
    assert out == ""


@pytest.mark.usefixtures("clock")
def test_short_work_shows_no_bar(capsys):
    replicate(draw, 5, rng=np.random.default_rng(1), progress=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "n", "first", "told"), [
    (0.25, 1000, 31, "1,000 steps take about 4 minutes in all."),  # until then less than 5 seconds
    (1.0, 33, 7, "33 steps take about 30 seconds in all."),  # a tenth of the steps is enough after two seconds
])  # fmt: skip
def test_a_long_time_is_said_once_as_soon_as_it_is_known(clock, caplog, seconds, n, first, told):
    seen = []
    step = clock.takes(seconds)
    replicate(lambda rng: seen.append(len(caplog.messages)) or step(rng), n, rng=1, label="Bootstrap")
    assert caplog.messages == [f"Bootstrap: {told} Less with a smaller n_draws or more processes (n_jobs=-1)."]
    assert seen.index(1) == first


def test_a_single_long_step_is_enough(clock, caplog):
    replicate(clock.takes(60.0, 1.0), 2, rng=1, label="Bootstrap", n_jobs=1)
    assert caplog.messages[0].startswith("Bootstrap: 2 steps take about 2 minutes in all.")


def test_without_draws_the_advice_is_processes(clock, caplog):
    replicate(clock.takes(6.0), 20, rng=1, label="Without each task", fewer=None)
    assert caplog.messages == [
        "Without each task: 20 steps take about 2 minutes in all. Less with more processes (n_jobs=-1)."
    ]


@pytest.mark.parametrize(
    ("seconds", "n", "progress"),
    [
        ((0.1,), 290, None),
        ((3.0, 0.01), 1000, None),
        ((1.5, 0.01), 1000, None),
        ((40.0,), 1, None),
        ((1.0,), 99, False),
    ],
    ids=[
        "half a minute",
        "long imports in the first step",
        "imports in the first step",
        "nothing is left",
        "no progress wanted",
    ],
)
def test_nothing_is_said_of(seconds, n, progress, clock, caplog):
    replicate(clock.takes(*seconds), n, rng=1, progress=progress)
    assert caplog.messages == []


def test_what_is_a_part_of_something_longer_says_nothing(clock, caplog):
    replicate(lambda _: replicate(clock.takes(5.0), 10, rng=1, label="Inner"), 10, rng=1, label="Outer")
    assert [message.split(":")[0] for message in caplog.messages] == ["Outer"]


def test_workers_are_judged_by_whole_rounds(clock, caplog):
    class Pool:
        _max_workers = 4

        def map(self, function, pieces):
            for i, piece in enumerate(pieces):
                clock.now += 3.0 * len(piece) if i % 4 == 0 else 0.0  # four at a time
                yield function(piece)

    replicate(draw, 400, rng=1, executor=Pool(), label="Bootstrap")
    assert caplog.messages == ["Bootstrap: 400 steps take about 5 minutes in all. Less with a smaller n_draws."]


def test_the_command_line_is_advised_in_its_own_words(clock, caplog):
    with on_command_line():
        replicate(clock.takes(5.0), 10, rng=1, label="Bootstrap")
    with on_command_line(options={"n_draws": "--draws"}):
        replicate(clock.takes(5.0), 10, rng=1, label="Bootstrap")
    assert [message.partition(" in all. ")[2] for message in caplog.messages] == [
        "Less with fewer rows (--where).",
        "Less with a smaller --draws.",
    ]


def test_it_is_a_line_on_standard_error():
    program = (
        "from lmemtest.core import replicates\n"
        "now = iter(range(0, 900, 9))\n"
        "replicates.clock = lambda: next(now)\n"
        "replicates.replicate(lambda rng: 0, 30, rng=1, label='One\\nline', n_jobs=1, fewer=None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.startswith("One line: 30 steps take about 2 minutes in all.")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000])
@pytest.mark.parametrize("jobs", [1, 2, 16])
def test_pieces_begin_small_and_keep_the_order(n, jobs):
    seeds = list(range(n))
    pieces = module._chunks(seeds, jobs)
    assert [seed for piece in pieces for seed in piece] == seeds
    assert {len(piece) for piece in pieces[:jobs]} == {1}
    assert len(pieces) <= 22 * jobs
