"""Marginal means or slopes and their differences, in pymer4's tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.significance_analysis import r_names
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.emmeans import EmmeansResult, emmeans, emtrends

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit

# Names that emmeans takes, and what they are called here.
ADJUSTMENTS = {
    "tukey": "tukey",
    "bonf": "bonferroni",
    "bonferroni": "bonferroni",
    "holm": "holm",
    "fdr": "fdr",
    "BH": "fdr",
    "sidak": "sidak",
    "mvt": "mvt",
    "none": "none",
}
_KEPT_VALUES = 2  # emmeans averages over the values of a numeric column that has at most this many


def marginal_comparisons(
    fit: LmmFit,
    marginal_vars: str | Sequence[str],
    grouping_vars: str | Sequence[str] | None,
    p_adjust: str | None,
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Estimates, contrasts, and the line that is printed with them, if any, of marginal means or slopes."""
    wanted, given = ([x] if isinstance(x, str) else list(x or ()) for x in (marginal_vars, grouping_vars))
    if not wanted:
        raise ArgumentError("marginal_vars must name one or more factors of the model, such as 'algorithm'.")
    adjust = ADJUSTMENTS[check_choice("none" if p_adjust is None else p_adjust, "p_adjust", tuple(ADJUSTMENTS))]
    known = [*fit.design.factors, *fit.design.numeric]
    for argument, name in [("marginal_vars", name) for name in wanted] + [("grouping_vars", name) for name in given]:
        if name not in known:
            raise ArgumentError(
                f"{argument} names {name!r}, which is not in the fixed part of the model ({fit.formula}). "
                f"Columns there: {listed(known) or 'none'}."
            )
    number = [name for name in given if name in fit.design.numeric]
    if number:
        raise ArgumentError(f"grouping_vars must be factors, and {number[0]!r} holds numbers. Name a factor.")
    slopes = [name for name in wanted if name in fit.design.numeric]
    if slopes:
        em, wanted, given = _slopes(fit, wanted, given)
    else:
        em = emmeans(fit, tuple(reversed(wanted)), by=tuple(reversed(given)) or None, at=_kept(fit))
    found = em.pairs(adjust=adjust, rng=0)
    half = found.half_widths(found.level, first_step=True)  # as emmeans has them beside "holm" and "fdr"
    pairs = found.to_frame().assign(ci_low=lambda d: d["estimate"] - half, ci_high=lambda d: d["estimate"] + half)
    method = p_adjust or "none"
    size = f"a family of {found.family_size} estimates" if adjust == "tukey" else f"{len(found.table)} comparisons"
    single = adjust == "tukey" and found.family_size == 2  # a t-test
    factors = pd.DataFrame({name: _factor(em.frame[name]) for name in [*wanted, *given]})
    table = pd.DataFrame({name: getattr(em, name) for name in ("estimate", "ci_low", "ci_high", "se", "df")})
    return (
        pd.concat([factors, r_names.numbers(table)], axis=1),
        _contrasts(em, pairs, wanted, given),
        "" if single else f"P-values adjusted by {method} method for {size}",
    )


def _kept(fit: LmmFit) -> dict[str, list[float]]:
    """Values of numeric columns that emmeans takes for levels of a factor."""
    out = {}
    for name in fit.design.numeric:
        values = np.unique(fit.cells.frame[name].to_numpy(dtype=float))
        if len(values) <= _KEPT_VALUES:
            out[name] = values.tolist()
    return out


def _slopes(fit: LmmFit, wanted: list[str], given: list[str]) -> tuple[EmmeansResult, list[str], list[str]]:
    """Slopes over a numeric column at the first of the grouping factors, within the levels of the others."""
    if len(wanted) > 1:
        raise ArgumentError(
            f"marginal_vars must be factors only or one column of numbers, got {', '.join(wanted)}. Pass the factors "
            "as grouping_vars to compare the slopes between their levels."
        )
    if not given:
        raise ArgumentError(
            f"{wanted[0]!r} holds numbers, so its slopes are compared, and grouping_vars must say between which "
            "levels: post_hoc(..., grouping_vars='algorithm')."
        )
    name, (first, *rest) = wanted[0], given
    at = {key: values for key, values in _kept(fit).items() if key != name}
    slopes = emtrends(fit, first, var=name, by=tuple(reversed(rest)) or None, at=at)
    return slopes, [first], rest


def _factor(column: pd.Series) -> pd.Categorical:
    """Labels in order of appearance, which is that of the levels."""
    labels = [format_level(value) for value in column]
    return pd.Categorical(labels, categories=list(dict.fromkeys(labels)))


def _contrasts(em: EmmeansResult, table: pd.DataFrame, factors: list[str], by: list[str]) -> pd.DataFrame:
    names, where = [], []
    for _, rows in em.groups():
        labels = [" ".join(format_level(em.frame[name].iloc[i]) for name in factors) for i in rows]
        for i, j in combinations(range(len(rows)), 2):
            names.append(r_names.contrast(labels[i], labels[j]))
            where.append(rows[i])
    columns: dict[str, Any] = {"Contrast": pd.Categorical(names, categories=list(dict.fromkeys(names)))}
    if not by:
        columns["Contrast"] = pd.Series(names, dtype=object)
    columns |= {name: _factor(em.frame[name].iloc[where]) for name in by}
    return pd.concat([pd.DataFrame(columns), r_names.numbers(table)], axis=1)
