"""The effect size of two samples: how large their difference is, in words, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.effect_sizes import COHEN, NAMES, THRESHOLDS, check_samples, effect_sizes, magnitude
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.words import counted, format_number, percent
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FEW_FOR_MEDIANS = 10  # values, below which intervals of gamma covered 80 % to 95 % in simulations


@one_blas_thread()
def effect_size(
    a: ArrayLike,
    b: ArrayLike,
    kind: str = "cohen_d",
    *,
    paired: bool = True,
    level: float = 0.95,
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """How large the difference between two samples is, with an interval.

    Parameters
    ----------
    a, b : (n,) and (m,) float
        Scores, finite, at least two each; in pairs by position where `paired`.
    kind : str
        "cohen_d", "hedges_g", "cohen_dz" (paired), "cliff_delta", "akinshin_gamma" or "rank_biserial" (paired).
    paired : bool
        Whether the i-th values belong together (the same benchmark). Intervals depend on it, and of the estimates only
        that of "hedges_g", a little.
    level : float in (0, 1)
        Of the interval.
    n_draws : int
        Resamples, for "akinshin_gamma" only.
    rng : int, numpy.random.Generator or None
        Source of the resamples.

    Returns
    -------
    Answer
        `kind`, `estimate` (positive where `a` is larger; NaN where it has no value, see `notes`), `ci_low` and
        `ci_high` (infinite where the samples do not bound the effect, NaN where it has no value), `magnitude`
        ("negligible", "small", "medium" or "large" by convention: a unit says little about what matters in an
        application), `n_a`, `n_b`; in its table, too. Exchanging `a` and `b` changes the sign of the estimate and of
        both limits, and nothing else.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule: samples of different lengths, or a paired kind without pairs.
    DataError
        If a value is missing or infinite.

    Notes
    -----
    Zero over zero is zero, without an interval; any other difference over no spread has no value.

    - d and g, not paired: the noncentral t distribution, exact for normal values with equal variances (Steiger &
      Fouladi 1997). g is d times gamma(f/2) / (sqrt(f/2) gamma((f-1)/2)) with f = n + m - 2 degrees of freedom; both
      estimate the same, so they share the interval.
    - d_z: the noncentral t distribution, exact for normal differences.
    - d and g of pairs: the interval of d_z times the ratio of the two standard deviations (Algina & Keselman 2003). It
      excludes zero exactly where the paired t-test rejects. The bias of g is corrected with
      f = (n - 1) (s_a^2 + s_b^2)^2 / (s_a^4 + s_b^4 + 2 s_ab^2), between n - 1 and 2 (n - 1) (Cousineau 2020).
    - Cliff's delta: the x for which (delta - x)^2 = t^2 (1 - x^2) / N, with N = (1 - delta^2) / v the number of signs
      that have the variance of delta: the interval of Feng & Cliff (2004). v is that of the two samples (Cliff 1993)
      with Welch's degrees of freedom, or that of pairs (Konietschke & Pauly 2012). Where v = 0, N is that of samples
      from one distribution, 3 n m / (n + m + 1).
    - Rank-biserial correlation: (W+ - W-) / (W+ + W-), zeros dropped (Kerby 2014): a mean of signs with the ranks as
      weights, thus the same interval with the normal quantile and N = (sum of ranks)^2 / (sum of their squares), and a
      correction for continuity. It excludes zero exactly where Wilcoxon's test does (normal, with this correction).
    - Akinshin's gamma: median absolute deviations are scaled by 1.4826 and pooled like variances; percentile bootstrap
      over pairs, or over both samples.

    References
    ----------
    Algina & Keselman (2003), Educ. Psychol. Meas. 63, 537-553, doi:10.1177/0013164403256358;
    Cliff (1993), Psychol. Bull. 114, 494-509, doi:10.1037/0033-2909.114.3.494;
    Hedges (1981), J. Educ. Stat. 6, 107-128, doi:10.3102/10769986006002107;
    Kerby (2014), Compr. Psychol. 3, doi:10.2466/11.IT.3.1;
    Konietschke & Pauly (2012), Electron. J. Stat. 6, 1358-1372, doi:10.1214/12-EJS714

    Examples
    --------
    >>> random_search = [0.31, 0.28, 0.40, 0.35, 0.33, 0.29, 0.37, 0.36]
    >>> hyperband = [0.27, 0.25, 0.36, 0.36, 0.28, 0.24, 0.35, 0.30]
    >>> found = effect_size(random_search, hyperband, "cohen_dz")
    >>> round(found.estimate, 3), round(found.ci_low, 3), round(found.ci_high, 3), found.magnitude
    (1.588, 0.497, 2.636, 'large')
    """
    x, y = check_samples(a, b, ("a", "b"), 1, kind, paired)
    if paired:
        _check_same_index(a, b)
    found = effect_sizes(x[None], y[None], kind, paired=paired, level=level, n_draws=n_draws, rng=rng)
    estimate, low, high = (float(value[0]) for value in found)
    row = {"kind": kind, "estimate": estimate, "ci_low": low, "ci_high": high}
    row |= {"magnitude": magnitude(estimate, kind), "n_a": x.size, "n_b": y.size}
    of = counted(x.size, "pair") if paired else f"{x.size:,} and {y.size:,} values, not paired"
    limits = ", ".join(f"{limit:g}" for limit in THRESHOLDS[kind])
    begin = f"small, medium and large begin at {limits} ({'Cohen' if THRESHOLDS[kind] == COHEN else 'Romano et al.'})"
    return Answer(
        question="effect_size",
        title=f"{NAMES[kind][:1].upper()}{NAMES[kind][1:]} of a against b, {of}",
        tables={"table": pd.DataFrame([row])},
        values={**row, "paired": paired, "level": level},
        facts=(f"{percent(level)} interval {_interval_of(kind, paired)}; {begin}.",),
        findings=_findings(kind, estimate, low, high),
        notes=_notes(kind, estimate, low, high, min(x.size, y.size)),
    )


def _check_same_index(a: Any, b: Any) -> None:
    """Pairs are by position; two pandas columns that name their rows in another way would be paired wrongly."""
    index, other = getattr(a, "index", None), getattr(b, "index", None)
    if index is not None and hasattr(index, "equals") and other is not None and not index.equals(other):
        raise ArgumentError(
            "a and b must have the same index where they are paired, got two indices that differ. Give "
            "b.reindex(a.index), or both as arrays in the order of the pairs."
        )


def _findings(kind: str, estimate: float, low: float, high: float) -> tuple[str, ...]:
    """The size in words, and whether its direction is known."""
    if np.isnan(estimate):
        return (f"{NAMES[kind]} of these samples has no value.",)
    size = f"{NAMES[kind]} {format_number(estimate)}, {magnitude(estimate, kind)} by convention"
    sentence = f"{_in_words(kind, estimate)} ({size})."
    if np.isnan(low):
        return (sentence,)
    limits = f"{format_number(low)} to {format_number(high)}"
    zero = tolerance((low, high))
    if low <= zero and high >= -zero:
        return sentence, f"The interval, {limits}, contains zero: the direction of the effect is not shown."
    return sentence, f"The interval, {limits}, does not contain zero."


def _notes(kind: str, estimate: float, low: float, high: float, n: int) -> tuple[str, ...]:
    """Why there is no value or no limit, and what has one."""
    spread = "median absolute deviation" if kind == "akinshin_gamma" else "standard deviation"
    if np.isnan(estimate):
        if kind == "hedges_g" and n == 2:
            return ("Two pairs do not tell the bias that Hedges' factor corrects; kind='cohen_d' has a value.",)
        return (f"The {spread} is 0, so nothing can be measured in it; kind='cliff_delta' needs no spread.",)
    if np.isnan(low):
        return ("The differences do not vary, so they say nothing about how sure the estimate is.",)
    notes = []
    if np.isinf(low) or np.isinf(high):
        notes.append(
            f"The {spread} is 0 in too many resamples to bound the effect; kind='cliff_delta' has finite limits."
        )
    if kind == "akinshin_gamma" and n < FEW_FOR_MEDIANS:
        notes.append(
            f"Intervals of medians from fewer than {FEW_FOR_MEDIANS} values hold the truth less often than they say; "
            "kind='cliff_delta' is safer."
        )
    return tuple(notes)


def _interval_of(kind: str, paired: bool) -> str:
    if kind == "akinshin_gamma":
        return "of the percentile bootstrap"
    if kind == "cliff_delta":
        return f"of Feng and Cliff with {'the variance of pairs' if paired else 'Welch degrees of freedom'}"
    if kind == "rank_biserial":
        return "by Wilson's formula, in which zero is tested by Wilcoxon's statistic"
    of = " of the paired differences" if paired else ""
    return f"from the noncentral t distribution{of}, for normal scores"


def _in_words(kind: str, estimate: float) -> str:
    """The effect as a sentence about a and b."""
    side = "above" if estimate >= 0.0 else "below"
    size = format_number(abs(estimate))
    if kind in ("cliff_delta", "rank_biserial"):
        share = percent(0.5 * (1.0 + estimate))
        if kind == "cliff_delta":
            return f"A value of a is above a value of b with probability {share}, ties counted half"
        return f"Pairs in which a is above b have {share} of the sum of the ranks of the differences"
    if kind == "cohen_dz":
        return f"On average, a is {size} standard deviations of the paired differences {side} b"
    if kind == "akinshin_gamma":
        return f"The median of a is {size} pooled median absolute deviations {side} that of b"
    return f"The mean of a is {size} pooled standard deviations {side} that of b"
