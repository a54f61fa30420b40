"""What can spoil a comparison: findings about a table of runs, each with a next step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest._table import ResultTable, format_number
from lmemtest._validate import listed
from lmemtest.data.cells import aggregate, combine_codes, first_rows

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

__all__ = ["Finding", "RunsCheck", "check_runs"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

SCALE_RATIO = 3.0  # beyond it one benchmark has more than 9 times the weight of another in a pooled variance
TIED_SHARE = 0.1  # fewer exactly equal scores are no cause for a look
SHOWN = 3  # findings of one kind in a summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to know about a table of runs.

    Attributes
    ----------
    severity : {"error", "warning", "note"}
        An error stops a fit, a warning can change a conclusion, a note explains.
    kind : str
        A stable word for the check, such as ``"duplicates"``.
    message : str
        What was found, in a sentence.
    advice : str
        What to do about it, in a sentence.
    count : int
        How many rows, runs or cells it concerns.
    benchmark, algorithm : object or None
        Where it was found; None for everywhere.
    """

    severity: Severity
    kind: str
    message: str
    advice: str
    count: int
    benchmark: Any = None
    algorithm: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RunsCheck:
    """The findings of `Runs.check`.

    Attributes
    ----------
    findings : tuple of Finding
        The worst first.
    cells : pandas.DataFrame
        One row per benchmark and algorithm: ``benchmark``, ``algorithm``, ``n`` (rows), ``seeds``,
        ``budgets`` (distinct ones), ``missing`` (combinations of instance, seed and budget that are not
        there), ``duplicates`` (rows beyond the first of such a combination), ``non_finite``, ``distinct``
        (different finite scores), ``mean`` and ``sd`` of the finite scores.
    scales : pandas.DataFrame
        One row per benchmark: ``benchmark``, ``residual_sd`` (within algorithm, instance and budget), ``df``.
    scale_ratio : float
        The largest over the smallest positive residual SD; NaN with fewer than two.
    tied_share : float
        The share of pairs of algorithms with exactly equal scores on the same instance, seed and budget.
    overview : str
        The size of the table in a sentence.
    """

    findings: tuple[Finding, ...]
    cells: pd.DataFrame
    scales: pd.DataFrame
    scale_ratio: float
    tied_share: float
    overview: str

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def ok(self) -> bool:
        """Whether there are no errors and no warnings."""
        return not self.problems

    def to_frame(self) -> pd.DataFrame:
        """The findings as a table.

        Returns
        -------
        pandas.DataFrame
            One row per finding: ``severity``, ``kind``, ``benchmark``, ``algorithm``, ``count``,
            ``message``, ``advice``.
        """
        columns = ["severity", "kind", "benchmark", "algorithm", "count", "message", "advice"]
        rows = [[getattr(finding, column) for column in columns] for finding in self.findings]
        return pd.DataFrame(rows, columns=columns)

    def summary(self) -> str:
        """The findings as text; of each kind the first ones, with the advice once."""
        lines = [self.overview]
        if not self.findings:
            lines.append("No problems found.")
        for (severity, kind), group in groupby(self.findings, lambda f: (f.severity, f.kind)):
            found = list(group)
            lines += ["", f"{severity.upper()}: {kind.replace('_', ' ')}"]
            lines += [f"  - {finding.message}" for finding in found[:SHOWN]]
            if len(found) > SHOWN:
                lines.append(f"  - ... and {len(found) - SHOWN:,} more of this kind; see to_frame().")
            lines += [f"  -> {advice}" for advice in dict.fromkeys(f.advice for f in found[:SHOWN])]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        findings = self.to_frame().drop(columns="count")
        notes = () if self.findings else ("No problems found.",)
        tables = (
            ResultTable(self.overview, findings, notes),
            ResultTable("Benchmarks and algorithms", self.cells),
        )
        return "\n".join(table.to_html() for table in tables)


