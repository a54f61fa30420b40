"""The report as a page: its content, its safety, its shape."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from lmemtest.core.table import ResultTable
from lmemtest.core.words import MISSING, format_p, percent
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.document import (
    Document,
    FigureBlock,
    Section,
    Words,
    code,
    figures_as,
    folded,
    paragraph,
    plain,
    strong,
)
from lmemtest.report.first_screen import verdict
from lmemtest.report.render import render_fragment, render_html, render_text

Make = Callable[..., Any]
KNOWN_TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style body header h1 h2 p main section nav ol ul li a div table caption thead tbody tr "
        "th td figure figcaption details summary pre code strong span footer script",
    )
)
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """What a browser would see: elements, attributes, the text of tables and of everything."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self._rows: list[list[str]] = []
        self._caption = ""
        self.feed(source)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else")
        if tag == "table":
            self.tables[self._caption.strip()] = self._rows

    def handle_data(self, data: str) -> None:
        if {"style", "script", "svg"} & set(self.open):
            return
        self.words.append(data)
        if "caption" in self.open:
            self._caption += data
        elif self._rows and self.open and self.open[-1] in ("td", "th"):
            self._rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(scope="session")
def page(three_html: str) -> Page:
    return Page(three_html)


# ------------------------------------------------------------------------------------------------------ content


def test_the_answer_comes_first(three: Analysis, page: Page) -> None:
    answer = " ".join(plain(text) for text in verdict(three))
    assert answer in page.text
    assert len(answer.split()) <= 60
    assert page.text.index(answer) < page.text.index("What to fix first")


def test_sections_are_in_order_and_linked(page: Page) -> None:
    anchors = [str(attrs["id"]) for _, attrs in page.elements if str(attrs.get("class")).startswith("section")]
    expected = (
        "fix means pairs ranking elsewhere benchmarks variation outperforming data model diagnostics methods "
        "limitations reproduction"
    )
    assert anchors == expected.split()
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a" and (attrs["href"] or "").startswith("#")]
    assert {link[1:] for link in links} <= set(anchors)
    assert len(links) >= 4  # badges


def test_few_words_stand_before_anything_is_opened(three: Analysis) -> None:
    with figures_as("words"):
        document = three.document()
    gists = " ".join(plain(section.summary) for section in document.sections)
    assert all(section.summary for section in document.sections)
    assert len(gists.split()) < 400


def test_the_first_table_is_the_ranking_beside_the_best(three: Analysis, page: Page) -> None:
    rows = page.tables["Ranking by mean loss"]
    assert rows[0] == ["tool", "rank", "mean", "behind the best (95 % CI)", "p", "groups"]
    best = three.decisions.levels[0]
    behind = three.pairs.behind(best, "minimize")
    for name, rank, _, gap, p, _ in rows[1:]:
        assert (gap == MISSING) == (name == best)
        if name != best:
            assert float(gap.split()[0]) == pytest.approx(behind.loc[name, "estimate"], abs=6e-3)
            assert p == format_p(behind.loc[name, "p_value"])
            worse = three.decisions.significant.loc[best, name]
            assert (rank[0] == "1") == (not worse)


def test_means_are_those_of_the_result(three: Analysis, page: Page) -> None:
    rows = page.tables["Estimated marginal means of loss, best first"]
    assert rows[0] == ["tool", "ranks", "mean", "SE", "df", "95 % CI low", "95 % CI high", "letters"]
    for row, want in zip(rows[1:], three.to_frame().to_dict("records"), strict=True):
        assert row[0] == want["algorithm"]
        numbers = [want[name] for name in ("emmean", "se", "df", "ci_low", "ci_high")]
        assert [float(cell) for cell in row[2:7]] == pytest.approx(numbers, rel=0.06, abs=6e-4)
        assert row[7] == want["letters"]


def test_pairs_and_decisions_are_those_of_the_result(three: Analysis, page: Page) -> None:
    rows = page.tables["Differences of the means of loss: first − second"]
    for row, want in zip(rows[1:], three.pairs.best_first().to_frame().to_dict("records"), strict=True):
        assert row[:2] == [want["left"], want["right"]]
        assert float(row[2]) == pytest.approx(want["estimate"], abs=6e-4)
        assert row[6] == format_p(want["p_value"])
        assert row[9] == ("yes" if three.decisions.significant.loc[want["left"], want["right"]] else "no")


