"""The tests of several algorithms on the same blocks (Demšar 2006), each as estimates or as tests of pairs.

Repeated-measures ANOVA and the paired t-test on scores, Nemenyi's and Conover's test on ranks differ in what is
averaged and in the covariance of the averages, so each of them is a set of `Estimates`: means of n blocks with

- moderated: that of ``score ~ algorithm + (1 | block)``, the variance of each pair shrunk towards the model's;
- paired t: the sample covariance of the scores, n - 1 degrees of freedom, each pair its own variance;
- ANOVA and Tukey: the residual mean square after blocks and algorithms, (n - 1)(k - 1) degrees of freedom;
- Conover: the same on ranks;
- Nemenyi: the variance k (k + 1) / 12 of ranks if all orders of a block are equally likely, infinite.

Pairs, adjustments, a control, groups and figures follow from there. The signed-rank test has no such form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special
from scipy.sparse.csgraph import connected_components

from lmemtest.core.proportions import quantile_places
from lmemtest.core.rounding import at_most, below, mean_ranks, tied_codes, tolerance, written
from lmemtest.core.words import format_number, p_text
from lmemtest.errors import DesignError
from lmemtest.lmm.diagnostics.normality import shapiro_wilk
from lmemtest.lmm.means.adjust import adjust_raw, raw_levels, step_down
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.means.moderated import CompleteBlocks, ModeratedMeans

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index


FEWEST_BLOCKS, FEWEST_MODERATED = 2, 3
_AT_ONCE = 2_000_000  # averages of pairs of differences that are sorted together
MOST_EXACT = 50  # blocks up to which the null distribution of the signed-rank sum is exact, ties or not


def ranked(scores: Array, size: float | Array = 0.0) -> Array:
    """Ranks within each row, 1 for the lowest; ties share their mean, and what differs by rounding only is a tie.

    Rounding is relative to the largest of a row, or to `size` (one number, or a column of them) if that is more:
    differences have the rounding of what was subtracted.

    >>> ranked(np.array([[0.3, 0.1 + 0.2, 0.1], [2.0, 1.0, 3.0]])).tolist()
    [[2.5, 2.5, 1.0], [2.0, 1.0, 3.0]]
    """
    largest = np.maximum(np.abs(scores).max(axis=1, keepdims=True), size)
    return mean_ranks(tied_codes(scores, tolerance(1.0) * largest[:, 0]))


# ---------------------------------------------------------------------- estimates


def block_estimates(blocks: Blocks, test: str, alpha: float) -> Estimates:
    """Means over complete blocks with the covariance of a test: "moderated", "t", "tukey", "conover" or "nemenyi"."""
    n, k = blocks.scores.shape
    on_ranks = test in ("conover", "nemenyi")
    x = ranked(-blocks.gains) if on_ranks else blocks.scores
    L, b, spread = np.eye(k), x.mean(axis=0), np.eye(k)
    if test == "t":  # a mean is that of the blocks plus an advantage: differences do not see how much blocks vary
        level = x.mean(axis=1, keepdims=True)
        parts = np.hstack([x - level, level])
        L, b = np.hstack([L, np.ones((k, 1))]), parts.mean(axis=0)
        V, df = np.cov(parts, rowvar=False) / n, n - 1.0
    elif test == "nemenyi":
        V, df = k * (k + 1.0) / 12.0 / n * spread, np.inf
    else:
        within = residual_variance(x)
        if within <= tolerance(x) ** 2:
            what = "the ranks are the same" if on_ranks else "differences between the algorithms are the same"
            raise DesignError(
                f"{what} on every {blocks.unit}, so there is nothing to judge them by. Use test='nemenyi' or "
                "'wilcoxon', which need no residual variance, and look for copied scores: lmemtest.check(runs)."
            )
        V, df = within / n * spread, (n - 1.0) * (k - 1.0)
    if test == "moderated":
        return _moderated_means(blocks, alpha)
    return Estimates.of(
        {"algorithm": list(blocks.algorithms)},
        L=L,
        b=b,
        V=V,
        df=df,
        score=f"rank by {blocks.score}" if on_ranks else blocks.score,
        direction="minimize" if on_ranks else blocks.direction,
        ddf="asymptotic" if np.isinf(df) else "residual",
        alpha=alpha,
        n_obs=n * k,
    )


def _moderated_means(blocks: Blocks, alpha: float) -> Estimates:
    """Marginal means of the mixed model of the scores by block, with moderated standard errors.

    Of a complete table the model has a closed form, by the mean squares of blocks and residual: a mean has the variance
    of (the one + (k - 1) times the other) / k over n, a difference that of the residual. Where the blocks vary less
    than that, their variance is zero and the two are one mean square (Searle, Casella & McCulloch 1992, chapter 4).
    """
    x, (n, k) = blocks.scores, blocks.scores.shape
    if n < FEWEST_MODERATED:
        raise DesignError(
            f"moderated standard errors need {FEWEST_MODERATED} {blocks.units} with a score of every algorithm, got "
            f"{n}. Use test='nemenyi', or add runs."
        )
    squares, df = np.array([k * x.mean(axis=1).var(ddof=1), residual_variance(x)]), (n - 1.0) * np.array([1.0, k - 1.0])
    pooled = bool(at_most(squares[0], squares[1]))
    if pooled:
        squares[:] = df @ squares / df.sum()

    def matched_df(L: Array) -> Array:
        """Satterthwaite's degrees of freedom of the variances of functions of the means."""
        of_blocks = L.sum(axis=1) ** 2 / k
        parts = np.stack([of_blocks, (L**2).sum(axis=1) - of_blocks], axis=1) * squares
        return np.asarray(parts.sum(axis=1) ** 2 / (parts**2 / df).sum(axis=1))

    means = Estimates.of(
        {"algorithm": list(blocks.algorithms)},
        b=x.mean(axis=0),
        V=(squares[1] * np.eye(k) + (squares[0] - squares[1]) / k) / n,
        df=df.sum() if pooled else matched_df,
        score=blocks.score,
        direction=blocks.direction,
        errors="moderated",
        alpha=alpha,
        n_obs=n * k,
    )
    own = CompleteBlocks(residuals=block_residuals(x), cluster=(blocks.unit,))
    means = means.with_errors(moderate=ModeratedMeans.of(own, means))
    return replace(means, notes=means.moderation_notes)


