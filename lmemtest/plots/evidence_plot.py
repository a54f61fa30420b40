"""Two tuning curves with their bands and the evidence between them, and the probability of winning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _style
from lmemtest.tuning._arguments import name_of
from lmemtest.tuning.compare import ComparedCurve, CurveComparison
from lmemtest.tuning.evidence import Segment
from lmemtest.tuning.winning import BestOf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.2  # inches of a new figure
_LINES = 13.0  # lines of text that axes must be high
_LOG_RATIO = 25.0  # of the last to the first budget, from which the axis is logarithmic
_STRIP = 0.075  # of the height: the strip with the evidence
_SHADE = {"weak": 0.3, "fair": 0.6, "strong": 1.0}
_BAND, _TRIVIAL_BAND = 0.22, 0.08  # opacity
_MARKED = 12  # budgets, up to which they have markers
_ROOM = 0.05  # of the range of the y axis, above and below


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A curve with a band, known so finely that lines between its budgets are true."""

    name: str
    grid: FloatArray
    lower: FloatArray
    estimate: FloatArray
    upper: FloatArray
    known: NDArray[np.bool_]  # where the band says something
    colour: str
    style: Any = "-"
    marked: tuple[FloatArray, FloatArray] | None = None  # budgets that were asked for, and the estimate there


def evidence_plot(comparison: CurveComparison, *, ax: Axes | None = None) -> Axes:
    """Draw two tuning curves with their bands, and below them which is better on what evidence.

    Parameters
    ----------
    comparison : CurveComparison
        From `lmemtest.tuning.compare.compare_curves`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the budgets, logarithmic if they span more than a factor of 25; bands are pale where a limit is
        trivial. Curves and bands are drawn as the steps that they are, between the budgets too. The strip at the bottom
        has the colour of the better curve, darker for more evidence.

    Raises
    ------
    ArgumentError
        If `comparison` is not the result of `compare_curves`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import evidence_plot
    >>> from lmemtest.tuning.compare import compare_curves
    >>> from lmemtest.data.datasets import load_hpo_trials
    >>> loss = load_hpo_trials().pivot(index="trial", columns="benchmark", values="valid_loss")
    >>> found = compare_curves(loss["mlp-digits"][:64], loss["svm-digits"][:64], direction="minimize",
    ...                        names=("MLP", "SVM"), n_sim=0)
    >>> ax = evidence_plot(found)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['MLP', 'SVM']
    """
    _canvas.check_axes(ax)
    if not isinstance(comparison, CurveComparison):
        raise ArgumentError(
            f"comparison must be the result of compare_curves(), got {type(comparison).__name__}. "
            "A BestOf is drawn by winning_plot()."
        )
    lines = [
        _of_curve(curve, comparison.grid, colour, style)
        for curve, colour, style in zip(
            (comparison.a, comparison.b), (_style.ACCENT, _style.WARM), ("-", (0, (4, 1.5))), strict=True
        )
    ]
    words = f"{name_of(comparison.statistic)} of the best score".capitalize()
    note = comparison.sentences()[0]
    ax, size, slot = _begin(ax)
    _panel(ax, comparison.grid, lines, size, strip=True)
    _draw_strip(ax, comparison, size)
    _finish(ax, (_x_label(comparison.unit), words, note), lines, size, slot)
    return ax


def winning_plot(result: BestOf, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that the best of one search beats the best of another, with its band.

    Parameters
    ----------
    result : BestOf
        From `lmemtest.tuning.winning.best_of`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the budgets, the y axis the probability in percent with a line at 50 %.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `best_of`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.evidence_plot import winning_plot
    >>> from lmemtest.tuning.winning import best_of
    >>> ax = winning_plot(best_of([0.7, 0.8, 0.9], [0.5, 0.6, 0.75], direction="maximize", names=("new", "old")))
    >>> ax.get_ylabel()
    'P(best of new beats best of old), %'
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BestOf):
        raise ArgumentError(f"result must be the result of best_of(), got {type(result).__name__}.")
    shown = result.drawn()
    line = _Line(
        name=f"estimate with {100 * result.confidence:.4g} % band",
        grid=shown.grid,
        lower=100.0 * shown.lower,
        estimate=100.0 * shown.estimate,
        upper=100.0 * shown.upper,
        known=np.ones(len(shown.grid), dtype=bool),
        colour=_style.ACCENT,
        marked=(result.grid, 100.0 * result.estimate),
    )
    ax, size, slot = _begin(ax)
    _panel(ax, result.grid, [line], size, limits=(0.0, 100.0))
    ax.axhline(50.0, color=_style.INK, linewidth=0.8, linestyle="--", zorder=1, label="_reference")
    first, second = (_style.one_line(name) for name in result.names)
    words = f"P(best of {first} beats best of {second}), %"
    _finish(ax, (_x_label(result.unit), words, result.sentence()), [line], size, slot)
    return ax


