"""The journey of a table through `analyze`: where it is handed to while it is analysed.

A call hands the table on if one of its arguments is the table, or holds it: runs, their study, groups or cells of it, a
fit. Questions that these are asked (methods) are no journey, but what they call is. The calls that were made are walked
in their order, each function once; a stay is a file that is entered so, and a climb leads from one layer of the package
to a higher one. `python tests/contract/journey.py` prints the stays.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lmemtest as lt
from lmemtest.report.analysis import analyze

HERE = Path(lt.__file__).parent
TABLES = {"Runs", "Study", "Groups", "Cells", "Blocks"}
LAYERS = ("core", "lmm", "tuning", "bench", "plots", "compat", "report", "cli")


def holds(value: Any, deep: bool = True) -> bool:
    """Whether this is a table, or a record, list or dictionary with one."""
    kind, parts = type(value), ()
    if kind.__module__.startswith("lmemtest"):
        if kind.__name__ in TABLES:
            return True
        slots = [getattr(value, name, None) for name in getattr(kind, "__slots__", ()) if name != "__weakref__"]
        parts = (*getattr(value, "__dict__", {}).values(), *slots)
    elif kind in (tuple, list, dict) and len(value) < 30:
        parts = tuple(value.values() if kind is dict else value)
    return deep and any(holds(part, deep=False) for part in parts)


def stays() -> list[tuple[str, list[str]]]:
    """The files that are entered, in order, with the functions that got the table there."""
    calls: dict[CodeType | None, dict[CodeType, None]] = {}
    stack: list[CodeType | None] = [None]
    handed: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and len(stack) > 1:
            stack.pop()
        if event != "call":
            return
        stack.append(stack[-1])
        if code.co_filename.startswith(str(HERE)) and not code.co_name.startswith("<"):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            holding = [name for name in names if name in frame.f_locals and holds(frame.f_locals[name])]
            if holding:
                calls.setdefault(stack[-1], {})[code] = None
                handed.update([code] if holding != ["self"] else [])
                stack[-1] = code

    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    sys.setprofile(seen)
    try:
        analyze(runs)
    finally:
        sys.setprofile(None)
    entered: list[tuple[str, list[str]]] = []
    walked: set[CodeType] = set()

    def walk(code: CodeType | None) -> None:
        for called in calls.get(code, {}):
            if called in handed:
                file = str(Path(called.co_filename).relative_to(HERE))
                if not entered or entered[-1][0] != file:
                    entered.append((file, []))
                entered[-1][1].append(called.co_name)
            if called not in walked:
                walked.add(called)
                walk(called)

    walk(None)
    return entered


def climbs(files: list[str]) -> int:
    """How often the way leads from one layer to a higher one."""
    layer = [LAYERS.index(file.split("/")[0]) for file in files]
    return sum(after > before for before, after in pairwise(layer))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    journey = stays()
    files = [file for file, _ in journey]
    if "--stays" in sys.argv:
        print(*(f"{file}: {', '.join(names)}" for file, names in journey), sep="\n")
    print(json.dumps({"stays": len(files), "files": len(set(files)), "climbs": climbs(files)}))
