"""The decision over one metric or several, in words.

With the gain d of the new version in the good direction of a metric and the margin m > 0, d = -m is the border, and
both claims are about it:

    not worse:   reject d <= -m at level alpha; the lower bound of d is above -m,
    worse:       reject d >= -m at level alpha; the upper bound of d is below -m;

otherwise nothing is said. Where differences are about normal over tasks, a loss within the margin is called worse with
probability alpha at most, however large the study, and more runs settle every case but d = -m itself. What a sample
of tasks cannot show, `rare_losses` says. A difference that is significantly below 0 with bounds on either side of
-m is a loss of unknown importance; it is reported as such and decides nothing (Piaggio et al. 2012).

Over metrics: the version passes if it is not worse on *all* of them, an intersection-union test, in which each metric
is tested at the full alpha (Berger 1982). It fails if it is worse on *any* of them, a union-intersection test, for
which the p-values are adjusted by Holm's method.

References
----------
Piaggio, Elbourne, Pocock, Evans & Altman (2012). Reporting of noninferiority and equivalence randomized trials. JAMA
308(24), doi:10.1001/jama.2012.87802; Berger (1982). Multiparameter hypothesis testing and acceptance sampling.
Technometrics 24(4), doi:10.1080/00401706.1982.10487790; Holm (1979), Scand. J. Stat. 6, 65-70
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.gate.difference import THESE
from lmemtest.bench.gate.policy import ADVISORY
from lmemtest.bench.gate.rare_losses import share_at_most, tasks_for
from lmemtest.bench.gate.versions import TWO_TABLES
from lmemtest.core.caller import advice
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.words import capitalised, format_number, joined, p_text, percent, plural
from lmemtest.lmm.means.adjust import adjust_raw

NOT_WORSE, WORSE, CANNOT_SAY = "not worse", "worse", "cannot say"
IN_ERROR = ", with the error of their variance"  # what the power is that a number of tasks gives
EXIT_CODES = {NOT_WORSE: 0, WORSE: 1, CANNOT_SAY: 2}
SHOWN = ("metric", "decision", "old", "new", "difference", "margin", "ci_low", "ci_high", "p_not_worse", "p_worse")


def decided(table: pd.DataFrame, alpha: float, max_broken: float | None = None) -> pd.DataFrame:
    """The table with adjusted p-values and a decision for each check.

    With columns ``tier`` and ``level`` p-values are adjusted over the checks that can block, and over the others, and a
    check passes at its own level.
    """
    out = table.copy()
    blocks = out["tier"].ne(ADVISORY) if "tier" in out else pd.Series(True, index=out.index)
    for name in ("p_worse", "p_any_loss"):
        for part in (blocks, ~blocks):
            out.loc[part, name] = adjust_raw(out.loc[part, name].to_numpy(dtype=float), "holm", int(part.sum()))
    few = True if max_broken is None else ~below(max_broken, out["broken_high"])
    identical = (out["difference"].eq(0.0) & out["se"].isna()).to_numpy()  # which was allowed
    passed = below(out["p_not_worse"], out.get("level", alpha)) & few | identical
    failed = below(out["p_worse"], alpha)
    out["decision"] = np.select([passed, failed], [NOT_WORSE, WORSE], CANNOT_SAY)
    return out


def with_words(gate: Answer) -> Answer:
    """The answer with its title, the tests, and its sentences: the decision, each metric, what would settle it."""
    level, side = percent(gate.alpha), percent(1.0 - gate.alpha)
    adjusted = ", adjusted by Holm's method over the metrics" if len(gate.metrics) > 1 else ""
    units = "runs" if gate.population == THESE else "tasks"
    broken = "" if gate.max_broken is None else f", and at most {percent(gate.max_broken)} of tasks broken"
    where, rows = over_where(gate), gate.metrics.to_dict("records")
    unseen = (*filter(None, (on_broken(gate, row) for row in rows)), *on_failures(gate))
    metrics = (on_metric(gate, row) for row in rows)
    return replace(
        gate,
        title=f"Gate: {gate.decision}, {where}",
        facts=(
            f"difference: how much better {gate.new} is; ci_low, ci_high: one-sided {side} bounds.",
            f"Not worse: above -margin on every metric, each tested at {level}{broken}. Worse: below -margin on some "
            f"metric, tested at {level}{adjusted}. The tests take differences between {units} as about normal.",
            *filter(None, (gate.look,)),
        ),
        findings=(
            _headline(gate, where),
            *metrics,
            *unseen,
            *on_missing(gate, advice("value", name="allow", value="missing")),
            *_to_settle(gate, rows),
        ),
    )


def over_where(gate: Answer) -> str:
    if gate.n_tasks == 0:
        return "without a common task"
    if gate.n_tasks == 1:
        return "on this task" if gate.population == THESE else "for tasks like this one"
    claims = [claim for claim in gate.metrics["claim"].unique() if claim]
    if claims:
        return f"for {joined(claims)}"
    these = f"these {gate.n_tasks:,}"
    return f"on {these} tasks" if gate.population == THESE else f"for tasks like {these}"


def _headline(gate: Answer, where: str) -> str:
    deciding = gate.metrics.loc[gate.metrics["decision"] == gate.decision, "metric"]
    named = joined(deciding) if len(deciding) else "scores are missing"
    subject = capitalised(gate.new) if gate.new in TWO_TABLES.values() else gate.new
    if gate.decision == NOT_WORSE:
        return f"{subject} is not worse than {gate.old} by the margin or more {where}: {named}."
    if gate.decision == WORSE:
        return f"{subject} is worse than {gate.old} by more than the margin {where}: {named}."
    return f"Cannot say whether {gate.new} is worse than {gate.old} {where}: {named}."


def on_metric(gate: Answer, row: dict[Any, Any]) -> str:
    if row["reason"]:
        return f"{row['metric']}: {row['decision']}; {row['reason']}."
    gain, low, high, margin = (format_number(row[key]) for key in ("difference", "ci_low", "ci_high", "margin"))
    text = f"{row['metric']}: difference {gain} (bounds {low} and {high}), margin {margin}:"
    level = row.get("level", gate.alpha)
    loss = p_text(row["p_any_loss"]) if below(row["p_any_loss"], gate.alpha) else ""
    if row["decision"] == NOT_WORSE:
        less = f", though significantly worse by less than that ({loss})" if loss else ""
        return f"{text} not worse by the margin or more ({p_text(row['p_not_worse'])}){less}."
    if row["decision"] == WORSE:
        return f"{text} worse by more than the margin ({p_text(row['p_worse'])})."
    if row["doubt"]:
        return f"{text} {row['doubt']} decide, so no test excludes a loss of more than the margin."
    if below(row["p_not_worse"], level):
        return f"{text} not worse in the mean ({p_text(row['p_not_worse'])}), and too many tasks may be broken."
    if loss:
        return f"{text} significantly worse ({loss}), and whether by more than the margin is open."
    return f"{text} a loss of more than the margin is neither shown nor excluded."


def on_broken(gate: Answer, row: dict[Any, Any]) -> str:
    """How many tasks lost much, and how many may: where a version passes, or where it was asked for."""
    asked, level = gate.max_broken, row.get("level", gate.alpha)
    if np.isnan(row["broken_high"]) or (asked is None and row["decision"] != NOT_WORSE):
        return ""
    k, n, unit = int(row["n_broken"]), int(row["n"]), row["unit"]
    units, loss, high = plural(unit), format_number(row["broken_loss"]), percent(row["broken_high"])
    lost = "lost" if unit == "task" else "had a task that lost"
    seen = f"{row['metric']}: {k or 'none'} of {n:,} {units} {lost} more than {loss} (means of runs);"
    may = f"up to {high} of {units} like these may ({percent(1.0 - level)})"
    if asked is None:
        adds = ", and so many such losses add up to the margin" if k == 0 else ""
        return f"{seen} {may}{adds}."
    if not below(asked, row["broken_high"]):
        return f"{seen} {may}, at most {percent(asked)} was asked for."
    total = tasks_for(asked, k, level)
    return (
        f"{seen} {may}, more than the {percent(asked)} that was asked for. It takes {total:,} {units} without "
        f"{'another' if k else 'such a'} loss: {total - n:,} more."
    )


def on_failures(gate: Answer) -> tuple[str, ...]:
    """How often runs may fail, beside a version that passes."""
    if gate.decision != NOT_WORSE or not gate.n_runs or gate.look:  # of one look alone
        return ()
    k, n = gate.n_failed or 0, gate.n_runs
    may = f"up to {percent(share_at_most(k, n, gate.alpha))} may ({percent(1.0 - gate.alpha)})"
    if gate.n_failed is None:
        return (f"If none of the {n:,} runs of {gate.new} failed, and runs fail independently, {may}.",)
    return (f"{k or 'None'} of the {n:,} runs of {gate.new} failed; {may}, if runs fail independently.",)


def on_missing(gate: Answer, allowed: str) -> tuple[str, ...]:
    """What the new version lacks; `allowed` is how to decide without."""
    if not gate.missing:
        return ()
    alone = set(gate.metrics["decision"]) == {NOT_WORSE}  # nothing else is open, so a decision without them is one
    step = f" Run them{f', or decide without them: {allowed}' if alone else ''}."
    step = step if gate.decision == CANNOT_SAY else ""
    return (f"No scores of {gate.new} where {gate.old} has some: {joined(gate.missing)}.{step}",)


def further_units(gate: Answer, row: dict[Any, Any]) -> str:
    """How many more of the unit of a metric, or of a bar, settle it."""
    more, of_bar = int(row["n_needed"] - row["n"]), np.isfinite(row.get("bar", np.nan))
    each = " of each version on each task" if gate.population == THESE and not of_bar else ""
    most = "up to " if row["unit"] != "run" and of_bar else ""  # fewer where runs of a task differ
    return f"{most}{more:,} further {row['unit'] if more == 1 else plural(row['unit'])}{each}"


def at_the_end(gate: Answer, row: dict[Any, Any]) -> str:
    """Whether a plan has units enough for a metric, at the level of its last look; empty where nothing is planned."""
    needed, end, units = row["n_needed"], gate.n_end, plural(row["unit"])
    if end is None or np.isnan(needed) or needed <= row["n"] == end:
        return ""
    fewer = "it may stay open. No level is left beyond a plan, so plan more for the next version"
    return (
        f"{int(needed):,} {units} are needed for equal versions to pass at the last look, if scores vary as here "
        f"(power {percent(gate.power)}{IN_ERROR}), and {end:,} are planned: {'go on' if needed <= end else fewer}."
    )


def _to_settle(gate: Answer, rows: list[dict[Any, Any]]) -> tuple[str, ...]:
    """How many further tasks or runs, if the versions are equal."""
    open_means = [row for row in rows if row["decision"] == CANNOT_SAY and np.isfinite(row["p_not_worse"])]
    unsettled = [row for row in open_means if not below(row["p_not_worse"], gate.alpha)]
    if gate.decision != CANNOT_SAY or not unsettled:
        return ()
    units = joined(dict.fromkeys(plural(row["unit"]) for row in unsettled))
    hopeless = [row["metric"] for row in unsettled if np.isnan(row["n_needed"])]
    if hopeless:
        return (f"Further {units} alone would not settle it with this margin: {joined(hopeless)}.",)
    most = max(unsettled, key=lambda row: row["n_needed"] - row["n"])
    if planned := at_the_end(gate, most):
        return (planned,)
    more = int(most["n_needed"] - most["n"])
    power = f"power {percent(gate.power)}"
    if more <= 0:
        return (f"So many {units} let equal versions pass with {power}: there may be a loss, and more would tell.",)
    further = further_units(gate, most)
    return (f"To settle it: {further}, if the versions are equal and scores vary as here ({power}{IN_ERROR}).",)
