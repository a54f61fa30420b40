"""Looks while runs come in: false differences over whole studies, power, units saved, coverage at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, Array, at_least, at_most, covers, each, printed, rate_of
from references import values
from scipy import special, stats
from study import NAMES, runs_of_scores

import lmemtest as lt
from lmemtest.bench.looks.sample import FEW_OF_SEEDS
from lmemtest.bench.ranking.classical import FEWEST_MODERATED
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.means.adjust import level_of_pairs, range_p, step_down
from lmemtest.lmm.means.empirical_bayes import moderation
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end
from lmemtest.lmm.sequential.evalues import log_evalue
from lmemtest.lmm.sequential.spending import SPENDING
from lmemtest.lmm.sequential.successive_t import boundaries, boundaries_of_spent, level_of_look, repeated_p, score_of

DESIGNS = {  # algorithms, looks, what is unusual
    "2 algorithms, 3 to 10 benchmarks, looks every 1": (2, range(3, 11), ""),
    "3 algorithms, 3 to 12 benchmarks, looks every 1": (3, range(3, 13), ""),
    "4 algorithms, 6 to 40 benchmarks, looks every 2": (4, range(6, 41, 2), ""),
    "5 algorithms, 5 to 40 benchmarks, looks every 5": (5, range(5, 41, 5), ""),
    "10 algorithms, 5 to 20 benchmarks, looks every 5": (10, range(5, 21, 5), ""),
    "20 algorithms, 6 to 40 benchmarks, looks every 2": (20, range(6, 41, 2), ""),
    "4 algorithms, looks at 3, 4, 9, 11, 20, 33, 40 benchmarks": (4, (3, 4, 9, 11, 20, 33, 40), ""),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, two variants of one": (5, range(6, 41), "correlated"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, one erratic": (5, range(6, 41), "erratic"),
}
FAR_FROM_NORMAL = {  # one algorithm of the same mean: heavy tails on both sides, or rare large losses
    "2 algorithms, 3 to 10 benchmarks, looks every 1, heavy tails": (2, range(3, 11), "heavy"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, heavy tails": (5, range(6, 41), "heavy"),
    "2 algorithms, 3 to 10 benchmarks, looks every 1, skewed": (2, range(3, 11), "skewed"),
    "5 algorithms, 5 to 40 benchmarks, looks every 5, skewed": (5, range(5, 41, 5), "skewed"),
    "5 algorithms, 6 to 40 benchmarks, looks every 1, skewed": (5, range(6, 41), "skewed"),
}
CALLS = {  # through the public call, with moderated standard errors
    "5 algorithms, looks every 5 of 20 benchmarks": (5, range(5, 21, 5), ""),
    "5 algorithms, one erratic": (5, range(5, 21, 5), "erratic"),
    "5 algorithms, two variants of one": (5, range(5, 21, 5), "correlated"),
    "12 algorithms, looks at 4, 8, 12 benchmarks": (12, range(4, 13, 4), ""),
    "3 algorithms, looks every 1 of 6 to 20 benchmarks": (3, range(6, 21), ""),
    "6 algorithms, two variants of one, looks every 2 of 6 to 20 benchmarks": (6, range(6, 21, 2), "correlated"),
    "8 algorithms, one erratic, looks every 5 of 10 to 40 benchmarks": (8, range(10, 41, 5), "erratic"),
    "20 algorithms, looks at 10, 20, 40 benchmarks": (20, (10, 20, 40), ""),
    "20 algorithms, one erratic, looks every 5 of 5 to 20 benchmarks": (20, range(5, 21, 5), "erratic"),
    "4 algorithms, looks every 3 of 6 to 15 families of 2 benchmarks": (4, range(6, 16, 3), "families"),
}
SHARED = {  # luck that runs of an algorithm with one of 3 seeds share over benchmarks
    "5 algorithms, luck, looks every 5 of 20 benchmarks": (5, range(5, 21, 5), "luck"),
    "10 algorithms, luck, looks at 10, 20, 40 benchmarks": (10, (10, 20, 40), "luck"),
}


def scores_of(rng: np.random.Generator, k: int, n: int, kind: str = "", apart: Sequence[float] = ()) -> Array:
    """Benchmarks x algorithms x seeds: each algorithm has its own luck on each benchmark, or in each family of two."""
    if kind == "families":
        own = np.repeat(rng.standard_normal((n, k, 1)), 2, axis=0) + 0.5 * rng.standard_normal((2 * n, k, 1))
        return own + 0.5 * rng.standard_normal((2 * n, k, 2))
    own = rng.standard_normal((n, k, 1))
    if kind == "correlated":
        own[:, 1] = own[:, 0] + 0.1 * rng.standard_normal((n, 1))
    if kind == "erratic":
        own[:, 0] *= 6.0
    if kind == "heavy":
        own[:, 0] += 2.0 * rng.standard_t(2, (n, 1))
    if kind == "skewed":
        own[:, 0] += 2.0 * (np.exp(rng.standard_normal((n, 1))) - np.exp(0.5))
    x = own + 3.0 * rng.standard_normal((n, 1, 1)) + 0.5 * rng.standard_normal((n, k, 3))
    if kind == "luck":
        x += rng.standard_normal((1, k, 3))
    if len(apart):
        x += np.asarray(apart)[:, None]
    return x


def looked_at(x: Array, sizes: Sequence[int], each: int = 1, **options: Any) -> Any:
    """The last look of a study of these scores; of families, if `each` is the number of benchmarks in one."""
    found, families = None, np.arange(len(x)) // each
    for size in sizes:
        now = slice(size * each)
        columns = {"family": families[now, None, None]} if each > 1 else {}
        found = lt.monitor(runs_of_scores(x[now], **columns), earlier=found, **options)
        if found.decision == "stop":
            break
    return found


def of_t_tests(k: int, sizes: Sequence[int], kind: str, n: int = 4000) -> dict[str, float]:
    """Studies with a false pair by paired t-tests of one score per benchmark: at looks, by e-values, as if alone."""
    rng, (i, j) = np.random.default_rng(32), np.triu_indices(k, 1)
    x = np.array([scores_of(rng, k, sizes[-1], kind)[:, :, 0] for _ in range(n)])
    gaps = x[:, :, i] - x[:, :, j]
    names = ("O'Brien-Fleming", "Pocock", "e-values", "as if alone", "at the end alone")
    false = {name: np.zeros(n, dtype=bool) for name in names}
    for look, size in enumerate(sizes):
        test = stats.ttest_1samp(gaps[:, :size], 0.0, axis=1)
        for name, spending in (("O'Brien-Fleming", "obrien_fleming"), ("Pocock", "pocock")):
            p = repeated_p(test.pvalue.min(axis=1), sizes[: look + 1], sizes[-1], spending)
            false[name] |= p * len(i) < ALPHA
        false["e-values"] |= log_evalue(np.abs(test.statistic).max(axis=1), size, 1.0) > np.log(len(i) / ALPHA)
        false["as if alone"] |= test.pvalue.min(axis=1) * len(i) < ALPHA
    false["at the end alone"] = test.pvalue.min(axis=1) * len(i) < ALPHA
    return {name: float(found.mean()) for name, found in false.items()}


@pytest.mark.parametrize("design", DESIGNS)
def test_any_false_difference_over_the_whole_study(design: str) -> None:
    found = of_t_tests(*DESIGNS[design])
    for name in ("O'Brien-Fleming", "Pocock", "e-values"):
        assert at_most(found[name], 4000)
    assert found["as if alone"] > 0.075


@pytest.mark.parametrize("design", FAR_FROM_NORMAL)
def test_heavy_tails_keep_the_level_and_skewness_harms_looks_more_than_one_test(design: str) -> None:
    found = of_t_tests(*FAR_FROM_NORMAL[design])
    if FAR_FROM_NORMAL[design][2] == "heavy":
        assert all(at_most(found[name], 4000) for name in ("O'Brien-Fleming", "Pocock", "e-values"))
    else:
        assert found["e-values"] < min(found["O'Brien-Fleming"], found["Pocock"])
        assert ALPHA < found["at the end alone"] < found["O'Brien-Fleming"] < 0.15


def of_calls(k: int, sizes: Sequence[int], kind: str, n: int = 200, **options: Any) -> float:
    """The same through `monitor`."""

    def study(rng: np.random.Generator) -> bool:
        x = scores_of(rng, k, sizes[-1], kind)
        found = looked_at(x, sizes, len(x) // sizes[-1], **{"maximum": sizes[-1], **options})
        assert found.schedule.unit == ("family" if kind == "families" else "benchmark")
        return bool(found.pairs["decided"].any())

    return float(rate_of(study, n, each(32)))


@pytest.mark.parametrize("design", CALLS)
def test_the_call_keeps_the_level(design: str) -> None:
    assert at_most(of_calls(*CALLS[design]), 200)


def moderated_p(x: Array) -> Array:
    """P-values of all pairs, of tables x benchmarks x algorithms: what `monitor` tests by, of many tables at once."""
    n, k = x.shape[1:]
    left, right = np.triu_indices(k, 1)
    gaps = x[:, :, left] - x[:, :, right]
    own, df = gaps.var(axis=1, ddof=1), np.full((len(x), len(left)), n - 1.0)
    if n >= FEWEST_MODERATED:
        common = own.mean(axis=1, keepdims=True)
        found = moderation(own / common, df, left, right, np.ones(k))
        pairs = Functions(np.stack([left, right]), np.ones((2, len(left))), k)
        ratio, df = found.ratios(pairs, own / common, df, (k - 1) * df)
        own = ratio * common
    return np.asarray(2.0 * stats.t.sf(np.abs(gaps.mean(axis=1)) / np.sqrt(own / n), df))


def of_many(k: int, sizes: Sequence[int], kind: str, n: int = 2000) -> dict[str, float]:
    """The rule of `monitor` on arrays: studies with a false pair, by both spendings; the first ones are as by the call.

    Of one run on each benchmark, or of the means of families of two.
    """
    m, studies = k * (k - 1) // 2, [scores_of(np.random.default_rng([i, 32]), k, sizes[-1], kind) for i in range(n)]
    x = np.array([study.reshape(sizes[-1], -1, k, study.shape[-1]).mean(axis=(1, 3)) for study in studies])
    smallest = {spending: np.ones((n, m)) for spending in SPENDING}
    for look, size in enumerate(sizes):
        p = np.concatenate([moderated_p(part[:, :size]) for part in np.array_split(x, 20)])
        for spending, p_least in smallest.items():
            np.minimum(p_least, repeated_p(p, sizes[: look + 1], sizes[-1], spending), out=p_least)
    for spending, p_least in smallest.items():
        for i in range(2):
            each = 1 + (kind == "families")
            family = {"family": np.repeat(np.arange(sizes[-1]), 2)[:, None, None]} if each > 1 else {}
            found = None
            for size in sizes:
                table = runs_of_scores(
                    (studies[i] if each > 1 else x[i][:, :, None])[: size * each],
                    seed_shared=False,
                    **{name: levels[: size * each] for name, levels in family.items()},
                )
                found = lt.monitor(table, maximum=sizes[-1], spending=spending, earlier=found)
            np.testing.assert_allclose(found.pairs["p_repeated"], p_least[i], rtol=1e-5, atol=2e-9)
    return {spending: float((p_least.min(axis=1) * m < ALPHA).mean()) for spending, p_least in smallest.items()}


MANY = {
    "3 algorithms, looks every 1 of 6 to 40 benchmarks": (3, range(6, 41), ""),
    "4 algorithms, looks every 2 of 6 to 40 benchmarks": (4, range(6, 41, 2), ""),
    "5 algorithms, two variants of one, looks every 1 of 6 to 40 benchmarks": (5, range(6, 41), "correlated"),
    "5 algorithms, one erratic, looks every 1 of 6 to 40 benchmarks": (5, range(6, 41), "erratic"),
    "10 algorithms, looks every 5 of 5 to 40 benchmarks": (10, range(5, 41, 5), ""),
    "20 algorithms, looks every 2 of 6 to 40 benchmarks": (20, range(6, 41, 2), ""),
    "20 algorithms, one erratic, looks every 2 of 6 to 40 benchmarks": (20, range(6, 41, 2), "erratic"),
    "4 algorithms, looks every 1 of 6 to 20 families of 2 benchmarks": (4, range(6, 21), "families"),
    "10 algorithms, looks every 2 of 6 to 20 families of 2 benchmarks": (10, range(6, 21, 2), "families"),
}


@pytest.mark.parametrize("design", MANY)
def test_the_rule_of_the_call_keeps_the_level_in_many_studies(design: str) -> None:
    found = of_many(*MANY[design])
    assert at_most(found["obrien_fleming"], 2000)
    assert at_most(found["pocock"], 2000)


def of_luck(k: int, sizes: Sequence[int], seeds: int, noise: float, luck: float, n: int = 2000) -> dict[str, float]:
    """Studies with a false pair where seeds share luck, in closed form: without it in the errors, with it, by e-values.

    Advantages have the standard deviation 1, runs `noise`, luck that seeds share over benchmarks `luck`. Differences
    have the pooled variance of means over seeds, to which that of the luck is added, by moments. "Of these seeds" has
    algorithms that are equal with just these seeds: their luck is without its mean.
    """

    def off(z: Array) -> Array:
        z = z - z.mean(-1, keepdims=True)
        return np.asarray(z - z.mean(-2, keepdims=True))

    rng, pairs, names = np.random.default_rng(1), k * (k - 1) // 2, ("without", "with", "e-values", "of these seeds")
    false = {name: np.zeros(n, dtype=bool) for name in names}
    df_luck = (k - 1) * (seeds - 1)
    for part in np.array_split(np.arange(n), 20):
        shape = (len(part), sizes[-1], k)
        x = rng.standard_normal((*shape, 1)) + noise * rng.standard_normal((*shape, seeds))
        of_seed = luck * rng.standard_normal((len(part), 1, k, seeds))
        for look, b in enumerate(sizes):
            y = x[:, :b] + of_seed
            means = y.mean(axis=3)
            of_seeds = b * np.square(off(y.mean(axis=1))).sum(axis=(1, 2)) / df_luck
            rest = np.square(off(y)).sum(axis=(1, 2, 3)) / df_luck - of_seeds
            rest, df_rest = rest / (b - 1), (b - 1) * df_luck
            f = of_seeds / rest
            added = np.maximum(of_seeds - rest, 0.0) * 2.0 / b / seeds
            df_added = (f - 1.0) ** 2 / (f**2 / df_luck + 1.0 / df_rest)
            df_own = (b - 1.0) * (k - 1.0)
            own = 2.0 * np.square(off(means)).sum(axis=(1, 2)) / df_own / b
            df = (own + added) ** 2 / (own**2 / df_own + added**2 / df_added)
            t, of_these = (  # of the pair that is furthest apart
                np.ptp(z.mean(axis=1), axis=1) for z in (means, means - of_seed.mean(axis=3))
            )
            p_with = 2.0 * stats.t.sf(t / np.sqrt(own + added), df)
            for name, p in (
                ("without", 2.0 * stats.t.sf(t / np.sqrt(own), df_own)),
                ("with", p_with),
                ("of these seeds", 2.0 * stats.t.sf(of_these / np.sqrt(own + added), df)),
            ):
                false[name][part] |= repeated_p(p, sizes[: look + 1], sizes[-1]) * pairs < ALPHA
            false["e-values"][part] |= log_evalue(stats.t.isf(0.5 * p_with, b - 1), b, 1.0) > np.log(pairs / ALPHA)
    return {name: float(rate.mean()) for name, rate in false.items()}


LUCKY = {
    f"{k} algorithms, {seeds} seeds, noise {noise:g}, luck {luck:g}": (k, sizes, seeds, noise, luck)
    for k, sizes, seeds in ((2, range(6, 25, 6), 3), (3, range(6, 21), 3), (5, range(6, 41, 2), 3),
                            (4, range(6, 21, 2), 3), (3, range(6, 21), 5), (2, range(6, 25, 6), 7),
                            (4, range(10, 41, 10), 5), (10, range(5, 21, 5), 5))
    for noise, luck in ((0.5, 0.0), (0.5, 0.1), (0.5, 1.0), (3.0, 0.3), (3.0, 1.0))
} | {"2 algorithms, 2 seeds, noise 0.5, luck 1": (2, range(6, 25, 6), 2, 0.5, 1.0)}  # fmt: skip


@pytest.mark.parametrize("design", LUCKY)
def test_luck_in_the_errors_keeps_the_level(design: str) -> None:
    """Where degrees of freedom are few the claim is about these seeds: of algorithms that are equal with them."""
    found, (k, _, seeds, _, luck) = of_luck(*LUCKY[design]), LUCKY[design]
    few = (k - 1) * (seeds - 1) < FEW_OF_SEEDS
    assert at_most(found["of these seeds"], 2000, 0.055)
    assert at_most(found["e-values"], 2000, 0.08 if few else ALPHA)
    assert at_most(found["with"], 2000, 0.14 if few else 0.055)
    if luck == 1.0:
        assert found["with"] < 0.5 * found["without"]


def of_shared_seeds(k: int, sizes: Sequence[int], kind: str, n: int = 200) -> dict[str, float]:
    """The same where seeds share luck: with it in the errors, by spending and by e-values; and without it."""
    found = {"spending": of_calls(k, sizes, kind, n), "e-values": of_calls(k, sizes, kind, n, method="evalue")}

    def study(rng: np.random.Generator) -> bool:
        x, found = scores_of(rng, k, sizes[-1], kind), None
        for size in sizes:
            found = lt.monitor(runs_of_scores(x[:size], seed_shared=False), maximum=sizes[-1], earlier=found)
            if found.decision == "stop":
                break
        return bool(found.pairs["decided"].any())

    return found | {"seeds taken for new ones": float(rate_of(study, n, each(32)))}


@pytest.mark.parametrize("design", SHARED)
def test_luck_that_seeds_share_makes_no_false_differences(design: str) -> None:
    found = of_shared_seeds(*SHARED[design])
    assert at_most(found["spending"], 200)
    assert at_most(found["e-values"], 200)
    assert found["seeds taken for new ones"] > 0.3


def of_pairs(k: int, sizes: tuple[int, ...], kind: str, n: int = 150) -> float:
    """Studies with a false pair where each look is `pairs(looks=)` with its defaults: moderated, step-down."""

    def study(rng: np.random.Generator) -> bool:
        x = scores_of(rng, k, sizes[-1], kind)
        for size in sizes:
            runs = runs_of_scores(x[:size])
            means = lt.recommend(runs).spec.fit(runs).emmeans("algorithm", vcov="moderated")
            if (found := means.pairs(looks=sizes)).table["p_value"].min() < found.alpha:
                return True
        return False

    return float(rate_of(study, n, each(37)))


PAIRS = {
    "4 algorithms, looks at 10, 20, 40": (4, (10, 20, 40), ""),
    "5 algorithms, one erratic, looks at 10, 20, 40": (5, (10, 20, 40), "erratic"),
}


@pytest.mark.parametrize("design", PAIRS)
def test_pairs_at_planned_looks_keep_the_level(design: str) -> None:
    assert at_most(of_pairs(*PAIRS[design]), 150)


def of_range_tests(k: int, sizes: range, n: int = 4000) -> dict[str, float]:
    """Studies with a false pair by Tukey's test of means, each pair spending for itself, or the family as one test."""
    rng, reached = np.random.default_rng(38), np.zeros((n, 3), dtype=bool)
    each_pair = [level_of_pairs(size, sizes, ALPHA, k) for size in sizes]
    family = [level_of_look(size, sizes, ALPHA) for size in sizes]
    for part in np.array_split(np.arange(n), 20):
        x = rng.standard_normal((len(part), sizes[-1], k))
        for i, size in enumerate(sizes):
            mean = x[:, :size].mean(axis=1)
            rest = (
                x[:, :size] - mean[:, None] - x[:, :size].mean(axis=2, keepdims=True) + mean.mean(axis=1)[:, None, None]
            )
            df = (size - 1) * (k - 1)
            t = np.ptp(mean, axis=1) / np.sqrt(2.0 * (rest**2).sum(axis=(1, 2)) / df / size)
            p = range_p(2.0 * stats.t.sf(t, df), k)
            reached[part] |= np.array([p < each_pair[i], p < family[i], (p < ALPHA) & (size == sizes[-1])]).T
    names = ("each pair spends", "the family spends", "at the end alone")
    return dict(zip(names, reached.mean(axis=0).tolist(), strict=True))


