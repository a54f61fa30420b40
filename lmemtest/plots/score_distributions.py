"""Violins: the distribution of the scores of each group, upright where the names fit, else lying."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from lmemtest.bench.scores.score_distributions import FEW
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis, Cell
from lmemtest.plots._lines import Lines, Panel, draw_lines

_HEIGHT, _ROW = 150.0, 0.3  # points of a panel of upright violins, and inches of a lying one per group
_WIDEST_SLOT, _FILLED = 0.86, 0.92  # of the distance of two groups; of a slot
_APART = 0.035  # half of the gap between two halves, of the distance of two groups
_PAD = 0.05  # of the range of the scores
_MOST_UPRIGHT = 12  # groups side by side
_SMALLEST = (7.0, 5.0)  # font sizes of a panel
_LEAST_SLOT = (1.1, 0.55)  # font sizes of a group, and of each violin in it


@dataclass(frozen=True, slots=True)
class _Content:
    """What is drawn, without sizes."""

    result: Answer
    groups: tuple[Any, ...]
    hues: tuple[Any, ...]
    panels: tuple[Any, ...]

    @property
    def halves(self) -> bool:
        return len(self.hues) == 2

    @property
    def colours(self) -> dict[Any, str]:
        """By the level that they stand for; algorithms have those of all figures of the table."""
        roster = self.result.roster if self.result.by[1:2] == (self.result.algorithm,) else ()
        return {hue: _style.colour(place) for hue, place in _style.places(self.hues, roster).items()}

    @property
    def untested(self) -> bool:
        """Whether some groups were not tested although others were: only then each of these has a mark."""
        missing = self.result.groups["p_value"].isna()
        return bool(missing.any() and not missing.all())

    @property
    def violins(self) -> int:
        """Side by side in a group."""
        return 1 if self.halves else len(self.hues)

    def rows(self, panel: Any) -> pd.DataFrame:
        table = self.result.groups
        return table if panel is None else table[table[self.result.by[2]] == panel]

    def limits(self, panel: Any) -> tuple[float, float]:
        rows = self.rows(panel)
        low, high = float(rows["min"].min()), float(rows["max"].max())
        spread = high - low or 0.1 * abs(high) or 1.0
        return low - _PAD * spread, high + _PAD * spread


def _draw_line(box: Axes, upright: bool, position: Any, score: Any, **style: Any) -> None:
    """A line in (position, score) coordinates, whichever of the two is upwards."""
    xy = (position, score) if upright else (score, position)
    line: dict[str, Any] = {"linestyle": "-", "marker": "none", "clip_on": False}
    box.plot(*xy, **(line | style))


@_canvas.draws("score_distributions", source="score_distributions()")
def score_distributions_plot(distributions: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the scores of each group.

    Parameters
    ----------
    distributions : Answer
        From `lmemtest.score_distributions`. The first column of its ``by`` gives the positions,
        the second the colours, the third the panels.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, each with its own scale of scores. A violin is the kernel density,
        scaled to the same width for all groups; two colours share a violin as halves. Thick: the middle half of the
        scores; line: the median. Groups of fewer than 8 scores are points. A star marks groups with more than one
        cluster, and a question mark those that were not tested, if others were.

    References
    ----------
    Hintze & Nelson (1998), doi:10.1080/00031305.1998.10480559

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(model="svm", algorithm=["RS", "HB"])
    >>> ax = lt.score_distributions(runs, by=["algorithm", "prior", "benchmark"], budget=2).plot()
    >>> [panel.get_title(loc="left") for panel in ax.child_axes][:2]
    ['benchmark: svm-cancer', 'benchmark: svm-diabetes']
    """
    levels = [
        tuple(distributions.groups[name].drop_duplicates().sort_values(kind="stable")) for name in distributions.by
    ]
    content = _Content(distributions, *(*levels, (None,), (None,))[:3])
    lying = _lines(content, upright=False)
    count = len(content.groups)
    if count > _MOST_UPRIGHT:
        return draw_lines(lying, ax, height=72.0 * max(1.2, count * max(_ROW, 0.17 * content.violins)))
    return draw_lines(_lines(content, upright=True), ax, or_else=lying, height=_HEIGHT)


