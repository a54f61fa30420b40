"""The diagram: groups are pairs that were tested, the ruler is that of the pairs."""

from __future__ import annotations

import math
import re
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx
from refusals import refuses
from scipy import stats

from lmemtest.compat.significance_analysis import cd_diagram, model, post_hoc
from lmemtest.errors import ArgumentError, UnknownColumnError

RankResult = namedtuple("RankResult", "rankdf pvalue cd alpha")


def tables(p=(0.001, 0.3, 0.001)):
    """A and C do not differ, B lies between them and differs from both."""
    estimates = pd.DataFrame({"algorithm": list("ABC"), "Estimate": [1.0, 1.5, 2.0]})
    contrasts = pd.DataFrame({"Contrast": ["A - B", "A - C", "B - C"], "Estimate": [-0.5, -1.0, -0.5]})
    return estimates, contrasts.assign(**{"SE": [0.1, 0.6, 0.1], "DF": [20.0, 4.0, 20.0], "P-val": p})


def found(result, system_id="algorithm"):
    return post_hoc._of_tables(*result, system_id)


def lines(figure, label):
    return [line for line in figure.axes[0].lines if line.get_label() == label]


def test_a_group_holds_only_pairs_that_do_not_differ(peer):
    """Peer: a bar from A to C passes B as if it belonged to them."""
    assert len(peer["diagram_with_gap"]) == 1
    assert found(tables()).groups == (("A", "C"), ("B",))
    figure = cd_diagram(tables())
    assert isinstance(figure, Figure)
    assert len(lines(figure, "_passed")) == 1  # B is marked as not joined
    assert not lines(figure, "_bar")


def words(figure):
    return " ".join(text.get_text().replace("\u00a0", " ") for text in figure.axes[0].texts)


def test_a_pair_without_a_contrast_is_undecided_and_drawn_so():
    """Before, "All pairs differ significantly" on one contrast of three."""
    estimates, contrasts = tables()
    result = estimates, contrasts.iloc[[0]]
    decision = found(result).decision
    assert decision.loc["A", "B"]
    assert decision.loc[["A", "B"], "C"].isna().all()
    assert found(result).groups == (("A", "C"), ("B", "C"))
    figure = cd_diagram(result)
    assert "Algorithms on no common bar differ significantly (p-values of the contrasts, α = 0.05)" in words(figure)
    assert "Diamonds: 2 of 3 pairs have no test and are undecided." in words(figure)
    assert "All pairs" not in words(figure)
    assert lines(figure, "_open bar")[0].get_linestyle() == "--"
    assert not lines(figure, "_bar")


def test_without_any_contrast_nothing_is_decided():
    estimates, contrasts = tables()
    figure = cd_diagram((estimates, contrasts.iloc[:0]))
    assert "No pair has a test: nothing is decided." in words(figure)
    assert "ignificant" not in words(figure)


def test_a_pair_without_a_p_value_is_not_called_different():
    result = tables(p=(0.001, math.nan, 0.001))
    assert found(result).groups == (("A", "C"), ("B",))
    assert "Diamonds: 1 of 3 pairs has no test and is undecided." in words(cd_diagram(result))


def test_every_pair_has_its_own_critical_difference():
    """Peer: the smallest standard error with the smallest degrees of freedom, the largest with the largest."""
    q = [stats.studentized_range.ppf(0.95, 3, df) / math.sqrt(2) for df in (20, 4)]
    assert found(tables()).critical_difference == approx((0.1 * q[0], 0.6 * q[1]), rel=1e-6)
    assert found(tables()).critical_difference != approx((0.1 * q[1], 0.6 * q[0]), rel=1e-2)


def test_the_intervals_of_the_contrasts_are_the_critical_difference(table):
    estimates, contrasts = model("value ~ algorithm + (1|benchmark)", table("real")).post_hoc("algorithm")
    half = (contrasts["97.5_ci"] - contrasts["2.5_ci"]) / 2
    assert found((estimates, contrasts)).critical_difference == approx((half.min(), half.max()))
    q = stats.studentized_range.ppf(0.95, 3, contrasts["DF"].iloc[0]) / math.sqrt(2)
    assert half.iloc[0] == approx(q * contrasts["SE"].iloc[0], rel=1e-6)


def test_without_a_spread_there_is_no_ruler():
    estimates, contrasts = tables()
    figure = cd_diagram((estimates, contrasts[["Contrast", "P-val"]]))
    assert not lines(figure, "_cd max")


def test_names_may_hold_the_sign_between_names():
    estimates = pd.DataFrame({"algorithm": ["A - B", "C"], "Estimate": [1.0, 2.0]})
    contrasts = pd.DataFrame({"Contrast": ["(A - B) - C"], "P-val": [0.2]})
    assert found((estimates, contrasts)).groups == (("A - B", "C"),)


