r"""Decisions of the mixed model about a complete table of single runs, one of each algorithm on each benchmark.

With scores y of k algorithms on n benchmarks, differences of marginal means are those of the averages, and

    MSE = sum (y_ij - y_i. - y_.j + y_..)^2 / ((n - 1) (k - 1)),    se^2 = 2 MSE / n,    df = (n - 1) (k - 1),

where the benchmarks are a random effect with a variance above zero, or fixed ones. A pair's own variance relative to
that is the variance of its differences over the benchmarks over 2 MSE, with n - 1 degrees of freedom: `empirical_bayes`
has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.scores import vary_less_than_by_chance
from lmemtest.core.rounding import below
from lmemtest.core.verdicts import Verdict, turned
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.intervals.cluster_robust import NO_SCATTER
from lmemtest.lmm.means.adjust import step_down
from lmemtest.lmm.means.empirical_bayes import moderation

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.ranking.methods import Asked
    from lmemtest.core.arrays import Array, Codes, Index


_FEWEST_BENCHMARKS = 3  # for moderated standard errors
_CONSTANT = 1e-6  # parts of the scores, and of the residual variance, that are left to the fit


def closed_form(runs: Runs, blocks: Blocks, asked: Asked) -> bool:
    """Whether decisions about the runs, and about some blocks or algorithms of them, have it."""
    if asked.control is not None or asked.adjust not in (None, "stepdown") or asked.vcov == "model":
        return False
    if blocks.unit != "benchmark" or not blocks.complete.all() or runs.n_rows != blocks.scores.size:
        return False
    spec = recommend(runs, curves="model").spec
    factors = {runs.algorithm, runs.benchmark}
    return {*spec.fixed_columns} <= factors and all(bar.groups == (runs.benchmark,) for bar in spec.bars)


def codes_by_table(blocks: Blocks, alpha: float) -> Codes | None:
    """The decisions; None where benchmarks are too few, or their variance can be zero, or the scores do not scatter."""
    y = blocks.scores
    n, k = y.shape
    centre = y.mean(axis=1)
    residuals = y - y.mean(axis=0) - centre[:, None] + y.mean()
    variance = (residuals**2).sum() / ((n - 1) * (k - 1))
    if n < _FEWEST_BENCHMARKS or not np.sqrt(variance) > _CONSTANT * np.abs(y).max():
        return None
    if k * centre.var(ddof=1) <= (1.0 + _CONSTANT) * variance and not vary_less_than_by_chance(y):
        return None
    left, right = np.triu_indices(k, 1)
    t, df = t_ratios(y, variance, left, right)
    p = np.ones(len(t))
    clear = np.flatnonzero(two_sided_p(t, np.inf) < alpha)  # others are not below it with fewer degrees of freedom
    p[clear] = step_down(two_sided_p(t[clear], df[clear]), k, first_by_range=True)
    ahead = t > 0.0 if blocks.direction == "maximize" else t < 0.0
    codes = np.zeros((k, k), dtype=np.int8)
    codes[left, right] = np.where(below(p, alpha), np.where(ahead, Verdict.BETTER, Verdict.WORSE), codes[left, right])
    codes[right, left] = turned(codes[left, right])
    return codes


def t_ratios(y: Array, variance: float, left: Index, right: Index) -> tuple[Array, Array]:
    """t ratios of all pairs by moderated standard errors, and their degrees of freedom."""
    n, k = y.shape
    d = y[:, left] - y[:, right]
    mean = d.mean(axis=0)
    d -= mean
    own = np.einsum("ij,ij->j", d, d) / ((n - 1.0) * 2.0 * variance)
    own = np.where(own > NO_SCATTER, own, np.nan)  # copies
    df = np.where(np.isnan(own), np.nan, n - 1.0)
    both = Functions(np.stack([left, right]), np.ones((2, len(left))), k)
    most = np.full(len(left), (n - 1.0) * (k - 1.0))
    ratio, df = moderation(own, df, left, right, np.ones(k)).ratios(both, own, df, most)
    return mean / np.sqrt(2.0 * variance / n * ratio), df
