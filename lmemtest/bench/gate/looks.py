"""A gate that is looked at while tasks are added: planned looks, or e-values that hold at any time.

With planned looks a version is judged at the level that O'Brien-Fleming-like spending gives the look that the tables
are. E-values of one-sided t-tests at the border hold however often one looks, as long as tasks are only added: "not
worse" and "worse" are each wrong at some look with probability alpha at most. A ledger holds the looks, refuses tables
that lost tasks or changed them, and keeps what was shown before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.gate.difference import LIKE_THESE
from lmemtest.bench.looks.ledger import LOOK, add_to_ledger, ledger_path, read_ledger, require_kept
from lmemtest.bench.looks.schedule import EXPECTED, METHODS
from lmemtest.core.caller import named, setting
from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.lmm.sequential.evalues import critical_one_sided, log_evalue
from lmemtest.lmm.sequential.spending import SPENDING_NAMES
from lmemtest.lmm.sequential.successive_t import level_of_look, planned_among, require_level

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.gate.policy import Policy
    from lmemtest.core.arrays import Array

EVALUE = "evalue"
SHOWN_SO_FAR = ("p_not_worse", "p_worse")
ABOVE = ("above_low", "above_high")  # bounds of how far the gain is above the border


def check_looks(planned: bool, method: Any, ledger: Any, rules: Policy, families: bool) -> Path | None:
    """Refuse what looks are not for; the path of the ledger."""
    if not planned and method is None and ledger is None:
        return None
    method = check_choice(METHODS[0] if method is None else method, "method", METHODS)
    if (method == EVALUE) == planned:
        raise ArgumentError(
            f"{named('looks')} are numbers of tasks at planned looks, or {named('maximum')} that at the end; "
            f"{setting('method', EVALUE)} needs no plan. Give one of them."
        )
    if ledger is not None and method != EVALUE:
        raise ArgumentError(f"{named('ledger')} holds looks without a plan: {setting('method', EVALUE)}.")
    once = "ask for it once, at the last look, in a gate of its own"
    bars = any("bar" in check for check in rules.checks)
    for given, what, step in (
        (rules.tasks != LIKE_THESE, "tasks = 'these'", "leave it out, or look once"),
        (rules.max_broken is not None, "max_broken", once),
        (bars, "a bar", once),
        (families and method == EVALUE, "e-values over families", f"plan numbers of families, {named('looks')}"),
    ):
        if given:
            raise ArgumentError(f"looks are at means over tasks that are added, without {what}: {step}.")
    return None if ledger is None else ledger_path(ledger)


def level_at(
    counts: Iterable[int], units: str, alpha: float, n_tests: int, *, looks: Any, maximum: Any, spending: str
) -> tuple[float, float, int, str]:
    """The level of one-sided tests at this one of several looks, that at the end, the units there, and what to say.

    Each of `n_tests` that are adjusted for one another spends for itself, as pairs do (`level_of_pairs`).
    """
    n, *others = sorted(set(counts))
    if others:
        raise ArgumentError(
            f"looks are at the same {units} by every metric, and these tables have {n} and {others[-1]}. Give the "
            f"metrics of the same {units}."
        )
    sizes, place = planned_among(looks, maximum, n, units, "these tables")
    levels = [level_of_look(size, sizes, 2.0 * alpha / n_tests, spending) for size in (n, sizes[-1])]
    require_level(levels[0], n, sizes, units)
    now, at_end = (0.5 * n_tests * level for level in levels)
    return now, at_end, sizes[-1], f"{place}, by {SPENDING_NAMES[spending]} spending of {alpha:g}."


def at_any_time(above: Array, gains: Array, margin: float, alpha: float) -> dict[str, float]:
    """The numbers of a metric that hold at every look: of t-tests over the means of tasks.

    `above` and `gains` are how far the new version is above the border, and above the old one, on each task.
    """
    n, (mean, gain), (se, se_gain) = len(above), *((f(above), f(gains)) for f in (np.mean, _standard_error))
    ratios = np.array([mean / se, -mean / se, -gain / se_gain])
    p_values = np.exp(np.minimum(0.0, -log_evalue(ratios, n, EXPECTED, one_sided=True)))
    half = critical_one_sided(alpha, n, EXPECTED) * se
    return {
        **dict(zip((*SHOWN_SO_FAR, "p_any_loss"), p_values.tolist(), strict=True)),
        "difference": float(gain),
        "se": se,
        "df": n - 1.0,
        "ci_low": float(mean - half - margin),
        "ci_high": float(mean + half - margin),
    }


def _standard_error(x: Array) -> float:
    return float(x.std(ddof=1) / np.sqrt(len(x)))


def with_earlier_looks(
    path: Path,
    rows: Sequence[dict[str, Any]],
    places: Mapping[str, pd.DataFrame],
    checks: Sequence[Mapping[str, Any]],
    alpha: float,
) -> int:
    """Note this look, and give the rows the smallest p-values and tightest bounds so far; which look this is."""
    rules = [[check["tier"], check["metric"], *check["margin"]] for check in checks]
    plan = {"gate": rules, "alpha": alpha}
    made, looks, _ = read_ledger(path, "gate")
    if made is not None and made != plan:
        raise ArgumentError(
            f"the rules were made at the first look and are kept: they were {made}, and are {plan} now."
        )
    known = {name: place[np.isfinite(place["difference"].to_numpy(dtype=float))] for name, place in places.items()}
    look = {
        name: {"tasks": [*map(format_level, place["task"])], "difference": [*map(float, place["difference"])]}
        for name, place in known.items()
    }
    nested = [_nested(name, looks[-1][name], look[name]) for name in look if looks]  # each is checked
    same, noted = bool(looks) and all(nested), []
    for i, row in enumerate(rows):
        if checks[i]["margin"][1] and any(seen["rows"][i].get("old", row["old"]) * row["old"] < 0.0 for seen in looks):
            raise NestingError(
                f"the mean {row['metric']} of the old version has changed its sign since an earlier look, and with it "
                "what a share of it is. Begin again with a margin in the unit of the score."
            )
        judged = [name for name in SHOWN_SO_FAR if name == "p_worse" or np.isfinite(row[name])]
        for name in judged:  # what cannot be judged now does not pass by an earlier look
            row[name] = min(
                [row[name], *(seen["rows"][i].get(name, 1.0) for seen in looks)], key=lambda p: (np.isnan(p), p)
            )
        bounds = row["ci_low"] + row["margin"], row["ci_high"] + row["margin"]
        noted.append({name: row[name] for name in (*SHOWN_SO_FAR, "old")} | dict(zip(ABOVE, bounds, strict=True)))
        # bounds that hold at every look hold together, above the border: a relative margin moves with the old version
        row["ci_low"] = max([bounds[0], *(seen["rows"][i].get(ABOVE[0], -np.inf) for seen in looks)]) - row["margin"]
        row["ci_high"] = min([bounds[1], *(seen["rows"][i].get(ABOVE[1], np.inf) for seen in looks)]) - row["margin"]
    if not same:
        seen = [{name: value for name, value in row.items() if np.isfinite(value)} for row in noted]
        add_to_ledger(path, plan, {LOOK: {**look, "rows": seen}})
    return len(looks) + (not same)


def _nested(metric: str, last: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Refuse tables that do not hold the tasks of the last look, unchanged; whether they are just these."""
    found = dict(zip(now["tasks"], now["difference"], strict=True))
    require_kept(last["tasks"], found, "task", "these tables")
    scale = tolerance([*found.values(), *last["difference"]])
    for task, was in zip(last["tasks"], last["difference"], strict=True):
        if not abs(found[task] - was) <= scale:
            raise NestingError(
                f"the difference of {metric} on {task} is not that of the last look. Looks must be nested: add tasks, "
                "and leave the runs on earlier ones as they were."
            )
    return len(found) == len(last["tasks"])
