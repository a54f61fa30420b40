"""Whether generalised models would find more than what the gate, failure rates, win shares, counts and grades have.

Each study draws two versions (tools, models) that are equal, or of which one is better, and asks both ways of the same
table. Run as a program, it prints the percentages of the page "Right or wrong, and counts":

    python tests/simulation/test_glmm_elsewhere.py 200
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parent))

from harness import at_most, each, printed, rate_of
from scipy import special

import lmemtest as lt

CROSSED = "y ~ tool + (1 | task) + (1 | task:tool)"


def crossed(tasks: int, runs: int) -> tuple[np.ndarray, ...]:
    """Task, tool and run of every row."""
    return tuple(a.ravel() for a in np.indices((tasks, 2, runs)))


def latent(rng: np.random.Generator, level: float, gain: float, tasks: int, runs: int, *, spread: float, own: float):
    """Linear predictors of two tools on tasks, which vary by `spread`, and advantages by `own`; and the columns."""
    t, tool, run = crossed(tasks, runs)
    eta = level + rng.normal(0.0, spread, tasks)[t] + rng.normal(0.0, own, (tasks, 2))[t, tool] + gain * (tool == 1)
    return eta, {"task": t, "tool": np.array(["A", "B"])[tool], "run": run}


def model_differs(formula: str, table: pd.DataFrame, **options: str) -> bool:
    fit = lt.fit_glmm(formula, table, **options) if options else lt.fit_lmm(formula, table)
    return bool(fit.emmeans("tool").pairs().to_frame()["p_value"][0] < 0.05)


def shift_of(level: float, loss: float, sd: float) -> float:
    """The change of a linear predictor by which the mean probability over `sd` falls by `loss`."""
    from scipy.optimize import brentq

    x, weight = np.polynomial.hermite_e.hermegauss(60)

    def mean(eta: float) -> float:
        return float(special.expit(eta + sd * x) @ weight / weight.sum())

    return float(brentq(lambda c: mean(level) - mean(level + c) - loss, -5.0, 0.0))


def gate(accuracy: float, tasks: int, items: int, margin: float, *, worse: bool, n: int) -> dict[str, float]:
    """How often the new version passes, by the gate and by a generalised model's probabilities."""
    level = special.logit(accuracy)
    gain = shift_of(level, margin, np.sqrt(0.5**2 + 1.0 + 0.3**2)) if worse else 0.0

    def study(rng: np.random.Generator) -> dict[str, bool]:
        eta, columns = latent(rng, level, gain, tasks, items, spread=0.5, own=0.3)
        eta = eta + rng.normal(0.0, 1.0, (tasks, items))[columns["task"], columns["run"]]
        table = pd.DataFrame({**columns, "y": (rng.random(len(eta)) < special.expit(eta)).astype(float)})
        new, old = (table[table["tool"] == name].drop(columns="tool") for name in "BA")
        options = {"score": "y", "direction": "maximize", "benchmark": "task", "seed": "run", "seed_shared": False}
        found = {"gate": lt.gate(new, old, margin=margin, **options).decision == "not worse"}
        table["item"] = table["task"].astype(str) + "." + table["run"].astype(str)
        means = lt.fit_glmm(f"{CROSSED} + (1 | item)", table).emmeans("tool", type="response")
        gains = means.against("A", adjust="none").noninferiority(margin, adjust="none", direction="maximize").table
        return {**found, "generalised": bool(gains["p_value"].iloc[0] < 0.05)}

    return rate_of(study, n, each(1, tasks, items, worse))


def failures(rate: float, tasks: int, runs: int, *, gain: float, n: int) -> dict[str, float]:
    """How often two tools are found to fail unequally often on further tasks."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        eta, columns = latent(rng, special.logit(rate), gain, tasks, runs, spread=1.0, own=0.3)
        table = pd.DataFrame({**columns, "y": (rng.random(len(eta)) < special.expit(eta)).astype(float), "score": 0.0})
        table["failed"] = table["y"] > 0
        roles = {"score": "score", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "run"}
        found = lt.failure_rates(lt.Runs(table, failed="failed", ignore="y", **roles), rng=0).pairs
        p = float(found.loc[found["population"] == "benchmark", "p_value"].iloc[0])
        return {"failure_rates": p < 0.05, "generalised": model_differs(CROSSED, table, family="binomial")}

    return rate_of(study, n, each(2, tasks, runs, int(10 * gain)), refused=dict.fromkeys(NAMES[failures], False))


def win_shares(share: float, tasks: int, pairs: int, *, n: int) -> dict[str, float]:
    """How often a tool is called better by its share of won pairs of runs on further tasks."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        eta = special.logit(share) + rng.normal(0.0, 0.5, tasks)
        wins = rng.binomial(pairs, special.expit(eta))
        t, tool, run = crossed(tasks, pairs)
        score = np.where(tool == (run < wins[t]), 1.0, 0.0)  # of each pair one run has 1, the other 0
        table = pd.DataFrame({"task": t, "tool": np.array(["A", "B"])[tool], "run": run, "score": score})
        roles = {"score": "score", "direction": "maximize", "algorithm": "tool", "benchmark": "task", "seed": "run"}
        found = lt.outperforming(lt.Runs(table, **roles), algorithms=("B", "A")).table.iloc[0]
        fit = lt.fit_glmm("wins ~ 1 + (1 | task)", {"wins": wins, "of": [pairs] * tasks, "task": range(tasks)},
                          trials="of")  # fmt: skip
        (low, high) = fit.conf_int().to_numpy()[0]
        return {"outperforming": not found["ci_low"] <= 0.5 <= found["ci_high"], "generalised": not low <= 0.0 <= high}

    return rate_of(study, n, each(3, tasks, pairs, int(100 * share)), refused=dict.fromkeys(NAMES[win_shares], False))


