"""Figures 1 to 4, 7, 8 and 10 of "Show Your Work with Confidence", drawn anew.

    python tuning_curves_figures.py [folder]

Lourie, Cho & He (2024), doi:10.18653/v1/2024.naacl-long.189. Writes one svg file per figure into the folder
(default: out). With the environment variable LMEMTEST_DATA set, the data are those of the paper: hedwig.csv (LSTM and
MLP on Reuters) and deberta.csv (DeBERTa and DeBERTaV3 on MultiNLI) in that folder; else bundled random searches take
their places. What the paper reads from figures 3, 4 and 10 is printed beside what these say, and stands below them.

    1   two samples of 25: point estimates contradict each other where bands say "not enough data"
    2   the median curve of one model from 48 scores, with bands at 20, 50 and 80 %
    3   two models, and the evidence between them
    4   tuning a hyperparameter or fixing it, at equal cost
    7   bands by DKW, Kolmogorov-Smirnov and LD, for 6 and 48 scores
    8   equal-tailed and highest-density LD bands, for 6 and 48 scores
    10  the band for more and more scores, and up to which k it has two limits
"""

import argparse
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest import tuning
from lmemtest.plots import detached_figures, tuning_compare_plot
from lmemtest.tuning import expected_best

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
DASHES = ("-", "--", ":", "-.")
BANDS = {
    "dkw": "DKW",
    "ks": "Kolmogorov-Smirnov",
    "ld_equal_tailed": "LD, equal tails",
    "ld_highest_density": "LD, highest density",
}
N = 48  # scores of most figures
PAPER = {
    3: "strong evidence DeBERTaV3 beats DeBERTa for all budgets",
    4: "we find weak evidence that the default wins over tuning epochs",
    10: "to bound the first k iterations at 80% confidence, you need about 6.25k samples (99.95% of the variance)",
}
SCORES_PER_K = 6.25  # by the paper


class Searches(NamedTuple):
    """Random searches; scores are accuracies or F1, larger is better."""

    noisy: dict[str, np.ndarray]  # figure 1
    model: tuple[str, np.ndarray]
    baseline: tuple[str, np.ndarray]
    fixed: tuple[str, str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # names, scores, costs of figure 4
    what: str
    noisy_what: str
    papers: bool  # whether these are the data of the paper


def searches() -> Searches:
    """The searches of the paper, or bundled ones."""
    folder = Path(os.environ.get("LMEMTEST_DATA", ""))
    if os.environ.get("LMEMTEST_DATA") and (folder / "deberta.csv").is_file():
        return papers_own(folder)
    table = lt.datasets.load_hpo_trials()
    table = table.assign(accuracy=1 - table["valid_loss"])
    scores = {name: rows["accuracy"].to_numpy() for name, rows in table.groupby("benchmark")}
    mlp = table[table["benchmark"] == "mlp-digits"]
    tuned, rest = mlp.iloc[:N], mlp.iloc[N:]
    fixed = rest[rest["learning_rate"].between(0.003, 0.03)].iloc[:N]
    return Searches(
        noisy={"boosting": scores["boosting-digits"], "forest": scores["forest-digits"]},
        model=("MLP", scores["mlp-digits"]),
        baseline=("SGD", scores["sgd-digits"]),
        fixed=(
            "tuned",
            "learning rate 0.003 to 0.03",
            tuned["accuracy"].to_numpy(),
            fixed["accuracy"].to_numpy(),
            tuned["cost"].to_numpy(),
            fixed["cost"].to_numpy(),
        ),
        what="accuracy on digits",
        noisy_what="accuracy on digits",
        papers=False,
    )


def papers_own(folder: Path) -> Searches:
    """LSTM and MLP on Reuters; DeBERTa and DeBERTaV3 on MultiNLI (matched)."""
    reuters = pd.read_csv(folder / "hedwig.csv")
    multinli = pd.read_csv(folder / "deberta.csv").sort_values("iteration")
    scores = {name: rows["best_matched"].to_numpy() for name, rows in multinli.groupby("model")}
    third = multinli[multinli["model"] == "DeBERTaV3"]
    tuned, rest = third.iloc[:N], third.iloc[N:]
    default = rest[rest["epochs"] == 3].iloc[:N]
    return Searches(
        noisy={
            "LSTM": reuters.loc[reuters["model_name"] == "reg_lstm", "f1"].to_numpy(),
            "MLP": reuters.loc[reuters["model_name"] == "mlp", "f1"].to_numpy(),
        },
        model=("DeBERTaV3", scores["DeBERTaV3"]),
        baseline=("DeBERTa", scores["DeBERTa"]),
        fixed=(
            "epochs tuned",
            "3 epochs",
            tuned["best_matched"].to_numpy(),
            default["best_matched"].to_numpy(),
            tuned["epochs"].to_numpy(dtype=float),
            default["epochs"].to_numpy(dtype=float),
        ),
        what="accuracy on MultiNLI",
        noisy_what="F1 on Reuters",
        papers=True,
    )


# ---------------------------------------------------------------------------------------------------- drawing


def draw_curve(ax: Axes, curve: Any, place: int, label: str, *, shade: float = 0.18, line: bool = True) -> None:
    """A band as far as it has two limits on the axes, and the estimate."""
    curve = curve.drawn()
    colour, known = COLOURS[place % len(COLOURS)], ~curve.trivial
    ax.fill_between(
        curve.k, curve.band_low, curve.band_high, where=known.tolist(), color=colour, alpha=shade, linewidth=0
    )  # fmt: skip
    for limit, name in ((curve.band_low, None if line else label), (curve.band_high, None)):
        ax.plot(
            curve.k[known], limit[known], color=colour, linewidth=1.0, linestyle=DASHES[place % len(DASHES)], label=name
        )  # fmt: skip
    if line:
        ax.plot(curve.k, curve.estimate, color=colour, linestyle=DASHES[place % len(DASHES)], label=label)


def finish(ax: Axes, title: str, y_label: str = "") -> None:
    """What all panels share."""
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel("Search iterations k")
    if y_label:
        ax.set_ylabel(y_label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="best")


def panels(rows: int, columns: int, *, share: bool = True) -> tuple[Figure, np.ndarray]:
    """A figure that no window shows, with its axes."""
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, sharey=share, squeeze=False)


