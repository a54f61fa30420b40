"""Coverage in simulation, where the truth is known: of bands at once, and of the bootstrap at each budget.

A law to simulate from has ``sample(size, rng=)``, ``cdf`` and the true curves ``quantile_curve(k, q=, direction=)`` and
``mean_curve(k, direction=)``, as the laws of `lmemtest.tuning` have.

Tang, Lee, Xin, Liu, Yu & Lin (2020), doi:10.18653/v1/2020.acl-main.246; Lourie, Cho & He (2024), Show your work with
confidence, section 5, appendix D, figures 5, 6 and 12, doi:10.18653/v1/2024.naacl-long.189.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy import special

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.tuning.distribution import order_weights
from paper_figures.draws import generators

LEVEL = 0.99  # of the intervals for simulated rates, as in the paper
# Budgets just after a jump of the curve: a relative step of p that is far above rounding and moves no true curve.
NUDGE = 1e-9
MEAN_POINTS = 64
CHUNK = 2_000_000  # resampled scores held at once: 16 MB

# Pointwise coverage in % of nominal 95 % bootstrap bands from 50 scores at k = 1, 5, 10, 25, 50: the least and the
# most over uniform, normal and exponential scores. tests/simulation/test_evidence_rates.py measures them again.
MEASURED_N, MEASURED_LEVEL, MEASURED_K = 50, 0.95, (1, 5, 10, 25, 50)
MEASURED_COVERAGE: dict[str, tuple[tuple[float, float], ...]] = {
    "u": ((92.9, 94.5), (87.4, 93.3), (81.0, 91.4), (64.0, 82.4), (43.4, 61.3)),
    "v": ((92.9, 94.5), (85.8, 92.5), (78.1, 89.6), (60.6, 78.3), (42.2, 60.8)),
    "w": ((92.9, 94.5), (84.3, 90.8), (75.0, 86.0), (56.7, 72.7), (39.4, 55.2)),
}


def simulate_coverage(
    law: Any,
    n_scores: int,
    *,
    target: str | float = "median",
    direction: str = "maximize",
    level: float | Sequence[float] = (0.5, 0.8, 0.95),
    band: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Simulate how often a simultaneous band holds everywhere, for any law.

    Parameters
    ----------
    law : object
        The true law of the scores, such as a `lmemtest.tuning.kernel_density`.
    n_scores : int, >= 1
        Scores in each simulated search.
    target : "cdf", "median", "mean" or float in (0, 1)
        What the band is for: the distribution function, or the tuning curve of a summary of the best of k.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    level : float or sequence of float in (0, 1)
        Nominal levels; the same simulated scores serve all.
    band, from_k : str, float
        Of the band, see `lmemtest.tuning.band`.
    bounds : (float, float), optional
        For the mean.
    n_draws : int, >= 1
        Simulations.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    pandas.DataFrame
        One row per level: ``nominal``, ``coverage``, and its exact (Clopper-Pearson) 99 % interval ``ci_low``,
        ``ci_high``.

    Notes
    -----
    A quantile curve and its limits jump at finitely many k. Both are monotone in between, so they are compared there
    only, on both sides of each jump: this decides about all k > 0 (or k >= from_k). A mean curve is compared at 64 k
    from 0.25 to 4 n, which can only flatter it.

    Examples
    --------
    >>> law = tuning.kernel_density([0.55, 0.62, 0.71, 0.74, 0.98], bandwidth=0.05, bounds=(0, 1))
    >>> found = simulate_coverage(law, 8, level=0.8, n_draws=400, rng=1)
    >>> bool(0.74 < found["coverage"][0] < 0.86)
    True
    """
    if target == "cdf" and from_k is not None:
        raise ArgumentError("from_k is for tuning curves: leave it out for target='cdf'.")
    levels = np.atleast_1d(np.asarray(level, dtype=float))
    if target == "cdf":
        holds = [cdf_check(law, tuning.band(n_scores, band=band, level=c)) for c in levels]
    else:
        curve = {"direction": direction, "statistic": target, "band": band, "from_k": from_k, "bounds": bounds}
        holds = [curve_check(law, n_scores, level=float(c), **curve) for c in levels]

    def held(generator: np.random.Generator) -> list[bool]:
        scores = np.asarray(law.sample(n_scores, rng=generator))
        return [hold(scores) for hold in holds]

    return pd.DataFrame({"nominal": levels, **rates([held(generator) for generator in generators(rng, n_draws)])})


