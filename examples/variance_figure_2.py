"""Is the noise of the data split that of a binomial test set?

    python variance_figure_2.py [folder]

Figure 2 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

import lmemtest as lt
from lmemtest.plots import detached_figures

SOURCES = ["data", "tuning", "init", "order", "augment"]
ROLES = {"algorithm": "pipeline", "benchmark": "dataset"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    table = lt.datasets.load_pipeline_study()
    table = table[table["design"] == "one at a time"]
    noise = lt.variance_study(table, score="score", sources=SOURCES, n_test="n_test", **ROLES).binomial_noise()
    with detached_figures():
        noise.plot().figure.savefig(out / "variance-figure-2.svg")
    print("\n".join(noise.sentences()))


if __name__ == "__main__":
    main()
