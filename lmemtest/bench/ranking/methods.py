"""The three ways to a ranking, each a function of the blocks that returns a `Assessment`: centres, tests, decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.ranking.classical import (
    FEWEST_BLOCKS,
    FEWEST_MODERATED,
    Omnibus,
    assumptions_of,
    block_estimates,
    block_residuals,
    friedman,
    median_interval,
    ranked,
    repeated_measures_anova,
    skillings_mack,
    wilcoxon_pairs,
)
from lmemtest.core.rounding import below, tolerance, written
from lmemtest.core.words import counted, format_level, format_number, p_text, percent, plural
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.diagnostics.advantages import advantage_shape
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.means.decisions import decisions_of

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Codes, Mask
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions


# ---------------------------------------------------------------------------------------------------- what can be asked


TESTS = {
    "lmem": ("auto",),
    "frequentist": ("auto", "moderated", "t", "tukey", "nemenyi", "conover", "wilcoxon"),
    "bayesian": ("auto", "signed_rank", "hierarchical"),
}
TEST_NAMES = {
    "moderated": "t-tests with moderated standard errors",
    "t": "paired t-tests",
    "tukey": "Tukey's HSD of the repeated-measures ANOVA",
    "nemenyi": "Nemenyi's test",
    "conover": "Conover's test",
    "wilcoxon": "Wilcoxon signed-rank tests",
    "lmem": "marginal means of the mixed model",
    "signed_rank": "Bayesian signed-rank test",
    "hierarchical": "Bayesian hierarchical model",
}
# Beside each other in a sentence or a table.
TEST_LABELS = {
    **TEST_NAMES,
    "moderated": "moderated t-tests",
    "tukey": "Tukey's HSD",
    "wilcoxon": "Wilcoxon's test",
    "lmem": "mixed model",
}
ON_RANKS = ("nemenyi", "conover")
OWN_VARIANCES = ("moderated", "t", "wilcoxon")  # each pair has its own: no Tukey, no Dunnett
PAIR_ADJUSTMENTS = ("tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none")
CONTROL_ADJUSTMENTS = ("dunnett", "holm", "sidak", "bonferroni", "fdr", "none")


ROPE_NAMES = {"effect": "pooled standard deviations", "mad": "pooled median absolute deviations"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOptions:
    """The options of `rank`, checked."""

    alpha: float
    test: str = "auto"
    adjust: str | None = None
    vcov: str | None = None
    control: str | None = None
    rope: float = 0.0
    rope_unit: str = "score"
    n_draws: int = 50_000
    rng: Any = 0

    def rope_text(self, score: str) -> str:
        """What counts as practically equivalent."""
        if self.rope == 0.0:
            return "no difference counts as negligible (rope = 0)"
        unit = ROPE_NAMES.get(self.rope_unit, f"units of {score}")
        return f"differences of up to {format_number(self.rope)} {unit} count as practically equivalent"


# ------------------------------------------------------------------------------------------------------- the three ways


# Of all pairs by estimates, where it is not Tukey's.
ADJUST = {"moderated": "stepdown", "t": "shaffer", "conover": "shaffer"}
BAYESIAN_SIZE = (
    "A posterior probability is no error rate and is not adjusted for the number of pairs: of equal algorithms some "
    "pair is decided in 12 % of studies with two of them, 25 % with three and 88 % with ten (20 blocks, 0.95, no ROPE)."
)
OF_RANKS = (
    "Better is meant of mean ranks: which algorithm ranks higher more often, whatever the sizes of the differences. "
    "The one with the better mean can be another."
)
CONOVER_SIZE = (
    "Conover's test judges every pair by one variance of the ranks, which is too small for equal algorithms where "
    "others are far apart: it then found false differences in 20 % of studies (ten algorithms, five pairs of equals, "
    "12 blocks). Nemenyi's test and the signed-rank tests hold their level there."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What a method says: everything of a `Ranking` that depends on the method.

    `centre` has one row per algorithm with what they are ordered by; `tests` one row per pair that was tested, in any
    orientation.
    """

    centre: pd.DataFrame
    tests: pd.DataFrame
    decisions: Decisions
    test: str
    omnibus: Omnibus | None = None
    formula: str = ""
    assumptions: pd.DataFrame | None = None
    residual_sd: tuple[float, float] = (np.nan, np.nan)  # of a single run by the model, and its degrees of freedom
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------------- the mixed model


