"""Figures of leaderboards, of outperforming and of evaluations show their numbers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from figures import beside, lines, row_labels, words_below
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import lmemtest as lt
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
    (line,) = lines(ax, "_estimates")
    return np.asarray(line.get_xdata())


def intervals(ax):
    return np.array([line.get_xdata() for line in ax.lines if line.get_label() == "_interval"])


def test_ratings_have_their_intervals_and_win_rates(board):
    ax = board.plot()
    table = board.to_frame()
    assert_allclose(dots(ax), table["elo"])
    assert_allclose(intervals(ax), table[["elo_low", "elo_high"]])
    assert ax.get_yticklabels()[0].get_text().startswith("a $\\alpha$")
    texts = beside(ax)
    assert texts[-1] == "win rate"
    assert_allclose([float(text.removesuffix(" %")) for text in texts[:-1]], 100 * table["win_rate"], atol=0.5)
    (line,) = lines(ax, "_reference")
    assert line.get_xdata()[0] == 1000.0
    assert "1,000 is the mean of all" in words_below(ax)


def test_other_measures_are_ordered_by_themselves(board):
    ax = leaderboard_plot(board, measure="win_rate")
    assert_allclose(dots(ax), np.sort(100 * board.to_frame()["win_rate"])[::-1])
    assert words_below(ax).startswith("Comparisons won, in %")
    with pytest.raises(ArgumentError, match="measure must be 'elo' or 'win_rate'"):
        leaderboard_plot(board, measure="rating")


def test_of_many_algorithms_the_ends_are_drawn(board):
    ax = leaderboard_plot(board, max_rows=2)
    labels = row_labels(ax)
    assert labels[1] == "… 2 more …"
    assert_allclose(dots(ax), board.to_frame()["elo"].iloc[[0, 3]])
    assert "2 of 4 algorithms" in words_below(ax)


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


def test_one_pair_is_drawn_with_its_benchmarks_and_many_pairs_without():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    one = lt.outperforming(runs, algorithms=("HB", "RS")).plot()
    assert len(one.get_yticklabels()) == 21
    at = {line.get_label(): line.get_xdata()[0] for line in one.get_lines() if line.get_label().startswith("_")}
    assert (at["_reference"], at["_threshold"]) == (0.5, 0.75)
    three = lt.outperforming(runs, algorithms=("HB", "RS", "TPE")).plot()
    assert row_labels(three) == ["HB over RS", "HB over TPE", "TPE over RS"]


def test_of_many_pairs_those_farthest_from_one_half_are_drawn():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.outperforming(runs, algorithms=("HB", "RS", "TPE"))
    ax = found.plot(max_rows=2)
    clearest = found.table.sort_values("estimate").iloc[1:].sort_index()
    assert row_labels(ax) == (clearest["left"] + " over " + clearest["right"]).tolist()
    assert "1 of 3 pairs, those nearest to one half, are left out." in words_below(ax)


def test_of_many_benchmarks_those_farthest_from_one_half_are_drawn_and_the_others_counted(assert_readable):
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.outperforming(runs, algorithms=("HB", "RS"))
    ax = found.plot(max_rows=6)
    best_first = found.benchmarks.sort_values("estimate", ascending=False, kind="stable")
    far = (best_first["estimate"] - 0.5).abs().sort_values(ascending=False, kind="stable").index[:6]
    far = [row for row in best_first.index if row in far]
    names = row_labels(ax)
    assert names == ["All 20 benchmarks", *found.benchmarks.loc[far, "benchmark"]]
    dots = lines(ax, "_estimates")
    assert dots[1].get_xdata().tolist() == found.benchmarks.loc[far, "estimate"].tolist()
    words = words_below(ax)
    assert words.endswith("14 of 20 benchmarks, those nearest to one half, are left out.")
    assert_readable(ax)


POPULATIONS = [
    (1, 3, ["these", "like"]),
    (3, 3, ["these", "like", "items"]),
    (3, 1, ["these", "items"]),
    (1, 1, ["these"]),
]


@pytest.mark.parametrize(("epochs", "tasks", "names"), POPULATIONS)
def test_rows_are_models_with_an_interval_for_each_population_and_their_groups(epochs, tasks, names):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        [
            (m, t, i, e, int(rng.random() < 0.4 + 0.2 * k))
            for k, m in enumerate("ABC") for t in "xyz"[:tasks] for i in range(30) for e in range(epochs)
        ],
        columns=["model", "task", "item", "epoch", "right"],
    )  # fmt: skip
    roles = {"epoch": "epoch"} if epochs > 1 else {}
    found = lt.evaluate(table, model="model", task="task", item="item", score="right", **roles)
    ax = found.plot()
    assert row_labels(ax) == found.models["model"].tolist()
    drawn = [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"]
    ends = [found.models[[f"ci_low_{name}", f"ci_high_{name}"]].to_numpy() for name in names]
    np.testing.assert_allclose(drawn, np.concatenate(ends))
    groups = [" | ".join(row) for row in zip(*(found.models[f"letters_{name}"] for name in names), strict=True)]
    letters = beside(ax)
    assert [text for text in letters if text in groups] == groups


@pytest.mark.parametrize("count", [5, 20, 70])
def test_a_board_draws_the_sets_of_ranks_with_provisional_algorithms_in_grey(assert_readable, count):
    rng = np.random.default_rng(5)
    scores = np.arange(count) + rng.normal(size=(9, count))
    rows = [(f"tool {a:02d} with a long name", b, scores[b, a]) for a in range(count) for b in range(9) if a or b < 4]
    table = pd.DataFrame(rows, columns=["tool", "task", "score"])
    runs = lt.Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task")
    board = lt.leaderboard(runs, rng=1, n_draws=400)
    ax = board.plot(measure="rank")
    assert_readable(ax)
    table = board.to_frame().sort_values("rank")
    shown = table.iloc[[*range(30), *range(count - 30, count)]] if count > 60 else table
    drawn = {tuple(line.get_xdata()) for line in ax.lines if line.get_label() == "_interval"}
    assert drawn == set(zip(shown["rank_low"].astype(float), shown["rank_high"].astype(float), strict=True))
    assert all(float(label.get_text()).is_integer() for label in ax.get_xticklabels())
    assert any("provisional" in text.get_text() for text in ax.get_legend().get_texts())
