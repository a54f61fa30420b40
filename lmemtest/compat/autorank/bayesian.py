"""The Bayesian signed-rank test of all pairs, in Autorank's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank import _numbers
from lmemtest.compat.autorank.checks import complete
from lmemtest.compat.autorank.decisions import distinct
from lmemtest.compat.autorank.frequentist import is_parametric, say
from lmemtest.compat.autorank.posterior import posteriors
from lmemtest.compat.autorank.result import BayesResult
from lmemtest.compat.autorank.table import means, medians, rank_table
from lmemtest.core.rounding import at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

OUTCOMES = ("smaller", "equal", "larger")


def rank_bayesian(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    rope: float,
    rope_mode: str,
    nsamples: int,
    effect_size: str | None,
    random_state: Any,
    force_mode: str | None,
) -> BayesResult:
    """Posterior probabilities that one population of a pair is smaller, practically equivalent, larger.

    Intervals of means or medians are simultaneous, at 1 - alpha / k each.
    """
    k = data.shape[1]
    parametric = is_parametric(all_normal, force_mode)
    x = complete(data)
    centre, by = (means(x, alpha / k), "mean") if parametric else (medians(x, alpha / k), "median")
    rankdf, kind, positions = rank_table(data, centre, order, effect_size, by=by)
    x = x[:, positions]
    above, below = np.triu_indices(k, 1)
    scale = _numbers.pooled_spread(x, above, below, of_means=parametric) if rope_mode == "effsize" else 1.0
    index = rankdf.index
    limits = np.full(len(above), rope * scale)
    samples = posteriors(x, above, below, limits, int(nsamples), random_state, distinct(index))
    sampled, probabilities, decisions = (np.full((k, k), np.nan, dtype=object) for _ in range(3))
    for i, j, posterior in zip(above, below, samples, strict=True):
        chances = posterior.probs()
        sampled[i, j], probabilities[i, j] = posterior, chances
        decisions[i, j], decisions[j, i] = decision(chances, alpha), decision(chances[::-1], alpha)
    say(verbose, f"Bayesian signed-rank test of {len(samples)} pairs, {nsamples} draws")
    table = rankdf.drop(columns="meanrank")
    for suffix, others in {"": np.zeros(k, dtype=int), "_above": np.arange(-1, k - 1)}.items():
        beside = [probabilities[i, j] for i, j in zip(others[1:], range(1, k), strict=True)]
        table[f"p_equal{suffix}"] = [np.nan, *(chances[1] for chances in beside)]
        table[f"p_smaller{suffix}"] = [np.nan, *(chances[0] for chances in beside)]
        first = np.nan if suffix else "NA"
        table[f"decision{suffix}"] = [first, *(decision(chances, alpha) for chances in beside)]
    draws, chances, decided = (
        pd.DataFrame(cells, index=index, columns=index) for cells in (sampled, probabilities, decisions)
    )
    return BayesResult(table, draws, chances, decided, kind, positions)


def decision(probabilities: Sequence[float], alpha: float) -> str:
    """The outcome with a posterior probability of at least 1 - alpha; "inconclusive" if there is none."""
    decided = [name for name, p in zip(OUTCOMES, probabilities, strict=True) if at_most(1.0 - alpha, p)]
    return decided[0] if decided else "inconclusive"