def _lines(content: _Content, *, upright: bool) -> Lines:
    result, n = content.result, len(content.groups)
    limits = (-0.5, n - 0.5) if upright else (n - 0.5, -0.5)
    groups = Axis(
        limits=limits, ticks=np.arange(n, dtype=float), labels=tuple(map(_style.one_line, content.groups)), every=True
    )
    panels = []
    for panel in content.panels:
        scores = Axis(limits=content.limits(panel))

        def draw(box: Axes, place: Cell, font: float, panel: Any = panel) -> None:
            box.tick_params(axis="x" if upright else "y", length=0)
            for edge in np.arange(n - 1) + 0.5 if not upright else ():
                box.axhline(edge, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
            labels = box.get_xticklabels() if upright else box.get_yticklabels()
            for label, group in zip(labels, content.groups, strict=False):
                label.set_gid(_style.part(str(group)))
            _draw_panel(box, upright, content, panel, place, font)

        title = () if panel is None else (f"{result.by[2]}: {panel}",)
        x, y = (groups, scores) if upright else (scores, groups)
        panels.append(Panel(x=x, y=y, title=title, draw=draw))
    better = _style.BETTER[result.direction]
    score = f"{_style.one_line(result.score)}{f' at {_style.one_line(result.at)}' if result.at else ''}"
    across, along = max(_LEAST_SLOT[0], _LEAST_SLOT[1] * content.violins + 0.3) * n, result.by[0]
    hues = content.hues if len(content.hues) > 1 else ()
    return Lines(
        what=f"a plot of {counted(n, 'group')} in {counted(len(panels), 'panel')}",
        panels=tuple(panels),
        x_label=along if upright else f"{score} ({better})",
        y_label=(f"{score} ({better})", score) if upright else (along,),
        foot=_foot(content),
        key=tuple((str(hue), functools.partial(_patch, content.colours[hue])) for hue in hues),
        guides=upright,
        smallest=(max(_SMALLEST[0], across), _SMALLEST[1]) if upright else (_SMALLEST[0], max(2.0, across)),
    )


def _patch(colour: str, font: float) -> Patch:  # noqa: ARG001
    return Patch(facecolor=colour, alpha=0.5, edgecolor=colour)


def _foot(content: _Content) -> str:
    table = content.result.groups
    words = []
    if table["modes"].notna().any():
        words.append("Violins: kernel densities, all of one width, cut at the lowest and highest score.")
    if (table["n"] >= FEW).any():
        words.append("Thick: middle half; line: median.")
    if (table["n"] < FEW).any():
        words.append(f"Points: groups of fewer than {FEW} scores.")
    if len(content.result.several_modes):
        words.append(f"Star: more than one cluster (dip test, Holm, level {content.result.alpha:g}).")
    elif table["p_value"].notna().any():
        words.append(
            f"No group is shown to have more than one cluster (dip test, Holm, level {content.result.alpha:g})."
        )
    if content.untested:
        words.append("Question mark: not tested (too few scores, or one value too often).")
    elif table["p_value"].isna().all():
        words.append("No group was tested for more than one cluster (too few scores, or one value too often).")
    return " ".join(words)


# ------------------------------------------------------------------------------------------------- drawing


def _slots(content: _Content) -> Iterator[tuple[float, float, float]]:
    """Per colour: the offset of its centre line, and how far it reaches to the left and to the right."""
    if content.halves:
        half = 0.5 * _WIDEST_SLOT * _FILLED
        yield -_APART, half, 0.0
        yield _APART, 0.0, half
        return
    n = len(content.hues)
    width = _WIDEST_SLOT / n
    for i in range(n):
        yield (i - (n - 1) / 2) * width, 0.5 * width * _FILLED, 0.5 * width * _FILLED


def _draw_panel(box: Axes, upright: bool, content: _Content, panel: Any, place: Cell, font: float) -> None:
    result = content.result
    columns = list(result.by)
    densities, scores = (
        dict(list(table.groupby(columns, observed=True, sort=False))) if len(table) else {}
        for table in (result.densities, result.scores)
    )
    slots = dict(zip(content.hues, _slots(content), strict=True))
    position = {group: i for i, group in enumerate(content.groups)}
    step = (place.width if upright else place.height) / len(content.groups)
    bar = min(0.4 * font, 2.0 * _APART * step) if content.halves else 0.4 * font
    low, high = content.limits(panel)
    for row in content.rows(panel).to_dict("records"):
        key = tuple(row[name] for name in columns)
        hue = key[1] if len(key) > 1 else None
        offset, left, right = slots[hue]
        at, colour = position[key[0]] + offset, content.colours[hue]
        before = {*box.lines, *box.collections}
        if key in densities:
            _draw_density(box, upright, at, densities[key], (left, right), colour, font)
        if row["n"] < FEW:
            values = scores[key]["score"].to_numpy(dtype=float)
            dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 0.45 * font, "zorder": 3}
            dots |= {"markerfacecolor": "white", "markeredgewidth": 0.1 * font, "label": "_points"}
            _draw_line(box, upright, np.full(len(values), at + 0.25 * (right - left)), values, color=colour, **dots)
        else:
            _draw_box(box, upright, at, row, (left, right), colour, bar, font)
        mark = ""
        if at_most(row["p_value"], result.alpha):
            mark, label = "*", "_star"
        elif np.isnan(row["p_value"]) and content.untested:
            mark, label = "$?$", "_untested"
        if mark:
            look: dict[str, Any] = {"marker": mark, "markersize": 0.8 * font, "markeredgewidth": 0, "label": label}
            _draw_line(box, upright, [at], [row["max"] + 0.6 * _PAD * (high - low)], color=colour, **look)
        if result.algorithm in columns:  # all of a violin belongs to its algorithm
            ours = _style.part(str(key[columns.index(result.algorithm)]))
            for artist in {*box.lines, *box.collections} - before:
                artist.set_gid(ours)


def _draw_density(
    box: Axes, upright: bool, at: float, curve: pd.DataFrame, reach: tuple[float, float], colour: str, font: float
) -> None:
    score, height = curve["score"].to_numpy(dtype=float), curve["density"].to_numpy(dtype=float)
    share = height / height.max()
    style: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "alpha": 0.35, "linewidth": 0.06 * font}
    between = box.fill_betweenx if upright else box.fill_between
    between(score, at - reach[0] * share, at + reach[1] * share, label="_density", zorder=2, **style)


def _draw_box(
    box: Axes,
    upright: bool,
    at: float,
    row: dict[Any, Any],
    reach: tuple[float, float],
    colour: str,
    bar: float,
    font: float,
) -> None:
    """The middle half as a bar on the centre line, the median as a line across."""
    thick: dict[str, Any] = {"linewidth": bar, "solid_capstyle": "butt", "label": "_quartiles", "zorder": 3}
    _draw_line(box, upright, [at, at], [row["q1"], row["q3"]], color=colour, **thick)
    ink = _style.INK if row["max"] > row["min"] else colour  # one score: there is no outline to show the colour
    thin: dict[str, Any] = {"linewidth": 0.16 * font, "label": "_median", "zorder": 4}
    _draw_line(box, upright, [at - 0.5 * reach[0], at + 0.5 * reach[1]], [row["median"]] * 2, color=ink, **thin)
