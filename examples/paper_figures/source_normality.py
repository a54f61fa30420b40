"""Are the scores normal when one source varies, and what does it matter for the intervals.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, appendix G.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import special, stats

from lmemtest.errors import DesignError
from lmemtest.lmm.distributions.modes import density, drawn_bandwidth, rule_of_thumb
from paper_figures.binomial_noise import holm

if TYPE_CHECKING:
    from lmemtest.bench.variation.variance_sources import VarianceSources

FEW = 8  # scores, below which no density is drawn
COARSE = 0.5  # distinct scores over all: with fewer the test sees the ties
MEANS = 25.0  # Cochran's rule: t intervals of means keep their level from n = 25 skewness^2 on
ROUNDING = 1e-12  # of the largest score


def samples(study: VarianceSources) -> pd.DataFrame:
    """The scores of each source that varied with all others fixed: its largest sample, the first of equals."""
    scores = study.to_frame("scores")
    if scores.empty:
        raise DesignError(
            "normality needs samples in which one source varies and all others are fixed, and this table is crossed. "
            "Give variance_sources the trainings with one seed of all other sources."
        )
    columns = [*study.by, "source"]
    sizes = scores.groupby([*columns, "sample"], sort=False).size().reset_index(name="size")
    largest = sizes.loc[sizes.groupby(columns, sort=False)["size"].idxmax(), [*columns, "sample"]]
    return scores.merge(largest, on=[*columns, "sample"])[[*columns, "score"]]


def source_normality(scores: pd.DataFrame) -> pd.DataFrame:
    """Skewness, kurtosis and the test of Shapiro and Wilk for the scores of each source.

    Parameters
    ----------
    scores : pandas.DataFrame
        ``score``, and columns that tell samples apart, as `samples` gives them.

    Returns
    -------
    pandas.DataFrame
        One row per sample in which scores differ: its columns, ``n``, ``distinct`` (scores that differ), ``skewness``,
        ``excess_kurtosis``, ``coverage`` (that a 95 % chi-squared interval of the standard deviation would have with
        this kurtosis and many scores), ``statistic`` of Shapiro and Wilk, ``p_raw``, ``p_value`` (Holm, over all rows);
        ``coarse``, whether half of the scores or more are equal to others, so that the test rejects any large sample,
        however close the shape is to normal; ``skewed``, whether n is too small for t intervals of the mean.

    Notes
    -----
    A chi-squared interval of a standard deviation supposes that the variance of a sample variance is 2 s^4 / (n - 1);
    with the excess kurtosis g it is (2 + g) s^4 / n for large n, so a 95 % interval has the coverage
    2 Phi(1.96 / sqrt(1 + g / 2)) - 1, whatever the size of the sample.

    Examples
    --------
    >>> table = pd.DataFrame({"source": "data", "score": [0.81, 0.84, 0.79, 0.88, 0.83, 0.85, 0.82, 0.8]})
    >>> source_normality(table)[["n", "distinct", "skewness", "p_value"]].round(2)
       n  distinct  skewness  p_value
    0  8         8      0.49     0.92
    """
    columns, rows = [name for name in scores if name != "score"], []
    for key, part in scores.groupby(columns, sort=False):
        x = part["score"].to_numpy(dtype=float)
        same = ROUNDING * np.abs(x).max()
        if np.ptp(x) <= same:
            continue
        skewness, kurtosis = float(stats.skew(x)), float(stats.kurtosis(x))
        testable = 3 <= len(x) <= 5000  # where the distribution of the statistic is known
        statistic, p_raw = stats.shapiro(x) if testable else (float("nan"), float("nan"))
        distinct = 1 + int((np.diff(np.sort(x)) > same).sum())
        rows.append(
            dict(zip(columns, key, strict=True))
            | {
                "n": len(x),
                "distinct": distinct,
                "skewness": skewness,
                "excess_kurtosis": kurtosis,
                "coverage": coverage_by_kurtosis(kurtosis),
                "statistic": float(statistic),
                "p_raw": float(p_raw),
                "coarse": distinct <= COARSE * len(x),
                "skewed": len(x) < MEANS * skewness**2,
            }
        )
    if not rows:
        raise DesignError("no source varies the score, so there is no shape to judge.")
    table = pd.DataFrame(rows)
    return table.assign(p_value=holm(table["p_raw"].to_numpy()))


def coverage_by_kurtosis(excess: float) -> float:
    """Of 95 % chi-squared intervals of the standard deviation of many values."""
    return 2.0 * float(special.ndtr(special.ndtri(0.975) / np.sqrt(1.0 + 0.5 * max(excess, -1.9)))) - 1.0


def curves(x: np.ndarray, points: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where, the kernel density, and the normal one with the same mean and standard deviation."""
    coarse = len(np.unique(x)) <= COARSE * len(x)  # of a grid the usual bandwidth shows the teeth
    h = rule_of_thumb(x) if coarse else drawn_bandwidth(x)
    grid = np.linspace(x.min() - 3.0 * h, x.max() + 3.0 * h, points)
    return grid, density(x, grid, h), stats.norm.pdf(grid, x.mean(), x.std(ddof=1))


