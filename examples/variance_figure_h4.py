"""Standard error of the mean of k scores, for every pipeline and data set.

    python variance_figure_h4.py [folder]

Figure H.4 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes an svg figure into the folder (default: out).
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
    figure = Figure(figsize=(12, 11), layout="constrained")
    for row, dataset in zip(figure.subplots(3, 2), ("cancer", "digits", "wine"), strict=True):
        for ax, pipeline in zip(row, ("linear", "mlp"), strict=True):
            found = quality_of_study(study, pipeline, dataset)
            quality_plot(found, ax)
            ax.set_title(f"{pipeline} on {dataset}", loc="left")
            print(f"{pipeline} on {dataset}", found.at_largest_k.to_string(index=False), sep="\n")
    figure.savefig(out / "variance-figure-h4.svg")


if __name__ == "__main__":
    main()