def block_residuals(x: Array) -> Array:
    """What the means of blocks and algorithms leave of a complete table, ``(n, k)``."""
    return np.asarray(x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean())


def residual_variance(x: Array) -> float:
    """Mean square of what blocks and algorithms leave, (n - 1)(k - 1) degrees of freedom."""
    n, k = x.shape
    return float(np.square(block_residuals(x)).sum() / ((n - 1.0) * (k - 1.0)))


# ---------------------------------------------------------------------- all at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """A test that all algorithms are alike.

    Attributes
    ----------
    name : str
        "Friedman (Iman-Davenport)", "repeated-measures ANOVA", ...
    statistic, p_value : float
    df : tuple of float
        One, or numerator and denominator.
    symbol : {"F", "chi-square"}
    alpha : float
    """

    name: str
    statistic: float
    df: tuple[float, ...]
    p_value: float
    symbol: str
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the algorithms differ at all, by this test."""
        return bool(below(self.p_value, self.alpha))

    @property
    def text(self) -> str:
        """As papers write it: "F(3, 33) = 3.04, p = 0.043"."""
        df = ", ".join(written(float(value), ".4g") for value in self.df)
        return f"{self.symbol}({df}) = {format_number(self.statistic, 3)}, {p_text(self.p_value)}"


def repeated_measures_anova(x: Array, alpha: float) -> Omnibus:
    """F-test that the means of k algorithms over n blocks are equal; sphericity is assumed."""
    return _f_test("repeated-measures ANOVA", x, alpha)


def friedman(ranks: Array, alpha: float) -> Omnibus:
    """Friedman's test with the F of Iman and Davenport (1980), whose size is right where the chi-square is too low.

    F = (n - 1) chi2 / (n (k - 1) - chi2), chi2 corrected for ties: the F of the analysis of variance of the ranks.
    """
    n, k = ranks.shape
    test = _f_test("Friedman (Iman-Davenport)", ranks, alpha)
    # no outcome is rarer than one order in all blocks, which the F of few blocks does not know
    return replace(test, p_value=max(test.p_value, float(np.exp((1 - n) * special.gammaln(k + 1.0)))))


