"""What a release needs: one version, metadata that agree, files that can be read, deprecated names that go in time."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source import PACKAGE, nodes

import lmemtest
from lmemtest.core.deprecation import deprecated, warn_deprecated
from lmemtest.core.environment import environment, extra_package, versions
from lmemtest.errors import ArgumentError

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml", reason="of dask, which the tests bring")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once_and_copies_agree() -> None:
    version = lmemtest.__version__
    assert 'dynamic = ["version"]' in text("pyproject.toml")
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    assert f'{{% set version = "{version}" %}}' in text(".github/conda/meta.yaml")
    assert f"rev: v{version}" in text(".pre-commit-hooks.yaml")


def test_the_citation_has_what_its_schema_requires() -> None:
    found = yaml.safe_load(text("CITATION.cff"))
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(found)
    assert all("name" in author or "family-names" in author for author in found["authors"])


def test_the_conda_recipe_requires_what_pip_does() -> None:
    listed = re.search(r"^dependencies = \[(.*?)^\]", text("pyproject.toml"), re.MULTILINE | re.DOTALL)
    ours = {name.lower(): bound for name, bound in re.findall(r'"([\w-]+)>=([\d.]+)', listed[1])}
    run = re.search(r"^  run:\n(.*?)^\S", text(".github/conda/meta.yaml"), re.MULTILINE | re.DOTALL)
    theirs = {name.removesuffix("-base"): bound for name, bound in re.findall(r"- ([\w-]+) >=([\d.]+)", run[1])}
    python = re.search(r'requires-python = ">=([\d.]+)"', text("pyproject.toml"))
    assert theirs == {**ours, "python": python[1]}


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_can_be_read(path: Path) -> None:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "jobs" in found or {"name", "description", "body"} <= set(found)


def test_reports_of_bugs_ask_for_versions() -> None:
    for name in (".github/ISSUE_TEMPLATE/bug.yml", ".github/pull_request_template.md"):
        assert "`lmemtest --version --verbose`" in text(name)


def test_the_workflow_of_releases_tests_every_python_that_is_declared() -> None:
    matrix = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", text("pyproject.toml"))
    assert len(matrix["os"]) == 3


def test_the_hook_calls_a_command_that_exists() -> None:
    (hook,) = yaml.safe_load(text(".pre-commit-hooks.yaml"))
    program, command = hook["entry"].split()
    assert program == "lmemtest"
    assert hook["pass_filenames"] is False
    done = subprocess.run(
        [sys.executable, "-m", program, command, "--help"], capture_output=True, text=True, check=True
    )
    assert "worse" in done.stdout


COMMANDS = re.compile(r"(?:^|[\s`(])lmemtest ([a-z]+)((?: +(?:\\\\\n *)?[^\s|&;#`]+)*)", re.MULTILINE)


def test_commands_of_release_files_exist_with_their_options() -> None:
    from typer.main import get_command

    from lmemtest.cli import app

    commands, seen = get_command(app).commands, set()
    files = [path for folder in (".github", "examples/gate_action") for path in (ROOT / folder).rglob("*.y*ml")]
    for path in [*files, ROOT / ".github/pull_request_template.md", ROOT / ".github/joss/paper.md"]:
        for name, given in COMMANDS.findall(path.read_text(encoding="utf-8")):
            if name not in commands:
                continue
            known = {
                flag for parameter in commands[name].params for flag in (*parameter.opts, *parameter.secondary_opts)
            }
            assert set(re.findall(r"(?<=\s)(--[a-z-]+)", given)) <= known, f"{path.name}: lmemtest {name}{given}"
            seen.add(name)
    assert {"demo", "gate"} <= seen


def test_the_figures_of_the_paper_are_drawn_by_names_that_exist() -> None:
    tree = ast.parse(text(".github/joss/figures.py"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for name in (one for one in used if re.fullmatch(r"lt(\.\w+)+", one)):
        found = lmemtest
        for part in name.split(".")[1:]:
            assert hasattr(found, part), name
            found = getattr(found, part)


def test_the_paper_cites_what_its_bibliography_has() -> None:
    cited = set(re.findall(r"@([a-z]+\d{4})", text(".github/joss/paper.md")))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", text(".github/joss/paper.bib"), re.MULTILINE))
    figures = re.findall(r"\]\((\w+\.png)\)", text(".github/joss/paper.md"))
    assert figures == sorted(path.name for path in (ROOT / ".github" / "joss").glob("*.png"))


# ---------------------------------------------------------------------------------------------------------- versions


def test_the_long_version_names_what_numbers_depend_on() -> None:
    command = [sys.executable, "-m", "lmemtest", "--version", "--verbose"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    first, *rows = done.stdout.splitlines()
    found = dict(row.split(maxsplit=1) for row in rows)
    assert first == f"lmemtest {lmemtest.__version__}"
    assert found["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["numpy"] == versions()["numpy"]
    assert re.search(r"kernel \w+, \d+ threads?\b", found["BLAS"])
    assert re.fullmatch(r"\d+ of \d+", found["processors"])
    assert json.dumps(environment())  # texts only


def test_packages_of_developers_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = [
        "numpy>=2",
        'tomli>=2; python_version < "3.11"',
        'polars>=1; extra == "polars"',
        'polars>=1; extra == "test"',
    ]
    stated += [
        f'{name}; extra == "{extra}"'
        for name, extra in (("sphinx>=8", "docs"), ("nbclient", "notebooks"), ("ruff", "dev"))
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: stated)
    assert [*environment()][2:-3] == ["numpy", "polars"]


def test_verbose_alone_is_told_its_place() -> None:
    command = [sys.executable, "-m", "lmemtest", "--verbose", "check", "runs.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--verbose needs --version: lmemtest --version --verbose." in done.stderr


def test_a_package_of_an_extra_that_is_absent_is_named_with_its_extra() -> None:
    message = (
        "To read 'a.parquet', no_such_package is needed: pip install 'lmemtest[parquet]'. Or save the table as .csv."
    )
    with pytest.raises(ArgumentError, match=re.escape(message)):
        extra_package(
            "no_such_package", extra="parquet", purpose="read 'a.parquet'", otherwise="Or save the table as .csv."
        )


def test_extras_that_messages_name_exist() -> None:
    named = {
        keyword.value.value
        for _, node in nodes(ast.Call)
        if getattr(node.func, "id", "") == "extra_package"
        for keyword in node.keywords
        if keyword.arg == "extra"
    }
    extras = re.search(r"^\[project.optional-dependencies\]\n(.*?)^\[", text("pyproject.toml"), re.M | re.S)
    assert named == {"parquet", "download", "excel", "tensorboard", "aim"}
    assert named <= set(re.findall(r"^(\w+) = ", extras[1], re.MULTILINE))


# ------------------------------------------------------------------------------------------------------- deprecation


def test_a_deprecated_name_works_and_says_what_to_write() -> None:
    @deprecated(since="0.2", removal="0.4", instead="new(x)")
    def old(x: int) -> int:
        """Doubled."""
        return 2 * x

    with pytest.warns(FutureWarning, match=re.escape("old is deprecated since lmemtest 0.2 and goes in 0.4.")) as seen:
        assert old(2) == 4
    assert seen[0].filename == __file__
    assert (old.__name__, old.__doc__) == ("old", "Doubled.")


def test_a_deprecated_argument_is_said_at_the_line_of_the_caller() -> None:
    def power(reps: int) -> int:
        warn_deprecated("power(reps=)", since="0.2", removal="0.4", instead="n_draws=")
        return reps

    with pytest.warns(FutureWarning, match=re.escape("power(reps=) is deprecated since lmemtest 0.2")) as seen:
        assert power(reps=3) == 3
    assert seen[0].filename == __file__


def test_what_is_deprecated_goes_in_time_and_not_before_two_minor_versions() -> None:
    today = tuple(map(int, lmemtest.__version__.split(".")[:2]))
    for path, node in nodes(ast.Call):
        if getattr(node.func, "id", "") not in ("deprecated", "warn_deprecated") or path.name == "deprecation.py":
            continue
        when = {
            k.arg: tuple(map(int, k.value.value.split("."))) for k in node.keywords if k.arg in ("since", "removal")
        }
        assert when["removal"] > today, f"{path.relative_to(PACKAGE)}: its time has come"
        assert when["removal"][1] >= when["since"][1] + 2 or when["removal"][0] > when["since"][0]
