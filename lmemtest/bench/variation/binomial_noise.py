"""Scores as shares of right answers: the standard deviation that a test set of n items alone would give.

If each of n independent items is answered rightly with probability p, the share of right answers has the variance
p (1 - p) / n. Scores over data splits that vary more hold something else too (the training data, clusters of items);
scores that vary less have test items in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import counted, joined, p_text
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.intervals.variances import METHODS, SampleVariance
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_POINTS = 50  # of a curve
_REACH = 3.0  # of a curve beyond the smallest and the largest test set
_WHOLE = 0.01  # from a whole number of right answers: the rounding of a score that was written
_FEW_WRONG = 5.0  # answers of the rarer kind, below which the chi-squared law of the test is rough


@result
class BinomialNoise(Result):
    """Standard deviations of scores over data splits beside the binomial ones.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per sample: ``name``, ``n`` (scores), ``mean``, ``n_test`` (harmonic mean of the test items), ``sd``
        with ``ci_low`` and ``ci_high``, ``binomial_sd``, ``ratio`` of the two with ``ratio_low`` and ``ratio_high``,
        ``n_effective`` with ``_low`` and ``_high``: the number of independent items with this standard deviation;
        ``p_raw`` of "not more than binomial", and ``p_value`` (Holm, over all rows).
    curves : pandas.DataFrame
        ``name``, ``n_test``, ``binomial_sd``: the prediction for other sizes of the test set.
    level : float
        Of each interval.
    method : str
        Of the intervals.
    notes : tuple of str
    """

    figure = "binomial_noise_plot"
    parts: ClassVar = {"table": "table", "curves": "curves"}
    formats: ClassVar = {
        **dict.fromkeys(["ratio", "ratio_low", "ratio_high"], ".2f"),
        **dict.fromkeys(["n_test", "n_effective", "n_effective_low", "n_effective_high"], ".0f"),
    }

    table: pd.DataFrame
    curves: pd.DataFrame
    level: float
    method: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is compared."""
        return "Noise of the test set"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the columns are."""
        return (
            "binomial_sd: sqrt(mean (1 - mean) / n_test); n_effective: independent items that would give this sd.",
            f"{100 * self.level:.4g} % intervals, two-sided and one by one; p-values: one-sided, of more than binomial "
            f"variance, Holm over {counted(len(self.table), 'sample')}.",
        )

    def shown(self) -> pd.DataFrame:
        """Without the p-values before adjustment and ends that follow from others."""
        return self.table.drop(columns=["p_raw", "n_effective_low", "n_effective_high"])

    def sentences(self) -> tuple[str, ...]:
        """Per sample, whether the test set alone may explain the variation."""
        return tuple(map(self._of_row, self.table.to_dict("records")))

    def _of_row(self, row: Mapping[Any, Any]) -> str:
        ends = f"{written(row['ratio_low'], '.2f')} to {written(row['ratio_high'], '.2f')}"
        if row["sd"] == 0.0:
            return f"{row['name']}: all scores are equal, and nothing is said of their noise."
        text = (
            f"{row['name']}: the standard deviation is {written(row['ratio'], '.2f')} times the binomial one "
            f"of {counted(round(row['n_test']), 'item')} ({ends}), as of "
            f"{counted(round(row['n_effective']), 'independent item')}"
        )
        if below(row["p_value"], 1.0 - self.level):
            return f"{text}; more than the size of the test set explains (one-sided {p_text(row['p_value'])})."
        if row["ratio_high"] < 1.0:
            return f"{text}; less than independent test sets would give, as where splits share test items."
        return (
            f"{text}; not shown to be more than the size of the test set explains (one-sided {p_text(row['p_value'])})."
        )


def binomial_noise(scores: Any, n_test: Any, *, method: str = "bonett", level: float = 0.95) -> BinomialNoise:
    """Compare the standard deviation of scores over data splits with that of a binomial share.

    Parameters
    ----------
    scores : (n,) float in [0, 1], or mapping of str to these
        Shares of right (or wrong) answers of trainings over data splits, at least two; one sample or several by name.
    n_test : int, (n,) int, or mapping of str to these
        Test items of each training.
    method : {"bonett", "chi-squared"}
        Of the intervals.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    BinomialNoise

    Raises
    ------
    ArgumentError
        If names or lengths do not match, or a size is not a whole number above 0.
    DataError
        If a score lies outside of [0, 1] or is missing.
    DesignError
        If all answers of a sample are right, or all wrong.

    Notes
    -----
    The test is the index of dispersion: sum n_i (y_i - m)^2 / (m (1 - m)) has a chi-squared distribution with k - 1
    degrees of freedom if k scores are binomial shares with one probability. Splits of one data set overlap, which makes
    scores alike; so the comparison says whether the test set could explain the variation, not that it does.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 2; Fisher (1925),
    Statistical Methods for Research Workers, on the index of dispersion

    Examples
    --------
    >>> found = binomial_noise([0.90, 0.93, 0.88, 0.91, 0.86, 0.92], 100)
    >>> found.to_frame()[["sd", "binomial_sd", "ratio", "p_value"]].round(3)
          sd  binomial_sd  ratio  p_value
    0  0.026         0.03  0.869    0.582
    """
    level, method = check_fraction(level, "level"), check_choice(method, "method", METHODS)
    samples = dict(scores) if isinstance(scores, Mapping) else {"scores": scores}
    if not samples:
        raise ArgumentError("scores must hold a sample of scores, got none.")
    sizes = dict(n_test) if isinstance(n_test, Mapping) else dict.fromkeys(samples, n_test)
    if set(sizes) != set(samples):
        raise ArgumentError(f"n_test must have the names of scores, {list(samples)}, got {list(sizes)}.")
    rows: list[tuple[Any, ...]] = []
    not_whole, few = [], []
    for name, values in samples.items():
        y = _shares(values, f"scores[{name!r}]" if isinstance(scores, Mapping) else "scores")
        n = _sizes(sizes[name], len(y))
        rows.append((str(name), *_measured(y, n, method, level)))
        right = y * n
        if np.abs(right - right.round()).max() > _WHOLE + 1e-9 * n.max():
            not_whole.append(str(name))
        if float((n * min(y.mean(), 1.0 - y.mean())).mean()) < _FEW_WRONG:
            few.append(str(name))
    names = ["name", "n", "mean", "n_test", "sd", "ci_low", "ci_high", "binomial_sd", "ratio", "ratio_low"]
    names += ["ratio_high", "n_effective", "n_effective_low", "n_effective_high", "p_raw"]
    table = pd.DataFrame(rows, columns=names)
    table["p_value"] = adjust_raw(table["p_raw"].to_numpy(dtype=float), "holm", len(table))
    notes = []
    if not_whole:
        notes.append(
            f"{joined(not_whole)}: score times n_test is not whole, and the binomial law is one of shares of right "
            "answers."
        )
    if few:
        notes.append(f"{joined(few)}: under {_FEW_WRONG:g} rare answers per test set, and the p-value is approximate.")
    return BinomialNoise(table=table, curves=_curves(table), level=level, method=method, notes=tuple(notes))


def _measured(y: Array, n: Array, method: str, level: float) -> tuple[float, ...]:
    mean = float(n @ y / n.sum())
    if not 0.0 < mean < 1.0:
        raise DesignError(f"all answers are {'right' if mean else 'wrong'} (mean {mean:g}), so nothing varies.")
    found = SampleVariance.of([y], level, method)
    sd, low, high = np.sqrt([found.value, found.low, found.high]).tolist()
    size = float(len(n) / (1.0 / n).sum())
    binomial = (mean * (1.0 - mean) / size) ** 0.5
    p = float(special.chdtrc(len(y) - 1, float(n @ (y - mean) ** 2) / (mean * (1.0 - mean))))
    if found.value == 0.0:  # equal scores say nothing of what varies less than their grid
        low = high = float("nan")
    with np.errstate(divide="ignore"):
        effective = (size * np.square(np.divide(binomial, [sd or np.nan, high, low]))).tolist()
    return len(y), mean, size, sd, low, high, binomial, sd / binomial, low / binomial, high / binomial, *effective, p


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    low, high = float(table["n_test"].min()) / _REACH, float(table["n_test"].max()) * _REACH
    sizes = np.geomspace(max(low, 1.0), high, _POINTS)
    parts = [
        pd.DataFrame({"name": name, "n_test": sizes, "binomial_sd": np.sqrt(mean * (1.0 - mean) / sizes)})
        for name, mean in zip(table["name"], table["mean"], strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def _shares(values: Any, name: str) -> Array:
    try:
        y = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        y = np.empty(0)
    if y.ndim != 1 or len(y) < 2:
        raise ArgumentError(f"{name} must be at least two scores in a row, got {values!r:.60}.")
    outside = y[~((y >= 0.0) & (y <= 1.0))]
    if len(outside):
        percent = " Divide percentages by 100." if np.nanmax(y) > 1.0 else ""
        raise DataError(
            f"{name} must be shares of right or wrong answers between 0 and 1, got "
            f"{joined(map('{:g}'.format, outside))} ({counted(len(outside), 'score')}).{percent}"
        )
    return y


def _sizes(values: Any, count: int) -> Array:
    try:
        n = np.asarray(values, dtype=float)
        whole = not isinstance(values, (bool, str)) and n.size > 0 and bool(((n >= 1) & (n == np.round(n))).all())
    except (TypeError, ValueError):
        whole, n = False, np.empty(0)
    if not whole or n.shape not in ((), (count,)) or not np.isfinite(n).all():
        raise ArgumentError(
            f"n_test must be the number of test items, a whole number of at least 1 or one for each of the {count} "
            f"scores, got {values!r:.60}."
        )
    return np.broadcast_to(n, (count,)).astype(float)
