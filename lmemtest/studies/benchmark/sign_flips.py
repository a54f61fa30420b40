"""Is the mean outcome of one algorithm against another the same at two levels of a metafeature, and how sure is it?

Under the hypothesis that the difference between the algorithms is the same at both levels, a table of runs is its means
with this common difference, and residuals. New tables flip the signs of the residuals, of all runs of a seed together
and with all their budgets (a wild bootstrap, clustered by seed): so neither the budgets of a run nor the runs of a seed
need be independent, and algorithms and levels may scatter differently.

References
----------
Wu (1986), doi:10.1214/aos/1176350142; Cameron, Gelbach & Miller (2008), doi:10.1162/rest.90.3.414
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.inference.distributions.student import t_quantile
from lmemtest.studies.benchmark.outcomes import PairScores, outcomes_of, pooled_error, t_ratios

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Sums of squares by subtraction keep about half of the digits: what is smaller, relative to the spread, is zero.
_ROUNDING = 1e-7
_CHUNK = 4_000_000  # draws times budgets held at once: 32 MB an array
_SAME = 1e-9  # of mean outcomes: sums of ones and zeros over the same number


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    """Residuals of the runs of one algorithm (or of the differences of two) at one level, and whose seeds they are."""

    residuals: Array  # (n, budgets)
    seeds: NDArray[np.intp]

    @classmethod
    def of(cls, values: Array, ran: NDArray[np.bool_]) -> _Cell:
        n = len(values)
        # residuals are smaller than errors by 1 - 1/n in variance
        return cls((values - values.mean(axis=0)) * np.sqrt(n / (n - 1.0)), np.flatnonzero(ran))

    def moments(self, signs: Array) -> tuple[float, Array, Array]:
        """Count, means and variances of the residuals with new signs, ``(draws, budgets)``."""
        n = float(len(self.residuals))
        mean = signs[:, self.seeds] @ self.residuals / n
        squares = (self.residuals**2).sum(axis=0)
        return n, mean, np.maximum(squares - n * mean**2, 0.0) / (n - 1.0)

    def scaled(self, unit: Array) -> _Cell:
        return _Cell(self.residuals / unit, self.seeds)


def flip_p(
    pairs: PairScores,
    benchmark: int,
    late: int,
    early: int,
    *,
    observed: float,
    test: str,
    alpha: float,
    n: int,
    rng: np.random.Generator,
) -> float:
    """p-value of a contrast of mean outcomes between two levels of one benchmark.

    Parameters
    ----------
    pairs : PairScores
    benchmark, late, early : int
        Positions of the benchmark and of the levels.
    observed : float
        Mean outcome at the late level minus that at the early one.
    test : {"two-sample", "paired"}
        The test at each point.
    alpha : float
        Its level.
    n : int
        Random signs for all seeds.
    rng : numpy.random.Generator

    Returns
    -------
    float
        ``(1 + number of tables that are at least as extreme) / (n + 1)``, two-sided.
    """
    levels, common = _levels(pairs, benchmark, (late, early), test)
    n_seeds = pairs.ran.shape[-1]
    extreme, done = 0, 0
    while done < n:
        size = min(n - done, max(_CHUNK // max(len(common), 1), 1))
        signs = 2.0 * rng.integers(0, 2, size=(size, n_seeds)) - 1.0
        means = [_mean_outcomes(cells, common, np.asarray(signs, dtype=np.float64), alpha) for cells in levels]
        extreme += int((np.abs(means[0] - means[1]) >= abs(observed) - _SAME).sum())
        done += size
    return (1.0 + extreme) / (n + 1.0)


def drawn_outcomes(
    pairs: PairScores,
    instances: list[tuple[int, int]],
    *,
    test: str,
    alpha: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Mean outcomes of tables with the differences of the algorithms that were observed, and new signs of residuals.

    Parameters
    ----------
    pairs : PairScores
    instances : list of tuple of two int
        Positions of benchmarks and levels.
    test : {"two-sample", "paired"}
        The test at each point.
    alpha : float
        Its level.
    n : int
        Tables; the signs of a seed are the same on all instances.
    rng : numpy.random.Generator

    Returns
    -------
    draws : (n, instances) float
        1 where the first algorithm is better at all budgets.
    df : (instances,) float
        Degrees of freedom of the tests at the points.
    """
    signs = np.asarray(2.0 * rng.integers(0, 2, size=(n, pairs.ran.shape[-1])) - 1.0, dtype=np.float64)
    draws, df = np.empty((n, len(instances))), np.empty(len(instances))
    for column, (b, v) in enumerate(instances):
        cells, difference = _instance(pairs, b, v, test)
        unit = _unit([cells], pairs.scores[b])
        scaled = [cell.scaled(unit) for cell in cells]
        draws[:, column] = pairs.sign * _mean_outcomes(scaled, difference / unit, signs, alpha)
        df[column] = sum(len(cell.residuals) - 1.0 for cell in cells)
    return draws, df


def _instance(pairs: PairScores, benchmark: int, level: int, test: str) -> tuple[list[_Cell], Array]:
    """Cells of one instance, and the difference of the algorithms at each budget: second minus first."""
    ran, scores = pairs.ran[benchmark, level], pairs.scores[benchmark, level][..., pairs.shared[benchmark]]
    if test == "paired":
        both = ran.all(axis=0)
        values = scores[1, both] - scores[0, both]
        return [_Cell.of(values, both)], np.asarray(values.mean(axis=0))
    parts = [scores[a, ran[a]] for a in (0, 1)]
    return [_Cell.of(part, ran[a]) for a, part in enumerate(parts)], parts[1].mean(axis=0) - parts[0].mean(axis=0)


def _unit(levels: list[list[_Cell]], scores: Array) -> Array:
    """The spread of the residuals at each budget; 1 where they are rounding."""
    unit: Array = np.sqrt(np.mean([(cell.residuals**2).mean(axis=0) for level in levels for cell in level], axis=0))
    unit[unit <= _ROUNDING**2 * np.abs(scores[np.isfinite(scores)]).max()] = 1.0
    return unit


def _levels(pairs: PairScores, benchmark: int, levels: tuple[int, int], test: str) -> tuple[list[list[_Cell]], Array]:
    """Cells of both levels and the common difference at each budget, all in units of the residuals' spread."""
    (first, one), (second, other) = (_instance(pairs, benchmark, v, test) for v in levels)
    cells = [first, second]
    common: Array = 0.5 * (one + other)
    unit = _unit(cells, pairs.scores[benchmark][..., pairs.shared[benchmark]])
    return [[cell.scaled(unit) for cell in level] for level in cells], np.asarray(common / unit, dtype=np.float64)


def _mean_outcomes(cells: list[_Cell], common: Array, signs: Array, alpha: float) -> Array:
    """Mean outcome of every draw at one level, up to a sign that is the same at all levels."""
    moments = [cell.moments(signs) for cell in cells]
    if len(moments) == 1:
        n, difference, variance = moments[0]
        error, df = variance / n, n - 1.0
    else:
        (n1, m1, v1), (n2, m2, v2) = moments
        difference = m2 - m1
        error, df = pooled_error(n1, v1, n2, v2)
    t = t_ratios(difference + common, error, _ROUNDING)
    return np.asarray(outcomes_of(t, t_quantile(alpha / 2.0, df)).mean(axis=1))