RANGES = {
    "4 algorithms, looks every 2 from 6 to 40": (4, range(6, 41, 2)),
    "20 algorithms, looks every 2 from 6 to 40": (20, range(6, 41, 2)),
}


@pytest.mark.parametrize("design", RANGES)
def test_each_pair_spends_for_itself(design: str) -> None:
    """A family that spends as one test lets 6 % of studies pass with 20 algorithms and 18 looks."""
    found = of_range_tests(*RANGES[design])
    assert at_most(found["each pair spends"], 4000)
    assert found["each pair spends"] < found["the family spends"]


def of_information(sizes: Sequence[int], spending: str, planned: float, n: int = 10_000) -> dict[str, float]:
    """Two algorithms that are equal, or 0.55 sd apart: spending by the number of benchmarks, or by information.

    The latter is the planned squared error at the end over that of now, which is estimated; `planned` is the variance
    that the plan supposes, over the true one. What is left is spent at the last look, or when the information is there.
    """
    rng, end, found = np.random.default_rng(50), sizes[-1], {}
    for apart in (0.0, 0.55):
        x = rng.standard_normal((n, end)) + apart
        sd = np.stack([x[:, :size].std(axis=1, ddof=1) for size in sizes], axis=1)
        t = np.stack([x[:, :size].mean(axis=1) * np.sqrt(size) for size in sizes], axis=1) / sd
        z = score_of(2.0 * stats.t.sf(np.abs(t), np.array(sizes) - 1))
        shares = {"by number": np.ones((n, 1)) * sizes / end, "by information": np.array(sizes) / end * planned / sd**2}
        for how, share in shares.items():
            share = np.maximum.accumulate(np.minimum(share, 1.0), axis=1)
            share[:, -1] = 1.0
            with np.errstate(divide="ignore", invalid="ignore"):  # behind the look at which nothing is left
                bound = boundaries_of_spent(sizes, SPENDING[spending](share, ALPHA))
            last = np.argmax(share == 1.0, axis=1)  # the look at which nothing is left
            reached = (z > bound) & (np.arange(len(sizes)) <= last[:, None])
            if apart:
                stop = np.where(reached.any(axis=1), reached.argmax(axis=1), last)
                found |= {
                    f"{how}, power": reached.any(axis=1).mean(),
                    f"{how}, used": np.take(sizes, stop).mean() / end,
                }
            else:
                found[f"{how}, false"] = reached.any(axis=1).mean()
    return {name: float(value) for name, value in found.items()}


