"""The checks, the metafeature analysis and the builder in the package's form: its arguments, this package's tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.bench.benchmark.outcomes import instance_contrasts
from lmemtest.bench.benchmark.pair_scores import pair_scores
from lmemtest.bench.budget.anytime import anytime
from lmemtest.bench.budget.budget_effect import budget_effect, tests_text
from lmemtest.bench.budget.horizon_scores import one_score, rows_at, run_curves, scores_at
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.bench.data.runs import Runs
from lmemtest.compat.significance_analysis.mixed_model import Model, model
from lmemtest.compat.significance_analysis.post_hoc import VARIANT, cd_diagram, contrast, numbers
from lmemtest.compat.significance_analysis.tables import (
    ALGORITHM,
    ARGUMENTS,
    BENCHMARK,
    BUDGET,
    SEED,
    VALUE,
    as_runs,
    to_table,
)
from lmemtest.core.caller import on_function
from lmemtest.core.environment import extra_package
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_columns
from lmemtest.core.words import format_level, p_text, small_p
from lmemtest.errors import DesignError
from lmemtest.lmm.formula import Term
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import ModelSpec

_EFFECTS = {"none": "none", "simple": "simple_effect", "interaction": "interaction_effect"}


def seed_dependency_check(
    data: pd.DataFrame,
    algorithm_var: str = ALGORITHM,
    loss_var: str = VALUE,
    seed_var: str = SEED,
    verbose: bool | None = True,
    *,
    benchmark_var: str | None = None,
    fidelity_var: str | None = None,
) -> list[str]:
    """Find the algorithms whose losses depend on the seed.

    Parameters
    ----------
    data : dataframe
        One row per run and budget, with seeds that come back on several benchmarks or in repeated rows.
    algorithm_var, loss_var, seed_var : str
        Columns.
    verbose : bool or None
        Print the likelihood-ratio test of all algorithms together, and the decision; with None the decision alone.
    benchmark_var, fidelity_var : str, optional
        Columns, which the package does not know here. By default they are looked for by name and
        content, with a `DataWarning` where that is a guess.

    Returns
    -------
    list of str
        The algorithms that an F-test each finds, with Holm's adjustment at 5 %.

    Raises
    ------
    DesignError
        If no seed comes back, so that its effect cannot be distinguished from chance.
    DataError
        If several columns could be the benchmark.

    See Also
    --------
    lmemtest.seed_effect : the same check with its table, intervals and sentences.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good").to_frame()
    >>> seed_dependency_check(data, loss_var="loss", verbose=False)
    []
    """
    columns = {"algorithm": algorithm_var, "loss": loss_var, "seed": seed_var}
    with on_function("seed_dependency_check", "data", ARGUMENTS):
        runs = as_runs(data, "seed_dependency_check", **columns, benchmark=benchmark_var, budget=fidelity_var)
        effect = seed_effect(runs)
    test, names = effect.overall, [str(name) for name in effect.affected]
    sign = "<<" if below(test.p_value, effect.alpha) else "=="
    null, alternative = written(test.llf_null, ".2f"), written(test.llf_alternative, ".2f")
    tests = [
        f"Simple model ({null}) {sign} Model with Seed-effect ({alternative})",
        f"Chi-Square: {written(test.statistic, '.4f')}, P-Value: {small_p(test.p_value)}",
    ]
    influenced = f"a significant effect, likely influenced algorithms: {names}" if names else "not a significant effect"
    _say(verbose, [f"Seed is {influenced}"], tests)
    return names


def _say(verbose: bool | None, decisions: Iterable[str], tests: Iterable[str] = ()) -> None:
    """Print the tests of a check and its decisions; with None the decisions alone."""
    if verbose:
        print("".join(f"{line}\n" for line in tests), end="")
    if verbose or verbose is None:
        print("".join(f"=> {line}\n" for line in decisions), end="")


def benchmark_information_check(
    data: pd.DataFrame,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    rank_benchmarks: bool = False,
    verbose: bool | None = True,
    *,
    seed_var: str | None = None,
    fidelity_var: str | None = None,
) -> dict[str, bool | None] | tuple[dict[str, bool | None], pd.DataFrame]:
    """Find the benchmarks on which the algorithms differ.

    Parameters
    ----------
    data : dataframe
        One row per run and budget.
    algorithm_var, benchmark_var, loss_var : str
        Columns.
    rank_benchmarks : bool
        Also return how much the algorithms differ on each benchmark.
    verbose : bool or None
        Print the decision on each benchmark.
    seed_var, fidelity_var : str, optional
        Columns, which the package does not know here. By default they are looked for by name and
        content, with a `DataWarning` where that is a guess.

    Returns
    -------
    dict of str to bool or None, or tuple of (dict, pandas.DataFrame)
        Whether a benchmark tells algorithms apart: Welch's F-test of the runs on it (at any level of a metafeature),
        with Holm's adjustment over all tests at 5 %. None where no test was possible. The table has ``Name``
        (benchmark), ``Var`` and ``Std``: variance and standard deviation of the algorithms' means there, averaged over
        the levels of metafeatures.

    Raises
    ------
    DesignError
        If no benchmark has two runs of two algorithms.

    See Also
    --------
    lmemtest.benchmark_information : the same check with its table, intervals and sentences.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, model="svm").to_frame()
    >>> benchmark_information_check(data, loss_var="loss", verbose=False)
    {'svm-cancer': True, 'svm-diabetes': True, 'svm-digits': True, 'svm-vote': True}
    """
    columns = {"algorithm": algorithm_var, "loss": loss_var, "benchmark": benchmark_var}
    with on_function("benchmark_information_check", "data", ARGUMENTS):
        runs = as_runs(data, "benchmark_information_check", **columns, budget=fidelity_var, seed=seed_var)
        try:
            information = benchmark_information(runs, rank_benchmarks=rank_benchmarks)
        except DesignError as error:
            if runs.seed is not None:
                raise
            more = f" Rows that differ in {runs.budget} alone count as one run." if runs.budget is not None else ""
            name_it = "name it: benchmark_information_check(..., seed_var=...)."
            raise DesignError(f"{error}{more} No column was found that identifies runs; {name_it}") from None
    # the names of the rows hold the levels of metafeatures as well
    instances = runs.study.one_score_per_run()[0].drop_duplicates("instance").set_index("instance")
    of = instances.loc[information.table["benchmark"], "benchmark"].astype(str).to_numpy(dtype=object)
    table = information.to_frame().assign(Name=of)
    keys = list(to_table(data)[benchmark_var].unique())
    names = [str(key) for key in keys]
    tested = table.dropna(subset=["informative"]).groupby("Name", sort=False)["informative"].any()
    decisions = {key: bool(tested[str(key)]) if str(key) in tested else None for key in keys}
    width = max(map(len, names))
    words: dict[bool | None, str] = {True: "is informative.", False: "is uninformative."}
    for key, decision in decisions.items():
        remarks = [text for row in table.loc[of == str(key), "benchmark"] for text in information.remarks[row]]
        words[None] = f"could not be tested: {remarks[-1]}" if remarks else "could not be tested."
        _say(verbose, [f"Benchmark {key!s:<{width}} {words[decision]}"])
    if not rank_benchmarks:
        return decisions
    variance = table.groupby("Name", sort=False)["variance"].mean().clip(lower=0.0).reindex(names).to_numpy()
    values = {"Name": np.array(names, dtype=object), "Var": variance, "Std": np.sqrt(variance)}
    ranking = pd.DataFrame(values, index=pd.Index([algorithm_var] * len(names)))
    if verbose:
        print(f"\n{ranking.reset_index(drop=True)}")
        nothing = [name for name, decision in decisions.items() if decision is False]
        print(f"Benchmarks without algorithm variation: {nothing}")
    return decisions, ranking


def fidelity_check(
    data: pd.DataFrame,
    fidelity_var: str = BUDGET,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    verbose: bool | None = True,
    *,
    seed_var: str | None = None,
) -> str:
    """Find out whether the budget changes the losses, and those of all algorithms alike.

    Parameters
    ----------
    data : dataframe
        One row per run and budget.
    fidelity_var, algorithm_var, benchmark_var, loss_var : str
        Columns.
    verbose : bool or None
        Print the two comparisons and the decision; with None the decision alone.
    seed_var : str, optional
        Column, which the package does not know here. By default it is looked for by name and
        content, with a `DataWarning` where that is a guess.

    Returns
    -------
    {"none", "simple_effect", "interaction_effect"}
        Tests at 5 % (Holm) of a budget effect, and of one that differs between algorithms: by its mean over benchmarks
        and by its direction on them (over runs if there is one benchmark).

    Raises
    ------
    DataError
        If the effect cannot be identified: one budget, or one run per algorithm on one benchmark.

    See Also
    --------
    lmemtest.budget_effect : the same check with its table, slopes and sentences.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(prior="good", algorithm=["RS", "HB"]).to_frame()
    >>> fidelity_check(data, fidelity_var="budget", loss_var="loss", verbose=False)
    'interaction_effect'
    """
    columns = {"algorithm": algorithm_var, "loss": loss_var, "benchmark": benchmark_var, "budget": fidelity_var}
    with on_function("fidelity_check", "data", ARGUMENTS):
        runs = as_runs(data, "fidelity_check", **columns, seed=seed_var)
        effect = budget_effect(runs)
    _say(verbose, [effect.sentences()[0]], _budget_lines(effect))
    return _EFFECTS[effect.decision]


def _budget_lines(effect: Answer) -> Iterator[str]:
    """The comparisons in the order and manner of the package."""
    names = {
        "effect": ("Simple model", "Model with budget effect"),
        "interaction": ("Model with budget effect", "Model with interaction"),
    }
    for question, (null, alternative) in names.items():
        test = effect.values[question]
        if test is not None:
            yield f"{null} {'<<' if below(test.p_value, effect.alpha) else '=='} {alternative}"
            yield f"{tests_text(effect, test)}, adjusted {p_text(test.p_value)}"


# ---------------------------------------------------------------------- metafeatures


def metafeature_analysis(
    dataset: pd.DataFrame,
    algorithms: tuple[str, str],
    metafeature_var: str,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    fidelity_var: str = BUDGET,
    path: str = "",
    plot: bool = False,
    verbose: bool = True,
    *,
    seed_var: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare which of two algorithms wins between all variants: the benchmarks, each at the levels of a metafeature.

    Parameters
    ----------
    dataset : dataframe
        One row per run and budget. It is not changed.
    algorithms : tuple of two str
        A win of the first counts -1 (its losses are lower), a win of the second 1, neither 0.
    metafeature_var : str
        Column of the levels.
    algorithm_var, benchmark_var, loss_var, fidelity_var : str
        Columns.
    path : str
        Where to save the wins at every benchmark, level and budget, as parquet.
    plot : bool
        Draw the critical-difference diagram of the variants.
    verbose : bool
        Print the conclusion on each benchmark and over all, with the sign of the tables.
    seed_var : str, optional
        Column that tells the runs apart, which the package does not know. By default it is looked for by name and
        content, with a `DataWarning` where that is a guess.

    Returns
    -------
    tuple of (pandas.DataFrame, pandas.DataFrame)
        Estimates: ``benchmark_variant`` ("benchmark x level"), ``Estimate``, the mean win over the budgets, with its
        95 % interval, standard error and degrees of freedom. Contrasts: one row per pair of variants, with
        ``Contrast``, ``Estimate``, interval, ``SE``, ``DF``, ``T-stat``, ``P-val`` and ``Sig``. Standard errors are
        those of repeating whole runs, as budgets of the same runs are no sample; intervals and p-values hold for all
        pairs at once (Games-Howell: Tukey's range with the error and the degrees of freedom of each pair).

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a name is unknown.
    DataError
        If the metafeature is constant within benchmarks, an algorithm is missing on a level, or there is one run only.

    See Also
    --------
    lmemtest.metafeature_effect : contrasts within benchmarks alone, those that are singled out, and sentences; or one
        model of the losses themselves.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(model="forest").to_frame()
    >>> names = {"loss_var": "loss", "fidelity_var": "budget", "verbose": False}
    >>> estimates, contrasts = metafeature_analysis(data, ("HB+prior", "HB"), "prior", **names)
    >>> contrasts.loc[0, "Contrast"], float(contrasts.loc[0, "Estimate"].round(2))
    ('(forest-cancer x bad) - (forest-cancer x good)', 0.9)
    """
    frame = to_table(dataset)
    named = [algorithm_var, benchmark_var, loss_var, fidelity_var, metafeature_var]
    check_columns([*named, *([seed_var] if seed_var is not None else [])], frame.columns, argument="dataset")
    with on_function("metafeature_analysis", "dataset", ARGUMENTS):
        columns = {"algorithm": algorithm_var, "loss": loss_var, "metafeature": metafeature_var}
        runs = as_runs(
            frame, "metafeature_analysis", **columns, benchmark=benchmark_var, budget=fidelity_var, seed=seed_var
        )
        # a win of the second counts 1, and what comes first in the data is the minuend
        against = tuple(reversed(algorithms)) if len(algorithms) == 2 else algorithms
        levels = list(frame[metafeature_var].dropna().unique())[::-1]
        outcomes = metafeature_outcomes(runs, algorithms=against, metafeature=metafeature_var, levels=levels, rng=0)
        losses, axes, _ = pair_scores(runs, against, metafeature_var, levels)
        instances, pairs = instance_contrasts(losses, axes, rng=np.random.default_rng(0))
    _say(bool(verbose), _lines(outcomes))
    if path:
        extra_package("pyarrow", extra="parquet", purpose=f"write {path}", otherwise="Leave path= out.")
        _wins(outcomes).to_parquet(path if path.endswith(".parquet") else f"{path}.parquet")
    # a variant comes before those that come later in the data, which is how differences are directed
    both = frame.loc[frame[algorithm_var].isin(list(algorithms)), [benchmark_var, metafeature_var]].drop_duplicates()
    tables = _tables(instances, pairs, {pair: i for i, pair in enumerate(both.itertuples(index=False, name=None))})
    if plot:
        cd_diagram(tables, system_id=VARIANT)
    return tables