def by_model(runs: Runs, options: RankOptions) -> Assessment:
    """The recommended mixed model: marginal means, and pairs by its standard errors or moderated ones."""
    from lmemtest.bench.modelling.recommend import as_written, recommend
    from lmemtest.lmm.means.emmeans import emmeans
    from lmemtest.lmm.model.fitting import fitted_quietly

    runs = runs.with_named_algorithms()
    fit = fitted_quietly(as_written(recommend(runs, curves="model")), runs)
    means = emmeans(fit, runs.algorithm, alpha=options.alpha)
    if options.control is None:
        compared = means.pairs(adjust=options.adjust, vcov=options.vcov)
    else:
        compared = means.against(options.control, adjust=options.adjust, vcov=options.vcov)
    table = means.to_frame().assign(algorithm=means.labels()).rename(columns={means.column: "mean"})
    # rows less all coefficients and all levels of the random effects: no more than there are, at least one
    levels = sum(len(term.levels) * len(term.names) for term in fit.design.random)
    residual_df = float(max(fit.problem.system.n_rows - len(fit.problem.kept) - levels, 1))
    return _of(
        compared,
        options,
        "marginal mean",
        centre=table[["algorithm", "mean", "se", "df", "ci_low", "ci_high"]],
        test="lmem",
        residual_sd=(float(np.sqrt(fit.scale)), residual_df),
        formula=str(fit.formula),
        notes=(f"Model: {fit.formula}", *compared.notes),
    )


def _of(compared: Comparisons, options: RankOptions, statistic: str, **rest: Any) -> Assessment:
    """Comparisons of estimates as a verdict, and the `rest` of it."""
    means = compared.estimates
    tests = compared.to_frame().rename(columns={"t_ratio": "statistic"})
    separated = decisions_of(
        levels=means.labels(),
        means=means.estimate,
        se=means.se,
        tests=tests,
        half_widths=compared.half_widths(options.alpha),
        alpha=options.alpha,
        direction=means.direction,
        ahead=left_ahead(tests, lower_is_better=means.direction == "minimize"),
        adjust=compared.adjust,
        errors=means.errors,
        ddf=compared.ddf,
        score=means.score,
        statistic=statistic,
        factor="algorithm",
    )
    tests["p_raw"] = two_sided_p(tests["statistic"], tests["df"])
    return Assessment(tests=tests, decisions=separated, **rest)


# ---------------------------------------------------------------------- classical tests


def by_tests(blocks: Blocks, options: RankOptions) -> Assessment:
    """The classical tests on the blocks; "auto" chooses by the residuals, and by whether cells are missing."""
    complete = blocks.where(blocks.complete)
    k = len(blocks.algorithms)
    missing = len(blocks.names) - len(complete.names)
    test, notes, table = options.test, list(blocks.notes), None
    if test == "auto" and missing:
        test = "wilcoxon"
    if missing and test == "wilcoxon":
        friedmans = ", and the Skillings-Mack test takes the place of Friedman's" if k > 2 else ""
        notes.append(
            f"{missing} of {counted(len(blocks.names), blocks.unit)} {'lacks' if missing == 1 else 'lack'} an "
            f"algorithm: each pair is compared on those that both have{friedmans}."
        )
    elif missing:
        notes.append(left_out(blocks))
        blocks = complete
    (require_pairs if test == "wilcoxon" else require_blocks)(blocks)
    if test == "auto":
        x = complete.scores
        residuals = block_residuals(x)
        if k == 2:
            table, normal, _ = assumptions_of(residuals[:, :1], ("differences",), options.alpha)
            test = "t" if normal else "wilcoxon"
        else:
            table, normal, _ = assumptions_of(residuals, blocks.algorithms, options.alpha)
            table = table[table["of"] != "variances"]  # of each pair its own, so their equality decides nothing
            test = "moderated" if normal and len(x) >= FEWEST_MODERATED else "nemenyi"
    _check_adjust(options, test)
    assessment = _by_ranks_or_means(blocks, test, options) if test != "wilcoxon" else _by_signed_ranks(blocks, options)
    return replace(assessment, assumptions=table, notes=(*notes, *assessment.notes))


