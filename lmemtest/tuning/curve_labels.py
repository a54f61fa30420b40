"""Evidence between tuning curves, counted over benchmarks for each pair of algorithms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_positive_int, resolve_rng
from lmemtest.core.words import counted, percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning._groups import named_groups
from lmemtest.tuning.compare import CurveComparison, compared
from lmemtest.tuning.costs import check_searches
from lmemtest.tuning.evidence import EVIDENCE, check_portion, describe_portion, rank_rates

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.tuning.curves import GroupCurve, TuningCurves

    Pair = tuple[GroupCurve, GroupCurve, CurveComparison]  # two curves on a benchmark, and what was found between them

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
        return "Evidence between tuning curves: numbers of benchmarks"

    @property
    def facts(self) -> tuple[str, ...]:
        where = f"over {describe_portion(self.portion)} of the budgets at which both bands are informative"
        label = f"A label holds {where}; each band at {percent(self.level)}."
        if self.counts[list(_EXPECTED)].isna().all(axis=None):
            return (label,)
        return label, (
            "Expected: on how many benchmarks two equal algorithms would show at least that evidence, in either "
            "direction."
        )

    def shown(self) -> pd.DataFrame:
        empty = [name for name in _OTHERS if not self.counts[name].any()]
        unknown = [name for name in _EXPECTED if self.counts[name].isna().all()]
        shown = self.counts.drop(columns=[*empty, *unknown])
        return shown.rename(columns=lambda name: str(name).replace("_", " "))

    def sentences(self) -> tuple[str, ...]:
        return tuple(_sentence(row) for row in self.counts.to_dict("records"))


def count_curve_labels(
    curves: TuningCurves, *, portion: float, n_draws: int, rng: int | np.random.Generator | None
) -> LabelCounts:
    """Label every pair of algorithms on every benchmark."""
    portion, n_draws = check_portion(portion), check_positive_int(n_draws, "n_draws", 0)
    if curves.unit == "seed":
        raise ArgumentError(
            "labels are for tuning curves over the trials of random search. Compare optimisers over seeds with the "
            "mixed model at the budget that matters: analyze(runs.filter(budget=...))."
        )
    if len(curves.algorithms) < 2:
        raise ArgumentError(f"labels need at least 2 algorithms, got one, {curves.algorithms[0]!r}.")
    settings, error = replace(curves.settings, level=curves.band_level), 1.0 - curves.band_level
    pairs: list[Pair] = []
    for panel in curves.panels():
        for a, b in combinations(sorted(panel, key=lambda curve: curves.algorithms.index(curve.name)), 2):
            searches = check_searches(*(a.scores, b.scores, (a.name, b.name), a.costs, b.costs, False), error=error)
            pairs.append((a, b, compared(searches, settings, curves.bounds, curves.grid, portion)))
    rates, notes = _rates(curves, pairs, portion, n_draws, rng)
    suspects = [
        f"{a.name} and {b.name}" + (f" on {a.benchmark}" if a.benchmark else "")
        for a, b, found in pairs
        if any("paired=True" in note for note in found.notes)
    ]
    if suspects:
        notes.append(
            f"Rows are correlated as scores of the same configurations are: {named_groups(suspects)}. The bands hold, "
            "the rates of false labels may not; tuning.compare(paired=True) or the mixed model use the pairs."
        )
    rows = [
        {
            **dict(zip(curves.by[:-1], a.key[:-1], strict=True)),
            "first": a.name,
            "second": b.name,
            "evidence": found.label,
            "better": found.better or "",
            "portion": found.observed,
            "budgets": int(found.usable.sum()),
        }
        for a, b, found in pairs
    ]
    counts = [
        _counts([pair for pair in pairs if (pair[0].name, pair[1].name) == names], rates)
        for names in combinations(curves.algorithms, 2)
    ]
    return LabelCounts(
        comparisons=pd.DataFrame(rows),
        counts=pd.DataFrame([row for row in counts if row]),
        portion=portion,
        level=curves.band_level,
        n_benchmarks=len(curves.benchmarks),
        notes=tuple(notes),
    )


def _rates(
    curves: TuningCurves, pairs: list[Pair], portion: float, n_draws: int, rng: Any
) -> tuple[dict[tuple[int, int], Array], list[str]]:
    """Rates of false labels for each pair of sample sizes, as far as they can be simulated."""
    if not n_draws:
        return {}, []
    if curves.axis == "cost" or curves.statistic == "mean":
        return {}, ["How often labels are false is not simulated here for means and cost units; tuning.compare() does."]
    sizes = sorted({_sizes(a, b) for a, b, found in pairs if found.usable.any()})
    if len(sizes) > _MOST_SIZES:
        return {}, [f"How often labels are false is not simulated for {len(sizes)} pairs of sample sizes."]
    settings, generator = replace(curves.settings, level=curves.band_level), resolve_rng(rng)
    found = {pair: rank_rates(*pair, settings, curves.grid, portion, n_draws, generator) for pair in sizes}
    rates = {pair: one.rate for pair, one in found.items() if one is not None}  # else scores without bounds have no k
    return rates, ["Rates of false labels are those of independent searches with continuous scores."] if rates else []


def _sizes(a: GroupCurve, b: GroupCurve) -> tuple[int, int]:
    return min(a.n_scores, b.n_scores), max(a.n_scores, b.n_scores)


def _counts(pairs: list[Pair], rates: dict[tuple[int, int], Array]) -> dict[str, Any]:
    """The row of two algorithms; empty if no benchmark has both."""
    if not pairs:
        return {}
    places = Counter(_place(found) for *_, found in pairs)
    usable = [_sizes(a, b) for a, b, found in pairs if found.usable.any()]
    unknown = np.full(3, np.nan)
    expected = sum((rates.get(pair, unknown) for pair in usable), np.zeros(3) if rates else unknown)
    return {
        "first": pairs[0][0].name,
        "second": pairs[0][1].name,
        **{name: places[name] for name in (*_PLACES, *_OTHERS)},
        "benchmarks": len(pairs),
        **dict(zip(_EXPECTED, np.asarray(expected).tolist(), strict=True)),
    }


def _place(found: CurveComparison) -> str:
    if not found.usable.any():
        return "not_comparable"
    if found.label == EVIDENCE[0]:
        return "none"
    if found.better is None:
        return "both_ways"
    return f"{'first' if found.better == found.a.name else 'second'}_{found.label}"


def _sentence(row: dict[Any, Any]) -> str:
    parts = []
    for side in ("first", "second"):
        levels = {level: row[f"{side}_{level}"] for level in ("strong", "fair", "weak") if row[f"{side}_{level}"]}
        if levels:
            each = ", ".join(f"{count} {level}" for level, count in levels.items())
            parts.append(f"evidence for {row[side]} on {sum(levels.values())} ({each})")
    words = {"both_ways": "both ways", "none": "without evidence", "not_comparable": "not comparable"}
    rest = [f"{row[name]} {word}" for name, word in words.items() if row[name]]
    found = "; ".join([", ".join(parts), ", ".join(rest)]).strip("; ")
    return f"{row['first']} and {row['second']}, {counted(row['benchmarks'], 'benchmark')}: {found}."
