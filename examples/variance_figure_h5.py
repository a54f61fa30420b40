"""Bias, variance, correlation and mean squared error of estimators of a mean score.

    python variance_figure_h5.py [folder]

Figure H.5 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes svg figures into the folder (default: out).
"""

import argparse
from pathlib import Path

import pandas as pd

import lmemtest as lt
from lmemtest.bench.estimators.quality import EstimatorQuality, quality_from_scores
from lmemtest.plots import detached_figures, estimator_decomposition_plot


def quality(study: pd.DataFrame, pipeline: str, dataset: str) -> EstimatorQuality:
    """Scores of each estimator with fixed tuning, a row per tuning run, against the ideal one."""
    here = study[(study["pipeline"] == pipeline) & (study["dataset"] == dataset)]
    fixed = here[here["design"] == "fixed tuning"]
    scores = {
        f"fixed tuning, {varied} new": rows.groupby("tuning")["score"].apply(list).tolist()
        for varied, rows in fixed.groupby("varied", sort=False)
    }
    return quality_from_scores(scores, ideal=here.loc[here["design"] == "ideal", "score"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    study = lt.datasets.load_pipeline_study()
    with detached_figures():
        for dataset in ("cancer", "digits", "wine"):
            for pipeline in ("linear", "mlp"):
                found = quality(study, pipeline, dataset)
                figure = estimator_decomposition_plot(found).figure
                figure.savefig(out / f"variance-figure-h5-{pipeline}-{dataset}.svg")
                table = found.to_frame("decomposition")[["estimator", "k", "bias", "variance", "rho", "mse"]]
                print(f"{pipeline} on {dataset}", table.to_string(index=False), sep="\n")


if __name__ == "__main__":
    main()
