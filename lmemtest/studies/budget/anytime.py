"""Anytime performance: mean curves over the budget, and from which budget to which one algorithm is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import fdtrc

from lmemtest._result import Result, result
from lmemtest._rounding import written
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_flag, check_fraction, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.inference.means.moderated import deviations
from lmemtest.studies.budget import stretches
from lmemtest.studies.budget.anytime_words import best_sentences, overall_sentences, stretch_sentences
from lmemtest.studies.budget.curve_model import CurveModel, curve_model, to_axis
from lmemtest.studies.budget.curves import CurveFamily, MeanCurves, complete_curves, spline_curves
from lmemtest.words import format_level, listed, percent

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.inference.distributions.largest_t import DrawnLargestT
    from lmemtest.inference.means.moderation import Moderation
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

_FEW = 6  # benchmarks
_ROUNDING = 1e-12  # of the largest score
_CHANCE = 0.05  # that the variances of pairs differ as much as they do
_VCOV = ("moderated", "model")


@result
class Anytime(Result):
    """Curves over the budget, their differences, and what can be said at all budgets at once.

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
        Where curves are evaluated: the observed budgets, and points between them on smooth curves.
    observed : (n,) float
        Observed budgets.
    critical_means : float
    critical_differences : (pairs, points) float
        Half widths of the bands in standard errors.
    df_means : float
    df_differences : (pairs, points) float
    vcov : {"moderated", "model"}
        Standard errors of differences: each pair's own, squeezed towards the common ones, or the common ones.
    level : float
    scale : {"linear", "log"}
    columns : int or None
        Of the spline; None where every budget has means of its own.
    sample : {"benchmarks", "runs"}
        What the answer generalises to.
    n_sample : int
    score, direction, budget : str
    formula : str or None
        The model of smooth curves; None where every budget has means of its own.
    fit : LmmFit or None
        Its fit; None where the table is complete and the solution is in closed form.
    notes : tuple of str
    """

    parts = {name: name for name in ("differences", "curves", "stretches", "best", "overall")}
    formats = {"budget_from": ".4g", "budget_to": ".4g", "at": ".4g"}
    figure = "anytime_plot"

    curves: pd.DataFrame
    differences: pd.DataFrame
    stretches: pd.DataFrame
    best: pd.DataFrame
    overall: pd.DataFrame
    decisions: NDArray[np.int8]
    algorithms: tuple[str, ...]
    budgets: Array
    observed: Array
    critical_means: float
    critical_differences: Array
    df_means: float
    df_differences: Array
    vcov: str
    level: float
    scale: str
    columns: int | None
    sample: str
    n_sample: int
    score: str
    direction: str
    budget: str
    formula: str | None
    fit: LmmFit | None
    notes: tuple[str, ...] = ()

    def at(self, budget: float) -> pd.DataFrame:
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
        means = self.means()
        order = {i: rank for rank, i in enumerate(stretches.ordered(means[:, point], self.direction))}
        found = stretches.groups_at(self.decisions, np.isfinite(means), point)
        ranked = [tuple(sorted(group, key=order.__getitem__)) for group in found]
        return tuple(tuple(self.algorithms[i] for i in g) for g in sorted(ranked, key=lambda g: order[g[0]]))

    def means(self) -> Array:
        """``(k, points)`` mean curves; NaN beyond the budgets of an algorithm."""
        return self.curves["mean"].to_numpy(dtype=float).reshape(len(self.algorithms), -1)

    def candidates(self) -> NDArray[np.bool_]:
        """``(k, points)``: algorithms that nobody is shown to be better than."""
        return stretches.candidates(self.decisions, np.isfinite(self.means()))

    def critical_difference(self) -> tuple[Array, Array]:
        """Smallest and largest difference over pairs that would be shown, at each point."""
        se = self.differences["se"].to_numpy(dtype=float).reshape(-1, len(self.budgets))
        half = self.critical_differences * se
        known = np.where(np.isfinite(half).any(axis=0), half, 0.0)
        return np.nanmin(known, axis=0), np.nanmax(known, axis=0)

    @property
    def title(self) -> str:
        """What the printed table shows."""
        return f"Budgets where one algorithm is better ({self.score}, {self.direction})"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model of the curves, and how large a difference must be."""
        over = f"the logarithm of {self.budget}" if self.scale == "log" else self.budget
        return (
            f"{self.formula}: splines with {self.columns} columns over {over}."
            if self.formula
            else f"Means at each observed {self.budget}, with an unstructured covariance.",
            f"Simultaneous for all pairs and budgets at {percent(self.level)}: a difference counts beyond "
            f"{_span(self.critical_differences)} standard errors ({_span(self.df_differences)} degrees of freedom, "
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
        return int(np.argmin(np.abs(axis - to_axis(np.array([float(budget)]), self.scale)[0])))


@one_blas_thread()
def anytime(
    runs: Runs,
    *,
    scale: str = "auto",
    columns: str | int = "auto",
    average: bool = True,
    vcov: str = "moderated",
    level: float = 0.95,
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
) -> Anytime:
    """Compare algorithms over all budgets at once.

    Parameters
    ----------
    runs : Runs
        With two or more algorithms, three or more budgets (numbers), and several benchmarks or seeds. Filter them to a
        window of budgets to judge that window, or to a level of a metafeature.
    scale : {"auto", "linear", "log"}
        Where curves are smooth: over the budget or over its logarithm. "auto" takes the logarithm if the largest
        budget is eight times the smallest or more.
    columns : int, "auto" or "budgets"
        Columns of the cubic B-spline. "auto" takes the fewest (from 3, at most 8, and two less than there are budgets)
        with which no difference of two curves departs from the observed one by more than a quarter of its standard
        error. "budgets" gives each budget a mean of its own, which needs a complete table.
    average : bool
        In a complete table with several benchmarks, average scores over runs and over levels of metafeatures first;
        the solution is in closed form then. False fits all rows with random curves of runs, which gives the same where
        no variance is estimated as zero.
    vcov : {"moderated", "model"}
        Standard errors of differences. "moderated": each pair's own scatter over the benchmarks, squeezed towards the
        common one, as in `moderated`; for complete tables of three or more algorithms and benchmarks. "model": the
        common variance for all pairs, right if all algorithms vary alike between benchmarks. Two algorithms have one
        difference, with its own variance in either case. Where the table is not complete the model's are used, with a
        note.
    level : float in (0, 1)
        Confidence of the bands and of all statements about budgets at once.
    n_draws : int
        Draws of the largest standardised difference, from which bands get their width.
    rng : int, numpy.random.Generator or None
        Source of these draws.

    Returns
    -------
    Anytime

    Raises
    ------
    ArgumentError, DataError
        If there are no curves to compare: no budget column, fewer than three budgets, nothing repeated, ranges of
        budgets that do not overlap.
    DesignError
        If differences do not vary between benchmarks (between runs where there is one).

    Notes
    -----
    The model is ``score ~ algorithm * f(budget)`` with random curves f of benchmarks, of algorithms on benchmarks and
    of runs. So an advantage at some budget counts only as far as it holds across benchmarks (across runs where there is
    one benchmark). Bands hold for all algorithms, or all pairs, at all budgets together: with probability `level` no
    stretch where one algorithm is called better is wrong.

    A pair's variance is the common one at each budget times a ratio, its own over the common mean square averaged over
    budgets and moderated, or that of the budget itself where it is larger. Its t ratios become normal scores by its own
    degrees of freedom, which are compared with the largest of the joint normal law of all pairs and budgets. In
    simulated null tables (12 benchmarks, 6 algorithms) a stretch was found in 3 to 4 % where all vary alike, and in 1
    to 2 % where they do not: the rule is conservative. With ``vcov="model"``, and for two algorithms, the width is the
    quantile of the largest |t|, with variances that follow a
    Wishart law along the curve; that holds if all pairs vary alike (then 2 to 6 % with 8 benchmarks or more, 5 to 9 %
    with 5 or 6), and with one erratic algorithm of six a null table has a stretch in 27 to 40 %.

    An algorithm with scores in a part of the range only is compared there.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, section 4.4; Degras (2011),
    doi:10.5705/ss.2009.207; Verbyla, Cullis, Kenward & Welham (1999), doi:10.1111/1467-9876.00154

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.budget.anytime import anytime
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> result = anytime(runs)
    >>> result.stretches[["better", "worse"]].drop_duplicates().values.tolist()
    [['HB', 'RS']]
    """
    from lmemtest.model import fit_lmm

    level = check_fraction(level, "level")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=1000)
    average = check_flag(average, "average")
    check_choice(vcov, "vcov", _VCOV)
    generator = resolve_rng(rng)
    model = curve_model(runs, scale=scale, columns=columns, average=average)
    if model.paired is not None:
        fit, mean = None, complete_curves(model.paired, model, runs)
    else:
        assert model.formula is not None  # means per budget need a complete table
        fit = fit_lmm(model.formula, model.frame)
        mean = spline_curves(fit, model, runs)
    curves, pairs = mean.curves(), mean.differences()
    _check_varies(pairs, model, runs)
    law = curves.largest(model.df_means, n_draws=n_draws, rng=generator)
    critical_means = float(law.isf(1.0 - level, model.df_means))
    spread = None
    df_differences = np.full(pairs.se.shape, model.df_differences)
    if vcov == "moderated" and mean.can_be_moderated:
        law = pairs.largest(np.inf, n_draws=n_draws, rng=generator)
        common = pairs
        spread, pairs, df_differences = mean.moderated(common, model.df_differences)
        curves = mean.moderated_curves(curves, common, spread)
    else:
        law = pairs.largest(model.df_differences, n_draws=n_draws, rng=generator)
    critical = law.isf(1.0 - level, df_differences)
    square, square_se = mean.square(pairs.estimate, -1.0), mean.square(pairs.se)
    half = mean.square(critical)
    decisions = stretches.decide(square / square_se, half, runs.direction)
    return Anytime(
        curves=_curve_table(mean, curves, model.df_means, level, critical_means),
        differences=_difference_table(mean, pairs, law, critical, df_differences),
        stretches=_stretches(mean, decisions, square, square_se * half, smooth=model.columns is not None),
        best=_best(mean, decisions),
        overall=_overall(mean, model.df_differences, level, moderate=spread is not None),
        decisions=decisions,
        algorithms=mean.algorithms,
        budgets=mean.budgets,
        observed=model.budgets,
        critical_means=critical_means,
        critical_differences=critical,
        df_means=model.df_means,
        df_differences=df_differences,
        vcov="model" if spread is None else "moderated",
        level=level,
        scale=model.scale,
        columns=model.columns,
        sample=model.sample,
        n_sample=model.n_sample,
        score=runs.score,
        direction=runs.direction,
        budget=str(runs.budget),
        formula=model.formula,
        fit=fit,
        notes=(*model.notes, *_cautions(fit, model), *_variance_notes(runs, model, mean, spread, vcov)),
    )


