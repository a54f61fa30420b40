"""How far the scales of benchmarks differ, and which normalisation brings them together on the table at hand."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.points import dtype_of, pooled
from lmemtest.bench.data.score_kind import looks_like
from lmemtest.core.caller import advice
from lmemtest.core.rounding import written
from lmemtest.core.words import format_number
from lmemtest.errors import DataWarning, LmemtestError

if TYPE_CHECKING:
    from lmemtest.bench.data.score_kind import ScoreKind
    from lmemtest.bench.data.study import Study
    from lmemtest.core.arrays import Array

__all__ = [
    "SCALE_RATIO",
    "fold",
    "on_one_scale",
    "remedies",
    "remedy_text",
    "scale_ratio",
    "spreads",
]

SCALE_RATIO = 3.0  # beyond it one benchmark has more than 9 times the weight of another in a pooled variance
_HELPS = 0.5  # of the ratio before, unless what is left is no difference in scale
_SHOWN = 3
_MEANING = {
    "minmax": "differences as shares of the range that was seen on each benchmark",
    "log": "ratios instead of differences",
    "rank": "who is ahead, not by how much",
}


def effect_scales(study: Study) -> pd.DataFrame:
    """The spread between algorithms by benchmark: ``benchmark``, ``sd``, ``df``."""
    return _by_benchmark(study, "sd", *_between_algorithms(study))


def residual_scales(study: Study) -> pd.DataFrame:
    """The spread of scores that the seeds cause by benchmark: ``benchmark``, ``residual_sd``, ``df``."""
    return _by_benchmark(study, "residual_sd", *_between_seeds(study))


def _by_benchmark(study: Study, name: str, sd: Array, df: Array) -> pd.DataFrame:
    levels = pd.Series(study.names("benchmark"), dtype=dtype_of(study.names("benchmark")))
    return pd.DataFrame({"benchmark": levels, name: sd, "df": df.astype(int)})


def _between_algorithms(study: Study) -> tuple[Array, Array]:
    """Standard deviation by benchmark of algorithms' means on an instance and, on a grid, at a budget, and its df."""
    per_instance = len(study.names("budget")) if study.regular else 1
    place = study.code("instance") * per_instance + (study.code("budget") if study.regular else 0)
    good = study.points.valid > 0
    pair = place[good] * len(study.names("algorithm")) + study.code("algorithm")[good]
    codes, pairs = pd.factorize(pair)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(codes, weights=study.points.mean[good]) / np.bincount(codes)
    spots, where = pd.factorize(pairs // len(study.names("algorithm")))
    n = np.bincount(spots)
    centre = np.bincount(spots, weights=mean) / n
    ss = np.bincount(spots, weights=(mean - centre[spots]) ** 2)
    benchmark = study.benchmark_of[where // per_instance]
    return _pooled_sd(study, benchmark, n - 1, ss)


def _between_seeds(study: Study) -> tuple[Array, Array]:
    """Standard deviation by benchmark within algorithm, instance and, on a grid, budget, and its df."""
    group = study.code("instance") * len(study.names("algorithm")) + study.code("algorithm")
    benchmark_of_group = np.repeat(study.benchmark_of, len(study.names("algorithm")))
    if study.regular:
        group = group * len(study.names("budget")) + study.code("budget")
        benchmark_of_group = np.repeat(benchmark_of_group, len(study.names("budget")))
    total, _, ss = pooled(study, group, len(benchmark_of_group))
    return _pooled_sd(study, benchmark_of_group, np.maximum(total - 1, 0), ss)


def _pooled_sd(study: Study, benchmark: np.ndarray, df: np.ndarray, ss: np.ndarray) -> tuple[Array, Array]:
    """Pooled by benchmark, from the degrees of freedom and sums of squares of groups of scores."""
    size = len(study.names("benchmark"))
    total = np.bincount(benchmark, weights=df, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.bincount(benchmark, weights=ss, minlength=size) / total), total.astype(float)


def spreads(study: Study) -> Array:
    """Per benchmark the scatter between seeds; where nothing was repeated that between algorithms."""
    sd, df = _between_seeds(study)
    return sd if (df > 0).sum() > 1 else _between_algorithms(study)[0]


def scale_ratio(spread: Array) -> float:
    """The largest over the smallest positive one; NaN with fewer than two."""
    positive = spread[spread > 0]
    return float(positive.max() / positive.min()) if len(positive) > 1 else float("nan")


def remedies(study: Study, kind: ScoreKind) -> tuple[tuple[str, float], ...]:
    """The normalisations that bring the scales of this table together, each with the ratio of scales after it.

    In the order min-max, logarithm, rank; only those after which the ratio is at most half of what it was, or no cause
    for a warning any more.
    """
    before = scale_ratio(spreads(study))
    if not np.isfinite(before) or (study.points.valid != study.points.n).any():
        return ()
    methods = [method for method in _MEANING if method != "log" or _by_ratios(study, kind)]
    measured = [(method, _ratio_after(study, method)) for method in methods]
    most = max(_HELPS * before, min(SCALE_RATIO, 0.9 * before))
    return tuple((method, ratio) for method, ratio in measured if ratio <= most)


def _by_ratios(study: Study, kind: ScoreKind) -> bool:
    """Whether ratios of the scores mean something: positive ones, and no shares of right answers."""
    right = study.runs.direction == "maximize" and kind.kind in ("proportion", "percent")
    return kind.low > 0 and not right and not looks_like(study.runs.score, "share")


def _ratio_after(study: Study, method: str) -> float:
    """The ratio of scales after a normalisation; infinite where it does not apply."""
    from lmemtest.bench.data.normalise import normalised

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            if (study.points.n > 1).any():  # rows within a point are not known
                return scale_ratio(
                    spreads(normalised(study.runs, method, None, f"{study.runs.score} by {method}").study)
                )
            scores = normalised(_as_runs(study), method, None, "new").to_frame()["new"].to_numpy(dtype=float)
        except LmemtestError:
            return float("inf")
    return scale_ratio(spreads(study.with_scores(scores)))


def _as_runs(study: Study) -> Any:
    """The points of a study as a table: one score each."""
    from lmemtest.bench.data.runs import Runs

    table = {"algorithm": study.code("algorithm"), "score": study.points.mean}
    roles: dict[str, Any] = {"score": "score", "direction": study.runs.direction, "algorithm": "algorithm"}
    if study.runs.benchmark:
        table["benchmark"], roles["benchmark"] = study.code("benchmark"), "benchmark"
    if study.runs.budget:
        table["budget"], roles["budget"] = study.code("budget"), "budget"
    return Runs(pd.DataFrame(table), **roles)


def remedy_text(found: tuple[tuple[str, float], ...], before: float, benchmark: str | None) -> str:
    """What to do about scales that differ, with the ratio that each remedy leaves."""
    if not found:
        column = benchmark or "benchmark"
        return (
            "No normalisation brings the scales together, so benchmarks differ in noise rather than in unit: give each "
            f"a residual variance of its own, {advice('dispersion', column=column)}."
        )
    parts = []
    for method, ratio in found[:_SHOWN]:
        parts.append(f"{advice('normalize', method=method)} ({format_number(ratio, 2)}-fold: {_MEANING[method]})")
    start = f"Compare a score that means the same everywhere: after {parts[0]}"
    more = f", or {' or '.join(parts[1:])}" if parts[1:] else ""
    return f"{start}{more}, instead of {fold(before)}. Relative scores depend on which algorithms take part."


def on_one_scale(study: Study) -> str:
    """The first remedy as a call, with the ratio of scales before and after it; empty where there is none."""
    helpful = study.remedies
    if not helpful:
        return ""
    method, after = helpful[0]
    call = advice("normalize", method=method)
    before = format_number(scale_ratio(spreads(study)), 3)
    return f"{call}, after which scatter differs {format_number(after, 2)}-fold instead of {before}"


def fold(ratio: float) -> str:
    """A ratio of scales in words.

    >>> fold(63031.2), fold(4.237)
    ('63,031-fold', '4.24-fold')
    """
    return f"{written(ratio, ',.0f')}-fold" if ratio >= 1000 else f"{format_number(ratio, 3)}-fold"
