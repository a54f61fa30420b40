"""README, docs and examples do what they say: blocks run, outputs are real, links, names and figures exist.

Run as a program (`make pages`, ARGS names a few), it runs the blocks of the pages, writes what they print into the
outputs that the pages show, and keeps the figures that they save. A block `python data` needs tables outside of the
repository: it is run, and its output compared or renewed, only where LMEMTEST_DATA names their folder.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import lmemtest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/developers").glob("*.md"))]
# The gallery, which draws every figure, is run by test_all_figures.py.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "gallery.py")
# With the simulated searches that the figures of the paper need, test_paper_figures.py draws them.
SHORTER = {"tuning_curves_appendix.py": ["--n-draws", "32"]}
EXAMPLE_OF_EVERY_DAY = "marginal_means.py"  # run at level 1; a short one

# Case studies are run by test_notebooks.py, where a kernel is there to run them.
KERNEL = all(importlib.util.find_spec(tool) for tool in ("jupytext", "nbclient", "ipykernel"))

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT_MARK = "<!-- output -->"
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+)\)")
DRAWS = re.compile(r"\bplots\.\w+")  # in a block: it makes a figure
FIGURES = ROOT / "docs" / "figures"
FIGURE_DPI = 144  # two pixels per point, so text is sharp at the width of a page
MOST_PAGES, MOST_WORDS = 30, 78_000  # of users: beside the API, the changelog and the developers' corner
QUESTIONS = (
    *("comparisons", "rankings", "leaderboards", "outperforming", "evaluations", "gate"),
    *("checks", "scores", "failed-runs", "models", "benchmark-effects"),
    *("variation", "planning", "anytime", "tuning-curves"),
)
FIGURE_SIZE, ALL_FIGURES_SIZE = 80_000, 2_500_000  # bytes at most


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language with flags, its text, its line, and whether it is a promised output."""

    info: str
    body: str
    line: int
    is_output: bool


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            info=match["info"].strip(),
            body=match["body"],
            line=text[: match.start()].count("\n") + 1,
            is_output=text[: match.start()].rstrip().endswith(OUTPUT_MARK),
        )
        for match in FENCE.finditer(text)
    ]


def run_page(path: Path, namespace: dict[str, object] | None = None) -> Iterator[tuple[Block, str | None]]:
    """Run the blocks of a page in order, in one namespace and in the working directory; yield what each printed.

    A block that needs tables that are not here is not run: None. Scripts of the examples can be imported.
    """
    namespace = {} if namespace is None else namespace
    namespace["__name__"] = "__page__"
    for block in blocks_of(path.read_text(encoding="utf-8")):
        printed: str | None = ""
        if block.info == "python data" and not os.environ.get("LMEMTEST_DATA"):
            printed = None
        elif block.info in ("python", "python data"):
            out = io.StringIO()
            # the empty lines put the page's line number into the traceback
            code = compile("\n" * block.line + block.body, str(path), "exec")
            with contextlib.redirect_stdout(out), examples_on_path():
                exec(code, namespace)
            printed = out.getvalue()
        elif block.info == "bash":
            for line in block.body.splitlines():
                printed = f"{printed}{run_command(line)}"
        yield block, printed


@contextlib.contextmanager
def examples_on_path() -> Iterator[None]:
    """The scripts of the examples as modules."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT / "examples"))


def run_command(line: str) -> str:
    """Run one `lmemtest ...` line with this Python; anything else in a bash block is a mistake of the page."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    assert words[0] == "lmemtest", f"only lmemtest commands can be checked; mark the block `bash no-run`: {line}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "lmemtest", *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def figures_of(path: Path) -> list[str]:
    """Names of the files in docs/figures that a page shows, in their order."""
    shown = [(path.parent / match["target"]).resolve() for match in IMAGE.finditer(path.read_text(encoding="utf-8"))]
    return [file.name for file in shown if file.parent == FIGURES]


