"""What each algorithm did on each benchmark: observed there, expected by the model, and tested without a model.

And whether the comparison depends on a metafeature at whose levels another one did best: the test behind every sentence
that says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.study import labels
from lmemtest.bench.modelling.recommend import model_of
from lmemtest.bench.modelling.terms import check_identified, column_term
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.words import format_level, p_text
from lmemtest.errors import LmemtestError, UnknownColumnError
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.means.adjust import adjust_raw
from lmemtest.lmm.means.f_tests import term_test
from lmemtest.lmm.model.fitting import fitted_quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.cells import Cells
    from lmemtest.lmm.model import LmmFit


ROUNDING = 64 * np.finfo(float).eps  # relative to the scores: what arithmetic makes of equal ones


def observed_advantages(fit: LmmFit, runs: Runs, *, alpha: float = 0.05) -> Answer | None:
    """Each algorithm's deviation from the mean of each benchmark, observed and shrunken; None without benchmarks.

    A run counts once: the scores of a seed are averaged over its budgets first. Observed effects and their intervals
    use one benchmark at a time, so a noisy benchmark does not widen the intervals of a quiet one. Where all algorithms
    share their seeds the deviations are taken within seeds; elsewhere the runs are independent samples with variances
    of their own (Welch 1947, doi:10.1093/biomet/34.1-2.28). The shrunken effect is the fixed effect plus the
    conditional modes (BLUPs; Robinson 1991, doi:10.1214/ss/1177011926) of all terms whose groups are benchmarks, or
    benchmarks and algorithms.

    Returns
    -------
    Answer or None
        The ``table`` has one row per benchmark (with metafeatures: per instance) and algorithm: ``benchmark`` (label of
        the instance), ``algorithm``, ``n_runs``, ``mean`` (observed), ``effect`` (observed deviation from the mean of
        the algorithms there), ``se``, ``df``, ``ci_low``, ``ci_high`` (at 1 - `alpha`, not adjusted for their number),
        ``shrunken`` (the deviation that the model expects if the benchmark is run again). Values: ``replicates``
        ("seed", "row" or None), what repeats within a benchmark and gives the intervals; ``paired``, how many of the
        ``n_instances`` have the same seeds for all algorithms, so that differences were taken within seeds;
        ``incomplete``, on how many some algorithm did not run; ``intervals``, how many there are (those of two
        algorithms are mirror images and count once), and ``clear``, how many exclude zero; ``wins``, by algorithm the
        instances on which its observed mean is the best (ties count for each), ``wins_by``, the same for each level of
        each metafeature; ``benchmark_of``, label of an instance to its benchmark; ``alpha``, ``level`` (1 - alpha),
        ``score``.

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
    cells = runs.study.cells(keys, parsed.response_transform)
    replicates = "seed" if runs.seed else None if runs.budget else "row"
    instance, names = pd.factorize(labels(cells.frame, runs.instance))
    algorithm = pd.Index(runs.algorithms).get_indexer(pd.Index(cells.frame[runs.algorithm].astype(object)))
    n, mean, se, df, paired = _moments(cells, instance, algorithm, (len(names), len(runs.algorithms)), runs.seed)
    i, a = np.nonzero(n)
    _, cell = np.unique(instance * n.shape[1] + algorithm, return_index=True)
    _, first = np.unique(i, return_index=True)
    rounding = ROUNDING * np.nanmax(np.abs(mean), axis=1, keepdims=True)
    effect = _without_rounding(mean - _means(mean), rounding)
    se = np.where(np.isfinite(se) & (replicates is not None), _without_rounding(se, rounding), np.nan)
    half = t_quantile(alpha / 2.0, df) * se
    numbers = {"mean": mean, "effect": effect, "se": se, "df": df, "ci_low": effect - half, "ci_high": effect + half}
    table = pd.DataFrame({"benchmark": names[i], "algorithm": pd.Index(list(runs.algorithms)).take(a)})
    table = table.assign(n_runs=n[i, a].astype(int), **{name: values[i, a] for name, values in numbers.items()})
    expected = np.full(n.shape, np.nan)
    expected[i, a] = expected_means(fit, cells.frame.iloc[cell], first[i], runs)
    scale = ROUNDING * np.nanmax(np.abs(np.where(n > 0, np.nan_to_num(expected), 0.0)), axis=1, keepdims=True)
    table["shrunken"] = _without_rounding(expected - _means(expected), scale)[i, a]
    loss = mean if runs.direction == "minimize" else -mean
    best = loss <= np.nanmin(loss, axis=1, keepdims=True) + rounding
    firsts = cells.frame.iloc[cell[first]]

    def wins(of: NDArray[np.bool_]) -> dict[str, int]:
        return dict(zip(map(format_level, runs.algorithms), of.sum(axis=0).tolist(), strict=True))

    by_level = {}
    for column in runs.metafeatures:
        codes, levels = pd.factorize(firsts[column], sort=True)
        by_level[column] = {format_level(level): wins(best[codes == code]) for code, level in enumerate(levels)}
    benchmarks = firsts[runs.benchmark] if runs.benchmark else [None] * len(names)
    groups = table.groupby("benchmark", sort=False)["algorithm"]
    mirrored = (groups.transform("size") == 2) & (groups.cumcount() == 1)
    counted, incomplete = table[table["ci_low"].notna() & ~mirrored], int((groups.size() < len(runs.algorithms)).sum())
    values = {
        "replicates": replicates if table["se"].notna().any() else None,
        "paired": paired,
        "n_instances": len(names),
        "incomplete": incomplete,
        "intervals": len(counted),
        "clear": int(((counted["ci_low"] > 0) | (counted["ci_high"] < 0)).sum()),
        "wins": wins(best),
        "wins_by": by_level,
        "benchmark_of": dict(zip(names, benchmarks, strict=True)),
        "alpha": alpha,
        "level": 1.0 - alpha,
        "score": parsed.score,
    }
    return Answer(
        question="observed_advantages",
        title="Effects by benchmark",
        tables={"table": table},
        values=values,
        notes=_notes(table, incomplete, len(names)),
    )


