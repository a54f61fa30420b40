"""What planning makes of families of benchmarks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.inference.power.components import components_of

NESTED = "loss ~ tool + (1 | space) + (1 | space:tool) + (1 | task) + (1 | task:tool)"


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    """Six spaces of three tasks, four tools, three seeds."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(product(range(6), range(3), range(4), range(3)), columns=["f", "b", "a", "seed"])
    own, within = rng.normal(size=(6, 4)), 0.6 * rng.normal(size=(6, 3, 4))
    f, b, a = (frame[name] for name in "fba")
    level = rng.normal(size=(6, 1)) + rng.normal(size=(6, 3))
    frame["loss"] = level[f, b] + own[f, a] + within[f, b, a] + 0.5 * rng.normal(size=len(frame))
    frame = frame.assign(space="s" + f.astype(str), task="t" + f.astype(str) + b.astype(str), tool="m" + a.astype(str))
    return lt.Runs(
        frame, score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed", family="space"
    )


def test_variances_of_families_are_part_of_those_of_benchmarks_of_different_families(runs: lt.Runs) -> None:
    """With m tasks in each of F spaces the error of a mean is (family + task / m + run / (m n)) / F, as in the fit."""
    fit = lt.fit_lmm(NESTED, runs)
    found, sd = components_of(fit), fit.varcorr.set_index("group")["sd"]
    assert found.interaction_sd == approx(np.hypot(sd["space:tool"], sd["task:tool"]))
    assert found.benchmark_sd == approx(np.hypot(sd["space"], sd["task"]))
    shared = found.of_mean(3) - (1 - 1 / 3) * (sd["task:tool"] ** 2 + sd["Residual"] ** 2 / 3)
    se = fit.emmeans("tool", vcov="model").pairs().to_frame()["se"].iloc[0]
    assert se == approx(np.sqrt(2 * shared / 6), rel=1e-6)
    assert (found.pilot.n_benchmarks, found.pilot.n_families) == (18, 6)
    assert "no two of the planned tasks shared" in found.notes[0]
    said = lt.power(fit, effect=1.0, n_benchmarks=12, n_seeds=2, method="closed_form").summary()
    assert "estimates from 18 benchmarks of 6 families" in said


def test_a_model_without_families_plans_for_new_benchmarks_of_these(runs: lt.Runs) -> None:
    found = components_of(lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool)", runs))
    assert found.pilot.n_families is None
    assert "new tasks of these spaces and says nothing about new spaces" in found.notes[0]


def test_studies_that_take_benchmarks_as_independent_say_of_which_families(runs: lt.Runs) -> None:
    plain = lt.Runs(runs.frame, **{**runs.roles(), "family": None})
    assert any("of these spaces, not for new spaces" in note for note in lt.ranking_reliability(runs).notes)
    assert not any("Families are not in it" in note for note in lt.ranking_reliability(plain).notes)
