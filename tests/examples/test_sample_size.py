"""Numbers of runs: those of the paper, and power that is a binomial tail."""

from __future__ import annotations

import numpy as np
import pytest
from exact_coverage import ends_of
from paper_figures.sample_size import (
    decision_power,
    interval_of_wins,
    noether_sample_size,
    sample_size,
    sample_size_plot,
)
from scipy import stats

from lmemtest.bench.outperforming.verdict import adjusted_gamma
from lmemtest.errors import ArgumentError


@pytest.mark.parametrize("method", ["score", "exact", "percentile"])
def test_intervals_are_those_of_the_package(method):
    for n in (1, 7, 50):
        wins = np.arange(n + 1)
        want = ends_of(np.array([wins, np.zeros(n + 1), n - wins]), method, 0.9)
        np.testing.assert_allclose(interval_of_wins(n, method, 0.9), want, atol=1e-14)


def test_noether_gives_the_numbers_of_the_paper():
    # 29 at the settings of the paper, more than 700 below 0.55, more than 500 "quickly" below 0.6
    assert noether_sample_size(0.75, 0.05, 0.05) == 29
    assert noether_sample_size(0.55) > 700


def test_power_is_the_binomial_tail_of_the_least_significant_number_of_wins():
    # Wilson's lower end of 20 of 29 is above one half, that of 19 is not.
    assert decision_power(29, 0.75) == pytest.approx(stats.binom.sf(19, 29, 0.75), abs=1e-12)
    assert decision_power(29, 0.75, method="exact") == pytest.approx(stats.binom.sf(20, 29, 0.75), abs=1e-12)


def test_pairs_are_the_smallest_number_from_which_on_the_power_is_enough():
    row = sample_size(0.9).iloc[0]
    n = int(row["pairs"])
    assert decision_power(n - 1, 0.9) < 0.95
    assert all(decision_power(n + more, 0.9) >= 0.95 for more in range(8))
    assert row["noether"] == noether_sample_size(0.9)


def test_gamma_rises_so_that_as_many_runs_detect_it():
    assert noether_sample_size(adjusted_gamma(0.75, 0.05, 10), 0.005) == noether_sample_size(0.75, 0.05)


def test_what_has_no_number_of_runs_is_refused():
    with pytest.raises(ArgumentError, match=r"gamma must be a number between 0.5 and 1, both excluded, got 0.5"):
        noether_sample_size(0.5)
    with pytest.raises(ArgumentError, match="method must be 'score', 'exact' or 'percentile', got 'bca'"):
        decision_power(10, 0.75, method="bca")


@pytest.mark.level(2)
def test_sizes_and_the_recommendation_of_the_paper_are_drawn_over_gamma():
    planned = sample_size([0.55, 0.65, 0.75, 0.9])
    (ax,) = sample_size_plot(planned).axes
    pairs, noether, star = ax.lines
    assert pairs.get_xdata().tolist() == noether.get_xdata().tolist() == planned["gamma"].tolist()
    np.testing.assert_array_equal(pairs.get_ydata(), planned["pairs"])
    assert noether.get_ydata()[0] == 722.0
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (0.75, 29.0)
    assert star.get_label() == "the paper's recommendation: 29 runs"
    assert ax.get_yscale() == "log"
    assert len(sample_size_plot(sample_size([0.85, 0.9])).axes[0].lines) == 2
