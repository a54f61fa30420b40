"""Aggregate scores of algorithms over benchmarks: interquartile mean, median, mean, optimality gap.

What one number says of many runs on many benchmarks, with an interval that says how far it may be from what other runs,
or other benchmarks, would give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.improvement import improvement
from lmemtest.bench.ranking.profiles import performance_profiles
from lmemtest.bench.ranking.resampling import (
    DRAWN,
    UNITS,
    Resampling,
    Weighted,
    band_of,
    check_draws,
    check_units,
    complete_blocks,
    intervals,
)
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import tie_order, tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_number, resolve_rng, several
from lmemtest.core.words import counted, format_number, joined, listed, percent
from lmemtest.errors import ArgumentError
from lmemtest.lmm.intervals.bootstrap import METHODS

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array
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
            mean).
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
) -> AggregateScores:
    """Aggregate the scores of each algorithm over benchmarks and runs, with bootstrap intervals.

    Parameters
    ----------
    runs : Runs, or a wide table
        Scores that compare across benchmarks (`Runs.normalize`), every algorithm on every one. A wide table has a
        column per algorithm and a row per benchmark, as in `Runs.from_wide`, and so one run each.
    measures : str or iterable of str
        Of "iqm" (mean of the middle half of all runs), "median" (of the means by benchmark), "mean",
        "optimality_gap" (mean shortfall of the runs from `threshold`; scores beyond it count as the threshold).
    direction : {"minimize", "maximize"}, optional
        For a wide table.
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
    level : float in (0, 1)
        Coverage of each interval by itself.
    n_draws : int
    rng : int, numpy.random.Generator or None

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
    with 5 and 94 % with 20; with one fewer drawn 94 % each time (docs/aggregate-scores.md). Intervals of the median by
    "basic" and "bca" cover too rarely (80 to 90 %).

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
    given = [measures] if isinstance(measures, (str, Mapping)) or not several(measures) else measures
    names = tuple(dict.fromkeys(check_choice(name, "measures", tuple(MEASURES)) for name in given))
    if not names:
        raise ArgumentError(f"measures must name at least one of {listed(map(repr, MEASURES))}, got none.")
    check_choice(resample, "resample", UNITS)
    check_choice(drawn, "drawn", DRAWN)
    check_choice(method, "method", METHODS)
    n_draws, level = check_draws(n_draws, alpha)
    generator = resolve_rng(rng)
    blocks, unitless = complete_blocks(runs, direction, resample)
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
        cut = middle(blocks, a)
        estimate[a] = measured(resampling.observed(a), cut)[0]
        draws[:, a] = np.concatenate([measured(part, cut) for part in resampling.draws(a)])
        without = ((stratum, measured(part, cut)) for stratum, part in resampling.left_out(a))
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


def measures_of(weighted: Weighted, cut: float, names: Sequence[str], threshold: float, direction: str) -> Array:
    """Measures of each draw of the runs of an algorithm, ``(draws, measures)``; `cut` is the `middle` of it."""
    scores = weighted.scores
    short = scores - threshold if direction == "minimize" else threshold - scores
    of = {
        "iqm": lambda: np.diff(np.clip(weighted.cumulative, cut, 1.0 - cut), axis=1) @ scores / (1.0 - 2.0 * cut),
        "median": lambda: np.median(weighted.means, axis=1),
        "mean": lambda: weighted.weights @ scores,
        "optimality_gap": lambda: weighted.weights @ np.maximum(short, 0.0),
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
