"""Long labels stay inside a figure that is saved at another resolution than it was drawn at."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.plots import benchmark_clusters_plot, benchmark_effects_plot, detached_figures, metafeature_effect_plot


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    rng = np.random.default_rng(3)
    means = rng.normal(size=(14, 3)) + 0.3 * np.arange(3)
    scores = means[..., None, None] + 0.1 * rng.normal(size=(14, 3, 2, 4))
    names = {"tool": ("Bayesian optimisation with a very long name", "HB", "RS"), "prior": ("bad", "good")}
    names["task"] = [f"benchmark number {i} (dataset {7 * i})" for i in range(14)]
    return as_runs(table_of_scores(scores, "task tool prior seed", "loss", **names))


@pytest.fixture(scope="module")
def draw(runs):
    pair = {"algorithms": ("HB", "RS"), "metafeature": "prior"}
    clusters = lt.benchmark_clusters(runs, n_draws=20, rng=1)
    effects = lt.benchmark_effects(runs, rng=1)
    analysis = lt.metafeature_effect(runs, **pair, method="outcomes", n_draws=99, rng=0)
    model = lt.metafeature_effect(runs, **pair, rng=1)
    return {
        "dendrogram": lambda ax: benchmark_clusters_plot(clusters, ax=ax),
        "together": lambda ax: benchmark_clusters_plot(clusters, kind="together", ax=ax),
        "heatmap": lambda ax: benchmark_effects_plot(effects, ax=ax),
        "caterpillar": lambda ax: benchmark_effects_plot(effects, kind="caterpillar", ax=ax),
        "analysis": lambda ax: metafeature_effect_plot(analysis, ax=ax),
        "model": lambda ax: metafeature_effect_plot(model, ax=ax),
    }


@pytest.mark.parametrize("figure", ["dendrogram", "together", "heatmap", "caterpillar", "analysis", "model"])
def test_nothing_is_cut_at_any_resolution(draw, figure):
    with detached_figures():
        drawn = [draw[figure](None), draw[figure](Figure(figsize=(6.5, 5.0)).add_axes((0.0, 0.0, 1.0, 1.0)))]
    for ax, dpi in itertools.product(drawn, (60, 70, 75, 150, 300)):
        root = ax.figure.figure
        root.set_dpi(dpi)
        tight = ax.get_tightbbox()
        gaps = np.array([tight.x0, tight.y0, root.bbox.x1 - tight.x1, root.bbox.y1 - tight.y1]) * 72 / dpi
        assert (gaps > -0.5).all(), (dpi, gaps.round(1))  # half a point: the white rim of a letter
