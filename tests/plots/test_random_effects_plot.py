"""The caterpillar plot draws what `random_effects` found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.plots import random_effects_plot


@pytest.fixture
def effects():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": np.repeat([f"benchmark {i:02d} <b>$x$" for i in range(20)], 6)})
    frame["y"] = np.repeat(rng.normal(size=20), 6) + rng.normal(size=120)
    frame.loc[frame["g"] == "benchmark 03 <b>$x$", "y"] += 20.0
    return lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects("g", target="conditional")


def points(ax):
    return [line for line in ax.get_lines() if line.get_label() == "_estimates"]


def test_levels_are_sorted_and_drawn_where_they_are(effects):
    ax = random_effects_plot(effects)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    rows = effects.to_frame().sort_values("estimate")
    assert labels == list(rows["level"])
    drawn = sorted((y, x) for line in points(ax) for x, y in zip(*line.get_data(), strict=True))
    assert [x for _, x in drawn] == pytest.approx(rows["estimate"].tolist())


def test_levels_that_stand_out_are_filled(effects):
    ax = random_effects_plot(effects)
    filled = [len(line.get_xdata()) for line in points(ax) if line.get_markerfacecolor() != "white"]
    assert filled == [len(effects.clear["Intercept"])]
    assert len(effects.clear["Intercept"]) >= 1


def test_of_many_levels_the_ends_are_drawn(effects):
    ax = random_effects_plot(effects, max_rows=7)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert len(labels) == 8
    assert labels[3] == "… 13 more …"
    assert labels[-1] == "benchmark 03 <b>$x$"
    words = ax.get_xlabel().replace("\n", " ")
    assert words.endswith("13 of 20 levels, those in the middle, are left out.")
    assert "left out" not in random_effects_plot(effects, max_rows=20).get_xlabel()


def test_bad_input(effects):
    with pytest.raises(lt.errors.ArgumentError, match=r"effects must be the result of random_effects\(\), got int"):
        random_effects_plot(3)
    with pytest.raises(ValueError, match="effect must be 'Intercept', got 'slope'"):
        random_effects_plot(effects, effect="slope")
    with pytest.raises(ValueError, match="max_rows must be"):
        random_effects_plot(effects, max_rows=1)
