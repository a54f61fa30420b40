"""What a fitted model takes for its sample, which terms it lacks, and how it treats budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lmemtest.bench.variation.model_components import pair_variance
from lmemtest.core.caller import advice
from lmemtest.core.findings import Finding
from lmemtest.core.words import format_level, format_number, listed, plural, spoken
from lmemtest.lmm.formula import Bar

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.model import LmmFit, ModelSpec

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Terms of the recommended model, with the algorithm in them, for which the fitted one has no counterpart."""

    terms: tuple[str, ...]  # as in the formula, the coarsest first
    # whether the term is among them on which the comparisons rest; without it p-values are too small also in balanced
    # data
    coarsest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """At which budgets algorithms were scored, and what the model makes of it."""

    n: int  # distinct budgets; 1 without such a column
    role: Literal["factor", "covariate", "none"]  # in the fixed part of the model
    regular: bool  # budgets come from a common grid
    shared: bool  # all runs on one instance were scored at the same budgets
    differ: bool  # algorithms were scored at different budgets on the same instance, beyond chance and to an extent
    trials: bool  # rows look like single trials of a search, not like the best so far nor like a curve
    ranges: dict[str, tuple[str, str]]  # by algorithm: the smallest and the largest budget


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
    found = [
        _mean_variance(fit, runs, index)
        for index, bar in enumerate(fit.design.parsed.bars)
        if _same_groups(runs, bar.groups, cells) or _same_groups(runs, bar.groups, columns)
    ]
    known = [variance for variance in found if variance is not None]
    return sum(known) if known else None


def _mean_variance(fit: LmmFit, runs: Runs, index: int) -> float | None:
    """What one term adds to the variance of differences from the first algorithm, averaged over the others."""
    first, *others = runs.levels(runs.algorithm)
    parts = [pair_variance(fit, runs, index, first, other) for other in others]
    known = [part for part in parts if part is not None]
    return float(np.mean(known)) if known else None


def missing_terms(fit: LmmFit, runs: Runs, recommended: Iterable[Bar]) -> Missing:
    """Random effects of the recommended model that the fit lacks, as far as they contain the algorithm.

    Notes
    -----
    A term has a counterpart in random effects with the same groups that hold an intercept, in slopes of the
    algorithm over its other columns, or in a fixed effect of its columns. Terms without the algorithm may be left
    out: that costs sensitivity, not validity; and so may terms with the budget, whose levels all runs share.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs)
    >>> missing_terms(fit, runs, lt.recommend(runs).spec.bars)
    Missing(terms=('(1 | benchmark:algorithm)',), coarsest=True)
    """
    wanted = [bar for bar in recommended if runs.algorithm in bar.groups and runs.budget not in bar.groups]
    lacking = [bar for bar in wanted if not _has_counterpart(fit, runs, bar)]
    return Missing(terms=tuple(map(str, lacking)), coarsest=bool(lacking) and lacking[0] is wanted[0])


def holds_shared_seeds(fit: LmmFit, runs: Runs) -> bool:
    """Whether a fit lets runs of an algorithm with the same seed be alike on all benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> holds_shared_seeds(lt.fit_lmm("loss ~ algorithm + (1 | seed:algorithm)", runs), runs)
    True
    """
    return not missing_terms(fit, runs, [Bar.of((str(runs.seed), runs.algorithm))]).terms


def shared_seeds_finding(fit: LmmFit, runs: Runs, recommended: ModelSpec, alpha: float) -> Finding | None:
    """The finding that a seed decides part of the score on all benchmarks.

    A warning where the fit lacks the term for it that the recommended model has.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> model = lt.recommend(runs).spec
    >>> shared_seeds_finding(model.fit(runs), runs, model, 0.05) is None
    True
    """
    from lmemtest.bench.checks.seed_effect import lucky_algorithms

    lucky = lucky_algorithms(runs, alpha)
    if not lucky:
        return None
    pair = Bar.of((str(runs.seed), runs.algorithm))
    severity = "note"
    if holds_shared_seeds(fit, runs):
        remedy = (
            f"The model has {pair} for it, so seeds count as a sample, too. If seeds only number the repetitions, say "
            f"so: {advice('seed_own')}."
        )
    elif pair in recommended:
        severity = "warning"
        remedy = f"Put {pair} into the model: without it p-values are too small."
    else:
        remedy = (
            f"In the unit of the score it does not show next to the other variation, so the model has no {pair}; where "
            "every benchmark counts the same (normalised scores) it may."
        )
    return Finding(
        severity=severity,
        kind="shared_seeds",
        count=len(lucky),
        message=f"The seed decides part of the score of {listed(lucky)} across benchmarks (F-test of the seed's "
        f"variance per algorithm, Holm, level {alpha:g}), so runs with the same seed are not independent.",
        advice=remedy,
    )


def _has_counterpart(fit: LmmFit, runs: Runs, wanted: Bar) -> bool:
    parsed = fit.design.parsed
    others = tuple(name for name in wanted.groups if name != runs.algorithm)
    for index, (term, bar) in enumerate(zip(fit.design.random, parsed.bars, strict=True)):
        # effects that can move all rows of a group alike: an intercept, or one effect per level
        ones = np.ones(len(term.basis))
        level = np.allclose(term.basis @ np.linalg.lstsq(term.basis, ones, rcond=None)[0], ones)
        if level and _same_groups(runs, bar.groups, wanted.groups):
            return True
        if _same_groups(runs, bar.groups, others) and _mean_variance(fit, runs, index) is not None:
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


def budget_use(fit: LmmFit, runs: Runs) -> BudgetUse:
    """How budgets are spread over algorithms, and their role in a fit.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good")
    >>> use = budget_use(lt.fit_lmm("loss ~ algorithm + (1 | benchmark)", runs), runs)
    >>> (use.n, use.role, use.shared, use.differ)
    (10, 'none', True, False)
    """
    if runs.budget is None:
        return BudgetUse(n=1, role="none", regular=True, shared=True, differ=False, trials=False, ranges={})
    from lmemtest.bench.checks.budget_mix import are_single_trials, budgets_shared, budgets_unlike

    study = runs.study.detailed
    n, k = len(study.names("budget")), len(study.names("algorithm"))
    rows = np.zeros((k, n))
    np.add.at(rows, (study.code("algorithm"), study.code("budget")), study.points.n)
    ends = [(int(there[0]), int(there[-1])) for there in map(np.flatnonzero, rows)]
    names = [format_level(name) for name in study.names("algorithm")]
    budgets = [format_number(b, 4) if isinstance(b, float) else format_level(b) for b in study.names("budget")]
    design = fit.design
    return BudgetUse(
        n=n,
        role="factor" if runs.budget in design.factors else "covariate" if runs.budget in design.numeric else "none",
        regular=study.regular,
        shared=budgets_shared(study),
        differ=budgets_unlike(study),
        trials=are_single_trials(study),
        ranges={name: (budgets[low], budgets[high]) for name, (low, high) in zip(names, ends, strict=True)},
    )
