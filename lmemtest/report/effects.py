"""What each algorithm did on each benchmark: observed there, and expected by the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import Tabular
from lmemtest.data.cells import compress
from lmemtest.errors import UnknownColumnError
from lmemtest.inference.multiplicity import t_quantile
from lmemtest.inference.reference import format_level

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.data.cells import Cells
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class ObservedAdvantages(Tabular):
    """Each algorithm's deviation from the mean of each benchmark (with metafeatures: of each instance).

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
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
    response : str
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
    response: str
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per instance and algorithm.

        Returns
        -------
        pandas.DataFrame
            ``benchmark`` (label of the instance), ``algorithm``, ``n_runs``, ``mean`` (observed), ``effect``
            (observed deviation from the mean of the algorithms there), ``se``, ``df``, ``ci_low``, ``ci_high``,
            ``shrunken`` (the deviation that the model expects if the benchmark is run again).
        """
        return self.table.copy()

    def result_table(self) -> ResultTable:
        """The effects as a table."""
        from lmemtest._table import ResultTable

        return ResultTable(title="Effects by benchmark", frame=self.to_frame(), notes=self.notes)


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
    import pandas as pd

    if not runs.instance:
        return None
    parsed = fit.design.parsed
    keys = [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]
    cells = compress(runs, keys, score=runs.score, transform=parsed.response_transform)
    replicates = "seed" if runs.seed else None if runs.budget else "row"
    labels = _labels(cells.frame, runs.instance)
    algorithms = {name: i for i, name in enumerate(runs.algorithms)}
    parts, paired = [], 0
    groups = _groups(labels)
    firsts = cells.frame.iloc[[rows[0] for _, rows in groups]]
    for label, rows in groups:
        part, is_paired = _observed(cells, rows, runs, replicates, level, algorithms)
        part.insert(0, "benchmark", label)
        parts.append(part.assign(shrunken=_shrunken(fit, part, cells.frame.iloc[rows[0]], runs)))
        paired += is_paired
    table = pd.concat(parts, ignore_index=True)
    counted = _counted(table)
    clear = counted & ((table["ci_low"] > 0) | (table["ci_high"] < 0))
    return ObservedAdvantages(
        table=table,
        instance=runs.instance,
        replicates=replicates if table["se"].notna().any() else None,
        paired=paired,
        n_instances=len(parts),
        wins=_wins(table, runs),
        benchmark_of={
            label: firsts[runs.benchmark].iloc[i] if runs.benchmark else None for i, (label, _) in enumerate(groups)
        },
        wins_by=_wins_by(table, runs, firsts.set_axis([label for label, _ in groups])),
        intervals=int(counted.sum()),
        clear=int(clear.sum()),
        level=level,
        response=f"{parsed.response_function}({runs.score})" if parsed.response_function else runs.score,
        notes=_notes(table, runs),
    )


def _labels(frame: pd.DataFrame, instance: Sequence[str]) -> list[str]:
    columns = [[format_level(value) for value in frame[name]] for name in instance]
    return [" · ".join(row) for row in zip(*columns, strict=True)]


def _groups(labels: list[str]) -> list[tuple[str, NDArray[np.intp]]]:
    """Rows by label; cells are sorted, so an instance is a run of equal labels."""
    found: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        found.setdefault(label, []).append(row)
    return [(label, np.array(rows)) for label, rows in found.items()]


def _observed(
    cells: Cells,
    rows: NDArray[np.intp],
    runs: Runs,
    replicates: str | None,
    level: float,
    algorithms: dict[Any, int],
) -> tuple[pd.DataFrame, bool]:
    """Means and deviations on one instance, and whether they were taken within seeds."""
    import pandas as pd

    here = cells.frame.iloc[rows]
    names = sorted(dict.fromkeys(here[runs.algorithm]), key=algorithms.__getitem__)
    if replicates == "seed":
        wide = pd.DataFrame(
            {name: pd.Series(cells.mean[rows[mask]], index=here[runs.seed][mask].to_numpy())
             for name in names for mask in [(here[runs.algorithm] == name).to_numpy()]}
        )  # fmt: skip
        values = wide.to_numpy(dtype=float)
        n = np.isfinite(values).sum(axis=0)
        mean = np.nanmean(values, axis=0)
        variance = _variances(np.nansum((values - mean) ** 2, axis=0), n)
        complete = bool(np.isfinite(values).all()) and len(values) > 1
    else:
        order = [int(np.flatnonzero((here[runs.algorithm] == name).to_numpy())[0]) for name in names]
        n, mean = cells.n[rows][order].astype(int), cells.mean[rows][order]
        variance = _variances(cells.ss[rows][order], n) if replicates == "row" else np.full(len(n), np.nan)
        values, complete = np.empty((0, 0)), False
    effect = mean - mean.mean()
    se, df = _paired(values) if complete else _welch(variance, n)
    half = t_quantile((1.0 - level) / 2.0, df) * se
    frame = pd.DataFrame(
        {
            "algorithm": names,
            "n_runs": n,
            "mean": mean,
            "effect": effect,
            "se": se,
            "df": df,
            "ci_low": effect - half,
            "ci_high": effect + half,
        }
    )
    return frame, complete


def _variances(ss: Array, n: NDArray[np.int_]) -> Array:
    return np.where(n > 1, ss / np.maximum(n - 1, 1), np.nan)


def _paired(values: Array) -> tuple[Array, Array]:
    """Standard errors of the mean deviations within seeds; `values` is seeds x algorithms."""
    seeds, k = values.shape
    deviations = values - values.mean(axis=1, keepdims=True)
    return deviations.std(axis=0, ddof=1) / np.sqrt(seeds), np.full(k, float(seeds - 1))


def _welch(variance: Array, n: NDArray[np.int_]) -> tuple[Array, Array]:
    """Standard errors of deviations from the mean of independent means, and Welch's degrees of freedom."""
    k = len(n)
    weights = np.full((k, k), -1.0 / k) + np.eye(k)
    parts = weights**2 * (variance / n)
    total = parts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        df = total**2 / (parts**2 / (n - 1)).sum(axis=1)
    return np.sqrt(total), np.where(total > 0, df, np.nan)


