"""Fixtures for every test: reference values from R, their inputs, outside data, a guard on randomness."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from references import inputs, values

# Scripts that make reference values or measure time; some need packages that the suite does not.
collect_ignore_glob = ["reference/*.py", "reference/validation/*.py", "benchmarks/*.py"]


@pytest.fixture(scope="session")
def reference() -> Callable[[str], dict[str, Any]]:
    """`reference("fits")` is the content of tests/reference/fits.json (shared: do not change it)."""
    return values


@pytest.fixture(scope="session")
def reference_input() -> Callable[[str], pd.DataFrame]:
    """`reference_input("cake")` is a fresh copy of inputs/cake.csv; identifiers are strings."""
    return inputs


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of data that is not part of the repository, or skip."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        pytest.skip("needs data outside of the repository: set LMEMTEST_DATA to its folder")
    path = Path(folder)
    if not path.is_dir():
        raise NotADirectoryError(f"LMEMTEST_DATA is {folder!r}, which is not a folder")
    return path


class Outcome(NamedTuple):
    """Of a command: its exit code, and what it printed where."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """`run("rank", "runs.csv")` is what the command line does; a busy machine does not decide what it prints."""
    from lmemtest.cli import app, rendering

    monkeypatch.setattr(rendering, "INTERVAL", 1e6)

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["lmemtest", *arguments])
        with pytest.raises(SystemExit) as stop:
            app(list(arguments), prog_name="lmemtest")
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


def _global_state() -> tuple[Any, ...]:
    state: Any = np.random.get_state()  # noqa: NPY002 - watched here so that nothing else uses it
    name, keys, *rest = state
    return (name, keys.tobytes(), *rest)


@pytest.fixture(autouse=True)
def _no_global_random_numbers() -> Iterator[None]:
    before = _global_state()
    yield
    if _global_state() != before:
        pytest.fail("this test used or seeded numpy's global generator: pass rng= instead", pytrace=False)
