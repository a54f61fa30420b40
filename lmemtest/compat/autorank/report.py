"""The report as text: what was tested and why, each population, what differs; every number from the result.

Its words are in templates/report.j2.
"""

from __future__ import annotations

import importlib
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.compat.autorank.decisions import decisions, differ, distinct, is_significant
from lmemtest.compat.autorank.result import UNDEFINED, RankResult, check, check_result
from lmemtest.core.prose import paragraphs, unescaped
from lmemtest.core.rounding import below, written
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = ("ttest", "wilcoxon", "anova", "friedman", "lmem", "bayes")
EFFECT_NAMES = {"cohen_d": "Cohen's d", "cliff_delta": "Cliff's delta", "akinshin_gamma": "Akinshin's gamma"}
# Of a column of centres: its symbol, and the column and symbol of the spread beside it.
CENTRES = {"mean": ("M", "std", "SD"), "median": ("MD", "mad", "MAD")}


def report_text(result: RankResult, *, decimal_places: int = 3) -> str:
    """The report that `create_report` prints, one line per step of the analysis."""
    check_result(result)
    check(decimal_places=decimal_places)
    if result.omnibus not in TESTS:
        raise ArgumentError(f"result.omnibus must be {' or '.join(map(repr, TESTS))}, got {result.omnibus!r}.")
    least = 10.0 ** -int(decimal_places)

    def number(value: Any) -> str:
        return written(np.nan if value is None else float(value), f".{int(decimal_places)}f")

    def p(value: Any) -> str:
        """A p-value with its sign, never as zero."""
        if value is None or np.isnan(value):
            return "p not defined"
        return f"p<{number(least)}" if below(value, least) else f"p={number(value)}"

    table, names = result.rankdf, distinct(result.rankdf.index)
    centre = next((name for name in CENTRES if name in table.columns), "")
    lines = paragraphs(
        "lmemtest.compat.autorank",
        "report.lines",
        result=result,
        names=names,
        centre=centre,
        values=table[centre or "meanrank"].tolist() if centre or "meanrank" in table else [],
        has_ranks="meanrank" in table.columns,
        normality=_normality(result, names, p),
        described=_described(result, names, centre, number),
        rejects=is_significant(result),
        version=importlib.import_module("lmemtest").__version__,
        **(_posterior(result, names) if result.omnibus == "bayes" else _differences(result, names)),
        number=number,
        p=p,
        UNDEFINED=UNDEFINED,
    )
    return "\n".join(map(unescaped, lines))


def _normality(result: RankResult, names: list[str], p: Callable[[Any], str]) -> dict[str, list[str]] | None:
    """What the Shapiro-Wilk tests found; None without their p-values."""
    if result.omnibus == "lmem" or result.pvals_shapiro is None or len(result.pvals_shapiro) != len(names):
        return None
    tested = list(zip(names, result.pvals_shapiro, strict=True))
    return {
        "rejected": [f"{name} ({p(value)})" for name, value in tested if below(value, result.alpha_normality)],
        "constant": [name for name, value in tested if np.isnan(value)],
    }


def _described(result: RankResult, names: list[str], centre: str, number: Callable[[Any], str]) -> list[str]:
    """Every population with its centre, interval, spread and mean rank, best first."""
    rows, has_ranks = result.rankdf.to_dict("records"), "meanrank" in result.rankdf.columns
    described = []
    for name, row in zip(names, rows, strict=True):
        parts = [f"MR={number(row['meanrank'])}"] if has_ranks else []
        if centre:
            symbol, spread, of_spread = CENTRES[centre]
            interval = f"[{number(row['ci_lower'])}, {number(row['ci_upper'])}]"
            parts[:0] = [f"{symbol}={number(row[centre])} {interval}", f"{of_spread}={number(row[spread])}"]
        described.append(f"{name} ({', '.join(parts)})")
    by_hand = has_ranks and rows[0]["meanrank"] > rows[-1]["meanrank"]
    return described[::-1] if by_hand else described


def _differences(result: RankResult, names: list[str]) -> dict[str, Any]:
    """Groups of populations that do not differ significantly, and effect sizes beside the first."""
    effects = []
    if {"effect_size", "magnitude"} <= set(result.rankdf.columns):
        effects = result.rankdf[["effect_size", "magnitude"]].set_axis(["size", "word"], axis=1).to_dict("records")
    groups = [joined(group, len(group)) for group in decisions(result).groups if len(group) > 1]
    return {
        "groups": groups,
        "some_differ": bool(differ(result).any()),
        "kind": EFFECT_NAMES.get(result.effect_size or "", ""),
        "effects": effects,
        "effects_of_others": list(zip(names, effects, strict=False))[1:],
    }


def _posterior(result: RankResult, names: list[str]) -> dict[str, Any]:
    """Decisions about the pairs, from the matrix of decisions."""
    if result.decision_matrix is None:
        return {"posterior": dict.fromkeys(("larger", "equal", "undecided"), ())}
    cells, pairs = result.decision_matrix.to_numpy(dtype=object), list(combinations(range(len(names)), 2))
    smaller = {
        name: [names[j] for j in np.flatnonzero(row == "smaller")] for name, row in zip(names, cells, strict=True)
    }
    equal, undecided = (
        [f"{names[i]} and {names[j]}" for i, j in pairs if cells[i, j] == decision]
        for decision in ("equal", "inconclusive")
    )
    larger = [(name, others) for name, others in smaller.items() if others]
    all_undecided = len(undecided) == len(pairs)
    return {"posterior": {"larger": larger, "equal": equal, "undecided": undecided, "all_undecided": all_undecided}}
