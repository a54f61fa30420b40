"""The gate: every metric judged, and one decision over all of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.gate.decision import CANNOT_SAY, EXIT_CODES, NOT_WORSE, SHOWN, decided, with_words
from lmemtest.bench.gate.difference import units_of
from lmemtest.bench.gate.looks import EVALUE, check_looks, level_at, with_earlier_looks
from lmemtest.bench.gate.metric import judged, margin_of, observed, unit_of
from lmemtest.bench.gate.policy import ADVISORY, CRITICAL, Policy, read_policy, settings_of
from lmemtest.bench.gate.thresholds import reached
from lmemtest.bench.gate.tiers import over_tiers, with_verdicts
from lmemtest.bench.gate.versions import (
    EVERY,
    TWO_TABLES,
    common_rows,
    direction_for,
    failed_runs,
    names_of,
    of_tables,
    refuse_repeated,
    rows_of,
)
from lmemtest.core.caller import named
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_flag
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.sequential.spending import check_spending


@guided
@one_blas_thread()
def gate(
    new: Any,
    old: Any,
    *,
    margin: float | str | Mapping[str, float | str] | None = None,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    score: str | Iterable[str] | None = None,
    direction: str | Mapping[str, str] | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    metric: str | None = None,
    family: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    seed_shared: bool = True,
    tasks: str | None = None,
    alpha: float | None = None,
    power: float | None = None,
    max_broken: float | None = None,
    allow: str | Iterable[str] | None = None,
    looks: Sequence[int] | None = None,
    maximum: int | None = None,
    spending: str | None = None,
    method: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> Answer:
    """Decide whether a new version is worse than the old one: not worse, worse, or cannot say.

    Parameters
    ----------
    new : dataframe, mapping or Runs
        Scores of the new version, one row per task and run; or the `Runs` of both versions.
    old : dataframe or mapping; or str
        Scores of the old version in columns of the same names; or, where `new` is a `Runs`, the name of the algorithm
        that is the old version. The other roles are those of the runs then.
    margin : float > 0, str such as "1%", or mapping of str to these, optional
        How much worse is still acceptable, in the unit of the score or in percent of the old version's mean; for all
        metrics, or by their names ("*": all others). Choose it before the scores are seen.
    policy : str, path or mapping, optional
        Instead of a margin a TOML file, or a mapping of the same form, with the rules of each metric and the settings
        of the gate; docs/developers/gate.md has its keys. Sections ``[critical.accuracy]``, ``[supporting.log_loss]``,
        ``[advisory.seconds]`` have a ``margin``, or a ``bar`` with the ``share`` of runs that have to reach it. Then
        `margin`, `direction`, `tasks`, `alpha`, `power`, `max_broken` and `allow` are said there and left out here.
    score : str or sequence of str, optional
        Columns of the metrics; by default those that `margin` names. With `metric` the one column of all scores.
    direction : {"minimize", "maximize"} or mapping, optional
        Which scores are good, of all metrics or by their names ("*": all others). By default what the name of a metric
        says, such as accuracy; an error where it says nothing.
    benchmark : str
        Column of the tasks; required for tables.
    seed : str, optional
        Column that identifies runs; runs of both versions with the same seed on a task are pairs.
    metric : str, optional
        Column with the name of the metric, where each has rows of its own.
    family : str or sequence of str, optional
        Column of what groups the tasks; see `Runs`.
    ignore : str or sequence of str, optional
        Columns without a role on purpose.
    seed_shared : bool, default True
        See `Runs`: False where seeds only number the runs, or the items, of a task.
    tasks : {"like these", "these"}, optional
        The question: about tasks like these, of which these are a sample (the default); or about these and no others.
    alpha : float in (0, 0.5), optional
        Largest probability to let a version pass that is worse by the margin or more, and to call one worse that is
        not, where differences are about normal over tasks. By default 0.05.
    power : float in (0, 1), optional
        With which equal versions are to pass, for the number of tasks or runs that would settle the question; a mean
        over the variances that go with those observed. By default 0.8.
    max_broken : float in (0, 1), optional
        The version also has to show, at 1 - `alpha`, that at most this share of tasks like these is broken: loses more
        than the margin divided by the share. 0.1 takes 29 tasks of which none is broken. Whatever their distribution,
        a version that breaks this share or more passes with probability `alpha` at most.
    allow : {"missing", "identical"} or several, optional
        Decide although tasks or runs of the old version are missing from the new one; let a version pass whose scores
        are those of the old one.
    looks : sequence of int, optional
        Numbers of tasks (of families, where tasks come in them) at all planned looks, that of these tables among them:
        `alpha` is then of all looks together, and this one has what `spending` gives it.
    maximum : int, optional
        Instead of `looks`, where only their number at the end is planned: looks come when they like up to it.
    spending : {"obrien_fleming", "pocock"}, optional
        How planned looks spend `alpha`: next to nothing early (the default), or about evenly.
    method : {"evalue"}, optional
        For a gate without a plan, looked at again and again while tasks are added: e-values of one-sided t-tests, which
        hold at every look, for ever, and find less.
    ledger : path, optional
        With "evalue" the file that holds the looks, one for each version: what was shown at one stays shown, and tables
        that lost tasks or changed them are refused.

    Returns
    -------
    Answer
        ``decision`` over all metrics ("not worse", "worse", "cannot say") and its ``exit_code`` (0, 1, 2). The table
        ``metrics``, one row per metric: ``metric``, ``direction``, ``old`` and ``new`` (means over common tasks, each
        task counting once), ``difference`` (how much better the new version is; negative where it is worse),
        ``margin``, ``se``, ``df``, ``ci_low`` and ``ci_high`` (one-sided bounds of the difference, each at 1 - alpha),
        ``p_not_worse`` (of "worse by the margin or more"; missing where ``doubt`` says why no test lets the version
        pass: losses by few failed runs decide, or losses are skewed), ``p_worse`` (of "not worse by more than the
        margin") and ``p_any_loss`` (of "not worse at all"), both Holm-adjusted over the metrics, ``reason`` (why there
        is no number), ``claim`` (what it is about, where tasks come in families), ``unit`` and ``n`` (of the sample:
        tasks, families of tasks, or runs of a version on a task), ``n_needed`` (with which equal versions would pass;
        with planned looks at the level of the last one),
        ``broken_loss`` (what a task loses more of that is broken: the margin over `max_broken`, or over the share that
        n tasks without a broken one leave open), ``n_broken`` (tasks that lost so much, in means of their runs;
        families with such a task), ``broken_high`` (upper limit of their share among tasks like these, at 1 - alpha)
        and ``decision``. The table ``tasks``, what was observed by metric and task: ``metric``, ``task``, ``old``,
        ``new``, ``difference``, ``n_old``, ``n_new``. ``new``, ``old`` (names of the versions), ``population`` ("like
        these" or "these"), ``missing`` (tasks and runs of the old version that the new one does not have), ``n_tasks``
        that both have, ``n_failed`` (runs of the new version that failed, None where nothing says which), ``n_runs``,
        ``alpha``, ``power``, ``max_broken``, ``look`` (what to say of several looks; empty without), ``n_end`` (units
        at the last planned look; None without).

        With a policy the decision is "pass", "fail" or "insufficient" (0, 1, 2), there is a row for each check, and
        further columns: ``tier``, ``level`` (at which it passes; its bounds are at 1 - level), ``bar`` and ``share``
        (``new``, ``ci_low``, ``ci_high`` are the share of the runs that reach the bar, then, and its limits),
        ``rule``, ``estimate``, ``bound``, ``limit``, ``verdict``, ``next_step``; ``p_worse`` is adjusted over the
        checks that can block. ``absent``: required tasks without scores of both versions.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or a column is missing.
    DataError
        If a table has no rows, or repeats a run; or a required task is missing and the policy calls that an error.
    NestingError
        If tasks of an earlier look vanished or changed; the ledger stays as it is.

    Notes
    -----
    Missing or infinite scores are failed runs; what they are worth is for the user to say, so there is no number. A
    relative margin is an estimate, too: the test is of ``new - (1 - r) old`` (or ``1 + r`` where less is better), so
    that `se` and the bounds hold its error. Why "worse" is worse than the margin rather than worse than the old
    version, and what is adjusted for several metrics, is in docs/developers/gate.md. A policy's levels: a gate passes
    with probability `alpha` at most where a critical check does not hold, or as many supporting ones as block, whatever
    the correlation of the metrics (Berger 1982; Benjamini & Heller 2008, doi:10.1111/j.1541-0420.2007.00984.x).

    References
    ----------
    Piaggio et al. (2012), doi:10.1001/jama.2012.87802; Berger (1982), doi:10.1080/00401706.1982.10487790;
    Holm (1979), Scand. J. Stat. 6, 65-70

    Examples
    --------
    >>> import lmemtest as lt
    >>> old = {"task": list("abcdef"), "accuracy": [0.71, 0.82, 0.64, 0.90, 0.77, 0.58]}
    >>> new = {"task": list("abcdef"), "accuracy": [0.72, 0.81, 0.65, 0.90, 0.78, 0.58]}
    >>> found = lt.gate(new, old, margin=0.02, score="accuracy", benchmark="task")
    >>> found.decision, found.exit_code
    ('not worse', 0)
    >>> found.to_frame()[["metric", "difference", "ci_low", "p_not_worse"]].round(4)
         metric  difference  ci_low  p_not_worse
    0  accuracy      0.0033 -0.0034       0.0005
    >>> policy = {"critical": {"accuracy": {"margin": "3 %", "bar": 0.5, "share": "60 %"}}}
    >>> found = lt.gate(new, old, policy=policy, benchmark="task")
    >>> found.decision, found.sentences()[0]
    ('pass', 'Pass: 2 of 2 critical checks passed.')
    """
    settings: dict[str, Any] = {"tasks": tasks, "alpha": alpha, "power": power, "max_broken": max_broken}
    settings = {name: value for name, value in {**settings, "allow": allow}.items() if value is not None}
    rules = _rules(policy, settings, margin=margin, direction=direction, score=score if metric is None else None)
    roles: dict[str, Any] = {"score": score, "benchmark": benchmark, "seed": seed, "metric": metric, "family": family}
    roles |= {"ignore": ignore, "seed_shared": check_flag(seed_shared, "seed_shared")}
    metrics: tuple[str, ...]
    hinted = margin if isinstance(margin, Mapping) else dict.fromkeys(check["metric"] for check in rules.checks)
    if isinstance(new, Runs):
        runs, names, metrics = new, names_of(new, old, {**roles, "direction": direction}), (new.score,)
        direction, (n_failed, n_runs) = new.direction, failed_runs(new, next(iter(names)))
        if rules.direction and direction_for(new.score, rules.direction) != direction:
            raise ArgumentError(f"{rules.where} says another direction of {new.score!r} than the runs: {direction}.")
    else:
        runs, metrics = of_tables(new, old, **roles, hinted=hinted, hinting=rules.where or "margin")
        direction, names, n_failed, n_runs = rules.direction, TWO_TABLES, None, 0
    scores = runs.to_frame()
    refuse_repeated(scores, runs, metric)
    _check_named(margin, metrics, "margin")
    _check_named(direction, metrics, "direction")
    if rules.checks:
        _check_named(hinted, metrics, rules.where)
        metrics = tuple(hinted)
    ways = {name: direction_for(name, direction) for name in metrics}
    checks: Sequence[dict[str, Any]] = rules.checks or [
        {"tier": CRITICAL, "metric": name, "margin": margin_of(name, margin)} for name in metrics
    ]
    planned, end, on_look = looks is not None or maximum is not None, None, ""
    path, at_end = check_looks(planned, method, ledger, rules, bool(runs.family)), rules
    spending = check_spending(spending, planned)
    owns = {name: rows_of(scores, runs, name, metric) for name in metrics}
    commons = {name: common_rows(own, runs, names) for name, own in owns.items()}
    places = {name: observed(name, commons[name][0], runs, names, ways[name]) for name in metrics}
    n_blocking = sum(check["tier"] != ADVISORY for check in checks)
    if planned:
        parts = [(commons[name][0], place) for name, place in places.items() if len(place)]
        counts = [len(set(unit_of(rows, place, runs))) for rows, place in parts] or [0]
        units = "families" if runs.family and units_of(runs) else "tasks"
        level, alpha_at_end, end, on_look = level_at(
            counts, units, rules.alpha, n_blocking, looks=looks, maximum=maximum, spending=spending
        )
        rules, at_end = replace(rules, alpha=level), replace(rules, alpha=alpha_at_end)
    each = 1.0 - (1.0 - rules.power) / n_blocking  # so that all of them pass together
    rows, missing, notes = list[dict[str, Any]](), list[str](), list(runs.notes)
    for check in checks:
        name, level = check["metric"], rules.level_of(check["tier"])
        common, lacking, remarks = commons[name]
        shared: dict[str, Any] = {"direction": ways[name], "tasks": rules.tasks, "power": each}
        reservations: tuple[str, ...] = ()
        if "bar" in check:
            shared |= {"level": level, "level_failing": rules.alpha / n_blocking}
            row = reached(name, owns[name], runs, names, bar=check["bar"], share=check["share"], **shared)
        else:
            shared |= {"alpha": level, "max_broken": rules.max_broken, "identical": "identical" in rules.allow}
            shared["alpha_at_end"] = at_end.level_of(check["tier"])
            shared["any_time"] = method == EVALUE
            row, reservations = judged(name, common, places[name], runs, names, margin=check["margin"], **shared)
        rule = {key: check.get(key, math.nan) for key in ("tier", "bar", "share")} | {"level": level}
        rows.append(row | (rule if rules.checks else {}))
        missing += lacking
        notes += [*remarks, *reservations]
    if method == EVALUE:
        n_looks = 1 if path is None else with_earlier_looks(path, rows, places, checks, rules.alpha)
        place = f"Look {n_looks}, p-values the smallest so far. " if n_looks > 1 else ""
        on_look = f"{place}E-values of one-sided t-tests hold at every look, as long as tasks are only added."
    table = decided(pd.DataFrame(rows), rules.alpha, rules.max_broken)
    tiers = [check["tier"] for check in checks]
    decision = over_tiers([*table["decision"]], tiers, rules.supporting_failures)
    absent = rules.without_scores(places)
    if decision == NOT_WORSE and (absent or (missing and "missing" not in rules.allow)):
        decision = CANNOT_SAY
    after, before = names.values()
    values = {
        "decision": decision,
        "exit_code": EXIT_CODES[decision],
        "new": after,
        "old": before,
        "population": rules.tasks,
        "n_tasks": max(len(place) for place in places.values()),
        "alpha": rules.alpha,
        "power": rules.power,
        "max_broken": rules.max_broken,
        "n_failed": n_failed,
        "look": on_look,
        "n_end": end,
        "n_runs": n_runs or max(int(place["n_new"].sum()) for place in places.values()),
    }
    missing = list(dict.fromkeys(missing))
    answer = Answer(
        question="gate",
        title="Gate",
        tables={
            "metrics": table,
            "decision": pd.DataFrame([values | {"missing": ", ".join(missing)}]),
            "tasks": pd.concat(places.values(), ignore_index=True),
        },
        values=values | {"missing": tuple(missing)},
        notes=tuple(dict.fromkeys(notes)),
        printed=table[[*SHOWN]],
        formats={"p_not_worse": "p", "p_worse": "p"},
    )
    return with_verdicts(answer, rules, absent) if rules.checks else with_words(answer)


def _rules(policy: Any, settings: dict[str, Any], *, margin: Any, direction: Any, score: Any) -> Policy:
    """The rules of a policy, beside which no argument says the same, or those of the arguments."""
    if policy is None:
        if margin is None:
            raise ArgumentError(
                f"{named('margin')} must be given, the smallest loss that is not acceptable, such as 0.01 or '1%'; or "
                f"{named('policy')}, a file with rules for each metric."
            )
        return Policy(**settings_of(**settings), direction=direction)
    rules = read_policy(policy)
    for name, value in {**settings, "margin": margin, "direction": direction, "score": score}.items():
        if value is not None:
            raise ArgumentError(f"{named(name)} must be left out with {named('policy')}: {rules.where} says it.")
    return rules


def _check_named(given: Any, metrics: Iterable[str], argument: str) -> None:
    """Refuse names that are no metric: what was meant for one of them would be lost."""
    for name in given if isinstance(given, Mapping) else ():
        if name not in (EVERY, *metrics):
            hint = suggest(str(name), metrics)
            raise ArgumentError(
                f"{named(argument)} names {name!r}, which is no metric. Metrics: {listed(metrics)}.{hint}"
            )
