"""What no answer depends on: the order of rows, the unit of the score, whether low ones are good, names of seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from study import make_runs

import lmemtest as lt

FACTOR, SHIFT = -1000.0, 5.0
# How a number follows the score: not at all, by its sign, as a difference, its size, its square, or as a score itself.
FOLLOWS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda x: x,
    lambda x: -x,
    lambda x: FACTOR * x,
    lambda x: -FACTOR * x,
    lambda x: FACTOR**2 * x,
    lambda x: FACTOR * x + SHIFT,
)
SIDES = {"low": "high", "high": "low", "q1": "q3", "q3": "q1", "min": "max", "max": "min"}  # which scores exchange
OF_THE_SCORE = ("direction", "llf", "aic", "bic")  # a likelihood has the unit of the scores


def fit(runs: lt.Runs) -> Any:
    return lt.fit_lmm("loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)", runs)


def sandwiched(model: Any) -> Any:
    return model.emmeans("algorithm", vcov=model.cluster_robust("benchmark")).pairs()


def halves(runs: lt.Runs) -> dict[str, Any]:
    """Two versions of one algorithm, for a gate."""
    table = runs.to_frame()
    new, old = (table[table["algorithm"] == name].drop(columns="algorithm") for name in "AB")
    roles = {"score": "loss", "benchmark": "benchmark", "seed": "seed", "direction": runs.direction}
    return {"new": new, "old": old, **roles}


# Of runs with one score each; of curves over the budget.
QUESTIONS: dict[str, Callable[[lt.Runs], Any]] = {
    "analyze": lambda runs: lt.analyze(runs).pairs,
    "audit": lambda runs: lt.audit(runs, n_draws=9, rng=1),
    "benchmark_clusters": lambda runs: lt.benchmark_clusters(runs, n_draws=9, rng=1),
    "benchmark_effects": lambda runs: lt.benchmark_effects(runs, rng=1),
    "benchmark_information": lt.benchmark_information,
    "gate": lambda runs: lt.gate(**halves(runs), margin=0.5 if runs.direction == "minimize" else 500.0),
    "monitor": lambda runs: lt.monitor(runs, maximum=40, looks=10),
    "permutation_test": lambda runs: lt.permutation_test(runs, "loss ~ algorithm + (1 | benchmark)", n_draws=9, rng=1),
    "sign flips": lambda runs: lt.permutation_test(runs, exchange="signs", n_draws=99, rng=1),
    "outperforming": lambda runs: lt.outperforming(runs, rng=1),
    "stochastic order": lambda runs: lt.outperforming(runs, measure="stochastic_order", rng=1),
    "rank": lt.rank,
    "wilcoxon": lambda runs: lt.rank(runs, test="wilcoxon"),
    "bayesian": lambda runs: lt.rank(runs, "bayesian", n_draws=500, rng=1),
    "ranking_reliability": lt.ranking_reliability,
    "robustness": lambda runs: lt.robustness(runs, of="benchmarks"),
    "score_distributions": lt.score_distributions,
    "seed_effect": lambda runs: lt.seed_effect(runs, rng=1),
    "variance_sources": lt.variance_sources,
    "select_model": lambda runs: lt.select_model(runs, max_steps=1, candidates=["(1 | benchmark:seed)"], rng=1),
    "best model": lambda runs: lt.select_model(runs, method="best", depth=2, candidates=["(1 | benchmark:seed)"]),
    "pairs of the model": lambda runs: fit(runs).emmeans("algorithm", vcov="model").pairs(),
    "moderated pairs": lambda runs: fit(runs).emmeans("algorithm", vcov="moderated").pairs(),
    "sandwich": lambda runs: sandwiched(fit(runs)),
    "means": lambda runs: fit(runs).emmeans("algorithm"),
    "anova": lambda runs: fit(runs).anova(),
    "ranova": lambda runs: fit(runs).ranova(reference="mixture"),
    "profile": lambda runs: fit(runs).profile("sd"),
    "influence": lambda runs: fit(runs).influence("benchmark"),
    "random_effects": lambda runs: fit(runs).random_effects("benchmark", rng=1),
}
OF_CURVES: dict[str, Callable[[lt.Runs], Any]] = {
    "anytime": lambda runs: lt.anytime(runs, n_draws=1000, rng=1),
    "stretches": lambda runs: lt.anytime(runs, n_draws=1000, rng=1).stretches,
    "best over the budget": lambda runs: lt.anytime(runs, n_draws=1000, rng=1).best,
    "horizons": lambda runs: lt.anytime(runs).at([1, (2, 4)]),
    "changes": lambda runs: lt.anytime(runs).at([1, (2, 4)]).changes,
    "relative ranks": lambda runs: lt.anytime(runs).ranks(),
    "budget_effect": lt.budget_effect,
}


def turned(runs: lt.Runs) -> lt.Runs:
    """The same runs in other rows, with other names of seeds, and scores in another unit, high ones good."""
    table = runs.to_frame().sample(frac=1.0, random_state=1)
    table = table.assign(loss=FACTOR * table["loss"] + SHIFT, seed="s" + table["seed"].astype(str))
    return lt.Runs(table, **{**runs.roles(), "direction": "maximize"})


def table_of(answer: Any) -> pd.DataFrame:
    table = answer if isinstance(answer, pd.DataFrame) else answer.to_frame()
    return table.drop(columns=[name for name in OF_THE_SCORE if name in table]).rename(columns=str)


def follows(want: pd.Series, other_side: pd.Series, got: pd.Series) -> bool:
    """Whether a column follows the score in one of the ways, with or without a change of sides; words do not."""
    if not is_numeric_dtype(want) or is_bool_dtype(want):
        return want.astype(str).tolist() == got.astype(str).tolist()
    y, *xs = (x.to_numpy(dtype=float, na_value=np.nan) for x in (got, want, other_side))
    ways = (way(x) for way in FOLLOWS for x in xs)
    return any(np.allclose(y, x, rtol=1e-4, atol=1e-8, equal_nan=True) for x in ways)


@pytest.mark.parametrize("name", [*QUESTIONS, *OF_CURVES])
def test_answers_follow_the_score_and_depend_on_nothing_else(name: str) -> None:
    runs = make_runs(3, 6, 3, budgets=[1, 2, 4] if name in OF_CURVES else None, shift=[0.0, 1.0, 1.5])
    before, ask = runs.to_frame().copy(), {**QUESTIONS, **OF_CURVES}[name]
    want, got = table_of(ask(runs)), table_of(ask(turned(runs)))
    assert (list(got), len(got)) == (list(want), len(want))
    for column in want:
        *start, side = column.rpartition("_")
        exchanged = "".join([*start, SIDES.get(side, side)])
        assert follows(want[column], want.get(exchanged, want[column]), got[column]), (
            column,
            want[column],
            got[column],
        )
    pd.testing.assert_frame_equal(runs.to_frame(), before)
