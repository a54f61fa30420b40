"""Logs of evaluations to runs: the best score so far of every run, at budgets that all runs share.

Between two budgets of the grid only the best score counts, so one group-by of the log, by run and interval of the grid,
loses nothing: it runs where the log lives, and at most (budgets + 1) rows per run come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.selection import check_budgets
from lmemtest.bench.data.study import labels
from lmemtest.core.codes import Keys, group_codes
from lmemtest.core.frames import as_float, as_pandas, check_numeric
from lmemtest.core.rounding import written
from lmemtest.core.validate import (
    as_frame,
    check_choice,
    check_column,
    check_columns,
    check_names,
    check_number,
    check_positive_int,
    free_name,
    is_finite,
)
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Mask

    AnyFrame = nw.DataFrame[Any] | nw.LazyFrame[Any]

_LARGEST_WHOLE = 2.0**53  # beyond it not every whole number is a double
GRIDS = ("log", "linear")
BEFORE = ("drop", "missing", "worst", "refuse")
AFTER = ("carry", "drop", "missing", "refuse")
MOST_POINTS = 10_000


def trajectories(
    logs: Any,
    *,
    time: str,
    score: str,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    run: str | Sequence[str] = (),
    algorithm: str | None = None,
    benchmark: str | None = None,
    seed: str | None = None,
    family: str | Sequence[str] = (),
    grid: Literal["log", "linear"] | Iterable[float] = "log",
    n_points: int = 20,
    before: Literal["drop", "missing", "worst", "refuse"] | float = "drop",
    after: Literal["carry", "drop", "missing", "refuse"] = "carry",
    end: str | float | None = None,
    cost: str | None = None,
    full_budget: str | None = None,
    seed_shared: bool = True,
) -> Runs:
    """The best score so far of every run, at the same budgets for all: from a log of evaluations to `Runs`.

    Parameters
    ----------
    logs : dataframe or mapping
        One row per evaluation, in any order. Any kind of table that `Runs` takes; the work is done where it lives, and
        at most one row per run and budget comes back.
    time : str
        The column of what a run had spent when the score was known: seconds since its start, evaluations, epochs. At
        least 0. With `cost`: what orders the evaluations of a run.
    score : str
        The column of the scores. An evaluation whose score is missing or infinite has failed: it takes its time and
        improves nothing.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good. Required.
    run : str or sequence of str
        The columns that together tell runs apart. Those called "algorithm", "benchmark" and "seed" have these roles,
        unless the next arguments name others; what is left are metafeatures.
    algorithm, benchmark, seed : str, optional
        The columns with these roles. They tell runs apart, and need not be repeated in `run`.
    family : str or sequence of str
        The columns of groups of benchmarks, from coarse to fine, as in `Runs`.
    grid : {"log", "linear"} or iterable of float
        The budgets at which to read the runs off. "log" and "linear": `n_points` of them, evenly spaced on this scale,
        from where the last run has its first score to where the first run ends, so that every number was observed.
        Whole numbers where `time` holds whole numbers.
    n_points : int, 2 to 10,000
        For "log" and "linear".
    before : {"drop", "missing", "worst", "refuse"} or float
        What stands at budgets before the first score of a run: no row; a missing score; the worst score that anything
        had on the benchmark; an error; or this score, such as that of the default configuration.
    after : {"carry", "drop", "missing", "refuse"}
        What stands at budgets after the end of a run: its last value; no row; a missing score; an error.
    end : str or float, optional
        Where runs end: a column with one value per run, or one number for all, such as the time limit. By default
        a run ends with its last evaluation. Up to its end the last value of a run stands; `after` says what then.
    cost : str, optional
        The column of what each evaluation costs, such as the epochs of a multi-fidelity search, at least 0. Budgets,
        `grid` and `end` are then totals of it: all costs of the run up to this `time`.
    full_budget : {"longest", "shortest"} or str, optional
        Budgets as fractions of the full budget of a benchmark: a column of the log, or the end of the longest or of
        the shortest run on the benchmark. `grid` is then in fractions, 1 is the full budget.
    seed_shared : bool, default True
        As in `Runs`.

    Returns
    -------
    Runs
        One row per run and budget. The score is called ``<score>_best_so_far`` and the budget as `time`,
        ``<cost>_total``, or one of these with ``_fraction``. ``carried``, without a role, is true where the budget lies
        after the end of the run. ``notes`` say what was filled in, carried and left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or names a column that does not exist.
    DataError
        If times or costs are missing or negative, a run continues after its `end`, with ``before="drop"`` a run has no
        score at any budget (without it its algorithm would look better than it is), the runs have no common range for
        "log" or "linear", or `Runs` refuses the table.

    Notes
    -----
    At a budget b a run has the best score of all its evaluations at times up to b. Evaluations at one time count
    together, and so do repeated rows; with `cost` each of them costs. Times within 1e-9, relative, of a budget have
    reached it.

    The result continues with what `Runs` has: ``runs.normalize("normalized_regret", by="benchmark")`` for the regret,
    ``anytime(runs)``, ``anytime(runs).at()`` and ``anytime(runs).ranks()``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> logs = {"algorithm": ["A", "A", "A", "B", "B"], "time": [1, 4, 9, 2, 8], "loss": [5, 3, 4, 6, 1]}
    >>> runs = lt.trajectories(logs, time="time", score="loss", direction="minimize", run="algorithm", grid=[2, 4, 8])
    >>> runs.to_frame()
      algorithm  time  loss_best_so_far  carried
    0         A        2               5.0    False
    1         A        4               3.0    False
    2         A        8               3.0    False
    3         B        2               6.0    False
    4         B        4               6.0    False
    5         B        8               1.0    False
    """
    direction = required_direction(direction)
    frame = as_frame(logs, argument="logs")
    roles, keys = _roles(frame, run, {"algorithm": algorithm, "benchmark": benchmark, "seed": seed}, family)
    _check_rules(before, after)
    wanted = check_choice(grid, "grid", GRIDS) if isinstance(grid, str) else check_budgets(grid, "grid")
    n_points = check_positive_int(n_points, "n_points", minimum=2, maximum=MOST_POINTS)
    columns = {"time": time, "score": score, "cost": cost, "end": end, "full_budget": full_budget}
    at, spent, counts_whole = read_log(frame, keys, roles["benchmark"], direction, **columns)
    notes = []
    if isinstance(wanted, str):
        runs, _, _, first, stop, _ = at(())
        budgets, note = _common_grid(partial(run_name, runs), first, stop, wanted, n_points, counts_whole)
        notes.append(note)
    else:
        budgets = wanted
        if budgets[0] < 0:
            raise ArgumentError(f"grid must not be negative: budgets count from 0, got {text_of(budgets[0])}.")
    runs, values, worst, first, stop, counts = at(budgets)
    none_yet, beyond = np.isnan(values), budgets > reaches(stop)[:, None]
    name = partial(run_name, runs)
    notes += _notes_on(counts)
    if none_yet.any():
        notes.append(_begin(name, first, budgets, before, none_yet))
        if before not in ("drop", "missing"):
            values = np.where(none_yet, worst[:, None] if before == "worst" else float(before), values)
    if beyond.any():
        notes.append(_continue(name, stop, budgets, after, beyond, has_end=end is not None))
        if after == "missing":
            values[beyond] = np.nan
    kept = ~(none_yet & (before == "drop") | beyond & (after == "drop"))
    if not kept.any():
        raise DataError(
            f"nothing is left: all runs end before the first budget, {text_of(budgets[0])} (before="
            f"{before!r}, after={after!r}). Are the budgets in the unit of the times?"
        )
    table = runs.frame().loc[np.repeat(np.arange(runs.size), len(budgets))].reset_index(drop=True)
    whole = counts_whole and all(float(value).is_integer() and abs(value) < _LARGEST_WHOLE for value in budgets)
    new = {
        spent: np.tile(budgets.astype(np.int64) if whole else budgets, runs.size),
        free_name(f"{score}_best_so_far", keys): values.ravel(),
        free_name("carried", keys): (beyond & (after == "carry")).ravel(),
    }
    budget, best, flag = new
    table = table.assign(**new)[kept.ravel()].reset_index(drop=True)
    taken = {*roles.values(), *roles["family"]}
    metafeatures = tuple(name for name in keys if name not in taken)
    made = Runs(
        table,
        score=best,
        direction=direction,
        budget=budget,
        metafeatures=metafeatures,
        ignore=(flag,),
        seed_shared=seed_shared,
        **roles,
    )
    return made.remembering(notes=notes)


# ------------------------------------------------------------------ arguments


def _roles(frame: AnyFrame, run: Any, given: dict[str, str | None], family: Any) -> tuple[dict[str, Any], list[str]]:
    """The columns with roles, and all columns that tell runs apart."""
    columns = frame.collect_schema().names()
    names = check_columns(check_names(run, "run"), columns, argument="run")
    for role, name in given.items():
        if name is not None:
            check_column(name, columns, argument=role)
    families = check_columns(check_names(family, "family"), columns, argument="family")
    free = [name for name in names if name not in (*given.values(), *families)]
    roles: dict[str, Any] = {
        role: name if name is not None else role if role in free else None for role, name in given.items()
    }
    if roles["algorithm"] is None:
        raise ArgumentError(
            "algorithm must name the column of what is compared: trajectories(..., algorithm=...), or call it "
            f"'algorithm' and name it in run. Columns: {listed(columns)}."
        )
    keys = dict.fromkeys([*names, *(name for name in roles.values() if name is not None), *families])
    return {**roles, "family": families}, list(keys)


def _check_rules(before: Any, after: Any) -> None:
    check_choice(after, "after", AFTER)
    if not is_finite(before) and not (isinstance(before, str) and before in BEFORE):
        quoted = ", ".join(map(repr, BEFORE))
        hint = suggest(before, BEFORE) if isinstance(before, str) else ""
        raise ArgumentError(f"before must be {quoted} or a finite score, got {before!r}.{hint}")


# ------------------------------------------------------------------ runs


def _common_grid(
    name: Callable[[int], str], first: Array, stop: Array, scale: str, n_points: int, whole: bool
) -> tuple[Array, str]:
    """Budgets at which every run was observed, and a note on where they begin and end."""
    begun = np.isfinite(first)
    if not begun.any():
        raise DataError("no evaluation in the logs has a score.")
    late, early = int(np.where(begun, first, -np.inf).argmax()), int(stop.argmin())
    low, high = float(first[late]), float(stop[early])
    where = f"{name(late)} has its first score at {text_of(low)}"
    if low >= high:
        raise DataError(
            f"there is no range of budgets in which all runs have a score: {where}, and {name(early)} ends "
            f"at {text_of(high)}. Name the budgets, grid=[...], or leave such runs out."
        )
    if scale == "log" and low <= 0:
        raise ArgumentError(
            f"grid='log' cannot begin at 0, where {name(late)} has its first score. Use grid='linear', "
            "name the budgets, or count evaluations from 1."
        )
    budgets = np.geomspace(low, high, n_points) if scale == "log" else np.linspace(low, high, n_points)
    # six digits: the last ones of a power differ between machines
    inner = [float(written(x, ".6g")) for x in budgets[1:-1]]
    budgets = np.unique(budgets.round() if whole else np.clip([low, *inner, high], low, high))
    note = (
        f"The {len(budgets):,} budgets are where every run has a score and goes on: {where}, and "
        f"{name(early)} ends first, at {text_of(high)}."
    )
    return budgets, note


def _notes_on(counts: dict[str, int]) -> list[str]:
    """Evaluations that count for nothing, or together with others."""
    notes = []
    if counts["failed"]:
        notes.append(f"{counts['failed']:,} of {counts['all']:,} evaluations have no score: they improve nothing.")
    if counts["tied"]:
        many = (
            "s share their time with others of their"
            if counts["tied"] > 1
            else " shares its time with another one of its"
        )
        notes.append(
            f"{counts['tied']:,} evaluation{many} run, and the costs of all count. If rows are repeated by mistake, "
            "drop the copies."
        )
    if counts["beyond"]:
        notes.append(
            f"{counts['beyond']:,} of {counts['all']:,} evaluations lie after the last budget and do not count."
        )
    return notes


def _begin(name: Callable[[int], str], first: Array, budgets: Array, before: Any, none_yet: Mask) -> str:
    """What stands before the first scores, as a note; an error where that is refused."""
    late: Mask = np.asarray(none_yet.any(axis=1))
    n_late, i = int(late.sum()), int(np.where(late, first, -np.inf).argmax())
    whose = f"{n_late:,} of {len(late):,} runs"
    begins = f"begins at {text_of(first[i])}" if np.isfinite(first[i]) else "has none"
    if before == "refuse":
        raise DataError(
            f"{whose} have no score yet at a budget of {text_of(budgets[0])}: {name(i)} {begins}. Begin the "
            "budgets later, or say what stands there: before='worst', a score, 'missing' or 'drop'."
        )
    never = none_yet.all(axis=1)
    if before == "drop" and never.any():
        i = int(never.argmax())
        came = f"is at {text_of(first[i])}" if np.isfinite(first[i]) else "never came"
        raise DataError(
            f"{int(never.sum()):,} of {len(late):,} runs have no score at any budget up to "
            f"{text_of(budgets[-1])}: the first of {name(i)} {came}. Without these runs their algorithms "
            "would look better than they are. Say what stands there, before='worst' or a score, or extend the budgets."
        )
    rule = {
        "drop": "the rows before it are left out",
        "missing": "it is missing before",
        "worst": "they have the worst score of all evaluations on their benchmark before it",
    }.get(before, f"they have {before if isinstance(before, str) else text_of(before)} before it")
    return f"{whose} have their first score after a budget of {text_of(budgets[0])}: {rule}."


def _continue(
    name: Callable[[int], str], stop: Array, budgets: Array, after: str, beyond: Mask, *, has_end: bool
) -> str:
    """What stands after the end of runs, as a note; an error where that is refused."""
    short: Mask = np.asarray(beyond.any(axis=1))
    i = int(np.where(short, stop, np.inf).argmin())
    ends = f"{name(i)} at {text_of(stop[i])}"
    who = f"{int(short.sum()):,} of {len(short):,} runs end before a budget of {text_of(budgets[-1])}"
    say = "" if has_end else " A run ends with its last evaluation; if it went on without one, name its end, end=..."
    if after == "refuse":
        raise DataError(f"{who}, first {ends}.{say or ' Choose budgets that all runs reach.'}")
    rule = {
        "carry": "there they keep their last score (the column carried says where)",
        "drop": "the rows after it are left out",
        "missing": "their score is missing there",
    }[after]
    return f"{who}, first {ends}: {rule}.{say}"


# ------------------------------------------------------------------ the log


FULL = ("longest", "shortest")
COUNTED = "Budgets count from the start of a run: subtract it, and drop rows that are no evaluations."
PAID = "Fill them in: an evaluation that failed has its cost, too."
ENDED = "Give every run its time limit, or the time at which it broke off."
WHOLE = "Give every row the full budget of its benchmark."
# Times that differ by less, relatively, are equal: a total of ten costs of 0.1 is reached at a budget of 1, in whatever
# order a backend adds them.
EQUAL = 1e-9


def reaches(budgets: Any) -> Any:
    """The latest times that budgets still reach."""
    return np.asarray(budgets, dtype=float) * (1 + EQUAL)


def run_name(runs: Keys, i: int) -> str:
    """The label of a run."""
    return str(labels(runs.frame().iloc[[i]], runs.names)[0])


def text_of(x: Any) -> str:
    """A budget or a score in a message."""
    return written(float(x), ".6g")


def seen_by(
    log: AnyFrame,
    budgets: Array | Sequence[float],
    *,
    keys: Sequence[str],
    benchmark: str | None,
    sign: float,
    flags: dict[str, str],
) -> tuple[Keys, Array, Array, Array, Array, dict[str, int]]:
    """What is known of every run up to each budget, by one query of a log with columns of our own, see `read_log`.

    The runs; the best score up to each budget, ``(runs, budgets)``, NaN before the first; by run the worst score of all
    on its benchmark, when its first score was known, infinite if never, and where it ends; how many evaluations there
    are, "all", and how many of them "failed", lie "beyond" the last budget, or are "tied".
    """
    edges, columns = reaches(budgets), log.collect_schema().names()
    names = [f"key{i}" for i in range(len(keys))]
    log = log.with_columns(
        _interval(log, edges).alias("place"),
        nw.when(~nw.col("y").is_null()).then(nw.col("t")).alias("scored_at"),
    )
    sums = [
        nw.len().alias("n"),
        nw.col("y").count().alias("n_scored"),
        nw.col("y").min().alias("best"),
        nw.col("y").max().alias("worst"),
        nw.col("scored_at").min().alias("first"),
        nw.col("t").max().alias("last"),
        *(nw.col(name).sum().alias(name) for name in (*flags, "tied") if name in columns),
    ]
    if "stop" in columns:
        sums += [nw.col("stop").min().alias("stop_low"), nw.col("stop").max().alias("stop_high")]
    grouped: Any = log.group_by(*names, "place")
    table = as_pandas(grouped.agg(*sums))
    if not len(table):
        raise DataError("logs has no rows; one row per evaluation is needed.")
    cells = {name: as_float(table[name]) for name in table.columns[len(names) :]}
    for flag, rule in flags.items():
        if count := int(cells[flag].sum()):
            raise DataError(f"{count:,} of {int(cells['n'].sum()):,} rows of the logs have {rule}")
    index, runs = group_codes([table[name].rename(key) for name, key in zip(names, keys, strict=True)], len(table))

    def lowest(values: Array) -> Array:
        out = np.full(runs.size, np.inf)
        np.fmin.at(out, index, values)
        return out

    place, reached = cells["place"].astype(np.intp), ~np.isnan(cells["best"])
    reached &= place < len(edges)
    best = np.full((runs.size, len(edges)), np.inf)
    best[index[reached], place[reached]] = cells["best"][reached]
    best = np.minimum.accumulate(best, axis=1) if len(edges) else best
    task = np.zeros(runs.size, dtype=np.intp) if benchmark is None else runs.codes[list(keys).index(benchmark)]
    worst = np.full(int(task.max()) + 1, -np.inf)
    np.fmax.at(worst, task[index], cells["worst"])
    stop = last = -lowest(-cells["last"])
    if "stop" in columns:
        stop = lowest(cells["stop_low"])
        _refuse_ends(runs, stop, -lowest(-cells["stop_high"]), last)
    counts = {
        "all": int(cells["n"].sum()),
        "failed": int((cells["n"] - cells["n_scored"]).sum()),
        "beyond": int(cells["n"][place >= len(edges)].sum()),
        "tied": int(cells["tied"].sum()) if "tied" in cells else 0,
    }
    best, worst = (sign * np.where(np.isfinite(values), values, np.nan) for values in (best, worst[task]))
    return runs, best, worst, lowest(cells["first"]), stop, counts


def _refuse_ends(runs: Keys, low: Array, high: Array, last: Array) -> None:
    several = low < high
    if several.any():
        i = int(several.argmax())
        raise DataError(
            f"end must have one value per run, but {run_name(runs, i)} has {text_of(low[i])} and {text_of(high[i])} "
            f"({int(several.sum()):,} such runs in all)."
        )
    longer = last > reaches(high)
    if longer.any():
        i = int(longer.argmax())
        raise DataError(
            f"{int(longer.sum()):,} of {runs.size:,} runs have evaluations after their end: {run_name(runs, i)} ends "
            f"at {text_of(high[i])}, and its last is at {text_of(last[i])}. Do both count from the start of the run, "
            "in one unit?"
        )


# ------------------------------------------------------------------ columns


def read_log(
    frame: AnyFrame,
    keys: list[str],
    benchmark: str | None,
    direction: str,
    *,
    time: Any,
    score: Any,
    cost: Any,
    end: Any,
    full_budget: Any,
) -> tuple[Callable[..., Any], str, bool]:
    """What to ask a log by budgets, what these are called, and whether they are whole numbers; nothing is run yet.

    The log gets columns of our own: ``key0``, ...: the run; ``t``: the budget spent; ``y``: the score, with the sign so
    that low is good, null where the evaluation failed; ``stop``, with an `end`: the end of the run; flags: 1 where a
    column breaks the rule there; ``tied``, with a `cost`: 1 for evaluations at the time of another.
    """
    schema = frame.collect_schema()
    numeric = {"time": time, "score": score}
    numeric |= {} if cost is None else {"cost": cost}
    numeric |= {"end": end} if isinstance(end, str) else {}
    numeric |= {} if full_budget is None or _is_rule(full_budget) else {"full_budget": full_budget}
    seen = dict.fromkeys(keys, "run")
    for role, name in numeric.items():
        check_column(name, schema.names(), argument=role)
        if name in seen:
            raise ArgumentError(f"{role} and {seen[name]} both name the column {name!r}; each needs its own.")
        seen[name] = role
        check_numeric(frame, name, argument=role)
    if full_budget is not None and benchmark is None:
        raise ArgumentError("full_budget needs the column of the benchmarks: trajectories(..., benchmark=...).")
    sign = 1.0 if direction == "minimize" else -1.0
    x = {role: nw.col(name).cast(nw.Float64) for role, name in numeric.items()}
    own = {f"key{i}": nw.col(name) for i, name in enumerate(keys)}
    parts: dict[str, Any] = {**own, "t": x["time"], "y": nw.when(_finite(x["score"])).then(x["score"] * sign)}
    flags = {"bad_time": f"no time in {time!r}, or a negative or infinite one. {COUNTED}"}
    parts["bad_time"] = _not(_from_zero(x["time"]))
    if cost is not None:
        flags["bad_cost"] = f"no cost in {cost!r}, or a negative or infinite one. {PAID}"
        parts |= {"cost": x["cost"], "bad_cost": _not(_from_zero(x["cost"]))}
    if end is not None:
        meaning = "a budget at which runs end, or a column"
        parts["stop"] = x["end"] if "end" in x else nw.lit(check_number(end, "end", low=0, open="low", meaning=meaning))
    if "end" in x:
        flags["bad_end"] = f"no end in {end!r}, or a negative or infinite one. {ENDED}"
        parts["bad_end"] = _not(_from_zero(x["end"]))
    if "full_budget" in x:
        flags["bad_full"] = f"no full budget in {full_budget!r}, or none above 0. {WHOLE}"
        parts |= {"full": x["full_budget"], "bad_full": _not(_finite(x["full_budget"]) & (x["full_budget"] > 0))}
    log = frame.select(*(expression.alias(name) for name, expression in parts.items()))
    if cost is not None:
        log = _with_totals(log, list(own))
    if full_budget is not None:
        full = nw.col("full")
        if _is_rule(full_budget):
            last, place = nw.col("stop") if end is not None else nw.col("t"), f"key{keys.index(str(benchmark))}"
            ends: Any = log.group_by(*own).agg(last.max().alias("full"))
            over_runs = ends.group_by(place).agg(full.max() if full_budget == "longest" else full.min())
            log = log.join(over_runs, on=place, how="left")
        log = log.with_columns(nw.col("t") / full, *([nw.col("stop") / full] if end is not None else []))
    budget = (time if cost is None else f"{cost}_total") + ("" if full_budget is None else "_fraction")
    at = partial(seen_by, log, keys=tuple(keys), benchmark=benchmark, sign=sign, flags=flags)
    return at, free_name(budget, keys), full_budget is None and schema[time if cost is None else cost].is_integer()


def _is_rule(full_budget: Any) -> bool:
    return isinstance(full_budget, str) and full_budget in FULL


def _finite(x: nw.Expr) -> nw.Expr:
    return x.is_finite().fill_null(False)


def _from_zero(x: nw.Expr) -> nw.Expr:
    return _finite(x) & (x >= 0).fill_null(False)


def _not(condition: nw.Expr) -> nw.Expr:
    return (~condition).cast(nw.Int64)


def _with_totals(log: AnyFrame, keys: list[str]) -> AnyFrame:
    """The total cost up to each evaluation in place of its time; those at one time are paid together."""
    if log.implementation.is_dask():
        raise ArgumentError(
            "cost needs running totals within runs, which Dask has not. Write the totals to the logs and name them as "
            "time, or give the logs as another kind of table, such as DuckDB's or a lazy one of Polars."
        )
    if log.implementation.is_pyarrow():  # it has no running totals within groups
        log = nw.from_native(nw.to_native(log).to_pandas())
    log = log.with_columns(nw.col("cost").cum_sum().over(*keys, order_by="t").alias("own"))
    log = log.with_columns(nw.col("own").max().over(*keys, "t").alias("total"))
    tied = (nw.col("own") < nw.col("total")).fill_null(False).cast(nw.Int64)
    return log.with_columns(nw.col("total").alias("t"), tied.alias("tied"))


def _interval(frame: AnyFrame, edges: Array) -> nw.Expr:
    """The number of edges below each time: by bisection, in memory or as an expression."""
    t = nw.col("t")
    if isinstance(frame, nw.DataFrame):
        return t.map_batches(lambda column: np.searchsorted(edges, column.to_numpy()), return_dtype=nw.Int64())
    return _bisected(t, edges.tolist(), 0)


def _bisected(t: nw.Expr, edges: list[float], below: int) -> nw.Expr:
    if not edges:
        return nw.lit(below)
    half = len(edges) // 2
    lower, upper = _bisected(t, edges[:half], below), _bisected(t, edges[half + 1 :], below + half + 1)
    return nw.when(t <= edges[half]).then(lower).otherwise(upper)
