"""Anytime performance: mean curves over the budget, and from which budget to which one algorithm is better."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from lmemtest.bench.budget.curves import SCALES, MeanCurves, check_columns_option, mean_curves, ranges_text, to_axis
from lmemtest.bench.budget.horizons import at
from lmemtest.bench.budget.relative_ranks import ranks
from lmemtest.bench.data.runs import require_runs
from lmemtest.core.hints import guess, guided
from lmemtest.core.options import VCOV
from lmemtest.core.result import Result
from lmemtest.core.rounding import below, tie_order, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import format_number, listed, p_text, percent
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.distributions.largest_t import largest_over_curves
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.means.adjust import adjust
from lmemtest.lmm.means.decisions import maximal_cliques
from lmemtest.lmm.means.empirical_bayes import pair_ratios
from lmemtest.lmm.means.moderated import deviations

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Codes, Mask
    from lmemtest.lmm.means.empirical_bayes import Moderation


_FEW = 6  # benchmarks
_CHANCE = 0.05  # that the variances of pairs differ as much as they do
_OF_CURVES = (  # what is made when curves are first looked at
    *("curves", "differences", "stretches", "best", "overall", "decisions", "algorithms", "budgets", "observed"),
    *("estimates", "critical_means", "critical_differences", "df_means", "df_differences", "vcov", "scale", "columns"),
    *("formula", "fit", "sample", "n_sample", "notes"),
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Anytime(Result):
    """Curves over the budget, their differences, and what can be said at all budgets at once.

    The curves are made when one of these attributes is first asked for; `at` and `ranks` do not need them.

    Attributes
    ----------
    curves : pandas.DataFrame
        ``algorithm``, ``budget``, ``mean``, ``se``, ``ci_low``, ``ci_high`` (each point by itself), ``band_low``,
        ``band_high`` (all algorithms and budgets at once).
    differences : pandas.DataFrame
        ``left``, ``right``, ``budget``, ``estimate`` (left - right), ``se``, ``df``, ``t_ratio``, ``p_value`` (adjusted
        for all pairs and budgets), ``band_low``, ``band_high``.
    stretches : pandas.DataFrame
        ``better``, ``worse``, ``budget_from``, ``budget_to``, ``whole_range``, ``largest`` (difference, better minus
        worse), ``at`` (its budget).
    best : pandas.DataFrame
        ``budget_from``, ``budget_to``, ``compared`` (those with scores there), ``candidates`` (nobody of these is
        shown to be better), ``best`` (shown to be better than all others of these, else missing).
    overall : pandas.DataFrame
        Means over the budgets that both have, on the scale of the curves: ``left``, ``right``, ``budget_from``,
        ``budget_to`` (their range), ``estimate``, ``se``, ``df``, ``t_ratio``, ``p_value`` (adjusted for all pairs:
        step-down where standard errors are moderated, else Tukey), ``ci_low``, ``ci_high``.
    decisions : (k, k, points) int8
        1 where the row is better than the column, -1 where it is worse, 0 where neither is shown; every statement
        and figure reads this.
    algorithms : tuple of str
    budgets : (points,) float
        Where curves are evaluated: the `observed` budgets, and points between them on smooth curves.
    estimates : Estimates
        The curves by budget, with the errors of the model: ``.pairs()``, ``.decisions()`` at each budget by itself.
    critical_means : float
    critical_differences : (pairs, points) float
        Half widths of the bands in standard errors.
    df_means : float
    df_differences : (pairs, points) float
    vcov : {"moderated", "model"}
        Standard errors of differences: each pair's own, shrunk towards the common ones, or the common ones.
    scale, columns, formula
        Of the spline; no columns and no formula where every budget has means of its own.
    sample, n_sample
        What the curves are a sample of ("families", "benchmarks" or "runs"), and how many.
    fit : LmmFit or None
        The fit of smooth curves; None where the table is complete and the solution is in closed form.
    notes : tuple of str
    runs : Runs
    options : dict
        What curves are asked for.
    """

    parts = {name: name for name in ("differences", "curves", "stretches", "best", "overall")}
    formats = {"budget_from": ".4g", "budget_to": ".4g", "at": ".4g"}
    figure = "anytime_plot"

    runs: Runs
    options: Mapping[str, Any]

    at = at
    ranks = ranks

    def __getattr__(self, name: str) -> Any:
        return self._made[name] if name in _OF_CURVES else guess(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_OF_CURVES})

    @cached_property
    def _made(self) -> dict[str, Any]:
        # the generator stays as it is, so that copies of the result have the same draws
        return _compared_curves(self.runs, **{**self.options, "rng": deepcopy(self.options["rng"])})

    @property
    def alpha(self) -> float:
        """One minus the confidence of the bands and of all statements about budgets at once."""
        return float(self.options["alpha"])

    @property
    def score(self) -> str:
        """The column."""
        return self.runs.score

    @property
    def direction(self) -> str:
        """Which end of the score is better."""
        return self.runs.direction

    @property
    def budget(self) -> str:
        """The column."""
        return str(self.runs.budget)

    def differences_at(self, budget: float) -> pd.DataFrame:
        """The differences at one budget, from the curves.

        Parameters
        ----------
        budget : float
            The nearest point of `budgets` is taken.
        """
        point = self.budgets[self._point(budget)]
        return self.differences[self.differences["budget"] == point].reset_index(drop=True)

    def groups(self, budget: float) -> tuple[tuple[str, ...], ...]:
        """Groups of algorithms without a shown difference at one budget, best first, as in a CD diagram.

        Parameters
        ----------
        budget : float
            The nearest point of `budgets` is taken.
        """
        point = self._point(budget)
        means = self.means()[:, point]
        order = {i: rank for rank, i in enumerate(tie_order(means, descending=self.direction == "maximize"))}
        here = np.flatnonzero(np.isfinite(means))
        alike = self.decisions[:, :, point][np.ix_(here, here)] == 0
        ranked = [sorted((int(here[i]) for i in group), key=order.__getitem__) for group in maximal_cliques(alike)]
        ranked.sort(key=lambda group: order[group[0]])
        return tuple(tuple(self.algorithms[i] for i in group) for group in ranked)

    def means(self) -> Array:
        """``(k, points)`` mean curves; NaN beyond the budgets of an algorithm."""
        return self.curves["mean"].to_numpy(dtype=float).reshape(len(self.algorithms), -1)

    def candidates(self) -> Mask:
        """``(k, points)``: algorithms that nobody is shown to be better than."""
        return candidates(self.decisions, np.isfinite(self.means()))

    def critical_difference(self) -> tuple[Array, Array]:
        """Smallest and largest difference over pairs that would be shown, at each point."""
        se = self.differences["se"].to_numpy(dtype=float).reshape(-1, len(self.budgets))
        half = self.critical_differences * se
        finite = np.where(np.isfinite(half).any(axis=0), half, 0.0)
        return np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)

    @property
    def title(self) -> str:
        """What the printed table shows."""
        return f"Budgets where one algorithm is better ({self.score}, {self.direction})"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model of the curves, and how large a difference must be."""
        over = f"the logarithm of {self.budget}" if self.scale == "log" else self.budget

        def span(values: Array) -> str:
            return " to ".join(dict.fromkeys(written(float(x), ".3g") for x in (values.min(), values.max())))

        return (
            f"{self.formula}: splines with {self.columns} columns over {over}."
            if self.formula
            else f"Means at each observed {self.budget}, with an unstructured covariance.",
            f"Simultaneous for all pairs and budgets at {percent(1.0 - self.alpha)}: a difference counts beyond "
            f"{span(self.critical_differences)} standard errors ({span(self.df_differences)} degrees of freedom, "
            f"{self.n_sample} {self.sample}).",
        )

    def shown(self) -> pd.DataFrame:
        """Stretches of budgets where one algorithm is better."""
        return self.stretches

    def sentences(self) -> tuple[str, ...]:
        """Who is best where, who is better than whom from which budget to which, and averaged over the budgets."""
        return (*best_sentences(self), *stretch_sentences(self), *overall_sentences(self))

    def _point(self, budget: float) -> int:
        low, high = float(self.budgets[0]), float(self.budgets[-1])
        if not low <= float(budget) <= high:
            raise ArgumentError(
                f"budget must be between {low:g} and {high:g}, the budgets of the runs, got {budget!r}: curves say "
                "nothing beyond them."
            )
        axis = to_axis(self.budgets, self.scale)
        return int(np.argmin(np.abs(axis - to_axis(np.array([float(budget)]), self.scale))))


