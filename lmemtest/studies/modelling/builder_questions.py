"""The questions of the package as methods of a builder: each is one call of the function that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmemtest.data.runs import Runs
    from lmemtest.studies.benchmark.benchmark_clusters import BenchmarkClusters
    from lmemtest.studies.benchmark.benchmark_effects import ShrunkenEffects
    from lmemtest.studies.benchmark.metafeature_effect import MetafeatureModel
    from lmemtest.studies.benchmark.metafeatures import MetafeatureAnalysis
    from lmemtest.studies.budget.anytime import Anytime
    from lmemtest.studies.budget.budget_effect import BudgetEffect
    from lmemtest.studies.budget.horizons import Horizons
    from lmemtest.studies.budget.relative_ranks import RelativeRanks
    from lmemtest.studies.checks.benchmark_information import BenchmarkInformation
    from lmemtest.studies.checks.report import SanityReport
    from lmemtest.studies.checks.seed_effect import SeedDependency
    from lmemtest.studies.scores.score_distributions import ScoreDistributions
    from lmemtest.studies.variation.ranking_reliability import RankingReliability
    from lmemtest.studies.variation.variance_sources import VarianceSources


class Questions:
    """What can be asked of the runs of a builder.

    A method takes what its function takes after the runs, in the same order and by the same names.
    """

    __slots__ = ()

    runs: Runs

    def test_seed_dependency(self, **options: Any) -> SeedDependency:
        """Does the seed decide the score? See `seed_dependency`, which takes the same options."""
        from lmemtest.studies.checks.seed_effect import seed_dependency

        return seed_dependency(self.runs, **options)

    def test_benchmark_information(self, *, rank_benchmarks: bool = False, **options: Any) -> BenchmarkInformation:
        """Which benchmarks tell the algorithms apart? See `benchmark_information`, which takes the same options."""
        from lmemtest.studies.checks.benchmark_information import benchmark_information

        return benchmark_information(self.runs, rank_benchmarks=rank_benchmarks, **options)

    def budget_effect(self, **options: Any) -> BudgetEffect:
        """Does the budget matter, and for all algorithms alike? See `budget_effect`, which takes the same options."""
        from lmemtest.studies.budget.budget_effect import budget_effect

        return budget_effect(self.runs, **options)

    def check_all(self, **options: Any) -> SanityReport:
        """All sanity checks as one tree, with what to fix first. See `check_all`, which takes the same options."""
        from lmemtest.studies.checks.check import check_all

        return check_all(self.runs, **options)

    def metafeature_analysis(self, algorithms: Sequence[Any], metafeature: str, **options: Any) -> MetafeatureAnalysis:
        """How a metafeature changes who wins on each benchmark. See `metafeature_analysis` for the options."""
        from lmemtest.studies.benchmark.metafeatures import metafeature_analysis

        return metafeature_analysis(self.runs, algorithms, metafeature, **options)

    def metafeature_model(self, algorithms: Sequence[Any], metafeature: str, **options: Any) -> MetafeatureModel:
        """How a metafeature changes the advantage of one algorithm, in one model. See `metafeature_model`."""
        from lmemtest.studies.benchmark.metafeature_effect import metafeature_model

        return metafeature_model(self.runs, algorithms, metafeature, **options)

    def relative_ranks(self, **options: Any) -> RelativeRanks:
        """The mean rank of each algorithm at each budget. See `relative_ranks`, which takes the same options."""
        from lmemtest.studies.budget.relative_ranks import relative_ranks

        return relative_ranks(self.runs, **options)

    def score_distributions(self, **options: Any) -> ScoreDistributions:
        """How are the scores distributed? See `score_distributions`, which takes the same options."""
        from lmemtest.studies.scores.score_distributions import score_distributions

        return score_distributions(self.runs, **options)

    def variance_sources(self, **options: Any) -> VarianceSources:
        """Where the variation comes from. See `variance_sources`, which takes the same options."""
        from lmemtest.studies.variation.variance_sources import variance_sources

        return variance_sources(self.runs, **options)

    def anytime(self, **options: Any) -> Anytime:
        """Which algorithm is better over all budgets at once? See `anytime`, which takes the same options."""
        from lmemtest.studies.budget.anytime import anytime

        return anytime(self.runs, **options)

    def horizons(self, budgets: Sequence[Any] | None = None, **options: Any) -> Horizons:
        """Which algorithm is better at which budget, and does that change? See `horizons` for the options."""
        from lmemtest.studies.budget.horizons import horizons

        return horizons(self.runs, budgets, **options)

    def ranking_reliability(self, **options: Any) -> RankingReliability:
        """Would the ranking hold up on other benchmarks? See `ranking_reliability`, which takes the same options."""
        from lmemtest.studies.variation.ranking_reliability import ranking_reliability

        return ranking_reliability(self.runs, **options)

    def benchmark_effects(self, **options: Any) -> ShrunkenEffects:
        """On which benchmarks does an algorithm win? See `benchmark_effects`, which takes the same options."""
        from lmemtest.studies.benchmark.benchmark_effects import benchmark_effects

        return benchmark_effects(self.runs, **options)

    def benchmark_clusters(self, **options: Any) -> BenchmarkClusters:
        """Which benchmarks favour the same algorithms? See `benchmark_clusters`, which takes the same options."""
        from lmemtest.studies.benchmark.benchmark_clusters import benchmark_clusters

        return benchmark_clusters(self.runs, **options)
