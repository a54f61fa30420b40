"""Does a seed decide the score of an algorithm? A synthetic table in which it does for one of three.

    python paper_figure_14_15.py [folder]

Figures 14 and 15 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
benchmarking, arXiv:2408.02533. Writes svg figures into the folder (default: out). The paper does not publish its table,
so this is a draw of our own from its description.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.plots import detached_figures, score_distributions_plot, seed_effect_plot

REPEATS = 4  # runs of an algorithm per seed


def study(seed: int = 1) -> lt.Runs:
    """Mean 2.5 and variance 0.55, but for every second seed the mean of A-1 is 0.1 x seed."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, number, _ in product(("A-0", "A-1", "A-2"), range(50), range(REPEATS)):
        mean = 0.1 * number if name == "A-1" and number % 2 else 2.5
        rows.append((name, number, rng.normal(mean, np.sqrt(0.55))))
    table = pd.DataFrame(rows, columns=["algorithm", "seed", "loss"])
    return lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", seed="seed")


def scores_over_seeds(runs: lt.Runs) -> Figure:
    """Every score over its seed, in which the seeds can be seen that have a mean of their own."""
    table = runs.to_frame()
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for ax, (name, rows) in zip(axes, table.groupby("algorithm"), strict=True):
        own = (name == "A-1") & (rows["seed"] % 2 == 1)
        for part, colour, marker, label in (
            (rows[~own], "#0072B2", "o", "mean 2.5"),
            (rows[own], "#D55E00", "s", "mean 0.1 x seed"),
        ):
            ax.plot(part["seed"], part["loss"], marker, markersize=2.5, alpha=0.6, color=colour, label=label)
        ax.set_title(str(name), loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("Seed")
    axes[0].set_ylabel("Loss (lower is better)")
    axes[1].legend(frameon=False, fontsize="small", loc="upper left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    result = lt.seed_effect(runs)
    print("\nPaper, on its own draw: chi-square 252.4, p 0.0, likely influenced: A-1.")
    print("Here, on this draw:", *result.sentences())
    print(result.to_frame()[["algorithm", "f_ratio", "p_value", "affected", "seed_share"]].round(3).to_string())
    by_algorithm = lt.score_distributions(runs)
    print(by_algorithm)
    with detached_figures():
        scores_over_seeds(runs).savefig(out / "figure-14.svg")
        score_distributions_plot(by_algorithm).figure.savefig(out / "figure-14-violins.svg")
        seed_effect_plot(result).figure.savefig(out / "figure-15.svg")


if __name__ == "__main__":
    main()
