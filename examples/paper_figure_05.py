"""Which optimiser is best at which budget, and does that change? Three horizons and one window.

    python paper_figure_05.py [folder]

Figure 5 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533: ranks at budgets 5, 10 and 15 as Autorank compares them (left), all data from 5 to 15 by the model of
the paper (right), and the recommended models of both. Writes svg figures into the folder (default: out). With the
environment variable LMEMTEST_DATA set, the runs are those of the paper, priorband.parquet in that folder; else bundled
ones, with their own budgets.
"""

import argparse
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import lmemtest as lt
from lmemtest.compat.significance_analysis import horizon_pairs
from lmemtest.core.words import small_p
from lmemtest.plots import cd_diagram, detached_figures


def study() -> tuple[lt.Runs, list[float | tuple[float, float]]]:
    """The runs, and the horizons; the last is a window."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE", "HB+prior"])
        return replace(runs, score="regret"), [4, 8, 16, (4, 16)]
    runs = lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet")
    return replace(runs, score="normalized_regret"), [5, 10, 15, (5, 15)]


def ranks_at(runs: lt.Runs, budget: float) -> lt.lmm.Decisions:
    """The left half: ranks within benchmark, prior and seed at one budget."""
    by = [runs.benchmark, *runs.metafeatures, runs.seed, runs.algorithm]
    table = runs.at_budgets([budget]).to_frame().groupby(by, observed=True)[runs.score].mean().unstack()
    found = lt.rank(table.dropna().reset_index(drop=True), "frequentist", test="nemenyi", direction=runs.direction)
    return replace(found.decisions, score=f"{runs.score} in {len(table):,} blocks")


def rows_within(runs: lt.Runs, start: float, end: float) -> lt.lmm.Decisions:
    """The right half: the model of the paper, in which every row is an observation of its own."""
    column = runs.budget
    window = runs.filter(**{column: [budget for budget in runs.levels(column) if start <= budget <= end]})
    fit = lt.fit_lmm(f"{runs.score} ~ {runs.algorithm} + (1 | {column}) + (1 | {runs.benchmark})", window)
    return fit.emmeans(runs.algorithm).pairs(vcov="model").decisions()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs, budgets = study()

    found = lt.anytime(runs).at(budgets)
    print(found, end="\n\n")
    print("The recommended model beside that of the paper, which counts every row:")
    formats = dict.fromkeys(["p_value", "paper_p_value"], partial(small_p, spec=".3g"))
    print(horizon_pairs(runs, budgets).to_string(index=False, float_format="{:.3g}".format, formatters=formats))

    *single, (start, end) = budgets
    with detached_figures():
        for budget in single:
            ranks = ranks_at(runs, budget)
            print(ranks, end="\n\n")
            title = f"Left half: ranks at {runs.budget} {budget} (Friedman, Nemenyi)"
            cd_diagram(ranks, title=title).figure.savefig(out / f"paper-figure-05-ranks-{budget}.svg")
        rows = rows_within(runs, start, end)
        print(rows)
        title = f"Right half: the model of the paper over {start}-{end}"
        cd_diagram(rows, title=title).figure.savefig(out / "paper-figure-05-rows.svg")
        lt.plots.horizons_plot(found).figure.savefig(out / "paper-figure-05.svg")


if __name__ == "__main__":
    main()
