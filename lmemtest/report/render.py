"""A document as text, markdown, LaTeX or HTML; everything that comes from data is escaped.

templates/*.j2 say how each kind of block is written; of the first three formats, with the files of the figures or their
descriptions in their place. The page needs nothing else: no network and no other file. Its policy allows its own script
by its hash and no other one; without the script everything is there.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from lmemtest.core.sanitize import logged, one_line
from lmemtest.core.table import ResultTable, markdown_text
from lmemtest.core.tex import tex_text
from lmemtest.report.document import Block, Document, FigureBlock, Section, Text, Words, plain

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH = 100
MOST_PRINTED = 60  # rows of a folded table that a page prints unless it is open: about one page


def render_text(
    document: Document,
    kind: Literal["text", "markdown", "latex"],
    images: Mapping[FigureBlock, str] = MappingProxyType({}),
) -> str:
    """The whole report, block by block, each by the macro of its kind; `images` are the files of its figures."""
    form: Any = _environment(html=False).get_template(f"{kind}.j2").module
    parts = [form.head(document.title, document.subtitle), *(_written(block, form, images) for block in document.lead)]
    parts += [form.bullets([(badge.text,) for badge in document.badges])] if document.badges else []
    parts += [_written(block, form, images) for block in document.front]
    for section in document.sections:
        gist = [form.paragraph(section.summary)] if section.summary else []
        parts += [form.heading(section.title), *gist, *(_written(block, form, images) for block in section.blocks)]
    text = "\n\n".join([*parts, form.end(document.generator)])
    # without what a terminal or a log would obey; a backslash before it is one of markdown, too, but would be a command
    # of LaTeX, where `tex_text` has left nothing to clean
    return f"{text if kind == 'latex' else logged(text)}\n"


def render_paper(name: str, **values: Any) -> str:
    """A document for LaTeX of its own, `name`, of pieces that are LaTeX already."""
    return _environment(html=False).get_template(f"{name}.tex.j2").render(values) + "\n"


def image_files(document: Document, folder: str) -> dict[FigureBlock, str]:
    """The figures of a document, each with the name of its file in a folder: that of its section."""
    files: dict[FigureBlock, str] = {}
    for section in (Section("answer", "", document.front), *document.sections):
        drawn = [block for block in _blocks_within(section) if isinstance(block, FigureBlock) and block.files]
        for place, block in enumerate(dict.fromkeys(drawn), 1):
            number = f"-{place}" * (place > 1)
            files.setdefault(block, f"{folder}/{section.anchor}{number}.{block.files[0][0]}")
    return files


def _blocks_within(section: Section) -> Iterator[Block]:
    for block in section.blocks:
        yield block
        if isinstance(block, Section):
            yield from _blocks_within(block)


def _written(block: Block, form: Any, images: Mapping[FigureBlock, str]) -> str:
    match block:
        case tuple():
            text = form.paragraph(block)
        case list():
            text = form.bullets(block)
        case Words(words):
            text = form.code(words)
        case ResultTable():
            text = form.table(block)
        case FigureBlock():
            text = form.image(images[block], block.alt, block.caption) if block in images else form.figure(block.alt)
        case Section(_, title, blocks, kind):
            inner = [_written(part, form, images) for part in blocks]
            text = form.details(title, inner) if kind == "details" else form.callout(f"{kind.upper()}: {title}", inner)
        case _:
            raise TypeError(f"no text for {type(block).__name__}")
    return str(text)


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    indents: dict[str, Any] = {"initial_indent": first, "subsequent_indent": others}
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, **indents)


def _ticks(text: str, least: int = 1) -> str:
    """More ticks than the text has in a row: they stand around code in markdown."""
    return "`" * max(least, max(map(len, re.findall(r"`+", text)), default=0) + 1)


def _code_span(text: str) -> str:
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{_ticks(text)}{space}{text}{space}{_ticks(text)}"


def render_html(document: Document) -> str:
    """The whole page, HTML5 in UTF-8."""
    style, script = (resource(name) for name in ("report.css", "report.js"))
    page = _environment(html=True).get_template("page.html.j2")
    marked = {"style": Markup(style), "script": Markup(script)}
    return page.render(document=document, policy=_policy(style, script), **marked) + "\n"


def _json(values: Any) -> Markup:
    """Values as JSON of a page, in which no name ends the element that holds it."""
    text = json.dumps(values, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(re.sub("[<>&]", lambda mark: f"\\u{ord(mark[0]):04x}", text))


def explorer_page(title: str) -> tuple[str, str]:
    """The page of the explorer, which asks its own address for answers, and its policy, to be sent as a header."""
    style = f"{resource('report.css')}\n{resource('explore.css')}"
    script = f"{resource('report.js')}\n{resource('explore.js')}\ninBrowser();\n"
    generator = f"lmemtest {importlib.import_module('lmemtest').__version__}"
    page = _environment(html=True).get_template("explore.html.j2")
    marked = {"style": Markup(style), "script": Markup(script)}
    policy = f"{_policy(style, script)}; connect-src 'self'; frame-ancestors 'none'"
    return page.render(title=title, generator=generator, **marked) + "\n", policy


def resource(name: str) -> str:
    """A file of the templates, as it is."""
    return files("lmemtest.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")


def _policy(*texts: str) -> str:
    """Nothing but a style and a script, by their hashes."""
    style, script = (f"sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode('ascii')}" for t in texts)
    return (
        f"default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; base-uri 'none'; "
        "form-action 'none'"
    )


_MEDIA = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


def render_fragment(lead: Sequence[Text], tables: Sequence[ResultTable]) -> str:
    """The answer and some tables, for a notebook."""
    return _environment(html=True).get_template("fragment.html.j2").render(lead=lead, tables=tables)


@lru_cache(maxsize=2)
def _environment(*, html: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lmemtest.report"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=html,
        lstrip_blocks=html,
    )
    if html:
        environment.filters |= {
            "table": lambda table: Markup(replace(table, notes=()).to_html()),  # it is escaped, its notes stand below
            "data_uri": lambda image, suffix: f"data:{_MEDIA[suffix]};base64,{base64.b64encode(image).decode('ascii')}",
            "json": _json,
            "markup": Markup,  # of figures, which are our own
            "tied": lambda text: _LOOSE.sub("\N{NO-BREAK SPACE}", text),  # numbers to their units
            "kind": lambda value: type(value).__name__,
        }
        environment.tests["long"] = _is_long
        environment.finalize = _only_printable
        return environment
    environment.filters |= {
        "plain": plain,
        "one_line": one_line,
        "wrapped": _wrapped,
        "indented": lambda text: textwrap.indent(text, "    "),
        "markdown": markdown_text,
        "ticks": _ticks,
        "code_span": _code_span,
        "no_list": lambda line: re.sub(r"^(\s*)([-+#]|\d+[.)])(?=\s)", r"\1\\\2", line),  # nor a heading
        "quote_lines": lambda text: "\n".join(f"> {line}".rstrip() for line in text.splitlines()),
        "latex": tex_text,
    }
    return environment


def _is_long(section: Section) -> bool:
    """Whether a folded table would fill pages in print."""
    return any(isinstance(block, ResultTable) and len(block.frame) > MOST_PRINTED for block in section.blocks)


_LOOSE = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] )|(?<=[=<]) (?=\d)")


def _only_printable(value: Any) -> Any:
    """Text without control characters, which HTML does not allow even when they are escaped."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t\N{NO-BREAK SPACE}" else "\N{REPLACEMENT CHARACTER}" for c in value
    )
