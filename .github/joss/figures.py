"""The figures of the paper, from the bundled runs: python .github/joss/figures.py"""

from pathlib import Path

import lmemtest as lt

HERE = Path(__file__).parent
analysis = lt.analyze(lt.datasets.load_hpo_runs())
lt.plots.forest_plot(analysis.pairs, width="page").figure.savefig(HERE / "behind_best.png", dpi=200)
lt.plots.cd_diagram(analysis.decisions, width="page").figure.savefig(HERE / "cd_diagram.png", dpi=200)
