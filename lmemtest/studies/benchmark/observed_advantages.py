"""What each algorithm did on each benchmark: observed there, and expected by the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._result import Result, result
from lmemtest.data.compress import compress
from lmemtest.data.study import labels
from lmemtest.errors import UnknownColumnError
from lmemtest.inference.distributions.student import t_quantile
from lmemtest.words import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.cells import Cells
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]

ROUNDING = 64 * np.finfo(float).eps  # relative to the scores: what arithmetic makes of equal ones


@result
class ObservedAdvantages(Result):
    """Each algorithm's deviation from the mean of each benchmark (with metafeatures: of each instance).

    Attributes
    ----------
    table : pandas.DataFrame
        One row per instance and algorithm: ``benchmark`` (label of the instance), ``algorithm``, ``n_runs``, ``mean``
        (observed), ``effect`` (observed deviation from the mean of the algorithms there), ``se``, ``df``, ``ci_low``,
        ``ci_high``, ``shrunken`` (the deviation that the model expects if the benchmark is run again).
    instance : tuple of str
        Columns that make up an instance.
    replicates : {"seed", "row"} or None
        What repeats within a benchmark and gives the intervals; None if nothing does.
    paired : int
        Instances on which all algorithms share their seeds, so that differences were taken within seeds.
    n_instances : int
        How many there are.
    wins : dict of str to int
        By algorithm: the instances on which its observed mean is the best; ties count for each.
    wins_by : dict
        The same for each level of each metafeature: column -> level -> algorithm -> wins.
    benchmark_of : dict
        Label of an instance -> its benchmark (None without a benchmark column).
    intervals : int
        Intervals; where two algorithms ran, their effects are mirror images and count once.
    clear : int
        How many of these exclude zero.
    level : float
        Confidence level of each interval, not adjusted for their number.
    score : str
        Scale of the effects.
    notes : tuple of str
        What could not be computed, and why.
    """

    table: pd.DataFrame
    instance: tuple[str, ...]
    replicates: str | None
    paired: int
    n_instances: int
    wins: dict[str, int]
    wins_by: dict[str, dict[str, dict[str, int]]]
    benchmark_of: dict[str, Any]
    intervals: int
    clear: int
    level: float
    score: str
    notes: tuple[str, ...] = ()

    @property
    def incomplete(self) -> int:
        """Instances on which some algorithm did not run."""
        return int((self.table.groupby("benchmark", sort=False).size() < len(self.wins)).sum())

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Effects by benchmark"


def observed_advantages(fit: LmmFit, runs: Runs, *, level: float = 0.95) -> ObservedAdvantages | None:
    """Observed and shrunken effects of the algorithms on every benchmark.

    Parameters
    ----------
    fit : LmmFit
        A model of the runs.
    runs : Runs
        The table behind it.
    level : float in (0, 1)
        Confidence level of each interval.

    Returns
    -------
    ObservedAdvantages or None
        None if the runs have no benchmark.

    Notes
    -----
    A run counts once: the scores of a seed are averaged over its budgets first. Observed effects and their intervals
    use one benchmark at a time, so a noisy benchmark does not widen the intervals of a quiet one. Where all
    algorithms share their seeds the deviations are taken within seeds; elsewhere the runs are independent samples
    with variances of their own (Welch). The shrunken effect is the fixed effect plus the conditional modes (BLUPs)
    of all terms whose groups are benchmarks, or benchmarks and algorithms.

    References
    ----------
    Robinson (1991), Statistical Science 6, 15-32, doi:10.1214/ss/1177011926; Welch (1947), doi:10.1093/biomet/34.1-2.28

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.Runs({"tool": ["A", "A", "B", "B"] * 2, "task": list("wwwwxxxx"), "seed": [0, 1] * 4,
    ...                 "loss": [1., 2, 3, 4, 5, 7, 6, 6]},
    ...                score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed")
    >>> fit = lt.fit_lmm("loss ~ tool + (1|task)", runs)
    >>> observed_advantages(fit, runs).to_frame()[["benchmark", "algorithm", "mean", "effect"]]
      benchmark algorithm  mean  effect
    0         w         A   1.5    -1.0
    1         w         B   3.5     1.0
    2         x         A   6.0     0.0
    3         x         B   6.0     0.0
    """
    if not runs.instance:
        return None
    parsed = fit.design.parsed
    keys = [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]
    cells = compress(runs, keys, score=runs.score, transform=parsed.response_transform)
    replicates = "seed" if runs.seed else None if runs.budget else "row"
    instance, names = pd.factorize(labels(cells.frame, runs.instance))
    places = _Places.of(instance.astype(np.intp), cells.frame, runs)
    table, paired = _observed(cells, places, runs.seed, replicates, level)
    firsts = cells.frame.iloc[places.cell[places.first]].set_axis(list(names))
    table.insert(0, "benchmark", names[places.instance])
    table.insert(1, "algorithm", pd.Index(list(runs.algorithms)).take(places.algorithm))
    table["shrunken"] = _shrunken(fit, cells.frame.iloc[places.cell], places, runs)
    counted = _counted(table)
    clear = counted & ((table["ci_low"] > 0) | (table["ci_high"] < 0))
    best = _best(table["mean"].to_numpy(), places, runs.direction)
    return ObservedAdvantages(
        table=table,
        instance=runs.instance,
        replicates=replicates if table["se"].notna().any() else None,
        paired=paired,
        n_instances=len(names),
        wins=_wins(best, places, runs),
        benchmark_of=dict(zip(names, firsts[runs.benchmark] if runs.benchmark else [None] * len(names), strict=True)),
        wins_by=_wins_by(best, places, runs, firsts),
        intervals=int(counted.sum()),
        clear=int(clear.sum()),
        level=level,
        score=parsed.score,
        notes=_notes(table, runs),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Places:
    """The pairs of an instance and an algorithm that ran on it, sorted by both: the rows of the table.

    Attributes
    ----------
    instance, algorithm : (rows,) int
        Codes of both.
    cell : (rows,) int
        The first of the cells of each pair.
    of_cell : (cells,) int
        The pair of each cell.
    first, size : (instances,) int
        The first of the rows of an instance, and their number.
    """

    instance: Codes
    algorithm: Codes
    cell: Codes
    of_cell: Codes
    first: Codes
    size: Codes

    @classmethod
    def of(cls, instance: Codes, frame: pd.DataFrame, runs: Runs) -> _Places:
        order = {name: i for i, name in enumerate(runs.algorithms)}
        algorithm = np.array([order[name] for name in frame[runs.algorithm]])
        pairs, cell, of_cell = np.unique(instance * len(order) + algorithm, return_index=True, return_inverse=True)
        _, first, size = np.unique(pairs // len(order), return_index=True, return_counts=True)
        return cls(
            instance=pairs // len(order),
            algorithm=pairs % len(order),
            cell=cell,
            of_cell=of_cell.reshape(-1),
            first=first,
            size=size,
        )

    def sums(self, values: Array) -> Array:
        """Sum over the algorithms of an instance, for each row."""
        return np.add.reduceat(values, self.first)[self.instance]

    def means(self, values: Array) -> Array:
        """Mean over the algorithms of an instance, for each row; exact where all are equal."""
        start = values[self.first][self.instance]
        return start + self.sums(values - start) / self.size[self.instance]

    def deviations(self, values: Array) -> Array:
        """Values about the mean of their instance; what is left by rounding is zero."""
        return _without_rounding(values - self.means(values), self.rounding(values))

    def rounding(self, values: Array) -> Array:
        """How far equal values of an instance can be apart by rounding, for each row."""
        return ROUNDING * np.maximum.reduceat(np.abs(values), self.first)[self.instance]


def _without_rounding(values: Array, rounding: Array) -> Array:
    return np.where(np.abs(values) <= rounding, 0.0, values)


def _group_means(values: Array, group: Codes) -> tuple[Array, Array]:
    """Size and mean of each group, ``(groups,)``; exact where all values of a group are equal."""
    n = np.bincount(group).astype(float)
    start = values[np.unique(group, return_index=True)[1]]
    return n, start + np.bincount(group, weights=values - start[group]) / n


def _observed(
    cells: Cells, places: _Places, seed: str | None, replicates: str | None, level: float
) -> tuple[pd.DataFrame, int]:
    """Means, deviations and their errors; and on how many instances these were taken within seeds."""
    paired = np.zeros(len(places.first), dtype=bool)
    if seed is not None:
        n, mean = _group_means(cells.mean, places.of_cell)
        ss = np.bincount(places.of_cell, weights=(cells.mean - mean[places.of_cell]) ** 2)
        within, paired = _within_seeds(cells, places, cells.frame[seed], n)
    else:
        n, mean, ss = cells.n[places.cell], cells.mean[places.cell], cells.ss[places.cell]
    known = replicates is not None
    variance = np.where((n > 1) & known, ss / np.maximum(n - 1, 1), np.nan)
    se, df = _welch(variance, n, places)
    if paired.any():
        within_seeds = paired[places.instance]
        se, df = np.where(within_seeds, within, se), np.where(within_seeds, n - 1, df)
    se = _without_rounding(se, places.rounding(mean))
    effect = places.deviations(mean)
    half = t_quantile((1.0 - level) / 2.0, df) * se
    columns = {"n_runs": n.astype(int), "mean": mean, "effect": effect, "se": se, "df": df}
    return pd.DataFrame({**columns, "ci_low": effect - half, "ci_high": effect + half}), int(paired.sum())


def _within_seeds(cells: Cells, places: _Places, seeds: pd.Series[Any], n: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Standard errors of the mean deviations within seeds, and the instances where all algorithms share them."""
    instance = places.instance[places.of_cell]
    seed, known = pd.factorize(seeds)
    block = pd.factorize(instance * len(known) + seed)[0]
    n_seeds = np.bincount(instance[np.unique(block, return_index=True)[1]])
    shared = (np.bincount(places.instance, weights=n != n_seeds[places.instance]) == 0) & (n_seeds > 1)
    deviations = cells.mean - _group_means(cells.mean, block)[1][block]
    about = deviations - _group_means(deviations, places.of_cell)[1][places.of_cell]
    variance = np.bincount(places.of_cell, weights=about**2) / np.maximum(n - 1, 1)
    return np.sqrt(variance / n), shared


def _welch(variance: Array, n: Array, places: _Places) -> tuple[Array, Array]:
    """Standard errors of deviations from the mean of independent means, and Welch's degrees of freedom.

    The deviation of one of k means has weight 1 - 1/k on itself and -1/k on each of the others.
    """
    k = places.size[places.instance]
    own, other = (1.0 - 1.0 / k), 1.0 / k

    def combined(parts: Array, power: int) -> Array:
        return (own**power - other**power) * parts + other**power * places.sums(parts)

    error = variance / n
    with np.errstate(invalid="ignore", divide="ignore"):
        total = combined(error, 2)
        df = total**2 / combined(error**2 / (n - 1), 4)
    return np.sqrt(total), np.where(total > 0, df, np.nan)


def _shrunken(fit: LmmFit, frame: pd.DataFrame, places: _Places, runs: Runs) -> Array:
    """Deviations from their mean of what the model expects on each instance; NaN if it needs other columns."""
    return places.deviations(expected_means(fit, frame, places.first[places.instance], runs))


def expected_means(fit: LmmFit, frame: pd.DataFrame, first: Codes, runs: Runs) -> Array:
    """Fixed effects plus the modes of the terms of the instances, for each pair of an instance and an algorithm.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``n`` rows with the columns of the algorithm and of the instance.
    first : (n,) int
        The first row of the instance of each row.

    Returns
    -------
    (n,) float
        NaN on instances where the differences of the fixed part depend on other factors.
    """
    design = fit.design
    known = {runs.algorithm, *runs.instance}
    held = {name: mean for name, mean in design.numeric.items() if name not in known}
    frame = frame[[runs.algorithm, *runs.instance]].reset_index(drop=True).assign(**held)
    others = {name: levels for name, levels in design.factors.items() if name not in known}
    values = _fixed_part(fit, frame, first, others)
    for index, (term, bar) in enumerate(zip(design.random, design.parsed.bars, strict=True)):
        if not set(bar.groups) <= known:
            continue
        try:
            basis, codes = design.random_rows(index, frame)
        except UnknownColumnError:  # a slope on something that is not known of an instance
            continue
        modes = fit.conditional_modes(term.group)[list(term.names)].to_numpy()
        values = values + np.where(codes >= 0, np.einsum("nk,nk->n", basis, modes[codes]), 0.0)
    return values


def _fixed_part(fit: LmmFit, frame: pd.DataFrame, first: Codes, others: dict[str, tuple[Any, ...]]) -> Array:
    """Fixed part at the first level of each other factor; NaN where that level matters to the differences."""
    base = {name: levels[0] for name, levels in others.items()}
    rows: Array = fit.design.rows(frame.assign(**base))
    matters = np.zeros(len(frame), dtype=bool)
    for name, levels in others.items():
        for level in levels[1:]:
            there = fit.design.rows(frame.assign(**{**base, name: level}))
            matters |= ~np.isclose(there - there[first], rows - rows[first]).all(axis=1)
    instances = np.bincount(first, weights=matters, minlength=len(frame)) > 0
    return np.where(instances[first], np.nan, fit.estimate(rows))


def _counted(table: pd.DataFrame) -> pd.Series[bool]:
    """Rows with an interval, without the second of two that are mirror images."""
    groups = table.groupby("benchmark", sort=False)["algorithm"]
    mirrored = (groups.transform("size") == 2) & (groups.cumcount() == 1)
    return table["ci_low"].notna() & ~mirrored


def _best(mean: Array, places: _Places, direction: str) -> NDArray[np.bool_]:
    """Rows with the best mean of their instance; means that differ by rounding only are ties."""
    loss = mean if direction == "minimize" else -mean
    return loss <= np.minimum.reduceat(loss, places.first)[places.instance] + places.rounding(mean)


def _wins(best: NDArray[np.bool_], places: _Places, runs: Runs) -> dict[str, int]:
    counts = np.bincount(places.algorithm[best], minlength=len(runs.algorithms))
    return dict(zip(map(format_level, runs.algorithms), counts.tolist(), strict=True))


def leaders(wins: dict[str, int]) -> list[str]:
    """Algorithms with the most wins."""
    return [name for name, count in wins.items() if count == max(wins.values())]


def turns(by_level: dict[str, dict[str, int]]) -> bool:
    """Whether no algorithm has the most wins at every level of a metafeature."""
    return len(by_level) >= 2 and not set.intersection(*(set(leaders(wins)) for wins in by_level.values()))


def _wins_by(
    best: NDArray[np.bool_], places: _Places, runs: Runs, instances: pd.DataFrame
) -> dict[str, dict[str, dict[str, int]]]:
    """Wins apart for the levels of each metafeature; `instances` has a row for each instance."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for column in runs.metafeatures:
        codes, levels = pd.factorize(instances[column], sort=True)
        found[column] = {
            format_level(level): _wins(best & (codes[places.instance] == i), places, runs)
            for i, level in enumerate(levels)
        }
    return found


def _notes(table: pd.DataFrame, runs: Runs) -> tuple[str, ...]:
    notes = []
    if not table["se"].notna().any():
        notes.append("Nothing is repeated within a benchmark, so the observed effects have no intervals.")
    counts = table.groupby("benchmark", sort=False).size()
    incomplete = int((counts < len(runs.algorithms)).sum())
    if incomplete:
        notes.append(
            f"On {incomplete} of {len(counts)} benchmarks some algorithm is missing; deviations there are from the "
            "mean of the algorithms that ran."
        )
    if table["shrunken"].isna().all():
        notes.append(
            "Shrunken effects are not shown: in this model the differences between algorithms depend on other factors."
        )
    return tuple(notes)
