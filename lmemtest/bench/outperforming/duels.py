"""Pairs of algorithms on the same benchmarks: who wins which run, on each benchmark and on all of them.

Arrays are ``(p, n)``, by pair and benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.outperforming.intervals import (
    Counts,
    UStatistic,
    draw_unpaired,
    exact_interval,
    usual_interval,
)
from lmemtest.bench.outperforming.random_intercept import RandomIntercept, mean_of
from lmemtest.bench.outperforming.replicability import partial_conjunction, sign_test
from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.caller import advice
from lmemtest.core.proportions import wilson
from lmemtest.core.replicates import progress_bar
from lmemtest.core.rounding import tolerance
from lmemtest.errors import DesignError
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.intervals.draws import interval_ends, plain_shares

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Cells = tuple[Index, Index]

_AT_ONCE = 2_000_000  # differences of runs, or benchmarks of draws, that are in memory


@dataclass(frozen=True, eq=False, kw_only=True)
class Duels:
    """Wins, ties and losses of the left one of each pair, by pair of runs or all against all.

    Attributes
    ----------
    counts : Counts
        Zero where a pair has no runs on a benchmark that can be compared.
    names, families : (n,) str
        Of the benchmarks, in the order of the families; None where families are not the sample.
    left, right : (p,) int
        Numbers of the algorithms.
    binary : (p,) bool
        Whether all scores are 0 or 1: right or wrong answers.
    incomplete : bool
        Whether runs were left out that have no partner.
    gains : (m, k, r) float or None
        Of runs that are not paired, by instance and algorithm: higher is better, NaN behind the last.
    place : (p, n) int or None
        The instance on which they are compared; -1 where there is none.
    runs : UStatistic or None
        Of all against all, NaN where there are none.
    """

    counts: Counts
    names: NDArray[np.object_]
    left: Index
    right: Index
    binary: Mask
    families: NDArray[np.object_] | None = None
    incomplete: bool = False
    gains: Array | None = None
    place: Index | None = None
    runs: UStatistic | None = None

    def turned(self, these: Mask) -> Duels:
        """The same with the sides of some pairs exchanged."""
        here, (win, tie, loss) = these[:, None], self.counts
        runs = self.runs
        if runs is not None:
            sides = zip(runs.turned(), runs, strict=True)
            runs = UStatistic(*(np.where(here, turned, own) for turned, own in sides))
        return replace(
            self,
            counts=Counts(np.where(here, loss, win), tie, np.where(here, win, loss)),
            left=np.where(these, self.right, self.left),
            right=np.where(these, self.left, self.right),
            runs=runs,
        )

    def of(self, pairs: Index) -> Duels:
        """Some of the pairs."""
        some = {name: getattr(self, name)[pairs] for name in ("left", "right", "binary")}
        runs = self.runs and UStatistic(*(part[pairs] for part in self.runs))
        place = None if self.place is None else self.place[pairs]
        return replace(self, counts=Counts(*(count[pairs] for count in self.counts)), runs=runs, place=place, **some)

    def signs(self, pair: int) -> list[Array]:
        """Of all differences of runs that are not paired, by benchmark of a pair, ``(n, m)`` each."""
        if self.gains is None or self.place is None:
            raise ValueError("runs are paired")
        sides = self.left[pair], self.right[pair]
        on = (self.gains[i, sides] for i in self.place[pair, self.there[pair]])
        return [_all_signs(*(run[None, np.isfinite(run)] for run in pair_of_runs))[0] for pair_of_runs in on]

    @cached_property
    def there(self) -> Mask:
        """Whether a pair has runs to compare on a benchmark."""
        return np.asarray(self.counts.n > 0)

    @cached_property
    def each(self) -> Array:
        """Probability that a run of the left one is better; NaN where there are none."""
        with np.errstate(invalid="ignore"):
            return self.counts.estimate

    @cached_property
    def alike(self) -> Mask:
        """Whether all differences of a pair have one sign, ``(p,)``."""
        sums = np.array(self.counts).sum(axis=2)
        return np.asarray(sums.max(axis=0) == sums.sum(axis=0))

    @cached_property
    def family(self) -> Index:
        """Number of the family of each benchmark, ``(n,)``; without families each benchmark is one."""
        if self.families is None:
            return np.arange(len(self.names))
        return np.unique(self.families.astype(str), return_inverse=True)[1]

    def by_family(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over the benchmarks of each family, ``(p, families)``."""
        return np.add.reduceat(values, np.flatnonzero(np.diff(self.family, prepend=-1)), axis=1)

    @cached_property
    def of_families(self) -> Array:
        """Mean of the benchmarks' probabilities by family, ``(p, families)``; NaN where there is none."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.by_family(np.nan_to_num(self.each)) / self.by_family(self.there.astype(float)))

    @cached_property
    def n_families(self) -> Index:
        """Families in which a pair has runs to compare, ``(p,)``."""
        return np.isfinite(self.of_families).sum(axis=1)

    @property
    def over_families(self) -> Mask:
        """Whether families are the sample, and a pair has several, ``(p,)``."""
        return np.full(len(self.left), self.families is not None) & (self.n_families > 1)

    @cached_property
    def units(self) -> Array:
        """Probabilities by unit of the sample: of families where a pair has several, else of benchmarks."""
        of_families = np.full(self.each.shape, np.nan)
        of_families[:, : self.of_families.shape[1]] = self.of_families
        return np.where(self.over_families[:, None], of_families, self.each)

    @cached_property
    def mean(self) -> Array:
        """Mean of the units' probabilities, ``(p,)``."""
        return np.asarray(np.nanmean(self.units, axis=1))


