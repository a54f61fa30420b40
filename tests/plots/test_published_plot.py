"""The figure of published improvements shows the scores and the reach of noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lmemtest.bench.outperforming.published import published_improvements
from lmemtest.plots import published_improvements_plot

RESULTS = {"year": [2017, 2015, 2016, 2016, 2018, 2019], "accuracy": [0.945, 0.90, 0.93, 0.94, 0.94, 0.99]}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_marks_are_scores_and_bands_reach_as_far_as_noise(direction):
    result = published_improvements(RESULTS, score="accuracy", time="year", sd=0.01, direction=direction)
    (panel,) = published_improvements_plot(result).child_axes
    marks = {line.get_label(): line.get_xydata() for line in panel.lines}
    for conclusion, rows in result.table.groupby("conclusion"):
        assert_allclose(marks[f"_{conclusion}"], rows[["time", "score"]])
    reach = [np.ptp(band.get_paths()[0].vertices[:, 1]) for band in panel.collections]
    best = result.table["score"].agg(["min", "max"]) if direction == "maximize" else [0.9, 0.9]
    assert_allclose(reach, np.ptp(best) + np.array([result.threshold, result.sd]))
