"""Sizes, coverage and power of the tests of a ranking: classical tests as closed forms over many tables at once, the
mixed model and whatever intervals say through `lmemtest.rank`.

Run as a script it prints the tables of docs/developers/validation.md, all or those that are named:

    python tests/simulation/rankings.py [sizes] [unlike] [against] [gaps] [model] [apart] [coverage] [medians] [power]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pandas as pd
from harness import ALPHA, Array, printed
from scipy import special, stats

import lmemtest as lt
from lmemtest.bench.ranking.classical import median_interval, null_of_sums, ranked, skillings_mack
from lmemtest.bench.ranking.classical import wilcoxon as signed_rank
from lmemtest.lmm.distributions.largest_t import largest_t
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.means.empirical_bayes import moderation

COUNTS, BLOCKS = (2, 3, 10), (6, 20)
N_TABLES = 4000


def normal(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    return rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    return np.exp(rng.normal(size=shape))


def discrete(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """Accuracies of 20 items: many ties."""
    return rng.binomial(20, rng.uniform(0.5, 0.95, size=(*shape[:2], 1)), size=shape) / 20.0


def few_values(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """Accuracies of 3 items: mostly ties."""
    return rng.binomial(3, 0.6, size=shape) / 3.0


def one_erratic(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """Equal means, one algorithm with five times the scatter."""
    x = rng.normal(size=shape)
    x[:, :, 0] *= 5.0
    return x


def heavy(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """Student's t with two degrees of freedom, which has no variance."""
    return rng.standard_t(2, size=shape)


SHAPES: dict[str, Callable[..., Array]] = {
    "normal": normal,
    "skewed": skewed,
    "20 items": discrete,
    "3 items": few_values,
    "one erratic": one_erratic,
    "heavy tails": heavy,
}
UNLIKE = ("normal", "one erratic", "heavy tails")  # to which differences between benchmarks are added


def drawn(shape: str, k: int, n: int, n_tables: int) -> Array:
    """Tables without any difference, (n_tables, n benchmarks, k algorithms)."""
    rng = np.random.default_rng([list(SHAPES).index(shape), k, n])
    x = SHAPES[shape](rng, (n_tables, n, k))
    return x + rng.normal(size=(n_tables, n, 1)) * (shape in UNLIKE)


# ---------------------------------------------------------------------- does any pair differ, by table


def by_means(x: Array) -> Array:
    """Tukey's HSD of the repeated-measures ANOVA."""
    _, n, k = x.shape
    df = (n - 1.0) * (k - 1.0)
    return np.ptp(x.mean(axis=1), axis=1) > float(qtukey(1.0 - ALPHA, k, df)) * np.sqrt(within(x) / n)


def moderated(x: Array) -> Array:
    """The first step of "stepdown", with the variance of each pair shrunk towards the residual one."""
    _, n, k = x.shape
    i, j = np.triu_indices(k, 1)
    d = x[:, :, i] - x[:, :, j]
    common = np.maximum(2.0 * within(x), 1e-300)[:, None]
    own, df = d.var(axis=1, ddof=1) / common, np.full((len(x), len(i)), n - 1.0)
    family = moderation(own, df, i, j, np.ones(k))
    ratio, df = family.ratios(np.eye(k)[i] + np.eye(k)[j], own, df, df * (k - 1.0))
    cut = t_quantile(special.ndtr(-qtukey(1.0 - ALPHA, k, np.inf) / np.sqrt(2.0)), df)
    return (np.abs(d.mean(axis=1)) > cut * np.sqrt(common * ratio / n)).any(axis=1)


def within(x: Array) -> Array:
    _, n, k = x.shape
    rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=2, keepdims=True) + x.mean(axis=(1, 2), keepdims=True)
    return np.square(rest).sum(axis=(1, 2)) / ((n - 1.0) * (k - 1.0))


def ranks_of(x: Array) -> Array:
    return ranked(x.reshape(-1, x.shape[2])).reshape(x.shape)


