"""How many runs show that A is better than B with probability gamma.

    python variance_figure_c1.py [folder]

Figure C.1 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3: Noether's
number, 29 at gamma = 0.75 (its star) and above 500 below 0.56, and beside it the number of pairs that the decision by
P(A > B) takes. Writes an svg figure into the folder (default: out).
"""

import sys
from pathlib import Path

from lmemtest.plots import detached_figures
from lmemtest.studies.outperforming.sample_size import sample_size


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    out.mkdir(parents=True, exist_ok=True)
    found = sample_size([0.55, 0.56, 0.58, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    with detached_figures():
        found.plot().figure.savefig(out / "variance-figure-c1.svg")
    print(found)


if __name__ == "__main__":
    main()
