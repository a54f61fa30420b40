"""Are scores normal? One distribution for each source of variation.

    python variance_figure_g3.py [folder]

Figure G.3 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes svg figures into the folder (default: out).
"""

import argparse
from pathlib import Path

from paper_figures.source_normality import samples, source_normality, source_normality_plot

import lmemtest as lt

SOURCES = ["data", "tuning", "init", "order", "augment"]
ROLES = {"algorithm": "pipeline", "benchmark": "dataset"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    table = lt.datasets.load_pipeline_study()
    table = table[table["design"].isin(["one at a time", "ideal"])]
    scores = samples(lt.variance_sources(table, score="score", sources=SOURCES, **ROLES))
    source_normality_plot(scores).savefig(out / "variance-figure-g3.svg")
    print(source_normality(scores).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
