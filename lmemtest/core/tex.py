"""Text for LaTeX: nothing in it is a command, and what pdfLaTeX has no sign for is written as its code.

The result is ASCII, so that it reads the same whatever the input encoding of the document. Accents are commands of the
kernel; an ogonek and the letters of Icelandic and Vietnamese need ``\\usepackage[T1]{fontenc}``.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby

from lmemtest.core.sanitize import one_line

LONG_WORD = 24  # characters: longer than those that LaTeX knows how to hyphenate
_JOINING = re.compile("(?<=[-`',!?])(?=[-`',])")  # what fonts join to another sign: two hyphens, two quotes
_COMMANDS = {
    "\0": "{}",
    "\N{NO-BREAK SPACE}": "~",
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "„": r"\quotedblbase{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "…": r"\dots{}",
    "¡": "!`",
    "¿": "?`",
    "§": r"\S{}",
    "¶": r"\P{}",
    "©": r"\copyright{}",
    "£": r"\pounds{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "ð": r"\dh{}",
    "Ð": r"\DH{}",
    "þ": r"\th{}",
    "Þ": r"\TH{}",
    "đ": r"\dj{}",
    "Đ": r"\DJ{}",
}
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0323\u0327\u0328\u0331",
        "`'^~=u.\"rHvdckb", strict=True)
)  # fmt: skip
_GREEK = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu",
          "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"]  # fmt: skip
_CAPITALS = ["Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"]
_MATHEMATICS = {
    "−": "-",
    "×": r"\times",
    "÷": r"\div",
    "±": r"\pm",
    "·": r"\cdot",
    "⋅": r"\cdot",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "∞": r"\infty",
    "●": r"\bullet",
    "○": r"\circ",
    "▲": r"\triangle",
    "→": r"\rightarrow",
    "←": r"\leftarrow",
    "√": r"\surd",
    "∑": r"\sum",
    "∂": r"\partial",
    "°": r"{}^{\circ}",
    "¬": r"\neg",
    "µ": r"\mu",
    **{unicodedata.lookup(f"GREEK SMALL LETTER {name.replace('lambda', 'lamda')}"): f"\\{name}" for name in _GREEK},
    **{unicodedata.lookup(f"GREEK CAPITAL LETTER {name.replace('ambda', 'amda')}"): f"\\{name}" for name in _CAPITALS},
}


def tex_text(text: object, *, numeric: bool = False, longest: int = LONG_WORD) -> str:
    """Text on one line as LaTeX source in ASCII.

    Parameters
    ----------
    text : object
        What is shown as it reads; line breaks and characters that cannot be seen are blanks.
    numeric : bool
        Whether a hyphen at the beginning is a sign.
    longest : int
        Characters of a word; a longer one may be broken between any two of them.

    Returns
    -------
    str
        Signs that pdfLaTeX does not have, such as emoji or Arabic letters, are written as in figures, by their codes.

    Examples
    --------
    >>> print(tex_text("50 % of a_b"), tex_text("Mächler"), tex_text("10⁻³ ≤ α"), tex_text("-1", numeric=True))
    50 \\% of a\\_b M\\"{a}chler 10$^{-}$$^{3}$ $\\leq$ $\\alpha$ $-$1
    >>> print(tex_text("fast 🚀🚀 net"))
    fast $<$U+1F680 U+1F680$>$ net
    """
    if "\N{NO-BREAK SPACE}" in str(text):
        first, *more = str(text).split("\N{NO-BREAK SPACE}")
        return "~".join([tex_text(first, numeric=numeric, longest=longest), *map(tex_text, more)])
    text = unicodedata.normalize("NFC", one_line(text))
    if numeric and text.startswith("-"):
        return f"$-${tex_text(text[1:], longest=longest)}"  # digits keep the font of the text
    return " ".join(_word(word, longest) for word in text.split(" "))


def tex_width(text: str) -> int:
    """About how many characters are shown of a text: a sign that pdfLaTeX does not have takes several."""
    return len(text) if text.isascii() else sum(1 if _sign(char) else 8 for char in text)


def _word(word: str, longest: int) -> str:
    signs: list[str] = []
    for exists, run in groupby(_JOINING.sub("\0", word), lambda char: _sign(char) != ""):
        chars = list(run)
        signs += map(_sign, chars) if exists else [f"$<${' '.join(f'U+{ord(char):04X}' for char in chars)}$>$"]
    return (r"\allowbreak{}" if len(word) > longest else "").join(signs)


@lru_cache(maxsize=4096)
def _sign(char: str) -> str:
    """The source of one character; empty if pdfLaTeX has no sign for it."""
    if char in _COMMANDS:
        return _COMMANDS[char]
    if char.isascii():
        return char
    if char in _MATHEMATICS:
        return f"${_MATHEMATICS[char]}$"
    kind, _, points = unicodedata.decomposition(char).rpartition("> ")
    if kind in ("<super", "<sub") and len(points) == 4:
        base = chr(int(points, 16)).replace("−", "-")
        return f"${'^' if kind == '<super' else '_'}{{{base}}}$" if base.isascii() else ""
    base, *marks = list(unicodedata.normalize("NFD", char))
    if not marks or not (base.isascii() and base.isalpha()) or not all(mark in _ACCENTS for mark in marks):
        return ""
    for mark in marks:
        base = f"\\{_ACCENTS[mark]}{{{base}}}"
    return base
