"""The figure of repeated attempts draws the estimates of the result, from the accuracy on."""

from __future__ import annotations

import numpy as np
import pytest
from study import table_of_scores

import lmemtest as lt
from lmemtest.errors import ArgumentError


def repeated(models, k=None, tasks=2):
    right = np.random.default_rng(1).random((models, tasks, 8, 4)) < np.linspace(0.3, 0.7, models)[:, None, None, None]
    table = table_of_scores(right.astype(int), "model task item epoch")
    roles = {"model": "model", "task": "task", "item": "item", "epoch": "epoch", "score": "score"}
    return lt.repeated_attempts(table, **roles, k=k)


@pytest.mark.parametrize(("models", "k"), [(2, None), (5, [3]), (20, [2, 4]), (2, 1)])
def test_curves_begin_at_the_accuracy_and_are_the_estimates(models, k):
    found = repeated(models, k)
    panels = found.plot().child_axes
    assert len(panels) == found.models["statistic"].nunique() - 1  # agreement has no curve
    once = found.models[found.models["k"] == 1]["estimate_these"].tolist()
    for panel, statistic in zip(panels, ["pass@k", "pass^k", "maj@k"], strict=False):
        curves = [line for line in panel.lines if line.get_label() == "_curve"]
        assert [line.get_ydata()[0] for line in curves] == once
        last = found.models[(found.models["statistic"] == statistic) & (found.models["k"] == found.k[-1])]
        ends = last.set_index("model").loc[list(dict.fromkeys(found.models["model"])), "estimate_these"]
        assert [line.get_ydata()[-1] for line in curves] == ends.tolist()
        assert len({line.get_marker() for line in curves}) == min(models, 8)  # told apart in grey


def test_intervals_are_of_a_population_that_the_table_tells_of():
    assert "95 % intervals for tasks like these" in " ".join(
        text.get_text() for text in repeated(2).plot(question="tasks like these").texts
    )
    with pytest.raises(ArgumentError, match="question must be"):
        repeated(2, tasks=1).plot(question="tasks like these")
