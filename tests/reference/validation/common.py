"""What the parts share: a row of the record, the reference values, their inputs, and the fits."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt

TESTS = Path(__file__).parents[2]
REFERENCE = TESTS / "reference"


@dataclass
class Line:
    """One row of the record: the largest difference of one quantity from one reference."""

    quantity: str
    reference: str
    unit: str
    values: list[float] = field(default_factory=list)

    def add(self, difference: float) -> None:
        """Take note of one difference; NaN means that neither side has a number."""
        if not np.isnan(difference):
            self.values.append(abs(float(difference)))

    def cells(self) -> dict[str, str]:
        """What the record says of it: how many values were compared, and the largest difference."""
        if not self.values:
            return {"values": "0", "seen": "not run"}
        most = max(self.values)
        seen = (f"{most:.0e}" if 0.0 < most < 0.01 else f"{most:.1g}") + self.unit
        return {"values": f"{len(self.values):,}", "seen": seen}


def number(value: Any) -> float:
    """Read a number of the JSON files, where null is NA and "Inf" is infinity."""
    return np.nan if value is None else float(value)


def relative(got: float, want: float) -> float:
    """Relative difference; 0 for equal infinities, NaN where both are missing."""
    if np.isnan(want) != np.isnan(got):
        return np.inf
    return 0.0 if got == want else (got - want) / abs(want)


@cache
def load(name: str) -> Any:
    """Read one of the JSON files."""
    return json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))


@cache
def table(name: str) -> pd.DataFrame:
    """Read one of the input tables with the types that R used."""
    types = json.loads((REFERENCE / "inputs" / "columns.json").read_text(encoding="utf-8"))[name]
    path = REFERENCE / "inputs" / f"{name}.csv"
    path = path if path.exists() else path.with_suffix(".csv.gz")
    dtypes = {column: str if kind == "str" else "float64" for column, kind in types.items()}
    return pd.read_csv(path, dtype=dtypes, keep_default_na=False)


@cache
def fitted(name: str, formula: str, reml: bool, weights: str | None) -> Any:
    """Fit one reference model."""
    return lt.fit_lmm(formula, table(name), reml=reml, weights=weights)


@cache
def suite_module(path: str) -> ModuleType:
    """A module of the test suite: its brute-force formulas, published tables and layouts are used here too."""
    if str(TESTS) not in sys.path:  # where the modules that tests share are
        sys.path.insert(0, str(TESTS))
    spec = importlib.util.spec_from_file_location(f"validated_{Path(path).stem}", TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