def left_out(blocks: Blocks) -> str:
    """That incomplete blocks are not in a test of complete ones; empty if there are none."""
    missing = int((~blocks.complete).sum())
    if not missing:
        return ""
    which = "that lacks" if missing == 1 else "that lack"
    return (
        f"{counted(missing, blocks.unit)} {which} a score of some algorithm {'was' if missing == 1 else 'were'} left "
        "out; method='lmem' uses them."
    )


def require_pairs(blocks: Blocks) -> None:
    seen = np.isfinite(blocks.scores).astype(int)
    if np.triu(seen.T @ seen, 1).max() < FEWEST_BLOCKS:
        raise DesignError(
            f"no two algorithms have scores on {FEWEST_BLOCKS} common {blocks.units}, so no pair can be compared. Add "
            "runs of one algorithm where the other has some."
        )


def require_blocks(blocks: Blocks) -> None:
    if len(blocks.names) < 2:
        raise DesignError(
            f"a ranking by classical tests needs at least 2 {blocks.units} with a score of every algorithm, got "
            f"{len(blocks.names)}. Use method='lmem', which copes with missing cells, or add runs."
        )


def _check_adjust(options: RankOptions, test: str) -> None:
    if options.adjust in ("tukey", "dunnett") and test in OWN_VARIANCES:
        raise ArgumentError(
            f"adjust={options.adjust!r} is for one variance of all pairs, and {TEST_NAMES[test]} have one each. Use "
            "adjust='holm', or test='tukey' or 'nemenyi'."
        )


def _by_ranks_or_means(blocks: Blocks, test: str, options: RankOptions) -> Assessment:
    means = block_estimates(blocks, test, options.alpha)
    if options.control is not None:
        adjust = options.adjust or ("holm" if test in OWN_VARIANCES else "dunnett")
        compared = means.against(options.control, adjust=adjust)
    else:
        adjust = options.adjust or ADJUST.get(test, "tukey")
        compared = means.pairs(adjust=adjust)
    on_ranks = test in ("nemenyi", "conover")
    omnibus = None
    if on_ranks:
        omnibus = friedman(ranked(-blocks.gains), options.alpha)
    elif len(blocks.algorithms) > 2 and test not in OWN_VARIANCES:  # of two, the pair is the whole; sphericity
        omnibus = repeated_measures_anova(blocks.scores, options.alpha)
    centre = rank_centres(blocks, options.alpha) if on_ranks else mean_centres(blocks, options.alpha)
    notes = [*compared.notes]
    if test == "conover" and len(blocks.algorithms) > 3:
        notes.append(CONOVER_SIZE)
    notes += [*([OF_RANKS] if on_ranks else []), *_skew(blocks, on_ranks)]
    statistic = "mean rank" if on_ranks else "mean"
    return _of(compared, options, statistic, centre=centre, test=test, omnibus=omnibus, notes=tuple(notes))


def _skew(blocks: Blocks, on_ranks: bool) -> list[str]:
    """Skewed advantages of one algorithm, where the sample shows them."""
    x = blocks.scores
    shape = advantage_shape(x - x.mean(axis=1, keepdims=True), blocks.algorithms)
    if shape is None or not shape.is_skewed:
        return []
    return [
        f"The advantages of {shape.skewed} over the {blocks.units} are more skewed than normal ones (skewness "
        f"{written(shape.skewness, '.1f')}, {p_text(shape.skewness_p)}). In simulations with one such algorithm of "
        f"five and equal means, a nominal 5 % was up to {'17' if on_ranks else '12'} %"
        f"{', since ranks then differ although means do not' if on_ranks else ''}."
    ]


