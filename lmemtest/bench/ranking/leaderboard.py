"""Leaderboards: ratings, win rates, ranks and shares of algorithms over benchmarks, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.modelling.scores import reduced
from lmemtest.bench.ranking.bradley_terry import estimable, linked, ratings
from lmemtest.bench.ranking.methods import Asked, by_model, runs_of
from lmemtest.bench.ranking.standings import (
    MEASURES,
    Standings,
    drawn_over_blocks,
    drawn_over_runs,
    wins_on_blocks,
)
from lmemtest.core.hints import guided
from lmemtest.core.proportions import jeffreys
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order, tolerance, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import counted, joined, percent, plural
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.decisions import Decisions


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
) -> Answer:
    """Rate algorithms over benchmarks: Elo, win rate, mean rank, share of first places, share of the gap closed, ranks.

    Parameters
    ----------
    runs : Runs, wide dataframe, or Blocks
        With several benchmarks, or several seeds of one; a frame with one benchmark a row and one algorithm a column,
        with its `direction`; or the blocks of a ranking. A benchmark counts once, by the mean scores on it, whatever
        its number of runs; several budgets of a run are averaged.
    direction : {"minimize", "maximize"}, optional
        Which end of the scores is better, of a wide frame; `Runs` say so themselves.
    reference : str, optional
        The algorithm whose rating is 1,000. By default 1,000 is the mean of all ratings, so that neither the data nor
        the order of the table single out an algorithm.
    level : float in (0, 1)
        Of each interval by itself.
    n_draws : int
        Random weights of the benchmarks (or runs) behind the intervals.
    rng : int, numpy.random.Generator or None
        Source of the draws.
    resample : {"benchmarks", "runs"}
        What the intervals generalise to: other benchmarks of this kind, or other runs on exactly these benchmarks,
        which takes two runs of every algorithm on each at least.
    decisions : Decisions, optional
        From which the sets of ranks are made; by default those of `rank`, for other benchmarks of this kind.

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
        if direction is not None:
            raise ArgumentError("direction is for a wide frame, and blocks have their own. Leave it out.")
        blocks = runs
    else:
        runs = runs_of(runs, direction, "lmemtest.leaderboard")
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
        return by_model(reduced(runs, None), Asked(alpha=alpha)).decisions, ()
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
    return np.asarray(np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull"))


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
        here, others = ([name for name, known in zip(names, with_first, strict=True) if known == side]
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
