"""Probability of outperforming over many benchmarks: each by itself, all together, and on how many it holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.outperforming.intervals import share
from lmemtest.bench.outperforming.pairs import (
    alike,
    better_on,
    intervals,
    least_p,
    of_families,
    p_values,
    paired_counts,
    partial_conjunction,
    together,
    units,
    unpaired_counts,
)
from lmemtest.bench.outperforming.verdict import CONCLUSIONS, adjusted_gamma, conclusions, in_words, meaning
from lmemtest.core.caller import advice, named
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most, below, written
from lmemtest.core.validate import check_choice, resolve_rng
from lmemtest.core.words import confidence, counted, listed, plural, suggest
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.outperforming.intervals import UStatistic
    from lmemtest.core.arrays import Array, Mask

METHODS = ("mixed", "percentile")
FEW_BENCHMARKS = 5
_INTERVALS = {
    "families": "score interval with the variance of the mean of the families' means",
    "families drawn": "percentile interval, families drawn again and runs within their benchmarks",
    "mixed": "score interval with the variance of a mixed model of wins with random benchmarks",
    "percentile": "percentile interval, benchmarks drawn again and runs within them",
    "score": "score interval of the only benchmark (exact where fewer than five runs are paired)",
}


def over_benchmarks(
    runs: Runs,
    algorithms: Sequence[str] | None,
    paired: bool,
    gamma: float,
    alpha: float,
    *,
    method: str = "auto",
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
    control: str | None = None,
    comparisons: int | None = None,
) -> Answer:
    """`outperforming` of runs; `comparisons` is the size of the family, where not all of it is asked."""
    check_choice(method, "method", ("auto", *METHODS))
    generator = resolve_rng(rng)
    if paired and runs.seed is None:
        raise DesignError(
            "runs has no seed column, so no run of one algorithm belongs to one of another. "
            f"Name it: {advice('role', role='seed')}, or compare all runs with {advice('unpaired')}."
        )
    sample, blocks = runs.study.sampled, blocks_of(runs, unit="benchmark").within_families()
    blocks = blocks.of(_check_algorithms(algorithms, blocks.algorithms))
    pairs = _pairs(control, blocks.algorithms)
    alpha_each = alpha / (comparisons or len(pairs))
    gamma_each = adjusted_gamma(gamma, alpha, comparisons or len(pairs))
    if method == "percentile" and below((n_draws + 1) * 0.5 * alpha_each, 1.0):
        raise ArgumentError(
            f"{n_draws:,} draws have no quantile with {0.5 * alpha_each:.3g} beyond it, as {len(pairs)} pairs need. "
            f"{advice('draws_of_pairs', least=int(np.ceil(2.0 / alpha_each)))}"
        )
    left, right = np.array(pairs, dtype=np.intp).T
    family = statistics = samples = None
    if blocks.family is not None:
        family = np.unique(blocks.family[blocks.starts].astype(str), return_inverse=True)[1]
    incomplete = False
    if paired:
        counts, binary, incomplete = paired_counts(blocks, left, right)
    else:
        counts, statistics, place, binary = unpaired_counts(blocks, left, right)
    if control is None and (algorithms is None or len(pairs) > 1):  # the one on the left is more often better
        turn = below(np.nanmean(units(counts, family)[0], axis=1), 0.5)
        left, right = np.where(turn, [right, left], [left, right])
        counts = np.where(turn[:, None], counts[::-1], counts)
        statistics = statistics and statistics.turned(turn[:, None])
    if not paired:
        samples = (blocks.run_gains, place, left, right)
    n_benchmarks = counts.any(axis=0).sum(axis=1)
    method = ("mixed" if method == "auto" else method) if n_benchmarks.max() > 1 else "score"
    how: dict[str, Any] = {"method": method, "level": 1.0 - alpha_each, "n_draws": n_draws, "rng": generator}
    middle, low, high = together(counts, statistics, samples, family, **how)
    p, names = p_values(counts, samples), np.array(blocks.algorithms, dtype=object)
    sides = {"left": names[left], "right": names[right]}
    n_families = {} if family is None else {"n_families": np.isfinite(of_families(counts, family)).sum(axis=1)}
    table = pd.DataFrame(
        {
            **sides,
            **n_families,
            "n_benchmarks": n_benchmarks,
            "n_pairs": counts.sum(axis=(0, 2)).astype(int),
            "mean": np.nanmean(units(counts, family)[0], axis=1),
            "estimate": middle,
            "ci_low": low,
            "ci_high": high,
            "conclusion": conclusions(low, high, gamma_each),
            "better_on": better_on(p, "bonferroni", 0.5 * alpha_each),
            "better_on_most": better_on(least_p(counts, statistics), "bonferroni", 0.5 * alpha_each),
            **({"risk_difference": np.where(binary, 2.0 * middle - 1.0, np.nan)} if binary.any() else {}),
        }
    )
    benchmarks = _each_benchmark(counts, statistics, p, 1.0 - alpha, sides, blocks)
    ordered = np.arange(p.shape[1]) < n_benchmarks[:, None]
    replicability = {
        **{side: column[np.nonzero(ordered)[0]] for side, column in sides.items()},
        "u": np.nonzero(ordered)[1] + 1,
        **{f"p_{name}": partial_conjunction(p, name)[ordered] for name in ("bonferroni", "fisher")},
    }
    column = sample.column if sample.noun == "family" else None
    kind = method if column is None else {"mixed": "families", "percentile": "families drawn"}.get(method, method)
    band = f"{confidence(1.0 - alpha_each)} {_INTERVALS[kind]}"
    number = round(alpha / alpha_each)
    shared = f" (for {number} pairs: alpha = {alpha:g} and gamma = {gamma:g}, adjusted)" * (number > 1)
    settings = {"paired": paired, "gamma": gamma, "alpha": alpha, "method": method, "score": blocks.score}
    per_pair = {"gamma_adjusted": gamma_each, "alpha_adjusted": alpha_each}
    notes = _notes(table, counts, binary, blocks, paired, incomplete, method, alpha_each)
    return Answer(
        question="outperforming",
        title=f"Probability that a {blocks.noun} is better on the same benchmark, in {blocks.score}",
        tables={"table": table, "benchmarks": benchmarks, "replicability": pd.DataFrame(replicability)},
        values={
            **settings,
            **per_pair,
            "direction": blocks.direction,
            "family": column,
            "band": band,
            "noun": blocks.noun,
        },
        facts=(f"{band}; ties count one half.", in_words(gamma_each, shared)),
        findings=_findings(table, alpha_each, gamma_each, column, blocks.noun),
        notes=(*blocks.notes, *sample.notes, *sample.weights, *notes),
        printed=table.drop(columns="better_on_most"),
        formats=dict.fromkeys(["mean", "estimate", "ci_low", "ci_high", "risk_difference"], ".3f"),
        figure="outperforming_plot",
    )


def _each_benchmark(
    counts: Array, statistics: UStatistic | None, p: Array, level: float, sides: dict[str, Any], blocks: Blocks
) -> pd.DataFrame:
    """One row per benchmark of each pair."""
    pair, at = np.nonzero(counts.any(axis=0))
    adjusted = np.empty(p.shape)
    # Holm's are those of "better on u benchmarks", in order
    np.put_along_axis(adjusted, np.argsort(p, axis=1, kind="stable"), partial_conjunction(p, "bonferroni"), axis=1)
    low, high = intervals(counts, statistics, level)
    columns = {"estimate": share(counts), "ci_low": low, "ci_high": high, "p_raw": p, "p_value": adjusted}
    family = None if blocks.family is None else blocks.family[blocks.starts].astype(object)
    return pd.DataFrame(
        {
            **{side: names[pair] for side, names in sides.items()},
            **({} if family is None else {"family": family[at]}),
            "benchmark": np.array(blocks.names, dtype=object)[at],
            **{
                name: count[pair, at].astype(int)
                for name, count in zip(("wins", "ties", "losses"), counts, strict=True)
            },
            **{name: column[pair, at] for name, column in columns.items()},
        }
    )


def _findings(table: pd.DataFrame, alpha: float, gamma: float, family: str | None, noun: str) -> tuple[str, ...]:
    """Of a pair: the conclusion, the number of benchmarks, what it means. Of several: a headline, and each pair."""
    rows = [_of_pair(row, alpha, family, noun) for row in table.to_dict("records")]
    if len(rows) == 1:
        (first, *replicated), row = rows[0], table.iloc[0]
        names = str(row["left"]), str(row["right"])
        more = meaning(row["conclusion"], row["ci_high"], gamma, *names)
        return (f"{first}.", *(f"{clause} (partial conjunction)." for clause in replicated), *more)
    number = table["conclusion"].value_counts()
    parts = [f"{name} in {number[name]}" for name in CONCLUSIONS if name in number]
    turned = below(table["ci_high"].to_numpy(), 0.5)
    second = f"; in {turned.sum()} the second is significantly more often better" if turned.any() else ""
    for clauses, backwards, right in zip(rows, turned, table["right"], strict=True):
        if backwards:
            clauses[1:] = [f"{right} is significantly more often better"]
    head = f"Of {len(table)} pairs of algorithms, the advantage of the first is {', '.join(parts)}{second}."
    return (head, *(f"{'; '.join(clauses)}." for clauses in rows))


def _of_pair(row: dict[Any, Any], alpha: float, family: str | None, noun: str) -> list[str]:
    """The conclusion, and on how many benchmarks it holds."""
    left, right, low, high = (row[name] for name in ("left", "right", "ci_low", "ci_high"))
    ends = f"{confidence(1.0 - alpha)} interval {written(low, '.2f')} to {written(high, '.2f')}"
    where = "" if family is None else f" of {plural(family)} like these"
    clauses = [
        f"A {noun} of {left} is better than one of {right} on the same benchmark{where} with probability "
        f"{written(row['estimate'], '.2f')} ({'no interval' if np.isnan(low) else ends}): {row['conclusion']}"
    ]
    if row["n_benchmarks"] > 1 and row["better_on_most"]:
        count = counted(row["n_benchmarks"], "benchmark")
        some = f"{left} is significantly better than {right} on at least {row['better_on']} of {count}"
        none = f"{left} cannot be counted as better than {right} on any number of {count}"
        clauses.append(some if row["better_on"] else none)
    return clauses


def _pairs(control: Any, algorithms: tuple[str, ...]) -> list[tuple[int, int]]:
    """Which are compared, by their position: all pairs, or the control with all others."""
    if control is None:
        return list(combinations(range(len(algorithms)), 2))
    if not isinstance(control, str) or control not in algorithms:
        raise ArgumentError(
            f"{named('control')} must be one of the algorithms ({listed(algorithms)}), got {control!r:.80}."
            f"{suggest(str(control), algorithms)}"
        )
    first = algorithms.index(control)
    return [(first, other) for other in range(len(algorithms)) if other != first]


def _check_algorithms(algorithms: Any, of_runs: tuple[str, ...]) -> tuple[str, ...]:
    """Two or more of the algorithms of the runs; all of them by default."""
    names, what = of_runs if algorithms is None else algorithms, named("algorithms")
    if isinstance(names, str) or not isinstance(names, Sequence) or any(not isinstance(name, str) for name in names):
        raise ArgumentError(f"{what} must be two names or more, got {names!r:.80}.")
    for name in names:
        if name not in of_runs:
            raise ArgumentError(
                f"{what} names {name!r}, which is not in the runs. Algorithms: {listed(of_runs)}."
                f"{suggest(name, of_runs)}"
            )
    if len(set(names)) < max(len(names), 2):
        raise ArgumentError(f"{what} must be two different names or more, got {listed(names) or 'none'}.")
    return tuple(names)


def _notes(
    table: pd.DataFrame,
    counts: Array,
    binary: Mask,
    blocks: Blocks,
    paired: bool,
    incomplete: bool,
    method: str,
    alpha: float,
) -> list[str]:
    notes = []
    unit = "benchmark" if blocks.family is None else "family"
    fewest = int(table[f"n_{plural(unit)}"].min())
    most = len(blocks.names) if blocks.family is None else len(set(blocks.family))
    if fewest < most:
        alone = f", and the interval is of this {unit} by itself: it says nothing about others" * (fewest == 1)
        notes.append(
            f"Some pair has {plural(blocks.noun)} to compare on {fewest} of {counted(most, unit)} only{alone}."
        )
    if incomplete:
        notes.append("Runs without a partner of the same seed are left out, and rows that repeat a run are averaged.")
    of_one_sign = alike(counts)
    without_variance = of_one_sign & (table["n_benchmarks"].to_numpy() > 1)
    if method == "mixed" and not without_variance.all():
        shared = "" if paired else f" A {blocks.noun} that is in several comparisons is a random effect as well."
        notes.append(
            "Wins are coded 1, ties 1/2, losses 0; the model assumes equal variances within benchmarks and treats "
            f"benchmarks as a random sample, so the probability refers to a new benchmark of their kind.{shared}"
            if blocks.family is None
            else "The interval takes the benchmarks' own probabilities as they are, assumes equal variances within "
            "families and treats families as a random sample, so the probability refers to a benchmark of a new family."
        )
    if 1 < fewest < FEW_BENCHMARKS:
        notes.append(
            f"{counted(fewest, unit)} say little about others: intervals are wide, 0.6 to 0.9 with three "
            "in simulated studies, and percentile intervals are too short there."
        )
    if without_variance.any():
        notes.append(
            "Where all pairs ended alike there is no variance: the interval is Clopper and Pearson's of as many wins "
            f"or ties as there are {plural(unit)}, which can be wider than that of a pair with a few losses."
        )
        if not below(0.5, (0.5 * alpha) ** (1.0 / most)):
            notes.append(f"With {counted(most, unit)} even winning all pairs on all of them is not significant by it.")
    most_pairs = int(counts.sum(axis=0).max())
    if paired and not at_most(0.5**most_pairs, 0.5 * alpha):
        notes.append(
            f"With {counted(most_pairs, 'pair')} on a benchmark at most, no sign test of one benchmark can reach "
            f"{0.5 * alpha:.3g}, so better_on counts none of them by Bonferroni; Fisher's combination can "
            f"({advice('to_frame', part='replicability')})."
        )
    if binary.all() and not (of_one_sign & counts[1].any(axis=1)).all():
        notes.append(
            "Scores are 0 and 1, so most pairs are tied and count half: the probability is (1 + difference of the "
            "shares) / 2. risk_difference is that difference, with limits 2 ci_low - 1 and 2 ci_high - 1."
        )
    return notes
