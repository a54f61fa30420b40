"""Pairs of algorithms on the same benchmarks: who wins which run, on each benchmark and on all of them.

Arrays are ``(p, n)``, by pair and benchmark, and `counts` of wins, ties and losses of the left one ``(3, p, n)``, zero
where a pair has no runs that can be compared. Where families are the sample, `family` is the number of that of each
benchmark, in ascending order, else None. Of runs that are not paired there are `runs`, their `UStatistic`, and
`samples`: gains by instance and algorithm, the instance of each pair and benchmark (-1 for none), and the numbers of
the two algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.outperforming.intervals import (
    UStatistic,
    counts_of,
    draw_unpaired,
    exact_interval,
    share,
    usual_interval,
)
from lmemtest.bench.outperforming.random_intercept import mean_of, mean_of_wins
from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.caller import advice
from lmemtest.core.proportions import sign_test, wilson
from lmemtest.core.replicates import progress_bar
from lmemtest.core.resampling import drawn_again, drawn_interval
from lmemtest.core.rounding import at_most, tied_codes, tolerance
from lmemtest.errors import DesignError
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Samples = tuple[Array, Index, Index, Index]

_AT_ONCE = 2_000_000  # differences of runs, or benchmarks of draws, that are in memory


# -------------------------------------------------------------------------------------------------- from the scores


def paired_counts(blocks: Blocks, left: Index, right: Index) -> tuple[Array, Mask, bool]:
    """Counts of runs with the same seed, whether all scores of a pair are 0 or 1, and whether runs had no partner."""
    assert blocks.seeds is not None
    gains, first = _by_seed(blocks.run_gains, blocks.seeds), blocks.starts
    p, m = len(left), len(gains)
    counts, other, no_answer = np.empty((3, p * m)), np.empty(p * m, dtype=bool), _is_no_answer(gains)
    for cell in _portions(p * m, gains.shape[2]):
        pair, i = np.divmod(cell, m)
        sides = (i, left[pair]), (i, right[pair])
        x, y = (gains[side] for side in sides)
        difference = x - y
        both = np.isfinite(difference)
        largest = np.where(both, np.maximum(np.abs(x), np.abs(y)), 0.0).max(axis=1, initial=0.0, keepdims=True)
        counts[:, cell] = counts_of(_signs(difference, largest))
        other[cell] = (both & (no_answer[sides[0]] | no_answer[sides[1]])).any(axis=1)
    of_instances = counts.reshape(3, p, m)
    counts = np.add.reduceat(of_instances, first, axis=2)
    _require(blocks, left, right, counts.sum(axis=0) > 0.0, paired=True)
    sizes = blocks.n_runs[:, left].T, blocks.n_runs[:, right].T
    lost = (of_instances.sum(axis=0) < np.maximum(*sizes)).any()
    return counts, np.asarray(~other.reshape(p, m).any(axis=1)), bool(lost)


def unpaired_counts(blocks: Blocks, left: Index, right: Index) -> tuple[Array, UStatistic, Index, Mask]:
    """Counts of all runs against all, their statistics, on which instance, and whether all scores are 0 or 1."""
    gains, first = blocks.run_gains, blocks.starts
    met = np.minimum(blocks.n_runs[:, left].T, blocks.n_runs[:, right].T) > 0
    _require(blocks, left, right, np.add.reduceat(met.astype(int), first, axis=1), paired=False)
    place = np.maximum.reduceat(np.where(met, np.arange(len(gains)), -1), first, axis=1)
    other = _is_no_answer(gains).any(axis=2).T
    return *all_against_all((gains, place, left, right)), place, ~(met & (other[left] | other[right])).any(axis=1)


def all_against_all(samples: Samples) -> tuple[Array, UStatistic]:
    """Counts of all differences, and their statistics, NaN where there are none."""
    counts, shares = np.zeros((3, *samples[1].shape)), np.full((7, *samples[1].shape), np.nan)
    for (pair, at), x, y in _comparisons(*samples):
        signs = _all_signs(x, y)
        counts[:, pair, at] = counts_of(signs.reshape(len(signs), -1))
        shares[:, pair, at] = UStatistic.of(signs)
    return counts, UStatistic(*shares)


def _require(blocks: Blocks, left: Index, right: Index, met: NDArray[Any], *, paired: bool) -> None:
    """That every pair has a benchmark, and on each of them a single instance if runs are not paired, ``(p, n)``."""
    refused = ~met.any(axis=1) | (met > 1).any(axis=1)
    if not refused.any():
        return
    pair = int(np.argmax(refused))
    if met[pair].any():
        raise DesignError(
            "benchmarks have several instances (levels of metafeatures within them), and runs that are not paired "
            "cannot be compared across these. Filter the runs to one instance per benchmark, or pair them by seed "
            f"({advice('paired')})."
        )
    what = "seed that both ran with on the same benchmark" if paired else "benchmark that both ran on"
    instead = f", or {advice('unpaired')}" if paired else ""
    one, other = blocks.algorithms[left[pair]], blocks.algorithms[right[pair]]
    raise DesignError(
        f"{one} and {other} have no {what}, so none of their runs can be compared. Add such runs{instead}."
    )


def _by_seed(gains: Array, seeds: Index) -> Array:
    """Gains ``(m, k, r)`` with those of the same seed on an instance in the same place: rows that repeat a run are one.

    Seeds of a single algorithm have no place.
    """
    instance, algorithm, at = np.nonzero(seeds >= 0)
    seed = instance * (seeds.max() + 1) + seeds[instance, algorithm, at]
    k = gains.shape[1]
    run, which_run = np.unique(seed * k + algorithm, return_inverse=True)
    mean = np.bincount(which_run, weights=gains[instance, algorithm, at]) / np.bincount(which_run)
    seeds_met, which, times = np.unique(run // k, return_inverse=True, return_counts=True)
    instance = seeds_met[times > 1] // (seeds.max() + 1)
    count = np.bincount(instance, minlength=len(gains))
    place = np.zeros(len(seeds_met), dtype=np.intp)
    place[times > 1] = np.arange(len(instance)) - np.repeat(np.cumsum(count) - count, count)
    out = np.full((len(gains), k, count.max()), np.nan)
    shared = times[which] > 1
    cell = run[shared]
    out[cell // k // (seeds.max() + 1), cell % k, place[which[shared]]] = mean[shared]
    return out


def _portions(count: int, size: int) -> list[Index]:
    """Numbers from zero on, in parts of bounded size."""
    return np.array_split(np.arange(count), np.ceil(count * max(size, 1) / _AT_ONCE))


def _is_no_answer(gains: Array) -> Mask:
    return np.isfinite(gains) & ~np.isin(np.abs(gains), (0.0, 1.0))


def _signs(difference: Array, largest: Array) -> Array:
    """1, 0 for ties to rounding, or -1, of differences of scores that are no larger than some; NaN stays."""
    return np.where(np.abs(difference) <= tolerance(1.0) * largest, 0.0, np.sign(difference))


def _all_signs(x: Array, y: Array) -> Array:
    """Of all differences of runs ``(cells, n)`` and ``(cells, m)``: ``(cells, n, m)``."""
    largest = np.maximum(np.abs(x).max(axis=1), np.abs(y).max(axis=1))
    return _signs(x[:, :, None] - y[:, None, :], largest[:, None, None])


def _comparisons(
    gains: Array, place: Index, left: Index, right: Index
) -> Iterator[tuple[tuple[Index, Index], Array, Array]]:
    """Runs of pairs on benchmarks, in parts that have as many of them each, ``(cells, n)`` and ``(cells, m)``."""
    n_runs = np.isfinite(gains).sum(axis=2)
    pair, at = np.nonzero(place >= 0)
    i = place[pair, at]
    n, m = n_runs[i, left[pair]], n_runs[i, right[pair]]
    _, kind = np.unique(n * (n_runs.max() + 1) + m, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
        n_x, n_y = int(n[alike[0]]), int(m[alike[0]])
        for portion in _portions(len(alike), n_x * n_y):
            cell = alike[portion]
            x, y = (gains[i[cell], side[pair[cell]]] for side in (left, right))
            yield (pair[cell], at[cell]), x[:, :n_x], y[:, :n_y]


# -------------------------------------------------------------------------------------------------- each benchmark


def intervals(counts: Array, runs: UStatistic | None, level: float) -> tuple[Array, Array]:
    """Both ends for each benchmark by itself; NaN where an algorithm that is not paired has one run."""
    if runs is not None:
        return runs.score_interval(level)
    tables, which = _distinct(counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # of no runs at all
        low, high = (np.where(counts.any(axis=0), end[which], np.nan) for end in usual_interval(tables, level))
    return low, high


def p_values(counts: Array, samples: Samples | None) -> Array:
    """One-sided: sign tests, or Mann and Whitney's tests of runs that are not paired; NaN where there are none."""
    if samples is None:
        tables, which = _distinct(counts)
        return np.where(counts.any(axis=0), sign_test(tables[0], tables[2])[which], np.nan)
    out = np.full(counts.shape[1:], np.nan)
    for cell, x, y in _comparisons(*samples):
        out[cell] = _mann_whitney(x, y)
    return out