@guided
def anytime(
    runs: Runs,
    *,
    scale: str = "auto",
    columns: str | int = "auto",
    average: bool = True,
    vcov: str = "moderated",
    alpha: float = 0.05,
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
) -> Anytime:
    """Compare algorithms over the budget: at all budgets at once, at some of them, or by their ranks.

    The options are those of the curves; ``.at()`` and ``.ranks()`` have their own.

    Parameters
    ----------
    runs : Runs
        For curves with two or more algorithms, three or more budgets (numbers), and several benchmarks or seeds. Filter
        them to a window of budgets to judge that window, or to a level of a metafeature.
    scale : {"auto", "linear", "log"}
        Where curves are smooth: over the budget or over its logarithm. "auto" takes the logarithm if the largest
        budget is eight times the smallest or more.
    columns : int, "auto" or "budgets"
        Columns of the cubic B-spline. "auto" takes the fewest (from 3, at most 8, and two less than there are budgets)
        with which no difference of two curves departs from the observed one by more than a quarter of its standard
        error. "budgets" gives each budget a mean of its own, which needs a complete table.
    average : bool
        In a complete table with several benchmarks, average scores over runs and over levels of metafeatures first;
        the solution is in closed form then. False fits all rows with random curves of runs.
    vcov : {"moderated", "model"}
        Standard errors of differences. "moderated": each pair's own scatter over the benchmarks, shrunk towards the
        common one, as in `moderated`; for complete tables of three or more algorithms and benchmarks, else the model's
        are used, with a note. "model": the common variance for all pairs, right if all vary alike.
    level : float in (0, 1)
        Confidence of the bands and of all statements about budgets at once.
    n_draws : int
        Draws of the largest standardised difference, from which bands get their width.
    rng : int, numpy.random.Generator or None
        Source of these draws.

    Returns
    -------
    Anytime
        The curves are made when they are first looked at; ``.at(budgets)`` compares at a few budgets or windows and
        tests what changes between them, ``.ranks()`` has the mean ranks at every budget.

    Raises
    ------
    ArgumentError, DataError
        If there are no curves to compare, at the first look at them: no budget column, fewer than three budgets,
        nothing repeated, ranges of budgets that do not overlap.
    DesignError
        Then, if differences do not vary.

    Notes
    -----
    The model is ``score ~ algorithm * f(budget)`` with random curves f of benchmarks, of algorithms on benchmarks and
    of runs, so an advantage counts only as far as it holds across benchmarks (across runs where there is one). Bands
    hold for all algorithms, or all pairs, at all budgets together: with probability 1 - `alpha` no stretch where one
    algorithm is called better is wrong. An algorithm with scores in a part of the range only is compared there.

    A pair's variance is the common one at each budget times a ratio, its own over the common mean square averaged over
    budgets and moderated, or that of the budget itself where it is larger. Its t ratios become normal scores by its own
    degrees of freedom, which are compared with the largest of the joint normal law of all pairs and budgets: the rule
    is conservative. With ``vcov="model"``, and for two algorithms, the width is the quantile of the largest ``|t|``,
    with variances that follow a Wishart law along the curve; that holds if all pairs vary alike. Simulated error rates
    are in docs/developers/anytime.md.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, section 4.4; Degras (2011),
    doi:10.5705/ss.2009.207; Verbyla, Cullis, Kenward & Welham (1999), doi:10.1111/1467-9876.00154

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.budget.anytime import anytime
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> result = anytime(runs)
    >>> result.stretches[["better", "worse"]].drop_duplicates().values.tolist()
    [['HB', 'RS']]
    """
    require_runs(runs)
    options = {
        "scale": check_choice(scale, "scale", SCALES),
        "columns": check_columns_option(columns),
        "average": check_flag(average, "average"),
        "vcov": check_choice(vcov, "vcov", VCOV),
        "alpha": check_fraction(alpha, "alpha"),
        "n_draws": check_positive_int(n_draws, "n_draws", minimum=1000),
        "rng": resolve_rng(rng),
    }
    return Anytime(runs=runs, options=options)


