"""The one approach that Autorank does not have: marginal means of the recommended mixed model, in its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.ranking.rank import rank
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.compat.autorank.decisions import distinct
from lmemtest.compat.autorank.result import RankResult
from lmemtest.compat.autorank.table import rank_table
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError


def rank_lmem(
    data: pd.DataFrame, rows: pd.Index, alpha: float, order: str, effect_size: str | None
) -> tuple[RankResult, list[int]]:
    """Marginal means with intervals, decisions about all pairs, and the columns of `data` that are the table's rows.

    `rows` are the labels of the rows of `data`, see `runs_of`. Mean ranks, spreads and effect sizes are those of the
    means by benchmark. The p-value is the smallest of the pairs, adjusted for all of them, and so one of the
    hypothesis that all means are equal.
    """
    names = distinct(data.columns)
    ranking = rank(runs_of(data, rows, names, order), "lmem", alpha=alpha)
    assert isinstance(ranking, Ranking)
    at = [ranking.blocks.algorithms.index(name) for name in names]
    scores = pd.DataFrame(ranking.blocks.scores[:, at], columns=data.columns)
    marginal = ranking.table.set_index("algorithm").loc[names]
    centre = {
        "mean": marginal["mean"].to_numpy(),
        "std": scores.to_numpy().std(axis=0, ddof=1),
        "ci_lower": marginal["ci_low"].to_numpy(),
        "ci_upper": marginal["ci_high"].to_numpy(),
    }
    table, kind, positions = rank_table(scores, centre, order, effect_size, by="mean")
    ordered = [names[i] for i in positions]
    significant = ranking.decisions.significant.loc[ordered, ordered].to_numpy()
    means = table["mean"].to_numpy()
    apart = np.where(means[None, :] < means[:, None], "smaller", "larger")
    cells = np.where(significant, apart, "inconclusive").astype(object)
    np.fill_diagonal(cells, np.nan)
    p = float(ranking.pairs["p_value"].min())
    result = RankResult(table, p, None, "lmem", "lmem", False, [], None, None, None, alpha, 0, 0)
    decided = pd.DataFrame(cells, index=table.index, columns=table.index)
    return result._replace(decision_matrix=decided, effect_size=kind), positions


def runs_of(data: pd.DataFrame, rows: pd.Index, names: list[str], order: str) -> Runs:
    """A wide table as runs: the first level of its index names benchmarks, a second one seeds.

    Labels of one level that come back are runs of one benchmark, their seeds numbered.
    """
    if rows.nlevels > 2:
        raise ArgumentError(
            f"data.index has {rows.nlevels} levels, and approach='lmem' reads at most two: the benchmark, and the seed."
        )
    labels = pd.Series([format_level(label) for label in rows.get_level_values(0)])
    counted = labels.groupby(labels).cumcount().astype(str)
    seeds = [format_level(seed) for seed in rows.get_level_values(1)] if rows.nlevels == 2 else counted.tolist()
    n, k = data.shape
    table = pd.DataFrame(
        {
            "algorithm": np.tile(names, n),
            "benchmark": np.repeat(labels.to_numpy(dtype=object), k),
            "seed": np.repeat(np.array(seeds, dtype=object), k),
            "score": data.to_numpy(dtype=float).ravel(),
        }
    )
    has_seeds = bool((counted != "0").any())
    return Runs(
        table if has_seeds else table.drop(columns="seed"),
        score="score",
        direction="maximize" if order == "descending" else "minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed" if has_seeds else None,
        seed_shared=rows.nlevels == 2,
    )
