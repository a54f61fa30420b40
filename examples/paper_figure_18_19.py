"""Does the budget matter, and for all algorithms alike? A synthetic table in which it moves all of them alike.

    python paper_figure_18_19.py [folder]

Figures 18 and 19 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
benchmarking, arXiv:2408.02533. Writes svg figures into the folder (default: out). The paper does not publish its table,
so this is a draw of our own from its description.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.plots import budget_effect_plot, detached_figures, score_distributions_plot

BENCHMARKS, ALGORITHMS, SEEDS, BUDGETS = 6, 3, 20, 4


def study(seed: int = 1) -> lt.Runs:
    """Every step of the budget lowers the mean by 0.3, on some benchmarks a little more than on others."""
    rng = np.random.default_rng(seed)
    b, a, s, k = np.indices((BENCHMARKS, ALGORITHMS, SEEDS, BUDGETS)).reshape(4, -1)
    slope = -0.3 + 0.05 * rng.normal(size=BENCHMARKS)
    loss = (
        2.5
        + 0.2 * a
        + 0.3 * rng.normal(size=BENCHMARKS)[b]
        + 0.1 * rng.normal(size=(BENCHMARKS, ALGORITHMS))[b, a]
        + 0.2 * rng.normal(size=(BENCHMARKS, ALGORITHMS, SEEDS))[b, a, s]
        + slope[b] * k
        + 0.3 * rng.normal(size=len(b))
    )
    names = {"algorithm": [f"A-{i}" for i in a], "benchmark": [f"B-{i}" for i in b]}
    table = pd.DataFrame(names | {"seed": s, "budget": k + 1.0, "loss": loss})
    return lt.Runs(
        table,
        score="loss",
        direction="minimize",
        algorithm="algorithm",
        benchmark="benchmark",
        seed="seed",
        budget="budget",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    result = lt.budget_effect(runs)
    print(
        "\nPaper, on its own draw: chi-square 828.1 for a budget effect, 0.007 for an interaction beyond it (p 0.996);"
    )
    print("the budget belongs into the model as a simple effect.")
    print("Here, on this draw:", result.sentences()[0])
    with detached_figures():
        grouped = lt.score_distributions(runs, by=["budget", "algorithm"])
        score_distributions_plot(grouped).figure.savefig(out / "figure-18.svg")
        budget_effect_plot(result).figure.savefig(out / "figure-19.svg")


if __name__ == "__main__":
    main()
