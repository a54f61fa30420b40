"""Relative ranks over the budget, for all instances and for each quality of the prior.

    python paper_figure_06.py [folder]

Figure 6 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533, which comes from Mallik et al. (2023), PriorBand, arXiv:2306.12370. Writes svg figures into the folder
(default: out). With the environment variable LMEMTEST_DATA set, the runs are those of the paper, priorband.parquet in
that folder; else the bundled ones.
"""

import argparse
import os
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures


def study() -> lt.Runs:
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return lt.datasets.load_hpo_runs().filter(algorithm=["HB+prior", "HB", "RS"])
    return lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    with detached_figures():
        for over in ("benchmarks", "seeds"):
            ranks = lt.anytime(runs).ranks(by="prior", unit=over)
            print(f"Intervals over {over}: {ranks.band}")
            print("\n".join(f"  {sentence}" for sentence in ranks.sentences()))
            lt.plots.relative_ranks_plot(ranks).figure.savefig(out / f"figure-06-{over}.svg")
    print("Paper: the band is one standard error over seeds (rank - se to rank + se of unit='seeds').")
    if "rel_rank" in runs.columns:
        theirs = runs.to_frame().groupby([runs.algorithm, runs.budget])["rel_rank"].mean()
        ours = ranks.table[ranks.table["prior"] == "all"].set_index(["algorithm", "budget"])["rank"]
        print(f"The column rel_rank of the data has the same means: largest difference {abs(ours - theirs).max():.1e}.")


if __name__ == "__main__":
    main()
