"""The picture of the README: a table of runs in, a diagram and a sentence out.

    python readme_picture.py [folder]

Writes table-to-answer.png, drawn from the bundled runs, into the folder (default: out).
"""

import argparse
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt

import lmemtest as lt
from lmemtest.plots import detached_figures

SHOWN = 7  # rows of the table


def main() -> None:
    """Draw the picture into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figure (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    print(draw(out / "table-to-answer.png"))


def draw(path: str | Path) -> str:
    """Draw the picture into a file, and return the sentence under the diagram."""
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    analysis = lt.analyze(runs.normalize("rank"))
    sentence = analysis.headline().split(" Its estimated")[0]
    table = runs.to_frame()[["algorithm", "benchmark", "seed", "loss"]].iloc[:: len(runs.to_frame()) // SHOWN][:SHOWN]
    cells = [[str(cell) if not isinstance(cell, float) else f"{cell:.4f}" for cell in row] for row in table.to_numpy()]
    with detached_figures():
        figure = plt.figure(figsize=(9.4, 2.9))
        left = figure.add_axes((0.05, 0.05, 0.36, 0.83))
        left.set_axis_off()
        left.set_title(f"in: runs.csv, {len(runs.to_frame()):,} rows", loc="left", fontsize=9.5)
        shown = left.table(
            [*cells, ["..."] * 4], colLabels=list(table), loc="upper left", cellLoc="left", edges="horizontal"
        )
        shown.auto_set_font_size(False)
        shown.set_fontsize(8)
        shown.auto_set_column_width(list(range(4)))
        shown.scale(1, 1.08)
        figure.text(0.385, 0.55, "→", fontsize=26, color="0.4", va="center")
        figure.text(0.47, 0.905, "out: report.html, figures, tables, sentences for a paper", fontsize=9.5)
        lt.plots.cd_diagram(analysis.decisions, ax=figure.add_axes((0.47, 0.27, 0.52, 0.60)))
        figure.text(0.47, 0.19, textwrap.fill(sentence, 66), fontsize=8.5, va="top", weight="bold")
        figure.savefig(path)
    return sentence


if __name__ == "__main__":
    main()
