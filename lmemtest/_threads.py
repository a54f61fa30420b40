"""One BLAS thread while a model is fitted.

A fit is many small factorisations. BLAS libraries start their threads for each of them and let them spin, which costs
more than it gains: ten times the processor time on InstEval, more on small models and on busy machines.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the controller looks for libraries
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread; the setting before it is restored afterwards."""
    return _controller().limit(limits=1, user_api="blas")
