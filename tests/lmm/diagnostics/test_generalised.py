"""The diagnosis of generalised models: its numbers by distributions and dense matrices, its words, its refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.core.verdicts import Finding
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.diagnostics.diagnose import diagnose as of_linear
from lmemtest.lmm.diagnostics.generalised import _tested, bend, diagnose, measured, pearson_residuals
from lmemtest.lmm.families import Family

FAMILIES = [Family.of("binomial", link) for link in ("logit", "probit", "cloglog")]
FAMILIES += [Family.of("poisson"), Family("negative-binomial", "log", 2.3)]
GROUP, TOOL = (a.ravel() for a in np.indices((8, 3)))
EFFECTS = np.linspace(-1.0, 1.0, 8)


def table(y: Any, **more: Any) -> dict[str, Any]:
    return {"y": np.asarray(y), "tool": np.array(list("ABC"))[TOOL], "group": GROUP, **more}


def drawn(seed: int = 1, scatter: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(np.exp(2.0 + EFFECTS[GROUP] + scatter * rng.standard_normal(24)))


def counts(y: Any, formula: str = "y ~ tool + (1 | group)") -> Any:
    return lt.fit_glmm(formula, table(y), family="poisson")


def the(found: Any, check: str, subject: str | None = None) -> Finding:
    """The line of one check."""
    (line,) = [c for c in found.checks if c.kind == check and subject in (None, c.subject)]
    return line


# ----------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_pearson_residuals_are_those_of_the_distributions(family: Family) -> None:
    n, eta, total = np.array([1.0, 4.0, 10.0]), np.array([-0.7, 0.2, 1.1]), np.array([1.0, 2.0, 9.0])
    mu = family.mean(eta)
    law = {
        "binomial": stats.binom(n, mu),
        "poisson": stats.poisson(n * mu),
        "negative-binomial": stats.nbinom(n * 2.3, 2.3 / (2.3 + mu)),
    }[family.name]
    answers = {"observed": SimpleNamespace(n=n), "cell_residuals": lambda: total / n - mu}
    fit: Any = SimpleNamespace(family=family, cell_predictions=lambda: eta, **answers)
    assert pearson_residuals(fit) == approx((total - law.mean()) / law.std(), rel=1e-9)


@pytest.mark.parametrize("formula", ["y ~ tool + (1 | group)", "y ~ tool + (1 | group) + (1 | tool) + offset(h)"])
def test_the_test_of_the_link_is_that_of_dense_matrices(formula: str) -> None:
    fit = lt.fit_glmm(formula, table(drawn(), h=0.3 * (GROUP % 3)), family="poisson")
    eta, z = fit.cell_predictions(), fit.cells.mean - fit.design.offset
    V = np.diag(1.0 / (fit.cells.n * fit.cells.weight))
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        V += S[0, 0] * (term.codes[:, None] == term.codes)
    X = np.column_stack([fit.design.X, eta, eta**2])
    inverse = np.linalg.inv(X.T @ np.linalg.solve(V, X))
    want = (inverse @ X.T @ np.linalg.solve(V, z))[-1]
    coefficient, t = bend(fit)
    assert coefficient == approx(want, rel=1e-6)
    assert t == approx(want / np.sqrt(inverse[-1, -1]), rel=1e-6)


def test_a_square_that_the_fixed_effects_hold_is_not_tested() -> None:
    assert np.isnan(bend(lt.fit_glmm("y ~ tool", table(drawn()), family="poisson"))).all()


def test_numbers_do_not_depend_on_the_order_of_rows_or_on_names() -> None:
    turned = {name: values[::-1] for name, values in table(drawn()).items()}
    turned["group"] = np.array(list("hgfedcba"))[turned["group"]]
    want, got = measured(counts(drawn())), measured(lt.fit_glmm("y ~ tool + (1 | group)", turned, family="poisson"))
    assert list(got.values()) == approx(list(want.values()), rel=1e-6)


def test_a_p_value_is_the_rank_among_the_draws() -> None:
    draws = np.arange(1.0, 20.0)
    assert _tested(19.0, draws, both=False) == approx(0.1)  # it and one draw of twenty
    assert _tested(1.0, draws, both=False) == 1.0
    assert _tested(1.0, draws, both=True) == approx(0.2)
    assert _tested(30.0, draws, both=True) == approx(0.1)
    assert _tested(10.0, draws, both=True) == 1.0


def test_p_values_are_those_of_tables_that_are_drawn_and_fitted_again() -> None:
    fit = counts(drawn())
    found = fit.diagnose(n_draws=99, rng=3)
    draws = []
    fit.bootstrap(lambda again: draws.append(measured(again)) or [1.0, 2.0], 99, rng=3)
    numbers = [draw["dispersion", "cells"] for draw in draws[1:]]  # the first is of the fit itself
    line = the(found, "dispersion")
    assert line.value == approx(draws[0]["dispersion", "cells"] / np.mean(numbers))
    larger = (1 + sum(x >= draws[0]["dispersion", "cells"] for x in numbers)) / 100
    smaller = (1 + sum(x <= draws[0]["dispersion", "cells"] for x in numbers)) / 100
    assert line.p_value == approx(min(1.0, 2.0 * min(larger, smaller)))


# -------------------------------------------------------------------------------------------------------- what it says


def test_a_true_model_is_fine_and_says_so_in_the_columns_of_the_linear_diagnosis() -> None:
    found = counts(drawn()).diagnose(n_draws=99, rng=1)
    assert list(found.to_frame()) == ["check", "subject", "found", "value", "p_value", "severity", "advice"]
    kinds = ["dispersion", "link", "ends", "outlier", "skewness", "outlier", "groups", "convergence", "collinearity"]
    assert found.to_frame()["check"].tolist() == kinds
    assert found.severity == "note"  # eight groups
    assert {c.severity for c in found.checks if c.kind != "groups"} == {"fine"}
    assert "99 tables drawn from the fitted model and fitted again" in found.facts[0]
    texts = found.to_text()
    assert "Kenward-Roger" not in texts
    assert "restarts" not in texts


@pytest.mark.level(2)
def test_extra_scatter_is_a_warning_with_two_remedies_until_one_is_taken() -> None:
    y = drawn(scatter=0.8)
    line = the(counts(y).diagnose(rng=1), "dispersion")
    assert (line.severity, line.p_value) == ("warning", approx(0.01))
    assert "Fit family='negative-binomial' or a random effect of the cells, (1 | tool:group)" in line.advice
    better = counts(y, "y ~ tool + (1 | group) + (1 | tool:group)").diagnose(n_draws=99, rng=1)
    assert the(better, "dispersion").severity == "fine"


@pytest.mark.level(2)
def test_too_little_scatter_is_a_note_and_zeros_and_an_outlier_are_found() -> None:
    even = the(counts(np.round(np.exp(4.0 + EFFECTS))[GROUP]).diagnose(rng=1), "dispersion")
    assert (even.severity, even.p_value) == ("note", approx(0.01))
    assert "standard errors are too large" in even.advice
    zeros = the(counts(np.where((GROUP + TOOL) % 4 == 0, 0, drawn())).diagnose(rng=1), "ends")
    assert zeros.severity == "warning"
    assert "settle the dispersion first" in zeros.advice
    y = drawn()
    y[7] += 60
    outlier = the(counts(y).diagnose(rng=1), "outlier", "cells")
    assert outlier.severity == "warning"
    assert "tool = B and group = 2 stands out" in outlier.advice


def test_what_cannot_be_judged_is_skipped_with_the_reason() -> None:
    few = lt.fit_glmm("y ~ tool + (1 | half)", table(drawn(), half=GROUP % 2), family="poisson")
    found = few.diagnose(n_draws=99, rng=1)
    assert the(found, "skewness").advice.startswith("2 levels are too few to judge a shape")
    fixed = lt.fit_glmm("y ~ tool", table(drawn()), family="poisson").diagnose(n_draws=99, rng=1)
    assert {c.kind: c.severity for c in fixed.checks}["dispersion"] == "skipped"
    assert "as many fixed effects as cells" in the(fixed, "outlier").advice
    answers = lt.fit_glmm("y ~ tool + (1 | group)", table(drawn() % 2)).diagnose(n_draws=99, rng=1)
    assert the(answers, "ends").advice == "Single answers are always 0 or 1."


def test_tables_that_cannot_be_fitted_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, calls = counts(drawn()), iter(range(99))
    refit = lt.lmm.GlmmFit.refit

    def sometimes(self: Any, **options: Any) -> Any:
        if next(calls) % 3 == 0:
            raise EstimationError("no maximum")
        return refit(self, **options)

    monkeypatch.setattr(lt.lmm.GlmmFit, "refit", sometimes)
    found = fit.diagnose(n_draws=99, rng=1)
    assert (found.failed, found.n_draws) == (33, 99)
    assert found.notes == (
        "33 of 99 tables drawn from the fit could not be fitted and are left out (EstimationError: no maximum).",
    )
    assert "against 66 tables" in found.facts[0]


@pytest.mark.level(2)
def test_processes_change_nothing() -> None:
    fit = counts(drawn())
    pd.testing.assert_frame_equal(
        fit.diagnose(n_draws=99, rng=1).to_frame(), fit.diagnose(n_draws=99, rng=1, n_jobs=2).to_frame()
    )


def test_what_belongs_to_linear_models_is_refused() -> None:
    fit = counts(drawn())
    with pytest.raises(TypeError, match=r"no argument 'influence'\. Write fit\.diagnose\(\) without it"):
        fit.diagnose(influence=False)
    with pytest.raises(ArgumentError, match=r"this fit is poisson\. Write fit\.diagnose\(\)"):
        of_linear(fit)
    with pytest.raises(ArgumentError, match=r"and this one is linear\. Write fit\.diagnose\(\)"):
        diagnose(lt.fit_lmm("y ~ tool + (1 | group)", table(drawn())))
    with pytest.raises(ArgumentError, match="n_draws must be"):
        fit.diagnose(n_draws=9)
