"""The comparisons, under the names of Autorank's private module, which other packages import.

`x` holds a column per population and a row per paired sample, ``(n, k)``. Where Autorank's number is another one than
that of `lmemtest.rank`, for instance Friedman's chi-square in place of the F, it is made from the same statistic here.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.outperforming import effect_size as effects_of
from lmemtest.bench.ranking import classical
from lmemtest.bench.ranking.bayesian import outcome_draws, posterior_verdicts, signed_rank
from lmemtest.compat.autorank.decisions import cd_diagram, ci_plot, distinct, get_sorted_rank_groups, posterior_maps
from lmemtest.compat.autorank.result import UNDEFINED, BayesResult, ComparisonResult, RankResult, WrongTypeError
from lmemtest.core.rounding import below, tie_order, tolerance
from lmemtest.core.validate import check_magnitude, resolve_rng
from lmemtest.core.verdicts import Verdict
from lmemtest.core.words import format_level, p_text
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.diagnostics.normality import shapiro_wilk
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.hypotheses.variance_tests import equal_variances

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lmemtest.core.arrays import Array, Index


__all__ = [
    "RankResult",
    "cd_diagram",
    "ci_plot",
    "get_sorted_rank_groups",
    "posterior_maps",
    "rank_bayesian",
    "rank_multiple_nonparametric",
    "rank_multiple_normal_homoscedastic",
    "rank_two",
    "test_normality",
]

FEWEST_ROWS = 5
NORMAL_MAD = 1.4826  # Autorank's rounding of the factor that makes an absolute deviation a standard deviation
# What the verdict on the population of the row says of that of the column.
OF_COLUMN = {Verdict.BETTER: "smaller", Verdict.EQUIVALENT: "equal", Verdict.WORSE: "larger",
             Verdict.NOT_SIGNIFICANT: "inconclusive"}  # fmt: skip
_ALPHA = 0.05  # of an `Omnibus`, of which only statistic and p-value are used


# ---------------------------------------------------------------------- the data


def checked(data: Any) -> pd.DataFrame:
    """A table of two or more numeric columns and five or more rows, none of its cells missing, without an index."""
    if not isinstance(data, pd.DataFrame):
        raise WrongTypeError(f"data must be a pandas DataFrame, got {type(data).__name__}. Use pandas.DataFrame(data).")
    if data.shape[1] < 2:
        raise DataError(f"data must have a column for each of two or more populations, got {data.shape[1]}.")
    if len(data) < FEWEST_ROWS:
        raise DataError(f"data must have at least {FEWEST_ROWS} rows, the paired samples, got {len(data)}.")
    return pd.DataFrame(complete(data), columns=data.columns.to_flat_index().rename(None))


def complete(data: pd.DataFrame) -> Array:
    """The numbers of a table, none of which may be missing: ranks of a row with a gap are no ranks."""
    try:
        values = data.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        kinds = ", ".join(f"{name!r} ({kind})" for name, kind in zip(data.columns, data.dtypes, strict=True))
        raise DataError(f"data must hold numbers, and some column has other values: {kinds}.") from None
    bad = ~np.isfinite(values)
    if bad.any():
        column = data.columns[int(np.flatnonzero(bad.any(axis=0))[0])]
        raise DataError(
            f"data must have a finite number in every cell, and {int(bad.sum())} of {bad.size} are missing or infinite "
            f"(in column {column!r}, for instance). Drop their rows, data.dropna(), or fit a mixed model, "
            "lmemtest.rank(runs), which uses all runs there are."
        )
    check_magnitude(values)
    return values


# ---------------------------------------------------------------------- assumptions


def test_normality(data: pd.DataFrame, alpha: float, verbose: bool) -> tuple[bool, list[float]]:
    """Shapiro-Wilk tests: whether none rejects at alpha, and the p-values by column, NaN for one that does not vary."""
    x = complete(data)
    p_values = [shapiro_wilk(column, tolerance(x), most=len(x))[1] for column in x.T]
    for column, p in zip(data.columns, p_values, strict=True) if verbose else ():
        verb = "does not vary" if np.isnan(p) else "deviates from normal" if below(p, alpha) else "may be normal"
        print(f"Shapiro-Wilk: {column} {verb} ({p_text(p)}, alpha={alpha:g})")
    return not any(np.isnan(p) or below(p, alpha) for p in p_values), p_values


test_normality.__test__ = False  # type: ignore[attr-defined]  # its name is Autorank's, and no test of pytest's


def homoscedastic(data: pd.DataFrame, alpha: float, verbose: bool, all_normal: bool) -> dict[str, Any]:
    """Bartlett's test where all is normal, else Levene's, as fields of a `RankResult`."""
    test = "bartlett" if all_normal else "levene"
    p = equal_variances(data.to_numpy(), test)[1]
    verb = "rejects" if below(p, alpha) else "does not reject"
    _say(verbose, f"{test.title()}'s test {verb} equal variances ({p_text(p)}, alpha={alpha:g})")
    return {"homoscedastic": not below(p, alpha), "pval_homogeneity": p, "homogeneity_test": test}


def _is_parametric(as_tested: bool, force_mode: str | None) -> bool:
    """Whether means are compared: by the tests of the assumptions, unless the caller decided."""
    return as_tested if force_mode is None else force_mode == "parametric"


def _say(verbose: bool, line: str) -> None:
    if verbose:
        print(line)


# ---------------------------------------------------------------------- rankdf


def _means(x: Array, alpha: float) -> dict[str, Array]:
    """Means, spreads and Student's intervals at 1 - alpha each, by column."""
    n, mean, sd = len(x), x.mean(axis=0), x.std(axis=0, ddof=1)
    half = t_quantile(alpha / 2.0, np.array([n - 1.0])) * sd / math.sqrt(n)
    return {"mean": mean, "std": sd, "ci_lower": mean - half, "ci_upper": mean + half}


