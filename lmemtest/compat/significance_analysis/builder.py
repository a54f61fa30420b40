"""The builder that the figures of the paper use: a table, and the checks as its methods."""

from __future__ import annotations

from dataclasses import dataclass

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

    def test_seed_dependency(self, verbose: bool = True) -> list[str]:
        """Find the algorithms whose losses depend on the seed: `seed_dependency_check`.

        Parameters
        ----------
        verbose : bool
            Print the test as well; the decision is always printed, as in the paper.

        Returns
        -------
        list of str
        """
        return seed_dependency_check(
            self.dataset,
            self.algorithm_var,
            self.loss_var,
            self.seed_var,
            _said(verbose),
            benchmark_var=self._known(self.benchmark_var),
            fidelity_var=self._known(self.fidelity_var),
        )

    def test_benchmark_information(
        self, rank_benchmarks: bool = False, verbose: bool = True
    ) -> dict[str, bool | None] | tuple[dict[str, bool | None], pd.DataFrame]:
        """Find the benchmarks on which the algorithms differ: `benchmark_information_check`.

        Parameters
        ----------
        rank_benchmarks : bool
            Also return how much the algorithms differ on each benchmark.
        verbose : bool
            Print the ranking as well; the decisions are always printed, as in the paper.

        Returns
        -------
        dict of str to bool or None, or tuple of (dict, pandas.DataFrame)
        """
        return benchmark_information_check(
            self.dataset,
            self.algorithm_var,
            self.benchmark_var,
            self.loss_var,
            rank_benchmarks,
            _said(verbose),
            seed_var=self._known(self.seed_var),
            fidelity_var=self._known(self.fidelity_var),
        )

    def test_fidelity(self, fidelity_var: str | None = None, verbose: bool = True) -> str:
        """Find out whether a budget changes the losses, and those of all algorithms alike: `fidelity_check`.

        Parameters
        ----------
        fidelity_var : str, optional
            Column; by default that of the builder.
        verbose : bool
            Print the comparisons as well; the decision is always printed, as in the paper.

        Returns
        -------
        {"none", "simple_effect", "interaction_effect"}
        """
        return fidelity_check(
            self.dataset,
            self.fidelity_var if fidelity_var is None else fidelity_var,
            self.algorithm_var,
            self.benchmark_var,
            self.loss_var,
            _said(verbose),
            seed_var=self._known(self.seed_var),
        )

    def metafeature_analysis(
        self,
        algorithms: tuple[str, str],
        metafeature_var: str,
        path: str = "",
        plot: bool = False,
        verbose: bool = True,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Compare which of two algorithms wins between benchmarks at the levels of a metafeature.

        Parameters
        ----------
        algorithms : tuple of two str
        metafeature_var : str
            Column of the levels.
        path, plot, verbose
            As in the function `metafeature_analysis`.

        Returns
        -------
        tuple of (pandas.DataFrame, pandas.DataFrame)
        """
        return metafeature_analysis(
            self.dataset,
            algorithms,
            metafeature_var,
            self.algorithm_var,
            self.benchmark_var,
            self.loss_var,
            self.fidelity_var,
            path,
            plot,
            verbose,
            seed_var=self._known(self.seed_var),
        )

    def model(self, formula: str) -> Model:
        """Fit a formula to the table: the function `model`.

        Parameters
        ----------
        formula : str
            In the syntax of lme4.

        Returns
        -------
        Model
        """
        return model(formula, self.dataset, self.algorithm_var)

    def _known(self, name: str) -> str | None:
        return name if name in self.dataset.columns else None


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
    return PaperBuilder(
        dataset=to_table(dataset),
        algorithm_var=algorithm_var,
        benchmark_var=benchmark_var,
        loss_var=loss_var,
        fidelity_var=fidelity_var,
        seed_var=seed_var,
    )


def _said(verbose: bool) -> bool | None:
    """All lines, or the decisions alone."""
    return True if verbose else None
