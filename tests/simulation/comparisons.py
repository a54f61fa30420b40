"""False differences and power of the ways to compare algorithms in pairs, over designs that fit the model or not.

Complete tables of benchmarks x algorithms x seeds. All that the methods see are the means of the cells and one mean
square of the residual, so whole batches of tables are judged at once, without a fit: the model's variance is the mean
square of the interaction (pooled with that of the residual where the interaction is estimated as zero; the variances
of benchmarks and of seeds, which are large here, are taken as positive), CR2 by benchmark is the variance of the
differences over the benchmarks, and moderated variances come from `lmemtest.lmm.means.empirical_bayes` itself.
`test_comparison_size.py` shows that this is what the package computes, and asserts what docs/developers/validation.md
says of it.

Run as a program, it prints the tables of that page (a few minutes of one core):

    python tests/simulation/comparisons.py
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from harness import Array, printed
from scipy import special, stats

from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.means.adjust import critical_values, most_true_pairs
from lmemtest.lmm.means.empirical_bayes import moderation

Shape = tuple[int, int, int]  # benchmarks, algorithms, seeds

LEVEL = 0.05
ADVANTAGE, SEED, RESIDUAL = 0.5, 0.3, 0.5  # standard deviations where nothing else is said; of benchmarks: 1
APART = 3.4  # standard errors of a difference by which one algorithm is better, where power is asked for
_AT_ONCE = 400_000  # scores of one batch

# ---------------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How tables are drawn in which all algorithms have the same mean score.

    `sds`: standard deviation of each algorithm's advantages. `kinds`: algorithms of one kind can be exchanged.
    `drawn`: the advantages, ``(n, benchmarks, algorithms)``. `scored`: scores from those of the model.
    """

    name: str
    sds: Callable[[int], Array] = lambda k: np.full(k, ADVANTAGE)
    kinds: Callable[[int], Array] = lambda k: np.zeros(k, dtype=int)
    drawn: Callable[[np.random.Generator, tuple[int, int, int]], Array] = lambda rng, size: rng.standard_normal(size)
    residual: Callable[[int], Array] = lambda b: np.full(b, RESIDUAL)
    scored: Callable[[Array, np.random.Generator], Array] = lambda y, _: y
    own_unit: bool = False  # power in standard errors of the design's own differences, not of the model's

    def scores(self, shape: Shape, n: int, rng: np.random.Generator) -> Array:
        """Scores of n tables, ``(n, benchmarks, algorithms, seeds)``."""
        b, k, s = shape
        cell = rng.standard_normal((n, b, 1)) + self.sds(k) * self.drawn(rng, (n, b, k))
        run = SEED * rng.standard_normal((n, b, 1, s))
        noise = self.residual(b)[:, None, None] * rng.standard_normal((n, b, k, s))
        return self.scored(cell[..., None] + run + noise, rng)

    def ordinary(self, k: int) -> Array:
        """The algorithms whose pairs with the first one are asked for power."""
        kinds = self.kinds(k)
        others = np.arange(1, k)
        return others if len(np.unique(kinds)) == k else others[kinds[1:] == kinds[0]]


def _last(times: float) -> dict[str, Callable[[int], Array]]:
    return {
        "sds": lambda k: ADVANTAGE * np.where(np.arange(k) == k - 1, times, 1.0),
        "kinds": lambda k: (np.arange(k) == k - 1).astype(int),
    }