def counts(mean: float, tasks: int, runs: int, *, spread: float, gain: float, n: int) -> dict[str, float]:
    """How often two tools are found to differ in a count, by the linear models of counts and of log(1 + count) too."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        eta, columns = latent(rng, np.log(mean), gain, tasks, runs, spread=spread, own=0.2)
        table = pd.DataFrame({**columns, "y": rng.poisson(np.exp(eta)).astype(float)})
        return {
            "linear": model_differs(CROSSED, table),
            "linear, log(1 + y)": model_differs(CROSSED.replace("y ~", "log1p(y) ~"), table),
            "generalised": model_differs(CROSSED, table, family="poisson"),
        }

    return rate_of(study, n, each(4, tasks, runs, int(10 * spread), int(10 * gain)))


def grades(tasks: int, runs: int, *, gain: float, n: int) -> dict[str, float]:
    """How often two models are found to differ in grades of 1 to 5 by the linear model, mostly 4 and 5."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        eta, columns = latent(rng, 1.5, gain, tasks, runs, spread=0.7, own=0.5)
        eta = eta + rng.normal(0.0, 1.0, (tasks, runs))[columns["task"], columns["run"]]
        drawn = eta + rng.logistic(size=len(eta))
        table = pd.DataFrame({**columns, "y": 1.0 + np.searchsorted([-3.0, -1.5, 0.0, 2.0], drawn)})
        table["item"] = table["task"].astype(str) + "." + table["run"].astype(str)
        return {"linear": model_differs(f"{CROSSED} + (1 | item)", table)}

    return rate_of(study, n, each(5, tasks, runs, int(10 * gain)))


def test_a_mixed_model_of_failures_keeps_its_level_and_finds_what_signs_of_five_tasks_cannot():
    n = 100
    assert at_most(failures(0.15, 5, 10, gain=0.0, n=n)["generalised"], n, 0.05)
    unequal = failures(0.15, 5, 10, gain=1.2, n=n)
    assert unequal["failure_rates"] == 0.0 < unequal["generalised"]


def test_a_gate_by_probabilities_would_pass_a_worse_version_as_seldom():
    n = 50
    found = gate(0.95, 5, 100, 0.05, worse=True, n=n)
    assert at_most(found["gate"], n, 0.05)
    assert at_most(found["generalised"], n, 0.05)


def test_shares_of_won_pairs_of_equal_tools_are_called_different_in_five_percent():
    n = 60
    found = win_shares(0.5, 5, 20, n=n)
    assert at_most(found["outperforming"], n, 0.05)
    assert at_most(found["generalised"], n, 0.05)


def test_the_linear_model_of_grades_keeps_its_level():
    n = 200
    assert at_most(grades(5, 30, gain=0.0, n=n)["linear"], n, 0.05)


def test_counts_of_equal_tools_are_called_different_in_five_percent():
    n = 60
    found = counts(10.0, 5, 10, spread=1.2, gain=0.0, n=n)
    assert all(at_most(share, n, 0.05) for share in found.values())


NAMES = {failures: ("failure_rates", "generalised"), win_shares: ("outperforming", "generalised")}


if __name__ == "__main__":
    n = int(sys.argv[1])
    for design in ((0.95, 5, 100, 0.05), (0.95, 10, 100, 0.03)):
        for worse in (True, False):
            printed(lambda *a, n=n: gate(*a[:4], worse=a[4], n=n // 2), [(*design, worse)])
    for rate, tasks, runs in ((0.15, 5, 10), (0.15, 8, 10), (0.05, 8, 20)):
        for gain in (0.0, 1.2):
            printed(lambda *a, n=n: failures(*a[:3], gain=a[3], n=n), [(rate, tasks, runs, gain)])
    for tasks, pairs in ((5, 20), (10, 10)):
        for share in (0.5, 0.7):
            printed(lambda *a, n=n: win_shares(*a, n=n), [(share, tasks, pairs)])
    for spread in (0.5, 1.2):
        for gain in (0.0, 0.4):
            printed(lambda *a, n=n: counts(*a[:3], spread=a[3], gain=a[4], n=n), [(10.0, 5, 10, spread, gain)])
    for gain in (0.0, 1.0):
        printed(lambda *a, n=n: grades(*a[:2], gain=a[2], n=2 * n), [(5, 30, gain)])
