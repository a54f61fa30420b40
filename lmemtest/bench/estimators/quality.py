"""How good a mean of k scores is when some sources of variation are the same in all of them.

Write ``s2`` for the variance of a single score and ``rho`` for the correlation of two scores that share the fixed
sources, both over new draws of all sources. The mean of k scores has the variance

    s2 / k + (k - 1) / k rho s2,

of which ``rho s2`` stays however large k is: it is the variance that the fixed sources contribute. The ideal estimator
fixes nothing, so its variance is ``s2 / k``, and another estimator is worth as many of its scores as give the same
variance. The two numbers come from variance components, or from several realisations of the estimator: runs of the
whole procedure, each with its own draw of the fixed sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.estimators.estimators import TUNING, randomized_of
from lmemtest.bench.estimators.moments import Moments
from lmemtest.bench.power.components import TOGETHER, VarianceComponents
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import in_tie_order, written
from lmemtest.core.validate import check_fraction, check_magnitude, check_positive_int, real
from lmemtest.core.words import counted, format_number, joined
from lmemtest.errors import ArgumentError, DataError, DesignError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

IDEAL = "ideal"
RESIDUAL = "residual"  # what is new in every training, whatever is fixed


@result
class EstimatorQuality(Result):
    """Variance, correlation, bias and mean squared error of estimators of a mean score, over the number of scores k.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per estimator and k: ``estimator``, ``k``, ``variance`` and ``standard_error`` of the mean of k scores,
        ``ci_low`` and ``ci_high`` of the standard error (NaN from components), ``mse``, and ``equivalent_k``, the
        number of scores with which the ideal estimator has this variance.
    estimators : pandas.DataFrame
        One row per estimator: ``estimator``; ``sd`` of a single score; ``rho``, ``rho_low``, ``rho_high``; ``floor``,
        the standard error that no k goes below; ``most_equivalent``, the equivalent k that none exceeds; ``bias``,
        its standard error ``bias_error`` and its interval ``bias_low``, ``bias_high`` (NaN from components).
    origin : {"components", "scores"}
        Where the numbers come from.
    level : float
        Of each interval.
    notes : tuple of str
    """

    figure = "estimator_quality_plot"
    parts: ClassVar = {"curves": "table", "estimators": "estimators", "decomposition": "decomposition"}
    formats: ClassVar = {"rho": ".2f", "equivalent_k": ".1f", "most_equivalent": ".1f"}

    table: pd.DataFrame
    estimators: pd.DataFrame
    origin: str
    level: float
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is compared."""
        return "Estimators of the mean score"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the columns are, and where they come from."""
        origin = "variance components" if self.origin == "components" else "realisations of each estimator"
        return (
            f"From {origin}. rho is the correlation of two scores of one realisation.",
            "The standard error is that of the mean of k scores over everything that is random, floor its limit for "
            "large k;",
            "as many scores of the ideal estimator as equivalent_k are as precise.",
        )

    @property
    def decomposition(self) -> pd.DataFrame:
        """Bias, standard error, correlation and mean squared error at the largest k of each estimator.

        One row per estimator, and before them one score of the ideal one: ``estimator``, ``k``; ``bias``,
        ``standard_error`` and ``rho``, each with ``_low`` and ``_high``; ``variance``, ``mse`` = bias^2 + variance, and
        its root ``rmse``.
        """
        ends = self.table.groupby("estimator", sort=False).tail(1)
        single = self.table[(self.table["estimator"] == IDEAL) & (self.table["k"] == 1)]
        rows = pd.concat([single, ends], ignore_index=True).drop_duplicates()
        rows = rows.assign(rmse=np.sqrt(rows["mse"])).merge(self.estimators, on="estimator", how="left", sort=False)
        rows = rows.rename(columns={"ci_low": "standard_error_low", "ci_high": "standard_error_high"})
        intervals = [f"{name}{end}" for name in ("bias", "standard_error", "rho") for end in ("", "_low", "_high")]
        return rows[["estimator", "k", *intervals, "variance", "mse", "rmse"]]

    def shown(self) -> pd.DataFrame:
        """Each estimator with its largest k."""
        last = self.table.groupby("estimator", sort=False).tail(1)
        both = self.estimators.merge(last, on="estimator")
        columns = ["estimator", "k", "rho", "standard_error", "floor", "equivalent_k", "most_equivalent"]
        known = both["bias"].notna().any() and self.origin == "scores"
        return both[[*columns, *(["bias", "bias_error", "mse"] if known else [])]]

    def sentences(self) -> tuple[str, ...]:
        """What each estimator is worth, the best first."""
        last = self.table.groupby("estimator", sort=False).tail(1)
        rows = self.estimators.merge(last, on="estimator").to_dict("records")
        others = [row for row in rows if row["estimator"] != IDEAL]
        return tuple(map(self._worth, in_tie_order(others, lambda row: row["equivalent_k"], descending=True)))

    def _worth(self, row: Mapping[Any, Any]) -> str:
        text = (
            f"The mean of {counted(int(row['k']), 'score')} of {row['estimator']!r} has the standard error "
            f"{format_number(row['standard_error'])}, like that of {written(row['equivalent_k'], '.1f')} of the ideal "
            "estimator"
        )
        if self.origin == "scores":
            rho, low, high = (written(row[name], ".2f") for name in ("rho", "rho_low", "rho_high"))
            return f"{text}: rho is {rho} ({100 * self.level:.4g} % interval {low} to {high})."
        if np.isinf(row["most_equivalent"]):
            return f"{text}."
        return f"{text}, and no number of them is worth more than {written(row['most_equivalent'], '.1f')}."


def quality_from_components(
    variances: Mapping[str, float] | VarianceComponents,
    *,
    k: int = 100,
    randomize: Iterable[str | Iterable[str]] | None = None,
) -> EstimatorQuality:
    """Quality of the ideal estimator and of estimators with one tuning run, from variance components.

    Parameters
    ----------
    variances : mapping of str to float, or VarianceComponents
        Variance that each source contributes to a score: "tuning", the sources of the pipeline ("data", "init", ...),
        their interactions ("data:init"), and "residual" (or "Residual", as in ``fit.varcorr``) for what is new in
        every training. Of `VarianceComponents` the parts of one score on one benchmark count: its `sources`, and what
        is left.
    k : int, >= 1
        Curves are for 1, ..., k scores.
    randomize : iterable of ("all", str or iterable of str), optional
        Subsets of the sources of the pipeline, one estimator each. By default "all", and each source alone.

    Returns
    -------
    EstimatorQuality
        Without intervals: the components are taken for true.

    Raises
    ------
    ArgumentError
        If a variance is negative or not finite, all are zero, or a subset names something else.

    Notes
    -----
    Fixed sources, and interactions of fixed sources alone, are shared by all scores: their sum over that of all
    variances is ``rho`` (equation 7 of the reference). Effects have mean zero over their levels, so components know of
    no bias: that of tuning on the very seeds that are scored is seen in scores alone.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3

    Examples
    --------
    >>> found = quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50)
    >>> found.to_frame("estimators")[["estimator", "rho", "floor", "most_equivalent"]].round(2)
                    estimator   rho  floor  most_equivalent
    0                   ideal  0.00   0.00              inf
    1   fixed tuning, all new  0.17   1.00              6.0
    2  fixed tuning, data new  0.33   1.41              3.0
    3  fixed tuning, init new  0.83   2.24              1.2
    """
    values = _checked_variances(variances.run_variances() if isinstance(variances, VarianceComponents) else variances)
    k = check_positive_int(k, "k", maximum=1_000_000)
    factors = {source: frozenset(source.split(":")) for source in values}
    names = tuple(dict.fromkeys(part for source in values for part in source.split(":")))
    if both := [name for name in names if TOGETHER in name and TUNING in name.split(TOGETHER)]:
        raise ArgumentError(
            f"variances has one number for {both[0]!r}, and estimators differ by whether tuning alone is fixed. Vary "
            "them apart, or give each a variance."
        )
    learning = tuple(name for name in names if name not in (TUNING, RESIDUAL))
    total = sum(values.values())
    tuned = TUNING in names
    if randomize is None:
        randomize = [*(["all"] if tuned else []), *(name for name in learning if len(learning) > 1 or not tuned)]
    elif isinstance(randomize, str) or not isinstance(randomize, Iterable):
        raise ArgumentError(f"randomize must be a list of subsets of the sources {list(learning)}, got {randomize!r}.")
    subsets = {_label(subset, learning): {*randomized_of(subset, learning), RESIDUAL} for subset in randomize}
    moments = {IDEAL: Moments(total, 0.0)}
    for label, new in subsets.items():
        shared = sum(value for source, value in values.items() if not factors[source] & new)
        moments[label] = Moments(total, shared / total)
    notes = () if tuned else (
        f"No variance of {TUNING!r} is given, so what tuning contributes is in none of the numbers.",
    )  # fmt: skip
    numbers = np.arange(1, k + 1)
    return _quality(moments, dict.fromkeys(moments, numbers), total, "components", 0.95, notes)


def quality_from_scores(
    scores: Mapping[str, ArrayLike], *, ideal: ArrayLike | None = None, level: float = 0.95
) -> EstimatorQuality:
    """Quality of estimators from several realisations of each.

    Parameters
    ----------
    scores : mapping of str to array of shape (m, n)
        For each estimator, by its name: one row per realisation (a tuning run of its own and its own seeds of all
        fixed sources), with n scores that share them. Arrays or data frames, all scores finite.
    ideal : array of shape (N,), optional
        Independent scores, each with everything new and tuned by itself. Without them nothing is known of bias and
        mean squared error, and each estimator is measured by the variance of its own single scores.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    EstimatorQuality
        Curves up to the n of each estimator, and to the largest of them for the ideal one.

    Raises
    ------
    DataError
        If a table has fewer than 2 rows or columns, or scores that are missing or not finite.
    DesignError
        If all scores of an estimator are the same.

    Notes
    -----
    With the mean squares between (B) and within (W) realisations, ``rho s2 = (B - W) / n`` and ``s2 = rho s2 + W``,
    without bias; rho can thus fall a little below zero by chance. The estimated variance of the mean of k scores is
    ``B / n + W (1 / k - 1 / n)``, the average over all choices of k of the n scores of each realisation. The interval
    of rho is the exact one from the F distribution; that of the standard error is Graybill and Wang's for sums of mean
    squares, exact at k = n. Both suppose normal scores. ``mse`` is the variance plus the square of the estimated bias,
    whose own error makes it a little too large.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 3.3; Searle,
    Casella & McCulloch (1992), doi:10.1002/9780470316856; Graybill & Wang (1980), Confidence intervals on nonnegative
    linear combinations of variances, Journal of the American Statistical Association 75

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(20, 1)) + rng.normal(size=(20, 50))
    >>> found = quality_from_scores({"init new": scores}, ideal=rng.normal(scale=2**0.5, size=50))
    >>> found.to_frame("estimators")[["estimator", "rho", "rho_low", "rho_high"]].round(2)
      estimator   rho  rho_low  rho_high
    0     ideal  0.00     0.00      0.00
    1  init new  0.26     0.16      0.44
    """
    level = check_fraction(level, "level")
    if not isinstance(scores, Mapping) or not scores:
        got = "an empty mapping" if isinstance(scores, Mapping) else type(scores).__name__
        raise ArgumentError(f"scores must map names of estimators to tables of scores, got {got}.")
    if IDEAL in scores:
        raise ArgumentError(f"scores has {IDEAL!r}, whose scores are independent: give them as ideal.")
    moments, numbers, total = {}, {}, None
    for name, table in scores.items():
        values = _finite(table, f"scores[{name!r}]", 2)
        moments[str(name)] = Moments.of(values, level)
        numbers[str(name)] = np.arange(1, values.shape[1] + 1)
    notes: tuple[str, ...] = (
        "Without scores of the ideal estimator, bias and mean squared error are not known, and equivalent_k compares "
        "with independent scores of the same variance.",
    )
    if ideal is not None:
        notes = ()
        free = Moments.independent(_finite(ideal, "ideal", 1))
        total = free.variance
        moments = {IDEAL: free, **{name: m.against(free, level) for name, m in moments.items()}}
        numbers = {IDEAL: max(numbers.values(), key=len), **numbers}
    low = [name for name, m in moments.items() if m.rho < 0]
    if low:
        notes = (*notes, f"rho is estimated below zero for {joined(low)}: realisations differ less than by chance.")
    return _quality(moments, numbers, total, "scores", level, notes)


def _quality(
    moments: Mapping[str, Moments],
    numbers: Mapping[str, NDArray[np.int_]],
    ideal_variance: float | None,
    origin: str,
    level: float,
    notes: tuple[str, ...],
) -> EstimatorQuality:
    curves, rows = [], []
    for name, m in moments.items():
        k = numbers[name]
        variance = m.variance_of_mean(k.astype(float))
        unit = m.variance if ideal_variance is None else ideal_variance
        floor = max(m.rho * m.variance, 0.0)
        low, high = m.error_ends(k.astype(float), level)
        curves.append(
            pd.DataFrame(
                {
                    "estimator": name,
                    "k": k,
                    "variance": variance,
                    "standard_error": np.sqrt(variance),
                    "ci_low": low,
                    "ci_high": high,
                    "mse": variance + m.bias**2,
                    "equivalent_k": np.divide(unit, variance, out=np.full(len(k), np.inf), where=variance > 0),
                }
            )
        )
        most = unit / floor if floor > 0 else float("inf")
        rows.append(
            (name, np.sqrt(m.variance), m.rho, *m.rho_ends, np.sqrt(floor), most, m.bias, m.bias_error, *m.bias_ends)
        )  # fmt: skip
    names = ["estimator", "sd", "rho", "rho_low", "rho_high", "floor", "most_equivalent"]
    names += ["bias", "bias_error", "bias_low", "bias_high"]
    return EstimatorQuality(
        table=pd.concat(curves, ignore_index=True),
        estimators=pd.DataFrame(rows, columns=names),
        origin=origin,
        level=level,
        notes=notes,
    )


# ---------------------------------------------------------------------- arguments


def _label(subset: Any, learning: tuple[str, ...]) -> str:
    """What an estimator with one tuning run is called."""
    new = randomized_of(subset, learning)
    everything = isinstance(subset, str) and subset == "all"
    return f"fixed tuning, {'all' if everything else joined(new or ('nothing',))} new"


def _checked_variances(variances: Any) -> dict[str, float]:
    if not isinstance(variances, Mapping) or not all(isinstance(name, str) and name for name in variances):
        raise ArgumentError(f"variances must map names of sources to variances, got {variances!r}.")
    values: dict[str, float] = {}
    for key, value in variances.items():
        name = RESIDUAL if key == RESIDUAL.capitalize() else key
        try:
            values[name] = float(value)
        except (TypeError, ValueError):
            values[name] = float("nan")
        if not 0.0 <= values[name] < np.inf:
            raise ArgumentError(f"variances[{key!r}] must be a finite number of at least 0, got {value!r}.")
    if not sum(values.values()) > 0.0:
        raise ArgumentError("variances must hold a variance above 0: without any, one score is the mean.")
    return values


def _finite(scores: Any, name: str, ndim: int) -> Array:
    try:
        values = real(scores)
    except (TypeError, ValueError):
        values = np.empty(0)  # words, or rows of different lengths
    if values.ndim != ndim or min(values.shape) < 2:
        table = "a table of at least 2 realisations with the same number of scores, 2 or more"
        what = table if ndim == 2 else "at least 2 scores in a row"
        got = f"shape {values.shape}" if values.size else "rows of different lengths, or no numbers"
        raise DataError(f"{name} must be {what}, got {got}.")
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise DataError(
            f"{name} has {counted(bad, 'score')} that {'is' if bad == 1 else 'are'} missing or not finite. Run again "
            "what gave them, or leave out their realisations."
        )
    check_magnitude(values)
    if np.ptp(values) == 0.0:
        raise DesignError(f"all scores of {name} are the same, so nothing varies that could be estimated.")
    return values
