"""Scores of two algorithms at the levels of a metafeature, benchmark by benchmark; what they need to be compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.codes import group_codes
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.validate import among, check_columns, several
from lmemtest.core.words import format_level, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairScores:
    """Scores of two algorithms on m benchmarks at k levels of a metafeature.

    ``scores`` is (m, k, 2, seeds, budgets), NaN where a run takes no part: at an instance (a benchmark at a level)
    without two runs of each algorithm, and at budgets that not all runs of the benchmark have. The other fields say
    what its axes stand for; a table without budgets has the single budget None. ``sign`` is 1 where a low score is
    good, -1 where a high one is.
    """

    scores: Array
    benchmarks: tuple[Any, ...]
    levels: tuple[Any, ...]
    algorithms: tuple[Any, Any]
    seeds: tuple[Any, ...]
    budgets: tuple[Any, ...]
    metafeature: str
    sign: int
    notes: tuple[str, ...] = ()

    @property
    def ran(self) -> Mask:
        """(m, k, 2, seeds): which runs take part."""
        return np.asarray(np.isfinite(self.scores).any(axis=4))

    @property
    def in_both(self) -> Mask:
        """(m, k, seeds): seeds that both algorithms ran."""
        return np.asarray(self.ran.all(axis=2))

    @property
    def compared(self) -> Mask:
        """(m, k): instances at which the algorithms are compared."""
        return np.asarray(self.ran.any(axis=(2, 3)))

    @property
    def n_budgets(self) -> NDArray[np.intp]:
        """(m,): budgets that all runs of a benchmark have."""
        return np.isfinite(self.scores).any(axis=(1, 2, 3)).sum(axis=1)

    @property
    def run_means(self) -> Array:
        """(m, k, 2, seeds): the mean of each run over the budgets; 0 where there is no run."""
        return np.nansum(self.scores, axis=4) / self.n_budgets[:, None, None, None]

    @property
    def labels(self) -> dict[str, Any]:
        """What stands where, for the results."""
        names = ("algorithms", "metafeature", "levels", "benchmarks")
        return {name: getattr(self, name) for name in names}

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of levels, the later one first: what is compared is later minus earlier."""
        return [(late, early) for early, late in itertools.combinations(range(len(self.levels)), 2)]


def pair_scores(
    runs: Runs, algorithms: Sequence[Any], metafeature: str, levels: Sequence[Any] | None = None
) -> PairScores:
    """Collect the scores of two algorithms, in this order, at some levels of a metafeature, all by default.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown or has the wrong role.
    DataError
        If nothing is left to compare.
    """
    require_runs(runs)
    for role, so in (("benchmark", "nothing is contrasted within one"), ("seed", "runs cannot be distinguished")):
        runs.study.require(role, so)
    pair = _check_algorithms(runs, algorithms)
    _check_metafeature(runs, metafeature)
    wanted = _check_levels(runs, metafeature, levels)
    part = runs.filter(**{runs.algorithm: list(pair), metafeature: list(wanted)})
    _check_others(part, metafeature)
    keys = (runs.benchmark, metafeature, runs.algorithm, runs.seed, runs.budget)
    cells = part.study.cells([name for name in keys if name is not None])

    def axis(column: str) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
        code, keys = group_codes([cells.frame[column]], len(cells.n))
        return code, tuple(pd.Series(keys.levels[0]).tolist())

    def place(column: str, names: tuple[Any, ...]) -> NDArray[np.intp]:
        return cells.frame[column].astype(object).map({name: i for i, name in enumerate(names)}).to_numpy(np.intp)

    (b, benchmarks), (s, seeds) = axis(str(runs.benchmark)), axis(str(runs.seed))
    f, budgets = axis(runs.budget) if runs.budget else (np.zeros(len(cells.n), dtype=np.intp), (None,))
    scores = np.full((len(benchmarks), len(wanted), 2, len(seeds), len(budgets)), np.nan)
    scores[b, place(metafeature, wanted), place(runs.algorithm, pair), s, f] = cells.mean
    nowhere = ~np.isfinite(scores).any(axis=(0, 3, 4))
    for v, a in np.argwhere(nowhere):
        raise DataError(
            f"{pair[a]} has no run at {metafeature}={format_level(wanted[v])}, so it cannot be compared there. "
            "Give the levels at which both algorithms ran: levels=[...]."
        )
    kept, notes = _restricted(scores, runs, pair, wanted, benchmarks, metafeature)
    several = int((cells.n > 1).sum())
    if several:
        notes.insert(0, f"{several:,} points of a run have several scores; their mean was taken.")
    used = np.asarray(np.isfinite(kept).any(axis=(1, 2, 3, 4)))
    return PairScores(
        scores=kept[used],
        benchmarks=tuple(itertools.compress(benchmarks, used.tolist())),
        levels=wanted,
        algorithms=pair,
        seeds=seeds,
        budgets=budgets,
        metafeature=metafeature,
        sign=1 if runs.direction == "minimize" else -1,
        notes=tuple(notes),
    )


