"""The search at a residual variance that is given, against lme4's profile over sigma."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.lmm.engine.optimize import optimise
from lmemtest.lmm.engine.problem import build_problem


@pytest.mark.parametrize("i", [0, 1])
def test_the_best_fit_at_a_given_residual_variance_is_lme4s(reference, reference_input, i):
    case = reference("held_scale")["cases"][i]
    fit = lt.fit_lmm(case["formula"], reference_input(case["input"]), reml=False)
    cells, best = fit.cells, fit.optim.criterion.value + fit.problem.deviance_shift
    for row in case["rows"]:
        held = build_problem(
            fit.design.engine_terms,
            fit.design.X,
            cells.mean,
            n=cells.n,
            weight=cells.weight,
            ss=cells.ss,
            reml=False,
            residual_variance=row["sigma"] ** 2,
        )
        found = optimise(held)
        at = found.criterion
        assert at.sigma2 * held.y_scale**2 == approx(row["sigma"] ** 2, rel=1e-12)
        # lme4 stops where the deviance changes by 1e-8 or less, so its standard deviations have about five digits
        assert at.value + held.deviance_shift - best == approx(row["drop"], rel=1e-5, abs=1e-6)
        sd = row["sigma"] * np.abs(held.to_user(found.theta))
        assert sd == approx(np.array(row["sd"]), rel=1e-4, abs=1e-5)
        assert held.fixed_effects(at)[0] == approx(np.array(row["b"]), rel=1e-6)
