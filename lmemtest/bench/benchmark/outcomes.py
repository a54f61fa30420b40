"""Better, equal or worse: two algorithms at every point, mean outcomes of instances, and their contrasts.

A point is a benchmark at one level of a metafeature and at one budget. The mean outcome over the budgets is compared
between levels. Under the hypothesis that the difference between the algorithms is the same at both levels, a table of
runs is its means with this common difference, and residuals. New tables flip the signs of the residuals, of all runs
of a seed together and with all their budgets (a wild bootstrap, clustered by seed): so neither the budgets of a run nor
the runs of a seed need be independent, and algorithms and levels may scatter differently.

References
----------
Wu (1986), doi:10.1214/aos/1176350142; Cameron, Gelbach & Miller (2008), doi:10.1162/rest.90.3.414
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.pair_scores import PairScores
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.rounding import below, written
from lmemtest.core.words import format_level, listed, p_text
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.means.adjust import adjust_raw, critical_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index


FOLLOWS, UNCLEAR, NONE_FOUND, REVERSED = "follows", "unclear", "none found", "reversed"
_ROUNDING = 1e-12  # of the benchmark's largest score: differences and errors below it are rounding, and scores ties
# Sums of squares by subtraction keep about half of the digits: what is smaller, relative to the spread, is zero.
_ROUNDING_OF_SQUARES = 1e-7
_SAME = 1e-9  # of mean outcomes: sums of ones and zeros over the same number
_CHUNK = 4_000_000  # draws times budgets held at once: 32 MB an array
_FEW_SEEDS = 7  # fewer have at most 32 different sign patterns: no p-value below 0.03


class Outcomes(NamedTuple):
    """Tests of the first algorithm against the second at every point, (m, k, budgets) each; NaN where none is made.

    ``outcome`` is 1 where the first is better, 0 where no difference is found, -1 where it is worse; ``advantage`` says
    by how much it is better, on the scale of the score.
    """

    outcome: Array
    advantage: Array
    t_ratio: Array
    df: Array
    p_value: Array


def test_points(pairs: PairScores, test: str, alpha: float) -> Outcomes:
    """Student's tests at every point at level `alpha`: "two-sample", or "paired" within seeds."""
    scale = np.nanmax(np.abs(pairs.scores), axis=(1, 2, 3, 4))[:, None, None]
    if test == "paired":
        n, advantage, variance = _moments(pairs.scores[:, :, 1] - pairs.scores[:, :, 0])
        error, df = variance / np.maximum(n, 1.0), n - 1.0
    else:
        n, mean, variance = _moments(pairs.scores)
        advantage = mean[:, :, 1] - mean[:, :, 0]
        error, df = _pooled_error(n[:, :, 0], variance[:, :, 0], n[:, :, 1], variance[:, :, 1])
    advantage, df = np.where(df > 0, pairs.sign * advantage, np.nan), np.where(df > 0, df, np.nan)
    t = _t_ratios(advantage, error, _ROUNDING * scale)
    return Outcomes(_outcomes(t, t_quantile(alpha / 2.0, df)), advantage, t, df, two_sided_p(t, df))


test_points.__test__ = False  # type: ignore[attr-defined]  # a test of points, not of pytest


def mean_outcomes(outcome: Array) -> Array:
    """(m, k): mean outcome over the budgets; NaN where nothing is compared."""
    n = np.isfinite(outcome).sum(axis=2)
    return np.where(n > 0, np.nansum(outcome, axis=2) / np.maximum(n, 1), np.nan)


def _moments(values: Array) -> tuple[Array, Array, Array]:
    """Count, mean and variance over the seeds, the last but one axis."""
    n = np.isfinite(values).sum(axis=-2).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(values, axis=-2) / n
        return n, mean, np.nansum((values - mean[..., None, :]) ** 2, axis=-2) / (n - 1.0)


def _pooled_error(n1: Any, v1: Array, n2: Any, v2: Array) -> tuple[Array, Any]:
    """Squared error of a difference of two means with one variance, and its degrees of freedom."""
    df = n1 + n2 - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((n1 - 1.0) * v1 + (n2 - 1.0) * v2) / df * (1.0 / n1 + 1.0 / n2), df


def _t_ratios(difference: Array, error: Array, rounding: Any) -> Array:
    """Difference over the root of its squared error; a tie is 0, a difference without any scatter infinite."""
    difference = np.where(np.abs(difference) <= rounding, 0.0, difference)
    se = np.sqrt(np.maximum(error, 0.0))
    se = np.where(se <= rounding, 0.0, se)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / se
    return np.where((difference == 0.0) & (se == 0.0), 0.0, t)


