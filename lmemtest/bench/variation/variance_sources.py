"""Where the variation of the scores comes from: algorithms, families, benchmarks, seeds, runs, budgets.

A score is the mean of its run over the budgets plus the run's curve about this mean. The means of the runs follow the
recommended mixed model with one variance per source,

    algorithm + benchmark + benchmark:algorithm + instance + instance:algorithm + instance:seed + run,

an instance being a benchmark at one level of the metafeatures, with family + family:algorithm in front where families
of benchmarks are the sample; the curves follow the same model of the budget's effects. Algorithms, metafeatures and
budgets are what the study is about and no sample, so their means are fixed and their variance is that of the true
means, the error of the estimated ones taken off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.power.components import Pilot, VarianceComponents
from lmemtest.bench.variation.run_layout import (
    ALGORITHM,
    BENCHMARK,
    CONDITION,
    EVERYTHING,
    RunLayout,
    layout_of,
)
from lmemtest.bench.variation.source_words import curve_words, source_words
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, in_tie_order
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import joined, percent
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import noncentrality_interval
from lmemtest.lmm.intervals.balanced import BalancedModel, Factors, Stratum
from lmemtest.lmm.intervals.variances import Combinations
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.means.joint import f_test
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.model import LmmFit

KINDS = (
    *("algorithm", "condition", "family", "family_interaction", "benchmark", "interaction"),
    *("seed", "run", "budget", "residual"),
)
_ALL: Factors = frozenset()
_FIXED: tuple[Factors, ...] = (
    frozenset({ALGORITHM}),
    frozenset({CONDITION}),
    frozenset({ALGORITHM, CONDITION}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of variation.

    Attributes
    ----------
    name, kind, meaning : str
        Columns whose groups differ, one of `KINDS`, and what it is in words.
    variance, share : float
        Its part of the variance of a score, also as a share of the sum of all parts.
    ci_low, ci_high : float
        Interval of the standard deviation; NaN for budgets.
    """

    name: str
    kind: str
    meaning: str
    variance: float
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    share: float = float("nan")

    @property
    def sd(self) -> float:
        """Square root of the variance."""
        return float(np.sqrt(self.variance))


