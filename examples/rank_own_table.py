"""From a csv file to a report.

    python rank_own_table.py [folder] [--table runs.csv]

Writes report.html into the folder (default: out). Without a table a small csv file is made first. Change the roles to
the columns of your own table.
"""

import argparse
from pathlib import Path

import lmemtest as lt


def make_csv(path: Path) -> Path:
    """Write a part of the bundled runs as a csv file."""
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    runs.to_frame()[["algorithm", "benchmark", "seed", "regret"]].to_csv(path, index=False)
    return path


def main() -> None:
    """Check the table, compare the algorithms, write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the report (default: out)")
    parser.add_argument("--table", type=Path, help="a csv file of runs")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    source = given.table or make_csv(given.folder / "runs.csv")

    runs = lt.read_runs(
        source, score="regret", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed"
    )
    print(runs.check(rules_only=True).overview)

    analysis = lt.analyze(runs)
    print(analysis.summary())
    print("Report:", analysis.save(given.folder / "report.html"))


if __name__ == "__main__":
    main()
