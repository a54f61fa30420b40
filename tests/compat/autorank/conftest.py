"""What autorank 1.3.0 gave on small tables, see tests/reference/compat_autorank.py, and ours beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lmemtest.compat.autorank import RankResult, autorank

NUMBERS = ("meanrank", "mean", "median", "std", "mad", "ci_lower", "ci_upper", "effect_size", "effect_size_above",
           "p_equal", "p_smaller", "p_equal_above", "p_smaller_above")  # fmt: skip


@pytest.fixture(scope="session")
def peer(reference) -> dict[str, Any]:
    """Everything that is stored."""
    return reference("autorank")


@pytest.fixture(scope="session")
def table(peer) -> Callable[[str], pd.DataFrame]:
    """`table("skewed")` is a fresh copy of a table that the peer was given."""
    return lambda name: pd.DataFrame(peer["tables"][name])


@pytest.fixture(scope="session")
def ours(peer, table) -> Callable[[str], RankResult]:
    """Our answer to a case of the peer."""
    known: dict[str, RankResult] = {}

    def answer(case: str) -> RankResult:
        if case not in known:
            stored = peer["cases"][case]
            known[case] = autorank(table(stored["table"]), **stored["options"])
        return known[case]

    return answer


@pytest.fixture(scope="session")
def theirs(peer) -> Callable[[str], dict[str, Any]]:
    """The peer's answer to a case, with `rankdf` as a frame."""
    return lambda case: {**peer["cases"][case]["answer"], "rankdf": frame(peer["cases"][case]["answer"]["rankdf"])}


def frame(stored: dict[str, Any]) -> pd.DataFrame:
    """A stored frame, numbers as floats."""
    columns = {
        name: np.array(values, dtype=float if name in NUMBERS else object) for name, values in stored["data"].items()
    }
    return pd.DataFrame(columns, index=stored["index"], columns=stored["columns"])
