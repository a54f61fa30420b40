"""Collinearity verdicts, groups, floors and ceilings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.lmm.diagnostics import collinearity
from lmemtest.lmm.diagnostics.scores import bounds, rows_of
from lmemtest.lmm.diagnostics.structure import groups


def regression(correlation, n=400):
    """Two columns with exactly this correlation."""
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, 2))]))
    x, z = Q[:, 1], correlation * Q[:, 1] + np.sqrt(1 - correlation**2) * Q[:, 2]
    return {"x": x, "z": z, "y": rng.normal(size=n)}


@pytest.mark.parametrize(("vif", "severity"), [(1.5, "fine"), (6.0, "note"), (25.0, "warning")])
def test_inflation_is_one_over_unexplained(vif, severity):
    found = collinearity(lt.fit_lmm("y ~ x + z", regression(np.sqrt(1 - 1 / vif))))
    assert found.table["gvif"].tolist() == approx([vif, vif])
    assert found.table["se_inflation"].tolist() == approx([np.sqrt(vif)] * 2)
    assert found.severity == severity


def test_what_to_do_about_collinearity():
    found = collinearity(lt.fit_lmm("y ~ x + z", regression(np.sqrt(0.96))))
    assert found.advice == (
        "x is hardly distinguishable from the other terms, which makes its standard errors 5 times larger: leave one "
        "of them out, or do not interpret them one by one."
    )


def test_dependent_columns_call_for_action(fitted):
    found = collinearity(fitted("rank_deficient", "y ~ a * b + (1|g)"))
    assert found.severity == "warning"
    assert len(found.aliased) >= 1
    assert found.advice.startswith(", ".join(found.aliased[:3]))
    assert found.advice.endswith(
        "fixed by other columns and dropped. Leave a term out; means that need them are missing."
    )


def test_inflation_by_interactions_is_no_alarm(fitted):
    found = collinearity(fitted("cake", "angle ~ recipe * temp + (1|recipe:replicate)"))
    assert found.table["se_inflation"].max() > 3
    assert found.marginal == (True, True, True)
    assert (found.severity, found.advice) == (
        "fine",
        "All terms take part in interactions, whose inflation depends on the coding alone.",
    )


@pytest.mark.parametrize("formula", ["y ~ 1", "y ~ x", "y ~ 0 + x"])
def test_one_term_inflates_nothing(formula):
    found = collinearity(lt.fit_lmm(formula, regression(0.9)))
    assert found.severity == "fine"
    assert set(found.table["gvif"]) <= {1.0}
    assert found.advice == "There are no two terms that could explain each other."


def test_without_an_intercept_there_is_no_alarm():
    found = collinearity(lt.fit_lmm("y ~ 0 + x + z", regression(0.99)))
    assert (found.severity, found.advice) == ("fine", "Without an intercept the factors say little.")


def test_few_levels_are_known_to_carry_little(make):
    table = make.table(np.random.default_rng(1), benchmarks=3, seeds=20)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|benchmark:seed)", table)
    few, many, search = groups(fit).checks
    assert (few.severity, few.message, many.severity) == ("note", "3 levels", "fine")
    assert few.advice == (
        "Its variance is known to within ±100 % at best: read it with caution, and use Kenward-Roger degrees of "
        "freedom (ddf='kenward-roger')."
    )
    assert (search.severity, search.message) == ("fine", "certified")
    assert groups(fit).to_frame()["relative_se"].to_list() == approx([1.0, np.sqrt(2 / 59)])


def test_singular_terms_and_failed_searches_are_told():
    fit = lt.fit_lmm("loss ~ 1", {"loss": [1.0, 2.0, 4.0]})
    found = groups(fit)
    assert (len(found.table), [c.kind for c in found.checks]) == (0, ["convergence"])
    optim = dataclasses.replace(fit.optim, converged=False, message="stopped after 200 evaluations")
    lost = groups(dataclasses.replace(fit, optim=optim)).checks[-1]
    assert lost.severity == "warning"
    assert lost.advice == ("The search stopped after 200 evaluations; try restarts=5, or a simpler random part.")


def test_singular_terms_are_a_finding_not_an_alarm(fitted):
    line = groups(fitted("Dyestuff2", "Yield ~ 1 + (1|Batch)")).checks[0]
    assert (line.severity, line.message) == ("note", "6 levels, singular")


def test_a_ceiling_of_one_benchmark_is_found(make):
    table = make.table(np.random.default_rng(1), seeds=20)
    top = table["benchmark"] == "b07"
    table.loc[top, "loss"] = np.minimum(table.loc[top, "loss"], table.loc[top, "loss"].median())
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    found = bounds(fit, rows_of(fit))
    assert found.severity == "warning"
    assert found.to_frame().loc[1, ["where", "end"]].to_list() == ["benchmark=b07", "largest"]
    assert found.table["share"][1] == approx(0.5, abs=0.02)
    assert "a floor or ceiling hides differences" in found.advice
    assert found.distinct == 12 * 60 - 29


def test_continuous_scores_have_no_bounds(clean_fit):
    found = bounds(clean_fit, rows_of(clean_fit))
    assert (found.severity, found.table["share"].max()) == ("fine", 0.0)
    assert (found.distinct, found.seen) == (288, 288)


def test_bounds_survive_the_way_through_cells(make):
    table = make.table(np.random.default_rng(1), repeats=4)
    table["loss"] = table["loss"].clip(lower=table["loss"].quantile(0.1))
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    found = bounds(fit, rows_of(fit))
    assert found.table["share"][0] == approx((table["loss"] == table["loss"].min()).mean())
    assert found.distinct == table["loss"].nunique()


def test_scores_behind_means_are_not_judged(make):
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", make.table(np.random.default_rng(1)))
    without = dataclasses.replace(fit, data=None)
    found = bounds(without, rows_of(without))
    assert (found.severity, found.seen, found.check.message) == ("skipped", 0, "not judged")
    assert found.advice == "Fewer than 20 single scores are known, too few to judge."


def test_seeds_have_no_bounds_of_their_own(make):
    table = make.table(np.random.default_rng(1), benchmarks=20)
    table.loc[table["seed"] == 3, "loss"] = table["loss"].max()
    roles = {"score": "loss", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|seed)", lt.Runs(table, **roles, seed="seed"))
    assert not any(place.startswith("seed") for place in bounds(fit, rows_of(fit)).table["where"])