def _span(values: Array) -> str:
    """Smallest to largest."""
    low, high = (written(x, ".3g") for x in (float(np.min(values)), float(np.max(values))))
    return low if low == high else f"{low} to {high}"


def _check_varies(pairs: CurveFamily, model: CurveModel, runs: Runs) -> None:
    """Differences that are the same on every unit leave nothing to judge them by, and rounding is no error."""
    size = float(np.abs(model.frame[runs.score].to_numpy(dtype=float)).max())
    if not (pairs.se > _ROUNDING * size).any():
        raise DesignError(
            f"the differences between algorithms are the same for all {model.sample}, so there is no variation to "
            "judge them by. Check for constant scores and for an algorithm that is a copy of another: "
            "lmemtest.check_all(runs)."
        )


# ------------------------------------------------------------------ tables


def _curve_table(mean: MeanCurves, curves: CurveFamily, df: float, level: float, critical: float) -> pd.DataFrame:
    import pandas as pd

    from lmemtest.inference.distributions.student import t_quantile

    t = float(t_quantile(0.5 * (1.0 - level), df))
    estimate, se = curves.estimate.ravel(), curves.se.ravel()
    return pd.DataFrame(
        {
            "algorithm": np.repeat(np.array(mean.algorithms, dtype=object), len(mean.budgets)),
            "budget": np.tile(mean.budgets, mean.n),
            "mean": estimate,
            "se": se,
            "ci_low": estimate - t * se,
            "ci_high": estimate + t * se,
            "band_low": estimate - critical * se,
            "band_high": estimate + critical * se,
        }
    )


