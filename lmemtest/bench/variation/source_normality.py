"""Are the scores normal when one source varies, and what does it matter for the intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.result import Result, result
from lmemtest.core.rounding import at_most, tolerance, written
from lmemtest.core.validate import check_fraction
from lmemtest.core.words import counted, format_level, joined, percent
from lmemtest.errors import DesignError
from lmemtest.lmm.diagnostics.normality import measure
from lmemtest.lmm.distributions.density import density, drawn_bandwidth, rule_of_thumb
from lmemtest.lmm.hypotheses.shapiro_wilk import shapiro_wilk
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEW = 8  # scores, below which there is no density
_GRID = 200
_COARSE = 0.5  # distinct scores over all: with fewer the test sees the ties
_MEANS = 25.0  # Cochran's rule: t intervals of means keep their level from n = 25 skewness^2 on


@result
class SourceNormality(Result):
    """Shapes of the distributions of scores, one sample per source.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per sample: ``algorithm``, ``benchmark`` (where there are such), ``source``, ``n``, ``distinct`` (scores
        that differ), ``skewness``, ``excess_kurtosis``, ``coverage`` (that a 95 % chi-squared interval of the standard
        deviation would have with this kurtosis and many scores), ``statistic`` of Shapiro and Wilk, ``p_raw``,
        ``p_value`` (Holm, over all rows).
    densities : pandas.DataFrame
        ``score``, ``density`` and ``normal``, the normal density with the same mean and standard deviation.
    by : tuple of str
    score : str
    alpha : float
        Level of the family of tests.
    notes : tuple of str
    """

    figure = "source_normality_plot"
    parts: ClassVar = {"table": "table", "densities": "densities"}
    formats: ClassVar = {**dict.fromkeys(["skewness", "excess_kurtosis"], ".2f"), "coverage": percent}

    table: pd.DataFrame
    densities: pd.DataFrame
    by: tuple[str, ...]
    score: str
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is judged."""
        return f"Shape of the distribution of {self.score} by source"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the columns are."""
        return (
            f"p-values: Shapiro-Wilk, Holm over {counted(len(self.table), 'sample')}.",
            "coverage: of a 95 % chi-squared interval of the standard deviation with this kurtosis and many scores.",
        )

    def shown(self) -> pd.DataFrame:
        """Without the statistic and the p-values before adjustment."""
        return self.table.drop(columns=["statistic", "p_raw"])

    def sentences(self) -> tuple[str, ...]:
        """Which samples are not normal, which of these are coarse, and what it means."""
        rows = self.table.to_dict("records")
        tested = [row for row in rows if np.isfinite(row["p_value"])]
        if not tested:
            return ("No sample could be tested for normality.",)
        found = [row for row in tested if at_most(row["p_value"], self.alpha)]
        if not found:
            return (
                f"No sample is shown to be not normal (Shapiro-Wilk, Holm over {counted(len(tested), 'sample')}, "
                f"alpha = {self.alpha:g}); with few scores the test finds gross differences alone.",
            )
        texts = [
            f"Not normal: {joined([self._name(row) for row in found], 8)} (Shapiro-Wilk, Holm over "
            f"{counted(len(tested), 'sample')}, alpha = {self.alpha:g})."
        ]
        coarse = [row for row in found if row["distinct"] <= _COARSE * row["n"]]
        if coarse:
            texts.append(
                f"Of these {joined([self._name(row) for row in coarse], 8)} have many equal scores, as from a small "
                "test set: the test rejects any such sample if it is large, however close the shape is to normal."
            )
        worst = min(found, key=lambda row: (row["coverage"], row["source"]))
        texts.append(
            f"The largest excess kurtosis among them is {written(worst['excess_kurtosis'], '.2f')} "
            f"({self._name(worst)}): a 95 % chi-squared interval of its standard deviation would hold it in about "
            f"{percent(worst['coverage'])} of studies. Bonett's interval goes by the kurtosis."
        )
        short = [row for row in found if row["n"] < _MEANS * row["skewness"] ** 2]
        if short:
            texts.append(
                f"Skewed for their number of scores: {joined([self._name(row) for row in short], 8)}; t intervals of "
                "their means are approximate."
            )
        return tuple(texts)

    def _name(self, row: Mapping[Any, Any]) -> str:
        where = " on ".join(format_level(row[role]) for role in self.by)
        return f"{row['source']}{f' of {where}' if where else ''}"


def source_normality(scores: pd.DataFrame, *, by: Sequence[str], score: str, alpha: float = 0.05) -> SourceNormality:
    """Skewness, kurtosis and the test of Shapiro and Wilk for the scores of each source.

    Parameters
    ----------
    scores : pandas.DataFrame
        ``source``, ``sample``, ``score`` and the columns of `by`, as in ``VarianceStudy.scores``. Of each source the
        largest sample is judged.
    by : sequence of str
        Columns of algorithms and benchmarks.
    score : str
        What the scores are called.
    alpha : float in (0, 1)
        Level of the family of tests.

    Returns
    -------
    SourceNormality

    Notes
    -----
    A chi-squared interval of a standard deviation supposes that the variance of a sample variance is 2 s^4 / (n - 1);
    with the excess kurtosis g it is (2 + g) s^4 / n for large n, so a 95 % interval has the coverage
    2 Phi(1.96 / sqrt(1 + g / 2)) - 1, whatever the size of the sample.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, appendix G

    Examples
    --------
    >>> table = pd.DataFrame({"source": "data", "sample": 0, "score": [0.81, 0.84, 0.79, 0.88, 0.83, 0.85, 0.82, 0.8]})
    >>> source_normality(table, by=(), score="accuracy").to_frame()[["n", "distinct", "skewness", "p_value"]].round(2)
       n  distinct  skewness  p_value
    0  8         8      0.49     0.92
    """
    alpha = check_fraction(alpha, "alpha")
    rows, curves = [], []
    columns = [*by, "source"]
    for key, group in longest_samples(scores, tuple(by)).groupby(columns, sort=False):
        labels: dict[str, Any] = dict(zip(columns, key, strict=True))
        x = group["score"].to_numpy(dtype=float)
        sd = float(x.std(ddof=1)) if len(x) > 1 else 0.0
        if sd <= tolerance(x):
            continue
        shape = measure(x)
        statistic, p = shapiro_wilk(x, tolerance(x))
        factor = 1.0 + 0.5 * max(shape.kurtosis, -1.9)
        labels |= {
            "n": len(x),
            "distinct": 1 + int((np.diff(np.sort(x)) > tolerance(x)).sum()),
            "skewness": shape.skewness,
            "excess_kurtosis": shape.kurtosis,
            "coverage": 2.0 * float(special.ndtr(special.ndtri(0.975) / np.sqrt(factor))) - 1.0,
            "statistic": statistic,
            "p_raw": p,
        }
        rows.append(labels)
        if len(x) >= FEW:
            curves.append(pd.DataFrame({**{name: labels[name] for name in columns}, **_curve(x, sd)}))
    if not rows:
        raise DesignError("no source varies the score, so there is no shape to judge.")
    table = pd.DataFrame(rows)
    p_raw = table["p_raw"].to_numpy(dtype=float)
    table["p_value"] = adjust_raw(p_raw, "holm", int(np.isfinite(p_raw).sum()))
    empty = pd.DataFrame(columns=[*columns, "score", "density", "normal"])
    return SourceNormality(
        table=table,
        densities=pd.concat(curves, ignore_index=True) if curves else empty,
        by=tuple(by),
        score=score,
        alpha=alpha,
    )


def _curve(x: Array, sd: float) -> dict[str, Array]:
    """The kernel density and the normal one, three bandwidths beyond the scores."""
    coarse = len(np.unique(x)) <= _COARSE * len(x)  # of a grid the usual bandwidth shows the teeth
    h = rule_of_thumb(x) if coarse else drawn_bandwidth(x)
    grid = np.linspace(x.min() - 3.0 * h, x.max() + 3.0 * h, _GRID)
    normal = np.exp(-0.5 * ((grid - x.mean()) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))
    return {"score": grid, "density": density(x, grid, h), "normal": normal}


def longest_samples(scores: pd.DataFrame, by: tuple[str, ...]) -> pd.DataFrame:
    """Of each source the largest sample, the first of equals."""
    columns = [*by, "source"]
    sizes = scores.groupby([*columns, "sample"], sort=False).size().reset_index(name="size")
    best = sizes.loc[sizes.groupby(columns, sort=False)["size"].idxmax(), [*columns, "sample"]]
    return scores.merge(best, on=[*columns, "sample"])
