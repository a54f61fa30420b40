"""pymer4's tables of marginal means or slopes and their differences, names as R writes them, and the diagram."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank.decisions import diagram
from lmemtest.core.validate import check_choice, check_columns, check_fraction
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.means.decisions import Decisions, decisions_of
from lmemtest.lmm.means.emmeans import emmeans, emtrends
from lmemtest.lmm.means.estimates import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.model import LmmFit

# Columns of this package under the names of pymer4.
COLUMNS = {
    "estimate": "Estimate",
    "ci_low": "2.5_ci",
    "ci_high": "97.5_ci",
    "se": "SE",
    "df": "DF",
    "t_ratio": "T-stat",
    "p_value": "P-val",
}

STARS = {0.001: "***", 0.01: "**", 0.05: "*", 0.1: "."}
_CODED = re.compile(r"^(?P<factor>.+?)\[(?P<treatment>T\.)?(?P<level>.*)\]$", re.DOTALL)
_OPERATORS = re.compile(r"[-+/*]")  # emmeans puts brackets around a name with one of these
# Words of R's language that cannot be names.
_CONTROL = ("if", "else", "repeat", "while", "function", "for", "next", "break", "in")
_RESERVED = frozenset({*_CONTROL, "TRUE", "FALSE", "NULL", "Inf", "NaN", "NA", "NA_integer_", "NA_real_"})

ADJUSTMENTS = ("tukey", "bonf", "bonferroni", "holm", "fdr", "BH", "sidak", "mvt", "none")  # as emmeans names them
_KEPT_VALUES = 2  # emmeans averages over the values of a numeric column that has at most this many

ALPHA = 0.05
VARIANT = "benchmark_variant"  # names the estimates of a metafeature analysis, which are mean wins
_DEFAULT_WIDTH = 4


# ---------------------------------------------------------------------- names


def coefficient(name: str, numbered: Mapping[str, Sequence[Any]]) -> str:
    """A coefficient of the fixed part: ``(Intercept)``, ``priorgood``, ``algorithm1:budget``."""
    if name == "Intercept":
        return "(Intercept)"
    parts = re.split(r":(?![^\[]*\])", name)  # a colon inside brackets belongs to a level
    return ":".join(_atom(part, numbered) for part in parts)


def _atom(part: str, numbered: Mapping[str, Sequence[Any]]) -> str:
    match = _CODED.match(part)
    if match is None:
        return part
    factor, level = match["factor"], match["level"]
    levels = [format_level(value) for value in numbered.get(factor, ())] if match["treatment"] else []
    return f"{factor}{levels.index(level) if level in levels else level}"


def column(name: str) -> str:
    """What R makes of a name of a column, as its ``make.names``."""
    starts_well = re.match(r"[^\W\d_]|\.(?!\d)", name) is not None
    out = re.sub(r"[^\w.]", ".", name if starts_well else f"X{name}")
    return f"{out}." if out in _RESERVED else out


def contrast(left: str, right: str) -> str:
    """A difference as emmeans names it."""
    return f"{bracketed(left)} - {bracketed(right)}"


def bracketed(label: str) -> str:
    """A label in brackets if it holds a sign that could be read as an operation."""
    return f"({label})" if _OPERATORS.search(label) else label


def stars(p: float) -> str:
    """Significance stars."""
    return next((text for limit, text in STARS.items() if p < limit), "")


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The columns of numbers that a table has, under pymer4's names and as floats, with stars for its p-values."""
    out = table[[name for name in COLUMNS if name in table.columns]].astype(float).rename(columns=COLUMNS)
    return with_stars(out) if "P-val" in out else out


def with_stars(table: pd.DataFrame) -> pd.DataFrame:
    """A table with stars for the p-values as its last column."""
    return table.assign(Sig=pd.Series([stars(p) for p in table["P-val"]], index=table.index, dtype=object))


# ---------------------------------------------------------------------- means and contrasts


