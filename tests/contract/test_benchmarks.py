"""The suite of `make bench` runs, and its registry, its peers and its page name the same things."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "benchmarks"
CHEAP = "276 Tukey p-values with distinct df"


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    """The program as a module; the settings that it makes for itself are undone."""
    kept, names = dict(os.environ), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        import suite

        yield suite
    finally:
        sys.path.remove(str(FOLDER))
        os.environ.clear()
        os.environ.update(kept)
        for name in {"suite", "registry", "bench_designs"} - names:
            sys.modules.pop(name, None)


def row(suite: ModuleType, theirs: float, **options: object) -> object:
    """A row in which we took two seconds and a peer ``theirs``."""
    one = suite.Benchmark(name="one", group="fits", call=lambda _: None, peers={"peer: fit": 1}, **options)
    return suite.Row(one, ours=[(3.0, 1.0), (3.0, 2.0), (9.0, 8.0)], theirs={"peer: fit": [(theirs, theirs)]})


@pytest.mark.level(2)
def test_a_quick_benchmark_runs_without_peers(suite: ModuleType, tmp_path: Path) -> None:
    found = [b for b in suite.registry.benchmarks() if b.quick and b.name == CHEAP]
    measured = suite.measure(*found, {}, tmp_path, repeats=2, budget=60.0)
    assert len(measured.ours) == 2  # the first is not counted
    assert len(suite.measure(*found, {}, tmp_path, repeats=2, budget=0.0).ours) == 1  # one is, whatever the budget
    assert 0.0 < measured.seconds() < 5.0
    assert measured.theirs == {}
    assert "No peer was timed." in suite.summary([measured])


def test_what_is_slower_than_a_peer_is_marked(suite: ModuleType) -> None:
    faster, slower = row(suite, 4.0, ratios={"peer: fit": 3}), row(suite, 1.0, limit=1.5)
    lines = suite.table_of([faster, slower]).splitlines()
    assert lines[2] == "| one | 2.0 s | 3.0 s | 4.0 s: 2.0 | **3 x peer** |"
    assert lines[3] == "| one | 2.0 s | 3.0 s | 1.0 s: **0.5** | **1.5 s** |"
    slower.reasons["other: fit"] = "is not installed"
    said = suite.summary([faster, slower])
    assert said.startswith("Slower than a peer: 1 of 2 rows.\n- one: peer\n")
    assert "A goal was missed: 2 of 2 rows.\n- one: 3 x peer\n- one: 1.5 s\n" in said
    assert said.endswith("Without a time:\n- one: other, is not installed")


def test_peers_know_every_task_of_the_registry(suite: ModuleType) -> None:
    known = {name: (FOLDER / name).read_text(encoding="utf-8") for name in ("peers.R", "peers.py")}
    for benchmark in suite.registry.benchmarks():
        assert set(benchmark.ratios) <= set(benchmark.peers), benchmark.name
        for task in benchmark.peers:
            text = known["peers.R" if suite.of(task) in suite.OF_R else "peers.py"]
            assert f'"{task}"' in text, (benchmark.name, task)


def test_a_text_goes_between_its_markers_and_nowhere_else(suite: ModuleType) -> None:
    page = "a\n<!-- bench: x -->\nold\n<!-- end of bench: x -->\nb\n"
    assert suite.written(page, "x", "new") == "a\n<!-- bench: x -->\n\nnew\n\n<!-- end of bench: x -->\nb\n"
    with pytest.raises(SystemExit, match="no place for 'y'"):
        suite.written(page, "y", "new")


def test_the_page_has_a_place_for_every_group(suite: ModuleType) -> None:
    page = suite.PAGE.read_text(encoding="utf-8")
    for name in {b.group for b in suite.registry.benchmarks()} | {"machine"}:
        assert suite.written(page, name, "") != page


@pytest.mark.level(2)
def test_peers_answer_in_turns_and_a_failure_is_a_reason(suite: ModuleType) -> None:
    peer = suite.Peer([sys.executable, str(FOLDER / "peers.py")], cap=30.0)
    try:
        assert "Python" in peer.versions
        wall, work = peer.ask("SciPy: Tukey", "", "")
        assert min(wall, work) > 0.0
        assert "is not installed" in peer.ask("significance-analysis: fidelity_check", "", "")
    finally:
        peer.close()
