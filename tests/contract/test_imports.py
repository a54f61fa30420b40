"""Who may import whom, what `import lmemtest` may cost, what is never imported, and tables of modules in docstrings."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from source import PACKAGE, texts, trees

MODULES = [path.relative_to(PACKAGE) for path in texts()]

# Each part with the parts below it that it may import; `core` and `errors` serve everybody.
SHARED = {"core", "errors"}
STUDIES = {"bench", "lmm", "tuning"}
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "errors": set(),
    "lmm": set(),
    "tuning": set(),
    "bench": {"lmm"},
    "plots": STUDIES,
    "report": {*STUDIES, "plots"},
    "compat": {*STUDIES, "plots"},
    "cli": {*STUDIES, "plots", "report", "compat"},
    "__main__": {"cli"},
}

# Imports within a function that close a circle, by module and imported module. Whatever is not here goes downwards.
VERB = "a verb of the object: its method hands over to the module that has the work"
CLOSES_A_CIRCLE = {
    ("lmm.model.fit", "lmm.model.fitting"): "refit: a fit is made again as it was made",
    ("bench.data.study", "bench.data.scales"): VERB,
    ("bench.data.study", "bench.data.per_run"): VERB,
    ("report.analysis", "report.serve"): VERB,
}
# Modules that name a higher part in text, so that its content is a method of an object of a lower one.
BY_NAME = {
    "core.hints": "a synonym of the package is a function of any part",
    "core.result": "`result.plot()` is a function of plots, `result.save()` one of report",
    "lmm.model.verbs": "`fit.emmeans()` is one of `lmm.means`",
    "bench.data.runs": "`runs.check()` is a function of `bench.checks`",
    "cli.command": "a help shows the defaults of the function that the command calls",
}

ENGINE_MAY = {"numpy", "scipy", "lmemtest"}
HEAVY = {"pandas", "scipy.stats", "statsmodels", "matplotlib", "formulaic", "narwhals", "jinja2", "typer"}
LATE = ("scipy.stats", "scipy.optimize", "formulaic", "statsmodels")
SECONDS = ("statsmodels.api", "statsmodels.formula")  # to import


def part_of(path: Path) -> str:
    """The part of the package that a module belongs to."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def is_engine(path: Path) -> bool:
    return path.parts[:2] == ("lmm", "engine")


def named(path: Path) -> str:
    """The name of a module within the package, empty for the package itself."""
    return ".".join(path.with_suffix("").parts).removesuffix("__init__").removesuffix(".")


