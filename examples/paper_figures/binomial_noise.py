"""Scores as shares of right answers: the standard deviation that a test set of n items alone would give.

If each of n independent items is answered rightly with probability p, the share of right answers has the variance
p (1 - p) / n. Scores over data splits that vary more hold something else too (the training data, clusters of items);
scores that vary less have test items in common. Splits of one data set overlap, which makes scores alike: the
comparison says whether the test set could explain the variation, not that it does.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy import special

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError

APART = 1.06  # from the size of the test set of a point to where the next of the same size is drawn
REACH = 3.0  # of a curve beyond the smallest and the largest test set


def binomial_noise(
    scores: Mapping[str, ArrayLike],
    n_test: Mapping[str, ArrayLike] | ArrayLike,
    *,
    method: str = "bonett",
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare the standard deviation of scores over data splits with that of a binomial share.

    Parameters
    ----------
    scores : mapping of str to (n,) float in [0, 1]
        Shares of right (or wrong) answers of trainings over data splits, at least two, by name.
    n_test : int, (n,) int, or mapping of str to these
        Test items of each training.
    method : {"bonett", "chi-squared"}
        Of the intervals.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    pandas.DataFrame
        One row per sample: ``name``, ``n`` (scores), ``mean``, ``n_test`` (harmonic mean of the test items), ``sd``
        with ``ci_low`` and ``ci_high``, ``binomial_sd``, ``ratio`` of the two with ``ratio_low`` and ``ratio_high``,
        ``n_effective`` with ``_low`` and ``_high``: the number of independent items with this standard deviation;
        ``p_raw`` of "not more than binomial", and ``p_value`` (Holm, over all rows). Equal scores say nothing of what
        varies less than their grid, and have no interval.

    Examples
    --------
    >>> found = binomial_noise({"net": [0.90, 0.93, 0.88, 0.91, 0.86, 0.92]}, 100)
    >>> found[["sd", "binomial_sd", "ratio", "p_value"]].round(3)
          sd  binomial_sd  ratio  p_value
    0  0.026         0.03  0.869    0.582
    """
    sizes = n_test if isinstance(n_test, Mapping) else dict.fromkeys(scores, n_test)
    if set(sizes) != set(scores):
        raise ArgumentError(f"n_test must have the names of scores, {list(scores)}, got {list(sizes)}.")
    rows = []
    for name, values in scores.items():
        y, n = shares(values, name), np.broadcast_to(np.asarray(sizes[name], dtype=float), np.shape(values))
        if not ((n >= 1) & (n == n.round())).all():
            raise ArgumentError(f"n_test must be the number of test items, a whole number of at least 1, got {n}.")
        mean, size = float(n @ y / n.sum()), float(len(n) / (1.0 / n).sum())
        p_raw, binomial = dispersion_p_value(y, n), (mean * (1.0 - mean) / size) ** 0.5
        sd, low, high = standard_deviation(y, method, level)
        with np.errstate(divide="ignore"):
            effective = (size * np.square(np.divide(binomial, [sd or np.nan, high, low]))).tolist()
        ratios = [value / binomial for value in (sd, low, high)]
        rows.append((name, len(y), mean, size, sd, low, high, binomial, *ratios, *effective, p_raw))
    names = ["name", "n", "mean", "n_test", "sd", "ci_low", "ci_high", "binomial_sd", "ratio", "ratio_low"]
    names += ["ratio_high", "n_effective", "n_effective_low", "n_effective_high", "p_raw"]
    table = pd.DataFrame(rows, columns=names)
    return table.assign(p_value=holm(table["p_raw"].to_numpy()))


def noise_of_study(study: pd.DataFrame, **options: str | float) -> pd.DataFrame:
    """`binomial_noise` of the bundled study, over its data splits with all else fixed; equal splits by their mean."""
    rows = study[(study["design"] == "one at a time") & study["varied"].isin(["data", "nothing"])]
    names = rows["pipeline"] + " on " + rows["dataset"]
    splits = {
        name: part.groupby("data", sort=False).agg({"score": "mean", "n_test": "first"})
        for name, part in rows.groupby(names, sort=False)
    }
    columns = ({name: split[column].to_numpy() for name, split in splits.items()} for column in ("score", "n_test"))
    return binomial_noise(*columns, **options)


