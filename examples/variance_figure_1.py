"""Where the variation of a test score comes from, relative to that of the data split.

    python variance_figure_1.py [folder]

Figure 1 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, has five deep-
learning tasks; this one has the bundled study of two small pipelines on three data sets. Writes an svg figure into
the folder (default: out).
"""

import argparse
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures

SOURCES = ["data", "tuning", "init", "order", "augment"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    table = lt.datasets.load_pipeline_study()
    table = table[table["design"] == "one at a time"]
    study = lt.variance_sources(table, score="score", sources=SOURCES, algorithm="pipeline", benchmark="dataset")
    with detached_figures():
        study.plot().figure.savefig(out / "variance-figure-1.svg")
    print("\n".join(study.sentences()))


if __name__ == "__main__":
    main()