def _by_signed_ranks(blocks: Blocks, options: RankOptions) -> Assessment:
    names = blocks.algorithms
    control = None if options.control is None else names.index(options.control)
    adjust = options.adjust or ("shaffer" if control is None else "holm")
    tests = wilcoxon_pairs(blocks, adjust=adjust, alpha=options.alpha, control=control)
    omnibus: Omnibus | None = None
    if len(names) > 2:
        whole = bool(blocks.complete.all())
        omnibus = (friedman(ranked(-blocks.gains), options.alpha) if whole
                   else skillings_mack(blocks.gains, options.alpha))  # fmt: skip
    centre = rank_centres(blocks, options.alpha)
    separated = _on_mean_ranks(blocks, centre, tests, options.alpha, adjust=adjust)
    notes = ["Intervals are those of the shift (Hodges and Lehmann), each at the level at which its pair was tested."]
    outside = (tests["ci_low"] > 0) | (tests["ci_high"] < 0)
    differ = int((outside != below(tests["p_value"], options.alpha))[tests["p_value"].notna()].sum())
    if differ:
        notes.append(
            f"Of {counted(differ, 'pair')} the interval and the test disagree about zero, because differences are zero "
            "or tied: the interval takes the shift for continuous, the test does not. The test decides."
        )
    lowest = np.full(len(tests), 2.0 ** (1 - len(blocks.names)))  # all pairs as clear as they can be
    least = float(adjust_raw(lowest, "holm" if adjust == "shaffer" else adjust, len(tests)).min())
    if adjust != "none" and not below(least, options.alpha):
        notes.append(
            f"With {blocks.said()} and {counted(len(tests), 'pair')} no signed-rank test can be significant at "
            f"{options.alpha:g}: its smallest p-value is {format_number(least)} after adjustment. Use test='nemenyi' "
            f"or method='lmem', or add {plural(blocks.unit)}."
        )
    return Assessment(
        centre=centre, tests=tests, decisions=separated, test="wilcoxon", omnibus=omnibus, notes=tuple(notes)
    )


def _on_mean_ranks(blocks: Blocks, centre: pd.DataFrame, tests: pd.DataFrame, alpha: float, **facts: Any) -> Decisions:
    """The decisions of tests that are not of mean ranks, in the order of these."""
    equivalent = None
    if "p_equal" in tests:
        chances = tests[["p_left", "p_right", "p_equal"]].to_numpy()
        equivalent = (chances.argmax(axis=1) == 2) & below(1.0 - chances.max(axis=1), alpha)
    return decisions_of(
        levels=blocks.algorithms,
        means=centre["mean_rank"].to_numpy(),
        se=np.full(len(centre), np.nan),
        tests=tests,
        half_widths=np.full(1, np.nan),
        alpha=alpha,
        direction="minimize",
        ahead=left_ahead(tests, lower_is_better=blocks.direction == "minimize"),
        equivalent=equivalent,
        ddf="asymptotic",
        score=f"rank by {blocks.score}",
        statistic="mean rank",
        factor="algorithm",
        **facts,
    )


def mean_centres(blocks: Blocks, alpha: float) -> pd.DataFrame:
    """Means over the blocks with their standard deviation and t interval."""
    import pandas as pd

    x = blocks.scores
    n = len(x)
    mean, sd = x.mean(axis=0), x.std(axis=0, ddof=1)
    half = t_quantile(alpha / 2.0, np.full(x.shape[1], n - 1.0)) * sd / np.sqrt(n)
    return pd.DataFrame(
        {"algorithm": blocks.algorithms, "mean": mean, "sd": sd, "ci_low": mean - half, "ci_high": mean + half}
    )


def rank_centres(blocks: Blocks, alpha: float) -> pd.DataFrame:
    """Mean ranks, and medians with their median absolute deviation and exact interval."""
    import pandas as pd

    rows = []
    for column in blocks.scores.T:
        x = column[np.isfinite(column)]
        if not len(x):
            rows.append((np.nan,) * 4)
            continue
        median = float(np.median(x))
        rows.append((median, float(np.median(np.abs(x - median))), *median_interval(x, 1.0 - alpha)))
    median, mad, low, high = np.array(rows).T
    frame = {"algorithm": blocks.algorithms, "mean_rank": mean_ranks(blocks), "median": median, "mad": mad}
    return pd.DataFrame({**frame, "ci_low": low, "ci_high": high})


def outcomes(blocks: Blocks) -> tuple[Array, Array]:
    """Blocks on which the row is better than the column, and on which the two tie, ``(k, k)`` each."""
    k = len(blocks.algorithms)
    wins, ties = np.zeros((k, k)), np.zeros((k, k))
    for gains in blocks.gains:
        difference, size = gains[:, None] - gains, np.abs(gains)
        apart = np.abs(difference) > tolerance(1.0) * np.maximum(size[:, None], size)  # NaN is neither, as below
        wins += apart & (difference > 0.0)
        ties += ~apart & np.isfinite(difference)
    np.fill_diagonal(ties, 0.0)
    return wins, ties


