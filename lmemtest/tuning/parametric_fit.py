"""Fits of the quadratic and the noisy quadratic distribution to random-search scores, and whether to trust them.

What such a fit says that scores alone do not: the best score that the search space holds, how many hyperparameters
matter, how large the noise of a score is, and the tuning curve beyond the number of scores. All of it is
extrapolation, so every fit comes with intervals, with a check of its shape, and with a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_k, check_scores
from lmemtest.tuning._fit_setting import LARGEST_C, Counted, Setting, check_enough, count, make_setting
from lmemtest.tuning._profile import Family, allowance
from lmemtest.tuning._spacings import Box, Spacings, distinct, rounding_of, spacings, within
from lmemtest.tuning.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.order_statistics import crossing_probability, equal_tailed_intervals
from lmemtest.tuning.quadratic import Number, QuadraticDistribution, best_above, best_below
from lmemtest.words import format_number

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest._table import ResultTable

FloatArray = NDArray[np.float64]
Law = QuadraticDistribution | NoisyQuadraticDistribution

FEW_SCORES = 20
MANY_TIES = 0.1  # share of the exact scores that repeat another one
MISFIT = 0.05
_CERTAIN = 1e-12  # of a band level: n times it is an upper bound for the probability, and settles the matter


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A parameter with its interval.

    Attributes
    ----------
    name : {"best", "worst", "hyperparameters", "noise"}
        Best and worst expected score, effective number of hyperparameters, standard deviation of the noise.
    value, low, high : float
        Estimate and interval; an end is infinite where the scores do not limit the parameter.
    fixed : bool
        Whether a constraint gave the value.
    """

    name: str
    value: float
    low: float
    high: float
    fixed: bool = False


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class FittedCurve(Tabular):
    """A tuning curve of a fit with intervals.

    Attributes
    ----------
    fit : ParametricFit
        Where it comes from.
    q : float
        Quantile of the best of k scores: the best is at most the curve with probability q.
    k, estimate, ci_low, ci_high : (m,) float
        Trials, the curve there, and its interval, each k by itself; an end is infinite where the scores give none.
    """

    fit: ParametricFit
    q: float
    k: FloatArray
    estimate: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """One row per k: ``k``, ``estimate``, ``ci_low``, ``ci_high``."""
        import pandas as pd

        return pd.DataFrame({"k": self.k, "estimate": self.estimate, "ci_low": self.ci_low, "ci_high": self.ci_high})

    def to_table(self) -> ResultTable:
        """The curve as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        best = "highest" if self.fit.setting.direction == "maximize" else "lowest"
        notes = (
            f"{written(100 * self.q, '.4g')} % quantile of the {best} of k scores under the fitted law; "
            f"{100 * self.fit.setting.confidence:.4g} % intervals, each k by itself. Beyond k = {self.fit.n} it is an "
            "extrapolation.",
            self.fit.sentence,
        )
        formats = dict.fromkeys(("k", "estimate", "ci_low", "ci_high"), format_number)
        return ResultTable("Parametric tuning curve", self.to_frame(), notes, formats)


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class ParametricFit(Tabular):
    """A parametric tuning distribution fitted to scores.

    Attributes
    ----------
    distribution : QuadraticDistribution or NoisyQuadraticDistribution
        The fitted law.
    scores : (n_exact,) float
        Scores between the limits, sorted.
    n, n_below, n_above : int
        All scores; those only counted at or below the lower limit, and at or above the upper one.
    estimates : tuple of Estimate
        Best and worst expected score, hyperparameters and, where fitted, noise.
    objective : float
        Logarithm of the product of spacings at the fit.
    by_c : tuple of (int, float)
        Its largest value for each number of hyperparameters that was tried.
    p_band : float
        Probability that n scores leave an exact band around the fitted distribution function that is as wide as the
        one these scores just leave, had its parameters been known. As they were estimated, it is too large: small
        values condemn the shape, large ones do not confirm it (see `bootstrap`).
    setting : Setting
        Direction, limits, constraints, confidence.
    problems : tuple of str
        Reasons against trusting the fit, as sentences.
    notes : tuple of str
        What a reader must know.
    """

    distribution: Law
    scores: FloatArray
    n: int
    n_below: int
    n_above: int
    estimates: tuple[Estimate, ...]
    objective: float
    by_c: tuple[tuple[int, float], ...]
    p_band: float
    setting: Setting
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the fit."""
        return not self.problems

    @property
    def is_point_mass(self) -> bool:
        """Whether all scores are the same, so that the fit is that value and nothing more."""
        return len(self.scores) == self.n and len(distinct(self.scores)[0]) == 1

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
        return self.distribution.quantile_curve(k, q=q, direction=self.setting.direction)

    def curve(self, k: ArrayLike, *, q: float = 0.5) -> FittedCurve:
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
        FittedCurve
            ``to_frame()`` has k, estimate, ci_low, ci_high.
        """
        at, q = check_k(k), check_fraction(q, "q")
        estimate = np.asarray(self.quantile_curve(at, q=q))
        if self.is_point_mass:
            unknown = np.full(len(at), math.inf)
            return FittedCurve(fit=self, q=q, k=at, estimate=estimate, ci_low=-unknown, ci_high=unknown)
        family = climbed(self.counted, self.setting)
        floor = self.objective - allowance(self.setting.confidence)
        minimize = self.setting.direction == "minimize"
        # the probability of a single score better than the best of k is at that quantile
        shares = best_below(q, at) if minimize else best_above(q, at)
        found = np.array([family.quantile_interval(float(p), floor) for p in shares])
        low, high = (found[:, 0], found[:, 1]) if minimize else (-found[:, 1], -found[:, 0])
        return FittedCurve(fit=self, q=q, k=at, estimate=estimate, ci_low=low, ci_high=high)

    @property
    def counted(self) -> Counted:
        """The scores as the fit saw them."""
        return Counted(self.scores, self.n_below, self.n_above)

    def mean_curve(self, k: ArrayLike) -> Number:
        """Expected best of `k` scores under the fitted law."""
        return self.distribution.mean_curve(k, direction=self.setting.direction)

    @property
    def sentence(self) -> str:
        """What the fit says and whether it can be trusted, in plain words."""
        percent = f"{100 * self.setting.confidence:.4g} %"
        said = [f"Asymptotic best score {_with_interval(self.best, percent)}"]
        c = self.hyperparameters
        said.append(f"{written(c.value, '.0f')} effective hyperparameter{'s' if c.value != 1 else ''} ({_whole(c)})")
        if len(self.estimates) > 3:
            said.append(f"noise {_with_interval(self.estimates[3], percent)}")
        verdict = (
            "Nothing in these scores speaks against the fit."
            if self.trusted
            else f"Do not trust this fit: {' '.join(self.problems)}"
        )
        return f"{', '.join(said)}. {verdict}"

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter: ``parameter``, ``estimate``, ``ci_low``, ``ci_high``, ``fixed``."""
        import pandas as pd

        return pd.DataFrame(
            {
                "parameter": [e.name for e in self.estimates],
                "estimate": [e.value for e in self.estimates],
                "ci_low": [e.low for e in self.estimates],
                "ci_high": [e.high for e in self.estimates],
                "fixed": [e.fixed for e in self.estimates],
            }
        )

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        formats = dict.fromkeys(("estimate", "ci_low", "ci_high"), format_number)
        return ResultTable(self._title, self.to_frame(), (self.sentence, *self.notes), formats)

    @property
    def _title(self) -> str:
        kind = "Noisy quadratic" if len(self.estimates) > 3 else "Quadratic"
        counted = [f"{m} only counted {where}" for m, where in ((self.n_below, "below"), (self.n_above, "above")) if m]
        beside = f" ({', '.join(counted)})" if counted else ""
        return f"{kind} tuning distribution, {self.setting.direction}, n = {self.n}{beside}"


