"""The prose of a report: templates/*.j2, filled in with values, as texts of a document.

A template has the words and the conditions, in HTML of four tags: `<p>` is one text (see `core.prose`), `<strong>` and
`<code>` are words in it, and `<cite>` has the key of a work in `sources`.
"""

from __future__ import annotations

import re
from typing import Any

from lmemtest.core.prose import paragraphs, unescaped
from lmemtest.report.document import Text, Words
from lmemtest.report.sources import in_text

_WORDS = re.compile(r"<(strong|code|cite)>(.*?)</\1>")


def texts(place: str, **values: Any) -> tuple[Text, ...]:
    """The texts of one block of a template; empty ones are left out.

    Words with a tag are `Words`, what is between them is plain.

    Examples
    --------
    >>> texts("model.dispersion", column="<task>", small="1 on B", large="3 on A")[0][0][:35]
    'Each level of <task> has its own re'
    """
    return tuple(tuple(_words(line)) for line in paragraphs("lmemtest.report", place, **values))


def sentences_of(place: str, **values: Any) -> tuple[str, ...]:
    """The texts of a block without their tags."""
    return tuple(
        "".join(part if isinstance(part, str) else part.text for part in text) for text in texts(place, **values)
    )


def sentence_of(place: str, **values: Any) -> str:
    """The only text of a block without its tags; empty where there is none.

    Examples
    --------
    >>> sentence_of("model.dispersion", column="task", small="1 on B", large="3 on A")[:32]
    'Each level of task has its own r'
    """
    return "".join(sentences_of(place, **values))


def _words(line: str) -> list[str | Words]:
    """The parts of a text: tags are looked for before a value can show what looks like one."""
    words: list[str | Words] = []
    start = 0
    for tagged in _WORDS.finditer(line):
        words.append(unescaped(line[start : tagged.start()]))
        text, role = unescaped(tagged[2]), tagged[1]
        words.append(Words(f"({in_text(text)})", "cite", text) if role == "cite" else Words(text, role))  # type: ignore[arg-type]
        start = tagged.end()
    return [word for word in (*words, unescaped(line[start:])) if word]
