"""The forest of differences to the best: what it draws is what was decided."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import forest_plot
from lmemtest.plots._style import colour, part


def pairs_of(shift: float, sign: float = 1.0) -> lt.lmm.Comparisons:
    rng = np.random.default_rng(5)
    rows = [
        (tool, task, sign * (shift * step + rng.normal() + 3 * task))
        for task in range(9)
        for step, tool in enumerate("ABCD")
    ]
    table = pd.DataFrame(rows, columns=["tool", "task", "score"])
    return lt.fit_lmm("score ~ tool + (1 | task)", table).emmeans("tool").pairs()


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_filled_dots_are_the_significant_ones_at_their_differences(direction: str, sign: float) -> None:
    pairs = pairs_of(1.2, sign)
    decisions = pairs.decisions(direction=direction)
    best, *others = decisions.levels
    behind = pairs.behind(best, direction)
    assert (behind.loc[others, "estimate"] >= 0).all()
    ax = forest_plot(pairs, decisions=decisions)
    dots = {line.get_gid(): line for line in ax.lines if line.get_label() == "_estimates"}
    for name in others:
        dot = dots[part(name)]
        assert dot.get_xdata()[0] == pytest.approx(behind.loc[name, "estimate"])
        assert (dot.get_markerfacecolor() != "white") == decisions.significant.loc[best, name]
    spans = [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"]
    drawn = behind[["ci_low", "ci_high"]].sort_values("ci_low").to_numpy()
    np.testing.assert_allclose(sorted(map(tuple, spans)), drawn)
    bars = [line for line in ax.lines if line.get_label() == "_group"]
    assert len(bars) == sum(len(group) > 1 for group in decisions.groups)
    assert {label.get_gid() for label in ax.get_yticklabels()} >= {part(name) for name in decisions.levels}


def test_an_algorithm_has_the_colour_of_its_place_in_the_table_whatever_its_rank() -> None:
    colours = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "minimize")):
        pairs = pairs_of(1.2, sign)
        ax = forest_plot(pairs, decisions=pairs.decisions(direction=direction))
        marks = [line for line in ax.lines if line.get_label() in ("_estimates", "_member")]
        colours.append({(line.get_gid(), line.get_color()) for line in marks})
    assert colours[0] == colours[1] == {(part(name), colour(i)) for i, name in enumerate("ABCD")}


def test_signs_of_both_directions_are_those_of_worse() -> None:
    low, high = pairs_of(1.2).behind("A", "minimize"), pairs_of(1.2).behind("A", "maximize")
    pd.testing.assert_frame_equal(low[["estimate"]], -high[["estimate"]])
    np.testing.assert_allclose(low["ci_low"], -high["ci_high"])


def test_a_best_one_needs_a_direction() -> None:
    with pytest.raises(ArgumentError, match="with a direction: which is the best one"):
        forest_plot(pairs_of(1.0))
