"""What was not run: cells, seeds and budgets that some algorithms have and others lack."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.checks.findings import SHOWN, CheckOutcome, on, per_cell
from lmemtest.bench.checks.subject import Subject, left_out, outcome
from lmemtest.bench.data.budget_mix import common_budgets_advice
from lmemtest.bench.data.study import Study
from lmemtest.core.codes import occurring, rows_of_each
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_number, listed

COMMON_BUDGETS = 0.8  # of the whole range of budgets; below it algorithms are not compared at the same ones


def no_common_benchmark(study: Study) -> list[Finding]:
    """Algorithms that never met on a benchmark: an error if none did, a warning if some did not."""
    met = study.runs.study.crossing
    if met is None or not met.apart:
        return []
    count = len(met.apart)
    severity = "error" if met.none_meet else "warning"
    if met.none_meet:
        message, advice = f"{met.reason()[0].upper()}{met.reason()[1:]}.", met.advice()
    else:
        message = (
            f"{count:,} of the {met.n_pairs:,} pairs of algorithms {'has' if count == 1 else 'have'} no benchmark in "
            f"common ({met.shown()}), so what sets them apart may as well be their benchmarks."
        )
        advice = "They are not compared. Run these algorithms on the same benchmarks to compare them."
    return [Finding(severity, "no_common_benchmark", message, advice, count=count)]


def missing_cells(subject: Subject) -> list[Finding]:
    """Algorithms without any run on an instance where others ran, if any two met."""
    study = subject.study
    met = study.runs.study.crossing
    if met is not None and met.none_meet:
        return []
    absent = study.by_cell((subject.seeds_run == 0).astype(int))
    instances = np.bincount(study.benchmark_of, minlength=len(study.names("benchmark")))
    advice = (
        "Run what is missing; until then conclusions about this algorithm rest on what is there, and if the "
        "missing part is a hard one, it looks better than it is."
    )

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        several = instances[cell // len(study.names("algorithm"))]
        if several > 1:
            within = [name for name in study.runs.instance if name != study.runs.benchmark]
            where += f" for {count} of {several} values of {listed(within)}"
        return f"{algorithm} has no runs{where}, where other algorithms have.", advice

    return per_cell(study.places, absent, "warning", "missing_cells", say)


_UNPAIRED = (
    "Results of different algorithms are then not paired, which is valid but less sensitive; run all "
    "algorithms with the same seeds where a seed fixes something they share."
)
_STOPPED = (
    "Run the seeds that are missing, or find out why they stopped: a run that is missing because it failed "
    "makes its algorithm look better than it is."
)


def unpaired_seeds(subject: Subject) -> list[Finding]:
    """Seeds that not all algorithms ran: a warning where they share some, a note where they share none."""
    study = subject.study
    if study.runs.seed is None:
        return []
    n_instances, n_algorithms = study.shape
    ran = subject.seeds_run
    group, size = subject.seed_groups
    few = size - ran
    members = np.zeros((n_instances, n_algorithms), dtype=int)
    np.add.at(members, (np.arange(n_instances)[:, None], group), ran > 0)
    runs = occurring(study.code("run"), n_instances * len(study.names("seed")) * n_algorithms)
    pair, users = np.unique(runs // n_algorithms, return_counts=True)
    first = np.searchsorted(np.sort(runs), pair * n_algorithms)  # any user of the seed names the group
    user = np.sort(runs)[first] % n_algorithms
    instance, seed = pair // len(study.names("seed")), pair % len(study.names("seed"))
    unpaired = users < members[instance, group[instance, user]]
    n_runs = np.bincount(study.benchmark_of[runs // (n_algorithms * len(study.names("seed")))])
    found = []
    instances, pairs = rows_of_each(study.benchmark_of), rows_of_each(study.benchmark_of[instance])
    for benchmark, rows, here, n in zip(study.names("benchmark"), instances, pairs, n_runs.tolist(), strict=True):
        found += _apart(study, benchmark, group[rows], members[rows], n)
        lone = here[unpaired[here]]
        if not len(lone):
            continue
        count, total = len(lone), len(here)
        examples = [str(study.names("seed")[i]) for i in dict.fromkeys(seed[lone].tolist())]
        what = f"combinations of seed and {listed(study.runs.metafeatures)}" if len(rows) > 1 else "seeds"
        were = "was" if count == 1 else "were"
        every = "every algorithm" if (members[rows] > 0).sum(axis=1).max() == 1 else "every algorithm that shares seeds"
        finding = Finding(
            severity="warning",
            kind="unpaired_seeds",
            benchmark=benchmark,
            count=count,
            message=f"{count:,} of {total:,} {what}{on(benchmark)} {were} not run by {every} "
            f"(such as seed{'s' * (len(examples) > 1)} {', '.join(examples[:SHOWN])}; "
            f"{study.names('algorithm')[few[rows].sum(axis=0).argmax()]!r} lacks most).",
            advice=_STOPPED,
        )
        found.append(finding)
    return found


def _apart(study: Study, benchmark: Any, group: np.ndarray, members: np.ndarray, n_runs: int) -> list[Finding]:
    """A note where algorithms ran on seeds of their own: nothing is missing, but nothing is paired either."""
    groups = (members > 0).sum(axis=1)
    if groups.max() < 2:
        return []
    i = int(groups.argmax())
    together = [
        [study.names("algorithm")[a] for a in np.flatnonzero(group[i] == g)] for g in np.flatnonzero(members[i])
    ]
    alone = [names[0] for names in together if len(names) == 1]
    if members.max() == 1:
        message = f"No seed{on(benchmark)} is used by more than one algorithm."
    elif len(together) - len(alone) == 1:
        runs = "runs" if len(alone) == 1 else "run"
        message = (
            f"{' and '.join(map(repr, map(str, alone)))}{on(benchmark)} {runs} on seeds that no other algorithm uses."
        )
    else:
        parts = "; ".join(listed(names, most=SHOWN) for names in together)
        message = f"The algorithms{on(benchmark)} form {len(together)} groups without a common seed: {parts}."
    finding = Finding(
        "note",
        "unpaired_seeds",
        message,
        _UNPAIRED,
        benchmark=benchmark,
        count=n_runs,
    )
    return [finding]


def _mixed_budgets(study: Study) -> list[Finding]:
    """A warning for every benchmark on which scores of different algorithms come from different ranges of budgets."""
    values = _as_numbers(study.names("budget"))[study.code("budget")]
    size = study.n_cells
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, study.code("cell"), values)
    np.maximum.at(high, study.code("cell"), values)
    found = []
    for b, benchmark in enumerate(study.names("benchmark")):
        cells = np.arange(b * len(study.names("algorithm")), (b + 1) * len(study.names("algorithm")))
        cells = cells[low[cells] <= high[cells]]
        width = high[cells].max() - low[cells].min()
        common = high[cells].min() - low[cells].max()
        if not common < COMMON_BUDGETS * width:
            continue
        ends = {
            int(low[cells].argmax()),
            int(high[cells].argmin()),
            int(low[cells].argmin()),
            int(high[cells].argmax()),
        }
        parts = []
        for cell in cells[sorted(ends)][:SHOWN]:
            used = study.code("budget")[study.code("cell") == cell]
            first, last = (_budget_text(study.names("budget")[i]) for i in (used.min(), used.max()))
            parts.append(f"{str(study.places[cell][1])!r} at {first}{f' to {last}' if first != last else ''}")
        finding = Finding(
            severity="warning",
            kind="irregular_budgets",
            benchmark=benchmark,
            count=int(np.isin(study.code("cell"), cells).sum()),
            message=f"Scores{on(benchmark)} were taken at different ranges of {study.runs.budget!r} "
            f"({', '.join(parts)}), so a comparison of all rows mixes budgets: more budget may pass for a better "
            f"algorithm.",
            advice=f"{common_budgets_advice(study.runs)} If {study.runs.budget!r} is no budget but a setting of the "
            "run, name it as a metafeature or leave it out.",
        )
        found.append(finding)
    return found


def _as_numbers(levels: tuple[Any, ...]) -> np.ndarray:
    """Budgets on a scale of their own: dates in seconds, ordered categories by their place."""
    values = pd.Series(levels)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=float)
    if isinstance(levels[0], (pd.Timestamp, datetime.date)):
        return np.array([pd.Timestamp(level).timestamp() for level in levels])
    if isinstance(levels[0], datetime.timedelta):
        return np.array([level.total_seconds() for level in levels])
    return np.arange(len(levels), dtype=float)


def _budget_text(value: Any) -> str:
    return format_number(value) if isinstance(value, float) and not value.is_integer() else str(value)


def missing_budgets(subject: Subject) -> list[Finding]:
    """Budgets that runs lack, or that they hardly have in common."""
    study, runs = subject.study, subject.study.runs
    if runs.budget is None:
        return []
    if not study.regular:
        if mixed := _mixed_budgets(study):
            return mixed
        n_budgets, single = len(study.names("budget")), len(study.run_starts[0]) == len(study.points.n)
        finding = Finding(
            severity="note",
            kind="irregular_budgets",
            count=n_budgets,
            message=f"Every run has a score at one budget only, while {runs.budget!r} takes {n_budgets:,} values."
            if single
            else f"Runs have few budgets in common ({n_budgets:,} different values of {runs.budget!r}), "
            f"so algorithms are rarely seen at the same budget.",
            advice="If it is a setting of the run rather than the moment at which its score was taken, name it as "
            "a metafeature or leave it out."
            if single
            else common_budgets_advice(study.runs),
        )
        return [finding]
    absent = study.by_cell(subject.lacking(subject.seeds_run))
    there = np.bincount(study.code("cell"), minlength=study.n_cells)
    advice = "If runs stopped early, carry their last score forward; if they failed, score them as worst."

    def say(cell: int, algorithm: str, where: str, count: int) -> tuple[str, str]:
        total = there[cell] + count
        return f"{algorithm}{where} lacks {count:,} of the {total:,} scores that its runs would have at all budgets.", (
            advice
        )

    return per_cell(study.places, absent, "warning", "missing_budgets", say)


def judge_coverage(subject: Subject) -> CheckOutcome:
    runs, study = subject.runs, subject.study
    found = [*no_common_benchmark(study), *missing_cells(subject)]
    found += [*unpaired_seeds(subject), *missing_budgets(subject)]
    if not found and not (runs.instance or runs.seed or runs.budget):
        return left_out(
            "the table has no benchmark, seed or budget column, so there is nothing that an algorithm could lack."
        )
    named = [f"{role}s" for role in ("seed", "budget") if getattr(runs, role) is not None]
    return outcome(found, f"Every algorithm ran everywhere{', with the same ' * bool(named)}{' and '.join(named)}.")
