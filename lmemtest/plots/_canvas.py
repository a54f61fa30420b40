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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice, check_number
from lmemtest.errors import ArgumentError
from lmemtest.plots import _names

Figures = TypeVar("Figures", bound=Callable[..., Axes])

WIDTHS = {"column": 3.3, "page": 7.0}  # inches of the text of a journal
FIGURE_WIDTH = WIDTHS["page"]
NARROWEST, BROADEST = 2.0, 40.0  # inches that may be asked for
PAGE_HEIGHT = 9.5  # inches: a new figure is higher only where its text would be smaller than ...
READABLE = 7.1  # ... these points, of which the smallest text, the foot, has 0.85: no text is below 6 points
PAD = 4.0  # points between the outermost ink and the rectangle
SMALLEST_FONT = 4.0  # points; below this print cannot be read, so an axes that needs it is refused

_detached: ContextVar[bool] = ContextVar("lmemtest_detached_figures", default=False)
_width: ContextVar[float | None] = ContextVar("lmemtest_figure_width", default=None)
_new_figure: ContextVar[bool] = ContextVar("lmemtest_new_figure", default=False)
_made: ContextVar[list[Any] | None] = ContextVar("lmemtest_figures_made", default=None)
_stretch: ContextVar[float] = ContextVar("lmemtest_figure_stretch", default=1.0)
_refused: ContextVar[bool] = ContextVar("lmemtest_figure_refused", default=False)
STRETCHES = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2)  # of the height of a new figure, until it holds its content


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
        with rc_context({"pdf.fonttype": 42}):  # letters of PDF as TrueType: journals refuse those of Type 3
            yield
    finally:
        _detached.reset(token)


def gallery() -> Answer:
    """List all figures: what each draws, and of which result.

    Returns
    -------
    Answer
        ``to_frame()`` has the columns figure, draws, of. `examples/gallery.py` draws all of them from the bundled runs.

    Examples
    --------
    >>> import lmemtest as lt
    >>> figures = lt.plots.gallery().to_frame().set_index("figure")
    >>> figures.loc["emmeans_plot", "of"]
    'emmeans()'
    """
    import pandas as pd

    from lmemtest import plots

    every = {name: getattr(plots, name) for name in sorted(plots.__all__)}
    rows = [
        (name, str(figure.__doc__).strip().partition("\n")[0], figure.source)
        for name, figure in every.items()
        if hasattr(figure, "source")
    ]
    return Answer(
        question="gallery",
        title="Figures of lmemtest.plots",
        tables={"figures": pd.DataFrame(rows, columns=["figure", "draws", "of"])},
        facts=(
            "Most are the plot() of their result. All take width='column' or 'page' and labels={name: text}, and draw "
            "in axes of yours, ax=.",
        ),
    )


def draws(*kinds: type | str, source: str, hint: str = "") -> Callable[[Figures], Callable[..., Axes]]:
    """Make a function a figure: the axes, the `width` and the `labels` of all figures are seen to here.

    With `kinds`, what is not the result of one of them, from `source`, is refused. A kind is a class, or the `question`
    of an `Answer`.
    """
    classes = tuple(kind for kind in kinds if isinstance(kind, type))

    def decorate(function: Figures) -> Callable[..., Axes]:
        signature = inspect.signature(function)
        name = next(iter(signature.parameters))

        @functools.wraps(function)
        def checked(
            result: object,
            /,
            *rest: Any,
            ax: Axes | None = None,
            width: str | float | None = None,
            labels: Mapping[Any, str] | None = None,
            **options: Any,
        ) -> Axes:
            check_axes(ax)
            inches = checked_width(width, ax)
            inches = _width.get() if inches is None else inches  # a figure that draws another one hands it on
            if kinds and not isinstance(result, classes) and getattr(result, "question", None) not in kinds:
                got = getattr(result, "question", type(result).__name__)
                raise ArgumentError(f"{name} must be the result of {source}, got {got}.{' ' * bool(hint)}{hint}")
            levels = getattr(result, "levels", getattr(result, "algorithms", ()))
            short = _names.checked_labels(labels, levels)
            tokens = _width.set(inches), _new_figure.set(_new_figure.get() or ax is None)
            try:
                with _names.relabelled(short):
                    if ax is not None or _made.get() is not None:
                        return function(result, *rest, ax=ax, **options)
                    return _stretched(functools.partial(function, result, *rest, ax=None, **options))
            finally:
                _width.reset(tokens[0])
                _new_figure.reset(tokens[1])

        checked.__doc__ = documented(function.__doc__, name)
        checked.source = source  # type: ignore[attr-defined]
        more = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for option, kind in (("width", "str | float | None"), ("labels", "Mapping[Any, str] | None"))
        ]
        parts = list(signature.parameters.values())
        at = len(parts) - (parts[-1].kind is inspect.Parameter.VAR_KEYWORD)
        checked.__signature__ = signature.replace(parameters=[*parts[:at], *more, *parts[at:]])  # type: ignore[attr-defined]
        return checked

    return decorate


