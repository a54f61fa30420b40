"""The figure of estimators shows the numbers of the result."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lmemtest.bench.estimators.quality import quality_from_components, quality_from_scores
from lmemtest.errors import ArgumentError
from lmemtest.plots import estimator_decomposition_plot, estimator_quality_plot


def curves(ax):
    return [line for line in ax.child_axes[0].lines if line.get_label() == "_standard_error"]


def test_each_estimator_has_its_curve_over_k():
    found = quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50)
    ax = found.plot()
    drawn = found.to_frame().groupby("estimator", sort=False)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [name for name, _ in drawn]
    for line, (_, rows) in zip(curves(ax), drawn, strict=True):
        assert_allclose(line.get_xydata(), rows[["k", "standard_error"]])
    (panel,) = ax.child_axes
    assert panel.get_xscale() == "log"
    assert panel.get_ylim()[0] <= 0.0
    assert not panel.collections


def test_bands_are_the_intervals_from_scores():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6, 1)) + rng.normal(size=(6, 10))
    found = quality_from_scores({"init new $x$": scores}, ideal=rng.normal(size=9))
    ax = estimator_quality_plot(found)
    (panel,) = ax.child_axes
    assert len(panel.collections) == 2
    ends = found.to_frame().groupby("estimator", sort=False)[["ci_low", "ci_high"]]
    for band, (_, rows) in zip(panel.collections, ends, strict=True):
        y = band.get_paths()[0].vertices[:, 1]
        assert_allclose([y.min(), y.max()], [rows["ci_low"].min(), rows["ci_high"].max()])
    with pytest.raises(ArgumentError, match=r"must be the result of quality_from_components\(\)"):
        estimator_quality_plot(3)


def test_the_decomposition_has_a_column_for_each_part():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6, 1)) + rng.normal(size=(6, 10))
    found = quality_from_scores({"init new": scores}, ideal=rng.normal(size=9))
    table = found.to_frame("decomposition")
    ax = estimator_decomposition_plot(found)
    assert [label.get_text() for label in ax.child_axes[0].get_yticklabels()] == [
        "ideal, k = 1",
        "ideal, k = 10",
        "init new, k = 10",
    ]
    for box, name in zip(ax.child_axes, ["bias", "standard_error", "rho", "rmse"], strict=True):
        (dots,) = [line for line in box.lines if line.get_label() == "_estimates"]
        assert_allclose(dots.get_xdata(), table[name])
        spans = [line.get_xdata() for line in box.lines if line.get_label() == "_interval"]
        known = table[[f"{name}_low", f"{name}_high"]].dropna() if name != "rmse" else np.empty((0, 2))
        assert_allclose(np.reshape(spans, (-1, 2)), known)
