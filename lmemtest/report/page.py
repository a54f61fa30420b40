"""What a page shows of a variant of an analysis, as values of JSON, and how a state is written in an address.

Every number is that of `variant`, in the words of the report; the explorer asks for a variant when it is looked at, the
file of a report holds those that were asked for when it was written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.modelling.recommend import POPULATIONS
from lmemtest.bench.robustness.variants import pairs_of
from lmemtest.core.caller import Controls
from lmemtest.core.options import (
    ADJUSTMENT_NAMES,
    CURVE_CHOICES,
    DDF_METHODS,
    DDF_NAMES,
    ERROR_NAMES,
    REPORT_ADJUSTMENTS,
    VCOV,
)
from lmemtest.core.sanitize import one_line
from lmemtest.core.words import format_level, format_number
from lmemtest.lmm.means.comparisons import intervals_text
from lmemtest.report.document import Text, Words
from lmemtest.report.first_screen import bare_verdict, ranking_table
from lmemtest.report.leaders import leaders, left_out

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.lmm.model import LmmFit
    from lmemtest.report.analysis import Analysis

CHOICES = {
    "scale": METHODS,
    "population": POPULATIONS,
    "curves": CURVE_CHOICES,
    "adjust": REPORT_ADJUSTMENTS,
    "vcov": VCOV,
    "ddf": DDF_METHODS,
}
# The controls of the explorer by argument of `variant`: their titles, and how values read that are not words.
CONTROLS: Controls = {
    "scale": ("score scale", {"normalized_regret": "normalized regret"}),
    "population": (
        "claims about",
        {"family": "new families", "benchmark": "new benchmarks", "run": "these benchmarks"},
    ),
    "curves": ("curves over the budget", {}),
    "adjust": ("adjustment", {}),
    "vcov": ("standard errors", ERROR_NAMES),
    "ddf": ("degrees of freedom", DDF_NAMES),
    "alpha": ("alpha", {}),
    "reference": ("reference", {}),
    "formula": ("formula of your own", {}),
    "direction": ("better scores", {}),
}
TESTS = ("alpha", "adjust", "vcov", "ddf")  # arguments of `variant` that need no other fit
# Fields of an analysis that its pairs do not need.
NOT_ASKED: dict[str, Any] = {
    **dict.fromkeys(("check", "joint", "effects", "diagnosing", "trials", "agreement", "on_ranks", "undeclared")),
    **dict.fromkeys(("populations", "sensitivity")),
    "interactions": {},
}


def fields_of(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields of an address for a state, in one order."""
    fields: list[tuple[str, str]] = [(f"role.{column}", role) for column, role in sorted(state.get("role", {}).items())]
    for place in ("without", "only"):
        for column, levels in sorted(state.get(place, {}).items()):
            fields += [(f"{place}.{column}", text) for text in sorted(map(format_level, levels))]
    for name in (*CHOICES, "direction", "alpha", "formula", "reference"):
        value = state.get(name)
        fields += [] if value is None else [(name, str(value))]
    return fields


def query_of(state: Mapping[str, Any]) -> str:
    """The address of a state: the query of the page that shows it."""
    return urlencode(fields_of(state))


def reanalysed(
    refit: tuple[Runs, Answer, LmmFit, list[str]],
    arguments: Mapping[str, Any],
    state: Mapping[str, Any],
    scaled: str = "",
) -> tuple[dict[str, Any], list[str]]:
    """The fields of an `Analysis` by arguments of `variant` as far as its pairs need them, and what is not as planned.

    `refit` is what `refitted` gives for these arguments without `TESTS`, `state` has those that are not as planned;
    `scaled` is a score made before.
    """
    part, model, fit, changes = refit
    changes = [*changes]
    pairs = replace(pairs_of(fit, part, {"alpha": 0.05, **arguments}), direction=part.direction)
    if scaled:
        changes.insert(sum(len(arguments.get(place, ())) for place in ("without", "only")), f"by {scaled}")
    if arguments.get("population") is not None and "population" not in state:
        changes.pop()  # what it is about is as planned
    own = arguments.get("formula") is not None
    fields = {
        "runs": part if own else model.runs,
        "table": part,
        "recommendation": model,
        "own_formula": own,
        "fit": fit,
        "pairs": pairs,
        "decisions": pairs.decisions(alpha=pairs.alpha, direction=part.direction),
    }
    return {**fields, **NOT_ASKED}, [*changes, *options_in_words(state)]


def shown(analysis: Analysis, reference: str | None = None) -> dict[str, Any]:
    """Verdict, ranking and forest of an analysis: texts beside the values that give their places."""
    levels = analysis.decisions.levels
    reference = reference if reference in levels else None
    columns = (table := ranking_table(analysis, reference)).rendered()
    text = dict(zip(columns[0][1], columns[3][1], strict=True))
    decisions = leaders(analysis).decisions
    against = reference or analysis.comparable[0]
    behind = analysis.pairs.leads(against, analysis.runs.direction)
    ends = {name: [number_of(x) for x in behind.get(name, (math.nan,) * 3)[:3]] for name in decisions.levels}
    ends[against] = [0.0, None, None]
    verdicts = decisions.among([*decisions.levels, against])[:-1, -1].tolist()
    return {
        "verdict": parts_of(bare_verdict(analysis)),
        "left_out": left_out(analysis),
        "levels": list(decisions.levels),
        "ranking": {
            "title": table.title,
            "notes": list(table.notes),
            "columns": [name for name, *_ in columns],
            "right": [right for *_, right in columns],
            "rows": [list(row) for row in zip(*(cells for _, cells, _ in columns), strict=True)],
        },
        "forest": {
            "what": f"Difference to {against}, positive: worse ({intervals_text(analysis.pairs)})",
            "reference": against,
            "rows": [
                {"name": name, "ends": ends[name], "text": text.get(name, ""), "code": code}
                for name, code in zip(decisions.levels, verdicts, strict=True)
            ],
            "ticks": ticks_of([x for row in ends.values() for x in row]),
        },
    }


def number_of(value: Any) -> float | None:
    """A number as JSON knows it."""
    return float(value) if math.isfinite(value) else None


def ticks_of(values: Iterable[float | None]) -> list[tuple[float, str]]:
    """About five round numbers over the range of some values, as places and texts."""
    finite = [value for value in values if value is not None]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = high - low
    if not span > 0.0:
        return [(low, format_number(low))]
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = power * next(factor for factor in (1, 2, 5, 10) if 4 * factor * power >= span * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(i * step, f"{i * step + 0.0:,.{decimals}f}") for i in range(first, math.floor(high / step + 1e-9) + 1)]


def parts_of(paragraphs: Iterable[Text]) -> list[list[Any]]:
    """Texts with what stands out in them."""
    return [[[p.text, p.role] if isinstance(p, Words) else p for p in text] for text in paragraphs]


def options_in_words(state: Mapping[str, Any]) -> list[str]:
    words = {
        "curves": lambda how: f"of curves the {how}" if how != "model" else "with curves in the model",
        "alpha": lambda alpha: f"at alpha = {alpha:g}",
        "adjust": lambda name: f"with {ADJUSTMENT_NAMES[name]} adjustment",
        "vcov": lambda name: f"with {ERROR_NAMES[name]} standard errors",
        "ddf": lambda name: f"with {DDF_NAMES[name]} degrees of freedom",
        "formula": lambda text: f"by the model {one_line(text)}",
    }
    return [write(state[name]) for name, write in words.items() if state.get(name) is not None]
