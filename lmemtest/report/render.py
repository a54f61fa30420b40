"""A document as text, markdown, LaTeX or HTML; everything that comes from data is escaped.

The first three are written by one class, each of the others replacing what it writes differently, with the figures'
descriptions in their place. The page needs nothing else: no network, no script, no other file.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmemtest.core.table import ResultTable, latex_text, markdown_text
from lmemtest.core.text import logged, one_line
from lmemtest.report.document import Block, Bullets, Document, FigureBlock, Section, Text, Words, plain

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH = 100


class PlainText:
    """Lines of at most 100 characters; tables and code may be wider."""

    def write(self, document: Document) -> str:
        """The whole report."""
        parts = [*self.head(document), *map(self.block, document.lead)]
        for section in document.sections:
            parts += [self.heading(section.title), *map(self.block, section.blocks)]
        return self.clean("\n\n".join([*parts, *self.end(document.generator)])) + "\n"

    def clean(self, text: str) -> str:
        """Without what a terminal or a log would obey; a backslash before it is one of markdown, too."""
        return logged(text)

    def head(self, document: Document) -> list[str]:
        title, subtitle = one_line(document.title), one_line(document.subtitle)
        return [f"{title}\n{'=' * min(len(title), WIDTH)}\n{subtitle}"]

    def heading(self, title: str) -> str:
        return f"{one_line(title)}\n{'-' * len(title)}"

    def end(self, generator: str) -> list[str]:
        return [generator]

    def block(self, block: Block) -> str:
        match block:
            case tuple():
                return self.paragraph(block)
            case Bullets(items):
                return self.bullets(items)
            case Words(text):
                return self.code(text)
            case ResultTable():
                return self.table(block)
            case FigureBlock():
                return self.figure(block.alt)
            case Section(_, title, blocks, "details"):
                return self.details(title, [self.block(inner) for inner in blocks])
            case Section(_, title, blocks, severity):
                return self.callout(f"{severity.upper()}: {title}", [self.block(inner) for inner in blocks])
        raise TypeError(f"no text for {type(block).__name__}")

    def paragraph(self, text: Text) -> str:
        return _wrapped(plain(text))

    def bullets(self, items: Sequence[Text]) -> str:
        return "\n".join(_wrapped(plain(item), initial_indent="- ", subsequent_indent="  ") for item in items)

    def code(self, text: str) -> str:
        return textwrap.indent(text, "    ")

    def table(self, table: ResultTable) -> str:
        return table.to_text()

    def figure(self, alt: str) -> str:
        return _wrapped(one_line(f"[Figure: {alt}]"))

    def callout(self, title: str, inner: list[str]) -> str:
        return "\n".join([one_line(title), *inner])

    def details(self, title: str, inner: list[str]) -> str:
        return "\n\n".join([f"{one_line(title)}:", *inner])


def _wrapped(text: str, **indents: Any) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, **indents)


class Markdown(PlainText):
    """Headings and pipe tables."""

    def head(self, document: Document) -> list[str]:
        return [f"# {markdown_text(document.title)}", markdown_text(document.subtitle)]

    def heading(self, title: str) -> str:
        return f"## {markdown_text(title)}"

    def end(self, generator: str) -> list[str]:
        return [f"*{markdown_text(generator)}*"]

    def paragraph(self, text: Text) -> str:
        line = "".join(map(self._inline, text))
        return re.sub(r"^(\s*)([-+#]|\d+[.)])(?=\s)", r"\1\\\2", line)  # what would begin a list or a heading

    def bullets(self, items: Sequence[Text]) -> str:
        return "\n".join(f"- {self.paragraph(item)}" for item in items)

    def code(self, text: str) -> str:
        fence = "`" * max(3, _longest_ticks(text) + 1)
        return f"{fence}text\n{text}\n{fence}"

    def table(self, table: ResultTable) -> str:
        return table.to_markdown()

    def figure(self, alt: str) -> str:
        return f"*Figure: {markdown_text(alt)}*"

    def callout(self, title: str, inner: list[str]) -> str:
        text = "\n\n".join([f"**{markdown_text(title)}**", *inner])
        return "\n".join(f"> {line}".rstrip() for line in text.splitlines())

    def details(self, title: str, inner: list[str]) -> str:
        return "\n\n".join([f"### {markdown_text(title)}", *inner])

    def _inline(self, part: str | Words) -> str:
        match part:
            case Words(text, "strong"):
                return f"**{markdown_text(text)}**"
            case Words(text, "link", href):
                return f"[{markdown_text(text)}](<{href.replace('>', '%3E').replace('<', '%3C')}>)"
            case Words(text, "code"):
                text = one_line(text)
                ticks = "`" * (_longest_ticks(text) + 1)
                space = " " if text.startswith("`") or text.endswith("`") else ""
                return f"{ticks}{space}{text}{space}{ticks}"
        return markdown_text(str(part))


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall(r"`+", text)), default=0)


_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs,float,url}
\restylefloat{table}
\floatplacement{table}{H}
\DeclareUnicodeCharacter{2212}{\ensuremath{-}}
\DeclareUnicodeCharacter{2264}{\ensuremath{\leq}}
\DeclareUnicodeCharacter{2265}{\ensuremath{\geq}}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.6em}
\begin{document}"""


