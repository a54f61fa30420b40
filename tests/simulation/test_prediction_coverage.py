"""How often intervals of random effects and predictions hold what they are for."""

from __future__ import annotations

import numpy as np
import pandas as pd
from harness import about, covers, rate_of

import lmemtest as lt

GROUPS, EACH, TABLES = 20, 4, 500


def draw(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A one-way table with the effects behind it; the last group is left out of the fit."""
    u = rng.normal(size=GROUPS + 1)
    frame = pd.DataFrame({"g": np.repeat([f"g{i:02d}" for i in range(GROUPS + 1)], EACH)})
    frame["y"] = 1.0 + np.repeat(u, EACH) + rng.normal(size=len(frame))
    return frame, u


def fit_of(frame: pd.DataFrame) -> lt.LmmFit:
    return lt.fit_lmm("y ~ 1 + (1|g)", frame[frame["g"] != f"g{GROUPS}"], restarts=0)


def test_simultaneous_intervals_hold_all_random_effects_together():
    def study(rng):
        frame, u = draw(rng)
        joint, one = (fit_of(frame).random_effects("g", simultaneous=s).to_frame() for s in (True, False))
        return covers(joint, u[:GROUPS]).all(), covers(one, u[:GROUPS])[0]

    for share in rate_of(study, TABLES, 1):
        assert about(share, TABLES, 0.95)


def test_intervals_of_a_new_group_and_of_a_further_run_hold_them():
    rows = pd.DataFrame({"g": [f"g{GROUPS}", "g00"]})

    def study(rng):
        frame, u = draw(rng)
        fit = fit_of(frame)
        means = covers(fit.prediction_intervals(rows), 1.0 + u[[-1, 0]])
        run = covers(fit.prediction_intervals(rows, target="score"), 1.0 + u[0] + rng.normal())[1]
        return *means, run

    for share in rate_of(study, TABLES, 2):
        assert about(share, TABLES, 0.95)
