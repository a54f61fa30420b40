"""The explorer in a real browser: every control, the way back, bad addresses, two pages, slow and ended servers."""

from __future__ import annotations

import base64
import json
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from study import make_runs

import lmemtest as lt
from lmemtest.bench.data.guessing import guess
from lmemtest.report.explore import explorer, plan_of
from lmemtest.report.render import resource
from lmemtest.report.serve import serving
from tests.browser import Tab, chromium
from tests.report.test_browser import CONTRAST, NAMES, WIDER

pytestmark = pytest.mark.level(2)

VERDICT = "document.querySelector('.sentence').innerText.replace(/\\s+/g, ' ').trim()"
SETTLED = "document.querySelector('.status')?.textContent === '' && document.querySelector('.badges') !== null"
KEPT = """[...document.querySelectorAll('.controls [name="%s"]')].filter((e) => e.checked).map((e) => e.value)"""
FIELDS = "[...new URLSearchParams(location.search)]"
CHANGE = """
((name, value) => { const e = [...document.querySelectorAll('.controls [name]')].find((e) => e.name === name &&
  (e.type !== 'checkbox' || e.value === value)); if (e.type === 'checkbox') e.click(); else { e.value = value;
  e.dispatchEvent(new Event('change', {bubbles: true})); } })(%s, %s)
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    """Runs in which every role has a column."""
    return make_runs(3, 3, 3, families=[2] * 8, budgets=2, priors=2, shift=[0.0, 0.4, 1.5], metafeatures=("prior",))


@pytest.fixture(scope="module")
def ask(runs: lt.Runs) -> Any:
    return explorer(runs, source={"path": "runs.csv", "line": shlex.join})


@pytest.fixture(scope="module")
def address(ask: Any) -> Iterator[str]:
    with serving(ask, "Algorithms by loss") as opened:
        yield opened


def change(tab: Tab, name: str, value: str) -> None:
    """Change a control, and wait for all that follows."""
    tab.run("document.querySelector('.badges')?.remove()")
    tab.run(CHANGE % (json.dumps(name), json.dumps(value)))
    tab.until(SETTLED)


def visit(tab: Tab, address: str, *size: int) -> None:
    tab.open(address, *size)
    tab.until(SETTLED)


def said(ask: Any, query: str | list[list[str]]) -> str:
    """The verdict of the whole analysis of a state, as text."""
    query = query if isinstance(query, str) else urlencode([tuple(field) for field in query])
    texts = ask("checks", query)["verdict"]
    return " ".join("".join(p if isinstance(p, str) else p[0] for p in text) for text in texts)


def complaints(tab: Tab) -> list[str]:
    return [text for text in tab.complaints() if not text.startswith("http://127.0.0.1:")]


CONTROLS = [
    *(
        ("benchmark.benchmark", "b03", [["without.benchmark", "b03"]]),
        ("family.family", "f2", [["without.family", "f2"]]),
    ),
    *(("algorithm.algorithm", "C", [["without.algorithm", "C"]]), ("seed.seed", "1", [["without.seed", "1"]])),
    *(("budget.budget", "2", [["without.budget", "2"]]), ("metafeature.prior", "p1", [["without.prior", "p1"]])),
    *(("scale", "rank", None), ("population", "benchmark", None), ("curves", "last", None), ("adjust", "holm", None)),
    *(("vcov", "model", None), ("ddf", "residual", None), ("alpha", "0.01", None), ("reference", "B", None)),
    ("formula", "loss ~ algorithm + (1 | benchmark)", None),
    ("role.prior", "ignore", None),
    ("direction", "maximize", None),
]


def test_every_control_shows_what_python_says_and_stands_in_the_address(tab: Tab, address: str, ask: Any) -> None:
    visit(tab, address)
    names = set(tab.run("[...document.querySelectorAll('.controls :is(input, select)')].map((e) => e.name)"))
    columns = {f"role.{column}" for column, _ in ask("answer", "")["controls"]["roles"]}
    assert names == {name for name, *_ in CONTROLS} | columns
    for name, value, fields in CONTROLS:
        visit(tab, address)
        change(tab, name, value)
        now = tab.run(FIELDS)
        assert now == (fields or [[name, value]])
        assert tab.run(VERDICT) == said(ask, now)
        answer = ask("answer", urlencode([tuple(field) for field in now]))
        rows = tab.run(
            "[...document.querySelectorAll('.front tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
        )
        assert rows == answer["ranking"]["rows"]
        if name != "reference":
            assert "Exploratory: " in tab.run("document.querySelector('.exploratory').innerText")
            assert tab.run("document.querySelector('.plan').innerText").startswith("As planned: ")
        assert complaints(tab) == []


def test_changes_add_up_and_the_way_back_undoes_them(tab: Tab, address: str, ask: Any) -> None:
    visit(tab, address)
    change(tab, "benchmark.benchmark", "b01")
    change(tab, "benchmark.benchmark", "b02")
    change(tab, "alpha", "0.01")
    last = tab.run(FIELDS)
    assert last == [["without.benchmark", "b01"], ["without.benchmark", "b02"], ["alpha", "0.01"]]
    assert tab.run("document.activeElement.tagName") in ("BODY", "INPUT")
    for expected in (last[:2], last[:1], []):
        tab.run("document.querySelector('.badges').remove(), history.back()")
        tab.until(SETTLED)
        assert tab.run(FIELDS) == expected
        assert tab.run(VERDICT) == said(ask, expected)
        off = "[...document.querySelectorAll('.controls [name^=\"benchmark.\"]')].filter((e) => !e.checked)"
        assert tab.run(f"{off}.map((e) => e.value)") == [value for _, value in expected]
        assert tab.run("document.querySelector('[name=alpha]').value") == "0.05"
    tab.run("document.querySelector('.badges').remove(), history.forward()")
    tab.until(SETTLED)
    assert tab.run(FIELDS) == last[:1]


def test_few_levels_are_named_by_what_is_kept(tab: Tab, address: str) -> None:
    visit(tab, f"{address}?without.family=f0&without.family=f1&without.family=f2&without.family=f3")
    change(tab, "family.family", "f4")
    change(tab, "family.family", "f5")
    assert tab.run(FIELDS) == [["only.family", "f6"], ["only.family", "f7"]]
    tab.run("document.querySelector('.badges').remove(), document.querySelector('[data-column=family] button').click()")
    tab.until(SETTLED)
    assert tab.run(FIELDS) == []


def test_a_bad_address_is_told_and_the_rest_is_used(tab: Tab, address: str) -> None:
    visit(tab, f"{address}?bogus=<img src=x onerror=alert(1)>&alpha=0.01&scale=wrong")
    text = tab.run("document.querySelector('[role=alert]').innerText")
    assert "bogus=<img src=x onerror=alert(1)> in the address is not used." in text
    assert "scale=wrong in the address is not used. “score scale” must be" in text
    assert tab.run("document.querySelectorAll('[role=alert] img').length") == 0
    assert tab.run("document.querySelector('[name=alpha]').value") == "0.01"
    change(tab, "ddf", "residual")
    assert tab.run(FIELDS) == [["alpha", "0.01"], ["ddf", "residual"]]
    assert tab.run("document.querySelector('[role=alert]').innerText") == ""


def test_an_error_stands_there_and_the_last_answer_stays(tab: Tab, address: str) -> None:
    visit(tab, f"{address}?without.algorithm=A")
    before = tab.run(VERDICT)
    tab.run(CHANGE % ('"algorithm.algorithm"', '"B"'))
    tab.until("document.querySelector('[role=alert]').innerText.includes('one algorithm only')")
    assert tab.run(VERDICT) == before
    assert tab.run("document.querySelector('.results').classList.contains('stale')") is True
    change(tab, "algorithm.algorithm", "B")
    assert tab.run("document.querySelectorAll('.stale').length") == 0
    assert tab.run("document.querySelector('[role=alert]').innerText") == ""


def test_a_plan_without_an_answer_can_be_mended(tab: Tab) -> None:
    frame = make_runs(3, 8, 3).to_frame()
    frame["one"] = "same"
    wrong = lt.Runs(frame.assign(text="x"), score="loss", direction="minimize", algorithm="algorithm", seed="seed",
                    ignore=("one", "text", "benchmark"))  # fmt: skip
    with serving(explorer(wrong, plan={"population": "benchmark"}), "mend") as opened:
        tab.open(opened)
        tab.until("document.querySelector('[role=alert]')?.innerText.includes('No answer')")
        change(tab, "role.benchmark", "benchmark")
        assert tab.run("document.querySelectorAll('.front tbody tr').length") == 3


def test_an_address_whose_roles_have_no_reading_can_be_mended(tab: Tab, address: str, ask: Any) -> None:
    tab.open(f"{address}?role.algorithm=ignore&alpha=0.01")
    tab.until("document.querySelector('[role=alert]')?.innerText.includes('There is no algorithm.')")
    assert tab.run("document.querySelector('[name=\"role.algorithm\"]').value") == "ignore"
    change(tab, "role.algorithm", "algorithm")
    assert tab.run(VERDICT) == said(ask, "alpha=0.01")


def test_the_way_back_to_an_error_shows_the_controls_that_led_to_it(tab: Tab, address: str) -> None:
    visit(tab, f"{address}?without.algorithm=A")
    tab.run(CHANGE % ('"algorithm.algorithm"', '"B"'))
    tab.until("document.querySelector('[role=alert]').innerText.includes('one algorithm only')")
    change(tab, "algorithm.algorithm", "B")
    tab.run("history.back()")
    tab.until("document.querySelector('[role=alert]').innerText.includes('one algorithm only')")
    assert tab.run(KEPT % "algorithm.algorithm") == ["C"]


def test_the_plan_is_one_step_away_with_the_roles_as_they_are(tab: Tab, address: str, ask: Any) -> None:
    visit(tab, f"{address}?role.prior=ignore&alpha=0.01&without.benchmark=b03&scale=rank")
    tab.run("document.querySelector('.badges').remove(), document.querySelector('.again').click()")
    tab.until(SETTLED)
    assert tab.run(FIELDS) == [["role.prior", "ignore"]]
    assert tab.run(VERDICT) == said(ask, "role.prior=ignore")
    assert tab.run("document.querySelector('.exploratory').innerText").startswith("Exploratory: prior ignored.")


def test_from_an_address_without_an_answer_the_plan_is_one_step_away(tab: Tab, address: str, ask: Any) -> None:
    for query in ("adjust=tukey&vcov=moderated", "role.loss=none"):
        tab.open(f"{address}?{query}")
        tab.until("document.querySelector('.callout-error') !== null")
        tab.run("document.querySelector('.again').click()")
        tab.until(SETTLED)
        assert tab.run(FIELDS) == []
        assert tab.run(VERDICT) == said(ask, "")


def test_a_choice_of_one_begins_with_none(tab: Tab, address: str) -> None:
    visit(tab, address)
    looked = tab.run("document.querySelector('.exploratory').innerText")
    tab.run("document.querySelector('[data-column=budget] button[value=false]').click()")
    assert tab.run(KEPT % "budget.budget") == []
    assert tab.run("document.querySelector('[data-column=budget]').innerText").endswith("Choose one at least.")
    assert tab.run("document.querySelector('.exploratory').innerText") == looked
    change(tab, "budget.budget", "2")
    assert tab.run(FIELDS) == [["without.budget", "1"]]
    assert tab.run(KEPT % "budget.budget") == ["2"]


def test_what_is_recommended_is_named_and_a_control_in_use_stays_so(tab: Tab, address: str) -> None:
    visit(tab, address)
    first = "[...document.querySelectorAll('.controls select[name=%s] option')][0].textContent"
    assert tab.run(first % "population") == "recommended: new families"
    assert tab.run(first % "adjust") == "recommended: stepdown"
    tab.run(
        "document.querySelector('[data-column=budget] summary').focus(), document.querySelector('.badges').remove()"
    )
    tab.run(CHANGE % ('"population"', '"run"'))
    tab.until(SETTLED)
    assert tab.run("document.activeElement.parentElement.dataset.column") == "budget"
    tab.run("document.querySelector('.badges').remove(), document.querySelector('[data-column$=tests]').open = true")
    tab.run("document.querySelector('[name=formula]').focus()")
    tab.run("document.activeElement.value = 'loss ~ '")
    tab.run(CHANGE % ('"ddf"', '"residual"'))
    tab.until(SETTLED)  # an answer that arrives while something is typed
    assert tab.run("document.activeElement.name + ': ' + document.activeElement.value") == "formula: loss ~ "


def test_doubts_about_columns_are_said_until_one_is_chosen(tab: Tab) -> None:
    frame = make_runs(3, 6, 3).to_frame().assign(accuracy=lambda table: -table["loss"])
    readings = guess(frame).readings
    with serving(explorer(lt.Runs(frame, **readings[0].roles), source={"doubts": readings}), "doubts") as opened:
        visit(tab, opened)
        alert = "document.querySelector('[role=alert]').innerText"
        assert "Otherwise: 'accuracy' is the score." in tab.run(alert)
        assert tab.run("document.querySelector('[data-column$=roles]').open") is True
        change(tab, "role.accuracy", "score")
        assert tab.run(alert) == ""
        assert tab.run("document.querySelector('[name=direction]').value") == "maximize"


def test_two_pages_at_once_have_a_state_each_and_one_count(tab: Tab, runs: lt.Runs) -> None:
    ask = explorer(runs)
    with serving(ask, "two") as opened:
        visit(tab, f"{opened}?alpha=0.01")
        other = tab.another()
        try:
            visit(other, f"{opened}?alpha=0.1")
            for page, value in ((tab, "holm"), (other, "fdr")):
                page.run("document.querySelector('.badges').remove()")
                page.run(CHANGE % ('"adjust"', json.dumps(value)))
            for page, alpha, value in ((tab, "0.01", "holm"), (other, "0.1", "fdr")):
                page.until(SETTLED)
                assert page.run(FIELDS) == [["alpha", alpha], ["adjust", value]]
                assert page.run(VERDICT) == said(ask, f"alpha={alpha}&adjust={value}")
            assert ask("answer", "")["looked"] == 4
        finally:
            other.socket.close()


@contextmanager
def held(ask: Any, query: str) -> Iterator[tuple[Callable[..., Any], threading.Event]]:
    """The same, but the answer to one query waits."""
    go = threading.Event()

    def slow(what: str, asked: str) -> Any:
        if asked == query and what == "answer":
            go.wait(20)
        return ask(what, asked)

    yield slow, go


def test_a_slow_answer_says_so_and_never_replaces_a_newer_one(tab: Tab, ask: Any) -> None:
    with held(ask, "adjust=holm") as (slow, go), serving(slow, "slow") as opened:
        visit(tab, opened)
        tab.run(CHANGE % ('"adjust"', '"holm"'))
        tab.until("document.querySelector('.status').textContent === 'working …'")
        tab.until("/^working … [1-9]\\d* s$/.test(document.querySelector('.status').textContent)")
        change(tab, "vcov", "model")
        assert tab.run(FIELDS) == [["adjust", "holm"], ["vcov", "model"]]
        go.set()
        tab.run("new Promise((done) => setTimeout(done, 500))")
        assert tab.run("document.querySelector('[name=vcov]').value") == "model"
        assert tab.run(VERDICT) == said(ask, "adjust=holm&vcov=model")


def test_an_ended_server_is_told_and_the_last_answer_stays(tab: Tab, ask: Any) -> None:
    with serving(ask, "ended") as opened:
        visit(tab, opened)
        before = tab.run(VERDICT)
    tab.run(CHANGE % ('"alpha"', '"0.01"'))
    tab.until("document.querySelector('[role=alert]').innerText.includes('The explorer has been closed.')")
    assert tab.run("document.querySelector('[role=alert]').innerText").endswith("add to it: ?alpha=0.01")
    assert tab.run(VERDICT) == before
    assert tab.run("document.querySelector('.results').classList.contains('stale')") is True


def test_what_is_copied_says_what_it_is(tab: Tab, address: str, ask: Any) -> None:
    visit(tab, f"{address}?alpha=0.01")
    tab.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    press = "[...document.querySelectorAll('button')].find((b) => b.textContent === 'copy %s').click()"
    tab.run(press % "sentence")
    assert "Exploratory: at alpha = 0.01." in tab.run("copied")
    for what, key in (("as Python", "python"), ("as command", "command")):
        tab.run(press % what)
        assert tab.run("copied") == ask("answer", "alpha=0.01")["code"][key]


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_stay_text_and_nothing_overflows(tab: Tab, width: int, scheme: str) -> None:
    tab.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    table = make_runs(NAMES, 8, 3)
    with serving(explorer(table), NAMES[0]) as opened:
        visit(tab, opened, width)
        tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(WIDER) == []
        assert tab.run(CONTRAST) == []
        assert complaints(tab) == []
        assert tab.run("document.querySelectorAll('main script').length") == 0
        on = "[...new Set([...document.querySelectorAll('.on')].map((e) => e.dataset.a))]"
        tab.run("document.querySelector('.front tbody tr').dispatchEvent(new Event('mouseover', {bubbles: true}))")
        assert tab.run(on) == [tab.run("document.querySelector('.front tbody tr').dataset.a")]
    tab.send("Emulation.setEmulatedMedia", features=[])


ALIKE = (  # by what follows where they differ, by their ends, by a number where two places differ
    *(f"resnet50_pretrained_{name}_finetuned_on_images" for name in ("adam", "sgd")),
    *(f"transformer_with_a_long_beginning_{i}" for i in (1, 2)),
    *(f"boosted_trees_{x}_with_a_middle_that_is_long_{y}" for x in "xy" for y in "12"),
)


def test_long_names_that_are_alike_in_places_never_look_the_same(tab: Tab) -> None:
    with serving(explorer(make_runs(ALIKE, 4, 2)), "long names") as opened:
        visit(tab, opened)
        tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
        figures = (
            "[...document.querySelectorAll('figure svg')].map((figure) => [...figure.querySelectorAll('g[data-a]')]"
        )
        texts = ".map((row) => [row.dataset.a, row.querySelector(':scope > text').textContent]))"
        drawn = [dict(rows) for rows in tab.run(figures + texts) if rows]
        assert len(drawn) >= 3  # differences, diagram, matrix
        for figure in drawn:
            assert set(figure) <= set(ALIKE)
            assert len(set(figure.values())) == len(figure) >= len(ALIKE) - 1
            assert "adam" in figure[ALIKE[0]]
            assert "sgd" in figure.get(ALIKE[1], "sgd")


def test_it_can_be_read_aloud_and_used_by_keyboard(tab: Tab, address: str) -> None:
    visit(tab, address)
    for name in "ABC":
        texts = f"[...e.querySelectorAll('text')].some((text) => text.textContent === '{name}')"
        assert tab.run(f"[...document.querySelectorAll('svg')].map((e) => {texts})") == [True, True, True]
    tab.run("document.querySelectorAll('details').forEach((section) => section.open = true)")
    roles: dict[str, list[str]] = {}
    for node in tab.send("Accessibility.getFullAXTree")["nodes"]:
        if not node.get("ignored"):
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role in ("combobox", "checkbox", "spinbutton", "textbox", "button", "table"):
        assert roles[role], role
        assert all(name.strip() for name in roles[role]), role
    images = [name for role in ("image", "img") for name in roles.get(role, ())]
    assert len(images) == 3
    assert all(len(name) > 20 for name in images)
    assert tab.run("document.querySelector('.sentence').getAttribute('aria-live')") == "polite"
    met = set()
    for _ in range(100):
        tab.key("Tab")
        met.add(tab.run("document.activeElement.tagName + '.' + (document.activeElement.type ?? '')"))
    assert {"SELECT.select-one", "INPUT.checkbox", "INPUT.number", "INPUT.text", "SUMMARY.", "BUTTON.button"} <= met


def test_a_table_of_a_million_rows_stays_where_it_is(tab: Tab) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE runs AS SELECT 'A' || (i % 5) AS algorithm, 'b' || ((i // 5) % 20) AS benchmark, "
        "i // 100 AS seed, "
        "(i % 5) * 0.1 + ((i // 5) % 20) + ((i * 7919) % 1009) / 1009.0 AS loss FROM range(1000000) t(i)"
    )
    roles: dict[str, Any] = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    table = lt.Runs(connection.table("runs"), score="loss", direction="minimize", **roles)
    ask = explorer(table)
    with serving(ask, "a million") as opened:
        visit(tab, opened)
        change(tab, "benchmark.benchmark", "b7")
        assert tab.run(FIELDS) == [["without.benchmark", "b7"]]
        assert "10,000 values" in tab.run("document.querySelector('[data-column=seed]').textContent")
        codes = ask("answer", "without.benchmark=b7")["matrix"]["codes"]
    part = lt.Runs(connection.table("runs").filter("benchmark <> 'b7'"), score="loss", direction="minimize", **roles)
    assert codes == lt.variant(part).decisions().codes.tolist()


FAKE = """
(async () => {
  const { default: made } = await import("data:text/javascript;base64,%s");
  const traits = %s, answers = %s, heard = {};
  window.model = { get: (name) => traits[name], set: (name, value) => { traits[name] = value; },
    on: (name, call) => (heard[name] ??= []).push(call),
    off: (name, call) => { heard[name] = heard[name].filter((c) => c !== call); },
    save_changes: () => setTimeout(() => {
      for (const [key, place] of [["state", "answer"], ["wanted", "checks"]]) {
        traits[place] = answers[place][traits[key]] ?? traits[place];
        for (const call of heard[`change:${place}`] ?? []) call();
      } }, 20) };
  window.el = document.createElement("div");
  document.body.replaceChildren(el);
  made.render({ model, el });
})()
"""


def test_the_same_page_works_in_a_notebook(tab: Tab, runs: lt.Runs) -> None:
    analysis = lt.analyze(runs)
    ask, states = explorer(runs, plan=plan_of(analysis)), ("", "adjust=holm")
    answers = {"answer": {q: ask("answer", q) for q in states}, "checks": {q: ask("checks", q) for q in states}}
    module = f"{resource('report.js')}\n{resource('explore.js')}\nexport default {{ render: inNotebook }};\n"
    traits = {
        "state": "",
        "wanted": "?",
        "answer": answers["answer"][""],
        "checks": {},
        "title": "T",
        "style_text": f"{resource('report.css')}\n{resource('explore.css')}",
    }
    tab.open("about:blank", 1500, 1300)
    tab.run(FAKE % (base64.b64encode(module.encode()).decode(), json.dumps(traits), json.dumps(answers)))
    inside = SETTLED.replace("document.", "el.shadowRoot.")
    tab.until(inside)
    tab.run("el.shadowRoot.querySelector('.badges').remove()")
    tab.run((CHANGE % ('"adjust"', '"holm"')).replace("document.", "el.shadowRoot."))
    tab.until(inside)
    assert tab.run("model.get('state')") == "adjust=holm"
    assert tab.run(VERDICT.replace("document.", "el.shadowRoot.")) == said(ask, "adjust=holm")
    assert parse_qsl(tab.run("model.get('wanted')")) == [("adjust", "holm")]
    assert tab.run("el.shadowRoot.querySelector('[role=alert]').innerText") == ""
    page = "el.shadowRoot.querySelector('.page')"
    for width in (1050, 700, 390):  # of a cell, in a window that is wider
        tab.run(f"el.style.width = '{width}px'")
        assert tab.run(f"{page}.scrollWidth <= {page}.clientWidth && {page}.clientWidth === {width}")
        texts = f"[...{page}.querySelectorAll('.front svg text')].map((e) => e.getBoundingClientRect().height)"
        assert min(tab.run(texts)) > 9.0