def check_runs(runs: Runs) -> RunsCheck:
    """Look for what can spoil a comparison; the function behind `Runs.check`.

    Parameters
    ----------
    runs : Runs
        Any table; of a lazy one, only one row per algorithm, instance, seed and budget is collected.

    Returns
    -------
    RunsCheck
        The findings, and a table per benchmark and algorithm.

    Examples
    --------
    >>> from lmemtest.data.runs import Runs
    >>> table = {"tool": ["HB", "RS", "RS"], "seed": [0, 0, 0], "loss": [0.1, 0.2, 0.4]}
    >>> check = check_runs(Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed"))
    >>> [(finding.severity, finding.kind) for finding in check.findings]
    [('warning', 'duplicates')]
    """
    points = _collect(runs)
    scales = _scales(points)
    positive = scales["residual_sd"][scales["residual_sd"] > 0]
    ratio = float(positive.max() / positive.min()) if len(positive) > 1 else float("nan")
    equal, pairs = _tied_pairs(points)
    found = [
        *_non_finite(points),
        *_missing_cells(points),
        *_similar_levels(points),
        *_duplicates(points),
        *_constant(points),
        *_scale_finding(points, scales, ratio),
        *_unpaired_seeds(points),
        *_missing_budgets(points),
        *_tied(points, equal, pairs),
        *_getting_worse(points),
    ]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))  # stable: kinds stay together
    return RunsCheck(
        findings=tuple(found),
        cells=_cells_frame(points),
        scales=scales,
        scale_ratio=ratio,
        tied_share=float(equal.sum() / pairs.sum()) if pairs.sum() else 0.0,
        overview=_overview(points),
    )


# ------------------------------------------------------------------------------------------ the table, coded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Points:
    """One entry per instance, seed, algorithm and budget that occurs, sorted in this order.

    Codes count from 0; a role that is not given has the single level 0.
    """

    runs: Runs
    instance: np.ndarray
    seed: np.ndarray
    algorithm: np.ndarray
    budget: np.ndarray
    run: np.ndarray  # of instance, seed and algorithm together
    cell: np.ndarray  # of benchmark and algorithm together
    benchmark_of: np.ndarray  # the benchmark of every instance
    benchmarks: tuple[Any, ...]
    seeds: tuple[Any, ...]
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    n: np.ndarray  # rows
    valid: np.ndarray  # rows with a finite score
    mean: np.ndarray
    ss: np.ndarray
    low: np.ndarray
    high: np.ndarray
    regular: bool  # budgets come from a common grid

    @property
    def n_cells(self) -> int:
        return len(self.benchmarks) * len(self.algorithms)

    def where(self, cell: int) -> tuple[Any, Any]:
        """The benchmark (None if there is no such column) and the algorithm of a cell."""
        benchmark, algorithm = divmod(int(cell), len(self.algorithms))
        return self.benchmarks[benchmark], self.algorithms[algorithm]

    def by_instance(self, values: np.ndarray) -> np.ndarray:
        """Sum a (instances, algorithms) array to (benchmarks, algorithms), flat."""
        out = np.zeros((len(self.benchmarks), len(self.algorithms)), dtype=values.dtype)
        np.add.at(out, self.benchmark_of, values)
        return out.ravel()


