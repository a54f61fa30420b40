"""How many pairs of runs it takes to show that one algorithm is more often better than another."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from lmemtest.bench.outperforming.intervals import chances, ends_of, tables
from lmemtest.bench.outperforming.verdict import check_gamma
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("score", "exact", "percentile")
MOST = 2000  # pairs: beyond it the search for an exact number stops


def noether_sample_size(gamma: float = 0.75, alpha: float = 0.05, beta: float = 0.05) -> int:
    """Noether's number of runs per algorithm for a one-sided Mann-Whitney test where P(A > B) is `gamma`.

    It is of two samples that are not paired. The decision by pairs sees wins and losses only and needs more
    (`sample_size`).

    Parameters
    ----------
    gamma : float in (0.5, 1)
    alpha, beta : float in (0, 1)
        Rates of false positives (one-sided) and false negatives.

    References
    ----------
    Noether (1987), J. Am. Stat. Assoc. 82, 645-647, doi:10.1080/01621459.1987.10478478

    Examples
    --------
    >>> noether_sample_size(), noether_sample_size(0.55)
    (29, 722)
    """
    gamma, alpha, beta = check_gamma(gamma), check_fraction(alpha, "alpha"), check_fraction(beta, "beta")
    runs = ((special.ndtri(1.0 - alpha) - special.ndtri(beta)) / (math.sqrt(6.0) * (0.5 - gamma))) ** 2
    return max(1, math.ceil(float(runs) * (1.0 - 1e-12)))


def adjusted_gamma(gamma: float, alpha: float, comparisons: int, beta: float = 0.05) -> float:
    """The gamma that as many runs detect at alpha / comparisons as detect `gamma` at alpha; 1 at most.

    Bouthillier et al. propose to raise gamma with the number of comparisons and leave open how. Noether's number of
    runs stays the same if gamma - 1/2 grows as the sum of the two normal quantiles does.

    Examples
    --------
    >>> adjusted_gamma(0.75, 0.05, 1), round(adjusted_gamma(0.75, 0.05, 10), 3)
    (0.75, 0.821)
    """
    gamma, alpha, beta = check_gamma(gamma), check_fraction(alpha, "alpha"), check_fraction(beta, "beta")
    comparisons = check_positive_int(comparisons, "comparisons")
    one, all_of_them = (special.ndtri(1.0 - a) - special.ndtri(beta) for a in (alpha, alpha / comparisons))
    return gamma if comparisons == 1 else min(1.0, 0.5 + (gamma - 0.5) * float(all_of_them / one))


def decision_power(
    n: int, probability: float, *, alpha: float = 0.05, ties: float = 0.0, method: str = "score"
) -> float:
    """How often n pairs make A significantly better where a run of A is better with `probability`, exactly.

    Parameters
    ----------
    n : int
        Pairs.
    probability : float in (0, 1)
        P, ties one half.
    alpha : float in (0, 1)
        One less the level of the two-sided interval.
    ties : float in [0, 1)
        Share of the pairs that are tied.
    method : {"score", "exact", "percentile"}

    Returns
    -------
    float
        The sum over all numbers of wins and ties; nothing is simulated.

    Examples
    --------
    >>> round(decision_power(29, 0.75), 3), round(decision_power(29, 0.5), 3)
    (0.834, 0.031)
    """
    n, probability = check_positive_int(n, "n", maximum=MOST), check_fraction(probability, "probability")
    alpha, method = check_fraction(alpha, "alpha"), check_choice(method, "method", METHODS)
    room = 2.0 * min(probability, 1.0 - probability)
    if isinstance(ties, bool) or not isinstance(ties, (int, float)) or not 0.0 <= ties <= room + 1e-12:
        raise ArgumentError(
            f"ties must lie between 0 and {room:g} where the probability is {probability:g}, since ties count half for "
            f"either algorithm, got {ties!r}."
        )
    counts = tables(n, with_ties=ties > 0.0)
    low, _ = ends_of(counts, method, 1.0 - alpha)
    return float(chances(counts, probability, float(ties)) @ below(0.5, low))


@result
class SampleSize(Result):
    """How many pairs of runs show an advantage of each size.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per gamma: ``gamma``, ``noether`` (runs per algorithm, not paired), ``pairs`` from which on the decision
        has the power asked for, ``power_at_noether`` of that decision with as many pairs as Noether's runs. Missing
        where more than 2,000 pairs are needed.
    alpha, beta : float
    method : str
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "sample_size_plot"
    formats = {"gamma": ".3g", "noether": ",.0f", "pairs": ",.0f", "power_at_noether": ".3f"}

    table: pd.DataFrame
    alpha: float
    beta: float
    method: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """For which error rates."""
        return f"Pairs of runs that show an advantage with power {percent(1.0 - self.beta)}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the two numbers are."""
        return (
            f"pairs: the two-sided {percent(1.0 - self.alpha)} {self.method} interval is above 0.5, exact sums without "
            f"ties; noether: one-sided Mann-Whitney test at {percent(self.alpha)}, runs per algorithm.",
        )

    def sentences(self) -> tuple[str, ...]:
        """The numbers for the gamma nearest to the paper's."""
        row = self.table.iloc[int(np.argmin(np.abs(self.table["gamma"].to_numpy() - 0.75)))]
        pairs = "more than 2,000" if np.isnan(row["pairs"]) else f"{row['pairs']:,.0f}"
        return (
            f"Where a run of A is better with probability {row['gamma']:g}, {pairs} pairs make it significant in "
            f"{percent(1.0 - self.beta)} of the studies; Noether's number for runs that are not paired is "
            f"{row['noether']:,.0f}.",
        )


def sample_size(
    gamma: float | Sequence[float] = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9),
    *,
    alpha: float = 0.05,
    beta: float = 0.05,
    method: str = "score",
) -> SampleSize:
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
    SampleSize

    Examples
    --------
    >>> sample_size(0.75).table.round(3).to_dict("records")
    [{'gamma': 0.75, 'noether': 29.0, 'pairs': 48.0, 'power_at_noether': 0.834}]
    """
    import pandas as pd

    values = [gamma] if isinstance(gamma, (int, float)) else list(gamma)
    if not values:
        raise ArgumentError("gamma must hold a probability at least, got none.")
    check_choice(method, "method", METHODS)
    rows = []
    for value in values:
        runs = noether_sample_size(value, alpha, beta)
        at = decision_power(runs, value, alpha=alpha, method=method) if runs <= MOST else np.nan
        rows.append((float(value), float(runs), _pairs(float(value), alpha, beta, method, runs), at))
    columns = ["gamma", "noether", "pairs", "power_at_noether"]
    return SampleSize(table=pd.DataFrame(rows, columns=columns), alpha=alpha, beta=beta, method=method)


def _pairs(gamma: float, alpha: float, beta: float, method: str, start: int) -> float:
    """The smallest n from which on the power is enough: it goes up and down, because wins are whole numbers."""

    @functools.cache
    def enough(n: int) -> bool:
        return not below(decision_power(n, gamma, alpha=alpha, method=method), 1.0 - beta)

    spacing = max(1, start // 10)
    last = min(MOST, 3 * start + 30)  # far above: of the sign test 1.5 times Noether's, and its whole numbers
    if not enough(last):
        return float("nan")
    while last > 1 and all(enough(n) for n in range(max(1, last - spacing), last)):
        last = max(1, last - spacing)
    while last > 1 and enough(last - 1):
        last -= 1
    return float(last)