def _medians(x: Array, alpha: float) -> dict[str, Array]:
    """Medians, absolute deviations, and order statistics that hold the medians with 1 - alpha or more each."""
    median = np.median(x, axis=0)
    low, high = np.array([classical.median_interval(column, 1.0 - alpha) for column in x.T]).T
    return {"median": median, "mad": np.median(np.abs(x - median), axis=0), "ci_lower": low, "ci_upper": high}


def rank_table(
    data: pd.DataFrame, centre: dict[str, Array], order: str, effect_size: str | None, *, by: str
) -> tuple[pd.DataFrame, str, list[int]]:
    """`rankdf`, the kind of its effect sizes, and the columns of `data` that are its rows, best first by column `by`.

    `centre` holds the columns of `_means` or `_medians`; ranks and effect sizes are those of `data`.
    """
    x = data.to_numpy(dtype=float)
    descending = order == "descending"
    columns = {"meanrank": classical.ranked(-x if descending else x).mean(axis=0), **centre}
    positions = tie_order(columns[by], descending=descending and by != "meanrank")
    kind = effect_size or ("cohen_d" if "mean" in centre else "akinshin_gamma")
    table: dict[str, Any] = {name: values[positions] for name, values in columns.items()}
    rows = np.arange(len(positions))
    for suffix, others in {"": np.zeros_like(rows), "_above": np.maximum(rows - 1, 0)}.items():
        effects = _effect_sizes(x[:, positions], others, rows, kind)
        table[f"effect_size{suffix}"] = effects
        table[f"magnitude{suffix}"] = [word or UNDEFINED for word in effects_of.magnitudes(effects, kind)]
    return pd.DataFrame(table, index=data.columns[positions]), kind, positions


def _effect_sizes(x: Array, left: Index, right: Index, kind: str) -> Array:
    """Effect sizes of left over right columns, by pair; NaN where the spread is zero, and 0 for a column and itself."""
    if kind == "cliff_delta":
        return effects_of.effect_sizes(x[:, left].T, x[:, right].T, kind, paired=False)[0]
    of_means = kind == "cohen_d"
    centre = x.mean(axis=0) if of_means else np.median(x, axis=0)
    scale = _pooled_spread(x, left, right, of_means=of_means)
    defined = scale > tolerance(x)
    effects = np.divide(centre[left] - centre[right], scale, out=np.full(len(scale), np.nan), where=defined)
    return np.where(np.equal(left, right), 0.0, effects)


