"""Sanity checks of a table of runs: does the seed, the benchmark, the budget matter?

    python paper_figure_03.py [folder]

Figure 3 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533. Writes svg figures into the folder (default: out). With the environment variable LMEMTEST_DATA set,
the runs are those of the paper, priorband.parquet in that folder; else the bundled ones.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import benchmark_information_plot, budget_effect_plot, detached_figures, seed_effect_plot

PAPER = """Paper: seed is not a significant effect; all benchmarks it lists (LC-167190, LC-126026, LC-168330, LC-168910,
PD1-LM1B, PD1-WMT, JAHS-C10) are informative; the budget should be used as an interaction effect."""


def study() -> lt.Runs:
    """Regrets, as in figure 10 of the paper."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return replace(lt.datasets.load_hpo_runs().filter(algorithm=["HB+prior", "HB", "RS"]), score="regret")
    return replace(lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet"), score="normalized_regret")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    seeds = lt.seed_effect(runs)
    information = lt.benchmark_information(runs, by="benchmark")
    budget = lt.budget_effect(runs)
    print(f"\n{PAPER}\n")
    for found in (seeds, information, budget):
        print("Here:", found.sentences()[0])
    with detached_figures():
        for name, ax in (
            ("seeds", seed_effect_plot(seeds)),
            ("benchmarks", benchmark_information_plot(information)),
            ("budget", budget_effect_plot(budget)),
        ):
            ax.figure.savefig(out / f"figure-03-{name}.svg")


if __name__ == "__main__":
    main()
