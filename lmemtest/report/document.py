"""What a report is made of: a document is a title, a lead and sections of blocks.

Text from data is always a plain string here; escaping it is the business of the renderers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lmemtest.core.table import ResultTable
from lmemtest.core.text import one_line


@dataclass(frozen=True, slots=True)
class Words:
    """Words that stand out: code, the answer, or a link to an address, from which nothing is loaded."""

    text: str
    role: Literal["code", "strong", "link"]
    href: str = ""


Text: TypeAlias = "tuple[str | Words, ...]"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of texts."""

    items: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class FigureBlock:
    """A figure as an image of its own (no bytes where only words are wanted), with what it shows in words."""

    image: bytes
    media_type: str
    alt: str
    caption: Text


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it; `anchor` is unique in the document.

    Inside of another one it has no anchor: details are closed until asked for, the other kinds must not be missed.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    kind: Literal["section", "details", "error", "warning", "note"] = "section"


# A text is a paragraph, and code by itself are lines to be copied as they are.
Block: TypeAlias = "Text | Bullets | Words | ResultTable | FigureBlock | Section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: what was compared and the size of the table, the answer, sections, program and version."""

    title: str
    subtitle: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    generator: str


def answered(title: str, head: str, *more: Block, sections: Sequence[Section], subtitle: str = "") -> Document:
    """A document of an answer: its first sentence, what is said next, and sections."""
    version = importlib.import_module("lmemtest").__version__
    return Document(
        title=title,
        subtitle=subtitle,
        lead=(paragraph(head), *more),
        sections=tuple(sections),
        generator=f"lmemtest {version}",
    )


def code(text: str) -> Words:
    """A piece of a formula or a call."""
    return Words(text, "code")


def strong(text: str) -> Words:
    """Words that carry the answer."""
    return Words(text, "strong")


def paragraph(*parts: str | Words) -> Text:
    """A paragraph of its arguments.

    Examples
    --------
    >>> paragraph("Fitted by ", code("fit_lmm"), ".")
    ('Fitted by ', Words(text='fit_lmm', role='code', href=''), '.')
    """
    return parts


def bullets(items: Iterable[str]) -> Bullets:
    """A list of plain sentences."""
    return Bullets(tuple((item,) for item in items))


def folded(title: str, *blocks: Block) -> Section:
    """Details that are closed until asked for."""
    return Section("", title, blocks, "details")


def closed_if_long(title: str, table: ResultTable, most: int) -> Block:
    """A table, closed until asked for where it has more rows than are still read."""
    return table if len(table.frame) <= most else folded(title, table)


def callout(severity: Literal["error", "warning", "note"], title: str, *blocks: Block) -> Section:
    """Something that a reader must not miss."""
    return Section("", title, blocks, severity)


def plain(text: Text) -> str:
    """The words of a text without their roles, on one line.

    Examples
    --------
    >>> plain(("See ", code("y ~ a"), "."))
    'See y ~ a.'
    """
    return one_line("".join(part if isinstance(part, str) else part.text for part in text))
