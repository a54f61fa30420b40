"""Figures of a selection show the numbers of its result."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.bench.modelling.select_model import select_model
from lmemtest.errors import ArgumentError
from lmemtest.plots.model import selection_plot


def make_runs(k=3, *, long=False):
    rng = np.random.default_rng(k)
    pair, instance = rng.normal(size=(k, 9)), rng.normal(size=(9, 2))
    tool = "a very long column of algorithms with $x$ and <b>" if long else "tool"
    prior = "how good the prior is, in the words of its authors" if long else "prior"
    rows = [
        (f"A{i}", f"t{j}", f"p{m}", s, pair[i, j] + instance[j, m] + rng.normal())
        for i, j, m, s in itertools.product(range(k), range(9), range(2), range(2))
    ]
    frame = pd.DataFrame(rows, columns=[tool, "task", prior, "seed", "loss"])
    roles = {"algorithm": tool, "benchmark": "task", "seed": "seed", "metafeatures": [prior]}
    return lt.Runs(frame, score="loss", direction="minimize", **roles)


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
    assert_readable(selection_plot(found_by(name, 5, long=True), ax=Figure(figsize=(5, 4)).subplots(), max_rows=6))


def lines(ax, label):
    return [line for line in ax.get_lines() if line.get_label() == label]


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
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["start", *(f"+ {term}" for term in found.chosen), "nothing more"]
    tests = found_by("path by tests")
    (_, likelihood) = lines(selection_plot(tests), "_estimates")
    assert likelihood.get_xdata() == approx(-2 * tests.steps["llf"].to_numpy())


def test_the_matrix_has_a_dot_for_each_term_and_a_bar_for_each_difference():
    found = found_by("models")
    table = found.to_frame().head(7)
    ax = selection_plot(found, max_rows=7)
    terms = [label.get_text() for label in ax.get_xticklabels()]
    drawn = {(int(y), terms[int(x)]) for line in lines(ax, "_has") for x, y in zip(*line.get_data(), strict=True)}
    assert drawn == {(row, text) for row, own in enumerate(table["terms"]) for text in own}
    shared = f"Every model holds {found.start.formula}; dots: the terms that it has beyond."
    assert ax.get_xlabel().replace("\n", " ") == shared
    (side,) = ax.child_axes
    assert [bar.get_width() for bar in side.patches] == approx(table["delta"].tolist())
    ranks = [label.get_text() for label in ax.get_yticklabels()]
    assert [text.split()[-1] for text in ranks] == [str(rank) for rank in table["rank"]]
    assert [text.startswith("(singular) ") for text in ranks] == table["singular"].tolist()


def test_errors_name_the_argument():
    message = r"^result must be the result of select_model\(\), got str\.$"
    with pytest.raises(ArgumentError, match=message):
        selection_plot("bic")
    found = found_by("models")
    with pytest.raises(ArgumentError, match=r"^ax is too small: a matrix of 12 models and \d terms needs at least"):
        selection_plot(found, ax=Figure(figsize=(1, 1)).subplots())
    with pytest.raises(ArgumentError, match=r"^max_rows must be a whole number of at least 1, got 0\.$"):
        selection_plot(found, max_rows=0)
