"""Ratings by votes: false differences between equal models, and intervals, where voters have their own tastes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, at_least, at_most, each, printed, rate_of
from scipy.special import softmax

import lmemtest as lt
from lmemtest.bench.ranking.bradley_terry import ELO
from lmemtest.bench.votes.davidson import fit_votes
from lmemtest.lmm.distributions.student import two_sided_p

TASTE, PLACE, LOG_NU = 0.6, 0.3, -0.5


def draw(rng: np.random.Generator, theta: Any, n_voters: int, votes: float, *, heavy: bool, skew: float) -> Any:
    """Votes of voters with their own tastes; some vote much more than others, some models are shown more often."""
    k = len(theta)
    share = np.arange(1, k + 1) ** -skew / (np.arange(1, k + 1) ** -skew).sum()
    each_votes = (rng.pareto(1.5, n_voters) + 0.3) * votes / 2.3 if heavy else np.full(n_voters, votes)
    voter = np.repeat(np.arange(n_voters), np.maximum(each_votes, 1.0).astype(int))
    pair = np.argsort(np.log(share) + rng.gumbel(size=(len(voter), k)), axis=1)[:, -2:]  # two by their shares
    pair = rng.permuted(pair, axis=1)
    taste = theta + rng.normal(0.0, TASTE, (n_voters, k))
    x = taste[voter, pair[:, 0]] - taste[voter, pair[:, 1]] + PLACE
    chances = softmax(np.column_stack([x / 2.0, -x / 2.0, np.full(len(x), LOG_NU)]), axis=1)
    outcome = (rng.random(len(x))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    names = np.array([f"m{i}" for i in range(k)])
    columns = {"model_a": names[pair[:, 0]], "model_b": names[pair[:, 1]], "voter": voter}
    return pd.DataFrame({**columns, "winner": np.array(["a", "b", "tie"])[outcome]})


def rates(k: int, n_voters: int, votes: float, *, n: int = 1000, heavy: bool = False, skew: float = 0.0,
          apart: float = 0.0) -> dict[str, float]:  # fmt: skip
    """Tables with any false pair, by clusters and as if votes were independent; coverage of ratings and differences."""
    theta = np.linspace(apart, -apart, k) / 2.0
    truth = average_over_voters(theta) if apart else np.zeros(k)

    def study(rng: np.random.Generator) -> dict[str, float]:
        table = draw(rng, theta, n_voters, votes, heavy=heavy, skew=skew)
        found = lt.rate_votes(table, voter="voter")
        naive = lt.rate_votes(table.drop(columns="voter"))
        models = found.to_frame().set_index("model").loc[[f"m{i}" for i in range(k)]]
        holds = (models["ci_low"] - 1000.0 <= truth) & (truth <= models["ci_high"] - 1000.0)
        single = found.ratings.pairs(adjust="none").to_frame()
        i, j = np.triu_indices(k, 1)
        in_pairs = (single["ci_low"] <= truth[i] - truth[j]) & (truth[i] - truth[j] <= single["ci_high"])
        pairs = found.pairs
        error = (pairs["estimate"] - (truth[i] - truth[j])) / pairs["se"]
        p = two_sided_p(error, pairs["df"])
        by_single = naive.pairs
        wrong = two_sided_p((by_single["estimate"] - (truth[i] - truth[j])) / by_single["se"], by_single["df"])
        return {"any false pair": p.min() * len(p) < ALPHA, "as if independent": wrong.min() * len(p) < ALPHA,
                "ratings": holds.mean(), "differences": in_pairs.mean()}  # fmt: skip

    with warnings.catch_warnings():
        return rate_of(study, n, each(8), refused=dict.fromkeys(
            ("any false pair", "as if independent", "ratings", "differences"), np.nan))  # fmt: skip


def average_over_voters(theta: Any) -> Any:
    """The ratings that infinitely many voters would have, from the mean chances of each pair."""
    k, (nodes, weight) = len(theta), np.polynomial.hermite_e.hermegauss(60)
    a, b = (index.ravel() for index in np.indices((k, k)))
    a, b = a[a != b], b[a != b]
    x = (theta[a] - theta[b] + PLACE)[:, None] + np.sqrt(2.0) * TASTE * nodes
    chances = softmax(np.stack([x / 2.0, -x / 2.0, np.full(x.shape, LOG_NU)]), axis=0) @ (weight / weight.sum())
    X = np.zeros((len(a), k + 1))
    X[np.arange(len(a)), a], X[np.arange(len(a)), b], X[:, k] = 1.0, -1.0, 1.0
    import scipy.sparse as sp

    outcome = np.repeat([1.0, -1.0, 0.0], len(a))
    return ELO * fit_votes(sp.csr_array(np.tile(X, (3, 1))), outcome, chances.ravel(), k)[0][:k]


DESIGNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "4 models, 50 voters of 20 votes": ((4, 50, 20), {}),
    "4 models, unequal votes on models": ((4, 50, 20), {"skew": 1.5}),
    "4 models, heavy voters": ((4, 50, 20), {"heavy": True, "skew": 1.0}),
    "4 models, 10 voters of 60 votes": ((4, 10, 60), {}),
    "4 models of different quality": ((4, 50, 20), {"apart": 1.5}),
    "20 models, 50 voters of 40 votes": ((20, 50, 40), {"skew": 0.5}),
    "20 models, heavy voters": ((20, 50, 40), {"heavy": True, "skew": 0.5}),
    "20 models of different quality": ((20, 50, 40), {"apart": 2.0}),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_no_more_false_differences_than_stated_and_intervals_hold(design: str) -> None:
    n = 200
    (args, options) = DESIGNS[design]
    found = rates(*args, n=n, **options)
    assert at_most(found["any false pair"], n, 0.06)
    assert at_least(found["ratings"], n, 0.93)
    assert at_least(found["differences"], n, 0.93)
    assert found["as if independent"] > found["any false pair"]


if __name__ == "__main__":
    printed(lambda name: rates(*DESIGNS[name][0], **DESIGNS[name][1]), [(name,) for name in DESIGNS])