def _lines(result: Answer) -> Iterator[str]:
    """The conclusion on each benchmark, then over all."""
    for row in result.contrasts.to_dict("records"):
        odd = ", singled out" if row["singled_out"] else ""
        name, level, reference = (format_level(row[key]) for key in ("benchmark", "level", "reference"))
        wins = f"{level} - {reference} = {written(row['contrast'], '.3f')}"
        yield f"{name}: {wins}, {p_text(row['p_value'])}, {row['decision']}{odd}."
    yield from result.sentences()


def _variant(benchmark: Any, level: Any) -> str:
    return f"{format_level(benchmark)} x {format_level(level)}"


def _wins(outcomes: Answer) -> pd.DataFrame:
    """Outcomes at every point, in the columns that the package saves."""
    points = outcomes.points[outcomes.points["outcome"].notna()]
    pairs = list(zip(points["benchmark"], points["level"], strict=True))
    return pd.DataFrame(
        {
            VARIANT: [_variant(*pair) for pair in pairs],
            "wins": points["outcome"].to_numpy(dtype=float),
            "fidelity": points["budget"].to_numpy(),
            "benchmark": [format_level(benchmark) for benchmark, _ in pairs],
            "metafeature": [format_level(level) for _, level in pairs],
        }
    )


def _tables(
    instances: pd.DataFrame, pairs: pd.DataFrame, order: dict[tuple[Any, Any], int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimates and contrasts, a variant before those that come later in the data."""
    keys = list(zip(instances["benchmark"], instances["level"], strict=True))
    place = np.array([order[key] for key in keys])
    first = np.argsort(place, kind="stable")
    names = np.array([_variant(*key) for key in keys], dtype=object)
    estimates = numbers(instances.rename(columns={"outcome": "estimate"}).iloc[first]).reset_index(drop=True)
    estimates.insert(0, VARIANT, pd.Categorical(names[first], categories=names[first]))
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    sign = np.where(place[left] > place[right], -1.0, 1.0)
    left, right = np.where(sign < 0, right, left), np.where(sign < 0, left, right)
    ends = [sign * pairs[end] for end in ("ci_low", "ci_high")]
    pairs = pairs.assign(
        estimate=sign * pairs["contrast"] + 0.0,
        ci_low=np.minimum(*ends),
        ci_high=np.maximum(*ends),
        t_ratio=sign * pairs["t_ratio"] + 0.0,
    )
    contrasts = numbers(pairs)
    texts = [contrast(names[i], names[j]) for i, j in zip(left, right, strict=True)]
    contrasts.insert(0, "Contrast", pd.Series(texts, index=contrasts.index, dtype=object))
    return estimates, contrasts.iloc[np.lexsort((place[right], place[left]))].reset_index(drop=True)


# ---------------------------------------------------------------------- builder


@dataclass(frozen=True, slots=True, eq=False)
class PaperBuilder:
    """A table and the names of its columns, with the checks of the paper as methods: figures 3, 15 and 19 of it.

    ``verbose=False`` leaves the decisions of a check printed, as in the paper.

    Parameters
    ----------
    dataset : dataframe, or what `dataframe_validator` returned
        One row per run and budget. It is not changed.
    algorithm_var, benchmark_var, loss_var, fidelity_var, seed_var : str
        Columns; those that the table lacks are left to the rules of the functions.

    Raises
    ------
    ArgumentError
        If `dataset` is not a table.

    See Also
    --------
    lmemtest.ModelBuilder : the builder of this package, which takes `Runs`.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", model="svm").to_frame()
    >>> builder = model_builder(data, loss_var="loss", fidelity_var="budget")
    >>> builder.test_seed_dependency(verbose=False)
    => Seed is a significant effect, likely influenced algorithms: ['RS']
    ['RS']
    """

    dataset: pd.DataFrame
    algorithm_var: str = ALGORITHM
    benchmark_var: str = BENCHMARK
    loss_var: str = VALUE
    fidelity_var: str = BUDGET
    seed_var: str = SEED

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset", to_table(self.dataset))

    def _call(self, function: Callable[..., Any], **options: Any) -> Any:
        """A check with the columns of the builder; those by name only, which its package does not know, if there."""
        for name, parameter in inspect.signature(function).parameters.items():
            if name.endswith("_var") and name not in options:
                column = getattr(self, name)
                lacks = parameter.kind is parameter.KEYWORD_ONLY and column not in self.dataset.columns
                options[name] = None if lacks else column
        return function(self.dataset, **options)

    def test_seed_dependency(self, verbose: bool = True) -> list[str]:
        """Find the algorithms whose losses depend on the seed: `seed_dependency_check`."""
        return self._call(seed_dependency_check, verbose=verbose or None)

    def test_benchmark_information(
        self, rank_benchmarks: bool = False, verbose: bool = True
    ) -> dict[str, bool | None] | tuple[dict[str, bool | None], pd.DataFrame]:
        """Find the benchmarks on which the algorithms differ: `benchmark_information_check`."""
        return self._call(benchmark_information_check, verbose=verbose or None, rank_benchmarks=rank_benchmarks)

    def test_fidelity(self, fidelity_var: str | None = None, verbose: bool = True) -> str:
        """Find out whether a budget, by default that of the builder, changes the losses: `fidelity_check`."""
        return self._call(fidelity_check, verbose=verbose or None, fidelity_var=fidelity_var or self.fidelity_var)

    def metafeature_analysis(
        self,
        algorithms: tuple[str, str],
        metafeature_var: str,
        path: str = "",
        plot: bool = False,
        verbose: bool = True,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Compare which of two algorithms wins at the levels of a metafeature: the function `metafeature_analysis`."""
        options = {"algorithms": algorithms, "metafeature_var": metafeature_var, "path": path, "plot": plot}
        return self._call(metafeature_analysis, **options, verbose=verbose)

    def model(self, formula: str) -> Model:
        """Fit a formula in lme4's syntax to the table: the function `model`."""
        return model(formula, self.dataset, self.algorithm_var)


model_builder = PaperBuilder  # as the paper calls it


# ---------------------------------------------------------------------- horizons


@one_blas_thread()
def horizon_pairs(runs: Runs, budgets: Any = None, *, adjust: str | None = None) -> pd.DataFrame:
    """Compare algorithms at horizons by ``score ~ algorithm + (1|budget) + (1|benchmark)``, as the paper does.

    Parameters
    ----------
    runs : Runs
        With numeric budgets.
    budgets : sequence of number or of two numbers, optional
        Budgets, or windows ``(first, last)`` of them, as in `Anytime.at`.
    adjust : str, optional
        Adjustment for the pairs of a horizon, as in `Anytime.at`; by default Tukey's for the paper's model.

    Returns
    -------
    pandas.DataFrame
        ``horizon``, ``left``, ``right``, ``estimate``, ``se``, ``p_value`` (adjusted for the pairs of the horizon) by
        the recommended model, and by that of the paper ``paper_estimate``, ``paper_se``, ``paper_p_value``. The latter
        takes every row as an observation of its own: all budgets of a run, all seeds on a benchmark.

    Raises
    ------
    ArgumentError, DataError
        As `Anytime.at`.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, figure 5.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS"], prior="good")
    >>> horizon_pairs(runs, [8, (16, 32)])[["horizon", "left", "right", "se", "paper_se"]].round(5)
      horizon left right       se  paper_se
    0       8   HB    RS  0.00109   0.00066
    1   16-32   HB    RS  0.00037   0.00018
    """
    recommended, parts = anytime(runs).at(budgets, adjust=adjust), []
    keys, points, common = run_curves(runs)
    for label, horizon in recommended.horizons.items():
        scores, used, exact, _ = scores_at(horizon.place, runs, keys, points, common)
        table = rows_at(runs, used) if exact else one_score(runs, keys, scores, runs.score)
        numeric = table.frame.collect_schema()[runs.algorithm].is_numeric()
        spec = ModelSpec(response=runs.score).with_crossed(Term.levels(runs.algorithm) if numeric else runs.algorithm)
        if table.budget is not None and len(used) > 1:
            spec = spec.with_random(table.budget)
        if runs.benchmark is not None and runs.study.several_benchmarks:
            spec = spec.with_random(runs.benchmark)
        paper = emmeans(spec.fit(table), runs.algorithm, vcov="model").pairs(adjust=adjust).to_frame()
        pairs = horizon.pairs.to_frame()[["left", "right", "estimate", "se", "p_value"]]
        both = pd.concat([pairs, paper[["estimate", "se", "p_value"]].add_prefix("paper_")], axis=1)
        parts.append(both.assign(horizon=label)[["horizon", *both.columns]])
    return pd.concat(parts, ignore_index=True)
