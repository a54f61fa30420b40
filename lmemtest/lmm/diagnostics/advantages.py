"""The advantages of the algorithms over the benchmarks: do all vary to the same degree, and are they about normal?

*To the same degree.* One variance of the interaction, ``(1 | benchmark:algorithm)``, says so, and every standard error
of a difference rests on it: with one algorithm whose advantages scatter five times as much, its own comparisons are
judged by a standard error that is too small and those of all others by one that is too large.

The advantages are the means of the algorithms on each benchmark less the median of the benchmark, then less the median
of the algorithm. Where algorithms are alike their names can be exchanged within each benchmark, whatever the scale of
the benchmark and however heavy the tails. So the spread of their mean absolute advantages (the statistic of Brown and
Forsythe) is ranked among those of such exchanges. Likelihood-ratio tests of the variances reject 20 to 70 % of the
tables of equal algorithms whose advantages are t-distributed with 3 degrees of freedom.

*About normal.* There are two ways in which means go wrong otherwise. Few benchmarks decide: where scores have unlike
units, or an algorithm rarely breaks down, one benchmark holds most of the sum of squared advantages. Its share of it is
Cochran's statistic of an outlying variance: with ``n`` normal vectors of the same covariance S it is Beta(f/2, (n - 1)
f/2), Bonferroni over the benchmarks, with ``f = tr(S)^2 / tr(S^2)`` (Box 1954), so an erratic algorithm alone does not
count as one outlying benchmark.

Skewed advantages: an algorithm that gains a little on most benchmarks and loses much on few is found better too often,
by samples without such a loss. The skewness of each algorithm's advantages is compared with that of normal samples
(D'Agostino 1970), Bonferroni over the algorithms. A sample without an outlying benchmark shows neither: that is an
assumption, and no test can replace it.

References
----------
Cochran (1941), doi:10.1111/j.1469-1809.1941.tb02271.x; Box (1954), doi:10.1214/aoms/1177728717; D'Agostino (1970),
doi:10.1093/biomet/57.3.679
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.codes import column_codes
from lmemtest.core.resampling import batches, exchanged_within, p_of_draws
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import resolve_rng
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import format_level, joined
from lmemtest.lmm.diagnostics.draws import NOTE_P
from lmemtest.lmm.diagnostics.scale import SD_NOTE, SD_WARNING

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.core.result import Answer
    from lmemtest.lmm.model import LmmFit


# What to do where the spreads differ.
NEXT_STEP = (
    "Judge pairs by their own variances (vcov='moderated'), or, from 12 benchmarks on, give each algorithm its "
    "variance in the formula (diag)."
)
# Exchanges of the algorithms: p-values of 0.001, in a tenth of a second.
_EXCHANGES = 999
_AT_ONCE = 2_000_000  # numbers of one batch of exchanges
# Two algorithms have one difference per benchmark, which belongs to both.
_FEWEST_ALGORITHMS, _FEWEST_BENCHMARKS = 3, 4
_MOST_NAMED = 3
_LARGEST = 10.0  # ratios above it are shown as that
_ROUNDING = 1e-9
_FEW_P = _SKEW_P = 0.01  # the headline speaks of it, of one in a hundred tables that do not deserve it
FEWEST_SKEWED = 8  # below it the normal approximation of the skewness is poor


# -------------------------------------------------------------------------------------------------------- their spread


def advantages(fit: LmmFit, *, rng: int | np.random.Generator | None = None) -> Answer | None:
    """Compare the spread of the advantages of the algorithms between benchmarks.

    Parameters
    ----------
    fit : LmmFit
        Of `Runs`, or of a table by a formula with ``(1 | benchmark:algorithm)`` beside ``algorithm``.
    rng : int, numpy.random.Generator or None
        Source of the exchanges.

    Returns
    -------
    Answer or None
        ``table``, one row per algorithm: ``level``, ``benchmarks`` (with runs of it), ``sd``: between benchmarks, of
        the mean of the algorithm beyond what all share, from the variances of the differences of pairs (chance between
        runs included, 0 where these contradict a positive variance). ``algorithm`` (the column), ``ratio`` (standard
        deviation of the named algorithms over that of the others, or the inverse where it is below one), ``check``
        with ``p_value``, the share of the exchanges of algorithms within benchmarks with spreads as unequal (NaN where
        there are too few benchmarks), ``severity`` and ``advice``. None where the model gives every algorithm variances
        of its own, or has no algorithms and benchmarks.
    """
    roles = _roles(fit)
    if roles is None:
        return None
    algorithm, benchmark = roles
    (a, names), (b, blocks) = (column_codes(fit.cells.frame[name]) for name in roles)
    k = len(names)
    if k < _FEWEST_ALGORITHMS:
        return None
    # means of each algorithm on each benchmark beyond the fixed effects
    flat, weight = b.astype(np.intp) * k + a, fit.cells.n * fit.cells.weight
    rows = np.bincount(flat, weight, len(blocks) * k)
    rest = np.bincount(flat, weight * (fit.cells.mean - fit.cell_predictions(random=False)), len(rows))
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = (rest / rows).reshape(-1, k)
    levels, seen = [format_level(name) for name in names], np.isfinite(scores).sum(axis=0)
    sd, ratio, p = np.full(k, np.nan), float("nan"), float("nan")
    finding, severity, advice = "too few levels", "skipped", f"Too few levels of {benchmark} to judge."
    if len(blocks) >= _FEWEST_BENCHMARKS and seen.min() >= _FEWEST_BENCHMARKS:
        sd = spreads(scores)
        p = exchange_p(scores, rng=rng)
        named, ratio, more = _apart(sd)
        finding = f"standard deviations differ {_times(ratio, 'fold')}"
        severity, advice = _decide([levels[i] for i in named], ratio, p, benchmark, more=more)
    check = Finding(severity, "advantages", finding, advice, subject=f"by {algorithm}", value=ratio, p_value=p)
    table = pd.DataFrame({"level": levels, "benchmarks": seen, "sd": sd})
    return judged(check, f"Spread of the advantages by {algorithm}", table, {"algorithm": algorithm, "ratio": ratio})


def _roles(fit: LmmFit) -> tuple[str, str] | None:
    """Columns of the algorithms and of the benchmarks, where one variance is all that their interaction has."""
    parsed, frame = fit.design.parsed, fit.cells.frame
    if fit.scope is not None:
        algorithm, benchmark = fit.scope.compared, fit.scope.cluster
        if benchmark is None or algorithm not in fit.design.factors or benchmark not in frame:
            return None
    else:
        pairs = [(f, bar.groups) for f in fit.design.factors for bar in parsed.bars if f in bar.groups]
        single = [(f, next(g for g in groups if g != f)) for f, groups in pairs if len(groups) == 2]
        if not single:
            return None
        algorithm, benchmark = single[0]
    of_algorithm = [
        bar for bar in parsed.bars if algorithm in {name for effect in bar.effects for name in effect.columns}
    ]
    return None if any(benchmark in bar.groups for bar in of_algorithm) else (algorithm, benchmark)


def aligned(scores: Array) -> Array:
    """Scores less the median of their benchmark, then less the median of their algorithm.

    ``scores`` are ``(..., benchmarks, algorithms)``, NaN where an algorithm has no runs on a benchmark.

    Examples
    --------
    >>> import numpy as np
    >>> aligned(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [0.0, 1.0, 2.0]]))
    array([[0., 0., 0.],
           [0., 0., 3.],
           [0., 0., 0.]])
    """
    rest = scores - np.nanmedian(scores, axis=-1, keepdims=True)
    return np.asarray(rest - np.nanmedian(rest, axis=-2, keepdims=True))


def exchange_p(scores: Array, *, rng: int | np.random.Generator | None = None, exchanges: int = _EXCHANGES) -> float:
    """Share of the exchanges of algorithms within benchmarks, and of the table itself, with spreads as unequal.

    ``scores`` are ``(benchmarks, algorithms)``, NaN where an algorithm has no runs on a benchmark.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(size=(12, 6)) * np.array([1, 1, 1, 1, 1, 5])
    >>> exchange_p(table, rng=1) < 0.01
    True
    """
    generator = resolve_rng(rng)
    size = np.abs(aligned(scores))
    observed = unequal(size) * (1.0 - _ROUNDING)
    larger = sum(
        int((unequal(exchanged_within(size, batch, generator)) >= observed).sum())
        for batch in batches(exchanges, size.size, _AT_ONCE)
    )
    return p_of_draws(larger, exchanges)


def unequal(size: Array) -> Array:
    """Spread of the mean absolute advantages between algorithms, ``(...)`` of ``(..., benchmarks, algorithms)``."""
    known = np.isfinite(size)
    n = np.full_like(size[..., 0, :], size.shape[-2]) if known.all() else known.sum(axis=-2)
    mean = (size.sum(axis=-2) if known.all() else np.nansum(size, axis=-2)) / n
    centre = (n * mean).sum(axis=-1, keepdims=True) / n.sum(axis=-1, keepdims=True)
    return np.asarray((n * (mean - centre) ** 2).sum(axis=-1))


def spreads(scores: Array) -> Array:
    """Standard deviation of each algorithm beyond what all share on a benchmark, ``(algorithms,)``.

    Least squares on ``var(y_i - y_j) = v_i + v_j`` over the benchmarks that two algorithms share.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(size=(2000, 3)) * np.array([1, 1, 4]) + np.arange(2000)[:, None]
    >>> spreads(table).round()
    array([1., 1., 4.])
    """
    k = scores.shape[1]
    i, j = np.tril_indices(k, -1)
    gaps = scores[:, i] - scores[:, j]
    enough = np.isfinite(gaps).sum(axis=0) >= _FEWEST_BENCHMARKS
    pairs = (np.eye(k)[i] + np.eye(k)[j])[enough]
    variance = np.linalg.lstsq(pairs, np.nanvar(gaps[:, enough], axis=0, ddof=1), rcond=None)[0]
    return np.sqrt(np.maximum(variance, 0.0))


def _apart(sd: Array) -> tuple[Index, float, bool]:
    """Algorithms that stand out, the larger over the smaller of their spread and the others', and whether it is theirs.

    Those that are apart from the median by the factor that counts; the largest where none is.
    """
    middle = float(np.median(sd))
    high, low = sd >= SD_NOTE * middle, sd * SD_NOTE <= middle
    named = next((group for group in (high, low) if group.any() and not group.all()), sd == sd.max())
    if named.all():
        return np.flatnonzero(named), 1.0, True
    theirs, others = (float(np.sqrt((sd[group] ** 2).mean())) for group in (named, ~named))
    larger, smaller = max(theirs, others), min(theirs, others)
    ratio = min(larger / smaller, _LARGEST) if smaller > 0 else _LARGEST
    return np.flatnonzero(named), ratio, theirs >= others


def _times(ratio: float, unit: str = "times") -> str:
    joined = "-" if unit == "fold" else " "
    return f"more than {_LARGEST:g}{joined}{unit}" if ratio >= _LARGEST else f"{written(ratio, '.2g')}{joined}{unit}"


def _decide(named: list[str], ratio: float, p: float, place: str, *, more: bool) -> tuple[str, str]:
    if p > NOTE_P:
        return "fine", "No difference between the algorithms beyond chance."
    if ratio < SD_NOTE:
        return (
            "fine",
            "Algorithms differ detectably in how much they depend on the benchmark, but too little to matter.",
        )
    who, where = joined(named, most=_MOST_NAMED), f"from {place} to {place}"
    if more:
        start = f"{who} {'varies' if len(named) == 1 else 'vary'} {_times(ratio)} as much {where} as the others"
    else:
        start = f"The other algorithms vary {_times(ratio)} as much {where} as {who}"
    errors = "so one standard error for all pairs is too small for some and too large for others."
    return ("warning" if ratio >= SD_WARNING else "note"), f"{start}, {errors} {NEXT_STEP}"


# --------------------------------------------------------------------------------------------------------- their shape


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageShape:
    """How far the advantages are from normal.

    ``top`` of the ``n`` clusters (a tenth, at least one), with the largest deviations, hold ``share`` of the sum of
    squared advantages; ``concentration_p`` is that of the largest one. ``skewed`` is the algorithm with the most skewed
    advantages (None below eight clusters), with its ``skewness`` and ``skewness_p``, adjusted for all algorithms.
    """

    n: int
    top: int
    share: float
    concentration_p: float
    skewed: str | None
    skewness: float
    skewness_p: float

    @property
    def few_decide(self) -> bool:
        """Whether one cluster holds more of the squares than normal advantages would leave to it."""
        return bool(below(self.concentration_p, _FEW_P))

    @property
    def is_skewed(self) -> bool:
        """Whether the advantages of some algorithm are more skewed than normal ones."""
        return bool(below(self.skewness_p, _SKEW_P))


def advantage_shape(scores: Array, labels: Sequence[str]) -> AdvantageShape | None:
    """The shape of advantages ``(n clusters, k algorithms)``; None if they do not vary or there are fewer than three.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(1).normal(size=(20, 3))
    >>> advantage_shape(scores, "ABC").few_decide
    False
    >>> scores[0] = [30.0, -10.0, -20.0]
    >>> found = advantage_shape(scores, "ABC")
    >>> found.few_decide, found.top, round(found.share, 2), found.is_skewed
    (True, 2, 0.93, True)
    """
    centred = scores - scores.mean(axis=0)
    n, squares = len(scores), np.square(centred).sum(axis=1)
    total = float(squares.sum())
    if n < 3 or not total > 0.0:
        return None
    gram = centred.T @ centred
    f = float(np.trace(gram)) ** 2 / float(np.square(gram).sum())
    largest, top = float(squares.max()) / total, max(1, round(n / 10))
    p = n * float(special.betainc((n - 1) * f / 2.0, f / 2.0, max(0.0, 1.0 - largest)))
    skewed, skewness, skewness_p = _most_skewed(centred, labels)
    return AdvantageShape(
        n=n,
        top=top,
        share=float(np.sort(squares)[-top:].sum()) / total,
        concentration_p=min(1.0, p),
        skewed=skewed,
        skewness=skewness,
        skewness_p=skewness_p,
    )


def skewness_score(values: Array) -> tuple[Array, Array]:
    """Skewness of columns that vary, and its score, which is standard normal if they are (from eight rows on)."""
    n, centred = len(values), values - values.mean(axis=0)
    skewness = np.mean((centred / np.sqrt(np.mean(centred**2, axis=0))) ** 3, axis=0)
    y = skewness * np.sqrt((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0)))
    kurtosis = 3.0 * (n**2 + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0) / ((n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0))
    square = np.sqrt(2.0 * (kurtosis - 1.0)) - 1.0
    return skewness, np.arcsinh(y / np.sqrt(2.0 / (square - 1.0))) / np.sqrt(0.5 * np.log(square))


def _most_skewed(centred: Array, labels: Sequence[str]) -> tuple[str | None, float, float]:
    """The label with the most skewed column, its skewness and adjusted p-value by D'Agostino's transformation."""
    n, k = centred.shape
    spread = np.sqrt(np.mean(centred**2, axis=0))
    varying = np.flatnonzero(spread > 1e-9 * spread.max())
    if n < FEWEST_SKEWED or not len(varying):
        return None, float("nan"), float("nan")
    skewness, z = skewness_score(centred[:, varying])
    at = int(np.argmax(np.round(np.abs(z), 9)))  # two algorithms mirror each other: the first, on every machine
    tests = 1 if k == 2 else len(varying)
    p = min(1.0, 2.0 * tests * float(special.ndtr(-abs(z[at]))))
    return str(labels[varying[at]]), float(skewness[at]), p
