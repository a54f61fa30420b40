"""Two algorithms on the same benchmarks: who wins which run, on each benchmark and on all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import tolerance
from lmemtest.errors import DesignError
from lmemtest.inference.distributions.student import t_quantile
from lmemtest.inference.intervals.draws import interval_ends, plain_shares
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.model import fit_lmm
from lmemtest.studies.outperforming.intervals import (
    Counts,
    UStatistic,
    draw_unpaired,
    exact_interval,
    most_pairs,
    usual_interval,
    wilson,
)
from lmemtest.studies.outperforming.replicability import sign_test
from lmemtest.studies.outperforming.verdict import signs_of
from lmemtest.studies.ranking.blocks import Blocks

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


_AT_ONCE = 2_000_000  # benchmarks of draws that are in memory


@dataclass(frozen=True)
class Duel:
    """Two algorithms on the benchmarks that both ran on: signs of the differences, by pair or all against all.

    `families` are those of the benchmarks, where families are the sample; a benchmark counts once for each of its own.
    """

    names: tuple[str, ...]
    signs: list[Array]
    samples: list[tuple[Array, Array]]  # by benchmark, higher is better
    left: str = "A"
    right: str = "B"
    incomplete: bool = False  # whether runs were left out that have no partner
    families: tuple[str, ...] = ()

    def turned(self) -> Duel:
        """The same with the sides exchanged."""
        signs = [-np.swapaxes(s, -1, 0) for s in self.signs]  # of one axis as it is
        samples = [(b, a) for a, b in self.samples]
        return replace(self, signs=signs, samples=samples, left=self.right, right=self.left)

    @cached_property
    def all_signs(self) -> Array:
        """Those of all benchmarks, one after the other."""
        return np.concatenate([np.ravel(s) for s in self.signs])

    @property
    def alike(self) -> bool:
        """Whether all differences have one sign."""
        return bool(np.ptp(self.all_signs) == 0.0)

    @cached_property
    def binary(self) -> bool:
        """Whether all scores are 0 or 1: right or wrong answers."""
        return bool(np.isin(np.abs(np.concatenate([x for pair in self.samples for x in pair])), (0.0, 1.0)).all())

    @cached_property
    def counts(self) -> Counts:
        """By benchmark, of all differences."""
        first = np.cumsum([0, *(s.size for s in self.signs[:-1])])
        return Counts.of(*(np.add.reduceat(self.all_signs == value, first, dtype=np.intp) for value in (1, 0, -1)))

    @property
    def over_families(self) -> bool:
        """Whether families are the sample, and there are several."""
        return len(set(self.families)) > 1

    @property
    def family(self) -> NDArray[np.intp]:
        """Number of the family of each benchmark; without families each benchmark is one."""
        return np.asarray(np.unique(self.families, return_inverse=True)[1] if self.families else range(len(self.names)))

    @property
    def of_families(self) -> Array:
        """Mean of the benchmarks' probabilities by family."""
        own = self.family
        return np.asarray(np.bincount(own, weights=self.counts.estimate) / np.bincount(own))

    @property
    def mean(self) -> float:
        """Mean of the benchmarks' probabilities, of those by family where families are the sample."""
        return float(self.of_families.mean())


def duel_of(blocks: Blocks, x: int, y: int, paired: bool) -> Duel:
    """The runs of two algorithms, by their number, on the benchmarks that both ran on."""
    return _of_equal_sizes(blocks, x, y, paired) or _by_instance(blocks, x, y, paired)