def _shrunken(fit: LmmFit, part: pd.DataFrame, instance: pd.Series[Any], runs: Runs) -> Array:
    """Deviations from their mean of what the model expects on one instance; NaN if it needs other columns."""
    expected = expected_means(fit, part["algorithm"].tolist(), {name: instance[name] for name in runs.instance}, runs)
    return np.full(len(part), np.nan) if expected is None else expected - expected.mean()


def expected_means(fit: LmmFit, algorithms: list[Any], instance: dict[str, Any], runs: Runs) -> Array | None:
    """Fixed effects plus the modes of the terms of an instance; None if the fixed part needs other factors."""
    import pandas as pd

    design = fit.design
    known = {runs.algorithm, *runs.instance}
    held = {name: mean for name, mean in design.numeric.items() if name not in known}
    frame = pd.DataFrame({runs.algorithm: algorithms, **instance, **held})
    rows = _fixed_rows(fit, frame, {name: levels for name, levels in design.factors.items() if name not in known})
    if rows is None:
        return None
    values = fit.estimate(rows)
    for index, (term, bar) in enumerate(zip(design.random, design.parsed.bars, strict=True)):
        if not set(bar.groups) <= known:
            continue
        try:
            basis, codes = design.random_rows(index, frame)
        except UnknownColumnError:  # a slope on something that is not known of an instance
            continue
        modes = fit.random_effects(term.group)[list(term.names)].to_numpy()
        values = values + np.where(codes >= 0, np.einsum("nk,nk->n", basis, modes[codes]), 0.0)
    return values


def _fixed_rows(fit: LmmFit, frame: pd.DataFrame, others: dict[str, tuple[Any, ...]]) -> Array | None:
    """Fixed part at the first level of each other factor; None if that level matters to the differences."""
    rows: Array = fit.design.rows(frame.assign(**{name: levels[0] for name, levels in others.items()}))
    for name, levels in others.items():
        base = {other: values[0] for other, values in others.items()}
        for level in levels[1:]:
            there = fit.design.rows(frame.assign(**{**base, name: level}))
            if not np.allclose(there - there[0], rows - rows[0]):
                return None
    return rows


def _counted(table: pd.DataFrame) -> pd.Series[bool]:
    """Rows with an interval, without the second of two that are mirror images."""
    groups = table.groupby("benchmark", sort=False)["algorithm"]
    mirrored = (groups.transform("size") == 2) & (groups.cumcount() == 1)
    return table["ci_low"].notna() & ~mirrored


def _wins(table: pd.DataFrame, runs: Runs) -> dict[str, int]:
    sign = 1.0 if runs.direction == "minimize" else -1.0
    score = sign * table["mean"]
    best = score == score.groupby(table["benchmark"], sort=False).transform("min")
    return {format_level(name): int((best & (table["algorithm"] == name)).sum()) for name in runs.algorithms}


def _wins_by(table: pd.DataFrame, runs: Runs, instances: pd.DataFrame) -> dict[str, dict[str, dict[str, int]]]:
    """Wins apart for the levels of each metafeature; `instances` has the labels as index."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for column in runs.metafeatures:
        level = table["benchmark"].map(instances[column])
        found[column] = {
            format_level(value): _wins(part, runs) for value, part in table.groupby(level, sort=True, observed=True)
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
