"""Values of almost stochastic order by deepsig, on small cases in which they are wrong, beside its right ones.

pip install deepsig==1.2.8
python deepsig_aso.py > deepsig_aso.json
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version

import numpy as np
from deepsig import aso, multi_aso
from deepsig.aso import compute_violation_ratio, get_bootstrapped_violation_ratios, get_quantile_function

OPTIONS = {"show_progress": False, "num_bootstrap_iterations": 500, "seed": 1}


def main() -> None:
    """Write everything to standard output."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.3, 1.5, 10), rng.normal(0.0, 1.0, 10)
    many = np.concatenate([np.zeros(1), np.ones(299)]), np.full(300, 0.95)
    low = np.array([0.0] + [1.0] * 99), np.array([0.5] + [0.9] * 99)
    quantiles = [get_quantile_function(s) for s in (a, b)]

    def draws(seed: int) -> list[float]:
        return get_bootstrapped_violation_ratios(a, b, *quantiles, 500, 0.005, 1, False, seed, None)

    everything = {
        "versions": {name: version(name) for name in ("deepsig", "numpy")},
        "a": a.tolist(),
        "b": b.tolist(),
        "ratios": [compute_violation_ratio(a, b, dt=0.005), compute_violation_ratio(b, a, dt=0.005)],
        "fine_ratios": [compute_violation_ratio(a, b, dt=1e-5), compute_violation_ratio(b, a, dt=1e-5)],
        "many": compute_violation_ratio(*many, dt=0.005),
        "low": [compute_violation_ratio(*low, dt=0.005), compute_violation_ratio(*low[::-1], dt=0.005)],
        "quantile_7_of_100": int(get_quantile_function(np.arange(100))(0.07)),
        "one_run": aso([1.0], [0.0], **OPTIONS),
        "two_runs": aso([1.0, 2.0], [0.0, 0.5], **OPTIONS),
        "two_models": np.nan_to_num(multi_aso({"a": a, "b": b}, **OPTIONS), nan=-1.0).tolist(),
        "by_comparisons": {str(m): aso(a, b, num_comparisons=m, **OPTIONS) for m in (1, 2, 10, 100)},
        "equal": aso([0.5] * 5, [0.5] * 5, **OPTIONS),
        "shared_draws_of_seeds": len(set(draws(1)) & set(draws(2))) / len(set(draws(1))),
    }
    json.dump(everything, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
