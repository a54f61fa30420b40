"""The page in a real browser: it asks nothing of the network, fits, sorts, filters, copies, and can be read aloud."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lmemtest as lt
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.explore import explorer
from tests.browser import Tab, chromium

pytestmark = pytest.mark.level(2)
Make = Callable[..., Any]

NAMES = ("<script>alert(1)</script>", 'it\'s "so" & so', "\u05d0\u05dc\u05d2\u05d5", "x" * 200, "fire \U0001f525")
# of each text element: relative luminance of its colour against that of what is behind it
CONTRAST = """
(() => {
  const channel = (v) => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const rgba = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll("h1,h2,p,li,td,th,a,button,span,figcaption,code")) {
    if (!e.textContent.trim()) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio]);
  }
  return poor;
})()
"""
WIDER = """
[...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll, .plate, svg, pre, .away") &&
  e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + "." + e.className).slice(0, 5)
"""
WHERE = "(e) => e.tagName + '.' + (e.closest('.badges, .front, summary')?.className ?? '')"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, many: Analysis) -> Path:
    return many.save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, three: Analysis) -> Path:
    return three.save(tmp_path_factory.mktemp("small") / "report.html")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, table: Make, as_runs: Make) -> Path:
    return analyze(as_runs(table(NAMES))).save(tmp_path_factory.mktemp("hostile") / "report.html")


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_is_asked_for_and_nothing_overflows(tab: Tab, page: Path, hostile: Path, width: int) -> None:
    for path in (page, hostile):
        tab.open(path, width)
        tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
        assert tab.complaints() == []
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(WIDER) == []


def test_on_a_phone_the_ranking_has_names_of_nine_letters_whole_and_all_columns(tab, tmp_path, table, as_runs):
    names = ["SMAC", "HyperBand", "TPE+prior"]
    tab.open(analyze(as_runs(table(names))).save(tmp_path / "report.html"), 390)
    assert tab.run("(({scrollWidth: s, clientWidth: c}) => s - c)(document.querySelector('.front .scroll'))") == 0
    lines = """[...document.querySelectorAll('.front tbody th')].map((cell) => {
        const range = document.createRange(); range.selectNodeContents(cell);
        return range.getClientRects().length; })"""
    assert tab.run(lines) == [1, 1, 1]


def test_the_answer_is_on_the_first_screen(tab: Tab, small: Path) -> None:
    tab.open(small, 1280, 800)
    assert tab.run("document.querySelector('.front svg').getBoundingClientRect().bottom") < 800
    assert tab.run("document.querySelector('.front table').getBoundingClientRect().bottom") < 800
    visible = "[...document.querySelectorAll('main, header')].map((e) => e.innerText).join(' ').split(/\\s+/).length"
    assert tab.run(visible) < 1200


def test_tables_sort_by_numbers_and_by_names(tab: Tab, page: Path) -> None:
    tab.open(page)
    column = "[...document.querySelectorAll('.front tbody tr')].map((row) => row.cells[%d].textContent)"
    before = tab.run(column % 2)
    for direction in (1, -1):
        tab.run("document.querySelectorAll('.front thead button')[2].click()")
        means = [float(text.replace(",", "")) for text in tab.run(column % 2)]
        assert means == sorted(means, key=lambda value: direction * value)
    tab.run("document.querySelectorAll('.front thead button')[0].click()")
    names = tab.run(column % 0)
    assert names == sorted(names)
    assert sorted(tab.run(column % 2)) == sorted(before)
    assert tab.run("document.querySelector('.front th[aria-sort]').ariaSort") == "ascending"


def test_the_filter_keeps_the_rows_with_the_words(tab: Tab, page: Path) -> None:
    tab.open(page)
    name = tab.run("document.querySelectorAll('.front tbody th')[3].innerText")
    typed = f"(() => {{ const i = document.querySelector('.front input'); i.value = {name.upper()!r}; "
    tab.run(typed + "i.dispatchEvent(new Event('input')); })()")
    rows = tab.run("[...document.querySelectorAll('.front tbody tr:not([hidden])')].map((row) => row.innerText)")
    assert 1 <= len(rows) < 20
    assert all(name in row for row in rows)


def test_what_is_copied_is_the_table(tab: Tab, hostile: Path) -> None:
    tab.open(hostile)
    tab.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    press = "[...document.querySelectorAll('.front button')].find((b) => b.textContent === 'copy %s').click()"
    tab.run(press % "CSV")
    rows = list(csv.reader(io.StringIO(tab.run("copied"))))
    assert sorted(row[0] for row in rows[1:]) == sorted(NAMES)
    tab.run(press % "LaTeX")
    assert 'it\'s "so" \\& so' in tab.run("copied")
    assert "\\toprule" in tab.run("copied")
    tab.run(press % "Markdown")
    assert r"\<script\>" in tab.run("copied")
    tab.run(press % "sentence")
    words = "[...document.querySelectorAll('#sentence > *')].map((e) => e.innerText).join(' ')"
    assert tab.run("copied").split() == tab.run(words).split()


def test_pointing_at_an_algorithm_shows_it_everywhere(tab: Tab, hostile: Path) -> None:
    tab.open(hostile)
    tab.run("document.querySelector('.front tbody tr').dispatchEvent(new Event('mouseover', {bubbles: true}))")
    name = tab.run("document.querySelector('.front tbody tr').dataset.a")
    assert name in NAMES
    on = "[...new Set([...document.querySelectorAll('.on')].map((e) => e.dataset.a))]"
    assert tab.run(on) == [name]
    assert tab.run("document.querySelectorAll('.front svg .on').length") >= 2  # its dot and its name
    tab.run("document.querySelector('h1').dispatchEvent(new Event('mouseover', {bubbles: true}))")
    assert tab.run(on) == []


def test_every_figure_of_algorithms_shows_the_one_that_is_pointed_at(tab: Tab, tmp_path: Path) -> None:
    analysis = analyze(lt.datasets.load_hpo_runs().filter(prior="good"))
    tab.send("Emulation.setFocusEmulationEnabled", enabled=True)  # as in a window that is in front
    tab.open(analysis.save(tmp_path / "report.html"))
    tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
    rows = "document.querySelectorAll('.front tbody tr')"
    names = tab.run(f"[...{rows}].map((row) => row.dataset.a)")
    assert names == list(analysis.decisions.levels)
    figures = "[...document.querySelectorAll('figure')].filter((e) => !e.closest('#diagnostics'))"
    assert tab.run(f"{figures}.length") >= 6
    of = (
        f"{figures}.map((f) => [...new Set([...f.querySelectorAll('.on')].flatMap((e) => [e.dataset.a, e.dataset.b]))])"
    )
    for name in names[:2]:
        tab.run(f"[...{rows}].find((row) => row.dataset.a === {name!r}).focus()")
        assert all(name in shown for shown in tab.run(of))
    tab.run("document.activeElement.blur()")
    assert tab.run("document.querySelectorAll('.on, .pointing').length") == 0
    tab.run("document.querySelector('#pairs .veil[data-b]').dispatchEvent(new Event('mouseover', {bubbles: true}))")
    first, second = tab.run("(({ a, b }) => [a, b])(document.querySelector('#pairs .veil[data-b]').dataset)")
    pairs = "[...document.querySelectorAll('#pairs .veil.on')].map((e) => [e.dataset.a, e.dataset.b])"
    assert tab.run(pairs) == [[first, second]]
    veils = "[...new Set([...document.querySelectorAll('#pairs .veil')].map((e) => [e.matches('.on'), %s].join()))]"
    assert sorted(tab.run(veils % "getComputedStyle(e.querySelector('path')).opacity")) == ["false,0.75", "true,0"]
    titles = "[...document.querySelectorAll('svg [data-a] title')].map((e) => e.textContent)"
    assert all(any(name in title for name in names) for title in tab.run(titles))


QUERIES = "[...document.querySelectorAll('#elsewhere option')].map((e) => e.value).filter(Boolean)"
CHOOSE = """
((query) => { const e = document.querySelector('#elsewhere select'); e.value = query;
  e.dispatchEvent(new Event('change')); })(%r)
