"""One table for every audience: aligned, escaped, and without a crash on what data may hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from lmemtest.core.table import ResultTable
from lmemtest.core.words import format_number, format_p

EVIL = "<script>alert('x')</script> & \"q\" | a_b* $5% #1 {x} ~ ^ \\ \n `code` [l](u)"


def table(**columns: object) -> ResultTable:
    return ResultTable("Title", pd.DataFrame(columns), ("A note.",))


def column(rendered: str, position: int) -> list[str]:
    """A column of the body of a text table."""
    lines = rendered.splitlines()[3:-1]
    return [re.split(r" {2,}", line.strip())[position] for line in lines]


@pytest.mark.parametrize(
    ("p", "want"),
    [(0.5, "0.500"), (0.001, "0.001"), (0.00099, "<0.001"), (0.0, "<0.001"), (1.0, "1.000"), (np.nan, "–")],
)
def test_p_values(p: float, want: str) -> None:
    assert format_p(p) == want


@pytest.mark.parametrize(
    ("x", "want"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (-0.0123456, "-0.01235"),
        (123456.7, "123457"),
        (99.996, "100.00"),
        (86400, "86,400"),
        (np.int64(-1200), "-1,200"),
        (1e-9, "1e-09"),
        (1.2345e12, "1.235e12"),
        (np.nan, "–"),
        (None, "–"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
    ],
)
def test_numbers(x: float, want: str) -> None:
    assert format_number(x).replace("e+", "e") == want


def test_a_column_has_one_number_of_decimals() -> None:
    text = table(x=["a", "b", "c"], y=[0.5, 12.25, 100.125], p_value=[0.5, 1e-9, np.nan]).to_text()
    assert column(text, 1) == ["0.50", "12.25", "100.13"]
    assert column(text, 2) == ["0.500", "<0.001", "–"]


def test_a_column_that_spans_many_magnitudes_is_scientific() -> None:
    text = table(x=["a", "b"], y=[1e-5, 2e5]).to_text()
    assert column(text, 1) == ["1.000e-05", "2.000e+05"]


def test_rounding_noise_beside_a_number_does_not_make_a_column_scientific() -> None:
    assert column(table(x=["a", "b"], y=[0.5, 3e-17]).to_text(), 1) == ["0.5", "0.0"]


def test_whole_numbers_small_numbers_and_signs() -> None:
    text = table(x=["a", "b"], n=[3.0, 12.0], tiny=[1e-7, 2e-7], signed=[-0.0, -1.5], i=[1, 20]).to_text()
    assert column(text, 1) == ["3", "12"]
    assert column(text, 2) == ["1.000e-07", "2.000e-07"]
    assert column(text, 3) == ["0.0", "-1.5"]
    assert column(text, 4) == ["1", "20"]


def test_formats_are_followed() -> None:
    frame = pd.DataFrame({"a": [0.12345, np.nan], "b": [0.0001, 0.2], "c": ["x", "y"]})
    formats = {"a": ".1f", "b": "p", "c": str.upper}
    assert ResultTable("", frame, (), formats).to_text() == (
        "  a       b  c\n---  ------  -\n0.1  <0.001  X\n  –   0.200  Y"
    )


@pytest.mark.parametrize("method", ["to_text", "to_markdown", "to_html", "to_latex", "__repr__", "_repr_html_"])
def test_anything_renders(method: str) -> None:
    frames = [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=range(3)),
        pd.DataFrame([[1, "x"]], columns=["a", "a"]),
        pd.DataFrame({"a": [None, pd.NA, pd.NaT, np.nan, "x", [1, 2], np.array([1.0, 2.0])]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array([0.5, None], dtype="Float64")}),
        pd.DataFrame({"a": pd.Categorical(["x", None]), "b": [np.inf, np.nan], "c": [True, False]}),
        pd.DataFrame({"a": [1 + 2j], "d": [pd.Timestamp("2024-01-01")], 3: [0]}),
        pd.DataFrame({EVIL: [EVIL]}),
    ]
    for frame in frames:
        assert isinstance(getattr(ResultTable(EVIL, frame, (EVIL,)), method)(), str)


def test_text_is_aligned_with_wide_characters() -> None:
    text = table(name=["算法", "ab", "é"], y=[1, 10, 100]).to_text()
    lines = text.splitlines()
    assert lines[3:6] == ["算法    1", "ab     10", "é     100"]
    assert lines[-1] == "A note."


def test_text_has_one_line_per_row() -> None:
    assert len(table(name=["a\nb\r\x1b[31m"], y=[1]).to_text().splitlines()) == 5


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_escapes_everything_and_names_its_headers() -> None:
    parser = _Tags()
    parser.feed(ResultTable(EVIL, pd.DataFrame({EVIL: [EVIL, "b"], "n": [1, 2]}), (EVIL,)).to_html())
    names = {tag for tag, _ in parser.tags}
    assert names <= {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert parser.tags[0] == ("table", {"class": "lt-table"})
    scopes = [attributes["scope"] for tag, attributes in parser.tags if tag == "th"]
    assert scopes == ["col", "col", "row", "row"]
    assert sum("alert('x')" in text for text in parser.text) == 4  # caption, header, cell, note


def test_markdown_escapes_everything() -> None:
    text = ResultTable(EVIL, pd.DataFrame({EVIL: [EVIL], "my_algo": ["_x_"]}), (EVIL,)).to_markdown()
    assert "<script" not in text
    assert r"\| a_b\*" in text
    assert r"\_x\_" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


def test_latex_escapes_everything() -> None:
    text = ResultTable("t", pd.DataFrame({"a_b": [EVIL], "y": [-1.5], "p_value": [0.0]})).to_latex()
    text = text.replace(r"\allowbreak{}", "")  # in long words
    row = next(line for line in text.splitlines() if "script" in line)
    assert r"$<$script$>$" in row
    for escaped in (r"\&", r"\%", r"\$5", r"\#1", r"\{x\}", r"\textasciitilde{}", r"\textbackslash{}"):
        assert escaped in row
    assert row.endswith(r"& $-$1.5 & $<$0.001 \\")
    assert r"\begin{tabular}{@{}lrr@{}}" in text
    assert r"a\_b & y & p\_value \\" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))


def test_the_frame_is_handed_out_as_a_copy_at_full_precision() -> None:
    frame = pd.DataFrame({"y": [1 / 3]})
    result = ResultTable("t", frame)
    got = result.to_frame()
    got["y"] = 0.0
    assert result.to_frame()["y"][0] == 1 / 3


def test_latex_fits_the_line_and_goes_on_over_pages_where_it_may() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "meaning": ["word " * 60, "x"], "y": [1.0, 2.5]})
    text = ResultTable("t", frame).to_latex(label="tab:t")
    assert re.search(r"\\begin\{tabular\}\{@\{\}lp\{0\.8\d+\\linewidth\}r@\{\}\}", text)
    assert "\\caption{t}\n\\label{tab:t}" in text
    assert r"\footnotesize" in ResultTable("", frame).to_latex(characters=23)
    last = ResultTable("", frame[["name", "meaning"]]).to_latex()
    assert last.count(r"\tabularnewline") == 3  # not the backslashes that ragged lines take for their own
    many = pd.DataFrame({"benchmark": ["b"], **{f"an algorithm with a long name {i}": [0.5] for i in range(20)}})
    text = ResultTable("t", many, ("a note",)).to_latex(label="tab:t")
    parts = text.count(r"\begin{tabular}")
    assert parts > 1
    assert text.count("benchmark") == text.count(r"\raggedright b ") + text.count("\nb ") == parts  # beside each part
    assert [text.count(f"name {i} ") for i in range(20)] == [1] * 20
    assert text.count(rf" of {parts})}}") == parts
    assert text.count("tab:t") == text.count("a note") == 1
    assert r"\allowbreak" not in text
    rows = pd.DataFrame({"n": range(60)})
    assert "longtable" not in ResultTable("t", rows).to_latex()
    pages = ResultTable("t", rows).to_latex(pages=True)
    assert pages.count("longtable") == 2
    assert pages.index(r"\endhead") < pages.index("\n0 ")
    assert "longtable" not in ResultTable("t", rows.head(10)).to_latex(pages=True)
