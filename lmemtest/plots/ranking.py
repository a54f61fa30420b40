"""A ranking: the diagram of what was compared, centres with their intervals, or differences with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.bench.robustness.variants import Variants
from lmemtest.core.arrays import Array
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_p
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._given import as_decisions
from lmemtest.plots._pair_matrix import ON_RANKS
from lmemtest.plots.cd_diagrams import cd_diagrams
from lmemtest.plots.diagram import cd_diagram
from lmemtest.plots.emmeans import READINGS, adjustment_name, decided_by, omnibus_text
from lmemtest.plots.pairs import MOST_PAIRS, UNTESTED

KINDS = ("diagram", "intervals", "differences")
_CENTRES = ("mean", "median", "mean_rank")


@_canvas.draws(Ranking, source="rank()")
def ranking_plot(ranking: Ranking, /, *, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a ranking: which algorithms differ, on the scale on which they were compared.

    Parameters
    ----------
    ranking : Ranking
    kind : {"diagram", "intervals", "differences"}, optional
        The diagram of `cd_diagram`; one row per algorithm with its interval and letters; or one row per pair that was
        compared, with the interval of the difference. Default: the diagram, and the differences from a control.

    Returns
    -------
    Axes

    Notes
    -----
    All of them show the decisions of ``ranking.decisions``. Overlap of the intervals of two algorithms does not tell
    whether they differ, the letters do; intervals of means over benchmarks are mostly as wide as the benchmarks are
    unlike, which all algorithms share. Intervals of differences, where a test has any, exclude zero where it is
    significant.

    Examples
    --------
    >>> import lmemtest as lt
    >>> wide = {"A": [0.9, 0.8, 0.7, 0.9, 0.6], "B": [0.8, 0.7, 0.7, 0.8, 0.5], "C": [0.5, 0.6, 0.4, 0.6, 0.3]}
    >>> ranking = lt.rank(wide, "frequentist", test="tukey", direction="maximize")
    >>> [label.get_text() for label in ranking.plot(kind="differences").get_yticklabels()]
    ['A − B', 'A − C', 'B − C']
    """
    if kind is None:
        kind = "differences" if ranking.control is not None and "estimate" in ranking.pairs else "diagram"
    if check_choice(kind, "kind", KINDS) == "diagram":
        return cd_diagram(ranking, ax=ax)
    return _rows.draw_rows(_centres(ranking) if kind == "intervals" else _differences(ranking), ax)


def _centres(ranking: Ranking) -> _rows.Rows:
    """One row per algorithm."""
    decisions = as_decisions(ranking, None, {})
    table = ranking.table.set_index("algorithm").loc[list(decisions.levels)]
    centre = next(name for name in _CENTRES if name in table.columns)
    direction = "minimize" if centre == "mean_rank" else ranking.direction
    limits, table = _bounded(table, centre)
    what = f"{centre.replace('_', ' ').capitalize()} of {_style.one_line(ranking.score)}"
    said = [f"{what}, {_level(ranking)}{READINGS.get(direction, '')}", *_unbounded(limits)]
    letters: tuple[str, ...] = ()
    if ranking.control is None:
        letters = tuple(decisions.letters[level] for level in decisions.levels)
        verb = "no difference is decided" if decisions.posterior else "no significant difference"
        said.append(f"Algorithms that share a letter: {verb} ({decided_by(decisions)}).")
    return _rows.Rows(
        labels=list(decisions.levels),
        series=(_rows.Series.of(table, np.arange(len(table), dtype=np.intp), centre=centre),),
        axis_label="\n".join([*said, *filter(None, [omnibus_text(decisions)])]),
        limits=limits,
        aside=letters,
    )


