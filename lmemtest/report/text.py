"""A document as plain text: the words and tables, with the figures' descriptions in their place."""

from __future__ import annotations

import textwrap

from lmemtest.report.document import (
    Block,
    Bullets,
    Callout,
    CodeBlock,
    Document,
    FigureBlock,
    Fold,
    Paragraph,
    TableBlock,
    plain,
)

WIDTH = 100


def render_text(document: Document) -> str:
    """The whole report as lines of at most 100 characters; tables and code may be wider."""
    parts = [f"{document.title}\n{'=' * min(len(document.title), WIDTH)}\n{document.subtitle}"]
    parts += [_block(block) for block in document.lead]
    for section in document.sections:
        parts.append(f"{section.title}\n{'-' * len(section.title)}")
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join([*parts, document.generator]) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _wrapped(plain(block.parts))
    if isinstance(block, Bullets):
        return "\n".join(_wrapped(plain(item), first="- ", rest="  ") for item in block.items)
    if isinstance(block, CodeBlock):
        return textwrap.indent(block.text, "    ")
    if isinstance(block, TableBlock):
        return block.table.to_text()
    if isinstance(block, FigureBlock):
        return _wrapped(f"[Figure: {block.alt}]")
    if isinstance(block, Callout):
        return "\n".join([f"{block.severity.upper()}: {block.title}", *map(_block, block.blocks)])
    if isinstance(block, Fold):
        return "\n\n".join([f"{block.title}:", *map(_block, block.blocks)])
    raise TypeError(f"no text for {type(block).__name__}")


def _wrapped(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
