"""What a report is made of: a document is a title, a lead and sections of blocks.

Text from data is always a plain string here; escaping it is the business of the renderers.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, TypeAlias, overload

from lmemtest.core.replicates import begun
from lmemtest.core.sanitize import one_line
from lmemtest.core.table import ResultTable, html_text
from lmemtest.errors import ArgumentError

_ID, _USES = re.compile(r'( id=")([^"]+)'), (re.compile(r'(href="#)([^"]+)'), re.compile(r"(url\(#)([^)]+)"))
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_PROLOGUE = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*", re.DOTALL)
_STYLE = re.compile(r' style="([^"]*)"')
_COORDINATES = re.compile(r'(?<= )(?:d|x|y|x1|x2|y1|y2)="[^"]*"|translate\([^)]*\)')
_LONG = re.compile(r"-?\d+\.\d{3,}")
_BREAK = re.compile(r" *\n *(?=[^ <])")
_BLANKS = (re.compile(r"(>)\s+(?=<)"), re.compile(r"([MLQCz]) (?=[-\d])"), re.compile(r"()\s+(?=\"|[MLQCz])"))
_PART = re.compile(r'<g id="(part|veil)-([0-9a-f.]+)">')
HALF_PAGE = 5.6  # inches, of a figure beside a table
_figures: ContextVar[str] = ContextVar("how figures are drawn", default="page")


@dataclass(frozen=True, slots=True)
class Words:
    """Words that stand out: code, the answer, a work that is cited (`href` is its key in `sources`), or a link to an
    address, from which nothing is loaded."""

    text: str
    role: Literal["code", "strong", "cite", "link"]
    href: str = ""


Text: TypeAlias = "tuple[str | Words, ...]"
Images: TypeAlias = "tuple[str, tuple[tuple[str, bytes], ...]]"  # SVG, and files by suffix


@dataclass(frozen=True, slots=True)
class FigureBlock:
    """A figure as SVG (none where only words are wanted), with what it shows in words, and the same as files."""

    svg: str
    alt: str
    caption: Text
    files: tuple[tuple[str, bytes], ...] = ()  # by suffix

    @property
    def key(self) -> str:
        """By which a page refers to the caption: a digest, so that the same table gives the same page."""
        return f"c{hashlib.blake2s(f'{self.svg}{self.alt}{self.caption}'.encode(), digest_size=4).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, its answer in a sentence, and what stands below it; `anchor` is unique in the document.

    Inside of another one it has no anchor: details are closed until asked for, the other kinds must not be missed.
    `pages` are values of JSON: other analyses that a page shows beside its first table, each from a row of it.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...]
    kind: Literal["section", "details", "error", "warning", "note"] = "section"
    summary: Text = ()
    pages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Badge:
    """A few words beside the answer that lead to a section; `severity` is that of a finding, or "fine"."""

    text: str
    anchor: str
    severity: Literal["error", "warning", "note", "fine"] = "fine"


# A text is a paragraph, a list of texts is one with bullets, and code by itself are lines to be copied as they are. A
# call gives a figure that a second process draws; a whole document has none.
Block: TypeAlias = "Text | list[Text] | Words | ResultTable | FigureBlock | Section | Callable[[], Block]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: what was compared and the size of the table, the answer, sections, program and version.

    `lead` is the answer, whose first text is the verdict; `front` a figure and a table that show it. What `names` names
    is shown wherever it is pointed at.
    """

    title: str
    subtitle: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...]
    generator: str
    badges: tuple[Badge, ...] = ()
    front: tuple[Block, ...] = ()
    names: tuple[str, ...] = ()


