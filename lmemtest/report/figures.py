"""Axes -> images that stand in a document by themselves."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lmemtest.report.document import FigureBlock, Text

_ID = re.compile(r'\bid="([^"]+)"')
_USE = re.compile(r'(?<=url\(#)[^)]+(?=\))|(?<=href="#)[^"]+(?=")')
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_in_words = ContextVar("figures in words only", default=False)


@contextmanager
def in_words() -> Iterator[None]:
    """Within this context figures are told and not drawn: a text needs no images, and they take most of the time."""
    token = _in_words.set(True)
    try:
        yield
    finally:
        _in_words.reset(token)


def figure(draw: Callable[[], Any], *, alt: str, caption: Text) -> FigureBlock:
    """Draw a figure outside of pyplot and keep it as SVG, its letters as outlines; `alt` is for who does not see it."""
    if _in_words.get():
        return FigureBlock(b"", "", alt, caption)
    from lmemtest.plots import detached_figures

    with detached_figures():
        axes = draw()
    buffer = io.StringIO()
    axes.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return FigureBlock(stable_svg(buffer.getvalue()).encode(), "image/svg+xml", alt, caption)


def stable_svg(svg: str) -> str:
    """The same image with ids by order of appearance instead of random ones, and without comments.

    Examples
    --------
    >>> stable_svg('<svg><!-- x --><path id="m9f3"/><use href="#m9f3"/></svg>')
    '<svg><path id="i0"/><use href="#i0"/></svg>'
    """
    svg = _COMMENT.sub("", svg)
    names = {name: f"i{number}" for number, name in enumerate(dict.fromkeys(_ID.findall(svg)))}
    svg = _ID.sub(lambda match: f'id="{names[match.group(1)]}"', svg)
    return _USE.sub(lambda match: names.get(match.group(0), match.group(0)), svg)
