"""Diagnoses of large tables look at a sample of whole benchmarks, or at whole repetitions at equal steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from study import as_runs

import lmemtest as lt
from lmemtest.lmm.diagnostics import diagnose, left_out


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """Tables of more than 240 cells are large."""
    monkeypatch.setattr(left_out, "CELLS_OF_LEVELS", 240)
    monkeypatch.setattr(left_out, "CELLS_OF_REPETITIONS", 240)
    monkeypatch.setattr(left_out, "FEWEST_SAMPLED", 12)


def fitted(make, seed, **options):
    table = make.table(np.random.default_rng(seed), benchmarks=6, seeds=40, **options)
    return lt.fit_lmm(make.formula, as_runs(table))


def test_shapes_and_scales_are_those_of_the_model_fitted_to_seeds_at_equal_steps(make):
    fit = fitted(make, 0)
    found = diagnose(fit, influence=False, rng=1)
    seeds = np.linspace(0, 39, 13).round().astype(int)
    part = lt.fit_lmm(make.formula, fit.data.filter(seed=seeds.tolist()))
    again = diagnose(part, influence=False, rng=1)
    assert len(found.residuals) == len(again.residuals) == 234
    np.testing.assert_allclose(found.residuals, again.residuals, rtol=1e-6)
    rows = [found.to_frame(), again.to_frame()]
    shapes, others = (row.query("check in ('normality', 'scale')") for row in rows)
    np.testing.assert_allclose(shapes["p_value"], others["p_value"])
    assert rows[0].query("subject == '(1 | benchmark:seed)'")["found"].item() == "240 levels"
    assert found.notes == (
        "Shapes, scales and the spread of the advantages, and the tables drawn to judge them, are those of 13 of 40 "
        "values of 'seed' at equal steps, to which the model was fitted again: 234 of 720 rows show them well enough.",
    )


def test_no_level_of_another_factor_is_left_out(make):
    table = make.table(np.random.default_rng(0), benchmarks=6, seeds=40)
    of_one = table["benchmark"] == "b00"
    table = table[~of_one | (table["seed"] == 1)]
    fit = lt.fit_lmm(make.formula, as_runs(table))
    few, left, note = left_out.thinned(fit, np.random.default_rng(0))
    assert few is fit
    assert left.all()
    assert note == ""


OF_MANY = "loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)"


@pytest.mark.parametrize("repeats", [2, 3])
def test_of_many_benchmarks_whole_ones_are_sampled_with_their_rows(make, repeats):
    table = make.table(np.random.default_rng(0), benchmarks=160, seeds=repeats)
    fit = lt.fit_lmm(OF_MANY, table)
    few, left, note = left_out.thinned(fit, np.random.default_rng(1))
    kept = fit.cells.frame["benchmark"][left]
    assert (kept.nunique(), left.sum(), len(few.cells.n)) == (80, 240, 240)
    assert "a random sample of 80 of 160 values of 'benchmark'" in note
    assert len(diagnose(fit, influence=False, rng=1).residuals) == 240 * repeats
    again = lt.fit_lmm(OF_MANY, table[table["benchmark"].isin(kept)])
    np.testing.assert_allclose(few.params, again.params, rtol=1e-6)


def test_noise_that_differs_is_still_found(make):
    found = diagnose(fitted(make, 0, scales=[1, 1, 1, 1, 1, 4]), influence=False, rng=1)
    by_benchmark = next(part for part in found.scale if part.column == "benchmark")
    assert by_benchmark.severity == "warning"
    assert by_benchmark.p_value == 0.005


@pytest.mark.slow
def test_p_values_keep_their_level(make):
    n, below = 200, {}
    for seed in range(n):
        table = diagnose(fitted(make, seed), influence=False, n_draws=99, rng=seed).to_frame()
        for row in table[table["check"].isin(["normality", "scale"])].itertuples():
            key = (row.check, row.subject)
            below[key] = below.get(key, 0) + (row.p_value <= 0.05)
    assert len(below) == 8
    for key, count in below.items():
        assert binomtest(count, n, 0.05, alternative="greater").pvalue > 0.001, key


@pytest.mark.slow
def test_p_values_keep_their_level_where_benchmarks_are_sampled(make):
    n, below = 200, {}
    for seed in range(n):
        fit = lt.fit_lmm(OF_MANY, make.table(np.random.default_rng(seed), benchmarks=160, seeds=1, repeats=2))
        table = diagnose(fit, influence=False, n_draws=99, rng=seed).to_frame()
        for row in table[table["check"].isin(["normality", "scale", "advantages"])].itertuples():
            key = (row.check, row.subject)
            below[key] = below.get(key, 0) + (row.p_value <= 0.05)
    assert len(below) >= 5
    for key, count in below.items():
        assert binomtest(count, n, 0.05, alternative="greater").pvalue > 0.001, (key, count)
