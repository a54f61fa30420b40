"""Time the Bayesian comparisons of pairs beside Autorank 1.3, in turns in one run.

Run `python tests/benchmarks/bench_ranking.py --peer PYTHON`, PYTHON being an interpreter that can import autorank
(`pip install autorank==1.3.0`). Without one our times alone are printed. Six populations, 50 paired samples and 50,000
draws for each of the 15 pairs; seconds of the processor, one thread of the BLAS on both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

N_DRAWS, N_BLOCKS, N_ALGORITHMS = 50_000, 50, 6


def scores() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N_BLOCKS, N_ALGORITHMS))


def theirs() -> dict[str, Callable[[], object]]:
    """What Autorank does: its pairs are most of it."""
    import pandas as pd
    from autorank import autorank

    data = pd.DataFrame(scores(), columns=list("abcdef"))

    def ranked(rope: float) -> Callable[[], object]:
        return lambda: autorank(data, approach="bayesian", rope=rope, nsamples=N_DRAWS, random_state=1)

    return {"signed rank": ranked(0.0), "signed rank, ROPE": ranked(0.1)}


def ours() -> dict[str, Callable[[], object]]:
    from lmemtest.studies.ranking.bayesian import bayesian_pairs
    from lmemtest.studies.ranking.blocks import Blocks

    names = tuple(f"benchmark {i}" for i in range(N_BLOCKS))
    blocks = Blocks(
        algorithms=tuple("abcdef"),
        runs=scores()[:, :, None],
        instances=names,
        block=np.arange(N_BLOCKS),
        names=names,
        unit="benchmark",
        score="score",
        direction="maximize",
    )

    def compared(**options: object) -> Callable[[], object]:
        return lambda: bayesian_pairs(blocks, n_draws=N_DRAWS, rng=1, **options)

    return {
        "signed rank": compared(),
        "signed rank, ROPE": compared(rope=0.1, rope_unit="effect"),
        "hierarchical, ROPE": compared(model="hierarchical", rope=0.1, rope_unit="effect"),
    }


def timed(function: Callable[[], object]) -> float:
    """Processor seconds of one call, whatever it prints or warns of."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()
    return time.process_time() - start


def ask(python: str, name: str, repeats: int) -> list[float]:
    """Seconds that the peer takes in a process of its own; none if it cannot import autorank."""
    command = [python, __file__, "--serve", name, "--repeats", str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else []


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable, help="Python with autorank")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        task = theirs()[given.serve]
        print(json.dumps([timed(task) for _ in range(given.repeats)]))
        return
    missing = False
    print(f"{'task':<22}{'ours':>10}{'Autorank':>10}{'ratio':>8}   seconds of the processor, median")
    for name, task in ours().items():
        task()  # imports
        mine = statistics.median(timed(task) for _ in range(given.repeats))
        peer = [] if name.startswith("hierarchical") else ask(given.peer, name, given.repeats)
        missing |= not peer and not name.startswith("hierarchical")
        beside = f"{statistics.median(peer):>10.3f}{statistics.median(peer) / mine:>8.1f}" if peer else ""
        print(f"{name:<22}{mine:>10.3f}{beside}", flush=True)
    if missing:
        print(f"{given.peer} cannot import autorank, so there is no comparison: pip install autorank==1.3.0")


if __name__ == "__main__":
    main()
