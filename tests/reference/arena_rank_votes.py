"""Ratings and sandwich errors of arena-rank, of the votes in votes.json: without and with a style, and with ties.

pip install arena-rank==0.1.1
python arena_rank_votes.py > arena_rank_votes.json
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset

EXACT = {"max_iter": 10_000, "ftol": 0.0, "gtol": 1e-13}  # the Hessian has its usual 1e-5 of a vote on the diagonal


def answer(model: Any, votes: Any) -> dict[str, list[float]]:
    """Ratings and their standard errors, in points; effects of covariates in logits."""
    found = model.compute_ratings_and_cis(votes)
    parts = {"rating": found["ratings"], "se": np.sqrt(found["variances"]), "covariates": found.get("coeffs", [])}
    return {name: np.asarray(values).tolist() for name, values in parts.items()}


def main() -> None:
    """Write everything to standard output."""
    texts = json.loads(Path(__file__).with_name("votes.json").read_text())["votes"]
    table = pd.DataFrame({name: np.array(text.split(), dtype=float) for name, text in texts.items()})
    table = table.assign(
        model_a=table["a"], model_b=table["b"], first=1.0, style=table["length"] / table["length"].std(ddof=0)
    )
    won, y = (
        table["won"].map({1.0: "model_a", 0.0: "model_b"}),
        table["y"].map({1.0: "model_a", -1.0: "model_b", 0.0: "tie"}),
    )

    def plain(winner: Any) -> dict[str, list[float]]:
        votes = PairDataset.from_pandas(table.assign(winner=winner))
        return answer(BradleyTerry(votes.n_competitors, **EXACT), votes)

    def styled(winner: Any) -> dict[str, list[float]]:
        votes = ContextualPairDataset.from_pandas(
            table.assign(winner=winner), ["first", "style"], reweighted=False, normalize_features=False
        )
        return answer(ContextualBradleyTerry(votes.n_competitors, 2, reg=0.0, **EXACT), votes)

    everything = {
        "versions": {name: version(name) for name in ("arena-rank", "jax", "numpy")},
        "plain": plain(won),
        "styled": styled(won),
        "ties": plain(y),
        "ties_styled": styled(y),
    }
    json.dump(everything, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
