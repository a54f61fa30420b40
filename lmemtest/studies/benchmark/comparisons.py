"""Comparisons of algorithms on each benchmark, as linear functions ``L b + K u`` of a model's effects.

The effect of a group without runs (an algorithm on a benchmark where it was not run) is expected to be zero, has the
variance of its kind, and is independent of all runs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.data.cells import group_codes
from lmemtest.data.study import labels
from lmemtest.engine import prediction
from lmemtest.engine.error_slopes import theta_slopes
from lmemtest.errors import UnknownColumnError
from lmemtest.model.random_effects import representatives, shapes
from lmemtest.words import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.engine.criterion import Criterion
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

MEAN = "mean"  # what a deviation is from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Cells (instance and algorithm) and the weights that make comparisons of their means.

    ``weights`` is (targets, cells); targets run over the comparisons, then over the units. ``membership`` is (units,
    instances); ``complete`` says which targets have runs in all their cells.
    """

    by: str  # what the units are: "benchmark" or "instance"
    cells: pd.DataFrame
    observed: Array
    weights: Array
    units: tuple[str, ...]
    algorithms: tuple[str, ...]
    membership: Array
    comparisons: tuple[tuple[str, str], ...]
    n_runs: Array
    complete: NDArray[np.bool_]

    @classmethod
    def of(cls, runs: Runs, contrast: str, by: str) -> Plan:
        seen, k = runs.study.cells([*runs.instance, runs.algorithm]), len(runs.algorithms)
        instance, keys = group_codes([seen.frame[name] for name in runs.instance], len(seen.n))
        instances = keys.frame()
        cells = instances.iloc[np.repeat(np.arange(len(instances)), k)].reset_index(drop=True)
        cells[runs.algorithm] = list(runs.algorithms) * len(instances)
        place = instance * k + pd.Index(runs.algorithms).get_indexer(
            pd.Index(seen.frame[runs.algorithm].astype(object))
        )
        observed, n = np.full(len(cells), np.nan), np.zeros(len(cells))
        observed[place], n[place] = seen.mean, seen.n
        names = tuple(format_level(a) for a in runs.algorithms)
        C, comparisons = _contrasts(names, contrast)
        unit, units = pd.factorize(labels(instances, [str(runs.benchmark)] if by == "benchmark" else runs.instance))
        M = (unit == np.arange(len(units))[:, None]) / np.bincount(unit)[:, None]
        weights = np.concatenate([np.kron(M, row) for row in C])
        return cls(
            by=by,
            cells=cells,
            observed=observed,
            weights=weights,
            units=tuple(units),
            algorithms=names,
            membership=M,
            comparisons=comparisons,
            n_runs=(weights != 0) @ n,
            complete=~((weights != 0) & np.isnan(observed)).any(axis=1),
        )

    @property
    def gaps(self) -> dict[str, tuple[str, ...]]:
        """Unit -> algorithms without runs on it, or at one of its levels; units without gaps are left out."""
        absent = np.isnan(self.observed).reshape(-1, len(self.algorithms))
        by_unit = self.membership.astype(bool)
        lacking = [absent[row].any(axis=0) for row in by_unit]
        named = {
            unit: tuple(name for name, gone in zip(self.algorithms, there, strict=True) if gone)
            for unit, there in zip(self.units, lacking, strict=True)
        }
        return {unit: names for unit, names in named.items() if names}


