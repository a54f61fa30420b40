"""How the scores of each group are distributed: quantiles, density, and whether there is one cluster or several.

A mean hides two clusters: an optimiser that works in half of its runs and fails in the other half has a mean that no
run had. Groups are levels of up to three columns; the scores are those of the runs at one budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import by_levels
from lmemtest.core.frames import collected
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import among, check_columns, check_fraction, check_names
from lmemtest.core.words import counted, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.lmm.distributions.modes import count_modes, density, dip, dip_p_value, drawn_bandwidth
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array


MOST_COLUMNS = 3
FEW = 8  # scores, below which there are points and no density
TESTED = 20  # scores, from which on a test of the number of modes has a chance
_MOST_EQUAL = 0.04  # of the scores, or two: with 10 % uniform scores on their limit the test rejects in 14 % (n = 50)
_GRID = 200
_ROLES = ("algorithm", "benchmark", "seed", "budget")
_STATISTICS = ("n", "mean", "median", "q1", "q3", "min", "max", "bandwidth", "modes", "dip", "p_raw", "p_value")


@guided
@one_blas_thread()
def score_distributions(
    runs: Runs,
    *,
    by: str | Sequence[str] = ("algorithm",),
    budget: Any = None,
    alpha: float = 0.05,
) -> Answer:
    """Quantiles, kernel density and number of clusters of the scores of groups of runs.

    Parameters
    ----------
    runs : Runs
    by : str or sequence of str
        One to three roles ("algorithm", "benchmark", "budget", "seed") or columns. In a figure they are the position,
        the colour and the panel.
    budget : optional
        The budget at which scores are taken, by default the largest that all groups have. Not with the budget in `by`.
    alpha : float in (0, 1)
        Level of the tests.

    Returns
    -------
    Answer
        - `groups`, one row per group: the columns of the groups, ``n``, ``mean``, ``median``, ``q1``, ``q3``, ``min``,
          ``max``, ``bandwidth`` and ``modes`` (maxima of the drawn density; no values below 8 scores), ``dip``,
          ``p_raw`` and ``p_value`` of "one mode" (NaN where it was not tested);
        - `densities`: the columns of the groups, ``score`` and ``density``: 200 points from the lowest to the highest
          score of each group that has a density. The kernels reach beyond these ends, so the area below a curve is a
          little below 1;
        - `scores`: the columns of the groups and ``score``, one row per score;
        - `several_modes`, the groups in which one mode is rejected; `by`, the columns that make up a group; `at`, at
          which budget, in words; empty if the runs have none or the budget is one of `by`.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule.
    DataError
        If scores are missing or infinite, or the groups have no budget in common.

    Notes
    -----
    The bandwidth is that of Sheather and Jones (1991), which follows the curvature of the data. Rules of thumb take it
    from the standard deviation, which two distant clusters inflate, and then smear them into one. Where many scores are
    equal it is the rule of thumb; it is never below 1/50 of the group's range. Curves end at the lowest and the highest
    score, because scores often have a bound (a regret has 0) that kernels do not know.

    ``p_raw`` is that of Hartigan's dip test of one mode. It is exact for the uniform law, the hardest one with one
    mode, and conservative for skewed, long-tailed and bell-shaped scores. Silverman's test by the critical bandwidth is
    not: of 50 lognormal scores it calls 40 % bimodal at the 5 % level. Groups are tested that have 20 or more scores,
    of which no value makes up more than 4 % (or comes more than twice): equal scores (runs that all began with the
    default configuration) are a cluster by themselves, and the test is for continuous laws. ``modes`` counts the bumps
    of the drawn density, which need not be real.

    References
    ----------
    Sheather & Jones (1991), doi:10.1111/j.2517-6161.1991.tb01857.x; Hartigan & Hartigan (1985),
    doi:10.1214/aos/1176346577

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(benchmark="svm-digits", algorithm=["RS", "HB"])
    >>> answer = score_distributions(runs, by=["algorithm", "prior"], budget=1)
    >>> answer.to_frame()[["algorithm", "prior", "n", "median", "modes"]].round(3)
      algorithm prior   n  median  modes
    ...
    """
    require_runs(runs)
    columns = _columns(runs, by)
    alpha = check_fraction(alpha, "alpha")
    scores, at, notes = _scores(runs, columns, budget)
    rows, curves = [], []
    for group in by_levels(scores, columns):
        key = tuple(group[name].iloc[0] for name in columns)
        x = group["score"].to_numpy()
        statistics, curve = _describe(x)
        rows.append((*key, *statistics))
        if curve is not None:
            curves.append(pd.DataFrame(dict(zip(columns, key, strict=True)) | curve))
    table = pd.DataFrame(rows, columns=[*columns, *_STATISTICS[:-1]])
    table["modes"] = table["modes"].astype("Int64")
    p = table["p_raw"].to_numpy(dtype=float)
    tested = int(np.isfinite(p).sum())
    table["p_value"] = adjust_raw(p, "holm", tested)
    rejected = at_most(table["p_value"].to_numpy(dtype=float), alpha)
    several_modes = table.loc[rejected, list(columns)].reset_index(drop=True)
    how = f"(dip test, Holm over {counted(tested, 'group')}, alpha = {alpha:g})"
    finding = (
        f"No group is shown to have more than one cluster {how}. The test is conservative, so this does not show that "
        "each has one only."
    )
    if not tested:
        finding = "No group could be tested for several clusters."
    elif len(several_modes):
        finding = f"Scores have more than one cluster in {listed(list(labels(several_modes, columns)))} {how}."
    empty = pd.DataFrame(columns=[*columns, "score", "density"])
    densities = pd.concat(curves, ignore_index=True) if curves else empty
    better = "lower is better" if runs.direction == "minimize" else "higher is better"
    return Answer(
        question="score_distributions",
        title=f"Distribution of {runs.score}{f' at {at}' if at else ''} ({better})",
        tables={"groups": table, "densities": densities, "scores": scores},
        values={"by": columns, "at": at, "score": runs.score, "direction": runs.direction, "alpha": alpha}
        | {"several_modes": several_modes, "algorithm": runs.algorithm, "roster": runs.roster},
        findings=(finding,),
        notes=(*notes, *_notes(table)),
        printed=table.drop(columns="bandwidth"),
        formats={"modes": _count},
        figure="score_distributions_plot",
    )


def _count(modes: Any) -> str:
    return "–" if pd.isna(modes) else f"{int(modes)}"


def _columns(runs: Runs, by: str | Sequence[str]) -> tuple[str, ...]:
    names = check_names(by, "by")
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise ArgumentError(f"by must name one to {MOST_COLUMNS} columns, got {len(names)}.")
    columns = []
    for item in names:
        role = getattr(runs, item) if item in _ROLES else None
        if role is None and item not in runs.columns:
            raise UnknownColumnError(
                f"by names {item!r}, which is neither a role of the runs nor a column. Columns: "
                f"{listed(runs.columns)}.{suggest(str(item), (*_ROLES, *runs.columns))}"
            )
        columns.append(role or item)
    check_columns(columns, runs.columns, argument="by")
    if len(set(columns)) < len(columns) or runs.score in columns:
        raise ArgumentError(f"by must name different columns other than the score, got {', '.join(map(repr, names))}.")
    taken = [name for name in columns if name in (*_STATISTICS, "score", "density")]
    if taken:
        raise ArgumentError(f"by names {taken[0]!r}, which is a column of the result. Rename the column of the data.")
    return tuple(columns)


def _scores(runs: Runs, columns: tuple[str, ...], budget: Any) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """One row per score at the budget, the budget in words, and notes."""
    column = runs.budget if runs.budget not in columns else None
    if budget is not None and column is None:
        why = "the budget is one of the columns of the groups" if runs.budget else "the runs have no budget"
        raise ArgumentError(f"budget={budget!r} has no meaning here, because {why}. Leave it out.")
    study = runs.study
    study.cells([*columns, *([column] if column else [])])  # refuses missing scores and levels
    names = dict.fromkeys(name for name in (*columns, column, runs.benchmark, runs.score) if name is not None)
    table = collected(runs.frame.select(*names)).to_pandas()
    table = table.rename(columns={runs.score: "score"}).astype({"score": float})
    at, notes = "", []
    if column:
        levels = runs.levels(column)
        if budget is None:
            counts = study.distinct([*columns, column])[column].value_counts()
            common = [level for level in levels if counts.get(level, 0) == study.count(*columns)]
            if not common:
                raise DataError(
                    f"the groups have no value of {column!r} in common, so their scores would be of different budgets. "
                    "Name one, budget=..., or put the budget into by."
                )
            chosen = common[-1]
        elif among(budget, levels):
            chosen = budget
        else:
            raise ArgumentError(f"budget must be a value of {column!r}, got {budget!r}. Values: {listed(levels)}.")
        table = table[table[column] == chosen]
        at = f"{column} {chosen:g}" if isinstance(chosen, (int, float, np.number)) else f"{column} {chosen}"
        if budget is None and len(levels) > 1:
            notes.append(f"Scores are those at {at}; budget= takes another, and the budget can be one of by.")
    several = runs.benchmark is not None and runs.benchmark not in columns
    if several and table.groupby(list(columns), observed=True)[runs.benchmark].nunique().max() > 1:
        notes.append(
            f"A group pools the scores of several levels of {runs.benchmark}: its clusters may be benchmarks. Put the "
            "benchmark into by, or normalise the scores (runs.normalize)."
        )
    return table[[*columns, "score"]].reset_index(drop=True), at, tuple(notes)


def _describe(x: Array) -> tuple[tuple[Any, ...], dict[str, Array] | None]:
    """The statistics of one group (but the adjusted p-value), and its curve."""
    low, q1, median, q3, high = np.quantile(x, [0.0, 0.25, 0.5, 0.75, 1.0])
    start = (len(x), float(x.mean()), median, q1, q3, low, high)
    if len(x) < FEW or not high - low > 1e-12 * max(abs(low), abs(high)):
        return (*start, np.nan, None, np.nan, np.nan), None
    h = drawn_bandwidth(x)
    grid = np.linspace(low, high, _GRID)
    heights = density(x, grid, h)
    distance, p = np.nan, np.nan
    if len(x) >= TESTED and np.unique(x, return_counts=True)[1].max() <= max(2.0, _MOST_EQUAL * len(x)):
        distance = dip(x)
        p = dip_p_value(distance, len(x))
    return (*start, h, count_modes(heights), distance, p), {"score": grid, "density": heights}


def _notes(table: pd.DataFrame) -> tuple[str, ...]:
    notes = []
    short = int((table["n"] < TESTED).sum())
    if short:
        notes.append(f"{short} of {len(table)} groups have fewer than {TESTED} scores and were not tested.")
    tied = int((table["p_raw"].isna() & (table["n"] >= TESTED)).sum())
    if tied:
        notes.append(
            f"{tied} of {len(table)} groups were not tested, because one value makes up more than "
            f"{100 * _MOST_EQUAL:g} % of their scores."
        )
    return tuple(notes)
