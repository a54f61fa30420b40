"""Aggregate scores of algorithms over benchmarks: interquartile mean, median, mean, optimality gap.

What one number says of many runs on many benchmarks, with an interval that says how far it may be from what other runs,
or other benchmarks, would give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.resampling import (
    DRAWN,
    UNITS,
    Resampling,
    band_of,
    beyond,
    blocks_beyond,
    check_draws,
    check_units,
    complete_blocks,
    cumulative,
    intervals,
)
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import tie_order, tolerance, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_number, resolve_rng, several
from lmemtest.core.words import counted, format_number, joined, listed, percent
from lmemtest.errors import ArgumentError
from lmemtest.lmm.intervals.bootstrap import METHODS

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.means.estimates import Estimates


MEASURES = {
    "iqm": "interquartile mean",
    "median": "median of the benchmarks",
    "mean": "mean",
    "optimality_gap": "optimality gap",
}
_FEW = 5  # benchmarks
_FEW_FOR_MEDIAN = 5  # runs, with which the median of the benchmarks' means moves in jumps
_WIDEST = 10.0  # times the narrowest range of scores on a benchmark, from which the widest decides a mean


@result
class AggregateScores(Result):
    """Aggregate scores of algorithms, with intervals.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per measure and algorithm, best first within a measure: ``measure``, ``algorithm``, ``estimate``, ``se``
        (standard deviation of the draws), ``ci_low``, ``ci_high``.
    measures : tuple of str
    draws : (n_draws, k, measures) float
        Every measure of every draw; algorithms in the order of `resampling.blocks`.
    resampling : Resampling
        What was drawn again; `profiles` and `improvement` draw the same.
    threshold : float
        From which on scores do not count in the optimality gap.
    method : {"percentile", "basic", "bca"}
    alpha : float
        One minus the confidence level.
    score, direction : str
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "aggregate_scores_plot"

    table: pd.DataFrame
    measures: tuple[str, ...]
    draws: Array
    resampling: Resampling
    threshold: float
    method: str
    alpha: float
    score: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """In the order of their levels."""
        return self.resampling.blocks.algorithms

    @property
    def title(self) -> str:
        """Of which score."""
        return f"Aggregate scores by {self.score} ({'lower' if self.direction == 'minimize' else 'higher'} is better)"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the intervals mean, and where the optimality gap begins."""
        if "optimality_gap" not in self.measures:
            return (self.band,)
        short = "excess over" if self.direction == "minimize" else "shortfall from"
        return f"Optimality gap: the mean {short} {format_number(self.threshold)}; lower is better.", self.band

    @property
    def band(self) -> str:
        """What the intervals mean, for the foot of a figure."""
        return band_of(self.resampling, self.method, 1.0 - self.alpha)

    def name(self, measure: str) -> str:
        """A measure in words."""
        return MEASURES[measure].replace("benchmarks", self.resampling.blocks.units)

    @property
    def _where(self) -> str:
        return ", for families like these" if self.resampling.blocks.unit == "family" else ""

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of one measure."""
        check_choice(measure, "measure", self.measures)
        return self.table[self.table["measure"] == measure].reset_index(drop=True)

    def sentences(self) -> tuple[str, ...]:
        """One sentence per measure: who is ahead by it."""
        out = []
        for measure in self.measures:
            rows = self.of(measure)
            first = rows[(rows["estimate"] - rows["estimate"][0]).abs() <= tolerance(rows["estimate"])]
            lower = measure == "optimality_gap" or self.direction == "minimize"
            verb = "has" if len(first) == 1 else "have"
            best, low, high = (format_number(first[name].iloc[0]) for name in ("estimate", "ci_low", "ci_high"))
            interval = f", {percent(1.0 - self.alpha)} interval {low} to {high}" if len(first) == 1 else ""
            what = f"the {'lowest' if lower else 'highest'} {self.name(measure)}"
            out.append(f"{joined(first['algorithm'])} {verb} {what}{self._where} ({best}{interval}).")
        return tuple(out)

    def estimates(self, measure: str = "iqm") -> Estimates:
        """One measure as estimates, with all that follows from these: pairs, groups, letters, diagrams.

        Parameters
        ----------
        measure : str
            One of `measures`.

        Returns
        -------
        Estimates
            Their covariance is that of the draws: of all algorithms on the same benchmarks where benchmarks were drawn;
            where runs were, algorithms are independent. Degrees of freedom: benchmarks (or families) less one, or the
            runs less one on each instance, of the algorithm that has fewest.
        """
        from lmemtest.lmm.means.estimates import Estimates

        draws = self.draws[:, :, self.measures.index(check_choice(measure, "measure", self.measures))]
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
        blocks = self.resampling.blocks
        if self.resampling.unit == "runs":
            covariance = np.diag(np.diag(covariance))
            df = float((blocks.n_runs - 1).sum(axis=0).min())
        else:
            df = len(blocks.names) - 1.0
        rows = self.of(measure).set_index("algorithm").loc[list(self.algorithms)]
        return Estimates.of(
            {"algorithm": list(self.algorithms)},
            b=rows["estimate"].to_numpy(),
            V=covariance,
            df=df,
            alpha=self.alpha,
            score=f"{self.name(measure)} of {self.score}",
            direction="minimize" if measure == "optimality_gap" else self.direction,
            ddf="residual",
            notes=(self.band,),
        )

    def profiles(self, taus: Any = None, *, of: str = "runs") -> Answer:
        """Performance profiles: the share of runs that are better than a score, for every score.

        Parameters
        ----------
        taus : sequence of float, optional
            Scores at which to count; by default 101 from the lowest to the highest.
        of : {"runs", "benchmarks"}
            Count runs, every benchmark with the same weight, or benchmarks by their mean score (where families were
            drawn, every family with the same weight, or families by theirs).

        Returns
        -------
        Answer
            One row per algorithm and score: ``algorithm``, ``tau``, ``share`` (better than tau), ``ci_low``,
            ``ci_high`` (pointwise: each holds at its own tau only). `taus`, `shares` (algorithms x taus), `of` ("runs",
            "benchmarks" or "families", what is counted), `algorithms`, `method`, `alpha`, `score`, `direction`, `band`
            (what the intervals mean).
        """
        return performance_profiles(self.resampling, taus, of=of, method=self.method, alpha=self.alpha)

    def improvement(self) -> Answer:
        """Probability of improvement: that a run of one algorithm is better than one of another on the same benchmark.

        Returns
        -------
        Answer
            One row per pair: ``left``, ``right``, ``probability`` that a run of left is better than one of right on the
            same benchmark, ties one half, averaged over the benchmarks (where families were drawn, over the means by
            family); ``ci_low``, ``ci_high``. `matrix` has the probability that the row is better than the column, one
            half on the diagonal; `algorithms`, `method`, `alpha`, `score`, `direction`, `band` (what the intervals
            mean), `noun` ("run", or "result" of a table that shows no runs).
        """
        return improvement(self.resampling, method=self.method, alpha=self.alpha)