def dispersion_p_value(y: np.ndarray, n: np.ndarray | int) -> float:
    """Of Fisher's index of dispersion: sum n_i (y_i - m)^2 / (m (1 - m)).

    It is chi-squared with k - 1 degrees of freedom if k scores are binomial shares with one probability; roughly so
    with under five answers of the rarer kind per test set.
    """
    n = np.broadcast_to(np.asarray(n, dtype=float), y.shape)
    mean = float(n @ y / n.sum())
    if not 0.0 < mean < 1.0:
        raise DesignError(f"all answers are {'right' if mean else 'wrong'} (mean {mean:g}), so nothing varies.")
    return float(special.chdtrc(len(y) - 1, float(n @ (y - mean) ** 2) / (mean * (1.0 - mean))))


def standard_deviation(y: np.ndarray, method: str, level: float) -> tuple[float, float, float]:
    """With both ends of its interval."""
    if np.ptp(y) == 0.0:
        return 0.0, float("nan"), float("nan")
    study = lt.variance_sources(
        {"split": range(len(y)), "score": y}, score="score", sources=["split"], method=method, alpha=1.0 - level
    )
    return tuple(study.sources.loc[0, ["sd", "ci_low", "ci_high"]].tolist())


def shares(values: ArrayLike, name: str) -> np.ndarray:
    """Scores that are shares of answers."""
    y = np.asarray(values, dtype=float)
    if y.ndim != 1 or len(y) < 2:
        raise ArgumentError(f"scores of {name!r} must be at least two in a row, got {values!r:.60}.")
    if not ((y >= 0.0) & (y <= 1.0)).all():
        percent = " Divide percentages by 100." if np.nanmax(y) > 1.0 else ""
        raise DataError(f"scores of {name!r} must be shares of right or wrong answers between 0 and 1.{percent}")
    return y


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values; those that are missing do not count.

    Examples
    --------
    >>> holm(np.array([0.01, np.nan, 0.04, 0.03]))
    array([0.03,  nan, 0.06, 0.06])
    """
    adjusted, tested = np.full(len(p), np.nan), np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted


def binomial_noise_plot(table: pd.DataFrame) -> Figure:
    """Binomial standard deviations over the number of test items, dotted, and observed ones as points with intervals.

    Points of equal sizes stand side by side. Curves that coincide take turns with their dots.
    """
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    ax = figure.subplots()
    sizes = np.geomspace(max(table["n_test"].min() / REACH, 1.0), table["n_test"].max() * REACH)
    alike = table.groupby("n_test")["name"]
    side = alike.cumcount() - 0.5 * (alike.transform("size") - 1)
    for turn, (row, place) in enumerate(zip(table.itertuples(), table["n_test"] * APART**side, strict=True)):
        dots = (1.8 * turn, (1.0, 1.8 * len(table) - 1.0))
        (curve,) = ax.plot(sizes, np.sqrt(row.mean * (1.0 - row.mean) / sizes), linestyle=dots, linewidth=1.8)
        ends = [[row.sd - row.ci_low], [row.ci_high - row.sd]]
        ax.errorbar([place], [row.sd], ends, fmt="o", color=curve.get_color(), label=row.name)
    ax.set(xscale="log", xlabel="Items of the test set", ylabel="Standard deviation of the score", ylim=(0.0, None))
    ax.set_ylim(0.0, 1.3 * table["ci_high"].max())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "Dotted: test sets without a common item. Those of one data set have most of their items in common,\n"
        "so a point below its curve says nothing, and one on it may be a coincidence.",
        fontsize="small", color="0.35", x=0.01, ha="left",
    )  # fmt: skip
    return figure
