"""Intervals around means that are compared: two that overlap do not differ, as far as that can be drawn.

A confidence interval of a mean contains what all means share, such as how hard the benchmarks are, and does not tell
whether two means differ. A comparison interval has a half width h such that the sum of those of two means is the half
width of the interval of their difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.words import counted, format_level, joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.means.comparisons import Comparisons


def half_widths_of_means(left: Index, right: Index, half: Array, count: int) -> Array:
    """Half widths h of `count` means that minimise the sum of (h_left + h_right - half)^2 over the pairs, h >= 0.

    Of all k >= 3 means this is Hochberg, Weiss & Hart's closed form, h_i = (sum_j d_ij - S) / (k - 2) with
    S = sum_{i<j} d_ij / (k - 1), if none is negative; two means get the same. NaN for a mean without a pair.

    Parameters
    ----------
    left, right : (n,) int
        Which two means each pair compares.
    half : (n,) float
        Half widths of the intervals of their differences; pairs with NaN have no test.
    count : int
        Number of means.

    Examples
    --------
    >>> import numpy as np
    >>> left, right = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> half_widths_of_means(left, right, np.array([3.0, 4.0, 5.0]), 3).round(6).tolist()
    [1.0, 2.0, 3.0]
    """
    tested = np.isfinite(half)
    sums = np.zeros((int(tested.sum()), count))
    rows = np.arange(len(sums))
    sums[rows, left[tested]] = sums[rows, right[tested]] = 1.0
    widths = np.asarray(np.linalg.lstsq(sums, half[tested], rcond=None)[0])
    if (widths < 0.0).any():
        from scipy.optimize import nnls

        widths = np.asarray(nnls(sums, half[tested])[0])
    return np.where(sums.any(axis=0), widths, np.nan)


def comparison_intervals(pairs: Comparisons) -> Answer:
    """Intervals of the means to compare by eye: two that do not overlap differ significantly.

    Returns
    -------
    Answer
        ``to_frame()`` has the `by` columns, level, estimate, half_width, ci_low, ci_high: a row per mean, NaN where no
        pair of it has a test. `exceptions` has the pairs for which overlap and the test disagree (the `by` columns,
        left, right, significant), which happens where the standard errors of differences are no sums over means;
        `n_pairs` is the number of pairs with a test.

    Raises
    ------
    ArgumentError
        If these are not the comparisons of `Estimates.pairs`.

    Notes
    -----
    The half widths h of a group minimise sum (h_i + h_j - d_ij)^2, where d_ij is the half width of the interval of the
    difference of i and j in these pairs, so they inherit their level, adjustment and standard errors. If all d are
    equal, as of balanced data with one variance, h = d / 2 and overlap is the test. The interval is no confidence
    interval of the mean.

    References
    ----------
    Gabriel (1978), doi:10.1080/01621459.1978.10480054; Hochberg, Weiss & Hart (1982),
    doi:10.1080/01621459.1982.10477896; Hochberg & Tamhane (1987), Multiple Comparison Procedures, eq. 3.32.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 4, 9]}
    >>> pairs = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool").pairs()
    >>> pairs.comparison_intervals().to_frame().round(2)
      level  estimate  half_width  ci_low  ci_high
    0     A      3.25        0.87    2.38     4.12
    1     B      3.00        0.87    2.13     3.87
    2     C      7.25        0.87    6.38     8.12
    """
    import pandas as pd

    pairs.require("comparison_intervals()", "pairs")
    em, alpha = pairs.estimates, 1.0 - pairs.level
    labels, groups = em.labels(), em.groups()
    if len(pairs.table) % len(groups):
        raise ArgumentError(f"comparison_intervals() needs the same pairs in each of {len(groups)} groups.")
    means: list[pd.DataFrame] = []
    exceptions: list[pd.DataFrame] = []
    n_pairs = 0
    tables = np.split(np.arange(len(pairs.table)), len(groups))
    for (values, members), rows in zip(groups, tables, strict=True):
        table, group = pairs.table.iloc[rows], list(members)
        place = {labels[member]: i for i, member in enumerate(group)}
        left, right = (table[side].map(format_level).map(place).to_numpy(dtype=np.intp) for side in ("left", "right"))
        half = (table["ci_high"] - table["ci_low"]).to_numpy(dtype=float) / 2.0
        estimate, widths = em.estimate[group], half_widths_of_means(left, right, half, len(group))
        tested = np.isfinite(half)
        significant = below(table["p_value"].to_numpy(dtype=float), alpha)
        apart = np.abs(estimate[left] - estimate[right]) > widths[left] + widths[right]
        n_pairs += int(tested.sum())
        columns = {"level": list(place), "estimate": estimate, "half_width": widths}
        ends = {"ci_low": estimate - widths, "ci_high": estimate + widths}
        means.append(pd.DataFrame({**values, **columns, **ends}))
        differ = table.loc[tested & (apart != significant), [*pairs.by, "left", "right"]]
        exceptions.append(differ.assign(significant=significant[tested & (apart != significant)]))
    odd = pd.concat(exceptions, ignore_index=True)
    named = [f"{row['left']} − {row['right']}" for row in odd.to_dict("records")]
    notes = (f"Overlap and test disagree for {joined(named)}; the test decides.",) if named else ()
    return Answer(
        question="comparison_intervals",
        title=f"Comparison intervals of {em.score}",
        tables={"intervals": pd.concat(means, ignore_index=True), "exceptions": odd},
        values={"alpha": alpha, "adjust": pairs.adjust, "n_pairs": n_pairs},
        facts=(
            f"Half widths whose sums are closest to those of {counted(n_pairs, 'difference')} "
            f"({ADJUSTMENT_NAMES.get(pairs.adjust, pairs.adjust)}, {100 * pairs.level:g} %).",
        ),
        findings=("Two means whose comparison intervals do not overlap differ significantly.",) if not named else (),
        notes=notes,
    )
