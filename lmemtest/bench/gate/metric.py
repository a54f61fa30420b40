"""One metric: its margin, the tests of its difference, and what was observed on each task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from lmemtest.bench.gate.difference import LIKE_THESE, Difference, difference
from lmemtest.bench.gate.more_runs import units_needed
from lmemtest.bench.gate.rare_losses import SAFE, counted_losses, too_skewed
from lmemtest.bench.gate.versions import EVERY, Versions, finite, place_names
from lmemtest.core.caller import advice, named
from lmemtest.core.rounding import below
from lmemtest.core.validate import is_finite
from lmemtest.core.words import format_level, joined, plural
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail

FEW_FAILED = 20  # tasks with failed runs, from which on t-tests of such scores are right
NUMBERS = ("difference", "margin", "se", "df", "ci_low", "ci_high", "p_not_worse", "p_worse", "p_any_loss")
FAILED_RUNS, SKEWED_LOSSES = "a few failed runs", "skewed losses"  # why no test lets a version pass


def margin_of(name: str, margin: Any) -> tuple[float, bool]:
    """The margin of a metric, and whether it is a share of the old version's mean.

    >>> margin_of("accuracy", {"accuracy": "1%"}), margin_of("loss", 0.5)
    ((0.01, True), (0.5, False))
    """
    given = margin.get(name, margin.get(EVERY)) if isinstance(margin, Mapping) else margin
    if given is None and isinstance(margin, Mapping):
        raise ArgumentError(f"{named('margin')} has no margin for {name!r}. Give it one, or {EVERY!r} for all others.")
    value, relative = given, isinstance(given, str) and given.strip().endswith("%")
    if isinstance(given, str):
        try:
            value = float(given.strip().removesuffix("%"))
        except ValueError:
            value = math.nan
    if not is_finite(value) or float(value) <= 0 or (relative and float(value) >= 100):
        raise ArgumentError(
            f"{named('margin')} must be a positive number in the unit of the score, or a percentage of the old "
            f"version's mean such as '1%', got {given!r}. It is the smallest loss that is not acceptable."
        )
    return (float(value) / 100.0, True) if relative else (float(value), False)


def judged(
    name: str,
    rows: pd.DataFrame,
    place: pd.DataFrame,
    versions: Versions,
    *,
    direction: str,
    margin: tuple[float, bool],
    tasks: str,
    alpha: float,
    power: float,
    max_broken: float | None,
    identical: bool,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A row of the table, with p-values that are not yet adjusted; and notes. `place` is what was observed by task."""
    sign = 1.0 if direction == "maximize" else -1.0
    means = [_mean(rows, versions, label) for label in (versions.old, versions.new)]
    out: dict[str, Any] = {"metric": name, "direction": direction, "old": means[0], "new": means[1]}
    out |= {
        **dict.fromkeys(NUMBERS, math.nan),
        "reason": "",
        "claim": "",
        "unit": "",
        "n": math.nan,
        "n_needed": math.nan,
        "broken_loss": math.nan,
        "n_broken": math.nan,
        "broken_high": math.nan,
        "doubt": "",
    }
    size, relative = margin
    out["margin"] = size * abs(means[0]) if relative else size
    reason = _no_question(rows, versions, relative and means[0] == 0)
    if not reason and _alike(rows, versions):
        out["reason"] = _identical(rows, allowed=identical)
        return out | ({"difference": 0.0} if identical else {}), ()
    found = reason or difference(rows, versions, tasks)
    gap = found
    if relative and isinstance(found, Difference):  # the border is a multiple of the old version's mean
        of_old = rows[versions.version] == versions.old
        share = 1.0 - sign * math.copysign(size, means[0])
        gap = difference(rows.assign(score=rows["score"].where(~of_old, share * rows["score"])), versions, tasks)
    if not isinstance(found, Difference) or not isinstance(gap, Difference):
        said = gap if isinstance(found, Difference) else found
        return out | {"reason": _with_step(str(said), tasks)}, ()
    above = sign * gap.estimate + (0.0 if relative else size)  # how far the border is
    half = float(t_quantile(alpha, gap.df)) * gap.se
    p_not_worse = float(upper_tail(above / gap.se, gap.df))
    out |= {
        "difference": sign * found.estimate,
        "se": gap.se,
        "df": gap.df,
        "ci_low": above - half - out["margin"],
        "ci_high": above + half - out["margin"],
        "p_not_worse": p_not_worse,
        "p_worse": float(upper_tail(-above / gap.se, gap.df)),
        "p_any_loss": float(upper_tail(-sign * found.estimate / found.se, found.df)),
        "claim": gap.claim,
        "unit": gap.unit,
        "n": gap.n_units,
    }
    if tasks == LIKE_THESE:
        slope = math.copysign(size, means[0]) if relative else 0.0
        own = pd.DataFrame({"loss": -place["difference"], "gain": place["difference"] + slope * place["old"]})
        units = own.groupby(_units(rows, place, versions, gap), sort=False)
        out |= counted_losses(units["loss"].max(), out["margin"], max_broken, alpha)
        near = bool(below(p_not_worse, alpha)) and above <= SAFE * half
        out["doubt"] = SKEWED_LOSSES if near and too_skewed(units["gain"].mean()) else ""
    if few_failures(place, versions):
        out["doubt"] = FAILED_RUNS
    if out["doubt"]:
        out["p_not_worse"] = math.nan
    needed = units_needed(gap, out["margin"], tasks=tasks, alpha=alpha, power=power)
    notes = [f"{name}: {gap.model}.", *gap.notes]
    if not gap.scales:
        notes.append(
            f"{name}: runs of a version with one seed share its effect over {plural(gap.unit)}, and more of these do "
            "not make it smaller."
        )
    if out["doubt"]:
        notes.append(_on_doubt(name, out["doubt"], place, gap))
    return out | {"n_needed": math.nan if needed is None else needed}, tuple(notes)


