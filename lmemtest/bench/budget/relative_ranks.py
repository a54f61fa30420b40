"""Relative ranks of algorithms over the budget: who is ahead, from which budget on, and how sure is that?

At every budget the algorithms are ranked within each instance and seed (1 = best), and the ranks are averaged over the
seeds of an instance, the instances of a benchmark, the benchmarks. Only complete comparisons count: an instance with a
seed takes part if all algorithms ran there, and a budget if all of these runs have it; else the mean over budgets would
also show which runs come and go. Such an instance with a seed is a block: ranks are ``(blocks, algorithms, budgets)``,
and `codes` number the instance, seed, benchmark, family and group (the level of the column that splits them) of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.budget.horizon_scores import last_points
from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.selection import checked_budgets
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import column_codes, group_numbers
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_column, check_fraction
from lmemtest.core.words import format_level, listed, percent
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lmemtest.bench.budget.anytime import Anytime
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask


UNITS = ("families", "benchmarks", "seeds")
ALL = "all"
_SHOWN = 5  # budgets in the printed table
_EQUAL = 1e-9  # mean ranks that differ by less are equal


@one_blas_thread()
def ranks(
    curves: Anytime,
    /,
    *,
    by: str | None = None,
    unit: str | None = None,
    alpha: float = 0.05,
    budgets: Iterable[float] | None = None,
) -> Answer:
    """Mean ranks of the algorithms at every budget, with intervals.

    Every algorithm must have run on every instance (benchmark and level of the metafeatures).

    Parameters
    ----------
    by : str, optional
        A column that is constant within each instance, such as a metafeature: ranks are given for all instances and for
        each of its levels.
    unit : {"families", "benchmarks", "seeds"}, optional
        What counts as independent. "benchmarks" (default): the interval is for the mean rank over benchmarks like
        these; instances of one benchmark are averaged first. "families" (default where the runs have five or more): for
        that over families of benchmarks like these; benchmarks of one are averaged first. "seeds" (default with a
        single benchmark): for the mean rank on exactly these benchmarks with other seeds; its standard error is the
        band of the paper.
    level : float in (0, 1)
        Coverage of each interval by itself.
    budgets : iterable of float, optional
        Budgets at which to rank. Each run then has the score of its last row at or before that budget, which is right
        for the best score so far. By default: the budgets that all runs have.

    Returns
    -------
    Answer
        - ``table``, a row per panel, algorithm and budget: the column of ``by`` if there is one ("all" for all
          instances together), ``algorithm``, ``budget``, ``rank`` (mean rank), ``se``, ``ci_low``, ``ci_high`` (within
          1 and the number of algorithms), ``n`` (benchmarks or seeds behind the standard error).
        - ``leaders``, who has the lowest mean rank, a row per panel and budget: ``by`` (if split), ``budget``, ``best``
          (names joined by " and " where they tie), ``rank``, ``apart`` (whether the interval of the best ends below
          those of all others).
        - ``by``, ``panels`` ("all", then the levels of `by` as text), ``algorithms``, ``budgets`` (``(None,)`` without
          any), ``budget`` (the column or None), ``unit`` (the sample that the intervals generalise from), ``alpha``,
          ``band`` (what the intervals mean), ``n_benchmarks``, ``n_seeds`` (0 without seeds), ``score``, ``direction``.

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
    Intervals over seeds hold the benchmarks fixed: they become arbitrarily narrow with more seeds, however few the
    benchmarks.

    Ranks know no distances, and the rank of one algorithm depends on the others: leave one out, and two others may
    change places. For differences in the score see `analyze` and `budget_effect`.

    References
    ----------
    Mallik et al. (2023), PriorBand, arXiv:2306.12370 (the plot); Geburek et al. (2024), arXiv:2408.02533, figure 6;
    Benavoli, Corani & Mangili (2016), Journal of Machine Learning Research 17(5) (ranks depend on who takes part)

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"])
    >>> ranks = lt.anytime(runs).ranks(by="prior")
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
    runs, level = curves.runs, 1.0 - check_fraction(alpha, "alpha")
    if unit is not None:
        check_choice(unit, "unit", UNITS)
    each, codes, algorithms, every, groups, notes = _ranks(runs, by, budgets)
    top = f"({ALL})" if ALL in groups else ALL
    panels = {top: np.ones(len(each), dtype=bool)}
    panels |= {name: (codes["group"] == i).to_numpy() for i, name in enumerate(groups)}
    parts = {name: (each[kept], codes[kept].reset_index(drop=True)) for name, kept in panels.items()}
    unit, more = _unit(
        {name: columns for name, (_, columns) in parts.items()}, unit, runs.study.sampled.noun == "family"
    )
    tables = {name: _summary(*part, algorithms, every, unit, level) for name, part in parts.items()}
    table = pd.concat(tables, names=[by, None]).reset_index(level=0, drop=by is None).reset_index(drop=True)
    led = [_leaders(part, every, {} if by is None else {by: name}) for name, part in tables.items()]
    if unit == runs.study.sampled.nouns:
        notes = [*runs.study.sampled.notes, *runs.study.sampled.weights, *notes]
    notes += [
        *more,
        f"Ranks are among these {len(algorithms)} algorithms: with another set of algorithms two of them can change "
        "places.",
    ]
    if len(every) > 1:
        notes.append(
            "Each interval holds at its own budget only; budgets of one run are not independent. Intervals of two "
            "algorithms that overlap do not show that the two are equal: ranks of one run depend on each other."
        )
    if (table["se"] == 0).any():
        notes.append("A standard error of 0 only says that every sample mean was the same.")
    names = set(map(str, algorithms))
    scopes = [""] if by is None else ["All instances: ", *(f"{by} {name}: " for name in groups)]
    band = f"{percent(level)} t intervals over {unit}: mean ranks to expect on other {unit} of this kind."
    if unit == "seeds":
        band = (
            f"{percent(level)} t intervals over seeds: what other seeds would show on these benchmarks, and nothing "
            "about others."
        )
    places = np.unique(np.linspace(0, len(every) - 1, min(_SHOWN, len(every))).round().astype(int))
    some = [every[i] for i in places]
    cut = (f"{len(some)} of {len(every)} budgets; all are in to_frame().",) if len(some) < len(every) else ()
    return Answer(
        question="relative_ranks",
        title=f"Relative ranks by {runs.score} ({'lower' if runs.direction == 'minimize' else 'higher'} is better)",
        tables={"table": table, "leaders": pd.concat(led, ignore_index=True)},
        values={
            "by": by,
            "panels": tuple(panels),
            "algorithms": algorithms,
            "roster": runs.roster,
            "budgets": every,
            "budget": runs.budget,
            "unit": unit,
            "alpha": alpha,
            "band": band,
            "n_benchmarks": codes["benchmark"].nunique(),
            "n_seeds": codes["seed"].nunique() if runs.seed else 0,
            "score": runs.score,
            "direction": runs.direction,
        },
        facts=(*cut, f"Intervals: {band}"),
        findings=tuple(scope + _who(rows, runs.budget, names, level) for scope, rows in zip(scopes, led, strict=True)),
        notes=tuple(notes),
        printed=table.drop(columns="budget")
        if runs.budget is None
        else table[table["budget"].isin(some)].reset_index(drop=True),
        formats={**dict.fromkeys(["rank", "ci_low", "ci_high"], ".2f"), "se": ".3f"},
        figure="relative_ranks_plot",
    )


