"""Evidence between tuning curves, counted over benchmarks for each pair of algorithms."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.result import Answer
from lmemtest.core.validate import check_positive_int, resolve_rng
from lmemtest.core.words import counted, percent
from lmemtest.errors import ArgumentError
from lmemtest.tuning.compare import judged, looks_paired
from lmemtest.tuning.costs import check_searches
from lmemtest.tuning.curve import curve_of
from lmemtest.tuning.evidence import EVIDENCE, check_portion, describe_portion, rank_rates
from lmemtest.tuning.groups import named_groups

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.tuning.curves import TuningCurves

# Columns of the counts: where on the scale from the first to the second algorithm a benchmark stands.
_PLACES = ("first_strong", "first_fair", "first_weak", "none", "second_weak", "second_fair", "second_strong")
_OTHERS = ("both_ways", "not_comparable")
_EXPECTED = ("expected_weak", "expected_fair", "expected_strong")
_MOST_SIZES = 12  # pairs of sample sizes whose rates are simulated; more take long and say little


def count_curve_labels(
    curves: TuningCurves, *, portion: float, n_draws: int, rng: int | np.random.Generator | None
) -> Answer:
    """Label every pair of algorithms on every benchmark."""
    portion, n_draws = check_portion(portion), check_positive_int(n_draws, "n_draws", 0)
    if curves.unit == "seed":
        raise ArgumentError(
            "labels are for tuning curves over the trials of random search. Compare optimisers over seeds with the "
            "mixed model at the budget that matters: analyze(runs.filter(budget=...))."
        )
    if len(curves.algorithms) < 2:
        raise ArgumentError(f"labels need at least 2 algorithms, got one, {curves.algorithms[0]!r}.")
    settings = replace(curves.settings, level=curves.band_level)
    rows, suspects, sizes = [], [], []
    for panel in curves.panels():
        for a, b in combinations(sorted(panel, key=lambda curve: curves.algorithms.index(curve.name)), 2):
            both = (a.scores, b.scores, (a.name, b.name), a.costs, b.costs, False)
            names, scores, costs, levels = check_searches(*both, error=1.0 - curves.band_level)
            searched = [
                curve_of(each, replace(settings, level=level), curves.bounds)
                for each, level in zip(scores, levels, strict=True)
            ]
            values = judged(names, searched, costs, curves.grid, portion)
            row = {"first": a.name, "second": b.name, "evidence": values["label"], "better": values["better"] or ""}
            row |= {"portion": values["observed"], "budgets": int(values["usable"].sum())}
            rows.append({**dict(zip(curves.by[:-1], a.key[:-1], strict=True)), **row})
            sizes.append((min(a.n_scores, b.n_scores), max(a.n_scores, b.n_scores)))
            if looks_paired(*scores):
                suspects.append(f"{a.name} and {b.name}" + (f" on {a.benchmark}" if a.benchmark else ""))
    comparable = [size for size, row in zip(sizes, rows, strict=True) if row["budgets"]]
    rates, notes = _rates(curves, sorted(set(comparable)), portion, n_draws, rng)
    if suspects:
        notes.append(
            f"Rows are correlated as scores of the same configurations are: {named_groups(suspects)}. The bands hold, "
            "the rates of false labels may not; tuning.compare(paired=True) or the mixed model use the pairs."
        )
    counts = []
    for names in combinations(curves.algorithms, 2):
        of_pair = [at for at, row in enumerate(rows) if (row["first"], row["second"]) == names]
        if of_pair:
            counts.append(_counts([rows[at] for at in of_pair], [sizes[at] for at in of_pair], rates))
    table = pd.DataFrame(counts)
    empty = [name for name in _OTHERS if not table[name].any()]
    unknown = [name for name in _EXPECTED if table[name].isna().all()]
    where = f"over {describe_portion(portion)} of the budgets at which both bands are informative"
    facts = [f"A label holds {where}; each band at {percent(curves.band_level)}."]
    if len(unknown) < len(_EXPECTED):
        facts.append(
            "Expected: on how many benchmarks two equal algorithms would show at least that evidence, in either "
            "direction."
        )
    return Answer(
        question="TuningCurves.labels",
        title="Evidence between tuning curves: numbers of benchmarks",
        tables={"counts": table, "comparisons": pd.DataFrame(rows)},
        values={"portion": portion, "level": curves.band_level, "n_benchmarks": len(curves.benchmarks)},
        facts=tuple(facts),
        findings=tuple(map(_sentence, counts)),
        notes=tuple(notes),
        printed=table.drop(columns=[*empty, *unknown]).rename(columns=lambda name: str(name).replace("_", " ")),
        formats={name.replace("_", " "): ".2f" for name in _EXPECTED},
    )


def _rates(
    curves: TuningCurves, sizes: list[tuple[int, int]], portion: float, n_draws: int, rng: Any
) -> tuple[dict[tuple[int, int], Array], list[str]]:
    """Rates of false labels for each pair of sample sizes, as far as they can be simulated."""
    if not n_draws:
        return {}, []
    if curves.axis == "cost" or curves.statistic == "mean":
        return {}, ["How often labels are false is not simulated here for means and cost units; tuning.compare() does."]
    if len(sizes) > _MOST_SIZES:
        return {}, [f"How often labels are false is not simulated for {len(sizes)} pairs of sample sizes."]
    settings, generator = replace(curves.settings, level=curves.band_level), resolve_rng(rng)
    rates = {}
    for size in sizes:
        simulated = rank_rates(*size, settings, curves.grid, portion, n_draws, generator)
        if simulated is not None:  # scores without bounds may have no k
            rates[size] = simulated.rate
    return rates, ["Rates of false labels are those of independent searches with continuous scores."] if rates else []


def _counts(
    rows: list[dict[str, Any]], sizes: list[tuple[int, int]], rates: dict[tuple[int, int], Array]
) -> dict[str, Any]:
    """Two algorithms: on how many benchmarks there is which evidence, and on how many it is to be expected."""
    first, second = rows[0]["first"], rows[0]["second"]
    places = Counter(_place(row, first) for row in rows)
    unknown = np.full(3, np.nan)
    usable = [rates.get(size, unknown) for size, row in zip(sizes, rows, strict=True) if row["budgets"]]
    expected = sum(usable, np.zeros(3) if rates else unknown)
    return {
        "first": first,
        "second": second,
        **{name: places[name] for name in (*_PLACES, *_OTHERS)},
        "benchmarks": len(rows),
        **dict(zip(_EXPECTED, np.asarray(expected).tolist(), strict=True)),
    }


def _place(row: dict[str, Any], first: str) -> str:
    if not row["budgets"]:
        return "not_comparable"
    if row["evidence"] == EVIDENCE[0]:
        return "none"
    return f"{'first' if row['better'] == first else 'second'}_{row['evidence']}" if row["better"] else "both_ways"


def _sentence(row: dict[Any, Any]) -> str:
    parts = []
    for side in ("first", "second"):
        levels = {level: row[f"{side}_{level}"] for level in ("strong", "fair", "weak") if row[f"{side}_{level}"]}
        if levels:
            each = ", ".join(f"{count} {level}" for level, count in levels.items())
            parts.append(f"evidence for {row[side]} on {sum(levels.values())} ({each})")
    words = {"both_ways": "both ways", "none": "without evidence", "not_comparable": "not comparable"}
    rest = [f"{row[name]} {word}" for name, word in words.items() if row[name]]
    text = "; ".join([", ".join(parts), ", ".join(rest)]).strip("; ")
    return f"{row['first']} and {row['second']}, {counted(row['benchmarks'], 'benchmark')}: {text}."
