"""What to expect of each algorithm on each benchmark: the overall difference, moved towards what was seen there.

A difference seen on one benchmark is that benchmark's true difference plus the noise of its runs. The best prediction
of the true one keeps the part that the variances account for:

    shrunken = overall + k (observed - overall),   k = s2_between / (s2_between + s2_runs / n)

in a balanced study; elsewhere fixed effects plus conditional modes. By family the same is said of further benchmarks of
each family: what the benchmarks of a family share, without what is their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.effect_plan import effect_plan, family_columns
from lmemtest.bench.data.per_run import mean_over_budgets
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.variation.run_design import require_benchmarks
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction, resolve_rng
from lmemtest.core.words import counted, listed, p_text, plural
from lmemtest.errors import ArgumentError, DesignError, EstimationError, UnknownColumnError
from lmemtest.lmm.cells import compress
from lmemtest.lmm.diagnostics.influence import influence
from lmemtest.lmm.engine import prediction
from lmemtest.lmm.engine.prediction import theta_slopes
from lmemtest.lmm.formula import parse_formula
from lmemtest.lmm.formula.terms import INTERCEPT
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.hypotheses.glrt import glrt
from lmemtest.lmm.hypotheses.variance_tests import bartlett
from lmemtest.lmm.intervals.random_effects import effect_intervals
from lmemtest.lmm.model import fit_lmm
from lmemtest.lmm.model.fitting import with_terms
from lmemtest.lmm.model.predictions import representatives, shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.engine.criterion import Criterion
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.model import LmmFit


CONTRASTS = ("mean", "pairs")
UNITS = ("benchmark", "instance", "family")
_MOST_WEIGHTS = 200_000_000  # 1.6 GB
_ZERO = 1e-8  # of the residual variance: a variance below it was estimated as zero
_COLUMNS = 512  # that are solved for at once, one for each comparison and parameter
_UNEQUAL = 3.0  # ratio of the noise of two benchmarks from which on a note says so
_SELECT_P = 0.05  # of the test that chooses between one variance of advantages and one per algorithm
# Of the test for unlike noise: where chance chose, the quietest benchmark's interval is far too short.
_UNLIKE_P = 0.01
_FEWEST_DF = 2.0  # of the scatter of a benchmark that is compared with that of others
_LEAST_DF = 2.0  # of a shrunken difference that was observed; see the page of benchmark effects
_CONSTANT = 1e-12  # of the largest sum of squares: below it scores are constant


@result
class BenchmarkEffects(Result):
    """Differences between algorithms on each benchmark, as a mixed model predicts them.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per benchmark and comparison: ``benchmark`` (or instance; ``family`` by family), ``algorithm``,
        ``versus`` ("mean", or the other algorithm), ``n_runs``, ``observed`` (difference of the means there),
        ``overall`` (of the fixed effects), ``estimate`` (shrunken), ``se`` (of the prediction's error), ``df``,
        ``ci_low``, ``ci_high``, ``extrapolated`` (whether an algorithm of the comparison was not run there, so that the
        model says what to expect of it).
    contrast : {"mean", "pairs"}
        Deviations from the mean of the algorithms, or differences of all pairs.
    by : {"benchmark", "instance", "family"}
    simultaneous : bool
        Whether the intervals of one comparison are simultaneous over the benchmarks, or each on its own.
    alpha : float
        One minus the confidence level.
    between_sd : dict of (str, str) to float
        Comparison (algorithm, versus) to the standard deviation of the true difference between benchmarks (families).
    heterogeneity : Answer or None
        By family: the likelihood-ratio test of the model in which advantages change between benchmarks alone.
    direction : {"minimize", "maximize"}
    fit : LmmFit
        The model.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    contrast: str
    by: str
    simultaneous: bool
    alpha: float
    between_sd: dict[tuple[str, str], float]
    direction: str
    fit: LmmFit
    heterogeneity: Answer | None = None
    notes: tuple[str, ...] = ()

    figure = "benchmark_effects_plot"

    @property
    def comparisons(self) -> tuple[tuple[str, str], ...]:
        """Pairs (algorithm, versus) in the order of the table."""
        return tuple(self.between_sd)

    def sentences(self) -> tuple[str, ...]:
        """How many of the differences are clear, and whether advantages change between families."""
        return (*self._of_intervals(), *self._of_heterogeneity())

    @property
    def _family(self) -> str:
        """Over what the intervals hold together."""
        if not self.simultaneous:
            return "not simultaneous"
        if len(self.comparisons) == 1 or (self.contrast == "mean" and len(self.comparisons) == 2):
            return "simultaneous"
        return f"simultaneous for each {'algorithm' if self.contrast == 'mean' else 'pair'} separately"

    @property
    def unit(self) -> str:
        """The column of the table that names what differences are of."""
        return "family" if self.by == "family" else "benchmark"

    def _of_heterogeneity(self) -> tuple[str, ...]:
        if self.heterogeneity is None:
            return ()
        p = self.heterogeneity.p_value
        test = f"likelihood-ratio test, {p_text(p)}"
        beyond = "beyond what benchmarks of one differ by"
        if below(p, self.alpha):
            return (f"Advantages change between families, {beyond} ({test}).",)
        return (f"That advantages change between families, {beyond}, is not shown ({test}).",)

    def _of_intervals(self) -> tuple[str, ...]:
        estimated = self.table.dropna(subset="ci_low")
        if estimated.empty:
            return (f"No difference between algorithms is seen to change between {plural(self.unit)}.",)
        guessed = int(estimated["extrapolated"].sum())
        estimated = estimated[~estimated["extrapolated"]]
        if estimated.empty:
            return (
                f"No {self.unit} has runs of all algorithms of a comparison: all {guessed} intervals are extrapolated.",
            )
        clear = (estimated["ci_low"] > 0) | (estimated["ci_high"] < 0)
        against = estimated[clear & (np.sign(estimated["estimate"]) != np.sign(estimated["overall"]))]
        text = f"{int(clear.sum())} of {len(estimated)} intervals ({self._family}) exclude zero"
        if not clear.any():
            text += "."
        elif against.empty:
            text += ", none of them against the overall difference."
        else:
            row = against.iloc[0]
            text += (
                f", {len(against)} of them against the overall difference, such as {row['algorithm']} versus "
                f"{row['versus']} on {row[self.unit]}."
            )
        if not guessed:
            return (text,)
        return text, f"{guessed} more {'are' if guessed > 1 else 'is'} extrapolated to where an algorithm was not run."

    def drivers(self, **options: Any) -> Answer:
        """Which benchmarks (families) drive the conclusion: the model without each of them in turn.

        Parameters
        ----------
        **options
            Of `LmmFit.influence`: adjust, ddf, alpha, n_jobs, progress.

        Returns
        -------
        Answer
            Its sentences name the benchmarks on which a decision rests.
        """
        runs = self.fit.data
        return influence(self.fit, str(runs.study.sampled.column if self.by == "family" else runs.benchmark), **options)

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"Differences by {self.by}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model and its intervals."""
        together = f"simultaneous over the {plural(self.unit)}, not over the comparisons"
        how = together if self.simultaneous else "not simultaneous"
        what = "benchmarks of this family" if self.by == "family" else f"runs on this {self.by}"
        return (
            f"{self.fit.label}; estimate: what the model expects of further {what}, with "
            f"{100 * (1.0 - self.alpha):.4g} % intervals of the prediction's error, {how}.",
        )


@guided
@one_blas_thread()
def benchmark_effects(
    runs: Runs,
    *,
    contrast: str = "mean",
    by: str = "benchmark",
    simultaneous: bool = True,
    alpha: float = 0.05,
    formula: str | None = None,
    dispersion: str | None = "auto",
    rng: int | np.random.Generator | None = None,
) -> BenchmarkEffects:
    """Differences between algorithms on each benchmark, shrunken towards the overall difference, with intervals.

    Parameters
    ----------
    runs : Runs
        With at least two benchmarks and repeated runs. With several budgets, runs are compared by their mean over
        the budgets, which must be the same for all.
    contrast : {"mean", "pairs"}
        Deviations from the mean of all algorithms, or differences of all pairs.
    by : {"benchmark", "instance", "family"}
        Average over the levels of the metafeatures, or keep them apart; or what to expect of further benchmarks of each
        family, where families are the sample.
    simultaneous : bool, default True
        Intervals that cover all benchmarks of a comparison at once (whoever looks for the benchmark that stands out
        needs these), or each on its own.
    alpha : float in (0, 1)
        One minus the confidence level.
    formula : str, optional
        A model with random effects of the algorithms on benchmarks; by default the recommended one, with a variance
        for each algorithm where they differ (likelihood-ratio test, 5 %).
    dispersion : str or None, default "auto"
        Column whose levels have residual variances of their own, as in `fit_lmm`, so that a noisy benchmark is shrunken
        more than a quiet one; None for one variance. "auto": the benchmark, where runs scatter differently (Bartlett's
        test, 1 %).
    rng : int, numpy.random.Generator or None
        Points of the joint integral where it is not a quadrature.

    Returns
    -------
    BenchmarkEffects
        ``drivers()`` tells which benchmarks drive the conclusion; by family ``heterogeneity`` has the test that
        advantages change between families.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, has fewer than two benchmarks, an option is unknown, or the formula needs other columns.
    DesignError
        If the model has no random effects of algorithms on benchmarks, or on families that are asked for; if so many
        benchmarks do not fit into memory.
    DataError
        If budgets cannot be averaged.

    Notes
    -----
    The estimate is the best linear unbiased prediction ``L b + K u``, its se the root of Henderson's variance of the
    prediction's error at the estimated variances, plus twice what their estimation adds (Prasad & Rao 1990): without it
    all intervals of few benchmarks are too short at once. Degrees of freedom match the spread of Henderson's
    (Satterthwaite), 2 at least where the difference was observed: where little interaction is left they fall towards
    zero, and intervals beyond any that the runs of the benchmark alone give would follow. Intervals cover the true
    difference on that benchmark. In a balanced study with two algorithms the
    estimate is ``overall + k (observed - overall)`` with ``k = v / (v + w / n)``, v and w the variances of the
    difference between benchmarks and between runs.

    Where an algorithm was not run (on the benchmark, or at one of its levels of the metafeatures) there is nothing to
    shrink: the model expects its overall difference there, and the interval holds the whole variation between
    benchmarks. Such rows are marked ``extrapolated`` and have no observed difference. They suppose that the runs are
    missing by chance; an algorithm that failed on a benchmark is probably worse there. "mean" is that of all
    algorithms, so one that is missing makes all deviations on this benchmark extrapolated; ``contrast="pairs"`` keeps
    the pairs that were run apart from the others.

    By family the estimate is ``overall + k (observed - overall)`` with ``k = v / (v + (i + w / n) / b)`` in a balanced
    study, v the variance of the difference between families, i that between the b benchmarks of one. What its own
    benchmarks have for themselves is noise then, so it is moved further than the mean over these benchmarks would be.
    The test compares the model with one without ``(1 | family:algorithm)``, whose variance is at its bound there.

    Shrinkage assumes that benchmarks come from one population: a benchmark that really is an exception is pulled
    towards the others too. Ranks of shrunken differences are closer together than those of the true ones.

    References
    ----------
    Robinson (1991), doi:10.1214/ss/1177011926; Henderson (1975), doi:10.2307/2529430; Prasad & Rao (1990),
    doi:10.2307/2289570; Efron & Morris (1977) on
    why shrinkage wins, doi:10.1038/scientificamerican0577-119

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.benchmark.benchmark_effects import benchmark_effects
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", algorithm=["RS", "HB"])
    >>> found = benchmark_effects(runs, contrast="pairs")
    >>> found.to_frame()[["benchmark", "observed", "overall", "estimate"]].head(3).round(4)
               benchmark  observed  overall  estimate
    0    boosting-cancer   -0.0029  -0.0039   -0.0032
    1  boosting-diabetes   -0.0214  -0.0039   -0.0053
    2    boosting-digits   -0.0026  -0.0039   -0.0030
    """
    check_choice(contrast, "contrast", CONTRASTS)
    check_choice(by, "by", UNITS)
    check_flag(simultaneous, "simultaneous")
    level = 1.0 - check_fraction(alpha, "alpha")
    generator = resolve_rng(rng)
    means = mean_over_budgets(require_benchmarks(runs, "benchmarks are compared"))
    text = recommend(means).formula if formula is None else formula
    if isinstance(dispersion, str) and dispersion == "auto" and "auto" not in means.columns:
        dispersion = _unequal_noise(means, parse_formula(text))
    fit = fit_lmm(text, means, dispersion=dispersion)
    _check_formula(fit, means)
    _check_size(means, contrast)
    cells, weights, observed, gaps = effect_plan(means, contrast, by)
    if formula is None and by != "family":
        fit = _own_variances(fit)
    # by family the cells have a benchmark for the fixed effects, which cancels, and none for the modes
    comparisons = Differences.of(fit, cells, cells.drop(columns=means.benchmark) if by == "family" else cells, weights)
    table, between, notes = _predicted(fit, comparisons, observed, by, simultaneous, level, generator)
    notes += _gap_notes(gaps, table, by)
    if by == "family":
        table = table.rename(columns={"benchmark": "family"})
    return BenchmarkEffects(
        table=table,
        contrast=contrast,
        by=by,
        simultaneous=simultaneous,
        alpha=alpha,
        between_sd=between,
        direction=runs.direction,
        fit=fit,
        heterogeneity=_without_families(fit) if by == "family" else None,
        notes=(*notes, *_scale_note(means, fit)),
    )


# ---------------------------------------------------------------------- comparisons on each benchmark


def _without_families(fit: LmmFit) -> Answer:
    """The model against the one whose advantages change between benchmarks alone."""
    columns = {*family_columns(fit.data), fit.data.algorithm}
    parsed = fit.design.parsed
    return glrt(with_terms(fit, parsed.with_bars(bar for bar in parsed.bars if set(bar.groups) != columns)), fit)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """Comparisons as linear functions ``L b + K u`` of a model's effects, ``unseen`` for groups without runs.

    The effect of such a group (an algorithm on a benchmark where it was not run) is expected to be zero, has the
    variance of its kind, and is independent of all runs.
    """

    fixed: Array  # (c, rank) L
    random: tuple[Array, ...]  # per term (q, k, c) K
    unseen: tuple[Array, ...]

    @classmethod
    def of(cls, fit: LmmFit, cells: pd.DataFrame, of_modes: pd.DataFrame, weights: Array) -> Differences:
        """Weights of cells; `of_modes` has what tells the groups of the random effects apart that are predicted."""
        random, unseen = [], []
        for index, (q, k) in enumerate(shapes(fit)):
            basis, codes, n_new = _rows_of(fit, of_modes, index, k)
            out = np.zeros((q + n_new, k, len(weights)))
            for cell, code in enumerate(codes):
                out[code] += np.outer(basis[cell], weights[:, cell])
            random.append(out[:q])
            unseen.append(out[q:])
        fixed = (weights @ fit.design.rows(cells))[:, fit.problem.kept]
        return cls(fixed=fixed, random=tuple(random), unseen=tuple(unseen))

    def __getitem__(self, which: NDArray[np.intp]) -> Differences:
        random, unseen = (tuple(K[:, :, which] for K in parts) for parts in (self.random, self.unseen))
        return Differences(fixed=self.fixed[which], random=random, unseen=unseen)

    def between(self, fit: LmmFit) -> Array:
        """Variances of the true comparisons between benchmarks."""
        both = [np.concatenate(pair) for pair in zip(self.random, self.unseen, strict=True)]
        parts = [np.einsum("qac,ab,qbc->c", K, S, K) for K, S in zip(both, fit.covariances, strict=True)]
        return np.asarray(sum(parts, np.zeros(len(self.fixed))))

    def error(self, fit: LmmFit, x: Array, at: Criterion) -> Array:
        """Covariance of the errors at parameters `x`: effects of groups without runs are independent of all runs."""
        problem = fit.problem
        out = prediction.covariance(problem, x, at, self.fixed, self.random)
        unit = at.sigma2 * problem.y_scale**2
        for K, R, L in zip(self.unseen, problem.R, problem.unpack(x), strict=True):
            root = np.einsum("qac,ab->qbc", K, np.linalg.solve(R, L))
            out += unit * np.einsum("qbc,qbd->cd", root, root)
        return out

    def estimation(self, fit: LmmFit, variance: Array) -> Array:
        """What the estimated variances add to the variances of the errors, one computation for all of a kind."""
        first, alike = representatives(variance)
        where, parameters = (fit.problem, fit.optim.theta, fit.optim.criterion), fit.curvature.theta_covariance()
        each = max(1, _COLUMNS // max(fit.problem.n_free, 1))  # the cost of a part grows with its square
        parts = [self[first[start : start + each]] for start in range(0, len(first), each)]
        added = [prediction.estimation(*where, part.fixed, part.random, parameters) for part in parts]
        return np.concatenate(added)[alike]

    def df(self, fit: LmmFit, variance: Array) -> Array:
        """Satterthwaite degrees of freedom of the errors, one computation for all of a kind."""
        first, alike = representatives(variance)
        return fit.curvature.error_df(variance[first], self[first].slopes(fit))[alike]

    def slopes(self, fit: LmmFit) -> Array:
        """Derivatives of the variances of the errors at a given residual variance, ``(c, n_free)``."""
        problem, x, at = fit.problem, fit.optim.theta, fit.optim.criterion
        new = [np.linalg.solve(R.T, K) for R, K in zip(problem.R, self.unseen, strict=True)]
        unit = at.sigma2 * problem.y_scale**2
        slopes = prediction.slopes(problem, x, at, self.fixed, self.random)
        slopes[:, : problem.n_theta] += unit * theta_slopes(problem, x, new, len(slopes)).T
        return slopes


def _rows_of(fit: LmmFit, cells: pd.DataFrame, index: int, k: int) -> tuple[Array, NDArray[np.intp], int]:
    """Basis and group of each cell in a term; groups without runs have the numbers after those of the fit."""
    bar, n_levels = fit.design.parsed.bars[index], len(fit.design.random[index].levels)
    nothing = np.zeros((len(cells), k)), np.zeros(len(cells), dtype=np.intp), 0
    if not set(bar.groups) <= set(cells.columns):
        return nothing
    try:
        basis, codes = fit.design.random_rows(index, cells)
    except UnknownColumnError:  # a slope on something that is not known of an instance
        return nothing
    new = codes < 0
    group = cells.loc[new, list(bar.groups)].groupby(list(bar.groups), observed=True, sort=False).ngroup()
    codes = codes.copy()
    codes[new] = n_levels + group.to_numpy()
    return basis, codes, group.nunique()


# ---------------------------------------------------------------------- what is predicted


def _check_size(runs: Runs, contrast: str) -> None:
    """Each difference on each benchmark has a weight for each algorithm on each benchmark."""
    k, n = len(runs.algorithms), runs.study.count(*runs.instance)
    differences = k if contrast == "mean" else k * (k - 1) // 2
    most = int(np.sqrt(_MOST_WEIGHTS / (differences * k)))
    if n > most:
        raise DesignError(
            f"{counted(differences, 'difference')} on {n:,} benchmarks of {k} algorithms need "
            f"{differences * k * n**2:,} weights, more than the limit of {_MOST_WEIGHTS:,}. Look at up to {most:,} "
            "benchmarks at a time: runs.filter(...)."
        )


def _check_formula(fit: LmmFit, runs: Runs) -> None:
    roles = {runs.algorithm, *runs.instance, *runs.family}
    others = [name for name in (*fit.design.factors, *fit.design.numeric) if name not in roles]
    if others:
        raise ArgumentError(
            f"formula has {others[0]!r} in its fixed part, on which differences on a benchmark would depend. Use "
            f"{', '.join(map(repr, sorted(roles)))} only, or take one level first: runs.filter(...)."
        )


def _predicted(
    fit: LmmFit,
    comparisons: Differences,
    table: pd.DataFrame,
    by: str,
    simultaneous: bool,
    level: float,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, dict[tuple[str, str], float], list[str]]:
    runs = fit.data
    variance = comparisons.between(fit)
    if not any(np.abs(coefficients).max(initial=0.0) > 1e-12 for coefficients in comparisons.random):
        noun, place, takes = "benchmark", runs.benchmark, "several runs of each algorithm on each benchmark"
        if by == "family":
            noun, place, takes = "family", ":".join(family_columns(runs)), "several benchmarks in each"
        raise DesignError(
            f"the model {fit.formula!r} lets no difference between algorithms change from {noun} to {noun}. "
            f"Add (1 | {place}:{runs.algorithm}) to the formula, which takes {takes}."
        )
    overall = comparisons.fixed @ fit.kept_params
    modes = sum(np.einsum("qac,qa->c", K, u) for K, u in zip(comparisons.random, fit.modes, strict=True))
    pairs = list(dict.fromkeys(zip(table["algorithm"], table["versus"], strict=True)))
    of_pairs = np.split(np.arange(len(overall)), len(pairs))
    with one_blas_thread():  # each comparison by itself, as its intervals are
        errors = [comparisons[rows].error(fit, fit.optim.theta, fit.optim.criterion) for rows in of_pairs]
        variances = np.concatenate([error.diagonal() for error in errors])
        df = comparisons.df(fit, variances)
        added = comparisons.estimation(fit, variances)
    wider = 1.0 + np.divide(added, variances, out=np.zeros_like(added), where=variances > 0)
    units = len(set(table["benchmark"]))
    df = np.where(table["observed"].isna(), df, np.maximum(df, min(_LEAST_DF, units - 1.0)))
    estimate, notes = overall + modes, list[str]()
    zero = variance <= _ZERO * fit.mean_residual_variance
    table = table.assign(overall=overall, estimate=estimate, se=np.nan, df=np.nan, ci_low=np.nan, ci_high=np.nan)
    for rows, whole in zip(of_pairs, errors, strict=True):
        kept = ~zero[rows]
        use, error = rows[kept], whole[np.ix_(kept, kept)]
        if len(use):
            error = error * np.sqrt(np.outer(wider[use], wider[use]))
            limits, note = effect_intervals(estimate[use], error, df[use], simultaneous, level, rng)
            table.loc[use, ["estimate", "df", "ci_low", "ci_high"]] = limits.to_numpy()
            table.loc[use, "se"] = np.sqrt(np.maximum(error.diagonal(), 0.0))
            notes += [note] if note and not notes else []  # how the intervals were made; alike for all comparisons
    table["extrapolated"] = table["observed"].isna()
    between = {pair: float(np.sqrt(variance[rows].mean())) for pair, rows in zip(pairs, of_pairs, strict=True)}
    if zero.any():
        noun = "family" if by == "family" else "benchmark"
        notes.append(
            f"The model estimates that these differences do not change between {plural(noun)} at all: every {noun} "
            "gets the overall difference, without an interval. This does not show that they are equal."
        )
    return table, between, notes


def _gap_notes(gaps: dict[str, tuple[str, ...]], table: pd.DataFrame, by: str) -> list[str]:
    """A note on benchmarks or families without runs of some algorithm."""
    if not gaps:
        return []
    first = "; ".join(f"{unit}: {listed(names)}" for unit, names in list(gaps.items())[:3])
    return [
        f"On {len(gaps)} of {table['benchmark'].nunique()} {plural(by)} some algorithm was not run ({first}"
        f"{'; ...' if len(gaps) > 3 else ''}). Rows marked extrapolated are what the model expects of it there, as "
        "if it were missing by chance; an algorithm that failed there is probably worse."
    ]


def _noise(runs: Runs, transform: Callable[[Array], Array] | None) -> tuple[Array, Array]:
    """Sums of squares between runs of an algorithm on each benchmark, and their degrees of freedom."""
    cells = compress(runs, [*runs.instance, runs.algorithm], score=runs.score, transform=transform)
    by = cells.frame.assign(ss=cells.ss, df=cells.n - 1).groupby(runs.benchmark, observed=True)[["ss", "df"]].sum()
    return by["ss"].to_numpy(dtype=float), by["df"].to_numpy(dtype=float)


def _unequal_noise(runs: Runs, parsed: ParsedFormula) -> str | None:
    """The benchmark, if runs scatter significantly differently on benchmarks, and on all of them; else None.

    What runs with one seed on an instance share is no residual, where the model has it and the table is complete.
    """
    squares, df = _noise(runs, parsed.response_transform)
    shared = [bar.groups for bar in parsed.bars if runs.seed in bar.groups and runs.algorithm not in bar.groups]
    if len(shared) == 1 and str(runs.benchmark) in shared[0]:
        places = [name for name in shared[0] if name != runs.seed]
        cells = compress(runs, shared[0], score=runs.score, transform=parsed.response_transform)
        groups = cells.frame.assign(n=cells.n, mean=cells.mean).groupby(places, observed=True)
        size = groups["n"].agg(["min", "max", "size"])
        if (size["min"] == size["max"]).all():
            free = size["size"] - 1
            level = size.index.get_level_values(str(runs.benchmark))
            between = (size["max"] * free * groups["mean"].var(ddof=1)).groupby(level, observed=True).sum()
            squares = np.maximum(squares - between.to_numpy(), 0.0)
            df = df - free.groupby(level, observed=True).sum().to_numpy()
    judged = df >= _FEWEST_DF
    if judged.sum() < 2 or not (df >= 1.0).all() or not (squares > _CONSTANT * squares.max(initial=0.0)).all():
        return None
    return str(runs.benchmark) if below(bartlett(squares[judged], df[judged]), _UNLIKE_P) else None


def _own_variances(fit: LmmFit) -> LmmFit:
    """The model with a variance for each algorithm between benchmarks, where a test prefers it."""
    runs, parsed = fit.data, fit.design.parsed
    pair = {runs.benchmark, runs.algorithm}
    common = [bar for bar in parsed.bars if set(bar.groups) == pair and bar.effects == (INTERCEPT,)]
    if len(runs.algorithms) < 3 or len(common) != 1:
        return fit
    rest = replace(parsed, bars=tuple(bar for bar in parsed.bars if bar is not common[0]))
    algorithm = quote_name(runs.algorithm)
    coded = f"C({algorithm})" if f"C({algorithm})" in str(parsed) else algorithm  # names that are numbers
    formula = f"{rest} + diag({coded} | {quote_name(str(runs.benchmark))})"
    try:
        refitted = fit_lmm(formula, runs, dispersion=fit.dispersion)
        return refitted if below(glrt(fit, refitted).p_value, _SELECT_P) else fit
    except (DesignError, EstimationError):
        return fit


def _scale_note(runs: Runs, fit: LmmFit) -> list[str]:
    """A note if the noise differs much between benchmarks, by more than chance, and the model does not know."""
    if fit.dispersion is not None:
        return []
    squares, df = _noise(runs, fit.design.parsed.response_transform)
    judged = (df >= _FEWEST_DF) & (squares > 0)
    squares, df = squares[judged], df[judged]
    sd = np.sqrt(squares / df)
    # of twenty benchmarks with four degrees of freedom and equal noise the ratio is above 3 in nine of ten tables
    if len(sd) < 2 or sd.max() < _UNEQUAL * sd.min() or not below(bartlett(squares, df), _UNLIKE_P):
        return []
    return [
        f"Runs scatter {written(sd.max() / sd.min(), '.0f')} times as much on the noisiest benchmark as on the "
        "quietest, and the model takes them as equal: quiet benchmarks are shrunken too much, noisy ones too little. "
        f"Use dispersion={str(runs.benchmark)!r}, or a score that compares across benchmarks: runs.normalize(...)."
    ]
