"""Figures of a selection and of random effects show the numbers of their results."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels, words_below
from matplotlib.figure import Figure
from pytest import approx
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.modelling.select_model import select_model
from lmemtest.errors import ArgumentError
from lmemtest.plots import random_effects_plot
from lmemtest.plots.model import selection_plot


def make_runs(k=3, *, long=False):
    rng = np.random.default_rng(k)
    pair, instance = rng.normal(size=(k, 9)), rng.normal(size=(9, 2))
    tool = "a very long column of algorithms with $x$ and <b>" if long else "tool"
    prior = "how good the prior is, in the words of its authors" if long else "prior"
    scores = pair[:, :, None, None] + instance[:, :, None] + rng.normal(size=(k, 9, 2, 2))
    names = {"tool": [f"A{i}" for i in range(k)], "task": [f"t{j}" for j in range(9)], "prior": ["p0", "p1"]}
    frame = table_of_scores(scores, "tool task prior seed", "loss", **names)
    return as_runs(frame.rename(columns={"tool": tool, "prior": prior}), algorithm=tool, metafeatures=[prior])


MAKERS = {
    "path by tests": select_model,
    "path by bic": lambda runs: select_model(runs, criterion="bic"),
    "no step": lambda runs: select_model(runs, candidates=["(1 | seed)"]),
    "models": lambda runs: select_model(runs, method="best", candidates=["benchmark", *runs.metafeatures]),
    "downwards": lambda runs: select_model(runs, candidates=["benchmark", *runs.metafeatures], method="backward"),
}


@functools.cache
def found_by(name, k=3, *, long=False):
    return MAKERS[name](make_runs(k, long=long))


@pytest.mark.parametrize("name", MAKERS)
def test_every_figure_is_readable(name, assert_readable):
    assert_readable(selection_plot(found_by(name)))
    assert_readable(selection_plot(found_by(name, 5, long=True), ax=Figure(figsize=(5, 4)).subplots(), max_models=6))


def test_the_path_shows_the_criterion_of_all_candidates():
    found = found_by("path by bic")
    path = found.to_frame()
    ax = selection_plot(found)
    tried, added = lines(ax, "_estimates")
    assert added.get_xdata() == approx(found.steps["bic"].to_numpy())
    assert added.get_ydata() == approx(np.arange(len(found.chosen) + 1))
    others = path[~path["chosen"] & path["bic"].notna()]
    assert tried.get_xdata() == approx(others["bic"].to_numpy())
    assert tried.get_ydata() == approx(others["step"].to_numpy())
    labels = row_labels(ax)
    assert labels == ["start", *(f"+ {term}" for term in found.chosen), "nothing more"]
    tests = found_by("path by tests")
    (_, likelihood) = lines(selection_plot(tests), "_estimates")
    assert likelihood.get_xdata() == approx(-2 * tests.steps["llf"].to_numpy())


def test_the_matrix_has_a_dot_for_each_term_and_a_bar_for_each_difference():
    found = found_by("models")
    table = found.to_frame().head(7)
    ax = selection_plot(found, max_models=7)
    terms = row_labels(ax)
    drawn = {(int(x), terms[int(y)]) for line in lines(ax, "_has") for x, y in zip(*line.get_data(), strict=True)}
    assert drawn == {(column, text) for column, own in enumerate(table["terms"]) for text in own}
    shared = f"Columns: models, the best in blue and bold. Dots: their terms beyond {found.start.formula}."
    singular = " * singular: a variance is zero or a correlation one." * bool(table["singular"].any())
    assert words_below(ax) == shared + singular
    (bars,) = ax.child_axes
    assert [bar.get_height() for bar in bars.patches] == approx(table["delta"].tolist())
    ranks = [label.get_text() for label in ax.get_xticklabels()]
    assert [text.rstrip("*") for text in ranks] == [str(rank) for rank in table["rank"]]
    assert [text.endswith("*") for text in ranks] == table["singular"].tolist()


def test_terms_are_read_along_and_a_column_of_a_journal_has_fewer_models():
    found = found_by("models")
    for width, models in (("page", 12), ("column", 6)):
        ax = selection_plot(found, width=width)
        assert len(ax.get_xticklabels()) == models
        assert {label.get_rotation() for label in [*ax.get_yticklabels(), *ax.get_xticklabels()]} == {0.0}
        assert "best" in words_below(ax)
    few = selection_plot(found_by("models", 5, long=True), max_models=1)  # a singular model, which is not taken
    assert words_below(few).startswith("Columns: models. Dots:")


def test_errors_name_the_argument():
    message = r"^result must be the result of select_model\(\), got str\.$"
    with pytest.raises(ArgumentError, match=message):
        selection_plot("bic")
    found = found_by("models")
    with pytest.raises(ArgumentError, match=r"^ax is too small: a matrix of 12 models and \d terms needs at least"):
        selection_plot(found, ax=Figure(figsize=(8, 1)).subplots())
    with pytest.raises(ArgumentError, match=r"^max_models must be a whole number of at least 1, got 0\.$"):
        selection_plot(found, max_models=0)


@pytest.fixture
def effects():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": np.repeat([f"benchmark {i:02d} <b>$x$" for i in range(20)], 6)})
    frame["y"] = np.repeat(rng.normal(size=20), 6) + rng.normal(size=120)
    frame.loc[frame["g"] == "benchmark 03 <b>$x$", "y"] += 20.0
    return lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects("g", target="conditional")


def points(ax):
    return lines(ax, "_estimates")


def test_levels_are_sorted_and_drawn_where_they_are(effects):
    ax = random_effects_plot(effects)
    labels = row_labels(ax)
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
    labels = row_labels(ax)
    assert len(labels) == 8
    assert labels[3] == "… 13 more …"
    assert labels[-1] == "benchmark 03 <b>$x$"
    words = words_below(ax)
    assert words.endswith("13 of 20 levels, those in the middle, are left out.")
    assert "left out" not in words_below(random_effects_plot(effects, max_rows=20))


def test_bad_input(effects):
    with pytest.raises(lt.errors.ArgumentError, match=r"effects must be the result of random_effects\(\), got int"):
        random_effects_plot(3)
    with pytest.raises(ValueError, match="effect must be 'Intercept', got 'slope'"):
        random_effects_plot(effects, effect="slope")
    with pytest.raises(ValueError, match="max_rows must be"):
        random_effects_plot(effects, max_rows=1)
