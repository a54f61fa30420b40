"""A gate that is looked at while tasks are added: planned looks, or e-values that hold at any time.

With planned looks a version is judged at the level that O'Brien-Fleming-like spending gives the look that the tables
are. E-values of one-sided t-tests at the border hold however often one looks, as long as tasks are only added: "not
worse" and "worse" are each wrong at some look with probability alpha at most. A ledger holds the looks, refuses tables
that lost tasks or changed them, and keeps what was shown before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.gate.difference import LIKE_THESE
from lmemtest.bench.looks.ledger import LOOK, add_to_ledger, ledger_path, read_ledger
from lmemtest.bench.looks.schedule import EXPECTED, METHODS
from lmemtest.core.caller import named, setting
from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, format_level, listed
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.lmm.sequential.evalues import critical_one_sided, log_evalue
from lmemtest.lmm.sequential.successive_t import level_of_look, planned_among, require_level

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.gate.policy import Policy

EVALUE = "evalue"
SHOWN_SO_FAR = ("p_not_worse", "p_worse")


def check_looks(looks: Any, method: Any, ledger: Any, rules: Policy, families: bool) -> Path | None:
    """Refuse what looks are not for; the path of the ledger."""
    if looks is None and method is None and ledger is None:
        return None
    method = check_choice(METHODS[0] if method is None else method, "method", METHODS)
    if (method == EVALUE) == (looks is not None):
        raise ArgumentError(
            f"{named('looks')} are numbers of tasks at planned looks; {setting('method', EVALUE)} needs no plan. Give "
            "one of them."
        )
    if ledger is not None and method != EVALUE:
        raise ArgumentError(f"{named('ledger')} holds looks without a plan: {setting('method', EVALUE)}.")
    bars = any("bar" in check for check in rules.checks)
    for what, given in (("tasks = 'these'", rules.tasks != LIKE_THESE), ("max_broken", rules.max_broken is not None),
                        ("a bar", bars), ("family", families)):  # fmt: skip
        if given:
            raise ArgumentError(f"looks are for means over tasks that are added, without {what}: leave that out.")
    return None if ledger is None else ledger_path(ledger)


def level_at(looks: Any, places: Mapping[str, pd.DataFrame], alpha: float) -> tuple[float, str]:
    """The level of one-sided tests at this one of several planned looks, and what to say of it."""
    n, *others = sorted({len(place) for place in places.values()})
    if others:
        raise ArgumentError(
            f"{named('looks')} are of the same tasks by every metric, and these tables have {n} and {others[-1]}. Give "
            "the metrics of the same tasks."
        )
    sizes = planned_among(looks, n, "tasks", "these tables")
    level = 0.5 * require_level(level_of_look(n, sizes, 2.0 * alpha), n, sizes, "tasks")
    return level, f"Look {sizes.index(n) + 1} of {len(sizes)} that are planned, by spending of {alpha:g}."


def at_any_time(above: float, gain: float, se: float, df: float, alpha: float) -> dict[str, float]:
    """p-values and half width of bounds that hold at every look; `above` is how far the gain is above the border."""
    n = df + 1.0
    p_values = np.exp(np.minimum(0.0, -log_evalue(np.array([above, -above, -gain]) / se, n, EXPECTED, one_sided=True)))
    return {**dict(zip((*SHOWN_SO_FAR, "p_any_loss"), p_values.tolist(), strict=True)),
            "half": critical_one_sided(alpha, n, EXPECTED) * se}  # fmt: skip


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
    same = bool(looks) and all(nested)
    for i, row in enumerate(rows):
        judged = [name for name in SHOWN_SO_FAR if name == "p_worse" or np.isfinite(row[name])]
        for name in judged:  # what cannot be judged now does not pass by an earlier look
            row[name] = min(
                [row[name], *(seen["rows"][i].get(name, 1.0) for seen in looks)], key=lambda p: (np.isnan(p), p)
            )
        if not checks[i]["margin"][1]:  # bounds that hold at every look hold together; a relative margin moves
            row["ci_low"] = max([row["ci_low"], *(seen["rows"][i].get("ci_low", -np.inf) for seen in looks)])
            row["ci_high"] = min([row["ci_high"], *(seen["rows"][i].get("ci_high", np.inf) for seen in looks)])
    if not same:
        kept = (*SHOWN_SO_FAR, "ci_low", "ci_high")
        seen = [{name: row[name] for name in kept if np.isfinite(row[name])} for row in rows]
        add_to_ledger(path, plan, {LOOK: {**look, "rows": seen}})
    return len(looks) + (not same)


def _nested(metric: str, last: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Refuse tables that do not hold the tasks of the last look, unchanged; whether they are just these."""
    found = dict(zip(now["tasks"], now["difference"], strict=True))
    lost = [task for task in last["tasks"] if task not in found]
    if lost:
        raise NestingError(
            f"{counted(len(lost), 'task')} of the last look {'is' if len(lost) == 1 else 'are'} not in these tables: "
            f"{listed(lost)}. Looks go forward: give all runs of the last look and the new ones."
        )
    scale = tolerance([*found.values(), *last["difference"]])
    for task, was in zip(last["tasks"], last["difference"], strict=True):
        if not abs(found[task] - was) <= scale:
            raise NestingError(
                f"the difference of {metric} on {task} is not that of the last look. Looks must be nested: add tasks, "
                "and leave the runs on earlier ones as they were."
            )
    return len(found) == len(last["tasks"])
