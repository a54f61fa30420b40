"""Marginal means, all pairs, and the critical-difference diagram as a PNG file.

python marginal_means.py [ranking.png]
"""

import sys
import tempfile
from pathlib import Path

import lmemtest as lt


def main() -> None:
    """Compare the algorithms at one budget."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "ranking.png"
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    model = lt.recommend(runs)
    print(model, "\n")

    means = lt.fit_lmm(model.formula, runs).emmeans("algorithm")
    differences = means.pairs()
    ranking = differences.separation()
    print(means, "\n")
    print(differences, "\n")
    print(ranking)

    axes = lt.plots.cd_diagram(ranking)
    axes.figure.savefig(target, dpi=150)
    print("Figure:", target)


if __name__ == "__main__":
    main()
