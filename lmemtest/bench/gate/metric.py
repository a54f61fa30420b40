"""One metric: its margin, the tests of its difference, and what was observed on each task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from lmemtest.bench.gate.difference import LIKE_THESE, THESE, difference, units_of
from lmemtest.bench.gate.looks import at_any_time
from lmemtest.bench.gate.rare_losses import SAFE, counted_losses, too_skewed
from lmemtest.bench.gate.versions import EVERY, finite, keys_of, of_each, place_names, runs_of, scored_tasks
from lmemtest.bench.looks.schedule import EXPECTED
from lmemtest.bench.power.draw import scale_rule, smallest_count
from lmemtest.core.caller import advice, named
from lmemtest.core.rounding import below
from lmemtest.core.validate import is_finite
from lmemtest.core.words import format_level, joined, plural
from lmemtest.errors import ArgumentError, DesignError, LmemtestError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.sequential.evalues import critical_one_sided

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

LARGEST = 100_000  # units: a study that needs more will not be run
FEW_FAILED = 20  # tasks with failed runs, from which on t-tests of such scores are right
NUMBERS = ("difference", "margin", "se", "df", "ci_low", "ci_high", "p_not_worse", "p_worse", "p_any_loss")
BLANK: dict[str, Any] = {  # what is left where nothing is known
    **dict.fromkeys(NUMBERS, math.nan),
    **dict.fromkeys(("reason", "claim", "unit"), ""),
    **dict.fromkeys(("n", "n_needed", "broken_loss", "n_broken", "broken_high"), math.nan),
    "doubt": "",
}
FAILED_RUNS, SKEWED_LOSSES = "a few failed runs", "skewed losses"  # why no test lets a version pass


def margin_of(name: str, margin: Any, called: str = "margin") -> tuple[float, bool]:
    """The margin of a metric, and whether it is a share of the old version's mean; `called` names it in messages.

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
            f"{named(called)} must be a positive number in the unit of the score, or a percentage of the old "
            f"version's mean such as '1%', got {given!r}. It is the smallest loss that is not acceptable."
        )
    return (float(value) / 100.0, True) if relative else (float(value), False)