# -------------------------------------------------------------------------------------------------- from the scores


def duels_of(blocks: Blocks, left: Index, right: Index, paired: bool) -> Duels:
    """Runs of pairs of algorithms, by their numbers, on the benchmarks that both ran on.

    A benchmark counts once for each of its own families, with all instances that it has there.
    """
    families = np.zeros(len(blocks.block)) if blocks.family is None else blocks.family.astype(str)
    order = np.lexsort((blocks.block, families))
    block, family = blocks.block[order], np.unique(families[order], return_inverse=True)[1]
    first = np.flatnonzero(np.diff(block, prepend=-1).astype(bool) | np.diff(family, prepend=-1).astype(bool))
    gains = blocks.runs[order] if blocks.direction == "maximize" else -blocks.runs[order]
    if paired and blocks.seeds is not None:
        gains = _by_seed(gains, blocks.seeds[order])
    n_runs = blocks.n_runs[order]
    sizes = n_runs[:, left].T, n_runs[:, right].T
    if paired:
        of_instances, answers = _paired(gains, left, right)
        counts = Counts(*(np.add.reduceat(count, first, axis=1) for count in of_instances))
        incomplete = bool((of_instances.n < np.maximum(*sizes)).any())
        more: dict[str, Any] = {"counts": counts, "binary": answers, "incomplete": incomplete}
        _require(blocks, left, right, counts.n > 0, paired)
    else:
        met = np.minimum(*sizes) > 0
        _require(blocks, left, right, np.add.reduceat(met.astype(int), first, axis=1), paired)
        place = np.maximum.reduceat(np.where(met, np.arange(len(gains)), -1), first, axis=1)
        other = _is_no_answer(gains).any(axis=2).T
        more = {**_unpaired(gains, place, left, right), "binary": ~(met & (other[left] | other[right])).any(axis=1)}
    return Duels(
        names=np.array(blocks.names, dtype=object)[block[first]],
        families=None if blocks.family is None else families[order][first].astype(object),
        left=left,
        right=right,
        **more,
    )