"""
CHOSEN = "document.querySelector('#elsewhere select').value"
SHOWN = "[...document.querySelectorAll('.variant tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"


def test_a_variant_in_the_file_is_what_python_says(tab: Tab, small: Path, three: Analysis) -> None:
    tab.open(small)
    ask = explorer(three.table)
    queries = tab.run(QUERIES)
    assert {"alpha=0.01", "alpha=0.1"} < set(queries)
    for query in queries:
        tab.run(CHOOSE % query)
        tab.until(f"document.querySelector('.chosen')?.dataset.query === {query!r}")
        answer = ask("answer", query)
        assert tab.run(SHOWN) == answer["ranking"]["rows"]
        said = " ".join("".join(p if isinstance(p, str) else p[0] for p in text) for text in answer["verdict"])
        assert tab.run("document.querySelector('.variant .sentence').innerText").split() == said.split()
        names = "[...document.querySelectorAll('.variant svg [data-a] title')].map((e) => e.textContent.split(':')[0])"
        assert tab.run(names) == answer["levels"]
        caveat = tab.run("document.querySelector('.variant .exploratory').innerText")
        assert caveat.startswith(f"Exploratory: {', '.join(answer['changes'])}. ")
    assert f" {len(queries)} of the {len(queries)} variants" in caveat
    assert tab.complaints() == []


def test_variants_stand_in_the_address_and_the_way_back_undoes_them(tab: Tab, small: Path) -> None:
    tab.open(small)
    plan = tab.run("document.getElementById('sentence').innerText")
    first, second, *_ = tab.run(QUERIES)
    tab.run("document.querySelector('#elsewhere').open = true")
    for query in (first, second):
        tab.run(f"document.querySelector('tr[data-query=\"{query}\"] button').click()")
        tab.until(f"{CHOSEN} === {query!r}")
        assert tab.run("new URLSearchParams(location.hash.slice(1)).get('variant')") == query
        assert tab.run("document.activeElement.tagName") == "SELECT"
        assert tab.run("document.getElementById('sentence').innerText") == plan
    tab.run("history.back()")
    tab.until(f"{CHOSEN} === {first!r}")
    assert "2 of the " in tab.run("document.querySelector('.variant .exploratory').innerText")  # none counts twice
    tab.run(CHOOSE % "")
    tab.until("document.querySelector('.variant').childElementCount === 0")
    assert tab.run("document.querySelectorAll('.chosen').length") == 0
    for bad in ("nonsense", "%E0%A4%A", "<img src=x onerror=alert(1)>"):
        tab.run(f"location.hash = 'variant=' + {bad!r}")
        tab.until("document.querySelector('.variant').innerText.includes('This file has no variant')")
    assert tab.run("document.querySelectorAll('.variant img').length") == 0
    assert tab.complaints() == []


def test_an_address_opens_the_file_at_its_variant_and_what_is_copied_says_so(tab: Tab, hostile: Path) -> None:
    tab.open("about:blank")
    tab.open(f"{hostile.absolute().as_uri()}#variant=alpha%3D0.01")
    assert tab.run("document.querySelector('#elsewhere').open") is True
    tab.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    tab.run("[...document.querySelectorAll('.variant button')].find((b) => b.textContent === 'copy sentence').click()")
    assert "Exploratory: at alpha = 0.01. 1 of the " in tab.run("copied")
    buttons = "[...document.querySelectorAll('.variant .take button')].map((b) => b.dataset.label)"
    assert tab.run(buttons) == ["copy sentence", "copy CSV", "copy Markdown", "copy LaTeX"]
    for query in tab.run(QUERIES):
        tab.run(CHOOSE % query)
    assert tab.run("document.querySelectorAll('.variant script').length") == 0
    assert tab.complaints() == []


def test_the_keyboard_reaches_badges_tables_and_sections(tab: Tab, page: Path) -> None:
    tab.open(page)
    met = set()
    for _ in range(120):
        tab.key("Tab")
        met.add(tab.run(f"({WHERE})(document.activeElement)"))
    assert {"A.badges", "BUTTON.front", "TR.front", "SUMMARY."} <= met
    tab.run("document.querySelector('details.section > summary').focus()")
    tab.key("Enter", "\r")
    assert tab.run("document.querySelector('details.section').open") is True


def test_a_badge_opens_its_section(tab: Tab, page: Path) -> None:
    tab.open(page)
    target = tab.run("(() => { const a = document.querySelector('.badges a'); a.click(); return a.hash.slice(1); })()")
    tab.run("new Promise((done) => setTimeout(done, 100))")
    assert tab.run(f"document.getElementById('{target}').open") is True


def test_it_can_be_read_aloud(tab: Tab, page: Path) -> None:
    tab.open(page)
    nodes = tab.send("Accessibility.getFullAXTree")["nodes"]
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert all(roles["heading"])
    assert any("Ranking by mean" in name for name in roles["table"])
    assert roles["columnheader"]
    assert roles["rowheader"]
    images = [name for role in ("image", "img") for name in roles.get(role, ())]
    assert images
    assert all(len(name) > 20 for name in images)
    assert all(roles["button"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(tab: Tab, page: Path, scheme: str) -> None:
    tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.open(page)
    tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
    assert tab.run(CONTRAST) == []


def test_without_a_script_everything_is_there(tab: Tab, small: Path) -> None:
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.send("Page.navigate", url=small.absolute().as_uri())
        names: set[str] = set()
        for _ in range(50):
            nodes = tab.send("Accessibility.getFullAXTree")["nodes"]
            names = {str(node.get("name", {}).get("value", "")) for node in nodes}
            if "lmemtest" in " ".join(names) and "What to fix first" in names:
                break
            time.sleep(0.1)
        assert {"What to fix first", "PDF", "rank"} <= names
        assert not any("copy CSV" in name for name in names)  # no button that does nothing
        assert not any("Look at a variant" in name for name in names)
    finally:
        tab.send("Emulation.setScriptExecutionDisabled", value=False)
