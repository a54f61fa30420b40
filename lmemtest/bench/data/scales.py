"""How far the scales of benchmarks differ, and which normalisation brings them together on the table at hand.

What kind of score a table holds: 0 or 1, ranks, times with a limit, proportions, percentages, counts.
What is a defect of one kind is the nature of another: equal scores of two algorithms are a sign of rounding in a loss
and the rule in answers that are right or wrong. So the kind is found once, here, and every check asks it.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.study import dtype_of
from lmemtest.core.caller import advice
from lmemtest.core.codes import combine_codes
from lmemtest.core.rounding import written
from lmemtest.core.words import format_number
from lmemtest.errors import DataWarning, LmemtestError
from lmemtest.lmm.scope import Kind, ScoreKind, two_valued

if TYPE_CHECKING:
    from lmemtest.bench.data.study import Study
    from lmemtest.core.arrays import Array, Mask

    Limit = tuple[tuple[tuple[Any, int, float], ...], float]


# ------------------------------------------------------------------------------------------------------ kinds of scores


_FEWEST = (
    20  # scores from which on two different values are a kind and no accident; half as many for 0 and 1, and for ranks
)
_RARER = 0.02  # the rarer of two values has this share, unless they are 0 and 1
_CAPPED = 3  # three continuous scores never agree in the largest value
_STANDS_OUT = 2.0  # times as often as any other value of the upper half
_WIDE = 100.0  # positive scores over more than two powers of ten are compared by ratios
_ROUNDING = 1e-9
_TIME = {
    *("time", "times", "runtime", "walltime", "wallclock", "cputime", "cpu", "seconds", "second", "secs", "sec"),
    *("ms", "hours", "hour", "minutes", "duration", "latency", "evals", "evaluations", "par"),
}
_SHARE = {"accuracy", "acc", "auc", "auroc", "f1", "precision", "recall", "correct", "top1"}
_PERCENT = {*_SHARE, "percent", "percentage", "pct", "rate", "error", "err"}
_FOLD = {"fold", "folds", "cv", "kfold", "split", "splits", "crossvalidation"}
_WORDS = {"time": _TIME, "share": _SHARE, "percent": _PERCENT, "fold": _FOLD}


def looks_like(name: str | None, what: Literal["time", "share", "percent", "fold"]) -> bool:
    """Whether the name of a column contains a word for times, for shares of right answers, percentages or folds.

    >>> looks_like("cpu_time", "time"), looks_like("timestep_loss", "time"), looks_like("cvFold", "fold")
    (True, False, True)
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])\d*", str(name or ""))]
    return bool(_WORDS[what] & {*words, *(word.rstrip("0123456789") for word in words)})


def score_kind(study: Study) -> ScoreKind:
    """The kind of the scores of a table; points without a finite score are passed over."""
    points = study.points
    good = points.valid > 0
    if not good.any():
        return ScoreKind(kind="general", evidence="No score is a finite number.", low=float("nan"), high=float("nan"))
    low, high = float(points.low[good].min()), float(points.high[good].max())
    limit = _limit(study, good, high)
    kind, evidence = _kind(study, good, low, high, limit)
    capped = {} if kind != "capped" or limit is None else {"capped": limit[0], "below": limit[1]}
    scale = study.runs.scale
    logarithm = scale is not None and scale.method == "log"
    return ScoreKind(kind=kind, evidence=evidence, low=low, high=high, logarithm=logarithm, **capped)  # type: ignore[arg-type]


def _kind(study: Study, good: Mask, low: float, high: float, limit: Limit | None) -> tuple[Kind, str]:
    span = f"{format_number(low)} to {format_number(high)}"
    if low == high:
        return "general", f"All scores are {format_number(low)}."
    if _are_ranks(study):
        return "ranks", "Scores are ranks within groups of runs."
    if _are_two(study, good, low, high):
        share = _share_of_high(study, good, low, high)
        ends = f"{format_number(low)} or {format_number(high)}" if (low, high) != (0.0, 1.0) else "0 or 1"
        return (
            "two-valued",
            f"Scores are {ends}; {written(100 * share, '.3g')} % are {format_number(high) if high != 1 else '1'}.",
        )
    if limit is not None:
        count = sum(rows for _, rows, _ in limit[0])
        total = int(study.points.valid.sum())
        return "capped", f"{count:,} of {total:,} scores equal {format_number(high)}, the largest one."
    lowest, highest = study.score_range("benchmark")
    if len(lowest) > 2 and (lowest == 0.0).all() and (highest == 1.0).all():  # as after a min-max normalisation
        return "min-max", "Scores go from 0 to 1 on every benchmark."
    if low >= 0 and high <= 1:
        return "proportion", f"Scores lie within 0 and 1 ({span})."
    if low >= 0 and high <= 100 and looks_like(study.runs.score, "percent"):
        return "percent", f"Scores lie within 0 and 100 ({span}), and the score is called {study.runs.score!r}."
    if low >= 0 and _counts(study, good):
        return "count", f"Scores are whole numbers ({low:,.0f} to {high:,.0f}), most of which occur several times."
    if low > 0 and high >= _WIDE * low:
        return "positive", f"Scores are positive, and the largest is {format_number(high / low, 3)} times the smallest."
    return "general", f"Scores lie within {span}."