class Latex(PlainText):
    """A LaTeX document, complete by itself."""

    def clean(self, text: str) -> str:
        return text  # a backslash would be a command, and `latex_text` has left nothing to clean

    def head(self, document: Document) -> list[str]:
        return [_PREAMBLE, rf"\section*{{{latex_text(document.title)}}}", latex_text(document.subtitle)]

    def heading(self, title: str) -> str:
        return rf"\section{{{latex_text(title)}}}"

    def end(self, generator: str) -> list[str]:
        return [rf"\emph{{{latex_text(generator)}}}", r"\end{document}"]

    def paragraph(self, text: Text) -> str:
        return "".join(map(self._inline, text))

    def bullets(self, items: Sequence[Text]) -> str:
        lines = "\n".join(rf"\item {{}}{self.paragraph(item)}" for item in items)
        return f"\\begin{{itemize}}\n{lines}\n\\end{{itemize}}"

    def code(self, text: str) -> str:  # verbatim would end at a text that says so
        lines = r"\\".join(f"{latex_text(line)}\n" for line in text.splitlines())
        return f"\\begin{{quote}}\\ttfamily\\raggedright\n{lines}\\end{{quote}}"

    def table(self, table: ResultTable) -> str:
        return table.to_latex()

    def figure(self, alt: str) -> str:
        return rf"\emph{{Figure: {latex_text(alt)}}}"

    def callout(self, title: str, inner: list[str]) -> str:
        return "\n\n".join([rf"\begin{{quote}}\textbf{{{latex_text(title)}}}", *inner, r"\end{quote}"])

    def details(self, title: str, inner: list[str]) -> str:
        return "\n\n".join([rf"\subsection*{{{latex_text(title)}}}", *inner])

    def _inline(self, part: str | Words) -> str:
        match part:
            case Words(text, "strong"):
                return rf"\textbf{{{latex_text(text)}}}"
            case Words(text, "code"):
                return rf"\texttt{{{latex_text(text)}}}"
            case Words(text, "link", href):
                return latex_text(text) if href in text else rf"{latex_text(text)} (\url{{{href}}})"
        return latex_text(str(part))


# ----------------------------------------------------------------------------------------------------------- html


def render_html(document: Document) -> str:
    """The whole page, HTML5 in UTF-8."""
    return _environment().get_template("page.html.j2").render(document=document) + "\n"


def render_fragment(lead: Sequence[Text], tables: Sequence[ResultTable]) -> str:
    """The answer and some tables, for a notebook."""
    return _environment().get_template("fragment.html.j2").render(lead=lead, tables=tables)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("lmemtest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "table": lambda table: Markup(replace(table, notes=()).to_html()),  # it is escaped, and its notes stand below
        "data_uri": lambda image, kind: f"data:{kind};base64,{base64.b64encode(image).decode('ascii')}",
        "tied": lambda text: _LOOSE.sub("\N{NO-BREAK SPACE}", text),  # numbers to their units
        "kind": lambda value: type(value).__name__,
    }
    environment.finalize = _only_printable
    return environment


_LOOSE = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] )|(?<=[=<]) (?=\d)")


def _only_printable(value: Any) -> Any:
    """Text without control characters, which HTML does not allow even when they are escaped."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t\N{NO-BREAK SPACE}" else "\N{REPLACEMENT CHARACTER}" for c in value
    )