@one_blas_thread()
def fit_quadratic(
    scores: ArrayLike,
    *,
    direction: str,
    limits: tuple[float | None, float | None] | None = None,
    constraints: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
) -> ParametricFit:
    """Fit the quadratic distribution: random search on a smooth function without noise.

    Parameters
    ----------
    scores : (n,) float
        Scores of independent random configurations. With limits, infinite scores are counted.
    direction : {"minimize", "maximize"}
        Which scores are better. Minimizing fits the convex shape, maximizing the concave one.
    limits : (float or None, float or None), optional
        Scores at or below the first and at or above the second are only counted (censored). The shape holds near the
        best score; a limit on the bad side keeps the bad scores from bending the fit.
    constraints : mapping, optional
        For "a", "b" (lower and upper end) or "c": a number, or a (low, high) pair. By default c is 1 to 10.
    confidence : float in (0, 1)
        Of each interval.

    Returns
    -------
    ParametricFit
        ``to_frame()`` has parameter, estimate, ci_low, ci_high; ``sentence`` says whether to trust it.

    Raises
    ------
    DataError
        If scores are missing, infinite without a limit, or fewer than five different ones lie between the limits.
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

    References
    ----------
    Cheng & Amin (1983), Estimating parameters in continuous univariate distributions with a shifted origin,
    doi:10.1111/j.2517-6161.1983.tb01268.x; Ranneby (1984), The maximum spacing method, Scand. J. Statist. 11, 93-112;
    Lourie, He & Cho (2025), Hyperparameter loss surfaces are simple near their optima, COLM 2025,
    arXiv:2510.02721.

    Examples
    --------
    >>> import numpy as np
    >>> from lmemtest.tuning.quadratic import QuadraticDistribution
    >>> law = QuadraticDistribution(0.5, 0.9, 2)  # accuracies: at most 0.9, two hyperparameters matter
    >>> fit = fit_quadratic(law.ppf((np.arange(100) + 0.5) / 100), direction="maximize")
    >>> fit.hyperparameters.value, round(fit.best.value, 3)
    (2.0, 0.902)
    >>> fit.best.low < 0.9 < fit.best.high
    True
    """
    setting = make_setting(direction, limits, constraints, confidence, noisy=False)
    return _fitted(check_scores(scores), setting, "a quadratic")


