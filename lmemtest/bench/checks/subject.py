"""What the checks of a table look at, computed once; the size of the table; how a check reports what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.bench.data.scales import effect_scales, residual_scales
from lmemtest.bench.data.study import dtype_of
from lmemtest.core.codes import occurring
from lmemtest.core.frames import collected
from lmemtest.core.verdicts import SEVERITIES, Finding
from lmemtest.core.words import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.study import Study
    from lmemtest.lmm.model import LmmFit


@dataclass(kw_only=True, eq=False)
class Subject:
    """What the checks look at, computed once."""

    runs: Runs
    alpha: float
    form: str
    rng: int | np.random.Generator | None
    modelled: tuple[str, Callable[[Any], Any]] | None  # a function of the score: scales are those of its values
    known: tuple[str, ...] = ()  # columns without a role that a model uses
    dispersion: str | None = None  # a column whose levels have residual variances of their own in it

    @cached_property
    def study(self) -> Study:
        return self.runs.study.detailed

    @cached_property
    def judged(self) -> Study:
        """The study of the values whose scales count."""
        return self.study if self.modelled is None else self.study.with_values(self.modelled[1])

    @cached_property
    def cells(self) -> pd.DataFrame:
        return cell_table(self)

    @cached_property
    def scales(self) -> pd.DataFrame:
        return residual_scales(self.judged)

    @cached_property
    def spread(self) -> np.ndarray:
        """By benchmark the standard deviation between seeds; where nothing was repeated that between algorithms."""
        repeated = (self.scales["df"] > 0).sum() > 1
        return (self.scales["residual_sd"] if repeated else effect_scales(self.judged)["sd"]).to_numpy()

    @cached_property
    def tied(self) -> tuple[np.ndarray, np.ndarray]:
        """By benchmark: pairs of algorithms with equal scores on the same instance, seed and budget, and all pairs.

        Equal scores at a limit that caps all of them are none.
        """
        study, kind = self.study, self.study.kind
        limit = kind.high if kind.kind == "capped" else float("inf")
        block = study.code("instance") * np.int64(len(study.names("seed"))) + study.code("seed")
        block = block * len(study.names("budget")) + study.code("budget")
        order = np.argsort(block, kind="stable")
        block, mean = block[order], study.points.mean[order]
        benchmark = study.code("benchmark")[order]
        size = len(study.names("benchmark"))
        equal, pairs = np.zeros(size, dtype=int), np.zeros(size, dtype=int)
        for lag in range(1, len(study.names("algorithm"))):  # a block has at most one entry per algorithm
            together = (block[lag:] == block[:-lag]) & np.isfinite(mean[lag:]) & np.isfinite(mean[:-lag])
            if not together.any():
                break
            pairs += np.bincount(benchmark[lag:][together], minlength=size)
            tied = together & (mean[lag:] == mean[:-lag]) & (mean[lag:] < limit)
            equal += np.bincount(benchmark[lag:][tied], minlength=size)
        return equal, pairs

    @cached_property
    def seeds_run(self) -> NDArray[Any]:
        """(instances, algorithms): the number of seeds that an algorithm ran."""
        n_instances, n_algorithms = shape = self.study.shape
        pair = self.study.code("instance") * n_algorithms + self.study.code("algorithm")
        return self.study.count_distinct(pair, "seed", n_instances * n_algorithms).reshape(shape)

    @cached_property
    def seed_groups(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Algorithms that are linked by common seeds, on every instance; both (instances, algorithms).

        The first algorithm of the group that each belongs to, and the number of seeds of that group, 0 without runs.
        """
        n_instances, n_algorithms = shape = self.study.shape
        n_seeds = len(self.study.names("seed"))
        runs = occurring(self.study.code("run"), n_instances * n_seeds * n_algorithms)
        slot, slots = pd.factorize(runs // n_algorithms)  # instance and seed
        instance, algorithm = slots // n_seeds, runs % n_algorithms
        member = instance[slot] * n_algorithms + algorithm
        label = np.tile(np.arange(n_algorithms), n_instances)
        while True:  # the lowest label wanders along common seeds, at most as often as there are algorithms
            lowest = np.full(len(slots), n_algorithms)
            np.minimum.at(lowest, slot, label[member])
            spread = label.copy()
            np.minimum.at(spread, member, lowest[slot])
            if np.array_equal(spread, label):
                break
            label = spread
        seeds = np.bincount(instance * n_algorithms + lowest, minlength=label.size)
        size = seeds[np.repeat(np.arange(n_instances), n_algorithms) * n_algorithms + label]
        size[self.seeds_run.ravel() == 0] = 0
        return label.reshape(shape), size.reshape(shape)

    @cached_property
    def missing(self) -> NDArray[Any]:
        """(instances, algorithms): combinations of seed and budget of the instance that are not there."""
        ran, size = self.seeds_run, self.seed_groups[1]
        expected = np.where(ran > 0, size, size.max(axis=1, keepdims=True))
        return self.lacking(expected) if self.study.regular else expected - ran

    def lacking(self, runs: NDArray[Any]) -> NDArray[Any]:
        """(instances, algorithms): points that so many runs would have more, with a score at each budget there."""
        n_instances, n_algorithms = shape = self.study.shape
        budgets = self.study.count_distinct(self.study.code("instance"), "budget", n_instances)
        pair = self.study.code("instance") * n_algorithms + self.study.code("algorithm")
        return runs * budgets[:, None] - np.bincount(pair, minlength=runs.size).reshape(shape)

    @cached_property
    def fit(self) -> LmmFit:
        """The recommended model."""
        from lmemtest.bench.modelling.recommend import recommend
        from lmemtest.lmm.model import fit_lmm

        model = recommend(self.runs)
        return fit_lmm(model.formula, model.runs)


def outcome(findings: Sequence[Finding], text: str = "", *, skipped: bool = False, result: Any = None) -> CheckOutcome:
    """What a check found: findings, the worst first, or a sentence on what is fine or why it was left out."""
    ordered = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
    return CheckOutcome(findings=ordered, text=text, skipped=skipped, result=result)


def left_out(reason: str) -> CheckOutcome:
    return outcome((), f"Left out: {reason}", skipped=True)


# ---------------------------------------------------------------------- the size of the table


def overview(subject: Subject) -> str:
    """The size of the table in a sentence."""
    study, runs = subject.study, subject.study.runs
    sampled = runs.study.sampled
    counts = [(len(study.names("algorithm")), "algorithm")]
    if runs.benchmark is not None:
        counts.append((len(study.names("benchmark")), "benchmark"))
    family = sampled.column if sampled.noun == "family" else None
    if family is None and runs.study.families:
        family = runs.study.families[-1][-1]
    if family is not None:
        counts.append((runs.study.count(family), "family"))
    if len(runs.instance) > 1:
        counts.append((len(study.benchmark_of), "instance"))
    counts += [(len(study.names(role)), role) for role in ("seed", "budget") if getattr(runs, role) is not None]
    size = ", ".join(counted(count, word) for count, word in counts)
    return f"{int(study.points.n.sum()):,} rows: {size}; {_balance(subject)}. {study.note}".rstrip()


def _balance(subject: Subject) -> str:
    study, points = subject.study, subject.study.points
    complete = points.n.min() == points.n.max() and not subject.missing.any()
    if not complete or len(np.unique(subject.seeds_run)) != 1:
        return "not balanced"
    bad = int(points.n_bad.sum())
    if bad:
        return f"balanced, but {bad:,} score{'s are' if bad > 1 else ' is'} missing or infinite"
    return "complete and balanced" if study.regular else "not balanced: runs have few budgets in common"


def cell_table(subject: Subject) -> pd.DataFrame:
    """One row per benchmark and algorithm, as `RunsCheck.cells` says."""
    study = subject.study
    cell, size = study.code("cell"), study.n_cells
    total, mean, ss = study.pooled(cell, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(np.where(total > 1, ss / (total - 1), np.nan))
    n = np.bincount(cell, weights=study.points.n, minlength=size).astype(int)
    places = study.places
    return pd.DataFrame(
        {
            "benchmark": pd.Series([benchmark for benchmark, _ in places], dtype=dtype_of(study.names("benchmark"))),
            "algorithm": [algorithm for _, algorithm in places],
            "n": n,
            "seeds": study.count_distinct(cell, "seed", size) if study.runs.seed else 0,
            "budgets": study.count_distinct(cell, "budget", size) if study.runs.budget else 0,
            "missing": study.by_cell(subject.missing),
            "duplicates": n - np.bincount(cell, minlength=size) if study.runs.seed else 0,
            "non_finite": n - total.astype(int),
            "distinct": _distinct_scores(study),
            "mean": mean,
            "sd": sd,
        }
    )


def _distinct_scores(study: Study) -> np.ndarray:
    points, cell, size = study.points, study.code("cell"), study.n_cells
    if np.any(points.low < points.high):  # several scores in a point: only the rows know how many differ
        return _distinct_scores_of_rows(study)
    good = points.valid > 0
    cell, mean = cell[good], points.mean[good]
    order = np.lexsort((mean, cell))
    cell, mean = cell[order], mean[order]
    first = np.ones(len(cell), dtype=bool)
    first[1:] = (cell[1:] != cell[:-1]) | (mean[1:] != mean[:-1])
    return np.bincount(cell[first], minlength=size)


def _distinct_scores_of_rows(study: Study) -> np.ndarray:
    """One more query: (benchmark, algorithm, score) that occur; a score counts where it is finite."""
    runs = study.runs
    roles = ("benchmark", "algorithm") if runs.benchmark else ("algorithm",)
    columns = [nw.col(getattr(runs, role)).alias(f"key_{role}") for role in roles]
    y = nw.col(runs.score).cast(nw.Float64)
    table = runs.frame.select(*columns, y.alias("y"))
    table = table.filter(nw.col("y").is_finite().fill_null(False))
    table = table.group_by(*(f"key_{role}" for role in roles)).agg(nw.col("y").n_unique().alias("distinct"))
    frame = collected(table).to_pandas()
    cell = np.zeros(len(frame))
    for role in roles:
        place = {level: i for i, level in enumerate(study.names(role))}
        cell = cell * len(place) + [place[level] for level in frame[f"key_{role}"]]
    out = np.zeros(study.n_cells, dtype=int)
    out[cell.astype(np.intp)] = frame["distinct"]
    return out