def nemenyi(x: Array) -> Array:
    _, n, k = x.shape
    cd = float(qtukey(1.0 - ALPHA, k, np.inf)) * np.sqrt(k * (k + 1.0) / (12.0 * n))
    return np.ptp(ranks_of(x).mean(axis=1), axis=1) > cd


def conover(x: Array) -> Array:
    """The first step of Shaffer is Bonferroni's."""
    _, n, k = x.shape
    r = ranks_of(x)
    cut = stats.t.isf(ALPHA / (k * (k - 1)), (n - 1) * (k - 1))
    spread = within(r)
    return (spread > 0) & (np.ptp(r.mean(axis=1), axis=1) > cut * np.sqrt(2.0 * spread / n))


def paired_t(x: Array) -> Array:
    _, n, k = x.shape
    i, j = np.triu_indices(k, 1)
    d = x[:, :, i] - x[:, :, j]
    sd = d.std(axis=1, ddof=1)
    ratio = np.divide(np.abs(d.mean(axis=1)) * np.sqrt(n), sd, out=np.zeros_like(sd), where=sd > 0)
    return (ratio > stats.t.isf(ALPHA / (k * (k - 1)), n - 1)).any(axis=1)


def wilcoxon(x: Array) -> Array:
    k = x.shape[2]
    i, j = np.triu_indices(k, 1)
    return signed_ranks(x[:, :, i] - x[:, :, j])


def signed_ranks(d: Array) -> Array:
    """Exact tests of the differences, (tables, n, pairs), each at alpha over their number."""
    t, n, m = d.shape
    d = np.moveaxis(d, 1, 2).reshape(-1, n)
    size = np.abs(d)
    r = ranked(size)
    whole = (size > 0).all(axis=1) & (np.square(r).sum(axis=1) == np.square(np.arange(1, n + 1)).sum())
    p = np.empty(len(d))
    below = np.cumsum(null_of_sums(np.arange(1.0, n + 1.0))[::2])
    positive = (r * (d > 0)).sum(axis=1)[whole]
    p[whole] = np.minimum(1.0, 2.0 * below[np.minimum(positive, n * (n + 1) / 2 - positive).astype(int)])
    p[~whole] = [signed_rank(row)[1] for row in d[~whole]]
    return p.reshape(t, m).min(axis=1) < ALPHA / m * (1.0 - 1e-9)


def repeated_measures(x: Array) -> Array:
    _, n, k = x.shape
    between = n * np.square(x.mean(axis=1) - x.mean(axis=(1, 2))[:, None]).sum(axis=1) / (k - 1)
    return special.fdtrc(k - 1, (n - 1) * (k - 1), between / within(x)) < ALPHA


def iman_davenport(x: Array) -> Array:
    t, n, k = x.shape
    r = ranks_of(x)
    spread = within(r)
    between = n * np.square(r.mean(axis=1) - (k + 1) / 2).sum(axis=1) / (k - 1)
    f = np.divide(between, spread, out=np.full(t, np.inf), where=spread > 0)
    p = np.maximum(special.fdtrc(k - 1, (n - 1) * (k - 1), f), np.exp((1 - n) * special.gammaln(k + 1)))
    return p < ALPHA


def chosen(x: Array) -> Array:
    """What "auto" chooses, table by table."""
    k = x.shape[2]
    rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=2, keepdims=True) + x.mean(axis=(1, 2), keepdims=True)
    rest = rest[:, :, :1] if k == 2 else rest
    flat = np.ptp(rest, axis=1) < 1e-12
    w = np.where(flat, 0.0, stats.shapiro(np.where(flat[:, None], rng_like(rest), rest), axis=1).pvalue)
    normal_ones = (w >= ALPHA / rest.shape[2]).all(axis=1)
    if k == 2:
        return np.where(normal_ones, paired_t(x), wilcoxon(x))
    return np.where(normal_ones, moderated(x), nemenyi(x))


def rng_like(x: Array) -> Array:
    """Something that varies in the place of what does not, whose test is not used."""
    return np.broadcast_to(np.arange(x.shape[1], dtype=float)[None, :, None], x.shape)


