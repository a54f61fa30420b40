"""Three estimators of the expected best of n trials: bias, variance, and how often they pick the wrong model.

    python tuning_estimators_study.py [folder]

Redraws the three studies of Dodge, Gururangan, Card, Schwartz & Smith (2021), doi:10.18653/v1/2021.findings-emnlp.342,
and writes them as svg files into the folder (default: out). The second and third study use bundled random searches of
two model families; with the environment variable LMEMTEST_DATA set, hedwig.csv (LSTM and MLP on Reuters) in that
folder. The true expected maximum of the first study is exact here instead of simulated.

The second study of the paper has a pair of models of which one is better at every budget. The curves of LSTM and MLP
cross near 21, which makes two questions of it, so a simulated pair stands beside them: normal scores, of which those
of A are better by a tenth of their standard deviation.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.tuning import expected_best
from lmemtest.tuning.distribution import ESTIMATORS, order_weights

TRIALS = 30  # of the synthetic study
BUDGETS = range(15, 31)  # of the study of wrong conclusions
SIMULATIONS = 10_000
COLOURS = {"u": "#D55E00", "v": "#0072B2", "w": "#009E73"}
DASHES = {"u": "-", "v": "--", "w": ":"}


def weight_table(n: int, budgets: range) -> dict[str, np.ndarray]:
    """Weights of the sorted scores (budgets x n) for each estimator."""
    return {e: np.array([order_weights(n, k, estimator=e) for k in budgets]) for e in ESTIMATORS}


def synthetic_study(rng: np.random.Generator) -> pd.DataFrame:
    """Bias, variance and mean squared error at each n, for 30 scores from a bag of 10,000 (figure 1)."""
    bag = rng.normal(0.6, 0.07, 10_000)
    bag = bag[(bag >= 0) & (bag <= 1)]
    budgets = range(1, TRIALS + 1)
    truth = expected_best(bag, direction="maximize", k=list(budgets), estimator="v").estimate  # exact for the bag
    samples = np.sort(rng.choice(bag, (SIMULATIONS, TRIALS)), axis=1)
    rows = []
    for estimator, weights in weight_table(TRIALS, budgets).items():
        estimates = samples @ weights.T
        mean, variance = estimates.mean(axis=0), estimates.var(axis=0)
        bias = mean - truth
        rows.append(
            pd.DataFrame(
                {
                    "estimator": estimator.upper(),
                    "n": list(budgets),
                    "truth": truth,
                    "mean": mean,
                    "bias": bias,
                    "variance": variance,
                    "mse": bias**2 + variance,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)


def searches() -> tuple[dict[str, np.ndarray], str]:
    """Scores of two random searches, larger better, and what they are."""
    folder = os.environ.get("LMEMTEST_DATA")
    if folder and (Path(folder) / "hedwig.csv").is_file():
        table = pd.read_csv(Path(folder) / "hedwig.csv")
        names = {"LSTM": "reg_lstm", "MLP": "mlp"}
        return {k: table.loc[table["model_name"] == v, "f1"].to_numpy() for k, v in names.items()}, "F1 on Reuters"
    table = lt.datasets.load_hpo_trials()
    names = {"boosting": "boosting-digits", "forest": "forest-digits"}
    chosen = {k: 1 - table.loc[table["benchmark"] == v, "valid_loss"].to_numpy()[:100] for k, v in names.items()}
    return chosen, "accuracy on digits"


def simulated_pair(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Scores of which those of A have the better expected best at every budget: the same law, moved."""
    scores = rng.normal(0.6, 0.07, 2_000)
    return {"A": scores + 0.007, "B": scores}


def wrong_conclusions(scores: dict[str, np.ndarray], rng: np.random.Generator) -> pd.DataFrame:
    """Share of pairs of searches of B trials whose estimate at n = B favours the worse model (figure 2)."""
    first, second = scores.values()
    rows = []
    for budget in BUDGETS:
        truth = [expected_best(y, direction="maximize", k=budget).estimate[0] for y in (first, second)]
        samples = [np.sort(rng.choice(y, (SIMULATIONS, budget)), axis=1) for y in (first, second)]
        better = list(scores)[int(truth[1] > truth[0])]
        for estimator, weights in weight_table(budget, range(budget, budget + 1)).items():
            estimates = [(y @ weights.T)[:, 0] for y in samples]
            wrong = (estimates[0] - estimates[1]) * (truth[0] - truth[1]) < 0
            rows.append({"estimator": estimator.upper(), "B": budget, "better": better, "wrong": wrong.mean()})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------------- figures


