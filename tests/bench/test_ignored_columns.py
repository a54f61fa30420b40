"""Columns that runs ignore stand in nobody's way: every function of runs takes them."""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.errors import LmemtestWarning

FURTHER: dict[str, dict[str, Any]] = {
    "metafeature_effect": {"algorithms": ["A", "B"], "metafeature": "prior"},
    "permutation_test": {"model": "loss ~ alg + (1 | task)", "n_draws": 19, "rng": 0},
}
OF_NO_RUNS = {"evaluate", "fit_lmm", "glrt", "plan", "power", "read_runs", "trajectories"}
OF_NO_RUNS |= {"gate"}  # gate makes runs of its own, which its tests cover
OF_NO_RUNS |= {"audit"}  # slow, and of the rows that `check` and `recommend` take


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = list(itertools.product("ABC", [f"t{i}" for i in range(4)], range(4), [1, 2, 4]))
    found = pd.DataFrame(rows, columns=["alg", "task", "seed", "epoch"])
    noise = 0.1 * rng.normal(size=len(found)) + found["alg"].map({"A": 0.0, "B": 0.1, "C": 0.2})
    return found.assign(
        loss=noise + found["task"].str[1].astype(int) / found["epoch"] ** 0.5,
        prior=np.where(found["seed"] % 2, "good", "bad"),
        crashed=[i % 17 == 0 for i in range(len(found))],
        valid_error=rng.normal(size=len(found)),
        note=[f"n{i % 3}" for i in range(len(found))],
    )


ROLES: dict[str, Any] = {
    "score": "loss",
    "direction": "minimize",
    "algorithm": "alg",
    "benchmark": "task",
    "seed": "seed",
}
FUNCTIONS = [name for name in lt.__all__ if inspect.isfunction(getattr(lt, name)) and name not in OF_NO_RUNS]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_runs_takes_ignored_columns(name: str) -> None:
    roles = {**ROLES, "budget": "epoch", "ignore": ["prior", "valid_error", "note", "crashed"]}
    if name == "metafeature_effect":
        roles |= {"metafeatures": ["prior"], "ignore": ["valid_error", "note", "crashed"]}
    if name.startswith("failure"):
        roles |= {"failed": "crashed", "ignore": ["prior", "valid_error", "note"]}
    runs = lt.Runs(table(), **roles)
    function = getattr(lt, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LmemtestWarning)
        found = function(runs, **FURTHER.get(name, {}))
    assert found is not None


def test_comparisons_over_the_budget_are_those_of_a_table_without_the_ignored_columns() -> None:
    others, roles = ["prior", "valid_error", "note", "crashed"], {**ROLES, "budget": "epoch"}
    ignoring = lt.anytime(lt.Runs(table(), ignore=others, **roles), rng=0)
    without = lt.anytime(lt.Runs(table().drop(columns=others), **roles), rng=0)
    pd.testing.assert_frame_equal(ignoring.to_frame(), without.to_frame())
    pd.testing.assert_frame_equal(ignoring.at([1, 4]).to_frame(), without.at([1, 4]).to_frame())
    pd.testing.assert_frame_equal(ignoring.ranks().to_frame(), without.ranks().to_frame())
