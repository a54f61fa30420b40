"""Kenward-Roger from cross-products: against the n x n formulas, pbkrtest and closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from levels import half
from pytest import approx
from refusals import refusal

import lmemtest as lt
from lmemtest.errors import DesignError
from lmemtest.lmm.engine import kenward_roger, products
from lmemtest.lmm.engine.kenward_roger import matched_moments


def with_n_by_n_matrices(fit):
    """Adjusted covariance, derivatives and W by the formulas of the paper, row by row of the table."""
    rows = np.repeat(np.arange(len(fit.cells.n)), fit.cells.n.astype(int))
    X = fit.design.X[np.ix_(rows, fit.problem.kept)]
    derivatives, values = [], []
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        same = term.codes[rows][:, None] == term.codes[rows][None, :]
        B = term.basis[rows]
        for c in range(len(S)):
            for r in range(c, len(S)):
                product = np.outer(B[:, r], B[:, c])
                derivatives.append(same * (product if r == c else product + product.T))
                values.append(S[r, c])
    derivatives.append(np.diag(1.0 / fit.cells.weight[rows]))
    values.append(fit.scale)
    V = sum(g * G for g, G in zip(values, derivatives, strict=True))
    VG = [np.linalg.solve(V, G) for G in derivatives]
    VX = np.linalg.solve(V, X)
    Phi = np.linalg.inv(X.T @ VX)
    P = [-VX.T @ G @ VX for G in derivatives]
    n = len(derivatives)
    information, bias = np.empty((n, n)), np.zeros_like(Phi)
    Q = [[VX.T @ G @ np.linalg.solve(V, H) @ VX for H in derivatives] for G in derivatives]
    for r in range(n):
        for s in range(n):
            information[r, s] = np.sum(VG[r] * VG[s].T) - 2 * np.sum(Phi * Q[r][s])
            information[r, s] += np.trace(Phi @ P[r] @ Phi @ P[s])
    scale = np.sqrt(information.diagonal())
    W = 2.0 * np.linalg.pinv(information / np.outer(scale, scale), rcond=1e-9, hermitian=True) / np.outer(scale, scale)
    for r in range(n):
        for s in range(n):
            bias += W[r, s] * (Q[r][s] - P[r] @ Phi @ P[s])
    return Phi + 2 * Phi @ bias @ Phi, np.array([-Phi @ p @ Phi for p in P]), W


def a_table(n=160, seed=4):
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 24, n)
    table = pd.DataFrame(
        {
            "a": np.array(list("pqr"))[rng.integers(0, 3, n)],
            "x": rng.normal(size=n).round(1),
            "run": run.astype(str),
            "task": (run // 4).astype(str),
            "seed": rng.integers(0, 5, n).astype(str),
            "w": rng.choice([0.5, 1.0, 3.0], n),
        }
    )
    task, by_run = rng.normal(size=(6, 3)), rng.normal(size=(24, 2))
    code = table["a"].map({"p": 0, "q": 1, "r": 2}).to_numpy()
    table["y"] = task[run // 4, code] + by_run[run, 0] + 0.6 * by_run[run, 1] * table["x"] + rng.normal(size=n)
    table["y"] += 0.4 * table["seed"].astype(float)
    return pd.concat([table, table.head(40).assign(y=table["y"].head(40) + rng.normal(size=40))], ignore_index=True)


FORMULAS = [
    "y ~ a + x",
    "y ~ a + (1|run)",
    "y ~ a * x + (x|run)",
    "y ~ a + (1|run) + (1|task)",
    "y ~ a + (x|run) + (1|task) + (1|seed)",
    "y ~ a + (x|run) + (a|task) + (1|seed)",
    "y ~ a + x + (1|seed) + (0+x|seed) + (1|run)",
    "y ~ 0 + a + (a|task) + (1|task:a)",
    "y ~ x + (1|task/run) + (1|seed)",
    "y ~ a + (1+a||task) + (1|seed)",
    "y ~ 1 + (1|a)",
]


@pytest.mark.daily(4)
@pytest.mark.parametrize(("weights", "formula"), half([None, "w"], FORMULAS))
def test_cross_products_give_what_n_by_n_matrices_give(formula, weights):
    fit = lt.fit_lmm(formula, a_table(), weights=weights)
    adjusted, d_cov, W = with_n_by_n_matrices(fit)
    got = fit.kenward_roger
    size = np.sqrt(adjusted.diagonal())
    assert got.adjusted / np.outer(size, size) == approx(adjusted / np.outer(size, size), rel=1e-7, abs=1e-9)
    rng = np.random.default_rng(1)
    L = np.vstack([np.eye(len(size)), rng.normal(size=(3, len(size)))])
    h = np.einsum("rp,ipq,rq->ri", L, d_cov, L) / np.einsum("rp,pq,rq->r", L, got.cov, L)[:, None]
    assert got.df(L) == approx(2 / np.einsum("ri,ij,rj->r", h, W, h), rel=1e-6)


@pytest.mark.parametrize("formula", ["y ~ a + (x|run) + (a|task) + (1|seed)", "y ~ a + (1|run) + (1|seed)"])
def test_sparse_cross_products_give_the_same(monkeypatch, formula):
    dense = lt.fit_lmm(formula, a_table()).kenward_roger
    monkeypatch.setattr(products, "_SPARSE_FROM", 0)
    monkeypatch.setattr(products, "prefer_sparse", lambda *_: True)
    sparse = lt.fit_lmm(formula, a_table()).kenward_roger
    assert sparse.adjusted == approx(dense.adjusted, rel=1e-6)
    assert sparse.df(np.eye(3)) == approx(dense.df(np.eye(3)), rel=1e-6)


# ---------------------------------------------------------------------- pbkrtest


def agree(fit, coefficients, vcov, *, vcov_rel):
    names = [row["name"] for row in coefficients]
    kept = [fit.design.x_names[j] for j in fit.problem.kept]
    order = [kept.index(name) for name in names]
    got = fit.kenward_roger
    se = np.array([row["se"] for row in coefficients])
    assert np.sqrt(got.adjusted.diagonal())[order] == approx(se, rel=1e-6)
    assert got.df(np.eye(len(kept)))[order] == approx([row["df"] for row in coefficients], rel=1e-6)
    adjusted = got.adjusted[np.ix_(order, order)]
    assert adjusted / np.outer(se, se) == approx(np.array(vcov) / np.outer(se, se), abs=vcov_rel)


@pytest.mark.parametrize("i", [pytest.param(i, id=str(i)) for i in range(22) if i != 3])
def test_regular_fits_agree_with_pbkrtest(reference, reference_input, i):
    want = reference("emm")["models"][i]
    fit = lt.fit_lmm(want["formula"], reference_input(want["data"]), weights=want["weights"])
    agree(fit, want["coefficients"]["kenward_roger"], want["kenward_roger_vcov"], vcov_rel=1e-7)


@pytest.mark.parametrize("i", range(17))
def test_singular_fits_and_shared_groups_agree_with_pbkrtest(reference, reference_input, i):
    want = reference("kenward_roger")["models"][i]
    fit = lt.fit_lmm(want["formula"], reference_input(want["data"]))
    agree(fit, want["coefficients"], want["vcov"], vcov_rel=1e-6)
    if want["f_test"] is None:
        return
    kept = [j for j, name in enumerate(fit.design.x_names[j] for j in fit.problem.kept) if name != "Intercept"]
    statistic, df_den, scale = fit.kenward_roger.f_test(np.eye(fit.rank)[kept], fit.params.dropna().to_numpy())
    assert len(kept) == want["f_test"]["num_df"]
    assert df_den == approx(want["f_test"]["den_df"], rel=1e-6)
    assert scale == approx(want["f_test"]["f_scale"], rel=1e-6)
    assert statistic == approx(want["f_test"]["f"], rel=1e-6)


def test_weighted_fits_agree_with_pbkrtest_on_rows_multiplied_by_the_root_of_their_weight(reference, reference_input):
    want = reference("kenward_roger")["weighted"]
    fit = lt.fit_lmm(want["formula"], reference_input(want["data"]), weights="w")
    agree(fit, want["coefficients"], want["vcov"], vcov_rel=1e-6)
    statistic, df_den, _ = fit.kenward_roger.f_test(np.eye(2), fit.params.to_numpy())
    assert df_den == approx(want["f_test"]["den_df"], rel=1e-6)
    assert statistic == approx(want["f_test"]["f"], rel=1e-6)


# ---------------------------------------------------------------------- closed forms


def test_without_random_effects_it_is_least_squares():
    fit = lt.fit_lmm("y ~ a * x", a_table())
    got = fit.kenward_roger
    assert got.adjusted == approx(got.cov, rel=1e-12)
    assert got.df(np.eye(6)) == approx(np.full(6, fit.nobs - 6), rel=1e-12)
    _, *df_and_scale = got.f_test(np.eye(6)[1:], fit.params.to_numpy())
    assert tuple(df_and_scale) == (approx(fit.nobs - 6), approx(1.0))


def test_balanced_blocks_give_the_degrees_of_freedom_of_the_analysis_of_variance():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": list("pqrs") * 9, "g": np.repeat(list("ABCDEFGHI"), 4), "y": rng.normal(size=36)})
    table["y"] += np.repeat(rng.normal(size=9), 4)
    fit = lt.fit_lmm("y ~ a + (1|g)", table)
    assert fit.kenward_roger.adjusted[1:, 1:] == approx(fit.cov_params().to_numpy()[1:, 1:], rel=1e-9)
    _, *df_and_scale = fit.kenward_roger.f_test(np.eye(4)[1:], fit.params.to_numpy())
    assert df_and_scale == approx([24.0, 1.0], rel=1e-9)


def test_an_unstructured_covariance_gives_hotellings_t_squared():
    rng = np.random.default_rng(2)
    groups, k, repeats = 11, 3, 4
    effects = rng.multivariate_normal([0, 0.5, 1], [[3, 1, 1], [1, 2, 0], [1, 0, 4]], groups)
    table = pd.DataFrame(
        {
            "g": np.repeat(np.arange(groups), k * repeats).astype(str),
            "a": np.tile(np.repeat(list("pqr"), repeats), groups),
            "y": np.repeat(effects.ravel(), repeats) + rng.normal(size=groups * k * repeats),
        }
    )
    fit = lt.fit_lmm("y ~ a + (a|g)", table)
    means = table.pivot_table(index="g", columns="a", values="y").to_numpy()
    d = means[:, 1:] - means[:, :1]
    t2 = groups * d.mean(axis=0) @ np.linalg.solve(np.cov(d.T), d.mean(axis=0))
    statistic, df_den, _ = fit.kenward_roger.f_test(np.eye(3)[1:], fit.params.to_numpy())
    assert df_den == approx(groups - 2, rel=1e-6)
    assert statistic == approx(t2 * (groups - 2) / ((groups - 1) * 2), rel=1e-5)


# ---------------------------------------------------------------------- invariances, edges


def test_the_unit_of_the_score_and_the_origin_of_a_slope_do_not_matter():
    table = a_table()
    fit = lt.fit_lmm("y ~ a + x + (x|run)", table)
    other = lt.fit_lmm("y ~ a + x + (x|run)", table.assign(y=1e-4 * table["y"], x=1000 * table["x"] + 5e4))
    assert other.kenward_roger.df(np.eye(4))[1:] == approx(fit.kenward_roger.df(np.eye(4))[1:], rel=1e-4)
    assert other.kenward_roger.adjusted[1, 1] == approx(1e-8 * fit.kenward_roger.adjusted[1, 1], rel=1e-5)


def test_the_answer_is_continuous_where_a_variance_reaches_zero(reference_input):
    fit = lt.fit_lmm("Yield ~ 1 + (1|Batch)", reference_input("Dyestuff2"))
    assert fit.is_singular
    near = np.array([1e-4])
    moved = dataclasses.replace(fit.optim, theta=near, criterion=fit.problem.evaluate(near))
    there = kenward_roger.kenward_roger(fit.problem, moved)
    assert fit.kenward_roger.df(np.eye(1)) == approx([5.0])
    assert there.df(np.eye(1)) == approx([5.0], rel=1e-6)
    assert there.adjusted == approx(fit.kenward_roger.adjusted, rel=1e-6)


def test_a_fit_by_maximum_likelihood_is_refitted():
    ml, reml = (lt.fit_lmm("y ~ a + (1|run)", a_table(), reml=reml) for reml in (False, True))
    assert ml.df(np.eye(3), "kenward-roger") == approx(reml.df(np.eye(3), "kenward-roger"), rel=1e-8)
    assert ml.cov(np.eye(3), "kenward-roger") == approx(reml.cov(np.eye(3), "kenward-roger"), rel=1e-8)
    assert ml.to_frame(ddf="kenward-roger")["se"].to_numpy() == approx(np.sqrt(reml.kenward_roger.adjusted.diagonal()))
    assert not ml.reml


def test_aliased_columns_are_left_out():
    table = a_table()
    fit = lt.fit_lmm("y ~ a + x + twice + (1|run)", table.assign(twice=2 * table["x"]))
    frame = fit.to_frame(ddf="kenward-roger").set_index("term")
    assert np.isnan(frame.loc["twice", ["se", "df", "p_value"]].to_numpy(dtype=float)).all()
    assert np.isfinite(frame.loc["a[T.q]", "df"])


def test_too_many_crossed_columns_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(kenward_roger, "_MAX_COLUMNS", 8)
    fit = lt.fit_lmm("y ~ a + (1|run) + (1|task)", a_table())
    assert refusal(lambda: fit.df(np.eye(3), "kenward-roger"), DesignError) == (
        "ddf='kenward-roger' needs dense algebra that these random effects (24 levels x 1, 6 levels x 1) are too large "
        "for: the limits are 8 columns beside the largest factor and 150,000,000 numbers in one array. Use "
        "ddf='satterthwaite', which has no such limit."
    )


def test_moments_that_no_f_distribution_has_are_nan():
    assert np.isnan(matched_moments(2, 4.0, 2.5)).all()  # the mean would be negative
    assert matched_moments(3, 0.0009, 0.0003) == (approx(1.0, abs=1e-6), approx(20000, rel=1e-3))
    scale, df = matched_moments(2, 0.2, 0.3)
    assert np.isfinite([scale, df]).all()


def test_priorband_has_the_df_of_its_balanced_design(data_dir):
    table = pd.read_parquet(data_dir / "priorband.parquet")
    fit = lt.fit_lmm("value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)", table)
    df = fit.df(np.eye(3), "kenward-roger")
    assert df[1:] == approx([22.0, 22.0], rel=1e-6)  # (12 - 1)(3 - 1): balanced
