"""How many runs show that A is better than B with probability gamma.

    python variance_figure_c1.py [folder]

Figure C.1 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3: Noether's
number, 29 at gamma = 0.75 (its star) and above 500 below 0.56, and beside it the number of pairs that the decision by
P(A > B) takes. Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

from paper_figures.sample_size import sample_size, sample_size_plot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    found = sample_size([0.55, 0.56, 0.58, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    sample_size_plot(found).savefig(out / "variance-figure-c1.svg")
    print(found.to_string(index=False))


if __name__ == "__main__":
    main()