def _of_equal_sizes(blocks: Blocks, x: int, y: int, paired: bool) -> Duel | None:
    """The duel where every benchmark has as many runs, without a look at each: None elsewhere."""
    sizes = blocks.n_runs[:, [x, y]]
    n, m = (int(size) for size in sizes[0])
    if (sizes != (n, m)).any() or not n or not m or len(blocks.block) != len(blocks.names):
        return None
    if paired and blocks.seeds is not None:
        of_x, of_y = blocks.seeds[:, x, :n], blocks.seeds[:, y, :m]
        if n != m or (of_x != of_y).any() or (np.diff(of_x, axis=1) <= 0).any():
            return None
    order = (
        np.argsort(blocks.block, kind="stable")
        if blocks.family is None
        else np.lexsort((blocks.block, blocks.family.astype(str)))
    )
    sign = 1.0 if blocks.direction == "maximize" else -1.0
    left, right = sign * blocks.runs[order, x, :n], sign * blocks.runs[order, y, :m]
    difference = left - right if paired else left[:, :, None] - right[:, None, :]
    largest = np.maximum(np.abs(left).max(axis=1), np.abs(right).max(axis=1))
    same = tolerance(1.0) * largest.reshape(-1, *(1,) * (difference.ndim - 1))
    return Duel(
        names=tuple(blocks.names[b] for b in blocks.block[order]),
        signs=list(np.where(np.abs(difference) <= same, 0.0, np.sign(difference))),
        samples=list(zip(left, right, strict=True)),
        left=blocks.algorithms[x],
        right=blocks.algorithms[y],
        families=() if blocks.family is None else tuple(map(str, blocks.family[order])),
    )


def _by_instance(blocks: Blocks, x: int, y: int, paired: bool) -> Duel:
    """The duel where sizes or seeds differ, one instance after the other."""
    found: dict[tuple[str, int], list[tuple[Array, Array]]] = {}
    sign, dropped = 1.0 if blocks.direction == "maximize" else -1.0, False
    for i, block in enumerate(blocks.block):
        left, right = (sign * blocks.runs[i, a, : blocks.n_runs[i, a]] for a in (x, y))
        if paired and blocks.seeds is not None:
            most = max(left.size, right.size)
            (of_left, left), (of_right, right) = (
                _by_seed(gain, blocks.seeds[i, a, : gain.size]) for gain, a in ((left, x), (right, y))
            )
            _, at_left, at_right = np.intersect1d(of_left, of_right, assume_unique=True, return_indices=True)
            left, right = left[at_left], right[at_right]
            dropped = dropped or left.size < most
        if left.size and right.size:
            family = "" if blocks.family is None else str(blocks.family[i])
            found.setdefault((family, int(block)), []).append((left, right))
    names = blocks.algorithms[x], blocks.algorithms[y]
    if not found:
        what = "seed that both ran with on the same benchmark" if paired else "benchmark that both ran on"
        instead = in_words_of(python=", or paired=False", command_line=", or --unpaired") if paired else ""
        raise DesignError(f"{names[0]} and {names[1]} have no {what}, so none of their runs can be compared. "
                          f"Bring such runs{instead}.")  # fmt: skip
    if not paired and max(len(parts) for parts in found.values()) > 1:
        instead = in_words_of(python="(paired=True)", command_line="(without --unpaired)")
        raise DesignError(
            "benchmarks have several instances (levels of metafeatures within them), and runs that are not paired "
            "cannot be compared across these. Filter the runs to one instance per benchmark, or pair them by seed "
            f"{instead}."
        )
    samples = [
        (np.concatenate([p[0] for p in found[b]]), np.concatenate([p[1] for p in found[b]])) for b in sorted(found)
    ]
    signs = [np.concatenate([signs_of(*parts, paired) for parts in found[b]]) for b in sorted(found)]
    families = () if blocks.family is None else tuple(family for family, _ in sorted(found))
    return Duel(tuple(blocks.names[b] for _, b in sorted(found)), signs, samples, *names, dropped, families)


