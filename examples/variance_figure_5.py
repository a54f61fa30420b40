"""Standard error of the mean of k scores: what is randomised matters more than how often.

    python variance_figure_5.py [folder]

Figure 5 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, shows two of
their five tasks; this one has a small network on two data sets of the bundled study, `variance_figure_h4.py` all.
Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.bench.estimators.quality import EstimatorQuality, quality_from_scores
from lmemtest.plots import detached_figures

EDGES = {"left": 0.02, "right": 0.98, "bottom": 0.01, "top": 0.95, "hspace": 0.15}  # plots keep inside their axes


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
    figure = Figure(figsize=(7, 7), facecolor="white")
    with detached_figures():
        for ax, dataset in zip(figure.subplots(2, gridspec_kw=EDGES), ("digits", "wine"), strict=True):
            found = quality(study, "mlp", dataset)
            found.plot(ax=ax)
            ax.set_title(f"mlp on {dataset}", loc="left")
            print(f"mlp on {dataset}", *found.sentences(), sep="\n  ")
    figure.savefig(out / "variance-figure-5.svg")


if __name__ == "__main__":
    main()
