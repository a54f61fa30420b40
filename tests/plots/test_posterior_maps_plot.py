"""Maps of posterior probabilities show their numbers, rows and columns in one order."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from figures import row_labels
from matplotlib.figure import Figure

from lmemtest.errors import ArgumentError
from lmemtest.plots import posterior_maps_plot
from lmemtest.plots.posterior import SHOWN, SIGNS, WORDS

DECIDED = (1, 2, -1)


def make_pairs(names, rope=0.1, seed=1):
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["left", "right"])
    p = np.random.default_rng(seed).dirichlet([0.3, 0.2 if rope else 1e-9, 0.3], size=len(pairs))
    said = [DECIDED[i] if row[i] >= 0.95 else 0 for row, i in zip(p, p.argmax(axis=1), strict=True)]
    return pairs.assign(rope=rope, p_left=p[:, 0], p_equal=p[:, 1], p_right=p[:, 2], verdict=said)


def cells(ax):
    """Texts in the cells, by row and column."""
    size = len(ax.get_yticklabels())
    on_cells = [text for text in ax.texts if text.get_transform() == ax.transData]
    assert len(on_cells) == size * (size - 1)
    return {(round(y), round(x)): text.get_text() for text in on_cells for x, y in [text.get_position()]}


@pytest.mark.parametrize("show", ["better", "equivalent", "worse"])
def test_cells_are_the_probabilities_of_the_row_against_the_column(show):
    order = list("CAB")
    pairs = make_pairs("ABC")
    ax = posterior_maps_plot(pairs, show=show, order=order)
    assert row_labels(ax) == order
    assert [t.get_text() for t in ax.get_xticklabels()] == order
    shown = cells(ax)
    straight, turned = {"better": ("left", "right"), "equivalent": ("equal", "equal"), "worse": ("right", "left")}[show]
    for row in pairs.to_dict("records"):
        i, j = order.index(row["left"]), order.index(row["right"])
        assert float(shown[i, j]) == pytest.approx(row[f"p_{straight}"], abs=0.0051)
        assert float(shown[j, i]) == pytest.approx(row[f"p_{turned}"], abs=0.0051)


def test_signs_are_the_decisions_and_the_key_explains_them():
    pairs = pd.DataFrame({"left": ["A", "A", "B"], "right": ["B", "C", "C"], "rope": 0.1})
    pairs = pairs.assign(p_left=[0.97, 0.0, 0.5], p_equal=[0.03, 0.99, 0.1], p_right=[0.0, 0.01, 0.4])
    ax = posterior_maps_plot(pairs.assign(verdict=[1, 2, 0]), show="decision")
    signs = {word: SIGNS[code] for code, word in WORDS.items()}
    better, equal, worse, undecided = (signs[word] for word in ("better", "equivalent", "worse", "undecided"))
    assert cells(ax) == {
        (0, 1): better, (1, 0): worse, (0, 2): equal, (2, 0): equal, (1, 2): undecided, (2, 1): undecided
    }  # fmt: skip
    key = [text.get_text() for text in ax.texts if text.get_transform() != ax.transData]
    assert key == [better, "better", equal, "equivalent", worse, "worse", undecided, "undecided"]


def test_without_a_region_of_equivalence_two_maps_say_all():
    assert len(posterior_maps_plot(make_pairs("ABC")).figure.axes) == 5
    assert len(posterior_maps_plot(make_pairs("ABC", rope=0.0)).figure.axes) == 3


def test_a_pair_without_probabilities_has_a_dash():
    pairs = make_pairs("ABC")
    pairs.loc[0, ["rope", "p_left", "p_equal", "p_right"]] = np.nan
    pairs.loc[0, "verdict"] = 0
    shown = cells(posterior_maps_plot(pairs, show="better"))
    assert (shown[0, 1], shown[1, 0]) == ("–", "–")
    assert cells(posterior_maps_plot(pairs, show="decision"))[0, 1] == "–"


@pytest.mark.parametrize("show", SHOWN)
@pytest.mark.parametrize("count", [2, 5, 20])
def test_two_five_and_twenty_algorithms_fit(show, count, two_five_twenty, assert_fits):
    pairs = make_pairs(two_five_twenty[count])
    small = (7.5, 7.0) if show == "all" else (4.5, 4.0)
    assert_fits(lambda ax: posterior_maps_plot(pairs, show=show, ax=ax), small)


def test_maps_keep_inside_axes_that_a_layout_engine_made(assert_readable):
    figure = Figure(figsize=(12, 10), layout="constrained")
    ax = figure.subplots()
    posterior_maps_plot(make_pairs("ABCD"), ax=ax)
    assert_readable(ax)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (make_pairs("AB").drop(columns="p_equal"), {}, "it lacks p_equal"),
        (make_pairs("AB").iloc[:0], {}, "at least one pair"),
        (
            make_pairs("ABC"),
            {"order": ["A", "B"]},
            "order must have each algorithm of the pairs once, A, B, C; got A, B",
        ),
        (make_pairs("ABC"), {"show": "rope"}, "show must be 'all'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(pairs, options, message):
    with pytest.raises(ArgumentError, match=message):
        posterior_maps_plot(pairs, **options)
