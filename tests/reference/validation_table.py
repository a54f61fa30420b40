"""Print the tables of docs/validation.md: how far the package is from its reference values.

    python tests/reference/validation_table.py [word ...]

Reads the JSON files beside it, fits everything again, and prints Markdown; takes a few minutes. With words, only the
sections whose headings contain one of them. With LMEMTEST_DATA set to the folder of priorband.parquet, hedwig.csv and
deberta.csv, the published numbers of these tables are compared too. It needs what the tests need, and uses their
brute-force formulas.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Print the tables."""
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
    for heading, parts in sections.items():
        if sys.argv[1:] and not any(word.lower() in heading.lower() for word in sys.argv[1:]):
            continue
        print(f"## {heading}\n\n| quantity | reference | values | largest difference | test |\n|---|---|---|---|---|")
        for part in parts:
            for line in part():
                print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
