"""A document as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmemtest._table import ResultTable
from lmemtest.report.document import Document, Text

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(document: Document) -> str:
    """The whole page.

    Parameters
    ----------
    document : Document

    Returns
    -------
    str
        HTML5 in UTF-8; everything that comes from data is escaped.
    """
    return _environment().get_template("page.html.j2").render(document=document) + "\n"


def render_fragment(lead: Sequence[Text], tables: Sequence[ResultTable]) -> str:
    """The answer and some tables, for a notebook."""
    return _environment().get_template("fragment.html.j2").render(lead=lead, tables=tables)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lmemtest.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["table"] = _table
    environment.filters["data_uri"] = _data_uri
    environment.filters["tied"] = _tied
    environment.filters["kind"] = lambda value: type(value).__name__
    environment.finalize = _only_printable
    return environment


def _only_printable(value: Any) -> Any:
    """Text without control characters, which HTML does not allow even when they are escaped."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c in _SPACES else "�" for c in value)


_SPACES = "\n\t\N{NO-BREAK SPACE}"
_LOOSE = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<] )|(?<=[=<]) (?=\d)")


def _tied(text: str) -> str:
    """Numbers tied to their units, so that no line ends in between."""
    return _LOOSE.sub("\N{NO-BREAK SPACE}", text)


def _table(table: ResultTable) -> Any:
    """The table by itself: `ResultTable` has escaped it, and its notes stand below."""
    from markupsafe import Markup

    return Markup(replace(table, notes=()).to_html())


def _data_uri(image: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(image).decode('ascii')}"
