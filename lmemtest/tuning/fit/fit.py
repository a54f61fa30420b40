"""Fits of the quadratic and the noisy quadratic distribution to random-search scores, and whether to trust them.

What such a fit says that scores alone do not: the best score that the search space holds, how many hyperparameters
matter, how large the noise of a score is, and the tuning curve beyond the number of scores. All of it is
extrapolation, so every fit comes with intervals, with a check of its shape, and with a sentence; samples of the fit
check its shape more sharply (`bootstrap_fit`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.core.replicates import Executor, Failure, replicate
from lmemtest.core.resampling import drawn_interval, p_of_draws
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int
from lmemtest.core.words import format_number, p_text, percent, span
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.tuning.checks import Estimate, check_k, check_scores
from lmemtest.tuning.fit.profile import Family, allowance
from lmemtest.tuning.fit.settings import LARGEST_C, Counted, FitSettings, check_enough, count, make_settings
from lmemtest.tuning.fit.spacings import Box, distinct, rounding_of, spacings, within
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import Number, QuadraticDistribution, best_above, best_below
from lmemtest.tuning.order_statistics import crossing_probability, equal_tailed_intervals

Law = QuadraticDistribution | NoisyQuadraticDistribution

FEW_SCORES = 20
MANY_TIES = 0.1  # share of the exact scores that repeat another one
MISFIT = 0.05
FEWEST_DRAWS = 20  # below it a p-value cannot fall under 0.05
_FORMATS = dict.fromkeys(("k", "estimate", "ci_low", "ci_high"), format_number)
_CERTAIN = 1e-12  # of a band level: n times it is an upper bound for the probability, and settles the matter


@result
class ParametricFit(Result):
    """A parametric tuning distribution fitted to scores.

    Attributes
    ----------
    distribution : QuadraticDistribution or NoisyQuadraticDistribution
        The fitted law.
    scores : (n_exact,) float
        Scores between the limits, sorted.
    n_scores, n_below, n_above : int
        All scores; those only counted at or below the lower limit, and at or above the upper one.
    estimates : tuple of Estimate
        Best and worst expected score, hyperparameters and, where fitted, noise.
    objective : float
        Logarithm of the product of spacings at the fit.
    by_c : tuple of (int, float)
        Its largest value for each number of hyperparameters that was tried.
    p_band : float
        Probability that so many scores leave an exact band around the fitted distribution function that is as wide as
        the one these scores just leave, had its parameters been known. As they were estimated, it is too large: small
        values condemn the shape, large ones do not confirm it (see `bootstrap_fit`).
    settings : FitSettings
        Direction, limits, constraints, level.
    problems : tuple of str
        Reasons against trusting the fit, as sentences.
    notes : tuple of str
        What a reader must know.
    """

    distribution: Law
    scores: Array
    n_scores: int
    n_below: int
    n_above: int
    estimates: tuple[Estimate, ...]
    objective: float
    by_c: tuple[tuple[int, float], ...]
    p_band: float
    settings: FitSettings
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    parts = {"parameters": "_frame"}
    formats = _FORMATS

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the fit."""
        return not self.problems

    @property
    def is_point_mass(self) -> bool:
        """Whether all scores are the same, so that the fit is that value and nothing more."""
        return len(self.scores) == self.n_scores and len(distinct(self.scores)[0]) == 1

    @property
    def best(self) -> Estimate:
        """Asymptotic best score: the expected score of the best configuration of the search space."""
        return self.estimates[0]

    @property
    def worst(self) -> Estimate:
        """The other end of the expected scores, as far as the quadratic shape reaches."""
        return self.estimates[1]

    @property
    def hyperparameters(self) -> Estimate:
        """Effective number of hyperparameters."""
        return self.estimates[2]

    def quantile_curve(self, k: ArrayLike, *, q: float = 0.5) -> Number:
        """Quantile of the best of `k` scores under the fitted law; see `QuadraticDistribution.quantile_curve`."""
        return self.distribution.quantile_curve(k, q=q, direction=self.settings.direction)

    def curve(self, k: ArrayLike, *, q: float = 0.5) -> Answer:
        """The quantile curve with intervals, made as those of the parameters.

        Parameters
        ----------
        k : positive float or list of them
            Trials of the search.
        q : float in (0, 1)
            Which quantile; 0.5 is the median. The best of k is at most the curve with probability q, in both
            directions.

        Returns
        -------
        Answer
            ``to_frame()`` has `k`, `estimate`, `ci_low`, `ci_high`, each k by itself; an end is infinite where the
            scores give none. `fit`, where it comes from, and `q`.
        """
        at, q = check_k(k), check_fraction(q, "q")
        low, high = self.curve_intervals(at, q)
        best = "highest" if self.settings.direction == "maximize" else "lowest"
        columns = {"k": at, "estimate": np.asarray(self.quantile_curve(at, q=q)), "ci_low": low, "ci_high": high}
        return Answer(
            question="ParametricFit.curve",
            title="Parametric tuning curve",
            tables={"curve": pd.DataFrame(columns)},
            values={**columns, "fit": self, "q": q},
            facts=(
                f"{percent(q)} quantile of the {best} of k scores under the fitted law; "
                f"{percent(self.settings.level)} intervals, pointwise in k. Beyond k = {self.n_scores} it is an "
                "extrapolation.",
            ),
            findings=self.sentences(),
            formats=_FORMATS,
            figure="tuning_fit_plot",
        )

    def curve_intervals(self, k: Array, q: float) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals of the quantile curve at `k`, shape (m,) each."""
        if self.is_point_mass:
            return np.full(len(k), -math.inf), np.full(len(k), math.inf)
        family = climbed(self.counted, self.settings)
        floor = self.objective - allowance(self.settings.level)
        # the probability of a single score better than the best of k is at that quantile
        shares = best_below(q, k) if self.settings.convex else best_above(q, k)
        ends = np.array([family.quantile_interval(float(p), floor) for p in shares])
        return (ends[:, 0], ends[:, 1]) if self.settings.convex else (-ends[:, 1], -ends[:, 0])

    def places_of_scores(self, q: float) -> tuple[Array, Array]:
        """For each exact score the k whose best has it as its `q` quantile, and the scores."""
        maximize = self.settings.direction == "maximize"
        worse = self.n_below if maximize else self.n_above  # scores that are only counted have no place
        scores = self.scores if maximize else self.scores[::-1]
        # the share of F below each score, from the worst, as the fit takes it
        share = np.arange(worse + 1, worse + 1 + len(scores)) / (self.n_scores + 1)
        return np.log(q if maximize else 1.0 - q) / np.log(share), scores

    @property
    def counted(self) -> Counted:
        """The scores as the fit saw them."""
        return self.scores, self.n_below, self.n_above

    def mean_curve(self, k: ArrayLike) -> Number:
        """Expected best of `k` scores under the fitted law."""
        return self.distribution.mean_curve(k, direction=self.settings.direction)

    def sentences(self) -> tuple[str, ...]:
        c = self.hyperparameters
        whole = "given" if c.fixed else span(c.ci_low, c.ci_high, ".0f")
        parts = [
            f"Asymptotic best score {_with_interval(self.best)}",
            f"{written(c.value, '.0f')} effective hyperparameter{'s' if c.value != 1 else ''} ({whole})",
        ]
        if len(self.estimates) > 3:
            parts.append(f"noise {_with_interval(self.estimates[3])}")
        verdict = (
            "Nothing in these scores speaks against the fit."
            if self.trusted
            else f"Do not trust this fit: {' '.join(self.problems)}"
        )
        return (f"{', '.join(parts)}. {verdict}",)

    def _frame(self) -> pd.DataFrame:
        """One row per parameter: ``parameter``, ``estimate``, ``ci_low``, ``ci_high``, ``fixed``."""
        columns = {"parameter": "name", "estimate": "value", "ci_low": "ci_low", "ci_high": "ci_high", "fixed": "fixed"}
        return pd.DataFrame(
            {column: [getattr(one, name) for one in self.estimates] for column, name in columns.items()}
        )

    @property
    def title(self) -> str:
        kind = "Noisy quadratic" if len(self.estimates) > 3 else "Quadratic"
        counted = [f"{m} only counted {where}" for m, where in ((self.n_below, "below"), (self.n_above, "above")) if m]
        beside = f" ({', '.join(counted)})" if counted else ""
        return f"{kind} tuning distribution, {self.settings.direction}, n = {self.n_scores}{beside}"


LAWS = ("quadratic", "noisy_quadratic")


@one_blas_thread()
def fit(
    scores: ArrayLike,
    *,
    direction: str,
    law: str = "quadratic",
    limits: tuple[float | None, float | None] | None = None,
    constraints: Mapping[str, Any] | None = None,
    level: float = 0.95,
) -> ParametricFit:
    """Fit the quadratic or the noisy quadratic distribution to the scores of random search.

    Parameters
    ----------
    scores : (n,) float
        Scores of independent random configurations. With limits, infinite scores are counted.
    direction : {"minimize", "maximize"}
        Which scores are better. Minimizing fits the convex shape, maximizing the concave one.
    law : {"quadratic", "noisy_quadratic"}
        A smooth function of the hyperparameters without noise, or with normal noise.
    limits : (float or None, float or None), optional
        Scores at or below the first and at or above the second are only counted (censored). The shape holds near the
        best score; a limit on the bad side keeps the bad scores from bending the fit.
    constraints : mapping, optional
        For "a", "b" (lower and upper end of the expected scores), "c" (hyperparameters) or "o" (noise, of the noisy
        law): a number, or a (low, high) pair. By default c is 1 to 10. Knowing the noise, from one configuration
        trained several times, or the number of hyperparameters, narrows the intervals of everything else.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    ParametricFit
        ``to_frame()`` has parameter, estimate, ci_low, ci_high; ``sentences()`` says whether to trust it.

    Raises
    ------
    DataError
        If scores are missing, infinite without a limit, or fewer than five different ones (six with noise) lie between
        the limits.
    ArgumentError
        If an option is wrong or the constraints exclude the scores.

    Notes
    -----
    The estimate maximises the product of spacings, ``prod (F(y_(i)) - F(y_(i-1)))``, and not the likelihood, which
    for c < 2 grows without limit as the end of the distribution approaches the best score seen. Ties lie half in the
    spacing below and half in the one above; counted scores lie beyond their limit.

    Intervals hold the values for which twice the logarithm of the product falls by at most 1.3 times the chi-squared
    quantile with one degree of freedom. The factor comes from simulation: for c < 4 the problem is not regular, and
    the fall at the truth is a little larger than chi-squared (tests/simulation shows the coverage).

    The noise, the number of hyperparameters and the asymptotic best score can replace each other: with 50 scores and
    noise of a tenth of the range, most numbers of hyperparameters fit. The intervals are over all of them.

    References
    ----------
    Cheng & Amin (1983), Estimating parameters in continuous univariate distributions with a shifted origin,
    doi:10.1111/j.2517-6161.1983.tb01268.x; Ranneby (1984), The maximum spacing method, Scand. J. Statist. 11, 93-112;
    Lourie, He & Cho (2025), Hyperparameter loss surfaces are simple near their optima, COLM 2025,
    arXiv:2510.02721.

    Examples
    --------
    >>> import numpy as np
    >>> from lmemtest.tuning import NoisyQuadraticDistribution, QuadraticDistribution
    >>> p = (np.arange(100) + 0.5) / 100
    >>> law = QuadraticDistribution(0.5, 0.9, 2)  # accuracies: at most 0.9, two hyperparameters matter
    >>> found = fit(law.ppf(p), direction="maximize")
    >>> found.hyperparameters.value, round(found.best.value, 3), found.best.ci_low < 0.9 < found.best.ci_high
    (2.0, 0.902, True)
    >>> law = NoisyQuadraticDistribution(0.1, 0.6, 1, 0.03, convex=True)  # losses of at least 0.1
    >>> found = fit(law.ppf(p), direction="minimize", law="noisy_quadratic")
    >>> found.hyperparameters.value, round(found.best.value, 2), round(found.distribution.o, 2)
    (1.0, 0.1, 0.03)
    """
    noisy = check_choice(law, "law", LAWS) == "noisy_quadratic"
    settings = make_settings(direction, limits, constraints, level, noisy=noisy)
    counted, beyond = count(check_scores(scores), settings)
    exact, n_below, n_above = counted
    n = len(exact) + n_below + n_above
    equal = len(exact) == n > 1 and len(distinct(exact)[0]) == 1
    return ParametricFit(
        scores=exact,
        n_scores=n,
        n_below=n_below,
        n_above=n_above,
        settings=settings,
        **(_point_mass(exact, settings) if equal else _estimated(counted, beyond, settings)),
    )


# ---------------------------------------------------------------------- fitting


def climbed(counted: Counted, settings: FitSettings, beyond: tuple[bool, bool] = (False, False)) -> Family:
    """The model for scores turned so that smaller is better, with its peaks; `beyond`: any really beyond a limit."""
    (exact, n_below, n_above), box, (past_a, past_b) = counted, settings, beyond
    if not settings.convex:
        exact, n_below, n_above, box, past_a, past_b = -exact[::-1], n_above, n_below, settings.turned, past_b, past_a
    data = spacings(exact, box.lower, n_below, box.upper, n_above)
    if not settings.noisy:  # the buckets that are left between the farthest ends that the constraints allow
        near, low, high = rounding_of(data.edges), float(data.edges[0]), float(data.edges[-1])
        beyond_a = low < box.a[0] - near or (past_a and low <= box.a[0])
        if beyond_a or high > box.b[1] + near or (past_b and high >= box.b[1]):
            first, last = (low, high) if settings.convex else (-high, -low)
            less, more = beyond
            raise ArgumentError(
                f"constraints exclude the scores: they go from {'below ' * less}{first:g} to {'above ' * more}{last:g},"
                f" and without noise all must lie between a and b, got a in {settings.a} and b in {settings.b}. Widen "
                "the constraint, or use law='noisy_quadratic'."
            )
        data = within(data, box.a[0], box.b[1])
    family = Family(data, box.a, box.b, box.o, box.c)
    family.climb_all()
    if not any(math.isfinite(value) for value, _ in family.peaks.values()):
        raise ArgumentError(
            f"constraints leave no law for the scores: a in {settings.a}, b in {settings.b}, noise in {settings.o}, c "
            f"in {settings.c[0]} to {settings.c[-1]}. Widen them."
        )
    return family


def law_of(family: Family, settings: FitSettings) -> Law:
    """The distribution at the highest peak of a family."""
    _, (a, b, o) = family.peaks[family.best]
    return _law((a, b) if settings.convex else (-b, -a), family.best, o, settings)


def _law(ends: Box, c: int, o: float, settings: FitSettings) -> Law:
    if settings.noisy:
        return NoisyQuadraticDistribution(*ends, float(c), o, settings.convex)
    return QuadraticDistribution(*ends, float(c), settings.convex)


def _estimated(counted: Counted, beyond: tuple[bool, bool], settings: FitSettings) -> dict[str, Any]:
    """The highest peak with intervals, and whether to trust it, as a fit holds them."""
    check_enough(counted, settings)
    family = climbed(counted, settings, beyond)
    law, (top, _) = law_of(family, settings), family.peaks[family.best]
    floor = top - allowance(settings.level)
    intervals = [family.interval(which, floor) for which in (0, 1)]
    if not settings.convex:
        intervals = [(-high, -low) for low, high in intervals]
    whole = family.plausible(floor)
    intervals.append((float(min(whole)), float(max(whole))))
    if settings.noisy:
        intervals.append(family.interval(2, floor))
    estimates, p_band = _estimates(law, intervals, settings), band_probability(law, counted)
    return {
        "distribution": law,
        "estimates": estimates,
        "objective": top,
        "by_c": tuple((c, value) for c, (value, _) in family.peaks.items()),
        "p_band": p_band,
        "problems": _problems(estimates, counted[0], p_band),
        "notes": _notes(settings, counted),
    }


def _point_mass(exact: Array, settings: FitSettings) -> dict[str, Any]:
    """The same of equal scores: one value, and nothing about anything else."""
    value, near = float(np.median(exact)), rounding_of(exact)
    if not settings.noisy and not (settings.a[0] - near <= value <= settings.b[1] + near):
        raise ArgumentError(
            f"constraints exclude the scores: all are {format_number(value)}, and without noise they must lie between "
            f"a and b, got a in {settings.a} and b in {settings.b}. Widen the constraint, or use law='noisy_quadratic'."
        )
    a, b = min(max(value, settings.a[0]), settings.a[1]), max(min(value, settings.b[1]), settings.b[0])
    law = _law((a, b), settings.c[0], settings.o[0], settings)
    return {
        "distribution": law,
        "estimates": _estimates(law, _boxes(settings), settings),
        "objective": 0.0,
        "by_c": tuple((c, 0.0) for c in settings.c),
        "p_band": 1.0,
        "problems": (
            f"All {len(exact)} scores are {format_number(value)}: a point mass, which determines nothing else. Check "
            "which column was given.",
        ),
        "notes": ("Intervals are as wide as the constraints.",),
    }


def _boxes(settings: FitSettings) -> list[Box]:
    """The constraints of best and worst score, hyperparameters and, if there is any, noise."""
    ends = [settings.a, settings.b] if settings.convex else [settings.b, settings.a]
    return [*ends, (float(settings.c[0]), float(settings.c[-1])), *([settings.o] if settings.noisy else [])]


def parameters(law: Law) -> dict[str, float]:
    """The parameters of a law by the names of the estimates."""
    best, worst = (law.a, law.b) if law.convex else (law.b, law.a)
    noise = 0.0 if isinstance(law, QuadraticDistribution) else law.o
    return {"best": best, "worst": worst, "hyperparameters": law.c, "noise": noise}


def _estimates(law: Law, intervals: list[Box], settings: FitSettings) -> tuple[Estimate, ...]:
    names = list(parameters(law).items())[: len(intervals)]  # a law without noise has no interval of it
    return tuple(
        Estimate(name=name, value=value, ci_low=low, ci_high=high, level=settings.level, fixed=box[0] == box[1])
        for (name, value), box, (low, high) in zip(names, _boxes(settings), intervals, strict=True)
    )


# ---------------------------------------------------------------------- whether to trust it


def band_distance(law: Law, counted: Counted) -> float:
    """Alpha' of the equal-tailed band around the fitted law that the scores just leave: the smaller, the farther.

    The number of scores up to the i-th, ties counted against leaving, is compared with F there by the beta
    distribution of an order statistic.
    """
    exact, n_below, n_above = counted
    n = len(exact) + n_below + n_above
    at_most = n_below + np.searchsorted(exact, exact, side="right")
    less = n_below + np.searchsorted(exact, exact, side="left")
    lower, upper = np.asarray(law.cdf(exact)), np.asarray(law.sf(exact))
    inside = (lower > 0.0) & (upper > 0.0)  # a score at the very end of a law, which it cannot reach, was rounded
    at_most, less, lower, upper = (values[inside] for values in (at_most, less, lower, upper))
    early = special.betainc(at_most, n + 1 - at_most, lower)  # the last of the tied scores came this early
    late = special.betainc(n - less, less + 1, upper)  # the first of them this late
    return float(min(1.0, 2.0 * min(early.min(initial=0.5), late.min(initial=0.5))))


def band_probability(law: Law, counted: Counted) -> float:
    """Exact probability that n scores of a known law leave the band of `band_distance`."""
    (exact, n_below, n_above), alpha = counted, band_distance(law, counted)
    n = len(exact) + n_below + n_above
    if alpha < _CERTAIN:
        return n * alpha
    low, high = equal_tailed_intervals(n, alpha)
    seen = slice(n_below, n - n_above)
    lower, upper = np.zeros(n), np.ones(n)
    lower[seen], upper[seen] = low[seen], high[seen]
    return float(min(1.0, max(0.0, 1.0 - crossing_probability(lower, upper))))


def _problems(estimates: tuple[Estimate, ...], exact: Array, p_band: float) -> tuple[str, ...]:
    best, _, c = estimates[:3]
    problems = []
    if below(p_band, MISFIT):
        problems.append(
            f"The scores do not have this shape: they leave the exact {percent(1 - MISFIT)} band around it "
            f"({p_text(p_band)})."
        )
    span = float(exact[-1] - exact[0])
    if not best.fixed and not best.ci_high - best.ci_low <= span:
        problems.append(
            "The asymptotic best score is not determined: its interval is wider than the range of the scores."
        )
    if not c.fixed and c.ci_high == LARGEST_C:
        problems.append(
            f"The number of hyperparameters is not limited from above: {LARGEST_C}, the most that is tried, fits too."
        )
    if len(exact) < FEW_SCORES:
        problems.append(f"{len(exact)} exact scores are too few to see a wrong shape.")
    repeated = 1.0 - len(distinct(exact)[0]) / len(exact)
    if repeated > MANY_TIES:
        problems.append(f"{percent(repeated)} of the exact scores repeat another one; the law is continuous.")
    if len(estimates) > 3 and not estimates[3].value < abs(estimates[0].value - estimates[1].value):
        problems.append("The noise is larger than the range of the expected scores: these are normal scores.")
    return tuple(problems)


def _notes(settings: FitSettings, counted: Counted) -> tuple[str, ...]:
    level = percent(settings.level)
    notes = [
        f"Maximum product of spacings; {level} intervals, not simultaneous, from its profile over c in "
        f"{settings.c[0]} to {settings.c[-1]}."
        if len(settings.c) > 1
        else f"Maximum product of spacings with c = {settings.c[0]}; {level} intervals, not simultaneous, from its "
        "profile."
    ]
    _, n_below, n_above = counted
    if n_below if settings.convex else n_above:
        notes.append("The limit hides the best scores, so their shape comes from the others alone.")
    return tuple(notes)


def _with_interval(estimate: Estimate) -> str:
    if estimate.fixed:
        return f"{format_number(estimate.value)} (given)"
    return (
        f"{format_number(estimate.value)} ({percent(estimate.level)} interval {format_number(estimate.ci_low)} to "
        f"{format_number(estimate.ci_high)})"
    )


# ---------------------------------------------------------------------- samples of the fit


def _drawn(law: Law, settings: FitSettings, n: int, rng: np.random.Generator) -> tuple[Law, float]:
    """The fit to one sample, and how far the sample is from it."""
    counted, beyond = count(law.sample(n, rng=rng), settings)
    check_enough(counted, settings)
    fitted = law_of(climbed(counted, settings, beyond), settings)
    return fitted, band_distance(fitted, counted)


@one_blas_thread()
def bootstrap_fit(
    fit: ParametricFit,
    n_draws: int = 199,
    *,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Draw samples from a fit and fit each, to check the shape.

    Parameters
    ----------
    fit : ParametricFit
        From `lmemtest.tuning.fit`.
    n_draws : int, >= 20
        Samples.
    rng : int, numpy.random.Generator or None
        Source of the samples; results are the same whatever `n_jobs` or `executor` is.
    n_jobs : int
        Processes; -1 for one per processor.
    executor : object with a ``map``, optional
        What computes instead, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    Answer
        ``to_frame()`` has the parameters of every fitted sample: ``best``, ``worst``, ``hyperparameters``, ``noise``;
        ``to_frame("spread")`` each parameter's estimate with the median and the low and high end of those of the
        samples. `p_value`: share of samples that leave a band around *their* fit by as much as the scores leave theirs;
        small values say that the scores do not have the shape. `problems`: reasons against trusting the fit, its own
        and that one; `trusted`: whether there is none. `fit`, `laws` (those of the samples), `failed` (samples without
        a fit).

    Raises
    ------
    ArgumentError
        If `fit` is not such a fit.
    EstimationError
        If fewer than 20 samples could be fitted.

    Notes
    -----
    The check compares the scores with an exact band around the fitted distribution function. As the parameters were
    estimated, the fit follows the scores more closely than the truth does; the samples, fitted in the same way, show
    by how much (Lilliefors 1967). For intervals use those of the fit: percentiles of samples are biased here (they held
    the median of the best of ten in 81 to 83 % of 120 simulated samples at a nominal 90 %).

    References
    ----------
    Lilliefors (1967), doi:10.1080/01621459.1967.10482916; Stute, González Manteiga & Presedo Quindimil (1993),
    Bootstrap based goodness-of-fit-tests, doi:10.1007/BF02613687.

    Examples
    --------
    >>> from lmemtest import tuning
    >>> found = tuning.fit(tuning.QuadraticDistribution(0.0, 1.0, 2).sample(60, rng=1), direction="maximize")
    >>> boot = bootstrap_fit(found, 39, rng=1)
    >>> boot.to_frame().columns.tolist(), boot.trusted
    (['best', 'worst', 'hyperparameters', 'noise'], True)
    """
    if not isinstance(fit, ParametricFit):
        raise ArgumentError(f"fit must be the result of tuning.fit, got {type(fit).__name__}.")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=FEWEST_DRAWS)
    if fit.is_point_mass:
        raise ArgumentError(f"fit is a point mass, and so are its samples: {' '.join(fit.problems)}")
    task = partial(_drawn, fit.distribution, fit.settings, fit.n_scores)
    results = replicate(task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Bootstrap")
    good = [result for result in results if not isinstance(result, Failure)]
    if len(good) < FEWEST_DRAWS:
        reason = next(result.reason for result in results if isinstance(result, Failure))
        raise EstimationError(f"{len(good)} of {n_draws} samples could be fitted, too few. {reason}")
    observed = band_distance(fit.distribution, fit.counted)
    p_value = p_of_draws(sum(distance <= observed for _, distance in good), len(good))
    laws, problems = tuple(law for law, _ in good), fit.problems
    if below(p_value, MISFIT) and not below(fit.p_band, MISFIT):
        shape = "The scores do not have this shape: samples of the fit follow their own fits better"
        problems = (f"{shape} ({p_text(p_value)}).", *problems)
    if problems:
        finding = f"Do not trust this fit: {' '.join(problems)}"
    else:
        follow = f"The scores follow the fit as samples of it follow theirs ({p_text(p_value)})"
        finding = f"{follow}, and nothing else speaks against it."
    samples, level = pd.DataFrame([parameters(law) for law in laws]), fit.settings.level
    draws = samples[[estimate.name for estimate in fit.estimates]]
    estimates = np.array([estimate.value for estimate in fit.estimates])
    low, high = drawn_interval(draws.to_numpy(dtype=float), estimates, "percentile", level)
    columns = {"parameter": list(draws), "estimate": estimates}
    spread = pd.DataFrame({**columns, "median": draws.median().to_numpy(), "low": low, "high": high})
    failed = n_draws - len(good)
    more = f"; {failed:,} more could not be fitted" if failed else ""
    return Answer(
        question="tuning.bootstrap_fit",
        title="Parametric bootstrap of a tuning distribution",
        tables={"samples": samples, "spread": spread},
        values={
            "fit": fit,
            "laws": laws,
            "p_value": p_value,
            "failed": failed,
            "problems": problems,
            "trusted": not problems,
        },
        facts=(
            f"{len(laws):,} samples of {fit.n_scores} scores drawn from the fit and fitted again{more}. low and high "
            f"hold {percent(level)} of their estimates; they show the spread and are not confidence intervals.",
        ),
        findings=(finding,),
        printed=spread,
        formats=dict.fromkeys(("estimate", "median", "low", "high"), format_number),
    )