def _require(blocks: Blocks, left: Index, right: Index, met: NDArray[Any], paired: bool) -> None:
    """That every pair has a benchmark, and on each of them a single instance if runs are not paired, ``(p, n)``."""
    refused = ~met.any(axis=1) | (met > 1).any(axis=1)
    if not refused.any():
        return
    pair = int(np.argmax(refused))
    if met[pair].any():
        instead = advice("paired")
        raise DesignError(
            "benchmarks have several instances (levels of metafeatures within them), and runs that are not paired "
            "cannot be compared across these. Filter the runs to one instance per benchmark, or pair them by seed "
            f"({instead})."
        )
    what = "seed that both ran with on the same benchmark" if paired else "benchmark that both ran on"
    instead = f", or {advice('unpaired')}" if paired else ""
    one, other = blocks.algorithms[left[pair]], blocks.algorithms[right[pair]]
    raise DesignError(
        f"{one} and {other} have no {what}, so none of their runs can be compared. Bring such runs{instead}."
    )


def _by_seed(gains: Array, seeds: Index) -> Array:
    """Gains ``(m, k, r)`` with those of the same seed on an instance in the same place: rows that repeat a run are one.

    Seeds of a single algorithm have no place.
    """
    instance, algorithm, at = np.nonzero(seeds >= 0)
    seed = instance * (seeds.max() + 1) + seeds[instance, algorithm, at]
    k = gains.shape[1]
    run, own = np.unique(seed * k + algorithm, return_inverse=True)
    mean = np.bincount(own, weights=gains[instance, algorithm, at]) / np.bincount(own)
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


def _paired(gains: Array, left: Index, right: Index) -> tuple[Counts, Mask]:
    """Counts by pair and instance, and whether all scores of a pair are 0 or 1."""
    p, m = len(left), len(gains)
    counts, other, no_answer = np.empty((3, p * m)), np.empty(p * m, dtype=bool), _is_no_answer(gains)
    for cell in _portions(p * m, gains.shape[2]):
        pair, i = np.divmod(cell, m)
        sides = (i, left[pair]), (i, right[pair])
        x, y = (gains[side] for side in sides)
        difference = x - y
        both = np.isfinite(difference)
        largest = np.where(both, np.maximum(np.abs(x), np.abs(y)), 0.0).max(axis=1, initial=0.0, keepdims=True)
        counts[:, cell] = Counts.of_signs(_signs(difference, largest))
        other[cell] = (both & (no_answer[sides[0]] | no_answer[sides[1]])).any(axis=1)
    return Counts(*counts.reshape(3, p, m)), np.asarray(~other.reshape(p, m).any(axis=1))


def _comparisons(gains: Array, place: Index, left: Index, right: Index) -> Iterator[tuple[Cells, Array, Array]]:
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


def _all_signs(x: Array, y: Array) -> Array:
    """Of all differences of runs ``(cells, n)`` and ``(cells, m)``: ``(cells, n, m)``."""
    largest = np.maximum(np.abs(x).max(axis=1), np.abs(y).max(axis=1))
    return _signs(x[:, :, None] - y[:, None, :], largest[:, None, None])


def _unpaired(gains: Array, place: Index, left: Index, right: Index) -> dict[str, Any]:
    counts, shares = np.zeros((3, *place.shape)), np.full((7, *place.shape), np.nan)
    for cell, x, y in _comparisons(gains, place, left, right):
        signs = _all_signs(x, y)
        counts[:, cell[0], cell[1]] = Counts.of_signs(signs.reshape(len(signs), -1))
        shares[:, cell[0], cell[1]] = UStatistic.of(signs)
    return {"counts": Counts(*counts), "runs": UStatistic(*shares), "gains": gains, "place": place}


# -------------------------------------------------------------------------------------------------- each benchmark


def by_benchmark(duels: Duels, p: Array, level: float) -> pd.DataFrame:
    """One row per benchmark of each pair, which has its number, with the `p_values`."""
    import pandas as pd

    pair, at = np.nonzero(duels.there)
    low, high = intervals(duels, level)
    adjusted = np.empty(p.shape)
    # Holm's are those of "better on u benchmarks", in order
    np.put_along_axis(adjusted, np.argsort(p, axis=1, kind="stable"), partial_conjunction(p, "bonferroni"), axis=1)
    columns = {"estimate": duels.each, "ci_low": low, "ci_high": high, "p_raw": p, "p_value": adjusted}
    counts = dict(zip(("wins", "ties", "losses"), duels.counts, strict=True))
    return pd.DataFrame(
        {
            "pair": pair,
            **({} if duels.families is None else {"family": duels.families[at]}),
            "benchmark": duels.names[at],
            **{name: count[pair, at].astype(int) for name, count in counts.items()},
            **{name: column[pair, at] for name, column in columns.items()},
        }
    )


