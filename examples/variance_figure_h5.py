"""Bias, variance, correlation and mean squared error of estimators of a mean score.

    python variance_figure_h5.py [folder]

Figure H.5 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes svg figures into the folder (default: out).
"""

import argparse
from pathlib import Path

from paper_figures.estimator_quality import decomposition_plot, quality_of_study

import lmemtest as lt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    study = lt.datasets.load_pipeline_study()
    for dataset in ("cancer", "digits", "wine"):
        for pipeline in ("linear", "mlp"):
            found = quality_of_study(study, pipeline, dataset)
            decomposition_plot(found).savefig(out / f"variance-figure-h5-{pipeline}-{dataset}.svg")
            table = found.decomposition[["estimator", "k", "bias", "variance", "rho", "mse"]]
            print(f"{pipeline} on {dataset}", table.to_string(index=False), sep="\n")


if __name__ == "__main__":
    main()
