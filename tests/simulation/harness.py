"""What all simulations do: draw tables, ask something of each, hold the share of answers against a rate.

Random numbers come from one generator for all tables, or (`each`, `spawned`) from one for each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from lmemtest.errors import LmemtestError, LmemtestWarning
from lmemtest.lmm.distributions.studentized_range import ptukey

sys.path.append(str(Path(__file__).parents[1]))  # of study.py, where a simulation is run as a program

ALPHA = 0.05
SEEN: list[tuple[str, int, float]] = []  # of the test that runs: the rule, the number of tables, the share
Array = np.ndarray
Seeds = Callable[[int], Any]


def each(*seed: int) -> Seeds:
    """A generator for each table: that of ``[k, *seed]``."""
    return lambda k: [k, *seed]


def spawned(rng: int) -> Seeds:
    """A generator for each table, as `lmemtest.core.replicates.replicate` spawns them."""
    entropy = np.random.default_rng(rng).integers(2**32, size=4).tolist()
    return lambda k: np.random.SeedSequence(entropy, spawn_key=(k,))


def rate_of(study: Callable[[np.random.Generator], Any], n: int, rng: Any, *, refused: Any = None) -> Any:
    """Mean of what `study(generator)` says of n tables: a bool, a number, an array, or a dict of them; NaN left out.

    `rng` is what `numpy.random.default_rng` takes, or `each(...)`. Warnings of the library are silenced. Its refusals
    are errors, or count as `refused`.
    """
    answers = answers_of(study, n, rng, refused=refused)
    if isinstance(answers[0], dict):
        return {name: _mean([answer[name] for answer in answers]) for name in answers[0]}
    return _mean(answers)


def answers_of(study: Callable[[np.random.Generator], Any], n: int, rng: Any, *, refused: Any = None) -> list[Any]:
    """What `study` says of each table."""
    shared = None if callable(rng) else np.random.default_rng(rng)
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LmemtestWarning)
        for k in range(n):
            try:
                answers.append(study(np.random.default_rng(rng(k)) if shared is None else shared))
            except LmemtestError:
                if refused is None:
                    raise
                answers.append(refused)
    return answers


def _mean(values: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nothing but NaN
        mean = np.nanmean(np.array(values, dtype=float), axis=0)
    return float(mean) if mean.ndim == 0 else mean


# ---------------------------------------------------------------------- shares of n tables against a rate


def p_value(share: float, n: int, rate: float, side: str = "two-sided") -> float:
    """Exact binomial test; what was seen is noted (`--record-rates`)."""
    rule = {"greater": "at most", "less": "at least", "two-sided": "about"}[side]
    SEEN.append((f"{rule} {rate:g}", int(n), round(float(share), 4)))
    return float(stats.binomtest(round(share * n), n, rate, alternative=side).pvalue)


def at_most(share: float, n: int, rate: float = ALPHA, p: float = 0.001) -> bool:
    """Whether the share is no evidence against a rate of at most this."""
    return p_value(share, n, rate, "greater") > p


def at_least(share: float, n: int, rate: float = 1.0 - ALPHA, p: float = 0.001) -> bool:
    return p_value(share, n, rate, "less") > p


def about(share: float, n: int, rate: float = ALPHA, p: float = 0.001) -> bool:
    return p_value(share, n, rate) > p


# ---------------------------------------------------------------------- what is asked of a table


def differs(comparisons: Any, column: str = "p_value") -> bool:
    """Whether any pair is called different."""
    table = comparisons if hasattr(comparisons, "columns") else comparisons.to_frame()
    return bool((table[column] < ALPHA).any())


def covers(intervals: Any, truth: Any, of: str = "ci", suffix: str = "") -> Any:
    """Which intervals of a table, a row or a curve hold the truth."""
    low, high = (getattr(intervals, f"{of}_{end}{suffix}") for end in ("low", "high"))
    return (low <= truth) & (truth <= high)


def off_zero(intervals: Any) -> Any:
    """Which intervals exclude zero."""
    return (intervals.ci_low > 0) | (intervals.ci_high < 0)


def tukey_differs(scores: Array) -> bool:
    """Tukey's test over the means of benchmarks: that of the recommended model of a balanced table."""
    means = scores.mean(axis=2)
    benchmarks, k = means.shape
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (benchmarks - 1) * (k - 1)
    error = np.sqrt((rest**2).sum() / df / benchmarks)
    return bool(ptukey(np.ptp(means.mean(axis=0)) / error, k, df, upper=True) < ALPHA)


# ---------------------------------------------------------------------- the programs


def printed(rates: Callable[..., Any], designs: Mapping[Any, tuple[Any, ...]] | Iterable[tuple[Any, ...]]) -> None:
    """Print percentages by design: ``rates(*design)`` under the name of the design, or under its arguments."""
    named = isinstance(designs, Mapping)
    for design in designs:
        start = time.process_time()
        found = rates(*(designs[design] if named else design))
        names = list(found) if isinstance(found, dict) else None
        values = np.ravel(list(found.values()) if names else found).tolist()
        cells = [f"{100.0 * value:.1f}" for value in values]
        if names and len(names) == len(cells):
            cells = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
        label = design if named else ", ".join(map(str, design))
        print(f"| {label} | {' | '.join(cells)} | {time.process_time() - start:.0f} s", flush=True)
