"""Violins: the distribution of the scores of each group, upright where the names fit, else lying."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch

from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis, Cell
from lmemtest.plots._lines import Lines, Panel, draw_lines
from lmemtest.studies.scores.score_distributions import FEW, ScoreDistributions
from lmemtest.words import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

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

    result: ScoreDistributions
    groups: tuple[Any, ...]
    hues: tuple[Any, ...]
    panels: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        return [_style.one_line(group) for group in self.groups]

    @property
    def halves(self) -> bool:
        return len(self.hues) == 2

    def rows(self, panel: Any) -> pd.DataFrame:
        table = self.result.table
        return table if panel is None else table[table[self.result.by[2]] == panel]

    def limits(self, panel: Any) -> tuple[float, float]:
        rows = self.rows(panel)
        low, high = float(rows["min"].min()), float(rows["max"].max())
        spread = high - low or 0.1 * abs(high) or 1.0
        return low - _PAD * spread, high + _PAD * spread


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws in (position, score) coordinates, whichever of the two is upwards."""

    box: Axes
    upright: bool

    def line(self, position: Any, score: Any, **style: Any) -> None:
        xy = (position, score) if self.upright else (score, position)
        given: dict[str, Any] = {"linestyle": "-", "marker": "none", "clip_on": False}
        self.box.plot(*xy, **(given | style))

    def fill(self, left: FloatArray, right: FloatArray, score: FloatArray, **style: Any) -> None:
        between = self.box.fill_betweenx if self.upright else self.box.fill_between
        between(score, left, right, **style)