@guided
@one_blas_thread()
def aggregate_scores(
    runs: Any,
    measures: str | Iterable[str] = tuple(MEASURES),
    *,
    direction: str | None = None,
    threshold: float | None = None,
    resample: str = "runs",
    drawn: str = "n-1",
    method: str = "percentile",
    alpha: float = 0.05,
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
    **roles: Any,
) -> AggregateScores:
    """Aggregate the scores of each algorithm over benchmarks and runs, with bootstrap intervals.

    Parameters
    ----------
    runs : Runs or dataframe
        Scores that compare across benchmarks (`Runs.normalize`), every algorithm on every one. A wide table has a
        column per algorithm and a row per benchmark, as in `Runs.from_wide`, and so one run each.
    measures : str or iterable of str
        Of "iqm" (mean of the middle half of all runs), "median" (of the means by benchmark), "mean",
        "optimality_gap" (mean shortfall of the runs from `threshold`; scores beyond it count as the threshold).
    direction : {"minimize", "maximize"}, optional
        Which end of the score is better; of a dataframe only.
    threshold : float, optional
        Of the optimality gap; by default 1 for scores to maximize, 0 for scores to minimize, as normalised scores are.
    resample : {"runs", "benchmarks"}
        "runs" draws runs within each benchmark: the intervals are about these benchmarks. "benchmarks" draws
        benchmarks, the same for all algorithms, and runs within them: the intervals are about benchmarks like these.
        Where the runs have families of benchmarks, five or more, it draws families with their benchmarks: every family
        counts the same in all measures, and the intervals are about families like these.
    drawn : {"n-1", "n"}
        Draw one unit fewer than there are, or as many. With few units as many are too regular: see the notes.
    method : {"percentile", "basic", "bca"}
        How intervals are made of draws.
    alpha : float in (0, 1)
        One less the level of each interval by itself.
    n_draws : int
    rng : int, numpy.random.Generator or None
    **roles
        What the columns of a dataframe mean, as in `rank`.

    Returns
    -------
    AggregateScores

    Raises
    ------
    ArgumentError
        If an argument breaks its rule.
    DesignError
        If an algorithm is missing on a benchmark, or there is nothing to draw from: one run of each algorithm on each
        benchmark, or one benchmark.
    DataError
        If scores are missing, or runs have no budget in common.

    Notes
    -----
    Every benchmark counts the same. Where all have r runs the measures are those of rliable: the interquartile mean
    drops a quarter of all runs, rounded down, at each end. Otherwise it is the same mean of the table in which runs are
    repeated until every benchmark has as many, and a run can be kept in part. For a score to minimize, the measures
    are the mirror image: mean, median and interquartile mean are on the scale of the score, and the optimality gap is
    the mean excess over the threshold.

    Drawing as many runs as there are makes the variance of a mean too small by the factor (n - 1) / n. Simulated with
    10 benchmarks and normal scores, 95 % percentile intervals of the interquartile mean covered 89 % with 3 runs, 91 %
    with 5 and 94 % with 20; with one fewer drawn 94 % each time (docs/developers/leaderboards.md). Intervals of the
    median by "basic" and "bca" cover too rarely (80 to 90 %).

    Intervals of single algorithms that overlap do not say that two algorithms are alike; `estimates` compares them.

    References
    ----------
    Agarwal, Schwarzer, Castro, Courville & Bellemare (2021), Deep Reinforcement Learning at the Edge of the
    Statistical Precipice, NeurIPS, arXiv:2108.13264; Rao & Wu (1988), Resampling Inference With Complex Survey Data,
    J. Am. Stat. Assoc. 83, 231-241 (one fewer)

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.aggregates import aggregate_scores
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"], budget=8, prior="good")
    >>> found = aggregate_scores(runs.normalize("minmax"), ["iqm", "optimality_gap"], rng=1)
    >>> found.to_frame()[["measure", "algorithm", "estimate"]].round(3)
              measure algorithm  estimate
    0             iqm  HB+prior     0.116
    1             iqm        HB     0.160
    2             iqm        RS     0.314
    3  optimality_gap  HB+prior     0.166
    4  optimality_gap        HB     0.210
    5  optimality_gap        RS     0.363
    """
    measures_list = [measures] if isinstance(measures, (str, Mapping)) or not several(measures) else measures
    names = tuple(dict.fromkeys(check_choice(name, "measures", tuple(MEASURES)) for name in measures_list))
    if not names:
        raise ArgumentError(f"measures must name at least one of {listed(map(repr, MEASURES))}, got none.")
    check_choice(resample, "resample", UNITS)
    check_choice(drawn, "drawn", DRAWN)
    check_choice(method, "method", METHODS)
    n_draws, level = check_draws(n_draws, alpha)
    generator = resolve_rng(rng)
    blocks, unitless = complete_blocks(runs, {"direction": direction, **roles}, "aggregate_scores", resample)
    check_units(blocks, resample)
    lower = blocks.direction == "minimize"
    if threshold is None:
        threshold = 0.0 if lower else 1.0
    threshold = check_number(threshold, "threshold", meaning="a score, or None")
    measured = partial(measures_of, names=names, threshold=threshold, direction=blocks.direction)
    resampling = Resampling(blocks, resample, drawn, n_draws, int(generator.integers(2**63)))
    k = len(blocks.algorithms)
    estimate, draws, ends = np.empty((k, len(names))), np.empty((n_draws, k, len(names))), np.empty((k, 2, len(names)))
    for a in range(k):
        estimate[a], draws[:, a], without = resampling.of(partial(measured, cut=middle(blocks, a)), a)
        ends[a] = intervals(draws[:, a], estimate[a], without, method, level)
    table = pd.concat(
        [
            pd.DataFrame(
                {
                    "measure": name,
                    "algorithm": blocks.algorithms,
                    "estimate": estimate[:, i],
                    "se": draws[:, :, i].std(axis=0, ddof=1),
                    "ci_low": ends[:, 0, i],
                    "ci_high": ends[:, 1, i],
                }
            ).iloc[tie_order(estimate[:, i], descending=not lower and name != "optimality_gap")]
            for i, name in enumerate(names)
        ],
        ignore_index=True,
    )
    notes = [
        *blocks.notes,
        *_scale_notes(resampling, names, threshold, unitless=unitless),
        *_thin_notes(resampling, names),
    ]
    if np.isnan(ends).any():
        notes.append("Where all draws lie on one side of an estimate there is no BCa interval; use 'percentile'.")
    return AggregateScores(
        table=table,
        measures=names,
        draws=draws,
        resampling=resampling,
        threshold=threshold,
        method=method,
        alpha=alpha,
        score=blocks.score,
        direction=blocks.direction,
        notes=tuple(notes),
    )


