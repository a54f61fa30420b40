"""Comparisons on exactly these benchmarks, with runs as the sample, keep their level where noise is unlike."""

from __future__ import annotations

import numpy as np
import pytest
from harness import at_most, rate_of
from study import runs_of_scores

import lmemtest as lt


def draw(rng, k, n, r, *, law, shared):
    """Scores (k, n, r): equal means over the benchmarks, advantages on each; noise by benchmark and by algorithm."""
    advantages = 0.8 * rng.normal(size=(k, n, 1))
    advantages -= advantages.mean(axis=1, keepdims=True)
    noise = rng.normal(size=(k, n, r)) if law == "normal" else rng.standard_t(3, size=(k, n, r))
    noise = np.geomspace(0.5, 2.0, k)[:, None, None] * noise + shared * rng.normal(size=(1, n, r))
    return advantages + rng.normal(size=(1, n, 1)) + np.exp(0.7 * rng.normal(size=(1, n, 1))) * noise


@pytest.mark.parametrize(("k", "n", "r"), [(4, 6, 5), (4, 20, 3), (8, 10, 5), (4, 6, 2), (2, 5, 2)])
@pytest.mark.parametrize(("law", "shared"), [("normal", 0.7), ("normal", 0.0), ("heavy tails", 0.7)])
def test_any_false_difference_on_these_benchmarks(k, n, r, law, shared):
    """Measured: 1.5 to 5.8 % of 400 tables with normal noise, 1 to 2 % with heavy tails."""

    def any_false(rng):
        runs = runs_of_scores(draw(rng, k, n, r, law=law, shared=shared), "algorithm benchmark seed", seed_shared=False)
        model = lt.ModelBuilder(runs).recommended(population="run")
        return bool(model.fit().emmeans("algorithm").pairs().to_frame()["p_value"].min() < 0.05)

    rate = rate_of(any_false, 400, k * n * r)
    assert at_most(rate, 400, 0.055), rate
