"""What the kind of a score asks to know: pairing of proportions, limits, mixed units, folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest.data.score_kind import looks_like
from lmemtest.studies.checks.findings import Finding
from lmemtest.words import format_number, listed

if TYPE_CHECKING:
    from lmemtest.data.points import Points
    from lmemtest.data.score_kind import ScoreKind

_NAMED = 4
_FEWEST = 20  # scores of an algorithm, from which on the same answer everywhere is worth a look
_FRACTION_FROM, _PERCENT_FROM = 0.1, 5.0  # medians of shares of right answers in fractions and in per cent


def kind_findings(points: Points, kind: ScoreKind) -> list[Finding]:
    """What the kind of score, which is that of these points, asks to know."""
    found = [*_folds(points), *_mixed_units(points)]
    if kind.kind == "two-valued":
        found.append(_proportions(points, kind))
    if kind.kind == "capped":
        found.append(_penalised(kind) if kind.penalised else _censored(points, kind))
    return found


def _proportions(points: Points, kind: ScoreKind) -> Finding:
    unit = points.runs.benchmark
    paired = f", paired by {unit!r}" if unit else ", not paired, for no column says which scores belong together"
    advice = (
        f"Keep every {unit!r}, also those on which all algorithms agree: without them the difference is another one."
        if unit
        else "Name the column of the items (questions, tasks) as the benchmark, if all algorithms met the same ones."
    )
    high = "1" if kind.high == 1 else format_number(kind.high)
    what = "proportions" if (kind.low, kind.high) == (0.0, 1.0) else f"proportions of {high}"
    return Finding(
        severity="note",
        kind="two_values",
        count=int(points.valid.sum()),
        message=f"{kind.evidence} A difference of means is a difference of {what}{paired}.",
        advice=advice,
    )


def one_answer(points: Points) -> list[Finding]:
    """Algorithms whose answers are all alike, as where none of the outputs could be read."""
    size = len(points.algorithms)
    n = np.bincount(points.algorithm, weights=points.valid, minlength=size)
    low, high = points.range_of(points.algorithm, size)
    return [
        Finding(
            severity="warning",
            kind="constant_scores",
            algorithm=points.algorithms[i],
            count=int(n[i]),
            message=f"All {int(n[i]):,} scores of {str(points.algorithms[i])!r} are {low[i]:g}.",
            advice="Look at some of its outputs: were they read as they were meant?",
        )
        for i in np.flatnonzero((low == high) & (n >= _FEWEST))
    ]


def _shares(kind: ScoreKind) -> str:
    named = [f"{algorithm} {written(100 * share, '.3g')} %" for algorithm, _, share in kind.capped[:_NAMED]]
    rest = [share for _, _, share in kind.capped[_NAMED:]]
    return ", ".join([*named, *([f"{len(rest)} others at most {written(100 * rest[0], '.3g')} %"] if rest else [])])


def _censored(points: Points, kind: ScoreKind) -> Finding:
    """Scores at a limit: what their mean is, and what is done about it in the field."""
    limit = format_number(kind.high)
    score = points.runs.score
    par2, par10 = written(2 * kind.high, ",.6g"), written(10 * kind.high, ",.6g")
    write = in_words_of(
        python=f"such as df.loc[df[{score!r}] >= {kind.high:g}, {score!r}] = {10 * kind.high:g}",
        command_line=f"in the column {score!r} of the file",
    )
    return Finding(
        severity="warning",
        kind="capped_scores",
        count=sum(rows for _, rows, _ in kind.capped),
        message=f"{kind.evidence} By algorithm: {_shares(kind)}. If {limit} is a limit, as of a timeout, these scores "
        "are censored: the true ones are larger by an unknown amount, so means are lower bounds, and flatter the "
        "algorithms that met the limit most often.",
        advice=f"Decide what a run at the limit costs before comparing. PAR2 and PAR10, the penalties in use for "
        f"solvers, write {par2} or {par10} for {limit}, {write}; report the share of runs below the limit beside the "
        "mean, and see whether the order stands for both penalties.",
    )


def _penalised(kind: ScoreKind) -> Finding:
    count = sum(rows for _, rows, _ in kind.capped)
    return Finding(
        severity="note",
        kind="penalised_scores",
        count=count,
        message=f"{kind.evidence} By algorithm: {_shares(kind)}. The next score is {format_number(kind.below)}, so "
        "this looks like a penalty for runs that failed or ran out of time, as in PAR10: means are those of penalised "
        "scores.",
        advice="Report the share of such runs beside the mean, and see whether the order stands with another penalty.",
    )


def unlike_units(points: Points) -> tuple[list[object], list[object]] | None:
    """Benchmarks whose shares of right answers are fractions, and those where they are percentages; None if all agree.

    Only where the score is called an accuracy or the like: errors of 0.3 may be fractions and per cent alike.
    """
    if points.runs.benchmark is None or not looks_like(points.runs.score, "share"):
        return None
    good = points.valid > 0
    if not good.any() or points.low[good].min() < 0 or points.high[good].max() > 100:
        return None
    benchmark = points.benchmark_of[points.instance[good]]
    fractions, percentages = [], []
    for i in np.unique(benchmark):
        here = benchmark == i
        median, highest = float(np.median(points.mean[good][here])), float(points.high[good][here].max())
        if highest <= 1 and median >= _FRACTION_FROM:
            fractions.append(points.benchmarks[i])
        elif highest > 1 and median >= _PERCENT_FROM:
            percentages.append(points.benchmarks[i])
        else:
            return None
    return (fractions, percentages) if fractions and percentages else None


def _mixed_units(points: Points) -> list[Finding]:
    units = unlike_units(points)
    if units is None:
        return []
    fractions, percentages = (listed([repr(str(name)) for name in names], most=3) for names in units)
    finding = Finding(
        severity="warning",
        kind="mixed_units",
        count=min(map(len, units)),
        message=f"{points.runs.score!r} is a fraction on {fractions} (at most 1) and a percentage on {percentages}.",
        advice="Write all scores in one unit: multiply the fractions by 100.",
    )
    return [finding]


def _folds(points: Points) -> list[Finding]:
    """Folds and splits of one data set, which share training data."""
    runs = points.runs
    if not looks_like(runs.seed, "fold"):
        return []
    folds, several = len(points.seeds), len(points.benchmarks) > 1
    message = (
        f"{runs.seed!r} looks like the folds or splits of a data set, {folds:,} in number. Their training sets "
        "overlap, so their scores are not independent runs"
    )
    if several:
        message += (
            "; what those of one data set have in common is taken up by the term (1 | benchmark:algorithm) of the "
            "recommended model, so that the comparison rests on the number of data sets."
        )
        advice = (
            "Nothing has to be done for a comparison over data sets. Do not test algorithms on a single data set by "
            "its folds as if they were independent (Nadeau & Bengio 2003; Bouckaert & Frank 2004)."
        )
    else:
        message += (
            ", and with one data set nothing in the table shows how much they share. Tests are too optimistic: "
            "somewhat for the folds of one cross-validation, badly for random or repeated splits (15 % of false "
            "findings instead of 5 % for ten splits that test on a tenth; Nadeau & Bengio 2003)."
        )
        advice = "Bring more data sets, named as the benchmark, or use the corrected resampled t-test of that paper."
    return [
        Finding(severity="note" if several else "warning", kind="folds", count=folds, message=message, advice=advice)
    ]
