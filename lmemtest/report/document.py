"""What a report is made of: a document is a title, a lead and sections of blocks.

Text from data is always a plain string here; escaping it is the business of the renderers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lmemtest.core.table import ResultTable
from lmemtest.core.text import one_line


@dataclass(frozen=True, slots=True)
class Code:
    """A piece of a formula or a call."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that carry the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to an address; nothing is loaded from it."""

    text: str
    href: str


Inline: TypeAlias = "str | Code | Strong | Link"
Text: TypeAlias = "tuple[Inline, ...]"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    parts: Text


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of texts."""

    items: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines to be copied as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table with its title and notes."""

    table: ResultTable


@dataclass(frozen=True, slots=True)
class FigureBlock:
    """A figure as an image of its own (no bytes where only words are wanted), with what it shows in words."""

    image: bytes
    media_type: str
    alt: str
    caption: Text


@dataclass(frozen=True, slots=True)
class Callout:
    """Something that a reader must not miss."""

    severity: Literal["error", "warning", "note"]
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that are closed until asked for."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = "Paragraph | Bullets | CodeBlock | TableBlock | FigureBlock | Callout | Fold"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it; `anchor` is unique in the document."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: what was compared and the size of the table, the answer, sections, program and version."""

    title: str
    subtitle: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    generator: str


def paragraph(*parts: Inline) -> Paragraph:
    """A paragraph of its arguments.

    Examples
    --------
    >>> paragraph("Fitted by ", Code("fit_lmm"), ".").parts
    ('Fitted by ', Code(text='fit_lmm'), '.')
    """
    return Paragraph(tuple(parts))


def listed(items: Iterable[str]) -> Bullets:
    """A list of plain sentences."""
    return Bullets(tuple((item,) for item in items))


def plain(text: Text) -> str:
    """The words of a text without their roles, on one line.

    Examples
    --------
    >>> plain(("See ", Code("y ~ a"), "."))
    'See y ~ a.'
    """
    return one_line("".join(part if isinstance(part, str) else part.text for part in text))
