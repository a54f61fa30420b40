"""What can spoil a comparison: findings about a table of runs, each with a next step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest._table import ResultTable
from lmemtest.data.broken_traces import traces_of
from lmemtest.data.copies import copied_algorithms
from lmemtest.data.coverage import missing_budgets, missing_cells, no_common_benchmark, unpaired_seeds
from lmemtest.data.findings import SEVERITIES, SHOWN, Finding, on, per_cell
from lmemtest.data.kind_findings import kind_findings, unlike_units
from lmemtest.data.points import (
    Points,
    cells_frame,
    effect_scales,
    extra_rows,
    overview,
    residual_scales,
)
from lmemtest.data.roles import role_findings
from lmemtest.data.scales import SCALE_RATIO, Modelled, remedies, remedy_text, scale_ratio
from lmemtest.data.score_kind import ScoreKind, score_kind
from lmemtest.words import format_number, listed

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

__all__ = ["Finding", "RunsCheck", "check_runs"]

TIED_SHARE = 0.1  # fewer exactly equal scores are no cause for a look
CHANCE = 0.05  # scales that differ by more than this chance, where few scores tell them


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
    kind : ScoreKind
        What kind of score it is, which decides what is a defect.
    """

    findings: tuple[Finding, ...]
    cells: pd.DataFrame
    scales: pd.DataFrame
    scale_ratio: float
    tied_share: float
    overview: str
    kind: ScoreKind

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are more than notes."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    @property
    def ok(self) -> bool:
        """Whether there are no errors and no warnings."""
        return not self.problems

    @property
    def scales_differ(self) -> bool:
        """Whether scores scatter so differently on benchmarks that the noisiest would decide."""
        return self.scale_ratio > SCALE_RATIO and any(finding.kind == "score_scale" for finding in self.findings)

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
                rest = in_words_of(python="; see to_frame()", command_line="")
                lines.append(f"  - ... and {len(found) - SHOWN:,} more of this kind{rest}.")
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


