"""An anytime comparison in sentences, each of which names whom it compares and over which budgets."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import below, written
from lmemtest.words import format_number, listed, p_text

if TYPE_CHECKING:
    from lmemtest.studies.budget.anytime import Anytime

_NAMED = 8  # algorithms in a sentence


def best_sentences(result: Anytime) -> list[str]:
    """Who is shown to be better than all others, from which budget to which."""
    rows = result.best.to_dict("records")
    shown = [(best, list(group)) for best, group in groupby(rows, key=lambda row: row["best"]) if isinstance(best, str)]
    if not shown:
        return [f"At no {result.budget} is one algorithm shown to be better than all others."]
    return [_best_sentence(result, best, stretch) for best, stretch in shown]


def _best_sentence(result: Anytime, best: str, stretch: list[dict[Any, Any]]) -> str:
    """About neighbouring rows of `result.best` with the same best."""
    where = _over(result, stretch)
    if all(len(row["compared"]) == len(result.algorithms) for row in stretch):
        return f"{best} is better than all others {where}."
    places: dict[str, list[str]] = {}  # where each is compared: the names
    for name in result.algorithms:
        rows = [row for row in stretch if name in row["compared"]]
        if rows and name != best:
            places.setdefault(_over(result, rows), []).append(name)
    start = f"{where[0].upper()}{where[1:]} {best} is better than all others that have scores there"
    if list(places) == [where]:
        return f"{start}: {listed(places[where], most=_NAMED)}."
    parts = [
        f"{listed(names, most=_NAMED)} {'throughout' if place == where else place}"
        for place, names in sorted(places.items(), key=lambda item: item[0] != where)
    ]
    return f"{start}: {'; '.join(parts)}."


def _over(result: Anytime, rows: list[dict[Any, Any]]) -> str:
    return range_text(result, rows[0]["budget_from"], rows[-1]["budget_to"])


def stretch_sentences(result: Anytime) -> list[str]:
    """Who is better than whom, from which budget to which."""
    if result.stretches.empty:
        return ["No pair of algorithms is shown to differ at any budget."]
    return [
        f"{row['better']} is better than {row['worse']} "
        f"{range_text(result, row['budget_from'], row['budget_to'])} (by {format_number(abs(row['largest']))} at "
        f"{written(row['at'], '.4g')}, where the difference is largest)."
        for row in result.stretches.to_dict("records")
    ]


def overall_sentences(result: Anytime) -> list[str]:
    """Who is better on average over the budgets that both have."""
    how = " (log scale)" if result.model.scale == "log" else ""
    sure = result.overall[below(result.overall["p_value"], 1.0 - result.level)]
    if sure.empty:
        ranges = result.overall[["budget_from", "budget_to"]].drop_duplicates().to_numpy(dtype=float)
        where = (
            _mean_over(result, *ranges[0]) if len(ranges) == 1 else f"over the range of {result.budget} that both have"
        )
        return [f"Averaged {where}{how}, no pair is shown to differ."]
    out = []
    for row in sure.to_dict("records"):
        names = (row["left"], row["right"])
        better, worse = names if (row["estimate"] < 0) == (result.direction == "minimize") else names[::-1]
        out.append(
            f"Averaged {_mean_over(result, row['budget_from'], row['budget_to'])}{how}, {better} is better than "
            f"{worse} by {format_number(abs(row['estimate']))} ({p_text(row['p_value'])})."
        )
    return out


def _mean_over(result: Anytime, low: float, high: float) -> str:
    return f"over {result.budget} {written(low, '.4g')} to {written(high, '.4g')}"


def range_text(result: Anytime, low: float, high: float) -> str:
    """A range of budgets in words."""
    if np.isclose(low, high, rtol=1e-9):
        return f"at {result.budget} {written(low, '.4g')}"
    if np.isclose(low, result.budgets[0], rtol=1e-9) and np.isclose(high, result.budgets[-1], rtol=1e-9):
        return f"at all budgets ({result.budget} {written(low, '.4g')} to {written(high, '.4g')})"
    return f"from {result.budget} {written(low, '.4g')} to {written(high, '.4g')}"