def _of_curve(curve: ComparedCurve, asked: FloatArray, colour: str, style: Any) -> _Line:
    grid, shown = curve.drawn(float(asked[0]), float(asked[-1]))
    return _Line(
        name=curve.name,
        grid=grid,
        lower=shown.lower,
        estimate=shown.estimate,
        upper=shown.upper,
        known=~shown.trivial,
        colour=colour,
        style=style,
        marked=(asked, curve.estimate),
    )


def _x_label(unit: str) -> str:
    return "Trials" if unit == "trials" else "Cost"


# ---------------------------------------------------------------------------------------------------- frame


def _begin(ax: Axes | None) -> tuple[Axes, float, Bbox]:
    """Axes, font size, and the rectangle that the plot must keep to."""
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / _LINES)
    if size < _style.SMALLEST_FONT:
        raise _canvas.too_small(ax, "a plot of curves", _LINES * _style.SMALLEST_FONT + 2 * _canvas.PAD)
    return ax, size, ax.get_window_extent().frozen()


def _panel(
    ax: Axes,
    grid: FloatArray,
    lines: list[_Line],
    size: float,
    *,
    limits: tuple[float, float] | None = None,
    strip: bool = False,
) -> None:
    _canvas.frame(ax, size)
    ax.spines["left"].set_visible(True)
    if grid[-1] > _LOG_RATIO * grid[0]:
        ax.set_xscale("log")
        ax.minorticks_off()
    low, high = _limits(lines) if limits is None else limits
    ax.set_ylim(low - (_STRIP / (1 - _STRIP)) * (high - low) * strip, high)
    ax.set_xlim(*_x_limits(ax, grid))
    for line in lines:
        _draw_band(ax, line, low, high)
        look: dict[str, Any] = {"color": line.colour, "zorder": 3, "clip_on": False}
        ax.plot(
            line.grid,
            np.clip(line.estimate, low, high),
            linestyle=line.style,
            linewidth=0.16 * size,
            marker="none",
            label="_estimate",
            **look,
        )
        if line.marked is not None and len(line.marked[0]) <= _MARKED:
            at, values = line.marked[0], np.clip(line.marked[1], low, high)
            ax.plot(at, values, linestyle="none", marker="o", markersize=0.35 * size, label="_asked", **look)


def _draw_band(ax: Axes, line: _Line, low: float, high: float) -> None:
    """Full colour where the band says something, pale where a limit is trivial; neighbours overlap at one budget."""
    lower, upper = np.clip(line.lower, low, high), np.clip(line.upper, low, high)
    pale = ~line.known
    pale_with_ends = pale | np.roll(pale, 1) * (np.arange(len(pale)) > 0) | np.roll(pale, -1) * _not_last(pale)
    for where, opacity in ((line.known, _BAND), (pale_with_ends, _TRIVIAL_BAND)):
        if where.any():
            ax.fill_between(
                line.grid,
                lower,
                upper,
                where=where,
                color=line.colour,
                alpha=opacity,
                linewidth=0,
                label="_band",
                zorder=2,
            )


def _not_last(values: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.arange(len(values)) < len(values) - 1)


def _limits(lines: list[_Line]) -> tuple[float, float]:
    """The range of all estimates and of the limits that say something."""
    values = np.concatenate(
        [v for line in lines for v in (line.estimate, line.lower[line.known], line.upper[line.known])]
    )
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    spread = high - low if high - low > 1e-12 * max(abs(low), abs(high)) else max(abs(low), 1.0) * 0.1
    return low - _ROOM * spread, high + _ROOM * spread


def _x_limits(ax: Axes, grid: FloatArray) -> tuple[float, float]:
    first, last = float(grid[0]), float(grid[-1])
    if ax.get_xscale() == "log":
        return first / (last / first) ** 0.02, last * (last / first) ** 0.02
    pad = 0.03 * (last - first) if last > first else 0.5 * last
    return first - pad, last + pad


# ---------------------------------------------------------------------------------------------------- evidence


def _draw_strip(ax: Axes, comparison: CurveComparison, size: float) -> None:
    """One cell per budget at the foot of the axes, and the word where it fits."""
    names = (comparison.a.name, comparison.b.name)
    colours = dict(zip(names, (_style.ACCENT, _style.WARM), strict=True))
    left, right = _cells(ax, comparison.grid)
    transform = ax.get_xaxis_transform()
    ax.axhline(
        ax.get_ylim()[0] + _STRIP * (ax.get_ylim()[1] - ax.get_ylim()[0]),
        color=_style.FAINT,
        linewidth=0.6,
        zorder=1,
        label="_guide",
    )
    for run in comparison.segments:
        inside = (comparison.grid >= run.start) & (comparison.grid <= run.stop)
        begin, end = float(left[inside].min()), float(right[inside].max())
        ax.axvspan(
            begin,
            end,
            ymin=0.0,
            ymax=_STRIP,
            facecolor=colours[run.better],
            alpha=_SHADE[run.level],
            linewidth=0,
            label=f"_{run.level}",
            zorder=2.5,
        )
        _write_level(ax, run, begin, end, transform, size)