@functools.cache
def imported(path: Path) -> dict[str, bool]:
    """The full names that a module imports, and whether it does so when loaded; those for type checkers left out."""
    here = ("lmemtest", *path.parts[:-1])
    names: dict[str, bool] = {}

    def read(node: ast.AST, at_load: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    read(other, at_load)
                continue
            for name in _names(child, here):
                names[name] = names.get(name, False) or at_load
            read(child, at_load and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    read(trees()[PACKAGE / path], at_load=True)
    return names


def _names(node: ast.AST, here: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parent = here[: len(here) - node.level + 1] if node.level else ()
    base = ".".join([*parent, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]  # a name may be a module of the package


def starts_with(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def depends() -> dict[tuple[str, str], bool]:
    """Which module of the package imports which, and whether it does so when it is loaded; the package itself is ""."""
    modules = {named(path) for path in MODULES}
    found: dict[tuple[str, str], bool] = {}
    for path in MODULES:
        for name, at_load in imported(path).items():
            target = name.removeprefix("lmemtest").removeprefix(".")
            target = target if target in modules else target.rpartition(".")[0]
            if starts_with(name, "lmemtest") and target != named(path):
                edge = (named(path), target)
                found[edge] = found.get(edge, False) or at_load
    return found


def a_circle(edges: set[tuple[str, str]]) -> list[str]:
    """The modules of one circle, empty if there is none."""
    above = defaultdict(set)
    for module, target in edges:
        above[module].add(target)
    try:
        TopologicalSorter(above).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_imports_go_downwards_only() -> None:
    parts = {part_of(path) for path in MODULES} - {"__init__"}
    assert parts == set(ALLOWED), "each part of the package has its place in the layers, and no other has"
    offenders = [
        f"{module} imports {target or 'lmemtest'}, which is above it"
        for module, target in depends()
        if module and target.split(".")[0] not in {module.split(".")[0], *SHARED, *ALLOWED[module.split(".")[0]]}
    ]
    assert offenders == []


def test_higher_parts_are_named_in_few_places() -> None:
    text = {named(path): texts()[PACKAGE / path] for path in MODULES}
    assert {name for name, code in text.items() if re.search(r'import_module\(f?"lmemtest\.', code)} == set(BY_NAME)


def test_no_circles_not_even_between_calls() -> None:
    edges = depends()
    assert [pair for pair in CLOSES_A_CIRCLE if pair not in edges] == [], "listed, but there is no such import now"
    assert [pair for pair in CLOSES_A_CIRCLE if edges[pair]] == [], "these are made when the module is loaded"
    straight = set(edges) - set(CLOSES_A_CIRCLE)
    assert " -> ".join(a_circle(straight)) == ""
    assert [pair for pair in CLOSES_A_CIRCLE if not a_circle({*straight, pair})] == [], "listed, but closes no circle"


def test_the_engine_sees_arrays_only() -> None:
    offenders = [
        f"{path} imports {name}"
        for path in MODULES
        if is_engine(path)
        for name in imported(path)
        if (top := name.split(".")[0]) not in ENGINE_MAY and top not in sys.stdlib_module_names
    ]
    assert offenders == []


def test_matplotlib_belongs_to_plots_and_what_takes_seconds_to_nobody() -> None:
    offenders = [
        f"{path} imports {name}"
        for path in MODULES
        for name in imported(path)
        if any(starts_with(name, package) for package in SECONDS)
        or (starts_with(name, "matplotlib") and part_of(path) != "plots")
    ]
    assert offenders == []


def test_slow_packages_are_imported_where_they_are_used() -> None:
    offenders = [
        f"{path} imports {name} when it is loaded"
        for path in MODULES
        for name, at_load in imported(path).items()
        if at_load and any(starts_with(name, package) for package in LATE)
    ]
    assert offenders == []


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after `code`."""
    program = (
        f"import sys, json; sys.path.insert(0, {str(PACKAGE.parent)!r}); {code}; print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_is_light() -> None:
    assert HEAVY & loaded_by("import lmemtest") == set()


def test_importing_the_engine_needs_numpy_and_scipy_only() -> None:
    names = [f"lmemtest.{named(path)}" for path in MODULES if is_engine(path)]
    assert HEAVY & loaded_by("import " + ", ".join(names)) == set()


def test_a_fit_and_its_pairs_wait_for_no_package_that_they_do_not_need(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    rows = [
        f"a{a},b{b},{s},{(7 * a + 5 * b * b + 3 * s * a) % 11}" for a in range(4) for b in range(6) for s in range(3)
    ]
    table.write_text("\n".join(["algorithm,benchmark,seed,loss", *rows]), encoding="utf-8")
    roles = "score='loss', direction='minimize', algorithm='algorithm', benchmark='benchmark', seed='seed'"
    fitted = (
        f"import lmemtest as lt; runs = lt.read_runs({str(table)!r}, {roles}); "
        "fit = lt.fit_lmm('loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)', runs); "
        "fit.emmeans('algorithm').pairs().summary()"
    )
    assert {*LATE, "matplotlib", "jinja2"} & loaded_by(fitted) == set()


def test_a_plain_installation_has_what_is_imported_and_nothing_else():
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    declared = set(re.findall(r'"([\w-]+)', listed[1]))
    brought = {"markupsafe": "jinja2"}  # with what is declared
    optional = {"dask", "patsy", "inspect_ai", "tensorboard"}  # imported where the caller has what is theirs
    used = {name.partition(".")[0] for path in MODULES for name in imported(path)} - set(sys.stdlib_module_names)
    assert {brought.get(name, name) for name in used - optional - {"lmemtest"}} == declared


FOLDERS = ("lmm/engine", "lmm/diagnostics", "bench/power", "lmm/model")


def test_tables_of_modules_are_those_of_the_files() -> None:
    for folder in FOLDERS:
        text = ast.get_docstring(trees()[PACKAGE / folder / "__init__.py"]) or ""
        table = re.search(r"^=+  =+$(.*)^=+  =+$", text, flags=re.MULTILINE | re.DOTALL)
        assert table is not None, folder
        listed = re.findall(r"^(\w+)  ", table[1], flags=re.MULTILINE)
        assert sorted(listed) == sorted(module.stem for module in (PACKAGE / folder).glob("[a-z]*.py")), folder
