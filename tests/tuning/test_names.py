"""The names of `lmemtest.tuning` are functions and classes, also those that a module of the package has too."""

from __future__ import annotations

import importlib
import pkgutil
import types

import lmemtest
from lmemtest import tuning


def test_a_function_is_not_hidden_by_its_module() -> None:
    modules = {info.name for info in pkgutil.iter_modules(tuning.__path__)}
    for name in modules:
        importlib.import_module(f"lmemtest.tuning.{name}")
    public = {name: getattr(lmemtest.tuning, name) for name in tuning.__all__}
    assert [name for name, thing in public.items() if isinstance(thing, types.ModuleType)] == []
    assert {"band", "best_of", "compare", "curve", "curves", "fit", "plan", "risk"} <= modules & set(public)
