"""Evidence between tuning curves, counted over benchmarks for each pair of algorithms."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._result import Result, result
from lmemtest._validate import check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.tuning._groups import named_groups
from lmemtest.tuning.compare import CurveComparison, compare
from lmemtest.tuning.evidence import EVIDENCE, check_portion, describe_portion, false_label_rates
from lmemtest.words import counted, percent

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.tuning.curves import GroupCurve, TuningCurves

    FloatArray = NDArray[np.float64]

# Columns of the counts: where on the scale from the first to the second algorithm a benchmark stands.
_PLACES = ("first_strong", "first_fair", "first_weak", "none", "second_weak", "second_fair", "second_strong")
_OTHERS = ("both_ways", "not_comparable")
_EXPECTED = ("expected_weak", "expected_fair", "expected_strong")
_MOST_SIZES = 12  # pairs of sample sizes whose rates are simulated; more take long and say little


@result
class LabelCounts(Result):
    """On how many benchmarks there is which evidence between two algorithms.

    Attributes
    ----------
    counts : DataFrame
        One row per pair of algorithms: first, second; numbers of benchmarks with strong, fair, weak evidence for the
        first, none, weak, fair, strong evidence for the second, evidence both ways, not comparable; benchmarks (with
        both); and how many of these would show at least weak, fair, strong evidence if the two were the same (NaN if
        not known).
    comparisons : DataFrame
        One row per benchmark and pair: the benchmark's columns, first, second, evidence, better (empty for none or
        both), portion, budgets (at which both bands say something).
    portion : float
        Of the budgets, over which a label must hold.
    level : float
        Of each band.
    n_benchmarks : int
        Benchmarks in all.
    notes : tuple of str
        What a reader must know.
    """

    counts: pd.DataFrame
    comparisons: pd.DataFrame
    portion: float
    level: float
    n_benchmarks: int
    notes: tuple[str, ...] = ()

    parts = {"counts": "counts", "comparisons": "comparisons"}
    formats = {name.replace("_", " "): ".2f" for name in _EXPECTED}

    @property
    def title(self) -> str:
        """What is counted."""
        return "Evidence between tuning curves: numbers of benchmarks"

    @property
    def facts(self) -> tuple[str, ...]:
        """What a label is, and what the expected numbers are."""
        where = f"over {describe_portion(self.portion)} of the budgets at which both bands say something"
        label = f"A label holds {where}; each band at {percent(self.level)}."
        if self.counts[list(_EXPECTED)].isna().all(axis=None):
            return (label,)
        return label, (
            "Expected: on how many benchmarks two equal algorithms would show at least that evidence, in either "
            "direction."
        )

    def shown(self) -> pd.DataFrame:
        """The counts without columns that are empty."""
        empty = [name for name in _OTHERS if not self.counts[name].any()]
        unknown = [name for name in _EXPECTED if self.counts[name].isna().all()]
        shown = self.counts.drop(columns=[*empty, *unknown])
        return shown.rename(columns=lambda name: str(name).replace("_", " "))

    def sentences(self) -> tuple[str, ...]:
        """For each pair of algorithms, the counts in words."""
        return tuple(_sentence(row) for row in self.counts.to_dict("records"))


def count_curve_labels(
    curves: TuningCurves, *, portion: float, n_draws: int, rng: int | np.random.Generator | None
) -> LabelCounts:
    """Label every pair of algorithms on every benchmark."""
    import pandas as pd

    portion, n_draws = check_portion(portion), check_positive_int(n_draws, "n_draws", 0)
    if curves.unit == "seed":
        raise ArgumentError(
            "labels are for tuning curves over the trials of random search. Compare optimisers over seeds with the "
            "mixed model at the budget that matters: analyze(runs.filter(budget=...))."
        )
    if len(curves.algorithms) < 2:
        raise ArgumentError(f"labels need at least 2 algorithms, got one, {curves.algorithms[0]!r}.")
    pairs = [(first, second, _compare(curves, first, second, portion)) for first, second in _pairs(curves)]
    rates, notes = _rates(curves, pairs, portion, n_draws, rng)
    suspects = [
        f"{a.algorithm} and {b.algorithm}" + (f" on {a.benchmark}" if a.benchmark else "")
        for a, b, found in pairs
        if any("paired=True" in note for note in found.notes)
    ]
    if suspects:
        notes.append(
            f"Rows go together as scores of the same configurations do: {named_groups(suspects)}. The bands hold, the "
            "rates of false labels may not; tuning.compare(paired=True) or the mixed model use the pairs."
        )
    rows = [_row(curves, a, b, found) for a, b, found in pairs]
    frame = pd.DataFrame(rows)
    return LabelCounts(
        comparisons=frame,
        counts=_counted(curves, pairs, rates),
        portion=portion,
        level=curves.band_level,
        n_benchmarks=len(curves.benchmarks),
        notes=tuple(notes),
    )


def _pairs(curves: TuningCurves) -> list[tuple[GroupCurve, GroupCurve]]:
    place = {name: i for i, name in enumerate(curves.algorithms)}
    found = []
    for panel in curves.panels():
        found += list(combinations(sorted(panel, key=lambda curve: place[curve.algorithm]), 2))
    return found


def _compare(curves: TuningCurves, a: GroupCurve, b: GroupCurve, portion: float) -> CurveComparison:
    costs = {} if curves.axis == "trials" else {"cost_a": a.costs, "cost_b": b.costs}
    return compare(
        np.asarray(a.scores),
        np.asarray(b.scores),
        direction=curves.direction,
        names=(a.algorithm, b.algorithm),
        grid=curves.grid,
        statistic=curves.statistic,
        level=curves.band_level,
        band=curves.band,
        bounds=curves.bounds,
        from_k=curves.from_k,
        portion=portion,
        n_draws=0,
        **costs,
    )


def _row(curves: TuningCurves, a: GroupCurve, b: GroupCurve, found: CurveComparison) -> dict[str, Any]:
    return {
        **dict(zip(curves.by[:-1], a.key[:-1], strict=True)),
        "first": a.algorithm,
        "second": b.algorithm,
        "evidence": found.label,
        "better": found.better or "",
        "portion": found.observed,
        "budgets": int(found.usable.sum()),
    }


def _rates(
    curves: TuningCurves,
    pairs: list[tuple[GroupCurve, GroupCurve, CurveComparison]],
    portion: float,
    n_draws: int,
    rng: int | np.random.Generator | None,
) -> tuple[dict[tuple[int, int], FloatArray], list[str]]:
    """Rates of false labels for each pair of sample sizes, as far as they can be simulated."""
    if not n_draws:
        return {}, []
    if curves.axis == "cost" or curves.statistic == "mean":
        return {}, ["How often labels are false is not simulated here for means and cost units; tuning.compare() does."]
    sizes = sorted({tuple(sorted((a.n_scores, b.n_scores))) for a, b, found in pairs if found.usable.any()})
    if len(sizes) > _MOST_SIZES:
        return {}, [f"How often labels are false is not simulated for {len(sizes)} pairs of sample sizes."]
    generator = resolve_rng(rng)
    rates: dict[tuple[int, int], FloatArray] = {}
    for n_a, n_b in sizes:
        try:
            found = false_label_rates(
                n_a,
                n_b,
                level=curves.band_level,
                band=curves.band,
                statistic=curves.statistic,
                direction=curves.direction,
                k=curves.grid,
                portion=portion,
                from_k=curves.from_k,
                n_draws=n_draws,
                rng=generator,
            )
        except ArgumentError:  # no k with two bands for scores without bounds
            continue
        rates[n_a, n_b] = found.rate
    return rates, ["Rates of false labels are those of independent searches with continuous scores."] if rates else []


def _counted(
    curves: TuningCurves,
    pairs: list[tuple[GroupCurve, GroupCurve, CurveComparison]],
    rates: dict[tuple[int, int], FloatArray],
) -> pd.DataFrame:
    import pandas as pd

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for first, second in combinations(curves.algorithms, 2):
        start: dict[str, Any] = {"first": first, "second": second}
        start |= dict.fromkeys((*_PLACES, *_OTHERS, "benchmarks"), 0) | dict.fromkeys(
            _EXPECTED, 0.0 if rates else np.nan
        )
        rows[first, second] = start
    for a, b, found in pairs:
        row = rows[a.algorithm, b.algorithm]
        row["benchmarks"] += 1
        row[_column(found)] += 1
        if found.usable.any():
            low, high = sorted((a.n_scores, b.n_scores))
            rate = rates.get((low, high), np.full(3, np.nan))
            for name, share in zip(_EXPECTED, rate, strict=True):
                row[name] += float(share)
    return pd.DataFrame([row for row in rows.values() if row["benchmarks"]])


def _column(found: CurveComparison) -> str:
    if not found.usable.any():
        return "not_comparable"
    if found.label == EVIDENCE[0]:
        return "none"
    if found.better is None:
        return "both_ways"
    return f"{'first' if found.better == found.a.name else 'second'}_{found.label}"


def _sentence(row: dict[Any, Any]) -> str:
    first, second, total = row["first"], row["second"], row["benchmarks"]
    parts = []
    for name, side in ((first, "first"), (second, "second")):
        levels = [f"{row[f'{side}_{level}']} {level}" for level in ("strong", "fair", "weak") if row[f"{side}_{level}"]]
        if levels:
            parts.append(
                f"evidence for {name} on {sum(row[f'{side}_{v}'] for v in EVIDENCE[1:])} ({', '.join(levels)})"
            )
    rest = [
        f"{row[name]} {word}" for name, word in (("both_ways", "both ways"), ("none", "without evidence")) if row[name]
    ]
    rest += [f"{row['not_comparable']} not comparable"] if row["not_comparable"] else []
    found = "; ".join([", ".join(parts), ", ".join(rest)]).strip("; ")
    return f"{first} and {second}, {counted(total, 'benchmark')}: {found}."
