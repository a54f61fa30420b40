"""The critical-difference diagram as a tikzpicture, in the fonts of the paper that it stands in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.tex import tex_text
from lmemtest.core.validate import check_number
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _style
from lmemtest.plots._cd_draw import EMPHASIS, marks
from lmemtest.plots._cd_plan import board_of, plan_of
from lmemtest.plots._given import as_decisions, checked_limits
from lmemtest.plots.cd_diagrams import checked_title

_UNITS = {"cm": 72 / 2.54, "mm": 72 / 25.4, "in": 72.0, "pt": 72 / 72.27, "bp": 1.0}  # in points of figures, TeX's bp
_COLOURS = {
    _style.INK: "cdink",
    _style.MUTED: "cdmuted",
    _style.NEUTRAL: "cdneutral",
    _style.ACCENT: "cdaccent",
    _style.WARM: "cdwarm",
    EMPHASIS: "cdemphasis",
}
_SIDES = {"left": " west", "right": " east", "center": ""}


def cd_diagram_tikz(
    result: Decisions | Ranking | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    width: str = "12cm",
    font: float = 9.0,
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
    limits: tuple[float, float] | None = None,
    title: str = "",
    **options: Any,
) -> str:
    r"""Write the diagram of `cd_diagram` as a tikzpicture.

    Parameters
    ----------
    result, decisions, values, whiskers, highlight, left_only, limits, title, **options
        As in `cd_diagram`.
    width : str
        A number with a unit of TeX: cm, mm, in, pt or bp.
    font : float
        Size of the names in points.

    Returns
    -------
    str
        From ``\begin{tikzpicture}`` to ``\end{tikzpicture}``; the document needs ``\usepackage{tikz}``. All names are
        escaped. Letters that pdfLaTeX does not know, such as Chinese, need LuaLaTeX or XeLaTeX and a font that has
        them.

    Raises
    ------
    ArgumentError
        If an argument is something else, or the names leave no room for the axis.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> names = ["A_1", "B & C"]
    >>> p = pd.DataFrame([[1, 0.04], [0.04, 1]], names, names)
    >>> text = lt.plots.cd_diagram_tikz({"A_1": 0.91, "B & C": 0.89}, p, direction="maximize")
    >>> r"A\_1" in text, r"B \& C" in text
    (True, True)
    """
    diagram = as_decisions(result, decisions, options)
    board = board_of(diagram, values=values, whiskers=whiskers, highlight=highlight, left_only=left_only)
    font = check_number(font, "font", low=3, high=30, meaning="a size in points")
    limits, title, points = checked_limits(limits), checked_title(title), _points(width)
    plan = plan_of(_canvas.scratch_axes(points / 72), board, points, font, limits=limits, title=title)
    kinds: dict[str, Callable[..., Iterator[tuple[int, str]]]] = {"line": _line, "dots": _dots, "text": _text}
    commands = [command for kind, x, y, style in marks(plan) for command in kinds[kind](x, y, **style)]
    colours = [rf"\definecolor{{{name}}}{{HTML}}{{{code[1:].upper()}}}" for code, name in _COLOURS.items()]
    body = [command for _, command in sorted(commands, key=lambda one: one[0])]  # the lower things first
    start = r"\begin{tikzpicture}[x=1bp, y=1bp, every node/.style={inner sep=0bp, outer sep=0bp}]"
    return "\n".join([start, *colours, *body, r"\end{tikzpicture}"]) + "\n"


def _points(width: Any) -> float:
    """A length of TeX in points of figures."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]{2})", width.strip()) if isinstance(width, str) else None
    if match is None or match[2] not in _UNITS or not 0.0 < float(match[1]) * _UNITS[match[2]] < 7200.0:
        raise ArgumentError(f"width must be a number with one of the units {', '.join(_UNITS)}, got {width!r}.")
    return float(match[1]) * _UNITS[match[2]]


def _line(
    places: Sequence[float],
    heights: Sequence[float],
    *,
    label: str,  # noqa: ARG001 - of figures
    width: float,
    colour: str = _style.INK,
    dash: tuple[float, float] | None = None,
    above: int = 2,
    round_joins: bool = False,
    part: str = "",  # noqa: ARG001 - of figures
) -> Iterator[tuple[int, str]]:
    style = [f"color={_COLOURS[colour]}", f"line width={width:.2f}bp"]
    style += [f"dash pattern=on {dash[0] * width:.2f}bp off {dash[1] * width:.2f}bp"] if dash else []
    style += ["line join=round"] if round_joins else []
    yield above, f"\\draw[{', '.join(style)}] {' -- '.join(map(_at, places, heights))};"


def _dots(
    places: Sequence[float],
    heights: Sequence[float],
    *,
    label: str,  # noqa: ARG001 - of figures
    size: float,
    colour: str = _style.INK,
    shape: str = "o",
    rim: float = 0.0,
    face: str | None = None,
    above: int = 6,
    exact: Sequence[float] | None = None,  # noqa: ARG001 - of figures
) -> Iterator[tuple[int, str]]:
    fill = _COLOURS[colour] if face is None else face
    style = f"color={_COLOURS[colour]}, fill={fill}, line width={rim:.2f}bp"
    command = "filldraw" if rim else "fill"
    half = size / math.sqrt(2.0)  # of a diamond's diagonal: a square of this size on its corner
    for x, y in zip(places, heights, strict=True):
        corners = ((x - half, y), (x, y + half), (x + half, y), (x, y - half))
        diamond = " -- ".join(_at(*corner) for corner in corners) + " -- cycle"
        circle = f"{_at(x, y)} circle[radius={size / 2:.2f}bp]"
        yield above, f"\\{command}[{style}] {circle if shape == 'o' else diamond};"


def _text(
    places: Sequence[float],
    heights: Sequence[float],
    *,
    text: str,
    size: float,
    ha: str,
    va: str,
    colour: str = _style.INK,
    bold: bool = False,
    part: str = "",  # noqa: ARG001 - of figures
) -> Iterator[tuple[int, str]]:
    # by the base line or the middle of small letters, so that neighbours are on one line whatever their letters
    anchor = ("mid" if va == "center" else "base") + _SIDES[ha]
    height = heights[0] - {"top": 0.8 * size, "center": 0.0, "bottom": -0.1 * size}[va]
    series = r"\bfseries" if bold else ""
    font = rf"\fontsize{{{size:.2f}bp}}{{{1.2 * size:.2f}bp}}\selectfont{series}"
    words = tex_text(text)
    style = f"anchor={anchor}, text={_COLOURS[colour]}, font={font}"
    yield 7, f"\\node[{style}] at {_at(places[0], height)} {{{words}}};"


def _at(x: float, y: float) -> str:
    return f"({x:.2f},{y:.2f})"
