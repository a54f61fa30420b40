"""How many pairs of runs it takes to show that one algorithm is more often better than another.

n pairs without ties hold w wins of A, a binomial number with the probability P that a run of A is better. A is
significantly better where the two-sided interval of P is above one half, so power is a binomial tail: nothing is
simulated.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure C.1; Noether (1987),
J. Am. Stat. Assoc. 82, 645-647, doi:10.1080/01621459.1987.10478478.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy import special, stats

from lmemtest.errors import ArgumentError

MOST = 2000  # pairs: beyond it the search for an exact number stops
ROUNDING = 1e-9
RECOMMENDED = 0.75  # the gamma of the paper


def interval_of_wins(n: int, method: str, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the interval of P for 0, ..., n wins in n pairs without ties.

    "score" is Wilson's, "exact" Clopper and Pearson's; "percentile" is the paper's bootstrap with all draws instead of
    some, and these are binomial.

    Examples
    --------
    >>> low, high = interval_of_wins(10, "exact", 0.95)
    >>> low[[0, 9]].round(3), high[[0, 9]].round(3)
    (array([0.   , 0.555]), array([0.308, 0.997]))
    """
    wins, tail = np.arange(n + 1), 0.5 * (1.0 - level)
    if method == "percentile":
        low, high = (stats.binom.ppf(at * (1.0 - ROUNDING), n, wins / n) / n for at in (tail, 1.0 - tail))
    elif method == "exact":
        low = np.where(wins > 0, special.betaincinv(np.maximum(wins, 1), n - wins + 1.0, tail), 0.0)
        high = 1.0 - low[::-1]
    elif method == "score":
        z2 = special.ndtri(tail) ** 2
        middle = (wins + 0.5 * z2) / (n + z2)
        half = np.sqrt(z2 * (wins * (n - wins) / n + 0.25 * z2)) / (n + z2)
        low, high = middle - half, middle + half
    else:
        raise ArgumentError(f"method must be 'score', 'exact' or 'percentile', got {method!r}.")
    return low, high


def noether_sample_size(gamma: float = 0.75, alpha: float = 0.05, beta: float = 0.05) -> int:
    """Noether's number of runs per algorithm for a one-sided Mann-Whitney test where P(A > B) is `gamma`.

    It is of two samples that are not paired. The decision by pairs sees wins and losses only and needs more
    (`sample_size`). `alpha` and `beta` are the rates of false positives (one-sided) and false negatives.

    Examples
    --------
    >>> noether_sample_size(), noether_sample_size(0.55)
    (29, 722)
    """
    if not 0.5 < gamma < 1.0:
        raise ArgumentError(f"gamma must be a number between 0.5 and 1, both excluded, got {gamma!r}.")
    runs = ((special.ndtri(1.0 - alpha) - special.ndtri(beta)) / (math.sqrt(6.0) * (0.5 - gamma))) ** 2
    return max(1, math.ceil(float(runs) * (1.0 - 1e-12)))


def decision_power(n: int, probability: float, *, alpha: float = 0.05, method: str = "score") -> float:
    """How often n pairs make A significantly better where a run of A is better with `probability`, exactly.

    Examples
    --------
    >>> round(decision_power(29, 0.75), 3), round(decision_power(29, 0.5), 3)
    (0.834, 0.031)
    """
    low, _ = interval_of_wins(n, method, 1.0 - alpha)
    return float(stats.binom.pmf(np.arange(n + 1), n, probability) @ (low > 0.5 + ROUNDING))


def sample_size(
    gamma: float | Sequence[float] = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9),
    *,
    alpha: float = 0.05,
    beta: float = 0.05,
    method: str = "score",
) -> pd.DataFrame:
    """How many pairs of runs show that A is better with probability `gamma`, by Noether and exactly for the decision.

    Parameters
    ----------
    gamma : float or sequence of float in (0.5, 1)
    alpha, beta : float in (0, 1)
        One less the level of the interval, and the rate of false negatives.
    method : {"score", "exact", "percentile"}
        Of the interval.

    Returns
    -------
    pandas.DataFrame
        One row per gamma: ``gamma``, ``noether`` (runs per algorithm, not paired), ``pairs`` from which on the decision
        has the power asked for, ``power_at_noether`` of that decision with as many pairs as Noether's runs. Missing
        where more than 2,000 pairs are needed.

    Examples
    --------
    >>> sample_size(0.75).round(3).to_dict("records")
    [{'gamma': 0.75, 'noether': 29.0, 'pairs': 48.0, 'power_at_noether': 0.834}]
    """
    rows = []
    for value in np.atleast_1d(gamma).tolist():
        runs = noether_sample_size(value, alpha, beta)
        power = decision_power(runs, value, alpha=alpha, method=method) if runs <= MOST else np.nan
        rows.append((value, float(runs), fewest_pairs(value, alpha, beta, method, runs), power))
    return pd.DataFrame(rows, columns=["gamma", "noether", "pairs", "power_at_noether"])


def fewest_pairs(gamma: float, alpha: float, beta: float, method: str, start: int) -> float:
    """The smallest n from which on the power is enough: it goes up and down, because wins are whole numbers."""

    @functools.cache
    def enough(n: int) -> bool:
        return decision_power(n, gamma, alpha=alpha, method=method) >= (1.0 - beta) * (1.0 - ROUNDING)

    spacing = max(1, start // 10)
    last = min(MOST, 3 * start + 30)  # far above: of the sign test 1.5 times Noether's, and its whole numbers
    if not enough(last):
        return float("nan")
    while last > 1 and all(enough(n) for n in range(max(1, last - spacing), last)):
        last = max(1, last - spacing)
    while last > 1 and enough(last - 1):
        last -= 1
    return float(last)


def sample_size_plot(table: pd.DataFrame) -> Figure:
    """Runs over gamma: the paper's line, which is Noether's, with its star at 0.75, and what pairs need."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax = figure.subplots()
    names = {"pairs": "pairs, interval of P(A > B)", "noether": "Noether, not paired (the paper's line)"}
    for column, name in names.items():
        ax.plot(table["gamma"], table[column], marker="o", label=name)
    for runs in table.loc[np.isclose(table["gamma"], RECOMMENDED), "noether"]:
        label = f"the paper's recommendation: {runs:.0f} runs"
        ax.plot(RECOMMENDED, runs, "*", color="C2", markersize=14, zorder=4, label=label)
    ax.set(yscale="log", xlabel="Probability that a run of A is better (gamma)", ylabel="Runs of each")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.minorticks_off()
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
