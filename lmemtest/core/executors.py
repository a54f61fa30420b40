"""Work on the processes or machines of somebody else's executor: anything with a ``map``, such as a Dask client.

What is sent is the task once for each piece of work (to Dask once in all) and the seeds of the piece; what comes back
are its results. A worker that dies ends in an error, unless the executor starts its work again elsewhere, as Dask does.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing
from functools import partial
from typing import Any, Protocol

from lmemtest.errors import ArgumentError, ConvergenceWarning, WorkerError

__all__ = ["Executor", "check_executor", "spread", "unless_lost", "width"]

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