def _halves(k: int) -> Array:
    return (np.arange(k) >= (k + 1) // 2).astype(int)


def _near_identical(rng: np.random.Generator, size: tuple[int, int, int]) -> Array:
    out = rng.standard_normal(size)
    out[..., -1] = out[..., -2] + 0.05 * rng.standard_normal(size[:2])
    return out


def _families(rng: np.random.Generator, size: tuple[int, int, int]) -> Array:
    shared = rng.standard_normal((*size[:2], 2))[..., _halves(size[2])]
    return np.sqrt(0.9) * shared + np.sqrt(0.1) * rng.standard_normal(size)


def _outlying(y: Array, _: np.random.Generator) -> Array:
    y[:, 0] *= 10.0
    return y


def _any_unit(y: Array, _: np.random.Generator) -> Array:
    return y * np.geomspace(0.1, 10.0, y.shape[1])[:, None, None]


def _correct(y: Array, rng: np.random.Generator) -> Array:
    return (rng.random(y.shape) < special.expit(y)).astype(float)


DESIGNS = {
    design.name: design
    for design in (
        Design(name="all alike"),
        Design(name="no interaction", sds=lambda k: np.zeros(k)),
        Design(name="one erratic, 5 times", **_last(5.0)),
        Design(name="one erratic, 3 times", **_last(3.0)),
        Design(name="graded, 0.2 to 1.2", sds=lambda k: np.linspace(0.2, 1.2, k), kinds=np.arange),
        Design(name="half of them 3 times", sds=lambda k: ADVANTAGE * (1.0 + 2.0 * _halves(k)), kinds=_halves),
        Design(name="one careful, 0.1 times", **_last(0.1)),
        Design(name="two near-identical", drawn=_near_identical, kinds=lambda k: (np.arange(k) >= k - 2).astype(int)),
        Design(name="two families", drawn=_families, kinds=_halves),
        Design(name="heavy tails (t, 2 df)", drawn=lambda rng, size: rng.standard_t(2, size)),
        Design(name="one benchmark x 10", scored=_outlying, own_unit=True),
        Design(name="residuals 1:100", residual=lambda b: np.geomspace(0.05, 5.0, b), own_unit=True),
        Design(name="units 1:100", scored=_any_unit, own_unit=True),
        Design(name="accuracy near 1", scored=lambda y, _: special.expit(y + 3.0), own_unit=True),
        Design(name="0/1 scores", residual=lambda b: np.zeros(b), scored=_correct, own_unit=True),
    )
}


# ---------------------------------------------------------------------- what the methods see of them


@dataclass(frozen=True)
class Tables:
    """Means of the cells, ``(n, benchmarks, algorithms)``, and the mean square of the residual with its df."""

    means: Array
    residual: Array
    seeds: int

    @classmethod
    def of(cls, scores: Array) -> Tables:
        """From ``(n, benchmarks, algorithms, seeds)``; seeds are blocks within benchmarks."""
        _, b, k, s = scores.shape
        means = scores.mean(axis=-1)
        off = scores - means[..., None]
        off -= off.mean(axis=2, keepdims=True)
        return cls(means, (off**2).sum(axis=(1, 2, 3)) / max(b * (k - 1) * (s - 1), 1), s)

    @property
    def n_benchmarks(self) -> int:
        return self.means.shape[1]

    @property
    def n_algorithms(self) -> int:
        return self.means.shape[2]

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        return np.triu_indices(self.n_algorithms, 1)

    @cached_property
    def differences(self) -> Array:
        """By benchmark, ``(n, benchmarks, pairs)``."""
        i, j = self.pairs
        return self.means[..., i] - self.means[..., j]

    @cached_property
    def estimate(self) -> Array:
        return self.differences.mean(axis=1)

    @cached_property
    def own(self) -> Array:
        """Variance of the differences over the benchmarks."""
        return self.differences.var(axis=1, ddof=1)

    @cached_property
    def scatter(self) -> Array:
        """Covariances of the advantages over the benchmarks, ``(n, algorithms, algorithms)``."""
        off = self.means - self.means.mean(axis=2, keepdims=True)
        off = off - off.mean(axis=1, keepdims=True)
        return np.swapaxes(off, 1, 2) @ off / (self.n_benchmarks - 1)

    @property
    def df(self) -> float:
        """Of the interaction."""
        return float((self.n_benchmarks - 1) * (self.n_algorithms - 1))

    @cached_property
    def interaction(self) -> Array:
        """Its mean square, on the scale of the means of cells."""
        return np.trace(self.scatter, axis1=1, axis2=2) / (self.n_algorithms - 1)

    @cached_property
    def zero(self) -> Array:
        """Whether restricted maximum likelihood has a variance of zero for the interaction."""
        return (self.seeds > 1) & (self.interaction * self.seeds < self.residual)

    @cached_property
    def model(self) -> tuple[Array, Array]:
        """Variance of a mean of a cell by the model, and its degrees of freedom."""
        rest = float(self.n_benchmarks * (self.n_algorithms - 1) * (self.seeds - 1))
        pooled = (self.interaction * self.df + self.residual / self.seeds * rest) / (self.df + rest)
        return np.where(self.zero, pooled, self.interaction), np.where(self.zero, self.df + rest, self.df)


Variances = tuple[Array, Array]  # of the differences of means, and their degrees of freedom; (n, pairs)


def model(tables: Tables) -> Variances:
    """One variance for all pairs, by restricted maximum likelihood."""
    variance, df = tables.model
    ones = np.ones_like(tables.own)
    return (2.0 * variance / tables.n_benchmarks)[:, None] * ones, df[:, None] * ones


def rm_anova(tables: Tables) -> Variances:
    """The mean square of the interaction, also where it is below that of the residual."""
    ones = np.ones_like(tables.own)
    return (2.0 * tables.interaction / tables.n_benchmarks)[:, None] * ones, tables.df * ones


def paired(tables: Tables) -> Variances:
    """Of each pair by itself, as by CR2."""
    return tables.own / tables.n_benchmarks, np.full(tables.own.shape, tables.n_benchmarks - 1.0)


def per_algorithm(tables: Tables) -> Variances:
    """A variance for every algorithm: restricted maximum likelihood of the means of the cells, variances above zero.

    The degrees of freedom of an algorithm's variance are (benchmarks - 1) (k - 2) / k as where all are alike. That is
    cautious: those of the package for ``diag(algorithm | benchmark)`` are larger by 1 to 1.6.
    """
    k = tables.n_algorithms
    if k == 2:
        return model(tables)
    a = np.repeat(tables.interaction[:, None], k, axis=1)
    least = 1e-9 * tables.interaction[:, None]
    for _ in range(100):
        weight = 1.0 / a
        total = weight.sum(axis=1, keepdims=True)
        share = weight / total
        mixed = (tables.scatter @ share[..., None])[..., 0]
        left = np.einsum("nii->ni", tables.scatter) - 2.0 * mixed + (mixed * share).sum(axis=1, keepdims=True)
        a = np.maximum(left + 1.0 / total, least)
    i, j = tables.pairs
    df = (tables.n_benchmarks - 1) * (k - 2) / k
    total = a[:, i] + a[:, j]
    return total / tables.n_benchmarks, np.minimum(total**2 / ((a[:, i] ** 2 + a[:, j] ** 2) / df), tables.df)


def moderated(tables: Tables) -> Variances:
    """Of each pair, shrunk towards the model's: as in `LmmFit.moderated`."""
    i, j = tables.pairs
    unit = 2.0 * tables.model[0][:, None]
    own, df = tables.own / unit, np.full(tables.own.shape, tables.n_benchmarks - 1.0)
    found = moderation(own, df, i, j, np.ones(tables.n_algorithms))
    of_pair = np.zeros((len(i), tables.n_algorithms))
    of_pair[np.arange(len(i)), i] = of_pair[np.arange(len(i)), j] = 1.0
    ratio, df = found.ratios(of_pair, own, df, np.full(own.shape, tables.df))
    return ratio * unit / tables.n_benchmarks, df


# ---------------------------------------------------------------------- decisions at the level


def p_values(tables: Tables, variances: Variances) -> Array:
    """Unadjusted."""
    variance, df = variances
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(two_sided_p(tables.estimate / np.sqrt(variance), df), nan=1.0)


def by_tukey(tables: Tables, variances: Variances) -> Array:
    """Differences beyond the studentized range."""
    variance, df = variances
    k = tables.n_algorithms
    values, place = np.unique(df, return_inverse=True)
    critical = critical_values(values, method="tukey", n_means=k, n_tests=len(tables.pairs[0]), alpha=LEVEL)
    return np.abs(tables.estimate) > critical[place.reshape(df.shape)] * np.sqrt(variance)


def stepwise(p: Array, thresholds: Array) -> Array:
    """From the smallest p-value on while they are at most the threshold of their step."""
    order = np.argsort(p, axis=1, kind="stable")
    found = np.logical_and.accumulate(np.take_along_axis(p, order, axis=1) <= thresholds, axis=1)
    out = np.zeros_like(found)
    np.put_along_axis(out, order, found, axis=1)
    return out


def by_holm(p: Array) -> Array:
    return stepwise(p, LEVEL / np.arange(p.shape[1], 0, -1))


@cache
def _step_down_thresholds(k: int) -> Array:
    first = 2.0 * special.ndtr(-qtukey(LEVEL, k, np.inf, upper=True) / np.sqrt(2.0))
    return np.maximum(first, LEVEL / most_true_pairs(k))


def by_step_down(p: Array, k: int) -> Array:
    """As `lmemtest.lmm.means.adjust.step_down` with its first step by the range."""
    return stepwise(p, _step_down_thresholds(k))


def by_nemenyi(tables: Tables) -> Array:
    """Mean ranks beyond the critical difference, after Friedman's test (with its correction for ties)."""
    ranks = stats.rankdata(tables.means, axis=2)
    b, k = tables.n_benchmarks, tables.n_algorithms
    centred = ranks.mean(axis=1) - (k + 1) / 2.0
    spread = ((ranks - (k + 1) / 2.0) ** 2).sum(axis=(1, 2)) / (b * (k - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        friedman = np.nan_to_num(b * (centred**2).sum(axis=1) / spread)
    critical = qtukey(LEVEL, k, np.inf, upper=True) * np.sqrt(k * (k + 1) / (12.0 * b))
    i, j = tables.pairs
    far = np.abs(centred[:, i] - centred[:, j]) > critical
    return far & (stats.chi2.sf(friedman, k - 1) < LEVEL)[:, None]


def by_wilcoxon(tables: Tables) -> Array:
    """Signed ranks of the differences (scipy), exact where none is zero or tied, Holm."""
    size = np.sort(np.abs(tables.differences), axis=1)
    tied = np.any(np.diff(size, axis=1, prepend=0.0) < 1e-12)
    with np.errstate(invalid="ignore", divide="ignore"):  # without any difference
        p = stats.wilcoxon(tables.differences, axis=1, method="asymptotic" if tied else "exact").pvalue
    return by_holm(np.nan_to_num(p, nan=1.0))


# name: (variances, decisions)
T_TESTS: dict[str, tuple[Callable[[Tables], Variances], str]] = {
    "model, Tukey": (model, "tukey"),
    "RM-ANOVA, Tukey": (rm_anova, "tukey"),
    "CR2, Tukey": (paired, "tukey"),
    "CR2, Holm": (paired, "holm"),
    "per algorithm, Holm": (per_algorithm, "holm"),
    "moderated, Holm": (moderated, "holm"),
    "moderated, step-down": (moderated, "stepdown"),
}
OLD, NEW = "model, Tukey", "moderated, step-down"
RANK_TESTS = {"Friedman, Nemenyi": by_nemenyi, "Wilcoxon, Holm": by_wilcoxon}
METHODS = (*T_TESTS, *RANK_TESTS)


def decisions(
    tables: Tables, methods: tuple[str, ...], *, n_wilcoxon: int
) -> Iterator[tuple[str, Array, Array | None]]:
    """Name, differences found by each method, and unadjusted ones of t-tests; ``(n, pairs)``."""
    by_variance: dict[Callable[[Tables], Variances], tuple[Variances, Array]] = {}
    for name in methods:
        if name in RANK_TESTS:
            few = Tables(tables.means[:n_wilcoxon], tables.residual[:n_wilcoxon], tables.seeds)
            yield name, RANK_TESTS[name](few if name.startswith("Wilcoxon") else tables), None
            continue
        rule, adjust = T_TESTS[name]
        if rule not in by_variance:
            variances = rule(tables)
            by_variance[rule] = variances, p_values(tables, variances)
        variances, p = by_variance[rule]
        if adjust == "tukey":
            found = by_tukey(tables, variances)
        else:
            found = by_holm(p) if adjust == "holm" else by_step_down(p, tables.n_algorithms)
        yield name, found, p < LEVEL


# ---------------------------------------------------------------------- rates


def _kinds_of_pairs(design: Design, k: int) -> Array:
    kinds = design.kinds(k)
    i, j = np.triu_indices(k, 1)
    both = np.sort(np.stack([kinds[i], kinds[j]]), axis=0)
    return np.unique(both, axis=1, return_inverse=True)[1].ravel()


def _unit(design: Design, shape: Shape, rng: np.random.Generator) -> float:
    """Standard error of a difference of two ordinary algorithms."""
    b, _, s = shape
    if not design.own_unit:
        return float(np.sqrt(2.0 * (ADVANTAGE**2 + RESIDUAL**2 / s) / b))
    gaps = [np.diff(Tables.of(design.scores(shape, 500, rng)).means.mean(axis=1)[:, :2]).ravel() for _ in range(8)]
    return float(np.concatenate(gaps).std())


def rates(
    design: str,
    shape: Shape,
    *,
    n: int,
    n_power: int = 0,
    methods: tuple[str, ...] = METHODS,
    n_wilcoxon: int = 1000,
    seed: int = 2024,
) -> dict[str, dict[str, float]]:
    """Rates of the methods in one design, from n tables without differences and `n_power` with one better algorithm.

    "family": tables with any false difference. "pair": false differences, unadjusted, of the kind of pair where they
    are most; the kind is chosen in one half of the tables and its share taken from the other. "power": differences
    found between one algorithm that is better and ordinary ones. "zero": tables whose interaction was estimated as
    zero; "if_zero", "if_not": "family" among these and among the others. "n": tables. NaN is what was not asked for.
    """
    drawn = DESIGNS[design]
    rng = np.random.default_rng([seed, zlib.crc32(design.encode()), *shape])
    k = shape[1]
    kinds = _kinds_of_pairs(drawn, k)
    of_kind = (kinds[:, None] == np.arange(kinds.max() + 1)) / np.bincount(kinds)
    batch = max(1, min(max(n, 1), _AT_ONCE // int(np.prod(shape))))
    zero: list[Array] = []
    family, pair, power = ({name: [] for name in methods} for _ in range(3))  # type: ignore[var-annotated]
    for start in range(0, n, batch):
        tables = Tables.of(drawn.scores(shape, min(batch, n - start), rng))
        zero.append(tables.zero)
        for name, found, single in decisions(tables, methods, n_wilcoxon=max(0, n_wilcoxon - start)):
            family[name].append(found.any(axis=1))
            if single is not None:
                pair[name].append(single @ of_kind)
    unit = _unit(drawn, shape, rng) if n_power else 0.0
    ordinary = drawn.ordinary(k) - 1  # pairs with the first algorithm come first
    for start in range(0, n_power, batch):
        scores = drawn.scores(shape, min(batch, n_power - start), rng)
        scores[:, :, 0] += APART * unit
        for name, found, _ in decisions(Tables.of(scores), methods, n_wilcoxon=max(0, n_wilcoxon - start)):
            power[name].append(found[:, ordinary].mean(axis=1))
    out = {}
    for name in methods:
        any_ = np.concatenate(family[name])
        at = np.concatenate(zero)[: len(any_)]
        out[name] = {
            "family": _share(any_),
            "pair": _worst(np.concatenate(pair[name])) if pair[name] else np.nan,
            "power": _share(np.concatenate(power[name])) if n_power else np.nan,
            "if_zero": _share(any_[at]),
            "if_not": _share(any_[~at]),
            "zero": _share(at),
            "n": len(any_),
        }
    return out


def _share(values: Array) -> float:
    return float(values.mean()) if len(values) else np.nan


def _worst(shares: Array) -> float:
    half = len(shares) // 2
    return _share(shares[half:, shares[:half].mean(axis=0).argmax()])


# ---------------------------------------------------------------------- the tables of docs/developers/validation.md

_EVERYWHERE = tuple((name, (b, 6, 5)) for name in DESIGNS for b in (6, 12))
_MANY = ("all alike", "one erratic, 5 times", "one erratic, 3 times", "graded, 0.2 to 1.2", "half of them 3 times")
CELLS: tuple[tuple[str, Shape], ...] = (
    *_EVERYWHERE,
    *((name, (6, 15, 5)) for name in (*_MANY, "two near-identical", "two families", "heavy tails (t, 2 df)")),
    *((name, (12, 15, 5)) for name in ("all alike", "one erratic, 5 times", "two families")),
    *((name, (30, 6, 5)) for name in ("all alike", "one erratic, 5 times", "two families", "heavy tails (t, 2 df)")),
    *((name, (12, 25, 3)) for name in ("all alike", "one erratic, 3 times")),
    *((name, (b, 3, 5)) for name in ("all alike", "one erratic, 5 times") for b in (6, 12)),
    ("all alike", (6, 2, 5)),
    ("all alike", (12, 6, 1)),
    ("one erratic, 5 times", (12, 6, 1)),
    ("all alike", (12, 6, 10)),
)
FEW_CELLS: tuple[tuple[str, Shape], ...] = tuple(
    (name, (b, k, 5))
    for b, k in ((3, 6), (4, 3), (4, 6), (5, 6), (5, 15))
    for name in ("all alike", "no interaction", "one erratic, 5 times", "two families")
)


def autorank_found(design: str, shape: Shape, n: int) -> tuple[float, float, float]:
    """Shares of Autorank's automatic choice: any false difference, power, tables where it chose Tukey's test."""
    import pandas as pd
    from autorank import autorank  # type: ignore[import-not-found]

    drawn = DESIGNS[design]
    rng = np.random.default_rng(shape)
    asked, unit = drawn.ordinary(shape[1]), _unit(drawn, shape, rng)
    scores = drawn.scores(shape, 2 * n, rng).mean(axis=-1)
    scores[n:, :, 0] += APART * unit
    false, power, parametric = [], [], []
    for number, means in enumerate(scores):
        frame = pd.DataFrame(means, columns=[f"A{i:02d}" for i in range(shape[1])])
        result = autorank(frame, alpha=LEVEL)
        ranks = result.rankdf.sort_index()
        if result.cd is None:  # Tukey's test: half-widths of intervals that must not overlap
            value, least = ranks["mean"].to_numpy(), (ranks["ci_upper"] - ranks["ci_lower"]).to_numpy().mean()
        else:
            value, least = ranks["meanrank"].to_numpy(), result.cd
        found = (np.abs(value[:, None] - value[None, :]) > least) & (result.pvalue < LEVEL)
        if number < n:
            false.append(found.any())
            parametric.append(result.cd is None)
        else:
            power.append(found[0, asked].mean())
    return _share(np.array(false)), _share(np.array(power)), _share(np.array(parametric))


def of_methods(design: str, shape: Shape) -> dict[str, list[float]]:
    """Family and power by method, and the worst pair; 7 % is told from 8 % by so many tables."""
    n = 10_000 if shape[1] <= 6 else 6_000 if shape[1] <= 15 else 3_000
    found = rates(design, shape, n=n, n_power=n // 4)
    return {name: [rate["family"], rate["power"], rate["pair"]] for name, rate in found.items()}


def by_zero(design: str, shape: Shape) -> dict[str, list[float]]:
    """Share of tables whose interaction was estimated as zero, and the family among these and the others."""
    found = rates(design, shape, n=10_000, methods=(OLD, "RM-ANOVA, Tukey", NEW))
    return {name: [rate["zero"], rate["if_zero"], rate["if_not"]] for name, rate in found.items()}


def main() -> None:
    """Print the tables; of Autorank, where it is installed, two designs."""
    if importlib.util.find_spec("autorank"):
        print("Autorank: any false difference, power, Tukey's test chosen")
        printed(autorank_found, product(("all alike", "one erratic, 5 times"), [(12, 6, 5)], [100]))
    names = list(DESIGNS)
    cells = sorted((*CELLS, *FEW_CELLS), key=lambda cell: (names.index(cell[0]), cell[1]))
    print(f"any false difference, power, worst pair of {METHODS}")
    printed(of_methods, cells)
    print("interaction estimated as zero; any false difference then, and otherwise: old default, RM-ANOVA, default")
    printed(by_zero, [*cells, *product(("no interaction", "all alike"), ((6, 6, 2), (12, 6, 2)))])


if __name__ == "__main__":
    main()