def least_p(counts: Array, runs: UStatistic | None) -> Array:
    """The p-values of the benchmarks if all runs of left were better."""
    there = counts.any(axis=0)
    if runs is None:
        return np.where(there, 0.5 ** counts.sum(axis=0), np.nan)
    out = np.full(there.shape, np.nan)
    sizes, which = np.unique(np.stack(runs[:2])[:, there], axis=1, return_inverse=True)
    whole = [(np.arange(1.0, n + 1.0)[None], -np.arange(1.0, m + 1.0)[None]) for n, m in sizes.T]
    out[there] = np.concatenate([_mann_whitney(*samples) for samples in whole])[which.ravel()]
    return out


def _distinct(counts: Array) -> tuple[Array, Index]:
    """The different tables of wins, ties and losses, and the number of each."""
    base = counts.sum(axis=0).max() + 1.0
    code, which = np.unique((counts[0] * base + counts[1]) * base + counts[2], return_inverse=True)
    return np.stack([code // base**2, code // base % base, code % base]), which.reshape(counts.shape[1:])


def _mann_whitney(x: Array, y: Array) -> Array:
    """One-sided p-values of scipy's test of samples ``(cells, n)`` and ``(cells, m)``.

    Scores that differ by rounding are tied; the test is exact where none are and a sample has eight runs at most.
    """
    from scipy.stats import mannwhitneyu

    n, pooled = x.shape[1], np.concatenate([x, y], axis=1)
    code = tied_codes(pooled, tolerance(1.0) * np.abs(pooled).max(axis=1)).astype(float)
    steps = code.max(axis=1)
    exact = (steps == code.shape[1] - 1) & (min(n, y.shape[1]) <= 8)
    out = np.ones(len(x))
    for method, here in (("exact", exact), ("asymptotic", ~exact & (steps > 0))):
        if here.any():
            samples = code[here, :n], code[here, n:]
            out[here] = mannwhitneyu(*samples, alternative="greater", axis=1, method=method).pvalue
    return out


def partial_conjunction(p: ArrayLike, combine: str) -> Array:
    """p-values of "A is better on at least u of N benchmarks", u = 1..N, from one p-value per benchmark.

    "bonferroni" holds whatever the dependence between benchmarks, ``(N - u + 1) p_(u)``; "fisher" where benchmarks are
    independent, the chi-squared test of ``-2 sum log p_(i)`` over i = u..N. Being better on u benchmarks includes being
    so on fewer: the values are made not to decrease. Benchmarks are in the last axis; NaN is none, and comes last.

    References
    ----------
    Benjamini & Heller (2008), Biometrics 64, 1215-1222;
    Dror et al. (2017), Trans. Assoc. Comput. Linguist. 5, 471-486, doi:10.1162/tacl_a_00074

    Examples
    --------
    >>> partial_conjunction([0.01, 0.02, 0.4], "bonferroni").round(3)
    array([0.03, 0.04, 0.4 ])
    """
    ordered = np.sort(np.asarray(p, dtype=float))
    tests = np.isfinite(ordered)
    left = tests.sum(axis=-1, keepdims=True) - np.arange(ordered.shape[-1])  # tests from the u-th smallest on
    if combine == "bonferroni":
        out = np.minimum(left * ordered, 1.0)
    else:
        logs = np.log(np.maximum(np.where(tests, ordered, 1.0), 1e-300))
        statistic = -2.0 * np.cumsum(logs[..., ::-1], axis=-1)[..., ::-1]
        out = np.where(tests, special.chdtrc(2.0 * np.maximum(left, 1), statistic), np.nan)
    return np.maximum.accumulate(out, axis=-1)


def better_on(p: ArrayLike, combine: str, alpha: float) -> Index:
    """The largest u for which "better on at least u benchmarks" is significant: with 1 - alpha no overstatement."""
    return np.asarray(np.sum(at_most(partial_conjunction(p, combine), alpha), axis=-1))


# -------------------------------------------------------------------------------------------------- all of them


def by_family(values: NDArray[Any], family: Index) -> NDArray[Any]:
    """Sums over the benchmarks of each family, ``(p, families)``."""
    return np.add.reduceat(values, np.flatnonzero(np.diff(family, prepend=-1)), axis=1)


def of_families(counts: Array, family: Index) -> Array:
    """Mean of the benchmarks' probabilities by family, ``(p, families)``; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        there = by_family(counts.any(axis=0).astype(float), family)
        return np.asarray(by_family(np.nan_to_num(share(counts)), family) / there)


def units(counts: Array, family: Index | None) -> tuple[Array, Mask]:
    """Probabilities by unit of the sample, and whether these are families: where a pair has several of them."""
    each = share(counts)
    if family is None:
        return each, np.zeros(len(each), dtype=bool)
    means, out = of_families(counts, family), np.full(each.shape, np.nan)
    out[:, : means.shape[1]] = means
    several = np.isfinite(means).sum(axis=1) > 1
    return np.where(several[:, None], out, each), several


def alike(counts: Array) -> Mask:
    """Whether all differences of a pair have one sign, ``(p,)``."""
    sums = counts.sum(axis=2)
    return np.asarray(sums.max(axis=0) == sums.sum(axis=0))


def together(
    counts: Array,
    runs: UStatistic | None,
    samples: Samples | None,
    family: Index | None,
    *,
    method: str,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Estimates over the benchmarks, or over families of them, with both ends of their intervals, ``(p,)`` each."""
    of_units, over_families = units(counts, family)
    middle, size = np.nanmean(of_units, axis=1), np.isfinite(of_units).sum(axis=1)
    # Each unit is one score in [0, 1], all of them 0, 1/2 or 1: neither a model nor draws have a variance.
    sums = counts.sum(axis=2)
    low, high = exact_interval(size * (sums == sums.sum(axis=0)), level)
    single, only = intervals(counts, runs, level), np.argmax(counts.any(axis=0), axis=1)[:, None]
    alone = size == 1
    low, high = (
        np.where(alone, np.take_along_axis(of_each, only, axis=1)[:, 0], end)
        for of_each, end in zip(single, (low, high), strict=True)
    )
    varying = np.flatnonzero(~alone & ~alike(counts))
    if method == "mixed":
        if len(varying):
            of_these = None if runs is None else runs.of_pairs(varying)
            middle[varying], low[varying], high[varying] = _mixed(counts[:, varying], of_these, family, level)
        return middle, low, high
    with progress_bar(len(varying), None, "Comparisons of single runs") as show:
        for pair in varying:
            at = np.flatnonzero(counts[:, pair].any(axis=0))
            unit = np.arange(len(at))
            if family is not None and over_families[pair]:
                unit = np.unique(family[at], return_inverse=True)[1]
            signs = None if samples is None else _signs_of_pair(samples, int(pair), at)
            draws = _drawn(counts[:, pair, at], signs, unit, n_draws, rng)[:, None]
            low[pair], high[pair] = drawn_interval(draws, middle[[pair]], "percentile", level)[:, 0]
            show(1)
    return middle, low, high


def _signs_of_pair(samples: Samples, pair: int, at: Index) -> list[Array]:
    """Of all differences of runs that are not paired, by benchmark of a pair, ``(n, m)`` each."""
    gains, place, left, right = samples
    on = (gains[i, [left[pair], right[pair]]] for i in place[pair, at])
    return [_all_signs(*(run[None, np.isfinite(run)] for run in both))[0] for both in on]


def _drawn(counts: Array, signs: list[Array] | None, unit: Index, n_draws: int, rng: np.random.Generator) -> Array:
    """Means of a pair, ``(n_draws,)``: units drawn again, and runs within their benchmarks."""
    size = int(unit.max()) + 1
    drawn, most = drawn_again(size, n_draws, rng), int(np.bincount(unit).max())
    n, out = counts.sum(axis=0).astype(int), []
    for part in np.array_split(drawn, np.ceil(drawn.size * most / _AT_ONCE)):
        chosen, weight = benchmarks_of(unit, part)
        inside = weight > 0.0
        some, shares = chosen[inside], np.zeros(chosen.shape)
        if signs is None:
            again = rng.multinomial(n[some], (counts.T / n[:, None])[some])
            shares[inside] = again @ [1.0, 0.5, 0.0] / n[some]
        else:
            of_some = np.empty(some.shape)
            for i, of_benchmark in enumerate(signs):
                of_some[some == i] = draw_unpaired(of_benchmark, int((some == i).sum()), rng)
            shares[inside] = of_some
        out.append((weight * shares).sum(axis=1))
    return np.concatenate(out)


def benchmarks_of(unit: Index, drawn: Index) -> tuple[Index, Array]:
    """The benchmarks of units ``(draws, units)``: their numbers and weights, ``(draws, benchmarks)``; 0 for no more.

    `unit` is the one that each benchmark belongs to.
    """
    size = np.bincount(unit)
    place = np.arange(size.max())
    first = np.cumsum(size) - size
    inside = place < size[drawn][..., None]
    chosen = np.where(inside, first[drawn][..., None] + place, 0).reshape(len(drawn), -1)
    weight = np.where(inside, 1.0 / (drawn.shape[1] * size[drawn][..., None]), 0.0).reshape(len(drawn), -1)
    return np.argsort(unit, kind="stable")[chosen], weight


def _mixed(counts: Array, runs: UStatistic | None, family: Index | None, level: float) -> tuple[Array, Array, Array]:
    """Means of the mixed model of wins, with Wilson's interval of as many wins as its variance amounts to.

    Student's interval of the intercept is symmetric, which the estimate of a probability is not unless it is one half.
    """
    middle, variance, df = mean_over_benchmarks(counts, runs)
    if family is not None and (apart := units(counts, family)[1]).any():
        for out, of_these in zip((middle, variance, df), mean_over_families(counts, family, variance), strict=True):
            out[apart] = of_these[apart]
    of_one = middle * (1.0 - middle)
    most = np.inf if runs is None else np.nansum(runs.most, axis=1)
    none = np.minimum(variance, of_one) <= tolerance([1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(none, np.nan, np.minimum(of_one / variance, most))
    return middle, *wilson(middle, worth, t_quantile(0.5 * (1.0 - level), df))


def mean_over_families(counts: Array, family: Index, of_benchmarks: Array) -> tuple[Array, Array, Array]:
    """Mean of the families' means, its variance and degrees of freedom in ``P ~ 1 + (1 | family)``.

    Every family counts the same, so with m benchmarks in a family and the variances ``b`` between families and ``w``
    within them the variance is the mean of ``b + w / m`` over the number of families. The families' means vary by as
    much, ``b`` is what ``w / m`` leaves of it, and no less than nothing. Where all benchmarks are alike it is the
    variance of the model of benchmarks, that of pairs within them.
    """
    means = of_families(counts, family)
    families = np.isfinite(means).sum(axis=1).astype(float)
    size = by_family(counts.any(axis=0).astype(float), family)
    squares = np.nansum((share(counts) - means[:, family]) ** 2, axis=1)
    within = _ratio(squares, np.maximum(size - 1.0, 0.0).sum(axis=1))
    reciprocals = np.divide(1.0, size, out=np.zeros(size.shape), where=size > 0.0).sum(axis=1) / families
    between = np.nanvar(means, axis=1, ddof=1)
    variance = np.maximum(between, within * reciprocals) / families
    middle = np.nanmean(units(counts, family)[0], axis=1)
    return middle, np.where(variance <= tolerance([1.0]), of_benchmarks, variance), families - 1.0


def mean_over_benchmarks(counts: Array, runs: UStatistic | None) -> tuple[Array, Array, Array]:
    """The same over benchmarks, by the mixed model of wins with random benchmarks."""
    each, n = share(counts), counts.sum(axis=0)
    df = (n > 0.0).sum(axis=1) - 1.0  # benchmarks are the sample, also where their variance is zero
    if runs is not None:
        return *mean_of(each, _variances_within(runs)), df
    win, tie, _ = counts
    within = np.where(counts.max(axis=0) < n, win + 0.25 * tie - n * np.nan_to_num(each) ** 2, 0.0)
    middle: Array = np.nanmean(each, axis=1)
    variance: Array = np.nanvar(each, axis=1, ddof=1) / (df + 1.0)
    if (varying := within.sum(axis=1) > 0.0).any():
        of_model = mean_of_wins(n[varying], np.nan_to_num(each)[varying], within.sum(axis=1)[varying])
        middle[varying], variance[varying] = of_model[:2]
        df[varying] = np.minimum(df[varying], of_model[2])
    return middle, variance, df


def _variances_within(runs: UStatistic) -> Array:
    """Variance of each benchmark's share of wins where ``win ~ 1 + (1 | left) + (1 | right)`` on each of them.

    All runs of one algorithm meet all of the other, so that the analysis of variance is one of balanced tables; its
    mean squares are pooled over the benchmarks. A fit of the comparisons would have no residual where scores are 0 and
    1: half the difference of two such scores is a sum of effects of runs.
    """
    n, m = runs.n, runs.m

    def pooled(square: Array, df: Array) -> Array:
        return _ratio(np.nansum(square, axis=1), np.nansum(df, axis=1))[:, None]

    error = pooled(runs.rest, (n - 1.0) * (m - 1.0))
    # With one run of an algorithm everywhere, its variance is part of that of benchmarks.
    left = np.maximum(pooled(runs.left - error * (n - 1.0) / m, n - 1.0), 0.0)
    right = np.maximum(pooled(runs.right - error * (m - 1.0) / n, m - 1.0), 0.0)
    return np.asarray(left / n + right / m + error / (n * m))


def _ratio(total: Array, df: Array) -> Array:
    return np.divide(total, df, out=np.zeros(total.shape), where=df > 0.0)
