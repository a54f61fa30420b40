"""Text for LaTeX: what it shows, and that nothing in it is a command."""

from __future__ import annotations

import re
import sys

import pytest

from lmemtest.core.tex import tex_text, tex_width

COMMANDS = re.compile(r"\\(?:[A-Za-z]+|[^A-Za-z])")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("a_b & 50 % of $x$ #1 ~^|", r"a\_b \& 50 \% of \$x\$ \#1 \textasciitilde{}\textasciicircum{}\textbar{}"),
        ("p < 0.001 – 1−2", "p $<$ 0.001 -- 1$-$2"),
        ("Erdős Łódź Groß", r"Erd\H{o}s \L{}\'{o}d\'{z} Gro\ss{}"),
        ("e\u0301", r"\'{e}"),  # a letter and its accent as two characters
        ("χ² ≤ 10⁻³", r"$\chi$$^{2}$ $\leq$ 10$^{-}$$^{3}$"),
        ("日本 🚀", "$<$U+65E5 U+672C$>$ $<$U+1F680$>$"),
        ("a\nb\x07\u202ec", "a b  c"),  # what cannot be seen is a blank
        ("a--b ``q''", "a-{}-b `{}`q'{}'"),  # fonts would join them to other signs
    ],
)
def test_what_is_shown_is_the_text(text: str, source: str) -> None:
    assert tex_text(text) == source


def test_a_long_word_may_be_broken_and_a_hyphen_before_digits_is_a_minus_in_numbers() -> None:
    assert tex_text("x" * 24) == "x" * 24
    assert tex_text("x" * 25) == r"\allowbreak{}".join("x" * 25)
    assert tex_text("ab cd", longest=1) == r"a\allowbreak{}b c\allowbreak{}d"
    assert (tex_text("-1.5"), tex_text("-1.5", numeric=True)) == ("-1.5", "$-$1.5")


def test_every_character_is_ascii_with_balanced_braces_and_known_commands_only() -> None:
    seen = set()
    for block in range(0, 0x3000, 64):
        source = tex_text(" ".join(map(chr, range(block, block + 64))))
        assert source.isascii()
        assert source.count("{") - source.count(r"\{") == source.count("}") - source.count(r"\}")
        seen |= set(COMMANDS.findall(source))
    assert not seen & {r"\input", r"\write", r"\def", r"\catcode", r"\csname", "\\\\"}
    assert tex_text(chr(sys.maxunicode)) == " "


def test_the_width_counts_codes() -> None:
    assert tex_width("abc") == tex_width("äbc") == 3
    assert tex_width("a日") >= len("a<U+65E5>") - 1
