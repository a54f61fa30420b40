"""`rankdf`: one row per population, best first, with the numbers that its kind of comparison reports."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lmemtest._rounding import tie_order
from lmemtest.compat.autorank import _numbers


def rank_table(
    data: pd.DataFrame,
    alpha: float,
    order: str,
    effect_size: str | None,
    *,
    parametric: bool,
    half_width: float | None = None,
    by: str = "meanrank",
) -> tuple[pd.DataFrame, str, list[int]]:
    """`rankdf`, the kind of its effect sizes, and the columns of `data` that are its rows, best first by column `by`.

    Intervals are those of the means or medians at 1 - `alpha` each, or `half_width` wide to both sides of the mean.
    """
    x = data.to_numpy(dtype=float)
    if parametric:
        columns = {"mean": x.mean(axis=0), "std": x.std(axis=0, ddof=1)}
        intervals = _numbers.mean_intervals(x, alpha)
    else:
        median = np.median(x, axis=0)
        columns = {"median": median, "mad": np.median(np.abs(x - median), axis=0)}
        intervals = _numbers.median_intervals(x, alpha)
    if half_width is not None:
        intervals = np.stack([columns["mean"] - half_width, columns["mean"] + half_width], axis=1)
    descending = order == "descending"
    columns = {"meanrank": _numbers.mean_ranks(x, descending=descending), **columns}
    columns |= {"ci_lower": intervals[:, 0], "ci_upper": intervals[:, 1]}
    positions = tie_order(columns[by], descending=descending and by != "meanrank")
    kind = effect_size or ("cohen_d" if parametric else "akinshin_gamma")
    columns = {name: values[positions] for name, values in columns.items()}
    rows = np.arange(len(positions))
    for suffix, others in {"": np.zeros_like(rows), "_above": np.maximum(rows - 1, 0)}.items():
        effects = _numbers.effect_sizes(x[:, positions], others, rows, kind)
        columns[f"effect_size{suffix}"] = effects
        columns[f"magnitude{suffix}"] = [_numbers.magnitude(effect, kind) for effect in effects]
    table = pd.DataFrame(columns, index=data.columns[positions])
    return table, kind, positions