def _on_doubt(name: str, doubt: str, place: pd.DataFrame, found: Difference) -> str:
    """Why a version cannot pass although there are numbers, and what to do."""
    if doubt == FAILED_RUNS:
        return (
            f"{name}: losses by few failed runs make most of the variation between tasks. So few say little about how "
            "often runs fail, and a version is not let through by a test that is wrong then. Compare how often the "
            "versions fail, lmemtest.failure_rates(runs), or run more."
        )
    most = format_level(place["task"].iloc[int(place["difference"].argmin())])
    return (
        f"{name}: losses are skewed (the largest is that of {most}), and over so few {plural(found.unit)} a t-test "
        f"so near the margin lets too many versions pass. Look at the largest losses, or run more {plural(found.unit)}."
    )


def observed(name: str, rows: pd.DataFrame, versions: Versions, direction: str) -> pd.DataFrame:
    """Means and numbers of runs of both versions on each common task, and how much better the new one is."""
    task = versions.roles["benchmark"]
    by = rows.assign(task=rows[task] if task else "all").groupby(["task", versions.version], observed=True, sort=False)
    means, counts = by["score"].mean().unstack(), by["score"].count().unstack(fill_value=0)
    out = pd.DataFrame({"metric": name, "task": means.index})
    for label, which in ((versions.old, "old"), (versions.new, "new")):
        out[which] = means[label].to_numpy() if label in means else math.nan
        out[f"n_{which}"] = counts[label].to_numpy() if label in counts else 0
    gain = out["new"] - out["old"]
    out["difference"] = gain if direction == "maximize" else -gain
    return out[["metric", "task", "old", "new", "difference", "n_old", "n_new"]]


def _units(rows: pd.DataFrame, place: pd.DataFrame, versions: Versions, found: Difference) -> Any:
    """The unit of the sample that each task belongs to: itself, or its family."""
    if not found.columns:
        return place["task"].to_numpy()
    of_task = rows.drop_duplicates(versions.roles["benchmark"]).set_index(versions.roles["benchmark"])
    return of_task.groupby([*found.columns], observed=True).ngroup().reindex(place["task"]).to_numpy()


def few_failures(place: pd.DataFrame, versions: Versions) -> bool:
    """Whether losses by a few failed runs decide, which follow no normal distribution."""
    apart = place["difference"] - place["difference"].mean()
    lost = place["task"].isin(versions.scored) & (apart < 0.0)
    total, n = float((apart**2).sum()), int(lost.sum())
    return 0 < n < FEW_FAILED and total > 0.0 and float((apart[lost] ** 2).sum()) > 0.5 * total


def _mean(rows: pd.DataFrame, versions: Versions, label: Any) -> float:
    """Of a version, each task counting once; NaN where a score is missing."""
    own = rows[rows[versions.version] == label]
    task = versions.roles["benchmark"]
    if not len(own) or not finite(own).all():
        return math.nan
    return float(own["score"].mean() if task is None else own.groupby(task, observed=True)["score"].mean().mean())


def _no_question(rows: pd.DataFrame, versions: Versions, no_unit: bool) -> str:
    """Why nothing can be asked of these rows; empty where it can."""
    if not len(rows):
        return "no task has scores of both versions"
    failed = ~finite(rows)
    if failed.any():
        own, task = rows[failed], versions.roles["benchmark"]
        where = "" if task is None else f" ({place_names(own[task].unique())})"
        of = joined(
            f"{int((own[versions.version] == version).sum()):,} of {versions.label(version)}"
            for version in (versions.new, versions.old)
            if (own[versions.version] == version).any()
        )
        step = (
            "which a policy gives it: runs.score_failures('worst'), for instance"
            if versions.failed
            else "such as the worst that is possible: write it into the table"
        )
        return f"missing or infinite scores, {of}{where}. A failed run needs a score, {step}"
    return "the mean of the old version is 0, of which no margin can be a share" if no_unit else ""


def _alike(rows: pd.DataFrame, versions: Versions) -> bool:
    """Whether the two versions have the same scores, run by run."""
    new, old = (rows[rows[versions.version] == label] for label in (versions.new, versions.old))
    if len(new) != len(old):
        return False
    order = [*versions.keys, "score"]
    a, b = (part[order].sort_values(order, kind="stable").reset_index(drop=True) for part in (new, old))
    return bool((a == b).all(axis=None))


def _identical(rows: pd.DataFrame, *, allowed: bool) -> str:
    said = f"all {len(rows) // 2:,} scores of the two versions are identical"
    if allowed:
        return f"{said}, which was allowed"
    allow = advice("value", name="allow", value="identical")
    return f"{said}. Was one table copied? If the change cannot have touched the scores: {allow}"


def _with_step(reason: str, tasks: str) -> str:
    """The reason with the way out where there is one."""
    if tasks == LIKE_THESE and reason.startswith("one task"):
        return f"{reason}. Run more tasks, or ask about this one: {advice('value', name='tasks', value='these')}"
    return reason