def make_pages(paths: list[Path]) -> None:
    """Run pages, put what their blocks print into the outputs that they show, and their figures into docs/figures.

    The same code and the same versions give the same bytes: pages draw with fixed seeds, and files have no date.
    """
    import matplotlib

    matplotlib.rcParams["savefig.dpi"] = FIGURE_DPI
    FIGURES.mkdir(exist_ok=True)
    for path in paths:
        names, outputs = figures_of(path), list[str | None]()
        printed_before: str | None = ""
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for block, printed in run_page(path):
                    outputs += [printed_before] if block.is_output else []
                    printed_before = printed
                for name in names:
                    write_palette(Path(name), FIGURES / name)
            finally:
                os.chdir(ROOT)
        text = path.read_text(encoding="utf-8")
        path.write_text(with_outputs(text, outputs), encoding="utf-8")
        print(page_id(path), *names)
    shown = {name for path in PAGES for name in figures_of(path)}
    for file in FIGURES.iterdir():
        if file.name not in shown:
            file.unlink()


def with_outputs(text: str, outputs: list[str | None]) -> str:
    """The page with these outputs in place of those that it shows, in order; one that is right or None stays as it is.

    >>> page = f"{OUTPUT_MARK}\\n```text\\nold\\n```\\n"
    >>> with_outputs(page, ["new "]).splitlines()[2]
    'new'
    """
    following = iter(outputs)

    def renewed(match: re.Match[str]) -> str:
        if not text[: match.start()].rstrip().endswith(OUTPUT_MARK):
            return match[0]
        printed = next(following)
        return (
            match[0]
            if printed is None or tidy(printed) == tidy(match["body"])
            else f"```{match['info']}\n{tidy(printed)}\n```"
        )

    return FENCE.sub(renewed, text)


def write_palette(source: Path, target: Path) -> None:
    """Write an image with at most 256 colours and no metadata: a third of the size, and no difference to the eye."""
    from PIL import Image

    with Image.open(source) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(target, optimize=True)


def tidy(text: str) -> str:
    """Text without spaces at the ends of lines and without empty lines around it."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.fixture
def workdir(tmp_path, monkeypatch) -> Path:
    """A temporary working directory, in which the package can still be found, and figures that need no screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    return tmp_path


@pytest.mark.level(2)
@pytest.mark.parametrize(
    "path", [page for page in PAGES if not (KERNEL and page.stem.startswith("case-"))], ids=page_id
)
@pytest.mark.usefixtures("workdir")
def test_the_blocks_of_a_page_run_and_print_what_it_shows(path: Path) -> None:
    last: str | None = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block, printed in run_page(path):
            if block.is_output and last is not None:
                assert tidy(last) == tidy(block.body), f"{page_id(path)}, line {block.line}: the output is another now"
            last = printed
    assert [name for name in figures_of(path) if not Path(name).is_file()] == [], "shown, but no block saves it"


def test_blocks_are_marked_in_a_way_that_is_known() -> None:
    known = {"python", "python data", "python no-run", "bash", "bash no-run", "text"}
    offenders = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        blocks = blocks_of(text)
        offenders += [
            f"{page_id(path)}, line {block.line}: {block.info}" for block in blocks if block.info not in known
        ]
        if text.count("```") != 2 * len(blocks):
            offenders.append(f"{page_id(path)}: a block is not closed")
        if len(re.findall(rf"^{OUTPUT_MARK}$", text, re.MULTILINE)) != sum(block.is_output for block in blocks):
            offenders.append(f"{page_id(path)}: a mark of an output stands before no block")
    assert offenders == []


# ------------------------------------------------------------------------------------------------------- links


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_relative_links_lead_somewhere() -> None:
    broken = []
    for path in PAGES:
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:|generated/", link):  # what the site makes is there when it is built (test_site)
                continue
            target, _, anchor = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{page_id(path)}: {link}")
    assert broken == []


