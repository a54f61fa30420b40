"""How often the budget check claims something where there is nothing, on tables that break what F-tests assume.

Tables are drawn as curves, ``(benchmarks, algorithms, budgets)``, which is all that the check sees of complete runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, rankdata

import lmemtest as lt
from lmemtest.bench.budget.budget_model import BudgetCurves, Fitted, budget_columns, budget_tests
from lmemtest.errors import DataError

pytestmark = pytest.mark.slow

BUDGETS = (1, 2, 3, 4, 5, 6)
_RUNS = lt.Runs(
    {"tool": ["A", "B"], "loss": [0.0, 1.0], "budget": [1, 2]},
    score="loss",
    direction="minimize",
    algorithm="tool",
    budget="budget",
)


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


def claims(rng, law: str, n: int, algorithms: int, *, common: float = 0.0, form: str = "linear", tables: int) -> dict:
    """Share of tables with a claim: of any effect, of an interaction, of a lack of fit."""
    found = {"any": 0, "interaction": 0, "lack of fit": 0}
    for _ in range(tables):
        scores = scores_of(rng, law, n, algorithms, common)
        try:
            tests, _ = budget_tests(curves_of(scores, form=form, relative=law == "ranks"), 0.05)
        except DataError:  # coarse scores that do not vary: refused, which is no claim
            continue
        shown = {test.question for test in tests if test.p_value < 0.05}
        found["any"] += bool(shown & {"effect", "interaction"})
        found["interaction"] += "interaction" in shown
        found["lack of fit"] += "lack of fit" in shown
    return found


TABLES = 400


def at_most(count: int, tables: int) -> bool:
    """Whether a share of 5 % is not refuted from above."""
    return binomtest(count, tables, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("n", [3, 7, 12, 20])
@pytest.mark.parametrize("law", LAWS)
def test_no_effect_is_claimed_where_there_is_none(law, n):
    found = claims(np.random.default_rng(n), law, n, 3, tables=TABLES)
    assert at_most(found["any"], TABLES)


@pytest.mark.parametrize("law", ["normal", "heavy tails", "scales", "one algorithm"])
def test_a_common_effect_is_no_interaction(law):
    found = claims(np.random.default_rng(31), law, 12, 3, common=3.0, tables=TABLES)
    assert at_most(found["interaction"], TABLES)
    assert found["any"] > 0.3 * TABLES


@pytest.mark.parametrize("form", ["linear", "spline", "categorical"])
def test_every_form_keeps_the_level(form):
    found = claims(np.random.default_rng(32), "normal", 12, 3, form=form, tables=TABLES)
    assert at_most(found["any"], TABLES)


@pytest.mark.parametrize("n", [3, 7, 12])
@pytest.mark.parametrize("law", ["normal", "scales", "one algorithm"])
def test_a_line_that_fits_is_seldom_contradicted(law, n):
    """Benchmarks wander around lines of their own, correlated from one budget to the next."""
    found = claims(np.random.default_rng(40 + n), law, n, 3, common=2.0, tables=TABLES)
    assert at_most(found["lack of fit"], TABLES)


def test_row_noise_would_contradict_every_line():
    """The error of a lack of fit is how benchmarks vary: against the noise of rows wandering curves are no lines."""
    rng = np.random.default_rng(50)
    rejected = 0
    for _ in range(100):
        curves = curves_of(scores_of(rng, "normal", 12, 3))
        rest = curves.free.coefficients[:, :, 1:].mean(axis=0)
        noise = 0.5**2 / (12 * 20)  # of means over 20 runs with independent errors of the size of one step
        rejected += bool(np.square(rest).sum() / noise / rest.size > 2.0)
    assert rejected > 90


if __name__ == "__main__":
    for n in (3, 7, 8, 12, 20):
        for law in LAWS:
            got = claims(np.random.default_rng(1000 + n), law, n, 3, tables=4000)
            bend = got["lack of fit"] / 4000
            print(
                n,
                law,
                f"any {got['any'] / 4000:.3f} interaction {got['interaction'] / 4000:.3f} fit {bend:.3f}",
                flush=True,
            )
    for form in ("linear", "spline", "categorical"):
        print(form, claims(np.random.default_rng(7), "normal", 12, 3, form=form, tables=4000), flush=True)
    for law in ("normal", "heavy tails", "scales", "one algorithm"):
        print("common", law, claims(np.random.default_rng(8), law, 12, 3, common=3.0, tables=4000), flush=True)
