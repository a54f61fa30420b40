"""How often rules of decision find that A is better than B: a single comparison, averages, tests.

On one benchmark the i-th runs of A and B differ by

    d_i = delta + b + e_i,    Var(b) = 2 interaction_sd^2,    Var(e_i) = 2 residual_sd^2,

where b is what all runs of a study share: their hyperparameters were tuned once. The ideal estimator tunes for every
run, so that its d_i are independent with the sum of both variances. Both have the same delta and the same
P(A > B) = Phi(delta / sqrt(2 (interaction_sd^2 + residual_sd^2))).

single, average: a difference above a threshold; t_test: paired, one-sided; outperforming: the two-sided interval of
P(A > B) is above 0.5 and reaches beyond gamma; oracle: z-test with the true variance.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 4.2, figures 6 and
I.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special, stats

from lmemtest import VarianceComponents
from lmemtest.errors import ArgumentError
from paper_figures.sample_size import ROUNDING, interval_of_wins

RULES = {  # and their names in figures
    "single": "single comparison",
    "average": "average",
    "t_test": "t-test",
    "outperforming": "P(A > B)",
    "oracle": "oracle",
}
ESTIMATORS = ("ideal", "biased")
THRESHOLD = 1.9952  # standard deviations of a run: of the improvements that the paper found published
PROBABILITIES = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
IDEAL, BIASED = "#0072B2", "#D55E00"  # Okabe & Ito (2008)
AT_ONCE = 2_000_000  # differences in memory


def decision_rules(
    components: VarianceComponents | None = None,
    *,
    n_runs: int = 50,
    gamma: float = 0.75,
    alpha: float = 0.05,
    threshold: float = THRESHOLD,
    probabilities: Sequence[float] = PROBABILITIES,
    method: str = "percentile",
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """How often each rule finds A better, with ideal and biased estimators.

    Parameters
    ----------
    components : VarianceComponents, optional
        `interaction_sd` of what all runs of an algorithm share in one study and another study would not repeat (its
        hyperparameters, also as the source "tuning"), `run_sd` of single runs; what A and B share cancels. By default
        2 % of the variance is shared.
    n_runs : int, >= 2
        Pairs of runs in a study; the paper has 50.
    gamma : float in (0.5, 1)
    alpha : float in (0, 0.5)
        One-sided: of the t-test, and of the lower end of the interval, so that rules are comparable.
    threshold : float > 0
        Of the difference that single comparisons and averages ask for, in standard deviations of a run.
    probabilities : sequence of float in (0, 1)
        True probabilities that a run of A is better; 0.5 and `gamma` are added.
    method : {"percentile", "score", "exact"}
        Of the interval; the paper's by default.
    n_draws : int
        Studies per probability and estimator.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    pandas.DataFrame
        One row per estimator, rule and probability: ``estimator``, ``rule``, ``probability``, ``rate`` of detections,
        ``se`` of the simulation.

    Examples
    --------
    >>> found = error_rates(decision_rules(n_draws=2000, rng=1))
    >>> found.set_index(["estimator", "rule"]).loc[("ideal", "average")].tolist()[:2]
    [0.0, 1.0]
    """
    if not 0.0 < alpha < 0.5:
        raise ArgumentError(f"alpha must be below 0.5, since it is of one side, got {alpha:g}.")
    if not 0.0 < threshold < math.inf:
        raise ArgumentError(f"threshold must be a positive number of standard deviations, got {threshold!r}.")
    generator = np.random.default_rng(rng)
    shared = shared_variance(components)
    low, high = interval_of_wins(n_runs, method, 1.0 - 2.0 * alpha)
    meaningful = (low > 0.5 + ROUNDING) & (high > gamma + ROUNDING)
    rows = []
    for estimator in ESTIMATORS:
        for truth in sorted({0.5, gamma, *probabilities}):
            hits = np.zeros(len(RULES))
            for count in portions(n_draws, n_runs):
                d = differences(truth, shared if estimator == "biased" else 0.0, (count, n_runs), generator)
                hits += decisions(d, alpha, threshold, meaningful).sum(axis=1)
            for rule, rate in zip(RULES, (hits / n_draws).tolist(), strict=True):
                rows.append((estimator, rule, truth, rate, math.sqrt(rate * (1.0 - rate) / n_draws)))
    return pd.DataFrame(rows, columns=["estimator", "rule", "probability", "rate", "se"])


def error_rates(table: pd.DataFrame, gamma: float = 0.75) -> pd.DataFrame:
    """False positives and three kinds of false negatives of each rule, from the rates of `decision_rules`.

    One row per estimator and rule: ``false_positives``, the rate at P = 0.5; ``false_negatives``, one less the rate at
    P = gamma; ``false_negatives_beyond``, the mean of that over the probabilities from gamma on;
    ``false_negatives_overall``, over all P from 0.5 to 1, each alike (trapezoidal rule).
    """
    rows = []
    for (estimator, rule), part in table.groupby(["estimator", "rule"], sort=False):
        p, rate = part["probability"].to_numpy(), part["rate"].to_numpy()
        beyond, above = p >= gamma - ROUNDING, p >= 0.5 - ROUNDING
        overall = 2.0 * float(np.trapezoid([*(1.0 - rate[above]), 0.0], [*p[above], 1.0]))  # a sure advantage is found
        rows.append((estimator, rule, rate[p == 0.5][0], 1.0 - rate[p == gamma][0], 1.0 - rate[beyond].mean(), overall))
    kinds = ["false_positives", "false_negatives", "false_negatives_beyond", "false_negatives_overall"]
    return pd.DataFrame(rows, columns=["estimator", "rule", *kinds])


def rule_curves(
    components: VarianceComponents | None = None,
    *,
    n_runs: Iterable[int] = (5, 10, 20, 30, 50, 100),
    gamma: Iterable[float] = (0.75,),
    probabilities: Sequence[float] = (0.5, 0.6, 0.75, 0.9),
    alpha: float = 0.05,
    method: str = "percentile",
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """How often each rule finds A better for numbers of runs and values of gamma: figure I.6.

    Single comparisons and averages have the threshold ``Phi^-1(gamma)`` standard deviations of a run. The other
    arguments are those of `decision_rules`, and so are the columns, beside ``n_runs`` and ``gamma``.

    Examples
    --------
    >>> found = rule_curves(n_runs=[10, 50], probabilities=[0.75], n_draws=500, rng=1)
    >>> cell = found.query("rule == 'outperforming' and estimator == 'ideal'")
    >>> cell["rate"].is_monotonic_increasing
    True
    """
    generator, parts = np.random.default_rng(rng), []
    common = {"probabilities": probabilities, "alpha": alpha, "method": method, "n_draws": n_draws, "rng": generator}
    gammas = list(gamma)
    for size in n_runs:
        for g in gammas:
            found = decision_rules(components, n_runs=size, gamma=g, threshold=float(special.ndtri(g)), **common)
            parts.append(found[found["probability"].isin(list(probabilities))].assign(n_runs=size, gamma=g))
    columns = ["probability", "estimator", "rule", "n_runs", "gamma", "rate", "se"]
    return pd.concat(parts)[columns].sort_values(columns[:5], kind="stable", ignore_index=True)


# ---------------------------------------------------------------------- simulation


def shared_variance(components: VarianceComponents | None) -> float:
    """Share of the variance of a run that all runs of the biased estimator share."""
    if components is None:
        components = VarianceComponents(interaction_sd=math.sqrt(0.02), residual_sd=math.sqrt(0.98))
    total = components.advantage_sd**2 + components.run_sd**2
    return (components.advantage_sd**2 + components.sources.get("tuning", 0.0) ** 2) / total


def portions(n_draws: int, n_runs: int) -> list[int]:
    """Numbers of studies that fit into memory together."""
    most = max(1, AT_ONCE // n_runs)
    return [min(most, n_draws - done) for done in range(0, n_draws, most)]


def differences(truth: float, shared: float, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Differences of paired runs of variance 1 each, ``(studies, runs)``."""
    delta = math.sqrt(2.0) * float(special.ndtri(truth))
    single = rng.normal(scale=math.sqrt(2.0 * (1.0 - shared)), size=shape)
    return delta + rng.normal(scale=math.sqrt(2.0 * shared), size=(shape[0], 1)) + single


