"""How often the budget check claims something where there is nothing, on tables that break what F-tests assume.

Tables are drawn as curves, ``(benchmarks, algorithms, budgets)``, which is all that the check sees of complete runs.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import at_most, printed, rate_of
from scipy.stats import rankdata
from study import runs_of_scores

from lmemtest.bench.budget.budget_model import BudgetCurves, Fitted, budget_columns, budget_tests

BUDGETS = (1, 2, 3, 4, 5, 6)
_RUNS = runs_of_scores(np.eye(2), "algorithm budget", budget=[1, 2])


def curves_of(scores: np.ndarray, *, form: str = "linear", relative: bool = False) -> BudgetCurves:
    """Curves of a complete table of means."""
    columns, wider = budget_columns(BUDGETS, form, "linear")

    def fitted(chosen) -> Fitted:
        coefficients = scores @ chosen(BUDGETS)
        return Fitted(chosen, coefficients, scores.mean(axis=2), np.zeros_like(coefficients))

    return BudgetCurves(
        runs=_RUNS,
        form=form,
        axis="linear",
        algorithms=tuple(range(scores.shape[1])),
        budgets=BUDGETS,
        fitted=fitted(columns),
        free=None if wider is None else fitted(wider),
        sample="benchmarks",
        group=np.zeros(len(scores), dtype=np.intp),
        relative=relative,
        n_obs=scores.size,
        notes=(),
    )


LAWS = ("normal", "heavy tails", "scales", "one benchmark", "one algorithm", "ties", "no effect on half", "ranks")


def scores_of(rng: np.random.Generator, law: str, n: int, algorithms: int, common: float = 0.0) -> np.ndarray:
    """Curves of benchmarks, and of algorithms on them, that scatter symmetrically about zero (or a common slope)."""
    time = np.array(BUDGETS) - np.mean(BUDGETS)

    def draw(*shape: int) -> np.ndarray:
        size = (*shape, 1)
        slopes = rng.standard_t(2, size=size) if law == "heavy tails" else rng.normal(size=size)
        return slopes * time + 0.5 * rng.normal(size=(*shape, len(time))).cumsum(axis=-1)

    own = draw(n, algorithms)
    if law == "one algorithm":
        own[:, 0] *= 5.0
    scores = draw(n, 1) + own + common * time
    if law == "scales":
        scores = scores * 10.0 ** rng.uniform(-3, 3, size=(n, 1, 1))
    if law == "one benchmark":
        scores[0] *= 100.0
    if law == "ties":
        scores = 8.0 * np.round(scores / 8.0)
    if law == "no effect on half":
        scores[rng.random(n) < 0.5] = 1.0
    if law == "ranks":
        scores = rankdata(scores, axis=1)
    return scores


TABLES = 400
NO_CLAIM = {"any": False, "interaction": False, "lack of fit": False}


def claims(seed: int, law: str, n: int, *, common: float = 0.0, form: str = "linear", tables: int = TABLES) -> dict:
    """Share of tables of three algorithms with a claim: of any effect, of an interaction, of a lack of fit."""

    def study(rng):
        curves = curves_of(scores_of(rng, law, n, 3, common), form=form, relative=law == "ranks")
        claimed = {test.question for test in budget_tests(curves, 0.05)[0] if test.p_value < 0.05}
        return {name: name in claimed or (name == "any" and bool(claimed & {"effect", "interaction"}))
                for name in NO_CLAIM}  # fmt: skip

    return rate_of(study, tables, seed, refused=NO_CLAIM)  # coarse scores that do not vary are refused


@pytest.mark.parametrize("n", [3, 7, 12, 20])
@pytest.mark.parametrize("law", LAWS)
def test_no_effect_is_claimed_where_there_is_none(law, n):
    assert at_most(claims(n, law, n)["any"], TABLES)


@pytest.mark.parametrize("law", ["normal", "heavy tails", "scales", "one algorithm"])
def test_a_common_effect_is_no_interaction(law):
    found = claims(31, law, 12, common=3.0)
    assert at_most(found["interaction"], TABLES)
    assert found["any"] > 0.3


@pytest.mark.parametrize("form", ["linear", "spline", "categorical"])
def test_every_form_keeps_the_level(form):
    assert at_most(claims(32, "normal", 12, form=form)["any"], TABLES)


@pytest.mark.parametrize("n", [3, 7, 12])
@pytest.mark.parametrize("law", ["normal", "scales", "one algorithm"])
def test_a_line_that_fits_is_seldom_contradicted(law, n):
    """Benchmarks wander around lines of their own, correlated from one budget to the next."""
    assert at_most(claims(40 + n, law, n, common=2.0)["lack of fit"], TABLES)


def test_row_noise_would_contradict_every_line():
    """The error of a lack of fit is how benchmarks vary: against the noise of rows wandering curves are no lines."""
    noise = 0.5**2 / (12 * 20)  # of means over 20 runs with independent errors of the size of one step

    def study(rng):
        rest = curves_of(scores_of(rng, "normal", 12, 3)).free.coefficients[:, :, 1:].mean(axis=0)
        return np.square(rest).sum() / noise / rest.size > 2.0

    assert rate_of(study, 100, 50) > 0.9


if __name__ == "__main__":
    print("benchmarks, law")
    printed(lambda n, law: claims(1000 + n, law, n, tables=4000), itertools.product((3, 7, 8, 12, 20), LAWS))
    printed(lambda form: claims(7, "normal", 12, form=form, tables=4000), [("linear",), ("spline",), ("categorical",)])
    print("common effect")
    laws = [("normal",), ("heavy tails",), ("scales",), ("one algorithm",)]
    printed(lambda law: claims(8, law, 12, common=3.0, tables=4000), laws)