def mean_ranks(blocks: Blocks) -> Array:
    """Mean rank of each algorithm: one more than the opponents it may expect to lose to on a block.

    Of complete blocks that is the mean of the ranks; with missing cells every pair counts where both have a score, and
    an opponent that was never met counts as the mean of the others. NaN where none was met.
    """
    wins, ties = outcomes(blocks)
    met = wins + wins.T + ties
    lost = np.divide(wins.T + ties / 2.0, met, out=np.zeros(met.shape), where=met > 0).sum(axis=1)
    opponents = (met > 0).sum(axis=1)
    others = len(met) - 1.0
    return 1.0 + np.divide(others * lost, opponents, out=np.full(len(met), np.nan), where=opponents > 0)


# ---------------------------------------------------------------------- posterior probabilities


def by_posterior(blocks: Blocks, options: RankOptions) -> Assessment:
    """Posterior probabilities that an algorithm is practically better; decided where one is above 1 - alpha."""
    from lmemtest.bench.ranking.bayesian import bayesian_pairs

    test = "signed_rank" if options.test == "auto" else options.test
    require_pairs(blocks)
    tests = bayesian_pairs(
        blocks,
        model=test,
        rope=options.rope,
        rope_unit=options.rope_unit,
        alpha=options.alpha,
        n_draws=options.n_draws,
        rng=options.rng,
    )
    if options.control is not None:
        tests = tests[(tests["left"] == options.control) | (tests["right"] == options.control)].reset_index(drop=True)
    # the probability of being wrong takes the place of the p-value: one matrix of decisions for all methods
    tests = tests.assign(p_value=1.0 - tests[["p_left", "p_right"]].max(axis=1))
    n, few = len(blocks.names), []
    if test == "signed_rank" and options.rope == 0.0 and n <= 6:
        few.append(
            f"With {blocks.said()} an algorithm that is ahead on each of them is decided to be better, which happens "
            f"to two equal ones in {percent(2.0 ** (1 - n))} of studies."
        )
    centre = rank_centres(blocks, options.alpha)
    separated = _on_mean_ranks(blocks, centre, tests, options.alpha, adjust="none", posterior=True)
    notes = (*blocks.notes, BAYESIAN_SIZE, *few)
    return Assessment(centre=centre, tests=tests, decisions=separated, test=test, notes=notes)


def left_ahead(tests: pd.DataFrame, *, lower_is_better: bool) -> Mask:
    """Of which tests the left is better, by the sign of what was tested.

    The order of the ranking does not say: mean ranks and signed ranks can favour different algorithms, and the estimate
    of a difference can be zero.
    """
    if "p_left" in tests:
        return (tests["p_left"] > tests["p_right"]).to_numpy()
    sign = -1.0 if lower_is_better else 1.0
    return np.asarray(sign * tests["statistic"].to_numpy() > 0.0)


def codes_on(blocks: Blocks, runs: Runs, method: str, options: RankOptions) -> Codes:
    """The verdicts of the same method on some of the blocks and algorithms of the runs, in the order of the blocks'."""
    if options.control is not None and options.control not in blocks.algorithms:
        raise DesignError(f"the control {options.control} is what is left out.")
    part = _those_in(runs, blocks) if method == "lmem" else runs
    return assessment_of(method, part, blocks, options).decisions.among(blocks.algorithms)


def _those_in(runs: Runs, blocks: Blocks) -> Runs:
    """The runs of these blocks and algorithms."""
    column = str(runs.study.sampled.column if blocks.unit == "family" else getattr(runs, blocks.unit))
    wanted = {runs.algorithm: blocks.algorithms, column: blocks.names}
    kept = {column: [level for level in runs.levels(column) if format_level(level) in names]
            for column, names in wanted.items()}  # fmt: skip
    return runs.filter(**kept)


def assessment_of(method: str, runs: Runs, blocks: Blocks, options: RankOptions) -> Assessment:
    """What a method says of the runs, or of their blocks."""
    if method == "lmem":
        return by_model(runs, options)
    return (by_tests if method == "frequentist" else by_posterior)(blocks, options)
