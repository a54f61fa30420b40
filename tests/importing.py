"""Files of other tools, and what runs made of them hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmemtest as lt

FILES = Path(__file__).parent / "bench" / "data" / "files"


def levels(runs: lt.Runs) -> dict[str, tuple[Any, ...]]:
    """The levels of each role that the runs have, by the name of its column."""
    names = [runs.algorithm, runs.benchmark, runs.seed, runs.budget, *runs.metafeatures]
    return {name: runs.levels(name) for name in names if name is not None}


def scores(runs: lt.Runs, **conditions: Any) -> list[float]:
    table = runs.to_frame()
    for name, value in conditions.items():
        table = table[table[name].isin(value if isinstance(value, list) else [value])]
    return table[runs.score].tolist()
