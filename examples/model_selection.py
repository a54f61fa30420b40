"""Which terms does a model of a benchmark study need? Forward selection, the best model, and an honest test.

    python model_selection.py [folder]

Extends section 4.4 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
benchmarking, arXiv:2408.02533. Writes svg figures into the folder (default: out). With the environment variable
LMEMTEST_DATA set, the runs are those of the paper, priorband.parquet in that folder; else the bundled ones.
"""

import argparse
import os
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures


def study() -> lt.Runs:
    """The runs at their largest budget."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return lt.datasets.load_hpo_runs().filter(budget=32)
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    last = runs.filter(used_fidelity=runs.levels("used_fidelity")[-1])
    # benchmarks have scores on scales of their own: ranks count each of them the same
    return last.normalize("rank", by=("benchmark", "prior"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()

    path = lt.select_model(runs, n_jobs=2)
    print(path, end="\n\n")

    models = lt.select_model(runs, method="best", n_jobs=2)
    print(models, end="\n\n")

    halves = lt.select_model(runs, validate="half", rng=1, n_jobs=2)
    print(halves.holdout)

    with detached_figures():
        for name, result in (("path", path), ("models", models)):
            lt.plots.selection_plot(result).figure.savefig(out / f"selection-{name}.svg")


if __name__ == "__main__":
    main()