@one_blas_thread()
def _compared_curves(
    runs: Runs,
    *,
    scale: str,
    columns: str | int,
    average: bool,
    vcov: str,
    alpha: float,
    n_draws: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """The curves and their comparison, by the names of `Anytime`."""
    mean = mean_curves(runs, scale=scale, columns=columns, average=average)
    (first, second), V = mean.pairs, mean.estimates.V
    difference_rows = mean.rows[first] - mean.rows[second]
    curve, curve_se = mean.evaluate(mean.rows)
    difference, pair_se = mean.evaluate(difference_rows)
    if not (pair_se > mean.rounding).any():
        raise DesignError(
            f"the differences between algorithms are the same for all {mean.sample}, so there is no variation to "
            "judge them by. Check for constant scores and for an algorithm that is a copy of another: "
            "lmemtest.check(runs)."
        )
    draws: dict[str, Any] = {"n_draws": n_draws, "rng": rng}
    law = largest_over_curves(mean.rows, V, mean.df_means, defined=np.isfinite(curve_se), **draws)
    critical_means = float(law.isf(alpha, mean.df_means))
    moderate = vcov == "moderated" and len(mean.algorithms) > 2 and mean.free > 1
    law = largest_over_curves(
        difference_rows, V, np.inf if moderate else mean.df_differences, defined=np.isfinite(pair_se), **draws
    )
    df, spread = np.full(pair_se.shape, mean.df_differences), None
    if moderate:
        spread, ratio, df = pair_ratios(np.asarray(mean.residuals), mean.free, mean.df_differences)
        # of the errors of curves, the part that differences have is exchanged for each algorithm's own
        advantage = np.nan_to_num(pair_se[0]) ** 2 / 2.0
        shared = np.maximum(curve_se**2 - advantage, 0.0)
        curve_se, pair_se = np.sqrt(shared + advantage * spread.scale[:, None]), pair_se * np.sqrt(ratio)
    critical = np.asarray(law.isf(alpha, df))
    t_ratio = difference / pair_se
    square, half = mean.square(difference, -1.0), mean.square(critical * pair_se)
    sign = -1 if runs.direction == "minimize" else 1
    better = mean.square(np.where(np.abs(t_ratio) > critical, sign * np.sign(t_ratio), 0.0), -1.0)
    decisions = np.nan_to_num(better).astype(np.int8)
    t = float(t_quantile(0.5 * alpha, mean.df_means))
    names = np.array(mean.algorithms, dtype=object)
    return {
        "curves": _table(
            {"algorithm": names[:, None], "budget": mean.budgets, "mean": curve, "se": curve_se},
            {"ci": t * curve_se, "band": critical_means * curve_se},
        ),
        "differences": _table(
            {
                "left": names[first][:, None],
                "right": names[second][:, None],
                "budget": mean.budgets,
                "estimate": difference,
                "se": pair_se,
                "df": df,
                "t_ratio": t_ratio,
                "p_value": law.sf(t_ratio, df),
            },
            {"band": critical * pair_se},
        ),
        "stretches": better_stretches(mean, decisions, square, half),
        "best": best_stretches(mean, decisions, np.isfinite(curve)),
        "overall": _overall(mean, difference_rows, np.isfinite(difference), alpha, moderate=moderate),
        "decisions": decisions,
        "algorithms": mean.algorithms,
        "budgets": mean.budgets,
        "observed": mean.observed,
        "estimates": mean.estimates,
        "critical_means": critical_means,
        "critical_differences": critical,
        "df_means": mean.df_means,
        "df_differences": df,
        "vcov": "moderated" if moderate else "model",
        "scale": mean.scale,
        "columns": mean.columns,
        "formula": mean.formula,
        "fit": mean.fit,
        "sample": mean.sample,
        "n_sample": mean.n_sample,
        "notes": (*mean.notes, *_cautions(mean), *_variance_notes(runs, mean, spread, vcov)),
    }


def _table(columns: dict[str, Any], half_widths: dict[str, Array]) -> pd.DataFrame:
    """Columns of ``(curves, points)`` numbers, one row each, with intervals about the estimate."""
    estimate = columns["mean" if "mean" in columns else "estimate"]
    for name, half in half_widths.items():
        columns |= {f"{name}_low": estimate - half, f"{name}_high": estimate + half}
    return pd.DataFrame({name: np.broadcast_to(x, estimate.shape).ravel() for name, x in columns.items()})


def _overall(mean: MeanCurves, rows: Array, defined: Mask, alpha: float, *, moderate: bool) -> pd.DataFrame:
    """Differences of the means over the axis, with Tukey's adjustment, or step-down with moderated standard errors."""
    first, second = mean.pairs
    estimate, se = mean.evaluate(mean.over_the_axis(rows, defined))
    df = np.full(se.shape, mean.df_differences)
    if moderate:
        _, ratio, df = pair_ratios(mean.mean_residuals()[:, :, None], mean.free, mean.df_differences)
        se = se * np.sqrt(ratio)
    t, method = estimate / se, "stepdown" if moderate else "tukey"
    p_value, critical = adjust(t[:, 0], df[:, 0], method=method, n_means=len(mean.algorithms), alpha=alpha)
    names = np.array(mean.algorithms, dtype=object)
    both = np.where(defined, mean.budgets, np.nan)
    columns = {
        "left": names[first][:, None],
        "right": names[second][:, None],
        "budget_from": np.fmin.reduce(both, axis=1)[:, None],
        "budget_to": np.fmax.reduce(both, axis=1)[:, None],
        "estimate": estimate,
        "se": se,
        "df": df,
        "t_ratio": t,
        "p_value": p_value[:, None],
    }
    return _table(columns, {"ci": critical[:, None] * se})


def _cautions(mean: MeanCurves) -> list[str]:
    notes = []
    if mean.sample == "runs":
        notes.append("There is one benchmark, so the answer holds there and says nothing about others.")
    elif mean.n_sample < _FEW:
        notes.append(
            f"There are only {mean.n_sample} {mean.sample}: only large and consistent differences can be shown, and "
            f"bands may be too narrow (with 2 to 5 {mean.sample} they held in 91 to 97 % of simulated tables at 95 %)."
        )
    if len(set(mean.ranges.values())) > 1:
        ranges = ranges_text(mean.ranges)
        notes.append(f"Algorithms have different budgets ({ranges}); each pair is compared where both have.")
    if mean.fit is not None and not mean.fit.converged:
        notes.append("The optimiser's certificate is not complete; see result.fit.certificate().")
    return notes


def _variance_notes(runs: Runs, mean: MeanCurves, spread: Moderation | None, vcov: str) -> list[str]:
    """Whose variances the standard errors of differences are, and who varies more than the others."""
    names, variances = mean.algorithms, mean.own_variances
    if spread is not None:
        scatter = mean.mean_residuals()
        scatter = scatter - scatter.mean(axis=1, keepdims=True)
        unit = runs.seed if mean.sample == "runs" else runs.study.sampled.column
        return [
            "Standard errors of differences are moderated: each pair's own scatter over the "
            f"{mean.n_sample} {mean.sample}, shrunk towards the common one.",
            *deviations(spread.observed, scatter, list(names), str(unit)),
        ]
    if vcov == "moderated" and len(names) > 2:
        why = "The table is not complete" if variances is None else f"There are only {mean.n_sample} {mean.sample}"
        return [f"{why}, so all pairs have the model's standard errors, which are right if all algorithms vary alike."]
    if variances is None or len(names) < 3 or mean.free < 3:
        return []
    least = max(variances.min(), np.finfo(float).tiny)
    chance = len(variances) * float(fdtrc(mean.free, mean.free, variances.max() / least))
    if not variances.any() or chance > _CHANCE:
        return []
    worst, ratio = int(np.argmax(variances)), float(np.sqrt(variances.max() / variances.mean()))
    left, right = (names[side[worst]] for side in mean.pairs)
    return [
        f"The difference of {left} and {right} varies between {mean.sample} more than that of other pairs: its own "
        f"standard error is {written(ratio, '.2f')} times the common one, so statements about it are overconfident. "
        "vcov='moderated' gives each pair its own."
    ]


_NAMED = 8  # algorithms in a sentence


def best_sentences(result: Anytime) -> list[str]:
    """Who is shown to be better than all others, from which budget to which."""
    sentences = []
    for best, group in groupby(result.best.to_dict("records"), key=lambda row: row["best"]):
        stretch = list(group)
        if not isinstance(best, str):
            continue
        where = range_text(result, stretch[0]["budget_from"], stretch[-1]["budget_to"])
        if all(len(row["compared"]) == len(result.algorithms) for row in stretch):
            sentences.append(f"{best} is better than all others {where}.")
            continue
        places: dict[str, list[str]] = {where: []}  # where each is compared: the names
        for name in result.algorithms:
            rows = [row for row in stretch if name in row["compared"]]
            if rows and name != best:
                place = range_text(result, rows[0]["budget_from"], rows[-1]["budget_to"])
                places.setdefault(place, []).append(name)
        parts = [
            listed(names, most=_NAMED) + ("" if len(places) == 1 else f" {'throughout' if place == where else place}")
            for place, names in places.items()
            if names
        ]
        start = f"{where[0].upper()}{where[1:]} {best} is better than all others that have scores there"
        sentences.append(f"{start}: {'; '.join(parts)}.")
    return sentences or [f"At no {result.budget} is one algorithm shown to be better than all others."]


def stretch_sentences(result: Anytime) -> list[str]:
    """Who is better than whom, from which budget to which."""
    return [
        f"{row['better']} is better than {row['worse']} "
        f"{range_text(result, row['budget_from'], row['budget_to'])} (by {format_number(abs(row['largest']))} at "
        f"{written(row['at'], '.4g')}, where the difference is largest)."
        for row in result.stretches.to_dict("records")
    ] or ["No pair of algorithms is shown to differ at any budget."]


def overall_sentences(result: Anytime) -> list[str]:
    """Who is better on average over the budgets that both have."""
    how = " (log scale)" if result.scale == "log" else ""

    def averaged(low: float, high: float) -> str:
        return f"Averaged over {result.budget} {written(low, '.4g')} to {written(high, '.4g')}{how}"

    sentences = []
    for row in result.overall[below(result.overall["p_value"], result.alpha)].to_dict("records"):
        names = (row["left"], row["right"])
        better, worse = names if (row["estimate"] < 0) == (result.direction == "minimize") else names[::-1]
        sentences.append(
            f"{averaged(row['budget_from'], row['budget_to'])}, {better} is better than {worse} by "
            f"{format_number(abs(row['estimate']))} ({p_text(row['p_value'])})."
        )
    ranges = result.overall[["budget_from", "budget_to"]].drop_duplicates().to_numpy(dtype=float)
    everywhere = f"Averaged over the range of {result.budget} that both have{how}"
    start = averaged(*ranges[0]) if len(ranges) == 1 else everywhere
    return sentences or [f"{start}, no pair is shown to differ."]


def range_text(result: Anytime, low: float, high: float) -> str:
    """A range of budgets in words."""
    first, last = written(low, ".4g"), written(high, ".4g")
    if np.isclose(low, high, rtol=1e-9):
        return f"at {result.budget} {first}"
    if np.isclose([low, high], result.budgets[[0, -1]], rtol=1e-9).all():
        return f"at all budgets ({result.budget} {first} to {last})"
    return f"from {result.budget} {first} to {last}"


def better_stretches(mean: MeanCurves, decisions: Codes, differences: Array, half_width: Array) -> pd.DataFrame:
    """Stretches where one algorithm of a pair is better: one row per stretch."""
    names, axis = mean.algorithms, mean.axis
    smooth = mean.columns is not None
    rows = []
    for i, j in np.argwhere((decisions == 1).any(axis=2)):
        finite = np.flatnonzero(np.isfinite(differences[i, j]))
        # Above 0 where the band excludes 0.
        inside = np.abs(differences[i, j]) - half_width[i, j] if smooth else np.full(len(axis), np.nan)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], decisions[i, j] == 1, [0]])))
        for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
            peak = first + int(np.argmax(np.abs(differences[i, j, first : last + 1])))
            start, end = _crossing(inside, axis, first, -1), _crossing(inside, axis, last, 1)
            whole = bool(first == finite[0] and last == finite[-1])
            rows.append((names[i], names[j], start, end, whole, differences[i, j, peak], mean.budgets[peak]))
    columns = ["better", "worse", "budget_from", "budget_to", "whole_range", "largest", "at"]
    table = pd.DataFrame(rows, columns=columns)
    kinds = dict.fromkeys(("budget_from", "budget_to", "largest", "at"), float) | {"whole_range": bool}
    table = table.astype(kinds)
    return table.assign(**{end: mean.budgets_at(table[end].to_numpy()) for end in ("budget_from", "budget_to")})


