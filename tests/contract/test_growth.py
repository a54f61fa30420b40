"""How the work of what users call grows with a table, counted: calls of functions, and the peak of memory.

Exponents are those from a table to one of four times its size. Work that is done for each benchmark, pair or run by
itself has an exponent of calls of one or more; here it is done for all at once. `make bench-shapes` has the seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from growth import calls, exponent, exponents, peak
from study import make_runs

import lmemtest as lt
from lmemtest.bench.data.study import labels
from lmemtest.lmm.engine.problem import build_problem
from lmemtest.lmm.engine.structure import RandomTerm

pytestmark = pytest.mark.level(1)

AXES = {"benchmarks": ((4, 12, 3), (4, 48, 3)), "algorithms": ((4, 8, 3), (16, 8, 3)), "seeds": ((4, 6, 5), (4, 6, 20))}


def runs_of(*sizes: int) -> lt.Runs:
    """Of algorithms, benchmarks and seeds."""
    algorithms, benchmarks, seeds = ([*map(str, range(n))] for n in sizes)
    sds = {"benchmark": 1.0, "benchmark:algorithm": 0.2, "benchmark:seed": 0.1}
    return make_runs(algorithms, benchmarks, seeds, sds=sds, noise=0.3, rng=1)  # one model for all sizes


def default_pairs(runs: lt.Runs) -> Any:
    return lt.fit_lmm(lt.recommend(runs).formula, runs).emmeans("algorithm").pairs().table


def rules_of_two_values(runs: lt.Runs) -> Any:
    table = runs.to_frame()
    solved = table.assign(loss=(table["loss"] > 0).astype(int))[lambda rows: rows.index % 7 > 0]
    return lt.check(lt.Runs(solved, **runs.roles()), rules_only=True)


CALLS: dict[str, Callable[[lt.Runs], Any]] = {
    "default pairs": default_pairs,
    "analyze": lt.analyze,
    "check": lt.check,
    "rules, of two values and with gaps": rules_of_two_values,
    "rank": lt.rank,
    "rank, bayesian": lambda runs: lt.rank(runs, "bayesian", n_draws=1000, rng=0),
    "seed_effect": lt.seed_effect,
    "robustness": lt.robustness,
    "outperforming": lambda runs: lt.outperforming(runs, rng=0),
    "the same, not paired": lambda runs: lt.outperforming(runs, paired=False),
}
# The table has a row for every pair of algorithms and benchmark.
BY_PAIR = {("outperforming", "algorithms"), ("the same, not paired", "algorithms")}


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    "axis", ["benchmarks", *(pytest.param(axis, marks=pytest.mark.level(2)) for axis in [*AXES][1:])]
)
@pytest.mark.parametrize("name", CALLS)
def test_no_call_grows_faster_than_the_table(name, axis):
    small, large = (runs_of(*sizes) for sizes in AXES[axis])
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_calls, of_memory = exponents((calls, peak), lambda: call(small), lambda: call(large))
    assert of_calls < 0.5
    assert of_memory < (2.3 if (name, axis) in BY_PAIR else 1.6)


def test_memory_of_pairs_grows_with_their_number():
    few, many = (
        lt.fit_lmm("loss ~ algorithm + (1 | benchmark)", runs_of(k, 6, 1)).emmeans("algorithm") for k in (50, 200)
    )
    assert exponent(peak, few.pairs, many.pairs) < 2.3  # pairs are the square; with a row of all means each, the cube


def test_labels_are_joined_for_instances_and_not_for_rows():
    small, large = (pd.DataFrame({"task": [1, 2] * n, "prior": [0.5, 0.5] * n}) for n in (1_000, 4_000))
    assert exponent(calls, lambda: labels(small, list(small)), lambda: labels(large, list(large))) < 0.5


def of_families(families: int) -> int:
    """Numbers that benchmarks in families have in common with fixed means of 10 algorithms in every family."""
    a, b, s = (codes.ravel() for codes in np.indices((10, 5 * families, 2)))
    one = np.ones(len(a))
    terms = [RandomTerm(one[:, None], codes, int(codes.max()) + 1) for codes in (b, a + 10 * b, s + 2 * b)]
    means = np.tril(np.ones((10 * families,) * 2))
    y = np.random.default_rng(0).normal(size=len(a))
    kept = y < 1.0  # with gaps
    terms = [RandomTerm(t.basis[kept], t.codes[kept], t.n_levels) for t in terms]
    rows, n = (a + 10 * (b // 5))[kept], one[kept]
    made = build_problem(terms, means, y[kept], rows=rows, n=n, weight=n, ss=0.0 * n, reml=True)
    return sum(stage.V.values.size for stage in made.system.chain)


def test_means_in_families_do_not_meet_the_benchmarks_of_other_families():
    assert of_families(80) < 4.2 * of_families(20)
