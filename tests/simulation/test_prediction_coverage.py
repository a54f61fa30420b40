"""How often intervals of random effects and predictions hold what they are for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt

pytestmark = pytest.mark.slow

GROUPS, EACH, TABLES = 20, 4, 500


def draw(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A one-way table with the effects behind it; the last group is left out of the fit."""
    u = rng.normal(size=GROUPS + 1)
    frame = pd.DataFrame({"g": np.repeat([f"g{i:02d}" for i in range(GROUPS + 1)], EACH)})
    frame["y"] = 1.0 + np.repeat(u, EACH) + rng.normal(size=len(frame))
    return frame, u


def covered(shots: int, level: float) -> None:
    assert binomtest(shots, TABLES, level).pvalue > 0.001


def test_simultaneous_intervals_hold_all_random_effects_together():
    rng = np.random.default_rng(1)
    together = alone = 0
    for _ in range(TABLES):
        frame, u = draw(rng)
        fit = lt.fit_lmm("y ~ 1 + (1|g)", frame[frame["g"] != f"g{GROUPS}"], restarts=0)
        joint = fit.random_effects("g").to_frame()
        one = fit.random_effects("g", simultaneous=False).to_frame()
        together += bool(((joint["ci_low"] <= u[:GROUPS]) & (u[:GROUPS] <= joint["ci_high"])).all())
        alone += bool(one["ci_low"][0] <= u[0] <= one["ci_high"][0])
    covered(together, 0.95)
    covered(alone, 0.95)


def test_intervals_of_a_new_group_and_of_a_further_run_hold_them():
    rng = np.random.default_rng(2)
    new = known = score = 0
    for _ in range(TABLES):
        frame, u = draw(rng)
        fit = lt.fit_lmm("y ~ 1 + (1|g)", frame[frame["g"] != f"g{GROUPS}"], restarts=0)
        rows = pd.DataFrame({"g": [f"g{GROUPS}", "g00"]})
        mean = fit.prediction_intervals(rows)
        new += bool(mean["ci_low"][0] <= 1.0 + u[-1] <= mean["ci_high"][0])
        known += bool(mean["ci_low"][1] <= 1.0 + u[0] <= mean["ci_high"][1])
        run = fit.prediction_intervals(rows, target="score")
        score += bool(run["ci_low"][1] <= 1.0 + u[0] + rng.normal() <= run["ci_high"][1])
    for count in (new, known, score):
        covered(count, 0.95)