INFORMATION = {
    f"looks at {', '.join(map(str, sizes))}, {spending}, planned variance {planned:g} of the true one": (
        sizes, spending, planned)
    for sizes in ((5, 10, 20, 40), (3, 4, 9, 11, 20, 33, 40), (4, 6, 8, 10, 12, 14, 16, 18, 20))
    for spending in ("obrien_fleming", "pocock")
    for planned in (0.5, 1.0, 2.0)
}  # fmt: skip


@pytest.mark.parametrize("design", INFORMATION)
def test_spending_by_estimated_information_breaks_the_level_and_finds_no_more(design: str) -> None:
    found = of_information(*INFORMATION[design])
    assert at_most(found["by number, false"], 10_000, 0.055)
    assert found["by information, false"] > found["by number, false"]
    if design.endswith(" 1 of the true one"):
        assert found["by information, power"] < found["by number, power"]


def of_looks_at_will(k: int, end: int, n: int = 4000) -> dict[str, float]:
    """Studies with a false pair where only the maximum is planned: looks at random, or chosen by results; Tukey's test.

    Who is led by results looks after every benchmark once some pair is at 10 % by itself. "As planned" takes each look
    for the first of those at it and at the end.
    """
    rng, names = np.random.default_rng(42), ("at random", "by results", "as planned, by results")
    reached = np.zeros((n, 3), dtype=bool)
    at_will = [level_of_pairs(size, range(2, end + 1), ALPHA, k) for size in range(2, end + 1)]
    planned = [level_of_pairs(size, sorted({size, end}), ALPHA, k) for size in range(2, end + 1)]
    for part in np.array_split(np.arange(n), 20):
        x = rng.standard_normal((len(part), end, k))
        random = rng.random((len(part), end + 1)) < 0.3
        random[:, end], led = True, np.zeros(len(part), dtype=bool)
        for i, size in enumerate(range(2, end + 1)):
            mean = x[:, :size].mean(axis=1)
            rest = x[:, :size] - mean[:, None] - x[:, :size].mean(axis=2, keepdims=True)
            rest += mean.mean(axis=1)[:, None, None]
            df = (size - 1) * (k - 1)
            t = np.ptp(mean, axis=1) / np.sqrt(2.0 * (rest**2).sum(axis=(1, 2)) / df / size)
            p_raw = 2.0 * stats.t.sf(t, df)
            p, looks = range_p(p_raw, k), led | (size == end)
            reached[part] |= np.array([random[:, size] & (p < at_will[i]), looks & (p < at_will[i]),
                                       looks & (p < planned[i])]).T  # fmt: skip
            led |= p_raw < 0.1
    return dict(zip(names, reached.mean(axis=0).tolist(), strict=True))


