"""How bad is a bad prior? Violins of early scores, and a test of one cluster against several.

    python paper_figure_13.py [folder]

Figure 13 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533, shows errors of configurations drawn from each prior. These draws are not among the published runs, so
the figure itself cannot be made from them. What the runs do show: the best scores of an optimiser with a prior soon
after its start, and the first scores of random search. Writes svg figures into the folder (default: out). With the
environment variable LMEMTEST_DATA set, the runs are those of the paper, priorband.parquet in that folder; else the
bundled ones.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.plots import detached_figures, score_distributions_plot

CLAIM = """Paper: on LC-167190 and LC-168910 the bad prior has two modes, one of them as good as the good prior.
On PriorBand, these two come first: about every third run with a bad prior beats one with the good prior soon after the
start, as against 13 % on LC-168330 and at most 2 % elsewhere. The first scores of random search have two clusters on
LC-168910 alone. Two clusters on LC-167190 do not show in the published runs."""


def study() -> tuple[lt.Runs, str, tuple[str, str], list[str]]:
    """The runs, the algorithm with a prior, the good and the bad prior, and the benchmarks to draw."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        shown = ["boosting-cancer", "boosting-digits", "svm-digits", "svm-vote"]
        return lt.datasets.load_hpo_runs(), "HB+prior", ("good", "bad"), shown
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    return runs, "PB", ("at25", "bad"), ["LC-167190", "LC-168910", "LC-126026", "LC-189906"]


def harmless(runs: lt.Runs, algorithm: str, levels: tuple[str, str], budget: int) -> pd.Series:
    """Per benchmark: probability that a run with the bad prior is at least as good as one with the good prior."""
    table = runs.to_frame()
    table = table[(table[runs.algorithm] == algorithm) & (table[runs.budget] == budget)]
    out = {}
    for benchmark, part in table.groupby(runs.benchmark):
        good, bad = (part.loc[part["prior"] == level, runs.score].to_numpy() for level in levels)
        out[benchmark] = np.mean((bad[:, None] < good) + 0.5 * (bad[:, None] == good))
    return pd.Series(out, name="probability").sort_values(ascending=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs, algorithm, levels, shown = study()
    first, second = runs.levels(runs.budget)[:2]

    print(f"{algorithm} at {runs.budget} {second}: how often a run with the bad prior beats one with the good prior")
    print(harmless(runs, algorithm, levels, second).round(2).to_string(), end="\n\n")
    # random search does not use a prior: one level has all its runs
    start = lt.score_distributions(runs.filter(prior=levels[1]), by=["benchmark", "algorithm"], budget=first)
    table = start.to_frame()
    random = table[table["algorithm"] == "RS"].sort_values("p_value")
    print(f"Scores of the first configuration of random search ({runs.budget} {first}): one cluster or several?")
    print(random[["benchmark", "n", "median", "dip", "p_raw", "p_value"]].round(4).to_string(index=False))
    print(*start.sentences(), end="\n\n")
    print(CLAIM)

    early = lt.score_distributions(runs.filter(benchmark=shown), by=["algorithm", "prior", "benchmark"], budget=second)
    with detached_figures():
        score_distributions_plot(early).figure.savefig(out / "figure-13-early.svg")
        drawn = lt.score_distributions(
            runs.filter(prior=levels[1], benchmark=shown), by=["benchmark", "algorithm"], budget=first
        )
        score_distributions_plot(drawn).figure.savefig(out / "figure-13-first.svg")


if __name__ == "__main__":
    main()
