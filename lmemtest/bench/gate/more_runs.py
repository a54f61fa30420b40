"""How many further tasks, or runs on each task, would let equal versions pass the gate."""

from __future__ import annotations

import math

from lmemtest.bench.gate.difference import THESE, Difference
from lmemtest.bench.power.closed_form import operating, smallest_count
from lmemtest.lmm.distributions.student import t_quantile

LARGEST = 100_000  # units: a study that needs more will not be run


def units_needed(found: Difference, margin: float, *, tasks: str, alpha: float, power: float) -> int | None:
    """Tasks (with `THESE` runs of each version on each task) with which equal versions pass with a given power.

    The standard error falls with the root of their number, as the components that were observed have it. None where it
    does not, or where more than `LARGEST` are needed.

    >>> found = Difference(estimate=0.0, se=0.01, df=9.0, n_units=10, scales=True, model="")
    >>> units_needed(found, 0.02, tasks="like these", alpha=0.05, power=0.8)
    17
    """
    n = found.n_units
    if not found.scales or n < 2:
        return None

    def passes(m: int) -> bool:
        df = found.df * (m - 1) / (n - 1) if tasks == THESE else m - 1.0
        se = found.se * math.sqrt(n / m)
        chance, wrong, _ = operating(margin, se, df, float(t_quantile(alpha, df)))
        return chance * (1.0 - wrong) >= power

    return smallest_count(passes, first=2, guess=n, most=LARGEST)