def compared(comparison: Any, data: Searches, number: int) -> Figure:
    """Two curves with their evidence, and below them what the paper reads from its figure."""
    if not data.papers:
        return tuning_compare_plot(comparison).figure
    figure = Figure(figsize=(7.0, 4.7), layout="none")
    tuning_compare_plot(comparison, ax=figure.add_axes((0.0, 0.05, 1.0, 0.95)))
    figure.text(0.008, 0.02, f'The paper: "{PAPER[number]}".', fontsize=7.5, color="#5f5f5f")
    return figure


def blocks(data: Searches) -> pd.DataFrame:
    """Figure 3 with each further block of 48 scores: at which budgets the evidence for the model is strong."""
    found = []
    for start in range(0, min(len(data.model[1]), len(data.baseline[1])) - N + 1, N):
        pair = (scores[start : start + N] for scores in (data.model[1], data.baseline[1]))
        options = {"names": (data.model[0], data.baseline[0]), "grid": np.arange(1, 9), "n_draws": 0}
        evidence = tuning.compare(*pair, direction="maximize", **options).to_frame("budgets")
        found.append((evidence["evidence"] == "strong") & (evidence["better"] == data.model[0]))
    return pd.DataFrame(found, columns=range(8)).rename(columns=lambda i: i + 1)


def median(scores: np.ndarray, **options: object) -> Any:
    """A median curve; larger is better."""
    return tuning.curve(scores, direction="maximize", **options)


# ---------------------------------------------------------------------------------------------------- figures


def figure_1(data: Searches) -> Figure:
    """Two samples of 25: U- and V-statistics on the left, 50 % bands on the right."""
    figure, axes = panels(2, 2)
    for row, (left, right) in enumerate(axes):
        for place, (name, scores) in enumerate(data.noisy.items()):
            sample = scores[25 * row : 25 * (row + 1)]
            for estimator, dash in (("v", "-"), ("u", "--")):
                mean = expected_best(sample, direction="maximize", k=np.arange(1, 26), estimator=estimator)
                left.plot(
                    mean.k, mean.estimate, dash, color=COLOURS[place], label=f"{name}, {estimator.upper()}-statistic"
                )
            draw_curve(right, median(sample, level=0.5), place, name)
        finish(left, f"Sample {row + 1}: mean, two point estimates", f"Best {data.noisy_what}")
        finish(right, f"Sample {row + 1}: median, 50 % bands")
    return figure


def figure_2(data: Searches) -> Figure:
    """One model: bands at three confidences."""
    figure, axes = panels(1, 1)
    name, scores = data.model
    for place, level in enumerate((0.8, 0.5, 0.2)):
        draw_curve(axes[0, 0], median(scores[:N], level=level, k=[1, 12]), place, f"{level:.0%}", line=False)
    curve = median(scores[:N], k=[1, 12]).drawn()  # 12 trials as in the paper: beyond 8 the bands say nothing
    axes[0, 0].plot(curve.k, curve.estimate, color="#1a1a1a", label="estimate")
    finish(axes[0, 0], f"{name}, n = {N}", f"Median best {data.what}")
    return figure


def figure_7(data: Searches) -> Figure:
    """DKW, KS and LD bands."""
    return band_shapes(data, ("dkw", "ks", "ld_highest_density"))


def figure_8(data: Searches) -> Figure:
    """Equal-tailed and highest-density LD bands."""
    return band_shapes(data, ("ld_equal_tailed", "ld_highest_density"))


