"""Nemenyi's test of mean ranks, as a separation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._options import DIRECTIONS
from lmemtest._rounding import written
from lmemtest._validate import check_choice, check_columns, check_fraction
from lmemtest.errors import ArgumentError, DataError
from lmemtest.inference.distributions.studentized_range import ptukey, qtukey
from lmemtest.inference.means.separation import Separation, separation_of
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd


def nemenyi(scores: pd.DataFrame, *, direction: str, alpha: float = 0.05, score: str = "the score") -> Separation:
    """Compare the mean ranks of algorithms over blocks, as Demšar (2006) and Autorank do: what follows Friedman's test.

    `scores` has a row per block (a benchmark, or what else was run once with every algorithm) and a column per
    algorithm; blocks with a missing score are left out. `score` says what was ranked. The result is a `Separation` of
    mean ranks, 1 best; the critical difference is ``q_alpha sqrt(k (k + 1) / (6 N))``; the notes have Friedman's test.

    In each of N complete blocks the k ranks sum to a constant. If all orders of a block are equally likely, the ranks
    of an algorithm have variance (k + 1)(k - 1) / 12 and any two of them the correlation -1 / (k - 1), which a linear
    model of the ranks misses. Ties share the mean of their ranks; the critical difference is that without ties, which
    is on the safe side. Blocks are taken for independent: seeds or budgets of one benchmark as blocks make the test too
    sure of itself.

    Nemenyi (1963), Distribution-free multiple comparisons, PhD thesis, Princeton University; Demšar (2006), Journal of
    Machine Learning Research 7, 1-30; Friedman (1937), J. Am. Stat. Assoc. 32, 675-701

    >>> import pandas as pd
    >>> rows = [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [1.0, 3.0, 5.0], [3.0, 5.0, 9.0]] * 5
    >>> found = nemenyi(pd.DataFrame(rows, columns=["A", "B", "C"]), direction="minimize")
    >>> found.levels, found.means, found.groups
    (('A', 'B', 'C'), (1.25, 2.25, 2.5), (('A',), ('B', 'C')))
    >>> round(found.critical_difference[0], 3)  # 3.314 sqrt(3 * 4 / (6 * 20)) / sqrt(2)
    0.741
    """
    import pandas as pd
    from scipy.stats import chi2, rankdata

    if not isinstance(scores, pd.DataFrame) or scores.shape[1] < 2:
        raise ArgumentError(
            "scores must be a table with a row per block and a column for each of two or more algorithms."
        )
    check_choice(direction, "direction", DIRECTIONS)
    alpha = check_fraction(alpha, "alpha")
    names = [format_level(name) for name in scores.columns]
    check_columns(names, names, argument="scores")
    values = scores.to_numpy(dtype=float)
    complete = np.isfinite(values).all(axis=1)
    n, k = int(complete.sum()), len(names)
    if n < 2:
        raise DataError(f"scores must have at least two blocks with a score of every algorithm, got {n}.")
    ranks = rankdata(values[complete] if direction == "minimize" else -values[complete], axis=1)
    means = ranks.mean(axis=0)
    se = np.sqrt(k * (k + 1.0) / (6.0 * n))
    left, right = np.triu_indices(k, 1)
    p_value = ptukey(np.abs(means[left] - means[right]) * np.sqrt(2.0) / se, k, np.inf, upper=True)
    tests = pd.DataFrame({"left": [names[i] for i in left], "right": [names[j] for j in right], "p_value": p_value})
    between = n * np.square(means - (k + 1.0) / 2.0).sum()
    within = np.square(ranks - (k + 1.0) / 2.0).sum() / (n * (k - 1.0))
    statistic = between / within if within > 0 else 0.0
    notes = [
        f"Friedman's test of {n:,} blocks: chi-square({k - 1}) = {written(statistic, '.4g')}, p = "
        f"{written(chi2.sf(statistic, k - 1), '.3g')}."
    ]
    if n < len(values):
        notes.append(f"{len(values) - n:,} of {len(values):,} blocks lack a score and were left out.")
    return separation_of(
        levels=names,
        means=means,
        se=ranks.std(axis=0, ddof=1) / np.sqrt(n),
        tests=tests,
        half_widths=[float(qtukey(1.0 - alpha, k, np.inf)) / np.sqrt(2.0) * se],
        alpha=alpha,
        direction="minimize",
        adjust="Nemenyi",
        interval_adjust="Nemenyi",
        ddf="asymptotic",
        score=score,
        statistic="mean rank",
        factor=str(scores.columns.name or "algorithm"),
        notes=notes,
    )


def blocks(runs: Any, by: Sequence[str]) -> pd.DataFrame:
    """Scores of runs as `nemenyi` takes them: a row per combination of the columns `by`, a column per algorithm.

    Scores of one algorithm in a block are averaged.
    """
    from lmemtest.data.compress import compress

    columns = check_columns(by, runs.columns, argument="by")
    cells = compress(runs, [*columns, runs.algorithm], score=runs.score)
    frame = cells.frame.assign(**{"\0mean": cells.mean})
    return frame.pivot_table(
        index=list(columns), columns=runs.algorithm, values="\0mean", aggfunc="mean", observed=True, dropna=False
    )
