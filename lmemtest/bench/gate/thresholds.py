"""An absolute threshold: at least a share of the runs of the new version reach a score.

The share is estimated by that of the runs seen, and tested exactly, at the borders of one-sided limits:

- on *these tasks*, each as often as it was run, by the binomial distribution (limits of Clopper & Pearson). Tasks that
  differ in their chances make the count less variable than the binomial one with the mean of the chances, so that the
  limits hold their level (Hoeffding 1956, doi:10.1214/aoms/1177728178);
- over *tasks like these* by the binomial distribution, too, where each task was run once. Several runs of a task share
  its chance, and are no independent trials: there the shares of the tasks (means over the tasks of a family, where
  families are the sample) are independent numbers between 0 and 1, with the limits of `bounded_mean_interval`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.bench.gate.difference import THESE, units_of
from lmemtest.bench.gate.metric import BLANK
from lmemtest.bench.gate.versions import finite, of_each, runs_of
from lmemtest.bench.modelling.recommend import Population
from lmemtest.bench.power.draw import smallest_count
from lmemtest.core.caller import advice
from lmemtest.core.proportions import bounded_mean_interval, bounded_mean_test, clopper_pearson
from lmemtest.core.rounding import tolerance
from lmemtest.core.words import spoken

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

LARGEST = 1_000_000  # runs: a study that needs more will not be run


def reached(
    name: str,
    rows: pd.DataFrame,
    runs: Runs,
    names: Mapping[Any, str],
    *,
    direction: str,
    bar: float,
    share: float,
    tasks: str,
    level: float,
    level_failing: float,
    power: float,
) -> dict[str, Any]:
    """A row of the table, with p-values that are not yet adjusted.

    `n_needed` is how many units settle it with a given power if the share that was seen is the true one; where it is
    below the required one, by a failure at `level_failing`. It is that of tasks whose runs all agree, so that fewer
    suffice where they do not.
    """
    both, rows = runs_of(rows, runs), of_each(rows, runs, names)[0]
    out = {"metric": name, "direction": direction, "old": math.nan, "new": math.nan, **BLANK, "unit": "run"}
    if not len(rows) or not finite(rows).all():
        n = int((~finite(rows)).sum())
        return out | {"reason": f"missing or infinite scores, {n:,} of the new version" if n else "it has no scores"}
    sign = 1.0 if direction == "maximize" else -1.0
    good = sign * (rows["score"] - bar) >= -tolerance(bar)
    task = rows[runs.benchmark] if runs.benchmark else good.map(lambda _: "all")
    if tasks != THESE:
        families = list(units_of(both)) if runs.family else []
        unit = rows.groupby(families, observed=True).ngroup() if families else task
        shares = good.groupby([unit, task], observed=True).mean().groupby(level=0).mean().to_numpy(dtype=float)
        out |= {
            "unit": spoken(families[-1]) if families else "task",
            "claim": Population.of(both).claim if runs.family else "",
        }
        if len(shares) < 2:
            this = advice("value", name="tasks", value="these")
            return out | {
                "reason": f"one {out['unit']} says nothing about others. Run more, or ask about these: {this}"
            }
    else:
        shares = good.to_numpy(dtype=float)
    n, seen = len(shares), float(shares.mean())
    if n == len(good):  # each is a run
        k = int(good.sum())
        low, high = map(float, clopper_pearson(k, n, 1.0 - 2.0 * level))
        p_values = float(special.bdtrc(k - 1, n, share)), float(special.bdtr(k, n, share))
    else:
        low, high = bounded_mean_interval(shares, 1.0 - 2.0 * level)
        p_values = bounded_mean_test(shares, share)
    needed = runs_needed(n, share, seen, level=level if seen > share else level_failing, power=power)
    return out | {
        "new": seen,
        "ci_low": low,
        "ci_high": high,
        "p_not_worse": p_values[0],
        "p_worse": p_values[1],
        "n": n,
        "n_needed": math.nan if needed is None else needed,
    }


def runs_needed(n: int, share: float, truth: float, *, level: float, power: float) -> int | None:
    """Runs with which the exact binomial test at `level` finds with a given power that a true share is not `share`.

    None where it is, or where more than `LARGEST` are needed. `n` is where the search begins.

    >>> runs_needed(20, 0.9, 1.0, level=0.05, power=0.8), runs_needed(20, 0.9, 0.9, level=0.05, power=0.8)
    (29, None)
    """
    if truth < share:
        share, truth = 1.0 - share, 1.0 - truth

    def settles(m: int) -> bool:
        least = np.ceil(special.bdtrik(1.0 - level, m, share)) + 1.0  # successes that are significant
        return bool(special.bdtrc(least - 1.0, m, truth) >= power)

    return None if truth == share else smallest_count(settles, first=1, guess=n, most=LARGEST)
