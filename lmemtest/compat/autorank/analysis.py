"""From a table of populations to a `RankResult`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lmemtest.compat.autorank.bayesian import rank_bayesian
from lmemtest.compat.autorank.frequentist import rank_frequentist, test_normality
from lmemtest.compat.autorank.result import RankResult


def ranked(
    data: pd.DataFrame,
    rows: pd.Index,
    *,
    alpha: float,
    verbose: bool,
    order: str,
    approach: str,
    rope: float,
    rope_mode: str,
    nsamples: int,
    effect_size: str | None,
    force_mode: str | None,
    random_state: Any,
    plot_order: list[Any] | None,
) -> RankResult:
    """The work of `autorank` on checked arguments; `rows` is the index that the data came with."""
    all_normal, pvals_shapiro = test_normality(data, alpha / data.shape[1], verbose)
    if approach == "bayesian":
        posterior = rank_bayesian(
            data, alpha, verbose, all_normal, order, rope, rope_mode, nsamples, effect_size, random_state, force_mode
        )
        empty = RankResult(
            posterior.rankdf, None, None, "bayes", "bayes", all_normal, [], None, None, None, alpha, 0, 0
        )
        result = empty._replace(
            sample_matrix=posterior.sample_matrix,
            posterior_matrix=posterior.posterior_matrix,
            decision_matrix=posterior.decision_matrix,
            rope=rope,
            rope_mode=rope_mode,
            effect_size=posterior.effect_size,
        )
        positions = posterior.reorder_pos
    elif approach == "lmem":
        from lmemtest.compat.autorank.mixed_model import rank_lmem  # loads what fits models

        result, positions = rank_lmem(data, rows, alpha, order, effect_size)
    else:
        result, positions = rank_frequentist(data, alpha, verbose, all_normal, order, effect_size, force_mode)
    return result._replace(
        pvals_shapiro=[pvals_shapiro[i] for i in positions],
        alpha_normality=alpha / data.shape[1],
        num_samples=len(data),
        force_mode=force_mode,
        plot_order=plot_order,
    )
