"""Text of a formula -> tokens with their place in the text, to which errors point.

Nothing here knows what a token means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lmemtest.errors import FormulaError

Kind = Literal["name", "number", "string", "operator", "end"]

_PATTERN = re.compile(
    r"""(?P<space>\s+)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d]\w*(?:\.\w+)*)
      | (?P<operator>\*\*|\|\||[-~+*/:^|()\[\],=.])""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
CONSTANTS = {"True": True, "False": False, "None": None}

_HINTS = {
    "`": "a backtick opens a column name that is never closed; write the name between two backticks.",
    '"': "a quotation mark opens a text that is never closed.",
    "'": "a quotation mark opens a text that is never closed.",
    "{": "'{...}' (Python code in a formula) is not allowed; write arithmetic as I(...).",
    "}": "'{...}' (Python code in a formula) is not allowed; write arithmetic as I(...).",
    "%": "'%' is not an operator here; write nesting as a/b or an interaction as a:b.",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token."""

    kind: Kind  # "name", "number", "string", "operator" or "end"
    value: str  # the text without quotes; a doubled backtick in a quoted name is one backtick
    # start, end: 0-based half-open range in the formula, quotes included
    start: int
    end: int
    quoted: bool = False  # whether a name stood in backticks


def tokenize(text: str) -> list[Token]:
    """Split a formula into tokens; the last one has kind "end".

    Examples
    --------
    >>> [token.value for token in tokenize("y ~ `my col`:f")][:-1]
    ['y', '~', 'my col', ':', 'f']
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise FormulaError(_unexpected(text[position])).at((position, position + 1))
        if match.lastgroup != "space":
            tokens.append(_token(match))
        position = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def quote_name(name: str) -> str:
    """Write a column name so that `tokenize` reads it back, in backticks only where they are needed.

    Examples
    --------
    >>> quote_name("seed"), quote_name("my col"), quote_name("a`b")
    ('seed', '`my col`', '`a``b`')
    """
    if _NAME.fullmatch(name) and name not in CONSTANTS:
        return name
    return "`" + name.replace("`", "``") + "`"


def _token(match: re.Match[str]) -> Token:
    group, raw = match.lastgroup, match.group()
    start, end = match.span()
    if group == "quoted":
        return Token("name", raw[1:-1].replace("``", "`"), start, end, quoted=True)
    if group == "string":
        return Token("string", re.sub(r"\\(.)", r"\1", raw[1:-1], flags=re.DOTALL), start, end)
    if group == "number":
        return Token("number", raw, start, end)
    return Token("name" if group == "name" else "operator", raw, start, end)


def _unexpected(character: str) -> str:
    hint = _HINTS.get(character)
    if hint is not None:
        return hint
    return (
        f"{character!r} has no meaning in a formula; put a column whose name contains it in backticks, "
        f"like `my{character if character.isprintable() else ' '}column`."
    )
