"""Contrasts of mean outcomes between the levels of a metafeature: their p-values, and what is decided by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._rounding import below, written
from lmemtest.inference.distributions.student import t_quantile, two_sided_p
from lmemtest.inference.distributions.studentized_range import ptukey
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.studies.benchmark.outcomes import Outcomes, PairScores
from lmemtest.studies.benchmark.sign_flips import flip_p
from lmemtest.words import format_level, listed, p_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

FOLLOWS, UNCLEAR, NONE_FOUND, REVERSED = "follows", "unclear", "none found", "reversed"
_FEW_SEEDS = 7  # fewer have at most 32 different sign patterns: no p-value below 0.03


def mean_outcomes(outcome: Array) -> Array:
    """(m, k): mean outcome over the budgets; NaN where nothing is compared."""
    there = np.isfinite(outcome)
    n = there.sum(axis=2)
    return np.where(n > 0, np.where(there, outcome, 0.0).sum(axis=2) / np.maximum(n, 1), np.nan)


def contrasts(
    pairs: PairScores,
    outcomes: Outcomes,
    means: Array,
    error: str,
    adjust: str,
    test: str,
    alpha: float,
    n: int,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, list[str]]:
    """One row per benchmark and pair of levels with the contrast and its p-values, and notes on how they were made."""
    both = np.isfinite(means)
    where = [(b, late, early) for late, early in pairs.pairs() for b in np.flatnonzero(both[:, late] & both[:, early])]
    b, late, early = (np.array(part, dtype=np.intp) for part in zip(*where, strict=True))
    contrast = means[b, late] - means[b, early]
    if error == "budgets":
        raw, p, notes = _p_over_budgets(outcomes.outcome, contrast, b, late, early, adjust)
    else:
        raw = np.array(
            [
                flip_p(pairs, int(i), j, k, observed=value, test=test, alpha=alpha, n=n, rng=rng)
                for (i, j, k), value in zip(where, contrast, strict=True)
            ]
        )
        p, notes = adjust_raw(raw, adjust, len(raw)), _flip_notes(pairs, len(raw), n, adjust, alpha)
    table = pd.DataFrame(
        {
            "benchmark": [pairs.benchmarks[i] for i in b],
            "level": [pairs.levels[i] for i in late],
            "reference": [pairs.levels[i] for i in early],
            "level_outcome": means[b, late],
            "reference_outcome": means[b, early],
            "contrast": contrast,
            "p_raw": raw,
            "p_value": p,
        }
    )
    return table, notes


def _flip_notes(pairs: PairScores, m: int, n: int, adjust: str, alpha: float) -> list[str]:
    notes = [
        f"p-values of the contrasts: {n:,} tables with the common difference at both levels and random signs of the "
        f"residuals, flipped by seed; {ADJUSTMENT_NAMES[adjust]} adjustment over {m} contrast{'s' * (m > 1)}."
    ]
    if adjust in ("holm", "bonferroni", "sidak") and m / (n + 1.0) >= alpha:
        notes.append(
            f"The smallest p-value that {n:,} tables can give is not significant after the adjustment: use n of at "
            f"least {int(np.ceil(2 * m / alpha)):,}."
        )
    seeds = int(pairs.ran.any(axis=(1, 2)).sum(axis=1).min())
    if seeds < _FEW_SEEDS:
        notes.append(
            f"There are benchmarks with {seeds} seeds only, whose signs give {2 ** (seeds - 1):,} different tables, "
            "so small p-values are impossible there."
        )
    return notes


def signs_notes(table: pd.DataFrame, over_benchmarks: pd.DataFrame, alpha: float, n: int) -> list[str]:
    """Note the p-values that other random signs could move to the other side of their limit.

    Parameters
    ----------
    table : pandas.DataFrame
        From `decided`.
    over_benchmarks : pandas.DataFrame
        From `overall`.
    alpha : float
    n : int
        Tables per contrast.
    """
    raw, p = (table[name].to_numpy(dtype=float) for name in ("p_raw", "p_value"))
    error = 2.0 * np.sqrt(raw * (1.0 - raw) / (n + 1.0))
    same = _same_direction(table, over_benchmarks)
    close = [
        # an adjusted p-value is about a multiple of the unadjusted one
        *_close_calls(table, "adjusted", p, error * p / raw, np.full(len(p), alpha)),
        # a contrast that follows after adjustment has no second limit
        *_close_calls(
            table, "unadjusted", np.where(same & (p < alpha), np.nan, raw), error, np.where(same, 2.0 * alpha, alpha)
        ),
    ]
    if not close:
        return []
    return [
        f"Close calls, which other random signs could change: the Monte Carlo error of a p-value (two standard errors, "
        f"n={n:,}) reaches the limit it is compared with: {listed(close, 6)}. A larger n settles it."
    ]


def _close_calls(table: pd.DataFrame, what: str, p: Array, error: Array, limit: Array) -> list[str]:
    """The contrasts whose p-value is within its error of its limit, in words; NaN is never close."""
    close = np.flatnonzero(np.abs(p - limit) <= error).tolist()
    return [
        f"{_contrast_name(table, i)} ({what} {p_text(p[i])}, limit {limit[i]:g}, error {written(error[i], '.2g')})"
        for i in close
    ]


def _contrast_name(table: pd.DataFrame, i: int) -> str:
    name, level, reference = (format_level(table[key].iloc[i]) for key in ("benchmark", "level", "reference"))
    one_pair = len(table[["level", "reference"]].drop_duplicates()) == 1
    return name if one_pair else f"{name}, {level} - {reference}"


def _p_over_budgets(
    outcome: Array, contrast: Array, b: Index, late: Index, early: Index, adjust: str
) -> tuple[Array, Array, list[str]]:
    """Analysis of variance of the outcomes, budgets as repetitions: the p-values of the paper."""
    there = np.isfinite(outcome)
    n = there.sum(axis=2).astype(float)
    centred = outcome - mean_outcomes(outcome)[..., None]
    df = float((n[n > 0] - 1.0).sum())
    variance = float(np.nansum(centred**2)) / df
    se = np.sqrt(variance * (1.0 / n[b, late] + 1.0 / n[b, early]))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(contrast) < 1e-12, 0.0, np.abs(contrast) / se)
    family, raw = int((n > 0).sum()), two_sided_p(t, df)
    if adjust == "tukey":
        p = ptukey(np.sqrt(2.0) * t, family, df, upper=True)
        over = f"all pairs of {family} instances"
    else:
        p, over = adjust_raw(raw, adjust, len(t)), f"{len(t)} contrasts"
    return (
        raw,
        p,
        [
            f"p-values of the contrasts: analysis of variance with the budgets as repetitions, "
            f"{ADJUSTMENT_NAMES[adjust]} adjustment over {over}. The outcomes at the budgets are of the same runs and "
            "not independent, so these p-values are too small; error='runs' gives honest ones."
        ],
    )


def overall(pairs: PairScores, table: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """One row per pair of levels: the mean contrast over benchmarks with its t-test and interval."""
    rows = []
    for late, early in pairs.pairs():
        level, reference = pairs.levels[late], pairs.levels[early]
        part = table["contrast"][(table["level"] == level) & (table["reference"] == reference)].to_numpy(dtype=float)
        if not len(part):
            continue
        m, mean = len(part), float(part.mean())
        se = float(part.std(ddof=1) / np.sqrt(m)) if m > 1 else np.nan
        t = np.nan if m < 2 else 0.0 if abs(mean) < 1e-12 else mean / se if se > 1e-12 else np.copysign(np.inf, mean)
        half = float(t_quantile(alpha / 2.0, m - 1.0)) * se if m > 1 else np.nan
        rows.append((level, reference, m, mean, se, m - 1.0, t, mean - half, mean + half))
    names = ["level", "reference", "benchmarks", "contrast", "se", "df", "t_ratio", "ci_low", "ci_high"]
    frame = pd.DataFrame(rows, columns=names)
    raw = two_sided_p(frame["t_ratio"].to_numpy(dtype=float), np.maximum(frame["df"].to_numpy(dtype=float), 1.0))
    frame.insert(7, "p_value", adjust_raw(raw, "holm", len(frame)))
    return frame


def _of_pair(table: pd.DataFrame, over_benchmarks: pd.DataFrame) -> pd.DataFrame:
    """The contrast over benchmarks of each row's levels, and its p-value."""
    columns = ["level", "reference", "contrast", "p_value"]
    return table[["level", "reference"]].merge(over_benchmarks[columns], on=["level", "reference"], how="left")


def _same_direction(table: pd.DataFrame, over_benchmarks: pd.DataFrame) -> NDArray[np.bool_]:
    mean = _of_pair(table, over_benchmarks)["contrast"].to_numpy(dtype=float)
    return np.asarray(np.sign(table["contrast"].to_numpy(dtype=float)) == np.sign(mean))


def decided(table: pd.DataFrame, over_benchmarks: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """The contrasts with their verdicts, and whether the benchmark is singled out."""
    of_pair = _of_pair(table, over_benchmarks)
    adjusted = below(table["p_value"], alpha)
    single = table["p_raw"].to_numpy(dtype=float)
    same = _same_direction(table, over_benchmarks)
    # the other benchmarks give the direction, so the test of whether this one has it is one-sided
    cases = [same & adjusted, same & (single < 2.0 * alpha), ~same & (single < alpha)]
    verdict = np.select(cases, [FOLLOWS, UNCLEAR, REVERSED], default=NONE_FOUND)
    general = below(of_pair["p_value"], alpha)
    return table.assign(verdict=verdict, singled_out=general & np.isin(verdict, [NONE_FOUND, REVERSED]))
