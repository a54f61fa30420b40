"""Mixed-effects significance testing for machine-learning and hyperparameter-optimisation benchmarks."""

from typing import Any as _Any

import lazy_loader as _lazy

__version__ = "0.2.0"

_load, __dir__, __all__ = _lazy.attach(
    __name__,
    submodules=["errors", "lmm", "plots", "tuning"],
    submod_attrs={
        "bench": ["importers"],
        "bench.data": ["datasets"],
        "bench.data.readers": ["read_runs"],
        "bench.data.runs": ["Runs"],
        "bench.data.trajectories": ["trajectories"],
        "lmm.hypotheses.glrt": ["glrt"],
        "bench.permutation.permutation": ["permutation_test"],
        "bench.power.variance_components": ["VarianceComponents"],
        "bench.power.plan": ["plan"],
        "bench.power.power": ["power"],
        "lmm.model": ["fit_lmm"],
        "lmm.model.glmm": ["fit_glmm"],
        "bench.budget.anytime": ["anytime"],
        "bench.budget.budget_effect": ["budget_effect"],
        "bench.modelling.builder": ["ModelBuilder"],
        "bench.checks.answerable": ["answerable"],
        "bench.checks.audit": ["audit"],
        "bench.evaluation.attempts": ["repeated_attempts"],
        "bench.evaluation.evaluate": ["evaluate"],
        "bench.evaluation.mcnemar": ["mcnemar"],
        "bench.gate.gate": ["gate"],
        "bench.votes.votes": ["rate_votes"],
        "bench.looks.monitor": ["monitor"],
        "bench.looks.stopping": ["StopWhenDecided"],
        "bench.benchmark.benchmark_clusters": ["benchmark_clusters"],
        "bench.scores.score_distributions": ["score_distributions"],
        "bench.checks.benchmark_information": ["benchmark_information"],
        "bench.benchmark.metafeature_effect": ["metafeature_effect"],
        "bench.modelling.select_model": ["select_model"],
        "bench.modelling.recommend": ["recommend"],
        "bench.outperforming.outperforming": ["outperforming"],
        "bench.ranking.aggregates": ["aggregate_scores"],
        "bench.ranking.rank": ["rank"],
        "bench.variation.ranking_reliability": ["ranking_reliability"],
        "bench.checks.check": ["check"],
        "bench.failures.failure_rates": ["failure_rates"],
        "bench.robustness.robustness": ["robustness"],
        "bench.robustness.variant": ["variant"],
        "bench.checks.seed_effect": ["seed_effect"],
        "bench.benchmark.benchmark_effects": ["benchmark_effects"],
        "bench.variation.variance_sources": ["variance_sources"],
        "report.analysis": ["analyze"],
    },
)


def __getattr__(name: str) -> _Any:
    """A name when it is first used; a guessed one leads to what it means, or says what to write."""
    if name in __all__:
        return _load(name)
    from lmemtest.core.hints import sought

    return sought(__name__, name, __all__)