def _means(values: Array) -> Array:
    """Mean over the algorithms that ran on an instance, along the second axis; exact where all are equal."""
    start = np.nanmax(values, axis=1, keepdims=True, initial=-np.inf, where=np.isfinite(values))
    n = np.isfinite(values).sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return start + np.nansum(values - start, axis=1, keepdims=True) / n


def _without_rounding(values: Array, rounding: Array) -> Array:
    """Values with zeros for what arithmetic makes of equal scores."""
    return np.where(np.abs(values) <= rounding, 0.0, values)


def _moments(
    cells: Cells, instance: Index, algorithm: Index, shape: tuple[int, int], seed: str | None
) -> tuple[Array, Array, Array, Array, int]:
    """Runs, means, errors of the deviations and their degrees of freedom, (instances, algorithms) each.

    Deviations are taken within seeds where all algorithms of an instance share them, of which the number is returned,
    and elsewhere from independent means with variances of their own (Welch): the deviation of one of k means has
    weight 1 - 1/k on itself and -1/k on each of the others.
    """
    within, paired = np.full(shape, np.nan), np.zeros(shape[0], dtype=bool)
    if seed is None:
        n, ss, mean = np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)
        n[instance, algorithm], ss[instance, algorithm] = cells.n, cells.ss
        mean[instance, algorithm] = cells.mean
    else:
        code, seeds = pd.factorize(cells.frame[seed])
        runs_of_seeds, number = np.unique(instance * len(seeds) + code, return_inverse=True)
        place = number - np.searchsorted(runs_of_seeds, instance * len(seeds))  # of a seed among those of its instance
        runs = np.full((*shape, place.max() + 1), np.nan)
        runs[instance, algorithm, place] = cells.mean
        ran = np.isfinite(runs)
        n = ran.sum(axis=2).astype(float)
        start = cells.mean[np.unique(instance, return_index=True)[1]][:, None]  # keeps the digits of equal scores
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = start + np.nansum(runs - start[..., None], axis=2) / n
            ss = np.nansum((runs - mean[..., None]) ** 2, axis=2)
            there, used = n > 0, np.asarray(ran.any(axis=1))
            shared = np.all(ran | ~there[..., None] | ~used[:, None], axis=(1, 2))
            paired = np.asarray(shared & (used.sum(axis=1) > 1))
            about = runs - np.nansum(runs - start[..., None], axis=1, keepdims=True) / there.sum(axis=1)[:, None, None]
            about -= np.nansum(about, axis=2, keepdims=True) / n[..., None]
            within = np.sqrt(np.nansum(about**2, axis=2) / (n - 1) / n)
    k = (n > 0).sum(axis=1, keepdims=True)
    of_itself, other = 1.0 - 1.0 / k, 1.0 / k

    def combined(parts: Array, power: int) -> Array:
        total = np.where(n > 0, parts, 0.0).sum(axis=1, keepdims=True)
        return (of_itself**power - other**power) * parts + other**power * total

    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(n > 1, ss / (n - 1), np.nan) / n
        total = combined(error, 2)
        df = np.where(total > 0, total**2 / combined(error**2 / (n - 1), 4), np.nan)
        se = np.sqrt(total)
    use = paired[:, None]
    return n, mean, np.where(use, within, se), np.where(use, n - 1, df), int(paired.sum())


