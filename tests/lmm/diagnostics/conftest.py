"""Tables with known properties for the diagnostics."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.lmm.diagnostics import diagnose

FORMULA = "loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"


def make_table(rng, benchmarks=12, algorithms=3, seeds=8, *, repeats=1, noise=None, scales=None):
    """Runs from the recommended model; `noise(rng, n)` draws errors, `scales` are their sizes per benchmark."""
    rows = itertools.product(range(benchmarks), range(algorithms), range(seeds), range(repeats))
    table = pd.DataFrame(list(rows), columns=["benchmark", "algorithm", "seed", "repeat"])
    b, a, s = (table[c].to_numpy() for c in ("benchmark", "algorithm", "seed"))
    error = rng.normal(size=len(table)) if noise is None else noise(rng, len(table))
    if scales is not None:
        error = error * np.asarray(scales)[b]
    table["loss"] = (
        rng.normal(size=benchmarks)[b]
        + 0.4 * rng.normal(size=(benchmarks, algorithms))[b, a]
        + 0.5 * rng.normal(size=(benchmarks, seeds))[b, s]
        + error
    )
    table["algorithm"] = table["algorithm"].map(lambda i: f"a{i}")
    table["benchmark"] = table["benchmark"].map(lambda i: f"b{i:02d}")
    return table


@pytest.fixture(scope="session")
def make():
    """The maker above, for test modules, which cannot import this one."""
    return SimpleNamespace(table=make_table, formula=FORMULA)


@pytest.fixture(scope="session")
def clean_fit():
    """A fit whose model is true."""
    return lt.fit_lmm(FORMULA, make_table(np.random.default_rng(1)), restarts=0)


@pytest.fixture(scope="session")
def clean(clean_fit):
    """Its diagnosis."""
    return diagnose(clean_fit, rng=1, influence=False)
