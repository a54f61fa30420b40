"""Standard error of the mean of k scores: what is randomised matters more than how often.

    python variance_figure_5.py [folder]

Figure 5 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, shows two of
their five tasks; this one has a small network on two data sets of the bundled study, `variance_figure_h4.py` all.
Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

from matplotlib.figure import Figure
from paper_figures.estimator_quality import quality_of_study, quality_plot

import lmemtest as lt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    study = lt.datasets.load_pipeline_study()
    figure = Figure(figsize=(7, 7), layout="constrained")
    for ax, dataset in zip(figure.subplots(2), ("digits", "wine"), strict=True):
        found = quality_of_study(study, "mlp", dataset)
        quality_plot(found, ax)
        ax.set_title(f"mlp on {dataset}", loc="left")
        print(f"mlp on {dataset}", found.at_largest_k.to_string(index=False), sep="\n")
    figure.savefig(out / "variance-figure-5.svg")


if __name__ == "__main__":
    main()