AT_WILL = {"2 algorithms, up to 20": (2, 20), "4 algorithms, up to 40": (4, 40), "10 algorithms, up to 40": (10, 40)}


@pytest.mark.parametrize("design", AT_WILL)
def test_with_a_maximum_alone_looks_may_come_at_will(design: str) -> None:
    found = of_looks_at_will(*AT_WILL[design])
    assert at_most(found["at random"], 4000)
    assert at_most(found["by results"], 4000)
    assert found["as planned, by results"] > found["by results"]


def of_gates(lost: float, sizes: Sequence[int], n: int = 4000) -> dict[str, float]:
    """Studies whose gate passes or fails at some look; the margin is 0.5, half of the sd between tasks."""
    x = np.random.default_rng(39).normal(0.5 - lost, 1.0, (n, sizes[-1]))  # how far gains are above the border
    found = {f"{how}, {what}": np.zeros(n, dtype=bool) for how in ("looks", "e-values", "as if alone")
             for what in ("passes", "fails")}  # fmt: skip
    for size in sizes:
        t = x[:, :size].mean(axis=1) / x[:, :size].std(axis=1, ddof=1) * np.sqrt(size)
        level = 0.5 * level_of_look(size, sizes, 2.0 * ALPHA)
        for what, sign in (("passes", 1.0), ("fails", -1.0)):
            p = stats.t.sf(sign * t, size - 1)
            found[f"looks, {what}"] |= p < level
            found[f"e-values, {what}"] |= log_evalue(sign * t, size, 1.0, one_sided=True) > -np.log(ALPHA)
            found[f"as if alone, {what}"] |= p < ALPHA
    return {name: float(rate.mean()) for name, rate in found.items()}


