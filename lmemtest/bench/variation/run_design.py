"""What a table of runs identifies: its sources of variation, their variances, and what each is in words.

A score is the mean of its run over the budgets plus the run's curve about this mean. The means of the runs follow the
recommended mixed model with one variance per source,

    algorithm + benchmark + benchmark:algorithm + instance + instance:algorithm + instance:seed + run,

an instance being a benchmark at one level of the metafeatures, with family + family:algorithm in front where families
of benchmarks are the sample; the curves follow the same model of the budget's effects. Algorithms, metafeatures and
budgets are what the study is about and no sample, so their means are fixed and their variance is that of the true
means, the error of the estimated ones taken off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.per_run import linked_budgets
from lmemtest.bench.data.requirements import of_these_families
from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import group_numbers
from lmemtest.core.words import GROUPS, plural, spoken
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import noncentrality_interval
from lmemtest.lmm.intervals.variance_intervals import BalancedModel, Factors, Stratum, strata_of
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.means.f_tests import FTest, f_test
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from lmemtest.core.arrays import Index
    from lmemtest.lmm.model import LmmFit

    Limits = tuple[float, float]

# What a column of the scores stands for; a condition is a combination of levels of the metafeatures.
ALGORITHM, BENCHMARK, CONDITION, SEED, RUN = "algorithm", "benchmark", "condition", "seed", "run"
FAMILIES = tuple(f"family{i}" for i in range(1, 10))  # from coarse to fine; nobody has ten levels of them
EVERYTHING: Factors = frozenset({ALGORITHM, BENCHMARK, CONDITION, SEED, RUN, *FAMILIES})
FIXED: tuple[Factors, ...] = (frozenset({ALGORITHM}), frozenset({CONDITION}), frozenset({ALGORITHM, CONDITION}))
_NOTHING = 1e-20  # of the variance of all runs: rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunDesign:
    """The random terms that a table of runs identifies, from coarse to fine, the last one the run.

    ``columns`` are those of the user for each role, ``sizes`` how many there are of what. Where the table is balanced,
    ``strata`` are the mean squares of the means of the runs and ``curve_strata`` those of their curves over the
    budgets; ``curve_variance`` is the mean square of the curves.
    """

    columns: dict[str, list[str]]
    terms: tuple[Factors, ...]
    strata: dict[Factors, Stratum] | None
    curve_strata: dict[Factors, Stratum] | None
    curve_variance: float
    sizes: dict[str, Any]
    holds: dict[str, float]  # groups of the finer families, and benchmarks, in each of the coarsest: the harmonic mean
    notes: tuple[str, ...]
    crosses_families: bool = False  # whether a benchmark is in several families that are a sample

    @property
    def families(self) -> tuple[str, ...]:
        """The roles of families that are a sample, from coarse to fine; () where benchmarks are."""
        return tuple(role for role in FAMILIES if role in self.columns)

    def label(self, factors: Factors) -> str:
        """The columns of a set of factors, joined by colons."""
        return "run" if factors == EVERYTHING else _label(self.columns, factors, crossed=self.crosses_families)

    def finest(self, factors: Factors) -> str:
        """The column of the finest families among some factors."""
        return self.columns[[role for role in self.families if role in factors][-1]][-1]

    def error_of_a_mean(self, variances: Mapping[Factors, float]) -> dict[str, Any]:
        """What one run, one benchmark and one family add to the variance of the error of an algorithm's mean.

        The mean is over the conditions, which stay as they are. Where families are the sample, a family has finer
        families as often as those of the study; "shared" is what all algorithms have in common.
        """
        parts = ("family_variance", "benchmark_variance", "run_variance")
        shared = ("shared_family_variance", "shared_benchmark_variance", "shared_seed_variance")
        totals = dict.fromkeys((*parts, *shared), 0.0)
        for factors, variance in variances.items():
            name, count = f"{'' if ALGORITHM in factors else 'shared_'}benchmark_variance", 1.0
            if factors == EVERYTHING:
                name = "run_variance"
            elif SEED in factors:
                name = "shared_seed_variance"
            elif BENCHMARK not in factors:
                name = name.replace("benchmark", "family")
                count = self.holds[[role for role in self.families if role in factors][-1]]
            totals[name] += variance / count / (self.sizes["n_conditions"] if CONDITION in factors else 1)
        return totals

    def source(self, factors: Factors) -> tuple[str, str, str]:
        """Name, kind and meaning of a source of the means of the runs."""
        name, noun = self.label(factors), "instance" if CONDITION in self.columns else "benchmark"
        if factors == EVERYTHING:
            alone = not any({ALGORITHM, BENCHMARK} <= term for term in self.terms[:-1])
            more = ", and advantages that change between benchmarks" if alone else ""
            return name, "run", GROUPS["run"][1].format(noun=noun) + more
        if SEED in factors:
            return name, "seed", GROUPS["seed"][1].format(where=f" on one {noun}")
        condition, of_families = self.label(factors & {CONDITION}), factors & {*self.families}
        if BENCHMARK not in factors and not of_families:
            if CONDITION not in factors:
                return name, "algorithm", "means of the algorithms"
            advantages = f"advantages of algorithms that change with {condition}"
            return name, "condition", advantages if ALGORITHM in factors else f"means at the levels of {condition}"
        if BENCHMARK not in factors:
            kind, noun = "family_interaction" if ALGORITHM in factors else "family", plural(self.finest(factors))
            within, where = "", f" and between {noun}"
        else:
            kind, noun = "interaction" if ALGORITHM in factors else "benchmark", "benchmark"
            nested = self.families and not self.crosses_families
            within = f" of one {spoken(self.finest(frozenset(self.families)))}" if nested else ""
            where = " on a benchmark"
            if self.crosses_families and of_families:
                condition = self.label(factors & {CONDITION, *self.families}).replace(":", " and ")
        if not condition:
            return name, kind, GROUPS[kind][1].format(noun=noun, within=within)
        if ALGORITHM in factors:
            return name, kind, f"advantages of algorithms that change with {condition}{where}"
        return name, kind, f"levels that change with {condition}{where} (shared by all algorithms)"

    def curve(self, factors: Factors) -> str:
        """Meaning of a source of the curves of the runs over the budget."""
        if not factors:
            return "the curve over the budget that all runs share"
        if factors == EVERYTHING:
            return "a run's own curve"
        if SEED in factors:
            return "curves that all runs with one seed share"
        who = "advantages of algorithms" if ALGORITHM in factors else "levels"
        of_families = factors & {*FAMILIES} and BENCHMARK not in factors
        where = f" and between {plural(self.finest(factors))}" if of_families else ""
        if CONDITION in factors:
            on = " on a benchmark" if BENCHMARK in factors else where
            where = f" and with {self.label(factors & {CONDITION})}{on}"
        elif BENCHMARK in factors:
            where = " and between benchmarks"
        return f"{who} that change over the budget{where}"


def run_design(runs: Any, *, task: str, families: bool = False) -> tuple[RunDesign, pd.DataFrame]:
    """What a table of runs identifies, and its scores; `task` says in errors what for ("the variation is taken apart").

    The scores have one row per run: family1, ..., algorithm, benchmark, condition, seed (labels; those that exist) and
    score (the mean over the budgets). With `families` those of which there are enough to be a sample are random, with
    the benchmarks within them.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, names no benchmark, or has one only.
    DataError
        If budgets cannot be averaged.
    """
    study = require_benchmarks(runs, task).study
    levels = _sampled_families(runs) if families else {}
    used = [name for names in levels.values() for name in names]
    crossed = [name for name in study.crossed if families and name not in used]
    conditions, notes = _conditions(runs, crossed)
    of_runs = {ALGORITHM: [runs.algorithm], BENCHMARK: [runs.benchmark], CONDITION: conditions, SEED: [runs.seed]}
    columns = {role: names for role, names in (levels | of_runs).items() if names and names[0]}
    keys = [name for role in (*FAMILIES, BENCHMARK, CONDITION, ALGORITHM, SEED) for name in columns.get(role, [])]
    n_budgets = linked_budgets(runs, keys)
    if n_budgets > 1:
        cells = study.cells([*keys, runs.budget])  # sorted by the keys, the budget last
        scores = cells.mean.reshape(-1, n_budgets)
        table = cells.frame.iloc[::n_budgets].reset_index(drop=True)
    else:
        table = study.rows(keys)
        scores = table[[runs.score]].to_numpy(dtype=float)
    if np.ptp(scores) == 0:
        raise DataError(f"all scores of {runs.score!r} are equal, so there is no variation to take apart.")
    frame = pd.DataFrame({role: labels(table, names) for role, names in columns.items()})
    frame["score"] = scores.mean(axis=1)
    base = [frozenset[str](), frozenset({ALGORITHM})]
    if conditions:
        base += [frozenset({CONDITION}), frozenset({ALGORITHM, CONDITION})]
    several = bool(levels) and bool(study.crossed)  # families of a benchmark
    places = [frozenset(list(levels)[: i + 1]) for i in range(len(levels))]
    places += [frozenset({BENCHMARK})] * (several or not levels) + [frozenset({BENCHMARK, *levels})] * bool(levels)
    sets = [*base, *(factors | place for place in places for factors in base)]
    sets += [places[-1] | {SEED, *({CONDITION} & columns.keys())}] * (SEED in columns)
    codes = {factors: group_numbers(frame, sorted(factors)) for factors in sets}
    terms, more = _identified(codes, len(frame), columns, crossed=several)
    lattice = {factors: code for factors, code in codes.items() if factors in terms or factors in base}
    lattice[EVERYTHING] = np.arange(len(frame))
    curves = scores - scores.mean(axis=1, keepdims=True)
    # where benchmarks and families cross, no mean square alone is the error of the algorithms' means
    strata = None if several else strata_of(lattice, frame[["score"]].to_numpy())
    if strata is not None and strata[EVERYTHING].mean_square <= _NOTHING * frame["score"].var():
        raise DataError(
            f"nothing is left to chance: runs of one algorithm on one benchmark have the same score, or all algorithms "
            f"have the same score with each seed, so there is no error by which {task}. Keep one run of each, and "
            "look for copies: lmemtest.check(runs)."
        )
    finer = [*levels, BENCHMARK]
    design = RunDesign(
        columns=columns,
        terms=(*terms, EVERYTHING),
        strata=strata,
        curve_strata=strata_of(lattice, curves) if strata is not None and n_budgets > 1 else None,
        curve_variance=float((curves**2).mean()),
        sizes={
            "n_algorithms": frame[ALGORITHM].nunique(),
            "n_benchmarks": frame[BENCHMARK].nunique(),
            "n_conditions": frame[CONDITION].nunique() if conditions else 1,
            "n_budgets": n_budgets,
            "n_seeds": _each_holds(frame, [role for role in frame if role not in (SEED, "score")]),
            "n_families": frame[FAMILIES[0]].nunique() if levels else None,
            "n_places": len(frame[finer].drop_duplicates()) if levels else None,
        },
        holds={
            role: _each_holds(frame[finer[: i + 1]].drop_duplicates(), [FAMILIES[0]])
            for i, role in enumerate(finer)
            if levels
        },
        notes=(*(study.sampled.notes[:1] if families else of_these_families(runs)), *notes, *more),
        crosses_families=several,
    )
    return design, frame


def require_benchmarks(runs: Any, task: str) -> Runs:
    """The runs, if they are of two algorithms and of two benchmarks or more."""
    require_runs(runs)
    runs.study.require_algorithms()
    benchmark = runs.study.require("benchmark", f"nothing says what differs between benchmarks, by which {task}")
    levels = runs.levels(benchmark)
    if len(levels) < 2:
        raise ArgumentError(
            f"runs has one benchmark only, {levels[0]!r}, and {task} by what differs between benchmarks. Give at "
            "least two; many more are needed for a precise answer."
        )
    return runs


def _sampled_families(runs: Runs) -> dict[str, list[str]]:
    """Columns of each level of families from coarse to fine, from the one that is the sample on."""
    levels: dict[str, list[str]] = {}
    for columns in runs.study.sampled.families:
        before = [name for names in levels.values() for name in names]
        levels[FAMILIES[len(levels)]] = [name for name in columns if name not in before]
    return levels


def _conditions(runs: Runs, crossed: list[str]) -> tuple[list[str], list[str]]:
    """Families and metafeatures whose levels change within benchmarks, and a note on the others."""
    count = runs.study.count
    within = [name for name in runs.metafeatures if count(runs.benchmark, name) > count(runs.benchmark)]
    constant = [name for name in runs.metafeatures if name not in within and count(name) > 1]
    never = f"{' and '.join(constant)} never changes within a benchmark, so its variation is part of the benchmarks'."
    return [*crossed, *within], [never] * bool(constant)


def _label(columns: dict[str, list[str]], factors: Factors, *, crossed: bool) -> str:
    """Names of columns; a benchmark tells its family unless it is in several."""
    told = BENCHMARK in factors and not crossed
    order = (*(() if told else FAMILIES), BENCHMARK, CONDITION, ALGORITHM, SEED)
    return ":".join(name for role in order if role in factors for name in columns[role])


def _identified(
    codes: dict[Factors, Index], n_rows: int, columns: dict[str, list[str]], *, crossed: bool
) -> tuple[list[Factors], list[str]]:
    """Random terms whose groups are no single rows and no copies of another term's groups."""
    counts = {factors: int(code.max()) + 1 for factors, code in codes.items()}
    kept: list[Factors] = []
    notes = []
    random = [factors for factors in codes if factors & {BENCHMARK, *FAMILIES}]
    for factors in sorted(random, key=lambda f: (SEED in f, BENCHMARK in f, len(f), ALGORITHM in f)):
        if counts[factors] >= n_rows:
            what = "runs with the same seed share nothing" if SEED in factors else "there is one run in each"
            notes.append(
                f"{_label(columns, factors, crossed=crossed)}: {what}, so it cannot be distinguished from the "
                "runs and is part of their variation."
            )
        elif not any(inner < factors and counts[inner] == counts[factors] for inner in kept):
            kept.append(factors)
    return kept, notes


