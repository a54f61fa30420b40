r"""One planned study: its model, a draw of its scores, and the test of two algorithms in that draw.

The scores of ``k`` algorithms on ``b`` benchmarks with ``n`` seeds are balanced, so that a fit by REML sees no more of
them than the means of the algorithms and four mean squares, which are independent,

    MS_j ~ lambda_j chi2(df_j) / df_j,   lambda_E  = residual^2,
                                         lambda_A  = lambda_E + n interaction^2       df (b - 1)(k - 1),
                                         lambda_S  = lambda_E + k seed^2              df b (n - 1),
                                         lambda_B  = lambda_A + lambda_S - lambda_E + k n benchmark^2,

and the difference of two algorithms has the variance ``2 lambda_A / (b n)``. REML maximises the likelihood of the four
under variances >= 0. Wherever that leaves ``lambda_B`` free the others follow by pooling neighbours that are out of
order (Thompson 1962, doi:10.1214/aoms/1177704731): ``lambda_A`` is its own mean square with its own degrees of
freedom, or, where the interaction is estimated as zero, pooled with the residual's. Otherwise (the benchmark's variance
estimated as zero) the engine fits the drawn cells; that it agrees with the short cut is a test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.engine.blocks import RandomTerm
from lmemtest.engine.simulate import draw_cells
from lmemtest.inference.means.adjust import critical_values
from lmemtest.model import fit_lmm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.inference.power.components import VarianceComponents

    FloatArray = NDArray[np.float64]

TESTS = ("mixed", "means")
STUDY_DDF = ("satterthwaite", "kenward-roger")


class Comparison(NamedTuple):
    """The difference of two algorithms in one study, and whether the interaction variance was estimated as zero."""

    estimate: float
    se: float
    df: float
    no_interaction: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyDesign:
    """Size of a study: every algorithm on every benchmark with the same seeds."""

    n_algorithms: int
    n_benchmarks: int
    n_seeds: int

    @property
    def formula(self) -> str:
        """The model that the study will be analysed with."""
        seeds = " + (1 | benchmark:algorithm) + (1 | benchmark:seed)" if self.n_seeds > 1 else ""
        return f"score ~ algorithm + (1 | benchmark){seeds}"

    @property
    def n_runs(self) -> int:
        """Runs in all."""
        return self.n_algorithms * self.n_benchmarks * self.n_seeds

    @property
    def df(self) -> float:
        """Degrees of freedom of a difference of two algorithms; of the paired t-test if there are two."""
        return float((self.n_benchmarks - 1) * (self.n_algorithms - 1))

    def se(self, components: VarianceComponents) -> float:
        """True standard deviation of a difference of two algorithms."""
        return math.sqrt(components.of_difference(self.n_seeds) / self.n_benchmarks)

    def critical(self, alpha: float, adjust: str, df: float | None = None) -> float:
        """Critical value of ``|t|``, for all pairs of algorithms."""
        return _critical(self.n_algorithms, alpha, adjust, self.df if df is None else df)


@lru_cache(maxsize=4096)
def _critical(k: int, alpha: float, adjust: str, df: float) -> float:
    return float(critical_values(df, method=adjust, n_tests=k * (k - 1) // 2, level=1.0 - alpha, n_means=k))


# ---------------------------------------------------------------------- a draw


@dataclass(frozen=True, slots=True, eq=False)
class StudyDraw:
    """Draws the scores of a study, ``(n_benchmarks, n_algorithms, n_seeds)``.

    The first algorithm is above the second by `effect`; the others are halfway between them. Where these lie changes
    nothing, because they enter the test through residuals only.
    """

    design: StudyDesign
    mean: FloatArray
    terms: tuple[RandomTerm, ...]
    factors: tuple[FloatArray, ...]
    sigma2: float

    @classmethod
    def of(cls, design: StudyDesign, components: VarianceComponents, effect: float) -> StudyDraw:
        """Prepare the draws."""
        shape = (design.n_benchmarks, design.n_algorithms, design.n_seeds)
        b, a, s = (index.ravel() for index in np.indices(shape))
        advantage = np.zeros(design.n_algorithms)
        advantage[:2] = 0.5 * effect, -0.5 * effect
        groups = [
            (b, components.difficulty_sd),
            (b * design.n_algorithms + a, components.advantage_sd),
            (b * design.n_seeds + s, components.seed_sd),
        ]
        basis = np.ones((len(b), 1))
        present = [(codes, sd) for codes, sd in groups if sd > 0]
        return cls(
            design=design,
            mean=advantage[a],
            terms=tuple(RandomTerm(basis=basis, codes=codes, n_levels=int(codes[-1]) + 1) for codes, _ in present),
            factors=tuple(np.array([[sd / components.run_sd]]) for _, sd in present),
            sigma2=components.run_sd**2,
        )

    def __call__(self, rng: np.random.Generator) -> FloatArray:
        """One table of scores."""
        ones = np.ones(len(self.mean))
        scores, _ = draw_cells(
            rng, mean=self.mean, terms=self.terms, factors=self.factors, sigma2=self.sigma2, n=ones, weight=ones
        )
        return scores.reshape(self.design.n_benchmarks, self.design.n_algorithms, self.design.n_seeds)


# ---------------------------------------------------------------------- its analysis


class _Squares(NamedTuple):
    """Mean squares with their degrees of freedom; NaN where a study with one seed has none."""

    benchmark: float
    interaction: float
    seed: float
    residual: float
    df_interaction: float
    df_seed: float
    df_residual: float

    @classmethod
    def of(cls, y: FloatArray) -> _Squares:
        b, k, n = y.shape
        of_cell, of_seed, of_benchmark = y.mean(axis=2), y.mean(axis=1), y.mean(axis=(1, 2))
        interaction = of_cell - of_benchmark[:, None] - of_cell.mean(axis=0) + of_benchmark.mean()
        rest = y - of_cell[:, :, None] - of_seed[:, None, :] + of_benchmark[:, None, None]
        df = ((b - 1.0) * (k - 1.0), b * (n - 1.0), b * (k - 1.0) * (n - 1.0))
        seeds = k * float(np.sum((of_seed - of_benchmark[:, None]) ** 2))
        return cls(
            k * n * float(np.sum((of_benchmark - of_benchmark.mean()) ** 2)) / (b - 1.0),
            n * float(np.sum(interaction**2)) / df[0],
            seeds / df[1] if n > 1 else math.nan,
            float(np.sum(rest**2)) / df[2] if n > 1 else math.nan,
            *df,
        )


def compare(y: FloatArray, *, test: str, ddf: str) -> Comparison:
    """Compare the first two algorithms of a study, ``(n_benchmarks, n_algorithms, n_seeds)`` scores.

    By the mixed model of `StudyDesign.formula` (REML, with these degrees of freedom), or by analysis of variance of the
    means of algorithms on benchmarks (the paired t-test if there are two algorithms).
    """
    squares = _Squares.of(y)
    if test == "means":
        found = squares.interaction, squares.df_interaction, False
    else:
        pooled = _by_pooling(squares, y.shape[2] > 1, ddf)
        if pooled is None:
            return compare_by_engine(y, ddf=ddf)
        found = pooled
    variance, df, no_interaction = found
    se = math.sqrt(2.0 * variance / (y.shape[0] * y.shape[2]))
    return Comparison(float(y[:, 0].mean() - y[:, 1].mean()), se, df, no_interaction)


def _by_pooling(squares: _Squares, seeds: bool, ddf: str) -> tuple[float, float, bool] | None:
    """``lambda_A``, its degrees of freedom, and whether the interaction is zero; None where lambda_B is bound."""
    own = squares.df_interaction
    if not seeds:  # the interaction is the residual
        free = squares.benchmark >= squares.interaction
        return (squares.interaction, own, False) if free else None
    children = sorted([(squares.interaction, own, True), (squares.seed, squares.df_seed, False)])
    pooled, df, no_interaction, seed_pooled = squares.residual, squares.df_residual, False, False
    for value, weight, is_interaction in children:
        if value < pooled:
            pooled, df = (df * pooled + weight * value) / (df + weight), df + weight
            no_interaction, seed_pooled = no_interaction or is_interaction, seed_pooled or not is_interaction
    interaction = pooled if no_interaction else squares.interaction
    if squares.benchmark < interaction + (0.0 if seed_pooled else squares.seed - pooled):
        return None
    # Kenward and Roger's information does not depend on which variances are estimated as zero.
    return interaction, df if no_interaction and ddf == "satterthwaite" else own, no_interaction


# ---------------------------------------------------------------------- by the engine


@lru_cache(maxsize=16)
def _template(design: StudyDesign) -> Any:
    """A fit whose design is used again and again; its scores, any numbers, have no part in the results."""
    b, a, s = (i.ravel() for i in np.indices((design.n_benchmarks, design.n_algorithms, design.n_seeds)))
    width = len(str(design.n_algorithms))
    names = np.array([f"a{i:0{width}d}" for i in range(design.n_algorithms)])
    score = np.sin(np.arange(1.0, len(b) + 1.0) ** 2)
    table = pd.DataFrame({"algorithm": names[a], "benchmark": b, "seed": s, "score": score})
    return replace(fit_lmm(design.formula, table, restarts=0), data=None)


def compare_by_engine(y: FloatArray, *, ddf: str) -> Comparison:
    """`compare` by fitting the mixed model to the cells."""
    design = StudyDesign(n_benchmarks=y.shape[0], n_algorithms=y.shape[1], n_seeds=y.shape[2])
    template = _template(design)
    frame = template.cells.frame
    a = frame["algorithm"].str.slice(1).to_numpy().astype(int)
    s = frame["seed"].to_numpy() if design.n_seeds > 1 else 0
    scores = y[frame["benchmark"].to_numpy(), a, s]
    # Off the boundary, where the gradient in theta vanishes whatever the data say.
    start = np.full(template.problem.n_theta, 0.5)
    fit = template.refit(cells=replace(template.cells, mean=scores), theta_start=start)
    rows = fit.design.rows(frame.groupby("algorithm", sort=True).head(1).sort_values("algorithm", kind="stable"))
    L = rows[:1] - rows[1:2]
    no_interaction = design.n_seeds > 1 and float(fit.covariances[1][0, 0]) == 0.0
    se, df = float(np.sqrt(fit.cov(L, ddf)[0, 0])), float(fit.df(L, ddf)[0])
    return Comparison(float(fit.estimate(L)[0]), se, df, no_interaction)
