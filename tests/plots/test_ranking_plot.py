"""Figures of a ranking show its decisions and numbers, whatever the method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels, words_below
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style, cd_diagram, comparison_matrix_plot, p_value_plot, ranking_plot


def wide(rows=12, names=("forest", "boosting", "a linear model with quite a long name", "$k$_nn", "tree")):
    rng = np.random.default_rng(2)
    level = np.array([0.0, 0.1, 0.9, 1.0, 2.0])[: len(names)]
    return pd.DataFrame(rng.normal(size=(rows, len(names))) * 0.5 + level, columns=list(names))


def ranking(method="frequentist", **options):
    rows = options.pop("rows", 12)
    return lt.rank(wide(rows), method, direction="minimize", rng=1, **options)


CASES = {
    "nemenyi": {"test": "nemenyi"},
    "tukey": {"test": "tukey"},
    "wilcoxon": {"test": "wilcoxon"},
    "bayesian": {"method": "bayesian", "n_draws": 2000},
    "control": {"test": "t", "control": "tree"},
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_every_method_is_readable(assert_readable, case):
    found = ranking(**CASES[case])
    for kind in (None, "diagram", "intervals"):
        assert_readable(ranking_plot(found, kind=kind))
    assert_readable(ranking_plot(found, ax=Figure(figsize=(4.5, 3.5)).add_axes((0, 0, 1, 1))))
    assert_readable(comparison_matrix_plot(found))


def test_a_diagram_of_ranks_says_what_was_ranked_by_which_test(texts_of):
    ax = ranking_plot(ranking(test="nemenyi"))
    words = " ".join(text.get_text() for text in texts_of(ax)).replace("\u00a0", " ")
    assert "Mean ranks by score." in words
    assert "Nemenyi's test" in words


def test_bayesian_decisions_are_not_called_significant(texts_of):
    found = ranking(**CASES["bayesian"])
    for ax in (cd_diagram(found), comparison_matrix_plot(found), ranking_plot(found, kind="intervals")):
        words = " ".join(" ".join(text.get_text() for text in texts_of(ax)).split())  # wherever lines break
        assert "signific" not in words
        assert "α" not in words
        assert "posterior probability above 0.95" in words
    with pytest.raises(ArgumentError, match="posterior probabilities and no p-values"):
        p_value_plot(found)
    with pytest.raises(ArgumentError, match="kind='differences' needs estimates of differences"):
        ranking_plot(found, kind="differences")


def test_differences_from_a_control_are_those_of_the_pairs_with_their_decisions():
    control = "boosting"  # neither first nor last
    found = ranking(test="t", control=control)
    ax = ranking_plot(found)
    labels = [label.replace("\n", " ") for label in row_labels(ax)]
    assert all(label.endswith(f" − {control}") for label in labels)
    rows = found.pairs.to_dict("records")
    want = [row["estimate"] * (1 if row["right"] == control else -1) for row in rows]
    at = {int(y): (x, line) for line in lines(ax, "_estimates") for x, y in line.get_xydata()}
    np.testing.assert_allclose([at[i][0] for i in range(len(rows))], want)
    spans = {line.get_ydata()[0]: line.get_xdata() for line in lines(ax, "_interval")}
    for i, row in enumerate(rows):
        ends = sorted([row["ci_low"], row["ci_high"]] if row["right"] == control else [-row["ci_high"], -row["ci_low"]])
        np.testing.assert_allclose(spans[i], ends)
        filled = to_hex(at[i][1].get_markerfacecolor()) == to_hex(_style.ACCENT)
        assert filled == bool(found.decisions.decision.loc[row["left"], row["right"]])


def test_an_interval_without_an_end_reaches_the_edge_and_the_figure_says_so():
    found = ranking(test="wilcoxon", rows=4)
    ax = ranking_plot(found, kind="differences")
    assert "An interval that reaches the edge has no end: too few blocks" in words_below(ax)
    for line in lines(ax, "_interval"):
        np.testing.assert_allclose(line.get_xdata(), ax.get_xlim())


def test_the_matrix_has_the_outcomes_and_differences_of_the_ranking():
    found = ranking(test="wilcoxon")
    ax = comparison_matrix_plot(found)
    names = row_labels(ax)
    cells = {tuple(map(int, text.get_position())): text for text in ax.texts}
    place = {name: i for i, name in enumerate(found.decisions.levels)}
    assert len(names) == len(place)
    for row in found.pairs.to_dict("records"):
        text = cells[place[row["right"]], place[row["left"]]]
        difference, outcome, _ = text.get_text().split("\n")
        assert float(difference.replace("−", "-")) == pytest.approx(row["estimate"], abs=0.006)
        assert outcome == f"{row['wins']}/{row['ties']}/{row['losses']}"
        assert (text.get_fontweight() == "bold") == bool(found.decisions.decision.loc[row["left"], row["right"]])


def test_unknown_kinds_are_refused():
    with pytest.raises(ArgumentError, match="kind must be 'diagram' or 'intervals' or 'differences', got 'bars'"):
        ranking_plot(ranking(test="nemenyi"), kind="bars")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"test": "tukey"}, "Simultaneous 95 % intervals (Tukey)"),
        ({"test": "wilcoxon"}, "95 % intervals of the step-down tests (Shaffer)"),
        ({"test": "wilcoxon", "adjust": "none"}, "Individual 95 % intervals (unadjusted)"),
    ],
)
def test_rows_name_the_kind_of_their_intervals(options, kind):
    rng = np.random.default_rng(3)
    wide = pd.DataFrame(rng.normal([0.0, 0.1, 3.0], size=(12, 3)), columns=list("ABC"))
    ranking = lt.rank(wide, "frequentist", direction="maximize", **options)
    assert kind in words_below(ranking_plot(ranking, kind="differences")).replace("\u00a0", " ")
    assert "Individual 95 % intervals." in words_below(ranking_plot(ranking, kind="intervals")).replace("\u00a0", " ")


def test_a_map_without_a_significant_pair_explains_no_mark():
    p = pd.DataFrame([[1.0, 0.4], [0.4, 1.0]], list("AB"), list("AB"))
    words = words_below(p_value_plot({"A": 0.91, "B": 0.84}, p, direction="maximize"))
    assert words.startswith("No pair is significant (")
    assert "Blue" not in words
