"""Which optimiser is best at which budget, and does that change? Three horizons and one window.

    python paper_figure_05.py [folder]

Figure 5 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533: budgets 5, 10 and 15, and all data from 5 to 15 as one comparison, by the model of the paper and by
the recommended one. Writes a svg figure into the folder (default: out). With the environment variable LMEMTEST_DATA
set, the runs are those of the paper, priorband.parquet in that folder; else bundled ones, with their own budgets.
"""

import os
import sys
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures
from lmemtest.plots.horizons import horizons_plot
from lmemtest.recipes.horizons import horizons


def study() -> tuple[lt.Runs, list[float | tuple[float, float]]]:
    """The runs, and the horizons."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE", "HB+prior"])
        return runs, [4, 8, 16, (4, 16)]
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    return runs, [5, 10, 15, (5, 15)]


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    out.mkdir(parents=True, exist_ok=True)
    runs, budgets = study()

    found = horizons(runs, budgets, paper=True)
    print(found, end="\n\n")
    print("The recommended model beside that of the paper, which counts every row:")
    print(found.paper_frame().to_string(index=False, float_format="{:.3g}".format))

    with detached_figures():
        horizons_plot(found)[0].figure.savefig(out / "paper-figure-05.svg")


if __name__ == "__main__":
    main()
