"""Several tests of the same runs side by side: where they agree, where not, and what the scores look like there.

Beside them stands what many published diagrams do: ranking every row as if it were a benchmark of its own. It is shown
with its rate of false alarms, measured by exchanging the algorithms on whole benchmarks, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking.classical import block_estimates, ranked, require_connected, signed_rank_sums
from lmemtest.bench.ranking.methods import (
    ADJUST,
    TEST_LABELS,
    TEST_NAMES,
    TESTS,
    left_ahead,
    outcomes,
    require_blocks,
    require_pairs,
)
from lmemtest.bench.robustness.variants import Variants, better
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.resampling import batches, exchanged_within
from lmemtest.core.rounding import below, tie_order
from lmemtest.core.validate import resolve_rng
from lmemtest.core.verdicts import Verdict, pair_words
from lmemtest.core.words import MISSING, counted, joined, percent
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey
from lmemtest.lmm.means.adjust import step_down
from lmemtest.lmm.means.decisions import codes_of

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.ranking.ranking import Ranking
    from lmemtest.core.arrays import Array, Codes
    from lmemtest.lmm.means.comparisons import Comparisons


EXCHANGES = 2000
_EXCHANGED = 10_000_000  # ranks of all exchanges together: beyond, sums over many blocks are taken for normal
_AT_ONCE = 1_000_000  # of them in memory
_NORMAL = 200  # blocks from which the share is within 0.1 % of that of normal sums
MOST_SAID = 10  # disagreements in sentences; all are in the table


def classical_tests(blocks: Blocks) -> tuple[str, ...]:
    """The classical tests that stand side by side: on means, on ranks, and on signed ranks."""
    if len(blocks.algorithms) == 2:
        return ("t", "wilcoxon")
    return ("tukey", "nemenyi", "wilcoxon") if blocks.complete.sum() > 1 else ("wilcoxon",)


def compared(rankings: Mapping[str, Ranking], rng: np.random.Generator, notes: tuple[str, ...]) -> Variants:
    """Several rankings of the same runs, in the order of the first."""
    first = next(iter(rankings.values()))
    order = first.levels
    places = {name: [ranking.levels.index(level) + 1 for level in order] for name, ranking in rankings.items()}
    verdicts = {name: ranking.decisions.among(order) for name, ranking in rankings.items()}
    variants = of_tests(verdicts, first.blocks, first.alpha, rng)
    pairs = {name: ranking.pairs for name, ranking in rankings.items()}
    return replace(
        variants,
        question="rank",
        tables={**variants.tables, "places": pd.DataFrame({"algorithm": order, **places}), **pairs},
        values={**variants.values, "rankings": dict(rankings)},
        notes=notes,
        figure="rankings_plot",
    )


def beside(pairs: Comparisons, order: tuple[str, ...], runs: Runs, alpha: float) -> Variants:
    """Who is better by a model that was fitted, and by the classical tests of its runs; `order` is that of the model.

    Only what decides is computed. Effect sizes and intervals take most of the time of `rank`, which has them.
    """
    blocks = blocks_of(runs)
    tables = {"lmem": (pairs.to_frame().rename(columns={"t_ratio": "statistic"}), pairs.estimates.direction)}
    tests = classical_tests(blocks)
    notes: tuple[str, ...] = ()
    n_pairs = math.comb(len(blocks.algorithms), 2)
    least = n_pairs * 2.0 ** (1 - len(blocks.names))  # of signed ranks that all have one sign, in the first step
    if len(tests) > 1 and not below(least, alpha):  # that such a test finds nothing says nothing
        tests = tuple(test for test in tests if test != "wilcoxon")
        notes = (
            f"Wilcoxon signed-rank tests are left out: with {blocks.said()} and {counted(n_pairs, 'pair')} none can be "
            f"significant at {percent(alpha)}.",
        )
    tables |= {test: _tested(blocks, test, alpha) for test in tests}
    verdicts = {
        test: codes_of(order, table, alpha, left_ahead(table, lower_is_better=direction == "minimize"))
        for test, (table, direction) in tables.items()
    }
    return replace(of_tests(verdicts, blocks.of(order), alpha, resolve_rng(0)), notes=notes)


def _tested(blocks: Blocks, test: str, alpha: float) -> tuple[pd.DataFrame, str | None]:
    """Pairs with statistic and p-value by one of the tests, and which end of the estimates is better."""
    if test == "wilcoxon":
        require_pairs(blocks)
        require_connected(blocks.gains)
        k = len(blocks.algorithms)
        left, right = np.triu_indices(k, 1)
        statistic, p_raw, _ = signed_rank_sums(blocks, left, right)
        names = np.array(blocks.algorithms, dtype=object)
        columns = {"left": names[left], "right": names[right], "statistic": statistic}
        p_value = step_down(p_raw, k, first_by_range=False)
        return pd.DataFrame({**columns, "p_value": p_value}), blocks.direction
    whole = blocks.where(blocks.complete)
    require_blocks(whole)
    means = block_estimates(whole, test, alpha)
    table = means.pairs(adjust=ADJUST.get(test, "tukey")).to_frame()
    return table.rename(columns={"t_ratio": "statistic"}), means.direction


def of_tests(verdicts: Mapping[str, Codes], blocks: Blocks, alpha: float, rng: np.random.Generator) -> Variants:
    """What several tests say of all pairs of the algorithms of the blocks, ``(k, k)`` each."""
    names, k = np.array(blocks.algorithms, dtype=object), len(blocks.algorithms)
    at = np.triu_indices(k, 1)
    left, right = names[at[0]], names[at[1]]
    codes = np.array([one[at] for one in verdicts.values()])
    neither = {name: "undecided" if name in TESTS["bayesian"] else "not significant" for name in verdicts}
    pairs = pd.DataFrame({"left": left, "right": right})
    decisions = {
        name: pair_words(row, left, right, neither=neither[name]) for name, row in zip(verdicts, codes, strict=True)
    }
    printed = {int(Verdict.NOT_SIGNIFICANT): MISSING, int(Verdict.EQUIVALENT): "equivalent"}
    printed[int(Verdict.NOT_TESTED)] = "no test"
    labels = [f"{TEST_LABELS[name]}: {TEST_NAMES[name]}" for name in verdicts if TEST_LABELS[name] != TEST_NAMES[name]]
    variants = Variants(
        question="robustness",
        title=f"Pairs by {counted(len(verdicts), 'test')}, ranked by {blocks.score}",
        tables={"table": pairs.assign(**decisions)},
        facts=(
            "Cells name the better one; a dash: no difference is shown.",
            *([f"{'; '.join(labels)}."] if labels else []),
        ),
        printed=pairs.assign(
            **{TEST_LABELS[name]: better(row, pairs, printed) for name, row in zip(verdicts, codes, strict=True)}
        ),
        of="test",
        phrases={name: f"by {TEST_LABELS[name]}" for name in verdicts},
        pairs=pairs,
        codes=codes,
    )
    n, agreed = len(pairs), int(variants.alike.sum())
    if n == 1:
        agree = "agree on the pair" if agreed else "do not agree on the pair"
    else:
        agree = f"agree on {'all' if agreed == n else f'{agreed} of'} {n} pairs"
    overview = f"The {counted(len(verdicts), 'test')} {agree}."
    changes = []
    for row in np.flatnonzero(~variants.alike)[:MOST_SAID]:  # who says what, and the facts that part means from ranks
        by: dict[str, list[str]] = {}
        for name, words in decisions.items():
            by.setdefault(words[row], []).append(TEST_LABELS[name])
        who = "; ".join(f"{decision} by {joined(tests, len(tests))}" for decision, tests in by.items())
        changes.append(f"{left[row]} and {right[row]}: {who}. {facts_of_pair(blocks, left[row], right[row])}")
    rows = rows_as_blocks(blocks, alpha, rng)
    trap = () if rows is None else (_trap_sentence(rows, blocks, n, alpha),)
    return replace(
        variants,
        tables={"table": variants.table.assign(alike=variants.alike)},
        values={"tests": tuple(verdicts), "blocks": blocks, "alpha": alpha, "rows_as_blocks": rows, "trap": trap,
                "overview": overview, "changes": tuple(changes)},
        findings=(overview, *changes, *trap),
    )  # fmt: skip


def facts_of_pair(blocks: Blocks, left: str, right: str) -> str:
    """On how many blocks one is ahead, and how much one block weighs in the mean."""
    pair = blocks.of([left, right])
    both = pair.where(pair.complete)
    d = both.gains[:, 0] - both.gains[:, 1]
    wins = outcomes(pair)[0].astype(int)  # those of the table of pairs, in which rounding is a tie
    total = np.square(d).sum()
    text = f"{left} is ahead on {wins[0, 1]} of {len(d)} {blocks.units}, {right} on {wins[1, 0]}"
    if wins.any():
        largest = tie_order(np.abs(d), descending=True)[0]
        name, share = both.names[largest], percent(float(d[largest] ** 2 / total))
        text += (
            f"; {blocks.unit} {name} alone accounts for {share} of the squared differences, which matter to a mean but "
            "not to ranks"
        )
    return f"{text}."


# ---------------------------------------------------------------------- the trap


def rows_as_blocks(blocks: Blocks, alpha: float, rng: np.random.Generator) -> dict[str, Any] | None:
    """Nemenyi's test with every row as a block, and how often it finds a difference where there is none.

    `n_rows` that were ranked and `n_blocks` that they belong to; `n_significant` pairs that differ by it;
    `false_alarms`, and `of_blocks`: the share of exchanged tables in which any pair differs, with its 95 % interval,
    with rows and with blocks as the sample (of many blocks the share is that of normal sums, and its interval a point).
    None where each block has one row, or fewer than two blocks have all algorithms.
    """
    whole = (blocks.n_runs == blocks.n_runs[:, :1]).all(axis=1) & (blocks.n_runs[:, 0] > 0)
    n_rows = blocks.n_runs[whole, 0]
    if blocks.complete.sum() < 2 or not whole.any() or n_rows.sum() <= len(np.unique(blocks.block[whole])):
        return None
    k = len(blocks.algorithms)
    sign = -1.0 if blocks.direction == "maximize" else 1.0
    scores = np.concatenate([sign * cell[:, :n].T for cell, n in zip(blocks.runs[whole], n_rows, strict=True)])
    owner = np.repeat(blocks.block[whole], n_rows)
    of_rows = ranked(scores)
    names, owner = np.unique(owner, return_inverse=True)
    sums = np.zeros((len(names), k))
    np.add.at(sums, owner, of_rows)
    of_blocks = ranked(-blocks.where(blocks.complete).gains)
    i, j = np.triu_indices(k, 1)
    means, unit = of_rows.mean(axis=0), np.sqrt(k * (k + 1.0) / (12.0 * len(scores)))
    p = ptukey(np.abs(means[i] - means[j]) / unit, k, np.inf, upper=True)
    return {
        "n_rows": len(scores),
        "n_blocks": len(of_blocks),
        "n_significant": int(below(p, alpha).sum()),
        "false_alarms": _false_alarms(sums, len(scores), alpha, rng),
        "of_blocks": _false_alarms(of_blocks, len(of_blocks), alpha, rng),
    }


def _trap_sentence(trap: Mapping[str, Any], blocks: Blocks, n_pairs: int, alpha: float) -> str:
    """What rows that count as blocks would say, and how often they would say it of nothing."""
    return (
        f"If each of the {trap['n_rows']:,} rows counted as a separate {blocks.unit}, Nemenyi's test would call "
        f"{trap['n_significant']} of {n_pairs} pairs different. That test finds a difference in "
        f"{percent(trap['false_alarms'][0])} of tables in which the algorithms of whole {blocks.units} were exchanged "
        f"at random, at a nominal {percent(alpha)}; with the {trap['n_blocks']} {blocks.units} as the sample it is "
        f"{percent(trap['of_blocks'][0])}."
    )


def _false_alarms(sums: Array, n: int, alpha: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Share of exchanges of the algorithms within blocks after which the range of the mean ranks is critical."""
    k = sums.shape[1]
    critical = float(qtukey(1.0 - alpha, k, np.inf)) * np.sqrt(k * (k + 1.0) / (12.0 * n))
    exchanges = EXCHANGES
    if EXCHANGES * sums.size > _EXCHANGED:
        variances = sums.var(axis=1)
        if variances.sum() ** 2 >= _NORMAL * np.square(variances).sum() > 0.0:  # as many blocks that weigh the same
            sd = np.sqrt(variances.sum() * k / (k - 1.0)) / n
            return (float(ptukey(critical / sd, k, np.inf, upper=True)),) * 3
        exchanges = max(100, _EXCHANGED // sums.size)
    count = 0
    for batch in batches(exchanges, sums.size, _AT_ONCE):
        exchanged = exchanged_within(sums, batch, rng).sum(axis=1) / n
        count += int((np.ptp(exchanged, axis=1) > critical * (1.0 + 1e-12)).sum())
    low, high = map(float, clopper_pearson(count, exchanges, 0.95))
    return count / exchanges, low, high
