"""What can spoil a comparison: findings about a table of runs, each with a next step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest._table import ResultTable, format_number
from lmemtest._validate import listed
from lmemtest.data.points import (
    Points,
    cells_frame,
    collect_points,
    count_distinct,
    extra_rows,
    grid_shape,
    occurring,
    overview,
    residual_scales,
    seeds_run,
)

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
    points = collect_points(runs)
    scales = residual_scales(points)
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
        cells=cells_frame(points),
        scales=scales,
        scale_ratio=ratio,
        tied_share=float(equal.sum() / pairs.sum()) if pairs.sum() else 0.0,
        overview=overview(points),
    )


def _on(benchmark: Any) -> str:
    return "" if benchmark is None else f" on {str(benchmark)!r}"


def _per_cell(
    points: Points,
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


def _non_finite(points: Points) -> list[Finding]:
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


def _missing_cells(points: Points) -> list[Finding]:
    absent = points.by_instance((seeds_run(points) == 0).astype(int))
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


def _similar_levels(points: Points) -> list[Finding]:
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


def _duplicates(points: Points) -> list[Finding]:
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

    return _per_cell(points, extra_rows(points), "warning", "duplicates", say)


def _constant(points: Points) -> list[Finding]:
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


def _scale_finding(points: Points, scales: pd.DataFrame, ratio: float) -> list[Finding]:
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


def _unpaired_seeds(points: Points) -> list[Finding]:
    if points.runs.seed is None:
        return []
    n_instances, n_algorithms = grid_shape(points)
    ran = seeds_run(points)
    present = (ran > 0).sum(axis=1)
    slot = points.instance * np.int64(len(points.seeds)) + points.seed
    runs = occurring(points.run, n_instances * len(points.seeds) * n_algorithms)
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


def _missing_budgets(points: Points) -> list[Finding]:
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
    n_instances, n_algorithms = grid_shape(points)
    budgets = count_distinct(points.instance, points.budget, n_instances, len(points.budgets))
    pair = points.instance * n_algorithms + points.algorithm
    there = np.bincount(pair, minlength=n_instances * n_algorithms).reshape(n_instances, n_algorithms)
    expected = seeds_run(points) * budgets[:, None]
    totals = points.by_instance(expected)

    advice = "If runs stopped early, carry their last score forward; if they failed, score them as worst."

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        lacking = f"{count:,} of the {int(totals[cell]):,} scores that its runs would have at all budgets"
        return f"{algorithm}{where} lacks {lacking}.", advice

    return _per_cell(points, points.by_instance(expected - there), "warning", "missing_budgets", say)


def _tied_pairs(points: Points) -> tuple[np.ndarray, np.ndarray]:
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


def _tied(points: Points, equal: np.ndarray, pairs: np.ndarray) -> list[Finding]:
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


def _getting_worse(points: Points) -> list[Finding]:
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