def _counts(study: Study, good: Mask) -> bool:
    """Whether scores are whole numbers that repeat each other."""
    points = study.points
    low, high, n = points.low[good], points.high[good], points.valid[good].sum()
    whole = bool((low % 1 == 0).all() and (high % 1 == 0).all())
    return whole and n >= _FEWEST and 2 * len(np.unique([low, high])) <= n


def _are_two(study: Study, good: Mask, low: float, high: float) -> bool:
    points = study.points
    n, mean = points.valid[good], points.mean[good]
    if not two_valued(n, mean, points.ss[good], low, high):
        return False
    share = _share_of_high(study, good, low, high)
    total = n.sum()
    if (low, high) != (0.0, 1.0) and (total < _FEWEST or min(share, 1 - share) < _RARER):
        return False
    # an algorithm with one value only is a constant; two of them are no answers that are right or wrong
    lowest, highest = study.score_range("algorithm")
    return bool(total >= _FEWEST / 2 and (lowest < highest).any())


def _share_of_high(study: Study, good: Mask, low: float, high: float) -> float:
    n = study.points.valid[good]
    return float((n * (study.points.mean[good] - low)).sum() / ((high - low) * n.sum()))


def _are_ranks(study: Study) -> bool:
    """Whether the scores of every benchmark and budget, or of every single comparison, are the ranks 1 to n."""
    points = study.points
    if points.n.sum() < _FEWEST / 2 or (points.valid != points.n).any() or (points.low < 1).any():
        return False
    if (points.low * 2 % 1 != 0).any() or (points.high * 2 % 1 != 0).any():
        return False
    n_budgets, n_seeds = len(study.names("budget")), len(study.names("seed"))
    benchmark = study.code("benchmark")
    groups = [benchmark, study.code("instance"), study.code("instance") * np.int64(n_seeds) + study.code("seed")]
    for group in (*groups, *(group * np.int64(n_budgets) + study.code("budget") for group in groups)):
        codes = np.unique(group, return_inverse=True)[1]
        n = np.bincount(codes, weights=points.n)
        total = np.bincount(codes, weights=points.n * points.mean)
        largest = np.zeros(len(n))
        np.maximum.at(largest, codes, points.high)
        if (n >= 2).all() and (largest <= n).all() and (np.abs(total - n * (n + 1) / 2) < _ROUNDING * n * n).all():
            return True
    return False


def _limit(study: Study, good: Mask, high: float) -> Limit | None:
    """Scores at the largest one by algorithm, and the largest below it, if it stands out as a limit of times or costs.

    A limit lies at the bad end, is met on several benchmarks, and far more often than any other value of the upper
    half: rounded scores and counts repeat all of their values. Scores within 0 and 1 end there by nature, and curves
    over a budget start at the score of a guess, so there the name of the score has to speak of a time.
    """
    points = study.points
    runs = study.runs
    timed = looks_like(runs.score, "time")
    if runs.direction != "minimize" or not (timed or (high > 1 and runs.budget is None)):
        return None
    at = good & (points.high == high)
    rows = np.where(points.low == high, points.valid, 1.0) * at  # a point with other scores has at least one there
    where = study.code("benchmark")[at] if len(study.names("benchmark")) > 1 else study.code("run")[at]
    single = good & ~at & (points.low == points.high)
    if rows.sum() < _CAPPED or len(np.unique(where)) < 2 or not single.any():
        return None
    distinct, codes = np.unique(points.mean[single], return_inverse=True)
    often = np.bincount(codes, weights=points.valid[single])
    if rows.sum() <= _STANDS_OUT * often[len(distinct) // 2 :].max():
        return None
    size = len(study.names("algorithm"))
    count = np.bincount(study.code("algorithm"), weights=rows, minlength=size)
    total = np.bincount(study.code("algorithm"), weights=points.valid, minlength=size)
    share = count / np.maximum(total, 1)
    order = np.argsort(-share, kind="stable")
    capped = tuple((study.names("algorithm")[i], int(count[i]), float(share[i])) for i in order)
    return capped, float(distinct[-1])


# ------------------------------------------------------------------------------------------------ how far scales differ


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
    total, _, ss = study.pooled(group, len(benchmark_of_group))
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
    from lmemtest.bench.data.normalise import normalize

    if (study.points.n == 1).all():
        scores = _normalised(study, method)
        return float("inf") if scores is None else scale_ratio(spreads(study.with_scores(scores)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return scale_ratio(spreads(normalize(study.runs, method, name=f"{study.runs.score} by {method}").study))
        except LmemtestError:  # rows of one run and budget have no order
            return float("inf")


def _normalised(study: Study, method: str) -> Array | None:
    """Single scores by a method of `normalize`, within its default groups; None where there are none."""
    x = study.points.mean
    if method == "log":
        return np.log(x)
    roles = [role for role in ("benchmark", "budget") if getattr(study.runs, role)]
    if not roles:
        return None
    within = [combine_codes([(study.code(role), len(study.names(role))) for role in some], len(x))
              for some in (roles, roles[:1])]  # fmt: skip
    alone = 2 * (np.bincount(within[0]) == 1).sum() > len(x)  # most scores have no other one in their group
    groups = pd.Series(x).groupby(within[int(alone and len(roles) > 1)])
    if method == "rank":
        return groups.rank(ascending=study.runs.direction == "minimize").to_numpy()
    low, high = (groups.transform(end).to_numpy() for end in ("min", "max"))
    return np.where(low == high, 0.5, (x - low) / np.where(low == high, 1.0, high - low))


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