def test_every_page_of_the_users_is_one_click_from_the_start_page_and_there_are_few_of_them() -> None:
    docs = ROOT / "docs"
    texts = {path: path.read_text(encoding="utf-8") for path in docs.glob("*.md")}
    start, corner = texts[docs / "index.md"], (docs / "developers" / "index.md").read_text(encoding="utf-8")
    listed = {path.name for path in texts} - {"index.md", "api.md", "changelog.md"}
    assert [name for name in sorted(listed) if f"({name}" not in start] == []
    deeper = {path.name for path in (docs / "developers").glob("*.md")} - {"index.md"}
    assert [name for name in sorted(deeper) if f"({name})" not in corner] == []
    assert len(listed) + 1 <= MOST_PAGES
    words = sum(len(texts[docs / name].split()) for name in (*listed, "index.md"))
    assert words <= MOST_WORDS, "long argument, derivations and tables of simulations belong to docs/developers"


def test_a_question_page_says_in_one_form_what_to_call_and_how_it_misleads() -> None:
    """What follows its title: the call, how to read the answer, how it misleads, what it assumes."""
    form = ["The call", "How to read it", "How it misleads", "What it assumes"]
    without = []
    for name in QUESTIONS:
        opening = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split("\n## ")[0]
        if re.findall(r"^\*\*([^*]+)\.\*\*", opening, re.MULTILINE)[:4] != form:
            without.append(name)
    assert without == []


def test_a_blank_line_ends_a_table_and_no_line_within_a_paragraph_begins_a_list() -> None:
    """What follows a table becomes a row of it; a line that begins with "1. " or "* " after a line break, a list."""
    offenders = []
    for path in PAGES:
        text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
        lines = text.split("\n")
        for number, (before, line) in enumerate(itertools.pairwise(lines), start=2):
            follows_table = before.startswith("|") and line.strip() and not line.startswith("|")
            breaks = before[:1].isalpha() and re.match(r"(1\.|[*+]) ", line)
            if follows_table or breaks:
                offenders.append(f"{page_id(path)}, line {number}: {line:.40}")
    assert offenders == []


# ----------------------------------------------------------------------------------------------------- figures


def test_images_exist_and_say_in_words_what_is_seen() -> None:
    offenders = []
    for path in PAGES:
        for image in IMAGE.finditer(FENCE.sub("", path.read_text(encoding="utf-8"))):
            if not (path.parent / image["target"]).is_file():
                offenders.append(f"{image['target']} is missing; `make pages` makes it")
            if len(image["alt"].split()) < 5:
                offenders.append(f"{image['target']}: the text in [] must say what the figure shows")
    assert offenders == []


def test_a_block_that_draws_is_followed_by_its_figure() -> None:
    offenders = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            after = text[block.end() :].split("```python", maxsplit=1)[0]
            draws = block["info"].strip() == "python" and DRAWS.search(block["body"])
            if draws and not IMAGE.search(after):
                line = text[: block.start()].count("\n") + 1
                offenders.append(f"{page_id(path)}, line {line}: draws a figure that the page does not show")
    assert offenders == []


def test_every_figure_is_shown_and_small() -> None:
    shown = {name for path in PAGES for name in figures_of(path)}
    sizes = {file.name: file.stat().st_size for file in FIGURES.iterdir()}
    assert sorted(set(sizes) - shown) == []
    assert [name for name, size in sizes.items() if size > FIGURE_SIZE] == []
    assert sum(sizes.values()) <= ALL_FIGURES_SIZE


