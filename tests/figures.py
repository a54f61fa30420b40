"""What a figure shows, for tests: the lines of a label, the labels of rows, the words around panels."""

from __future__ import annotations

from typing import Any

# Makers of means, pairs and decisions draw these (`make.cases` of tests/plots/conftest.py).
CASES = ("two", "three", "five", "twenty", "long names", "all equal", "outlier", "large offset", "missing", "tiny",
         "numbers")  # fmt: skip


def lines(ax: Any, label: str) -> list[Any]:
    """The lines with a label, in axes or, where these hold panels, in the first panel."""
    box = ax.child_axes[0] if ax.child_axes and not ax.lines else ax
    return [line for line in box.lines if line.get_label() == label]


def row_labels(ax: Any) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


def foot(ax: Any) -> str:
    """What is written around the panels, in one line: the foot, and the names of the axes."""
    return " ".join(text.get_text().replace("\u00a0", " ") for text in ax.texts)


def _captions(ax: Any) -> list[Any]:
    return [text for text in ax.texts if getattr(text, "xy", None) == (0.0, 0.0)]


def asides(ax: Any) -> list[Any]:
    """What is written in the axes, right of the rows, with the title last; without the caption."""
    return [text for text in ax.texts if text not in _captions(ax)]


def beside(ax: Any) -> list[str]:
    """The texts of `asides`."""
    return [text.get_text() for text in asides(ax)]


def words_below(ax: Any) -> str:
    """The name of the horizontal axis and the caption of a plot, in one line."""
    words = " ".join([ax.get_xlabel(), *(text.get_text() for text in _captions(ax))])
    return words.replace("\u00a0", " ").replace("\n", " ")
