"""Sets of ranks hold the true ranks of all algorithms at once; prediction sets hold the rank on a new benchmark."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from harness import at_least, rate_of
from scipy.stats import rankdata

import lmemtest as lt

LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "heavy tails": lambda rng, size: rng.standard_t(4, size=size) / np.sqrt(2.0),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1.0,
}


def draw(rng, truth, n, law, spread=1.0):
    """Scores ``(n, k)`` on benchmarks of different difficulty, with the advantages of `truth`."""
    return truth + 3.0 * rng.normal(size=(n, 1)) + spread * LAWS[law](rng, (n, len(truth)))


def wide(scores):
    return pd.DataFrame(scores, columns=[f"a{i:03d}" for i in range(scores.shape[1])])


def holds(decisions, truth):
    """Whether all sets have all true ranks; of equal algorithms each has all the ranks that they share."""
    low, high = (rankdata(-truth, method=method) for method in ("min", "max"))
    place = [int(level[1:]) for level in decisions.levels]
    return bool((decisions.rank_low <= low[place]).all() and (decisions.rank_high >= high[place]).all())


@pytest.mark.parametrize(
    ("k", "n", "tables"), [(10, 12, 400), (10, 40, 400), (40, 30, 150), (120, 41, 60), (300, 60, 25)]
)
@pytest.mark.parametrize("law", LAWS)
def test_sets_of_ranks_hold_all_true_ranks_at_once(k, n, tables, law):
    """Half of the algorithms are equal, the others in steps that are found now and then. Measured: 98 to 100 %."""
    truth = np.concatenate([np.zeros(k // 2), np.linspace(0.2, 2.0, k - k // 2)])
    rate = rate_of(
        lambda rng: holds(lt.rank(wide(draw(rng, truth, n, law)), direction="maximize").decisions, truth), tables, k + n
    )
    assert at_least(rate, tables, 0.945), rate


@pytest.mark.parametrize(("k", "n"), [(4, 3), (4, 5), (10, 6), (10, 12)])
@pytest.mark.parametrize("law", ["normal", "skewed"])
def test_sets_of_ranks_hold_with_few_benchmarks_and_unequal_algorithms(k, n, law):
    """One algorithm varies four times, another a fifth as much as the others.

    Measured with 200 tables: 92.5 to 99.0 %; the least with 3 benchmarks and skewed scores.
    """
    truth, spread = np.concatenate([np.zeros(k // 2), np.linspace(0.2, 2.0, k - k // 2)]), np.ones(k)
    spread[[0, -1]] = 4.0, 0.2
    scores = functools.partial(draw, truth=truth, n=n, law=law, spread=spread)
    rate = rate_of(lambda rng: holds(lt.rank(wide(scores(rng)), direction="maximize").decisions, truth), 200, k + n)
    assert at_least(rate, 200, 0.94), rate


@pytest.mark.parametrize(
    ("n", "law"), [(8, "normal"), (20, "normal"), (20, "heavy tails"), (20, "skewed"), (60, "skewed")]
)
@pytest.mark.parametrize("k", [4, 12, 40])
def test_prediction_sets_hold_the_rank_on_a_new_benchmark(k, n, law):
    """Measured with 300 tables: 93.3 to 99.5 %; the least with 40 algorithms, which are independent here."""
    truth, spread = np.linspace(0.0, 2.0, k), np.linspace(0.5, 1.5, k)

    def study(rng):
        scores = draw(rng, truth, n + 1, law, spread)
        table = lt.rank(wide(scores[:n]), direction="maximize").next_benchmark(n_draws=1000).to_frame()
        rank = rankdata(-scores[n])[[int(name[1:]) for name in table["algorithm"]]]
        return ((table["rank_low"] <= rank) & (rank <= table["rank_high"])).mean()

    assert at_least(rate_of(study, 400, k + n), 400, 0.93)