def judged(
    name: str,
    rows: pd.DataFrame,
    place: pd.DataFrame,
    runs: Runs,
    names: Mapping[Any, str],
    *,
    direction: str,
    margin: tuple[float, bool],
    tasks: str,
    alpha: float,
    alpha_at_end: float,
    power: float,
    max_broken: float | None,
    identical: bool,
    any_time: bool = False,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A row of the table, with p-values that are not yet adjusted; and notes. `place` is what was observed by task.

    `alpha_at_end` is the level of the last of several looks, where a version that is not worse is to pass at last.
    """
    sign, (size, relative), (_, old) = 1.0 if direction == "maximize" else -1.0, margin, names
    mean_new, mean_old = (  # each task counts once
        float(place[which].mean()) if finite(part).all() else math.nan
        for which, part in zip(("new", "old"), of_each(rows, runs, names), strict=True)
    )
    out: dict[str, Any] = {"metric": name, "direction": direction, "old": mean_old, "new": mean_new}
    out |= BLANK
    out["margin"] = size * abs(mean_old) if relative else size
    try:
        _require_scores(rows, runs, names)
        if relative and mean_old == 0:
            raise DesignError("the mean of the old version is 0, of which no margin can be a share")
        if _alike(rows, runs, names):
            alike = f"all {len(rows) // 2:,} scores of the two versions are identical"
            if identical:
                return out | {"difference": 0.0, "reason": f"{alike}, which was allowed"}, ()
            allow = advice("value", name="allow", value="identical")
            raise DesignError(f"{alike}. Was one table copied? If the change cannot have touched the scores: {allow}")
        about, scales, notes = difference(name, rows, runs, names, tasks)
        gain, p_any_loss = sign * about["estimate"], upper_tail(-sign * about["estimate"] / about["se"], about["df"])
        above = gain + size  # how far the border is
        if relative:  # it is a multiple of the old version's mean
            share, scores = 1.0 - sign * math.copysign(size, mean_old), rows["score"]
            shrunk = rows.assign(score=scores.where(rows[runs.algorithm] != old, share * scores))
            about, scales, notes = difference(name, shrunk, runs, names, tasks)
            above = sign * about["estimate"]
        if any_time and not scales:
            raise DesignError(
                "e-values need tasks that are independent, and here runs with one seed share its effect over tasks. "
                f"Plan the looks, {named('looks')}, or draw new seeds for each task"
            )
    except LmemtestError as error:
        reason = str(error)
        return out | {"reason": reason[:1].lower() + reason[1:].removesuffix(".")}, ()
    se, df = about.pop("se"), about.pop("df")
    del about["estimate"]
    gains = Estimates.of(
        {"version": ["old", "new"]},
        b=[0.0, above - out["margin"]],
        V=np.diag([0.0, se**2]),
        df=df,
        score=name,
        direction="maximize",
    )
    test = gains.against("old", adjust="none").noninferiority(out["margin"], alpha=alpha, adjust="none").table.iloc[0]
    half = test["gain"] - test["gain_low"]
    out |= about | {
        "difference": gain,
        "se": se,
        "df": df,
        "ci_low": test["gain_low"],
        "ci_high": test["gain"] + half,
        "p_not_worse": test["p_value"],
        "p_worse": float(upper_tail(-test["t_ratio"], df)),
        "p_any_loss": float(p_any_loss),
    }
    above_by_task = place["difference"] + (math.copysign(size, mean_old) * place["old"] if relative else size)
    if any_time:
        out |= at_any_time(above_by_task.to_numpy(), place["difference"].to_numpy(), out["margin"], alpha)
    if tasks == LIKE_THESE:
        own = pd.DataFrame({"loss": -place["difference"], "gain": above_by_task})
        units = own.groupby(unit_of(rows, place, runs), sort=False)
        out |= {} if any_time else counted_losses(units["loss"].max(), out["margin"], max_broken, alpha)
        near = bool(below(out["p_not_worse"], alpha)) and above <= SAFE * half
        out["doubt"] = SKEWED_LOSSES if near and too_skewed(units["gain"].mean()) else ""
    if few_failures(place, scored_tasks(runs)):
        out["doubt"] = FAILED_RUNS
    if out["doubt"]:
        out["p_not_worse"] = math.nan
        notes = (*notes, _on_doubt(name, out["doubt"], place, out["unit"]))
    needed = None
    if scales:
        asked: dict[str, Any] = {"tasks": tasks, "alpha": alpha_at_end, "power": power, "any_time": any_time}
        needed = units_needed(se, df, out["n"], out["margin"], **asked)
    return out | {"n_needed": math.nan if needed is None else needed}, notes


def units_needed(
    se: float, df: float, n: int, margin: float, *, tasks: str, alpha: float, power: float, any_time: bool = False
) -> int | None:
    """Tasks (with `THESE` runs of each version on each task) with which equal versions pass with a given power.

    The standard error falls with the root of their number, as the components that were observed have it; and it is an
    estimate. So the power is the mean of the noncentral t-test's over the variances that go with it, ``df se^2`` over a
    chi-squared variate of `df`: the assurance of O'Hagan, Stevens & Campbell (2005), doi:10.1002/pst.175. None where
    there are fewer than two, or more than `LARGEST` are needed.

    >>> units_needed(0.01, 9.0, 10, 0.02, tasks="like these", alpha=0.05, power=0.8)
    20
    """
    if n < 2:
        return None

    seen, weight = scale_rule(float(df))  # of the observed standard error over the true one

    def passes(m: int) -> bool:
        freedom = df * (m - 1) / (n - 1) if tasks == THESE else m - 1.0
        later, weight_later = scale_rule(freedom)
        away = margin / (se * math.sqrt(n / m)) * seen
        critical = critical_one_sided(alpha, m, EXPECTED) if any_time else float(t_quantile(alpha, freedom))
        if np.isinf(critical):
            return False
        chances = ndtr(away[:, None] - critical * later)
        return float(weight @ chances @ weight_later) >= power

    return smallest_count(passes, first=2, guess=n, most=LARGEST)


def _on_doubt(name: str, doubt: str, place: pd.DataFrame, unit: str) -> str:
    """Why a version cannot pass although there are numbers, and what to do."""
    if doubt == FAILED_RUNS:
        return (
            f"{name}: losses by few failed runs make most of the variation between tasks. So few say little about how "
            "often runs fail, and a version is not let through by a test that is wrong then. Compare how often the "
            "versions fail, lmemtest.failure_rates(runs), or run more."
        )
    most = format_level(place["task"].iloc[int(place["difference"].argmin())])
    return (
        f"{name}: losses are skewed (the largest is that of {most}), and over so few {plural(unit)} a t-test "
        f"so near the margin lets too many versions pass. Look at the largest losses, or run more {plural(unit)}."
    )


def observed(name: str, rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str], direction: str) -> pd.DataFrame:
    """Means and numbers of runs of both versions on each common task, and how much better the new one is."""
    task = rows[runs.benchmark] if runs.benchmark else "all"
    by = rows.assign(task=task).groupby(["task", runs.algorithm], observed=True, sort=False)
    means, counts = by["score"].mean().unstack(), by["score"].count().unstack(fill_value=0)
    out = pd.DataFrame({"metric": name, "task": means.index})
    for label, which in zip(names, ("new", "old"), strict=True):
        out[which] = means[label].to_numpy() if label in means else math.nan
        out[f"n_{which}"] = counts[label].to_numpy() if label in counts else 0
    gain = out["new"] - out["old"]
    out["difference"] = gain if direction == "maximize" else -gain
    return out[["metric", "task", "old", "new", "difference", "n_old", "n_new"]]


def unit_of(rows: pd.DataFrame, place: pd.DataFrame, runs: Runs) -> Any:
    """The unit of the sample that each task belongs to: itself, or its family."""
    families = units_of(runs_of(rows, runs)) if runs.family else ()
    if not families:
        return place["task"].to_numpy()
    of_task = rows.drop_duplicates(runs.benchmark).set_index(runs.benchmark)
    return of_task.groupby([*families], observed=True).ngroup().reindex(place["task"]).to_numpy()


def few_failures(place: pd.DataFrame, scored: frozenset[Any]) -> bool:
    """Whether losses by a few failed runs decide, which follow no normal distribution."""
    apart = place["difference"] - place["difference"].mean()
    lost = place["task"].isin(scored) & (apart < 0.0)
    total, n = float((apart**2).sum()), int(lost.sum())
    return 0 < n < FEW_FAILED and total > 0.0 and float((apart[lost] ** 2).sum()) > 0.5 * total


def _require_scores(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> None:
    """Refuse rows of no common task, and rows without a score."""
    if not len(rows):
        raise DesignError("no task has scores of both versions")
    failed = rows[~finite(rows)]
    if not len(failed):
        return
    where = "" if runs.benchmark is None else f" ({place_names(failed[runs.benchmark].unique())})"
    parts = zip(of_each(failed, runs, names), names.values(), strict=True)
    of = joined(f"{len(part):,} of {label}" for part, label in parts if len(part))
    step = (
        "which a policy gives it: runs.score_failures('worst'), for instance"
        if runs.failed is not None
        else "such as the worst that is possible: write it into the table"
    )
    raise DesignError(f"missing or infinite scores, {of}{where}. A failed run needs a score, {step}")


def _alike(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> bool:
    """Whether the two versions have the same scores, run by run."""
    new, old = of_each(rows, runs, names)
    order = [*keys_of(runs), "score"]
    a, b = (part[order].sort_values(order, kind="stable").reset_index(drop=True) for part in (new, old))
    return len(a) == len(b) and bool((a == b).all(axis=None))
