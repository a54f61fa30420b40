"""Modules of the test suite, whose calls, designs and reference values the record takes."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))  # where modules of tests find what they share


@cache
def module(name: str) -> ModuleType:
    """The module of a file, by its name anywhere below tests, or by its path."""
    path = ROOT / name if "/" in name else next((ROOT / "tests").rglob(name))
    spec = importlib.util.spec_from_file_location(f"golden_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made
