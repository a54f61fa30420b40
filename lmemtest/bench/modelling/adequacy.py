"""What a fitted model takes for its sample, which terms and families it lacks, and how it treats budgets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.bench.data.normalise import new_column
from lmemtest.bench.data.requirements import FEWEST_FAMILIES, require_crossing
from lmemtest.bench.modelling.recommend import model_of
from lmemtest.bench.variation.variance_shares import pair_variance
from lmemtest.core.caller import advice
from lmemtest.core.codes import group_codes
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_level, format_number, joined, listed, p_text, plural, spoken
from lmemtest.errors import LmemtestError
from lmemtest.lmm.diagnostics.advantages import advantage_shape
from lmemtest.lmm.formula import Bar
from lmemtest.lmm.hypotheses.mean_vectors import between_groups
from lmemtest.lmm.means.emmeans import marginal_means

if TYPE_CHECKING:
    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.diagnostics.advantages import AdvantageShape
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit, ModelSpec

ZERO = 1e-6  # of the residual variance: a variance below it was estimated as zero
_SEPARATORS = re.compile(r"[-_/:.\s]+")
_IN_GROUPS = 0.8  # of the benchmarks share their group with another one, where names make groups
_MOST_COLUMNS = 20  # without a role, that are looked at
_SHOWN = 3


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


def holds_shared_seeds(fit: LmmFit, runs: Runs) -> bool:
    """Whether a fit lets runs of an algorithm with the same seed be alike on all benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> holds_shared_seeds(lt.fit_lmm("loss ~ algorithm + (1 | seed:algorithm)", runs), runs)
    True
    """
    return not missing_terms(fit, runs, [Bar.of((str(runs.seed), runs.algorithm))])


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


# ---------------------------------------------------------------------- families that nobody named


def undeclared_families(
    fit: LmmFit, runs: Runs, pairs: Comparisons, *, alpha: float, adjust: str | None, vcov: str | None = None
) -> Answer | None:
    """Do benchmarks that nobody called families share their advantages? Groups by names and columns, and their test.

    Benchmarks named ``space1-adult``, ``space1-bank``, or with a column that is the same on several of them, may be
    families. If advantages are shared within them and nobody says so, claims about new families are too certain: with 5
    families of 4 benchmarks that hold 30 % of the variance of advantages, some of three equal algorithms differ in 15 %
    of the tables.

    Returns
    -------
    Answer or None
        The grouping in which advantages differ most; None where nothing groups the benchmarks, or families have a role,
        or errors do not count benchmarks. Its table has the family of each benchmark. Values: ``column`` that makes the
        groups (None: the names of the benchmarks), ``n_families``, ``test`` (`FTest`: whether advantages differ
        between the groups by more than within them), ``p_value`` (adjusted for the groupings tried), ``shows`` (whether
        it is below `alpha`), ``significant`` (pairs of algorithms that differ significantly with these families as the
        sample; None where they were not taken for one).
    """
    means = pairs.estimates
    moderate = means.moderate
    if runs.family or moderate is None or moderate.robust.cluster != (runs.benchmark,):
        return None
    keys = group_codes([fit.cells.frame[str(runs.benchmark)]], len(fit.cells.n))[1]
    benchmarks = list(keys.frame()[str(runs.benchmark)])
    groupings = _groupings(runs, benchmarks)
    L = moderate.L[np.isfinite(moderate.L).all(axis=1)]
    if not groupings or len(L) < 2:
        return None
    scores = moderate.robust.contributions(L - L.mean(axis=0))
    tests = []
    for column, families in groupings.items():
        groups = np.unique([families[b] for b in benchmarks], return_inverse=True)[1]
        tests.append((column, families, between_groups(scores, groups)))
    column, families, test = min(tests, key=lambda item: np.nan_to_num(item[2].p_value, nan=2.0))
    if np.isnan(test.p_value):
        return None
    p = min(1.0, len(tests) * test.p_value)
    shows, n_families = bool(below(p, alpha)), len(set(families.values()))
    significant = None
    if shows and n_families >= FEWEST_FAMILIES and not isinstance(runs.frame, nw.LazyFrame):
        significant = _significant_with(
            runs, column or None, families, means.ddf, alpha=alpha, adjust=adjust, vcov=vcov
        )
    nouns = plural(str(runs.benchmark))
    names = joined([f"'{name}'" for name in dict.fromkeys(families.values())], most=_SHOWN)
    what = f"the values of {column!r}" if column else f"the names of the {nouns} ({names})"
    values = {"column": column or None, "n_families": n_families, "test": test}
    f_test = f"F({written(test.df_num, '.1f')}, {written(test.df_den, '.1f')}) = {written(test.f_ratio, '.2f')}"
    return Answer(
        question="undeclared_families",
        title=f"Groups of {nouns} that have no role as families",
        tables={"families": pd.DataFrame({"benchmark": list(families), "family": list(families.values())})},
        values={**values, "p_value": p, "level": alpha, "shows": shows, "significant": significant},
        findings=(f"{what} group the {len(families)} {nouns} into {n_families} ({f_test}, {p_text(p)})",),
    )


def _significant_with(
    runs: Runs,
    column: str | None,
    families: dict[object, str],
    ddf: str,
    *,
    alpha: float,
    adjust: str | None,
    vcov: str | None,
) -> int | None:
    """Pairs that differ with these groups as families; None where they have no model: a report is not lost by that."""
    frame, roles = runs.frame, runs.roles()
    if column is None:
        column = new_column(runs, None, f"{runs.benchmark}_family")
        groups = [families[b] for b in frame[str(runs.benchmark)].to_list()]
        frame = frame.with_columns(nw.new_series(column, groups, nw.String(), backend=frame.implementation))
    roles["metafeatures"] = tuple(name for name in roles["metafeatures"] if name != column)
    roles["ignore"] = tuple(name for name in roles["ignore"] if name != column)
    with_roles = type(runs)(frame, **{**roles, "family": (column,)})
    try:
        require_crossing(with_roles)
        model = model_of(with_roles)
        means = marginal_means(model.spec.fit(with_roles), (runs.algorithm,), ddf=ddf, alpha=alpha)
        decided = means.pairs(adjust=adjust, vcov=vcov).decisions(alpha=alpha, direction=runs.direction)
    except LmemtestError:
        return None
    return int(np.triu(decided.significant.to_numpy()).sum())


def _groupings(runs: Runs, benchmarks: list[object]) -> dict[str, dict[object, str]]:
    """The group of each benchmark, by the column that makes the groups ("" for the names of the benchmarks)."""
    name, study = str(runs.benchmark), runs.study
    schema = runs.frame.collect_schema()
    others = [] if isinstance(runs.frame, nw.LazyFrame) else [
        column for column in runs.columns
        if column not in (*study.columns, runs.score, runs.failed) and not runs.frame[column].is_null().any()
    ]  # fmt: skip
    text = [column for column in dict.fromkeys((*study.kinds, *others)) if not schema[column].is_numeric()]
    groupings = {}
    for column in text[:_MOST_COLUMNS]:
        if not 1 < study.count(column) <= len(benchmarks) / 2 or study.count(name, column) != len(benchmarks):
            continue
        pairs = study.distinct([name, column])
        groupings[column] = dict(zip(pairs[name], map(format_level, pairs[column]), strict=True))
    by_names = name_groups([b if isinstance(b, str) else "" for b in benchmarks])
    if by_names is not None and not any(_same(by_names, [f[b] for b in benchmarks]) for f in groupings.values()):
        groupings[""] = dict(zip(benchmarks, by_names, strict=True))
    return groupings


def _same(first: list[str], second: list[str]) -> bool:
    """Whether two columns make the same groups."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def name_groups(names: Sequence[str]) -> list[str] | None:
    """The groups that the first parts of names make, else the last parts; None where they make none.

    Examples
    --------
    >>> name_groups(["f1_d2", "f1_d5", "f2_d2", "f2_d5"])
    ['f1', 'f1', 'f2', 'f2']
    >>> name_groups(["adult", "bank-marketing", "car", "letter"]), name_groups(["task1", "task2", "task3", "task4"])
    (None, None)
    """
    parts = [[part for part in _SEPARATORS.split(name) if part] for name in names]
    if any(len(part) < 2 for part in parts):
        return None
    for end in (0, -1):
        groups = [part[end] for part in parts]
        sizes = Counter(groups)
        if 2 <= len(sizes) <= len(names) / 2 and sum(sizes[g] > 1 for g in groups) >= _IN_GROUPS * len(groups):
            return groups
    return None


def with_shared_seeds(check: RunsCheck, fit: LmmFit, runs: Runs, recommendation: Answer, alpha: float) -> RunsCheck:
    """The checks with what the fit says of runs of different algorithms with the same seed."""
    finding = shared_seeds_finding(fit, runs, recommendation.spec, alpha)
    if finding is None:
        return check
    outcome = CheckOutcome(
        stage="effects",
        check="shared seeds",
        question="Do runs of different algorithms with the same seed have something in common?",
        findings=(finding,),
        text="",
        skipped=False,
        level=check.alpha,
    )
    return replace(check, outcomes=(*check.outcomes, outcome))


def shape_of(means: Estimates, runs: Runs) -> AdvantageShape | None:
    """Whether the advantages behind moderated standard errors are about normal; None where runs are the sample."""
    if means.moderate is None or runs.seed in means.moderate.robust.cluster:
        return None
    L = means.moderate.L
    kept = np.flatnonzero(np.isfinite(L).all(axis=1))
    labels = means.labels()
    scores = means.moderate.robust.contributions(L[kept] - L[kept].mean(axis=0))
    return advantage_shape(scores, [labels[i] for i in kept])
