"""Contrasts of an advantage between levels of a metafeature, benchmark by benchmark, by partial pooling.

The contrasts are pooled by themselves and not predicted from a model's random effects: where the correlation of a
benchmark's advantages at two levels is estimated as one, such predictions claim to know the contrast from the advantage
without error (their 95 % intervals held together in 0 to 30 % of such tables).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._rounding import below
from lmemtest.errors import DataError
from lmemtest.inference.intervals.partial_pooling import FEWEST, PartialPooling, pool
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.words import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.model import LmmFit
    from lmemtest.studies.benchmark.outcomes import PairScores

    Array = NDArray[np.float64]


def benchmark_contrasts(
    fit: LmmFit, pairs: PairScores, overall: pd.DataFrame, alpha: float
) -> tuple[pd.DataFrame, list[str]]:
    """Contrasts of every benchmark that has both levels, pooled for each pair of levels.

    Parameters
    ----------
    fit : LmmFit
        Of the run means; its last random effect is that of seeds that both algorithms ran, if there are such.
    pairs : PairScores
    overall : pandas.DataFrame
        One row per pair of levels: contrast, p_value over benchmarks.
    alpha : float in (0, 1)
        One minus the level of the intervals together.

    Returns
    -------
    pandas.DataFrame
        The columns of `MetafeatureEffect.to_frame`.
    list of str
        Notes.

    Raises
    ------
    DataError
        If no pair of levels has three benchmarks.
    """
    raw = _raw(pairs)
    own, variance, df = _own_advantages(fit, pairs)
    members = [np.flatnonzero(pairs.compared[:, late] & pairs.compared[:, early]) for late, early in pairs.pairs()]
    m = sum(len(b) for b in members if len(b) >= FEWEST)
    parts, notes = [], []
    for (late, early), b, general in zip(pairs.pairs(), members, overall.to_dict("records"), strict=True):
        level, reference = pairs.levels[late], pairs.levels[early]
        if len(b) < FEWEST:
            notes.append(
                f"Only {len(b)} benchmarks have both {format_level(level)} and {format_level(reference)}: too few to "
                "pool their contrasts, which are left out."
            )
            continue
        pooled = pool(own[b, late] - own[b, early], variance[b, late] + variance[b, early], df[b, late])
        part = pd.DataFrame({"benchmark": [pairs.benchmarks[i] for i in b], "level": level, "reference": reference})
        part["raw"] = raw[b, late] - raw[b, early]
        parts.append(_tested(part, pooled, general, alpha, m))
    if not parts:
        raise DataError(
            f"No two levels of {pairs.metafeature} were run on {FEWEST} common benchmarks, so nothing can be "
            "pooled. metafeature_analysis compares levels on each benchmark by itself."
        )
    notes.append(
        f"The {m} intervals of the benchmarks hold together by Šidák's inequality, and allow for how little is "
        "known of the variation between benchmarks."
    )
    return pd.concat(parts, ignore_index=True), notes


def _tested(part: pd.DataFrame, pooled: PartialPooling, general: dict[Any, Any], alpha: float, m: int) -> pd.DataFrame:
    """Contrasts of one pair of levels with intervals and tests that hold together over all `m` rows."""
    values, deviations = pooled.values, pooled.deviations
    tail = -0.5 * np.expm1(np.log1p(-alpha) / m)  # Šidák's inequality
    # the other benchmarks give the direction, so the tests of whether this one has it, and less of it, are one-sided
    positive = general["contrast"] > 0
    against = values.cdf(0.0) if positive else values.sf(0.0)
    no_less = deviations.sf(0.0) if positive else deviations.cdf(0.0)
    return part.assign(
        contrast=values.mean,
        se=values.sd,
        own_share=pooled.own_share,
        p_value=adjust_raw(values.p_value(), "sidak", m),
        ci_low=values.quantile(tail),
        ci_high=values.quantile(1.0 - tail),
        deviation=deviations.mean,
        p_others=adjust_raw(deviations.p_value(), "sidak", m),
        singled_out=below(general["p_value"], alpha) & ~below(against, alpha) & below(no_less, alpha),
    )


def _raw(pairs: PairScores) -> Array:
    """``(m, k)``: differences of the means of all runs."""
    use = pairs.ran[..., None] & pairs.shared[:, None, None, None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(use, pairs.scores, 0.0).sum(axis=(3, 4)) / use.sum(axis=(3, 4))
    return pairs.sign * (mean[:, :, 1] - mean[:, :, 0])


def _own_advantages(fit: LmmFit, pairs: PairScores) -> tuple[Array, Array, Array]:
    """``(m, k)`` each: advantages by the runs of a benchmark alone, their variances, and degrees of freedom of these.

    Runs of both algorithms with one seed share its effect; the others do not. Generalised least squares for the two
    means with the variances of runs and seeds of the fit.
    """
    use = pairs.ran[..., None] & pairs.shared[:, None, None, None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        y = np.where(use, pairs.scores, 0.0).sum(axis=4) / use.sum(axis=4)  # (m, k, 2, seeds)
    y = np.where(pairs.ran, y, 0.0)
    both = pairs.in_both()[:, :, None, :]
    paired, single = pairs.ran & both, pairs.ran & ~both
    run = _run_variances(fit, pairs)[:, None]
    seed = fit.covariances[-1][0, 0] if both.any() else 0.0
    n_paired, n_single = paired.sum(axis=3)[:, :, 0], single.sum(axis=3)
    total, across = run + seed, run * (run + 2.0 * seed)  # a pair has the covariance [[total, seed], [seed, total]]
    information = np.zeros((*n_paired.shape, 2, 2))
    information[..., 0, 0] = n_paired * total / across + n_single[..., 0] / total
    information[..., 1, 1] = n_paired * total / across + n_single[..., 1] / total
    information[..., 0, 1] = information[..., 1, 0] = -n_paired * seed / across
    sums = (y * paired).sum(axis=3)
    score = (sums * total[..., None] - sums[..., ::-1] * seed) / across[..., None]
    score += (y * single).sum(axis=3) / total[..., None]
    information[~pairs.compared] = np.eye(2)
    covariance = np.linalg.inv(information)
    means = np.einsum("bkij,bkj->bki", covariance, score)
    difference = pairs.sign * (means[..., 1] - means[..., 0])
    variance = covariance[..., 0, 0] + covariance[..., 1, 1] - 2.0 * covariance[..., 0, 1]
    # of differences within pairs, and of the single runs of each algorithm about their mean
    df = np.maximum(n_paired - 1, 0) + np.maximum(n_single - 1, 0).sum(axis=2)
    df = df * pairs.compared
    df = df.sum(axis=1, keepdims=True) if fit.dispersion else np.full_like(df, df.sum())
    return difference, variance, np.maximum(np.broadcast_to(df, variance.shape), 1).astype(float)


def _run_variances(fit: LmmFit, pairs: PairScores) -> Array:
    """``(m,)``: variance of a run on each benchmark."""
    found = fit.residual_variances
    if fit.dispersion is None:
        return np.full(len(pairs.benchmarks), float(found.iloc[0]))
    return found.loc[[format_level(name) for name in pairs.benchmarks]].to_numpy(dtype=float)