GATES = {
    "at the border, looks every 4 of 40": (0.5, range(4, 41, 4)),
    "at the border, looks at 10, 20, 30, 40": (0.5, (10, 20, 30, 40)),
    "equal versions, looks at 10, 20, 30, 40": (0.0, (10, 20, 30, 40)),
}


@pytest.mark.parametrize("design", GATES)
def test_a_gate_that_is_looked_at_again_keeps_its_levels(design: str) -> None:
    found = of_gates(*GATES[design])
    if "border" in design:
        for what in ("passes", "fails"):
            assert at_most(found[f"looks, {what}"], 4000)
            assert at_most(found[f"e-values, {what}"], 4000)
            assert found[f"as if alone, {what}"] > 0.1
    else:
        assert found["looks, passes"] > found["e-values, passes"] > 0.5


def called(n: int = 60) -> float:
    """Gates through the public call whose version at the border passes at some planned look."""

    def study(rng: np.random.Generator) -> bool:
        new = pd.DataFrame({"task": np.arange(24), "reward": rng.normal(-0.5, 1.0, 24)})
        old = new.assign(reward=0.0)
        gates = (lt.gate(new[:size], old[:size], margin=0.5, score="reward", benchmark="task", direction="maximize",
                         looks=(8, 16, 24)) for size in (8, 16, 24))  # fmt: skip
        return any(found.decision == "not worse" for found in gates)

    return float(rate_of(study, n, each(40)))


