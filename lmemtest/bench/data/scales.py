"""How far the scales of benchmarks differ, and which normalisation brings them together on the table at hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.data.points import Points
from lmemtest.bench.data.score_kind import looks_like
from lmemtest.core.caller import advice
from lmemtest.core.rounding import written
from lmemtest.core.words import format_number
from lmemtest.errors import DataWarning, LmemtestError

if TYPE_CHECKING:
    from lmemtest.bench.data.score_kind import ScoreKind

__all__ = [
    "SCALE_RATIO",
    "Modelled",
    "Remedy",
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


class Remedy(NamedTuple):
    """A normalisation, and the ratio of the largest to the smallest scale of benchmarks after it."""

    method: str
    ratio: float


class Modelled(NamedTuple):
    """A function of the score that a model takes: how it is written, and what it computes."""

    label: str
    function: Callable[[Any], Any]

    def of(self, points: Points) -> Points:
        """The points with the values of the function; scores without one, such as log(0), are as if missing."""
        with np.errstate(all="ignore"):
            if (points.n > 1).any():  # rows within a point are not known
                frame = points.runs.to_frame()
                frame[points.runs.score] = self.function(frame[points.runs.score].to_numpy(dtype=float))
                return Points.of(type(points.runs)(frame, **points.runs.roles()))
            values = self.function(points.mean)
        known = np.isfinite(values)
        values = np.where(known, values, np.nan)
        return replace(points, mean=values, low=values, high=values, valid=np.where(known, points.valid, 0))


def spreads(points: Points) -> pd.Series[float]:
    """Per benchmark the scatter between seeds; where nothing was repeated that between algorithms."""
    scales = points.residual_scales()
    return scales["residual_sd"] if (scales["df"] > 0).sum() > 1 else points.effect_scales()["sd"]


def scale_ratio(spread: pd.Series[float]) -> float:
    """The largest over the smallest positive one; NaN with fewer than two."""
    positive = spread[spread > 0]
    return float(positive.max() / positive.min()) if len(positive) > 1 else float("nan")


def remedies(points: Points, kind: ScoreKind) -> tuple[Remedy, ...]:
    """The normalisations that bring the scales of this table together, measured on it.

    In the order min-max, logarithm, rank; only those after which the ratio is at most half of what it was, or no cause
    for a warning any more.
    """
    before = scale_ratio(spreads(points))
    if not np.isfinite(before) or (points.valid != points.n).any():
        return ()
    methods = [method for method in _MEANING if method != "log" or _by_ratios(points, kind)]
    measured = [Remedy(method, _ratio_after(points, method)) for method in methods]
    return tuple(remedy for remedy in measured if remedy.ratio <= max(_HELPS * before, min(SCALE_RATIO, 0.9 * before)))


def _by_ratios(points: Points, kind: ScoreKind) -> bool:
    """Whether ratios of the scores mean something: positive ones, and no shares of right answers."""
    right = points.runs.direction == "maximize" and kind.kind in ("proportion", "percent")
    return kind.low > 0 and not right and not looks_like(points.runs.score, "share")


def _ratio_after(points: Points, method: str) -> float:
    """The ratio of scales after a normalisation; infinite where it does not apply."""
    from lmemtest.bench.data.normalise import normalised

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            if (points.n > 1).any():  # rows within a point are not known
                return scale_ratio(
                    spreads(Points.of(normalised(points.runs, method, None, f"{points.runs.score} by {method}")))
                )
            scores = normalised(_as_runs(points), method, None, "new").to_frame()["new"].to_numpy(dtype=float)
        except LmemtestError:
            return float("inf")
    return scale_ratio(spreads(replace(points, mean=scores, low=scores, high=scores)))


def _as_runs(points: Points) -> Any:
    """The points as a table: one score each."""
    from lmemtest.bench.data.runs import Runs

    table = {"algorithm": points.algorithm, "score": points.mean}
    roles: dict[str, Any] = {"score": "score", "direction": points.runs.direction, "algorithm": "algorithm"}
    if points.runs.benchmark:
        table["benchmark"], roles["benchmark"] = points.benchmark_of[points.instance], "benchmark"
    if points.runs.budget:
        table["budget"], roles["budget"] = points.budget, "budget"
    return Runs(pd.DataFrame(table), **roles)


def remedy_text(found: tuple[Remedy, ...], before: float, benchmark: str | None) -> str:
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


def on_one_scale(points: Points, kind: ScoreKind) -> str:
    """The first remedy as a call, with the ratio of scales before and after it; empty where there is none."""
    helpful = remedies(points, kind)
    if not helpful:
        return ""
    method, after = helpful[0]
    call = advice("normalize", method=method)
    before = format_number(scale_ratio(spreads(points)), 3)
    return f"{call}, after which scatter differs {format_number(after, 2)}-fold instead of {before}"


def fold(ratio: float) -> str:
    """A ratio of scales in words.

    >>> fold(63031.2), fold(4.237)
    ('63,031-fold', '4.24-fold')
    """
    return f"{written(ratio, ',.0f')}-fold" if ratio >= 1000 else f"{format_number(ratio, 3)}-fold"
