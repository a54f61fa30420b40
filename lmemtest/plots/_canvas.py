"""The figure behind the axes: where new ones come from, and how a plot keeps inside its rectangle.

A new figure belongs to pyplot only where that is of use: when pyplot has been imported already (so
``plt.show()`` and ``plt.savefig()`` find it) or in an interactive IPython session (notebooks display the
figures that pyplot knows; a bare `Figure` shows only its repr there, because its ``_repr_html_`` serves
WebAgg alone). Elsewhere, in scripts and on the command line, a bare figure costs no import of pyplot and is
freed with its last reference.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from lmemtest.core.rounding import written
from lmemtest.errors import ArgumentError

Figures = TypeVar("Figures", bound=Callable[..., Axes])

FIGURE_WIDTH = 7.0  # inches: the text width of a page
PAGE_HEIGHT = 9.5  # inches: a new figure is higher only where its text would be smaller than ...
READABLE = 6.0  # ... these points
PAD = 4.0  # points between the outermost ink and the rectangle

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
    ...     pass  # ax = cd_diagram(decisions); ax.figure.savefig("ranking.svg")
    """
    token = _detached.set(True)
    try:
        yield
    finally:
        _detached.reset(token)


def draws(*kinds: type | str, source: str, hint: str = "") -> Callable[[Figures], Figures]:
    """Refuse what a function that draws results of `kinds`, from `source`, cannot draw, and axes it cannot draw in.

    A kind is a class, or the `question` of an `Answer`.
    """
    classes = tuple(kind for kind in kinds if isinstance(kind, type))

    def decorate(function: Figures) -> Figures:
        name = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def checked(result: object, /, *rest: Any, ax: Axes | None = None, **options: Any) -> Axes:
            check_axes(ax)
            if not isinstance(result, classes) and getattr(result, "question", None) not in kinds:
                got = getattr(result, "question", type(result).__name__)
                raise ArgumentError(f"{name} must be the result of {source}, got {got}.{' ' * bool(hint)}{hint}")
            return function(result, *rest, ax=ax, **options)

        checked.__doc__ = documented(function.__doc__, name)
        return checked  # type: ignore[return-value]

    return decorate


def documented(text: str | None, name: str) -> str | None:
    """A docstring with what is the same in all figures: the parameter `ax`, and what is refused."""
    if text is None:
        return None
    text = inspect.cleandoc(text)
    where = "ax : Axes, optional\n    Where to draw, labels included; by default a new figure, as large as its content."
    text = text.replace("\n\nReturns\n", f"\n{where}\n\nReturns\n", 1)
    if "\nRaises\n" not in text:
        refused = (
            f"Raises\n------\nArgumentError\n    If `{name}` or an option is something else, or `ax` is too small.\n"
        )
        heads = [at for head in ("Notes", "References", "Examples") if (at := text.find(f"\n{head}\n---")) >= 0]
        at = min(heads, default=len(text))
        text = f"{text[:at].rstrip()}\n\n{refused}{text[at:]}"
    return text


def check_axes(ax: object) -> None:
    """Raise unless `ax` is None or axes that a plot can use."""
    if ax is not None and not (isinstance(ax, Axes) and ax.name == "rectilinear"):
        raise ArgumentError(
            f"ax must be one matplotlib Axes with straight axes or None, got {type(ax).__name__}. "
            "Pass fig.subplots() or None."
        )


def new_axes(width: float, height: float) -> Axes:
    """Return axes that fill a new white figure of `width` x `height` inches."""
    if not _detached.get() and _pyplot_in_use():
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), facecolor="white")
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(figure)
    figure.set_layout_engine("none")  # the argument layout="none" is not in matplotlib's stubs
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def scratch_axes(width: float = FIGURE_WIDTH) -> Axes:
    """Axes to measure texts with, in a figure that nobody sees."""
    with detached_figures():
        return new_axes(width, FIGURE_WIDTH)


def _pyplot_in_use() -> bool:
    if "matplotlib.pyplot" in sys.modules:
        return True
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the rectangle of `ax`, after the figure's layout engine, if any, has run."""
    figure = ax.figure.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    box = ax.get_window_extent()
    return box.width * 72 / figure.dpi, box.height * 72 / figure.dpi


def leave_margins(ax: Axes, left: float, bottom: float, right: float, top: float) -> None:
    """Shrink `ax` by margins in points; a layout engine makes room for its axes by itself, and gives up moved ones."""
    engine = ax.figure.figure.get_layout_engine()
    switched_off = engine is None or isinstance(engine, PlaceHolderLayoutEngine)
    if not switched_off and ax.get_subplotspec() is not None:
        return
    box, point = ax.get_window_extent(), ax.figure.figure.dpi / 72
    corners = [(box.x0 + left * point, box.y0 + bottom * point), (box.x1 - right * point, box.y1 - top * point)]
    (x0, y0), (x1, y1) = ax.figure.transSubfigure.inverted().transform(corners)
    ax.set_position((x0, y0, x1 - x0, y1 - y0))


def too_small(ax: Axes, what: str, height: float | None = None, width: float | None = None) -> ArgumentError:
    """Return the error for axes that cannot hold `what`, which needs `height` or `width` points where it has less."""
    now = size_in_points(ax)
    sides = [(width, now[0], "wide"), (height, now[1], "high")]
    needs = [f"{inches_up(need)} inches {side}" for need, has, side in sides if need is not None and need > has]
    need = f"at least {' and '.join(needs)}" if needs else "larger axes" if height is None else "wider axes"
    width_now, height_now = (written(points / 72, ".1f") for points in now)
    return ArgumentError(
        f"ax is too small: {what} needs {need}, it is {width_now} x {height_now} inches. "
        "Pass larger axes, or ax=None for a figure that grows with its content."
    )


def inches_up(points: float) -> str:
    """Points in tenths of inches, rounded up: so much is enough.

    >>> inches_up(72.0), inches_up(72.5)
    ('1.0', '1.1')
    """
    return f"{math.ceil(points / 7.2 - 1e-9) / 10:.1f}"


def bare(ax: Axes) -> None:
    """Remove frame, ticks and grid of `ax`, whatever the user's style sheet says."""
    ax.grid(False)
    ax.set_axis_off()