def _unit(codes: dict[str, pd.DataFrame], unit: str | None, families: bool) -> tuple[str, list[str]]:
    """What the intervals generalise from, and the notes on it."""

    def where(names: list[str]) -> str:
        names = [name for name in names if name not in (ALL, f"({ALL})")]
        return f" in {listed(names)}" if names else ""

    if unit == "families" and not families:
        raise ArgumentError(
            f"unit='families' needs runs with {FEWEST_FAMILIES} families of benchmarks or more, Runs(..., family=...). "
            "Use unit='benchmarks': intervals for benchmarks like these."
        )
    lacking = [name for name, columns in codes.items() if columns["family"].nunique() < 2]
    if unit == "families" and lacking:
        raise ArgumentError(
            f"unit='families' needs at least 2 families, but there is one{where(lacking)}. Use unit='benchmarks': "
            "intervals for benchmarks like these."
        )
    if unit == "families" or (unit is None and families and not lacking):
        return "families", []
    few = [name for name, columns in codes.items() if columns["benchmark"].nunique() < 2]
    if unit == "benchmarks" and few:
        raise ArgumentError(
            f"unit='benchmarks' needs at least 2 benchmarks, but there is one{where(few)}. "
            "Use unit='seeds': intervals for exactly these benchmarks."
        )
    if unit == "benchmarks" or (unit is None and not few):
        return "benchmarks", []
    short = [name for name, columns in codes.items() if len(_common_seeds(columns)) < 2]
    if short:
        wanted = "unit='seeds' needs" if unit else "one benchmark leaves the seeds as the sample, which needs"
        raise ArgumentError(
            f"{wanted} at least 2 seeds that all instances have, but there are fewer{where(short)}. "
            "Name the column of the seeds, Runs(..., seed=...), or add runs with other seeds."
        )
    notes = []
    if unit is None:
        notes.append(f"There is one benchmark only{where(few)}, so the intervals are over seeds.")
    if any(len(_common_seeds(columns)) < columns["seed"].nunique() for columns in codes.values()):
        notes.append("Seeds that some instances do not have were left out.")
    return "seeds", notes