def test_the_formula_the_call_and_the_versions_are_there(three: Analysis, page: Page) -> None:
    assert three.formula in page.text
    assert three.call in page.text
    for name, version in three.versions.items():
        assert [name, version] in page.tables["Versions"]


def test_the_terms_and_what_is_left_out_are_explained(three: Analysis, page: Page) -> None:
    for term in three.recommendation.terms.to_numpy().tolist():
        assert term in page.tables["Terms and what they assume"]
    for text in (*three.recommendation.left_out, *three.recommendation.notes):
        assert text in page.text


def test_shares_of_variation_are_those_of_the_fit(three: Analysis, page: Page) -> None:
    rows = page.tables["Variance components (REML)"][1:]
    assert [row[-1] for row in rows] == [percent(share) for share in three.components["share"]]


def test_the_joint_test_is_written_out(three: Analysis, page: Page) -> None:
    assert "adjusted for all pairs, shows that the means are not all equal (p < 0.001)" in page.text
    by_model = analyze(three.runs, adjust="tukey", vcov="model")
    test = by_model.joint
    text = " ".join(by_model.to_text().split())
    assert f"F({test.df_num}, {test.df_den:.1f}) = {test.f_ratio:.2f}, p < 0.001" in text
    assert "Tukey-Kramer" in text


def test_methods_name_everything_that_was_done(three: Analysis, page: Page) -> None:
    text = page.text[page.text.index("Ready for a paper") :]
    for words in (
        "n = 96 scores",
        "Satterthwaite degrees of freedom",
        "moderated standard errors",
        "Smyth 2004",
        "Shaffer 1986",
        "8 benchmarks x 4 seeds",
        f"lmemtest {three.versions['lmemtest']}",
        "restricted maximum likelihood (Bates et al. 2015)",
        "doi:10.18637/jss.v067.i01",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ({"adjust": "holm"}, "adjusted by the Holm method (Holm 1979)", "Kramer"),
        ({"adjust": "none"}, "without adjustment for their number", "Kramer"),
        ({"adjust": "fdr"}, "(Benjamini & Hochberg 1995)", "Kramer"),
        ({"ddf": "residual"}, "with residual degrees of freedom", "Satterthwaite"),
    ],
)
def test_methods_follow_the_options(options: dict[str, str], present: str, absent: str, three: Analysis) -> None:
    text = " ".join(analyze(three.runs, **options).to_text().split())  # type: ignore[arg-type]
    assert present in text
    assert absent not in text


def test_findings_come_with_their_advice(table: Make, as_runs: Make) -> None:
    frame = table()
    frame = frame[~((frame["tool"] == "C") & (frame["task"] == "task0"))]
    analysis = analyze(as_runs(frame))
    with figures_as("words"):
        page = Page(analysis.to_html())
    assert analysis.check.problems
    for finding in analysis.check.problems:
        assert finding.message in page.text
        assert finding.advice in page.text


def test_one_decision_matrix_feeds_everything(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table(spread=2.0)))
    with figures_as("words"):
        page = Page(analysis.to_html())
    count = int(np.triu(analysis.decisions.significant.to_numpy()).sum())
    rows = page.tables["Differences of the means of loss: first − second"][1:]
    assert sum(row[-1] == "yes" for row in rows) == count
    assert f"{count or 'None'} of 3 differences" in page.text


# ------------------------------------------------------------------------------------------------------- safety


def test_nothing_is_loaded_and_nothing_runs(three_html: str, page: Page) -> None:
    tags = Counter(tag for tag, _ in page.elements)
    assert not tags.keys() & {"link", "iframe", "object", "embed", "base", "form", "img"}
    for tag, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "style")], tag
    style = re.search(r"<style>(.*?)</style>", three_html, re.DOTALL)
    script = re.search(r'<script type="module">(.*?)</script>', three_html, re.DOTALL)
    assert style is not None
    assert script is not None
    (policy,) = (attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv"))
    for kind, text in (("style", style[1]), ("script", script[1])):  # nothing else runs, and the page's own does
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)
    kinds = [attrs.get("type") for tag, attrs in page.elements if tag == "script"]
    assert sorted(map(str, kinds)) == ["application/json", "application/json", "module"]  # names and variants are data
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)


