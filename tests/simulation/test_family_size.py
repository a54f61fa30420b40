"""False differences where benchmarks come in families: new families, new benchmarks of these, families ignored.

`python tests/simulation/test_family_size.py [TABLES]` prints the tables of docs/families.md and docs/validation.md.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt

pytestmark = pytest.mark.level(3)
ALGORITHMS = 4


@dataclass(frozen=True)
class Design:
    """Families of 1 to 20 benchmarks (2 to 20 with `several`), or of data sets that several families share."""

    families: int
    share: float  # variance of family:algorithm relative to that of benchmark:algorithm
    several: bool = False
    crossed: bool = False
    erratic: bool = False  # the last algorithm's advantages vary three times as much (standard deviation)

    def table(self, rng: np.random.Generator, *, these: bool) -> pd.DataFrame:
        """All algorithms equal over families like these, or over the benchmarks of exactly these."""
        sizes = np.round(np.geomspace(2 if self.several or self.crossed else 1, 20, self.families)).astype(int)
        family = np.repeat(np.arange(self.families), sizes)
        n, k = len(family), ALGORITHMS
        scale = np.where(np.arange(k) == k - 1, 3.0 if self.erratic else 1.0, 1.0)
        by_family = np.sqrt(self.share) * scale * rng.normal(size=(self.families, k))
        if these:
            by_family -= sizes @ by_family / n
        y = by_family[family] + rng.normal(size=(self.families, 1))[family]
        y += rng.normal(size=(n, 1)) + scale * rng.normal(size=(n, k))
        benchmark = np.arange(n)
        if self.crossed:  # 24 data sets, each in some of the families
            benchmark = np.concatenate([rng.choice(24, size, replace=False) for size in sizes])
            y += np.sqrt(0.5) * rng.normal(size=(24, k))[benchmark]
        columns = {"space": np.repeat([f"s{f}" for f in family], k), "task": np.repeat([f"t{b}" for b in benchmark], k)}
        return pd.DataFrame({**columns, "tool": list("ABCDEFGH"[:k]) * n, "score": y.ravel()})


def runs_of(table: pd.DataFrame, family: str | None = "space") -> lt.Runs:
    roles = {"score": "score", "direction": "minimize", "algorithm": "tool"}
    if family is None:  # what a table without the role says: every row of a data set is another task
        table = table.assign(task=table["space"] + table["task"]).drop(columns="space")
    return lt.Runs(table, benchmark="task", family=family, **roles)


def differences(runs: lt.Runs, population: str | None) -> tuple[bool, np.ndarray, bool]:
    """Whether the default comparison finds any difference; which 95 % intervals of pairs hold 0; a variance of zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = lt.recommend(runs, population=population).spec.fit(runs)
        means = fit.emmeans("tool")
        zero = any(
            "space" in bar.groups and "tool" in bar.groups and float(S[0, 0]) < 1e-6 * fit.scale
            for bar, S in zip(fit.design.parsed.bars, fit.covariances, strict=True)
        )
        alone = means.pairs(adjust="none").to_frame()
        any_pair = bool((means.pairs().to_frame()["p_value"] < 0.05).any())
    return any_pair, ((alone["ci_low"] <= 0) & (alone["ci_high"] >= 0)).to_numpy(), zero


def rates(design: Design, n: int, seed: int = 0) -> dict[str, float]:
    """Shares of tables with any false difference, and coverage of 95 % intervals, by claim."""
    rng = np.random.default_rng([seed, design.families, int(10 * design.share)])
    names = ("new families", "coverage", "zero", "these", "coverage of these", "these, taken for new", "ignored")
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(n):
        new = design.table(rng, these=False)
        any_pair, covers, zero = differences(runs_of(new), "family")
        found["new families"].append(any_pair)
        found["coverage"].append(covers.mean())
        found["zero"].append(zero)
        found["these, taken for new"].append(differences(runs_of(new), "benchmark")[0])
        found["ignored"].append(differences(runs_of(new, None), None)[0])
        any_pair, covers, _ = differences(runs_of(design.table(rng, these=True)), "benchmark")
        found["these"].append(any_pair)
        found["coverage of these"].append(covers.mean())
    shares = {name: float(np.mean(values)) for name, values in found.items()}
    at_zero = np.array(found["zero"], dtype=bool)
    shares["new families, variance zero"] = (
        float(np.mean(np.array(found["new families"])[at_zero])) if at_zero.any() else np.nan
    )
    return shares


def at_most(share: float, n: int, rate: float = 0.05) -> bool:
    """Whether so many of n are compatible with a rate, at 0.001."""
    return bool(stats.binom.sf(round(share * n) - 1, n, rate) > 0.001)


@pytest.mark.parametrize("families", [4, 8, 16])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_claims_for_new_families_keep_their_size(families, share):
    found = rates(Design(families, share), 200)
    assert at_most(found["new families"], 200)
    assert found["coverage"] > 0.93


@pytest.mark.parametrize("crossed", [False, True])
def test_the_claims_for_these_families_keep_theirs(crossed):
    found = rates(Design(8, 1.0, several=True, crossed=crossed), 200)
    assert at_most(found["these"], 200)
    assert at_most(found["new families"], 200)


def test_families_that_are_ignored_make_differences():
    found = rates(Design(8, 0.5), 100)
    assert found["ignored"] > 0.3
    assert found["these, taken for new"] > 0.3


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    designs = [Design(f, s, several=True) for s in (0.5, 0.0, 1.0) for f in (4, 8, 16)]
    designs += [Design(f, 0.5, crossed=True) for f in (4, 8, 16)]
    designs += [Design(f, 0.5, several=True, erratic=True) for f in (4, 5, 8, 16)]
    designs += [Design(f, 0.5) for f in (4, 5, 8)]
    for design in designs:
        print(design, {name: round(100 * share, 1) for name, share in rates(design, n).items()}, flush=True)