def _difference_table(
    mean: MeanCurves, pairs: CurveFamily, law: DrawnLargestT, critical: Array, df: Array
) -> pd.DataFrame:
    import pandas as pd

    names = np.array(mean.algorithms, dtype=object)
    first, second = mean.first_second
    estimate, se = pairs.estimate.ravel(), pairs.se.ravel()
    df, half = df.ravel(), (critical * pairs.se).ravel()
    return pd.DataFrame(
        {
            "left": np.repeat(names[first], len(mean.budgets)),
            "right": np.repeat(names[second], len(mean.budgets)),
            "budget": np.tile(mean.budgets, len(first)),
            "estimate": estimate,
            "se": se,
            "df": df,
            "t_ratio": estimate / se,
            "p_value": law.sf(estimate / se, df),
            "band_low": estimate - half,
            "band_high": estimate + half,
        }
    )


def _stretches(mean: MeanCurves, decisions: Any, square: Array, half_width: Array, *, smooth: bool) -> pd.DataFrame:
    table = stretches.better_stretches(decisions, square, half_width, mean.axis, list(mean.algorithms), smooth=smooth)
    return table.assign(
        budget_from=mean.budgets_at(table["start"].to_numpy(dtype=float)),
        budget_to=mean.budgets_at(table["end"].to_numpy(dtype=float)),
        whole_range=table["whole"].astype(bool),
        at=mean.budgets[table["at"].to_numpy(dtype=int)],
    )[["better", "worse", "budget_from", "budget_to", "whole_range", "largest", "at"]]


