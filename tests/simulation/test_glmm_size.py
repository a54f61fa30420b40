"""How often generalised mixed models call equal models different: tasks crossed with models, items within tasks."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parent))

from harness import at_least, at_most, each, rate_of
from scipy import special, stats

import lmemtest as lt
from lmemtest.lmm.engine.ddf import curvature

FORMULA = "y ~ model + (1 | task) + (1 | item) + (1 | task:model)"


def table(
    rng: np.random.Generator, *, models: int, tasks: int, items: int, accuracy: float, between: float = 0.5,
    better: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Answers of models that are equal but for the first, which is ``better`` on the logit scale."""
    t, i, m = (a.ravel() for a in np.meshgrid(range(tasks), range(items), range(models), indexing="ij"))
    eta = special.logit(accuracy) + rng.normal(0.0, 0.5, tasks)[t] + rng.normal(0.0, 1.0, (tasks, items))[t, i]
    eta = eta + rng.normal(0.0, between, (tasks, models))[t, m] + better * (m == 0)
    y = (rng.random(len(eta)) < special.expit(eta)).astype(float)
    item = t * items + i
    return pd.DataFrame({"y": y, "model": m.astype(str), "task": t.astype(str), "item": item.astype(str)})


def verdicts(rng: np.random.Generator, **design: float) -> dict[str, float]:
    """Whether some pair differs at 5 %: by default, in probability, by Satterthwaite alone (of two models), by z."""
    data = table(rng, **design)
    if not 0 < data["y"].sum() < len(data):
        return dict.fromkeys(("default", "probability", "satterthwaite", "z", "unsettled"), False)
    fit = lt.fit_glmm(FORMULA, data)
    means = fit.emmeans("model")
    out = {
        "default": bool((means.pairs().to_frame()["p_value"] < 0.05).any()),
        "probability": bool((fit.emmeans("model", type="response").pairs().to_frame()["p_value"] < 0.05).any()),
        "z": bool((fit.emmeans("model", ddf="asymptotic").pairs().to_frame()["p_value"] < 0.05).any()),
        "unsettled": not fit.converged,
    }
    if design["models"] == 2:
        df = curvature(fit.problem, fit.optim).satterthwaite(np.array([[0.0, 1.0]]))[0]
        out["satterthwaite"] = bool(2 * stats.t.sf(abs(fit.params.iloc[1] / fit.bse.iloc[1]), min(df, 1e9)) < 0.05)
    return out


def held(rng: np.random.Generator, **design: float) -> dict[str, float]:
    """Whether the interval of the first model's probability holds that of further items of further tasks."""
    data = table(rng, **design)
    if not 0 < data["y"].sum() < len(data):
        return {"held": False, "outside": False}
    means = lt.fit_glmm(FORMULA, data).emmeans("model", type="response").to_frame()
    sd = np.sqrt(0.5**2 + 1.0 + design.get("between", 0.5) ** 2)
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    true = special.expit(special.logit(design["accuracy"]) + sd * x) @ weight / weight.sum()
    low, high = means.loc[0, ["ci_low", "ci_high"]]
    return {"held": low <= true <= high, "outside": low < 0.0 or high > 1.0}


@pytest.mark.parametrize(("accuracy", "tasks"), [(0.7, 5), (0.95, 5), (0.95, 20)])
def test_the_interval_of_a_probability_holds_that_of_further_tasks(accuracy, tasks):
    n = 400
    found = rate_of(lambda rng: held(rng, models=2, tasks=tasks, items=40, accuracy=accuracy), n, each(2))
    assert at_least(found["held"], n, 0.93)
    assert found["outside"] == 0.0


@pytest.mark.parametrize("accuracy", [0.7, 0.95])
def test_two_equal_models_on_five_tasks_differ_in_five_percent(accuracy):
    n = 400
    found = rate_of(lambda rng: verdicts(rng, models=2, tasks=5, items=40, accuracy=accuracy), n, each(1))
    assert at_most(found["default"], n, 0.05)
    assert at_most(found["probability"], n, 0.05)
    assert found["unsettled"] == 0.0


if __name__ == "__main__":
    design = dict(part.split("=") for part in sys.argv[2:])
    design = {name: int(v) if name in ("models", "tasks", "items") else float(v) for name, v in design.items()}
    print(design, rate_of(lambda rng: verdicts(rng, **design), int(sys.argv[1]), each(1)))