def test_a_gate_at_planned_looks_by_the_public_call() -> None:
    assert at_most(called(), 60)


def friedman_race(x: Array, first: int = 5) -> tuple[list[int], int]:
    """The survivors of F-Race (Birattari et al. 2002; Lopez-Ibanez et al. 2016), benchmark by benchmark, and its runs.

    Friedman's test at 5 % of the survivors; if it is significant, Conover's t-tests of rank sums at 5 % against the
    best one, without adjustment. Of two survivors Wilcoxon's signed-rank test.
    """
    alive, runs = list(range(x.shape[1])), 0
    for n in range(1, len(x) + 1):
        runs += len(alive)
        k, y = len(alive), x[:n, alive]
        if n < first or k < 2:
            continue
        if k == 2:
            if stats.wilcoxon(y[:, 0], y[:, 1]).pvalue < ALPHA:
                alive = [alive[int(np.median(y[:, 0] - y[:, 1]) > 0.0)]]
            continue
        ranks = stats.rankdata(y, axis=1)
        sums, squares = ranks.sum(axis=0), (ranks**2).sum()
        rest = squares - n * k * (k + 1) ** 2 / 4.0
        statistic = (k - 1) * ((sums - n * (k + 1) / 2.0) ** 2).sum() / rest
        if stats.chi2.sf(statistic, k - 1) < ALPHA:
            spread = np.sqrt(2.0 * n * (1.0 - statistic / (n * (k - 1))) * rest / ((n - 1) * (k - 1)))
            apart = stats.t.isf(ALPHA / 2.0, (n - 1) * (k - 1)) * spread
            alive = [name for name, behind in zip(alive, sums - sums.min(), strict=True) if behind <= apart]
    return alive, runs


def races(apart: tuple[float, ...], n: int = 100) -> dict[str, float]:
    """Races for the best of some algorithms over 40 benchmarks: by `monitor(goal="best").next()`, and F-Race.

    The best lost: called worse than another at some look, or eliminated; runs of one algorithm on one benchmark.
    """
    k, sizes = len(apart), range(5, 41, 5)

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = rng.standard_normal((40, k)) + rng.standard_normal((40, 1)) + np.array(apart)
        kept, found, active = np.zeros((40, k, 1), dtype=bool), None, np.ones(k, dtype=bool)
        for size in sizes:
            kept[size - 5 : size, active] = True
            runs = runs_of_scores(x[:size, :, None], kept=kept[:size])
            found = lt.monitor(runs, maximum=40, looks=5, goal="best", earlier=found)
            if found.decision == "stop":
                break
            active = found.next().to_frame()["run"].to_numpy()
        alive, raced = friedman_race(x)
        first = found.pairs["left"] == "A"
        lost = (found.pairs["decided"] & first & ~found.pairs["left_ahead"]).any()
        mine = {"lost": lost, "found": found.decision == "stop", "runs": kept.sum() / (40.0 * k)}
        return mine | {
            "F-Race, lost": 0 not in alive,
            "F-Race, found": alive == [0],
            "F-Race, runs": raced / (40.0 * k),
        }

    return dict(rate_of(study, n, each(41)))