# ---------------------------------------------------------------------------------------------- names and commands


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in ("README.md", "docs/developers/contributing.md"):
        # commands only: in an indented block or in backticks, not "make" as a word
        text = (ROOT / page).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^    |`)make ([a-z0-9-]+)", text, re.MULTILINE))
        assert named, page
        assert named <= targets, page


def test_tests_that_the_pages_name_exist() -> None:
    missing = []
    for path in PAGES:
        for file, test in set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", path.read_text(encoding="utf-8"))):
            if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
                missing.append(f"{page_id(path)}: {file}::{test}")
    assert missing == []


def test_every_public_name_is_in_the_api_page() -> None:
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in lmemtest.__all__ if f"| `{name}` |" not in api] == []
    plots = next(line for line in api.splitlines() if line.startswith("| `plots`"))
    drawn = [name for name in lmemtest.plots.__all__ if name.endswith(("_plot", "_diagram"))]
    assert [name for name in drawn if f"`{name}`" not in plots] == []


def test_every_public_function_has_an_example() -> None:
    """Doctests of the modules run elsewhere; here: each public callable has one."""
    without = []
    for name in lmemtest.__all__:
        thing = getattr(lmemtest, name)
        if not isinstance(thing, types.ModuleType) and not doctest.DocTestParser().get_examples(thing.__doc__ or ""):
            without.append(name)
    assert without == []


def test_the_api_page_lists_every_exception() -> None:
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    errors = importlib.import_module("lmemtest.errors")
    raised = [n for n, x in vars(errors).items() if isinstance(x, type) and issubclass(x, errors.LmemtestError)]
    assert [name for name in raised if f"`{name}`" not in api] == []


def test_the_changelog_names_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == lmemtest.__version__


def test_functions_of_formulas_are_those_of_the_allow_list() -> None:
    from lmemtest.lmm.formula.functions import ALLOWED, CONTRASTS

    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    section = page.split("## Functions")[1].split("\n## ")[0]
    assert [name for name in (*ALLOWED, *CONTRASTS) if not re.search(rf"(?<![\w.]){re.escape(name)}\b", section)] == []


# ---------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.level(1 if p.name == EXAMPLE_OF_EVERY_DAY else 2)) for p in EXAMPLES],
    ids=page_id,
)
def test_an_example_runs(path, workdir, monkeypatch, capsys):
    """As a script, in this process: starting another one for each takes longer than most of them."""
    monkeypatch.chdir(workdir)
    monkeypatch.setattr(sys, "argv", [str(path), *SHORTER.get(path.name, [])])
    if path.name == "four_verdicts.py":  # with its table it takes long, and is run by test_default_comparison.py
        monkeypatch.delenv("LMEMTEST_DATA", raising=False)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


# ---------------------------------------------------------------------- the page of claims


CLAIMS = (ROOT / "docs" / "developers" / "claims.md").read_text()
MODULES = {path: path.read_text() for path in sorted((ROOT / "lmemtest").rglob("*.py"))}
# What is said there is in the rows of these functions; without one, modules that describe and claim nothing.
SAID_BY = {
    "adequacy": "headline",
    "algorithms": "robustness",
    "curve_labels": "labels",
    "effect_size": "outperforming",
    "over_benchmarks": "outperforming",
    "samples": "outperforming",
    "tiers": "gate",
    "sign_flips": "permutation_test",
    "words": "evaluate",
    **dict.fromkeys(("_rows", "check", "copies", "fit", "traces")),
}
SPEAKS = re.compile(r"def sentences?\(self|\bfindings=")


def test_functions_and_simulations_exist():
    files = set(re.findall(r"`((?:tests/\w+/)?test_\w+\.py)`", CLAIMS))
    assert len(files) > 15
    for name in files:
        assert (ROOT / (name if "/" in name else f"tests/simulation/{name}")).is_file(), name
    code = "\n".join(MODULES.values())
    for name in re.findall(r"\(`(\w+)`", CLAIMS):
        assert f"def {name}(" in code, name


def test_every_module_that_makes_sentences_is_on_the_page():
    speaking = {
        path: text
        for path, text in MODULES.items()
        if SPEAKS.search(text) and "core" not in path.parts  # which says nothing of its own
    }
    assert len(speaking) > 20
    for path, text in speaking.items():
        names = re.findall(r"^(?:def|class) ([A-Za-z]\w*)", text, flags=re.MULTILINE)
        names = [SAID_BY[path.stem]] if path.stem in SAID_BY else names
        assert names == [None] or any(re.search(rf"\b{name}\b", CLAIMS) for name in names), (path.name, names)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    make_pages([path for path in PAGES if not sys.argv[1:] or path.name in sys.argv[1:]])
