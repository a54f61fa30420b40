"""How good a mean of k scores is when some sources of variation are the same in all of them.

Write ``s2`` for the variance of a single score and ``rho`` for the correlation of two scores that share the fixed
sources, both over new draws of all sources. The mean of k scores has the variance

    s2 / k + (k - 1) / k rho s2,

of which ``rho s2`` stays however large k is: it is the variance that the fixed sources contribute. The ideal estimator
fixes nothing, so its variance is ``s2 / k``, and another estimator is worth as many of its scores as give the same
variance. The two numbers come from variance components, or from several realisations of the estimator: runs of the
whole procedure, each with its own draw of the fixed sources.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 3.3, figures 5, H.4
and H.5; Searle, Casella & McCulloch (1992), doi:10.1002/9780470316856; Graybill & Wang (1980), Confidence intervals on
nonnegative linear combinations of variances, Journal of the American Statistical Association 75.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy import special

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError
from paper_figures.estimators import TUNING, randomized_of

Array = NDArray[np.float64]

IDEAL = "ideal"
RESIDUAL = "residual"  # what is new in every training, whatever is fixed
TOGETHER = " with "  # in the name of a component of two sources with one number


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Variance, correlation, bias and mean squared error of estimators of a mean score.

    `curves` has one row per estimator and k: ``estimator``, ``k``, ``variance`` and ``standard_error`` of the mean of k
    scores, ``ci_low`` and ``ci_high`` of the standard error (NaN from components), ``mse``, and ``equivalent_k``, the
    number of scores with which the ideal estimator has this variance.

    `estimators` has one row per estimator: ``estimator``; ``sd`` of a single score; ``rho``, ``rho_low``, ``rho_high``;
    ``floor``, the standard error that no k goes below; ``most_equivalent``, the equivalent k that none exceeds;
    ``bias`` against the ideal estimator, its standard error ``bias_error`` and its interval ``bias_low``, ``bias_high``
    (NaN from components).
    """

    curves: pd.DataFrame
    estimators: pd.DataFrame

    @property
    def decomposition(self) -> pd.DataFrame:
        """Bias, standard error, correlation and mean squared error at the largest k of each estimator.

        One row per estimator, and before them one score of the ideal one: ``estimator``, ``k``; ``bias``,
        ``standard_error`` and ``rho``, each with ``_low`` and ``_high``; ``variance``, ``mse`` = bias^2 + variance, and
        its root ``rmse``.
        """
        ends = self.curves.groupby("estimator", sort=False).tail(1)
        single = self.curves[(self.curves["estimator"] == IDEAL) & (self.curves["k"] == 1)]
        rows = pd.concat([single, ends], ignore_index=True).drop_duplicates()
        rows = rows.assign(rmse=np.sqrt(rows["mse"])).merge(self.estimators, on="estimator", how="left", sort=False)
        rows = rows.rename(columns={"ci_low": "standard_error_low", "ci_high": "standard_error_high"})
        intervals = [f"{name}{end}" for name in ("bias", "standard_error", "rho") for end in ("", "_low", "_high")]
        return rows[["estimator", "k", *intervals, "variance", "mse", "rmse"]]

    @property
    def at_largest_k(self) -> pd.DataFrame:
        """What the mean of all scores of each estimator is worth."""
        rows = self.curves.groupby("estimator", sort=False).tail(1).merge(self.estimators, on="estimator")
        columns = ["estimator", "k", "rho", "standard_error", "floor", "equivalent_k", "most_equivalent"]
        return rows[[*columns, *(["bias", "bias_error", "mse"] if rows["bias_error"].notna().any() else [])]]