def _outcomes(t: Array, critical: Any) -> Array:
    """1, 0 or -1 by the sign of the t ratios beyond their critical value; NaN stays NaN."""
    return np.where(np.isnan(t), np.nan, np.sign(t) * (np.abs(t) > critical))


# ---------------------------------------------------------------------- flipped signs


class _Instance(NamedTuple):
    """Residuals of the runs of each algorithm (or of their differences) with their seeds; second minus first."""

    cells: list[tuple[Array, Index]]  # (n, budgets) and (n,)
    difference: Array  # (budgets,)

    @classmethod
    def of(cls, pairs: PairScores, benchmark: int, level: int, test: str) -> _Instance:
        scores = pairs.scores[benchmark, level]
        scores = scores[..., np.isfinite(pairs.scores[benchmark]).any(axis=(0, 1, 2))]
        values = [scores[1] - scores[0]] if test == "paired" else list(scores)
        cells, means = [], []
        for runs in values:
            seeds = np.flatnonzero(np.isfinite(runs).all(axis=1))
            n, mean = len(seeds), runs[seeds].mean(axis=0)
            # residuals are smaller than errors by 1 - 1/n in variance
            cells.append(((runs[seeds] - mean) * np.sqrt(n / (n - 1.0)), seeds))
            means.append(mean)
        return cls(cells, means[0] if test == "paired" else means[1] - means[0])

    @property
    def df(self) -> float:
        """Of the tests at the points."""
        return sum(len(seeds) - 1.0 for _, seeds in self.cells)

    def mean_outcomes(self, difference: Array, unit: Array, signs: Array, alpha: float) -> Array:
        """Mean outcome, up to its sign, of every table with this difference and new signs of the residuals."""
        moments = []
        for residuals, seeds in self.cells:
            n, scaled = float(len(seeds)), residuals / unit
            mean = signs[:, seeds] @ scaled / n
            squares = (scaled**2).sum(axis=0)
            moments.append((n, mean, np.maximum(squares - n * mean**2, 0.0) / (n - 1.0)))
        n, mean, variance = moments[-1]
        error, df = variance / n, n - 1.0
        if len(moments) == 2:
            n1, mean1, variance1 = moments[0]
            mean = mean - mean1
            error, df = _pooled_error(n1, variance1, n, variance)
        t = _t_ratios(mean + difference / unit, error, _ROUNDING_OF_SQUARES)
        return np.asarray(_outcomes(t, t_quantile(alpha / 2.0, df)).mean(axis=1))


def _unit(instances: list[_Instance], scores: Array) -> Array:
    """The spread of the residuals at each budget; 1 where they are rounding."""
    squares = [(residuals**2).mean(axis=0) for instance in instances for residuals, _ in instance.cells]
    unit: Array = np.sqrt(np.mean(squares, axis=0))
    unit[unit <= _ROUNDING_OF_SQUARES**2 * np.nanmax(np.abs(scores))] = 1.0
    return unit


def _signs(n: int, n_seeds: int, rng: np.random.Generator) -> Array:
    return np.asarray(2.0 * rng.integers(0, 2, size=(n, n_seeds)) - 1.0)


