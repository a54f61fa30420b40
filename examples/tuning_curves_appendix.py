"""Figures 5, 6, 9 and 11 to 20 of "Show Your Work with Confidence", drawn anew, each on its own if you like.

    python tuning_curves_appendix.py [folder]              # all
    python tuning_curves_appendix.py --figures 6 19        # these two

Lourie, Cho & He (2024), doi:10.18653/v1/2024.naacl-long.189. With the environment variable LMEMTEST_DATA set, the data
are those of the paper: hedwig.csv (LSTM and MLP on Reuters) and deberta.csv (DeBERTa and DeBERTaV3 on MultiNLI) in that
folder; else bundled random searches take their places.

    5       how often bootstrap intervals of U- and V-statistics hold, from 50 scores
    6, 12   how often LD bands hold: of the median curve, and of the distribution function, which is the same event,
            since the curve is a function of it
    9       bands of the median and of the mean
    11      bands of the distribution functions of two models, from all scores
    13, 15  bands of a distribution function by method
    14, 16  the tuning curves that follow from them
    17      one curve for each value of a hyperparameter, and for tuning it
    18      the median curve from all scores
    19      two models from all scores, and the evidence between them
    20      a hyperparameter tuned or fixed, at equal cost
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paper_figures.coverage import coverage_plot, simulate_bootstrap_coverage, simulate_coverage

import lmemtest as lt
from lmemtest import tuning
from lmemtest.plots import tuning_band_plot, tuning_compare_plot, tuning_curve_plot
from lmemtest.tuning import EmpiricalDistribution, kernel_density

N = 48  # scores of most figures
FLAT = {"dkw": "DKW", "ks": "Kolmogorov-Smirnov", "ld_highest_density": "LD, highest density"}
SHAPES = {"ld_equal_tailed": "LD, equal tails", "ld_highest_density": "LD, highest density"}
PAPER_20 = "There is weak evidence that the default beats tuning epochs initially, but the difference is small"


class Searches(NamedTuple):
    """Random searches; scores are accuracies or F1 between 0 and 1, larger is better."""

    noisy: dict[str, tuple[np.ndarray, float]]  # scores, and the bandwidth of a kernel density of them
    model: tuple[str, np.ndarray]
    baseline: tuple[str, np.ndarray]
    values: dict[str, tuple[np.ndarray, np.ndarray]]  # scores and costs with a hyperparameter fixed, or tuned
    default: str
    papers: bool  # whether these are the data of the paper


def searches() -> Searches:
    """The searches of the paper, or bundled ones."""
    folder = Path(os.environ.get("LMEMTEST_DATA", ""))
    if os.environ.get("LMEMTEST_DATA") and (folder / "deberta.csv").is_file():
        reuters = pd.read_csv(folder / "hedwig.csv").groupby("model_name")["f1"]
        table = pd.read_csv(folder / "deberta.csv").rename(columns={"best_matched": "accuracy"})
        table = table.assign(value=table["epochs"].map(epochs), cost=table["epochs"].astype(float))
        noisy = {"LSTM": (reuters.get_group("reg_lstm"), 0.05), "MLP": (reuters.get_group("mlp"), 0.0125)}
        names, default, column, most, papers = ("DeBERTaV3", "DeBERTa"), "3 epochs", "model", 245, True
    else:
        table = lt.datasets.load_hpo_trials()
        rates = pd.cut(table["learning_rate"], [0, 0.001, 0.01, 1], labels=["low rate", "middle rate", "high rate"])
        table = table.assign(accuracy=1 - table["valid_loss"], value=rates.astype(object))
        groups = table.groupby("benchmark")["accuracy"]
        noisy = {name: (groups.get_group(f"{name}-digits"), 0.02) for name in ("boosting", "forest")}
        names, default, column, most, papers = ("mlp-digits", "sgd-digits"), "middle rate", "benchmark", 60, False
    mine = table[table[column] == names[0]]
    both = [table.loc[table[column] == name, "accuracy"].to_numpy() for name in names]
    parts = {"tuned": mine, **{str(value): rows for value, rows in mine.groupby("value")}}
    return Searches(
        noisy={name: (scores.to_numpy(), width) for name, (scores, width) in noisy.items()},
        model=(names[0], both[0]),
        baseline=(names[1], both[1]),
        values={
            name: (rows["accuracy"].to_numpy()[:most], rows["cost"].to_numpy(dtype=float)[:most])
            for name, rows in parts.items()
        },
        default=default,
        papers=papers,
    )


def epochs(count: int) -> str:
    """A number of epochs in words."""
    return "1 epoch" if count == 1 else f"{count} epochs"


def laws(data: Searches) -> dict[str, Any]:
    """Smooth laws with the shape of the noisy searches, to simulate from."""
    return {name: kernel_density(y, bandwidth=h, bounds=(0, 1)) for name, (y, h) in data.noisy.items()}


def median(scores: np.ndarray, **options: object) -> Any:
    """A median curve for 1 to 12 trials, or others; larger is better."""
    return tuning.curve(scores, direction="maximize", bounds=(0, 1), **{"k": np.arange(1, 13), **options})


def figure_5(data: Searches, n_draws: int) -> Figure:
    """Pointwise coverage of 95 % bootstrap intervals."""
    k = [1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    options = {"k": k, "n_resamples": 1000, "n_draws": n_draws, "rng": 5}
    found = {
        f"{name}, {estimator.upper()}-statistic": simulate_bootstrap_coverage(law, 50, estimator=estimator, **options)
        for name, law in laws(data).items()
        for estimator in "uv"
    }
    return coverage_plot(found)


def figure_6(data: Searches, n_draws: int, target: str = "median") -> Figure:
    """Coverage of LD bands of the median curve."""
    options = {
        "level": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
        "n_draws": n_draws,
        "rng": 6,
    }
    return coverage_plot({m: simulate_coverage(law, N, target=target, **options) for m, law in laws(data).items()})


def figure_12(data: Searches, n_draws: int) -> Figure:
    """Coverage of LD bands of the distribution function."""
    return figure_6(data, n_draws, "cdf")


def figure_9(data: Searches, _: int) -> Figure:
    """The median beside the mean, whose band is wider: on one scale."""
    figure, scores = Figure(figsize=(10, 4), layout="none"), data.model[1][:N]
    limits = None
    for place, statistic in ((1, "mean"), (0, "median")):
        ax = figure.add_axes((place / 2, 0, 0.5, 1))
        limits = tuning_curve_plot(median(scores, statistic=statistic), limits=limits, ax=ax).child_axes[0].get_ylim()
    return figure


def figure_11(data: Searches, _: int) -> Figure:
    """Distribution functions of two models from all scores."""
    return tuning_band_plot(
        {name: EmpiricalDistribution(y, bounds=(0, 1)).band() for name, y in (data.model, data.baseline)}
    ).figure


def figure_13(data: Searches, _: int, methods: dict[str, str] = FLAT) -> Figure:
    """Distribution function by method."""
    law = EmpiricalDistribution(data.model[1][:N], bounds=(0, 1))
    return tuning_band_plot({name: law.band(band=method) for method, name in methods.items()}).figure


def figure_14(data: Searches, _: int, methods: dict[str, str] = FLAT) -> Figure:
    """Tuning curve by method."""
    return tuning_curve_plot({name: median(data.model[1][:N], band=method) for method, name in methods.items()}).figure


def figure_15(data: Searches, n_draws: int) -> Figure:
    """Distribution function by the shape of LD intervals."""
    return figure_13(data, n_draws, SHAPES)


def figure_16(data: Searches, n_draws: int) -> Figure:
    """Tuning curve by the shape of LD intervals."""
    return figure_14(data, n_draws, SHAPES)


def figure_17(data: Searches, _: int) -> Figure:
    """A curve for each value of a hyperparameter."""
    return tuning_curve_plot({name: median(y) for name, (y, _) in data.values.items()}).figure


def figure_18(data: Searches, _: int) -> Figure:
    """The median curve from all scores."""
    return tuning_curve_plot(median(data.model[1], k=np.arange(1, 65))).figure


def figure_19(data: Searches, _: int) -> Figure:
    """Two models from all scores."""
    (one, first), (two, second) = data.model, data.baseline
    options = {"direction": "maximize", "names": (one, two), "grid": np.arange(1, 65), "n_draws": 0}
    return tuning_compare_plot(tuning.compare(first, second, **options)).figure


def figure_20(data: Searches, _: int) -> Figure:
    """A hyperparameter tuned or fixed at its default, at equal cost."""
    (tuned, price), (fixed, other) = data.values["tuned"], data.values[data.default]
    known = float(other[0]) if np.ptp(other) == 0 else other
    options = {"direction": "maximize", "names": ("tuned", data.default), "n_draws": 0}
    found = tuning.compare(tuned, fixed, cost_a=price, cost_b=known, **options)
    some = "; ".join(
        f"{label} for {better} at {start:.3g} to {stop:.3g}" for label, better, start, stop in found.segments
    )
    print(f"Figure 20: {found.sentences()[0]} At some: {some or 'none'}.\n  The paper, on its own data: {PAPER_20}.")
    if not data.papers:
        return tuning_compare_plot(found).figure
    figure = Figure(figsize=(7.0, 4.9), layout="none")
    tuning_compare_plot(found, ax=figure.add_axes((0.0, 0.05, 1.0, 0.95)))
    figure.text(0.008, 0.02, f'The paper: "{PAPER_20}".', fontsize=7.5, color="#5f5f5f")
    return figure


FIGURES: dict[int, Callable[[Searches, int], Figure]] = {
    5: figure_5, 6: figure_6, 9: figure_9, 11: figure_11, 12: figure_12, 13: figure_13, 14: figure_14,
    15: figure_15, 16: figure_16, 17: figure_17, 18: figure_18, 19: figure_19, 20: figure_20,
}  # fmt: skip


def main() -> None:
    """Draw the figures that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    parser.add_argument("--figures", type=int, nargs="+", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--n-draws", type=int, default=1024, help="simulated searches of figures 5, 6 and 12")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    data = searches()
    for number in chosen.figures:
        path = chosen.folder / f"tuning_figure_{number}.svg"
        FIGURES[number](data, chosen.n_draws).savefig(path)
        print(f"Figure {number}: {path}")


if __name__ == "__main__":
    main()