def quality_from_components(
    variances: Mapping[str, float] | lt.VarianceComponents,
    *,
    k: int = 100,
    randomize: Iterable[str | Iterable[str]] | None = None,
) -> Quality:
    """Quality of the ideal estimator and of estimators with one tuning run, from variance components.

    Parameters
    ----------
    variances : mapping of str to float, or VarianceComponents
        Variance that each source contributes to a score: "tuning", the sources of the pipeline ("data", "init", ...),
        their interactions ("data:init"), and "residual" (or "Residual", as in ``fit.varcorr``) for what is new in
        every training. Of `VarianceComponents` the parts of one score on one benchmark count: its `sources`, and what
        is left. Without "tuning", what tuning contributes is in none of the numbers.
    k : int, >= 1
        Curves are for 1, ..., k scores.
    randomize : iterable of ("all", str or iterable of str), optional
        Subsets of the sources of the pipeline, one estimator each. By default "all", and each source alone.

    Returns
    -------
    Quality
        Without intervals: the components are taken for true.

    Notes
    -----
    Fixed sources, and interactions of fixed sources alone, are shared by all scores: their sum over that of all
    variances is ``rho`` (equation 7 of the reference). Effects have mean zero over their levels, so components know of
    no bias: that of tuning on the very seeds that are scored is seen in scores alone.

    Examples
    --------
    >>> found = quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50)
    >>> found.estimators[["estimator", "rho", "floor", "most_equivalent"]].round(2)
                    estimator   rho  floor  most_equivalent
    0                   ideal  0.00   0.00              inf
    1   fixed tuning, all new  0.17   1.00              6.0
    2  fixed tuning, data new  0.33   1.41              3.0
    3  fixed tuning, init new  0.83   2.24              1.2
    """
    values = variances_of_score(variances) if isinstance(variances, lt.VarianceComponents) else variances
    values = {RESIDUAL if name == RESIDUAL.capitalize() else name: float(value) for name, value in values.items()}
    for name, value in values.items():
        if not 0.0 <= value < np.inf:
            raise ArgumentError(f"variances[{name!r}] must be a finite number of at least 0, got {value!r}.")
    total = sum(values.values())
    if not total > 0.0:
        raise ArgumentError("variances must hold a variance above 0: without any, one score is the mean.")
    factors = {source: frozenset(source.split(":")) for source in values}
    names = tuple(dict.fromkeys(part for source in values for part in source.split(":")))
    if both := [name for name in names if TOGETHER in name and TUNING in name.split(TOGETHER)]:
        raise ArgumentError(
            f"variances has one number for {both[0]!r}, and estimators differ by whether tuning alone is fixed. Vary "
            "them apart, or give each a variance."
        )
    learning = tuple(name for name in names if name not in (TUNING, RESIDUAL))
    tuned = TUNING in names
    if randomize is None:
        randomize = [*(["all"] if tuned else []), *(name for name in learning if len(learning) > 1 or not tuned)]
    moments = {IDEAL: Moments(total, 0.0)}
    for subset in randomize:
        new = randomized_of(subset, learning)
        shared = sum(value for source, value in values.items() if not factors[source] & {*new, RESIDUAL})
        label = "all" if subset == "all" else " and ".join(new) or "nothing"
        moments[f"fixed tuning, {label} new"] = Moments(total, shared / total)
    return quality(moments, dict.fromkeys(moments, np.arange(1, k + 1)), total, 0.95)


def variances_of_score(components: lt.VarianceComponents) -> dict[str, float]:
    """Of one algorithm on one benchmark: luck that runs with equal seeds share is new with every seed."""
    named = {name: sd**2 for name, sd in components.sources.items()}
    return {**named, RESIDUAL: components.residual_sd**2 + components.seed_sd**2}


def quality_from_scores(
    scores: Mapping[str, ArrayLike], *, ideal: ArrayLike | None = None, level: float = 0.95
) -> Quality:
    """Quality of estimators from several realisations of each.

    Parameters
    ----------
    scores : mapping of str to array of shape (m, n)
        For each estimator, by its name: one row per realisation (a tuning run of its own and its own seeds of all
        fixed sources), with n scores that share them, all finite.
    ideal : array of shape (N,), optional
        Independent scores, each with everything new and tuned by itself. Without them nothing is known of bias and
        mean squared error, and each estimator is measured by the variance of its own single scores.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    Quality
        Curves up to the n of each estimator, and to the largest of them for the ideal one.

    Notes
    -----
    With the mean squares between (B) and within (W) realisations, ``rho s2 = (B - W) / n`` and ``s2 = rho s2 + W``,
    without bias; rho can thus fall a little below zero by chance. The estimated variance of the mean of k scores is
    ``B / n + W (1 / k - 1 / n)``, the average over all choices of k of the n scores of each realisation. The interval
    of rho is the exact one from the F distribution; that of the standard error is Graybill and Wang's for sums of mean
    squares, exact at k = n. Both suppose normal scores. ``mse`` is the variance plus the square of the estimated bias,
    whose own error makes it a little too large.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> scores = rng.normal(size=(20, 1)) + rng.normal(size=(20, 50))
    >>> found = quality_from_scores({"init new": scores}, ideal=rng.normal(scale=2**0.5, size=50))
    >>> found.estimators[["estimator", "rho", "rho_low", "rho_high"]].round(2)
      estimator   rho  rho_low  rho_high
    0     ideal  0.00     0.00      0.00
    1  init new  0.26     0.16      0.44
    """
    if IDEAL in scores:
        raise ArgumentError(f"scores has {IDEAL!r}, whose scores are independent: give them as ideal.")
    tables = {name: finite(table, f"scores[{name!r}]", 2) for name, table in scores.items()}
    moments = {name: Moments.of(table, level) for name, table in tables.items()}
    numbers = {name: np.arange(1, table.shape[1] + 1) for name, table in tables.items()}
    if ideal is None:
        return quality(moments, numbers, None, level)
    free = Moments.independent(finite(ideal, "ideal", 1))
    moments = {IDEAL: free, **{name: m.against(free, level) for name, m in moments.items()}}
    numbers = {IDEAL: max(numbers.values(), key=len), **numbers}
    return quality(moments, numbers, free.variance, level)


