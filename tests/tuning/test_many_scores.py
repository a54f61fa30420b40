"""Maxima of many scores are looked for with few buckets, and are those of all of them."""

from __future__ import annotations

import sys

import numpy as np

from lmemtest.tuning import NoisyQuadraticDistribution, fit
from lmemtest.tuning.fit.profile import Family

spacings = sys.modules["lmemtest.tuning.fit.spacings"]


def test_buckets_put_together_hold_the_same_scores():
    data = spacings.spacings(np.random.default_rng(0).normal(size=4321), -np.inf, 0, np.inf, 0)
    few = spacings.thinned(data)
    assert 400 <= len(few.edges) <= 440
    assert len(few.weights) == len(few.edges) + 1
    assert few.total == data.total
    below = np.searchsorted(data.edges, few.edges)
    np.testing.assert_allclose(few.shares, data.shares[below], rtol=1e-12)
    assert spacings.thinned(few) is few


def test_the_fit_to_many_scores_is_that_of_all_buckets(monkeypatch):
    rng = np.random.default_rng(1)
    scores = NoisyQuadraticDistribution(0.0, 1.0, 2, 0.1, convex=True).ppf(rng.random(4000))
    options = {"direction": "minimize", "law": "noisy_quadratic", "constraints": {"c": 2}}
    found = fit(scores, **options).to_frame()
    monkeypatch.setattr(spacings, "thinned", lambda data: data)
    whole = fit(scores, **options).to_frame()
    columns = ["estimate", "ci_low", "ci_high"]
    # A search ends where a step promises 1e-7 of M: 4e-4 of a standard error, which is 0.005 here.
    np.testing.assert_allclose(found[columns], whole[columns], rtol=0.0, atol=2e-6)


def test_the_peaks_of_many_scores_take_a_third_of_the_work_at_most(monkeypatch):
    """Distances of scores from a law, counted."""
    rng = np.random.default_rng(1)
    scores = NoisyQuadraticDistribution(0.0, 1.0, 2, 0.1, convex=True).ppf(rng.random(4000))
    evaluations = []
    original = spacings.noisy_value
    monkeypatch.setattr(
        spacings, "noisy_value", lambda data, c, at: evaluations.append(len(data.edges)) or original(data, c, at)
    )
    anywhere = (-np.inf, np.inf)

    def work():
        evaluations.clear()
        data = spacings.spacings(scores, -np.inf, 0, np.inf, 0)
        Family(data, anywhere, anywhere, (0.0, np.inf), (2,)).climb_all()
        return sum(evaluations)

    few = work()
    monkeypatch.setattr(spacings, "thinned", lambda data: data)
    assert few < work() / 3
