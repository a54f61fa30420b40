"""Time the pairs of many algorithms.

Run `python tests/benchmarks/bench_pairs.py`. Seconds of the processor, medians of calls that are not the first. A tenth
of the rows is left out, so that every pair has a standard error and degrees of freedom of its own; what a fit computes
once is listed apart.
"""

from __future__ import annotations

import time

import numpy as np
from bench_designs import FORMULA, table_of, timed
from scipy import stats

import lmemtest as lt
from lmemtest.lmm.distributions.studentized_range import ptukey


def many_algorithms() -> None:
    """Means and all pairs by both rules for degrees of freedom."""
    print("| algorithms | pairs | rule | once per fit | means and all pairs |\n|---|---|---|---|---|")
    for design in ((6, 20, 25), (50, 10, 5), (200, 6, 3)):
        fit = lt.fit_lmm(FORMULA, table_of(*design, missing=0.1))
        k = design[0]
        for rule in ("satterthwaite", "kenward-roger"):
            start = time.process_time()
            fit.df(np.eye(k), rule)  # type: ignore[arg-type]
            once = time.process_time() - start
            _, each = timed(lambda fit=fit, rule=rule: fit.emmeans("algorithm", ddf=rule).pairs(), 5)  # type: ignore[misc]
            print(f"| {k} | {k * (k - 1) // 2:,} | {rule} | {1e3 * once:.1f} ms | {1e3 * each:.1f} ms |", flush=True)
    rng = np.random.default_rng(2)
    q, df = rng.uniform(0.5, 8, 19_900), rng.uniform(3, 500, 19_900)
    _, ours = timed(lambda: ptukey(q, 200, df, upper=True), 3)
    _, five = timed(lambda: stats.studentized_range.sf(q[:5], 200, df[:5]), 1)
    print(
        f"\n19,900 Tukey p-values with distinct df: {ours:.2f} s; SciPy, from five of them: {five / 5 * 19_900:,.0f} s."
    )


if __name__ == "__main__":
    many_algorithms()
