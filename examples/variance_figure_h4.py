"""Standard error of the mean of k scores, for every pipeline and data set.

    python variance_figure_h4.py [folder]

Figure H.4 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.bench.estimators.quality import EstimatorQuality, quality_from_scores
from lmemtest.plots import detached_figures

# plots keep inside their axes
EDGES = {"left": 0.02, "right": 0.98, "bottom": 0.01, "top": 0.96, "hspace": 0.15, "wspace": 0.04}


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
    figure = Figure(figsize=(12, 11), facecolor="white")
    with detached_figures():
        for row, dataset in zip(figure.subplots(3, 2, gridspec_kw=EDGES), ("cancer", "digits", "wine"), strict=True):
            for ax, pipeline in zip(row, ("linear", "mlp"), strict=True):
                found = quality(study, pipeline, dataset)
                found.plot(ax=ax)
                ax.set_title(f"{pipeline} on {dataset}", loc="left")
                print(f"{pipeline} on {dataset}", *found.sentences(), sep="\n  ")
    figure.savefig(out / "variance-figure-h4.svg")


if __name__ == "__main__":
    main()
