"""Scores of two algorithms at the levels of a metafeature, benchmark by benchmark; what they need to be compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.caller import advice
from lmemtest.core.codes import group_codes
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.validate import among, check_columns, several
from lmemtest.core.words import format_level, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Mask


Axes = dict[str, tuple[Any, ...]]  # what stands along the axes of the losses


def pair_scores(
    runs: Runs, algorithms: Sequence[Any], metafeature: str, levels: Sequence[Any] | None = None
) -> tuple[Array, Axes, list[str]]:
    """Scores of two algorithms, in this order, at some levels of a metafeature, all by default; axes; and notes.

    The scores are losses, with the sign for which less is better, (benchmarks, levels, 2, seeds, budgets). They are NaN
    where a run takes no part: at an instance (a benchmark at a level) without two runs of each algorithm, and at
    budgets that not all runs of the benchmark have. The axes are "benchmark", "level", "algorithm", "seed" and
    "budget", which is (None,) for a table without budgets.

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
    columns = {"benchmark": runs.benchmark, "level": metafeature, "algorithm": runs.algorithm, "seed": runs.seed,
               "budget": runs.budget}  # fmt: skip
    cells = part.study.cells([name for name in columns.values() if name is not None])
    axes: Axes = {"level": wanted, "algorithm": pair}
    codes = []
    for axis, column in columns.items():
        if column is None:
            code, axes[axis] = np.zeros(len(cells.n), dtype=np.intp), (None,)
        elif axis in axes:
            place = {name: i for i, name in enumerate(axes[axis])}
            code = cells.frame[column].astype(object).map(place).to_numpy(np.intp)
        else:
            code, keys = group_codes([cells.frame[column]], len(cells.n))
            axes[axis] = tuple(pd.Series(keys.levels[0]).tolist())
        codes.append(code)
    losses = np.full([len(axes[axis]) for axis in columns], np.nan)
    losses[tuple(codes)] = cells.mean if runs.direction == "minimize" else -cells.mean
    for v, a in np.argwhere(~np.isfinite(losses).any(axis=(0, 3, 4))):
        raise DataError(
            f"{pair[a]} has no run at {metafeature}={format_level(wanted[v])}, so it cannot be compared there. "
            f"{advice('common_levels')}"
        )
    losses, notes = _restricted(losses, runs, axes, metafeature)
    several = int((cells.n > 1).sum())
    if several:
        notes.insert(0, f"{several:,} points of a run have several scores; their mean was taken.")
    used = np.asarray(ran(losses).any(axis=(1, 2, 3)))
    axes["benchmark"] = tuple(itertools.compress(axes["benchmark"], used.tolist()))
    return losses[used], axes, notes


def ran(losses: Array) -> Mask:
    """Which runs take part, (benchmarks, levels, 2, seeds)."""
    return np.asarray(np.isfinite(losses).any(axis=4))


def n_budgets(losses: Array) -> NDArray[np.intp]:
    """Budgets that all runs of a benchmark have, (benchmarks,)."""
    return np.asarray(np.isfinite(losses).any(axis=(1, 2, 3)).sum(axis=1))


def level_pairs(levels: Sequence[Any]) -> list[tuple[int, int]]:
    """Pairs of levels, the later one first: what is compared is later minus earlier."""
    return [(late, early) for early, late in itertools.combinations(range(len(levels)), 2)]


def of_pair(contrasts: pd.DataFrame, row: dict[Any, Any]) -> pd.DataFrame:
    """The contrasts of the benchmarks between the levels of a row of those over benchmarks."""
    return contrasts[(contrasts["level"] == row["level"]) & (contrasts["reference"] == row["reference"])]


def contrasts_answer(
    axes: Axes,
    metafeature: str,
    tables: dict[str, pd.DataFrame],
    *,
    alpha: float,
    rule: str,
    values: dict[str, Any],
    **content: Any,
) -> Answer:
    """The answer to the question of a metafeature, by either method, from contrasts of benchmarks and over them.

    Benchmarks are singled out as a whole for every pair of levels that differ over benchmarks.
    """  # fmt: skip
    contrasts, overall = tables["contrasts"], tables["overall"]
    general = overall.loc[below(overall["p_value"], alpha), ["level", "reference"]]
    odd = contrasts.merge(general).groupby("benchmark", observed=True)["singled_out"].all()
    return Answer(
        question="metafeature_effect",
        tables=tables,
        values={
            "algorithms": axes["algorithm"],
            "metafeature": metafeature,
            "levels": axes["level"],
            "benchmarks": axes["benchmark"],
            "singled_out": tuple(benchmark for benchmark in axes["benchmark"] if odd.get(benchmark, False)),
            "alpha": alpha,
            "rule": rule,
            **values,
        },
        printed=contrasts.assign(singled_out=np.where(contrasts["singled_out"], "yes", "")),
        figure="metafeature_effect_plot",
        **content,
    )


