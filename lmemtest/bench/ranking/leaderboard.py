"""Leaderboards: ratings, win rates, ranks and shares of algorithms over benchmarks, with intervals.

How well algorithms do over blocks: measures that are functions of weighted sums over the blocks.
With weights of one they are the estimates; random weights, of the blocks or of the runs within them, show how the
measures would vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.data.per_run import reduced
from lmemtest.bench.data.runs import as_runs
from lmemtest.bench.ranking.bradley_terry import ELO, estimable, likeliest, linked, ratings
from lmemtest.bench.ranking.methods import RankOptions, by_model
from lmemtest.core.hints import guided
from lmemtest.core.proportions import jeffreys
from lmemtest.core.resampling import batches, dealt, drawn_interval
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order, tolerance, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import counted, joined, percent, plural
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.decisions import Decisions


# ------------------------------------------------------------------------------------------------- measures over blocks


MEASURES = ("elo", "win_rate", "mean_rank", "p_best", "gap_closed")
CENTRE = 1000.0  # rating of the reference
_LEAST_WEIGHT = 1e-6  # of a virtual block: less is nothing, and would make the equations of a fit singular
_CHUNK = 4_000_000  # numbers at a time


# The axis of the blocks in each field of `Standings`
_BLOCKS = {"won": -2, "lost": -2, "complete": -1, "ranks": -2, "firsts": -2, "uneven": -1, "gaps": -2}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standings:
    """What blocks contribute: one by one (axis n), or weighted sums over them; any number of leading axes.

    Attributes
    ----------
    won, lost : (..., [n,] k) float
        Comparisons with another algorithm, ties one half.
    complete : (..., [n]) float
        Blocks on which all algorithms ran; only these are in the fields that follow.
    ranks, firsts : (..., [n,] k) float
        1 best, ties the mean of theirs; first places, ties split.
    uneven : (..., [n]) float
        Complete blocks on which not all algorithms tie.
    gaps : (..., [n,] k) float
        ``(score - worst) / (best - worst)``, on uneven blocks.
    """

    won: NDArray[Any]
    lost: NDArray[Any]
    complete: NDArray[Any]
    ranks: NDArray[Any]
    firsts: NDArray[Any]
    uneven: NDArray[Any]
    gaps: Array

    @classmethod
    def on_blocks(cls, gains: Array, ties: Array, wins: NDArray[Any]) -> Standings:
        """Of each block, from scores of which more is better, ``(..., n, k)``, and their `wins_on_blocks`."""
        k = gains.shape[-1]
        complete = np.asarray(np.isfinite(gains).all(axis=-1, keepdims=True))
        best, worst = gains.max(axis=-1, keepdims=True), gains.min(axis=-1, keepdims=True)
        first = complete & (gains >= best - ties[:, None])
        uneven = complete & (best - worst > ties[:, None])
        gaps = (gains - worst) / np.where(uneven, best - worst, 1.0)
        won = wins.sum(axis=-1, dtype=float)
        return cls(
            won=won,
            lost=wins.sum(axis=-2, dtype=float),
            complete=complete[..., 0],
            ranks=np.where(complete, k - won, 0.0),
            firsts=first / np.maximum(first.sum(axis=-1, keepdims=True), 1),
            uneven=uneven[..., 0],
            gaps=np.where(uneven, gaps, 0.0),
        )

    @classmethod
    def in_order(cls, order: NDArray[Any]) -> Standings:
        """Of blocks on which the algorithms have the places 0 (worst), 1, ..., k - 1."""
        most = order.shape[-1] - 1.0
        one = np.ones(order.shape[:-1])
        return cls(
            won=order,
            lost=most - order,
            complete=one,
            ranks=most + 1.0 - order,
            firsts=(order == most).astype(float),
            uneven=one,
            gaps=order / most,
        )

    def total(self) -> Standings:
        """Sums over the blocks, each with weight one."""
        return Standings(**{name: getattr(self, name).sum(axis=axis, dtype=float) for name, axis in _BLOCKS.items()})

    def weighted(self, weights: Array) -> Standings:
        """Sums over the blocks, ``(n, ...)``, with weights ``(n_draws, n)``."""
        return Standings(**{name: np.tensordot(weights, getattr(self, name).astype(float), axes=1) for name in _BLOCKS})

    def measures(self, theta: Array, reference: int | None) -> dict[str, Array]:
        """Each of `MEASURES` from sums and their ratings, ``(..., k)``; NaN where no block has all algorithms."""
        zero = 0.0 if reference is None else theta[..., reference, None]
        with np.errstate(invalid="ignore"):
            return {
                "elo": CENTRE + ELO * (theta - zero),  # theta has mean zero
                "win_rate": self.won / (self.won + self.lost),
                "mean_rank": self.ranks / self.complete[..., None],
                "p_best": self.firsts / self.complete[..., None],
                "gap_closed": self.gaps / self.uneven[..., None],
            }


def wins_on_blocks(gains: Array, ties: Array) -> NDArray[Any]:
    """Wins of row over column on each block, ties one half, ``(..., n, k, k)``, from gains ``(..., n, k)``.

    Scores of a block that differ by no more than its number in `ties`, ``(n,)``, are tied.
    """
    k = gains.shape[-1]
    row, column, tie = gains[..., :, None], gains[..., None, :], ties[:, None, None]
    wins = (row > column + tie).astype(np.float32)
    wins += row >= column - tie  # NaN is neither
    wins *= 0.5
    wins[..., range(k), range(k)] = 0.0
    return wins


def drawn_over_blocks(
    each: Standings, games: NDArray[Any], start: Array, n_draws: int, rng: np.random.Generator
) -> Iterator[tuple[Standings, Array]]:
    """Sums of the standings on blocks with random weights, and their ratings, some draws at a time.

    `games` of the pairs on each block are ``(n, k, k)``, or ``(n, 1, 1)`` of ones where no score is missing; the search
    for the ratings begins at `start`. Weights are exponential, which is Rubin's Bayesian bootstrap. Two virtual blocks,
    with the algorithms in a random order and in the reverse order, have weights with the gamma distribution of shape
    1/2; so for two algorithms the share of wins w of n has the distribution Beta(w + 1/2, n - w + 1/2).
    """
    n, k = each.won.shape
    games = games.astype(float)
    for size in batches(n_draws, k * k, _CHUNK):
        order = dealt(np.arange(float(k)), size, rng)
        virtual = Standings.in_order(np.stack([order, k - 1.0 - order], axis=1))
        of_blocks = rng.exponential(size=(size, n))
        real = each.weighted(of_blocks)
        weights = np.maximum(rng.gamma(0.5, size=(size, 2)), _LEAST_WEIGHT)
        sums = Standings(
            **{
                name: getattr(real, name) + np.einsum("db,db...->d...", weights, getattr(virtual, name))
                for name in _BLOCKS
            }
        )
        met = np.tensordot(of_blocks, games, axes=1) + weights.sum(axis=1)[:, None, None]
        yield sums, likeliest(sums.won, sums.lost, met, start)


def drawn_over_runs(
    blocks: Blocks, ties: Array, n_draws: int, rng: np.random.Generator
) -> Iterator[tuple[Standings, Array]]:
    """Standings with random weights of the runs on each instance, and their ratings, some draws at a time.

    Runs of several algorithms with the same seed on an instance have the same weight, so what they share cancels in
    every draw as it does in the scores. Deviations of a weighted mean of r runs have (r - 1) / (r + 1) times the
    estimated variance of a mean, and are stretched by the root of the inverse.
    """
    k, n_runs = len(blocks.algorithms), blocks.n_runs
    ran = np.isfinite(blocks.runs)
    deviations = np.where(ran, blocks.runs - blocks.means[:, :, None], 0.0)
    stretch = np.sqrt((n_runs + 1.0) / np.maximum(n_runs - 1.0, 1.0))
    weighed = np.arange(blocks.runs.size).reshape(blocks.runs.shape)  # which weight a run has
    if blocks.seeds is not None:
        instance = np.arange(len(blocks.runs))[:, None, None]
        keys = instance * (int(blocks.seeds.max()) + 2) + blocks.seeds
        weighed = np.unique(keys, return_inverse=True)[1].reshape(blocks.runs.shape)
    order = np.argsort(blocks.block, kind="stable")
    instances = np.bincount(blocks.block)
    starts = np.cumsum(instances) - instances
    sign = 1.0 if blocks.direction == "maximize" else -1.0
    for size in batches(n_draws, max(blocks.runs.size, len(instances) * k * k), _CHUNK):
        weights = rng.exponential(size=(size, weighed.max() + 1))[:, weighed] * ran
        total = np.maximum(weights.sum(axis=3), np.finfo(float).tiny)
        means = blocks.means + stretch * np.einsum("dmkr,mkr->dmk", weights, deviations) / total
        scores = np.add.reduceat(means[:, order], starts, axis=1) / instances[:, None]
        wins = wins_on_blocks(sign * scores, ties)
        yield Standings.on_blocks(sign * scores, ties, wins).total(), ratings(wins.sum(axis=-3, dtype=float))


# ------------------------------------------------------------------------------------------------------ the leaderboard


RESAMPLE = ("benchmarks", "runs")


@guided
@one_blas_thread()
def leaderboard(
    runs: Any,
    *,
    direction: str | None = None,
    reference: str | None = None,
    alpha: float = 0.05,
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
    resample: str = "benchmarks",
    decisions: Decisions | None = None,
    **roles: Any,
) -> Answer:
    """Rate algorithms over benchmarks: Elo, win rate, mean rank, share of first places, share of the gap closed, ranks.

    Parameters
    ----------
    runs : Runs, wide dataframe, or Blocks
        With several benchmarks, or several seeds of one; a dataframe with `roles`, or with one benchmark a row and one
        algorithm a column and its `direction`; or the blocks of a ranking. A benchmark counts once, by the mean scores
        on it, whatever its number of runs; several budgets of a run are averaged.
    direction : {"minimize", "maximize"}, optional
        Which end of the scores is better, of a dataframe; `Runs` say so themselves.
    reference : str, optional
        The algorithm whose rating is 1,000. By default 1,000 is the mean of all ratings, so that neither the data nor
        the order of the table single out an algorithm.
    alpha : float in (0, 1)
        Each interval by itself is at 1 - alpha.
    n_draws : int
        Random weights of the benchmarks (or runs) behind the intervals.
    rng : int, numpy.random.Generator or None
        Source of the draws.
    resample : {"benchmarks", "runs"}
        What the intervals generalise to: other benchmarks of this kind, or other runs on exactly these benchmarks,
        which takes two runs of every algorithm on each at least.
    decisions : Decisions, optional
        From which the sets of ranks are made; by default those of `rank`, for other benchmarks of this kind.
    **roles
        What the columns of a dataframe mean, as in `rank`.

    Returns
    -------
    Answer
        ``to_frame()`` has one row per algorithm, highest rating first: ``elo``, the rating by maximum likelihood in the
        model of Bradley and Terry, from all comparisons of two algorithms on a benchmark (ties are half a win for
        each); ``win_rate``, the share of its comparisons that an algorithm won (ties one half); ``mean_rank`` (1 best,
        ties the mean of theirs); ``p_best``, the share of the benchmarks on which it is best (ties split);
        ``gap_closed``, the mean of ``(score - worst) / (best - worst)``; each with the ends of its interval
        (``elo_low``, ``elo_high``, ...); ``p_first``, the share of the draws in which its mean rank is the best;
        ``n``, on how many benchmarks it has scores; ``rank`` by mean scores with ``rank_low`` and ``rank_high``, the
        set of ranks that the decisions leave open, for all algorithms at once (absent where nothing can be tested, and
        with ``resample="runs"``).
        ``to_frame("win_rates")`` has the shares of their benchmarks on which the row beats the column, ties one half;
        NaN where they never met. `reference` (None if 1,000 is the mean of all), `resample`, `alpha`, `n_draws`,
        `n_blocks`, `unit` ("family", "benchmark" or "seed", what counts once), `scope` (what the intervals are about),
        `score`, `direction`.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule, or `n_draws` are too few for `alpha`.
    DesignError
        If there are fewer than two algorithms or benchmarks, comparisons do not link all algorithms, or runs are
        not repeated where they are to be drawn.

    Notes
    -----
    Where an algorithm is missing on a benchmark, the others are compared there all the same; ``mean_rank``, ``p_best``
    and ``gap_closed`` leave that benchmark out. If some algorithms won, or lost, all comparisons with all others, no
    finite ratings maximise the likelihood, and every pair is given one virtual tie; a note says so.

    Intervals come from draws that give the benchmarks random weights (Rubin's Bayesian bootstrap) and add two virtual
    benchmarks with a mean weight of one half each, one with the algorithms in a random order and one with the reverse
    of it; else who won the few comparisons that there are would seem certain to win all others. For two algorithms
    this is Jeffreys' interval of the chance to win. The ends are at the normal quantiles times ``sqrt(n / (n - 1))``,
    because draws from n benchmarks vary too little. ``p_best`` has Jeffreys' interval. Runs are not drawn again
    within benchmarks: their noise is part of the differences between benchmarks, and would be counted twice. In
    simulations (3 and 10 algorithms; normal, heavy-tailed, skewed and tied scores) 95 % intervals covered 94 to 99 %
    with 6 benchmarks, 93 to 98 % with 20, 94 to 97 % with 50; percentiles of resampled benchmarks 85 % with 6.

    With ``resample="runs"`` the runs on a benchmark have random weights, the same for all algorithms where the seed is
    the same, and the deviations of a mean are scaled to its variance; intervals are percentiles.

    References
    ----------
    Bradley & Terry (1952), doi:10.1093/biomet/39.3-4.324; Rubin (1981), doi:10.1214/aos/1176345338 (random weights);
    Brown, Cai & DasGupta (2001), doi:10.1214/ss/1009213286 (Jeffreys' interval); Hesterberg (2015),
    doi:10.1080/00031305.2015.1089789 (wider percentiles for few observations)

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> board = lt.leaderboard(runs, reference="RS", rng=1)
    >>> board.to_frame()[["algorithm", "elo", "win_rate", "mean_rank", "p_best"]].round(2)
       algorithm      elo  win_rate  mean_rank  p_best
    0   HB+prior  1804.98      0.76       2.20    0.45
    1   RS+prior  1787.53      0.74       2.30    0.25
    2  TPE+prior  1736.50      0.68       2.60    0.20
    3         HB  1634.90      0.56       3.20    0.10
    4        TPE  1251.53      0.21       4.95    0.00
    5         RS  1000.00      0.05       5.75    0.00
    """
    if isinstance(runs, Blocks):
        if direction is not None or roles:
            name = next(iter(roles), "direction")
            raise ArgumentError(f"{name} is for a dataframe, and blocks have their own. Leave it out.")
        blocks = runs
    else:
        runs = as_runs(runs, {"direction": direction, **roles}, "leaderboard")
        runs.study.require_algorithms()
        blocks = blocks_of(runs)
    names = blocks.algorithms
    if reference is not None:
        check_choice(reference, "reference", names)
    at = None if reference is None else names.index(reference)
    level = 1.0 - check_fraction(alpha, "alpha")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=2)
    over_runs = check_choice(resample, "resample", RESAMPLE) == "runs"
    generator = resolve_rng(rng)
    ties = np.array([tolerance(row) for row in blocks.gains])
    of_each = wins_on_blocks(blocks.gains, ties)
    each, wins = Standings.on_blocks(blocks.gains, ties, of_each), of_each.sum(axis=0, dtype=float)
    sums, games = each.total(), wins + wins.T
    compared = int((each.won + each.lost > 0).any(axis=1).sum())
    _check_comparisons(blocks, games, compared)
    theta = ratings(wins)
    counts = {**dict.fromkeys(MEASURES, compared), "mean_rank": int(sums.complete), "gap_closed": int(sums.uneven)}
    tails = {name: _tail(level, np.inf if over_runs and n else n) for name, n in counts.items()}
    least = int(np.ceil(1.0 / np.nanmin(list(tails.values())) - 1e-6)) - 1
    if n_draws < least:
        raise ArgumentError(
            f"n_draws must be at least {least:,} for {percent(level)} intervals over {blocks.said()}, got {n_draws:,}."
        )
    if over_runs:
        _check_repeated(blocks)
        parts = drawn_over_runs(blocks, ties, n_draws, generator)
    else:
        met = np.ones((len(ties), 1, 1)) if blocks.complete.all() else of_each + of_each.swapaxes(1, 2)
        parts = drawn_over_blocks(each, met, theta, n_draws, generator)
    measured = [part.measures(drawn, at) for part, drawn in parts]
    draws = {name: np.concatenate([part[name] for part in measured]) for name in MEASURES}
    table = pd.DataFrame({"algorithm": names})
    for name, estimate in sums.measures(theta, at).items():
        if name == "p_best" and not over_runs:
            low, high = jeffreys(sums.firsts, sums.complete, level) if sums.complete > 1 else (np.nan, np.nan)
        else:
            low, high = _ends(draws[name], tails[name])
        table[name], table[f"{name}_low"], table[f"{name}_high"] = estimate, low, high
    table["p_first"] = _first(draws["mean_rank"]) if sums.complete else np.nan
    table["n"] = np.isfinite(blocks.gains).sum(axis=0)
    without: tuple[str, ...] = ()
    if decisions is None and not over_runs and not isinstance(runs, Blocks):
        decisions, without = _decisions(runs, alpha)
    if decisions is not None and not over_runs:
        place = {level: i + 1 for i, level in enumerate(decisions.levels)}
        columns = decisions.columns(names)
        table = table.assign(
            rank=[place[name] for name in names], rank_low=columns["rank_low"], rank_high=columns["rank_high"]
        )
    order = tie_order(table["elo"], descending=True)
    ordered = [names[i] for i in order]
    with np.errstate(invalid="ignore"):
        between = (wins / games)[np.ix_(order, order)]
    table = table.iloc[order].reset_index(drop=True)
    win_rates = pd.DataFrame(between, index=ordered, columns=ordered)
    scope = _scope(resample, blocks.unit)
    centre = f"that of {reference}" if reference else "the mean of all algorithms"
    return Answer(
        question="leaderboard",
        title=f"Leaderboard by {blocks.score} ({'lower' if blocks.direction == 'minimize' else 'higher'} is better)",
        tables={"leaderboard": table, "win_rates": win_rates},
        values={"reference": reference, "resample": resample, "alpha": alpha, "n_draws": n_draws, "n_blocks": compared,
                "unit": blocks.unit, "scope": scope, "score": blocks.score, "direction": blocks.direction},
        facts=(
            f"Bradley-Terry ratings from {counted(compared, blocks.unit)}: 1,000 is {centre}, and 400 points are odds "
            "of 10 to 1.",
            f"{percent(level)} intervals, not simultaneous: {scope}",
        ),
        findings=(
            *_findings(table, win_rates, blocks.unit, level),
            *(() if decisions is None or over_runs else decisions.sentences()),
        ),
        notes=(*blocks.notes, *_notes(blocks, sums, bool(estimable(wins)), over_runs=over_runs), *without),
        printed=table[["algorithm", "elo", "elo_low", "elo_high", *MEASURES[1:], "p_first", *_ranks_in(table)]],
        formats={**dict.fromkeys(["elo", "elo_low", "elo_high"], ".0f"),
                 **dict.fromkeys([*MEASURES[1:], "p_first"], ".2f")},
        figure="leaderboard_plot",
    )  # fmt: skip


def _decisions(runs: Runs, alpha: float) -> tuple[Decisions | None, tuple[str, ...]]:
    """The decisions about the algorithms' means, and why there are none."""
    try:
        return by_model(reduced(runs, None), RankOptions(alpha=alpha)).decisions, ()
    except DesignError as error:
        return None, (f"No sets of ranks: {error}",)


def _ranks_in(table: pd.DataFrame) -> list[str]:
    return [name for name in ("rank_low", "rank_high") if name in table]


def _scope(resample: str, unit: str) -> str:
    """What the intervals are about."""
    if resample == "runs":
        return f"what to expect from other runs on exactly these {plural(unit)}, and nothing about others."
    if unit == "seed":
        return "what to expect from other seeds on this benchmark, and nothing about others."
    return "what to expect on other benchmarks of this kind, with as many runs on each."


def _findings(table: pd.DataFrame, win_rates: pd.DataFrame, unit: str, level: float) -> tuple[str, ...]:
    """Who leads, by how much, and how sure that is."""
    first, second = (row for _, row in table.iloc[:2].iterrows())
    name, other = first["algorithm"], second["algorithm"]
    between = win_rates.loc[name, other]
    against = f", and {percent(between)} of those with {other}" if np.isfinite(between) else ""
    leads = (
        f"{name} has the highest rating, {written(first['elo'], '.0f')} ({percent(level)} interval "
        f"{written(first['elo_low'], '.0f')} to {written(first['elo_high'], '.0f')}): it wins "
        f"{percent(first['win_rate'])} of its comparisons on a {unit} (ties one half){against}."
    )
    if not np.isfinite(first["p_first"]):
        return (leads,)
    return leads, f"In {percent(first['p_first'])} of the draws behind the intervals its mean rank is the best."


def _tail(level: float, n: float) -> float:
    """The share of draws below an interval over n blocks: draws vary too little by a factor of (n - 1) / n."""
    return np.nan if n < 2 else float(ndtr(ndtri(0.5 * (1.0 - level)) / np.sqrt(1.0 - 1.0 / n)))


def _ends(draws: Array, tail: float) -> Array:
    """Both ends of intervals from draws, ``(2, k)``."""
    if np.isnan(tail):
        return np.full((2, draws.shape[1]), np.nan)
    return drawn_interval(draws, draws.mean(axis=0), "percentile", 1.0 - 2.0 * tail)


def _first(ranks: Array) -> Array:
    """Share of the draws in which an algorithm has the lowest rank, ties split."""
    first = ranks <= ranks.min(axis=1, keepdims=True) + tolerance(ranks)
    return np.asarray((first / first.sum(axis=1, keepdims=True)).mean(axis=0))


def _check_comparisons(blocks: Blocks, games: Array, compared: int) -> None:
    """Refuse what gives no ratings."""
    names = blocks.algorithms
    if len(names) < 2:
        raise DesignError(
            f"a leaderboard compares algorithms, and there is one: {names[0]}. Add runs of another algorithm."
        )
    if compared < 2:
        raise DesignError(
            f"a leaderboard needs two {blocks.units} at least on which algorithms can be compared, got {compared}. Run "
            f"the algorithms on more {blocks.units}."
        )
    with_first = linked(games)
    if not with_first.all():
        here, others = ([name for name, is_linked in zip(names, with_first, strict=True) if is_linked == side]
                        for side in (True, False))  # fmt: skip
        raise DesignError(
            f"no comparison links {joined(here)} with {joined(others)}, on a {blocks.unit} of both or through other "
            f"algorithms, so there is no scale for all of them. Run one of each side on the same {blocks.units}, or "
            "rate the sides one by one."
        )


def _check_repeated(blocks: Blocks) -> None:
    """Refuse to draw from single runs."""
    single = np.argwhere(blocks.n_runs == 1)
    if len(single):
        instance, algorithm = single[0]
        raise DesignError(
            f"resample='runs' needs two runs of an algorithm on a benchmark at least, and "
            f"{blocks.algorithms[algorithm]} has one on {blocks.instances[instance]}. Use resample='benchmarks', or "
            "repeat the runs with other seeds."
        )


def _notes(blocks: Blocks, sums: Standings, finite: bool, *, over_runs: bool) -> list[str]:
    """What to know about the measures."""
    total, complete, uneven = len(blocks.names), int(sums.complete), int(sums.uneven)
    notes = []
    if not complete:
        notes.append(f"No {blocks.unit} has all algorithms, so there is no mean_rank, p_best, gap_closed and p_first.")
    elif complete < total:
        notes.append(
            f"{total - complete} of {counted(total, blocks.unit)} lack an algorithm: the others are compared there, "
            f"but mean_rank, p_best, gap_closed and p_first are those of the other {complete}."
        )
    if uneven < complete:
        notes.append(f"gap_closed leaves out {counted(complete - uneven, blocks.unit)} on which all algorithms tie.")
    if not finite:
        notes.append(
            "Some algorithms won all their comparisons with all others, so the likelihood has no finite maximum: every "
            f"pair was given one virtual tie, as if all had tied on one more {blocks.unit}. How far these algorithms "
            "are ahead is not known."
        )
    if over_runs and blocks.seeds is None:
        notes.append(
            "No column of seeds is named, so runs of two algorithms are drawn independently; where seeds "
            "have effects that they share, the intervals are too long."
        )
    notes.append(
        f"Ratings, win rates and ranks are among these {len(blocks.algorithms)} algorithms: with another set of "
        "algorithms two of them can change places."
    )
    return notes
