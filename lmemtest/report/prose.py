"""The prose of a report: templates/*.j2, filled in with values, as texts of a document.

A template has the words and the conditions, in HTML of four tags: `<p>` is one text, `<strong>` and `<code>` are words
in it, and `<cite>` has the key of a work in `sources`. Blanks and lines are as in HTML, and a blank before a comma or a
full stop is dropped, so that a condition can have a line of its own. What a value holds is never read as a tag, a blank
or a command of the template.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmemtest.core.rounding import written
from lmemtest.core.words import counted, format_number, joined, p_text, percent, plural
from lmemtest.report.document import Text, Words
from lmemtest.report.sources import in_text

if TYPE_CHECKING:
    from jinja2 import Environment

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_WORDS = re.compile(r"<(strong|code|cite)>(.*?)</\1>")
_ENTITY = re.compile(r"&(?:#(\d+)|(amp|lt|gt));")
_LOOSE = re.compile(r" +(?=[.,;:?)])")


def texts(place: str, **values: Any) -> tuple[Text, ...]:
    """The texts of one block of a template; empty ones are left out.

    Examples
    --------
    >>> texts("model.dispersion", column="<task>", small="1 on B", large="3 on A")[0][0][:35]
    'Each level of <task> has its own re'
    """
    template, block = place.split(".")
    page = _environment().get_template(f"{template}.j2")
    filled = "".join(page.blocks[block](page.new_context(values)))
    lines = (_LOOSE.sub("", " ".join(text.split())) for text in _PARAGRAPH.findall(filled))
    return tuple(tuple(_words(line)) for line in lines if line)


def sentences_of(place: str, **values: Any) -> tuple[str, ...]:
    """The texts of a block without their tags."""
    return tuple(
        "".join(part if isinstance(part, str) else part.text for part in text) for text in texts(place, **values)
    )


def sentence_of(place: str, **values: Any) -> str:
    """The only text of a block without its tags; empty where there is none."""
    return "".join(sentences_of(place, **values))


def _words(line: str) -> list[str | Words]:
    words: list[str | Words] = []
    start = 0
    for tagged in _WORDS.finditer(line):
        words.append(_read(line[start : tagged.start()]))
        text, role = _read(tagged[2]), tagged[1]
        words.append(Words(f"({in_text(text)})", "cite", text) if role == "cite" else Words(text, role))  # type: ignore[arg-type]
        start = tagged.end()
    return [word for word in (*words, _read(line[start:])) if word]


def _read(text: str) -> str:
    """What was written by its number or name, as it was."""
    names = {"amp": "&", "lt": "<", "gt": ">"}
    return _ENTITY.sub(lambda entity: names[entity[2]] if entity[2] else chr(int(entity[1])), text)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def kept(value: Any) -> Markup:
        """A value with its blanks, and a point at its begin, which are not those of the template."""
        if isinstance(value, Markup):
            return value
        return Markup(re.sub(r"\s|^[.,;:?)]", lambda mark: f"&#{ord(mark[0])};", escape(value)))

    environment = Environment(
        loader=PackageLoader("lmemtest.report"),
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