def _common_seeds(codes: pd.DataFrame) -> Index:
    """The seeds that every instance has."""
    return np.flatnonzero(np.bincount(codes["seed"]) == codes["instance"].nunique())


def _summary(
    ranks: Array, codes: pd.DataFrame, algorithms: tuple[Any, ...], budgets: tuple[Any, ...], unit: str, level: float
) -> pd.DataFrame:
    """Mean, standard error and interval per algorithm and budget."""
    k, each = len(algorithms), pd.DataFrame(ranks.reshape(len(ranks), -1))
    if unit == "seeds":
        kept = codes["seed"].isin(_common_seeds(codes))
        sample = each[kept].groupby(codes["seed"][kept]).mean()
    else:
        top = {"families": "family", "benchmarks": "benchmark"}[unit]
        sample = each.groupby([codes[top], codes["instance"]]).mean().groupby(level=top).mean()
    n = len(sample)
    mean, se = sample.mean().to_numpy(), sample.sem().to_numpy()
    se = np.where(se < _EQUAL, 0.0, se)
    half = t_quantile((1.0 - level) / 2.0, np.array(n - 1.0)) * se
    return pd.DataFrame(
        {
            "algorithm": np.repeat(np.array(algorithms, dtype=object), len(budgets)),
            "budget": list(budgets) * k,
            "rank": mean,
            "se": se,
            "ci_low": np.clip(mean - half, 1.0, None),
            "ci_high": np.clip(mean + half, None, float(k)),
            "n": n,
        }
    )


def _leaders(table: pd.DataFrame, budgets: tuple[Any, ...], panel: dict[str, str]) -> pd.DataFrame:
    """Who has the lowest mean rank at each budget, and whether the interval is clear of all others."""
    names = np.array([*map(str, table["algorithm"])], dtype=object).reshape(-1, len(budgets))[:, 0]
    rank, low, high = table[["rank", "ci_low", "ci_high"]].to_numpy(dtype=float).T.reshape(3, len(names), -1)
    first = rank <= rank.min(axis=0) + _EQUAL
    clear = np.where(first, high, np.inf).min(axis=0) < np.where(first, np.inf, low).min(axis=0)
    best = [" and ".join(names[tied]) for tied in first.T]
    columns = {"budget": list(budgets), "best": best, "rank": rank.min(axis=0)}
    return pd.DataFrame({**dict.fromkeys(panel), **columns, "apart": (first.sum(axis=0) == 1) & clear}).assign(**panel)