def races_of_t_tests(apart: tuple[float, ...], n: int = 1000) -> dict[str, float]:
    """The same with paired t-tests, of many more studies: the rules of `monitor(goal="best").next()` on arrays."""
    k, sizes = len(apart), range(5, 41, 5)
    i, j = np.triu_indices(k, 1)

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = rng.standard_normal((40, k)) + rng.standard_normal((40, 1)) + np.array(apart)
        smallest, better, active, used = np.ones(len(i)), np.zeros(len(i), dtype=bool), np.ones(k, dtype=bool), 0
        for look, size in enumerate(sizes):
            used += 5 * active.sum()
            both = active[i] & active[j]
            gaps = x[:size, i[both]] - x[:size, j[both]]
            t = gaps.mean(axis=0) / gaps.std(axis=0, ddof=1) * np.sqrt(size)
            p = np.ones(len(i))
            p[both] = repeated_p(2.0 * stats.t.sf(np.abs(t), size - 1), sizes[: look + 1], 40)
            better[both] = np.where(p[both] < smallest[both], t < 0.0, better[both])
            smallest = np.minimum(smallest, p)
            decided = step_down(smallest, k, first_by_range=False) < ALPHA
            worse = np.isin(np.arange(k), np.where(better, j, i)[decided])
            if worse.sum() == k - 1:
                break
            still = ~decided & ~worse[i] & ~worse[j]
            active = np.isin(np.arange(k), np.concatenate([i[still], j[still]]))
            if not active.any():
                break
        alive, raced = friedman_race(x)
        return {
            "lost": bool(worse[0]), "found": worse.sum() == k - 1 and not worse[0], "runs": used / (40.0 * k),
            "F-Race, lost": 0 not in alive, "F-Race, found": alive == [0], "F-Race, runs": raced / (40.0 * k),
        }  # fmt: skip

    return dict(rate_of(study, n, each(41)))


RACES = {
    "6 algorithms, the best by 0.1 sd": ((0.0, 0.1, 0.1, 0.1, 0.1, 0.1),),
    "6 algorithms, the best by 0.7 sd, others further behind": ((0.0, 0.7, 0.7, 1.0, 1.5, 2.0),),
}


@pytest.mark.parametrize("design", RACES)
def test_a_race_with_a_level_seldom_loses_the_best(design: str) -> None:
    found = races(*RACES[design])
    assert at_most(found["lost"], 100)
    assert found["lost"] <= found["F-Race, lost"]
    if "others further" in design:
        assert found["runs"] < 0.9


@pytest.mark.parametrize("design", RACES)
def test_a_race_by_t_tests_seldom_loses_the_best(design: str) -> None:
    found = races_of_t_tests(*RACES[design])
    assert at_most(found["lost"], 1000)
    assert found["lost"] < found["F-Race, lost"]
    assert found["F-Race, runs"] < found["runs"] <= 1.0


def of_seeds(name: str, n: int | None = None) -> dict[str, float]:
    """Agents on one task, 5 seeds at a look, 25 at most: studies in which adastop was run, by `monitor` and `.next()`.

    Studies in which equal agents are called different, unlike pairs found, and runs made, of all that were planned.
    """
    adastop = values("adastop_seeds")
    theirs, group, looks = adastop["designs"][name], adastop["group"], adastop["looks"]
    ahead, end = np.array(theirs["ahead"]), group * looks
    i, j = np.triu_indices(len(ahead), 1)
    equal, k = ahead[i] == ahead[j], iter(range(n or adastop["studies"]))

    def study(_: np.random.Generator) -> dict[str, float]:
        x = np.random.default_rng([next(k), 44]).standard_normal((end, len(ahead))) + ahead
        kept, active, found = np.zeros((1, len(ahead), end), dtype=bool), np.ones(len(ahead), dtype=bool), None
        for size in range(group, end + 1, group):
            kept[:, active, size - group : size] = True
            runs = runs_of_scores(x.T[None, :, :size], kept=kept[:, :, :size], direction="maximize")
            found = lt.monitor(runs, unit="seed", maximum=end, looks=group, earlier=found)
            if found.decision in ("stop", "undecided at the end"):
                break
            active = found.next(group).to_frame()["run"].to_numpy()
        decided = found.pairs["decided"].to_numpy()
        power = float(decided[~equal].mean()) if not equal.all() else 0.0
        return {"false": bool((decided & equal).any()), "power": power, "runs": float(kept.mean())}

    mine = dict(rate_of(study, n or adastop["studies"], 0))
    return mine | {f"adastop, {key}": theirs[key] for key in ("false", "power", "runs")}


SEEDS = (
    "3 equal agents", "5 equal agents", "3 agents, one 1 sd ahead", "5 agents, 0 to 2 sd ahead",
)  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_of_one_task_keep_the_level_beside_adastop(name: str) -> None:
    found = of_seeds(name)
    assert at_most(found["false"], 200)
    assert found["power"] > found["adastop, power"] - 0.1


def extended(n: int = 400) -> float:
    """Two equal algorithms, looks at 5 and 10 of 20 benchmarks; who sees nothing then adds 15 and tests them alone."""

    def study(rng: np.random.Generator) -> bool:
        x = scores_of(rng, 2, 25)
        found = looked_at(x[:10], (5, 10), maximum=20, looks=5)
        if found.decision == "stop":
            return True
        table = pd.DataFrame({"task": np.repeat(np.arange(25), 6), "tool": np.tile(np.repeat(NAMES[:2], 3), 25),
                              "rep": np.tile(np.arange(3), 50), "loss": x.ravel()})  # fmt: skip
        roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "rep"}
        runs = lt.Runs(table, **roles, seed_shared=False)
        return bool(found.extension(runs).to_frame()["decided"].any())

    return float(rate_of(study, n, each(36)))


def test_an_extension_keeps_the_level_of_the_whole_study() -> None:
    assert at_most(extended(), 400)


