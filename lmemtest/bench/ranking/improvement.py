"""Probability of improvement: that a run of one algorithm is better than a run of another on the same benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.resampling import Resampling, band_of, intervals
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tolerance, written
from lmemtest.core.words import percent

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index


def improvement(resampling: Resampling, *, method: str, level: float) -> Answer:
    """The probabilities of `AggregateScores.improvement`."""
    blocks = resampling.blocks
    k, names = len(blocks.algorithms), list(blocks.algorithms)
    by_instance = np.array([_duels(blocks, i)[2] for i in range(len(blocks.runs))])  # (m, k, k)
    by_block = np.zeros((len(blocks.names), k, k))
    np.add.at(by_block, blocks.block, by_instance * resampling.share[:, None, None])
    observed = by_block.mean(axis=0)
    draws = np.concatenate(list(_drawn(resampling)))
    rows, matrix = [], pd.DataFrame(0.5, index=names, columns=names)
    for x, y in combinations(range(k), 2):
        without = _left_out(resampling, by_instance[:, x, y], by_block[:, x, y], x, y) if method == "bca" else []
        ends = intervals(draws[:, x, y, None], observed[None, x, y], without, method, level)
        low, high = np.clip(ends[:, 0], 0.0, 1.0)
        p = float(observed[x, y])
        rows.append((names[x], names[y], p, float(low), float(high)))
        matrix.iloc[x, y], matrix.iloc[y, x] = p, 1.0 - p
    band = band_of(resampling, method, level)
    return Answer(
        question="improvement",
        title=f"Probability of improvement in {blocks.score}",
        tables={"table": pd.DataFrame(rows, columns=["left", "right", "probability", "ci_low", "ci_high"]),
                "matrix": matrix},
        values={"algorithms": blocks.algorithms, "method": method, "level": level, "score": blocks.score,
                "direction": blocks.direction, "band": band},
        facts=(band,),
        findings=_findings(rows, level, " of families like these" if blocks.unit == "family" else ""),
        notes=blocks.notes,
        formats=dict.fromkeys(["probability", "ci_low", "ci_high"], ".3f"),
        figure="improvement_plot",
    )  # fmt: skip


def _findings(rows: list[tuple[str, str, float, float, float]], level: float, where: str) -> tuple[str, ...]:
    """One sentence per pair, from the side that is more often better."""
    sentences = []
    for left, right, p, low, high in rows:
        if p < 0.5:
            left, right, p, low, high = right, left, 1.0 - p, 1.0 - high, 1.0 - low
        ends = f"{percent(level)} interval {written(low, '.2f')} to {written(high, '.2f')}"
        sentences.append(
            f"A run of {left} is better than one of {right} on the same benchmark{where} with probability "
            f"{written(p, '.2f')} ({ends})."
        )
    return tuple(sentences)


def _duels(blocks: Blocks, instance: int) -> tuple[Array, Array, Array]:
    """All runs on an instance against each other: 1 where the first is better, one half for ties, ``(k, r, k r)``.

    Beside them the share of the runs of each algorithm than which a run is better, ``(k, r, k)``, and its mean over the
    runs, ``(k, k)``.
    """
    runs = blocks.runs[instance]
    gain = (runs if blocks.direction == "maximize" else -runs).ravel()
    difference = gain[:, None] - gain
    difference[np.abs(difference) <= tolerance(runs)] = 0.0
    k, r = runs.shape
    n_runs = np.isfinite(runs).sum(axis=1)
    won = np.nan_to_num(0.5 + 0.5 * np.sign(difference)).reshape(k, r, k * r)
    by_run = won.reshape(k, r, k, r).sum(axis=3) / n_runs
    return won, by_run, by_run.sum(axis=1) / n_runs[:, None]


def _drawn(resampling: Resampling) -> Iterator[Array]:
    """The probabilities in the draws, some draws at a time, ``(draws, k, k)``."""
    blocks = resampling.blocks
    m, k, r = blocks.runs.shape
    won = [_duels(blocks, i)[0] for i in range(m)]
    for parts in zip(*(resampling.picks(a) for a in range(k)), strict=True):
        chosen = parts[0][0]
        size, where = chosen.size, chosen.ravel()
        share = np.zeros((size, k, r))  # of each run in its algorithm's runs at a place
        for a, (_, run, weight) in enumerate(parts):
            at = (np.arange(size) * r)[:, None] + run.reshape(size, r)
            counts = np.bincount(at.ravel(), weights=weight.ravel(), minlength=size * r).reshape(size, r)
            total = counts.sum(axis=1)
            share[:, a] = np.divide(counts, total[:, None], out=np.zeros_like(counts), where=total[:, None] > 0)
        draw, out = np.repeat(np.arange(len(chosen)), size // len(chosen)), np.zeros((len(chosen), k, k))
        for i in range(m):
            rows = np.flatnonzero(where == i)
            found = np.empty((len(rows), k, k))
            for a in range(k):
                found[:, a] = ((share[rows, a] @ won[i][a]) * share[rows].reshape(-1, k * r)).reshape(-1, k, r).sum(2)
            np.add.at(out, draw[rows], found * resampling.share[i] / chosen.shape[1])
        yield out


def _left_out(resampling: Resampling, by_instance: Array, by_block: Array, x: int, y: int) -> list[tuple[Index, Array]]:
    """The probability without each unit in turn, with the sample of that unit: it is linear in each sample."""
    blocks, count = resampling.blocks, len(by_block)
    if resampling.unit == "benchmarks":
        left = (by_block.sum() - by_block) / (count - 1)
        return [(np.zeros(count, dtype=np.intp), left[:, None])]
    out = []
    for i, p in enumerate(by_instance):
        ran, by_run = np.isfinite(blocks.runs[i]), _duels(blocks, i)[1]
        sides = by_run[x, ran[x], y], 1.0 - by_run[y, ran[y], x]
        for side, own in enumerate(sides):
            if len(own) > 1:
                left = by_block.mean() + resampling.share[i] / count * (p - own) / (len(own) - 1)
                out.append((np.full(len(own), 2 * i + side, dtype=np.intp), left[:, None]))
    return out
