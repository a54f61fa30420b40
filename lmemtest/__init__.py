"""Mixed-effects significance testing for machine-learning and hyperparameter-optimisation benchmarks."""

from typing import Any as _Any

import lazy_loader as _lazy

__version__ = "0.1.0"

_load, __dir__, __all__ = _lazy.attach(
    __name__,
    submodules=["errors", "plots", "tuning"],
    submod_attrs={
        "data": ["datasets", "importers"],
        "data.readers": ["read_runs"],
        "data.runs": ["Runs"],
        "data.trajectories": ["trajectories"],
        "inference.hypotheses.glrt": ["glrt"],
        "inference.hypotheses.permutation": ["permutation_test"],
        "inference.power.components": ["VarianceComponents"],
        "inference.power.plan": ["plan"],
        "inference.power.power": ["power"],
        "inference.hypotheses.sign_flips": ["sign_flip_test"],
        "model": ["fit_lmm"],
        "studies.budget.anytime": ["anytime"],
        "studies.budget.budget_effect": ["budget_effect"],
        "studies.modelling.builder": ["ModelBuilder"],
        "studies.checks.audit": ["audit"],
        "studies.evaluation.evaluation": ["evaluate"],
        "studies.gate.gate": ["gate"],
        "studies.benchmark.benchmark_clusters": ["benchmark_clusters"],
        "studies.scores.score_distributions": ["score_distributions"],
        "studies.budget.horizons": ["horizons"],
        "studies.checks.benchmark_information": ["benchmark_information"],
        "studies.benchmark.metafeature_effect": ["metafeature_effect"],
        "studies.modelling.lattice": ["search_models"],
        "studies.modelling.recommend": ["recommend"],
        "studies.outperforming.probability": ["probability_of_outperforming"],
        "studies.ranking.aggregates": ["aggregate_scores"],
        "studies.ranking.effect_size": ["effect_size"],
        "studies.ranking.rank": ["rank"],
        "studies.ranking.stochastic_order": ["stochastic_order"],
        "studies.budget.relative_ranks": ["relative_ranks"],
        "studies.variation.ranking_reliability": ["ranking_reliability"],
        "studies.checks.check": ["check"],
        "studies.scores.normalization_stability": ["normalization_stability"],
        "studies.failures.rates": ["failure_rates"],
        "studies.failures.sensitivity": ["failure_sensitivity"],
        "studies.scores.scale_agreement": ["scale_agreement"],
        "studies.checks.seed_effect": ["seed_effect"],
        "studies.modelling.forward": ["select_terms"],
        "studies.benchmark.benchmark_effects": ["benchmark_effects"],
        "studies.variation.variance_sources": ["variance_sources"],
        "studies.variation.variance_study": ["variance_study"],
        "report.analysis": ["analyze"],
    },
)


def __getattr__(name: str) -> _Any:
    """A name when it is first used; a guessed one leads to what it means, or says what to write."""
    if name in __all__:
        return _load(name)
    from lmemtest._hints import sought

    return sought(__name__, name, __all__)
