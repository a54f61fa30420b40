"""How many scores a tuning curve needs, and how far it reaches with those at hand."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning.band import BAND_NAMES
from lmemtest.tuning.checks import check_k, name_of
from lmemtest.tuning.curve import Settings, check_rank_settings, trivial_beyond
from lmemtest.tuning.order_statistics import check_size

MOST_SCORES = 10_000  # calibrating for more takes minutes


@one_blas_thread()
def plan(
    *,
    n_scores: ArrayLike | None = None,
    k: ArrayLike | None = None,
    statistic: str | float = "median",
    direction: str | None = None,
    level: float = 0.8,
    band: str = "ld_highest_density",
    from_k: float | None = None,
) -> Answer:
    """Plan the size of a random search: scores for a curve up to k, or the reach of so many scores.

    Parameters
    ----------
    n_scores : int >= 1 or array-like of such, optional
        Numbers of scores, at most 100,000 (ten million for "dkw"); the answer is up to which k their curve has two
        limits.
    k : float > 0 or array-like of such, optional
        Numbers of configurations; the answer is the smallest number of scores for which the curve has two limits at k.
        Give either `n_scores` or `k`.
    statistic : "median" or float in (0, 1), default "median"
        The quantile of the curve, see `lmemtest.tuning.curve`. A mean has limits for every k with bounds, for none
        without.
    direction : {"maximize", "minimize"}, optional
        Which end of the score is better. Needed for a quantile other than the median: a 0.9-quantile to minimise
        reaches as far as a 0.1-quantile to maximise.
    level : float in (0, 1), default 0.8
        Of the band.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the band.
    from_k : float > 0, optional
        Plan for a band that is calibrated for k >= from_k.

    Returns
    -------
    Answer
        With one number for each question, in its table, too: `n_scores` (as given, or the smallest that reach k), `k`
        (as given, or the largest whole number of configurations that n_scores reach), `k_max` (beyond which the
        optimistic limit of the band is trivial with so many scores) and `critical_value` (what the band is calibrated
        to, see `lmemtest.tuning.band`). `given` says which was asked for; `curve` names the curve and its band;
        direction, statistic, level, band and from_k are those of the curve.

    Raises
    ------
    ArgumentError
        If not exactly one of `n_scores` and `k` is given, one is out of its range, or k needs more than 10,000 scores.

    Notes
    -----
    The optimistic limit at k exists if q^(1/k) is at most the band's lower end at the largest score, l_n. So
    k_max = ln q / ln l_n, which for highest-density intervals is n ln(1/q) / ln(1/alpha'). This is to maximise; to
    minimise, 1 - q takes the place of q. The numbers are exact, and
    do not depend on the distribution of the scores. A limit that exists is not yet a narrow one.

    References
    ----------
    Lourie, Cho & He (2024), section 5.5, NAACL, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> plan(k=[2, 8]).to_frame().round(3)
       n_scores    k  k_max  critical_value
    0        10  2.0  2.087           0.036
    1        47  8.0  8.002           0.017
    >>> plan(n_scores=48, from_k=1).k_max.round(2)
    array([9.65])
    """
    if (n_scores is None) == (k is None):
        raise ArgumentError(
            "give either n_scores (how many scores there are) or k (how many configurations the curve must reach)."
        )
    no_mean = (
        "statistic='mean' has no such k: with bounds its limits are never trivial, without bounds always. "
        "Use 'median' or a quantile."
    )
    settings = check_rank_settings(direction, statistic, level, band, from_k, no_mean=no_mean)
    if n_scores is not None:
        counts = np.array(n_scores, ndmin=1, dtype=object)
        if counts.ndim != 1 or not len(counts):
            raise ArgumentError(f"n_scores must be a whole number of at least 1 or a list of such, got {n_scores!r}.")
        sizes = np.array([check_size(size, settings.band) for size in counts], dtype=np.intp)
    else:
        wanted = check_k(k)
        sizes = np.array([_smallest(settings, target) for target in wanted.tolist()], dtype=np.intp)
    reach = np.array([_reach(settings, size) for size in sizes.tolist()])
    columns = {
        "n_scores": sizes,
        "k": wanted if n_scores is None else np.floor(reach),
        "k_max": reach,
        "critical_value": np.array([settings.band_for(size).critical_value for size in sizes.tolist()]),
    }
    start = "" if settings.from_k is None else f", for k >= {settings.from_k:g}"
    way = "" if settings.statistic in ("median", 0.5) else f" to {settings.direction}"
    curve = f"{percent(settings.level)} {BAND_NAMES[settings.band]}, {name_of(settings.statistic)}{way}{start}"
    answer = (
        "n_scores is the smallest number with which the band says how good the best of k may be."
        if n_scores is None
        else "k is the largest whole number of configurations up to which the band says how good tuning may get."
    )
    return Answer(
        question="tuning.plan",
        title="Scores for a tuning curve",
        tables={"plan": pd.DataFrame(columns)},
        values={**asdict(settings), **columns, "given": "k" if n_scores is None else "n_scores", "curve": curve},
        facts=(f"{curve}.", answer, "Beyond k_max the optimistic limit is the end of the support."),
        formats={"k": "g"},
        figure="tuning_plan_plot",
    )


def _reach(settings: Settings, n: int) -> float:
    return trivial_beyond(settings.band_for(n), settings.quantile)


def _smallest(settings: Settings, k: float) -> int:
    """The smallest n that reaches k."""
    from_k = settings.from_k
    if from_k is not None and k < from_k:
        raise ArgumentError(f"k must be at least from_k = {from_k:g}, got {k:g}.")
    low, high = _bracket(settings, k)
    while high - low > 1:  # the reach is close to a straight line in n
        at_low, at_high = _reach(settings, low) if low else 0.0, _reach(settings, high)
        share = (k - at_low) / (at_high - at_low)
        middle = min(max(int(np.ceil(low + (high - low) * share)), low + 1), high - 1)
        low, high = (low, middle) if _reach(settings, middle) >= k else (middle, high)
    if from_k is None or k > 8.0 * from_k:
        return high
    # Near `from_k` few lower limits are left; when one more comes in, about every 2 / (1 - p) scores, the others get
    # looser and the reach, no increasing function of n, falls back by less than one such period.
    period = 2.0 / (1.0 - settings.quantile ** (1.0 / from_k))
    window = range(max(1, high - 2 * int(np.ceil(period))), high)
    return next((fewer for fewer in window if _reach(settings, fewer) >= k), high)


def _bracket(settings: Settings, k: float) -> tuple[int, int]:
    """An n that does not reach k (or 0), and a larger one that does.

    The largest order statistic alone keeps to its limit with probability 1 - l_n^n, at least the level, so
    no band with fewer than k ln(1 - level) / ln q scores reaches k.
    """
    least = k * np.log1p(-settings.level) / np.log(settings.quantile)
    high = max(int(np.ceil(min(least, MOST_SCORES))), 1)
    low = high - 1
    while (reach := _reach(settings, high)) < k:
        if high == MOST_SCORES:
            raise ArgumentError(
                f"k = {k:g} needs more than {MOST_SCORES:,} scores, which reach {written(reach, '.4g')} with this "
                "band, quantile and level. Plan for a smaller k or a lower level."
            )
        further = 1.02 * high * k / reach if reach > 0.0 else 2.0 * high
        low, high = high, int(min(max(further, high + 1), 2.0 * high, MOST_SCORES))
    return low, high