def _collect(runs: Runs) -> _Points:
    names = [*runs.instance, *([runs.seed] if runs.seed else []), runs.algorithm]
    names += [runs.budget] if runs.budget else []
    groups = aggregate(runs.frame, names, runs.score)
    size = len(groups.n)
    by_name = dict(zip(names, zip(groups.keys.codes, groups.keys.levels, strict=True), strict=True))

    def coded(column: str | None) -> tuple[np.ndarray, tuple[Any, ...]]:
        if column is None:
            return np.zeros(size, dtype=np.int64), (None,)
        codes, levels = by_name[column]
        return codes, tuple(pd.Series(levels).tolist())

    instance = combine_codes([(by_name[name][0], len(by_name[name][1])) for name in runs.instance], size)
    first = first_rows(instance, int(instance.max()) + 1)
    benchmark, benchmarks = coded(runs.benchmark)
    seed, seeds = coded(runs.seed)
    algorithm, algorithms = coded(runs.algorithm)
    budget, budgets = coded(runs.budget)
    run = (instance * len(seeds) + seed) * len(algorithms) + algorithm
    return _Points(
        runs=runs,
        instance=instance,
        seed=seed,
        algorithm=algorithm,
        budget=budget,
        run=run,
        cell=benchmark * len(algorithms) + algorithm,
        benchmark_of=benchmark[first],
        benchmarks=benchmarks,
        seeds=seeds,
        algorithms=algorithms,
        budgets=budgets,
        n=groups.n,
        valid=groups.n - groups.n_bad,
        mean=groups.mean,
        ss=groups.ss,
        low=groups.low,
        high=groups.high,
        regular=_on_a_grid(instance, budget, run, len(first), len(budgets)),
    )


def _on_a_grid(instance: np.ndarray, budget: np.ndarray, run: np.ndarray, n: int, n_budgets: int) -> bool:
    """Whether some run of most instances has at least half of the budgets that occur on its instance."""
    different = _distinct(instance, budget, n, n_budgets)
    starts = np.flatnonzero(np.diff(run, prepend=-1))  # points are sorted by run, then by budget
    longest = np.zeros(n, dtype=np.int64)
    np.maximum.at(longest, instance[starts], np.diff(starts, append=len(run)))
    return bool(np.mean(different <= 2 * longest) >= 0.5)