def _each_holds(frame: pd.DataFrame, columns: list[str]) -> float:
    """Rows by some columns: the harmonic mean of their number."""
    counts = frame.groupby(columns, observed=True).size().to_numpy()
    if counts.min() == counts.max():  # exact, which a sum of reciprocals is not
        return float(counts[0])
    return float(len(counts) / np.sum(1.0 / counts))


# ---------------------------------------------------------------------- variances


# Of the means of fixed levels: the variance of the true ones (may be negative), the mean variance of their errors, and
# the F-test that they are equal.
Fixed = dict[Factors, tuple[float, float, FTest]]


def ratio_limits(test: FTest, level: float) -> Limits:
    """Interval of the variance of true means over that of their errors."""
    low, high = noncentrality_interval(test.f_ratio, test.df_num, test.df_den, level, positive=False)
    return low / test.df_num, high / test.df_num


def run_variances(
    design: RunDesign, scores: pd.DataFrame, *, level: float | None = None
) -> tuple[dict[Factors, float], dict[Factors, Limits], Fixed]:
    """Variances of the random terms, the run last; intervals of their SDs, unless `level` is None; fixed means."""
    if design.strata is not None:
        return from_mean_squares(design, design.strata, level)
    groups = [":".join(sorted(factors)) for factors in design.terms[:-1]]
    fixed = f"{ALGORITHM} * {CONDITION}" if CONDITION in design.columns else ALGORITHM
    fit = fit_lmm(" + ".join([f"score ~ {fixed}", *(f"(1 | {group})" for group in groups)]), scores)
    values = [*(float(S[0, 0]) for S in fit.covariances), fit.scale]
    limits = {}
    if level is not None:
        table = fit.profile([*groups, "residual sd"], alpha=1.0 - level, reml=True).table
        ends = zip(table["ci_low"].tolist(), table["ci_high"].tolist(), strict=True)
        limits = dict(zip(design.terms, ends, strict=True))
    return dict(zip(design.terms, values, strict=True)), limits, dict(_fixed_of_fit(fit, design))