def measures_of(
    scores: Array,
    weights: Array,
    means: Array,
    *,
    cut: float,
    names: Sequence[str],
    threshold: float,
    direction: str,
) -> Array:
    """Measures of each draw of the runs of an algorithm, ``(draws, measures)``; `cut` is the `middle` of it."""
    short = scores - threshold if direction == "minimize" else threshold - scores
    of = {
        "iqm": lambda: np.diff(np.clip(cumulative(weights), cut, 1.0 - cut), axis=1) @ scores / (1.0 - 2.0 * cut),
        "median": lambda: np.median(means, axis=1),
        "mean": lambda: weights @ scores,
        "optimality_gap": lambda: weights @ np.maximum(short, 0.0),
    }
    return np.column_stack([of[name]() for name in names])


def middle(blocks: Blocks, algorithm: int) -> float:
    """The weight that the interquartile mean drops at each end: a quarter, in whole runs.

    Of runs of different weights, in units of their greatest common divisor: as if runs were repeated until all
    benchmarks have as many.
    """
    instances = np.bincount(blocks.block)[blocks.block]
    units = len(blocks.names) * math.lcm(*(instances * blocks.n_runs[:, algorithm]).tolist())
    return units // 4 / units


def _scale_notes(resampling: Resampling, names: Sequence[str], threshold: float, *, unitless: bool) -> list[str]:
    """What scores of different scales do to the measures."""
    blocks, notes = resampling.blocks, []
    size = len(blocks.names)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, blocks.block, np.nanmin(blocks.runs, axis=(1, 2)))
    np.maximum.at(high, blocks.block, np.nanmax(blocks.runs, axis=(1, 2)))
    width = high - low
    narrow, wide = np.argmin(np.where(width > 0, width, np.inf)), np.argmax(width)
    if not unitless and width[wide] > _WIDEST * width[narrow] > 0:
        notes.append(
            f"Scores range over {format_number(width[narrow], 2)} on {blocks.names[narrow]} and over "
            f"{format_number(width[wide], 2)} on {blocks.names[wide]}, so the {blocks.units} of the widest range "
            "decide. Compare scores that mean the same everywhere: aggregate_scores(runs.normalize('minmax'))."
        )
    if "iqm" in names:
        used = np.zeros(size, dtype=bool)
        for a in range(len(blocks.algorithms)):
            used |= resampling.kept(a, middle(blocks, a))
        if not used.all():
            without = [name for name, u in zip(blocks.names, used, strict=True) if not u]
            notes.append(
                f"The interquartile mean ignores {counted(len(without), blocks.unit)}: no run on {listed(without, 5)} "
                "is in the middle half of the runs of any algorithm."
            )
    if "optimality_gap" in names:
        best = float(low.min() if blocks.direction == "minimize" else -high.max())
        if best >= (threshold if blocks.direction == "minimize" else -threshold):
            notes.append(
                f"No score is better than the threshold {format_number(threshold)}, so the optimality gap is "
                "the distance of the mean from it and says no more than the mean."
            )
    return notes


