"""Equal mean scores, equal mean ranks, equal means of min-max and z-scores: where one holds and the others do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from scipy.optimize import brentq
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.lmm.distributions.studentized_range import ptukey

pytestmark = pytest.mark.slow

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


def some_pair_differs(Y: np.ndarray) -> bool:
    """Tukey's test over benchmark means: that of the recommended model, balanced."""
    means = Y.mean(axis=2)
    benchmarks, k = means.shape
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (benchmarks - 1) * (k - 1)
    error = np.sqrt((rest**2).sum() / df / benchmarks)
    return bool(ptukey(np.ptp(means.mean(axis=0)) / error, k, df, upper=True) < 0.05)


def rates(sd: float, benchmarks: int, algorithms: int, n: int) -> dict[str, int]:
    """Tables in which some pair differs, by scale."""
    rng = np.random.default_rng(3)
    found = dict.fromkeys(("score", "rank", "minmax", "zscore"), 0)
    for _ in range(n):
        Y = accuracies(rng, sd, benchmarks, algorithms)
        flat = Y.reshape(benchmarks, -1)
        unit = (1, 1)
        low, high = (f(axis=1).reshape(-1, *unit) for f in (flat.min, flat.max))
        found["score"] += some_pair_differs(Y)
        found["rank"] += some_pair_differs(stats.rankdata(flat, axis=1).reshape(Y.shape))
        found["minmax"] += some_pair_differs((Y - low) / (high - low))
        found["zscore"] += some_pair_differs(Y / flat.std(axis=1, ddof=1).reshape(-1, *unit))
    return found


@pytest.mark.parametrize("algorithms", [3, 6])
def test_alike_algorithms_differ_on_no_scale(algorithms):
    for count in rates(0.5, 12, algorithms, 600).values():
        assert binomtest(count, 600, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("benchmarks", "algorithms", "least"), [(12, 3, 0.3), (12, 6, 0.3), (30, 3, 0.6), (30, 6, 0.6)]
)
def test_mean_ranks_differ_where_mean_scores_do_not(benchmarks, algorithms, least):
    """More benchmarks make it more certain, as for any true difference."""
    n = 300
    found = rates(2.5, benchmarks, algorithms, n)
    assert binomtest(found["rank"], n, least, alternative="greater").pvalue < 0.05
    for scale in ("minmax", "zscore"):
        assert binomtest(found[scale], n, 0.15, alternative="greater").pvalue < 0.05
        assert found["rank"] > found[scale] > found["score"]


def test_agreement_claims_no_more_than_its_two_tests():
    """Alike algorithms: some pair is called different on either scale in at most 10 %, opposite ones never."""
    rng = np.random.default_rng(4)
    n, other, opposite = 100, 0, 0
    for _ in range(n):
        Y = accuracies(rng, 0.5, 10, 4)
        frame = pd.DataFrame(np.argwhere(Y > -1), columns=["task", "tool", "seed"])
        frame = frame.assign(accuracy=Y.ravel(), tool=frame["tool"].map("ABCD".__getitem__))
        roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed"}
        found = lt.robustness(lt.Runs(frame, score="accuracy", direction="maximize", **roles), of="score")
        other += not found.alike.all()
        opposite += bool(found.opposite.any())
    assert binomtest(other, n, 0.10, alternative="greater").pvalue > 0.001
    assert opposite == 0