@one_blas_thread()
def fit_noisy_quadratic(
    scores: ArrayLike,
    *,
    direction: str,
    limits: tuple[float | None, float | None] | None = None,
    constraints: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
) -> ParametricFit:
    """Fit the noisy quadratic distribution: random search on a smooth function with normal noise.

    Parameters
    ----------
    scores : (n,) float
        Scores of independent random configurations. With limits, infinite scores are counted.
    direction : {"minimize", "maximize"}
        Which scores are better. Minimizing fits the convex shape, maximizing the concave one.
    limits : (float or None, float or None), optional
        Scores at or below the first and at or above the second are only counted (censored).
    constraints : mapping, optional
        For "a", "b" (ends of the expected scores), "c" or "o" (noise): a number, or a (low, high) pair. By default c
        is 1 to 10. Knowing the noise, from one configuration trained several times, or the number of
        hyperparameters of the search, narrows the intervals of everything else.
    confidence : float in (0, 1)
        Of each interval.

    Returns
    -------
    ParametricFit
        ``to_frame()`` has parameter, estimate, ci_low, ci_high; ``sentence`` says whether to trust it.

    Raises
    ------
    DataError
        If scores are missing, infinite without a limit, or fewer than six different ones lie between the limits.
    ArgumentError
        If an option is wrong or the constraints exclude the scores.

    Notes
    -----
    See `fit_quadratic` for the method. The noise, the number of hyperparameters and the asymptotic best score can
    replace each other: with 50 scores and noise of a tenth of the range, most numbers of hyperparameters fit. The
    intervals are over all of them.

    References
    ----------
    As for `fit_quadratic`.

    Examples
    --------
    >>> import numpy as np
    >>> from lmemtest.tuning.noisy_quadratic import NoisyQuadraticDistribution
    >>> law = NoisyQuadraticDistribution(0.1, 0.6, 1, 0.03, convex=True)  # losses of at least 0.1
    >>> fit = fit_noisy_quadratic(law.ppf((np.arange(100) + 0.5) / 100), direction="minimize")
    >>> fit.hyperparameters.value, round(fit.best.value, 2), round(fit.distribution.o, 2)
    (1.0, 0.1, 0.03)
    """
    setting = make_setting(direction, limits, constraints, confidence, noisy=True)
    return _fitted(check_scores(scores), setting, "a noisy quadratic")


