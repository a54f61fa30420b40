"""The figure of an evaluation draws its accuracies, intervals and groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

import lmemtest as lt


def test_rows_are_models_with_both_intervals_and_their_groups():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        [(m, t, i, int(rng.random() < 0.4 + 0.2 * k)) for k, m in enumerate("ABC") for t in "xyz" for i in range(30)],
        columns=["model", "task", "item", "right"],
    )
    found = lt.evaluate(table, model="model", task="task", item="item", score="right")
    ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == found.models["model"].tolist()
    drawn = [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"]
    ends = [found.models[[f"ci_low_{name}", f"ci_high_{name}"]].to_numpy() for name in ("these", "like")]
    np.testing.assert_allclose(drawn, np.concatenate(ends))
    letters = [text.get_text() for text in ax.texts if "|" in text.get_text()]
    assert letters == (found.models["letters_these"] + " | " + found.models["letters_like"]).tolist()
