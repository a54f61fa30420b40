"""The figure behind the axes: where new ones come from, and how a plot keeps inside its rectangle.

A new figure belongs to pyplot only where that is of use: when pyplot has been imported already (so
``plt.show()`` and ``plt.savefig()`` find it) or in an interactive IPython session (notebooks display the
figures that pyplot knows; a bare `Figure` shows only its repr there, because its ``_repr_html_`` serves
WebAgg alone). Elsewhere, in scripts and on the command line, a bare figure costs no import of pyplot and is
freed with its last reference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.ticker import MaxNLocator

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

FIGURE_WIDTH = 7.0  # inches: the text width of a page
PAGE_HEIGHT = 9.5  # inches: a new figure is higher only where its text would be smaller than ...
READABLE = 6.0  # ... these points
PAD = 4.0  # points between the outermost ink and the rectangle
MOST_TICKS = 9

_detached: ContextVar[bool] = ContextVar("lmemtest_detached_figures", default=False)


@contextmanager
def detached_figures() -> Iterator[None]:
    """Make the figures drawn inside the block independent of pyplot.

    For programs that save figures rather than show them: pyplot keeps every figure it knows alive, and a
    notebook displays all of them.

    Examples
    --------
    >>> from lmemtest.plots import detached_figures
    >>> with detached_figures():
    ...     pass  # ax = cd_diagram(separation); ax.figure.savefig("ranking.svg")
    """
    token = _detached.set(True)
    try:
        yield
    finally:
        _detached.reset(token)


def new_axes(width: float, height: float) -> Axes:
    """Return axes that fill a new white figure of `width` x `height` inches."""
    figure = _new_figure(width, height)
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _new_figure(width: float, height: float) -> Figure:
    if not _detached.get() and _pyplot_in_use():
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), facecolor="white")
        figure.set_layout_engine("none")  # the argument layout="none" is not in matplotlib's stubs
        return figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure)
    return figure


def _pyplot_in_use() -> bool:
    if "matplotlib.pyplot" in sys.modules:
        return True
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def check_axes(ax: object) -> None:
    """Raise unless `ax` is None or axes that a plot can use."""
    if ax is None or (isinstance(ax, Axes) and ax.name == "rectilinear"):
        return
    kind = type(ax).__name__
    message = f"ax must be one matplotlib Axes with straight axes or None, got {kind}. Pass fig.subplots() or None."
    raise ArgumentError(message)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the rectangle of `ax`, after the figure's layout engine, if any, has run."""
    figure = ax.figure.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    box = ax.get_window_extent()
    return box.width * 72 / figure.dpi, box.height * 72 / figure.dpi


def has_layout_engine(figure: Figure) -> bool:
    """Tell whether drawing moves the axes; a placeholder is what remains of an engine that was switched off."""
    engine = figure.get_layout_engine()
    return engine is not None and not isinstance(engine, PlaceHolderLayoutEngine)


class Ticks(NamedTuple):
    """Tick positions with their labels; the labels do not touch."""

    values: tuple[float, ...]
    labels: tuple[str, ...]


def choose_ticks(
    low: float, high: float, room: float, ruler: _style.Ruler, *, cover: bool, whole: bool = False
) -> Ticks:
    """Return round ticks for an axis of `room` points from `low` to `high`.

    Parameters
    ----------
    low, high : float
        The range in data units, ``low < high``.
    room : float
        Length of the axis in points.
    ruler : Ruler
        Measures the labels.
    cover : bool
        Whether the first and the last tick must enclose the range, or lie inside it.
    whole : bool
        Whether the axis counts something, so that only whole numbers are ticks.
    """
    for bins in range(MOST_TICKS, 0, -1):
        locator = MaxNLocator(nbins=bins, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2 if bins > 1 else 1, integer=whole)
        values = np.asarray(locator.tick_values(low, high), dtype=float)
        if whole:  # the locator gives up whole numbers where the range holds too few of them
            values = np.unique(values.round())
        values = _enclosing(values, low, high) if cover else _inside(values, low, high)
        if values.size == 0:
            break
        ticks = Ticks(tuple(values.tolist()), tuple(_style.tick_labels(values.tolist())))
        if _fits(ticks, (low, high), room, ruler):
            return ticks
    middle = (float(low), float(high)) if cover else (_middle(low, high, whole=whole),)
    return Ticks(middle, tuple(_style.tick_labels(middle)))