def intervals(duels: Duels, level: float) -> tuple[Array, Array]:
    """Both ends for each benchmark by itself; NaN where an algorithm that is not paired has one run."""
    if duels.runs is not None:
        return duels.runs.score_interval(level)
    tables, which = _distinct(duels.counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # of no runs at all
        low, high = (np.where(duels.there, end[which], np.nan) for end in usual_interval(tables, level))
    return low, high


def p_values(duels: Duels) -> Array:
    """One-sided: sign tests, or Mann and Whitney's tests of runs that are not paired; NaN where there are none."""
    if duels.gains is None or duels.place is None:
        tables, which = _distinct(duels.counts)
        return np.where(duels.there, sign_test(tables.win, tables.loss)[which], np.nan)
    out = np.full(duels.place.shape, np.nan)
    for cell, x, y in _comparisons(duels.gains, duels.place, duels.left, duels.right):
        out[cell] = _mann_whitney(x, y)
    return out


def least_p(duels: Duels) -> Array:
    """The p-values of the benchmarks if all runs of left were better."""
    if duels.runs is None:
        return np.where(duels.there, 0.5**duels.counts.n, np.nan)
    out = np.full(duels.there.shape, np.nan)
    sizes, which = np.unique(np.stack(duels.runs[:2])[:, duels.there], axis=1, return_inverse=True)
    whole = [(np.arange(1.0, n + 1.0)[None], -np.arange(1.0, m + 1.0)[None]) for n, m in sizes.T]
    out[duels.there] = np.concatenate([_mann_whitney(*samples) for samples in whole])[which.ravel()]
    return out


def _distinct(counts: Counts) -> tuple[Counts, Index]:
    """The different tables of wins, ties and losses, and the number of each."""
    base = counts.n.max() + 1.0
    code, which = np.unique((counts.win * base + counts.tie) * base + counts.loss, return_inverse=True)
    return Counts(code // base**2, code // base % base, code % base), which.reshape(counts.win.shape)


def _mann_whitney(x: Array, y: Array) -> Array:
    """One-sided p-values of scipy's test of samples ``(cells, n)`` and ``(cells, m)``.

    Scores that differ by rounding are tied; the test is exact where none are and a sample has eight runs at most.
    """
    from scipy.stats import mannwhitneyu

    n, pooled = x.shape[1], np.concatenate([x, y], axis=1)
    order = np.argsort(pooled, axis=1, kind="stable")
    apart = np.diff(np.take_along_axis(pooled, order, axis=1), axis=1)
    rise = np.cumsum(apart > tolerance(1.0) * np.abs(pooled).max(axis=1, keepdims=True), axis=1)
    code = np.zeros(pooled.shape)
    np.put_along_axis(code, order[:, 1:], rise.astype(float), axis=1)
    exact = (rise[:, -1] == rise.shape[1]) & (min(n, y.shape[1]) <= 8)
    out = np.ones(len(x))
    for method, here in (("exact", exact), ("asymptotic", ~exact & (rise[:, -1] > 0))):
        if here.any():
            samples = code[here, :n], code[here, n:]
            out[here] = mannwhitneyu(*samples, alternative="greater", axis=1, method=method).pvalue
    return out


# -------------------------------------------------------------------------------------------------- all of them


def together(
    duels: Duels, method: str, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Estimates over the benchmarks, or over families of them, with both ends of their intervals, ``(p,)`` each."""
    middle, size = duels.mean.copy(), np.isfinite(duels.units).sum(axis=1)
    # Each unit is one score in [0, 1], all of them 0, 1/2 or 1: neither a model nor draws have a variance.
    sums = Counts(*(count.sum(axis=1) for count in duels.counts))
    low, high = exact_interval(Counts(*(size * (count == sums.n) for count in sums)), level)
    single, only = intervals(duels, level), np.argmax(duels.there, axis=1)[:, None]
    alone = size == 1
    low, high = (
        np.where(alone, np.take_along_axis(own, only, axis=1)[:, 0], end)
        for own, end in zip(single, (low, high), strict=True)
    )
    varying = np.flatnonzero(~alone & ~duels.alike)
    if method == "mixed":
        if len(varying):
            middle[varying], low[varying], high[varying] = _mixed(duels.of(varying), level)
        return middle, low, high
    with progress_bar(len(varying), None, "Comparisons of single runs") as show:
        for pair in varying:
            low[pair], high[pair] = _drawn(duels, int(pair), level, n_draws, rng)
            show(1)
    return middle, low, high


def _drawn(duels: Duels, pair: int, level: float, n_draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Both ends of the interval of a pair: units drawn again, and runs within their benchmarks."""
    at = np.flatnonzero(duels.there[pair])
    counts = Counts(*(count[pair, at] for count in duels.counts))
    own = np.unique(duels.family[at], return_inverse=True)[1] if duels.over_families[pair] else np.arange(len(at))
    size = int(own.max()) + 1
    units, most = rng.integers(size, size=(n_draws, size)), int(np.bincount(own).max())
    signs = None if duels.runs is None else duels.signs(pair)
    draws = []
    for part in np.array_split(units, np.ceil(units.size * most / _AT_ONCE)):
        chosen, weight = _benchmarks_of(own, part)
        shares, inside = np.zeros(chosen.shape), weight > 0.0
        some = chosen[inside]
        shares[inside] = _draw_paired(counts, some, rng) if signs is None else _draw_runs(signs, some, rng)
        draws.append((weight * shares).sum(axis=1))
    ends = interval_ends(np.concatenate(draws)[:, None], duels.mean[[pair]], plain_shares(level, 1), "percentile")[:, 0]
    return float(ends[0]), float(ends[1])


def _benchmarks_of(own: Index, units: Index) -> tuple[Index, Array]:
    """The benchmarks of units ``(draws, units)``: their numbers and weights, ``(draws, benchmarks)``; 0 for no more.

    `own` is the unit that each benchmark belongs to.
    """
    size = np.bincount(own)
    place = np.arange(size.max())
    first = np.cumsum(size) - size
    inside = place < size[units][..., None]
    chosen = np.where(inside, first[units][..., None] + place, 0).reshape(len(units), -1)
    weight = np.where(inside, 1.0 / (units.shape[1] * size[units][..., None]), 0.0).reshape(len(units), -1)
    return np.argsort(own, kind="stable")[chosen], weight


def _draw_paired(counts: Counts, chosen: Index, rng: np.random.Generator) -> Array:
    """Probabilities of the benchmarks that were chosen, with pairs drawn again within each of them."""
    numbers = np.stack(counts, axis=1)
    n = counts.n.astype(int)
    drawn = rng.multinomial(n[chosen], (numbers / n[:, None])[chosen])
    return np.asarray(drawn @ [1.0, 0.5, 0.0] / n[chosen])


def _draw_runs(signs: list[Array], chosen: Index, rng: np.random.Generator) -> Array:
    """The same where runs are not paired: runs of either algorithm are drawn again by themselves."""
    out = np.empty(chosen.shape)
    for i, s in enumerate(signs):
        out[chosen == i] = draw_unpaired(s, int((chosen == i).sum()), rng)
    return out


def _mixed(duels: Duels, level: float) -> tuple[Array, Array, Array]:
    """Means of the mixed model of wins, with Wilson's interval of as many wins as its variance amounts to.

    Student's interval of the intercept is symmetric, which the estimate of a probability is not unless it is one half.
    """
    middle, variance, df = _over_benchmarks(duels)
    if (apart := duels.over_families).any():
        for out, of_families in zip((middle, variance, df), _over_families(duels, variance), strict=True):
            out[apart] = of_families[apart]
    own = middle * (1.0 - middle)
    most = np.inf if duels.runs is None else np.nansum(duels.runs.most, axis=1)
    none = np.minimum(variance, own) <= tolerance([1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(none, np.nan, np.minimum(own / variance, most))
    return middle, *wilson(middle, worth, t_quantile(0.5 * (1.0 - level), df))


def _over_families(duels: Duels, of_benchmarks: Array) -> tuple[Array, Array, Array]:
    """Mean of the families' means, its variance and degrees of freedom in ``P ~ 1 + (1 | family)``.

    Every family counts the same, so with m benchmarks in a family and the variances ``b`` between families and ``w``
    within them the variance is the mean of ``b + w / m`` over the number of families. The families' means vary by as
    much, ``b`` is what ``w / m`` leaves of it, and no less than nothing. Where all benchmarks are alike it is the
    variance of the model of benchmarks, that of pairs within them.
    """
    means, families = duels.of_families, duels.n_families.astype(float)
    size = duels.by_family(duels.there.astype(float))
    squares = np.nansum((duels.each - means[:, duels.family]) ** 2, axis=1)
    within = _ratio(squares, np.maximum(size - 1.0, 0.0).sum(axis=1))
    reciprocals = np.divide(1.0, size, out=np.zeros(size.shape), where=size > 0.0).sum(axis=1) / families
    between = np.nanvar(means, axis=1, ddof=1)
    variance = np.maximum(between, within * reciprocals) / families
    return duels.mean, np.where(variance <= tolerance([1.0]), of_benchmarks, variance), families - 1.0


def _over_benchmarks(duels: Duels) -> tuple[Array, Array, Array]:
    """The same over benchmarks, by the mixed model of wins with random benchmarks."""
    each, n = duels.each, duels.counts.n
    df = duels.there.sum(axis=1) - 1.0  # benchmarks are the sample, also where their variance is zero
    if duels.runs is not None:
        return *mean_of(each, _variances_within(duels.runs)), df
    win, tie, _ = duels.counts
    within = np.where(np.maximum.reduce(duels.counts) < n, win + 0.25 * tie - n * np.nan_to_num(each) ** 2, 0.0)
    middle: Array = np.nanmean(each, axis=1)
    variance: Array = np.nanvar(each, axis=1, ddof=1) / (df + 1.0)
    if (varying := within.sum(axis=1) > 0.0).any():
        model = RandomIntercept(n[varying], np.nan_to_num(each)[varying], within.sum(axis=1)[varying])
        middle[varying], variance[varying], of_model = model.mean()
        df[varying] = np.minimum(df[varying], of_model)
    return middle, variance, df


def _variances_within(runs: UStatistic) -> Array:
    """Variance of each benchmark's share of wins where ``win ~ 1 + (1 | left) + (1 | right)`` on each of them.

    All runs of one algorithm meet all of the other, so that the analysis of variance is one of balanced tables; its
    mean squares are pooled over the benchmarks. A fit of the comparisons would have no residual where scores are 0 and
    1: half the difference of two such scores is a sum of effects of runs.
    """
    n, m = runs.n, runs.m
    error = _ratio(_sums(runs.rest), _sums((n - 1.0) * (m - 1.0)))[:, None]
    # With one run of an algorithm everywhere, its variance is part of that of benchmarks.
    left, right = (
        np.maximum(_ratio(_sums(square - error * (k - 1.0) / other), _sums(k - 1.0)), 0.0)[:, None]
        for square, k, other in ((runs.left, n, m), (runs.right, m, n))
    )
    return np.asarray(left / n + right / m + error / (n * m))


def _sums(values: Array) -> Array:
    return np.asarray(np.nansum(values, axis=1))


def _ratio(total: Array, df: Array) -> Array:
    return np.divide(total, df, out=np.zeros(total.shape), where=df > 0.0)
