"""Which benchmarks tell the algorithms apart? Three synthetic ones, of which the first does not.

    python paper_figure_16_17.py [folder]

Figures 16 and 17 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
benchmarking, arXiv:2408.02533. Writes svg figures into the folder (default: out). The paper does not publish its table,
so this is a draw of our own from its description.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.plots import benchmark_information_plot, detached_figures, score_distributions_plot

MEANS = {"B-0": (1.0, 1.0, 1.0), "B-1": (1.0, 1.2, 1.4), "B-2": (0.5, 1.0, 1.5)}


def study(seed: int = 1) -> lt.Runs:
    """On B-0 all algorithms are alike, on B-1 they differ, on B-2 they differ more."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"A-{a}", benchmark, run, rng.normal(MEANS[benchmark][a], 0.3))
        for benchmark, a, run in product(MEANS, range(3), range(50))
    ]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])
    return lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    result = lt.benchmark_information(runs, rank_benchmarks=True)
    print("\nPaper, on its own draw: B-0 is uninformative, the ranking puts B-2 first.")
    print("Here, on this draw:", *result.sentences())
    columns = ["benchmark", "f_ratio", "p_value", "share", "variance", "variance_low", "variance_high"]
    print(result.ranking[columns].round(3).to_string(index=False))
    with detached_figures():
        grouped = lt.score_distributions(runs, by=["benchmark", "algorithm"])
        score_distributions_plot(grouped).figure.savefig(out / "figure-16.svg")
        benchmark_information_plot(result).figure.savefig(out / "figure-17.svg")


if __name__ == "__main__":
    main()
