"""What a sample of tasks cannot show: large losses on few tasks, and failures of few runs.

The test of the mean takes the differences of tasks as about normal. A change that breaks a tenth of all tasks breaks
none of twelve in 28 % of the samples, which look fine then: no test of these scores can catch that. So it is counted.
With margin m and a share q of the tasks, a task is *broken* if it lost more than m / q: so many tasks that lost so much
each would use up the margin. Where k of n sampled tasks are broken, the share among tasks like these is at most

    Clopper and Pearson's upper limit,    1 - alpha^(1/n) for k = 0.

Losses are as measured, in means of the runs of a task: the limit is exact for tasks that are run as often as these, and
a task whose true loss is m / q exceeds it in half of such measurements.

Where losses are significantly skewed (D'Agostino 1970, doi:10.1093/biomet/57.3.679, 5 %), the t-test about holds its
level from 25 g^2 tasks on, g their skewness (Cochran 1977, Sampling Techniques, section 2.15). With fewer it lets too
much through, and a version passes only if it would with standard errors twice as large (`SAFE`, by simulation:
docs/developers/gate.md has the shares).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.power.draw import smallest_count
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.rounding import below, tolerance
from lmemtest.lmm.diagnostics.advantages import FEWEST_SKEWED, skewness_score

COCHRAN = 25.0
SKEWED_P = 0.05
SAFE = 2.0
_MOST = 1_000_000


def share_at_most(k: int, n: int, alpha: float) -> float:
    """Upper limit of a probability from k of n, at confidence 1 - alpha.

    >>> round(share_at_most(0, 12, 0.05), 4), round(share_at_most(1, 12, 0.05), 4)
    (0.2209, 0.3387)
    """
    return float(clopper_pearson(k, n, 1.0 - 2.0 * alpha)[1])


def tasks_for(share: float, k: int, alpha: float) -> int:
    """The fewest tasks that show a share with k broken ones among them; one more than `_MOST` if none do.

    >>> tasks_for(0.1, 0, 0.05), tasks_for(0.1, 1, 0.05)
    (29, 46)
    """
    return smallest_count(lambda n: share_at_most(k, n, alpha) <= share, first=k + 1, most=_MOST) or _MOST + 1


def counted_losses(loss: pd.Series, margin: float, max_broken: float | None, alpha: float) -> dict[str, float]:
    """The loss that breaks a task, how many are broken, and the upper limit of their share.

    `loss` has the largest loss of each unit of the sample. Without `max_broken` the share is what so many tasks without
    a broken one leave open.

    >>> counted_losses(pd.Series([0.0, 0.3, 0.01, -0.02]), 0.02, 0.1, 0.05)["n_broken"]
    1
    """
    n = len(loss)
    broken_loss = margin / (share_at_most(0, n, alpha) if max_broken is None else max_broken)
    k = int(below(broken_loss, loss.to_numpy(dtype=float)).sum())
    return {"broken_loss": broken_loss, "n_broken": k, "broken_high": share_at_most(k, n, alpha)}


def too_skewed(gain: pd.Series) -> bool:
    """Whether losses are significantly skewed, and too much for a t-test over so many units.

    >>> too_skewed(pd.Series([0.0, 0.1] * 10)), too_skewed(pd.Series([0.0, 0.1] * 10 + [-2.0]))
    (False, True)
    """
    d = gain.to_numpy(dtype=float)
    if len(d) < FEWEST_SKEWED or float(np.ptp(d)) <= tolerance(d):
        return False
    skewness, z = (float(found[0]) for found in skewness_score(d[:, None]))
    return bool(below(special.ndtr(z), SKEWED_P) and below(len(d), COCHRAN * skewness**2))
