"""Figures of a leaderboard show its numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.ranking.leaderboard import leaderboard
from lmemtest.errors import ArgumentError
from lmemtest.plots import leaderboard_plot, win_rate_plot

NAMES = ("a $\\alpha$ tool with a very long name indeed", "B", "漢字", "D")


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(8, 4, 1)) + 0.5 * np.array([3, 0, 1, 2])[:, None]
    scores[:, 1][scores[:, 1] > 0] = np.nan
    scores[:, 3][np.isfinite(scores[:, 1])] = np.nan  # B and D never meet
    names = tuple(map(str, range(8)))
    blocks = Blocks(
        algorithms=NAMES,
        runs=scores,
        instances=names,
        block=np.arange(8),
        names=names,
        unit="benchmark",
        score="accuracy",
        direction="maximize",
    )
    return leaderboard(blocks, n_draws=200, rng=1)


def dots(ax):
    (line,) = [line for line in ax.lines if line.get_label() == "_estimates"]
    return np.asarray(line.get_xdata())


def intervals(ax):
    return np.array([line.get_xdata() for line in ax.lines if line.get_label() == "_interval"])


def test_ratings_have_their_intervals_and_win_rates(board):
    ax = board.plot()
    table = board.to_frame()
    assert_allclose(dots(ax), table["elo"])
    assert_allclose(intervals(ax), table[["elo_low", "elo_high"]])
    assert ax.get_yticklabels()[0].get_text().startswith("a $\\alpha$")
    texts = [text.get_text() for text in ax.texts]
    assert texts[-1] == "win rate"
    assert_allclose([float(text.removesuffix(" %")) for text in texts[:-1]], 100 * table["win_rate"], atol=0.5)
    (line,) = [line for line in ax.lines if line.get_label() == "_reference"]
    assert line.get_xdata()[0] == 1000.0
    assert "1,000 is the mean of all" in ax.get_xlabel()


def test_other_measures_are_ordered_by_themselves(board):
    ax = leaderboard_plot(board, measure="win_rate")
    assert_allclose(dots(ax), np.sort(100 * board.to_frame()["win_rate"])[::-1])
    assert ax.get_xlabel().startswith("Comparisons won, in %")
    with pytest.raises(ArgumentError, match="measure must be 'elo' or 'win_rate'"):
        leaderboard_plot(board, measure="rating")


def test_of_many_algorithms_the_ends_are_drawn(board):
    ax = leaderboard_plot(board, max_rows=2)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[1] == "… 2 more …"
    assert_allclose(dots(ax), board.to_frame()["elo"].iloc[[0, 3]])
    assert "2 of 4 algorithms" in ax.get_xlabel().replace("\n", " ")


def test_win_rates_are_in_the_cells(board):
    ax = win_rate_plot(board)
    rates = board.to_frame("win_rates").to_numpy()
    off = ~np.eye(4, dtype=bool)
    drawn = [float("nan") if text.get_text() == "–" else float(text.get_text()) for text in ax.texts]
    assert_allclose(drawn, 100 * rates[off], atol=0.5)  # whole percents
    assert np.isnan(drawn).sum() == 2
    (cells,) = [mesh for mesh in ax.collections if mesh.get_label() == "_cells"]
    assert cells.norm(50.0) == 0.5
    assert_allclose(cells.norm([0.0, 100.0]), [0.0, 1.0])


def test_a_map_that_is_too_narrow_asks_for_the_width_that_it_needs():
    rng = np.random.default_rng(2)
    names = tuple(f"an algorithm with a long name {i:02d}" for i in range(25))
    blocks = Blocks(
        algorithms=names,
        runs=rng.normal(size=(6, 25, 1)),
        instances=tuple("abcdef"),
        block=np.arange(6),
        names=tuple("abcdef"),
        unit="benchmark",
        score="accuracy",
        direction="maximize",
    )
    board = leaderboard(blocks, n_draws=100, rng=1)

    def axes(width, height):
        return Figure(figsize=(width, height), layout="none").add_axes((0, 0, 1, 1))

    with pytest.raises(ArgumentError, match=r"needs at least [\d.]+ inches wide, it is 1\.8 x 9\.5 inches") as found:
        win_rate_plot(board, ax=axes(1.8, 9.5))
    enough = float(re.search(r"at least ([\d.]+) inches wide", str(found.value))[1])
    assert enough > 1.8
    win_rate_plot(board, ax=axes(enough, 9.5))
    with pytest.raises(ArgumentError, match=r"inches wide and [\d.]+ inches high"):
        win_rate_plot(board, ax=axes(1.8, 1.0))
