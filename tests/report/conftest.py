"""Small tables of runs and their analyses; analysed once, because results are never changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.data.runs import Runs
from lmemtest.report.analysis import Analysis, analyze

NASTY = ("<script>alert(1)</script>", "{{7*7}}", 'it\'s "so" ]]>', "$\\alpha$", "{% for %}", "a\nb\x07\u202e")


def make_table(
    algorithms: Sequence[object] = ("A", "B", "C"),
    benchmarks: Sequence[object] = tuple(f"task{i}" for i in range(8)),
    seeds: int = 4,
    *,
    spread: float = 0.3,
) -> pd.DataFrame:
    """Runs whose algorithms are about 1 apart, in the order given."""
    rng = np.random.default_rng(7)
    rows = []
    for benchmark in benchmarks:
        level = rng.normal(5.0, 2.0)
        for step, algorithm in enumerate(algorithms):
            shift = rng.normal(0.0, spread)
            for seed in range(seeds):
                rows.append((algorithm, benchmark, seed, level + step + shift + rng.normal(0.0, spread)))
    return pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"])


def make_runs(frame: pd.DataFrame, **roles: object) -> Runs:
    given = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    return Runs(frame, **{**given, **roles})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def table() -> Callable[..., pd.DataFrame]:
    """`table(algorithms, benchmarks, seeds, spread=)` makes a table of runs."""
    return make_table


@pytest.fixture(scope="session")
def as_runs() -> Callable[..., Runs]:
    """`as_runs(frame, **roles)` gives such a table its roles."""
    return make_runs


@pytest.fixture(scope="session")
def nasty_names() -> tuple[str, ...]:
    return NASTY


@pytest.fixture(scope="session")
def three() -> Analysis:
    return analyze(make_runs(make_table()))


@pytest.fixture(scope="session")
def three_html(three: Analysis) -> str:
    return three.to_html()


@pytest.fixture(scope="session")
def many() -> Analysis:
    return analyze(make_runs(make_table([f"a-rather-long-name-{i:02d}" for i in range(20)], seeds=2, spread=3.0)))


@pytest.fixture(scope="session")
def nasty() -> Analysis:
    frame = make_table(NASTY, ["<b>x</b>", "{{ config }}", "`tick`", "a|b", "&amp;", "%s %d"], seeds=2)
    frame = frame.rename(columns={"tool": "to<ol>", "loss": "s{{1}}|`"})
    return analyze(make_runs(frame, algorithm="to<ol>", score="s{{1}}|`"))