def _differences(ranking: Ranking) -> _rows.Rows:
    """One row per pair that was compared, a control on the right."""
    decisions, table = as_decisions(ranking, None, {}), ranking.pairs
    if "estimate" not in table:
        raise ArgumentError("kind='differences' needs estimates of differences, which this method has not. Use "
                            "kind='diagram' or posterior_maps_plot.")  # fmt: skip
    if len(table) > MOST_PAIRS:
        raise ArgumentError(
            f"kind='differences' draws at most {MOST_PAIRS} pairs, got {len(table)}. Use comparison_matrix_plot."
        )
    if ranking.control is not None:
        table = _against(table, ranking.control)
    limits, table = _bounded(table, "estimate", reference=0.0)
    pairs = list(zip(table["left"], table["right"], strict=True))
    significant, undecided = (
        np.array([matrix.loc[pair] for pair in pairs], dtype=bool)
        for matrix in (decisions.significant, decisions.undecided)
    )
    hollow: dict[str, Any] = {"colour": _style.NEUTRAL, "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (
        ("significant", significant, {}),
        ("not significant", ~significant & ~undecided, hollow),
        (UNTESTED, undecided, hollow),
    )
    ranks = ranking.test in ON_RANKS
    what = f"mean ranks by {ranking.score}" if ranks else ranking.score
    level = f"{_level(ranking)} ({adjustment_name(decisions.adjust)})"
    better = READINGS["minimize" if ranks else ranking.direction]
    said = [f"Difference of {_style.one_line(what)}{better}, {level}", *_unbounded(limits)]
    said.append(f"Decisions: {decided_by(decisions)}. {omnibus_text(decisions)}".strip())
    return _rows.Rows(
        labels=pairs,
        series=_rows.Series.kinds(table, np.arange(len(table), dtype=np.intp), kinds),
        axis_label="\n".join(said),
        aside=tuple(UNTESTED if np.isnan(p) else format_p(p) for p in table["p_value"]),
        aside_title="p-value",
        limits=limits,
        reference=0.0,
        legend=True,
    )


def _against(table: pd.DataFrame, control: str) -> pd.DataFrame:
    """Pairs with a control, the control on the right."""
    turned = (table["left"] == control).to_numpy()
    other = table.rename(columns={"left": "right", "right": "left", "ci_low": "ci_high", "ci_high": "ci_low"})
    for name in ("estimate", "ci_low", "ci_high"):
        other[name] = -other[name]
    shown = ["left", "right", "estimate", "ci_low", "ci_high", "p_value"]
    return pd.concat([table.loc[~turned, shown], other.loc[turned, shown]]).sort_index()


def _bounded(
    table: pd.DataFrame, centre: str, reference: float = np.nan
) -> tuple[tuple[float, float] | None, pd.DataFrame]:
    """Intervals without an end, drawn to the edge of the axis; its limits, None where every interval has its ends."""
    values: Array = table[[centre, "ci_low", "ci_high"]].to_numpy(dtype=float)
    if not np.isinf(values).any():
        return None, table
    finite = np.append(values[np.isfinite(values)], reference if np.isfinite(reference) else [])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.1 * (high - low or max(abs(low), 1.0))
    limits = low - room, high + room
    return limits, table.assign(**{end: table[end].clip(*limits) for end in ("ci_low", "ci_high")})


def _unbounded(limits: tuple[float, float] | None) -> list[str]:
    return [] if limits is None else ["An interval that reaches the edge has no end: too few blocks for its level."]


def _level(ranking: Ranking) -> str:
    return _style.nobreak(f"{100 * (1 - ranking.alpha):g} % CI")


@_canvas.draws("rank", source="rank(..., 'all')")
def rankings_plot(several: Variants, /, *, ax: Axes | None = None) -> Axes:
    """Draw the critical-difference diagrams of several tests of the same runs below each other.

    Parameters
    ----------
    several : Variants
        From ``rank(..., "all")``.

    Returns
    -------
    Axes
        It holds the diagrams; each has the scale of its test, marginal means or mean ranks.
    """
    names = {name: TEST_NAMES[name] for name in several.rankings}
    titles = {f"{text[:1].upper()}{text[1:]}": several.rankings[name].decisions for name, text in names.items()}
    return cd_diagrams(titles, share_axis=False, ax=ax)