def test_names_cannot_become_markup_or_templates(nasty: Analysis, nasty_names: tuple[str, ...]) -> None:
    source = nasty.to_html()
    page = Page(source)
    assert page.problems == []
    assert source.count("<script") == 3  # our own
    assert "<b>" not in source
    listed = re.search(r'<script type="application/json" id="names">(.*?)</script>', source, re.DOTALL)
    assert listed is not None
    assert tuple(json.loads(listed[1])) == nasty.decisions.levels
    assert "49" not in page.tables["Columns and their roles"][2][2]
    for name in nasty_names[:-1]:
        assert name in page.text
    assert "{{ config }}" in page.text
    assert html.escape("to<ol>") in source
    tags = {tag for tag, _ in Page(SVG.sub("", source)).elements}
    assert tags <= KNOWN_TAGS


def test_control_characters_do_not_reach_the_page(nasty: Analysis) -> None:
    source = nasty.to_html()
    allowed = {"\n", "\t", "\N{NO-BREAK SPACE}"}
    assert {c for c in source if not c.isprintable()} <= allowed


def test_figures_hold_no_text_of_the_data(nasty: Analysis) -> None:
    for svg in figures(nasty.to_html()):
        assert "<script" not in svg
        assert "{{7*7}}" in html.unescape(svg) or "data-a" not in svg  # as the name of a part


def test_blocks_escape_what_they_are_given() -> None:
    evil = '<i>"&'
    document = Document(
        title=evil,
        subtitle=evil,
        lead=(paragraph(evil, code(evil), strong(evil), Words(evil, "link", "https://example.org/?a=1&b=\"'")),),
        sections=(
            Section("x", evil, (folded(evil, FigureBlock("<svg></svg>", evil, (evil,), (("svg", b"<svg/>"),))),)),
        ),
        generator=evil,
    )
    page = Page(render_html(document))
    assert page.problems == []
    assert "i" not in {tag for tag, _ in page.elements}
    assert page.text.count(evil) == 11  # title, h1, subtitle, 4 in the lead, h2, summary, caption, footer


# -------------------------------------------------------------------------------------------------------- shape


def figures(source: str) -> list[str]:
    return SVG.findall(source)


def test_the_page_is_well_formed_and_accessible(page: Page) -> None:
    assert page.problems == []
    assert sum(tag == "h1" for tag, _ in page.elements) == 1
    images = [attrs for _, attrs in page.elements if attrs.get("role") == "img"]
    assert len(images) == 7
    assert all(len(attrs["aria-label"] or "") > 20 for attrs in images)
    captions = [attrs["id"] for tag, attrs in page.elements if tag == "figcaption"]
    assert [attrs["aria-labelledby"] for tag, attrs in page.elements if tag == "figure"] == captions
    assert len(captions) == len(images)
    assert page.elements[0] == ("html", {"lang": "en"})
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(attrs.get("scope") for tag, attrs in page.elements if tag == "th")


def test_it_serves_phones_dark_rooms_and_printers(three_html: str) -> None:
    for words in ("width=device-width", "prefers-color-scheme: dark", "@media print", "@media screen and (max-width"):
        assert words in three_html


def test_the_same_analysis_gives_the_same_page(three: Analysis, three_html: str) -> None:
    again = analyze(three.runs)
    assert again.to_html() == three_html


def test_twenty_algorithms_are_a_matrix_and_a_closed_table(many: Analysis) -> None:
    source = many.to_html()
    page = Page(source)
    assert "Table of all 190 differences of 20 algorithms" in page.text
    before = source[: source.index("Table of all 190 differences")]
    assert before.rstrip().endswith("<summary>")
    assert len(page.tables["Differences of the means of loss: first − second"]) == 191
    assert len(source) < 3_000_000


def test_a_fragment_for_notebooks_is_escaped(nasty: Analysis) -> None:
    source = nasty._repr_html_()
    assert "<script" not in source
    assert Page(source).problems == []
    assert render_fragment((), ()).strip() == "<p>\n</p>"


def test_text_has_every_section_and_table(three: Analysis) -> None:
    document = three.document()
    text = render_text(document, "text")
    for section in document.sections:
        assert f"\n{section.title}\n---" in text
        for block in section.blocks:
            if isinstance(block, ResultTable):
                assert block.to_text() in text
    assert "[Figure: Critical-difference diagram, best first: A, B, C." in text
    assert three.summary().startswith(three.headline())
