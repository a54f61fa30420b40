"""Templates: what a value holds is words of a text, never a tag, a blank or a command of the template."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from lmemtest.report.document import Words
from lmemtest.report.prose import sentence_of, sentences_of, texts

EVIL = (
    "<strong>x</strong>",
    "</p><p>y",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "a  b\n\tc",
    "&amp; &#60; &lt;",
    ", then",
    ". End",
    '<a href="x">y</a>',
    "\x85\u2028\xa0",
)


@pytest.mark.parametrize("name", EVIL)
def test_a_value_stands_as_it_is(name: str) -> None:
    (text,) = texts("model.dispersion", column=name, small="1 on B", large="3 on A")
    assert text == (
        f"Each level of {name} has its own residual variance: the residual standard deviation is 3 on A and 1 on "
        "B. Scores of quiet levels therefore count for more than those of noisy ones in all that is estimated from "
        "single runs.",
    )


@pytest.mark.parametrize("name", EVIL)
def test_a_value_in_a_tag_is_its_words(name: str) -> None:
    (text,) = texts("model.why", own_formula=True, recommended=name, reasons=[])
    assert text[1] == Words(name, "code")


def test_an_empty_text_is_left_out() -> None:
    assert sentence_of("headline.largest", shape=None, nouns="benchmarks") == ""
    assert len(sentences_of("sections.size_notes", power=0.8, by_family=False, zero=False)) == 1


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(Exception, match="'column' is undefined"):
        texts("model.dispersion", small="1 on B", large="3 on A")


def test_templates_have_no_tags_but_those_of_texts() -> None:
    folder = files("lmemtest.report").joinpath("templates")
    for template in (file for file in folder.iterdir() if file.name.count(".") == 1 and file.name.endswith(".j2")):
        tags = set(re.findall(r"<(/?\w+)", template.read_text(encoding="utf-8")))
        assert tags <= {"p", "/p", "strong", "/strong", "code", "/code", "cite", "/cite"}, template.name