def check_runs(runs: Runs, *, modelled: Modelled | None = None) -> RunsCheck:
    """Look for what can spoil a comparison; the function behind `Runs.check`.

    Parameters
    ----------
    runs : Runs
        Any table; of a lazy one, only one row per algorithm, instance, seed and budget is collected.
    modelled : Modelled, optional
        The function of the score that a model takes, such as its logarithm: scales are then those of its values.

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
    points = runs.study.points
    judged = points if modelled is None else modelled.of(points)
    scales = residual_scales(judged)
    kind = score_kind(points)
    equal, pairs = _tied_pairs(points, limit=kind.high if kind.kind == "capped" else np.inf)
    found = [
        *_non_finite(points),
        *role_findings(runs),
        *kind_findings(points, kind),
        *no_common_benchmark(points),
        *missing_cells(points),
        *_similar_levels(points),
        *_duplicates(points),
        *copied_algorithms(points, kind),
        *_constant(points, kind),
        *_scale_findings(points, judged, kind, scales, modelled),
        *unpaired_seeds(points),
        *missing_budgets(points),
        *(() if kind.equal_by_nature else _tied(points, equal, pairs)),
        *(() if runs.budget is None or runs.seed is None else traces_of(points).findings),
    ]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))  # stable: kinds stay together
    return RunsCheck(
        findings=tuple(found),
        cells=cells_frame(points),
        scales=scales,
        scale_ratio=scale_ratio(scales["residual_sd"]),
        tied_share=float(equal.sum() / pairs.sum()) if pairs.sum() else 0.0,
        overview=overview(points),
        kind=kind,
    )


def _non_finite(points: Points) -> list[Finding]:
    bad = np.bincount(points.cell, weights=points.n - points.valid, minlength=points.n_cells)
    rows = np.bincount(points.cell, weights=points.n, minlength=points.n_cells)
    worst = "largest" if points.runs.direction == "minimize" else "smallest"
    drop = in_words_of(python="runs.drop_missing()", command_line="--drop-missing")
    advice = (
        f"If these runs failed, give them the worst possible score (the {worst} one), because a failure is "
        f"a result; drop them with {drop} only if failing has nothing to do with the algorithm."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        total = int(rows[cell])
        share = f"{count:,} of {total:,} score{'s' * (total > 1)} of {algorithm}{where}"
        return f"{share} {'is' if count == 1 else 'are'} missing or infinite, so no model can be fitted.", advice

    return per_cell(points, bad, "error", "non_finite", say)


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

    return per_cell(points, extra_rows(points), "warning", "duplicates", say)


def _constant(points: Points, kind: ScoreKind) -> list[Finding]:
    """Benchmarks and algorithms with one score throughout; none where that is what the score brings."""
    if kind.equal_by_nature:
        return []
    size, n_algorithms = points.n_cells, len(points.algorithms)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    good = points.valid > 0
    np.minimum.at(low, points.cell[good], points.low[good])
    np.maximum.at(high, points.cell[good], points.high[good])
    n = np.bincount(points.cell, weights=points.valid, minlength=size)
    limit = kind.high if kind.kind == "capped" else np.inf  # what ends at a limit is a finding of its own
    found, single = [], np.where((low == high) & (low < limit) & (n > 1), n, 0)
    shape = (len(points.benchmarks), n_algorithms)
    lowest, highest = low.reshape(shape).min(axis=1), high.reshape(shape).max(axis=1)
    for i in np.flatnonzero((lowest == highest) & (lowest < limit) & (n.reshape(shape).sum(axis=1) > 1)):
        count = int(n.reshape(shape)[i].sum())
        where = "All scores are" if points.benchmarks[i] is None else f"All scores{on(points.benchmarks[i])} are"
        finding = Finding(
            severity="warning",
            kind="constant_scores",
            benchmark=points.benchmarks[i],
            count=count,
            message=f"{where} {format_number(lowest[i])}, in {count:,} rows and for every algorithm.",
            advice="Check the score column. If the scores are right, keep the benchmark: it says that the algorithms "
            "are equal there, and without it their mean differences would be overstated.",
        )
        found.append(finding)
        single.reshape(shape)[i] = 0

    advice = (
        "Check for a cap, a default value, or a seed that is not used: without any spread between seeds this "
        "algorithm looks surer than it is."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        return f"All {count:,} scores of {algorithm}{where} are {format_number(low[cell])}.", advice

    return found + per_cell(points, single, "warning", "constant_scores", say)


def _scale_findings(
    points: Points, judged: Points, kind: ScoreKind, scales: pd.DataFrame, modelled: Modelled | None
) -> list[Finding]:
    """Whether the scale of the scores differs between benchmarks; 0 or 1 and ranks have one scale by nature."""
    if kind.kind in ("two-valued", "ranks") or unlike_units(points):
        return []
    what = "Scores" if modelled is None else f"Values of {modelled.label}"
    if (scales["df"] > 0).sum() > 1:
        spread = scales["residual_sd"]
        ratio = scale_ratio(spread)
        message = (
            f"{what} scatter {format_number(ratio, 3)} times as much between seeds on {{}} as on {{}}, "
            f"so the noisiest benchmarks would decide the comparison."
        )
    else:  # nothing was repeated: whether the differences between algorithms are on other scales, beyond chance
        scales = effect_scales(judged)
        scales = scales[scales["sd"] > 0]
        spread = scales["sd"]
        ratio = scale_ratio(spread)
        if not (ratio > SCALE_RATIO and _bartlett(spread.to_numpy(), scales["df"].to_numpy()) < CHANCE):
            return []
        message = (
            f"{what} of different algorithms lie {format_number(ratio, 3)} times as far apart on {{}} as on {{}}, so "
            f"the benchmarks with the largest differences would decide the comparison (no run was repeated, so there "
            f"is no scatter between seeds to judge by)."
        )
    if not ratio > SCALE_RATIO:
        return []
    sd = spread.where(spread > 0)
    large, small = sd.idxmax(), sd.idxmin()
    ends = [f"{str(points.benchmarks[i])!r} ({format_number(sd[i], 3)})" for i in (large, small)]
    found = [remedy for remedy in remedies(points, kind) if remedy.ratio < ratio]
    return [
        Finding(
            severity="warning",
            kind="score_scale",
            benchmark=points.benchmarks[large],
            count=int((sd > SCALE_RATIO * sd.min()).sum()),
            message=message.format(*ends),
            advice=remedy_text(tuple(found), ratio, points.runs.benchmark),
        )
    ]


def _bartlett(sd: np.ndarray, df: np.ndarray) -> float:
    """The p-value of Bartlett's test of equal variances."""
    from scipy.special import chdtrc

    total = df.sum()
    statistic = total * np.log(np.sum(df * sd**2) / total) - np.sum(df * np.log(sd**2))
    correction = 1 + (np.sum(1 / df) - 1 / total) / (3 * (len(sd) - 1))
    return float(chdtrc(len(sd) - 1, max(statistic / correction, 0.0)))


def _tied_pairs(points: Points, *, limit: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """By benchmark: pairs of algorithms with equal scores below a limit on the same instance, seed and budget; all."""
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
        tied = together & (mean[lag:] == mean[:-lag]) & (mean[lag:] < limit)
        equal += np.bincount(benchmark[lag:][tied], minlength=size)
    return equal, pairs


def _tied(points: Points, equal: np.ndarray, pairs: np.ndarray) -> list[Finding]:
    rows = np.bincount(points.benchmark_of[points.instance], weights=points.valid, minlength=len(equal))
    same = listed(["seed"] * bool(points.runs.seed) + ["budget"] * bool(points.runs.budget)).replace(", ", " and ")
    usual = (
        "if algorithms share their first steps or reach the same optimum"
        if points.runs.budget
        else ("if the score has few possible values, such as an accuracy on a small test set")
    )
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
            message=f"{written(100 * share[i], '.0f')} % of the comparisons of two algorithms{on(points.benchmarks[i])}"
            f"{f' at the same {same}' if same else ''} are exact ties ({len(pd.unique(values)):,} different "
            f"value{'s' * (len(pd.unique(values)) > 1)} in {int(rows[i]):,} scores).",
            advice=f"Fine {usual}; otherwise look for a cap or rounding, and prefer a finer score.",
        )
        found.append(finding)
    return found
