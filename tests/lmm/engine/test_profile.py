"""The constrained criterion is the likelihood, its gradient exact, its minimum and the root the right ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from pytest import approx
from scipy.optimize import brentq, minimize

from lmemtest.lmm.engine.optimize import optimise
from lmemtest.lmm.engine.problem import build_problem
from lmemtest.lmm.engine.profile import Constrained, Minimiser, Target, has_variance
from lmemtest.lmm.engine.profile_path import follow
from lmemtest.lmm.engine.structure import RandomTerm

CUT = 1.959963984540054


def make_case(*, k=3, strata=False, seed=0):
    """Slopes of `k` columns by a group, crossed with a second group; weights, and strata if asked for."""
    rng = np.random.default_rng(seed)
    n, q, q2 = 240, 16, 6
    g, h = rng.integers(q, size=n), rng.integers(q2, size=n)
    X = np.column_stack([np.ones(n), rng.normal(size=n), rng.integers(2, size=n)])
    basis = np.column_stack([np.ones(n), 0.5 + rng.normal(size=n), rng.normal(size=n)])[:, :k]
    root = np.array([[1.0, 0, 0], [0.3, 0.7, 0], [-0.4, 0.2, 0.8]])[:k, :k]
    stratum = rng.integers(3, size=n) if strata else None
    w = rng.uniform(0.5, 2.0, size=n)
    sd = np.array([0.7, 1.0, 1.6])[stratum] if strata else 1.0
    y = 2 + (basis * (rng.normal(size=(q, k)) @ root.T)[g]).sum(1) + np.array([-1.5, -0.9, -0.2, 0.4, 0.9, 1.3])[h]
    y = y + sd * rng.normal(size=n) / np.sqrt(w)
    return SimpleNamespace(
        terms=[RandomTerm(basis, g, q), RandomTerm(np.ones((n, 1)), h, q2)], X=X, y=y, w=w, stratum=stratum
    )


def make_problem(case, *, reml=False):
    return build_problem(
        case.terms,
        case.X,
        case.y,
        n=np.ones(len(case.y)),
        weight=case.w,
        ss=np.zeros(len(case.y)),
        reml=reml,
        stratum=case.stratum,
    )


TARGETS = {
    "sd": Target("sd", 0, (1,)),
    "sd of a single effect": Target("sd", 1, (0,)),
    "corr": Target("corr", 0, (0, 2)),
    "residual": Target("residual sd", stratum=0),
    "residual of a stratum": Target("residual sd", stratum=2),
    "linear": Target("linear", row=np.array([1.0, 0.5, -2.0])),
}


def dense_deviance(case, problem, constrained, u, phi, *, reml):
    """-2 log L by the n x n covariance, at the parameters that (u, phi) stand for."""
    delta, log_s2 = constrained._delta(phi), constrained._log_s2(u, phi)
    T = constrained._triangles(u, phi, log_s2)
    tau = np.ones(len(case.y))
    if case.stratum is not None:
        tau = (problem.strata.precision * np.exp(np.append(0.0, delta)))[case.stratum]
    V = np.diag(1.0 / (case.w * tau))
    for term, layout, t, R in zip(case.terms, constrained.layouts, T, problem.R, strict=True):
        L = np.linalg.solve(R, layout.root @ t)
        Z = term.basis @ L
        V += (term.codes[:, None] == term.codes[None, :]) * (Z @ Z.T)
    X, y = case.X, case.y
    if constrained.target.kind == "linear":
        row = constrained.target.row
        rest = np.linalg.svd(row[None, :])[2][1:].T
        y, X = y - X @ row * u / (row @ row), X @ rest
    Vi = np.linalg.inv(V)
    F = X.T @ Vi @ X
    b = np.linalg.solve(F, X.T @ Vi @ y)
    r2 = (y - X @ b) @ Vi @ (y - X @ b)
    m = len(y) - (X.shape[1] if reml else 0)
    s2 = r2 / m if log_s2 is None else np.exp(log_s2) * problem.y_scale**2
    value = np.linalg.slogdet(V)[1] + m * np.log(2 * np.pi * s2) + r2 / s2
    return value + (np.linalg.slogdet(F)[1] if reml else 0.0)


def moved(constrained, x, at, seed=1):
    """A point beside the fit's."""
    u, phi = constrained.at_fit(x, at)
    rng = np.random.default_rng(seed)
    return u + 0.05 + 0.1 * abs(u), phi + 0.2 * rng.normal(size=len(phi))