def best_stretches(mean: MeanCurves, decisions: Codes, present: Mask) -> pd.DataFrame:
    """Who can be the best from which budget to which: one row per stretch with the same answer."""
    names = np.array(mean.algorithms, dtype=object)
    candidate = candidates(decisions, present)
    n = present.sum(axis=0)
    beats_all = present & ((decisions == 1).sum(axis=1) == n - 1) & (n > 1)
    keys = [
        (
            tuple(names[present[:, x]]),
            tuple(names[candidate[:, x]]),
            names[beats_all[:, x]][0] if beats_all[:, x].any() else None,
        )
        for x in range(len(mean.budgets))
    ]
    rows = []
    for key, group in groupby(range(len(keys)), key=keys.__getitem__):
        members = list(group)
        rows.append((mean.budgets[members[0]], mean.budgets[members[-1]], *key))
    return pd.DataFrame(rows, columns=["budget_from", "budget_to", "compared", "candidates", "best"])


def candidates(decisions: Codes, present: Mask) -> Mask:
    """``(k, points)``: algorithms that no other is shown to be better than."""
    return np.asarray(present & ~(decisions == -1).any(axis=1))


def _crossing(inside: Array, axis: Array, at: int, step: int) -> float:
    """The place where the band reaches 0 beyond the last point of a stretch, by linear interpolation."""
    beyond = at + step
    if not 0 <= beyond < len(axis) or not np.isfinite(inside[beyond]):
        return float(axis[at])
    share = inside[at] / (inside[at] - min(inside[beyond], 0.0))
    return float(axis[at] + share * (axis[beyond] - axis[at]))
