"""Does a prior decide which of two optimisers is better, and on which benchmarks does it not?

    python metafeature_analysis.py [folder]

Figures 4 and 12 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
benchmarking, arXiv:2408.02533, and the same question as one mixed model. Writes svg figures into the folder (default:
out). With the environment variable LMEMTEST_DATA set, the runs are those of the paper, priorband.parquet in that
folder; else the bundled ones.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import lmemtest as lt
from lmemtest.plots import detached_figures

# what figure 12 of the paper prints of its contrasts of PriorBand against Hyperband, the bad prior minus the good one
PAPER = {"LC-167190": 0.125, "LC-126026": -0.708, "LC-168330": -0.500, "LC-168910": -0.125, "PD1-LM1B": -1.208}


def beside_paper(outcomes: Any) -> str:
    """The contrasts that the paper prints, beside ours."""
    ours = outcomes.contrasts.set_index("benchmark")["contrast"]
    lines = [f"  {name}: {ours[name]:.3f} (paper {value:.3f})" for name, value in PAPER.items()]
    differ = [name for name, value in PAPER.items() if abs(ours[name] - value) > 0.001]
    return "\n".join(
        [
            "Figure 12:",
            *lines,
            f"  {' and '.join(differ)} differ, by one of 24 budgets each.",
        ]
    )


def study() -> tuple[lt.Runs, tuple[str, str]]:
    """The runs, and the two algorithms."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return lt.datasets.load_hpo_runs(), ("HB+prior", "HB")
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    return runs, ("PB", "HB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs, algorithms = study()

    outcomes = lt.metafeature_effect(runs, algorithms, "prior", method="outcomes", rng=0)
    print(outcomes, end="\n\n")
    if set(PAPER) <= set(outcomes.benchmarks):
        print(beside_paper(outcomes), end="\n\n")
    naive = lt.metafeature_effect(runs, algorithms, "prior", method="outcomes", unit="budget")
    print("With budgets as repetitions:", *naive.sentences(), end="\n\n")

    # ranks within benchmark, prior and budget: every budget and every benchmark counts the same
    ranks = runs.filter(algorithm=list(algorithms)).normalize("rank", by=("benchmark", "prior", "budget"))
    model = lt.metafeature_effect(ranks, algorithms=algorithms, metafeature="prior", rng=0)
    print(model)

    with detached_figures():
        for name, result in (("clusters", outcomes), ("contrasts", model)):
            lt.plots.metafeature_effect_plot(result).figure.savefig(out / f"metafeature-{name}.svg")


if __name__ == "__main__":
    main()
