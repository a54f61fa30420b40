"""Optimisation curves on validation and test set: what tuning finds, and whether it overfits.

    python variance_figure_f2.py [folder]

Figure F.2 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, has 20
executions each of Bayesian optimisation, noisy grid search and random search on five deep-learning tasks. This one has
25 of random search, Hyperband and TPE for a small network on four data sets, from the bundled runs. The line is the
mean over executions of the best configuration so far, by validation, the band its standard deviation to both sides:
executions differ in the seed of the search only. The curves begin at three trainings: after one, the best so far is a
random configuration, whose standard deviation would leave no room for the rest. Writes an svg figure into the folder
(default: out).
"""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

import lmemtest as lt

COLOURS = {"RS": "#0072B2", "HB": "#D55E00", "TPE": "#009E73"}
DASHES = {"RS": "-", "HB": "--", "TPE": ":"}
NAMES = {"RS": "random search", "HB": "Hyperband", "TPE": "TPE"}
FIRST = 3  # trainings
SETS = {"loss": "Validation", "test_loss": "Test"}


def curves() -> pd.DataFrame:
    """Mean and standard deviation over executions, by data set, optimiser and budget."""
    runs = lt.datasets.load_hpo_runs().filter(model="mlp", prior="good", algorithm=list(COLOURS)).to_frame()
    runs = runs[runs["budget"] >= FIRST]
    return runs.groupby(["dataset", "algorithm", "budget"])[list(SETS)].agg(["mean", "std"])


def draw(table: pd.DataFrame) -> Figure:
    """A row per data set, validation on the left and test on the right, on one scale."""
    datasets = table.index.unique("dataset")
    figure = Figure(figsize=(7.0, 1.9 * len(datasets)), layout="constrained")
    axes = figure.subplots(len(datasets), 2, sharex=True, sharey="row", squeeze=False)
    for row, dataset in zip(axes, datasets, strict=True):
        for ax, (column, name) in zip(row, SETS.items(), strict=True):
            for algorithm, colour in COLOURS.items():
                part = table.loc[dataset, algorithm][column]
                low, high = part["mean"] - part["std"], part["mean"] + part["std"]
                style = {"color": colour, "linestyle": DASHES[algorithm], "label": NAMES[algorithm]}
                ax.plot(part.index, part["mean"], **style)
                ax.fill_between(part.index, low, high, color=colour, alpha=0.15, linewidth=0)
            ax.set_xscale("log")
            ax.set_xticks([4, 8, 16, 32], ["4", "8", "16", "32"])
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_title(f"{name}, {dataset}", fontsize="medium", loc="left")
        row[0].set_ylabel("Best loss so far")
    for ax in axes[-1]:
        ax.set_xlabel("Trainings of a configuration")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=3, frameon=False, fontsize="small")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    table = curves()
    draw(table).savefig(out / "variance-figure-f2.svg")
    last = table.xs(32, level="budget").set_axis([f"{name} {what}" for name in SETS for what in ("mean", "sd")], axis=1)
    print("After 32 trainings, mean and standard deviation over 25 searches:")
    print(last.round(4).to_string())


if __name__ == "__main__":
    main()
