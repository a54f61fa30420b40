"""Marginal means, all pairs, and the critical-difference diagram as a PNG file.

    python marginal_means.py [folder]

Writes ranking.png into the folder (default: out).
"""

import argparse
from pathlib import Path

import lmemtest as lt


def main() -> None:
    """Compare the algorithms at one budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figure (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    model = lt.recommend(runs)
    print(model, "\n")

    means = lt.fit_lmm(model.formula, runs).emmeans("algorithm")
    differences = means.pairs()
    ranking = differences.decisions()
    print(means, "\n")
    print(differences, "\n")
    print(ranking)

    axes = lt.plots.cd_diagram(ranking)
    axes.figure.savefig(out / "ranking.png", dpi=150)
    print("Figure:", out / "ranking.png")


if __name__ == "__main__":
    main()
