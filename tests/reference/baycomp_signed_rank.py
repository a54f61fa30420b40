"""Posterior probabilities of baycomp's signed-rank test on fixed scores.

    pip install baycomp==1.0.3
    python baycomp_signed_rank.py > baycomp_signed_rank.json

Shares of 200,000 draws, so their standard error is below 0.0012.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import numpy as np
from baycomp import SignedRankTest

N_DRAWS = 200_000


def cases():
    """Name, two columns of scores and a ROPE each; whole numbers and tenths make ties, also with the limits."""
    rng = np.random.default_rng(20)
    x = rng.normal(size=12)
    yield "normal", x, x + rng.normal(0.2, 0.6, size=12), 0.0
    yield "normal", x, x + rng.normal(0.2, 0.6, size=12), 0.3
    skewed = rng.exponential(size=25)
    yield "skewed", skewed, skewed + rng.exponential(size=25) - 0.8, 0.1
    whole = rng.integers(0, 5, size=15).astype(float)
    yield "tied", whole, rng.integers(0, 5, size=15).astype(float), 0.0
    yield "tied", whole, rng.integers(0, 5, size=15).astype(float), 0.5
    yield "few", np.array([0.5, 1.0, -0.25]), np.zeros(3), 0.0


def main() -> None:
    rows = []
    for name, x, y, rope in cases():
        left, equal, right = SignedRankTest(x, y, rope=rope, nsamples=N_DRAWS, random_state=1).probs()
        # baycomp gives a draw without a largest outcome to the left; in its words "left" is the higher x
        rows.append({"name": name, "x": x.tolist(), "y": y.tolist(), "rope": rope, "p": [left, equal, right]})
    versions = {name: version(name) for name in ("baycomp", "numpy")}
    json.dump({"versions": versions, "n_draws": N_DRAWS, "cases": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
