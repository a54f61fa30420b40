"""Fixtures of the tests of mixed models: fits of reference data, means from arrays."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from references import inputs


@pytest.fixture(scope="session")
def fitted():
    """Fit a formula to a reference data set, once per session."""
    from lmemtest.lmm.model import fit_lmm

    @cache
    def fit(name, formula, reml=True, weights=None):
        return fit_lmm(formula, inputs(name), reml=reml, weights=weights)

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
