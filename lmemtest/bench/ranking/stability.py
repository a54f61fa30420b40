r"""Which decisions of a ranking change when one block, or one algorithm, leaves the study.

Decisions of the mixed model about a complete table of single runs, one of each algorithm on each benchmark.
With scores y of k algorithms on n benchmarks, differences of marginal means are those of the averages, and

    MSE = sum (y_ij - y_i. - y_.j + y_..)^2 / ((n - 1) (k - 1)),    se^2 = 2 MSE / n,    df = (n - 1) (k - 1),

where the benchmarks are a random effect with a variance above zero, or fixed ones. A pair's own variance relative to
that is the variance of its differences over the benchmarks over 2 MSE, with n - 1 degrees of freedom: `empirical_bayes`
has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import vary_less_than_by_chance
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.ranking.classical import residual_variance
from lmemtest.core.replicates import check_replicates, progress_bar
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.verdicts import Verdict, pair_words, turned
from lmemtest.core.words import counted, joined, percent, plural
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.intervals.cluster_robust import NO_SCATTER
from lmemtest.lmm.means.adjust import step_down
from lmemtest.lmm.means.empirical_bayes import moderation

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.ranking.methods import RankOptions
    from lmemtest.core.arrays import Array, Codes, Index


def stability_of(
    refit: Callable[[Blocks], Codes],
    blocks: Blocks,
    codes: Codes | None = None,
    *,
    neither: str = "not significant",
    progress: bool | None = None,
) -> Answer:
    """Leave out every block and every algorithm in turn, and compare the decisions with those of the whole study.

    Parameters
    ----------
    refit : callable
        Takes `Blocks` and returns the verdicts on their algorithms, ``(k, k)``: the method of the ranking.
    blocks : Blocks
        The whole study.
    codes : (k, k) array of int, optional
        The verdicts of the whole study; ``refit(blocks)`` by default.
    neither : str
        What is said of a pair without a decision.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds: always, never, or (None) on a terminal.

    Returns
    -------
    Answer
        One row per pair with a decision: ``left`` before ``right`` in the ranking, ``decision`` ("A better" or "no
        difference shown"); ``share_unchanged_blocks``, the share of the blocks without which it is the same,
        ``n_changed_blocks`` and ``changed_by_blocks`` (names), those without which it is not; the same for algorithms.
        Shares are NaN where nothing could be left out. ``to_frame("changes")`` has one row per change: ``left_out``
        ("algorithm" or the unit of the blocks), ``name``, ``left``, ``right``, ``decision`` of the whole study and
        ``without`` it. `n_blocks` and `n_algorithms` were left out, one at a time; `unit` is what the blocks are.

    Raises
    ------
    DesignError
        If there are fewer than two algorithms or three blocks.

    Notes
    -----
    That a decision stays is no test, and that it changes says no more than that it is close: with a p-value near
    `alpha` some block changes it nearly always. Without an algorithm a family of fewer pairs is adjusted for, and ranks
    are ranks among others, so decisions can change in both directions.

    Examples
    --------
    >>> import lmemtest as lt
    >>> ranking = lt.rank(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"), "frequentist", test="nemenyi")
    >>> found = ranking.stability()
    >>> found.sentences()[-1]
    'The decision between HB and TPE (HB better) changes when algorithm TPE+prior leaves the study; the other 14 stay.'
    """
    check_replicates(progress=progress)
    names, n = blocks.algorithms, len(blocks.names)
    if len(names) < 2 or n < 3:
        raise DesignError(
            f"stability leaves out one {blocks.unit} at a time, which takes at least 2 algorithms and 3 "
            f"{blocks.units}, got {len(names)} and {n}. Add some to the study."
        )
    whole = refit(blocks) if codes is None else codes
    smaller = [(blocks.unit, name, blocks.where(np.arange(n) != i)) for i, name in enumerate(blocks.names)]
    if len(names) > 2:
        smaller += [("algorithm", name, blocks.of([other for other in names if other != name])) for name in names]
    left, right = np.nonzero(np.triu((whole != Verdict.NOT_TESTED) & (whole != Verdict.ABSENT), 1))
    before = whole[left, right]
    left_out: list[tuple[str, str]] = []
    notes, place = [], {name: i for i, name in enumerate(names)}
    without = np.zeros((len(smaller), len(left)), dtype=np.int8)
    with progress_bar(len(smaller), progress, "Leaving out") as advance:
        for kind, name, part in smaller:
            try:
                codes_of = np.full((len(names), len(names)), Verdict.ABSENT, dtype=np.int8)
                at = [place[one] for one in part.algorithms]
                codes_of[np.ix_(at, at)] = refit(part)
                without[len(left_out)] = codes_of[left, right]
                left_out.append((kind, name))
            except LmemtestError as error:
                notes.append(f"Without {kind} {name} there is no ranking, so it counts for nothing here: {error}")
            advance(1)
    without = without[: len(left_out)]
    levels = np.array(names, dtype=object)
    of_algorithm = np.array([kind == "algorithm" for kind, _ in left_out], dtype=bool)
    compared = without != Verdict.ABSENT
    changed = compared & (without != before)
    decisions = pair_words(before, levels[left], levels[right], neither=neither)
    table = pd.DataFrame({"left": levels[left], "right": levels[right], "decision": decisions})
    for kind, rows in (("blocks", ~of_algorithm), ("algorithms", of_algorithm)):
        total, odd = compared[rows].sum(axis=0), changed[rows].sum(axis=0)
        left_names = [left_out[row][1] for row in np.flatnonzero(rows)]
        table[f"share_unchanged_{kind}"] = 1.0 - np.divide(odd, total, out=np.full(len(odd), np.nan), where=total > 0)
        table[f"n_changed_{kind}"] = odd
        changed_by: list[tuple[str, ...]] = [()] * len(odd)
        for pair in np.flatnonzero(odd):
            changed_by[pair] = tuple(left_names[row] for row in np.flatnonzero(changed[rows, pair]))
        table[f"changed_by_{kind}"] = changed_by
    pairs, row = np.nonzero(changed.T)
    ends = levels[left[pairs]], levels[right[pairs]]
    new = pair_words(without[row, pairs], *ends, neither=neither)
    changes = [
        (*left_out[i], a, b, decisions[j], after) for i, j, a, b, after in zip(row, pairs, *ends, new, strict=True)
    ]
    n_blocks, n_algorithms = int((~of_algorithm).sum()), int(of_algorithm.sum())
    every = table["changed_by_blocks"] + table["changed_by_algorithms"]
    kept = ["left", "right", "decision", "share_unchanged_blocks", "share_unchanged_algorithms"]
    return Answer(
        question="stability",
        title="Stability of the decisions",
        tables={
            "pairs": table,
            "changes": pd.DataFrame(changes, columns=["left_out", "name", "left", "right", "decision", "without"]),
        },
        values={"n_blocks": n_blocks, "n_algorithms": n_algorithms, "unit": blocks.unit},
        facts=(
            f"The ranking was made again without each of {counted(n_blocks, blocks.unit)} and, where another pair "
            f"remains, without each of {counted(n_algorithms, 'algorithm')}. A change is a decision for another "
            "algorithm, one that is lost, or a new one.",
        ),
        findings=(
            *_findings(table, "blocks", blocks.unit, n_blocks),
            *_findings(table, "algorithms", "algorithm", n_algorithms),
        ),
        notes=tuple(notes),
        printed=table[kept].assign(changed_by=[joined(some) if some else None for some in every]),
        formats={"share_unchanged_blocks": percent, "share_unchanged_algorithms": percent},
    )


def _findings(table: pd.DataFrame, kind: str, noun: str, n: int) -> Iterator[str]:
    """Which decisions stay, and which change without what; the first is the headline."""
    total, odd = len(table), table[table[f"n_changed_{kind}"] > 0]
    if not n or not total:
        return
    if odd.empty:
        which = f"whichever of the {n} {plural(noun)} leaves the study"
        yield f"{'The decision stays' if total == 1 else f'All {total} decisions stay'} the same {which}."
        return
    rest = total - len(odd)
    others = f"; {'the other one stays' if rest == 1 else f'the other {rest} stay'}" if rest else ""
    if len(odd) > 1:
        yield f"{len(odd)} of {total} decisions change when one of the {n} {plural(noun)} leaves the study{others}."
        others = ""
    for row in odd.to_dict("records"):
        names = row[f"changed_by_{kind}"]
        what = f"{noun} {names[0]}" if len(names) == 1 else f"one of the {plural(noun)} {joined(names)}"
        yield (
            f"The decision between {row['left']} and {row['right']} ({row['decision']}) changes when {what} leaves "
            f"the study{others}."
        )


# --------------------------------------------------------------------------------------- complete tables of single runs


_FEWEST_BENCHMARKS = 3  # for moderated standard errors
_CONSTANT = 1e-6  # parts of the scores, and of the residual variance, that are left to the fit


def closed_form(runs: Runs, blocks: Blocks, options: RankOptions) -> bool:
    """Whether decisions about the runs, and about some blocks or algorithms of them, have it."""
    if options.control is not None or options.adjust not in (None, "stepdown") or options.vcov == "model":
        return False
    if blocks.unit != "benchmark" or not blocks.complete.all() or runs.n_rows != blocks.scores.size:
        return False
    spec = recommend(runs, curves="model").spec
    factors = {runs.algorithm, runs.benchmark}
    return {*spec.fixed_columns} <= factors and all(bar.groups == (runs.benchmark,) for bar in spec.bars)


def codes_by_table(blocks: Blocks, alpha: float) -> Codes | None:
    """The decisions; None where benchmarks are too few, or their variance can be zero, or the scores do not scatter."""
    y = blocks.scores
    n, k = y.shape
    variance = residual_variance(y) if n > 1 < k else 0.0
    if n < _FEWEST_BENCHMARKS or not np.sqrt(variance) > _CONSTANT * np.abs(y).max():
        return None
    if k * y.mean(axis=1).var(ddof=1) <= (1.0 + _CONSTANT) * variance and not vary_less_than_by_chance(y):
        return None
    left, right = np.triu_indices(k, 1)
    t, df = t_ratios(y, variance, left, right)
    p = np.ones(len(t))
    clear = np.flatnonzero(two_sided_p(t, np.inf) < alpha)  # others are not below it with fewer degrees of freedom
    p[clear] = step_down(two_sided_p(t[clear], df[clear]), k, first_by_range=True)
    ahead = t > 0.0 if blocks.direction == "maximize" else t < 0.0
    codes = np.zeros((k, k), dtype=np.int8)
    codes[left, right] = np.where(below(p, alpha), np.where(ahead, Verdict.BETTER, Verdict.WORSE), codes[left, right])
    codes[right, left] = turned(codes[left, right])
    return codes


def t_ratios(y: Array, variance: float, left: Index, right: Index) -> tuple[Array, Array]:
    """t ratios of all pairs by moderated standard errors, and their degrees of freedom."""
    n, k = y.shape
    d = y[:, left] - y[:, right]
    mean = d.mean(axis=0)
    d -= mean
    ratio_of_pair = np.einsum("ij,ij->j", d, d) / ((n - 1.0) * 2.0 * variance)
    ratio_of_pair = np.where(ratio_of_pair > NO_SCATTER, ratio_of_pair, np.nan)  # copies
    df = np.where(np.isnan(ratio_of_pair), np.nan, n - 1.0)
    both = Functions(np.stack([left, right]), np.ones((2, len(left))), k)
    most = np.full(len(left), (n - 1.0) * (k - 1.0))
    ratio, df = moderation(ratio_of_pair, df, left, right, np.ones(k)).ratios(both, ratio_of_pair, df, most)
    return mean / np.sqrt(2.0 * variance / n * ratio), df