def _pooled_spread(x: Array, left: Index, right: Index, *, of_means: bool) -> Array:
    """Root mean square of the spreads of two columns, by pair: standard deviations, or scaled absolute deviations."""
    mad = NORMAL_MAD * np.median(np.abs(x - np.median(x, axis=0)), axis=0)
    squares = x.var(axis=0, ddof=1) if of_means else np.square(mad)
    return np.asarray(np.sqrt((squares[left] + squares[right]) / 2.0))


# ---------------------------------------------------------------------- tests


def rank_frequentist(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    homoscedastic: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
) -> ComparisonResult:
    """The tests that the data, or the caller, call for."""
    if force_mode is not None:
        _say(verbose, f"Tests are {force_mode}, as asked for, whatever the tests of normality and variances say")
    if data.shape[1] == 2:
        return rank_two(data, alpha, verbose, all_normal, order, effect_size, force_mode)
    if _is_parametric(all_normal and homoscedastic, force_mode):
        return rank_multiple_normal_homoscedastic(data, alpha, verbose, order, effect_size, force_mode)
    return rank_multiple_nonparametric(data, alpha, verbose, all_normal, order, effect_size, force_mode)


def rank_two(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
) -> ComparisonResult:
    """Paired t-test or, two-sided, Wilcoxon's signed-rank test; differences of zero are left out of the latter."""
    x = complete(data)
    if _is_parametric(all_normal, force_mode):
        test, p = ("ttest", None), _say_p(verbose, "paired t-test", _anova_p(x), alpha)
        centre, by = _means(x, alpha / 2), "mean"
    else:
        test, p = ("wilcoxon", None), _say_p(verbose, "Wilcoxon's signed-rank test (two-sided)", _wilcoxon_p(x), alpha)
        centre, by = _medians(x, alpha / 2), "meanrank"
    table, kind, positions = rank_table(data, centre, order, effect_size, by=by)
    return ComparisonResult(table, p, None, *test, kind, positions)


def rank_multiple_normal_homoscedastic(
    data: pd.DataFrame, alpha: float, verbose: bool, order: str, effect_size: str | None, force_mode: str | None
) -> ComparisonResult:
    """Repeated-measures ANOVA and Tukey's HSD with its error; intervals that do not overlap differ significantly."""
    del force_mode  # has decided already that this is called
    x = complete(data)
    n, k = x.shape
    p = _say_p(verbose, "repeated-measures ANOVA", _anova_p(x), alpha)
    half = _studentized_range(alpha, k, (n - 1.0) * (k - 1.0)) * math.sqrt(classical.residual_variance(x) / n) / 2.0
    centre = _means(x, alpha)
    centre |= {"ci_lower": centre["mean"] - half, "ci_upper": centre["mean"] + half}
    table, kind, positions = rank_table(data, centre, order, effect_size, by="mean")
    return ComparisonResult(table, p, None, "anova", "tukeyhsd", kind, positions)


def rank_multiple_nonparametric(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
    plot_order: list[Any] | None = None,
) -> ComparisonResult:
    """Friedman's test and the critical difference of Nemenyi's; `plot_order` is taken, and changes nothing."""
    del plot_order
    x = complete(data)
    n, k = x.shape
    p = _say_p(verbose, "Friedman's test", _friedman_p(x), alpha)
    cd = _studentized_range(alpha, k, math.inf) * math.sqrt(k * (k + 1.0) / (12.0 * n))
    centre = (_means if _is_parametric(all_normal, force_mode) else _medians)(x, alpha / k)
    table, kind, positions = rank_table(data, centre, order, effect_size, by="meanrank")
    return ComparisonResult(table, p, cd, "friedman", "nemenyi", kind, positions)


def _say_p(verbose: bool, test: str, p: float, alpha: float) -> float:
    _say(verbose, f"The {test} {'rejects' if below(p, alpha) else 'does not reject'} ({p_text(p)}, alpha={alpha:g})")
    return p


def _wilcoxon_p(x: Array) -> float:
    """Wilcoxon's signed-rank test of two columns, two-sided; differences of zero, rounding included, are dropped."""
    d = x[:, 0] - x[:, 1]
    zero = np.abs(d) <= tolerance(1.0) * np.abs(x).max(axis=1)
    return float(classical.wilcoxon(np.where(zero, 0.0, d))[1])