def _by_seed(gains: Array, seeds: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
    """Seeds and mean gains by seed: rows that repeat a run are one run."""
    unique, own = np.unique(seeds, return_inverse=True)
    return unique, np.bincount(own, weights=gains) / np.bincount(own)


def by_benchmark(duel: Duel, paired: bool, level: float) -> pd.DataFrame:
    """One row per benchmark."""
    import pandas as pd

    counts = duel.counts
    if paired:
        low, high = usual_interval(counts, level)
        p = sign_test(counts.win, counts.loss)
    else:
        # a sample of one run has no variance, hence no interval
        ends = [UStatistic.of(s).score_interval(level) if min(s.shape) > 1 else (np.nan, np.nan) for s in duel.signs]
        low, high = (np.array(end) for end in zip(*ends, strict=True))
        p = _mann_whitney(duel.samples)
    return pd.DataFrame(
        {
            **({"family": duel.families} if duel.families else {}),
            "benchmark": duel.names,
            **{name: c.astype(int) for name, c in zip(("wins", "ties", "losses"), counts, strict=True)},
            "estimate": counts.estimate,
            "ci_low": low,
            "ci_high": high,
            "p_raw": p,
            "p_value": adjust_raw(p, "holm", len(p)),
        }
    )


def least_p(duel: Duel, paired: bool) -> Array:
    """The p-values of the benchmarks if all runs of left were better."""
    if paired:
        return 0.5 ** np.array([s.size for s in duel.signs], dtype=float)
    sizes = [(x.size, y.size) for x, y in duel.samples]
    kinds = list(dict.fromkeys(sizes))
    whole = [(np.arange(1.0, n + 1.0), -np.arange(1.0, m + 1.0)) for n, m in kinds]
    known = dict(zip(kinds, _mann_whitney(whole), strict=True))
    return np.array([known[size] for size in sizes])


def _mann_whitney(samples: list[tuple[Array, Array]]) -> Array:
    """One-sided p-values of scipy's test; scores that differ by rounding are tied.

    Benchmarks with the same order of their scores have the same p-value, which is computed once.
    """
    from scipy.stats import mannwhitneyu

    out = np.ones(len(samples))
    sizes = np.array([(x.size, y.size) for x, y in samples])
    for n, m in np.unique(sizes, axis=0):
        here = np.flatnonzero((sizes == (n, m)).all(axis=1))
        pooled = np.array([np.concatenate(samples[i]) for i in here])
        order = np.argsort(pooled, axis=1, kind="stable")
        apart = np.diff(np.take_along_axis(pooled, order, axis=1), axis=1)
        code = np.zeros(pooled.shape)
        rise = np.cumsum(apart > tolerance(1.0) * np.abs(pooled).max(axis=1, keepdims=True), axis=1)
        np.put_along_axis(code, order[:, 1:], rise.astype(float), axis=1)
        codes, which = np.unique(code, axis=0, return_inverse=True)
        p = [mannwhitneyu(c[:n], c[n:], alternative="greater").pvalue if c.any() else 1.0 for c in codes]
        out[here] = np.array(p)[np.ravel(which)]
    return out


def together(
    duel: Duel, method: str, paired: bool, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Estimate over the benchmarks, or over families of them, with both ends of its interval."""
    each = duel.of_families if duel.over_families else duel.counts.estimate
    if len(each) == 1:
        only = by_benchmark(duel, paired, level).iloc[0]
        return float(each[0]), float(only["ci_low"]), float(only["ci_high"])
    if duel.alike:
        # Each unit is one score in [0, 1], all of them 0, 1/2 or 1: neither a model nor draws have a variance.
        of_units = Counts.of(*(len(each) * (duel.signs[0].flat[0] == value) for value in (1, 0, -1)))
        low, high = exact_interval(of_units, level)
        return float(each.mean()), float(low), float(high)
    if method == "mixed":
        return _mixed(duel, level)
    units, most = rng.integers(len(each), size=(n_draws, len(each))), int(np.bincount(_units(duel)).max())
    draws = []
    for part in np.array_split(units, np.ceil(units.size * most / _AT_ONCE)):
        chosen, weight = _benchmarks_of(duel, part)
        found, inside = np.zeros(chosen.shape), weight > 0.0
        some = chosen[inside]
        found[inside] = _draw_paired(duel.counts, some, rng) if paired else _draw_runs(duel.signs, some, rng)
        draws.append((weight * found).sum(axis=1))
    low, high = interval_ends(np.concatenate(draws)[:, None], each.mean()[None], plain_shares(level, 1), "percentile")[
        :, 0
    ]
    return float(each.mean()), float(low), float(high)


def _units(duel: Duel) -> NDArray[np.intp]:
    """Number of the unit of the sample that each benchmark belongs to."""
    return duel.family if duel.over_families else np.arange(len(duel.names))


def _benchmarks_of(duel: Duel, units: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
    """The benchmarks of units ``(draws, units)``: their numbers and weights, ``(draws, benchmarks)``; 0 for no more."""
    own = _units(duel)
    size = np.bincount(own)
    place = np.arange(size.max())
    first = np.cumsum(size) - size
    inside = place < size[units][..., None]
    chosen = np.where(inside, first[units][..., None] + place, 0).reshape(len(units), -1)
    weight = np.where(inside, 1.0 / (units.shape[1] * size[units][..., None]), 0.0).reshape(len(units), -1)
    return np.argsort(own, kind="stable")[chosen], weight


def _draw_paired(counts: Counts, chosen: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Probabilities of the benchmarks that were chosen, with pairs drawn again within each of them."""
    numbers = np.stack(counts, axis=1)
    n = counts.n.astype(int)
    drawn = rng.multinomial(n[chosen], (numbers / n[:, None])[chosen])
    return np.asarray(drawn @ [1.0, 0.5, 0.0] / n[chosen])


def _draw_runs(signs: list[Array], chosen: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """The same where runs are not paired: runs of either algorithm are drawn again by themselves."""
    out = np.empty(chosen.shape)
    for i, s in enumerate(signs):
        out[chosen == i] = draw_unpaired(s, int((chosen == i).sum()), rng)
    return out


def _mixed(duel: Duel, level: float) -> tuple[float, float, float]:
    """Mean of the mixed model of wins, with Wilson's interval of as many wins as its variance amounts to.

    Student's interval of the intercept is symmetric, which the estimate of a probability is not unless it is one half.
    """
    most = sum(times * most_pairs(s) for s, times in _distinct(duel.signs)) if duel.signs[0].ndim == 2 else np.inf
    middle, variance, df = _over_families(duel) if duel.over_families else _over_benchmarks(duel)
    own = middle * (1.0 - middle)
    if min(variance, own) <= tolerance([1.0]):
        return middle, np.nan, np.nan
    low, high = wilson(middle, min(own / variance, most), float(t_quantile(0.5 * (1.0 - level), df)))
    return middle, float(low), float(high)


def _over_families(duel: Duel) -> tuple[float, float, float]:
    """Mean of the families' means, its variance and degrees of freedom in ``P ~ 1 + (1 | family)``.

    Every family counts the same, so with m benchmarks in a family and the variances ``b`` between families and ``w``
    within them the variance is the mean of ``b + w / m`` over the number of families. The families' means vary by as
    much, ``b`` is what ``w / m`` leaves of it, and no less than nothing.
    """
    own, each, means = duel.family, duel.counts.estimate, duel.of_families
    size = np.bincount(own)
    within = _ratio(float(((each - means[own]) ** 2).sum()), float((size - 1).sum()))
    variance = max(float(means.var(ddof=1)), within * float((1.0 / size).mean())) / len(size)
    if variance <= tolerance([1.0]):  # all benchmarks alike: what pairs vary within them
        variance = _over_benchmarks(duel)[1]
    return float(means.mean()), variance, len(size) - 1.0


def _over_benchmarks(duel: Duel) -> tuple[float, float, float]:
    """The same over benchmarks, by the mixed model of wins with random benchmarks."""
    df = len(duel.names) - 1.0  # benchmarks are the sample, also where their variance is zero
    if duel.signs[0].ndim == 2:
        return *_of_benchmarks(duel.counts.estimate, _variances_within(duel.signs)), df
    if all(np.ptp(s) == 0.0 for s in duel.signs):
        return *_of_benchmarks(duel.counts.estimate, np.zeros(len(duel.names))), df
    middle, variance, own_df = _intercept(duel)
    return middle, variance, min(df, own_df)


def _intercept(duel: Duel) -> tuple[float, float, float]:
    """Intercept of ``win ~ 1 + (1 | benchmark)`` of pairs, its variance and degrees of freedom."""
    import pandas as pd

    sizes = [s.size for s in duel.signs]
    table = pd.DataFrame({"benchmark": np.repeat(np.arange(len(sizes)), sizes).astype(str)})
    table["win"] = 0.5 + 0.5 * np.concatenate(duel.signs)
    fit = fit_lmm("win ~ 1 + (1 | benchmark)", table)
    whole = np.eye(1)
    middle, variance, df = (float(np.ravel(f(whole))[0]) for f in (fit.estimate, fit.cov, fit.df))
    return middle, variance, df


def _variances_within(signs: list[Array]) -> Array:
    """Variance of each benchmark's share of wins where ``win ~ 1 + (1 | left) + (1 | right)`` on each of them.

    All runs of one algorithm meet all of the other, so that the analysis of variance is one of balanced tables; its
    mean squares are pooled over the benchmarks. A fit of the comparisons would have no residual where scores are 0 and
    1: half the difference of two such scores is a sum of effects of runs.
    """
    n, m = np.array([s.shape for s in signs], dtype=float).T
    squares = np.zeros(3)
    for s, times in _distinct(signs):
        won = 0.5 + 0.5 * s
        by_left, by_right = won.mean(axis=1, keepdims=True), won.mean(axis=0, keepdims=True)
        parts = (by_left - won.mean(), by_right - won.mean(), won - by_left - by_right + won.mean())
        squares += [times * float((part**2).sum()) for part in parts]
    error = _ratio(squares[2], ((n - 1.0) * (m - 1.0)).sum())
    # With one run of an algorithm everywhere, its variance is part of that of benchmarks.
    left, right = (
        max(_ratio(square - error * ((k - 1.0) / other).sum(), (k - 1.0).sum()), 0.0)
        for square, k, other in ((squares[0], n, m), (squares[1], m, n))
    )
    return np.asarray(left / n + right / m + error / (n * m))


def _distinct(signs: list[Array]) -> list[tuple[Array, int]]:
    """The different ones, and how often each is there: of small tables on many benchmarks most are alike."""
    keys = [(s.shape, s.tobytes()) for s in signs]
    one_of_each = dict(zip(keys, signs, strict=True))
    return [(one_of_each[key], times) for key, times in Counter(keys).items()]


def _ratio(total: float, df: float) -> float:
    return float(total / df) if df > 0.0 else 0.0


def _of_benchmarks(each: Array, within: Array) -> tuple[float, float]:
    """Mean of the benchmarks' probabilities and its variance, where that within each of them is given.

    The variance between benchmarks solves ``sum (each - mean)^2 / (between + within) = N - 1`` (Paule & Mandel 1982),
    and each benchmark has the weight ``1 / (between + within)``.
    """
    low, high = 0.0, float(each.var(ddof=1))  # with the upper end the sum is N - 1 at most
    for _ in range(60):
        between = 0.5 * (low + high)
        weight = 1.0 / np.maximum(between + within, 1e-300)
        excess = weight @ (each - np.average(each, weights=weight)) ** 2 > len(each) - 1.0
        low, high = (between, high) if excess else (low, between)
    weight = 1.0 / np.maximum(high + within, 1e-300)
    return float(np.average(each, weights=weight)), float(1.0 / weight.sum())