def _write_level(ax: Axes, run: Segment, begin: float, end: float, transform: Any, size: float) -> None:
    box = ax.transData.transform([(begin, 0.0), (end, 0.0)])
    room = (box[1, 0] - box[0, 0]) * 72 / ax.figure.figure.dpi
    small = 0.8 * size
    if _style.Ruler(ax, small).width(run.level) > 0.65 * room:  # the axes will shrink for their labels
        return
    middle = float(np.sqrt(begin * end)) if ax.get_xscale() == "log" else 0.5 * (begin + end)
    ax.text(
        middle,
        0.5 * _STRIP,
        run.level,
        transform=transform,
        ha="center",
        va="center_baseline",
        zorder=4,
        **_style.text_style(small, color="white" if run.level != "weak" else _style.INK),
    )


def _cells(ax: Axes, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the cells around the budgets: half way to their neighbours on the scale of the axis."""
    log = ax.get_xscale() == "log"
    x = np.log(grid) if log else grid
    step = np.diff(x)
    first, last = (step[0], step[-1]) if len(step) else (0.5, 0.5)
    edges = np.concatenate([[x[0] - 0.5 * first], x[:-1] + 0.5 * step, [x[-1] + 0.5 * last]])
    edges = np.clip(np.exp(edges) if log else edges, *ax.get_xlim())
    return edges[:-1], edges[1:]


# ---------------------------------------------------------------------------------------------------- labels


def _finish(ax: Axes, words: tuple[str, str, str], lines: list[_Line], size: float, slot: Bbox) -> None:
    """Axis labels, ticks and legend; ticks again after each step that moves the axes."""
    x_label, y_label, note = words
    whole = x_label == _x_label("trials")
    ruler = _style.Ruler(ax, 0.85 * size)
    room = slot.width * 72 / ax.figure.figure.dpi - 7 * size
    below = _style.wrap(_style.one_line(note), room, ruler)
    style = _style.text_style(0.95 * size, **_style.font_for([x_label, *below]))
    ax.set_xlabel("\n".join([x_label, *below]), **style, labelpad=0.4 * size)
    height = ax.get_window_extent().height * 72 / ax.figure.figure.dpi - (4.0 + 1.2 * len(below)) * size
    tall = _style.wrap(y_label, max(height, 8 * size), _style.Ruler(ax, size))
    ax.set_ylabel("\n".join(tall), **_style.text_style(size, **_style.font_for(tall)), labelpad=0.4 * size)
    _set_ticks(ax, size, whole=whole)
    _draw_legend(ax, lines, size)
    for _ in range(2):
        _fitting.fit_inside(ax, slot)
        _set_ticks(ax, size, whole=whole)
    _fitting.fit_inside(ax, slot)


def _draw_legend(ax: Axes, lines: list[_Line], size: float) -> None:
    names = [_style.one_line(line.name) for line in lines]
    font = _style.font_for(names)
    width = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    names = _style.shorten(names, max(0.7 * width / len(names) - 4 * size, 6 * size), _style.Ruler(ax, size, **font))
    legend = ax.legend(
        handles=[
            Line2D([], [], color=line.colour, linestyle=line.style, linewidth=0.2 * size, marker="none")
            for line in lines
        ],
        labels=[str(i) for i in range(len(names))],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=len(names),
        frameon=False,
        fontsize=size,
        borderpad=0.0,
        borderaxespad=0.5,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=1.5,
    )
    for entry, name in zip(legend.get_texts(), names, strict=True):
        _style.literal(entry).set(text=name, color=_style.INK, **font)


def _set_ticks(ax: Axes, size: float, *, whole: bool) -> None:
    box = ax.get_window_extent()
    dpi = ax.figure.figure.dpi
    ruler = _style.Ruler(ax, size)
    low, high = ax.get_ylim()
    foot = low + _STRIP * (high - low)  # no number beside the strip
    shown = _canvas.choose_ticks(foot if _has_strip(ax) else low, high, box.height * 72 / dpi, ruler, cover=False)
    ax.set_yticks(shown.values, shown.labels, **_style.text_style(size))
    for label in ax.get_yticklabels():
        _style.literal(label).set(va="center")
    limits = ax.get_xlim()
    if ax.get_xscale() != "log":
        _canvas.set_number_ticks(ax, *limits, size, whole=whole)
        return
    values = round_numbers(*limits)
    room = box.width * 72 / dpi
    place = np.log(values / limits[0]) / np.log(limits[1] / limits[0]) * room
    labels = [f"{value:g}" for value in values]
    kept: list[int] = []
    for i in range(len(values)):
        apart = place[i] - place[kept[-1]] if kept else np.inf
        if apart > size + 0.5 * (ruler.width(labels[i]) + (ruler.width(labels[kept[-1]]) if kept else 0.0)):
            kept.append(i)
    ax.set_xticks(values[kept], [labels[i] for i in kept], **_style.text_style(size))
    ax.set_xlim(limits)


def _has_strip(ax: Axes) -> bool:
    return any(line.get_label() == "_guide" for line in ax.lines)


def round_numbers(low: float, high: float) -> FloatArray:
    """1, 2, 5, 10, ... between two limits."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    values = (decades[:, None] * np.array([1.0, 2.0, 5.0])).ravel()
    return values[(values >= low) & (values <= high)]
