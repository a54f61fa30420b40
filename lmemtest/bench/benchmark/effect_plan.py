"""What is predicted on each benchmark or in each family: comparisons as weights of the algorithms at places."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import group_codes
from lmemtest.core.words import format_level, plural, spoken
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array

    Comparisons = tuple[tuple[str, str], ...]

MEAN = "mean"  # what a deviation is from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Cells (place and algorithm) and the weights that make comparisons of their means.

    Places are instances, or families at each level of the conditions. ``weights`` is (targets, cells); targets run over
    the comparisons, then over the units. ``membership`` is (units, places), ``absent`` (places, algorithms) where an
    algorithm was not run; ``observed`` differences are NaN where one of the comparison was not.
    """

    by: str  # what the units are: "benchmark", "instance" or "family"
    cells: pd.DataFrame
    observed: Array
    weights: Array
    units: tuple[str, ...]
    algorithms: tuple[str, ...]
    membership: Array
    absent: NDArray[np.bool_]
    comparisons: Comparisons
    n_runs: Array
    benchmark: str | None = None  # by family: of the cells, one of each for fixed effects, which cancel; not for modes

    @property
    def of_modes(self) -> pd.DataFrame:
        """What tells the groups of random effects apart that are predicted."""
        return self.cells if self.benchmark is None else self.cells.drop(columns=self.benchmark)

    @classmethod
    def of(cls, runs: Runs, contrast: str, by: str) -> Plan:
        families = [name for name in runs.family if name not in runs.instance]
        of_place = [*runs.instance, *families]
        seen, k = runs.study.cells([*of_place, runs.algorithm]), len(runs.algorithms)
        place, keys = group_codes([seen.frame[name] for name in of_place], len(seen.n))
        places = keys.frame()
        at = place * k + pd.Index(runs.algorithms).get_indexer(pd.Index(seen.frame[runs.algorithm].astype(object)))
        means, n = np.full(len(places) * k, np.nan), np.zeros(len(places) * k)
        means[at], n[at] = seen.mean, seen.n
        names = tuple(format_level(a) for a in runs.algorithms)
        C, comparisons = _contrasts(names, contrast)
        if by == "family":
            return cls._of_families(runs, places, means.reshape(-1, k), n.reshape(-1, k), C, comparisons)
        unit, units = pd.factorize(labels(places, [str(runs.benchmark)] if by == "benchmark" else runs.instance))
        M = (unit == np.arange(len(units))[:, None]) / np.bincount(unit)[:, None]
        weights = np.concatenate([np.kron(M, row) for row in C])
        incomplete = ((weights != 0) & np.isnan(means)).any(axis=1)
        return cls(
            by=by,
            cells=_with_algorithms(places, runs),
            observed=np.where(incomplete, np.nan, weights @ np.nan_to_num(means)),
            weights=weights,
            units=tuple(units),
            algorithms=names,
            membership=M,
            absent=np.isnan(means).reshape(-1, k),
            comparisons=comparisons,
            n_runs=(weights != 0) @ n,
        )

    @classmethod
    def _of_families(
        cls,
        runs: Runs,
        instances: pd.DataFrame,
        means: Array,
        n: Array,
        C: Array,
        comparisons: tuple[tuple[str, str], ...],
    ) -> Plan:
        """Families; observed is the mean over the instances on which all of a comparison were run."""
        own = family_columns(runs)
        names = [*own, *(name for name in runs.study.conditions)]
        place = instances.groupby(names, sort=False, observed=True).ngroup().to_numpy()
        benchmark = str(runs.benchmark)
        first = np.unique(place, return_index=True)[1]
        places = instances.loc[first, [*names, benchmark]].reset_index(drop=True)
        unit, units = pd.factorize(labels(places, own))
        M = (unit == np.arange(len(units))[:, None]) / np.bincount(unit)[:, None]
        used = C != 0
        there = ~np.isnan(means)
        differences = np.where((~there[:, None] & used).any(axis=2), np.nan, np.nan_to_num(means) @ C.T)
        of_units = pd.DataFrame(differences).groupby(unit[place]).mean().to_numpy()
        runs_of = pd.DataFrame(n @ used.T).groupby(unit[place]).sum().to_numpy()
        return cls(
            by="family",
            cells=_with_algorithms(places, runs),
            observed=of_units.T.ravel(),
            weights=np.concatenate([np.kron(M, row) for row in C]),
            units=tuple(units),
            algorithms=tuple(format_level(a) for a in runs.algorithms),
            membership=M,
            absent=~(pd.DataFrame(there).groupby(place).any().to_numpy()),
            comparisons=comparisons,
            n_runs=runs_of.T.ravel(),
            benchmark=benchmark,
        )

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Targets that were observed."""
        return ~np.isnan(self.observed)

    @property
    def gaps(self) -> dict[str, tuple[str, ...]]:
        """Unit -> algorithms without runs on it, or at one of its levels; units without gaps are left out."""
        by_unit = self.membership.astype(bool)
        lacking = [self.absent[row].any(axis=0) for row in by_unit]
        named = {
            unit: tuple(name for name, gone in zip(self.algorithms, there, strict=True) if gone)
            for unit, there in zip(self.units, lacking, strict=True)
        }
        return {unit: names for unit, names in named.items() if names}


def family_columns(runs: Runs) -> list[str]:
    """The columns of the families that are the sample."""
    found = runs.study.sampled
    if found.noun != "family":
        raise DesignError(
            f"by='family' needs {FEWEST_FAMILIES} families or more of several benchmarks, and {_why_no_sample(runs)}. "
            "by='benchmark' is about single benchmarks."
        )
    return next(list(columns) for columns in runs.study.families if columns[-1] == found.column)


def _why_no_sample(runs: Runs) -> str:
    if not runs.family:
        return "the runs name none: Runs(..., family=...)"
    finest = runs.family[-1]
    n = runs.study.count(finest)
    if not runs.study.families and n > 1:
        return f"each of the {n} {plural(finest)} holds one"
    return f"there {'are' if n > 1 else 'is'} {n} {plural(finest) if n > 1 else spoken(finest)}"


def _with_algorithms(places: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """Every algorithm at every place."""
    cells = places.iloc[np.repeat(np.arange(len(places)), len(runs.algorithms))].reset_index(drop=True)
    cells[runs.algorithm] = list(runs.algorithms) * len(places)
    return cells


def _contrasts(names: tuple[str, ...], contrast: str) -> tuple[Array, Comparisons]:
    k = len(names)
    if contrast == "mean":
        return np.eye(k) - 1.0 / k, tuple((name, MEAN) for name in names)
    pairs = list(itertools.combinations(range(k), 2))
    unit = np.eye(k)
    return np.array([unit[i] - unit[j] for i, j in pairs]), tuple((names[i], names[j]) for i, j in pairs)
