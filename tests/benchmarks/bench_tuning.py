"""Time the calibration of bands from nothing, beside opda 0.8 where it is installed.

Run `python tests/benchmarks/bench_tuning.py`. `pip install opda==0.8.0` for the comparison, which takes minutes: opda
calibrates by simulation. `--no-opda` leaves it out, `--opda-sizes 48` shortens it. It needs numpy, scipy and
lazy_loader only. Times are those of a first call: whatever lmemtest keeps from earlier calls is cleared before each.
They are seconds of the processor, so that other work on the machine does not count, and of one process: opda's work is
shared by several by default, which shortens the wait but not the work. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from lmemtest import tuning
from lmemtest.tuning import order_statistics
from lmemtest.tuning.band import _band

LIMITS = {48: 0.05, 256: None, 1024: 1.0, 10_000: 10.0}  # seconds that are promised
REPEATS = {48: 15, 256: 9, 1024: 5, 10_000: 1}


def forget() -> None:
    """Empty the caches, so that a call does all of its work."""
    order_statistics.calibrate.cache_clear()
    order_statistics._solve.cache_clear()
    _band.cache_clear()


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Median processor time of calls that start from nothing."""
    times = []
    for _ in range(repeats):
        forget()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def ours(n: int, method: str) -> float:
    """Seconds for a band around n scores and its median curve at 1 ... n."""
    scores = np.random.default_rng(n).random(n)
    return seconds(lambda: tuning.curve(scores, direction="maximize", band=method), REPEATS[n])


def theirs(n: int) -> float | None:
    """Processor seconds that opda takes for the same band, once; None where it is not installed."""
    try:
        from opda.nonparametric import EmpiricalDistribution
    except ImportError:
        return None
    scores = np.random.default_rng(n).random(n)
    start = time.process_time()
    EmpiricalDistribution.confidence_bands(scores, 0.8, method="ld_highest_density", n_jobs=1)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-opda", action="store_true", help="do not time opda")
    parser.add_argument("--opda-sizes", type=int, nargs="*", default=[48, 256], help="numbers of scores for opda")
    arguments = parser.parse_args()
    ours(48, "ld_highest_density")  # imports, first calls of scipy
    missing = False
    for n, limit in LIMITS.items():
        for method in ("ld_highest_density", "ld_equal_tailed", "ks"):
            took = ours(n, method)
            line = f"{took * 1e3:10.1f} ms  n = {n:6,}  {method}"
            if method == "ld_highest_density":
                line += f"  (promised: {limit:g} s)" if limit else ""
                other = theirs(n) if n in arguments.opda_sizes and not arguments.no_opda else None
                missing |= other is None and n in arguments.opda_sizes and not arguments.no_opda
                line += f"  opda: {other:.1f} s, {other / took:,.0f} times as long" if other is not None else ""
            print(line, flush=True)
    if missing:
        print("opda is not installed, so there is no comparison: pip install opda==0.8.0")


if __name__ == "__main__":
    main()
