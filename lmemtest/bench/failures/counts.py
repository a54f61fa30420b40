r"""Failures by algorithm and benchmark, and tests of whether algorithms fail alike.

Notation: on benchmark b, K_b of N_b runs failed. Where failing has nothing to do with the algorithm and runs fail
independently, each choice of the K_b runs is equally likely, so the failures of n of these runs are hypergeometric, and
their sum over benchmarks is the convolution of these: an exact test (of Fisher's kind, stratified by benchmark). Runs
of an algorithm on a benchmark may fail together, by one cause; then only whole columns can be exchanged: the rate of an
algorithm on b is any of the rates there, and its sum is the convolution of these choices. Two algorithms are compared
by the signs of the differences of their rates, which is the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, ndtr

from lmemtest.bench.data.failures import refuse_without_failures
from lmemtest.bench.data.study import ONLY_INSTANCE, labels
from lmemtest.core.codes import group_codes
from lmemtest.core.resampling import sign_patterns

if TYPE_CHECKING:
    from typing import Any

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask

_MOST_EXACT = 3000  # failures of a pair of algorithms; of more the sum is normal to all digits that matter
_TIE = 1.0 + 1e-7  # tables that are as likely as the observed one, but for rounding
_MOST_PATTERNS = 8192  # all signs of 14 benchmarks
_FINEST = 5040  # parts of a rate that are told apart: every share of up to 10 runs is so many of them
_MOST_SUMS = 250_000  # sums of rates; of more benchmarks the sum is normal to all digits that matter


def failure_counts(runs: Runs) -> tuple[Index, Index, tuple[str, ...], Index | None]:
    """Failed runs and runs, ``(benchmarks, algorithms)``; the benchmarks, and the family of each if there are several.

    A run with several budgets failed if it did at any. Algorithms are in the order of their levels.
    """
    refuse_without_failures(runs)
    source = with_failures(runs)
    where = [*([source.benchmark] if source.benchmark else []), *source.study.crossed]
    families = [*source.study.families[0]] if source.study.families else []  # the coarsest
    keys = [*where, *families, source.algorithm]
    groups = source.study.failures.study.groups(keys if source.budget is None else [*keys, *source.study.run])
    frame = groups.keys.frame()
    n, k = (groups.n, groups.n * groups.mean) if source.budget is None else (np.ones(len(frame)), groups.high)
    (row, benchmarks), (column, algorithms), (own, _) = (
        group_codes([frame[name] for name in columns], len(frame)) for columns in (where, [source.algorithm], families)
    )
    failed, ran = np.zeros((2, benchmarks.size, algorithms.size), dtype=np.intp)
    np.add.at(failed, (row, column), np.rint(k).astype(np.intp))
    np.add.at(ran, (row, column), np.rint(n).astype(np.intp))
    family = np.zeros(benchmarks.size, dtype=np.intp)
    family[row] = own
    names = labels(benchmarks.frame(), where) if where else [ONLY_INSTANCE]
    return failed, ran, tuple(names), family if families else None


def with_failures(runs: Runs) -> Runs:
    """The runs that say which of them failed, before a policy scored those."""
    return runs if runs.failed is not None else runs.failures.source  # type: ignore[union-attr]


def rates_by_population(failed: Index, ran: Index, family: Index | None = None) -> dict[str, Array]:
    """The share that failed by benchmark ("run", "benchmark") and its mean by family; NaN where nothing ran.

    Populations are those of which something can be said, from the narrowest.

    >>> shares = rates_by_population(np.array([[1, 0], [2, 0]]), np.array([[2, 2], [2, 0]]), np.array([0, 0]))
    >>> {name: rates.tolist() for name, rates in shares.items()}
    {'run': [[0.5, 0.0], [1.0, nan]], 'benchmark': [[0.5, 0.0], [1.0, nan]], 'family': [[0.75, 0.0]]}
    """
    with np.errstate(invalid="ignore"):
        rates: Array = failed / ran
        by = {"run": rates, "benchmark": rates} if len(rates) > 1 else {"run": rates}
        if family is None:
            return by
        known = np.isfinite(rates)
        sums, counts = np.zeros((2, family.max() + 1, rates.shape[1]))
        np.add.at(sums, family, np.where(known, rates, 0.0))
        np.add.at(counts, family, known)
        return {**by, "family": sums / counts}


def failed_everywhere(runs: Runs) -> tuple[tuple[Any, Any, int], ...]:
    """Algorithm, seed and number of benchmarks, where an algorithm failed with a seed on all of three or more.

    None of algorithms that failed with every seed: there the seed has nothing to do with it.
    """
    source = with_failures(runs)
    algorithm, seed, benchmark = source.algorithm, source.seed, source.benchmark
    if seed is None or benchmark is None or not source.seed_shared:
        return ()
    groups = source.study.failures.study.groups([algorithm, seed, benchmark])
    frame = groups.keys.frame().assign(failed=groups.high)
    found = frame.groupby([algorithm, seed], observed=True, sort=False)["failed"].agg(["min", "size"])
    always = found["min"].groupby(level=0, observed=True).transform("min") == 1.0
    found = found[(found["min"] == 1.0) & (found["size"] > 2) & ~always]
    return tuple((name, own, int(size)) for (name, own), size in found["size"].items())


def recovered_runs(runs: Runs) -> tuple[int, int]:
    """How many runs failed at some budget, and how many of these have a score at a later one."""
    source = with_failures(runs)
    if source.budget is None or source.study.count(source.budget) == 1:
        return 0, 0
    of_run = list(source.study.run)
    groups = source.study.failures.study.groups([*of_run, source.budget])
    frame = groups.keys.frame().assign(failed=groups.high > 0, all_failed=groups.low > 0)
    number = frame.groupby(of_run, observed=True, sort=False).ngroup().to_numpy()
    budget = frame[source.budget].to_numpy(dtype=float)
    first, last = np.full(number.max() + 1, np.inf), np.full(number.max() + 1, -np.inf)
    np.minimum.at(first, number, np.where(frame["failed"], budget, np.inf))
    np.maximum.at(last, number, np.where(frame["all_failed"], -np.inf, budget))
    return int(np.isfinite(first).sum()), int((np.isfinite(first) & (last > first)).sum())


def stratified_p_value(failed: Index, runs: Index, own: Mask) -> float:
    """Whether the algorithms that are `own` fail as often as the others on the same benchmarks; exact, two-sided.

    >>> one = np.array([[5, 0]]), np.array([[5, 5]])
    >>> round(stratified_p_value(*one, np.array([True, False])), 4)  # Fisher's test: 2 / 252
    0.0079
    """
    N, K = runs.sum(axis=1), failed.sum(axis=1)
    n, k = runs[:, own].sum(axis=1), failed[:, own].sum(axis=1)
    said = (K > 0) & (K < N) & (n > 0) & (n < N)  # elsewhere all or none failed, or one side did not run
    N, K, n, k = N[said], K[said], n[said], k[said]
    observed = int(k.sum())
    if K.sum() > _MOST_EXACT:
        variance = (n * (N - n) * K * (N - K) / (N**2 * (N - 1.0))).sum()
        gap = max(abs(observed - (n * K / N).sum()) - 0.5, 0.0)
        return float(2.0 * ndtr(-gap / np.sqrt(variance)))
    chances, start = np.ones(1), 0
    for strat in zip(N, K, n, strict=True):
        first, pmf = _hypergeometric(*strat)
        chances, start = np.convolve(chances, pmf), start + first
    return float(min(1.0, chances[chances <= _TIE * chances[observed - start]].sum()))


def _hypergeometric(N: int, K: int, n: int) -> tuple[int, Array]:
    """The first value that can occur, and the chances from there on."""

    def log_choose(n: int | Index, k: int | Index) -> Array:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)  # type: ignore[no-any-return]

    x = np.arange(max(0, n + K - N), min(K, n) + 1)
    return int(x[0]), np.exp(log_choose(K, x) + log_choose(N - K, n - x) - log_choose(N, n))


def exchanged_p_value(rates: Array, own: int) -> float:
    """Whether an algorithm's rates are any of those of their benchmarks; exact, two-sided, however runs fail together.

    ``rates`` are ``(benchmarks, algorithms)``, NaN where an algorithm did not run.

    >>> round(exchanged_p_value(np.array([[0.2, 0.0, 0.0], [1.0, 0.4, 0.4]]), 0), 4)  # it is ahead on both: 1 / 9
    0.1111
    """
    rates = rates[np.isfinite(rates[:, own])]
    rates = rates[np.nanmax(rates, axis=1, initial=0) > np.nanmin(rates, axis=1, initial=1)]
    if not len(rates):
        return 1.0
    known = np.isfinite(rates)
    centre = float(np.nanmean(rates, axis=1).sum())
    gap = abs(float(rates[:, own].sum()) - centre)
    grid = min(
        math.lcm(*(Fraction(x).limit_denominator(_FINEST).denominator for x in np.unique(rates[known]))), _FINEST
    )
    if len(rates) * grid > _MOST_SUMS:
        return float(2.0 * ndtr(-gap / np.sqrt(np.nanvar(rates, axis=1).sum())))
    chances = np.zeros(len(rates) * grid + 1)
    chances[0] = 1.0
    for x, there in zip(rates, known, strict=True):
        values, times = np.unique(np.rint(grid * x[there]).astype(int), return_counts=True)
        chances = sum(share * _shifted(chances, by) for by, share in zip(values, times / there.sum(), strict=True))
    away = np.abs(np.arange(len(chances)) - grid * centre)
    rounding = 1e-6 if grid < _FINEST else float(len(rates))
    return float(min(1.0, chances[away >= grid * gap - rounding].sum()))


def _shifted(chances: Array, by: int) -> Array:
    """Those of the sum with a number added; none leaves the end."""
    return np.concatenate([np.zeros(by), chances[: len(chances) - by]])


def alike_p_values(failed: Index, ran: Index, family: Index | None = None) -> dict[str, float]:
    """Whether failing has anything to do with the algorithm: by the smallest p-value of one against the rest.

    By population, from the narrowest: for "run" runs fail independently; for "benchmark" and "family" those of an
    algorithm may fail together.
    """
    many = failed.shape[1]
    p_values = {}
    for population, rates in rates_by_population(failed, ran, family).items():
        if population == "run":
            tests = [stratified_p_value(failed, ran, np.arange(many) == i) for i in range(many)]
        else:
            tests = [exchanged_p_value(rates, i) for i in range(many)]
        p_values[population] = min(1.0, min(tests) * (many if many > 2 else 1))
    return p_values


def flipped_p_value(differences: Array, rng: np.random.Generator | int | None) -> float:
    """Whether differences are as likely to be turned round, each by itself; exact up to 14 that are not zero.

    >>> flipped_p_value(np.array([0.2, 0.0, 0.4, 0.2]), None)
    0.25
    """
    moving = differences[np.isfinite(differences) & (np.abs(differences) > 1e-12)]
    if not len(moving):
        return 1.0
    signs, exact = sign_patterns(len(moving), _MOST_PATTERNS, rng)
    reached = np.abs(signs @ moving) >= abs(moving.sum()) - 1e-9
    return float(reached.mean()) if exact else float((1 + reached.sum()) / (1 + len(reached)))
