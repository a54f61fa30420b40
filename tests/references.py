"""Reference values from R and their data, where a fixture is too late: `from references import inputs, values`."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pandas as pd

REFERENCE = Path(__file__).parent / "reference"


@functools.cache
def values(name: str) -> dict[str, Any]:
    """The content of tests/reference/<name>.json (shared: do not change it)."""
    path = REFERENCE / f"{name}.json"
    if not path.exists():
        stored = ", ".join(sorted(p.stem for p in REFERENCE.glob("*.json")))
        raise FileNotFoundError(f"no reference values {name!r} in tests/reference; there are: {stored}")
    return _finite_words(json.loads(path.read_text(encoding="utf-8")))


def _finite_words(value: Any) -> Any:
    """Turn JSON's words for infinity into floats; null stays None (an array of dtype float makes it NaN)."""
    if isinstance(value, dict):
        return {key: _finite_words(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite_words(item) for item in value]
    return float(value.lower()) if value in ("Inf", "-Inf") else value


def inputs(name: str) -> pd.DataFrame:
    """A fresh copy of tests/reference/inputs/<name>.csv; identifiers are strings."""
    return _inputs(name).copy()


@functools.cache
def _inputs(name: str) -> pd.DataFrame:
    types = json.loads((REFERENCE / "inputs" / "columns.json").read_text(encoding="utf-8"))
    if name not in types:
        raise FileNotFoundError(f"no input {name!r} in tests/reference/inputs; there are: {', '.join(sorted(types))}")
    path = REFERENCE / "inputs" / f"{name}.csv"
    path = path if path.exists() else path.with_suffix(".csv.gz")
    dtypes = {column: str if kind == "str" else "float64" for column, kind in types[name].items()}
    return pd.read_csv(path, dtype=dtypes, keep_default_na=False)
