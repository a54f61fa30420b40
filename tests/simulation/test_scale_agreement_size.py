"""Equal mean scores, equal mean ranks, equal means of min-max and z-scores: where one holds and the others do not."""

from __future__ import annotations

import numpy as np
import pytest
from harness import at_most, rate_of, tukey_differs
from scipy import special, stats
from scipy.optimize import brentq
from study import runs_of_scores

import lmemtest as lt

USUAL, SEEDS = 2.5, 5  # logit of the usual accuracy; runs of an algorithm on a benchmark


def centre(sd: float) -> float:
    """The logit of an algorithm whose advantages have this sd and whose mean accuracy is that of the ordinary ones."""
    z = special.ndtri((np.arange(4000) + 0.5) / 4000)
    total = lambda own: np.sqrt(1.0 + own**2 + 0.25)  # noqa: E731  levels, advantages, runs
    want = special.expit(USUAL + total(0.5) * z).mean()
    return brentq(lambda c: special.expit(c + total(sd) * z).mean() - want, -5.0, 20.0)


def accuracies(rng: np.random.Generator, sd: float, benchmarks: int, algorithms: int) -> np.ndarray:
    """Accuracies near 1 of algorithms of equal mean accuracy, the last of which has advantages of its own sd."""
    sds, at = np.full(algorithms, 0.5), np.full(algorithms, USUAL)
    sds[-1], at[-1] = sd, centre(sd)
    eta = at + rng.normal(size=(benchmarks, 1)) + sds * rng.normal(size=(benchmarks, algorithms))
    return special.expit(eta[..., None] + 0.5 * rng.normal(size=(benchmarks, algorithms, SEEDS)))


def rates(sd: float, benchmarks: int, algorithms: int, n: int) -> dict[str, float]:
    """Tables in which some pair differs, by scale."""

    def study(rng):
        Y = accuracies(rng, sd, benchmarks, algorithms)
        flat = Y.reshape(benchmarks, -1)
        low, high, spread = (x[:, None, None] for x in (flat.min(axis=1), flat.max(axis=1), flat.std(axis=1, ddof=1)))
        scales = {"score": Y, "rank": stats.rankdata(flat, axis=1).reshape(Y.shape)}
        scales |= {"minmax": (Y - low) / (high - low), "zscore": Y / spread}
        return {name: tukey_differs(scores) for name, scores in scales.items()}

    return rate_of(study, n, 3)


@pytest.mark.parametrize("algorithms", [3, 6])
def test_alike_algorithms_differ_on_no_scale(algorithms):
    for share in rates(0.5, 12, algorithms, 600).values():
        assert at_most(share, 600)


@pytest.mark.parametrize(
    ("benchmarks", "algorithms", "least"), [(12, 3, 0.3), (12, 6, 0.3), (30, 3, 0.6), (30, 6, 0.6)]
)
def test_mean_ranks_differ_where_mean_scores_do_not(benchmarks, algorithms, least):
    """More benchmarks make it more certain, as for any true difference."""
    found = rates(2.5, benchmarks, algorithms, 300)
    assert not at_most(found["rank"], 300, least, p=0.05)
    for scale in ("minmax", "zscore"):
        assert not at_most(found[scale], 300, 0.15, p=0.05)
        assert found["rank"] > found[scale] > found["score"]


def test_agreement_claims_no_more_than_its_two_tests():
    """Alike algorithms: some pair is called different on either scale in at most 10 %, opposite ones never."""

    def study(rng):
        found = lt.robustness(runs_of_scores(accuracies(rng, 0.5, 10, 4), direction="maximize"), of="score")
        return not found.alike.all(), found.opposite.any()

    other, opposite = rate_of(study, 100, 4)
    assert at_most(other, 100, 0.10)
    assert opposite == 0
