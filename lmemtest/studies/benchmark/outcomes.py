"""Better, equal or worse: two algorithms tested against each other at every point of a table of runs.

A point is a benchmark at one level of a metafeature and at one budget. All points are tested at once from the moments
of their scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._rounding import below
from lmemtest._validate import check_columns
from lmemtest.data.cells import column_codes
from lmemtest.data.compress import compress
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.inference.distributions.student import t_quantile, two_sided_p
from lmemtest.words import format_level, listed, suggest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

TESTS = ("two-sample", "paired")
# Differences and errors below this share of the benchmark's largest score are rounding: scores that agree are ties.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScores:
    """Scores of two algorithms on m benchmarks at k levels of a metafeature.

    Attributes
    ----------
    scores : (m, k, 2, seeds, budgets) float
        NaN where there is no score.
    ran : (m, k, 2, seeds) bool
        Which runs take part.
    shared : (m, budgets) bool
        Budgets at which all runs of the benchmark that take part have a score.
    compared : (m, k) bool
        Instances at which both algorithms have at least two runs.
    algorithms, benchmarks, levels, seeds, budgets : tuple
        What the axes stand for; a table without budgets has the single budget None.
    metafeature : str
        The column of the levels.
    sign : int
        1 where a low score is good, -1 where a high one is.
    notes : tuple of str
        What was left out and why.
    """

    scores: Array
    ran: Mask
    shared: Mask
    compared: Mask
    algorithms: tuple[Any, Any]
    benchmarks: tuple[Any, ...]
    levels: tuple[Any, ...]
    seeds: tuple[Any, ...]
    budgets: tuple[Any, ...]
    metafeature: str
    sign: int
    notes: tuple[str, ...] = ()

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of levels, the later one first: what is compared is later minus earlier."""
        k = len(self.levels)
        return [(late, early) for early in range(k) for late in range(early + 1, k)]

    def in_both(self) -> Mask:
        """(m, k, seeds): seeds that both algorithms ran."""
        return np.asarray(self.ran.all(axis=2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Tests of the first algorithm against the second at every point, ``(m, k, budgets)`` each.

    Attributes
    ----------
    outcome : float
        1 where the first algorithm is better, 0 where no difference is found, -1 where it is worse; NaN at points
        that are not compared.
    advantage, t_ratio, df, p_value : float
        By how much the first is better on the scale of the score, with its test.
    """

    outcome: Array
    advantage: Array
    t_ratio: Array
    df: Array
    p_value: Array


def pair_scores(
    runs: Runs, algorithms: Sequence[Any], metafeature: str, levels: Sequence[Any] | None = None
) -> PairScores:
    """Collect the scores of two algorithms as one array.

    Parameters
    ----------
    runs : Runs
        With benchmark and seed.
    algorithms : sequence of two levels of the algorithm column
    metafeature : str
        A column with two or more levels, other than a role's.
    levels : sequence, optional
        Levels of the metafeature to use, in this order.

    Returns
    -------
    PairScores

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown or has the wrong role.
    DataError
        If nothing is left to compare.
    """
    _check_runs(runs)
    first, second = _check_algorithms(runs, algorithms)
    _check_metafeature(runs, metafeature)
    wanted = _check_levels(runs, metafeature, levels)
    keys = [runs.benchmark, metafeature, runs.algorithm, runs.seed, *([runs.budget] if runs.budget else [])]
    part = runs.filter(**{runs.algorithm: [first, second], metafeature: list(wanted)})
    _check_others(part, metafeature)
    cells = compress(part, [key for key in keys if key], score=runs.score)
    coded = [_codes(cells.frame[key]) for key in keys if key]
    if not runs.budget:
        coded.append((np.zeros(len(cells.n), dtype=np.intp), (None,)))
    coded[1] = _recoded(coded[1], wanted)
    coded[2] = _recoded(coded[2], (first, second))
    _check_everywhere(coded, metafeature)
    scores = np.full([len(names) for _, names in coded], np.nan)
    scores[tuple(codes for codes, _ in coded)] = cells.mean
    notes = []
    if (cells.n > 1).any():
        n = int((cells.n > 1).sum())
        notes.append(f"{n:,} points of a run have several scores; their mean was taken.")
    return _restricted(scores, [names for _, names in coded], runs, metafeature, notes)


def _restricted(
    scores: Array, names: list[tuple[Any, ...]], runs: Runs, metafeature: str, notes: list[str]
) -> PairScores:
    """The instances with two runs of each algorithm, and the budgets that all runs of a benchmark have."""
    benchmarks, levels, algorithms, seeds, budgets = names
    there = np.isfinite(scores)
    ran = there.any(axis=4)
    count = ran.sum(axis=3)
    _refuse_single_runs(count, runs)
    compared = (count >= 2).all(axis=2)
    left_out = count.any(axis=2) & ~compared
    if left_out.any():
        where = [_instance(benchmarks[b], levels[v]) for b, v in np.argwhere(left_out)]
        notes.append(f"Left out, as one of the algorithms has fewer than two runs there: {listed(where, 6)}.")
    ran = ran & compared[:, :, None, None]
    shared = (there | ~ran[..., None]).all(axis=(1, 2, 3)) & compared.any(axis=1)[:, None]
    occurring = (there & ran[..., None]).any(axis=(1, 2, 3))
    lost = occurring & ~shared
    if not shared.any():
        raise DataError(
            f"No benchmark has a budget ({runs.budget}) at which all runs of {algorithms[0]} and {algorithms[1]} have "
            "a score. Take the runs at budgets that all of them reached: runs.filter(...)."
        )
    empty = compared.any(axis=1) & ~shared.any(axis=1)
    if empty.any():
        compared, ran = compared & ~empty[:, None], ran & ~empty[:, None, None, None]
        which = listed([format_level(benchmarks[b]) for b in np.flatnonzero(empty)], 6)
        notes.append(f"Left out, as no budget is shared by all runs there: {which}.")
    if (lost & ~empty[:, None]).any():
        some = (lost & ~empty[:, None]).any(axis=1)
        notes.append(
            f"On {some.sum()} of {len(benchmarks)} benchmarks the runs have different budgets; only those that all "
            f"runs of a benchmark have are compared ({shared[some].sum():,} of {occurring[some].sum():,})."
        )
    _refuse_constant(compared, runs, metafeature)
    alone = compared.sum(axis=1) == 1
    if alone.any():
        which = listed([format_level(benchmarks[b]) for b in np.flatnonzero(alone)], 6)
        notes.append(f"{metafeature} is constant on {which}: no contrast there.")
    notes += _copies(scores, ran, shared, algorithms, levels)
    kept = compared.any(axis=1)
    return PairScores(
        scores=np.where(ran[..., None] & shared[:, None, None, None, :], scores, np.nan)[kept],
        ran=ran[kept],
        shared=shared[kept],
        compared=compared[kept],
        algorithms=(algorithms[0], algorithms[1]),
        benchmarks=tuple(b for b, keep in zip(benchmarks, kept, strict=True) if keep),
        levels=levels,
        seeds=seeds,
        budgets=budgets,
        metafeature=metafeature,
        sign=1 if runs.direction == "minimize" else -1,
        notes=tuple(notes),
    )


def _copies(scores: Array, ran: Mask, shared: Mask, algorithms: tuple[Any, ...], levels: tuple[Any, ...]) -> list[str]:
    """Note algorithms whose scores are the same at two levels: rows that were copied, not repeated."""
    notes = []
    use = ran[..., None] & shared[:, None, None, None, :]
    for a, name in enumerate(algorithms):
        for late in range(1, len(levels)):
            for early in range(late):
                both = use[:, late, a] & use[:, early, a]
                if both.any() and np.array_equal(scores[:, late, a][both], scores[:, early, a][both]):
                    notes.append(
                        f"The scores of {name} are the same at {format_level(levels[early])} and "
                        f"{format_level(levels[late])}: one set of runs, used twice."
                    )
    return notes


def test_points(pairs: PairScores, test: str, alpha: float) -> Outcomes:
    """Test the first algorithm against the second at every point.

    Parameters
    ----------
    pairs : PairScores
    test : {"two-sample", "paired"}
        Student's test with the pooled variance, or of the differences within seeds.
    alpha : float in (0, 1)
        Level of every single test.

    Returns
    -------
    Outcomes
    """
    scale = np.nanmax(np.abs(pairs.scores), axis=(1, 2, 3, 4))[:, None, None]
    if test == "paired":
        use = pairs.in_both()
        difference = np.where(use[..., None], pairs.scores[:, :, 1] - pairs.scores[:, :, 0], np.nan)
        n, mean, variance = _moments(difference, use)
        advantage, error, df = mean, variance / np.maximum(n, 1.0), n - 1.0
    else:
        n, mean, variance = _moments(pairs.scores, pairs.ran)
        advantage = mean[:, :, 1] - mean[:, :, 0]
        error, df = pooled_error(n[:, :, 0], variance[:, :, 0], n[:, :, 1], variance[:, :, 1])
    valid = pairs.compared[:, :, None] & pairs.shared[:, None, :] & (df > 0)
    advantage = np.where(valid, pairs.sign * advantage, np.nan)
    t = t_ratios(advantage, error, _ROUNDING * scale)
    df = np.where(valid, df, np.nan)
    return Outcomes(
        outcome=outcomes_of(t, t_quantile(alpha / 2.0, df)),
        advantage=advantage,
        t_ratio=t,
        df=df,
        p_value=two_sided_p(t, df),
    )


test_points.__test__ = False  # type: ignore[attr-defined]  # a test of points, not of pytest


def pooled_error(n1: Any, v1: Array, n2: Any, v2: Array) -> tuple[Array, Any]:
    """Squared error of a difference of two means with one variance, and its degrees of freedom."""
    df = n1 + n2 - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = ((n1 - 1.0) * v1 + (n2 - 1.0) * v2) / df
        return pooled * (1.0 / n1 + 1.0 / n2), df


def t_ratios(difference: Array, error: Array, rounding: Any) -> Array:
    """Difference over the root of its squared error; a tie is 0, a difference without any scatter infinite."""
    small = np.asarray(rounding)
    difference = np.where(np.abs(difference) <= small, 0.0, difference)
    se = np.sqrt(np.maximum(error, 0.0))
    se = np.where(se <= small, 0.0, se)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / se
    return np.where((difference == 0.0) & (se == 0.0), 0.0, t)


def outcomes_of(t: Array, critical: Any) -> Array:
    """1, 0 or -1 by the sign of the t ratios beyond their critical value; NaN stays NaN."""
    return np.where(np.isnan(t), np.nan, np.sign(t) * (np.abs(t) > critical))


def _moments(values: Array, use: Mask) -> tuple[Array, Array, Array]:
    """Count, mean and variance over the seeds, the last but one axis of `values` and the last of `use`."""
    n = use.sum(axis=-1)[..., None].astype(float)
    held = np.where(use[..., None], values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = held.sum(axis=-2) / n
        squares = np.where(use[..., None], (values - mean[..., None, :]) ** 2, 0.0).sum(axis=-2)
        return n, mean, squares / (n - 1.0)


def singled_out_everywhere(
    contrasts: pd.DataFrame, overall: pd.DataFrame, alpha: float, benchmarks: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Benchmarks that are singled out for every pair of levels whose overall contrast is significant."""
    general = set(
        map(tuple, overall.loc[below(overall["p_value"], alpha), ["level", "reference"]].to_numpy(dtype=object))
    )
    of_pair = contrasts[["level", "reference"]].apply(tuple, axis=1).isin(general)
    by_benchmark = contrasts[of_pair].groupby("benchmark", observed=True)["singled_out"].all()
    found = set(by_benchmark.index[by_benchmark])
    return tuple(benchmark for benchmark in benchmarks if benchmark in found)


# ---------------------------------------------------------------------- checks


def _check_runs(runs: Any) -> None:
    require_runs(runs)
    for role, why in (("benchmark", "contrasts are made within benchmarks"), ("seed", "it tells the runs apart")):
        if getattr(runs, role) is None:
            raise ArgumentError(f"runs must have a {role} column ({why}). Name it: Runs(table, ..., {role}=...).")


def _check_algorithms(runs: Runs, algorithms: Any) -> tuple[Any, Any]:
    given = (algorithms,) if isinstance(algorithms, str) or not isinstance(algorithms, Sequence) else tuple(algorithms)
    if len(given) != 2 or given[0] == given[1]:
        raise ArgumentError(
            f"algorithms must name two different algorithms, got {algorithms!r}. Algorithms: {listed(runs.algorithms)}."
        )
    for name in given:
        if name not in runs.algorithms:
            raise ArgumentError(
                f"algorithms names {name!r}, which is not an algorithm of the runs. Algorithms: "
                f"{listed(runs.algorithms)}.{suggest(str(name), map(str, runs.algorithms))}"
            )
    return given[0], given[1]


def _check_metafeature(runs: Runs, metafeature: Any) -> None:
    if isinstance(metafeature, str) and metafeature not in runs.columns and runs.metafeatures:
        raise UnknownColumnError(
            f"metafeature names the column {metafeature!r}, which is not in the data. Metafeatures: "
            f"{listed(runs.metafeatures)}.{suggest(metafeature, runs.columns)}"
        )
    check_columns((metafeature,), runs.columns, argument="metafeature")
    roles = {runs.score: "score", runs.algorithm: "algorithm", runs.benchmark: "benchmark", runs.seed: "seed"}
    roles |= {runs.budget: "budget"}
    if metafeature in roles:
        raise ArgumentError(f"metafeature must not be the {roles[metafeature]} column, got {metafeature!r}.")


def _check_others(runs: Runs, metafeature: str) -> None:
    """Refuse runs with a further metafeature that varies within a benchmark.

    One that is constant within each benchmark is a property of the benchmark, and contrasts are made within benchmarks.
    """
    others = [name for name in runs.metafeatures if name != metafeature]
    if not others:
        return
    benchmark = str(runs.benchmark)
    columns = [benchmark, metafeature, *others]
    table = runs.study.distinct(columns)
    if table.groupby(benchmark, observed=True)[metafeature].nunique().max() < 2:
        return  # nothing to compare within a benchmark, which is refused later for that reason
    within = table.groupby(benchmark, observed=True)[others].nunique()
    for name in others:
        n = int((within[name] > 1).sum())
        if not n:
            continue
        where = f"a further metafeature, {name!r}, varies within {n} of {len(within)} benchmarks"
        levels = table.groupby([benchmark, name], observed=True)[metafeature].nunique()
        left = (levels > 1).groupby(level=1, observed=True).sum()  # benchmarks with a contrast at each of its levels
        if not left.any():
            raise ArgumentError(
                f"metafeature {metafeature!r} cannot be told apart: {where}, and {metafeature} never changes while it "
                f"stays the same. Make one column of both, or name one of them only: Runs(..., metafeatures=...)."
            )
        level = left.idxmax()
        raise ArgumentError(
            f"metafeature {metafeature!r} cannot be looked at by itself: {where}, and its levels would be mixed up. "
            f"Take one of them, runs.filter({name}={_plain(level)!r}) ({left.max()} of {len(within)} benchmarks), or "
            "make one column of both."
        )


def _plain(level: Any) -> Any:
    """A level as the user would type it, not as a numpy scalar."""
    return level.item() if isinstance(level, np.generic) else level


def _check_levels(runs: Runs, metafeature: str, levels: Sequence[Any] | None) -> tuple[Any, ...]:
    there = runs.levels(metafeature)
    if levels is not None:
        if not isinstance(levels, Iterable) or isinstance(levels, bytes):
            raise ArgumentError(
                f"levels must be several levels of {metafeature}, got {levels!r}. Levels: {listed(there)}."
            )
        wanted = (levels,) if isinstance(levels, str) else tuple(levels)
        for level in wanted:
            if level not in there:
                raise ArgumentError(
                    f"levels names {level!r}, which is not a level of {metafeature}. Levels: {listed(there)}."
                    f"{suggest(str(level), map(str, there))}"
                )
        if len(set(wanted)) != len(wanted):
            raise ArgumentError(f"levels must be different, got {listed(map(repr, wanted))}.")
        there = wanted
    if not there:
        raise ArgumentError(f"levels must hold two or more levels of {metafeature}, got none.")
    if len(there) < 2:
        raise ArgumentError(
            f"metafeature {metafeature!r} has one level only, {there[0]!r}; contrasts need two or more. "
            "Use a column that varies, or more of its levels."
        )
    return there


def _check_everywhere(coded: list[tuple[Any, tuple[Any, ...]]], metafeature: str) -> None:
    """Every level has runs of both algorithms somewhere."""
    (level, levels), (algorithm, algorithms) = coded[1], coded[2]
    counts = np.zeros((len(levels), len(algorithms)), dtype=int)
    np.add.at(counts, (level, algorithm), 1)
    for v, a in np.argwhere(counts == 0):
        raise DataError(
            f"{algorithms[a]} has no run at {metafeature}={format_level(levels[v])}, so it cannot be compared there. "
            "Give the levels at which both algorithms ran: levels=[...]."
        )


def _refuse_single_runs(count: NDArray[np.intp], runs: Runs) -> None:
    if count.max() < 2:
        raise DataError(
            f"There is one run ({runs.seed}) per algorithm and instance, so a difference cannot be told from chance "
            "and no test is possible. Repeat the runs with more seeds."
        )
    if not (count >= 2).all(axis=2).any():
        raise DataError(
            "Nowhere do both algorithms have two or more runs on the same benchmark at the same level, so there is "
            "nothing to test. `runs.check()` shows what is missing."
        )


def _refuse_constant(compared: Mask, runs: Runs, metafeature: str) -> None:
    if (compared.sum(axis=1) < 2).all():
        raise DataError(
            f"{metafeature} is constant within every benchmark ({runs.benchmark}) on which both algorithms ran, so its "
            "levels cannot be compared on the same benchmark. Compare the groups of benchmarks with a model: "
            f"fit_lmm('{runs.score} ~ {runs.algorithm} * {metafeature} + (1 | {runs.benchmark}) + "
            f"(1 | {runs.benchmark}:{runs.algorithm})', runs)."
        )


def _codes(column: Any) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.intp), tuple(column.cat.categories.tolist())
    codes, levels = column_codes(column)
    return codes.astype(np.intp), tuple(pd.Series(levels).tolist())


def _recoded(
    coded: tuple[NDArray[np.intp], tuple[Any, ...]], wanted: tuple[Any, ...]
) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    codes, names = coded
    place = {name: i for i, name in enumerate(wanted)}
    return np.array([place[name] for name in names if name in place], dtype=np.intp)[codes], wanted


def _instance(benchmark: Any, level: Any) -> str:
    return f"{format_level(benchmark)} at {format_level(level)}"
