"""Many replicates of one computation: reproducible whatever the number of processes, with every failure kept.

Each replicate gets a random generator of its own, spawned from the caller's, so its result depends on its position
alone and not on the process that computes it.

Work on the processes or machines of somebody else's executor: anything with a ``map``, such as a Dask client.
What is sent is the task once for each piece of work (to Dask once in all) and the seeds of the piece; what comes back
are its results. A worker that dies ends in an error, unless the executor starts its work again elsewhere, as Dask does.

A command, which owns its process, has a second one for large parts of its work, with the same results.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from lmemtest.core.caller import advice, named
from lmemtest.core.sanitize import bounded, one_line
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_flag, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, ConvergenceWarning, LmemtestError, WorkerError

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext


# ------------------------------------------------------------------------------------------------ how long it will take


LONG = 30.0  # seconds from which somebody goes and does something else
_MEASURED = 2.0  # seconds of work from which a time can be told, with this share of the steps
_SHARE, _ENOUGH = 0.1, 5.0  # or from these seconds on with any
_IMPORTS = 10.0  # seconds that imports and caches of a first step never take
_PART: ContextVar[bool] = ContextVar("lmemtest_part_of_something_longer", default=False)

clock = time.monotonic


@contextmanager
def part() -> Iterator[None]:
    """What is done here is a part of something longer, which tells the time of the whole."""
    token = _PART.set(True)
    try:
        yield
    finally:
        _PART.reset(token)


def is_part() -> bool:
    """Whether the time is told by something longer."""
    return _PART.get()


def in_words(seconds: float) -> str:
    """A time as a reader plans with it.

    Examples
    --------
    >>> [in_words(s) for s in (41, 250, 9_000, 400_000)]
    ['about 40 seconds', 'about 4 minutes', 'about 2 hours', 'about 5 days']
    """
    for unit, size, step in (("seconds", 1, 10), ("minutes", 60, 1), ("hours", 3_600, 1)):
        if seconds < 95 * size or (unit == "hours" and seconds < 36 * size):
            return f"about {round(seconds / size / step) * step:,} {unit}"
    return f"about {round(seconds / 86_400):,} days"


def say(message: str) -> None:
    """A line on standard error, through the logger ``lmemtest``."""
    import logging

    logging.getLogger("lmemtest").warning("%s", bounded(one_line(message)))


@dataclass
class Forecast:
    """Measures the first of many steps and says, where it is long, how long all of them will take.

    ``at_once`` steps are made at a time. After 1, 3, 7, ... of each the clock is looked at, until two seconds and a
    tenth of the steps, or five seconds, have been measured. A first step of less than ten seconds may be one of imports
    and tells nothing of the others.
    """

    total: int
    label: str
    at_once: int = 1
    fewer: str | None = None  # the argument that says how many steps there are
    more_processes: bool = False  # whether n_jobs would help

    def __post_init__(self) -> None:
        self.done = 0
        self.look = 0 if is_part() else self.at_once
        self.start = clock()
        self.first = (0, self.start)  # steps that do not count, and when they were done

    def __call__(self, n: int) -> None:
        self.done += n
        if not self.look or self.done < self.look:
            return
        now = clock()
        if self.look == self.at_once and now - self.start < _IMPORTS:
            self.first = (self.done, now)
        elif now - self.start >= _MEASURED and (self.done >= _SHARE * self.total or now - self.start >= _ENOUGH):
            seconds = (now - self.first[1]) / (self.done - self.first[0]) * (self.total - self.done) + now - self.start
            if seconds > LONG and self.done < self.total:
                say(f"{self.label}: {self.total:,} steps take {in_words(seconds)} in all.{self._advice()}")
            self.look = 0
            return
        self.look = 2 * self.look + self.at_once

    def _advice(self) -> str:
        python = [f"a smaller {self.fewer}"] if self.fewer else []
        python += ["more processes (n_jobs=-1)"] if self.more_processes else []
        line = f"a smaller {named(self.fewer)}" if self.fewer and named(self.fewer) != self.fewer else ""
        ways = advice("typed", call=" or ".join(python), command=line or "fewer rows (--where)")
        return f" Less with {ways}." if ways else ""


# -------------------------------------------------------------------------------------------------- executors of others


_WIDTH = 16  # workers of an executor that does not say how many it has


class Executor(Protocol):
    """What calls a function for each of some values, somewhere; those of concurrent.futures and Dask's clients do."""

    def map(self, function: Callable[..., Any], /, *values: Iterable[Any]) -> Iterable[Any]:
        """The results, or futures of them, in the order of the values."""