def simulate_bootstrap_coverage(
    law: Any,
    n_scores: int,
    *,
    k: ArrayLike,
    direction: str = "maximize",
    estimator: str = "v",
    level: float = 0.95,
    n_resamples: int = 1000,
    n_draws: int = 1000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Simulate how often percentile-bootstrap intervals cover the mean curve at each k.

    Parameters
    ----------
    law, n_scores, direction, n_draws, rng
        As in `simulate_coverage`.
    k : (m,) array of float, > 0
        Budgets.
    estimator, level
        As in `bootstrap_band`.
    n_resamples : int
        Resamples behind each interval.

    Returns
    -------
    pandas.DataFrame
        One row per budget: ``k``, ``nominal``, ``coverage``, ``ci_low``, ``ci_high``.

    Examples
    --------
    >>> law = tuning.kernel_density([0.0], bandwidth=1.0)
    >>> found = simulate_bootstrap_coverage(law, 20, k=[1, 20], n_draws=200, n_resamples=200, rng=1)
    >>> bool(found["coverage"][0] > 0.85), bool(found["coverage"][1] < 0.65)
    (True, True)
    """
    sign, budgets = (1.0 if direction == "maximize" else -1.0), np.atleast_1d(np.asarray(k, dtype=float))
    weights = np.array([order_weights(n_scores, budget, estimator=estimator) for budget in budgets.tolist()])
    truth = sign * np.asarray(law.mean_curve(budgets, direction=direction))

    def held(generator: np.random.Generator) -> np.ndarray:
        scores = np.sort(sign * np.asarray(law.sample(n_scores, rng=generator)))
        low, high = bootstrap_ends(scores, weights, level, n_resamples, generator)
        return (low <= truth) & (truth <= high)

    found = rates([held(generator) for generator in generators(rng, n_draws)])
    return pd.DataFrame({"k": budgets, "nominal": level, **found})


def bootstrap_band(
    scores: ArrayLike,
    *,
    direction: str,
    k: ArrayLike,
    estimator: str = "v",
    level: float = 0.95,
    n_draws: int = 4000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Percentile-bootstrap intervals of the expected best of k scores: the baseline that does not cover.

    Parameters
    ----------
    scores, direction, k, estimator
        As in `lmemtest.tuning.expected_best`.
    level : float in (0, 1)
        Nominal pointwise level.
    n_draws : int
        Resamples.
    rng : int, numpy.random.Generator or None
        Source of the resamples.

    Returns
    -------
    pandas.DataFrame
        ``k``, ``estimate``, ``ci_low``, ``ci_high``; `bootstrap_warning` says what such bands cover in truth.

    Notes
    -----
    Here to be compared with, not to be reported. No resample has a score above the best of the sample, so as k grows
    the upper end sticks to it while the true curve goes on. If scores have an exponential tail, the true mean of the
    best of n lies above the best score of the sample with probability exp(-exp(-0.577)) = 57 %: there no interval
    below the best score can cover more than 43 %.

    Examples
    --------
    >>> band = bootstrap_band([0.61, 0.70, 0.58, 0.74, 0.69], direction="maximize", k=[1, 5], n_draws=200, rng=1)
    >>> float(band["ci_high"][1].round(3))  # 0.74 is the best score that was seen, whatever the true curve does
    0.74
    """
    found = tuning.expected_best(scores, direction=direction, k=k, estimator=estimator).to_frame()
    sign = 1.0 if direction == "maximize" else -1.0
    values = np.sort(sign * np.asarray(scores, dtype=float))
    weights = np.array([order_weights(len(values), budget, estimator=estimator) for budget in found["k"]])
    ends = sign * bootstrap_ends(values, weights, level, n_draws, np.random.default_rng(rng))
    return found.assign(ci_low=ends.min(axis=0), ci_high=ends.max(axis=0))


def bootstrap_warning(estimator: str = "v") -> str:
    """What bootstrap intervals that claim 95 % were measured to cover.

    Examples
    --------
    >>> bootstrap_warning("v")[-72:]
    '61 to 78 % at k = 25, 42 to 61 % at k = 50. Report tuning.curve instead.'
    """
    covered = [
        f"{low:.0f} to {high:.0f} % at k = {k}"
        for k, (low, high) in zip(MEASURED_K, MEASURED_COVERAGE[estimator], strict=True)
    ]
    return (
        f"Warning: bootstrap intervals do not keep their level. Measured for {100 * MEASURED_LEVEL:.0f} % intervals "
        f"from {MEASURED_N} uniform, normal or exponential scores: {', '.join(covered)}. Report tuning.curve instead."
    )


def bootstrap_ends(
    values: np.ndarray, weights: np.ndarray, level: float, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Percentile ends (2, m) of ``weights @ sorted resample``."""
    n = len(values)
    size = max(1, CHUNK // n)
    draws = []
    for start in range(0, n_draws, size):
        index = rng.integers(n, size=(min(size, n_draws - start), n))
        draws.append(np.sort(values[index], axis=1) @ weights.T)
    tail = (1.0 - level) / 2.0
    return np.quantile(np.concatenate(draws), [tail, 1.0 - tail], axis=0)


# ---------------------------------------------------------------------------------------------------- what holds


def rates(held: Sequence[ArrayLike]) -> dict[str, np.ndarray]:
    """Shares of the simulations in which a band held, with exact 99 % intervals."""
    n, x, tail = len(held), np.sum(held, axis=0), 0.5 * (1.0 - LEVEL)
    low = np.where(x > 0, special.betaincinv(np.maximum(x, 1), n - x + 1.0, tail), 0.0)
    high = np.where(x < n, special.betaincinv(x + 1.0, np.maximum(n - x, 1), 1.0 - tail), 1.0)
    return {"coverage": x / n, "ci_low": low, "ci_high": high}


def cdf_check(law: Any, band: Any) -> Callable[[np.ndarray], bool]:
    """Whether a band, constant between scores, holds the true function: compared at each score and just before."""

    def holds(scores: np.ndarray) -> bool:
        y = np.unique(scores)
        count = np.searchsorted(np.sort(scores), y, side="right")
        before = np.concatenate([[0], count[:-1]])
        at, just_before = np.asarray(law.cdf(y)), np.asarray(law.cdf(np.nextafter(y, -np.inf)))
        return bool(np.all(at >= band.band_low[count]) and np.all(just_before <= band.band_high[before]))

    return holds


def curve_check(
    law: Any, n_scores: int, *, direction: str, statistic: str | float, level: float, **curve: Any
) -> Callable[[np.ndarray], bool]:
    """Whether the curve of scores holds the true one at all budgets that matter."""
    if statistic == "mean":
        k = np.geomspace(0.25, 4.0 * n_scores, MEAN_POINTS)
        truth = np.asarray(law.mean_curve(k, direction=direction))
    else:
        q = 0.5 if statistic == "median" else float(statistic)
        quantile = q if direction == "maximize" else 1.0 - q
        shape = {"band": curve["band"], "from_k": curve["from_k"]}
        k = jumps(tuning.band(n_scores, level=level, quantile=quantile, **shape), quantile)
        truth = np.asarray(law.quantile_curve(k, q=q, direction=direction))

    def holds(scores: np.ndarray) -> bool:
        found = tuning.curve(scores, direction=direction, k=k, statistic=statistic, level=level, **curve)
        return bool(np.all((found.band_low <= truth) & (truth <= found.band_high)))

    return holds


def jumps(band: Any, quantile: float) -> np.ndarray:
    """Budgets on both sides of every k at which a limit of the curve jumps."""
    limits = np.concatenate([band.band_low, band.band_high])
    limits = np.unique(limits[(limits > 0.0) & (limits < 1.0)])
    p = np.unique(np.concatenate([limits * (1.0 - NUDGE), limits * (1.0 + NUDGE)]))
    k = np.log(quantile) / np.log(p[(p > 0.0) & (p < 1.0)])
    return k if band.from_k is None else np.concatenate([[band.from_k], k[k > band.from_k]])


# ---------------------------------------------------------------------------------------------------- figure


def coverage_plot(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """How often bands held in simulation against what they claim, with 99 % intervals of the simulation.

    Points with bars at the levels (nothing was simulated between them), or lines with bands over the budget; the
    dashed line is what was claimed.
    """
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    ax = figure.subplots()
    by_k = "k" in next(iter(tables.values()))
    for number, (name, table) in enumerate(tables.items()):
        rate, low, high = (100.0 * table[column] for column in ("coverage", "ci_low", "ci_high"))
        if by_k:
            (line,) = ax.plot(table["k"], rate, ("-", "--", "-.", ":")[number % 4], label=name)
            ax.fill_between(table["k"], low, high, color=line.get_color(), alpha=0.2, linewidth=0)
            ax.plot(table["k"], 100.0 * table["nominal"], "--", color="0.1", linewidth=1, label="_reference")
        else:
            place = 100.0 * table["nominal"] + 0.6 * (number - 0.5 * (len(tables) - 1))  # bars stand side by side
            ax.vlines(place, low, high, color=f"C{number}", linewidth=1.5)
            ax.plot(place, rate, "os^D"[number % 4], color=f"C{number}", markersize=4, label=name)
    if by_k:
        ax.set(xscale="log", xlabel="Trials k")
        ax.xaxis.set_major_formatter("{x:g}")
    else:
        ax.plot([0, 100], [0, 100], "--", color="0.1", linewidth=1, label="_reference", zorder=1)
        ax.set_xlabel("Nominal, %")
    ax.set(ylim=(0.0, 102.0), ylabel="Coverage, %")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
