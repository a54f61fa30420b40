"""Fixtures of the inference tests: reference values from R and the data behind them."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

REFERENCE = Path(__file__).parent.parent / "reference"


@cache
def load_json(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())


@cache
def load_input(name):
    types = json.loads((REFERENCE / "inputs" / "columns.json").read_text())[name]
    path = REFERENCE / "inputs" / f"{name}.csv"
    if not path.exists():
        path = path.with_suffix(".csv.gz")
    return pd.read_csv(path, dtype={c: str if t == "str" else float for c, t in types.items()})


@pytest.fixture
def r_values():
    """Load tests/reference/<name>.json."""
    return load_json


@pytest.fixture
def r_data():
    """Load tests/reference/inputs/<name>.csv with the column types that R used."""
    return load_input


@pytest.fixture(scope="session")
def fitted():
    """Fit a formula to a reference data set, once per session."""
    from lmemtest.lmm.model import fit_lmm

    @cache
    def fit(name, formula, reml=True, weights=None):
        return fit_lmm(formula, load_input(name), reml=reml, weights=weights)

    return fit


@pytest.fixture
def means_of():
    """Marginal means from arrays: `means_of(mean, covariance, df)`, without a fit."""
    from lmemtest.lmm.means.estimates import Estimates

    def build(mean, covariance, df=np.inf, direction="maximize", by=None):
        mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
        k = len(mean)
        frame = pd.DataFrame({"algorithm": [f"a{i}" for i in range(k)]})
        if by is not None:
            frame = pd.DataFrame({"algorithm": [f"a{i % (k // len(by))}" for i in range(k)]})
            frame["prior"] = np.repeat(by, k // len(by))
        return Estimates.of(
            L=np.eye(k),
            frame=frame,
            b=mean,
            V=covariance,
            df=df,
            by=() if by is None else ("prior",),
            n_obs=100,
            ddf="residual",
            score="score",
            direction=direction,
        )

    return build
