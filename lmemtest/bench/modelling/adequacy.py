"""What a fitted model takes for its sample, which terms it lacks, and how it treats budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.variation.variance_shares import pair_variance
from lmemtest.core.result import Answer
from lmemtest.core.words import format_level, format_number, plural, spoken
from lmemtest.lmm.formula import Bar

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.model import LmmFit

ZERO = 1e-6  # of the residual variance: a variance below it was estimated as zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the error of the comparisons takes as independent."""

    noun: str  # "benchmark", "instance" where advantages vary in the model between instances only, or a family
    size: int  # how many there are
    varies: bool  # whether the model lets advantages of algorithms change between them
    # of the difference of two algorithms between them; NaN where the residual has that role, or nothing has
    variance: float = float("nan")
    zero: bool = False  # whether this variance was estimated as zero
    families: tuple[str, ...] = ()  # columns of the families, where they are the sample

    @property
    def nouns(self) -> str:
        """Several of them."""
        return plural(self.noun)


def sample_of(fit: LmmFit, runs: Runs) -> Sample:
    """The sample behind the comparisons of a fit.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4)
    >>> for groups in ("benchmark:algorithm", "benchmark:prior:algorithm", "benchmark"):
    ...     sample = sample_of(lt.fit_lmm(f"loss ~ algorithm + (1|{groups})", runs), runs)
    ...     print(sample.noun, sample.size, sample.varies)
    benchmark 20 True
    instance 40 True
    benchmark 20 False
    """
    if runs.benchmark is None:
        return Sample(noun="benchmark", size=1, varies=False)
    benchmarks = runs.study.count(runs.benchmark)
    families = [(spoken(level[-1]), level) for level in runs.study.families]
    for noun, columns in (*families, ("benchmark", (runs.benchmark,)), ("instance", tuple(runs.instance))):
        size = runs.study.count(*columns)
        variance = _variance_between(fit, runs, columns) if benchmarks > 1 else None
        if variance is not None:
            return Sample(
                noun=noun,
                size=size,
                varies=True,
                variance=variance,
                zero=variance < ZERO * fit.mean_residual_variance,
                families=columns if columns in runs.study.families else (),
            )
    return Sample(noun="benchmark", size=benchmarks, varies=False)


def _variance_between(fit: LmmFit, runs: Runs, columns: tuple[str, ...]) -> float | None:
    """Variance of differences between groups of these columns; NaN if it is the residual, None if there is none."""
    cells = (*columns, runs.algorithm)
    if runs.study.count(*cells) >= runs.n_rows:
        return float("nan")
    variances = [
        pair_variance(fit, runs, index, *runs.algorithms)  # of the first and each of the others
        for index, bar in enumerate(fit.design.parsed.bars)
        if _same_groups(runs, bar.groups, cells) or _same_groups(runs, bar.groups, columns)
    ]
    parts = [variance for variance in variances if variance is not None]
    return sum(parts) if parts else None


def of_advantages(runs: Runs, bars: Iterable[Bar]) -> list[Bar]:
    """The random effects on which comparisons rest: those with the algorithm and without the budget, coarsest first.

    Terms without the algorithm may be left out: that costs sensitivity, not validity; and so may terms with the
    budget, whose levels all runs share.
    """
    return [bar for bar in bars if runs.algorithm in bar.groups and runs.budget not in bar.groups]


def missing_terms(fit: LmmFit, runs: Runs, recommended: Iterable[Bar]) -> tuple[Bar, ...]:
    """Random effects of the recommended model on which comparisons rest and that the fit lacks, the coarsest first.

    Notes
    -----
    A term has a counterpart in random effects with the same groups that hold an intercept, in slopes of the
    algorithm over its other columns, or in a fixed effect of its columns. Without the coarsest one p-values are too
    small also in balanced data.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs)
    >>> [str(bar) for bar in missing_terms(fit, runs, lt.recommend(runs).spec.bars)]
    ['(1 | benchmark:algorithm)']
    """
    return tuple(bar for bar in of_advantages(runs, recommended) if not _has_counterpart(fit, runs, bar))


def _has_counterpart(fit: LmmFit, runs: Runs, wanted: Bar) -> bool:
    parsed = fit.design.parsed
    others = tuple(name for name in wanted.groups if name != runs.algorithm)
    for index, (term, bar) in enumerate(zip(fit.design.random, parsed.bars, strict=True)):
        # effects that can move all rows of a group alike: an intercept, or one effect per level
        ones = np.ones(len(term.basis))
        level = np.allclose(term.basis @ np.linalg.lstsq(term.basis, ones, rcond=None)[0], ones)
        if level and _same_groups(runs, bar.groups, wanted.groups):
            return True
        if _same_groups(runs, bar.groups, others) and pair_variance(fit, runs, index, *runs.algorithms) is not None:
            return True
    factors = set(fit.design.factors)
    return any(set(wanted.groups) <= set(term.columns) <= factors for term in parsed.fixed_terms)


def _same_groups(runs: Runs, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two sets of columns make the same groups of rows."""
    if set(left) == set(right):
        return True
    if not left or not right:
        return False
    size = runs.study.count(*left)
    return size == runs.study.count(*right) == runs.study.count(*left, *right)


def budget_use(fit: LmmFit, runs: Runs) -> Answer:
    """How budgets are spread over algorithms, and their role in a fit.

    Returns
    -------
    Answer
        Its table has the first and the last budget of each algorithm. Values: ``n`` (distinct budgets; 1 without such a
        column), ``role`` ("factor", "covariate" or "none", in the fixed part of the model), ``regular`` (budgets come
        from a common grid), ``shared`` (all runs on one instance were scored at the same budgets), ``differ``
        (algorithms were scored at different budgets on the same instance, beyond chance and to an extent), ``trials``
        (rows look like single trials of a search, not like the best so far nor like a curve).

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good")
    >>> use = budget_use(lt.fit_lmm("loss ~ algorithm + (1 | benchmark)", runs), runs)
    >>> (use.n, use.role, use.shared, use.differ)
    (10, 'none', True, False)
    """
    ranges: list[tuple[str, str, str]] = []
    values = {"n": 1, "role": "none", "regular": True, "shared": True, "differ": False, "trials": False}
    if runs.budget is not None:
        from lmemtest.bench.data.budget_mix import are_single_trials, budgets_shared, budgets_unlike

        study, design = runs.study.detailed, fit.design
        n, k = len(study.names("budget")), len(study.names("algorithm"))
        rows = np.zeros((k, n))
        np.add.at(rows, (study.code("algorithm"), study.code("budget")), study.points.n)
        budgets = [format_number(b, 4) if isinstance(b, float) else format_level(b) for b in study.names("budget")]
        for name, there in zip(study.names("algorithm"), map(np.flatnonzero, rows), strict=True):
            ranges.append((format_level(name), budgets[there[0]], budgets[there[-1]]))
        numeric = "covariate" if runs.budget in design.numeric else "none"
        values = {
            "n": n,
            "role": "factor" if runs.budget in design.factors else numeric,
            "regular": study.regular,
            "shared": budgets_shared(study),
            "differ": budgets_unlike(study),
            "trials": are_single_trials(study),
        }
    return Answer(
        question="budget_use",
        title="Budgets at which algorithms were scored",
        tables={"ranges": pd.DataFrame(ranges, columns=["algorithm", "first", "last"])},
        values=values,
    )