def source_normality_plot(scores: pd.DataFrame, alpha: float = 0.05) -> Figure:
    """Distributions of the scores of each source, a panel per algorithm and benchmark (figure G.3).

    Filled: the kernel density; line: the normal density with the same mean and standard deviation. A star at the right
    marks samples that are not normal (Shapiro-Wilk, Holm). Axes have the middle 95 % of every sample, and nothing
    beyond 0 and 1 where all scores are within these.
    """
    table, by = source_normality(scores), [name for name in scores if name not in ("source", "score")]
    sources = list(dict.fromkeys(table["source"]))
    panels = list(table.groupby(by, sort=False)) if by else [((), table)]
    rows, shares = -(-len(panels) // 3), bool(scores["score"].between(0.0, 1.0).all())
    figure = Figure(figsize=(9.0, rows * (0.6 + 0.45 * len(sources))), layout="constrained")
    axes = figure.subplots(rows, min(len(panels), 3), sharey=True, squeeze=False).flat
    for (key, part), ax in zip(panels, axes, strict=False):
        here, middle = scores[(scores[by] == list(key)).all(axis=1)], []
        for row in part.itertuples():
            x = here.loc[here["source"] == row.source, "score"].to_numpy(dtype=float)
            foot = -sources.index(row.source)
            ax.axhline(foot, color="0.9", linewidth=0.6, zorder=0)
            if len(x) < FEW:
                continue
            middle.append(np.quantile(x, [0.025, 0.975]))
            grid, heights, normal = curves(x)
            if shares:
                inside = (grid >= 0.0) & (grid <= 1.0)
                grid, heights, normal = grid[inside], heights[inside], normal[inside]
            scale = 0.8 / max(heights.max(), normal.max())
            ax.fill_between(grid, foot, foot + scale * heights, color="C0", alpha=0.4, linewidth=0)
            ax.plot(grid, foot + scale * normal, color="0.1", linewidth=0.9, label="_normal")
            if row.p_value <= alpha:
                ax.plot(
                    1.0, foot + 0.3, "*", color="C1", label="_star", clip_on=False, transform=ax.get_yaxis_transform()
                )
        drawn = set(part["source"])
        for source in here["source"].unique():
            if source not in drawn and source in sources:
                where = {"transform": ax.get_yaxis_transform(), "va": "bottom", "fontsize": "x-small", "color": "0.4"}
                ax.text(0.01, -sources.index(source) + 0.05, "no variation", **where)
        if middle:
            low, high = np.min(middle), np.max(middle)
            ax.set_xlim(
                low - 0.1 * (high - low), min(high + 0.1 * (high - low), 1.0) if shares else high + 0.1 * (high - low)
            )
        ax.set_yticks([-place for place in range(len(sources))], sources)
        ax.set_title(" on ".join(map(str, key)), loc="left", fontsize="medium")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    for ax in list(axes):  # those that are left
        ax.set_visible(False)
    return figure
