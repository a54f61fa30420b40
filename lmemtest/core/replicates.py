"""Many replicates of one computation: reproducible whatever the number of processes, with every failure kept.

Each replicate gets a random generator of its own, spawned from the caller's, so its result depends on its position
alone and not on the process that computes it.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.durations import Forecast, part
from lmemtest.core.executors import Executor, check_executor, spread, unless_lost, width
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_flag, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, ConvergenceWarning, LmemtestError

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

Task = Callable[[np.random.Generator], Any]

_PATIENCE = 2.0  # seconds before a progress bar appears
_CHUNKS_PER_JOB = 16  # small enough for a bar that moves, large enough that messages cost nothing


@dataclass(frozen=True, slots=True)
class Failure:
    """A replicate without a result, and why: the class of the error, and what it says."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(type(error).__name__, str(error))

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.message}"


@one_blas_thread()
def replicate(
    task: Task,
    n: int,
    *,
    rng: int | np.random.Generator | None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
    label: str = "Replicates",
    fewer: str | None = "n_draws",
) -> list[Any]:
    """Compute ``task(generator)`` ``n`` times.

    Parameters
    ----------
    task : callable
        Takes a ``numpy.random.Generator`` of its own.
    n : int, >= 1
        Replicates.
    rng : int, numpy.random.Generator or None
        Source of the replicates' seeds; a generator moves on.
    n_jobs : int
        Processes; -1 for one per processor.
    executor : object with a ``map``, optional
        What computes instead of processes of our own, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds: always, never, or (None) on a terminal.
    label : str
        What the bar says, and what is said of a long time before it has passed.
    fewer : str, optional
        The caller's argument with which there would be fewer replicates.

    Returns
    -------
    list
        ``n`` results in order. Where `task` raised an error of lmemtest or a numerical one: a `Failure`.
    """
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    seeds = np.random.SeedSequence(resolve_rng(rng).integers(2**32, size=4).tolist()).spawn(n)
    jobs = min(check_jobs(n_jobs) if executor is None else width(executor), n)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        show(count)

    alone = jobs == 1 and executor is None
    forecast = Forecast(n, label, at_once=jobs, fewer=fewer, more_processes=alone and check_jobs(-1) > 1)
    with progress_bar(n, progress, label, forecast) as show, _quiet():
        if alone:
            out = []
            for seed in seeds:
                out.append(_attempt(task, seed))
                advance(1)
            return out
        chunks = _chunks(seeds, jobs)
        try:
            if executor is None:
                parts = _in_processes(task, chunks, jobs, advance)
            else:
                parts = spread(_attempts, task, chunks, executor, advance)
        except Exception as error:
            raise unless_lost(error, done, n, label) from error
        return [result for part in parts for result in part]


def _chunks(seeds: list[np.random.SeedSequence], jobs: int) -> list[list[np.random.SeedSequence]]:
    """One for each job, then two, four and so on, so that the first are soon done and tell how long all will take."""
    largest = max(1, len(seeds) // (jobs * _CHUNKS_PER_JOB))
    chunks: list[list[np.random.SeedSequence]] = []
    at = 0
    while at < len(seeds):
        size = min(2 ** (len(chunks) // jobs), largest)
        chunks.append(seeds[at : at + size])
        at += size
    return chunks


def check_jobs(n_jobs: int) -> int:
    """Number of processes that ``n_jobs`` asks for."""
    if isinstance(n_jobs, int) and not isinstance(n_jobs, bool) and n_jobs == -1:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)
    try:
        return check_positive_int(n_jobs, "n_jobs")
    except ArgumentError:
        raise ArgumentError(f"n_jobs must be a whole number of at least 1, or -1 for all, got {n_jobs!r}.") from None


def check_replicates(
    *,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> None:
    """Refuse what `replicate` would refuse, before the work that comes first."""
    resolve_rng(rng)
    jobs = check_jobs(n_jobs)
    check_executor(executor)
    if executor is not None and jobs != 1:
        raise ArgumentError(
            f"n_jobs={n_jobs} asks for processes on this machine, and executor brings its own: give one."
        )
    if progress is not None:
        check_flag(progress, "progress")


@contextmanager
def _quiet() -> Iterator[None]:
    """A replicate that did not converge is counted by its owner; a warning for each would drown the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _attempt(task: Task, seed: np.random.SeedSequence) -> Any:
    try:
        with part():
            return task(np.random.default_rng(seed))
    except (LmemtestError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Failure.of(error)


@one_blas_thread()
def _attempts(task: Task, seeds: Sequence[np.random.SeedSequence]) -> list[Any]:
    return [_attempt(task, seed) for seed in seeds]


# ---------------------------------------------------------------------- processes

_task: Task | None = None


def _start(task: Task) -> None:
    global _task
    _task = task
    warnings.simplefilter("ignore", ConvergenceWarning)


def _chunk(seeds: Sequence[np.random.SeedSequence]) -> list[Any]:
    if _task is None:
        raise RuntimeError("the worker process was not initialised")
    return _attempts(_task, seeds)


def _context() -> BaseContext:
    """Fork where that is safe: children inherit the task, so it may be a lambda of a notebook.

    Elsewhere processes start afresh and the task must be picklable.
    """
    import multiprocessing

    can_fork = sys.platform.startswith("linux") and "fork" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("fork" if can_fork else "spawn")


def _check_picklable(task: Task) -> None:
    import pickle

    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ArgumentError(
            f"with n_jobs > 1 the statistic must be a function that other processes can import ({error}). Define it "
            "in a module, or use n_jobs=1."
        ) from None


def _in_processes(task: Task, chunks: list[Any], jobs: int, advance: Callable[[int], None]) -> list[list[Any]]:
    context = _context()
    if context.get_start_method() != "fork":
        _check_picklable(task)
    with (
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(task,)) as pool,
        warnings.catch_warnings(),
    ):
        # Python 3.12 warns of any fork beside threads; the children compute with numpy and one BLAS thread only.
        warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
        futures = [pool.submit(_chunk, chunk) for chunk in chunks]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                advance(sum(len(future.result()) for future in done))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


# ---------------------------------------------------------------------- progress


@contextmanager
def progress_bar(
    total: int, progress: bool | None, label: str, forecast: Forecast | None = None
) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of replicates just done."""
    wanted = sys.stderr.isatty() if progress is None else bool(progress)
    foresee: Callable[[int], None] = (lambda _: None) if progress is False else forecast or Forecast(total, label)
    if not wanted:
        with part():
            yield foresee
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Asked for by name, the bar also goes to a log or a pipe, where rich would otherwise draw nothing.
    console = Console(stderr=True, force_terminal=True if progress else None)
    bar = Progress(*columns, console=console, transient=True)
    row = bar.add_task(label, total=total)
    begin = time.monotonic()
    shown = False

    def advance(n: int) -> None:
        nonlocal shown
        bar.advance(row, n)
        foresee(n)
        if not shown and time.monotonic() - begin > _PATIENCE:
            bar.start()
            shown = True

    try:
        with part():
            yield advance
    finally:
        if shown:
            bar.stop()
