"""Tests by level, and what a session costs.

========  ==============================================================  ===================================
level     what                                                            run by
========  ==============================================================  ===================================
0         units and messages: no figure, no fit above 0.1 s               ``make test-0`` (on every save)
1         references and studies; one case of each file of level 2        ``make test`` (levels 0 and 1)
2         figures, pages, examples, thin designs in full                  ``make test-figures``, plain pytest
3         simulations                                                     ``make test-simulations``
========  ==============================================================  ===================================

A test has the level of its folder (`LEVELS`); the marker ``level(n)`` of a file, a test or a case says otherwise. Of a
file at level 2, its first test is at level 1, so that `make test` sees each figure once. The levels are marks for
``pytest -m``: ``pytest tests/plots -m "level0 or level1"``. Plain ``pytest`` runs everything but simulations.

The summary at the end gives items and processor seconds by level, and those of the whole session with its workers.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
TESTS = ROOT / "tests"
# The longest folder that holds a file decides.
LEVELS = {
    "lmemtest": 1,  # doctests
    "lmemtest/data": 0,
    "lmemtest/formula": 0,
    "lmemtest/plots": 2,
    "tests": 0,
    "tests/compat": 1,
    "tests/engine": 1,
    "tests/inference": 1,
    "tests/kernels": 1,
    "tests/plots": 2,
    "tests/recipes": 1,
    "tests/report": 1,
    "tests/simulation": 3,
    "tests/studies": 1,
    "tests/tuning": 1,
}
NAMES = {0: "units and messages", 1: "references and studies", 2: "figures, pages, thin designs", 3: "simulations"}


@dataclass
class Spent:
    """Items and processor seconds of a session by level."""

    start: float = field(default_factory=time.perf_counter)
    items: Counter[int] = field(default_factory=Counter)
    seconds: Counter[int] = field(default_factory=Counter)
    workers: float = 0.0


LEVEL = pytest.StashKey[int]()
SPENT = pytest.StashKey[Spent]()


def pytest_configure(config: pytest.Config) -> None:
    for level, name in NAMES.items():
        config.addinivalue_line("markers", f"level{level}: {name} (set by conftest.py)")
    config.stash[SPENT] = Spent()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    shown = set()
    for item in items:
        level = _own_level(item)
        if level == 2 and TESTS in item.path.parents and item.path not in shown:
            shown.add(item.path)
            level = 1
        item.stash[LEVEL] = level
        item.add_marker(f"level{level}")


def _own_level(item: pytest.Item) -> int:
    marker = item.get_closest_marker("level")
    if marker:
        return int(marker.args[0])
    if item.get_closest_marker("slow"):
        return 3
    folder = item.path.relative_to(ROOT).as_posix()
    return LEVELS[max((name for name in LEVELS if folder.startswith(f"{name}/")), key=len)]


# ------------------------------------------------------------------------------------------- what a session costs


def _processor_seconds() -> float:
    """Of this process and of those that it started and waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _processor_seconds()
    answer = yield
    spent = item.config.stash[SPENT]
    spent.items[item.stash[LEVEL]] += 1
    spent.seconds[item.stash[LEVEL]] += _processor_seconds() - before
    return answer


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist sends what it spent."""
    if hasattr(session.config, "workeroutput"):
        spent = session.config.stash[SPENT]
        session.config.workeroutput["spent"] = (dict(spent.items), dict(spent.seconds), _processor_seconds())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    spent = node.config.stash[SPENT]
    items, seconds, processor = getattr(node, "workeroutput", {}).get("spent", ({}, {}, 0.0))
    spent.items.update(items)
    spent.seconds.update(seconds)
    spent.workers += processor


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    spent = config.stash[SPENT]
    own = os.times()
    processor = own.user + own.system + spent.workers if spent.workers else _processor_seconds()
    for level in sorted(spent.items):
        count, seconds = spent.items[level], spent.seconds[level]
        terminalreporter.write_line(
            f"level {level}  {NAMES[level]:30}{count:6} items{seconds:8.1f} s of processor time"
        )
    wall = time.perf_counter() - spent.start
    terminalreporter.write_line(f"wall time {wall:.1f} s, processor time {processor:.1f} s with collection and workers")
