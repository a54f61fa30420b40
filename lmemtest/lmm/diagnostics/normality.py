"""Are residuals and random effects normal enough, judged against tables drawn from the fit itself; Shapiro and Wilk.

A test of normality rejects at 86,400 rows whatever the data, and it does not know that residuals of a mixed model are
correlated and its random effects shrunk. So two questions are asked, separately: is it more than chance (skewness,
kurtosis and the distance of the quantiles against the same in tables drawn from the fitted model), and is it large
enough to matter for means and their tests.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.caller import advice
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.verdicts import Finding, judged, judged_as
from lmemtest.core.words import format_number
from lmemtest.lmm.diagnostics.draws import NOTE_P, WARNING_P

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.diagnostics.draws import Parts
    from lmemtest.lmm.diagnostics.scores import Rows, Score
    from lmemtest.lmm.model import LmmFit


# Points of a quantile plot: more cannot be seen in a figure.
_POINTS = 201
# Below this number nothing can be said about a shape: with 5 values a skewness beyond chance hardly exists.
FEWEST_OF_SHAPE = 6
# Cochran: the t interval of a mean keeps its level from about n = 25 skewness^2 values on.
COCHRAN = 25.0
SKEW_NOTE, KURTOSIS_NOTE, KURTOSIS_WARNING = 0.5, 1.0, 7.0
# From 20 of the rarer of two values on means of right and wrong answers are nearly normal.
_FEWEST_RARE = 20
# Effects with a smaller share in the variance of every difference do not matter for its test.
REACH = 0.05
# Random effects below this share of the residual's standard deviation are zero but for rounding.
_ZERO = 1e-7


# Skewness, excess kurtosis and quantiles of the values of one table.
Moments = tuple[float, float, "Array"]
FEWEST, MOST = 3, 5000  # values for which the distribution of the statistic is known


def measure(values: Array) -> Moments:
    """Moments, and quantiles over the standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> skewness, kurtosis, _ = measure(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> round(skewness, 4), round(kurtosis, 4)
    (1.1547, -0.6667)
    """
    centred = values - values.mean()
    square = centred * centred
    variance = float(square.mean())
    if not variance > 0:
        return 0.0, 0.0, np.zeros(len(_places(len(values))))
    skewness = float((square * centred).mean()) / variance**1.5
    kurtosis = float((square * square).mean()) / variance**2 - 3.0
    return skewness, kurtosis, np.sort(centred)[_places(len(values))] / np.sqrt(variance)


@lru_cache(maxsize=256)
def _places(n: int) -> Index:
    """Order statistics that are looked at: all, or some at equal distances on the normal scale."""
    if n <= _POINTS:
        return np.arange(n)
    end = special.ndtri(0.5 / n)
    return np.unique(np.floor(n * special.ndtr(np.linspace(end, -end, _POINTS))).astype(np.intp).clip(0, n - 1))


def measure_parts(parts: Parts) -> list[Moments]:
    """Shapes of the residuals and of every random effect of one table."""
    columns = [u[:, c] for u in parts.modes for c in range(u.shape[1])]
    return [measure(parts.z), *map(measure, columns)]


def judge(
    fit: LmmFit, rows: Rows, observed: Parts, draws: list[list[Moments]], shares: tuple[Array, ...], score: Score
) -> tuple[Answer, ...]:
    """Compare the shapes of the residuals (first) and of the random effects with those of the simulated tables."""
    names, samples = ["residuals"], [observed.z]
    zero, matters = [False], [True]
    for term, effects, share in zip(fit.design.random, observed.modes, shares, strict=True):
        for c, name in enumerate(term.names):
            size = float(np.sqrt(np.mean(term.basis[:, c] ** 2)) * effects[:, c].std())
            names.append(f"effects of {term.group}" if name == "Intercept" else f"{name} by {term.group}")
            samples.append(effects[:, c])
            zero.append(size <= _ZERO * np.sqrt(fit.scale))
            matters.append(bool(share[c] >= REACH))
    return tuple(
        _shape(name, sample, simulated, rows if i == 0 else None, score, zero=zero[i], matters=matters[i])
        for i, (name, sample, *simulated) in enumerate(zip(names, samples, *draws, strict=True))
    )


def settle(shapes: tuple[Answer, ...], uneven: bool) -> tuple[Answer, ...]:
    """Heavy tails where algorithms vary to different degrees: the cause first, and no word that tests stand."""
    cause = "Heavy-tailed, which may follow from advantages that vary to different degrees: settle those first."
    return tuple(
        judged_as(s, replace(s.check, severity="note", advice=cause))
        if uneven and s.severity in ("note", "warning") and s.excess_kurtosis > 0
        else s
        for s in shapes
    )


def normality(shapes: tuple[Answer, ...], n_draws: int, hidden: int) -> Answer:
    """All shapes in one table: one row per subject with `n`, the moments, `beyond_three`, `p_value` and `severity`.

    Of each subject, `shapes` has the points of the quantile plot and what the numbers are; `hidden` rows are only seen
    through the mean of their cell.
    """
    columns = ["subject", "n", "skewness", "excess_kurtosis", "beyond_three", "p_value", "severity"]
    return Answer(
        question="normality",
        title="Normality of residuals and random effects",
        tables={"table": pd.DataFrame([[getattr(s, c) for c in columns] for s in shapes], columns=columns)},
        values={"shapes": shapes, "n_draws": n_draws, "hidden": hidden},
        facts=(f"p-values are against {n_draws:,} tables drawn from the fitted model.",),
        findings=tuple(f"{shape.subject}: {shape.advice}" for shape in shapes),
    )


def _shape(
    name: str, sample: Array, draws: list[Moments], rows: Rows | None, score: Score, *, zero: bool, matters: bool
) -> Answer:
    """How the distribution of some values differs from what the model assumes.

    Returns
    -------
    Answer
        ``table``, the points of the quantile plot: ``theoretical`` (normal quantiles), ``sample`` (those of the values
        over their standard deviation), ``low`` and ``high`` (the band that holds all the quantiles of 95 % of the
        simulated tables). ``subject``: "residuals", or the column of a random-effects term; ``n`` values (rows or
        cells, or levels); ``skewness`` and ``excess_kurtosis`` (0 for a normal distribution); ``beyond_three``, the
        share of values more than three standard deviations away (0.0027 for a normal distribution); ``check`` with
        ``p_value``, the share of the simulated tables in which skewness, kurtosis or quantiles are as unusual (NaN if
        not judged), ``severity`` and ``advice``.
    """
    moments, n, nan = measure(sample), len(sample), float("nan")
    skewness, kurtosis, quantiles = moments
    low, high, outside = _band(np.array([of_draw for _, _, of_draw in draws]), quantiles)
    spread = float(sample.std())
    p, finding = nan, "not judged"
    if zero:
        severity, advice = "skipped", "The variance is estimated as zero, so there is nothing to judge."
        skewness, kurtosis = nan, nan
    elif n < FEWEST_OF_SHAPE:
        severity, advice = "skipped", f"{n} values are too few to judge a shape; the tests rely on normality here."
    else:
        p = _p_value(moments, draws, outside)
        finding = f"skewness {format_number(skewness, 2)}, excess kurtosis {format_number(kurtosis, 2)}"
        if score.two_valued and rows is not None:
            severity, advice = _of_two_values(score)
        else:
            severity, advice = _decide(n, skewness, kurtosis, p, rows, score, matters=matters)
    check = Finding(severity, "normality", finding, advice, subject=name, value=skewness, p_value=p)
    theoretical = special.ndtri((_places(n) + 0.625) / (n + 0.25))  # Blom's plotting positions
    values = {
        "subject": name,
        "n": n,
        "skewness": skewness,
        "excess_kurtosis": kurtosis,
        "beyond_three": float((np.abs(sample - sample.mean()) > 3.0 * spread).mean()) if spread > 0 else 0.0,
    }
    points = pd.DataFrame({"theoretical": theoretical, "sample": quantiles, "low": low, "high": high})
    return judged(check, f"Quantiles of {name}", points, values)


def _band(draws: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Ends of a band around all quantiles, and how far each table (the observed one first) leaves its middle.

    The band grows from the mean in proportion to the pointwise 95 % range, on either side by its own, until it holds
    95 % of the simulated curves (directional quantile envelope of Myllymäki et al. 2017).
    """
    centre = draws.mean(axis=0)
    below, above = centre - np.quantile(draws, 0.025, axis=0), np.quantile(draws, 0.975, axis=0) - centre
    tiny = 1e-12
    every = np.vstack([observed, draws]) - centre
    outside = np.maximum(every / np.maximum(above, tiny), -every / np.maximum(below, tiny)).max(axis=1)
    factor = np.quantile(outside[1:], 0.95)
    return centre - factor * below, centre + factor * above, outside


def _p_value(observed: Moments, draws: list[Moments], outside: Array) -> float:
    """One p-value for skewness, kurtosis and quantiles together.

    Each number counts in units of its 95 % range over all tables, and the largest of them is ranked.
    """
    every = [observed, *draws]
    skewness, kurtosis = (np.array([moments[i] for moments in every]) for i in (0, 1))
    kurtosis -= np.median(kurtosis)
    numbers = [(np.abs(skewness), 0.95), (kurtosis, 0.975), (-kurtosis, 0.975), (outside, 0.95)]
    largest = np.max([x / max(float(np.quantile(x, share)), 1e-300) for x, share in numbers], axis=0)
    return float((largest >= largest[0]).mean())


def _of_two_values(score: Score) -> tuple[str, str]:
    """Residuals of scores that are right or wrong: never normal, and their means nearly so if both are often seen."""
    text = f"{score.kind.evidence} Residuals of such scores are never normal;"
    if score.rarer >= _FEWEST_RARE:
        return "fine", f"{text} means of many of them are, and tests rest on these."
    return "note", (
        f"{text} with the rarer value in {written(score.rarer, '.0f')} rows tests of means are approximate: "
        f"confirm them with "
        f"{advice('sign_flip_test')}."
    )


def _decide(
    n: int, skewness: float, kurtosis: float, p: float, rows: Rows | None, score: Score, *, matters: bool
) -> tuple[str, str]:
    skewed, heavy = abs(skewness) >= SKEW_NOTE, kurtosis >= KURTOSIS_NOTE
    hidden = ""
    if rows is not None and not rows.single:
        hidden = f" {rows.hidden:,} rows were only seen through the means of their cells, which hides single outliers."
    noun = "values" if rows is not None else "levels"
    if p > NOTE_P:
        return "fine", f"As normal as the model assumes, for {n:,} {noun}.{hidden}"
    if not skewed and not heavy:
        return "fine", f"Not exactly normal, but too little to change a conclusion about means.{hidden}"
    kind = " and ".join(["skewed"] * skewed + ["heavy-tailed (a few values weigh much)"] * heavy)
    if not matters:
        return "note", (
            f"{kind.capitalize()}, but these effects cancel in the differences that the model estimates; the overall "
            "mean and predictions for new levels do depend on them."
        )
    severe = (skewed and n < COCHRAN * skewness**2) or kurtosis >= KURTOSIS_WARNING
    if severe and p <= WARNING_P:
        return "warning", f"{kind.capitalize()}: {_remedy(rows, score)}{hidden}"
    return "note", (
        f"{kind.capitalize()}: means and their tests over {n:,} {noun} stand, predictions of single "
        f"{'scores' if rows is not None else 'levels'} do not.{hidden}"
    )


def _remedy(rows: Rows | None, score: Score) -> str:
    confirm = f"confirm with {advice('sign_flip_test')}"
    if score.two_valued:
        return f"a few levels decide the result. See influence, and {confirm}."
    transform = f"transform the score ({'log, or ' if score.by_log else ''}{advice('normalize', method='rank')})"
    if rows is None:
        return f"a few levels decide the result. See influence, {transform}, and {confirm}."
    return f"{transform} or model the scales ({advice('argument', name='dispersion')}), and {confirm}."


# ---------------------------------------------------------------------------------------- the test of Shapiro and Wilk


def shapiro_wilk(x: Array, smallest: float = 0.0, most: int = MOST) -> tuple[float, float]:
    """Statistic and p-value; NaN for fewer than 3 or more than `most` values, or if the range is not above `smallest`.

    Examples
    --------
    >>> [round(value, 3) for value in shapiro_wilk(np.array([1.0, 2.0, 2.5, 3.0, 9.0]))]
    [0.772, 0.047]
    >>> shapiro_wilk(np.ones(5))
    (nan, nan)
    """
    from scipy import stats

    if not FEWEST <= len(x) <= most or np.ptp(x) <= smallest:
        return float("nan"), float("nan")
    test = stats.shapiro(x)
    return float(test.statistic), float(test.pvalue)