def _thin_notes(resampling: Resampling, names: Sequence[str]) -> list[str]:
    """What thin tables do to the intervals."""
    blocks, notes = resampling.blocks, []
    single = int((blocks.n_runs == 1).sum())
    if resampling.unit == "runs" and single:
        notes.append(
            f"{single:,} of {blocks.n_runs.size:,} pairs of algorithm and instance have one run, which every draw "
            "takes as it is, so the intervals are too short."
        )
    fewest = int(blocks.n_runs[blocks.n_runs > 1].min(initial=_FEW_FOR_MEDIAN + 1))
    if "median" in names and resampling.unit == "runs" and fewest <= _FEW_FOR_MEDIAN:
        notes.append(
            f"The median rests on the few benchmarks in the middle, and some have {fewest} runs of an algorithm: with "
            f"{_FEW_FOR_MEDIAN} runs or fewer its 95 % intervals held in 86 to 88 % of simulated tables."
        )
    if resampling.unit == "benchmarks" and len(blocks.names) < _FEW:
        notes.append(f"{blocks.said()} say little about others: take these intervals for a lower bound.")
    return notes


# ------------------------------------------------------------------------------------------- probability of improvement


def improvement(resampling: Resampling, *, method: str, alpha: float) -> Answer:
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
        ends = intervals(draws[:, x, y, None], observed[None, x, y], without, method, 1.0 - alpha)
        low, high = np.clip(ends[:, 0], 0.0, 1.0)
        p = float(observed[x, y])
        rows.append((names[x], names[y], p, float(low), float(high)))
        matrix.iloc[x, y], matrix.iloc[y, x] = p, 1.0 - p
    band = band_of(resampling, method, 1.0 - alpha)
    return Answer(
        question="improvement",
        title=f"Probability of improvement in {blocks.score}",
        tables={"table": pd.DataFrame(rows, columns=["left", "right", "probability", "ci_low", "ci_high"]),
                "matrix": matrix},
        values={"algorithms": blocks.algorithms, "method": method, "alpha": alpha, "score": blocks.score,
                "direction": blocks.direction, "band": band, "noun": blocks.noun},
        facts=(band,),
        findings=_findings(rows, 1.0 - alpha, blocks.noun, " of families like these" * (blocks.unit == "family")),
        notes=blocks.notes,
        formats=dict.fromkeys(["probability", "ci_low", "ci_high"], ".3f"),
        figure="improvement_plot",
    )  # fmt: skip


