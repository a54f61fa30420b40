"""A cluster of Dask: the same numbers while one of its workers is killed, and a plain error where all of them are."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from study import as_runs

import lmemtest as lt
from lmemtest.core.replicates import replicate
from lmemtest.errors import WorkerError

HOME = int(os.environ.setdefault("LMEMTEST_HOME_OF_TESTS", str(os.getpid())))  # workers import this file, too


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.daemon": True}
    with (
        dask.config.set(options),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def killed_once(mark: str) -> None:
    """Kill the process that comes here first: what it computed so far is lost."""
    if os.getpid() == HOME:
        return
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def draw(rng):
    return float(rng.normal())


def draw_in_danger(mark, rng):
    if (value := float(rng.normal())) > 1.5:  # in the middle of some piece of work
        killed_once(mark)
    return value


def always_dies(_):
    if os.getpid() != HOME:
        os.kill(os.getpid(), signal.SIGKILL)


def statistic_in_danger(mark, fit):
    killed_once(mark)
    return fit.scale


def part_in_danger(mark, number):
    if number == 3:
        killed_once(mark)
    return rows(number)


def rows(number) -> pd.DataFrame:
    rng = np.random.default_rng(number)
    cells = pd.MultiIndex.from_product([list("AB"), range(6), range(3)], names=["tool", "task", "seed"])
    frame = cells.to_frame(index=False)
    loss = 1e6 + 1e-3 * (rng.normal(size=len(frame)) + (frame["tool"] == "B"))
    return frame.assign(task="t" + frame["task"].astype(str), loss=loss)


def test_replicates_are_the_same_while_a_worker_is_killed(client, tmp_path):
    mark = str(tmp_path / "killed")
    got = replicate(partial(draw_in_danger, mark), 200, rng=1, executor=client)
    assert got == replicate(draw, 200, rng=1)
    assert Path(mark).exists()


def test_a_bootstrap_is_the_same_while_a_worker_is_killed(client, tmp_path):
    mark = str(tmp_path / "killed")
    fit = lt.fit_lmm("loss ~ tool + (1 | task)", as_runs(rows(0)))
    ask = partial(fit.bootstrap, partial(statistic_in_danger, mark), n_draws=39, rng=1)
    want = ask().to_frame()
    assert not Path(mark).exists()
    assert ask(executor=client).to_frame().equals(want)
    assert Path(mark).exists()


def test_where_every_worker_dies_the_error_is_ours(client):
    with pytest.raises(WorkerError, match=r"a worker was lost after 0 of 4 replicates \(Replicates\): KilledWorker"):
        replicate(always_dies, 4, rng=1, executor=client)
    assert replicate(draw, 4, rng=1, executor=client) == replicate(draw, 4, rng=1), "the cluster works on"


@pytest.mark.usefixtures("client")
def test_cells_of_a_dask_table_are_the_same_while_a_worker_is_killed(tmp_path):
    mark, parts = str(tmp_path / "killed"), range(6)
    want = as_runs(pd.concat([rows(i) for i in parts])).study.cells(["tool", "task"]).to_frame()
    table = dd.from_map(partial(part_in_danger, mark), parts, meta=rows(0).head(0))
    got = as_runs(table).study.cells(["tool", "task"]).to_frame()
    assert Path(mark).exists()
    pd.testing.assert_frame_equal(got, want, check_dtype=False, rtol=1e-10)


@pytest.mark.usefixtures("client")
def test_trajectories_of_a_dask_table_are_the_same_while_a_worker_is_killed(tmp_path):
    mark, parts = str(tmp_path / "killed"), range(6)
    options = {"time": "seconds", "score": "loss", "direction": "minimize", "run": ["tool", "task", "seed"],
               "algorithm": "tool", "benchmark": "task", "grid": [0.2, 0.6, 1], "full_budget": "longest"}  # fmt: skip
    want = lt.trajectories(pd.concat([rows(i).assign(seconds=i) for i in parts]), **options)
    table = dd.from_map(partial(timed, mark), parts, meta=timed(mark, 0).head(0))
    got = lt.trajectories(table, **options)
    assert Path(mark).exists()
    pd.testing.assert_frame_equal(got.to_frame(), want.to_frame(), check_dtype=False, rtol=1e-12)


def timed(mark, number) -> pd.DataFrame:
    return part_in_danger(mark, number).assign(seconds=number)
