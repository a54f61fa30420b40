"""Published improvements against the noise of their benchmark.

    python variance_figure_3.py [folder]

Figure 3 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, shows
leaderboards of paperswithcode.com. Those are not bundled: the results here are SIMULATED, which has the advantage
that the truth is known. Only the standard deviation of a score is real: that of a small network on digits in the
bundled study. Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

import numpy as np
from paper_figures.published_improvements import improvement_threshold, published_improvements, published_plot

import lmemtest as lt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    study = lt.datasets.load_pipeline_study()
    ideal = study[(study["design"] == "ideal") & (study["pipeline"] == "mlp") & (study["dataset"] == "digits")]
    sd = float(ideal["score"].std())

    rng = np.random.default_rng(1)
    year = np.sort(rng.uniform(2012, 2021, size=30))
    truth = 0.70 + 0.22 * (1 - np.exp(-(year - 2012) / 3)) - rng.exponential(0.01, size=30)
    results = {"publication (simulated)": year, "accuracy": truth + rng.normal(scale=sd, size=30)}

    found = published_improvements(results, score="accuracy", time="publication (simulated)", sd=sd)
    threshold = improvement_threshold(sd)
    published_plot(found, threshold=threshold, sd=sd).savefig(out / "variance-figure-3.svg")
    print(f"An improvement over the best before is significant from {threshold:.4f} on.")
    conclusion, record = found["conclusion"].to_numpy(), np.maximum.accumulate(truth)
    better = np.append(True, truth[1:] > record[:-1])
    for name in ("significant", "not significant", "no improvement"):
        here = conclusion == name
        print(
            f"{name}: {here.sum()} results, {(here & better).sum()} of them of a method that is better than all before."
        )


if __name__ == "__main__":
    main()