def _anova_p(x: Array) -> float:
    """F-test of the repeated-measures analysis of variance; of two columns the paired t-test, since F = t^2."""
    if math.sqrt(classical.residual_variance(x)) <= tolerance(x):  # differences are the same in all rows
        return 0.0 if np.ptp(x.mean(axis=0)) > tolerance(x) else 1.0
    return classical.repeated_measures_anova(x, _ALPHA).p_value


def _friedman_p(x: Array) -> float:
    """Friedman's test with the chi-square distribution, corrected for ties.

    From the F of Iman and Davenport: chi-square = n (k - 1) F / (n - 1 + F).
    """
    n, k = x.shape
    F = classical.friedman(classical.ranked(x), _ALPHA).statistic
    statistic = n * (k - 1.0) / ((n - 1.0) / F + 1.0) if F > 0.0 else 0.0
    return float(special.chdtrc(k - 1.0, statistic))


@functools.lru_cache(maxsize=256)
def _studentized_range(alpha: float, k: int, df: float) -> float:
    return float(qtukey(1.0 - alpha, k, df))


# ---------------------------------------------------------------------- posterior


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """The Bayesian signed-rank test of one pair.

    Attributes
    ----------
    chances : tuple of float
        How probable it is that each of three outcomes is the most probable one: left larger, practically equivalent,
        right larger.
    advantages : (n,) float
        Left minus right on the samples.
    rope, tie : float
        Differences that do not matter, and differences that are rounding.
    n_draws, seed : int
        From which `sample` is made.
    names : tuple of str
    """

    chances: tuple[float, ...]
    advantages: Array = field(repr=False)
    rope: float
    tie: float
    n_draws: int
    seed: int
    names: tuple[str, str]

    def probs(self, with_rope: bool = True) -> tuple[float, ...]:
        """`chances`, or those of left and right alone, which are NaN if all draws are of equivalence."""
        if with_rope:
            return self.chances
        left, _, right = self.chances
        decided = left + right if left + right > 0.0 else math.nan
        return left / decided, right / decided

    @cached_property
    def sample(self) -> Array:
        """Draws of the probabilities of the three outcomes, ``(n_draws, 3)``."""
        draws = outcome_draws(
            self.advantages[None], np.array([self.rope]), n_draws=self.n_draws, rng=np.random.default_rng(self.seed),
            tie=self.tie,
        )  # fmt: skip
        return np.concatenate([part[0].T for part in draws])

    def plot(self, names: tuple[str, str] | None = None) -> Figure:
        """A histogram of the draws, or a triangle if practical equivalence is among the outcomes."""
        from lmemtest.plots.posterior import draw_posterior

        return draw_posterior(self.sample, self.chances, names or self.names).figure.figure


def rank_bayesian(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    rope: float,
    rope_mode: str,
    nsamples: int,
    effect_size: str | None,
    random_state: Any,
    force_mode: str | None,
) -> BayesResult:
    """Posterior probabilities that one population of a pair is smaller, practically equivalent, larger.

    Intervals of means or medians are simultaneous, at 1 - alpha / k each.
    """
    x, k = complete(data), data.shape[1]
    parametric = _is_parametric(all_normal, force_mode)
    centre, by = (_means(x, alpha / k), "mean") if parametric else (_medians(x, alpha / k), "median")
    table, kind, positions = rank_table(data, centre, order, effect_size, by=by)
    x, index = x[:, positions], table.index
    above, beneath = np.triu_indices(k, 1)
    limits = np.full(len(above), rope * 1.0)
    if rope_mode == "effsize":
        limits *= _pooled_spread(x, above, beneath, of_means=parametric)
    seed = int(resolve_rng(random_state).integers(2**63))
    draws: dict[str, Any] = {"tie": tolerance(x), "n_draws": int(nsamples)}
    advantages, names = (x[:, above] - x[:, beneath]).T, distinct(index)
    chances = signed_rank(advantages, limits, rng=np.random.default_rng(seed), **draws)
    sampled, probabilities, decided = (np.full((k, k), np.nan, dtype=object) for _ in range(3))
    words = [OF_COLUMN[Verdict(code)] for code in posterior_verdicts(chances, alpha).tolist()]
    turned = {"smaller": "larger", "larger": "smaller"}
    for i, j, z, r, row, word in zip(above, beneath, advantages, limits.tolist(), chances.tolist(), words, strict=True):
        pair = Posterior(
            chances=tuple(row), advantages=z, rope=float(r), seed=seed, names=(names[i], names[j]), **draws
        )
        sampled[i, j], probabilities[i, j] = pair, pair.chances
        decided[i, j], decided[j, i] = word, turned.get(word, word)
    _say(verbose, f"Bayesian signed-rank test of {len(above)} pairs, {nsamples} draws")
    table = table.drop(columns="meanrank")
    for suffix, first in {"": "NA", "_above": np.nan}.items():
        beside = [(j - 1 if suffix else 0, j) for j in range(1, k)]
        table[f"p_equal{suffix}"] = [np.nan, *(probabilities[pair][1] for pair in beside)]
        table[f"p_smaller{suffix}"] = [np.nan, *(probabilities[pair][0] for pair in beside)]
        table[f"decision{suffix}"] = [first, *(decided[pair] for pair in beside)]
    posteriors, beliefs, decisions = (pd.DataFrame(m, index, index) for m in (sampled, probabilities, decided))
    return BayesResult(table, posteriors, beliefs, decisions, kind, positions)


