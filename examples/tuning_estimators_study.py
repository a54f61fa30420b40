"""Three estimators of the expected best of n trials: bias, variance, and how often they pick the wrong model.

    python tuning_estimators_study.py [folder]

Redraws the three studies of Dodge, Gururangan, Card, Schwartz & Smith (2021), doi:10.18653/v1/2021.findings-emnlp.342,
and writes them as svg files into the folder (default: out). The second and third study use bundled random searches of
two model families; with the environment variable LMEMTEST_DATA set, hedwig.csv (LSTM and MLP on Reuters) in that
folder. The true expected maximum of the first study is exact here instead of simulated.

Not shown: the second study of the paper has a pair of models of which one is better at every budget, and U picks the
wrong one most often. Neither data set here holds such a pair (the curves of LSTM and MLP cross near 21), so the claim
is neither reproduced nor refuted: which estimator errs most depends on the pair, and here on the budget.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lmemtest.data.datasets import load_hpo_trials
from lmemtest.tuning.estimators import ESTIMATORS, expected_best, order_weights

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
    table = load_hpo_trials()
    names = {"boosting": "boosting-digits", "forest": "forest-digits"}
    chosen = {k: 1 - table.loc[table["benchmark"] == v, "valid_loss"].to_numpy()[:100] for k, v in names.items()}
    return chosen, "accuracy on digits"


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


def draw(ax: Axes, table: pd.DataFrame, x: str, y: str, label: str) -> None:
    """One line per estimator."""
    for estimator in ESTIMATORS:
        rows = table[table["estimator"] == estimator.upper()]
        ax.plot(rows[x], rows[y], color=COLOURS[estimator], linestyle=DASHES[estimator], label=estimator.upper())
    ax.set_xlabel(x)
    ax.set_ylabel(label)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def figure_one(table: pd.DataFrame) -> Figure:
    """Mean, variance and mean squared error."""
    figure = Figure(figsize=(6, 9), layout="constrained")
    panels = figure.subplots(3, 1)
    truth = table[table["estimator"] == "U"]
    panels[0].plot(truth["n"], truth["truth"], color="#1a1a1a", linewidth=3, alpha=0.3, label="truth")
    for ax, (y, label) in zip(
        panels, (("mean", "Mean estimate"), ("variance", "Variance"), ("mse", "Mean squared error")), strict=True
    ):
        draw(ax, table, "n", y, label)
    return figure


def figure_two(table: pd.DataFrame) -> Figure:
    """Wrong conclusions."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    ax = figure.subplots()
    draw(ax, table, "B", "wrong", "Wrong conclusions at n = B")
    ax.set_ylim(bottom=0)
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
        ax.set_title(estimator.upper())
        ax.set_xlabel("n")
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("Expected best")
    figure.suptitle(what, fontsize="medium")
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
    wrong = wrong_conclusions(scores, rng)
    print(f"\nWrong conclusions, {' or '.join(scores)}, {what}:")
    print(
        wrong.pivot(index=["B", "better"], columns="estimator", values="wrong").to_string(float_format="{:.3f}".format)
    )

    figures = (figure_one(synthetic), figure_two(wrong), figure_three(scores, what))
    for name, figure in zip(("bias_variance_mse", "wrong_conclusions", "curves"), figures, strict=True):
        figure.savefig(folder / f"estimators_{name}.svg")
    print(f"\nThree figures in {folder}")


if __name__ == "__main__":
    main()
