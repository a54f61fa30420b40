"""A document as LaTeX, complete by itself; figures are told in words."""

from __future__ import annotations

from lmemtest._table import latex_text
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


def render_latex(document: Document) -> str:
    """The whole report; everything that comes from data is escaped."""
    parts = [_PREAMBLE, rf"\section*{{{latex_text(document.title)}}}", latex_text(document.subtitle)]
    parts += [_block(block) for block in document.lead]
    for section in document.sections:
        parts += [rf"\section{{{latex_text(section.title)}}}", *map(_block, section.blocks)]
    return "\n\n".join([*parts, rf"\emph{{{latex_text(document.generator)}}}", r"\end{document}"]) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return _line(block.parts)
    if isinstance(block, Bullets):
        items = "\n".join(rf"\item {{}}{_line(item)}" for item in block.items)
        return f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}"
    if isinstance(block, CodeBlock):  # verbatim would end at a text that says so
        lines = r"\\".join(f"{latex_text(line)}\n" for line in block.text.splitlines())
        return f"\\begin{{quote}}\\ttfamily\\raggedright\n{lines}\\end{{quote}}"
    if isinstance(block, TableBlock):
        return block.table.to_latex()
    if isinstance(block, FigureBlock):
        return rf"\emph{{Figure: {latex_text(block.alt)}}}"
    if isinstance(block, Callout):
        title = rf"\textbf{{{block.severity.upper()}: {latex_text(block.title)}}}"
        return "\n\n".join([r"\begin{quote}" + title, *map(_block, block.blocks), r"\end{quote}"])
    if isinstance(block, Fold):
        return "\n\n".join([rf"\subsection*{{{latex_text(block.title)}}}", *map(_block, block.blocks)])
    raise TypeError(f"no LaTeX for {type(block).__name__}")


def _line(text: Text) -> str:
    return "".join(map(_inline, text))


def _inline(part: Inline) -> str:
    if isinstance(part, Strong):
        return rf"\textbf{{{latex_text(part.text)}}}"
    if isinstance(part, Code):
        return rf"\texttt{{{latex_text(part.text)}}}"
    if isinstance(part, Link):
        text = latex_text(part.text)
        return text if part.href in part.text else rf"{text} (\url{{{part.href}}})"
    return latex_text(part)
