"""The verdict of a policy over its tiers: as codes, and in words with a next step for each check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.gate import decision as said
from lmemtest.bench.gate.decision import CANNOT_SAY, NOT_WORSE, WORSE
from lmemtest.bench.gate.policy import ADVISORY, CRITICAL, FAIL, INSUFFICIENT, PASS, SUPPORTING, Policy
from lmemtest.core.result import Answer
from lmemtest.core.words import (
    capitalised,
    counted,
    format_level,
    format_number,
    joined,
    p_text,
    percent,
    plural,
    sentence,
)

VERDICTS = {NOT_WORSE: PASS, WORSE: FAIL, CANNOT_SAY: INSUFFICIENT}
SHOWN = ("tier", "metric", "rule", "estimate", "bound", "limit", "verdict", "next_step")


def over_tiers(decisions: Sequence[str], tiers: Sequence[str], failures: int) -> str:
    """The decision of all checks, where so many failures of supporting ones block.

    >>> over_tiers([NOT_WORSE, WORSE, NOT_WORSE], [CRITICAL, SUPPORTING, SUPPORTING], 2)
    'not worse'
    """
    critical, supporting = (
        [decision for decision, of in zip(decisions, tiers, strict=True) if of == tier]
        for tier in (CRITICAL, SUPPORTING)
    )
    if WORSE in critical or supporting.count(WORSE) >= failures:
        return WORSE
    enough = supporting.count(NOT_WORSE) > len(supporting) - failures
    return NOT_WORSE if set(critical) <= {NOT_WORSE} and enough else CANNOT_SAY


def with_verdicts(gate: Answer, policy: Policy, absent: tuple[str, ...]) -> Answer:
    """The answer with the verdict of each check and of all, and what would settle it; `absent` are required tasks."""
    rows = gate.metrics.to_dict("records")
    for row, check in zip(rows, policy.checks, strict=True):
        if "bar" in check:
            row["rule"] = f"{percent(row['share'])} of runs at {_at_bar(row)}"
            row["estimate"], row["limit"] = row["new"], row["share"]
        else:
            size, relative = check["margin"]
            row["rule"] = f"less than {percent(size) if relative else format_number(size)} worse"
            row["estimate"], row["limit"] = row["difference"], -row["margin"]
        row["bound"], row["verdict"] = row["ci_low"], VERDICTS[row["decision"]]
        row["next_step"] = _next_step(gate, row)
    table, verdict = pd.DataFrame(rows), VERDICTS[gate.decision]
    shown = {"decision": verdict, "absent": ", ".join(absent)}
    allowed = f"allow = ['missing'] in {policy.where}"
    return replace(
        gate,
        title=f"Gate: {verdict}, {said.over_where(gate)}",
        tables={**gate.tables, "metrics": table, "decision": gate.to_frame("decision").assign(**shown)},
        values={**gate.values, "decision": verdict, "absent": absent},
        printed=table[[*SHOWN]],
        facts=_facts(gate, policy),
        findings=(
            _headline(gate, rows),
            *(f"{capitalised(row['tier'])}, {_on_check(gate, row)}" for row in rows),
            *filter(None, (said.on_broken(gate, row) for row in rows)),
            *said.on_failures(gate),
            *said.on_missing(gate, allowed),
            *([f"Required, without scores of both versions: {joined(absent)}. Run them."] if absent else []),
            *_to_settle(gate, rows),
        ),
    )


def _facts(gate: Answer, policy: Policy) -> tuple[str, ...]:
    tiers, m = gate.metrics["tier"], policy.supporting_failures
    n_supporting = int(tiers.eq(SUPPORTING).sum())
    levels = (
        f"Critical checks all have to pass, each tested at {percent(gate.alpha)}." if CRITICAL in set(tiers) else ""
    )
    if n_supporting:
        each = f"each tested at {percent(policy.level_of(SUPPORTING))}"
        levels += f" It takes {m} failing ones of {counted(n_supporting, 'supporting check')} to block, {each}."
    advisory = " Advisory checks decide nothing." if ADVISORY in set(tiers) else ""
    return (
        f"estimate: of a margin how much better {gate.new} is, of a bar the share of runs that reach it; bound: its "
        "one-sided lower bound, at the level of the check. A check passes where its bound is above its limit.",
        f"{levels.strip()} Failures are adjusted by Holm's method over the checks that can block.{advisory}",
        *filter(None, (gate.look,)),
    )


def _headline(gate: Answer, rows: list[dict[Any, Any]]) -> str:
    of = {tier: [row for row in rows if row["tier"] == tier] for tier in (CRITICAL, SUPPORTING)}
    if gate.decision == NOT_WORSE:
        passed = (
            f"{sum(row['verdict'] == PASS for row in part)} of {counted(len(part), f'{tier} check')}"
            for tier, part in of.items()
            if part
        )
        return f"Pass: {joined(passed)} passed."
    if gate.decision == WORSE:
        failing = [f"{row['metric']} ({row['tier']})" for tier in of.values() for row in tier if row["verdict"] == FAIL]
        return f"Fail: {joined(failing)}."
    unsettled = [
        f"{row['metric']} ({row['tier']})" for row in rows if row["tier"] != ADVISORY and row["verdict"] == INSUFFICIENT
    ]
    reason = f"these runs do not settle {joined(unsettled)}" if unsettled else "scores are missing"
    return f"Insufficient: {reason}."


def _on_check(gate: Answer, row: dict[Any, Any]) -> str:
    if row["reason"] or np.isnan(row["bar"]):
        return said.on_metric(gate, row)
    units = (
        f"{int(row['n']):,} runs" if row["unit"] == "run" else f"the runs on {int(row['n']):,} {plural(row['unit'])}"
    )
    limits = f"limits {percent(row['ci_low'])} and {percent(row['ci_high'])}"
    text = f"{row['metric']}: {percent(row['new'])} of {units} are at {_at_bar(row)} ({limits})"
    required = f"{percent(row['share'])} required"
    if row["decision"] == NOT_WORSE:
        return f"{text}, {required}: shown ({p_text(row['p_not_worse'])})."
    if row["decision"] == WORSE:
        return f"{text}, {required}: fewer are shown ({p_text(row['p_worse'])})."
    return f"{text}, {required}: neither shown nor excluded."


def _at_bar(row: dict[Any, Any]) -> str:
    return f"{format_number(row['bar'])} or {'more' if row['direction'] == 'maximize' else 'less'}"


def _next_step(gate: Answer, row: dict[Any, Any]) -> str:
    """What to do about a check that does not pass."""
    if row["decision"] == NOT_WORSE:
        return ""
    if row["reason"]:
        return sentence(row["reason"])
    if row["decision"] == WORSE:
        place = gate.tasks[gate.tasks["metric"] == row["metric"]].reset_index(drop=True)
        lost = format_level(place["task"].iloc[int(place["difference"].argmin())]) if len(place) else ""
        return f"Look at {lost}, which lost most." if np.isnan(row["bar"]) else "Look at the runs that miss the bar."
    if row["doubt"]:
        return "See the notes."
    more, unit = row["n_needed"] - row["n"], plural(row["unit"])
    if np.isnan(more):
        return f"More {unit} alone would not settle it."
    if planned := said.at_the_end(gate, row):
        return planned
    if more <= 0:
        return f"So many {unit} let equal versions pass: there may be a loss, and more would tell."
    return f"Run {said.further_units(gate, row)}."


def _to_settle(gate: Answer, rows: list[dict[Any, Any]]) -> tuple[str, ...]:
    """How many further tasks or runs settle every check that can block and is open."""
    open_checks = [row for row in rows if row["tier"] != ADVISORY and row["decision"] == CANNOT_SAY]
    if gate.n_end is not None or gate.decision != CANNOT_SAY or not open_checks:
        return ()  # a plan is kept: each check says whether it has units enough
    if not all(row["n_needed"] > row["n"] for row in open_checks):
        return ()
    open_checks.sort(key=lambda row: row["n_needed"] - row["n"])
    most = {(row["unit"], np.isnan(row["bar"])): row for row in open_checks}  # the last of each kind
    further = joined(said.further_units(gate, row) for row in most.values())
    truths = dict.fromkeys(
        "the versions are equal" if np.isnan(row["bar"]) else "shares are those seen here" for row in open_checks
    )
    power = f"power {percent(gate.power)}{said.IN_ERROR * any(np.isnan(row['bar']) for row in open_checks)}"
    return (f"To settle it: {further}, if {joined(truths)} and scores vary as here ({power}).",)
