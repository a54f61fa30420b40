"""Critical differences of ranks and of a mixed model: figure 2 of the paper, and the same with honest errors.

    python paper_figure_02.py [folder]

Figure 2 of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO benchmarking,
arXiv:2408.02533. Writes svg figures into the folder (default: out). With the environment variable LMEMTEST_DATA set,
the runs are those of the paper, priorband.parquet in that folder; else the bundled ones.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import lmemtest as lt
from lmemtest.lmm import Decisions
from lmemtest.plots import cd_diagram, detached_figures

CLAIM = """Paper: ranks and the simple model lead to the same conclusion, with critical differences of another scale.
Here the simple and the recommended model have the same means, but not the same evidence that they differ:
rows of one run, and runs on one benchmark, are not independent, and neither are they as blocks of ranks.
Over all budgets of PriorBand, ranks and regrets do not even agree on who is first, since ranks do not see
how bad the first scores with a bad prior are."""


def study() -> lt.Runs:
    """Regrets of Hyperband with and without a prior and of random search."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        return replace(lt.datasets.load_hpo_runs().filter(algorithm=["HB+prior", "HB", "RS"]), score="regret")
    return replace(lt.datasets.fetch_priorband(Path(folder) / "priorband.parquet"), score="normalized_regret")


def ranked(runs: lt.Runs) -> Decisions:
    """Mean ranks within benchmark, prior, budget and seed, with Nemenyi's critical difference: what Autorank does."""
    by = [runs.benchmark, *runs.metafeatures, runs.budget, runs.seed, runs.algorithm]
    table = runs.to_frame().groupby(by, observed=True)[runs.score].mean().unstack()
    found = lt.rank(table.dropna().reset_index(drop=True), "frequentist", test="nemenyi", direction=runs.direction)
    return replace(found.decisions, score=f"{runs.score} in {len(table):,} blocks")


def modelled(runs: lt.Runs, formula: str, vcov: str | None = None) -> Decisions:
    """Marginal means of a model, and all pairs by the standard errors of the model or by the default ones."""
    return lt.fit_lmm(formula, runs).emmeans("algorithm").pairs(vcov=vcov).decisions()


def said(found: Decisions, title: str) -> None:
    """A few lines of text."""
    order = ", ".join(f"{name} {mean:.3f}" for name, mean in zip(found.levels, found.means, strict=True))
    low, high = found.critical_difference
    groups = [" = ".join(map(str, group)) for group in found.groups if len(group) > 1]
    print(f"{title}\n  best first: {order}\n  critical difference {low:.4f} to {high:.4f}")
    print(f"  not significantly different: {'; '.join(groups) or 'none'}\n")


def diagrams(runs: lt.Runs) -> dict[str, tuple[str, Decisions]]:
    """The two halves of the figure, and the model that counts benchmarks instead of rows: titles and decisions."""
    recommended = lt.recommend(runs)
    return {
        "ranks": ("Left half: ranks, as Autorank compares them (Friedman, Nemenyi)", ranked(runs)),
        "simple": (
            "Right half: the simple model, each row an observation",
            modelled(runs, f"{runs.score} ~ algorithm", vcov="model"),
        ),
        "recommended": (
            "Recommended: benchmarks are the sample, each run counts once",
            modelled(recommended.runs, recommended.formula),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    runs = study()
    last = runs.levels(runs.budget)[-1]
    with detached_figures():
        for scope, table in (("all-budgets", runs), ("last-budget", runs.filter(**{runs.budget: last}))):
            print(f"=== {scope} ===")
            for name, (title, found) in diagrams(table).items():
                said(found, title)
                cd_diagram(found, title=title).figure.savefig(out / f"figure-02-{scope}-{name}.svg")
    print(CLAIM)


if __name__ == "__main__":
    main()