def quality_of_study(study: pd.DataFrame, pipeline: str, dataset: str) -> Quality:
    """Of the estimators with fixed tuning in the bundled study, a realisation per search, against the ideal one."""
    here = study[(study["pipeline"] == pipeline) & (study["dataset"] == dataset)]
    fixed = here[here["design"] == "fixed tuning"]
    scores = {
        f"fixed tuning, {varied} new": rows.groupby("tuning")["score"].apply(list).tolist()
        for varied, rows in fixed.groupby("varied", sort=False)
    }
    return quality_from_scores(scores, ideal=here.loc[here["design"] == "ideal", "score"])


# ---------------------------------------------------------------------- variance and correlation


def variance_of_mean(variance: float, rho: float, k: ArrayLike) -> Array:
    """Variance of the mean of k scores with this variance, any two of which have the correlation `rho`.

    Examples
    --------
    >>> variance_of_mean(4.0, 0.25, [1, 2, 4])
    array([4.  , 2.5 , 1.75])
    """
    k = np.asarray(k, dtype=float)
    return variance / k + (k - 1.0) / k * rho * variance


@dataclass(frozen=True, slots=True)
class Moments:
    """Variance of a score and correlation of two, with what is known of their errors."""

    variance: float
    rho: float
    rho_ends: tuple[float, float] = (float("nan"), float("nan"))
    mean_squares: tuple[tuple[float, float], ...] = ()  # between and within, or of independent scores: value and df
    n: int = 1  # scores of a realisation
    mean: float = float("nan")
    mean_variance: float = float("nan")
    bias: float = 0.0
    bias_error: float = float("nan")
    bias_ends: tuple[float, float] = (float("nan"), float("nan"))

    @classmethod
    def of(cls, scores: Array, level: float) -> Moments:
        """Of realisations in rows."""
        m, n = scores.shape
        means = scores.mean(axis=1)
        between = n * float(means.var(ddof=1))
        within = float(((scores - means[:, None]) ** 2).sum()) / (m * (n - 1))
        shared = (between - within) / n
        df = (m - 1.0, m * (n - 1.0))
        with np.errstate(divide="ignore"):
            ratio = np.float64(between) / within
        tails = special.fdtri(*df, [0.5 + level / 2, 0.5 - level / 2])
        low, high = (1.0 - n / (ratio / tails + n - 1.0)).tolist()
        return cls(
            variance=shared + within,
            rho=shared / (shared + within),
            rho_ends=(low, high),
            mean_squares=((between, df[0]), (within, df[1])),
            n=n,
            mean=float(means.mean()),
            mean_variance=between / (m * n),
            bias=float("nan"),
        )

    @classmethod
    def independent(cls, scores: Array) -> Moments:
        """Of scores that share nothing."""
        variance, N = float(scores.var(ddof=1)), len(scores)
        return cls(variance, 0.0, (0.0, 0.0), ((variance, N - 1.0),), 1, float(scores.mean()), variance / N)

    def against(self, ideal: Moments, level: float) -> Moments:
        """With the bias against the mean of the ideal estimator, and Welch's interval of it."""
        bias, parts = self.mean - ideal.mean, np.array([self.mean_variance, ideal.mean_variance])
        error = float(np.sqrt(parts.sum()))
        df = parts.sum() ** 2 / (parts**2 / [one.mean_squares[0][1] for one in (self, ideal)]).sum()
        half = error * float(special.stdtrit(df, 0.5 + level / 2))
        return replace(self, bias=bias, bias_error=error, bias_ends=(bias - half, bias + half))

    def error_ends(self, k: Array, level: float) -> tuple[Array, Array]:
        """Interval of the standard error of the mean of k scores, k <= n; NaN without degrees of freedom."""
        if not self.mean_squares:
            return np.full(len(k), np.nan), np.full(len(k), np.nan)
        parts = self.parts(k)
        df = np.array([[df] for _, df in self.mean_squares])
        down, up = (1.0 - df / special.chdtri(df, tail) for tail in (0.5 - level / 2, 0.5 + level / 2))
        low, high = (np.sqrt(((part * parts) ** 2).sum(axis=0)) for part in (down, up))
        variance = parts.sum(axis=0)
        return np.sqrt(variance - low), np.sqrt(variance + high)

    def parts(self, k: Array) -> Array:
        """What each mean square contributes to the variance of the mean of k scores, none below zero."""
        weights = [1.0 / k] if len(self.mean_squares) == 1 else [np.full(len(k), 1.0 / self.n), 1.0 / k - 1.0 / self.n]
        return np.array([weight * value for weight, (value, _) in zip(weights, self.mean_squares, strict=True)])

    def variance_of_mean(self, k: Array) -> Array:
        """The equation of `variance_of_mean`, from mean squares without cancellation."""
        return self.parts(k).sum(axis=0) if self.mean_squares else variance_of_mean(self.variance, self.rho, k)