def from_mean_squares(
    design: RunDesign, strata: dict[Factors, Stratum], level: float | None, means: tuple[Factors, ...] = FIXED
) -> tuple[dict[Factors, float], dict[Factors, Limits], Fixed]:
    """The same of a balanced table, from its mean squares."""
    random = [stratum for factors, stratum in strata.items() if factors & {BENCHMARK, *design.families}]
    model = BalancedModel.of(random, design.terms, strata)
    values = model.estimate()
    expected = model.expected(values)
    fixed: Fixed = {}
    for factors in means:
        if factors in strata:
            error = strata.get(factors | {(*design.families, BENCHMARK)[0]}, strata[EVERYTHING])
            here, noise = strata[factors], expected[error.factors]
            f_ratio = here.mean_square / error.mean_square if error.mean_square > 0 else np.inf
            test = FTest.of(f_ratio, float(here.df), float(error.df), "exact")
            fixed[factors] = (here.mean_square - noise) / here.rows, noise / here.rows, test
    limits = {} if level is None else {t: model.interval(i, level) for i, t in enumerate(design.terms)}
    return dict(zip(design.terms, values.tolist(), strict=True)), limits, fixed


def _fixed_of_fit(fit: LmmFit, design: RunDesign) -> Iterator[tuple[Factors, tuple[float, float, FTest]]]:
    roles = [role for role in (ALGORITHM, CONDITION) if role in design.columns]
    means = emmeans(fit, roles)
    if np.isnan(means.estimate).any():
        lost = means.frame[np.isnan(means.estimate)].iloc[0]
        algorithm, condition = (design.label(frozenset({role})) for role in roles)
        raise DataError(
            f"{algorithm} {lost[ALGORITHM]!r} was never run at {condition} {lost[CONDITION]!r}, so means over "
            f"{condition} do not compare. Leave one of them out: runs.filter(...)."
        )
    V = means.L @ means.V @ means.L.T
    sizes = {role: means.frame[role].nunique() for role in roles}
    for factors in FIXED:
        if not factors <= set(roles):
            continue
        P = np.ones((1, 1))
        for role, k in sizes.items():
            P = np.kron(P, np.eye(k) - 1.0 / k if role in factors else np.full((k, k), 1.0 / k))
        df = float(np.prod([sizes[role] - 1 for role in factors]))
        rows = float(np.prod([sizes[role] for role in roles if role not in factors])) * df
        vectors = np.linalg.eigh(P)[1][:, -round(df) :]
        test = f_test(fit, vectors.T @ means.fixed)
        noise = float(np.trace(P @ V)) / rows
        signal = float(means.estimate @ P @ means.estimate) / rows - noise
        yield factors, (signal, noise, test)