# ---------------------------------------------------------------------- fitting


def family_of(counted: Counted, setting: Setting) -> Family:
    """The model for scores turned so that smaller is better."""
    if setting.direction == "minimize":
        data = spacings(counted.exact, setting.lower, counted.below, setting.upper, counted.above)
        ends, beyond = (setting.a, setting.b), counted.beyond
    else:
        data = spacings(-counted.exact[::-1], -setting.upper, counted.above, -setting.lower, counted.below)
        ends, beyond = (_turned(setting.b), _turned(setting.a)), counted.beyond[::-1]
    return Family(_between(data, *ends, beyond, setting), *ends, setting.o, setting.c)


def _between(data: Spacings, a: Box, b: Box, beyond: tuple[bool, bool], setting: Setting) -> Spacings:
    """The buckets that are left between the farthest ends that the constraints allow to a law without noise."""
    if setting.o[1] > 0.0:
        return data
    near = rounding_of(data.edges)
    low, high = float(data.edges[0]), float(data.edges[-1])
    if low < a[0] - near or high > b[1] + near or (beyond[0] and low <= a[0]) or (beyond[1] and high >= b[1]):
        ends, first, last = (a, b), low, high
        if setting.direction == "maximize":
            ends, first, last = (_turned(b), _turned(a)), -high, -low
        less, more = beyond if setting.direction == "minimize" else beyond[::-1]
        raise ArgumentError(
            f"constraints exclude the scores: they go from {'below ' * less}{first:g} to {'above ' * more}{last:g}, "
            f"and without noise all must lie between a and b, got a in {ends[0]} and b in {ends[1]}. Widen the "
            "constraint, or use fit_noisy_quadratic."
        )
    return within(data, a[0], b[1])


def _turned(box: Box) -> Box:
    return -box[1], -box[0]


def law_of(family: Family, setting: Setting) -> Law:
    """The distribution at the highest peak of a family."""
    c = family.best
    a, b, o = family.peaks[c].at
    convex = setting.direction == "minimize"
    ends = (a, b) if convex else (-b, -a)
    if setting.o[1] > 0.0:
        return NoisyQuadraticDistribution(*ends, float(c), o, convex)
    return QuadraticDistribution(*ends, float(c), convex)


def climbed(counted: Counted, setting: Setting) -> Family:
    """A family with its peaks."""
    family = family_of(counted, setting)
    family.climb_all()
    if not any(math.isfinite(peak.value) for peak in family.peaks.values()):
        raise ArgumentError(
            f"constraints leave no law for the scores: a in {setting.a}, b in {setting.b}, noise in {setting.o}, c in "
            f"{setting.c[0]} to {setting.c[-1]}. Widen them."
        )
    return family


def _fitted(scores: FloatArray, setting: Setting, kind: str) -> ParametricFit:
    counted = count(scores, setting)
    if len(counted.exact) == counted.n > 1 and len(distinct(counted.exact)[0]) == 1:
        return _point_mass(counted, setting)
    check_enough(counted, kind)
    family = climbed(counted, setting)
    law, top = law_of(family, setting), family.peaks[family.best].value
    estimates = _estimates(family, setting, top)
    p_band = band_probability(law, counted)
    return ParametricFit(
        distribution=law,
        scores=counted.exact,
        n=counted.n,
        n_below=counted.below,
        n_above=counted.above,
        estimates=estimates,
        objective=top,
        by_c=tuple((c, peak.value) for c, peak in family.peaks.items()),
        p_band=p_band,
        setting=setting,
        problems=_problems(estimates, counted, p_band),
        notes=_notes(setting, counted),
    )


