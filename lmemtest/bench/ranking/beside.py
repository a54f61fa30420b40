"""The decisions of classical tests beside those of a model that was fitted and compared already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking.classical import block_estimates, require_connected, signed_rank_sums
from lmemtest.bench.ranking.compare import SideBySide, rows_as_blocks
from lmemtest.bench.ranking.methods import ADJUST, left_ahead, require_blocks, require_pairs
from lmemtest.bench.ranking.rank import side_by_side
from lmemtest.core.rounding import below
from lmemtest.core.validate import resolve_rng
from lmemtest.core.verdicts import Verdict, turned
from lmemtest.lmm.means.adjust import step_down

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Codes
    from lmemtest.lmm.means.comparisons import Comparisons


def beside(pairs: Comparisons, order: tuple[str, ...], runs: Runs, alpha: float) -> SideBySide:
    """Who is better by the model and by the classical tests of the same runs; `order` is that of the model.

    Only what decides is computed. Effect sizes and intervals take most of the time of `rank`, which has them.
    """
    blocks = blocks_of(runs)
    compared = pairs.to_frame().rename(columns={"t_ratio": "statistic"})
    verdicts = {"lmem": _codes(compared, pairs.estimates.direction == "minimize", order, alpha)}
    for test in side_by_side(blocks):
        verdicts[test] = _codes(*_tested(blocks, test, alpha), order, alpha)
    blocks = blocks.of(order)
    return SideBySide(
        tests=tuple(verdicts),
        blocks=blocks,
        verdicts=verdicts,
        rows_as_blocks=rows_as_blocks(blocks, alpha, resolve_rng(0)),
    )


def _tested(blocks: Blocks, test: str, alpha: float) -> tuple[pd.DataFrame, bool]:
    """Pairs with statistic and p-value by one of the tests, and whether a low estimate is better."""
    import pandas as pd

    if test == "wilcoxon":
        require_pairs(blocks)
        require_connected(blocks.gains)
        k = len(blocks.algorithms)
        left, right = np.triu_indices(k, 1)
        statistic, p_raw, _ = signed_rank_sums(blocks, left, right)
        names = np.array(blocks.algorithms, dtype=object)
        table = {"left": names[left], "right": names[right], "statistic": statistic}
        p_value = step_down(p_raw, k, first_by_range=False)
        return pd.DataFrame({**table, "p_value": p_value}), blocks.direction == "minimize"
    whole = blocks.where(blocks.complete)
    require_blocks(whole)
    means = block_estimates(whole, test, 1.0 - alpha)
    compared = means.pairs(adjust=ADJUST.get(test, "tukey"))
    return compared.to_frame().rename(columns={"t_ratio": "statistic"}), means.direction == "minimize"


def _codes(tests: pd.DataFrame, lower_is_better: bool, order: tuple[str, ...], alpha: float) -> Codes:
    """The verdicts of tests in this order; a pair without a p-value has no test."""
    import pandas as pd

    left, right = (pd.Index(order).get_indexer(pd.Index(tests[side])) for side in ("left", "right"))
    p = tests["p_value"].to_numpy(dtype=float)
    ahead = left_ahead(tests, lower_is_better=lower_is_better)
    said = np.where(below(p, alpha), np.where(ahead, Verdict.BETTER, Verdict.WORSE), Verdict.NOT_SIGNIFICANT)
    said[np.isnan(p)] = Verdict.NOT_TESTED
    codes = np.full((len(order), len(order)), Verdict.NOT_TESTED, dtype=np.int8)
    codes[left, right], codes[right, left] = said, turned(said)
    return codes