def expected_means(fit: LmmFit, frame: pd.DataFrame, first: Index, runs: Runs) -> Array:
    """Fixed effects plus the modes of the terms of the instances, for each pair of an instance and an algorithm.

    `frame` has a row for each pair, with the columns of both; `first` is the first row of its instance. NaN on
    instances where the differences of the fixed part depend on other factors.
    """
    design = fit.design
    roles = {runs.algorithm, *runs.instance}
    held = {name: mean for name, mean in design.numeric.items() if name not in roles}
    frame = frame[[runs.algorithm, *runs.instance]].reset_index(drop=True).assign(**held)
    others = {name: levels for name, levels in design.factors.items() if name not in roles}
    values = _fixed_part(fit, frame, first, others)
    for index, (term, bar) in enumerate(zip(design.random, design.parsed.bars, strict=True)):
        if not set(bar.groups) <= roles:
            continue
        try:
            basis, codes = design.random_rows(index, frame)
        except UnknownColumnError:  # a slope on something that is not known of an instance
            continue
        modes = fit.conditional_modes(term.group)[list(term.names)].to_numpy()
        values = values + np.where(codes >= 0, np.einsum("nk,nk->n", basis, modes[codes]), 0.0)
    return values


def _fixed_part(fit: LmmFit, frame: pd.DataFrame, first: Index, others: dict[str, tuple[Any, ...]]) -> Array:
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


def leaders(wins: dict[str, int]) -> list[str]:
    """Algorithms with the most wins."""
    return [name for name, count in wins.items() if count == max(wins.values())]


def turns(by_level: dict[str, dict[str, int]]) -> bool:
    """Whether no algorithm has the most wins at every level of a metafeature."""
    return len(by_level) >= 2 and not set.intersection(*(set(leaders(wins)) for wins in by_level.values()))


def _notes(table: pd.DataFrame, incomplete: int, n_instances: int) -> tuple[str, ...]:
    notes = []
    if not table["se"].notna().any():
        notes.append("Nothing is repeated within a benchmark, so the observed effects have no intervals.")
    if incomplete:
        notes.append(
            f"On {incomplete} of {n_instances} benchmarks some algorithm is missing; deviations there are from the "
            "mean of the algorithms that ran."
        )
    if table["shrunken"].isna().all():
        notes.append(
            "Shrunken effects are not shown: in this model the differences between algorithms depend on other factors."
        )
    return tuple(notes)


# ---------------------------------------------------------------------- one number per benchmark


def cautious_check(effects: Answer, leader: str) -> Answer:
    """Compare one algorithm with each other one over the means of the benchmarks, from their observed means.

    Differences are taken within instances, averaged to one number per benchmark, and tested against zero with one
    degree of freedom less than benchmarks. This is valid whatever the variation within benchmarks, if differences are
    about normal between them; with few benchmarks it finds large differences only.

    Returns
    -------
    Answer
        The ``table`` has one row per other algorithm: ``algorithm``, ``n_benchmarks`` (on which both ran),
        ``difference`` (leader - algorithm), ``se``, ``df``, ``t_ratio``, ``p_value`` (Holm-adjusted; NaN with fewer
        than two benchmarks); ``leader``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.Runs({"tool": ["A", "B"] * 3, "task": list("uuvvww"), "loss": [1., 2, 3, 5, 4, 7]},
    ...                score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> from lmemtest.bench.benchmark.observed_advantages import observed_advantages
    >>> check = cautious_check(observed_advantages(lt.fit_lmm("loss ~ tool + (1|task)", runs), runs), "A")
    >>> check.to_frame()[["algorithm", "difference", "df", "t_ratio"]].round(3).to_dict("list")
    {'algorithm': ['B'], 'difference': [-2.0], 'df': [2], 't_ratio': [-3.464]}
    """
    means = effects.to_frame()
    wide = means.pivot(index="benchmark", columns="algorithm", values="mean").rename(columns=format_level)
    benchmark = wide.index.map(effects.benchmark_of)
    others = [name for name in effects.wins if name != leader]
    gaps = wide[others].rsub(wide[leader], axis=0).groupby(benchmark).mean()
    n, mean, sd = gaps.count().to_numpy(), gaps.mean().to_numpy(), gaps.std(ddof=1).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        se = sd / np.sqrt(n)
        alike = np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean))  # all differences are the same
        t = np.where(n > 1, np.where(se > 0.0, mean / se, alike), np.nan)
    columns = {"algorithm": others, "n_benchmarks": n, "difference": mean, "se": se, "df": np.maximum(n - 1, 0)}
    table = pd.DataFrame({**columns, "t_ratio": t})
    raw = two_sided_p(table["t_ratio"].to_numpy(), np.maximum(table["df"].to_numpy(dtype=float), 1.0))
    table["p_value"] = adjust_raw(raw, "holm", len(table))
    heads = ["compared with", "benchmarks", f"{leader} − other", "SE", "df", "t", "p"]
    fact = (
        f"Paired t-tests of {leader} against each other algorithm, over one mean per benchmark and "
        "algorithm; p-values adjusted by Holm's method."
    )
    return Answer(
        question="cautious_check",
        title="A cautious check over benchmark means",
        tables={"table": table},
        values={"leader": leader},
        facts=(fact,),
        printed=table.set_axis(heads, axis=1),
        formats={"t": ".2f", "p": "p"},
    )


