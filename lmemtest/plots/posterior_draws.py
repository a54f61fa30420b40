"""Draws from the posterior of one pair: a histogram, or a triangle where equivalence is among the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from lmemtest.core.rounding import written
from lmemtest.plots import _canvas, _layout, _style

SIDE = 5.0  # inches of the triangle
HEIGHT = 3.2  # inches of the histogram
EQUIVALENT = 0.1  # a draw with more makes it a triangle, as in baycomp
BINS = 50
CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(0.75)], [1.0, 0.0]])  # left larger, equivalent, right larger


def draw_posterior(sample: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    """Draw ``(n, 3)`` draws of the probabilities of left larger, equivalent, right larger, and their `chances`."""
    if sample[:, 1].max() < EQUIVALENT:
        return _histogram(sample[:, 2], chances, names)
    return _triangle(sample, chances, names)


def _said(name: str, chance: float) -> str:
    return f"{_style.one_line(name)}: {written(float(chance), '.3f')}"


def _histogram(right: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    font = _style.base_font()
    ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, HEIGHT)
    _canvas.leave_margins(ax, 2 * font, 4 * font, 2 * font, 2.5 * font)
    _layout.open_panel(ax, font, edges=("bottom",))
    ax.hist(right, BINS, range=(0.0, 1.0), color=_style.ACCENT)
    ax.axvline(0.5, color=_style.INK, linewidth=0.8)
    ax.set_xlim(0.0, 1.0)
    ax.set_yticks([])
    ax.set_xlabel(f"Probability that {_style.one_line(names[1])} is larger, by draw", **_style.text_style(font))
    for x, side, name, chance in ((0.0, "left", names[0], chances[0]), (1.0, "right", names[1], chances[2])):
        place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom", "ha": side}
        ax.annotate(_said(f"P({name} larger)", chance), (x, 1.0), (0.0, 0.6 * font), **place, **_style.text_style(font))
    return ax


def _triangle(sample: NDArray[np.float64], chances: Sequence[float], names: Sequence[str]) -> Axes:
    font = _style.base_font()
    ax = _canvas.new_axes(SIDE, SIDE)
    _canvas.bare(ax)
    ax.set_aspect("equal")
    ax.set_xlim(-0.25, 1.25)
    ax.set_ylim(-0.3, 1.2)
    outline = CORNERS[[0, 1, 2, 0]]
    places = sample @ CORNERS
    ax.hexbin(*places.T, gridsize=50, mincnt=1, cmap=_style.SEQUENTIAL, extent=(0.0, 1.0, 0.0, 1.0), linewidths=0.1)
    ax.plot(*outline.T, color=_style.INK, linewidth=0.9)
    middle = CORNERS.mean(axis=0)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        edge = (CORNERS[one] + CORNERS[other]) / 2.0
        ax.plot(*np.stack([middle, edge]).T, color=_style.MUTED, linewidth=0.7)
    texts = (f"P({names[0]} larger)", "P(equivalent)", f"P({names[1]} larger)")
    for (x, y), text, chance in zip(CORNERS, texts, chances, strict=True):
        ax.text(x, y + (0.03 if y else -0.04), _said(text, chance), ha="center", va="bottom" if y else "top",
                **_style.text_style(font))  # fmt: skip
    return ax
