r"""One planned study: its model, a draw of its scores, and the test of two algorithms in that draw.

The scores of ``k`` algorithms on ``b`` benchmarks with ``n`` seeds are balanced, so that a fit by REML sees no more of
them than the means of the algorithms and four mean squares, which are independent,

    MS_j ~ lambda_j chi2(df_j) / df_j,   lambda_E  = residual^2,
                                         lambda_A  = lambda_E + n interaction^2       df (b - 1)(k - 1),
                                         lambda_S  = lambda_E + k seed^2              df b (n - 1),
                                         lambda_B  = lambda_A + lambda_S - lambda_E + k n benchmark^2,

and the difference of two algorithms has the variance ``2 lambda_A / (b n)``. With ``b`` benchmarks in each of ``f``
families the interaction has ``f (b - 1)(k - 1)`` degrees of freedom, and there are

    lambda_FA = lambda_A + b n family_interaction^2                                  df (f - 1)(k - 1),
    lambda_F  = lambda_FA + lambda_B - lambda_A + b k n family^2,

and the variance of a difference is ``2 lambda_FA / (f b n)``. REML maximises the likelihood of the mean squares under
variances >= 0. Wherever that leaves ``lambda_B`` and ``lambda_F`` free the others follow by pooling neighbours that are
out of order (Thompson 1962, doi:10.1214/aoms/1177704731): the top one is its own mean square with its own degrees of
freedom, or, where its variance is estimated as zero, pooled with those below. Otherwise the engine fits the drawn
cells; that it agrees with the short cut is a test.

Power of a t-test and the two errors of its significant results, exactly.
The estimate is ``N(effect, se^2)`` and independent of its estimated standard error ``se S``, ``S^2 ~ chi2(df) / df``;
a result is significant if the estimate exceeds ``critical se S`` in absolute value. Given ``S`` everything is a normal
integral, so one integral over ``S`` is left. With ``d = effect / se`` and ``h = critical S``:

    P(significant, right sign | S) = Phi(d - h),    P(significant, wrong sign | S) = Phi(-d - h),
    E(|estimate| / se; significant | S) = d [Phi(d - h) - Phi(-d - h)] + phi(d - h) + phi(d + h).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.core.quadrature import gauss_rule
from lmemtest.lmm.engine.held import draw_cells
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.means.adjust import critical_values
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.power.variance_components import VarianceComponents
    from lmemtest.core.arrays import Array


# Smooth integrands, so this many points give 1e-13 on the interval that all but 1e-16 of S lies in.
_POINTS = 160
_NEGLIGIBLE = 1e-16
# More benchmarks than anyone can run: the answer is then "not with this effect".
MOST_BENCHMARKS = 1_000_000


@lru_cache(maxsize=512)
def scale_rule(df: float) -> tuple[Array, Array]:
    """Points and weights of an integral over ``S``."""
    half = 0.5 * df
    low = np.sqrt(special.gammaincinv(half, _NEGLIGIBLE) / half)
    high = np.sqrt(special.gammainccinv(half, _NEGLIGIBLE) / half)
    x, w = gauss_rule(_POINTS)
    s = low + (high - low) * x
    log_density = np.log(2.0) + half * np.log(half) - special.gammaln(half) + (df - 1.0) * np.log(s) - half * s**2
    weight = w * np.exp(log_density)
    return s, weight / weight.sum()


def operating(effect: float, se: float, df: float, critical: float) -> tuple[float, float, float]:
    """Power, type-S and type-M error of a two-sided t-test: what happens when a study is run many times.

    They are the probability of a significant result of either sign, that such a result has the wrong sign, and the mean
    of its absolute estimate over the effect (NaN for an effect of zero). ``effect`` is the true difference, ``se`` the
    true standard deviation of its estimate, ``df`` the degrees of freedom of the estimated one, ``critical`` the
    critical value of ``|t|``. For an effect of zero the second is 0.5: half of the significant results have either
    sign.

    References
    ----------
    Gelman & Carlin (2014), Perspect. Psychol. Sci. 9, 641-651, doi:10.1177/1745691614551642

    Examples
    --------
    >>> power, type_s, type_m = operating(effect=1.0, se=0.5, df=10, critical=2.2281388520)
    >>> round(power, 4), round(type_s, 4), round(type_m, 3)
    (0.4396, 0.0002, 1.403)
    """
    s, weight = scale_rule(float(df))
    d, h = effect / se, critical * s
    right, wrong = special.ndtr(d - h), special.ndtr(-d - h)
    density = (np.exp(-0.5 * (d - h) ** 2) + np.exp(-0.5 * (d + h) ** 2)) / np.sqrt(2.0 * np.pi)
    size = d * (right - wrong) + density
    power = float(weight @ (right + wrong))
    type_s = float(weight @ wrong) / power if power > 0 else np.nan
    return power, type_s, float(weight @ size) / (power * d) if power * d > 0 else np.nan


def smallest_count(
    reaches: Callable[[int], bool], first: int, guess: int | None = None, most: int = MOST_BENCHMARKS
) -> int | None:
    """Smallest whole number from `first` on for which an increasing condition holds; None if beyond `most`.

    Examples
    --------
    >>> smallest_count(lambda n: n * n >= 200, first=2), smallest_count(lambda n: n < 0, first=2, most=50)
    (15, None)
    """
    start = min(max(first if guess is None else guess, first), most)
    step, low, high = 1, first - 1, most + 1
    if reaches(start):
        high = start
        while high > first and reaches(below := max(high - step, first)):
            step, high = 2 * step, below
        low = first - 1 if high == first else max(high - step, first)
    else:
        low = start
        while low < most and not reaches(above := min(low + step, most)):
            step, low = 2 * step, above
        if low == most:
            return None
        high = min(low + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def smallest_effect(power: float, se: float, df: float, critical: float) -> float:
    """The effect that is found with a given power, above the size of the test.

    Examples
    --------
    >>> effect = smallest_effect(0.8, se=0.5, df=10, critical=2.2281388520)
    >>> round(effect, 4), round(operating(effect, 0.5, 10, 2.2281388520)[0], 6)
    (1.555, 0.8)
    """

    def too_small(effect: float) -> bool:
        return operating(effect, se, df, critical)[0] < power

    low, high = 0.0, critical * se
    while too_small(high):
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return high


# ------------------------------------------------------------------------------------------------------ a planned study


TESTS = ("mixed", "means")
STUDY_DDF = ("satterthwaite", "kenward-roger")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDesign:
    """Size of a study: every algorithm on every benchmark with the same seeds.

    With `n_families` each of them has `n_benchmarks`.
    """

    n_algorithms: int
    n_benchmarks: int
    n_seeds: int
    n_families: int | None = None

    @property
    def formula(self) -> str:
        """The model that the study will be analysed with."""
        families = " + (1 | family) + (1 | family:algorithm)" if self.n_families and self.n_benchmarks > 1 else ""
        seeds = " + (1 | benchmark:algorithm) + (1 | benchmark:seed)" if self.n_seeds > 1 else ""
        return f"score ~ algorithm{families} + (1 | benchmark){seeds}"

    @property
    def n_runs(self) -> int:
        """Runs in all."""
        return (self.n_families or 1) * self.n_algorithms * self.n_benchmarks * self.n_seeds

    @property
    def sampled(self) -> tuple[int, int]:
        """How many families are the sample, and the benchmarks of each; without families each benchmark is one."""
        return (self.n_benchmarks, 1) if self.n_families is None else (self.n_families, self.n_benchmarks)

    @property
    def df(self) -> float:
        """Degrees of freedom of a difference of two algorithms; of the paired t-test if there are two."""
        return float((self.sampled[0] - 1) * (self.n_algorithms - 1))

    def se(self, components: VarianceComponents) -> float:
        """True standard deviation of a difference of two algorithms."""
        size, each = self.sampled
        return math.sqrt(components.of_difference(self.n_seeds, each) / size)

    def critical(self, alpha: float, adjust: str, df: float | None = None) -> float:
        """Critical value of ``|t|``, for all pairs of algorithms."""
        return _critical(self.n_algorithms, alpha, adjust, self.df if df is None else df)


@lru_cache(maxsize=4096)
def _critical(k: int, alpha: float, adjust: str, df: float) -> float:
    return float(critical_values(df, method=adjust, n_tests=k * (k - 1) // 2, alpha=alpha, n_means=k))


# ---------------------------------------------------------------------- a draw


def study_draw(
    design: StudyDesign, components: VarianceComponents, effect: float
) -> Callable[[np.random.Generator], Array]:
    """What draws scores of a study, ``(n_benchmarks, n_algorithms, n_seeds)``, with the families in front if any.

    The first algorithm is above the second by `effect`; the others are halfway between them. Where these lie changes
    nothing, because they enter the test through residuals only.
    """
    families, each = design.sampled
    f, i, a, s = (x.ravel() for x in np.indices((families, each, design.n_algorithms, design.n_seeds)))
    b = f * each + i
    advantage = np.zeros(design.n_algorithms)
    advantage[:2] = 0.5 * effect, -0.5 * effect
    level, advantages = components.difficulty_sd, components.advantage_sd  # of benchmarks that are families
    groups = []
    if each > 1:
        level, advantages = components.own_difficulty_sd, components.own_advantage_sd
        groups = [
            (f, level if components.family_sd is None else components.family_sd),
            (f * design.n_algorithms + a, components.family_interaction_sd or 0.0),
        ]
    groups += [
        (b, level),
        (b * design.n_algorithms + a, advantages),
        (b * design.n_seeds + s, components.seed_sd),
    ]
    ones, basis = np.ones(len(b)), np.ones((len(b), 1))
    present = [(codes, sd) for codes, sd in groups if sd > 0]
    shape = (design.n_benchmarks, design.n_algorithms, design.n_seeds)
    return partial(
        _drawn,
        shape if design.n_families is None else (design.n_families, *shape),
        mean=advantage[a],
        terms=tuple(RandomTerm(basis=basis, codes=codes, n_levels=int(codes[-1]) + 1) for codes, _ in present),
        factors=tuple(np.array([[sd / components.run_sd]]) for _, sd in present),
        sigma2=components.run_sd**2,
        n=ones,
        weight=ones,
    )


def _drawn(shape: tuple[int, ...], rng: np.random.Generator, **study: Any) -> Array:
    """One table of scores; of the module, so that processes can be spawned."""
    scores, _ = draw_cells(rng, **study)
    return scores.reshape(shape)


# ---------------------------------------------------------------------- its analysis


Square = tuple[float, float]  # a mean square with its degrees of freedom


def _pooled(first: Square, second: Square) -> Square:
    df = first[1] + second[1]
    return (first[1] * first[0] + second[1] * second[0]) / df, df


# What stands in the hierarchy of advantages and runs: the mean square below.
_BELOW = {"family_interaction": "interaction", "interaction": "residual", "seed": "residual"}


def _squares(y: Array) -> dict[str, Square]:
    """Mean squares of a study, ``(..., b, k, n)``; those that a study without families or seeds lacks are left out."""
    *families, b, k, n = y.shape
    f = families[0] if families else 1
    y = y.reshape(f, b, k, n)
    of_cell, of_seed, of_benchmark = y.mean(axis=3), y.mean(axis=2), y.mean(axis=(2, 3))
    of_pair, of_family, of_algorithm = of_cell.mean(axis=1), of_benchmark.mean(axis=1), of_cell.mean(axis=(0, 1))
    inner = of_cell - of_benchmark[:, :, None] - of_pair[:, None] + of_family[:, None, None]
    level = of_benchmark - of_family[:, None]
    parts = {
        "benchmark": (k * n, level, f * (b - 1)),
        "interaction": (n, inner, f * (b - 1) * (k - 1)),
    }
    if families:
        outer = of_pair - of_family[:, None] - of_algorithm + of_family.mean()
        parts["family"] = (b * k * n, of_family - of_family.mean(), f - 1)
        parts["family_interaction"] = (b * n, outer, (f - 1) * (k - 1))
    if n > 1:
        rest = y - of_cell[..., None] - of_seed[:, :, None] + of_benchmark[:, :, None, None]
        parts["seed"] = (k, of_seed - of_benchmark[:, :, None], f * b * (n - 1))
        parts["residual"] = (1, rest, f * b * (k - 1) * (n - 1))
    return {name: (rows * float(np.sum(part**2)) / df, float(df)) for name, (rows, part, df) in parts.items()}


def compare(y: Array, *, test: str, ddf: str) -> tuple[float, float, float, bool]:
    """Compare the first two algorithms of a study, ``(n_benchmarks, n_algorithms, n_seeds)`` scores.

    With families these come first, ``(n_families, n_benchmarks, ...)``. By the mixed model of `StudyDesign.formula`
    (REML, with these degrees of freedom), or by analysis of variance of the means of algorithms on benchmarks or
    families (the paired t-test if there are two algorithms).
    """
    if y.ndim == 4 and y.shape[1] == 1:  # each benchmark is a family
        y = y[:, 0]
    squares = _squares(y)
    if test == "means":
        variance, df = squares["family_interaction" if y.ndim == 4 else "interaction"]
        no_interaction = False
    else:
        pooled = _by_pooling(squares, ddf)
        if pooled is None:
            return compare_by_engine(y, ddf=ddf)
        variance, df, no_interaction = pooled
    se = math.sqrt(2.0 * variance / (y.size / y.shape[-2]))
    return float((y[..., 0, :] - y[..., 1, :]).mean()), se, df, no_interaction


def _by_pooling(squares: dict[str, Square], ddf: str) -> tuple[float, float, bool] | None:
    """The top lambda, its degrees of freedom, and whether its variance is zero; None where the levels' are bound."""
    order = [name for name in ("family_interaction", "interaction", "seed") if name in squares]
    pool = {name: name for name in (*order, "residual")}  # the pool that each is in, by its lowest member
    square = dict(squares)
    while True:
        out = [
            name
            for name in order
            if pool[name] == name and _BELOW[name] in square and square[name][0] < square[pool[_BELOW[name]]][0]
        ]
        if not out:
            break
        lowest = min(out, key=lambda name: square[name][0])
        below = pool[_BELOW[lowest]]
        square[below] = _pooled(square[below], square[lowest])
        pool |= {name: below for name, its in pool.items() if its == lowest}
    value = {name: square[pool[name]][0] for name in order}
    of_seeds = value["seed"] - square["residual"][0] if "seed" in value else 0.0
    if squares["benchmark"][0] < value["interaction"] + of_seeds:
        return None
    top = order[0]
    if "family" in squares:
        of_family = value[top] + squares["benchmark"][0] - value["interaction"]
        if squares["family"][0] < of_family:
            return None
    zero = pool[top] != top
    # Kenward and Roger's information does not depend on which variances are estimated as zero.
    _, df = square[pool[top]] if zero and ddf == "satterthwaite" else squares[top]
    return value[top], df, zero


