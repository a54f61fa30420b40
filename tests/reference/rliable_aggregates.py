"""Reference values of aggregate scores, performance profiles and probabilities of improvement by rliable.

    pip install rliable==1.2.0
    python rliable_aggregates.py > rliable_aggregates.json

Scores are (runs, tasks), rounded so that some are tied; intervals are percentile intervals with 20,000 draws. rliable
ignores its own `random_state` and draws from numpy's global generator, which is therefore seeded.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import numpy as np
from rliable import library, metrics

DRAWS = 20_000
MEASURES = {
    "iqm": metrics.aggregate_iqm,
    "median": metrics.aggregate_median,
    "mean": metrics.aggregate_mean,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


def scores() -> dict[str, np.ndarray]:
    """Three algorithms on 7 tasks: 10 runs, so that a quarter of all runs is no whole number."""
    rng = np.random.default_rng(3)
    tasks = rng.uniform(0.2, 0.9, 7)
    return {
        name: np.round(tasks + shift + rng.gamma(2.0, 0.12, (10, 7)) - 0.2, 2)
        for name, shift in {"A": 0.0, "B": 0.08, "C": -0.1}.items()
    }


def main() -> None:
    """Write everything to standard output."""
    table, taus = scores(), np.linspace(-0.2, 1.6, 19)
    names = list(table)
    every = {"versions": {name: version(name) for name in ("rliable", "arch", "numpy")}}
    every["scores"] = {name: values.tolist() for name, values in table.items()}
    every["estimates"] = {m: {name: float(f(table[name])) for name in names} for m, f in MEASURES.items()}
    every["taus"] = taus.tolist()
    every["run_profiles"] = {name: library.score_distributions(table[name], taus).tolist() for name in names}
    every["mean_profiles"] = {name: library.average_score_distributions(table[name], taus).tolist() for name in names}
    every["improvement"] = {
        f"{x},{y}": float(metrics.probability_of_improvement(table[x], table[y])) for x in names for y in names
    }
    every["n_draws"] = DRAWS
    for key, tasks_too in {"run_intervals": False, "task_intervals": True}.items():
        np.random.seed(1)  # noqa: NPY002
        _, found = library.get_interval_estimates(
            table, lambda x: np.array([f(x) for f in MEASURES.values()]), task_bootstrap=tasks_too, reps=DRAWS
        )
        every[key] = {m: {name: found[name][:, i].tolist() for name in names} for i, m in enumerate(MEASURES)}
    json.dump(every, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