def check_executor(executor: Any) -> None:
    """Refuse what has no ``map``, and columns and tables, whose ``map`` is another one."""
    if executor is None:
        return
    if not callable(getattr(executor, "map", None)) or hasattr(executor, "__array__"):
        raise ArgumentError(
            "executor must be something that has a map, such as concurrent.futures.ProcessPoolExecutor() or a client "
            f"of Dask, got {executor!r}. For a number of processes use n_jobs."
        )


def width(executor: Any) -> int:
    """How many pieces of work it does at a time, as far as it tells."""
    if _is_dask(executor):
        return max(1, sum(executor.nthreads().values()))
    return getattr(executor, "_max_workers", None) or _WIDTH


def spread(
    work: Callable[..., Any], task: Any, pieces: Sequence[Any], executor: Any, advance: Callable[[int], None]
) -> list[Any]:
    """``work(task, piece)`` for each of the pieces, in their order."""
    work = partial(_quietly, work, os.getpid())
    with closing(_started(work, task, pieces, executor)) as results:
        out = []
        for piece, result in zip(pieces, results, strict=True):
            out.append(result)
            advance(len(piece))
        return out


def _started(work: Callable[..., Any], task: Any, pieces: Sequence[Any], executor: Any) -> Generator[Any, None, None]:
    if not _is_dask(executor):
        yield from executor.map(partial(work, task), pieces)
        return
    # Dask keeps the task with the scheduler, which sends it to each worker once, and again to one that comes later.
    held = executor.submit(_same, task, pure=False)
    futures = executor.map(partial(_swapped, work), pieces, task=held, pure=False)
    try:
        for future in futures:
            yield future.result()
    finally:
        executor.cancel([held, *futures])


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.startswith("distributed") and hasattr(executor, "nthreads")


def _same(task: Any) -> Any:
    return task


def _swapped(work: Callable[..., Any], piece: Any, task: Any) -> Any:
    return work(task, piece)


def _quietly(work: Callable[..., Any], home: int, task: Any, piece: Any) -> Any:
    # Filters of warnings are those of the process, and threads share them: the caller has set his own.
    if os.getpid() != home:
        warnings.simplefilter("ignore", ConvergenceWarning)
    return work(task, piece)


def unless_lost(error: BaseException, done: int, n: int, label: str) -> BaseException:
    """The error as it is, or one of ours where a worker was lost or the task could not be sent."""
    what = f"{type(error).__name__}: {error}".strip().rstrip(".:")
    if isinstance(error, (BrokenExecutor, CancelledError, ConnectionError, EOFError)) or _of_dask(error):
        return WorkerError(
            f"a worker was lost after {done:,} of {n:,} replicates ({label}): {what}. Nothing is returned. It may have "
            "been short of memory, or its machine went away: use fewer workers at a time, or give them more memory. "
            "With the same rng another call gives the numbers that this one would have given."
        )
    if isinstance(error, (TypeError, AttributeError, _pickling_error())) and "pickle" in str(error).lower():
        return ArgumentError(
            f"what is computed has to be sent to other processes, and cannot be ({what}). Define functions in a module "
            "that the workers can import, and give a lazy table as rows: runs.to_frame() has them."
        )
    return error


