"""The figures of the house: what is asked of it, where it stands. They only fall; `pytest -s` prints them."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys

import pytest
from source import PACKAGE, nodes, texts

# Of each figure what it is at most today, and what is asked for.
FIGURES = {
    "classes": (260, 270),
    "classes of results": (23, 45),
    "files below 40 lines": (0, 0),
    "string operations on prose": (0, 0),
    "further classes that hold the table of runs": (0, 0),
    "private modules over folders": (0, 0),
    "files that analyze touches": (93, 120),
    "group-bys of analyze": (33, 60),
    "frames of analyze": (95, 100),
    "files that rank of a frame touches": (40, 40),
}

# What a sentence is called, and what would read it back.
PROSE = {"note", "fact", "title", "sentence", "headline", "decision", "verdict", "message", "said", "overview"}
READS = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix", "replace", "split"}

# Who may hold the table of runs, and how a field is called and typed that holds its scores.
HOLDERS = {"Runs", "Study", "Cells", "Blocks"}
# Files of a few lines that would be looked for under no other name.
SHORT = {"__init__.py", "__main__.py", "errors.py", "arrays.py", "verbs.py"}
SCORES = {"score", "run", "mean", "best", "cell", "point", "curve"}
TABLES = ("Array", "NDArray[np.float64]", "DataFrame", "Groups")


def results() -> int:
    return sum("result" in map(ast.unparse, node.decorator_list) for _, node in nodes(ast.ClassDef))


def small_files() -> int:
    lines = (text.splitlines() for path, text in texts().items() if path.name not in SHORT)
    return sum(len([line for line in one if line.strip()]) < 40 for one in lines)


def _last_name(node: ast.expr) -> str:
    """``note`` of ``note``, ``self.note``, ``notes[0]`` and ``str(note)``."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Call):
        return _last_name(node.args[0] if isinstance(node.func, ast.Name) and node.args else node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def prose_that_is_read() -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, node in nodes(ast.Call)
        if isinstance(node.func, ast.Attribute)
        and node.func.attr in READS
        and _last_name(node.func.value).removesuffix("s") in PROSE
        and path.parent.name not in ("data", "importers", "core")  # what is read there are tables of others
    ]


def holders_of_the_table() -> list[str]:
    """Classes of `bench` that are no results and have a field, or an argument, of arrays or frames of scores."""
    found = []
    for path, node in nodes(ast.ClassDef):
        if path.relative_to(PACKAGE).parts[0] != "bench" or "result" in map(ast.unparse, node.decorator_list):
            continue
        fields = [(one.target, one.annotation) for one in node.body if isinstance(one, ast.AnnAssign)]
        makers = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        typed = [(_last_name(target), ast.unparse(annotation)) for target, annotation in fields]
        typed += [(arg.arg, ast.unparse(arg.annotation)) for one in makers for arg in one.args.args if arg.annotation]
        scores = [
            name
            for name, kind in typed
            if "Groups" in kind or (name.split("_")[-1].removesuffix("s") in SCORES and any(t in kind for t in TABLES))
        ]
        if scores and node.name not in HOLDERS:
            found.append(f"{path.relative_to(PACKAGE)}: {node.name} ({', '.join(scores)})")
    return found


def private_over_folders() -> list[str]:
    found = []
    for path, node in nodes(ast.ImportFrom):
        parts = (node.module or "").split(".")
        names = [
            *parts,
            *(alias.name for alias in node.names if node.module and (PACKAGE / "/".join(parts[1:])).is_dir()),
        ]
        private = [name for name in names if name.startswith("_") and not name.startswith("__")]
        if parts[0] == "lmemtest" and private and parts[1:2] != [*path.relative_to(PACKAGE).parts[:1]]:
            found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return found


COUNT = """
import json, sys, warnings
import pandas as pd
import lmemtest as lt
from lmemtest.report.analysis import analyze
warnings.simplefilter("ignore")
files, calls = set(), {"frames": 0, "groupby": 0}
def seen(frame, event, arg):
    if event == "call":
        name = frame.f_code.co_filename
        if "/lmemtest/" in name:
            files.add(name)
        elif frame.f_code.co_name == "__init__" and name.endswith("pandas/core/frame.py"):
            calls["frames"] += 1
        elif frame.f_code.co_name == "groupby" and name.endswith("pandas/core/frame.py"):
            calls["groupby"] += 1
def counted(call):
    files.clear(); calls.update(frames=0, groupby=0)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [len(files), calls["frames"], calls["groupby"]]
runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
wide = pd.DataFrame({"A": [.9, .8, .7, .9, .6], "B": [.8, .7, .7, .8, .5], "C": [.5, .6, .4, .6, .3]})
print(json.dumps({"rank": counted(lambda: lt.rank(wide, "frequentist", direction="maximize")),
                  "analyze": counted(lambda: lt.analyze(runs))}))
"""


@functools.cache
def of_a_run() -> dict[str, list[int]]:
    program = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{COUNT}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


COUNTS = {
    "classes": lambda: len(nodes(ast.ClassDef)),
    "classes of results": results,
    "files below 40 lines": small_files,
    "string operations on prose": lambda: len(prose_that_is_read()),
    "further classes that hold the table of runs": lambda: len(holders_of_the_table()),
    "private modules over folders": lambda: len(private_over_folders()),
    "files that analyze touches": lambda: of_a_run()["analyze"][0],
    "frames of analyze": lambda: of_a_run()["analyze"][1],
    "group-bys of analyze": lambda: of_a_run()["analyze"][2],
    "files that rank of a frame touches": lambda: of_a_run()["rank"][0],
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_of_the_house_grows(name: str) -> None:
    found, (today, asked) = COUNTS[name](), FIGURES[name]
    print(f"{name}: {found} (at most {today} today, {asked} asked)")
    assert found <= today


def test_what_a_rate_is_held_against_is_asserted() -> None:
    """`at_most` and the like of the harness give a truth value, which alone on a line can fail no test."""
    of_harness = {"at_most", "at_least", "about"}
    alone = [
        f"{path.name}, line {node.lineno}"
        for path in sorted((PACKAGE.parent / "tests" / "simulation").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and getattr(getattr(node.value, "func", None), "id", "") in of_harness
    ]
    assert alone == []
