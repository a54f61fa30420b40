"""The curves of a plan are its numbers, on logarithmic axes."""

from __future__ import annotations

import numpy as np
import pytest

import lmemtest as lt
from lmemtest.errors import ArgumentError

ONE = {"tuning": 0.4, "data": 0.9, "seed": 0.3}


def test_curves_and_points_are_those_of_the_plan():
    found = lt.plan(ONE, trials=50, target=0.25, current={"seed": 3})
    ax = lt.plots.plan_plot(found)
    panel = ax.child_axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    curves = [line for line in panel.lines if line.get_label() == "_standard_error"]
    table = found.to_frame("curves")
    for line, (_, rows) in zip(curves, table.groupby("curve", sort=False), strict=True):
        np.testing.assert_allclose(line.get_xydata(), rows[["cost", "standard_error"]])
    points = [line.get_xydata()[0] for line in panel.lines if line.get_label() == "_point"]
    rows = found.to_frame().set_index("allocation").loc[["best", "current"], ["cost", "standard_error"]]
    np.testing.assert_allclose(points, rows)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "best", "one tuning run", "ideal estimator", "more seeds as now", "plan", "current",
    ]  # fmt: skip
    low, high = panel.get_ylim()
    assert low < table["standard_error"].min() < table["standard_error"].max() < high
    assert "target 0.25" in [text.get_text() for text in panel.texts]


def test_a_plan_without_tuning_has_one_curve():
    ax = lt.plan(lt.VarianceComponents(interaction_sd=0.02, residual_sd=0.03), n_algorithms=2, budget=400).plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["best", "plan"]


def test_nothing_that_varies_has_no_figure():
    with pytest.raises(ArgumentError, match="standard error of 0 "):
        lt.plan({"tuning": 0.0, "seed": 0.0}, trials=5, budget=100).plot()
