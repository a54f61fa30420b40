"""Who may import whom, what `import lmemtest` may cost, and what is never imported."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmemtest

PACKAGE = Path(lmemtest.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

# Each part with the parts below it that it may import; `errors` and private modules of the top serve everybody.
SHARED = {
    "errors",
    "words",
    *(path.stem for path in MODULES if len(path.parts) == 1 and re.match(r"_[a-z]", path.stem)),
}
BASE = {"formula", "data", "engine"}
MIXED = {*BASE, "model"}
ALLOWED: dict[str, set[str]] = {
    **{name: set() for name in SHARED},
    "engine": set(),
    "data": set(),
    "formula": {"data"},
    "model": BASE,
    "inference": MIXED,
    "recipes": {*MIXED, "inference"},
    "ranking": {*MIXED, "inference", "recipes"},
    "tuning": {"data"},
    "superiority": {"data"},
}
RESULTS = set(ALLOWED)
ALLOWED["plots"] = RESULTS
ALLOWED["report"] = {*RESULTS, "plots"}
ALLOWED["compat"] = {*RESULTS, "plots"}
ALLOWED["analyze"] = {*RESULTS, "plots", "report"}
ALLOWED["cli"] = {*RESULTS, "plots", "report", "compat", "analyze"}
ALLOWED["__main__"] = {"cli"}

# Methods of the lower layer that hand over to a higher one when they are called: `fit.anova()`, as users know it.
UPWARD_CALLS = {
    ("model/fit.py", "lmemtest.inference.joint.anova"),
    ("model/fit.py", "lmemtest.inference.diagnostics.diagnosis.diagnose"),
}

ENGINE_MAY = {"numpy", "scipy", "lmemtest"}
HEAVY = {"pandas", "scipy.stats", "statsmodels", "matplotlib", "formulaic", "narwhals", "jinja2", "typer"}


def part_of(path: Path) -> str:
    """The part of the package that a module belongs to."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def imported(path: Path, *, at_import_only: bool = False) -> Iterator[str]:
    """The full names that a module imports; those for type checkers left out."""
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    here = ("lmemtest", *path.parts[:-1])
    for node in _walk(tree, at_import_only):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = here[: len(here) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            # `from package import name` may import a module of that name
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _walk(node: ast.AST, at_import_only: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from child.orelse
            continue
        if at_import_only and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        yield child
        yield from _walk(child, at_import_only)


def starts_with(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_downwards_only(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    assert part in ALLOWED, f"{part!r} has no place in the layers of tests/contract/test_imports.py"
    for name in imported(path):
        if not starts_with(name, "lmemtest") or (path.as_posix(), name) in UPWARD_CALLS:
            continue
        target = name.split(".")[1] if "." in name else "__init__"
        assert target in {part, *SHARED, *ALLOWED[part]}, f"{path} imports {name}, which is above it"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "engine"], ids=str)
def test_the_engine_sees_arrays_only(path: Path) -> None:
    for name in imported(path):
        top = name.split(".")[0]
        assert top in ENGINE_MAY or top in sys.stdlib_module_names, f"{path} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_what_is_never_imported(path: Path) -> None:
    for name in imported(path):
        assert not starts_with(name, "statsmodels.api"), f"{path}: statsmodels.api costs seconds"
        assert not starts_with(name, "statsmodels.formula"), f"{path}: statsmodels.formula costs seconds"
        if part_of(path) != "plots":
            assert not starts_with(name, "matplotlib"), f"{path}: matplotlib belongs to plots"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_slow_packages_are_imported_where_they_are_used(path: Path) -> None:
    for name in imported(path, at_import_only=True):
        slow = [package for package in ("scipy.stats", "statsmodels") if starts_with(name, package)]
        if part_of(path) != "plots":
            slow += [package for package in ("matplotlib",) if starts_with(name, package)]
        assert not slow, f"{path} imports {name} when it is loaded"


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
    names = [
        ".".join(("lmemtest", *path.with_suffix("").parts)).removesuffix(".__init__")
        for path in MODULES
        if part_of(path) == "engine"
    ]
    if not names:
        pytest.skip("there is no engine yet")
    loaded = loaded_by("import " + ", ".join(names))
    assert HEAVY & loaded == set()
