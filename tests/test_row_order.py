"""Rows carry no information by their order: shuffled tables give the same answer, whatever is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt


def study() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    axes = {"algorithm": list("pqrs"), "benchmark": list("uvwxyz"), "prior": ["bad", "good"], "seed": range(4)}
    frame = pd.MultiIndex.from_product(axes.values(), names=list(axes)).to_frame(index=False)
    own = frame.groupby(["algorithm", "benchmark"]).ngroup().map(dict(enumerate(0.5 * rng.normal(size=24))))
    frame["loss"] = (1.0 + own + 0.3 * rng.normal(size=len(frame))).round(2)  # rounded: some runs are equal
    return frame


def runs(frame: pd.DataFrame, **roles: Any) -> lt.Runs:
    known = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "metafeatures": ["prior"]}
    return lt.Runs(frame, score="loss", direction="minimize", **(known | roles))


def without_seeds(frame: pd.DataFrame) -> lt.Runs:
    return runs(frame.drop(columns="seed"), seed=None)


def fit(frame: pd.DataFrame) -> lt.LmmFit:
    return lt.fit_lmm("loss ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)", runs(frame))


ANSWERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "benchmark_clusters": lambda t: lt.benchmark_clusters(runs(t), rng=1, n_boot=40).to_frame(),
    "benchmark_clusters, no seeds": lambda t: lt.benchmark_clusters(without_seeds(t), rng=1, n_boot=40).to_frame(),
    "variance_sources": lambda t: lt.variance_sources(runs(t)).to_frame(),
    "ranking_reliability": lambda t: lt.ranking_reliability(runs(t)).to_frame(),
    "benchmark_effects": lambda t: lt.benchmark_effects(runs(t), rng=1).to_frame(),
    "random_effects": lambda t: lt.random_effects(fit(t), "benchmark", rng=1).to_frame(),
    "pairs": lambda t: lt.pairs(lt.emmeans(fit(t), "algorithm"), adjust="mvt", rng=1).to_frame(),
    "versus_best": lambda t: lt.versus_best(lt.emmeans(fit(t), "algorithm"), rng=1).to_frame(),
    "diagnose": lambda t: lt.diagnose(fit(t), influence=False, n_sim=99, rng=1).to_frame(),
    "bootstrap": lambda t: lt.bootstrap(fit(t), lambda drawn: drawn.params, 10, rng=1).to_frame(),
    "simulate": lambda t: pd.DataFrame({"mean": fit(t).simulate(rng=1).mean}),
    "permutation_test": lambda t: pd.DataFrame(
        {"p": [lt.permutation_test(runs(t), "loss ~ algorithm + (1|benchmark)", n_permutations=39, rng=1).pvalue]}
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_does_not_depend_on_the_order_of_rows(name: str) -> None:
    table, answer = study(), ANSWERS[name]
    want = answer(table)
    for other in (table.iloc[::-1], table.sample(frac=1.0, random_state=3)):
        pd.testing.assert_frame_equal(answer(other.reset_index(drop=True)), want, rtol=1e-7, atol=1e-10)
