"""A log of evaluations as one group-by sees it: by run, and by the interval of budgets in which a score was known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from lmemtest.bench.data.study import labels
from lmemtest.core.codes import Keys, group_codes
from lmemtest.core.frames import as_float, as_pandas
from lmemtest.core.numeric import check_numeric
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_column, check_number
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array

    AnyFrame = nw.DataFrame[Any] | nw.LazyFrame[Any]

__all__ = ["Seen", "free_name", "reaches", "read_log", "text_of"]

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What a log holds of each of its runs.

    `best`: ``(runs, budgets)``, the best score up to each, NaN before the first; `first`: when the first score was
    known, infinite if never; `stop`: the end of the run; `worst`: the worst score of all on its benchmark.
    """

    runs: Keys
    best: Array
    first: Array
    stop: Array
    worst: Array
    n: int
    n_failed: int
    n_late: int
    n_tied: int

    def name(self, i: int) -> str:
        """The label of a run."""
        return run_name(self.runs, i)


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
) -> Seen:
    """What is known of every run up to each budget, by one query of a log with columns of our own, see `read_log`."""
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
    return Seen(
        runs=runs,
        best=sign * np.where(np.isfinite(best), best, np.nan),
        first=lowest(cells["first"]),
        stop=stop,
        worst=sign * np.where(np.isfinite(worst), worst, np.nan)[task],
        n=int(cells["n"].sum()),
        n_failed=int((cells["n"] - cells["n_scored"]).sum()),
        n_late=int(cells["n"][place >= len(edges)].sum()),
        n_tied=int(cells["tied"].sum()) if "tied" in cells else 0,
    )


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
) -> tuple[Callable[[Array | Sequence[float]], Seen], str, bool]:
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


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name for a new column."""
    while name in taken:
        name += "_"
    return name


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