def _point_mass(counted: Counted, setting: Setting) -> ParametricFit:
    """The fit to equal scores: one value, and nothing about anything else."""
    value = float(np.median(counted.exact))
    near, noisy = rounding_of(counted.exact), setting.o[1] > 0.0
    if not noisy and not (setting.a[0] - near <= value <= setting.b[1] + near):
        raise ArgumentError(
            f"constraints exclude the scores: all are {format_number(value)}, and without noise they must lie between "
            f"a and b, got a in {setting.a} and b in {setting.b}. Widen the constraint, or use fit_noisy_quadratic."
        )
    convex = setting.direction == "minimize"
    a, b = min(max(value, setting.a[0]), setting.a[1]), max(min(value, setting.b[1]), setting.b[0])
    c, o = setting.c[0], setting.o[0]
    law: Law = (
        NoisyQuadraticDistribution(a, b, float(c), o, convex)
        if noisy
        else QuadraticDistribution(a, b, float(c), convex)
    )
    boxes = ((setting.a, a), (setting.b, b)) if convex else ((setting.b, b), (setting.a, a))
    estimates = [
        Estimate(name=name, value=at, low=box[0], high=box[1], fixed=box[0] == box[1])
        for name, (box, at) in zip(("best", "worst"), boxes, strict=True)
    ]
    fixed = len(setting.c) == 1
    estimates.append(
        Estimate(name="hyperparameters", value=float(c), low=float(c), high=float(setting.c[-1]), fixed=fixed)
    )
    if noisy:
        estimates.append(
            Estimate(name="noise", value=o, low=setting.o[0], high=setting.o[1], fixed=setting.o[0] == setting.o[1])
        )
    return ParametricFit(
        distribution=law,
        scores=counted.exact,
        n=counted.n,
        n_below=0,
        n_above=0,
        estimates=tuple(estimates),
        objective=0.0,
        by_c=tuple((value, 0.0) for value in setting.c),
        p_band=1.0,
        setting=setting,
        problems=(
            f"All {counted.n} scores are {format_number(value)}: a point mass, which determines nothing else. Check "
            "which column was given.",
        ),
        notes=("Intervals are as wide as the constraints.",),
    )


def _estimates(family: Family, setting: Setting, top: float) -> tuple[Estimate, ...]:
    floor = top - allowance(setting.confidence)
    at = family.peaks[family.best].at
    sign = 1.0 if setting.direction == "minimize" else -1.0
    out = []
    for which, name in ((0, "best"), (1, "worst")):
        box = (family.a, family.b)[which]
        ends = sorted(sign * end for end in family.interval(which, floor))
        out.append(Estimate(name=name, value=sign * at[which], low=ends[0], high=ends[1], fixed=box[0] == box[1]))
    whole = family.plausible(floor)
    out.append(
        Estimate(
            name="hyperparameters",
            value=float(family.best),
            low=float(min(whole)),
            high=float(max(whole)),
            fixed=len(setting.c) == 1,
        )
    )
    if family.noisy:
        low, high = family.interval(2, floor)
        fixed = setting.o[0] == setting.o[1]
        out.append(Estimate(name="noise", value=at[2], low=low, high=high, fixed=fixed))
    return tuple(out)


# ---------------------------------------------------------------------- whether to trust it


