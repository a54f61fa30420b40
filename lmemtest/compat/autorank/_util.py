"""The names of Autorank's private module, which other packages import."""

from __future__ import annotations

from lmemtest.compat.autorank.bayesian import rank_bayesian
from lmemtest.compat.autorank.decisions import get_sorted_rank_groups
from lmemtest.compat.autorank.figures import cd_diagram, ci_plot, posterior_maps
from lmemtest.compat.autorank.frequentist import (
    rank_multiple_nonparametric,
    rank_multiple_normal_homoscedastic,
    rank_two,
    test_normality,
)
from lmemtest.compat.autorank.result import RankResult

__all__ = [
    "RankResult",
    "cd_diagram",
    "ci_plot",
    "get_sorted_rank_groups",
    "posterior_maps",
    "rank_bayesian",
    "rank_multiple_nonparametric",
    "rank_multiple_normal_homoscedastic",
    "rank_two",
    "test_normality",
]
