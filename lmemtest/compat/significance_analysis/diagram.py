"""Critical-difference diagrams of the package's results."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.significance_analysis import r_names
from lmemtest.core.validate import check_columns, check_fraction
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.means.decisions import Decisions, decisions_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ALPHA = 0.05
VARIANT = "benchmark_variant"  # names the estimates of a metafeature analysis, which are mean wins
_DEFAULT_WIDTH = 4


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
    from lmemtest import plots

    pair = isinstance(result, (tuple, list)) and len(result) == 2
    is_tables = pair and all(isinstance(table, pd.DataFrame) for table in result)
    found = _of_tables(result[0], result[1], system_id) if is_tables else _of_ranks(result)
    ax = _axes_of_width(found, width) if parent_ax is None and width != _DEFAULT_WIDTH else parent_ax
    ax = plots.cd_diagram(found, ax=ax)
    if reverse:  # texts keep to the side of their anchor that they were on
        ax.invert_xaxis()
        other: dict[str, Any] = {"left": "right", "right": "left", "center": "center"}
        for text in ax.texts:
            text.set_horizontalalignment(other[text.get_horizontalalignment()])
    return None if parent_ax is not None else ax.figure.figure


# ---------------------------------------------------------------------- what is drawn


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
    return _decisions(
        dict(zip(names, estimates["Estimate"].to_numpy(dtype=float), strict=True)),
        tests,
        half_widths=_half_widths(contrasts, len(names)),
        alpha=ALPHA,
        adjust="p-values of the contrasts",
        ddf="satterthwaite",
        score="wins (-1, 0 or 1)" if is_wins else "the score",
        factor=str(system_id),
        statistic="mean" if is_wins else "marginal mean",
    )


def _decisions(means: dict[str, float], tests: pd.DataFrame, *, adjust: str, **options: Any) -> Decisions:
    """Groups by what the result says, without standard errors and without a better end."""
    unknown = np.full(len(means), np.nan)
    options |= {"levels": list(means), "means": list(means.values()), "se": unknown, "direction": None}
    return decisions_of(tests=tests, adjust=adjust, **options)


def _pairs(names: Sequence[str], contrasts: pd.Series) -> Iterator[tuple[int, int]]:
    """Positions of both sides of every contrast, which may itself hold " - " in a name."""
    known = {}
    for i, j in combinations(range(len(names)), 2):
        for a, b in ((i, j), (j, i)):
            known[f"{names[a]} - {names[b]}"] = known[r_names.contrast(names[a], names[b])] = (a, b)
    for text in contrasts:
        if text not in known:
            raise ArgumentError(
                f"result[1] has the contrast {text!r}, which is not a difference of two of {listed(names)}. Pass both "
                "tables of the same post_hoc, and its factor as system_id."
            )
        yield known[text]


def _half_widths(contrasts: pd.DataFrame, count: int) -> NDArray[np.float64]:
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
    rank = dict(zip(names, result.rankdf["meanrank"].to_numpy(dtype=float), strict=True))
    beyond = [(a, b, abs(rank[a] - rank[b]) > float(result.cd)) for a, b in combinations(names, 2)]
    tests = pd.DataFrame(beyond, columns=["left", "right", "differs"])
    return _decisions(
        rank,
        tests.assign(p_value=np.where(tests["differs"], 0.0, 1.0)),  # autorank decides by the distance alone
        half_widths=[float(result.cd)],
        alpha=float(result.alpha),
        adjust="Nemenyi",
        ddf="asymptotic",
        score="the score",
        statistic="mean rank",
    )


# ---------------------------------------------------------------------- the figure


def _axes_of_width(found: Decisions, width: float) -> Axes:
    """New axes of a width, and as high as the diagram needs there."""
    from lmemtest.plots._canvas import new_axes
    from lmemtest.plots._cd_board import board_of
    from lmemtest.plots._cd_plan import Frame, figure_height

    if not isinstance(width, numbers.Real) or isinstance(width, bool) or not 1.0 <= width <= 100.0:
        raise ArgumentError(f"width must be a number of inches between 1 and 100, got {width!r}.")
    return new_axes(float(width), figure_height(board_of(found), float(width), Frame()))
