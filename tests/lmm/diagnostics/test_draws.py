"""Residuals and modes at held variance parameters: those of the fit, for every table at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.lmm.diagnostics.draws import HeldFit, measure_draws, reach
from lmemtest.lmm.diagnostics.scores import rows_of

MODELS = [
    ("sleepstudy", "Reaction ~ Days + (Days|Subject)", None, None),
    ("sleepstudy_weights", "Reaction ~ Days + (1|Subject)", "w", None),
    ("Penicillin", "diameter ~ 1 + (1|plate) + (1|sample)", None, None),
    ("Pastes", "strength ~ 1 + (1|batch/cask)", None, None),
    ("cake", "angle ~ recipe + temp + (recipe|replicate)", None, None),
    ("categorical_slopes", "y ~ f + x + (1+f||g)", None, None),
    ("rank_deficient", "y ~ a * b + (1|g)", None, None),
    ("bench", "y ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)", None, "algorithm"),
    ("bench", "y ~ algorithm", None, None),
]


@pytest.mark.parametrize(("data", "formula", "weights", "dispersion"), MODELS)
def test_the_table_of_the_fit_gives_the_residuals_and_modes_of_the_fit(
    reference_input, data, formula, weights, dispersion
):
    fit = lt.fit_lmm(formula, reference_input(data), weights=weights, dispersion=dispersion)
    held = HeldFit.of(fit, rows_of(fit))
    y = fit.cells.mean
    residuals, modes = held.split(np.column_stack([y, 2.0 * y - 7.0]))
    size = np.abs(y).max()
    assert residuals[:, 0] == approx(fit.cell_residuals(), abs=1e-8 * size)
    if "Intercept" in fit.params:
        assert residuals[:, 1] == approx(2.0 * fit.cell_residuals(), abs=1e-8 * size)
    for ours, theirs in zip(modes, fit.modes, strict=True):
        assert ours[:, :, 0] == approx(theirs, abs=1e-7 * size)


def test_a_simulated_table_has_the_residuals_of_a_fit_to_it_at_the_same_variances(make):
    fit = lt.fit_lmm(make.formula, make.table(np.random.default_rng(4)), restarts=0)
    held = HeldFit.of(fit, rows_of(fit))
    cells = fit.simulate(rng=2)
    residuals, _ = held.split(cells.mean[:, None])
    # generalised least squares with the dense covariance of the rows
    V = np.eye(len(cells.mean))
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        V += (term.codes[:, None] == term.codes) * S[0, 0] / fit.scale
    X = fit.design.X
    inverse = np.linalg.inv(V)
    b = np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ cells.mean)
    assert residuals[:, 0] == approx(inverse @ (cells.mean - X @ b), abs=1e-9)  # e = V^-1 (y - X b)


def test_residuals_of_simulated_tables_have_their_degrees_of_freedom(make):
    table = make.table(np.random.default_rng(5), benchmarks=4, seeds=6)
    fit = lt.fit_lmm("loss ~ algorithm * benchmark", table)
    held = HeldFit.of(fit, rows_of(fit))
    squares = np.array(measure_draws(held, lambda parts: parts.squares, 400, rng=3))
    leverage = 1.0 / 6.0  # twelve means over six seeds each
    of_benchmark = squares[:, table["benchmark"].to_numpy()[_row_order(fit, table)] == "b01"].sum(axis=1)
    expected = 18 * (1.0 - leverage)
    assert of_benchmark.mean() == approx(expected, abs=4.0 * np.sqrt(2.0 * expected / 400))
    assert squares.sum(axis=1).mean() == approx(60.0, abs=4.0 * np.sqrt(120.0 / 400))


def _row_order(fit, table):
    """A row of each cell."""
    keys = list(fit.cells.frame.columns)
    first = table.reset_index().groupby(keys)["index"].first()
    return first.reindex(pd.MultiIndex.from_frame(fit.cells.frame[keys])).to_numpy()


def test_rows_behind_cells_are_read_from_the_table(make):
    table = make.table(np.random.default_rng(6), repeats=3)
    fit = lt.fit_lmm("log(loss) ~ algorithm + (1|benchmark)", table.assign(loss=np.exp(table["loss"])))
    rows = rows_of(fit)
    assert (rows.hidden, rows.single, len(rows.cell)) == (0, True, len(table))
    assert fit.cells.mean[rows.cell] + rows.deviation == approx(table["loss"].to_numpy())
    assert np.bincount(rows.cell, rows.deviation**2) == approx(fit.cells.ss)


def test_rows_of_other_dataframes_are_read_too(make):
    polars = pytest.importorskip("polars")
    table = make.table(np.random.default_rng(6), repeats=2)
    for frame in (polars.from_pandas(table), polars.from_pandas(table).lazy()):
        rows = rows_of(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", frame))
        assert (rows.hidden, len(rows.cell)) == (0, len(table))


def test_weights_separate_rows(make):
    table = make.table(np.random.default_rng(6), repeats=2)
    table["w"] = np.where(table["repeat"] == 0, 1.0, 4.0)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table, weights="w")
    held = HeldFit.of(fit, rows_of(fit))
    z = held.observed(fit).z
    residual = (table["loss"] - fit.predict(table)).to_numpy()
    assert np.sort(z) == approx(np.sort(residual * np.sqrt(table["w"].to_numpy() / fit.scale)))


def test_a_table_that_has_changed_is_not_read(make):
    import dataclasses

    table = make.table(np.random.default_rng(6), repeats=2)
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    for data in (None, table.iloc[1:], table.assign(loss=table["loss"] + 1.0), table[["loss"]]):
        rows = rows_of(dataclasses.replace(fit, data=data))
        assert (rows.hidden, rows.single, len(rows.cell)) == (len(table), False, len(fit.cells.n))


def test_rows_and_cells_give_the_same_sums_of_squares(make):
    import dataclasses

    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", make.table(np.random.default_rng(6), repeats=2))
    without = dataclasses.replace(fit, data=None)
    by_row = HeldFit.of(fit, rows_of(fit)).observed(fit)
    by_cell = HeldFit.of(without, rows_of(without)).observed(without)
    assert by_row.squares == approx(by_cell.squares)
    assert (by_row.z**2).sum() == approx(by_row.squares.sum())


def test_draws_do_not_depend_on_the_number_of_processes(clean_fit):
    held = HeldFit.of(clean_fit, rows_of(clean_fit))
    one = measure_draws(held, _first, 120, rng=9)
    two = measure_draws(held, _first, 120, rng=9, n_jobs=2)
    assert one == two
    assert len(set(one)) == 120


def _first(parts):
    return float(parts.z[0])


def test_reach_is_the_share_of_a_term_in_the_variance_of_an_estimate(reference_input):
    fit = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", reference_input("sleepstudy_unbalanced"))
    ((intercept, slope),) = reach(fit)
    # the dense formula: A = (X'V^-1 X)^-1 X'V^-1, one term
    (term,), (S,) = fit.design.random, fit.covariances
    X, n = fit.design.X, len(fit.design.X)
    Z = np.zeros((n, len(term.levels), 2))
    Z[np.arange(n), term.codes] = term.basis
    V = np.diag(fit.scale / fit.cells.n) + np.einsum("ilk,km,jlm->ij", Z, S, Z)
    A = np.linalg.solve(X.T @ np.linalg.solve(V, X), np.linalg.solve(V, X).T)
    total = (A @ V @ A.T)[1, 1]
    assert total == approx(fit.bse["Days"] ** 2)
    moved = np.einsum("i,ilk->lk", A[1], Z)
    assert [intercept, slope] == approx(list((moved**2).sum(axis=0) * np.diag(S) / total))


def test_levels_of_benchmarks_cancel_and_advantages_do_not(clean_fit):
    benchmark, advantage, seed = (share[0] for share in reach(clean_fit))
    assert (benchmark, seed) == approx((0.0, 0.0), abs=1e-12)
    by_row = clean_fit.scale / 8
    assert advantage == approx(clean_fit.covariances[1][0, 0] / (clean_fit.covariances[1][0, 0] + by_row))
