"""Over generated models of many shapes our likelihood is never below the best of lme4's optimisers."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.errors import ConvergenceWarning


@pytest.fixture(scope="module")
def tables(reference_input):
    frame = reference_input("generated")
    return dict(iter(frame.groupby("id", sort=False)))


@pytest.mark.parametrize("method", ["ML", "REML"])
def test_log_likelihood_is_never_below_the_best_of_lme4s_optimisers(reference, tables, method):
    models = reference("generated")["models"]
    assert len(models) >= 100
    worse, uncertified = [], []
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = lt.fit_lmm(model["formula"], _own_columns(tables[model["id"]]), reml=method == "REML")
        best = model[method]["llf"]
        if fit.llf < best - 1e-6 * abs(best):
            worse.append((model["id"], model["shape"], model["formula"], fit.llf - best))
        if not fit.converged:
            uncertified.append((model["id"], model["formula"], fit.optim.message))
    assert worse == []
    assert uncertified == []


def _own_columns(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="id")
