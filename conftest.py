"""Tests by level, and what a session costs.

========  ==================================================================  ==================================
level     what                                                                run by
========  ==================================================================  ==================================
0         units and messages: no figure, at most 0.1 s each                   ``make test-0`` (on every save)
1         references and studies, at most 0.25 s each; of each file of        ``make test`` (levels 0 and 1)
          figures the first test
2         figures, pages, examples, thin designs in full, longer studies      ``make test-figures``
3         simulations                                                         ``make test-simulations``
========  ==================================================================  ==================================

A test has the level of its folder (`LEVELS`). If it takes longer than that level allows (`LIMITS`), it has the level
that does. Its seconds are those in tests/seconds.json, measured by ``make test-seconds``, not those of the day:
processor seconds, by a yardstick those of a machine on which nothing else runs. The marker ``level(n)`` of a file, a
test or a case overrides both. Where the cases of a test claim the same and take long together, the marker ``daily(n)``
leaves all but n of them to level 2. The levels are marks for ``pytest -m``:
``pytest tests/plots -m "level0 or level1"``.
Plain ``pytest`` runs everything but simulations.

The summary at the end gives items and processor seconds by level, and those of the whole session with its workers.
"""

from __future__ import annotations

import csv
import functools
import gc
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
TESTS = ROOT / "tests"
# The longest of these folders (and files) that holds a file decides.
LEVELS = {
    "examples": 1,  # doctests
    "lmemtest": 0,  # doctests
    "lmemtest/plots": 2,
    "lmemtest/report": 1,
    "tests": 1,
    "tests/contract": 0,
    "tests/bench/data": 0,
    "tests/lmm/engine": 0,
    "tests/lmm/formula": 0,
    "tests/plots": 2,
    "tests/simulation": 3,
    "tests/test_cluster.py": 3,
    "tests/test_replicates.py": 0,
    "tests/test_result.py": 0,
    "tests/test_rounding.py": 0,
    "tests/test_spec.py": 0,
    "tests/test_table.py": 0,
    "tests/test_validate.py": 0,
    "tests/tuning": 0,
}
LIMITS = {0: 0.1, 1: 0.25}  # processor seconds of one item
YARDSTICK = 0.012  # processor seconds of `_yardstick` where nothing else runs
SECONDS = TESTS / "seconds.json"
RATES = TESTS / "simulation" / "rates.csv"
SEEN: dict[str, list[tuple[str, int, float]]] = {}  # by simulation: rule, number of tables, share
NAMES = {0: "units and messages", 1: "references and studies", 2: "figures, pages, thin designs", 3: "simulations"}


@dataclass
class Spent:
    """Items and processor seconds of a session by level."""

    start: float = field(default_factory=time.perf_counter)
    items: Counter[int] = field(default_factory=Counter)
    seconds: Counter[int] = field(default_factory=Counter)
    long: dict[str, float] = field(default_factory=dict)
    workers: float = 0.0


LEVEL = pytest.StashKey[int]()
SPENT = pytest.StashKey[Spent]()


def pytest_configure(config: pytest.Config) -> None:
    for level, name in NAMES.items():
        config.addinivalue_line("markers", f"level{level}: {name} (set by conftest.py)")
    config.stash[SPENT] = Spent()
    gc.disable()  # while a million nodes of rewritten assertions come and go: half of the time of the collection


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Simulations are not even imported where no item of level 3 can be meant."""
    simulations = {ROOT / folder for folder, level in LEVELS.items() if level == 3}
    return True if collection_path in simulations and "level3" not in config.option.markexpr else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Doctests are looked for in the files that have some: to look through all objects of 800 others takes seconds."""
    collectors = yield
    with_examples = ">>> " in file_path.read_text(encoding="utf-8") if file_path.suffix == ".py" else True
    return [found for found in collectors if with_examples or type(found).__name__ != "DoctestModule"]


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # thousands of items live to the end of the session, and are not looked through again
    gc.set_threshold(50_000, 20, 50)  # most of what tests make is gone without the collector
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-seconds", action="store_true", help=f"write {SECONDS.name} from this session")
    parser.addoption("--record-rates", action="store_true", help=f"renew the rows of {RATES.name} of these simulations")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seconds = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    levels = {item: _level(item, seconds.get(_key(item), 0.0)) for item in items}
    shown = set()
    for item, level in (levels | dict.fromkeys(_further_cases(levels), 2)).items():
        if level == 2 and TESTS / "plots" in item.path.parents and item.path not in shown:
            shown.add(item.path)
            level = 1
        item.stash[LEVEL] = level
        item.add_marker(f"level{level}")