def _f_test(name: str, x: Array, alpha: float) -> Omnibus:
    """The balanced analysis of variance of ``(n, k)`` scores or ranks: algorithms against the rest within blocks."""
    n, k = x.shape
    between, within = n * np.square(x.mean(axis=0) - x.mean()).sum() / (k - 1.0), residual_variance(x)
    df, rounding = (k - 1.0, (n - 1.0) * (k - 1.0)), tolerance(x) ** 2
    if within > rounding:
        statistic = between / within
    else:
        statistic = np.inf if between > rounding else 0.0  # every block alike: no order, or one and the same
    p_value = float(special.fdtrc(*df, statistic)) if np.isfinite(statistic) else 0.0
    return Omnibus(name=name, statistic=float(statistic), df=df, p_value=p_value, symbol="F", alpha=alpha)


def skillings_mack(gains: Array, alpha: float) -> Omnibus:
    """The test of Skillings and Mack (1981): Friedman's where some cells are missing; chi-square, corrected for ties.

    Each block of k_i scores adds its centred ranks, weighted by sqrt(12 / (k_i + 1)). Under exchange of the scores
    within blocks the covariance of the sums is known, ties included; the statistic is its quadratic form.

    Skillings & Mack (1981), Technometrics 23, 171-177, doi:10.1080/00401706.1981.10486261
    """
    k = gains.shape[1]
    total, covariance = np.zeros(k), np.zeros((k, k))
    for row in gains:
        seen = np.flatnonzero(np.isfinite(row))
        size = len(seen)
        if size < 2:
            continue
        centred = ranked(-row[None, seen])[0] - (size + 1.0) / 2.0
        weight = 12.0 / (size + 1.0)
        total[seen] += np.sqrt(weight) * centred
        variance = weight * np.square(centred).sum() / (size - 1.0)
        covariance[np.ix_(seen, seen)] += variance * (np.eye(size) - 1.0 / size)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-10 * max(values.max(), 1.0)
    statistic = float(np.square(total @ vectors[:, kept] / np.sqrt(values[kept])).sum())
    require_connected(gains)
    df = float(kept.sum()) or k - 1.0  # algorithms that tie wherever they meet have no degree of freedom between them
    p_value = float(special.chdtrc(df, statistic))
    return Omnibus(
        name="Skillings-Mack", statistic=statistic, df=(df,), p_value=p_value, symbol="chi-square", alpha=alpha
    )


def require_connected(gains: Array) -> None:
    """Refuse algorithms that fall into groups without a common block."""
    met = np.isfinite(gains).T.astype(int) @ np.isfinite(gains)
    if connected_components(met, directed=False)[0] > 1:
        raise DesignError(
            "the algorithms fall into groups without a common block, so no test compares all of them. Rank each group "
            "by itself, or add runs."
        )


# ---------------------------------------------------------------------- signed ranks


def wilcoxon(differences: Array, size: float = 0.0) -> tuple[float, float]:
    """Wilcoxon's signed-rank test of one pair, two-sided: the sum of the positive ranks, and the p-value.

    `size` is that of what was subtracted, see `ranked`. Differences of zero are dropped. Up to 50 others the
    distribution is that of all sign changes of the ranks at hand, exact with ties; beyond, normal.

    >>> wilcoxon(np.array([1.0, 2.0, 3.0, -4.0, 5.0]))
    (11.0, 0.4375)
    """
    d = differences[np.abs(differences) > 0.0]
    if not len(d):
        return 0.0, 1.0
    return _wilcoxon(d, ranked(np.abs(d)[None], size)[0])


def _wilcoxon(d: Array, ranks: Array) -> tuple[float, float]:
    """`wilcoxon` of differences that are not zero, with the ranks of their sizes."""
    positive = float(ranks[d > 0].sum())
    least = min(positive, float(ranks.sum()) - positive)
    if len(d) > MOST_EXACT:
        z = (least - ranks.sum() / 2.0) / np.sqrt(np.square(ranks).sum() / 4.0)
        return positive, float(min(1.0, 2.0 * special.ndtr(z)))
    return positive, float(min(1.0, 2.0 * null_of_sums(ranks)[: round(2.0 * least) + 1].sum()))


