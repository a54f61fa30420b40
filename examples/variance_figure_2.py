"""Is the noise of the data split that of a binomial test set?

    python variance_figure_2.py [folder]

Figure 2 of Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, with the
bundled study of two small pipelines on three data sets. Writes an svg figure into the folder (default: out).
"""

import argparse
from pathlib import Path

from paper_figures.binomial_noise import binomial_noise_plot, noise_of_study

import lmemtest as lt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    noise = noise_of_study(lt.datasets.load_pipeline_study())
    binomial_noise_plot(noise).savefig(out / "variance-figure-2.svg")
    shown = ["name", "n_test", "sd", "binomial_sd", "ratio", "ratio_low", "ratio_high", "n_effective", "p_value"]
    print(noise[shown].round(4).to_string(index=False))


if __name__ == "__main__":
    main()
