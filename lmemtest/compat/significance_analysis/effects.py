"""Variances and levels of random effects in pymer4's tables."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.compat.significance_analysis import r_names

if TYPE_CHECKING:
    from lmemtest.model import LmmFit


def _order(fit: LmmFit) -> list[int]:
    """Positions of the terms as lme4 has them: by decreasing number of levels, unless they are so already."""
    sizes = [len(term.levels) for term in fit.design.random]
    if all(later <= earlier for earlier, later in pairwise(sizes)):
        return list(range(len(sizes)))
    return [int(i) for i in np.argsort(sizes, kind="stable")[::-1]]


def _groups(fit: LmmFit) -> list[str]:
    terms = fit.design.random
    return list(dict.fromkeys(terms[i].group for i in _order(fit)))


def group_sizes(fit: LmmFit) -> dict[str, float]:
    """Grouping factors and their numbers of levels."""
    sizes = {term.group: float(len(term.levels)) for term in fit.design.random}
    return {group: sizes[group] for group in _groups(fit)}


def _labels(fit: LmmFit) -> list[tuple[int, str]]:
    """Terms in order, with the name of their group; its second term gets a number, as in lme4."""
    seen: dict[str, int] = {}
    out = []
    for i in _order(fit):
        group = fit.design.random[i].group
        count = seen.get(group, 0)
        seen[group] = count + 1
        out.append((i, f"{group}.{count}" if count else group))
    return out


def variances(fit: LmmFit) -> pd.DataFrame:
    """One row per random effect, and the residual."""
    index, names, values = [], [], []
    for i, label in _labels(fit):
        for name, variance in zip(fit.design.random[i].names, fit.covariances[i].diagonal(), strict=True):
            index.append(label)
            names.append(r_names.effect(name))
            values.append(float(variance))
    table = {"Name": pd.Series([*names, ""], dtype=object), "Var": np.array([*values, fit.scale])}
    out = pd.DataFrame(table).assign(Std=lambda t: np.sqrt(t["Var"]))
    return out.set_index(pd.Index([*index, "Residual"]))


def correlations(fit: LmmFit) -> pd.DataFrame | None:
    """One row per pair of effects of a term."""
    index: list[str] = []
    rows: list[tuple[str, str, float]] = []
    for i, label in _labels(fit):
        names, S = fit.design.random[i].names, fit.covariances[i]
        sd = np.sqrt(S.diagonal())
        for a in range(len(names)):
            for b in range(a + 1, len(names)):
                size = sd[a] * sd[b]
                corr = float(S[a, b] / size) if size > 0 else float("nan")
                rows.append((r_names.effect(names[a]), r_names.effect(names[b]), corr))
                index.append(label)
    if not rows:
        return None
    table = pd.DataFrame(rows, columns=["IV1", "IV2", "Corr"], index=index)
    return table.astype({"IV1": object, "IV2": object})


def deviations(fit: LmmFit) -> dict[str, pd.DataFrame]:
    """Conditional modes of the levels of each grouping factor, with R's names of the effects."""
    return {group: fit.conditional_modes(group).rename(columns=r_names.effect) for group in _groups(fit)}


def coefficients(estimates: pd.Series, groups: dict[str, pd.DataFrame]) -> list[pd.DataFrame]:
    """Fixed effects plus the deviations of each level, a table per grouping factor.

    Deviations without a fixed effect have columns at the end, of all tables, as in lme4.
    """
    own = list(dict.fromkeys(name for table in groups.values() for name in table.columns if name not in estimates))
    start = {**estimates, **dict.fromkeys(own, 0.0)}
    out = []
    for table in groups.values():
        columns = {name: value + table.get(name, 0.0) for name, value in start.items()}
        out.append(pd.DataFrame(columns, index=table.index))
    return out