def _level(item: pytest.Item, seconds: float) -> int:
    marker = item.get_closest_marker("level")
    if marker:
        return int(marker.args[0])
    if item.get_closest_marker("slow"):
        return 3
    return max(_level_of_folder(item.path), _level_of_cost(seconds))


def _further_cases(levels: dict[pytest.Item, int]) -> Iterator[pytest.Item]:
    """Those that the marker ``daily(n)`` leaves to level 2: all but n cases of a test, evenly spread."""
    cases = [item for item, level in levels.items() if level < 2 and item.get_closest_marker("daily")]
    for _, group in itertools.groupby(cases, key=lambda item: item.nodeid.partition("[")[0]):
        of_test = list(group)
        (n,) = of_test[0].get_closest_marker("daily").args
        kept = {i * len(of_test) // n for i in range(n)}
        yield from (item for i, item in enumerate(of_test) if i not in kept)


@functools.cache
def _level_of_folder(path: Path) -> int:
    file = f"{path.relative_to(ROOT).as_posix()}/"
    return LEVELS[max((folder for folder in LEVELS if file.startswith(f"{folder}/")), key=len)]


def _level_of_cost(seconds: float) -> int:
    return sum(seconds > limit for limit in LIMITS.values())


def _key(item: pytest.Item) -> str:
    """A test by the name of its file, so that it may move to another folder; a doctest by that of its function."""
    name = item.nodeid.partition("::")[2]
    return f"{item.path.name}::{name.rpartition('.')[2] if isinstance(item, pytest.DoctestItem) else name}"


# ------------------------------------------------------------------------------------------- what a session costs


def _processor_seconds() -> float:
    """Of this process and of those that it started and waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _yardstick() -> float:
    """Processor seconds of a fixed piece of work: a busy machine takes longer for it, as it does for a test."""
    before = time.process_time()
    sum(i * i for i in range(200_000))
    return time.process_time() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _processor_seconds()
    answer = yield
    spent = item.config.stash[SPENT]
    spent.items[item.stash[LEVEL]] += 1
    spent.seconds[item.stash[LEVEL]] += _processor_seconds() - before
    return answer


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _processor_seconds()
    answer = yield
    seconds = _processor_seconds() - before
    if item.config.getoption("record_seconds"):
        allowed = _level_of_folder(item.path)
        if _level_of_cost(seconds) > allowed:
            seconds *= YARDSTICK / min(_yardstick() for _ in range(3))
        item.config.stash[SPENT].long[_key(item)] = round(seconds, 2) if _level_of_cost(seconds) > allowed else 0.0
    return answer


@pytest.fixture(autouse=True, scope="session")
def _bundled_tables_are_read_once() -> Iterator[None]:
    """Each test has a copy of its own."""
    from lmemtest.bench.data import datasets

    read = functools.cache(datasets._read_bundled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "_read_bundled", lambda name: read(name).copy())
        yield


@pytest.fixture(autouse=True, scope="session")
def _command_lines_are_built_once() -> Iterator[None]:
    """Not for every call: to make 32 commands of their signatures takes most of the time of a refusal."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((typer.main, "get_command"), (typer.testing, "_get_command")):
            patch.setattr(module, name, functools.cache(typer.main.get_command))
        yield


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Figures of pages and docstrings are closed: pyplot warns of many that are open."""
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist sends what it spent."""
    if hasattr(session.config, "workeroutput"):
        spent = session.config.stash[SPENT]
        counts = (dict(spent.items), dict(spent.seconds), dict(spent.long))
        session.config.workeroutput["spent"] = (*counts, _processor_seconds())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    spent = node.config.stash[SPENT]
    items, seconds, long, processor = getattr(node, "workeroutput", {}).get("spent", ({}, {}, {}, 0.0))
    spent.items.update(items)
    spent.seconds.update(seconds)
    spent.long.update(long)
    spent.workers += processor


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    rates = dict(report.user_properties).get("rates")
    if report.when == "teardown" and rates:
        SEEN[report.nodeid] = rates


def _record_rates() -> None:
    with RATES.open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    rows = [row for row in rows if row[0] not in SEEN]
    rows += [[test, *map(str, rate)] for test, rates in SEEN.items() for rate in rates]
    with RATES.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heading, *sorted(rows, key=lambda row: row[0])])


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
    if config.getoption("record_rates"):
        _record_rates()
    if config.getoption("record_seconds"):  # of the tests of this session; the others keep theirs
        seconds = json.loads(SECONDS.read_text()) | spent.long
        long = {test: seconds[test] for test in sorted(seconds) if seconds[test]}
        SECONDS.write_text(json.dumps(long, indent=0) + "\n", encoding="utf-8")