# ---------------------------------------------------------------------- mixed model


def rank_lmem(
    data: pd.DataFrame, rows: pd.Index, alpha: float, order: str, effect_size: str | None
) -> tuple[ComparisonResult, pd.DataFrame]:
    """Marginal means of the recommended mixed model with intervals, and the decisions about all pairs.

    `rows` are the labels of the rows of `data`, see `_runs_of`. Mean ranks, spreads and effect sizes are those of the
    means by benchmark. The p-value is the smallest of the pairs, adjusted for all of them, and so one of the
    hypothesis that all means are equal.
    """
    from lmemtest.bench.ranking.rank import rank
    from lmemtest.bench.ranking.ranking import Ranking

    names = distinct(data.columns)
    ranking = rank(_runs_of(data, rows, names, order), "lmem", alpha=alpha)
    assert isinstance(ranking, Ranking)
    at = [ranking.blocks.algorithms.index(name) for name in names]
    scores = pd.DataFrame(ranking.blocks.scores[:, at], columns=data.columns)
    marginal = ranking.table.set_index("algorithm").loc[names, ["mean", "ci_low", "ci_high"]].to_numpy()
    mean, low, high = marginal.T
    centre = {"mean": mean, "std": scores.to_numpy().std(axis=0, ddof=1), "ci_lower": low, "ci_upper": high}
    table, kind, positions = rank_table(scores, centre, order, effect_size, by="mean")
    ordered = [names[i] for i in positions]
    significant = ranking.decisions.significant.loc[ordered, ordered].to_numpy()
    apart = np.where(mean[positions] < mean[positions][:, None], "smaller", "larger")
    cells = np.where(significant, apart, "inconclusive").astype(object)
    np.fill_diagonal(cells, np.nan)
    p = float(ranking.pairs["p_value"].min())
    decisions = pd.DataFrame(cells, index=table.index, columns=table.index)
    return ComparisonResult(table, p, None, "lmem", "lmem", kind, positions), decisions


def _runs_of(data: pd.DataFrame, rows: pd.Index, names: list[str], order: str) -> Runs:
    """A wide table as runs: the first level of its index names benchmarks, a second one seeds.

    Labels of one level that come back are runs of one benchmark, their seeds numbered.
    """
    if rows.nlevels > 2:
        raise ArgumentError(
            f"data.index has {rows.nlevels} levels, and approach='lmem' reads at most two: the benchmark, and the seed."
        )
    levels = [pd.Series([format_level(label) for label in rows.get_level_values(i)]) for i in range(rows.nlevels)]
    counted = levels[0].groupby(levels[0]).cumcount().astype(str)
    has_seeds = bool((counted != "0").any())
    parts = {"benchmark": levels[0], "seed": levels[-1] if rows.nlevels == 2 else counted}
    n, k = data.shape
    table = {name: np.repeat(labels.to_numpy(dtype=object), k) for name, labels in parts.items()}
    table |= {"algorithm": np.tile(names, n), "score": data.to_numpy(dtype=float).ravel()}
    return Runs(
        pd.DataFrame(table).drop(columns=[] if has_seeds else "seed"),
        score="score",
        direction="maximize" if order == "descending" else "minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed" if has_seeds else None,
        seed_shared=rows.nlevels == 2,
    )