@pytest.mark.daily(7)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("strata", "reml"), [(False, False), (False, True), (True, False), (True, True)])
def test_the_criterion_is_the_dense_likelihood_and_its_gradient_is_exact(name, strata, reml):
    if (reml and name == "linear") or (not strata and name == "residual of a stratum"):
        pytest.skip("not defined")
    case = make_case(strata=strata)
    problem = make_problem(case, reml=reml)
    found = optimise(problem)
    constrained = Constrained(problem, TARGETS[name], reml=reml)
    assert constrained.evaluate(*constrained.at_fit(found.theta, found.criterion)).value == approx(
        found.criterion.value, rel=1e-12
    )
    u, phi = moved(constrained, found.theta, found.criterion)
    ev = constrained.evaluate(u, phi)
    want = dense_deviance(case, problem, constrained, u, phi, reml=reml)
    assert ev.value + problem.deviance_shift == approx(want, rel=1e-11)

    def at(point):
        return constrained.evaluate(point[0], point[1:]).value

    point = np.append(u, phi)
    steps = 1e-5 * np.eye(len(point))
    numerical = [(at(point + h) - at(point - h)) / 2e-5 for h in steps]
    in_u, in_phi, _ = constrained.slopes(ev)
    np.testing.assert_allclose(np.append(in_u, in_phi), numerical, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("strata", [False, True])
def test_the_ends_solve_the_equation_by_another_optimiser(name, strata):
    """The minimum at each end, the best of scipy's BFGS from several starts, is the cut: neither above nor below."""
    if not strata and name == "residual of a stratum":
        pytest.skip("not defined")
    problem = make_problem(make_case(strata=strata))
    found = optimise(problem)
    constrained = Constrained(problem, TARGETS[name])
    _, phi0 = constrained.at_fit(found.theta, found.criterion)
    path = follow(problem, found.theta, found.criterion, TARGETS[name], cut=CUT)
    assert path.low < path.estimate < path.high
    rng = np.random.default_rng(2)
    assert path.at_bound == (False, False)
    for end in (path.low, path.high):
        u = float(np.arcsin(end)) if name == "corr" else end

        def objective(phi, u=u):
            ev = constrained.evaluate(u, phi)
            return ev.value, constrained.slopes(ev)[1]

        starts = [phi0 + spread * rng.normal(size=len(phi0)) for spread in (0.0, 0.05, 0.2, 0.2)]
        others = [minimize(objective, s, jac=True, method="BFGS", options={"gtol": 1e-8}).fun for s in starts]
        assert min(others) - found.criterion.value == approx(CUT**2, abs=1e-7)


def test_zeta_rises_along_the_path_and_its_slope_is_its_derivative():
    problem = make_problem(make_case())
    found = optimise(problem)
    for target in (TARGETS["sd"], TARGETS["corr"], TARGETS["residual"], TARGETS["linear"]):
        points = follow(problem, found.theta, found.criterion, target, cut=CUT).points
        _, value, zeta, slope = np.array(points).T
        assert (np.diff(zeta) > 0).all()
        assert zeta[0] < -CUT * 0.99
        assert zeta[-1] > CUT * 0.99
        # between neighbours, the mean of the end slopes is the mean slope up to third order
        near = np.diff(value) > 1e-6 * np.ptp(value)
        steepness = (np.diff(zeta) / np.diff(value))[near]
        np.testing.assert_allclose(0.5 * (slope[:-1] + slope[1:])[near], steepness, rtol=0.05)


def test_a_linear_function_needs_no_sweep_of_its_own():
    """`a'b = c` adds (c - a'b)^2 / Var to r2: with theta held, the profile of a fixed effect is that of regression."""
    case = make_case()
    problem = make_problem(case)
    found = optimise(problem)
    row = np.array([0.0, 1.0, 0.0])
    constrained = Constrained(problem, Target("linear", row=row))
    u, phi = constrained.at_fit(found.theta, found.criterion)
    b, U = problem.fixed_effects(found.criterion)
    assert u == approx(b[1], rel=1e-12)
    variance = (U @ U.T)[1, 1]
    r2 = found.criterion.r2 * problem.y_scale**2
    for step in (-0.3, 0.7):
        rise = constrained.evaluate(u + step, phi).value - found.criterion.value
        assert rise == approx(len(case.y) * np.log1p(step**2 / (variance * r2)), rel=1e-9)


def test_without_random_effects_intervals_have_closed_forms():
    rng = np.random.default_rng(4)
    n = 25
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = X @ [1.0, 2.0] + rng.normal(size=n)
    problem = build_problem([], X, y, n=np.ones(n), weight=np.ones(n), ss=np.zeros(n), reml=False)
    found = optimise(problem)
    b, rss = np.linalg.lstsq(X, y, rcond=None)[:2]
    half = np.sqrt(np.linalg.inv(X.T @ X)[1, 1] * rss[0] * np.expm1(CUT**2 / n))
    path = follow(problem, found.theta, found.criterion, Target("linear", row=np.array([0.0, 1.0])), cut=CUT)
    assert (path.low, path.high) == approx((b[1] - half, b[1] + half), rel=1e-10)
    path = follow(problem, found.theta, found.criterion, Target("residual sd"), cut=CUT)
    s = np.sqrt(rss[0] / n)

    def rise(sd):
        return 2 * n * np.log(sd / s) + n * ((s / sd) ** 2 - 1) - CUT**2

    assert path.low == approx(brentq(rise, 0.3 * s, s, xtol=1e-14), rel=1e-10)
    assert path.high == approx(brentq(rise, s, 3 * s, xtol=1e-14), rel=1e-10)


def test_a_variance_at_zero_is_left_where_the_data_ask_for_it():
    """Started with no variance of the second term, the minimum finds it: its gradient at zero says nothing."""
    problem = make_problem(make_case(k=1))
    found = optimise(problem)
    constrained = Constrained(problem, Target("residual sd"))
    u, phi = constrained.at_fit(found.theta, found.criterion)
    assert (phi[:2] > 0.1).all()
    minimiser = Minimiser(constrained, u, phi)
    stuck, _, _ = minimiser.at(u, np.zeros(2))
    assert stuck.value == approx(found.criterion.value, abs=1e-8)


def test_has_variance_tells_zero_from_small():
    problem = make_problem(make_case(k=2))
    x = problem.point(np.array([1.0, 0.5, 0.0, 1e-12]))
    assert has_variance(problem, x, 0, 0)
    assert not has_variance(problem, x, 1, 0)


def test_the_search_point_gives_back_the_fit():
    problem = make_problem(make_case(strata=True))
    found = optimise(problem)
    constrained = Constrained(problem, TARGETS["corr"])
    ev = constrained.evaluate(*constrained.at_fit(found.theta, found.criterion))
    np.testing.assert_allclose(constrained.search_point(ev), found.theta, rtol=1e-8, atol=1e-10)


def test_the_restricted_likelihood_has_no_profile_of_fixed_effects():
    problem = make_problem(make_case())
    with pytest.raises(ValueError, match="the restricted likelihood does not hold the fixed effects"):
        Constrained(problem, TARGETS["linear"], reml=True)


def test_a_point_where_nothing_can_be_computed_is_none():
    problem = make_problem(make_case())
    found = optimise(problem)
    constrained = Constrained(problem, TARGETS["sd"])
    u, phi = constrained.at_fit(found.theta, found.criterion)
    assert constrained.evaluate(u, np.full_like(phi, np.nan)) is None
    minimiser = Minimiser(constrained, u, phi)
    with pytest.raises(np.linalg.LinAlgError, match="the criterion cannot be evaluated at any start"):
        minimiser.at(u, np.full_like(phi, np.nan))