def _restricted(
    scores: Array,
    runs: Runs,
    pair: tuple[Any, Any],
    levels: tuple[Any, ...],
    benchmarks: tuple[Any, ...],
    metafeature: str,
) -> tuple[Array, list[str]]:
    """The scores at instances with two runs of each algorithm and at budgets that all runs of a benchmark have."""

    def named(which: Mask) -> str:
        return listed([format_level(name) for name in itertools.compress(benchmarks, which)], 6)

    notes = []
    known = np.isfinite(scores)
    ran = known.any(axis=4)
    count = ran.sum(axis=3)
    compared = (count >= 2).all(axis=2)
    if count.max() < 2:
        raise DataError(
            f"There is one run ({runs.seed}) per algorithm and instance, so a difference cannot be distinguished from "
            "chance and no test is possible. Repeat the runs with more seeds."
        )
    if not compared.any():
        raise DataError(
            "Nowhere do both algorithms have two or more runs on the same benchmark at the same level, so there is "
            "nothing to test. `runs.check()` shows what is missing."
        )
    left_out = np.argwhere(count.any(axis=2) & ~compared)
    if len(left_out):
        where = [f"{format_level(benchmarks[b])} at {format_level(levels[v])}" for b, v in left_out]
        notes.append(f"Left out, as one of the algorithms has fewer than two runs there: {listed(where, 6)}.")
    ran &= compared[:, :, None, None]
    shared = (known | ~ran[..., None]).all(axis=(1, 2, 3)) & compared.any(axis=1)[:, None]
    if not shared.any():
        raise DataError(
            f"No benchmark has a budget ({runs.budget}) at which all runs of {pair[0]} and {pair[1]} have a score. "
            "Take the runs at budgets that all of them reached: runs.filter(...)."
        )
    empty = compared.any(axis=1) & ~shared.any(axis=1)
    if empty.any():
        notes.append(f"Left out, as no budget is shared by all runs there: {named(empty)}.")
    occurring = (known & ran[..., None]).any(axis=(1, 2, 3))
    some = (occurring & ~shared).any(axis=1) & ~empty
    if some.any():
        notes.append(
            f"On {some.sum()} of {len(some)} benchmarks the runs have different budgets; only those that all runs of "
            f"a benchmark have are compared ({shared[some].sum():,} of {occurring[some].sum():,})."
        )
    compared &= ~empty[:, None]
    if (compared.sum(axis=1) < 2).all():
        raise DataError(
            f"{metafeature} is constant within every benchmark ({runs.benchmark}) on which both algorithms ran, so its "
            "levels cannot be compared on the same benchmark. Compare the groups of benchmarks with a model: "
            f"fit_lmm('{runs.score} ~ {runs.algorithm} * {metafeature} + (1 | {runs.benchmark}) + "
            f"(1 | {runs.benchmark}:{runs.algorithm})', runs)."
        )
    alone = compared.sum(axis=1) == 1
    if alone.any():
        notes.append(f"{metafeature} is constant on {named(alone)}: no contrast there.")
    used = (ran & compared[:, :, None, None])[..., None] & shared[:, None, None, None, :]
    for (a, name), (early, late) in itertools.product(enumerate(pair), itertools.combinations(range(len(levels)), 2)):
        both = used[:, late, a] & used[:, early, a]
        if both.any() and np.array_equal(scores[:, late, a][both], scores[:, early, a][both]):
            notes.append(
                f"The scores of {name} are the same at {format_level(levels[early])} and {format_level(levels[late])}: "
                "one set of runs, used twice."
            )
    return np.where(used, scores, np.nan), notes