def _contrasts(names: tuple[str, ...], contrast: str) -> tuple[Array, tuple[tuple[str, str], ...]]:
    k = len(names)
    if contrast == "mean":
        return np.eye(k) - 1.0 / k, tuple((name, MEAN) for name in names)
    pairs = list(itertools.combinations(range(k), 2))
    unit = np.eye(k)
    return np.array([unit[i] - unit[j] for i, j in pairs]), tuple((names[i], names[j]) for i, j in pairs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons:
    """Coefficients of the comparisons, ``unseen`` like ``targets.random`` for groups that have no runs."""

    targets: prediction.Targets
    unseen: tuple[Array, ...]

    @classmethod
    def of(cls, fit: LmmFit, plan: Plan) -> Comparisons:
        random, unseen = [], []
        for index, (q, k) in enumerate(shapes(fit)):
            basis, codes, n_new = _rows_of(fit, plan.cells, index, k)
            out = np.zeros((q + n_new, k, len(plan.weights)))
            for cell, code in enumerate(codes):
                out[code] += np.outer(basis[cell], plan.weights[:, cell])
            random.append(out[:q])
            unseen.append(out[q:])
        fixed = (plan.weights @ fit.design.rows(plan.cells))[:, fit.problem.kept]
        return cls(targets=prediction.Targets(fixed=fixed, random=tuple(random)), unseen=tuple(unseen))

    def __getitem__(self, which: NDArray[np.intp]) -> Comparisons:
        targets = prediction.Targets(
            fixed=self.targets.fixed[which], random=tuple(K[:, :, which] for K in self.targets.random)
        )
        return Comparisons(targets=targets, unseen=tuple(K[:, :, which] for K in self.unseen))

    def between(self, fit: LmmFit) -> Array:
        """Variances of the true comparisons between benchmarks."""
        both = [np.concatenate(pair) for pair in zip(self.targets.random, self.unseen, strict=True)]
        parts = [np.einsum("qac,ab,qbc->c", K, S, K) for K, S in zip(both, fit.covariances, strict=True)]
        return np.asarray(sum(parts, np.zeros(len(self.targets.fixed))))

    def error(self, fit: LmmFit, x: Array, at: Criterion) -> Array:
        """Covariance of the errors at parameters `x`: effects of groups without runs are independent of all runs."""
        problem = fit.problem
        out = prediction.covariance(problem, x, at, self.targets)
        unit = at.sigma2 * problem.y_scale**2
        for K, R, L in zip(self.unseen, problem.R, problem.unpack(x), strict=True):
            root = np.einsum("qac,ab->qbc", K, np.linalg.solve(R, L))
            out += unit * np.einsum("qbc,qbd->cd", root, root)
        return out

    def df(self, fit: LmmFit, variance: Array) -> Array:
        """Satterthwaite degrees of freedom of the errors, one computation for all of a kind."""
        first, alike = representatives(variance)
        return fit.curvature.error_df(variance[first], self[first].slopes(fit))[alike]

    def slopes(self, fit: LmmFit) -> Array:
        """Derivatives of the variances of the errors at a given residual variance, ``(c, n_free)``."""
        problem, x, at = fit.problem, fit.optim.theta, fit.optim.criterion
        new = [np.linalg.solve(R.T, K) for R, K in zip(problem.R, self.unseen, strict=True)]
        unit = at.sigma2 * problem.y_scale**2
        found = prediction.slopes(problem, x, at, self.targets)
        found[:, : problem.n_theta] += unit * theta_slopes(problem, x, new, len(found)).T
        return found


def _rows_of(fit: LmmFit, cells: pd.DataFrame, index: int, k: int) -> tuple[Array, NDArray[np.intp], int]:
    """Basis and group of each cell in a term; groups without runs have the numbers after those of the fit."""
    bar, n_levels = fit.design.parsed.bars[index], len(fit.design.random[index].levels)
    nothing = np.zeros((len(cells), k)), np.zeros(len(cells), dtype=np.intp), 0
    if not set(bar.groups) <= set(cells.columns):
        return nothing
    try:
        basis, codes = fit.design.random_rows(index, cells)
    except UnknownColumnError:  # a slope on something that is not known of an instance
        return nothing
    new = codes < 0
    group = cells.loc[new, list(bar.groups)].groupby(list(bar.groups), observed=True, sort=False).ngroup()
    codes = codes.copy()
    codes[new] = n_levels + group.to_numpy()
    return basis, codes, group.nunique()
