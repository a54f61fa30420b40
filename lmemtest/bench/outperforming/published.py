"""Published results against the noise of their benchmark: which improvements are larger than noise alone makes?

Of two methods with the same mean, the difference of their means over k scores has the variance
``(s_A^2 + s_B^2 - 2 rho s_A s_B) / k``. An improvement is called significant from z times its root on, with the normal
quantile z at 1 - alpha: a one-sided test of one comparison that was chosen in advance.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from lmemtest.core.result import Result, result
from lmemtest.core.rounding import at_most, tolerance
from lmemtest.core.validate import as_frame, check_column, check_direction, check_fraction, check_positive_int
from lmemtest.core.words import counted, format_number, percent
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

FIRST, WORSE, WITHIN, BEYOND = "first", "no improvement", "not significant", "significant"


@result
class PublishedImprovements(Result):
    """Results in the order of time, each against the best before it.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per result: ``time``, ``score``, ``best_before`` (the best score of an earlier time; NaN for the first),
        ``improvement`` over it, ``p_raw`` of the one-sided test, and ``conclusion``: "first", "no improvement", "not
        significant" or "significant".
    threshold : float
        The smallest improvement that is significant.
    sd : float
        Of one score.
    k : int
        Scores behind each result.
    correlation, alpha : float
    score, time, direction : str
        Names of the columns, and which scores are better.
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "published_improvements_plot"

    table: pd.DataFrame
    threshold: float
    sd: float
    k: int
    correlation: float
    alpha: float
    score: str
    time: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """How many, and in which score."""
        return f"{counted(len(self.table), 'published result')} in {self.score}, by {self.time}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the threshold is made of."""
        shared = f" and the correlation {self.correlation:g}" if self.correlation else ""
        return (
            f"An improvement over the best before is significant from {format_number(self.threshold)} on: one-sided "
            f"z-test at {percent(self.alpha)}, {counted(self.k, 'score')} with the standard deviation "
            f"{format_number(self.sd)} behind each result{shared}.",
        )

    def sentences(self) -> tuple[str, ...]:
        """How many results are better than all before them, and how many of these by more than noise."""
        count = self.table["conclusion"].value_counts()
        best = int(count.get(WITHIN, 0) + count.get(BEYOND, 0))
        later = int((self.table["conclusion"] != FIRST).sum())
        return (
            f"Of {counted(later, 'later result')}, {best} {'is' if best == 1 else 'are'} better than the best before, "
            f"{count.get(BEYOND, 0)} of them significantly, each by itself.",
        )


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

    Returns
    -------
    float
        ``z sqrt((s_A^2 + s_B^2 - 2 correlation s_A s_B) / k)``, with z the normal quantile at 1 - alpha.

    Raises
    ------
    ArgumentError
        If an argument is outside of its domain.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 3.1

    Examples
    --------
    >>> round(improvement_threshold(0.01), 5), round(improvement_threshold(0.01, k=4), 5)
    (0.02326, 0.01163)
    """
    if check_fraction(alpha, "alpha") >= 0.5:
        raise ArgumentError(f"alpha must be below 0.5, or a worse result passes the threshold, got {alpha!r}.")
    return float(-special.ndtri(alpha)) * _error(sd, k, correlation)


def published_improvements(
    table: Any,
    *,
    score: str,
    time: str,
    sd: float,
    k: int = 1,
    correlation: float = 0.0,
    direction: str = "maximize",
    alpha: float = 0.05,
) -> PublishedImprovements:
    """Compare each published result with the best before it, given how much a score varies.

    Parameters
    ----------
    table : dataframe or mapping
        One row per result; two rows at least, with two times at least.
    score, time : str
        Columns of numbers: the result, and when it was published. Results of the same time are not compared.
    sd, k, correlation, alpha
        As those of `improvement_threshold`; one `sd` for all methods.
    direction : {"maximize", "minimize"}

    Returns
    -------
    PublishedImprovements

    Raises
    ------
    ArgumentError
        If an argument is outside of its domain.
    DataError
        If scores or times are no finite numbers, or all have the same time.

    Notes
    -----
    The best of several noisy results is likely above the mean of its own method, so fewer than alpha of the methods
    that are no better pass the threshold, and methods that are better pass it less often than against a result chosen
    in advance. Each result is tested by itself.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 3

    Examples
    --------
    >>> results = {"year": [2015, 2016, 2017, 2018], "accuracy": [0.92, 0.95, 0.955, 0.94]}
    >>> found = published_improvements(results, score="accuracy", time="year", sd=0.01)
    >>> found.table["conclusion"].tolist()
    ['first', 'significant', 'not significant', 'no improvement']
    """
    import pandas as pd

    frame = as_frame(table, argument="table").lazy()
    names = frame.collect_schema().names()
    if check_column(score, names, argument="score") == check_column(time, names, argument="time"):
        raise ArgumentError(f"score and time must be two columns, got {score!r} for both.")
    columns = frame.select(score, time).collect()
    direction = check_direction(direction)
    error = _error(sd, k, correlation)
    threshold = improvement_threshold(sd, k=k, correlation=correlation, alpha=alpha)
    values, times = (_numbers(columns, name) for name in (score, time))
    order = np.argsort(times, kind="stable")
    values, times = values[order], times[order]
    if len(values) < 2 or times[0] == times[-1]:
        raise DataError(
            f"table must hold results of two times at least in {time!r}: the later are compared with the best before."
        )
    gain = values if direction == "maximize" else -values
    earlier = np.searchsorted(times, times, side="left")  # how many results are of an earlier time
    best = np.maximum.accumulate(gain)
    before = np.where(earlier > 0, best[earlier - 1], np.nan)
    better = gain - before
    p = special.ndtr(-better / error)
    improved = better > tolerance(values)
    conclusion = np.select([earlier == 0, ~improved, at_most(p, alpha)], [FIRST, WORSE, BEYOND], default=WITHIN)
    return PublishedImprovements(
        table=pd.DataFrame(
            {
                "time": times,
                "score": values,
                "best_before": before if direction == "maximize" else -before,
                "improvement": better,
                "p_raw": p,
                "conclusion": conclusion,
            }
        ),
        threshold=threshold,
        sd=float(sd),
        k=int(k),
        correlation=float(correlation),
        alpha=float(alpha),
        score=score,
        time=time,
        direction=direction,
        notes=(
            "Each result is tested by itself, and the best before it is the luckiest of several: take more runs of "
            "both methods, paired by split, before a conclusion.",
        ),
    )


def _error(sd: Any, k: int, correlation: Any) -> float:
    """Standard error of the difference of two means."""
    pair = sd if isinstance(sd, (tuple, list)) else (sd, sd)
    if len(pair) != 2 or not all(_is_number(value) and value > 0 for value in pair):
        raise ArgumentError(f"sd must be a standard deviation above 0, or two of them, got {sd!r}.")
    if not _is_number(correlation) or not -1.0 <= correlation < 1.0:
        raise ArgumentError(f"correlation must be at least -1 and below 1, got {correlation!r}.")
    a, b = map(float, pair)
    return math.sqrt((a**2 + b**2 - 2.0 * correlation * a * b) / check_positive_int(k, "k"))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(frame: Any, name: str) -> NDArray[np.float64]:
    column = frame.get_column(name)
    values = np.asarray(column.to_numpy(), dtype=float) if column.dtype.is_numeric() else np.array([np.nan])
    if not np.isfinite(values).all():
        raise DataError(
            f"column {name!r} must hold finite numbers. Leave out results without a number; write dates as years."
        )
    return values
