"""What a critical-difference diagram shows, whatever its size and whoever draws it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmemtest.core.rounding import in_tie_order
from lmemtest.core.validate import check_flag
from lmemtest.core.words import format_level, listed, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _style
from lmemtest.plots.emmeans import decided_by, omnibus_text

MOST_GROUPS = 60  # bars; real comparisons have about as many groups as algorithms, or fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The content of a diagram: everything that does not depend on the size of the axes.

    `means` ascend; `groups` are index tuples into them, of two or more members, and `open` says which hold an undecided
    pair; `sides` is "left" or "right" per algorithm; `missing` names the algorithms without a mean; `undecided` and
    `significant` count pairs. `values` are the means as text and `intervals` their intervals, empty if not asked for.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    open: tuple[bool, ...]
    missing: tuple[str, ...]
    differences: tuple[float, float] | None
    direction: str | None
    subject: str
    test: str
    undecided: int
    significant: int
    values: tuple[str, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    level: float | None = None
    highlight: frozenset[int] = frozenset()
    left_only: bool = False
    omnibus: str = ""
    posterior: bool = False
    remark: str = ""  # a last sentence below

    @property
    def sides(self) -> tuple[str, ...]:
        count = len(self.names)
        left = count // 2 if self.direction == "maximize" else (count + 1) // 2
        left = count if self.left_only else left
        return ("left",) * left + ("right",) * (count - left)

    @property
    def rows(self) -> int:
        return len(self.names) if self.left_only else (len(self.names) + 1) // 2

    @property
    def ruler_text(self) -> str:
        return "" if self.differences is None else f"CD {_style.interval(*self.differences)}"

    @property
    def direction_text(self) -> str:
        return {"minimize": "← lower is better", "maximize": "higher is better →"}.get(self.direction or "", "")


def board_of(
    decisions: Decisions,
    *,
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
) -> Board:
    """The content of the diagram of decisions; the options are those of `cd_diagram`."""
    for name, flag in {"values": values, "whiskers": whiskers, "left_only": left_only}.items():
        check_flag(flag, name)
    means = dict(zip(decisions.levels, map(float, decisions.means), strict=True))
    placed = in_tie_order((level for level in means if math.isfinite(means[level])), lambda level: means[level])
    if not placed:
        raise ArgumentError(
            "decisions has no finite mean to draw: "
            f"{', '.join(map(str, means))} cannot be estimated. The notes of the marginal means say why."
        )
    index = {level: position for position, level in enumerate(placed)}
    found = (tuple(sorted(index[level] for level in group if level in index)) for group in decisions.groups)
    groups = tuple(sorted({group for group in found if len(group) > 1}))
    if len(groups) > MOST_GROUPS:
        raise ArgumentError(
            f"cd_diagram draws at most {MOST_GROUPS} groups as bars, and these decisions have {len(groups)}. "
            "Use comparison_matrix_plot or p_value_plot, or compare fewer levels."
        )
    cd = decisions.critical_difference
    where = ", ".join(f"{name} = {format_level(value)}" for name, value in decisions.selected.items())
    undecided = decisions.undecided.loc[placed, placed].to_numpy(dtype=bool)
    significant = decisions.significant.loc[placed, placed].to_numpy(dtype=bool)
    return Board(
        names=tuple(_style.one_line(level) for level in placed),
        means=tuple(means[level] for level in placed),
        groups=groups,
        open=tuple(bool(undecided[np.ix_(group, group)].any()) for group in groups),
        missing=tuple(_style.one_line(level) for level in means if level not in index),
        differences=None
        if cd is None or not all(math.isfinite(value) and value > 0 for value in cd)
        else (float(cd[0]), float(cd[1])),
        direction=decisions.direction,
        subject=_subject(decisions) + (f" at {_style.one_line(where)}" if where else ""),
        test=decided_by(decisions),
        undecided=int(undecided.sum()) // 2,
        significant=int(significant.sum()) // 2,
        values=_as_text([means[level] for level in placed]) if values else (),
        intervals=_intervals(decisions, index) if whiskers else (),
        level=decisions.level,
        highlight=frozenset(index[name] for name in _known(highlight, decisions) if name in index),
        left_only=left_only,
        omnibus=omnibus_text(decisions),
        posterior=decisions.posterior,
    )


def _subject(decisions: Decisions) -> str:
    """What the means are of."""
    what = f"{decisions.statistic[:1].upper()}{decisions.statistic[1:]}s"
    score = _style.one_line(decisions.score)
    return f"{what} {score.removeprefix('rank ')}" if score.startswith("rank by ") else f"{what} of {score}"


def _as_text(means: list[float]) -> tuple[str, ...]:
    """Means with equal decimals: three digits of their range."""
    spread = means[-1] - means[0]
    size = max(map(abs, means))
    places = _style.decimals(spread, 3) if spread > 1e-9 * size else _style.decimals(size, 4)
    return tuple(_style.fixed(mean, places) for mean in means)


def _intervals(decisions: Decisions, index: Mapping[str, int]) -> tuple[tuple[float, float], ...]:
    if decisions.ci_low is None or decisions.ci_high is None:
        raise ArgumentError(
            "whiskers asks for intervals of the means, and these decisions have none. Give means with the columns "
            "ci_low and ci_high, or leave whiskers out."
        )
    ends = dict(zip(decisions.levels, zip(decisions.ci_low, decisions.ci_high, strict=True), strict=True))
    return tuple(ends[level] for level in index)


def _known(highlight: Any, decisions: Decisions) -> tuple[str, ...]:
    """The names to highlight, each of a level."""
    one = isinstance(highlight, str) or not isinstance(highlight, Iterable) or getattr(highlight, "ndim", None) == 0
    names = (highlight,) if one else tuple(highlight)
    names = tuple(map(format_level, names))
    for name in names:
        if name not in decisions.levels:
            raise ArgumentError(
                f"highlight names {name!r}, which is not one of {listed(decisions.levels)}."
                f"{suggest(name, decisions.levels)}"
            )
    return names
