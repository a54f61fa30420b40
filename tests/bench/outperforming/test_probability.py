"""P(A > B) of two samples: intervals against closed forms and brute force, the conclusions, and the refusals."""

from __future__ import annotations

import numpy as np
import pytest
from exact_coverage import chances, coverage, ends_of, tables
from scipy import optimize, special, stats

import lmemtest as lt
from lmemtest.bench.outperforming.intervals import exact_interval, most_pairs, score_interval
from lmemtest.bench.outperforming.verdict import (
    MEANINGFUL,
    NOT_MEANINGFUL,
    NOT_SIGNIFICANT,
    POSSIBLY_MEANINGFUL,
    conclusions,
)
from lmemtest.errors import ArgumentError, DataError


def test_score_interval_is_wilsons_without_ties():
    for win in range(13):
        ci = stats.binomtest(win, 12).proportion_ci(method="wilson")
        assert score_interval(np.array([win, 0.0, 12 - win])) == pytest.approx((ci.low, ci.high), abs=1e-12)


def test_score_interval_inverts_the_score_test_with_the_likeliest_share_of_ties():
    counts = (9, 7, 4)
    low, high = score_interval(np.array(counts, dtype=float), 0.9)
    for end in (float(low), float(high)):

        def minus_log_likelihood(ties, end=end):
            return -float(special.xlogy(counts, [end - ties / 2, ties, 1 - end - ties / 2]).sum())

        room = 2 * min(end, 1 - end)
        ties = optimize.minimize_scalar(minus_log_likelihood, bounds=(1e-9, room - 1e-9), method="bounded",
                                        options={"xatol": 1e-12}).x  # fmt: skip
        z = (12.5 / 20 - end) / np.sqrt((end * (1 - end) - ties / 4) / 20)
        assert abs(z) == pytest.approx(special.ndtri(0.95), abs=1e-5)  # bounded search stops at the root of eps


def test_exact_interval_is_clopper_pearson_without_ties():
    for win in (0, 3, 10):
        ci = stats.binomtest(win, 10).proportion_ci(method="exact")
        assert exact_interval(np.array([win, 0.0, 10 - win])) == pytest.approx((ci.low, ci.high), abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_approach_those_of_all_draws(method):
    a, b = np.repeat([1.0, 0.0, 0.0], [14, 6, 9]), np.repeat([0.0, 0.0, 1.0], [14, 6, 9])
    low, high = (float(end[0]) for end in ends_of(np.array([[14.0], [6.0], [9.0]]), method))
    found = lt.outperforming(a, b, method=method, n_draws=40_000, rng=3)
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high), abs=0.5 / 29 + 1e-9)  # one step of the lattice


def test_chances_of_all_tables_are_multinomial():
    counts = tables(4)
    of_scipy = stats.multinomial(4, [0.6, 0.3, 0.1]).pmf(counts.T)
    assert chances(counts, 0.75, 0.3) == pytest.approx(of_scipy, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "ties", "method", "least"),
    [(29, 0.0, "score", 0.935), (29, 0.3, "score", 0.945), (10, 0.3, "exact", 0.99), (29, 0.8, "score", 0.95)],
)
def test_coverage_is_exact_and_near_its_level(n, ties, method, least):
    assert coverage(n, 0.5, ties, method) >= least


def test_percentile_intervals_of_few_pairs_do_not_cover():
    # All five won has an interval without length: the probability 0.9 is held in 40 % of the studies.
    assert coverage(5, 0.9, 0.0, "percentile") < 0.41
    assert coverage(5, 0.9, 0.0, "score") == pytest.approx(1 - stats.binom.cdf(3, 5, 0.9), abs=1e-12)


def test_meaningful_is_said_where_it_is_shown_and_the_papers_zone_is_the_sum_of_both():
    assert conclusions(0.49, 0.9, 0.75) == NOT_SIGNIFICANT
    assert conclusions(0.5, 0.9, 0.75) == NOT_SIGNIFICANT
    assert conclusions(0.51, 0.75, 0.75) == NOT_MEANINGFUL
    assert conclusions(0.51, 0.76, 0.75) == conclusions(0.75, 0.99, 0.75) == POSSIBLY_MEANINGFUL
    assert conclusions(0.76, 0.99, 0.75) == MEANINGFUL
    assert conclusions(np.nan, np.nan, 0.75) == NOT_SIGNIFICANT


@pytest.mark.parametrize("paired", [True, False])
def test_the_other_direction_is_the_other_algorithm(paired):
    rng = np.random.default_rng(4)
    a, b = rng.normal(0.5, 1.0, 20).round(1), rng.normal(0.0, 1.0, 20).round(1)
    one, other = (lt.outperforming(*pair, paired=paired) for pair in ((a, b), (b, a)))
    lower = lt.outperforming(-a, -b, paired=paired, direction="minimize")
    assert (one.estimate, one.ci_low, one.ci_high) == pytest.approx((lower.estimate, lower.ci_low, lower.ci_high))
    assert one.effects["estimate"].tolist() == pytest.approx(lower.effects["estimate"].tolist())
    assert one.estimate == pytest.approx(1 - other.estimate, abs=1e-12)
    assert (one.ci_low, one.ci_high) == pytest.approx((1 - other.ci_high, 1 - other.ci_low), abs=1e-12)


def delong(a, b):
    """Estimate, variance and degrees of freedom by hand."""
    n, m = len(a), len(b)
    share = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    parts = share.mean(axis=1).var(ddof=1) / n, share.mean(axis=0).var(ddof=1) / m
    return share.mean(), sum(parts), sum(parts) ** 2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1))


