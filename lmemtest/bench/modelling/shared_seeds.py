"""Do runs of one algorithm with the same seed on different benchmarks have something in common?

A seed that fixes the configurations of a random search on every benchmark, or one trained model that is evaluated
everywhere, gives an algorithm the same luck on all benchmarks. That luck does not average out over benchmarks, so a
model whose errors all belong to the benchmark is too sure: with 12 benchmarks, 6 algorithms and 5 seeds, and luck as
large as the residual, some pair differs in 53 % of the tables at a nominal 5 % (85 % with 30 benchmarks).

The test is exact in the model ``algorithm:benchmark + benchmark:seed + u[algorithm:seed] + e``: with the fixed blocks
projected off, the sum of squares between the groups ``algorithm:seed`` over that of the rest (Wald 1940).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.core.caller import advice
from lmemtest.core.codes import combine_codes, first_rows, group_means, group_numbers
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import listed, p_text
from lmemtest.errors import DataError, DesignError
from lmemtest.lmm.formula import Bar, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.model import LmmFit, ModelSpec


# Where the terms are held: at these levels the rate of false findings of both steps together stays at 7 % from six
# benchmarks and three seeds on, if luck is weak enough to be missed and if it is not; see
# docs/developers/validation.md.
LEVEL, LEVEL_OF_FEW, FEW_SEEDS = 0.2, 0.3, 5
SHOWN = 0.05  # below it the effect counts as shown; above it the terms are held as a precaution
_MOST_GROUPS = 1000  # whose eigenvalues are found in about half a second
_ZERO = 1e-9  # relative to the largest eigenvalue
_ROUNDING = 1e-12  # of the total sum of squares: no variation is left


def shared_seeds(runs: Runs) -> Answer:
    """Test whether a seed gives an algorithm the same luck on all benchmarks.

    Where nothing is left to test it by, a `DesignError` says so in words that complete a sentence.

    Returns
    -------
    Answer
        ``statistic``, the mean square between the groups over that of the rest, with ``df_num``, ``df_den`` and the
        ``p_value`` of the F-test; NaN and 0 where there are too many groups to test. ``test``, the same in words;
        ``variance`` of the luck of one algorithm with one seed, without what a seed does to all algorithms, and its
        ``variance_df``: by moments, 0 where it is not above that of chance; ``n_seeds``, the seeds that occur on
        several benchmarks; ``level``, below which the terms are held; ``verdict``, whether a model holds them because
        the effect is "shown", as a "precaution", or does without ("not shown").

    Notes
    -----
    Rows of a run at several budgets, and runs with one seed at the levels of a metafeature, are averaged: one score
    per benchmark, algorithm and seed. Where all algorithms of a benchmark have the same seeds, what the seed does to
    all of them there (`benchmark:seed`) is taken out; elsewhere it counts as part of the luck that is looked for.

    References
    ----------
    Wald (1940), Ann. Math. Stat. 11, 96-100; the moments are those of Henderson (1953, method 3), doi:10.2307/3001853

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = shared_seeds(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> found.df_num, found.df_den, found.verdict
    (120, 2280, 'not shown')
    """
    where, algorithm, seed, y = _free_of_conditions(runs)
    seeds = runs.study.count(str(runs.seed))
    if seeds < 2:
        raise DesignError("there is one seed only, so what it does to an algorithm everywhere is part of its mean")
    n_codes = int(seed.max()) + 1
    group = combine_codes([(algorithm, int(algorithm.max()) + 1), (seed, n_codes)], len(seed))
    groups = (algorithm.astype(np.int64) * n_codes + seed)[first_rows(group, int(group.max()) + 1)]
    order = np.lexsort((group, where))  # benchmark after benchmark
    where, algorithm, seed, group = (codes[order] for codes in (where, algorithm, seed, group))
    y = y[order]
    sizes = [int(codes.max()) + 1 for codes in (algorithm, seed)]
    blocks = [where.astype(np.int64) * size + codes for size, codes in zip(sizes, (algorithm, seed), strict=True)]
    first = [where[np.append(True, np.diff(np.sort(codes)) > 0)] for codes in blocks]  # in the order of benchmarks
    n_runs, n_algorithms, n_seeds = (np.bincount(of, minlength=int(where[-1]) + 1) for of in (where, *first))
    paired = bool((n_runs == n_algorithms * n_seeds).all())
    rest = _off(blocks if paired else blocks[:1], y)
    squares = float(rest @ rest)
    df = int(((n_algorithms - 1) * (n_seeds - 1) if paired else n_runs - n_algorithms).sum())
    # benchmarks with the same groups: one row each, the fixed blocks that they fall into, and how many they are
    patterns: dict[bytes, tuple[NDArray[np.intp], list[NDArray[np.intp]]]] = {}
    times: Counter[bytes] = Counter()
    stop = 0
    for n in n_runs.tolist():
        rows = slice(stop, stop := stop + n)
        times[key := group[rows].tobytes()] += 1
        if key not in patterns:
            patterns[key] = group[rows], [algorithm[rows], seed[rows]] if paired else [algorithm[rows]]
    sums = np.bincount(group, rest).astype(float)
    of_group = None if paired else groups % n_codes
    statistic, r, luck = _between(sums, [(*pattern, times[key]) for key, pattern in patterns.items()], of_group)
    if np.isnan(statistic):
        return _answer(np.nan, 0, 0, np.nan, (np.nan, np.nan), seeds)
    if r < 1 or df - r < 1:
        raise DesignError("runs with the same seed are too few to distinguish what they share from chance")
    scale = float(np.square(y - y.mean()).sum())
    if squares <= _ROUNDING * scale:
        raise DesignError("scores do not vary over the seeds")
    rest_squares = squares - statistic
    if rest_squares <= _ROUNDING * squares:
        raise DesignError("it would leave no residual: runs with the same seed differ by constants")
    of_rest = rest_squares / (df - r)
    f = statistic / r / of_rest
    of_luck, df_luck, times_luck = luck
    ratio = of_luck / df_luck / of_rest
    moments = max(0.0, (ratio - 1.0) * of_rest * df_luck / times_luck)
    df_moments = (ratio - 1.0) ** 2 / (ratio**2 / df_luck + 1.0 / (df - r))  # Satterthwaite's, of a difference
    return _answer(f, r, df - r, float(special.fdtrc(r, df - r, f)), (moments, df_moments), seeds)


def terms_of_seeds(
    runs: Runs, *, always: bool = False
) -> tuple[list[Term | Bar], Answer | None, list[str], tuple[str, ...]]:
    """The terms of what runs with the same seed share on all benchmarks, its test, why it is not identified, and what
    was left out by the test.

    `always`: also where the test does not show it, as at the looks of a ledger. What a seed does to all algorithms is
    then taken out where they have the same seeds, as by the test: a variance of it that is estimated as zero would lend
    its degrees of freedom to that of the pairs, and make it smaller.
    """
    if not runs.study.several_benchmarks or not runs.study.seeds_cross:
        return [], None, [], ()
    seed = str(runs.seed)
    pair = Bar.of((seed, runs.algorithm))
    try:
        test = shared_seeds(runs)
    except DesignError as error:
        return [], None, [f"{pair}: {str(error).removesuffix('.')}."], ()
    if always and test.verdict == "not shown":
        test = replace(test, values={**test.values, "verdict": "precaution"})
    if test.verdict == "not shown":
        left_out = (
            f"{pair}: runs of an algorithm with the same seed show no common deviation across benchmarks "
            f"({test.test}). That is not evidence that there is none: a weak one may be missed. The term is kept where "
            f"p < {test.level:g}."
        )
        return [], test, [], (left_out,)
    count = runs.study.count
    same = always and count(seed, runs.algorithm) == count(seed) * count(runs.algorithm)
    return [Term.levels(seed) if same else Bar.of((seed,)), pair], test, [], ()


def holds_shared_seeds(fit: LmmFit, runs: Runs) -> bool:
    """Whether a fit lets runs of an algorithm with the same seed be alike on all benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> holds_shared_seeds(lt.fit_lmm("loss ~ algorithm + (1 | seed:algorithm)", runs), runs)
    True
    """
    from lmemtest.bench.modelling.adequacy import missing_terms

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
            "every benchmark has equal weight (normalised scores) it may."
        )
    return Finding(
        severity=severity,
        kind="shared_seeds",
        count=len(lucky),
        message=f"The seed decides part of the score of {listed(lucky)} across benchmarks (F-test of the seed's "
        f"variance per algorithm, Holm, level {alpha:g}), so runs with the same seed are not independent.",
        advice=remedy,
    )


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


def _answer(
    statistic: float, df_num: int, df_den: int, p_value: float, variance: tuple[float, float], seeds: int
) -> Answer:
    level = LEVEL_OF_FEW if seeds < FEW_SEEDS else LEVEL
    verdict = "precaution" if np.isnan(p_value) or below(p_value, level) else "not shown"
    if np.isnan(p_value):
        test = "too many groups to test"
    else:
        test = f"F({df_num}, {df_den}) = {written(statistic, '.2f')}, {p_text(p_value)}"
    values = {"statistic": statistic, "df_num": df_num, "df_den": df_den, "p_value": p_value, "n_seeds": seeds}
    values |= {"variance": variance[0], "variance_df": variance[1]}
    return Answer(
        question="shared_seeds",
        title="Effects that runs with the same seed share across benchmarks",
        tables={"test": pd.DataFrame([values])},
        values={**values, "level": level, "test": test, "verdict": "shown" if below(p_value, SHOWN) else verdict},
    )


def _free_of_conditions(runs: Runs) -> tuple[Index, Index, Index, Array]:
    """One score per benchmark, algorithm and seed, free of what conditions do to the algorithms, and their codes."""
    keys = [str(runs.benchmark), runs.algorithm, str(runs.seed)]
    if runs.budget is not None or len(runs.study.instance) > 1:
        try:
            frame = runs.study.one_score_per_run()[0]
        except DataError:  # no budget that the runs of an instance have in common: their means over what they have
            pass
        else:
            centre = frame.groupby(["instance", "algorithm"], observed=True)["score"].transform("mean")
            table = frame[["benchmark", "algorithm", "seed"]].set_axis(keys, axis=1)
            table = group_means(table.assign(**{"\0y": frame["score"] - centre}), keys, "\0y")[0]
            where, algorithm, seed = (group_numbers(table, [name]) for name in keys)
            return where, algorithm, seed, table["\0y"].to_numpy(dtype=float)
    cells = runs.study.cells(keys)
    where, algorithm, seed = (cells.groups([name]) for name in keys)
    return where, algorithm, seed, cells.mean


def _df_within(blocks: list[NDArray[np.intp]]) -> int:
    """Degrees of freedom within the blocks, on one benchmark."""
    sizes = [len(np.unique(codes)) for codes in blocks]
    return (sizes[0] - 1) * (sizes[1] - 1) if len(sizes) == 2 else len(blocks[0]) - sizes[0]


def _off(blocks: list[NDArray[np.intp]], values: Array) -> Array:
    """Values without the means of some factors, of which two are fully crossed."""
    for codes in blocks:
        code = np.unique(codes, return_inverse=True)[1]
        size = np.bincount(code)
        if values.ndim == 1:
            values = values - (np.bincount(code, values) / size)[code]
            continue
        members = sp.csr_array((np.ones(len(code)), code, np.arange(len(code) + 1)))
        values = values - (members.T @ values / size[:, None])[code]
    return values


def _between(
    sums: Array, patterns: list[tuple[NDArray[np.intp], list[NDArray[np.intp]], int]], seeds: Index | None
) -> tuple[float, int, tuple[float, float, float]]:
    """Sum of squares between groups and its degrees of freedom; NaN where the groups are too many.

    Then, of what is left without the effects of `seeds` (the seed of each group; None if they are off already), the sum
    of squares, its degrees of freedom, and how many times it has the variance of groups in the mean.
    """
    if len(patterns) == 1 and seeds is None:
        ((_, blocks, times),) = patterns
        squares, r = float(sums @ sums) / times, _df_within(blocks)
        return squares, r, (squares, r, times * r)
    if len(sums) > _MOST_GROUPS:
        return float("nan"), 0, (np.nan, np.nan, np.nan)
    between = np.zeros((len(sums), len(sums)))
    for groups, blocks, times in patterns:
        between[np.ix_(groups, groups)] += times * _off(blocks, np.eye(len(groups)))
    squares, r, inverse = _explained(between, sums)
    if seeds is not None:
        of_seed = np.equal.outer(seeds, np.unique(seeds)).astype(float)
        by_seed = between @ of_seed
        less, r_seeds, inverse = _explained(of_seed.T @ by_seed, of_seed.T @ sums)
        if r_seeds < r:  # else every algorithm has seeds of its own
            times_luck = float(np.trace(between) - np.sum(inverse * (by_seed.T @ by_seed)))
            return squares, r, (squares - less, r - r_seeds, times_luck)
    return squares, r, (squares, r, float(np.trace(between)))


def _explained(of: Array, sums: Array) -> tuple[float, int, Array]:
    """What effects with these normal equations explain: sum of squares, degrees of freedom, and a pseudo-inverse."""
    values, vectors = np.linalg.eigh(of)
    keep = values > _ZERO * max(float(values[-1]), 1.0)
    half = vectors[:, keep] / np.sqrt(values[keep])
    return float(np.sum((half.T @ sums) ** 2)), int(keep.sum()), half @ half.T