def _stretched(draw: Callable[[], Axes]) -> Axes:
    """Draw in a new figure, which gets higher until it holds its content."""
    for stretch in STRETCHES:
        made: list[Any] = []
        tokens = _stretch.set(stretch), _refused.set(False), _made.set(made)
        try:
            return draw()
        except ArgumentError:
            if not _refused.get() or stretch == STRETCHES[-1]:
                raise
            if "matplotlib.pyplot" in sys.modules:
                for figure in made:
                    sys.modules["matplotlib.pyplot"].close(figure)
        finally:
            _stretch.reset(tokens[0])
            _refused.reset(tokens[1])
            _made.reset(tokens[2])
    raise AssertionError  # the last stretch returns or raises


_SHARED = """
ax : Axes, optional
    Where to draw, labels included; by default a new figure, as large as its content.
width : {"column", "page"} or float, optional
    Of a new figure: 3.3 or 7 inches, or so many. No text is below 6 points; names that are too long are wrapped, then
    shortened with a number that leads to the whole name below the figure.
labels : mapping of name to str, optional
    What is written in place of names.
"""


def documented(text: str | None, name: str) -> str | None:
    """A docstring with what is the same in all figures: three parameters, and what is refused."""
    if text is None:
        return None
    text = inspect.cleandoc(text)
    before = "\n**options\n" if "\n**options\n" in text else "\n\nReturns\n"
    text = text.replace(before, f"{_SHARED.rstrip()}{before}", 1)
    if "\nRaises\n" not in text:
        refused = (
            f"Raises\n------\nArgumentError\n    If `{name}` or an option is something else, or `ax` is too small.\n"
        )
        heads = [at for head in ("Notes", "References", "Examples") if (at := text.find(f"\n{head}\n---")) >= 0]
        at = min(heads, default=len(text))
        text = f"{text[:at].rstrip()}\n\n{refused}{text[at:]}"
    return text


def checked_width(width: object, ax: Axes | None) -> float | None:
    """Inches of a new figure, or None for as many as its content needs."""
    if width is None:
        return None
    if ax is not None:
        raise ArgumentError("width is of a new figure, and ax is given. Leave one of them out.")
    if isinstance(width, str):
        return WIDTHS[check_choice(width, "width", tuple(WIDTHS))]
    named = " or ".join(f'"{name}"' for name in WIDTHS)
    return check_number(width, "width", low=NARROWEST, high=BROADEST, meaning=f"the inches of a new figure, or {named}")


def figure_width(content: float = FIGURE_WIDTH) -> float:
    """Inches of a new figure: as asked for, else those of its `content`."""
    asked_for = _width.get()
    return content if asked_for is None else asked_for


def least_font() -> float:
    """Points below which nothing is drawn: in axes of the user text may be smaller than in a figure of ours."""
    return READABLE if _new_figure.get() else SMALLEST_FONT


def check_axes(ax: object) -> None:
    """Raise unless `ax` is None or axes that a plot can use."""
    if ax is not None and not (isinstance(ax, Axes) and ax.name == "rectilinear"):
        raise ArgumentError(
            f"ax must be one matplotlib Axes with straight axes or None, got {type(ax).__name__}. "
            "Pass fig.subplots() or None."
        )


def new_axes(width: float, height: float) -> Axes:
    """Return axes that fill a new white figure of `width` x `height` inches, or higher where that was not enough."""
    height *= _stretch.get()
    if not _detached.get() and _pyplot_in_use():
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width, height), facecolor="white")
        made = _made.get()
        if made is not None:
            made.append(figure)
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), facecolor="white")
        FigureCanvasAgg(figure)
    figure.set_layout_engine("none")  # the argument layout="none" is not in matplotlib's stubs
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def scratch_axes(width: float = FIGURE_WIDTH) -> Axes:
    """Axes to measure texts with, in a figure that nobody sees."""
    return _scratch(width, _stretch.get(), rcParams["figure.dpi"])


@functools.lru_cache(maxsize=4)  # new axes take longer than the texts that are measured with them
def _scratch(width: float, stretch: float, dpi: float) -> Axes:  # noqa: ARG001 - the key of the cache
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


def is_laid_out(ax: Axes) -> bool:
    """Tell whether a layout engine of the figure has the say where `ax` is."""
    engine = ax.figure.figure.get_layout_engine()
    switched_off = engine is None or isinstance(engine, PlaceHolderLayoutEngine)
    return not switched_off and ax.get_subplotspec() is not None


def leave_margins(ax: Axes, left: float, bottom: float, right: float, top: float) -> None:
    """Shrink `ax` by margins in points; a layout engine makes room for its axes by itself, and gives up moved ones."""
    if is_laid_out(ax):
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
    _refused.set(True)
    if _new_figure.get():
        lacking = f"it needs {inches_up(width)}" if width is not None and width > now[0] else "its text has no room"
        return ArgumentError(
            f"width is too small for {what} with text of 6 points: {lacking}, and has {width_now} inches. "
            "Pass a larger width, shorter names by labels, or width=None for a figure that grows with its content."
        )
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
