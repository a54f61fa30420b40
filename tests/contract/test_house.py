"""The figures of the house: what is asked of it, where it stands. They only fall; `pytest -s` prints them."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from source import PACKAGE, nodes, texts

# Of each figure what it is at most today, and what is asked for.
FIGURES = {
    "classes": (261, 270),
    "classes of results": (23, 45),
    "files below 40 lines": (0, 0),
    "string operations on prose": (0, 0),
    "further classes that hold the table of runs": (0, 0),
    "private modules over folders": (0, 0),
    "files that analyze touches": (82, 120),
    "group-bys of analyze": (21, 60),
    "frames of analyze": (47, 100),
    "files that rank of a frame touches": (39, 40),
    "stays of the table in analyze": (68, 110),
    "files where it stays": (30, 30),
    "climbs on its way": (6, 20),
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


@functools.cache
def journey() -> dict[str, int]:
    """What `journey.py` counts, in a process of its own."""
    program = [sys.executable, str(Path(__file__).with_name("journey.py"))]
    return dict(json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout))


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
    "stays of the table in analyze": lambda: journey()["stays"],
    "files where it stays": lambda: journey()["files"],
    "climbs on its way": lambda: journey()["climbs"],
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_of_the_house_grows(name: str) -> None:
    found, (today, asked) = COUNTS[name](), FIGURES[name]
    print(f"{name}: {found} (at most {today} today, {asked} asked)")
    assert found <= today


# What answers yes or no, beside the functions of tests that are annotated so; and what fails, beside an assertion.
PREDICATES = {"all", "allclose", "any", "approx", "array_equal", "equals", "exists", "hasattr", "isclose", "isinstance"}
FAILS = {"assert", "raise", "raises", "warns", "fail"}


@functools.cache
def of_tests() -> list[tuple[str, ast.FunctionDef, set[str]]]:
    """The functions of all tests and their helpers, with the names of what they call, and "assert" and "raise"."""
    found = []
    for path in sorted((PACKAGE.parent / "tests").rglob("*.py")):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef):
                inside = list(ast.walk(function))
                names = {_last_name(one.func) for one in inside if isinstance(one, ast.Call)}
                names |= {kind for one in inside if (kind := type(one).__name__.lower()) in FAILS}
                found.append((path.name, function, names))
    return found


@pytest.mark.level(2)  # parses all tests
def test_what_answers_yes_or_no_is_asserted() -> None:
    """Alone on a line `at_most(share, n)` of the harness, or `np.allclose(a, b)`, can fail no test."""
    answers = PREDICATES | {
        f.name for _, f, _ in of_tests() if f.returns is not None and ast.unparse(f.returns) == "bool"
    }
    alone = [
        f"{path}, line {line.lineno}"
        for path, function, names in of_tests()
        for line in (ast.walk(function) if names & answers else ())
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and _last_name(line.value.func) in answers
    ]
    assert alone == []


@pytest.mark.level(2)
def test_every_test_can_fail() -> None:
    """It asserts, expects a refusal or a warning, or calls what does."""
    fails = set(FAILS)

    def can_fail(names: set[str]) -> bool:
        return bool(names & fails) or any(name.startswith("assert_") for name in names)  # NumPy's and pandas'

    while more := {function.name for _, function, names in of_tests() if can_fail(names)} - fails:
        fails |= more
    unable = [
        f"{path}: {f.name}" for path, f, names in of_tests() if f.name.startswith("test_") and not can_fail(names)
    ]
    assert unable == []