# ---------------------------------------------------------------------- by the engine


@lru_cache(maxsize=16)
def _template(design: StudyDesign) -> Any:
    """A fit whose design is used again and again; its scores, any numbers, have no part in the results."""
    families, each = design.sampled
    f, i, a, s = (x.ravel() for x in np.indices((families, each, design.n_algorithms, design.n_seeds)))
    width = len(str(design.n_algorithms))
    names = np.array([f"a{i:0{width}d}" for i in range(design.n_algorithms)])
    score = np.sin(np.arange(1.0, len(f) + 1.0) ** 2)
    b = f * each + i
    table = pd.DataFrame({"algorithm": names[a], "family": f, "benchmark": b, "seed": s, "score": score})
    return replace(fit_lmm(design.formula, table, restarts=0), data=None)


def compare_by_engine(y: Array, *, ddf: str) -> tuple[float, float, float, bool]:
    """`compare` by fitting the mixed model to the cells."""
    *families, each, k, n = y.shape
    design = StudyDesign(n_benchmarks=each, n_algorithms=k, n_seeds=n, n_families=families[0] if families else None)
    template = _template(design)
    frame = template.cells.frame
    a = frame["algorithm"].str.slice(1).to_numpy().astype(int)
    s = frame["seed"].to_numpy() if design.n_seeds > 1 else 0
    scores = y.reshape(-1, k, n)[frame["benchmark"].to_numpy(), a, s]
    # Off the boundary, where the gradient in theta vanishes whatever the data say.
    start = np.full(template.problem.n_theta, 0.5)
    fit = template.refit(cells=replace(template.cells, mean=scores), theta_start=start)
    rows = fit.design.rows(frame.groupby("algorithm", sort=True).head(1).sort_values("algorithm", kind="stable"))
    L = rows[:1] - rows[1:2]
    no_interaction = (bool(families) or design.n_seeds > 1) and float(fit.covariances[1][0, 0]) == 0.0
    se, df = float(np.sqrt(fit.cov(L, ddf)[0, 0])), float(fit.df(L, ddf)[0])
    return float(fit.estimate(L)[0]), se, df, no_interaction