def flip_p(
    pairs: PairScores, where: tuple[int, int, int], observed: float, test: str, alpha: float, n: int, rng: Any
) -> float:
    """Two-sided p-value of a contrast of mean outcomes between two levels of a benchmark, ``(1 + count) / (n + 1)``.

    `where` has the positions of the benchmark, of the later and of the earlier level; the count is of tables with a
    contrast at least as large as the observed one.
    """
    b, late, early = where
    instances = [_Instance.of(pairs, b, level, test) for level in (late, early)]
    common = 0.5 * (instances[0].difference + instances[1].difference)
    unit = _unit(instances, pairs.scores[b])
    extreme, size = 0, max(_CHUNK // max(len(common), 1), 1)
    for start in range(0, n, size):
        signs = _signs(min(n - start, size), len(pairs.seeds), rng)
        drawn = [instance.mean_outcomes(common, unit, signs, alpha) for instance in instances]
        extreme += int((np.abs(drawn[0] - drawn[1]) >= abs(observed) - _SAME).sum())
    return (1.0 + extreme) / (n + 1.0)


def drawn_outcomes(
    pairs: PairScores, where: list[tuple[int, int]], *, test: str, alpha: float, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Mean outcomes of `n` tables with the differences that were observed, and new signs of the residuals.

    `where` has the positions of benchmarks and levels; the signs of a seed are the same on all of them. Returns the
    outcomes (n, instances), 1 where the first algorithm is better at all budgets, and the degrees of freedom of the
    tests at the points (instances,).
    """
    signs = _signs(n, len(pairs.seeds), rng)
    instances = [_Instance.of(pairs, b, v, test) for b, v in where]
    draws = [
        pairs.sign * instance.mean_outcomes(instance.difference, _unit([instance], pairs.scores[b]), signs, alpha)
        for instance, (b, _) in zip(instances, where, strict=True)
    ]
    return np.column_stack(draws), np.array([instance.df for instance in instances])


# ---------------------------------------------------------------------- contrasts


def contrasts(
    pairs: PairScores, outcomes: Outcomes, *, unit: str, adjust: str, test: str, alpha: float, n_draws: int, rng: Any
) -> tuple[pd.DataFrame, list[str]]:
    """One row per benchmark and pair of levels with the contrast and its p-values, and notes on how they were made."""
    means = mean_outcomes(outcomes.outcome)
    both = np.isfinite(means)
    where = [(b, late, early) for late, early in pairs.pairs() for b in np.flatnonzero(both[:, late] & both[:, early])]
    b, late, early = (np.array(part, dtype=np.intp) for part in zip(*where, strict=True))
    table = pd.DataFrame(
        {
            "benchmark": [pairs.benchmarks[i] for i in b],
            "level": [pairs.levels[i] for i in late],
            "reference": [pairs.levels[i] for i in early],
            "level_outcome": means[b, late],
            "reference_outcome": means[b, early],
            "contrast": means[b, late] - means[b, early],
        }
    )
    contrast = table["contrast"].to_numpy()
    if unit == "budget":
        raw, p, notes = _p_over_budgets(outcomes.outcome, contrast, b, late, early, adjust)
    else:
        raw = np.array(
            [
                flip_p(pairs, *at, test, alpha, n_draws, rng)
                for at in zip([(int(i), j, k) for i, j, k in where], contrast.tolist(), strict=True)
            ]
        )
        p, notes = adjust_raw(raw, adjust, len(raw)), _flip_notes(pairs, len(raw), n_draws, adjust, alpha)
    return table.assign(p_raw=raw, p_value=p), notes


def _flip_notes(pairs: PairScores, m: int, n: int, adjust: str, alpha: float) -> list[str]:
    notes = [
        f"p-values of the contrasts: {n:,} tables with the common difference at both levels and random signs of the "
        f"residuals, flipped by seed; {ADJUSTMENT_NAMES[adjust]} adjustment over {m} contrast{'s' * (m > 1)}."
    ]
    if adjust in ("holm", "bonferroni", "sidak") and m / (n + 1.0) >= alpha:
        notes.append(
            f"The smallest p-value that {n:,} tables can give is not significant after the adjustment: use n_draws of "
            f"at least {int(np.ceil(2 * m / alpha)):,}."
        )
    seeds = int(pairs.ran.any(axis=(1, 2)).sum(axis=1).min())
    if seeds < _FEW_SEEDS:
        notes.append(
            f"There are benchmarks with {seeds} seeds only, whose signs give {2 ** (seeds - 1):,} different tables, "
            "so small p-values are impossible there."
        )
    return notes


def _p_over_budgets(
    outcome: Array, contrast: Array, b: Index, late: Index, early: Index, adjust: str
) -> tuple[Array, Array, list[str]]:
    """Analysis of variance of the outcomes, budgets as repetitions: the p-values of the paper."""
    n = np.isfinite(outcome).sum(axis=2).astype(float)
    df = float((n[n > 0] - 1.0).sum())
    variance = float(np.nansum((outcome - mean_outcomes(outcome)[..., None]) ** 2)) / df
    se = np.sqrt(variance * (1.0 / n[b, late] + 1.0 / n[b, early]))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(contrast) < 1e-12, 0.0, np.abs(contrast) / se)
    family, raw = int((n > 0).sum()), two_sided_p(t, df)
    if adjust == "tukey":
        p, over = ptukey(np.sqrt(2.0) * t, family, df, upper=True), f"all pairs of {family} instances"
    else:
        p, over = adjust_raw(raw, adjust, len(t)), f"{len(t)} contrasts"
    note = (
        f"p-values of the contrasts: analysis of variance with the budgets as repetitions, {ADJUSTMENT_NAMES[adjust]} "
        f"adjustment over {over}. The outcomes at the budgets are of the same runs and not independent, so these "
        "p-values are too small; unit='run' gives honest ones."
    )
    return raw, p, [note]


def overall(pairs: PairScores, table: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """One row per pair of levels: the mean contrast over benchmarks with its t-test and the interval of its step."""
    rows = []
    for late, early in pairs.pairs():
        level, reference = pairs.levels[late], pairs.levels[early]
        part = table["contrast"][(table["level"] == level) & (table["reference"] == reference)].to_numpy(dtype=float)
        if not len(part):
            continue
        m, mean = len(part), float(part.mean())
        se = float(part.std(ddof=1) / np.sqrt(m)) if m > 1 else np.nan
        t = np.nan if m < 2 else 0.0 if abs(mean) < 1e-12 else mean / se if se > 1e-12 else np.copysign(np.inf, mean)
        rows.append((level, reference, m, mean, se, m - 1.0, t))
    frame = pd.DataFrame(rows, columns=["level", "reference", "benchmarks", "contrast", "se", "df", "t_ratio"])
    t_ratio, df = frame["t_ratio"].to_numpy(dtype=float), np.maximum(frame["df"].to_numpy(dtype=float), 1.0)
    raw = two_sided_p(t_ratio, df)
    half = critical_values(df, raw, method="holm", n_tests=len(frame), level=1.0 - alpha) * frame["se"]
    low, high = frame["contrast"] - half, frame["contrast"] + half
    return frame.assign(p_value=adjust_raw(raw, "holm", len(frame)), ci_low=low, ci_high=high)


def without_room(table: pd.DataFrame, over_benchmarks: pd.DataFrame) -> NDArray[np.bool_]:
    """Where no contrast was found that could not be as large as the mean, since outcomes end at -1 and 1."""
    mean = table[["level", "reference"]].merge(over_benchmarks, on=["level", "reference"], how="left")["contrast"]
    up = np.sign(mean)
    room = np.minimum(1.0 - up * table["reference_outcome"], 1.0 + up * table["level_outcome"])
    return np.asarray(below(room, np.abs(mean)) & (table["decision"] == NONE_FOUND), dtype=bool)


def decided(
    table: pd.DataFrame, over_benchmarks: pd.DataFrame, alpha: float, n_draws: int | None
) -> tuple[pd.DataFrame, list[str]]:
    """The contrasts with their decisions, whether the benchmark is singled out, and a note on close calls.

    With the number of drawn tables the note names the p-values that other random signs could move to the other side of
    their limit.
    """
    columns = ["level", "reference", "contrast", "p_value"]
    of_pair = table[columns[:2]].merge(over_benchmarks[columns], on=columns[:2], how="left")
    same = np.sign(table["contrast"].to_numpy(dtype=float)) == np.sign(of_pair["contrast"].to_numpy(dtype=float))
    raw, p = (table[name].to_numpy(dtype=float) for name in ("p_raw", "p_value"))
    # the other benchmarks give the direction, so the test of whether this one has it is one-sided
    cases = [same & below(p, alpha), same & (raw < 2.0 * alpha), ~same & (raw < alpha)]
    decision = np.select(cases, [FOLLOWS, UNCLEAR, REVERSED], default=NONE_FOUND)
    odd = below(of_pair["p_value"], alpha) & np.isin(decision, [NONE_FOUND, REVERSED])
    table = table.assign(decision=decision, singled_out=odd)
    if n_draws is None:
        return table, []
    error = 2.0 * np.sqrt(raw * (1.0 - raw) / (n_draws + 1.0))
    several = len(over_benchmarks) > 1
    close = []
    for what, values, errors, limits in (
        # an adjusted p-value is about a multiple of the unadjusted one
        ("adjusted", p, error * p / raw, np.full(len(p), alpha)),
        # a contrast that follows after adjustment has no second limit
        ("unadjusted", np.where(same & (p < alpha), np.nan, raw), error, np.where(same, 2.0 * alpha, alpha)),
    ):
        for i in np.flatnonzero(np.abs(values - limits) <= errors):
            name, level, reference = (format_level(table[key].iloc[i]) for key in ("benchmark", *columns[:2]))
            which = f"{name}, {level} - {reference}" if several else name
            close.append(
                f"{which} ({what} {p_text(values[i])}, limit {limits[i]:g}, error {written(errors[i], '.2g')})"
            )
    note = (
        f"Close calls, which other random signs could change: the Monte Carlo error of a p-value (two standard errors, "
        f"n_draws={n_draws:,}) reaches the limit it is compared with: {listed(close, 6)}. A larger n_draws settles it."
    )
    return table, [note] if close else []