@result
class MetafeatureContrasts(Result):
    """What both answers to the question of a metafeature have in common.

    Attributes
    ----------
    algorithms : tuple of two
        The first against the second.
    metafeature : str
    levels, benchmarks : tuple
    contrasts : pandas.DataFrame
        One row per benchmark and pair of levels.
    overall : pandas.DataFrame
        One row per pair of levels, over benchmarks.
    alpha : float
        Level of the decisions; one minus that of the intervals.
    notes : tuple of str
        What was left out, and how intervals and p-values were made.
    """

    algorithms: tuple[Any, Any]
    metafeature: str
    levels: tuple[Any, ...]
    benchmarks: tuple[Any, ...]
    contrasts: pd.DataFrame
    overall: pd.DataFrame
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """The two algorithms in words."""
        return format_level(self.algorithms[0]), format_level(self.algorithms[1])

    @property
    def singled_out(self) -> tuple[Any, ...]:
        """Benchmarks that are singled out for every pair of levels that differ over benchmarks."""
        general = self.overall.loc[below(self.overall["p_value"], self.alpha), ["level", "reference"]]
        by_benchmark = self.contrasts.merge(general).groupby("benchmark", observed=True)["singled_out"].all()
        return tuple(benchmark for benchmark in self.benchmarks if by_benchmark.get(benchmark, False))

    def of_pair(self, row: dict[Any, Any]) -> pd.DataFrame:
        """The contrasts of the levels of a row of `overall`."""
        same = (self.contrasts["level"] == row["level"]) & (self.contrasts["reference"] == row["reference"])
        return self.contrasts[same]

    def shown(self) -> pd.DataFrame:
        """The contrasts, the benchmarks that are singled out marked."""
        return self.contrasts.assign(singled_out=np.where(self.contrasts["singled_out"], "yes", ""))


# ---------------------------------------------------------------------- checks


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
    for role in ("score", "algorithm", "benchmark", "seed", "budget"):
        if metafeature == getattr(runs, role):
            raise ArgumentError(f"metafeature must not be the {role} column, got {metafeature!r}.")


def _check_others(runs: Runs, metafeature: str) -> None:
    """Refuse runs with a further metafeature that varies within a benchmark.

    One that is constant within each benchmark is a property of the benchmark, and contrasts are made within benchmarks.
    """
    benchmark, others = str(runs.benchmark), [name for name in runs.metafeatures if name != metafeature]
    table = runs.study.distinct([benchmark, metafeature, *others])
    within = table.groupby(benchmark, observed=True).nunique()
    if within[metafeature].max() < 2:
        return  # nothing to compare within a benchmark, which is refused later for that reason
    for name in others:
        n = int((within[name] > 1).sum())
        if not n:
            continue
        where = f"a further metafeature, {name!r}, varies within {n} of {len(within)} benchmarks"
        levels = table.groupby([benchmark, name], observed=True)[metafeature].nunique()
        left = (levels > 1).groupby(level=1, observed=True).sum()  # benchmarks with a contrast at each of its levels
        if not left.any():
            raise ArgumentError(
                f"metafeature {metafeature!r} cannot be studied by itself: {where}, and {metafeature} never changes "
                "while it stays the same. Make one column of both, or name one of them only: "
                "Runs(..., metafeatures=...)."
            )
        level = left.idxmax()
        level = level.item() if isinstance(level, np.generic) else level  # as the user would type it
        raise ArgumentError(
            f"metafeature {metafeature!r} cannot be studied by itself: {where}, and its levels would be mixed up. "
            f"Take one of them, runs.filter({name}={level!r}) ({left.max()} of {len(within)} benchmarks), or "
            "make one column of both."
        )


def _check_levels(runs: Runs, metafeature: str, levels: Sequence[Any] | None) -> tuple[Any, ...]:
    there = runs.levels(metafeature)
    if levels is not None:
        if not several(levels) or isinstance(levels, bytes):
            raise ArgumentError(
                f"levels must be several levels of {metafeature}, got {levels!r}. Levels: {listed(there)}."
            )
        wanted = (levels,) if isinstance(levels, str) else tuple(levels)
        for level in wanted:
            if not among(level, there):
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