def power_and_size(n: int = 150) -> dict[str, float]:
    """Four algorithms, the last one worse: looks at 10, 20, 30, 40 against one test at 40."""
    sizes, apart = (10, 20, 30, 40), (0.0, 0.0, 0.0, 0.9)

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = scores_of(rng, 4, 40, apart=apart)
        out: dict[str, float] = {}
        for name, looks, options in (("fixed", (40,), {"maximum": 40}), ("spending", sizes, {"maximum": 40}),
                                     ("pocock", sizes, {"maximum": 40, "spending": "pocock"}),
                                     ("evalue", sizes, {"method": "evalue"})):  # fmt: skip
            found = looked_at(x, looks, control="D", **options)
            out[f"{name} power"] = float(found.pairs["decided"].mean())
            out[f"{name} benchmarks"] = found.sizes[-1]
        return out

    return dict(rate_of(study, n, each(33)))


def test_looks_cost_little_power_and_save_benchmarks() -> None:
    rates = power_and_size()
    assert rates["spending power"] > rates["fixed power"] - 0.05
    assert rates["spending benchmarks"] < 36.0  # of 40
    assert rates["evalue power"] < rates["spending power"]


def coverage(spending: str, apart: float, futility: float = 0.0, n: int = 2000) -> float:
    """Of the interval at the end of a study of two algorithms that stops by itself, looks every 4 of 16 benchmarks.

    With a `futility` it also stops where the predicted power is below that.
    """
    sizes = np.array([4, 8, 12, 16])
    critical, brownian = boundaries(sizes, 16, ALPHA, spending)[0], critical_scores(sizes / 16, ALPHA, spending)

    def study(rng: np.random.Generator) -> bool:
        x = rng.normal(apart, 1.0, 16)
        for look, size in enumerate(sizes):
            mean, se = float(x[:size].mean()), float(x[:size].std(ddof=1) / np.sqrt(size))
            t = abs(mean) / se
            if t > stats.t.isf(special.ndtr(-critical[look]), size - 1):
                break
            more, z = 16 / size, stats.norm.isf(stats.t.sf(t, size - 1))
            if size < 16 and special.ndtr((z * np.sqrt(more) - brownian[-1]) / np.sqrt(more - 1.0)) < futility:
                break
        shares = (sizes[: look + 1] / 16).tolist()
        _, low, high = estimate_at_end(mean, se, size - 1.0, shares, brownian[:look].tolist(), ALPHA)
        return low <= apart <= high

    return float(rate_of(study, n, each(34)))


COVERAGE = [(spending, apart, futility) for spending in ("obrien_fleming", "pocock") for apart in (0.0, 0.5, 1.0)
            for futility in (0.0, 0.1)]  # fmt: skip


@pytest.mark.parametrize(("spending", "apart", "futility"), COVERAGE)
def test_the_final_interval_covers(spending: str, apart: float, futility: float) -> None:
    share = coverage(spending, apart, futility)
    assert 0.93 <= share <= 0.97


def coverage_of_pairs(apart: tuple[float, ...], spending: str, n: int = 200) -> dict[str, float]:
    """Of all intervals together at the end of a study that stops by itself, looks every 5 of 20 benchmarks.

    Stage-wise intervals of `final`, and repeated ones of `pairs` at the last look; the share of estimates that are
    further from zero than the true differences.
    """
    truth = np.subtract(*np.array(apart)[np.array(np.triu_indices(len(apart), 1))])
    far = truth != 0.0

    def study(rng: np.random.Generator) -> dict[str, float]:
        x = scores_of(rng, len(apart), 20, apart=apart)
        found = looked_at(x, range(5, 21, 5), maximum=20, spending=spending)
        out = {}
        for name, table in (("stage-wise", found.final()), ("repeated", found.pairs)):
            out[name] = bool(covers(table, truth).all())
            out[f"{name}, beyond"] = float((table["estimate"][far] / truth[far] > 1.0).mean())
        return out

    return dict(rate_of(study, n, each(43)))


PAIRS_COVERED = [(apart, spending) for apart in ((0.0, 0.0, 1.5), (0.0, 0.3, 0.6, 1.2, 1.8))
                 for spending in ("obrien_fleming", "pocock")]  # fmt: skip


@pytest.mark.parametrize(("apart", "spending"), PAIRS_COVERED)
def test_intervals_of_several_pairs_cover_at_the_end(apart: tuple[float, ...], spending: str) -> None:
    found = coverage_of_pairs(apart, spending)
    for name in ("stage-wise", "repeated"):
        assert at_least(found[name], 200)
    assert 0.4 < found["stage-wise, beyond"] < 0.6


if __name__ == "__main__":
    printed(of_t_tests, DESIGNS)
    printed(of_t_tests, FAR_FROM_NORMAL)
    printed(coverage, COVERAGE)
    printed(coverage_of_pairs, PAIRS_COVERED)
    printed(power_and_size, {"four algorithms, the last one worse": ()})
    printed(of_calls, CALLS)
    printed(of_many, MANY)
    printed(of_luck, LUCKY)
    printed(of_seeds, [(name,) for name in SEEDS])
    printed(of_shared_seeds, SHARED)
    printed(of_pairs, PAIRS)
    printed(of_range_tests, RANGES)
    printed(of_looks_at_will, AT_WILL)
    printed(of_information, INFORMATION)
    printed(of_gates, GATES)
    printed(races, RACES)
    printed(races_of_t_tests, RACES)
