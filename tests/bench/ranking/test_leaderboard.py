"""The measures of a leaderboard are those of brute force, and invariant to what must not matter."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from refusals import refuses
from scipy import stats
from study import blocks_of_scores, make_runs

import lmemtest as lt
from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.ranking.bradley_terry import ratings
from lmemtest.bench.ranking.leaderboard import MEASURES, leaderboard
from lmemtest.errors import ArgumentError, DesignError


def scores(seed=1, n=12, k=4, spread=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) + spread * np.arange(k)


def board(data, **options):
    return leaderboard(data if isinstance(data, Blocks) else blocks_of_scores(data), n_draws=200, rng=1, **options)


def by_name(found):
    return found.to_frame().set_index("algorithm").sort_index()


def test_measures_are_those_of_brute_force():
    values = np.round(scores(n=9, k=4))  # with ties
    values[3] = 1.0  # all tie
    found = by_name(board(values))
    wins = np.zeros((4, 4))
    for row in values:
        for i in range(4):
            for j in range(4):
                wins[i, j] += 0.0 if i == j else 1.0 if row[i] > row[j] else 0.5 if row[i] == row[j] else 0.0
    firsts = [(row == row.max()) / (row == row.max()).sum() for row in values]
    gaps = [(row - row.min()) / (row.max() - row.min()) for row in values if row.max() > row.min()]
    assert_allclose(found["win_rate"], wins.sum(axis=1) / 27)
    assert_allclose(found["mean_rank"], stats.rankdata(-values, axis=1).mean(axis=0))
    assert_allclose(found["p_best"], np.mean(firsts, axis=0))
    assert_allclose(found["gap_closed"], np.mean(gaps, axis=0))
    assert_allclose(found["elo"], 1000 + 400 / np.log(10) * ratings(wins))
    rates = board(values).to_frame("win_rates").loc[list("ABCD"), list("ABCD")].to_numpy()
    off = ~np.eye(4, dtype=bool)
    assert_allclose(rates[off], (wins / 9)[off])


def test_elo_of_two_algorithms_is_the_log_odds_and_its_interval_that_of_jeffreys():
    """Nine wins of twelve; beta(9.5, 3.5) up to the error of 8,000 draws, and widened for 12 benchmarks."""
    values = np.column_stack([np.zeros(12), np.where(np.arange(12) < 9, 1.0, -1.0)])
    found = leaderboard(blocks_of_scores(values), reference="A", n_draws=8000, rng=1)
    best = found.to_frame().iloc[0]
    assert best["algorithm"] == "B"
    assert best["elo"] == pytest.approx(1000 + 400 * np.log10(3))
    tail = stats.norm.cdf(stats.norm.ppf(0.025) * np.sqrt(12 / 11))
    want = stats.beta(9.5, 3.5).ppf([tail, 1 - tail])
    assert_allclose(best[["win_rate_low", "win_rate_high"]].astype(float), want, atol=0.01)
    assert_allclose(best[["p_best_low", "p_best_high"]].astype(float), stats.beta(9.5, 3.5).ppf([0.025, 0.975]))
    odds = 10 ** ((best[["elo_low", "elo_high"]].astype(float) - 1000) / 400)
    assert_allclose(odds / (1 + odds), want, atol=0.01)
    reference = found.to_frame().iloc[1]
    assert reference[["elo", "elo_low", "elo_high"]].tolist() == [1000.0, 1000.0, 1000.0]


def test_order_of_algorithms_and_sign_of_the_score_do_not_matter():
    values = scores()
    data = blocks_of_scores(values)
    plain = by_name(board(data))
    turned = by_name(board(data.of(["C", "A", "D", "B"])))
    flipped = by_name(board(blocks_of_scores(-values, direction="minimize")))
    assert_allclose(turned[list(MEASURES)], plain[list(MEASURES)], atol=1e-9)
    pd.testing.assert_frame_equal(flipped, plain)


def test_a_benchmark_counts_once_whatever_its_number_of_runs():
    rng = np.random.default_rng(3)
    runs = rng.normal(size=(8, 3, 2))
    more = np.concatenate([runs, np.full((8, 3, 4), np.nan)], axis=2)
    more[0] = np.tile(runs[0], 3)  # three copies of the runs of one benchmark
    pd.testing.assert_frame_equal(by_name(board(blocks_of_scores(more))), by_name(board(blocks_of_scores(runs))))


def test_scores_that_differ_by_rounding_tie():
    values = np.array([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [1.0, 1.0]])
    found = by_name(board(values))
    assert found["win_rate"].tolist() == [0.5, 0.5]
    assert found["elo"].tolist() == pytest.approx([1000.0, 1000.0])
    assert found["gap_closed"].isna().all()
    assert "gap_closed leaves out 3 benchmarks on which all algorithms tie." in board(values).notes


def test_missing_cells_leave_the_other_comparisons():
    """Ratings as in R on the same table; ranks from the complete benchmarks only."""
    values = scores(n=20, k=4)
    values[:12][np.arange(12), np.arange(12) % 4] = np.nan
    found = board(values)
    wins = np.where(np.isnan(values), 0, 0.0)[:, :, None] + (values[:, :, None] > values[:, None, :])
    assert_allclose(by_name(found)["elo"], 1000 + 400 / np.log(10) * ratings(wins.sum(axis=0)))
    assert_allclose(by_name(found)["mean_rank"], stats.rankdata(-values[12:], axis=1).mean(axis=0))
    whole = values[12:]
    gaps = (whole - whole.min(axis=1, keepdims=True)) / np.ptp(whole, axis=1, keepdims=True)
    assert_allclose(by_name(found)["gap_closed"], gaps.mean(axis=0))
    assert any("12 of 20 benchmarks lack an algorithm" in note for note in found.notes)
    nowhere = values.copy()
    nowhere[12:, 0] = np.nan
    found = board(nowhere)
    assert by_name(found)[["mean_rank", "p_best_low", "gap_closed_high", "p_first"]].isna().all(axis=None)
    assert np.isfinite(by_name(found)[["elo", "elo_low", "win_rate_high"]]).all(axis=None)


def test_who_wins_everything_has_a_finite_rating_and_no_certain_interval():
    values = scores(n=6, k=3)
    values[:, 2] += 100
    found = board(values)
    best = found.to_frame().iloc[0]
    assert best["algorithm"] == "C"
    assert best["win_rate"] == 1.0
    assert best["win_rate_low"] < 0.85  # six wins of six: Jeffreys' interval begins at 0.66
    assert np.isfinite(best[["elo", "elo_low", "elo_high"]].astype(float)).all()
    assert any("was given one virtual tie" in note for note in found.notes)
    assert not any("virtual tie" in note for note in board(scores()).notes)


def test_runs_of_fixed_benchmarks_move_what_they_leave_open_only():
    """C wins on every benchmark by far; the runs of A and B overlap."""
    rng = np.random.default_rng(4)
    runs = rng.normal(size=(10, 3, 5)) + 50.0 * np.array([0, 0, 1])[:, None]
    found = by_name(board(blocks_of_scores(runs), resample="runs"))
    assert found.loc["C", ["win_rate_low", "win_rate_high", "p_best_low", "p_first"]].tolist() == [1.0] * 4
    assert found.loc["A", "win_rate_low"] < found.loc["A", "win_rate"] < found.loc["A", "win_rate_high"]


def test_luck_that_runs_of_one_seed_share_cancels_in_every_draw():
    """B is ahead by 0.1 with each seed, whose luck is a hundred times as large; seeds are in another order for B."""
    luck = 10 * np.random.default_rng(11).normal(size=(6, 4))
    runs = np.stack([luck, luck[:, ::-1] + 0.1], axis=1)
    seeds = np.broadcast_to(np.arange(4), (6, 2, 4)).copy()
    seeds[:, 1] = seeds[:, 1, ::-1]
    known, unknown = (board(blocks_of_scores(runs, seeds=some), resample="runs") for some in (seeds, None))
    assert by_name(known).loc["B", ["win_rate_low", "win_rate_high"]].tolist() == [1.0, 1.0]
    assert by_name(unknown).loc["B", "win_rate_low"] < 0.5
    assert any("drawn independently" in note for note in unknown.notes)
    assert not any("drawn independently" in note for note in known.notes)


def test_instances_of_a_block_are_averaged_in_every_draw():
    """Two instances with opposite advantages, far apart: they tie in the mean, whatever the runs."""
    rng = np.random.default_rng(5)
    runs = rng.normal(size=(8, 2, 4)) * 1e-3
    runs[:4, 0] += 5.0
    runs[4:, 1] += 3.0
    data = blocks_of_scores(runs, block=np.tile(np.arange(4), 2), names=("w", "x", "y", "z"))
    assert by_name(board(data, resample="runs")).loc["A", ["win_rate_low", "win_rate_high"]].tolist() == [1.0, 1.0]


def test_draws_depend_on_rng_alone():
    values = scores()
    for resample in ("benchmarks", "runs"):
        data = blocks_of_scores(np.random.default_rng(6).normal(size=(6, 3, 3)) if resample == "runs" else values)
        one, again = (leaderboard(data, n_draws=100, rng=7, resample=resample).to_frame() for _ in range(2))
        pd.testing.assert_frame_equal(one, again)
        other = leaderboard(data, n_draws=100, rng=8, resample=resample).to_frame()
        assert not np.allclose(one["elo_low"], other["elo_low"])
        assert_allclose(one["elo"], other["elo"])


def test_refusals():
    values = scores(n=4, k=4)
    refuses(DesignError, "compares algorithms, and there is one: A", board, blocks_of_scores(values).of(["A"]))
    refuses(DesignError, "needs two benchmarks at least on which algorithms can be compared, got 1", board, values[:1])
    apart = values.copy()
    apart[:2, 2:] = apart[2:, :2] = np.nan
    refuses(DesignError, "no comparison links A and B with C and D, on a benchmark of both or", board, apart)
    with pytest.raises(DesignError, match="two runs of an algorithm on a benchmark at least, and A has one on b00"):
        board(values, resample="runs")
    refuses(ArgumentError, "reference must be 'A' or 'B' or 'C' or 'D', got 'E'", board, values, reference="E")
    with pytest.raises(ArgumentError, match=r"n_draws must be at least [\d,]+ for 99.9 % intervals over 4 benchmarks"):
        board(values, alpha=0.001)


def test_it_says_who_leads_and_what_the_intervals_are_about():
    found = board(scores())
    first = found.sentences()[0]
    assert first.startswith("D has the highest rating, ")
    assert "of its comparisons on a benchmark (ties one half), and " in first
    assert "what to expect on other benchmarks of this kind" in found.summary()
    seeds = board(blocks_of_scores(scores(), unit="seed"))
    assert "other seeds on this benchmark, and nothing about others" in seeds.scope
    assert "1,000 is that of B" in board(scores(), reference="B").facts[0]


def test_runs_are_read_by_their_roles():
    rng = np.random.default_rng(8)
    index = np.indices((3, 5, 2)).reshape(3, -1)
    table = pd.DataFrame({"a": index[0], "b": index[1], "s": index[2], "loss": rng.normal(size=30) + index[0]})
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="a", benchmark="b", seed="s")
    found = leaderboard(runs, n_draws=100, rng=1).to_frame()
    means = table.pivot_table(index="b", columns="a", values="loss")
    want = by_name(leaderboard(blocks_of_scores(means, direction="minimize"), n_draws=100, rng=1))
    assert found["algorithm"].iloc[0] == "0"
    assert_allclose(found.set_index("algorithm").sort_index()["elo"], want["elo"])


def test_a_board_has_the_sets_of_ranks_of_the_ranking_and_takes_a_wide_table() -> None:
    draws = np.random.default_rng(0)
    table = pd.DataFrame(np.arange(4.0) + draws.normal(size=(9, 4)), columns=list("ABCD"))
    board = lt.leaderboard(table, direction="maximize", rng=1).to_frame().set_index("algorithm")
    decisions = lt.rank(table, direction="maximize").decisions
    shown = board.loc[list(decisions.levels)]
    assert shown["rank"].tolist() == [1, 2, 3, 4]
    assert shown["rank_low"].tolist() == list(decisions.rank_low)
    assert shown["rank_high"].tolist() == list(decisions.rank_high)
    refuses(ArgumentError, "leaderboard takes Runs, or a dataframe and the roles of its columns", lt.leaderboard, table)


def test_a_board_over_runs_claims_no_ranks_on_other_benchmarks() -> None:
    runs = make_runs(algorithms=3, benchmarks=4, seeds=3)
    board = lt.leaderboard(runs, resample="runs", rng=1)
    assert "rank_low" not in board.to_frame()
    refuses(ArgumentError, "needs sets of ranks", board.plot, measure="rank")
