"""Time the curves of a whole table: the bundled trials, and 50 benchmarks x 5 algorithms x 48 trials.

Run `python tests/benchmarks/bench_tuning_curves.py`. The first call of a size calibrates its band, later ones find it;
both are printed, in seconds of the processor. Promised: less than 1 s for the large table after the first call, curves
and labels. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from lmemtest import tuning
from lmemtest.data.datasets import load_hpo_runs, load_hpo_trials

LIMIT = 1.0  # seconds for the large table


def large() -> pd.DataFrame:
    """50 benchmarks x 5 algorithms x 48 trials."""
    rng = np.random.default_rng(1)
    names = pd.MultiIndex.from_product([range(50), list("ABCDE"), range(48)], names=["benchmark", "algorithm", "trial"])
    return names.to_frame(index=False).assign(score=rng.normal(size=len(names)))


def times(call: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """First and median of the later times."""
    taken = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return taken[0], float(np.median(taken[1:]))


def main() -> int:
    trials, table, runs = load_hpo_trials(), large(), load_hpo_runs()
    bundled = {"score": "valid_loss", "direction": "minimize", "by": ["dataset", "model"]}
    made = tuning.curves(table, score="score", direction="maximize")
    cases: dict[str, Callable[[], object]] = {
        "5,120 bundled trials, 20 groups": lambda: tuning.curves(trials, **bundled),
        "12,000 trials, 250 groups": lambda: tuning.curves(table, score="score", direction="maximize"),
        "  its table": made.to_frame,
        "  its labels, 500 comparisons": lambda: made.labels(rng=1),
        "60,000 bundled runs over seeds, 240 groups": lambda: tuning.curves(runs, unit="seed"),
    }
    later = {}
    for name, call in cases.items():
        first, later[name] = times(call)
        print(f"{name:45} first {first:7.3f} s, then {later[name]:7.3f} s")
    total = sum(later[name] for name in list(cases)[1:4])
    print(f"{'large table: curves, table and labels':45} {total:.3f} s, limit {LIMIT:g} s")
    return int(total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
