"""Figures: results in, `Axes` out.

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
        "calibration": ["calibration_plot"],
        "caterpillar": ["caterpillar_plot"],
        "clustering": ["benchmark_clusters_plot"],
        "critical_difference": ["cd_diagram"],
        "diagnostics": ["diagnosis_plot", "qq_plot", "residuals_plot", "scale_plot"],
        "effects": ["benchmark_effects_plot"],
        "evidence_plot": ["evidence_plot", "winning_plot"],
        "fidelity": ["fidelity_plot"],
        "horizons": ["horizons_plot"],
        "influence_plot": ["influence_plot"],
        "marginal_means": ["emmeans_plot"],
        "metafeature": ["metafeature_plot"],
        "pairwise": ["pairs_matrix_plot", "pairs_plot"],
        "parametric_curve_plot": ["parametric_curve_plot"],
        "power_plot": ["power_plot"],
        "profile_plot": ["profile_plot"],
        "relative_ranks": ["relative_ranks_plot"],
        "reliability": ["reliability_plot"],
        "result_curves": ["cdf_band_plot", "coverage_plot", "expected_best_plot", "tuning_curve_plot"],
        "sanity": ["information_plot", "seed_plot"],
        "selection": ["selection_plot"],
        "shrinkage": ["shrunken_effects_plot"],
        "tuning_curves": ["tuning_curves_plot"],
        "tuning_plan": ["tuning_plan_plot"],
        "variation": ["variation_plot"],
        "violins": ["violin_plot"],
    },
)

if TYPE_CHECKING:
    from lmemtest.plots._canvas import detached_figures as detached_figures
    from lmemtest.plots.anytime import anytime_differences_plot as anytime_differences_plot
    from lmemtest.plots.anytime import anytime_plot as anytime_plot
    from lmemtest.plots.anytime import cd_ribbon as cd_ribbon
    from lmemtest.plots.calibration import calibration_plot as calibration_plot
    from lmemtest.plots.caterpillar import caterpillar_plot as caterpillar_plot
    from lmemtest.plots.clustering import benchmark_clusters_plot as benchmark_clusters_plot
    from lmemtest.plots.critical_difference import cd_diagram as cd_diagram
    from lmemtest.plots.diagnostics import diagnosis_plot as diagnosis_plot
    from lmemtest.plots.diagnostics import qq_plot as qq_plot
    from lmemtest.plots.diagnostics import residuals_plot as residuals_plot
    from lmemtest.plots.diagnostics import scale_plot as scale_plot
    from lmemtest.plots.effects import benchmark_effects_plot as benchmark_effects_plot
    from lmemtest.plots.evidence_plot import evidence_plot as evidence_plot
    from lmemtest.plots.evidence_plot import winning_plot as winning_plot
    from lmemtest.plots.fidelity import fidelity_plot as fidelity_plot
    from lmemtest.plots.horizons import horizons_plot as horizons_plot
    from lmemtest.plots.influence_plot import influence_plot as influence_plot
    from lmemtest.plots.marginal_means import emmeans_plot as emmeans_plot
    from lmemtest.plots.metafeature import metafeature_plot as metafeature_plot
    from lmemtest.plots.pairwise import pairs_matrix_plot as pairs_matrix_plot
    from lmemtest.plots.pairwise import pairs_plot as pairs_plot
    from lmemtest.plots.parametric_curve_plot import parametric_curve_plot as parametric_curve_plot
    from lmemtest.plots.power_plot import power_plot as power_plot
    from lmemtest.plots.profile_plot import profile_plot as profile_plot
    from lmemtest.plots.relative_ranks import relative_ranks_plot as relative_ranks_plot
    from lmemtest.plots.reliability import reliability_plot as reliability_plot
    from lmemtest.plots.result_curves import cdf_band_plot as cdf_band_plot
    from lmemtest.plots.result_curves import coverage_plot as coverage_plot
    from lmemtest.plots.result_curves import expected_best_plot as expected_best_plot
    from lmemtest.plots.result_curves import tuning_curve_plot as tuning_curve_plot
    from lmemtest.plots.sanity import information_plot as information_plot
    from lmemtest.plots.sanity import seed_plot as seed_plot
    from lmemtest.plots.selection import selection_plot as selection_plot
    from lmemtest.plots.shrinkage import shrunken_effects_plot as shrunken_effects_plot
    from lmemtest.plots.tuning_curves import tuning_curves_plot as tuning_curves_plot
    from lmemtest.plots.tuning_plan import tuning_plan_plot as tuning_plan_plot
    from lmemtest.plots.variation import variation_plot as variation_plot
    from lmemtest.plots.violins import violin_plot as violin_plot
