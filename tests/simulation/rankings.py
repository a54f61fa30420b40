"""Sizes of the classical tests of a ranking, as closed forms over many tables at once; run as a script for the table.

python tests/simulation/rankings.py            # all cells, 4,000 tables each
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from lmemtest.inference.distributions.studentized_range import qtukey
from lmemtest.studies.ranking.classical import null_of_sums, ranked, shift_interval, signed_rank

__all__ = ["BLOCKS", "COUNTS", "SHAPES", "TESTS", "shift_interval", "sizes"]
Array = np.ndarray
ALPHA = 0.05
COUNTS, BLOCKS = (2, 3, 10), (6, 20)


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


SHAPES: dict[str, Callable[..., Array]] = {
    "normal": normal,
    "skewed": skewed,
    "20 items": discrete,
    "3 items": few_values,
    "one erratic": one_erratic,
}

# ---------------------------------------------------------------------- does any pair differ, by table


def by_means(x: Array) -> Array:
    """Tukey's HSD of the repeated-measures ANOVA."""
    _, n, k = x.shape
    df = (n - 1.0) * (k - 1.0)
    return np.ptp(x.mean(axis=1), axis=1) > float(qtukey(1.0 - ALPHA, k, df)) * np.sqrt(within(x) / n)


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
    t, n, k = x.shape
    i, j = np.triu_indices(k, 1)
    d = np.moveaxis(x[:, :, i] - x[:, :, j], 1, 2).reshape(-1, n)
    size = np.abs(d)
    r = ranked(size)
    whole = (size > 0).all(axis=1) & (np.square(r).sum(axis=1) == np.square(np.arange(1, n + 1)).sum())
    p = np.empty(len(d))
    below = np.cumsum(null_of_sums(np.arange(1.0, n + 1.0))[::2])
    positive = (r * (d > 0)).sum(axis=1)[whole]
    p[whole] = np.minimum(1.0, 2.0 * below[np.minimum(positive, n * (n + 1) / 2 - positive).astype(int)])
    p[~whole] = [signed_rank(row)[1] for row in d[~whole]]
    return p.reshape(t, -1).min(axis=1) < ALPHA / len(i) * (1.0 - 1e-9)


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
    columns = [rest[:, :, c] for c in range(k)]
    alike = stats.bartlett(*columns, axis=1).pvalue >= ALPHA
    return np.where(normal_ones & alike, by_means(x), nemenyi(x))


def rng_like(x: Array) -> Array:
    """Something that varies in the place of what does not, whose test is not used."""
    return np.broadcast_to(np.arange(x.shape[1], dtype=float)[None, :, None], x.shape)


TESTS: dict[str, Callable[[Array], Array]] = {
    "auto": chosen,
    "t": paired_t,
    "tukey": by_means,
    "nemenyi": nemenyi,
    "conover": conover,
    "wilcoxon": wilcoxon,
    "Friedman (Iman-Davenport)": iman_davenport,
}


def sizes(shape: str, k: int, n: int, n_tables: int, tests: tuple[str, ...] = tuple(TESTS)) -> dict[str, float]:
    """Share of tables without any difference in which a test finds one, percent."""
    rng = np.random.default_rng([list(SHAPES).index(shape), k, n])
    x = SHAPES[shape](rng, (n_tables, n, k)) + rng.normal(size=(n_tables, n, 1)) * (shape in ("normal", "one erratic"))
    with np.errstate(all="ignore"):
        return {name: 100.0 * float(TESTS[name](x).mean()) for name in tests}


def main() -> None:
    n_tables = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print("| scores | k | benchmarks | " + " | ".join(TESTS) + " |")
    print("|---|---|---|" + "---|" * len(TESTS))
    for shape in SHAPES:
        for k in COUNTS:
            for n in BLOCKS:
                found = sizes(shape, k, n, n_tables if "items" not in shape or k < 10 else n_tables // 4)
                print(f"| {shape} | {k} | {n} | " + " | ".join(f"{x:.1f}" for x in found.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
