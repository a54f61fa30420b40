"""Renew the record of validation: how far the package is from its reference values.

    python tests/reference/validation_table.py [word ...]

Reads the JSON files beside it, fits everything again, and writes what was seen into validation.csv, of which
`make pages` makes the tables of docs/developers/validation.md; takes a few minutes. With words, only the sections whose
headings contain one of them. With LMEMTEST_DATA set to the folder of priorband.parquet, hedwig.csv and deberta.csv, the
published numbers of these tables are compared too; without it their rows stay as they are. It needs what the tests
need, and uses their brute-force formulas. Rows of simulations and of claims are written by hand, from the programs
of tests/simulation.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

RECORD = Path(__file__).with_name("validation.csv")


def main() -> None:
    """Compare, and write the record."""
    from validation import distributions, effects, means, models, rankings, tuning

    sections = {
        "Fits": models.SECTIONS,
        "Means, pairs and F-tests": means.SECTIONS,
        "Simultaneous tests": distributions.SIMULTANEOUS,
        "Tests of models and resampling": distributions.TESTS_OF_MODELS,
        "Random effects, profiles and diagnostics": effects.SECTIONS,
        "Power": distributions.PLANNING,
        "Rankings": rankings.SECTIONS,
        "Tuning curves": tuning.BAND_LINES,
        "Parametric tuning curves": tuning.LAW_LINES,
    }
    with RECORD.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for section, parts in sections.items():
        if sys.argv[1:] and not any(word.lower() in section.lower() for word in sys.argv[1:]):
            continue
        following = iter([row for row in rows if row["section"] == section])  # "the same" occurs more than once
        for line in (line for part in parts for line in part()):
            row = next((row for row in following if row["what"] == line.quantity), None)
            if row is None:
                raise SystemExit(f"{section}: {line.quantity!r} has no row in {RECORD.name}, in this order.")
            row |= line.cells() if line.values else {}
            print(f"{section}: {line.quantity}: {row['values']} values, {row['seen']}", flush=True)
        with RECORD.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
