"""The sanity checks in the package's form: its arguments, its return values, this package's tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.budget.budget_effect import BudgetEffect, budget_effect, tests_text
from lmemtest.bench.checks.benchmark_information import BenchmarkInformation, benchmark_information
from lmemtest.bench.checks.seed_effect import SeedEffect, seed_effect
from lmemtest.compat.significance_analysis.messages import errors_of
from lmemtest.compat.significance_analysis.roles import as_runs
from lmemtest.compat.significance_analysis.tables import ALGORITHM, BENCHMARK, BUDGET, SEED, VALUE, to_table
from lmemtest.core.rounding import below, written
from lmemtest.core.words import p_text, small_p
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

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
    with errors_of("seed_dependency_check"):
        runs = as_runs(data, "seed_dependency_check", **columns, benchmark=benchmark_var, budget=fidelity_var)
        found = seed_effect(runs)
    say(_seed_lines(found), verbose)
    return [str(name) for name in found.affected]


def _seed_lines(found: SeedEffect) -> Iterator[str]:
    """The test and the decision in the manner of the package."""
    test = found.overall
    sign = "<<" if below(test.p_value, found.alpha) else "=="
    yield (
        f"Simple model ({written(test.llf_null, '.2f')}) {sign} Model with Seed-effect "
        f"({written(test.llf_alternative, '.2f')})"
    )
    yield f"Chi-Square: {written(test.statistic, '.4f')}, P-Value: {small_p(test.p_value)}"
    names = [str(name) for name in found.affected]
    yield (
        f"=> Seed is a significant effect, likely influenced algorithms: {names}"
        if names
        else "=> Seed is not a significant effect"
    )


def say(lines: Iterable[str], verbose: bool | None) -> None:
    """Print the lines of a check: all, none, or with None those that hold its decision."""
    for line in lines:
        if verbose or (verbose is None and line.startswith("=>")):
            print(line)


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
    with errors_of("benchmark_information_check"):
        runs = as_runs(data, "benchmark_information_check", **columns, budget=fidelity_var, seed=seed_var)
        try:
            found = benchmark_information(runs, rank_benchmarks=rank_benchmarks)
        except DesignError as error:
            if runs.seed is not None:
                raise
            more = f" Rows that differ in {runs.budget} alone count as one run." if runs.budget is not None else ""
            name_it = "name it: benchmark_information_check(..., seed_var=...)."
            raise DesignError(f"{error}{more} No column was found that tells runs apart; {name_it}") from None
    table = found.to_frame().assign(Name=_benchmarks(runs, found))
    keys = list(to_table(data)[benchmark_var].unique())
    names = [str(key) for key in keys]
    tested = table.dropna(subset=["informative"]).groupby("Name", sort=False)["informative"].any()
    decisions = {key: bool(tested[str(key)]) if str(key) in tested else None for key in keys}
    say(_decision_lines(decisions, table, found.notes), verbose)
    if not rank_benchmarks:
        return decisions
    variance = table.groupby("Name", sort=False)["variance"].mean().clip(lower=0.0).reindex(names)
    values = {"Name": np.array(names, dtype=object), "Var": variance.to_numpy(), "Std": np.sqrt(variance.to_numpy())}
    ranking = pd.DataFrame(values, index=pd.Index([algorithm_var] * len(names)))
    if verbose:
        print(f"\n{ranking.reset_index(drop=True)}")
        nothing = [name for name, decision in decisions.items() if decision is False]
        print(f"Benchmarks without algorithm variation: {nothing}")
    return decisions, ranking


def _decision_lines(
    decisions: Mapping[object, bool | None], table: pd.DataFrame, notes: tuple[str, ...]
) -> Iterator[str]:
    width = max(len(str(key)) for key in decisions)
    for key, decision in decisions.items():
        text = "is informative." if decision else "is uninformative."
        if decision is None:  # with the reason why the first of its levels was not tested
            starts = [f"{name}: " for name in table.loc[table["Name"] == str(key), "benchmark"]]
            reasons = [note.removeprefix(start) for start in starts for note in notes if note.startswith(start)]
            text = f"could not be tested: {reasons[-1]}" if reasons else "could not be tested."
        yield f"=> Benchmark {key!s:<{width}} {text}"


def _benchmarks(runs: Runs, found: BenchmarkInformation) -> np.ndarray:
    """The benchmark of each row of the table, whose names hold the levels of metafeatures as well."""
    instances = runs.study.one_score_per_run()[0].drop_duplicates("instance").set_index("instance")
    return instances.loc[found.table["benchmark"], "benchmark"].astype(str).to_numpy(dtype=object)


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
    with errors_of("fidelity_check"):
        runs = as_runs(data, "fidelity_check", **columns, seed=seed_var)
        found = budget_effect(runs)
    say(_budget_lines(found), verbose)
    return _EFFECTS[found.decision]


def _budget_lines(found: BudgetEffect) -> Iterator[str]:
    """The comparisons in the order and manner of the package."""
    names = {
        "effect": ("Simple model", "Model with budget effect"),
        "interaction": ("Model with budget effect", "Model with interaction"),
    }
    for question, (null, alternative) in names.items():
        test = found.get(question)
        if test is not None:
            yield f"{null} {'<<' if test.p_value < found.alpha else '=='} {alternative}"
            yield f"{tests_text(found, test)}, adjusted {p_text(test.p_value)}"
    yield f"=> {found.sentences()[0]}"
