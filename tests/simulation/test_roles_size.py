"""Columns without a role: no table of pure chance is given a winner because its data sets or folds were not named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from study import make_study

import lmemtest as lt
from lmemtest.errors import ArgumentError

pytestmark = pytest.mark.slow
N = 100


def null_table(rng: np.random.Generator) -> pd.DataFrame:
    """Five equal classifiers on 15 data sets with 10 folds; each does better on some data sets than on others."""
    counts = {"classifier": 5, "dataset": 15, "fold": 10}
    sds = {"dataset": 0.01, "classifier:dataset": 0.03, "dataset:fold": 0.01}
    table = make_study(rng, counts, sds, noise=0.02, score="accuracy")
    return table.assign(
        classifier=table["classifier"].map("c{}".format),
        dataset=table["dataset"].map("d{}".format),
        accuracy=0.8 + table["accuracy"],
    )


def claims(table: pd.DataFrame, **roles: str) -> bool:
    """Whether anything is called different."""
    try:
        analysis = lt.analyze(table, score="accuracy", direction="maximize", algorithm="classifier", **roles)
    except ArgumentError:
        return False
    return bool(analysis.decisions.significant.to_numpy().any())


def test_no_table_of_chance_gets_a_winner_without_its_roles() -> None:
    rng = np.random.default_rng(11)
    assert not any(claims(null_table(rng)) for _ in range(N))
    assert not any(claims(null_table(rng), seed="fold") for _ in range(N // 5))


def test_with_the_guessed_roles_claims_are_as_rare_as_promised() -> None:
    """At most 5 % of 40 tables, allowing for the chance of 1 in 1,000 to see more than 8."""
    rng = np.random.default_rng(12)
    assert sum(claims(null_table(rng), benchmark="dataset", seed="fold") for _ in range(40)) <= 8


def test_left_out_on_purpose_they_would_be_found_in_most_tables() -> None:
    """The reason for the refusal: rows of one data set are not independent."""
    rng = np.random.default_rng(13)
    found = 0
    for _ in range(20):
        analysis = lt.analyze(
            null_table(rng), score="accuracy", direction="maximize", algorithm="classifier", ignore=["dataset", "fold"]
        )
        found += bool(analysis.decisions.significant.to_numpy().any())
        assert "left out on purpose" in analysis.headline()
    assert found >= 5
