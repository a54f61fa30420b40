"""Figures: results in, `Axes` out; the figure of a question ``x`` is ``x_plot`` in the file ``x``.

Every figure takes a result object, computes nothing but the layout, and draws inside the rectangle of the
axes that it is given, labels included. With ``ax=None`` it makes a new figure whose size grows with the
number of rows.

The functions load on first use, because matplotlib costs more to import than the rest of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submod_attrs={
        "_canvas": ["detached_figures"],
        "anytime": ["anytime_differences_plot", "anytime_plot", "cd_ribbon"],
        "audit": ["audit_plot"],
        "benchmark_clusters": ["benchmark_clusters_plot"],
        "benchmark_effects": ["benchmark_effects_plot"],
        "benchmark_information": ["benchmark_information_plot"],
        "budget_effect": ["budget_effect_plot"],
        "diagnosis": ["diagnosis_plot", "qq_plot", "residuals_plot", "scale_plot"],
        "emmeans": ["emmeans_plot"],
        "horizons": ["horizons_plot"],
        "influence": ["influence_plot"],
        "metafeature_effect": ["metafeature_effect_plot"],
        "pairs": ["pairs_matrix_plot", "pairs_plot"],
        "power": ["power_plot"],
        "profile": ["profile_plot"],
        "random_effects": ["random_effects_plot"],
        "ranking_reliability": ["ranking_reliability_plot"],
        "relative_ranks": ["relative_ranks_plot"],
        "score_distributions": ["score_distributions_plot"],
        "seed_effect": ["seed_effect_plot"],
        "selection": ["selection_plot"],
        "separation": ["cd_diagram"],
        "tuning": [
            "tuning_band_plot",
            "tuning_best_of_plot",
            "tuning_compare_plot",
            "tuning_coverage_plot",
            "tuning_curve_plot",
            "tuning_curves_plot",
            "tuning_expected_best_plot",
            "tuning_plan_plot",
        ],
        "tuning_fit": ["tuning_fit_plot"],
        "variance_sources": ["variance_sources_plot"],
    },
)

if TYPE_CHECKING:
    from lmemtest.plots._canvas import detached_figures as detached_figures
    from lmemtest.plots.anytime import anytime_differences_plot as anytime_differences_plot
    from lmemtest.plots.anytime import anytime_plot as anytime_plot
    from lmemtest.plots.anytime import cd_ribbon as cd_ribbon
    from lmemtest.plots.audit import audit_plot as audit_plot
    from lmemtest.plots.benchmark_clusters import benchmark_clusters_plot as benchmark_clusters_plot
    from lmemtest.plots.benchmark_effects import benchmark_effects_plot as benchmark_effects_plot
    from lmemtest.plots.benchmark_information import benchmark_information_plot as benchmark_information_plot
    from lmemtest.plots.budget_effect import budget_effect_plot as budget_effect_plot
    from lmemtest.plots.diagnosis import diagnosis_plot as diagnosis_plot
    from lmemtest.plots.diagnosis import qq_plot as qq_plot
    from lmemtest.plots.diagnosis import residuals_plot as residuals_plot
    from lmemtest.plots.diagnosis import scale_plot as scale_plot
    from lmemtest.plots.emmeans import emmeans_plot as emmeans_plot
    from lmemtest.plots.horizons import horizons_plot as horizons_plot
    from lmemtest.plots.influence import influence_plot as influence_plot
    from lmemtest.plots.metafeature_effect import metafeature_effect_plot as metafeature_effect_plot
    from lmemtest.plots.pairs import pairs_matrix_plot as pairs_matrix_plot
    from lmemtest.plots.pairs import pairs_plot as pairs_plot
    from lmemtest.plots.power import power_plot as power_plot
    from lmemtest.plots.profile import profile_plot as profile_plot
    from lmemtest.plots.random_effects import random_effects_plot as random_effects_plot
    from lmemtest.plots.ranking_reliability import ranking_reliability_plot as ranking_reliability_plot
    from lmemtest.plots.relative_ranks import relative_ranks_plot as relative_ranks_plot
    from lmemtest.plots.score_distributions import score_distributions_plot as score_distributions_plot
    from lmemtest.plots.seed_effect import seed_effect_plot as seed_effect_plot
    from lmemtest.plots.selection import selection_plot as selection_plot
    from lmemtest.plots.separation import cd_diagram as cd_diagram
    from lmemtest.plots.tuning import tuning_band_plot as tuning_band_plot
    from lmemtest.plots.tuning import tuning_best_of_plot as tuning_best_of_plot
    from lmemtest.plots.tuning import tuning_compare_plot as tuning_compare_plot
    from lmemtest.plots.tuning import tuning_coverage_plot as tuning_coverage_plot
    from lmemtest.plots.tuning import tuning_curve_plot as tuning_curve_plot
    from lmemtest.plots.tuning import tuning_curves_plot as tuning_curves_plot
    from lmemtest.plots.tuning import tuning_expected_best_plot as tuning_expected_best_plot
    from lmemtest.plots.tuning import tuning_plan_plot as tuning_plan_plot
    from lmemtest.plots.tuning_fit import tuning_fit_plot as tuning_fit_plot
    from lmemtest.plots.variance_sources import variance_sources_plot as variance_sources_plot
