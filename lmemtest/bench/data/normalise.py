"""Scores made comparable across benchmarks and budgets: min-max, normalised regret, rank, z-score, logarithm, regret.

Those relative to a baseline or to the best known value are in `baseline`. Whether scores are relative to the benchmark
is told here, too (`relative_to`): ranks, z-scores, shares of a range or of a baseline are.
Everything is an expression over groups that the table's own engine evaluates, so lazy tables stay lazy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from lmemtest.bench.data.baseline import RELATIVE, Noise, check_anchors, relative
from lmemtest.bench.data.failures import refuse_failures
from lmemtest.core.caller import advice
from lmemtest.core.codes import group_codes
from lmemtest.core.frames import collected, in_memory, supported
from lmemtest.core.validate import check_choice, check_names, free_name
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError
from lmemtest.lmm.cells import of_failures

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index

METHODS = ("minmax", "normalized_regret", "rank", "zscore", "log", "regret")  # of the scores alone
ALL_METHODS = (*METHODS, *RELATIVE)
OF_ALL = METHODS[:4]  # each score depends on those of all algorithms, in more than a shift of its group
UNITLESS = (*OF_ALL, *RELATIVE)  # the unit of every group is out; "log" does so where units multiply, "regret" keeps it
_OF_ENDS = ("minmax", "normalized_regret", "regret", "rank")  # exact by whatever arithmetic
_ROLES = ("benchmark", "budget", "algorithm", "seed")
_DIRECTION = {  # the others keep it
    **dict.fromkeys(("normalized_regret", "rank", "regret", "gap", "improvability"), "minimize"),
    "baseline": "maximize",
}
_CONSTANT = {
    "minmax": "0.5",
    "normalized_regret": "a regret of 0",
    "rank": "the mean rank",
    "zscore": "0",
    "regret": "a regret of 0",
}


class Scale(NamedTuple):
    """How a score was made from another one: the method, that score with its direction, and the groups.

    Scores that are relative to something have it in words, ``reference`` and ``target``, empty where there is none;
    ``baseline`` is the algorithm whose mean in each group is 0, None where the reference is known without error;
    ``noise`` is that of the divisor, None without any; ``arguments`` are those that said it.
    """

    method: str
    score: str
    direction: str
    by: tuple[str, ...]
    reference: str = ""
    target: str = ""
    baseline: Any = None
    noise: Noise | None = None
    arguments: Mapping[str, Any] | None = None


def normalize(
    runs: Runs,
    method: str = "minmax",
    by: str | Sequence[str] | None = None,
    *,
    reference: Any = None,
    target: Any = None,
    best_known: Any = None,
    name: str | None = None,
) -> Runs:
    """The runs with a score that compares across benchmarks, in a new column.

    Parameters
    ----------
    method : {"minmax", "normalized_regret", "rank", "zscore", "log", "regret", "baseline", "gap", "improvability"}
        What to compute within each group, x being the scores of the group, r, t and b the values of `reference`,
        `target` and `best_known` there:

        =================  ===================================================================  =============
        method             new score                                                            direction
        =================  ===================================================================  =============
        minmax             (x - min(x)) / (max(x) - min(x))                                     as before
        normalized_regret  regret / (max(x) - min(x)): 0 is the best seen, 1 the worst          minimize
        rank               1 for the best, ties share the mean of their ranks                   minimize
        zscore             (x - mean(x)) / sd(x), with n - 1                                    as before
        log                natural logarithm of x, whatever the groups                          as before
        regret             x - min(x) to minimize, max(x) - x to maximize: in the unit of x     minimize
        baseline           (r - x) / r to minimize, (x - r) / r to maximize: the relative       maximize
                           improvement on r, of a loss the skill score 1 - x / r
        with `target`      (x - r) / (t - r): the skill score with t the perfect score, the     maximize
                           human-normalised score with t the human's and r the random one
        gap                (x - b) / abs(b) to minimize, (b - x) / abs(b) to maximize           minimize
        improvability      (x - b) / x, of errors: by how much the best known is below x        minimize
        =================  ===================================================================  =============

        The first four take out the unit of each group. "log" does where groups differ by a factor. "regret" moves
        the best to 0 and keeps the unit, so benchmarks of a large scale still decide a mean over benchmarks. The
        last ones do not depend on the other algorithms.
    by : str or sequence of str, optional
        Roles ("benchmark", "budget", "algorithm", "seed") or columns that make up a group. By default benchmark
        (in each of its families, if they are several) and budget, as far as the runs have them; where few runs
        share a budget (as with times) the benchmark alone, with a warning.
    reference, target, best_known : str, float or mapping of benchmark to float, optional
        An algorithm (the mean of its scores in each group), a column (one value in each group), a number, or a
        value for each benchmark. "baseline" needs `reference`, "gap" and "improvability" need `best_known`.
    name : str, optional
        Name of the new column, by default ``<score>_<method>``, with underlines where the table has that.

    Returns
    -------
    Runs
        With the new column as the score, its direction, and all else as before. A lazy table stays lazy.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an option is unknown, a name is not a column, or the table has `name` already.
    DataError
        If scores are missing, infinite (but for "rank"), or not positive for "log". If a reference has no value in
        some group, is not positive without `target` or not worse than it, or scores are better than the best known.

    Warns
    -----
    DataWarning
        If all scores of a group are equal: they say nothing, and get 0 (zscore), 0.5 (minmax), a regret of 0
        or the mean rank. If `by` is not given and few runs share a budget. If the reference's means are so noisy
        that shares of them are biased.

    Notes
    -----
    "minmax", "normalized_regret", "rank" and "zscore" depend on which algorithms and budgets take part: leaving one
    out can change the scores of the others (`robustness`), and a single very bad run narrows all other differences
    of min-max scores in its group. Ranks drop the size of differences, and differences of z-scores are
    in standard deviations of a group, which include the differences between its algorithms. Ranks and z-scores have
    the same mean in every group, so a variance between the groups is estimated as 0: a singular fit that is to be
    expected.

    The mean of an algorithm that is the reference is measured with error, which all scores of its group share. Its
    runs stay in the table, algorithms are compared within benchmarks (`recommend`), and a mean improvement has the
    standard error of the difference from the reference (`emmeans`). A mean of ratios depends on what is divided by;
    geometric means ("log") do not (Fleming & Wallace 1986, doi:10.1145/5666.5673).

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["HB", "RS"] * 2, "task": ["a", "a", "b", "b"], "loss": [0.1, 0.2, 3.0, 3.5]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> ranks = runs.normalize("rank")
    >>> ranks.score, ranks.to_frame()["loss_rank"].tolist()
    ('loss_rank', [1.0, 2.0, 1.0, 2.0])
    >>> runs.normalize("baseline", reference="RS").to_frame()["loss_baseline"].round(3).tolist()
    [0.5, 0.0, 0.143, 0.0]
    """
    check_choice(method, "method", ALL_METHODS)
    anchors = {"reference": reference, "target": target, "best_known": best_known}
    check_anchors(method, anchors)
    column = new_column(runs, name, f"{runs.score}_{method}")
    own = ("benchmark", *runs.study.crossed)  # the same data set in two search spaces has scores of its own in each
    groups = () if method == "log" else _group_columns(runs, (*own, "budget") if by is None else by)
    rows = _rows(runs, groups)
    summary = _summary(runs, method, groups, rows)
    alone = 2 * (summary["n"] == 1).sum() > summary["n"].sum()
    if by is None and runs.benchmark and runs.budget and alone:  # most scores have no other one in their group
        groups = _group_columns(runs, own)
        rows = _rows(runs, groups)
        summary = _summary(runs, method, groups, rows)
        warnings.warn(
            f"Few runs share a value of {runs.budget!r}, so scores are normalised within {runs.benchmark!r} over all "
            "of its budgets.",
            DataWarning,
            stacklevel=2,
        )
    _check_scores(runs, method, groups, summary)
    if method in RELATIVE:
        frame, relation = relative(runs, method, groups, column, anchors)
    else:
        frame, relation = _within_groups(runs, method, groups, column, rows), {}
    new: dict[str, Any] = {"score": column, "direction": _DIRECTION.get(method, runs.direction)}
    scale = Scale(method=method, score=runs.score, direction=runs.direction, by=groups, **relation)
    checked = not runs.is_lazy and runs.failed is None  # all but the new column, which is of numbers
    made = runs.restricted(frame, (), **new) if checked else type(runs)(frame, **{**runs.roles(), **new})
    made.remembering(curve=runs.curve, scale=scale, notes=[of_all(method)] if method in OF_ALL else ())
    return made.following(runs, partial(normalize, method=method, by=by, name=name, **anchors))


def of_all(method: str) -> str:
    """What a score that depends on all algorithms must be read with."""
    return (
        f"Scores by {method!r} depend on which algorithms take part: leaving one out can change those of the others, "
        "and who is ahead of whom. lmemtest.robustness(runs, of='algorithms') shows whether it does here; scores "
        "relative to a baseline, runs.normalize('baseline', reference=...), depend on the baseline alone."
    )


def _rows(runs: Runs, groups: tuple[str, ...]) -> tuple[Array, Index] | None:
    """The score and the group of each row of a table in memory."""
    rows = in_memory(runs.frame, groups, runs.score, every=False)
    return None if rows is None else (rows[1], group_codes(rows[0], len(rows[1]))[0])


def _within_groups(
    runs: Runs, method: str, groups: tuple[str, ...], column: str, rows: tuple[Array, Index] | None
) -> Any:
    """The table with a score that is made of those of its group."""
    if rows is not None and method in _OF_ENDS:
        values = _ranks(*rows, runs.direction) if method == "rank" else _by_ends(*rows, method, runs.direction)
        if runs.frame.implementation.is_pandas():
            return nw.from_native(runs.frame.to_native().assign(**{column: values}), eager_only=True)
        series = nw.new_series(column, values, nw.Float64(), backend=runs.frame.implementation)
        return runs.frame.with_columns(series)
    new = _expression(nw.col(runs.score).cast(nw.Float64), method, runs.direction, groups, runs.score).alias(column)
    with supported(f"normalize({method!r})", runs.frame):
        return runs.frame.with_columns(new)


def _by_ends(x: Array, index: Index, method: str, direction: str) -> Array:
    """Scores by the lowest and the highest one of their group."""
    low, high = (end[index] for end in _ends(x, index))
    if method == "regret":
        return x - low if direction == "minimize" else high - x
    constant, range_ = low == high, np.where(low == high, 1.0, high - low)
    if method == "normalized_regret":
        return np.where(constant, 0.0, (x - low if direction == "minimize" else high - x) / range_)
    return np.where(constant, 0.5, (x - low) / range_)


def _ends(x: Array, index: Index) -> tuple[Array, Array]:
    """The lowest and the highest number of each group; infinite of those without any."""
    size = int(index.max(initial=-1)) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.fmin.at(low, index, x)
    np.fmax.at(high, index, x)
    return low, high


def _ranks(x: Array, index: Index, direction: str) -> Array:
    """The place of each score within its group, 1 for the best; ties share the mean of theirs."""
    x = x if direction == "minimize" else -x
    order = np.lexsort((x, index))
    x, group, place = x[order], index[order], np.arange(len(x))
    begins = np.append(True, np.diff(group) > 0)
    tied = np.cumsum(begins | np.append(True, x[1:] != x[:-1])) - 1
    first, count = np.flatnonzero(np.append(True, np.diff(tied) > 0)), np.bincount(tied)
    within = place - place[begins][np.cumsum(begins) - 1]
    ranks = np.empty(len(x))
    ranks[order] = (within[first] + 1.0 + (count - 1.0) / 2.0)[tied]
    return ranks


def _expression(x: nw.Expr, method: str, direction: str, groups: tuple[str, ...], score: str) -> nw.Expr:
    if method == "log":
        return x.log()
    if method == "regret":
        return x - x.min().over(*groups) if direction == "minimize" else x.max().over(*groups) - x
    if method == "rank":
        first = (x if direction == "minimize" else 0.0 - x).rank("min").over(*groups).cast(nw.Float64)
        # not every engine has mean ranks of ties: they start at the lowest and are as many as the equal scores
        return first + (x.count().over(*groups, score).cast(nw.Float64) - 1.0) / 2.0
    low, high = x.min().over(*groups), x.max().over(*groups)
    constant = low == high
    if method == "normalized_regret":
        distance = x - low if direction == "minimize" else high - x
        return nw.when(constant).then(nw.lit(0.0)).otherwise(distance / (high - low))
    if method == "zscore":
        return nw.when(constant).then(nw.lit(0.0)).otherwise((x - x.mean().over(*groups)) / x.std().over(*groups))
    return nw.when(constant).then(nw.lit(0.5)).otherwise((x - low) / (high - low))


def new_column(runs: Runs, name: str | None, default: str) -> str:
    """The name of a column that the table does not have yet; the default has underlines where the table has it."""
    if name is None:
        return free_name(default, runs.columns)
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"name must be the name of a new column, got {name!r}.")
    if name in runs.columns:
        raise ArgumentError(f"The table has a column {name!r} already, and nothing is overwritten. Give another name=.")
    return name


def _group_columns(runs: Runs, by: str | Sequence[str]) -> tuple[str, ...]:
    """Columns of the groups; roles come before columns of the same name."""
    given = check_names(by, "by")
    columns = []
    for item in given:
        role = getattr(runs, item) if item in _ROLES else None
        if role is not None:
            columns.append(role)
        elif item in runs.columns:
            columns.append(item)
        elif item not in ("benchmark", "budget"):
            options = (*_ROLES, *runs.columns)
            raise UnknownColumnError(
                f"by names {item!r}, which is neither a role ({', '.join(_ROLES)}) nor a column. "
                f"Columns: {listed(runs.columns)}.{suggest(str(item), options)}"
            )
    if not columns:
        named = advice("role", role="benchmark")
        raise ArgumentError(
            "normalize needs groups within which scores compare, but the runs have none of "
            f"{', '.join(map(repr, given)) or 'the roles'}. Give the column of the tasks, {named}."
        )
    if runs.score in columns:
        raise ArgumentError(f"by must not name the score, got {runs.score!r}.")
    return tuple(dict.fromkeys(columns))


def _summary(runs: Runs, method: str, groups: tuple[str, ...], rows: tuple[Array, Index] | None) -> dict[str, Array]:
    """Of all groups how many scores there are (`n`), how many without a value for the method (`wrong`), the lowest and
    the highest (`low`, `high`), by one query.
    """
    if rows is not None:
        scores, index = rows
        bad = np.isnan(scores) if method == "rank" else ~np.isfinite(scores)
        low, high = _ends(np.where(bad, np.nan, scores), index)
        sizes = np.bincount(index).astype(float)
        return {"n": sizes, "wrong": np.bincount(index, bad, len(sizes)), "low": low, "high": high}
    x = nw.col(runs.score).cast(nw.Float64)
    missing = x.is_null() | x.is_nan().fill_null(True)
    wrong = missing if method == "rank" else missing | ~x.is_finite().fill_null(False)
    safe = nw.when(~wrong).then(x)
    parts = [wrong.cast(nw.Int64).alias("wrong"), safe.alias("score")]
    table = runs.frame.select(*(nw.col(group) for group in groups), *parts)
    sums = (
        nw.len().alias("n"),
        nw.col("wrong").sum().alias("wrong"),
        nw.col("score").min().alias("low"),
        nw.col("score").max().alias("high"),
    )
    done: Any = table.group_by(*groups).agg(*sums) if groups else table.select(*sums)
    names = ["n", "wrong", "low", "high"]
    found = np.array(collected(done).select(names).rows(), dtype=float).reshape(-1, len(names))
    return dict(zip(names, found.T, strict=True))


def _check_scores(runs: Runs, method: str, groups: tuple[str, ...], summary: dict[str, Array]) -> None:
    """Refuse scores that the method has no value for, and warn of groups without differences."""
    count = int(summary["wrong"].sum())
    if count:
        refuse_failures(runs)
        kinds = "missing" if method == "rank" else "missing or infinite"
        raise DataError(
            f"{count:,} scores in {runs.score!r} are {kinds}, so {method!r} has no value for them. Score failed runs "
            f"as the worst value{of_failures()}, or drop them with {advice('drop_missing')} if their failing has "
            "nothing to do with the algorithm."
        )
    if method == "log":
        lowest = float(summary["low"][0])
        if lowest <= 0:
            raise DataError(
                f"The logarithm needs positive scores, but the lowest of {runs.score!r} is {lowest:g}. Use 'rank' or "
                "'minmax', or model a score that is positive, such as an error rate instead of an accuracy."
            )
        return
    constant = int((summary["low"] == summary["high"]).sum())
    if constant and method not in RELATIVE:
        warnings.warn(
            f"All scores are equal in {constant:,} of {len(summary['n']):,} groups of {', '.join(groups)}: they get "
            f"{_CONSTANT[method]} and say nothing about the algorithms.",
            DataWarning,
            stacklevel=3,
        )


# ---------------------------------------------------------------------------- what scores are relative to, for models


# Benchmarks with a fixed effect each in a model of relative scores beside that of the scores as measured: time and
# memory grow with the cube of their number, and of more a random effect takes its place.
MOST_FIXED = 100
# Of means that differ by so little, where difficulties do vary independently of advantages.
_CHANCE = 0.05


def relative_to(runs: Runs) -> tuple[str, ...]:
    """What scores are relative to: columns of benchmarks (instances) whose difficulty would have a negative variance.

    Empty where benchmarks differ in their means, as raw scores do, or where there is one benchmark. Scores relative to
    a baseline that is among the algorithms have its chance deviations in common on each benchmark, with the sign
    reversed: within benchmarks they cancel.
    """
    instance = runs.study.instance
    if not runs.study.several_benchmarks:
        return ()
    if runs.study.has_baseline:
        return instance
    cells = runs.study.cells([*instance, runs.algorithm])
    score, algorithm = cells.mean, cells.groups([runs.algorithm])
    if conditions := list(runs.study.conditions):  # what one does to an algorithm everywhere is no difficulty
        condition = cells.groups([*conditions, runs.algorithm])
        score = score - (np.bincount(condition, score) / np.bincount(condition))[condition]
    relative = False
    for places in dict.fromkeys([instance[:1], instance]):
        row, k = cells.groups(places), len(runs.algorithms)
        n = np.bincount(row * k + algorithm, minlength=k * (int(row.max()) + 1)).reshape(-1, k)
        sums = np.bincount(row * k + algorithm, score, n.size).reshape(n.shape)
        complete = n.all(axis=1)
        relative = relative or vary_less_than_by_chance(sums[complete] / n[complete])
    return instance if relative else ()


def vary_less_than_by_chance(y: Array) -> bool:
    """Whether the means of the rows differ less than independent deviations within rows would make them (F-test)."""
    n, k = y.shape
    if n < 3 or k < 2:
        return False
    centre = y.mean(axis=1)
    around = y - centre[:, None] - (y - centre[:, None]).mean(axis=0)
    within = np.square(around).sum() / ((n - 1) * (k - 1))
    from scipy.special import fdtr

    return bool(within > 0 and fdtr(n - 1, (n - 1) * (k - 1), k * centre.var(ddof=1) / within) < _CHANCE)