def answered(
    title: str,
    head: str,
    *more: Block,
    sections: Sequence[Section],
    subtitle: str = "",
    front: Sequence[Block] = (),
    names: Sequence[str] = (),
) -> Document:
    """A document of an answer: its first sentence, what is said next, a figure and a table, and sections."""
    version = importlib.import_module("lmemtest").__version__
    return Document(
        title=title,
        subtitle=subtitle,
        lead=(paragraph(head), *more),
        sections=tuple(sections),
        generator=f"lmemtest {version}",
        front=tuple(front),
        names=tuple(names),
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


def bullets(items: Iterable[str]) -> list[Text]:
    """A list of plain sentences."""
    return [(item,) for item in items]


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


# ---------------------------------------------------------------------- figures


@contextmanager
def figures_as(kind: Literal["page", "svg", "pdf", "words"]) -> Iterator[None]:
    """How figures are drawn within this context; as words they are not, because that takes most of the time."""
    token = _figures.set(kind)
    try:
        yield
    finally:
        _figures.reset(token)


def figure(
    draw: Callable[[], Any],
    *,
    alt: str,
    caption: Text,
    tips: Mapping[str, str] | None = None,
    as_files: bool = False,
    refusable: bool = False,
) -> Block:
    """Draw a figure outside of pyplot and keep it as SVG, its letters as outlines; `alt` is for who does not see it.

    `tips` is what is shown where a part (see `lmemtest.plots.part`) is pointed at. Beside a second process a figure is
    pending until the document is `settled`; a `draw` that cannot be sent there, such as a lambda, is called here.
    """
    kind = _figures.get()
    if kind == "words":
        return FigureBlock("", alt, caption)
    draw_it = partial(_images, draw, kind, as_files)
    images = begun(draw_it)
    block = partial(_block_of, images, tips or {}, alt, caption, refusable)
    return block() if images is draw_it else block


def _block_of(images: Callable[[], Images], tips: Mapping[str, str], alt: str, caption: Text, refusable: bool) -> Block:
    try:
        svg, files = images()
    except ArgumentError as error:
        if not refusable:
            raise
        return paragraph(f"No figure: {error}")
    return FigureBlock(inline_svg(svg, tips) if svg else "", alt, caption, files)


def figure_or_reason(draw: Callable[[], Any], *, alt: str, caption: Text, as_files: bool = False) -> Block:
    """A figure, or why it cannot be drawn: too much for one must not cost a reader the document."""
    return figure(draw, alt=alt, caption=caption, as_files=as_files, refusable=True)


@overload
def settled(block: Section) -> Section: ...
@overload
def settled(block: Block) -> Block: ...
def settled(block: Block) -> Block:
    """A block with its figures, also those that were drawn elsewhere."""
    if isinstance(block, Section):
        return replace(block, blocks=tuple(map(settled, block.blocks)))
    return block() if callable(block) else block


def _images(draw: Callable[[], Any], kind: str, as_files: bool) -> Images:
    from lmemtest.plots import detached_figures

    with detached_figures():
        drawn = draw().figure
    if kind != "page":
        return "", ((kind, image_of(drawn, kind)),)
    svg = io.StringIO()
    drawn.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    files: list[tuple[str, bytes]] = []
    if as_files:
        files.append(("svg", stable_svg(svg.getvalue()).encode()))
        files += [(suffix, image_of(drawn, suffix)) for suffix in ("png", "pdf")]
    return svg.getvalue(), tuple(files)


def image_of(drawn: Any, suffix: str) -> bytes:
    """A drawn figure as a file, the same bytes for the same figure; letters of PDF as TrueType, as journals ask."""
    from lmemtest.plots import detached_figures

    nameless: dict[str, Any] = {
        "svg": {"Date": None, "Creator": None},
        "png": {"Software": None},
        "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    }
    image = io.BytesIO()
    with detached_figures():
        drawn.savefig(image, format=suffix, dpi=300, metadata=nameless[suffix])
    return stable_svg(image.getvalue().decode()).encode() if suffix == "svg" else image.getvalue()


def stable_svg(svg: str, prefix: str = "i") -> str:
    """The same image with ids by order of appearance instead of random ones, and without comments.

    Examples
    --------
    >>> stable_svg('<svg><!-- x --><path id="m9f3"/><use href="#m9f3"/></svg>')
    '<svg><path id="i0"/><use href="#i0"/></svg>'
    """
    svg = _COMMENT.sub("", svg)
    names = {name: f"{prefix}{number}" for number, (_, name) in enumerate(dict.fromkeys(_ID.findall(svg)))}
    for places in (_ID, *_USES):
        svg = places.sub(lambda place: place[1] + names.get(place[2], place[2]), svg)
    return svg


def inline_svg(svg: str, tips: Mapping[str, str]) -> str:
    """An image as a part of a page: its colours as attributes, which a style sheet may change and a policy allows.

    Groups with the id of a part get its name as `data-a`, the second of a pair as `data-b`, and a tip: the whole name
    where there is no other.

    Examples
    --------
    >>> image = '<?xml?><svg height="9pt" width="9pt"><g id="part-4842"><path style="fill: red"/></g></svg>'
    >>> inline_svg(image, {"HB": "mean 2.5 (95 % CI)"})
    '<svg><g class="part" data-a="HB"><title>mean 2.5 (95 % CI)</title><path fill="red"/></g></svg>'
    """

    @cache
    def attributes(style: str) -> str:
        pairs = (item.split(":", 1) for item in style.split(";") if ":" in item)
        last = {name.strip(): value.strip() for name, value in pairs}  # the last one counts, as in a style
        return "".join(f' {name}="{value}"' for name, value in last.items())

    def part(group: re.Match[str]) -> str:
        names = [bytes.fromhex(name).decode() for name in group[2].split(".")][:2]
        tip = " − ".join(tips.get(name, name) for name in names)
        of = " ".join(f'data-{key}="{html_text(name)}"' for key, name in zip("ab", names, strict=False))
        return f'<g class="{group[1]}" {of}><title>{html_text(tip)}</title>'

    svg = _PROLOGUE.sub("", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    svg = _STYLE.sub(lambda style: attributes(style[1]), f"{head}>{rest}")
    svg = _COORDINATES.sub(lambda place: _LONG.sub(lambda number: f"{float(number[0]):.2f}", place[0]), svg)
    svg = _BREAK.sub(" ", svg)
    for blanks in _BLANKS:
        svg = blanks.sub(r"\1", svg)
    svg = stable_svg(_PART.sub(part, svg.strip()))  # last: a name keeps its blanks
    return stable_svg(svg, f"f{hashlib.blake2s(svg.encode(), digest_size=3).hexdigest()}")  # unique on a page
