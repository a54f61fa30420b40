"""False differences where benchmarks come in families: new families, new benchmarks of these, families ignored.

`python tests/simulation/test_family_size.py [TABLES]` prints the tables of docs/developers/benchmark-effects.md and
docs/developers/validation.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest
from harness import at_most, covers, differs, each, printed, rate_of
from study import as_runs, runs_of_scores, table_of_scores

import lmemtest as lt


@dataclass(frozen=True)
class Design:
    """Families of 1 to 20 benchmarks (2 to 20 with `several`), or of data sets that several families share."""

    families: int
    share: float  # variance of family:algorithm relative to that of benchmark:algorithm
    several: bool = False
    crossed: bool = False
    erratic: bool = False  # the last algorithm's advantages vary three times as much (standard deviation)

    def table(self, rng: np.random.Generator, *, these: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, the family and the benchmark of each row; all equal over families like these, or over just these."""
        sizes = np.round(np.geomspace(2 if self.several or self.crossed else 1, 20, self.families)).astype(int)
        family = np.repeat(np.arange(self.families), sizes)
        n, k = len(family), 4
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
        return y, family, benchmark


def runs_of(y: np.ndarray, family: np.ndarray, benchmark: np.ndarray) -> lt.Runs:
    table = table_of_scores(y, "row algorithm", family=family[:, None], benchmark=benchmark[:, None])
    return as_runs(table.drop(columns="row"))


def compared(runs: lt.Runs, population: str | None) -> tuple[bool, float, bool]:
    """Whether the default comparison finds any difference; 95 % intervals of pairs that hold 0; a variance of zero."""
    fit = lt.recommend(runs, population=population).spec.fit(runs)
    means = fit.emmeans("algorithm")
    zero = any(
        "family" in bar.groups and "algorithm" in bar.groups and float(S[0, 0]) < 1e-6 * fit.scale
        for bar, S in zip(fit.design.parsed.bars, fit.covariances, strict=True)
    )
    return differs(means.pairs()), covers(means.pairs(adjust="none").to_frame(), 0).mean(), zero


def rates(design: Design, n: int) -> dict[str, float]:
    """Shares of tables with any false difference, and coverage of 95 % intervals, by claim."""

    def study(rng: np.random.Generator) -> dict[str, float]:
        y, *columns = design.table(rng, these=False)
        runs = runs_of(y, *columns)
        new, coverage, zero = compared(runs, "family")
        taken_for_new = compared(runs, "benchmark")[0]
        # what a table without the role says: every row of a data set is another task
        ignored = compared(runs_of_scores(y, "benchmark algorithm"), None)[0]
        these, coverage_of_these, _ = compared(runs_of(*design.table(rng, these=True)), "benchmark")
        return {
            "new families": new,
            "coverage": coverage,
            "zero": zero,
            "these": these,
            "coverage of these": coverage_of_these,
            "these, taken for new": taken_for_new,
            "ignored": ignored,
            "new families, variance zero": new if zero else np.nan,
        }

    return rate_of(study, n, [0, design.families, int(10 * design.share)])


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


TABLES = 120


def undeclared_rates(families: int, tasks: int, share: float) -> np.ndarray:
    """Shares of tables of equal algorithms: with a false difference; with the warning; with the first and not both."""
    names = [f"space{i}-t{j}" for i in range(families) for j in range(tasks)]

    def study(rng: np.random.Generator) -> tuple[bool, bool, bool]:
        of_families = np.repeat(rng.normal(size=(families, 3)), tasks, axis=0)
        y = np.sqrt(share) * of_families + np.sqrt(1.0 - share) * rng.normal(size=(families * tasks, 3))
        analysis = lt.analyze(runs_of_scores(y, "benchmark algorithm", direction="maximize", benchmark=names))
        false, warned = bool(analysis.decisions.significant.to_numpy().any()), analysis.undeclared.shows
        return false, warned, false and not warned

    return rate_of(study, TABLES, each(families))


@pytest.mark.parametrize(("families", "tasks"), [(5, 4), (16, 5)])
def test_names_without_families_behind_them_are_rarely_warned_about(families, tasks):
    for rate in undeclared_rates(families, tasks, 0.0)[:2]:
        assert at_most(rate, TABLES)


@pytest.mark.parametrize(("families", "tasks", "share"), [(5, 4, 0.5), (16, 5, 0.3)])
def test_families_that_make_false_differences_are_warned_about(families, tasks, share):
    false, warned, silent = undeclared_rates(families, tasks, share)
    assert false > 0.1
    assert warned > 0.7
    assert at_most(silent, TABLES)


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    designs = [Design(f, s, several=True) for s in (0.5, 0.0, 1.0) for f in (4, 8, 16)]
    designs += [Design(f, 0.5, crossed=True) for f in (4, 8, 16)]
    designs += [Design(f, 0.5, several=True, erratic=True) for f in (4, 5, 8, 16)]
    designs += [Design(f, 0.5) for f in (4, 5, 8)]
    printed(rates, {str(design): (design, n) for design in designs})