@pytest.mark.parametrize("reverse", [False, True])
def test_reverse_turns_the_axis(table, reverse):
    result = model("value ~ algorithm + (1|benchmark)", table("real")).post_hoc("algorithm")
    figure = cd_diagram(result, reverse=reverse)
    left, right = figure.axes[0].get_xlim()
    assert (left > right) == reverse
    label = next(text for text in figure.axes[0].texts if text.get_text() == "RS")  # the highest mean
    assert label.get_horizontalalignment() == ("right" if reverse else "left")
    box = label.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_width_and_axes_of_the_caller(table, plt):
    result = model("value ~ algorithm + (1|benchmark)", table("real")).post_hoc("algorithm")
    assert cd_diagram(result, width=9).get_size_inches()[0] == 9.0
    assert cd_diagram(result, width=5).get_size_inches()[0] == 5.0
    _, ax = plt.subplots(figsize=(7, 3))
    assert cd_diagram(result, parent_ax=ax) is None
    assert len(ax.lines) > 5


def test_pyplot_knows_the_figure(table, plt):
    """So that `plt.savefig` and `plt.show` of a script find it."""
    result = model("value ~ algorithm + (1|benchmark)", table("real")).post_hoc("algorithm")
    assert cd_diagram(result) is plt.gcf()


def test_tables_of_the_caller_are_not_changed():
    result = tables()
    before = [table.copy() for table in result]
    cd_diagram(result)
    for table, kept in zip(result, before, strict=True):
        pd.testing.assert_frame_equal(table, kept)


# ---------------------------------------------------------------- autorank


def test_ranks_of_autorank_are_drawn():
    ranks = pd.DataFrame({"meanrank": [2.9, 1.0, 1.8]}, index=["RS", "PB", "HB"])
    result = RankResult(rankdf=ranks, pvalue=0.001, cd=1.0, alpha=0.05)
    decisions = post_hoc._of_ranks(result)
    assert decisions.levels == ("PB", "HB", "RS")
    assert decisions.groups == (("PB", "HB"), ("RS",))
    assert decisions.critical_difference == (1.0, 1.0)
    assert bool(decisions.significant.loc["PB", "RS"])
    assert isinstance(cd_diagram(result), Figure)


def test_autoranks_groups_are_those_within_the_critical_difference():
    rng = np.random.default_rng(3)
    for _ in range(20):
        ranks = np.sort(rng.uniform(1, 6, 6))
        frame = pd.DataFrame({"meanrank": ranks}, index=list("ABCDEF"))
        groups = post_hoc._of_ranks(RankResult(rankdf=frame, pvalue=0.0, cd=1.5, alpha=0.05)).groups
        spans = [tuple(frame.index[(ranks >= start) & (ranks <= start + 1.5)]) for start in ranks]
        longest = [s for s in spans if not any(set(s) < set(other) for other in spans)]
        assert set(groups) == set(longest)


def test_autorank_without_a_critical_difference_is_refused():
    ranks = pd.DataFrame({"meanrank": [1.0, 2.0]}, index=["A", "B"])
    with pytest.raises(ArgumentError, match=r"^result has no critical difference, because autorank chose another"):
        cd_diagram(RankResult(rankdf=ranks, pvalue=0.1, cd=None, alpha=0.05))


# ---------------------------------------------------------------- bad input


def test_bad_input(table):
    text = (
        "result must be the two tables of post_hoc or autorank's RankResult, got float. Pass the return value of "
        "post_hoc(...) as it is."
    )
    refuses(ArgumentError, f"^{re.escape(text)}$", cd_diagram, 3.0)
    refuses(UnknownColumnError, re.escape("result[0] names the column 'tool'"), cd_diagram, tables(), system_id="tool")
    estimates, contrasts = tables()
    text = (
        "result[1] has the contrast 'X - Y', which is not a difference of two of A, B, C. Pass both tables of the same "
        "post_hoc, and its factor as system_id."
    )
    refuses(ArgumentError, f"^{re.escape(text)}$", cd_diagram, (estimates, contrasts.assign(Contrast="X - Y")))
    grouped = model("value ~ algorithm*prior + (1|benchmark)", table("real")).post_hoc("algorithm", "prior")
    with pytest.raises(
        ArgumentError, match=r"^result has several estimates for one algorithm, so there is one diagram"
    ):
        cd_diagram(grouped)
    refuses(ArgumentError, r"^width must be a number of inches between 1 and 100, got 0", cd_diagram, tables(), width=0)


@pytest.mark.parametrize("width", [3.5, 5.0, 9.0])
def test_a_figure_of_a_given_width_has_no_empty_strip(width):
    """Before, a narrow figure was higher in proportion, and the diagram stood in the middle of it."""
    figure = cd_diagram(tables(), width=width)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    font = figure.axes[0].texts[-1].get_fontsize() * figure.dpi / 72
    assert figure.bbox.height - max(box.y1 for box in boxes) < 1.5 * font
    assert min(box.y0 for box in boxes) < 2 * font
    assert min(box.y0 for box in boxes) > 0
