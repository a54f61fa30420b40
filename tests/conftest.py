"""Fixtures for every test: reference values from R, their inputs, outside data, a guard on randomness."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

REFERENCE = Path(__file__).parent / "reference"
# Scripts that make reference values or measure time; some need packages that the suite does not.
collect_ignore_glob = ["reference/*.py", "reference/validation/*.py", "benchmarks/*.py"]


def _finite_words(value: Any) -> Any:
    """Turn JSON's words for infinity into floats; null stays None (an array of dtype float makes it NaN)."""
    if isinstance(value, dict):
        return {key: _finite_words(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite_words(item) for item in value]
    if value in ("Inf", "-Inf"):
        return float(value.lower())
    return value


@functools.cache
def _load_reference(name: str) -> dict[str, Any]:
    path = REFERENCE / f"{name}.json"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in REFERENCE.glob("*.json")))
        raise FileNotFoundError(f"no reference values {name!r} in tests/reference; there are: {known}")
    return _finite_words(json.loads(path.read_text(encoding="utf-8")))


@functools.cache
def _load_input(name: str) -> pd.DataFrame:
    types = json.loads((REFERENCE / "inputs" / "columns.json").read_text(encoding="utf-8"))
    if name not in types:
        known = ", ".join(sorted(types))
        raise FileNotFoundError(f"no input {name!r} in tests/reference/inputs; there are: {known}")
    path = REFERENCE / "inputs" / f"{name}.csv"
    if not path.exists():
        path = path.with_suffix(".csv.gz")
    dtypes = {column: str if kind == "str" else "float64" for column, kind in types[name].items()}
    return pd.read_csv(path, dtype=dtypes, keep_default_na=False)


@pytest.fixture(scope="session")
def reference() -> Callable[[str], dict[str, Any]]:
    """`reference("fits")` is the content of tests/reference/fits.json (shared: do not change it)."""
    return _load_reference


@pytest.fixture(scope="session")
def reference_input() -> Callable[[str], pd.DataFrame]:
    """`reference_input("cake")` is a fresh copy of inputs/cake.csv; identifiers are strings."""
    return lambda name: _load_input(name).copy()


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
