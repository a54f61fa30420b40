"""`rankdf`: one row per population, best first, with the numbers that its kind of comparison reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank import _numbers
from lmemtest.core.rounding import tie_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def means(x: Array, alpha: float) -> dict[str, Array]:
    """Means, spreads and intervals at 1 - alpha each, by column."""
    return {"mean": x.mean(axis=0), "std": x.std(axis=0, ddof=1), **ends(_numbers.mean_intervals(x, alpha))}


def medians(x: Array, alpha: float) -> dict[str, Array]:
    """The same of medians."""
    median = np.median(x, axis=0)
    spread = np.median(np.abs(x - median), axis=0)
    return {"median": median, "mad": spread, **ends(_numbers.median_intervals(x, alpha))}


def ends(intervals: Array) -> dict[str, Array]:
    """Intervals, ``(k, 2)``, as columns."""
    return {"ci_lower": intervals[:, 0], "ci_upper": intervals[:, 1]}


def rank_table(
    data: pd.DataFrame, centre: dict[str, Array], order: str, effect_size: str | None, *, by: str
) -> tuple[pd.DataFrame, str, list[int]]:
    """`rankdf`, the kind of its effect sizes, and the columns of `data` that are its rows, best first by column `by`.

    `centre` holds the columns of `means` or `medians`; ranks and effect sizes are those of `data`.
    """
    x = data.to_numpy(dtype=float)
    descending = order == "descending"
    columns = {"meanrank": _numbers.mean_ranks(x, descending=descending), **centre}
    positions = tie_order(columns[by], descending=descending and by != "meanrank")
    kind = effect_size or ("cohen_d" if "mean" in centre else "akinshin_gamma")
    table: dict[str, Any] = {name: values[positions] for name, values in columns.items()}
    rows = np.arange(len(positions))
    for suffix, others in {"": np.zeros_like(rows), "_above": np.maximum(rows - 1, 0)}.items():
        effects = _numbers.effect_sizes(x[:, positions], others, rows, kind)
        table[f"effect_size{suffix}"] = effects
        table[f"magnitude{suffix}"] = [_numbers.magnitude(effect, kind) for effect in effects]
    return pd.DataFrame(table, index=data.columns[positions]), kind, positions
