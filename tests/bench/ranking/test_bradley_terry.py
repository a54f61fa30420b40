"""Bradley-Terry ratings are those of a published table, of R's logistic regression, and of closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lmemtest.bench.ranking import bradley_terry
from lmemtest.bench.ranking.bradley_terry import estimable, likeliest, linked, ratings, with_virtual_ties

# American League of 1987, wins of row over column: Agresti (2002), Categorical Data Analysis, table 10.10
BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ],
    dtype=float,
)
PUBLISHED = (1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0.0)  # over the last team


def test_published_ratings_of_baseball_teams():
    theta = ratings(BASEBALL)
    assert_allclose(theta - theta[-1], PUBLISHED, atol=5e-4)
    assert theta.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("index", range(4))
def test_ratings_agree_with_the_logistic_regression_of_r(reference, index):
    """Plain, with ties as half a win, with pairs that met less often, and 25 algorithms."""
    table = reference("bradley_terry")["tables"][index]
    theta = ratings(np.array(table["wins"]))
    assert_allclose(theta - theta[-1], table["theta"], rtol=1e-9, atol=1e-9)


def test_many_tables_at_once_are_the_tables_one_by_one():
    rng = np.random.default_rng(1)
    wins = rng.integers(0, 4, size=(3, 5, 4, 4)).astype(float)
    one_by_one = [ratings(table) for table in wins.reshape(-1, 4, 4)]
    assert_allclose(ratings(wins).reshape(-1, 4), one_by_one, atol=1e-9)


def test_the_gradient_is_zero_also_for_tables_that_are_almost_separated():
    rng = np.random.default_rng(2)
    order = np.triu(np.ones((8, 8)), 1)
    wins = 20 * order + 10.0 ** rng.uniform(-7, -1, size=(50, 1, 1)) * order.T
    theta = ratings(wins)
    chance = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
    games = wins + wins.swapaxes(1, 2)
    assert np.ptp(theta, axis=1).max() > 15
    assert_allclose((games * chance).sum(axis=2), wins.sum(axis=2), atol=1e-9)


def test_who_won_everything_gets_virtual_ties_and_finite_ratings():
    wins = np.array([[0.0, 3, 3], [0, 0, 2], [0, 1, 0]])
    assert not estimable(wins)
    assert estimable(wins[1:, 1:])
    assert_allclose(ratings(wins), ratings(with_virtual_ties(wins)))
    two = ratings(np.array([[0.0, 6], [0, 0]]))
    assert two[0] - two[1] == pytest.approx(np.log(6.5 / 0.5))


def test_chains_of_wins_decide_what_is_estimable():
    """A beats B beats C beats A: everybody is above everybody else by a chain; without C's win nobody is above A."""
    wins = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert estimable(wins)
    assert_allclose(ratings(wins), 0.0, atol=1e-12)
    wins[2, 0] = 0.0
    assert not estimable(wins)


def test_links_go_through_others():
    games = np.zeros((4, 4))
    games[0, 1] = games[1, 0] = games[1, 2] = games[2, 1] = 1
    assert linked(games).tolist() == [True, True, True, False]


def tables_of(rounds, k, seed):
    """Wins in rounds of all against all with random weights, so that every pair has the same number of games."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(0.0, 2.0, k) + rng.normal(size=(rounds, k))
    ahead = (strength[:, :, None] > strength[:, None, :]).astype(float)
    ahead += 0.05 * ~np.eye(k, dtype=bool)
    return np.tensordot(rng.exponential(size=(3, rounds)), ahead, axes=1)


@pytest.mark.parametrize("k", [5, 120])
def test_wins_of_each_and_games_of_pairs_tell_the_ratings(k):
    """Few algorithms with equations solved, many by conjugate gradients, from any start."""
    wins = tables_of(9, k, 1)
    won, lost, games = wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2)
    want = np.stack([ratings(table) for table in wins])
    for start in (np.zeros(k), want[0]):
        assert_allclose(likeliest(won, lost, games, start), want, atol=1e-10)
        assert_allclose(likeliest(won, lost, games[:, :1, 1:2], start), want, atol=1e-10)


def test_tables_of_many_algorithms_need_one_inverse_and_no_equations(monkeypatch):
    wins = tables_of(9, 120, 2)
    monkeypatch.setattr(bradley_terry.np.linalg, "solve", None)
    likeliest(wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2), np.zeros(120))


def test_a_table_unlike_the_others_is_solved(monkeypatch):
    """Where conjugate gradients do not get there in a few products."""
    wins = tables_of(9, 120, 3)
    monkeypatch.setattr(bradley_terry, "_MOST_PRODUCTS", 1)
    found = likeliest(wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2), np.zeros(120))
    assert_allclose(found, [ratings(table) for table in wins], atol=1e-10)


def test_ratings_whose_odds_overflow_are_found():
    """A ladder on which the lower beats the next one once in 1e9 games: 640 logits from end to end."""
    k = 32
    wins = np.zeros((k, k))
    wins[range(k - 1), range(1, k)], wins[range(1, k), range(k - 1)] = 1.0, 1e-9
    assert_allclose(-np.diff(ratings(wins)), np.log(1e9), rtol=1e-8)