# -------------------------------------------------- does the comparison depend on a metafeature?


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """F-test that the differences between algorithms are the same at all levels of a metafeature.

    Attributes
    ----------
    metafeature, formula : str
        What is tested, and the model of the test.
    f_ratio, df_num, df_den : float
        NaN where there is no test.
    p_value : float
        Adjusted by Holm's method for the number of metafeatures; NaN where there is no test.
    tests : int
        How many metafeatures were tested.
    reason : str
        Why there is no test; empty where there is one.
    """

    metafeature: str
    formula: str
    f_ratio: float = math.nan
    df_num: float = math.nan
    df_den: float = math.nan
    p_value: float = math.nan
    tests: int = 0
    reason: str = ""

    def significant(self, alpha: float) -> bool:
        """Whether the test rejects at this level."""
        return below(self.p_value, alpha)

    @property
    def result(self) -> str:
        """The test in brackets."""
        if self.reason:
            return f"not tested: {self.reason}"
        den = "∞" if np.isinf(self.df_den) else written(self.df_den, ".1f")
        holm = f", Holm-adjusted for {self.tests} metafeatures" if self.tests > 1 else ""
        return (
            f"interaction with the algorithm: F({self.df_num:g}, {den}) = {written(self.f_ratio, '.2f')}, "
            f"{p_text(self.p_value)}{holm}"
        )


def interactions(
    runs: Runs, *, ddf: str, function: str | None = None, fit: LmmFit | None = None
) -> dict[str, Interaction]:
    """Test each metafeature for an interaction with the algorithm, by the model that its design calls for.

    The model is the one of `recommend` for the runs with this metafeature alone, with its means and its interaction
    with the algorithm in the fixed part; `function` is applied to every score, such as "log", and `fit` is a fit of
    these runs, which is taken where its model is the same one. Advantages may then vary between benchmarks, and
    between the levels of the metafeature on one benchmark, so the test is as sure as these allow: a metafeature that
    is constant on benchmarks is tested against the variation of advantages between benchmarks.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["HB", "HB+prior", "RS"])
    >>> found = interactions(runs, ddf="satterthwaite")["prior"]
    >>> found.df_num, found.significant(0.05)
    (2, False)
    """
    tests = [_tested(runs, name, function, ddf, fit) for name in runs.metafeatures]
    testable = [test for test in tests if not test.reason]
    adjusted = adjust_raw(np.array([test.p_value for test in testable]), "holm", max(len(testable), 1))
    p = dict(zip((test.metafeature for test in testable), adjusted.tolist(), strict=True))
    return {
        test.metafeature: replace(test, p_value=p.get(test.metafeature, math.nan), tests=len(testable))
        for test in tests
    }


def _tested(runs: Runs, metafeature: str, function: str | None, ddf: str, fit: LmmFit | None) -> Interaction:
    """The F-test of one interaction; the reason where the data do not identify it."""
    untested = Interaction(metafeature=metafeature, formula="", reason="this design does not identify it")
    try:
        alone = runs.with_metafeatures(metafeature)
        spec = model_of(alone).spec
        if metafeature not in spec.fixed_columns:
            spec = spec.with_crossed(*(column_term(name, alone) for name in (alone.algorithm, metafeature)))
            check_identified(spec, alone)
        spec = replace(spec, response_function=function, dispersion=None)
        untested = replace(untested, formula=spec.formula)
        if fit is None or fit.formula != spec.formula or fit.dispersion is not None or not fit.reml:
            fit = fitted_quietly(spec.parsed, alone)
        test = term_test(fit, (runs.algorithm, metafeature), ddf=ddf)
    except LmemtestError:
        return untested
    if test is None or not np.isfinite(test.p_value):
        return untested
    numbers = {name: getattr(test, name) for name in ("f_ratio", "df_num", "df_den", "p_value")}
    return replace(untested, reason="", **numbers)
