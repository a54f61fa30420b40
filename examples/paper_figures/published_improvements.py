"""Published results against the noise of their benchmark: which improvements are larger than noise alone makes?

Of two methods with the same mean, the difference of their means over k scores has the variance
``(s_A^2 + s_B^2 - 2 rho s_A s_B) / k``. An improvement is called significant from z times its root on, with the normal
quantile z at 1 - alpha: a one-sided test of one comparison that was chosen in advance.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 3.1 and figure 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import special

from lmemtest.errors import ArgumentError, DataError

FIRST, WORSE, WITHIN, BEYOND = "first", "no improvement", "not significant", "significant"
MARKS = {BEYOND: ("^", "C2"), WITHIN: ("X", "C1"), WORSE: ("o", "0.6"), FIRST: ("s", "0.1")}
ROUNDING = 1e-9  # relative; a threshold is met at it, and an improvement is larger than this


def improvement_threshold(
    sd: float | tuple[float, float], *, k: int = 1, correlation: float = 0.0, alpha: float = 0.05
) -> float:
    """The smallest difference of two means of k scores that a one-sided z-test calls significant.

    Parameters
    ----------
    sd : float or pair of float, > 0
        Standard deviation of one score, of both algorithms or of each, on the score's scale.
    k : int, >= 1
        Scores behind each mean.
    correlation : float in [-1, 1)
        Of the two scores of a pair: 0 where nothing is shared; above it where both are tested on the same split.
    alpha : float in (0, 0.5)

    Examples
    --------
    >>> round(improvement_threshold(0.01), 5), round(improvement_threshold(0.01, k=4), 5)
    (0.02326, 0.01163)
    """
    if not 0.0 < alpha < 0.5:
        raise ArgumentError(f"alpha must be below 0.5, or a worse result passes the threshold, got {alpha!r}.")
    return float(-special.ndtri(alpha)) * error_of_difference(sd, k, correlation)


def published_improvements(
    table: Mapping | pd.DataFrame,
    *,
    score: str,
    time: str,
    sd: float,
    k: int = 1,
    correlation: float = 0.0,
    direction: str = "maximize",
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Compare each published result with the best before it, given how much a score varies.

    Parameters
    ----------
    table : mapping or pandas.DataFrame
        One row per result; two rows at least, with two times at least.
    score, time : str
        Columns of numbers: the result, and when it was published. Results of the same time are not compared.
    sd, k, correlation, alpha
        As those of `improvement_threshold`; one `sd` for all methods.
    direction : {"maximize", "minimize"}

    Returns
    -------
    pandas.DataFrame
        In the order of time: ``time``, ``score``, ``best_before`` (the best score of an earlier time; NaN for the
        first), ``improvement`` over it, ``p_raw`` of the one-sided test, and ``conclusion``: "first", "no improvement",
        "not significant" or "significant".

    Notes
    -----
    The best of several noisy results is likely above the mean of its own method, so fewer than alpha of the methods
    that are no better pass the threshold, and methods that are better pass it less often than against a result chosen
    in advance. Each result is tested by itself.

    Examples
    --------
    >>> results = {"year": [2015, 2016, 2017, 2018], "accuracy": [0.92, 0.95, 0.955, 0.94]}
    >>> found = published_improvements(results, score="accuracy", time="year", sd=0.01)
    >>> found["conclusion"].tolist()
    ['first', 'significant', 'not significant', 'no improvement']
    """
    error = error_of_difference(sd, k, correlation)
    threshold = improvement_threshold(sd, k=k, correlation=correlation, alpha=alpha)
    results = pd.DataFrame({"time": table[time], "score": table[score]}).astype(float)
    results = results.sort_values("time", kind="stable", ignore_index=True)
    if not np.isfinite(results).all(axis=None):
        raise DataError("scores and times must be finite numbers. Leave out results without one; write dates as years.")
    values, times = results["score"].to_numpy(), results["time"].to_numpy()
    if len(values) < 2 or times[0] == times[-1]:
        raise DataError(
            f"table must hold results of two times at least in {time!r}: the later are compared with the best before."
        )
    side = 1.0 if direction == "maximize" else -1.0
    earlier = np.searchsorted(times, times, side="left")  # how many results are of an earlier time
    best = np.maximum.accumulate(side * values)
    before = np.where(earlier > 0, best[earlier - 1], np.nan)
    better = side * values - before
    improved = better > ROUNDING * np.abs(values).max()
    significant = better >= threshold * (1.0 - ROUNDING)
    conclusion = np.select([earlier == 0, ~improved, significant], [FIRST, WORSE, BEYOND], default=WITHIN)
    return results.assign(
        best_before=side * before, improvement=better, p_raw=special.ndtr(-better / error), conclusion=conclusion
    )


def error_of_difference(sd: float | tuple[float, float], k: int, correlation: float) -> float:
    """Standard error of the difference of two means."""
    a, b = sd if isinstance(sd, (tuple, list)) else (sd, sd)
    if not (a > 0 and b > 0):
        raise ArgumentError(f"sd must be a standard deviation above 0, or two of them, got {sd!r}.")
    if not -1.0 <= correlation < 1.0:
        raise ArgumentError(f"correlation must be at least -1 and below 1, got {correlation!r}.")
    return math.sqrt((a**2 + b**2 - 2.0 * correlation * a * b) / k)


def published_plot(table: pd.DataFrame, *, threshold: float, sd: float, direction: str = "maximize") -> Figure:
    """Results over time, a mark each by its conclusion, and the best so far as a stepped line.

    Beyond it a dark band of one standard deviation of a score, and a light one up to the threshold.
    """
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax, side = figure.subplots(), 1.0 if direction == "maximize" else -1.0
    best = side * (side * table["score"]).cummax()
    for reach, name, alpha in ((threshold, "up to the threshold", 0.15), (sd, "1 SD", 0.3)):
        band = {"step": "post", "color": "C3", "alpha": alpha, "linewidth": 0, "label": name}
        ax.fill_between(table["time"], best, best + side * reach, **band)
    ax.step(table["time"], best, where="post", color="0.1", label="best so far")
    for conclusion, (marker, colour) in MARKS.items():
        rows = table[table["conclusion"] == conclusion]
        if len(rows):
            ax.plot(rows["time"], rows["score"], marker, color=colour, label=conclusion, linestyle="none", zorder=4)
    ax.set(xlabel="Time", ylabel=f"Score ({'higher' if side > 0 else 'lower'} is better)")
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return figure
