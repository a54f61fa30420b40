"""Which optimiser is better at which budget, over all budgets at once?

    python anytime_performance.py [folder]

What figure 5 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533, asks for windows of budgets, with bands that hold at all budgets together. Writes svg figures into the
folder (default: out). With the environment variable LMEMTEST_DATA set, the runs are those of the paper,
priorband.parquet in that folder; else the bundled ones.
"""

import argparse
import os
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures

FIGURES = {
    "curves": lt.plots.anytime_plot,
    "differences": lt.plots.anytime_differences_plot,
    "ribbon": lt.plots.cd_ribbon,
}


def study() -> lt.Runs:
    """Runs with a bad prior: the one that an optimiser has to recover from."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return lt.datasets.load_hpo_runs().filter(prior="bad", algorithm=["HB", "HB+prior", "RS", "TPE"])
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    return runs.filter(prior="bad")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    # ranks within benchmark and budget: scores of different benchmarks have no common unit
    result = lt.anytime(study().normalize("rank"), columns="budgets", rng=0)
    print(result)
    with detached_figures():
        for name, figure in FIGURES.items():
            figure(result).figure.savefig(out / f"anytime-{name}.svg")


if __name__ == "__main__":
    main()