def _of_dask(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "distributed"


def _pickling_error() -> type[Exception]:
    import pickle

    return pickle.PicklingError


# ----------------------------------------------------------------------------------------------------------- replicates


Task = Callable[[np.random.Generator], Any]
T = TypeVar("T")

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


def process_context() -> BaseContext:
    """Fork where that is safe: children inherit the task, so it may be a lambda of a notebook.

    Elsewhere processes start afresh and the task must be picklable.
    """
    import multiprocessing

    can_fork = sys.platform.startswith("linux") and "fork" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("fork" if can_fork else "spawn")


@contextmanager
def processes(jobs: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
    """Processes of the context above, with options of the executor."""
    with ProcessPoolExecutor(jobs, mp_context=process_context(), **options) as pool, warnings.catch_warnings():
        # Python 3.12 warns of any fork beside threads; the children compute with numpy and one BLAS thread only.
        warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
        yield pool


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
    if process_context().get_start_method() != "fork":
        _check_picklable(task)
    with processes(jobs, initializer=_start, initargs=(task,)) as pool:
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


# ---------------------------------------------------------------------- a second process

_MOST_BESIDE = 2  # further processes: what is to be done beside has a few large parts
_MOST_BYTES = 2**27  # of what is sent: more would be held twice, by both processes

# With what it was given, first of all to load its modules.
_Pool: TypeAlias = "tuple[ProcessPoolExecutor, list[Future[Any]]]"
_beside: ContextVar[_Pool | None] = ContextVar("what works beside this process", default=None)


@contextmanager
def second_process(load: Callable[[], Any] = os.getpid) -> Iterator[None]:
    """What is `begun` in this context is done beside this process, by one that begins with a call: it loads modules.

    Where a process can be forked and there is another processor for it. For a command, which owns its process: the
    programs of others may have threads, which a fork loses. What both need is loaded by each, at the same time: to
    load it once, and only then fork, costs less processor time, but the other processor would be idle until then.
    """
    import multiprocessing

    jobs = min(_MOST_BESIDE, check_jobs(-1) - 1)
    if jobs < 1 or process_context().get_start_method() != "fork":
        yield
        return
    others = {*multiprocessing.active_children()}
    with processes(jobs, initializer=_begin_beside, initargs=(load,)) as pool:
        given: list[Future[Any]] = [pool.submit(os.getpid)]
        token = _beside.set((pool, given))
        try:
            yield
        finally:
            _beside.reset(token)
            if len(given) == 1 and not given[0].done():  # it loads what nobody needs any more
                for process in {*multiprocessing.active_children()} - others:
                    process.terminate()
            # waited for: at its end the interpreter writes to a pipe, which a thread of the pool would be closing
            pool.shutdown(cancel_futures=True)


def begun(call: Callable[[], T], *, if_loaded: bool = False) -> Callable[[], T]:
    """The same call, or what waits for its result where it has been begun beside this process.

    The result is the same. What cannot be sent, such as a lambda or a lazy table, what is too large to be held twice,
    and what another process was lost with, is done here; with `if_loaded` also what that process could not begin at
    once, as it still loads its modules, or has not begun when the result is asked for, as it does other things.

    Examples
    --------
    >>> begun(partial(max, 2, 3))()
    3
    """
    import pickle

    beside = _beside.get()
    if beside is not None and not (if_loaded and not beside[1][0].done()):
        with suppress(pickle.PicklingError, AttributeError, TypeError, BrokenExecutor):
            sent = pickle.dumps(call)
            if len(sent) <= _MOST_BYTES:
                future = beside[0].submit(_called, sent)
                beside[1].append(future)
                return partial(_waited, future, call, if_loaded)
    return call


def _waited(future: Future[T], call: Callable[[], T], unless_queued: bool) -> T:
    if unless_queued and future.cancel():
        return call()
    with suppress(BrokenExecutor):  # perhaps for want of memory
        return future.result()
    return call()


def _called(call: bytes) -> Any:
    import pickle

    return pickle.loads(call)()


def _begin_beside(load: Callable[[], Any]) -> None:
    """Leave Ctrl-C to the process that waits for the results, and end with it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()
    load()


def _follow() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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
    begin = clock()
    drawn_bar = False

    def advance(n: int) -> None:
        nonlocal drawn_bar
        bar.advance(row, n)
        foresee(n)
        if not drawn_bar and clock() - begin > _PATIENCE:
            bar.start()
            drawn_bar = True

    try:
        with part():
            yield advance
    finally:
        if drawn_bar:
            bar.stop()