def _who(rows: pd.DataFrame, budget: str | None, algorithms: set[str], level: float) -> str:
    """Who ranks best, from which budget on, and whether the intervals separate."""
    best = rows["best"].iloc[-1]
    others = np.flatnonzero((rows["best"] != best).to_numpy())
    start = int(others[-1]) + 1 if len(others) else 0  # from here on the last leader leads
    if len(rows) == 1:
        when = f" (mean rank {written(rows['rank'].iloc[0], '.2f')})"
    elif start == 0:
        when = f" at all {len(rows)} budgets"
    else:
        before = listed(name for name in dict.fromkeys(rows["best"].iloc[:start]) if name != best)
        on = f"from {budget} {format_level(rows['budget'].iloc[start])} on"
        when = f" {on if start < len(rows) - 1 else 'at the last budget only'} (before: {before})"
    if best not in algorithms:
        return f"{best} have the best observed rank{when}."
    apart = rows["apart"].iloc[start:]
    count, total = int(apart.sum()), len(apart)
    no = "" if count else "not "
    if total == 1:
        share = f"{no}clear of all others{' there' if len(rows) > 1 else ''}"
    elif count in (0, total):
        share = f"{no}clear of all others at {'all' if count else 'any'} of these {total} budgets"
    else:
        share = f"clear of all others at {count} of these {total} budgets"
    return f"{best} has the best observed rank{when}; its {percent(level)} interval is {share}."


# ------------------------------------------------------------------ ranks of complete comparisons


def _ranks(
    runs: Runs, by: str | None, budgets: Iterable[float] | None
) -> tuple[Array, pd.DataFrame, tuple[Any, ...], tuple[Any, ...], tuple[str, ...], list[str]]:
    """Rank the algorithms within every instance, seed and budget.

    The ranks, the codes of their blocks, the algorithms, the budgets, the levels of the column that splits the
    instances, and notes.
    """
    from scipy.stats import rankdata

    if by is not None:
        check_column(by, runs.columns, argument="by")
        if by in (runs.score, runs.algorithm, runs.seed, runs.budget):
            raise ArgumentError(
                f"by must name a column that describes instances, such as a metafeature, got {by!r}, which is the "
                "score, the algorithm, the seed or the budget."
            )
    sample = runs.study.sampled.column
    named = (sample, by, runs.seed, runs.algorithm)
    keys, points = runs.study.curves([*runs.instance, *(name for name in named if name)])
    notes = []

    def coded(column: str | None) -> tuple[Index, tuple[Any, ...]]:
        if column is None:
            return np.zeros(len(keys), dtype=np.intp), (None,)
        codes, levels = column_codes(keys[column])
        return codes.astype(np.intp), tuple(pd.Series(levels).tolist())

    instance = group_numbers(keys, runs.instance)
    first = np.unique(instance, return_index=True)[1]
    group, groups = coded(by)
    if (group[first][instance] != group).any():
        raise ArgumentError(
            f"by must name a column that is constant within each instance ({':'.join(runs.instance)}), but {by!r} "
            f"changes there. If it describes the circumstances of a run, name it in Runs(..., metafeatures=({by!r},))."
        )
    if runs.n_rows > len(points):
        what = "" if runs.seed else " (no column of seeds is named)"
        notes.append(f"Repeated rows of an algorithm on an instance{what} were averaged before they were ranked.")
    seed, seeds = coded(runs.seed)
    algorithm, algorithms = coded(runs.algorithm)
    there = np.zeros((len(first), len(seeds), len(algorithms)), dtype=bool)
    there[instance, seed, algorithm] = True
    names = labels(keys.iloc[first], runs.instance) if runs.instance else np.array(["the table"], dtype=object)
    ran: Mask = np.asarray(there.any(axis=1))
    if not ran.all():
        i, a = np.argwhere(~ran)[0]
        raise DataError(
            f"{algorithms[a]!r} has no run on {names[i]} ({int((~ran).sum()):,} such gaps in all), so ranks there "
            "would be among fewer algorithms. Filter the runs to algorithms or benchmarks without gaps; runs.check() "
            "lists them."
        )
    complete: Mask = np.asarray(there.all(axis=2))
    if not complete.any(axis=1).all():
        raise DataError(
            f"no {runs.seed!r} was run by all {len(algorithms)} algorithms on "
            f"{listed(names[~complete.any(axis=1)], 5)}, so their runs cannot be ranked against each other. Give runs "
            "that belong together the same seed, or leave the seeds out: Runs(..., seed=None) ranks the means."
        )
    dropped = int(there.any(axis=2).sum() - complete.sum())
    if dropped:
        notes.append(f"{dropped:,} pairs of instance and seed that some algorithm does not have were left out.")
    rows = complete[instance, seed]
    block = np.cumsum(complete.ravel()).reshape(complete.shape)[instance, seed][rows] - 1
    place = np.full(len(keys), -1)  # of a run among the complete comparisons
    place[rows] = block * len(algorithms) + algorithm[rows]
    points["code"], every = column_codes(points["budget"])
    points = points[rows[points["run"]]]
    points = points.assign(run=place[points["run"]])
    if budgets is None:
        scores, levels, more = _at_common_budgets(points, every, int(rows.sum()), runs.budget)
    else:
        wanted = checked_budgets(runs, budgets)
        scores, more = _at_given_budgets(points, wanted, str(runs.budget))
        levels = tuple(wanted.tolist())
    scores = scores.reshape(-1, len(algorithms), len(levels))
    i, s = np.nonzero(complete)
    benchmark, family = coded(runs.benchmark)[0][first], coded(sample)[0][first]
    codes = {"instance": i, "seed": s, "benchmark": benchmark[i], "family": family[i], "group": group[first][i]}
    each = rankdata(scores if runs.direction == "minimize" else -scores, axis=1)
    split = tuple(map(str, groups)) if by is not None else ()
    return each, pd.DataFrame(codes), algorithms, levels, split, [*notes, *more]


