"""Do all algorithms depend on the benchmark to the same degree?

One variance of the interaction, ``(1 | benchmark:algorithm)``, says so, and every standard error of a difference rests
on it: with one algorithm whose advantages scatter five times as much, its own comparisons are judged by a standard
error that is too small and those of all others by one that is too large.

The advantages are the means of the algorithms on each benchmark less the median of the benchmark, then less the median
of the algorithm. Where algorithms are alike their names can be exchanged within each benchmark, whatever the scale of
the benchmark and however heavy the tails. So the spread of their mean absolute advantages (the statistic of Brown and
Forsythe) is ranked among those of such exchanges. Likelihood-ratio tests of the variances reject 20 to 70 % of the
tables of equal algorithms whose advantages are t-distributed with 3 degrees of freedom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.codes import column_codes
from lmemtest.core.rounding import written
from lmemtest.core.validate import resolve_rng
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import format_level, listed
from lmemtest.lmm.diagnostics.draws import NOTE_P
from lmemtest.lmm.diagnostics.scale import SD_NOTE, SD_WARNING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.core.result import Answer
    from lmemtest.lmm.model import LmmFit


# What to do where the spreads differ.
NEXT_STEP = (
    "Judge pairs by variances of their own (vcov='moderated'), or, from 12 benchmarks on, give each algorithm its "
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
    found, severity, advice = "too few levels", "skipped", f"Too few levels of {benchmark} to judge."
    if len(blocks) >= _FEWEST_BENCHMARKS and seen.min() >= _FEWEST_BENCHMARKS:
        sd = spreads(scores)
        p = exchange_p(scores, rng=rng)
        named, ratio, more = _apart(sd)
        found = f"standard deviations differ {_times(ratio, 'fold')}"
        severity, advice = _decide([levels[i] for i in named], ratio, p, benchmark, more=more)
    check = Finding(severity, "advantages", found, advice, subject=f"by {algorithm}", value=ratio, p_value=p)
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
    own = [bar for bar in parsed.bars if algorithm in {name for effect in bar.effects for name in effect.columns}]
    return None if any(benchmark in bar.groups for bar in own) else (algorithm, benchmark)


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
    missing = np.isnan(size)
    places = np.argsort(missing, axis=1, kind="stable")  # columns with runs first
    observed = unequal(size) * (1.0 - _ROUNDING)
    larger, batch = 0, max(1, _AT_ONCE // size.size)
    for start in range(0, exchanges, batch):
        keys = generator.random((min(batch, exchanges - start), *size.shape))
        drawn = np.take_along_axis(
            size[None], np.argsort(np.where(missing, 2.0, keys), axis=-1, kind="stable"), axis=-1
        )
        exchanged = np.empty_like(drawn)
        np.put_along_axis(exchanged, np.broadcast_to(places, drawn.shape), drawn, axis=-1)
        larger += int((unequal(exchanged) >= observed).sum())
    return (1 + larger) / (exchanges + 1)


def unequal(size: Array) -> Array:
    """Spread of the mean absolute advantages between algorithms, ``(...)`` of ``(..., benchmarks, algorithms)``."""
    n = np.isfinite(size).sum(axis=-2)
    mean = np.nansum(size, axis=-2) / n
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
    known = np.isfinite(gaps).sum(axis=0) >= _FEWEST_BENCHMARKS
    pairs = (np.eye(k)[i] + np.eye(k)[j])[known]
    variance = np.linalg.lstsq(pairs, np.nanvar(gaps[:, known], axis=0, ddof=1), rcond=None)[0]
    return np.sqrt(np.maximum(variance, 0.0))


def _apart(sd: Array) -> tuple[NDArray[np.intp], float, bool]:
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
    who, where = listed(named, _MOST_NAMED), f"from {place} to {place}"
    if more:
        start = f"{who} {'varies' if len(named) == 1 else 'vary'} {_times(ratio)} as much {where} as the others"
    else:
        start = f"The others vary {_times(ratio)} as much {where} as {who}"
    errors = "so one standard error for all pairs is too small for some and too large for others."
    return ("warning" if ratio >= SD_WARNING else "note"), f"{start}, {errors} {NEXT_STEP}"