def _best(mean: MeanCurves, decisions: Any) -> pd.DataFrame:
    table = stretches.best_stretches(decisions, mean.defined, list(mean.algorithms))
    return table.assign(
        budget_from=mean.budgets[table["first"].to_numpy(dtype=int)],
        budget_to=mean.budgets[table["last"].to_numpy(dtype=int)],
    )[["budget_from", "budget_to", "compared", "candidates", "best"]]


def _overall(mean: MeanCurves, df: float, level: float, *, moderate: bool) -> pd.DataFrame:
    """Differences of the means over the axis, with Tukey's adjustment, or step-down with moderated standard errors."""
    import pandas as pd

    from lmemtest.inference.means.adjust import adjust

    names = np.array(mean.algorithms, dtype=object)
    first, second = mean.first_second
    estimate, se = mean.mean_differences()
    each_df = np.full(len(se), df)
    if moderate:
        ratio, each_df = mean.moderated_means(df)
        se = se * np.sqrt(ratio)
    t = estimate / se
    adjusted = adjust(t, each_df, method="stepdown" if moderate else "tukey", n_means=mean.n, level=level)
    half = adjusted.critical * se
    both = np.where(mean.defined[first] & mean.defined[second], mean.budgets, np.nan)
    return pd.DataFrame(
        {
            "left": names[first],
            "right": names[second],
            "budget_from": np.fmin.reduce(both, axis=1),
            "budget_to": np.fmax.reduce(both, axis=1),
            "estimate": estimate,
            "se": se,
            "df": each_df,
            "t_ratio": t,
            "p_value": adjusted.p_value,
            "ci_low": estimate - half,
            "ci_high": estimate + half,
        }
    )


def _cautions(fit: LmmFit | None, model: CurveModel) -> list[str]:
    notes = []
    if model.sample == "runs":
        notes.append("There is one benchmark, so the answer holds there and says nothing about others.")
    elif model.n_sample < _FEW:
        notes.append(
            f"There are only {model.n_sample} benchmarks: only large and consistent differences can be shown, and "
            "bands may be too narrow (with 2 to 5 benchmarks they held in 91 to 97 % of simulated tables at 95 %)."
        )
    if len(set(model.ranges.values())) > 1:
        ranges = [f"{a}: {format_level(low)} to {format_level(high)}" for a, (low, high) in model.ranges.items()]
        notes.append(f"Algorithms have different budgets ({listed(ranges)}); each pair is compared where both have.")
    if fit is not None and not fit.converged:
        notes.append("The optimiser's certificate is not complete; see result.fit.certificate().")
    return notes


def _variance_notes(runs: Runs, model: CurveModel, mean: MeanCurves, spread: Moderation | None, vcov: str) -> list[str]:
    """Whose variances the standard errors of differences are, and who varies more than the others."""
    if spread is not None:
        unit = runs.benchmark if model.sample == "benchmarks" else runs.seed
        said = (
            "Standard errors of differences are moderated: each pair's own scatter over the "
            f"{model.n_sample} {model.sample}, squeezed towards the common one."
        )
        scatter = mean.mean_residuals()
        scatter = scatter - scatter.mean(axis=1, keepdims=True)
        return [said, *deviations(spread.observed, scatter, list(mean.algorithms), str(unit))]
    if vcov == "moderated" and mean.n > 2:
        why = "The table is not complete" if model.paired is None else f"There are only {model.n_sample} {model.sample}"
        return [f"{why}, so all pairs have the model's standard errors, which are right if all algorithms vary alike."]
    return _uneven(runs, model)


def _uneven(runs: Runs, model: CurveModel) -> list[str]:
    """Pairs whose own differences vary more between units than the common variance says."""
    if model.paired is None or model.paired.scores.shape[1] < 3 or model.paired.free < 3:
        return []
    names = [str(a) for a in runs.levels(runs.algorithm)]
    first, second = np.triu_indices(len(names), 1)
    squares = (model.paired.own_errors()[first, second] ** 2).mean(axis=1)
    if not squares.any():
        return []
    worst, ratio = int(np.argmax(squares)), float(np.sqrt(squares.max() / squares.mean()))
    free = model.paired.free
    chance = len(squares) * float(fdtrc(free, free, squares.max() / max(squares.min(), np.finfo(float).tiny)))
    if chance > _CHANCE:
        return []
    left, right = names[first[worst]], names[second[worst]]
    return [
        f"The difference of {left} and {right} varies between {model.sample} more than that of other pairs: its own "
        f"standard error is {written(ratio, '.2f')} times the common one, so statements about it are too sure. "
        "vcov='moderated' gives each pair its own."
    ]
