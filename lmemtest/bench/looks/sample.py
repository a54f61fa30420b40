"""What a look sees: scores by unit, tests of their pairs, and what seeds that benchmarks share add to the errors."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.modelling.shared_seeds import shared_seeds
from lmemtest.bench.ranking.classical import FEWEST_MODERATED, block_estimates
from lmemtest.core.caller import setting
from lmemtest.core.rounding import tolerance
from lmemtest.core.words import counted, format_level, joined
from lmemtest.errors import DesignError
from lmemtest.lmm.distributions.student import df_of_sum, two_sided_p

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.looks.schedule import Schedule
    from lmemtest.core.arrays import Array

FEW_OF_SEEDS = 6  # degrees of freedom of their effects: with less their variance is often estimated as zero


def sample_of(runs: Runs, unit: str) -> Blocks:
    """Scores by unit of the sample and algorithm."""
    if unit != "seed":
        blocks = blocks_of(runs)
        if blocks.unit == "seed":
            raise DesignError(
                f"looks by benchmark need 2 benchmarks at least, and these runs have one. Add some, or ask about this "
                f"benchmark alone: {setting('unit', 'seed')}."
            )
        return blocks
    if runs.seed is None:
        raise DesignError("looks by seed need a seed column: Runs(table, ..., seed=...).")
    table, notes = runs.study.one_score_per_run()
    means = table.groupby(["seed", "algorithm"], observed=True)["score"].agg(["mean", "count"])
    whole = means["mean"].where(means["count"] == table["instance"].nunique()).unstack()
    return Blocks(
        algorithms=tuple(format_level(level) for level in whole.columns),
        runs=whole.to_numpy(dtype=float)[:, :, None],
        instances=tuple(format_level(level) for level in whole.index),
        block=np.arange(len(whole)),
        names=tuple(format_level(level) for level in whole.index),
        unit="seed",
        score=runs.score,
        direction=runs.direction,
        notes=notes,
    )


def pair_tests(
    blocks: Blocks, plan: Schedule, shared: Array, df_shared: float, first: bool = False
) -> tuple[tuple[Any, ...], float]:
    """The tests of the pairs that ran on all units, in the order of the algorithms; `Look.shared` of their errors."""
    active = [name for name, x in zip(blocks.algorithms, blocks.scores.T, strict=True) if np.isfinite(x).all()]
    if len(active) < (len(blocks.algorithms) if first else 2):
        lacking = [name for name in blocks.algorithms if name not in active]
        raise DesignError(
            f"{joined(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} a score on some {blocks.unit}. At a look "
            f"all algorithms ran on the same {blocks.units}: complete them, or leave the {blocks.unit} out."
        )
    if len(blocks.names) < 2:
        raise DesignError(f"a look needs 2 {blocks.units} at least, got {len(blocks.names)}.")
    if plan.method == "spending" and len(active) > 2 and len(blocks.names) >= FEWEST_MODERATED:
        means = block_estimates(blocks.of(active), "moderated", plan.alpha)
        table = means.pairs(adjust="holm").table  # "none" would ask about each pair alone, without moderation
        estimate, se, df = table[["estimate", "se", "df"]].to_numpy().T
        same = ~np.isfinite(se)
    else:  # of the differences themselves: where benchmarks vary much more, a covariance would lose their digits
        x, (left, right) = blocks.of(active).scores, np.triu_indices(len(active), 1)
        differences = x[:, left] - x[:, right]
        estimate, df = differences.mean(axis=0), np.full(len(left), len(x) - 1.0)
        se, same = differences.std(axis=0, ddof=1) / math.sqrt(len(x)), np.ptp(differences, axis=0) <= tolerance(x)
    if same.any():
        raise DesignError(
            f"some difference is the same on every {blocks.unit}, so there is nothing to judge it by. Look for copied "
            "scores: lmemtest.check(runs)."
        )
    left, right = np.triu_indices(len(active), 1)
    shared = shared[np.isin(blocks.algorithms, active)]
    parts = np.array([se**2, shared[left] + shared[right]])
    se, df = np.sqrt(parts.sum(axis=0)), df_of_sum(parts, [df, np.full(len(df), df_shared)])
    values = np.column_stack([estimate, se, df, two_sided_p(estimate / se, df)]).tolist()
    tests = tuple((*pair, *row) for pair, row in zip(combinations(active, 2), values, strict=True))
    return tests, float(np.mean(parts[1] / se**2))


def seed_effects(runs: Runs, blocks: Blocks) -> tuple[Array, float, str, str]:
    """What effects that seeds share across benchmarks add to the errors of means over units that are benchmarks.

    The variance of the mean of each algorithm, ``(k,)``, which stays however many benchmarks are added, and its degrees
    of freedom: by moments, of one variance for all. It is added whether or not a test shows it: to ask one first lets
    up to 6.2 % of studies pass where runs vary much. Then the test if it shows the effect, in words, and why the effect
    may be missed.
    """
    none = np.zeros(len(blocks.algorithms))
    if blocks.unit == "seed" or blocks.seeds is None or not runs.study.seeds_cross:
        return none, np.inf, "", ""
    varies = np.fmax.reduce(blocks.runs, axis=2) > np.fmin.reduce(blocks.runs, axis=2)
    if (blocks.n_runs > 1).any() and not varies.any():  # a seed changes nothing
        return none, np.inf, "", ""
    try:
        effect = shared_seeds(runs)
    except DesignError as error:
        return none, np.inf, "", str(error).removesuffix(".")
    if np.isnan(effect.variance):
        return none, np.inf, "", effect.test
    hidden = f"{counted(effect.n_seeds, 'seed')} of {counted(len(none), 'algorithm')}" * (effect.df_num < FEW_OF_SEEDS)
    if not effect.variance > 0.0:
        return none, np.inf, "", hidden
    # seeds weigh as the means over units weight their runs
    share = 1.0 / (len(blocks.names) * np.bincount(blocks.block)[blocks.block][:, None] * np.maximum(blocks.n_runs, 1))
    weights = np.zeros((len(none), int(blocks.seeds.max()) + 1))
    at, algorithm, _ = places = np.nonzero(blocks.seeds >= 0)
    np.add.at(weights, (algorithm, blocks.seeds[places]), share[at, algorithm])
    test = effect.test * (effect.verdict == "shown")
    return effect.variance * (weights**2).sum(axis=1), effect.variance_df, test, hidden


def spread_of(blocks: Blocks) -> dict[str, tuple[float, float]]:
    """By algorithm the variance of a run on an instance, and the mean number of runs there; where there are several.

    Where all algorithms have the same seeds, what a seed does to all of them is no part of it.
    """
    rest = blocks.runs - blocks.means[:, :, None]
    k, factor = len(blocks.algorithms), 1.0
    if k > 2 and blocks.seeds is not None and (blocks.seeds == blocks.seeds[:, :1]).all():
        rest, factor = rest - rest.mean(axis=1, keepdims=True), k / (k - 1.0)
    df = np.maximum(blocks.n_runs - 1, 0).sum(axis=0)
    squares = factor * np.nansum(rest**2, axis=(0, 2))
    return {
        name: (float(squares[i] / df[i]), float(blocks.n_runs[:, i].mean()))
        for i, name in enumerate(blocks.algorithms)
        if df[i] > 0 and np.isfinite(squares[i])
    }
