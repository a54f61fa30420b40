"""The builder that the figures of the paper use: a table, and the checks as its methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lmemtest.compat.significance_analysis.checks import (
    benchmark_information_check,
    fidelity_check,
    seed_dependency_check,
)
from lmemtest.compat.significance_analysis.metafeatures import metafeature_analysis
from lmemtest.compat.significance_analysis.mixed_model import Model, model
from lmemtest.compat.significance_analysis.tables import ALGORITHM, BENCHMARK, BUDGET, SEED, VALUE, to_table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaperBuilder:
    """A table and the names of its columns, with the checks of the paper as methods.

    ``verbose=False`` leaves the decisions of a check printed, as in the paper.

    Attributes
    ----------
    dataset : pandas.DataFrame
        One row per run and budget.
    algorithm_var, benchmark_var, loss_var, fidelity_var, seed_var : str
        Columns; those that the table lacks are left to the rules of the functions.

    See Also
    --------
    lmemtest.ModelBuilder : the builder of this package, which takes `Runs`.
    """

    dataset: pd.DataFrame
    algorithm_var: str = ALGORITHM
    benchmark_var: str = BENCHMARK
    loss_var: str = VALUE
    fidelity_var: str = BUDGET
    seed_var: str = SEED

    def _call(self, function: Callable[..., Any], **given: Any) -> Any:
        """A check with the columns of the builder; those by name only, which its package does not know, if there."""
        options = dict(given)
        for name, parameter in inspect.signature(function).parameters.items():
            if name.endswith("_var") and name not in given:
                column = getattr(self, name)
                known = parameter.kind is not parameter.KEYWORD_ONLY or column in self.dataset.columns
                options[name] = column if known else None
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
        given = {"algorithms": algorithms, "metafeature_var": metafeature_var, "path": path, "plot": plot}
        return self._call(metafeature_analysis, **given, verbose=verbose)

    def model(self, formula: str) -> Model:
        """Fit a formula in lme4's syntax to the table: the function `model`."""
        return model(formula, self.dataset, self.algorithm_var)


def model_builder(
    dataset: pd.DataFrame,
    algorithm_var: str = ALGORITHM,
    benchmark_var: str = BENCHMARK,
    loss_var: str = VALUE,
    fidelity_var: str = BUDGET,
    seed_var: str = SEED,
) -> PaperBuilder:
    """Begin with a table, as in figures 3, 15 and 19 of the paper.

    Parameters
    ----------
    dataset : dataframe, or what `dataframe_validator` returned
        One row per run and budget. It is not changed.
    algorithm_var, benchmark_var, loss_var, fidelity_var, seed_var : str
        Columns.

    Returns
    -------
    PaperBuilder

    Raises
    ------
    ArgumentError
        If `dataset` is not a table.

    Examples
    --------
    >>> import lmemtest as lt
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", model="svm").to_frame()
    >>> builder = model_builder(data, loss_var="loss", fidelity_var="budget")
    >>> builder.test_seed_dependency(verbose=False)
    => Seed is a significant effect, likely influenced algorithms: ['RS']
    ['RS']
    """
    columns = {name: column for name, column in locals().items() if name != "dataset"}
    return PaperBuilder(dataset=to_table(dataset), **columns)
