"""Probability of outperforming of two samples of runs, with its interval and effect sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.outperforming.effect_size import check_samples, effect_sizes, magnitude
from lmemtest.bench.outperforming.intervals import FEW, PAIRED, UNPAIRED, counts_of, paired_interval, unpaired_interval
from lmemtest.bench.outperforming.verdict import conclusions, in_words, meaning
from lmemtest.core.arrays import Array
from lmemtest.core.caller import advice
from lmemtest.core.proportions import worth_in_pairs
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, tolerance, written
from lmemtest.core.validate import check_choice, resolve_rng
from lmemtest.core.words import counted, percent

_INTERVALS = {
    "score": "score interval (Tango; Wilson's without ties)",
    "exact": "Clopper-Pearson interval, ties half a win",
    "percentile": "percentile bootstrap interval",
    "bca": "BCa bootstrap interval",
    "logit": "interval on the logit scale with DeLong's variance",
    "not paired": "score interval with DeLong's variance",
}


def of_samples(
    a: Any,
    b: Any,
    paired: bool,
    gamma: float,
    alpha: float,
    *,
    direction: str,
    method: str,
    n_draws: int,
    rng: int | np.random.Generator | None,
) -> Answer:
    """`outperforming` of two samples."""
    check_choice(method, "method", ("auto", *(PAIRED if paired else UNPAIRED)))
    generator = resolve_rng(rng)
    x, y = check_samples(a, b, ("a", "b"), 1, "cliff_delta", paired)
    sign = -1.0 if direction == "minimize" else 1.0
    difference = sign * x - sign * y if paired else (sign * x)[:, None] - sign * y
    tied = np.abs(difference) <= tolerance(np.concatenate([x, y]))
    signs = np.where(tied, 0.0, np.sign(difference))  # 1 where A is better: by pair (n,), or of all (n, m)
    if method == "auto":
        method = "exact" if paired and x.size < FEW else "score"
    drawn = (method, 1.0 - alpha, n_draws, generator)
    low, high = paired_interval(counts_of(signs), *drawn) if paired else unpaired_interval(signs, *drawn)
    binary = bool(np.isin(np.concatenate([x, y]), (0.0, 1.0)).all())
    estimate = float(0.5 + 0.5 * signs.mean())
    conclusion = str(conclusions(low, high, gamma)[0])
    row = {"estimate": estimate, "ci_low": low, "ci_high": high, "ties": int(tied.sum()), "conclusion": conclusion}
    settings = {"paired": paired, "gamma": gamma, "alpha": alpha, "method": method, "direction": direction}
    of = counted(x.size, "pair") if paired else f"{x.size:,} and {y.size:,} runs, not paired"
    kind = _INTERVALS["not paired" if method == "score" and not paired else method]
    better = "higher" if direction == "maximize" else "lower"
    ends = f"{percent(1.0 - alpha)} interval {written(low, '.2f')} to {written(high, '.2f')}"
    first = f"A run of A is better than one of B with probability {written(estimate, '.2f')} ({ends}): {conclusion}."
    rows = []
    if binary:  # the difference of the shares of ones, as they are
        shares = sorted(sign * (2.0 * p - 1.0) for p in (low, high))
        rows.append(("risk difference", sign * (2.0 * estimate - 1.0), *shares, ""))
    # the one that is better where it is higher comes first
    sides = (x[None], y[None]) if sign > 0.0 else (y[None], x[None])
    for name in ("cohen_dz", "rank_biserial") if paired else ("hedges_g", "cliff_delta"):
        effect = [float(value[0]) for value in effect_sizes(*sides, name, paired=paired, alpha=alpha)]
        rows.append((name, *effect, magnitude(effect[0], name)))
    effects = pd.DataFrame(rows, columns=["kind", "estimate", "ci_low", "ci_high", "magnitude"])
    return Answer(
        question="outperforming of two samples",
        title=f"Probability that a run of A is better than one of B, {of}",
        tables={"table": pd.DataFrame([row]), "effects": effects},
        values={**row, "n": (x.size, y.size), **settings},
        facts=(f"{percent(1.0 - alpha)} {kind}; {better} scores are better, ties count one half.", in_words(gamma)),
        findings=(first, *meaning(conclusion, high, gamma)),
        notes=_notes(signs, paired, binary, alpha, method),
        formats=dict.fromkeys(["estimate", "ci_low", "ci_high"], ".3f"),
    )


def _notes(signs: Array, paired: bool, binary: bool, alpha: float, method: str) -> tuple[str, ...]:
    notes, n = [], len(signs)
    if paired and n < FEW:
        notes.append(
            f"{n} pairs of {n} won would have an exact two-sided p-value of {written(2.0 ** (1 - n), '.3g')}: with "
            f"fewer than {FEW} pairs a significant advantage cannot be shown at alpha = {alpha:g} "
            f"{'by any result' if not below(2.0 ** (1 - n), alpha) else 'unless all are won'}."
        )
    tied = float((signs == 0).mean())
    if tied == 1.0:
        notes.append("All pairs are tied: the scores say nothing about which algorithm is better.")
    elif binary:
        notes.append(
            f"Scores are 0 and 1, and {percent(tied)} of the pairs are tied and count half: the probability is "
            "(1 + difference of the shares) / 2, and gamma = 0.75 means a difference of 50 points. Read the risk "
            f"difference in {advice('to_frame', part='effects')}."
        )
    if not paired and method != "percentile" and abs(signs.mean()) == 1.0:
        worth = worth_in_pairs(*signs.shape)
        notes.append(
            "All runs of one are better than all of the other, so that DeLong's variance is zero: the interval is that "
            f"of {written(worth, '.3g')} pairs, which is what these runs would be worth if they did not differ."
        )
    if method in ("percentile", "bca") and np.ptp(signs) == 0.0:
        notes.append(
            "All pairs are alike, and so are all draws: the bootstrap interval has no length, whatever the number of "
            "pairs. method='score' has one."
        )
    return tuple(notes)
