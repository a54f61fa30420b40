"""One BLAS thread while something is computed.

A fit is many small factorisations. BLAS libraries start their threads for each of them and let them spin, which costs
more than it gains: ten times the processor time on InstEval, more on small models and on busy machines. So the
public functions are guarded, and with them all of their searches and loops.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import lru_cache
from typing import Any

from lmemtest.core.words import counted


@lru_cache(maxsize=1)
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the controller looks for libraries
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_libraries() -> list[str]:
    """The linear algebra libraries that are loaded: name, version, kernel and threads of each."""
    return [
        f"{found['internal_api']} {found['version']}, kernel {found.get('architecture') or 'unknown'}, "
        f"{counted(found['num_threads'], 'thread')}"
        for found in _controller().info()
        if found["user_api"] == "blas"
    ]


def _take_over() -> None:
    """Let any thread set the number: from threadpoolctl 3.8 on, only the one that first did can, until this is called.

    The last to leave the guard need not be the thread that entered it first.
    """
    from threadpoolctl import OpenBLASController

    free = getattr(OpenBLASController, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)


class _OneBlasThread(ContextDecorator):
    """The outermost guard sets one thread and restores what was there; guards within it cost nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                _take_over()
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                _take_over()
                self._limit.restore_original_limits()
                _take_over()


_GUARD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Context, or decorator of a function, in which BLAS uses one thread; the setting before it is restored.

    Examples
    --------
    >>> @one_blas_thread()
    ... def trace(matrix):
    ...     return float(matrix.trace())
    >>> import numpy as np
    >>> trace(np.eye(3))
    3.0
    """
    return _GUARD
