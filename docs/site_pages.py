"""Pages of the site that are made of the package: API, gallery, sample report, notebooks, llms.txt, in `generated`."""

from __future__ import annotations

import ast
import csv
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import lmemtest as lt

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
import gallery  # noqa: E402
import notebooks  # noqa: E402

FAMILIES = ("tuning", "lmm", "plots", "importers", "datasets", "errors")
TITLE = re.compile(r"\A# ([^\n]+)\n+(.+?)(?:\n\n|\Z)", re.DOTALL)
CARD = re.compile(r"\]\((?P<up>(?:\.\./)+)lmemtest/bench/data/bundled/(?P<name>\w+)\.md\)")
FOLDER = re.compile(r"\[(?P<text>[^\]]*)\]\((?:\.\./)+(?P<path>examples(?:/\w+)*|tests[\w/.]*?)/?\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def write(docs: Path) -> None:
    """Write all of them anew."""
    folder = docs / "generated"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("api", "figures", "extra"):
        (folder / part).mkdir(parents=True)
    shutil.copytree(ROOT / "lmemtest" / "bench" / "data" / "bundled", folder / "data", ignore=no_pages)
    shutil.copy(ROOT / "CHANGELOG.md", folder / "changelog.md")
    (folder / "words.md").write_text(words_of_pages(docs), encoding="utf-8")
    write_api(folder / "api")
    write_gallery(folder)
    lt.analyze(_sample()).save(folder / "extra" / "sample-report.html")
    notebooks.write(folder / "extra" / "notebooks")
    (folder / "extra" / "llms.txt").write_text(llms(docs), encoding="utf-8")


def no_pages(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".md")]


def words_of_pages(docs: Path) -> str:
    """How many words each page has, for users and in depth, and how many the pages had of which it was made."""
    with (ROOT / "tests" / "reference" / "words_of_pages.csv").open(encoding="utf-8", newline="") as file:
        before = list(csv.DictReader(file))
    now = {
        part: {page.stem: len(page.read_text(encoding="utf-8").split()) for page in sorted((docs / part).glob("*.md"))}
        for part in ("", "developers")
    }
    (users, of_users), (others, in_depth) = ((len(pages), sum(pages.values())) for pages in now.values())
    lines = [
        f"# Words of the pages\n\n{users} pages for users, with the start page, have {of_users:,} words (at most "
        f"31 and 80,000); {others} in depth have {in_depth:,}. Before they were sorted by question, {len(before)} "
        f"pages had {sum(int(row['words']) for row in before):,}. Code, tables and outputs count.\n\n"
        "| page | words | in depth | made of pages with words |\n|---|---|---|---|",
    ]
    for name in dict.fromkeys([*now[""], *now["developers"]]):
        made_of = ", ".join(f"{row['page']} {int(row['words']):,}" for row in before if row["now"] == name)
        counts = [f"{now[part][name]:,}" if name in now[part] else "" for part in now]
        lines.append(f"| {name} | {' | '.join(counts)} | {made_of} |")
    return "\n".join(lines) + "\n"


def _sample() -> lt.Runs:
    """The runs of the first page."""
    return lt.datasets.load_hpo_runs().filter(budget=8, prior="good").normalize("rank")


# ------------------------------------------------------------------------------------------------------- API


def names() -> Iterator[tuple[str, object]]:
    """Every public function and class by its full name."""
    for name in lt.__all__:
        if not isinstance(getattr(lt, name), ModuleType):
            yield f"lmemtest.{name}", getattr(lt, name)
    for family in FAMILIES:
        module = getattr(lt, family)
        for name in getattr(module, "__all__", None) or sorted(vars(module)):
            thing = getattr(module, name)
            of_errors = isinstance(thing, type) and issubclass(thing, (Exception, Warning))
            if callable(thing) and not name.startswith("_") and (family != "errors" or of_errors):
                yield f"lmemtest.{family}.{name}", thing


def result_of(thing: object) -> str | None:
    """The full name of the class that a function returns, if it has verbs of its own."""
    if not inspect.isfunction(thing):
        return None
    said = str(inspect.signature(thing).return_annotation).split(" | ")[0]
    module = inspect.getmodule(thing)
    found = getattr(module, said, None)
    if not isinstance(found, type) or not found.__module__.startswith("lmemtest") or said in ("Answer", "Runs"):
        return None
    return f"{found.__module__}.{said}"


