"""How often intervals of effect sizes hold the true value, by population, design, sample size and effect.

Two samples of n scores, in pairs (correlation 0.7 before any transformation) or not, differ by a shift of 0 or 1 pooled
standard deviations. True values are those of one large sample. `test_effect_size_coverage.py` compares
docs/effect-sizes.md with what it measures.

Run as a program, it prints the tables of that page (two minutes of one core):

    python tests/simulation/effect_size_coverage.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from lmemtest.bench.outperforming.effect_size import KINDS, PAIRED_ONLY, effect_sizes

Array = np.ndarray

CORRELATION = 0.7
SIZES = (6, 10, 30, 100)
SHIFTS = (0.0, 1.0)
LEVEL = 0.95
TABLES, TABLES_OF_MEDIANS = 10_000, 1_000
DRAWS = 399
_LARGE = 2_000_000


def _log_normal(z: Array) -> Array:
    """Mean 0, standard deviation 1, skewness 3.3."""
    s = 0.75
    return (np.exp(s * z) - np.exp(s * s / 2.0)) / np.sqrt(np.expm1(s * s) * np.exp(s * s))


# From standard normal scores to those of the two samples, the first of them higher by a shift.
POPULATIONS: dict[str, Callable[[Array, Array, float], tuple[Array, Array]]] = {
    "normal": lambda u, v, shift: (u + shift, v),
    "skewed": lambda u, v, shift: (_log_normal(u) + shift, _log_normal(v)),
    "discrete": lambda u, v, shift: (np.round(1.5 * (u + shift)), np.round(1.5 * v)),
    "unequal": lambda u, v, shift: (u + shift * np.sqrt(5.0), 3.0 * v),
}


def draw(
    population: str, shape: tuple[int, int], shift: float, paired: bool, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Tables of n scores of each sample, ``(tables, n)``."""
    u, v = rng.normal(size=(2, *shape))
    if paired:
        v = CORRELATION * u + np.sqrt(1.0 - CORRELATION**2) * v
    return POPULATIONS[population](u, v, shift)


@cache
def truth(kind: str, population: str, shift: float, paired: bool) -> float:
    """The effect of the population: of one large sample."""
    x, y = (row[0] for row in draw(population, (1, _LARGE), shift, paired, np.random.default_rng(0)))
    if kind in ("cohen_d", "hedges_g"):
        return float((x.mean() - y.mean()) / np.sqrt((x.var() + y.var()) / 2.0))
    if kind == "cohen_dz":
        return float((x - y).mean() / (x - y).std())
    if kind == "cliff_delta":  # scores of different tables, thus independent
        below, up_to = (np.searchsorted(np.sort(y), x, side=side) for side in ("left", "right"))
        return float((below + up_to).mean() / _LARGE - 1.0)
    if kind == "rank_biserial":  # the sign of the mean of two differences, neither of them zero
        d = (x - y)[x != y]
        return float(np.sign(d[: len(d) // 2] + d[-(len(d) // 2) :]).mean())
    mad_x, mad_y = (np.median(np.abs(z - np.median(z))) * 1.482602218505602 for z in (x, y))
    return float((np.median(x) - np.median(y)) / np.sqrt((mad_x**2 + mad_y**2) / 2.0))


@cache
def coverage(
    kind: str, population: str, n: int, shift: float, paired: bool, tables: int | None = None, seed: int = 1
) -> tuple[float, int]:
    """Share of the tables whose interval holds the true effect, and the number of tables with an interval."""
    tables = tables or (TABLES_OF_MEDIANS if kind == "akinshin_gamma" else TABLES)
    rng = np.random.default_rng(seed)
    x, y = draw(population, (tables, n), shift, paired, rng)
    found = effect_sizes(x, y, kind, paired=paired, level=LEVEL, n_draws=DRAWS, rng=rng)
    known = ~np.isnan(found[1])
    true = truth(kind, population, shift, paired)
    held = (found[1][known] <= true) & (true <= found[2][known])
    return float(held.mean()), int(known.sum())


def rows(paired: bool) -> list[str]:
    """A table of the page: kind and population, percent without effect and with one of 1 by sample size.

    g is left out: its intervals are those of d.
    """
    out = []
    for kind in KINDS:
        if kind == "hedges_g" or (kind in PAIRED_ONLY and not paired):
            continue
        for population in POPULATIONS:
            cells = [
                " / ".join(f"{100.0 * coverage(kind, population, n, shift, paired)[0]:.1f}" for shift in SHIFTS)
                for n in SIZES
            ]
            out.append(f"| `{kind}` | {population} | {' | '.join(cells)} |")
    return out


if __name__ == "__main__":
    for design in (True, False):
        name = "pairs" if design else "not paired"
        print(f"\n| {name} | scores | {' | '.join(f'n = {n}' for n in SIZES)} |\n|---|---|---|---|---|---|")
        print("\n".join(rows(design)), flush=True)