def decisions(d: np.ndarray, alpha: float, threshold: float, meaningful: np.ndarray) -> np.ndarray:
    """Whether each rule finds A better in each study, in the order of `RULES`."""
    n, mean = d.shape[1], d.mean(axis=1)
    t_ratio = mean / (d.std(axis=1, ddof=1) / math.sqrt(n))
    return np.stack(
        [
            d[:, 0] > threshold,
            mean > threshold,
            t_ratio > stats.t.isf(alpha, n - 1),
            meaningful[(d > 0.0).sum(axis=1)],
            mean > special.ndtri(1.0 - alpha) * math.sqrt(2.0 / n),
        ]
    )


# ---------------------------------------------------------------------- figures


def decision_rules_plot(table: pd.DataFrame, gamma: float = 0.75, alpha: float = 0.05) -> Figure:
    """Detections over the true probability, a panel per rule (figure 6).

    Ideal estimators are full lines, biased ones dashed, the oracle is grey. Where A is not better (H0) detections are
    errors; on grey A is better, but less often than gamma (significant, not meaningful); beyond gamma (H1) what is
    missing to 100 % is an error.
    """
    figure = Figure(figsize=(7.0, 5.2), layout="constrained")
    rates = table.set_index(["rule", "estimator"])

    def draw(ax: Axes, rule: str, estimator: str, **style: Any) -> None:
        curve = rates.loc[(rule, estimator)]
        ax.plot(curve["probability"], 100.0 * curve["rate"], **style)

    shown = {rule: name for rule, name in RULES.items() if rule != "oracle"}
    for ax, (rule, name) in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, shown.items(), strict=True):
        ax.axvspan(0.5, gamma, color="0.9", linewidth=0.0, zorder=0)
        ax.axhline(100.0 * alpha, color="0.4", linestyle="--", linewidth=0.7)
        draw(ax, "oracle", "ideal", color="0.6", linewidth=3.0, label="oracle")
        draw(ax, rule, "ideal", color=IDEAL, label="ideal estimator")
        draw(ax, rule, "biased", color=BIASED, linestyle="--", label="biased estimator")
        ends = (table["probability"].min(), 0.5, gamma, table["probability"].max())
        for low, high, region in zip(ends, ends[1:], ("H0", "not meaningful", "H1"), strict=False):
            ax.text((low + high) / 2.0, 106, region, ha="center", va="center", fontsize="x-small", color="0.4")
        ax.set(ylim=(-3.0, 112.0), yticks=range(0, 101, 25))
        ax.set_title(f"{name[:1].upper()}{name[1:]}", loc="left", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("True probability that a run of A is better", fontsize="medium")
    figure.supylabel("A found better, % of studies", fontsize="medium")
    return figure


def rule_curves_plot(table: pd.DataFrame, over: str = "n_runs") -> Figure:
    """Detections over "n_runs" or "gamma", a row per rule, a column per true probability: a row of figure I.6.

    Ideal estimators are full lines, biased ones dashed, the oracle is grey in all rows.
    """
    truths, shown = table["probability"].unique(), {rule: name for rule, name in RULES.items() if rule != "oracle"}
    figure = Figure(figsize=(7.0, 1.3 * len(shown) + 1.0), layout="constrained")
    axes = figure.subplots(len(shown), len(truths), sharex=True, sharey=True, squeeze=False)
    for column, truth in zip(axes.T, truths, strict=True):
        curves = table[table["probability"] == truth].set_index(["rule", "estimator"])
        column[0].set_title(f"P(A > B) = {truth:g}", loc="left", fontsize="medium")
        for ax, rule in zip(column, shown, strict=True):
            for of, estimator, label, style in (
                ("oracle", "ideal", "oracle", {"color": "0.6", "linewidth": 3.0}),
                (rule, "ideal", "ideal estimator", {"color": IDEAL}),
                (rule, "biased", "biased estimator", {"color": BIASED, "linestyle": "--"}),
            ):
                curve = curves.loc[[(of, estimator)]]
                ax.plot(curve[over], 100.0 * curve["rate"], label=label, **style)
            ax.spines[["top", "right"]].set_visible(False)
    for ax, name in zip(axes[:, 0], shown.values(), strict=True):
        ax.set(ylim=(-3.0, 103.0), yticks=(0, 50, 100))
        ax.set_ylabel(name, fontsize="small")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    names = {"n_runs": "pairs of runs", "gamma": "γ"}
    (other,) = set(names) - {over}
    same = f" ({names[other]}: {table[other].iloc[0]:g})" if table[other].nunique() == 1 else ""
    figure.supxlabel(f"{names[over].capitalize()}{same}; oracle: z-test with the true variance", fontsize="medium")
    figure.supylabel("A found better, % of studies", fontsize="medium")
    return figure
