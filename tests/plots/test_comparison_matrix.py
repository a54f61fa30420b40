"""Matrices of all pairs: the numbers of the result, decisions from one matrix, whatever the order and the direction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from figures import row_labels, words_below
from matplotlib.figure import Figure

from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import comparison_matrix_plot, p_value_plot

NAMES = list("ABCDE")
MEANS = pd.Series([0.91, 0.88, 0.84, 0.75, 0.74], index=NAMES)
GIVEN = {"direction": "maximize", "alpha": 0.05, "test": "Conover"}
LONG = [f"a very long name of a method, number {i:02d} $x_{i}$" for i in range(25)]


def p_values():
    p = pd.DataFrame(np.abs(MEANS.to_numpy()[:, None] - MEANS.to_numpy()), NAMES, NAMES)
    p = np.exp(-60.0 * p)
    p.loc["A", "E"] = p.loc["E", "A"] = 0.2  # out of turn
    p.loc["B", "D"] = p.loc["D", "B"] = np.nan
    return p


def counts():
    rng = np.random.default_rng(2)
    wins, ties = np.triu(rng.integers(0, 12, (5, 5)), 1), np.triu(rng.integers(0, 3, (5, 5)), 1)
    wins = wins + np.triu(15 - wins - ties, 1).T
    return pd.DataFrame(wins, NAMES, NAMES), pd.DataFrame(ties + ties.T, NAMES, NAMES)


def cells(ax):
    """Lines, boldness and colour of each cell, by the names of its row and column."""
    names = row_labels(ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    (mesh,) = [mesh for mesh in ax.collections if mesh.get_label() == "_cells"]
    colours = mesh.to_rgba(mesh.get_array())
    found = {}
    for text in ax.texts:
        column, row = map(int, text.get_position())
        look = text.get_fontweight(), colours[row, column]
        found[names[row], names[column]] = (text.get_text().split("\n"), *look)
    return found


def written(ax):
    """Lines and boldness of each cell."""
    return {pair: cell[:2] for pair, cell in cells(ax).items()}


def test_names_of_columns_are_read_along_where_a_line_may_end_after_a_sign(assert_readable):
    def heads(names, width):
        means = pd.Series(np.linspace(1.0, 2.0, len(names)), index=names)
        p = pd.DataFrame(np.full((len(names),) * 2, 0.5), names, names)
        ax = comparison_matrix_plot(means, p, **(GIVEN | {"direction": "minimize"}), width=width)
        assert_readable(ax)
        ticks = ax.get_xticklabels()
        return [tick.get_text() for tick in ticks], {tick.get_rotation() for tick in ticks}

    assert heads(["hyper+prior", "random+prior", "HB"], 4.0) == (["hyper+prior", "random+\nprior", "HB"], {0.0})
    assert heads(["hyperbandprior", "randomsearchprior", "HB"], 2.6)[1] == {90.0}  # no word is broken
    names, turned = heads(LONG[:3], 3.3)
    assert (names, turned) == (["[1]", "[2]", "[3]"], {0.0})


def test_numbers_of_a_scale_above_a_narrow_map_stay_in_the_figure(assert_readable):
    means = pd.Series([0.0, 1.5e5], index=["A", "B"])
    p = pd.DataFrame(np.full((2, 2), 0.5), means.index, means.index)
    assert_readable(comparison_matrix_plot(means, p, **(GIVEN | {"direction": "minimize"}), width="column"))


def test_small_differences_beside_large_ones_are_not_written_as_none():
    means = pd.Series([1.0, 1.62, 1414.3], index=list("ABC"))
    p = pd.DataFrame(np.full((3, 3), 0.5), means.index, means.index)
    found = written(comparison_matrix_plot(means, p, **(GIVEN | {"direction": "minimize"})))
    assert found["A", "B"][0][0] == "−0.6"
    assert found["C", "A"][0][0] == "1413"


def test_cells_hold_difference_outcome_and_p_value_and_are_bold_where_the_decision_says_so():
    wins, ties = counts()
    found = cells(comparison_matrix_plot(MEANS, p_values(), wins=wins, ties=ties, **GIVEN))
    decision = Decisions.of(MEANS, p_values(), **GIVEN).decision
    assert len(found) == 20
    for (row, column), (lines, weight, _) in found.items():
        assert float(lines[0].replace("−", "-")) == pytest.approx(MEANS[row] - MEANS[column])
        assert lines[1] == f"{wins.loc[row, column]}/{ties.loc[row, column]}/{wins.loc[column, row]}"
        decided = decision.loc[row, column]
        assert lines[2] == "no test" if decided is pd.NA else lines[2] != "no test"
        assert (weight == "bold") == (decided is not pd.NA and bool(decided))
    assert found["A", "B"][0][2] == "0.165"
    assert found["A", "E"][1] == "normal"  # the largest difference


def test_neither_the_order_of_the_columns_nor_the_direction_changes_a_decision():
    wins, ties = counts()
    want = cells(comparison_matrix_plot(MEANS, p_values(), wins=wins, ties=ties, **GIVEN))
    rng = np.random.default_rng(1)
    a, b, c, d = (list(rng.permutation(NAMES)) for _ in range(4))
    found = comparison_matrix_plot(
        MEANS.loc[a], p_values().loc[b, c], wins=wins.loc[d, a], ties=ties.loc[c, d], **GIVEN
    )
    assert written(found) == {pair: cell[:2] for pair, cell in want.items()}
    arrays = comparison_matrix_plot(
        MEANS.loc[a], p_values().loc[a, a].to_numpy(), wins=wins.loc[a, a].to_numpy(), ties=ties.loc[a, a].to_numpy(),
        **GIVEN,
    )  # fmt: skip
    assert written(arrays) == written(found)
    other = GIVEN | {"direction": "minimize"}
    turned = cells(comparison_matrix_plot(-MEANS, p_values(), wins=wins, ties=ties, **other))
    for pair, (lines, weight, colour) in want.items():
        assert turned[pair][0][0] == want[pair[::-1]][0][0]  # the sign of the score, and nothing else
        assert (turned[pair][0][1:], turned[pair][1]) == (lines[1:], weight)
        np.testing.assert_allclose(turned[pair][2], colour, atol=0.02)  # blue where the row is better


def test_pairs_of_a_model_are_shown_with_their_own_p_values(make):
    pairs = make.pairs(*make.cases["five"])
    found = cells(comparison_matrix_plot(pairs))
    sep = pairs.decisions()
    for row in pairs.to_frame().to_dict("records"):
        lines, weight, _ = found[row["left"], row["right"]]
        assert float(lines[0].replace("−", "-")) == pytest.approx(row["estimate"], abs=0.006)
        assert lines[1] == found[row["right"], row["left"]][0][1]
        assert (weight == "bold") == sep.significant.loc[row["left"], row["right"]]
    same = cells(comparison_matrix_plot(sep))
    assert {pair: cell[1] for pair, cell in same.items()} == {pair: cell[1] for pair, cell in found.items()}


def many(names):
    rng = np.random.default_rng(4)
    means = pd.Series(rng.normal(size=len(names)), index=names)
    p = pd.DataFrame(np.exp(-3.0 * np.abs(means.to_numpy()[:, None] - means.to_numpy())), names, names)
    wins = pd.DataFrame(rng.integers(0, 60, p.shape), names, names)
    return means, p, wins


@pytest.mark.parametrize("count", [2, 6, 25])
def test_matrices_are_readable_or_refused(assert_readable, count):
    means, p, wins = many(LONG[:count])
    assert_readable(comparison_matrix_plot(means, p, wins=wins, direction="minimize"))
    assert_readable(p_value_plot(means, p, direction="minimize"))
    small = Figure(figsize=(4.5, 4.2)).add_axes((0, 0, 1, 1))
    if count < 25:
        assert_readable(comparison_matrix_plot(means, p, wins=wins, direction="minimize", ax=small))
    else:
        with pytest.raises(ArgumentError, match=r"ax is too small: a map of 25 x 25 cells .* or ax=None"):
            comparison_matrix_plot(means, p, wins=wins, ax=small)
    assert_readable(p_value_plot(means, p, ax=Figure(figsize=(4.5, 4.2)).add_axes((0, 0, 1, 1))))


def classes(ax):
    (mesh,) = [mesh for mesh in ax.collections if mesh.get_label() == "_cells"]
    dots = [line.get_xydata().astype(int) for line in ax.lines if line.get_label() == "_dots"]
    return mesh.get_array(), {(int(y), int(x)) for x, y in np.concatenate([np.empty((0, 2)), *dots])}


def test_classes_are_those_of_the_p_values_and_dots_the_decisions():
    ordered = p_values().to_numpy()  # the names are in the order of the ranking
    off = ~np.eye(5, dtype=bool) & ~np.isnan(ordered)
    code, dots = classes(p_value_plot(MEANS, p_values(), **GIVEN))
    want = np.searchsorted([0.001, 0.01, 0.05], ordered, side="right")
    np.testing.assert_array_equal(np.asarray(code)[off], want[off])
    assert code[1, 3] == code[3, 1] == 4
    assert dots == set()  # the colours say it
    ax = p_value_plot(MEANS, p_values(), **GIVEN | {"alpha": 0.01})
    assert classes(ax)[1] == set(zip(*np.nonzero(off & (ordered < 0.01)), strict=True))
    assert "Dots: significant difference" in words_below(ax)


def test_decisions_without_p_values_have_classes_of_their_own():
    flags = (p_values() < 0.05).astype("boolean").mask(p_values().isna())
    ax = p_value_plot(MEANS, flags, direction="maximize")
    code, _ = classes(ax)
    np.testing.assert_array_equal(code[0, 1:], [1, 0, 0, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["significant", "not significant", "undecided"]
    assert "p-value" not in words_below(comparison_matrix_plot(MEANS, flags))


def test_what_cannot_be_a_matrix_is_refused(make):
    with pytest.raises(ArgumentError, match="ties needs counts of wins"):
        comparison_matrix_plot(MEANS, p_values(), ties=counts()[1])
    with pytest.raises(ArgumentError, match=r"wins must be a square pandas\.DataFrame"):
        comparison_matrix_plot(MEANS, p_values(), wins=3)
    with pytest.raises(ArgumentError, match="comparisons has its own"):
        comparison_matrix_plot(make.decisions(*make.cases["two"]), p_values())
    groups = make.pairs(("HB", "PB"), (1.0, 2.0, 1.5, 3.0), 0.1, groups=("good", "bad"))
    with pytest.raises(
        ArgumentError, match=r"these pairs are in groups by prior. Select one first: pairs.select\(prior="
    ):
        p_value_plot(groups)
