"""Relative ranks of algorithms over the budget: who is ahead, from which budget on, and how sure is that?

At every budget the algorithms are ranked within each instance and seed (1 = best), and the ranks are averaged: over the
seeds of an instance, the instances of a benchmark, the benchmarks. What an interval around such a mean says depends on
what is taken for the sample: benchmarks (what would others show?) or seeds (what would other seeds show on these?).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._rounding import written
from lmemtest._table import ResultTable, Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.student import t_quantile
from lmemtest.studies.budget.rank_blocks import RankedRuns, ranked_runs
from lmemtest.words import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    FloatArray = NDArray[np.float64]

OVER = ("benchmarks", "seeds")
ALL = "all"
_SHOWN = 5  # budgets in the printed table
_EQUAL = 1e-9  # mean ranks that differ by less are equal


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class RelativeRanks(Tabular):
    """Mean ranks of the algorithms over the budget.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    by : str or None
        The column that splits the instances.
    panels : tuple of str
        ``"all"``, then the levels of `by` as text; ``("all",)`` without it.
    algorithms : tuple
    budgets : tuple
        ``(None,)`` where the runs have no budget.
    budget : str or None
        The column.
    over : {"benchmarks", "seeds"}
        The sample that the intervals generalise from.
    level : float
        Confidence level of each interval on its own.
    n_benchmarks, n_seeds : int
        0 seeds if the runs name none.
    score, direction : str
    notes : tuple of str
    """

    table: pd.DataFrame
    by: str | None
    panels: tuple[str, ...]
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    budget: str | None
    over: str
    level: float
    n_benchmarks: int
    n_seeds: int
    score: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def band(self) -> str:
        """What the intervals mean, for the foot of a figure."""
        size = f"{100 * self.level:.4g} % t intervals over"
        if self.over == "seeds":
            return f"{size} seeds: the luck of seeds on these benchmarks; they say nothing about other benchmarks."
        return f"{size} benchmarks: mean ranks to expect on other benchmarks of this kind."

    def panel(self, name: str) -> pd.DataFrame:
        """The rows of one panel."""
        check_choice(name, "name", self.panels)
        return self.table if self.by is None else self.table[self.table[self.by] == name]

    def leaders(self) -> pd.DataFrame:
        """Who has the lowest mean rank at each budget.

        Returns
        -------
        pandas.DataFrame
            ``by`` (if split), ``budget``, ``best`` (names joined by " and " where they tie), ``rank``, ``apart``
            (whether the interval of the best ends below those of all others).
        """
        rows = []
        for name in self.panels:
            for budget, part in _per_budget(self.panel(name)):
                rows.append(({self.by: name} if self.by else {}) | {"budget": budget} | _leader(part))
        return pd.DataFrame(rows)

    def sentences(self) -> tuple[str, ...]:
        """One sentence per panel: who ranks best, from which budget on, and whether the intervals separate."""
        leaders = self.leaders()
        out = []
        for name in self.panels:
            rows = leaders if self.by is None else leaders[leaders[self.by] == name]
            scope = "" if self.by is None else "All instances: " if name == self.panels[0] else f"{self.by} {name}: "
            out.append(scope + self._who(rows.reset_index(drop=True)))
        return tuple(out)

    def _who(self, rows: pd.DataFrame) -> str:
        best = rows["best"].iloc[-1]
        others = np.flatnonzero((rows["best"] != best).to_numpy())
        start = int(others[-1]) + 1 if len(others) else 0
        when = self._when(rows, start)
        if best not in map(str, self.algorithms):
            return f"{best} have the best observed rank{when}."
        share = _share(rows["apart"].iloc[start:], len(rows))
        return f"{best} has the best observed rank{when}; its {100 * self.level:.4g} % interval is {share}."

    def _when(self, rows: pd.DataFrame, start: int) -> str:
        """From which budget on the last leader leads."""
        if len(rows) == 1:
            return f" (mean rank {written(rows['rank'].iloc[0], '.2f')})"
        if start == 0:
            return f" at all {len(rows)} budgets"
        best = rows["best"].iloc[-1]
        before = listed(name for name in dict.fromkeys(rows["best"].iloc[:start]) if name != best)
        at = f"from {self.budget} {_value(rows['budget'].iloc[start])} on"
        return f" {at if start < len(rows) - 1 else 'at the last budget only'} (before: {before})"

    def to_frame(self) -> pd.DataFrame:
        """One row per panel, algorithm and budget.

        Returns
        -------
        pandas.DataFrame
            The column of ``by`` if there is one ("all" for all instances together), ``algorithm``, ``budget``,
            ``rank`` (mean rank), ``se``, ``ci_low``, ``ci_high`` (within 1 and the number of algorithms), ``n``
            (benchmarks or seeds behind the standard error).
        """
        return self.table.copy()

    def to_table(self) -> ResultTable:
        """The mean ranks as a table; of many budgets, a few."""
        kept = np.unique(np.linspace(0, len(self.budgets) - 1, min(_SHOWN, len(self.budgets))).round().astype(int))
        shown = [self.budgets[i] for i in kept]
        notes = [*self.sentences(), f"Intervals: {self.band}", *self.notes]
        frame = self.table
        if len(shown) < len(self.budgets):
            frame = frame[frame["budget"].isin(shown)].reset_index(drop=True)
            notes.insert(0, f"{len(shown)} of {len(self.budgets)} budgets; all are in to_frame().")
        if self.budget is None:
            frame = frame.drop(columns="budget")
        formats = {**dict.fromkeys(["rank", "ci_low", "ci_high"], ".2f"), "se": ".3f"}
        what = "lower is better" if self.direction == "minimize" else "higher is better"
        return ResultTable(f"Relative ranks by {self.score} ({what})", frame, notes=tuple(notes), formats=formats)


@one_blas_thread()
def relative_ranks(
    runs: Runs,
    *,
    by: str | None = None,
    over: str | None = None,
    level: float = 0.95,
    budgets: Iterable[float] | None = None,
) -> RelativeRanks:
    """Mean ranks of the algorithms at every budget, with intervals.

    Parameters
    ----------
    runs : Runs
        Every algorithm on every instance (benchmark and level of the metafeatures).
    by : str, optional
        A column that is constant within each instance, such as a metafeature: ranks are given for all instances and for
        each of its levels.
    over : {"benchmarks", "seeds"}, optional
        The sample. "benchmarks" (default): the interval is for the mean rank over benchmarks like these; instances of
        one benchmark are averaged first. "seeds": it is for the mean rank on exactly these benchmarks with other seeds;
        its standard error is the band of the paper. With a single benchmark (in all or in a level of `by`) the default
        is "seeds", and the notes say so.
    level : float in (0, 1)
        Confidence level of each interval on its own.
    budgets : iterable of float, optional
        Budgets at which to rank. Each run then has the score of its last row at or before that budget, which is right
        for the best score so far. By default: the budgets that all runs have.

    Returns
    -------
    RelativeRanks
        ``to_frame()`` has [by,] algorithm, budget, rank, se, ci_low, ci_high, n; ``sentences()`` say who ranks best
        from which budget on, ``leaders()`` shows it per budget.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule, or there are too few benchmarks or seeds for an interval.
    DataError
        If an algorithm is missing on an instance, no seed of an instance was run by all algorithms, runs have no
        budget in common, or scores are missing.

    Notes
    -----
    Ties share the mean of their ranks. Ranks are bounded, so intervals are cut at 1 and at the number of algorithms.
    The interval over benchmarks is a t interval of the benchmark means. That over seeds is one of the seed means (each
    over all benchmarks) and holds the benchmarks fixed: it would become arbitrarily narrow with more seeds, however few
    the benchmarks.

    Ranks know no distances, and the rank of one algorithm depends on the others: leave one out, and two others may
    change places. For differences in the score see `analyze` and `budget_effect`.

    References
    ----------
    Mallik et al. (2023), PriorBand, arXiv:2306.12370 (the plot); Geburek et al. (2024), arXiv:2408.02533, figure 6;
    Benavoli, Corani & Mangili (2016), Journal of Machine Learning Research 17(5) (ranks depend on who takes part)

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.budget.relative_ranks import relative_ranks
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"])
    >>> ranks = relative_ranks(runs, by="prior")
    >>> for sentence in ranks.sentences():
    ...     print(sentence.split(";")[0])
    All instances: HB has the best observed rank from budget 16 on (before: HB+prior)
    prior bad: HB has the best observed rank at all 10 budgets
    prior good: HB+prior has the best observed rank at all 10 budgets
    >>> ranks.to_frame().head(2).round(2)
      prior algorithm  budget  rank    se  ci_low  ci_high   n
    0   all        HB       1  1.92  0.04    1.84     2.01  20
    1   all        HB       2  1.91  0.05    1.81     2.01  20
    """
    require_runs(runs)
    level = check_fraction(level, "level")
    if over is not None:
        check_choice(over, "over", OVER)
    ranked = ranked_runs(runs, by=by, budgets=budgets)
    panels = _panels(ranked)
    over, notes = _sample(ranked, panels, over)
    parts = []
    for name, mask in panels.items():
        table = _summary(ranked, mask, over, level)
        if by is not None:
            table.insert(0, by, name)
        parts.append(table)
    table = pd.concat(parts, ignore_index=True)
    notes += (
        f"Ranks are among these {len(ranked.algorithms)} algorithms: with another set of algorithms two of them can "
        "change places.",
    )
    if len(ranked.budgets) > 1:
        notes += (
            "Each interval is right at its own budget; budgets of one run are not independent. Intervals of two "
            "algorithms that overlap do not show that the two are equal: ranks of one run depend on each other.",
        )
    if (table["se"] == 0).any():
        notes += ("A standard error of 0 says that every sample mean was the same, not that nothing else can happen.",)
    return RelativeRanks(
        table=table,
        by=by,
        panels=tuple(panels),
        algorithms=ranked.algorithms,
        budgets=ranked.budgets,
        budget=runs.budget,
        over=over,
        level=level,
        n_benchmarks=len(np.unique(ranked.benchmark)),
        n_seeds=len(ranked.seeds) if runs.seed else 0,
        score=runs.score,
        direction=runs.direction,
        notes=(*ranked.notes, *notes),
    )


def _panels(ranked: RankedRuns) -> dict[str, np.ndarray]:
    """Which runs belong to a panel."""
    everything = np.ones(len(ranked.instance), dtype=bool)
    if ranked.group is None:
        return {ALL: everything}
    names = [str(level) for level in ranked.groups]
    top = ALL if ALL not in names else f"({ALL})"
    return {top: everything} | {name: ranked.group == i for i, name in enumerate(names)}


def _sample(ranked: RankedRuns, panels: dict[str, np.ndarray], over: str | None) -> tuple[str, tuple[str, ...]]:
    """What the intervals generalise from, and the notes on it."""
    benchmarks = {name: len(np.unique(ranked.benchmark[mask])) for name, mask in panels.items()}
    seeds = {name: len(_common_seeds(ranked, mask)) for name, mask in panels.items()}
    few = [name for name, n in benchmarks.items() if n < 2]
    if over == "benchmarks" and few:
        raise ArgumentError(
            f"over='benchmarks' needs at least 2 benchmarks, but there is one{_where(few)}. "
            "Use over='seeds': intervals for exactly these benchmarks."
        )
    if over is None and not few:
        over = "benchmarks"
    if over == "benchmarks":
        return over, ()
    short = [name for name, n in seeds.items() if n < 2]
    if short:
        wanted = "over='seeds' needs" if over else "one benchmark leaves the seeds as the sample, which needs"
        raise ArgumentError(
            f"{wanted} at least 2 seeds that all instances have, but there are fewer{_where(short)}. "
            "Name the column of the seeds, Runs(..., seed=...), or add runs with other seeds."
        )
    notes = []
    if over is None:
        notes.append(f"There is one benchmark only{_where(few)}, so the intervals are over seeds.")
    partial = [name for name, mask in panels.items() if seeds[name] < len(np.unique(ranked.seed[mask]))]
    if partial:
        notes.append("Seeds that some instances do not have were left out.")
    return "seeds", tuple(notes)


def _where(names: list[str]) -> str:
    names = [name for name in names if name not in (ALL, f"({ALL})")]
    return f" in {listed(names)}" if names else ""


def _common_seeds(ranked: RankedRuns, mask: np.ndarray) -> np.ndarray:
    """Codes of the seeds that every instance of a panel has."""
    if not ranked.has_seeds:
        return np.zeros(0, dtype=np.intp)
    counts = np.bincount(ranked.seed[mask])
    return np.flatnonzero(counts == len(np.unique(ranked.instance[mask])))


def _summary(ranked: RankedRuns, mask: np.ndarray, over: str, level: float) -> pd.DataFrame:
    """Mean, standard error and interval per algorithm and budget."""
    if over == "seeds":
        mask = mask & np.isin(ranked.seed, _common_seeds(ranked, mask))
        sample, _ = group_means(ranked.ranks[mask], ranked.seed[mask])
    else:
        instances, which = group_means(ranked.ranks[mask], ranked.instance[mask])
        sample, _ = group_means(instances, ranked.benchmark_of[which])
    n, n_budgets, n_algorithms = sample.shape
    mean = sample.mean(axis=0)
    se = sample.std(axis=0, ddof=1) / np.sqrt(n)
    se[se < _EQUAL] = 0.0
    half = float(t_quantile((1.0 - level) / 2.0, np.array([n - 1.0]))[0]) * se
    return pd.DataFrame(
        {
            "algorithm": np.repeat(np.array(ranked.algorithms, dtype=object), n_budgets),
            "budget": list(ranked.budgets) * n_algorithms,
            "rank": mean.T.ravel(),
            "se": se.T.ravel(),
            "ci_low": np.clip(mean - half, 1.0, None).T.ravel(),
            "ci_high": np.clip(mean + half, None, float(n_algorithms)).T.ravel(),
            "n": n,
        }
    )


def group_means(values: FloatArray, group: np.ndarray) -> tuple[FloatArray, np.ndarray]:
    """Means over the first axis within groups, and the groups."""
    names, codes = np.unique(group, return_inverse=True)
    member = np.zeros((len(names), len(group)))
    member[codes.ravel(), np.arange(len(group))] = 1.0
    member /= member.sum(axis=1, keepdims=True)
    return (member @ values.reshape(len(group), -1)).reshape(len(names), *values.shape[1:]), names


def _per_budget(table: pd.DataFrame) -> list[tuple[Any, pd.DataFrame]]:
    if table["budget"].isna().all():
        return [(None, table)]
    return [(budget, table[table["budget"] == budget]) for budget in dict.fromkeys(table["budget"])]


def _leader(part: pd.DataFrame) -> dict[str, Any]:
    rank = part["rank"].to_numpy()
    first = rank <= rank.min() + _EQUAL
    names = [str(name) for name in part["algorithm"].to_numpy()[first]]
    apart = len(names) == 1 and part["ci_high"].to_numpy()[first][0] < part["ci_low"].to_numpy()[~first].min()
    return {"best": " and ".join(names), "rank": float(rank.min()), "apart": bool(apart)}


def _share(apart: pd.Series[bool], n_budgets: int) -> str:
    """At how many budgets the interval of the leader is apart from the others."""
    count, total = int(apart.sum()), len(apart)
    if total == 1:
        return f"{'' if count else 'not '}apart from all others{' there' if n_budgets > 1 else ''}"
    if count in (0, total):
        return f"{'' if count else 'not '}apart from all others at {'all' if count else 'any'} of these {total} budgets"
    return f"apart from all others at {count} of these {total} budgets"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)
