"""What is predicted on each benchmark or in each family: comparisons as weights of the algorithms at places."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import group_codes
from lmemtest.core.words import format_level, plural, spoken
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array

MEAN = "mean"  # what a deviation is from


def effect_plan(
    runs: Runs, contrast: str, by: str
) -> tuple[pd.DataFrame, Array, pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Cells (place and algorithm), the weights that make comparisons of their means, what was observed, and gaps.

    Places are instances, or families at each level of the conditions, with one of their benchmarks. The weights are
    (comparisons x units, cells); the table of what was observed has one row for each: unit (named "benchmark"),
    ``algorithm``, ``versus``, ``n_runs`` and ``observed``, which is NaN where an algorithm of the comparison was not
    run. By family it is the mean over the instances on which all of a comparison were run. Gaps are the algorithms
    without runs on a unit, or at one of its levels.
    """
    of_place = [*runs.instance, *(name for name in runs.family if name not in runs.instance)]
    seen, k = runs.study.cells([*of_place, runs.algorithm]), len(runs.algorithms)
    place, keys = group_codes([seen.frame[name] for name in of_place], len(seen.n))
    places = keys.frame()
    algorithm = pd.Index(runs.algorithms).get_indexer(pd.Index(seen.frame[runs.algorithm].astype(object)))
    means, n = np.full((len(places), k), np.nan), np.zeros((len(places), k))
    means[place, algorithm], n[place, algorithm] = seen.mean, seen.n
    names = tuple(format_level(level) for level in runs.algorithms)
    C, comparisons = np.eye(k) - 1.0 / k, [(name, MEAN) for name in names]
    if contrast == "pairs":
        pairs = list(itertools.combinations(range(k), 2))
        C = np.array([np.eye(k)[i] - np.eye(k)[j] for i, j in pairs])
        comparisons = [(names[i], names[j]) for i, j in pairs]
    ran, used = np.isfinite(means), C != 0
    if by == "family":
        families = family_columns(runs)
        at = places.groupby([*families, *runs.study.conditions], sort=False, observed=True).ngroup().to_numpy()
        columns = [*families, *runs.study.conditions, str(runs.benchmark)]
        instances, places = places, places.loc[np.unique(at, return_index=True)[1], columns].reset_index(drop=True)
        unit, units = pd.factorize(labels(places, families))
        whole = (ran[:, None] | ~used).all(axis=2)
        differences = pd.DataFrame(np.where(whole, np.nan_to_num(means) @ C.T, np.nan))
        observed = differences.groupby(unit[at]).mean().to_numpy().T.ravel()
        n_runs = pd.DataFrame(n @ used.T).groupby(unit[at]).sum().to_numpy().T.ravel()
        ran = pd.DataFrame(ran, index=instances.index).groupby(at).any().to_numpy()
    else:
        unit, units = pd.factorize(labels(places, [str(runs.benchmark)] if by == "benchmark" else runs.instance))
    M = (unit == np.arange(len(units))[:, None]) / np.bincount(unit)[:, None]
    weights = np.concatenate([np.kron(M, row) for row in C])
    if by != "family":
        incomplete = ((weights != 0) & np.isnan(means.ravel())).any(axis=1)
        observed = np.where(incomplete, np.nan, weights @ np.nan_to_num(means.ravel()))
        n_runs = (weights != 0) @ n.ravel()
    cells = places.iloc[np.repeat(np.arange(len(places)), k)].reset_index(drop=True)
    cells[runs.algorithm] = list(runs.algorithms) * len(places)
    table = pd.DataFrame({"benchmark": [*units] * len(comparisons)})
    table[["algorithm", "versus"]] = [pair for pair in comparisons for _ in units]
    lacking = {str(name): ~ran[unit == i].all(axis=0) for i, name in enumerate(units)}
    gaps = {name: tuple(itertools.compress(names, gone.tolist())) for name, gone in lacking.items() if gone.any()}
    return cells, weights, table.assign(n_runs=n_runs.astype(int), observed=observed), gaps


def family_columns(runs: Runs) -> list[str]:
    """The columns of the families that are the sample."""
    families = runs.study.sampled.families
    if not families:
        raise DesignError(
            f"by='family' needs {FEWEST_FAMILIES} families or more of several benchmarks, and {_why_no_sample(runs)}. "
            "by='benchmark' is about single benchmarks."
        )
    return list(families[0])


def _why_no_sample(runs: Runs) -> str:
    if not runs.family:
        return "the runs name none: Runs(..., family=...)"
    finest = runs.family[-1]
    n = runs.study.count(finest)
    if not runs.study.families and n > 1:
        return f"each of the {n} {plural(finest)} holds one"
    return f"there {'are' if n > 1 else 'is'} {n} {plural(finest) if n > 1 else spoken(finest)}"
