"""Columns without a role: no table of pure chance is given a winner because its data sets or folds were not named."""

from __future__ import annotations

import numpy as np
import pandas as pd
from harness import rate_of
from study import make_scores, table_of_scores

import lmemtest as lt


def null_table(rng: np.random.Generator) -> pd.DataFrame:
    """Five equal classifiers on 15 data sets with 10 folds; each does better on some data sets than on others."""
    counts = {"classifier": 5, "dataset": 15, "fold": 10}
    sds = {"dataset": 0.01, "classifier:dataset": 0.03, "dataset:fold": 0.01}
    names = {"classifier": [f"c{i}" for i in range(5)], "dataset": [f"d{i}" for i in range(15)]}
    return table_of_scores(0.8 + make_scores(rng, counts, sds, noise=0.02), " ".join(counts), "accuracy", **names)


def claims(n: int, rng: int, headline: str = "", **roles: object) -> float:
    """Share of tables in which anything is called different; what is refused is not."""

    def study(rng: np.random.Generator) -> bool:
        table = null_table(rng)
        analysis = lt.analyze(table, score="accuracy", direction="maximize", algorithm="classifier", **roles)
        assert headline in analysis.headline()
        return bool(analysis.decisions.significant.to_numpy().any())

    return rate_of(study, n, rng, refused=False)


def test_no_table_of_chance_gets_a_winner_without_its_roles() -> None:
    assert claims(100, 11) == 0
    assert claims(20, 11, seed="fold") == 0


def test_with_the_guessed_roles_claims_are_as_rare_as_promised() -> None:
    """At most 5 % of 40 tables, allowing for the chance of 1 in 1,000 to see more than 8."""
    assert claims(40, 12, benchmark="dataset", seed="fold") <= 8 / 40


def test_left_out_on_purpose_they_would_be_found_in_most_tables() -> None:
    """The reason for the refusal: rows of one data set are not independent."""
    assert claims(20, 13, "left out on purpose", ignore=["dataset", "fold"]) >= 5 / 20