def marginal_comparisons(
    fit: LmmFit,
    marginal_vars: str | Sequence[str],
    grouping_vars: str | Sequence[str] | None,
    p_adjust: str | None,
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Estimates, contrasts, and the line that is printed with them, if any, of marginal means or slopes."""
    wanted, by = ([x] if isinstance(x, str) else list(x or ()) for x in (marginal_vars, grouping_vars))
    if not wanted:
        raise ArgumentError("marginal_vars must name one or more factors of the model, such as 'algorithm'.")
    method = check_choice("none" if p_adjust is None else p_adjust, "p_adjust", ADJUSTMENTS)
    adjust = {"bonf": "bonferroni", "BH": "fdr"}.get(method, method)
    fixed, numeric = [*fit.design.factors, *fit.design.numeric], fit.design.numeric
    for argument, names in {"marginal_vars": wanted, "grouping_vars": by}.items():
        for name in names:
            if name not in fixed:
                raise ArgumentError(
                    f"{argument} names {name!r}, which is not in the fixed part of the model ({fit.formula}). "
                    f"Columns there: {listed(fixed) or 'none'}."
                )
    for name in by:
        if name in numeric:
            raise ArgumentError(f"grouping_vars must be factors, and {name!r} holds numbers. Name a factor.")
    if any(name in numeric for name in wanted):
        em, wanted, by = _slopes(fit, wanted, by)
    else:
        em = emmeans(fit, tuple(reversed(wanted)), by=tuple(reversed(by)) or None, at=_kept(fit))
    pairs = em.pairs(adjust=adjust, rng=0)
    half = pairs.half_widths(pairs.alpha, first_step=True)  # as emmeans has them beside "holm" and "fdr"
    tests = pairs.to_frame().assign(ci_low=lambda d: d["estimate"] - half, ci_high=lambda d: d["estimate"] + half)
    size = f"a family of {pairs.family_size} estimates" if adjust == "tukey" else f"{len(pairs.table)} comparisons"
    single = adjust == "tukey" and pairs.family_size == 2  # a t-test
    factors = pd.DataFrame({name: _factor(em.frame[name]) for name in [*wanted, *by]})
    means = pd.DataFrame({name: getattr(em, name) for name in ("estimate", "ci_low", "ci_high", "se", "df")})
    return (
        pd.concat([factors, numbers(means)], axis=1),
        _contrasts(em, tests, wanted, by),
        "" if single else f"P-values adjusted by {method} method for {size}",
    )


def _kept(fit: LmmFit) -> dict[str, list[float]]:
    """Values of numeric columns that emmeans takes for levels of a factor."""
    values = {name: np.unique(fit.cells.frame[name].to_numpy(dtype=float)).tolist() for name in fit.design.numeric}
    return {name: few for name, few in values.items() if len(few) <= _KEPT_VALUES}


def _slopes(fit: LmmFit, wanted: list[str], by: list[str]) -> tuple[Estimates, list[str], list[str]]:
    """Slopes over a numeric column at the first of the grouping factors, within the levels of the others."""
    if len(wanted) > 1:
        raise ArgumentError(
            f"marginal_vars must be factors only or one column of numbers, got {', '.join(wanted)}. Pass the factors "
            "as grouping_vars to compare the slopes between their levels."
        )
    if not by:
        raise ArgumentError(
            f"{wanted[0]!r} holds numbers, so its slopes are compared, and grouping_vars must say between which "
            "levels: post_hoc(..., grouping_vars='algorithm')."
        )
    name, (first, *rest) = wanted[0], by
    at = {key: values for key, values in _kept(fit).items() if key != name}
    slopes = emtrends(fit, first, var=name, by=tuple(reversed(rest)) or None, at=at)
    return slopes, [first], rest


def _factor(column: pd.Series) -> pd.Categorical:
    """Labels in order of appearance, which is that of the levels."""
    labels = [format_level(value) for value in column]
    return pd.Categorical(labels, categories=list(dict.fromkeys(labels)))


def _contrasts(em: Estimates, table: pd.DataFrame, factors: list[str], by: list[str]) -> pd.DataFrame:
    names, where = [], []
    for _, rows in em.groups():
        labels = [" ".join(format_level(em.frame[name].iloc[i]) for name in factors) for i in rows]
        for i, j in combinations(range(len(rows)), 2):
            names.append(contrast(labels[i], labels[j]))
            where.append(rows[i])
    columns: dict[str, Any] = {"Contrast": pd.Categorical(names, categories=list(dict.fromkeys(names)))}
    if not by:
        columns["Contrast"] = pd.Series(names, dtype=object)
    columns |= {name: _factor(em.frame[name].iloc[where]) for name in by}
    return pd.concat([pd.DataFrame(columns), numbers(table)], axis=1)


# ---------------------------------------------------------------------- diagram


def cd_diagram(
    result: Any,
    reverse: bool = False,
    width: float = 4,
    system_id: str = "algorithm",
    parent_ax: Axes | None = None,
) -> Figure | None:
    """Draw which algorithms differ, on the axis of their means or mean ranks.

    Parameters
    ----------
    result : tuple of (pandas.DataFrame, pandas.DataFrame), or autorank's RankResult
        Estimates and contrasts from `Model.post_hoc`.
    reverse : bool
        High values on the left.
    width : float
        Width of a new figure in inches. By default it is as wide as the names need.
    system_id : str
        Column of the estimates with the names.
    parent_ax : Axes, optional
        Where to draw.

    Returns
    -------
    Figure or None
        The new figure; None if drawn into `parent_ax`.

    Raises
    ------
    ArgumentError
        If `result` is neither of both, has no contrast that fits the names, or the axes are too small for text.

    Notes
    -----
    Dots on one bar: no pair of them differs significantly at 5 %. A pair without a contrast or without a p-value is
    undecided: the bar that joins it is dashed and has diamonds. A bar passes an algorithm that it does not join as a
    dotted line. The ruler has the smallest and the largest critical difference of the pairs, each with its own standard
    error and degrees of freedom.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.compat.significance_analysis import model
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good").to_frame()
    >>> result = model("loss ~ algorithm + (1|benchmark)", data).post_hoc("algorithm")
    P-values adjusted by tukey method for a family of 6 estimates
    >>> figure = cd_diagram(result)
    """
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    is_tables = pair and all(isinstance(table, pd.DataFrame) for table in result)
    decisions = _of_tables(result[0], result[1], system_id) if is_tables else _of_ranks(result)
    if parent_ax is not None or width == _DEFAULT_WIDTH:
        ax = diagram(decisions, reverse, parent_ax, None)
        return ax.figure.figure if parent_ax is None else None
    if not isinstance(width, Real) or isinstance(width, bool) or not 1.0 <= width <= 100.0:
        raise ArgumentError(f"width must be a number of inches between 1 and 100, got {width!r}.")
    return diagram(decisions, reverse, None, float(width)).figure.figure


def _of_tables(estimates: pd.DataFrame, contrasts: pd.DataFrame, system_id: str) -> Decisions:
    """Groups of a post-hoc analysis; pairs that are not in the contrasts are undecided."""
    check_columns([system_id, "Estimate"], estimates.columns, argument="result[0]")
    check_columns(["Contrast", "P-val"], contrasts.columns, argument="result[1]")
    names = [format_level(value) for value in estimates[system_id]]
    if len(set(names)) < len(names):
        raise ArgumentError(
            f"result has several estimates for one {system_id}, so there is one diagram for each level of the grouping "
            "factors. Select the rows of one level from both tables first."
        )
    sides = [(names[i], names[j]) for i, j in _pairs(names, contrasts["Contrast"])]
    tests = pd.DataFrame(sides, columns=["left", "right"]).assign(p_value=contrasts["P-val"].to_numpy(dtype=float))
    is_wins = system_id == VARIANT
    return decisions_of(  # without standard errors and without a better end
        levels=names,
        means=estimates["Estimate"].to_numpy(dtype=float).tolist(),
        se=np.full(len(names), np.nan),
        direction=None,
        tests=tests,
        half_widths=_half_widths(contrasts, len(names)),
        alpha=ALPHA,
        adjust="p-values of the contrasts",
        ddf="satterthwaite",
        score="wins (-1, 0 or 1)" if is_wins else "the score",
        factor=str(system_id),
        statistic="mean" if is_wins else "marginal mean",
    )


def _pairs(names: Sequence[str], contrasts: pd.Series) -> Iterator[tuple[int, int]]:
    """Positions of both sides of every contrast, which may itself hold " - " in a name."""
    sides = {}
    for i, j in combinations(range(len(names)), 2):
        for a, b in ((i, j), (j, i)):
            sides[f"{names[a]} - {names[b]}"] = sides[contrast(names[a], names[b])] = (a, b)
    for text in contrasts:
        if text not in sides:
            raise ArgumentError(
                f"result[1] has the contrast {text!r}, which is not a difference of two of {listed(names)}. Pass both "
                "tables of the same post_hoc, and its factor as system_id."
            )
        yield sides[text]


def _half_widths(contrasts: pd.DataFrame, count: int) -> Array:
    """Half widths of the intervals, or Tukey's critical difference of each pair."""
    if {"2.5_ci", "97.5_ci"} <= set(contrasts.columns):
        return (contrasts["97.5_ci"] - contrasts["2.5_ci"]).to_numpy(dtype=float) / 2.0
    if {"SE", "DF"} <= set(contrasts.columns):
        se = contrasts["SE"].to_numpy(dtype=float)
        return np.asarray(qtukey(1.0 - ALPHA, count, contrasts["DF"]) / math.sqrt(2.0) * se)
    return np.empty(0)


def _of_ranks(result: Any) -> Decisions:
    """Groups of autorank's result: mean ranks that differ by no more than the critical difference."""
    missing = [name for name in ("rankdf", "cd", "alpha") if not hasattr(result, name)]
    if missing:
        raise ArgumentError(
            "result must be the two tables of post_hoc or autorank's RankResult, got "
            f"{type(result).__name__}. Pass the return value of post_hoc(...) as it is."
        )
    if result.cd is None or not math.isfinite(result.cd):
        raise ArgumentError(
            "result has no critical difference, because autorank chose another post-hoc test than Nemenyi's. "
            "Use autorank.plot_stats, or compare means by model(...).post_hoc."
        )
    check_fraction(result.alpha, "result.alpha")
    check_columns(["meanrank"], result.rankdf.columns, argument="result.rankdf")
    names = [format_level(value) for value in result.rankdf.index]
    ranks = result.rankdf["meanrank"].to_numpy(dtype=float)
    # autorank decides by the distance alone
    differ = pd.DataFrame(np.abs(ranks[:, None] - ranks) > float(result.cd), index=names, columns=names)
    options: dict[str, Any] = {"critical_difference": float(result.cd), "alpha": float(result.alpha)}
    return Decisions.of(dict(zip(names, ranks, strict=True)), differ, statistic="mean rank", test="Nemenyi", **options)