def write_api(folder: Path) -> None:
    """A page for each public name: its docstring, and the methods of what it returns."""
    listed, shown = [], set()
    for name, thing in names():
        short = name.removeprefix("lmemtest.")
        lines = [short, "=" * len(short), "", f".. currentmodule:: {name.rpartition('.')[0]}", ""]
        if isinstance(thing, type):
            lines += [f".. autoclass:: {name.rpartition('.')[2]}", "   :members:"]
            shown.add(f"{thing.__module__}.{thing.__name__}")
        else:
            lines += [f".. autofunction:: {name.rpartition('.')[2]}"]
        result = result_of(thing)
        if result and result not in shown:
            shown.add(result)
            lines += ["", "What it returns", "---------------", "", f".. autoclass:: {result}", "   :members:"]
        (folder / f"{name}.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
        listed.append(name)
    lines = ["All names", "=========", "", ".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in listed)]
    (folder / "names.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


def linked(_: object, docname: str, source: list[str]) -> None:
    """Links out of `docs` to what the site has of it, to the notebook of a page, and from the API page to its names."""
    source[0] = CARD.sub(lambda m: f"]({m['up'][3:]}generated/data/{m['name']}.md)", source[0])
    source[0] = source[0].replace("](../../CHANGELOG.md)", "](../generated/changelog.md)")
    source[0] = FOLDER.sub(lambda m: f"{m['text']} (`{m['path']}`)", source[0])
    if docname in {page.stem for page in notebooks.pages()}:
        link = f'<a href="notebooks/{docname}.ipynb" download>This page as a notebook</a>'
        source[0] = re.sub(r"\A(# .+\n)", lambda title: f"{title[0]}\n{link}\n", source[0])
    if docname == "api":
        known = {name.removeprefix("lmemtest.") for name, _ in names()}
        source[0] = re.sub(
            r"`([\w.]+)`",
            lambda m: next(
                (
                    f"[`{m[1]}`](generated/api/lmemtest.{name}.rst)"
                    for name in (m[1], f"plots.{m[1]}", f"importers.{m[1]}", f"errors.{m[1]}")
                    if name in known
                ),
                m[0],
            ),
            source[0],
        )


# --------------------------------------------------------------------------------------------------- gallery


def script(name: str) -> str:
    """The code of one figure of the gallery, complete: the functions that it needs, and the call."""
    tree = ast.parse(inspect.getsource(gallery))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    body = functions.pop("calls").body
    shared = {n.targets[0].id: n for n in body if isinstance(n, ast.Assign)}
    rows = next(node.value for node in body if isinstance(node, ast.Return))
    value = dict(zip((key.value for key in rows.keys), rows.values, strict=True))[name]
    call = value.body if isinstance(value, ast.Lambda) else ast.Call(func=value, args=[], keywords=[])
    seen, parts = set(), []

    def visit(node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in {*functions, *shared} - seen:
                seen.add(part.id)
                helper = functions.get(part.id) or shared[part.id]
                visit(helper)
                parts.append(_plain(helper))

    visit(call)
    used = "\n".join(parts)
    heads = [f"import {module}" for module in ("functools",) if f"{module}." in used]
    heads += ["from typing import Any"] if "Any" in used else []
    heads += ["import pandas as pd"] if "pd." in used + ast.unparse(call) else []
    drawn = f"lt.plots.{name}({ast.unparse(call)})"
    return "\n\n".join(["\n".join([*heads, "import lmemtest as lt"]), *parts, drawn])


def _plain(node: ast.FunctionDef | ast.Assign) -> str:
    """Code without decorators and type hints."""
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    return ast.unparse(node)


def write_gallery(folder: Path) -> None:
    """The gallery, a thumbnail for each figure; behind it the figure, its code and its reference."""
    listed = lt.plots.gallery().figures.set_index("figure")
    cards, pages = [], []
    with lt.plots.detached_figures():
        for name in gallery.calls():
            words, source = listed.loc[name, "draws"], listed.loc[name, "of"]
            gallery.draw(name).figure.savefig(folder / "figures" / f"{name}.png", dpi=110)
            (folder / "figures" / f"{name}.md").write_text(
                f"# {name}\n\n{words} Of: {source}. Arguments: [{name}](../api/lmemtest.plots.{name}.rst).\n\n"
                f"![{words}]({name}.png)\n\n```python\n{script(name)}\n```\n",
                encoding="utf-8",
            )
            cards.append(
                f":::{{grid-item-card}} {name}\n:img-top: figures/{name}.png\n:link: figures/{name}\n"
                f":link-type: doc\n:img-alt: {words}\n{words}\n:::"
            )
            pages.append(f"figures/{name}")
    text = [
        "# Gallery",
        "",
        "Every figure, drawn from the bundled runs; behind each, its code.",
        "",
        "::::{grid} 1 2 2 3",
        ":gutter: 3",
        "",
        *cards,
        "::::",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *pages,
        "```",
        "",
    ]
    (folder / "gallery.md").write_text("\n".join(text), encoding="utf-8")


# -------------------------------------------------------------------------------------------------- llms.txt


def llms(docs: Path) -> str:
    """The pages for language models: title, first sentence, address."""
    lines = [
        "# lmemtest",
        "",
        "> Which algorithms are really better, by how much and how sure? Mixed-effects significance "
        "testing for tables of benchmark runs, in pure Python.",
        "",
        "## Pages",
        "",
    ]
    for path in sorted(docs.glob("*.md")):
        found = TITLE.search(path.read_text(encoding="utf-8"))
        if found:
            words = " ".join(LINK.sub(r"\1", found[2]).replace("**", "").split()).removeprefix("The call. ")
            lines.append(f"- [{found[1]}]({path.stem}.html): {re.split(r'(?<=[.?:]) ', words)[0]}")
    return "\n".join([*lines, "", "## Reference", "", "- [API](api.html): every public name", ""])