def band_shapes(data: Searches, methods: tuple[str, ...]) -> Figure:
    """The same scores with several kinds of bands, for 6 and 48 of them."""
    figure, axes = panels(1, 2, share=False)
    name, scores = data.model
    for ax, n, last in zip(axes[0], (6, N), (1.6, 12), strict=True):
        for place, method in enumerate(methods):
            curve = median(scores[:n], band=method, k=[1, last]).drawn()
            draw_curve(ax, curve, place, BANDS[method], shade=0.12, line=False)
        ax.plot(curve.k, curve.estimate, color="#1a1a1a", label="estimate")
        finish(ax, f"{name}, n = {n}, 80 %", f"Median best {data.what}" if n == 6 else "")
    return figure


def figure_10(data: Searches) -> Figure:
    """The band for several numbers of scores; its reach over their number, with a straight line through it."""
    figure, axes = panels(1, 2, share=False)
    name, scores = data.model
    sizes = [n for n in (16, 48, 128, 448) if n <= len(scores)]
    for place, n in enumerate(sizes):
        draw_curve(axes[0, 0], median(scores[:n], k=np.geomspace(1, 64, 200)), place, f"n = {n}", line=False)
    axes[0, 0].set_xscale("log")
    finish(axes[0, 0], f"{name}, 80 % bands", f"Median best {data.what}")
    plan = tuning.plan(n_scores=np.arange(8, 513, 24))
    slope, start = np.polyfit(plan.n_scores, plan.k_max, 1)
    axes[0, 1].plot(plan.n_scores, plan.k_max, "o", markersize=3, color=COLOURS[0], label="exact")
    line = start + slope * plan.n_scores
    label = f"{slope:.4f} n + {start:.2f}: {100 * explained(plan.k_max, line):.2f} % explained"
    axes[0, 1].plot(plan.n_scores, line, "--", color=COLOURS[1], label=label)
    axes[0, 1].plot(
        plan.n_scores, plan.n_scores / SCORES_PER_K, ":", color=COLOURS[2], label=f"paper: n / {SCORES_PER_K}"
    )
    finish(axes[0, 1], "Last k with two limits", "k")
    axes[0, 1].set_xlabel("Scores n")
    return figure


def explained(values: np.ndarray, line: np.ndarray) -> float:
    """Share of the variance that a line explains."""
    return 1.0 - float(np.sum((values - line) ** 2) / np.sum((values - values.mean()) ** 2))


def reach() -> str:
    """How many scores each k takes, and the straight line through it."""
    plan = tuning.plan(n_scores=np.arange(8, 513, 24))
    slope, start = np.polyfit(plan.n_scores, plan.k_max, 1)
    share = explained(plan.k_max, start + slope * plan.n_scores)
    ratio = plan.n_scores / plan.k_max
    return (
        f"{slope:.4f} n + {start:.2f} explains {100 * share:.2f} % of the variance of the last k. Scores per k: "
        f"{ratio[1]:.2f} with {plan.n_scores[1]} scores, {ratio[-1]:.2f} with {plan.n_scores[-1]}, and "
        f"{1 / slope:.2f} for each further k."
    )


def main() -> None:
    """Draw the figures, print what they say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    data = searches()
    model, baseline = data.model, data.baseline
    print(f"{model[0]}, {data.what}, first {N} scores:")
    print(median(model[1][:N], k=[2, 4, 8]).to_frame().to_string(index=False, float_format="{:.6f}".format))

    against = tuning.compare(
        model[1][:N], baseline[1][:N], direction="maximize", names=(model[0], baseline[0]), rng=1
    )  # fmt: skip
    tuned, fixed, *values = data.fixed
    at_cost = tuning.compare(
        values[0], values[1], direction="maximize", names=(tuned, fixed), cost_a=values[2],
        cost_b=float(values[3][0]) if np.ptp(values[3]) == 0 else values[3], rng=1,
    )  # fmt: skip
    for number, text in ((3, against.sentences()[0]), (4, at_cost.sentences()[0]), (10, reach())):
        print(f"\nFigure {number}: {text}\n  The paper, on its own data: {PAPER[number]}.")
    strong = blocks(data)
    from_first, from_second = (int(strong.loc[:, k:].all(axis=1).sum()) for k in (1, 2))
    print(
        f"\nFigure 3 depends on the sample: of {len(strong)} blocks of {N} scores {from_first} give strong evidence at "
        f"all of 1 to 8 trials, {from_second} at all of 2 to 8."
    )

    with detached_figures():
        figures = {
            "1": figure_1(data),
            "2": figure_2(data),
            "3": compared(against, data, 3),
            "4": compared(at_cost, data, 4),
            "7": figure_7(data),
            "8": figure_8(data),
            "10": figure_10(data),
        }
    for number, figure in figures.items():
        figure.savefig(folder / f"tuning_figure_{number}.svg")
    print(f"\nSeven figures in {folder}")


if __name__ == "__main__":
    main()
