"""Prose by templates: `<package>/templates/*.j2` has the words and the conditions, filled in with values.

A template is HTML of a few tags, of which `<p>` is one text. Blanks and lines are as in HTML, and a blank before a
comma or a full stop is dropped, so that a condition can have a line of its own. What a value holds is never read as a
tag, a blank or a command of the template.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmemtest.core.rounding import written
from lmemtest.core.words import counted, format_number, joined, p_text, percent, plural

if TYPE_CHECKING:
    from jinja2 import Environment

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_ENTITY = re.compile(r"&(?:#(\d+)|(amp|lt|gt));")
_LOOSE = re.compile(r" +(?=[.,;:?)])")


def paragraphs(package: str, place: str, **values: Any) -> tuple[str, ...]:
    """The texts of one block of a template of a package, what values hold still escaped; empty ones are left out."""
    template, block = place.split(".")
    page = _environment(package).get_template(f"{template}.j2")
    filled = "".join(page.blocks[block](page.new_context(values)))
    lines = (_LOOSE.sub("", " ".join(text.split())) for text in _PARAGRAPH.findall(filled))
    return tuple(line for line in lines if line)


def unescaped(text: str) -> str:
    """What was written by its number or name, as it was.

    >>> unescaped("p&lt;0.01&#32;")
    'p<0.01 '
    """
    names = {"amp": "&", "lt": "<", "gt": ">"}
    return _ENTITY.sub(lambda entity: names[entity[2]] if entity[2] else chr(int(entity[1])), text)


@lru_cache
def _environment(package: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def kept(value: Any) -> Markup:
        """A value with its blanks, and a point at its begin, which are not those of the template."""
        if isinstance(value, Markup):
            return value
        return Markup(re.sub(r"\s|^[.,;:?)]", lambda mark: f"&#{ord(mark[0])};", escape(value)))

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=kept,
        auto_reload=False,
    )
    environment.filters |= {
        "joined": joined,
        "counted": counted,
        "number": format_number,
        "percent": percent,
        "p_text": p_text,
        "plural": plural,
        "written": written,
    }
    return environment
