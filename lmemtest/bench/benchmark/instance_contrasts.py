"""Mean outcomes of one algorithm against another, compared between all instances (benchmarks at a level each).

The error of a mean outcome is that of repeating its runs. New tables keep the difference of the algorithms at each
instance and flip the signs of the residuals of whole runs, of all runs of a seed together and on all instances (a wild
bootstrap, clustered by seed), so neither the budgets of a run nor the runs of a seed are taken for independent. Errors
and degrees of freedom differ between instances, so pairs are compared as by Games & Howell: Tukey's range with the
error and the degrees of freedom of each pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.outcomes import drawn_outcomes, mean_outcomes, test_points
from lmemtest.bench.benchmark.pair_scores import PairScores
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey

_SAME = 1e-12  # of mean outcomes: sums of ones over the same number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InstanceContrasts:
    """Mean outcomes of all instances, and their differences.

    Attributes
    ----------
    instances : pandas.DataFrame
        One row per instance: ``benchmark``, ``level``, ``outcome`` (mean over the budgets, 1 where the first algorithm
        is better), ``se``, ``df``, ``ci_low``, ``ci_high``.
    pairs : pandas.DataFrame
        One row per pair of instances: ``left`` and ``right`` (rows of `instances`), ``contrast`` (left minus right),
        ``se``, ``df``, ``t_ratio``, ``p_value``, ``ci_low``, ``ci_high``; p-values and intervals hold for all pairs.
    alpha : float
    """

    instances: pd.DataFrame
    pairs: pd.DataFrame
    alpha: float


def instance_contrasts(
    pairs: PairScores, *, test: str = "two-sample", alpha: float = 0.05, n_draws: int = 1999, rng: np.random.Generator
) -> InstanceContrasts:
    """Compare the mean outcomes of all instances; `alpha` is the level of the tests at the points too.

    The error of a pair counts one more table, in which its contrast is off by as much as an outcome can be: where all
    tables have the same outcome, the error is that of not having seen another one in `n_draws` tables, not zero.

    The level is approximate: in simulated tables of 16 alike instances some pair differed in 5 % where the algorithms
    do not differ, and in 12 % where they do and half of the tests at the points find it. For the contrasts within
    benchmarks `metafeature_effect` has tests under their own null hypothesis.
    """
    outcomes = test_points(pairs, test, alpha)
    means = mean_outcomes(outcomes.outcome)
    b, v = np.nonzero(np.isfinite(means))
    observed = means[b, v]
    where = list(zip(b.tolist(), v.tolist(), strict=True))
    draws, df = drawn_outcomes(pairs, where, test=test, alpha=alpha, n=n_draws, rng=rng)
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    variance = np.diag(covariance)
    unseen = 1.0 / (n_draws + 1.0)  # squares of outcomes are at most 1
    i, j = np.triu_indices(len(observed), k=1)
    se = np.sqrt(np.maximum(variance[i] + variance[j] - 2.0 * covariance[i, j], 0.0) + 4.0 * unseen)
    floor = variance + unseen
    df_pair = (floor[i] + floor[j]) ** 2 / (floor[i] ** 2 / df[i] + floor[j] ** 2 / df[j])
    contrast = observed[i] - observed[j]
    contrast = np.where(np.abs(contrast) < _SAME, 0.0, contrast)
    t, k = contrast / se, len(observed)
    half = qtukey(1.0 - alpha, k, df_pair) / np.sqrt(2.0) * se
    own = t_quantile(alpha / 2.0, df) * np.sqrt(floor)
    return InstanceContrasts(
        instances=pd.DataFrame(
            {
                "benchmark": [pairs.benchmarks[x] for x in b],
                "level": [pairs.levels[x] for x in v],
                "outcome": observed,
                "se": np.sqrt(floor),
                "df": df,
                "ci_low": observed - own,
                "ci_high": observed + own,
            }
        ),
        pairs=pd.DataFrame(
            {
                "left": i,
                "right": j,
                "contrast": contrast,
                "se": se,
                "df": df_pair,
                "t_ratio": t,
                "p_value": ptukey(np.sqrt(2.0) * np.abs(t), k, df_pair, upper=True),
                "ci_low": contrast - half,
                "ci_high": contrast + half,
            }
        ),
        alpha=alpha,
    )
