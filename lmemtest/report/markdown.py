"""A document as markdown: headings, pipe tables, and the figures' descriptions in their place."""

from __future__ import annotations

import re

from lmemtest._table import markdown_text
from lmemtest.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Document,
    FigureBlock,
    Fold,
    Inline,
    Link,
    Paragraph,
    Strong,
    TableBlock,
    Text,
)


def render_markdown(document: Document) -> str:
    """The whole report; everything that comes from data is escaped."""
    parts = [f"# {markdown_text(document.title)}", markdown_text(document.subtitle)]
    parts += [_block(block) for block in document.lead]
    for section in document.sections:
        parts += [f"## {markdown_text(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join([*parts, f"*{markdown_text(document.generator)}*"]) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _line(block.parts)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_line(item)}" for item in block.items)
    if isinstance(block, CodeBlock):
        fence = "`" * max(3, _longest_ticks(block.text) + 1)
        return f"{fence}text\n{block.text}\n{fence}"
    if isinstance(block, TableBlock):
        return block.table.to_markdown()
    if isinstance(block, FigureBlock):
        return f"*Figure: {markdown_text(block.alt)}*"
    if isinstance(block, Callout):
        inner = "\n\n".join([f"**{block.severity.upper()}: {markdown_text(block.title)}**", *map(_block, block.blocks)])
        return "\n".join(f"> {line}".rstrip() for line in inner.splitlines())
    if isinstance(block, Fold):
        return "\n\n".join([f"### {markdown_text(block.title)}", *map(_block, block.blocks)])
    raise TypeError(f"no markdown for {type(block).__name__}")


def _line(text: Text) -> str:
    line = "".join(map(_inline, text))
    return re.sub(r"^(\s*)([-+#]|\d+[.)])(?=\s)", r"\1\\\2", line)  # what would begin a list or a heading


def _inline(part: Inline) -> str:
    if isinstance(part, Strong):
        return f"**{markdown_text(part.text)}**"
    if isinstance(part, Link):
        return f"[{markdown_text(part.text)}](<{part.href.replace('>', '%3E').replace('<', '%3C')}>)"
    if isinstance(part, Code):
        text = "".join(c if c.isprintable() else " " for c in part.text)
        ticks = "`" * (_longest_ticks(text) + 1)
        space = " " if text.startswith("`") or text.endswith("`") else ""
        return f"{ticks}{space}{text}{space}{ticks}"
    return markdown_text(part)


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)
