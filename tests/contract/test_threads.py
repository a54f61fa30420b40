"""Nothing searches or factorises outside of the guard that holds BLAS to one thread."""

from __future__ import annotations

import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from study import make_runs
from threadpoolctl import threadpool_info

import lmemtest as lt
from lmemtest.bench.budget import anytime
from lmemtest.core import threads
from lmemtest.core.threads import one_blas_thread

# fit_lmm has the guard inside (its warnings point to the caller's line), and so has anytime, which computes at the
# first look; read_runs and trajectories have no matrices.
GUARDED_OTHERWISE = {"fit_glmm", "fit_lmm", "anytime", "read_runs", "trajectories"}

SEARCHES = ("minimize", "minimize_scalar", "brentq", "root_scalar", "least_squares", "linprog", "nnls", "root")
FACTORISATIONS = ("eigh", "eigvalsh", "svd", "qr", "cholesky", "solve", "lstsq", "inv", "pinv")
MORE_OF_SCIPY = ("cho_solve", "cho_factor", "solve_triangular")


def _threads_of_blas() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_every_public_function_that_computes_is_guarded() -> None:
    functions = {name for name in lt.__all__ if inspect.isfunction(getattr(lt, name))}
    assert {name for name in functions if not _is_guarded(getattr(lt, name))} == GUARDED_OTHERWISE


def test_what_is_computed_at_the_first_look_is_guarded() -> None:
    assert all(map(_is_guarded, (anytime._compared_curves, anytime.at, anytime.ranks)))


def _is_guarded(function: Callable[..., Any]) -> bool:
    """Whether one of the wrappers around a function is the guard."""
    while function is not None:
        if threads._GUARD in [cell.cell_contents for cell in function.__closure__ or ()]:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def test_the_outermost_guard_restores_what_was_there() -> None:
    with threads._controller().limit(limits=2, user_api="blas"):
        before = _threads_of_blas()
        with one_blas_thread():
            with one_blas_thread():
                assert _threads_of_blas() == {1}
            assert _threads_of_blas() == {1}
        assert _threads_of_blas() == before


def test_guards_of_several_threads_leave_together() -> None:
    inside, leave = threading.Event(), threading.Event()

    @one_blas_thread()
    def other() -> None:
        inside.set()
        leave.wait(60)

    thread = threading.Thread(target=other)
    with threads._controller().limit(limits=2, user_api="blas"):
        before = _threads_of_blas()
        with one_blas_thread():
            thread.start()
            inside.wait(60)
        assert _threads_of_blas() == {1}  # the other one is still computing
        leave.set()
        thread.join()
        assert _threads_of_blas() == before == {2}


def test_a_thread_has_one_blas_thread_whoever_set_the_number_before() -> None:
    seen = list[set[int]]()

    @one_blas_thread()
    def other() -> None:
        seen.append(_threads_of_blas())

    with threads._controller().limit(limits=2, user_api="blas"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [{1}]
        assert _threads_of_blas() == {2}


def test_an_error_leaves_no_guard_behind() -> None:
    before = _threads_of_blas()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert _threads_of_blas() == before


# ---------------------------------------------------------------------- what happens outside


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of searches and factorisations by the package while no guard is in force, by where they are."""
    found: Counter[str] = Counter()

    def watch(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            if threads._GUARD._depth == 0:
                frame = sys._getframe(1)
                while frame.f_back is not None and f"{lt.__name__}/" not in frame.f_code.co_filename:
                    frame = frame.f_back
                found[f"{frame.f_code.co_filename}:{frame.f_lineno} {name}"] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, watched)

    for name in FACTORISATIONS:
        watch(np.linalg, name)
    for name in (*FACTORISATIONS, *MORE_OF_SCIPY):
        watch(scipy.linalg, name)
    for name in SEARCHES:
        watch(scipy.optimize, name)
    return found


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    sds = {"benchmark": 2.0, "benchmark:algorithm": 0.4}
    return make_runs(3, 7, sds=sds, shift=range(3), noise=0.5, rng=3, algorithm="tool", benchmark="task")


MODEL = "loss ~ tool + (1 | task) + (1 | task:tool)"
FEW = 30  # what a call may do by itself before and after the guarded part; the loops did 60 to 2,600
CALLS: dict[str, Callable[[lt.Runs], object]] = {
    "fit": lambda runs: lt.fit_lmm(MODEL, runs).summary(),
    "anova": lambda runs: lt.fit_lmm(MODEL, runs).anova(),
    "analyze": lambda runs: lt.analyze(runs).to_text(),
    "variance_sources": lt.variance_sources,
    "ranking_reliability": lt.ranking_reliability,
    "seed_effect": lt.seed_effect,
    "benchmark_information": lt.benchmark_information,
    "diagnose": lambda runs: lt.fit_lmm(MODEL, runs).diagnose(influence=False, n_draws=99, rng=1),
    "bootstrap": lambda runs: lt.fit_lmm(MODEL, runs).bootstrap(lambda fit: fit.params, n_draws=20, rng=1),
    "audit": lambda runs: lt.audit(runs, n_draws=20, rng=1),
    "profile": lambda runs: lt.fit_lmm("loss ~ tool + (1 | task)", runs).profile(),
    "tuning.fit": lambda _: lt.tuning.fit(
        np.random.default_rng(1).normal(size=30) ** 2, direction="minimize", law="noisy_quadratic"
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_loops_of_small_matrices_are_guarded(call: str, runs: lt.Runs, unguarded: Counter[str]) -> None:
    CALLS[call](runs)
    assert not [place for place in unguarded if place.split()[-1] in SEARCHES]
    assert unguarded.total() <= FEW, unguarded.most_common(5)