def null_of_sums(ranks: Array) -> Array:
    """Probabilities of twice the sum of the ranks with a positive sign, 0, 1, 2, ..., each sign a fair coin."""
    return _null_of_sums(tuple(np.sort(np.rint(2.0 * ranks).astype(np.intp)).tolist()))


@lru_cache(maxsize=128)  # pairs without ties have the same ranks
def _null_of_sums(doubled: tuple[int, ...]) -> Array:
    out = np.zeros(sum(doubled) + 1)
    out[0] = 1.0
    for step in doubled:
        moved = np.zeros_like(out)
        moved[step:] = out[: len(out) - step]
        out = (out + moved) / 2.0
    out.flags.writeable = False
    return out


def shift_intervals(differences: Array, levels: Array) -> Array:
    """Hodges-Lehmann estimates of shifts, the median of the Walsh averages, and intervals of the signed-rank test.

    Of p rows of n differences, each with its level: ``(p, 3)``. The limits are infinite where the blocks are too few
    for the level.
    """
    n = differences.shape[1]
    tail = (1.0 - levels) / 2.0
    if n <= MOST_EXACT:
        below_c = np.cumsum(null_of_sums(np.arange(1.0, n + 1.0))[::2])
        cut = np.searchsorted(below_c, tail * (1.0 - 1e-9), side="left")  # P(V < cut) < tail, as `below` has it
    else:
        spread = np.sqrt(n * (n + 1.0) * (2.0 * n + 1.0) / 24.0)
        cut = np.maximum(0.0, np.floor(n * (n + 1.0) / 4.0 + special.ndtri(tail) * spread)).astype(np.intp)
    i, j = np.triu_indices(n)
    out = np.empty((len(differences), 3))
    some = max(1, _AT_ONCE // len(i))
    for start in range(0, len(out), some):
        rows = slice(start, start + some)
        walsh = np.sort((differences[rows][:, i] + differences[rows][:, j]) / 2.0, axis=1)
        at = np.maximum(cut[rows], 1)[:, None]
        low, high = (np.take_along_axis(walsh, end, axis=1)[:, 0] for end in (at - 1, len(i) - at))
        none = cut[rows] == 0
        out[rows] = np.column_stack(
            [np.median(walsh, axis=1), np.where(none, -np.inf, low), np.where(none, np.inf, high)]
        )
    return out


def median_interval(x: Array, level: float) -> tuple[float, float]:
    """Order statistics that hold the median with at least this probability, exact by the binomial distribution.

    >>> median_interval(np.arange(1.0, 11.0), 0.95)
    (2.0, 9.0)
    """
    lower, upper, _ = quantile_places(len(x), 0.5, level)
    ends = np.concatenate([[-np.inf], np.sort(x), [np.inf]])
    return float(ends[lower]), float(ends[upper])


def wilcoxon_pairs(blocks: Blocks, *, adjust: str, alpha: float, control: int | None = None) -> pd.DataFrame:
    """Signed-rank tests of the pairs, or of all with a control, each on the blocks that both have.

    The interval of a shift has the level at which its pair is tested in the end, so it agrees with the p-value where no
    differences are zero or tied. The statistic is the sum of the ranks with the signs of their differences.
    """
    import pandas as pd

    k = len(blocks.algorithms)
    if control is None:
        left, right = np.triu_indices(k, 1)
    else:
        left = np.delete(np.arange(k), control)
        right = np.full(k - 1, control)
    m = len(left)
    statistic, p_raw, of_as_many = signed_rank_sums(blocks, left, right)
    if adjust in ("shaffer", "stepdown") and control is None:
        method, p_value = "shaffer", step_down(p_raw, k, first_by_range=False)
    else:
        method = "holm" if adjust == "shaffer" else adjust
        p_value = adjust_raw(p_raw, method, m)
    levels = np.broadcast_to(raw_levels(p_raw, method=method, n_tests=m, alpha=alpha, n_means=k), m)
    shifts = np.full((m, 3), np.nan)
    for pairs, d in of_as_many:
        shifts[pairs] = shift_intervals(d, 1.0 - levels[pairs])
    estimate, low, high = shifts.T
    names = blocks.algorithms
    return pd.DataFrame(
        {
            "left": [names[i] for i in left],
            "right": [names[j] for j in right],
            "estimate": estimate,
            "ci_low": low,
            "ci_high": high,
            "statistic": statistic,
            "df": np.nan,
            "p_raw": p_raw,
            "p_value": p_value,
        }
    )


def signed_rank_sums(blocks: Blocks, left: Index, right: Index) -> tuple[Array, Array, list[tuple[Index, Array]]]:
    """Sums of the signed ranks of pairs and their p-values; NaN on too few common blocks.

    Beside them the pairs of as many common blocks, and their differences there.
    """
    tests = np.full((2, len(left)), np.nan)
    of_as_many = []
    common = np.isfinite(blocks.scores[:, left]) & np.isfinite(blocks.scores[:, right])
    for n in np.unique(common.sum(axis=0)):
        pairs = np.flatnonzero(common.sum(axis=0) == n)
        if n >= FEWEST_BLOCKS:
            x, y = (blocks.scores[:, side[pairs]].T[common[:, pairs].T].reshape(-1, n) for side in (left, right))
            sizes = np.maximum(np.abs(x), np.abs(y))
            d = np.where(np.abs(x - y) <= tolerance(1.0) * sizes, 0.0, x - y)
            tests[:, pairs] = _signed_ranks(d, sizes.max(axis=1, keepdims=True))
            of_as_many.append((pairs, d))
    return tests[0], tests[1], of_as_many


def _signed_ranks(d: Array, sizes: Array) -> tuple[Array, Array]:
    """The sum of the signed ranks and the p-value of each row of differences of scores up to `sizes`.

    Most rows have the ranks 1, 2, ..., n, each of them once: they share one null distribution.
    """
    m = d.shape[1]
    ranks = ranked(np.abs(d), sizes)
    n = np.count_nonzero(d, axis=1)
    positive = np.where(d > 0.0, ranks, 0.0).sum(axis=1)
    p = np.ones(len(d))
    untied = (n == m) & (np.square(ranks).sum(axis=1) == m * (m + 1.0) * (2.0 * m + 1.0) / 6.0)
    least = np.minimum(positive, m * (m + 1.0) / 2.0 - positive)[untied]
    if m > MOST_EXACT:
        z = (least - m * (m + 1.0) / 4.0) / np.sqrt(m * (m + 1.0) * (2.0 * m + 1.0) / 24.0)
        p[untied] = np.minimum(1.0, 2.0 * special.ndtr(z))
    elif untied.any():
        sums, which = np.unique(np.rint(2.0 * least).astype(np.intp), return_inverse=True)
        null = null_of_sums(np.arange(1.0, m + 1.0))
        p[untied] = np.array([min(1.0, 2.0 * null[: end + 1].sum()) for end in sums])[which]
    for row in np.flatnonzero(~untied):
        whole = n[row] == m  # without zeros the ranks are those at hand
        positive[row], p[row] = _wilcoxon(d[row], ranks[row]) if whole else wilcoxon(d[row], float(sizes[row, 0]))
    return 2.0 * positive - n * (n + 1.0) / 2.0, p


# ---------------------------------------------------------------------- what they assume


def assumptions_of(x: Array, names: tuple[str, ...], alpha: float) -> tuple[pd.DataFrame, bool, bool]:
    """Shapiro-Wilk of each column (level alpha / k), then Bartlett's test if all are normal and Levene's if not.

    Returns the table of tests, whether all are taken for normal, and whether variances are taken for equal. A column
    without variation has no p-value and is taken for not normal.
    """
    import pandas as pd

    from lmemtest.lmm.hypotheses.variance_tests import equal_variances

    constant = np.ptp(x, axis=0) <= tolerance(x)
    shapiro = [shapiro_wilk(c, tolerance(x)) for c in x.T]
    p_normal = np.array([p for _, p in shapiro])
    normal = bool(not constant.any() and not below(p_normal, alpha / len(names)).any())
    rows = [("Shapiro-Wilk", of, w, p) for of, (w, p) in zip(names, shapiro, strict=True)]
    alike = True
    if x.shape[1] > 1:
        name = "bartlett" if normal else "levene"
        statistic, p_value = equal_variances(x, name)
        rows.append((name.title(), "variances", statistic, p_value))
        alike = not below(p_value, alpha)
    return pd.DataFrame(rows, columns=["test", "of", "statistic", "p_value"]), normal, alike