TESTS: dict[str, Callable[[Array], Array]] = {
    "auto": chosen,
    "moderated": moderated,
    "t": paired_t,
    "tukey": by_means,
    "nemenyi": nemenyi,
    "conover": conover,
    "wilcoxon": wilcoxon,
    "ANOVA F": repeated_measures,
    "Friedman F": iman_davenport,
}
OF_PAIRS = tuple(name for name in TESTS if not name.endswith(" F"))

# Equal means, unlike spreads or skewed losses of one algorithm: (benchmarks, algorithms) and draws.
UNLIKE_ONES: dict[str, tuple[tuple[int, int], Callable[[np.random.Generator, tuple[int, int, int]], Array]]] = {
    "one of 4, sd 2": ((8, 4), lambda rng, shape: spread_by(rng, shape, [2.0, 1.0, 1.0, 1.0])),
    "one of 4, sd 3": ((6, 4), lambda rng, shape: spread_by(rng, shape, [3.0, 1.0, 1.0, 1.0])),
    "one of 8, sd 2": ((10, 8), lambda rng, shape: spread_by(rng, shape, [2.0, *[1.0] * 7])),
    "one of 10, sd 2": ((8, 10), lambda rng, shape: spread_by(rng, shape, [2.0, *[1.0] * 9])),
    "half 4, half 0.5": ((20, 6), lambda rng, shape: spread_by(rng, shape, [4.0] * 3 + [0.5] * 3)),
    "exponential, one of 5": (
        (15, 5),
        lambda rng, shape: one_skewed(rng, shape, 1.0 - rng.exponential(size=shape[:2])),
    ),
    "rare losses, one of 5": ((15, 5), lambda rng, shape: one_skewed(rng, shape, rare_losses(rng, shape))),
}


def spread_by(rng: np.random.Generator, shape: tuple[int, int, int], sds: list[float]) -> Array:
    """Benchmarks differ, advantages have these standard deviations, and the mean of three runs of sd 0.5 is seen."""
    runs = 0.5 / 3**0.5 * rng.normal(size=shape)
    return rng.normal(size=(*shape[:2], 1)) + rng.normal(size=shape) * np.array(sds) + runs


def one_skewed(rng: np.random.Generator, shape: tuple[int, int, int], first: Array) -> Array:
    """Beside others whose advantages vary little, so that the first decides."""
    x = spread_by(rng, shape, [0.3] * shape[2])
    x[:, :, 0] += first
    return x