def _findings(rows: list[tuple[str, str, float, float, float]], level: float, noun: str, where: str) -> tuple[str, ...]:
    """One sentence per pair, from the side that is more often better."""
    sentences = []
    for left, right, p, low, high in rows:
        if p < 0.5:
            left, right, p, low, high = right, left, 1.0 - p, 1.0 - high, 1.0 - low
        ends = f"{percent(level)} interval {written(low, '.2f')} to {written(high, '.2f')}"
        sentences.append(
            f"A {noun} of {left} is better than one of {right} on the same benchmark{where} with probability "
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
            wins = np.empty((len(rows), k, k))
            for a in range(k):
                wins[:, a] = ((share[rows, a] @ won[i][a]) * share[rows].reshape(-1, k * r)).reshape(-1, k, r).sum(2)
            np.add.at(out, draw[rows], wins * resampling.share[i] / chosen.shape[1])
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
        for side, runs_of_side in enumerate(sides):
            if len(runs_of_side) > 1:
                left = by_block.mean() + resampling.share[i] / count * (p - runs_of_side) / (len(runs_of_side) - 1)
                out.append((np.full(len(runs_of_side), 2 * i + side, dtype=np.intp), left[:, None]))
    return out


# ------------------------------------------------------------------------------------------------- performance profiles


COUNTED = ("runs", "benchmarks")
_POINTS = 101
_SHOWN = 5  # scores in the printed table
_EQUAL = 1e-9  # shares that differ by less are equal


def performance_profiles(resampling: Resampling, taus: Any, *, of: str, method: str, alpha: float) -> Answer:
    """The profiles of `AggregateScores.profiles`."""
    check_choice(of, "of", COUNTED)
    blocks = resampling.blocks
    places = _taus(taus, blocks.runs)

    def profile(scores: Array, weights: Array, means: Array) -> Array:
        if of == "runs":
            return beyond(places, scores, weights, blocks.direction)
        return blocks_beyond(places, scores, means, blocks.direction)

    parts, shares = [], np.empty((len(blocks.algorithms), len(places)))
    for a, name in enumerate(blocks.algorithms):
        shares[a], draws, without = resampling.of(profile, a)
        low, high = np.clip(intervals(draws, shares[a], without, method, 1.0 - alpha), 0.0, 1.0)
        columns = {"algorithm": name, "tau": places, "share": shares[a], "ci_low": low, "ci_high": high}
        parts.append(pd.DataFrame(columns))
    table = pd.concat(parts, ignore_index=True)
    at = np.unique(np.linspace(0, len(places) - 1, min(_SHOWN, len(places))).round().astype(int))
    units = of if of == "runs" else blocks.units
    band = f"Pointwise {band_of(resampling, method, 1.0 - alpha)}"
    cut = (f"{_SHOWN} of {len(places)} scores; all are in to_frame().",) if len(places) > _SHOWN else ()
    return Answer(
        question="profiles",
        title=f"Share of {units} with {blocks.score} {'below' if blocks.direction == 'minimize' else 'above'} tau",
        tables={"table": table},
        values={"of": units, "algorithms": blocks.algorithms, "roster": blocks.roster, "taus": tuple(places.tolist()),
                "shares": shares, "method": method, "alpha": alpha, "score": blocks.score,
                "direction": blocks.direction, "band": band},
        facts=(*cut, band),
        findings=(_ahead(shares, blocks.algorithms, units),),
        notes=blocks.notes,
        printed=table[np.tile(np.isin(np.arange(len(places)), at), len(shares))].reset_index(drop=True),
        formats=dict.fromkeys(["share", "ci_low", "ci_high"], ".3f"),
        figure="performance_profile_plot",
    )  # fmt: skip


def _ahead(shares: Array, algorithms: tuple[str, ...], units: str) -> str:
    """Whose profile is never below another one."""
    first = (shares >= shares.max(axis=0) - _EQUAL).all(axis=1)
    if not first.any():
        return (
            "No algorithm is ahead at every score: profiles cross, so which is better depends on the scores that count."
        )
    names = [name for name, ahead in zip(algorithms, first, strict=True) if ahead]
    verb = "is" if len(names) == 1 else "are"
    return f"{joined(names)} {verb} ahead at every score: no other has a larger share of better {units}."


def _taus(thresholds: Any, scores: Array) -> Array:
    """Scores at which to count, ascending."""
    if thresholds is None:
        return np.linspace(np.nanmin(scores), np.nanmax(scores), _POINTS)
    try:
        taus = np.unique(np.array(thresholds, dtype=float))
    except (TypeError, ValueError):
        taus = np.empty(0)
    if not len(taus) or not np.isfinite(taus).all() or np.asarray(thresholds).dtype == bool:
        raise ArgumentError(f"taus must be finite scores, at least one, or None, got {thresholds!r}.")
    return taus