def quality(
    moments: Mapping[str, Moments], numbers: Mapping[str, NDArray[np.int_]], ideal_variance: float | None, level: float
) -> Quality:
    """Both tables."""
    curves, rows = [], []
    for name, m in moments.items():
        k = numbers[name].astype(float)
        variance = m.variance_of_mean(k)
        unit = m.variance if ideal_variance is None else ideal_variance
        floor = max(m.rho * m.variance, 0.0)
        low, high = m.error_ends(k, level)
        curves.append(
            pd.DataFrame(
                {
                    "estimator": name,
                    "k": numbers[name],
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
        )
    names = ["estimator", "sd", "rho", "rho_low", "rho_high", "floor", "most_equivalent"]
    names += ["bias", "bias_error", "bias_low", "bias_high"]
    return Quality(curves=pd.concat(curves, ignore_index=True), estimators=pd.DataFrame(rows, columns=names))


def finite(scores: ArrayLike, name: str, ndim: int) -> Array:
    """Scores that say something of a variance."""
    values = np.asarray(scores, dtype=float)
    if values.ndim != ndim or min(values.shape) < 2:
        table = "a table of at least 2 realisations with the same number of scores, 2 or more"
        raise DataError(f"{name} must be {table if ndim == 2 else 'at least 2 scores in a row'}, got {values.shape}.")
    if missing := int((~np.isfinite(values)).sum()):
        raise DataError(f"{name} has {missing} scores that are missing or not finite: leave out their realisations.")
    if np.ptp(values) == 0.0:
        raise DesignError(f"all scores of {name} are the same, so nothing varies that could be estimated.")
    return values


# ---------------------------------------------------------------------- figures

APART = 1.03  # from an interval to the one of the next curve at the same k


def quality_plot(found: Quality, ax: Axes | None = None) -> Axes:
    """The standard error of the mean of k scores, a curve per estimator (figures 5 and H.4).

    Bars are intervals at the k of the axis, side by side: bands would cover each other.
    """
    ax = Figure(figsize=(7.0, 4.2), layout="constrained").subplots() if ax is None else ax
    curves = found.curves.groupby("estimator", sort=False)
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= found.curves["k"].max()]
    for number, (name, rows) in enumerate(curves):
        (line,) = ax.plot(rows["k"], rows["standard_error"], label=name, linestyle=("-", "--", "-.", ":")[number % 4])
        rows = rows[rows["k"].isin(ticks) & rows["ci_low"].notna()]
        if rows.empty:
            continue
        place = rows["k"] * APART ** (number - 0.5 * (len(curves) - 1))
        ax.vlines(place, rows["ci_low"], rows["ci_high"], color=line.get_color(), linewidth=1.2, label="_interval")
    ax.set(xscale="log", xlabel="Scores k of the mean", ylabel="Standard error of the mean of k scores")
    ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)  # above: bars may be anywhere below
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def decomposition_plot(found: Quality) -> Figure:
    """Bias, standard error, correlation and root mean squared error, a column for each (figure H.5)."""
    table = found.decomposition
    titles = {"bias": "Bias", "standard_error": "Standard error", "rho": "Correlation", "rmse": "Root MSE, no interval"}
    figure = Figure(figsize=(9.0, 0.9 + 0.35 * len(table)), layout="constrained")
    place = np.arange(len(table))
    for ax, (name, title) in zip(figure.subplots(1, len(titles), sharey=True), titles.items(), strict=True):
        if name != "rmse":
            ax.hlines(place, table[f"{name}_low"], table[f"{name}_high"], linewidth=1.5)
        ax.plot(table[name], place, "o", markersize=5)
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_title(title, loc="left", fontsize="medium")
        ax.locator_params(axis="x", nbins=4)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    labels = [f"{name}, k = {k}" for name, k in zip(table["estimator"], table["k"], strict=True)]
    figure.axes[0].set_yticks(place, labels)
    figure.axes[0].invert_yaxis()
    return figure