@result
class VarianceSources(Result):
    """Variance of the scores by source.

    Attributes
    ----------
    sources : tuple of Source
        Those of the means of the runs from coarse to fine, then those of the budgets.
    level : float
        Level of each interval.
    balanced : bool
        Whether the numbers come from mean squares; else from a fit to the runs.
    n_algorithms, n_benchmarks, n_conditions, n_budgets : int
        Size of the study; conditions are the combinations of metafeature levels that benchmarks go through.
    n_seeds : float
        Runs of an algorithm at one instance (the harmonic mean where their number differs).
    n_families : int or None
        Families of benchmarks, where these are the sample.
    n_places : int or None
        Benchmarks, counted once for each of the families that they are in.
    score : str
        The scale.
    notes : tuple of str
        What a reader must know.
    """

    figure = "variance_sources_plot"
    parts = {"sources": "_frame"}
    formats = {"share": percent}

    sources: tuple[Source, ...]
    level: float
    balanced: bool
    n_algorithms: int
    n_benchmarks: int
    n_conditions: int
    n_budgets: int
    n_seeds: float
    score: str
    n_families: int | None = None
    n_places: int | None = None
    notes: tuple[str, ...] = ()

    def variance(self, kind: str) -> float:
        """Sum of the variances of a kind of source, 0 if there is none.

        Parameters
        ----------
        kind : str
            One of "algorithm", "condition", "family", "family_interaction", "benchmark", "interaction", "seed", "run",
            "budget", "residual".
        """
        check_choice(kind, "kind", KINDS)
        return float(sum(source.variance for source in self.sources if source.kind == kind))

    def components(self) -> VarianceComponents:
        """Components for planning a study like this one: see `power` and `plan`.

        Returns
        -------
        VarianceComponents
            With the size of this study as the pilot's.

        Raises
        ------
        ArgumentError
            If there are several conditions or budgets, or one run of each algorithm on each benchmark.
        """
        if self.n_conditions > 1 or self.n_budgets > 1:
            raise ArgumentError(
                "a study is planned at one budget and one level of each metafeature: keep one of each, one = "
                "runs.filter(...), and take variance_sources(one)."
            )
        if not any(source.kind == "interaction" for source in self.sources):
            raise ArgumentError(
                "with one run of each algorithm on each benchmark, the runs do not say how much an algorithm's "
                "advantage differs between benchmarks. Repeat runs with other seeds, or plan with "
                "VarianceComponents(...)."
            )
        kinds = {"interaction_sd": "interaction", "residual_sd": "run", "seed_sd": "seed", "benchmark_sd": "benchmark"}
        if any(source.kind == "family_interaction" for source in self.sources):
            kinds |= {"family_interaction_sd": "family_interaction", "family_sd": "family"}
        return VarianceComponents(
            **{name: self.variance(kind) ** 0.5 for name, kind in kinds.items()},
            pilot=Pilot(
                n_algorithms=self.n_algorithms,
                n_benchmarks=self.n_places or self.n_benchmarks,
                n_seeds=self.n_seeds,
                n_families=self.n_families,
            ),
        )

    def sentences(self) -> tuple[str, ...]:
        """What matters most, and what the algorithms account for."""
        first, second, *others = in_tie_order(self.sources, lambda source: source.share, descending=True)
        text = (
            f"The largest part of the variation of {self.score} is {{}}{first.name} ({percent(first.share)}): "
            f"{first.meaning}; then {second.name} ({percent(second.share)})."
        )
        open_ = [source.name for source in (second, *others) if self._may_exceed(source, first)]
        found = [text.format("estimated to be " if open_ else "")]
        if open_:
            found.append(f"By the {percent(self.level)} intervals {joined(open_)} cannot be excluded as the largest.")
        algorithm = next(source for source in self.sources if source.kind == "algorithm")
        if algorithm not in (first, second):
            found.append(f"The means of the algorithms account for {percent(algorithm.share)}.")
        between = [source for source in self.sources if source.kind == "family_interaction"]
        advantages = self.variance("family_interaction") + self.variance("interaction")
        if between and self.variance("interaction") > 0.0:
            share, names = percent(self.variance("family_interaction") / advantages), joined([s.name for s in between])
            found.append(f"Of the variance of the advantages, an estimated {share} lies between families ({names}).")
        return tuple(found)

    def _may_exceed(self, source: Source, first: Source) -> bool:
        """Whether the interval of its variance over the first one reaches 1; so it does where one is not known."""
        both = np.array([[one.variance, one.ci_low**2, one.ci_high**2] for one in (source, first)])
        if not np.isfinite(both).all():
            return source.variance > 0.0
        return not below(Combinations(*both.T).ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))[1], 1.0)

    def _frame(self) -> pd.DataFrame:
        """One row per source: source, kind, meaning, variance, share, sd, ci_low, ci_high (of the SD)."""
        rows = [(s.name, s.kind, s.meaning, s.variance, s.share, s.sd, s.ci_low, s.ci_high) for s in self.sources]
        names = ["source", "kind", "meaning", "variance", "share", "sd", "ci_low", "ci_high"]
        return pd.DataFrame(rows, columns=names)

    @property
    def title(self) -> str:
        return "Where the variation comes from"

    @property
    def facts(self) -> tuple[str, ...]:
        sample = "families, benchmarks, seeds, runs" if self.n_families else "benchmarks, seeds, runs"
        return (
            f"REML estimates for {self.score}. Each sd has its own {100 * self.level:.4g} % interval: of what is a "
            f"sample ({sample}) from the profile of the restricted likelihood, of fixed means "
            "(algorithms, metafeatures) from the noncentral F distribution.",
        )

    def shown(self) -> pd.DataFrame:
        return self._frame()[["source", "meaning", "share", "sd", "ci_low", "ci_high"]]