def _at_common_budgets(
    points: pd.DataFrame, every: Any, n_runs: int, column: str | None
) -> tuple[Array, tuple[Any, ...], list[str]]:
    """``(runs, budgets)`` scores at the budgets that all runs have."""
    place = points["code"].to_numpy()
    common = np.bincount(place, minlength=len(every)) == n_runs
    if not common.any():
        raise DataError(
            f"the runs have no value of {column!r} in common, so there is no budget at which all algorithms can be "
            "ranked. Name budgets: anytime(runs).ranks(budgets=[...]) takes the last score of each run up to them."
        )
    kept = common[place]
    scores = np.empty((n_runs, int(common.sum())))
    scores[points["run"][kept], (np.cumsum(common) - 1)[place[kept]]] = points["score"][kept]
    left, notes = int((~common).sum()), []
    if left:
        notes.append(
            f"Ranks are at the {int(common.sum()):,} values of {column} that all runs have; {left:,} "
            f"other{'s were' if left > 1 else ' was'} left out (budgets=[...] ranks at any, by each run's last score "
            "up to them)."
        )
    return scores, (None,) if column is None else tuple(pd.Series(every)[common].tolist()), notes


def _at_given_budgets(points: pd.DataFrame, wanted: Array, column: str) -> tuple[Array, list[str]]:
    """``(runs, budgets)`` last scores of every run at or before each budget."""
    points = points.assign(budget=points["budget"].astype(float)).sort_values("run", kind="stable")
    ends = points.groupby("run")["budget"].agg(["min", "max"])
    begin, end = ends["min"].max(), ends["max"].min()
    if wanted[0] < begin:
        raise ArgumentError(
            f"budgets must not be below {begin:g}, where the last of the runs begins, got {wanted[0]:g}: before "
            "its first score a run has no rank."
        )
    scores = points["score"].to_numpy()[last_points(points, wanted)].T
    notes = [f"At each {column} every run has its last score so far, which suits scores of the best so far."]
    if wanted[-1] > end:
        notes.append(f"Some runs end at {end:g}; beyond it they keep their last score.")
    return scores, notes