def _distinct(group: np.ndarray, value: np.ndarray, n_groups: int, n_values: int) -> np.ndarray:
    """The number of different values in every group."""
    pairs = _occurring(group * np.int64(n_values) + value, n_groups * n_values)
    return np.bincount(pairs // n_values, minlength=n_groups)


def _occurring(key: np.ndarray, size: int) -> np.ndarray:
    """The keys below `size` that occur, each once, in any order."""
    if size > 4 * len(key) + 1024:
        return pd.unique(key)
    present = np.zeros(size, dtype=bool)
    present[key] = True
    return np.flatnonzero(present)


def _pooled(group: np.ndarray, size: int, points: _Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and sum of squares of all finite scores of each group of points."""
    good = points.valid > 0
    group, n, mean = group[good], points.valid[good], points.mean[good]
    total = np.bincount(group, weights=n, minlength=size)
    with np.errstate(invalid="ignore"):
        centre = np.bincount(group, weights=n * mean, minlength=size) / total
    spread = points.ss[good] + n * (mean - centre[group]) ** 2
    return total, centre, np.bincount(group, weights=spread, minlength=size)


# --------------------------------------------------------------------------------------------------- tables


def _cells_frame(points: _Points) -> pd.DataFrame:
    cell, size = points.cell, points.n_cells
    total, mean, ss = _pooled(cell, size, points)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(np.where(total > 1, ss / (total - 1), np.nan))
    n = np.bincount(cell, weights=points.n, minlength=size).astype(int)
    named = [points.where(i) for i in range(size)]
    missing = _missing_points(points)
    return pd.DataFrame(
        {
            "benchmark": pd.Series([benchmark for benchmark, _ in named], dtype=_dtype(points.benchmarks)),
            "algorithm": [algorithm for _, algorithm in named],
            "n": n,
            "seeds": _distinct(cell, points.seed, size, len(points.seeds)) if points.runs.seed else 0,
            "budgets": _distinct(cell, points.budget, size, len(points.budgets)) if points.runs.budget else 0,
            "missing": points.by_instance(missing),
            "duplicates": _extra_rows(points),
            "non_finite": n - total.astype(int),
            "distinct": _distinct_scores(points),
            "mean": mean,
            "sd": sd,
        }
    )


def _dtype(levels: tuple[Any, ...]) -> Any:
    return object if levels == (None,) else None


def _distinct_scores(points: _Points) -> np.ndarray:
    cell, size = points.cell, points.n_cells
    if np.any(points.low < points.high):  # several scores in a point: only the rows know how many differ
        return _distinct_scores_of_rows(points.runs, points)
    good = points.valid > 0
    cell, mean = cell[good], points.mean[good]
    order = np.argsort(cell.astype(np.uint16) if size < 2**16 else cell, kind="stable")
    parts = np.split(mean[order], np.cumsum(np.bincount(cell, minlength=size))[:-1])
    return np.array([len(np.unique(part)) for part in parts])


def _distinct_scores_of_rows(runs: Runs, points: _Points) -> np.ndarray:
    """One more query: (benchmark, algorithm, score) that occur; a score counts where it is finite."""
    names = {"algorithm": runs.algorithm, **({"benchmark": runs.benchmark} if runs.benchmark else {})}
    columns = [nw.col(column).alias(f"key_{name}") for name, column in names.items()]
    y = nw.col(runs.score).cast(nw.Float64)
    table = runs.frame.select(*columns, y.alias("y"))
    table = table.filter(nw.col("y").is_finite().fill_null(False))
    table = table.group_by(*(f"key_{name}" for name in names)).agg(nw.col("y").n_unique().alias("distinct"))
    frame = (table.collect() if isinstance(table, nw.LazyFrame) else table).to_pandas()
    at_algorithm = {level: i for i, level in enumerate(points.algorithms)}
    at_benchmark = {level: i for i, level in enumerate(points.benchmarks)}
    out = np.zeros((len(points.benchmarks), len(points.algorithms)), dtype=int)
    benchmarks = frame["key_benchmark"] if runs.benchmark else [None] * len(frame)
    for benchmark, algorithm, count in zip(benchmarks, frame["key_algorithm"], frame["distinct"], strict=True):
        out[at_benchmark[benchmark], at_algorithm[algorithm]] = count
    return out.ravel()


def _scales(points: _Points) -> pd.DataFrame:
    """The spread of scores that the seeds cause: within algorithm, instance and, on a grid, budget."""
    group = points.instance * len(points.algorithms) + points.algorithm
    benchmark_of_group = np.repeat(points.benchmark_of, len(points.algorithms))
    if points.regular:
        group = group * len(points.budgets) + points.budget
        benchmark_of_group = np.repeat(benchmark_of_group, len(points.budgets))
    total, _, ss = _pooled(group, len(benchmark_of_group), points)
    size = len(points.benchmarks)
    df = np.bincount(benchmark_of_group, weights=np.maximum(total - 1, 0), minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.bincount(benchmark_of_group, weights=ss, minlength=size) / df
    frame = {
        "benchmark": pd.Series(points.benchmarks, dtype=_dtype(points.benchmarks)),
        "residual_sd": np.sqrt(variance),
        "df": df.astype(int),
    }
    return pd.DataFrame(frame)


def _overview(points: _Points) -> str:
    runs = points.runs
    counts = [(len(points.algorithms), "algorithm"), (len(points.benchmarks), "benchmark")]
    if runs.benchmark is None:
        counts.pop()
    if runs.metafeatures:
        counts.append((len(points.benchmark_of), "instance"))
    counts += [(len(points.seeds), "seed")] if runs.seed else []
    counts += [(len(points.budgets), "budget")] if runs.budget else []
    size = ", ".join(f"{count:,} {word}{'s' * (count != 1)}" for count, word in counts)
    complete = (
        points.n.min() == points.n.max()
        and not _missing_points(points).any()
        and len(np.unique(_seeds_run(points))) == 1
    )
    return f"{int(points.n.sum()):,} rows: {size}; {'complete and balanced' if complete else 'not balanced'}."


# ----------------------------------------------------------------------------------------- counts by instance


def _shape(points: _Points) -> tuple[int, int]:
    return len(points.benchmark_of), len(points.algorithms)


def _seeds_run(points: _Points) -> np.ndarray:
    """(instances, algorithms): the number of seeds that an algorithm ran."""
    shape = _shape(points)
    pair = points.instance * shape[1] + points.algorithm
    return _distinct(pair, points.seed, shape[0] * shape[1], len(points.seeds)).reshape(shape)


def _missing_points(points: _Points) -> np.ndarray:
    """(instances, algorithms): combinations of seed and budget of the instance that are not there."""
    shape = _shape(points)
    pair = points.instance * shape[1] + points.algorithm
    seeds = _distinct(points.instance, points.seed, shape[0], len(points.seeds))
    ran = _seeds_run(points)
    shared = ran.sum(axis=1) > seeds  # otherwise every algorithm has seeds of its own: none is missing
    own = np.where(ran > 0, ran, ran.max(axis=1, keepdims=True))
    expected = np.where(shared[:, None], seeds[:, None], own)
    if not points.regular:
        return expected - ran
    budgets = _distinct(points.instance, points.budget, shape[0], len(points.budgets))
    there = np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape)
    return expected * budgets[:, None] - there


def _extra_rows(points: _Points) -> np.ndarray:
    """Rows beyond the first of a run at a budget; without seeds they are repetitions, not duplicates."""
    if points.runs.seed is None:
        return np.zeros(points.n_cells, dtype=int)
    return np.bincount(points.cell, weights=points.n - 1, minlength=points.n_cells).astype(int)


# ------------------------------------------------------------------------------------------------- findings


def _on(benchmark: Any) -> str:
    return "" if benchmark is None else f" on {str(benchmark)!r}"


def _per_cell(
    points: _Points,
    counts: np.ndarray,
    severity: Severity,
    kind: str,
    say: Callable[[int, str, str, int], tuple[str, str]],
) -> list[Finding]:
    """A finding for every benchmark and algorithm with a count, the largest count first.

    `say` makes message and advice of the cell, the quoted algorithm, the words for the place, and the count.
    """
    hit = np.flatnonzero(counts)
    found = []
    for cell in hit[np.argsort(-counts[hit], kind="stable")].tolist():
        benchmark, algorithm = points.where(cell)
        count = int(counts[cell])
        message, advice = say(cell, repr(str(algorithm)), _on(benchmark), count)
        finding = Finding(
            severity=severity,
            kind=kind,
            benchmark=benchmark,
            algorithm=algorithm,
            count=count,
            message=message,
            advice=advice,
        )
        found.append(finding)
    return found


def _non_finite(points: _Points) -> list[Finding]:
    bad = np.bincount(points.cell, weights=points.n - points.valid, minlength=points.n_cells)
    rows = np.bincount(points.cell, weights=points.n, minlength=points.n_cells)
    worst = "largest" if points.runs.direction == "minimize" else "smallest"
    advice = (
        f"If these runs failed, give them the worst possible score (the {worst} one), because a failure is "
        f"a result; drop them with runs.drop_missing() only if failing has nothing to do with the algorithm."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        share = f"{count:,} of {int(rows[cell]):,} scores of {algorithm}{where} {'is' if count == 1 else 'are'}"
        return f"{share} missing or infinite, so no model can be fitted.", advice

    return _per_cell(points, bad, "error", "non_finite", say)


def _missing_cells(points: _Points) -> list[Finding]:
    absent = points.by_instance((_seeds_run(points) == 0).astype(int))
    instances = np.bincount(points.benchmark_of, minlength=len(points.benchmarks))
    advice = (
        "Run what is missing; until then conclusions about this algorithm rest on what is there, and if the "
        "missing part is a hard one, it looks better than it is."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        several = instances[cell // len(points.algorithms)]
        if several > 1:
            where += f" for {count} of {several} values of {listed(points.runs.metafeatures)}"
        return f"{algorithm} has no runs{where}, where other algorithms have.", advice

    return _per_cell(points, absent, "warning", "missing_cells", say)


def _similar_levels(points: _Points) -> list[Finding]:
    """Levels that differ in case or surrounding blanks only: nearly always one level, misspelt."""
    found = []
    for column, levels in (
        (points.runs.algorithm, points.algorithms),
        (points.runs.benchmark, points.benchmarks),
    ):
        groups: dict[str, list[str]] = {}
        for level in levels:
            groups.setdefault(str(level).strip().casefold(), []).append(str(level))
        for alike in groups.values():
            if len(alike) > 1:
                finding = Finding(
                    severity="warning",
                    kind="similar_levels",
                    count=len(alike),
                    message=f"The column {column!r} holds {' and '.join(map(repr, alike))}, which count as different.",
                    advice="If they are the same, write them in the same way.",
                )
                found.append(finding)
    return found


def _duplicates(points: _Points) -> list[Finding]:
    conflicting = np.bincount(points.cell, weights=points.low < points.high, minlength=points.n_cells)
    key = ["algorithm", *(["instance"] if points.runs.instance else []), "seed"]
    key += ["budget"] if points.runs.budget else []
    forgotten = "a metafeature" if points.runs.budget else "a budget, a metafeature"
    copies = "These are copies, which make the result look surer than it is: drop them."
    repeats = (
        f"Perhaps a column that tells them apart ({forgotten}) was not named: name it. If they are true "
        f"repetitions, give each its own seed."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        differ = bool(conflicting[cell])
        scores = "with different scores" if differ else "with equal scores"
        rows = f"{count:,} row{'s' * (count > 1)} more than one per {listed(key)}"
        return f"{algorithm}{where} has {rows}, {scores}.", repeats if differ else copies

    return _per_cell(points, _extra_rows(points), "warning", "duplicates", say)


def _constant(points: _Points) -> list[Finding]:
    size, n_algorithms = points.n_cells, len(points.algorithms)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    good = points.valid > 0
    np.minimum.at(low, points.cell[good], points.low[good])
    np.maximum.at(high, points.cell[good], points.high[good])
    n = np.bincount(points.cell, weights=points.valid, minlength=size)
    found, single = [], np.where((low == high) & (n > 1), n, 0)
    shape = (len(points.benchmarks), n_algorithms)
    lowest, highest = low.reshape(shape).min(axis=1), high.reshape(shape).max(axis=1)
    for i in np.flatnonzero((lowest == highest) & (n.reshape(shape).sum(axis=1) > 1)):
        count = int(n.reshape(shape)[i].sum())
        where = "All scores are" if points.benchmarks[i] is None else f"All scores{_on(points.benchmarks[i])} are"
        finding = Finding(
            severity="warning",
            kind="constant_scores",
            benchmark=points.benchmarks[i],
            count=count,
            message=f"{where} {format_number(lowest[i])}, in {count:,} rows and for every algorithm.",
            advice="Such a benchmark cannot tell algorithms apart: check the score column, or leave it out.",
        )
        found.append(finding)
        single.reshape(shape)[i] = 0

    advice = (
        "Check for a cap, a default value, or a seed that is not used: without any spread between seeds this "
        "algorithm looks surer than it is."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        return f"All {count:,} scores of {algorithm}{where} are {format_number(low[cell])}.", advice

    return found + _per_cell(points, single, "warning", "constant_scores", say)


def _scale_finding(points: _Points, scales: pd.DataFrame, ratio: float) -> list[Finding]:
    if not ratio > SCALE_RATIO:
        return []
    sd = scales["residual_sd"].where(scales["residual_sd"] > 0)
    large, small = sd.idxmax(), sd.idxmin()
    ends = [f"{str(points.benchmarks[i])!r} ({format_number(sd[i], 3)})" for i in (large, small)]
    finding = Finding(
        severity="warning",
        kind="score_scale",
        benchmark=points.benchmarks[large],
        count=int((sd > SCALE_RATIO * sd.min()).sum()),
        message=f"Scores scatter {format_number(ratio, 3)} times as much between seeds on {ends[0]} as on "
        f"{ends[1]}, so the noisiest benchmarks would decide the comparison.",
        advice="Compare a score that means the same everywhere (normalised regret, a rank, or the logarithm of a "
        "positive score), or repeat the analysis without the noisiest benchmarks.",
    )
    return [finding]


_UNPAIRED = (
    "Results of different algorithms are then not paired, which is valid but less sensitive; run all "
    "algorithms with the same seeds where a seed fixes something they share."
)
_STOPPED = (
    "Run the seeds that are missing, or find out why they stopped: a run that is missing because it failed "
    "makes its algorithm look better than it is."
)


def _unpaired_seeds(points: _Points) -> list[Finding]:
    if points.runs.seed is None:
        return []
    n_instances, n_algorithms = _shape(points)
    ran = _seeds_run(points)
    present = (ran > 0).sum(axis=1)
    slot = points.instance * np.int64(len(points.seeds)) + points.seed
    runs = _occurring(points.run, n_instances * len(points.seeds) * n_algorithms)
    users = np.bincount(runs // n_algorithms, minlength=int(slot.max()) + 1)
    pair = np.flatnonzero(users)
    users = users[pair]
    instance, seed = pair // len(points.seeds), pair % len(points.seeds)
    unpaired = users < present[instance]
    shared = np.bincount(instance[users > 1], minlength=n_instances)
    seeds = np.bincount(instance, minlength=n_instances)
    lacking = np.where(ran > 0, seeds[:, None] - ran, 0)
    found = []
    for b, benchmark in enumerate(points.benchmarks):
        here = points.benchmark_of[instance] == b
        lone = here & unpaired
        if not lone.any():
            continue
        count, total = int(lone.sum()), int(here.sum())
        none = not shared[points.benchmark_of == b].any()
        examples = [str(points.seeds[i]) for i in dict.fromkeys(seed[lone].tolist())]
        several = (points.benchmark_of == b).sum() > 1
        what = f"combinations of seed and {listed(points.runs.metafeatures)}" if several else "seeds"
        were = "was" if count == 1 else "were"
        message = f"{count:,} of {total:,} {what}{_on(benchmark)} {were} not run by every algorithm"
        finding = Finding(
            severity="note" if none else "warning",
            kind="unpaired_seeds",
            benchmark=benchmark,
            count=count,
            message=f"No seed{_on(benchmark)} is used by more than one algorithm."
            if none
            else f"{message} (such as seed{'s' * (len(examples) > 1)} {', '.join(examples[:SHOWN])}; "
            f"{points.algorithms[lacking[points.benchmark_of == b].sum(axis=0).argmax()]!r} lacks most).",
            advice=_UNPAIRED if none else _STOPPED,
        )
        found.append(finding)
    return found


def _missing_budgets(points: _Points) -> list[Finding]:
    runs = points.runs
    if runs.budget is None:
        return []
    if not points.regular:
        single = len(points.run) == 1 + int((points.run[1:] != points.run[:-1]).sum())  # sorted by run
        finding = Finding(
            severity="note",
            kind="irregular_budgets",
            count=len(points.budgets),
            message=f"Every run has a score at one budget only, while {runs.budget!r} takes "
            f"{len(points.budgets):,} values."
            if single
            else f"Runs have few budgets in common ({len(points.budgets):,} different values of {runs.budget!r}), "
            f"so algorithms are rarely seen at the same budget.",
            advice="If it is a setting of the run rather than the moment at which its score was taken, name it as "
            "a metafeature or leave it out."
            if single
            else "Compare at common budgets: for each run and budget, take the last score up to it.",
        )
        return [finding]
    n_instances, n_algorithms = _shape(points)
    budgets = _distinct(points.instance, points.budget, n_instances, len(points.budgets))
    pair = points.instance * n_algorithms + points.algorithm
    there = np.bincount(pair, minlength=n_instances * n_algorithms).reshape(n_instances, n_algorithms)
    expected = _seeds_run(points) * budgets[:, None]
    totals = points.by_instance(expected)

    advice = "If runs stopped early, carry their last score forward; if they failed, score them as worst."

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        lacking = f"{count:,} of the {int(totals[cell]):,} scores that its runs would have at all budgets"
        return f"{algorithm}{where} lacks {lacking}.", advice

    return _per_cell(points, points.by_instance(expected - there), "warning", "missing_budgets", say)


def _tied_pairs(points: _Points) -> tuple[np.ndarray, np.ndarray]:
    """By benchmark: pairs of algorithms with equal scores on the same instance, seed and budget; and all."""
    block = (points.instance * np.int64(len(points.seeds)) + points.seed) * len(points.budgets) + points.budget
    order = np.argsort(block, kind="stable")
    block, mean = block[order], points.mean[order]
    benchmark = points.benchmark_of[points.instance[order]]
    size = len(points.benchmarks)
    equal, pairs = np.zeros(size, dtype=int), np.zeros(size, dtype=int)
    for lag in range(1, len(points.algorithms)):  # a block has at most one entry per algorithm
        together = (block[lag:] == block[:-lag]) & np.isfinite(mean[lag:]) & np.isfinite(mean[:-lag])
        if not together.any():
            break
        pairs += np.bincount(benchmark[lag:][together], minlength=size)
        equal += np.bincount(benchmark[lag:][together & (mean[lag:] == mean[:-lag])], minlength=size)
    return equal, pairs


def _tied(points: _Points, equal: np.ndarray, pairs: np.ndarray) -> list[Finding]:
    rows = np.bincount(points.benchmark_of[points.instance], weights=points.valid, minlength=len(equal))
    same = listed(["seed"] * bool(points.runs.seed) + ["budget"] * bool(points.runs.budget)).replace(", ", " and ")
    found = []
    share = equal / np.maximum(pairs, 1)
    for i in sorted(np.flatnonzero(share >= TIED_SHARE), key=lambda i: -share[i]):
        here = points.benchmark_of[points.instance] == i
        values = points.mean[here & (points.valid > 0)]
        finding = Finding(
            severity="note",
            kind="ties",
            benchmark=points.benchmarks[i],
            count=int(equal[i]),
            message=f"{100 * share[i]:.0f} % of the comparisons of two algorithms{_on(points.benchmarks[i])}"
            f"{f' at the same {same}' if same else ''} are exact ties ({len(pd.unique(values)):,} different "
            f"values in {int(rows[i]):,} scores).",
            advice="Fine if algorithms share their first steps or reach the same optimum; otherwise look for "
            "a cap or rounding, and prefer a finer score.",
        )
        found.append(finding)
    return found


def _getting_worse(points: _Points) -> list[Finding]:
    """Runs whose score gets worse with the budget, which a best-so-far score never does."""
    if points.runs.budget is None or points.runs.seed is None:
        return []
    good = points.valid > 0
    run, mean = points.run[good], points.mean[good]
    minimize = points.runs.direction == "minimize"
    step = np.diff(mean) if minimize else -np.diff(mean)
    worse = (run[1:] == run[:-1]) & (step > 0)
    count, total = len(pd.unique(run[1:][worse])), 1 + int((run[1:] != run[:-1]).sum())  # sorted by run
    if not count:
        return []
    finding = Finding(
        severity="note",
        kind="not_best_so_far",
        count=count,
        message=f"In {count:,} of {total:,} runs the score gets worse at a higher budget, so it is not the "
        f"best score so far.",
        advice=f"Fine if the score belongs to each budget by itself; if the best so far is meant, take the "
        f"running {'minimum' if minimize else 'maximum'} of each run first.",
    )
    return [finding]
