"""How often each rule of decision finds A better, over the number of runs and over gamma.

    python variance_figure_i6.py [folder]

Figure I.6 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, by
simulation with 2 % of the variance shared by all trainings of a study. Writes svg figures into the folder (default:
out).
"""

import argparse
from pathlib import Path

from paper_figures.decision_rules import rule_curves, rule_curves_plot

TRUTHS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    gammas = (0.6, 0.7, 0.75, 0.8, 0.9)
    for over, options in (("n_runs", {}), ("gamma", {"gamma": gammas, "n_runs": [50]})):
        found = rule_curves(probabilities=TRUTHS, n_draws=1000, rng=1, **options)
        rule_curves_plot(found, over).savefig(out / f"variance-figure-i6-{over}.svg")
        print(found.to_string(index=False))


if __name__ == "__main__":
    main()
