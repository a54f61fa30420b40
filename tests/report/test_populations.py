"""The report says for which population a claim holds, and what changes for the other one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.errors import ArgumentError

pytestmark = pytest.mark.level(2)
ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "family": "search_space"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """B is better than A on most tasks of most spaces, to a degree that depends on the space."""
    rng = np.random.default_rng(1)
    rows = []
    for space in range(6):
        gain = 0.7 + 1.5 * rng.normal()
        for task in range(4):
            rows += [
                (f"s{space}", f"s{space}t{task}", tool, rng.normal() * 0.3 - gain * (tool == "B")) for tool in "ABC"
            ]
    return pd.DataFrame(rows, columns=["search_space", "task", "tool", "loss"])


def test_the_headline_and_the_report_name_the_population(table: pd.DataFrame) -> None:
    analysis = lt.analyze(table, **ROLES)
    about = "This is about new search spaces, on average over search spaces like the 6 studied here"
    assert about in analysis.headline()
    text = analysis.to_text().replace("\n", " ")
    assert "Claims are about new search spaces." in text
    assert "We compared 3 algorithms by loss (lower is better) on 24 benchmarks in 6 search spaces." in text


def test_the_report_says_which_pairs_the_other_population_decides_otherwise(table: pd.DataFrame) -> None:
    analysis = lt.analyze(table, **ROLES)
    assert analysis.populations is not None
    changed = analysis.populations.changed()
    assert len(changed)
    overview = analysis.populations.overview
    assert f"Another population. {overview}" in analysis.headline()
    assert "Pairs with another decision for the other population" in analysis.to_text()
    narrow = lt.analyze(table, population="benchmark", **ROLES)
    assert narrow.claim == "new tasks of these 6 search spaces"
    assert narrow.populations is not None
    pd.testing.assert_frame_equal(narrow.populations.table, analysis.populations.table)
    assert "population='benchmark'" in narrow.call


def test_a_model_of_ones_own_says_itself_what_its_sample_is(table: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match="and formula each choose the model: give one of them"):
        lt.analyze(table, formula="loss ~ tool + (1 | task)", population="family", **ROLES)
    own = lt.analyze(table, formula="loss ~ tool + (1 | task)", **ROLES)
    assert own.populations is None
    assert "the model lacks (1 | search_space:tool)" in own.headline()