def draw(ax: Axes, table: pd.DataFrame, x: str, y: str, *, legend: bool = False) -> None:
    """One line per estimator."""
    for estimator in ESTIMATORS:
        rows = table[table["estimator"] == estimator.upper()]
        label = f"{estimator.upper()}-statistic" if legend else None
        ax.plot(rows[x], rows[y], color=COLOURS[estimator], linestyle=DASHES[estimator], label=label)
    if legend:
        ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)


def figure_one(table: pd.DataFrame) -> Figure:
    """Mean, variance and mean squared error."""
    figure = Figure(figsize=(6, 9), layout="constrained")
    panels = figure.subplots(3, 1)
    truth = table[table["estimator"] == "U"]
    panels[0].plot(truth["n"], truth["truth"], color="#1a1a1a", linewidth=3, alpha=0.3, label="truth")
    labels = {
        "mean": "Mean estimate, accuracy",
        "variance": "Variance, accuracy²",
        "mse": "Mean squared error, accuracy²",
    }
    for ax, (y, label) in zip(panels, labels.items(), strict=True):
        draw(ax, table, "n", y, legend=ax is panels[0])
        ax.set_ylabel(label)
    panels[-1].set_xlabel("Trials n")
    return figure


def figure_two(tables: dict[str, pd.DataFrame]) -> Figure:
    """Wrong conclusions; lines end where another model is the better one from there on."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    place = {"textcoords": "offset points", "xytext": (0, 4), "ha": "center", "fontsize": "small", "color": "#5f5f5f"}
    for ax, (what, table) in zip(axes, tables.items(), strict=True):
        for first, (better, part) in enumerate(table.groupby("better", sort=False)):
            draw(ax, part, "B", "wrong", legend=ax is axes[0] and first == 0)
            ax.annotate(f"{better} is better", (part["B"].mean(), 0.0), **place)
        ax.set_title(what, fontsize="medium", loc="left")
        ax.set_xlabel("Trials of each search (B)")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("Share of wrong conclusions")
    return figure


def figure_three(scores: dict[str, np.ndarray], what: str) -> Figure:
    """The curves of both models with each estimator."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    most = min(map(len, scores.values()))
    for ax, estimator in zip(panels, ESTIMATORS, strict=True):
        for (name, y), colour, dash in zip(scores.items(), ("#0072B2", "#D55E00"), ("-", "--"), strict=True):
            curve = expected_best(y, direction="maximize", k=np.arange(1, most + 1), estimator=estimator)
            ax.plot(curve.k, curve.estimate, color=colour, linestyle=dash, label=name)
        ax.set_title(f"{estimator.upper()}-statistic", loc="left", fontsize="medium")
        ax.set_xlabel("Trials n")
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"Expected best {what}")
    panels[0].legend(frameon=False)
    return figure


def main() -> None:
    """Run the studies, print what they found, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(2021)

    synthetic = synthetic_study(rng)
    last = synthetic[synthetic["n"] == TRIALS].set_index("estimator")[["bias", "variance", "mse"]]
    print(f"Expected best of {TRIALS} from {TRIALS} synthetic scores:")
    print(last.to_string(float_format="{:.6f}".format))

    scores, what = searches()
    studies = {f"{' and '.join(scores)}, {what}": scores, "Simulated pair": simulated_pair(rng)}
    wrong = {name: wrong_conclusions(pair, rng) for name, pair in studies.items()}
    for name, table in wrong.items():
        rates = table.pivot(index=["B", "better"], columns="estimator", values="wrong")
        print(f"\nWrong conclusions, {name}:\n{rates.to_string(float_format='{:.3f}'.format)}")

    figures = (figure_one(synthetic), figure_two(wrong), figure_three(scores, what))
    for name, figure in zip(("bias_variance_mse", "wrong_conclusions", "curves"), figures, strict=True):
        figure.savefig(folder / f"estimators_{name}.svg")
    print(f"\nThree figures in {folder}")


if __name__ == "__main__":
    main()