def band_distance(law: Law, counted: Counted) -> float:
    """Level of the equal-tailed band around the fitted law that the scores just leave: the smaller, the farther.

    The number of scores up to the i-th, ties counted against leaving, is compared with F there by the beta
    distribution of an order statistic.
    """
    exact, n = counted.exact, counted.n
    at_most = counted.below + np.searchsorted(exact, exact, side="right")
    less = counted.below + np.searchsorted(exact, exact, side="left")
    lower, upper = np.asarray(law.cdf(exact)), np.asarray(law.sf(exact))
    inside = (lower > 0.0) & (upper > 0.0)  # a score at the very end of a law, which it cannot reach, was rounded
    at_most, less, lower, upper = (values[inside] for values in (at_most, less, lower, upper))
    early = special.betainc(at_most, n + 1 - at_most, lower)  # the last of the tied scores came this early
    late = special.betainc(n - less, less + 1, upper)  # the first of them this late
    return float(min(1.0, 2.0 * min(early.min(initial=0.5), late.min(initial=0.5))))


def band_probability(law: Law, counted: Counted) -> float:
    """Exact probability that n scores of a known law leave the band of `band_distance`."""
    level = band_distance(law, counted)
    if level < _CERTAIN:
        return counted.n * level
    low, high = equal_tailed_intervals(counted.n, level)
    seen = slice(counted.below, counted.n - counted.above)
    lower, upper = np.zeros(counted.n), np.ones(counted.n)
    lower[seen], upper[seen] = low[seen], high[seen]
    return float(min(1.0, max(0.0, 1.0 - crossing_probability(lower, upper))))


def _problems(estimates: tuple[Estimate, ...], counted: Counted, p_band: float) -> tuple[str, ...]:
    best, _, c = estimates[:3]
    found = []
    if p_band < MISFIT:
        p = "< 0.001" if p_band < 0.001 else f"= {written(p_band, '.3f')}"
        found.append(
            f"The scores do not have this shape: they leave the exact {100 * (1 - MISFIT):g} % band around it (p {p})."
        )
    span = float(counted.exact[-1] - counted.exact[0])
    if not best.fixed and not best.high - best.low <= span:
        found.append("The asymptotic best score is not determined: its interval is wider than the range of the scores.")
    if not c.fixed and c.high == LARGEST_C:
        found.append(
            f"The number of hyperparameters is not limited from above: {LARGEST_C}, the most that is tried, fits too."
        )
    if len(counted.exact) < FEW_SCORES:
        found.append(f"{len(counted.exact)} exact scores are too few to see a wrong shape.")
    repeated = 1.0 - len(distinct(counted.exact)[0]) / len(counted.exact)
    if repeated > MANY_TIES:
        found.append(
            f"{written(100 * repeated, '.0f')} % of the exact scores repeat another one; the law is continuous."
        )
    if len(estimates) > 3 and not estimates[3].value < abs(estimates[0].value - estimates[1].value):
        found.append("The noise is larger than the range of the expected scores: these are normal scores.")
    return tuple(found)


def _notes(setting: Setting, counted: Counted) -> tuple[str, ...]:
    percent = f"{100 * setting.confidence:.4g} %"
    notes = [
        f"Maximum product of spacings; {percent} intervals, one by one, from its profile over c in "
        f"{setting.c[0]} to {setting.c[-1]}."
        if len(setting.c) > 1
        else f"Maximum product of spacings with c = {setting.c[0]}; {percent} intervals, one by one, from its profile."
    ]
    counted_only = counted.below if setting.direction == "minimize" else counted.above
    if counted_only:
        notes.append("The limit hides the best scores, so their shape comes from the others alone.")
    return tuple(notes)


def _with_interval(estimate: Estimate, percent: str) -> str:
    if estimate.fixed:
        return f"{format_number(estimate.value)} (given)"
    return (
        f"{format_number(estimate.value)} ({percent} interval {format_number(estimate.low)} to "
        f"{format_number(estimate.high)})"
    )


def _whole(c: Estimate) -> str:
    if c.fixed:
        return "given"
    return written(c.low, ".0f") if c.low == c.high else f"{written(c.low, '.0f')} to {written(c.high, '.0f')}"