def _restricted(losses: Array, runs: Runs, axes: Axes, metafeature: str) -> tuple[Array, list[str]]:
    """The scores at instances with two runs of each algorithm and at budgets that all runs of a benchmark have."""

    benchmarks, levels, pair = axes["benchmark"], axes["level"], axes["algorithm"]

    def named(which: Mask) -> str:
        return listed([format_level(name) for name in itertools.compress(benchmarks, which)], 6)

    notes = []
    finite, there = np.isfinite(losses), ran(losses)
    count = there.sum(axis=3)
    compared = np.asarray((count >= 2).all(axis=2))
    if count.max() < 2:
        raise DataError(
            f"There is one run ({runs.seed}) per algorithm and instance, so a difference cannot be distinguished from "
            "chance and no test is possible. Repeat the runs with more seeds."
        )
    if not compared.any():
        raise DataError(
            "Nowhere do both algorithms have two or more runs on the same benchmark at the same level, so there is "
            f"nothing to test.{advice('missing_runs')}"
        )
    left_out = np.argwhere(count.any(axis=2) & ~compared)
    if len(left_out):
        where = [f"{format_level(benchmarks[b])} at {format_level(levels[v])}" for b, v in left_out]
        notes.append(f"Left out, as one of the algorithms has fewer than two runs there: {listed(where, 6)}.")
    there &= compared[:, :, None, None]
    shared: Mask = (finite | ~there[..., None]).all(axis=(1, 2, 3)) & np.asarray(compared.any(axis=1))[:, None]
    if not shared.any():
        raise DataError(
            f"No benchmark has a budget ({runs.budget}) at which all runs of {pair[0]} and {pair[1]} have a score. "
            f"Take the runs at budgets that all of them reached{advice('by_filter')}."
        )
    empty = np.asarray(compared.any(axis=1) & ~shared.any(axis=1))
    if empty.any():
        notes.append(f"Left out, as no budget is shared by all runs there: {named(empty)}.")
    occurring: Mask = np.asarray((finite & there[..., None]).any(axis=(1, 2, 3)))
    some = np.asarray((occurring & ~shared).any(axis=1)) & ~empty
    if some.any():
        notes.append(
            f"On {some.sum()} of {len(some)} benchmarks the runs have different budgets; only those that all runs of "
            f"a benchmark have are compared ({shared[some].sum():,} of {occurring[some].sum():,})."
        )
    compared &= ~empty[:, None]
    if (compared.sum(axis=1) < 2).all():
        formula = (
            f"{runs.score} ~ {runs.algorithm} * {metafeature} + (1 | {runs.benchmark}) + "
            f"(1 | {runs.benchmark}:{runs.algorithm})"
        )
        raise DataError(
            f"{metafeature} is constant within every benchmark ({runs.benchmark}) on which both algorithms ran, so its "
            "levels cannot be compared on the same benchmark. Compare the groups of benchmarks with a model: "
            f"{advice('fit', formula=formula)}."
        )
    alone = compared.sum(axis=1) == 1
    if alone.any():
        notes.append(f"{metafeature} is constant on {named(alone)}: no contrast there.")
    used = (there & compared[:, :, None, None])[..., None] & shared[:, None, None, None, :]
    for (a, name), (early, late) in itertools.product(enumerate(pair), itertools.combinations(range(len(levels)), 2)):
        both = used[:, late, a] & used[:, early, a]
        if both.any() and np.array_equal(losses[:, late, a][both], losses[:, early, a][both]):
            notes.append(
                f"The scores of {name} are the same at {format_level(levels[early])} and {format_level(levels[late])}: "
                "one set of runs, used twice."
            )
    return np.where(used, losses, np.nan), notes


# ---------------------------------------------------------------------- checks


def _check_algorithms(runs: Runs, algorithms: Any) -> tuple[Any, Any]:
    names = (algorithms,) if isinstance(algorithms, str) or not isinstance(algorithms, Sequence) else tuple(algorithms)
    if len(names) != 2 or names[0] == names[1]:
        raise ArgumentError(
            f"algorithms must name two different algorithms, got {algorithms!r}. Algorithms: {listed(runs.algorithms)}."
        )
    for name in names:
        if name not in runs.algorithms:
            raise ArgumentError(
                f"algorithms names {name!r}, which is not an algorithm of the runs. Algorithms: "
                f"{listed(runs.algorithms)}.{suggest(str(name), map(str, runs.algorithms))}"
            )
    return names[0], names[1]


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
            f"Take one of them, {advice('at_level', column=name, level=level)} ({left.max()} of {len(within)} "
            "benchmarks), or make one column of both."
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