@one_blas_thread()
def variance_sources(runs: Runs, *, level: float = 0.95) -> VarianceSources:
    """Take the variation of the scores apart by its sources.

    Parameters
    ----------
    runs : Runs
        With at least two benchmarks. Several budgets need a seed column, and every run at the same budgets. Families
        of benchmarks are sources of their own, with their advantages, from five of them on.
    level : float in (0, 1)
        Level of each interval.

    Returns
    -------
    VarianceSources
        ``to_frame()`` has source, kind, meaning, variance, share, sd, ci_low, ci_high; ``sentences()`` the answer.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, has no benchmark column or a single benchmark.
    DataError
        If runs were scored at different budgets, several budgets cannot be linked to runs, or scores never differ.

    Notes
    -----
    Where the table is balanced the restricted likelihood depends on mean squares alone, and estimates and profiles
    are computed from these; elsewhere the model is fitted to the runs and profiled by `LmmFit.profile`, which gives
    the same numbers and takes longer.

    The variance of fixed means is that of the true means: with algorithms m_1, ..., m_k the sum of
    ``(m_i - mean)^2 / (k - 1)`` over the estimated means, minus the average variance of their errors, or zero where
    that is negative. Its interval inverts the noncentral F distribution of the F ratio, with the error variance at its
    estimate. A random term for the algorithms has the same estimate in a balanced table, but its interval is about
    algorithms that were not run, of which a handful says next to nothing.

    Scores of one run at several budgets depend on each other, so the sources of their curve have no intervals.

    References
    ----------
    Searle, Casella & McCulloch (1992), doi:10.1002/9780470316856; Cornfield & Tukey (1956) on fixed means,
    doi:10.1214/aoms/1177728067; Steiger (2004), doi:10.1037/1082-989X.9.2.164

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.variation.variance_sources import variance_sources
    >>> found = variance_sources(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> found.to_frame()[["source", "sd", "ci_low", "ci_high"]].round(4)
                    source      sd  ci_low  ci_high
    0            algorithm  0.0028  0.0021   0.0035
    1            benchmark  0.2088  0.1566   0.2979
    2  benchmark:algorithm  0.0026  0.0022   0.0032
    3       benchmark:seed  0.0027  0.0023   0.0031
    4                  run  0.0068  0.0066   0.0070
    """
    level = check_fraction(level, "level")
    layout = layout_of(runs, task="the variation is taken apart", families=True)
    found = run_components(layout, level=level)
    sources = [
        *(_source(layout, m.factors, max(m.signal, 0.0), m.sd_limits(level)) for m in found.fixed),
        *(_source(layout, factors, v, found.limits[factors]) for factors, v in found.variances.items()),
    ]
    notes = []
    lost = [layout.label(means.factors) for means in found.fixed if means.signal < 0]
    if lost:
        notes.append(
            f"The means of {' and of '.join(lost)} differ no more than their standard errors would produce, so their "
            "variance is estimated as zero. This does not show that they are equal."
        )
    zero = [layout.label(factors) for factors, v in found.variances.items() if v == 0]
    if zero:
        notes.append(f"Estimated as zero: {', '.join(zero)}. The upper ends of the intervals say how large it may be.")
    if layout.n_budgets > 1:
        curves, note = _of_curves(layout, str(runs.budget))
        sources, notes = [*sources, *curves], [*notes, note]
    total = sum(source.variance for source in sources)
    return VarianceSources(
        sources=tuple(replace(source, share=source.variance / total) for source in sources),
        level=level,
        balanced=layout.strata is not None,
        **layout.sizes,
        n_conditions=layout.n_conditions,
        n_budgets=layout.n_budgets,
        n_families=layout.n_families,
        n_places=layout.n_places,
        score=runs.score,
        notes=(*layout.notes, *notes),
    )


# ---------------------------------------------------------------------- means of runs


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedMeans:
    """Variance of the true means of fixed levels (may be negative), mean variance of their errors, and their F-test."""

    factors: Factors
    signal: float
    noise: float
    f_ratio: float
    df: float
    error_df: float

    def ratio_limits(self, level: float) -> tuple[float, float]:
        """Interval of signal over noise."""
        low, high = noncentrality_interval(self.f_ratio, self.df, self.error_df, level, positive=False)
        return low / self.df, high / self.df

    def sd_limits(self, level: float) -> tuple[float, float]:
        """Interval of the standard deviation of the true means."""
        low, high = (float(np.sqrt(self.noise * limit)) for limit in self.ratio_limits(level))
        return low, high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunComponents:
    """Variances of the random terms, the run last; intervals of their standard deviations; fixed means."""

    variances: dict[Factors, float]
    limits: dict[Factors, tuple[float, float]]
    fixed: tuple[FixedMeans, ...]


def run_components(layout: RunLayout, *, level: float | None) -> RunComponents:
    """Variances of the model of the runs, with intervals unless `level` is None."""
    return _from_fit(layout, level) if layout.strata is None else _from_mean_squares(layout, layout.strata, level)


def _from_mean_squares(
    layout: RunLayout, strata: dict[Factors, Stratum], level: float | None, means: tuple[Factors, ...] = _FIXED
) -> RunComponents:
    random = [stratum for factors, stratum in strata.items() if factors & {BENCHMARK, *layout.families}]
    model = BalancedModel.of(random, layout.terms, strata)
    values = model.estimate()
    expected = model.expected(values)
    fixed = []
    for factors in means:
        if factors in strata:
            error = strata.get(factors | {(*layout.families, BENCHMARK)[0]}, strata[EVERYTHING])
            here, noise = strata[factors], expected[error.factors]
            fixed.append(
                FixedMeans(
                    factors=factors,
                    signal=(here.mean_square - noise) / here.rows,
                    noise=noise / here.rows,
                    f_ratio=here.mean_square / error.mean_square if error.mean_square > 0 else np.inf,
                    df=float(here.df),
                    error_df=float(error.df),
                )
            )
    limits = {} if level is None else {t: model.interval(i, level) for i, t in enumerate(layout.terms)}
    variances = dict(zip(layout.terms, values.tolist(), strict=True))
    return RunComponents(variances=variances, limits=limits, fixed=tuple(fixed))


