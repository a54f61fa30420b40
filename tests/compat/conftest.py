"""What significance-analysis 0.2.4 gave on small tables; see tests/reference/compat_significance_analysis.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def peer(reference) -> dict[str, Any]:
    """Everything that is stored."""
    return reference("significance_analysis")


@pytest.fixture
def table(peer) -> Callable[[str], pd.DataFrame]:
    """`table("real")` is a fresh copy of a table that the peer was given."""
    return lambda name: pd.DataFrame(peer["tables"][name])


@pytest.fixture(scope="session")
def frame_of() -> Callable[[dict[str, Any]], pd.DataFrame]:
    """A stored frame, numbers as floats."""

    def make(stored: dict[str, Any]) -> pd.DataFrame:
        columns = {}
        for name, dtype in zip(stored["columns"], stored["dtypes"], strict=True):
            values = stored["data"][name]
            columns[name] = np.array(values, dtype=float if dtype[:3] in ("flo", "int") else object)
        return pd.DataFrame(columns, index=stored["index"], columns=stored["columns"])

    return make


@pytest.fixture(scope="session")
def assert_like(frame_of) -> Callable[..., None]:
    """Compare a frame with a stored one: columns, their order, labels, and numbers to a relative tolerance."""

    def check(ours: pd.DataFrame, stored: dict[str, Any], *, rel: float = 1e-5, skip: tuple[str, ...] = ()) -> None:
        theirs = frame_of(stored)
        assert list(ours.columns) == stored["columns"]
        assert len(ours) == len(theirs)
        for name in ours.columns:
            if name in skip:
                continue
            if theirs[name].dtype == float:
                # R's ptukey has an absolute error near 1e-10
                atol = 1e-9 if name == "P-val" else 1e-12
                np.testing.assert_allclose(
                    ours[name].to_numpy(dtype=float), theirs[name], rtol=rel, atol=atol, err_msg=name
                )
            else:
                assert [str(value) for value in ours[name]] == list(theirs[name]), name

    return check


@pytest.fixture
def plt() -> Iterator[Any]:
    """pyplot, for this test alone: while it is loaded, every figure of the package is registered there."""
    loaded = "matplotlib.pyplot" in sys.modules
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
    if not loaded:
        del sys.modules["matplotlib.pyplot"]