def test_not_paired_is_the_mann_whitney_statistic_with_delongs_variance():
    a, b = np.array([3.0, 5.0, 5.0, 8.0, 9.0]), np.array([1.0, 4.0, 5.5, 8.5])
    p, variance, df = delong(a, b)
    found = lt.outperforming(a, b, paired=False)
    assert (found.method, found.estimate) == ("score", pytest.approx(stats.mannwhitneyu(a, b).statistic / 20))
    for end in (found.ci_low, found.ci_high):
        t_ratio = (p - end) / np.sqrt(variance * end * (1 - end) / (p * (1 - p)))
        assert abs(t_ratio) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)
    logit = lt.outperforming(a, b, paired=False, method="logit")
    half = stats.t.ppf(0.975, df) * np.sqrt(variance) / (p * (1 - p))
    ends = special.expit(special.logit(p) + np.array([-half, half]))
    assert (logit.ci_low, logit.ci_high) == pytest.approx(tuple(ends), abs=1e-9)


def test_samples_apart_are_worth_as_many_pairs_as_those_of_one_distribution():
    found = lt.outperforming([4.0, 5, 6, 7, 8], [1.0, 2, 3], paired=False)
    pairs = 3 * 5 * 3 / 9  # p (1 - p) over Mann and Whitney's variance (n + m + 1) / (12 n m), p one half
    assert (found.estimate, found.ci_high) == (1.0, 1.0)
    assert found.ci_low == pytest.approx(pairs / (pairs + stats.t.ppf(0.975, 6) ** 2))
    assert "is that of 5 pairs" in found.notes[0]
    near = lt.outperforming([2.9, 5, 6, 7, 8], [1.0, 2, 3], paired=False)
    assert near.ci_low < found.ci_low  # one pair lost does not raise the limit


def test_runs_of_one_distribution_are_worth_what_their_ties_leave():
    a, b = np.repeat([0.0, 1.0, 2.0], [3, 5, 2]), np.repeat([0.0, 1.0, 2.0], [4, 2, 1])
    test = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False)
    z = stats.norm.isf(test.pvalue / 2.0)
    variance = ((test.statistic / 70.0 - 0.5) / z) ** 2
    assert most_pairs(np.sign(a[:, None] - b)) == pytest.approx(0.25 / variance)
    # two shares of ones: their pooled binomial variance
    right, wrong = (np.repeat([1.0, 0.0], sizes) for sizes in ([45, 5], [40, 10]))
    found = lt.outperforming(right, wrong, paired=False)
    sd = np.sqrt(0.25 * (0.85 * 0.15) * 2.0 / 50.0)
    assert found.ci_high - found.ci_low == pytest.approx(2.0 * 1.98 * sd, rel=0.05)


def test_of_right_and_wrong_answers_it_is_the_risk_difference():
    rng = np.random.default_rng(5)
    a, b = (rng.random(40) < p for p in (0.7, 0.5))
    for paired in (True, False):
        found = lt.outperforming(a, b, paired=paired)
        row = found.effects.iloc[0]
        assert row["kind"] == "risk difference"
        assert row["estimate"] == pytest.approx(a.mean() - b.mean(), abs=1e-12)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((2 * found.ci_low - 1, 2 * found.ci_high - 1))
        assert "count half" in " ".join(found.notes)
    lower = lt.outperforming(a, b, direction="minimize")
    assert lower.effects.iloc[0]["estimate"] == pytest.approx(a.mean() - b.mean(), abs=1e-12)


def test_scores_that_differ_by_rounding_are_tied():
    found = lt.outperforming([0.3] * 6, [0.1 + 0.2] * 6)
    assert (found.ties, found.estimate, found.conclusion) == (6, 0.5, NOT_SIGNIFICANT)
    assert "All pairs are tied" in found.notes[0]


@pytest.mark.parametrize(("b", "more", "facts", "words"), [
    ([1.0, 2, 3, 4], {}, {"estimate": 1.0, "conclusion": NOT_SIGNIFICANT, "method": "exact"},
     "p-value of 0.125: with fewer than 5 pairs"),
    ([1.0, 2, 3, 4, 5], {"method": "bca", "rng": 1}, {"ci_low": 1.0, "ci_high": 1.0}, "method='score' has one"),
], ids=["few pairs are never significant", "without variation bootstrap intervals have no length"])  # fmt: skip
def test_what_pairs_cannot_show_is_said(b, more, facts, words):
    found = lt.outperforming([x + 3.0 for x in b], b, **more)
    assert {name: getattr(found, name) for name in facts} == facts
    assert words in found.notes[0]


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"b": [1.0, 2.0]}, ArgumentError, "a and b must have the same length where they are paired, got 3 and 2"),
        ({"gamma": 0.5}, ArgumentError, "gamma must be a number between 0.5 and 1 (both excluded), since at one half"),
        ({"gamma": 1.0}, ArgumentError, "got 1.0. The usual value is 0.75."),
        ({"gamma": 75}, ArgumentError, "got 75. Write 0.75?"),
        ({"b": None}, ArgumentError, "b must be given: the scores of the runs"),
        ({"a": [1.0, np.nan, 2.0]}, DataError, "a must be finite, got 1 missing"),
        ({"method": "percentile", "n_draws": 10}, ArgumentError, "Take n_draws=40 at least"),
        ({"algorithms": ("A", "B")}, ArgumentError, "algorithms belongs to a Runs"),
        ({"measure": "median"}, ArgumentError, "measure must be 'probability' or 'cohen_d'"),
        ({"tau": 0.5}, ArgumentError, "tau is an option of measure='stochastic_order', got tau=0.5"),
    ],
)
def test_refusals(changed, error, words):
    good = {"a": [1.0, 2.0, 4.0], "b": [1.0, 3.0, 2.0], "rng": 1}
    with pytest.raises(error) as raised:
        lt.outperforming(**{**good, **changed})
    assert words in str(raised.value)