@_canvas.draws(ScoreDistributions, source="score_distributions()")
def score_distributions_plot(distributions: ScoreDistributions, /, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the scores of each group.

    Parameters
    ----------
    distributions : ScoreDistributions
        From `lmemtest.score_distributions`. The first column of its ``by`` gives the positions,
        the second the colours, the third the panels.
    ax : Axes, optional
        Where to draw; by default a new figure, which grows with the number of groups.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, each with its own scale of scores. A violin is the kernel density,
        scaled to the same width for all groups; two colours share a violin as halves. Thick: the middle half of the
        scores; line: the median. Groups of fewer than 8 scores are points. A star marks groups with more than one
        cluster.

    Raises
    ------
    ArgumentError
        If `distributions` are something else, or `ax` is too small.

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
    content = _content(distributions)
    lying = _lines(content, upright=False)
    if len(content.groups) > _MOST_UPRIGHT:
        return draw_lines(lying, ax, height=_lying_height(content))
    return draw_lines(_lines(content, upright=True), ax, or_else=lying, height=_HEIGHT)


def _content(result: ScoreDistributions) -> _Content:
    levels = [tuple(result.table[name].drop_duplicates().sort_values(kind="stable")) for name in result.by]
    groups, hues, panels = (*levels, (None,), (None,))[:3] if len(levels) < 3 else levels
    return _Content(result, groups, hues, panels)


def _slot(content: _Content) -> float:
    """Font sizes that a group needs across."""
    violins = 1 if content.halves else len(content.hues)
    return max(_LEAST_SLOT[0], _LEAST_SLOT[1] * violins + 0.3)


def _lying_height(content: _Content) -> float:
    violins = 1 if content.halves else len(content.hues)
    return 72.0 * max(1.2, len(content.groups) * max(_ROW, 0.17 * violins))


def _lines(content: _Content, *, upright: bool) -> Lines:
    result, n = content.result, len(content.groups)
    limits = (-0.5, n - 0.5) if upright else (n - 0.5, -0.5)
    groups = Axis(limits=limits, ticks=np.arange(n, dtype=float), labels=tuple(content.names), every=True)
    panels = []
    for panel in content.panels:
        scores = Axis(limits=content.limits(panel))

        def draw(box: Axes, place: Cell, font: float, panel: Any = panel) -> None:
            box.tick_params(axis="x" if upright else "y", length=0)
            for edge in np.arange(n - 1) + 0.5 if not upright else ():
                box.axhline(edge, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
            _draw_panel(_Pen(box, upright), content, panel, place, font)

        title = () if panel is None else (f"{_style.one_line(result.by[2])}: {_style.one_line(panel)}",)
        x, y = (groups, scores) if upright else (scores, groups)
        panels.append(Panel(x=x, y=y, title=title, draw=draw))
    better = "lower is better" if result.direction == "minimize" else "higher is better"
    score = f"{_style.one_line(result.score)}{f' at {_style.one_line(result.at)}' if result.at else ''}"
    across, along = _slot(content) * n, result.by[0]
    hues = content.hues if len(content.hues) > 1 else ()
    return Lines(
        what=f"a plot of {counted(n, 'group')} in {counted(len(panels), 'panel')}",
        panels=tuple(panels),
        x_label=along if upright else f"{score} ({better})",
        y_label=(f"{score} ({better})", score) if upright else (along,),
        foot=_foot(content),
        key=tuple((_style.one_line(hue), _patch(_style.colour(i))) for i, hue in enumerate(hues)),
        guides=upright,
        smallest=(max(_SMALLEST[0], across), _SMALLEST[1]) if upright else (_SMALLEST[0], max(2.0, across)),
    )


def _patch(colour: str) -> Callable[[float], Patch]:
    return lambda font: Patch(facecolor=colour, alpha=0.5, edgecolor=colour)  # noqa: ARG005


def _foot(content: _Content) -> str:
    table = content.result.table
    words = []
    if table["modes"].notna().any():
        words.append("Violins: kernel densities, all of one width, cut at the lowest and highest score.")
    if (table["n"] >= FEW).any():
        words.append("Thick: middle half; line: median.")
    if (table["n"] < FEW).any():
        words.append(f"Points: groups of fewer than {FEW} scores.")
    if (table["p_adjusted"] <= content.result.alpha).any():
        words.append(f"Star: more than one cluster (dip test, Holm, level {content.result.alpha:g}).")
    return " ".join(words)


# ------------------------------------------------------------------------------------------------- drawing


def _slots(content: _Content) -> Iterator[tuple[int, float, float, float]]:
    """Per colour: its number, the offset of its centre line, and how far it reaches to the left and to the right."""
    if content.halves:
        half = 0.5 * _WIDEST_SLOT * _FILLED
        yield 0, -_APART, half, 0.0
        yield 1, _APART, 0.0, half
        return
    n = len(content.hues)
    width = _WIDEST_SLOT / n
    for i in range(n):
        yield i, (i - (n - 1) / 2) * width, 0.5 * width * _FILLED, 0.5 * width * _FILLED


def _draw_panel(pen: _Pen, content: _Content, panel: Any, place: Cell, font: float) -> None:
    result = content.result
    columns = list(result.by)
    rows = content.rows(panel)
    curves = dict(list(result.densities.groupby(columns, observed=True, sort=False))) if len(result.densities) else {}
    slots = dict(zip(content.hues, _slots(content), strict=True))
    position = {group: i for i, group in enumerate(content.groups)}
    step = (place.width if pen.upright else place.height) / len(content.groups)
    bar = min(0.4 * font, 2.0 * _APART * step) if content.halves else 0.4 * font
    for row in rows.to_dict("records"):
        key = tuple(row[name] for name in columns)
        index, offset, left, right = slots[key[1] if len(key) > 1 else None]
        at = position[key[0]] + offset
        colour = _style.colour(index)
        curve = curves.get(key)
        if curve is not None:
            _draw_density(pen, at, curve, left, right, colour, font)
        if row["n"] < FEW:
            _draw_points(pen, at + 0.25 * (right - left), _scores_of(result, key), colour, font)
        else:
            _draw_box(pen, at, row, (left, right), colour, bar, font)
        if row["p_adjusted"] <= result.alpha:
            spread = np.subtract(*content.limits(panel)[::-1])
            score = row["max"] + 0.6 * _PAD * spread
            pen.line([at], [score], marker="*", markersize=0.8 * font, color=colour, markeredgewidth=0, label="_star")


def _scores_of(result: ScoreDistributions, key: tuple[Any, ...]) -> FloatArray:
    mask = np.ones(len(result.scores), dtype=bool)
    for name, value in zip(result.by, key, strict=True):
        mask &= (result.scores[name] == value).to_numpy(dtype=bool)
    return result.scores.loc[mask, "score"].to_numpy(dtype=float)


def _draw_density(
    pen: _Pen, at: float, curve: pd.DataFrame, left: float, right: float, colour: str, font: float
) -> None:
    score, height = curve["score"].to_numpy(dtype=float), curve["density"].to_numpy(dtype=float)
    share = height / height.max()
    pen.fill(
        at - left * share,
        at + right * share,
        score,
        facecolor=colour,
        alpha=0.35,
        edgecolor=colour,
        linewidth=0.06 * font,
        label="_density",
        zorder=2,
    )


def _draw_box(
    pen: _Pen, at: float, row: dict[Any, Any], reach: tuple[float, float], colour: str, bar: float, font: float
) -> None:
    """The middle half as a bar on the centre line, the median as a line across."""
    pen.line(
        [at, at],
        [row["q1"], row["q3"]],
        color=colour,
        linewidth=bar,
        solid_capstyle="butt",
        label="_quartiles",
        zorder=3,
    )
    pen.line(
        [at - 0.5 * reach[0], at + 0.5 * reach[1]],
        [row["median"]] * 2,
        color=_style.INK if row["max"] > row["min"] else colour,  # one score: there is no outline to show the colour
        linewidth=0.16 * font,
        label="_median",
        zorder=4,
    )


def _draw_points(pen: _Pen, at: float, scores: FloatArray, colour: str, font: float) -> None:
    pen.line(
        np.full(len(scores), at),
        scores,
        linestyle="none",
        marker="o",
        markersize=0.45 * font,
        color=colour,
        markerfacecolor="white",
        markeredgewidth=0.1 * font,
        label="_points",
        zorder=3,
    )