def _from_fit(layout: RunLayout, level: float | None) -> RunComponents:
    groups = [":".join(sorted(factors)) for factors in layout.terms[:-1]]
    fixed = f"{ALGORITHM} * {CONDITION}" if CONDITION in layout.columns else ALGORITHM
    fit = fit_lmm(" + ".join([f"score ~ {fixed}", *(f"(1 | {group})" for group in groups)]), layout.frame)
    values = [*(float(S[0, 0]) for S in fit.covariances), fit.scale]
    limits = {}
    if level is not None:
        table = fit.profile([*groups, "residual sd"], level=level, reml=True).table
        ends = zip(table["ci_low"].tolist(), table["ci_high"].tolist(), strict=True)
        limits = dict(zip(layout.terms, ends, strict=True))
    variances = dict(zip(layout.terms, values, strict=True))
    return RunComponents(variances=variances, limits=limits, fixed=tuple(_fixed_of_fit(fit, layout)))


def _fixed_of_fit(fit: LmmFit, layout: RunLayout) -> Iterator[FixedMeans]:
    roles = [role for role in (ALGORITHM, CONDITION) if role in layout.columns]
    means = emmeans(fit, roles)
    if np.isnan(means.estimate).any():
        lost = means.frame[np.isnan(means.estimate)].iloc[0]
        algorithm, condition = (layout.label(frozenset({role})) for role in roles)
        raise DataError(
            f"{algorithm} {lost[ALGORITHM]!r} was never run at {condition} {lost[CONDITION]!r}, so means over "
            f"{condition} do not compare. Leave one of them out: runs.filter(...)."
        )
    V = means.L @ means.V @ means.L.T
    sizes = {role: means.frame[role].nunique() for role in roles}
    for factors in _FIXED:
        if not factors <= set(roles):
            continue
        P = np.ones((1, 1))
        for role, k in sizes.items():
            P = np.kron(P, np.eye(k) - 1.0 / k if role in factors else np.full((k, k), 1.0 / k))
        df = float(np.prod([sizes[role] - 1 for role in factors]))
        rows = float(np.prod([sizes[role] for role in roles if role not in factors])) * df
        vectors = np.linalg.eigh(P)[1][:, -round(df) :]
        test = f_test(fit, vectors.T @ means.fixed)
        noise = float(np.trace(P @ V)) / rows
        signal = float(means.estimate @ P @ means.estimate) / rows - noise
        yield FixedMeans(factors=factors, signal=signal, noise=noise, f_ratio=test.f_ratio, df=df, error_df=test.df_den)


def _source(layout: RunLayout, factors: Factors, variance: float, limits: tuple[float, float]) -> Source:
    kind, meaning = source_words(layout, factors)
    low, high = limits
    return Source(name=layout.label(factors), kind=kind, meaning=meaning, variance=variance, ci_low=low, ci_high=high)


# ---------------------------------------------------------------------- curves over the budget


def _of_curves(layout: RunLayout, budget: str) -> tuple[list[Source], str]:
    """Variances of the budget's effects; budgets are fixed, so an effect's part of a score is (r - 1) / r of it."""
    if layout.curve_strata is None:
        variance = float((layout.curves**2).mean())
        source = Source(name=budget, kind="budget", meaning="the curves of the runs over the budget", variance=variance)
        return [source], "The table is not balanced, so the curves of the runs over the budget are not taken apart."
    found = _from_mean_squares(layout, layout.curve_strata, None, (_ALL, *_FIXED))
    variances = {means.factors: max(means.signal, 0.0) for means in found.fixed} | found.variances
    sources = []
    for factors, variance in variances.items():
        rest = factors == EVERYTHING
        sources.append(
            Source(
                name="residual" if rest else ":".join(filter(None, [layout.label(factors), budget])),
                kind="residual" if rest else "budget",
                meaning=curve_words(layout, factors),
                variance=variance * (layout.n_budgets - 1) / layout.n_budgets,
            )
        )
    return sources, (
        f"Scores of one run at several levels of {budget} depend on each other, so the sources of its curve have no "
        "intervals."
    )