def rare_losses(rng: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """On one benchmark in ten a loss of three, made up for by the others."""
    return 0.3 - 3.0 * (rng.random(shape[:2]) < 0.1)


# ---------------------------------------------------------------------- versus a control, the first; missing cells


def dunnett(k: int, df: float) -> float:
    return float(largest_t((np.eye(k - 1) + 1.0) / 2.0).isf(ALPHA, np.array([df]))[0])


def means_against(x: Array) -> Array:
    """Dunnett's test with the error of the repeated-measures ANOVA."""
    _, n, k = x.shape
    m = x.mean(axis=1)
    lead = np.abs(m[:, 1:] - m[:, :1]).max(axis=1)
    return lead > dunnett(k, (n - 1.0) * (k - 1.0)) * np.sqrt(2.0 * within(x) / n)


def ranks_against(x: Array) -> Array:
    _, n, k = x.shape
    m = ranks_of(x).mean(axis=1)
    return np.abs(m[:, 1:] - m[:, :1]).max(axis=1) > dunnett(k, np.inf) * np.sqrt(k * (k + 1.0) / (6.0 * n))


def signs_against(x: Array) -> Array:
    """The first step of Holm is Bonferroni's."""
    return signed_ranks(x[:, :, 1:] - x[:, :, :1])


def skillings_and_mack(x: Array) -> Array:
    return np.array([skillings_mack(table, ALPHA).p_value < ALPHA for table in x])


def wilcoxon_with_gaps(x: Array) -> Array:
    i, j = np.triu_indices(x.shape[2], 1)
    d = np.moveaxis(x[:, :, i] - x[:, :, j], 1, 2)
    p = np.array([[signed_rank(row[np.isfinite(row)])[1] for row in table] for table in d])
    return p.min(axis=1) < ALPHA / len(i) * (1.0 - 1e-9)


AGAINST = {"tukey": means_against, "nemenyi": ranks_against, "wilcoxon": signs_against}
WITH_GAPS = {"Skillings-Mack": skillings_and_mack, "wilcoxon": wilcoxon_with_gaps}

# ---------------------------------------------------------------------- shares of tables


def sizes(shape: str, k: int, n: int, n_tables: int) -> dict[str, float]:
    """How often a test of all pairs finds a difference where there is none."""
    x = drawn(shape, k, n, n_tables)
    with np.errstate(all="ignore"):
        return {name: float(test(x).mean()) for name, test in TESTS.items()}


def sizes_against(shape: str, k: int, n: int, n_tables: int, *, control: int = 0) -> dict[str, float]:
    """The same of the comparisons with a control; the erratic algorithm is 0."""
    x = np.roll(drawn(shape, k, n, n_tables), -control, axis=2)
    return {name: float(test(x).mean()) for name, test in AGAINST.items()}


def sizes_with_gaps(shape: str, k: int, n: int, n_tables: int, share: float = 0.1) -> dict[str, float]:
    """The same where cells are missing at random."""
    x = drawn(shape, k, n, n_tables)
    x[np.random.default_rng(k).random(x.shape) < share] = np.nan
    return {name: float(test(x).mean()) for name, test in WITH_GAPS.items()}


def ranking(table: Array, test: str, **options: str) -> lt.Ranking:
    """Of a wide table of algorithms a0, a1, ..., higher is better; `test` may be "lmem"."""
    wide = pd.DataFrame(table, columns=[f"a{i}" for i in range(table.shape[1])])
    if test == "lmem":
        return lt.rank(wide, direction="maximize", **options)
    return lt.rank(wide, "frequentist", test=test, direction="maximize", **options)


def sizes_of_model(shape: str, k: int, n: int, n_tables: int) -> tuple[float, float]:
    """Tables in which the mixed model finds a difference, and in which an interval of a difference excludes zero."""
    found = [ranking(table, "lmem") for table in drawn(shape, k, n, n_tables)]
    excluded = [((one.pairs["ci_low"] > 0) | (one.pairs["ci_high"] < 0)).any() for one in found]
    return float(np.mean([len(one.decided) > 0 for one in found])), float(np.mean(excluded))


def false_beside_true(test: str, groups: tuple[int, ...], n: int, n_tables: int) -> float:
    """Tables in which a difference is found within one of the groups of equal algorithms, which are far apart."""
    group = np.repeat(np.arange(len(groups)), groups)
    within_one = 0
    for table in drawn("normal", len(group), n, n_tables):
        decided = ranking(table + 4.0 * group, test).decided
        left, right = (group[decided[side].str.removeprefix("a").astype(int)] for side in ("left", "right"))
        within_one += bool((left == right).any())
    return within_one / n_tables


def coverage(shape: str, test: str, n: int, n_tables: int, **options: str) -> tuple[float, float]:
    """Tables in which intervals of three shifted algorithms hold the shifts: of the pair with fewest, and all three."""
    shift = dict(zip(("a0", "a1", "a2"), (0.0, 0.7, -1.3), strict=True))
    hold = []
    for table in drawn(shape, 3, n, n_tables):
        pairs = ranking(table + np.array(list(shift.values())), test, **options).pairs
        truth = pairs["left"].map(shift) - pairs["right"].map(shift)
        hold.append(((pairs["ci_low"] <= truth) & (truth <= pairs["ci_high"])).to_numpy())
    return float(np.mean(hold, axis=0).min()), float(np.all(hold, axis=1).mean())


def coverage_of_medians(shape: str, n: int, n_tables: int) -> float:
    """Tables whose exact interval of the median of one algorithm holds it."""
    rng = np.random.default_rng(n)
    limits = [median_interval(row, 0.95) for row in SHAPES[shape](rng, (n_tables, n, 1))[:, :, 0]]
    return float(np.mean([low <= MEDIANS[shape] <= high for low, high in limits]))


# Adjustments whose intervals of differences are simultaneous; the defaults of three of the tests are stepwise.
AT_ONCE = {"t": "bonferroni", "tukey": "tukey", "wilcoxon": "bonferroni", "lmem": "singlestep"}

MEDIANS = {"normal": 0.0, "skewed": 1.0, "heavy tails": 0.0}

# Standard deviation of the difference of two algorithms; heavy tails have none: half the width of its middle 68.3 %, by
# 20 million draws.
UNITS = {"normal": np.sqrt(2.0), "skewed": np.sqrt(2.0 * (np.e - 1.0) * np.e), "heavy tails": 2.173}
POWER_OF = ("auto", "t", "tukey", "nemenyi", "conover", "wilcoxon", "lmem")


def power(shape: str, test: str, n_tables: int, *, control: str | None = None) -> tuple[float, float]:
    """Share of the four true differences that are found, and of tables with a false one: a0 is better by one unit."""
    found, false = 0, 0
    options = {} if control is None else {"control": control}
    for table in drawn(shape, 5, 12, n_tables):
        table[:, 0] += UNITS[shape]
        decided = ranking(table, test, **options).decided
        true = decided["decision"] == "a0 better"
        found += int(true.sum())
        false += not true.all()
    return found / (4 * n_tables), false / n_tables


# ---------------------------------------------------------------------- the tables


def number(shape: str, k: int, n_tables: int) -> int:
    """Fewer tables where every pair has ties, whose distributions are made one by one."""
    return n_tables // 4 if "items" in shape and k == 10 else n_tables


def sizes_of_unlike(name: str, n_tables: int) -> dict[str, float]:
    """Tables with any false difference where one algorithm varies more, or is skewed."""
    (n, k), draw = UNLIKE_ONES[name]
    x = draw(np.random.default_rng([n, k, len(name)]), (n_tables, n, k))
    return {test: float(TESTS[test](x).mean()) for test in ("auto", "moderated", "tukey", "nemenyi")}


GROUPS = {"one ahead of four": (4, 1), "two pairs": (2, 2), "five pairs": (2, 2, 2, 2, 2)}
OF_MODEL = ("normal", "skewed", "one erratic", "20 items")

# name: (what is printed, its designs)
PRINTED: dict[str, tuple[Callable[..., object], Iterable[tuple[object, ...]]]] = {
    "sizes": (lambda shape, k, n: sizes(shape, k, n, number(shape, k, N_TABLES)), product(SHAPES, COUNTS, BLOCKS)),
    "unlike": (sizes_of_unlike, product(UNLIKE_ONES, [N_TABLES])),
    "against": (
        lambda shape, control, k, n: sizes_against(shape, k, n, N_TABLES, control=control),
        product(SHAPES, (0, 1), (3, 10), BLOCKS),
    ),
    "gaps": (
        lambda shape, k, n: sizes_with_gaps(shape, k, n, {3: 1000, 10: 400}[k]),
        product(SHAPES, (3, 10), (12, 20)),
    ),
    "model": (lambda shape, k: sizes_of_model(shape, k, 12, 300), product(OF_MODEL, COUNTS)),
    "apart": (
        lambda name: {test: false_beside_true(test, GROUPS[name], 12, 500) for test in POWER_OF if test != "auto"},
        product(GROUPS),
    ),
    "coverage": (
        lambda shape, test: [
            coverage(shape, test, 12, 2000)[0],
            coverage(shape, test, 12, 2000, adjust=AT_ONCE[test])[1],
        ],
        product(MEDIANS, AT_ONCE),
    ),
    "medians": (lambda shape, n: coverage_of_medians(shape, n, N_TABLES), product(MEDIANS, (6, 12, 20))),
    "power": (lambda test, shape: power(shape, test, 500), product(POWER_OF, UNITS)),
    "power against": (lambda test, shape: power(shape, test, 500, control="a0")[0], product(AGAINST, UNITS)),
}

if __name__ == "__main__":
    for name, (rates, designs) in PRINTED.items():
        if name.split()[0] in sys.argv[1:] or not sys.argv[1:]:
            print(f"\n{name}")
            printed(rates, designs)
