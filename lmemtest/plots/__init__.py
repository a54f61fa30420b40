"""Figures: results in, `Axes` out; the figure of a question ``x`` is ``x_plot``, beside those of questions like it.

Every figure takes a result object, computes nothing but the layout, and draws inside the rectangle of the
axes that it is given, labels included. With ``ax=None`` it makes a new figure whose size grows with the
number of rows, or one of a journal's width: ``width="column"`` or ``"page"``. ``labels={name: text}`` writes other
names. ``gallery()`` lists all figures.

The functions load on first use, because matplotlib costs more to import than the rest of the package.
"""

from __future__ import annotations

from typing import Any as _Any

import lazy_loader as _lazy

_load, __dir__, __all__ = _lazy.attach(
    __name__,
    submod_attrs={
        "_canvas": ["detached_figures", "gallery"],
        "aggregate_scores": ["aggregate_scores_plot", "improvement_plot", "performance_profile_plot"],
        "anytime": ["anytime_differences_plot", "anytime_plot", "cd_ribbon"],
        "attempts": ["repeated_attempts_plot"],
        "behind_best": ["forest_plot"],
        "benchmark_clusters": ["benchmark_clusters_plot"],
        "benchmark_effects": ["benchmark_effects_plot"],
        "budget": ["budget_effect_plot", "relative_ranks_plot"],
        "cd_diagram_tikz": ["cd_diagram_tikz"],
        "cd_diagrams": ["cd_diagram", "cd_diagrams", "horizons_plot"],
        "checks": ["audit_plot", "benchmark_information_plot", "failure_rates_plot", "seed_effect_plot"],
        "diagnosis": ["diagnosis_plot", "influence_plot", "qq_plot", "residuals_plot", "scale_plot"],
        "emmeans": ["emmeans_plot"],
        "metafeature_effect": ["metafeature_effect_plot"],
        "model": ["profile_plot", "random_effects_plot", "selection_plot"],
        "looks": ["looks_plot"],
        "pairs": ["comparison_matrix_plot", "p_value_plot", "pairs_matrix_plot", "pairs_plot"],
        "posterior": ["posterior_maps_plot"],
        "power": ["plan_plot", "power_plot"],
        "ranking": [
            "evaluation_plot",
            "leaderboard_plot",
            "outperforming_plot",
            "ranking_plot",
            "rankings_plot",
            "votes_plot",
            "win_rate_plot",
        ],
        "score_distributions": ["score_distributions_plot"],
        "tuning": [
            "tuning_band_plot",
            "tuning_best_of_plot",
            "tuning_compare_plot",
            "tuning_curve_plot",
            "tuning_curves_plot",
            "tuning_expected_best_plot",
            "tuning_plan_plot",
        ],
        "tuning_fit": ["tuning_fit_plot"],
        "variation": ["projection_plot", "ranking_reliability_plot", "variance_sources_plot"],
    },
)


def load_alone() -> None:
    """Load what figures are drawn with, in a process that draws a dozen of them and ends.

    It looks for no garbage, a twentieth of its time; writes no tables of properties into the documentation of artists,
    a fifth of the time in which Matplotlib is loaded; and finds each font once and not for each text, a tenth of the
    time of figures.
    """
    import functools
    import gc

    import matplotlib.artist
    import matplotlib.font_manager

    gc.disable()
    matplotlib.artist.kwdoc = lambda artist: ""  # noqa: ARG005
    fonts: _Any = matplotlib.font_manager.fontManager
    fonts.findfont = functools.cache(fonts.findfont)
    import matplotlib.backends.backend_pdf
    import matplotlib.backends.backend_svg


def __getattr__(name: str) -> _Any:
    """A figure when it is first used; a guessed name leads to what it means, or says what to write."""
    if name in __all__:
        return _load(name)
    from lmemtest.core.hints import sought

    return sought(__name__, name, __all__)