def _middle(low: float, high: float, *, whole: bool) -> float:
    middle = float(low + high) / 2
    nearest = float(np.round(middle))
    return nearest if whole and low <= nearest <= high else middle


def _enclosing(values: np.ndarray, low: float, high: float) -> np.ndarray:
    slack = 1e-9 * (high - low)
    first = np.flatnonzero(values <= low + slack)
    last = np.flatnonzero(values >= high - slack)
    start = first[-1] if first.size else 0
    stop = last[0] if last.size else values.size - 1
    return values[start : stop + 1]


def _inside(values: np.ndarray, low: float, high: float) -> np.ndarray:
    slack = 1e-9 * (high - low)
    return values[(values >= low - slack) & (values <= high + slack)]


def _fits(ticks: Ticks, span: tuple[float, float], room: float, ruler: _style.Ruler) -> bool:
    low, high = min(span[0], ticks.values[0]), max(span[1], ticks.values[-1])
    places = [(value - low) / (high - low) * room for value in ticks.values]
    widths = [ruler.width(label) for label in ticks.labels]
    ends = [place + width / 2 for place, width in zip(places, widths, strict=True)]
    starts = [place - width / 2 for place, width in zip(places, widths, strict=True)]
    return all(start - end > ruler.size / 2 for end, start in zip(ends[:-1], starts[1:], strict=True))


def all_whole(values: ArrayLike) -> bool:
    """Tell whether `values` (budgets, say) are counts, so that ticks between whole numbers would name nothing.

    >>> all_whole([1, 3, 9.0]), all_whole([0.5, 1.0])
    (True, False)
    """
    numbers = np.asarray(values, dtype=float)
    return bool((numbers == np.round(numbers)).all())


def set_number_ticks(ax: Axes, low: float, high: float, size: float, *, whole: bool = False) -> None:
    """Put round, non-touching number ticks on the x axis of `ax`, whose limits become `low` and `high`.

    With `whole`, only whole numbers: half a benchmark or half a seed does not exist.
    """
    ax.set_xlim(low, high)
    room = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    ticks = choose_ticks(low, high, room, _style.Ruler(ax, size), cover=False, whole=whole)
    ax.set_xticks(ticks.values, ticks.labels, **_style.text_style(size))


def place_axes(ax: Axes, left: float, bottom: float, right: float, top: float) -> None:
    to_figure = ax.figure.transSubfigure.inverted()
    (x0, y0), (x1, y1) = to_figure.transform([(left, bottom), (right, top)])
    ax.set_position((x0, y0, x1 - x0, y1 - y0))


def too_small(ax: Axes, what: str, height: float | None = None) -> ArgumentError:
    """Return the error for axes that cannot hold `what` (which needs `height` points)."""
    width_now, height_now = _inches(ax)
    need = f" at least {written(height / 72, '.1f')} inches high" if height is not None else " larger axes"
    message = (
        f"ax is too small: {what} needs{need}, it is {written(width_now, '.1f')} x {written(height_now, '.1f')} "
        f"inches. "
        "Pass larger axes, or ax=None for a figure that grows with its content."
    )
    return ArgumentError(message)


def _inches(ax: Axes) -> tuple[float, float]:
    box = ax.get_window_extent()
    return box.width / ax.figure.figure.dpi, box.height / ax.figure.figure.dpi


def bare(ax: Axes) -> None:
    """Remove frame, ticks and grid of `ax`, whatever the user's style sheet says."""
    ax.grid(False)
    ax.set_axis_off()


def frame(ax: Axes, size: float) -> None:
    """Keep the lower edge only: rows carry their labels without a box."""
    ax.set_facecolor("none")
    ax.grid(False)
    ax.margins(0)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set(color=_style.MUTED, linewidth=0.8)
    ax.tick_params(
        axis="x",
        color=_style.MUTED,
        labelcolor=_style.INK,
        labelsize=size,
        width=0.8,
        length=3.5,
        top=False,
        labeltop=False,
        bottom=True,
        labelbottom=True,
        direction="out",
    )
    ax.tick_params(axis="y", left=False, right=False, labelleft=True, labelright=False, length=0)
    ax.tick_params(which="minor", bottom=False, top=False, left=False, right=False)
