"""Is the mean outcome of one algorithm against another the same at two levels of a metafeature?

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

from lmemtest.inference.multiplicity import t_quantile
from lmemtest.recipes.outcomes import PairScores, outcomes_of, pooled_error, t_ratios

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


def _levels(pairs: PairScores, benchmark: int, levels: tuple[int, int], test: str) -> tuple[list[list[_Cell]], Array]:
    """Cells of both levels and the common difference at each budget, all in units of the residuals' spread."""
    ran, scores = pairs.ran[benchmark], pairs.scores[benchmark][..., pairs.shared[benchmark]]
    cells, differences = [], []
    for v in levels:
        if test == "paired":
            both = ran[v].all(axis=0)
            parts = [scores[v, 1, both] - scores[v, 0, both]]
            cells.append([_Cell.of(parts[0], both)])
            differences.append(parts[0].mean(axis=0))
        else:
            parts = [scores[v, a, ran[v, a]] for a in (0, 1)]
            cells.append([_Cell.of(part, ran[v, a]) for a, part in enumerate(parts)])
            differences.append(parts[1].mean(axis=0) - parts[0].mean(axis=0))
    common: Array = 0.5 * (differences[0] + differences[1])
    unit: Array = np.sqrt(np.mean([(cell.residuals**2).mean(axis=0) for level in cells for cell in level], axis=0))
    unit[unit <= _ROUNDING**2 * np.abs(scores[np.isfinite(scores)]).max()] = 1.0
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
