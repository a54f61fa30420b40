"""From a csv file to a report.

    python rank_own_table.py [runs.csv [report.html]]

Without arguments a small csv file is made first. Change the roles to the columns of your own table.
"""

import sys
import tempfile
from pathlib import Path

import lmemtest as lt


def make_csv(path: Path) -> Path:
    """Write a part of the bundled runs as a csv file."""
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    runs.to_frame()[["algorithm", "benchmark", "seed", "regret"]].to_csv(path, index=False)
    return path


def main() -> None:
    """Check the table, compare the algorithms, write the report."""
    folder = Path(tempfile.mkdtemp())
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else make_csv(folder / "runs.csv")
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else folder / "report.html"

    runs = lt.read_runs(
        source, score="regret", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed"
    )
    print(runs.check(rules_only=True).overview)

    analysis = lt.analyze(runs)
    print(analysis.summary())
    print("Report:", analysis.save(target))


if __name__ == "__main__":
    main()
